//! Frames of a thread's moment. In Erlang code they are on the stack that was copied. In C code the thread's stack leads to the
//! place in Erlang code that was left, and the process has its own stack, which is read a moment later and may have changed:
//! where that is seen, the stack is cut.
//!
//! Source: what compiled code leaves on C's stack is as `instr_bif.cpp` and `beam_asm.hpp` put it there, OTP 25 to 29.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::arch::{AFTER_CALL, RETURN_TO_FUNCTION, is_return_address, is_stack_kept};
use crate::code::{Code, Function};
use crate::elf::Libraries;
use crate::memory::Memory;
use crate::perf::Moment;
use crate::process::{Pid, Processes, Structure};

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// Of an Erlang function.
    Erlang {
        /// Its module.
        module: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// The number of its arguments.
        arity: u8,
        /// The line; 0 where that is not known.
        line: u32,
        /// It is native code: a BIF or a NIF.
        is_native: bool,
    },
    /// Of a C function, or of the runtime.
    Outside {
        /// The library; or `runtime`.
        library: Arc<str>,
        /// The function, or what is done.
        name: Arc<str>,
    },
    /// What is below is not known.
    Cut,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Does {
    /// It ran Erlang code.
    Erlang,
    /// It ran C code for a process.
    Native,
    /// It collected.
    Collection,
    /// It did what the runtime does for itself.
    Runtime,
}

/// A process that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its pid.
    pub pid: Pid,
    /// Where its structure was.
    pub at: u64,
}

impl Seen {
    fn of(structure: &Structure) -> Seen {
        Seen {
            pid: structure.pid,
            at: structure.at,
        }
    }
}

/// What was seen of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The process it ran for.
    pub process: Option<Seen>,
    /// What it did.
    pub does: Does,
    /// The frames, the newest first.
    pub frames: Vec<Frame>,
}

impl Look {
    /// The runtime does something for itself, which is all that is known.
    pub(crate) fn of_runtime(does: Frame) -> Look {
        Look {
            process: None,
            does: Does::Runtime,
            frames: vec![does],
        }
    }

    /// The pid of the process it ran for.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.process.map(|process| process.pid)
    }

    /// Whether the frames reach down to the oldest one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.frames.last() != Some(&Frame::Cut)
    }
}

/// Words of C's stack in which a process is looked for, and structures that are read for that.
const PROCESS_WITHIN: usize = 512;
const PROCESS_READS: usize = 48;

/// Words behind the return address in which compiled code has spilled what it needs after a call of a BIF.
const SPILLED_WITHIN: usize = 96;

/// Words below the top of a stack in which a frame is looked for that was left meanwhile.
const LEFT_WITHIN: u64 = 64;

/// The function that is named by parts of names of fragments.
const SCHEDULES: [&str; 4] = ["schedule", "context_switch", "process_main", "yield"];
const CALLS_BY_EXPORT: &str = "call_light_bif";
const CALLS_CURRENT: [&str; 3] = ["call_bif", "call_nif", "dispatch_bif"];

/// C functions that collect.
const COLLECTS: [&str; 6] = [
    "garbage_collect",
    "minor_collection",
    "major_collection",
    "sweep",
    "full_sweep",
    "do_minor",
];

/// Where compiled code leaves its return address on C's stack: at the same place of each thread, which is learnt.
#[derive(Debug, Default)]
struct Slots {
    votes: FxHashMap<u64, u32>,
    total: u32,
}

/// The most places of a thread that are kept apart.
const PLACES_MAX: usize = 4096;
/// A place is believed when it has been seen at this many moments.
const MOMENTS_MIN: u32 = 8;

impl Slots {
    /// Of the words that lead to code, the return address.
    fn choose(&mut self, sp: u64, candidates: &[usize]) -> Option<usize> {
        if self.votes.len() > PLACES_MAX {
            *self = Slots::default();
        }
        if candidates.is_empty() {
            return None;
        }
        let place = |index: usize| sp.wrapping_add(8 * index as u64);
        self.total += 1;
        for index in candidates {
            *self.votes.entry(place(*index)).or_default() += 1;
        }
        if self.total < MOMENTS_MIN {
            return candidates.first().copied();
        }
        // What compiled code has spilled lies above it, and is there as often.
        let mut all = candidates.iter().copied();
        let often = |index: &usize| {
            let votes = self.votes.get(&place(*index)).copied().unwrap_or(0);
            u64::from(votes) * 5 >= u64::from(self.total) * 4
        };
        all.find(often).or(candidates.first().copied())
    }
}

/// Makes frames.
#[derive(Debug, Default)]
pub struct Walker {
    slots: FxHashMap<u32, Slots>,
    /// Addresses in no code and in no library, as far as they were looked for.
    unknown: u64,
}

/// What is known of an emulator, for the frames of a moment.
pub struct Known<'k, M> {
    /// Its memory.
    pub memory: &'k M,
    /// Its machine code.
    pub code: &'k Code,
    /// Its processes.
    pub processes: &'k mut Processes,
    /// Its C code.
    pub libraries: &'k mut Libraries,
}

pub(crate) fn frame(function: &Function, address: u64) -> Option<Frame> {
    Some(Frame::Erlang {
        module: function.module.clone(),
        name: function.name.clone(),
        arity: function.arity?,
        line: function.line(address),
        is_native: false,
    })
}

/// The function of the words of a stack that are return addresses; whether the oldest one was reached.
pub(crate) fn frames_of(code: &Code, words: &[u64], frames: &mut Vec<Frame>) -> bool {
    let mut last = 0;
    for word in words
        .iter()
        .copied()
        .filter(|word| is_return_address(*word))
    {
        if Some(word) == code.normal_exit() {
            return true;
        }
        // A function that has called itself: recursion folds.
        if word == last {
            continue;
        }
        last = word;
        frames.extend(frame_of_caller(code, word));
    }
    false
}

pub(crate) fn native((module, name, arity): (Arc<str>, Arc<str>, u8)) -> Frame {
    Frame::Erlang {
        module,
        name,
        arity,
        line: 0,
        is_native: true,
    }
}

pub(crate) fn outside(library: &str, name: &str) -> Frame {
    Frame::Outside {
        library: library.into(),
        name: name.into(),
    }
}

/// The name of a fragment without that of the module that has all of them.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The library of what the emulator does without a symbol.
pub(crate) const RUNTIME: &str = "runtime";

impl Walker {
    /// How many moments were at an address that nothing is known of.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// What a moment of a thread shows. A dirty scheduler runs no compiled code.
    pub fn look<M: Memory>(
        &mut self,
        known: &mut Known<'_, M>,
        thread: u32,
        is_dirty: bool,
        moment: &Moment,
    ) -> Look {
        match known.code.at(moment.registers.ip) {
            Some(function) => in_code(known, function, moment),
            None => self.in_c(known, thread, is_dirty, moment),
        }
    }

    fn in_c<M: Memory>(
        &mut self,
        known: &mut Known<'_, M>,
        thread: u32,
        is_dirty: bool,
        moment: &Moment,
    ) -> Look {
        let leaf = leaf(known.libraries, moment.registers.ip);
        if leaf.is_none() {
            self.unknown += 1;
        }
        let bounds = known.code.bounds();
        let candidates: Vec<usize> = moment
            .stack
            .iter()
            .enumerate()
            .filter(|(_, word)| bounds.contains(*word) && known.code.at(**word - 1).is_some())
            .map(|(index, _)| index)
            .collect();
        let slots = self.slots.entry(thread).or_default();
        let slot = match is_dirty {
            true => None,
            false => slots.choose(moment.registers.sp, &candidates),
        };
        let mut look = match slot {
            Some(slot) => called(known, moment, slot, leaf.clone()),
            None => without_code(known, moment, leaf.clone()),
        };
        if collects(leaf.as_ref()) && look.process.is_some() {
            look.does = Does::Collection;
        }
        look
    }
}

/// The frame of a C function, if it has a symbol; of code in a library, the library.
pub(crate) fn leaf(libraries: &mut Libraries, ip: u64) -> Option<Frame> {
    let place = libraries.at(ip)?;
    place
        .function
        .map(|function| outside(place.library, function))
}

fn collects(leaf: Option<&Frame>) -> bool {
    let Some(Frame::Outside { name, .. }) = leaf else {
        return false;
    };
    COLLECTS.iter().any(|part| name.contains(part))
}

/// A moment in compiled code: the thread's stack is the process's.
fn in_code<M: Memory>(known: &mut Known<'_, M>, function: &Function, moment: &Moment) -> Look {
    let registers = moment.registers;
    let process = known.processes.at(known.memory, registers.process);
    let is_on_its_stack = process.is_some_and(|of| (of.heap..of.hend).contains(&registers.sp));
    if !function.is_erlang() && !is_on_its_stack {
        return Look::of_runtime(outside(RUNTIME, short(&function.name)));
    }
    let mut frames: Vec<Frame> = frame(function, registers.ip).into_iter().collect();
    let mut is_whole = frames_of(known.code, &moment.stack, &mut frames);
    if !is_whole && moment.is_cut {
        let copied = 8 * moment.stack.len() as u64;
        let rest = process
            .and_then(|of| Processes::stack(known.memory, &of, registers.sp.wrapping_add(copied)));
        is_whole = rest.is_some_and(|rest| frames_of(known.code, &rest, &mut frames));
    }
    if !is_whole {
        frames.push(Frame::Cut);
    }
    Look {
        process: process.as_ref().map(Seen::of),
        does: Does::Erlang,
        frames,
    }
}

/// A moment in C code that compiled code has called: its return address is at `slot` of the stack.
fn called<M: Memory>(
    known: &mut Known<'_, M>,
    moment: &Moment,
    slot: usize,
    leaf: Option<Frame>,
) -> Look {
    let back = moment.stack[slot];
    let Some(function) = known.code.at(back - 1).cloned() else {
        return without_code(known, moment, leaf);
    };
    let fragment = (!function.is_erlang()).then(|| function.name.clone());
    let is = |part: &str| fragment.as_ref().is_some_and(|name| name.contains(part));
    if SCHEDULES.iter().any(|part| is(part)) {
        let does = leaf.unwrap_or_else(|| outside(RUNTIME, short(&function.name)));
        return Look::of_runtime(does);
    }
    let mut process = process_of(known, moment, Some(slot));
    let kept = process.and_then(|of| kept_stack(known, moment, slot, &of));
    let mut frames: Vec<Frame> = leaf.into_iter().collect();
    if let Some(name) = fragment.as_ref().filter(|_| frames.is_empty()) {
        let is_shared = is(CALLS_BY_EXPORT) || CALLS_CURRENT.iter().any(|part| is(part));
        frames.extend((!is_shared).then(|| outside(RUNTIME, short(name))));
    }
    if is(CALLS_BY_EXPORT) {
        light(known, moment, slot, process, &mut frames);
    } else {
        if CALLS_CURRENT.iter().any(|part| is(part)) {
            let current =
                process.and_then(|of| known.processes.function_at(known.memory, of.current));
            frames.extend(current.map(native));
        }
        frames.extend(frame(&function, back - 1));
        if let (Some(of), Some((top, caller))) = (&mut process, kept) {
            frames.extend(frame_of_caller(known.code, caller));
            of.stop = top + 8;
        }
        own_stack(known, process, None, &mut frames);
    }
    // The stack has led to nothing that is known.
    if frames.is_empty() {
        frames.push(outside(RUNTIME, short(&function.name)));
    }
    let does = match is("garbage_collect") {
        true => Does::Collection,
        false => Does::Native,
    };
    Look {
        process: process.as_ref().map(Seen::of),
        does,
        frames,
    }
}

/// The frame that a return address leads to.
pub(crate) fn frame_of_caller(code: &Code, back: u64) -> Option<Frame> {
    code.caller(back).and_then(|of| frame(of, back - 1))
}

/// The top of Erlang's stack where compiled code has not saved it in the process, which then has an older one, and the return
/// address there. The top is in a register, or where the first C function that needed the register has saved that. What shared
/// fragments are called by is at the top; since no collector ever sees that, it may have any low bits.
fn kept_stack<M: Memory>(
    known: &Known<'_, M>,
    moment: &Moment,
    slot: usize,
    process: &Structure,
) -> Option<(u64, u64)> {
    let back = moment.stack[slot];
    let mut after = [0; AFTER_CALL];
    if !known.memory.read(back, &mut after) || !is_stack_kept(&after) {
        return None;
    }
    let saved = moment.stack[..slot].iter().rev().copied();
    let mut tops = saved.chain([moment.registers.kept]);
    tops.find_map(|top| {
        let is_in = (process.heap..process.hend).contains(&top) && top & 7 == 0;
        let [word] = is_in.then(|| known.memory.words::<1>(top))??;
        let is_within = known.code.bounds().contains(&word);
        let of = is_within.then(|| known.code.at(word - 1))??;
        of.is_erlang().then_some((top, word))
    })
}

/// The frames of a BIF that was called through its export entry: compiled code has spilled the place of the call, and behind
/// that the entry.
fn light<M: Memory>(
    known: &mut Known<'_, M>,
    moment: &Moment,
    slot: usize,
    process: Option<Structure>,
    frames: &mut Vec<Frame>,
) {
    let end = moment.stack.len().min(slot + SPILLED_WITHIN);
    let spilled = moment.stack.get(slot + 1..end).unwrap_or_default();
    let bounds = known.code.bounds();
    let is_erlang =
        |word: u64| bounds.contains(&word) && known.code.at(word).is_some_and(Function::is_erlang);
    let at = spilled.iter().position(|word| is_erlang(*word));
    let Some((at, entry)) = at.map(|at| (at, spilled[at])) else {
        known.code.miss();
        return own_stack(known, process, None, frames);
    };
    let export = spilled.get(at + 1).copied().unwrap_or(0);
    let bif = known.processes.exported(known.memory, export);
    frames.extend(bif.map(native));
    own_stack(known, process, Some(entry), frames);
}

/// The frames of a process's own stack. If it is known where its newest function made a call, that one is the newest frame.
fn own_stack<M: Memory>(
    known: &mut Known<'_, M>,
    process: Option<Structure>,
    entry: Option<u64>,
    frames: &mut Vec<Frame>,
) {
    let below = if entry.is_some() { 8 * LEFT_WITHIN } else { 0 };
    let words = process.and_then(|of| {
        let from = of.stop.saturating_sub(below).max(of.heap);
        let before = usize::try_from((of.stop - from) / 8).ok()?;
        Some((Processes::stack(known.memory, &of, from)?, before))
    });
    let from = words.as_ref().and_then(|(words, before)| match entry {
        None => Some(*before),
        Some(entry) => {
            let is_call = |word: &u64| *word > entry && *word - entry <= RETURN_TO_FUNCTION;
            let after = words.get(*before..)?.iter().position(is_call);
            let left = || words[..*before].iter().rposition(is_call);
            after.map(|at| at + before).or_else(left)
        }
    });
    let is_whole = match (words, from) {
        (Some((words, _)), Some(from)) => frames_of(known.code, &words[from..], frames),
        (words, _) => {
            let caller = entry.and_then(|entry| known.code.at(entry));
            frames.extend(caller.zip(entry).and_then(|(of, entry)| frame(of, entry)));
            // It has gone on to another call, which the same function has made.
            let again = words.zip(caller).and_then(|((words, before), caller)| {
                let is_in = |word: &u64| (caller.start + 1..=caller.end).contains(word);
                let at = words[before..].iter().position(is_in)?;
                Some(frames_of(known.code, &words[before + at + 1..], frames))
            });
            again.unwrap_or(false)
        }
    };
    if !is_whole {
        frames.push(Frame::Cut);
    }
}

/// A moment in C code that no compiled code has called: of a dirty scheduler, or of the runtime.
fn without_code<M: Memory>(known: &mut Known<'_, M>, moment: &Moment, leaf: Option<Frame>) -> Look {
    let process = process_of(known, moment, None);
    let Some(of) = process else {
        return Look::of_runtime(leaf.unwrap_or_else(|| outside(RUNTIME, "C code")));
    };
    let mut frames: Vec<Frame> = leaf.into_iter().collect();
    // A dirty scheduler has taken it over in the middle of a function: only to collect.
    let goes_on = of.goes_on(known.code);
    let does = match goes_on {
        Some(_) => Does::Collection,
        None => Does::Native,
    };
    // Where it goes on is not on its stack.
    let newest = goes_on.and_then(|at| frame(known.code.at(at)?, at));
    frames.extend(newest);
    if does == Does::Native {
        let current = known.processes.function_at(known.memory, of.current);
        frames.extend(current.map(native));
    }
    own_stack(known, process, None, &mut frames);
    Look {
        process: process.as_ref().map(Seen::of),
        does,
        frames,
    }
}

/// The process that C code runs for: in the register that calls preserve, or where a function has saved that.
fn process_of<M: Memory>(
    known: &mut Known<'_, M>,
    moment: &Moment,
    slot: Option<usize>,
) -> Option<Structure> {
    let register = moment.registers.process;
    if let Some(found) = known.processes.at(known.memory, register) {
        return Some(found);
    }
    let end = moment.stack.len().min(slot.unwrap_or(PROCESS_WITHIN));
    let saved = moment.stack[..end].iter().rev().copied();
    let bounds = known.code.bounds();
    let is_likely = |word: &u64| *word > 0xffff && word & 7 == 0 && !bounds.contains(word);
    let near = |word: &u64| word.abs_diff(moment.registers.sp) > 1 << 20;
    let mut likely: Vec<u64> = saved.filter(is_likely).filter(near).collect();
    likely.dedup();
    // Where structures were before, they are most likely.
    likely.sort_by_key(|word| !known.processes.has_seen(*word));
    likely.truncate(PROCESS_READS);
    likely
        .into_iter()
        .find_map(|word| known.processes.at(known.memory, word))
}

#[cfg(test)]
mod tests;
