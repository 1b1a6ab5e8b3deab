//! The scheduler and its building blocks: queues, tables and clocks shared by threads.
//!
//! All but [`scheduler`], [`timers`] and [`clock`], which put them together, are generic over their
//! payload and know nothing of terms or processes. Each is
//! checked by loom (`RUSTFLAGS="--cfg loom" cargo test -p beamline-runtime --release --lib
//! loom_`) through the names of [`crate::sync`]; those that hold raw pointers number their
//! invariants at their head, and every `SAFETY` comment cites one.

pub mod clock;
pub(crate) mod online;
pub(crate) mod outside;
pub mod parker;
pub mod ptab;
pub mod run_queue;
pub mod run_state;
pub mod scheduler;
pub mod sig_queue;
pub mod thread_progress;
pub(crate) mod timers;
pub(crate) mod user_timers;
pub(crate) mod wall_time;
pub mod wheel;

pub use online::{schedulers_active, schedulers_online};
pub use scheduler::{
    Engine, Outcome, current_id, run_queue_lengths, schedulers, set_engine, set_schedulers, start,
    thread_progress, totals,
};
pub(crate) use scheduler::{count_collection, enqueue, machine, promote, schedulers_at_work};
