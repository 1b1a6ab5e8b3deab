//! The names of a recording, in a part of the file that only grows. When it is full, a new atom or function gets no
//! name, and the writer counts it.
//!
//! An entry is a word (length of its payload in bytes, low 32 bits; kind, 8 bits; check, 24 bits) and its payload,
//! filled up to whole words. The first entry is name 1.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::id::{Id, NameId};
use super::layout::{Check, words_of};
use super::socket::{Socket, SocketEnd, SocketKind};
use crate::name::stable;
use crate::profile::{Native, Origin};

/// Longer texts are cut.
const TEXT_MAX: usize = 1024;

macro_rules! entries {
    ($($(#[doc = $doc:literal])* $number:literal = $name:ident;)*) => {
        /// What an entry names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Entry { $($(#[doc = $doc])* $name = $number,)* }

        impl Entry {
            fn of(number: u64) -> Option<Entry> {
                match number { $($number => Some(Entry::$name),)* _ => None }
            }
        }
    };
}

entries! {
    /// Its text.
    1 = Atom;
    /// Names of module and function, arity: three words.
    2 = Function;
    /// A process: its id, that of its parent, the function it started in.
    3 = Process;
    /// A process or port with a name: its id, the name.
    4 = Registered;
    /// A label of sequential tracing or of a process: its text.
    5 = Label;
    /// A module that is not the program's own: its name, the number of its origin.
    6 = Module;
    /// A process with a label of `proc_lib`: its id, the label.
    7 = Labelled;
    /// A function that is native code from now on: its name, the number of its kind.
    8 = Native;
    /// A stack of a sample: the stack below its newest frame, that frame's function, the line: three words.
    9 = Stack;
    /// A socket: its id, the number of its kind, the port that it is behind, the socket that accepted it: four words.
    10 = Socket;
    /// An address of a socket: the socket's id, 1 for its own or 2 for its peer's, and its text.
    11 = Address;
    /// The emulator's node: its name from now on, and its creation: two words.
    12 = Node;
    /// A connection to another node: its number, the node's name, and that one's creation: three words.
    13 = Connection;
}

/// A name to be written to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// An atom.
    Atom(&'a str),
    /// A function.
    Function {
        /// Its module, an atom.
        module: NameId,
        /// Its name, an atom.
        name: NameId,
        /// The number of arguments.
        arity: u8,
    },
    /// A process that was made.
    Process {
        /// Itself.
        id: Id,
        /// Who made it.
        parent: Id,
        /// The function it started in.
        function: NameId,
    },
    /// A process or port that has got a name.
    Registered {
        /// Itself.
        id: Id,
        /// The name, an atom.
        name: NameId,
    },
    /// A process that has got a label.
    Labelled {
        /// Itself.
        id: Id,
        /// The label.
        label: NameId,
    },
    /// A label of sequential tracing or of a process, as Erlang writes it.
    Label(&'a str),
    /// A module that is not the program's own.
    Module {
        /// Its name, an atom.
        name: NameId,
        /// Whose it is.
        origin: Origin,
    },
    /// A function that is native code from now on.
    Native {
        /// The function.
        function: NameId,
        /// Its kind.
        native: Native,
    },
    /// A stack of a sample.
    Stack(Frame),
    /// A socket that was opened.
    Socket {
        /// Itself.
        id: Id,
        /// What it is.
        kind: SocketKind,
        /// The port that it is behind.
        port: Id,
        /// The socket that accepted it.
        listener: Id,
    },
    /// An address that a socket has got.
    Address {
        /// The socket.
        id: Id,
        /// Whose it is.
        end: SocketEnd,
        /// The address, as programs write it.
        text: &'a str,
    },
    /// The emulator's node has got a name.
    Node {
        /// The name, an atom.
        name: NameId,
        /// Tells it from nodes that had the name before.
        creation: u32,
    },
    /// A connection to another node stands.
    Connection {
        /// Its number among those of this emulator.
        number: u32,
        /// The other node's name, an atom.
        node: NameId,
        /// The other node's creation.
        creation: u32,
    },
}

/// A node: its name, and its creation, which tells it from others that had the name before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The creation.
    pub creation: u32,
}

/// The newest frame of a stack, and the stack below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The stack below; none of the oldest frame. Its name is older than that of this stack.
    pub below: NameId,
    /// The function.
    pub function: NameId,
    /// The line in its file; 0 where that is not known.
    pub line: u32,
}

/// The longest prefix of at most `max` bytes that ends between two characters.
pub(in crate::ring) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Puts a payload of so many words.
fn fixed<const N: usize>(out: &mut Vec<u64>, entry: Entry, words: [u64; N]) -> (Entry, usize) {
    out.extend(words);
    (entry, 8 * N)
}

/// The words of an entry.
pub(in crate::ring) fn encode(name: Name<'_>, out: &mut Vec<u64>) {
    out.clear();
    out.push(0);
    let word = |name: NameId| u64::from(name.0);
    let (entry, bytes) = match name {
        Name::Atom(text) | Name::Label(text) => {
            let text = cut(stable(text), TEXT_MAX);
            out.extend(words_of(text.as_bytes()));
            let is_label = matches!(name, Name::Label(_));
            let entry = if is_label { Entry::Label } else { Entry::Atom };
            (entry, text.len())
        }
        Name::Function {
            module,
            name,
            arity,
        } => fixed(
            out,
            Entry::Function,
            [word(module), word(name), u64::from(arity)],
        ),
        Name::Process {
            id,
            parent,
            function,
        } => fixed(
            out,
            Entry::Process,
            [id.word(), parent.word(), word(function)],
        ),
        Name::Registered { id, name } => fixed(out, Entry::Registered, [id.word(), word(name)]),
        Name::Labelled { id, label } => fixed(out, Entry::Labelled, [id.word(), word(label)]),
        Name::Module { name, origin } => fixed(out, Entry::Module, [word(name), origin.number()]),
        Name::Native { function, native } => {
            fixed(out, Entry::Native, [word(function), native.number()])
        }
        Name::Stack(frame) => {
            let line = u64::from(frame.line);
            out.extend([word(frame.below), word(frame.function), line]);
            (Entry::Stack, 24)
        }
        Name::Socket {
            id,
            kind,
            port,
            listener,
        } => fixed(
            out,
            Entry::Socket,
            [id.word(), kind.number(), port.word(), listener.word()],
        ),
        Name::Address { id, end, text } => {
            let text = cut(stable(text), TEXT_MAX);
            out.extend([id.word(), end.number()]);
            out.extend(words_of(text.as_bytes()));
            (Entry::Address, 16 + text.len())
        }
        Name::Node { name, creation } => fixed(out, Entry::Node, [word(name), u64::from(creation)]),
        Name::Connection {
            number,
            node,
            creation,
        } => fixed(
            out,
            Entry::Connection,
            [u64::from(number), word(node), u64::from(creation)],
        ),
    };
    let first = bytes as u64 | (entry as u64) << 32;
    out[0] = first | check(first, &out[1..]);
}

pub(in crate::ring) fn check(first: u64, payload: &[u64]) -> u64 {
    let words = std::iter::once(first).chain(payload.iter().copied());
    Check::of(words).word() >> 40 << 40
}

/// A function with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Function {
    /// The module, unquoted.
    pub module: String,
    /// The name, unquoted.
    pub name: String,
    /// The number of arguments.
    pub arity: u8,
}

/// What the names of a recording tell of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Who made it.
    pub parent: Id,
    /// The function it started in.
    pub function: NameId,
    /// The last name it had.
    pub name: NameId,
    /// The last label it had.
    pub label: NameId,
}

/// The text of a payload of `length` bytes; `None` where it is none, or too long.
fn text(payload: &[u64], length: usize) -> Option<String> {
    // Functions have copies of them: a long one must not be had for a few bytes.
    if length > TEXT_MAX {
        return None;
    }
    let mut bytes: Vec<u8> = payload.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(length);
    String::from_utf8(bytes).ok()
}

/// All names of a recording.
#[derive(Clone, Debug, Default)]
pub struct Names {
    atoms: HashMap<u32, String>,
    functions: HashMap<u32, Function>,
    labels: HashMap<u32, String>,
    processes: HashMap<Id, Process>,
    origins: HashMap<String, Origin>,
    natives: HashMap<u32, Native>,
    stacks: HashMap<u32, Frame>,
    sockets: HashMap<Id, Socket>,
    nodes: Vec<Node>,
    connections: BTreeMap<u64, Node>,
}

impl Names {
    /// Reads entries that stand one after the other from byte `at` of the file on.
    pub(in crate::ring) fn read(bytes: &[u8], at: u64) -> Result<Names, Error> {
        let mut names = Names::default();
        let words: Vec<u64> = words_of(bytes).collect();
        let (mut next, mut number) = (0, 0_u32);
        while let Some(&first) = words.get(next) {
            let corrupt = Error::Corrupt {
                what: "a name",
                at: at + next as u64 * 8,
            };
            let length = (first & 0xffff_ffff) as usize;
            let Some(payload) = words.get(next + 1..next + 1 + length.div_ceil(8)) else {
                return Err(corrupt);
            };
            number = number.saturating_add(1);
            if check(first & ((1 << 40) - 1), payload) != first >> 40 << 40
                || names
                    .add(number, first >> 32 & 0xff, payload, length)
                    .is_none()
            {
                return Err(corrupt);
            }
            next += 1 + payload.len();
        }
        Ok(names)
    }

    /// `None` when the entry is not as its kind has it; an entry of an unknown kind is passed over.
    fn add(&mut self, number: u32, kind: u64, payload: &[u64], length: usize) -> Option<()> {
        let Some(kind) = Entry::of(kind) else {
            return Some(());
        };
        let name = |at: usize| Some(NameId(u32::try_from(*payload.get(at)?).ok()?));
        let id = |at: usize| Some(Id::from_word(*payload.get(at)?));
        match kind {
            Entry::Atom | Entry::Label => {
                let text = text(payload, length)?;
                let texts = match kind {
                    Entry::Label => &mut self.labels,
                    _ => &mut self.atoms,
                };
                texts.insert(number, text);
            }
            Entry::Function => {
                let arity = u8::try_from(*payload.get(2)?).ok()?;
                let function = Function {
                    module: self.atom(name(0)?).to_owned(),
                    name: self.atom(name(1)?).to_owned(),
                    arity,
                };
                self.functions.insert(number, function);
            }
            Entry::Process => {
                let known = self.processes.entry(id(0)?).or_default();
                (known.parent, known.function) = (id(1)?, name(2)?);
            }
            Entry::Registered => {
                self.processes.entry(id(0)?).or_default().name = name(1)?;
            }
            Entry::Labelled => {
                self.processes.entry(id(0)?).or_default().label = name(1)?;
            }
            Entry::Module => {
                let module = self.atom(name(0)?).to_owned();
                // A newer writer may know more origins.
                let origin = Origin::of(*payload.get(1)?);
                self.origins.extend(origin.map(|origin| (module, origin)));
            }
            Entry::Native => {
                let (function, native) = (name(0)?, Native::of(*payload.get(1)?));
                // A newer writer may know more kinds. What was dirty once is.
                if let Some(native) = native {
                    let known = self.natives.entry(function.0).or_insert(native);
                    *known = native.max(*known);
                }
            }
            Entry::Stack => {
                let frame = Frame {
                    below: name(0)?,
                    function: name(1)?,
                    line: u32::try_from(*payload.get(2)?).ok()?,
                };
                // Then a walk down has an end.
                if frame.below.0 >= number {
                    return None;
                }
                self.stacks.insert(number, frame);
            }
            Entry::Socket | Entry::Address => return self.add_socket(kind, payload, length),
            Entry::Node => {
                let node = self.node_of(name(0)?, *payload.get(1)?)?;
                self.nodes.push(node);
            }
            Entry::Connection => {
                let node = self.node_of(name(1)?, *payload.get(2)?)?;
                self.connections.insert(*payload.first()?, node);
            }
        }
        Some(())
    }

    fn node_of(&self, name: NameId, creation: u64) -> Option<Node> {
        let (name, creation) = (self.atom(name).to_owned(), u32::try_from(creation).ok()?);
        Some(Node { name, creation })
    }

    /// The emulator's node, by the last name it had; none of one that had no name.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        self.nodes.last()
    }

    /// Whether the emulator's node was this one, at some time.
    #[must_use]
    pub fn is_node(&self, node: &Node) -> bool {
        self.nodes.contains(node)
    }

    /// The connections to other nodes: their numbers, and the nodes.
    pub fn connections(&self) -> impl Iterator<Item = (u64, &Node)> {
        let all = self.connections.iter();
        all.map(|(number, node)| (*number, node))
    }

    fn add_socket(&mut self, kind: Entry, payload: &[u64], length: usize) -> Option<()> {
        let id = |at: usize| Some(Id::from_word(*payload.get(at)?));
        if kind == Entry::Socket {
            let (port, listener) = (id(2)?, id(3)?);
            let known = self.sockets.entry(id(0)?).or_default();
            // A newer writer may know more kinds.
            known.kind = SocketKind::of(*payload.get(1)?);
            (known.port, known.listener) = (port, listener);
            return Some(());
        }
        let text = text(payload.get(2..)?, length.checked_sub(16)?)?;
        let known = self.sockets.entry(id(0)?).or_default();
        match SocketEnd::of(*payload.get(1)?) {
            Some(SocketEnd::Own) => known.own = text,
            Some(SocketEnd::Peer) => known.peer = text,
            None => {}
        }
        Some(())
    }

    /// The sockets of which something is known, in no order.
    pub fn sockets(&self) -> impl Iterator<Item = Id> {
        self.sockets.keys().copied()
    }

    /// A socket, where something is known of it.
    #[must_use]
    pub fn socket(&self, id: Id) -> Option<&Socket> {
        self.sockets.get(&id)
    }

    /// A socket by its kind and the address that tells it from others; its number where nothing is known of it.
    #[must_use]
    pub fn socket_text(&self, id: Id) -> String {
        self.socket(id).map_or_else(|| id.to_string(), Socket::text)
    }

    /// The text of an atom; `?` where it did not fit.
    #[must_use]
    pub fn atom(&self, name: NameId) -> &str {
        self.atoms.get(&name.0).map_or("?", String::as_str)
    }

    /// A function, where it is known.
    #[must_use]
    pub fn function(&self, name: NameId) -> Option<&Function> {
        self.functions.get(&name.0)
    }

    /// Whose a module is.
    #[must_use]
    pub fn origin(&self, module: &str) -> Origin {
        self.origins.get(module).copied().unwrap_or_default()
    }

    /// What kind of native code a function is, if it is any.
    #[must_use]
    pub fn native(&self, function: NameId) -> Option<Native> {
        self.natives.get(&function.0).copied()
    }

    /// The frames of a stack, the newest first.
    pub fn stack(&self, mut stack: NameId) -> impl Iterator<Item = Frame> + '_ {
        std::iter::from_fn(move || {
            let frame = *self.stacks.get(&stack.0)?;
            stack = frame.below;
            Some(frame)
        })
    }

    /// All stacks.
    pub fn stacks(&self) -> impl Iterator<Item = NameId> {
        self.stacks.keys().map(|stack| NameId(*stack))
    }

    /// The functions that are native code, with their kinds, in no order.
    pub fn natives(&self) -> impl Iterator<Item = (NameId, Native)> {
        let natives = self.natives.iter();
        natives.map(|(function, native)| (NameId(*function), *native))
    }

    /// A function as its language writes it; `?` where it is not known.
    #[must_use]
    pub fn function_text(&self, name: NameId) -> String {
        self.function(name).map_or_else(
            || "?".to_owned(),
            |f| crate::name::mfa(&f.module, &f.name, u32::from(f.arity)),
        )
    }

    /// Whether it is a label of sequential tracing or of a process.
    #[must_use]
    pub fn is_label(&self, name: NameId) -> bool {
        self.labels.contains_key(&name.0)
    }

    /// About how many bytes they have in a file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let texts = self.atoms.values().chain(self.labels.values());
        let texts: usize = texts.map(|text| text.len() + 16).sum();
        let sockets = self.sockets.values();
        let sockets: usize = sockets.map(|of| of.own.len() + of.peer.len() + 100).sum();
        let others = self.functions.len() + self.natives.len() + self.stacks.len();
        // A process has a label of its own at most, with its node's name in it.
        (texts + sockets + 32 * others + 160 * self.processes.len()) as u64
    }

    /// The functions of a stack as a folded stack has them, the oldest first.
    fn stack_text(&self, stack: NameId) -> String {
        let frames = self.stack(stack);
        let frames = frames.map(|of| crate::name::frame(&self.function_text(of.function)));
        let mut frames: Vec<String> = frames.collect();
        frames.reverse();
        frames.join(";")
    }

    /// A function, an atom, a label or a stack as Erlang writes it; `?` where it is not known.
    #[must_use]
    pub fn text(&self, name: NameId) -> String {
        if let Some(label) = self.labels.get(&name.0) {
            label.clone()
        } else if self.stacks.contains_key(&name.0) {
            self.stack_text(name)
        } else if self.functions.contains_key(&name.0) {
            self.function_text(name)
        } else {
            crate::name::module(self.atom(name))
        }
    }

    /// All functions: those that were called, and where processes were seen.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// All functions, each with its name.
    pub fn functions_by_name(&self) -> impl Iterator<Item = (NameId, &Function)> {
        let all = self.functions.iter();
        all.map(|(name, function)| (NameId(*name), function))
    }

    /// A process, where something is known of it.
    #[must_use]
    pub fn process(&self, id: Id) -> Option<Process> {
        self.processes.get(&id).copied()
    }

    /// A process's registered name, or its label, or the function it started in; empty where none is known.
    #[must_use]
    pub fn process_text(&self, id: Id) -> String {
        match self.process(id) {
            Some(process) if process.name != NameId::NONE => {
                crate::name::module(self.atom(process.name))
            }
            Some(process) if process.label != NameId::NONE => self.text(process.label),
            Some(process) if process.function != NameId::NONE => {
                self.function_text(process.function)
            }
            _ => String::new(),
        }
    }

    /// The processes and ports of which something is known, in no order.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.processes.keys().copied()
    }

    /// The process or port of each registered name, where it is known: the newest of both.
    pub fn registered(&self) -> impl Iterator<Item = (NameId, Id)> {
        let all = self.processes.iter();
        all.filter(|(_, process)| process.name != NameId::NONE)
            .map(|(id, process)| (process.name, *id))
    }

    /// Processes of which something is known.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Processes of which something is known, and those of `others` of which nothing is.
    pub fn all_processes(&self, others: impl Iterator<Item = Id>) -> u64 {
        let unknown = others.filter(|id| !self.processes.contains_key(id)).count();
        (self.processes.len() + unknown) as u64
    }
}
