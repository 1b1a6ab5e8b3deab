//! Number algorithms that know no term layout: limbs in, limbs out.

pub mod float;
pub mod limbs;
pub mod time;
