//! A runtime for compiled BEAM code, with tracing inside.

pub mod bif;
pub mod code;
mod ets;
mod exec;
pub mod external;
pub mod fuzz;
pub mod heap;
mod hook;
pub mod hooks;
mod interp;
pub mod loader;
mod matchspec;
pub mod native;
mod port;
pub mod process;
pub mod scheduler;
pub mod start;
pub mod term;
pub mod trace;
pub mod value;

pub(crate) use beamline_runtime_base::{hash, num, sync, text};
pub(crate) use beamline_runtime_beam as beam;
pub(crate) use beamline_runtime_regex as regex;
pub(crate) use beamline_runtime_sched as sched;
pub(crate) use beamline_runtime_sys as sys;
