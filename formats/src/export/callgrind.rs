//! Writes Callgrind's profile format. It sums up calls by caller and function. A function that calls itself, directly
//! or not, is in a call path once.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Cost, costs};
use crate::name;
use crate::profile::{Native, Profile};

/// What the format wants on one line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Names are given once with their number, and then by that.
struct Names<'a> {
    profile: &'a Profile,
    files: BTreeMap<&'a str, usize>,
    known_objects: [bool; 1 + Native::ALL.len()],
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
            known_objects: Default::default(),
            known_files: vec![false; files.len()],
            files,
            known_functions: vec![false; profile.functions.len()],
        }
    }

    /// `ob=(1) Erlang`, `fl=(1) lists` and `fn=(1) lists:map/2`, with a `c` before where it is a function that is called.
    /// Each kind of native code is an object: KCachegrind has lists and colours by object.
    fn write(&mut self, out: &mut dyn Write, callee: &str, function: usize) -> io::Result<()> {
        let of = &self.profile.functions[function];
        let native = self.profile.native(of);
        let object = native.map_or(0, |native| native as usize);
        write!(out, "{callee}ob=({})", object + 1)?;
        if !std::mem::replace(&mut self.known_objects[object], true) {
            write!(out, " {}", native.map_or("Erlang", Native::about))?;
        }
        let file = self.files[of.module.as_str()];
        write!(out, "\n{callee}fl=({})", file + 1)?;
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

/// The sums of the costs, of which there are at most four.
type Sums = [u64; 4];

fn add(sums: &mut Sums, more: &Sums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// What these costs are, as a line has them.
fn numbers(sums: &Sums, costs: &[Cost]) -> String {
    let texts: Vec<String> = sums.iter().take(costs.len()).map(u64::to_string).collect();
    texts.join(" ")
}

/// For each pair of caller and function, the number of calls and their cost with all below.
type Calls = BTreeMap<(u32, u32), (u64, Sums)>;

/// Of each function what it costs, and of each pair of caller and function calls and what they cost with all below.
fn sums(profile: &Profile, costs: &[Cost]) -> (Vec<Sums>, Calls) {
    let cost = |node| {
        let mut sums = Sums::default();
        for (sum, cost) in sums.iter_mut().zip(costs) {
            *sum = (cost.of)(node);
        }
        sums
    };
    // Children come after their parents: from the end on, each node has all that is below it.
    let mut below: Vec<Sums> = profile.nodes.iter().map(cost).collect();
    for index in (0..profile.nodes.len()).rev() {
        if let Some(parent) = profile.nodes[index].parent {
            let (parents, children) = below.split_at_mut(index);
            add(&mut parents[parent as usize], &children[0]);
        }
    }
    let mut own: Vec<Sums> = vec![Sums::default(); profile.functions.len()];
    let mut calls = Calls::new();
    for (node, below) in profile.nodes.iter().zip(below) {
        add(&mut own[node.function as usize], &cost(node));
        if let Some(parent) = node.parent {
            let caller = profile.nodes[parent as usize].function;
            let sum = calls.entry((caller, node.function)).or_default();
            sum.0 = sum.0.saturating_add(node.cost.calls);
            add(&mut sum.1, &below);
        }
    }
    (own, calls)
}

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let costs = costs(profile);
    let (own, calls) = sums(profile, &costs);
    let mut all = Sums::default();
    own.iter().for_each(|own| add(&mut all, own));
    let events: Vec<&str> = costs.iter().map(|cost| cost.event).collect();
    let command = profile.runs.first().map_or(&[][..], |run| &run.command);
    writeln!(
        out,
        "# callgrind format\nversion: 1\ncreator: beamline {}\ncmd: {}\npositions: line\nevents: {}\nsummary: {}",
        env!("CARGO_PKG_VERSION"),
        line(&command.join(" ")),
        events.join(" "),
        numbers(&all, &costs),
    )?;
    let mut names = Names::new(profile);
    for (function, own) in own.iter().enumerate() {
        writeln!(out)?;
        names.write(out, "", function)?;
        writeln!(out, "0 {}", numbers(own, &costs))?;
        let caller = u32::try_from(function).unwrap_or(u32::MAX);
        for ((_, callee), (count, cost)) in calls.range((caller, 0)..=(caller, u32::MAX)) {
            names.write(out, "c", *callee as usize)?;
            writeln!(out, "calls={count} 0\n0 {}", numbers(cost, &costs))?;
        }
    }
    Ok(())
}
