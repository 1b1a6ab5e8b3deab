//! A gate for CI, which compares what workloads did with a baseline, within limits.
//!
//! Counts come from deterministic runs, and the gate compares them as they are. It compares times by their ranks.
//! [`Results`] of two versions and [`Limits`] make a [`Comparison`], which [`output`] writes for people and programs.

mod change;
mod compare;
mod fold;
mod limits;
mod missing;
pub mod output;
mod picture;
mod results;
#[cfg(test)]
mod tests;

pub use change::{Change, Verdict};
pub use compare::{Compared, Comparison, TimeChange, compare};
pub use limits::{
    FunctionLimits, GatedLimits, Limit, Limits, Metric, Missing, Percent, TimeLimit, WorkloadLimits,
};
pub use missing::{Kind, Note};
pub use picture::{PathChange, Picture, draw_difference};
pub use results::{FunctionCount, LOADS, Machine, PathCount, Results, Times, Workload};
