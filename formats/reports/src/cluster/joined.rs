//! Makes one recording of those of all nodes, for what reads one.
//!
//! Ids have the number of their node, from 1, as pids of other nodes have one. Times are by the clock of the first node, and count from
//! when the first recording began. Processes are named with their nodes. A message to another node, if both have recorded it, is one that its
//! receiver gets, with one text: of an answer that which its receiver has, of all others that which the sender has. Own pids and references
//! of a node have its number in texts, too.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use beamline_formats::profile::Origin;
use beamline_formats::ring::{
    Anchor, Clock, Description, Drain, Error, Event, Function, Group, Id, NODES, Name, NameId,
    Names, Record, Recording, Rename, Ring, RingOptions, Segment, SocketEnd, Took, WhenFull,
};

use super::signals::Role;
use super::{Cluster, Member};
use crate::events::scan;

/// Room for the records of a segment until they are moved into the file.
const SEGMENT_BYTES: u64 = 1 << 20;

/// Records after which they are moved: less than a segment has room for.
const DRAIN_EACH: u64 = 1024;

/// Dirty schedulers of a node have numbers below this.
const DIRTY_SCHEDULERS: u64 = 1 << 16;

/// Where a message goes, and what it says: of a sending that another node has recorded, and of a receipt.
#[derive(Clone, Copy)]
struct Letter<'c> {
    to: Id,
    text: &'c str,
    /// The number of the node that has written the text so.
    written_by: u64,
}

/// Sendings or receipts of a member, by process and time.
type Letters<'c> = HashMap<(Id, u64), Letter<'c>>;

impl Cluster {
    /// One recording of all nodes, in a temporary file that goes with it.
    ///
    /// # Errors
    /// A file cannot be read or written; an emulator was sampled, or its order recorded.
    pub fn joined(&self) -> Result<Recording, Error> {
        self.check_joined()?;
        let folder = tempfile::tempdir()?;
        let (part, file) = (folder.path().join("part"), folder.path().join("joined"));
        let ring = Ring::create(&part, &self.options())?;
        let mut joiner = Joiner {
            drain: Drain::begin(&part, &file)?,
            names: AllNames::default(),
            end_ns: 0,
            written: 0,
            ring,
        };
        let first = self.clocks().iter().map(|clock| clock.offset_ns).min();
        let first = first.unwrap_or(0);
        let mut letters: Vec<Letters<'_>> = self.letters();
        let mut segment = 0;
        for (at, member) in self.members().iter().enumerate() {
            let seat = Seat {
                number: at as u64 + 1,
                offset_ns: self.aligned_ns(at, 0).abs_diff(first),
                first_segment: segment,
                letters: std::mem::take(&mut letters[at]),
            };
            joiner.add(member, &seat)?;
            segment += member.recording.segments();
        }
        let end = joiner.end_ns;
        joiner.ring.end_at(Anchor {
            ticks: end,
            ns: end,
        });
        joiner.drain.finish()?;
        // Its open file is all that it needs.
        Recording::open(&file)
    }

    fn check_joined(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Settings(text));
        if self.members().len() as u64 >= NODES {
            return refuse(format!("more than {NODES} recordings cannot become one"));
        }
        for member in self.members() {
            let file = member.file.display();
            if member.recording.sampling().is_some() {
                return refuse(format!("{file}: samples are read alone: name this file"));
            }
            if member.recording.has(Group::Order) {
                return refuse(format!(
                    "{file}: the order of one emulator is read alone: name this file"
                ));
            }
        }
        Ok(())
    }

    fn options(&self) -> RingOptions {
        let members = self.members();
        let segments: usize = members.iter().map(|it| it.recording.segments()).sum();
        let named = members.iter().map(|it| it.recording.names().size_bytes());
        // An eighth is for names, of which processes and their labels get half.
        let names: u64 = named.sum::<u64>() * 8 * 4;
        let first = members.first().map(|it| &it.recording);
        let schedulers = u32::try_from(segments).unwrap_or(u32::MAX);
        let earliest = self.clocks().iter().map(|clock| clock.offset_ns).min();
        RingOptions {
            schedulers,
            ring_bytes: (segments as u64 + 1) * SEGMENT_BYTES + names.max(8 << 20),
            // They are moved before they are overwritten.
            when_full: WhenFull::Overwrite,
            token: first.map_or(0, Recording::token),
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor: Anchor::default,
                unix_ns: first.map_or(0, |first| {
                    first.unix_ns().saturating_add_signed(earliest.unwrap_or(0))
                }),
            },
            description: first.map_or_else(Description::default, |first| Description {
                emulator: first.description().command.clone(),
                ..first.description().clone()
            }),
        }
    }

    /// What becomes of the sendings and receipts of each member whose message both sides have recorded.
    fn letters(&self) -> Vec<Letters<'_>> {
        let mut all: Vec<Letters<'_>> = Vec::new();
        all.resize_with(self.members().len(), HashMap::new);
        for pair in self.pairs() {
            let (left, came) = (pair.left, pair.came);
            let both = (left.signal.message.as_ref(), came.signal.message.as_ref());
            let (Some(sent), Some(received)) = both else {
                continue;
            };
            // The reference of a question is the same in its answer as the asking node writes it.
            let (text, writer) = match came.signal.role {
                Role::Answers(_) => (&received.text, came.member),
                _ => (&sent.text, left.member),
            };
            let letter = Letter {
                to: came.signal.who.of_node(came.member as u64 + 1),
                text,
                written_by: writer as u64 + 1,
            };
            let key = |who, at_ns| (who, at_ns);
            all[left.member].insert(key(left.signal.who, sent.at_ns), letter);
            all[came.member].insert(key(came.signal.who, received.at_ns), letter);
        }
        all
    }
}

/// Where a member is among the others.
struct Seat<'c> {
    /// From 1.
    number: u64,
    offset_ns: u64,
    first_segment: usize,
    letters: Letters<'c>,
}

struct Joiner {
    ring: Arc<Ring>,
    drain: Drain,
    names: AllNames,
    end_ns: u64,
    written: u64,
}

/// The names that the recording of all has already.
#[derive(Default)]
struct AllNames {
    atoms: HashMap<String, NameId>,
    functions: HashMap<Function, NameId>,
    labels: HashMap<String, NameId>,
    modules: HashMap<String, NameId>,
}

impl AllNames {
    fn atom(&mut self, ring: &Ring, text: &str) -> NameId {
        if let Some(known) = self.atoms.get(text) {
            return *known;
        }
        let name = ring.name(Name::Atom(text));
        self.atoms.insert(text.to_owned(), name);
        name
    }

    fn label(&mut self, ring: &Ring, text: &str) -> NameId {
        if let Some(known) = self.labels.get(text) {
            return *known;
        }
        let name = ring.name(Name::Label(text));
        self.labels.insert(text.to_owned(), name);
        name
    }

    fn function(&mut self, ring: &Ring, names: &Names, function: &Function) -> NameId {
        if let Some(known) = self.functions.get(function) {
            return *known;
        }
        let [module, name] = [&function.module, &function.name].map(|text| self.atom(ring, text));
        let origin = names.origin(&function.module);
        if origin != Origin::App
            && self
                .modules
                .insert(function.module.clone(), module)
                .is_none()
        {
            ring.name(Name::Module {
                name: module,
                origin,
            });
        }
        let arity = function.arity;
        let made = ring.name(Name::Function {
            module,
            name,
            arity,
        });
        self.functions.insert(function.clone(), made);
        made
    }
}

/// Renames what records of a member have.
struct Renames<'m> {
    names: &'m Names,
    number: u64,
    ring: &'m Ring,
    all: &'m mut AllNames,
    known: HashMap<NameId, NameId>,
    /// The process of each name that is registered.
    registered: HashMap<NameId, Id>,
}

impl Rename for Renames<'_> {
    fn id(&mut self, id: Id) -> Id {
        match id {
            // A name may be registered on several nodes.
            Id::Name(name) => {
                let who = self.registered.get(&name).copied();
                who.map_or(Id::None, |who| who.of_node(self.number))
            }
            id => id.of_node(self.number),
        }
    }

    fn name(&mut self, name: NameId) -> NameId {
        if name == NameId::NONE {
            return name;
        }
        if let Some(known) = self.known.get(&name) {
            return *known;
        }
        let made = match self.names.function(name) {
            Some(function) => self.all.function(self.ring, self.names, function),
            None if self.names.is_label(name) => self.all.label(self.ring, &self.names.text(name)),
            None => self.all.atom(self.ring, self.names.atom(name)),
        };
        self.known.insert(name, made);
        made
    }
}

impl Joiner {
    /// Adds a member.
    fn add(&mut self, member: &Member, seat: &Seat<'_>) -> Result<(), Error> {
        let recording = &member.recording;
        let names = recording.names();
        let mut segments: Vec<Option<Segment>> = (0..recording.segments())
            .map(|at| self.ring.segment(seat.first_segment + at))
            .collect();
        let mut registered: Vec<(NameId, Id)> = names.registered().collect();
        registered.sort_unstable();
        let mut renames = Renames {
            names,
            number: seat.number,
            ring: &self.ring,
            all: &mut self.names,
            known: HashMap::new(),
            registered: registered.into_iter().collect(),
        };
        name_all(&mut renames, &member.name);
        let (drain, end_ns, written) = (&mut self.drain, &mut self.end_ns, &mut self.written);
        let mut text = String::new();
        scan(recording, |record| {
            if let Event::Register { name } = record.event {
                renames.registered.insert(name, record.subject);
            }
            let at_ns = record.time_ns.saturating_add(seat.offset_ns);
            let event = renamed(record, seat, &mut renames, &mut text);
            let subject = record.subject.of_node(seat.number);
            if let Some(Some(segment)) = segments.get_mut(record.segment) {
                segment.write(at_ns, subject, &event);
            }
            *end_ns = at_ns.max(*end_ns);
            *written += 1;
            if written.is_multiple_of(DRAIN_EACH) {
                while drain.take()? == Took::Much {}
            }
            Ok::<(), Error>(())
        })?;
        Ok(())
    }
}

/// Has `out` hold a text in which pids, ports and references of the node of this number have that number.
fn number_own(text: &str, node: u64, out: &mut String) {
    out.clear();
    for (at, part) in text.split("<0.").enumerate() {
        if at > 0 {
            let _ = write!(out, "<{node}.");
        }
        out.push_str(part);
    }
}

/// What a record of a member is in the recording of all. Its text is made in `out`.
fn renamed<'o>(
    record: &Record<'o>,
    seat: &Seat<'_>,
    renames: &mut Renames<'_>,
    out: &'o mut String,
) -> Event<'o> {
    let letter = || seat.letters.get(&(record.subject, record.time_ns));
    match record.event {
        Event::Send { to, text } => {
            let found = letter().filter(|_| to == Id::None);
            let to = found.map_or_else(|| renames.id(to), |letter| letter.to);
            let own = (text, seat.number);
            let (text, node) = found.map_or(own, |letter| (letter.text, letter.written_by));
            number_own(text, node, out);
            Event::Send { to, text: out }
        }
        Event::Receive { text } => {
            let own = (text, seat.number);
            let (text, node) = letter().map_or(own, |letter| (letter.text, letter.written_by));
            number_own(text, node, out);
            Event::Receive { text: out }
        }
        Event::Exit { text } => {
            number_own(text, seat.number, out);
            Event::Exit { text: out }
        }
        Event::DirtyIn {
            function,
            kind,
            scheduler,
        } => Event::DirtyIn {
            function: renames.name(function),
            kind,
            scheduler: scheduler + seat.number * DIRTY_SCHEDULERS,
        },
        event => event.renamed(renames),
    }
}

/// Gives the processes, functions and sockets of a node their names in the recording of all.
fn name_all(renames: &mut Renames<'_>, node: &str) {
    let (names, ring) = (renames.names, renames.ring);
    let mut ids: Vec<Id> = names.ids().collect();
    ids.sort_unstable();
    for old in ids {
        let Some(process) = names.process(old) else {
            continue;
        };
        let (id, parent) = (renames.id(old), renames.id(process.parent));
        let function = renames.name(process.function);
        ring.name(Name::Process {
            id,
            parent,
            function,
        });
        let text = names.process_text(old);
        let text = format!("{text} of {node}");
        let label = renames.all.label(ring, text.trim_start());
        ring.name(Name::Labelled { id, label });
    }
    let mut natives: Vec<_> = names.natives().collect();
    natives.sort_unstable();
    for (function, native) in natives {
        let function = renames.name(function);
        ring.name(Name::Native { function, native });
    }
    let mut sockets: Vec<Id> = names.sockets().collect();
    sockets.sort_unstable();
    for old in sockets {
        let Some(socket) = names.socket(old) else {
            continue;
        };
        let id = renames.id(old);
        if let Some(kind) = socket.kind {
            let (port, listener) = (renames.id(socket.port), renames.id(socket.listener));
            ring.name(Name::Socket {
                id,
                kind,
                port,
                listener,
            });
        }
        for (end, text) in [
            (SocketEnd::Own, &socket.own),
            (SocketEnd::Peer, &socket.peer),
        ] {
            if !text.is_empty() {
                ring.name(Name::Address { id, end, text });
            }
        }
    }
}
