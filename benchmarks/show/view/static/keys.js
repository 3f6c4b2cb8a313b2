// Keys of every page, also of one that is opened from disk: a classic script, with names of its own.
"use strict";
{
const all = (selector) => [...document.querySelectorAll(selector)];
const dialog = document.getElementById("keys"), on = document.getElementById("keys-on");
on.checked = localStorage.getItem("keys") !== "off";
on.addEventListener("change", () => localStorage.setItem("keys", on.checked ? "on" : "off"));
const help = document.getElementById("help");
help.hidden = false;
help.addEventListener("click", () => dialog.showModal());

/** Go to the next row (`by` 1) or the one before (-1); beyond the ends to the page there. */
function step(by) {
  const rows = all("[data-row]");
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = here < 0 ? (by > 0 ? 0 : -1) : here + by;
  const link = rows[next]?.querySelector("a");
  if (link) { link.focus(); link.scrollIntoView({ block: "nearest" }); return; }
  const page = document.querySelector(by > 0 ? "a[rel=next]" : "a[rel=prev]");
  if (page) page.click();
}

/** Go to the next picture (`by` 1) or the one before (-1). */
function turn(by) {
  const slider = document.getElementById("after");
  if (!slider) return;
  slider.value = Number(slider.value) + by;
  slider.dispatchEvent(new Event("input"));
}

const KEYS = {
  p: () => document.getElementById("play")?.click(),
  "[": () => turn(-1),
  "]": () => turn(1),
  j: () => step(1),
  k: () => step(-1),
  u: () => all(".crumbs a").at(-1)?.click(),
  x: () => document.activeElement.closest("[data-row]")?.querySelector("[name=compare]")?.click(),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  "?": () => dialog.showModal(),
};
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const typing = target.matches("textarea, select, input:not([type=checkbox], [type=range])");
  if (key === "Escape" && typing) { target.blur(); return; }
  const modified = event.ctrlKey || event.metaKey || event.altKey;
  if (typing || modified || dialog.open || !on.checked || !(key in KEYS)) return;
  event.preventDefault();
  KEYS[key]();
});
}
