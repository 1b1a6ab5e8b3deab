// How long single things took, or how much they were.

function makeHistograms() {
  const body = byId("histograms-body");
  for (const histogram of data.histograms) {
    if (histogram.missing !== "") {
      body.append(make("h3", {}, histogram.title), make("p", { class: "faint" }, histogram.missing));
      continue;
    }
    const part = make("details", { open: true }, make("summary", {}, make("b", {}, histogram.title)));
    body.append(part);
    // A picture of its own: nothing in it can act on the page.
    const picture = make("img", { class: "picture", alt: `${histogram.title}: the value over the percentile; the table has the numbers`, width: "960" });
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(histogram.svg)}`;
    const show = histogram.is_time ? time : count;
    const number = (name, key) => [name, (row) => show(row[key]), "number"];
    const isOfCalls = ["call-time", "own-time", "words"].includes(histogram.name);
    part.append(make("div", { class: "wide", tabindex: "0", role: "group", "aria-label": `${histogram.title}, picture` }, picture), makeTable(histogram.title, [
      [isOfCalls ? "Function" : "Process", (row) => row.name, "name"],
      ["Count", (row) => count(row.count), "number"],
      number("50 %", "p50"), number("90 %", "p90"), number("99 %", "p99"),
      number("99.9 %", "p99_9"), number("99.99 %", "p99_99"), number("Max", "max"),
    ], histogram.rows));
    if (histogram.left > 0) {
      part.append(make("p", { class: "faint" }, `${plural(histogram.left, "row", "rows")} with smaller sums are left out; beamline histogram shows all.`));
    }
  }
}
