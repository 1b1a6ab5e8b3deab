//! `erts_debug:get_internal_state/1` and `set_internal_state/2`, through which OTP's own test suites look into the
//! emulator. They are closed until `available_internal_state` is set. An item that is unknown here is a `badarg`, as in
//! ERTS.
//! Source: `erl_bif_info.c`, OTP 29.

mod node_references;
mod relations;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::process::all_pids;
use super::time::make_unique_integer;
use super::{GuardResult, Next, Raise, badarg, bifs};
use crate::dist::entry::DistEntry;
use crate::dist::node_monitors;
use crate::ets;
use crate::heap::{MagicBinary, Message};
use crate::loader::{debug, permission};
use crate::process::{Exception, Process, Signal, exists, refs, send};
use crate::sched::online;
use crate::sched::ptab::{PTab, PTabElement};
use crate::sched::timers;
use crate::sys::memory;
use crate::term::atom::{MAX_ATOM_CACHE_INDEX, atom_cache_index};
use crate::term::counted::node_name;
use crate::term::{Atom, Bits, Pid, Term, View, am, hash, tag};

bifs! {
    xbif erts_debug:"get_internal_state"/1 => get_internal_state_1, answer;
    xbif erts_debug:"set_internal_state"/2 => set_internal_state_2, unrecorded;
}

static AVAILABLE: AtomicBool = AtomicBool::new(false);

fn get_internal_state_1(p: &mut Process) -> Next {
    let is_open = AVAILABLE.load(Ordering::Relaxed);
    if let Some(outcome) = is_open.then(|| relations::answer(p)).flatten() {
        return outcome.unwrap_or_else(|raise| p.raise(raise));
    }
    if is_open && let Some(next) = node_references::answer(p) {
        return next;
    }
    match get(p, p.x(0)) {
        Ok(value) => p.set_x(0, value),
        Err(raise) => {
            p.exception = Exception::from_raise(p, &raise);
            return Next::Raise;
        }
    }
    Next::Return
}

fn get<'p>(p: &'p Process, item: Term<'p>) -> GuardResult<'p> {
    if !AVAILABLE.load(Ordering::Relaxed) {
        return Err(am::undef.into());
    }
    match item.view() {
        View::Atom(name) => state(p, name),
        View::Tuple(tuple) => match *tuple.elements() {
            [name, of] => state_of(p, name.as_atom().ok_or_else(badarg)?, of),
            [name, thread, count] if name == Atom::new("make_unique_integer") => {
                let (thread, count) = (thread.as_u64(), count.as_u64());
                let (thread, count) = thread.zip(count).ok_or_else(badarg)?;
                Ok(make_unique_integer(p, thread, count, false))
            }
            [name, term, options] if name == Atom::new("term_to_binary") => {
                let options = super::external::encode_options(options)?;
                let bytes = crate::external::encode(term, options)?;
                Ok(p.binary_from_vec(bytes))
            }
            [name, correction, mode] if name == Atom::new("check_time_config") => {
                let modes = ["no_time_warp", "single_time_warp", "multi_time_warp"];
                let mode = mode.as_atom().map_or("", Atom::name);
                let is_known = correction.as_bool().is_some() && modes.contains(&mode);
                Ok(is_known.then_some(Term::bool(true)).ok_or_else(badarg)?)
            }
            _ => Err(badarg()),
        },
        _ => Err(badarg()),
    }
}

fn state<'p>(p: &'p Process, name: Atom) -> GuardResult<'p> {
    Ok(match name.name() {
        "available_internal_state" => Term::bool(true),
        "reds_left" => p.integer(p.fcalls.get().max(0)),
        "process_info_args" => {
            let items = super::process_info::ITEMS.iter();
            p.list(&items.map(|item| item.term()).collect::<Vec<_>>())
        }
        "processes" => all_pids(p),
        "monitoring_nodes" => node_monitors::subscriptions(p),
        // In one go: a single chunk, 10 pids a reduction, whatever reductions are left.
        "processes_bif_info" => {
            let limit = crate::process::table().limit() as i64;
            let numbers = [1, 1, limit, 0, 0, 0, 0, 10, 0].map(Term::small);
            let name = Atom::new("ptab_list_bif_info").term();
            p.tuple(&[&[name][..], &numbers].concat())
        }
        "check_io_debug" => super::system_emulator::check_io_debug(p),
        "debugger_support" => Term::bool(debug::is_enabled()),
        "force_heap_frags" | "hashmap_collision_bonanza" | "scheduler_dump" => Term::bool(false),
        "memory" => super::memory::all(p),
        "mmap" | "re_yield_coverage" => am::undefined.term(),
        "dirty_gc_limit" => Term::small(LONG_GC_WORDS),
        "lc_graph" | "flxctr_memory_usage" => am::notsup.term(),
        "persistent_term" => {
            let slots = Term::small(super::persistent_term::slots() as i64);
            let table = Atom::new("table").term();
            crate::value::map::from_pairs(p, &[(table, slots)])
        }
        "DbTable_words" => p.tuple(&[
            Term::small(ets::TABLE_WORDS as i64),
            Term::small(ets::DIRECTORY_WORDS as i64),
        ]),
        "max_atom_out_cache_index" => p.unsigned(MAX_ATOM_CACHE_INDEX.into()),
        "next_pid" => p.unsigned(crate::process::table().next_data()),
        "next_port" => p.unsigned(crate::port::table().next_data()),
        "unique_monotonic_integer_state" => p.unsigned(refs::monotonic_state()),
        "min_unique_monotonic_integer" | "min_unique_integer" => p.integer(tag::MIN_SMALL),
        _ => return Err(badarg()),
    })
}

fn state_of<'p>(p: &'p Process, name: Atom, of: Term<'p>) -> GuardResult<'p> {
    Ok(match name.name() {
        "binary_info" => binary_info(p, of.as_bits().ok_or_else(badarg)?),
        "native_record_def" => of.as_record().ok_or_else(badarg)?.definition().term(),
        "channel_number" if of == node_name() => Term::small(0),
        "channel_number" => am::undefined.term(),
        "atom_out_cache_index" => {
            let index = atom_cache_index(of.as_atom().ok_or_else(badarg)?);
            p.unsigned(index.into())
        }
        "internal_hash" => p.unsigned(hash::internal_hash(of)),
        "atom" => {
            let index = of.as_index().and_then(|index| u32::try_from(index).ok());
            let index = index.filter(|&index| (index as usize) < crate::term::atom::count());
            Atom::from_index(index.ok_or_else(badarg)?).term()
        }
        "magic_ref" => match of.as_ref().and_then(|r| r.magic()) {
            Some(magic) => {
                let address = std::ptr::from_ref(magic) as u64;
                let holders = magic.holders() as u64;
                // Made by `set_internal_state(make, magic_ref)`.
                let is_empty = magic.get::<()>().is_some();
                p.tuple(&[
                    p.unsigned(address),
                    p.unsigned(holders),
                    Term::bool(is_empty),
                ])
            }
            None => Term::bool(false),
        },
        "dist_ctrl" => controller_of(p, of.as_atom().ok_or_else(badarg)?),
        _ => return Err(badarg()),
    })
}

/// What controls the connection to a node.
fn controller_of(p: &Process, node: Atom) -> Term<'_> {
    let controller = DistEntry::find(node).and_then(|entry| entry.controller());
    controller.map_or(am::undefined.term(), |controller| controller.term(p))
}

/// Words of a heap whose collection is a dirty scheduler's, in ERTS. Source: `ERTS_POTENTIALLY_LONG_GC_HSIZE`.
const LONG_GC_WORDS: i64 = 128 * 1024;

/// Where a bitstring's bytes are: `{refc_binary, Bytes, {binary, BytesOfAll}, Flags}`.
fn binary_info<'p>(p: &'p Process, bits: Bits<'p>) -> Term<'p> {
    let Some(binary) = bits.binary() else {
        return Atom::new("heap_binary").term();
    };
    let number = |n: usize| p.unsigned(n as u64);
    p.tuple(&[
        Atom::new("refc_binary").term(),
        number(bits.bit_len().div_ceil(8)),
        p.tuple(&[am::binary.term(), number(binary.size())]),
        Term::small(0),
    ])
}

fn set_internal_state_2(p: &mut Process) -> Next {
    match set(p) {
        Ok(next) => next,
        Err(raise) => p.raise(raise),
    }
}

fn set(p: &mut Process) -> Result<Next, Raise<'static>> {
    let name = p.x(0).as_atom();
    if name == Some(am::available_internal_state)
        && let Some(on) = p.x(1).as_bool()
    {
        let before = AVAILABLE.swap(on, Ordering::Relaxed);
        if on {
            warn(p);
        }
        p.set_x(0, Term::bool(before));
        return Ok(Next::Return);
    }
    if !AVAILABLE.load(Ordering::Relaxed) {
        return Err(am::undef.into());
    }
    match name.ok_or_else(badarg)?.name() {
        "force_gc" => return force_gc(p),
        "process_uniq_counter" => {
            let count = p.x(1).as_u64().ok_or_else(badarg)?;
            p.set_marker_count(count);
            p.set_x(0, am::ok.term());
            return Ok(Next::Return);
        }
        "code_mod_permission" => {
            match p.x(1).as_bool().ok_or_else(badarg)? {
                true if !permission::keep(p) => return Ok(Next::Wait),
                true => {}
                false => permission::give_back(),
            }
            p.set_x(0, Term::bool(true));
            return Ok(Next::Return);
        }
        "gc_state" => {
            let allow = p.x(1).as_bool().ok_or_else(badarg)?;
            let before = p.allow_collections(allow);
            p.set_x(0, Term::bool(before));
            // What has waited is done when the next time slice begins.
            return Ok(if allow { Next::Yield } else { Next::Return });
        }
        "wait" => {
            // What is freed is freed at once: to have given way is to have waited.
            match p.x(1).as_atom().map(Atom::name) {
                Some("deallocations" | "timer_cancellations" | "aux_work" | "thread_progress") => {}
                _ => return Err(badarg()),
            }
            p.set_x(0, am::ok.term());
            return Ok(Next::Yield);
        }
        "block" => return block(p),
        _ => {}
    }
    let result = change(p, [p.x(0), p.x(1)]);
    match result {
        Ok(value) => p.set_x(0, value),
        Err(raise) => {
            p.exception = Exception::from_raise(p, &raise);
            return Ok(Next::Raise);
        }
    }
    Ok(Next::Return)
}

/// Collects the heap of the caller, if the process that is named is there.
fn force_gc(p: &mut Process) -> Result<Next, Raise<'static>> {
    if !exists(p.x(1).as_pid().ok_or_else(badarg)?) {
        p.set_x(0, Term::bool(false));
        return Ok(Next::Return);
    }
    // The killed process of a heap past its limit ends at its next safepoint.
    Ok(match p.garbage_collect(0, 2) {
        Ok(()) => {
            p.set_x(0, Term::bool(true));
            Next::Return
        }
        Err(exiting) => Next::Exit(exiting),
    })
}

/// Has all schedulers of ordinary work stand still for a time.
fn block(p: &mut Process) -> Result<Next, Raise<'static>> {
    let time = milliseconds(p.x(1))?;
    if !online::block(p.pid().0, true, || false) {
        return Ok(Next::Again);
    }
    std::thread::sleep(time);
    online::unblock(p.pid().0, true);
    p.set_x(0, Term::bool(true));
    Ok(Next::Return)
}

/// Ends the connection to a node; whether there was one.
fn kill_connection(node: Term<'_>) -> GuardResult<'static> {
    let entry = DistEntry::find(node.as_atom().ok_or_else(badarg)?);
    let was_there = entry.is_some_and(|entry| entry.end_controller(am::killed));
    Ok(Term::bool(was_there))
}

/// A time, none where it is negative.
fn milliseconds(value: Term<'_>) -> Result<Duration, Raise<'static>> {
    let milliseconds = value.as_small().ok_or_else(badarg)?;
    Ok(Duration::from_millis(
        u64::try_from(milliseconds).unwrap_or(0),
    ))
}

/// What needs no collection.
fn change<'p>(p: &'p Process, [name, value]: [Term<'p>; 2]) -> GuardResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    Ok(match name.name() {
        "test_long_gc_sleep" => {
            let milliseconds = value.as_small().and_then(|ms| u64::try_from(ms).ok());
            crate::trace::sysmon::set_test_sleep(milliseconds.ok_or_else(badarg)?);
            Term::bool(true)
        }
        "reds_left" => {
            let reds = value.as_small().ok_or_else(badarg)?;
            if (0..=crate::process::CONTEXT_REDS).contains(&reds) {
                p.fcalls.set(reds);
            }
            Term::bool(true)
        }
        "sleep" | "block_scheduler" => {
            std::thread::sleep(milliseconds(value)?);
            Term::bool(true)
        }
        "unique_monotonic_integer_state" => {
            let state = value.as_u64();
            Term::bool(state.is_some_and(refs::set_monotonic_state))
        }
        "multizero_timeout_in_timeout" => {
            let milliseconds = value.as_small().ok_or_else(badarg)?;
            timeout_in_timeout(p.pid(), milliseconds.max(0).unsigned_abs());
            am::ok.term()
        }
        "next_pid" => set_next(p, crate::process::table(), value)?,
        "next_port" => set_next(p, crate::port::table(), value)?,
        // Both are given back at once.
        "node_tab_delayed_delete" if value.as_small().is_some() => am::ok.term(),
        "kill_dist_connection" => kill_connection(value)?,
        "jit_asm_dump" => am::notsup.term(),
        // Signals have one queue, whoever sends them.
        "proc_sig_buffers" if value.as_bool() == Some(true) => Term::bool(false),
        "proc_sig_buffers" => am::notsup.term(),
        "proc_sig_block" => proc_sig_block(value)?,
        "fill_heap" => {
            p.filler(p.free_words());
            am::ok.term()
        }
        "make" if value.as_atom().map(Atom::name) == Some("magic_ref") => {
            let magic = MagicBinary::new(refs::make_ref(), Box::new(()));
            let address = std::sync::Arc::as_ptr(&magic) as u64;
            p.tuple(&[p.magic_reference(magic), p.unsigned(address)])
        }
        "binary" if value.as_small().is_some_and(|size| size < 0) => Term::bool(false),
        "binary" => {
            let size = value.as_index().ok_or_else(badarg)?;
            p.off_heap_binary(memory::zeroed_bytes(size))
        }
        "debugger_support" => support_debugger(value).term(),
        "ets_force_trap" => am::notsup.term(),
        "ets_force_split" => split_tables(value, ets::Objects::force_split)?,
        "ets_debug_random_split_join" => split_tables(value, ets::Objects::random_split_join)?,
        "colliding_names" => {
            let pair = value.as_tuple().map(|pair| pair.elements());
            let Some([name, count]) = pair else {
                return Err(badarg());
            };
            let name = name.as_atom().ok_or_else(badarg)?;
            let count = count.as_index().ok_or_else(badarg)?;
            let names = ets::registry::colliding_names(name, count);
            p.list(&names.iter().map(|name| name.term()).collect::<Vec<_>>())
        }
        "mbuf" => p.attach(Message::copy_of(value)),
        _ => return Err(badarg()),
    })
}

/// Sets the next identifier of a table; what it is then, or `false` where nothing was set.
fn set_next<'p, T: PTabElement>(
    p: &'p Process,
    table: &PTab<T>,
    value: Term<'p>,
) -> GuardResult<'p> {
    let next = value.as_u64().ok_or_else(badarg)?;
    Ok(match table.set_next_data(next) {
        true => p.unsigned(table.next_data()),
        false => Term::bool(false),
    })
}

/// Has the process of `{Pid, Milliseconds}` do nothing for that time, as one of its signals; is there such a process?
fn proc_sig_block<'p>(value: Term<'p>) -> GuardResult<'p> {
    let pair = value.as_tuple().filter(|pair| pair.arity() == 2);
    let pair = pair.ok_or_else(badarg)?;
    let pid = pair.get(0).as_pid().ok_or_else(badarg)?;
    let time = milliseconds(pair.get(1))?;
    let block = Signal::request(move |p| {
        if p.is_some() {
            std::thread::sleep(time);
        }
    });
    Ok(Term::bool(send(pid, block).is_ok()))
}

/// A debugger is supported from now on; there is no way back.
fn support_debugger(yes: Term<'_>) -> Atom {
    if yes.as_bool() != Some(true) {
        return am::badarg;
    }
    debug::enable();
    am::ok
}

/// Sends `pid` a message when three timers have gone off, each of them set by the one before.
fn timeout_in_timeout(pid: Pid, milliseconds: u64) {
    let done = move || {
        let done = Atom::new("multizero_timeout_in_timeout_done").term();
        // Gone: then nobody waits for it.
        let _ = send(pid, Signal::message(done, pid));
    };
    let second = move || timers::run_after(0, done);
    timers::run_after(milliseconds, move || timers::run_after(0, second));
}

/// Changes how the table of `{Table, Boolean}` splits.
fn split_tables<'p>(
    value: Term<'p>,
    change: fn(&mut ets::Objects, bool) -> bool,
) -> GuardResult<'p> {
    let pair = value.as_tuple().filter(|pair| pair.arity() == 2);
    let pair = pair.ok_or_else(badarg)?;
    let handle = ets::registry::find_now(pair.get(0))?;
    let table = handle.table();
    let fine = table.options.write_concurrency != ets::WriteConcurrency::No;
    let yes = pair.get(1).as_bool().ok_or_else(badarg)?;
    if !fine || !change(&mut table.state().objects, yes) {
        return Err(badarg());
    }
    Ok(am::ok.term())
}

fn warn(p: &Process) {
    let text = "Process ~p enabled access to the emulator internal state.\n\
                NOTE: This is an erts internal test feature and should *only* be used by OTP \
                test-suites.\n";
    crate::process::logger::log_warning(p, text, p.list(&[p.pid().term()]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_door_is_shut_until_it_is_opened() {
        let p = &Process::new(233);
        let named = |name: &str| Atom::new(name).term();
        let set = |name: &str, value: Term<'static>| change(p, [named(name), value]);
        let reds = named("reds_left");
        assert!(get(p, reds).is_err());
        AVAILABLE.store(true, Ordering::Relaxed);
        assert!(set("reds_left", Term::small(7)).is_ok());
        assert!(get(p, reds).is_ok_and(|r| r.as_small() == Some(7)));
        assert!(get(p, named("no_such_state")).is_err());
        AVAILABLE.store(false, Ordering::Relaxed);
        assert!(get(p, reds).is_err());
    }

    #[test]
    fn states_are_changed() {
        let p = &Process::new(233);
        let set = |name: &str, value: Term<'static>| change(p, [Atom::new(name).term(), value]);
        assert!(set("no_such_state", Term::small(7)).is_err());
        let binary = set("binary", Term::small(3)).ok().and_then(|t| t.as_bits());
        assert!(binary.is_some_and(|bits| bits.is_sub() && bits.byte_len() == 3));
        let made = set("make", Atom::new("magic_ref").term()).ok();
        let pair = made.and_then(|t| t.as_tuple()).expect("a pair");
        let found = state_of(p, Atom::new("magic_ref"), pair.get(0)).ok();
        let found = found.and_then(|t| t.as_tuple()).expect("it is magic");
        let numbers = [found.get(0), found.get(1)].map(Term::as_index);
        assert_eq!(numbers, [pair.get(1).as_index(), Some(1)]);
        assert_eq!(found.get(2), am::true_);
        assert!(set("fill_heap", Term::small(0)).is_ok());
        assert_eq!(p.free_words(), 0);
    }
}
