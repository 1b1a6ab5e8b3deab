//! Items of `erlang:system_info/1` that tell of the emulator itself: its arguments, its memory by area, its pollset.
//! Source: `erl_bif_info.c`, `erl_alloc.c`, `erl_poll.c`, OTP 29.

use std::sync::OnceLock;

use super::memory;
use crate::code::nif::taints;
use crate::heap::Heap;
use crate::port;
use crate::process;
use crate::sys::chance::poll;
use crate::term::atom::atom;
use crate::term::{Term, am};

/// The emulator's program and arguments.
static ARGUMENTS: OnceLock<Vec<String>> = OnceLock::new();

/// Says with what the emulator was started. The first call counts.
pub(crate) fn set_arguments(arguments: Vec<String>) {
    let _ = ARGUMENTS.set(arguments);
}

/// The value of an item; `None` for one that is not told here.
pub(super) fn info<'p>(p: &'p Heap, item: &str) -> Option<Term<'p>> {
    Some(match item {
        "emu_args" => {
            let arguments = ARGUMENTS.get().map_or(&[][..], Vec::as_slice);
            let arguments: Vec<_> = arguments.iter().map(|text| p.string(text)).collect();
            p.list(&arguments)
        }
        "allocated_areas" => allocated_areas(p),
        "check_io" => p.list(&[pollset(p)]),
        // Libraries in C make a machine suspect.
        "taints" => {
            let modules: Vec<_> = taints::all().into_iter().map(Term::from).collect();
            p.list(&modules)
        }
        _ => return None,
    })
}

fn number(n: usize) -> Term<'static> {
    Term::small(n as i64)
}

/// Bytes by what they are for: `{Area, Bytes}`, or `{Area, Allocated, Used}`. Areas of ERTS that this machine does not
/// have apart from others are not told.
fn allocated_areas(p: &Heap) -> Term<'_> {
    let memory = memory::memory();
    let bytes = |kind| {
        let of = memory.iter().find(|(name, _)| *name == kind);
        number(of.map_or(0, |(_, bytes)| *bytes))
    };
    let slots = |limit: usize| number(limit * size_of::<usize>());
    let (atoms, used) = (bytes("atom"), bytes("atom_used"));
    p.list(&[
        p.tuple(&[atom("atom_space"), atoms, used]),
        p.tuple(&[atom("loaded_code"), bytes("code")]),
        p.tuple(&[atom("process_table"), slots(process::table().limit())]),
        p.tuple(&[atom("port_table"), slots(port::table().limit())]),
    ])
}

/// The descriptors that are waited for, and how.
fn pollset(p: &Heap) -> Term<'_> {
    let (on, off) = (am::true_.term(), am::false_.term());
    let watched = poll::watched();
    let items = [
        ("name", atom("erts_poll")),
        ("primary", atom("epoll")),
        ("kernel_poll", atom("epoll")),
        ("memory_size", number(watched.bytes)),
        ("total_poll_set_size", number(watched.descriptors)),
        ("lazy_updates", off),
        ("pending_updates", number(0)),
        ("batch_updates", off),
        ("concurrent_updates", on),
        ("fallback", off),
        ("max_fds", number(poll::most_descriptors())),
        ("active_fds", number(0)),
        ("poll_threads", number(1)),
    ];
    let items = items.map(|(name, value)| p.tuple(&[atom(name), value]));
    p.list(&items)
}

/// `{Wrong, Used, Drivers, Nifs}`: numbers of descriptors. Drivers alone watch any.
pub(super) fn check_io_debug(p: &Heap) -> Term<'_> {
    let used = number(poll::watched().descriptors);
    p.tuple(&[number(0), used, used, number(0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn what_is_told() {
        let p = &Process::new(233);
        for item in ["emu_args", "allocated_areas", "check_io", "taints"] {
            let told = info(p, item).expect("a known item");
            assert!(told.list_iter().all(|element| element.is_ok()), "{item}");
        }
        assert!(info(p, "no_item").is_none());
        let told = check_io_debug(p).as_tuple().unwrap();
        assert!(told.arity() == 4 && told.get(1).same(told.get(2)));
    }
}
