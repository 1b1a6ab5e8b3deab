// The flame graph: who is called stands below the caller, or above, as in the SVG; inverted, who calls.

// A frame has its name, and its costs under it.
const ROW = 31;

// Frames that are narrower, in pixels, are not drawn.
const NARROW = 0.4;

// What is less than this share of all is not opened in an inverted graph: it would have as many frames as all paths
// together have functions.
const NOT_OPENED = 0.0005;

// An empty tree of frames; the frame 0 is below all.
function newTree() {
  const { length: widths } = flame.widths;
  const zero = () => Array.from({ length: widths }, () => [0]);
  return { of: [-1], parent: [-1], depth: [0], children: [[]], own: zero(), total: zero(), processes: [new Set()], left: 0 };
}

function addFrame(tree, of, parent) {
  const node = tree.of.length;
  tree.of.push(of);
  tree.parent.push(parent);
  tree.depth.push(tree.depth[parent] + 1);
  tree.children.push([]);
  tree.processes.push(new Set());
  tree.children[parent].push(node);
  for (const sums_ of [...tree.own, ...tree.total]) sums_.push(0);
  return node;
}

// The call paths of a process, or of all: paths of the same functions are one.
function makeTree(process) {
  const costs = pathCosts();
  const tree = newTree();
  const place = new Int32Array(flame.of.length).fill(-1);
  const made = new Map();
  for (let at = 0; at < flame.of.length; at++) {
    if (process >= 0 && flame.process[at] !== process || !isPathShown(at)) continue;
    const above = flame.parent[at] === 0 ? 0 : place[flame.parent[at] - 1];
    const key = above * flame.function.length + flame.of[at];
    let node = made.get(key);
    if (node === undefined) {
      node = addFrame(tree, flame.of[at], above);
      made.set(key, node);
    }
    place[at] = node;
    tree.processes[node].add(flame.process[at]);
    for (let width = 0; width < flame.widths.length; width++) {
      tree.own[width][node] += costs.own[width][at];
      tree.total[width][node] += costs.total[width][at];
      if (above === 0) tree.total[width][0] += costs.total[width][at];
    }
  }
  return tree;
}

// The inverted graph: what costs stands beside the frame 0, and on it who called it. What a frame has of the total is
// what the function below all others cost itself, called on this way.
function makeInverted(process, width) {
  const costs = pathCosts();
  const tree = newTree();
  const { length: widths } = flame.widths;
  // Of a frame, the paths that cost something and the callers that they have come to.
  let open = [[0, []]];
  for (let at = 0; at < flame.of.length; at++) {
    if (process >= 0 && flame.process[at] !== process || !isPathShown(at) || costs.own[width][at] <= 0) continue;
    open[0][1].push([at, at]);
    for (let each = 0; each < widths; each++) tree.total[each][0] += costs.own[each][at];
  }
  const least = tree.total[width][0] * NOT_OPENED;
  while (open.length > 0) {
    const next = [];
    for (const [parent, all] of open) {
      const made = new Map();
      for (const [path, at] of all) {
        const of = flame.of[at];
        if (!made.has(of)) made.set(of, [addFrame(tree, of, parent), []]);
        const [node, above] = made.get(of);
        tree.processes[node].add(flame.process[path]);
        for (let each = 0; each < widths; each++) {
          tree.total[each][node] += costs.own[each][path];
          if (parent === 0) tree.own[each][node] += costs.own[each][path];
        }
        if (flame.parent[at] > 0) above.push([path, flame.parent[at] - 1]);
      }
      for (const [node, above] of made.values()) {
        if (above.length === 0) continue;
        if (tree.total[width][node] >= least) next.push([node, above]);
        else tree.left++;
      }
    }
    open = next;
  }
  return tree;
}

// Where each frame begins, the widest first.
function layOut(tree, width) {
  const total = tree.total[width];
  const begin = new Float64Array(total.length);
  // Parents come before what they call.
  for (let node = 0; node < total.length; node++) {
    tree.children[node].sort((a, b) => total[b] - total[a] || a - b);
    let at = begin[node];
    for (const child of tree.children[node]) {
      begin[child] = at;
      at += total[child];
    }
  }
  return { begin, deepest: 0, deepestOf: "" };
}

function makeFlame() {
  const body = byId("flame-body");
  if (!hasPaths) {
    body.append(make("p", { class: "faint" }, flame.missing || "No call has returned or taken any time."));
    return;
  }
  const state = { process: -1, width: 0, isInverted: false, isUp: false, tree: null, lay: null, zoom: 0, at: 0, found: null, drawn: [] };
  const value = (number) => costText(state.width, number);

  const search = make("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", "aria-describedby": "found" });
  const foundText = make("span", { id: "found", class: "faint", "aria-live": "polite" });
  const widthSelect = make("select", { id: "width" }, flame.widths.map((width, at) => make("option", { value: String(at) }, widthNames[width.name])));
  const processSelect = make("select", { id: "flame-process" }, make("option", { value: "-1" }, "all together"));
  const kindSelect = make("select", { id: "flame-kind" }, make("option", { value: "" }, "callers first"), make("option", { value: "inverted" }, "inverted: what costs first"));
  const directionSelect = make("select", { id: "flame-direction" }, make("option", { value: "" }, "downwards"), make("option", { value: "up" }, "upwards, as in SVG"));
  const noteLeft = make("p", { class: "faint" });
  const out = make("button", { type: "button", id: "zoom-out", disabled: true }, "Zoom out");
  const detail = makeDetail();
  const view = makeView("Flame graph. Arrow keys go from frame to frame, Enter zooms in, Escape zooms out.",
    (width) => (deepest(width) + 1) * ROW + 4, draw);

  function fillProcesses() {
    const costs = new Map();
    const of = flame.widths[0];
    for (let at = 0; at < flame.of.length; at++) {
      if (flame.parent[at] === 0) costs.set(flame.process[at], (costs.get(flame.process[at]) || 0) + of.total[at]);
    }
    const all = [...costs].sort((a, b) => b[1] - a[1]).slice(0, 500);
    processSelect.append(...all.map(([process]) => make("option", { value: String(process) }, processText(process))));
  }

  // The frames anew; what was zoomed into stays so, if it is still there.
  function rebuild(zoom = way(state.zoom), at = way(state.at)) {
    state.tree = state.isInverted ? makeInverted(state.process, state.width) : makeTree(state.process);
    state.lay = layOut(state.tree, state.width);
    state.zoom = frameAt(zoom);
    state.at = frameAt(at);
    const { left } = state.tree;
    noteLeft.textContent = left > 0 ? `The callers of ${plural(left, "frame", "frames")} of less than ${NOT_OPENED * 100} % each are not shown.` : "";
    find();
    show();
  }

  // The functions from the frame 0 to a frame, which are its way in another tree too.
  function way(node) {
    const functions = [];
    for (let at = node; state.tree !== null && at > 0; at = state.tree.parent[at]) functions.unshift(state.tree.of[at]);
    return functions;
  }

  // The frame of a way, as far as there is one.
  function frameAt(functions) {
    let node = 0;
    for (const of of functions) {
      const next = state.tree.children[node].find((child) => state.tree.of[child] === of);
      if (next === undefined) return node;
      node = next;
    }
    return node;
  }

  // What is found, and its share: of frames in each other the lowest counts.
  function find() {
    const words = search.value.trim().toLowerCase();
    if (words === "") {
      state.found = null;
      foundText.textContent = "";
      return;
    }
    const functions = flame.function.map((index) => text(index).toLowerCase().includes(words));
    const total = state.tree.total[state.width];
    const { tree } = state;
    state.found = new Uint8Array(total.length);
    const names = new Set();
    let sum = 0;
    for (let node = 1; node < total.length; node++) {
      const isFound = functions[tree.of[node]];
      const isAbove = state.found[tree.parent[node]] > 0;
      // 1: it is found itself; 2: something below it is.
      state.found[node] = isFound ? 1 : isAbove ? 2 : 0;
      if (isFound) names.add(tree.of[node]);
      if (isFound && !isAbove) sum += total[node];
    }
    foundText.textContent = names.size === 0 ? "nothing found"
      : `${plural(names.size, "function", "functions")}, ${percent(sum, total[0])}`;
  }

  // How deep the frames go that are wide enough to be seen.
  function deepest(width) {
    const { tree, lay } = state;
    const of = `${state.zoom} ${width}`;
    if (lay.deepestOf === of) return lay.deepest;
    const total = tree.total[state.width];
    const [from, length] = span();
    let deep = tree.depth[state.zoom];
    for (let node = 1; node < total.length; node++) {
      const isSeen = lay.begin[node] >= from && lay.begin[node] < from + length && total[node] / length * width >= NARROW;
      if (isSeen && tree.depth[node] > deep) deep = tree.depth[node];
    }
    [lay.deepest, lay.deepestOf] = [deep, of];
    return deep;
  }

  const span = () => {
    const total = state.tree.total[state.width];
    return [state.lay.begin[state.zoom], Math.max(total[state.zoom], 1e-9)];
  };

  // Where a frame is drawn, from the top of all.
  function rowOf(node, width) {
    const { depth } = state.tree;
    return (state.isUp ? deepest(width) - depth[node] : depth[node]) * ROW;
  }

  function draw(context, width, height, top) {
    const { tree, lay } = state;
    const total = tree.total[state.width];
    const [from, length] = span();
    const above = new Set();
    for (let node = state.zoom; node >= 0; node = tree.parent[node]) above.add(node);
    state.drawn = [];
    context.font = fonts.code;
    context.textBaseline = "middle";
    const frame = (node) => {
      const isAbove = above.has(node) && node !== state.zoom;
      const x = isAbove ? 0 : (lay.begin[node] - from) / length * width;
      const wide = isAbove ? width : total[node] / length * width;
      const y = rowOf(node, width) - top + 2;
      if (wide < NARROW || x > width || x + wide < 0) return;
      if (y > -ROW && y < height) paint(context, node, x, y, wide, isAbove);
      for (const child of tree.children[node]) {
        if (!isAbove || above.has(child)) frame(child);
      }
    };
    frame(0);
    choose(context, width, top, from, length, above);
  }

  function paint(context, node, x, y, wide, isAbove) {
    const { tree } = state;
    const of = tree.of[node];
    const isFound = state.found ? state.found[node] === 1 : shown.marked >= 0 && of === shown.marked;
    context.globalAlpha = isAbove || (state.found && !isFound) ? 0.45 : 1;
    context.fillStyle = isFound ? colors.get("found") : of < 0 ? "#c9c7bf" : flame.color[of];
    const gap = wide > 3 ? 1 : 0;
    context.fillRect(x, y, Math.max(wide - gap, NARROW), ROW - 1);
    if (of >= 0 && flame.native[of] > 0 && wide > 4) edge(context, flame.native[of], x, y, wide - gap);
    context.globalAlpha = 1;
    state.drawn.push([node, x, y, wide]);
    if (wide < 26) return;
    const left = Math.max(x, 0) + 4;
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isFaded = isAbove || (state.found && !isFound);
    context.fillStyle = isFaded ? colors.get("ink") : isFound && !isDark ? "#ffffff" : "#111111";
    const room = x + wide - left - 4;
    context.font = fonts.code;
    context.fillText(fitName(context, functionText(of), room), left, y + 9.5);
    context.font = fonts.small;
    context.fillText(costsUnder(context, node, room), left, y + 22.5);
  }

  // The edge of native code, so that it is told from other frames without its colour.
  function edge(context, kind, x, y, wide) {
    context.lineWidth = 1;
    context.strokeStyle = NATIVE[kind].edge;
    context.setLineDash(NATIVE[kind].dashes);
    context.strokeRect(x + 0.5, y + 0.5, wide - 1, ROW - 2);
    context.setLineDash([]);
  }

  // What stands under the name: as much as has room.
  function costsUnder(context, node, room) {
    const { own, total } = state.tree;
    const told = sampled === null ? value : (number) => percent(number, total[state.width][0]);
    const [mine, all] = [told(own[state.width][node]), node === 0 ? value(total[state.width][0]) : told(total[state.width][node])];
    const callsAt = widthAt("calls");
    const calls = callsAt < 0 || callsAt === state.width || state.isInverted ? "" : `, ${plural(own[callsAt][node], "call", "calls")}`;
    const texts = node === 0 || state.isInverted ? [all] : [`${mine} own, ${all} in all${calls}`, `${mine} own, ${all} in all`, `${mine} / ${all}`, all];
    return texts.find((words) => context.measureText(words).width <= room) ?? "";
  }

  // The frame that is gone to is framed, however narrow it is.
  function choose(context, width, top, from, length, above) {
    const { tree, lay, at } = state;
    const isAbove = above.has(at) && at !== state.zoom;
    const x = isAbove ? 0 : (lay.begin[at] - from) / length * width;
    const wide = isAbove ? width : tree.total[state.width][at] / length * width;
    context.lineWidth = view.isFocused() ? 3 : 1.5;
    context.strokeStyle = colors.get("ink");
    context.strokeRect(x + 1, rowOf(at, width) - top + 3, Math.max(wide - 3, 3), ROW - 3);
  }

  function show() {
    const { tree, at } = state;
    const total = tree.total[state.width];
    const own = tree.own[state.width];
    const part = sampled === null ? percent : shareText;
    const parts = [make("b", {}, functionText(tree.of[at])), `: ${value(total[at])}, ${part(total[at], total[0])} of all`];
    if (state.zoom !== 0 && total[at] <= total[state.zoom]) parts.push(`, ${percent(total[at], total[state.zoom])} of what is zoomed into`);
    if (at !== 0) {
      parts.push(`; own ${value(own[at])}`);
      flame.widths.forEach((width, number) => {
        if (number === state.width) return;
        const other = tree.total[number][at];
        parts.push(`; ${widthNames[width.name]} ${width.is_time ? time(other) : count(other)}`);
      });
      const all = tree.processes[at];
      parts.push(all.size === 1 ? `; in ${processText([...all][0])}` : `; in ${plural(all.size, "process", "processes")}`);
    }
    if (at !== 0) {
      parts.push(" ",
        make("button", { type: "button", onclick: () => go.function(tree.of[at]) }, "Callers and callees"), " ",
        make("button", { type: "button", onclick: () => { mark(tree.of[at]); go.timeline(); } }, ON_TIMELINE));
    }
    say(detail, parts);
    out.disabled = state.zoom === 0;
    link.set("zoom", way(state.zoom).join("."));
    link.set("search", search.value);
    view.redraw();
  }

  function scrollTo(node) {
    const { element } = view;
    if (view.width() === 0) return;
    const y = rowOf(node, view.width());
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + ROW > element.scrollTop + element.clientHeight) element.scrollTop = y + ROW - element.clientHeight + 4;
  }

  function select(node) {
    state.at = node;
    scrollTo(node);
    show();
  }

  function zoom(node) {
    state.zoom = state.at = node;
    scrollTo(node);
    show();
  }

  // To the next frame in the same row, also one with another caller.
  function beside(step) {
    const { tree, lay, at } = state;
    const total = tree.total[state.width];
    const [from, length] = span();
    let best = -1;
    for (let node = 1; node < total.length; node++) {
      if (tree.depth[node] !== tree.depth[at] || total[node] === 0 || node === at) continue;
      if (lay.begin[node] < from || lay.begin[node] >= from + length) continue;
      const distance = (lay.begin[node] - lay.begin[at]) * step;
      if (distance > 0 && (best < 0 || distance < (lay.begin[best] - lay.begin[at]) * step)) best = node;
    }
    return best;
  }

  // The frames found, the widest first.
  function nextFound(step) {
    if (!state.found) return -1;
    const total = state.tree.total[state.width];
    const all = [];
    for (let node = 1; node < total.length; node++) {
      if (state.found[node] === 1 && total[node] > 0) all.push(node);
    }
    all.sort((a, b) => total[b] - total[a] || a - b);
    if (all.length === 0) return -1;
    const now = all.indexOf(state.at);
    return all[now < 0 ? (step > 0 ? 0 : all.length - 1) : (now + step + all.length) % all.length];
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { tree, at } = state;
    const total = tree.total[state.width];
    const goTo = {
      [state.isUp ? "ArrowDown" : "ArrowUp"]: () => tree.parent[at],
      [state.isUp ? "ArrowUp" : "ArrowDown"]: () => tree.children[at].find((child) => total[child] > 0) ?? -1,
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => 0,
      n: () => nextFound(1),
      p: () => nextFound(-1),
    }[event.key];
    if (goTo) {
      const node = goTo();
      if (node >= 0) select(node);
    } else if (event.key === "Enter") {
      zoom(at);
    } else if (event.key === "Escape") {
      escape();
    } else if (event.key === "c" && at !== 0) {
      go.function(tree.of[at]);
    } else if (event.key === "t" && at !== 0) {
      mark(tree.of[at]);
      go.timeline();
    } else {
      return;
    }
    event.preventDefault();
  }

  function escape() {
    if (state.zoom !== 0) {
      state.zoom = 0;
    } else if (search.value !== "") {
      search.value = "";
      find();
    } else {
      mark(-1);
    }
    show();
  }

  function nodeAt(event) {
    const box = view.element.querySelector("canvas").getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hit = state.drawn.find(([, left, up, wide]) => x >= left && x < left + Math.max(wide, 1) && y >= up && y < up + ROW);
    return hit ? hit[0] : -1;
  }

  search.addEventListener("input", () => { find(); show(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      const node = nextFound(1);
      if (node >= 0) select(node);
      view.element.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      search.value = "";
      find();
      show();
      view.element.focus();
      event.preventDefault();
    }
  });
  const choose_ = () => {
    [state.width, state.process] = [Number(widthSelect.value), Number(processSelect.value)];
    const wasInverted = state.isInverted;
    [state.isInverted, state.isUp] = [kindSelect.value !== "", directionSelect.value !== ""];
    link.set("width", state.width === 0 ? "" : flame.widths[state.width].name);
    link.set("process", state.process < 0 ? "" : processes.id[state.process]);
    link.set("graph", kindSelect.value);
    link.set("direction", directionSelect.value);
    if (wasInverted === state.isInverted) rebuild();
    else rebuild([], []);
    scrollTo(state.zoom);
  };
  for (const select_ of [widthSelect, processSelect, kindSelect, directionSelect]) select_.addEventListener("change", choose_);
  out.addEventListener("click", () => { zoom(0); view.element.focus(); });
  view.element.addEventListener("keydown", key);
  view.element.addEventListener("mousemove", (event) => {
    const node = nodeAt(event);
    if (node >= 0 && node !== state.at) {
      state.at = node;
      show();
    }
  });
  view.element.addEventListener("click", (event) => {
    const node = nodeAt(event);
    if (node >= 0) zoom(node);
  });
  go.search = (words) => {
    showTab("flame");
    search.value = words;
    find();
    const node = nextFound(1);
    if (node >= 0) select(node);
    showTab("flame");
    view.element.focus();
  };

  fillProcesses();
  if (data.slices.missing !== "" && sampled === null) {
    body.append(make("p", { class: "faint" }, "Time slices were not recorded: what calls waited is part of their time."));
  }
  body.append(
    make("div", { class: "tools" },
      make("label", {}, "Search ", search), foundText,
      ...(flame.widths.length > 1 ? [make("label", {}, "Width ", widthSelect)] : []),
      make("label", {}, "Process ", processSelect),
      make("label", {}, "Graph ", kindSelect), make("label", {}, "Direction ", directionSelect), out),
    ...nativeLegend(), view.element, detail, noteLeft);
  if (flame.left > 0) {
    body.append(make("p", { class: "warning" }, `${plural(flame.left, "call path", "call paths")} with the smallest shares are left out; what they cost is part of the frames above them.`));
  }
  follow((what) => (what === "mark" ? show() : rebuild()));
  link.follow(() => {
    const process = processes.id.indexOf(link.get("process") ?? "");
    const width = widthAt(link.get("width"));
    processSelect.value = String(process);
    [state.process, state.width] = [processSelect.value === "" ? -1 : process, Math.max(width, 0)];
    processSelect.value = String(state.process);
    widthSelect.value = String(state.width);
    kindSelect.value = link.get("graph") === "inverted" ? "inverted" : "";
    directionSelect.value = link.get("direction") === "up" ? "up" : "";
    [state.isInverted, state.isUp] = [kindSelect.value !== "", directionSelect.value !== ""];
    search.value = link.get("search") ?? "";
    const zoom_ = (link.get("zoom") ?? "").split(".").filter((part) => part !== "").map(Number);
    rebuild(zoom_, zoom_);
    if (state.isUp) drawAll();
  });
}
