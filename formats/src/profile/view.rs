//! What a table shows of all that was measured. What is saved does not depend on it.

use std::fmt;
use std::str::FromStr;

use super::{Origin, Pattern, Profile};

/// The functions that a table shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    #[default]
    All,
    /// Those of modules that are not of OTP, Elixir or the build tools.
    App,
    /// Those that a pattern means.
    Of(Pattern),
}

impl Scope {
    /// The scope of a table for which none is chosen: `app`, unless somebody has chosen functions before, or no function of
    /// the program was called. The second value says that there was none.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> (Scope, bool) {
        if profile.runs.iter().any(|run| !run.patterns.is_empty()) {
            return (Scope::All, false);
        }
        let mut functions = profile.functions.iter();
        match functions.any(|of| profile.origin(&of.module) == Origin::App) {
            true => (Scope::App, false),
            false => (Scope::All, !profile.functions.is_empty()),
        }
    }

    /// Is a function shown?
    #[must_use]
    pub fn has(&self, origin: Origin, module: &str, function: &str, arity: u32) -> bool {
        match self {
            Scope::All => true,
            Scope::App => origin == Origin::App,
            Scope::Of(pattern) => pattern.matches(module, function, arity),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Scope::All),
            "app" => Ok(Scope::App),
            pattern => match pattern.parse() {
                Ok(pattern) => Ok(Scope::Of(pattern)),
                Err(error) => Err(format!("{error}; or use all or app")),
            },
        }
    }
}

/// What a table shows, and how wide it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The functions.
    pub scope: Scope,
    /// Most rows: the dearest.
    pub top: Option<usize>,
    /// The terminal's columns: names come last then, and longer ones are cut. None: it is no terminal.
    pub columns: Option<usize>,
}

/// A name is not cut shorter than this.
const SHORTEST: usize = 24;

impl View {
    /// Whether a name of some length stands behind `before` columns without a line that is too long for the terminal.
    #[must_use]
    pub fn has_room_behind(&self, before: usize) -> bool {
        self.columns
            .is_none_or(|columns| before + SHORTEST <= columns)
    }

    /// A name that stands behind `before` columns: cut in the middle where it is too long for the terminal.
    #[must_use]
    pub fn cut(&self, name: &str, before: usize) -> String {
        let length = name.chars().count();
        let room = self.columns.map_or(usize::MAX, |columns| {
            columns.saturating_sub(before).max(SHORTEST)
        });
        if length <= room {
            return name.to_owned();
        }
        // The end has the function's name.
        let first = (room - 1) / 2;
        let last = room - 1 - first;
        let begin = name.chars().take(first);
        let end = name.chars().skip(length - last);
        begin.chain(['…']).chain(end).collect()
    }
}

/// What a table leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Functions.
    pub functions: usize,
    /// Their calls.
    pub calls: u64,
    /// What was measured of them.
    pub value: u64,
}

impl Rest {
    /// How many of the functions out of scope are named: the dearest.
    pub const NAMED: usize = 3;

    /// The name of one of the functions, below [`Rest::text`].
    #[must_use]
    pub fn named(function: &str) -> String {
        format!("  of these, {function}")
    }

    /// Adds a function.
    pub fn add(&mut self, calls: u64, value: u64) {
        self.functions += 1;
        self.calls = self.calls.saturating_add(calls);
        self.value = self.value.saturating_add(value);
    }

    /// What was left out, and what shows it.
    #[must_use]
    pub fn text(&self, left_out: LeftOut) -> String {
        let functions = match self.functions {
            1 => "1 function".to_owned(),
            many => format!("{many} functions"),
        };
        match left_out {
            LeftOut::ByScope => format!("({functions} out of scope: see --scope all)"),
            LeftOut::ByTop => format!("({functions} more: see --top all)"),
        }
    }
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// [`View::scope`].
    ByScope,
    /// [`View::top`].
    ByTop,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::App => f.write_str("app"),
            Scope::Of(pattern) => pattern.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for (text, app, otp) in [
            ("all", true, true),
            ("app", true, false),
            ("Demo.*", true, false),
            ("lists:map/2", false, true),
        ] {
            let scope: Scope = text.parse().expect(text);
            assert_eq!(scope.to_string(), text);
            assert_eq!(
                scope.has(Origin::App, "Elixir.Demo.A", "f", 1),
                app,
                "{text}"
            );
            assert_eq!(scope.has(Origin::Otp, "lists", "map", 2), otp, "{text}");
        }
        let error = "a:b/c".parse::<Scope>().expect_err("no scope");
        assert!(error.ends_with("for any; or use all or app"), "{error}");
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        let view = |columns| View {
            columns,
            ..View::default()
        };
        let name = "'Elixir.A.Module.With.A.Name':function_of_it/1";
        assert_eq!(view(None).cut(name, 0), name);
        assert_eq!(view(Some(80)).cut(name, 20), name);
        let cut = view(Some(60)).cut(name, 20);
        let (begin, end) = cut.split_once('…').expect("it is cut");
        assert!(name.starts_with(begin) && name.ends_with(end), "{cut}");
        assert_eq!(cut.chars().count(), 40);
        assert_eq!(view(Some(10)).cut(name, 20).chars().count(), SHORTEST);
    }
}
