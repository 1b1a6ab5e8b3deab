//! Decodes the `DbgB` chunk: what a debugger finds at each place where it may stop. Layout: `beam_file.c` (reader) and
//! `beam_asm.erl` (writer) of OTP.

use super::chunks::Chunks;
use super::code::read_instruction;
use super::error::{BeamError, BeamErrorKind};
use super::genop::Op;
use super::module::{BeamModule, ByteTable, DebugCall, DebugItem, FrameSize};
use super::operand::Arg;

/// The kinds of entries; each item begins with the first one.
const FRAME_SIZE: u64 = 0;
const VAR_MAPPINGS: u64 = 1;
const CALLS: u64 = 2;

/// `DbgB`: version, number of items, number of terms; then instructions `call Kind Operand`, of which those after
/// the frame size have a list: so many terms. Files of other versions are read as if they had no items.
pub(super) fn items(
    chunks: &Chunks<'_>,
    module: &mut BeamModule,
) -> Result<Vec<DebugItem>, BeamError> {
    let mut r = chunks.reader(b"DbgB");
    if r.remaining() == 0 || r.i32()? != 1 {
        return Ok(Vec::new());
    }
    let count = r.i32()?;
    let terms = r.i32()?;
    let mut items_left = r.check_count(4, i64::from(count), 1)?;
    let mut terms_left = r.check_count(8, i64::from(terms), 1)?;
    let mut items: Vec<DebugItem> = Vec::with_capacity(items_left);
    let mut last_kind = u64::MAX;
    while items_left > 0 || terms_left > 0 {
        let at = r.offset();
        let bad = |kind: BeamErrorKind| BeamError {
            chunk: *b"DbgB",
            offset: at,
            kind,
        };
        module.args.clear();
        let op = read_instruction(&mut r, module)?;
        let &[Arg::U(kind), second, ref list @ ..] = module.args.as_slice() else {
            return Err(bad(BeamErrorKind::BadDebugInfo));
        };
        let fits = op == Op::Call && (kind == FRAME_SIZE || kind >= last_kind);
        if kind == FRAME_SIZE {
            items_left = items_left
                .checked_sub(1)
                .ok_or_else(|| bad(BeamErrorKind::BadDebugInfo))?;
        } else {
            terms_left = terms_left
                .checked_sub(list.len())
                .ok_or_else(|| bad(BeamErrorKind::BadDebugInfo))?;
        }
        last_kind = kind;
        entry(&mut items, module, kind, second, list)
            .filter(|()| fits)
            .ok_or_else(|| bad(BeamErrorKind::BadDebugInfo))?;
    }
    module.args.clear();
    Ok(items)
}

/// Takes in one entry; `None` where it makes no sense.
fn entry(
    items: &mut Vec<DebugItem>,
    module: &BeamModule,
    kind: u64,
    second: Arg,
    list: &[Arg],
) -> Option<()> {
    if kind == FRAME_SIZE {
        items.push(DebugItem {
            frame: frame_size(module, second)?,
            vars: Vec::new(),
            calls: Vec::new(),
        });
        return Some(());
    }
    let Arg::List(_) = second else { return None };
    let item = items.last_mut()?;
    match kind {
        VAR_MAPPINGS => {
            let (pairs, []) = list.as_chunks::<2>() else {
                return None;
            };
            item.vars = pairs
                .iter()
                .map(|&[name, value]| variable(module, name, value))
                .collect::<Option<_>>()?;
        }
        CALLS => item.calls = calls(module, list)?,
        // Those of compilers to come.
        _ => {}
    }
    Some(())
}

fn frame_size(module: &BeamModule, arg: Arg) -> Option<FrameSize> {
    match arg {
        Arg::Nil => Some(FrameSize::None),
        Arg::Atom(row) if module.atoms.get(row) == "entry" => Some(FrameSize::Entry),
        Arg::U(words) => i32::try_from(words)
            .ok()
            .map(|words| FrameSize::Words(words.cast_unsigned())),
        _ => None,
    }
}

fn variable(module: &BeamModule, name: Arg, value: Arg) -> Option<(Arg, Arg)> {
    let is_name = match name {
        Arg::I(_) => true,
        _ => is_binary(&module.literals, name),
    };
    let value = match value {
        Arg::TypedX(n, _) => Arg::X(n),
        Arg::TypedY(n, _) => Arg::Y(n),
        Arg::X(_)
        | Arg::Y(_)
        | Arg::I(_)
        | Arg::Big(_)
        | Arg::Atom(_)
        | Arg::Nil
        | Arg::Literal(_) => value,
        _ => return None,
    };
    is_name.then_some((name, value))
}

/// Is this a literal that is a binary? Such are the names of variables.
fn is_binary(literals: &ByteTable, arg: Arg) -> bool {
    const BINARY_EXT: u8 = b'm';
    matches!(arg, Arg::Literal(row) if literals.get(row).get(1) == Some(&BINARY_EXT))
}

/// Calls: an arity up to 255, module and function; an arity with 256 added, and a function; or a variable.
fn calls(module: &BeamModule, mut list: &[Arg]) -> Option<Vec<DebugCall>> {
    const LOCAL: u64 = 256;
    let is_name = |arg: Arg| matches!(arg, Arg::Atom(_)) || is_binary(&module.literals, arg);
    let mut calls = Vec::new();
    while let Some((&first, rest)) = list.split_first() {
        let (call, names) = match (first, rest) {
            (Arg::U(arity), &[function, ..]) if arity >= LOCAL => {
                let arity = u8::try_from(arity - LOCAL).ok()?;
                (DebugCall::Local(function, arity), 1)
            }
            (Arg::U(arity), &[of, function, ..]) => {
                let arity = u8::try_from(arity).ok()?;
                (DebugCall::Remote(of, function, arity), 2)
            }
            _ if is_binary(&module.literals, first) => (DebugCall::Variable(first), 0),
            _ => return None,
        };
        let (names, rest) = rest.split_at(names);
        if !names.iter().all(|&name| is_name(name)) {
            return None;
        }
        calls.push(call);
        list = rest;
    }
    Some(calls)
}
