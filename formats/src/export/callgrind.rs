//! Callgrind's profile format. Calls are summed up by caller and function; a function that calls itself, directly or
//! not, is one call path of it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::name;
use crate::profile::{Profile, Type};

/// What the format wants on one line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Names are given once with their number, and then by that.
struct Names<'a> {
    profile: &'a Profile,
    files: BTreeMap<&'a str, usize>,
    known_files: Vec<bool>,
    known_functions: Vec<bool>,
}

impl<'a> Names<'a> {
    fn new(profile: &'a Profile) -> Names<'a> {
        let mut files = BTreeMap::new();
        for function in &profile.functions {
            let next = files.len();
            files.entry(function.module.as_str()).or_insert(next);
        }
        Names {
            profile,
            known_files: vec![false; files.len()],
            files,
            known_functions: vec![false; profile.functions.len()],
        }
    }

    /// `fl=(1) lists` and `fn=(1) lists:map/2`, with a `c` before where it is a function that is called.
    fn write(&mut self, out: &mut dyn Write, callee: &str, function: usize) -> io::Result<()> {
        let of = &self.profile.functions[function];
        let file = self.files[of.module.as_str()];
        write!(out, "{callee}fl=({})", file + 1)?;
        if !std::mem::replace(&mut self.known_files[file], true) {
            write!(out, " {}", line(&of.module))?;
        }
        write!(out, "\n{callee}fn=({})", function + 1)?;
        if !std::mem::replace(&mut self.known_functions[function], true) {
            write!(out, " {}", line(&name::mfa(&of.module, &of.name, of.arity)))?;
        }
        writeln!(out)
    }
}

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let (event, cost): (_, fn(&crate::profile::Cost) -> u64) = match profile.kind() {
        Some(Type::CallCount) => ("Calls", |cost| cost.calls),
        Some(Type::CallMemory) => ("Words", |cost| cost.words),
        _ => ("Nanoseconds", |cost| cost.time_ns),
    };
    // Children come after their parents: from the end on, each node has all that is below it.
    let mut below: Vec<u64> = profile.nodes.iter().map(|node| cost(&node.cost)).collect();
    for index in (0..profile.nodes.len()).rev() {
        if let Some(parent) = profile.nodes[index].parent {
            below[parent as usize] = below[parent as usize].saturating_add(below[index]);
        }
    }
    let mut own: Vec<u64> = vec![0; profile.functions.len()];
    let mut calls: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for (node, below) in profile.nodes.iter().zip(below) {
        let own = &mut own[node.function as usize];
        *own = own.saturating_add(cost(&node.cost));
        if let Some(parent) = node.parent {
            let caller = profile.nodes[parent as usize].function;
            let sum = calls.entry((caller, node.function)).or_default();
            sum.0 = sum.0.saturating_add(node.cost.calls);
            sum.1 = sum.1.saturating_add(below);
        }
    }
    let command = profile.runs.first().map_or(&[][..], |run| &run.command);
    writeln!(
        out,
        "# callgrind format\nversion: 1\ncreator: beamline {}\ncmd: {}\npositions: line\nevents: {event}\nsummary: {}",
        env!("CARGO_PKG_VERSION"),
        line(&command.join(" ")),
        own.iter().fold(0_u64, |sum, own| sum.saturating_add(*own)),
    )?;
    let mut names = Names::new(profile);
    for (function, own) in own.iter().enumerate() {
        writeln!(out)?;
        names.write(out, "", function)?;
        writeln!(out, "0 {own}")?;
        let caller = u32::try_from(function).unwrap_or(u32::MAX);
        for ((_, callee), (count, cost)) in calls.range((caller, 0)..=(caller, u32::MAX)) {
            names.write(out, "c", *callee as usize)?;
            writeln!(out, "calls={count} 0\n0 {cost}")?;
        }
    }
    Ok(())
}
