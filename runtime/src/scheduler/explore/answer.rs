//! What a run tells when it has ended: its steps, and what is known of its processes.

use beamline_formats::ring::{Function, NameId};
use beamline_orders::{
    Answer, End, Ended, ExitCall, PROGRAMS, SharedAccess, ThroughAlias, Traps, Watch,
};

use super::printed;
use crate::hash::HashMap;
use crate::loader::module::{Mfa, function_at};
use crate::process::order::answer::Native;
use crate::process::order::explore::{each_resting, with_resting};
use crate::process::order::{NameIds, explore, replay};
use crate::process::registry::{Named, name_of};
use crate::process::{Process, init_pid};
use crate::scheduler::turns;
use crate::sys::chance::outside;
use crate::term::{Atom, Pid};
use crate::trace::record::id_of;

/// What the run was.
pub(super) fn of(end: End) -> Answer {
    if outside::has_programs() {
        explore::note_unexplored(PROGRAMS);
    }
    explore::note_timers_left();
    let (unfinished, mut refuse) = tell_rest();
    let place = |pid: &Pid| with_resting(*pid, place_of);
    let mut alive = explore::with_alive(|alive| alive.iter().copied().collect::<Vec<_>>());
    alive.sort_unstable_by_key(|pid| pid.0);
    let waiting = alive
        .iter()
        .filter_map(|pid| Some((word(*pid), place(pid)?)))
        .collect();
    let lacks_accesses = replay::lacks_accesses();
    let kept = explore::end();
    let watches = watches(&kept);
    let exit_calls = exit_calls(&kept);
    let astray = kept.astray.clone().or(unfinished);
    refuse.extend(kept.refuses.map(word));
    let end = how_it_ended(end, astray, lacks_accesses);
    let mut names = Names::default();
    let records = kept.told.iter().filter_map(|(pid, told)| {
        let (kind, words) = told.record(&mut names).to_words()?;
        Some((word(*pid), kind, words))
    });
    let records = records.collect();
    let known = all_known(&kept, &alive);
    Answer {
        records,
        accesses: accesses(&kept),
        names: names.all,
        processes: known
            .iter()
            .map(|pid| (word(*pid), known_as(*pid, &kept.born)))
            .collect(),
        main: kept.main.map_or(0, word),
        sent: pairs(&kept.sent),
        timed: kept
            .timed
            .iter()
            .map(|(pid, nth)| (word(*pid), *nth))
            .collect(),
        flushed: kept
            .flushed
            .iter()
            .map(|(pid, nth)| (word(*pid), *nth))
            .collect(),
        through_given_up: through_given_up(&kept),
        watches,
        exit_calls,
        timers: kept.timers.iter().map(|timer| word(timer.pid)).collect(),
        traps: traps(&kept),
        ended: ended(&kept),
        exits: kept
            .exits
            .into_iter()
            .map(|(pid, why)| (word(pid), why))
            .collect(),
        waiting,
        result: printed().or(kept.result),
        beyond: kept.beyond,
        drawn: turns::drawn(),
        compiled: kept.compiled.into_iter().map(named).collect(),
        refuse,
        end,
    }
}

/// The names of a function.
fn named((module, function, arity): (Atom, Atom, u8)) -> Function {
    Function {
        module: module.name().to_owned(),
        name: function.name().to_owned(),
        arity,
    }
}

/// The numbers of pairs of processes in an answer.
fn pairs(all: &[(Pid, Pid)]) -> Vec<(u64, u64)> {
    let all = all.iter();
    all.map(|(one, other)| (word(*one), word(*other))).collect()
}

/// How a run has ended that a process could not follow, or in which accesses wait for others.
fn how_it_ended(end: End, astray: Option<String>, lacks_accesses: bool) -> End {
    match (end, astray) {
        (End::Quiet | End::Halted(_), Some(line)) => End::Astray(line),
        (End::Quiet | End::Halted(_), None) if lacks_accesses => {
            End::Astray("processes wait with their accesses to what they share".to_owned())
        }
        (end, _) => end,
    }
}

/// Has all processes record what they have put off. Of those that have steps of the prefix left, the line of the one that says
/// most of what is wrong; and the processes that refuse their last receive.
fn tell_rest() -> (Option<String>, Vec<u64>) {
    let mut all = Vec::new();
    each_resting(|process| {
        process.record_untold();
        all.extend(process.unfinished().map(|it| (process.pid(), it)));
    });
    let refuse = all.iter().filter(|(_, waiting)| waiting.refuses);
    let refuse = refuse.map(|(pid, _)| word(*pid)).collect();
    let most = all
        .into_iter()
        .min_by_key(|(_, waiting)| !waiting.says_most);
    (most.map(|(_, waiting)| waiting.line), refuse)
}

/// The monitors and links of the run.
fn watches(kept: &explore::Kept) -> Vec<Watch<u64>> {
    let fails = |pid: Pid| kept.exits.iter().any(|(failed, _)| *failed == pid);
    let watch = |watch: &explore::Watch| Watch {
        by: word(watch.by),
        whom: word(watch.whom),
        until: watch.until,
        is_link: watch.is_link(),
        links: watch.links,
        unlinks: watch.unlinks,
        fails: fails(watch.whom),
        is_lost: watch.is_lost,
        finds_gone: watch.finds_gone,
    };
    kept.watches.iter().map(watch).collect()
}

/// Messages through aliases that were given up.
fn through_given_up(kept: &explore::Kept) -> Vec<ThroughAlias> {
    let sent = kept.through_given_up().map(|(sent, until)| ThroughAlias {
        from: word(sent.from),
        number: sent.number,
        to: word(sent.to),
        until,
    });
    sent.collect()
}

/// The calls of `exit/2` with other processes.
fn exit_calls(kept: &explore::Kept) -> Vec<ExitCall<u64>> {
    let calls = kept.exit_calls.iter();
    let call = |call: &explore::ExitCall| ExitCall {
        from: word(call.by),
        access: call.access,
        to: word(call.to),
        number: kept
            .exit_messages
            .get(&(call.by, call.access))
            .copied()
            .unwrap_or(0),
        ends: call.ends,
    };
    calls.map(call).collect()
}

/// Where processes began to trap exits, and ceased to.
fn traps(kept: &explore::Kept) -> Vec<Traps<u64>> {
    let traps = kept.traps.iter().map(|change| Traps {
        by: word(change.by),
        access: change.access,
        traps: change.traps,
    });
    traps.collect()
}

/// Whom exit signals of other processes have ended.
fn ended(kept: &explore::Kept) -> Vec<Ended> {
    let ended = kept.ended.iter().map(|killed| Ended {
        process: word(killed.process),
        by: word(killed.by),
        access: killed.access,
        at: killed.at,
    });
    ended.collect()
}

/// The accesses of a run, each with how many recorded steps come before it.
fn accesses(kept: &explore::Kept) -> Vec<SharedAccess> {
    let all = kept.accesses.iter();
    all.map(|access| SharedAccess {
        records: access.steps,
        process: word(access.by),
        how: access.how.word(),
        object: access.object,
        part: access.part,
    })
    .collect()
}

/// The processes of a run, each once.
fn all_known(kept: &explore::Kept, alive: &[Pid]) -> Vec<Pid> {
    let mut known: Vec<Pid> = kept.told.iter().map(|(pid, _)| *pid).collect();
    known.extend(alive);
    known.extend(kept.sent.iter().flat_map(|(from, to)| [*from, *to]));
    known.sort_unstable_by_key(|pid| pid.0);
    known.dedup();
    known
}

/// The number of a process in an answer.
fn word(pid: Pid) -> u64 {
    match id_of(pid) {
        beamline_formats::ring::Id::Process(word) => word,
        _ => 0,
    }
}

/// Where a process is.
fn place_of(p: &Process) -> String {
    let pc = p.pc.get();
    let at = (!pc.is_null()).then(|| function_at(pc)).flatten();
    match at {
        Some(mfa) => mfa.to_text(),
        None => first_call(p),
    }
}

fn first_call(p: &Process) -> String {
    let (module, function, arity) = p.initial_call.get();
    let mfa = Mfa {
        module,
        function,
        arity,
    };
    mfa.to_text()
}

/// What reports call a process.
fn known_as(pid: Pid, born: &HashMap<Pid, String>) -> String {
    if let Some(name) = name_of(Named::Process(pid)) {
        return name.name().to_owned();
    }
    if pid == init_pid() {
        return "init".to_owned();
    }
    born.get(&pid)
        .cloned()
        .or_else(|| with_resting(pid, first_call))
        .unwrap_or_default()
}

/// The atoms of an answer.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: HashMap<Atom, NameId>,
}

impl NameIds for Names {
    fn atom(&mut self, atom: Atom) -> NameId {
        let all = &mut self.all;
        *self.numbers.entry(atom).or_insert_with(|| {
            all.push(atom.name().to_owned());
            NameId(all.len() as u32)
        })
    }

    /// Answers are not told.
    fn function(&mut self, _: &'static Native) -> NameId {
        NameId::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_follow_its_prefix_is_astray_unless_it_ended_in_another_way() {
        let line = || Some("p0 waits".to_owned());
        for (end, astray, lacks, is_astray) in [
            (End::Quiet, None, false, false),
            (End::Quiet, line(), false, true),
            (End::Quiet, None, true, true),
            (End::Halted(0), line(), false, true),
            (End::Halted(0), None, true, true),
            (End::Livelock, line(), true, false),
        ] {
            let text = format!("{end:?} {astray:?} {lacks}");
            let ended = how_it_ended(end, astray, lacks);
            assert_eq!(matches!(ended, End::Astray(_)), is_astray, "{text}");
        }
    }

    #[test]
    fn what_a_process_waits_for_says_more_than_that_accesses_lack() {
        let line = "p0 waits".to_owned();
        let ended = how_it_ended(End::Quiet, Some(line.clone()), true);
        assert!(matches!(ended, End::Astray(told) if told == line));
    }

    #[test]
    fn each_process_is_known_once() {
        let mut kept = explore::Kept::default();
        kept.sent.extend([(Pid(3), Pid(1)), (Pid(1), Pid(3))]);
        assert_eq!(
            all_known(&kept, &[Pid(2), Pid(3)]),
            [Pid(1), Pid(2), Pid(3)]
        );
    }
}
