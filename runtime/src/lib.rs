//! A runtime for compiled BEAM code, with tracing inside.

pub mod beam;
pub mod bif;
pub mod code;
mod ets;
pub mod fuzz;
pub mod halt;
pub mod hash;
pub mod heap;
mod interp;
mod matchspec;
pub mod native;
pub mod num;
pub mod otp_home;
mod port;
pub mod process;
pub mod regex;
pub mod sched;
pub mod start;
pub mod sync;
pub mod sys;
pub mod term;
pub mod text;
pub mod trace;
