// Messages as a sequence: a line for each, from its sender's lane to its receiver's.

const HEAD = 40;
const LINE = 22;

function makeMessages() {
  const body = byId("messages-body");
  const { messages } = data;
  if (messages.missing !== "" || messages.start.length === 0) {
    body.append(make("p", { class: "faint" }, messages.missing || "No message was sent or received."));
    return;
  }
  messages.at = sums(messages.start);
  const state = { all: [], lanes: [], now: 0, process: 0, words: "" };
  const view = makeView("Messages. Up and down go from message to message, Enter shows those of its receiver only, Escape shows all.",
    () => HEAD + state.all.length * LINE + 4, draw);
  const detail = makeDetail();
  const search = make("input", { type: "search", id: "message-search", autocomplete: "off", spellcheck: "false" });
  const select = make("select", { id: "message-process" }, make("option", { value: "0" }, "all"));
  const found = make("span", { class: "faint", "aria-live": "polite" });

  // Who sends and receives is the number of a process and 1; 0 is nobody that is known.
  const laneText = (who) => (who === 0 ? "not known" : processText(who - 1));
  const toText = (at) => (messages.to[at] > 0 ? laneText(messages.to[at]) : text(messages.to_name[at]) || "not known");

  function fillProcesses() {
    const counts = new Map();
    for (let at = 0; at < messages.at.length; at++) {
      for (const who of new Set([messages.from[at], messages.to[at]])) {
        if (who > 0) counts.set(who, (counts.get(who) || 0) + 1);
      }
    }
    const all = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 1000);
    select.append(...all.map(([who, number]) => make("option", { value: String(who) }, `${laneText(who)} (${count(number)})`)));
  }

  function fill() {
    const words = state.words.toLowerCase();
    const isFound = data.texts.map((words_) => words === "" || words_.toLowerCase().includes(words));
    state.all = [];
    for (let at = 0; at < messages.at.length; at++) {
      const { process } = state;
      if (process !== 0 && messages.from[at] !== process && messages.to[at] !== process) continue;
      if (isFound[messages.text[at]]) state.all.push(at);
    }
    const counts = new Map();
    for (const at of state.all) {
      for (const who of [messages.from[at], messages.to[at]]) counts.set(who, (counts.get(who) || 0) + 1);
    }
    state.order = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([who]) => who);
    state.now = 0;
    view.element.scrollTop = 0;
    found.textContent = plural(state.all.length, "message", "messages");
  }

  // The lanes that have room: those with most messages; the others share the last.
  function lanes(width) {
    const left = width < 600 ? 78 : 96;
    const right = Math.max(110, Math.round(width * (width < 600 ? 0.3 : 0.34)));
    const most = Math.max(2, Math.floor((width - left - right) / 88));
    const isAll = state.order.length <= most;
    const shown = isAll ? state.order : state.order.slice(0, most - 1);
    const number = isAll ? shown.length : most;
    const wide = (width - left - right) / Math.max(number, 1);
    const place = new Map(shown.map((who, at) => [who, left + (at + 0.5) * wide]));
    return { left, right, wide, shown, isAll, x: (who) => place.get(who) ?? left + (number - 0.5) * wide, number };
  }

  function draw(context, width, height, top) {
    const lane = lanes(width);
    context.font = fonts.text;
    context.textBaseline = "middle";
    for (let index = Math.max(0, Math.floor(top / LINE)); index < state.all.length; index++) {
      const y = HEAD + index * LINE - top + LINE / 2;
      if (y - LINE > height) break;
      drawMessage(context, state.all[index], index, y, width, lane);
    }
    drawHead(context, width, height, lane);
  }

  function drawHead(context, width, height, lane) {
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, HEAD);
    context.strokeStyle = colors.get("line");
    context.lineWidth = 1;
    const names = lane.shown.map((who) => [lane.x(who), who === 0 ? ["not known", ""] : [processes.id[who - 1], text(processes.name[who - 1])]]);
    if (!lane.isAll) names.push([lane.x(-1), [plural(state.order.length - lane.shown.length, "other", "others"), ""]]);
    context.textAlign = "center";
    for (const [x, [id, name]] of names) {
      context.fillStyle = colors.get("ink");
      context.fillText(fit(context, id, lane.wide - 6), x, 12);
      context.fillStyle = colors.get("faint");
      context.fillText(fit(context, name, lane.wide - 6), x, 27);
      context.globalAlpha = 0.8;
      context.beginPath();
      context.moveTo(x, HEAD);
      context.lineTo(x, height);
      context.stroke();
      context.globalAlpha = 1;
    }
    context.textAlign = "left";
    context.fillStyle = colors.get("faint");
    context.fillText("at", 6, 27);
    context.fillText("message", width - lane.right + 8, 27);
    context.fillRect(0, HEAD - 1, width, 1);
  }

  function drawMessage(context, at, index, y, width, lane) {
    if (index === state.now) {
      context.fillStyle = colors.get("raised");
      context.fillRect(0, y - LINE / 2, width, LINE);
      if (view.isFocused()) {
        context.strokeStyle = colors.get("focus");
        context.lineWidth = 1;
        context.strokeRect(0.5, y - LINE / 2 + 0.5, width - 1, LINE - 1);
      }
    }
    const [from, to] = [lane.x(messages.from[at]), lane.x(messages.to[at])];
    const ns = messages.ns[at];
    const color = colors.get(ns === -3 ? "system" : ns < 0 ? "faint" : "turn");
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash(ns < 0 ? [4, 3] : []);
    context.beginPath();
    if (from === to) {
      context.arc(from, y, 5, Math.PI / 2, Math.PI * 1.9);
    } else {
      context.moveTo(from, y);
      context.lineTo(to, y);
    }
    context.stroke();
    context.setLineDash([]);
    const side = from === to ? 1 : Math.sign(from - to);
    context.beginPath();
    context.moveTo(to, y);
    context.lineTo(to + side * 8, y - 4.5);
    context.lineTo(to + side * 8, y + 4.5);
    context.fill();
    context.fillStyle = colors.get("faint");
    context.fillText(fit(context, moment(messages.at[at]), lane.left - 10), 6, y);
    context.fillStyle = colors.get("ink");
    context.fillText(fit(context, text(messages.text[at]), lane.right - 14), width - lane.right + 8, y);
  }

  function show() {
    const at = state.all[state.now];
    if (at === undefined) {
      say(detail, ["No message is like that."]);
    } else {
      const ns = messages.ns[at];
      const when = ns === -2 ? `came at ${moment(messages.at[at])}; from whom is not recorded`
        : `sent at ${moment(messages.at[at])}, ${ns >= 0 ? `in the queue ${time(ns)} later` : ns === -3 ? "to nobody: there is no such process" : "not seen to come"}`;
      say(detail, [
        make("div", {}, make("b", {}, `${laneText(messages.from[at])} → ${toText(at)}`), `, ${when}`),
        make("div", {}, text(messages.text[at])),
      ]);
    }
    view.redraw();
  }

  function goTo(index) {
    state.now = Math.min(Math.max(index, 0), Math.max(0, state.all.length - 1));
    const y = state.now * LINE;
    const { element } = view;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + HEAD + LINE > element.scrollTop + element.clientHeight) element.scrollTop = y + HEAD + LINE - element.clientHeight + 4;
    show();
  }

  // Only the messages of one process, with the one that is chosen in sight.
  function only(process) {
    const at = state.all[state.now];
    state.process = process;
    select.value = String(process);
    fill();
    goTo(Math.max(0, state.all.indexOf(at)));
  }

  view.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.element.clientHeight / LINE) - 3);
    const act = {
      ArrowUp: () => goTo(state.now - 1),
      ArrowDown: () => goTo(state.now + 1),
      PageUp: () => goTo(state.now - page),
      PageDown: () => goTo(state.now + page),
      Home: () => goTo(0),
      End: () => goTo(state.all.length - 1),
      Enter: () => { if (state.all.length > 0) only(messages.to[state.all[state.now]]); },
      Escape: () => {
        search.value = state.words = "";
        only(0);
      },
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  });
  view.element.addEventListener("click", (event) => {
    const box = view.element.querySelector("canvas").getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top - HEAD + view.element.scrollTop) / LINE);
    if (index >= 0 && index < state.all.length) goTo(index);
  });
  search.addEventListener("input", () => { state.words = search.value.trim(); fill(); show(); });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    if (event.key === "Escape") {
      search.value = state.words = "";
      fill();
      show();
    }
    view.element.focus();
    event.preventDefault();
  });
  select.addEventListener("change", () => only(Number(select.value)));

  fillProcesses();
  body.append(
    make("div", { class: "tools" }, make("label", {}, "Search ", search), make("label", {}, "Process ", select), found),
    view.element, detail);
  if (messages.left > 0) {
    body.append(make("p", { class: "warning" }, `Left out, so that the page stays small: the oldest ${plural(messages.left, "message", "messages")}, those before ${moment(messages.at[0])}.`));
  }
  fill();
  show();
}
