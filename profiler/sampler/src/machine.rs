//! Frames of a moment of a thread of our own machine. In machine code they are on the stack that was copied. A thread that has left
//! machine code for Rust or C has a frame on its own stack, which says what was called and by whom, and the process has saved its
//! stack, which is read a moment later: if the thread has gone on meanwhile, the stack is cut.

use beamline_settings::published::{Kind, Thread as Record};

use crate::code::{Code, Function};
use crate::elf::Libraries;
use crate::emulator::{Thread, ThreadKind};
use crate::memory::Memory;
use crate::perf::Moment;
use crate::published::{DirtyCall, Machine, Mfa, Process};
use crate::stack::{
    Does, Frame, Look, RUNTIME, Seen, frame, frame_of_caller, frames_of, leaf, native, outside,
};

/// A return instruction.
const RETURN: u8 = 0xc3;

/// The most bytes from the top of a thread's stack to its frame.
const DEEP_MAX: u64 = 8 << 20;

/// What is known of a machine, for the frames of a moment.
pub(crate) struct Around<'k, M> {
    /// Its memory.
    pub(crate) memory: &'k M,
    /// Its machine code.
    pub(crate) code: &'k Code,
    /// What it publishes.
    pub(crate) machine: &'k mut Machine,
    /// C code of its process.
    pub(crate) libraries: &'k mut Libraries,
    /// Its program, whose symbols are of no interest.
    pub(crate) program: &'k str,
}

/// How a thread has left machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    /// What was called returns there.
    to: u64,
    /// A stub was called from there.
    back: u64,
    /// The entry that was called.
    entry: u64,
}

fn seen(of: &Process) -> Seen {
    Seen {
        pid: of.pid,
        at: of.at,
    }
}

impl<M: Memory> Around<'_, M> {
    /// What a moment of a thread shows.
    pub(crate) fn look(&mut self, thread: &Thread, moment: &Moment) -> Look {
        let mut look = self.look_at(thread, moment);
        if look.frames.is_empty() {
            // The process has not begun to run a function, or has just run its last one.
            look.frames.push(outside(RUNTIME, "no function"));
        }
        look
    }

    fn look_at(&mut self, thread: &Thread, moment: &Moment) -> Look {
        let ip = moment.registers.ip;
        let code = self.code;
        match code.at(ip) {
            Some(function) if function.is_erlang() => self.in_function(frame(function, ip), moment),
            Some(fragment) => self.in_fragment(fragment, moment),
            None if self.machine.code().contains(&ip) => {
                // It has just been compiled.
                code.miss();
                let unknown = outside(RUNTIME, "code that is not known yet");
                self.in_function(Some(unknown), moment)
            }
            None => self.outside_code(thread, moment),
        }
    }

    /// A moment in the code of a function: the thread's stack is the process's.
    fn in_function(&mut self, newest: Option<Frame>, moment: &Moment) -> Look {
        let process = self.process(moment.registers.process);
        let mut frames: Vec<Frame> = newest.into_iter().collect();
        self.copied_stack(process.as_ref(), moment, &mut frames);
        Look {
            process: process.as_ref().map(seen),
            does: Does::Erlang,
            frames,
        }
    }

    /// The frames of a stack that was copied.
    fn copied_stack(&self, process: Option<&Process>, moment: &Moment, frames: &mut Vec<Frame>) {
        // Its oldest word ends it, also where the process has another heap by now.
        let is_whole = frames_of(self.code, &self.machine.returns(&moment.stack), frames);
        let copied = 8 * moment.stack.len() as u64;
        let deeper = moment.registers.sp.wrapping_add(copied);
        if !is_whole && !process.is_some_and(|of| self.own_stack(of, deeper, frames)) {
            frames.push(Frame::Cut);
        }
    }

    /// The frames of a process's stack from an address on; whether these are all.
    fn own_stack(&self, of: &Process, from: u64, frames: &mut Vec<Frame>) -> bool {
        let Some((words, is_all)) = self.machine.stack(self.memory, of, from) else {
            return false;
        };
        frames_of(self.code, &words, frames) || is_all
    }

    fn process(&self, at: u64) -> Option<Process> {
        self.machine.process(self.memory, at)
    }

    fn kind(&self, function: &Function) -> Kind {
        let about = self.machine.about(function.start);
        about.map_or(Kind::Schedules, |about| about.kind)
    }

    /// A moment in a fragment, on one of the two stacks: what it does is done for its caller.
    fn in_fragment(&mut self, fragment: &Function, moment: &Moment) -> Look {
        let (kind, registers) = (self.kind(fragment), moment.registers);
        let process = self.process(registers.process);
        let Some(of) = process.filter(|_| kind != Kind::Schedules) else {
            return Look::of_runtime(outside(RUNTIME, &fragment.name));
        };
        let is_on_its_stack = (of.heap.start..=of.heap.end).contains(&registers.sp);
        let is_called = matches!(kind, Kind::Called | Kind::Collects);
        let mut instruction = [0];
        let is_at_end =
            self.memory.read(registers.ip, &mut instruction) && instruction[0] == RETURN;
        // Its first instruction takes the caller off the stack, and before the last one that is back.
        let is_taken =
            is_called && registers.ip != fragment.start && !(is_on_its_stack && is_at_end);
        let mut frames = Vec::new();
        if is_taken {
            let [back, ..] = self.machine.frame();
            let caller = self.memory.words::<1>(registers.kept.wrapping_add(back));
            let caller = caller.filter(|[caller]| self.machine.code().contains(caller));
            frames.extend(caller.and_then(|[caller]| frame_of_caller(self.code, caller)));
        }
        if is_on_its_stack {
            self.copied_stack(Some(&of), moment, &mut frames);
        } else if !self.own_stack(&of, of.stop, &mut frames) {
            frames.push(Frame::Cut);
        }
        Look {
            process: Some(seen(&of)),
            does: match kind {
                Kind::Collects => Does::Collection,
                _ => Does::Erlang,
            },
            frames,
        }
    }

    /// A moment in Rust or C.
    fn outside_code(&mut self, thread: &Thread, moment: &Moment) -> Look {
        let ip = moment.registers.ip;
        let file = self.libraries.file_at(ip);
        let is_own = file.is_none_or(|file| file.trim_end_matches(" (deleted)") == self.program);
        let leaf = if is_own {
            None
        } else {
            leaf(self.libraries, ip)
        };
        let Some(record) = self.machine.thread(self.memory, thread.tid) else {
            let does = outside(RUNTIME, &format!("thread {}", thread.name));
            return Look::of_runtime(leaf.unwrap_or(does));
        };
        let found = self.left(&record, moment);
        if let Some((of, left)) = found
            && let Some(look) = self.called(&record, &of, left, leaf.clone())
        {
            return look;
        }
        if let Some(call) = dirty_call(&record, moment) {
            return self.in_dirty_call(&record, &call, leaf);
        }
        let is_there = |at: u64| moment.stack.contains(&at) || moment.registers.process == at;
        let process = self.process(record.process).filter(|of| is_there(of.at));
        let does = match thread.kind {
            ThreadKind::Scheduler => outside(RUNTIME, "scheduling"),
            _ => outside(RUNTIME, &format!("thread {}", thread.name)),
        };
        let runtime = leaf.unwrap_or(does);
        match process {
            Some(of) => self.without_code(&of, runtime),
            None => Look::of_runtime(runtime),
        }
    }

    /// A word of the thread's stack: as it was copied, or, where it is too deep, as it is now.
    fn word(&self, moment: &Moment, at: u64) -> Option<u64> {
        let within = at.checked_sub(moment.registers.sp)? / 8;
        let copied = usize::try_from(within)
            .ok()
            .and_then(|at| moment.stack.get(at));
        match copied {
            Some(word) => Some(*word),
            None => Some(self.memory.words::<1>(at)?[0]),
        }
    }

    /// The process whose machine code the thread has left, with the top that its stack had then, and how; nothing if it has not.
    fn left(&self, record: &Record<u64>, moment: &Moment) -> Option<(Process, Left)> {
        let deep = record.frame.checked_sub(moment.registers.sp)?;
        if !(8..=DEEP_MAX).contains(&deep) {
            return None;
        }
        let [back, entry, process, stop] = self.machine.frame();
        let at = |offset: u64| self.word(moment, record.frame.checked_add(offset)?);
        let mut process = self.process(at(process)?)?;
        let to = self.word(moment, record.frame - 8)?;
        // What was called may have cut the stack since, as an exception does. A collection moves it. Only fragments say where it
        // began: not functions that call by themselves.
        let by = self.code.at(to.checked_sub(1)?);
        let is_by_fragment = by.is_some_and(|by| self.kind(by) != Kind::Function);
        let stop = at(stop)?;
        if is_by_fragment && process.heap.contains(&stop) {
            process.stop = stop;
        }
        let left = Left {
            to,
            back: at(back)?,
            entry: at(entry)?,
        };
        Some((process, left))
    }

    /// How the thread has left machine code now.
    fn left_now(&self, record: &Record<u64>) -> Option<Left> {
        let [back, entry, ..] = self.machine.frame();
        let at = |at: u64| Some(self.memory.words::<1>(at)?[0]);
        Some(Left {
            to: at(record.frame.wrapping_sub(8))?,
            back: at(record.frame.wrapping_add(back))?,
            entry: at(record.frame.wrapping_add(entry))?,
        })
    }

    /// A moment in what machine code has called.
    fn called(
        &self,
        record: &Record<u64>,
        of: &Process,
        left: Left,
        leaf: Option<Frame>,
    ) -> Option<Look> {
        let code = self.code;
        let by = code.at(left.to.checked_sub(1)?)?;
        let (kind, name) = (self.kind(by), by.name.clone());
        let mut frames: Vec<Frame> = leaf.into_iter().collect();
        let mut does = Does::Native;
        match kind {
            Kind::Schedules => {
                return Some(Look::of_runtime(outside(RUNTIME, &name)));
            }
            Kind::Function => {
                does = Does::Erlang;
                frames.extend(frame(by, left.to - 1));
            }
            Kind::Called | Kind::Collects => {
                let bif = self.bif_before(left.back);
                match (bif, kind) {
                    (_, Kind::Collects) => does = Does::Collection,
                    (Some(bif), _) => frames.push(native(bif)),
                    (None, _) => frames.push(outside(RUNTIME, &name)),
                }
                frames.extend(frame_of_caller(code, left.back));
            }
            Kind::Entered => match self.machine.native_entry(self.memory, left.entry) {
                Some(native_function) => frames.push(native(native_function)),
                None => frames.push(outside(RUNTIME, &name)),
            },
        }
        let mut below = Vec::new();
        let is_whole = self.own_stack(of, of.stop, &mut below);
        let collects = self
            .process(of.at)
            .is_some_and(|now| now.collects && of.collects);
        // What was read is of the moment only if the thread is still in this call.
        if self.left_now(record) == Some(left) {
            if collects {
                does = Does::Collection;
            }
            frames.append(&mut below);
            frames.extend((!is_whole).then_some(Frame::Cut));
        } else {
            frames.push(Frame::Cut);
        }
        Some(Look {
            process: Some(seen(of)),
            does,
            frames,
        })
    }

    /// The BIF whose call returns to an address.
    fn bif_before(&self, back: u64) -> Option<Mfa> {
        let function = self.code.caller(back)?;
        let about = self.machine.about(function.start)?;
        let at = about
            .calls
            .binary_search_by_key(&back, |(at, _)| *at)
            .ok()?;
        self.machine.bif(self.memory, about.calls[at].1)
    }

    /// A moment of a thread that does something for a process without machine code: it collects, or does what the runtime has
    /// to do for the process.
    fn without_code(&self, of: &Process, runtime: Frame) -> Look {
        let does = match of.collects {
            true => Does::Collection,
            false => Does::Runtime,
        };
        let mut frames = Vec::new();
        frames.extend((!of.collects).then_some(runtime));
        if !self.own_stack(of, of.stop, &mut frames) {
            frames.push(Frame::Cut);
        }
        Look {
            process: Some(seen(of)),
            does,
            frames,
        }
    }

    /// A moment of a dirty scheduler that runs a native function for a process.
    fn in_dirty_call(&self, record: &Record<u64>, call: &DirtyCall, leaf: Option<Frame>) -> Look {
        let mut frames: Vec<Frame> = leaf.into_iter().collect();
        let by_entry = self.machine.native_entry(self.memory, call.words.pc);
        let is_by_entry = by_entry.is_some();
        let bif = by_entry.or_else(|| self.machine.bif(self.memory, call.words.away));
        frames.extend(bif.map(native));
        let from = call.words.away_from;
        if !is_by_entry && from != 0 {
            let caller = self.code.at(from);
            frames.extend(caller.and_then(|caller| frame(caller, from)));
        }
        // Nobody collects it while the call is made.
        let caller = self.machine.caller(self.memory, call);
        let mut below = Vec::new();
        let is_whole = caller
            .as_ref()
            .is_some_and(|of| self.own_stack(of, of.stop, &mut below));
        if self.dirty_call_now(record) == Some(*call) {
            frames.append(&mut below);
            frames.extend((!is_whole).then_some(Frame::Cut));
        } else {
            frames.push(Frame::Cut);
        }
        Look {
            process: Some(Seen {
                pid: call.pid,
                at: caller.map_or(0, |of| of.at),
            }),
            does: Does::Native,
            frames,
        }
    }

    /// The call that the thread makes now.
    fn dirty_call_now(&self, record: &Record<u64>) -> Option<DirtyCall> {
        DirtyCall::of_words(self.memory.words(record.call)?)
    }
}

/// The call that a dirty scheduler made at a moment: of the stack that was copied, as it may have ended since.
fn dirty_call(record: &Record<u64>, moment: &Moment) -> Option<DirtyCall> {
    let within = record.call.checked_sub(moment.registers.sp)? / 8;
    let copied = moment.stack.get(usize::try_from(within).ok()?..)?;
    DirtyCall::of_words(*copied.first_chunk()?)
}

#[cfg(test)]
mod tests;
