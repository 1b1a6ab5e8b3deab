//! The memory of another process. All reads are bounded, and none of them changes anything.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Memory that is read, of a process or of a test.
pub trait Memory {
    /// Fills `buffer` with what is at `address`; `false` when not all of it can be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool;

    /// The `N` words at an address.
    fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]>
    where
        Self: Sized,
    {
        let mut words = [0; N];
        let all = self.row(address, N)?;
        words.copy_from_slice(&all);
        Some(words)
    }

    /// The `count` words at an address, [`ROW_MAX`] at most.
    fn row(&self, address: u64, count: usize) -> Option<Vec<u64>> {
        if count > ROW_MAX {
            return None;
        }
        let mut bytes = vec![0; count * 8];
        self.read(address, &mut bytes).then(|| words_of(&bytes))
    }
}

/// The most words that are read at once.
pub const ROW_MAX: usize = 1 << 20;

/// The words of bytes, without a rest.
#[must_use]
pub fn words_of(bytes: &[u8]) -> Vec<u64> {
    let (chunks, _) = bytes.as_chunks::<8>();
    chunks
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
        .collect()
}

/// Memory that is read in order of address: more is read at once than is asked for, because a read takes longer than its bytes.
#[derive(Debug)]
pub struct Ahead<'m, M> {
    memory: &'m M,
    /// Where what was read begins, and that.
    read: RefCell<(u64, Vec<u8>)>,
}

/// Bytes that are read at once.
const AHEAD: usize = 64 << 10;

impl<'m, M: Memory> Ahead<'m, M> {
    /// Nothing was read yet.
    pub fn new(memory: &'m M) -> Ahead<'m, M> {
        let read = RefCell::default();
        Ahead { memory, read }
    }
}

impl<M: Memory> Memory for Ahead<'_, M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let (begin, bytes) = &mut *self.read.borrow_mut();
        let at = usize::try_from(address.wrapping_sub(*begin)).unwrap_or(usize::MAX);
        let end = at.checked_add(buffer.len());
        if let Some(known) = end.and_then(|end| bytes.get(at..end)) {
            buffer.copy_from_slice(known);
            return true;
        }
        let mut ahead = vec![0; AHEAD.max(buffer.len())];
        if !self.memory.read(address, &mut ahead) {
            // It ends before that.
            return self.memory.read(address, buffer);
        }
        buffer.copy_from_slice(&ahead[..buffer.len()]);
        (*begin, *bytes) = (address, ahead);
        true
    }
}

/// The memory of a process. If the process starts another program, its old memory is gone, and reads fail.
#[derive(Debug)]
pub struct ProcessMemory {
    file: File,
}

impl ProcessMemory {
    /// # Errors
    /// When there is no such process, or this user may not read it.
    pub fn open(pid: u32) -> io::Result<ProcessMemory> {
        let file = File::open(format!("/proc/{pid}/mem"))?;
        Ok(ProcessMemory { file })
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        // The file's offsets are signed.
        address < 1 << 63 && self.file.read_exact_at(buffer, address).is_ok()
    }
}

/// What is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// It can be written.
    pub is_writable: bool,
    /// It can be executed.
    pub is_executable: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file, or a name in square brackets; empty where there is none.
    pub path: String,
}

impl Mapping {
    /// Reads a line of `/proc/PID/maps`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?.as_bytes();
        let offset = fields.next()?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let path = fields.nth(2).unwrap_or_default();
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            is_writable: rights.get(1) == Some(&b'w'),
            is_executable: rights.get(2) == Some(&b'x'),
            offset: hex(offset)?,
            path: path.trim_start().to_owned(),
        })
    }
}

/// What is mapped into a process now.
///
/// # Errors
/// When there is no such process, or this user may not read it.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(text.lines().filter_map(Mapping::parse).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_memory_of_a_process_is_gone_when_it_starts_another_program() {
        let mut child = Command::new("sh")
            .args(["-c", "echo; read line; exec sleep 100"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        // Before it prints, it may not be the shell yet, and have no memory that stays.
        let from = child.stdout.as_mut().expect("a pipe");
        from.read_exact(&mut [0]).expect("it prints");
        let memory = ProcessMemory::open(child.id()).expect("it is our own");
        let maps = mappings(child.id()).expect("it runs");
        let of_program = maps.iter().find(|mapping| mapping.path.starts_with('/'));
        let address = of_program.expect("it has a file").start;
        assert!(memory.words::<1>(address).is_some(), "it waits");
        let to = child.stdin.as_mut().expect("a pipe");
        to.write_all(b"go\n").expect("it reads");
        // If it stays there, the test does not end.
        while memory.words::<1>(address).is_some() {
            std::thread::yield_now();
        }
        let ended = child.try_wait().expect("it can be asked");
        assert_eq!(ended, None, "it is another program, and goes on");
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    /// Numbers up to an end. Reads are counted.
    struct Numbers {
        end: u64,
        reads: std::cell::Cell<u32>,
    }

    impl Memory for Numbers {
        fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
            self.reads.set(self.reads.get() + 1);
            let numbers = (address..).map(|number| number.to_le_bytes()[0]);
            buffer
                .iter_mut()
                .zip(numbers)
                .for_each(|(to, from)| *to = from);
            address + buffer.len() as u64 <= self.end
        }
    }

    #[test]
    fn what_is_read_ahead_is_read_once() {
        let reads = std::cell::Cell::new(0);
        let numbers = Numbers {
            end: 100_000,
            reads,
        };
        let ahead = Ahead::new(&numbers);
        let same = |address: u64, bytes: usize| {
            let [mut one, mut other] = [vec![0; bytes], vec![0; bytes]];
            assert!(ahead.read(address, &mut one) && numbers.read(address, &mut other));
            assert_eq!(one, other, "{address}");
            numbers.reads.set(numbers.reads.get() - 1);
        };
        for address in (1_000..60_000).step_by(96) {
            same(address, 96);
        }
        assert_eq!(numbers.reads.get(), 1);
        // Before it, longer than it, at its end, and where there is too little for that.
        for (address, bytes) in [(7, 9), (5, 70_000), (70_000, 5_002), (99_990, 10)] {
            same(address, bytes);
        }
        assert!(!ahead.read(99_990, &mut [0; 11]));
        assert!(!ahead.read(u64::MAX - 200_000, &mut [0; 8]));
    }

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f12-7f34 rw-p 00002000 08:01 1234        /usr/lib/my lib.so (deleted)";
        let expect = Mapping {
            start: 0x7f12,
            end: 0x7f34,
            is_writable: true,
            is_executable: false,
            offset: 0x2000,
            path: "/usr/lib/my lib.so (deleted)".into(),
        };
        assert_eq!(Mapping::parse(line), Some(expect));
        let nameless = Mapping::parse("7f12-7f34 r-xp 00000000 00:00 0 ").expect("a line");
        assert!(nameless.is_executable && nameless.path.is_empty());
        for line in ["", "x", "12", "12-zz r 0 0 0", "12-13"] {
            assert_eq!(Mapping::parse(line), None, "{line}");
        }
    }
}
