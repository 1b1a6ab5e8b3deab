//! The BIFs `erlang:system_profile/0,2` and `erts_internal:system_check/1`. Source: `erl_bif_trace.c`,
//! `erl_process.c`, OTP 29.

use super::{BifResult, Control, Raise, badarg, bifs};
use crate::code::entry::export;
use crate::heap::Heap;
use crate::process::{self, Process, SYSTEM, Signal, ports, refs};
use crate::sched;
use crate::term::{Term, View, am};
use crate::trace::TracerId;
use crate::trace::sysprof::{self, EXCLUSIVE, PORTS, PROCS, Profile, SCHEDULER};
use crate::trace::tracer::Timestamp;

bifs! {
    all unrecorded;
    bif erlang:"system_profile"/0 => system_profile_0;
    bif erlang:"system_profile"/2 => system_profile_2;
    bif erts_internal:"system_check"/1 => system_check_1;
}

fn system_profile_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(shown(p, &sysprof::get()))
}

/// `{Receiver, Options}` or `undefined`.
fn shown<'p>(p: &'p Process, profile: &Profile) -> Term<'p> {
    let Some(receiver) = profile.receiver else {
        return am::undefined.term();
    };
    let options = [
        (EXCLUSIVE, am::exclusive),
        (SCHEDULER, am::scheduler),
        (PROCS, am::runnable_procs),
        (PORTS, am::runnable_ports),
    ];
    let set = options
        .into_iter()
        .filter(|(what, _)| profile.asked & what != 0);
    let names: Vec<Term<'_>> = set.map(|(_, name)| name.term()).collect();
    p.tuple(&[receiver.told(p), p.list(&names)])
}

fn system_profile_2<'p>(p: &'p Process, [receiver, options]: [Term<'p>; 2]) -> BifResult<'p> {
    if receiver == am::undefined || options.is_nil() {
        return Ok(shown(p, &sysprof::clear()));
    }
    options.as_cons().ok_or_else(badarg)?;
    let receiver = match receiver.view() {
        View::Pid(pid) if process::exists(pid) => TracerId::Process(pid),
        View::Port(port) if ports::exists(port) => TracerId::Port(port),
        _ => return Err(badarg().into()),
    };
    let profile = profile(receiver, options)?;
    Ok(shown(p, &sysprof::set(profile)))
}

fn profile(receiver: TracerId, options: Term<'_>) -> Result<Profile, Raise<'static>> {
    let mut profile = Profile {
        receiver: Some(receiver),
        asked: 0,
        timestamp: Timestamp::Now,
    };
    for option in options.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::runnable_procs) => profile.asked |= PROCS,
            Some(am::runnable_ports) => profile.asked |= PORTS,
            Some(am::exclusive) => profile.asked |= EXCLUSIVE,
            Some(am::scheduler) => profile.asked |= SCHEDULER,
            Some(am::timestamp) => profile.timestamp = Timestamp::Now,
            Some(am::strict_monotonic_timestamp) => profile.timestamp = Timestamp::StrictMonotonic,
            Some(am::monotonic_timestamp) => profile.timestamp = Timestamp::Monotonic,
            _ => return Err(badarg()),
        }
    }
    Ok(profile)
}

/// `erlang:system_check(schedulers)`: `ok` once every scheduler has answered.
fn system_check_1<'p>(p: &'p Process, [what]: [Term<'p>; 1]) -> BifResult<'p> {
    if !what.same(crate::term::atom::atom("schedulers")) {
        return Err(badarg().into());
    }
    let (asker, numbers) = (p.pid(), refs::make_ref());
    sched::thread_progress().later(move || {
        for _ in 0..sched::schedulers() {
            let answer = Heap::detached().into_message(|heap| heap.reference(numbers));
            // Gone: then nobody waits for it.
            let _ = process::send(asker, Signal::own(answer, SYSTEM));
        }
    });
    let gather = export(am::erts_internal, am::gather_system_check_result, 1);
    Err(Control::Trap(gather, vec![p.reference(numbers)]).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{Atom, Pid};

    #[test]
    fn options_are_shown_in_the_order_of_otp() {
        let p = &Process::new(233);
        let receiver = TracerId::Process(Pid(0));
        let check = |given: &[Atom], expected: Option<&[Atom]>| {
            let options: Vec<_> = given.iter().map(|name| name.term()).collect();
            let list = profile(receiver, p.list(&options)).ok();
            let list = list.map(|profile| {
                let pair = shown(p, &profile).as_tuple().map(|pair| pair.get(1));
                let names = pair.expect("a pair").list_iter().flatten();
                names.filter_map(Term::as_atom).collect::<Vec<_>>()
            });
            assert_eq!(list.as_deref(), expected);
        };
        let (procs, ports) = (am::runnable_procs, am::runnable_ports);
        check(&[ports], Some(&[ports]));
        check(
            &[ports, procs, am::scheduler, am::exclusive],
            Some(&[am::exclusive, am::scheduler, procs, ports]),
        );
        check(&[procs, am::monotonic_timestamp, procs], Some(&[procs]));
        check(&[procs, am::process], None);
    }
}
