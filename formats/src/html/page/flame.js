// The flame graph: who is called stands below the caller.

const ROW = 19;

// Frames that are narrower, in pixels, are not drawn.
const NARROW = 0.4;

// The call paths of a process, or of all: paths of the same functions are one. Index 0 is below all of them.
function makeTree(process) {
  const { flame } = data;
  const widths = flame.widths.length;
  const tree = { of: [-1], parent: [-1], depth: [0], children: [[]], own: [], total: [], processes: [new Set()] };
  for (let width = 0; width < widths; width++) {
    tree.own.push([0]);
    tree.total.push([0]);
  }
  const place = new Int32Array(flame.of.length).fill(-1);
  const known = new Map();
  for (let at = 0; at < flame.of.length; at++) {
    if (process >= 0 && flame.process[at] !== process) continue;
    const above = flame.parent[at] === 0 ? 0 : place[flame.parent[at] - 1];
    const key = above * flame.function.length + flame.of[at];
    let node = known.get(key);
    if (node === undefined) {
      node = tree.of.length;
      known.set(key, node);
      tree.of.push(flame.of[at]);
      tree.parent.push(above);
      tree.depth.push(tree.depth[above] + 1);
      tree.children.push([]);
      tree.processes.push(new Set());
      tree.children[above].push(node);
      for (let width = 0; width < widths; width++) {
        tree.own[width].push(0);
        tree.total[width].push(0);
      }
    }
    place[at] = node;
    tree.processes[node].add(flame.process[at]);
    for (let width = 0; width < widths; width++) {
      tree.own[width][node] += flame.widths[width].own[at];
      tree.total[width][node] += flame.widths[width].total[at];
      if (above === 0) tree.total[width][0] += flame.widths[width].total[at];
    }
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
  const { flame } = data;
  const problem = flame.missing || (flame.widths.length === 0 ? "No call has returned or taken any time." : "");
  go.search = () => {};
  if (problem) {
    body.append(make("p", { class: "faint" }, problem));
    return;
  }
  const state = { process: -1, width: 0, tree: null, lay: null, zoom: 0, at: 0, found: null, drawn: [] };
  const functionText = (of) => (of < 0 ? "all" : text(flame.function[of]));
  const units = { calls: ["call", "calls"], words: ["word", "words"], reductions: ["reduction", "reductions"] };
  const value = (number) => {
    const { is_time: isTime, name } = flame.widths[state.width];
    return isTime ? time(number) : plural(number, ...units[name]);
  };

  const search = make("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", "aria-describedby": "found" });
  const foundText = make("span", { id: "found", class: "faint", "aria-live": "polite" });
  const widthNames = { time: "time", calls: "calls", words: "words", reductions: "reductions", wait: "time of waiting" };
  const widthSelect = make("select", { id: "width" }, flame.widths.map((width, at) => make("option", { value: String(at) }, widthNames[width.name])));
  const processSelect = make("select", { id: "flame-process" }, make("option", { value: "-1" }, "all together"));
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

  function rebuild() {
    state.tree = makeTree(state.process);
    state.zoom = state.at = 0;
    relayOut();
  }

  function relayOut() {
    state.lay = layOut(state.tree, state.width);
    find();
    show();
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
      const y = tree.depth[node] * ROW - top + 2;
      if (wide < NARROW || x > width || x + wide < 0) return;
      if (y > -ROW && y < height) paint(context, node, x, y, wide, isAbove);
      if (y >= height) return;
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
    const isFound = state.found && state.found[node] === 1;
    context.globalAlpha = isAbove || (state.found && !isFound) ? 0.45 : 1;
    context.fillStyle = isFound ? colors.get("found") : of < 0 ? "#c9c7bf" : flame.color[of];
    const gap = wide > 3 ? 1 : 0;
    context.fillRect(x, y, Math.max(wide - gap, NARROW), ROW - 1);
    context.globalAlpha = 1;
    state.drawn.push([node, x, y, wide]);
    if (wide < 26) return;
    const left = Math.max(x, 0) + 4;
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const isFaded = isAbove || (state.found && !isFound);
    context.fillStyle = isFaded ? colors.get("ink") : isFound && !isDark ? "#ffffff" : "#111111";
    context.fillText(fit(context, functionText(of), x + wide - left - 4), left, y + ROW / 2);
  }

  // The frame that is gone to is framed, however narrow it is.
  function choose(context, width, top, from, length, above) {
    const { tree, lay, at } = state;
    const isAbove = above.has(at) && at !== state.zoom;
    const x = isAbove ? 0 : (lay.begin[at] - from) / length * width;
    const wide = isAbove ? width : tree.total[state.width][at] / length * width;
    context.lineWidth = view.isFocused() ? 3 : 1.5;
    context.strokeStyle = colors.get("ink");
    context.strokeRect(x + 1, tree.depth[at] * ROW - top + 3, Math.max(wide - 3, 3), ROW - 3);
  }

  function show() {
    const { tree, at } = state;
    const total = tree.total[state.width];
    const own = tree.own[state.width];
    const parts = [make("b", {}, functionText(tree.of[at])), `: ${value(total[at])}, ${percent(total[at], total[0])} of all`];
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
    say(detail, parts);
    out.disabled = state.zoom === 0;
    view.redraw();
  }

  function scrollTo(node) {
    const y = state.tree.depth[node] * ROW;
    const { element } = view;
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
      ArrowUp: () => tree.parent[at],
      ArrowDown: () => tree.children[at].find((child) => total[child] > 0) ?? -1,
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
  widthSelect.addEventListener("change", () => { state.width = Number(widthSelect.value); relayOut(); });
  processSelect.addEventListener("change", () => { state.process = Number(processSelect.value); rebuild(); });
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
    search.value = words;
    find();
    const node = nextFound(1);
    if (node >= 0) select(node);
    byId("flame").scrollIntoView();
    view.element.focus();
  };

  fillProcesses();
  if (data.turns.missing !== "") {
    body.append(make("p", { class: "faint" }, "Turns were not recorded: what calls waited is part of their time."));
  }
  body.append(
    make("div", { class: "tools" },
      make("label", {}, "Search ", search), foundText,
      make("label", {}, "Width ", widthSelect),
      make("label", {}, "Process ", processSelect), out),
    view.element, detail);
  if (flame.left > 0) {
    body.append(make("p", { class: "warning" }, `${plural(flame.left, "call path", "call paths")} with the smallest shares are left out; what they cost is part of the frames above them.`));
  }
  rebuild();
}
