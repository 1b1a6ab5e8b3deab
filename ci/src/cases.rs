//! Cases as text, and the comparison of what two runtimes say of them: each has a line with its name, and below it,
//! indented by four spaces, what it gave.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

/// What each case gave, by its name: the lines below it.
pub(crate) type Cases = BTreeMap<String, Vec<String>>;

/// What stands before each line that a case gave.
pub(crate) const INDENT: &str = "    ";

/// Reads cases.
pub(crate) fn parse(text: &str) -> Cases {
    let mut cases = Cases::new();
    let mut name = String::new();
    for line in text.lines() {
        match line.strip_prefix(INDENT) {
            Some(given) => cases
                .entry(name.clone())
                .or_default()
                .push(given.to_owned()),
            None => line.clone_into(&mut name),
        }
    }
    cases
}

/// The names in a text of cases, in its order.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with(INDENT))
}

/// Prints the cases that differ, which is an error, or how many there are.
pub(crate) fn report(expected: &Cases, said: &Cases) -> Result<()> {
    let differences = compare(expected, said);
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} of {} cases differ", differences.len(), expected.len());
    }
    println!("{} cases give the same answers as on OTP", expected.len());
    Ok(())
}

/// The cases that differ, with the lines that one side has alone.
fn compare(expected: &Cases, said: &Cases) -> Vec<String> {
    let none = Vec::new();
    let names: BTreeSet<_> = expected.keys().chain(said.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        let otp = expected.get(name).unwrap_or(&none);
        let ours = said.get(name).unwrap_or(&none);
        if otp != ours {
            let mut text = name.clone();
            for (sign, these, others) in [("OTP ", otp, ours), ("here", ours, otp)] {
                let only = these.iter().filter(|line| !others.contains(line));
                text.extend(only.map(|line| format!("\n  {sign} {line}")));
            }
            differences.push(text);
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_differ_are_told_with_their_lines() {
        let otp = parse("a one\n    x\n    y\na two\n    z\n");
        let ours = parse("a one\n    x\n    w\na two\n    z\n");
        assert_eq!(compare(&otp, &otp), Vec::<String>::new());
        assert_eq!(compare(&otp, &ours), ["a one\n  OTP  y\n  here w"]);
        let less = parse("a two\n    z\n");
        assert_eq!(compare(&otp, &less), ["a one\n  OTP  x\n  OTP  y"]);
        let turned = parse("a one\n    y\n    x\na two\n    z\n");
        assert_eq!(compare(&otp, &turned), ["a one"]);
        assert_eq!(
            names("a:x\n    1\n    2\na:y\n").collect::<Vec<_>>(),
            ["a:x", "a:y"]
        );
        assert!(report(&otp, &otp).is_ok() && report(&otp, &less).is_err());
    }
}
