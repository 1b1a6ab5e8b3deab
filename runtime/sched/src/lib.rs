//! The building blocks of schedulers: queues, tables and clocks that threads share.
//!
//! Nothing here knows a process: queues and tables are generic over what they hold. Each is checked by loom
//! (`cargo xtask loom`) through the names of [`beamline_runtime_base::sync`]. Those that hold raw pointers number their
//! invariants at their head, and every `SAFETY` comment cites one.
//!
//! Each module names only those before it:
//! `clock` `parker` `ptab` `run_queue` `run_state` `sig_queue` `thread_progress` `wakeup` `wheel` ◀ `seat` ◀ `machine`

pub mod clock;
mod machine;
pub mod parker;
pub mod ptab;
pub mod run_queue;
pub mod run_state;
pub mod seat;
pub mod sig_queue;
pub mod thread_progress;
pub mod wakeup;
pub mod wheel;

pub use machine::online::{self, schedulers_active, schedulers_online};
pub use machine::{
    Counters, Machine, Waking, become_scheduler, count_collection, current_id, leave_scheduler,
    machine, next_unique, schedulers, schedulers_at_work, set_schedulers, set_waking,
    thread_progress, timers, totals, wake_one, wall_time,
};
pub use machine::{DirtyNumbers, dirty_schedulers, set_dirty_schedulers};
