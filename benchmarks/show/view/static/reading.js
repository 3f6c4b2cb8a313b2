// The pages of an episode and of a decision: pictures by round, long texts in pieces.
// Texts become text nodes, never markup.

const figure = document.getElementById("picture");
if (figure) {
  const slider = figure.querySelector("input");
  const captions = () => [...document.querySelectorAll("#captions li")];
  figure.querySelector("button").hidden = true; // what it does happens at once
  const show = () => {
    const at = figure.dataset.at + slider.value;
    figure.querySelector("source").srcset = `${at}?dark=1`;
    figure.querySelector("img").src = at;
    const words = captions()[slider.value]?.textContent ?? "";
    figure.querySelector("img").alt = words;
    figure.querySelector("figcaption").textContent = words;
    figure.querySelector("output").textContent = slider.value;
    mark();
  };
  const mark = () => {
    for (const row of document.querySelectorAll("[data-picture]"))
      row.classList.toggle("now", row.dataset.picture === slider.value);
  };
  slider.addEventListener("input", show);
  new MutationObserver(() => { // the episode has grown: follow it from its end
    const last = String(captions().length - 1), follows = slider.value === slider.max;
    if (slider.max === last) return mark();
    slider.max = last;
    if (follows) { slider.value = last; show(); }
  }).observe(document.getElementById("main"), { childList: true });
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
