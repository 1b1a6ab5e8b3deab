//! The BIFs of `re`: regular expressions, implemented with `regex`.
//!
//! The BIFs trap to OTP's `re.erl` for what it does itself (global matches, conversion of Unicode), as in ERTS. Source
//! of options, their order and the errors: `erl_bif_re.c`, OTP 29.

use super::{BifResult, Control, Raise, badarg, bifs};
use crate::code::entry::export;
use crate::hash::checksum::crc32;
use crate::heap::MagicBinary;
use crate::process::{Process, refs};
use crate::regex::export::{Imported, from_bytes, to_bytes};
use crate::regex::{
    Bsr, CompileFlags, CompileOptions, Group, MatchError, MatchFlags, MatchOptions, Newline, Regex,
    version,
};
use crate::term::{Atom, Term, View, am};
use crate::value::iolist;

bifs! {
    all own;
    bif re:"version"/0 => version_0;
    bif re:"compile"/1 => compile_1;
    bif re:"compile"/2 => compile_2;
    bif re:"run"/2 => run_2;
    bif re:"run"/3 => run_3;
    bif re:"internal_run"/4 => internal_run_4;
    bif re:"inspect"/2 => inspect_2;
    bif re:"import"/1 => import_1;
}

/// Options of both `compile/2` and `run/3`.
#[derive(Default)]
struct ReOptions<'p> {
    compile: CompileOptions,
    matching: MatchOptions,
    /// One that only `compile/2` takes was given.
    only_compile: bool,
    /// One that only `run/3` takes was given.
    only_run: bool,
    unicode: bool,
    global: bool,
    report_errors: bool,
    export: bool,
    /// What to capture, and as what.
    capture: Option<(Term<'p>, Term<'p>)>,
}

fn bad_option() -> Raise<'static> {
    Raise::ErrorCause(am::badarg.term(), am::badopt.term())
}

fn non_negative(term: Term<'_>) -> Option<u32> {
    let value = i32::try_from(term.as_small()?).ok()?;
    u32::try_from(value).ok()
}

fn newline(term: Term<'_>) -> Option<Newline> {
    Some(match term.as_atom()? {
        am::cr => Newline::Cr,
        am::crlf => Newline::Crlf,
        am::lf => Newline::Lf,
        am::nul => Newline::Nul,
        am::anycrlf => Newline::AnyCrlf,
        am::any => Newline::Any,
        _ => return None,
    })
}

/// The flag of `compile/2` that an atom stands for.
fn compile_flag(name: Atom) -> Option<CompileFlags> {
    Some(match name {
        am::no_start_optimize => CompileFlags::NO_START_OPTIMIZE,
        am::caseless => CompileFlags::CASELESS,
        am::dollar_endonly => CompileFlags::DOLLAR_ENDONLY,
        am::dotall => CompileFlags::DOTALL,
        am::extended => CompileFlags::EXTENDED,
        am::firstline => CompileFlags::FIRSTLINE,
        am::multiline => CompileFlags::MULTILINE,
        am::no_auto_capture => CompileFlags::NO_AUTO_CAPTURE,
        am::dupnames => CompileFlags::DUPNAMES,
        am::ungreedy => CompileFlags::UNGREEDY,
        am::ucp => CompileFlags::UCP,
        am::never_utf => CompileFlags::NEVER_UTF,
        am::unicode => CompileFlags::UNICODE,
        _ => return None,
    })
}

/// The flag of `run/3` that an atom stands for.
fn match_flag(name: Atom) -> Option<MatchFlags> {
    Some(match name {
        am::notempty => MatchFlags::NOTEMPTY,
        am::notempty_atstart => MatchFlags::NOTEMPTY_ATSTART,
        am::notbol => MatchFlags::NOTBOL,
        am::noteol => MatchFlags::NOTEOL,
        _ => return None,
    })
}

impl<'p> ReOptions<'p> {
    fn parse(list: Term<'p>) -> Option<ReOptions<'p>> {
        let mut options = ReOptions::default();
        for option in list.list_iter() {
            let option = option.ok()?;
            match option.as_tuple().map(|tuple| tuple.elements()) {
                Some([name, values, kind]) if *name == am::capture => {
                    options.capture = Some((*values, *kind));
                    options.only_run = true;
                }
                Some([name, value]) => options.pair(name.as_atom()?, *value)?,
                Some(_) => return None,
                None => options.flag(option.as_atom()?)?,
            }
        }
        Some(options)
    }

    fn pair(&mut self, name: Atom, value: Term<'p>) -> Option<()> {
        match name {
            am::capture => self.capture = Some((value, am::index.term())),
            am::offset => self.matching.offset = non_negative(value)? as usize,
            am::match_limit => self.matching.match_limit = Some(non_negative(value)?),
            am::match_limit_recursion => {
                self.matching.match_limit_recursion = Some(non_negative(value)?);
            }
            am::newline => {
                self.compile.newline = Some(newline(value)?);
                return Some(());
            }
            _ => return None,
        }
        self.only_run = true;
        Some(())
    }

    fn flag(&mut self, name: Atom) -> Option<()> {
        if let Some(flag) = compile_flag(name) {
            self.compile.flags |= flag;
            self.only_compile = true;
            self.unicode |= name == am::unicode;
            return Some(());
        }
        if let Some(flag) = match_flag(name) {
            self.matching.flags |= flag;
            self.only_run = true;
            return Some(());
        }
        match name {
            am::anchored => {
                self.compile.flags |= CompileFlags::ANCHORED;
                self.matching.flags |= MatchFlags::ANCHORED;
            }
            am::report_errors => (self.report_errors, self.only_run) = (true, true),
            am::global => (self.global, self.only_run) = (true, true),
            am::bsr_anycrlf => self.compile.bsr = Some(Bsr::AnyCrlf),
            am::bsr_unicode => self.compile.bsr = Some(Bsr::Unicode),
            am::export => (self.export, self.only_compile) = (true, true),
            _ => return None,
        }
        Some(())
    }
}

/// A compiled pattern behind a reference.
struct Pattern(Regex);

fn is_bitstring(term: Term<'_>) -> bool {
    term.as_bits().is_some()
}

fn bytes(term: Term<'_>) -> Result<Vec<u8>, Raise<'static>> {
    iolist::to_vec(term).map_err(|_| badarg())
}

fn trap<'p>(function: Atom, args: &[Term<'p>]) -> Control<'p> {
    let export = export(am::re, function, args.len() as u8);
    Control::Trap(export, args.to_vec())
}

/// `{re_pattern, Groups, Unicode, UsesCrlf, Reference}`.
fn pattern_term(p: &Process, regex: Regex, unicode: bool) -> Term<'_> {
    let groups = p.unsigned(regex.capture_count().into());
    let flag = |flag: bool| Term::small(i64::from(flag));
    let crlf = flag(regex.uses_crlf());
    let magic = MagicBinary::new(refs::make_ref(), Box::new(Pattern(regex)));
    let reference = p.magic_reference(magic);
    p.tuple(&[
        am::re_pattern.term(),
        groups,
        flag(unicode),
        crlf,
        reference,
    ])
}

fn version_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.binary(version().as_bytes()))
}

/// What an exported pattern starts with.
const EXPORT_TITLE: &[u8; 8] = b"re-PCRE2";
/// The version of its code's form.
const EXPORT_VERSION: u8 = 1;

/// `{re_exported_pattern, Header, Source, Options, Code}`.
fn exported<'p>(
    p: &'p Process,
    source: &[u8],
    list: Term<'p>,
    options: &ReOptions<'p>,
) -> Term<'p> {
    let code = to_bytes(source, options.compile);
    let mut header = EXPORT_TITLE.to_vec();
    header.extend(crc32(0, &code).to_be_bytes());
    header.extend([EXPORT_VERSION, u8::from(options.unicode)]);
    p.tuple(&[
        am::re_exported_pattern.term(),
        p.binary(&header),
        p.binary(source),
        list,
        p.binary(&code),
    ])
}

fn compile<'p>(p: &'p Process, source: Term<'p>, list: Term<'p>, import: bool) -> BifResult<'p> {
    let options = ReOptions::parse(list).filter(|options| !options.only_run);
    let options = options.ok_or_else(bad_option)?;
    if options.unicode && !is_bitstring(source) {
        return Err(trap(am::ucompile, &[source, list]).into());
    }
    let source = bytes(source)?;
    match Regex::compile(&source, options.compile) {
        Ok(regex) if import => Ok(pattern_term(p, regex, options.unicode)),
        Ok(_) if options.export => {
            let pattern = exported(p, &source, list, &options);
            Ok(p.tuple(&[am::ok.term(), pattern]))
        }
        Ok(regex) => Ok(p.tuple(&[am::ok.term(), pattern_term(p, regex, options.unicode)])),
        Err(_) if import => Err(badarg().into()),
        Err(error) => {
            let reason = p.tuple(&[p.string(&error.message), p.unsigned(error.offset as u64)]);
            Ok(p.tuple(&[am::error.term(), reason]))
        }
    }
}

fn compile_1<'p>(p: &'p Process, [source]: [Term<'p>; 1]) -> BifResult<'p> {
    compile(p, source, Term::NIL, false)
}

fn compile_2<'p>(p: &'p Process, [source, options]: [Term<'p>; 2]) -> BifResult<'p> {
    compile(p, source, options, false)
}

fn import_1<'p>(p: &'p Process, [pattern]: [Term<'p>; 1]) -> BifResult<'p> {
    let tuple = pattern.as_tuple().ok_or_else(badarg)?;
    let [name, header, source, list, code] = tuple.elements() else {
        return Err(badarg().into());
    };
    let header = header.as_binary().map(|header| header.to_vec());
    let header = header.filter(|h| h.len() >= 14 && h.starts_with(EXPORT_TITLE));
    let header = header.ok_or_else(badarg)?;
    if !(*name == am::re_exported_pattern) {
        return Err(badarg().into());
    }
    if header[12] == EXPORT_VERSION {
        let code = code.as_binary().ok_or_else(badarg)?.bytes();
        if crc32(0, &code).to_be_bytes() != header[8..12] {
            return Err(badarg().into());
        }
        match from_bytes(&code) {
            Imported::Pattern(source, options) => {
                let regex = Regex::compile(source, options).map_err(|_| badarg())?;
                return Ok(pattern_term(p, regex, header[13] != 0));
            }
            Imported::Damaged => return Err(badarg().into()),
            Imported::Foreign => {}
        }
    }
    if !is_bitstring(*source) {
        return Err(badarg().into());
    }
    compile(p, *source, *list, true)
}

/// The parts of a compiled pattern's term: whether it is for Unicode, and the pattern.
fn compiled<'p>(pattern: Term<'p>) -> Option<(bool, &'p Regex)> {
    match pattern.as_tuple()?.elements() {
        [name, groups, unicode, crlf, reference] if *name == am::re_pattern => {
            groups.as_small()?;
            crlf.as_small()?;
            let Pattern(regex) = reference.as_ref()?.magic()?.get()?;
            Some((unicode.as_small()? != 0, regex))
        }
        _ => None,
    }
}

fn inspect_2<'p>(p: &'p Process, [pattern, item]: [Term<'p>; 2]) -> BifResult<'p> {
    let (_, regex) = compiled(pattern).ok_or_else(badarg)?;
    if !(item == am::namelist) {
        return Err(badarg().into());
    }
    let names: Vec<_> = regex.names().map(|name| p.binary(name)).collect();
    Ok(p.tuple(&[item, p.list(&names)]))
}

fn run<'p>(p: &'p Process, subject: Term<'p>, pattern: Term<'p>, list: Term<'p>) -> BifResult<'p> {
    let options = ReOptions::parse(list).filter(|options| !options.export);
    let options = options.ok_or_else(bad_option)?;
    // Lists of code points are made by `re.erl`.
    let list_capture = options.capture.is_some_and(|(_, kind)| kind == am::list) && !options.global;
    if pattern.as_tuple().is_some_and(|tuple| tuple.arity() == 5) {
        let (unicode, regex) = compiled(pattern)
            .filter(|_| !options.only_compile)
            .ok_or_else(badarg)?;
        if unicode && (!is_bitstring(subject) || list_capture) {
            return Err(trap(am::urun, &[subject, pattern, list]).into());
        }
        if options.global {
            let rest = p.tuple(&[list, am::false_.term()]);
            return Err(trap(am::grun, &[subject, pattern, rest]).into());
        }
        if !regex.agrees(options.compile.newline, options.compile.bsr) {
            return Err(badarg().into());
        }
        return matched(p, regex, subject, &options);
    }
    if !is_bitstring(pattern) && pattern.as_cons().is_none() && !pattern.is_nil() {
        return Err(badarg().into());
    }
    if options.unicode && (!is_bitstring(pattern) || !is_bitstring(subject) || list_capture) {
        return Err(trap(am::urun, &[subject, pattern, list]).into());
    }
    let regex = match Regex::compile(&bytes(pattern)?, options.compile) {
        Ok(regex) => regex,
        Err(error) if options.report_errors => {
            let reason = p.tuple(&[p.string(&error.message), p.unsigned(error.offset as u64)]);
            let reason = p.tuple(&[am::compile.term(), reason]);
            return Ok(p.tuple(&[am::error.term(), reason]));
        }
        Err(_) => return Err(badarg().into()),
    };
    if options.global {
        let precompiled = pattern_term(p, regex, options.unicode);
        let rest = p.tuple(&[list, Term::bool(options.only_compile), pattern]);
        return Err(trap(am::grun, &[subject, precompiled, rest]).into());
    }
    matched(p, &regex, subject, &options)
}

/// The parts of a match that are captured.
enum Capture {
    /// Only whether it matches.
    Nothing,
    /// All groups from this one on, as far as any took part.
    From(usize),
    /// These: each the first of its numbers that took part.
    These(Vec<Vec<usize>>),
}

/// The groups that an element of a capture list names.
fn groups_of(regex: &Regex, value: Term<'_>) -> Option<Vec<usize>> {
    Some(match value.view() {
        View::Small(number) => {
            i32::try_from(number).ok()?;
            usize::try_from(number).into_iter().collect()
        }
        View::Atom(name) => regex.numbers_of(name.name().as_bytes()).collect(),
        View::Bits(_) | View::Cons(_) => {
            let name = iolist::to_vec(value).ok()?;
            regex.numbers_of(&name).collect()
        }
        _ => return None,
    })
}

fn capture(regex: &Regex, values: Term<'_>) -> Option<Capture> {
    Some(match values.view() {
        View::Atom(am::all) => Capture::From(0),
        View::Atom(am::none) | View::Nil => Capture::Nothing,
        View::Atom(am::all_but_first) => Capture::From(1),
        View::Atom(am::first) => Capture::These(vec![vec![0]]),
        View::Atom(am::all_names) => {
            let names = regex.names();
            let groups: Vec<Vec<usize>> =
                names.map(|name| regex.numbers_of(name).collect()).collect();
            if groups.is_empty() {
                Capture::Nothing
            } else {
                Capture::These(groups)
            }
        }
        View::Cons(_) => {
            let groups = values
                .list_iter()
                .map(|value| groups_of(regex, value.ok()?));
            Capture::These(groups.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Bytes passed for one reduction.
const BYTES_PER_RED: usize = 127;

fn matched<'p>(
    p: &'p Process,
    regex: &Regex,
    subject: Term<'p>,
    options: &ReOptions<'p>,
) -> BifResult<'p> {
    let default = (am::all.term(), am::index.term());
    let (values, kind) = options.capture.unwrap_or(default);
    let kind = kind.as_atom().ok_or_else(badarg)?;
    if ![am::index, am::list, am::binary].contains(&kind) {
        return Err(badarg().into());
    }
    let capture = capture(regex, values).ok_or_else(badarg)?;
    let copy;
    let text: &[u8] = match subject.as_binary().and_then(|bits| bits.as_bytes()) {
        Some(bytes) => bytes,
        None => {
            copy = bytes(subject)?;
            &copy
        }
    };
    let outcome = regex.run(text, options.matching);
    // How far it has looked: ERTS counts the steps of its own matcher, which are not known here.
    let end = match &outcome {
        Ok(Some(groups)) => groups.first().copied().flatten().map_or(0, |whole| whole.1),
        _ => text.len(),
    };
    let passed = end.saturating_sub(options.matching.offset);
    p.bump_reds((passed / BYTES_PER_RED) as i64);
    let groups = match outcome {
        Ok(Some(groups)) => groups,
        Ok(None) => return Ok(am::nomatch.term()),
        Err(MatchError::MatchLimit) => return Ok(limited(p, options, am::match_limit)),
        Err(MatchError::MatchLimitRecursion) => {
            return Ok(limited(p, options, am::match_limit_recursion));
        }
        Err(MatchError::BadArg) => return Err(badarg().into()),
        Err(MatchError::Internal(_)) => return Err(am::internal_error.into()),
    };
    let group = |numbers: &[usize]| {
        numbers
            .iter()
            .find_map(|number| groups.get(*number).copied().flatten())
    };
    let captured: Vec<Group> = match &capture {
        Capture::Nothing => return Ok(am::match_.term()),
        Capture::From(first) => groups.iter().skip(*first).copied().collect(),
        Capture::These(these) => these.iter().map(|numbers| group(numbers)).collect(),
    };
    let captured = captured.into_iter();
    let captured: Vec<_> = captured
        .map(|group| shown(p, subject, text, kind, group))
        .collect();
    Ok(p.tuple(&[am::match_.term(), p.list(&captured)]))
}

fn limited<'p>(p: &'p Process, options: &ReOptions<'p>, limit: Atom) -> Term<'p> {
    if options.report_errors {
        p.tuple(&[am::error.term(), limit.term()])
    } else {
        am::nomatch.term()
    }
}

/// A group as it was asked for.
fn shown<'p>(p: &'p Process, subject: Term<'p>, text: &[u8], kind: Atom, group: Group) -> Term<'p> {
    let (start, end) = group.unwrap_or((0, 0));
    match kind {
        am::index => {
            let at = group.map_or(-1, |(start, _)| start as i64);
            p.tuple(&[p.integer(at), p.unsigned((end - start) as u64)])
        }
        am::list => p.byte_list(&text[start..end]),
        _ => match subject.as_binary() {
            Some(bits) => p.sub_bits(bits, start * 8, end * 8),
            None => p.binary(&text[start..end]),
        },
    }
}

fn run_2<'p>(p: &'p Process, [subject, pattern]: [Term<'p>; 2]) -> BifResult<'p> {
    run(p, subject, pattern, Term::NIL)
}

fn run_3<'p>(p: &'p Process, [subject, pattern, options]: [Term<'p>; 3]) -> BifResult<'p> {
    run(p, subject, pattern, options)
}

/// As `run/3`; the flag says whether the subject is new, or was checked to be UTF-8 before.
fn internal_run_4<'p>(
    p: &'p Process,
    [subject, pattern, options, first]: [Term<'p>; 4],
) -> BifResult<'p> {
    first.as_bool().ok_or_else(badarg)?;
    run(p, subject, pattern, options)
}
