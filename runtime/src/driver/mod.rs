//! The interface of drivers written in C: `erl_driver.h`.
//!
//! As in `nif/`, the functions have C's calling convention and their names in the header, the program exports them, and
//! each family has a file with a table of its functions. [`names`] gives all.
//!
//! - `ddll`: the BIFs of `erl_ddll`; `table`, `dynamic`: which drivers are loaded, by whom, and until when; `entry`: what a library
//!   says of its driver.
//! - `instance`: a driver's work for one port, and the calls into it; `close`: its end.
//! - `output`, `terms`: what a driver sends; `binary`, `queue`: what it takes.
//! - `select`, `timer`, `job`, `monitor`: what has a driver called later.
//! - `lock`, `thread`, `system`: what has to do with no port, but for its data lock.
//!
//! A library knows a port (`ErlDrvPort`) by its number. So a port that is gone is known as such, whenever and wherever
//! the library asks.
//!
//! Source: `io.c`, `erl_bif_ddll.c`, OTP 29. Invariants NF1 of `nif/mod.rs` and:
//! - D1: a driver's functions are those of an open library: a caller of one holds its [`Driver`](entry::Driver).
//! - D2: a driver guards its data (`ErlDrvData`): its functions are called for a port under the lock that it has chosen.
#![expect(unsafe_code, reason = "C calls these functions, and gives pointers")]

mod binary;
mod close;
mod ddll;
mod dynamic;
mod entry;
mod instance;
mod job;
mod lock;
mod monitor;
mod output;
mod queue;
mod select;
mod system;
mod table;
mod terms;
mod thread;
mod timer;

use std::borrow::Cow;
use std::ffi::{c_int, c_void};

use crate::code::bif::Bif;
use crate::nif::{Symbol, api};
use crate::sys::errno;
use crate::term::Atom;

/// The tables of what OTP has in BIFs.
pub(crate) const BIFS: &[&[Bif]] = &[ddll::TABLE];

/// The tables of all families.
static TABLES: [&[Symbol]; 15] = [
    binary::TABLE,
    instance::TABLE,
    job::TABLE,
    lock::TABLE,
    monitor::TABLE,
    output::TABLE,
    queue::TABLE,
    select::TABLE,
    system::TABLE,
    table::TABLE,
    terms::DATA,
    terms::TABLE,
    thread::IN_C,
    thread::TABLE,
    timer::TABLE,
];

/// The names of the functions and data of `erl_driver.h` that there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    let symbols = TABLES.iter().flat_map(|table| table.iter());
    symbols
        .filter(|symbol| !symbol.1.is_null())
        .map(|symbol| symbol.0)
}

/// The atom with a name in Latin-1.
fn latin1(name: &[u8]) -> Atom {
    let name: String = name.iter().map(|byte| char::from(*byte)).collect();
    Atom::new(&name)
}

/// The name of an error of the system, or its number where it has none.
fn errno_id(error: c_int) -> Cow<'static, str> {
    match errno::errno_name(error) {
        "unknown" => Cow::Owned(format!("errno_{error}")),
        name => Cow::Borrowed(name),
    }
}

/// `ErlDrvPort`: a port's number.
type DrvPort = *mut c_void;

/// `ErlDrvData`: a driver's own.
type Data = *mut c_void;

/// `ErlDrvEvent`: a descriptor.
type Event = *mut c_void;

/// `ErlDrvTermData`.
type TermData = u64;
