// The parts of the page, of which one is shown. A part is made when it is shown first.

const tabs = { all: [], now: "", first: "" };

function showTab(id, isGone) {
  const tab = tabs.all.find((one) => one.id === id) ?? tabs.all[0];
  if (!tab.isMade) {
    tab.isMade = true;
    tab.make();
  }
  for (const one of tabs.all) {
    const is = one === tab;
    byId(one.id).hidden = !is;
    one.button.setAttribute("aria-selected", String(is));
    one.button.tabIndex = is ? 0 : -1;
  }
  if (isGone) tab.button.focus();
  if (tabs.now === tab.id) return;
  tabs.now = tab.id;
  link.set("tab", tab.id === tabs.first ? "" : tab.id);
  scrollTo(0, 0);
  drawAll();
}

function makeTabs(list, first) {
  tabs.first = first;
  const bar = byId("tabs");
  tabs.all = list.map(([id, name, make_]) => ({
    id, make: make_, isMade: false,
    button: make("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": id, onclick: () => showTab(id) }, name),
  }));
  bar.append(...tabs.all.map(({ button }) => button));
  bar.addEventListener("keydown", (event) => {
    const at = tabs.all.findIndex(({ id }) => id === tabs.now);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.all.length - 1 }[event.key];
    if (to === undefined) return;
    showTab(tabs.all[(to + tabs.all.length) % tabs.all.length].id, true);
    event.preventDefault();
  });
  link.follow(() => showTab(link.get("tab") ?? first));
}

// How to go to a function or a place in other parts. A part that is not made yet is, and then puts its own way here.
const go = {};
for (const [name, id] of Object.entries({ search: "flame", place: "timeline", process: "timeline", timeline: "timeline", function: "functions", race: "races", message: "messages" })) {
  const first = go[name] = (...where) => {
    showTab(id);
    if (go[name] !== first) go[name](...where);
  };
}
