//! Writes Callgrind's profile format. It sums up calls by caller and function.
//!
//! Readers take what a function costs with all that it called for the sum of its own cost and of its calls. Where a
//! function is on a path more than once, only its first call counts for that, so that no sum exceeds the whole.

use std::collections::BTreeMap;
use std::io::{self, Write};

use beamline_formats::name;
use beamline_formats::profile::{Native, Profile};

use super::{Cost, costs};
use crate::sums::callers;

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
    let mut own: Vec<Sums> = vec![Sums::default(); profile.functions.len()];
    let mut calls = Calls::new();
    let mut path = Vec::new();
    for node in &profile.nodes {
        let mut cost = Sums::default();
        for (sum, of) in cost.iter_mut().zip(costs) {
            *sum = (of.of)(node);
        }
        add(&mut own[node.function as usize], &cost);
        path.clear();
        path.push(node.function);
        path.extend(callers(profile, node).map(|caller| caller.function));
        path.reverse();
        if let [.., caller, callee] = path[..] {
            let sum = calls.entry((caller, callee)).or_default();
            sum.0 = sum.0.saturating_add(node.cost.calls);
        }
        for (at, pair) in path.windows(2).enumerate() {
            let &[caller, callee] = pair else { continue };
            let is_first = !path[..at].contains(&caller);
            // What the caller costs itself, called again further up, is its own cost already.
            if is_first && caller != node.function {
                let sum = calls.entry((caller, callee)).or_default();
                add(&mut sum.1, &cost);
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::TIME;
    use crate::sums::tests::profile;
    use crate::sums::{costs_with_callees, function_sums, outermost};

    #[test]
    fn calls_and_own_cost_are_what_a_function_costs_with_all_that_it_called() {
        let rows = [
            ("m", 1),
            ("me", 2),
            ("meo", 4),
            ("meoe", 8),
            ("meoei", 16),
            ("meoeo", 32),
            ("mei", 64),
        ];
        let profile = profile(&rows);
        let (own, calls) = sums(&profile, &[TIME]);
        let with_callees = |function: usize| {
            let calls = calls
                .iter()
                .filter(|((caller, _), _)| *caller as usize == function);
            own[function][0] + calls.map(|(_, (_, cost))| cost[0]).sum::<u64>()
        };
        let totals: Vec<u64> = (0..profile.functions.len()).map(with_callees).collect();
        let time = |node: &beamline_formats::profile::Node| node.cost.time_ns;
        let expect = function_sums(
            &profile,
            time,
            &costs_with_callees(&profile, time),
            &outermost(&profile),
        );
        assert_eq!(
            totals,
            expect.iter().map(|sum| sum.total).collect::<Vec<_>>()
        );
        assert_eq!(totals[0], 127);
    }
}
