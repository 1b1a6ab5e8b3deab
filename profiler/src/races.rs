//! `beamline races` prints which other messages could have come first at each receive of a recorded run, which accesses to
//! what processes share could have come the other way round, and which exit signals could have come earlier.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::name::thousands;
use beamline_formats::ring::{Group, Recording};
use beamline_orders::{
    Access, Accessed, Act, EarlierEnd, Kind, Message, Messages, Pair, ProcessIndex, RACES_MAX,
    Race, Races, Site, Sites, Trace,
};
use clap::Args;
use serde::Serialize;

use crate::again::{self, Again};
use crate::options::EnvironmentArgs;
use crate::{input, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Record the order of a run, and print its races:
    beamline record --events order -o run.stream -- erl -noshell -s my_app -s init stop
    beamline races run.stream
  Turn the third one around, and see what the program does then:
    beamline races run.stream --prefix 3 -o other.log
    beamline replay other.log -- erl -noshell -s my_app -s init stop
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print also the races in which only OTP and other libraries take part.
    #[arg(long)]
    all: bool,
    /// Print only the races of this receiver, or of this process's accesses: its reference such as p0.4, its
    /// registered name, or the function that it began in. Can be repeated [default: all].
    #[arg(long = "process", value_name = "PROCESS")]
    processes: Vec<String>,
    /// Print JSON: each race, with its number.
    #[arg(long, conflicts_with = "prefix")]
    json: bool,
    /// Write the log that reverses the race of this number, for beamline replay: the steps that do not depend on what came first,
    /// and the receive of the other message, the other access, or the end by the exit signal.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["all", "processes"])]
    prefix: Option<usize>,
    /// With --prefix, write to FILE [default: standard output].
    #[arg(short, long, value_name = "FILE", requires = "prefix")]
    output: Option<PathBuf>,
    /// Do not run the command again. A recording without the events sites does not contain where in the code its steps are, what
    /// processes access, which exit signals they send, and for which messages receives have clauses; a replay finds this out.
    #[arg(long)]
    no_replay: bool,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// A recording with the events order, or a trace.
    file: PathBuf,
    /// The command to run again [default: the one that was recorded].
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let shown = args.file.display();
    if let Some(output) = &args.output {
        input::keep(&[args.file.as_path()], [output.as_path()])?;
    }
    let (trace, sites) = load(&args.file).map_err(|error| format!("{shown}: {error}"))?;
    let sites = match sites.is_empty() && !args.no_replay {
        true => replayed(args, &trace)?,
        false => sites,
    };
    let races = trace
        .races(&sites)
        .map_err(|error| format!("{shown}: {error}"))?;
    if races.has_more {
        report::error(&format!(
            "{shown}: there are more than {RACES_MAX} races; the others are left out"
        ));
    }
    if let Some(wanted) = args.prefix {
        return write_prefix(args, &races, wanted);
    }
    let mut chosen = Vec::new();
    for name in &args.processes {
        let found = races.trace.select(name);
        if found.is_empty() {
            return Err(format!("{shown}: no process is {name}"));
        }
        chosen.extend(found);
    }
    let is_chosen = |race: &Race| {
        let second = match &race.pair {
            Pair::Messages(_) => race.process,
            Pair::Accesses(both) => both.second.of,
            Pair::End(end) => end.signal.of,
        };
        let mut of = chosen.iter();
        chosen.is_empty() || of.any(|of| [race.process, second].contains(of))
    };
    let told = Told {
        races: &races,
        sites: &sites,
    };
    let numbered = (1..).zip(&races.all).filter(|(_, race)| is_chosen(race));
    let text = match args.json {
        true => told.json(numbered),
        false => told.text(numbered.collect(), args.all),
    };
    report::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The trace of a file, and where in the code its steps are, where the file tells.
fn load(file: &Path) -> Result<(Trace, Sites), String> {
    if !Recording::is_one(file) {
        return Ok((Trace::load(file)?, Sites::default()));
    }
    let recording = Recording::open(file).map_err(|error| error.to_string())?;
    Trace::with_sites(&recording)
}

/// Where in the code the steps are, as a replay tells. Without one, no place is known.
fn replayed(args: &Arguments, trace: &Trace) -> Result<Sites, String> {
    let command = match args.command.is_empty() {
        false => Some(args.command.clone()),
        true => again::recorded_command(&args.file)?,
    };
    let Some(command) = command else {
        report::error("without lines: give the command behind --, and a replay finds them");
        return Ok(Sites::default());
    };
    let folder = tempfile::Builder::new().prefix("beamline-").tempdir();
    let folder = folder.map_err(|error| format!("a temporary folder: {error}"))?;
    let recorded = folder.path().join("again.stream");
    let again = Again {
        environment: &args.environment,
        command: &command,
        file: &args.file,
    };
    let events = [Group::Order.name(), Group::Sites.name()].join(",");
    let output = again.record(&events, &recorded)?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut lines = told
        .lines()
        .filter_map(|line| line.strip_prefix("beamline: "));
    match load(&recorded) {
        Ok((other, sites)) => {
            if let Some(why) = lines.find(|line| line.starts_with("the replay cannot follow: ")) {
                report::error(&format!("without all lines: {why}"));
            }
            Ok(sites.of_other(&other, trace))
        }
        Err(error) => {
            let why = lines.find(|line| !line.starts_with("replays "));
            let why = why.map_or(error, str::to_owned);
            report::error(&format!("without lines: {why}"));
            Ok(Sites::default())
        }
    }
}

fn write_prefix(args: &Arguments, races: &Races, wanted: usize) -> Result<ExitCode, String> {
    let race = wanted.checked_sub(1).and_then(|at| races.all.get(at));
    let Some(race) = race else {
        return Err(format!(
            "{}: it has {} races, and none is number {wanted}",
            args.file.display(),
            races.all.len()
        ));
    };
    let shown = args.file.display();
    let turned = races.turned(race);
    let text = turned
        .map_err(|error| format!("{shown}: {error}"))?
        .to_string();
    match &args.output {
        Some(output) => std::fs::write(output, text)
            .map_err(|error| format!("{}: {error}", output.display()))?,
        None => report::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is printed of races.
struct Told<'a> {
    races: &'a Races,
    sites: &'a Sites,
}

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    version: u32,
    races: Vec<RaceJson<'a>>,
    accesses: Vec<AccessesJson<'a>>,
    ends: Vec<EndJson<'a>>,
}

#[derive(Serialize)]
struct RaceJson<'a> {
    number: usize,
    process: String,
    taken: Option<String>,
    other: String,
    other_is: Option<&'static str>,
    is_same_receive: Option<bool>,
    has_clause: Option<bool>,
    is_of_application: bool,
    receive: Option<SiteJson<'a>>,
    taken_sent: Option<SiteJson<'a>>,
    other_sent: Option<SiteJson<'a>>,
}

#[derive(Serialize)]
struct AccessesJson<'a> {
    number: usize,
    /// `None` where it is not known what is accessed.
    kind: Option<&'a str>,
    name: Option<&'a str>,
    part: Option<&'a str>,
    first: AccessJson<'a>,
    second: AccessJson<'a>,
    is_of_application: bool,
}

#[derive(Serialize)]
struct AccessJson<'a> {
    process: String,
    access: String,
    is_change: Option<bool>,
    site: Option<SiteJson<'a>>,
}

#[derive(Serialize)]
struct EndJson<'a> {
    number: usize,
    process: String,
    act: String,
    signal_of: String,
    fate: &'static str,
    message: Option<String>,
    act_site: Option<SiteJson<'a>>,
    signal_site: Option<SiteJson<'a>>,
    is_of_application: bool,
}

#[derive(Serialize)]
struct SiteJson<'a> {
    function: &'a str,
    line: u32,
}

impl<'a> Told<'a> {
    fn json(&self, races: impl Iterator<Item = (usize, &'a Race)>) -> String {
        let mut file = File {
            schema: "beamline-races",
            version: 1,
            races: Vec::new(),
            accesses: Vec::new(),
            ends: Vec::new(),
        };
        for (number, race) in races {
            match &race.pair {
                Pair::Messages(both) => file.races.push(self.messages_json(number, race, both)),
                Pair::Accesses(both) => {
                    let is_of_application = race.is_of_application;
                    let row = self.accesses_json(number, both, is_of_application);
                    file.accesses.push(row);
                }
                Pair::End(end) => file.ends.push(self.end_json(number, race, end)),
            }
        }
        serde_json::to_string(&file).unwrap_or_default() + "\n"
    }

    fn messages_json(&self, number: usize, race: &'a Race, both: &Messages) -> RaceJson<'a> {
        let [receive, taken_sent, other_sent] = self.sites.of_race(race);
        let trace = &self.races.trace;
        let message = |message: &Message| trace.message(race.process, message);
        RaceJson {
            number,
            process: trace.name(race.process),
            taken: both.taken.as_ref().map(message),
            other: message(&both.other),
            other_is: match both.other {
                Message::SystemMessage(told) if both.is_same_message() => {
                    Some(if told.gone { "gone" } else { "there" })
                }
                _ => None,
            },
            is_same_receive: both.is_same_receive,
            has_clause: both.has_clause,
            is_of_application: race.is_of_application,
            receive: receive.map(SiteJson::of),
            taken_sent: taken_sent.map(SiteJson::of),
            other_sent: other_sent.map(SiteJson::of),
        }
    }

    fn accesses_json(
        &self,
        number: usize,
        both: &Accessed,
        is_of_application: bool,
    ) -> AccessesJson<'a> {
        let known = &self.sites.accesses;
        let access = |access: Access| AccessJson {
            process: self.races.trace.name(access.of),
            access: self.races.trace.access(access),
            is_change: both.common.map(|common| known.is_change(access, common)),
            site: known.site(access).map(SiteJson::of),
        };
        let words = both.common.and_then(|common| known.words(common));
        AccessesJson {
            number,
            kind: words.map(|(kind, ..)| kind),
            name: words
                .map(|(_, name, _)| name)
                .filter(|name| !name.is_empty()),
            part: words.and_then(|(_, _, part)| part),
            first: access(both.first),
            second: access(both.second),
            is_of_application,
        }
    }

    fn end_json(&self, number: usize, race: &'a Race, end: &EarlierEnd) -> EndJson<'a> {
        let trace = &self.races.trace;
        let [_, act_site, signal_site] = self.sites.of_race(race);
        let (fate, message) = match end.before {
            Act::Send(_) | Act::Spawn(_) | Act::Access(_) => ("ended", None),
            Act::Exit => ("late", None),
            Act::Trap(message) => ("message", Some(trace.message(race.process, &message))),
        };
        EndJson {
            number,
            process: trace.name(race.process),
            act: trace.act(race.process, end.before),
            signal_of: trace.name(end.signal.of),
            fate,
            message,
            act_site: act_site.map(SiteJson::of),
            signal_site: signal_site.map(SiteJson::of),
            is_of_application: race.is_of_application,
        }
    }

    fn text(&self, races: Vec<(usize, &'a Race)>, with_libraries: bool) -> String {
        let all = races.len();
        let races = races.into_iter();
        let is_told =
            |race: &Race| with_libraries || self.sites.is_empty() || race.is_of_application;
        let races: Vec<_> = races.filter(|(_, race)| is_told(race)).collect();
        let kinds = self.races.kinds(self.sites, races.iter().copied());
        let mut out = String::new();
        for kind in &kinds {
            self.write(&mut out, kind);
        }
        let _ = writeln!(
            out,
            "{}",
            summary(races.len(), kinds.len(), all - races.len())
        );
        out
    }

    fn write(&self, out: &mut String, kind: &Kind<'_>) {
        match &kind.race.pair {
            Pair::Messages(both) => self.write_messages(out, kind, both),
            Pair::Accesses(both) => self.write_accesses(out, kind, both),
            Pair::End(end) => self.write_end(out, kind, end),
        }
    }

    fn write_messages(&self, out: &mut String, kind: &Kind<'_>, both: &Messages) {
        let Kind { number, race, .. } = *kind;
        let trace = &self.races.trace;
        let message = |message: &Message| {
            let label = trace.message(race.process, message);
            match message {
                Message::Sent { from, .. } => format!("{label} from {}", self.process(*from)),
                Message::SystemMessage(told) => {
                    let gone = if told.gone { ", which was gone" } else { "" };
                    let what = if told.exit {
                        "an exit signal"
                    } else {
                        "the end"
                    };
                    match told.of {
                        Some(of) => format!("{label}, {what} of {}{gone}", self.process(of)),
                        None => label,
                    }
                }
            }
        };
        let receiver = self.process(race.process);
        let _ = match &both.taken {
            Some(taken) => writeln!(out, "{number:>4}  {receiver} took {}", message(taken)),
            None => writeln!(out, "{number:>4}  {receiver} timed out"),
        };
        let more = more_of_the_kind(kind.more);
        let other = message(&both.other);
        let _ = match (both.is_same_message(), both.other) {
            (true, Message::SystemMessage(told)) if told.gone => {
                writeln!(out, "      it could have been gone already{more}")
            }
            (true, _) => writeln!(out, "      it could have been there still{more}"),
            (false, _) => writeln!(out, "      {other} could have come first{more}"),
        };
        let [receive, taken, sent] = self.sites.of_race(race);
        if let Some(receive) = receive {
            let same = match both.is_same_receive {
                _ if both.is_same_message() => "",
                _ if both.has_clause == Some(true) => "; it has a clause for the other one",
                Some(true) => "; it took the other one later",
                _ => "; it may have no clause for the other one",
            };
            // Code tells the lines of calls; a receive is behind the last one.
            let later = if receive.line == 0 { "" } else { " or later" };
            let _ = writeln!(out, "        received in {}{later}{same}", receive);
        }
        for (what, place) in [("sent in", taken), ("the other in", sent)] {
            if let Some(place) = place {
                let _ = writeln!(out, "        {what} {}", place);
            }
        }
    }

    fn write_accesses(&self, out: &mut String, kind: &Kind<'_>, both: &Accessed) {
        let number = kind.number;
        let [first, second] = [both.first, both.second].map(|access| {
            let label = self.races.trace.access(access);
            (self.process(access.of), label)
        });
        let more = more_of_the_kind(kind.more);
        let Some(common) = both.common else {
            let ((process, label), (other, second)) = (first, second);
            let _ = writeln!(
                out,
                "{number:>4}  {other} made its access {second} after {label} of {process}, or an earlier one\n      \
                 it could have come first{more}"
            );
            return;
        };
        let known = &self.sites.accesses;
        let does = |access| match known.is_change(access, common) {
            true => "changed",
            false => "read",
        };
        let what = known.text(common);
        let (process, label) = first;
        let _ = writeln!(
            out,
            "{number:>4}  {process} {} {what} ({label})",
            does(both.first)
        );
        let (process, label) = second;
        let _ = writeln!(
            out,
            "      {process}, which {} it ({label}), could have come first{more}",
            does(both.second)
        );
        let [_, one, other] = self.sites.of_race(kind.race);
        for (place, access, what) in [(one, both.first, ""), (other, both.second, "the other ")] {
            if let Some(place) = place {
                let _ = writeln!(out, "        {what}{} in {place}", does(access));
            }
        }
    }

    fn write_end(&self, out: &mut String, kind: &Kind<'_>, end: &EarlierEnd) {
        let Kind { number, race, .. } = *kind;
        let trace = &self.races.trace;
        let (process, act) = (
            self.process(race.process),
            trace.act(race.process, end.before),
        );
        let sender = self.process(end.signal.of);
        let more = more_of_the_kind(kind.more);
        let signal = match end.before {
            Act::Send(_) | Act::Spawn(_) | Act::Access(_) => {
                format!("the exit signal of {sender}, which ended it later, could have come first")
            }
            Act::Exit => {
                format!("an exit signal of {sender} came too late; it could have come first")
            }
            Act::Trap(message) => {
                let message = trace.message(race.process, &message);
                format!(
                    "{message}, an exit signal of {sender}, could have come first, and ended it"
                )
            }
        };
        let _ = writeln!(out, "{number:>4}  {process} {act}\n      {signal}{more}");
        let [_, act, sent] = self.sites.of_race(race);
        for (what, place) in [("", act), ("the signal sent ", sent)] {
            if let Some(place) = place {
                let _ = writeln!(out, "        {what}in {place}");
            }
        }
    }

    fn process(&self, at: ProcessIndex) -> String {
        let trace = &self.races.trace;
        match &trace.processes[at].known_as {
            Some(known_as) => format!("{} ({known_as})", trace.name(at)),
            None => trace.name(at),
        }
    }
}

fn more_of_the_kind(more: usize) -> String {
    match more {
        0 => String::new(),
        1 => "; there is one more such race".into(),
        more => format!("; there are {} more such races", thousands(more as u64)),
    }
}

impl<'a> SiteJson<'a> {
    fn of(site: &'a Site) -> SiteJson<'a> {
        SiteJson {
            function: &site.function,
            line: site.line,
        }
    }
}

fn summary(races: usize, kinds: usize, hidden: usize) -> String {
    let count = |count: usize, one: &str, many: &str| match count {
        1 => format!("one {one}"),
        count => format!("{} {many}", thousands(count as u64)),
    };
    let mut out = match races {
        0 => "no races".to_owned(),
        _ => format!(
            "{} of {}",
            count(races, "race", "races"),
            count(kinds, "kind", "kinds")
        ),
    };
    if hidden > 0 {
        let _ = write!(
            out,
            "; --all prints {} of libraries, too",
            count(hidden, "race", "races")
        );
    }
    out
}
