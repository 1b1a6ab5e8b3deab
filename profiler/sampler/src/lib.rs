//! Looks at a running emulator of OTP from outside: which Erlang function each of its threads runs, called by which, in which
//! process. The emulator needs no preparation, and nothing is written into it.
//!
//! OTP's BeamAsm keeps a list of all machine code for debuggers, which [`code`] finds and reads. The kernel copies the registers
//! and the stack of each thread that runs at the moment of a sample ([`perf`]), and [`stack`] makes frames of them. Where the
//! kernel refuses that, threads are stopped for a moment ([`stops`]). The machine of this repository publishes what is needed
//! in its memory (`published`, `machine`).
//! Whatever is read of the emulator's memory may change meanwhile, or be garbage: every read has a bound, and every number
//! is checked before it is used.
//!
//! * [`arch`]: registers, stacks and tags of a processor;
//! * [`memory`]: the memory of another process, and what is mapped there;
//! * `clock`: the clock of samples;
//! * [`emulator`]: finds emulators, and tells what they are;
//! * [`elf`]: names of C functions;
//! * [`code`]: functions and lines of machine code that was made of Erlang;
//! * [`process`]: what the structure of an Erlang process tells;
//! * [`stack`]: frames of a sample;
//! * `published`: what the machine of this repository tells of itself;
//! * `machine`: frames of a sample of that;
//! * [`perf`]: samples by the kernel's performance events;
//! * [`stops`]: samples by stopping threads;
//! * [`sampler`]: all of it together;
//!
//! The modules are in layers. Each imports only those before it:
//! `arch` `clock` `memory` ◀ `code` `elf` `perf` ◀ `stops` `emulator` `process` ◀ `published` `stack` ◀ `machine` ◀ `sampler`

pub mod arch;
mod clock;
pub mod code;
pub mod elf;
pub mod emulator;
mod machine;
pub mod memory;
pub mod perf;
pub mod process;
mod published;
pub mod sampler;
pub mod stack;
pub mod stops;
