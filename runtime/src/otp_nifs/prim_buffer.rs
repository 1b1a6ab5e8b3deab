//! The native functions of `prim_buffer`, a queue of bytes that is written at one end and read at the other.
//! Source: `prim_buffer_nif.c`, OTP 29.
//!
//! An accumulator collects small writes. It is queued when it is full or when something is read. What is queued is
//! never changed, so that `peek_head/1` may show a whole piece.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{atom, inspect_iovec, int, new_object, object, ok, uint64};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::heap::SharedBytes;
use crate::process::Process;
use crate::term::{Term, am};

bifs! {
    all own;
    bif prim_buffer:"new"/0 => new_0;
    bif prim_buffer:"size"/1 => size_1;
    bif prim_buffer:"peek_head"/1 => peek_head_1;
    bif prim_buffer:"copying_read"/2 => copying_read_2;
    bif prim_buffer:"write"/2 => write_2;
    bif prim_buffer:"skip"/2 => skip_2;
    bif prim_buffer:"find_byte_index"/2 => find_byte_index_2;
    bif prim_buffer:"try_lock"/1 => try_lock_1;
    bif prim_buffer:"unlock"/1 => unlock_1;
}

/// Bytes that are collected before they are queued.
const ACCUMULATOR_SIZE: usize = 2 << 10;

/// Bytes searched for one reduction.
const FIND_BYTES_PER_REDUCTION: usize = 1 << 10;

#[derive(Default)]
struct Buffer {
    bytes: Mutex<Bytes>,
    external_lock: AtomicBool,
}

#[derive(Default)]
struct Bytes {
    queue: VecDeque<SharedBytes>,
    /// Bytes of the first piece that have been read.
    head_skip: usize,
    queued: usize,
    accumulator: Vec<u8>,
}

impl Bytes {
    fn size(&self) -> usize {
        self.queued + self.accumulator.len()
    }

    fn write(&mut self, pieces: &[std::borrow::Cow<'_, [u8]>]) {
        let size: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.accumulator.len() + size >= ACCUMULATOR_SIZE {
            self.queue_accumulator();
            if size >= ACCUMULATOR_SIZE / 2 {
                pieces.iter().for_each(|piece| self.enqueue(piece.to_vec()));
                return;
            }
        }
        pieces
            .iter()
            .for_each(|piece| self.accumulator.extend_from_slice(piece));
    }

    fn enqueue(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            self.queued += piece.len();
            self.queue.push_back(SharedBytes::from_vec(piece));
        }
    }

    fn queue_accumulator(&mut self) {
        let accumulated = std::mem::take(&mut self.accumulator);
        self.enqueue(accumulated);
    }

    /// What is left of each queued piece, in order.
    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let skips = std::iter::once(self.head_skip).chain(std::iter::repeat(0));
        self.queue
            .iter()
            .zip(skips)
            .map(|(piece, skip)| &piece.as_slice()[skip..])
    }

    fn skip(&mut self, mut size: usize) {
        self.queued -= size;
        while size > 0 {
            let head = self.queue[0].as_slice().len() - self.head_skip;
            if size < head {
                self.head_skip += size;
                return;
            }
            size -= head;
            self.head_skip = 0;
            self.queue.pop_front();
        }
    }
}

fn new_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(new_object(p, Buffer::default()))
}

fn size_1<'p>(p: &'p Process, [buffer]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = object::<Buffer>(buffer)?.bytes.lock();
    Ok(p.unsigned(bytes.size() as u64))
}

fn peek_head_1<'p>(p: &'p Process, [buffer]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut bytes = object::<Buffer>(buffer)?.bytes.lock();
    bytes.queue_accumulator();
    let head = bytes.queue.front().ok_or_else(badarg)?;
    Ok(p.shared_bytes(head, bytes.head_skip))
}

fn copying_read_2<'p>(p: &'p Process, [buffer, size]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut bytes = object::<Buffer>(buffer)?.bytes.lock();
    let size = checked_size(&mut bytes, size)?;
    let mut out = Vec::with_capacity(size);
    for piece in bytes.pieces() {
        let rest = size - out.len();
        out.extend_from_slice(&piece[..piece.len().min(rest)]);
        if out.len() == size {
            break;
        }
    }
    bytes.skip(size);
    Ok(p.binary_from_vec(out))
}

/// A number of bytes that are in the buffer, all of them queued.
fn checked_size(bytes: &mut Bytes, size: Term<'_>) -> Result<usize, Raise<'static>> {
    let size = uint64(size).ok_or_else(badarg)?;
    bytes.queue_accumulator();
    usize::try_from(size)
        .ok()
        .filter(|&size| size <= bytes.queued)
        .ok_or_else(badarg)
}

fn write_2<'p>(_p: &'p Process, [buffer, iovec]: [Term<'p>; 2]) -> BifResult<'p> {
    let buffer = object::<Buffer>(buffer)?;
    let mut rest = iovec;
    loop {
        let (pieces, tail) = inspect_iovec(rest)?;
        let pieces: Vec<_> = pieces.into_iter().map(|bits| bits.bytes()).collect();
        buffer.bytes.lock().write(&pieces);
        if tail.is_nil() {
            return Ok(am::ok.term());
        }
        rest = tail;
    }
}

fn skip_2<'p>(_p: &'p Process, [buffer, size]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut bytes = object::<Buffer>(buffer)?.bytes.lock();
    let size = checked_size(&mut bytes, size)?;
    bytes.skip(size);
    Ok(am::ok.term())
}

fn find_byte_index_2<'p>(p: &'p Process, [buffer, needle]: [Term<'p>; 2]) -> BifResult<'p> {
    let buffer = object::<Buffer>(buffer)?;
    let needle = u8::try_from(int(needle)?).map_err(|_| badarg())?;
    let mut bytes = buffer.bytes.lock();
    bytes.queue_accumulator();
    let mut before = 0;
    let mut found = None;
    for piece in bytes.pieces() {
        if let Some(at) = piece.iter().position(|&byte| byte == needle) {
            found = Some(before + at);
            break;
        }
        before += piece.len();
    }
    let searched = found.unwrap_or(before);
    p.bump_reds((searched / FIND_BYTES_PER_REDUCTION) as i64);
    Ok(match found {
        Some(at) => ok(p, p.unsigned(at as u64)),
        None => atom("not_found"),
    })
}

fn try_lock_1<'p>(_p: &'p Process, [buffer]: [Term<'p>; 1]) -> BifResult<'p> {
    let held = object::<Buffer>(buffer)?
        .external_lock
        .swap(true, Ordering::Acquire);
    Ok(atom(if held { "busy" } else { "acquired" }))
}

fn unlock_1<'p>(_p: &'p Process, [buffer]: [Term<'p>; 1]) -> BifResult<'p> {
    let held = object::<Buffer>(buffer)?
        .external_lock
        .swap(false, Ordering::Release);
    if held {
        Ok(am::ok.term())
    } else {
        Err(Raise::Error(atom("lock_order_violation")).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(n: usize) -> Term<'static> {
        Term::small(n as i64)
    }

    fn read<'p>(p: &'p Process, buffer: Term<'p>, n: usize) -> Vec<u8> {
        let bin = copying_read_2(p, [buffer, small(n)])
            .ok()
            .expect("enough bytes");
        bin.as_binary().unwrap().to_vec()
    }

    #[test]
    fn what_is_written_is_read_in_order() {
        let p = &Process::new(233);
        let buffer = new_0(p, []).ok().unwrap();
        let mut model: VecDeque<u8> = VecDeque::new();
        for (i, len) in [3, 1500, 0, 700, 2048, 1, 5000, 64].into_iter().enumerate() {
            let bytes: Vec<u8> = (0..len).map(|j| (i * 31 + j) as u8).collect();
            let iovec = p.list(&[p.binary(&bytes[..len / 3]), p.binary(&bytes[len / 3..])]);
            assert!(write_2(p, [buffer, iovec]).ok().unwrap() == am::ok);
            model.extend(&bytes);
            let n = model.len() / 4;
            let expected: Vec<u8> = model.drain(..n).collect();
            assert_eq!(read(p, buffer, n), expected);
            let size = size_1(p, [buffer]).ok().unwrap().as_index();
            assert_eq!(size, Some(model.len()));
        }
        assert!(copying_read_2(p, [buffer, small(model.len() + 1)]).is_err());
        assert_eq!(read(p, buffer, model.len()), Vec::from(model));
        assert!(peek_head_1(p, [buffer]).is_err());
    }

    #[test]
    fn bytes_are_found_and_skipped() {
        let p = &Process::new(233);
        let buffer = new_0(p, []).ok().unwrap();
        let iovec = p.list(&[p.binary(b"one\ntwo\n")]);
        assert!(write_2(p, [buffer, iovec]).is_ok());
        let newline = small(10);
        let found = find_byte_index_2(p, [buffer, newline]).ok().unwrap();
        assert_eq!(found.as_tuple().unwrap().get(1).as_small(), Some(3));
        assert!(skip_2(p, [buffer, small(4)]).is_ok());
        let found = find_byte_index_2(p, [buffer, newline]).ok().unwrap();
        assert_eq!(found.as_tuple().unwrap().get(1).as_small(), Some(3));
        assert!(
            find_byte_index_2(p, [buffer, small(0)]).ok().unwrap()
                == atom("not_found").as_atom().unwrap()
        );
        assert!(find_byte_index_2(p, [buffer, small(256)]).is_err());
        assert!(try_lock_1(p, [buffer]).ok().unwrap().same(atom("acquired")));
        assert!(try_lock_1(p, [buffer]).ok().unwrap().same(atom("busy")));
        assert!(unlock_1(p, [buffer]).is_ok());
        assert!(unlock_1(p, [buffer]).is_err());
    }
}
