// What all parts of the page share: the data, elements, numbers as people read them, and canvases.

const data = JSON.parse(document.getElementById("data").textContent);
// Samples of threads in each part of the time, by what they did; null where calls were recorded.
const { sampled } = data;
const byId = (id) => document.getElementById(id);

// Makes an element. What it holds are elements and texts: a text is never taken for HTML.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(2).filter((child) => child !== null));
  return element;
}

// Nanoseconds, as the other reports write them.
function time(ns) {
  const cut = (value, digits) => {
    const factor = 10 ** digits;
    return (Math.floor(value * factor + 1e-6) / factor).toFixed(digits);
  };
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${cut(ns / 1e3, 2)} µs`;
  if (ns < 1e9) return `${cut(ns / 1e6, 2)} ms`;
  return `${cut(ns / 1e9, 3)} s`;
}

// A moment, to the microsecond: what comes close together is told apart.
const moment = (ns) => `${(ns / 1e9).toFixed(6)} s`;

// Bytes in the unit in which they are a short number.
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${at === 0 ? bytes : (Math.floor(10 * bytes / 1024 ** at) / 10).toFixed(1)} ${units[at]}`;
}

// A whole number, in groups of three digits.
const count = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const percent = (part, all) => (all > 0 ? `${(100 * part / all).toFixed(1)} %` : "0 %");
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

// Differences become numbers again.
function sums(differences) {
  const numbers = new Float64Array(differences.length);
  let sum = 0;
  for (let at = 0; at < numbers.length; at++) numbers[at] = sum += differences[at];
  return numbers;
}

// The first of sorted numbers that is not below a value.
function lowerBound(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const text = (index) => data.texts[index] ?? "?";
const processes = data.processes;
const processCount = processes.id.length;
const processText = (at) => `${processes.id[at]} ${text(processes.name[at])}`.trim();

// A colour of the style, as it is now.
const colors = {
  known: new Map(),
  get(name) {
    if (!this.known.has(name)) {
      this.known.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    }
    return this.known.get(name);
  },
};

// How frames of native code look, by kind: as in other flame graphs.
const NATIVE = [
  null,
  { name: "native", text: "Native code on an ordinary scheduler", color: "#ffd21f", edge: "#5c4300", dashes: [] },
  { name: "dirty CPU", text: "Native code on a dirty CPU scheduler", color: "#ff8c28", edge: "#6b2500", dashes: [6, 3] },
  { name: "dirty I/O", text: "Native code on a dirty I/O scheduler", color: "#40cdeb", edge: "#003f52", dashes: [6, 3] },
];

// The legend of the kinds that there are. Samples do not tell which kind of scheduler a function is for.
function nativeLegend() {
  if (sampled !== null) NATIVE[1].text = "Native function";
  const kinds = [1, 2, 3].filter((kind) => data.flame.native.includes(kind));
  if (kinds.length === 0) return [];
  return [make("div", { class: "legend" }, kinds.map((kind) => {
    const { color, edge, dashes, text: name } = NATIVE[kind];
    const patch = make("i", {});
    patch.style.background = color;
    patch.style.outline = `1px ${dashes.length > 0 ? "dashed" : "solid"} ${edge}`;
    return make("span", {}, patch, name);
  }))];
}

// Everything that draws, so that all is drawn again when the window or the colours change.
const drawings = [];
let drawingIsAsked = false;
function drawAll() {
  if (drawingIsAsked) return;
  drawingIsAsked = true;
  requestAnimationFrame(() => {
    drawingIsAsked = false;
    for (const drawing of drawings) drawing();
  });
}

// A canvas in a part that is scrolled: it stays where it is, and draws what is at the place scrolled to.
// `height` is that of all there is; `draw` is given the context, the width and height seen, and the place.
function makeView(label, height, draw) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const space = make("div", { class: "space" });
  const view = make("div", { class: "view", tabindex: "0", role: "application", "aria-label": label }, canvas, space);
  const context = canvas.getContext("2d");
  let isAsked = false;
  const now = () => {
    isAsked = false;
    const width = view.clientWidth;
    if (width === 0) return;
    const all = height(width);
    const seen = Math.max(60, Math.min(all, Math.round(Math.min(innerHeight * 0.76, 960)) - 2));
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(seen * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(seen * ratio);
      canvas.style.height = `${seen}px`;
    }
    space.style.height = `${Math.max(0, all - seen)}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, seen);
    draw(context, width, seen, view.scrollTop);
  };
  const redraw = () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(now);
  };
  view.addEventListener("scroll", redraw);
  view.addEventListener("focus", redraw);
  view.addEventListener("blur", redraw);
  drawings.push(now);
  return { element: view, redraw, width: () => view.clientWidth, isFocused: () => document.activeElement === view };
}

const fonts = { small: "10.5px system-ui, 'DejaVu Sans', Verdana, sans-serif", text: "12px system-ui, 'DejaVu Sans', Verdana, sans-serif", code: "12px ui-monospace, 'DejaVu Sans Mono', monospace" };

// As much of a text as has room, with the mark of what was cut.
function fit(context, words, room) {
  if (room < 12) return "";
  if (context.measureText(words).width <= room) return words;
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${words.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? `${words.slice(0, low)}…` : "";
}

// As much of a function's name as has room: its module goes before the function does.
function fitName(context, name, room) {
  if (room < 12 || context.measureText(name).width <= room) return fit(context, name, room);
  return fit(context, shortName(name), room);
}

const cutName = (name, most) => {
  const short = name.length > most ? shortName(name) : name;
  return short.length > most ? `${short.slice(0, most - 1)}…` : short;
};

// A table; columns are the name, how to show a row (as text or an element), and "number" or "name" for what it is. Where
// there is no room for columns beside each other, the style shows a row as lines, each with the name of its column.
function makeTable(caption, columns, rows) {
  const head = columns.map(([name, , kind]) => make("th", { scope: "col", class: kind || null }, name));
  const body = rows.map((row) => makeRow(columns, row));
  const table = make("table", { "aria-label": caption }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
  return make("div", { class: "wide" }, table);
}

const makeRow = (columns, row) =>
  make("tr", {}, columns.map(([name, show, kind]) => make("td", { class: kind || null, "data-label": name }, show(row))));

// A bar that shows a share.
function makeBar(part, all) {
  const fill = make("i", {});
  fill.style.width = `${Math.min(100, 100 * part / Math.max(all, 1))}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, fill);
}

const LIST_ROWS = 100;

// A table that is sorted by the column whose head is chosen, and filtered by words: `columns` are as those of a table, with what
// they are sorted by. It shows the first rows, and more when asked. `fill` gives it other rows.
function makeList(id, caption, columns, words, sorted) {
  const state = { rows: [], column: sorted, isUp: false, most: LIST_ROWS };
  const filter = make("input", { type: "search", id: `${id}-filter`, autocomplete: "off", spellcheck: "false" });
  const found = make("span", { class: "faint", "aria-live": "polite" });
  const tbody = make("tbody");
  const more = make("button", { type: "button", onclick: () => { state.most += 10 * LIST_ROWS; show(); } }, "Show more");
  const heads = columns.map(([name, , kind], at) => make("th", { scope: "col", class: kind || null },
    make("button", { type: "button", onclick: () => sort(at, state.column === at ? !state.isUp : kind === "name") }, name)));

  function sort(column, isUp) {
    [state.column, state.isUp] = [column, isUp];
    link.set(`${id}-sort`, column === sorted && !isUp ? "" : `${isUp ? "-" : ""}${column + 1}`);
    show();
  }

  function show() {
    const wanted = filter.value.trim().toLowerCase();
    const key = columns[state.column][3];
    const sign = state.isUp ? 1 : -1;
    const rows = state.rows.filter((row) => wanted === "" || words(row).toLowerCase().includes(wanted)).map((row) => [key(row), row]);
    rows.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    found.textContent = rows.length === state.rows.length ? `${count(rows.length)}` : `${count(rows.length)} of ${count(state.rows.length)}`;
    heads.forEach((head, at) => head.setAttribute("aria-sort", at !== state.column ? "none" : state.isUp ? "ascending" : "descending"));
    tbody.replaceChildren(...rows.slice(0, state.most).map(([, row]) => makeRow(columns, row)));
    more.hidden = rows.length <= state.most;
  }

  filter.addEventListener("input", () => { link.set(`${id}-filter`, filter.value); show(); });
  link.follow(() => {
    filter.value = link.get(`${id}-filter`) ?? "";
    const column = Number(link.get(`${id}-sort`) ?? sorted + 1);
    const isKnown = Number.isInteger(column) && Math.abs(column) >= 1 && Math.abs(column) <= columns.length;
    [state.column, state.isUp] = isKnown ? [Math.abs(column) - 1, column < 0] : [sorted, false];
    show();
  });
  const sorting = make("select", { onchange: (event) => sort(Number(event.target.value), columns[event.target.value][2] === "name") },
    columns.map(([name], at) => make("option", { value: String(at), selected: at === sorted }, name)));
  const table = make("table", { "aria-label": caption }, make("thead", {}, make("tr", {}, heads)), tbody);
  const element = make("div", {},
    make("div", { class: "tools" }, make("label", {}, "Filter ", filter), found, make("label", { class: "narrow-only" }, "Order ", sorting)),
    make("div", { class: "wide" }, table), more);
  return { element, fill: (rows) => { state.rows = rows; show(); } };
}

// The steps of a scale: round numbers of which few fit.
function steps(from, to, most) {
  const raw = (to - from) / Math.max(1, most);
  const decade = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * decade).find((candidate) => candidate >= raw) || decade * 10;
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return { all, step };
}

// A time on a scale, with as many digits as the step has.
function scaleTime(ns, step) {
  const [unit, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${count(ns / unit)} ${name}`;
}

// A polite voice for who does not see the canvas; what it says stands below it for all.
const makeDetail = () => make("div", { class: "detail", "aria-live": "polite" });
const say = (detail, parts) => detail.replaceChildren(...parts);
