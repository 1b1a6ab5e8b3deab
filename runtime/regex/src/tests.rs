//! Tests of matches, captures and errors, as OTP 29's `re` gives them.

use super::*;

fn compile(pattern: &str, flags: CompileFlags) -> Regex {
    let options = CompileOptions {
        flags,
        ..CompileOptions::default()
    };
    Regex::compile(pattern.as_bytes(), options).expect("a pattern")
}

fn plain(pattern: &str) -> Regex {
    compile(pattern, CompileFlags::default())
}

fn run(regex: &Regex, subject: &str) -> Option<Vec<Group>> {
    regex
        .run(subject.as_bytes(), MatchOptions::default())
        .expect("no error")
}

#[test]
fn groups() {
    let regex = plain("(a)|(b)(c)?");
    assert_eq!(regex.capture_count(), 3);
    assert_eq!(
        run(&regex, "xb"),
        Some(vec![Some((1, 2)), None, Some((1, 2))])
    );
    assert_eq!(run(&regex, "xa"), Some(vec![Some((1, 2)), Some((1, 2))]));
    assert_eq!(run(&regex, "x"), None);
    assert_eq!(run(&plain(""), ""), Some(vec![Some((0, 0))]));
}

#[test]
fn flags() {
    use CompileFlags as F;
    for (pattern, flags, subject, matches) in [
        ("ABC", F::CASELESS, "xabc", true),
        ("abc", F::ANCHORED, "xabc", false),
        ("a.c", F::DOTALL, "a\nc", true),
        ("a.c", F::default(), "a\nc", false),
        ("a b # c", F::EXTENDED, "ab", true),
        ("^b$", F::MULTILINE, "a\nb\nc", true),
        ("b$", F::default(), "b\n", true),
        ("b$", F::DOLLAR_ENDONLY, "b\n", false),
        ("b", F::FIRSTLINE, "a\nb", false),
        ("^.$", F::UNICODE, "é", true),
        ("^.$", F::default(), "é", false),
        (r"^\w$", F::UNICODE, "é", false),
        (r"^\w$", F::UNICODE | F::UCP, "é", true),
    ] {
        let got = run(&compile(pattern, flags), subject);
        assert_eq!(got.is_some(), matches, "{pattern} {flags:?} {subject:?}");
    }
    let ungreedy = run(&compile("a+", F::UNGREEDY), "aaa");
    assert_eq!(ungreedy, Some(vec![Some((0, 1))]));
    assert_eq!(compile("(a)", F::NO_AUTO_CAPTURE).capture_count(), 0);
}

#[test]
fn newlines() {
    let options = CompileOptions {
        flags: CompileFlags::MULTILINE,
        newline: Some(Newline::Crlf),
        bsr: Some(Bsr::AnyCrlf),
    };
    let regex = Regex::compile(b"^b", options).expect("a pattern");
    assert!(run(&regex, "a\nb").is_none() && run(&regex, "a\r\nb").is_some());
    assert!(regex.uses_crlf() && !plain("a").uses_crlf());
    assert!(regex.agrees(Some(Newline::Crlf), Some(Bsr::AnyCrlf)));
    assert!(!regex.agrees(Some(Newline::Lf), None) && !regex.agrees(None, Some(Bsr::Unicode)));
}

#[test]
fn names() {
    let regex = plain("(?<B>b)(?<A>a)");
    assert_eq!(regex.names().collect::<Vec<_>>(), [b"A", b"B"]);
    assert_eq!(regex.numbers_of(b"A").collect::<Vec<_>>(), [2]);
    let regex = compile("(?<X>a)|(?<X>b)|(?<Y>c)", CompileFlags::DUPNAMES);
    assert_eq!(regex.names().collect::<Vec<_>>(), [b"X", b"Y"]);
    assert_eq!(regex.numbers_of(b"X").collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn match_options() {
    let regex = plain("a*");
    let with = |flags| MatchOptions {
        flags,
        ..MatchOptions::default()
    };
    let not_empty = regex.run(b"ba", with(MatchFlags::NOTEMPTY));
    assert_eq!(not_empty, Ok(Some(vec![Some((1, 2))])));
    let offset = MatchOptions {
        offset: 1,
        ..MatchOptions::default()
    };
    assert_eq!(plain("a").run(b"aba", offset), Ok(Some(vec![Some((2, 3))])));
    assert_eq!(plain("^a").run(b"a", with(MatchFlags::NOTBOL)), Ok(None));
    assert_eq!(plain("a$").run(b"a", with(MatchFlags::NOTEOL)), Ok(None));
    assert_eq!(plain("b").run(b"ab", with(MatchFlags::ANCHORED)), Ok(None));
}

#[test]
fn limits() {
    let regex = plain("(a+)*b$");
    let subject = [b'a'; 30];
    let match_limit = MatchOptions {
        match_limit: Some(1000),
        ..MatchOptions::default()
    };
    assert_eq!(regex.run(&subject, MatchOptions::default()), Ok(None));
    let hard = plain("(?:a|a)*(?:a|a)*c(?=d)|(a|ab|b)*\\1$");
    assert_eq!(
        hard.run(&[b'a'; 40], match_limit),
        Err(MatchError::MatchLimit)
    );
    let depth = MatchOptions {
        match_limit_recursion: Some(3),
        ..MatchOptions::default()
    };
    assert_eq!(
        hard.run(&[b'a'; 40], depth),
        Err(MatchError::MatchLimitRecursion)
    );
}

#[test]
fn subjects_that_are_not_utf8() {
    let regex = compile("a", CompileFlags::UNICODE);
    assert_eq!(
        regex.run(b"a\xff", MatchOptions::default()),
        Err(MatchError::BadArg)
    );
    let inside = MatchOptions {
        offset: 1,
        ..MatchOptions::default()
    };
    assert_eq!(regex.run("éa".as_bytes(), inside), Err(MatchError::BadArg));
    let past = MatchOptions {
        offset: 4,
        ..MatchOptions::default()
    };
    assert_eq!(regex.run("éa".as_bytes(), past), Err(MatchError::BadArg));
    assert_eq!(plain("a").run(b"a", past), Err(MatchError::BadArg));
    assert_eq!(
        plain("\\xff").run(b"a\xff", MatchOptions::default()),
        Ok(Some(vec![Some((1, 2))]))
    );
}

/// Texts and offsets of OTP 29.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn errors() {
    let mut wrong = Vec::new();
    for (pattern, message, offset) in [
        ("(", "missing closing parenthesis", 1),
        ("(a", "missing closing parenthesis", 2),
        (")", "unmatched closing parenthesis", 1),
        ("[a", "missing terminating ] for character class", 2),
        ("a{2,1}", "numbers out of order in {} quantifier", 5),
        ("*a", "quantifier does not follow a repeatable item", 1),
        (
            "(?<n",
            "syntax error in subpattern name (missing terminator?)",
            4,
        ),
        ("(?<1a>b)", "subpattern name must start with a non-digit", 4),
        (
            "(?P<a>b)(?P<a>c)",
            "two named subpatterns have the same name (PCRE2_DUPNAMES not set)",
            14,
        ),
        ("\\", "\\ at end of pattern", 1),
        ("(?z)", "unrecognized character after (? or (?-", 3),
        ("[z-a]", "range out of order in character class", 4),
        (
            "(?<=a*)b",
            "length of lookbehind assertion is not limited",
            0,
        ),
        ("[[:foo:]]", "unknown POSIX class name", 8),
        ("\\c", "\\c at end of pattern", 2),
        (
            "\\c\u{1}",
            "\\c must be followed by a printable ASCII character",
            3,
        ),
        ("(?+a)", "digit expected after (?+", 4),
        (
            "\\x{110000}",
            "character code point value in \\x{} or \\o{} is too large",
            9,
        ),
        ("(*FOO)", "(*VERB) not recognized or malformed", 5),
        ("\\p{Foo}", "unknown property after \\P or \\p", 7),
        ("(?(1)a|b|c)", "reference to non-existent subpattern", 2),
        (
            "\\g",
            "\\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number",
            2,
        ),
        ("\\2", "reference to non-existent subpattern", 2),
        ("[\\R]", "escape sequence is invalid in character class", 3),
        (
            "(?R1)",
            "(?R (recursive pattern call) must be followed by a closing parenthesis",
            3,
        ),
        (
            "\\N{U+41}x",
            "\\N{U+dddd} is supported only in Unicode (UTF) mode",
            8,
        ),
        (
            "[:alpha:]x",
            "POSIX named classes are supported only within a class",
            9,
        ),
        (
            "\\x{41",
            "non-hex character in \\x{} (closing brace missing?)",
            6,
        ),
        (
            "\\x{4z}",
            "non-hex character in \\x{} (closing brace missing?)",
            5,
        ),
        ("(?P>a", "missing closing parenthesis", 5),
    ] {
        let error =
            Regex::compile(pattern.as_bytes(), CompileOptions::default()).expect_err("no pattern");
        if error.message != message || offset != error.offset {
            wrong.push((pattern, error));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn deep_patterns_do_not_overflow_the_stack() {
    let fine = format!("{}a{}", "(".repeat(200), ")".repeat(200));
    assert_eq!(plain(&fine).capture_count(), 200);
    let deep = format!("{}a{}", "(".repeat(9000), ")".repeat(9000));
    let error = Regex::compile(deep.as_bytes(), CompileOptions::default()).expect_err("too deep");
    assert!(
        error
            .message
            .starts_with("parentheses are too deeply nested"),
        "{error:?}"
    );
}

#[test]
fn threads_share_a_pattern() {
    let regex = plain("b+");
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| assert_eq!(run(&regex, "abbb"), Some(vec![Some((1, 4))])));
        }
    });
}
