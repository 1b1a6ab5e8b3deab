//! The BIFs behind OTP's modules `trace`, `tprof`, `cprof` and `erlang:trace*`.
//!
//! Built are breakpoints that count (`call_count`, `call_time`, `call_memory`), with sessions, flags and
//! inheritance. What would have to report to a tracer raises `notsup`; it is accepted where nothing is to
//! be reported. Source: `erl_bif_trace.c`, OTP 29.

use super::{BifResult, Raise, badarg, bifs, notsup};
use crate::code::module::{self, Mfa};
use crate::heap::MagicBinary;
use crate::process::{self, Process, refs};
use crate::sched::ptab;
use crate::sys::ticks;
use crate::term::{Atom, Pid, Term, View, am};
use crate::trace::{self, Handle, Kinds, OnLoadChange, Pattern, Switch, flags};

bifs! {
    bif erts_internal:"trace_session_create"/3 => trace_session_create_3;
    bif erts_internal:"trace_session_destroy"/1 => trace_session_destroy_1;
    bif erts_internal:"trace"/3 => trace_3;
    bif erts_internal:"trace"/4 => trace_4;
    bif erts_internal:"trace_pattern"/3 => trace_pattern_3;
    bif erts_internal:"trace_pattern"/4 => trace_pattern_4;
    bif erts_internal:"trace_info"/3 => trace_info_3;
    bif erlang:"trace_info"/2 => trace_info_2;
    bif erts_trace_cleaner:"check"/0 => check_0;
    bif erts_trace_cleaner:"send_trace_clean_signal"/1 => send_trace_clean_signal_1;
}

fn bad(cause: Atom) -> Raise<'static> {
    Raise::ErrorCause(am::badarg.term(), cause.term())
}

/// The session that a strong or weak handle names.
fn session_of(term: Term<'_>, dead_too: bool) -> Option<Handle> {
    let [first, second] = *term.as_tuple()?.elements() else {
        return None;
    };
    let handle = match first.view() {
        View::Atom(name) => Handle::find(name, u64::try_from(second.as_small()?).ok()?)?,
        View::Ref(reference) => {
            let handle = reference.magic()?.get::<trace::Strong>()?.handle();
            let weak = second.as_tuple().filter(|weak| weak.arity() == 2)?;
            let is_it =
                weak.get(0) == handle.name() && weak.get(1).as_small() == Some(handle.id() as i64);
            is_it.then_some(handle)?
        }
        _ => return None,
    };
    (dead_too || handle.is_alive()).then_some(handle)
}

fn weak<'p>(p: &'p Process, session: &Handle) -> Term<'p> {
    p.tuple(&[session.name().term(), p.unsigned(session.id())])
}

fn trace_session_create_3<'p>(
    p: &'p Process,
    [name, tracer, options]: [Term<'p>; 3],
) -> BifResult<'p> {
    let name = name
        .as_atom()
        .filter(|_| options.is_nil())
        .ok_or_else(badarg)?;
    let tracer = match tracer.view() {
        View::Atom(am::undefined) => None,
        View::Pid(pid) => Some(pid),
        View::Port(_) | View::Tuple(_) => return Err(notsup()),
        _ => return Err(badarg()),
    };
    let session = Handle::create(name, tracer).ok_or_else(super::system_limit)?;
    let weak = weak(p, &session);
    let strong = trace::Strong::new(session);
    let reference = p.magic_reference(MagicBinary::new(refs::make_ref(), Box::new(strong)));
    Ok(p.tuple(&[reference, weak]))
}

fn trace_session_destroy_1<'p>(p: &'p Process, [session]: [Term<'p>; 1]) -> BifResult<'p> {
    let pid = p.pid();
    if let Some(turn) = trace::begun(pid) {
        return match turn {
            trace::Turn::Done(_) => Ok(am::true_.term()),
            _ => Err(Raise::Wait),
        };
    }
    let session = session_of(session, true).ok_or_else(|| bad(am::badopt))?;
    match trace::seize(pid) {
        trace::Turn::Go if session.destroy(pid) => Err(Raise::Wait),
        trace::Turn::Go => {
            trace::release();
            Ok(am::false_.term())
        }
        _ => Err(Raise::Wait),
    }
}

fn trace_3<'p>(p: &'p Process, [what, how, list]: [Term<'p>; 3]) -> BifResult<'p> {
    trace(p, &Handle::legacy(), what, how, list)
}

fn trace_4<'p>(p: &'p Process, [session, what, how, list]: [Term<'p>; 4]) -> BifResult<'p> {
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    trace(p, &session, what, how, list)
}

/// A list of flags: their bits and the tracer it names.
fn flags_of(session: &Handle, list: Term<'_>) -> Result<(u32, Option<Pid>), Raise<'static>> {
    let (mut mask, mut tracer) = (0, None);
    for item in list.list_iter() {
        let item = item.map_err(|_| bad(am::badopt))?;
        match item.view() {
            View::Atom(am::cpu_timestamp) => return Err(badarg()),
            View::Atom(name) => mask |= flags::named(name).ok_or_else(|| bad(am::badopt))?,
            View::Tuple(t) if session.tracer().is_none() && t.get(0) == am::tracer => {
                match t.elements() {
                    [_, to] => match to.view() {
                        View::Pid(pid) => tracer = Some(pid),
                        View::Port(_) => return Err(notsup()),
                        _ => return Err(bad(am::badopt)),
                    },
                    [_, module, _] if module.as_atom().is_some() => return Err(notsup()),
                    _ => return Err(bad(am::badopt)),
                }
            }
            _ => return Err(bad(am::badopt)),
        }
    }
    Ok((mask, tracer))
}

/// Which processes or ports a specification names. Ports there are have nothing that is reported yet.
struct Chosen {
    existing_processes: bool,
    new_processes: bool,
    new_ports: bool,
}

impl Chosen {
    fn of(name: Atom, mask: u32) -> Option<Chosen> {
        let (processes, ports, existing, new) = match name {
            am::all => (true, true, true, true),
            am::existing => (true, true, true, false),
            am::new => (true, true, false, true),
            am::processes => (true, false, true, true),
            am::existing_processes => (true, false, true, false),
            am::new_processes => (true, false, false, true),
            am::ports => (false, true, true, true),
            am::existing_ports => (false, true, true, false),
            am::new_ports => (false, true, false, true),
            _ => return None,
        };
        Some(Chosen {
            existing_processes: existing && processes && mask & flags::OF_PROCESSES != 0,
            new_processes: new && processes && mask & flags::OF_PROCESSES != 0,
            new_ports: new && ports && mask & flags::OF_PORTS != 0,
        })
    }
}

fn trace<'p>(
    p: &'p Process,
    session: &Handle,
    what: Term<'p>,
    how: Term<'p>,
    list: Term<'p>,
) -> BifResult<'p> {
    let (mask, tracer) = flags_of(session, list)?;
    let on = how.as_bool().ok_or_else(badarg)?;
    if on && !session.is_silent(mask) {
        return Err(notsup());
    }
    let tracer = tracer.or(session.tracer()).unwrap_or(p.pid());
    let guard = ptab::pin();
    let matched = match what.view() {
        View::Pid(pid) => {
            let tracee = process::lookup(pid, &guard).ok_or_else(badarg)?;
            if !session.trace_process(tracee, on, mask, tracer) {
                return Err(badarg());
            }
            1
        }
        View::Port(_) => return Err(notsup()),
        View::Atom(name) => {
            let chosen = Chosen::of(name, mask).ok_or_else(badarg)?;
            let mut matched = 0;
            if chosen.existing_processes {
                for tracee in process::table().iter(&guard) {
                    matched += i64::from(session.trace_process(tracee, on, mask, tracer));
                }
            }
            if chosen.new_processes {
                session.trace_new_processes(on, mask & flags::OF_PROCESSES);
            }
            if chosen.new_ports {
                session.trace_new_ports(on, mask & flags::OF_PORTS);
            }
            matched
        }
        _ => return Err(badarg()),
    };
    Ok(Term::small(matched))
}

fn trace_pattern_3<'p>(p: &'p Process, [what, spec, list]: [Term<'p>; 3]) -> BifResult<'p> {
    match trace::begun(p.pid()) {
        Some(turn) => matched(&turn),
        None => trace_pattern(p, &Handle::legacy(), what, spec, list),
    }
}

fn trace_pattern_4<'p>(
    p: &'p Process,
    [session, what, spec, list]: [Term<'p>; 4],
) -> BifResult<'p> {
    if let Some(turn) = trace::begun(p.pid()) {
        return matched(&turn);
    }
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    trace_pattern(p, &session, what, spec, list)
}

/// The result of a change that was begun.
fn matched<'p>(turn: &trace::Turn) -> BifResult<'p> {
    match turn {
        trace::Turn::Done(matched) => Ok(Term::small(*matched as i64)),
        _ => Err(Raise::Wait),
    }
}

/// What a list of pattern flags asks for; no breakpoint at all means calls from other modules (`global`).
fn kinds_of(list: Term<'_>) -> Result<Kinds, Raise<'static>> {
    let (mut kinds, mut global) = (Kinds::NONE, false);
    for item in list.list_iter() {
        let kind = match item.map_err(|_| bad(am::badopt))?.view() {
            View::Atom(am::local) => Kinds::LOCAL,
            View::Atom(am::meta) => Kinds::META,
            View::Atom(am::call_count) => Kinds::COUNT,
            View::Atom(am::call_time) => Kinds::TIME,
            View::Atom(am::call_memory) => Kinds::MEMORY,
            View::Atom(am::global) if kinds.is_none() => {
                global = true;
                continue;
            }
            View::Tuple(t) if t.get(0) == am::meta && t.arity() == 2 => Kinds::META,
            _ => return Err(bad(am::badopt)),
        };
        if global {
            return Err(bad(am::badopt));
        }
        kinds = kinds.and(kind);
    }
    Ok(kinds)
}

fn trace_pattern<'p>(
    p: &'p Process,
    session: &Handle,
    what: Term<'p>,
    spec: Term<'p>,
    list: Term<'p>,
) -> BifResult<'p> {
    let kinds = kinds_of(list)?;
    let switch = match spec.view() {
        View::Atom(am::false_) => Switch::Off,
        View::Atom(am::true_) | View::Nil => Switch::On,
        View::Atom(am::restart) => Switch::Restart,
        View::Atom(am::pause) => Switch::Pause,
        View::Cons(_) if kinds.only_counts() => return Err(bad(am::call_count)),
        View::Cons(_) => return Err(notsup()),
        _ => return Err(bad(am::match_spec)),
    };
    match what.view() {
        View::Atom(am::on_load) => {
            session
                .change_on_load(OnLoadChange { kinds, switch })
                .map_err(|()| notsup())?;
            Ok(Term::small(0))
        }
        View::Atom(event @ (am::send | am::receive)) => {
            if !kinds.is_none() || matches!(switch, Switch::Restart | Switch::Pause) {
                return Err(bad(am::none));
            }
            session
                .set_event(event == am::send, switch == Switch::On)
                .map_err(|()| notsup())?;
            Ok(Term::small(1))
        }
        View::Tuple(_) => {
            let pattern = pattern_of(what).ok_or_else(|| bad(am::none))?;
            functions(p, session, pattern, switch, kinds)
        }
        _ => Err(bad(am::none)),
    }
}

fn functions<'p>(
    p: &'p Process,
    session: &Handle,
    pattern: Pattern,
    switch: Switch,
    kinds: Kinds,
) -> BifResult<'p> {
    let pid = p.pid();
    match trace::seize(pid) {
        trace::Turn::Go => match session.set_pattern(pid, pattern, switch, kinds) {
            Ok(()) => Err(Raise::Wait),
            Err(()) => {
                trace::release();
                Err(notsup())
            }
        },
        _ => Err(Raise::Wait),
    }
}

/// `{M, F, A}`, with `'_'` for any from some place to the end.
fn pattern_of(term: Term<'_>) -> Option<Pattern> {
    let [module, function, arity] = *term.as_tuple()?.elements() else {
        return None;
    };
    let any = |term: Term<'_>| term == am::underscore;
    let wild = [any(module), any(function), any(arity)];
    let ordered = wild.windows(2).all(|pair| !pair[0] || pair[1]);
    let (module, function) = (module.as_atom()?, function.as_atom()?);
    if !ordered || !(wild[2] || arity.as_small().is_some()) {
        return None;
    }
    // A function has at most 255 arguments: another number matches none.
    let arity = arity
        .as_small()
        .map(|arity| u16::try_from(arity).unwrap_or(u16::MAX));
    Some(Pattern {
        module: (!wild[0]).then_some(module),
        function: (!wild[1]).then_some(function),
        arity,
    })
}

fn trace_info_2<'p>(p: &'p Process, [what, key]: [Term<'p>; 2]) -> BifResult<'p> {
    info(p, &Handle::legacy(), what, key)
}

fn trace_info_3<'p>(p: &'p Process, [session, what, key]: [Term<'p>; 3]) -> BifResult<'p> {
    if session == am::any {
        return info_sessions(p, what, key);
    }
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    info(p, &session, what, key)
}

fn info<'p>(p: &'p Process, session: &Handle, what: Term<'p>, key: Term<'p>) -> BifResult<'p> {
    let key = key.as_atom().ok_or_else(badarg)?;
    let value = match what.view() {
        View::Atom(am::on_load) => info_on_load(p, session, key)?,
        View::Atom(event @ (am::send | am::receive)) => {
            if key != am::match_spec {
                return Err(badarg());
            }
            Term::bool(session.event(event == am::send))
        }
        View::Atom(am::new | am::new_processes) => {
            info_flags(p, key, session.new_process_flags(), session.tracer())?
        }
        View::Atom(am::new_ports) => {
            info_flags(p, key, session.new_port_flags(), session.tracer())?
        }
        View::Pid(pid) => {
            let guard = ptab::pin();
            let Some(tracee) = process::lookup(pid, &guard) else {
                return Ok(am::undefined.term());
            };
            let (flags, tracer) = session.of_process(tracee);
            info_flags(p, key, flags, tracer)?
        }
        View::Port(_) => info_flags(p, key, 0, None)?,
        View::Tuple(_) => info_function(p, session, mfa_of(what).ok_or_else(badarg)?, key)?,
        _ => return Err(bad(am::badopt)),
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

fn info_flags<'p>(p: &'p Process, key: Atom, flags: u32, tracer: Option<Pid>) -> BifResult<'p> {
    match key {
        am::flags => {
            let set = flags::NAMES
                .iter()
                .rev()
                .filter(|(flag, _)| flags & flag != 0);
            Ok(p.list(&set.map(|(_, name)| name.term()).collect::<Vec<_>>()))
        }
        am::tracer => Ok(tracer.filter(|_| flags != 0).map_or(Term::NIL, Pid::term)),
        _ => Err(badarg()),
    }
}

fn info_on_load<'p>(p: &'p Process, session: &Handle, key: Atom) -> BifResult<'p> {
    let Some(kinds) = session.on_load_kinds() else {
        return Ok(am::false_.term());
    };
    let has = |kind| Term::bool(kinds.has(kind));
    let traced = kinds.traced();
    let match_spec = if traced == am::false_ {
        am::false_.term()
    } else {
        Term::NIL
    };
    Ok(match key {
        am::traced => traced.term(),
        am::match_spec => match_spec,
        am::meta | am::meta_match_spec => am::false_.term(),
        am::call_count => has(Kinds::COUNT),
        am::call_time => has(Kinds::TIME),
        am::call_memory => has(Kinds::MEMORY),
        am::all => pairs(
            p,
            &[
                (am::traced, traced.term()),
                (am::match_spec, match_spec),
                (am::meta, am::false_.term()),
                (am::meta_match_spec, am::false_.term()),
                (am::call_count, has(Kinds::COUNT)),
            ],
        ),
        _ => return Err(badarg()),
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
        _ => return Err(badarg()),
    };
    let code = module::versions(mfa.module).current;
    if code.is_none_or(|code| trace::find_entry(&code, mfa).is_none()) {
        return Ok(am::undefined.term());
    }
    let kinds = session.kinds_at(mfa);
    if !kinds.meets(wanted) {
        return Ok(am::false_.term());
    }
    let traced = kinds.traced_at();
    let match_spec = if traced == am::false_ {
        am::false_.term()
    } else {
        Term::NIL
    };
    let or_false = |value: Option<Term<'p>>| value.unwrap_or(am::false_.term());
    let count = || or_false(session.count_at(mfa).map(|count| p.unsigned(count)));
    let time = || or_false(session.time_at(mfa).map(|rows| times(p, &rows)));
    let memory = || or_false(session.memory_at(mfa).map(|rows| words(p, &rows)));
    Ok(match key {
        am::traced => traced.term(),
        am::match_spec => match_spec,
        am::call_count => count(),
        am::call_time => time(),
        am::call_memory => memory(),
        am::all => pairs(
            p,
            &[
                (am::traced, traced.term()),
                (am::match_spec, match_spec),
                (am::meta, am::false_.term()),
                (am::meta_match_spec, am::false_.term()),
                (am::call_memory, memory()),
                (am::call_time, time()),
                (am::call_count, count()),
            ],
        ),
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
        return Err(badarg());
    }
    let sessions = match what.view() {
        View::Atom(name) => {
            let affects: fn(&Handle) -> bool = match name {
                am::any => |_| true,
                am::on_load => |s| s.on_load_kinds().is_some(),
                am::send => |s| s.has_event(true),
                am::receive => |s| s.has_event(false),
                am::new | am::new_processes => |s| s.new_process_flags() != 0,
                am::new_ports => |s| s.new_port_flags() != 0,
                _ => return Err(bad(am::badopt)),
            };
            Handle::all().into_iter().filter(affects).collect()
        }
        View::Pid(pid) => {
            let guard = ptab::pin();
            let Some(tracee) = process::lookup(pid, &guard) else {
                return Ok(am::undefined.term());
            };
            Handle::of_process_all(tracee)
        }
        View::Port(_) => Vec::new(),
        View::Tuple(_) => {
            let mfa = mfa_of(what).ok_or_else(badarg)?;
            let code = module::versions(mfa.module).current;
            if code.is_none_or(|code| trace::find_entry(&code, mfa).is_none()) {
                return Ok(p.tuple(&[am::session.term(), am::undefined.term()]));
            }
            Handle::at_function(mfa)
        }
        _ => return Err(bad(am::badopt)),
    };
    // As ERTS builds it: the newest first.
    let list: Vec<Term<'p>> = sessions
        .iter()
        .rev()
        .map(|session| weak(p, session))
        .collect();
    Ok(p.tuple(&[am::session.term(), p.list(&list)]))
}

/// Sessions are cleaned up by the schedulers themselves: the cleaner process has nothing to do.
fn check_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(am::false_.term())
}

fn send_trace_clean_signal_1<'p>(_: &'p Process, [_to]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(notsup())
}
