//! `.beam` files: taken apart into chunks, and the code into instructions, so that damage lands inside.

use beamline_runtime_beam::Op;
use beamline_runtime_beam::chunks::find_chunk;

use crate::damage::damage;
use crate::random::Random;

/// The chunks that the loader looks at.
const READ: [&[u8; 4]; 16] = [
    b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"FunT", b"LitT", b"Attr", b"CInf", b"Line",
    b"LocT", b"Type", b"Meta", b"DbgB", b"Recs", b"Atom",
];

type Chunk = ([u8; 4], Vec<u8>);

/// The file with those chunks only that the loader looks at, literals decompressed.
#[must_use]
pub(crate) fn plain(file: &[u8]) -> Option<Vec<u8>> {
    let mut chunks = Vec::new();
    for id in READ {
        if let Some(data) = find_chunk(file, *id).ok()? {
            let data = match id {
                b"LitT" => decompressed(data)?,
                _ => data.to_vec(),
            };
            chunks.push((*id, data));
        }
    }
    Some(put_together(&chunks))
}

/// A literal table as it is when its announced size is 0: not compressed.
fn decompressed(table: &[u8]) -> Option<Vec<u8>> {
    let (size, packed) = table.split_first_chunk::<4>()?;
    if *size == [0; 4] {
        return Some(table.to_vec());
    }
    let mut plain = vec![0; 4];
    let mut decoder = flate2::read::ZlibDecoder::new(packed);
    std::io::copy(&mut decoder, &mut plain).ok()?;
    Some(plain)
}

fn put_together(chunks: &[Chunk]) -> Vec<u8> {
    let mut form = b"BEAM".to_vec();
    for (id, data) in chunks {
        form.extend(id);
        form.extend((data.len() as u32).to_be_bytes());
        form.extend(data);
        form.resize(form.len().next_multiple_of(4), 0);
    }
    let size = (form.len() as u32).to_be_bytes();
    [&b"FOR1"[..], &size, &form].concat()
}

fn take_apart(file: &[u8]) -> Vec<Chunk> {
    let found = READ.iter().filter_map(|id| {
        let data = find_chunk(file, **id).ok()??;
        Some((**id, data.to_vec()))
    });
    found.collect()
}

/// Damages a file: its code most often, or other chunks, their order and number, or the container. Chunks and
/// operands of `other` may get in.
#[must_use]
pub(crate) fn damaged(file: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut chunks = take_apart(file);
    if chunks.is_empty() || random.once_in(16) {
        let mut file = file.to_vec();
        damage(&mut file, other, random);
        return file;
    }
    let at = random.below(chunks.len());
    let others = take_apart(other);
    match random.below(12) {
        0 => move_chunks(&mut chunks, &others, random),
        1 => literal(&mut chunks, random),
        2..6 => {
            let same = others.iter().find(|(id, _)| *id == chunks[at].0);
            let same = same.map_or(&[][..], |(_, data)| data);
            damage(&mut chunks[at].1, same, random);
        }
        _ => code(&mut chunks, random),
    }
    put_together(&chunks)
}

/// Drops a chunk, doubles it, swaps it with another, or takes another file's.
fn move_chunks(chunks: &mut Vec<Chunk>, others: &[Chunk], random: &mut Random) {
    let (at, to) = (random.below(chunks.len()), random.below(chunks.len()));
    match random.below(4) {
        0 => drop(chunks.remove(at)),
        1 => chunks.push(chunks[at].clone()),
        2 => {
            let id = chunks[at].0;
            chunks[at].0 = chunks[to].0;
            chunks[to].0 = id;
        }
        _ if others.is_empty() => {}
        _ => {
            let other = random.one(others).clone();
            match chunks.iter_mut().find(|(id, _)| *id == other.0) {
                Some(chunk) => *chunk = other,
                None => chunks.push(other),
            }
        }
    }
}

fn chunk<'c>(chunks: &'c mut [Chunk], id: &[u8; 4]) -> Option<&'c mut Vec<u8>> {
    let chunk = chunks.iter_mut().find(|chunk| chunk.0 == *id);
    chunk.map(|(_, data)| data)
}

/// Damages a literal, and has its size right again.
fn literal(chunks: &mut [Chunk], random: &mut Random) {
    let Some(table) = chunk(chunks, b"LitT") else {
        return;
    };
    let (mut rows, mut at) = (Vec::new(), 8);
    while let Some(size) = table.get(at..at + 4) {
        let size = size.iter().fold(0, |sum, &b| sum << 8 | usize::from(b));
        let Some(row) = table.get(at + 4..at + 4 + size) else {
            break;
        };
        rows.push(row.to_vec());
        at += 4 + size;
    }
    if rows.is_empty() {
        return;
    }
    let (hit, other) = (random.below(rows.len()), random.below(rows.len()));
    let other = rows[other].clone();
    damage(&mut rows[hit], &other, random);
    table.truncate(8);
    for row in rows {
        table.extend((row.len() as u32).to_be_bytes());
        table.extend(row);
    }
}

/// An instruction: its number and the bytes of each operand, those of its list too.
#[derive(Clone)]
struct Instruction {
    number: u8,
    operands: Vec<Vec<u8>>,
}

/// Bytes before the first instruction, from the start of the chunk.
fn code_start(data: &[u8]) -> Option<usize> {
    let size = data.first_chunk::<4>()?;
    Some(4 + u32::from_be_bytes(*size) as usize)
}

fn code(chunks: &mut [Chunk], random: &mut Random) {
    let Some(data) = chunk(chunks, b"Code") else {
        return;
    };
    let Some(start) = code_start(data).filter(|start| *start <= data.len()) else {
        return;
    };
    let mut instructions = instructions(&data[start..]);
    if instructions.is_empty() {
        return;
    }
    for _ in 0..=random.below(3) {
        change(&mut instructions, random);
    }
    data.truncate(start);
    for Instruction { number, operands } in instructions {
        data.push(number);
        data.extend(operands.concat());
    }
}

/// Changes an instruction or an operand, or the order and number of instructions.
fn change(instructions: &mut Vec<Instruction>, random: &mut Random) {
    let at = random.below(instructions.len());
    let another = random.one(instructions).clone();
    match random.below(16) {
        0 if instructions.len() > 1 => drop(instructions.remove(at)),
        1 => instructions.insert(at, another),
        2 => instructions[at] = another,
        3 => instructions[at].number = random.number() as u8,
        4..7 => {
            let number = random.below(usize::from(Op::MAX)) as u8 + 1;
            let arity = Op::from_number(number).map_or(0, Op::arity);
            let operands = (0..arity).map(|_| operand(instructions, random)).collect();
            instructions[at] = Instruction { number, operands };
        }
        _ => {
            let new = operand(instructions, random);
            let operands = &mut instructions[at].operands;
            let old = random.below(operands.len());
            if let Some(old) = operands.get_mut(old) {
                *old = new;
            }
        }
    }
}

/// An operand: one of the file, or one with an extreme number.
fn operand(instructions: &[Instruction], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [u64; 18] = [
        0,
        1,
        2,
        8,
        15,
        16,
        255,
        256,
        1022,
        1023,
        1024,
        2047,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        0xffff_ffff,
        0x7fff_ffff_ffff_ffff,
        u64::MAX,
    ];
    if random.once_in(2) {
        let from = random.one(instructions);
        if !from.operands.is_empty() {
            return random.one(&from.operands).clone();
        }
    }
    let number = *random.one(&NUMBERS);
    let tag = random.below(7) as u8;
    match tag {
        // Tag 6 is no longer in use, and tag 7 says that an operand of several parts follows.
        6 => {
            let kind = random.below(6) as u64 + 1;
            let parts = (0..random.below(4)).map(|_| {
                let number = *random.one(&NUMBERS);
                compact(*random.one(&[0, 3, 4]), number)
            });
            [compact(7, kind), parts.collect::<Vec<_>>().concat()].concat()
        }
        _ if random.once_in(12) => {
            let mut long = vec![0xf8 | tag];
            let bytes = random.below(300);
            long.extend(compact(0, bytes as u64));
            long.extend(std::iter::repeat_n(random.number() as u8, bytes + 9));
            long
        }
        _ => compact(tag, number),
    }
}

/// A compact term with this tag and number, in its longest form where that is easiest.
fn compact(tag: u8, number: u64) -> Vec<u8> {
    match number {
        0..16 => vec![(number as u8) << 4 | tag],
        _ => [&[6 << 5 | 0x18 | tag][..], &number.to_be_bytes()].concat(),
    }
}

/// The instructions of code, as far as they can be told apart.
fn instructions(mut code: &[u8]) -> Vec<Instruction> {
    let mut all = Vec::new();
    while let Some((&number, rest)) = code.split_first() {
        let arity = Op::from_number(number).map(Op::arity);
        let Some((operands, rest)) = arity.and_then(|arity| operands(rest, arity)) else {
            break;
        };
        all.push(Instruction { number, operands });
        code = rest;
    }
    all
}

/// This many operands, and what is behind them.
fn operands(mut code: &[u8], mut count: usize) -> Option<(Vec<Vec<u8>>, &[u8])> {
    let mut operands = Vec::new();
    while count > 0 {
        let (bytes, elements) = operand_bytes(code)?;
        operands.push(code.get(..bytes)?.to_vec());
        code = &code[bytes..];
        count = (count - 1).checked_add(elements)?;
    }
    Some((operands, code))
}

/// How many bytes the first operand has, and how many elements follow it as its list.
fn operand_bytes(code: &[u8]) -> Option<(usize, usize)> {
    let (tag, kind, bytes) = compact_bytes(code)?;
    if tag != 7 {
        return Some((bytes, 0));
    }
    let (_, first, first_bytes) = match kind {
        5 => compact_bytes(&code[bytes..])?,
        _ => compact_bytes(&code[bytes..]).filter(|(tag, ..)| *tag == 0)?,
    };
    let mut end = bytes + first_bytes;
    let more = match kind {
        1 => return Some((end, usize::try_from(first).ok()?)),
        3 => first.checked_mul(2)?,
        5 => 1,
        _ => 0,
    };
    for _ in 0..more {
        end += compact_bytes(code.get(end..)?)?.2;
    }
    Some((end, 0))
}

/// Tag, number (of those up to a word) and length of a compact term.
fn compact_bytes(code: &[u8]) -> Option<(u8, u64, usize)> {
    let &first = code.first()?;
    let tag = first & 7;
    if first & 0x08 == 0 {
        return Some((tag, u64::from(first >> 4), 1));
    }
    if first & 0x10 == 0 {
        let low = *code.get(1)?;
        return Some((tag, u64::from(first >> 5) << 8 | u64::from(low), 2));
    }
    let (head, bytes) = match first >> 5 {
        7 => {
            let (_, more, size) = compact_bytes(code.get(1..)?)?;
            (1 + size, usize::try_from(more).ok()?.checked_add(9)?)
        }
        n => (1, usize::from(n) + 2),
    };
    let number = code.get(head..head.checked_add(bytes)?)?;
    let word = number.iter().fold(0_u64, |sum, &b| sum << 8 | u64::from(b));
    Some((tag, word, head + bytes))
}
