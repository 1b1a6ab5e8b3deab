//! The table of event kinds: one row for each kind. The encoder, the decoder, the names and the table of
//! `docs/FORMAT.md` are made from it.

use serde::{Deserialize, Serialize};

use super::id::{Id, Label, NameId};

/// Numbers of kinds are below this.
pub const KINDS: usize = 128;

/// The number of dirty CPU schedulers in `dirty_queued` and `dirty_in`, and that of dirty I/O schedulers.
pub const DIRTY_CPU: u64 = 1;
/// See [`DIRTY_CPU`].
pub const DIRTY_IO: u64 = 2;

/// The most fields an event has.
pub const FIELDS_MAX: usize = 4;

/// A value that a field of a record holds.
trait Field: Copy {
    fn put(self) -> u64;
    fn get(word: u64) -> Self;
    fn value(self) -> Value<'static>;
    /// What stands for it among other names.
    fn renamed(self, _: &mut dyn Rename) -> Self {
        self
    }
}

/// Gives ids and names those that they have among the names of another recording.
pub trait Rename {
    /// That of a process, port, socket or name.
    fn id(&mut self, id: Id) -> Id;
    /// That of a name.
    fn name(&mut self, name: NameId) -> NameId;
}

/// The value of a field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A process, a port, or a name that stands for one.
    Id(Id),
    /// An atom or a function.
    Name(NameId),
    /// A message.
    Label(Label),
    /// A text.
    Text(&'a str),
}

impl Field for u64 {
    #[inline(always)]
    fn put(self) -> u64 {
        self
    }
    fn get(word: u64) -> Self {
        word
    }
    fn value(self) -> Value<'static> {
        Value::Number(self)
    }
}

impl Field for Id {
    #[inline(always)]
    fn put(self) -> u64 {
        self.word()
    }
    fn get(word: u64) -> Self {
        Id::from_word(word)
    }
    fn value(self) -> Value<'static> {
        Value::Id(self)
    }
    fn renamed(self, with: &mut dyn Rename) -> Self {
        with.id(self)
    }
}

impl Field for NameId {
    #[inline(always)]
    fn put(self) -> u64 {
        u64::from(self.0)
    }
    fn get(word: u64) -> Self {
        // A larger number names nothing.
        NameId(u32::try_from(word).unwrap_or(0))
    }
    fn value(self) -> Value<'static> {
        Value::Name(self)
    }
    fn renamed(self, with: &mut dyn Rename) -> Self {
        with.name(self)
    }
}

impl Field for Label {
    #[inline(always)]
    fn put(self) -> u64 {
        self.word()
    }
    fn get(word: u64) -> Self {
        Label::from_word(word)
    }
    fn value(self) -> Value<'static> {
        Value::Label(self)
    }
}

macro_rules! count {
    ($($field:ident)*) => { <[&str]>::len(&[$(stringify!($field)),*]) };
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $number:literal = $kind:ident, $name:literal, $group:ident,
        { $($field:ident: $type:ident),* $(; $text:ident)? };)*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[doc = $doc])* $kind = $number,)* }

        impl Kind {
            /// All kinds, by number.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// The kind of this number, if there is one.
            #[must_use]
            pub fn of(number: u8) -> Option<Kind> {
                match number { $($number => Some(Kind::$kind),)* _ => None }
            }
            /// As reports write it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }
            /// What is asked for to have it recorded.
            #[must_use]
            pub fn group(self) -> Group {
                match self { $(Kind::$kind => Group::$group,)* }
            }
            /// Names and types of its fields, in their order.
            #[must_use]
            pub fn fields(self) -> &'static [(&'static str, &'static str)] {
                match self {
                    $(Kind::$kind => &[$((stringify!($field), stringify!($type)),)*
                        $((stringify!($text), "text"),)?],)*
                }
            }
            /// What it means.
            #[must_use]
            pub fn doc(self) -> &'static str {
                match self { $(Kind::$kind => concat!($($doc),*).trim_ascii(),)* }
            }
            pub(in crate::ring) fn has_text(self) -> bool {
                match self { $(Kind::$kind => count!($($text)?) == 1,)* }
            }
            pub(in crate::ring) fn words(self) -> usize {
                match self { $(Kind::$kind => count!($($field)*),)* }
            }
        }

        /// What happened, to the process or port that a record is of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event<'a> {
            $($(#[doc = $doc])* $kind {
                $(#[doc = concat!("Type: ", stringify!($type), ".")] $field: $type,)*
                $(#[doc = "Text, cut where it is too long."] $text: &'a str,)?
            },)*
            /// What a newer version writes.
            Unknown {
                /// Its number.
                kind: u8,
                /// Nothing is known of it.
                nothing: &'a (),
            },
        }

        impl<'a> Event<'a> {
            /// As a record holds it; nothing for what cannot be written.
            #[inline(always)]
            pub(in crate::ring) fn parts(&self) -> Option<Parts<'a>> {
                match *self {
                    $(Event::$kind { $($field,)* $($text,)? } => Some(Parts {
                        kind: $number,
                        fields: padded([$(Field::put($field)),*]),
                        words: count!($($field)*),
                        text: <[&str]>::first(&[$($text)?]).copied(),
                    }),)*
                    Event::Unknown { .. } => None,
                }
            }

            /// Its number and its fields; nothing for what cannot be written, or has a text.
            #[must_use]
            pub fn to_words(&self) -> Option<(u8, Vec<u64>)> {
                let parts = self.parts().filter(|parts| parts.text.is_none())?;
                Some((parts.kind, parts.fields[..parts.words].to_vec()))
            }

            /// The event of a number and fields, as [`Event::to_words`] gives them.
            #[must_use]
            pub fn of_words(kind: u8, words: &[u64]) -> Event<'static> {
                let mut fields = [0; FIELDS_MAX];
                for (field, word) in fields.iter_mut().zip(words) {
                    *field = *word;
                }
                Event::of(kind, &fields, "")
            }

            /// The event that a record holds; `fields` are at least as many as its kind has.
            pub fn of(kind: u8, fields: &[u64; FIELDS_MAX], text: &'a str) -> Event<'a> {
                match Kind::of(kind) {
                    $(Some(Kind::$kind) => {
                        let mut fields = fields.iter().copied();
                        let mut next = || fields.next().unwrap_or(0);
                        let _ = (&mut next, text);
                        Event::$kind { $($field: <$type as Field>::get(next()),)* $($text: text,)? }
                    })*
                    None => Event::Unknown { kind, nothing: &() },
                }
            }

            /// Its fields, each with its name.
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, Value<'a>)> {
                match *self {
                    $(Event::$kind { $($field,)* $($text,)? } => vec![
                        $((stringify!($field), Field::value($field)),)*
                        $((stringify!($text), Value::Text($text)),)?
                    ],)*
                    Event::Unknown { .. } => Vec::new(),
                }
            }

            /// The same, with other ids and names.
            #[must_use]
            pub fn renamed(&self, with: &mut dyn Rename) -> Event<'a> {
                match *self {
                    $(Event::$kind { $($field,)* $($text,)? } => Event::$kind {
                        $($field: Field::renamed($field, with),)* $($text,)?
                    },)*
                    Event::Unknown { .. } => *self,
                }
            }

            /// Its kind; none for what a newer version writes.
            #[must_use]
            pub fn kind(&self) -> Option<Kind> {
                match self {
                    $(Event::$kind { .. } => Some(Kind::$kind),)*
                    Event::Unknown { .. } => None,
                }
            }
        }

        const _: () = {
            $(assert!($number > 0 && $number < KINDS && count!($($field)*) <= FIELDS_MAX);)*
        };
    };
}

events! {
    /// A function is called; on its return the caller goes on.
    1 = Call, "call", Calls, { function: NameId };
    /// A function is called in tail position: it returns where its caller would.
    2 = TailCall, "tail_call", Calls, { function: NameId };
    /// The newest call that has not returned returns; `function` is what was called.
    3 = Return, "return", Returns, { function: NameId };
    /// An exception, or hibernation, ends the newest `calls` calls, or all there are; their caller goes on.
    4 = Unwind, "unwind", Returns, { calls: u64 };
    /// Words it has allocated in all.
    5 = Words, "words", Words, { total: u64 };
    /// Reductions it has had in all.
    6 = Reductions, "reductions", Reductions, { total: u64 };
    /// A message is sent.
    8 = Send, "send", Messages, { to: Id; text };
    /// A message is sent to nobody.
    9 = SendToNonExisting, "send_to_non_existing_process", Messages, { to: Id; text };
    /// A message gets into the message queue.
    10 = Receive, "receive", Messages, { ; text };
    /// It has made the process `child`, which starts in `function`.
    16 = Spawn, "spawn", Processes, { child: Id, function: NameId };
    /// It has been made by `parent`, and starts in `function`.
    17 = Spawned, "spawned", Processes, { parent: Id, function: NameId };
    /// It ends, for this reason.
    18 = Exit, "exit", Processes, { ; text };
    /// It gets a name.
    19 = Register, "register", Processes, { name: NameId };
    /// It loses its name.
    20 = Unregister, "unregister", Processes, { name: NameId };
    /// It links itself to `other`.
    21 = Link, "link", Processes, { other: Id };
    /// It takes its link to `other` away.
    22 = Unlink, "unlink", Processes, { other: Id };
    /// `other` links itself to it.
    23 = GettingLinked, "getting_linked", Processes, { other: Id };
    /// `other` takes its link to it away.
    24 = GettingUnlinked, "getting_unlinked", Processes, { other: Id };
    /// It opens a socket.
    25 = NetOpen, "net_open", Net, { socket: Id };
    /// It begins to connect a socket to its peer.
    26 = NetConnect, "net_connect", Net, { socket: Id };
    /// It gets a connection that `listener` has accepted.
    27 = NetAccept, "net_accept", Net, { socket: Id, listener: Id };
    /// It waits for a socket: to be connected (1), for a connection (2), for data (3), for room to send (4).
    28 = NetWait, "net_wait", Net, { socket: Id, what: u64 };
    /// It waits for that no more. The text is empty where it can go on, and else says why not.
    29 = NetReady, "net_ready", Net, { socket: Id, what: u64; outcome };
    /// It gets `bytes` bytes that a socket has received.
    30 = NetIn, "net_in", Net, { socket: Id, bytes: u64 };
    /// It sends `bytes` bytes with a socket.
    31 = NetOut, "net_out", Net, { socket: Id, bytes: u64 };
    /// A scheduler starts to run it, in `function`.
    32 = In, "in", Scheduling, { function: NameId };
    /// The scheduler stops running it. `messages` are in its queue, and it has made `reductions` since it was started.
    33 = Out, "out", Scheduling, { function: NameId, messages: u64, reductions: u64 };
    /// A scheduler goes on ending it.
    34 = InExiting, "in_exiting", Scheduling, { };
    /// The scheduler stops ending it, for now.
    35 = OutExiting, "out_exiting", Scheduling, { };
    /// It is no more.
    36 = OutExited, "out_exited", Scheduling, { };
    /// It waits for a dirty scheduler: 1 one for CPU work, 2 one for I/O.
    37 = DirtyQueued, "dirty_queued", Scheduling, { kind: u64 };
    /// A dirty scheduler starts to run its call of a native function: the scheduler's kind, and its number.
    38 = DirtyIn, "dirty_in", Scheduling, { function: NameId, kind: u64, scheduler: u64 };
    /// The dirty scheduler has run that; an ordinary one goes on with the process.
    39 = DirtyOut, "dirty_out", Scheduling, { function: NameId };
    /// A minor collection begins: words needed, words in use.
    40 = GcMinorStart, "gc_minor_start", Gc, { need: u64, used: u64 };
    /// It ends: words given back, words in use.
    41 = GcMinorEnd, "gc_minor_end", Gc, { reclaimed: u64, used: u64 };
    /// A major collection begins: words needed, words in use.
    42 = GcMajorStart, "gc_major_start", Gc, { need: u64, used: u64 };
    /// It ends: words given back, words in use.
    43 = GcMajorEnd, "gc_major_end", Gc, { reclaimed: u64, used: u64 };
    /// The heap is larger than it may be.
    44 = GcMaxHeapSize, "gc_max_heap_size", Gc, { used: u64 };
    /// A port has been opened by `owner`, with this driver.
    48 = Open, "open", Ports, { owner: Id, driver: NameId };
    /// A port is closed, for this reason.
    49 = Closed, "closed", Ports, { ; text };
    /// A port starts to run a command.
    50 = PortIn, "port_in", Ports, { command: NameId };
    /// A port has run a command.
    51 = PortOut, "port_out", Ports, { command: NameId };
    /// A socket that it owns is closed: by its side where the text is empty, or else for the reason that the text has.
    52 = NetClose, "net_close", Net, { socket: Id; reason };
    /// A collection has taken `ms` milliseconds.
    56 = LongGc, "long_gc", System, { ms: u64 };
    /// A time slice has taken `ms` milliseconds; it began and ended in these functions. For a port, `from` is its name.
    57 = LongSchedule, "long_schedule", System, { ms: u64, from: NameId, to: NameId };
    /// The message queue has become long (1) or short again (0), and has `messages` messages.
    58 = LongMessageQueue, "long_message_queue", System, { is_long: u64, messages: u64 };
    /// The heap is large after a collection.
    59 = LargeHeap, "large_heap", System, { words: u64 };
    /// It waits for a port that is busy.
    60 = BusyPort, "busy_port", System, { port: Id };
    /// It waits for a connection to another node that is busy. A port controls the connection, or a process.
    61 = BusyDistPort, "busy_dist_port", System, { controller: Id };
    /// A message is sent with a sequential trace token: its label, the serial that its sender had got last, its own.
    64 = SeqSend, "seq_send", Seq, { to: Id, label: NameId, last: u64, serial: u64; text };
    /// A message with a token is taken from the message queue: label and serials as it was sent with.
    65 = SeqReceive, "seq_receive", Seq, { from: Id, label: NameId, last: u64, serial: u64; text };
    /// It prints, with the token it has.
    66 = SeqPrint, "seq_print", Seq, { label: NameId, last: u64, serial: u64; text };
    /// Its time slice, which ends now, has taken so much of what is counted, in the order in which it was asked for.
    72 = Counted, "counted", Counters, { first: u64, second: u64, third: u64, fourth: u64 };
    /// All threads of the emulator have, since the recording was begun: it ends now.
    73 = CountedAll, "counted_all", Counters, { first: u64, second: u64, third: u64, fourth: u64 };
    /// It makes the process `child`.
    80 = OrderSpawn, "order_spawn", Order, { child: Id };
    /// It has sent `count` messages since its last step.
    81 = OrderSent, "order_sent", Order, { count: u64 };
    /// The message `label` gets into its message queue.
    82 = OrderDelivery, "order_delivery", Order, { label: Label };
    /// It takes the message at this position, counted from 0, out of its queue.
    83 = OrderReceive, "order_receive", Order, { at: u64 };
    /// The message `label` gets into its queue, behind all others, and it takes it out.
    84 = OrderTake, "order_take", Order, { label: Label };
    /// It sends one message; then `label` gets into its queue, behind all others, and it takes it out.
    85 = OrderSendTake, "order_send_take", Order, { label: Label };
    /// A message that no process has sent gets into its queue, of a monitor, a timer or a port: one that tells of `of`, if
    /// it is known of whom.
    86 = OrderTold, "order_told", Order, { of: Id };
    /// As `order_told`, where `of` had ended before.
    87 = OrderToldGone, "order_told_gone", Order, { of: Id };
    /// The message that is delivered next gets to this position, counted from 0.
    88 = OrderAhead, "order_ahead", Order, { at: u64 };
    /// Its receive times out.
    89 = OrderTimeout, "order_timeout", Order, { };
    /// It calls a function of a module that is not loaded, or has no such function.
    90 = OrderMiss, "order_miss", Order, { module: NameId };
    /// It makes a module's code the current one; so often has the module been missed in all.
    91 = OrderLoad, "order_load", Order, { module: NameId, misses: u64 };
    /// It ends.
    92 = OrderExit, "order_exit", Order, { };
    /// Where in the code the step is that it makes next: the function, and the line, 0 where that is not known.
    93 = OrderSite, "order_site", Sites, { function: NameId, line: u64 };
    /// It accesses what processes share, after the access `number` of the process `of`: its own access of so many numbers
    /// later than the last one that was told.
    94 = OrderAfter, "order_after", Order, { of: Id, number: u64, since: u64 };
    /// It has made `count` accesses since the last recorded one.
    95 = OrderAccesses, "order_accesses", Order, { count: u64 };
    /// The access that it is about to make: how it is made (the bits are below), the object's number among those of
    /// the run, its name, which part of it is accessed (a hash, or a place), and that part as Erlang writes it.
    96 = OrderAccess, "order_access", Sites, { how: u64, object: u64, name: NameId, part: u64; text };
    /// It ends next, and has made `reductions` and allocated `words` by then. It ends by itself (0), by a signal (1), or because
    /// the process that it was linked to had ended before (2).
    97 = OrderSpent, "order_spent", Order, { reductions: u64, words: u64, ended: u64 };
    /// An exit signal of `of` gets into its queue as a message.
    98 = OrderToldExit, "order_told_exit", Order, { of: Id };
    /// As `order_told_exit`, where `of` had ended before.
    99 = OrderToldExitGone, "order_told_exit_gone", Order, { of: Id };
    /// A native function gives it an integer, this much (modulo 2^64) more than the last one that it was given.
    100 = OrderAnswer, "order_answer", Order, { function: NameId, difference: u64 };
    /// A native function gives it a term. The term follows in the external term format, in `bytes` bytes.
    101 = OrderAnswerTerm, "order_answer_term", Order, { function: NameId, bytes: u64 };
    /// The next 32 bytes of a term, 8 in each number, the first one lowest; zeros behind its end.
    102 = OrderBytes, "order_bytes", Order, { first: u64, second: u64, third: u64, fourth: u64 };
    /// The message that is delivered next comes from outside; the bytes of its term follow.
    103 = OrderContent, "order_content", Order, { bytes: u64 };
    /// A native function gives it an integer, as in `order_answer`, in one number: the function's number in the highest 24 bits, the difference, which may be negative, in
    /// the others.
    104 = OrderAnswerNear, "order_answer_near", Order, { answer: u64 };
    /// The signal that ends it, as `order_spent` tells next, is of this process.
    105 = OrderEndedBy, "order_ended_by", Order, { of: Id };
    /// An exit signal of this process with the reason `normal` is lost, as it does not trap exits.
    106 = OrderLost, "order_lost", Order, { of: Id };
    /// It sends a signal other than a message to this process; its numbers are below.
    107 = OrderSignal, "order_signal", Sites, { what: u64, to: Id };
    /// It begins to trap exits (1), or ceases to (0).
    108 = OrderTraps, "order_traps", Sites, { traps: u64 };
    /// The receive that it makes next has a clause for the message `label`, which could have come first (1), or has none (0).
    109 = OrderTried, "order_tried", Sites, { label: Label, takes: u64 };
    /// As `order_tried`, for a message that no process has sent: these are counted from 1.
    110 = OrderTriedTold, "order_tried_told", Sites, { number: u64, takes: u64 };
    /// The message of a timer gets into its message queue: `label` names the process that has set the timer, and says which of
    /// its timers it is.
    111 = OrderTimer, "order_timer", Order, { label: Label };
    /// The message of a monitor gets into its message queue, which tells of `of`, if of a process: the monitor's reference is
    /// the one of this number, from 1, of the references and unique integers that it makes.
    112 = OrderDown, "order_down", Order, { of: Id, monitor: u64 };
    /// As `order_down`, where `of` had ended before.
    113 = OrderDownGone, "order_down_gone", Order, { of: Id, monitor: u64 };
    /// It hears of the link to this process: that one has linked itself (0), has unlinked itself (1), or has heard that it has
    /// unlinked itself (2).
    114 = OrderHeard, "order_heard", Order, { what: u64, of: Id };
    /// Another process has asked for a collection of it, of all of its heap (1) or of the young part (0). The collection begins
    /// when it has made `reductions`.
    115 = OrderCollect, "order_collect", Order, { reductions: u64, major: u64 };
    /// What its last record of the order says (`order_take` or `order_send_take`) happens `times` more times, each time with the
    /// next message of the same sender. The number grows in its place for about a millisecond, to 256 at most, and the
    /// record may have the time of an earlier one of that millisecond. The upper 32 bits are the number's complement.
    116 = OrderAgain, "order_again", Order, { times: u64 };
    /// A look at a thread of the emulator, which ran for it, or for nobody: the stack, what the thread did (1 Erlang code, 2 a
    /// native function, 3 a collection, 4 the runtime's own work), the thread's kind (0 another one, 1 a scheduler, 2 a dirty
    /// CPU scheduler, 3 a dirty I/O scheduler), and its number.
    117 = Sampled, "sampled", Samples, { stack: NameId, does: u64, kind: u64, number: u64 };
    /// Samples that found no room on their way from the system.
    118 = SamplesLost, "samples_lost", Samples, { count: u64 };
    /// What a collection that has just ended has left it in binaries outside its heap: how many bytes, how many binaries, and the
    /// bytes of the largest. A process without any has no such record. If a minor collection leaves many, it does not look at
    /// each: `count` and `largest` are 0, and a binary counts once for each reference to it.
    119 = GcBinaries, "gc_binaries", Gc, { bytes: u64, count: u64, largest: u64 };
    /// At the end of the recording it owns the ETS table of this name, with its size in words and its number of objects.
    120 = Table, "table", Gc, { name: NameId, words: u64, objects: u64 };
    /// The sampler has stopped threads of the emulator to look at them: how often, and for how long altogether, since the last
    /// such record.
    121 = ThreadsStopped, "threads_stopped", Samples, { looks: u64, ns: u64 };
    /// The connection of this number to a node stands.
    122 = DistUp, "dist_up", Dist, { connection: u64, node: NameId };
    /// It has ended, for this reason.
    123 = DistDown, "dist_down", Dist, { connection: u64; reason };
    /// A signal of its leaves for another node: the connection, its number among those that have left by that, from 1, the
    /// operation of the distribution protocol, bytes of its terms, and what it says without the pids of its control message. A message
    /// comes first in that, and what comes behind other control messages last.
    124 = DistOut, "dist_out", Dist, { connection: u64, number: u64, operation: u64, bytes: u64; text };
    /// A signal for it has come from another node. The fields are those of `dist_out`: the signal that has this number there has it
    /// here.
    125 = DistIn, "dist_in", Dist, { connection: u64, number: u64, operation: u64, bytes: u64; text };
}

impl Event<'_> {
    /// A message that no process has sent gets into a queue: it tells of `of`, which may have been `gone`, and may be an
    /// exit signal, or of a monitor of this number, if that is known.
    #[must_use]
    pub fn order_told(of: Id, gone: bool, exit: bool, monitor: Option<u64>) -> Event<'static> {
        match (exit, gone, monitor) {
            (true, false, _) => Event::OrderToldExit { of },
            (true, true, _) => Event::OrderToldExitGone { of },
            (false, false, None) => Event::OrderTold { of },
            (false, true, None) => Event::OrderToldGone { of },
            (false, false, Some(monitor)) => Event::OrderDown { of, monitor },
            (false, true, Some(monitor)) => Event::OrderDownGone { of, monitor },
        }
    }
}

/// A group of events. A user asks for events by their groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Calls of functions.
    Calls,
    /// Returns from them, and exceptions that end them.
    Returns,
    /// Words allocated from one call or return to the next.
    Words,
    /// Reductions from one call or return to the next.
    Reductions,
    /// Messages sent and received.
    Messages,
    /// Births, ends, names and links of processes.
    Processes,
    /// When processes run.
    Scheduling,
    /// Collections.
    Gc,
    /// Ports: opened, closed, run.
    Ports,
    /// Sockets: opened, connected, closed, the bytes that cross them, and who waits for them.
    Net,
    /// What takes or becomes too much.
    System,
    /// Sequential tracing: messages with a token.
    Seq,
    /// Counters of the processor and the operating system: of time slices, and of the whole run.
    Counters,
    /// The order of what processes do to each other, for replays.
    Order,
    /// Where in the code the sends, receives, time-outs and accesses of the order are, and what is accessed.
    Sites,
    /// Looks at the threads of an emulator from outside.
    Samples,
    /// Connections to other nodes, and the signals that cross them.
    Dist,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 17] = [
        Group::Calls,
        Group::Returns,
        Group::Words,
        Group::Reductions,
        Group::Messages,
        Group::Processes,
        Group::Scheduling,
        Group::Gc,
        Group::Ports,
        Group::Net,
        Group::System,
        Group::Seq,
        Group::Counters,
        Group::Order,
        Group::Sites,
        Group::Samples,
        Group::Dist,
    ];

    /// As the command line writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Calls => "calls",
            Group::Returns => "returns",
            Group::Words => "words",
            Group::Reductions => "reductions",
            Group::Messages => "messages",
            Group::Processes => "processes",
            Group::Scheduling => "scheduling",
            Group::Gc => "gc",
            Group::Ports => "ports",
            Group::Net => "net",
            Group::System => "system",
            Group::Seq => "seq",
            Group::Counters => "counters",
            Group::Order => "order",
            Group::Sites => "sites",
            Group::Samples => "samples",
            Group::Dist => "dist",
        }
    }

    /// Whether an emulator records it. Samples are what others see of an emulator.
    #[must_use]
    pub(crate) fn is_recorded_inside(self) -> bool {
        self != Group::Samples
    }
}

impl std::str::FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Group::ALL.into_iter();
        match all.find(|group| group.name() == text) {
            Some(group) if group.is_recorded_inside() => Ok(group),
            Some(group) => Err(format!(
                "an emulator does not record {} itself: use beamline sample",
                group.name()
            )),
            None => {
                let groups = Group::ALL.into_iter();
                let groups = groups.filter(|group| group.is_recorded_inside());
                let names: Vec<&str> = groups.map(Group::name).collect();
                let names = names.join(", ");
                Err(format!(
                    "'{text}' is not a group of events; the groups are {names}"
                ))
            }
        }
    }
}

/// An event in pieces.
#[derive(Clone, Copy)]
pub(in crate::ring) struct Parts<'a> {
    pub(in crate::ring) kind: u8,
    pub(in crate::ring) fields: [u64; FIELDS_MAX],
    pub(in crate::ring) words: usize,
    pub(in crate::ring) text: Option<&'a str>,
}

#[inline(always)]
fn padded<const N: usize>(words: [u64; N]) -> [u64; FIELDS_MAX] {
    let mut fields = [0; FIELDS_MAX];
    fields[..N].copy_from_slice(&words);
    fields
}

/// The table of `docs/FORMAT.md`.
#[must_use]
pub fn table() -> String {
    let mut out =
        String::from("| number | name | group | fields | meaning |\n|---|---|---|---|---|\n");
    for kind in Kind::ALL {
        let fields = kind
            .fields()
            .iter()
            .map(|(name, kind)| format!("{name}: {kind}"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        let (number, name, group, doc) =
            (*kind as u8, kind.name(), kind.group().name(), kind.doc());
        out.push_str(&format!(
            "| {number} | `{name}` | {group} | {fields} | {doc} |\n"
        ));
    }
    out
}
