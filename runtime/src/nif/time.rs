//! Time, unique integers, and facts about the system.

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::{Env, api, env};
use crate::bif::time::make_unique_integer;
use crate::num::time::convert_unit;
use crate::process::refs::{FIRST, monotonic_integer, unique_integer};
use crate::sched::clock::{erlang_monotonic_ns, now_microseconds, time_offset_ns};
use crate::sys::chance::clock::cpu_ns;
use crate::sys::environment::environment;
use crate::sys::time::NATIVE_PER_SECOND;
use crate::term::RawTerm;
use crate::value::timestamp::triple;

/// What no time is.
const ERROR: i64 = i64::MIN;

/// Parts of a second of an `ErlNifTimeUnit`.
fn parts(unit: c_int) -> Option<u64> {
    [1, 1_000, 1_000_000, 1_000_000_000]
        .get(usize::try_from(unit).ok()?)
        .copied()
}

fn in_unit(ns: i64, unit: c_int) -> i64 {
    convert(ns, Some(NATIVE_PER_SECOND), parts(unit))
}

fn convert(time: i64, from: Option<u64>, to: Option<u64>) -> i64 {
    match (from, to) {
        (Some(from), Some(to)) => convert_unit(time, from, to).unwrap_or(ERROR),
        _ => ERROR,
    }
}

/// `ErlNifSysInfo`, whose first fields are all that older libraries know.
#[repr(C)]
struct SysInfo {
    driver_major_version: c_int,
    driver_minor_version: c_int,
    erts_version: *const c_char,
    otp_release: *const c_char,
    thread_support: c_int,
    smp_support: c_int,
    async_threads: c_int,
    scheduler_threads: c_int,
    nif_major_version: c_int,
    nif_minor_version: c_int,
    dirty_scheduler_support: c_int,
}

/// A text that stays, for libraries.
pub(crate) fn text(version: &str) -> *const c_char {
    use std::sync::Mutex;
    static TEXTS: Mutex<Vec<&'static CStr>> = Mutex::new(Vec::new());
    let mut texts = TEXTS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(text) = texts
        .iter()
        .find(|text| text.to_bytes() == version.as_bytes())
    {
        return text.as_ptr();
    }
    let text = std::ffi::CString::new(version).unwrap_or_default();
    let text: &'static CStr = Box::leak(text.into_boxed_c_str());
    texts.push(text);
    text.as_ptr()
}

fn sys_info() -> SysInfo {
    let (major, minor) = super::library::VERSION;
    SysInfo {
        driver_major_version: 3,
        driver_minor_version: 3,
        erts_version: text(&crate::bif::system::release().erts),
        otp_release: text(&crate::bif::system::release().otp),
        thread_support: 1,
        smp_support: 1,
        async_threads: crate::port::pool::threads() as c_int,
        scheduler_threads: crate::sched::schedulers() as c_int,
        nif_major_version: major,
        nif_minor_version: minor,
        dirty_scheduler_support: 1,
    }
}

/// # Safety
/// NF1.
pub(crate) unsafe fn getenv(key: *const c_char, value: *mut c_char, size: *mut usize) -> c_int {
    // SAFETY: by contract.
    unsafe {
        let key = CStr::from_ptr(key).to_bytes();
        let environment = environment().read();
        let Some(found) = environment.get(key) else {
            return 1;
        };
        let room = size.replace(found.len());
        if found.len() >= room {
            size.write(found.len() + 1);
            return -1;
        }
        std::ptr::copy_nonoverlapping(found.as_ptr(), value.cast(), found.len());
        *value.add(found.len()) = 0;
    }
    0
}

api! {
    /// `erlang:monotonic_time/1`.
    fn enif_monotonic_time(unit: c_int) -> i64 { in_unit(erlang_monotonic_ns(), unit) }
    /// `erlang:time_offset/1`.
    fn enif_time_offset(unit: c_int) -> i64 { in_unit(time_offset_ns(), unit) }
    /// `erlang:convert_time_unit/3`.
    fn enif_convert_time_unit(time: i64, from: c_int, to: c_int) -> i64 { convert(time, parts(from), parts(to)) }
    /// `erlang:now/0`.
    fn enif_now_time(e: *mut Env) -> RawTerm { triple(env(e).heap(), now_microseconds()).raw() }
    /// The time that the system has spent on this machine, as `erlang:now/0` gives one.
    fn enif_cpu_time(e: *mut Env) -> RawTerm { triple(env(e).heap(), cpu_ns() / 1_000).raw() }
    /// `erlang:unique_integer/1`: 1 for a positive one, 2 for a monotonic one.
    fn enif_make_unique_integer(e: *mut Env, properties: c_uint) -> RawTerm {
        let (heap, positive) = (env(e).heap(), properties & 1 != 0);
        if properties & 2 != 0 {
            let count = monotonic_integer();
            return heap.integer(if positive { count + 1 } else { FIRST + count }).raw();
        }
        let (thread, count) = unique_integer();
        make_unique_integer(heap, thread, count, positive).raw()
    }
    /// Versions, and what there is.
    fn enif_system_info(out: *mut u8, size: usize) {
        let info = sys_info();
        let bytes = (&raw const info).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes, out, size.min(size_of::<SysInfo>()));
    }
}
