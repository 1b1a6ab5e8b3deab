//! Kinds of breakpoint.

pub(super) const COUNT: u32 = 1;
pub(super) const TIME: u32 = 2;
pub(super) const MEMORY: u32 = 4;
/// As the session's own profile says.
pub(super) const PROFILE: u32 = 8;
/// Calls reported to a tracer.
pub(super) const LOCAL: u32 = 16;
/// As `LOCAL`, of calls from other modules: in breakpoints of exports only, alone.
pub(super) const GLOBAL: u32 = 32;
/// As `LOCAL`, for all processes.
pub(super) const META: u32 = 64;
/// Calls recorded.
pub(super) const RECORD: u32 = 128;
/// The workload begins with the call.
pub(super) const BEGIN: u32 = 256;
pub(super) const ALL: u32 = 511;
