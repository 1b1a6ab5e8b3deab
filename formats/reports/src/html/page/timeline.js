// The timeline: a row for each process, with its time slices, collections and single events.

const AXIS = 24;
const LANE = 22;

const GROUPS = { slice: "time slice", dirty: "call on a dirty scheduler", "dirty-wait": "waiting for a dirty scheduler", found: "marked function", minor: "minor collection", major: "major collection", system: "system event", process: "event of a process", port: "event of a port", socket: "waiting for a socket, and its events" };
const markColor = (group) => ({ system: "system", ports: "port", net: "socket", gc: "major" })[group] || "process";

// The numbers of all things of each process, in order of time.
function byProcess(column) {
  const all = Array.from({ length: processCount }, () => []);
  column.forEach((process, at) => all[process].push(at));
  return all;
}

function makeTimeline() {
  const body = byId("timeline-body");
  const { slices, dirty, collections, waits, marks } = data;
  const notes = [slices.missing, collections.missing].filter((note) => note !== "");
  if (processCount === 0 || slices.at.length + collections.at.length + waits.at.length + marks.time.length === 0) {
    body.append(make("p", { class: "faint" }, notes[0] || "There is nothing in the recording that has a place in time."));
    return;
  }
  const { calls } = data;
  const of = { call: hasPaths ? byProcess(calls.process) : [], slice: byProcess(slices.process), dirty: byProcess(dirty.process), collection: byProcess(collections.process), wait: byProcess(waits.process), mark: byProcess(marks.process) };
  // Each call on a dirty scheduler is a wait and a run.
  const dirtyWaits = { at: dirty.at, ns: dirty.wait };
  const dirtyRuns = { at: dirty.at.map((at, call) => at + dirty.wait[call]), ns: dirty.ns.map((ns, call) => ns - dirty.wait[call]) };
  const first = Math.min(data.since_ns, data.end_ns);
  const last = Math.max(data.end_ns, first + 1);
  const state = { from: first, to: last, rows: [], row: 0, item: null, filter: "", orderBefore: "", order: slices.missing === "" ? "busy" : "first" };

  const view = makeView("Timeline. Up and down go from row to row, left and right from event to event, plus and minus zoom, Escape shows all.",
    () => AXIS + state.rows.length * LANE + 4, draw);
  const detail = makeDetail();
  const filter = make("input", { type: "search", id: "process-search", autocomplete: "off", spellcheck: "false" });
  const order = make("select", {}, [["busy", "time running"], ["first", "first seen"], ["gc", "time of collections"], ...(waits.at.length > 0 ? [["socket", "time waiting for sockets"]] : []), ["name", "name"], ["marked", "time in the marked function"]]
    .map(([value, name]) => make("option", { value, selected: value === state.order }, name)));
  const found = make("span", { class: "faint", "aria-live": "polite" });

  // What the rows are sorted by. Times are those within the chosen stretch, as far as the page keeps what took them.
  function keysOfRows() {
    const [from, to] = shownSpan();
    const isWhole = isAllShown();
    const within = (list, { at, ns }) => list.reduce((sum, one) => sum + Math.max(0, Math.min(at[one] + ns[one], to) - Math.max(at[one], from)), 0);
    return {
      first: (process) => Math.min(
        slices.at[of.slice[process][0]] ?? Infinity, collections.at[of.collection[process][0]] ?? Infinity,
        waits.at[of.wait[process][0]] ?? Infinity, marks.time[of.mark[process][0]] ?? Infinity, processes.born_ns[process] ?? Infinity),
      busy: (process) => -(isWhole ? processes.busy_ns[process] : within(of.slice[process], slices)) - within(of.dirty[process], dirtyRuns),
      socket: (process) => -within(of.wait[process], waits),
      gc: (process) => -(isWhole ? processes.gc_ns[process] : within(of.collection[process], collections)),
      marked: (process) => -within(markedOf(process), calls),
      name: () => 0,
    };
  }

  // Where a function is marked, the processes that called it come first.
  function followMark() {
    const isMarked = shown.marked >= 0 && hasPaths;
    order.querySelector("[value=marked]").hidden = !isMarked;
    if (isMarked !== (state.order === "marked")) {
      [state.order, state.orderBefore] = isMarked ? ["marked", state.order] : [state.orderBefore, ""];
    }
    order.value = state.order;
    fillRows();
  }

  // Schedulers, then the processes that are looked for.
  function fillRows() {
    const schedulers = data.schedulers.map((scheduler, at) => ({ scheduler: at }))
      .filter(({ scheduler }) => data.schedulers[scheduler].use_ns.some((ns) => ns > 0));
    const words = state.filter.toLowerCase();
    const keys = keysOfRows();
    const rows = [];
    for (let process = 0; process < processCount; process++) {
      if (of.slice[process].length + of.dirty[process].length + of.collection[process].length + of.wait[process].length + of.mark[process].length === 0) continue;
      if (words !== "" && !processText(process).toLowerCase().includes(words)) continue;
      rows.push({ process, key: keys[state.order](process), busy: keys.busy(process), name: text(processes.name[process]) });
    }
    rows.sort((a, b) => (state.order === "name" ? (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) : a.key - b.key || a.busy - b.busy) || a.process - b.process);
    found.textContent = plural(rows.length, "process", "processes");
    state.rows = [...schedulers, ...rows];
    state.row = Math.min(schedulers.length, Math.max(0, state.rows.length - 1));
    state.item = null;
  }

  const gutter = (width) => Math.min(230, Math.max(96, Math.round(width * 0.22)));

  function draw(context, width, height, top) {
    const left = gutter(width);
    const scale = (width - left) / (state.to - state.from);
    const x = (ns) => left + (ns - state.from) * scale;
    context.font = fonts.text;
    context.textBaseline = "middle";
    const firstRow = Math.max(0, Math.floor(top / LANE));
    for (let at = firstRow; at < state.rows.length; at++) {
      const y = AXIS + at * LANE - top;
      if (y > height) break;
      drawRow(context, state.rows[at], at, y, { width, left, scale, x });
    }
    drawAxis(context, width, height, left, x);
    drawStretch(context, width, left, x);
  }

  // A bar on the axis shows the stretch of the whole page.
  function drawStretch(context, width, left, x) {
    if (isAllShown()) return;
    const [from, to] = shownSpan().map((ns) => Math.min(width, Math.max(left, x(ns))));
    context.fillStyle = colors.get("accent");
    context.fillRect(from, AXIS - 3, Math.max(to - from, 1), 3);
  }

  function drawRow(context, row, at, y, where) {
    const { width, left } = where;
    if (at === state.row) {
      context.fillStyle = colors.get("raised");
      context.fillRect(0, y, width, LANE);
    }
    context.fillStyle = colors.get(at === state.row ? "ink" : "faint");
    const name = row.process === undefined ? data.schedulers[row.scheduler].name : processText(row.process);
    context.fillText(fit(context, name, left - 12), 6, y + LANE / 2);
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, LANE);
    context.clip();
    if (row.process === undefined) drawUse(context, row.scheduler, y, where);
    else drawProcess(context, row.process, y, where);
    context.restore();
    if (at === state.row && view.isFocused()) {
      context.strokeStyle = colors.get("focus");
      context.lineWidth = 1;
      context.strokeRect(0.5, y + 0.5, width - 1, LANE - 1);
    }
  }

  function drawUse(context, scheduler, y, { x }) {
    const { use_ns: parts } = data.schedulers[scheduler];
    const part = (last - first) / parts.length;
    context.fillStyle = colors.get("slice");
    parts.forEach((busy, at) => {
      const from = x(first + at * part);
      const tall = Math.min(1, busy / part) * (LANE - 4);
      context.fillRect(from, y + LANE - 2 - tall, Math.max(x(first + (at + 1) * part) - from, 0.5), tall);
    });
  }

  function drawProcess(context, process, y, where) {
    const { x, left, width } = where;
    const born = processes.born_ns[process] ?? first;
    const ended = processes.ended_ns[process] ?? last;
    context.fillStyle = colors.get("line");
    context.fillRect(x(born), y + LANE / 2 - 0.5, Math.max(x(ended) - x(born), 1), 1);
    spans(context, of.wait[process], waits, () => "socket", y + 9, LANE - 17, where);
    spans(context, of.slice[process], slices, () => "slice", y + 4, LANE - 8, where);
    spans(context, of.dirty[process], dirtyWaits, () => "dirty-wait", y + 9, LANE - 17, where);
    spans(context, of.dirty[process], dirtyRuns, () => "dirty", y + 6, LANE - 12, where);
    if (shown.marked >= 0 && hasPaths) {
      const list_ = markedOf(process);
      spans(context, list_, calls, () => "found", y + LANE - 8, 6, where);
    }
    spans(context, of.collection[process], collections, (at) => (collections.major[at] ? "major" : "minor"), y + 8, LANE - 9, where);
    const list = of.mark[process];
    let lastX = -9;
    let lastGroup = "";
    for (let index = lowerIndex(list, marks.time, state.from); index < list.length; index++) {
      const at = list[index];
      if (marks.time[at] > state.to) break;
      const px = x(marks.time[at]);
      const group = markColor(marks.group[at]);
      if (px - lastX < 1 && group === lastGroup) continue;
      [lastX, lastGroup] = [px, group];
      context.fillStyle = colors.get(group);
      context.beginPath();
      context.moveTo(px - 4, y + 1);
      context.lineTo(px + 4, y + 1);
      context.lineTo(px, y + 9);
      context.fill();
      context.fillRect(px - 0.5, y + 1, 1, LANE - 3);
    }
    const { item } = state;
    if (item && item.process === process) {
      const from = x(item.start);
      const wide = Math.max((item.end - item.start) * where.scale, 3);
      context.strokeStyle = colors.get("ink");
      context.lineWidth = 2;
      context.strokeRect(Math.max(from - 1, left - 4), y + 2, Math.min(wide + 2, width - left + 8), LANE - 4);
    }
  }

  // The calls of the marked function that a process made and the page keeps. Of calls within each other the first is enough.
  function markedOf(process) {
    if (state.markedOf !== shown.marked) [state.markedOf, state.marked] = [shown.marked, new Map()];
    if (!state.marked.has(process)) {
      let end = -1;
      const name = flame.function[shown.marked];
      state.marked.set(process, of.call[process].filter((at) => {
        if (calls.function[at] !== name || calls.at[at] + calls.ns[at] <= end) return false;
        end = calls.at[at] + calls.ns[at];
        return true;
      }));
    }
    return state.marked.get(process);
  }

  // The first of a list of numbers whose time is not before a time.
  function lowerIndex(list, times, ns) {
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[list[middle]] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Things that last. Of those that are narrower than a pixel, the colour says how much of the pixel they take.
  function spans(context, list, column, color, y, tall, { scale, x }) {
    let pixel = -1;
    let taken = 0;
    let pixelColor = "";
    const flush = () => {
      if (taken > 0) {
        context.globalAlpha = Math.min(1, 0.3 + 0.7 * taken);
        context.fillStyle = colors.get(pixelColor);
        context.fillRect(pixel, y, 1, tall);
        context.globalAlpha = 1;
      }
      taken = 0;
    };
    for (let index = Math.max(0, lowerIndex(list, column.at, state.from) - 1); index < list.length; index++) {
      const at = list[index];
      const start = column.at[at];
      if (start > state.to) break;
      const wide = column.ns[at] * scale;
      if (start + column.ns[at] < state.from) continue;
      const px = x(start);
      if (wide >= 1.5) {
        flush();
        context.fillStyle = colors.get(color(at));
        context.fillRect(px, y, wide - (wide > 4 ? 0.5 : 0), tall);
      } else {
        if (Math.floor(px) !== pixel || color(at) !== pixelColor) {
          flush();
          [pixel, pixelColor] = [Math.floor(px), color(at)];
        }
        taken += Math.max(wide, 0.02);
      }
    }
    flush();
  }

  function drawAxis(context, width, height, left, x) {
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, AXIS);
    const { all, step } = steps(state.from, state.to, (width - left) / 95);
    context.fillStyle = colors.get("faint");
    context.textAlign = "left";
    for (const ns of all) {
      const px = x(ns);
      context.globalAlpha = 0.25;
      context.fillRect(px, AXIS, 1, height);
      context.globalAlpha = 1;
      context.fillRect(px, AXIS - 5, 1, 5);
      const label = scaleTime(ns, step);
      if (px + context.measureText(label).width + 3 < width) context.fillText(label, px + 3, AXIS / 2 - 1);
    }
    const shown = time(state.to - state.from);
    const words = [`${shown} shown`, shown].find((words_) => context.measureText(words_).width <= left - 10);
    context.fillText(words ?? fit(context, shown, left - 10), 6, AXIS / 2 - 1);
    context.fillRect(0, AXIS - 1, width, 1);
  }

  // Everything in a row, in order of time.
  function items(row) {
    if (row === undefined || row.process === undefined) return [];
    if (row.items && row.itemsOf === shown.marked) return row.items;
    row.itemsOf = shown.marked;
    const { process } = row;
    const spansOf = (list, column, kind) => list.map((at) => ({ process, kind, at, start: column.at[at], end: column.at[at] + column.ns[at] }));
    row.items = [
      ...spansOf(of.slice[process], slices, "slice"),
      ...spansOf(of.dirty[process], dirty, "dirty"),
      ...spansOf(of.collection[process], collections, "collection"),
      ...spansOf(of.wait[process], waits, "wait"),
      ...(shown.marked >= 0 && hasPaths ? spansOf(markedOf(process), calls, "call") : []),
      ...of.mark[process].map((at) => ({ process, kind: "mark", at, start: marks.time[at], end: marks.time[at] })),
    ].sort((a, b) => a.start - b.start || b.end - a.end);
    return row.items;
  }

  function describe(item) {
    const { kind, at } = item;
    const when = `at ${moment(item.start)}`;
    if (kind === "slice") {
      return [make("b", {}, "Time slice"), ` ${when}, ${time(slices.ns[at])}, on ${data.schedulers[slices.scheduler[at]].name}; from ${text(slices.from[at])} to ${text(slices.to[at])}`];
    }
    if (kind === "dirty") {
      const ran = dirty.ns[at] - dirty.wait[at];
      return [make("b", {}, text(dirty.function[at])), ` ${when}: waited ${time(dirty.wait[at])} for a dirty scheduler, and ran ${time(ran)} on it (${text(dirty.scheduler[at])})`];
    }
    if (kind === "call") {
      return [make("b", {}, "Call"), ` of ${text(calls.function[at])} ${when}, ${time(calls.ns[at])}; own ${time(calls.own[at])}`];
    }
    if (kind === "collection") {
      return [make("b", {}, collections.major[at] ? "Major collection" : "Minor collection"),
        ` ${when}, ${time(collections.ns[at])}; ${count(collections.reclaimed[at])} words given back, ${count(collections.used[at])} in use after it`];
    }
    if (kind === "wait") {
      const outcome = text(waits.outcome[at]);
      return [make("b", {}, `Waits ${text(waits.what[at])}`), ` ${when}, ${time(waits.ns[at])}; ${text(waits.socket[at])}${outcome === "" ? "" : `: ${outcome}`}`];
    }
    return [make("b", {}, text(marks.kind[at])), ` ${when} ${text(marks.text[at])}`];
  }

  function describeRow(row) {
    if (row === undefined) return ["No process is like that."];
    if (row.process === undefined) {
      const { name, use_ns: parts } = data.schedulers[row.scheduler];
      const busy = parts.reduce((sum, ns) => sum + ns, 0);
      return [make("b", {}, name), ` ran processes for ${time(busy)}, ${percent(busy, last - first)} of the time`];
    }
    const { process } = row;
    const parts = [make("b", {}, processText(process))];
    if (processes.parent[process] !== "") parts.push(`, made by ${processes.parent[process]}`);
    if (processes.born_ns[process] !== null) parts.push(` at ${moment(processes.born_ns[process])}`);
    if (processes.ended_ns[process] !== null) parts.push(`, ended at ${moment(processes.ended_ns[process])}: ${text(processes.reason[process])}`);
    if (slices.missing === "") parts.push(`; ${plural(processes.slices[process], "time slice", "time slices")}, ${time(processes.busy_ns[process])}`);
    if (collections.missing === "") parts.push(`; ${plural(processes.collections[process], "collection", "collections")}, ${time(processes.gc_ns[process])}`);
    if (data.messages.missing === "") parts.push(`; ${count(processes.sent[process])} messages sent, ${count(processes.received[process])} received`);
    return parts;
  }

  function show() {
    const row = state.rows[state.row];
    const lines = [make("div", {}, describeRow(row))];
    if (state.item) lines.push(make("div", {}, describe(state.item)));
    say(detail, lines);
    view.redraw();
  }

  function setSpan(from, to) {
    const length = Math.min(Math.max(to - from, 20), last - first);
    state.from = Math.min(Math.max(from, first), last - length);
    state.to = state.from + length;
    view.redraw();
  }

  // In or out around what is chosen, or a place.
  function zoom(factor, around) {
    const { item } = state;
    const visible = item && item.end >= state.from && item.start <= state.to;
    const middle = around ?? (visible ? (item.start + item.end) / 2 : (state.from + state.to) / 2);
    const length = (state.to - state.from) * factor;
    const share = (middle - state.from) / (state.to - state.from);
    setSpan(middle - share * length, middle + (1 - share) * length);
  }

  function move(share) {
    const by = (state.to - state.from) * share;
    setSpan(state.from + by, state.to + by);
  }

  // The stretch of the whole page becomes what is shown here.
  function select() {
    const part = (ns) => (ns - data.since_ns) / data.part_ns;
    state.isSelecting = true;
    showStretch(part(state.from), part(state.to));
    state.isSelecting = false;
  }

  function selectRow(at) {
    state.row = Math.min(Math.max(at, 0), state.rows.length - 1);
    state.item = null;
    const y = state.row * LANE;
    const { element } = view;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + AXIS + LANE > element.scrollTop + element.clientHeight) element.scrollTop = y + AXIS + LANE - element.clientHeight + 4;
    show();
  }

  function selectItem(item) {
    state.item = item;
    const length = state.to - state.from;
    if (item.start > state.to || item.end < state.from) setSpan(item.start - length / 2, item.start + length / 2);
    show();
  }

  function step(by) {
    const all = items(state.rows[state.row]);
    if (all.length === 0) return;
    let at = state.item ? all.indexOf(state.item) + by : all.findIndex((item) => item.end >= state.from);
    if (at < 0) at = state.item ? 0 : all.length - 1;
    selectItem(all[Math.min(at, all.length - 1)]);
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.element.clientHeight / LANE) - 2);
    const act = {
      ArrowUp: () => selectRow(state.row - 1),
      ArrowDown: () => selectRow(state.row + 1),
      PageUp: () => selectRow(state.row - page),
      PageDown: () => selectRow(state.row + page),
      Home: () => selectRow(0),
      End: () => selectRow(state.rows.length - 1),
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      a: () => move(-0.4),
      d: () => move(0.4),
      s: select,
      Enter: () => {
        const { item } = state;
        if (!item) return;
        // Of what takes no time, what is near it is of interest.
        const around = item.kind === "mark" ? 10e3 : 2 * (item.end - item.start + 50);
        setSpan(item.start - around, item.end + around);
      },
      Escape: () => setSpan(first, last),
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }

  const place = (event) => {
    const box = view.element.querySelector("canvas").getBoundingClientRect();
    const left = gutter(view.width());
    const ns = state.from + (event.clientX - box.left - left) / (view.width() - left) * (state.to - state.from);
    const row = Math.floor((event.clientY - box.top - AXIS + view.element.scrollTop) / LANE);
    return { ns, row, isName: event.clientX - box.left < left };
  };

  function pick(event) {
    const { ns, row, isName } = place(event);
    if (row < 0 || row >= state.rows.length) return;
    state.row = row;
    // The shortest of what is there: collections are within time slices.
    const near = 4 * (state.to - state.from) / view.width();
    const here = items(state.rows[row]).filter((item) => item.start - near <= ns && item.end + near >= ns);
    here.sort((a, b) => (a.end - a.start) - (b.end - b.start) || Math.abs(a.start - ns) - Math.abs(b.start - ns));
    state.item = isName ? null : here[0] || null;
    show();
  }

  let drag = null;
  view.element.addEventListener("keydown", key);
  view.element.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, from: state.from, to: state.to, moved: false }; });
  view.element.addEventListener("pointermove", (event) => {
    if (!drag || event.buttons === 0) return;
    if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    const by = (drag.x - event.clientX) / (view.width() - gutter(view.width())) * (drag.to - drag.from);
    setSpan(drag.from + by, drag.to + by);
  });
  addEventListener("pointerup", (event) => {
    if (drag && !drag.moved && view.element.contains(event.target)) pick(event);
    drag = null;
  });
  view.element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, place(event).ns);
    event.preventDefault();
  }, { passive: false });
  filter.addEventListener("input", () => { state.filter = filter.value.trim(); fillRows(); show(); });
  order.addEventListener("change", () => { state.order = order.value; fillRows(); show(); });
  const rowOf = (id) => {
    if (filter.value !== "" && !state.rows.some(({ process }) => processes.id[process] === id)) {
      filter.value = state.filter = "";
      fillRows();
    }
    return state.rows.findIndex(({ process }) => process !== undefined && processes.id[process] === id);
  };
  go.place = (id, at, length) => {
    showTab("timeline");
    const row = rowOf(id);
    if (row < 0) return;
    selectRow(row);
    const half = Math.max(2 * length, (last - first) / 400);
    setSpan(at - half, at + length + half);
    const item = items(state.rows[row]).find((candidate) => candidate.start === at);
    if (item) selectItem(item);
    view.element.focus();
  };
  go.process = (process) => {
    showTab("timeline");
    const row = rowOf(processes.id[process]);
    if (row >= 0) selectRow(row);
    view.element.focus();
  };
  // To the first call of the marked function in the stretch, in the process with most of them.
  go.timeline = () => {
    showTab("timeline");
    const numbers = state.rows.map(({ process }) => (process === undefined ? 0 : markedOf(process).length));
    const row = numbers.indexOf(Math.max(...numbers));
    if (row < 0 || numbers[row] === 0) return view.element.focus();
    selectRow(row);
    const calls_ = items(state.rows[row]).filter(({ kind }) => kind === "call");
    const call = calls_.find(({ start, end }) => isInShown(start, end));
    if (call) selectItem(call);
    view.element.focus();
  };

  const button = (name, act) => make("button", { type: "button", onclick: act }, name);
  const used = (name) => ({
    slice: slices.at.length > 0,
    dirty: dirty.at.length > 0,
    "dirty-wait": dirty.wait.some((ns) => ns > 0),
    found: hasPaths,
    minor: collections.at.length > 0,
    major: collections.at.length > 0,
    system: marks.group.includes("system"),
    process: marks.group.includes("processes"),
    port: marks.group.includes("ports"),
    socket: waits.at.length > 0 || marks.group.includes("net"),
  })[name];
  const legend = make("div", { class: "legend" }, Object.entries(GROUPS).filter(([name]) => used(name)).map(([name, title]) => {
    const patch = make("i", {});
    patch.style.background = `var(--${name})`;
    return make("span", {}, patch, title);
  }));
  body.append(...notes.map((note) => make("p", { class: "faint" }, note)),
    make("div", { class: "tools" },
      make("label", {}, "Processes ", filter), found,
      make("label", {}, "Order ", order),
      button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)), button("All", () => setSpan(first, last)),
      button("Use as stretch", select)),
    legend, view.element, detail);
  const left = [];
  if (slices.left > 0) left.push(`${plural(slices.left, "time slice", "time slices")} of at most ${time(slices.left_ns)}`);
  if (dirty.left > 0) left.push(`${plural(dirty.left, "call on a dirty scheduler", "calls on dirty schedulers")} of at most ${time(dirty.left_ns)}`);
  if (collections.left > 0) left.push(`${plural(collections.left, "collection", "collections")} of at most ${time(collections.left_ns)}`);
  if (waits.left > 0) left.push(`${plural(waits.left, "wait for a socket", "waits for sockets")} of at most ${time(waits.left_ns)}`);
  if (marks.left > 0) left.push(`the oldest ${plural(marks.left, "single event", "single events")}`);
  if (left.length > 0) body.append(make("p", { class: "warning" }, `Left out, so that the page stays small: ${left.join("; ")}. The sums of processes and schedulers count them.`));
  if (hasPaths && calls.left > 0) body.append(make("p", { class: "faint" }, `Of a marked function the longest calls are shown here, and all that it cost in the strip above: ${plural(calls.left, "call", "calls")} of at most ${time(calls.left_ns)} are not on the page.`));
  follow((what) => {
    if (what === "stretch") {
      if (!state.isSelecting) setSpan(...shownSpan());
      fillRows();
    }
    if (what === "mark") followMark();
    show();
  });
  followMark();
  if (!isAllShown()) setSpan(...shownSpan());
  show();
}
