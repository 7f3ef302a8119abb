"use strict";
// Light, dark or as the system has it; kept where the browser lets a file keep anything.
(() => {
  const names = { auto: "as the system", light: "light", dark: "dark" };
  const order = Object.keys(names);
  const button = document.getElementById("theme");
  const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* not kept */ } };
  let theme = names[kept()] ? kept() : "auto";
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.getElementById("theme-name").textContent = names[theme];
  };
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    keep(theme);
    show();
  });
  button.hidden = false;
  show();

  // On paper there is nothing to unfold.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((details) => { details.open = false; }));
})();
