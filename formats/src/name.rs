//! Writes atoms and functions as `io:format("~tw")` writes them, and times as people read them.

use std::fmt::Write as _;

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

/// Writes a function as `Module:Function/Arity`.
#[must_use]
pub fn mfa(module: &str, function: &str, arity: u32) -> String {
    format!("{}:{}/{arity}", atom(module), atom(function))
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
