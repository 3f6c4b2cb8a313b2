// The page of one seat. All state is on the server: this shows what the seat sees, and sends what is
// answered. Text becomes text nodes alone.

const here = location.pathname.replace(/\/$/, "");
const at = (id) => document.getElementById(id);
let seen = {}, shownTurn = null;

/** Return a key as words. */
const words = (key) => key.replaceAll("_", " ");

/** Make an element with properties and children. */
function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

async function ask(path, body) {
  const how = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  const answer = await fetch(here + path, how);
  return [answer.status, await answer.json()];
}

// -- forms from a question's schema ----------------------------------------------------------------

/** Return [elements, a function that reads the value] of a schema. */
function field(name, schema, more, required) {
  const label = words(name);
  if (schema.anyOf) return optional(name, schema.anyOf, more, required);
  if (schema.enum) {
    const options = schema.enum.map((word, i) => make("label", {},
      make("input", { type: "radio", name, value: String(i), required, id: i ? "" : "first" }), String(word)));
    const group = make("fieldset", {}, make("legend", { textContent: label }), ...options);
    return [group, () => schema.enum[Number(group.querySelector(":checked")?.value)]];
  }
  if (schema.type === "object") return shares(name, schema, more);
  if (schema.type === "number" || schema.type === "integer") {
    const inputMode = schema.type === "integer" ? "numeric" : "decimal";
    const input = make("input", { type: "number", required, inputMode, step: String(schema.multipleOf ?? (schema.type === "integer" ? 1 : "any")) });
    if (schema.minimum !== undefined) input.min = String(schema.minimum);
    if (schema.maximum !== undefined) input.max = String(schema.maximum);
    const limits = schema.minimum !== undefined && schema.maximum !== undefined ? ` (${schema.minimum} to ${schema.maximum})` : "";
    return [make("p", {}, make("label", {}, `${label}${limits} `, input)), () => (input.value === "" ? undefined : Number(input.value))];
  }
  if (schema.type === "null") return [make("p", {}, `${label}: there is nothing to choose`), () => null];
  const area = make("textarea", { maxLength: more.longest ?? 4000 });
  const limit = more.most_words ? ` (at most ${more.most_words} words)` : "";
  return [make("p", {}, make("label", {}, `${label}${limit}`, area)), () => area.value];
}

/** A value, or null or a word by a button of its own. */
function optional(name, ways, more, required) {
  const real = ways.find((way) => way.type !== "null");
  const [part, read] = field(name, real, more, required);
  const others = ways.filter((way) => way !== real).flatMap((way) => way.enum ?? (way.type === "null" ? [null] : []));
  const buttons = others.map((value) => {
    const button = make("button", { type: "button", textContent: value === null ? "None" : words(value), className: "none" });
    button.addEventListener("click", () => send({ [name]: value }));
    return button;
  });
  return buttons.length ? [make("div", {}, part, make("p", {}, ...buttons)), read] : [part, read];
}

/** Numbers by name, with their running sum where they must add up. */
function shares(name, schema, more) {
  const inputs = Object.entries(schema.properties).map(([key, one]) => {
    const input = make("input", { type: "number", required: true, step: "1", min: String(one.minimum ?? 0), name: key });
    if (one.maximum !== undefined) input.max = String(one.maximum);
    return [key, input];
  });
  const sum = make("p", { className: "note" });
  sum.setAttribute("role", "status");
  const count = () => {
    const total = inputs.reduce((so_far, [, input]) => so_far + Number(input.value), 0);
    if (more.sum === undefined) return;
    sum.textContent = `${total} of ${more.sum}`;
    inputs[0]?.[1].setCustomValidity(total === more.sum ? "" : `must add up to ${more.sum}`);
  };
  const labels = inputs.map(([key, input]) => make("label", {}, `${words(key)} `, input));
  const group = make("fieldset", {}, make("legend", { textContent: words(name) }), ...labels, sum);
  group.addEventListener("input", count);
  count();
  return [group, () => Object.fromEntries(inputs.map(([key, input]) => [key, Number(input.value)]))];
}

function questionForm(asked) {
  const form = at("form");
  const fields = Object.entries(asked.schema.properties).map(([name, schema]) => {
    const [part, read] = field(name, schema, asked, name === asked.key);
    return [name, part, read];
  });
  const only = asked.schema.properties[asked.key];
  const button = make("button", { className: "main", textContent: only?.type === "null" ? "None" : "Answer" });
  form.replaceChildren(...fields.map(([, part]) => part), make("p", {}, button));
  form.onsubmit = (event) => {
    event.preventDefault();
    const values = fields.map(([name, , read]) => [name, read()]);
    send(Object.fromEntries(values.filter(([name, value]) => value !== undefined && (name === asked.key || value !== ""))));
  };
  form.hidden = false;
  const first = !asked.messages.some((one) => one.role === "assistant"); // the rules are read before
  form.querySelector("input, textarea, button")?.focus({ preventScroll: first });
  if (!first) form.scrollIntoView({ block: "end" });
}

function joinForm(lobby) {
  const form = at("form"), parts = [];
  let name = null, agree = null;
  if (lobby.left) lobby = { back: true };
  if (lobby.consent) {
    agree = make("input", { type: "checkbox", required: true });
    parts.push(make("pre", { className: "words", textContent: lobby.consent }), make("p", {}, make("label", {}, agree, " I agree")));
  }
  if (lobby.pseudonyms) {
    name = make("input", { type: "text", required: true, maxLength: 40 });
    parts.push(make("p", {}, make("label", {}, "A pseudonym, nothing that names you ", name)));
  }
  form.replaceChildren(...parts, make("p", {}, make("button", { className: "main", textContent: lobby.back ? "Come back" : "Join" })));
  form.onsubmit = async (event) => {
    event.preventDefault();
    await post("/join", { pseudonym: name?.value ?? "", consent: agree?.checked ?? false });
  };
  form.hidden = false;
}

const send = (reply) => post("/act", { turn: seen.turn, reply });

/** Post something; what is wrong with it is said, and the next try is free. */
async function post(path, body) {
  const buttons = [...document.querySelectorAll("button")];
  buttons.forEach((one) => (one.disabled = true));
  try {
    const [status, answer] = await ask(path, body);
    say(status === 200 ? "" : answer.error);
    if (status !== 422) await look();
  } catch {
    say("The server cannot be reached; your answer is still here. Try again.");
  }
  buttons.forEach((one) => (one.disabled = false));
}

at("leave").addEventListener("click", () => {
  at("leaving").open = false;
  post("/leave", {});
});

function say(text) {
  at("wrong").textContent = text;
  at("wrong").hidden = !text;
}

// -- what the seat sees ----------------------------------------------------------------------------

const STATES = { lobby: "Join the game", asked: "It is your turn", over: "The game is over" };

function heading() {
  if (seen.left) return "You have left the game";
  if (seen.state !== "waiting") return STATES[seen.state];
  if (seen.missing) return `Waiting for ${seen.missing} more to join`;
  return seen.waits_for?.length ? `Waiting for ${seen.waits_for.join(", ")}` : "Waiting for the others";
}

const NOTES = {
  left: "The game's own moves are played for you. You can close this page, or come back while the game lasts.",
  late: "Your last answer did not come in time: the game's own move was played for you.",
  lobby: "The game begins once everybody has joined. Keep this page open: it goes on by itself.",
};

/** Return what was said to the seat, its own answers without their JSON, and hints to it in grey. */
function message({ role, content }, className) {
  if (role === "assistant") return make("pre", { className: "own", textContent: `You answered ${plain(content)}` });
  const lines = content.split(/(^.*\bJSON\b.*\{.*$)/m).map((line, i) => (i % 2 ? make("span", { className: "note", textContent: line }) : line));
  return make("pre", { className }, ...lines);
}

function plain(answer) {
  try {
    const values = Object.entries(JSON.parse(answer));
    const text = (value) => (value === null ? "none" : typeof value === "object" ? Object.entries(value).map(([key, one]) => `${words(key)} ${one}`).join(", ") : String(value));
    return values.length === 1 ? text(values[0][1]) : values.map(([key, value]) => `${words(key)}: ${text(value)}`).join("; ");
  } catch {
    return answer;
  }
}

function show(now) {
  const fresh = now.state !== seen.state || now.turn !== seen.turn;
  seen = now;
  at("state").textContent = document.title = heading();
  at("who").textContent = [now.seat, now.pseudonym, now.you && `${now.you} in the game`].filter(Boolean).join(" · ");
  at("note").textContent = now.left ? NOTES.left : now.late ? NOTES.late : now.missing ? NOTES.lobby : "";
  const last = now.messages?.length - 1;
  const texts = (now.messages ?? []).map((one, i) => message(one, i === last && now.state === "asked" ? "now" : ""));
  if (now.news) texts.push(make("pre", { textContent: now.news, className: "now" }));
  at("words").replaceChildren(...texts);
  if (fresh && now.state !== "lobby" && now.turn !== shownTurn) say("");
  if (now.state === "asked" && shownTurn !== now.turn) {
    shownTurn = at("form").dataset.turn = now.turn;
    questionForm(now);
  } else if (now.state === "lobby" && fresh) joinForm(now);
  else if (now.state !== "asked" && now.state !== "lobby") {
    at("form").hidden = true;
    at("form").replaceChildren();
    delete at("form").dataset.turn;
    shownTurn = null;
    if (now.news && now.state === "waiting") at("words").lastChild.scrollIntoView({ block: "end" });
  }
  at("leaving").hidden = now.state !== "asked" && now.state !== "waiting";
  if (now.state === "over") results(now.results ?? {});
  clock(now.seconds_left);
}

const cents = (amount) => (amount == null ? "" : Math.round(100 * amount) / 100);

function results(came) {
  const lines = (came.payoffs ?? []).map((one) => make("li", { textContent: `${one.game}: ${one.payoff}` }));
  const parts = [make("h2", { textContent: "What you were paid" }), make("ul", {}, ...lines)];
  if (came.moves?.length) {
    const row = (cell, ...cells) => make("tr", {}, make("th", { textContent: cell, scope: "row" }), ...cells.map((one) => make("td", { textContent: String(one) })));
    const rows = came.moves.map((move, i) => row(i + 1, move.move, move.advice, cents(move.regret)));
    const lost = came.moves.reduce((so_far, move) => so_far + (move.regret ?? 0), 0);
    rows.push(row("all", "", "", cents(lost)));
    const heads = make("tr", {}, ...["move", "you", "in theory", "could have gained"].map((head) => make("th", { textContent: head, scope: "col" })));
    const caption = "By another move, as the theory of the game has it";
    const table = make("table", {}, make("caption", { textContent: caption }), make("thead", {}, heads), make("tbody", {}, ...rows));
    parts.push(make("h2", { textContent: "Your moves" }), make("div", { className: "wide", tabIndex: 0 }, table));
  }
  parts.push(make("p", { className: "note", textContent: "You can close this page." }));
  at("results").replaceChildren(...parts);
  at("results").hidden = !lines.length;
  scrollTo(0, 0);
}

let ticking = 0;
function clock(seconds) {
  clearInterval(ticking);
  at("left").hidden = seconds == null;
  if (seconds == null) return;
  const end = performance.now() + 1000 * seconds;
  const tick = () => (at("left").textContent = `${Math.max(0, Math.ceil((end - performance.now()) / 1000))} seconds left; then the game's own move is played for you`);
  tick();
  ticking = setInterval(tick, 500);
}

let looking = 0;
async function look() {
  const mine = ++looking;
  const [status, now] = await ask("/sees");
  if (status === 200 && mine === looking) show(now);
}

// -- staying in touch: the socket only says "look" ---------------------------------------------------

let socket = null, pause = 500, alive = 0;
function connect() {
  if (seen.state === "over" || (socket && socket.readyState < 2)) return;
  socket = new WebSocket(`ws://${location.host}${here}/live`);
  socket.onmessage = (message) => {
    [pause, alive] = [500, performance.now()];
    at("connection").textContent = "";
    if (JSON.parse(message.data).look !== seen.number) look().catch(() => {});
  };
  socket.onclose = () => {
    if (seen.state === "over") return;
    delete seen.number; // a server that was started again counts from 0
    at("connection").textContent = "connection lost, trying again";
    setTimeout(connect, (pause = Math.min(2 * pause, 10000)));
  };
}
setInterval(() => { if (socket?.readyState === 1 && performance.now() - alive > 25000) socket.close(); }, 5000);
function again() {
  if (seen.state !== "over") look().catch(() => {});
  connect();
}
addEventListener("online", again);
document.addEventListener("visibilitychange", again);
again();
