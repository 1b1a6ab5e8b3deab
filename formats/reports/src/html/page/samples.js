// Recordings of samples: what shares of them are worth, and the parts that show threads and processes. A sample says what a
// thread did at a moment; nobody has counted calls.

// Colours of what threads do, in its order.
const DOES = [
  { name: "Erlang code", color: "slice" },
  { name: "native functions", color: "process" },
  { name: "collections", color: "minor" },
  { name: "the runtime itself", color: "dirty-wait" },
];

// In 95 of 100 runs the true share is no farther away than this: half of Wilson's interval.
function plusMinus(part, all) {
  const [z, n] = [1.96, Math.max(all, 1)];
  const share = part / n;
  return z / (1 + z * z / n) * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
}

const shareText = (part, all) => `${(100 * part / Math.max(all, 1)).toFixed(1)} ± ${(100 * plusMinus(part, all)).toFixed(1)} %`;

// A share as a bar and as text.
const shareBar = (part, all) => make("span", {}, makeBar(part, all), ` ${shareText(part, all)}`);

const sumOf = (parts, from, to) => {
  let sum = 0;
  for (let at = from; at < Math.min(to, parts.length); at++) sum += parts[at];
  return sum;
};

// What each thread did in the stretch, and all together.
function threadSums() {
  const { from, to } = shown;
  const threads = sampled.threads.map((thread) => {
    const does = thread.does.map((parts) => sumOf(parts, from, to));
    return { thread, does, samples: does.reduce((sum, number) => sum + number, 0) };
  });
  const all = threads.reduce((sum, { samples }) => sum + samples, 0);
  return { threads, all };
}

// Of each process its samples in the stretch, and the function that was the newest of its stacks most often.
function processSums() {
  const own = pathCosts().own[0];
  const sums_ = Array.from({ length: processCount }, () => ({ samples: 0, of: -1, most: 0 }));
  const functions = new Map();
  for (let path = 0; path < flame.of.length; path++) {
    if (own[path] === 0) continue;
    const process = flame.process[path];
    const key = process * flame.function.length + flame.of[path];
    functions.set(key, (functions.get(key) ?? 0) + own[path]);
    const sum = sums_[process];
    sum.samples += own[path];
    if (functions.get(key) > sum.most) [sum.of, sum.most] = [flame.of[path], functions.get(key)];
  }
  return sums_;
}

// Parts of the time that are drawn together, so that each has some samples.
const GROUPED = sampled === null ? 1 : Math.min(PARTS, Math.max(1, Math.ceil(5 * sampled.period_ns / data.part_ns)));

// Numbers of samples by part as shares of the time of each group of parts.
function sharesOfTime(parts, threads) {
  const shares = new Float64Array(PARTS);
  for (let from = 0; from < PARTS; from += GROUPED) {
    const to = Math.min(PARTS, from + GROUPED);
    const ns = sumOf(parts, from, to) * sampled.period_ns;
    shares.fill(Math.min(1, ns / ((to - from) * data.part_ns * threads)), from, to);
  }
  return shares;
}

// How busy the ordinary schedulers were together, in each part.
function busySchedulers() {
  const schedulers = sampled.threads.filter(({ is_scheduler: is }) => is);
  const all = new Float64Array(PARTS);
  for (const { does } of schedulers) {
    for (const parts of does) parts.forEach((number, at) => { all[at] += number; });
  }
  return sharesOfTime(all, Math.max(1, schedulers.length));
}

function sampledFacts() {
  const { summary } = data;
  const { host } = summary;
  const of = sampled.of_running ? "threads that ran" : "all threads, also of those that slept";
  const rows = [
    ["Sampled", new Date(data.unix_ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC"],
    ["Machine", `${host.name}, ${host.system}, ${plural(host.cores, "processor", "processors")} (${host.processor})`],
    ["OTP", summary.otp],
    ["Length", time(data.end_ns - data.since_ns)],
    ["Samples", `${count(sampled.samples)}, at ${count(sampled.rate_hz)} Hz of ${of} (${sampled.means}); ${count(sampled.lost)} lost`],
    ...(sampled.stopped === "" ? [] : [["Stops", `To look at them, ${sampled.stopped}.`]]),
  ];
  return make("dl", { class: "facts" }, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

const SHARES = "Shares are percent of all samples that are shown; ± is the 95 % error bar. Nobody counted calls.";

// A table with a title, or nothing.
function titled(title, columns, rows) {
  if (rows.length === 0) return null;
  return make("div", {}, make("h3", {}, title), makeTable(title, columns, rows));
}

// The functions that were seen most often, themselves or with what they called.
function sampledFunctions(title, kind, all) {
  const costs = functionCosts();
  const key = costs[kind][0];
  const rows = [...key.keys()].filter((of) => key[of] > 0 && isFunctionShown(of)).sort((a, b) => key[b] - key[a] || a - b);
  const table = titled(title, [
    ["Own", (of) => shareText(costs.own[0][of], all), "number"],
    ["With callees", (of) => shareText(costs.total[0][of], all), "number"],
    ["Samples", (of) => count(key[of]), "number"],
    ["Function", functionButton, "name"],
  ], rows.slice(0, OVERVIEW_ROWS));
  const others = costs.own[0].reduce((sum, own, of) => sum + (isFunctionShown(of) ? 0 : own), 0);
  if (table !== null && kind === "own" && others > 0) {
    table.append(make("p", { class: "faint" }, `Functions of libraries have ${shareText(others, all)}: without “My code”, they are in the table.`));
  }
  return table;
}

const processButton = (process) => make("button", { type: "button", onclick: () => go.process(process) }, processText(process));

function makeSampledOverview() {
  const tables = make("div", { class: "tables" });
  function fill() {
    const { threads, all } = threadSums();
    const [from, to] = shownSpan();
    const does = sampled.does.map((about, at) => ({ about, samples: threads.reduce((sum, thread) => sum + thread.does[at], 0) }));
    const busy = threads.filter(({ samples }) => samples > 0).sort((a, b) => b.samples - a.samples);
    const processes_ = processSums().map((sum, process) => ({ ...sum, process })).filter(({ samples }) => samples > 0);
    const ofTime = (samples) => percent(Math.min(samples * sampled.period_ns, to - from), to - from);
    tables.replaceChildren(...[
      sampledFunctions("Functions, by own share", "own", all),
      sampledFunctions("Functions, by share with callees", "total", all),
      titled("What threads did", [
        ["Share", (row) => shareBar(row.samples, all), "share"],
        ["Samples", (row) => count(row.samples), "number"],
        ["What", (row) => row.about, "name"],
      ], does.filter(({ samples }) => samples > 0)),
      titled("Threads, as parts of the time", [
        ["Thread", ({ thread }) => thread.name],
        ["Erlang", (row) => ofTime(row.does[0]), "number"],
        ["Native", (row) => ofTime(row.does[1]), "number"],
        ["Collections", (row) => ofTime(row.does[2]), "number"],
        ["Runtime", (row) => ofTime(row.does[3]), "number"],
        ["Idle", (row) => percent(Math.max(0, to - from - row.samples * sampled.period_ns), to - from), "number"],
      ], busy.slice(0, OVERVIEW_ROWS)),
      titled("Processes", [
        ["Share", (row) => shareBar(row.samples, all), "share"],
        ["Process", (row) => processButton(row.process), "name"],
        ["Most often in", (row) => (row.of < 0 ? "" : functionButton(row.of)), "name"],
      ], processes_.sort((a, b) => b.samples - a.samples).slice(0, OVERVIEW_ROWS)),
    ].filter((table) => table !== null));
  }
  byId("overview-body").append(lossesBox(), sampledFacts(), make("p", { class: "faint" }, SHARES), tables);
  follow((what) => { if (what !== "mark") fill(); });
  fill();
}

function makeSampledProcesses() {
  let [sums_, all] = [[], 0];
  const samples = (at) => sums_[at].samples;
  const list = makeList("processes", "All processes", [
    ["Share", (at) => shareBar(samples(at), all), "share", samples],
    ["Samples", (at) => count(samples(at)), "number", samples],
    ["Process", processButton, "name", (at) => processText(at)],
    ["Most often in", (at) => (sums_[at].of < 0 ? "" : functionButton(sums_[at].of)), "name", (at) => functionText(sums_[at].of)],
  ], (at) => processText(at), 0);
  function fill() {
    [sums_, all] = [processSums(), threadSums().all];
    list.fill(Array.from({ length: processCount }, (_, at) => at).filter((at) => samples(at) > 0));
  }
  follow((what) => { if (what === "stretch") fill(); });
  byId("processes-body").append(make("p", { class: "faint" }, SHARES), list.element);
  fill();
}

// Of each process its samples in each part; of a function only those in which it was the newest.
function partsOfProcesses(function_) {
  const all = Array.from({ length: processCount }, () => null);
  for (let path = 0; path < flame.of.length; path++) {
    if (function_ >= 0 && flame.of[path] !== function_) continue;
    const parts = all[flame.process[path]] ??= new Float64Array(PARTS);
    eachCell(path, (cell) => addCell(parts, cell));
  }
  return all;
}

// The timeline of samples: a row for each thread, with what it did, and a row for each process.
function makeSampledTimeline() {
  const body = byId("timeline-body");
  const none = new Float64Array(PARTS);
  const parts = partsOfProcesses(-1);
  const threadShares = sampled.threads.map(({ does }) => does.map((numbers) => sharesOfTime(numbers, 1)));
  const processShares = parts.map((numbers) => sharesOfTime(numbers ?? none, 1));
  const state = { rows: [], row: 0, marked: [] };
  const detail = makeDetail();
  const filter = make("input", { type: "search", id: "process-search", autocomplete: "off", spellcheck: "false" });
  const found = make("span", { class: "faint", "aria-live": "polite" });
  const view = makeView("Timeline of samples. Up and down go from row to row.", () => AXIS + state.rows.length * LANE + 4, draw);

  function fillRows() {
    const words = filter.value.trim().toLowerCase();
    const { from, to } = shown;
    const rows = [];
    parts.forEach((numbers, process) => {
      if (numbers === null || words !== "" && !processText(process).toLowerCase().includes(words)) return;
      const samples = sumOf(numbers, from, to);
      if (samples > 0) rows.push({ process, samples });
    });
    rows.sort((a, b) => b.samples - a.samples || a.process - b.process);
    found.textContent = plural(rows.length, "process", "processes");
    state.rows = [...sampled.threads.map((_, thread) => ({ thread })), ...rows];
    state.row = Math.min(state.row, Math.max(0, state.rows.length - 1));
  }

  function draw(context, width, height, top) {
    const left = Math.min(230, Math.max(96, Math.round(width * 0.22)));
    const wide = (width - left) / (shown.to - shown.from);
    context.font = fonts.text;
    context.textBaseline = "middle";
    for (let at = Math.max(0, Math.floor(top / LANE)); at < state.rows.length; at++) {
      const y = AXIS + at * LANE - top;
      if (y > height) break;
      drawRow(context, at, y, { width, left, wide });
    }
    drawTimes(context, width, height, left);
  }

  function drawRow(context, at, y, where) {
    const { thread, process } = state.rows[at];
    const { width, left } = where;
    if (at === state.row) {
      context.fillStyle = colors.get("raised");
      context.fillRect(0, y, width, LANE);
    }
    context.fillStyle = colors.get(at === state.row ? "ink" : "faint");
    context.textAlign = "left";
    const name = thread === undefined ? processText(process) : sampled.threads[thread].name;
    context.fillText(fit(context, name, left - 12), 6, y + LANE / 2);
    if (thread === undefined) {
      stack(context, [processShares[process]], ["socket"], y, where);
      if (state.marked[process]) stack(context, [sharesOfTime(state.marked[process], 1)], ["found"], y, where);
    } else {
      stack(context, threadShares[thread], DOES.map(({ color }) => color), y, where);
    }
    if (at === state.row && view.isFocused()) {
      context.strokeStyle = colors.get("focus");
      context.lineWidth = 1;
      context.strokeRect(0.5, y + 0.5, width - 1, LANE - 1);
    }
  }

  // Shares of the time, one on the other.
  function stack(context, all, names, y, { left, wide }) {
    const floor = new Float64Array(PARTS);
    all.forEach((shares, at) => {
      context.fillStyle = colors.get(names[at]);
      for (let part = shown.from; part < shown.to; part++) {
        const share = Math.min(shares[part], 1 - floor[part]);
        if (share <= 0) continue;
        const tall = share * (LANE - 4);
        const x = left + (part - shown.from) * wide;
        context.fillRect(x, y + LANE - 2 - floor[part] * (LANE - 4) - tall, Math.max(wide, 0.5), tall);
        floor[part] += share;
      }
    });
  }

  function drawTimes(context, width, height, left) {
    const [from, to] = shownSpan();
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, AXIS);
    const { all, step } = steps(from, to, (width - left) / 95);
    context.fillStyle = colors.get("faint");
    for (const ns of all) {
      const x = left + (ns - from) / (to - from) * (width - left);
      context.globalAlpha = 0.25;
      context.fillRect(x, AXIS, 1, height);
      context.globalAlpha = 1;
      context.fillRect(x, AXIS - 5, 1, 5);
      const label = scaleTime(ns, step);
      if (x + context.measureText(label).width + 3 < width) context.fillText(label, x + 3, AXIS / 2 - 1);
    }
    context.fillText(fit(context, `${time(to - from)} shown`, left - 10), 6, AXIS / 2 - 1);
    context.fillRect(0, AXIS - 1, width, 1);
  }

  function describe(row) {
    if (row === undefined) return ["No process is like that."];
    const { threads, all } = threadSums();
    if (row.thread !== undefined) {
      const { does, samples } = threads[row.thread];
      const told = does.map((number, at) => [number, DOES[at].name]).filter(([number]) => number > 0)
        .map(([number, name]) => `${name} ${shareText(number, samples)}`);
      return [make("b", {}, sampled.threads[row.thread].name), `: ${plural(samples, "sample", "samples")}`, told.length > 0 ? `; of these ${told.join(", ")}` : ""];
    }
    const { of } = processSums()[row.process];
    return [make("b", {}, processText(row.process)), `: ${plural(row.samples, "sample", "samples")}, ${shareText(row.samples, all)} of all`,
      ...(of < 0 ? [] : ["; most often in ", functionButton(of)])];
  }

  function show() {
    say(detail, describe(state.rows[state.row]));
    view.redraw();
  }

  function selectRow(at) {
    state.row = Math.min(Math.max(at, 0), state.rows.length - 1);
    const y = state.row * LANE;
    const { element } = view;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + AXIS + LANE > element.scrollTop + element.clientHeight) element.scrollTop = y + AXIS + LANE - element.clientHeight + 4;
    show();
  }

  view.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.element.clientHeight / LANE) - 2);
    const to = { ArrowUp: state.row - 1, ArrowDown: state.row + 1, PageUp: state.row - page, PageDown: state.row + page, Home: 0, End: state.rows.length - 1 }[event.key];
    if (to === undefined) return;
    selectRow(to);
    event.preventDefault();
  });
  view.element.addEventListener("click", (event) => {
    const box = view.element.querySelector("canvas").getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - AXIS + view.element.scrollTop) / LANE);
    if (row >= 0 && row < state.rows.length) selectRow(row);
  });
  filter.addEventListener("input", () => { fillRows(); show(); });
  go.process = (process) => {
    showTab("timeline");
    filter.value = "";
    fillRows();
    const row = state.rows.findIndex((one) => one.process === process);
    if (row >= 0) selectRow(row);
    view.element.focus();
  };
  go.timeline = () => {
    showTab("timeline");
    view.element.focus();
  };
  const legend = [...DOES, { name: "samples of a process", color: "socket" }, { name: "the marked function itself", color: "found" }];
  body.append(
    make("p", { class: "faint" }, `A bar is as high as the part of the time in which the thread or process was seen to run${GROUPED > 1 ? `, in steps of ${time(GROUPED * data.part_ns)}` : ""}.`),
    make("div", { class: "tools" }, make("label", {}, "Processes ", filter), found),
    make("div", { class: "legend" }, legend.map(({ name, color }) => {
      const patch = make("i", {});
      patch.style.background = `var(--${color})`;
      return make("span", {}, patch, name);
    })), view.element, detail);
  follow((what) => {
    if (what === "mark") state.marked = shown.marked < 0 ? [] : partsOfProcesses(shown.marked);
    else fillRows();
    show();
  });
  state.marked = shown.marked < 0 ? [] : partsOfProcesses(shown.marked);
  fillRows();
  show();
}
