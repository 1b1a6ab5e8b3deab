//! Prints terms as the emulator itself does: `erlang:display/1`, messages of a crash, texts of identifiers.
//!
//! `io_lib`, whose code comes from OTP's own libraries, prints differently.
//! Source: `erl_printf_term.c`, OTP 29.

#[cfg(test)]
mod tests;

use std::fmt;

use smallvec::SmallVec;

use super::map::Entries;
use super::{Bits, Cons, External, Fun, Term, Tuple, View, tag};
use crate::num::limbs::IntRef;
use crate::term::counted::this_node;
use crate::text::display::{is_string_byte, push_atom, push_float, push_integer, push_string};

/// A term to be printed. Depth and size of what is printed are bounded by `limit` alone.
pub struct Display<'h> {
    term: Term<'h>,
    limit: i64,
}

impl<'h> Term<'h> {
    /// The term as the emulator prints it, whole.
    #[must_use]
    pub fn display(self) -> Display<'h> {
        let limit = i64::MAX;
        Display { term: self, limit }
    }

    /// As [`Term::display`], but cut off with `... ` after about `limit` parts.
    #[must_use]
    pub(crate) fn display_cut(self, limit: i64) -> Display<'h> {
        Display { term: self, limit }
    }
}

impl Display<'_> {
    /// The text. Lists of printable bytes are written as Latin-1, atoms as UTF-8, as ERTS does.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut printer = Printer {
            out: Vec::new(),
            left: self.limit,
            pending: SmallVec::new(),
        };
        let whole = printer.print(self.term);
        if !whole || printer.left <= 0 {
            printer.out.extend(b"... ");
        }
        printer.out
    }
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl fmt::Debug for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.display_cut(1000), f)
    }
}

/// The first number of an identifier of another node: the number of the node's name.
fn channel(external: External<'_>) -> u32 {
    let name = external.node().name;
    if name == this_node().0 {
        0
    } else {
        name.index()
    }
}

/// `<0.N.S>`, `#Port<0.N>`, `#Ref<0.A.B.C>`: the text of a pid, port or reference; `None` for others.
#[must_use]
pub(crate) fn identifier_text(term: Term<'_>) -> Option<String> {
    let reference = |channel: u32, numbers: &[u32]| {
        let numbers: String = numbers.iter().rev().map(|n| format!(".{n}")).collect();
        format!("#Ref<{channel}{numbers}>")
    };
    Some(match term.view() {
        View::Pid(pid) => format!("<0.{}.{}>", pid.number(), pid.serial()),
        View::Port(port) => format!("#Port<0.{}>", port.0),
        View::Ref(r) => {
            if let Some(magic) = r.magic() {
                magic.save();
            }
            reference(0, &r.all_numbers())
        }
        View::External(it) => {
            let (channel, first) = (channel(it), it.data()[0]);
            match it.kind() {
                tag::EXTERNAL_PID => format!("<{channel}.{}.{}>", first as u32, first >> 32),
                tag::EXTERNAL_PORT => format!("#Port<{channel}.{first}>"),
                _ => reference(channel, &it.ref_numbers()),
            }
        }
        _ => return None,
    })
}

/// `#Fun<module.index.uniq>` or `fun module:name/arity`: the text of a fun.
#[must_use]
pub(crate) fn fun_text(fun: Fun<'_>) -> String {
    let mut out = Vec::new();
    if let Some(entry) = fun.entry() {
        let module = entry.module.name();
        return format!("#Fun<{module}.{}.{}>", entry.index, entry.old_uniq);
    }
    if let Some(export) = fun.export() {
        out.extend(b"fun ");
        push_atom(export.module.name(), &mut out);
        out.push(b':');
        push_atom(export.function.name(), &mut out);
        out.extend(format!("/{}", export.arity).bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The bytes of a list of printable bytes; `None` where it is none.
fn printable(mut cell: Cons<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let byte = cell.head().as_small().and_then(|n| u8::try_from(n).ok())?;
        bytes.push(Some(byte).filter(|b| is_string_byte(*b))?);
        match cell.tail().as_cons() {
            Some(next) => cell = next,
            None => return cell.tail().is_nil().then_some(bytes),
        }
    }
}

enum Pending<'h> {
    Text(&'static str),
    Term(Term<'h>),
    /// Elements that follow a first one.
    Elements(&'h [Term<'h>]),
    /// The tail of a list.
    Tail(Term<'h>),
    /// Pairs of a map, and whether one was printed.
    Pairs(Entries<'h>, bool),
    /// Fields of a record.
    Fields(&'h [Term<'h>], &'h [Term<'h>], bool),
}

struct Printer<'h> {
    out: Vec<u8>,
    left: i64,
    pending: SmallVec<[Pending<'h>; 8]>,
}

impl<'h> Printer<'h> {
    /// Whether all of it was printed.
    fn print(&mut self, term: Term<'h>) -> bool {
        self.pending.push(Pending::Term(term));
        while let Some(next) = self.pending.pop() {
            match next {
                Pending::Text(text) => self.out.extend(text.bytes()),
                Pending::Term(term) => {
                    self.left -= 1;
                    if self.left < 0 || !self.term(term) {
                        return false;
                    }
                }
                Pending::Elements([]) => {}
                Pending::Elements([first, rest @ ..]) => {
                    self.out.push(b',');
                    self.pending.push(Pending::Elements(rest));
                    self.pending.push(Pending::Term(*first));
                }
                Pending::Tail(tail) => self.tail(tail),
                Pending::Pairs(mut pairs, follows) => {
                    if let Some((key, value)) = pairs.next() {
                        self.pending.push(Pending::Pairs(pairs, true));
                        self.pair(key, "=>", value, follows);
                    }
                }
                Pending::Fields(keys, values, follows) => {
                    if let ([key, keys @ ..], [value, values @ ..]) = (keys, values) {
                        self.pending.push(Pending::Fields(keys, values, true));
                        self.pair(*key, "=", *value, follows);
                    }
                }
            }
        }
        true
    }

    fn pair(&mut self, key: Term<'h>, between: &'static str, value: Term<'h>, follows: bool) {
        if follows {
            self.out.push(b',');
        }
        self.pending.push(Pending::Term(value));
        self.pending.push(Pending::Text(between));
        self.pending.push(Pending::Term(key));
    }

    fn tail(&mut self, tail: Term<'h>) {
        match tail.view() {
            View::Nil => {}
            View::Cons(cell) => {
                self.out.push(b',');
                self.pending.push(Pending::Tail(cell.tail()));
                self.pending.push(Pending::Term(cell.head()));
            }
            _ => {
                self.out.push(b'|');
                self.pending.push(Pending::Term(tail));
            }
        }
    }

    /// Prints a term up to its parts; whether there was room for it.
    fn term(&mut self, term: Term<'h>) -> bool {
        match term.view() {
            View::Nil => self.out.extend(b"[]"),
            View::Atom(atom) => self.atom(atom.name()),
            View::Small(value) => self.out.extend(value.to_string().bytes()),
            View::Big(big) => {
                push_integer(IntRef::new(big.is_negative(), big.limbs()), &mut self.out);
            }
            View::Float(value) => push_float(value, &mut self.out),
            View::Pid(_) | View::Port(_) | View::Ref(_) | View::External(_) => {
                self.out
                    .extend(identifier_text(term).unwrap_or_default().bytes());
            }
            View::Fun(fun) => {
                if let Some(export) = fun.export() {
                    self.left -= (export.module.name().len() + export.function.name().len()) as i64;
                }
                self.out.extend(fun_text(fun).bytes());
            }
            View::Cons(cell) => return self.list(cell),
            View::Tuple(tuple) => self.tuple(tuple),
            View::Record(record) => {
                self.out.push(b'#');
                self.atom(record.module().name());
                self.out.push(b':');
                self.atom(record.name().name());
                self.out.push(b'{');
                self.pending.push(Pending::Text("}"));
                let fields = Pending::Fields(record.keys(), record.values(), false);
                self.pending.push(fields);
            }
            View::Map(map) => {
                self.out.extend(b"#{");
                self.pending.push(Pending::Text("}"));
                self.pending.push(Pending::Pairs(map.iter(), false));
            }
            View::Bits(bits) => return self.bits(bits),
        }
        true
    }

    fn atom(&mut self, name: &str) {
        self.left -= name.len() as i64;
        push_atom(name, &mut self.out);
    }

    fn tuple(&mut self, tuple: Tuple<'h>) {
        self.out.push(b'{');
        self.pending.push(Pending::Text("}"));
        if let [first, rest @ ..] = tuple.elements() {
            self.pending.push(Pending::Elements(rest));
            self.pending.push(Pending::Term(*first));
        }
    }

    fn list(&mut self, cell: Cons<'h>) -> bool {
        let Some(bytes) = printable(cell) else {
            self.out.push(b'[');
            self.pending.push(Pending::Text("]"));
            self.pending.push(Pending::Tail(cell.tail()));
            self.pending.push(Pending::Term(cell.head()));
            return true;
        };
        let room = usize::try_from(self.left).unwrap_or(0);
        self.left -= bytes.len() as i64;
        push_string(&bytes[..bytes.len().min(room)], &mut self.out);
        if bytes.len() > room {
            // Cut off within the string: no closing quote.
            self.out.pop();
            return false;
        }
        true
    }

    fn bits(&mut self, bits: Bits<'h>) -> bool {
        let (bytes, whole, tail) = (bits.bytes(), bits.byte_len(), bits.bit_len() % 8);
        let is_text = tail == 0 && whole > 0 && bytes.iter().all(|b| (b' '..127).contains(b));
        self.out.extend(if is_text { &b"<<\""[..] } else { b"<<" });
        for (i, byte) in bytes[..whole].iter().enumerate() {
            match (is_text, *byte) {
                (true, b'"') => self.out.extend(b"\\\""),
                (true, byte) => self.out.push(byte),
                (false, byte) => {
                    let comma = if i > 0 { "," } else { "" };
                    self.out.extend(format!("{comma}{byte}").bytes());
                }
            }
            self.left -= 1;
            if self.left < 0 {
                return false;
            }
        }
        if tail > 0 {
            let comma = if whole > 0 { "," } else { "" };
            let value = bytes[whole] >> (8 - tail);
            self.out.extend(format!("{comma}{value}:{tail}").bytes());
        }
        self.out.extend(if is_text { &b"\">>"[..] } else { b">>" });
        true
    }
}
