//! Makes tuples of times, as `erlang:timestamp/0` returns them.

use crate::heap::Heap;
use crate::term::Term;

/// `{MegaSeconds, Seconds, MicroSeconds}`.
pub(crate) fn triple(heap: &Heap, microseconds: i64) -> Term<'_> {
    let seconds = microseconds.div_euclid(1_000_000);
    heap.tuple(&[
        Term::small(seconds.div_euclid(1_000_000)),
        Term::small(seconds.rem_euclid(1_000_000)),
        Term::small(microseconds.rem_euclid(1_000_000)),
    ])
}
