// Messages as a sequence: a line for each, from its sender's lane to its receiver's. Lanes are processes, or the labels
// of sequential trace tokens: then those processes stand in a label's lane that its messages go between.

const HEAD = 40;
const LINE = 22;

// The least room for the lane of a process, of a label, and of a process in that.
const PROCESS_LANE = 88;
const LABEL_LANE = 150;
const INNER_LANE = 62;
const CALLS_TITLE = "Calls by the time to their answer";

// As much of a message as a row of a list has room for.
const shorten = (words) => (words.length > 100 ? `${words.slice(0, 99)}…` : words);

// Keys with counts, those counted most first.
const byCount = (counts) => [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);

function countOf(all, keys) {
  const counts = new Map();
  for (const at of all) {
    for (const key of keys(at)) counts.set(key, (counts.get(key) || 0) + 1);
  }
  return counts;
}

// Places for as many as have room, those with the highest counts in the order in which they come; the others share the last.
function makePlaces(counts, from, width, least) {
  const most = Math.max(2, Math.floor(width / least));
  const isAll = counts.size <= most;
  const chosen = new Set((isAll ? byCount(counts) : byCount(counts).slice(0, most - 1)).map(([key]) => key));
  return { isAll, chosen, number: isAll ? Math.max(chosen.size, 1) : most, from, width };
}

function placed(places, order) {
  const wide = places.width / places.number;
  const x = new Map(order.map((key, at) => [key, places.from + (at + 0.5) * wide]));
  const last = places.from + (places.number - 0.5) * wide;
  return { ...places, wide, shown: order, last, x: (key) => x.get(key) ?? last };
}

// The busiest: so many processes are shown at first.
const BUSIEST = 5;

// Which message answers which: the first that comes back to the sender, from the receiver, with the reference that it
// sent. So do gen_server:call/2 and all that is like it, and the protocol of input and output.
function pairUp() {
  const { messages } = data;
  const number = messages.at.length;
  const pairs = { reply: new Int32Array(number).fill(-1), call: new Int32Array(number).fill(-1), has: false };
  const waiting = new Map();
  const reference = data.texts.map(() => undefined);
  for (let at = 0; at < number; at++) {
    const index = messages.text[at];
    if (reference[index] === undefined) reference[index] = text(index).match(/#Ref<[0-9.]+>/)?.[0] ?? null;
    const key = reference[index];
    if (key === null || messages.ns[at] === -4) continue;
    const call = waiting.get(key);
    // An alias has no process that it is known to belong to; its message has come to one.
    const isBack = call !== undefined && messages.to[at] === messages.from[call] && (messages.from[at] === messages.to[call] || messages.from[at] === 0);
    if (isBack) {
      [pairs.reply[call], pairs.call[at], pairs.has] = [at, call, true];
      waiting.delete(key);
    } else if (call === undefined) {
      waiting.set(key, at);
    }
  }
  return pairs;
}

function makeMessages() {
  const body = byId("messages-body");
  const { messages } = data;
  if (messages.missing !== "" || messages.start.length === 0) {
    const none = messages.is_traced_only ? "No message with a token of sequential tracing was sent or received." : "No message was sent or received.";
    body.append(make("p", { class: "faint" }, messages.missing || none));
    return;
  }
  const pairs = pairUp();
  const racing = racesOfMessages();
  const hasLabels = messages.label.length > 0;
  const state = { all: [], now: 0, process: 0, label: 0, words: "", busiest: new Set(), isByLabel: hasLabels, lanes: null, lanesOf: "" };
  const view = makeView(`Messages. Up and down go from message to message, ${hasLabels ? "left and right to those of the same label, " : ""}Enter shows those of its ${hasLabels ? "label or " : ""}receiver only, Escape shows all.`,
    () => HEAD + state.all.length * LINE + 4, draw);
  const detail = makeDetail();
  const search = make("input", { type: "search", id: "message-search", autocomplete: "off", spellcheck: "false" });
  const laneSelect = make("select", { id: "message-lanes" }, make("option", { value: "label" }, "labels of tokens"), make("option", { value: "process" }, "processes"));
  const labelSelect = make("select", { id: "message-label" }, make("option", { value: "0" }, "all"));
  const select = make("select", { id: "message-process" }, make("option", { value: "-1" }, "the busiest"), make("option", { value: "0" }, "all"));
  const callsOnly = make("input", { type: "checkbox", id: "calls-only" });
  const counterpart = (at) => (pairs.reply[at] >= 0 ? pairs.reply[at] : pairs.call[at]);
  // From when a call was sent to when its answer came, or else was sent.
  const answerNs = (at) => {
    const reply = pairs.reply[at];
    return reply < 0 ? -1 : messages.at[reply] + Math.max(0, messages.ns[reply]) - messages.at[at];
  };
  const found = make("span", { class: "faint", "aria-live": "polite" });

  // Who sends and receives is the number of a process and 1; 0 is nobody that is known.
  const laneText = (who) => (who === 0 ? "not known" : processText(who - 1));
  const laneId = (who) => (who === 0 ? "not known" : processes.id[who - 1]);
  const toText = (at) => (messages.to[at] > 0 ? laneText(messages.to[at]) : text(messages.to_name[at]) || "not known");
  const labelOf = (at) => (hasLabels ? messages.label[at] : 0);
  const labelText = (label) => text(label - 1);
  const isPrint = (at) => messages.ns[at] === -4;
  const whoOf = (at) => new Set([messages.from[at], messages.to[at]]);

  function fillSelects() {
    const every = messages.start.map((_, at) => at);
    const busy = byCount(countOf(every, whoOf)).filter(([who]) => who > 0);
    state.busiest = new Set(busy.slice(0, BUSIEST).map(([who]) => who));
    if (busy.length <= BUSIEST) select.options[0].remove();
    const known = (counts) => byCount(counts).filter(([key]) => key > 0).slice(0, 1000);
    const option = (name) => ([key, number]) => make("option", { value: String(key) }, `${name(key)} (${count(number)})`);
    select.append(...known(countOf(every, whoOf)).map(option(laneText)));
    if (hasLabels) labelSelect.append(...known(countOf(every, (at) => [labelOf(at)])).map(option(labelText)));
  }

  function fill() {
    const words = state.words.toLowerCase();
    const isFound = data.texts.map((words_) => words === "" || words_.toLowerCase().includes(words));
    const { process, label } = state;
    state.all = [];
    for (let at = 0; at < messages.at.length; at++) {
      if (!isInShown(messages.at[at], messages.at[at])) continue;
      if (callsOnly.checked && counterpart(at) < 0) continue;
      if (process === -1 && !(state.busiest.has(messages.from[at]) && state.busiest.has(messages.to[at]))) continue;
      if (process > 0 && messages.from[at] !== process && messages.to[at] !== process) continue;
      if (state.isByLabel && labelOf(at) === 0 || label !== 0 && labelOf(at) !== label) continue;
      if (isFound[messages.text[at]]) state.all.push(at);
    }
    state.lanesOf = "";
    state.now = 0;
    view.element.scrollTop = 0;
    found.textContent = plural(state.all.length, "message", "messages") + (state.isByLabel ? " with a token" : "");
  }

  // The lanes that have room: `ends` of a message are where its line begins and ends.
  const answerRoom = pairs.has ? 88 : 0;
  function lanes(width) {
    if (state.lanesOf === String(width)) return state.lanes;
    const left = width < 600 ? 78 : 96;
    const right = Math.max(pairs.has ? 168 : 110, Math.round(width * (width < 600 ? 0.3 : state.isByLabel ? 0.26 : 0.34)));
    const room = width - left - right;
    state.lanes = { left, right, ...(state.isByLabel ? labelLanes(left, room) : processLanes(left, room)) };
    state.lanesOf = String(width);
    return state.lanes;
  }

  function processLanes(left, room) {
    const counts = countOf(state.all, (at) => [messages.from[at], messages.to[at]]);
    const places = makePlaces(counts, left, room, PROCESS_LANE);
    const lane = placed(places, byCount(counts).map(([who]) => who).filter((who) => places.chosen.has(who)));
    const heads = lane.shown.map((who) => ({ x: lane.x(who), wide: lane.wide, lines: who === 0 ? ["not known", ""] : [laneId(who), text(processes.name[who - 1])], at: [lane.x(who)] }));
    if (!lane.isAll) heads.push({ x: lane.last, wide: lane.wide, lines: [plural(counts.size - lane.shown.length, "other", "others"), ""], at: [lane.last] });
    return { heads, borders: [], ends: (at) => [lane.x(messages.from[at]), lane.x(messages.to[at])] };
  }

  // Labels stand in the order of their first message; 0 stands for those that have no lane of their own.
  function labelLanes(left, room) {
    const counts = countOf(state.all, (at) => [labelOf(at)]);
    const places = makePlaces(counts, left, room, LABEL_LANE);
    const outer = placed(places, [...counts.keys()].filter((label) => places.chosen.has(label)));
    const laneOf = (at) => (places.chosen.has(labelOf(at)) ? labelOf(at) : 0);
    const members = new Map();
    for (const at of state.all) {
      const lane = laneOf(at);
      if (!members.has(lane)) members.set(lane, []);
      members.get(lane).push(at);
    }
    const inner = new Map();
    const heads = [];
    for (const [label, all] of members) {
      const x = label === 0 ? outer.last : outer.x(label);
      const who = countOf(all, whoOf);
      const inside = makePlaces(who, x - outer.wide / 2 + 4, outer.wide - 8, INNER_LANE);
      const lane = placed(inside, [...who.keys()].filter((key) => inside.chosen.has(key)));
      inner.set(label, lane);
      const name = label === 0 ? plural(counts.size - places.chosen.size, "other label", "other labels") : labelText(label);
      const names = lane.shown.map((key) => [laneId(key), lane.x(key)]);
      if (!lane.isAll) names.push([plural(who.size - lane.shown.length, "other", "others"), lane.last]);
      heads.push({ x, wide: outer.wide, lines: [name, ""], at: names.map(([, place]) => place), names, inner: lane.wide });
    }
    const borders = heads.map(({ x }) => x - outer.wide / 2).concat([left + room]);
    const ends = (at) => {
      const lane = inner.get(laneOf(at));
      return [lane.x(messages.from[at]), lane.x(messages.to[at])];
    };
    return { heads, borders, ends };
  }

  function draw(context, width, height, top) {
    const lane = lanes(width);
    context.font = fonts.text;
    context.textBaseline = "middle";
    const first = Math.max(0, Math.floor(top / LINE));
    const { now } = state;
    if (now >= first && state.all.length > 0) drawChosen(context, HEAD + now * LINE - top + LINE / 2, width);
    drawLanes(context, height, lane);
    for (let index = first; index < state.all.length; index++) {
      const y = HEAD + index * LINE - top + LINE / 2;
      if (y - LINE > height) break;
      drawMessage(context, state.all[index], y, width, lane);
    }
    drawHead(context, width, lane);
  }

  function drawChosen(context, y, width) {
    context.fillStyle = colors.get("raised");
    context.fillRect(0, y - LINE / 2, width, LINE);
    if (!view.isFocused()) return;
    context.strokeStyle = colors.get("focus");
    context.lineWidth = 1;
    context.strokeRect(0.5, y - LINE / 2 + 0.5, width - 1, LINE - 1);
  }

  function upright(context, x, from, to) {
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.stroke();
  }

  function drawLanes(context, height, lane) {
    context.strokeStyle = colors.get("line");
    context.lineWidth = 1;
    context.globalAlpha = 0.8;
    for (const { at } of lane.heads) at.forEach((x) => upright(context, x, HEAD, height));
    context.globalAlpha = 1;
    context.strokeStyle = colors.get("faint");
    lane.borders.forEach((x) => upright(context, Math.round(x) + 0.5, 0, height));
  }

  function drawHead(context, width, lane) {
    context.fillStyle = colors.get("canvas");
    context.fillRect(0, 0, width, HEAD);
    context.strokeStyle = colors.get("faint");
    context.lineWidth = 1;
    lane.borders.forEach((x) => upright(context, Math.round(x) + 0.5, 0, HEAD));
    context.textAlign = "center";
    for (const { x, wide, lines, names, inner } of lane.heads) {
      context.fillStyle = colors.get("ink");
      context.fillText(fit(context, lines[0], wide - 8), x, 12);
      context.fillStyle = colors.get("faint");
      context.fillText(fit(context, lines[1], wide - 8), x, 27);
      for (const [name, place] of names ?? []) context.fillText(fit(context, name, inner - 4), place, 28);
    }
    context.textAlign = "left";
    context.fillText("at", 6, 27);
    context.fillText("message", width - lane.right + 8 + answerRoom, 27);
    if (pairs.has) context.fillText("answer after", width - lane.right + 8, 27);
    context.fillRect(0, HEAD - 1, width, 1);
  }

  function drawMessage(context, at, y, width, lane) {
    const [from, to] = lane.ends(at);
    const ns = messages.ns[at];
    const hasCome = ns >= 0 || hasLabels && messages.taken[at] >= 0;
    const color = colors.get(isPrint(at) ? "process" : ns === -3 ? "system" : hasCome ? "slice" : "faint");
    context.strokeStyle = context.fillStyle = color;
    if (isPrint(at)) {
      context.beginPath();
      context.arc(from, y, 4, 0, Math.PI * 2);
      context.fill();
    } else {
      drawArrow(context, from, to, y, !hasCome);
    }
    if (racing.has(at)) drawRacing(context, to, y);
    context.fillStyle = colors.get("faint");
    context.fillText(fit(context, moment(messages.at[at]), lane.left - 10), 6, y);
    context.fillStyle = colors.get("ink");
    context.fillText(fit(context, text(messages.text[at]), lane.right - 14 - answerRoom), width - lane.right + 8 + answerRoom, y);
    if (pairs.reply[at] >= 0) context.fillText(fit(context, time(answerNs(at)), answerRoom - 6), width - lane.right + 8, y);
    if (pairs.call[at] >= 0) {
      context.fillStyle = colors.get("faint");
      context.fillText("answer", width - lane.right + 8, y);
    }
  }

  // A diamond where it came: another message could have come first, or it before another.
  function drawRacing(context, x, y) {
    context.fillStyle = colors.get("system");
    context.beginPath();
    context.moveTo(x, y - 7);
    [[x + 7, y], [x, y + 7], [x - 7, y]].forEach(([right, down]) => context.lineTo(right, down));
    context.fill();
  }

  function drawArrow(context, from, to, y, isDashed) {
    context.lineWidth = 1.5;
    context.setLineDash(isDashed ? [4, 3] : []);
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
  }

  function whenText(at) {
    const ns = messages.ns[at];
    const taken = hasLabels ? messages.taken[at] : -1;
    const when = moment(messages.at[at]);
    if (ns === -4) return `printed at ${when}`;
    if (ns === -2 && taken >= 0) return `taken at ${when}; when it was sent is not recorded`;
    if (ns === -2) return `came at ${when}; from whom is not recorded`;
    if (ns === -3) return `sent at ${when}, to nobody: there is no such process`;
    const parts = ns >= 0 ? [`in the queue ${time(ns)} later`] : [];
    if (taken >= 0) parts.push(`taken ${time(taken)} later`);
    return `sent at ${when}, ${parts.length > 0 ? parts.join(", ") : "not seen to come"}`;
  }

  function show() {
    const at = state.all[state.now];
    if (at === undefined) {
      say(detail, ["No message is like that."]);
    } else {
      const who = isPrint(at) ? laneText(messages.from[at]) : `${laneText(messages.from[at])} → ${toText(at)}`;
      const label = labelOf(at) > 0 ? [", label ", make("b", {}, labelText(labelOf(at)))] : [];
      say(detail, [
        make("div", {}, make("b", {}, who), `, ${whenText(at)}`, ...label),
        ...pairText(at),
        ...raceText(at),
        make("div", {}, text(messages.text[at])),
      ]);
    }
    view.redraw();
  }

  // The other message of a pair, and how long the answer took.
  function pairText(at) {
    const other = counterpart(at);
    if (other < 0) return [];
    const [call, isCall] = pairs.reply[at] >= 0 ? [at, true] : [other, false];
    const words = isCall ? `answered ${time(answerNs(call))} later` : `the answer, ${time(answerNs(call))} after the call`;
    return [make("div", {}, `${words} `, make("button", { type: "button", onclick: goToPair }, isCall ? "Go to the answer (r)" : "Go to the call (r)"))];
  }

  // The first race that it takes part in, and what else it races with.
  function raceText(at) {
    const all = racing.get(at) ?? [];
    if (all.length === 0) return [];
    const race = data.races.all[all[0]];
    const isTaken = race.taken?.at === at;
    const what = isTaken ? `${messageText(race.other)} could have come first` : race.taken === null ? "a receive had timed out by then" : `it could have come before ${messageText(race.taken)}`;
    const more = all.length > 1 ? `, and it takes part in ${plural(all.length - 1, "other kind", "other kinds")} of races` : "";
    return [make("div", {}, `Race ${race.number}: ${what}${more} `, make("button", { type: "button", onclick: () => go.race(all[0]) }, "Show both orders (o)"))];
  }

  function goToRace() {
    const all = racing.get(state.all[state.now]) ?? [];
    if (all.length > 0) go.race(all[0]);
  }

  function goToPair() {
    const other = counterpart(state.all[state.now] ?? 0);
    const index = state.all.indexOf(other);
    if (other >= 0 && index >= 0) goTo(index);
    view.element.focus();
  }

  // The calls of the stretch that were answered.
  const answered = () => Array.from(messages.at, (_, at) => at).filter((at) => pairs.reply[at] >= 0 && isInShown(messages.at[at], messages.at[at]));

  // Of each process that answers calls, how many and how fast.
  function answerTable() {
    const servers = new Map();
    answered().forEach((at) => {
      const key = messages.to[at] || messages.from[pairs.reply[at]];
      if (!servers.has(key)) servers.set(key, []);
      servers.get(key).push(answerNs(at));
    });
    const rows = [...servers].map(([who, all]) => ({ who, all: all.sort((a, b) => a - b) })).sort((a, b) => b.all.length - a.all.length);
    if (rows.length === 0) return [];
    const at = (share) => ({ all }) => time(all[Math.min(all.length - 1, Math.floor(share * all.length))]);
    const title = "Calls by the process that answers";
    return [make("h3", {}, title), makeTable(title, [
      ["Calls", ({ all }) => count(all.length), "number"],
      ["50 %", at(0.5), "number"], ["99 %", at(0.99), "number"], ["Max", at(1), "number"],
      ["Process", ({ who }) => make("button", { type: "button", onclick: () => only(who, 0) }, laneText(who)), "name"],
    ], rows.slice(0, 20))];
  }

  // Each call a row, the one that waited longest for its answer first.
  function callList() {
    const columns = [
      ["Answer after", (at) => time(answerNs(at)), "number", answerNs],
      ["Sent", (at) => moment(messages.at[at]), "number", (at) => messages.at[at]],
      ["From", (at) => laneText(messages.from[at]), "name", (at) => laneText(messages.from[at])],
      ["To", toText, "name", toText],
      ["Message", (at) => make("button", { type: "button", onclick: () => go.message(at) }, shorten(text(messages.text[at]))), "name", (at) => text(messages.text[at])],
    ];
    return makeList("calls", CALLS_TITLE, columns, (at) => `${laneText(messages.from[at])} ${toText(at)} ${text(messages.text[at])}`, 0);
  }

  function goTo(index) {
    state.now = Math.min(Math.max(index, 0), Math.max(0, state.all.length - 1));
    const y = state.now * LINE;
    const { element } = view;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + HEAD + LINE > element.scrollTop + element.clientHeight) element.scrollTop = y + HEAD + LINE - element.clientHeight + 4;
    show();
  }

  // To the next message of the same label, if there is one.
  function beside(step) {
    const label = labelOf(state.all[state.now]);
    for (let index = state.now + step; index >= 0 && index < state.all.length; index += step) {
      if (labelOf(state.all[index]) === label) return goTo(index);
    }
  }

  // Only the messages of one process or of one label, with the one that is chosen in sight.
  function only(process, label) {
    const at = state.all[state.now];
    [state.process, state.label] = [process, label];
    link.set("messages", process === select.options[0].value * 1 ? "" : process > 0 ? processes.id[process - 1] : "all");
    select.value = String(process);
    labelSelect.value = String(label);
    fill();
    goTo(Math.max(0, state.all.indexOf(at)));
  }

  function narrow() {
    const at = state.all[state.now];
    if (at === undefined) return;
    if (state.isByLabel) only(state.process, labelOf(at));
    else only(messages.to[at], state.label);
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
      ArrowLeft: hasLabels ? () => beside(-1) : undefined,
      ArrowRight: hasLabels ? () => beside(1) : undefined,
      Enter: narrow,
      r: goToPair,
      o: goToRace,
      Escape: () => {
        search.value = state.words = "";
        only(0, 0);
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
  select.addEventListener("change", () => only(Number(select.value), state.label));
  labelSelect.addEventListener("change", () => only(state.process, Number(labelSelect.value)));
  laneSelect.addEventListener("change", () => {
    state.isByLabel = laneSelect.value === "label";
    only(state.process, state.label);
  });

  const answers = make("div");
  const calls = pairs.has ? callList() : null;
  const fillAnswers = () => {
    answers.replaceChildren(...answerTable());
    calls?.fill(answered());
  };
  callsOnly.addEventListener("change", () => only(state.process, state.label));
  follow((what) => {
    if (what !== "stretch") return;
    only(state.process, state.label);
    fillAnswers();
  });
  fillSelects();
  fillAnswers();
  const chooseLabels = hasLabels ? [make("label", {}, "Lanes ", laneSelect), make("label", {}, "Label ", labelSelect)] : [];
  body.append(
    make("div", { class: "tools" }, make("label", {}, "Search ", search), ...chooseLabels, make("label", {}, "Process ", select),
      ...(pairs.has ? [make("label", {}, callsOnly, "Calls and answers only")] : []), found),
    view.element, detail, answers, ...(calls === null ? [] : [make("h3", {}, CALLS_TITLE), calls.element]));
  go.message = (at) => {
    [state.process, state.label] = [0, 0];
    [select.value, labelSelect.value] = ["0", "0"];
    if (!isInShown(messages.at[at], messages.at[at])) showStretch(0, PARTS);
    fill();
    const index = state.all.indexOf(at);
    if (index >= 0) goTo(index);
    showTab("messages");
    view.element.focus();
  };
  if (racing.size > 0) body.append(make("p", { class: "faint" }, "A diamond marks a message that takes part in a race: it, or another one, could have come first."));
  if (hasLabels) {
    body.append(make("p", { class: "faint" }, `A dot is printed text (seq_trace:print).${messages.is_traced_only ? " Messages without a token were not recorded." : ""}`));
  }
  if (messages.left > 0) {
    body.append(make("p", { class: "warning" }, `Left out, so that the page stays small: the oldest ${plural(messages.left, "message", "messages")}, those before ${moment(messages.at[0])}.`));
  }
  link.follow(() => {
    const id = link.get("messages");
    const process = processes.id.indexOf(id ?? "") + 1;
    state.process = id === null ? Number(select.options[0].value) : process;
    select.value = String(state.process);
    fill();
    show();
  });
}
