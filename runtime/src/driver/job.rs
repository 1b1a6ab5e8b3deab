//! What a driver has done asynchronously (`driver_async()`), in the threads of `port/pool.rs`.
//!
//! Without threads (`+A 0`), and in a virtual run, a job is done at once.

use std::ffi::{c_long, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::instance::{Instance, of};
use super::lock::DataLockRef;
use super::table::Use;
use super::{DrvPort, api};
use crate::port::pool;
use crate::sys::chance;
use crate::sys::crash::Native;

type Work = unsafe extern "C" fn(*mut c_void);

/// A job of a driver.
struct Job {
    port: usize,
    invoke: Work,
    data: *mut c_void,
    free: Option<Work>,
    native: Arc<Native>,
    _data_lock: Option<DataLockRef>,
    /// Last: the driver may end with it.
    _used: Use,
}

// SAFETY: D2: the library guards its data.
unsafe impl Send for Job {}

impl Job {
    fn run(self) {
        let _running = self.native.running();
        // SAFETY: D1: the reference keeps the driver.
        unsafe { (self.invoke)(self.data) };
        let this = of(std::ptr::without_provenance_mut(self.port));
        let is_taken = this.is_some_and(|this| ready(&this, self.data));
        if let Some(free) = self.free.filter(|_| !is_taken) {
            // SAFETY: D1: as above.
            unsafe { free(self.data) };
        }
    }
}

/// Has the driver take the data of a job that is done; whether it has.
fn ready(this: &Arc<Instance>, data: *mut c_void) -> bool {
    let Some(ready) = this.driver.entry.ready_async else {
        return false;
    };
    // SAFETY: D1, D2.
    this.call(|_, of_port| unsafe { ready(of_port, data) })
        .is_some()
}

static LAST: AtomicI64 = AtomicI64::new(0);

/// Are jobs done at once?
fn is_at_once() -> bool {
    pool::threads() == 0 || chance::form().is_virtual()
}

api! {
    /// A key for the jobs of a port, which are then done in turn.
    fn driver_async_port_key(port: DrvPort) -> c_uint {
        (port.addr() as c_uint).wrapping_mul(2_654_435_761)
    }
    /// Has `invoke` called in a thread, and then the driver with the data, or `free` where the port is gone. The job's
    /// number; -1 where there is no port.
    fn driver_async(
        port: DrvPort, key: *mut c_uint, invoke: Work, data: *mut c_void, free: Option<Work>,
    ) -> c_long {
        let Some(this) = of(port) else { return -1 };
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let threads = pool::threads().max(1) as c_uint;
        let thread = key.as_ref().map_or(number as c_uint, |key| *key) % threads;
        if !key.is_null() {
            key.write(thread);
        }
        let job = Job {
            port: port.addr(),
            invoke,
            data,
            free,
            native: this.driver.native.clone(),
            _data_lock: this.data_lock.lock().clone(),
            _used: this.used.again(),
        };
        if is_at_once() {
            job.run();
            return if pool::threads() == 0 { 0 } else { number };
        }
        pool::run(thread as usize, move || job.run());
        number
    }
}
