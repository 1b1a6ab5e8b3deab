//! The last calls of a process that saves them: `process_flag(save_calls, N)`. Source: `save_calls()` in `erl_trace.c`,
//! `process_flag_aux()` in `bif.c`.

use super::Process;
use crate::term::entry::Export;
use crate::term::{Term, am};

/// An entry of the saved calls.
#[derive(Clone, Copy)]
pub(crate) enum Saved {
    /// A call that went through an export.
    Call(&'static Export),
    /// A message was sent.
    Send,
    /// A message was received.
    Receive,
    /// A receive timed out.
    Timeout,
}

/// The last ones, in a ring.
pub(super) struct SavedCalls {
    ring: Vec<Saved>,
    /// Calls that are kept at most.
    limit: usize,
    /// Where the next one goes once the ring is full.
    next: usize,
}

impl SavedCalls {
    fn push(&mut self, saved: Saved) {
        if self.ring.len() < self.limit {
            self.ring.push(saved);
            return;
        }
        self.ring[self.next] = saved;
        self.next = (self.next + 1) % self.limit;
    }

    fn oldest_first(&self) -> impl Iterator<Item = Saved> {
        let (later, earlier) = self.ring.split_at(self.next);
        earlier.iter().chain(later).copied()
    }
}

impl Process {
    /// Has it save its last `limit` calls, none of those so far, and none at all for 0; the old number. What
    /// follows the call or receive in which this happens runs in the next time slice.
    pub(crate) fn set_saved_calls(&self, limit: usize) -> usize {
        let new = (limit > 0).then(|| {
            Box::new(SavedCalls {
                ring: Vec::new(),
                limit,
                next: 0,
            })
        });
        let old = std::mem::replace(&mut self.psd().saved_calls, new);
        self.change_flags(|flags| flags.saves_calls = limit > 0);
        let old_limit = old.map_or(0, |old| old.limit);
        if (old_limit > 0) != (limit > 0) && !self.registers().is_null() {
            self.give_up_slice();
        }
        old_limit
    }

    /// Saves a call, if it saves calls and is not sensitive.
    #[cold]
    pub(crate) fn save_call(&self, saved: Saved) {
        if self.flags.get().sensitive {
            return;
        }
        if let Some(calls) = &mut self.psd().saved_calls {
            calls.push(saved);
        }
    }

    /// The calls it has saved, the oldest first; `false` if it saves none.
    pub(crate) fn saved_calls(&self) -> Term<'_> {
        let saved: Option<Vec<Saved>> = self
            .with_psd(|psd| {
                let calls = psd.saved_calls.as_deref();
                calls.map(|calls| calls.oldest_first().collect())
            })
            .flatten();
        let Some(saved) = saved else {
            return Term::bool(false);
        };
        let terms: Vec<Term<'_>> = saved
            .into_iter()
            .map(|saved| match saved {
                Saved::Call(export) => {
                    let arity = Term::small(i64::from(export.arity));
                    self.tuple(&[export.module.term(), export.function.term(), arity])
                }
                Saved::Send => am::send.term(),
                Saved::Receive => am::receive.term(),
                Saved::Timeout => am::timeout.term(),
            })
            .collect();
        self.list(&terms)
    }

    /// Bytes that saved calls take.
    pub(super) fn saved_calls_bytes(&self) -> usize {
        self.with_psd(|psd| {
            let calls = psd.saved_calls.as_deref();
            calls.map_or(0, |calls| {
                size_of::<SavedCalls>() + calls.ring.capacity() * size_of::<Saved>()
            })
        })
        .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::entry::export;
    use crate::term::Atom;

    /// What is left of `count` calls after `limit` was set, as arities.
    fn kept(limit: usize, count: u8) -> Vec<u8> {
        let p = Process::new(233);
        p.set_saved_calls(limit);
        for arity in 0..count {
            p.save_call(Saved::Call(export(Atom::new("m"), Atom::new("f"), arity)));
        }
        let saved = p.saved_calls();
        saved
            .list_iter()
            .map(|call| {
                let arity = call.unwrap().as_tuple().unwrap().get(2);
                arity.as_small().unwrap() as u8
            })
            .collect()
    }

    #[test]
    fn the_last_ones_are_kept_in_order() {
        for (limit, count, expect) in [
            (1, 0, vec![]),
            (1, 3, vec![2]),
            (3, 2, vec![0, 1]),
            (3, 3, vec![0, 1, 2]),
            (3, 4, vec![1, 2, 3]),
            (3, 8, vec![5, 6, 7]),
        ] {
            assert_eq!(kept(limit, count), expect, "{count} calls, {limit} kept");
        }
    }

    #[test]
    fn a_new_limit_starts_anew_and_none_ends_it() {
        let p = Process::new(233);
        assert!(p.saved_calls() == am::false_);
        assert_eq!(p.set_saved_calls(2), 0);
        p.save_call(Saved::Send);
        let bytes = p.memory_bytes();
        assert_eq!(p.saved_calls().list_iter().count(), 1);
        assert_eq!(p.set_saved_calls(5), 2);
        assert!(p.saved_calls().is_nil());
        assert_eq!(p.set_saved_calls(0), 5);
        assert!(p.saved_calls() == am::false_);
        assert!(p.memory_bytes() < bytes);
    }

    #[test]
    fn a_sensitive_process_keeps_what_it_has() {
        let p = Process::new(233);
        p.set_saved_calls(5);
        p.save_call(Saved::Timeout);
        p.change_flags(|flags| flags.sensitive = true);
        p.save_call(Saved::Receive);
        let saved = p.saved_calls();
        let saved: Vec<_> = saved
            .list_iter()
            .map(|term| term.unwrap().as_atom())
            .collect();
        assert_eq!(saved, [Some(am::timeout)]);
    }
}
