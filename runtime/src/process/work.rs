//! Work that a BIF goes on with in another time slice.
//!
//! A BIF that has spent its reductions keeps what it has done so far in the process and yields; called
//! again, with the same arguments, it takes that up. Terms in it are roots.

use std::any::Any;

use super::Process;
use crate::bif::Raise;
#[cfg(test)]
use crate::term::Term;
use crate::term::{Atom, RawTerm};

/// What a BIF has done so far.
pub(crate) trait Work: Any + Send {
    /// Shows the collector all slots that hold terms.
    fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm]));

    /// The function that the process is shown in meanwhile, where that is not the BIF: in ERTS it goes on
    /// in one of `erts_internal`.
    fn shown_as(&self) -> Option<(Atom, u8)> {
        None
    }
}

impl Process {
    /// Reductions left to the BIF that runs.
    pub(crate) fn reds_left(&self) -> usize {
        usize::try_from(self.fcalls.get()).unwrap_or(0)
    }

    /// Keeps `work` until the BIF is called again: it is to return what this gives.
    pub(crate) fn yield_with(&self, work: impl Work) -> Raise<'static> {
        self.bump_reds(self.fcalls.get());
        self.rare().work = Some(Box::new(work));
        Raise::Yield
    }

    /// The work of this BIF that was put off, when it is called again.
    pub(crate) fn take_work<W: Work>(&self) -> Option<Box<W>> {
        self.of_rare(|rare| rare.work.is_some()).filter(|is| *is)?;
        let work: Box<dyn Any> = self.rare().work.take()?;
        let work = work.downcast();
        debug_assert!(work.is_ok(), "what was put off is what is called again");
        work.ok()
    }
}

/// For tests: calls a BIF with few reductions at a time, collecting in between, until it returns; how often it
/// has yielded, and whether what it returned is as it should be.
#[cfg(test)]
pub(crate) fn in_small_steps(
    p: &mut Process,
    arg: &crate::heap::Root,
    bif: impl for<'p> Fn(&'p Process, Term<'p>) -> Result<Term<'p>, Raise<'p>>,
    is_right: impl Fn(Term<'_>) -> bool,
) -> usize {
    for turns in 0.. {
        p.fcalls.set(7);
        match bif(p, p.get(arg)) {
            Ok(value) => {
                assert!(is_right(value));
                return turns;
            }
            Err(Raise::Yield) => {}
            Err(_) => panic!("no exception"),
        }
        p.garbage_collect(0, 0).expect("no limit");
    }
    unreachable!("it returns at last")
}
