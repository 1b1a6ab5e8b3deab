//! The table of events of processes and ports that tracers hear of, one row for each.

use super::trace_flags as flags;
use crate::term::{Atom, am};

macro_rules! events {
    ($($(#[doc = $doc:literal])* $name:ident => $atom:ident, $flags:expr;)*) => {
        /// An event that tracers hear of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[doc = $doc])* $name,)* }

        impl Event {
            /// Its atom in messages.
            pub(crate) fn tag(self) -> Atom {
                match self { $(Event::$name => am::$atom,)* }
            }
            /// The flags any of which asks for it.
            pub(crate) fn flags(self) -> u32 {
                match self { $(Event::$name => $flags,)* }
            }
        }
    };
}

events! {
    /// `{trace, Tracee, send, Message, To}`
    Send => send, flags::SEND;
    /// `{trace, Tracee, send_to_non_existing_process, Message, To}`
    SendToNonExisting => send_to_non_existing_process, flags::SEND;
    /// `{trace, Tracee, 'receive', Message}`
    Receive => receive, flags::RECEIVE;
    /// `{trace, Pid, call, {M, F, Args | Arity}}`
    Call => call, flags::CALL;
    /// `{trace, Pid, return_to, {M, F, Arity} | undefined}`
    ReturnTo => return_to, flags::CALL;
    /// `{trace, Pid, return_from, {M, F, Arity}, Value}`
    ReturnFrom => return_from, flags::CALL;
    /// `{trace, Pid, exception_from, {M, F, Arity}, {Class, Value}}`
    ExceptionFrom => exception_from, flags::CALL;
    /// `{trace, Pid, spawn, Child, {M, F, Args}}`
    Spawn => spawn, flags::PROCS;
    /// `{trace, Pid, spawned, Parent, {M, F, Args}}`
    Spawned => spawned, flags::PROCS;
    /// `{trace, Pid, exit, Reason}`
    Exit => exit, flags::PROCS;
    /// `{trace, Tracee, register, Name}`
    Register => register, flags::PROCS | flags::PORTS;
    /// `{trace, Tracee, unregister, Name}`
    Unregister => unregister, flags::PROCS | flags::PORTS;
    /// `{trace, Pid, link, Other}`
    Link => link, flags::PROCS;
    /// `{trace, Pid, unlink, Other}`
    Unlink => unlink, flags::PROCS;
    /// `{trace, Tracee, getting_linked, Other}`
    GettingLinked => getting_linked, flags::PROCS | flags::PORTS;
    /// `{trace, Tracee, getting_unlinked, Other}`
    GettingUnlinked => getting_unlinked, flags::PROCS | flags::PORTS;
    /// `{trace, Port, open, Pid, Driver}`
    Open => open, flags::PORTS;
    /// `{trace, Port, closed, Reason}`
    Closed => closed, flags::PORTS;
    /// `{trace, Pid, in, {M, F, Arity} | 0}`
    In => in_, flags::RUNNING | flags::RUNNING_PROCS;
    /// `{trace, Pid, out, {M, F, Arity} | 0}`
    Out => out, flags::RUNNING | flags::RUNNING_PROCS;
    /// `{trace, Pid, out_exited, 0}`
    OutExited => out_exited, flags::EXITING;
    /// `{trace, Pid, in_exiting, 0}`
    InExiting => in_exiting, flags::EXITING;
    /// `{trace, Pid, out_exiting, 0}`
    OutExiting => out_exiting, flags::EXITING;
    /// `{trace, Port, in, Command | 0}`
    PortIn => in_, flags::RUNNING_PORTS;
    /// `{trace, Port, out, Command | 0}`
    PortOut => out, flags::RUNNING_PORTS;
    /// `{trace, Pid, gc_minor_start, Info}`
    GcMinorStart => gc_minor_start, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_minor_end, Info}`
    GcMinorEnd => gc_minor_end, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_major_start, Info}`
    GcMajorStart => gc_major_start, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_major_end, Info}`
    GcMajorEnd => gc_major_end, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_max_heap_size, Info}`
    GcMaxHeapSize => gc_max_heap_size, flags::GARBAGE_COLLECTION;
    /// `{seq_trace, Label, {Kind, Serial, From, To, Message}}`: of tokens, whoever has them.
    SeqTrace => seq_trace, 0;
}

/// How the heap of a process is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    Minor,
    Major,
    /// A minor one that turns out not to be enough.
    Both,
}
