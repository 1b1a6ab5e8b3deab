//! The foundation of the runtime's other crates: algorithms over numbers, text and hashes that know no term, and the
//! names through which threads share memory.
//!
//! Each module names only those before it:
//! `copy` `num` `sync` ◀
//! `hash` `text`

pub mod copy;
pub mod hash;
pub mod num;
pub mod sync;
pub mod text;
