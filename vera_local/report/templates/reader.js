// One conversation at a time, built from its data when it is opened. All text goes in as text, never as markup.
(() => {
  const reader = document.getElementById("reader");
  if (!reader) return;
  const find = (id) => document.getElementById(id);
  const rubric = JSON.parse(find("rubric").textContent);
  const speakers = { u: "User", c: "Chatbot" };
  let open = null; // { anchor, data, judge, returns }

  const make = (tag, properties = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in node) node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const said = (text, tag = "p", name = "said") => make(tag, { className: name, dir: "auto", textContent: text });
  const pill = (rating) => make("span", {
    className: `pill p-${rating === null ? rubric.unrated.tone : rubric.tones[rating] ?? rubric.apart}`,
    textContent: rating ?? rubric.unrated.word,
  });

  // Turns, and which questions name each of them.

  const opinion = () => open.data.judges.find((judge) => judge.name === open.judge);
  const paths = () => {
    const chosen = opinion();
    if (!chosen) return [];
    const names = chosen.path.length ? [chosen.name] : members(chosen);
    return open.data.judges.filter((judge) => names.includes(judge.name));
  };
  const members = (judge) => judge.members.flatMap((name) => {
    const member = open.data.judges.find((other) => other.name === name);
    return member && member.members.length ? members(member) : [name];
  });
  const named = () => {
    const found = new Map();
    paths().forEach((judge, place) => judge.path.forEach((step) => (step.turns ?? []).forEach((turn) => {
      found.set(turn, [...(found.get(turn) ?? []), { q: step.q, id: stepId(place, step.q) }]);
    })));
    return found;
  };
  const stepId = (place, question) => `step-${place}-${question}`;
  const jump = (id, label, text) => {
    const link = make("a", { href: `#${id}`, textContent: text, "aria-label": label });
    link.addEventListener("click", (event) => { event.preventDefault(); go(id); });
    return link;
  };
  const go = (id) => {
    const target = find(id);
    if (!target) return;
    reader.querySelectorAll(".at").forEach((node) => node.classList.remove("at"));
    target.classList.add("at");
    target.scrollIntoView({ block: "center" });
    target.focus({ preventScroll: true });
  };

  const turn = ([side, text], place, evidence) => {
    const number = place + 1;
    const questions = evidence.get(number) ?? [];
    const who = make("p", { className: "who" }, `${number} ${speakers[side]} `);
    if (questions.length) {
      who.append(make("span", { className: "tag" }, "evidence for ",
        ...questions.flatMap((question, i) => [
          i ? ", " : "", jump(question.id, `Question ${question.q}, for which turn ${number} is evidence`, `question ${question.q}`),
        ])));
    }
    return make("li", {
      id: `turn-${number}`, tabIndex: -1,
      className: `turn ${side === "u" ? "user" : "bot"}${questions.length ? " evidence" : ""}`,
    }, who, said(text));
  };
  const showTurns = () => {
    const evidence = named();
    find("turns").replaceChildren(...open.data.turns.map((message, place) => turn(message, place, evidence)));
  };

  // The path of questions, by dimension.

  const answer = (step) => {
    if (step.a === undefined) return `no answer (${step.state})`;
    return step.mode === "auto" ? `${step.a} (the only option; no model was asked)` : step.a;
  };
  const evidence = (step) => {
    if (!step.turns || step.mode === "auto") return null;
    if (!step.turns.length) return make("p", { className: "fine" }, "No turn named.");
    return make("p", { className: "fine" }, "Evidence: ", ...step.turns.flatMap((number, i) => [
      i ? ", " : "", jump(`turn-${number}`, `Evidence: turn ${number}`, `turn ${number}`),
    ]));
  };
  const sureness = (step) => {
    const told = [];
    if (step.p !== undefined) told.push(`Probability of this answer: ${step.p.toFixed(2)}; all options together: ${step.mass.toFixed(2)}.`);
    if (step.hidden) told.push(`Not shown to the judge: ${step.hidden}.`);
    if (step.detail) told.push(step.detail);
    return told.map((text) => said(text, "p", "fine"));
  };
  const more = (step) => {
    const parts = [...(step.why ? [said(step.why)] : []), ...sureness(step)];
    if (!parts.length) return null;
    return make("details", {}, make("summary", {}, step.why ? "Rationale and confidence" : "Confidence"), ...parts);
  };
  const decided = (judge, step) => judge.ratings.filter(([, rating, by]) => by.includes(step.q) && rating !== rubric.best)
    .map(([dimension, rating]) => make("span", { className: "decides" }, pill(rating), ` ${dimension}`));
  const item = (judge, place, step) => {
    const question = rubric.questions[step.q] ?? { text: "" };
    const decides = decided(judge, step);
    return make("li", { id: stepId(place, step.q), tabIndex: -1, className: decides.length ? "step deciding" : "step" },
      make("p", { className: "question", dir: "auto" }, make("span", { className: "fine" }, `${step.q} `), question.text),
      make("p", { className: "answer" }, make("strong", { textContent: answer(step) }), " ", ...decides),
      step.doubt ? make("p", { className: "fine alert" }, `Uncertain: ${step.doubt}`) : null,
      evidence(step), more(step));
  };
  const dimension = (judge, place, name) => {
    const steps = judge.path.filter((step) => rubric.questions[step.q]?.dimension === name);
    const rating = judge.ratings.find(([other]) => other === name);
    return make("section", {},
      make("h5", {}, name, " ", rating ? pill(rating[1]) : null),
      steps.length ? make("ol", { className: "path" }, ...steps.map((step) => item(judge, place, step)))
        : make("p", { className: "fine" }, "No question of it was asked."));
  };
  const whole = (judge, place) => [
    make("h4", {}, judge.name),
    judge.ratings.length ? null : make("p", { className: "fine" }, "Has not come to the end of its questions."),
    ...rubric.dimensions.map((name) => dimension(judge, place, name)),
  ].filter(Boolean);
  const joined = (judge) => judge.path.length || !judge.members.length ? [] : [
    make("p", {}, `Joined from ${judge.members.join(", ")}:`),
    make("ul", { className: "plain" }, ...judge.ratings.map(([name, rating]) => make("li", {}, `${name} `, pill(rating)))),
  ];
  const showPath = () => {
    const judge = opinion();
    find("path").replaceChildren(...(judge
      ? [...joined(judge), ...paths().flatMap(whole)]
      : [make("p", {}, "No judge has rated this conversation.")]));
  };

  // Opening, closing and going on.

  const line = (anchor) => find(anchor);
  const neighbours = () => [...document.querySelectorAll("#table tbody tr:not([hidden])")].map((row) => row.id);
  const step = (by) => {
    const all = neighbours();
    const next = all[all.indexOf(open.anchor) + by];
    if (next) { show(next, open.returns); find("reader-title").focus(); }
  };
  const showSteps = () => {
    const all = neighbours();
    const place = all.indexOf(open.anchor);
    find("reader-before").disabled = place <= 0;
    find("reader-after").disabled = place < 0 || place === all.length - 1;
  };
  const show = (anchor, returns) => {
    const source = find(`data-${anchor}`);
    if (!source) return;
    const data = JSON.parse(source.textContent);
    const names = data.judges.map((judge) => judge.name);
    const judge = open && names.includes(open.judge) ? open.judge : first(names);
    open = { anchor, data, judge, returns };
    find("reader-title").replaceChildren(make("bdi", { textContent: data.id }));
    find("reader-facts").replaceChildren(
      make("bdi", { textContent: data.persona || "persona not named" }),
      ` · ${data.group} · ${data.turns.length} turns · ${data.ending}`);
    find("reader-judge").replaceChildren(...names.map((name) => make("option", { textContent: name, selected: name === judge })));
    find("reader-which").hidden = names.length < 2;
    showTurns();
    showPath();
    showSteps();
    if (!reader.open) reader.showModal();
    reader.querySelectorAll(".reader-body > section").forEach((part) => { part.scrollTop = 0; });
  };
  const first = (names) => names.find((name) => name === reader.dataset.judge) ?? names[0];

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-open]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show(link.dataset.open, link);
  });
  find("reader-judge").addEventListener("change", (event) => {
    open.judge = event.target.value;
    showTurns();
    showPath();
  });
  find("reader-before").addEventListener("click", () => step(-1));
  find("reader-after").addEventListener("click", () => step(1));
  find("reader-close").addEventListener("click", () => reader.close());
  reader.addEventListener("close", () => (open.returns ?? line(open.anchor)?.querySelector("a"))?.focus());
  const fromAddress = () => {
    const anchor = /^#(c\d+)$/.exec(location.hash)?.[1];
    if (anchor) show(anchor, null);
  };
  addEventListener("hashchange", fromAddress);
  fromAddress();
})();
