//! What the command and the emulators of an exploration tell each other.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use beamline_formats::name;
use beamline_formats::profile::{ParsePatternError, Pattern};
use beamline_formats::ring::{Event, Function, Id, NameId};
use beamline_settings::variable::Variable;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::super::races::Signals;
use super::super::read::{Names, Reader};
use super::super::request::claim;
use super::super::{
    Access, Accesses, Message, PerProcess, ProcessIndex, Signal, Site, Step, SystemMessageAt, Trace,
};
use super::lots::Lots;

/// What an emulator is to run again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// This call, in a process of its own; else all that the command has the emulator do when it has booted.
    pub call: Option<Call>,
    /// A socket that each worker connects to. It is sent an [`Ask`], and sends a [`Reply`] to each, after one that says
    /// whether it can begin.
    pub socket: PathBuf,
    /// A file that the first emulator of the command makes: only it explores.
    pub claim: PathBuf,
    /// Workers, each a process.
    pub workers: u32,
    /// A run of more reductions never ends.
    pub reductions: u64,
}

/// A function without arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The module.
    pub module: String,
    /// Its function.
    pub function: String,
}

impl FromStr for Call {
    type Err = String;

    /// Reads a [`Pattern`] that only one function without arguments can match.
    fn from_str(text: &str) -> Result<Call, String> {
        let example =
            "write a module and its function, such as bank_test:deposits or Bank.deposits";
        let pattern: Pattern = text.parse().map_err(|e: ParsePatternError| e.to_string())?;
        match pattern.name() {
            Some((module, function, None | Some(0))) => Ok(Call {
                module: module.to_owned(),
                function: function.to_owned(),
            }),
            Some((_, _, Some(arity))) => Err(format!(
                "'{text}' has {arity} arguments, and the call has none; {example}"
            )),
            None => Err(format!("'{text}' names no function; {example}")),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name::mfa(&self.module, &self.function, 0))
    }
}

impl Scenario {
    /// Whether this emulator is the one that explores.
    ///
    /// # Errors
    /// One line where the claim cannot be made.
    pub fn claim(&self) -> Result<bool, String> {
        claim(&self.claim)
    }
}

impl Variable for Scenario {
    const VARIABLE: &'static str = "BEAMLINE_EXPLORE";
}

/// Processes of the emulator, by their names, whose steps are neither reordered nor drawn: what they do for others
/// depends on no order that matters.
pub const LEFT_OUT: &[&str] = &[
    "init",
    "erl_prim_loader",
    "logger",
    "logger_olp",
    "logger_std_h_default",
    "logger_proxy",
    "code_server",
    "file_server_2",
    "standard_error",
    "user",
    "user_drv",
    "user_drv_reader",
    "user_drv_writer",
    "erts_code_purger",
];

/// What a run does not wait for, and so does not explore: nobody knows then whether it would go on.
pub const PROGRAMS: &str = "what programs outside say, which runs do not wait for";

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// One run.
    Run {
        /// A log that it begins with, as text.
        prefix: String,
        /// What it prints is seen.
        is_loud: bool,
        /// The lots that draw which process goes on behind the prefix.
        lots: Option<Lots>,
        /// It is ended if it takes longer.
        time: Option<Duration>,
    },
    /// Load these modules, so that no run has to.
    Load(Vec<String>),
    /// Compile these functions, so that no run has to.
    Compile(Vec<Function>),
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// It is ready.
    Ready,
    /// There is nothing to run: one line.
    Refused(String),
    /// A run.
    Ran(Box<Answer>),
}

/// A run: numbers of processes are those of [`Id::Process`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The steps: of which process, the event's number and its fields.
    pub records: Vec<(u64, u8, Vec<u64>)>,
    /// Accesses to what processes share, in their order.
    pub accesses: Vec<SharedAccess>,
    /// The atoms that the steps name, from number 1 on.
    pub names: Vec<String>,
    /// What reports call each process.
    pub processes: Vec<(u64, String)>,
    /// The process that made the call, or does what the command asks for.
    pub main: u64,
    /// The sender and the receiver of each message, each sender's sendings in their order.
    pub sent: Vec<(u64, u64)>,
    /// Receives that took a message, and could have timed out: of which process, and which of its receives and time-outs,
    /// from 0.
    pub timed: Vec<(u64, u32)>,
    /// Receives that are no steps, as they drop what a monitor has told that was given up: of which process, and which of its
    /// receives and time-outs, with these.
    pub flushed: Vec<(u64, u32)>,
    /// Messages through aliases that were given up.
    pub through_given_up: Vec<ThroughAlias>,
    /// Monitors and links: which process hears of whose end.
    pub watches: Vec<Watch<u64>>,
    /// Whom exit signals of other processes have ended.
    pub ended: Vec<Ended>,
    /// Calls of `exit/2` with other processes.
    pub exit_calls: Vec<ExitCall<u64>>,
    /// Where processes began to trap exits, and ceased to.
    pub traps: Vec<Traps<u64>>,
    /// Processes that stand for timers.
    pub timers: Vec<u64>,
    /// Processes that did not end normally, with their reasons.
    pub exits: Vec<(u64, String)>,
    /// Processes that have not ended, with the functions in which they wait.
    pub waiting: Vec<(u64, String)>,
    /// What the call returned, or what the whole program has printed, as a string.
    pub result: Option<String>,
    /// The parts of the run that cannot be reordered.
    pub beyond: Vec<String>,
    /// How many steps were drawn by lot.
    pub drawn: u64,
    /// The functions that were compiled in it.
    pub compiled: Vec<Function>,
    /// Processes that had all that their last receive of the prefix needs, and made it otherwise.
    pub refuse: Vec<u64>,
    /// How it ended.
    pub end: End,
}

/// An access, and what it is to. An access to several objects is several of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedAccess {
    /// How many records come before it.
    pub records: usize,
    /// The process.
    pub process: u64,
    /// What is done, as [`beamline_formats::ring::Touch`] holds it.
    pub how: u64,
    /// The number of the object.
    pub object: u64,
    /// The part of it.
    pub part: u64,
}

/// A monitor or a link: a process hears of the end of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch<P> {
    /// The process that hears of the end.
    pub by: P,
    /// Of whose end.
    pub whom: P,
    /// How many receives `by` had made when it gave up the monitor, if no message of it could be left then.
    pub until: Option<u32>,
    /// It is a link: an exit signal says so.
    pub is_link: bool,
    /// The access with which it has linked to the other one itself.
    pub links: Option<u64>,
    /// The access with which it gave up the link.
    pub unlinks: Option<u64>,
    /// `whom` ended otherwise than normally: an exit signal of its end ends whoever does not trap exits.
    pub fails: bool,
    /// It ended normally, and `by` did not trap exits: nothing comes of that.
    pub is_lost: bool,
    /// The access with which `by` found that `whom` was gone, where it monitors it.
    pub finds_gone: Option<u64>,
}

/// A message through an alias that was given up: where it had not come by then, it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThroughAlias {
    /// Its sender.
    pub from: u64,
    /// Which of the sendings of that process.
    pub number: u32,
    /// The process that it was sent to.
    pub to: u64,
    /// How many receives that one had made when it gave up the alias.
    pub until: u32,
}

/// A call of `exit/2` with another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCall<P> {
    /// The process that calls.
    pub from: P,
    /// Which of its accesses the call is.
    pub access: u64,
    /// The process.
    pub to: P,
    /// Which of the messages that no process has sent it is there; 0 where it became none.
    pub number: u32,
    /// Whom it ends.
    pub ends: Ends,
}

/// Whom an exit signal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ends {
    /// Nobody: its reason is `normal`.
    Nobody,
    /// A process that does not trap exits.
    NotTrapping,
    /// Any process: its reason is `kill`.
    Any,
}

/// A process begins to trap exits, or ceases to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traps<P> {
    /// The process.
    pub by: P,
    /// Which of its accesses that is; 0 where the run begins so.
    pub access: u64,
    /// Whether it does from then on.
    pub traps: bool,
}

/// A process that an exit signal has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The process.
    pub process: u64,
    /// The process that has sent the signal.
    pub by: u64,
    /// With which access; 0 where its end did.
    pub access: u64,
    /// Where the process was.
    pub at: EndedAt,
}

/// Where a process was that an exit signal has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndedAt {
    /// In a receive that had looked at all that had come.
    Receive,
    /// In a receive that had not looked at it.
    BeforeReceive,
    /// Before another step.
    Step,
    /// Anywhere else.
    Elsewhere,
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Nothing could go on.
    #[default]
    Quiet,
    /// A process did another step than the prefix has, or waited for one that never came: a line.
    Astray(String),
    /// It had more reductions than it may have.
    Livelock,
    /// It halted the emulator, with this code.
    Halted(i32),
    /// The emulator ended: how.
    Crashed(String),
    /// Its time was over.
    Late,
}

/// No message is longer: what says so is damaged.
const LENGTH_MAX: u32 = 1 << 30;

/// Writes a message.
///
/// # Errors
/// The system's.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = postcard::to_extend(message, vec![0; 4]).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)
}

/// Reads a message; `None` where the other side has ended.
///
/// # Errors
/// The system's, or one that says what is wrong with the message.
pub fn receive<T: for<'d> Deserialize<'d>>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes(length);
    if length > LENGTH_MAX {
        return Err(io::Error::other("a message without an end"));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes)
        .map(Some)
        .map_err(io::Error::other)
}

/// A run, as its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The trace, with its deliveries. Processes that the runtime made are known by their numbers.
    pub trace: Trace,
    /// The receiver of each sending of a process, as far as it is one of the trace.
    pub receivers: PerProcess<Vec<Option<ProcessIndex>>>,
    /// Receives that took a message, and could have timed out: of which process, and which of its receives and time-outs,
    /// from 0.
    pub timed: FxHashSet<(ProcessIndex, u32)>,
    /// The process that made the call, or does what the command asks for.
    pub main: ProcessIndex,
    /// The number of each process in the answer.
    pub ids: PerProcess<u64>,
    /// Messages that monitors have told which were given up, and those through aliases that were: they cannot be taken in this
    /// receive of their receiver, nor in later ones.
    pub(super) flushed: FxHashMap<(ProcessIndex, Message), u32>,
    /// Monitors and links: which process hears of whose end.
    pub watches: Vec<Watch<ProcessIndex>>,
    /// Calls of `exit/2` with other processes.
    pub(super) exit_calls: Vec<ExitCall<ProcessIndex>>,
    /// Where processes began to trap exits, and ceased to, in their order.
    pub(super) traps: Vec<Traps<ProcessIndex>>,
    /// Where processes were that exit signals have ended.
    pub(super) ended_at: FxHashMap<ProcessIndex, EndedAt>,
    /// Processes that did not end normally, with their reasons.
    pub exits: Vec<(ProcessIndex, String)>,
    /// Processes that have not ended, with the functions in which they wait.
    pub waiting: Vec<Waiting>,
    /// Processes that stand for timers.
    pub(super) timers: FxHashSet<ProcessIndex>,
    /// The parts of it that cannot be reordered.
    pub beyond: Vec<String>,
    /// What its accesses are to.
    pub accesses: Accesses,
}

/// A process that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its place.
    pub process: ProcessIndex,
    /// The function in which it waits.
    pub place: String,
}

struct Known<'a> {
    answer: &'a Answer,
    names: FxHashMap<u64, &'a str>,
}

impl Names for Known<'_> {
    fn atom(&self, NameId(name): NameId) -> &str {
        let name = (name as usize).checked_sub(1);
        let name = name.and_then(|at| self.answer.names.get(at));
        name.map_or("", String::as_str)
    }

    fn function(&self, name: NameId) -> String {
        self.atom(name).to_owned()
    }

    fn known_as(&self, id: u64) -> Option<String> {
        self.names.get(&id).map(|name| (*name).to_owned())
    }

    fn site(&self, _: NameId, _: u64) -> Site {
        Site {
            function: String::new(),
            line: 0,
            is_of_application: true,
        }
    }
}

impl Answer {
    /// The run.
    ///
    /// # Errors
    /// One line: its records do not fit together.
    pub fn run(&self) -> Result<Run, String> {
        let known = Known {
            answer: self,
            names: self
                .processes
                .iter()
                .map(|(id, name)| (*id, name.as_str()))
                .collect(),
        };
        let mut reader = Reader::new(&known);
        let mut accesses = self.accesses.iter().peekable();
        for (at, (id, kind, words)) in self.records.iter().enumerate() {
            while let Some(access) = accesses.next_if(|access| access.records <= at) {
                reader.add(Id::Process(access.process), &access.event())?;
            }
            reader.add(Id::Process(*id), &Event::of_words(*kind, words))?;
        }
        for access in accesses {
            reader.add(Id::Process(access.process), &access.event())?;
        }
        let (mut trace, mut sites, ids) = reader.end()?;
        let places: FxHashMap<u64, ProcessIndex> =
            ids.entries().map(|(at, id)| (*id, at)).collect();
        let place = |id: &u64| places.get(id).copied();
        self.say_what_ended(&mut trace, &place);
        let mut flushed = self.forget_flushes(&mut trace, &mut sites.accesses, &place);
        flushed.extend(self.dropped(&trace, &place));
        let mut receivers = trace.processes.map(|_| Vec::new());
        for (from, to) in &self.sent {
            if let Some(from) = place(from) {
                receivers[from].push(place(to));
            }
        }
        let main = place(&self.main).ok_or("the first process is not among the steps")?;
        Ok(Run {
            receivers,
            timed: found(&self.timed, |(id, at)| Some((place(id)?, *at))),
            main,
            exits: found(&self.exits, |(id, why)| Some((place(id)?, why.clone()))),
            waiting: found(&self.waiting, |(id, at)| {
                Some(Waiting {
                    process: place(id)?,
                    place: at.clone(),
                })
            }),
            flushed,
            watches: found(&self.watches, |watch| watch.moved(|id| place(&id))),
            exit_calls: found(&self.exit_calls, |call| call.moved(|id| place(&id))),
            traps: found(&self.traps, |traps| traps.moved(|id| place(&id))),
            ended_at: found(&self.ended, |ended| {
                Some((place(&ended.process)?, ended.at))
            }),
            timers: found(&self.timers, place),
            beyond: self.beyond_of(&trace),
            accesses: sites.accesses,
            ids,
            trace,
        })
    }
}

/// What is found of these.
fn found<T, U, C: FromIterator<U>>(all: &[T], of: impl Fn(&T) -> Option<U>) -> C {
    all.iter().filter_map(of).collect()
}

impl Answer {
    /// The parts of the trace that cannot be reordered: messages whose causes are not among the steps.
    fn beyond_of(&self, trace: &Trace) -> Vec<String> {
        let mut steps = trace.processes.iter().flat_map(|process| &process.steps);
        let is_notice = |step: &Step| matches!(step, Step::Receive(Message::SystemMessage(told)) if told.of.is_none() && !told.gone);
        steps
            .any(is_notice)
            .then(|| NOTICES.to_owned())
            .into_iter()
            .collect()
    }

    /// Receives that are no steps are left out: what they have taken, with the receives behind which that was.
    fn forget_flushes(
        &self,
        trace: &mut Trace,
        accesses: &mut Accesses,
        place: &impl Fn(&u64) -> Option<ProcessIndex>,
    ) -> FxHashMap<(ProcessIndex, Message), u32> {
        let mut flushed = FxHashMap::default();
        // The last ones first: the numbers of those before them stay.
        for (id, number) in self.flushed.iter().rev() {
            let Some(process) = place(id) else { continue };
            let steps = &mut trace.processes[process].steps;
            let receives = steps.iter().enumerate();
            let mut receives =
                receives.filter(|(_, step)| matches!(step, Step::Receive(_) | Step::Timeout));
            let Some((at, Step::Receive(message))) = receives.nth(*number as usize) else {
                continue;
            };
            let of_process = |(other, _): &&(u64, u32)| other == id;
            let before = self.flushed.iter().filter(of_process);
            let before = before.filter(|(_, other)| other < number).count();
            flushed.insert((process, *message), number - before as u32);
            let own = steps[..at].iter().filter(|step| step.is_own()).count();
            steps.remove(at);
            accesses.forget_step(process, own);
        }
        flushed
    }

    /// Messages through aliases that were given up before they came, with the receives before which that was.
    fn dropped(
        &self,
        trace: &Trace,
        place: &impl Fn(&u64) -> Option<ProcessIndex>,
    ) -> Vec<((ProcessIndex, Message), u32)> {
        found(&self.through_given_up, |sent| {
            let (from, to, number) = (place(&sent.from)?, place(&sent.to)?, sent.number);
            let message = Message::Sent { from, number };
            let came = trace.processes[to].steps.contains(&Step::Deliver(message));
            (!came).then_some(((to, message), sent.until))
        })
    }

    /// Exit signals that have ended processes stand at their ends.
    fn say_what_ended(&self, trace: &mut Trace, place: &impl Fn(&u64) -> Option<ProcessIndex>) {
        for ended in &self.ended {
            let (Some(who), Some(of)) = (place(&ended.process), place(&ended.by)) else {
                continue;
            };
            let signal = match ended.access {
                0 => Signal::End(of),
                number => Signal::Call(Access { of, number }),
            };
            for step in &mut trace.processes[who].steps {
                if step.is_exit() {
                    *step = Step::Exit(Some(signal));
                }
            }
        }
    }
}

impl Run {
    /// What calls of `exit/2` have led to, or could have.
    pub(super) fn signals(&self) -> Signals {
        let calls = self.exit_calls.iter();
        let told = calls.clone().filter(|call| call.number != 0);
        Signals {
            messages: told.map(|call| (call.message(), call.access())).collect(),
            calls: calls.map(ExitCall::access).collect(),
        }
    }

    /// Whether a process trapped exits at its end.
    pub(super) fn traps_at_end(&self, process: ProcessIndex) -> bool {
        let mut traps = self.traps.iter().rev();
        let last = traps.find(|traps| traps.by == process);
        last.is_some_and(|last| last.traps)
    }
}

impl ExitCall<ProcessIndex> {
    /// The call.
    pub(super) fn access(&self) -> Access {
        Access {
            of: self.from,
            number: self.access,
        }
    }

    /// The message that the signal became.
    fn message(&self) -> SystemMessageAt {
        let (to, number) = (self.to, self.number);
        SystemMessageAt { to, number }
    }
}

impl<P: Copy> ExitCall<P> {
    /// This call, its processes named by `to`; `None` where one has no such name.
    pub(super) fn moved<Q>(&self, to: impl Fn(P) -> Option<Q>) -> Option<ExitCall<Q>> {
        Some(ExitCall {
            from: to(self.from)?,
            access: self.access,
            to: to(self.to)?,
            number: self.number,
            ends: self.ends,
        })
    }
}

impl<P: Copy> Traps<P> {
    /// This change, its process named by `to`; `None` where it has no such name.
    pub(super) fn moved<Q>(&self, to: impl Fn(P) -> Option<Q>) -> Option<Traps<Q>> {
        Some(Traps {
            by: to(self.by)?,
            access: self.access,
            traps: self.traps,
        })
    }
}

impl<P: Copy> Watch<P> {
    /// This monitor or link, its processes named by `to`; `None` where one has no such name.
    pub(super) fn moved<Q>(&self, to: impl Fn(P) -> Option<Q>) -> Option<Watch<Q>> {
        Some(Watch {
            by: to(self.by)?,
            whom: to(self.whom)?,
            until: self.until,
            is_link: self.is_link,
            links: self.links,
            unlinks: self.unlinks,
            fails: self.fails,
            is_lost: self.is_lost,
            finds_gone: self.finds_gone,
        })
    }
}

impl SharedAccess {
    fn event(&self) -> Event<'static> {
        Event::OrderAccess {
            how: self.how,
            object: self.object,
            name: NameId::NONE,
            part: self.part,
            text: "",
        }
    }
}

impl Answer {
    /// The modules that the run has loaded, or has found not to be there.
    pub fn loads(&self) -> impl Iterator<Item = &str> {
        self.records
            .iter()
            .filter_map(|(_, kind, words)| match Event::of_words(*kind, words) {
                Event::OrderLoad {
                    module: NameId(name),
                    ..
                }
                | Event::OrderMiss {
                    module: NameId(name),
                } => {
                    let name = self.names.get((name as usize).checked_sub(1)?)?;
                    Some(name.as_str())
                }
                _ => None,
            })
    }
}

/// Not reordered: messages that no process sends, and that no end of one causes.
const NOTICES: &str = "messages of ports, and asynchronous answers of timers";

/// Not reordered where receives time out only when nothing else can go on.
pub(super) const LATE: &str =
    "time-outs of receives that messages came to, and timers that go off before others wait";

/// Not reordered where exit signals come to processes that trap exits for some time.
pub(super) const CEASED: &str = "exit signals to processes that cease to trap exits";

/// Not reordered where a process waits for a message that does not come if a link was given up in time.
pub(super) const LOST: &str = "exit signals that processes wait for which have given up the link";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_any_function_is() {
        let read = |text: &str| text.parse::<Call>();
        for (text, module, function) in [
            ("bank_test:deposits", "bank_test", "deposits"),
            ("bank_test:deposits/0", "bank_test", "deposits"),
            ("bank_test:deposits()", "bank_test", "deposits"),
            ("Lru.scenario", "Elixir.Lru", "scenario"),
            ("Lru.ok?", "Elixir.Lru", "ok?"),
            ("&Lru.scenario/0", "Elixir.Lru", "scenario"),
            ("'Elixir.Lru':scenario", "Elixir.Lru", "scenario"),
            ("{lru, scenario, 0}", "lru", "scenario"),
            ("'it\\'s':'a b'", "it's", "a b"),
        ] {
            let call = read(text).expect(text);
            assert_eq!(
                (call.module.as_str(), call.function.as_str()),
                (module, function)
            );
        }
        for (text, why) in [
            ("", "the module is missing in ''; expected M:F/A"),
            (
                "lru",
                "'lru' names no function; write a module and its function",
            ),
            ("Lru.*", "'Lru.*' names no function; write"),
            ("lru:a*", "'lru:a*' names no function; write"),
            (
                "lru:get/1",
                "'lru:get/1' has 1 arguments, and the call has none; write",
            ),
            (
                "lru:get(a)",
                "'lru:get(a)' has 1 arguments, and the call has none; write",
            ),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.starts_with(why), "{told}");
        }
    }
}
