//! BIFs: the functions of `erlang`, `lists`, `maps`, ... that the runtime implements in Rust.
//!
//! Each family's file opens with its table, a [`bifs!`] list whose rows are the only place a BIF is named:
//! `kind module:"function"/arity => handler`. A row's kind says what its handler may do:
//!
//! - `bif`: `fn(&Process, [Term; N]) -> BifResult`. It cannot collect: what it builds when the heap is full goes to a
//!   heap fragment. It may trap, wait and give up its time slice: [`Control`].
//! - `ubif` (guards and operators, as in `bif.tab`), and `guard` for a BIF that code calls as it calls these: the same,
//!   but it can only return or raise: [`GuardResult`].
//! - `xbif`: `fn(&mut Process)`, arguments and result in `x(0)..`. It may collect, wait or end the process.
//! - `hbif`: the same for those that are heavy in `bif.tab`, of which a call costs no reduction by itself;
//!   `hbif_plain`: heavy there, and cannot collect here.
//!
//! An exception is a value, [`Raise`], and [`Leave`] is either. Source of names and kinds: `bif.tab`, OTP 29.

mod alive;
mod atomics;
mod binary;
mod binary_search;
pub(crate) mod break_menu;
mod calendar;
mod checksum;
mod compare;
mod convert;
mod debug;
mod debugger;
mod decode_packet;
pub(crate) mod dictionary;
mod dirty;
mod dist;
pub(crate) mod emulator;
mod error;
mod ets;
mod ets_info;
mod ets_insert;
mod ets_select;
mod ets_update;
mod external;
mod flags;
#[cfg(test)]
mod golden;
mod halt;
mod internal_state;
mod lists;
pub(crate) mod literal_area;
mod maps;
mod memory;
pub(crate) mod msacc;
mod names;
mod node;
pub(crate) mod os;
mod persistent_term;
mod ports;
pub(crate) mod process;
mod process_info;
mod re;
mod records;
mod send;
mod seq_trace;
mod spawn;
pub(crate) mod system;
pub(crate) mod system_emulator;
mod system_monitor;
mod system_profile;
mod system_task;
mod system_text;
pub(crate) mod table;
pub(crate) mod time;
mod trace;
mod trace_info;
mod tuples;
mod unicode;

pub(crate) use crate::code::bif::bifs;
pub(crate) use send::wait_for_port;
pub(crate) mod code;

pub(crate) use crate::code::bif::{Bif, all, find};
use crate::process::Process;
pub(crate) use crate::process::{
    BifResult, Control, GuardResult, Leave, Next, Raise, badarg, badopt, notsup, system_limit,
    tagged,
};

/// A function that could not do yet what it is to do calls again.
fn call_again(p: &Process, control: &Control<'_>) -> Next {
    // Nobody else wakes a process that only gives up its time slice.
    if matches!(control, Control::Yield) {
        p.shared().wake();
    }
    Next::Wait
}
