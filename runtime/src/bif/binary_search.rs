//! Searching in binaries: `binary:match`, `matches`, `split`, `compile_pattern`.
//!
//! Where several patterns match, the match that starts first wins, and of those the longest; further
//! matches start where the one before ended. One pattern is searched for by `memmem`, several by an
//! automaton; ERTS's names for the two kinds, `bm` and `ac`, are what a compiled pattern shows.
//! Source of options and errors: `erl_bif_binary.c`, OTP 29.

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use memchr::memmem::Finder;

use super::binary::part_range;
use super::{BifResult, Raise, badarg, bifs, system_limit};
use crate::heap::MagicBinary;
use crate::process::{Process, refs};
use crate::term::{Atom, Bits, Term, View, am};

bifs! {
    bif binary:"compile_pattern"/1 => compile_pattern_1;
    bif binary:"match"/2 => match_2;
    bif binary:"match"/3 => match_3;
    bif binary:"matches"/2 => matches_2;
    bif binary:"matches"/3 => matches_3;
    bif binary:"split"/2 => split_2;
    bif binary:"split"/3 => split_3;
}

/// What is searched for.
#[expect(
    clippy::large_enum_variant,
    reason = "few there are, and each is used at once"
)]
enum Pattern {
    One(Finder<'static>),
    Several(Box<AhoCorasick>),
}

/// Steps of a search for one reduction.
const STEPS_PER_RED: usize = 10;
/// Bytes that one step of a search for a single byte passes.
const BYTES_PER_STEP: usize = 8;

/// The bytes of a binary that is not empty.
fn needle(term: Term<'_>) -> Result<Vec<u8>, Raise<'static>> {
    let bits = term.as_binary().filter(|bits| bits.bit_len() > 0);
    Ok(bits.ok_or_else(badarg)?.to_vec())
}

impl Pattern {
    /// A binary, or a list of at least one.
    fn compile(term: Term<'_>) -> Result<Pattern, Raise<'static>> {
        let mut needles = Vec::new();
        match term.view() {
            View::Cons(_) => {
                for element in term.list_iter() {
                    needles.push(needle(element.map_err(|_| badarg())?)?);
                }
            }
            _ => needles.push(needle(term)?),
        }
        if let [needle] = &needles[..] {
            return Ok(Pattern::One(Finder::new(needle).into_owned()));
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&needles)
            .map_err(|_| system_limit())?;
        Ok(Pattern::Several(Box::new(automaton)))
    }

    fn tag(&self) -> Atom {
        match self {
            Pattern::One(_) => am::bm,
            Pattern::Several(_) => am::ac,
        }
    }

    /// The first match in `haystack[scope]`.
    fn find(&self, haystack: &[u8], scope: Range<usize>) -> Option<Range<usize>> {
        match self {
            Pattern::One(finder) => {
                let at = scope.start + finder.find(&haystack[scope])?;
                Some(at..at + finder.needle().len())
            }
            Pattern::Several(automaton) => {
                let found = automaton.find(Input::new(haystack).range(scope))?;
                Some(found.range())
            }
        }
    }

    /// All matches in `haystack[scope]`, none of which overlap.
    fn find_all(&self, haystack: &[u8], scope: Range<usize>) -> Vec<Range<usize>> {
        match self {
            Pattern::One(finder) => {
                let len = finder.needle().len();
                let found = finder.find_iter(&haystack[scope.clone()]);
                found
                    .map(|at| scope.start + at..scope.start + at + len)
                    .collect()
            }
            Pattern::Several(automaton) => {
                let found = automaton.find_iter(Input::new(haystack).range(scope));
                found.map(|found| found.range()).collect()
            }
        }
    }

    /// Counts the search of so many bytes.
    fn bump(&self, p: &Process, bytes: usize) {
        let steps = match self {
            Pattern::One(finder) if finder.needle().len() == 1 => bytes / BYTES_PER_STEP,
            Pattern::One(finder) => bytes / finder.needle().len(),
            Pattern::Several(_) => bytes,
        };
        p.bump_reds((steps / STEPS_PER_RED) as i64);
    }
}

/// A pattern given in a call: compiled before, or now.
#[expect(clippy::large_enum_variant, reason = "lives as long as one call")]
enum Given<'p> {
    Compiled(&'p Pattern),
    New(Pattern),
}

impl std::ops::Deref for Given<'_> {
    type Target = Pattern;
    fn deref(&self) -> &Pattern {
        match self {
            Given::Compiled(pattern) => pattern,
            Given::New(pattern) => pattern,
        }
    }
}

fn pattern(term: Term<'_>) -> Result<Given<'_>, Raise<'static>> {
    let Some(tuple) = term.as_tuple() else {
        return Ok(Given::New(Pattern::compile(term)?));
    };
    let [tag, reference] = *tuple.elements() else {
        return Err(badarg());
    };
    let compiled: &Pattern = reference
        .as_ref()
        .and_then(|r| r.magic())
        .and_then(MagicBinary::get)
        .ok_or_else(badarg)?;
    if tag != compiled.tag() {
        return Err(badarg());
    }
    Ok(Given::Compiled(compiled))
}

/// Options of `match`, `matches` and `split`.
struct Options {
    scope: Range<usize>,
    global: bool,
    trim: bool,
    trim_all: bool,
}

impl Options {
    /// Reads a list, whose tail is not looked at; `split` takes more than the scope.
    fn parse(list: Term<'_>, size: usize, of_split: bool) -> Result<Options, Raise<'static>> {
        let mut options = Options {
            scope: 0..size,
            global: false,
            trim: false,
            trim_all: false,
        };
        if !matches!(list.view(), View::Nil | View::Cons(_)) {
            return Err(badarg());
        }
        for option in list.list_iter().map_while(Result::ok) {
            match option.view() {
                View::Atom(am::global) if of_split => options.global = true,
                View::Atom(am::trim) if of_split => options.trim = true,
                View::Atom(am::trim_all) if of_split => options.trim_all = true,
                View::Tuple(tuple) => options.scope = scope(tuple.elements(), size)?,
                _ => return Err(badarg()),
            }
        }
        Ok(options)
    }

    fn trims(&self) -> bool {
        self.trim || self.trim_all
    }
}

/// The bytes that `{scope, {Start, Length}}` names.
fn scope(option: &[Term<'_>], size: usize) -> Result<Range<usize>, Raise<'static>> {
    let part = match option {
        [name, part] if *name == am::scope => part.as_tuple(),
        _ => None,
    };
    match part.map(|part| part.elements()) {
        Some([start, length]) => {
            let (from, to) = part_range(size, *start, *length)?;
            Ok(from..to)
        }
        _ => Err(badarg()),
    }
}

fn compile_pattern_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let pattern = Pattern::compile(a)?;
    let tag = pattern.tag().term();
    let magic: Arc<MagicBinary> = MagicBinary::new(refs::make_ref(), Box::new(pattern));
    Ok(p.tuple(&[tag, p.magic_reference(magic)]))
}

/// `{Start, Length}`.
fn part<'p>(p: &'p Process, found: &Range<usize>) -> Term<'p> {
    p.tuple(&[
        p.unsigned(found.start as u64),
        p.unsigned(found.len() as u64),
    ])
}

fn match_3<'p>(p: &'p Process, [subject, wanted, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = subject.as_binary().ok_or_else(badarg)?;
    let options = Options::parse(options, bits.byte_len(), false)?;
    let pattern = pattern(wanted)?;
    let found = pattern.find(&bits.bytes(), options.scope.clone());
    let passed = found.as_ref().map_or(options.scope.end, |found| found.end);
    pattern.bump(p, passed - options.scope.start);
    Ok(found.map_or(am::nomatch.term(), |found| part(p, &found)))
}

fn match_2<'p>(p: &'p Process, [subject, wanted]: [Term<'p>; 2]) -> BifResult<'p> {
    match_3(p, [subject, wanted, Term::NIL])
}

fn matches_3<'p>(p: &'p Process, [subject, wanted, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = subject.as_binary().ok_or_else(badarg)?;
    let options = Options::parse(options, bits.byte_len(), false)?;
    let pattern = pattern(wanted)?;
    let found = pattern.find_all(&bits.bytes(), options.scope.clone());
    pattern.bump(p, options.scope.len());
    let found = found.iter().rev();
    Ok(found.fold(Term::NIL, |rest, found| p.cons(part(p, found), rest)))
}

fn matches_2<'p>(p: &'p Process, [subject, wanted]: [Term<'p>; 2]) -> BifResult<'p> {
    matches_3(p, [subject, wanted, Term::NIL])
}

fn split_3<'p>(p: &'p Process, [subject, wanted, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = subject.as_binary().ok_or_else(badarg)?;
    let options = Options::parse(options, bits.byte_len(), true)?;
    let pattern = pattern(wanted)?;
    let bytes = bits.bytes();
    let found = if options.global {
        pattern.find_all(&bytes, options.scope.clone())
    } else {
        Vec::from_iter(pattern.find(&bytes, options.scope.clone()))
    };
    pattern.bump(p, options.scope.len());
    if found.is_empty() {
        if options.trims() && bits.bit_len() == 0 {
            return Ok(Term::NIL);
        }
        return Ok(p.cons(subject, Term::NIL));
    }
    Ok(pieces(p, bits, &found, &options))
}

/// What is between the matches. `trim` leaves out empty pieces at the end, `trim_all` all empty ones.
fn pieces<'p>(
    p: &'p Process,
    bits: Bits<'p>,
    found: &[Range<usize>],
    options: &Options,
) -> Term<'p> {
    let mut end = bits.byte_len();
    let mut at_end = true;
    let mut list = Term::NIL;
    let gaps = found.iter().rev().map(|found| (found.end, found.start));
    for (start, next_end) in gaps.chain([(0, 0)]) {
        let dropped = start == end && (options.trim_all || (options.trim && at_end));
        if !dropped {
            list = p.cons(p.sub_bits(bits, start * 8, end * 8), list);
            at_end = false;
        }
        end = next_end;
    }
    list
}

fn split_2<'p>(p: &'p Process, [subject, wanted]: [Term<'p>; 2]) -> BifResult<'p> {
    split_3(p, [subject, wanted, Term::NIL])
}
