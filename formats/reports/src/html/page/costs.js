// What the page shows of the recording: a stretch of the time, with or without boot; and what call paths and functions
// cost in that.

const PARTS = data.schedulers[0]?.use_ns.length ?? 240;
const { flame } = data;
const cells = flame.cells;
const hasPaths = flame.missing === "" && flame.widths.length > 0;

// Functions by their name, and the other way round.
const functionText = (of) => (of < 0 ? "all" : text(flame.function[of]));
const functionOf = new Map(flame.function.map((name, of) => [name, of]));
// `from` and `to` are parts of the time. `marked` is the function whose calls are shown everywhere, or -1.
const shown = { from: 0, to: PARTS, isWithoutBoot: false, isOwnOnly: false, marked: -1, followers: [] };
const partNs = (part) => Math.min(data.since_ns + part * data.part_ns, Math.max(data.end_ns, data.since_ns + 1));
const isAllShown = () => shown.from === 0 && shown.to === PARTS;
const shownSpan = () => [partNs(shown.from), partNs(shown.to)];
const isInShown = (start, end) => isAllShown() || end >= partNs(shown.from) && start < partNs(shown.to);

// Those that have to know when something else is shown.
function follow(act) {
  shown.followers.push(act);
}

function changed(what) {
  if (what !== "mark") known.sums = known.functions = null;
  for (const act of shown.followers) act(what);
}

// Shows a stretch: whole parts of the time, and where parts are counted together, all of those.
function showStretch(from, to) {
  const { factor } = cells.factor > 0 ? cells : { factor: 1 };
  const begin = Math.max(0, Math.min(PARTS - factor, Math.floor(from / factor) * factor));
  const end = Math.min(PARTS, Math.max(begin + factor, Math.ceil(to / factor) * factor));
  if (begin === shown.from && end === shown.to) return;
  [shown.from, shown.to] = [begin, end];
  link.set("from", isAllShown() ? "" : begin);
  link.set("to", isAllShown() ? "" : end);
  changed("stretch");
}

function showBoot(isWithoutBoot) {
  if (shown.isWithoutBoot === isWithoutBoot) return;
  shown.isWithoutBoot = isWithoutBoot;
  link.set("boot", hasBoot && !isWithoutBoot ? "shown" : "");
  changed("boot");
}

// Lists have the program's own functions only, or all.
function showOwn(isOwnOnly) {
  if (shown.isOwnOnly === isOwnOnly) return;
  shown.isOwnOnly = isOwnOnly;
  link.set("functions", hasOthers && !isOwnOnly ? "all" : "");
  changed("own");
}

function mark(of) {
  if (shown.marked === of) return;
  shown.marked = of;
  link.set("function", of < 0 ? "" : functionText(of));
  changed("mark");
}

// What was summed up for what is shown now.
const known = { sums: null, functions: null, begin: null };

// Where the cells of each path begin.
function cellBegins() {
  if (known.begin === null) {
    known.begin = new Uint32Array(flame.of.length + 1);
    for (let path = 0; path < flame.of.length; path++) known.begin[path + 1] = known.begin[path] + cells.own[path] + cells.below[path];
  }
  return known.begin;
}

// Does something for each cell of a path: with its number, and whether it is of what is left out below the path.
function eachCell(path, act) {
  const begin = cellBegins();
  for (let cell = begin[path]; cell < begin[path + 1]; cell++) act(cell, cell >= begin[path] + cells.own[path]);
}

// Of each width the own and total costs of all paths, in the stretch.
function pathCosts() {
  if (known.sums !== null) return known.sums;
  known.sums = isAllShown() ? { own: flame.widths.map(({ own }) => own), total: flame.widths.map(({ total }) => total) } : sumCells();
  if (shown.isWithoutBoot) known.sums.total = known.sums.total.map(withoutBoot);
  return known.sums;
}

// Totals without those of paths that are hidden.
function withoutBoot(totals) {
  const hidden = new Float64Array(totals.length);
  for (let path = totals.length - 1; path >= 0; path--) {
    if (isBoot[path]) hidden[path] = totals[path];
    const above = flame.parent[path] - 1;
    if (above >= 0) hidden[above] += hidden[path];
  }
  return Float64Array.from(totals, (total, path) => total - hidden[path]);
}

function sumCells() {
  const number = flame.of.length;
  const widths = flame.widths.map(() => [new Float64Array(number), new Float64Array(number)]);
  const [from, to] = [shown.from / cells.factor, shown.to / cells.factor];
  for (let path = number - 1; path >= 0; path--) {
    eachCell(path, (cell, isBelow) => {
      if (cells.part[cell] < from || cells.part[cell] >= to) return;
      widths.forEach(([own, total], width) => {
        if (!isBelow) own[path] += cells.costs[width][cell];
        total[path] += cells.costs[width][cell];
      });
    });
    const above = flame.parent[path] - 1;
    for (const [own, total] of widths) {
      // Words that were given back do not make a cost less than none.
      own[path] = Math.max(0, own[path]);
      total[path] = Math.max(own[path], total[path]);
      if (above >= 0) total[above] += total[path];
    }
  }
  return { own: widths.map(([own]) => own), total: widths.map(([, total]) => total) };
}

// Boot: what processes do that call none of the program's functions, and what others did before they called one.
// Of each process the first part of the time in which one of the program's functions cost something.
const firstOwnPart = new Map();
// Samples begin when somebody begins to look: nothing of them is boot.
const isBoot = hasPaths && sampled === null ? findBoot() : new Uint8Array(0);
const hasBoot = isBoot.includes(1) && isBoot.includes(0);
const hasOthers = hasPaths && flame.is_app.includes(1) && flame.is_app.includes(0);
// What the program does is shown at first.
shown.isWithoutBoot = hasBoot;
shown.isOwnOnly = hasOthers;
const isFunctionShown = (of) => !shown.isOwnOnly || flame.is_app[of] === 1;
// Whether what a process did until then is left out as boot.
const isBootUntil = (process, end) => shown.isWithoutBoot && end <= partNs(firstOwnPart.get(process) ?? PARTS);

function findBoot() {
  const number = flame.of.length;
  const last = new Int32Array(number).fill(-1);
  const isApp = new Uint8Array(number);
  for (let path = 0; path < number; path++) {
    const above = flame.parent[path] - 1;
    isApp[path] = flame.is_app[flame.of[path]] || (above >= 0 && isApp[above]) ? 1 : 0;
    eachCell(path, (cell) => {
      last[path] = Math.max(last[path], cells.part[cell]);
      if (isApp[path]) firstOwnPart.set(flame.process[path], Math.min(firstOwnPart.get(flame.process[path]) ?? Infinity, cells.part[cell]));
    });
  }
  const boot = new Uint8Array(number);
  // What is called comes after its caller.
  for (let path = number - 1; path >= 0; path--) {
    boot[path] = !isApp[path] && last[path] < (firstOwnPart.get(flame.process[path]) ?? Infinity) ? 1 : 0;
    const above = flame.parent[path] - 1;
    if (above < 0) continue;
    last[above] = Math.max(last[above], last[path]);
    if (isApp[path]) isApp[above] = 1;
  }
  return boot;
}

const isPathShown = (path) => !(shown.isWithoutBoot && isBoot[path]);

// Of each path, whether its function is on it once only: it is no part of another call of that function.
const isOutermost = hasPaths ? findOutermost() : new Uint8Array(0);

function findOutermost() {
  const isAbove = (path) => {
    const of = flame.of[path];
    for (let at = flame.parent[path] - 1; at >= 0; at = flame.parent[at] - 1) {
      if (flame.of[at] === of) return true;
    }
    return false;
  };
  return Uint8Array.from(flame.of, (_, path) => (isAbove(path) ? 0 : 1));
}

// The same of functions: with callees, a path counts once, however often the function is on it.
function functionCosts() {
  if (known.functions !== null) return known.functions;
  if (isAllShown() && !shown.isWithoutBoot) {
    known.functions = { own: flame.costs.map(({ own }) => own), total: flame.costs.map(({ total }) => total) };
    return known.functions;
  }
  const costs = pathCosts();
  const sum = (of, isMeant) => flame.widths.map((_, width) => {
    const sums_ = new Float64Array(flame.function.length);
    for (let path = 0; path < flame.of.length; path++) {
      if (isPathShown(path) && isMeant(path)) sums_[flame.of[path]] += of[width][path];
    }
    return sums_;
  });
  known.functions = { own: sum(costs.own, () => true), total: sum(costs.total, (path) => isOutermost[path]) };
  return known.functions;
}

// What all paths cost together.
function allCosts(width) {
  const { total } = pathCosts();
  let sum = 0;
  for (let path = 0; path < flame.of.length; path++) {
    if (flame.parent[path] === 0 && isPathShown(path)) sum += total[width][path];
  }
  return sum;
}

// Adds a cell's cost of the first width to the parts of the time that are in it.
function addCell(all, cell) {
  for (let at = 0; at < cells.factor; at++) {
    const part = cells.part[cell] * cells.factor + at;
    if (part < PARTS) all[part] += cells.costs[0][cell] / cells.factor;
  }
}

// In each part of the time what a function cost itself, of the first width; of -1 all functions together.
function overTime(of) {
  const all = new Float64Array(PARTS);
  if (!hasPaths) return all;
  for (let path = 0; path < flame.of.length; path++) {
    if (of >= 0 && flame.of[path] !== of) continue;
    eachCell(path, (cell) => addCell(all, cell));
  }
  return all;
}

const widthNames = { samples: "samples", time: "time", calls: "calls", words: "words", reductions: "reductions", wait: "time of waiting", dirty_wait: "waiting for dirty schedulers" };
const widthUnits = { samples: ["sample", "samples"], calls: ["call", "calls"], words: ["word", "words"], reductions: ["reduction", "reductions"] };
const widthAt = (name) => flame.widths.findIndex((width) => width.name === name);

// A cost with its unit.
function costText(width, number) {
  const { is_time: isTime, name } = flame.widths[width];
  return isTime ? time(number) : plural(number, ...widthUnits[name]);
}
