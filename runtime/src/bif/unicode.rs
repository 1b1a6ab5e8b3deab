//! The BIFs of `unicode`, which convert lists of characters and binaries to UTF-8 binaries and to lists.

use super::{BifResult, Control, Leave, Raise, badarg, bifs};
use crate::code::entry::export;
use crate::process::{CONTEXT_REDS, Process, Work, work};
use crate::term::{Atom, Bits, Term, View, am};
use crate::value::iolist::Visited;

bifs! {
    all own;
    bif unicode:"characters_to_binary"/2 => characters_to_binary_2;
    bif unicode:"characters_to_list"/2 => characters_to_list_2;
    bif unicode:"bin_is_7bit"/1 => bin_is_7bit_1;
}

/// Bytes or characters worked on in a time slice. Source: `LOOP_FACTOR` in `erl_unicode.c`.
const UNITS_PER_SLICE: usize = 10 * CONTEXT_REDS as usize;
/// Characters whose size is counted for one unit.
const COUNTED_PER_UNIT: usize = 5;

fn bin_is_7bit_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let is_ascii = a.as_binary().is_some_and(|bits| bits.bytes().is_ascii());
    Ok(Term::bool(is_ascii))
}

/// The part that has been converted, and the rest.
struct Conversion<'p> {
    p: &'p Process,
    latin1: bool,
    out: String,
    /// The start of a character whose other bytes are yet to come.
    leftover: Vec<u8>,
    /// Characters and bytes read.
    units: usize,
    /// Units to be read in this time slice; the last character may take a few more.
    most: usize,
    /// Bytes of the next binary that are read already.
    read_of_binary: usize,
    /// What is read next.
    rest: Option<Term<'p>>,
    /// What is read after that, the next one last.
    tails: Vec<Term<'p>>,
    /// What stands before the converter when it has met an error.
    stopped: Option<Term<'p>>,
}

/// The encoding, as far as it is converted here: whether it is Latin-1.
fn is_latin1(encoding: Term<'_>) -> Option<bool> {
    match encoding.as_atom() {
        Some(am::latin1) => Some(true),
        Some(am::unicode | am::utf8) => Some(false),
        _ => None,
    }
}

/// Size in bytes of the character that starts with `byte`.
fn utf8_len(byte: u8) -> usize {
    match byte {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    }
}

impl<'p> Conversion<'p> {
    /// Its result has about `bytes` bytes.
    fn new(p: &'p Process, data: Term<'p>, latin1: bool, bytes: usize) -> Self {
        Conversion {
            p,
            latin1,
            out: String::with_capacity(bytes),
            leftover: Vec::new(),
            units: 0,
            most: 0,
            read_of_binary: 0,
            rest: Some(data),
            tails: Vec::new(),
            stopped: None,
        }
    }

    /// Converts on until more than `units` units are read, to the end, or to the first error.
    fn run(&mut self, units: usize) {
        self.most = units;
        while self.units <= units
            && let Some(rest) = self.rest.take()
        {
            match self.step(rest) {
                Ok(next) => self.rest = next.or_else(|| self.tails.pop()),
                Err(left) => {
                    let outer = self.tails.drain(..).rev();
                    let p = self.p;
                    self.stopped = Some(outer.fold(left, |left, tail| p.cons(left, tail)));
                }
            }
        }
    }

    /// Converts an element of `rest`, or all of it; what comes next of it, or at an error what is left of it.
    fn step(&mut self, rest: Term<'p>) -> Result<Option<Term<'p>>, Term<'p>> {
        match rest.view() {
            View::Cons(cell) => {
                match cell.head().view() {
                    View::Small(code) => self.character(code).map_err(|()| rest)?,
                    View::Bits(bits) => match self.bits(bits) {
                        Ok(Visited::Whole) => {}
                        Ok(Visited::Part) => return Ok(Some(rest)),
                        Err(left) => return Err(self.p.cons(left, cell.tail())),
                    },
                    View::Cons(_) => {
                        self.tails.push(cell.tail());
                        return Ok(Some(cell.head()));
                    }
                    View::Nil => {}
                    _ => return Err(rest),
                }
                Ok(Some(cell.tail()))
            }
            View::Bits(bits) => Ok(match self.bits(bits)? {
                Visited::Whole => None,
                Visited::Part => Some(rest),
            }),
            View::Nil => Ok(None),
            _ => Err(rest),
        }
    }

    /// The text that the units left are worth of `bytes`, if that is not all of them and it is text.
    fn part<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        /// A character, and the first byte of the next.
        const LEAST: usize = 5;
        let units = self.most.saturating_sub(self.units).saturating_add(1);
        let part = bytes.get(..units.max(LEAST))?;
        if self.latin1 {
            return Some(part);
        }
        let starts = |byte: &u8| byte & 0xC0 != 0x80;
        let part = &part[..part.iter().rposition(starts)?];
        (self.leftover.is_empty() && !part.is_empty() && std::str::from_utf8(part).is_ok())
            .then_some(part)
    }

    fn character(&mut self, code: i64) -> Result<(), ()> {
        let limit = if self.latin1 { 0xff } else { 0x10_ffff };
        let code = u32::try_from(code).ok().filter(|&code| code <= limit);
        self.units += 1;
        if !self.leftover.is_empty() {
            return Err(());
        }
        self.out.push(code.and_then(char::from_u32).ok_or(())?);
        Ok(())
    }

    /// Converts all of `bytes`, which is text.
    fn push(&mut self, bytes: &[u8]) {
        self.units += bytes.len();
        if self.latin1 {
            self.out.extend(bytes.iter().map(|&b| char::from(b)));
        } else {
            self.out
                .push_str(std::str::from_utf8(bytes).expect("it is text"));
        }
    }

    /// Converts a binary, or a part of it that fits into the time slice; or gives the part of it that stands before
    /// the converter at an error.
    fn bits(&mut self, bits: Bits<'p>) -> Result<Visited, Term<'p>> {
        let bytes = bits.bytes();
        let mut from = std::mem::take(&mut self.read_of_binary);
        // What is not aligned is copied, and read at once.
        let aligned = bits.as_bytes();
        if let Some(part) = aligned.and_then(|bytes| self.part(&bytes[from..])) {
            self.push(part);
            self.read_of_binary = from + part.len();
            return Ok(Visited::Part);
        }
        if self.latin1 {
            self.push(&bytes[from..]);
            return Ok(Visited::Whole);
        }
        self.units += bytes.len() - from;
        if let Some(&first) = self.leftover.first() {
            let missing = utf8_len(first) - self.leftover.len();
            if bytes.len() < missing {
                self.leftover.extend_from_slice(&bytes);
                return Ok(Visited::Whole);
            }
            let had = self.leftover.len();
            self.leftover.extend_from_slice(&bytes[..missing]);
            match std::str::from_utf8(&self.leftover) {
                Ok(character) => self.out.push_str(character),
                Err(_) => {
                    self.leftover.truncate(had);
                    return Err(self.p.sub_bits(bits, 0, bits.bit_len()));
                }
            }
            self.leftover.clear();
            from = missing;
        }
        let rest = &bytes[from..];
        let valid = match std::str::from_utf8(rest) {
            Ok(text) => {
                self.out.push_str(text);
                return Ok(Visited::Whole);
            }
            Err(error) => error.valid_up_to(),
        };
        self.out
            .push_str(std::str::from_utf8(&rest[..valid]).expect("valid so far"));
        from += valid;
        let rest = &bytes[from..];
        if rest.len() < utf8_len(rest[0]) {
            // Whether it can become a character is asked when the rest does not come.
            self.leftover.extend_from_slice(rest);
            return Ok(Visited::Whole);
        }
        Err(self.p.sub_bits(bits, from * 8, bits.bit_len()))
    }

    /// Reason and rest, if it has not converted all.
    fn failure(&self) -> Option<(Atom, Term<'p>)> {
        let leftover = || self.p.binary(&self.leftover);
        match self.stopped {
            None if self.leftover.is_empty() => None,
            None if may_become_character(&self.leftover) => Some((am::incomplete, leftover())),
            None => Some((am::error, leftover())),
            Some(rest) if self.leftover.is_empty() => Some((am::error, rest)),
            Some(rest) => Some((am::error, self.p.list(&[leftover(), rest]))),
        }
    }
}

/// Whether all bytes behind the first are those of a character's middle.
fn may_become_character(bytes: &[u8]) -> bool {
    utf8_len(bytes[0]) > 1 && bytes[1..].iter().all(|b| b & 0xC0 == 0x80)
}

/// Refuses what is no list of characters at all; with a big integer the converter itself deals. What the counting
/// of its bytes costs, which ERTS does first. Source: `utf8_need()`.
fn check(data: Term<'_>, latin1: bool) -> Result<usize, Raise<'static>> {
    let of_binary = |bits: Bits<'_>| match latin1 {
        true => bits.byte_len() + bits.bytes().iter().filter(|b| !b.is_ascii()).count(),
        false => 1,
    };
    let mut counted = 0;
    let mut tails = Vec::new();
    let mut rest = data;
    loop {
        while let Some(cell) = rest.as_cons()
            && cell.head().as_small().is_some()
        {
            counted += 1;
            rest = cell.tail();
        }
        match rest.view() {
            View::Cons(cell) => {
                rest = cell.tail();
                match cell.head().view() {
                    View::Nil => {}
                    View::Big(_) => return Ok(counted),
                    View::Bits(bits) if bits.bit_len().is_multiple_of(8) => {
                        counted += of_binary(bits);
                    }
                    View::Cons(_) => {
                        tails.push(rest);
                        rest = cell.head();
                    }
                    _ => return Err(badarg()),
                }
                continue;
            }
            View::Nil => {}
            View::Bits(bits) if bits.bit_len().is_multiple_of(8) => counted += of_binary(bits),
            _ => return Err(badarg()),
        }
        match tails.pop() {
            Some(tail) => rest = tail,
            None => return Ok(counted),
        }
    }
}

/// Other encodings are converted by Erlang code.
fn trap<'p>(function: Atom, data: Term<'p>, encoding: Term<'p>) -> Control<'p> {
    Control::Trap(export(am::unicode, function, 2), vec![data, encoding])
}

/// Words of what ERTS keeps of the rest where it pauses in a binary.
const REST_WORDS: usize = 5;
/// Words of what it keeps where it pauses while it builds a list of a binary.
const LISTING_WORDS: usize = 7;

/// Units that the reductions left pay for.
fn payable(p: &Process) -> usize {
    p.reds_left() * UNITS_PER_SLICE / CONTEXT_REDS as usize
}

fn pay(p: &Process, units: usize) {
    p.bump_reds((units * CONTEXT_REDS as usize / UNITS_PER_SLICE) as i64);
}

/// Keeps `work` for the next slice, and as many words as ERTS does.
fn put_off<'p>(p: &'p Process, words: usize, work: impl Work<'p>) -> Control<'static> {
    p.trap_words(words);
    p.yield_with(work)
}

/// A conversion in the making.
struct Converting<'p> {
    latin1: bool,
    out: String,
    leftover: Vec<u8>,
    units: usize,
    /// Units paid for.
    paid: usize,
    read_of_binary: usize,
    /// What is read, the next one last, when it is not at its end.
    rest: Vec<Term<'p>>,
    stopped: Option<Term<'p>>,
}

work! { struct Converting { rest, stopped; latin1, out, leftover, units, paid, read_of_binary } }

impl<'p> Converting<'p> {
    fn pause(conversion: Conversion<'p>, paid: usize) -> Converting<'p> {
        let rest = conversion.tails.into_iter().chain(conversion.rest);
        Converting {
            latin1: conversion.latin1,
            out: conversion.out,
            leftover: conversion.leftover,
            units: conversion.units,
            paid,
            read_of_binary: conversion.read_of_binary,
            rest: rest.collect(),
            stopped: conversion.stopped,
        }
    }

    fn resume(self, p: &'p Process) -> (Conversion<'p>, usize) {
        let mut tails = self.rest;
        let conversion = Conversion {
            p,
            latin1: self.latin1,
            out: self.out,
            leftover: self.leftover,
            units: self.units,
            most: 0,
            read_of_binary: self.read_of_binary,
            rest: tails.pop(),
            tails,
            stopped: self.stopped,
        };
        (conversion, self.paid)
    }
}

/// Converts `data`, or goes on, until all is read and paid for: that its bytes were counted, and that it was read.
/// What counting took is taken off a second time.
fn convert<'p>(
    p: &'p Process,
    data: Term<'p>,
    latin1: bool,
    pause_words: usize,
) -> Result<Conversion<'p>, Leave<'p>> {
    let begun = p.take_work::<Converting>();
    let (mut conversion, paid, payable) = match begun {
        Some(converting) => {
            let (conversion, paid) = converting.resume(p);
            (conversion, paid, payable(p))
        }
        None => {
            let bytes = check(data, latin1)?;
            let counted = bytes / COUNTED_PER_UNIT;
            pay(p, counted);
            let conversion = Conversion::new(p, data, latin1, bytes);
            (conversion, 0, payable(p).saturating_sub(counted))
        }
    };
    let most = paid + payable;
    conversion.run(most);
    if conversion.units > most {
        let converting = Converting::pause(conversion, most);
        return Err(put_off(p, pause_words, converting).into());
    }
    pay(p, conversion.units - paid);
    Ok(conversion)
}

fn characters_to_binary_2<'p>(p: &'p Process, [data, encoding]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(latin1) = is_latin1(encoding) else {
        return Err(trap(am::characters_to_binary_int, data, encoding).into());
    };
    // A binary by itself that needs no conversion is the result.
    let subject = match data.as_cons() {
        Some(cell) if cell.tail().is_nil() && cell.head().as_bits().is_some() => cell.head(),
        _ => data,
    };
    if let Some(bits) = subject.as_binary().filter(|_| !p.has_work()) {
        let bytes = bits.bytes();
        let same = if latin1 {
            bytes.is_ascii()
        } else {
            std::str::from_utf8(&bytes).is_ok()
        };
        if same {
            pay(p, check(subject, latin1)? / COUNTED_PER_UNIT);
            return Ok(subject);
        }
    }
    let mut conversion = convert(p, subject, latin1, REST_WORDS)?;
    let failure = conversion.failure();
    let text = std::mem::take(&mut conversion.out);
    let converted = p.binary_from_vec(text.into_bytes());
    Ok(of_outcome(p, converted, failure))
}

/// The result of a conversion that may have failed.
fn of_outcome<'p>(
    p: &'p Process,
    converted: Term<'p>,
    failure: Option<(Atom, Term<'p>)>,
) -> Term<'p> {
    match failure {
        None => converted,
        Some((reason, rest)) => p.tuple(&[reason.term(), converted, rest]),
    }
}

/// A list of a text's characters in the making.
struct Listing<'p> {
    text: String,
    /// Characters that are to be paid for before the list is begun.
    owed: usize,
    /// Characters that are not in the list yet: the first ones of the text.
    left: usize,
    list: Term<'p>,
    failure: Option<(Atom, Term<'p>)>,
}

work! { struct Listing { list, failure; text, owed, left } }

impl<'p> Listing<'p> {
    /// As much as the reductions left pay for, from the end on.
    fn run(mut self, p: &'p Process) -> BifResult<'p> {
        let payable_now = payable(p);
        if self.owed > payable_now {
            self.owed -= payable_now;
            return Err(put_off(p, LISTING_WORDS, self).into());
        }
        pay(p, std::mem::take(&mut self.owed));
        let most = payable(p);
        let now = self.left.min(most);
        let mut list = self.list;
        let mut end = self.text.len();
        for (at, character) in self.text.char_indices().rev().take(now) {
            list = p.cons(Term::small(i64::from(u32::from(character))), list);
            end = at;
        }
        self.text.truncate(end);
        self.left -= now;
        if self.left > 0 {
            self.list = list;
            return Err(put_off(p, LISTING_WORDS, self).into());
        }
        pay(p, now);
        Ok(of_outcome(p, list, self.failure))
    }
}

fn characters_to_list_2<'p>(p: &'p Process, [data, encoding]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(latin1) = is_latin1(encoding) else {
        return Err(trap(am::characters_to_list_int, data, encoding).into());
    };
    if let Some(listing) = p.take_work_if::<Listing>() {
        return listing.run(p);
    }
    let is_utf8 = data.as_bits().is_some() && !latin1;
    let mut conversion = if is_utf8 {
        // Its characters are counted, no bytes.
        let bytes = check(data, latin1)?;
        let mut conversion = Conversion::new(p, data, latin1, bytes);
        conversion.run(usize::MAX);
        conversion
    } else {
        convert(p, data, latin1, LISTING_WORDS)?
    };
    let failure = conversion.failure();
    let text = std::mem::take(&mut conversion.out);
    let left = text.chars().count();
    let listing = Listing {
        text,
        owed: if is_utf8 { left } else { 0 },
        left,
        list: Term::NIL,
        failure,
    };
    listing.run(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::in_small_steps;

    fn to_binary<'p>(p: &'p Process, data: Term<'p>) -> BifResult<'p> {
        characters_to_binary_2(p, [data, am::utf8.term()])
    }

    fn latin1_to_binary<'p>(p: &'p Process, data: Term<'p>) -> BifResult<'p> {
        characters_to_binary_2(p, [data, am::latin1.term()])
    }

    fn to_list<'p>(p: &'p Process, data: Term<'p>) -> BifResult<'p> {
        characters_to_list_2(p, [data, am::utf8.term()])
    }

    #[test]
    fn a_long_text_is_converted_in_many_slices() {
        let mut p = Process::new(233);
        let text = "a ä € 𝄞 ".repeat(1000);
        let (head, tail) = text.split_at(14 * 300);
        let parts = [
            p.string(head),
            p.binary(&tail.as_bytes()[..6]),
            p.list(&[p.binary(&tail.as_bytes()[6..8]), p.string(&tail[8..])]),
        ];
        let bad = Term::small(0xd800);
        let (good, bad) = (p.list(&parts), p.list(&[parts[0], bad, parts[2]]));
        let (good, bad) = (p.root(good), p.root(bad));
        let is_text = |bits: Term<'_>, text: &str| {
            bits.as_binary().expect("a binary").bytes() == text.as_bytes()
        };
        let turns = in_small_steps(&mut p, &good, to_binary, |found| is_text(found, &text));
        assert!(turns > 30, "{turns}");
        let is_failure = |found: Term<'_>| match found.as_tuple().expect("a tuple").elements() {
            [reason, text, rest] => {
                let rest = rest.as_cons().expect("what stands before the converter");
                *reason == am::error
                    && is_text(*text, head)
                    && rest.head().as_small() == Some(0xd800)
            }
            _ => false,
        };
        in_small_steps(&mut p, &bad, to_binary, is_failure);
        let is_list = |found: Term<'_>| {
            let codes = found.list_iter().map(|c| c.ok().and_then(Term::as_small));
            codes.eq(text.chars().map(|c| Some(i64::from(u32::from(c)))))
        };
        let turns = in_small_steps(&mut p, &good, to_list, is_list);
        assert!(turns > 60, "{turns}");
        let bytes = p.root(p.binary(text.as_bytes()));
        let turns = in_small_steps(&mut p, &bytes, to_list, is_list);
        assert!(turns > 60, "{turns}");
    }

    #[test]
    fn a_long_binary_is_converted_in_many_slices() {
        let mut p = Process::new(233);
        let bytes = [b"latin1 \xE4\xFF".repeat(400), vec![b'.'; 3]].concat();
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let is_text = |found: Term<'_>| {
            found
                .as_binary()
                .is_some_and(|bits| bits.bytes() == text.as_bytes())
        };
        let latin1 = p.root(p.binary(&bytes));
        let turns = in_small_steps(&mut p, &latin1, latin1_to_binary, is_text);
        assert!(turns > 30, "{turns}");
    }
}
