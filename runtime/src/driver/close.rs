//! The end of a port of a driver.
//!
//! Owner, links and monitors hear of the end at once. The driver is stopped when its queue is empty; until then it is
//! called as before, and is asked to flush once. Source: `erts_deliver_port_exit()`, `terminate_port()`,
//! `driver_failure_term()`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::instance::{Instance, phase};
use super::output;
use crate::term::atom::atom;
use crate::term::{Term, am};

impl Instance {
    /// Ends the port with `reason`; its owner gets a message if it `asked` for it. Under the driver's lock.
    pub(super) fn close(self: &Arc<Self>, reason: Term<'_>, asked: bool) {
        if self.phase.load(Ordering::Acquire) != phase::OPEN || !self.port.leave_all(reason) {
            return;
        }
        self.phase.store(phase::CLOSING, Ordering::Release);
        self.asked.store(asked, Ordering::Release);
        self.end_monitors();
        if reason == am::killed {
            return self.stop();
        }
        if self.queue.lock().size() > 0 {
            self.is_silent.store(true, Ordering::Release);
            if let Some(flush) = self.driver.entry.flush {
                // SAFETY: D1, D2.
                unsafe { flush(self.data()) };
            }
        }
        self.end_if_flushed();
    }

    /// Stops the driver where it has only to empty its queue, and has.
    pub(super) fn end_if_flushed(self: &Arc<Self>) {
        let is_closing = self.phase.load(Ordering::Acquire) == phase::CLOSING;
        if is_closing && self.queue.lock().size() == 0 {
            self.stop();
        }
    }

    /// The driver has no port any more.
    fn stop(self: &Arc<Self>) {
        if self.phase.swap(phase::STOPPED, Ordering::AcqRel) == phase::STOPPED {
            return;
        }
        self.cancel_timer();
        if let Some(stop) = self.driver.entry.stop {
            // SAFETY: D1, D2.
            unsafe { stop(self.data()) };
        }
        self.give_up();
        if self.asked.load(Ordering::Acquire) {
            self.port.tell_closed(self.port.owner());
        }
    }

    /// The driver has not begun: nobody hears of the end.
    pub(super) fn end_quietly(self: &Arc<Self>) {
        self.locked(|| {
            self.phase.store(phase::STOPPED, Ordering::Release);
            self.cancel_timer();
            self.give_up();
        });
    }

    /// Gives up what it has for the port.
    fn give_up(self: &Arc<Self>) {
        self.end_monitors();
        self.end_selects();
        self.queue.lock().clear();
        self.used.count_port(false);
        self.data_lock.lock().take();
        self.forget();
    }

    /// The driver ends the port with `reason`; with `eof` because there is no more input, of which the owner may want to
    /// be told only.
    pub(super) fn fail(self: &Arc<Self>, reason: Term<'_>, eof: bool) {
        if eof {
            output::finish_line(self);
        }
        match self.phase.load(Ordering::Acquire) {
            phase::CLOSING => self.stop(),
            phase::OPEN if eof && self.mode.eof => {
                let id = self.port.term();
                let to = self.port.owner();
                self.port.tell(to, |heap| heap.tuple(&[id, atom("eof")]));
            }
            phase::OPEN => {
                self.queue.lock().clear();
                self.close(if eof { am::normal.term() } else { reason }, false);
            }
            _ => {}
        }
    }
}
