//! The queue of a port: bytes that the driver has taken and not given on.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::ptr;

use super::binary::{Counted, DrvBinary, IoVec, Iov, bytes_at, elements, holder};
use super::instance::of;
use super::{DrvPort, api};

/// Bytes of a binary.
struct Part {
    holder: Counted,
    from: usize,
    to: usize,
}

/// The queue of a port.
#[derive(Default)]
pub(super) struct Queue {
    parts: VecDeque<Part>,
    size: usize,
    /// What was shown last.
    shown: Shown,
}

#[derive(Default)]
struct Shown {
    iov: Vec<Iov>,
    binaries: Vec<*mut DrvBinary>,
}

// SAFETY: DB1: what was shown points to binaries that the queue holds.
unsafe impl Send for Shown {}

impl Queue {
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.size = 0;
    }

    /// Adds parts behind all others, or before them.
    fn add(&mut self, parts: Vec<Part>, at_front: bool) {
        let parts = parts.into_iter().filter(|part| part.from < part.to);
        let parts: Vec<Part> = parts.collect();
        self.size += parts.iter().map(|part| part.to - part.from).sum::<usize>();
        match at_front {
            true => parts
                .into_iter()
                .rev()
                .for_each(|part| self.parts.push_front(part)),
            false => self.parts.extend(parts),
        }
    }

    /// Drops the first `count` bytes, and says how many are left; `None` if there are fewer.
    fn drop_first(&mut self, mut count: usize) -> Option<usize> {
        self.size = self.size.checked_sub(count)?;
        while let Some(part) = self.parts.front_mut().filter(|_| count > 0) {
            let taken = count.min(part.to - part.from);
            part.from += taken;
            count -= taken;
            if part.from == part.to {
                self.parts.pop_front();
            }
        }
        Some(self.size)
    }

    /// Where its bytes are.
    fn show(&mut self) -> &mut Shown {
        let iov = self.parts.iter().map(|part| {
            let bytes = part.holder.bytes(part.from, part.to);
            Iov {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            }
        });
        self.shown.iov = iov.collect();
        self.shown.binaries = self.parts.iter().map(|part| part.holder.as_ptr()).collect();
        &mut self.shown
    }
}

/// How a size says that there is none.
const NONE: usize = usize::MAX;

fn add(port: DrvPort, parts: impl FnOnce() -> Option<Vec<Part>>, at_front: bool) -> c_int {
    let Some((this, parts)) = of(port).zip(parts()) else {
        return -1;
    };
    this.queue.lock().add(parts, at_front);
    0
}

/// # Safety
/// NF1.
unsafe fn copy(data: *const c_char, size: usize) -> Option<Vec<Part>> {
    // SAFETY: by contract.
    let holder = Counted::of(unsafe { bytes_at(data, size) });
    Some(vec![Part {
        holder,
        from: 0,
        to: size,
    }])
}

/// # Safety
/// NF1.
unsafe fn share(binary: *mut DrvBinary, from: usize, size: usize) -> Option<Vec<Part>> {
    // SAFETY: by contract.
    let holder = unsafe { Counted::again(binary) }?;
    let to = from.checked_add(size).filter(|to| *to <= holder.size())?;
    Some(vec![Part { holder, from, to }])
}

/// # Safety
/// NF1.
unsafe fn share_vector(vector: *const IoVec, skip: usize) -> Option<Vec<Part>> {
    // SAFETY: by contract.
    let elements = unsafe { elements(vector, skip) };
    let part = |(bytes, binary): (&[u8], *mut DrvBinary)| {
        // SAFETY: by contract.
        let (holder, from) = unsafe { holder(bytes, binary) };
        let to = from + bytes.len();
        Part { holder, from, to }
    };
    Some(elements.into_iter().map(part).collect())
}

api! {
    /// Adds bytes at the end.
    fn driver_enq(port: DrvPort, data: *mut c_char, size: usize) -> c_int { add(port, || copy(data, size), false) }
    /// Adds bytes at the front.
    fn driver_pushq(port: DrvPort, data: *mut c_char, size: usize) -> c_int { add(port, || copy(data, size), true) }
    /// Adds bytes of a binary at the end.
    fn driver_enq_bin(port: DrvPort, binary: *mut DrvBinary, from: usize, size: usize) -> c_int {
        add(port, || share(binary, from, size), false)
    }
    /// Adds bytes of a binary at the front.
    fn driver_pushq_bin(port: DrvPort, binary: *mut DrvBinary, from: usize, size: usize) -> c_int {
        add(port, || share(binary, from, size), true)
    }
    /// Adds what is behind the first `skip` bytes of a vector at the end.
    fn driver_enqv(port: DrvPort, vector: *mut IoVec, skip: usize) -> c_int {
        add(port, || share_vector(vector, skip), false)
    }
    /// Adds what is behind the first `skip` bytes of a vector at the front.
    fn driver_pushqv(port: DrvPort, vector: *mut IoVec, skip: usize) -> c_int {
        add(port, || share_vector(vector, skip), true)
    }
    /// Drops the first bytes; how many are left, or -1.
    fn driver_deq(port: DrvPort, count: usize) -> usize {
        of(port).and_then(|this| this.queue.lock().drop_first(count)).unwrap_or(NONE)
    }
    /// How many bytes there are, or -1.
    fn driver_sizeq(port: DrvPort) -> usize { of(port).map_or(NONE, |this| this.queue.lock().size()) }
    /// Where the bytes are: until the queue changes.
    fn driver_peekq(port: DrvPort, count: *mut c_int) -> *mut Iov {
        let Some(this) = of(port) else {
            count.write(-1);
            return ptr::null_mut();
        };
        let mut queue = this.queue.lock();
        let shown = queue.show();
        count.write(shown.iov.len() as c_int);
        match shown.iov.is_empty() {
            true => ptr::null_mut(),
            false => shown.iov.as_mut_ptr(),
        }
    }
    /// Gives the queue as a vector; how many bytes there are, or -1.
    fn driver_peekqv(port: DrvPort, out: *mut IoVec) -> usize {
        let Some(this) = of(port) else { return NONE };
        let mut queue = this.queue.lock();
        let size = queue.size();
        let shown = queue.show();
        out.write(IoVec {
            count: shown.iov.len() as c_int,
            size,
            iov: shown.iov.as_mut_ptr(),
            binaries: shown.binaries.as_mut_ptr(),
        });
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(texts: &[&str]) -> Vec<Part> {
        let part = |text: &&str| Part {
            holder: Counted::of(text.as_bytes()),
            from: 0,
            to: text.len(),
        };
        texts.iter().map(part).collect()
    }

    /// What a driver sees of a queue.
    fn shown(queue: &mut Queue) -> Vec<String> {
        let shown = queue.show();
        assert_eq!(shown.iov.len(), shown.binaries.len());
        let text = |iov: &Iov| {
            // SAFETY: DB1: the queue holds the bytes.
            let bytes = unsafe { bytes_at(iov.iov_base.cast(), iov.iov_len) };
            String::from_utf8_lossy(bytes).into_owned()
        };
        shown.iov.iter().map(text).collect()
    }

    #[derive(Debug)]
    enum Change {
        Back(&'static [&'static str]),
        Front(&'static [&'static str]),
        Drop(usize, Option<usize>),
    }

    #[test]
    fn bytes_leave_in_the_order_of_the_queue() {
        use Change::{Back, Drop, Front};
        for (changes, expected) in [
            (vec![Back(&["ab", "", "cd"])], vec!["ab", "cd"]),
            (vec![Back(&["c"]), Front(&["a", "b"])], vec!["a", "b", "c"]),
            (vec![Front(&["c"]), Front(&["a", "b"])], vec!["a", "b", "c"]),
            (vec![Back(&["ab", "cd"]), Drop(1, Some(3))], vec!["b", "cd"]),
            (vec![Back(&["ab", "cd"]), Drop(2, Some(2))], vec!["cd"]),
            (vec![Back(&["ab", "cd"]), Drop(3, Some(1))], vec!["d"]),
            (vec![Back(&["ab", "cd"]), Drop(4, Some(0))], vec![]),
            (vec![Back(&["ab"]), Drop(3, None)], vec!["ab"]),
            (
                vec![
                    Back(&["ab"]),
                    Drop(1, Some(1)),
                    Front(&["x"]),
                    Drop(0, Some(2)),
                ],
                vec!["x", "b"],
            ),
        ] {
            let mut queue = Queue::default();
            for change in &changes {
                match *change {
                    Back(texts) => queue.add(parts(texts), false),
                    Front(texts) => queue.add(parts(texts), true),
                    Drop(count, left) => assert_eq!(queue.drop_first(count), left, "{changes:?}"),
                }
            }
            assert_eq!(shown(&mut queue), expected, "{changes:?}");
            let size: usize = expected.iter().map(|text| text.len()).sum();
            assert_eq!(queue.size(), size, "{changes:?}");
            queue.clear();
            assert_eq!((queue.size(), shown(&mut queue)), (0, vec![]));
        }
    }

    #[test]
    fn a_part_of_a_binary_is_within_it() {
        let binary = Counted::of(b"abc");
        for (from, size, expected) in [
            (0, 3, Some("abc")),
            (1, 2, Some("bc")),
            (3, 0, Some("")),
            (2, 2, None),
            (4, 0, None),
            (1, usize::MAX, None),
        ] {
            // SAFETY: NF1: a binary that has a count.
            let parts = unsafe { share(binary.as_ptr(), from, size) };
            let part = parts.as_ref().map(|parts| &parts[0]);
            let bytes = part.map(|part| part.holder.bytes(part.from, part.to));
            assert_eq!(bytes, expected.map(str::as_bytes), "{from}, {size}");
        }
        // SAFETY: NF1: no binary.
        assert!(unsafe { share(ptr::null_mut(), 0, 0) }.is_none());
    }

    #[test]
    fn what_is_behind_the_first_bytes_of_a_vector_is_shared_or_copied() {
        let binary = Counted::of(b"xxab");
        let held = binary.bytes(2, 4);
        let mut iov = [b"cd".as_slice(), b"", held].map(|bytes| Iov {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        });
        let mut binaries = [ptr::null_mut(), ptr::null_mut(), binary.as_ptr()];
        let vector = IoVec {
            count: 3,
            size: 4,
            iov: iov.as_mut_ptr(),
            binaries: binaries.as_mut_ptr(),
        };
        for (skip, expected) in [
            (0, vec!["cd", "ab"]),
            (1, vec!["d", "ab"]),
            (2, vec!["ab"]),
            (3, vec!["b"]),
            (4, vec![]),
            (9, vec![]),
        ] {
            // SAFETY: NF1: a vector, whose bytes are held.
            let parts = unsafe { share_vector(&raw const vector, skip) }.expect("parts");
            let is_shared = parts
                .last()
                .map(|part| part.holder.as_ptr() == binary.as_ptr());
            assert_eq!(is_shared, (!expected.is_empty()).then_some(true), "{skip}");
            let mut queue = Queue::default();
            queue.add(parts, false);
            assert_eq!(shown(&mut queue), expected, "{skip}");
        }
    }
}
