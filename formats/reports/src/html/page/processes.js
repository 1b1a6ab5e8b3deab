// All processes that the page knows, with what they did; of a stretch, as far as the single things are known.

function makeProcesses() {
  const body = byId("processes-body");
  const { slices, collections, messages } = data;
  const hasSlices = slices.missing === "";
  const note = make("p", { class: "faint" });
  let sums = null;

  function addUp() {
    const zeros = () => new Float64Array(processCount);
    sums = { busy: zeros(), slices: zeros(), collections: zeros(), gc: zeros(), sent: zeros(), received: zeros(), cost: zeros() };
    if (isAllShown()) {
      for (const [to, from] of [["busy", "busy_ns"], ["slices", "slices"], ["collections", "collections"], ["gc", "gc_ns"], ["sent", "sent"], ["received", "received"]]) {
        sums[to] = processes[from];
      }
    } else {
      addStretch();
    }
    if (hasPaths) {
      const { own } = pathCosts();
      for (let path = 0; path < flame.of.length; path++) sums.cost[flame.process[path]] += own[0][path];
    }
  }

  function addStretch() {
    const [from, to] = shownSpan();
    const inside = (start, ns) => Math.min(start + ns, to) - Math.max(start, from);
    slices.at.forEach((start, at) => {
      const ns = inside(start, slices.ns[at]);
      if (ns < 0 || start >= to) return;
      sums.busy[slices.process[at]] += ns;
      sums.slices[slices.process[at]]++;
    });
    collections.at.forEach((start, at) => {
      if (start < from || start >= to) return;
      sums.collections[collections.process[at]]++;
      sums.gc[collections.process[at]] += collections.ns[at];
    });
    messages.at.forEach((start, at) => {
      if (start < from || start >= to || messages.ns[at] === -4) return;
      if (messages.from[at] > 0 && messages.ns[at] !== -2) sums.sent[messages.from[at] - 1]++;
      if (messages.to[at] > 0 && (messages.ns[at] >= 0 || messages.ns[at] === -2)) sums.received[messages.to[at] - 1]++;
    });
  }

  const number = (name, key, show) => [name, (at) => show(sums[key][at]), "number", (at) => sums[key][at]];
  const main = hasSlices ? "busy" : "cost";
  const share = (at) => {
    const all = sums[main].reduce((sum, one) => sum + one, 0);
    return make("span", {}, makeBar(sums[main][at], all), ` ${percent(sums[main][at], all)}`);
  };
  const isTime = hasPaths && flame.widths[0].is_time;
  const costName = () => widthNames[flame.widths[0].name].replace(/^./, (letter) => letter.toUpperCase());
  const cost = () => number(costName(), "cost", isTime ? time : count);
  const columns = [
    ...(hasSlices ? [number("Ran", "busy", time)] : hasPaths ? [cost()] : []),
    ...(hasSlices || hasPaths ? [["Share", share, "share", (at) => sums[main][at]]] : []),
    ...(hasSlices ? [number("Time slices", "slices", count)] : []),
    ...(collections.missing === "" ? [number("Collections", "collections", count), number("In collections", "gc", time)] : []),
    ...(messages.missing === "" ? [number("Sent", "sent", count), number("Received", "received", count)] : []),
    ["Process", (at) => make("button", { type: "button", onclick: () => go.process(at) }, processText(at)), "name", (at) => processText(at)],
    ["Ended", (at) => (processes.ended_ns[at] === null ? "" : `${moment(processes.ended_ns[at])}: ${text(processes.reason[at])}`), "name", (at) => processes.ended_ns[at] ?? Infinity],
  ];
  const list = makeList("processes", "All processes", columns, (at) => processText(at), 0);

  function fill() {
    addUp();
    list.fill(Array.from({ length: processCount }, (_, at) => at));
    const left = slices.left + collections.left + messages.left > 0;
    note.textContent = !isAllShown() && left ? "Of the stretch, only the things that the page keeps are counted: the longest time slices and collections, and the newest messages." : "";
  }

  follow((what) => { if (what === "stretch") fill(); });
  body.append(note, list.element);
  fill();
}
