//! The tags of the external term format, one byte each.

pub(crate) const SMALL_INTEGER_EXT: u8 = b'a';
pub(crate) const INTEGER_EXT: u8 = b'b';
pub(crate) const FLOAT_EXT: u8 = b'c';
pub(crate) const ATOM_EXT: u8 = b'd';
pub(crate) const SMALL_ATOM_EXT: u8 = b's';
pub(crate) const REFERENCE_EXT: u8 = b'e';
pub(crate) const NEW_REFERENCE_EXT: u8 = b'r';
pub(crate) const NEWER_REFERENCE_EXT: u8 = b'Z';
pub(crate) const PORT_EXT: u8 = b'f';
pub(crate) const NEW_PORT_EXT: u8 = b'Y';
pub(crate) const NEW_FLOAT_EXT: u8 = b'F';
pub(crate) const PID_EXT: u8 = b'g';
pub(crate) const NEW_PID_EXT: u8 = b'X';
pub(crate) const SMALL_TUPLE_EXT: u8 = b'h';
pub(crate) const LARGE_TUPLE_EXT: u8 = b'i';
pub(crate) const NIL_EXT: u8 = b'j';
pub(crate) const STRING_EXT: u8 = b'k';
pub(crate) const LIST_EXT: u8 = b'l';
pub(crate) const BINARY_EXT: u8 = b'm';
pub(crate) const BIT_BINARY_EXT: u8 = b'M';
pub(crate) const SMALL_BIG_EXT: u8 = b'n';
pub(crate) const LARGE_BIG_EXT: u8 = b'o';
pub(crate) const NEW_FUN_EXT: u8 = b'p';
pub(crate) const EXPORT_EXT: u8 = b'q';
pub(crate) const MAP_EXT: u8 = b't';
pub(crate) const ATOM_UTF8_EXT: u8 = b'v';
pub(crate) const SMALL_ATOM_UTF8_EXT: u8 = b'w';
pub(crate) const V4_PORT_EXT: u8 = b'x';
pub(crate) const LOCAL_EXT: u8 = b'y';
pub(crate) const RECORD_EXT: u8 = b'C';
/// An atom by its place in the header of a message between nodes.
pub(crate) const ATOM_CACHE_REF: u8 = b'R';
/// Not a term's tag: what follows the version is compressed.
pub(crate) const COMPRESSED: u8 = b'P';

/// A list of at most this many bytes is a string.
pub(crate) const MAX_STRING_LEN: usize = 0xffff;
/// Most numbers in a reference.
pub(crate) const MAX_REF_NUMBERS: usize = 5;
/// The first number of a reference is below this.
pub(crate) const MAX_REFERENCE: u32 = 1 << 18;
