//! The BIFs that convert atoms, numbers, pids, ports, references and funs to text, and back.

use std::sync::{Arc, OnceLock};

use super::{BifResult, GuardResult, Raise, badarg, bifs, system_limit};
use crate::dist::entry::DistEntry;
use crate::external::external_ref;
use crate::heap::{LiteralCell, Node};
use crate::num::float::{FloatFormat, format_float, parse_float, scan_float};
use crate::num::limbs::{IntRef, LimbDigits};
use crate::process::Process;
use crate::term::atom::MAX_ATOM_CHARS;
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Port, Term, View, am, atom, tag};
use crate::text::{display, unicode};

bifs! {
    all own;
    bif erlang:"atom_to_list"/1 => atom_to_list_1;
    bif erlang:"atom_to_binary"/2 => atom_to_binary_2;
    ubif erlang:"list_to_atom"/1 => list_to_atom_1;
    ubif erlang:"list_to_existing_atom"/1 => list_to_existing_atom_1;
    ubif erlang:"binary_to_atom"/2 => binary_to_atom_2;
    ubif erlang:"binary_to_existing_atom"/2 => binary_to_existing_atom_2;
    bif erlang:"integer_to_list"/1 => integer_to_list_1;
    bif erlang:"integer_to_list"/2 => integer_to_list_2;
    bif erlang:"integer_to_binary"/1 => integer_to_binary_1;
    bif erlang:"integer_to_binary"/2 => integer_to_binary_2;
    bif erts_internal:"list_to_integer"/2 => list_to_integer_2;
    bif erts_internal:"binary_to_integer"/2 => binary_to_integer_2;
    bif erlang:"float_to_list"/1 => float_to_list_1;
    bif erlang:"float_to_list"/2 => float_to_list_2;
    bif erlang:"float_to_binary"/1 => float_to_binary_1;
    bif erlang:"float_to_binary"/2 => float_to_binary_2;
    bif erlang:"list_to_float"/1 => list_to_float_1;
    bif erlang:"binary_to_float"/1 => binary_to_float_1;
    bif string:"list_to_float"/1 => string_list_to_float_1;
    bif erlang:"pid_to_list"/1 => pid_to_list_1;
    bif erlang:"port_to_list"/1 => port_to_list_1;
    bif erlang:"ref_to_list"/1 => ref_to_list_1;
    bif erlang:"fun_to_list"/1 => fun_to_list_1;
    bif erlang:"list_to_pid"/1 => list_to_pid_1;
    bif erlang:"list_to_port"/1 => list_to_port_1;
    bif erlang:"list_to_ref"/1 => list_to_ref_1;
}

fn atom(term: Term<'_>) -> Result<Atom, Raise<'static>> {
    term.as_atom().ok_or_else(badarg)
}

fn atom_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.string(atom(a)?.name()))
}

fn is_utf8(encoding: Term<'_>) -> bool {
    encoding == am::utf8 || encoding == am::unicode
}

fn atom_to_binary_2<'p>(p: &'p Process, [a, encoding]: [Term<'p>; 2]) -> BifResult<'p> {
    let atom = atom(a)?;
    let name = atom.name();
    if is_utf8(encoding) || encoding == am::latin1 && name.is_ascii() {
        return Ok(name_literal(atom).unwrap_or_else(|| p.binary(name.as_bytes())));
    }
    if encoding == am::latin1 {
        let bytes = unicode::latin1_from_str(name).ok_or_else(badarg)?;
        return Ok(p.binary_from_vec(bytes));
    }
    Err(badarg().into())
}

/// An atom's name as a binary: a literal, as in ERTS, made when it is first asked for. `None` for atoms
/// beyond the default limit of their number.
fn name_literal(atom: Atom) -> Option<Term<'static>> {
    const CHUNK: usize = 1 << 10;
    type Chunk = OnceLock<Box<[LiteralCell]>>;
    static CHUNKS: [Chunk; CHUNK] = [const { OnceLock::new() }; CHUNK];
    let index = atom.index() as usize;
    let chunk = CHUNKS.get(index / CHUNK)?.get_or_init(|| {
        let cells = std::iter::repeat_with(LiteralCell::default);
        cells.take(CHUNK).collect()
    });
    let cell = &chunk[index % CHUNK];
    Some(cell.get_or_build(|heap| heap.binary(atom.name().as_bytes())))
}

/// A name, of a list of characters: `badarg` for no characters, `system_limit` for more than 255.
fn name_of_list(list: Term<'_>) -> Result<String, Raise<'static>> {
    let mut name = String::new();
    for (n, element) in list.list_iter().enumerate() {
        let element = element.map_err(|_| badarg())?;
        if n == MAX_ATOM_CHARS {
            return Err(system_limit());
        }
        let code = element.as_small().and_then(|n| u32::try_from(n).ok());
        name.push(code.and_then(char::from_u32).ok_or_else(badarg)?);
    }
    Ok(name)
}

fn new_atom(name: &str) -> GuardResult<'static> {
    Ok(Atom::new(name).term())
}

fn existing_atom(name: &str) -> GuardResult<'static> {
    Atom::existing(name).map(Atom::term).ok_or_else(badarg)
}

fn list_to_atom_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> GuardResult<'p> {
    new_atom(&name_of_list(list)?)
}

fn list_to_existing_atom_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> GuardResult<'p> {
    existing_atom(&name_of_list(list).map_err(|_| badarg())?)
}

/// The text of a binary in an encoding that an atom may be given in.
fn name_of_binary(a: Term<'_>, encoding: Term<'_>) -> Result<String, Raise<'static>> {
    let bytes = a.as_binary().ok_or_else(badarg)?.bytes();
    if encoding == am::latin1 {
        Ok(unicode::latin1_to_string(&bytes))
    } else if is_utf8(encoding) {
        let (valid, error) = unicode::utf8_prefix(&bytes);
        match error {
            None => Ok(valid.to_owned()),
            // The error for too long a text comes before that for a wrong one, as in ERTS, which counts while it reads.
            Some(_) if valid.chars().count() > MAX_ATOM_CHARS => Err(system_limit()),
            Some(_) => Err(badarg()),
        }
    } else {
        Err(badarg())
    }
}

fn binary_to_atom_2<'p>(_p: &'p Process, [a, encoding]: [Term<'p>; 2]) -> GuardResult<'p> {
    let name = name_of_binary(a, encoding)?;
    if name.chars().count() > MAX_ATOM_CHARS {
        return Err(system_limit());
    }
    new_atom(&name)
}

fn binary_to_existing_atom_2<'p>(_p: &'p Process, [a, encoding]: [Term<'p>; 2]) -> GuardResult<'p> {
    existing_atom(&name_of_binary(a, encoding).map_err(|_| badarg())?)
}

fn base(term: Term<'_>) -> Option<u32> {
    let base = term.as_small().and_then(|n| u32::try_from(n).ok())?;
    (2..=MAX_BASE as u32).contains(&base).then_some(base)
}

/// The digits of an integer.
enum Digits {
    Few(LimbDigits),
    Many(Vec<u8>),
}

fn digits(a: Term<'_>, radix: Term<'_>) -> Result<Digits, Raise<'static>> {
    let radix = base(radix).ok_or_else(badarg)?;
    match a.view() {
        View::Small(value) => {
            let digits = LimbDigits::new(value < 0, value.unsigned_abs(), radix);
            Ok(Digits::Few(digits))
        }
        View::Big(big) => {
            let mut out = Vec::new();
            IntRef::new(big.is_negative(), big.limbs()).push_digits(radix, &mut out);
            Ok(Digits::Many(out))
        }
        _ => Err(badarg()),
    }
}

const DECIMAL: Term<'static> = Term::small(10);

fn integer_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    integer_to_list_2(p, [a, DECIMAL])
}

fn integer_to_list_2<'p>(p: &'p Process, [a, base]: [Term<'p>; 2]) -> BifResult<'p> {
    let digits = digits(a, base)?;
    bump_digits(p, a, base);
    Ok(match digits {
        Digits::Few(digits) => p.byte_list(digits.as_bytes()),
        Digits::Many(digits) => p.byte_list(&digits),
    })
}

fn integer_to_binary_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    integer_to_binary_2(p, [a, DECIMAL])
}

fn integer_to_binary_2<'p>(p: &'p Process, [a, base]: [Term<'p>; 2]) -> BifResult<'p> {
    let digits = digits(a, base)?;
    bump_digits(p, a, base);
    Ok(match digits {
        Digits::Few(digits) => p.binary(digits.as_bytes()),
        Digits::Many(digits) => p.binary_from_vec(digits),
    })
}

/// The digits of a big integer cost, as many as ERTS expects of it; not where they are more than the time slice pays
/// for, which makes them another scheduler's work there.
fn bump_digits(p: &Process, a: Term<'_>, base: Term<'_>) {
    const DIGITS_PER_RED: usize = 16;
    let (Some(big), Some(base)) = (a.as_big(), base.as_small()) else {
        return;
    };
    let bits = IntRef::new(big.is_negative(), big.limbs()).bit_len();
    let digits = (bits as f64 / (base as f64).log2()) as usize + 2 + usize::from(big.is_negative());
    let reds = digits / DIGITS_PER_RED;
    if reds <= p.reds_left() {
        p.bump_reds(reds as i64);
    }
}

/// The largest base of integers as text.
const MAX_BASE: usize = 36;

/// How many digits always fit in a small integer, by their base, which is 2 or more.
static DIGITS_PER_SMALL: [u8; MAX_BASE + 1] = {
    let mut all = [0; MAX_BASE + 1];
    let mut base = 2;
    while base <= MAX_BASE {
        let mut limit = tag::MAX_SMALL as u64 + 1;
        while limit >= base as u64 {
            limit /= base as u64;
            all[base] += 1;
        }
        base += 1;
    }
    all
};

fn digits_per_small(base: u32) -> usize {
    DIGITS_PER_SMALL[base as usize].into()
}

fn digit(byte: u8, base: u32) -> Option<i64> {
    char::from(byte).to_digit(base).map(i64::from)
}

/// The integer a binary is, or `big` where Erlang code has to put it together, or `badarg`.
fn binary_to_integer_2<'p>(_p: &'p Process, [a, radix]: [Term<'p>; 2]) -> BifResult<'p> {
    let refused = Ok(am::badarg.term());
    let (Some(base), Some(bits)) = (base(radix), a.as_binary()) else {
        return refused;
    };
    let bytes = bits.bytes();
    let (negative, digits) = match &*bytes {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return refused;
    }
    let zeros = digits.iter().take_while(|&&b| b == b'0').count();
    let digits = &digits[zeros..];
    if digits.len() > digits_per_small(base) {
        return Ok(am::big.term());
    }
    let mut value = 0;
    for &byte in digits {
        let Some(digit) = digit(byte, base) else {
            return refused;
        };
        value = value * i64::from(base) + digit;
    }
    Ok(Term::small(if negative { -value } else { value }))
}

/// The integer a list starts with, and the rest; or `big`, or why there is none.
fn list_to_integer_2<'p>(p: &'p Process, [list, radix]: [Term<'p>; 2]) -> BifResult<'p> {
    let View::Cons(first) = list.view() else {
        let why = if list.is_nil() {
            am::no_integer
        } else {
            am::not_a_list
        };
        return Ok(why.term());
    };
    let Some(base) = base(radix) else {
        return Ok(am::badarg.term());
    };
    let mut rest = list;
    let negative = first.head().as_small() == Some(b'-'.into());
    if negative || first.head().as_small() == Some(b'+'.into()) {
        rest = first.tail();
    }
    let next = |rest: Term<'p>| {
        let cell = rest.as_cons()?;
        let digit = digit(cell.head().as_small()? as u8, base)?;
        Some((digit, cell.tail()))
    };
    let (mut seen, mut significant, mut value) = (false, 0, 0);
    while let Some((digit, tail)) = next(rest) {
        if significant > digits_per_small(base) {
            return Ok(am::big.term());
        }
        seen = true;
        rest = tail;
        if significant > 0 || digit != 0 {
            significant += 1;
            value = i64::wrapping_add(value * i64::from(base), digit);
        }
    }
    if !seen {
        return Ok(am::no_integer.term());
    }
    if significant > digits_per_small(base) {
        return Ok(am::big.term());
    }
    let value = Term::small(if negative { -value } else { value });
    Ok(p.tuple(&[value, rest]))
}

/// The layout that options ask for.
fn float_format(options: Term<'_>) -> Result<FloatFormat, Raise<'static>> {
    let mut compact = false;
    let mut format = FloatFormat::DEFAULT;
    for option in options.list_iter() {
        let option = option.map_err(|_| badarg())?;
        if option == am::compact {
            compact = true;
        } else if option == am::short {
            format = FloatFormat::Short;
        } else {
            let pair = option.as_tuple().map(|t| t.elements());
            let Some([kind, decimals]) = pair else {
                return Err(badarg());
            };
            let decimals = decimals.as_small().ok_or_else(badarg)?;
            format = match kind.as_atom() {
                Some(am::decimals) => FloatFormat::Decimals { decimals, compact },
                Some(am::scientific) => FloatFormat::Scientific { decimals },
                _ => return Err(badarg()),
            };
        }
    }
    if let FloatFormat::Decimals { decimals, .. } = format {
        format = FloatFormat::Decimals { decimals, compact };
    }
    Ok(format)
}

fn float_text(a: Term<'_>, options: Term<'_>) -> Result<String, Raise<'static>> {
    let value = a.as_float().ok_or_else(badarg)?;
    format_float(value, float_format(options)?).ok_or_else(badarg)
}

fn float_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.string(&float_text(a, Term::NIL)?))
}

fn float_to_list_2<'p>(p: &'p Process, [a, options]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(p.string(&float_text(a, options)?))
}

fn float_to_binary_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.binary(float_text(a, Term::NIL)?.as_bytes()))
}

fn float_to_binary_2<'p>(p: &'p Process, [a, options]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(p.binary(float_text(a, options)?.as_bytes()))
}

/// A list of bytes.
fn bytes_of_list(list: Term<'_>) -> Result<Vec<u8>, Raise<'static>> {
    let byte = |element: Result<Term<'_>, Term<'_>>| {
        let byte = element.ok().and_then(Term::as_small);
        byte.and_then(|n| u8::try_from(n).ok()).ok_or_else(badarg)
    };
    list.list_iter().map(byte).collect()
}

/// A float's text ends at a zero byte, as a C string does.
fn float_of_text<'p>(p: &'p Process, text: &[u8]) -> BifResult<'p> {
    let len = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    let value = parse_float(&text[..len]).ok_or_else(badarg)?;
    Ok(p.float(value))
}

fn list_to_float_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    float_of_text(p, &bytes_of_list(list)?)
}

fn binary_to_float_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    float_of_text(p, &a.as_binary().ok_or_else(badarg)?.bytes())
}

/// The float a list starts with, and the rest.
fn string_list_to_float_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    let error = |why: Atom| Ok(p.tuple(&[am::error.term(), why.term()]));
    if !matches!(list.view(), View::Nil | View::Cons(_)) {
        return error(am::not_a_list);
    }
    let of_a_float = |b: &u8| b.is_ascii_digit() || b"+-.,eE".contains(b);
    let text: Vec<u8> = list
        .list_iter()
        .map_while(|element| element.ok()?.as_small())
        .map_while(|n| u8::try_from(n).ok().filter(of_a_float))
        .collect();
    let Some((len, _)) = scan_float(&text) else {
        return error(am::no_float);
    };
    let Some(value) = parse_float(&text[..len]) else {
        return error(am::no_float);
    };
    let rest = (0..len).fold(list, |rest, _| {
        rest.as_cons().expect("as long as its text").tail()
    });
    Ok(p.tuple(&[p.float(value), rest]))
}

/// The first number of a printed pid, port or reference: the node's.
fn node_number(term: Term<'_>) -> u32 {
    let name = term.as_external().map(|external| external.node().name);
    // An old incarnation of this node is written as this one.
    let name = name.filter(|name| *name != node_name());
    name.map_or(0, Atom::index)
}

fn pid_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let (number, serial) = match a.view() {
        View::Pid(pid) => (pid.number(), pid.serial()),
        View::External(pid) if pid.kind() == tag::EXTERNAL_PID => {
            (pid.data()[0] & 0xffff_ffff, pid.data()[0] >> 32)
        }
        _ => return Err(badarg().into()),
    };
    Ok(p.string(&format!("<{}.{number}.{serial}>", node_number(a))))
}

fn port_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let number = match a.view() {
        View::Port(port) => port.0,
        View::External(port) if port.kind() == tag::EXTERNAL_PORT => port.data()[0],
        _ => return Err(badarg().into()),
    };
    Ok(p.string(&format!("#Port<{}.{number}>", node_number(a))))
}

fn ref_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let numbers = match a.view() {
        View::Ref(reference) => {
            if let Some(magic) = reference.magic() {
                magic.save();
            }
            let mut numbers = reference.numbers().to_vec();
            if let Some(pid) = reference.pid() {
                let word = pid.term().raw().0;
                numbers.extend([word as u32, (word >> 32) as u32]);
            }
            numbers
        }
        View::External(reference) if reference.kind() == tag::EXTERNAL_REF => {
            let data = reference.data();
            let n = data[0] as u32 as usize;
            (1..=n)
                .map(|i| (data[i / 2] >> (32 * (i % 2))) as u32)
                .collect()
        }
        _ => return Err(badarg().into()),
    };
    let numbers: String = numbers.iter().rev().map(|n| format!(".{n}")).collect();
    Ok(p.string(&format!("#Ref<{}{numbers}>", node_number(a))))
}

fn fun_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let fun = a.as_fun().ok_or_else(badarg)?;
    let mut out = Vec::new();
    if let Some(export) = fun.export() {
        out.extend(b"fun ");
        display::push_atom(export.module.name(), &mut out);
        out.push(b':');
        display::push_atom(export.function.name(), &mut out);
        out.extend(format!("/{}", export.arity).bytes());
    } else if let Some(entry) = fun.entry() {
        out.extend(b"#Fun<");
        display::push_atom(entry.module.name(), &mut out);
        out.extend(format!(".{}.{}>", entry.index, entry.old_uniq).bytes());
    }
    // The bytes of the text, as ERTS gives them, not its characters.
    Ok(p.byte_list(&out))
}

/// The numbers in `head` `N.N...N` `>`, each of at least one digit and in 64 bits, wrapping.
fn numbers(list: Term<'_>, head: &[u8]) -> Result<Vec<u64>, Raise<'static>> {
    let text = bytes_of_list(list)?;
    let inner = text
        .strip_prefix(head)
        .and_then(|text| text.strip_suffix(b">"));
    let number = |digits: &[u8]| {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(badarg());
        }
        Ok(digits.iter().fold(0u64, |n, b| {
            n.wrapping_mul(10).wrapping_add(u64::from(b - b'0'))
        }))
    };
    inner
        .ok_or_else(badarg)?
        .split(|&b| b == b'.')
        .map(number)
        .collect()
}

/// The node that the first number of an identifier means: one that is connected. What was printed does not tell its creation.
fn node_of_channel(channel: u64) -> Result<Arc<Node>, Raise<'static>> {
    let index = u32::try_from(channel).ok();
    let index = index.filter(|&index| (index as usize) < atom::count());
    let name = Atom::from_index(index.ok_or_else(badarg)?);
    let creation = DistEntry::find(name).and_then(|entry| entry.creation());
    Ok(Node::known_as(name, creation.ok_or_else(badarg)?))
}

fn list_to_pid_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    match numbers(list, b"<")?[..] {
        [0, number, serial] if number >> 28 == 0 && serial >> 32 == 0 => {
            Ok(Pid(serial << 28 | number).term())
        }
        [channel, number, serial] if number >> 32 == 0 && serial >> 32 == 0 => {
            let node = node_of_channel(channel)?;
            Ok(p.external(tag::EXTERNAL_PID, node, &[serial << 32 | number]))
        }
        _ => Err(badarg().into()),
    }
}

fn list_to_port_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    match numbers(list, b"#Port<")?[..] {
        [0, number] if number >> 60 == 0 => Ok(Port(number).term()),
        [channel, number] => {
            let node = node_of_channel(channel)?;
            Ok(p.external(tag::EXTERNAL_PORT, node, &[number]))
        }
        _ => Err(badarg().into()),
    }
}

fn list_to_ref_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    let numbers = numbers(list, b"#Ref<")?;
    let small: Result<Vec<u32>, _> = numbers.iter().rev().map(|&n| u32::try_from(n)).collect();
    match small.map_err(|_| badarg())?[..] {
        [a, b, c, 0] if a < 1 << 18 => Ok(p.known_reference([a, b, c])),
        [a, b, c, low, high, 0] if a < 1 << 18 => {
            let word = u64::from(low) | u64::from(high) << 32;
            if word & tag::IMMED1_MASK != tag::PID {
                return Err(badarg().into());
            }
            Ok(p.pid_reference([a, b, c], Pid(word >> 4)))
        }
        [ref numbers @ .., channel] if (1..=5).contains(&numbers.len()) => {
            Ok(external_ref(p, node_of_channel(channel.into())?, numbers))
        }
        _ => Err(badarg().into()),
    }
}
