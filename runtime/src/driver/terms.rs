//! Terms that a driver describes with words, and sends: `driver_output_term()` and the like.

use std::ffi::{c_char, c_int};

use super::binary::{Counted, DrvBinary, bytes_at};
use super::instance::{Instance, of, of_term};
use super::{DrvPort, TermData, api};
use crate::external::{DecodeOptions, decode};
use crate::heap::Heap;
use crate::port::Port;
use crate::process::{SYSTEM, Signal, deliver, exists};
use crate::sched;
use crate::term::{Pid, RawTerm, Term};
use crate::value::map;

/// The words of a description that are left.
struct Words<'a> {
    words: std::slice::Iter<'a, TermData>,
    /// Bytes that are sent.
    bytes: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<TermData> {
        self.words.next().copied()
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.next()? as c_int).ok()
    }

    /// A pointer and how many bytes there are; the bytes live as long as the call.
    ///
    /// # Safety
    /// NF1: the description is one.
    unsafe fn buffer<'b>(&mut self) -> Option<&'b [u8]> {
        let (data, size) = (self.next()? as *const c_char, self.next()?);
        let size = usize::try_from(size).ok()?;
        if data.is_null() && size > 0 {
            return None;
        }
        self.bytes += size;
        // SAFETY: by contract.
        Some(unsafe { bytes_at(data, size) })
    }

    /// A pointer to a value.
    ///
    /// # Safety
    /// NF1: the description is one.
    unsafe fn at<T: Copy>(&mut self) -> Option<T> {
        let at = self.next()? as *const T;
        // SAFETY: by contract.
        unsafe { at.as_ref() }.copied()
    }

    /// An immediate.
    fn immediate(&mut self, is_it: fn(Term<'_>) -> bool) -> Option<Term<'static>> {
        // SAFETY: NF1: an immediate, or what `is_it` looks at no further than its tag.
        let term = unsafe { Term::new(RawTerm(self.next()?)) };
        is_it(term).then(|| Term::immed(term.raw()))
    }
}

/// The last `count` terms.
fn pop<'h>(stack: &mut Vec<Term<'h>>, count: usize) -> Option<Vec<Term<'h>>> {
    let from = stack.len().checked_sub(count)?;
    Some(stack.split_off(from))
}

/// Makes the term that is described next.
///
/// # Safety
/// NF1.
unsafe fn step<'h>(
    heap: &'h Heap,
    kind: TermData,
    words: &mut Words<'_>,
    stack: &mut Vec<Term<'h>>,
) -> Option<Term<'h>> {
    // SAFETY: by contract.
    Some(unsafe {
        match kind {
            1 => Term::NIL,
            2 => words.immediate(|term| term.as_atom().is_some())?,
            3 => heap.integer(words.next()?.cast_signed()),
            4 => words.immediate(|term| term.as_port().is_some())?,
            5 => {
                let binary = Counted::again(words.next()? as *mut DrvBinary)?;
                let (size, from) = (words.next()? as usize, words.next()? as usize);
                let to = from.checked_add(size).filter(|to| *to <= binary.size())?;
                words.bytes += size;
                binary.term(heap, from, to)
            }
            6 => heap.byte_list(words.buffer()?),
            7 => {
                let count = words.count()?;
                heap.tuple(&pop(stack, count)?)
            }
            8 => {
                let count = words.count().filter(|count| *count > 0)?;
                let mut elements = pop(stack, count)?;
                let tail = elements.pop()?;
                heap.list_with_tail(&elements, tail)
            }
            9 => {
                let bytes = words.buffer()?;
                heap.byte_list_with_tail(bytes, stack.pop()?)
            }
            10 => words.immediate(|term| term.as_pid().is_some())?,
            11 => heap.float(words.at::<f64>().filter(|value| value.is_finite())?),
            12 => {
                let bytes = words.buffer()?;
                decode(heap, bytes, DecodeOptions::default()).ok()?.0
            }
            13 => heap.unsigned(words.next()?),
            14 => heap.binary(words.buffer()?),
            15 => heap.integer(words.at()?),
            16 => heap.unsigned(words.at()?),
            17 => {
                let count = words.count()?;
                map_of(heap, &pop(stack, count.checked_mul(2)?)?)?
            }
            _ => return None,
        }
    })
}

/// A map of keys and values in turn; `None` where a key is there twice.
fn map_of<'h>(heap: &'h Heap, pairs: &[Term<'h>]) -> Option<Term<'h>> {
    let rows: Vec<(Term<'h>, Term<'h>)> = pairs
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    let count = rows.len();
    let made = map::from_pairs(heap, &rows);
    let is_whole = made.as_map().is_some_and(|map| map.len() == count);
    is_whole.then_some(made)
}

/// The term that is described, and how many bytes it has; `None` for what describes none.
///
/// # Safety
/// NF1.
unsafe fn build<'h>(heap: &'h Heap, description: &[TermData]) -> Option<(Term<'h>, usize)> {
    let (mut words, mut stack) = (
        Words {
            words: description.iter(),
            bytes: 0,
        },
        Vec::new(),
    );
    while let Some(kind) = words.next() {
        // SAFETY: by contract.
        let made = unsafe { step(heap, kind, &mut words, &mut stack) }?;
        stack.push(made);
    }
    match stack[..] {
        [term] => Some((term, words.bytes)),
        _ => None,
    }
}

/// Sends what is described: 1; 0 where the process is gone; -1 for what describes no term.
///
/// # Safety
/// NF1.
unsafe fn send(from: Option<&Port>, to: Pid, data: *const TermData, count: c_int) -> c_int {
    let Ok(count) = usize::try_from(count) else {
        return -1;
    };
    let description = match count {
        0 => return -1,
        // SAFETY: by contract.
        _ => unsafe { std::slice::from_raw_parts(data, count) },
    };
    let mut bytes = None;
    let message = Heap::detached().into_message(|heap| {
        // SAFETY: by contract.
        match unsafe { build(heap, description) } {
            Some((term, size)) => {
                bytes = Some(size);
                term
            }
            None => Term::NIL,
        }
    });
    let Some(bytes) = bytes else { return -1 };
    if let Some(port) = from {
        port.took_input(bytes);
        // ERTS traces what its schedulers send.
        if sched::current_id().is_some() {
            port.traced().sent(to, message.term());
        }
    }
    if !exists(to) {
        return 0;
    }
    deliver(to, Signal::own(message, SYSTEM));
    1
}

/// Sends to the owner.
///
/// # Safety
/// NF1.
unsafe fn send_to_owner(this: Option<&Instance>, data: *const TermData, count: c_int) -> c_int {
    let Some(this) = this.filter(|this| !this.port.is_gone()) else {
        return -1;
    };
    // SAFETY: by contract.
    unsafe { send(Some(&this.port), this.port.owner(), data, count) }
}

/// Sends to a process in the name of a port.
///
/// # Safety
/// NF1.
unsafe fn send_from(
    this: Option<&Instance>,
    to: TermData,
    data: *const TermData,
    count: c_int,
) -> c_int {
    let this = this.filter(|this| !this.port.is_gone());
    // SAFETY: NF1: an immediate.
    let to = unsafe { Term::new(RawTerm(to)) }.as_pid();
    let (Some(this), Some(to)) = (this, to) else {
        return -1;
    };
    // SAFETY: by contract.
    unsafe { send(Some(&this.port), to, data, count) }
}

/// `driver_term_nil`.
#[unsafe(export_name = "driver_term_nil")]
static NIL: TermData = Term::NIL.raw().0;

/// The data of the interface.
#[used]
pub(super) static DATA: &[super::Symbol] =
    &[super::Symbol("driver_term_nil", (&raw const NIL).cast())];

api! {
    /// The empty list.
    fn driver_mk_term_nil() -> TermData { NIL }
    /// An atom with a name in Latin-1.
    fn driver_mk_atom(name: *mut c_char) -> TermData { super::output::atom_of(name).raw().0 }
    /// Sends a term to the owner of a port, from any thread.
    fn erl_drv_output_term(port: TermData, data: *mut TermData, count: c_int) -> c_int {
        send_to_owner(of_term(port).as_deref(), data, count)
    }
    /// Sends a term to a process, from any thread.
    fn erl_drv_send_term(port: TermData, to: TermData, data: *mut TermData, count: c_int) -> c_int {
        send_from(of_term(port).as_deref(), to, data, count)
    }
    /// Sends a term to the owner.
    fn driver_output_term(port: DrvPort, data: *mut TermData, count: c_int) -> c_int {
        send_to_owner(of(port).as_deref(), data, count)
    }
    /// Sends a term to a process.
    fn driver_send_term(port: DrvPort, to: TermData, data: *mut TermData, count: c_int) -> c_int {
        send_from(of(port).as_deref(), to, data, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::am;

    /// The text of the term that is described, and how many bytes it has.
    fn built(description: &[TermData]) -> Option<(String, usize)> {
        let heap = Heap::detached();
        // SAFETY: NF1: the pointers in it are those of what is alive.
        let (term, bytes) = unsafe { build(&heap, description) }?;
        Some((term.display().to_string(), bytes))
    }

    /// A word that points to something.
    fn at<T>(it: &T) -> TermData {
        std::ptr::from_ref(it) as TermData
    }

    #[test]
    fn a_description_is_a_term() {
        let ok = am::ok.term().raw().0;
        let bytes = b"abc";
        let (float, low, high) = (1.5f64, -7i64, u64::MAX);
        let (text, float, low, high) = (at(bytes), at(&float), at(&low), at(&high));
        let external = b"\x83h\x02a\x01a\x02";
        let binary = Counted::of(b"xabcx");
        let held = binary.as_ptr() as TermData;
        for (description, expected, bytes) in [
            (vec![1], "[]", 0),
            (vec![2, ok], "ok", 0),
            (vec![3, (-5i64).cast_unsigned()], "-5", 0),
            (vec![13, u64::MAX], "18446744073709551615", 0),
            (vec![15, low], "-7", 0),
            (vec![16, high], "18446744073709551615", 0),
            (vec![11, float], "1.500000e+00", 0),
            (vec![6, text, 3], "\"abc\"", 3),
            (vec![6, 0, 0], "[]", 0),
            (vec![14, text, 3], "<<\"abc\">>", 3),
            (vec![5, held, 3, 1], "<<\"abc\">>", 3),
            (vec![12, at(external), 7], "{1,2}", 7),
            (vec![3, 1, 2, ok, 7, 2], "{1,ok}", 0),
            (vec![7, 0], "{}", 0),
            (vec![3, 1, 3, 2, 1, 8, 3], "[1,2]", 0),
            (vec![3, 1, 3, 2, 8, 2], "[1|2]", 0),
            (vec![1, 8, 1], "[]", 0),
            (vec![2, ok, 9, text, 2], "[97,98|ok]", 2),
            (vec![2, ok, 3, 1, 17, 1], "#{ok=>1}", 0),
            (vec![17, 0], "#{}", 0),
        ] {
            let expected = Some((expected.to_owned(), bytes));
            assert_eq!(built(&description), expected, "{description:?}");
        }
    }

    #[test]
    fn what_describes_no_term_is_refused() {
        let ok = am::ok.term().raw().0;
        let binary = Counted::of(b"abc");
        let held = binary.as_ptr() as TermData;
        let (nan, other_version) = (f64::NAN, b"\x82");
        for description in [
            vec![],
            vec![0],
            vec![18],
            vec![1, 1],
            vec![2],
            vec![2, Term::small(1).raw().0],
            vec![4, ok],
            vec![10, ok],
            vec![5, 0, 0, 0],
            vec![5, held, 3, 1],
            vec![5, held, u64::MAX, 1],
            vec![6, 0, 1],
            vec![7, 1],
            vec![1, 7, u64::MAX],
            vec![8, 0],
            vec![1, 8, 2],
            vec![9, 0, 0],
            vec![11, at(&nan)],
            vec![12, at(other_version), 1],
            vec![2, ok, 17, 1],
            vec![2, ok, 1, 2, ok, 1, 17, 2],
        ] {
            assert_eq!(built(&description), None, "{description:?}");
        }
    }
}
