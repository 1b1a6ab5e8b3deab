//! The BIFs `process_flag`, which set a process's flags.

use super::process::reply;
use super::{GuardResult, Leave, Next, Raise, badarg, badopt, bifs, call_again};
use crate::dist::node_monitors::{self, Options};
use crate::process::order::answer::Native;
use crate::process::order::{answer, explore};
use crate::process::refs::make_ref;
use crate::process::{Control, Exception, MaxHeap, Process, Signal, ask, min_heap_words, options};
use crate::term::{Atom, Term, am};
use crate::value::map;

bifs! {
    xbif erlang:"process_flag"/2 => process_flag_2, own;
    bif erts_internal:"process_flag"/3 => process_flag_3, unrecorded;
}

/// Longest list of saved calls. Source: `process_flag_aux()`.
const MOST_SAVED_CALLS: usize = 10_000;

fn process_flag_2(p: &mut Process) -> Next {
    if p.x(0) == am::trap_exit
        && let Err(control) = access_trap_exits(p)
    {
        return call_again(p, &control);
    }
    if let Some(flag) = p.x(0).as_atom() {
        explore::note_item_set(p.pid(), flag);
    }
    let size = p.x(1).as_index();
    let old = match (p.x(0).as_atom(), size) {
        (Some(am::fullsweep_after), Some(new)) => p.set_fullsweep_after(new),
        (Some(am::min_heap_size), Some(new)) => p.set_min_heap_words(new.max(min_heap_words())),
        (Some(am::min_bin_vheap_size), Some(new)) => p.set_min_bin_vheap_words(new),
        (Some(am::max_heap_size), _) => return set_max_heap(p),
        _ => {
            let result = process_flag(p, [p.x(0), p.x(1)]);
            return match result {
                Ok(old) => {
                    let moves = p.x(0) == am::scheduler;
                    p.set_x(0, old);
                    // Its next slice is on the scheduler that it is bound to now.
                    if moves { Next::Yield } else { Next::Return }
                }
                Err(raise) => {
                    p.exception = Exception::from_raise(p, &raise);
                    Next::Raise
                }
            };
        }
    };
    p.set_x(0, p.unsigned(old as u64));
    Next::Return
}

/// `p` is about to begin to trap exits, or to cease to, as it asks for.
///
/// # Errors
/// It is to call again.
fn access_trap_exits(p: &Process) -> Result<(), Control<'_>> {
    let Some(traps) = p.x(1).as_bool() else {
        return Ok(());
    };
    static NATIVE: Native = Native::new("erlang", "process_flag", 2);
    let old = p.flags.get().trap_exit;
    explore::access_trapping(p, traps)?;
    if traps != old
        && let Err(Leave::Control(control)) = answer::in_turn(p, &NATIVE, || Ok(Term::bool(old)))
    {
        return Err(control);
    }
    p.note_trap_exit(traps);
    Ok(())
}

fn set_max_heap(p: &mut Process) -> Next {
    let new = options::max_heap(p.x(1));
    let least = p.min_heap_words();
    let Some(new) = new.filter(|new| new.words == 0 || new.words >= least) else {
        return p.raise(badarg());
    };
    p.set_x(0, max_heap_map(p, &p.max_heap()));
    p.set_max_heap(new);
    Next::Return
}

/// Subscribes to what nodes come and go, or ends all such subscriptions; tells how many there were.
fn monitor_nodes<'p>(p: &'p Process, options: Options, value: Term<'p>) -> GuardResult<'p> {
    let old = match value.as_bool().ok_or_else(badarg)? {
        true => node_monitors::subscribe(p.pid(), options),
        false => node_monitors::unsubscribe(p.pid(), options),
    };
    Ok(Term::small(i64::from(old)))
}

fn process_flag<'p>(p: &'p Process, [flag, value]: [Term<'p>; 2]) -> GuardResult<'p> {
    if let Some(pair) = flag.as_tuple() {
        return match pair.elements() {
            [name, options] if *name == am::monitor_nodes => {
                let options = Options::of(*options).ok_or_else(badarg)?;
                monitor_nodes(p, options, value)
            }
            _ => Err(badopt()),
        };
    }
    let flag = flag.as_atom().ok_or_else(badopt)?;
    match flag {
        am::trap_exit | am::async_dist | am::sensitive => set_flag(p, flag, value),
        am::error_handler => {
            let handler = value.as_atom().ok_or_else(badarg)?;
            let old = p.psd().error_handler.replace(handler);
            Ok(old.unwrap_or(am::error_handler).term())
        }
        am::priority => {
            let new = options::priority(value).ok_or_else(badarg)?;
            let old = p.shared().priority();
            p.shared().set_priority(new);
            Ok(options::priority_name(old).term())
        }
        am::scheduler => {
            let new = options::scheduler(value).ok_or_else(badarg)?;
            Ok(Term::small(p.shared().bind(new).into()))
        }
        am::message_queue_data => {
            let new = options::queue_data(value).ok_or_else(badarg)?;
            let old = p.flags.get().off_heap_messages;
            p.change_flags(|flags| flags.off_heap_messages = new);
            Ok(queue_data_name(old).term())
        }
        // Valid ones were set before.
        am::fullsweep_after | am::min_heap_size | am::min_bin_vheap_size => Err(badarg()),
        am::save_calls => {
            let cause = || Raise::ErrorCause(am::badarg.term(), am::none.term());
            save_calls(p, value).ok_or_else(cause)
        }
        am::monitor_nodes => monitor_nodes(p, Options::default(), value),
        _ => Err(badopt()),
    }
}

fn set_flag<'p>(p: &'p Process, flag: Atom, value: Term<'p>) -> GuardResult<'p> {
    let new = value.as_bool().ok_or_else(badarg)?;
    let mut old = false;
    p.change_flags(|flags| {
        let flag = match flag {
            am::trap_exit => &mut flags.trap_exit,
            am::async_dist => &mut flags.async_dist,
            _ => &mut flags.sensitive,
        };
        old = std::mem::replace(flag, new);
    });
    if flag == am::sensitive {
        p.shared().tracee.set_sensitive(new);
    }
    Ok(Term::bool(old))
}

pub(crate) fn queue_data_name(off_heap: bool) -> Atom {
    if off_heap { am::off_heap } else { am::on_heap }
}

/// `max_heap_size` as a map.
pub(crate) fn max_heap_map<'p>(p: &'p Process, max: &MaxHeap) -> Term<'p> {
    let pairs = [
        (am::error_logger.term(), Term::bool(max.error_logger)),
        (
            am::include_shared_binaries.term(),
            Term::bool(max.include_shared_binaries),
        ),
        (am::kill.term(), Term::bool(max.kill)),
        (am::size.term(), p.unsigned(max.words as u64)),
    ];
    map::from_pairs(p, &pairs)
}

fn save_calls<'p>(p: &'p Process, value: Term<'_>) -> Option<Term<'p>> {
    let limit = value
        .as_index()
        .filter(|limit| *limit <= MOST_SAVED_CALLS)?;
    Some(p.unsigned(p.set_saved_calls(limit) as u64))
}

/// Sets `save_calls` of another process: a reference, for which `{Ref, Result}` comes.
fn process_flag_3<'p>(p: &'p Process, [pid, flag, value]: [Term<'p>; 3]) -> GuardResult<'p> {
    let Some(pid) = pid.as_pid() else {
        return Ok(am::badtype.term());
    };
    let is_flag = flag == am::save_calls;
    if pid == p.pid() {
        let old = if is_flag { save_calls(p, value) } else { None };
        return Ok(old.unwrap_or(am::badarg.term()));
    }
    let reference = make_ref();
    let count = value.as_small().filter(|_| is_flag);
    let asker = p.pid();
    let request = Signal::request(move |p| {
        let Some(p) = p else {
            return reply(asker, reference, am::badarg.term());
        };
        let old = count.and_then(|count| save_calls(p, Term::small(count)));
        reply(asker, reference, old.unwrap_or(am::badarg.term()));
    });
    match ask(p, pid, request) {
        Ok(()) => Ok(p.reference(reference)),
        Err(_) => Ok(am::badtype.term()),
    }
}
