//! The native functions of `erl_tracer`, by which programs call the tracer that tracing itself uses. Source:
//! `erl_tracer_nif.c`, OTP 29.

use crate::bif::{BifResult, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, View, am};
use crate::trace::trace_message;
use crate::trace::tracer::{EventOptions, Question, Timestamp, TracerId, Verdict};

bifs! {
    all unrecorded;
    bif erl_tracer:"enabled"/3 => enabled_3;
    bif erl_tracer:"trace"/5 => trace_5;
}

fn tracer(state: Term<'_>) -> Option<TracerId> {
    match state.view() {
        View::Pid(pid) => Some(TracerId::Process(pid)),
        View::Port(port) => Some(TracerId::Port(port)),
        _ => None,
    }
}

fn enabled_3<'p>(_: &'p Process, [tag, state, tracee]: [Term<'p>; 3]) -> BifResult<'p> {
    let is_status = tag == am::trace_status;
    // Which event it is makes no difference to it.
    let question = match is_status {
        true => Question::Status,
        false => Question::Of(crate::trace::Event::Call),
    };
    let verdict = match tracer(state) {
        Some(tracer) => tracer.enabled(question, tracee),
        None if is_status => Verdict::Remove,
        None => Verdict::Discard,
    };
    let verdict = match verdict {
        Verdict::Trace => am::trace,
        Verdict::Discard => am::discard,
        Verdict::Remove => am::remove,
    };
    Ok(verdict.term())
}

fn trace_5<'p>(_: &'p Process, [tag, state, tracee, message, map]: [Term<'p>; 5]) -> BifResult<'p> {
    let tag = tag.as_atom().ok_or_else(badarg)?;
    let mut options = EventOptions::default();
    if let View::Map(map) = map.view() {
        options.extra = map.get(am::extra.term());
        options.match_spec_result = map.get(am::match_spec_result.term());
        options.scheduler_id = map.get(am::scheduler_id.term());
        if let Some(stamp) = map.get(am::timestamp.term()) {
            options.timestamp = match stamp.as_atom() {
                Some(am::timestamp) => Some(Timestamp::Now),
                Some(am::cpu_timestamp) => Some(Timestamp::Cpu),
                Some(am::strict_monotonic) => Some(Timestamp::StrictMonotonic),
                Some(am::monotonic) => Some(Timestamp::Monotonic),
                _ => return Ok(am::ok.term()),
            };
        }
    }
    if let Some(tracer) = tracer(state) {
        tracer.tell(trace_message(tag, tracee, message, &options));
    }
    Ok(am::ok.term())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{Atom, Pid};

    #[test]
    fn a_tracer_that_is_gone_is_removed_when_asked_for_its_status() {
        let p = &Process::new(233);
        let gone = Pid(crate::sched::ptab::INVALID_DATA).term();
        for (tag, state, verdict) in [
            ("trace_status", gone, am::remove),
            ("call", gone, am::discard),
            ("trace_status", am::ok.term(), am::remove),
            ("send", am::ok.term(), am::discard),
        ] {
            let told = enabled_3(p, [Atom::new(tag).term(), state, am::undefined.term()]);
            assert!(told.is_ok_and(|told| told == verdict), "{tag}");
        }
        let nothing = [Term::NIL, am::ok.term(), Term::NIL, Term::NIL, Term::NIL];
        assert!(trace_5(p, nothing).is_err());
    }
}
