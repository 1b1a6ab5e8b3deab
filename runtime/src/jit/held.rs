//! What machine registers hold from one instruction to the next.
//!
//! A template that ends with the value of a register of the process in a machine register says so
//! ([`Compiler::hold`]). Where no jump of the function leads to the next instruction, its template takes the value from
//! there: because it begins by loading that register ([`templates::first_loads`]), or because it takes what it needs from
//! wherever it is ([`Compiler::pass`]). What it leaves alone ([`keeps::kept`]) is held on. Other paths to that
//! instruction (from out-of-line code, or where the process is scheduled in again) enter through a reload stub, which is out
//! of line, too. The registers of the process always have their values in memory, too.
//!
//! A function begins with its first arguments in machine registers, and a call leaves its result in one (J4, J5). So values
//! of these registers are put there where that is possible ([`Compiler::free_for`]), and calls move the others there.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use smallvec::SmallVec;

use super::compile::{Cold, Compiler};
use super::known::{Facts, Forgets};
use super::templates::floats::{self, Floats};
use super::templates::keeps::ARGUMENTS;
use super::templates::{self, RAX, RCX, calls, keeps};
use crate::code::operand::{Reg, Src};
use crate::term::CodeAddress;

/// The value of `reg` is in the machine register `at`.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) reg: Reg,
    pub(super) at: u8,
    /// It is a small integer.
    is_small: bool,
}

pub(super) type AllHeld = SmallVec<[Held; 6]>;

/// Labels of an instruction.
pub(super) type Labels = [Option<DynamicLabel>; 3];

/// A jump to an instruction that no other one leads to.
pub(super) struct Edge {
    /// What machine registers hold there.
    pub(super) held: AllHeld,
    /// The float registers that machine registers hold there.
    pub(super) floats: Floats,
    /// What is known there.
    pub(super) known: Facts,
    pub(super) label: DynamicLabel,
}

/// What an instruction takes from machine registers, until its template begins.
pub(super) struct Carried {
    pub(super) held: AllHeld,
    /// The float registers among it.
    pub(super) floats: Floats,
    /// The labels of the instruction.
    pub(super) labels: Labels,
    /// Its number among the places.
    pub(super) place: usize,
}

/// A way to an instruction for whoever does not have what it takes in machine registers.
pub(super) struct Reload {
    labels: Labels,
    place: usize,
    loads: SmallVec<[(u8, Reg); 6]>,
    floats: Floats,
    /// Where to go if what has been loaded into these machine registers is no small integer.
    checks: SmallVec<[u8; 2]>,
    other: Option<DynamicLabel>,
    inline: DynamicLabel,
}

/// A word that a template begins with: what has it, and whether it is known to be a small integer.
struct First {
    src: Src,
    to: u8,
    held: Option<Held>,
    /// It is known to be a small integer, wherever it is.
    is_known: bool,
}

impl First {
    fn is_small(&self) -> bool {
        self.is_known || self.held.is_some_and(|held| held.is_small)
    }
}

/// Those of what is held that are held on; what is no small integer on another way may be any term.
fn held_on(held: &AllHeld, is_kept: impl Fn(&Held) -> bool) -> AllHeld {
    let kept = held.iter().filter(|held| is_kept(held));
    kept.map(|&held| Held {
        is_small: false,
        ..held
    })
    .collect()
}

/// Most machine registers kept live across a template.
const HELD_ON: u32 = 6;

fn registers(held: &AllHeld) -> keeps::Set {
    held.iter().fold(0, |set, held| set | 1 << held.at)
}

fn loads(held: &AllHeld) -> SmallVec<[(u8, Reg); 6]> {
    held.iter().map(|held| (held.at, held.reg)).collect()
}

impl Compiler<'_> {
    /// A template has ended: the value of `reg` is in the machine register `at`.
    pub(super) fn hold(&mut self, reg: Reg, at: u8) {
        self.hold_as(reg, at, false);
    }

    /// As [`Compiler::hold`], for a small integer.
    pub(super) fn hold_small(&mut self, reg: Reg, at: u8) {
        self.hold_as(reg, at, true);
    }

    fn hold_as(&mut self, reg: Reg, at: u8, is_small: bool) {
        self.held.retain(|held| held.reg != reg);
        self.held.push(Held { reg, at, is_small });
    }

    /// The label that an operand names, for a template to jump to before it has changed anything, while machine
    /// registers hold what they are said to hold. A jump from behind the rest goes to [`Compiler::label`].
    pub(super) fn way_to(&mut self, address: CodeAddress) -> DynamicLabel {
        let offset = self.offset(address);
        if offset <= self.at || !self.known.is_target_once(offset) {
            return self.label(address);
        }
        let (held, known, label) = (self.held.clone(), self.known.facts(), self.new_label());
        let floats = self.floats;
        let edge = Edge {
            held,
            floats,
            known,
            label,
        };
        let former = self.edges.insert(offset, edge);
        debug_assert!(former.is_none(), "one way, asked for once");
        label
    }

    /// Has a template begin that finds what is held by [`Compiler::in_register`].
    pub(super) fn pass(&mut self) {
        let Some(carried) = self.carried.take() else {
            return;
        };
        let inline = self.new_label();
        dynasm!(self.a; .arch x64; =>inline);
        self.floats = carried.floats;
        self.held = held_on(&carried.held, |_| true);
        while registers(&self.held).count_ones() > HELD_ON {
            self.held.remove(0);
        }
        self.put_behind(Cold::Reload(Reload {
            labels: carried.labels,
            place: carried.place,
            loads: loads(&self.held),
            floats: carried.floats,
            checks: SmallVec::new(),
            other: None,
            inline,
        }));
    }

    /// The machine register that has the value of `reg`, which is loaded where none has it.
    pub(super) fn in_register(&mut self, reg: Reg) -> u8 {
        self.in_register_for(reg, reg)
    }

    /// As [`Compiler::in_register`], for a value that `dst` gets.
    pub(super) fn in_register_for(&mut self, reg: Reg, dst: Reg) -> u8 {
        if let Some(at) = self.held_at(reg) {
            return at;
        }
        let at = self.free_for(dst);
        templates::load(self, at, reg);
        self.hold(reg, at);
        at
    }

    /// A machine register that holds nothing but the value that `dst` has until it gets another one: that in which a call
    /// has it, if that is possible.
    pub(super) fn free_for(&mut self, dst: Reg) -> u8 {
        let is_free = |at: &u8| {
            let mut others = self.held.iter().filter(|held| held.reg != dst);
            others.all(|held| held.at != *at)
        };
        calls::argument(dst)
            .filter(is_free)
            .unwrap_or_else(|| self.free())
    }

    /// As [`Compiler::free_for`], for one register of `set`, which is made free where none is.
    pub(super) fn free_among(&mut self, set: keeps::Set, dst: Reg) -> u8 {
        let is_in = |at: u8| set & 1 << at != 0;
        let at = self.free_for(dst);
        if is_in(at) {
            return at;
        }
        let is_free = |at: &u8| is_in(*at) && self.held.iter().all(|held| held.at != *at);
        if let Some(at) = keeps::FREE.iter().copied().find(is_free) {
            return at;
        }
        let mut held = self.held.iter().map(|held| held.at);
        let oldest = held.find(|at| is_in(*at));
        let oldest = oldest.expect("all of the set hold something");
        self.drop_held(oldest);
        oldest
    }

    /// All machine registers may have changed.
    pub(super) fn hold_nothing(&mut self) {
        self.held.clear();
        self.floats = Floats::default();
    }

    /// The machine register that has the value of `reg`, if there is one.
    pub(super) fn held_at(&self, reg: Reg) -> Option<u8> {
        let mut held = self.held.iter();
        held.find(|held| held.reg == reg).map(|held| held.at)
    }

    /// A machine register that holds nothing.
    pub(super) fn free(&mut self) -> u8 {
        let is_free = |at: &u8| self.held.iter().all(|held| held.at != *at);
        let at = keeps::FREE.iter().copied().find(is_free);
        at.expect("a template takes three besides those that are held on")
    }

    /// The machine register gets another value.
    pub(super) fn drop_held(&mut self, at: u8) {
        self.held.retain(|held| held.at != at);
    }

    /// The register gets another value, which no machine register holds.
    pub(super) fn forget(&mut self, reg: Reg) {
        self.held.retain(|held| held.reg != reg);
    }

    /// The y registers have other names.
    pub(super) fn forget_frame(&mut self) {
        self.held.retain(|held| !held.reg.is_y());
    }

    /// What a way around the rest has to load before it goes on here.
    pub(super) fn loads_of_held(&self) -> SmallVec<[(u8, Reg); 6]> {
        loads(&self.held)
    }

    /// What is held on while the template that begins takes these to where they are to be.
    fn left_alone(&self, held: &AllHeld, firsts: &[First]) -> AllHeld {
        let Forgets::Written(written) = &self.effect.forgets else {
            return AllHeld::new();
        };
        held_on(held, |held| {
            self.kept & 1 << held.at != 0
                && !written.contains(&held.reg)
                && firsts.iter().all(|first| first.to != held.at)
        })
    }

    /// The value that a register had before the template, too, is in the machine register `at`.
    pub(super) fn find(&mut self, reg: Reg, at: u8) {
        if self.held.iter().all(|held| held.reg != reg) {
            self.hold(reg, at);
        }
    }

    /// As [`Compiler::find`], for a small integer.
    pub(super) fn find_small(&mut self, reg: Reg, at: u8) {
        self.find(reg, at);
        for held in self.held.iter_mut().filter(|held| held.reg == reg) {
            held.is_small = true;
        }
    }

    /// A function begins, called with `arity` arguments: machine registers hold the first ones.
    pub(super) fn hold_arguments(&mut self, arity: usize) {
        for (reg, at) in calls::arguments(arity).rev() {
            self.hold(reg, at);
        }
    }

    /// A call has returned: a machine register holds its result.
    pub(super) fn hold_result(&mut self) {
        self.hold(calls::X0, ARGUMENTS[0]);
    }

    /// Has a template begin with a source in a machine register.
    pub(super) fn first(&mut self, to: u8, src: Src) {
        self.begin(&[(to, src)], None);
    }

    /// Has a template begin with a source that must be a small integer, or goes to `other`.
    pub(super) fn first_small(&mut self, to: u8, src: Src, other: DynamicLabel) {
        self.begin(&[(to, src)], Some(other));
    }

    /// Has a template begin with two sources in `rax` and `rcx`.
    pub(super) fn first_two(&mut self, left: Src, right: Src) {
        self.begin(&[(RAX, left), (RCX, right)], None);
    }

    /// Has a template begin with these sources in these machine registers, no two of which are the same.
    pub(super) fn first_of(&mut self, sources: &[(u8, Src)]) {
        self.begin(sources, None);
    }

    /// Has a template begin with two sources in these machine registers.
    pub(super) fn first_pair(&mut self, first: (u8, Src), second: (u8, Src)) {
        self.begin(&[first, second], None);
    }

    /// Has a template begin with two small integers in machine registers; goes to `other` where one is none.
    pub(super) fn first_two_small(&mut self, left: Src, right: Src, other: DynamicLabel) {
        self.begin(&[(RAX, left), (RCX, right)], Some(other));
    }

    /// Loads sources into machine registers, and goes to `other`, if there is one, unless they are small integers.
    fn begin(&mut self, sources: &[(u8, Src)], other: Option<DynamicLabel>) {
        let mut carried = self.carried.take();
        let held = carried.as_ref().map_or(&[][..], |carried| &carried.held);
        let find = |src: Src| {
            let reg = src.reg()?;
            held.iter().find(|held| held.reg == reg).copied()
        };
        let firsts: SmallVec<[First; 5]> = sources
            .iter()
            .map(|&(to, src)| First {
                src,
                to,
                held: find(src),
                is_known: self.range(src).is_some(),
            })
            .collect();
        if let Some(carried) = &mut carried {
            self.rescue(&mut carried.held, sources);
        }
        self.take(&firsts);
        if let Some(carried) = carried {
            self.floats = carried.floats;
            self.held = self.left_alone(&carried.held, &firsts);
            self.reloads(carried, &firsts, other);
        }
        for first in firsts.iter().filter(|first| first.held.is_none()) {
            templates::source(self, first.to, first.src);
        }
        if let Some(other) = other {
            let unknown = firsts.iter().filter(|first| !first.is_small());
            let unknown: SmallVec<[u8; 2]> = unknown.map(|first| first.to).collect();
            self.are_small(&unknown, other);
        }
    }

    /// Moves values of arguments that the template does not leave alone to where calls have them.
    fn rescue(&mut self, held: &mut AllHeld, sources: &[(u8, Src)]) {
        let Forgets::Written(written) = &self.effect.forgets else {
            return;
        };
        for n in 0..held.len() {
            let Held { reg, at, .. } = held[n];
            let is_free = |to: &u8| {
                self.kept & 1 << *to != 0
                    && held.iter().all(|held| held.at != *to)
                    && sources.iter().all(|(taken, _)| taken != to)
            };
            if self.kept & 1 << at == 0
                && !written.contains(&reg)
                && let Some(to) = calls::argument(reg).filter(is_free)
            {
                dynasm!(self.a; .arch x64; mov Rq(to), Rq(at));
                held[n].at = to;
            }
        }
    }

    /// Moves what is held to where it is to be, all at once.
    fn take(&mut self, firsts: &[First]) {
        let taken = firsts
            .iter()
            .filter_map(|first| Some((first.to, first.held?.at)));
        let mut moves: SmallVec<[(u8, u8); 5]> = taken.filter(|(to, from)| to != from).collect();
        while !moves.is_empty() {
            let is_needed = |to: u8| moves.iter().any(|&(_, from)| from == to);
            if let Some(n) = moves.iter().position(|&(to, _)| !is_needed(to)) {
                let (to, from) = moves.remove(n);
                dynasm!(self.a; .arch x64; mov Rq(to), Rq(from));
                continue;
            }
            // What is left goes round in circles.
            let (to, from) = moves.remove(0);
            dynasm!(self.a; .arch x64; xchg Rq(to), Rq(from));
            for (_, other) in &mut moves {
                if *other == to {
                    *other = from;
                }
            }
            moves.retain(|(to, from)| to != from);
        }
    }

    /// Code goes on here, behind what was taken. Ways that have to load it first get here, too.
    fn reloads(&mut self, carried: Carried, firsts: &[First], other: Option<DynamicLabel>) {
        let inline = self.new_label();
        dynasm!(self.a; .arch x64; =>inline);
        let taken = || firsts.iter().filter(|first| first.held.is_some());
        let mut loads = loads(&self.held);
        loads.extend(taken().filter_map(|first| Some((first.to, first.src.reg()?))));
        let reload = Reload {
            labels: carried.labels,
            place: carried.place,
            loads,
            floats: carried.floats,
            checks: taken()
                .filter(|first| first.is_small() && !first.is_known)
                .map(|first| first.to)
                .collect(),
            other,
            inline,
        };
        self.put_behind(Cold::Reload(reload));
    }

    /// Puts a reload behind the rest.
    pub(super) fn reload(&mut self, reload: Reload) {
        self.bind(reload.labels);
        self.places[reload.place].1 = self.here();
        floats::load_all(self, reload.floats);
        for &(to, reg) in &reload.loads {
            templates::load(self, to, reg);
        }
        if let Some(other) = reload.other {
            self.are_small(&reload.checks, other);
        }
        let inline = reload.inline;
        dynasm!(self.a; .arch x64; jmp =>inline);
    }

    /// Goes to `other` unless these machine registers hold small integers.
    pub(super) fn are_small(&mut self, registers: &[u8], other: DynamicLabel) {
        match *registers {
            [] => return,
            [one] => templates::low_sum(self, templates::RDX, one, 1),
            [one, two, ..] => {
                dynasm!(self.a; .arch x64; mov edx, Rd(one); and edx, Rd(two); inc edx);
            }
        }
        dynasm!(self.a; .arch x64; test dl, 15; jnz =>other);
    }
}
