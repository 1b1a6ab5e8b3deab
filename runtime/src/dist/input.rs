//! What comes from other nodes: packets are decoded, and what they say goes on to processes of this node. Source:
//! `erts_net_message()` in `dist.c`, OTP 29.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::atom_cache::{AtomCache, DIST_HEADER, FIRST_FRAGMENT, FRAGMENT, PASS_THROUGH};
use super::entry::{DistEntry, Phase};
use super::operation::{Operation, altact};
use super::spawn;
use crate::copy::append;
use crate::external::{OfMessage, VERSION_MAGIC, decode_with_header, decode_with_version};
use crate::heap::{Heap, Message, SharedBytes};
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::registry::{self, Named};
use crate::process::signal::{ExitSignal, TracedMessage};
use crate::process::watcher::{WatchedBy, Watcher, unwatch, watch_or_tell};
use crate::process::{Peer, SYSTEM, Signal, deliver, is_of_old_incarnation, lookup, trace_flags};
use crate::sched::ptab::pin;
use crate::term::{Atom, External, Pid, Term, View, am, tag};
use crate::trace::record::dist::{self as record, Crossing, Told};
use crate::trace::seq::Token;

/// What came is no message: the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadData;

/// What is remembered of what has come.
#[derive(Default)]
pub(super) struct Input {
    cache: AtomCache,
    /// Messages of which a part has come.
    sequences: BTreeMap<u64, Sequence>,
    /// Messages that have come whole.
    whole: u64,
}

/// Bytes that are set aside for a message of which the first fragment has come, at most.
const ROOM_AT_FIRST: usize = 64 << 20;

/// A message of which the first fragments have come.
struct Sequence {
    /// Fragments that are still to come.
    missing: u64,
    atoms: Vec<Atom>,
    bytes: Vec<u8>,
}

/// Takes a packet that has come by the connection of this number; one without bytes only says that the other is there.
///
/// # Errors
/// [`BadData`]
pub(crate) fn receive(entry: &DistEntry, connection: u32, packet: &[u8]) -> Result<(), BadData> {
    entry.count_received();
    if packet.is_empty() || !is_current(entry, connection) {
        return Ok(());
    }
    let mut input = entry.input.lock();
    let Some(whole) = input.take(packet)? else {
        return Ok(());
    };
    // Under the lock of the input: what follows on this connection comes behind this.
    whole.dispatch(entry, connection)
}

fn is_current(entry: &DistEntry, connection: u32) -> bool {
    let state = entry.state.lock();
    state.connection == connection && state.phase == Phase::Connected
}

/// Bytes of a packet, or put together from several.
enum Packed<'b> {
    Packet(&'b [u8]),
    Together(SharedBytes),
}

/// The terms of a message, encoded.
pub(super) struct Whole<'b> {
    bytes: Packed<'b>,
    atoms: Vec<Atom>,
    has_versions: bool,
    /// How many have come before it on this connection, and 1.
    pub(super) number: u64,
}

fn take_number(bytes: &[u8]) -> Result<(u64, &[u8]), BadData> {
    let (number, rest) = bytes.split_first_chunk().ok_or(BadData)?;
    Ok((u64::from_be_bytes(*number), rest))
}

impl Input {
    /// The message that this packet is, or ends; `None` where more of it is to come.
    pub(super) fn take<'b>(&mut self, packet: &'b [u8]) -> Result<Option<Whole<'b>>, BadData> {
        let mut whole = self.put_together(packet)?;
        if let Some(whole) = &mut whole {
            self.whole += 1;
            whole.number = self.whole;
        }
        Ok(whole)
    }

    /// As [`Input::take`], without a number.
    fn put_together<'b>(&mut self, packet: &'b [u8]) -> Result<Option<Whole<'b>>, BadData> {
        let whole = |bytes, atoms| Whole {
            bytes,
            atoms,
            has_versions: false,
            number: 0,
        };
        match packet {
            [PASS_THROUGH, rest @ ..] => Ok(Some(Whole {
                has_versions: true,
                ..whole(Packed::Packet(rest), Vec::new())
            })),
            [VERSION_MAGIC, DIST_HEADER, rest @ ..] => {
                let (atoms, rest) = self.cache.read(rest).ok_or(BadData)?;
                Ok(Some(whole(Packed::Packet(rest), atoms)))
            }
            [VERSION_MAGIC, FIRST_FRAGMENT, rest @ ..] => {
                let (sequence, rest) = take_number(rest)?;
                let (fragment, rest) = take_number(rest)?;
                let (atoms, rest) = self.cache.read(rest).ok_or(BadData)?;
                let missing = fragment.checked_sub(1).ok_or(BadData)?;
                if missing == 0 {
                    return Ok(Some(whole(Packed::Packet(rest), atoms)));
                }
                let Entry::Vacant(place) = self.sequences.entry(sequence) else {
                    return Err(BadData);
                };
                // All that will come, if it is what it says.
                let all = rest.len().saturating_mul(fragment as usize);
                let mut bytes = Vec::with_capacity(all.min(ROOM_AT_FIRST).max(rest.len()));
                append(&mut bytes, rest);
                place.insert(Sequence {
                    missing,
                    atoms,
                    bytes,
                });
                Ok(None)
            }
            [VERSION_MAGIC, FRAGMENT, rest @ ..] => {
                let (sequence, rest) = take_number(rest)?;
                let (fragment, rest) = take_number(rest)?;
                let Entry::Occupied(mut found) = self.sequences.entry(sequence) else {
                    return Err(BadData);
                };
                let part = found.get_mut();
                // They are counted down, and come in order.
                if part.missing != fragment {
                    return Err(BadData);
                }
                append(&mut part.bytes, rest);
                part.missing -= 1;
                if part.missing > 0 {
                    return Ok(None);
                }
                let Sequence { atoms, bytes, .. } = found.remove();
                let bytes = SharedBytes::from_vec(bytes);
                Ok(Some(whole(Packed::Together(bytes), atoms)))
            }
            _ => Err(BadData),
        }
    }
}

impl Whole<'_> {
    /// Its bytes, and those that terms may share.
    fn bytes(&self) -> (&[u8], Option<&SharedBytes>) {
        match &self.bytes {
            Packed::Packet(bytes) => (bytes, None),
            Packed::Together(bytes) => (bytes.as_slice(), Some(bytes)),
        }
    }

    /// Bytes of its terms.
    pub(super) fn len(&self) -> usize {
        self.bytes().0.len()
    }

    /// The term that begins at `at`.
    pub(super) fn term<'h>(&self, heap: &'h Heap, at: usize) -> Result<OfMessage<'h>, BadData> {
        let (bytes, shared) = self.bytes();
        let bytes = &bytes[at..];
        let decoded = match self.has_versions {
            true => decode_with_version(heap, bytes),
            false => decode_with_header(heap, bytes, &self.atoms, shared),
        };
        decoded.map_err(|_| BadData)
    }

    /// The term that begins at `at`, as a message.
    pub(super) fn message(&self, at: usize) -> Result<Message, BadData> {
        Message::build(|heap| {
            let decoded = self.term(heap, at)?;
            Ok((decoded.term, decoded.is_compact))
        })
    }

    fn dispatch(&self, entry: &DistEntry, connection: u32) -> Result<(), BadData> {
        let heap = Heap::detached();
        let OfMessage {
            term: control,
            used: end,
            ..
        } = self.term(&heap, 0)?;
        let elements = control.as_tuple().ok_or(BadData)?.elements();
        let (number, rest) = elements.split_first().ok_or(BadData)?;
        let operation = number.as_small().and_then(Operation::of).ok_or(BadData)?;
        let signal = Incoming { entry, connection };
        let payload = || self.message(end);
        if !record::is_asked() {
            return signal.dispatch(operation, rest, payload);
        }
        let payload = (end < self.len()).then(payload).transpose()?;
        let crossing = Crossing {
            connection,
            number: self.number,
            bytes: self.len(),
        };
        let term = payload.as_ref().map(Message::term);
        let told = Told::of(operation.told(), rest, term);
        record::came(receiver(operation, rest), crossing, &told);
        signal.dispatch(operation, rest, || payload.ok_or(BadData))
    }
}

/// Where a signal comes from.
pub(super) struct Incoming<'e> {
    pub(super) entry: &'e DistEntry,
    pub(super) connection: u32,
}

/// A process that a control message names as one of this node.
enum Local {
    Pid(Pid),
    /// Of an old incarnation: it is gone.
    Old,
}

fn local(term: Term<'_>) -> Result<Local, BadData> {
    match term.view() {
        View::Pid(pid) => Ok(Local::Pid(pid)),
        View::External(external)
            if external.kind() == tag::EXTERNAL_PID && is_of_old_incarnation(term) =>
        {
            Ok(Local::Old)
        }
        _ => Err(BadData),
    }
}

fn is_pid(term: Term<'_>) -> bool {
    let kind = |term: Term<'_>| term.as_external().map(|external| external.kind());
    term.as_pid().is_some() || kind(term) == Some(tag::EXTERNAL_PID)
}

fn is_ref(term: Term<'_>) -> bool {
    let kind = |term: Term<'_>| term.as_external().map(|external| external.kind());
    term.as_ref().is_some() || kind(term) == Some(tag::EXTERNAL_REF)
}

/// The numbers of a reference of the other node.
pub(super) fn numbers_of(reference: Term<'_>) -> Result<Vec<u32>, BadData> {
    let kind = |external: &External<'_>| external.kind() == tag::EXTERNAL_REF;
    let reference = reference.as_external().filter(kind).ok_or(BadData)?;
    Ok(reference.ref_numbers().to_vec())
}

fn registered(name: Term<'_>) -> Option<Pid> {
    match registry::whereis(name.as_atom()?)? {
        Named::Process(pid) => Some(pid),
        Named::Port(_) => None,
    }
}

/// The process of this node that a signal is for, where it has one already.
fn receiver(operation: Operation, elements: &[Term<'_>]) -> Option<Pid> {
    let to = elements.get(operation.receiver_at()?)?;
    match to.view() {
        View::Pid(pid) => Some(pid),
        View::Ref(reference) => reference.pid(),
        View::Atom(_) => registered(*to),
        _ => None,
    }
}

/// What is known of a message beside what it says and to whom.
#[derive(Clone, Copy)]
struct Letter<'h> {
    from: Term<'h>,
    /// The sequential trace token of its sender.
    token: Option<Term<'h>>,
    priority: bool,
}

impl Letter<'_> {
    /// The signal that brings the message to the process `to`, by this alias or not.
    fn signal(&self, to: Pid, alias: Option<RefNumbers>, message: Message) -> Signal {
        let token = self.token.and_then(Token::of_term);
        if token.is_some() || is_receive_traced(to) {
            return Signal::Traced(Box::new(TracedMessage {
                message,
                from: Peer::process_of(self.from).unwrap_or(SYSTEM.into()),
                token,
                number: 0,
                alias: alias.map(|alias| (alias, self.priority)),
            }));
        }
        match alias {
            None => Signal::of_other_node(message),
            Some(alias) => Signal::AliasMessage {
                alias,
                message,
                priority: self.priority,
            },
        }
    }
}

fn letter<'h>(from: Term<'h>, token: Option<Term<'h>>) -> Letter<'h> {
    Letter {
        from,
        token,
        priority: false,
    }
}

/// Does somebody trace what the process receives?
fn is_receive_traced(pid: Pid) -> bool {
    let guard = pin();
    lookup(pid, &guard).is_some_and(|shared| shared.tracee.has(trace_flags::RECEIVE))
}

impl Incoming<'_> {
    /// A process of the other node.
    pub(super) fn peer(&self, term: Term<'_>) -> Result<Peer, BadData> {
        let peer = Peer::process_of(term).ok_or(BadData)?;
        let node = peer.node_of().ok_or(BadData)?.0;
        if node != self.entry.name {
            return Err(BadData);
        }
        Ok(peer)
    }

    fn dispatch(
        &self,
        operation: Operation,
        elements: &[Term<'_>],
        payload: impl FnOnce() -> Result<Message, BadData>,
    ) -> Result<(), BadData> {
        use Operation::*;
        match (operation, elements) {
            (Send | SendSender, &[from, to]) => {
                self.message_to_pid(letter(from, None), to, payload()?)
            }
            (SendTt | SendSenderTt, &[from, to, token]) => {
                self.message_to_pid(letter(from, Some(token)), to, payload()?)
            }
            (RegSend | RegSendTt, &[from, ..]) if !is_pid(from) => Err(BadData),
            (RegSend, &[from, _, name]) => {
                self.message_to_name(letter(from, None), name, payload()?)
            }
            (RegSendTt, &[from, _, name, token]) => {
                self.message_to_name(letter(from, Some(token)), name, payload()?)
            }
            (AliasSend, &[from, alias]) => {
                self.message_to_alias(letter(from, None), alias, payload()?)
            }
            (AliasSendTt, &[from, alias, token]) => {
                self.message_to_alias(letter(from, Some(token)), alias, payload()?)
            }
            (AltactSigSend, &[flags, from, to, ref rest @ ..]) => {
                self.altact((flags, rest), from, to, payload()?)
            }
            _ => self.dispatch_relation(operation, elements, payload),
        }
    }

    /// A signal that is no message.
    fn dispatch_relation(
        &self,
        operation: Operation,
        elements: &[Term<'_>],
        payload: impl FnOnce() -> Result<Message, BadData>,
    ) -> Result<(), BadData> {
        use Operation::*;
        match (operation, elements) {
            (Link, &[from, to]) => self.link(from, to),
            (UnlinkId, &[id, from, to]) => self.unlink(id, from, to),
            (UnlinkIdAck, &[id, from, to]) => self.unlinked(id, from, to),
            (GroupLeader, &[leader, to]) => {
                let leader = Peer::process_of(leader).ok_or(BadData)?;
                if let Local::Pid(pid) = local(to)? {
                    deliver(pid, Signal::GroupLeader { leader });
                }
                Ok(())
            }
            (Exit, &[from, to, reason]) => self.link_exit(from, to, (reason, None)),
            (ExitTt, &[from, to, token, reason]) => {
                self.link_exit(from, to, (reason, Token::of_term(token)))
            }
            (PayloadExit, &[from, to]) => self.link_exit(from, to, (payload()?.term(), None)),
            (PayloadExitTt, &[from, to, token]) => {
                self.link_exit(from, to, (payload()?.term(), Token::of_term(token)))
            }
            (Exit2, &[from, to, reason]) | (Exit2Tt, &[from, to, _, reason]) => {
                self.exit2((from, to), reason, 0)
            }
            (PayloadExit2, &[from, to]) | (PayloadExit2Tt, &[from, to, _]) => {
                self.exit2((from, to), payload()?.term(), 0)
            }
            (MonitorP, &[watcher, watched, reference]) => self.monitor(watcher, watched, reference),
            (DemonitorP, &[watcher, watched, reference]) => {
                self.demonitor(watcher, watched, reference)
            }
            (MonitorPExit | PayloadMonitorPExit, &[watched, ..])
                if !is_pid(watched) && watched.as_atom().is_none() =>
            {
                Err(BadData)
            }
            (MonitorPExit, &[_, to, reference, reason]) => {
                self.monitored_exit(to, reference, reason)
            }
            (PayloadMonitorPExit, &[_, to, reference]) => {
                self.monitored_exit(to, reference, payload()?.term())
            }
            (SpawnRequest, request @ &[_, _, _, _, _]) => {
                spawn::requested(self, request, None, payload()?.term())
            }
            (SpawnRequestTt, &[ref request @ .., token]) => {
                spawn::requested(self, request, Token::of_term(token), payload()?.term())
            }
            (SpawnReply, &[request, to, flags, result]) => {
                spawn::replied(self, [request, to, flags, result], None)
            }
            (SpawnReplyTt, &[request, to, flags, result, token]) => {
                spawn::replied(self, [request, to, flags, result], Token::of_term(token))
            }
            _ => Err(BadData),
        }
    }

    fn message_to_pid(
        &self,
        letter: Letter<'_>,
        to: Term<'_>,
        what: Message,
    ) -> Result<(), BadData> {
        if let Local::Pid(pid) = local(to)? {
            deliver(pid, letter.signal(pid, None, what));
        }
        Ok(())
    }

    fn message_to_name(
        &self,
        letter: Letter<'_>,
        name: Term<'_>,
        what: Message,
    ) -> Result<(), BadData> {
        name.as_atom().ok_or(BadData)?;
        if let Some(pid) = registered(name) {
            deliver(pid, letter.signal(pid, None, what));
        }
        Ok(())
    }

    fn message_to_alias(
        &self,
        letter: Letter<'_>,
        alias: Term<'_>,
        what: Message,
    ) -> Result<(), BadData> {
        match alias.view() {
            View::Ref(reference) => {
                if let Some(pid) = reference.pid() {
                    let alias = Some(reference.numbers());
                    deliver(pid, letter.signal(pid, alias, what));
                }
                Ok(())
            }
            View::External(external) if external.kind() == tag::EXTERNAL_REF => Ok(()),
            _ => Err(BadData),
        }
    }

    /// A message or exit signal that may have priority.
    fn altact(
        &self,
        (flags, rest): (Term<'_>, &[Term<'_>]),
        from: Term<'_>,
        to: Term<'_>,
        payload: Message,
    ) -> Result<(), BadData> {
        // Flags of the future are in higher bits, of any number.
        let flags = match flags.view() {
            View::Small(flags) if flags >= 0 => flags,
            View::Big(flags) if !flags.is_negative() => (flags.limbs()[0] & 0xff) as i64,
            _ => return Err(BadData),
        };
        let has = |flag: i64| flags & flag != 0;
        if has(altact::EXIT) {
            return self.exit2((from, to), payload.term(), flags);
        }
        let token = match has(altact::TOKEN) {
            true => Some(*rest.first().ok_or(BadData)?),
            false => None,
        };
        let letter = Letter {
            priority: has(altact::PRIORITY),
            ..letter(from, token)
        };
        match (has(altact::ALIAS), has(altact::NAME)) {
            (true, true) => Err(BadData),
            (true, false) => self.message_to_alias(letter, to, payload),
            (false, true) => self.message_to_name(letter, to, payload),
            (false, false) => self.message_to_pid(letter, to, payload),
        }
    }

    fn link(&self, from: Term<'_>, to: Term<'_>) -> Result<(), BadData> {
        let peer = self.peer(from)?;
        match local(to)? {
            Local::Pid(pid) => {
                self.entry.state.lock().relations.links.insert((pid, peer));
                deliver(pid, Signal::Link { from: peer });
            }
            Local::Old => self.entry.refuse_link(to, peer),
        }
        Ok(())
    }

    fn unlink(&self, id: Term<'_>, from: Term<'_>, to: Term<'_>) -> Result<(), BadData> {
        let id = id.as_u64().filter(|id| *id != 0).ok_or(BadData)?;
        let from = self.peer(from)?;
        if let Local::Pid(pid) = local(to)? {
            self.entry.state.lock().relations.links.remove(&(pid, from));
            deliver(pid, Signal::Unlink { from, id });
        }
        Ok(())
    }

    fn unlinked(&self, id: Term<'_>, from: Term<'_>, to: Term<'_>) -> Result<(), BadData> {
        let id = id.as_u64().ok_or(BadData)?;
        let from = self.peer(from)?;
        if let Local::Pid(pid) = local(to)? {
            self.entry.state.lock().relations.end_unlink(pid, from, id);
            deliver(pid, Signal::UnlinkAck { from, id });
        }
        Ok(())
    }

    fn link_exit(
        &self,
        from: Term<'_>,
        to: Term<'_>,
        (reason, token): (Term<'_>, Option<Token>),
    ) -> Result<(), BadData> {
        let peer = self.peer(from)?;
        if let Local::Pid(pid) = local(to)? {
            self.entry.state.lock().relations.links.remove(&(pid, peer));
            let exit = ExitSignal::of_link(peer, reason, token);
            deliver(pid, Signal::Exit(Box::new(exit)));
        }
        Ok(())
    }

    /// An exit signal of `exit/2`, to a pid, an alias or a name.
    fn exit2(
        &self,
        (from, to): (Term<'_>, Term<'_>),
        reason: Term<'_>,
        flags: i64,
    ) -> Result<(), BadData> {
        let from = self.peer(from)?;
        let (pid, alias) = match to.view() {
            View::Ref(reference) if flags & altact::ALIAS != 0 => {
                (reference.pid(), Some(reference.numbers()))
            }
            View::Atom(_) if flags & altact::NAME != 0 => (registered(to), None),
            View::Pid(pid) => (Some(pid), None),
            View::External(_) => (None, None),
            _ => return Err(BadData),
        };
        if let Some(pid) = pid {
            let exit = ExitSignal {
                alias,
                priority: flags & altact::PRIORITY != 0,
                ..ExitSignal::new(from, reason)
            };
            deliver(pid, Signal::Exit(Box::new(exit)));
        }
        Ok(())
    }

    /// A process of the other node monitors one of this node, by its pid or name.
    fn monitor(
        &self,
        watcher: Term<'_>,
        watched: Term<'_>,
        reference: Term<'_>,
    ) -> Result<(), BadData> {
        let watcher = self.peer(watcher)?;
        let key = numbers_of(reference)?;
        let pid = match watched.as_atom() {
            Some(_) => registered(watched),
            None => match local(watched)? {
                Local::Pid(pid) => Some(pid),
                Local::Old => None,
            },
        };
        let Some(pid) = pid else {
            let reason = am::noproc.term();
            self.entry
                .send_monitor_exit(watched, watcher, reference, reason);
            return Ok(());
        };
        let number = make_ref();
        let watched_here = (pid, number);
        self.entry
            .state
            .lock()
            .relations
            .watched
            .insert(key.clone(), watched_here);
        watch_or_tell(
            pid,
            number,
            self.watcher(key, watcher, [watched, reference]),
        );
        Ok(())
    }

    /// Tells the other node that the process `watched` has ended, which `by` monitors by this reference.
    pub(super) fn watcher(
        &self,
        key: Vec<u32>,
        by: Peer,
        [watched, reference]: [Term<'_>; 2],
    ) -> Watcher {
        let (name, connection) = (self.entry.name, self.connection);
        let watched = Message::copy_of(watched);
        let named = Arc::new(Message::copy_of(reference));
        let reference = Arc::clone(&named);
        let told = move |reason: Term<'_>| {
            let Some(entry) = DistEntry::find(name) else {
                return;
            };
            let is_monitored = {
                let mut state = entry.state.lock();
                state.connection == connection && state.relations.watched.remove(&key).is_some()
            };
            if is_monitored {
                entry.send_monitor_exit(watched.term(), by, reference.term(), reason);
            }
        };
        Watcher {
            told: Box::new(told),
            by: WatchedBy::Process(by, named),
        }
    }

    fn demonitor(
        &self,
        watcher: Term<'_>,
        watched: Term<'_>,
        reference: Term<'_>,
    ) -> Result<(), BadData> {
        self.peer(watcher)?;
        if watched.as_atom().is_none() {
            local(watched)?;
        }
        let key = numbers_of(reference)?;
        let watched = self.entry.state.lock().relations.watched.remove(&key);
        if let Some((pid, number)) = watched {
            unwatch(pid, number);
        }
        Ok(())
    }

    /// What a process of this node monitors has ended.
    fn monitored_exit(
        &self,
        to: Term<'_>,
        reference: Term<'_>,
        reason: Term<'_>,
    ) -> Result<(), BadData> {
        let to = local(to)?;
        if !is_ref(reference) {
            return Err(BadData);
        }
        let Local::Pid(pid) = to else {
            return Ok(());
        };
        if let Some(reference) = reference.as_ref() {
            let reference = reference.numbers();
            self.entry
                .state
                .lock()
                .relations
                .monitors
                .remove(&reference);
            deliver(pid, super::output::down(reference, reason));
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
