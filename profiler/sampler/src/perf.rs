//! Samples by the performance events of the kernel: a clock of each thread's running time, which copies registers and stack
//! of user code when it rings.
//!
//! Invariants, which SAFETY comments cite:
//! * P1: a mapping of an event has a page for its head and `data` bytes behind it. It lives as long as its [`Event`], and nobody
//!   but the kernel and this event writes to it.
//! * P2: it is at a page's start, and all places in it that are read or written are multiples of 8 bytes.
//! * P3: the kernel writes data between the tail and the head only before it sets the head, and never past the tail.
#![expect(
    unsafe_code,
    reason = "a system call, and memory that the kernel writes"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd as _};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use perf_event_open_sys as sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::arch::{self, PERF_MASK, PERF_REGISTERS, Registers};

/// Bytes of a page.
const PAGE: usize = 4096;

/// Pages for data. An ordinary user may lock some hundred pages for each processor, and there may be many threads:
/// where not all are to be had, an event gets fewer.
const PAGES: [usize; 4] = [64, 32, 16, 8];

/// Bytes of stack that the kernel copies.
pub const STACK_BYTES: u32 = 16 * 1024;

/// Kinds of records.
const LOST: u64 = 2;
const SAMPLE: u64 = 9;

/// Words of a sample before its registers: head, instruction, thread, time, kind of registers.
const BEFORE_REGISTERS: usize = 5;

/// The registers are those of a 64-bit thread.
const ABI_64: u64 = 2;

/// The moment of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, in monotonic nanoseconds.
    pub time_ns: u64,
    /// The registers.
    pub registers: Registers,
    /// The stack from its top on, as far as it was copied.
    pub stack: Vec<u64>,
    /// More may be on the stack.
    pub is_cut: bool,
}

/// What comes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A sample.
    Moment(Moment),
    /// This number of samples found no room.
    Lost(u64),
}

/// The event of a thread.
pub struct Event {
    /// The thread's number in the operating system.
    pub tid: u32,
    file: File,
    map: MmapRaw,
    /// Bytes for data.
    data: usize,
    tail: u64,
}

fn attributes(period_ns: u64) -> sys::bindings::perf_event_attr {
    use sys::bindings as of;
    let mut attributes = of::perf_event_attr {
        size: u32::try_from(size_of::<of::perf_event_attr>()).unwrap_or(0),
        type_: of::PERF_TYPE_SOFTWARE,
        config: u64::from(of::PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(
            of::PERF_SAMPLE_IP
                | of::PERF_SAMPLE_TID
                | of::PERF_SAMPLE_TIME
                | of::PERF_SAMPLE_REGS_USER
                | of::PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: PERF_MASK,
        sample_stack_user: STACK_BYTES,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = period_ns;
    attributes.__bindgen_anon_2.wakeup_events = 1;
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_use_clockid(1);
    attributes.set_disabled(1);
    attributes
}

impl Event {
    /// Opens the event of a thread, which does not count yet.
    ///
    /// # Errors
    /// When this user may not, or there is no such thread.
    pub fn open(thread: u32, period_ns: u64) -> io::Result<Event> {
        let mut attributes = attributes(period_ns);
        let tid = i32::try_from(thread).map_err(io::Error::other)?;
        let flags = libc::c_ulong::from(sys::bindings::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes are a value of the kernel's type, with its size in it; the call keeps no pointer to them.
        let fd = unsafe { sys::perf_event_open(&raw mut attributes, tid, -1, -1, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just given this descriptor, and nobody else has it.
        let file = unsafe { File::from_raw_fd(fd) };
        let (map, data) = map(&file)?;
        let tail = 0;
        Ok(Event {
            tid: thread,
            file,
            map,
            data,
            tail,
        })
    }

    /// Counts from now on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: it is the descriptor of an event; the request has no pointer.
        let done = unsafe { sys::ioctls::ENABLE(self.file.as_raw_fd(), 0) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// A word of the mapping.
    fn word(&self, byte: usize) -> &AtomicU64 {
        assert!(byte.is_multiple_of(8) && byte + 8 <= PAGE + self.data);
        let start = self.map.as_mut_ptr();
        // SAFETY: P1, P2: the word lies in the mapping, as was just checked, at a multiple of 8.
        let at = unsafe { start.add(byte) };
        // SAFETY: P1, P2: it lives as long as this event, and whoever else writes it is the kernel, a word at a time.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    fn head_word(&self) -> &AtomicU64 {
        self.word(std::mem::offset_of!(
            sys::bindings::perf_event_mmap_page,
            data_head
        ))
    }

    fn tail_word(&self) -> &AtomicU64 {
        self.word(std::mem::offset_of!(
            sys::bindings::perf_event_mmap_page,
            data_tail
        ))
    }

    /// A word of the data, which go round.
    fn data(&self, position: u64) -> u64 {
        let at = position % self.data as u64;
        let at = PAGE + usize::try_from(at).unwrap_or(0);
        self.word(at).load(Ordering::Relaxed)
    }

    /// What has come since, one after the other.
    pub fn take_next(&mut self) -> Option<Came> {
        // P3: what is before the head is whole.
        let head = self.head_word().load(Ordering::Acquire);
        while self.tail < head {
            let first = self.data(self.tail);
            let bytes = first >> 48;
            let is_record = bytes >= 8 && bytes.is_multiple_of(8) && self.tail + bytes <= head;
            let words = if is_record { bytes / 8 } else { 0 };
            let record = (0..words).map(|at| self.data(self.tail + at * 8));
            let record: Vec<u64> = record.collect();
            self.tail = if is_record { self.tail + bytes } else { head };
            self.tail_word().store(self.tail, Ordering::Release);
            if let Some(came) = came(&record) {
                return Some(came);
            }
        }
        None
    }
}

/// Maps an event with as much room as can be had.
fn map(file: &File) -> io::Result<(MmapRaw, usize)> {
    let mut refused = io::Error::from(io::ErrorKind::PermissionDenied);
    for pages in PAGES {
        let data = pages * PAGE;
        match MmapOptions::new().len(PAGE + data).map_raw(file) {
            Ok(map) => return Ok((map, data)),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// What a record tells; nothing of a record of another kind, or of a thread without user code.
fn came(record: &[u64]) -> Option<Came> {
    match record.first()? & 0xffff_ffff {
        LOST => Some(Came::Lost(*record.get(2)?)),
        SAMPLE => {
            let time_ns = *record.get(3)?;
            if *record.get(4)? != ABI_64 {
                return None;
            }
            let registers = record.get(BEFORE_REGISTERS..)?;
            let (registers, stack) = registers.split_first_chunk::<PERF_REGISTERS>()?;
            let (size, stack) = stack.split_first()?;
            let size = usize::try_from(*size).ok()?;
            let (copied, used) = stack.split_at_checked(size / 8)?;
            let used = usize::try_from(*used.first()?).ok()?.min(size);
            Some(Came::Moment(Moment {
                time_ns,
                registers: arch::registers(registers),
                stack: copied.get(..used / 8)?.to_vec(),
                is_cut: used == size,
            }))
        }
        _ => None,
    }
}

/// Waits until an event has come, but not longer than `at_most_ns` nanoseconds. The events whose threads have ended.
///
/// # Errors
/// What the kernel says.
pub fn wait(events: &[Event], at_most_ns: u64) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = events
        .iter()
        .map(|event| PollFd::from_borrowed_fd(event.file.as_fd(), PollFlags::IN))
        .collect();
    let time = Timespec {
        tv_sec: i64::try_from(at_most_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(at_most_ns % 1_000_000_000).unwrap_or(0),
    };
    match poll(&mut fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ended = fds.iter().map(|fd| fd.revents().contains(PollFlags::HUP));
    Ok(ended.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a sample with so many words of stack, of which some were used.
    fn sample(abi: u64, stack: &[u64], used: u64) -> Vec<u64> {
        let mut record = vec![SAMPLE, 0x1234, 7, 99, abi];
        record.extend((1..).take(PERF_REGISTERS));
        record.push(8 * stack.len() as u64);
        record.extend(stack);
        record.push(used);
        record
    }

    #[test]
    fn records_are_read_as_the_kernel_writes_them() {
        let Some(Came::Moment(moment)) = came(&sample(ABI_64, &[5, 6, 7], 16)) else {
            panic!("it is a sample");
        };
        assert_eq!((moment.time_ns, moment.is_cut), (99, false));
        assert_eq!(moment.stack, [5, 6]);
        let whole = came(&sample(ABI_64, &[5, 6, 7], 24));
        assert!(matches!(whole, Some(Came::Moment(of)) if of.is_cut));
        assert_eq!(came(&[LOST, 1, 42]), Some(Came::Lost(42)));
        assert_eq!(came(&sample(0, &[], 0)), None);
    }

    #[test]
    fn a_record_that_ends_early_is_none() {
        let record = sample(ABI_64, &[5, 6, 7], 24);
        for length in 0..record.len() {
            assert_eq!(came(&record[..length]), None, "{length}");
        }
        let mut record = record;
        record[BEFORE_REGISTERS + PERF_REGISTERS] = u64::MAX;
        assert_eq!(came(&record), None);
    }
}
