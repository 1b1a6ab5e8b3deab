//! A runtime for compiled BEAM code, with tracing inside.
//!
//! A program that embeds it calls [`start::start`] with an OTP's root directory and an emulator's arguments. The other
//! public items serve tools, benchmarks and tests: code made ready to run, heaps, terms and processes
//! ([`process::spawn_native`] starts one whose code is Rust), and trace sessions.

mod bif;
mod code;
mod dist;
mod driver;
mod ets;
mod exec;
mod external;
pub mod fuzz;
pub mod heap;
mod hook;
pub mod hooks;
mod interp;
mod jit;
mod loader;
mod matchspec;
mod nif;
mod otp_nifs;
mod port;
pub mod process;
mod scheduler;
pub mod start;
pub mod term;
mod trace;
mod value;

pub(crate) use beamline_runtime_base::{copy, hash, num, sync, text};
pub(crate) use beamline_runtime_beam as beam;
pub(crate) use beamline_runtime_regex as regex;
pub(crate) use beamline_runtime_sched as sched;
pub(crate) use beamline_runtime_sys as sys;

pub use code::bif::{Bif, all as bifs};
pub use driver::names as driver_functions;
pub use jit::native_code;
pub use loader::disasm::Specific;
pub use loader::load::prepare;
pub use loader::module::{Mfa, Module, make_current};
pub use nif::names as nif_functions;
pub use trace::{Counted, Kinds, Pattern, Session, Switch};
