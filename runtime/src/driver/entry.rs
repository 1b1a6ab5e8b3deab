//! What a library says of its driver: `ErlDrvEntry`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::sync::Arc;

use parking_lot::ReentrantMutex;

use super::binary::IoVec;
use super::monitor::DrvMonitor;
use super::{Data, DrvPort, Event};
use crate::nif::library::{Handle, open, symbol};
use crate::sys::crash::{self, Native};

type Plain = unsafe extern "C" fn(Data);
type Ready = unsafe extern "C" fn(Data, Event);

/// `ErlDrvEntry`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) init: Option<unsafe extern "C" fn() -> c_int>,
    pub(super) start: Option<unsafe extern "C" fn(DrvPort, *mut c_char) -> Data>,
    pub(super) stop: Option<Plain>,
    pub(super) output: Option<unsafe extern "C" fn(Data, *mut c_char, usize)>,
    pub(super) ready_input: Option<Ready>,
    pub(super) ready_output: Option<Ready>,
    name: *const c_char,
    pub(super) finish: Option<unsafe extern "C" fn()>,
    handle: *mut c_void,
    pub(super) control: Option<Control>,
    pub(super) timeout: Option<Plain>,
    pub(super) outputv: Option<unsafe extern "C" fn(Data, *mut IoVec)>,
    pub(super) ready_async: Option<unsafe extern "C" fn(Data, *mut c_void)>,
    pub(super) flush: Option<Plain>,
    pub(super) call: Option<Call>,
    unused: *const c_void,
    marker: c_int,
    major: c_int,
    minor: c_int,
    pub(super) flags: c_int,
    handle2: *mut c_void,
    pub(super) process_exit: Option<unsafe extern "C" fn(Data, *mut DrvMonitor)>,
    pub(super) stop_select: Option<unsafe extern "C" fn(Event, *mut c_void)>,
    emergency_close: Option<Plain>,
}

pub(super) type Control =
    unsafe extern "C" fn(Data, c_uint, *mut c_char, usize, *mut *mut c_char, usize) -> isize;
pub(super) type Call = unsafe extern "C" fn(
    Data,
    c_uint,
    *mut c_char,
    usize,
    *mut *mut c_char,
    usize,
    *mut c_uint,
) -> isize;

const _: () = assert!(offset_of!(Entry, marker) == 128);

/// `ERL_DRV_EXTENDED_MARKER`.
const MARKER: c_int = 0xfeee_eeed_u32.cast_signed();

/// The version of the interface: that of OTP 29.
const VERSION: (c_int, c_int) = (3, 3);

/// The lowest major version that there may be.
const LOWEST: c_int = 2;

/// `ERL_DRV_FLAG_*`.
pub(super) const PORT_LOCKING: c_int = 1;
pub(super) const SOFT_BUSY: c_int = 2;
pub(super) const NO_BUSY_QUEUE: c_int = 4;

/// Why a driver is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// There is no `driver_init`.
    NoInit,
    /// It, or the driver's `init`, has failed.
    InitFailed,
    /// The driver has another name.
    BadName,
    /// It was compiled for another version.
    Version,
    /// What the system's loader says, by its number.
    Open(i64),
}

/// A driver that can be called.
pub(super) struct Driver {
    /// Of the driver in the table.
    pub(super) id: u64,
    pub(super) name: Vec<u8>,
    pub(super) entry: Entry,
    /// The lock of all of its ports; none where each has its own.
    pub(super) lock: Option<Arc<ReentrantMutex<()>>>,
    /// What is said of its functions where one crashes.
    pub(super) native: Arc<Native>,
    /// The library that has its functions; none of one that another driver has added.
    _handle: Option<Handle>,
}

// SAFETY: D1, D2: what an entry points to is the library's, and stays as long as it is open.
unsafe impl Send for Driver {}
// SAFETY: as for `Send`.
unsafe impl Sync for Driver {}

impl Driver {
    /// The driver of an entry.
    ///
    /// # Safety
    /// NF1: an entry that a library has made, and D1: `handle` is of that library if it may be closed.
    pub(super) unsafe fn new(
        id: u64,
        entry: *const Entry,
        handle: Option<Handle>,
        file: &str,
    ) -> Driver {
        // SAFETY: by contract.
        let (entry, name) = unsafe { (*entry, CStr::from_ptr((*entry).name)) };
        let of_driver = entry.flags & PORT_LOCKING == 0;
        let what = format!("driver {}", name.to_string_lossy());
        Driver {
            id,
            name: name.to_bytes().to_vec(),
            native: Arc::new(Native::new(&what, file)),
            entry,
            lock: of_driver.then(Arc::default),
            _handle: handle,
        }
    }

    /// Opens the library at `path`, which must be of the driver `name`. Its `init` has not been called.
    pub(super) fn load(id: u64, path: &[u8], name: &[u8]) -> Result<Driver, Failure> {
        let handle = open(path).map_err(|text| Failure::Open(number_of(text)))?;
        let init = symbol(&handle, c"driver_init").ok_or(Failure::NoInit)?;
        // SAFETY: D1: what `DRIVER_INIT` defines under this name.
        let entry = unsafe {
            let init: unsafe extern "C" fn() -> *const Entry = std::mem::transmute(init);
            init()
        };
        // SAFETY: NF1: null, or the library's entry.
        let version = unsafe { entry.as_ref() }.ok_or(Failure::InitFailed)?;
        let (major, minor) = (version.major, version.minor);
        if version.marker != MARKER || major < LOWEST || (major, minor) > VERSION {
            return Err(Failure::Version);
        }
        crash::watch();
        let file = String::from_utf8_lossy(path).into_owned() + ".so";
        // SAFETY: NF1: the entry of a library whose handle goes with it.
        let driver = unsafe { Driver::new(id, entry, Some(handle), &file) };
        match driver.name == name {
            true => Ok(driver),
            false => Err(Failure::BadName),
        }
    }

    /// Calls the driver's `init`.
    pub(super) fn init(&self) -> Result<(), Failure> {
        let _running = self.native.running();
        // SAFETY: D1.
        let failed = self.entry.init.is_some_and(|init| unsafe { init() } != 0);
        if failed {
            return Err(Failure::InitFailed);
        }
        Ok(())
    }

    /// Calls the driver's `finish`.
    pub(super) fn finish(&self) {
        if let Some(finish) = self.entry.finish {
            let _running = self.native.running();
            // SAFETY: D1.
            unsafe { finish() };
        }
    }
}

/// Texts of the system's loader, by their numbers.
static TEXTS: parking_lot::Mutex<Vec<String>> = parking_lot::Mutex::new(Vec::new());

/// The number of the first text. Source: `ERL_DE_DYNAMIC_ERROR_OFFSET`.
const FIRST_TEXT: i64 = -10;

fn number_of(text: String) -> i64 {
    let mut texts = TEXTS.lock();
    let at = texts.iter().position(|other| *other == text);
    let at = at.unwrap_or_else(|| {
        texts.push(text);
        texts.len() - 1
    });
    FIRST_TEXT - at as i64
}

/// The text of such a number.
pub(super) fn text_of(number: i64) -> Option<String> {
    let at = usize::try_from(FIRST_TEXT.checked_sub(number)?).ok()?;
    TEXTS.lock().get(at).cloned()
}
