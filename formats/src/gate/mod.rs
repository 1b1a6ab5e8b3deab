//! A gate for CI, which compares what workloads did with a baseline, within limits.
//!
//! Counts come from deterministic runs, and the gate compares them as they are. It compares times by their ranks.
//! [`Results`] of two versions and [`Limits`] make a [`Comparison`], which [`output`] writes for people and programs.

mod compare;
mod limits;
pub mod output;
mod picture;
mod rank;
mod results;
#[cfg(test)]
mod tests;

pub use compare::{Change, Compared, Comparison, TimeChange, Verdict, before, compare};
pub use limits::{FunctionLimits, Limit, Limits, Metric, Percent, TimeLimit, WorkloadLimits};
pub use picture::draw_difference;
pub use results::{FunctionCount, Machine, PathCount, Results, Times, Workload};
