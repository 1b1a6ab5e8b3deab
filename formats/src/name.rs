//! Writes atoms and functions as `io:format("~tw")` writes them, and numbers and times as people read them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str::Chars;

/// Words that the scanner reserves, so that an atom of that text needs quotes.
const RESERVED: [&str; 29] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "else", "end", "fun", "if", "let", "maybe", "not", "of", "or",
    "orelse", "receive", "rem", "try", "when", "xor",
];

/// Writes an atom as Erlang source would: quoted where it must be.
///
/// Letters are those of Latin-1, as in OTP's `io_lib`; an atom with any other letter is quoted.
#[must_use]
pub fn atom(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{7f}' => out.push_str("\\d"),
            c if u32::from(c) < 0x20 || (0x80..0xa0).contains(&u32::from(c)) => {
                // Octal in three digits below 8#200; ERTS writes the rest the same way.
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

fn is_plain(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_lowercase() || matches!(c, 'ß'..='ö' | 'ø'..='ÿ'));
    first && chars.all(is_name_char) && RESERVED.binary_search(&text).is_err()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '@')
        || matches!(c, 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ')
}

/// Reads an atom, or a name of Elixir, from behind its first quote; gives what follows the last.
pub fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            c if c == quote => return Some((name, chars.as_str())),
            '\\' => name.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'v' => '\u{b}',
                'f' => '\u{c}',
                'e' => '\u{1b}',
                'd' => '\u{7f}',
                'x' => hexadecimal(&mut chars)?,
                first @ '0'..='7' => {
                    let mut code = first.to_digit(8)?;
                    for _ in 0..2 {
                        let mut rest = chars.clone();
                        if let Some(digit) = rest.next().and_then(|c| c.to_digit(8)) {
                            code = code * 8 + digit;
                            chars = rest;
                        }
                    }
                    char::from_u32(code)?
                }
                other => other,
            }),
            c => name.push(c),
        }
    }
}

/// Takes the character that stands behind `\x`: two digits, or any number of them in braces.
fn hexadecimal(chars: &mut Chars<'_>) -> Option<char> {
    let text = chars.as_str();
    let (digits, rest) = match text.strip_prefix('{') {
        Some(text) => text.split_once('}')?,
        None => text.split_at_checked(2)?,
    };
    *chars = rest.chars();
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// The name that Elixir writes for a module, such as `Demo.Server` for the atom `Elixir.Demo.Server`.
#[must_use]
pub fn alias(module: &str) -> Option<&str> {
    let alias = module.strip_prefix("Elixir.")?;
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    alias.split('.').all(is_part).then_some(alias)
}

/// Writes a module, or another atom, as its language does: an alias of Elixir as such, any other as an atom of Erlang.
#[must_use]
pub fn module(text: &str) -> String {
    alias(text).map_or_else(|| atom(text), str::to_owned)
}

/// What a `;` in a name is in a folded stack, whose frames are joined by `;`: in quotes, Erlang and Elixir read it as that.
const SEMICOLON: &str = "\\x{3b}";

/// The frame of a folded stack that has this name. Each is in one line.
#[must_use]
pub fn frame(name: &str) -> String {
    name.replace(';', SEMICOLON).replace(['\n', '\r'], " ")
}

/// The names in a text of such frames. A backslash before another one is that of a name.
#[must_use]
pub fn of_frames(text: &str) -> Cow<'_, str> {
    if !text.contains(SEMICOLON) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at..];
        let (written, length) = match after.strip_prefix("\\\\") {
            _ if after.starts_with(SEMICOLON) => (";", SEMICOLON.len()),
            Some(_) => ("\\\\", 2),
            None => ("\\", 1),
        };
        out.push_str(written);
        rest = &after[length..];
    }
    out.push_str(rest);
    out.into()
}

/// A number as people read it: `1,234,567`.
#[must_use]
pub fn thousands(number: u64) -> String {
    grouped(number, ',')
}

/// A number in groups of three digits.
#[must_use]
pub fn grouped(number: u64, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// A module's name that is the same in every run: `escript` puts the time into those of scripts.
///
/// Source: `escript.erl`, `pre_def_macros()`, OTP 29.
#[must_use]
pub fn stable(module: &str) -> &str {
    let Some((base, numbers)) = module.rsplit_once("__escript__") else {
        return module;
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_of_escript = numbers.split("__").count() == 4 && numbers.split("__").all(is_number);
    if is_of_escript { base } else { module }
}

/// Writes a function's name as Elixir does behind the dot; what has a `*` is in quotes.
pub(crate) fn elixir_function(text: &str) -> String {
    // `*` would be any part of a name.
    let is_operator = text.chars().all(|c| "+-/=!<>&|~^@.\\".contains(c));
    let name = text.strip_suffix(['?', '!']).unwrap_or(text);
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name != "_";
    if !text.is_empty() && (is_operator || is_name) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a function without its arity.
#[must_use]
pub fn function(module: &str, function: &str) -> String {
    match alias(module) {
        Some(alias) => format!("{alias}.{}", elixir_function(function)),
        None => format!("{}:{}", atom(module), atom(function)),
    }
}

/// The name in the place of a module of what is not Erlang: a library in C, or the runtime.
#[must_use]
pub fn outside(library: &str) -> String {
    format!("[{library}]")
}

/// Whether this is such a name.
#[must_use]
pub fn is_outside(module: &str) -> bool {
    module.starts_with('[') && module.ends_with(']')
}

/// Writes a function as Erlang does, `module:function/1`, or one of an Elixir module as Elixir does, `Module.function/1`.
///
/// What has no module is no function, but a remark in a call path, such as `(cut at 512 frames)`. What is in a module such as
/// `[libz.so]` is not of Erlang ([`outside`]): it has no arity.
#[must_use]
pub fn mfa(module: &str, name: &str, arity: u32) -> String {
    if module.is_empty() {
        return format!("({name})");
    }
    if is_outside(module) {
        return format!("{module} {name}");
    }
    format!("{}/{arity}", function(module, name))
}

/// Nanoseconds as a person reads them.
#[must_use]
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{:02} µs", ns / 1_000, ns % 1_000 / 10),
        1_000_000..1_000_000_000 => format!("{}.{:02} ms", ns / 1_000_000, ns % 1_000_000 / 10_000),
        _ => format!(
            "{}.{:03} s",
            ns / 1_000_000_000,
            ns % 1_000_000_000 / 1_000_000
        ),
    }
}

/// Bytes in the unit in which they are a short number.
#[must_use]
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut tenths) = ("B", bytes.saturating_mul(10));
    for larger in units {
        if tenths < 10_240 {
            break;
        }
        (unit, tenths) = (larger, tenths / 1024);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expect) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_300_000, "1.2 MiB"),
            (67_108_864, "64.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(size(bytes), expect);
        }
    }

    #[test]
    fn numbers_have_groups_of_three_digits() {
        for (number, expect) in [(7, "7"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), expect);
        }
    }

    #[test]
    fn atoms_are_quoted_as_otp_quotes_them() {
        for (text, expect) in [
            ("lists", "lists"),
            ("seq_loop", "seq_loop"),
            ("éa@_9", "éa@_9"),
            ("aÀ", "aÀ"),
            ("", "''"),
            ("_x", "'_x'"),
            ("a-b", "'a-b'"),
            ("a×", "'a×'"),
            ("日", "'日'"),
            ("Elixir.Enum", "'Elixir.Enum'"),
            ("-f/1-fun-0-", "'-f/1-fun-0-'"),
            ("it's", "'it\\'s'"),
            ("a\\b\n", "'a\\\\b\\n'"),
            ("a\u{1}", "'a\\001'"),
            ("else", "'else'"),
            ("maybe", "'maybe'"),
            ("xor", "'xor'"),
            ("query", "query"),
            ("*", "'*'"),
        ] {
            assert_eq!(atom(text), expect);
        }
        assert!(RESERVED.is_sorted());
        assert_eq!(mfa("erlang", "+", 2), "erlang:'+'/2");
        assert_eq!(mfa(&outside("libz.so.1"), "crc32", 0), "[libz.so.1] crc32");
    }

    #[test]
    fn functions_of_elixir_are_written_as_elixir_does() {
        for (module, function, expect) in [
            ("Elixir.Demo", "slow_fib", "Demo.slow_fib/1"),
            ("Elixir.Demo.Server", "ok?", "Demo.Server.ok?/1"),
            ("Elixir.Kernel", "+", "Kernel.+/1"),
            ("Elixir.Kernel", "*", "Kernel.\"*\"/1"),
            ("Elixir.Demo", "-f/1-fun-0-", "Demo.\"-f/1-fun-0-\"/1"),
            ("Elixir.Demo", "a\"\\b", "Demo.\"a\\\"\\\\b\"/1"),
            ("Elixir.Demo", "_", "Demo.\"_\"/1"),
            ("Elixir.Demo", "", "Demo.\"\"/1"),
            ("Elixir.foo", "f", "'Elixir.foo':f/1"),
            ("Elixir.", "f", "'Elixir.':f/1"),
            ("Elixir", "f", "'Elixir':f/1"),
        ] {
            assert_eq!(mfa(module, function, 1), expect);
        }
        assert_eq!(module("Elixir.Demo.Server"), "Demo.Server");
        assert_eq!(module("Demo"), "'Demo'");
    }

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        for text in ["it's", "a\\b\n\t\u{1b}", "a\u{1}7", "日", "", "a\"b"] {
            let quoted = format!("{}rest", atom(&format!("{text} ")));
            let read = unquote(&quoted[1..], '\'');
            assert_eq!(read, Some((format!("{text} "), "rest")));
        }
        for text in ["open", "back\\", ""] {
            assert_eq!(unquote(text, '\''), None, "{text}");
        }
    }

    #[test]
    fn a_name_in_a_folded_stack_is_read_back() {
        for (text, expect) in [
            ("lists:map/2", "lists:map/2"),
            ("m:'a;b'/1", "m:'a\\x{3b}b'/1"),
            ("m:'a\\\\x{3b}b;'/1", "m:'a\\\\x{3b}b\\x{3b}'/1"),
            ("m:'\\n;\\''/1", "m:'\\n\\x{3b}\\''/1"),
            (";;", "\\x{3b}\\x{3b}"),
        ] {
            assert_eq!(frame(text), expect);
            assert_eq!(of_frames(expect), text);
        }
        let same = |text: &str| text.parse::<crate::profile::Pattern>().ok();
        assert_eq!(same("m:'a;b'/1"), same("m:'a\\x{3b}b'/1"));
    }

    #[test]
    fn modules_of_escripts_have_one_name() {
        for (module, expect) in [
            (
                "load_escript__escript__1795__362539__512__2",
                "load_escript",
            ),
            ("a__escript__b__escript__1__2__3__4", "a__escript__b"),
            ("load__escript__1__2__3", "load__escript__1__2__3"),
            ("load__escript__1__2__3__x", "load__escript__1__2__3__x"),
            ("lists", "lists"),
        ] {
            assert_eq!(stable(module), expect);
        }
    }
}
