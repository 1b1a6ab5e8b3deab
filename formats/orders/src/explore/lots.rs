//! Runs by chance: the process that makes the next step is drawn by lot.
//!
//! A run stops each process before each step that others may see, and asks a [`Drawing`] which one goes on. What a run
//! does depends on its [`Lots`] alone.
//!
//! - *Random*: each of those that can go on is as likely as the others.
//! - *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of
//!   Finding Bugs", ASPLOS 2010): each process has a priority, and the highest one goes on; at depth - 1 steps of the
//!   run, the priority of the process that was to go on falls below all others. A bug that needs `depth` pairs of steps
//!   in an order is found in a run of n processes and k steps with a probability of at least 1 / (n k^(depth - 1)).
//! - *POS* (Yuan, Yang, Gu, "Partial Order Aware Concurrency Sampling", CAV 2018): each step has a priority, and the highest
//!   one is made; those that wait and touch the same are drawn again. So each partial order is likelier than by a walk.
//!
//! Time passes when nobody can go on. In half of the runs it also takes part in the draw, as if it were a process: then a
//! process that could go on waits while timers of others go off. Source of that: the chaos mode of rr.

use beamline_settings::random::Numbers;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// How the process that goes on is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// Each is as likely as the others.
    Random,
    /// The highest priority of a process.
    Pct,
    /// The highest priority of a step.
    Pos,
}

/// What decides a run by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lots {
    /// How it is drawn.
    pub draw: Draw,
    /// Where the numbers begin: those of each seed are others.
    pub seed: u64,
    /// Of PCT: how many pairs of steps have to be in an order for the bugs that are looked for, from 1.
    pub depth: u32,
    /// Of PCT: how many steps a run has, about.
    pub steps: u64,
}

/// What may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// This process.
    Process(u64),
    /// The next timer.
    Time,
}

/// What a step touches: steps that touch the same, one of them with a change, depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// A number of it.
    pub what: u64,
    /// It may change it.
    pub changes: bool,
}

/// One that can go on, and what its next step touches.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'t> {
    /// The process.
    pub who: Who,
    /// What its step touches.
    pub touches: &'t [Touch],
    /// It goes on without a step, or looks for what is not there: the process that it waits for comes first.
    pub idles: bool,
}

impl Candidate<'_> {
    fn depends_on(&self, other: &Candidate<'_>) -> bool {
        self.touches.iter().any(|own| {
            let mut others = other.touches.iter();
            others.any(|other| own.what == other.what && (own.changes || other.changes))
        })
    }
}

impl Lots {
    /// Those of the run of this number.
    #[must_use]
    pub fn of_run(self, number: u64) -> Lots {
        let mut numbers = Numbers(self.seed);
        let seed = numbers.draw() ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        Lots { seed, ..self }
    }
}

/// The draws of a run.
#[derive(Clone, Debug)]
pub struct Drawing {
    lots: Lots,
    numbers: Numbers,
    /// Steps so far.
    made: u64,
    /// Of processes (PCT), or of the steps that they are about to make (POS).
    priorities: FxHashMap<Who, u64>,
    /// Of PCT: at which steps priorities fall, and how low, the next one last.
    changes: Vec<(u64, u64)>,
    /// The next priority of a process that idles.
    lowest: u64,
    /// Time takes part.
    is_time_drawn: bool,
}

/// Priorities of PCT that nothing has lowered are above this, and those of processes that idle below.
const LOWERED: u64 = 1 << 32;

impl Drawing {
    /// Nobody was drawn yet.
    #[must_use]
    pub fn new(lots: Lots) -> Drawing {
        let mut numbers = Numbers(lots.seed);
        let is_time_drawn = numbers.below(2) == 1;
        let changes = match lots.draw {
            Draw::Pct => (1..lots.depth)
                .map(|low| (1 + numbers.below(lots.steps.max(1)), u64::from(low)))
                .collect(),
            Draw::Random | Draw::Pos => Vec::new(),
        };
        let mut drawing = Drawing {
            lots,
            numbers,
            made: 0,
            priorities: FxHashMap::default(),
            changes,
            lowest: LOWERED,
            is_time_drawn,
        };
        drawing
            .changes
            .sort_unstable_by_key(|change| std::cmp::Reverse(*change));
        drawing
    }

    /// Whether time is to be among those that can go on, where somebody else is.
    #[must_use]
    pub fn is_time_drawn(&self) -> bool {
        self.is_time_drawn
    }

    /// How many steps were drawn.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Which of these goes on: its place.
    ///
    /// # Panics
    /// If there is none.
    pub fn draw(&mut self, candidates: &[Candidate<'_>]) -> usize {
        assert!(!candidates.is_empty(), "somebody can go on");
        self.made += 1;
        match self.lots.draw {
            Draw::Random => self.numbers.index(candidates.len()),
            Draw::Pct => self.draw_of_processes(candidates),
            Draw::Pos => self.draw_of_steps(candidates),
        }
    }

    /// The place of the candidate with the highest priority; one that has none gets one.
    fn highest(&mut self, candidates: &[Candidate<'_>]) -> usize {
        let mut highest = (0, 0);
        for (at, candidate) in candidates.iter().enumerate() {
            let numbers = &mut self.numbers;
            let drawn = || numbers.draw() | LOWERED << 31;
            let priority = *self.priorities.entry(candidate.who).or_insert_with(drawn);
            if priority >= highest.0 {
                highest = (priority, at);
            }
        }
        highest.1
    }

    fn draw_of_processes(&mut self, candidates: &[Candidate<'_>]) -> usize {
        let mut at = self.highest(candidates);
        while let Some((_, low)) = self.changes.pop_if(|(step, _)| *step <= self.made) {
            self.priorities.insert(candidates[at].who, LOWERED + low);
            at = self.highest(candidates);
        }
        let Candidate { who, idles, .. } = candidates[at];
        if who == Who::Time {
            self.priorities.remove(&who);
        } else if idles {
            self.lowest -= 1;
            self.priorities.insert(who, self.lowest);
        }
        at
    }

    fn draw_of_steps(&mut self, candidates: &[Candidate<'_>]) -> usize {
        let at = self.highest(candidates);
        let made = &candidates[at];
        self.priorities.remove(&made.who);
        for other in candidates {
            if other.depends_on(made) {
                self.priorities.remove(&other.who);
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, any, prop, prop_assert_eq, prop_oneof, proptest};

    use super::*;

    fn lots(draw: Draw, seed: u64, depth: u32, steps: u64) -> Lots {
        Lots {
            draw,
            seed,
            depth,
            steps,
        }
    }

    /// Runs processes with these numbers of steps, every one of which touches what `touch` says: which process made
    /// each step.
    fn run(lots: Lots, steps: &[usize], touch: impl Fn(usize, usize) -> u64) -> Vec<usize> {
        let mut drawing = Drawing::new(lots);
        let mut next = vec![0; steps.len()];
        let mut order = Vec::new();
        loop {
            let left = (0..steps.len()).filter(|at| next[*at] < steps[*at]);
            let left: Vec<usize> = left.collect();
            if left.is_empty() {
                return order;
            }
            let touches: Vec<[Touch; 1]> = left
                .iter()
                .map(|at| {
                    [Touch {
                        what: touch(*at, next[*at]),
                        changes: true,
                    }]
                })
                .collect();
            let candidates = left.iter().zip(&touches).map(|(at, touches)| Candidate {
                who: Who::Process(*at as u64),
                touches,
                idles: false,
            });
            let candidates: Vec<_> = candidates.collect();
            let drawn = left[drawing.draw(&candidates)];
            next[drawn] += 1;
            order.push(drawn);
        }
    }

    /// The share of runs that have what is looked for.
    fn found(draw: Draw, depth: u32, steps: &[usize], is_it: impl Fn(&[usize]) -> bool) -> f64 {
        const RUNS: u64 = 4_000;
        let all = steps.iter().sum::<usize>() as u64;
        let of = lots(draw, 7, depth, all);
        let hits = (0..RUNS).filter(|number| is_it(&run(of.of_run(*number), steps, |_, _| 0)));
        hits.count() as f64 / RUNS as f64
    }

    #[test]
    fn pct_finds_bugs_of_a_depth_as_often_as_it_promises() {
        // n processes of k / n steps. Depth 1: the last process comes first. Depth 2: one is interrupted at a step of its
        // own by all of another. Depth 3: that happens to one twice.
        let steps = [6, 6, 6];
        let (n, k) = (3.0, 18.0_f64);
        let only = |order: &[usize], who: &[usize]| -> Vec<usize> {
            let order = order.iter().filter(|at| who.contains(at));
            order.copied().collect()
        };
        let first = found(Draw::Pct, 1, &steps, |order| order.starts_with(&[2; 6]));
        assert!(first >= 1.0 / n * 0.9, "{first}");
        let second = found(Draw::Pct, 2, &steps, |order| {
            only(order, &[0, 1]).starts_with(&[0, 0, 0, 1, 1, 1, 1, 1, 1])
        });
        assert!(second >= 1.0 / (n * k) * 0.9, "{second}");
        let third = found(Draw::Pct, 3, &[4, 4], |order| {
            order == [0, 1, 1, 0, 0, 0, 1, 1]
        });
        assert!(third >= 1.0 / (2.0 * 64.0) * 0.8, "{third}");
        let begins = |order: &[usize], begin: &[usize]| order.starts_with(begin);
        // A walk seldom lets one go on for long.
        let walk = found(Draw::Random, 1, &[9, 9], |order| begins(order, &[1; 9]));
        let pct = found(Draw::Pct, 1, &[9, 9], |order| begins(order, &[1; 9]));
        assert!(walk < 0.02 && pct > 0.4, "{walk} {pct}");
    }

    #[test]
    fn pos_draws_partial_orders_more_evenly_than_a_walk() {
        // The last step of one is to come before the last one of the other, which alone touches the same: behind many
        // steps that touch nothing else, both orders are as likely under POS.
        let steps = [1, 12];
        let touch = |at: usize, nth: usize| match (at, nth) {
            (0, _) | (1, 11) => 0,
            (_, nth) => 100 + nth as u64,
        };
        let share = |draw| {
            let of = lots(draw, 3, 1, 13);
            let late = |order: &Vec<usize>| order.last() == Some(&0);
            let runs = (0..4_000).map(|number| run(of.of_run(number), &steps, touch));
            runs.filter(late).count() as f64 / 4_000.0
        };
        let (pos, walk) = (share(Draw::Pos), share(Draw::Random));
        assert!(walk < 0.01, "{walk}");
        assert!(pos > 0.05, "{pos}");
    }

    #[test]
    fn who_idles_lets_others_go_first() {
        let mut drawing = Drawing::new(lots(Draw::Pct, 5, 1, 10));
        let one = |at: u64, idles| Candidate {
            who: Who::Process(at),
            touches: &[],
            idles,
        };
        let all = [one(1, true), one(2, true), one(3, true)];
        let drawn: Vec<usize> = (0..9).map(|_| drawing.draw(&all)).collect();
        for round in drawn.chunks(3) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2], "{drawn:?}");
        }
    }

    proptest! {
        #[test]
        fn a_run_depends_on_its_lots_alone(
            seed in any::<u64>(),
            draw in prop_oneof![Just(Draw::Random), Just(Draw::Pct), Just(Draw::Pos)],
            depth in 1_u32..5,
            steps in prop::collection::vec(0_usize..8, 1..5),
        ) {
            let all = steps.iter().sum::<usize>();
            let of = lots(draw, seed, depth, all as u64);
            let touch = |at: usize, nth: usize| (at * nth % 3) as u64;
            let first = run(of, &steps, touch);
            prop_assert_eq!(first.len(), all);
            prop_assert_eq!(run(of, &steps, touch), first);
        }
    }
}
