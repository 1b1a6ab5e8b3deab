// All functions in a list; and of one its callers and what it calls.

// Who calls a function and what it calls, with the time and calls of each.
function relatives(of) {
  const { total } = pathCosts();
  const own = pathCosts().own;
  const [timeAt, callsAt] = [0, widthAt("calls")];
  const callers = new Map();
  const callees = new Map();
  const callerOf = (path) => (flame.parent[path] === 0 ? -1 : flame.of[flame.parent[path] - 1]);
  // Whether the same function was called by the same one further down already: then that call's cost has this one's.
  const isWithinSame = (path) => {
    for (let at = flame.parent[path] - 1; at >= 0; at = flame.parent[at] - 1) {
      if (flame.of[at] === flame.of[path] && callerOf(at) === callerOf(path)) return true;
    }
    return false;
  };
  const put = (map, key, path) => {
    const row = map.get(key) ?? { of: key, cost: 0, calls: 0 };
    if (!isWithinSame(path)) row.cost += total[timeAt][path];
    row.calls += callsAt >= 0 ? own[callsAt][path] : 0;
    map.set(key, row);
  };
  for (let path = 0; path < flame.of.length; path++) {
    if (!isPathShown(path)) continue;
    const above = callerOf(path);
    if (flame.of[path] === of) put(callers, above, path);
    if (above === of) put(callees, flame.of[path], path);
  }
  const sorted = (map) => [...map.values()].filter((row) => row.cost > 0 || row.calls > 0).sort((a, b) => b.cost - a.cost || b.calls - a.calls);
  return { callers: sorted(callers), callees: sorted(callees) };
}

// What goes from a function to the timeline.
const ON_TIMELINE = sampled === null ? "Its calls on the timeline" : "On the timeline";

// A function as a button that chooses it.
const functionButton = (of) => make("button", { type: "button", class: "function", onclick: () => go.function(of) }, functionText(of));

function makeFunctions() {
  const body = byId("functions-body");
  if (!hasPaths) {
    body.append(make("p", { class: "faint" }, flame.missing || "No call has returned or taken any time."));
    return;
  }
  const one = make("div", { id: "one-function", tabindex: "-1" });
  const cost = (width, kind) => (row) => functionCosts()[kind][width][row.of];
  const isTime = flame.widths[0].is_time;
  const [own, total] = isTime ? ["Own time", "With callees"] : ["Own", "With callees"];
  const show = (width) => (number) => (flame.widths[width].is_time ? time(number) : count(number));
  const costColumn = (name, width, kind) => [name, (row) => show(width)(cost(width, kind)(row)), "number", cost(width, kind)];
  const share = (row) => {
    const part = cost(0, "own")(row);
    return make("span", {}, makeBar(part, list.all), ` ${percent(part, list.all)}`);
  };
  const shareColumn = (name, kind, show_, type) => [name, (row) => show_(cost(0, kind)(row), list.all), type, cost(0, kind)];
  const columns = sampled === null
    ? [costColumn(own, 0, "own"), ["Share", share, "share", cost(0, "own")], costColumn(total, 0, "total")]
    : [shareColumn(own, "own", shareBar, "share"), shareColumn(total, "total", shareText, "number"), costColumn("Samples", 0, "total")];
  flame.widths.forEach(({ name }, width) => {
    if (width === 0) return;
    const title = { calls: "Calls", words: "Own words", reductions: "Own reductions", wait: "Waiting", dirty_wait: "Dirty wait" }[name];
    columns.push(costColumn(title, width, "own"));
  });
  columns.push(["Function", (row) => functionButton(row.of), "name", (row) => functionText(row.of)]);
  const list = makeList("functions", "All functions", columns, (row) => functionText(row.of), !hasOthers ? 0 : sampled === null ? 2 : 1);
  const rows = flame.function.map((_, of) => ({ of }));

  function fill() {
    const costs = functionCosts();
    list.all = sampled === null ? costs.own[0].reduce((sum, number) => sum + number, 0) : threadSums().all;
    list.fill(rows.filter(({ of }) => isFunctionShown(of) && flame.widths.some((_, width) => costs.total[width][of] > 0)));
  }

  function relativeTable(title, all, none) {
    if (all.length === 0) return make("div", {}, make("h3", {}, title), make("p", { class: "faint" }, none));
    const sum = all.reduce((so, row) => so + row.cost, 0);
    const columns_ = [
      [sampled !== null ? "Samples" : isTime ? "Time" : "Cost", (row) => show(0)(row.cost), "number"],
      ["Share", (row) => percent(row.cost, sum), "number"],
      ...(sampled === null ? [["Calls", (row) => count(row.calls), "number"]] : []),
      ["Function", (row) => (row.of < 0 ? "nobody: the path begins there" : functionButton(row.of)), "name"],
    ];
    const cut = all.slice(0, 50);
    const more = all.length > cut.length ? [make("p", { class: "faint" }, `${plural(all.length - cut.length, "row", "rows")} with smaller costs are left out.`)] : [];
    return make("div", {}, make("h3", {}, title), makeTable(title, columns_, cut), ...more);
  }

  function showOne() {
    const of = shown.marked;
    one.hidden = of < 0;
    if (of < 0) return;
    const { callers, callees } = relatives(of);
    const costs = functionCosts();
    const facts_ = flame.widths.map(({ name }, width) =>
      `${widthNames[name]} ${show(width)(costs.own[width][of])} own, ${show(width)(costs.total[width][of])} with callees`);
    if (sampled !== null) {
      const told = (kind) => `${shareText(costs[kind][0][of], list.all)} (${plural(costs[kind][0][of], "sample", "samples")})`;
      facts_.splice(0, 1, `${told("own")} own, ${told("total")} with callees`);
    }
    one.replaceChildren(
      make("h3", { class: "name" }, functionText(of)),
      make("p", { class: "faint" }, facts_.join("; ")),
      make("div", { class: "tools" },
        make("button", { type: "button", onclick: () => go.search(functionText(of)) }, "In the flame graph"),
        make("button", { type: "button", onclick: () => go.timeline() }, ON_TIMELINE),
        make("button", { type: "button", onclick: () => mark(-1) }, "Close")),
      make("div", { class: "tables" }, relativeTable("Callers", callers, sampled === null ? "Nobody that was recorded calls it." : "It was seen as the oldest of stacks only."), relativeTable("Callees", callees, sampled === null ? "It calls nothing that was recorded." : "It was seen as the newest of stacks only.")));
  }

  go.function = (of) => {
    mark(of);
    showTab("functions");
    one.scrollIntoView({ block: "nearest" });
    one.focus();
  };
  follow((what) => {
    if (what !== "mark") fill();
    showOne();
  });
  body.append(one, list.element);
  if (flame.left > 0) body.append(make("p", { class: "faint" }, "Callers, callees and stretches count the call paths of the flame graph; the costs of the whole time count all."));
  fill();
  showOne();
}
