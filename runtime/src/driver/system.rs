//! Time, the environment, libraries, errors, and facts about the system.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr;

use super::{api, errno_id};
use crate::nif::time::{
    enif_convert_time_unit, enif_monotonic_time, enif_system_info, enif_time_offset, getenv, text,
};
use crate::sched::clock::now_microseconds;
use crate::sys::environment::set_variable;

/// `ErlDrvNowData`.
#[repr(C)]
pub(super) struct Now {
    megaseconds: c_ulong,
    seconds: c_ulong,
    microseconds: c_ulong,
}

thread_local! {
    /// What the system's loader has last said to this thread.
    static DL_ERROR: Cell<*const c_char> = const { Cell::new(ptr::null()) };
}

/// Keeps what the system's loader says.
fn keep_dl_error() {
    // SAFETY: NF1: null, or a text that stays until the next failure.
    let said = unsafe {
        let said = libc::dlerror();
        (!said.is_null()).then(|| CStr::from_ptr(said).to_string_lossy().into_owned())
    };
    DL_ERROR.set(text(&said.unwrap_or_default()));
}

api! {
    /// `erlang:monotonic_time/1`.
    fn erl_drv_monotonic_time(unit: c_int) -> i64 { enif_monotonic_time(unit) }
    /// `erlang:time_offset/1`.
    fn erl_drv_time_offset(unit: c_int) -> i64 { enif_time_offset(unit) }
    /// `erlang:convert_time_unit/3`.
    fn erl_drv_convert_time_unit(time: i64, from: c_int, to: c_int) -> i64 { enif_convert_time_unit(time, from, to) }
    /// The time as `erlang:now/0` tells it: 0; -1 where there is no room for it.
    fn driver_get_now(out: *mut Now) -> c_int {
        if out.is_null() { return -1 }
        let now = now_microseconds().cast_unsigned();
        let (seconds, microseconds) = (now / 1_000_000, now % 1_000_000);
        out.write(Now { megaseconds: seconds / 1_000_000, seconds: seconds % 1_000_000, microseconds });
        0
    }
    /// Sets an environment variable: 0; -1 for what is no name.
    fn erl_drv_putenv(key: *const c_char, value: *mut c_char) -> c_int {
        let (key, value) = (CStr::from_ptr(key).to_bytes(), CStr::from_ptr(value).to_bytes());
        if key.is_empty() || key.contains(&b'=') { return -1 }
        set_variable(key, value);
        0
    }
    /// The value of an environment variable: 0; -1 where there is none; 1 where there is not enough room.
    fn erl_drv_getenv(key: *const c_char, value: *mut c_char, size: *mut usize) -> c_int {
        -getenv(key, value, size)
    }
    /// Versions, and what there is.
    fn driver_system_info(out: *mut u8, size: usize) { enif_system_info(out, size); }
    /// The name of an error of the system.
    fn erl_errno_id(error: c_int) -> *const c_char { text(&errno_id(error)) }
    /// Does nothing.
    fn null_func() -> c_int { 0 }

    /// Opens a library; null where that fails.
    fn driver_dl_open(path: *mut c_char) -> *mut c_void {
        let handle = crate::nif::library::open_named(path);
        if handle.is_null() {
            keep_dl_error();
        }
        handle
    }
    /// What a library has under a name; null where it has nothing.
    fn driver_dl_sym(handle: *mut c_void, name: *mut c_char) -> *mut c_void {
        let found = libc::dlsym(handle, name);
        if found.is_null() {
            keep_dl_error();
        }
        found
    }
    /// Closes a library.
    fn driver_dl_close(handle: *mut c_void) -> c_int {
        let failed = libc::dlclose(handle);
        if failed != 0 {
            keep_dl_error();
        }
        failed
    }
    /// What the system has last said to this thread; null where it has said nothing.
    fn driver_dl_error() -> *const c_char { DL_ERROR.get() }
}
