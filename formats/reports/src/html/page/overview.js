// What `beamline report` tells.

function facts() {
  const { summary } = data;
  const { host } = summary;
  const records = summary.records.reduce((sum, [, number]) => sum + number, 0);
  const rows = [
    ["Recorded", new Date(data.unix_ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC"],
    ["Machine", `${host.name}, ${host.system}, ${plural(host.cores, "processor", "processors")} (${host.processor})`],
    ["OTP", summary.otp],
    ["Length", time(summary.end_ns)],
    ["Processes", count(summary.processes)],
    ["Records", `${count(records)}: ${summary.records.map(([kind, number]) => `${kind} ${count(number)}`).join(", ")}`],
  ];
  return make("dl", { class: "facts" }, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

const OVERVIEW_ROWS = 12;

function schedulerUse() {
  const { schedulers } = data;
  const [from, to] = shownSpan();
  const rows = data.summary.schedulers.map((of) => {
    const use = schedulers.find(({ name }) => name === `Scheduler ${of.scheduler}`)?.use_ns.slice(shown.from, shown.to) ?? [];
    return { ...of, busy: isAllShown() ? of.busy_ns : use.reduce((sum, ns) => sum + ns, 0) };
  });
  if (rows.length === 0) return null;
  const title = "Schedulers";
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["Scheduler", (of) => String(of.scheduler), "number"],
    ["Ran processes", (of) => time(of.busy), "number"],
    ["Share of the time", (of) => make("span", {}, makeBar(of.busy, to - from), ` ${percent(of.busy, to - from)}`), "share"],
  ], rows));
}

// The functions that cost most of a width, themselves or with what they call.
function functionTable(title, width, kind) {
  if (!hasPaths || width < 0) return null;
  const costs = functionCosts();
  const key = costs[kind][width];
  const rows = [...key.keys()].filter((of) => key[of] > 0 && isFunctionShown(of)).sort((a, b) => key[b] - key[a]).slice(0, OVERVIEW_ROWS);
  if (rows.length === 0) return null;
  const show = flame.widths[width].is_time ? time : count;
  const callsAt = widthAt("calls");
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["Own", (of) => show(costs.own[width][of]), "number"],
    ["With callees", (of) => show(costs.total[width][of]), "number"],
    ...(callsAt < 0 ? [] : [["Calls", (of) => count(costs.own[callsAt][of]), "number"]]),
    ["Function", functionButton, "name"],
  ], rows));
}

// A moment, which goes to its place in the timeline.
const placeButton = (row, length) =>
  make("button", { type: "button", onclick: () => go.place(row.process, row.at_ns, length) }, moment(row.at_ns));

const whoText = (row) => `${row.process} ${row.name}`.trim();

// The longest of what the page keeps, in the stretch.
function longestOf(column, what) {
  const end = (at) => column.at[at] + column.ns[at];
  const isMeant = (at) => isInShown(column.at[at], end(at)) && !isBootUntil(column.process[at], end(at));
  const all = column.at.map((_, at) => at).filter(isMeant);
  const rows = [...all].sort((a, b) => column.ns[b] - column.ns[a] || a - b).slice(0, OVERVIEW_ROWS);
  return rows.map((at) => ({ at_ns: column.at[at], value: column.ns[at], process: processes.id[column.process[at]], name: text(processes.name[column.process[at]]), what: what(at) }));
}

function longestTable(title, column, rows, show, whatName) {
  if (rows.length === 0) return null;
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    [column, (row) => show(row.value), "number"],
    ["At", (row) => placeButton(row, show === time ? row.value : 0), "number"],
    ...(whatName === "" ? [] : [[whatName, (row) => row.what, "name"]]),
    ["Process", whoText, "name"],
  ], rows));
}

function systemTable(rows) {
  if (rows.length === 0) return null;
  const title = "System events";
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["At", (row) => placeButton(row, 0), "number"],
    ["What", (row) => (row.value > 0 ? `${count(row.value)} ${row.what}` : row.what)],
    ["Process", whoText, "name"],
  ], rows));
}

// Native functions, as the whole recording has them.
function nativeTable(rows) {
  if (!rows || rows.length === 0) return null;
  const title = "Native functions";
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["Ran", (row) => time(row.own_ns), "number"],
    ["Dirty wait", (row) => time(row.dirty_wait_ns ?? 0), "number"],
    ["Calls", (row) => count(row.calls), "number"],
    ["Kind", (row) => NATIVE_NAMES[row.native]],
    ["Function", (row) => row.function, "name"],
  ], rows.slice(0, OVERVIEW_ROWS)));
}

const NATIVE_NAMES = { ordinary: "native", dirty_cpu: "dirty CPU", dirty_io: "dirty I/O" };

// Native functions that held an ordinary scheduler for long.
function blockTable(rows) {
  if (!rows || rows.length === 0) return null;
  const title = "Blocks its scheduler";
  const callers = (all) => all.slice(0, 3).map(({ function: name, times }) => `${name ?? "nobody who was recorded"} (${count(times)})`).join(", ") + (all.length > 3 ? `, ${count(all.length - 3)} more` : "");
  const what = (row) => make("div", {}, row.function, make("div", { class: "faint" }, `called by ${callers(row.callers)}; the longest in ${whoText(row)}`));
  return make("div", {}, make("h3", {}, title),
    make("p", { class: "faint" }, "Native code that held an ordinary scheduler for more than 1 ms at a time: nothing else ran there meanwhile."),
    makeTable(title, [
      ["Longest", (row) => time(row.longest_ns), "number"],
      ["At", (row) => placeButton(row, row.longest_ns), "number"],
      ["Times", (row) => count(row.times), "number"],
      ["Together", (row) => time(row.total_ns), "number"],
      ["Function", what, "name"],
    ], rows));
}

// Of what is left at the end, that of the program, or all.
const shownRows = (rows) => (rows ?? []).filter((row) => !shown.isOwnOnly || row.origin === "app");

// The processes that are left at the end, by kind and by what started them.
function leftTable(rows) {
  const own = shownRows(rows);
  if (own.length === 0) return null;
  const title = "Processes left at the end";
  const known = (row, show, number) => (row.collected === 0 ? "" : show(number));
  const started = (row) => [row.started_in ? `started in ${row.started_in}` : "", row.started_by ? `by ${row.started_by}` : ""].filter((part) => part !== "").join(" ");
  const what = (row) => make("div", {}, row.kind || "(not known)", make("div", { class: "faint" }, started(row)));
  return make("div", {}, make("h3", {}, title),
    make("p", { class: "faint" }, "What they held after their last collections. A binary counts for each process that holds it."),
    makeTable(title, [
      ["Processes", (row) => count(row.processes), "number"],
      ["Heap", (row) => known(row, size, row.heap_bytes), "number"],
      ["Binaries", (row) => known(row, size, row.binary_bytes), "number"],
      ["Number", (row) => (row.binaries > 0 ? count(row.binaries) : ""), "number"],
      ["Largest", (row) => (row.binaries > 0 ? size(row.largest_binary) : ""), "number"],
      ["What", what, "name"],
    ], own.slice(0, OVERVIEW_ROWS)));
}

function etsTable(rows) {
  const own = shownRows(rows);
  if (own.length === 0) return null;
  const title = "ETS tables at the end";
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["Memory", (row) => size(row.bytes), "number"],
    ["Objects", (row) => count(row.objects), "number"],
    ["Table", (row) => row.name, "name"],
    ["Owner", (row) => `${row.owner} ${row.owner_name}`.trim(), "name"],
  ], own.slice(0, OVERVIEW_ROWS)));
}

// What is missing.
function lossesBox() {
  const { summary } = data;
  const isLost = summary.losses.length > 0 || summary.names_lost > 0 || summary.since_ns > 0 || !summary.has_ended;
  const losses = make("div", { class: isLost ? "warning" : null, id: "losses" }, data.losses.map((line) => make("p", {}, line)));
  for (const of of summary.unfinished ?? []) {
    losses.append(make("p", {}, `When it broke off, ${of.function} (${NATIVE_NAMES[of.native]})${of.caller === null ? "" : `, called by ${of.caller},`} ran in ${whoText(of)}.`));
  }
  return losses;
}

function makeOverview() {
  const { summary, slices, collections } = data;
  const tables = make("div", { class: "tables" });
  const isIn = (row) => isInShown(row.at_ns, row.at_ns);
  const isTime = hasPaths && flame.widths[0].is_time;
  function fill() {
    const fromTo = (at) => `${text(slices.from[at])} to ${text(slices.to[at])}`;
    tables.replaceChildren(...[
      functionTable(isTime ? "Most own time" : "Most", 0, "own"),
      functionTable(isTime ? "Most time with callees" : "Most with callees", 0, "total"),
      functionTable("Most own words", widthAt("words"), "own"),
      functionTable("Most own reductions", widthAt("reductions"), "own"),
      nativeTable(summary.natives),
      blockTable((summary.blocks ?? []).filter(isIn)),
      schedulerUse(),
      longestTable("Longest collections", "Took", longestOf(collections, (at) => (collections.major[at] ? "major" : "minor")), time, "Kind"),
      longestTable("Longest time slices", "Took", longestOf(slices, fromTo), time, "From and to"),
      longestTable("Longest message queues", "Messages", summary.queues.filter(isIn), count, ""),
      leftTable(summary.left),
      etsTable(summary.tables),
      systemTable(summary.system.filter(isIn)),
    ].filter((table) => table !== null));
  }
  byId("overview-body").append(lossesBox(), facts(), tables);
  follow((what) => { if (what !== "mark") fill(); });
  fill();
}
