//! The part of a recording or of a profile that is exported.

use std::borrow::Cow;

use beamline_formats::name::time;
use beamline_formats::profile::{Node, Profile};
use beamline_formats::ring::{Id, NameId, Recording};

use super::Error;
use crate::choice::Choice;
use crate::events::part::{Only, Part};

/// What an export has; all there is by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// One process, or the calls of some functions with all that they call.
    pub only: Option<Choice>,
    /// From this time on, in nanoseconds since the recording was begun.
    pub begin_ns: u64,
    /// Up to this time.
    pub end_ns: Option<u64>,
}

impl Selection {
    /// Says in one line what a recording does not have.
    pub(super) fn check(&self, recording: &Recording) -> Result<(), Error> {
        if self.end_ns.is_some_and(|end_ns| end_ns <= self.begin_ns) {
            return Err(Error::Missing("--end is not later than --begin".into()));
        }
        if self.begin_ns > 0 {
            let end_ns = recording.whole_end_ns()?;
            if self.begin_ns >= end_ns {
                return Err(Error::Missing(format!(
                    "it ends at {}, before the time that --begin gives",
                    time(end_ns)
                )));
            }
        }
        let Some(only) = &self.only else {
            return Ok(());
        };
        let names = recording.names();
        let functions = || {
            let all = names.functions();
            all.map(|f| (f.module.as_str(), f.name.as_str(), u32::from(f.arity)))
        };
        let is_there = functions().any(|(m, f, arity)| only.has_function(m, f, arity))
            || names.ids().any(|id| only.has_process(names, id));
        if is_there {
            return Ok(());
        }
        let others = names.registered().map(|(name, _)| names.text(name));
        let line = only.matches_nothing("function or process", functions(), others);
        Err(Error::Missing(line))
    }

    /// The part of a recording that is chosen: its names say which functions and processes are meant.
    pub(super) fn part<'a>(&'a self, recording: &'a Recording) -> Part<'a> {
        let names = recording.names();
        Part {
            only: self.only.as_ref().map(|only| Only {
                is_process: Box::new(move |id: Id| only.has_process(names, id)),
                is_function: Box::new(move |function: NameId| only.has_name(names, function)),
            }),
            begin_ns: self.begin_ns,
            end_ns: self.end_ns,
        }
    }

    /// The call paths of a profile that are meant: each begins at the first function that is, or in a process that is.
    pub(super) fn of_profile<'p>(&self, profile: &'p Profile) -> Result<Cow<'p, Profile>, Error> {
        if self.begin_ns > 0 || self.end_ns.is_some() {
            let line = "--begin and --end need a recording, and this is a profile";
            return Err(Error::Missing(line.into()));
        }
        let Some(only) = &self.only else {
            return Ok(Cow::Borrowed(profile));
        };
        let mut nodes: Vec<Node> = Vec::new();
        // The new index of each node that is meant.
        let mut kept: Vec<Option<u32>> = Vec::with_capacity(profile.nodes.len());
        for node in &profile.nodes {
            let process = &profile.processes[node.process as usize];
            let of = &profile.functions[node.function as usize];
            let parent = node.parent.and_then(|parent| kept[parent as usize]);
            let is_meant = parent.is_some()
                || only.has_process_named(&process.pid, &process.name)
                || only.has_function(&of.module, &of.name, of.arity);
            kept.push(is_meant.then_some(u32::try_from(nodes.len()).unwrap_or(u32::MAX)));
            if is_meant {
                nodes.push(Node { parent, ..*node });
            }
        }
        if nodes.is_empty() {
            let functions = profile.functions.iter();
            let functions = functions.map(|f| (f.module.as_str(), f.name.as_str(), f.arity));
            let others = profile.processes.iter().map(|process| process.name.clone());
            let line = only.matches_nothing("function or process", functions, others);
            return Err(Error::Missing(line));
        }
        // Exports of call paths look at nothing else.
        let mut selected = profile.clone();
        selected.nodes = nodes;
        selected.counts.clear();
        Ok(Cow::Owned(selected))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::{Target, compressed, write, write_profile};
    use super::*;
    use crate::events::sample;

    fn selected(target: Target, selection: &Selection) -> Vec<u8> {
        let mut out = Vec::new();
        write(&sample::varied().open(), target, selection, &mut out).expect("it is written");
        out
    }

    fn only(text: &str) -> Selection {
        Selection {
            only: Some(text.into()),
            ..Selection::default()
        }
    }

    #[test]
    fn a_selection_is_exported() {
        let of = |selection: &Selection| {
            let text = String::from_utf8(selected(Target::Folded, selection)).expect("UTF-8");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&only("boss")),
            ["m:main/1 155000", "m:main/1;m:fib/1 20000"]
        );
        assert_eq!(of(&only("<0.10.0>")), ["m:loop/1 14900"]);
        assert_eq!(of(&only("m:fib/1")), ["m:fib/1 20000"]);
        let window = Selection {
            begin_ns: 25_000,
            end_ns: Some(45_000),
            ..only("boss")
        };
        let all: u64 = of(&window)
            .iter()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum();
        assert!(all > 0 && all <= 20_000, "{:?}", of(&window));
        for target in Target::ALL {
            let whole = selected(target, &Selection::default());
            let part = selected(target, &window);
            assert!(part != whole, "{}", target.name());
        }
    }

    #[test]
    fn a_selection_that_has_nothing_is_an_error() {
        let window = |begin_ns, end_ns| Selection {
            only: None,
            begin_ns,
            end_ns,
        };
        for (selection, expect) in [
            (
                only("m:fibb/1"),
                "no function or process matches 'm:fibb/1'; similar: m:fib/1",
            ),
            (
                window(1_000_000, None),
                "it ends at 202.50 µs, before the time that --begin gives",
            ),
            (window(7, Some(7)), "--end is not later than --begin"),
        ] {
            let recording = sample::varied().open();
            let error = write(&recording, Target::Jsonl, &selection, &mut Vec::new());
            let error = error.expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn call_paths_of_a_profile_are_selected() {
        let profile = crate::events::profile(&sample::varied().open()).expect("readable");
        let of = |selection: &Selection| {
            let mut out = Vec::new();
            let done = write_profile(&profile, Target::Folded, selection, &mut out);
            let text = String::from_utf8(out).expect("UTF-8");
            done.map(|()| text).map_err(|error| error.to_string())
        };
        assert_eq!(of(&only("m:fib/1")), Ok("m:fib/1 20000\n".into()));
        assert_eq!(of(&only("m:server/1")), Ok("m:loop/1 14900\n".into()));
        assert!(of(&only("nobody")).is_err());
        let window = Selection {
            begin_ns: 1,
            ..Selection::default()
        };
        assert!(of(&window).is_err_and(|error| error.contains("need a recording")));
    }

    #[test]
    fn an_export_is_compressed() {
        let mut out = Vec::new();
        let sample = sample::varied();
        let plain = selected(Target::Jsonl, &Selection::default());
        let done = compressed(&mut out, |out| {
            write(&sample.open(), Target::Jsonl, &Selection::default(), out)
        });
        done.expect("it is written");
        let mut read = Vec::new();
        let mut gunzip = flate2::read::GzDecoder::new(out.as_slice());
        gunzip.read_to_end(&mut read).expect("gzip");
        assert_eq!(read, plain);
    }
}
