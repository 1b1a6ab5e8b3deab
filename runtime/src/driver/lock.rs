//! The data lock of a port, which guards its queue for threads of the library.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, Ordering};

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;

use super::instance::of;
use super::{DrvPort, api};

/// A data lock, with the count of its references: those of the library, its port's, and one for each job.
pub(super) struct DataLock {
    lock: RawMutex,
    count: AtomicIsize,
}

/// A reference to a lock.
pub(super) struct DataLockRef(NonNull<DataLock>);

// SAFETY: NF1: the count keeps the lock, and both are for threads.
unsafe impl Send for DataLockRef {}

impl Clone for DataLockRef {
    fn clone(&self) -> DataLockRef {
        // SAFETY: NF1: this reference keeps the lock.
        unsafe { self.0.as_ref() }
            .count
            .fetch_add(1, Ordering::AcqRel);
        DataLockRef(self.0)
    }
}

impl Drop for DataLockRef {
    fn drop(&mut self) {
        // SAFETY: NF1: gives up the reference.
        unsafe { release(self.0.as_ptr()) };
    }
}

/// The lock that a library has in hand.
///
/// # Safety
/// NF1: there is a reference to it.
unsafe fn at<'a>(lock: *mut DataLock) -> &'a DataLock {
    // SAFETY: by contract.
    unsafe { &*lock }
}

/// One reference less; how many are left.
///
/// # Safety
/// NF1: the caller gives up a reference.
unsafe fn release(lock: *mut DataLock) -> isize {
    // SAFETY: by contract; made as a box, and nobody has the last reference but the caller.
    unsafe {
        let left = at(lock).count.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 {
            drop(Box::from_raw(lock));
        }
        left
    }
}

api! {
    /// Creates the data lock of a port; null where it has one. The port has the one reference.
    fn driver_pdl_create(port: DrvPort) -> *mut DataLock {
        let Some(this) = of(port) else { return std::ptr::null_mut() };
        let mut place = this.data_lock.lock();
        if place.is_some() { return std::ptr::null_mut() }
        let new = DataLock { lock: RawMutex::INIT, count: AtomicIsize::new(1) };
        let new = NonNull::from(Box::leak(Box::new(new)));
        *place = Some(DataLockRef(new));
        new.as_ptr()
    }
    /// Locks.
    fn driver_pdl_lock(lock: *mut DataLock) {
        at(lock).count.fetch_add(1, Ordering::AcqRel);
        at(lock).lock.lock();
    }
    /// Unlocks.
    fn driver_pdl_unlock(lock: *mut DataLock) {
        at(lock).lock.unlock();
        release(lock);
    }
    /// How many references there are.
    fn driver_pdl_get_refc(lock: *mut DataLock) -> isize { at(lock).count.load(Ordering::Acquire) }
    /// One reference more; how many there are.
    fn driver_pdl_inc_refc(lock: *mut DataLock) -> isize { at(lock).count.fetch_add(1, Ordering::AcqRel) + 1 }
    /// One reference less; how many there are.
    fn driver_pdl_dec_refc(lock: *mut DataLock) -> isize { release(lock) }
}
