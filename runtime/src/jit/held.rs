//! What machine registers hold from one instruction to the next.
//!
//! A template that ends with the value of a register of the process in a machine register says so
//! ([`Compiler::hold`]). Where the next template begins by loading that register ([`templates::loads_first`]), and no jump
//! of the function leads to it, it takes the value from there. Who gets to that instruction on another way (from what
//! stands behind the rest, or because the process goes on there) gets there by way of a reload, which stands behind the
//! rest, too. The registers of the process always have their values in memory, too.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use smallvec::SmallVec;

use super::compile::{Cold, Compiler};
use super::templates::{self, RAX, RCX};
use crate::code::operand::{Reg, Src};

/// The value of `reg` is in the machine register `at`.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) reg: Reg,
    at: u8,
    /// It is a small integer.
    is_small: bool,
}

pub(super) type AllHeld = SmallVec<[Held; 3]>;

/// What an instruction takes from machine registers, until its template begins.
pub(super) struct Carried {
    pub(super) held: AllHeld,
    /// The labels of the instruction.
    pub(super) labels: [Option<DynamicLabel>; 2],
    /// Its number among the places.
    pub(super) place: usize,
}

/// A way to an instruction for who does not have what it takes in machine registers.
pub(super) struct Reload {
    labels: [Option<DynamicLabel>; 2],
    place: usize,
    loads: SmallVec<[(u8, Reg); 2]>,
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
}

impl First {
    fn is_small(&self) -> bool {
        match self.held {
            Some(held) => held.is_small,
            None => self.src.reg().is_none() && templates::is_small(self.src.0),
        }
    }
}

impl Compiler<'_> {
    /// A template has ended: the value of `reg` is in the machine register `at`.
    pub(super) fn hold(&mut self, reg: Reg, at: u8) {
        let is_small = false;
        self.held.push(Held { reg, at, is_small });
    }

    /// The same of a small integer.
    pub(super) fn hold_small(&mut self, reg: Reg, at: u8) {
        let is_small = true;
        self.held.push(Held { reg, at, is_small });
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

    /// The same of small integers, or goes to `other`.
    pub(super) fn first_two_small(&mut self, left: Src, right: Src, other: DynamicLabel) {
        self.begin(&[(RAX, left), (RCX, right)], Some(other));
    }

    /// Loads sources into machine registers, and goes to `other`, if there is one, unless they are small integers.
    fn begin(&mut self, sources: &[(u8, Src)], other: Option<DynamicLabel>) {
        let carried = self.carried.take();
        let held = carried.as_ref().map_or(&[][..], |carried| &carried.held);
        let find = |src: Src| {
            let reg = src.reg()?;
            held.iter().find(|held| held.reg == reg).copied()
        };
        let firsts: SmallVec<[First; 2]> = sources
            .iter()
            .map(|&(to, src)| First {
                src,
                to,
                held: find(src),
            })
            .collect();
        self.take(&firsts);
        if let Some(carried) = carried {
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

    /// Moves what is held to where it is to be.
    fn take(&mut self, firsts: &[First]) {
        let at = |n: usize| {
            firsts
                .get(n)
                .and_then(|first| first.held)
                .map(|held| held.at)
        };
        let mut put = |to: u8, from: u8| {
            if to != from {
                dynasm!(self.a; .arch x64; mov Rq(to), Rq(from));
            }
        };
        match (at(0), at(1)) {
            (Some(RCX), Some(RAX)) => dynasm!(self.a; .arch x64; xchg rax, rcx),
            // The second one's place has the first one, or the other way round.
            (Some(one), Some(other)) if one == firsts[1].to => {
                put(firsts[0].to, one);
                put(firsts[1].to, other);
            }
            (one, other) => {
                if let Some(other) = other {
                    put(firsts[1].to, other);
                }
                if let Some(one) = one {
                    put(firsts[0].to, one);
                }
            }
        }
    }

    /// Code goes on here, behind what was taken. Who has to load that gets here, too.
    fn reloads(&mut self, carried: Carried, firsts: &[First], other: Option<DynamicLabel>) {
        let inline = self.new_label();
        dynasm!(self.a; .arch x64; =>inline);
        let taken = || firsts.iter().filter(|first| first.held.is_some());
        debug_assert!(
            taken().count() > 0,
            "an instruction that loads something first"
        );
        let reload = Reload {
            labels: carried.labels,
            place: carried.place,
            loads: taken()
                .filter_map(|first| Some((first.to, first.src.reg()?)))
                .collect(),
            checks: taken()
                .filter(|first| first.is_small())
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
            [one] => dynasm!(self.a; .arch x64; lea edx, [Rq(one) + 1]),
            [one, two, ..] => {
                dynasm!(self.a; .arch x64; mov edx, Rd(one); and edx, Rd(two); inc edx);
            }
        }
        dynasm!(self.a; .arch x64; test dl, 15; jnz =>other);
    }
}
