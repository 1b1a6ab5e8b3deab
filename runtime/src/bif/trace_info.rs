//! The BIFs behind `trace:info/3`, `erlang:trace_info/2` and `trace:session_info/1`. Source: `erl_bif_trace.c`, OTP 29.

use super::trace::{bad, session_of, weak};
use super::{BifResult, Control, Leave, badarg, bifs};
use crate::loader::module::{self, Mfa};
use crate::process::{self, Process};
use crate::sched::ptab;
use crate::sys::chance::ticks;
use crate::term::{Atom, Pid, Term, View, am};
use crate::trace::{self, At, Handle, Kinds, Spec, TracerId, flags};

bifs! {
    all unrecorded;
    bif erts_internal:"trace_info"/3 => trace_info_3;
    bif erlang:"trace_info"/2 => trace_info_2;
}

fn trace_info_2<'p>(p: &'p Process, [what, key]: [Term<'p>; 2]) -> BifResult<'p> {
    settled(p, &Handle::legacy(), what, key)?;
    info(p, &Handle::legacy(), what, key)
}

fn trace_info_3<'p>(p: &'p Process, [session, what, key]: [Term<'p>; 3]) -> BifResult<'p> {
    if session == am::any {
        return info_sessions(p, what, key);
    }
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    settled(p, &session, what, key)?;
    info(p, &session, what, key)
}

/// Where time or words are asked for, has the process wait until every scheduler has gone on: what others
/// did before they sent it a message is accounted for then, as in ERTS.
fn settled<'p>(
    p: &'p Process,
    session: &Handle,
    what: Term<'p>,
    key: Term<'p>,
) -> Result<(), Leave<'p>> {
    match trace::begun(p.pid()) {
        Some(trace::Progress::Done(_)) => return Ok(()),
        Some(_) => return Err(Control::Wait.into()),
        None => {}
    }
    let wanted = match key.as_atom() {
        Some(am::call_time) => Kinds::TIME,
        Some(am::call_memory) => Kinds::MEMORY,
        Some(am::all) => Kinds::TIME.and(Kinds::MEMORY),
        _ => return Ok(()),
    };
    if mfa_of(what).is_some_and(|mfa| session.kinds_at(mfa).meets(wanted)) {
        trace::settle(p.pid(), 0);
        return Err(Control::Wait.into());
    }
    Ok(())
}

fn info<'p>(p: &'p Process, session: &Handle, what: Term<'p>, key: Term<'p>) -> BifResult<'p> {
    // An error for what cannot be traced comes before one for what cannot be asked.
    let is_tracee = matches!(
        what.view(),
        View::Atom(_) | View::Pid(_) | View::Port(_) | View::External(_) | View::Tuple(_)
    );
    if !is_tracee {
        return Err(bad(am::badopt).into());
    }
    let key = key.as_atom().ok_or_else(badarg)?;
    let guard = ptab::pin();
    let value = match what.view() {
        View::Atom(am::on_load) => info_on_load(p, session, key)?,
        View::Atom(event @ (am::send | am::receive)) => {
            if key != am::match_spec {
                return Err(badarg().into());
            }
            let pattern = session.event(event == am::send);
            match pattern.spec {
                Some(spec) if pattern.on => p.copy_in(spec.source()),
                _ => Term::bool(pattern.on),
            }
        }
        View::Atom(am::system) if key == am::all => {
            let list = super::system_monitor::events(p, &session.monitor());
            return Ok(p.tuple(&[am::system.term(), list]));
        }
        View::Atom(am::new | am::new_processes) => {
            let new = session.new_processes();
            info_flags(p, key, new.flags, new.tracer)?
        }
        View::Atom(am::new_ports) => {
            let new = session.new_ports();
            info_flags(p, key, new.flags, new.tracer)?
        }
        View::Pid(pid) => match process::lookup(pid, &guard) {
            Some(shared) => {
                let (flags, tracer) = session.of(&shared.tracee, what);
                info_flags(p, key, flags, tracer)?
            }
            // A process is asked for what processes have.
            None if matches!(key, am::flags | am::tracer) => return Ok(am::undefined.term()),
            None => return Err(badarg().into()),
        },
        View::Port(port) => match crate::port::table().get(port.0, &guard) {
            Some(port) => {
                let (flags, tracer) = session.of(&port.tracee, what);
                info_flags(p, key, flags, tracer)?
            }
            None => return Ok(am::undefined.term()),
        },
        View::Tuple(_) => info_function(p, session, mfa_of(what).ok_or_else(badarg)?, key)?,
        _ => return Err(bad(am::badopt).into()),
    };
    Ok(p.tuple(&[key.term(), value]))
}

fn mfa_of(term: Term<'_>) -> Option<Mfa> {
    let [module, function, arity] = *term.as_tuple()?.elements() else {
        return None;
    };
    let arity = u8::try_from(arity.as_small()?).unwrap_or(u8::MAX);
    Some(Mfa {
        module: module.as_atom()?,
        function: function.as_atom()?,
        arity,
    })
}

fn info_flags<'p>(
    p: &'p Process,
    key: Atom,
    flags: u32,
    tracer: Option<TracerId>,
) -> BifResult<'p> {
    match key {
        am::flags => {
            let all = flags::NAMES.iter().rev();
            let set = all.filter(|(flag, _)| flags & flag != 0);
            Ok(p.list(&set.map(|(_, name)| name.term()).collect::<Vec<_>>()))
        }
        am::tracer => Ok(tracer.map_or(Term::NIL, |tracer| tracer.told(p))),
        _ => Err(badarg().into()),
    }
}

/// `traced`, `match_spec`, `meta` and `meta_match_spec` of breakpoints.
fn reported<'p>(p: &'p Process, at: &At) -> [Term<'p>; 4] {
    let (kinds, no) = (at.kinds(), am::false_.term());
    let source = |spec: &Option<std::sync::Arc<Spec>>| match spec {
        Some(spec) => p.copy_in(spec.source()),
        None => Term::NIL,
    };
    let traced = kinds.traced_at();
    let match_spec = if traced == am::false_ {
        no
    } else {
        source(&at.spec)
    };
    if !kinds.has(Kinds::META) {
        return [traced.term(), match_spec, no, no];
    }
    let meta = at.meta.map_or(Term::NIL, |tracer| tracer.told(p));
    [traced.term(), match_spec, meta, source(&at.meta_spec)]
}

fn info_on_load<'p>(p: &'p Process, session: &Handle, key: Atom) -> BifResult<'p> {
    let Some(at) = session.on_load() else {
        return Ok(am::false_.term());
    };
    let has = |kind| Term::bool(at.kinds().has(kind));
    let [traced, match_spec, meta, meta_match_spec] = reported(p, &at);
    Ok(match key {
        am::traced => traced,
        am::match_spec => match_spec,
        am::meta => meta,
        am::meta_match_spec => meta_match_spec,
        am::call_count => has(Kinds::COUNT),
        am::call_time => has(Kinds::TIME),
        am::call_memory => has(Kinds::MEMORY),
        am::all => pairs(
            p,
            &[
                (am::traced, traced),
                (am::match_spec, match_spec),
                (am::meta, meta),
                (am::meta_match_spec, meta_match_spec),
                (am::call_count, has(Kinds::COUNT)),
            ],
        ),
        _ => return Err(badarg().into()),
    })
}

fn pairs<'p>(p: &'p Process, rows: &[(Atom, Term<'p>)]) -> Term<'p> {
    let pairs: Vec<Term<'p>> = rows
        .iter()
        .map(|(key, value)| p.tuple(&[key.term(), *value]))
        .collect();
    p.list(&pairs)
}

fn info_function<'p>(p: &'p Process, session: &Handle, mfa: Mfa, key: Atom) -> BifResult<'p> {
    let wanted = match key {
        am::traced | am::match_spec => Kinds::LOCAL.and(Kinds::GLOBAL),
        am::meta | am::meta_match_spec => Kinds::META,
        am::call_count => Kinds::COUNT,
        am::call_time => Kinds::TIME,
        am::call_memory => Kinds::MEMORY,
        am::all => Kinds::ALL,
        _ => return Err(badarg().into()),
    };
    let code = module::versions(mfa.module).current;
    if code.is_none_or(|code| trace::find_entry(&code, mfa).is_none()) {
        return Ok(am::undefined.term());
    }
    let at = session.at(mfa);
    if !at.kinds().meets(wanted) {
        return Ok(am::false_.term());
    }
    let [traced, match_spec, meta, meta_match_spec] = reported(p, &at);
    let or_false = |value: Option<Term<'p>>| value.unwrap_or(am::false_.term());
    let count = || or_false(session.count_at(mfa).map(|count| p.unsigned(count)));
    let time = || or_false(session.time_at(mfa).map(|rows| times(p, &rows)));
    let memory = || or_false(session.memory_at(mfa).map(|rows| words(p, &rows)));
    Ok(match key {
        am::traced => traced,
        am::match_spec => match_spec,
        am::meta => meta,
        am::meta_match_spec => meta_match_spec,
        am::call_count => count(),
        am::call_time => time(),
        am::call_memory => memory(),
        am::all => {
            let [time, memory] = session.time_and_memory_at(mfa);
            pairs(
                p,
                &[
                    (am::traced, traced),
                    (am::match_spec, match_spec),
                    (am::meta, meta),
                    (am::meta_match_spec, meta_match_spec),
                    (
                        am::call_memory,
                        or_false(memory.map(|rows| words(p, &rows))),
                    ),
                    (am::call_time, or_false(time.map(|rows| times(p, &rows)))),
                    (am::call_count, count()),
                ],
            )
        }
        _ => am::false_.term(),
    })
}

/// `[{Pid, Calls, Seconds, Microseconds}]`.
fn times<'p>(p: &'p Process, rows: &[(Pid, trace::Counted)]) -> Term<'p> {
    let row = |(pid, counted): &(Pid, trace::Counted)| {
        let us = ticks::to_ns(counted.ticks) / 1000;
        let parts = [
            p.unsigned(counted.calls),
            p.unsigned(us / 1_000_000),
            p.unsigned(us % 1_000_000),
        ];
        p.tuple(&[pid.term(), parts[0], parts[1], parts[2]])
    };
    p.list(&rows.iter().map(row).collect::<Vec<_>>())
}

/// `[{Pid, Calls, Words}]`.
fn words<'p>(p: &'p Process, rows: &[(Pid, trace::Counted)]) -> Term<'p> {
    let row = |(pid, counted): &(Pid, trace::Counted)| {
        p.tuple(&[
            pid.term(),
            p.unsigned(counted.calls),
            p.integer(counted.words),
        ])
    };
    p.list(&rows.iter().map(row).collect::<Vec<_>>())
}

/// `trace:session_info/1`: the sessions that affect something.
fn info_sessions<'p>(p: &'p Process, what: Term<'p>, key: Term<'p>) -> BifResult<'p> {
    if key != am::session {
        return Err(badarg().into());
    }
    let sessions = match what.view() {
        View::Atom(name) => {
            let affects: fn(&Handle) -> bool = match name {
                am::any => |_| true,
                am::on_load => |s| s.on_load().is_some(),
                am::send => |s| s.event(true).on,
                am::receive => |s| s.event(false).on,
                am::new | am::new_processes => |s| s.new_processes().flags != 0,
                am::new_ports => |s| s.new_ports().flags != 0,
                _ => return Err(bad(am::badopt).into()),
            };
            Handle::all().into_iter().filter(affects).collect()
        }
        View::Pid(pid) => {
            let guard = ptab::pin();
            let Some(tracee) = process::lookup(pid, &guard) else {
                return Ok(am::undefined.term());
            };
            Handle::all_of(&tracee.tracee)
        }
        View::Port(port) => {
            let guard = ptab::pin();
            let Some(port) = crate::port::table().get(port.0, &guard) else {
                return Ok(am::undefined.term());
            };
            Handle::all_of(&port.tracee)
        }
        View::Tuple(_) => {
            let mfa = mfa_of(what).ok_or_else(badarg)?;
            let code = module::versions(mfa.module).current;
            if code.is_none_or(|code| trace::find_entry(&code, mfa).is_none()) {
                return Ok(p.tuple(&[am::session.term(), am::undefined.term()]));
            }
            Handle::at_function(mfa)
        }
        _ => return Err(bad(am::badopt).into()),
    };
    // As ERTS builds it: the newest first.
    let list: Vec<Term<'p>> = sessions
        .iter()
        .rev()
        .map(|session| weak(p, session))
        .collect();
    Ok(p.tuple(&[am::session.term(), p.list(&list)]))
}
