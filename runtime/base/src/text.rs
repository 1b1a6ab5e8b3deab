//! Text algorithms that know no term layout: encodings, and printing as the emulator does.

pub mod display;
pub mod unicode;
