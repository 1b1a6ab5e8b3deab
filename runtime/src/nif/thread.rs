//! Threads, locks and data of threads, as POSIX has them; memory; libraries.

mod data;

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::api;

/// A lock with its name.
#[repr(C)]
pub(crate) struct Named<T> {
    inner: T,
    name: *mut c_char,
}

impl<T> Named<T> {
    /// A lock that `init` makes; null where the system refuses one.
    ///
    /// # Safety
    /// NF1: `name` is null or a text.
    unsafe fn create(
        name: *const c_char,
        empty: T,
        init: impl FnOnce(*mut T) -> c_int,
    ) -> *mut Named<T> {
        let name = match name.is_null() {
            true => ptr::null_mut(),
            // SAFETY: by contract.
            false => unsafe { libc::strdup(name) },
        };
        let mut this = Box::new(Named { inner: empty, name });
        match init(&raw mut this.inner) {
            0 => Box::into_raw(this),
            _ => ptr::null_mut(),
        }
    }

    /// # Safety
    /// NF1: null, or created and not destroyed.
    unsafe fn destroy(this: *mut Named<T>, end: impl FnOnce(*mut T) -> c_int) {
        if this.is_null() {
            return;
        }
        // SAFETY: by contract.
        unsafe {
            end(&raw mut (*this).inner);
            libc::free((*this).name.cast());
            drop(Box::from_raw(this));
        }
    }
}

pub(crate) type Mutex = Named<libc::pthread_mutex_t>;
pub(crate) type Cond = Named<libc::pthread_cond_t>;
pub(crate) type RwLock = Named<libc::pthread_rwlock_t>;

/// A thread of a library's.
pub(crate) struct Thread {
    id: libc::pthread_t,
    name: *mut c_char,
}

/// What a new thread runs, as `support.c` has it.
#[repr(C)]
struct Start {
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    thread: *mut Thread,
}

thread_local! {
    /// This thread, if a library has made it.
    static THIS: std::cell::Cell<*mut Thread> = const { std::cell::Cell::new(ptr::null_mut()) };
}

unsafe extern "C" {
    /// Runs a [`Start`], which it frees, in a frame that `enif_thread_exit()` may leave.
    safe fn beamline_nif_thread(start: *mut c_void) -> *mut c_void;
}

/// A thread that a library has made begins.
#[unsafe(no_mangle)]
extern "C" fn beamline_nif_this(thread: *mut c_void) {
    THIS.set(thread.cast());
}

/// # Safety
/// NF1.
unsafe fn create(
    name: *mut c_char,
    tid: *mut *mut Thread,
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    options: *const c_int,
) -> c_int {
    const KIB_WORDS: usize = 1024 * 8;
    // SAFETY: by contract; the attributes are this function's.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        if let Some(kilowords) = options
            .as_ref()
            .and_then(|size| usize::try_from(*size).ok())
        {
            let bytes = (kilowords * KIB_WORDS).max(libc::PTHREAD_STACK_MIN);
            libc::pthread_attr_setstacksize(&raw mut attributes, bytes.next_multiple_of(4096));
        }
        let name = if name.is_null() {
            ptr::null_mut()
        } else {
            libc::strdup(name)
        };
        let thread = Box::into_raw(Box::new(Thread { id: 0, name }));
        let begin = libc::malloc(size_of::<Start>()).cast::<Start>();
        begin.write(Start {
            function,
            argument,
            thread,
        });
        let (id, attributes) = (&raw mut (*thread).id, &raw mut attributes);
        let failed = libc::pthread_create(id, attributes, beamline_nif_thread, begin.cast());
        libc::pthread_attr_destroy(attributes);
        if failed == 0 {
            tid.write(thread);
        } else {
            libc::free(begin.cast());
            drop(Box::from_raw(thread));
        }
        failed
    }
}

/// # Safety
/// NF1.
unsafe fn told(
    result: *const c_char,
    error: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    arg: *mut c_void,
) {
    if let Some(error) = error {
        // SAFETY: by contract.
        unsafe { error(arg, result) };
    }
}

api! {
    /// Memory.
    fn enif_alloc(size: usize) -> *mut c_void { libc::malloc(size) }
    /// More or less of it.
    fn enif_realloc(memory: *mut c_void, size: usize) -> *mut c_void { libc::realloc(memory, size) }
    /// Gives it back.
    fn enif_free(memory: *mut c_void) { libc::free(memory); }

    /// A mutex.
    fn enif_mutex_create(name: *mut c_char) -> *mut Mutex {
        Named::create(name, libc::PTHREAD_MUTEX_INITIALIZER, |it| libc::pthread_mutex_init(it, ptr::null()))
    }
    /// Its end.
    fn enif_mutex_destroy(it: *mut Mutex) { Named::destroy(it, |it| libc::pthread_mutex_destroy(it)); }
    /// Locks it if it is free: 0, else `EBUSY`.
    fn enif_mutex_trylock(it: *mut Mutex) -> c_int { libc::pthread_mutex_trylock(&raw mut (*it).inner) }
    /// Locks it.
    fn enif_mutex_lock(it: *mut Mutex) { libc::pthread_mutex_lock(&raw mut (*it).inner); }
    /// Unlocks it.
    fn enif_mutex_unlock(it: *mut Mutex) { libc::pthread_mutex_unlock(&raw mut (*it).inner); }
    /// Its name.
    fn enif_mutex_name(it: *mut Mutex) -> *mut c_char { it.as_ref().map_or(ptr::null_mut(), |it| it.name) }

    /// A condition.
    fn enif_cond_create(name: *mut c_char) -> *mut Cond {
        Named::create(name, libc::PTHREAD_COND_INITIALIZER, |it| libc::pthread_cond_init(it, ptr::null()))
    }
    /// Its end.
    fn enif_cond_destroy(it: *mut Cond) { Named::destroy(it, |it| libc::pthread_cond_destroy(it)); }
    /// Wakes one that waits.
    fn enif_cond_signal(it: *mut Cond) { libc::pthread_cond_signal(&raw mut (*it).inner); }
    /// Wakes all that wait.
    fn enif_cond_broadcast(it: *mut Cond) { libc::pthread_cond_broadcast(&raw mut (*it).inner); }
    /// Waits, the mutex unlocked meanwhile.
    fn enif_cond_wait(it: *mut Cond, mutex: *mut Mutex) {
        libc::pthread_cond_wait(&raw mut (*it).inner, &raw mut (*mutex).inner);
    }
    /// Its name.
    fn enif_cond_name(it: *mut Cond) -> *mut c_char { it.as_ref().map_or(ptr::null_mut(), |it| it.name) }

    /// A lock for many readers or one writer.
    fn enif_rwlock_create(name: *mut c_char) -> *mut RwLock {
        Named::create(name, libc::PTHREAD_RWLOCK_INITIALIZER, |it| libc::pthread_rwlock_init(it, ptr::null()))
    }
    /// Its end.
    fn enif_rwlock_destroy(it: *mut RwLock) { Named::destroy(it, |it| libc::pthread_rwlock_destroy(it)); }
    /// Locks it for reading if it is free for that: 0, else `EBUSY`.
    fn enif_rwlock_tryrlock(it: *mut RwLock) -> c_int { libc::pthread_rwlock_tryrdlock(&raw mut (*it).inner) }
    /// Locks it for reading.
    fn enif_rwlock_rlock(it: *mut RwLock) { libc::pthread_rwlock_rdlock(&raw mut (*it).inner); }
    /// Unlocks it.
    fn enif_rwlock_runlock(it: *mut RwLock) { libc::pthread_rwlock_unlock(&raw mut (*it).inner); }
    /// Locks it for writing if it is free: 0, else `EBUSY`.
    fn enif_rwlock_tryrwlock(it: *mut RwLock) -> c_int { libc::pthread_rwlock_trywrlock(&raw mut (*it).inner) }
    /// Locks it for writing.
    fn enif_rwlock_rwlock(it: *mut RwLock) { libc::pthread_rwlock_wrlock(&raw mut (*it).inner); }
    /// Unlocks it.
    fn enif_rwlock_rwunlock(it: *mut RwLock) { libc::pthread_rwlock_unlock(&raw mut (*it).inner); }
    /// Its name.
    fn enif_rwlock_name(it: *mut RwLock) -> *mut c_char { it.as_ref().map_or(ptr::null_mut(), |it| it.name) }

    /// A key of data that each thread has its own of: 0.
    fn enif_tsd_key_create(_name: *mut c_char, key: *mut c_int) -> c_int {
        key.write(data::create());
        0
    }
    /// Its end. Data that threads have left under it are found under a later key of the same number.
    fn enif_tsd_key_destroy(key: c_int) { data::destroy(key); }
    /// Sets this thread's data.
    fn enif_tsd_set(key: c_int, data: *mut c_void) { data::set(key, data); }
    /// This thread's data.
    fn enif_tsd_get(key: c_int) -> *mut c_void { data::get(key) }

    /// Options of a thread: the size of its stack, in thousands of words.
    fn enif_thread_opts_create(_name: *mut c_char) -> *mut c_int { Box::into_raw(Box::new(-1)) }
    /// Their end.
    fn enif_thread_opts_destroy(options: *mut c_int) { drop(Box::from_raw(options)); }
    /// A thread; 0, or an error's number.
    fn enif_thread_create(
        name: *mut c_char, tid: *mut *mut Thread, function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void, options: *const c_int,
    ) -> c_int {
        create(name, tid, function, argument, options)
    }
    /// This thread.
    fn enif_thread_self() -> *mut Thread {
        let this = THIS.get();
        if this.is_null() {
            THIS.set(Box::into_raw(Box::new(Thread { id: libc::pthread_self(), name: ptr::null_mut() })));
        }
        THIS.get()
    }
    /// Are they the same thread?
    fn enif_equal_tids(a: *const Thread, b: *const Thread) -> c_int {
        c_int::from(a == b || libc::pthread_equal((*a).id, (*b).id) != 0)
    }
    /// Waits for a thread's end.
    fn enif_thread_join(tid: *mut Thread, result: *mut *mut c_void) -> c_int {
        let failed = libc::pthread_join((*tid).id, result);
        if failed == 0 {
            libc::free((*tid).name.cast());
            drop(Box::from_raw(tid));
        }
        failed
    }
    /// Its name.
    fn enif_thread_name(tid: *const Thread) -> *mut c_char { (*tid).name }
    /// The kind of this thread: 1 an ordinary scheduler, 2 a dirty CPU, 3 a dirty I/O one, 0 another.
    fn enif_thread_type() -> c_int { crate::exec::dirty::kind_of_thread() }

    /// Opens a library; null, and a text for `error`, where that fails.
    fn enif_dlopen(
        name: *const c_char, error: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, arg: *mut c_void,
    ) -> *mut c_void {
        let handle = super::library::open_named(name);
        if handle.is_null() {
            told(libc::dlerror(), error, arg);
        }
        handle
    }
    /// What a library has under a name.
    fn enif_dlsym(
        handle: *mut c_void, symbol: *const c_char,
        error: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>, arg: *mut c_void,
    ) -> *mut c_void {
        let found = libc::dlsym(handle, symbol);
        if found.is_null() {
            told(libc::dlerror(), error, arg);
        }
        found
    }
    /// The value of an environment variable: 0; 1 where there is none; -1 where there is not enough room.
    fn enif_getenv(key: *const c_char, value: *mut c_char, size: *mut usize) -> c_int {
        super::time::getenv(key, value, size)
    }
}
