//! The functions or processes that a user chooses for a report.

use std::fmt;

use beamline_formats::profile::{ParsePatternError, Pattern};
use beamline_formats::ring::{Id, NameId, Names};

/// A name that the user gives: functions as a [`Pattern`] names them; or a process by its pid, its registered name, or
/// the function it started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    text: String,
    /// An error: it is no function's name, and why not.
    pattern: Result<Pattern, ParsePatternError>,
}

impl From<&str> for Choice {
    fn from(text: &str) -> Choice {
        Choice {
            text: text.to_owned(),
            pattern: text.parse(),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Choice {
    /// Whether a function is meant.
    #[must_use]
    pub(crate) fn has_function(&self, module: &str, name: &str, arity: u32) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_ok_and(|pattern| pattern.matches(module, name, arity))
    }

    /// Whether a function of a recording is meant.
    #[must_use]
    pub(crate) fn has_name(&self, names: &Names, function: NameId) -> bool {
        let function = names.function(function);
        function.is_some_and(|f| self.has_function(&f.module, &f.name, u32::from(f.arity)))
    }

    /// Whether a process of a recording is meant.
    #[must_use]
    pub(crate) fn has_process(&self, names: &Names, id: Id) -> bool {
        if id.to_string() == self.text {
            return true;
        }
        let Some(process) = names.process(id) else {
            return false;
        };
        let registered = process.name != NameId::NONE
            && (names.atom(process.name) == self.text
                || beamline_formats::name::module(names.atom(process.name)) == self.text);
        registered || self.has_name(names, process.function)
    }

    /// Whether a process is meant, by its pid or by its name as reports have it.
    #[must_use]
    pub(crate) fn has_process_named(&self, pid: &str, name: &str) -> bool {
        self.text == pid || self.text == name
    }

    /// One line: none of these functions of a recording, which were called, is meant.
    #[must_use]
    pub(crate) fn matches_no_call(
        &self,
        names: &Names,
        called: impl IntoIterator<Item = NameId>,
    ) -> String {
        let called = called.into_iter().filter_map(|id| names.function(id));
        let called = called.map(|f| (f.module.as_str(), f.name.as_str(), u32::from(f.arity)));
        self.matches_nothing("called function", called, [])
    }

    /// One line: nothing is so, and which of these functions and other names are like it.
    #[must_use]
    pub(crate) fn matches_nothing<'a>(
        &self,
        what: &str,
        functions: impl IntoIterator<Item = (&'a str, &'a str, u32)>,
        others: impl IntoIterator<Item = String>,
    ) -> String {
        let mut near = self
            .pattern
            .as_ref()
            .map_or_else(|_| Vec::new(), |pattern| pattern.near(functions));
        let mut others: Vec<(f64, String)> = others
            .into_iter()
            .map(|other| {
                let likeness = strsim::normalized_damerau_levenshtein(&self.text, &other);
                (likeness, other)
            })
            .filter(|(likeness, _)| *likeness >= 0.6)
            .collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.splice(0..0, others.into_iter().map(|(_, other)| other));
        near.dedup();
        near.truncate(3);
        let text = &self.text;
        if let (Err(error), true) = (&self.pattern, near.is_empty()) {
            format!("no {what} matches: {error}")
        } else if near.is_empty() {
            format!("no {what} matches '{text}', and nothing is similar")
        } else {
            let near = near.join(", ");
            format!("no {what} matches '{text}'; similar: {near}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_chosen_and_near_ones_named() {
        let all = [("lists", "map", 2), ("lists", "seq", 2), ("m", "f", 0)];
        let choice = |text: &str| Choice::from(text);
        for (text, expect) in [
            ("lists", 2),
            ("lists:map", 1),
            ("lists:seq/2", 1),
            ("_:_/0", 1),
            ("<0.1.0>", 0),
        ] {
            let choice = choice(text);
            let found = all
                .iter()
                .filter(|(module, name, arity)| choice.has_function(module, name, *arity));
            assert_eq!(found.count(), expect, "{text}");
        }
        for (text, expect) in [
            (
                "lists:mapp/2",
                "no function matches 'lists:mapp/2'; similar: lists:map/2",
            ),
            ("zzz", "no function matches 'zzz', and nothing is similar"),
            (
                "lists:map(",
                "no function matches: the ')' is missing in 'lists:map('; expected M:F/A, M:F or M, or as Elixir writes it \
                 Mod.fun/arity, Mod.fun, Mod or Mod.*, with _ or * for any",
            ),
            ("init2", "no function matches 'init2'; similar: init"),
        ] {
            let others = ["init".to_owned()];
            assert_eq!(
                choice(text).matches_nothing("function", all, others),
                expect
            );
        }
    }
}
