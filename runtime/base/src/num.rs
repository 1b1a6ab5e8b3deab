//! Number algorithms that know no term layout. They take limbs and give limbs.

pub mod float;
pub mod limbs;
pub mod time;
pub mod wide;
