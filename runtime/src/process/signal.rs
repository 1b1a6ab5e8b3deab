//! Signals: everything that one process sends to another, in one ordered queue for each receiver.
//!
//! The receiver handles a signal, in its own context (`incoming`). A signal that reaches no process any more is answered
//! in the receiver's stead ([`Signal::answer_for_gone`]), so that its sender hears `noproc`.
//! Source: `erl_proc_sig_queue.c`, OTP 29.

use beamline_formats::ring::SignalKind;
use beamline_orders::Heard;

use super::direct_send::ByAlias;
use super::order::{Setting, Source};
use super::refs::RefNumbers;
use super::seq_token::Token;
use super::watcher::Watcher;
use super::{Peer, Process, deliver};
use crate::heap::Message;
use crate::term::{Atom, Pid, Term, am};

/// The sender of the runtime's own messages: no process's pid.
pub(crate) const SYSTEM: Pid = Pid(crate::sched::ptab::INVALID_DATA);

/// What sends a message, beside the process that it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// That process, which has no sequential trace token: a receiver that takes the message loses its own.
    Process,
    /// A process of another node, without a token: what it says comes from outside.
    OtherNode,
    /// The runtime, as if it were from that process.
    Runtime,
    /// The runtime, which answers a request of the receiver. The receiver waits for it in the middle of a built-in function.
    Answer,
    /// The runtime; what it says comes from outside: of a port, or about that process.
    Outside,
    /// A timer that this process has set: its number is which of the process's timers.
    Timer,
    /// A timer, for which that process stands in an explored run.
    TimerProcess,
}

impl Sender {
    /// Whether what the message says comes from outside, so that it is recorded with it.
    pub(super) fn is_outside(self) -> bool {
        matches!(self, Sender::Outside | Sender::OtherNode)
    }

    /// Whether a receiver that takes the message loses its sequential trace token.
    pub(super) fn is_process(self) -> bool {
        matches!(self, Sender::Process | Sender::OtherNode)
    }
}

/// A function that runs in the context of the receiver; without a process when it is gone.
pub(crate) type Request = Box<dyn FnOnce(Option<&mut Process>) + Send>;

/// A signal from one process to another.
pub(crate) enum Signal {
    /// A message.
    Message {
        message: Message,
        /// Who sent it; [`SYSTEM`] for messages of the runtime's own.
        from: Pid,
        sender: Sender,
        /// Which of its sender's sendings it is, or which of its timers, where the order is asked for; else, and for other
        /// messages of the runtime's own, 0.
        number: u32,
    },
    /// A message of a process that has a sequential trace token, or to an alias while the order is asked for.
    Traced(Box<TracedMessage>),
    /// A message to an alias of the receiver.
    AliasMessage {
        alias: RefNumbers,
        message: Message,
        /// Goes before others, if the alias allows it.
        priority: bool,
    },
    /// The next message of the receiver to itself, which lies on its heap: the mailbox has it.
    ToSelf,
    /// An exit signal.
    Exit(Box<ExitSignal>),
    /// `from` has linked itself to the receiver.
    Link { from: Peer },
    /// `from` gives up its link; answered by `UnlinkAck` with the same `id`.
    Unlink { from: Peer, id: u64 },
    /// The link is gone on both sides.
    UnlinkAck { from: Peer, id: u64 },
    /// `from` monitors the receiver.
    Monitor { reference: RefNumbers, from: Pid },
    /// No more.
    Demonitor { reference: RefNumbers },
    /// Something that is no process of this node monitors the receiver, by this reference.
    Watch(Box<(RefNumbers, Watcher)>),
    /// Its group leader is to be this process, as a process of another node says.
    GroupLeader { leader: Peer },
    /// What the receiver monitors is gone.
    MonitorDown {
        reference: RefNumbers,
        reason: Message,
        /// It was gone already when it was asked for. Its own reason may be `noproc`, too.
        is_gone: bool,
    },
    /// The timer of a `receive ... after` that was set as number `id` of this process.
    ReceiveTimeout { id: u64 },
    /// Anything else.
    Request(Request),
    /// A [`Signal::Request`] of a process that waits for the answer. In an explored run, it comes behind exit signals
    /// of that one; there and in a replay it is answered also where the receiver has begun to end.
    Question { from: Pid, run: Request },
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Signal>() <= 32, "a signal's node fits 40 bytes");

/// A message that carries more than most.
pub(crate) struct TracedMessage {
    pub(crate) message: Message,
    pub(crate) from: Peer,
    /// A sequential trace token.
    pub(crate) token: Option<Token>,
    /// As in [`Signal::Message`].
    pub(crate) number: u32,
    /// The alias it is sent to, and whether it goes before others.
    pub(crate) alias: ByAlias,
}

impl TracedMessage {
    /// Where it comes from, in the order of the run.
    pub(super) fn source(&self) -> Source {
        let from = self.from.pid().unwrap_or(SYSTEM);
        Source::of(Sender::Process, from, self.number)
    }
}

/// An exit signal.
pub(crate) struct ExitSignal {
    pub(crate) from: Peer,
    /// Meant for this alias only.
    pub(crate) alias: Option<RefNumbers>,
    pub(crate) reason: Message,
    /// Because of a link; else sent by `exit/2`.
    pub(crate) linked: bool,
    /// Whom it is from was gone already when it was linked to. Its own reason may be `noproc`, too.
    pub(crate) is_gone: bool,
    /// `exit(self(), normal)` ends the process, as a `normal` from others does not.
    pub(crate) normal_kills: bool,
    /// Its message, if it becomes one, goes before others.
    pub(crate) priority: bool,
    /// The sequential trace token of the process that exits.
    pub(crate) token: Option<Token>,
    /// Which of its sender's accesses `exit/2` is in an explored run; else 0.
    pub(crate) access: u64,
    /// Whether it counts as one to whoever traps exits, where that is settled before it is handled: in an explored run with the
    /// reason `normal`, and where a recorded run is followed.
    pub(crate) traps: Option<bool>,
}

impl ExitSignal {
    /// One of `exit/2`, to a process.
    pub(crate) fn new(from: Peer, reason: Term<'_>) -> ExitSignal {
        ExitSignal {
            from,
            alias: None,
            reason: Message::copy_of(reason),
            linked: false,
            is_gone: false,
            normal_kills: false,
            priority: false,
            token: None,
            access: 0,
            traps: None,
        }
    }

    /// One because of a link, with the sequential trace token of whoever exits.
    pub(crate) fn of_link(from: Peer, reason: Term<'_>, token: Option<Token>) -> ExitSignal {
        ExitSignal {
            linked: true,
            token,
            ..ExitSignal::new(from, reason)
        }
    }

    /// Its kind, as it is recorded.
    pub(super) fn kind(&self) -> SignalKind {
        match () {
            () if self.ends(true) => SignalKind::Kill,
            () if self.ends(false) => SignalKind::Exit,
            () => SignalKind::Normal,
        }
    }

    /// Does it end a process that traps exits, or one that does not?
    pub(crate) fn ends(&self, traps: bool) -> bool {
        self.would_end(traps, self.reason.term())
    }

    /// As [`ExitSignal::ends`], with this reason.
    pub(super) fn would_end(&self, traps: bool, reason: Term<'_>) -> bool {
        match (self.linked, reason == am::kill) {
            (false, true) => true,
            _ => !traps && (reason != am::normal || self.normal_kills),
        }
    }
}

/// Sends `signal` to the other end of a link.
pub(crate) fn deliver_to_peer(peer: Peer, signal: Signal) {
    if let Some(pid) = peer.pid() {
        deliver(pid, signal);
    } else if let Some(port) = peer.port() {
        super::ports::deliver(port, signal);
    } else {
        super::nodes::deliver(peer, signal);
    }
}

impl Signal {
    /// A message of the runtime's, as if from `from`.
    pub(crate) fn message(term: Term<'_>, from: Pid) -> Signal {
        Signal::own(Message::copy_of(term), from)
    }

    /// An answer for which its receiver waits in the middle of a built-in function.
    pub(crate) fn answer(message: Message, from: Pid) -> Signal {
        Signal::Message {
            message,
            from,
            sender: Sender::Answer,
            number: 0,
        }
    }

    /// A message of the runtime's that is made already.
    pub(crate) fn own(message: Message, from: Pid) -> Signal {
        Signal::Message {
            message,
            from,
            sender: Sender::Runtime,
            number: 0,
        }
    }

    /// A message of a process of another node, without a sequential trace token: its content comes from outside.
    pub(crate) fn of_other_node(message: Message) -> Signal {
        Signal::Message {
            message,
            from: SYSTEM,
            sender: Sender::OtherNode,
            number: 0,
        }
    }

    /// A message of a port: its content comes from outside.
    pub(crate) fn from_outside(message: Message) -> Signal {
        Signal::outside_of(SYSTEM, message)
    }

    /// A message whose content comes from outside, and that is about a process.
    pub(super) fn outside_of(from: Pid, message: Message) -> Signal {
        Signal::Message {
            message,
            from,
            sender: Sender::Outside,
            number: 0,
        }
    }

    /// A message of a timer for which this process stands, in an explored run.
    pub(super) fn of_timer(message: Message, process: Pid) -> Signal {
        Signal::Message {
            message,
            from: process,
            sender: Sender::TimerProcess,
            number: 0,
        }
    }

    /// A message of a timer that this process has set: which of its timers.
    pub(super) fn of_set_timer(message: Message, Setting { by, number }: Setting) -> Signal {
        Signal::Message {
            message,
            from: by,
            sender: Sender::Timer,
            number,
        }
    }

    /// Is it a message from outside?
    pub(super) fn is_from_outside(&self) -> bool {
        matches!(self, Signal::Message { sender, .. } if sender.is_outside())
    }

    /// What handling it counts; a message counts nothing. Source: `erts_proc_sig_handle_incoming()`.
    pub(crate) fn work(&self) -> i64 {
        match self {
            Signal::Message { .. }
            | Signal::Traced(_)
            | Signal::AliasMessage { .. }
            | Signal::ToSelf
            | Signal::ReceiveTimeout { .. } => 0,
            Signal::MonitorDown { .. } => 8,
            _ => 1,
        }
    }

    /// Words of the message that it is, if it is one.
    pub(crate) fn message_words(&self) -> usize {
        match self {
            Signal::Message { message, .. } | Signal::AliasMessage { message, .. } => {
                message.words()
            }
            Signal::Traced(traced) => traced.message.words(),
            _ => 0,
        }
    }

    /// A message that a process sends, with its sequential trace token and the number of the sending.
    #[inline]
    pub(crate) fn sent(term: Term<'_>, from: Pid, token: Option<Token>, number: u32) -> Signal {
        let message = Message::copy_of(term);
        match token {
            None => Signal::Message {
                message,
                from,
                sender: Sender::Process,
                number,
            },
            token => Signal::Traced(Box::new(TracedMessage {
                message,
                from: from.into(),
                token,
                number,
                alias: None,
            })),
        }
    }

    /// What it tells of the link to a process, if it does no more.
    pub(super) fn of_link(&self) -> Option<(Heard, Pid)> {
        let (what, from) = match self {
            Signal::Link { from } => (Heard::Link, from),
            Signal::Unlink { from, .. } => (Heard::Unlink, from),
            Signal::UnlinkAck { from, .. } => (Heard::Unlinked, from),
            _ => return None,
        };
        Some((what, from.pid()?))
    }

    /// An exit signal because of a link.
    pub(crate) fn link_exit(from: Peer, reason: Term<'_>) -> Signal {
        Signal::Exit(Box::new(ExitSignal::of_link(from, reason, None)))
    }

    /// The exit signal that answers a link to what is gone.
    pub(crate) fn link_to_gone(from: Peer) -> Signal {
        let noproc = Atom::term(am::noproc);
        Signal::Exit(Box::new(ExitSignal {
            is_gone: true,
            ..ExitSignal::of_link(from, noproc, None)
        }))
    }

    /// What a monitor of what is gone tells.
    pub(crate) fn down_of_gone(reference: RefNumbers) -> Signal {
        Signal::MonitorDown {
            reference,
            reason: Message::copy_of(Atom::term(am::noproc)),
            is_gone: true,
        }
    }

    /// A request to be run in the context of the receiver.
    pub(crate) fn request(run: impl FnOnce(Option<&mut Process>) + Send + 'static) -> Signal {
        Signal::Request(Box::new(run))
    }

    /// A request of a process that waits for the answer.
    pub(crate) fn question(
        from: Pid,
        run: impl FnOnce(Option<&mut Process>) + Send + 'static,
    ) -> Signal {
        let run = Box::new(run);
        Signal::Question { from, run }
    }

    /// Answers the signal as a process `to` that is gone does.
    #[cold]
    pub(crate) fn answer_for_gone(self, to: Pid) {
        match self {
            Signal::Link { from } => {
                deliver_to_peer(from, Signal::link_to_gone(to.into()));
            }
            Signal::Unlink { from, id } => {
                deliver_to_peer(
                    from,
                    Signal::UnlinkAck {
                        from: to.into(),
                        id,
                    },
                );
            }
            Signal::Monitor { reference, from } => {
                deliver(from, Signal::down_of_gone(reference));
            }
            Signal::Watch(watch) => (watch.1.told)(am::noproc.term()),
            Signal::Request(run) | Signal::Question { run, .. } => run(None),
            Signal::Message { .. }
            | Signal::Traced(_)
            | Signal::AliasMessage { .. }
            | Signal::ToSelf
            | Signal::Exit(_)
            | Signal::UnlinkAck { .. }
            | Signal::Demonitor { .. }
            | Signal::GroupLeader { .. }
            | Signal::MonitorDown { .. }
            | Signal::ReceiveTimeout { .. } => {}
        }
    }
}
