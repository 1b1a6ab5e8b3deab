//! The BIFs behind OTP's modules `trace`, `tprof`, `cprof` and `erlang:trace*` that set and clear tracing. Source:
//! `erl_bif_trace.c`, OTP 29.

use super::{BifResult, Control, Leave, Raise, badarg, bifs, notsup};
use crate::heap::MagicBinary;
use crate::matchspec::Dialect;
use crate::process::{self, Process, Signal, refs};
use crate::sched::ptab;
use crate::term::{Atom, Term, View, am};
use crate::trace::{
    self, BadSpec, EventPattern, Handle, Kinds, NoSlot, Pattern, Setting, Spec, Switch, TracerId,
    flags,
};

bifs! {
    all unrecorded;
    bif erts_internal:"trace_session_create"/3 => trace_session_create_3;
    bif erts_internal:"trace_session_destroy"/1 => trace_session_destroy_1;
    bif erts_internal:"trace"/3 => trace_3;
    bif erts_internal:"trace"/4 => trace_4;
    bif erts_internal:"trace_pattern"/3 => trace_pattern_3;
    bif erts_internal:"trace_pattern"/4 => trace_pattern_4;
    bif erlang:"trace_delivered"/1 => trace_delivered_1;
    bif erts_trace_cleaner:"check"/0 => check_0;
    bif erts_trace_cleaner:"send_trace_clean_signal"/1 => send_trace_clean_signal_1;
}

pub(super) fn bad(cause: Atom) -> Raise<'static> {
    Raise::ErrorCause(am::badarg.term(), cause.term())
}

/// The session that a strong or weak handle names.
pub(super) fn session_of(term: Term<'_>, dead_too: bool) -> Option<Handle> {
    let [first, second] = *term.as_tuple()?.elements() else {
        return None;
    };
    let handle = match first.view() {
        View::Atom(name) => Handle::find(name, u64::try_from(second.as_small()?).ok()? + 1)?,
        View::Ref(reference) => {
            let handle = reference.magic()?.get::<trace::StrongRef>()?.handle();
            let weak = second.as_tuple().filter(|weak| weak.arity() == 2)?;
            let is_it = weak.get(0) == handle.name() && weak.get(1).same(shown_id(&handle));
            is_it.then_some(handle)?
        }
        _ => return None,
    };
    (dead_too || handle.is_alive()).then_some(handle)
}

/// A session's number as it is shown: that of the first one made is 0.
fn shown_id(session: &Handle) -> Term<'static> {
    match session.id().checked_sub(1) {
        Some(id) => Term::small(id as i64),
        None => am::default.term(),
    }
}

pub(super) fn weak<'p>(p: &'p Process, session: &Handle) -> Term<'p> {
    p.tuple(&[session.name().term(), shown_id(session)])
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
        _ => Some(TracerId::of(tracer).ok_or_else(badarg)?),
    };
    let session = Handle::create(name, tracer, p.pid()).map_err(|no_slot| match no_slot {
        NoSlot::Limit => super::system_limit().into(),
        NoSlot::Clearing => Leave::from(Control::Wait),
    })?;
    let weak = weak(p, &session);
    let strong = trace::StrongRef::new(session);
    let reference = p.magic_reference(MagicBinary::new(refs::make_ref(), Box::new(strong)));
    Ok(p.tuple(&[reference, weak]))
}

fn trace_session_destroy_1<'p>(p: &'p Process, [session]: [Term<'p>; 1]) -> BifResult<'p> {
    let pid = p.pid();
    if let Some(progress) = trace::begun(pid) {
        return match progress {
            trace::Progress::Done(_) => Ok(am::true_.term()),
            _ => Err(Control::Wait.into()),
        };
    }
    let session = session_of(session, true).ok_or_else(|| bad(am::badopt))?;
    match trace::seize(pid) {
        trace::Progress::Go if session.destroy(pid) => Err(Control::Wait.into()),
        trace::Progress::Go => {
            trace::release();
            Ok(am::false_.term())
        }
        _ => Err(Control::Wait.into()),
    }
}

fn trace_3<'p>(p: &'p Process, [what, how, list]: [Term<'p>; 3]) -> BifResult<'p> {
    match trace::begun(p.pid()) {
        Some(progress) => matched(&progress),
        None => trace(p, &Handle::legacy(), what, how, list),
    }
}

fn trace_4<'p>(p: &'p Process, [session, what, how, list]: [Term<'p>; 4]) -> BifResult<'p> {
    if let Some(progress) = trace::begun(p.pid()) {
        return matched(&progress);
    }
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    trace(p, &session, what, how, list)
}

/// The flags and options of a list.
#[derive(Default)]
struct Flags {
    mask: u32,
    tracer: Option<TracerId>,
    cpu_timestamp: bool,
}

fn flags_of(session: &Handle, list: Term<'_>) -> Result<Flags, Raise<'static>> {
    let mut flags = Flags::default();
    for item in list.list_iter() {
        let item = item.map_err(|_| bad(am::badopt))?;
        match item.view() {
            View::Atom(am::cpu_timestamp) => flags.cpu_timestamp = true,
            View::Atom(name) => flags.mask |= flags::named(name).ok_or_else(|| bad(am::badopt))?,
            View::Tuple(_) if session.tracer().is_none() => {
                let tracer = TracerId::of_option(am::tracer, item);
                flags.tracer = Some(tracer.ok_or_else(|| bad(am::badopt))?);
            }
            _ => return Err(bad(am::badopt)),
        }
    }
    Ok(flags)
}

/// Which processes and ports an atom names.
struct Chosen {
    existing_processes: bool,
    existing_ports: bool,
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
            existing_ports: existing && ports && mask & flags::OF_PORTS != 0,
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
    let asked = flags_of(session, list)?;
    let on = how.as_bool().ok_or_else(badarg)?;
    let own = TracerId::Process(p.pid());
    let tracer = on.then(|| asked.tracer.or(session.tracer()).unwrap_or(own));
    let tracer = tracer.or(asked.tracer);
    let guard = ptab::pin();
    // What is turned off is so for those that run meanwhile, too, when this returns.
    let mut settles = !on;
    let matched = match what.view() {
        View::Pid(_) | View::Port(_) if asked.cpu_timestamp => return Err(badarg().into()),
        View::Pid(pid) => {
            let shared = process::lookup(pid, &guard).ok_or_else(badarg)?;
            let done = session.trace(&shared.tracee, what, on, asked.mask, tracer);
            settles &= pid != p.pid() && shared.runs_unawares();
            one(p, done)?
        }
        View::Port(port) => {
            let port = crate::port::table()
                .get(port.0, &guard)
                .ok_or_else(badarg)?;
            one(p, session.trace(&port.tracee, what, on, asked.mask, tracer))?
        }
        View::Atom(name) => {
            if asked.cpu_timestamp {
                if name != am::all {
                    return Err(badarg().into());
                }
                trace::set_cpu_timestamp(on);
            }
            let chosen = Chosen::of(name, asked.mask).ok_or_else(badarg)?;
            many(session, &chosen, on, asked.mask, tracer)
        }
        _ => return Err(badarg().into()),
    };
    if settles {
        trace::settle(p.pid(), matched as usize);
        return Err(Control::Wait.into());
    }
    Ok(Term::small(matched))
}

/// One process or port is matched, unless another tracer has it.
fn one(p: &Process, done: bool) -> Result<i64, Raise<'static>> {
    if done {
        return Ok(1);
    }
    let text = "** can only have one tracer per process\n";
    process::logger::log_error(p, text, Term::NIL);
    Err(badarg())
}

fn many(session: &Handle, chosen: &Chosen, on: bool, mask: u32, tracer: Option<TracerId>) -> i64 {
    let guard = ptab::pin();
    let mut matched = 0;
    if chosen.existing_processes {
        for shared in process::table().iter(&guard) {
            let id = shared.pid().term();
            matched += i64::from(session.trace(&shared.tracee, id, on, mask, tracer));
        }
    }
    if chosen.existing_ports {
        for port in crate::port::table().iter(&guard) {
            matched += i64::from(session.trace(&port.tracee, port.term(), on, mask, tracer));
        }
    }
    if chosen.new_processes {
        session.trace_new_processes(on, mask & flags::OF_PROCESSES, tracer);
    }
    if chosen.new_ports {
        session.trace_new_ports(on, mask & flags::OF_PORTS, tracer);
    }
    matched
}

/// Messages to tracers are sent at once: when every scheduler has gone on, they have all been delivered.
fn trace_delivered_1<'p>(p: &'p Process, [target]: [Term<'p>; 1]) -> BifResult<'p> {
    let target = match target.view() {
        View::Pid(_) => crate::heap::Message::copy_of(target),
        View::Atom(am::all) => crate::heap::Message::copy_of(target),
        _ => return Err(badarg().into()),
    };
    let (asker, numbers) = (p.pid(), refs::make_ref());
    crate::sched::thread_progress().later(move || {
        let heap = crate::heap::Heap::detached();
        let reference = heap.reference(numbers);
        let parts = [am::trace_delivered.term(), target.term(), reference];
        let message = crate::heap::Message::of_tuple(&parts);
        let from = process::SYSTEM;
        // Gone: then nobody waits for it.
        let _ = process::send(asker, Signal::own(message, from));
    });
    Ok(p.reference(numbers))
}

fn trace_pattern_3<'p>(p: &'p Process, [what, spec, list]: [Term<'p>; 3]) -> BifResult<'p> {
    match trace::begun(p.pid()) {
        Some(progress) => matched(&progress),
        None => trace_pattern(p, &Handle::legacy(), what, spec, list),
    }
}

fn trace_pattern_4<'p>(
    p: &'p Process,
    [session, what, spec, list]: [Term<'p>; 4],
) -> BifResult<'p> {
    if let Some(progress) = trace::begun(p.pid()) {
        return matched(&progress);
    }
    let session = session_of(session, false).ok_or_else(|| bad(am::session))?;
    trace_pattern(p, &session, what, spec, list)
}

/// The result of a change that was begun.
fn matched<'p>(progress: &trace::Progress) -> BifResult<'p> {
    match progress {
        trace::Progress::Done(matched) => Ok(Term::small(*matched as i64)),
        _ => Err(Control::Wait.into()),
    }
}

/// What a list of pattern flags asks for: kinds of breakpoint, whether it says `global` (which no kind at all
/// means too), and whom `meta` reports to.
fn kinds_of(
    p: &Process,
    session: &Handle,
    list: Term<'_>,
) -> Result<(Kinds, bool, Option<TracerId>), Raise<'static>> {
    let badopt = || bad(am::badopt);
    let (mut kinds, mut global, mut meta) = (Kinds::NONE, false, None);
    for item in list.list_iter() {
        let item = item.map_err(|_| badopt())?;
        let kind = match item.view() {
            View::Atom(am::local) => Kinds::LOCAL,
            View::Atom(am::meta) => {
                let own = TracerId::Process(p.pid());
                meta = meta.or(session.tracer()).or(Some(own));
                Kinds::META
            }
            View::Atom(am::call_count) => Kinds::COUNT,
            View::Atom(am::call_time) => Kinds::TIME,
            View::Atom(am::call_memory) => Kinds::MEMORY,
            View::Atom(am::global) if kinds.is_none() => {
                global = true;
                continue;
            }
            View::Tuple(_) if session.tracer().is_none() => {
                meta = Some(TracerId::of_option(am::meta, item).ok_or_else(badopt)?);
                Kinds::META
            }
            _ => return Err(badopt()),
        };
        if global && !matches!(item.view(), View::Tuple(_)) {
            return Err(badopt());
        }
        kinds = kinds.and(kind);
    }
    Ok((kinds, global, meta))
}

/// A match specification for what `what` names.
fn compile(what: Term<'_>, spec: Term<'_>) -> Result<std::sync::Arc<Spec>, Raise<'static>> {
    let dialect = match what.as_atom() {
        Some(am::receive) => Dialect::RECEIVE,
        Some(am::send) => Dialect::SEND,
        _ => Dialect::CALL,
    };
    Spec::compile(spec, dialect).map_err(|wrong| {
        let reason = match wrong {
            BadSpec::Wrong => am::badarg,
            BadSpec::TooDeep => am::system_limit,
        };
        Raise::ErrorCause(reason.term(), am::match_spec.term())
    })
}

fn trace_pattern<'p>(
    p: &'p Process,
    session: &Handle,
    what: Term<'p>,
    spec: Term<'p>,
    list: Term<'p>,
) -> BifResult<'p> {
    let (kinds, global, meta) = kinds_of(p, session, list)?;
    let mut setting = Setting { spec: None, meta };
    let switch = match spec.view() {
        View::Atom(am::false_) => Switch::Off,
        View::Atom(am::true_) | View::Nil => Switch::On,
        View::Atom(am::restart) => Switch::Restart,
        View::Atom(am::pause) => Switch::Pause,
        _ => {
            setting.spec = Some(compile(what, spec)?);
            Switch::On
        }
    };
    if setting.spec.is_some() && kinds.only_counts() {
        return Err(bad(am::call_count).into());
    }
    match what.view() {
        View::Atom(am::on_load) => {
            session.change_on_load(kinds, switch, &setting);
            Ok(Term::small(0))
        }
        View::Atom(event @ (am::send | am::receive)) => {
            if global || !kinds.is_none() || matches!(switch, Switch::Restart | Switch::Pause) {
                return Err(bad(am::none).into());
            }
            let on = switch == Switch::On;
            let pattern = EventPattern {
                on,
                spec: setting.spec,
            };
            session.set_event(event == am::send, pattern);
            Ok(Term::small(1))
        }
        View::Tuple(_) => {
            let pattern = pattern_of(what).ok_or_else(|| bad(am::none))?;
            if let trace::Progress::Go = trace::seize(p.pid()) {
                session.set_pattern(p.pid(), pattern, switch, kinds, &setting);
            }
            Err(Control::Wait.into())
        }
        _ => Err(bad(am::none).into()),
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

/// Sessions are cleaned up by the schedulers themselves: the cleaner process has nothing to do.
fn check_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(am::false_.term())
}

fn send_trace_clean_signal_1<'p>(_: &'p Process, [_to]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(notsup().into())
}
