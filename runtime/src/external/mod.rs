//! The external term format: terms as bytes, for files, `.beam` literals and other nodes.
//!
//! Not here: the headers of messages between nodes and what is remembered of them (`dist`). Source: `external.c`, OTP 29, and the format's own description
//! in ERTS's documentation.
//!
//! Both directions take terms of any depth. Pending work is on a stack of its own, so neither decoding nor encoding
//! recurses.

pub(crate) mod answer_terms;
mod decode;
mod encode;
mod functions;
mod local;
#[cfg(test)]
mod property;
pub(crate) mod tags;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use encode::encode_signal;

pub(crate) use decode::{DecodeError, DecodeOptions, Decoded, OfMessage, Paused, external_ref};
pub(crate) use decode::{
    decode, decode_bare, decode_some, decode_with_header, decode_with_version, is_compressed,
};
pub(crate) use encode::{
    CACHE_SIZE, COPIED_BYTES, HeaderAtoms, Pieces, STEPS_PER_REDUCTION, slot_of,
};
pub(crate) use encode::{
    Compressing, Compression, EncodeOptions, Encoder, PausedEncoder, Progress, TooLarge,
};
pub(crate) use encode::{encode, encode_bare, external_size};

pub(crate) use crate::term::counted::this_node;

/// First byte of every term on its own.
pub(crate) const VERSION_MAGIC: u8 = 131;
