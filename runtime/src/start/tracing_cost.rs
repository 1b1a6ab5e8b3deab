//! Measures what the tracing of a call costs on this machine, before it begins: functions that do nothing run with and
//! without it.

use std::sync::Arc;

use beamline_formats::profile::TracingCost;

use crate::loader::load;
use crate::loader::module::{self, Module};
use crate::scheduler::alone;
use crate::sys::chance::ticks;
use crate::term::Atom;
use crate::trace::costs::account::Measures;
use crate::trace::trial::Trial;

/// The functions, of `tracing_costs.erl`.
const CODE: &[u8] = include_bytes!("tracing_costs.beam");

/// Time slices of each kind. The fastest one counts: what else the machine does makes others slower. A slice takes some
/// hundredths of a millisecond.
const SLICES: usize = 24;

/// What a round of `calls/1` and of `runs/1` takes, in ticks.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    /// `calls/1` itself, with `nothing/1` where nothing is traced.
    calls: f64,
    /// `nothing/1`.
    nothing: f64,
    /// `runs/1`.
    runs: f64,
}

/// What tracing costs that measures this.
pub(super) fn measured(measures: Measures) -> TracingCost {
    let per_tick = ticks::to_ns(1_000_000) as f64 / 1_000.0;
    let plain = alone::on_thread(|| of_code(None));
    let Some(trial) = Trial::begin(measures) else {
        return TracingCost::default();
    };
    let traced = alone::on_thread(|| of_code(Some(&trial)));
    trial.end();
    let ps = |ticks: f64| (ticks.max(0.0) * per_tick) as u64;
    let [inside, outside, again] = difference(plain, traced);
    TracingCost {
        inside_ps: ps(inside),
        outside_ps: ps(outside),
        again_ps: ps(again),
    }
}

/// What tracing adds inside of a call, outside of it, and to a call of the function that runs. Without tracing, half of what
/// a call takes is taken for the called function's, and half for its caller's.
fn difference(plain: Rounds, traced: Rounds) -> [f64; 3] {
    let call = (plain.calls - plain.runs).max(0.0);
    let again = traced.runs - plain.runs;
    let inside = traced.nothing - call / 2.0;
    let outside = traced.calls - again.max(0.0) - plain.runs - call / 2.0;
    [inside, outside, again]
}

/// Runs the functions, traced as the trial says if there is one.
fn of_code(trial: Option<&Trial>) -> Rounds {
    let code = load::prepare(CODE).expect("a module that the compiler made");
    module::apart(&code, || {
        let [calls, nothing] = fastest(&code, "calls", trial);
        let [runs, _] = fastest(&code, "runs", trial);
        Rounds {
            calls,
            nothing,
            runs,
        }
    })
}

/// What a round of a function takes, and what `nothing/1` takes of it.
fn fastest(code: &Arc<Module>, function: &str, trial: Option<&Trial>) -> [f64; 2] {
    let (function, nothing) = (Atom::new(function), Atom::new("nothing"));
    let slices = (0..SLICES).map(|_| {
        let slice = alone::slice(code, function, |p| {
            if let Some(trial) = trial {
                trial.measures(p);
            }
        });
        let own = trial.map_or([slice.ticks, 0], |trial| trial.take([function, nothing]));
        own.map(|ticks| ticks as f64 / slice.rounds.max(1) as f64)
    });
    let all = |of: &[f64; 2]| of.iter().sum::<f64>();
    slices
        .min_by(|a, b| all(a).total_cmp(&all(b)))
        .expect("there are some")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_told_apart() {
        let plain = Rounds {
            calls: 9.0,
            nothing: 0.0,
            runs: 5.0,
        };
        let traced = Rounds {
            calls: 21.0,
            nothing: 14.0,
            runs: 8.0,
        };
        assert_eq!(difference(plain, traced), [12.0, 11.0, 3.0]);
        // All that is added, and what there was before, is what there is.
        let added: f64 = difference(plain, traced).iter().sum();
        assert_eq!(added + plain.calls, traced.calls + traced.nothing);
    }

    #[test]
    fn tracing_costs_something() {
        crate::hooks::install();
        for tree in [false, true] {
            let measures = Measures {
                tree,
                time: true,
                words: tree,
                reductions: tree,
            };
            let cost = measured(measures);
            // How much falls inside depends on what else the machine and the build do.
            let prices = [cost.inside_ps, cost.outside_ps, cost.again_ps];
            assert!(prices.iter().any(|price| *price > 0), "{cost:?}");
        }
    }
}
