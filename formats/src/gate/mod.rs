//! A gate for CI: what workloads did, compared with a baseline, within limits.
//!
//! Counts come from deterministic runs and are compared as they are; times are compared by their ranks. The way
//! of the data: [`Results`] of two versions and [`Limits`] make a [`Comparison`], which is told to people and
//! programs by [`output`].

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
pub use rank::p_value;
pub use results::{FunctionCount, Machine, PathCount, Results, Times, Workload};
