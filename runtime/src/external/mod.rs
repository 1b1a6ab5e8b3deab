//! The external term format: terms as bytes, for files, `.beam` literals and other nodes.
//!
//! Not here: the distribution header and its atom cache. Source: `external.c`, OTP 29, and the
//! format's own description in ERTS's documentation.
//!
//! Depth-safe in both directions: what waits is on a stack of its own, so that a term of any depth
//! neither decodes nor encodes by recursion.

mod decode;
mod encode;
mod functions;
mod local;
#[cfg(test)]
mod property;
pub(crate) mod tags;
#[cfg(test)]
mod tests;

pub use decode::{DecodeError, DecodeOptions, Decoded, Paused, Reason};
pub use decode::{decode, decode_bare, decode_some, is_compressed};
pub use encode::{
    Compressing, Compression, EncodeOptions, Encoder, PausedEncoder, Progress, TooLarge,
};
pub use encode::{encode, encode_bare, external_size};

pub use crate::term::counted::this_node;

/// First byte of every term on its own.
pub const VERSION_MAGIC: u8 = 131;
