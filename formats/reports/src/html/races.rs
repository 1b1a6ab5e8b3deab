//! The races of a recording that has the order of its run: which messages could have come first, each with its message
//! on the page, where messages were recorded too, and which accesses to what processes share.

use std::collections::HashMap;

use beamline_formats::ring::{Group, Id, Recording};
use beamline_orders::{
    Access, Accessed, Act, EarlierEnd, Kind, Message, Messages, Pair, ProcessIndex, Race, Races,
    Site, Sites, Step, Trace,
};
use serde::Serialize;

use super::tables::{Tables, missing};

/// Kinds of races on a page.
const KINDS: usize = 500;

/// A message by its receiver and the number of its coming, from 1.
pub(super) type Coming = (Id, u64);

/// The races of a recording, before the page is made.
pub(super) struct Found {
    /// Why there are none; or empty.
    missing: String,
    known: Option<(Races, Sites)>,
}

impl Found {
    /// Finds the races of a recording.
    pub(super) fn of(recording: &Recording) -> Found {
        let missing = missing(recording, "races", &[Group::Order]);
        if !missing.is_empty() {
            let known = None;
            return Found { missing, known };
        }
        let races = Trace::with_sites(recording)
            .and_then(|(trace, sites)| Ok((trace.races(&sites)?, sites)));
        match races {
            Ok(known) => Found {
                missing,
                known: Some(known),
            },
            Err(error) => Found {
                missing: format!("No races can be shown: {error}."),
                known: None,
            },
        }
    }

    /// The kinds that are shown, likeliest first.
    fn kinds(&self) -> Vec<Kind<'_>> {
        let Some((races, sites)) = &self.known else {
            return Vec::new();
        };
        races.kinds(sites, (1..).zip(&races.all))
    }

    /// The comings of the messages that the page shows races of.
    pub(super) fn comings(&self) -> HashMap<Coming, Option<u64>> {
        let Some((races, _)) = &self.known else {
            return HashMap::new();
        };
        let mut comings = HashMap::new();
        for kind in self.kinds().iter().take(KINDS) {
            let Pair::Messages(both) = kind.race.pair else {
                continue;
            };
            for message in [both.taken, Some(both.other)].into_iter().flatten() {
                let coming = coming(&races.trace, kind.race.process, message);
                comings.extend(coming.map(|coming| (coming, None)));
            }
        }
        comings
    }

    /// As the page has them; `shown` gives a message's place on the page.
    pub(super) fn on_page(
        self,
        shown: impl Fn(Coming) -> Option<u64>,
        tables: &mut Tables<'_>,
    ) -> RacesOnPage {
        let kinds = self.kinds();
        let mut out = RacesOnPage {
            left: kinds.len().saturating_sub(KINDS),
            has_sites: self
                .known
                .as_ref()
                .is_some_and(|(_, sites)| !sites.is_empty()),
            ..RacesOnPage::default()
        };
        if let Some((races, sites)) = &self.known {
            let page = ToPage {
                races,
                sites,
                shown,
            };
            let kinds = kinds.iter().take(KINDS);
            out.all = kinds.filter_map(|kind| page.row(kind, tables)).collect();
        }
        RacesOnPage {
            missing: self.missing,
            ..out
        }
    }
}

/// Which of the messages that came to a process this one was.
fn coming(trace: &Trace, receiver: ProcessIndex, message: Message) -> Option<Coming> {
    let process = &trace.processes[receiver];
    let mut delivered = process.steps.iter().filter_map(|step| match step {
        Step::Deliver(message) => Some(*message),
        _ => None,
    });
    let number = delivered.position(|other| other == message)? as u64 + 1;
    Some((Id::Process(process.pid?), number))
}

/// Races, as the page has them.
#[derive(Default, Serialize)]
pub(super) struct RacesOnPage {
    /// Why there are none; or empty.
    missing: String,
    /// Kinds that are not on the page.
    left: usize,
    /// Places in the code are known.
    has_sites: bool,
    all: Vec<RaceOnPage>,
}

/// A kind of race: its likeliest one.
#[derive(Serialize)]
struct RaceOnPage {
    /// As `beamline races` counts, from 1.
    number: usize,
    /// Further races of the kind.
    more: usize,
    /// The receiver, or the process that made the first access.
    process: u32,
    /// `None` where the receive timed out. Of accesses, the first one.
    taken: Option<One>,
    other: One,
    /// What the accesses are to; empty for messages.
    object: String,
    /// What could have come first is an exit signal, and what did is an act of the process.
    is_end: bool,
    /// Where the receive is; empty where that is not known.
    site: String,
    /// Whether the receive at the same place in the code took the other message later; `None` where that is not known.
    is_same: Option<bool>,
    /// The receive has a clause for the other message, as it has tried.
    has_clause: bool,
    is_of_application: bool,
}

/// A message or an access of a race.
#[derive(Serialize)]
struct One {
    /// Its reference.
    label: String,
    /// The process that has sent it or whose end it tells, or that accesses, and 1; 0 where there is none.
    from: u32,
    /// It tells of a process's end.
    is_end: bool,
    /// The access changes what it is to; nothing of messages, and where that is not known.
    is_change: Option<bool>,
    /// Where it was sent or made; empty where that is not known.
    site: String,
    /// Its place among the page's messages; -1 where it is not among them, and of accesses.
    at: i64,
}

impl One {
    /// One that is none of the page's messages.
    fn beside(label: String, from: u32, site: Option<&Site>) -> One {
        One {
            label,
            from,
            is_end: false,
            is_change: None,
            site: text(site),
            at: -1,
        }
    }
}

struct ToPage<'r, F> {
    races: &'r Races,
    sites: &'r Sites,
    shown: F,
}

impl<F: Fn(Coming) -> Option<u64>> ToPage<'_, F> {
    fn row(&self, kind: &Kind<'_>, tables: &mut Tables<'_>) -> Option<RaceOnPage> {
        let race = kind.race;
        let process = self.races.trace.processes.get(race.process)?;
        let ((taken, other), object, is_same) = match race.pair {
            Pair::Messages(Messages {
                taken,
                other,
                is_same_receive,
                ..
            }) => {
                let mut message = |message| self.message(race.process, message, tables);
                let both = (taken.map(&mut message), message(other));
                (both, String::new(), is_same_receive)
            }
            Pair::Accesses(both) => {
                let [first, second] =
                    [both.first, both.second].map(|access| self.access(access, &both, tables));
                ((Some(first), second), self.object(&both), None)
            }
            Pair::End(end) => {
                let both = (Some(self.act(race, end)), self.signal(race, end, tables));
                (both, String::new(), None)
            }
        };
        let [site, ..] = self.sites.of_race(race);
        Some(RaceOnPage {
            number: kind.number,
            more: kind.more,
            process: tables.process(Id::Process(process.pid?)),
            taken,
            other,
            object,
            is_end: matches!(race.pair, Pair::End(_)),
            site: text(site),
            is_same,
            has_clause: matches!(race.pair, Pair::Messages(both) if both.has_clause == Some(true)),
            is_of_application: race.is_of_application,
        })
    }

    /// What a process did before an exit signal.
    fn act(&self, race: &Race, end: EarlierEnd) -> One {
        let trace = &self.races.trace;
        let (of, label) = (race.process, trace.act(race.process, end.before));
        One::beside(label, 0, self.sites.of_act(of, end.before))
    }

    /// The exit signal that could have come first.
    fn signal(&self, race: &Race, end: EarlierEnd, tables: &mut Tables<'_>) -> One {
        let [.., site] = self.sites.of_race(race);
        let pid = self.races.trace.processes[end.signal.of].pid;
        let label = match end.before {
            Act::Trap(message) => self.races.trace.message(race.process, &message),
            _ => "exit signal".into(),
        };
        let from = tables.process_or_none(pid.map_or(Id::None, Id::Process));
        One::beside(label, from, site)
    }

    fn object(&self, both: &Accessed) -> String {
        let known = both.common.map(|common| self.sites.accesses.text(common));
        known.unwrap_or_else(|| "what they share".into())
    }

    fn access(&self, access: Access, both: &Accessed, tables: &mut Tables<'_>) -> One {
        let pid = self.races.trace.processes[access.of].pid;
        let accesses = &self.sites.accesses;
        let label = self.races.trace.access(access);
        let from = tables.process_or_none(pid.map_or(Id::None, Id::Process));
        One {
            is_change: both.common.map(|common| accesses.is_change(access, common)),
            ..One::beside(label, from, accesses.site(access))
        }
    }

    fn message(&self, receiver: ProcessIndex, message: Message, tables: &mut Tables<'_>) -> One {
        let trace = &self.races.trace;
        let (from, is_end) = match message {
            Message::Sent { from, .. } => (Some(from), false),
            Message::SystemMessage(told) => (told.of, true),
        };
        let pid = from.and_then(|from| trace.processes[from].pid);
        let place = coming(trace, receiver, message).and_then(&self.shown);
        let label = trace.message(receiver, &message);
        One {
            label: match message {
                Message::SystemMessage(told) if told.gone => format!("{label} (gone)"),
                _ => label,
            },
            from: tables.process_or_none(pid.map_or(Id::None, Id::Process)),
            is_end,
            is_change: None,
            site: text(self.sites.of_sending(message)),
            at: place.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1),
        }
    }
}

fn text(site: Option<&Site>) -> String {
    site.map(Site::to_string).unwrap_or_default()
}
