//! What a driver sends to its port's owner as data; the ends that it brings about.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::binary::{Counted, DrvBinary, IoVec, bytes_at, elements, holder};
use super::instance::{Instance, of};
use super::{DrvPort, api, errno_id};
use crate::heap::Heap;
use crate::port::framing::{Framing, Piece};
use crate::term::atom::atom;
use crate::term::{Term, am};

/// Data of a driver: bytes to be copied, or a binary's.
enum Part<'a> {
    Bytes(&'a [u8]),
    Shared(Counted, usize, usize),
}

impl Part<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Bytes(bytes) => bytes,
            Part::Shared(holder, from, to) => holder.bytes(*from, *to),
        }
    }

    fn binary(self, heap: &Heap) -> Term<'_> {
        match self {
            Part::Bytes(bytes) => heap.binary(bytes),
            Part::Shared(holder, from, to) => holder.term(heap, from, to),
        }
    }
}

/// Sends `{Port, {data, Data}}`.
fn send(this: &Instance, data: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
    let id = this.port.term();
    this.port.tell(this.port.owner(), |heap| {
        heap.tuple(&[id, heap.tuple(&[atom("data"), data(heap)])])
    });
}

/// The parts as an owner gets them: binaries, or a list of bytes.
fn joined<'h>(heap: &'h Heap, is_binary: bool, parts: Vec<Part<'_>>) -> Term<'h> {
    let mut joined: Option<Term<'h>> = None;
    for part in parts.into_iter().rev() {
        joined = Some(match (is_binary, joined) {
            (false, tail) => heap.byte_list_with_tail(part.bytes(), tail.unwrap_or(Term::NIL)),
            (true, None) => part.binary(heap),
            (true, Some(tail)) => heap.cons(part.binary(heap), tail),
        });
    }
    joined.unwrap_or(Term::NIL)
}

fn deliver(this: &Arc<Instance>, header: &[u8], parts: Vec<Part<'_>>) -> c_int {
    if this.is_silent.load(Ordering::Acquire) {
        return 0;
    }
    let size: usize = parts.iter().map(|part| part.bytes().len()).sum();
    this.port.took_input(header.len() + size);
    send(this, |heap| {
        let data = joined(heap, this.mode.binary, parts);
        heap.byte_list_with_tail(header, data)
    });
    0
}

/// Sends bytes: as they are, or in lines.
fn deliver_bytes(this: &Arc<Instance>, header: &[u8], bytes: &[u8]) -> c_int {
    if !matches!(this.mode.framing, Framing::Line(_)) {
        return deliver(this, header, vec![Part::Bytes(bytes)]);
    }
    if !this.is_silent.load(Ordering::Acquire) {
        this.port.took_input(header.len() + bytes.len());
        let pieces = this.input.lock().push(bytes);
        lines(this, header, pieces);
    }
    0
}

/// Sends lines, and parts of them, each behind the header.
fn lines(this: &Instance, header: &[u8], pieces: impl IntoIterator<Item = Piece>) {
    for piece in pieces {
        let (tag, bytes) = match piece {
            Piece::Data(bytes) | Piece::Eol(bytes) => ("eol", bytes),
            Piece::NoEol(bytes) => ("noeol", bytes),
        };
        send(this, |heap| {
            let data = match this.mode.binary {
                true => heap.binary_from_vec(bytes),
                false => heap.byte_list(&bytes),
            };
            heap.tuple(&[atom(tag), heap.byte_list_with_tail(header, data)])
        });
    }
}

/// Sends what is there of a line.
pub(super) fn finish_line(this: &Instance) {
    let rest = this.input.lock().finish();
    lines(this, &[], rest);
}

/// The driver ends its port.
fn fail(port: DrvPort, reason: Term<'_>, eof: bool) -> c_int {
    let Some(this) = of(port) else { return -1 };
    this.locked(|| this.fail(reason, eof));
    0
}

/// The atom of an error of the system.
fn posix(error: c_int) -> Term<'static> {
    atom(&errno_id(error))
}

/// An atom with a name in Latin-1.
///
/// # Safety
/// NF1.
pub(super) unsafe fn atom_of(name: *const c_char) -> Term<'static> {
    // SAFETY: by contract.
    super::latin1(unsafe { CStr::from_ptr(name) }.to_bytes()).term()
}

api! {
    /// Sends data.
    fn driver_output(port: DrvPort, data: *mut c_char, size: usize) -> c_int {
        let Some(this) = of(port) else { return -1 };
        deliver_bytes(&this, &[], bytes_at(data, size))
    }
    /// Sends a header, always as bytes, and data.
    fn driver_output2(port: DrvPort, header: *mut c_char, header_size: usize, data: *mut c_char, size: usize) -> c_int {
        let Some(this) = of(port) else { return -1 };
        deliver_bytes(&this, bytes_at(header, header_size), bytes_at(data, size))
    }
    /// Sends a header, always as bytes, and part of a binary.
    fn driver_output_binary(
        port: DrvPort, header: *mut c_char, header_size: usize, binary: *mut DrvBinary, from: usize, size: usize,
    ) -> c_int {
        let (Some(this), Some(holder)) = (of(port), Counted::again(binary)) else { return -1 };
        let part = Part::Shared(holder, from, from + size);
        deliver(&this, bytes_at(header, header_size), vec![part])
    }
    /// Sends a header, always as bytes, and what is behind the first `skip` bytes of a vector.
    fn driver_outputv(port: DrvPort, header: *mut c_char, header_size: usize, vector: *mut IoVec, skip: usize) -> c_int {
        let Some(this) = of(port) else { return -1 };
        let parts = elements(vector, skip).into_iter().map(|(bytes, binary)| {
            if binary.is_null() {
                return Part::Bytes(bytes);
            }
            let (holder, from) = holder(bytes, binary);
            Part::Shared(holder, from, from + bytes.len())
        });
        deliver(&this, bytes_at(header, header_size), parts.collect())
    }

    /// There is no more input.
    fn driver_failure_eof(port: DrvPort) -> c_int { fail(port, am::normal.term(), true) }
    /// Ends the port with an atom.
    fn driver_failure_atom(port: DrvPort, reason: *mut c_char) -> c_int { fail(port, atom_of(reason), false) }
    /// Ends the port with an error of the system.
    fn driver_failure_posix(port: DrvPort, error: c_int) -> c_int { fail(port, posix(error), false) }
    /// Ends the port with a number; 0: there is no more input.
    fn driver_failure(port: DrvPort, reason: c_int) -> c_int { fail(port, Term::small(reason.into()), reason == 0) }
    /// Ends the port with an error of the system, or `normal`; the owner is unlinked before.
    fn driver_exit(port: DrvPort, error: c_int) -> c_int {
        let Some(this) = of(port) else { return -1 };
        this.port.unlink_owner();
        fail(port, if error == 0 { am::normal.term() } else { posix(error) }, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_gets_binaries_or_a_list_of_bytes() {
        let shared = |from, to| Part::Shared(Counted::of(b"wxyz"), from, to);
        for (is_binary, parts, header, expected) in [
            (false, vec![], "", "[]"),
            (true, vec![], "", "[]"),
            (
                false,
                vec![Part::Bytes(b"ab"), shared(1, 3)],
                "",
                "\"abxy\"",
            ),
            (true, vec![Part::Bytes(b"ab")], "", "<<\"ab\">>"),
            (true, vec![shared(0, 2)], "", "<<\"wx\">>"),
            (
                true,
                vec![Part::Bytes(b"ab"), Part::Bytes(b"c"), shared(3, 4)],
                "",
                "[<<\"ab\">>,<<\"c\">>|<<\"z\">>]",
            ),
            (true, vec![Part::Bytes(b"ab")], "h", "[104|<<\"ab\">>]"),
            (false, vec![Part::Bytes(b"ab")], "h", "\"hab\""),
        ] {
            let heap = Heap::detached();
            let data = joined(&heap, is_binary, parts);
            let data = heap.byte_list_with_tail(header.as_bytes(), data);
            assert_eq!(data.display().to_string(), expected);
        }
    }
}
