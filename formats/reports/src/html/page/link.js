// What is shown stands in the address, so that a view can be shared: `#tab=flame&from=12&to=20`. A part sets its values
// as they change, and follows them when somebody has changed the address.

const link = {
  values: new URLSearchParams(location.hash.slice(1)),
  followers: [],
  // The address as last read or written.
  address: location.hash,
  isAsked: false,
  writtenAt: 0,
  get(name) {
    return this.values.get(name);
  },
  // The number of a value, if it is a whole one within limits.
  number(name, from, to) {
    const number = Number(this.values.get(name) ?? NaN);
    return Number.isInteger(number) && number >= from && number <= to ? number : null;
  },
  // An empty value is what is shown at first, and needs no place.
  set(name, value) {
    if (value === "" || value === null || value === false) this.values.delete(name);
    else this.values.set(name, String(value));
    if (this.isAsked) return;
    this.isAsked = true;
    // Browsers refuse many changes of the address in a row.
    setTimeout(() => this.write(), 150);
  },
  write() {
    this.isAsked = false;
    // Somebody has changed the address and the event is still to come: her change takes precedence.
    if (location.hash !== this.address) return;
    const words = this.values.toString();
    if (words === location.hash.slice(1)) return;
    // Back restores the view before; changes that come one soon after another, as in typing, are one.
    const now = Date.now();
    const isOneMore = now - this.writtenAt < 1000;
    this.writtenAt = now;
    history[isOneMore ? "replaceState" : "pushState"](null, "", words === "" ? "#" : `#${words}`);
    this.address = location.hash;
  },
  // Does it now, and again when the address is another.
  follow(act) {
    this.followers.push(act);
    act();
  },
};
addEventListener("hashchange", () => {
  link.address = location.hash;
  link.values = new URLSearchParams(location.hash.slice(1));
  link.writtenAt = Date.now();
  for (const act of [...link.followers]) act();
});
