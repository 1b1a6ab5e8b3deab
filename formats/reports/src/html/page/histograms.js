// How long single things took, or how much they were: how many there were of each size.

// A bucket of sizes: each is a sixteenth of a power of two wide.
const bucketBegin = (bucket) => (bucket < 16 ? bucket : (16 + bucket % 16) * 2 ** (Math.floor(bucket / 16) - 1));

// How many there are in each bucket in the stretch, and the greatest.
function inBuckets(sizes, isAll) {
  const counts = new Map();
  let [next, max, number] = [0, 0, 0];
  sizes.part.forEach((part, at) => {
    const end = next + sizes.buckets[at];
    const isIn = isAll || part >= shown.from && part < shown.to;
    for (; next < end; next++) {
      if (!isIn) continue;
      counts.set(sizes.bucket[next], (counts.get(sizes.bucket[next]) || 0) + sizes.count[next]);
      number += sizes.count[next];
    }
    if (isIn) max = Math.max(max, sizes.max[at]);
  });
  return { counts, max, number };
}

// The size that a share of them is not above, to a sixteenth.
function quantile({ counts, max, number }, share) {
  let left = Math.ceil(share * number);
  for (const [bucket, how] of [...counts].sort((a, b) => a[0] - b[0])) {
    left -= how;
    if (left <= 0) return Math.min(max, bucketBegin(bucket + 1) - 1);
  }
  return max;
}

// The single things that the page keeps and that a histogram is made of.
function keptOf(name) {
  const { calls, collections, slices, dirty, messages } = data;
  const nameOf = (column) => (at) => processText(column.process[at]);
  const calledName = (at) => text(calls.function[at]);
  return {
    "call-time": { column: calls, values: calls.ns, name: calledName },
    "own-time": { column: calls, values: calls.own, name: calledName },
    words: { column: calls, values: calls.words, name: calledName },
    "gc-pause": { column: collections, values: collections.ns, name: nameOf(collections) },
    "run-slice": { column: slices, values: slices.ns, name: nameOf(slices) },
    "dirty-wait": { column: dirty, values: dirty.wait, name: (at) => text(dirty.function[at]) },
    "message-latency": { column: messages, values: messages.ns, name: (at) => (messages.to[at] > 0 ? processText(messages.to[at] - 1) : "not known") },
  }[name];
}

// The rows of a table for the stretch.
function stretchRows(name) {
  const { column, values, name: nameOf } = keptOf(name);
  const rows = new Map();
  const [from, to] = shownSpan();
  const isMessage = name === "message-latency";
  column.at.forEach((start, at) => {
    const ended = start + (isMessage ? values[at] : column.ns[at]);
    if (values[at] < 0 || ended < from || ended >= to) return;
    const key = nameOf(at);
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(values[at]);
  });
  const made = [...rows].map(([key, all]) => {
    all.sort((a, b) => a - b);
    const at = (share) => all[Math.min(all.length - 1, Math.ceil(share * all.length) - 1)];
    return { name: key, count: all.length, sum: all.reduce((sum, one) => sum + one, 0), p50: at(0.5), p90: at(0.9), p99: at(0.99), p99_9: at(0.999), p99_99: at(0.9999), max: all.at(-1) };
  });
  return made.sort((a, b) => b.sum - a.sum).slice(0, 40);
}

function makeHistograms() {
  const body = byId("histograms-body");
  data.histograms.forEach((histogram, at) => {
    if (histogram.missing !== "") {
      body.append(make("details", {}, make("summary", {}, make("b", {}, histogram.title), make("span", { class: "faint" }, " not there")), make("p", { class: "faint" }, histogram.missing)));
      return;
    }
    body.append(makeHistogram(histogram, at === 0));
  });
}

const CHART = 150;

function makeHistogram(histogram, isOpen) {
  const show = histogram.is_time ? time : count;
  const canvas = make("canvas", { role: "img", class: "histogram" });
  const words = make("p", { class: "about" });
  const table = make("div");
  const part = make("details", { open: isOpen, class: "histogram" }, make("summary", {}, make("b", {}, histogram.title)),
    make("p", { class: "faint" }, `${histogram.about}.`), words, canvas, table);
  const whole = inBuckets(histogram.sizes, true);

  function draw() {
    const width = part.open ? part.clientWidth : 0;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(CHART * ratio)];
    canvas.style.height = `${CHART}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, CHART);
    const keys = [...whole.counts.keys()];
    const [low, high] = [Math.min(...keys), Math.max(...keys) + 1];
    const most = Math.max(...whole.counts.values());
    const floor = CHART - 20;
    const [left, right] = [42, 8];
    const x = (bucket) => left + (bucket - low) / (high - low) * (width - left - right);
    // Of very many and very few both are to be seen.
    const tall = (number) => Math.log1p(number) / Math.log1p(most) * (floor - 8);
    const bars = (counts, color) => {
      context.fillStyle = colors.get(color);
      for (const [bucket, number] of counts) context.fillRect(x(bucket), floor - tall(number), Math.max(1, x(bucket + 1) - x(bucket) - 0.5), tall(number));
    };
    bars(whole.counts, isAllShown() ? "slice" : "line");
    if (!isAllShown()) bars(inBuckets(histogram.sizes, false).counts, "slice");
    drawScales(context, { width, floor, left, low, high, most, x, tall });
  }

  function drawScales(context, { width, floor, left, low, high, most, x, tall }) {
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = colors.get("faint");
    context.fillRect(left, floor, width - left, 1);
    let free = -1;
    for (let decade = 0; decade < 15; decade++) {
      for (const factor of [1, 3]) {
        const value = factor * 10 ** decade;
        const place = [low, high].includes(value) ? value : bucketPlace(value);
        if (place < low || place > high || x(place) < free) continue;
        const label = show(value).replace(/\.0+ /, " ");
        const wide = context.measureText(label).width;
        if (x(place) + wide + 3 > width) continue;
        context.fillRect(x(place), floor, 1, 5);
        context.textAlign = "left";
        context.fillText(label, x(place) + 3, floor + 11);
        free = x(place) + wide + 12;
      }
    }
    context.textAlign = "right";
    for (let number = 1; number <= most; number *= most > 1000 ? 100 : 10) {
      context.fillRect(left - 4, floor - tall(number), 4, 1);
      context.fillText(shortCount(number), left - 7, Math.max(7, floor - tall(number)));
    }
  }

  function fill() {
    const now = inBuckets(histogram.sizes, isAllShown());
    const at = (share) => show(quantile(now, share));
    words.textContent = now.number === 0 ? "There is none in the stretch."
      : `${count(now.number)}${isAllShown() ? "" : ` of ${count(whole.number)}`}; half of them at most ${at(0.5)}, 99 % at most ${at(0.99)}, the greatest ${show(now.max)}.`;
    canvas.setAttribute("aria-label", `${histogram.title}: how many there were of each size. ${words.textContent}`);
    const kept = keptOf(histogram.name);
    const rows = isAllShown() || !kept ? histogram.rows : stretchRows(histogram.name);
    const number = (name, key) => [name, (row) => show(row[key]), "number"];
    const isOfCalls = ["call-time", "own-time", "words"].includes(histogram.name);
    const notes = [];
    if (isAllShown() && histogram.left > 0) notes.push(`${plural(histogram.left, "row", "rows")} with smaller sums are left out; beamline histogram shows all.`);
    if (!isAllShown() && !kept) notes.push("The rows are of the whole time.");
    if (!isAllShown() && kept?.column.left > 0) notes.push(`The rows count what the page keeps one by one; ${count(kept.column.left)} are left out.`);
    table.replaceChildren(makeTable(histogram.title, [
      ["Count", (row) => count(row.count), "number"],
      number("50 %", "p50"), number("90 %", "p90"), number("99 %", "p99"), number("99.9 %", "p99_9"), number("Max", "max"),
      [isOfCalls ? "Function" : "Process", (row) => row.name, "name"],
    ], rows), ...notes.map((note) => make("p", { class: "faint" }, note)));
  }

  part.addEventListener("toggle", draw);
  drawings.push(draw);
  follow((what) => {
    if (what !== "stretch") return;
    fill();
    draw();
  });
  fill();
  return part;
}

// Where a size is among the buckets.
function bucketPlace(value) {
  if (value < 16) return value;
  const power = Math.floor(Math.log2(value));
  return (power - 3) * 16 + (value / 2 ** (power - 4) - 16);
}

const shortCount = (number) => (number >= 1e6 ? `${number / 1e6} M` : number >= 1e3 ? `${number / 1e3} k` : String(number));
