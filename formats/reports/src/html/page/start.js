// Draws the page, and sees to the keys that work everywhere.

for (const column of [data.calls, data.slices, data.dirty, data.collections, data.waits, data.messages]) column.at = sums(column.start);
data.marks.time = sums(data.marks.at);
byId("command").textContent = byId("command").title = data.command || data.file;
const made = sampled === null ? "recorded" : `${plural(sampled.samples, "sample", "samples")} at ${count(sampled.rate_hz)} Hz, sampled`;
byId("about").textContent = data.notice === null ? `${data.file}, ${made} with Beamline ${data.beamline}` : `${data.file}. ${data.notice.about}`;
if (data.notice !== null) {
  byId("notice").textContent = data.notice.text;
  byId("notice").hidden = false;
}

makeStretch();
// Parts and keys that only calls have.
if (sampled !== null) document.querySelectorAll("[data-calls]").forEach((element) => element.remove());
makeTabs(sampled === null ? [
  ["overview", "Overview", makeOverview],
  ["flame", "Flame graph", makeFlame],
  ["functions", "Functions", makeFunctions],
  ["timeline", "Timeline", makeTimeline],
  ["chart", "Call chart", makeChart],
  ["messages", "Messages", makeMessages],
  ["races", "Races", makeRaces],
  ["processes", "Processes", makeProcesses],
  ["network", "Network", makeNetwork],
  ["histograms", "Histograms", makeHistograms],
  ["keys", "Keys", () => {}],
] : [
  ["overview", "Overview", makeSampledOverview],
  ["flame", "Flame graph", makeFlame],
  ["functions", "Functions", makeFunctions],
  ["timeline", "Timeline", makeSampledTimeline],
  ["processes", "Processes", makeSampledProcesses],
  ["keys", "Keys", () => {}],
], data.notice === null ? "overview" : data.notice.tab);

// The search of the part that is shown, or else that of the flame graph.
const SEARCHES = { flame: "search", functions: "functions-filter", timeline: "process-search", messages: "message-search", races: "races-filter", processes: "processes-filter", network: "network-filter" };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const number = Number(event.key);
  if (event.key === "/") {
    if (!SEARCHES[tabs.now]) showTab("flame");
    const search = byId(SEARCHES[tabs.now]);
    if (search === null) return;
    search.focus();
    search.select();
  } else if (number >= 1 && number <= tabs.all.length) {
    showTab(tabs.all[number - 1].id, true);
  } else {
    return;
  }
  event.preventDefault();
});

const redrawAll = () => {
  colors.known.clear();
  drawAll();
};
addEventListener("resize", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
drawAll();
