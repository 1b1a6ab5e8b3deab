//! Files for tests: a small writer of `.beam` files of every shape, and the files of an OTP.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use beamline_runtime_otp_home::{self as otp_home, Lookup};

/// One compact term: tag and number.
pub fn term(tag: u8, value: i128) -> Vec<u8> {
    match value {
        0..16 => vec![(value as u8) << 4 | tag],
        16..2048 => vec![((value >> 8) as u8) << 5 | 0x08 | tag, value as u8],
        _ => long_term(tag, &minimal(value)),
    }
}

/// A compact term whose number has these bytes, of which there are at least two.
pub fn long_term(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = match bytes.len() {
        n @ 2..=8 => vec![(n as u8 - 2) << 5 | 0x18 | tag],
        n => [&[0xf8 | tag][..], &term(0, n as i128 - 9)].concat(),
    };
    out.extend_from_slice(bytes);
    out
}

/// The shortest two's complement of two bytes or more.
fn minimal(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let redundant = |w: &&[u8]| matches!((w[0], w[1] & 0x80), (0, 0) | (0xff, 0x80));
    let skip = bytes.windows(2).take_while(redundant).count().min(14);
    bytes[skip..].to_vec()
}

/// An unsigned number.
pub fn u(value: i128) -> Vec<u8> {
    term(0, value)
}

/// An integer.
pub fn i(value: i128) -> Vec<u8> {
    term(1, value)
}

/// An atom, by its row.
pub fn a(value: i128) -> Vec<u8> {
    term(2, value)
}

/// An X register.
pub fn x(value: i128) -> Vec<u8> {
    term(3, value)
}

/// A Y register.
pub fn y(value: i128) -> Vec<u8> {
    term(4, value)
}

/// A label.
pub fn f(value: i128) -> Vec<u8> {
    term(5, value)
}

/// A term of an extended kind, with what follows it.
pub(crate) fn ext(kind: i128, rest: &[Vec<u8>]) -> Vec<u8> {
    [term(7, kind), rest.concat()].concat()
}

/// A list of operands.
pub fn list(args: &[Vec<u8>]) -> Vec<u8> {
    [term(7, 1), u(args.len() as i128), args.concat()].concat()
}

/// A literal, by its row.
pub(crate) fn lit(row: i128) -> Vec<u8> {
    ext(4, &[u(row)])
}

/// Numbers of 32 bits, as chunks have them.
pub fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

/// A file of these chunks.
pub fn file(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut form = b"BEAM".to_vec();
    for (id, data) in chunks {
        form.extend_from_slice(*id);
        form.extend_from_slice(&(data.len() as u32).to_be_bytes());
        form.extend_from_slice(data);
        form.resize(form.len().next_multiple_of(4), 0);
    }
    let mut out = b"FOR1".to_vec();
    out.extend_from_slice(&(form.len() as u32).to_be_bytes());
    out.extend_from_slice(&form);
    out
}

/// Packed, as literals are.
pub fn zlib(data: &[u8]) -> Vec<u8> {
    let mut z = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    z.write_all(data).expect("memory");
    z.finish().expect("memory")
}

/// Packed, as files may be.
pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut z = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    z.write_all(data).expect("memory");
    z.finish().expect("memory")
}

/// The parts of the sample module, to be changed by a test before it makes the file.
pub struct Sample {
    /// Identifiers and data.
    pub chunks: Vec<(&'static [u8; 4], Vec<u8>)>,
}

/// The atoms of the sample, from row 1 on.
pub const ATOMS: &[&str] = &[
    "sample",
    "f",
    "g",
    "erlang",
    "+",
    "-f/1-fun-0-",
    "string",
    "Ünïted 'atom'",
    "true",
    "user",
    "name",
    "age",
    "integer",
    "copy",
];

impl Default for Sample {
    fn default() -> Self {
        Self::new()
    }
}

impl Sample {
    /// The sample, whole.
    pub fn new() -> Sample {
        let header = [16, 0, 191, 8, 3];
        let code = [words(&header), sample_code()].concat();
        let literal = b"\x83k\x00\x02hi";
        let literals = [words(&[1, literal.len() as i32]), literal.to_vec()].concat();
        let lines = [
            words(&[0, 1, 2, 3, 1]),
            [i(7), a(1), i(300), i(70_000)].concat(),
            b"\x00\x09inc/x.hrl".to_vec(),
        ];
        let types = [
            words(&[4, 3]),
            vec![0x1f, 0xff],
            [
                &[0x60, 0x20][..],
                &0i64.to_be_bytes(),
                &255i64.to_be_bytes(),
            ]
            .concat(),
            vec![0x80, 0x03, 7],
        ];
        let record = [vec![5], a(10), a(9), list(&[a(11), u(0), a(12), i(-1)])];
        Sample {
            chunks: vec![
                (b"AtU8", long_atoms(ATOMS)),
                (b"Code", code),
                (b"StrT", b"abc\x01\xff".to_vec()),
                (b"ImpT", words(&[2, 4, 5, 2, 1, 2, 1])),
                (b"ExpT", words(&[1, 2, 1, 2])),
                (b"LocT", words(&[2, 6, 2, 6, 3, 2, 4])),
                (b"FunT", words(&[1, 6, 2, 6, 0, 1, 12345])),
                (b"LitT", [words(&[0]), literals].concat()),
                (b"Line", lines.concat()),
                (b"Type", types.concat()),
                (b"Recs", [words(&[0, 1, 2]), record.concat()].concat()),
                (b"Attr", b"\x83j".to_vec()),
            ],
        }
    }

    /// This sample with other `data` in chunk `id`.
    pub fn set(mut self, id: &'static [u8; 4], data: Vec<u8>) -> Sample {
        self.chunks.retain(|(chunk, _)| *chunk != id);
        self.chunks.push((id, data));
        self
    }

    /// The data of a chunk.
    pub fn get(&self, id: &[u8; 4]) -> &[u8] {
        let chunk = self.chunks.iter().find(|(chunk, _)| *chunk == id);
        &chunk.expect("a chunk of the sample").1
    }

    /// The file of these parts.
    pub fn file(&self) -> Vec<u8> {
        file(&self.chunks)
    }
}

/// Chunk `AtU8`, as OTP 28 and later write it.
pub(crate) fn long_atoms(atoms: &[&str]) -> Vec<u8> {
    let mut out = words(&[-(atoms.len() as i32)]);
    for atom in atoms {
        out.extend(u(atom.len() as i128));
        out.extend_from_slice(atom.as_bytes());
    }
    out
}

/// Chunk `AtU8`, with a length of one byte for each atom.
pub fn short_atoms(atoms: &[&str]) -> Vec<u8> {
    let mut out = words(&[atoms.len() as i32]);
    for atom in atoms {
        out.push(atom.len() as u8);
        out.extend_from_slice(atom.as_bytes());
    }
    out
}

/// An instruction's bytes.
pub fn op(number: u8, args: &[Vec<u8>]) -> Vec<u8> {
    [vec![number], args.concat()].concat()
}

fn sample_code() -> Vec<u8> {
    let big = term(1, 1 << 90);
    let alloc = ext(3, &[u(2), u(0), u(4), u(1), u(1)]);
    let seg = [a(7), u(1), u(8), a(0), u(0), i(3)];
    let typed = ext(5, &[x(0), u(1)]);
    [
        op(1, &[u(1)]),
        op(153, &[u(1)]),
        op(2, &[a(1), a(2), u(1)]),
        op(1, &[u(2)]),
        op(13, &[u(1), alloc, u(1)]),
        op(125, &[f(0), u(1), u(0), typed, i(-5), x(0)]),
        op(64, &[big, x(1)]),
        op(64, &[lit(0), y(0)]),
        op(96, &[x(0), ext(2, &[u(3)])]),
        op(59, &[x(0), f(7), list(&[a(8), f(7), i(3000), f(7)])]),
        op(1, &[u(7)]),
        op(171, &[u(0), x(2), list(&[x(0)])]),
        op(153, &[u(2)]),
        op(7, &[u(1), u(1)]),
        op(177, &[f(0), u(0), u(2), u(8), x(0), list(&seg)]),
        op(132, &[f(7), x(0), u(12), u(3)]),
        op(5, &[u(2), f(4), u(1)]),
        op(1, &[u(3)]),
        op(153, &[u(3)]),
        op(2, &[a(1), a(3), u(2)]),
        op(1, &[u(4)]),
        op(19, &[]),
        op(1, &[u(5)]),
        op(2, &[a(1), a(6), u(2)]),
        op(1, &[u(6)]),
        op(64, &[a(0), x(0)]),
        op(19, &[]),
        op(3, &[]),
    ]
    .concat()
}

/// Code of one function whose only instruction has these bytes.
pub fn with_code(code: Vec<u8>) -> Sample {
    let one = [
        words(&[16, 0, 191, 8, 1]),
        op(1, &[u(1)]),
        op(2, &[a(1), a(2), u(1)]),
        op(1, &[u(2)]),
        code,
        op(3, &[]),
    ];
    Sample::new()
        .set(b"Code", one.concat())
        .set(b"FunT", vec![])
        .set(b"LocT", vec![])
}

/// All `.beam` files under the folders of `BEAMLINE_OTP`, or else of the OTP that is found, in order; none where there is
/// no OTP.
pub fn real_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    match std::env::var_os(otp_home::ENV) {
        Some(dirs) => std::env::split_paths(&dirs).for_each(|dir| collect(&dir, &mut files)),
        None => {
            if let Ok(otp) = otp_home::find(&Lookup::of_process(None)) {
                collect(&otp.root, &mut files);
            }
        }
    }
    files.sort();
    files
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "beam") {
            files.push(path);
        }
    }
}
