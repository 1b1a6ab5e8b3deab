//! Environments, processes and ports, messages.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::{Env, api, env, term};
use crate::code::nif::Body;
use crate::exec::nif::Scheduled;
use crate::heap::{Heap, Message, NIF_CHECKS};
use crate::process::registry::{Named, whereis};
use crate::process::{Dirty, SYSTEM, Signal, exists, ports, send, send_to};
use crate::sys::crash;
use crate::term::{Pid, RawTerm, Term, am};

/// An environment of no process, with the heap that its terms lie in.
#[repr(C)]
pub(super) struct Own {
    env: Env,
    heap: Box<Heap>,
}

impl Own {
    /// An empty one, for code of a library.
    pub(super) fn new(library: *const c_void) -> Box<Own> {
        let heap = Box::new(Heap::detached());
        Box::new(Own {
            env: Env::of_heap(&raw const *heap, library),
            heap,
        })
    }

    /// As C knows it.
    pub(super) fn env(&mut self) -> *mut Env {
        &raw mut self.env
    }

    fn clear(&mut self) {
        self.env.temporaries.set(None);
        self.env.exception.set(RawTerm::NONE);
        // In place: the environment has its address.
        *self.heap = Heap::detached();
    }
}

/// Ends the terms of an environment of `enif_alloc_env()`.
///
/// # Safety
/// N1: it is one.
pub(super) unsafe fn clear(env: *mut Env) {
    // SAFETY: by contract.
    unsafe { own(env) }.clear();
}

/// # Safety
/// N1: `env` is of `enif_alloc_env()`.
unsafe fn own<'a>(env: *mut Env) -> &'a mut Own {
    // SAFETY: by contract; an environment is the first field.
    unsafe { &mut *env.cast::<Own>() }
}

/// Under `nif_checks`: all terms of a message's own environment are of that.
///
/// # Safety
/// N1: `env` is of `enif_alloc_env()`, or null.
unsafe fn check_message(env: *mut Env, message: RawTerm) {
    if !NIF_CHECKS || env.is_null() {
        return;
    }
    // SAFETY: by contract.
    if let Err(wrong) = unsafe { own(env) }.heap.verify_fragments(&[message]) {
        crash::abort(&format!("in a message: {wrong}"));
    }
}

/// The pid in an `ErlNifPid`; `None` for an undefined one.
fn pid_of(raw: RawTerm) -> Option<Pid> {
    // SAFETY: N1: an immediate.
    unsafe { term(raw) }.as_pid()
}

/// Sends `message` to a process that is there; whether it is.
fn send_message(env: Option<&Env>, to: Pid, message: Term<'_>) -> bool {
    match env.and_then(Env::process) {
        // What exits sends nothing more.
        Some(p) => {
            !p.shared().orphans_call() && exists(to) && send_to(p, to.term(), message).is_ok()
        }
        None => send(to, Signal::own(Message::copy_of(message), SYSTEM)).is_ok(),
    }
}

/// What is registered under a name.
fn registered(name: RawTerm) -> Option<Term<'static>> {
    // SAFETY: N1: only an atom is looked at.
    let name = unsafe { term(name) }.as_atom()?;
    whereis(name).map(Named::term)
}

api! {
    /// The library's own data.
    fn enif_priv_data(e: *mut Env) -> *mut c_void { super::library::priv_data(env(e)) }

    /// An environment of no process.
    fn enif_alloc_env() -> *mut Env { Box::into_raw(Own::new(ptr::null())).cast() }
    /// Its end, and that of its terms.
    fn enif_free_env(e: *mut Env) { drop(Box::from_raw(e.cast::<Own>())); }
    /// The end of its terms.
    fn enif_clear_env(e: *mut Env) { own(e).clear(); }

    /// Sends a message. With an environment of its own, which is empty afterwards; else a copy of a term of the caller's.
    /// Whether the receiver is there.
    fn enif_send(e: *mut Env, to: *const RawTerm, message_env: *mut Env, message: RawTerm) -> c_int {
        let Some(to) = pid_of(*to) else { return 0 };
        check_message(message_env, message);
        let sent = send_message(e.as_ref(), to, term(message));
        if sent && !message_env.is_null() {
            own(message_env).clear();
        }
        c_int::from(sent)
    }
    /// Has a port take data.
    fn enif_port_command(e: *mut Env, to: *const RawTerm, message_env: *mut Env, data: RawTerm) -> c_int {
        check_message(message_env, data);
        let Some(port) = term(*to).as_port().filter(|port| ports::exists(*port)) else { return 0 };
        let Ok(bytes) = crate::value::iolist::to_vec(term(data)) else { return 0 };
        let _ = e;
        ports::command(port, bytes);
        if !message_env.is_null() {
            own(message_env).clear();
        }
        1
    }

    /// The process that called.
    fn enif_self(e: *mut Env, pid: *mut RawTerm) -> *mut RawTerm {
        let Some(p) = env(e).process() else { return ptr::null_mut() };
        pid.write(p.pid().term().raw());
        pid
    }
    /// A pid of this node.
    fn enif_get_local_pid(_e: *mut Env, t: RawTerm, pid: *mut RawTerm) -> c_int {
        if pid_of(t).is_none() { return 0 }
        pid.write(t);
        1
    }
    /// A port of this node.
    fn enif_get_local_port(_e: *mut Env, t: RawTerm, port: *mut RawTerm) -> c_int {
        if term(t).as_port().is_none() { return 0 }
        port.write(t);
        1
    }
    /// The process of a name.
    fn enif_whereis_pid(e: *mut Env, name: RawTerm, pid: *mut RawTerm) -> c_int {
        registered(name).map_or(0, |who| enif_get_local_pid(e, who.raw(), pid))
    }
    /// The port of a name.
    fn enif_whereis_port(e: *mut Env, name: RawTerm, port: *mut RawTerm) -> c_int {
        registered(name).map_or(0, |who| enif_get_local_port(e, who.raw(), port))
    }
    /// No process's pid.
    fn enif_set_pid_undefined(pid: *mut RawTerm) { pid.write(am::undefined.raw()); }
    /// Is it no process's pid?
    fn enif_is_pid_undefined(pid: *const RawTerm) -> c_int { c_int::from(*pid == am::undefined.raw()) }
    /// Is the process that called alive?
    fn enif_is_current_process_alive(e: *mut Env) -> c_int {
        c_int::from(env(e).process().is_some_and(|p| !p.shared().orphans_call() && !p.is_exiting()))
    }
    /// Is the process alive?
    fn enif_is_process_alive(_e: *mut Env, pid: *const RawTerm) -> c_int {
        c_int::from(pid_of(*pid).is_some_and(exists))
    }
    /// Is the port open?
    fn enif_is_port_alive(_e: *mut Env, port: *const RawTerm) -> c_int {
        c_int::from(term(*port).as_port().is_some_and(ports::exists))
    }

    /// Takes part of the caller's time slice; whether it is used up.
    fn enif_consume_timeslice(e: *mut Env, percent: c_int) -> c_int {
        let Some(p) = env(e).process() else { return 0 };
        p.consume_percent(usize::try_from(percent).unwrap_or(0).clamp(1, 100));
        c_int::from(p.reds_left() == 0)
    }
    /// Has the call go on in another function, on the schedulers that `flags` say.
    fn enif_schedule_nif(
        e: *mut Env, name: *const c_char, flags: c_int, body: Body, argc: c_int, argv: *const RawTerm,
    ) -> RawTerm {
        let name = super::read::atom_of(name, libc::strlen(name), super::read::Encoding::Latin1, false);
        let dirty = match flags {
            0 => Some(None),
            1 => Some(Some(Dirty::Cpu)),
            2 => Some(Some(Dirty::Io)),
            _ => None,
        };
        let (Some(_), Some(dirty), Ok(argc @ 0..=255)) = (name, dirty, usize::try_from(argc)) else {
            return super::build::raise(env(e), am::badarg.raw());
        };
        let args = (0..argc).map(|i| *argv.add(i)).collect();
        env(e).scheduled.set(Some(Box::new(Scheduled { body, dirty, args })));
        RawTerm::NONE
    }
}
