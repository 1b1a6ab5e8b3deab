//! Memory for machine code, mapped twice, so that no page is ever writable and executable at one address.
//!
//! Invariants:
//! - CM1: the memory is nobody else's. It does not change its length, and stays mapped for ever.
//! - CM2: nobody reads, writes or runs what a marker maps.
//! - CM3: a call of the system gets no address of memory.
#![expect(unsafe_code, reason = "memory is mapped")]

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, MmapOptions};
use rustix::fs::{MemfdFlags, memfd_create};

/// A range of memory for machine code. Pages take no memory until they are written.
pub struct CodeMemory {
    /// Where code runs.
    run: u64,
    /// Where it is written.
    write: &'static mut [u8],
}

impl CodeMemory {
    /// `bytes` of it, of a file in memory.
    ///
    /// # Errors
    /// The system's: it may forbid memory that can be executed.
    pub fn new(bytes: usize) -> io::Result<CodeMemory> {
        announce();
        let file = File::from(memfd_create("beamline_code", MemfdFlags::CLOEXEC)?);
        file.set_len(bytes as u64)?;
        let options = MmapOptions::new();
        // SAFETY: CM1.
        let (run, write) = unsafe { (options.map_exec(&file)?, options.map_mut(&file)?) };
        Ok(CodeMemory {
            run: Box::leak(Box::new(run)).as_ptr() as u64,
            write: &mut *Box::leak(Box::new(write)),
        })
    }

    /// `bytes` of it, of no file: the profiler `perf` reads its map of a process for such memory only.
    ///
    /// # Errors
    /// The system's, which may forbid memory that can be executed.
    pub fn anonymous(bytes: usize) -> io::Result<CodeMemory> {
        announce();
        let failed = || io::Error::last_os_error();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: CM1: new memory, where the system finds room.
        let write = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if write == libc::MAP_FAILED {
            return Err(failed());
        }
        // SAFETY: CM1: a length of 0 maps shared memory once more, at another address.
        let run = unsafe { libc::mremap(write, 0, bytes, libc::MREMAP_MAYMOVE) };
        if run == libc::MAP_FAILED {
            return Err(failed());
        }
        // SAFETY: CM1: nobody has seen this address yet.
        if unsafe { libc::mprotect(run, bytes, libc::PROT_READ | libc::PROT_EXEC) } == -1 {
            return Err(failed());
        }
        Ok(CodeMemory {
            run: run as u64,
            // SAFETY: CM1: zeroed, and nobody else writes there.
            write: unsafe { std::slice::from_raw_parts_mut(write.cast(), bytes) },
        })
    }

    /// What is written behind `from`, a multiple of a page, is no other process's any more: after a fork, the two write
    /// there what they like. Nothing was written there yet.
    ///
    /// # Errors
    /// The system's.
    pub fn part(&mut self, from: usize) -> io::Result<()> {
        self.map_anew(from..self.size(), &[])
    }

    /// What is written in `pages`, a multiple of pages, is no other process's any more: after a fork, this one may change
    /// what was written there before. This thread is the only one.
    ///
    /// # Errors
    /// The system's.
    pub fn own(&mut self, pages: Range<usize>) -> io::Result<()> {
        let code = self.write[pages.clone()].to_vec();
        self.map_anew(pages, &code)
    }

    /// Maps new memory there, which begins with `code`.
    fn map_anew(&mut self, pages: Range<usize>, code: &[u8]) -> io::Result<()> {
        let bytes = pages.len();
        let mut file = File::from(memfd_create("beamline_code", MemfdFlags::CLOEXEC)?);
        file.set_len(bytes as u64)?;
        file.write_all(code)?;
        let write = self.write[pages.clone()].as_mut_ptr() as u64;
        let run = self.run + pages.start as u64;
        for (address, access) in [
            (write, libc::PROT_READ | libc::PROT_WRITE),
            (run, libc::PROT_READ | libc::PROT_EXEC),
        ] {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
            let at = address as *mut libc::c_void;
            // SAFETY: CM1: the memory is this one's, and what is there stays the same.
            let mapped = unsafe { libc::mmap(at, bytes, access, flags, file.as_raw_fd(), 0) };
            if mapped == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// The address at which code at the beginning runs.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.run
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.write.len()
    }

    /// Puts `code` at `offset`. Nobody runs what was there.
    ///
    /// # Panics
    /// Where it does not fit.
    pub fn write(&mut self, offset: usize, code: &[u8]) {
        self.write[offset..offset + code.len()].copy_from_slice(code);
    }

    /// The word of code at `offset`, a multiple of its size.
    #[must_use]
    pub fn word(&self, offset: usize) -> [u8; 8] {
        let bytes = &self.write[offset..offset + 8];
        bytes.try_into().expect("eight bytes")
    }

    /// Sets it, all at once, while others may run it.
    ///
    /// # Panics
    /// Where `offset` is no multiple of its size.
    pub fn set_word(&mut self, offset: usize, code: [u8; 8]) {
        assert!(
            offset.is_multiple_of(8),
            "words lie in no two lines of a cache"
        );
        let at = (&raw mut self.write[offset]).cast::<u64>();
        // SAFETY: CM1: the word is this memory's, and is written through this mapping only.
        unsafe { AtomicU64::from_ptr(at) }.store(u64::from_le_bytes(code), Ordering::SeqCst);
        synchronize();
    }
}

/// Calls `membarrier(2)`, which changes no memory.
fn barrier(command: libc::c_int) {
    // SAFETY: CM3: it reads and writes no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
}

/// Tells the system that [`synchronize`] will be called: it takes milliseconds to take note of that once there is a second
/// thread.
fn announce() {
    barrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
}

/// The processors that run threads of this process run what was written before.
///
/// Processors with this instruction set see a word of code that is stored at once as it was or as it is. What they have
/// taken in already, or take in by another address than it was written to, they may run as it was. Source: `membarrier(2)`,
/// `SYNC_CORE`. Where the system does not have it, they see the word a little later.
fn synchronize() {
    barrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
}

/// The first page of a file, mapped executable. Nothing runs there: by this mapping the profiler `perf` learns that the
/// file tells of compiled code.
pub struct Marker {
    _page: Mmap,
}

impl Marker {
    /// Marks a file, which is not empty.
    ///
    /// # Errors
    /// The system's: it forbids this in file systems from which no programs are started.
    pub fn new(file: &File) -> io::Result<Marker> {
        // SAFETY: CM2.
        let page = unsafe { MmapOptions::new().len(1).map_exec(file)? };
        Ok(Marker { _page: page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_runs() {
        for make in [CodeMemory::new, CodeMemory::anonymous] {
            let mut memory = make(1 << 20).expect("memory");
            memory.write(4096, &[1, 2, 3]);
            assert_eq!(memory.size(), 1 << 20);
            let at = (memory.address() + 4096) as *const [u8; 3];
            // SAFETY: CM1: within the memory.
            assert_eq!(unsafe { *at }, [1, 2, 3]);
            let same = |address: u64| address == memory.write.as_ptr() as u64;
            assert!(!same(memory.address()));
        }
    }
}
