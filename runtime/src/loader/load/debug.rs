//! Loads debug information into the tables of [`crate::loader::debug`].

use super::Tables;
use crate::beam::Arg;
use crate::beam::module::{DebugCall, FrameSize};
use crate::loader::debug::{DebugTable, Item, instruments_lines};
use crate::term::{Atom, RawTerm, Term, am};

/// The table of a module, still without lines; none where a debugger has nothing to do with the module.
pub(super) fn table(tables: &Tables<'_>) -> Option<Box<DebugTable>> {
    let (has_items, is_instrumented) = (!tables.beam.debug.is_empty(), instruments_lines());
    (has_items || is_instrumented).then(|| {
        Box::new(DebugTable {
            is_instrumented,
            has_items,
            ..DebugTable::default()
        })
    })
}

/// Row `row` of the debug information, which stands for `line`.
pub(super) fn item(tables: &Tables<'_>, row: usize, line: u32) -> Option<Item> {
    let item = tables.beam.debug.get(row)?;
    let frame_size = match item.frame {
        FrameSize::Entry => am::entry.raw(),
        FrameSize::None => am::none.raw(),
        FrameSize::Words(words) => small(u64::from(words)),
    };
    let vars = item.vars.iter().map(|&(name, value)| {
        let (kind, value) = place(tables, value)?;
        Some((tables.constant(name)?, kind, value))
    });
    let calls = item.calls.iter().map(|&call| match call {
        DebugCall::Local(function, arity) => {
            Some(vec![tables.constant(function)?, small(arity.into())])
        }
        DebugCall::Remote(module, function, arity) => Some(vec![
            tables.constant(module)?,
            tables.constant(function)?,
            small(arity.into()),
        ]),
        DebugCall::Variable(name) => Some(vec![tables.constant(name)?]),
    });
    Some(Item {
        row,
        line,
        frame_size,
        vars: vars.collect::<Option<_>>()?,
        calls: calls.collect::<Option<_>>()?,
    })
}

fn small(number: u64) -> RawTerm {
    Term::small(number.cast_signed()).raw()
}

/// Where a variable is.
fn place(tables: &Tables<'_>, value: Arg) -> Option<(Atom, RawTerm)> {
    Some(match value {
        Arg::X(number) => (am::x, small(number.into())),
        Arg::Y(number) => (am::y, small(number.into())),
        _ => (am::value, tables.constant(value)?),
    })
}
