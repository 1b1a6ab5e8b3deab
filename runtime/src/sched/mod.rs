//! What schedulers are built of: queues, tables and clocks shared by threads.
//!
//! Nothing here knows a process: queues and tables are generic over what they hold. Each is
//! checked by loom (`RUSTFLAGS="--cfg loom" cargo test -p beamline-runtime --release --lib
//! loom_`) through the names of [`crate::sync`]; those that hold raw pointers number their
//! invariants at their head, and every `SAFETY` comment cites one.

pub mod clock;
mod machine;
pub(crate) mod online;
pub mod parker;
pub mod ptab;
pub mod run_queue;
pub mod run_state;
pub mod sig_queue;
pub mod thread_progress;
pub(crate) mod timers;
pub(crate) mod wall_time;
pub mod wheel;

pub(crate) use machine::{
    Machine, become_scheduler, count_collection, machine, schedulers_at_work, wake_one,
};
pub use machine::{current_id, schedulers, set_schedulers, thread_progress, totals};
pub use online::{schedulers_active, schedulers_online};
