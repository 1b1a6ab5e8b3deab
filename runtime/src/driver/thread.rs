//! Threads and their locks, which NIFs have under other names; memory.

use std::ffi::{c_char, c_int, c_void};

use super::api;
use crate::nif::thread::*;

unsafe extern "C" {
    fn erl_drv_thread_exit();
}

/// The function of `support.c`.
#[used]
pub(super) static IN_C: &[super::Symbol] = &[super::Symbol(
    "erl_drv_thread_exit",
    erl_drv_thread_exit as *const (),
)];

api! {
    /// Memory.
    fn driver_alloc(size: usize) -> *mut c_void { enif_alloc(size) }
    /// More or less of it.
    fn driver_realloc(memory: *mut c_void, size: usize) -> *mut c_void { enif_realloc(memory, size) }
    /// Gives it back.
    fn driver_free(memory: *mut c_void) { enif_free(memory); }

    /// A mutex.
    fn erl_drv_mutex_create(name: *mut c_char) -> *mut Mutex { enif_mutex_create(name) }
    /// Its end.
    fn erl_drv_mutex_destroy(it: *mut Mutex) { enif_mutex_destroy(it); }
    /// Locks it if it is free: 0, else `EBUSY`.
    fn erl_drv_mutex_trylock(it: *mut Mutex) -> c_int { enif_mutex_trylock(it) }
    /// Locks it.
    fn erl_drv_mutex_lock(it: *mut Mutex) { enif_mutex_lock(it); }
    /// Unlocks it.
    fn erl_drv_mutex_unlock(it: *mut Mutex) { enif_mutex_unlock(it); }
    /// Its name.
    fn erl_drv_mutex_name(it: *mut Mutex) -> *mut c_char { enif_mutex_name(it) }

    /// A condition.
    fn erl_drv_cond_create(name: *mut c_char) -> *mut Cond { enif_cond_create(name) }
    /// Its end.
    fn erl_drv_cond_destroy(it: *mut Cond) { enif_cond_destroy(it); }
    /// Wakes one that waits.
    fn erl_drv_cond_signal(it: *mut Cond) { enif_cond_signal(it); }
    /// Wakes all that wait.
    fn erl_drv_cond_broadcast(it: *mut Cond) { enif_cond_broadcast(it); }
    /// Waits, the mutex unlocked meanwhile.
    fn erl_drv_cond_wait(it: *mut Cond, mutex: *mut Mutex) { enif_cond_wait(it, mutex); }
    /// Its name.
    fn erl_drv_cond_name(it: *mut Cond) -> *mut c_char { enif_cond_name(it) }

    /// A lock for many readers or one writer.
    fn erl_drv_rwlock_create(name: *mut c_char) -> *mut RwLock { enif_rwlock_create(name) }
    /// Its end.
    fn erl_drv_rwlock_destroy(it: *mut RwLock) { enif_rwlock_destroy(it); }
    /// Locks it for reading if it is free for that: 0, else `EBUSY`.
    fn erl_drv_rwlock_tryrlock(it: *mut RwLock) -> c_int { enif_rwlock_tryrlock(it) }
    /// Locks it for reading.
    fn erl_drv_rwlock_rlock(it: *mut RwLock) { enif_rwlock_rlock(it); }
    /// Unlocks it.
    fn erl_drv_rwlock_runlock(it: *mut RwLock) { enif_rwlock_runlock(it); }
    /// Locks it for writing if it is free: 0, else `EBUSY`.
    fn erl_drv_rwlock_tryrwlock(it: *mut RwLock) -> c_int { enif_rwlock_tryrwlock(it) }
    /// Locks it for writing.
    fn erl_drv_rwlock_rwlock(it: *mut RwLock) { enif_rwlock_rwlock(it); }
    /// Unlocks it.
    fn erl_drv_rwlock_rwunlock(it: *mut RwLock) { enif_rwlock_rwunlock(it); }
    /// Its name.
    fn erl_drv_rwlock_name(it: *mut RwLock) -> *mut c_char { enif_rwlock_name(it) }

    /// A key of data that each thread has its own of.
    fn erl_drv_tsd_key_create(name: *mut c_char, key: *mut c_int) -> c_int { enif_tsd_key_create(name, key) }
    /// Its end.
    fn erl_drv_tsd_key_destroy(key: c_int) { enif_tsd_key_destroy(key); }
    /// Sets this thread's data.
    fn erl_drv_tsd_set(key: c_int, data: *mut c_void) { enif_tsd_set(key, data); }
    /// This thread's data.
    fn erl_drv_tsd_get(key: c_int) -> *mut c_void { enif_tsd_get(key) }

    /// Options of a thread: the size of its stack, in thousands of words.
    fn erl_drv_thread_opts_create(name: *mut c_char) -> *mut c_int { enif_thread_opts_create(name) }
    /// Their end.
    fn erl_drv_thread_opts_destroy(options: *mut c_int) { enif_thread_opts_destroy(options); }
    /// A thread; 0, or an error's number.
    fn erl_drv_thread_create(
        name: *mut c_char, tid: *mut *mut Thread, function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void, options: *const c_int,
    ) -> c_int {
        enif_thread_create(name, tid, function, argument, options)
    }
    /// This thread.
    fn erl_drv_thread_self() -> *mut Thread { enif_thread_self() }
    /// Are they the same thread?
    fn erl_drv_equal_tids(a: *const Thread, b: *const Thread) -> c_int { enif_equal_tids(a, b) }
    /// Waits for a thread's end.
    fn erl_drv_thread_join(tid: *mut Thread, result: *mut *mut c_void) -> c_int { enif_thread_join(tid, result) }
    /// Its name.
    fn erl_drv_thread_name(tid: *const Thread) -> *mut c_char { enif_thread_name(tid) }
}
