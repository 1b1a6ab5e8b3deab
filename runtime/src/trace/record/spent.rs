//! Records the words and reductions of a process before each record that changes its call path. What it has had since
//! the record before belongs to the path up to there.

use beamline_formats::ring::{Event as RingEvent, Group};

use super::{Recorder, recorder};
use crate::heap::{Literals, size};
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::term::Term;
use crate::trace::measure::meters::all_of;

/// `p` takes a message to itself. Its words count a second time where words are counted, as those of any message that is
/// received. Source: `erts_adjust_message_break()`.
#[cold]
pub(in crate::trace) fn own_message_taken(p: &mut Process, message: Term<'_>) {
    if all_of(p).any(|meter| meter.measures.words) || tells_words() {
        let words = size(message, Literals::Count);
        p.count_again(words);
    }
}

/// Whether a recording of words goes on.
fn tells_words() -> bool {
    recorder().is_some_and(|recorder| recorder.spends.words)
}

/// The numbers that the recording asks for.
#[derive(Clone, Copy)]
pub(super) struct SpentWanted {
    any: bool,
    pub(super) words: bool,
    reductions: bool,
}

impl SpentWanted {
    pub(super) fn of(groups: &[Group]) -> SpentWanted {
        let words = groups.contains(&Group::Words);
        let reductions = groups.contains(&Group::Reductions);
        SpentWanted {
            any: words || reductions,
            words,
            reductions,
        }
    }
}

impl Recorder {
    /// Tells what `p` has had, where that is asked for and another number than before; `call` is the function that
    /// is called now, if one is.
    #[inline(always)]
    pub(super) fn spent(&self, p: &Process, call: Option<&dyn Fn() -> Mfa>) {
        if self.spends.any {
            self.tell_spent(p, call);
        }
    }

    #[inline(never)]
    fn tell_spent(&self, p: &Process, call: Option<&dyn Fn() -> Mfa>) {
        let psd = p.psd();
        let spent = &psd.spent;
        if self.spends.words {
            // What a process was made with is of the call that it begins with, as for `call_memory`.
            let begins =
                spent.words.get().is_none() && call.is_some_and(|mfa| is_initial(p, mfa()));
            let total = match begins {
                true => p.collected_words(),
                false => p.allocated_words(),
            };
            if spent.words.replace(Some(total)) != Some(total) {
                self.tell(p.pid(), &RingEvent::Words { total });
            }
        }
        if self.spends.reductions {
            let total = p.reductions();
            if spent.reductions.replace(Some(total)) != Some(total) {
                self.tell(p.pid(), &RingEvent::Reductions { total });
            }
        }
    }
}

fn is_initial(p: &Process, mfa: Mfa) -> bool {
    (mfa.module, mfa.function, mfa.arity) == p.initial_call.get()
}
