//! Data of threads, by keys. There is no limit to the keys: POSIX has 1024 at most, and ERTS has more.
//! Source: `erl_drv_thread.c`, OTP 29.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Which keys are in use.
static KEYS: Mutex<Vec<bool>> = Mutex::new(Vec::new());

/// The most keys that were in use, to be read without the lock.
static MOST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's data by key.
    static DATA: RefCell<Vec<*mut c_void>> = const { RefCell::new(Vec::new()) };
}

/// The lowest key that is free, which is in use now.
pub(super) fn create() -> c_int {
    let mut keys = KEYS.lock();
    let free = keys.iter().position(|is_used| !is_used);
    let key = free.unwrap_or(keys.len());
    match keys.get_mut(key) {
        Some(is_used) => *is_used = true,
        None => keys.push(true),
    }
    MOST.store(keys.len(), Ordering::Release);
    c_int::try_from(key).expect("keys are few")
}

/// The key is free.
pub(super) fn destroy(key: c_int) {
    KEYS.lock()[checked(key)] = false;
}

/// Sets this thread's data. Nothing is kept of a thread that ends.
pub(super) fn set(key: c_int, data: *mut c_void) {
    let key = checked(key);
    let _ = DATA.try_with(|all| {
        let mut all = all.borrow_mut();
        if all.len() <= key {
            all.resize(key + 1, ptr::null_mut());
        }
        all[key] = data;
    });
}

/// This thread's data; null where none were set.
pub(super) fn get(key: c_int) -> *mut c_void {
    let key = checked(key);
    let found = DATA.try_with(|all| all.borrow().get(key).copied());
    found.ok().flatten().unwrap_or(ptr::null_mut())
}

/// A key that is or was in use. Another ends the machine, as in ERTS.
fn checked(key: c_int) -> usize {
    let is_known = |key: &usize| *key < MOST.load(Ordering::Acquire);
    let Some(key) = usize::try_from(key).ok().filter(is_known) else {
        eprintln!("Fatal error: {key} is no key of data of threads");
        std::process::abort();
    };
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_and_data_of_each_thread() {
        let keys: Vec<c_int> = (0..3000).map(|_| create()).collect();
        let address = |n: c_int| ptr::without_provenance_mut(n as usize + 1);
        for key in &keys {
            assert!(get(*key).is_null());
            set(*key, address(*key));
        }
        let other = keys.clone();
        std::thread::spawn(move || assert!(other.iter().all(|key| get(*key).is_null())))
            .join()
            .expect("its assertion holds");
        assert!(keys.iter().all(|key| get(*key) == address(*key)));
        for key in &keys {
            set(*key, ptr::null_mut());
            destroy(*key);
        }
        assert!(keys.contains(&create()));
    }
}
