// Draws the page, and sees to the keys that work everywhere.

byId("command").textContent = data.command || data.file;
byId("about").textContent = `${data.file}, recorded with Beamline ${data.beamline}`;
makeOverview();
makeFlame();
makeTimeline();
makeMessages();
makeHistograms();

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const isInMessages = event.target.closest("#messages") !== null;
  const search = byId(isInMessages ? "message-search" : "search") || byId("message-search");
  if (search === null) return;
  search.focus();
  search.select();
  event.preventDefault();
});

const redrawAll = () => {
  colors.known.clear();
  drawAll();
};
addEventListener("resize", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
drawAll();
