//! Decodes the tables of a `.beam` file: atoms, imports, exports, lambdas, literals, lines, types, records.
//!
//! Layouts: `beam_file.c` (reader) and `beam_asm.erl` (writer) of OTP.

use super::chunks::{Chunks, inflate};
use super::code::read_instruction;
use super::error::{BeamError, BeamErrorKind};
use super::genop::Op;
use super::module::{
    AtomTable, BeamModule, BeamType, ByteTable, Export, Import, Lambda, LineItem, LineTable,
    RecordDef,
};
use super::operand::Arg;
use super::reader::{Number, Reader, tag};

/// Source: `MAX_ATOM_CHARACTERS` of OTP's `atom.h`.
const MAX_ATOM_CHARACTERS: usize = 255;

/// `AtU8`: a count, then length and text of each. A negative count says that lengths are compact
/// terms (OTP 28), not single bytes.
pub(super) fn atoms(chunks: &Chunks<'_>) -> Result<AtomTable, BeamError> {
    let mut r = chunks.reader(b"AtU8");
    let signed = i64::from(r.i32()?);
    let count = r.check_count(0, signed.abs(), 1)?;
    if count == 0 {
        return Err(r.err_at(0, BeamErrorKind::BadCount(0)));
    }
    let mut text = String::with_capacity(r.remaining());
    let mut ends = Vec::with_capacity(count + 1);
    ends.push(0);
    for _ in 0..count {
        let at = r.offset();
        let len = if signed < 0 {
            r.unsigned()?
        } else {
            u32::from(r.u8()?)
        };
        let bytes = r.bytes(len as usize)?;
        let atom = std::str::from_utf8(bytes)
            .ok()
            .filter(|s| s.len() <= MAX_ATOM_CHARACTERS || s.chars().count() <= MAX_ATOM_CHARACTERS)
            .ok_or_else(|| r.err_at(at, BeamErrorKind::BadAtom))?;
        text.push_str(atom);
        ends.push(text.len() as u32);
    }
    Ok(AtomTable { text, ends })
}

/// A 32-bit atom number, which is never 0.
fn atom(r: &mut Reader<'_>, atoms: usize) -> Result<u32, BeamError> {
    let at = r.offset();
    match r.index("atoms", atoms)? {
        0 => {
            let kind = BeamErrorKind::BadIndex {
                table: "atoms",
                index: 0,
                count: atoms,
            };
            Err(r.err_at(at, kind))
        }
        index => Ok(index),
    }
}

fn label(r: &mut Reader<'_>, label_count: u32) -> Result<u32, BeamError> {
    let at = r.offset();
    let label = r.i32()?.cast_unsigned();
    if label == 0 || label >= label_count {
        return Err(r.err_at(at, BeamErrorKind::BadLabel(u64::from(label))));
    }
    Ok(label)
}

/// `ImpT`: rows of module, function, arity.
pub(super) fn imports(chunks: &Chunks<'_>, atoms: usize) -> Result<Vec<Import>, BeamError> {
    let mut r = chunks.reader(b"ImpT");
    let count = r.count(12)?;
    let mut imports = Vec::with_capacity(count);
    for _ in 0..count {
        let module = atom(&mut r, atoms)?;
        let function = atom(&mut r, atoms)?;
        imports.push(Import {
            module,
            function,
            arity: r.arity()?,
        });
    }
    Ok(imports)
}

/// `ExpT` and `LocT`: rows of function, arity, label.
pub(super) fn exports(
    chunks: &Chunks<'_>,
    id: &[u8; 4],
    atoms: usize,
    label_count: u32,
) -> Result<Vec<Export>, BeamError> {
    let mut r = chunks.reader(id);
    if r.remaining() == 0 {
        return Ok(Vec::new());
    }
    let count = r.count(12)?;
    let mut exports = Vec::with_capacity(count);
    for _ in 0..count {
        let function = atom(&mut r, atoms)?;
        let arity = r.arity()?;
        exports.push(Export {
            function,
            arity,
            label: label(&mut r, label_count)?,
        });
    }
    Ok(exports)
}

/// `FunT`: rows of function, arity, label, index, number of free variables, old unique number.
pub(super) fn lambdas(
    chunks: &Chunks<'_>,
    atoms: usize,
    label_count: u32,
) -> Result<Vec<Lambda>, BeamError> {
    let mut r = chunks.reader(b"FunT");
    if r.remaining() == 0 {
        return Ok(Vec::new());
    }
    let count = r.count(24)?;
    let mut lambdas = Vec::with_capacity(count);
    for _ in 0..count {
        let function = atom(&mut r, atoms)?;
        let arity = r.arity()?;
        let label = label(&mut r, label_count)?;
        let index = r.index("funs", i32::MAX as usize)?;
        let at = r.offset();
        let num_free = r.arity()?;
        if num_free > arity {
            return Err(r.err_at(at, BeamErrorKind::BadArity(i64::from(num_free))));
        }
        let old_uniq = r.i32()?.cast_unsigned();
        lambdas.push(Lambda {
            function,
            arity,
            label,
            index,
            num_free,
            old_uniq,
        });
    }
    Ok(lambdas)
}

/// `LitT`: the size of the table unpacked, 0 where it is not packed (OTP 28); then the table, in
/// zlib's format where packed: a count, then size and external term of each literal.
pub(super) fn literals(chunks: &Chunks<'_>) -> Result<ByteTable, BeamError> {
    let mut r = chunks.reader(b"LitT");
    if r.remaining() == 0 {
        return Ok(ByteTable::default());
    }
    let unpacked_bytes = r.i32()?;
    let bytes = if unpacked_bytes == 0 {
        r.rest().to_vec()
    } else {
        let unpacked_bytes = usize::try_from(unpacked_bytes)
            .map_err(|_| r.err_at(0, BeamErrorKind::BadCount(i64::from(unpacked_bytes))))?;
        let packed = r.rest();
        let decoder = flate2::read::ZlibDecoder::new(packed);
        inflate(decoder, packed.len(), unpacked_bytes).map_err(|kind| r.err_at(4, kind))?
    };
    let rows = literal_rows(&bytes)?;
    Ok(ByteTable { bytes, rows })
}

/// Offsets in errors are those of the unpacked table.
fn literal_rows(bytes: &[u8]) -> Result<Vec<std::ops::Range<u32>>, BeamError> {
    const EXTERNAL_FORMAT_VERSION: u8 = 131;
    let mut r = Reader::new(*b"LitT", bytes);
    let count = r.count(6)?;
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let size = r.count(1)?;
        let start = r.offset();
        if r.bytes(size)?.first() != Some(&EXTERNAL_FORMAT_VERSION) {
            return Err(r.err_at(start, BeamErrorKind::BadLiteral));
        }
        rows.push(start as u32..r.offset() as u32);
    }
    Ok(rows)
}

/// `Line`: version, flags, number of `line` instructions, of places, of file names; the places as
/// compact terms (tag `I`: a line of the present file; tag `A`: another file from here on); the names,
/// each after its size in 16 bits.
pub(super) fn lines(chunks: &Chunks<'_>, module: &str) -> Result<Option<LineTable>, BeamError> {
    let mut r = chunks.reader(b"Line");
    if r.remaining() == 0 || r.i32()? != 0 {
        return Ok(None);
    }
    let flags = r.i32()?;
    let instruction_count = r.i32()?.cast_unsigned();
    let at = r.offset();
    let item_count = i64::from(r.i32()?);
    let name_at = r.offset();
    let name_count = i64::from(r.i32()?);
    let item_count = r.check_count(at, item_count, 1)?;
    let name_count = r.check_count(name_at, name_count, 2)?;

    let items = line_items(&mut r, item_count, name_count + 1)?;
    let mut files = Vec::with_capacity(name_count + 1);
    files.push(format!("{module}.erl"));
    for _ in 0..name_count {
        let at = r.offset();
        let size = u16::from_be_bytes([r.u8()?, r.u8()?]);
        let name = std::str::from_utf8(r.bytes(usize::from(size))?)
            .map_err(|_| r.err_at(at, BeamErrorKind::BadFileName))?;
        // An empty name means the module's own file, as in ERTS; of files that cannot be told the name does not matter.
        let is_own = name.is_empty() && files.len() < UNTELLABLE.0 as usize;
        files.push(if is_own {
            files[0].clone()
        } else {
            name.to_owned()
        });
    }
    Ok(Some(LineTable {
        instruction_count,
        executable_line: flags & 1 != 0,
        force_line_counters: flags & 2 != 0,
        files,
        items,
    }))
}

/// Files and lines from which on a place cannot be told: ERTS has 8 and 24 bits for them.
const UNTELLABLE: (u32, u32) = (255, (1 << 24) - 1);

fn line_items(
    r: &mut Reader<'_>,
    count: usize,
    file_count: usize,
) -> Result<Vec<LineItem>, BeamError> {
    let mut items = Vec::with_capacity(count + 1);
    items.push(LineItem::default());
    let mut file = 0;
    while items.len() <= count {
        let at = r.offset();
        match r.tagged()? {
            (tag::A, Number::Word(n)) if n < file_count as i64 => file = n as u32,
            (tag::A, Number::Word(n)) => {
                let index = n.cast_unsigned();
                let kind = BeamErrorKind::BadIndex {
                    table: "files",
                    index,
                    count: file_count,
                };
                return Err(r.err_at(at, kind));
            }
            (tag::I, Number::Word(n)) if (0..=i64::from(i32::MAX)).contains(&n) => {
                let line = n as u32;
                let is_told = file < UNTELLABLE.0 && line < UNTELLABLE.1;
                items.push(if is_told {
                    LineItem { file, line }
                } else {
                    LineItem::default()
                });
            }
            (t, _) => return Err(r.err_at(at, BeamErrorKind::BadTag(t))),
        }
    }
    Ok(items)
}

/// `Type`: version, count, then 16 bits of each type with its bounds and unit.
///
/// Version 4 is OTP 29's; 3 (OTP 27 and 28) has no bit for native records, and the bits above it
/// one place lower. Files of other versions are read as if they had no types.
pub(super) fn types(chunks: &Chunks<'_>) -> Result<Option<Vec<BeamType>>, BeamError> {
    const HAS_MIN: u16 = 1 << 13;
    const HAS_MAX: u16 = 1 << 14;
    const HAS_UNIT: u16 = 1 << 15;
    let mut r = chunks.reader(b"Type");
    if r.remaining() == 0 {
        return Ok(None);
    }
    let version = r.i32()?;
    if version != 3 && version != 4 {
        return Ok(None);
    }
    let count = r.count(2)?;
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        let at = r.offset();
        let mut bits = u16::from_be_bytes([r.u8()?, r.u8()?]);
        if version == 3 {
            let union = bits & 0x0fff;
            let any = if union == 0x0fff { BeamType::RECORD } else { 0 };
            bits = union | any | (bits << 1 & 0xe000);
        }
        let union = bits & BeamType::ANY;
        let number = union & (BeamType::INTEGER | BeamType::FLOAT) != 0;
        let bitstring = union & BeamType::BITSTRING != 0;
        let bounded = bits & (HAS_MIN | HAS_MAX) != 0;
        if bits == 0 || (bounded && !number) || (bits & HAS_UNIT != 0 && !bitstring) {
            return Err(r.err_at(at, BeamErrorKind::BadType));
        }
        let min = if bits & HAS_MIN != 0 {
            Some(r.i64()?)
        } else {
            None
        };
        let max = if bits & HAS_MAX != 0 {
            Some(r.i64()?)
        } else {
            None
        };
        let unit = if bits & HAS_UNIT != 0 {
            Some(u16::from(r.u8()?) + 1)
        } else {
            None
        };
        types.push(BeamType {
            union,
            min,
            max,
            unit,
        });
    }
    let any = types
        .first()
        .is_some_and(|t| t.union == BeamType::ANY && t.min.is_none());
    if !any {
        return Err(r.err_at(4, BeamErrorKind::BadType));
    }
    Ok(Some(types))
}

/// `Recs`: version, number of records, number of fields; then for each record an instruction
/// `call_last Name Exported [Field, Default, ...]`, where the number 0 stands for no default.
pub(super) fn records(
    chunks: &Chunks<'_>,
    module: &mut BeamModule,
) -> Result<Vec<RecordDef>, BeamError> {
    let mut r = chunks.reader(b"Recs");
    if r.remaining() == 0 {
        return Ok(Vec::new());
    }
    let version = r.i32()?;
    if version != 0 {
        return Err(r.err_at(0, BeamErrorKind::BadVersion(i64::from(version))));
    }
    let count = r.i32()?;
    let field_count = r.i32()?;
    let count = r.check_count(4, i64::from(count), 4)?;
    let mut records = Vec::with_capacity(count);
    let mut fields_found = 0;
    for _ in 0..count {
        let at = r.offset();
        module.args.clear();
        let op = read_instruction(&mut r, module)?;
        let record = record(op, &module.args, &module.atoms)
            .ok_or_else(|| r.err_at(at, BeamErrorKind::BadRecord))?;
        fields_found += record.fields.len() as i64;
        records.push(record);
    }
    module.args.clear();
    if fields_found != i64::from(field_count) {
        return Err(r.err_at(8, BeamErrorKind::BadCount(i64::from(field_count))));
    }
    Ok(records)
}

fn record(op: Op, args: &[Arg], atoms: &AtomTable) -> Option<RecordDef> {
    let (
        Op::CallLast,
        [
            Arg::Atom(name),
            Arg::Atom(exported),
            Arg::List(_),
            list @ ..,
        ],
    ) = (op, args)
    else {
        return None;
    };
    let exported = match atoms.get(*exported) {
        "true" => true,
        "false" => false,
        _ => return None,
    };
    let (pairs, rest) = list.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let field = |pair: &[Arg; 2]| match *pair {
        [Arg::Atom(name), Arg::U(_)] => Some((name, None)),
        [
            Arg::Atom(name),
            value @ (Arg::Atom(_) | Arg::Nil | Arg::I(_) | Arg::Big(_) | Arg::Literal(_)),
        ] => Some((name, Some(value))),
        _ => None,
    };
    let fields = pairs.iter().map(field).collect::<Option<Vec<_>>>()?;
    Some(RecordDef {
        name: *name,
        exported,
        fields,
    })
}
