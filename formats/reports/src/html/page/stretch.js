// The strip above all parts: how busy the program was over time, and the stretch of the time that is shown.

const STRIP = 46;

// How busy each part was, from 0 to 1.
function busyParts() {
  if (sampled !== null) return busySchedulers();
  const used = data.schedulers.filter(({ use_ns: use }) => use.some((ns) => ns > 0));
  if (used.length > 0) {
    const all = Array.from({ length: PARTS }, (_, part) => used.reduce((sum, { use_ns: use }) => sum + use[part], 0));
    return all.map((ns) => ns / data.part_ns / used.length);
  }
  const all = overTime(-1);
  const most = Math.max(...all, 1);
  return [...all].map((cost) => cost / most);
}

function makeStretch() {
  const bar = byId("stretch");
  const canvas = make("canvas", { "aria-hidden": "true" });
  const view = make("div", { id: "strip", tabindex: "0", role: "application", "aria-label": "Stretch of the time that is shown. Left and right move it, with Shift they change its end, plus and minus its length, Escape shows the whole time." }, canvas);
  const words = make("span", { id: "stretch-text", "aria-live": "polite" });
  const whole = make("button", { type: "button", id: "stretch-whole", onclick: () => showStretch(0, PARTS) }, "Whole time");
  const boot = make("input", { type: "checkbox", id: "boot", onchange: () => showBoot(boot.checked) });
  const own = make("input", { type: "checkbox", id: "own", onchange: () => showOwn(own.checked) });
  const unmark = make("button", { type: "button", id: "unmark", onclick: () => mark(-1) }, "Unmark");
  const busy = busyParts();
  let marked = null;
  let drag = null;

  function draw() {
    const width = view.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(STRIP * ratio)];
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, STRIP);
    const wide = width / PARTS;
    const floor = STRIP - 13;
    const tall = (share) => Math.max(share > 0 ? 1 : 0, Math.min(1, share) * (floor - 2));
    for (let part = 0; part < PARTS; part++) {
      const isIn = part >= shown.from && part < shown.to;
      context.globalAlpha = isIn ? 1 : 0.3;
      context.fillStyle = colors.get("slice");
      context.fillRect(part * wide, floor - tall(busy[part]), Math.max(wide - 0.3, 0.5), tall(busy[part]));
      if (marked === null || marked[part] === 0) continue;
      context.fillStyle = colors.get("found");
      context.fillRect(part * wide, floor - tall(marked[part]), Math.max(wide - 0.3, 0.5), tall(marked[part]));
    }
    context.globalAlpha = 1;
    drawScale(context, width, floor);
    if (!isAllShown()) {
      context.strokeStyle = colors.get("accent");
      context.lineWidth = 2;
      context.strokeRect(shown.from * wide + 1, 1, Math.max((shown.to - shown.from) * wide - 2, 1), floor);
    }
  }

  function drawScale(context, width, floor) {
    context.font = "10px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = colors.get("faint");
    const [first, last] = [data.since_ns, data.since_ns + PARTS * data.part_ns];
    const { all, step } = steps(first, last, width / 80);
    for (const ns of all) {
      const x = (ns - first) / (last - first) * width;
      context.fillRect(x, floor, 1, 4);
      const label = scaleTime(ns, step);
      if (x + context.measureText(label).width + 3 < width) context.fillText(label, x + 3, floor + 7);
    }
  }

  function say() {
    const [from, to] = shownSpan();
    const { factor } = cells;
    const grain = time(data.part_ns * Math.max(factor, 1));
    words.textContent = isAllShown() ? `The whole time, ${time(to - from)}. Drag over it to show a stretch.`
      : `${moment(from)} to ${moment(to)}: ${time(to - from)}, in parts of ${grain}`;
    whole.hidden = isAllShown();
    unmark.hidden = shown.marked < 0;
    unmark.textContent = shown.marked < 0 ? "" : `Unmark ${cutName(functionText(shown.marked), 36)}`;
    boot.checked = shown.isWithoutBoot;
    own.checked = shown.isOwnOnly;
  }

  // A function's cost beside the most that it had in a part.
  function remark() {
    marked = null;
    if (shown.marked < 0) return;
    const all = overTime(shown.marked);
    const most = Math.max(...all, 1e-9);
    marked = all.map((cost) => (cost > 0 ? Math.max(0.12, cost / most) : 0));
  }

  const partAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return Math.min(PARTS, Math.max(0, (event.clientX - box.left) / box.width * PARTS));
  };
  view.addEventListener("pointerdown", (event) => {
    drag = { part: partAt(event), moved: false };
    view.setPointerCapture(event.pointerId);
  });
  view.addEventListener("pointermove", (event) => {
    if (drag === null) return;
    const part = partAt(event);
    drag.moved = drag.moved || Math.abs(part - drag.part) * view.clientWidth / PARTS > 3;
    if (drag.moved) showStretch(Math.min(part, drag.part), Math.max(part, drag.part));
  });
  view.addEventListener("pointerup", () => {
    if (drag !== null && !drag.moved) showStretch(0, PARTS);
    drag = null;
  });
  view.addEventListener("pointercancel", () => { drag = null; });

  // Whole at first, a stretch is a tenth of the time.
  function move(by) {
    const length = isAllShown() ? PARTS / 10 : shown.to - shown.from;
    const from = isAllShown() ? (by > 0 ? 0 : PARTS - length) : Math.min(Math.max(0, shown.from + by), PARTS - length);
    showStretch(from, from + length);
  }

  function resize(factor) {
    const [middle, length] = [(shown.from + shown.to) / 2, (shown.to - shown.from) * factor];
    showStretch(Math.round(middle - length / 2), Math.round(middle + length / 2));
  }

  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = Math.max(cells.factor, 1);
    const act = {
      ArrowLeft: () => (event.shiftKey ? showStretch(shown.from, shown.to - by) : move(-by)),
      ArrowRight: () => (event.shiftKey ? showStretch(shown.from, shown.to + by) : move(by)),
      "+": () => resize(0.5),
      "=": () => resize(0.5),
      "-": () => resize(2),
      Escape: () => showStretch(0, PARTS),
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });

  bar.append(view, make("div", { class: "tools" }, words, whole, unmark,
    ...(hasBoot ? [make("label", { title: "Leaves out processes that call none of the program's functions, and what others did before they called one" }, boot, "Hide boot")] : []),
    ...(hasOthers ? [make("label", { title: "Lists have the program's functions, and none of Erlang/OTP, Elixir and build tools" }, own, "My code")] : [])));
  follow((what) => {
    if (what === "mark") remark();
    say();
    draw();
  });
  link.follow(() => {
    showStretch(link.number("from", 0, PARTS) ?? 0, link.number("to", 0, PARTS) ?? PARTS);
    showBoot(hasBoot && link.get("boot") !== "shown");
    showOwn(hasOthers && link.get("functions") !== "all");
    const name = link.get("function");
    mark(name === null ? -1 : flame.function.findIndex((index) => text(index) === name));
    say();
  });
  drawings.push(draw);
}
