// The table of conversations: sorting by a click on a heading, and filters.
(() => {
  const table = document.getElementById("table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const form = document.getElementById("filters");
  const field = (name) => document.getElementById(`f-${name}`);
  const value = (name) => field(name)?.value ?? "";
  const firstRating = rows[0] ? [...rows[0].cells].findIndex((cell) => cell.dataset.rating !== undefined) : -1;

  const keep = (row) => {
    if (!row.dataset.words.includes(value("search").trim().toLowerCase())) return false;
    if (value("group") && row.dataset.group !== value("group")) return false;
    if (value("ending") && row.dataset.ending !== value("ending")) return false;
    if (field("uncertain").checked && row.dataset.doubt === "0") return false;
    const rated = [...row.cells].filter((cell) => cell.dataset.rating !== undefined);
    const looked = value("dimension") === "" ? rated : [row.cells[firstRating + Number(value("dimension"))]];
    return !value("rating") || looked.some((cell) => cell.dataset.rating === value("rating"));
  };
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !keep(row);
      shown += row.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = `${shown} of ${rows.length} conversations shown`;
  };

  const key = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
  const sort = (column, numeric, down) => {
    const sign = down ? -1 : 1;
    const compare = numeric
      ? (a, b) => Number(key(a, column)) - Number(key(b, column))
      : (a, b) => key(a, column).localeCompare(key(b, column));
    rows.sort((a, b) => sign * compare(a, b) || Number(key(a, 0)) - Number(key(b, 0)));
    body.append(...rows);
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const numeric = head.dataset.sort !== "text";
    button.addEventListener("click", () => {
      // A rating's first click shows the worst on top.
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric && column > 0;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(column, numeric, down);
    });
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  form.hidden = false;
  filter();
})();
