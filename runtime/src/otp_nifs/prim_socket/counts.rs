//! What is counted: of a socket, and of all that are open.

use std::sync::atomic::{AtomicU64, Ordering};

use super::names::map;
use crate::heap::Heap;
use crate::term::Term;

/// Declares the counters with their names.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A counter of a socket.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Count {
            $($(#[$doc])* $name,)*
        }

        /// Their names.
        const NAMES: &[&str] = &[$($text,)*];
    };
}

counters! {
    /// Bytes that were read.
    ReadBytes = "read_byte",
    ReadFails = "read_fails",
    /// Reads that gave what was asked for.
    Reads = "read_pkg",
    ReadMost = "read_pkg_max",
    ReadTries = "read_tries",
    ReadWaits = "read_waits",
    /// Bytes that were written.
    WriteBytes = "write_byte",
    WriteFails = "write_fails",
    /// Writes whose bytes have all been taken.
    Writes = "write_pkg",
    WriteMost = "write_pkg_max",
    WriteTries = "write_tries",
    WriteWaits = "write_waits",
    Accepted = "acc_success",
    AcceptFails = "acc_fails",
    AcceptTries = "acc_tries",
    AcceptWaits = "acc_waits",
}

/// The counters that files which are sent have, by name.
const FILE_NAMES: &[&str] = &[
    "sendfile",
    "sendfile_byte",
    "sendfile_fails",
    "sendfile_max",
    "sendfile_pkg",
    "sendfile_pkg_max",
    "sendfile_tries",
    "sendfile_waits",
];

/// What is counted of files that are sent.
#[derive(Default)]
pub(super) struct FileCounts {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) fails: u64,
    pub(super) most: u64,
    /// Calls that took bytes.
    pub(super) parts: u64,
    pub(super) parts_most: u64,
    pub(super) tries: u64,
    pub(super) waits: u64,
    /// Bytes of the file that is being sent.
    pub(super) so_far: u64,
}

/// The counters of a socket.
#[derive(Default)]
pub(super) struct Counts {
    counts: [u64; NAMES.len()],
    /// Bytes of the read, and of the write, that is not complete yet.
    read_so_far: u64,
    written_so_far: u64,
    pub(super) files: Option<Box<FileCounts>>,
}

impl Counts {
    pub(super) fn add(&mut self, of: Count, more: u64) {
        let count = &mut self.counts[of as usize];
        *count = count.wrapping_add(more);
    }

    fn raise(&mut self, of: Count, to: u64) {
        let count = &mut self.counts[of as usize];
        *count = to.max(*count);
    }

    /// A part of a read was read.
    pub(super) fn read_part(&mut self, bytes: usize) {
        self.add(Count::ReadBytes, bytes as u64);
        self.read_so_far += bytes as u64;
    }

    /// The parts that were read are all that comes for now.
    pub(super) fn end_read(&mut self) {
        let bytes = std::mem::take(&mut self.read_so_far);
        self.raise(Count::ReadMost, bytes);
    }

    /// A message was read.
    pub(super) fn read_message(&mut self, bytes: usize) {
        self.add(Count::Reads, 1);
        self.add(Count::ReadBytes, bytes as u64);
        self.raise(Count::ReadMost, bytes as u64);
    }

    /// A part of a write was written.
    pub(super) fn write_part(&mut self, bytes: usize) {
        self.add(Count::WriteBytes, bytes as u64);
        self.written_so_far += bytes as u64;
    }

    /// The last part was written.
    pub(super) fn end_write(&mut self, bytes: usize) {
        self.add(Count::Writes, 1);
        self.add(Count::WriteBytes, bytes as u64);
        let all = std::mem::take(&mut self.written_so_far) + bytes as u64;
        self.raise(Count::WriteMost, all);
    }

    /// What is counted of files that are sent, from now on.
    pub(super) fn files(&mut self) -> &mut FileCounts {
        self.files.get_or_insert_default()
    }

    /// All of them, by name.
    pub(super) fn term<'p>(&self, p: &'p Heap) -> Term<'p> {
        let mut pairs: Vec<_> = NAMES.iter().copied().zip(self.counts).collect();
        if let Some(it) = &self.files {
            let counts = [
                it.calls,
                it.bytes,
                it.fails,
                it.most,
                it.parts,
                it.parts_most,
                it.tries,
                it.waits,
            ];
            pairs.extend(FILE_NAMES.iter().copied().zip(counts));
        }
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, n)| (*name, p.unsigned(*n)))
            .collect();
        map(p, &pairs)
    }
}

/// A counter of open sockets: its name, and which it counts.
struct Total {
    name: &'static str,
    counts: fn(i32, i32, i32) -> bool,
    number: AtomicU64,
}

macro_rules! totals {
    ($($name:literal = |$domain:pat_param, $kind:pat_param, $protocol:pat_param| $counts:expr;)*) => {
        static TOTALS: [Total; const { [$($name),*].len() }] = [$(Total {
            name: $name,
            counts: |$domain, $kind, $protocol| $counts,
            number: AtomicU64::new(0),
        },)*];
    };
}

totals! {
    "num_sockets" = |_, _, _| true;
    "num_tdgrams" = |_, kind, _| kind == libc::SOCK_DGRAM;
    "num_tstreams" = |_, kind, _| kind == libc::SOCK_STREAM;
    "num_tseqpkgs" = |_, kind, _| kind == libc::SOCK_SEQPACKET;
    "num_dlocal" = |domain, _, _| domain == libc::AF_UNIX;
    "num_dinet" = |domain, _, _| domain == libc::AF_INET;
    "num_dinet6" = |domain, _, _| domain == libc::AF_INET6;
    "num_pip" = |_, _, protocol| protocol == libc::IPPROTO_IP;
    "num_ptcp" = |_, _, protocol| matches!(protocol, libc::IPPROTO_TCP | libc::IPPROTO_MPTCP);
    "num_pudp" = |_, _, protocol| protocol == libc::IPPROTO_UDP;
    "num_psctp" = |_, _, protocol| protocol == libc::IPPROTO_SCTP;
}

fn of(domain: i32, kind: i32, protocol: i32) -> impl Iterator<Item = &'static AtomicU64> {
    let totals = TOTALS.iter();
    totals
        .filter(move |total| (total.counts)(domain, kind, protocol))
        .map(|total| &total.number)
}

/// A socket was opened.
pub(super) fn opened(domain: i32, kind: i32, protocol: i32) {
    of(domain, kind, protocol).for_each(|number| {
        number.fetch_add(1, Ordering::Relaxed);
    });
}

/// It was closed.
pub(super) fn closed(domain: i32, kind: i32, protocol: i32) {
    of(domain, kind, protocol).for_each(|number| {
        number.fetch_sub(1, Ordering::Relaxed);
    });
}

/// How many sockets there are, of which kind.
pub(super) fn totals(p: &Heap) -> Term<'_> {
    let numbers = TOTALS.iter().map(|total| {
        let number = total.number.load(Ordering::Relaxed);
        (total.name, p.unsigned(number))
    });
    let bits = ("num_cnt_bits", Term::small(64));
    map(p, &std::iter::once(bits).chain(numbers).collect::<Vec<_>>())
}
