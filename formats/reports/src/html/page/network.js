// Sockets: the peers with how soon they answered, and each socket with who waited for it.

function peerTable(rows) {
  const title = "Peers";
  return make("div", {}, make("h3", {}, title),
    make("p", { class: "faint" }, "An answer of a peer takes from the last bytes sent to it until the first that came then. Of clients, it is the program that answers: from the last bytes that came until the first that were sent then."),
    makeTable(title, [
      ["Waited", (row) => time(row.waited_ns), "number"],
      ["Answers", (row) => (row.answers.count > 0 ? count(row.answers.count) : ""), "number"],
      ["Mean", (row) => (row.answers.count > 0 ? time(row.answers.total_ns / row.answers.count) : ""), "number"],
      ["Longest", (row) => (row.answers.count > 0 ? time(row.answers.longest_ns) : ""), "number"],
      ["In", (row) => size(row.in_bytes), "number"],
      ["Out", (row) => size(row.out_bytes), "number"],
      ["Sockets", (row) => count(row.connections), "number"],
      ["Failed", (row) => (row.failures > 0 ? count(row.failures) : ""), "number"],
      ["Peer", (row) => row.peer, "name"],
    ], rows));
}

// A moment of a process of a socket: a way to its place in the timeline.
const waitText = (wait) => [
  make("button", { type: "button", onclick: () => go.place(wait.process, wait.longest_at_ns, wait.longest_ns) }, `${wait.process} ${wait.name}`.trim()),
  ` waited ${time(wait.total_ns)} ${wait.what}, ${wait.times === 1 ? "once" : `${count(wait.times)} times, at most ${time(wait.longest_ns)}`}`,
];

function makeNetwork() {
  const body = byId("network-body");
  const { summary, waits } = data;
  const connections = summary.connections ?? [];
  if (waits.missing !== "" || connections.length === 0) {
    body.append(make("p", { class: "faint" }, waits.missing || "No socket was open while it was recorded."));
    return;
  }
  const openFor = (row) => (row.opened_ns === null ? -1 : (row.closed_ns ?? summary.end_ns) - row.opened_ns);
  const what = (row) => make("div", {}, row.text,
    row.accepted > 0 ? make("span", { class: "faint" }, `, ${count(row.accepted)} accepted`) : null,
    row.is_closed_by_peer ? make("span", { class: "faint" }, ", closed by its peer") : null,
    (row.failure ?? "") === "" ? null : make("span", { class: "faint" }, `, ${row.failure}`),
    (row.waits ?? []).slice(0, 3).map((wait) => make("div", { class: "faint" }, waitText(wait))));
  const owner = (row) => `${row.owner} ${row.owner_name}`.trim();
  const number = (name, key, show) => [name, (row) => show(key(row)), "number", key];
  const columns = [
    number("Waited", (row) => row.waited_ns, time),
    number("In", (row) => row.in_bytes, size),
    number("Out", (row) => row.out_bytes, size),
    number("Received", (row) => row.ins, count),
    number("Sent", (row) => row.outs, count),
    number("Longest answer", (row) => row.answers.longest_ns, (ns) => (ns > 0 ? time(ns) : "")),
    number("Open for", openFor, (ns) => (ns < 0 ? "" : time(ns))),
    ["Socket", what, "name", (row) => row.text],
    ["Owner", owner, "name", owner],
  ];
  const list = makeList("network", "All sockets", columns, (row) => `${row.text} ${owner(row)} ${row.failure ?? ""}`, 0);
  const left = waits.sockets_left > 0 ? make("p", { class: "faint" }, `${count(waits.sockets_left)} more sockets, which were waited for less, are not on the page.`) : null;
  body.append(peerTable(summary.peers ?? []), make("h3", {}, "Sockets"), ...[left].filter((one) => one !== null), list.element);
  list.fill(connections);
}
