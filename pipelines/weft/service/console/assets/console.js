// Keys, the theme, and the question as an event: what a server cannot do. It draws nothing of what is stored.
"use strict";
const root = document.documentElement;
const remembered = localStorage.getItem("weft-theme");
if (remembered) root.dataset.theme = remembered;

document.addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("q");
  document.getElementById("theme").addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark" ||
      (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("weft-theme", root.dataset.theme);
  });

  field.form.addEventListener("submit", (event) => {
    const page = document.getElementById("answer");
    if (!page || !window.did_handshake || !field.value.trim()) return; // the server makes the page then
    event.preventDefault();
    history.replaceState(null, "", "/?q=" + encodeURIComponent(field.value));
    page.dispatchEvent(new CustomEvent("ask", { detail: field.value }));
    field.blur();
  });

  const results = () => [...document.querySelectorAll("article.result")];
  let current = null; // the hash of a content: elements come and go
  const mark = (result, scroll) => {
    results().forEach((each) => each.removeAttribute("aria-current"));
    current = result?.dataset.hash ?? null;
    if (!result) return;
    result.setAttribute("aria-current", "true");
    if (scroll) {
      result.focus({ preventScroll: true });
      result.scrollIntoView({ block: "nearest" });
    }
  };
  const at = () => results().find((each) => each.dataset.hash === current);
  document.addEventListener("focusin", (event) => {
    const result = event.target.closest?.("article.result");
    if (result) mark(result, false);
  });
  new MutationObserver(() => {
    const result = current && at();
    if (result && !result.hasAttribute("aria-current")) mark(result, document.activeElement === document.body);
  }).observe(document.body, { childList: true, subtree: true });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const all = results();
    const place = all.indexOf(at());
    const press = (selector) => at()?.querySelector(selector)?.click();
    const keys = {
      "/": () => { field.focus(); field.select(); },
      j: () => mark(all[Math.min(place + 1, all.length - 1)], true),
      k: () => mark(all[Math.max(place - 1, 0)], true),
      "+": () => press("button.good"),
      "-": () => press("button.bad"),
      "?": () => document.getElementById("help").togglePopover(),
      Enter: () => event.target.closest("article.result") === event.target && press("summary"),
    };
    if (!(event.key in keys)) return;
    if (event.key !== "Enter" || event.target.matches("article.result")) event.preventDefault();
    keys[event.key]();
  });
  if (location.pathname === "/" && !field.value) field.focus();
});
