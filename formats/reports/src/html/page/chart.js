// The call chart: the calls of one process in order of time, each below its caller.

const CALL = 20;

// How deep each call of a process is: in how many others it is.
function depths(all) {
  const { calls } = data;
  const sorted = [...all].sort((a, b) => calls.at[a] - calls.at[b] || calls.ns[b] - calls.ns[a] || a - b);
  const open = [];
  let deepest = 0;
  const depth = sorted.map((at) => {
    const end = calls.at[at] + calls.ns[at];
    while (open.length > 0 && open.at(-1) < end) open.pop();
    open.push(end);
    deepest = Math.max(deepest, open.length);
    return open.length - 1;
  });
  return { sorted, depth, deepest };
}

function makeChart() {
  const body = byId("chart-body");
  const { calls } = data;
  if (!hasPaths || calls.at.length === 0) {
    body.append(make("p", { class: "faint" }, calls.missing || "No call has ended."));
    return;
  }
  const all = byProcess(calls.process);
  const times = all.map((list) => list.reduce((sum, at) => sum + calls.own[at], 0));
  const order = all.map((_, process) => process).filter((process) => all[process].length > 0).sort((a, b) => times[b] - times[a] || a - b);
  const state = { process: order[0], lay: depths(all[order[0]]), from: 0, to: 1, at: -1, drawn: [] };
  [state.from, state.to] = shownSpan();
  const colorOf = new Map(flame.function.map((name, of) => [name, flame.color[of]]));
  const nativeOf = new Map(flame.function.map((name, of) => [name, flame.native[of]]));
  const select = make("select", { id: "chart-process" }, order.slice(0, 500).map((process) => make("option", { value: String(process) }, processText(process))));
  const detail = makeDetail();
  const view = makeView("Call chart. Left and right go from call to call, up and down to the caller and to what is called, plus and minus zoom, Enter zooms to the call, Escape shows the stretch.",
    () => AXIS + state.lay.deepest * CALL + 4, draw);

  const nameOf = (at) => text(calls.function[at]);
  const endOf = (at) => calls.at[at] + calls.ns[at];

  function draw(context, width, height, top) {
    const scale = width / (state.to - state.from);
    const x = (ns) => (ns - state.from) * scale;
    context.font = fonts.code;
    context.textBaseline = "middle";
    state.drawn = [];
    const lastX = [];
    state.lay.sorted.forEach((at, index) => {
      const depth = state.lay.depth[index];
      const [from, to] = [Math.max(0, x(calls.at[at])), Math.min(width, x(endOf(at)))];
      const y = AXIS + depth * CALL - top;
      if (to < 0 || from > width || y < -CALL || y > height || to < from) return;
      // Of those that share a pixel one is enough.
      if (to - from < 0.7 && from < (lastX[depth] ?? -1)) return;
      lastX[depth] = from + 0.7;
      paint(context, at, from, y, Math.max(to - from, 0.7));
      state.drawn.push([index, from, y, to - from]);
    });
    drawTop(context, width, height, x);
  }

  function paint(context, at, from, y, wide) {
    const isMarked = shown.marked >= 0 && flame.function[shown.marked] === calls.function[at];
    const isFaint = shown.marked >= 0 && !isMarked;
    context.globalAlpha = isFaint ? 0.45 : 1;
    context.fillStyle = isMarked ? colors.get("found") : colorOf.get(calls.function[at]) ?? "#c9c7bf";
    context.fillRect(from, y, wide - (wide > 3 ? 0.6 : 0), CALL - 1);
    const native = NATIVE[nativeOf.get(calls.function[at]) ?? 0];
    if (native && wide > 4) {
      context.lineWidth = 1;
      context.strokeStyle = native.edge;
      context.setLineDash(native.dashes);
      context.strokeRect(from + 0.5, y + 0.5, wide - 1.6, CALL - 2);
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
    if (wide > 26) {
      const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
      context.fillStyle = isFaint ? colors.get("ink") : isMarked && !isDark ? "#ffffff" : "#111111";
      context.textAlign = "left";
      context.fillText(fitName(context, nameOf(at), wide - 8), from + 4, y + CALL / 2);
    }
    if (at === state.at) {
      context.strokeStyle = colors.get("ink");
      context.lineWidth = view.isFocused() ? 3 : 1.5;
      context.strokeRect(from + 1, y + 1, Math.max(wide - 2, 2), CALL - 3);
    }
  }

  function drawTop(context, width, height, x) {
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, AXIS);
    context.font = fonts.text;
    context.textAlign = "left";
    context.fillStyle = colors.get("faint");
    const { all: ticks, step } = steps(state.from, state.to, width / 95);
    for (const ns of ticks) {
      context.globalAlpha = 0.25;
      context.fillRect(x(ns), AXIS, 1, height);
      context.globalAlpha = 1;
      context.fillRect(x(ns), AXIS - 5, 1, 5);
      const label = scaleTime(ns, step);
      if (x(ns) + context.measureText(label).width + 3 < width) context.fillText(label, x(ns) + 3, AXIS / 2 - 1);
    }
    context.fillRect(0, AXIS - 1, width, 1);
  }

  function show() {
    if (state.at < 0) {
      say(detail, [make("b", {}, processText(state.process)), `: ${plural(state.lay.sorted.length, "call", "calls")}`]);
    } else {
      const { at } = state;
      const of = functionOf.get(calls.function[at]);
      const words = calls.words.length > 0 ? `, ${count(calls.words[at])} words` : "";
      say(detail, [make("b", {}, nameOf(at)), `: called at ${moment(calls.at[at])}, ${time(calls.ns[at])}; own ${time(calls.own[at])}${words} `,
        ...(of === undefined ? [] : [make("button", { type: "button", onclick: () => go.function(of) }, "Callers and callees")])]);
    }
    view.redraw();
  }

  function setSpan(from, to) {
    const [first, last] = [data.since_ns, Math.max(data.end_ns, data.since_ns + 1)];
    const length = Math.min(Math.max(to - from, 20), last - first);
    state.from = Math.min(Math.max(from, first), last - length);
    state.to = state.from + length;
    view.redraw();
  }

  function zoom(factor, around) {
    const isSeen = state.at >= 0 && endOf(state.at) >= state.from && calls.at[state.at] <= state.to;
    const middle = around ?? (isSeen ? (Math.max(calls.at[state.at], state.from) + Math.min(endOf(state.at), state.to)) / 2 : (state.from + state.to) / 2);
    const share = (middle - state.from) / (state.to - state.from);
    const length = (state.to - state.from) * factor;
    setSpan(middle - share * length, middle + (1 - share) * length);
  }

  function choose(index) {
    if (index < 0) return;
    const at = state.at = state.lay.sorted[index];
    if (endOf(at) < state.from || calls.at[at] > state.to) {
      const length = state.to - state.from;
      setSpan(calls.at[at] - length / 2, calls.at[at] + length / 2);
    }
    const y = state.lay.depth[index] * CALL;
    const { element } = view;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + AXIS + CALL > element.scrollTop + element.clientHeight) element.scrollTop = y + AXIS + CALL - element.clientHeight + 4;
    show();
  }

  // The next call in a direction that is as deep, or one deeper or less deep; of those within the call if it is deeper.
  function next(step, deeper) {
    const { sorted, depth } = state.lay;
    const now = sorted.indexOf(state.at);
    if (now < 0) return sorted.findIndex((at) => endOf(at) >= state.from);
    for (let index = now + step; index >= 0 && index < sorted.length; index += step) {
      if (deeper > 0 && depth[index] <= depth[now]) return -1;
      if (depth[index] === depth[now] + deeper) return index;
    }
    return -1;
  }

  const move = (share) => setSpan(state.from + (state.to - state.from) * share, state.to + (state.to - state.from) * share);
  view.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => choose(next(-1, 0)),
      ArrowRight: () => choose(next(1, 0)),
      ArrowUp: () => choose(next(-1, -1)),
      ArrowDown: () => choose(next(1, 1)),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      a: () => move(-0.4),
      d: () => move(0.4),
      c: () => state.at >= 0 && go.function(functionOf.get(calls.function[state.at]) ?? -1),
      Enter: () => state.at >= 0 && setSpan(calls.at[state.at], endOf(state.at)),
      Escape: () => setSpan(...shownSpan()),
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });
  view.element.addEventListener("click", (event) => {
    const box = view.element.querySelector("canvas").getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hit = state.drawn.find(([, left, up, wide]) => x >= left - 1 && x < left + Math.max(wide, 2) && y >= up && y < up + CALL);
    if (!hit) return;
    const isAgain = state.lay.sorted[hit[0]] === state.at;
    choose(hit[0]);
    if (isAgain) setSpan(calls.at[state.at], endOf(state.at));
  });
  view.element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    const box = view.element.getBoundingClientRect();
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, state.from + (event.clientX - box.left) / box.width * (state.to - state.from));
    event.preventDefault();
  }, { passive: false });

  function choosePeer(process) {
    [state.process, state.lay, state.at] = [process, depths(all[process]), -1];
    select.value = String(process);
    view.element.scrollTop = 0;
    show();
  }

  const button = (name, act) => make("button", { type: "button", onclick: act }, name);
  select.addEventListener("change", () => {
    choosePeer(Number(select.value));
    link.set("chart", state.process === order[0] ? "" : processes.id[state.process]);
  });
  follow((what) => {
    if (what === "stretch") setSpan(...shownSpan());
    view.redraw();
  });
  body.append(make("div", { class: "tools" }, make("label", {}, "Process ", select),
    button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)), button("Stretch", () => setSpan(...shownSpan()))), view.element, detail);
  if (calls.left > 0) body.append(make("p", { class: "warning" }, `Left out, so that the page stays small: ${plural(calls.left, "call", "calls")} of at most ${time(calls.left_ns)}. They are drawn as part of their callers.`));
  link.follow(() => {
    const process = processes.id.indexOf(link.get("chart") ?? "");
    choosePeer(process >= 0 && all[process].length > 0 ? process : order[0]);
  });
}
