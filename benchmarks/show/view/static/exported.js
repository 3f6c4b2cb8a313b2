// Pages that are opened from disk: texts from scripts with data, decisions of an episode, the list.
// Texts become text nodes, never markup; no page asks anything of a server.
"use strict";

const TEXTS = new Map(), DECIDED = new Map(); // by episode; texts of several are those of 0

/** Take the data of an episode. */
function take(episode, { texts, decisions }) {
  TEXTS.set(episode, texts);
  DECIDED.set(episode, decisions);
}

const textOf = (episode, number) => number < 0 ? TEXTS.get(0)[-1 - number] : TEXTS.get(episode)[number];

// -- decisions, on the page of their episode ------------------------------------------------------

const FIRST = 20000, MORE = 100000; // characters: a browser stands still over millions

function put(pre, text, from = 0) {
  const end = from + (from ? MORE : FIRST), left = text.length - end;
  pre.textContent = text.slice(from, end);
  if (left <= 0) return;
  const more = document.createElement("button");
  more.textContent = `Show more of ${left.toLocaleString("en")} characters`;
  more.addEventListener("click", () => {
    const next = document.createElement("pre"); // a block of its own is laid out by itself
    more.replaceWith(next);
    put(next, text, end);
  });
  pre.after(more);
}

function filled(node, episode) {
  for (const box of node.querySelectorAll("[data-messages]"))
    for (const [role, number] of box.dataset.messages.split(",").map((one) => one.split(" "))) {
      const message = document.createElement("div"), name = document.createElement("h4");
      const pre = document.createElement("pre");
      message.className = `message ${role}`;
      name.textContent = role;
      pre.dataset.text = number;
      message.append(name, pre);
      box.append(message);
    }
  for (const pre of node.querySelectorAll("[data-text]")) put(pre, textOf(episode, Number(pre.dataset.text)));
  return node;
}

/** Show the decision that the address names after #, else the episode. */
function pages(main, episode) {
  const templates = new Map([...main.querySelectorAll("template[data-title]")].map((one) => [one.id, one]));
  const own = [...main.childNodes], here = document.querySelector("[aria-current=page]");
  const words = here.textContent, back = document.createElement("li"), link = document.createElement("a");
  const title = document.title;
  link.href = "#";
  link.textContent = words;
  back.append(link);
  let shown = null;
  const show = () => {
    const template = templates.get(location.hash.slice(1));
    if (template === shown) return;
    shown = template;
    main.replaceChildren(...(template ? [filled(template.content.cloneNode(true), episode)] : own));
    here.textContent = template ? template.dataset.title : words;
    document.title = template ? `${template.dataset.title} · ${title}` : title;
    template ? here.parentElement.before(back) : back.remove();
    if (template) scrollTo(0, 0);
    main.focus({ preventScroll: true });
  };
  addEventListener("hashchange", show);
  if (location.hash.length > 1) show();
}

// -- the list -------------------------------------------------------------------------------------

const policy = globalThis.trustedTypes?.createPolicy("llm-games", {
  createScriptURL: (address) => { // nothing but data of this export
    if (!/^data\/(shared|episode-\d+)\.js$/.test(address)) throw new TypeError(address);
    return address;
  },
});
const loading = new Map();

/** Read the script with the data of an episode, 0: with texts of several. */
function load(episode) {
  if (!loading.has(episode)) loading.set(episode, new Promise((done) => {
    const script = document.createElement("script"), name = episode ? `episode-${episode}` : "shared";
    const address = `data/${name}.js`;
    script.onload = script.onerror = () => done(TEXTS.has(episode));
    script.src = policy ? policy.createScriptURL(address) : address;
    document.head.append(script);
  }));
  return loading.get(episode);
}

/** Filter, sort and show decisions as the list's form asks for; its state stands in the address. */
function list({ columns, names, values, words, numbers, rows: PER_PAGE }) {
  const form = document.querySelector("form[data-filters]"), part = document.getElementById("list");
  const body = part.querySelector("tbody"), count = columns.episode.length;
  if (!body) return;
  const find = (selector, root = part) => root.querySelector(selector);
  const kind = (i) => `${columns.outcome[i]} ${columns.broke[i]} ${columns.phase[i]}`;
  const samples = new Map(), wording = { ...names, ...{ phase: values.phase, broke: values.broke } };
  const at = new Map(columns.episode.map((episode, i) => [`${episode} ${columns.step[i]} ${columns.seat[i]}`, i]));
  for (const row of body.rows) {
    const [, episode, step, seat] = row.querySelector("th a").id.split("-");
    samples.set(kind(at.get(`${episode} ${step} ${seat}`)), row);
  }
  const chips = find(".chips"), all = chips.lastElementChild, chip = chips.firstElementChild;
  const [previous, where, next] = find("nav.bar").children, status = find("[role=status]");
  const none = document.createElement("p");
  none.textContent = "No decision fits.";
  const number = (value, digits = 2) => value === null ? "–" : value
    .toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−");
  const seconds = (value) => value < 1 ? `${(1000 * value).toFixed()} ms`
    : value < 120 ? `${value.toFixed(1)} s` : `${number(value / 60, 0)} min`;
  const FIELDS = ["game", "player", "seat", "outcome", "phase", "broke", "round", "episode"];
  let query = new URLSearchParams(location.search), turn = 0;

  const value = (field, i) => String(values[field]?.[columns[field][i]] ?? columns[field][i]);

  /** By field that narrows the list, a mask of the decisions that fit it. */
  function masks(said) {
    const found = new Map();
    for (const field of FIELDS) {
      const wanted = new Set(query.getAll(field));
      if (wanted.size) found.set(field, Uint8Array.from(columns[field], (_, i) => wanted.has(value(field, i))));
    }
    const labels = query.getAll("label");
    if (labels.length)
      found.set("label", Uint8Array.from(columns.labels, (own) => labels.some((label) => own.includes(label))));
    const bounds = [["regret_min", "regret", 1], ["regret_max", "regret", -1], ["calls_min", "calls", 1]];
    for (const [name, field, sign] of bounds) {
      const bound = parseFloat(query.get(name));
      if (!Number.isNaN(bound))
        found.set(name, Uint8Array.from(columns[field], (v) => v !== null && sign * v >= sign * bound));
    }
    if (said) found.set("text", said);
    return found;
  }

  /** A mask of the decisions whose replies or thoughts hold all words, or phrases in quotes. */
  async function saying(text, mine) {
    const terms = [...text.matchAll(/"([^"]+)"?|([^\s"]+)/g)].map((m) => (m[1] ?? m[2]).trim().toLowerCase());
    const mask = new Uint8Array(count), episodes = [...new Set(columns.episode)];
    await load(0);
    for (const [done, episode] of episodes.entries()) {
      await load(episode);
      if (mine !== turn) return null;
      status.textContent = `${done + 1} of ${episodes.length} episodes searched`;
    }
    for (let i = 0; i < count; i++) {
      const said = DECIDED.get(columns.episode[i])?.[`${columns.step[i]}-${columns.seat[i]}`]?.[1] ?? [];
      const whole = said.map((n) => textOf(columns.episode[i], n)).join("\n").toLowerCase();
      mask[i] = terms.every((term) => whole.includes(term));
    }
    return mask;
  }

  const fitting = (found, but) => {
    const whole = new Uint8Array(count).fill(1);
    for (const [name, mask] of found) if (name !== but) for (let i = 0; i < count; i++) whole[i] &= mask[i];
    return whole;
  };

  function facets(found, whole) {
    const boxes = Map.groupBy(form.querySelectorAll("#choices input[type=checkbox]"), (box) => box.name);
    for (const [field, inputs] of boxes) {
      const fits = found.has(field) ? fitting(found, field) : whole, counts = new Map();
      for (let i = 0; i < count; i++) if (fits[i])
        for (const code of field === "label" ? columns.labels[i] : [columns[field][i]]) counts.set(code, (counts.get(code) ?? 0) + 1);
      const by = new Map([...counts].map(([code, n]) => [String(values[field]?.[code] ?? code), n]));
      for (const box of inputs) {
        box.checked = query.getAll(field).includes(box.value);
        const n = by.get(box.value) ?? 0;
        box.closest("li").hidden = !n && !box.checked;
        find(".count", box.closest("li")).textContent = number(n);
      }
    }
  }

  function chipsOf() {
    const pairs = [...query].filter(([name]) => words[name]);
    chips.hidden = !pairs.length;
    chips.replaceChildren(...pairs.map(([name, value]) => {
      const one = chip.cloneNode(true), link = find("a", one), rest = new URLSearchParams(query);
      rest.delete(name, value);
      rest.delete("page");
      link.href = `?${rest}`;
      link.firstChild.textContent = `${words[name]} ${value} `;
      link.ariaLabel = `without ${words[name]} ${value}`;
      return one;
    }), all);
  }

  function row(i) {
    const line = samples.get(kind(i)).cloneNode(true), c = (name) => columns[name][i];
    const link = find("th a", line), id = `${c("step")}-${c("seat")}`, numbered = numbers[c("episode")];
    link.id = `row-${c("episode")}-${id}`;
    link.href = `episode-${c("episode")}.html#${id}`;
    link.textContent = `round ${c("round")}, seat ${c("seat")}`;
    const about = find("th small", line).firstChild, tail = about.textContent.match(/, [a-z ]+$/)?.[0] ?? "";
    about.textContent = `${names.game[c("game")]}, episode ${numbered}${columns.phase[i] ? tail : ""}`;
    const set = (name, text) => (find(`[data-name=${name}]`, line).textContent = text);
    line.querySelectorAll(".label").forEach((one) => one.remove());
    for (const label of columns.labels[i]) {
      const one = document.createElement("span");
      one.className = "label";
      one.textContent = label;
      find("[data-name=outcome]", line).append(" ", one);
    }
    set("player", names.player[c("player")]);
    set("regret", number(c("regret")));
    set("payoff", number(c("payoff")));
    set("tokens", c("calls") ? number(c("tokens")) : "");
    set("time", c("calls") ? seconds(c("latency")) : "");
    Promise.all([load(0), load(c("episode"))]).then(() => {
      const [move, said] = DECIDED.get(c("episode"))?.[id] ?? ["", []];
      set("move", move);
      const begins = find(".begins", line);
      if (begins) begins.textContent = said.length ? textOf(c("episode"), said.at(-1)).slice(0, 300) : "";
    });
    return line;
  }

  function sorted(places) {
    const sort = query.get("sort") || "place", name = sort.replace(/^-/, ""), sign = sort[0] === "-" ? -1 : 1;
    const column = columns[name], last = Infinity;
    if (column) places.sort((a, b) => {
      const x = column[a] === null ? last : sign * column[a], y = column[b] === null ? last : sign * column[b];
      return x === y ? a - b : x - y;
    });
    for (const head of part.querySelectorAll("[aria-sort]")) {
      const link = find("a", head), field = new URLSearchParams(link.search).get("sort").replace(/^-/, "");
      head.ariaSort = field === name ? (sign < 0 ? "descending" : "ascending") : "none";
      link.textContent = `${link.textContent.replace(/ [↓↑]/, "")}${field === name ? (sign < 0 ? " ↓" : " ↑") : ""}`;
      const changed = new URLSearchParams(query);
      changed.set("sort", head.ariaSort === "descending" ? field : `-${field}`);
      changed.delete("page");
      link.href = `?${changed}`;
    }
    return places;
  }

  async function show() {
    const mine = ++turn, text = query.get("text")?.trim() ?? "";
    document.getElementById("text").value = text;
    document.getElementById("sort").value = query.get("sort") ?? "";
    for (const name of ["regret_min", "regret_max"]) document.getElementById(name).value = query.get(name) ?? "";
    const said = text ? await saying(text, mine) : null;
    if (mine !== turn) return;
    const found = masks(said), whole = fitting(found);
    facets(found, whole);
    chipsOf();
    const places = [];
    for (let i = 0; i < count; i++) if (whole[i]) places.push(i);
    const pages = Math.max(1, Math.ceil(places.length / PER_PAGE));
    const page = Math.min(Math.max(parseInt(query.get("page")) || 1, 1), pages);
    const shown = sorted(places).slice((page - 1) * PER_PAGE, page * PER_PAGE);
    body.replaceChildren(...shown.map(row));
    shown.length ? none.remove() : body.parentElement.after(none);
    status.textContent = `${number(places.length)} ${places.length === 1 ? "decision" : "decisions"}`
      + (places.length === count ? "" : ` of ${number(count)}`);
    where.textContent = `page ${page} of ${pages}`;
    body.parentElement.caption.textContent = `Decisions, ${where.textContent}`;
    for (const [link, to] of [[previous, page - 1], [next, page + 1]]) {
      const changed = new URLSearchParams(query);
      changed.set("page", to);
      link.href = `?${changed}`;
      link.hidden = to < 1 || to > pages;
    }
  }

  function go(changed) {
    query = changed;
    try { history.pushState(null, "", `?${query}`); } catch { /* not from this disk */ }
    return show();
  }
  const asked = () => {
    const kept = [...query].filter(([name]) => ["episode", "calls_min"].includes(name));
    const pairs = [...new FormData(form)].filter(([name, value]) => value && name !== "episode");
    go(new URLSearchParams([...kept, ...pairs]));
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); asked(); });
  form.addEventListener("change", asked);
  part.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-go]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(new URLSearchParams(link.search)).then(() => scrollTo(0, 0));
  });
  addEventListener("popstate", () => { query = new URLSearchParams(location.search); show(); });
  if (innerWidth < 860) document.getElementById("filters").open = false;
  show();
}

{
  const main = document.getElementById("main"), episode = location.pathname.match(/episode-(\d+)\.html$/);
  if (episode) addEventListener("DOMContentLoaded", () => pages(main, Number(episode[1])));
}
