//! A number before and now, and what limits say of it.

use super::limits::Metric;

/// The verdict of the limits on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same.
    Same,
    /// It is less, or less by more than the least effect.
    Better,
    /// It is more, as allowed.
    Allowed,
    /// It is more than allowed: which limit says so.
    Regression(String),
}

impl Verdict {
    /// Is it more than allowed?
    #[must_use]
    pub fn is_regression(&self) -> bool {
        matches!(self, Verdict::Regression(_))
    }
}

/// A number before and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The function, of a function's.
    pub function: Option<String>,
    /// What is counted.
    pub metric: Metric,
    /// Before.
    pub base: u64,
    /// Now.
    pub new: u64,
    /// What the limits say.
    pub verdict: Verdict,
    /// The function from whose regression this one follows.
    pub cause: Option<String>,
}
