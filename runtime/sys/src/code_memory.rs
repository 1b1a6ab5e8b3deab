//! Memory for machine code: one file in memory, mapped twice, so that no page is ever writable and executable at one
//! address.
//!
//! Invariants:
//! - CM1: the file is nobody else's. It does not change its length as long as it is mapped.
#![expect(unsafe_code, reason = "memory is mapped")]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapMut, MmapOptions};
use rustix::fs::{MemfdFlags, memfd_create};

/// A range of memory for machine code. Pages take no memory until they are written.
pub struct CodeMemory {
    /// Where code runs.
    run: Mmap,
    /// Where it is written.
    write: MmapMut,
}

impl CodeMemory {
    /// `bytes` of it.
    ///
    /// # Errors
    /// The system's: it may forbid memory that can be executed.
    pub fn new(bytes: usize) -> io::Result<CodeMemory> {
        let file = File::from(memfd_create("beamline_code", MemfdFlags::CLOEXEC)?);
        file.set_len(bytes as u64)?;
        let options = MmapOptions::new();
        // SAFETY: CM1.
        let (run, write) = unsafe { (options.map_exec(&file)?, options.map_mut(&file)?) };
        Ok(CodeMemory { run, write })
    }

    /// The address at which code at the beginning runs.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.run.as_ptr() as u64
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.run.len()
    }

    /// Puts `code` at `offset`. Nobody runs what was there.
    ///
    /// # Panics
    /// Where it does not fit.
    pub fn write(&mut self, offset: usize, code: &[u8]) {
        self.write[offset..offset + code.len()].copy_from_slice(code);
    }
}
