// What a page can do once it is shown: live parts, filters without a reload, keys.
// No text of a model ever becomes markup here: parts come from the server's templates, which
// escape all text, and are read by the browser as a document in which no script runs.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const connection = document.getElementById("connection");

// -- parts that are put in place of older ones ---------------------------------------------------

/** Read a page of ours as a document; rejected where the server cannot be reached. */
function read(address) {
  return new Promise((found, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => (request.response ? found(request) : failed(request.status));
    request.onerror = () => failed(0);
    request.send();
  });
}

/**
 * Put the parts of a page (`data-part`, each with an id) in place of those here; keep the focus,
 * the marks, and of a page that is `read again` what is being typed.
 */
function put(page, again = false) {
  const focus = document.activeElement?.id;
  const marked = new Set(all("[name=compare]:checked").map((one) => one.value));
  const typed = all("[data-part] input[type=number]").filter((one) => again && one.value !== one.defaultValue);
  const open = new Set(all("details[open][id]").map((one) => one.id));
  for (const part of all("[data-part]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh) continue;
    all("details[id]", fresh).forEach((one) => (one.open = one.open || open.has(one.id)));
    all("[name=compare]", fresh).forEach((one) => (one.checked = marked.has(one.value)));
    for (const one of typed) {
      const field = page.getElementById(one.id);
      if (field) field.value = one.value;
    }
    if (fresh.dataset.src && !part.dataset.src) part.dataset.src = fresh.dataset.src; // it is full
    else if (!fresh.isEqualNode(part)) part.replaceWith(document.adoptNode(fresh));
  }
  if (focus && document.activeElement?.id !== focus) document.getElementById(focus)?.focus();
  marks();
}

let reading = 0;

/** Go to an address by its parts; without a server as a link does. */
async function go(address, remember = true) {
  const mine = ++reading, search = document.getElementById("text"), typed = search?.value;
  try {
    const request = await read(address);
    if (mine !== reading) return; // a later one is under way
    if (!all("[data-part]", request.response).length) throw new Error("another kind of page");
    put(request.response);
    if (search && search.value === typed) search.value = request.response.getElementById("text").value;
    document.title = request.response.title;
    if (remember) history.pushState(null, "", address);
    load();
  } catch {
    if (remember) location.assign(address);
  }
}

/** Fill the parts that take longer than their page: each is in the page of `data-src`. */
async function load() {
  for (const part of all("[data-src]")) {
    const address = part.dataset.src;
    delete part.dataset.src;
    try {
      const page = (await read(address)).response;
      if (page.getElementById(part.id)) put(page);
      else part.replaceChildren(...page.getElementById("main").childNodes); // why there is none
    } catch {
      part.textContent = "The server cannot be reached.";
    }
  }
}

// -- what grows ----------------------------------------------------------------------------------

const QUIET = 25000; // the server says something every 10 s

/** Follow a run: the server says that there is more, and the page reads its parts again. */
function follow(address) {
  const url = new URL(address, location.href);
  let number = Number(url.searchParams.get("after")), wait = 500, watch, socket, again;
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const lost = () => {
    clearTimeout(watch);
    clearTimeout(again);
    socket = null;
    connection.textContent = "connection lost";
    again = setTimeout(open, wait);
    wait = Math.min(2 * wait, 10000);
  };
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => socket?.close(), QUIET);
  };
  function open() {
    clearTimeout(again);
    url.searchParams.set("after", number);
    const mine = (socket = new WebSocket(url));
    mine.onopen = () => { wait = 500; connection.textContent = ""; alive(); };
    mine.onclose = () => mine === socket && lost();
    mine.onmessage = ({ data }) => {
      alive();
      const said = JSON.parse(data);
      if (said.number === undefined || said.number === number) return;
      number = said.number;
      refresh();
    };
  }
  const now = () => document.visibilityState === "visible" && !socket && open();
  addEventListener("online", now);
  document.addEventListener("visibilitychange", now);
  open();
}

let pending = false, due = false, pressed = false;

// What is pressed stays until it is let go: a click on what was replaced meanwhile is none.
addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel", "dragend"])
  addEventListener(end, () => setTimeout(() => (pressed = false)), true);
const pause = (wait) => new Promise((done) => setTimeout(done, wait));

/** Read the page's parts again; what comes in meanwhile is read once, after it. */
async function refresh() {
  if (pending) { due = true; return; }
  pending = true;
  do {
    due = false;
    const mine = reading;
    try {
      const request = await read(location.href);
      for (let n = 0; pressed && n < 40; n++) await pause(50);
      if (mine === reading) { put(request.response, true); await load(); }
    } catch { /* the socket says that the connection is lost */ }
    await pause(500);
  } while (due);
  pending = false;
}

// -- filters -------------------------------------------------------------------------------------

/** Return the address that a form leads to, without what is empty. */
function address(form) {
  const pairs = [...new FormData(form)].filter(([name, value]) => value && name !== "compare");
  const query = new URLSearchParams(pairs).toString();
  return form.getAttribute("action") + (query && `?${query}`);
}

document.addEventListener("submit", (event) => {
  if (event.submitter?.matches("[data-two]")) {
    const [a, b] = all("[name=compare]:checked").map((mark) => mark.value);
    event.preventDefault();
    if (b) location.assign(`/compare?${new URLSearchParams({ a, b })}`);
  } else if (event.target.matches("form[data-filters]")) {
    event.preventDefault();
    go(address(event.target));
  }
});
document.addEventListener("change", ({ target }) => {
  if (target.matches("[name=compare]")) marks();
  else if (target.form?.matches("[data-filters]")) target.form.requestSubmit();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-go]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.href).then(() => scrollTo(0, 0));
});
addEventListener("popstate", () => all("[data-part]").length && go(location.href, false));

/** Two marked decisions can be compared. */
function marks() {
  const many = all("[name=compare]:checked").length;
  for (const button of all("[data-two]")) button.disabled = many !== 2;
}

if (innerWidth < 860) for (const fold of all("details.folds")) fold.open = false;
marks();
load();
if (document.body.dataset.live) follow(document.body.dataset.live);
