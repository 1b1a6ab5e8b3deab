//! The BIFs by which the machine tells about itself: `erlang:system_info/1`, `system_flag/2`, `statistics/1`.
//! Source: `erl_bif_info.c`, `bif.c`, OTP 29.
//!
//! Items that describe ERTS's allocators, polling and locks have no counterpart here. Asking for one is a `badarg`, or
//! gets the answer of an ERTS that was built without it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use super::flags::{max_heap_map, queue_data_name};
use super::{BifResult, Control, Raise, badarg, badopt, bifs, notsup};
use crate::code::entry::export;
use crate::code::machine_code;
use crate::dist::busy_limit;
use crate::dist::entry::DistEntry;
use crate::exec::exception;
use crate::heap::{self, Heap};
use crate::port;
use crate::process::dirty_queues::{KINDS, limits_changed, queue_of, some_run};
use crate::process::logger::SystemLogger;
use crate::process::{self, Dirty, MaxHeap, Process, options};
use crate::sched::clock::TimeWarp;
use crate::sched::{self, online};
use crate::sys::chance::{clock, processors};
use crate::sys::halt;
use crate::term::atom::atom;
use crate::term::counted::this_node;
use crate::term::{Atom, Term, View, am, atom as atoms};
use crate::value::number as numbers;

bifs! {
    bif erlang:"system_info"/1 => system_info_1, answer;
    bif erlang:"system_flag"/2 => system_flag_2, again;
    bif erlang:"statistics"/1 => statistics_1, answer;
}

/// The OTP whose libraries run: release (`"29"`) and the version of its ERTS (`"17.1"`).
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// `otp_release`.
    pub(crate) otp: String,
    /// `version`.
    pub(crate) erts: String,
}

static RELEASE: OnceLock<Release> = OnceLock::new();

/// Says which OTP's libraries run. The first call counts. Until then, that is OTP 29.
pub(crate) fn set_release(release: Release) {
    let _ = RELEASE.set(release);
}

pub(crate) fn release() -> &'static Release {
    RELEASE.get_or_init(|| Release {
        otp: "29".into(),
        erts: "17.1".into(),
    })
}

/// As `configure` names the machine; OTP's tools parse it.
const ARCHITECTURE: &str = if cfg!(target_os = "macos") {
    if cfg!(target_arch = "aarch64") {
        "aarch64-apple-darwin"
    } else {
        "x86_64-apple-darwin"
    }
} else if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-pc-linux-gnu"
};

/// All schedulers, those for dirty work included.
pub(super) fn all_schedulers() -> u64 {
    (sched::schedulers() + sched::dirty_schedulers().all()) as u64
}

/// Settings that `system_flag/2` changes.
struct Flags {
    outstanding_system_requests: AtomicI64,
}

fn flags() -> &'static Flags {
    static FLAGS: OnceLock<Flags> = OnceLock::new();
    FLAGS.get_or_init(|| Flags {
        outstanding_system_requests: AtomicI64::new(4),
    })
}

fn system_info_1<'p>(p: &'p Process, [item]: [Term<'p>; 1]) -> BifResult<'p> {
    match item.view() {
        View::Atom(name) => {
            let name = name.name();
            if name == "procs" {
                return Err(super::system_text::ask_all(p).into());
            }
            if let Some(text) = super::system_text::text(name) {
                return Ok(p.binary_from_vec(text.into_bytes()));
            }
            release_info(p, name)
                .or_else(|| scheduler_info(p, name))
                .or_else(|| limit_info(p, name))
                .or_else(|| heap_info(p, name))
                .or_else(|| feature_info(name))
                .or_else(|| clock_info(p, name))
                .or_else(|| tracing_info(p, name))
                .or_else(|| super::system_emulator::info(p, name))
                .ok_or_else(|| badarg().into())
        }
        View::Tuple(tuple) => match tuple.elements() {
            [sel, kind] if sel.same(atom("wordsize")) => {
                match kind.as_atom().map(|kind| kind.name()) {
                    Some("internal" | "external") => Ok(Term::small(8)),
                    _ => Err(badarg().into()),
                }
            }
            [sel, which] if sel.same(atom("cpu_topology")) => match which.as_atom() {
                Some(which) if ["defined", "detected", "used"].contains(&which.name()) => {
                    Ok(am::undefined.term())
                }
                _ => Err(badarg().into()),
            },
            // There are no allocators to tell of.
            [sel, _] if sel.same(atom("allocator")) => Ok(Term::NIL),
            [sel, _] if sel.same(atom("allocator_sizes")) => Ok(Term::NIL),
            [sel, reference, kinds] if sel.same(atom("memory_internal")) => {
                memory_internal(p, *reference, *kinds)
            }
            _ => Err(badarg().into()),
        },
        _ => Err(badarg().into()),
    }
}

fn number(n: usize) -> Term<'static> {
    Term::small(n as i64)
}

/// Has each scheduler tell of allocators: `{Ref, Id, [{Kind, false}]}`, as of those that ERTS was built
/// without. There are none that could be told of.
fn memory_internal<'p>(p: &'p Process, reference: Term<'p>, kinds: Term<'p>) -> BifResult<'p> {
    reference.as_ref().ok_or_else(badarg)?;
    let kinds: Vec<Atom> = kinds
        .list_iter()
        .map(|kind| kind.ok()?.as_atom())
        .collect::<Option<_>>()
        .ok_or_else(badarg)?;
    for id in 1..=sched::schedulers() {
        let heap = Heap::detached();
        let items: Vec<_> = kinds
            .iter()
            .map(|kind| heap.tuple(&[kind.term(), false.into()]))
            .collect();
        let message = heap::Message::of_tuple(&[reference, number(id), heap.list(&items)]);
        process::deliver(p.pid(), process::Signal::from_outside(message));
    }
    Ok(true.into())
}

/// What atomics and locks are made of: native instructions where the processor has them, and no spinlocks.
fn ethread_info(p: &Process) -> Term<'_> {
    let atomics = |name: &str, implementation: &str| {
        p.tuple(&[p.string(name), p.string(implementation), Term::NIL])
    };
    let other = |name: &str| p.tuple(&[p.string(name), p.string("no")]);
    p.list(&[
        atomics("32-bit native atomics", "rust"),
        atomics("64-bit native atomics", "rust"),
        atomics("Double word native atomics", "no"),
        other("Native spinlocks"),
        other("Native rw-spinlocks"),
    ])
}

/// What this is, and where it runs.
fn release_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    Some(match name {
        "ethread_info" => ethread_info(p),
        "otp_release" => p.string(&release().otp),
        "version" => p.string(&release().erts),
        "compat_rel" => Term::small(release().otp.parse().unwrap_or(29)),
        "machine" => p.string("BEAM"),
        "system_architecture" => p.string(ARCHITECTURE),
        "system_version" => {
            let Release { otp, erts } = release();
            let (n, online) = (sched::schedulers(), sched::schedulers_online());
            let dirty = sched::dirty_schedulers();
            let (cpu, cpu_online, io) = (dirty.cpu, dirty.cpu_online(), dirty.io);
            p.string(&format!(
                "Erlang/OTP {otp} [erts-{erts}] [beamline] [64-bit] [smp:{n}:{online}] \
                 [ds:{cpu}:{cpu_online}:{io}]\n"
            ))
        }
        "driver_version" => p.string("3.3"),
        "nif_version" => p.string("2.18"),
        "emu_flavor" => atom(if machine_code::is_on() { "jit" } else { "emu" }),
        "emu_type" | "build_type" => atom("opt"),
        "os_type" => p.tuple(&[atom("unix"), atom(os_name())]),
        "os_version" => {
            let version: Vec<Term<'p>> = os_version().map(number).to_vec();
            p.tuple(&version)
        }
        "wordsize" => Term::small(8),
        "endian" => atom(if cfg!(target_endian = "big") {
            "big"
        } else {
            "little"
        }),
        "creation" => Term::small(this_node().1.into()),
        "c_compiler_used" => p.tuple(&[am::undefined.term(), am::undefined.term()]),
        "hipe_architecture" => am::undefined.term(),
        "dist_ctrl" => {
            let controlled = |entry: &Arc<DistEntry>| {
                let controller = entry.controller()?;
                Some(p.tuple(&[entry.name.term(), controller.term(p)]))
            };
            let all: Vec<Term<'p>> = DistEntry::all().iter().filter_map(controlled).collect();
            p.list(&all)
        }
        // Not one that ERTS knows.
        "allocator" => p.tuple(&[am::undefined.term(), Term::NIL, Term::NIL, Term::NIL]),
        "snifs" => {
            let rows = crate::code::bif::own().map(|row| {
                let (module, function) = (atom(row.module), atom(row.function));
                p.tuple(&[module, function, Term::small(row.arity.into())])
            });
            p.list(&rows.collect::<Vec<_>>())
        }
        _ => return None,
    })
}

fn os_name() -> &'static str {
    if cfg!(target_os = "macos") {
        "darwin"
    } else {
        std::env::consts::OS
    }
}

/// Major, minor and patch number of the system's release.
fn os_version() -> [usize; 3] {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// `{Module, Function, Arity}` of every BIF.
fn all_bifs(p: &Process) -> Term<'_> {
    let row = |bif: &&super::Bif| {
        let arity = Term::small(i64::from(bif.arity));
        p.tuple(&[
            Atom::new(bif.module).term(),
            Atom::new(bif.function).term(),
            arity,
        ])
    };
    p.list(&super::all().iter().map(row).collect::<Vec<_>>())
}

/// Schedulers and processors.
fn scheduler_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    let n = number(sched::schedulers());
    let dirty = sched::dirty_schedulers();
    let (cpu, cpu_online, io) = (
        number(dirty.cpu),
        number(dirty.cpu_online()),
        number(dirty.io),
    );
    let online = number(sched::schedulers_online());
    let active = number(sched::schedulers_active());
    Some(match name {
        "schedulers_online" => number(sched::schedulers_online()),
        "schedulers_active" => number(sched::schedulers_active()),
        "schedulers" | "schedulers_total" | "run_queues" => n,
        "dirty_cpu_schedulers" => cpu,
        "dirty_cpu_schedulers_online" => cpu_online,
        "dirty_io_schedulers" => io,
        "schedulers_state" => p.tuple(&[n, online, active]),
        "all_schedulers_state" => {
            let normal = p.tuple(&[am::normal.term(), n, online, active]);
            let cpu = p.tuple(&[atom("dirty_cpu"), cpu, cpu_online, cpu_online]);
            let io = p.tuple(&[atom("dirty_io"), io, io, io]);
            p.list(&[normal, cpu, io])
        }
        "scheduler_id" => number(sched::current_id()? + 1),
        "multi_scheduling" => blocking(),
        "multi_scheduling_blockers" | "normal_multi_scheduling_blockers" => {
            let pids = online::blockers(name.starts_with("normal")).into_iter();
            p.list(
                &pids
                    .map(|pid| crate::term::Pid(pid).term())
                    .collect::<Vec<_>>(),
            )
        }
        "scheduler_bind_type" => atom("unbound"),
        "scheduler_bindings" => {
            let unbound = vec![atom("unbound"); sched::schedulers()];
            p.tuple(&unbound)
        }
        "cpu_topology" => am::undefined.term(),
        "update_cpu_info" => atom("unchanged"),
        "logical_processors" | "logical_processors_online" => number(processors::online()),
        "logical_processors_available" => number(processors::available()),
        "cpu_quota" => atom("unknown"),
        "context_reductions" => Term::small(process::CONTEXT_REDS),
        "thread_pool_size" => number(port::pool::threads()),
        _ => return None,
    })
}

/// Tables and their limits.
fn limit_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    Some(match name {
        "process_count" => number(process::table().len()),
        "process_limit" => number(process::table().limit()),
        "port_count" => number(port::table().len()),
        "port_limit" => number(port::table().limit()),
        "atom_count" => number(atoms::count()),
        "atom_limit" => number(atoms::limit()),
        "ets_count" => number(crate::ets::registry::all().len()),
        "ets_limit" => number(crate::ets::registry::limit()),
        "outstanding_system_requests_limit" => {
            p.integer(flags().outstanding_system_requests.load(Ordering::Relaxed))
        }
        "async_dist" => Term::bool(process::async_dist_default()),
        "dist_buf_busy_limit" => Term::small(busy_limit() as i64),
        "delayed_node_table_gc" => Term::small(60),
        "halt_flush_timeout" => match halt::flush_limit() {
            Some(limit) => Term::small(limit.into()),
            None => am::infinity.term(),
        },
        "max_integer" => p.big(false, &[u64::MAX; numbers::MAX_LIMBS]),
        _ => return None,
    })
}

/// Heaps and collection.
fn heap_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    let fullsweep_after = || {
        let after = Term::small(process::fullsweep_after().into());
        p.tuple(&[atom("fullsweep_after"), after])
    };
    let min_heap = || p.tuple(&[atom("min_heap_size"), number(process::min_heap_words())]);
    let min_bin_vheap = || {
        let words = process::min_bin_vheap_words();
        p.tuple(&[atom("min_bin_vheap_size"), number(words)])
    };
    let max_heap = MaxHeap::of_system();
    Some(match name {
        "garbage_collection" => p.list(&[
            p.tuple(&[atom("max_heap_size"), number(max_heap.words)]),
            min_bin_vheap(),
            min_heap(),
            fullsweep_after(),
        ]),
        "fullsweep_after" => fullsweep_after(),
        "min_heap_size" => min_heap(),
        "min_bin_vheap_size" => min_bin_vheap(),
        "max_heap_size" => max_heap_map(p, &max_heap),
        "heap_sizes" => {
            let sizes: Vec<_> = heap::heap_sizes().iter().map(|n| number(*n)).collect();
            p.list(&sizes)
        }
        "heap_type" => atom("private"),
        "message_queue_data" => queue_data_name(process::off_heap_messages_default()).term(),
        _ => return None,
    })
}

/// What is built in, and what is not.
fn feature_info(name: &str) -> Option<Term<'static>> {
    Some(match name {
        "smp_support"
        | "threads"
        | "kernel_poll"
        | "constant_pool_support"
        | "port_tasks"
        | "beam_jump_table"
        | "eager_check_io" => true.into(),
        "async_dist"
        | "port_parallelism"
        | "lock_checking"
        | "lock_counting"
        | "debug_compiled"
        | "dynamic_trace_probes"
        | "io_thread"
        | "ets_always_compress"
        | "ets_realloc_moves" => false.into(),
        "break_ignored" => super::os::is_break_ignored().into(),
        "dynamic_trace" => am::none.term(),
        "literal_test" => atom("range"),
        "modified_timing_level" => am::undefined.term(),
        "alloc_util_allocators" => Term::NIL,
        "trace_control_word" => Term::small(crate::matchspec::trace_control_word().into()),
        "system_logger" => SystemLogger::current().term(),
        _ => return None,
    })
}

fn tracing_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    (name == "sequential_tracer").then(|| {
        let tracer = super::seq_trace::system_tracer(p, crate::trace::seq::system_tracer());
        p.tuple(&[atom(name), tracer])
    })
}

/// The last time that `erlang:monotonic_time/0` may give, nanoseconds, as ERTS says it.
const END_TIME: i64 = 8_646_911_283_000_000_000;

/// Clocks.
fn clock_info<'p>(p: &'p Process, name: &str) -> Option<Term<'p>> {
    let source = |clock: &str, now: i64, rest: &[(&str, Term<'p>)]| {
        let resolution = Term::small(1_000_000_000);
        let mut items = vec![
            p.tuple(&[atom("function"), atom("clock_gettime")]),
            p.tuple(&[atom("clock_id"), atom(clock)]),
            p.tuple(&[atom("resolution"), resolution]),
        ];
        items.extend(
            rest.iter()
                .map(|(key, value)| p.tuple(&[atom(key), *value])),
        );
        items.push(p.tuple(&[atom("parallel"), atom("yes")]));
        items.push(p.tuple(&[atom("time"), p.integer(now)]));
        p.list(&items)
    };
    Some(match name {
        "os_monotonic_time_source" => source(
            "CLOCK_MONOTONIC",
            clock::counter_ns(),
            &[
                ("used_resolution", Term::small(1_000_000_000)),
                ("extended", atom("no")),
            ],
        ),
        "os_system_time_source" => source("CLOCK_REALTIME", clock::system_ns(), &[]),
        "start_time" => p.integer(sched::clock::BEGIN_NS),
        "end_time" => p.integer(END_TIME),
        "time_correction" => true.into(),
        "time_warp_mode" => atom(match sched::clock::time_warp() {
            TimeWarp::No => "no_time_warp",
            TimeWarp::Single => "single_time_warp",
            TimeWarp::Multi => "multi_time_warp",
        }),
        "time_offset" => atom(sched::clock::time_offset_state()),
        "snifs" => all_bifs(p),
        "tolerant_timeofday" => atom("enabled"),
        _ => return None,
    })
}

fn system_flag_2<'p>(p: &'p Process, [flag, value]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = flag.as_atom().ok_or_else(badopt)?.name();
    let size = || value.as_index().ok_or_else(badarg);
    let word = |w: u32| Term::small(w.into());
    if let Some(result) = heap_flag(p, name, value) {
        return Ok(result?);
    }
    if let Some(result) = scheduler_flag(p, name, value) {
        return result;
    }
    Ok(match name {
        "trace_control_word" => {
            let new = u32::try_from(size()?).map_err(|_| badarg())?;
            word(crate::matchspec::set_trace_control_word(new))
        }
        "outstanding_system_requests_limit" => {
            let new = size()? as i64;
            if !(1..=134_217_727).contains(&new) {
                return Err(badarg().into());
            }
            let old = &flags().outstanding_system_requests;
            p.integer(old.swap(new, Ordering::Relaxed))
        }
        "system_logger" => SystemLogger::of(value).ok_or_else(badarg)?.set().term(),
        "time_offset" if value.same(atom("finalize")) => process::time_offset::finalize().term(),
        "backtrace_depth" => number(exception::set_backtrace_depth(size()?.min(MAX_BACKTRACE))),
        "sequential_tracer" => return super::seq_trace::set_system_tracer(p, value),
        "reset_seq_trace" => super::seq_trace::reset(),
        "microstate_accounting" => return super::msacc::set(value),
        "cpu_topology" | "scheduler_bind_type" | "erts_alloc" => {
            return Err(notsup().into());
        }
        _ => return Err(badopt().into()),
    })
}

/// Flags of heaps; `None` for others.
fn heap_flag<'p>(
    p: &'p Process,
    name: &str,
    value: Term<'p>,
) -> Option<Result<Term<'p>, Raise<'static>>> {
    let words = || value.as_index().ok_or_else(badarg);
    let words_of_heap = || words().map(|words| heap::next_heap_size(words, false));
    Some(match name {
        "fullsweep_after" => words().map(|after| {
            let after = after.min(u16::MAX.into()) as u32;
            Term::small(process::set_fullsweep_after(after).into())
        }),
        "min_heap_size" => words_of_heap().map(|words| number(process::set_min_heap_words(words))),
        "min_bin_vheap_size" => {
            words_of_heap().map(|words| number(process::set_min_bin_vheap_words(words)))
        }
        "max_heap_size" => {
            let least = process::min_heap_words();
            let new = options::max_heap(value).filter(|new| new.words == 0 || new.words >= least);
            let new = new.ok_or_else(badarg);
            new.map(|new| max_heap_map(p, &MaxHeap::set_of_system(new)))
        }
        _ => return None,
    })
}

/// Flags of schedulers; `None` for others.
fn scheduler_flag<'p>(p: &'p Process, name: &str, value: Term<'p>) -> Option<BifResult<'p>> {
    let all = sched::schedulers();
    let count = value.as_index().filter(|n| (1..=all).contains(n));
    Some(match (name, count) {
        ("schedulers_online", Some(n)) => {
            // Before: it goes by how many were online.
            set_dirty_cpu_online(sched::dirty_schedulers().cpu_online_with(n));
            Ok(number(online::set_schedulers_online(n)))
        }
        ("dirty_cpu_schedulers_online", Some(n))
            if n <= sched::dirty_schedulers().cpu && n <= sched::schedulers_online() =>
        {
            Ok(number(set_dirty_cpu_online(n)))
        }
        ("schedulers_online" | "dirty_cpu_schedulers_online", _) => Err(badarg().into()),
        ("multi_scheduling", _) => multi_scheduling(p, value),
        // It is on as long as one of the processes lives that have asked for it; a process of the runtime counts them.
        ("scheduler_wall_time", _) => match value.as_bool() {
            Some(_) => {
                let counted = Atom::new("system_flag_scheduler_wall_time");
                Err(Control::Trap(export(am::erts_internal, counted, 1), vec![value]).into())
            }
            None => Err(badarg().into()),
        },
        _ => return None,
    })
}

/// Sets how many dirty CPU schedulers are online; the old number.
fn set_dirty_cpu_online(online: usize) -> usize {
    let old = sched::dirty_schedulers().set_cpu_online(online);
    limits_changed();
    old
}

fn multi_scheduling<'p>(p: &'p Process, what: Term<'p>) -> BifResult<'p> {
    let what = what.as_atom().ok_or_else(badarg)?.name();
    match what {
        "block" | "block_normal" => {
            if !online::block(p.pid().0, what == "block_normal", some_run) {
                return Err(Control::Yield.into());
            }
        }
        "unblock" | "unblock_normal" => {
            online::unblock(p.pid().0, what == "unblock_normal");
            limits_changed();
        }
        _ => return Err(badarg().into()),
    }
    Ok(blocking())
}

/// `multi_scheduling`, as it is now.
fn blocking() -> Term<'static> {
    atom(match online::blocking() {
        online::Blocking::Enabled => "enabled",
        online::Blocking::Blocked => "blocked",
        online::Blocking::BlockedNormal => "blocked_normal",
    })
}

/// Source: `MAX_BACKTRACE_SIZE` in `error.h`.
const MAX_BACKTRACE: usize = 64;

/// A total that is also told as the difference to the time it was asked for before.
struct Since(AtomicI64);

impl Since {
    /// `{Total, SinceLastCall}`.
    fn pair<'p>(&self, p: &'p Process, total: i64) -> Term<'p> {
        let before = self.0.swap(total, Ordering::Relaxed);
        p.tuple(&[p.integer(total), p.integer(total - before)])
    }
}

fn statistics_1<'p>(p: &'p Process, [item]: [Term<'p>; 1]) -> BifResult<'p> {
    static REDUCTIONS: Since = Since(AtomicI64::new(0));
    static EXACT_REDUCTIONS: Since = Since(AtomicI64::new(0));
    static RUNTIME: Since = Since(AtomicI64::new(0));
    static WALL_CLOCK: Since = Since(AtomicI64::new(0));
    let [switches, reductions, collections] = sched::totals();
    Ok(match item.as_atom().ok_or_else(badarg)?.name() {
        "context_switches" => p.tuple(&[p.unsigned(switches), Term::small(0)]),
        "garbage_collection" => p.tuple(&[
            p.unsigned(collections),
            p.unsigned(heap::reclaimed_words()),
            Term::small(0),
        ]),
        "reductions" => REDUCTIONS.pair(p, reductions as i64),
        "exact_reductions" => EXACT_REDUCTIONS.pair(p, reductions as i64),
        "runtime" => {
            let cpu = clock::cpu_times();
            RUNTIME.pair(p, (cpu.user_ns + cpu.system_ns) / 1_000_000)
        }
        "wall_clock" => WALL_CLOCK.pair(p, wall_clock_ms()),
        "run_queue" | "total_run_queue_lengths" => total(&queue_lengths(&[Dirty::Cpu])),
        "total_run_queue_lengths_all" => total(&queue_lengths(&KINDS)),
        "total_active_tasks" => total(&active_tasks(&[Dirty::Cpu])),
        "total_active_tasks_all" => total(&active_tasks(&KINDS)),
        "run_queue_lengths" => p.list(&terms_of(&queue_lengths(&[Dirty::Cpu]))),
        "run_queue_lengths_all" => p.list(&terms_of(&queue_lengths(&KINDS))),
        "active_tasks" => p.list(&terms_of(&active_tasks(&[Dirty::Cpu]))),
        "active_tasks_all" => p.list(&terms_of(&active_tasks(&KINDS))),
        "run_queues" => p.tuple(&terms_of(&queue_lengths(&KINDS))),
        "io" => {
            let (input, output) = port::io_bytes();
            p.tuple(&[
                p.tuple(&[atom("input"), p.unsigned(input)]),
                p.tuple(&[atom("output"), p.unsigned(output)]),
            ])
        }
        "scheduler_wall_time" => wall_times(p, sched::schedulers() + sched::dirty_schedulers().cpu),
        "scheduler_wall_time_all" => wall_times(p, all_schedulers() as usize),
        "microstate_accounting" => super::msacc::accounts(p),
        _ => return Err(badarg().into()),
    })
}

/// `[{Scheduler, Worked, Passed}]` of the first `count` schedulers: ordinary ones, then those for dirty work.
fn wall_times(p: &Process, count: usize) -> Term<'_> {
    let Some(times) = sched::wall_time::read() else {
        return am::undefined.term();
    };
    let row = |(index, (worked, passed))| {
        p.tuple(&[number(index + 1), p.unsigned(worked), p.unsigned(passed)])
    };
    let rows = times.into_iter().take(count).enumerate().map(row);
    p.list(&rows.collect::<Vec<_>>())
}

/// What waits for each scheduler, and behind these for the dirty ones of each kind.
fn queue_lengths(dirty: &[Dirty]) -> Vec<usize> {
    let mut lengths = process::run_queues::run_queue_lengths();
    lengths.extend(dirty.iter().map(|kind| queue_of(*kind).len()));
    lengths
}

/// As [`queue_lengths`], with what runs, which is in no queue.
fn active_tasks(dirty: &[Dirty]) -> Vec<usize> {
    let mut lengths = queue_lengths(dirty);
    let (ordinary, behind) = lengths.split_at_mut(sched::schedulers());
    let wall_time = &sched::machine().wall_time;
    for (id, length) in ordinary.iter_mut().enumerate() {
        *length += usize::from(!wall_time.is_idle(id));
    }
    for (kind, length) in dirty.iter().zip(behind) {
        *length += queue_of(*kind).running();
    }
    lengths
}

fn terms_of(lengths: &[usize]) -> Vec<Term<'static>> {
    lengths.iter().copied().map(number).collect()
}

fn total(lengths: &[usize]) -> Term<'static> {
    number(lengths.iter().sum())
}

/// Milliseconds since the machine started.
fn wall_clock_ms() -> i64 {
    (sched::clock::erlang_monotonic_ns() - sched::clock::BEGIN_NS) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matchspec::trace_control_word;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    fn info<'p>(p: &'p Process, item: &str) -> Term<'p> {
        value(system_info_1(p, [atom(item)]))
    }

    #[test]
    fn items_are_those_of_otp() {
        let p = &Process::new(233);
        assert_eq!(info(p, "wordsize").as_small(), Some(8));
        assert_eq!(info(p, "process_limit").as_small(), Some(1_048_576));
        assert_eq!(info(p, "atom_limit").as_small(), Some(1_048_576));
        assert_eq!(
            info(p, "max_integer").as_big().unwrap().limbs().len(),
            65_535
        );
        assert!(
            info(p, "os_type")
                .as_tuple()
                .unwrap()
                .get(0)
                .same(atom("unix"))
        );
        assert_eq!(info(p, "os_version").as_tuple().unwrap().arity(), 3);
        let sizes: Vec<_> = info(p, "heap_sizes")
            .list_iter()
            .map_while(Result::ok)
            .collect();
        let some = [0, 1, 5, 12, 100, sizes.len() - 1].map(|i| sizes[i].as_small().unwrap());
        assert_eq!(some[..4], [12, 38, 233, 6772]);
        assert_eq!(some[5], 885_767_171_276_247);
        assert!(system_info_1(p, [atom("no_such_item")]).is_err());
        assert!(system_info_1(p, [Term::NIL]).is_err());
    }

    #[test]
    fn what_is_online_is_told_and_bad_counts_are_refused() {
        let p = &Process::new(233);
        let all = sched::schedulers() as i64;
        let set = |n: i64| system_flag_2(p, [atom("schedulers_online"), Term::small(n)]);
        assert_eq!(info(p, "schedulers_online").as_small(), Some(all));
        assert_eq!(value(set(all)).as_small(), Some(all));
        assert!(set(0).is_err() && set(all + 1).is_err());
        assert!(info(p, "multi_scheduling").same(atom("enabled")));
        assert!(info(p, "multi_scheduling_blockers").is_nil());
        let snifs = info(p, "snifs").list_iter().count();
        assert_eq!(snifs, crate::code::bif::own().count());
    }

    #[test]
    fn a_flag_tells_its_old_value() {
        let p = &Process::new(233);
        let set = |n| system_flag_2(p, [atom("trace_control_word"), Term::small(n)]);
        assert_eq!(value(set(17)).as_small(), Some(0));
        assert_eq!(trace_control_word(), 17);
        assert_eq!(value(set(0)).as_small(), Some(17));
        assert!(set(-1).is_err());
        assert!(set(1 << 32).is_err());
        assert!(system_flag_2(p, [atom("no_such_flag"), Term::small(1)]).is_err());
    }

    #[test]
    fn a_statistic_tells_what_is_new() {
        let p = &Process::new(233);
        let pair = |item| {
            let pair = value(statistics_1(p, [atom(item)])).as_tuple().unwrap();
            [0, 1].map(|i| pair.get(i).as_small().unwrap())
        };
        let [first, _] = pair("wall_clock");
        std::thread::sleep(std::time::Duration::from_millis(20));
        let [second, since] = pair("wall_clock");
        assert!(since >= 19 && second - first == since);
        assert!(statistics_1(p, [atom("no_such_item")]).is_err());
    }
}
