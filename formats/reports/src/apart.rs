//! The call paths of several emulators, each below a frame for its emulator.

use beamline_formats::profile::{Cost, Function, Header, Node, Profile};

/// A profile whose call paths begin with a frame for their run, which `name` names. No function has that name, as it has no
/// module. The sums of functions stay as they are.
///
/// # Errors
/// One line when there would be too many functions or call paths.
pub(crate) fn below_runs(
    mut profile: Profile,
    name: impl Fn(usize, &Header) -> String,
) -> Result<Profile, String> {
    let first = index(profile.functions.len())?;
    let runs = profile.runs.iter().enumerate();
    let frames: Vec<Function> = runs
        .map(|(run, header)| Function {
            module: String::new(),
            name: name(run, header),
            arity: 0,
        })
        .collect();
    profile.functions.extend(frames);
    // Each process has a root, in front of all other nodes.
    let roots = index(profile.processes.len())?;
    index(
        profile
            .functions
            .len()
            .max(profile.nodes.len() + roots as usize),
    )?;
    let frames = profile.processes.iter().map(|process| first + process.run);
    let others = profile.nodes.iter().map(|node| Node {
        parent: Some(node.parent.map_or(node.process, |parent| parent + roots)),
        ..*node
    });
    let root = |(process, function)| Node {
        process,
        parent: None,
        function,
        cost: Cost::default(),
        reductions: 0,
        wait_ns: 0,
    };
    profile.nodes = (0..roots).zip(frames).map(root).chain(others).collect();
    Ok(profile)
}

/// A profile whose call paths begin with a frame for their emulator.
///
/// # Errors
/// One line when there would be too many functions or call paths.
pub fn below_emulators(profile: Profile) -> Result<Profile, String> {
    below_runs(profile, |_, run| run.emulator())
}

fn index(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| "the profiles together are too large".to_owned())
}

#[cfg(test)]
mod tests {
    use beamline_formats::profile::Profile;

    use super::*;
    use crate::events::sample::seen;
    use crate::flamegraph::{Shape, Width, folded};

    #[test]
    fn paths_begin_with_their_emulator() {
        let read = |node: &str, pid| {
            let mut profile = crate::events::profile(&seen(2, 1).open()).expect("readable");
            (profile.runs[0].node, profile.runs[0].os_pid) = (node.to_owned(), pid);
            profile
        };
        let merged = Profile::merge([read("one@h", 7), read("", 8)]).expect("of one type");
        let sums = |profile: &Profile| profile.counts.clone();
        let apart = below_emulators(merged.clone()).expect("few");
        assert_eq!(sums(&apart), sums(&merged));
        let lines = folded(&apart, &Shape::new(Width::Time));
        let paths = lines.iter().filter_map(|line| line.rsplit_once(' '));
        let paths: Vec<&str> = paths.map(|(path, _)| path).collect();
        let expect = [
            "(OS process 8);m:f/1",
            "(OS process 8);m:f/1;m:g/1",
            "(node one@h);m:f/1",
            "(node one@h);m:f/1;m:g/1",
        ];
        assert_eq!(paths, expect);
    }
}
