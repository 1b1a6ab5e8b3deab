//! The BIFs that search in binaries: `binary:match`, `matches`, `split`, `compile_pattern`.
//!
//! Where several patterns match, the match that starts first wins, and of those the longest. Further matches start
//! where the one before ended. One pattern is searched for after Boyer and Moore, and several by an automaton. A
//! compiled pattern shows ERTS's names for the two kinds, `bm` and `ac`.
//! Source of options and errors: `erl_bif_binary.c`, OTP 29.

mod moore;

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use self::moore::{Moore, Sought};
use super::binary::part_range;
use super::{BifResult, Leave, Raise, badarg, bifs, system_limit};
use crate::heap::MagicBinary;
use crate::process::{Process, refs, work};
use crate::term::{Atom, Bits, Term, View, am};

bifs! {
    all own;
    bif binary:"compile_pattern"/1 => compile_pattern_1;
    bif binary:"match"/2 => match_2;
    bif binary:"match"/3 => match_3;
    bif binary:"matches"/2 => matches_2;
    bif binary:"matches"/3 => matches_3;
    bif binary:"split"/2 => split_2;
    bif binary:"split"/3 => split_3;
}

/// The pattern that is searched for.
#[expect(
    clippy::large_enum_variant,
    reason = "few there are, and each is used at once"
)]
enum Pattern {
    One(Moore),
    Several(Box<AhoCorasick>),
}

/// Steps of a search for one reduction.
const STEPS_PER_RED: usize = 10;

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
            return Ok(Pattern::One(Moore::new(needle)));
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

    /// Searches on; `steps` is what may be done, and becomes what is left of it. Is it done?
    fn search(
        &self,
        haystack: &[u8],
        search: &mut Search,
        global: bool,
        steps: &mut usize,
    ) -> bool {
        match self {
            Pattern::One(moore) => search.for_one(moore, haystack, global, steps),
            Pattern::Several(automaton) => search.for_several(automaton, haystack, global, steps),
        }
    }
}

/// How far a search has come.
struct Search {
    /// Where it goes on.
    at: usize,
    /// Where it ends.
    end: usize,
    /// Nothing is compared with what stands at `at` yet.
    after_match: bool,
    found: Vec<Range<usize>>,
}

impl Search {
    fn for_one(&mut self, moore: &Moore, haystack: &[u8], global: bool, steps: &mut usize) -> bool {
        let haystack = &haystack[..self.end];
        loop {
            match moore.search(haystack, &mut self.at, self.after_match, steps) {
                Sought::Found(at) => {
                    self.found.push(moore.range(at));
                    self.at = at + moore.len();
                    self.after_match = true;
                    if !global {
                        return true;
                    }
                }
                Sought::Nothing => return true,
                Sought::Paused => {
                    self.after_match = true;
                    return false;
                }
            }
        }
    }

    /// Each byte is a step. A part of the haystack is searched at a time, with as much behind it as the longest
    /// pattern may need that begins in it.
    fn for_several(
        &mut self,
        automaton: &AhoCorasick,
        haystack: &[u8],
        global: bool,
        steps: &mut usize,
    ) -> bool {
        let stop = self.end.min(self.at.saturating_add(*steps - 1));
        let behind = automaton.max_pattern_len() - 1;
        while self.at < stop {
            let window = self.at..self.end.min(stop + behind);
            let found = automaton.find(Input::new(haystack).range(window));
            let Some(found) = found.filter(|found| found.start() < stop) else {
                break;
            };
            self.found.push(found.range());
            let passed = found.end() - self.at;
            *steps = (*steps).saturating_sub(passed).max(1);
            self.at = found.end();
            if !global {
                // It goes on until no longer match can begin where this one does.
                *steps = (*steps - usize::from(self.at < self.end)).max(1);
                return true;
            }
        }
        *steps = (*steps).saturating_sub(stop.saturating_sub(self.at)).max(1);
        self.at = self.at.max(stop);
        self.at >= self.end
    }
}

/// A search in the making, or its result.
struct Searching {
    search: Search,
    is_found: bool,
    /// Steps that making the result is still to take.
    result_steps: usize,
}

work! { Searching without terms shown as |_| Some((am::binary_find_trap, 3)) }

/// All that matches of `pattern` in `scope`, or with no `global` the first. `steps_of_result` is what each of
/// them takes in the result. The first pause takes the rest of the slice; the others cost nothing. Source:
/// `do_binary_find()`.
fn found<'p>(
    p: &'p Process,
    haystack: Bits<'p>,
    pattern: &Given<'_>,
    (scope, global): (Range<usize>, bool),
    steps_of_result: usize,
) -> Result<Vec<Range<usize>>, Leave<'static>> {
    let begun = p.take_work::<Searching>().map(|work| *work);
    let is_first_slice = begun.is_none();
    let mut work = begun.unwrap_or(Searching {
        search: Search {
            at: scope.start,
            end: scope.end,
            after_match: true,
            found: Vec::new(),
        },
        is_found: false,
        result_steps: 0,
    });
    let budget = (p.reds_left() * STEPS_PER_RED).max(1);
    let mut steps = budget;
    let pause = |work| {
        if !is_first_slice {
            p.give_up_slice();
            return Err(p.put_off(work).into());
        }
        p.trap_state();
        if let Given::New(_) = pattern {
            p.trap_state();
        }
        Err(p.yield_with(work).into())
    };
    if !work.is_found {
        let bytes = haystack.bytes();
        work.is_found = pattern.search(&bytes, &mut work.search, global, &mut steps);
        if !work.is_found {
            return pause(work);
        }
        if global {
            work.result_steps = steps_of_result * work.search.found.len();
        }
    }
    if work.result_steps >= steps {
        work.result_steps -= steps - 1;
        return pause(work);
    }
    steps -= work.result_steps;
    p.bump_reds(((budget - steps) / STEPS_PER_RED) as i64);
    Ok(work.search.found)
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
struct SearchOptions {
    scope: Range<usize>,
    global: bool,
    trim: bool,
    trim_all: bool,
}

impl SearchOptions {
    /// Reads a list, whose tail is not looked at; `split` takes more than the scope.
    fn parse(list: Term<'_>, size: usize, of_split: bool) -> Result<SearchOptions, Raise<'static>> {
        let mut options = SearchOptions {
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
    let options = SearchOptions::parse(options, bits.byte_len(), false)?;
    let found = found(p, bits, &pattern(wanted)?, (options.scope, false), 0)?;
    Ok(found
        .first()
        .map_or(am::nomatch.term(), |found| part(p, found)))
}

fn match_2<'p>(p: &'p Process, [subject, wanted]: [Term<'p>; 2]) -> BifResult<'p> {
    match_3(p, [subject, wanted, Term::NIL])
}

fn matches_3<'p>(p: &'p Process, [subject, wanted, options]: [Term<'p>; 3]) -> BifResult<'p> {
    /// Its numbers, and its tuple.
    const STEPS: usize = 2;
    let bits = subject.as_binary().ok_or_else(badarg)?;
    let options = SearchOptions::parse(options, bits.byte_len(), false)?;
    let found = found(p, bits, &pattern(wanted)?, (options.scope, true), STEPS)?;
    let found = found.iter().rev();
    Ok(found.fold(Term::NIL, |rest, found| p.cons(part(p, found), rest)))
}

fn matches_2<'p>(p: &'p Process, [subject, wanted]: [Term<'p>; 2]) -> BifResult<'p> {
    matches_3(p, [subject, wanted, Term::NIL])
}

fn split_3<'p>(p: &'p Process, [subject, wanted, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = subject.as_binary().ok_or_else(badarg)?;
    let options = SearchOptions::parse(options, bits.byte_len(), true)?;
    let scope = (options.scope.clone(), options.global);
    let found = found(p, bits, &pattern(wanted)?, scope, 1)?;
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
    options: &SearchOptions,
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
