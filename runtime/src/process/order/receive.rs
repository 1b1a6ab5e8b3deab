//! Receives: which message a process looks at next, and what it does when there is none.

use super::{explore, is_active, is_explored, is_followed, is_only_recorded};
use crate::process::{Exiting, Process};
use crate::term::{Term, am};

impl Process {
    /// The message at the save pointer, for the instructions up to [`Process::next_message`] or
    /// [`Process::remove_message`]. Handles signals when there is none: check [`Process::is_held`] on `None`. May
    /// collect, and run what other processes asked for; nothing but y registers survives.
    ///
    /// # Errors
    /// When a signal ends the process.
    #[inline]
    pub fn peek_message(&mut self) -> Result<Option<Term<'_>>, Exiting> {
        match is_active() {
            false => self.peek_at_once(),
            true => self.peek_in_order(),
        }
    }

    #[cold]
    fn peek_in_order(&mut self) -> Result<Option<Term<'_>>, Exiting> {
        if !is_only_recorded() {
            return self.peek_in_turn();
        }
        while !self.mailbox.has_new() {
            if !self.fetch_signals()? || self.is_held() {
                return Ok(None);
            }
        }
        self.place_first();
        Ok(self.examine())
    }

    /// As [`Process::peek_message`], where what comes may have to wait for its turn.
    fn peek_in_turn(&mut self) -> Result<Option<Term<'_>>, Exiting> {
        if self.is_flushing() {
            let has_new = self.mailbox.has_new();
            return Ok(has_new.then(|| self.examine()).flatten());
        }
        if self.stand_again() {
            return Ok(None);
        }
        if self.waits_to_try() {
            self.fetch_signals()?;
        }
        // Messages that are here are not looked at before the collection or the end that came first in the recorded run.
        while !self.mailbox.has_new() || self.awaits_end() || self.awaits_collection() {
            let has_fetched = self.fetch_signals()?;
            if is_followed() {
                self.deliver_due()?;
                if self.awaits_end() || self.is_stopped() {
                    return Ok(None);
                }
                if self.mailbox.has_new() && !self.awaits_collection() {
                    break;
                }
            }
            if !has_fetched || self.is_held() {
                self.collect_in_turn(true)?;
                return Ok(None);
            }
        }
        self.place_first();
        Ok(self.examine())
    }

    /// Its receive is about to take a message; `has_time`: whether it has a time-out, by which it could have ended, too.
    #[inline]
    pub(crate) fn note_take(&self, has_time: impl FnOnce() -> bool) {
        if is_explored() && !self.is_flushing() && has_time() {
            explore::could_time_out(self.pid());
        }
    }

    /// The place of the message that its receive is about to take, where that is recorded; `None` also of an answer of the
    /// runtime's.
    #[inline]
    pub(in crate::process) fn place_of_receive(&self) -> Option<usize> {
        match is_active() {
            false => None,
            true => self.mailbox.place_of_current(),
        }
    }

    /// The message at this place has been taken out of its queue, behind `passed` others that the receive passed over.
    #[inline]
    pub(in crate::process) fn note_receive(&self, place: Option<usize>, passed: u32) {
        if !is_active() {
            return;
        }
        match place {
            Some(at) => self.note_receive_at(at),
            // How many messages came before the runtime's answer is chance.
            None => self.give_back(passed.into()),
        }
    }

    /// It is about to wait for a message in a receive without end.
    pub(in crate::process) fn prepare_to_rest(&self) {
        if !is_active() {
            return;
        }
        // The turn of what is held may have come with the last step.
        self.wake_if_held_is_due();
        if is_explored() {
            self.note_receive_that_may_end(|| false);
            self.waits_for_its_end();
        }
    }

    /// Whether its receive, which does not wait yet, times out now, as it did in the recorded run.
    pub(in crate::process) fn times_out_as_recorded(&self, timeout: Term<'_>) -> bool {
        let times_out = timeout != am::infinity && self.follows_timeout();
        if times_out {
            explore::time_has_passed(timeout);
        }
        times_out
    }

    /// Whether its receive, which waits, has timed out, as it did in the recorded run when all had come that came first.
    /// In an explored run, time tells.
    pub(in crate::process) fn has_timed_out_as_recorded(&self) -> bool {
        !is_explored() && self.follows_timeout()
    }
}
