//! Match specifications of functions and of `send` and `'receive'`.

use std::sync::Arc;

use crate::heap::Message;
use crate::matchspec::{self, Dialect, MatchSpec};
use crate::term::Term;

/// A match specification, with the term it was made from.
pub(crate) struct Spec {
    pub(in crate::trace) program: MatchSpec,
    source: Message,
}

/// Why a match specification is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadSpec {
    /// It is none.
    Wrong,
    /// It is nested too deep.
    TooDeep,
}

impl Spec {
    /// Compiles `term` for calls, for `send` or for `'receive'` (which knows no callers, and does nothing).
    pub(crate) fn compile(term: Term<'_>, dialect: Dialect) -> Result<Arc<Spec>, BadSpec> {
        let program = matchspec::compile(term, dialect).map_err(|failure| {
            if failure.system_limit {
                BadSpec::TooDeep
            } else {
                BadSpec::Wrong
            }
        })?;
        let source = Message::copy_of(term);
        Ok(Arc::new(Spec { program, source }))
    }

    /// The term it was made from.
    pub(crate) fn source(&self) -> Term<'_> {
        self.source.term()
    }
}
