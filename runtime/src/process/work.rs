//! The unfinished work of a BIF that goes on in another time slice.
//!
//! A BIF that has spent its reductions keeps what it has done so far in the process, and yields. When it is called
//! again, with the same arguments, it takes that up. Terms in it are roots.
//!
//! Invariants:
//! - WK1: what rests is the type of what was put to rest, but for the lifetime of its terms.
//! - WK2: work rests in its process alone, which shows it to each collection.

use std::any::Any;

use super::{CONTEXT_REDS, Process};
use crate::heap::{Keeps, Visit};
use crate::process::{BifResult, Control};
use crate::term::{Atom, Term};

/// What a BIF has done so far, with terms of its process in hand.
///
/// # Safety
/// WK1: `Rested` is the type itself, with `'static` in place of `'p`. `work!` implements it.
pub(crate) unsafe trait Work<'p>: Keeps + 'p {
    /// What it is while the process runs something else.
    type Rested: Work<'static, Rested = Self::Rested>;

    /// The function that the process is shown in meanwhile, where that is not the BIF: in ERTS it goes on
    /// in one of `erts_internal`.
    fn shown_as(&self) -> Option<(Atom, u8)> {
        None
    }
}

/// Implements [`Work`] for a struct or an enum with terms, in the form that `keeps!` takes, or for a type without.
macro_rules! work {
    (@of [$($other:ident)?] $name:ty, $rested:ty $(, shown as $shown:expr)?) => {
        #[expect(unsafe_code, reason = "WK1: the two types differ in the lifetime alone")]
        // SAFETY: WK1: the same name.
        unsafe impl<'p $(, $other: Send + 'static)?> $crate::process::Work<'p> for $name {
            type Rested = $rested;
            $(fn shown_as(&self) -> Option<($crate::term::Atom, u8)> {
                let shown: fn(&$name) -> Option<($crate::term::Atom, u8)> = $shown;
                shown(self)
            })?
        }
    };
    (struct $name:ident { $($fields:tt)* } $(shown as $shown:expr)?) => {
        $crate::heap::keeps! { struct $name { $($fields)* } }
        $crate::process::work! { @of [] $name<'p>, $name<'static> $(, shown as $shown)? }
    };
    (struct $name:ident <$other:ident> { $($fields:tt)* }) => {
        $crate::heap::keeps! { struct $name <$other> { $($fields)* } }
        $crate::process::work! { @of [$other] $name<'p, $other>, $name<'static, $other> }
    };
    (enum $name:ident { $($variants:tt)* }) => {
        $crate::heap::keeps! { enum $name { $($variants)* } }
        $crate::process::work! { @of [] $name<'p>, $name<'static> }
    };
    ($name:ident without terms $(shown as $shown:expr)?) => {
        #[expect(unsafe_code, reason = "KS1: the compiler knows that it holds no terms")]
        // SAFETY: KS1: it lives without a borrow.
        unsafe impl $crate::heap::Keeps for $name {
            fn show(&mut self, _: &mut $crate::heap::Visit<'_>) {
                $crate::heap::holds_no_term(self);
            }
        }
        $crate::process::work! { @of [] $name, $name $(, shown as $shown)? }
    };
}
pub(crate) use work;

/// Work whose terms have no lifetime, for a process to keep: nobody gets at them but the collector.
pub(crate) struct AtRest(Box<dyn Rested>);

trait Rested: Any {
    fn show(&mut self, visit: &mut Visit<'_>);
    fn shown_as(&self) -> Option<(Atom, u8)>;
}

impl<W: Work<'static>> Rested for W {
    fn show(&mut self, visit: &mut Visit<'_>) {
        Keeps::show(self, visit);
    }
    fn shown_as(&self) -> Option<(Atom, u8)> {
        Work::shown_as(self)
    }
}

impl AtRest {
    fn new<'p, W: Work<'p>>(work: W) -> AtRest {
        let work = Box::into_raw(Box::new(work)).cast::<W::Rested>();
        // SAFETY: WK1: the same type; KS1: from here on only the collector sees its terms, and all of them.
        AtRest(unsafe { Box::from_raw(work) })
    }

    fn is<'p, W: Work<'p>>(&self) -> bool {
        let work: &dyn Any = &*self.0;
        work.is::<W::Rested>()
    }

    /// The work, with terms of the process that has kept it and is borrowed for `'p`.
    ///
    /// # Safety
    /// WK2: the collector of that process has seen its terms at each collection since.
    unsafe fn take<'p, W: Work<'p>>(self) -> Option<Box<W>> {
        let work: Box<dyn Any> = self.0;
        let work = work.downcast::<W::Rested>().ok()?;
        // SAFETY: WK1: the same type; T1: by contract.
        Some(unsafe { Box::from_raw(Box::into_raw(work).cast::<W>()) })
    }

    /// Shows the collector all slots that hold terms.
    pub(super) fn show(&mut self, visit: &mut Visit<'_>) {
        self.0.show(visit);
    }

    /// As [`Work::shown_as`].
    pub(crate) fn shown_as(&self) -> Option<(Atom, u8)> {
        self.0.shown_as()
    }
}

/// Something to pay for.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    units: usize,
    /// Units that a whole time slice pays for.
    per_slice: usize,
    /// There is no pause before it is paid, with whatever is left.
    at_once: bool,
}

impl Due {
    pub(crate) fn new(units: usize, per_slice: usize) -> Due {
        Due {
            units,
            per_slice,
            at_once: false,
        }
    }

    /// What is not put off: it costs at most what is left of the time slice.
    pub(crate) fn at_once(units: usize, per_slice: usize) -> Due {
        Due {
            at_once: true,
            ..Due::new(units, per_slice)
        }
    }

    /// Units that `reds` reductions pay for.
    fn payable(&self, reds: usize) -> usize {
        reds * self.per_slice / CONTEXT_REDS as usize
    }
}

/// Words of what ERTS keeps of a BIF that pauses.
#[derive(Clone, Copy)]
pub(crate) enum PauseWords {
    /// The reference to its state ([`Process::trap_state`]).
    Once,
    /// How many, each time.
    Each(usize),
}

/// A result that is not paid for yet.
struct Owing<'p> {
    result: Term<'p>,
    due: Vec<Due>,
}

work! { struct Owing { result; due } }

impl Process {
    /// Reductions left to the BIF that runs.
    pub(crate) fn reds_left(&self) -> usize {
        usize::try_from(self.fcalls.get()).unwrap_or(0)
    }

    /// Takes all that is left of the time slice, as ERTS's `BUMP_ALL_REDS`.
    pub(crate) fn bump_all_reds(&self) {
        self.bump_reds(self.fcalls.get());
    }

    /// Begins anew, with the same arguments, in a slice of its own: nothing is charged. What a BIF returns
    /// that is called with too few reductions left to be worth it.
    pub(crate) fn try_again(&self) -> Control<'static> {
        self.give_up_slice();
        Control::Yield
    }

    /// The reference to a BIF's state that ERTS makes when it traps first: its words are the process's.
    pub(crate) fn trap_state(&self) {
        const MAGIC_REF_WORDS: usize = 3;
        self.trap_words(MAGIC_REF_WORDS);
    }

    /// Words that ERTS keeps a state in when it traps: they are the process's until it collects.
    pub(crate) fn trap_words(&self, words: usize) {
        if let Some(elements) = words.checked_sub(1) {
            self.tuple(&vec![Term::NIL; elements]);
        }
    }

    /// Keeps `work` until the BIF is called again: it is to return what this gives.
    pub(crate) fn yield_with<'p>(&'p self, work: impl Work<'p>) -> Control<'static> {
        self.bump_all_reds();
        self.put_off(work)
    }

    /// As [`Process::yield_with`] without a charge, for callers that charge themselves.
    pub(crate) fn put_off<'p>(&'p self, work: impl Work<'p>) -> Control<'static> {
        self.psd().work = Some(AtRest::new(work));
        Control::Yield
    }

    /// Pays for a result that is there already: as long as there is something due, in this slice and the
    /// next ones.
    pub(crate) fn pay<'p>(
        &'p self,
        result: Term<'p>,
        due: &[Due],
        words: PauseWords,
    ) -> BifResult<'p> {
        if let PauseWords::Once = words
            && due
                .iter()
                .any(|item| item.units > item.payable(self.reds_left()))
        {
            self.trap_state();
        }
        self.pay_some(result, due, words)
    }

    fn pay_some<'p>(&'p self, result: Term<'p>, due: &[Due], words: PauseWords) -> BifResult<'p> {
        let mut due = due.to_vec();
        for item in &mut due {
            let payable = item.payable(self.reds_left());
            if item.units > payable && !item.at_once {
                item.units -= payable;
                if let PauseWords::Each(words) = words {
                    self.trap_words(words);
                }
                return Err(self.yield_with(Owing { result, due }).into());
            }
            self.bump_reds((item.units * CONTEXT_REDS as usize / item.per_slice) as i64);
            item.units = 0;
        }
        Ok(result)
    }

    /// Goes on with [`Process::pay`], if this BIF has begun to.
    pub(crate) fn pay_on<'p>(&'p self, words: PauseWords) -> Option<BifResult<'p>> {
        let owing = self.take_work_if::<Owing>()?;
        Some(self.pay_some(owing.result, &owing.due, words))
    }

    /// Whether this BIF is called again, and goes on.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.with_psd(|psd| psd.work.is_some()) == Some(true)
    }

    /// The work of this BIF that was put off, if it is of that kind: of a BIF that works in stages.
    pub(crate) fn take_work_if<'p, W: Work<'p>>(&'p self) -> Option<Box<W>> {
        let is_it = |psd: &super::Psd| psd.work.as_ref().is_some_and(AtRest::is::<W>);
        self.with_psd(is_it).filter(|is| *is)?;
        self.take_work()
    }

    /// The work of this BIF that was put off, when it is called again.
    pub(crate) fn take_work<'p, W: Work<'p>>(&'p self) -> Option<Box<W>> {
        if !self.has_work() {
            return None;
        }
        let work = self.psd().work.take()?;
        // SAFETY: WK2: it has rested in this process.
        let work = unsafe { work.take() };
        debug_assert!(work.is_some(), "what was put off is what is called again");
        work
    }
}

/// For tests: calls a BIF with few reductions at a time (more the first time: some begin with no less), collecting
/// in between, until it returns; how often it has yielded, and whether what it returned is as it should be.
#[cfg(test)]
pub(crate) fn in_small_steps(
    p: &mut Process,
    arg: &crate::heap::Root,
    bif: impl for<'p> Fn(&'p Process, Term<'p>) -> BifResult<'p>,
    is_right: impl Fn(Term<'_>) -> bool,
) -> usize {
    for turns in 0.. {
        p.fcalls.set(if turns == 0 { 101 } else { 7 });
        match bif(p, p.get(arg)) {
            Ok(value) => {
                assert!(is_right(value));
                return turns;
            }
            Err(crate::process::Leave::Control(Control::Yield)) => {}
            Err(_) => panic!("no exception"),
        }
        p.garbage_collect(0, 0).expect("no limit");
    }
    unreachable!("it returns at last")
}
