//! Compiled code: where it lies in memory, and which specific instructions it was made of.
//!
//! A function is compiled into a block. A process's stack holds return addresses of compiled code. Its `pc`, its catch
//! tags and all places in code that programs see are addresses of specific instructions. The tables here lead from the
//! one to the other.
//!
//! Invariants:
//! - MC1: the words [`head::NATIVE`](super::op::entry::NATIVE) and `BODY` of a function's head are addresses of compiled
//!   code, which stays as long as the function's own code (C2).
//! - MC2: a header word on a stack that is no trace frame's is an address that [`specific`] knows.
//! - MC3: machine code that others may run changes by one store of an aligned word. An instruction is replaced by one that
//!   begins at the same byte and is no longer, so that nobody goes on in the middle of one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::LocalKey;

use parking_lot::{Mutex, RwLock};

use super::bif::Bif;
use super::op::Op;
use super::published::Listed;
use super::stubs;
use crate::sys::code_memory::CodeMemory;
use crate::term::CodeAddress;

/// Bytes for compiled code. Pages that nothing was written to take no memory.
pub(crate) const BYTES: usize = 256 << 20;
/// Blocks begin at multiples of this number of bytes.
const ALIGNMENT: usize = 64;

/// Code that belongs to no function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    /// Where a function is called that is not compiled yet, or whose body is a BIF.
    /// `rax` holds the function's entry.
    pub(crate) generic_entry: u64,
    /// Where a compiled function under a breakpoint is called. `rax` holds the function's entry.
    pub(crate) traced_entry: u64,
    /// Where a function is called whose body is a NIF. `rax` holds the function's entry.
    pub(crate) nif_entry: u64,
    /// Where a process goes on whose `pc` is the entry of a BIF or a NIF.
    pub(crate) resume: u64,
    /// Leaves compiled code.
    pub(crate) leave: u64,
    /// Stands in place of return addresses: 8 bytes for each of [`stubs::RETURNS`].
    pub(crate) returns: u64,
}

/// The compiled form of a function.
pub(crate) struct Block {
    /// Where it lies.
    native: Range<u64>,
    /// See [`Compiled::way_by_entry`].
    way_by_entry: Option<u32>,
    /// The specific instructions that it was made of.
    specific: Range<u64>,
    /// For each instruction, ascending: its offset in words, and that of its compiled form in bytes.
    places: Box<[(u32, u32)]>,
    /// For each return address, ascending: its offset in bytes, and that of the instruction in words.
    returns: Box<[(u32, u32)]>,
    /// Others see it until it goes.
    _listed: Listed,
}

/// What is known of a function that has just been compiled.
pub(crate) struct Compiled {
    /// Machine code that runs at any address.
    pub(crate) bytes: Vec<u8>,
    pub(crate) specific: Range<u64>,
    /// Offset in bytes of a call by the function's entry, where the function calls itself past it.
    pub(crate) way_by_entry: Option<u32>,
    /// For each instruction, ascending: its offset in words, and in bytes where a process goes on with it.
    pub(crate) places: Vec<(u32, u32)>,
    /// As `places`, but where its compiled form begins: a jump to there may need values in machine registers.
    pub(crate) starts: Vec<(u32, u32)>,
    pub(crate) returns: Vec<(u32, u32)>,
    /// Code that stands behind the rest, ascending in bytes: the offset in words of its instruction, and its own in
    /// bytes.
    pub(crate) cold: Vec<(u32, u32)>,
    /// Calls of BIFs, ascending in bytes: where they return to, and what they call.
    pub(crate) calls: Vec<(u32, &'static Bif)>,
}

#[derive(Default)]
struct Blocks {
    by_native: BTreeMap<u64, Arc<Block>>,
    by_specific: BTreeMap<u64, Arc<Block>>,
}

/// Memory that code is written to.
struct Arena {
    memory: CodeMemory,
    /// Where nothing has been written yet.
    top: usize,
    /// What has been given back: offsets and lengths.
    free: BTreeMap<usize, usize>,
    /// What lies below was written before a fork: other processes run it, too.
    shared: usize,
}

/// The compiled engine, where it runs.
struct Engine {
    common: Common,
    range: Range<u64>,
    arena: Mutex<Arena>,
    blocks: RwLock<Blocks>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// This process shares the memory of machine code with the one that it was forked from.
static HAS_FORKED: AtomicBool = AtomicBool::new(false);

/// A multiple of the size of a page.
const PAGE_BYTES: usize = 1 << 16;

/// This process is the child of a fork: what it compiles is to be its own.
pub(crate) fn note_fork() {
    HAS_FORKED.store(true, Ordering::Release);
}

/// Does the compiled engine run?
#[inline(always)]
#[must_use]
pub(crate) fn is_on() -> bool {
    ENGINE.get().is_some()
}

/// The code that belongs to no function; there is a compiled engine.
#[inline(always)]
pub(crate) fn common() -> &'static Common {
    &ENGINE.get().expect("the compiled engine runs").common
}

/// What stands in the head of a function that is not compiled: 0 without a compiled engine.
#[must_use]
pub(crate) fn generic_entry() -> u64 {
    ENGINE.get().map_or(0, |engine| engine.common.generic_entry)
}

/// Has functions compiled from now on into this memory, with this code, which `common` tells where it begins, for all of
/// them.
pub(crate) fn start(mut memory: CodeMemory, code: &[u8], common: impl FnOnce(u64) -> Common) {
    memory.write(0, code);
    let address = memory.address();
    let top = code.len().next_multiple_of(ALIGNMENT);
    let range = address..address + memory.size() as u64;
    let engine = Engine {
        common: common(address),
        range,
        arena: Mutex::new(Arena {
            memory,
            top,
            free: BTreeMap::new(),
            shared: 0,
        }),
        blocks: RwLock::default(),
    };
    let _ = ENGINE.set(engine);
}

impl Arena {
    /// Room for `bytes`: its offset.
    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let found = self.free.iter().find(|(_, length)| **length >= bytes);
        if let Some((&offset, &length)) = found {
            self.free.remove(&offset);
            if length > bytes {
                self.free.insert(offset + bytes, length - bytes);
            }
            return Some(offset);
        }
        let offset = self.top;
        self.top = offset
            .checked_add(bytes)
            .filter(|&top| top <= self.memory.size())?;
        Some(offset)
    }

    /// What is written from now on is this process's alone. `false` where there is no memory for it.
    fn part(&mut self) -> bool {
        self.free.clear();
        let from = self.top.next_multiple_of(PAGE_BYTES);
        if from >= self.memory.size() || self.memory.part(from).is_err() {
            return false;
        }
        (self.top, self.shared) = (from, from);
        true
    }

    /// The first time after a fork, has what is written be this process's alone. `false` where there is no memory for it.
    fn part_if_forked(&mut self) -> bool {
        !HAS_FORKED.swap(false, Ordering::AcqRel) || self.part()
    }

    /// Has the function that begins at `offset` begin with these bytes, while others may run it.
    fn lead(&mut self, offset: usize, beginning: [u8; 8]) {
        if self.memory.word(offset) == beginning {
            return;
        }
        assert!(self.part_if_forked(), "there is memory for machine code");
        if offset < self.shared {
            let page = offset / PAGE_BYTES * PAGE_BYTES;
            let own = self.memory.own(page..page + PAGE_BYTES);
            own.expect("there is memory for a page of machine code");
        }
        self.memory.set_word(offset, beginning);
    }

    /// Bytes in use.
    fn used(&self) -> usize {
        self.top - self.free.values().sum::<usize>()
    }

    /// Gives it back.
    fn release(&mut self, mut offset: usize, mut bytes: usize) {
        if let Some((&before, &length)) = self.free.range(..offset).next_back()
            && before + length == offset
        {
            self.free.remove(&before);
            (offset, bytes) = (before, bytes + length);
        }
        if let Some(length) = self.free.remove(&(offset + bytes)) {
            bytes += length;
        }
        self.free.insert(offset, bytes);
    }
}

/// Bytes before [`head::BODY`](super::op::entry::BODY) in which a call is charged for and may yield.
pub(crate) const PROLOGUE_BYTES: u64 = 13;

/// How a function begins: with `sub r14, 1`, and the first byte of a jump. The instruction is no shorter than the jump
/// that takes its place where a function's calls of itself are to go by its entry (MC3).
pub(crate) const BEGINNING: [u8; 8] = [0x49, 0x81, 0xee, 1, 0, 0, 0, 0x0f];

/// [`BEGINNING`] with a jump `bytes` further in the place of its instruction.
fn beginning_with_jump(bytes: u32) -> [u8; 8] {
    const JUMP: u8 = 0xe9;
    const JUMP_BYTES: u32 = 5;
    let mut beginning = BEGINNING;
    beginning[0] = JUMP;
    beginning[1..JUMP_BYTES as usize].copy_from_slice(&(bytes - JUMP_BYTES).to_le_bytes());
    beginning
}

/// Has compiled code call a function, whose head has `native` and `body` and whose entry's first word is `first`, as it
/// is to be called now: past a breakpoint, in its native function, or in its own compiled code.
///
/// Whoever changes one of these words calls this afterwards. The last one sees what all have stored.
pub(crate) fn lead_entry(native: &AtomicU64, body: &AtomicU64, first: &AtomicU64) {
    let Some(engine) = ENGINE.get() else { return };
    let common = &engine.common;
    let op = Op::of(first.load(Ordering::SeqCst));
    let to = match (op, body.load(Ordering::SeqCst)) {
        (Op::NifEntry, _) => common.nif_entry,
        (_, 0) => common.generic_entry,
        (Op::Breakpoint, _) => common.traced_entry,
        (_, own) => own - PROLOGUE_BYTES,
    };
    native.store(to, Ordering::SeqCst);
    if Op::of(first.load(Ordering::SeqCst)) != op {
        native.store(common.generic_entry, Ordering::SeqCst);
    }
    engine.lead_own_calls(native, body);
}

impl Engine {
    /// Has the function with these words in its head, where it calls itself past its entry, go on there as it is to be
    /// called now.
    fn lead_own_calls(&self, native: &AtomicU64, body: &AtomicU64) {
        let Some(start) = body.load(Ordering::SeqCst).checked_sub(PROLOGUE_BYTES) else {
            return;
        };
        let blocks = self.blocks.read();
        let block = blocks.by_native.get(&start);
        let Some(way) = block.and_then(|block| block.way_by_entry) else {
            return;
        };
        let mut arena = self.arena.lock();
        let beginning = match native.load(Ordering::SeqCst) == start {
            true => BEGINNING,
            false => beginning_with_jump(way),
        };
        arena.lead((start - self.range.start) as usize, beginning);
    }
}

/// Puts a function's code where it runs, and has `list` list it there for others; gives the address. `None` where there is no
/// room left.
pub(crate) fn add(compiled: &Compiled, list: impl FnOnce(u64) -> Listed) -> Option<u64> {
    let engine = ENGINE.get()?;
    let bytes = compiled.bytes.len().next_multiple_of(ALIGNMENT);
    let mut arena = engine.arena.lock();
    if !arena.part_if_forked() {
        return None;
    }
    let offset = arena.allocate(bytes)?;
    arena.memory.write(offset, &compiled.bytes);
    drop(arena);
    let start = engine.range.start + offset as u64;
    let block = Arc::new(Block {
        native: start..start + bytes as u64,
        specific: compiled.specific.clone(),
        way_by_entry: compiled.way_by_entry,
        places: compiled.places.as_slice().into(),
        returns: compiled.returns.as_slice().into(),
        _listed: list(start),
    });
    let mut blocks = engine.blocks.write();
    blocks.by_native.insert(start, block.clone());
    blocks.by_specific.insert(block.specific.start, block);
    Some(start)
}

/// Bytes of compiled code.
#[must_use]
pub(crate) fn bytes() -> usize {
    ENGINE.get().map_or(0, |engine| engine.arena.lock().used())
}

/// Gives back what was made of these specific instructions. Nobody runs it, and every scheduler has passed a quiescent
/// point since that was so.
pub(crate) fn remove(specific: Range<u64>) {
    let Some(engine) = ENGINE.get() else { return };
    let mut blocks = engine.blocks.write();
    let gone: Vec<_> = blocks
        .by_specific
        .range(specific)
        .map(|(_, block)| block.clone())
        .collect();
    for block in &gone {
        blocks.by_specific.remove(&block.specific.start);
        blocks.by_native.remove(&block.native.start);
    }
    drop(blocks);
    if gone.is_empty() {
        return;
    }
    EPOCH.fetch_add(1, Ordering::AcqRel);
    let mut arena = engine.arena.lock();
    for block in gone {
        let offset = (block.native.start - engine.range.start) as usize;
        arena.release(offset, (block.native.end - block.native.start) as usize);
    }
}

/// How often compiled code has been given back: what was known of addresses holds while it stays the same.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

static EPOCH: AtomicU64 = AtomicU64::new(0);

/// Is this an address of compiled code?
#[inline(always)]
#[must_use]
pub(crate) fn is_native(address: CodeAddress) -> bool {
    ENGINE
        .get()
        .is_some_and(|engine| engine.range.contains(&address.word()))
}

/// Answers that a thread remembers, as long as no compiled code is given back. They do not lie on its stack: some threads
/// have a small one.
type Answers = [Cell<Answer>; ANSWERS];

#[derive(Clone, Copy)]
struct Answer {
    of: u64,
    is: u64,
    epoch: u64,
}

const ANSWERS: usize = 256;

/// No answer: that epoch never comes.
#[expect(
    clippy::declare_interior_mutable_const,
    reason = "each place gets its own"
)]
const NO_ANSWER: Cell<Answer> = Cell::new(Answer {
    of: 0,
    is: 0,
    epoch: u64::MAX,
});

thread_local! {
    static SPECIFIC: Box<Answers> = Box::new([NO_ANSWER; ANSWERS]);
    static NATIVE: Box<Answers> = Box::new([NO_ANSWER; ANSWERS]);
    static RETURN_WORDS: Box<Answers> = Box::new([NO_ANSWER; ANSWERS]);
}

/// What is remembered of an address, or else found.
#[inline]
fn answer(
    answers: &'static LocalKey<Box<Answers>>,
    of: u64,
    find: impl FnOnce() -> Option<u64>,
) -> Option<u64> {
    answers.with(|answers| {
        let answer = &answers[(of >> 2) as usize % ANSWERS];
        let (known, epoch) = (answer.get(), epoch());
        if (known.of, known.epoch) == (of, epoch) {
            return Some(known.is);
        }
        let is = find()?;
        answer.set(Answer { of, is, epoch });
        Some(is)
    })
}

/// The specific instruction that a word of a stack returns to, whatever engine has put it there.
#[must_use]
pub(crate) fn specific(address: CodeAddress) -> CodeAddress {
    specific_if_known(address).expect("a return address")
}

/// As [`specific`], for a word that was on a stack once; `None` where compiled code has been given back since.
#[must_use]
pub(crate) fn specific_if_known(address: CodeAddress) -> Option<CodeAddress> {
    let Some(engine) = ENGINE.get() else {
        return Some(address);
    };
    if !engine.range.contains(&address.word()) {
        return Some(address);
    }
    if let Some(at) = stub_number(&engine.common, address) {
        return Some(stubs::nth_return(at));
    }
    let found = answer(&SPECIFIC, address.word(), || find_return(engine, address));
    found.map(CodeAddress::of_word)
}

/// The specific instruction that this address of compiled code returns to.
fn find_return(engine: &Engine, address: CodeAddress) -> Option<u64> {
    let blocks = engine.blocks.read();
    let (start, block) = blocks.by_native.range(..=address.word()).next_back()?;
    let offset = (address.word() - start) as u32;
    let at = block
        .returns
        .binary_search_by_key(&offset, |&(native, _)| native);
    let (_, words) = block.returns[at.ok()?];
    Some(block.specific.start + u64::from(words) * 8)
}

/// The first of the places in place of return addresses, where the compiled engine runs.
#[inline(always)]
pub(crate) fn first_return() -> Option<u64> {
    ENGINE.get().map(|engine| engine.common.returns)
}

/// Bytes from one of the places in place of return addresses to the next.
pub(crate) const RETURN_BYTES: u64 = 16;

/// Which of [`stubs::RETURNS`] this address is, if any.
fn stub_number(common: &Common, address: CodeAddress) -> Option<usize> {
    let at = address.word().wrapping_sub(common.returns) / RETURN_BYTES;
    (address.word() >= common.returns && at < stubs::RETURNS as u64).then_some(at as usize)
}

/// The compiled form of the specific instruction at this address, of a function that is compiled.
#[must_use]
pub(crate) fn native(address: CodeAddress) -> Option<u64> {
    let engine = ENGINE.get()?;
    answer(&NATIVE, address.word(), || find_native(engine, address))
}

/// As [`native`], without a look at what the thread remembers.
fn find_native(engine: &Engine, address: CodeAddress) -> Option<u64> {
    let blocks = engine.blocks.read();
    let (start, block) = blocks.by_specific.range(..=address.word()).next_back()?;
    if !block.specific.contains(&address.word()) {
        return None;
    }
    let offset = ((address.word() - start) / 8) as u32;
    let at = block
        .places
        .binary_search_by_key(&offset, |&(words, _)| words)
        .ok()?;
    Some(block.native.start + u64::from(block.places[at].1))
}

/// What a call leaves on the stack that returns to this specific instruction, which may be behind its function's last.
#[must_use]
pub(crate) fn return_word(address: CodeAddress) -> u64 {
    let Some(engine) = ENGINE.get() else {
        return address.word();
    };
    if let Some(at) = (0..stubs::RETURNS).find(|&at| stubs::nth_return(at) == address) {
        return engine.common.returns + RETURN_BYTES * at as u64;
    }
    let found = answer(&RETURN_WORDS, address.word(), || {
        find_return_word(engine, address)
    });
    found.expect("who calls is compiled")
}

/// As [`return_word`], without a look at what the thread remembers.
fn find_return_word(engine: &Engine, address: CodeAddress) -> Option<u64> {
    let blocks = engine.blocks.read();
    let (start, block) = blocks.by_specific.range(..address.word()).next_back()?;
    let offset = ((address.word() - start) / 8) as u32;
    let at = block
        .returns
        .binary_search_by_key(&offset, |&(_, words)| words);
    Some(block.native.start + u64::from(block.returns[at.ok()?].0))
}
