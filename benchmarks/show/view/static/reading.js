// The pages of an episode and of a decision: pictures by round, long texts in pieces.
// Texts become text nodes, never markup.

"use strict";
{
const figure = document.getElementById("picture");
if (figure) {
  const slider = figure.querySelector("input"), speed = document.getElementById("speed");
  const play = document.getElementById("play"), drawn = figure.querySelector(".drawn");
  const captions = () => [...document.querySelectorAll("#captions li")];
  for (const control of figure.querySelectorAll("[hidden]")) control.hidden = false;
  figure.querySelector("[data-without-script]").hidden = true; // what it does happens at once
  const frames = captions(), shapes = document.getElementById("shapes")?.content.firstChild.children;
  /** Draw a picture of a page in a file: its size, and runs of the shapes that it is made of. */
  const draw = ({ textContent, dataset }) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const [width, height, ...runs] = dataset.drawn.split(" ");
    const set = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": textContent };
    for (const [name, value] of Object.entries(set)) svg.setAttribute(name, value);
    for (const [first, last] of runs.map((run) => run.split("-").map(Number)))
      for (let i = first; i <= last; i++) svg.append(shapes[i].cloneNode(true));
    drawn.replaceChildren(svg);
  };
  const show = () => {
    const at = figure.dataset.at + slider.value, image = figure.querySelector("img");
    const caption = (drawn ? frames : captions())[slider.value]?.textContent ?? "";
    if (drawn) draw(frames[slider.value]);
    else {
      figure.querySelector("source").srcset = `${at}?dark=1`;
      image.src = at;
      image.alt = caption;
    }
    figure.querySelector("figcaption").textContent = caption;
    figure.querySelector("output").textContent = slider.value;
    mark();
  };
  /** Of a crowd only the round of the picture is on the page, at the start the first. */
  const shown = () => slider.value === "0" ? document.querySelector(".crowded")?.dataset.picture : slider.value;
  const mark = () => {
    for (const row of document.querySelectorAll("[data-picture]"))
      if (row.matches(".crowded")) row.hidden = row.dataset.picture !== shown();
      else row.classList.toggle("now", row.dataset.picture === slider.value);
  };
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const forward = () => {
    const image = figure.querySelector("img");
    if (image && !image.complete) return; // the one before has not come yet
    if (slider.value === slider.max) return stop();
    slider.stepUp();
    show();
  };
  const begin = () => {
    clearInterval(timer);
    timer = setInterval(forward, 1000 / Number(speed.value));
    play.textContent = "Pause";
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (slider.value === slider.max) { slider.value = 0; show(); }
    begin();
  });
  speed.addEventListener("change", () => timer && begin());
  slider.addEventListener("input", () => { stop(); show(); });
  new MutationObserver(() => { // the episode has grown: follow it from its end
    const last = String(captions().length - 1), follows = slider.value === slider.max && last > 1;
    if (slider.max === last || last < 0) return mark();
    slider.max = last;
    if (follows) { slider.value = last; show(); }
  }).observe(document.getElementById("main"), { childList: true });
  if (drawn) show();
  mark();
}

document.addEventListener("click", async ({ target }) => {
  if (!target.matches("[data-more]")) return;
  const box = target.parentElement;
  target.disabled = true;
  try {
    const answer = await fetch(target.dataset.more);
    if (!answer.ok) throw new Error(await answer.text());
    const { text, end, left } = await answer.json();
    const pre = document.createElement("pre"); // a block of its own is laid out by itself
    pre.textContent = text;
    box.before(pre);
    target.dataset.more = target.dataset.more.replace(/from=\d+/, `from=${end}`);
    box.querySelector("span").textContent = left ? `${left.toLocaleString("en")} characters more` : "that is all of it";
    target.hidden = !left;
  } catch {
    box.querySelector("span").textContent = "could not be read: is the server still there?";
  }
  target.disabled = false;
});
}
