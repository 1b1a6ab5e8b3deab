//! The arms that call guard BIFs and other BIFs.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use crate::code::op::{entry as head, read};
use crate::code::operand::Instruction;
use crate::code::{Export, bif::Bif};
use crate::exec::bif::{BifEnd, call_bif};
use crate::exec::nif::call_nif;
use crate::interp::regs::{GO, Go, Guarded, Regs, guarded, header};
use crate::process::order::director::may_timing_show;
use crate::process::{CONTEXT_REDS, Outcome, X_REGISTERS};
use crate::term::{CodeAddress, RawTerm, tag};

/// The place of a BIF's call: what differs at the end of the call.
#[derive(Clone, Copy)]
struct Site<I> {
    /// The calling instruction; none for a BIF called by its entry.
    call: Option<I>,
    /// What the call has cost, given back if it is to be made again.
    cost: i64,
    /// The entry where a BIF that has been put off half-way goes on: the process is in the BIF, not at its call. Null:
    /// the instruction calls it again.
    half_way: CodeAddress,
}

impl<I: Instruction> Site<I> {
    /// Leaves the way back for what the call ends with.
    ///
    /// # Safety
    /// H1: the stack has room for a word.
    #[inline(always)]
    unsafe fn push_return(&self, r: &mut Regs<'_>) {
        if let Some(call) = self.call {
            // SAFETY: by contract.
            unsafe { r.push_return(call) };
        }
    }

    /// Whether its entry is a BIF's: that of a NIF, which costs nothing, gives nothing back.
    #[inline(always)]
    fn is_of_bif(&self) -> bool {
        self.call.is_some() || self.cost != 0
    }

    /// Goes back to whoever called.
    ///
    /// # Safety
    /// I1: the instruction's; H1: without one, the return address is on top of the stack.
    #[inline(always)]
    unsafe fn go_back(&self, r: &mut Regs<'_>) {
        r.pc = match self.call {
            Some(call) => call.next(),
            // SAFETY: by contract.
            None => unsafe { r.pop_return() },
        };
    }
}

/// The end of a BIF's call, the process swapped out.
///
/// # Safety
/// The contract of `arms/mod.rs`; `ended` is how the BIF ended just now.
#[inline(always)]
unsafe fn end<I: Instruction>(r: &mut Regs<'_>, site: Site<I>, arity: usize, ended: BifEnd) -> Go {
    if let BifEnd::Sleep = ended {
        return ControlFlow::Break(r.p.outcome_of_wait());
    }
    r.swap_in();
    // SAFETY: by contract.
    unsafe {
        match ended {
            BifEnd::Return => {
                site.go_back(r);
                GO
            }
            BifEnd::Go(address) => {
                site.push_return(r);
                r.dispatch(address)
            }
            BifEnd::Trap(address) => {
                site.push_return(r);
                r.trap(address)
            }
            BifEnd::Jump(address) => r.jump(address),
            BifEnd::YieldAfter => {
                site.go_back(r);
                r.pause(Outcome::Yield, 1)
            }
            BifEnd::Again(outcome) => {
                if matches!(outcome, Outcome::Yield | Outcome::Dirty(_)) && !site.half_way.is_null()
                {
                    if !may_timing_show() {
                        // Its time slice goes on at the entry, which gives a reduction back.
                        let give_back = match outcome {
                            Outcome::Yield => r.fcalls > 0 && site.is_of_bif(),
                            _ => site.cost != 0,
                        };
                        r.fcalls -= i64::from(give_back);
                    }
                    site.push_return(r);
                    r.pc = site.half_way;
                } else {
                    r.fcalls += site.cost;
                }
                r.pause_again(outcome, arity)
            }
            BifEnd::Exit(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
            BifEnd::Sleep => unreachable!("a process that sleeps has left"),
        }
    }
}

/// The end of a NIF's call by its entry, the process swapped out.
///
/// # Safety
/// The contract of `arms/mod.rs`; `ended` is how the NIF ended just now.
#[inline(always)]
pub(in crate::interp) unsafe fn end_nif(r: &mut Regs<'_>, _i: read::NifEntry, ended: BifEnd) -> Go {
    let half_way = r.pc;
    let call = None::<read::NifEntry>;
    // SAFETY: by contract.
    unsafe {
        let arity = head::arity(*r.pc.code().offset(head::ARITY));
        let site = Site {
            call,
            cost: 0,
            half_way,
        };
        end(r, site, arity.into(), ended)
    }
}

/// The end of a call of a BIF through its export, the process swapped out.
///
/// # Safety
/// The contract of `arms/mod.rs`; `ended` is how the BIF ended just now.
#[inline(always)]
pub(in crate::interp) unsafe fn end_call<I: Instruction>(
    r: &mut Regs<'_>,
    i: I,
    export: &'static Export,
    ended: BifEnd,
    cost: i64,
) -> Go {
    let site = Site {
        call: Some(i),
        cost,
        half_way: export.address(),
    };
    // SAFETY: by contract.
    unsafe { end(r, site, usize::from(export.arity), ended) }
}

/// Calls of BIFs are saved with those of other exports: they go through their entries, too.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn saved(r: &mut Regs<'_>, i: impl Instruction, export: &'static Export) -> Go {
    r.save_call::<true>(Some(export));
    r.fcalls -= 1;
    // SAFETY: by contract.
    unsafe { r.push_return(i) };
    r.jump(export.address())
}

arms! {
    /// The entry of a BIF. The call has been charged for, unless the time slice begins here.
    fn bif_entry(r, i: BifEntry) {
        let bif = i.bif();
        r.p.resumed_call.set(CodeAddress::NULL);
        r.fcalls = (r.fcalls + 1).min(CONTEXT_REDS);
        r.swap_out();
        let ended = call_bif(r.p, bif, r.pc, None);
        let site = Site { call: None::<read::BifEntry>, cost: -1, half_way: r.pc };
        end(r, site, bif.arity.into(), ended)
    }

    /// The entry of a function whose body is a NIF.
    fn nif_entry(r, i: NifEntry) {
        r.p.resumed_call.set(CodeAddress::NULL);
        r.swap_out();
        let ended = call_nif(r.p, r.pc);
        end_nif(r, i, ended)
    }

    /// `call_ext` of a BIF that costs a reduction.
    fn call_bif_light<SAVES>(r, i: CallBif) {
        let (bif, export) = (i.bif(), i.export());
        if SAVES {
            return saved(r, i, export);
        }
        r.fcalls -= 1;
        if r.fcalls <= 0 {
            return r.pause_again(Outcome::Yield, i.arity());
        }
        call_site(r, Site { call: Some(i), cost: 1, half_way: CodeAddress::NULL }, bif, export)
    }

    /// `call_ext` of a heavy BIF, which costs what its work costs.
    fn call_bif_heavy<SAVES>(r, i: CallHbif) {
        let (bif, export) = (i.bif(), i.export());
        if SAVES {
            return saved(r, i, export);
        }
        call_site(r, Site { call: Some(i), cost: 0, half_way: CodeAddress::NULL }, bif, export)
    }

    /// `send`, which no breakpoint on `erlang:send/2` sees.
    fn send<SAVES>(r, i: Send) {
        let bif = i.bif();
        if SAVES {
            return saved(r, i, i.export());
        }
        r.fcalls -= 1;
        if r.fcalls <= 0 {
            return r.pause_again(Outcome::Yield, usize::from(bif.arity));
        }
        r.swap_out();
        let ended = call_bif(r.p, bif, r.pc, Some(r.pc));
        end(r, Site { call: Some(i), cost: 1, half_way: CodeAddress::NULL }, bif.arity.into(), ended)
    }

    /// A guard BIF without arguments.
    fn bif0(r, i: Bif0) {
        let guarded = Guarded { bif: i.bif(), fail: CodeAddress::NULL, live: X_REGISTERS, dst: i.dst() };
        r.guard_bif(i, guarded, &[])
    }

    /// A guard BIF.
    fn bif1(r, i: Bif1) {
        let src = r.src(i.src());
        r.guard_bif(i, guarded!(i), &[src])
    }

    /// A guard BIF, or an operator of which nothing is known.
    fn bif2(r, i: Bif2) {
        let args = [r.src(i.left()), r.src(i.right())];
        r.guard_bif(i, guarded!(i), &args)
    }

    /// A guard BIF.
    fn bif3(r, i: Bif3) {
        let args = [r.src(i.first()), r.src(i.second()), r.src(i.third())];
        r.guard_bif(i, guarded!(i), &args)
    }

    /// `self/0`
    fn self_r(r, i: SelfR) {
        let pid = r.p.pid().term().raw().0;
        r.set(i.dst(), pid);
        r.next(i)
    }

    /// `element/2` with a constant index.
    fn element_rc(r, i: ElementRC) {
        let (tuple, index) = (r.get(i.tuple()), i.index());
        let head = header(tuple);
        if head & tag::HEADER_MASK == tag::ARITYVAL && tag::header_arity(head) >= index {
            r.set(i.dst(), *RawTerm(tuple).ptr().add(index));
            return r.next(i);
        }
        let args = [RawTerm::small(index as i64).0, tuple];
        r.guard_bif(i, guarded!(i, X_REGISTERS), &args)
    }

    /// `hd/1`
    fn hd_r(r, i: HdR) {
        let list = r.get(i.list());
        if list & tag::PRIMARY_MASK == tag::LIST {
            r.set(i.dst(), *RawTerm(list).ptr());
            return r.next(i);
        }
        r.guard_bif(i, guarded!(i, X_REGISTERS), &[list])
    }

    /// `tl/1`
    fn tl_r(r, i: TlR) {
        let list = r.get(i.list());
        if list & tag::PRIMARY_MASK == tag::LIST {
            r.set(i.dst(), *RawTerm(list).ptr().add(1));
            return r.next(i);
        }
        r.guard_bif(i, guarded!(i, X_REGISTERS), &[list])
    }
}

/// The call of a BIF through its export: by its entry, where a breakpoint is set on it.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn call_site<I: Instruction>(
    r: &mut Regs<'_>,
    site: Site<I>,
    bif: &'static Bif,
    export: &'static Export,
) -> Go {
    // SAFETY: by contract.
    unsafe {
        if export.is_bif_traced.load(Ordering::Relaxed) {
            site.push_return(r);
            return r.jump(export.address());
        }
        r.swap_out();
        let ended = call_bif(r.p, bif, r.pc, Some(r.pc));
        let half_way = export.address();
        end(r, Site { half_way, ..site }, bif.arity.into(), ended)
    }
}
