//! The emitter, which collects words of code, the places of labels, and the addresses that are known only at the end.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use crate::code::operand::Sink;

thread_local! {
    /// Memory of the words that the thread has emitted last, for the next module.
    static SPARE: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

/// Memory of more words than this is given back.
const SPARE_WORDS: usize = 1 << 18;

/// Code being made.
#[derive(Default)]
pub(super) struct Emitter {
    words: Vec<u64>,
    /// Where each label stands, as an offset in words.
    labels: Vec<Option<u32>>,
    /// Words that hold a label's number and must become its address.
    patches: Vec<u32>,
    /// Words that hold an offset into the string table and must become an address.
    strings: Vec<u32>,
}

impl Emitter {
    pub(super) fn new(label_count: u32) -> Emitter {
        Emitter {
            words: SPARE.take(),
            labels: vec![None; label_count as usize + 1],
            ..Emitter::default()
        }
    }
    /// Offset of the next word.
    pub(super) fn here(&self) -> u32 {
        self.words.len() as u32
    }
    pub(super) fn bind(&mut self, label: u32) {
        self.labels[label as usize] = Some(self.here());
    }
    pub(super) fn offset(&self, label: u32) -> Option<u32> {
        self.labels[label as usize]
    }
    /// Puts another word at this offset.
    pub(super) fn replace(&mut self, offset: u32, word: u64) {
        self.words[offset as usize] = word;
    }

    /// Puts the code where it stays.
    ///
    /// # Errors
    /// A label that is jumped to and stands nowhere.
    pub(super) fn finish(mut self, strings: &[u8]) -> Result<Box<[AtomicU64]>, u32> {
        let mut code: Box<[u64]> = self.words.as_slice().into();
        let base = code.as_ptr() as u64;
        for at in self.patches {
            let label = code[at as usize] as u32;
            let offset = self.labels[label as usize].ok_or(label)?;
            code[at as usize] = base + u64::from(offset) * 8;
        }
        for at in self.strings {
            code[at as usize] += strings.as_ptr() as u64;
        }
        if self.words.capacity() <= SPARE_WORDS {
            self.words.clear();
            SPARE.set(self.words);
        }
        Ok(as_atomic(code))
    }
}

impl Sink for Emitter {
    fn word(&mut self, word: u64) {
        self.words.push(word);
    }
    fn label(&mut self, label: u32) {
        if label != 0 {
            self.patches.push(self.here());
        }
        self.words.push(u64::from(label));
    }
    fn string(&mut self, offset: u64) {
        self.strings.push(self.here());
        self.words.push(offset);
    }
}

fn as_atomic(code: Box<[u64]>) -> Box<[AtomicU64]> {
    let code: *mut [u64] = Box::into_raw(code);
    // SAFETY: C1: same size and alignment; the exclusive owner gives it up here.
    unsafe { Box::from_raw(code as *mut [AtomicU64]) }
}
