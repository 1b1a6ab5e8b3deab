//! Names of C functions, from the symbols of programs and libraries. Packages strip most of them; what is left is what
//! others link to.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::memory::Mapping;

/// A file with more bytes is not looked at.
const FILE_MAX: u64 = 1 << 30;

/// The functions of a file, in order of address.
#[derive(Debug, Default)]
struct Symbols {
    /// Begin, end and name, as the file has them.
    functions: Vec<(u64, u64, String)>,
    /// Segments: offset in the file, address, bytes.
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// Reads a file; one that cannot be read has no symbols.
    fn read(path: &Path) -> Symbols {
        let is_small = fs::metadata(path).is_ok_and(|of| of.is_file() && of.len() <= FILE_MAX);
        let bytes = if is_small {
            fs::read(path)
        } else {
            Ok(Vec::new())
        };
        bytes.map_or_else(|_| Symbols::default(), |bytes| Symbols::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Symbols {
        let Ok(file) = object::File::parse(bytes) else {
            return Symbols::default();
        };
        let all = file.symbols().chain(file.dynamic_symbols());
        let functions = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        let functions = functions.filter_map(|symbol| {
            let end = symbol.address().checked_add(symbol.size())?;
            Some((symbol.address(), end, symbol.name().ok()?.to_owned()))
        });
        let mut functions: Vec<(u64, u64, String)> = functions.collect();
        functions.sort_unstable();
        functions.dedup_by_key(|(start, ..)| *start);
        let segments = file.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, segment.address(), bytes)
        });
        Symbols {
            functions,
            segments: segments.collect(),
        }
    }

    /// The function at an offset of the file.
    fn at(&self, offset: u64) -> Option<&str> {
        let segment = self.segments.iter().find(|(begin, _, bytes)| {
            offset
                .checked_sub(*begin)
                .is_some_and(|within| within < *bytes)
        });
        let (begin, address, _) = segment?;
        let address = address.checked_add(offset - begin)?;
        let after = self
            .functions
            .partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then_some(name.as_str())
    }
}

/// The C functions of a process.
#[derive(Debug, Default)]
pub struct Libraries {
    mappings: Vec<Mapping>,
    /// The symbols of each file, which are read when they are asked for.
    files: Vec<(String, Symbols)>,
    root: PathBuf,
}

/// A place in C code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'l> {
    /// The file's name, without its folder.
    pub library: &'l str,
    /// The function, where a symbol names it.
    pub function: Option<&'l str>,
}

/// Whether a mapped file is a library, not memory with a name: machine code of Erlang is in such memory.
fn is_library(path: &str) -> bool {
    let is_memory = ["/memfd:", "/dev/"].iter().any(|of| path.starts_with(of));
    !path.is_empty() && !is_memory
}

impl Libraries {
    /// Of a process with these mappings, whose files are below `root`.
    #[must_use]
    pub fn of(mappings: Vec<Mapping>, root: PathBuf) -> Libraries {
        let mut mappings = mappings;
        mappings.retain(|mapping| mapping.is_executable && is_library(&mapping.path));
        Libraries {
            mappings,
            files: Vec::new(),
            root,
        }
    }

    /// The file whose code an address is in, if it is in one; its symbols are not read.
    #[must_use]
    pub fn file_at(&self, address: u64) -> Option<&str> {
        let mut mappings = self.mappings.iter();
        let mapping = mappings.find(|of| (of.start..of.end).contains(&address));
        mapping.map(|of| of.path.as_str())
    }

    /// What is at an address; `None` where no file is mapped.
    pub fn at(&mut self, address: u64) -> Option<Place<'_>> {
        let mapping = self.mappings.iter();
        let mut mapping = mapping.filter(|of| (of.start..of.end).contains(&address));
        let mapping = mapping.next()?.clone();
        let at = match self
            .files
            .iter()
            .position(|(path, _)| *path == mapping.path)
        {
            Some(at) => at,
            None => {
                let below = mapping.path.trim_start_matches('/');
                let symbols = Symbols::read(&self.root.join(below));
                self.files.push((mapping.path.clone(), symbols));
                self.files.len() - 1
            }
        };
        let (path, symbols) = &self.files[at];
        Some(Place {
            library: path.rsplit('/').next().unwrap_or(path),
            function: symbols.at(address - mapping.start + mapping.offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mappings;

    #[inline(never)]
    fn a_function_with_a_symbol() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn functions_are_found_in_a_file_with_symbols() {
        assert_eq!(a_function_with_a_symbol(), 7);
        let own = fs::read_link("/proc/self").expect("a link to a number");
        let own: u32 = own
            .to_str()
            .and_then(|text| text.parse().ok())
            .expect("a number");
        let mut libraries = Libraries::of(mappings(own).expect("readable"), PathBuf::from("/"));
        let address = a_function_with_a_symbol as fn() -> u32 as usize as u64;
        let place = libraries.at(address).expect("it is mapped");
        let name = place.function.unwrap_or_default();
        assert!(name.contains("a_function_with_a_symbol"), "{name}");
        assert_eq!(libraries.at(1), None);
    }

    #[test]
    fn memory_with_a_name_is_no_library() {
        for (path, is_one) in [
            ("/usr/lib/libz.so.1", true),
            ("[vdso]", true),
            ("/memfd:vmem (deleted)", false),
            ("/dev/zero (deleted)", false),
            ("", false),
        ] {
            assert_eq!(is_library(path), is_one, "{path}");
        }
    }

    #[test]
    fn what_is_no_program_has_no_symbols() {
        for bytes in [&b""[..], b"\x7fELF", &[0x7f; 4096]] {
            assert!(Symbols::parse(bytes).functions.is_empty());
        }
    }
}
