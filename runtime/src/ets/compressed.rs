//! Computes the size of an object in a compressed table. ERTS keeps all elements that are not immediates, except the
//! key, in the external format, with references to what lies outside the heaps.
//!
//! Source: `db_size_dbterm_comp()` of `erl_db_util.c` and `erts_encode_ext_size_ets()`, OTP 29.

use crate::external::{EncodeOptions, encode_bare};
use crate::heap::{Literals, Stored, size as heap_words};
use crate::term::{Term, View};

/// Bytes of a reference to an off-heap binary, of a part of one, and of a magic reference.
const BINARY_BYTES: usize = 24;
const PART_BYTES: usize = 40;
const MAGIC_BYTES: usize = 24;
/// The longest list of bytes that is written as a string.
const MAX_STRING: usize = 0xffff;
/// Atoms with lower indices take a byte less.
const SHORT_ATOMS: u32 = 1 << 16;

/// Bytes of an object, but for its node; `key` is the index of its key.
pub(super) fn size(object: &Stored, key: usize) -> usize {
    let elements = object.elements();
    let others = elements.iter().enumerate();
    let encoded: usize = others
        .filter(|(index, element)| *index != key && !element.raw().is_immed())
        .map(|(_, element)| encoded_bytes(*element))
        .sum();
    // The tuple's header and the size of the block.
    let words = elements.len() + 2 + heap_words(elements[key], Literals::Count);
    (words + encoded.div_ceil(8)) * 8
}

fn encoded_bytes(term: Term<'_>) -> usize {
    let mut bytes = 0;
    let mut rest = vec![term];
    while let Some(term) = rest.pop() {
        bytes += match term.view() {
            View::Nil => 1,
            View::Atom(atom) if atom.index() < SHORT_ATOMS => 3,
            View::Atom(_) => 4,
            View::Pid(_) => 14,
            View::Port(_) => 14,
            View::Ref(reference) if reference.magic().is_some() => 1 + MAGIC_BYTES,
            View::Ref(reference) => 8 + 4 * reference.all_numbers().len(),
            View::Tuple(tuple) => {
                rest.extend(tuple.elements());
                if tuple.arity() < 256 { 2 } else { 5 }
            }
            View::Map(map) => {
                rest.extend(map.iter().flat_map(|(key, value)| [key, value]));
                5
            }
            View::Cons(cell) => match string_length(term) {
                Some(length) => 3 + length,
                None => {
                    rest.push(cell.head());
                    let mut tail = cell.tail();
                    while let Some(cell) = tail.as_cons() {
                        rest.push(cell.head());
                        tail = cell.tail();
                    }
                    rest.push(tail);
                    5
                }
            },
            View::Bits(bits) if bits.is_sub() => {
                let whole = bits.binary().is_some_and(|binary| {
                    std::ptr::eq(binary.data(), bits.base())
                        && bits.bit_offset() == 0
                        && bits.bit_len() == binary.size() * 8
                });
                1 + BINARY_BYTES + if whole { 0 } else { PART_BYTES }
            }
            View::Bits(bits) => 5 + bits.byte_len() + usize::from(bits.bit_len() % 8 != 0),
            // What the format cannot hold is refused when it is encoded; it has no size.
            _ => encode_bare(term, EncodeOptions::default()).map_or(0, |bytes| bytes.len()),
        };
    }
    bytes
}

/// The length of a proper list of bytes that is short enough to be written as a string.
fn string_length(list: Term<'_>) -> Option<usize> {
    let mut length = 0;
    for element in list.list_iter() {
        let byte = element.ok()?.as_small()?;
        length += 1;
        if !(0..256).contains(&byte) || length > MAX_STRING {
            return None;
        }
    }
    Some(length)
}
