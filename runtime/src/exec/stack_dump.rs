//! The stack of a process as the emulator prints it, which tools read for callers:
//!
//! ```text
//! Program counter: 0x00007f0a1c02f8b8 (lists:map/2 + 80)
//! arity = 2
//!    {some,"argument"}
//!    [another]
//! y(0)     term
//!
//! 0x00007f0a18bb0170 Return addr 0x00007f0a1c02f9f4 (demo:main/0 + 140)
//! y(0)     Catch 0x00007f0a1c02f9f8 (demo:main/0 + 144)
//!
//! 0x00007f0a18bb0180 Return addr 0x00007f0a1bc02308 (<terminate process normally>)
//! ```
//!
//! A number behind a function is of bytes in the code that the address is in. Source: `erts_stack_dump()` in
//! `erl_process.c`, OTP 29.

use std::fmt::Write as _;

use super::call::Called;
use crate::code::entry::export;
use crate::code::{machine_code, stubs};
use crate::loader::module::{self, Mfa};
use crate::process::Process;
use crate::term::{Atom, CodeAddress, RawTerm, Term, tag};

/// What a process does while its stack is printed.
#[derive(Clone, Copy)]
pub(crate) enum Doing {
    /// It has no time slice: what it goes on with is printed, too.
    Rests,
    /// It has one, or handles a signal.
    Runs,
    /// It calls this BIF, which has a frame of its own.
    Calls(Mfa),
}

impl Doing {
    /// It calls this BIF.
    pub(crate) fn calls(module: Atom, function: Atom, arity: u8) -> Doing {
        Doing::Calls(Mfa {
            module,
            function,
            arity,
        })
    }
}

/// The text; none of a process that is sensitive.
pub(crate) fn stack_dump(p: &Process, doing: Doing) -> String {
    let mut text = String::new();
    if p.flags.get().sensitive {
        return text;
    }
    program_counter(p, doing, &mut text);
    let (mut at, mut y) = (p.stop.get(), 0);
    while at < p.hend() {
        // SAFETY: H1: words from `stop` to `hend` are terms, code addresses or catch tags.
        let word = RawTerm(unsafe { *at });
        if word.is_header() && word != RawTerm::NONE {
            return_address(
                at,
                machine_code::specific(CodeAddress::of_word(word.0)),
                &mut text,
            );
            y = 0;
        } else {
            slot(y, word, &mut text);
            y += 1;
        }
        at = at.wrapping_add(1);
    }
    if is_outside(p) {
        return_address(p.hend().wrapping_sub(1), stubs::normal_exit(), &mut text);
    }
    text
}

/// It is in no code yet, and has a call before it that ends the process when it returns.
fn is_outside(p: &Process) -> bool {
    p.pc.get().is_null() && p.stack_words() == 0
}

/// Where it is, and the arguments that it rests with.
fn program_counter(p: &Process, doing: Doing, text: &mut String) {
    let pc = p.pc.get();
    let bif = match doing {
        Doing::Calls(bif) => Some(bif),
        Doing::Rests | Doing::Runs => p.suspended_in().map(|(module, function, arity)| Mfa {
            module,
            function,
            arity,
        }),
    };
    // Writing to a string does not fail, here and below.
    let _ = match bif {
        Some(bif) => {
            let at = export(bif.module, bif.function, bif.arity).address();
            let name = name(bif);
            writeln!(text, "Program counter: {:#018x} ({name} + 0)", at.word())
        }
        None if is_outside(p) => {
            writeln!(text, "Program counter: {}", place(stubs::spawn_entry()))
        }
        None if p.is_away() || p.is_stand_in() => {
            // SAFETY: I1: it has left at a function's entry.
            let name = name(unsafe { Called::at(pc) }.mfa());
            writeln!(text, "Program counter: {:#018x} ({name} + 0)", pc.word())
        }
        None => writeln!(text, "Program counter: {}", place(pc)),
    };
    if bif.is_some() && !pc.is_null() {
        return_address(p.stop.get().wrapping_sub(1), pc, text);
    }
    if let Doing::Rests = doing {
        let registers = p.resting_registers().unwrap_or_default();
        let _ = writeln!(text, "arity = {}", registers.len());
        for register in registers {
            let _ = writeln!(text, "   {}", register.display());
        }
    }
}

/// A return address, which opens a frame.
fn return_address(at: *const u64, to: CodeAddress, text: &mut String) {
    let _ = writeln!(text, "\n{:#018x} Return addr {}", at as u64, place(to));
}

/// A slot of a frame: a term or a catch tag.
fn slot(y: usize, word: RawTerm, text: &mut String) {
    let name = format!("y({y})");
    let _ = if word.0 & tag::IMMED2_MASK == tag::CATCH {
        let handler = place(CodeAddress::of_word(word.0 >> 6));
        writeln!(text, "{name:<8} Catch {handler}")
    } else {
        // SAFETY: H1, T1: such a word is a term.
        let term: Term<'_> = unsafe { Term::new(word) };
        writeln!(text, "{name:<8} {}", term.display())
    };
}

/// An address, and in brackets the function that it is in.
fn place(address: CodeAddress) -> String {
    let function = module::module_at(address).and_then(|(module, offset)| {
        let entry = module.function_at(offset)?;
        let bytes = offset.saturating_sub(entry) * 8;
        Some(format!("{} + {bytes}", name(module.mfa(entry))))
    });
    let function = function.unwrap_or_else(|| stub_name(address).to_owned());
    format!("{:#018x} ({function})", address.word())
}

/// As `module:function/arity`.
fn name(mfa: Mfa) -> String {
    let (module, function) = (mfa.module.term(), mfa.function.term());
    format!("{}:{}/{}", module.display(), function.display(), mfa.arity)
}

/// What code is called that belongs to no function. Source: `erts_internal_fun_description_from_pc()`.
pub(crate) fn stub_name(address: CodeAddress) -> &'static str {
    if address.is_null() {
        "invalid"
    } else if address == stubs::normal_exit() {
        "<terminate process normally>"
    } else if address == stubs::breakpoint_end() {
        "<breakpoint>"
    } else {
        "unknown function"
    }
}
