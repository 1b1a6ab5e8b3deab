//! `unicode`: lists of characters and binaries to UTF-8 binaries and to lists.

use super::{BifResult, Raise, badarg, bifs};
use crate::code::entry::export;
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process};
use crate::term::{Atom, Bits, Term, View, am};

bifs! {
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

/// What has been converted, and where that stopped.
struct Conversion<'p> {
    p: &'p Process,
    latin1: bool,
    out: String,
    /// The start of a character whose other bytes are yet to come.
    leftover: Vec<u8>,
    /// Characters and bytes read.
    units: usize,
}

/// What stands before the converter when it meets an error.
struct Stopped<'p>(Term<'p>);

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
    fn new(p: &'p Process, latin1: bool) -> Self {
        Conversion {
            p,
            latin1,
            out: String::new(),
            leftover: Vec::new(),
            units: 0,
        }
    }

    /// Converts `data`, or tells what is left from the first error on.
    fn run(&mut self, data: Term<'p>) -> Result<(), Stopped<'p>> {
        if let View::Bits(bits) = data.view() {
            return self.bits(bits).map_err(Stopped);
        }
        let mut tails = Vec::new();
        let mut rest = data;
        loop {
            let outcome = match rest.view() {
                View::Cons(cell) => match cell.head().view() {
                    View::Small(code) => self.character(code).map_err(|()| rest),
                    View::Bits(bits) => self
                        .bits(bits)
                        .map_err(|left| self.p.cons(left, cell.tail())),
                    View::Cons(_) => {
                        tails.push(cell.tail());
                        rest = cell.head();
                        continue;
                    }
                    View::Nil => Ok(()),
                    _ => Err(rest),
                }
                .map(|()| Some(cell.tail())),
                View::Bits(bits) => self.bits(bits).map(|()| None),
                View::Nil => Ok(None),
                _ => Err(rest),
            };
            match outcome {
                Ok(Some(tail)) => rest = tail,
                Ok(None) => match tails.pop() {
                    Some(tail) => rest = tail,
                    None => return Ok(()),
                },
                Err(left) => {
                    let outer = tails.into_iter().rev();
                    return Err(Stopped(
                        outer.fold(left, |left, tail| self.p.cons(left, tail)),
                    ));
                }
            }
        }
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

    /// Converts a binary; or gives the part of it that stands before the converter at an error.
    fn bits(&mut self, bits: Bits<'p>) -> Result<(), Term<'p>> {
        let bytes = bits.bytes();
        self.units += bytes.len();
        if self.latin1 {
            self.out.extend(bytes.iter().map(|&b| char::from(b)));
            return Ok(());
        }
        let mut from = 0;
        if let Some(&first) = self.leftover.first() {
            let missing = utf8_len(first) - self.leftover.len();
            if bytes.len() < missing {
                self.leftover.extend_from_slice(&bytes);
                return Ok(());
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
                return Ok(());
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
            return Ok(());
        }
        Err(self.p.sub_bits(bits, from * 8, bits.bit_len()))
    }

    /// Reason and rest of what `run` gave, if it did not convert all.
    fn failure(&self, outcome: Result<(), Stopped<'p>>) -> Option<(Atom, Term<'p>)> {
        let leftover = || self.p.binary(&self.leftover);
        match outcome {
            Ok(()) if self.leftover.is_empty() => None,
            Ok(()) if may_become_character(&self.leftover) => Some((am::incomplete, leftover())),
            Ok(()) => Some((am::error, leftover())),
            Err(Stopped(rest)) if self.leftover.is_empty() => Some((am::error, rest)),
            Err(Stopped(rest)) => Some((am::error, self.p.list(&[leftover(), rest]))),
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
        true => bits.bytes().iter().map(|b| 1 + usize::from(b >> 7)).sum(),
        false => 1,
    };
    let mut counted = 0;
    let mut tails = Vec::new();
    let mut rest = data;
    loop {
        match rest.view() {
            View::Cons(cell) => {
                rest = cell.tail();
                match cell.head().view() {
                    View::Small(_) => counted += 1,
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
fn trap<'p>(function: Atom, data: Term<'p>, encoding: Term<'p>) -> Raise<'p> {
    Raise::Trap(export(am::unicode, function, 2), vec![data, encoding])
}

/// Words of what ERTS keeps of the rest where it pauses in a binary.
const REST_WORDS: PauseWords = PauseWords::Each(5);
/// Words of what it keeps where it pauses while it builds a list of a binary.
const LISTING_WORDS: PauseWords = PauseWords::Each(7);

/// Converts `data`; the result, which `build` makes, and what is due: for counting its bytes, and for reading it.
fn convert<'p>(
    p: &'p Process,
    data: Term<'p>,
    latin1: bool,
    build: impl FnOnce(String) -> Term<'p>,
) -> Result<(Term<'p>, [Due; 2]), Raise<'p>> {
    let counted = check(data, latin1)? / COUNTED_PER_UNIT;
    let mut conversion = Conversion::new(p, latin1);
    let outcome = conversion.run(data);
    let failure = conversion.failure(outcome);
    // What counting took is taken off a second time.
    let due = [
        Due::at_once(counted, UNITS_PER_SLICE),
        Due::new(conversion.units, UNITS_PER_SLICE).after(counted),
    ];
    let converted = build(conversion.out);
    let result = match failure {
        None => converted,
        Some((reason, rest)) => p.tuple(&[reason.term(), converted, rest]),
    };
    Ok((result, due))
}

fn characters_to_binary_2<'p>(p: &'p Process, [data, encoding]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(latin1) = is_latin1(encoding) else {
        return Err(trap(am::characters_to_binary_int, data, encoding));
    };
    if let Some(result) = p.pay_on(REST_WORDS) {
        return result;
    }
    // A binary by itself that needs no conversion is the result.
    let subject = match data.as_cons() {
        Some(cell) if cell.tail().is_nil() && cell.head().as_bits().is_some() => cell.head(),
        _ => data,
    };
    if let Some(bits) = subject.as_binary() {
        let bytes = bits.bytes();
        let same = if latin1 {
            bytes.is_ascii()
        } else {
            std::str::from_utf8(&bytes).is_ok()
        };
        if same {
            let counted = check(subject, latin1)? / COUNTED_PER_UNIT;
            return p.pay(
                subject,
                &[Due::at_once(counted, UNITS_PER_SLICE)],
                REST_WORDS,
            );
        }
    }
    let build = |text: String| p.binary_from_vec(text.into_bytes());
    let (result, due) = convert(p, subject, latin1, build)?;
    p.pay(result, &due, REST_WORDS)
}

fn characters_to_list_2<'p>(p: &'p Process, [data, encoding]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(latin1) = is_latin1(encoding) else {
        return Err(trap(am::characters_to_list_int, data, encoding));
    };
    if let Some(result) = p.pay_on(LISTING_WORDS) {
        return result;
    }
    let mut characters = 0;
    let build = |text: String| {
        characters = text.chars().count();
        p.string(&text)
    };
    let (result, due) = convert(p, data, latin1, build)?;
    let listing = Due::new(characters, UNITS_PER_SLICE);
    if data.as_bits().is_some() && !latin1 {
        // Its characters are counted, no bytes.
        return p.pay(result, &[listing, listing], LISTING_WORDS);
    }
    p.pay(result, &[due[0], due[1], listing], LISTING_WORDS)
}
