//! The table of system events. The limits of a session, the events and their names come from it.
//!
//! An event is numbers until somebody wants it. A receiver gets a term, and the recorder a record. Source:
//! `monitor_*()` in `erl_trace.c`, `system_monitor()` in `erl_bif_trace.c`, OTP 29.

use crate::heap::Heap;
use crate::loader::module::Mfa;
use crate::process::{Peer, Process};
use crate::term::{Atom, Port, Term, am};

macro_rules! system_events {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $limit:ty
        $(=> $(#[doc = $told:literal])* $event:ident { $($field:ident: $type:ty),* })?;
    )*) => {
        /// From which limits on a session hears of system events; at first of none.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Limits {
            $($(#[doc = $doc])* pub(crate) $name: $limit,)*
        }

        impl Limits {
            /// Sets the limit of an event. `None`: there is no such event, or it has no such limit.
            pub(crate) fn set(&mut self, name: Atom, value: Term<'_>) -> Option<()> {
                match name {
                    $(am::$name => self.$name = Limit::of_term(value)?,)*
                    _ => return None,
                }
                Some(())
            }

            /// What is monitored, as `erlang:system_monitor/0` lists it.
            pub(crate) fn terms<'h>(&self, heap: &'h Heap) -> Vec<Term<'h>> {
                let all = [$(self.$name.term(heap, am::$name),)*];
                all.into_iter().flatten().collect()
            }

            /// The names of all events.
            #[cfg(test)]
            pub(in crate::trace) const NAMES: &[Atom] = &[$(am::$name),*];
        }

        /// What has happened to a process, or to a port.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum SystemEvent {
            $($($(#[doc = $told])* $event { $($field: $type),* },)?)*
        }

        impl SystemEvent {
            /// Its atom in messages.
            pub(in crate::trace) fn name(&self) -> Atom {
                match self { $($(SystemEvent::$event { .. } => am::$name,)?)* }
            }
        }
    };
}

system_events! {
    /// A process waits for a connection to another node that is busy.
    busy_dist_port: bool =>
        /// `Port | Pid`: what controls the connection.
        BusyDistPort { controller: Peer };
    /// A process waits for a port that is busy.
    busy_port: bool =>
        /// `Port`
        BusyPort { port: Port };
    /// A heap has at least so many words after a collection.
    large_heap: Number<16_384> =>
        /// `[{old_heap_block_size, Words}, ...]`
        LargeHeap { heap: HeapInfo };
    /// A time slice takes more milliseconds.
    long_schedule: Number<1> =>
        /// `[{timeout, Ms}, {in, {M, F, A} | undefined}, {out, ...}]` of a process: where it began and where it ended.
        /// `[{timeout, Ms}, {port_op, Operation}]` of a port.
        LongSchedule { ms: u64, of: Long };
    /// A collection takes more milliseconds.
    long_gc: Number<1> =>
        /// `[{timeout, Ms}, {old_heap_block_size, Words}, ...]`
        LongGc { ms: u64, heap: HeapInfo };
    /// Messages at which a queue is long no more, and at which it is.
    long_message_queue: Option<(u64, u64)> =>
        /// `true`, or `false` once it is long no more.
        LongMessageQueue { is_long: bool, messages: u64 };
}

/// When a system event is reported.
trait Limit: Sized {
    /// The limit that a program sets; `None` for what is none.
    fn of_term(value: Term<'_>) -> Option<Self>;

    /// The limit of the event `name`, as a program gets it; `None` where it is not monitored.
    fn term(self, heap: &Heap, name: Atom) -> Option<Term<'_>>;
}

impl Limit for bool {
    fn of_term(value: Term<'_>) -> Option<bool> {
        value.as_bool()
    }

    fn term(self, _heap: &Heap, name: Atom) -> Option<Term<'_>> {
        self.then(|| name.term())
    }
}

/// A number, 0 for none. What programs set is raised to the least that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number<const LEAST: u64>(pub(crate) u64);

impl<const LEAST: u64> Limit for Number<LEAST> {
    fn of_term(value: Term<'_>) -> Option<Self> {
        if value == am::false_ {
            return Some(Number(0));
        }
        Some(Number(value.as_u64()?.max(LEAST)))
    }

    fn term(self, heap: &Heap, name: Atom) -> Option<Term<'_>> {
        (self.0 != 0).then(|| heap.tuple(&[name.term(), heap.unsigned(self.0)]))
    }
}

impl Limit for Option<(u64, u64)> {
    fn of_term(value: Term<'_>) -> Option<Self> {
        if value == am::false_ {
            return Some(None);
        }
        let [off, on] = *value.as_tuple()?.elements() else {
            return None;
        };
        let (off, on) = (off.as_u64()?, on.as_u64()?);
        (off < on).then_some(Some((off, on)))
    }

    fn term(self, heap: &Heap, name: Atom) -> Option<Term<'_>> {
        let (off, on) = self?;
        let both = heap.tuple(&[heap.unsigned(off), heap.unsigned(on)]);
        Some(heap.tuple(&[name.term(), both]))
    }
}

/// What has taken long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    /// A time slice, which began and ended in these functions.
    Process {
        from: Option<Mfa>,
        to: Option<Mfa>,
    },
    Port(PortOp),
}

/// What a port has its driver do, when no process calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortOp {
    Timeout,
    Input,
    Output,
}

impl PortOp {
    /// Its atom in messages.
    pub(in crate::trace) fn name(self) -> Atom {
        match self {
            PortOp::Timeout => am::timeout,
            PortOp::Input => am::input,
            PortOp::Output => am::output,
        }
    }
}

/// Sizes of a heap, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapInfo {
    old_block: usize,
    block: usize,
    fragments: usize,
    stack: usize,
    old: usize,
    used: usize,
}

impl HeapInfo {
    pub(in crate::trace) fn of(p: &Process) -> HeapInfo {
        let (old_block, old) = p.old_words();
        HeapInfo {
            old_block,
            block: p.block_words(),
            fragments: p.fragment_words(),
            stack: p.stack_words(),
            old,
            used: p.used_words(),
        }
    }

    /// Words of its blocks.
    pub(in crate::trace) fn words(&self) -> u64 {
        (self.block + self.old_block) as u64
    }

    fn pairs<'h>(&self, heap: &'h Heap) -> [Term<'h>; 6] {
        let rows = [
            (am::old_heap_block_size, self.old_block),
            (am::heap_block_size, self.block),
            (am::mbuf_size, self.fragments),
            (am::stack_size, self.stack),
            (am::old_heap_size, self.old),
            (am::heap_size, self.used),
        ];
        rows.map(|(key, words)| pair(heap, key, heap.unsigned(words as u64)))
    }
}

fn pair<'h>(heap: &'h Heap, key: Atom, value: Term<'h>) -> Term<'h> {
    heap.tuple(&[key.term(), value])
}

fn place(heap: &Heap, mfa: Option<Mfa>) -> Term<'_> {
    mfa.map_or(am::undefined.term(), |mfa| {
        let arity = Term::small(mfa.arity.into());
        heap.tuple(&[mfa.module.term(), mfa.function.term(), arity])
    })
}

impl SystemEvent {
    /// Whether it is reported with these limits. That a queue is long depends on what was reported before, too.
    pub(in crate::trace) fn exceeds(&self, limits: &Limits) -> bool {
        let over = |limit: u64, is_over: bool| limit != 0 && is_over;
        match *self {
            SystemEvent::BusyDistPort { .. } => limits.busy_dist_port,
            SystemEvent::BusyPort { .. } => limits.busy_port,
            SystemEvent::LargeHeap { heap } => {
                let limit = limits.large_heap.0;
                over(limit, heap.words() >= limit)
            }
            SystemEvent::LongSchedule { ms, .. } => {
                let limit = limits.long_schedule.0;
                over(limit, ms > limit)
            }
            SystemEvent::LongGc { ms, .. } => {
                let limit = limits.long_gc.0;
                over(limit, ms > limit)
            }
            SystemEvent::LongMessageQueue { is_long, messages } => limits
                .long_message_queue
                .is_some_and(|(off, on)| match is_long {
                    true => messages >= on,
                    false => messages <= off,
                }),
        }
    }

    /// What the message says of it.
    pub(in crate::trace) fn term<'h>(&self, heap: &'h Heap) -> Term<'h> {
        let timeout = |ms| pair(heap, am::timeout, heap.unsigned(ms));
        match *self {
            SystemEvent::BusyDistPort { controller } => controller.term(heap),
            SystemEvent::BusyPort { port } => port.term(),
            SystemEvent::LargeHeap { heap: info } => heap.list(&info.pairs(heap)),
            SystemEvent::LongSchedule { ms, of } => match of {
                Long::Process { from, to } => heap.list(&[
                    timeout(ms),
                    pair(heap, am::in_, place(heap, from)),
                    pair(heap, am::out, place(heap, to)),
                ]),
                Long::Port(operation) => {
                    let operation = pair(heap, am::port_op, operation.name().term());
                    heap.list(&[timeout(ms), operation])
                }
            },
            SystemEvent::LongGc { ms, heap: info } => {
                heap.cons(timeout(ms), heap.list(&info.pairs(heap)))
            }
            SystemEvent::LongMessageQueue { is_long, .. } => Term::bool(is_long),
        }
    }
}

#[cfg(test)]
pub(in crate::trace) mod tests {
    use super::*;

    /// An event of each kind.
    pub(in crate::trace) fn samples() -> Vec<SystemEvent> {
        let heap = HeapInfo {
            old_block: 1,
            block: 2,
            fragments: 3,
            stack: 4,
            old: 5,
            used: 6,
        };
        let from = Some(Mfa {
            module: am::erlang,
            function: am::apply,
            arity: 2,
        });
        vec![
            SystemEvent::BusyDistPort {
                controller: Port(6).into(),
            },
            SystemEvent::BusyPort { port: Port(7) },
            SystemEvent::LargeHeap { heap },
            SystemEvent::LongSchedule {
                ms: 12,
                of: Long::Process { from, to: None },
            },
            SystemEvent::LongGc { ms: 11, heap },
            SystemEvent::LongMessageQueue {
                is_long: true,
                messages: 1000,
            },
        ]
    }

    #[test]
    fn each_event_is_in_the_table_and_has_its_term() {
        let heap = Heap::detached();
        let told: Vec<String> = samples()
            .iter()
            .map(|event| format!("{} {}", event.name(), event.term(&heap).display_cut(1000)))
            .collect();
        let sizes = "{old_heap_block_size,1},{heap_block_size,2},{mbuf_size,3},{stack_size,4},\
                     {old_heap_size,5},{heap_size,6}]";
        let places = "{in,{erlang,apply,2}},{out,undefined}]";
        assert_eq!(told[2], format!("large_heap [{sizes}"));
        assert_eq!(told[3], format!("long_schedule [{{timeout,12}},{places}"));
        assert_eq!(told[4], format!("long_gc [{{timeout,11}},{sizes}"));
        assert_eq!(told[5], "long_message_queue true");
        let ops = [PortOp::Timeout, PortOp::Input, PortOp::Output];
        for (op, name) in ops.into_iter().zip(["timeout", "input", "output"]) {
            let of = Long::Port(op);
            let what = SystemEvent::LongSchedule { ms: 13, of }.term(&heap);
            let expected = format!("[{{timeout,13}},{{port_op,{name}}}]");
            assert_eq!(what.display_cut(1000).to_string(), expected);
        }
        let names: Vec<Atom> = samples().iter().map(SystemEvent::name).collect();
        assert!(Limits::NAMES.iter().eq(names.iter()));
    }

    #[test]
    fn events_are_told_from_their_limits_on() {
        let limits = |name: Atom, value: Term<'_>| {
            let mut limits = Limits::default();
            limits.set(name, value).expect("a limit");
            limits
        };
        let heap = Heap::detached();
        let long = heap.tuple(&[Term::small(100), Term::small(1000)]);
        let at = [
            Term::bool(true),
            Term::bool(true),
            Term::small(0),
            Term::small(11),
            Term::small(10),
            long,
        ];
        for (event, at) in samples().iter().zip(at) {
            assert!(!event.exceeds(&Limits::default()), "{event:?}");
            let name = event.name();
            let is_heap = name == am::large_heap;
            assert_eq!(event.exceeds(&limits(name, at)), !is_heap, "{event:?}");
        }
        let heap = HeapInfo {
            old_block: 16_383,
            block: 1,
            ..HeapInfo::of(&Process::new(233))
        };
        let event = SystemEvent::LargeHeap { heap };
        assert!(event.exceeds(&limits(am::large_heap, Term::small(5))));
        let short = |messages| SystemEvent::LongMessageQueue {
            is_long: false,
            messages,
        };
        let limits = limits(am::long_message_queue, long);
        assert!(short(100).exceeds(&limits) && !short(101).exceeds(&limits));
    }
}
