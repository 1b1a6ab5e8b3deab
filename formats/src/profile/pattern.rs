//! Which functions are meant: what a person writes of modules, functions and arities.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name;

/// Which functions are meant, as Erlang or Elixir writes them: `M:F/A`, `M:F` or `M`; `Mod.fun/arity`, `Mod.fun`, `Mod`, or
/// `Mod.*` for a module and those below it. `_` and `*` stand for any; `*` also for a part of a name. In quotes it is itself.
/// Also what stands in code and in error messages: `&Mod.fun/arity`, `fun M:F/A`, `{M, F, A}`, and a call, `M:F(A, B)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    module: Part,
    function: Part,
    arity: Option<u8>,
}

/// What is said of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Any,
    Is(String),
    /// With `*` for any part of it.
    Like(String),
    /// A module, or one whose name goes on with a dot.
    Below(String),
}

impl Part {
    /// Of a name without quotes.
    fn bare(text: &str) -> Part {
        match text {
            "_" | "*" => Part::Any,
            text if text.contains('*') => Part::Like(text.to_owned()),
            text => Part::Is(text.to_owned()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Part::Any => true,
            Part::Is(text) => text == name,
            Part::Like(text) => is_like(name, text),
            Part::Below(text) => {
                let rest = name.strip_prefix(text.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        }
    }

    /// From 0 to 1, for what is meant; none where nothing is said.
    fn likeness(&self, name: &str) -> Option<f64> {
        match self {
            Part::Any => None,
            Part::Like(_) => Some(f64::from(u8::from(self.matches(name)))),
            // What all modules of Elixir have in common is no likeness.
            Part::Is(text) | Part::Below(text) => Some(strsim::normalized_damerau_levenshtein(
                name::alias(text).unwrap_or(text),
                name::alias(name).unwrap_or(name),
            )),
        }
    }
}

/// Is a name like this text, in which `*` is any part?
fn is_like(name: &str, text: &str) -> bool {
    let Some((first, rest)) = text.split_once('*') else {
        return name == text;
    };
    let Some(name) = name.strip_prefix(first) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| is_like(&name[at..], rest))
}

/// Names that are alike to at least this part may be taken for each other.
const LIKE: f64 = 0.6;

impl Pattern {
    /// All functions of a module.
    #[must_use]
    pub fn of_module(module: &str) -> Pattern {
        Pattern {
            module: Part::Is(module.to_owned()),
            function: Part::Any,
            arity: None,
        }
    }

    /// Whether a function is meant. A module of an escript is known by its stable name.
    #[must_use]
    pub fn matches(&self, module: &str, function: &str, arity: u32) -> bool {
        self.module.matches(name::stable(module))
            && self.function.matches(function)
            && self.arity.is_none_or(|a| u32::from(a) == arity)
    }

    /// The one function that can be meant, if there is only one.
    #[must_use]
    pub fn function(&self) -> Option<(&str, &str, u8)> {
        let (module, function, arity) = self.name()?;
        Some((module, function, arity?))
    }

    /// The one name of a function that can be meant, and the arity, if the pattern has one.
    #[must_use]
    pub fn name(&self) -> Option<(&str, &str, Option<u8>)> {
        match (&self.module, &self.function) {
            (Part::Is(module), Part::Is(function)) => Some((module, function, self.arity)),
            _ => None,
        }
    }

    /// The one module that can be meant, if there is only one.
    #[must_use]
    pub fn module(&self) -> Option<&str> {
        match &self.module {
            Part::Is(module) => Some(module),
            _ => None,
        }
    }

    /// Those of `functions`, three at most, that look like what it names, as it names them: module, function and
    /// arity, or less.
    pub fn near<'a>(
        &self,
        functions: impl IntoIterator<Item = (&'a str, &'a str, u32)>,
    ) -> Vec<String> {
        let mut near: Vec<(f64, String)> = Vec::new();
        for (module, function, arity) in functions {
            let module = name::stable(module);
            let likeness = [
                self.module.likeness(module),
                self.function.likeness(function),
            ];
            let likeness = likeness.into_iter().flatten().reduce(f64::min);
            let Some(likeness) = likeness.filter(|likeness| *likeness >= LIKE) else {
                continue;
            };
            let text = match (&self.function, self.arity) {
                (Part::Any, _) => name::module(module),
                (_, None) => name::function(module, function),
                _ => name::mfa(module, function, arity),
            };
            if !near.iter().any(|(_, known)| *known == text) {
                near.push((likeness, text));
            }
        }
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.into_iter().take(3).map(|(_, text)| text).collect()
    }
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePatternError(String);

impl fmt::Display for ParsePatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; expected M:F/A, M:F or M, or as Elixir writes it Mod.fun/arity, Mod.fun, Mod or Mod.*, with _ or * \
             for any",
            self.0
        )
    }
}

impl std::error::Error for ParsePatternError {}

/// Takes a name in quotes from behind the first of them; gives what follows.
fn take_quoted<'a>(text: &'a str, quote: char, what: &str) -> Result<(Part, &'a str), String> {
    match name::unquote(text, quote) {
        Some((name, rest)) => Ok((Part::Is(name), rest)),
        None => Err(format!("the {what} has no closing quote")),
    }
}

/// The module of a text, what separates it from the function if one follows, and the rest.
type Module<'a> = (Part, Option<char>, &'a str);

/// Takes a module from the front.
fn take_module(text: &str) -> Result<Module<'_>, String> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let (module, rest) = take_quoted(quoted, '\'', "module")?;
        return match rest.strip_prefix(':') {
            Some(rest) => Ok((module, Some(':'), rest)),
            None if rest.is_empty() => Ok((module, None, "")),
            None => Err("a ':' is missing after the module".to_owned()),
        };
    }
    if let Some(module) = take_alias(text) {
        return Ok(module);
    }
    // As Elixir writes a module of Erlang.
    let (text, separator) = match text.strip_prefix(':') {
        Some(rest) => (rest, '.'),
        None => (text, ':'),
    };
    let (module, rest) = match text.split_once(separator) {
        Some((module, rest)) => (module, Some(rest)),
        None => (text, None),
    };
    if module.is_empty() {
        return Err("the module is missing".to_owned());
    }
    if module.contains('/') {
        return Err("the module is missing before the function".to_owned());
    }
    Ok((
        Part::bare(module),
        rest.map(|_| separator),
        rest.unwrap_or(""),
    ))
}

/// Takes an alias, as Elixir writes modules, from the front: parts that begin with capitals.
fn take_alias(text: &str) -> Option<Module<'_>> {
    let is_part = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|first| first.is_ascii_uppercase())
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '*'))
    };
    let before_function = text.split(':').next().unwrap_or(text);
    let parts = before_function.split('.').take_while(|part| is_part(part));
    let length = parts.map(|part| part.len() + 1).sum::<usize>();
    let (alias, rest) = text.split_at(length.checked_sub(1)?);
    let full = match alias {
        "Elixir" => alias.to_owned(),
        alias if alias.starts_with("Elixir.") => alias.to_owned(),
        alias => format!("Elixir.{alias}"),
    };
    let mut after = rest.chars();
    Some(match (after.next(), after.as_str()) {
        (Some('.'), "*") => (Part::Below(full), None, ""),
        (separator, after) => (Part::bare(&full), separator, after),
    })
}

/// Takes a function from the front; gives what follows.
fn take_function(text: &str) -> Result<(Part, &str), String> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return take_quoted(quoted, quote, "function");
        }
    }
    // What a call has in its brackets is no part of the name.
    let name = text.split_once('(').map_or(text, |(name, _)| name);
    // An operator may be named `/`: only the last slash is before the arity.
    let slash = name.rfind('/').filter(|at| *at > 0);
    let end = slash.unwrap_or(name.len());
    match text.split_at(end) {
        ("", _) => Err("the function is missing".to_owned()),
        (function, rest) => Ok((Part::bare(function), rest)),
    }
}

/// An arity; nothing for any.
fn arity(text: &str) -> Result<Option<u8>, String> {
    match text {
        "_" | "*" => Ok(None),
        text => match text.parse() {
            Ok(arity) => Ok(Some(arity)),
            Err(_) => Err(format!("the arity '{text}' is not 0 to 255")),
        },
    }
}

/// What stands between commas up to the bracket that closes, without the spaces around it; and the text behind that bracket.
/// Commas in quotes and in inner brackets separate nothing.
fn elements(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut elements, mut from, mut depth, mut at) = (Vec::new(), 0, 0, 0);
    loop {
        let rest = &text[at..];
        let c = rest.chars().next()?;
        let mut next = at + c.len_utf8();
        match c {
            '\'' | '"' => next = text.len() - name::unquote(&text[next..], c)?.1.len(),
            '(' | '[' | '{' => depth += 1,
            '<' if rest.starts_with("<<") => (depth, next) = (depth + 1, at + 2),
            '>' if rest.starts_with(">>") => (depth, next) = (depth - 1, at + 2),
            ',' | ')' | ']' | '}' if depth == 0 => {
                elements.push(text[from..at].trim());
                from = next;
                if c != ',' {
                    break;
                }
            }
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        at = next;
    }
    if elements == [""] {
        elements.clear();
    }
    Some((elements, &text[from..]))
}

/// `{M, F, A}` or `{M, F}`, from behind its bracket on. As in Erlang's trace patterns, `'_'` stands for any.
fn tuple(text: &str) -> Result<Pattern, String> {
    let (mut elements, rest) = elements(text).ok_or("the '}' is missing")?;
    for element in elements.iter_mut().filter(|element| **element == "'_'") {
        *element = "_";
    }
    let (module, function, count) = match elements[..] {
        [module, function] => (module, function, "_"),
        [module, function, count] => (module, function, count),
        _ => return Err("a tuple has a module, a function and an arity,".to_owned()),
    };
    let (module, None, "") = take_module(module)? else {
        return Err("the first element is no module".to_owned());
    };
    let (function, "") = take_function(function.strip_prefix(':').unwrap_or(function))? else {
        return Err("the second element is no function".to_owned());
    };
    if !rest.is_empty() {
        return Err("something stands behind the '}'".to_owned());
    }
    let arity = arity(count)?;
    Ok(Pattern {
        module,
        function,
        arity,
    })
}

/// The number of arguments, from behind the bracket of a call on.
fn arguments(text: &str) -> Result<u8, String> {
    match elements(text) {
        Some((arguments, "")) => u8::try_from(arguments.len())
            .map_err(|_| format!("{} arguments are more than 255", arguments.len())),
        Some(_) => Err("something stands behind the ')'".to_owned()),
        None => Err("the ')' is missing".to_owned()),
    }
}

/// The pattern of a text.
fn read(text: &str) -> Result<Pattern, String> {
    let text = text.trim();
    let text = text.strip_prefix('&').unwrap_or(text);
    let text = text.strip_prefix("fun ").unwrap_or(text).trim_start();
    if let Some(inner) = text.strip_prefix('{') {
        return tuple(inner);
    }
    let (module, separator, rest) = take_module(text)?;
    let mut pattern = Pattern {
        module,
        function: Part::Any,
        arity: None,
    };
    match separator {
        None => return Ok(pattern),
        Some(':' | '.') => {}
        Some(_) => return Err("a ':' or '.' is missing after the module".to_owned()),
    }
    let (function, rest) = take_function(rest)?;
    pattern.function = function;
    pattern.arity = match (rest.chars().next(), rest.get(1..)) {
        (None, _) => None,
        (Some('('), Some(rest)) => Some(arguments(rest)?),
        (Some('/'), Some(rest)) => arity(rest)?,
        _ => return Err("a '/' is missing before the arity".to_owned()),
    };
    Ok(pattern)
}

impl FromStr for Pattern {
    type Err = ParsePatternError;

    fn from_str(text: &str) -> Result<Self, ParsePatternError> {
        read(text).map_err(|why| ParsePatternError(format!("{why} in '{text}'")))
    }
}

impl TryFrom<String> for Pattern {
    type Error = ParsePatternError;

    fn try_from(text: String) -> Result<Self, ParsePatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    /// So short that it reads back as the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = match &self.module {
            Part::Any => "_".to_owned(),
            Part::Is(text) => name::module(text),
            Part::Like(text) => text.strip_prefix("Elixir.").unwrap_or(text).to_owned(),
            Part::Below(text) => format!("{}.*", text.strip_prefix("Elixir.").unwrap_or(text)),
        };
        f.write_str(&module)?;
        if self.function == Part::Any && self.arity.is_none() {
            return Ok(());
        }
        let is_alias = module.starts_with(|c: char| c.is_ascii_uppercase());
        f.write_str(if is_alias { "." } else { ":" })?;
        match &self.function {
            Part::Is(text) if is_alias => f.write_str(&name::elixir_function(text))?,
            Part::Is(text) => f.write_str(&name::atom(text))?,
            Part::Like(text) => f.write_str(text)?,
            Part::Any | Part::Below(_) => f.write_str("_")?,
        }
        self.arity.map_or(Ok(()), |arity| write!(f, "/{arity}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is meant of these: at the places of `1`.
    const ALL: [(&str, &str, u32); 12] = [
        ("lists", "seq", 2),
        ("lists", "seq_loop", 3),
        ("erlang", "*", 2),
        ("erlang", "/", 2),
        ("Elixir.Demo", "slow_fib", 1),
        ("Elixir.Demo", "-slow_fib/1-fun-0-", 1),
        ("Elixir.Demo", "ok?", 0),
        ("Elixir.Demo.Server", "call", 2),
        ("Elixir.Demolition", "+", 2),
        ("Elixir.foo", "f", 0),
        ("load_escript__escript__1795__362539__512__2", "main", 1),
        ("it's a", "x:y", 1),
    ];

    #[test]
    fn functions_are_meant_as_erlang_and_as_elixir_write_them() {
        for (text, expect) in [
            ("_", "111111111111"),
            ("*", "111111111111"),
            ("lists", "110000000000"),
            ("lists:_", "110000000000"),
            ("lists:*", "110000000000"),
            ("lists:seq", "100000000000"),
            ("lists:seq*", "110000000000"),
            ("l*s:*_*/3", "010000000000"),
            ("lists:seq/2", "100000000000"),
            ("lists:seq/3", "000000000000"),
            (":lists", "110000000000"),
            (":lists.seq/2", "100000000000"),
            ("erlang:*/2", "001100000000"),
            ("erlang:'*'/2", "001000000000"),
            ("erlang://2", "000100000000"),
            ("erlang:'/'", "000100000000"),
            ("_:_/0", "000000100100"),
            ("Demo", "000011100000"),
            ("Elixir.Demo", "000011100000"),
            ("'Elixir.Demo'", "000011100000"),
            ("Demo._", "000011100000"),
            ("Demo.*", "000011110000"),
            ("Demo*", "000011111000"),
            ("Demo.*/1", "000011000000"),
            ("Demo.slow_fib", "000010000000"),
            ("Demo.slow_fib/1", "000010000000"),
            ("Demo:slow_fib/1", "000010000000"),
            ("'Elixir.Demo':slow_fib/1", "000010000000"),
            ("Demo.*slow*", "000011000000"),
            ("Demo.\"-slow_fib/1-fun-0-\"/1", "000001000000"),
            ("Demo.ok?/0", "000000100000"),
            ("Demo.Server.call", "000000010000"),
            ("Demo.S*", "000000010000"),
            ("*.Server:call", "000000010000"),
            ("Demolition.+/2", "000000001000"),
            ("Elixir.*", "000011111100"),
            ("'Elixir.foo'", "000000000100"),
            ("load_escript:main/1", "000000000010"),
            ("'it\\'s a':'x:y'/1", "000000000001"),
            ("&:lists.seq/2", "100000000000"),
            ("&Demo.slow_fib/1", "000010000000"),
            ("fun lists:seq/2", "100000000000"),
            ("{lists,seq,2}", "100000000000"),
            (" { lists , seq , 2 } ", "100000000000"),
            ("{lists, seq}", "100000000000"),
            ("{lists, '_', '_'}", "110000000000"),
            ("{lists, _, _}", "110000000000"),
            ("{'Elixir.Demo', slow_fib, 1}", "000010000000"),
            ("{Demo, :slow_fib, 1}", "000010000000"),
            ("{:lists, :seq, 2}", "100000000000"),
            ("{'it\\'s a', 'x:y', 1}", "000000000001"),
            ("lists:seq(1,10)", "100000000000"),
            ("lists:seq(1, f(2, [3, 4]))", "100000000000"),
            ("lists:seq(\"a)\", ',')", "100000000000"),
            (":lists.seq(1, 10)", "100000000000"),
            ("lists:seq(1)", "000000000000"),
            ("Demo.slow_fib(10)", "000010000000"),
            ("Demo.ok?()", "000000100000"),
            ("Demo.Server.call(%{a: 1}, <<1, 2>>)", "000000010000"),
        ] {
            let pattern: Pattern = text.parse().expect(text);
            let meant = ALL.map(|(module, name, arity)| pattern.matches(module, name, arity));
            let meant = meant.map(|is| if is { '1' } else { '0' });
            assert_eq!(meant.iter().collect::<String>(), expect, "{text}");
            assert_eq!(pattern.to_string().parse(), Ok(pattern), "{text}");
        }
    }

    #[test]
    fn what_tables_print_is_a_pattern_of_that_function_alone() {
        for (module, function, arity) in ALL {
            let module = name::stable(module);
            let text = name::mfa(module, function, arity);
            let pattern: Pattern = text.parse().expect(&text);
            let one = (module, function, arity.try_into().expect("small"));
            assert_eq!(pattern.function(), Some(one), "{text}");
            assert_eq!(pattern.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for (text, why) in [
            ("", "the module is missing"),
            ("lists:", "the function is missing"),
            ("Demo.", "the function is missing"),
            ("map/2", "the module is missing before the function"),
            ("lists:seq/x", "the arity 'x' is not 0 to 255"),
            ("lists:seq/256", "the arity '256' is not 0 to 255"),
            ("Demo.f/256", "the arity '256' is not 0 to 255"),
            ("'lists", "the module has no closing quote"),
            ("Demo.\"f", "the function has no closing quote"),
            ("'a'b", "a ':' is missing after the module"),
            ("m:'f'g", "a '/' is missing before the arity"),
            ("&lists.seq/2", "the module is missing before the function"),
            ("lists:seq(1, 2", "the ')' is missing"),
            ("lists:seq(1, 2) + 1", "something stands behind the ')'"),
            ("{lists, seq, 2", "the '}' is missing"),
            ("{lists}", "a tuple has a module, a function and an arity,"),
            (
                "{lists, seq, 2, 3}",
                "a tuple has a module, a function and an arity,",
            ),
            ("{lists:seq, 2}", "the first element is no module"),
            ("{lists, seq, [a, b]}", "the arity '[a, b]' is not 0 to 255"),
        ] {
            let error = text.parse::<Pattern>().expect_err(text).to_string();
            assert!(
                error.starts_with(&format!("{why} in '{text}'; expected M:F/A")),
                "{error}"
            );
        }
    }

    #[test]
    fn what_a_pattern_may_have_meant_is_named() {
        let functions = [
            ("lists", "map", 2),
            ("lists", "mapfoldl", 3),
            ("lists", "seq", 2),
            ("lists", "seq", 3),
            ("maps", "map", 2),
            ("Elixir.Enum", "map", 2),
        ];
        for (pattern, expect) in [
            ("lsts:seq/2", &["lists:seq/2", "lists:seq/3"][..]),
            ("lists:seq/7", &["lists:seq/2", "lists:seq/3"]),
            ("list", &["lists"]),
            ("lists:mapfold", &["lists:mapfoldl"]),
            ("Enun.map/2", &["Enum.map/2"]),
            ("Enum.map/3", &["Enum.map/2"]),
            ("Enun.*", &["Enum"]),
            ("Enum.mpa", &["Enum.map"]),
            ("Stream", &[]),
            ("nothing", &[]),
        ] {
            let pattern: Pattern = pattern.parse().expect(pattern);
            assert_eq!(pattern.near(functions), expect, "{pattern}");
        }
    }
}
