// How far a run is while it is at work, asked for again and again. What comes goes in as text.
(() => {
  const part = document.getElementById("progress");
  if (!part || part.dataset.live !== "yes") return;
  const find = (id) => document.getElementById(id);
  const often = 3000;
  const seldom = 15000;

  const line = (bar) => {
    const item = document.createElement("li");
    const name = document.createElement("span");
    const progress = document.createElement("progress");
    const text = document.createElement("span");
    name.className = "name";
    name.textContent = bar.name;
    progress.max = Math.max(bar.of, 1);
    progress.value = bar.done;
    progress.setAttribute("aria-label", bar.name);
    text.className = "text";
    text.textContent = bar.text;
    item.append(name, " ", progress, " ", text);
    return item;
  };
  const show = (told) => {
    if (find("stage").textContent !== told.stage) find("stage").textContent = told.stage;
    find("bars").replaceChildren(...told.bars.map(line));
    find("reload").hidden = told.live;
  };
  const ask = async () => {
    try {
      const answer = await fetch(part.dataset.from);
      if (!answer.ok) throw new Error(answer.statusText);
      const told = await answer.json();
      show(told);
      if (told.live) setTimeout(ask, often);
    } catch {
      setTimeout(ask, seldom);
    }
  };
  setTimeout(ask, often);
})();
