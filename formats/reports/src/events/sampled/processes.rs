//! The functions of samples, process by process.

use std::collections::BTreeMap;
use std::fmt;

use beamline_formats::profile::{LeftOut, Node, Profile, Rest, View};

use super::{Sampled, Share, share};
use crate::sums::{Sum, costs_with_callees, outermost};

/// Processes of one name, and what their functions cost.
struct Kind<'p> {
    pids: Vec<&'p str>,
    name: &'p str,
    samples: u64,
    /// By function.
    functions: BTreeMap<usize, Sum>,
}

impl Kind<'_> {
    fn title(&self) -> String {
        match self.pids[..] {
            [pid] => format!("{pid} {}", self.name).trim_end().to_owned(),
            _ => format!("{} ({} processes)", self.name, self.pids.len()),
        }
    }
}

/// The tables, of which each is of one process, or of all that have one name.
pub(super) struct ByProcess<'s> {
    pub(super) sampled: &'s Sampled,
    pub(super) profile: &'s Profile,
    pub(super) view: &'s View,
}

impl ByProcess<'_> {
    /// The kinds of processes, the one most often seen first.
    fn kinds(&self) -> Vec<Kind<'_>> {
        let profile = self.profile;
        let period = self.sampled.sampling.period_ns().max(1);
        let samples = |node: &Node| node.cost.time_ns / period;
        let totals = costs_with_callees(profile, samples);
        let is_outermost = outermost(profile);
        let mut kinds: BTreeMap<&str, Kind<'_>> = BTreeMap::new();
        let mut of = Vec::new();
        for process in &profile.processes {
            // What ran for no process has no name, and neither have processes of which nothing is known.
            let key = match process.name.as_str() {
                "" => process.pid.as_str(),
                name => name,
            };
            let kind = kinds.entry(key).or_insert_with(|| Kind {
                pids: Vec::new(),
                name: &process.name,
                samples: 0,
                functions: BTreeMap::new(),
            });
            kind.pids.push(&process.pid);
            of.push(key);
        }
        for (at, node) in profile.nodes.iter().enumerate() {
            let Some(kind) = kinds.get_mut(of[node.process as usize]) else {
                continue;
            };
            kind.samples += samples(node);
            let sum = kind.functions.entry(node.function as usize).or_default();
            sum.own += samples(node);
            if is_outermost[at] {
                sum.total += totals[at];
            }
        }
        let mut kinds: Vec<Kind<'_>> = kinds.into_values().collect();
        kinds.retain(|kind| kind.samples > 0);
        kinds.sort_by(|a, b| {
            let by_samples = b.samples.cmp(&a.samples);
            by_samples.then_with(|| a.pids.cmp(&b.pids))
        });
        kinds
    }

    fn write_kind(&self, f: &mut fmt::Formatter<'_>, kind: &Kind<'_>) -> fmt::Result {
        let of = |samples| Share::of(samples, self.sampled.samples);
        let all = of(kind.samples);
        let title = match kind.title() {
            // Threads that run for no process have no pid.
            title if title == "-" => "(no process)".to_owned(),
            title => title,
        };
        write!(f, "\n{}: ", self.view.cut(&title, 40))?;
        writeln!(
            f,
            "{} samples, {:.1} ±{:.1} % of all",
            kind.samples, all.percent, all.plus_minus
        )?;
        writeln!(f, "   OWN         TOTAL         SAMPLES  FUNCTION")?;
        let mut rows: Vec<(usize, Sum)> =
            kind.functions.iter().map(|(at, of)| (*at, *of)).collect();
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.own, sum.total)));
        let (mut shown, mut out_of_scope, mut more) = (0, Rest::default(), Rest::default());
        for (at, sum) in rows {
            let function = &self.profile.functions[at];
            let origin = self.profile.origin(&function.module);
            let is_in =
                self.view
                    .scope
                    .has(origin, &function.module, &function.name, function.arity);
            if !is_in {
                out_of_scope.add(0, sum.own);
                continue;
            }
            if self.view.top.is_some_and(|top| shown >= top) {
                more.add(0, sum.own);
                continue;
            }
            shown += 1;
            for part in [of(sum.own), of(sum.total)] {
                share(f, part.percent, part.plus_minus)?;
            }
            let name = self.view.cut(&function.to_string(), 39);
            writeln!(f, "{:>9}  {name}", sum.own)?;
        }
        for (rest, why) in [(out_of_scope, LeftOut::ByScope), (more, LeftOut::ByTop)] {
            if rest.functions > 0 {
                let left = of(rest.value);
                share(f, left.percent, left.plus_minus)?;
                writeln!(f, "{:14}{:>9}  {}", "", rest.value, rest.text(why))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ByProcess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds();
        kinds.iter().try_for_each(|kind| self.write_kind(f, kind))
    }
}
