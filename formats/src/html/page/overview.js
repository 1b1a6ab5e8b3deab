// What `beamline report` tells.

// Other parts put here how to go to a function or to a place of the timeline.
const go = {};

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

function schedulerUse() {
  const { schedulers, end_ns: end } = data.summary;
  if (schedulers.length === 0) return null;
  const bar = (of) => {
    const fill = make("i", {});
    fill.style.width = `${Math.min(100, 100 * of.busy_ns / Math.max(end, 1))}%`;
    return make("span", { class: "bar", "aria-hidden": "true" }, fill);
  };
  const title = "Schedulers";
  return make("div", { class: "narrow" }, make("h3", {}, title), makeTable(title, [
    ["Scheduler", (of) => String(of.scheduler), "number"],
    ["Ran processes", (of) => time(of.busy_ns), "number"],
    ["of the time", (of) => percent(of.busy_ns, end), "number"],
    ["", bar],
    ["Turns", (of) => count(of.turns), "number"],
  ], schedulers));
}

function functionTable(title, rows, unit, show) {
  if (rows.length === 0) return null;
  const link = (row) => make("button", { type: "button", onclick: () => go.search(row.function) }, row.function);
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    ["Own", (row) => show(row[`own_${unit}`]), "number"],
    ["Total", (row) => show(row[`total_${unit}`]), "number"],
    ["Calls", (row) => count(row.calls), "number"],
    ["Function", link, "name"],
  ], rows));
}

// A moment, which goes to its place in the timeline.
const placeButton = (row, length) =>
  make("button", { type: "button", onclick: () => go.place(row.process, row.at_ns, length) }, time(row.at_ns));

const whoText = (row) => `${row.process} ${row.name}`.trim();

function longestTable(title, column, rows, show, length) {
  if (rows.length === 0) return null;
  return make("div", {}, make("h3", {}, title), makeTable(title, [
    [column, (row) => show(row.value), "number"],
    ["At", (row) => placeButton(row, length(row)), "number"],
    ["Process", whoText, "name"],
    ["", (row) => row.what],
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

function makeOverview() {
  const { summary } = data;
  const isLost = summary.losses.length > 0 || summary.names_lost > 0 || summary.since_ns > 0 || !summary.has_ended;
  const losses = make("div", { class: isLost ? "warning" : null, id: "losses" }, data.losses.map((line) => make("p", {}, line)));
  byId("overview-body").append(losses, facts(), schedulerUse() ?? "", make("div", { class: "tables" }, [
    functionTable("Most own time", summary.by_own, "ns", time),
    functionTable("Most time in all", summary.by_total, "ns", time),
    functionTable("Most own words", summary.by_words ?? [], "words", count),
    functionTable("Most own reductions", summary.by_reductions ?? [], "reductions", count),
    longestTable("Longest collections", "Took", summary.collections, time, (row) => row.value),
    longestTable("Longest turns", "Took", summary.turns, time, (row) => row.value),
    longestTable("Longest message queues", "Messages", summary.queues, count, () => 0),
    systemTable(summary.system),
  ].filter((table) => table !== null)));
}
