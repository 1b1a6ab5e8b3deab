//! Tells tracers of the events of ports. Source: `erl_trace.c`, `io.c`, OTP 29.

use crate::heap::Heap;
use crate::process;
use crate::term::{Atom, Pid, Term, am};
use crate::trace::session::flags::{self, Tracee};
use crate::trace::session::tracer::{Event, Report};

/// A port, as tracers see it.
#[derive(Clone, Copy)]
pub(crate) struct Traced<'a> {
    pub(crate) tracee: &'a Tracee,
    pub(crate) id: Term<'static>,
}

impl Traced<'_> {
    fn tell(self, flags: u32, report: &Report<'_>) {
        for r in self.tracee.asked(self.id, report.event, flags) {
            r.tracer.report(r.flags, self.id, report);
        }
    }

    /// It has been opened by `owner` with the driver of this name: it gets the flags that new ports get.
    pub(crate) fn opened(self, owner: Pid, driver: &[u8]) {
        flags::port_born(self.tracee, self.id);
        if self.tracee.has(flags::PORTS) {
            // A command may be any text, and atoms stay for ever.
            let driver = Atom::new(&String::from_utf8_lossy(driver));
            let report = Report::new(Event::Open, owner.term()).with(driver.term());
            self.tell(flags::PORTS, &report);
        }
        self.ran(am::open);
    }

    /// An event that consists of one term.
    pub(crate) fn happened(self, event: Event, term: Term<'_>) {
        if self.tracee.has(flags::PORTS) {
            self.tell(flags::PORTS, &Report::new(event, term));
        }
    }

    /// It sends `message` to `to`. Match specifications are for processes only.
    pub(crate) fn sent(self, to: Pid, message: Term<'_>) {
        if !self.tracee.has(flags::SEND) {
            return;
        }
        let event = if process::exists(to) {
            Event::Send
        } else {
            Event::SendToNonExisting
        };
        let report = Report::new(event, message).with(to.term());
        for r in self.tracee.asked(self.id, event, flags::SEND) {
            if r.session.send.read().on {
                r.tracer.report(r.flags, self.id, &report);
            }
        }
    }

    /// It gets `{From, What}` from `from`.
    pub(crate) fn received(self, from: Term<'_>, what: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        if self.tracee.has(flags::RECEIVE) {
            let heap = Heap::detached();
            let message = heap.tuple(&[Term::immed(from.raw()), what(&heap)]);
            self.tell(flags::RECEIVE, &Report::new(Event::Receive, message));
        }
    }

    /// The time of its timer is up.
    pub(crate) fn timed_out(self) {
        if self.tracee.has(flags::RECEIVE) {
            let report = Report::new(Event::Receive, am::timeout.term());
            self.tell(flags::RECEIVE, &report);
        }
    }

    /// It runs `command`, which takes no time.
    pub(crate) fn ran(self, command: Atom) {
        self.begin(command.term());
        self.end(command.term());
    }

    /// It begins to run `command`; 0 is what nobody has asked for, as input.
    pub(crate) fn begin(self, command: Term<'static>) {
        self.tell_run(Event::PortIn, command);
    }

    /// It has run `command`.
    pub(crate) fn end(self, command: Term<'static>) {
        self.tell_run(Event::PortOut, command);
    }

    fn tell_run(self, event: Event, command: Term<'static>) {
        if self.tracee.has(flags::RUNNING_PORTS) {
            self.tell(event.flags(), &Report::new(event, command));
        }
    }

    /// Process `from` has it do the control operation `command`: around what that does, and its answer, if it
    /// has one.
    pub(crate) fn control<T>(
        self,
        from: Pid,
        (command, data): (u32, &[u8]),
        control: impl FnOnce() -> Option<(Vec<u8>, T)>,
    ) -> Option<(Vec<u8>, T)> {
        self.begin(am::control.term());
        self.received_order(am::control, from, command, data);
        let done = control();
        let answer = done.as_ref().map(|(answer, _)| &answer[..]);
        self.end_operation(am::control, from, answer);
        done
    }

    /// As [`Self::control`], for the call operation `operation`, whose data and answer are in the external format. The
    /// port receives nothing if it takes no such operation.
    pub(crate) fn call(
        self,
        from: Pid,
        (operation, data): (u32, &mut [u8]),
        takes_calls: bool,
        call: impl FnOnce(&mut [u8]) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        self.begin(am::call.term());
        if takes_calls {
            self.received_order(am::call, from, operation, data);
        }
        let done = call(data);
        self.end_operation(am::call, from, done.as_deref());
        done
    }

    fn received_order(self, kind: Atom, from: Pid, number: u32, data: &[u8]) {
        self.received(from.term(), |heap| {
            let order = [heap.unsigned(number.into()), heap.binary(data)];
            heap.tuple(&[kind.term(), heap.tuple(&order)])
        });
    }

    fn end_operation(self, kind: Atom, from: Pid, answer: Option<&[u8]>) {
        if let Some(answer) = answer
            && self.tracee.has(flags::SEND)
        {
            let heap = Heap::detached();
            let answer = heap.tuple(&[kind.term(), heap.binary(answer)]);
            self.sent(from, heap.tuple(&[self.id, answer]));
        }
        self.end(kind.term());
    }
}
