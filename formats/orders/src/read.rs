//! Reads traces: from recordings, and from files of any form.

mod messages;
mod told;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use beamline_formats::name;
use beamline_formats::profile::Origin as Whose;
use beamline_formats::ring::{
    Event, Group, Id, Label, NameId, Near, Record, Recording, SignalKind, Touch,
};
use rustc_hash::FxHashMap;

use super::accesses::{Object, To};
use super::signals::SentSignal;
use super::{
    Access, At, Heard, Message, Origin, PerProcess, Process, ProcessIndex, Site, Sites, Spent,
    Step, StepAt, StepIndex, Stop, Trace, Value, moved,
};

/// The origin of a process that has this number, as [`Id::Process`] has it, and that no process of the trace has spawned.
pub(super) fn root_of(id: u64) -> Origin {
    Origin::Root(id & 0xfff_ffff)
}

impl Trace {
    /// Reads a trace from a file: a recording of the order, a trace as JSON, or as text.
    ///
    /// # Errors
    /// One line, without the file's name, that says what is wrong and what to do.
    pub fn load(path: &Path) -> Result<Trace, String> {
        if Recording::is_one(path) {
            let recording = Recording::open(path).map_err(|error| error.to_string())?;
            return Trace::of(&recording);
        }
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let text = String::from_utf8(text)
            .map_err(|_| "neither a recording nor a trace: it is not UTF-8".to_owned())?;
        let inner = text.trim_start().strip_prefix('{').map(str::trim_start);
        let trace = match inner.is_some_and(|inner| inner.starts_with('"')) {
            true => Trace::from_json(&text)?,
            false => text.parse()?,
        };
        if trace.processes.is_empty() {
            return Err("it holds no process: neither a recording nor a trace".into());
        }
        trace.check()?;
        Ok(trace)
    }

    /// The trace that a recording holds.
    ///
    /// # Errors
    /// One line: the order was not recorded, or not all of it.
    pub fn of(recording: &Recording) -> Result<Trace, String> {
        let (trace, _) = Trace::with_sites(recording)?;
        Ok(trace)
    }

    /// The trace that a recording holds, and where in the code its steps are, where it tells.
    ///
    /// # Errors
    /// As those of [`Trace::of`].
    pub fn with_sites(recording: &Recording) -> Result<(Trace, Sites), String> {
        let (reader, _) = read_until(&recording, |_| false)?;
        let (trace, sites, _) = reader.end()?;
        Ok((trace, sites))
    }
}

/// The module of the process that no replay follows: what it does depends on what the machine has to free, and shows to no
/// other process.
pub const UNFOLLOWED: &str = "erts_literal_area_collector";

/// The step before which the recorded run was at this time.
///
/// # Errors
/// As those of [`Trace::of`].
pub(super) fn first_step_behind(
    recording: &Recording,
    time_ns: u64,
) -> Result<Option<Stop>, String> {
    let is_behind = |record: &Record<'_>| {
        let is_step =
            record.event.kind().map(beamline_formats::ring::Kind::group) == Some(Group::Order);
        let is_followed = || {
            let text = recording.names().process_text(record.subject);
            !text.starts_with(UNFOLLOWED)
        };
        is_step && record.time_ns >= time_ns && is_followed()
    };
    let (reader, found) = read_until(&recording, is_behind)?;
    let places = reader.new_places()?;
    Ok(found.map(|StepAt { process, step }| {
        let process = places[process];
        Stop::Step(StepAt { process, step })
    }))
}

/// Reads all records of the order, and looks for one: the place behind the steps that its process had made by then.
fn read_until<'r>(
    recording: &'r &'r Recording,
    is_it: impl Fn(&Record<'_>) -> bool,
) -> Result<(Reader<'r>, Option<StepAt>), String> {
    if !recording.has(Group::Order) {
        return Err("it does not hold the order: record it with --events order".into());
    }
    let losses = recording.losses(&recording.written());
    let is_cut = losses.iter().any(|loss| loss.kind.group() == Group::Order);
    let since_ns = recording
        .whole_since_ns()
        .map_err(|error| error.to_string())?;
    if is_cut || recording.is_cut() || since_ns > 0 {
        return Err(incomplete());
    }
    let mut reader = Reader::new(recording);
    let mut found = None;
    let mut merged = recording.merged().map_err(|error| error.to_string())?;
    while let Some(record) = merged.read().map_err(|error| error.to_string())? {
        if found.is_none()
            && let Id::Process(id) = record.subject
            && is_it(&record)
        {
            let process = reader.place(id);
            let step = StepIndex::new(reader.all[process].steps.len());
            found = Some(StepAt { process, step });
        }
        reader.add(record.subject, &record.event)?;
    }
    Ok((reader, found))
}

/// Knows what the numbers in records stand for.
pub(super) trait Names {
    /// The name of an atom.
    fn atom(&self, name: NameId) -> &str;
    /// The name of a function.
    fn function(&self, name: NameId) -> String;
    /// What reports call a process.
    fn known_as(&self, id: u64) -> Option<String>;
    /// A place in the code.
    fn site(&self, function: NameId, line: u64) -> Site;
}

impl Names for &Recording {
    fn atom(&self, name: NameId) -> &str {
        self.names().atom(name)
    }

    fn function(&self, name: NameId) -> String {
        self.names().text(name)
    }

    fn known_as(&self, id: u64) -> Option<String> {
        let text = self.names().process_text(Id::Process(id));
        (!text.is_empty()).then_some(text)
    }

    fn site(&self, function: NameId, line: u64) -> Site {
        let names = self.names();
        let module = names
            .function(function)
            .map(|function| function.module.as_str());
        Site {
            function: names.text(function),
            line: u32::try_from(line).unwrap_or(0),
            is_of_application: module.is_some_and(|module| names.origin(module) == Whose::App),
        }
    }
}

/// What is known of a process while the records are read.
#[derive(Default)]
struct Known {
    steps: Vec<Step>,
    parent: Option<(ProcessIndex, u32)>,
    spawns: u32,
    /// Sendings that are among its steps, and those that its own records have told.
    sent: u32,
    told_sent: u32,
    /// The last of its sendings that receivers have told. Where it is among its own steps is known when its next record comes,
    /// or there is no more.
    heard_of: u32,
    told: u32,
    queue: VecDeque<Message>,
    /// Where in the queue the next message comes, if not behind all others.
    ahead: Option<usize>,
    /// The message that it has taken last as it came, and whether it has sent one before.
    taken: Option<(Label, bool)>,
    timeouts: u32,
    /// The integer that it was given last.
    integer: u64,
    /// A term of which some bytes are still to come.
    partial: Option<Partial>,
    /// Its accesses to what processes share.
    accesses: u64,
    /// The process whose signal ends it.
    ended_by: Option<ProcessIndex>,
    /// The place in the code of its next step.
    site: Option<(NameId, u64)>,
    sites: Vec<(Sited, (NameId, u64))>,
    /// Its accesses, each with what it is to.
    touches: Vec<Touched>,
    /// Its signals, each with its place in the code.
    signals: Vec<(SentSignal, Option<(NameId, u64)>)>,
    /// When it began to trap exits, or ceased to: how many steps it had made itself by then.
    traps: Vec<(usize, bool)>,
    /// Messages that its next receive has tried, and whether it has clauses for them.
    tried: Vec<(Message, bool)>,
    /// Messages that its receives have tried, and whether these have clauses for them.
    clauses: Vec<(Sited, Message, bool)>,
    /// How many of its steps were looked at, and how many of these it has made itself.
    own: (usize, usize),
}

/// An access to an object.
struct Touched {
    number: u64,
    /// How many steps its process had made itself by then.
    steps: usize,
    site: Option<(NameId, u64)>,
    to: To,
}

/// A term whose bytes come in several records.
struct Partial {
    /// The function that gives it; nothing for the message that is delivered next.
    function: Option<Arc<str>>,
    bytes: Vec<u8>,
    length: usize,
}

/// A term of more bytes is damaged.
const TERM_MAX: u64 = 1 << 30;

/// A step of a process that has a place in the code.
#[derive(Clone, Copy)]
enum Sited {
    Send(u32),
    Receive(Message),
    Timeout(u32),
}

impl Sited {
    /// The step of the process at this place; `place` gives those of others.
    fn at(
        self,
        of: ProcessIndex,
        place: impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<At> {
        Some(match self {
            Sited::Send(number) => At::Send(of, number),
            Sited::Receive(message) => At::Receive(of, message.moved(place)?),
            Sited::Timeout(number) => At::Timeout(of, number),
        })
    }
}

impl Known {
    /// A record of a time-out or of its end, if it is one.
    fn add_end_or_timeout(&mut self, event: &Event<'_>) {
        match *event {
            Event::OrderTimeout {} => {
                self.timeouts += 1;
                self.note_site(Sited::Timeout(self.timeouts));
                self.steps.push(Step::Timeout);
            }
            Event::OrderSpent {
                reductions,
                words,
                ended,
            } => self.steps.push(Step::Spent(Spent {
                reductions,
                words,
                by_signal: ended != 0,
                gone: ended == 2,
                of: self.ended_by,
            })),
            Event::OrderExit {} => self.steps.push(Step::Exit(None)),
            _ => {}
        }
    }

    /// The site that was recorded last is that of this step.
    fn note_site(&mut self, step: Sited) {
        if !matches!(step, Sited::Send(_)) {
            let tried = self.tried.drain(..);
            let clauses = tried.map(|(message, takes)| (step, message, takes));
            self.clauses.extend(clauses);
        }
        if let Some(site) = self.site.take() {
            self.sites.push((step, site));
        }
    }

    /// How many steps it has made itself.
    fn own_steps(&mut self) -> usize {
        let (looked_at, own) = self.own;
        let more = self.steps[looked_at..].iter();
        let own = own + more.filter(|step| step.is_own()).count();
        self.own = (self.steps.len(), own);
        own
    }
}

/// Makes a trace of records.
pub(super) struct Reader<'r> {
    names: &'r dyn Names,
    ids: PerProcess<u64>,
    all: PerProcess<Known>,
    places: FxHashMap<u64, ProcessIndex>,
    /// By the low bits of their ids: the latest.
    low: FxHashMap<u32, ProcessIndex>,
    /// The functions that have given answers.
    functions: FxHashMap<NameId, Arc<str>>,
    sites: Sites,
}

impl<'r> Reader<'r> {
    pub(super) fn new(names: &'r dyn Names) -> Reader<'r> {
        Reader {
            names,
            ids: PerProcess::default(),
            all: PerProcess::default(),
            places: FxHashMap::default(),
            low: FxHashMap::default(),
            functions: FxHashMap::default(),
            sites: Sites::default(),
        }
    }

    fn place(&mut self, id: u64) -> ProcessIndex {
        if let Some(place) = self.places.get(&id) {
            return *place;
        }
        let place = self.all.push(Known::default());
        self.ids.push(id);
        self.places.insert(id, place);
        self.low.insert((id & 0xffff_ffff) as u32, place);
        place
    }

    /// A record of a process.
    ///
    /// # Errors
    /// One line: others are missing.
    pub(super) fn add(&mut self, subject: Id, event: &Event<'_>) -> Result<(), String> {
        let Id::Process(id) = subject else {
            return Ok(());
        };
        let group = event.kind().map(beamline_formats::ring::Kind::group);
        if !matches!(group, Some(Group::Order | Group::Sites)) {
            return Ok(());
        }
        let me = self.place(id);
        match *event {
            Event::OrderSpawn { child } => self.add_spawn(me, child)?,
            Event::OrderSent { count } => self.add_sendings(me, count)?,
            Event::OrderDelivery { label } => {
                let message = self.message_of(label)?;
                self.deliver(me, message)?;
            }
            Event::OrderTake { label } => self.take(me, label, false)?,
            Event::OrderSendTake { label } => self.take(me, label, true)?,
            Event::OrderAgain { times } => self.repeat_take(me, times)?,
            Event::OrderReceive { at } => self.receive(me, at)?,
            Event::OrderAhead { at } => self.all[me].ahead = usize::try_from(at).ok(),
            Event::OrderMiss { module } => {
                let module = self.module(module)?;
                self.all[me].steps.push(Step::Miss(module));
            }
            Event::OrderLoad { module, misses } => {
                let module = self.module(module)?;
                self.all[me].steps.push(Step::Load { module, misses });
            }
            Event::OrderAfter { of, number, since } => self.add_after(me, of, number, since)?,
            Event::OrderAccesses { count } => {
                let number = self.count_accesses(me, count)?;
                self.all[me].steps.push(Step::Accesses(number));
            }
            Event::OrderAnswer {
                function,
                difference,
            } => self.add_answer(me, function, difference)?,
            Event::OrderAnswerNear { answer } => {
                let Near {
                    function,
                    difference,
                } = Near::from_word(answer);
                self.add_answer(me, function, difference)?;
            }
            Event::OrderAnswerTerm { function, bytes } => {
                let function = self.function(function)?;
                self.begin_term(me, Some(function), bytes)?;
            }
            Event::OrderContent { bytes } => self.begin_term(me, None, bytes)?,
            Event::OrderBytes {
                first,
                second,
                third,
                fourth,
            } => self.extend_term(me, [first, second, third, fourth])?,
            _ => {
                self.all[me].add_end_or_timeout(event);
                self.add_news(me, event);
                self.add_system_message(me, event)?;
                self.add_site(me, event);
            }
        }
        Ok(())
    }

    /// A record of an exit signal that is lost or ends the process, of a link, or of a collection that others ask for.
    fn add_news(&mut self, me: ProcessIndex, event: &Event<'_>) {
        match *event {
            Event::OrderLost {
                of: Id::Process(of),
            } => {
                let of = self.place(of);
                self.all[me].steps.push(Step::Lost(of));
            }
            Event::OrderHeard {
                what,
                of: Id::Process(of),
            } => {
                let of = self.place(of);
                let heard = Heard::of_number(what).map(|what| Step::Heard(what, of));
                self.all[me].steps.extend(heard);
            }
            Event::OrderCollect { reductions, major } => {
                let major = major != 0;
                self.all[me].steps.push(Step::Collect { reductions, major });
            }
            Event::OrderEndedBy {
                of: Id::Process(of),
            } => self.all[me].ended_by = Some(self.place(of)),
            _ => {}
        }
    }

    /// A record of where a step is, or of what an access is to.
    fn add_site(&mut self, me: ProcessIndex, event: &Event<'_>) {
        match *event {
            Event::OrderSite { function, line } => self.all[me].site = Some((function, line)),
            Event::OrderAccess {
                how,
                object,
                name,
                part,
                text,
            } => self.add_access(me, how, (object, name), (part, text)),
            Event::OrderSignal {
                what,
                to: Id::Process(to),
            } => self.add_sent_signal(me, what, to),
            Event::OrderTried { label, takes } => {
                if let Ok(message) = self.message_of(label) {
                    self.all[me].tried.push((message, takes != 0));
                }
            }
            Event::OrderTriedTold { number, takes } => {
                if let Ok(number) = u32::try_from(number) {
                    let message = Message::told(number);
                    self.all[me].tried.push((message, takes != 0));
                }
            }
            Event::OrderTraps { traps } => {
                let known = &mut self.all[me];
                let steps = known.own_steps();
                known.traps.push((steps, traps != 0));
            }
            _ => {}
        }
    }

    /// It sends a signal other than a message; what a newer version knows is left out.
    fn add_sent_signal(&mut self, me: ProcessIndex, what: u64, to: u64) {
        let Some(kind) = SignalKind::from_word(what) else {
            return;
        };
        let to = self.place(to);
        let known = &mut self.all[me];
        let steps = known.own_steps();
        let signal = SentSignal {
            kind,
            to,
            steps,
            is_of_end: known.steps.last().is_some_and(Step::is_exit),
            site: None,
        };
        known.signals.push((signal, known.site.take()));
    }

    fn function(&mut self, function: NameId) -> Result<Arc<str>, String> {
        if function == NameId::NONE {
            return Err(incomplete());
        }
        let names = self.names;
        let known = self.functions.entry(function);
        let text = known.or_insert_with(|| names.function(function).into());
        Ok(Arc::clone(text))
    }

    fn add_answer(
        &mut self,
        me: ProcessIndex,
        function: NameId,
        difference: u64,
    ) -> Result<(), String> {
        let function = self.function(function)?;
        let known = &mut self.all[me];
        known.integer = known.integer.wrapping_add(difference);
        let value = Value::Integer(known.integer.cast_signed());
        known.steps.push(Step::Answer { function, value });
        Ok(())
    }

    fn begin_term(
        &mut self,
        me: ProcessIndex,
        of: Option<Arc<str>>,
        bytes: u64,
    ) -> Result<(), String> {
        let length = usize::try_from(bytes)
            .ok()
            .filter(|_| (1..=TERM_MAX).contains(&bytes))
            .ok_or_else(incomplete)?;
        let partial = Partial {
            function: of,
            bytes: Vec::new(),
            length,
        };
        let before = self.all[me].partial.replace(partial);
        before.map_or(Ok(()), |_| Err(incomplete()))
    }

    fn extend_term(&mut self, me: ProcessIndex, words: [u64; 4]) -> Result<(), String> {
        let known = &mut self.all[me];
        let mut partial = known.partial.take().ok_or_else(incomplete)?;
        partial
            .bytes
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
        if partial.bytes.len() < partial.length {
            known.partial = Some(partial);
            return Ok(());
        }
        partial.bytes.truncate(partial.length);
        let value = Value::Term(partial.bytes.into());
        known.steps.push(match partial.function {
            Some(function) => Step::Answer { function, value },
            None => Step::Content {
                number: known.told + 1,
                value,
            },
        });
        Ok(())
    }

    fn module(&self, module: NameId) -> Result<String, String> {
        if module == NameId::NONE {
            return Err(incomplete());
        }
        Ok(name::stable(self.names.atom(module)).to_owned())
    }

    fn add_spawn(&mut self, me: ProcessIndex, child: Id) -> Result<(), String> {
        let Id::Process(child) = child else {
            return Err(incomplete());
        };
        let child = self.place(child);
        self.all[me].spawns += 1;
        let parent = (me, self.all[me].spawns);
        if self.all[child].parent.is_some() {
            return Err(incomplete());
        }
        self.all[child].parent = Some(parent);
        self.all[me].steps.push(Step::Spawn(child));
        Ok(())
    }

    /// It makes `count` accesses more; the number of the last one.
    fn count_accesses(&mut self, me: ProcessIndex, count: u64) -> Result<u64, String> {
        let known = &mut self.all[me];
        let number = known.accesses.checked_add(count);
        known.accesses = number.ok_or_else(incomplete)?;
        Ok(known.accesses)
    }

    fn add_after(
        &mut self,
        me: ProcessIndex,
        of: Id,
        number: u64,
        since: u64,
    ) -> Result<(), String> {
        let Id::Process(of) = of else {
            return Err(incomplete());
        };
        let of = self.place(of);
        let access = self.count_accesses(me, since)?;
        let other = Access { of, number };
        self.all[me].steps.push(Step::After { access, other });
        Ok(())
    }

    /// It is about to make an access; what a newer version knows is left out.
    fn add_access(
        &mut self,
        me: ProcessIndex,
        how: u64,
        (object, name): (u64, NameId),
        (part, text): (u64, &str),
    ) {
        let Some(touch) = Touch::from_word(how) else {
            return;
        };
        let is = Object {
            shared: touch.shared,
            name: match name {
                NameId::NONE => String::new(),
                name => self.names.atom(name).to_owned(),
            },
        };
        let text = touch.is_of_part.then_some((part, text));
        self.sites.accesses.name(object, is, text);
        let known = &mut self.all[me];
        let steps = known.own_steps();
        known.touches.push(Touched {
            number: touch.number,
            steps,
            site: known.site.take(),
            to: To {
                object,
                is_change: touch.is_change,
                part: touch.is_of_part.then_some(part),
            },
        });
    }

    /// The place of the process whose id has these low bits.
    fn place_of_low(&mut self, low: u32) -> ProcessIndex {
        match self.low.get(&low) {
            Some(place) => *place,
            None => self.place(low.into()),
        }
    }

    /// The trace, in which parents come before their children, the places in the code of its steps, and the ids of its
    /// processes.
    pub(super) fn end(mut self) -> Result<(Trace, Sites, PerProcess<u64>), String> {
        for place in self.all.indexes() {
            self.add_sendings_until(place, self.all[place].heard_of)?;
        }
        let has_places = |known: &Known| StepIndex::new(known.steps.len()) < StepIndex::MAX;
        if !self.all.iter().all(has_places) {
            return Err(incomplete());
        }
        let order = self.parents_first()?;
        let new_places = self.new_places()?;
        let place = |old: ProcessIndex| new_places.get(old).copied();
        let mut sites = self.sites;
        let mut all: PerProcess<Option<Known>> = self.all.into_iter().map(Some).collect();
        let (names, ids) = (self.names, self.ids);
        let processes = order.entries().filter_map(|(new, &old)| {
            let known = all[old].take()?;
            for (step, (function, line)) in known.sites {
                let at = step.at(new, place)?;
                sites.insert(at, names.site(function, line));
            }
            for (step, message, takes) in known.clauses {
                let (at, message) = (step.at(new, place)?, message.moved(place)?);
                sites.insert_clause(at, message, takes);
            }
            for touched in known.touches {
                let Touched { number, steps, .. } = touched;
                let site = touched.site;
                let site = site.map(|(function, line)| names.site(function, line));
                sites
                    .accesses
                    .insert(new, (number, steps), site, touched.to);
            }
            for (signal, site) in known.signals {
                let to = place(signal.to)?;
                let site = site.map(|(function, line)| names.site(function, line));
                let signal = SentSignal { to, site, ..signal };
                sites.signals.insert(new, signal);
            }
            for (steps, traps) in known.traps {
                sites.signals.insert_traps(new, steps, traps);
            }
            let origin = match known.parent {
                None => root_of(ids[old]),
                Some((of, number)) => Origin::Child {
                    of: new_places[of],
                    number,
                },
            };
            Some(Process {
                origin,
                pid: Some(ids[old]),
                known_as: names.known_as(ids[old]),
                steps: moved(known.steps, place),
            })
        });
        let processes = processes.collect();
        let ids = order.iter().map(|old| ids[*old]).collect();
        Ok((Trace { processes }, sites, ids))
    }

    /// The place of each process in the trace.
    fn new_places(&self) -> Result<PerProcess<ProcessIndex>, String> {
        let mut places = self.all.map(|_| ProcessIndex::default());
        for (new, old) in self.parents_first()?.entries() {
            places[*old] = new;
        }
        Ok(places)
    }

    /// For each process of the trace, its place here: those of parents come before those of their children.
    fn parents_first(&self) -> Result<PerProcess<ProcessIndex>, String> {
        let all = &self.all;
        let roots = all.indexes().filter(|at| all[*at].parent.is_none());
        let mut order: Vec<ProcessIndex> = roots.collect();
        order.sort_by_key(|at| self.ids[*at]);
        let mut next = 0;
        while let Some(at) = order.get(next).copied() {
            let children = all[at].steps.iter().filter_map(|step| match step {
                Step::Spawn(child) => Some(*child),
                _ => None,
            });
            order.extend(children);
            next += 1;
        }
        // Otherwise there are parents that are their own children's.
        match order.len() == all.len() {
            true => Ok(order.into_iter().collect()),
            false => Err(incomplete()),
        }
    }
}

fn incomplete() -> String {
    "a part of its records is missing, so that nothing can follow them: record into a stream, or with a larger --ring"
        .into()
}
