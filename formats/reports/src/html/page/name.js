// The name of a function without its module: what is left of it where there is little room. Anything else, such as a
// process, is left whole. The page and the SVG flame graphs have this.
function shortName(name) {
  if (name[0] === "<" || !/\/\d+ ?$/.test(name)) return name;
  let quote = "";
  let dot = -1;
  for (let at = 0; at < name.length; at++) {
    const letter = name[at];
    if (letter === "\\") at++;
    else if (quote !== "") quote = letter === quote ? "" : quote;
    else if (letter === "'" || letter === '"') quote = letter;
    else if (letter === ":") return name.slice(at + 1);
    else if (letter === "." && name[at + 1] !== "." && name[at + 1] !== "/") dot = at;
  }
  return /^[A-Z]/.test(name) && dot >= 0 ? name.slice(dot + 1) : name;
}

