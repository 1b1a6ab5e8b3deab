//! What tests need that a machine may not have: OTP, packages of a registry, other programs.
//!
//! A test that does not find what it needs calls [`skipped`] and returns. This fails where `BEAMLINE_REQUIRE` names the
//! need, as `cargo xtask test` does: there, a test that passes has tested something.
//!
//! This crate uses the standard library only: tests of every crate depend on it.

/// The environment variable that names what must be there, with commas between.
pub const VARIABLE: &str = "BEAMLINE_REQUIRE";

/// What a test may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An Erlang/OTP.
    Otp,
    /// The copy of OTP that `cargo xtask fetch` makes, whose native libraries open on this machine.
    FetchedOtp,
    /// An Elixir beside the OTP.
    Elixir,
    /// The C headers of the OTP.
    Headers,
    /// The registry of npm, or what it has given before.
    Npm,
    /// The registry of pip, or what it has given before.
    Pip,
    /// `callgrind_annotate`, a part of Valgrind.
    Valgrind,
    /// `bash`.
    Bash,
    /// `script`, a part of util-linux.
    Script,
    /// The profiler `perf`, with the right to record.
    Perf,
    /// The right to mount a file system.
    Mount,
    /// Performance events of the system.
    Events,
    /// An emulator of OTP that runs here.
    Emulator,
}

/// Each need with its name in the variable.
const NAMES: [(Need, &str); 13] = [
    (Need::Otp, "otp"),
    (Need::FetchedOtp, "fetched-otp"),
    (Need::Elixir, "elixir"),
    (Need::Headers, "headers"),
    (Need::Npm, "npm"),
    (Need::Pip, "pip"),
    (Need::Valgrind, "valgrind"),
    (Need::Bash, "bash"),
    (Need::Script, "script"),
    (Need::Perf, "perf"),
    (Need::Mount, "mount"),
    (Need::Events, "events"),
    (Need::Emulator, "emulator"),
];

impl Need {
    /// Its name in the variable.
    ///
    /// # Panics
    /// Never: each need has a name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let row = NAMES.iter().find(|(need, _)| *need == self);
        row.expect("each need has a name").1
    }
}

/// Whether a value of the variable names `need`.
///
/// # Panics
/// If the value has a name of nothing: what is misspelt would be required by nobody.
fn is_required(need: Need, value: &str) -> bool {
    let names = value.split(',').filter(|name| !name.is_empty());
    let needs: Vec<Need> = names
        .map(|name| {
            let row = NAMES.iter().find(|(_, known)| *known == name);
            let (need, _) = row.unwrap_or_else(|| panic!("{VARIABLE}: `{name}` is no need"));
            *need
        })
        .collect();
    needs.contains(&need)
}

/// Says that the test that calls this is skipped for want of `need`, and `why`.
///
/// # Panics
/// If the variable says that it must be there, or names something that no test needs.
#[track_caller]
pub fn skipped(need: Need, why: &str) {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    assert!(
        !is_required(need, &value),
        "{why}; {VARIABLE} requires {}",
        need.name()
    );
    println!("skipped: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_required() {
        assert!(is_required(Need::Otp, "otp"));
        assert!(is_required(Need::Npm, "otp,npm"));
        assert!(!is_required(Need::Otp, "fetched-otp,npm"));
        assert!(!is_required(Need::Otp, ""));
        assert!(NAMES.iter().all(|(need, name)| is_required(*need, name)));
    }

    #[test]
    #[should_panic(expected = "`opt` is no need")]
    fn a_misspelt_name_is_told() {
        is_required(Need::Npm, "npm,opt");
    }
}
