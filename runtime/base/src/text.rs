//! Text algorithms that know no term layout: encodings, and how the emulator prints.

pub mod display;
pub mod unicode;
