//! NIFs: native functions of libraries, as heads of functions refer to them. Invariant C3 of `code/mod.rs`.
#![expect(unsafe_code, reason = "a library is known by its address")]

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process::Dirty;
use crate::sys::crash::Native;
use crate::term::RawTerm;

/// The body of a NIF: environment (`ErlNifEnv`), number of arguments, arguments.
pub(crate) type Body = unsafe extern "C" fn(*mut c_void, c_int, *const RawTerm) -> RawTerm;

/// A NIF: what stands behind a function of Erlang.
pub(crate) struct Nif {
    /// The function.
    pub(crate) body: Body,
    /// The dirty schedulers that it runs on; `None` for the ordinary ones.
    pub(crate) dirty: Option<Dirty>,
    /// A halt waits for its calls.
    delays_halt: AtomicBool,
    /// A call is no more than that: it is made where the caller runs, and no halt waits for it.
    is_plain: AtomicBool,
    /// The library it is of, for the interface's own functions.
    pub(crate) library: NonNull<c_void>,
    /// What is said of it where it crashes.
    pub(crate) native: Native,
}

impl Nif {
    /// Offsets for compiled code, which makes plain calls itself.
    pub(crate) const BODY: usize = offset_of!(Nif, body);
    pub(crate) const IS_PLAIN: usize = offset_of!(Nif, is_plain);
    pub(crate) const LIBRARY: usize = offset_of!(Nif, library);
    pub(crate) const NATIVE: usize = offset_of!(Nif, native);

    /// A NIF of a library that is not known yet.
    pub(crate) fn new(body: Body, dirty: Option<Dirty>, native: Native) -> Nif {
        Nif {
            body,
            dirty,
            delays_halt: AtomicBool::new(false),
            is_plain: AtomicBool::new(dirty.is_none()),
            library: NonNull::dangling(),
            native,
        }
    }

    /// Whether a halt waits for its calls.
    #[inline]
    pub(crate) fn delays_halt(&self) -> bool {
        self.delays_halt.load(Ordering::Relaxed)
    }

    /// A halt waits for its calls from now on, or no more.
    pub(crate) fn delay_halt(&self, delays: bool) {
        self.delays_halt.store(delays, Ordering::Release);
        let is_plain = !delays && self.dirty.is_none();
        self.is_plain.store(is_plain, Ordering::Release);
    }
}

// SAFETY: C3: the library outlives the code whose heads name it, and is made for all threads.
unsafe impl Send for Nif {}
// SAFETY: as for `Send`.
unsafe impl Sync for Nif {}

/// The modules that have opened a library, in the order in which they did (`erlang:system_info(taints)`).
pub(crate) mod taints {
    use parking_lot::Mutex;

    use crate::term::Atom;

    static TAINTS: Mutex<Vec<Atom>> = Mutex::new(Vec::new());

    /// `module` opens a library.
    pub(crate) fn add(module: Atom) {
        let mut taints = TAINTS.lock();
        if !taints.contains(&module) {
            taints.push(module);
        }
    }

    /// All of them.
    pub(crate) fn all() -> Vec<Atom> {
        TAINTS.lock().clone()
    }
}

/// The calls that a halt waits for.
pub(crate) mod delaying {
    use parking_lot::{Condvar, Mutex};

    static CALLS: Mutex<usize> = Mutex::new(0);
    static ENDED: Condvar = Condvar::new();

    /// A call, until it is dropped.
    pub(crate) struct Call(());

    impl Call {
        /// One begins.
        pub(crate) fn begin() -> Call {
            *CALLS.lock() += 1;
            Call(())
        }
    }

    impl Drop for Call {
        fn drop(&mut self) {
            *CALLS.lock() -= 1;
            ENDED.notify_all();
        }
    }

    /// Waits until there is none. No other begins from then on.
    pub(crate) fn wait() {
        let mut calls = CALLS.lock();
        ENDED.wait_while(&mut calls, |calls| *calls > 0);
        parking_lot::MutexGuard::leak(calls);
    }
}
