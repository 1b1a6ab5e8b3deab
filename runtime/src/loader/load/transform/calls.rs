//! Transforms heads of functions, calls, and what ends a function.

use super::{Done, Transform};
use crate::beam::{Arg, Op as Gen};
use crate::code::bif;
use crate::code::entry::{export, stub_instruction};
use crate::code::machine_code;
use crate::code::op::{entry as head, put};
use crate::code::operand::Sink;
use crate::term::{RawTerm, am};

/// The instructions that follow a call.
pub(super) enum Tail {
    /// More of the function.
    No,
    /// Its end.
    NoFrame,
    /// Its end, with this many words of frame.
    Frame(u16),
}

impl Transform<'_> {
    pub(super) fn func_info(&mut self, args: &[Arg]) -> Done {
        let arity = self.small_number(args[2])?;
        let (module, function) = (self.src(args[0])?, self.src(args[1])?);
        self.put(put::FuncInfo {
            arity,
            native: machine_code::generic_entry(),
            body: 0,
            breakpoint: 0,
            module: RawTerm(module),
            function: RawTerm(function),
            arity_word: u64::from(arity),
        });
        self.functions.push(self.e.here());
        debug_assert_eq!(head::WORDS, 7, "what was emitted just now");
        self.bif_body(args, arity as u8)
    }

    /// A function that the runtime gives has that for its code, whatever the module says. Its entry
    /// label follows the head.
    fn bif_body(&mut self, args: &[Arg], arity: u8) -> Done {
        let Arg::Atom(function) = args[1] else {
            return Err(self.here("a function's name"));
        };
        let (module, function) = (self.tables.name, self.tables.atom(function));
        let Some(index) = bif::find(module, function, arity) else {
            return Ok(());
        };
        if let Some((instr, label)) = self.peek(0).filter(|(instr, _)| instr.op == Gen::Label) {
            let label = self
                .number(label[0])
                .map_err(|_| self.bad(instr, "a label"))?;
            self.e.bind(label as u32);
            self.at += 1;
        }
        self.e.word(stub_instruction(
            module,
            function,
            arity,
            Some(index as u32),
        ));
        self.e.word(std::ptr::from_ref(bif::all()[index]) as u64);
        Ok(())
    }

    pub(super) fn call_ext(&mut self, import: Arg, tail: Tail) -> Done {
        let (module, function, arity) = self.import(import)?;
        if module == am::erlang && function == am::apply && (arity == 2 || arity == 3) {
            self.call_apply(arity, tail);
            return Ok(());
        }
        if module == am::erlang
            && arity == 0
            && (function == am::yield_ || function == am::hibernate)
        {
            if function == am::hibernate {
                self.put(put::Hibernate {});
            } else {
                self.put(put::Yield {});
            }
            self.return_of(tail);
            return Ok(());
        }
        let export = export(module, function, arity);
        let arity = u16::from(arity);
        let Some(bif) = export.bif.map(|index| bif::all()[index as usize]) else {
            match tail {
                Tail::No => self.put(put::CallExt { export }),
                Tail::NoFrame => self.put(put::CallExtOnly { export }),
                Tail::Frame(frame) => self.put(put::CallExtLast { frame, export }),
            }
            return Ok(());
        };
        if bif.kind == bif::Kind::Hbif {
            self.put(put::CallHbif { arity, bif, export });
        } else {
            self.put(put::CallBif { arity, bif, export });
        }
        self.return_of(tail);
        Ok(())
    }

    /// What a tail call that is done in place still has to do.
    fn return_of(&mut self, tail: Tail) {
        match tail {
            Tail::No => {}
            Tail::NoFrame => self.put(put::Return {}),
            Tail::Frame(frame) => self.put(put::DeallocateReturn { frame }),
        }
    }

    fn call_apply(&mut self, arity: u8, tail: Tail) {
        let frame = match tail {
            Tail::No if arity == 3 => return self.put(put::CallApply {}),
            Tail::No => return self.put(put::CallApplyFun {}),
            Tail::NoFrame => 0,
            Tail::Frame(words) => words,
        };
        if arity == 3 {
            self.put(put::CallApplyLast { frame });
        } else {
            self.put(put::CallApplyFunLast { frame });
        }
    }

    /// `send`: what `erlang:send/2` is called by code.
    pub(super) fn send(&mut self) {
        let export = export(am::erlang, am::send, 2);
        let bif = export.bif.map(|index| bif::all()[index as usize]);
        let bif = bif.unwrap_or_else(|| bif::missing(2));
        self.put(put::Send { bif, export });
    }

    /// A call of a fun that is followed by the end of the function is a tail call.
    pub(super) fn call_fun(&mut self, arity: u16, fun: u16) -> Done {
        let words = match (self.peek(0), self.peek(1)) {
            (Some((next, args)), Some((end, _)))
                if next.op == Gen::Deallocate && end.op == Gen::Return =>
            {
                Some(self.small_number(args[0])?)
            }
            _ => None,
        };
        match words {
            Some(words) => {
                self.at += 2;
                self.put(put::CallFunLast {
                    arity,
                    fun,
                    frame: words,
                });
            }
            None => self.put(put::CallFun { arity, fun }),
        }
        Ok(())
    }

    pub(super) fn deallocate(&mut self, args: &[Arg]) -> Done {
        let frame = self.small_number(args[0])?;
        if self.peek(0).is_some_and(|(next, _)| next.op == Gen::Return) {
            self.at += 1;
            self.put(put::DeallocateReturn { frame });
        } else {
            self.put(put::Deallocate { frame });
        }
        Ok(())
    }
}
