// Races: receives with messages that could have come first, and accesses that could have come the other way round, a row
// for each kind. Both orders of one are drawn beside each other.

const SVG = "http://www.w3.org/2000/svg";

function makeShape(tag, attributes, words) {
  const shape = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, String(value));
  if (words !== undefined) shape.textContent = words;
  return shape;
}

// The races that each message of the page takes part in, by the message's place.
function racesOfMessages() {
  const all = new Map();
  data.races.all.forEach((race, index) => {
    for (const message of [race.taken, race.other]) {
      if (message === null || message.at < 0) continue;
      if (!all.has(message.at)) all.set(message.at, []);
      all.get(message.at).push(index);
    }
  });
  return all;
}

const partnerText = (who) => (who > 0 ? processText(who - 1) : "not known");
const whence = (message) => (message.is_change !== null ? `${partnerText(message.from)} ${doesText(message)} it` : message.is_end ? `the end of ${partnerText(message.from)}` : message.from > 0 ? `from ${partnerText(message.from)}` : "");
const messageText = (message) => `${message.label}${message.is_end || message.is_change !== null ? "," : ""} ${whence(message)}`.trim();

// What an access does.
const doesText = (message) => (message.is_change === null ? "accesses" : message.is_change ? "changes" : "reads");

// The lane of what is accessed; processes have their numbers.
const OBJECT = -1;

const ORDER = { wide: 420, head: 44, line: 30, edge: 70 };

// The lanes of processes, and of what is accessed, for so many steps: the drawing, and where each lane is.
function drawLanes(title, lanes, steps, object) {
  const { wide, head, line, edge } = ORDER;
  const x = (who) => edge + lanes.indexOf(who) * (wide - 2 * edge) / Math.max(1, lanes.length - 1);
  const height = head + steps.length * line + 8;
  const svg = makeShape("svg", { viewBox: `0 0 ${wide} ${height}`, class: "order", role: "img", "aria-label": `${title}: ${steps.map(({ words }) => words).join(", then ")}` });
  for (const who of lanes) {
    const [top, name] = who === OBJECT ? ["", object] : who > 0 ? [processes.id[who - 1], text(processes.name[who - 1])] : ["not known", ""];
    svg.append(
      makeShape("text", { x: x(who), y: 14, class: "order-head" }, top),
      makeShape("text", { x: x(who), y: 30, class: "order-name" }, cutName(name, who === OBJECT ? 40 : 22)),
      makeShape("line", { x1: x(who), y1: head - 6, x2: x(who), y2: height, class: "order-lane" }));
  }
  return [svg, x];
}

// One order: `steps` are messages that come, and what the receiver does.
function drawOrder(title, race, steps) {
  const receiver = race.process + 1;
  const messages = race.is_end ? [race.other] : [race.taken, race.other];
  const senders = messages.filter((message) => message !== null).map((message) => message.from);
  const lanes = [...new Set([senders[0], receiver, ...senders.slice(1)])];
  const { head, line } = ORDER;
  const [svg, x] = drawLanes(title, lanes, steps, "");
  steps.forEach((step, index) => {
    const y = head + index * line + line / 2;
    if (step.message) {
      svg.append(...drawComing(x(step.message.from), x(receiver), y, step));
    } else {
      svg.append(makeShape("circle", { cx: x(receiver), cy: y, r: 5, class: `order-${step.kind}` }), makeWords(x(receiver), y, step.words));
    }
  });
  return make("figure", { class: "order" }, make("figcaption", {}, title), svg);
}

// Words beside a lane: before the last one, as the drawing ends behind it.
function makeWords(lane, y, words) {
  const isLast = lane > ORDER.wide / 2;
  return makeShape("text", { x: lane + (isLast ? -10 : 10), y: y + 4, class: "order-words", "text-anchor": isLast ? "end" : "start" }, words);
}

function drawComing(from, to, y, { message, words, kind }) {
  if (from === to) return [makeWords(to, y, words)];
  const side = Math.sign(from - to);
  return [
    makeShape("line", { x1: from, y1: y, x2: to + side * 7, y2: y, class: `order-arrow order-${kind}`, "stroke-dasharray": message.is_end ? "5 3" : "none" }),
    makeShape("path", { d: `M${to} ${y}l${side * 9} -5v10z`, class: `order-${kind}` }),
    makeShape("text", { x: (from + to) / 2, y: y - 5, class: "order-label" }, words),
  ];
}

// One order of two accesses.
function drawAccesses(title, race, steps) {
  const { head, line } = ORDER;
  const [svg, x] = drawLanes(title, [race.taken.from, OBJECT, race.other.from], steps, race.object);
  steps.forEach(({ message, words, kind }, index) => {
    const y = head + index * line + line / 2;
    svg.append(...drawComing(x(message.from), x(OBJECT), y, { message, words, kind }));
  });
  return make("figure", { class: "order" }, make("figcaption", {}, title), svg);
}

// What came and was taken, as it was and the other way around.
function bothOrders(race) {
  if (race.is_end) {
    const act = { kind: "taken", words: race.taken.label };
    const signal = { message: race.other, kind: "other", words: race.other.label };
    return [
      drawOrder("As recorded", race, [act, signal]),
      drawOrder("The other order", race, [signal, { kind: "other", words: "is ended" }]),
    ];
  }
  if (race.object !== "") {
    const step = (message, kind) => ({ message, kind, words: `${message.label} ${doesText(message)}` });
    const [first, second] = [step(race.taken, "taken"), step(race.other, "other")];
    return [drawAccesses("As recorded", race, [first, second]), drawAccesses("The other order", race, [second, first])];
  }
  const comes = (message, kind) => ({ message, kind, words: message.label });
  const takes = (message, kind) => ({ kind, words: `takes ${message.label}` });
  const other = [comes(race.other, "other"), takes(race.other, "other")];
  const recorded = race.taken === null ? [{ kind: "timeout", words: "times out" }] : [comes(race.taken, "taken"), takes(race.taken, "taken")];
  const late = race.taken === null ? [] : [comes(race.taken, "taken")];
  return [
    drawOrder("As recorded", race, [...recorded, comes(race.other, "other")]),
    drawOrder("The other order", race, [...other, ...late]),
  ];
}

// What a message says, and where it was sent.
function messageFacts(message) {
  const says = message.at >= 0 ? [make("div", {}, text(data.messages.text[message.at]))] : [];
  const where = message.is_change === null && message.from > 0 ? "sent in" : "in";
  const sent = message.site === "" ? [] : [make("div", { class: "faint" }, `${where} ${message.site}`)];
  return [make("dt", {}, message.label), make("dd", {}, whence(message), says, sent)];
}

const whereText = (race) => race.object || processText(race.process);

function makeRaces() {
  const body = byId("races-body");
  const { races } = data;
  if (races.missing !== "" || races.all.length === 0) {
    body.append(make("p", { class: "faint" }, races.missing || "Nothing could have come in another order."));
    return;
  }
  const detail = makeDetail();
  const libraries = make("input", { type: "checkbox", id: "races-libraries" });
  const button = (race, words) => make("button", { type: "button", onclick: () => show(race) }, words);
  const lines = (place, words) => (place === "" ? words : [make("div", {}, words), make("div", { class: "faint" }, place)]);
  const columns = [
    ["Race", (race) => button(race, String(race.number)), "number", (race) => -race.number],
    ["Receiver, or what is accessed", (race) => lines(race.site, button(race, whereText(race))), "name", whereText],
    ["Came first", (race) => (race.taken === null ? "nothing: it timed out" : lines(race.taken.site, messageText(race.taken))), "name", (race) => (race.taken === null ? "" : messageText(race.taken))],
    ["Could have come first", (race) => lines(race.other.site, messageText(race.other)), "name", (race) => messageText(race.other)],
    ["More of the kind", (race) => count(race.more), "number", (race) => race.more],
  ];
  const words = (race) => [whereText(race), race.site, race.taken === null ? "" : messageText(race.taken), race.taken?.site ?? "", messageText(race.other), race.other.site].join(" ");
  const list = makeList("races", "Races", columns, words, 0);

  function fill() {
    list.fill(races.all.filter((race) => libraries.checked || !races.has_sites || race.is_of_application));
  }

  function show(race) {
    link.set("race", race.number);
    const known = race.is_same ? "The same receive took the other message later." : "The receive may have no clause for the other message.";
    const same = race.is_same === null ? [] : [race.has_clause ? "The receive has a clause for the other message." : known];
    const goTo = (message, name) => (message !== null && message.at >= 0
      ? [make("button", { type: "button", onclick: () => go.message(message.at) }, `Go to ${name}`)] : []);
    say(detail, [
      make("h3", {}, `Race ${race.number}: ${whereText(race)}`),
      make("div", { class: "orders" }, bothOrders(race)),
      make("dl", { class: "facts" }, [race.taken, race.other].filter((message) => message !== null).map(messageFacts)),
      ...same.map((sentence) => make("p", {}, sentence)),
      make("p", {}, "The log that has it the other way around: ", make("code", {}, `beamline races ${data.file}${races.has_sites ? "" : " --no-replay"} --prefix ${race.number} -o other.log`)),
      make("div", { class: "tools" }, goTo(race.taken, "what was taken"), goTo(race.other, "the other message")),
    ]);
    detail.scrollIntoView({ block: "nearest" });
  }

  libraries.addEventListener("change", fill);
  go.race = (index) => show(races.all[index]);
  const tools = races.has_sites ? [make("label", {}, libraries, "Races of libraries, too")] : [];
  body.append(make("div", { class: "tools" }, tools), detail, list.element);
  if (!races.has_sites) body.append(make("p", { class: "faint" }, "Where in the code the messages are sent and taken, and what is accessed, is not recorded. Record with --events order,sites."));
  if (races.left > 0) body.append(make("p", { class: "warning" }, `Left out, so that the page stays small: ${plural(races.left, "kind", "kinds")} of races. beamline races prints them.`));
  fill();
  link.follow(() => {
    const race = races.all.find(({ number }) => String(number) === link.get("race"));
    if (race !== undefined) show(race);
  });
}
