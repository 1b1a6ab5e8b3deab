//! The differences that are kept on purpose; `docs/differences.md` has their reasons.

/// How answers may differ.
enum Allowance {
    /// Floats whose last digits differ: by this part of them at most.
    Digits(f64),
    /// A frame of a stack trace, told twice, where what was called is no fun, or has another arity.
    Repeated,
    /// Which frames the trace has, and what is said of them: class and reason are the same.
    Trace,
    /// A single value there, as a list of that here.
    Listed,
    /// What stands behind this.
    Behind(&'static str),
}

/// What a case is about begins with the first; it may differ as the second says.
const ALLOWED: [(&str, Allowance); 5] = [
    ("", Allowance::Repeated),
    ("math:", Allowance::Digits(1e-13)),
    ("erlang:iolist_to_iovec/", Allowance::Trace),
    ("erlang:term_to_iovec/", Allowance::Listed),
    (
        "re:compile/",
        Allowance::Behind("{ok,{re_exported_pattern,"),
    ),
];

/// Are the answers of a case the same, or different as it is allowed?
pub(super) fn is_same(name: &str, truth: &[String], ours: &[String]) -> bool {
    if truth == ours {
        return true;
    }
    let about = name.splitn(3, ' ').nth(2).unwrap_or_default();
    let allowed = ALLOWED
        .iter()
        .filter(|(prefix, _)| about.starts_with(prefix));
    allowed.into_iter().any(|(_, allowance)| match allowance {
        Allowance::Digits(part) => are_near(truth, ours, *part),
        Allowance::Repeated => without_repeated(truth) == without_repeated(ours),
        Allowance::Trace => reason(truth).is_some() && reason(truth) == reason(ours),
        Allowance::Listed => {
            matches!((truth, ours), ([one], [list]) if format!("[{one}]") == *list)
        }
        Allowance::Behind(begin) => [truth, ours]
            .iter()
            .all(|lines| lines.first().is_some_and(|line| line.starts_with(begin))),
    })
}

/// Class and reason of an exception.
fn reason(lines: &[String]) -> Option<&[String]> {
    lines
        .get(..2)
        .filter(|lines| lines[0].starts_with("raises "))
}

/// The lines, each frame of a call of what cannot be called so once.
fn without_repeated(lines: &[String]) -> Vec<&String> {
    let is_call = reason(lines).is_some_and(|lines| {
        let reasons = ["{badfun,", "{badarity,"];
        reasons.iter().any(|begin| lines[1].starts_with(begin))
    });
    let mut once: Vec<_> = lines.iter().collect();
    once.dedup_by(|a, b| is_call && a.starts_with("at ") && a == b);
    once
}

/// Are the answers floats that are so near to each other?
fn are_near(truth: &[String], ours: &[String], part: f64) -> bool {
    let float = |lines: &[String]| match lines {
        [line] => line.parse::<f64>().ok(),
        _ => None,
    };
    match (float(truth), float(ours)) {
        (Some(a), Some(b)) => (a - b).abs() <= part * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_digits_of_math_are_allowed() {
        let check = |name: &str, a: &str, b: &str| is_same(name, &[a.to_owned()], &[b.to_owned()]);
        assert!(check(
            "calls 1 math:erfc/1",
            "2.1519736712498913e-17",
            "2.1519736712498916e-17"
        ));
        assert!(!check("calls 1 math:erfc/1", "2.15", "2.16"));
        assert!(!check("calls 1 math:erfc/1", "2.15", "raises error"));
        assert!(!check(
            "formats 1 number",
            "2.1519736712498913e-17",
            "2.1519736712498916e-17"
        ));
        assert!(check("formats 1 number", "x", "x"));
    }

    #[test]
    fn other_frames_are_allowed_where_they_say_nothing() {
        let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let check = |name: &str, a: &str, b: &str| is_same(name, &lines(a), &lines(b));
        let (twice, once) = (
            "raises error|{badfun,a}|at f|at f|at g",
            "raises error|{badfun,a}|at f|at g",
        );
        assert!(check("calls 1 lists:map/2", twice, once));
        assert!(!check(
            "calls 1 lists:map/2",
            twice,
            "raises error|{badfun,a}|at f"
        ));
        assert!(!check(
            "calls 1 lists:map/2",
            "raises error|b|at f|at f",
            "raises error|b|at f"
        ));
        let name = "calls 1 erlang:iolist_to_iovec/1";
        assert!(check(
            name,
            "raises error|badarg|at f",
            "raises error|badarg|at g"
        ));
        assert!(!check(
            name,
            "raises error|badarg|at f",
            "raises exit|badarg|at f"
        ));
        assert!(check("calls 1 erlang:term_to_iovec/2", "<<1>>", "[<<1>>]"));
        assert!(!check("calls 1 erlang:term_to_iovec/2", "<<1>>", "[<<2>>]"));
        let pattern = "{ok,{re_exported_pattern,";
        assert!(check(
            "calls 1 re:compile/2",
            &format!("{pattern}1"),
            &format!("{pattern}2")
        ));
        assert!(!check(
            "calls 1 re:compile/2",
            &format!("{pattern}1"),
            "{error,x}"
        ));
    }
}
