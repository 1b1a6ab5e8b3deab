//! Tells the profiler `perf` of Linux which function is at which address of compiled code.
//!
//! A map is a line of text for each function: address and size, hexadecimal, and its name. A dump also has its machine
//! code, where its source lines begin, and when it was compiled, so that memory used again is told apart.
//! Names are those of OTP's emulator: `lists:map/2`, after a dollar sign in a map; stubs are `global::NAME`.
//!
//! Source: `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt` of Linux;
//! `beam_jit_metadata.cpp`, OTP 29. Differs: a function's head has no name of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beamline_formats::name;
use parking_lot::Mutex;

use crate::code::machine_code::Compiled;
use crate::code::op::entry as head;
use crate::loader::module::Module;
use crate::sys::chance::{clock, names};
use crate::sys::code_memory::Marker;
use crate::sys::stderr::complain;

/// What is written for `perf`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// A map.
    pub(crate) map: bool,
    /// A dump.
    pub(crate) dump: bool,
    /// Where the files are: in `/tmp`, if nowhere else.
    pub(crate) folder: Option<PathBuf>,
}

impl Asked {
    /// Anything?
    pub(crate) fn is_some(&self) -> bool {
        self.map || self.dump
    }
}

/// The files that are written.
struct Files {
    map: Option<Map<File>>,
    dump: Option<Dump<File>>,
    _marker: Option<Marker>,
}

static FILES: OnceLock<Mutex<Files>> = OnceLock::new();

/// Opens the files that are asked for. Nothing has been compiled yet.
///
/// # Errors
/// The system's, with the file's name.
pub(super) fn start(asked: &Asked) -> io::Result<()> {
    if !asked.is_some() {
        return Ok(());
    }
    let folder = asked.folder.as_deref().unwrap_or(Path::new("/tmp"));
    let pid = names::own_pid();
    let named = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let map = folder.join(format!("perf-{pid}.map"));
    let map = match asked.map {
        true => Some(Map(create(&map).map_err(|error| named(&map, error))?)),
        false => None,
    };
    let path = folder.join(format!("jit-{pid}.dump"));
    let dump = match asked.dump {
        true => Some(create_dump(&path, pid).map_err(|error| named(&path, error))?),
        false => None,
    };
    let (dump, marker) = dump.unzip();
    let files = Files {
        map,
        dump,
        _marker: marker,
    };
    let _ = FILES.set(Mutex::new(files));
    Ok(())
}

/// A new file, or an old one made empty. The folder may be everybody's, so a link is not followed.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options
        .custom_flags(libc::O_NOFOLLOW)
        .mode(0o644)
        .open(path)
}

fn create_dump(path: &Path, pid: u32) -> io::Result<(Dump<File>, Marker)> {
    let dump = Dump::new(create(path)?, pid, clock::outside_monotonic_ns())?;
    let marker = Marker::new(&dump.out)?;
    Ok((dump, marker))
}

/// Code for `perf`: its name, where it runs, and its bytes.
#[derive(Clone, Copy)]
struct Code<'a> {
    name: &'a str,
    address: u64,
    bytes: &'a [u8],
    /// Where source lines begin, in bytes: their files and numbers.
    lines: &'a [(u32, &'a str, u32)],
}

impl Files {
    fn tell(&mut self, code: Code<'_>) {
        let map = self.map.as_mut().map_or(Ok(()), |map| map.write(code));
        let now = clock::outside_monotonic_ns();
        let dump = self.dump.as_mut();
        let dump = dump.map_or(Ok(()), |dump| dump.write(code, names::own_tid(), now));
        if let Err(error) = map {
            complain!(
                "beamline: the map for perf: {error}; what is compiled from here on is not in it"
            );
            self.map = None;
        }
        if let Err(error) = dump {
            complain!(
                "beamline: the dump for perf: {error}; what is compiled from here on is not in it"
            );
            self.dump = None;
        }
    }
}

/// A function has been compiled, and runs at this address.
pub(super) fn function(module: &Module, entry: u32, compiled: &Compiled, address: u64) {
    let Some(files) = FILES.get() else { return };
    let mfa = module.mfa(entry);
    let named = name::mfa(mfa.module.name(), mfa.function.name(), mfa.arity.into());
    let mut files = files.lock();
    let lines = match files.dump {
        Some(_) => lines(module, entry, compiled),
        None => Vec::new(),
    };
    files.tell(Code {
        name: &named,
        address,
        bytes: &compiled.bytes,
        lines: &lines,
    });
}

/// Code that belongs to no function runs at this address.
pub(super) fn stub(named: &str, address: u64, bytes: &[u8]) {
    let Some(files) = FILES.get() else { return };
    files.lock().tell(Code {
        name: &format!("global::{named}"),
        address,
        bytes,
        lines: &[],
    });
}

/// Where the lines of a function begin, ascending.
pub(super) fn lines<'m>(
    module: &'m Module,
    entry: u32,
    compiled: &Compiled,
) -> Vec<(u32, &'m str, u32)> {
    let first = entry - head::WORDS as u32;
    let prologue = (head::WORDS as u32, 0);
    let all = compiled.starts.iter().chain(&compiled.cold);
    let all = all.chain([&prologue]);
    let mut all: Vec<_> = all
        .filter_map(|&(words, at)| {
            let (file, line) = module.line_at(first + words)?;
            Some((at, file, line))
        })
        .collect();
    all.sort_by_key(|&(at, ..)| at);
    all.dedup_by_key(|&mut (_, file, line)| (file, line));
    all
}

/// A map.
struct Map<W>(W);

impl<W: Write> Map<W> {
    fn write(&mut self, code: Code<'_>) -> io::Result<()> {
        let Code {
            name,
            address,
            bytes,
            ..
        } = code;
        let line = format!("{address:x} {:x} ${name}\n", bytes.len());
        self.0.write_all(line.as_bytes())
    }
}

/// A dump: a header and records, in the byte order of the machine.
struct Dump<W> {
    out: W,
    pid: u32,
    /// Functions so far.
    index: u64,
}

impl<W: Write> Dump<W> {
    /// `JiTD`.
    const MAGIC: u32 = 0x4a69_5444;
    const VERSION: u32 = 1;
    const HEADER_BYTES: u32 = 40;
    /// The number of x86-64 processors in ELF files.
    const MACHINE: u32 = 62;
    const CODE_LOAD: u32 = 0;
    const CODE_DEBUG_INFO: u32 = 2;

    fn new(mut out: W, pid: u32, now_ns: u64) -> io::Result<Dump<W>> {
        let words = [
            Self::MAGIC,
            Self::VERSION,
            Self::HEADER_BYTES,
            Self::MACHINE,
            0,
            pid,
        ];
        let mut header: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        header.extend(now_ns.to_ne_bytes());
        header.extend(0u64.to_ne_bytes());
        out.write_all(&header)?;
        let index = 0;
        Ok(Dump { out, pid, index })
    }

    /// Writes the lines of a function, which come first, and the function.
    fn write(&mut self, code: Code<'_>, tid: u32, now_ns: u64) -> io::Result<()> {
        let mut records = Vec::new();
        if !code.lines.is_empty() {
            record(
                &mut records,
                Self::CODE_DEBUG_INFO,
                now_ns,
                &debug_info(code),
            );
        }
        self.index += 1;
        let load = code_load(code, self.pid, tid, self.index);
        record(&mut records, Self::CODE_LOAD, now_ns, &load);
        self.out.write_all(&records)
    }
}

/// Appends a record.
fn record(to: &mut Vec<u8>, id: u32, now_ns: u64, body: &[u8]) {
    const HEADER_BYTES: usize = 16;
    to.extend(id.to_ne_bytes());
    to.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    to.extend(now_ns.to_ne_bytes());
    to.extend(body);
}

fn code_load(code: Code<'_>, pid: u32, tid: u32, index: u64) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend([pid, tid].iter().flat_map(|word| word.to_ne_bytes()));
    let size = code.bytes.len() as u64;
    let words = [code.address, code.address, size, index];
    body.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    body.extend(code.name.as_bytes());
    body.push(0);
    body.extend(code.bytes);
    body
}

fn debug_info(code: Code<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    // The last line ends where a line of no file begins.
    let end = (code.bytes.len() as u32, "", 0);
    let lines = code.lines.iter().chain([&end]);
    body.extend(code.address.to_ne_bytes());
    body.extend((code.lines.len() as u64 + 1).to_ne_bytes());
    for &(at, file, line) in lines {
        body.extend((code.address + u64::from(at)).to_ne_bytes());
        // A column is not known.
        body.extend([line, 0].iter().flat_map(|word| word.to_ne_bytes()));
        body.extend(file.as_bytes());
        body.push(0);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Code<'_> = Code {
        name: "lists:map/2",
        address: 0x7f00_0000_1230,
        bytes: &[0x49, 0xff, 0xce, 0xc3],
        lines: &[],
    };

    #[test]
    fn a_map_has_a_line_for_each_function() {
        let mut map = Map(Vec::new());
        map.write(CODE).unwrap();
        let name = "'Elixir.My.App':'a b'/0";
        map.write(Code { name, ..CODE }).unwrap();
        let text = String::from_utf8(map.0).unwrap();
        let wanted = "7f0000001230 4 $lists:map/2\n7f0000001230 4 $'Elixir.My.App':'a b'/0\n";
        assert_eq!(text, wanted);
    }

    /// Takes a field of `N` bytes from the front.
    fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
        let (field, rest) = bytes.split_first_chunk().expect("a field");
        *bytes = rest;
        *field
    }

    fn u32_of(bytes: &mut &[u8]) -> u32 {
        u32::from_ne_bytes(take(bytes))
    }

    fn u64_of(bytes: &mut &[u8]) -> u64 {
        u64::from_ne_bytes(take(bytes))
    }

    fn text_of<'b>(bytes: &mut &'b [u8]) -> &'b str {
        let end = bytes.iter().position(|&byte| byte == 0).expect("an end");
        let (text, rest) = bytes.split_at(end);
        *bytes = &rest[1..];
        std::str::from_utf8(text).unwrap()
    }

    #[test]
    fn a_dump_is_a_header_and_records() {
        let mut dump = Dump::new(Vec::new(), 77, 5).unwrap();
        dump.write(CODE, 78, 1000).unwrap();
        let lines = [(0, "lists.erl", 12), (3, "lists.erl", 14)];
        let lines = &lines[..];
        dump.write(Code { lines, ..CODE }, 79, 2000).unwrap();
        let mut rest = &dump.out[..];

        let header: [u32; 6] = std::array::from_fn(|_| u32_of(&mut rest));
        assert_eq!(header, [0x4a69_5444, 1, 40, 62, 0, 77]);
        assert_eq!([u64_of(&mut rest), u64_of(&mut rest)], [5, 0]);

        let load = |rest: &mut &[u8], tid, time, index| {
            let before = rest.len();
            let (id, size) = (u32_of(rest), u32_of(rest));
            assert_eq!((id, u64_of(rest)), (0, time));
            assert_eq!([u32_of(rest), u32_of(rest)], [77, tid]);
            let words = [0x7f00_0000_1230, 0x7f00_0000_1230, 4, index];
            assert_eq!(words.map(|_| u64_of(rest)), words);
            assert_eq!(text_of(rest), "lists:map/2");
            assert_eq!(take(rest), [0x49, 0xff, 0xce, 0xc3]);
            assert_eq!(before - rest.len(), size as usize);
        };
        load(&mut rest, 78, 1000, 1);

        let before = rest.len();
        let (id, size) = (u32_of(&mut rest), u32_of(&mut rest));
        assert_eq!((id, u64_of(&mut rest)), (2, 2000));
        assert_eq!(
            [u64_of(&mut rest), u64_of(&mut rest)],
            [0x7f00_0000_1230, 3]
        );
        let wanted = [(0, 12, "lists.erl"), (3, 14, "lists.erl"), (4, 0, "")];
        for (at, line, file) in wanted {
            assert_eq!(u64_of(&mut rest), 0x7f00_0000_1230 + at);
            assert_eq!([u32_of(&mut rest), u32_of(&mut rest)], [line, 0]);
            assert_eq!(text_of(&mut rest), file);
        }
        assert_eq!(before - rest.len(), size as usize);
        load(&mut rest, 79, 2000, 2);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_link_in_place_of_a_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(create(&link).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
    }
}
