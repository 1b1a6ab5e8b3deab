//! The table of what a process tells the recorder of its order: one row for each event, with the record that it
//! becomes. The type [`OrderEvent`] and its records are made from it.
//!
//! A row's fields have the names of the record's fields, and each becomes one of those by its type ([`Field`]).
//! Where a record is made of more than that, the row names the function that makes it.
//!
//! Most events are steps of a trace (`beamline_orders::Step`), and some are several steps in one, or a part of one:
//! `docs/internals/Order.md`.

use beamline_formats::ring::{Event, Id, Label, NameId, Near, SignalKind};
use beamline_orders::{Heard, Spent};

use super::answer::Native;
use super::{Sending, Setting};
use crate::term::{Atom, Pid};

/// Gives atoms and functions the numbers that records have for them.
pub(crate) trait NameIds {
    fn atom(&mut self, atom: Atom) -> NameId;
    /// A function that answers.
    fn function(&mut self, native: &'static Native) -> NameId;
}

/// What becomes a field of a record.
trait Field<T> {
    fn field(self, names: &mut impl NameIds) -> T;
}

macro_rules! fields {
    ($($from:ty => $to:ty: |$value:ident, $names:ident| $field:expr;)*) => {
        $(impl Field<$to> for $from {
            #[inline]
            fn field(self, $names: &mut impl NameIds) -> $to {
                let ($value, _) = (self, &$names);
                $field
            }
        })*
    };
}

fields! {
    u64 => u64: |number, names| number;
    u32 => u64: |number, names| number.into();
    usize => u64: |number, names| number as u64;
    bool => u64: |is, names| is.into();
    Heard => u64: |what, names| what as u64;
    SignalKind => u64: |kind, names| kind as u64;
    Pid => Id: |pid, names| Id::Process(pid.0);
    Sending => Label: |sending, names| label_of(sending.from, sending.number);
    Setting => Label: |setting, names| label_of(setting.by, setting.number);
    Atom => NameId: |atom, names| names.atom(atom);
    &'static Native => NameId: |native, names| names.function(native);
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $event:ident
        $(($($at:ident: $of:ty),*))?
        $({ $($field:ident: $type:ty),* $(,)? })?
        $(=> $record:ident)? $(by $made:ident)?;)*) => {
        /// What a process did, as the recorder gets it, in the order of its steps.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum OrderEvent {
            $($(#[doc = $doc])* $event $(($($of),*))? $({ $($field: $type),* })?,)*
        }

        impl OrderEvent {
            /// Its record.
            #[inline]
            pub(crate) fn record(self, names: &mut impl NameIds) -> Event<'static> {
                match self {
                    $(OrderEvent::$event $(($($at),*))? $({ $($field),* })? => events!(
                        @record names, [$($($at)*)? $($($field)*)?], $($record)? $(by $made)?
                    ),)*
                }
            }
        }
    };
    (@record $names:ident, [$($field:ident)*], $record:ident) => {
        Event::$record { $($field: Field::field($field, $names)),* }
    };
    (@record $names:ident, [$($field:ident)*], by $made:ident) => {
        $made($($field,)* $names)
    };
}

events! {
    /// It makes this process.
    Spawn(child: Pid) => OrderSpawn;
    /// Sendings since the last step.
    Sent(count: u32) => OrderSent;
    /// The message is delivered.
    Delivery(label: Sending) => OrderDelivery;
    /// The message at this place of its queue is taken.
    Receive(at: usize) => OrderReceive;
    /// The message is delivered behind all others, and taken.
    Take(label: Sending) => OrderTake;
    /// It sends one message; then the other one is delivered behind all others, and taken.
    SendTake(label: Sending) => OrderSendTake;
    /// A message that no process has sent is delivered.
    Notice { of: Option<Pid>, is_gone: bool, is_exit: bool, monitor: Option<u32> } by record_of_notice;
    /// The message of a timer is delivered.
    Timer(label: Setting) => OrderTimer;
    /// What is delivered next gets to this place.
    Ahead(at: usize) => OrderAhead;
    /// Its receive times out.
    Timeout => OrderTimeout;
    /// It calls a function that is not there, of this module.
    Miss(module: Atom) => OrderMiss;
    /// It makes a module's code the current one; calls have missed the module `misses` times before.
    Load { module: Atom, misses: u64 } => OrderLoad;
    /// A native function gives it an integer that is greater by `difference` than the last one.
    Answer { native: &'static Native, difference: u64 } by record_of_answer;
    /// A native function gives it a term, whose `bytes` follow.
    AnswerTerm { function: &'static Native, bytes: usize } => OrderAnswerTerm;
    /// What is delivered next comes from outside: a term, whose `bytes` follow.
    Content { bytes: usize } => OrderContent;
    /// Bytes of a term.
    Bytes(words: [u64; 4]) by record_of_bytes;
    /// An access to what processes share comes after this one. `since`: how many accesses since the last one that was
    /// recorded.
    After { of: Pid, number: u64, since: u64 } => OrderAfter;
    /// Accesses since the last one that was recorded.
    Accesses(count: u64) => OrderAccesses;
    /// An exit signal of this process, with the reason `normal`, is lost.
    Lost(of: Pid) => OrderLost;
    /// It hears of its link to this process.
    Heard(what: Heard, of: Pid) => OrderHeard;
    /// It is collected, as another process asks for it.
    Collect { reductions: u64, major: bool } => OrderCollect;
    /// The signal that ends it is of this process.
    EndedBy(of: Pid) => OrderEndedBy;
    /// What it has spent by its end, which comes next.
    Spent(spent: Spent) by record_of_spent;
    /// It ends.
    Exit => OrderExit;
    /// No step: it sends such a signal to this process.
    Signal(what: SignalKind, to: Pid) => OrderSignal;
    /// No step: it begins to trap exits, or ceases to.
    Traps(traps: bool) => OrderTraps;
    /// No step: whether its next receive would take this message.
    Tried(label: Sending, takes: bool) => OrderTried;
    /// No step: whether its next receive would take the message of this number among those that no process has sent.
    TriedNotice(number: u32, takes: bool) => OrderTriedTold;
}

impl OrderEvent {
    /// Whether it is no step, and tells more of one: it is recorded with the places of steps.
    pub(super) fn is_annotation(&self) -> bool {
        matches!(
            self,
            OrderEvent::Signal(..)
                | OrderEvent::Traps(_)
                | OrderEvent::Tried(..)
                | OrderEvent::TriedNotice(..)
        )
    }
}

/// A record knows a process by the lower half of its pid.
fn label_of(from: Pid, number: u32) -> Label {
    let from = (from.0 & 0xffff_ffff) as u32;
    Label { from, number }
}

fn record_of_notice(
    of: Option<Pid>,
    is_gone: bool,
    is_exit: bool,
    monitor: Option<u32>,
    names: &mut impl NameIds,
) -> Event<'static> {
    let of = of.map_or(Id::None, |of| of.field(names));
    Event::order_told(of, is_gone, is_exit, monitor.map(u64::from))
}

/// Of two forms, the short one, if the difference is small enough for it.
#[inline]
fn record_of_answer(
    native: &'static Native,
    difference: u64,
    names: &mut impl NameIds,
) -> Event<'static> {
    let function = names.function(native);
    let near = Near {
        function,
        difference,
    };
    match near.word() {
        Some(answer) => Event::OrderAnswerNear { answer },
        None => Event::OrderAnswer {
            function,
            difference,
        },
    }
}

fn record_of_bytes(
    [first, second, third, fourth]: [u64; 4],
    _: &mut impl NameIds,
) -> Event<'static> {
    Event::OrderBytes {
        first,
        second,
        third,
        fourth,
    }
}

fn record_of_spent(spent: Spent, _: &mut impl NameIds) -> Event<'static> {
    Event::OrderSpent {
        reductions: spent.reductions,
        words: spent.words,
        ended: u64::from(spent.by_signal) + u64::from(spent.gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbered;

    impl NameIds for Numbered {
        fn atom(&mut self, _: Atom) -> NameId {
            NameId(1)
        }

        fn function(&mut self, _: &'static Native) -> NameId {
            NameId(2)
        }
    }

    static NOW: Native = Native::new("erlang", "now", 0);
    const PID: Pid = Pid(3 << 28 | 7);
    const OF: Id = Id::Process(3 << 28 | 7);

    fn check(all: &[(OrderEvent, Event<'_>)]) {
        for (event, record) in all {
            assert_eq!(event.record(&mut Numbered), *record, "{event:?}");
        }
    }

    #[test]
    fn fields_become_those_of_the_record() {
        let (from, number) = (PID, 4);
        let sending = Sending { from, number };
        let label = Label {
            from: 3 << 28 | 7,
            number,
        };
        check(&[
            (OrderEvent::Spawn(PID), Event::OrderSpawn { child: OF }),
            (OrderEvent::Sent(2), Event::OrderSent { count: 2 }),
            (OrderEvent::Take(sending), Event::OrderTake { label }),
            (
                OrderEvent::Tried(sending, true),
                Event::OrderTried { label, takes: 1 },
            ),
            (
                OrderEvent::Heard(Heard::Unlink, PID),
                Event::OrderHeard { what: 1, of: OF },
            ),
            (
                OrderEvent::AnswerTerm {
                    function: &NOW,
                    bytes: 33,
                },
                Event::OrderAnswerTerm {
                    function: NameId(2),
                    bytes: 33,
                },
            ),
            (OrderEvent::Exit, Event::OrderExit {}),
        ]);
    }

    #[test]
    fn a_message_that_no_process_has_sent_is_recorded_by_what_it_tells() {
        let notice = |is_exit, is_gone, monitor| OrderEvent::Notice {
            of: Some(PID),
            is_gone,
            is_exit,
            monitor,
        };
        let monitor = 6;
        let of_nobody = OrderEvent::Notice {
            of: None,
            is_gone: false,
            is_exit: false,
            monitor: None,
        };
        check(&[
            (of_nobody, Event::OrderTold { of: Id::None }),
            (notice(false, false, None), Event::OrderTold { of: OF }),
            (notice(false, true, None), Event::OrderToldGone { of: OF }),
            (notice(true, false, None), Event::OrderToldExit { of: OF }),
            (
                notice(true, true, None),
                Event::OrderToldExitGone { of: OF },
            ),
            (
                notice(false, false, Some(6)),
                Event::OrderDown { of: OF, monitor },
            ),
            (
                notice(false, true, Some(6)),
                Event::OrderDownGone { of: OF, monitor },
            ),
        ]);
    }

    #[test]
    fn a_small_difference_is_recorded_with_its_function() {
        let answer = |difference| OrderEvent::Answer {
            native: &NOW,
            difference,
        };
        let function = NameId(2);
        let near = |difference| {
            let near = Near {
                function,
                difference,
            };
            let answer = near.word().expect("it is small");
            Event::OrderAnswerNear { answer }
        };
        let difference = 1 << 60;
        let far = Event::OrderAnswer {
            function,
            difference,
        };
        check(&[
            (answer(5), near(5)),
            (answer(u64::MAX), near(u64::MAX)),
            (answer(difference), far),
        ]);
    }

    #[test]
    fn what_ends_a_process_is_a_number() {
        let spent = |by_signal, gone| {
            OrderEvent::Spent(Spent {
                reductions: 8,
                words: 9,
                by_signal,
                of: None,
                gone,
            })
        };
        let ended = |ended| Event::OrderSpent {
            reductions: 8,
            words: 9,
            ended,
        };
        check(&[
            (spent(false, false), ended(0)),
            (spent(true, false), ended(1)),
            (spent(true, true), ended(2)),
        ]);
    }
}
