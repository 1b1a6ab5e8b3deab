//! Reads a profile file, and checks everything in it.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::layout::{
    MAGIC, MODULE_MAX, NATIVE_SINCE, NODE_SINCE, OLDEST, SECTION_HEAD, SECTION_MAX, TRACING_SINCE,
    Tag, VERSION, checksum,
};
use super::{
    Cost, Count, Function, Header, Native, Node, Origin, Pattern, Process, Profile, TracingCost,
    Type,
};
use crate::name::stable;

/// Why a profile file was refused: one line, with the section and the offset in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The section's tag; `file` outside of any.
    pub section: &'static str,
    /// Bytes from the start of the file.
    pub offset: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReadError {
            section,
            offset,
            reason,
        } = self;
        write!(f, "section {}, offset {offset}: {reason}", section.trim())
    }
}

impl std::error::Error for ReadError {}

/// Where a file has its version, in bytes from its start.
const VERSION_AT: usize = MAGIC.len();

impl ReadError {
    /// With what to do about it.
    fn told(&self) -> String {
        match (self.section, self.offset) {
            ("file", 0) => self.reason.clone(),
            ("file", VERSION_AT) => {
                format!(
                    "a profile of {}: use the beamline that made it, or make it again",
                    self.reason
                )
            }
            _ => format!("the profile is damaged: {self}; make it again"),
        }
    }
}

impl Profile {
    /// Does this file begin as a profile?
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        let file = File::open(path).and_then(|file| file.read_exact_at(&mut start, 0));
        file.is_ok() && start == MAGIC
    }

    /// Reads a profile file.
    ///
    /// # Errors
    /// One line with the path; for a damaged file also the section and the offset.
    pub fn read(path: &Path) -> Result<Profile, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Profile::decode(&bytes).map_err(|e| format!("{}: {}", path.display(), e.told()))
    }

    /// Decodes the bytes of a profile file.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Profile, ReadError> {
        let fail = |offset, reason: &str| Err(error("file", offset, reason));
        if !bytes.starts_with(&MAGIC) {
            return fail(0, "not a Beamline profile");
        }
        let Some(version) = bytes.get(8..12).and_then(|v| v.try_into().ok()) else {
            return fail(bytes.len(), "ends within the version");
        };
        let version = u32::from_le_bytes(version);
        if !(OLDEST..=VERSION).contains(&version) {
            let reason =
                format!("version {version}, this program reads versions {OLDEST} to {VERSION}");
            return fail(VERSION_AT, &reason);
        }
        let mut state = State {
            version,
            ..State::default()
        };
        let mut at = 12;
        while at < bytes.len() {
            if state.ended {
                return fail(at, "more bytes after the end");
            }
            let (tag, payload) = section(bytes, at)?;
            at += SECTION_HEAD;
            let mut cursor = Cursor {
                tag: tag.name(),
                bytes: payload,
                base: at,
                at: 0,
            };
            state.read(tag, &mut cursor)?;
            at += payload.len();
        }
        if !state.ended {
            return fail(at, "ends without its end section: the file is cut short");
        }
        Ok(state.profile)
    }
}

fn error(section: &'static str, offset: usize, reason: &str) -> ReadError {
    ReadError {
        section,
        offset,
        reason: reason.to_owned(),
    }
}

/// Finds the section at `at` and checks its length and checksum.
fn section(bytes: &[u8], at: usize) -> Result<(Tag, &[u8]), ReadError> {
    let word = |i: usize| -> Option<[u8; 4]> { bytes.get(i..i + 4)?.try_into().ok() };
    let (Some(tag), Some(length), Some(sum)) = (word(at), word(at + 4), word(at + 8)) else {
        return Err(error("file", at, "ends within a section's head"));
    };
    let Some(known) = Tag::from_bytes(tag) else {
        let reason = format!("unknown section {}", tag.escape_ascii());
        return Err(error("file", at, &reason));
    };
    let size = u32::from_le_bytes(length) as usize;
    let start = at + SECTION_HEAD;
    if size > SECTION_MAX {
        let reason = format!("length {size} is above {SECTION_MAX}");
        return Err(error(known.name(), at + 4, &reason));
    }
    let Some(payload) = bytes.get(start..start + size) else {
        let reason = format!("{size} bytes promised, {} there", bytes.len() - start);
        return Err(error(known.name(), start, &reason));
    };
    if checksum(&[&tag, &length, payload]) != u32::from_le_bytes(sum) {
        return Err(error(known.name(), start, "checksum does not match"));
    }
    Ok((known, payload))
}

/// Reads numbers and texts of one section's payload.
struct Cursor<'a> {
    tag: &'static str,
    bytes: &'a [u8],
    /// Offset of the payload in the file.
    base: usize,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn fail<T>(&self, reason: &str) -> Result<T, ReadError> {
        Err(error(self.tag, self.base + self.at, reason))
    }

    fn is_done(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return self.fail("ends within a number");
            };
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return self.fail("a number is above 64 bits");
            }
            value |= bits << shift;
            self.at += 1;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.fail("a number is above 64 bits")
    }

    fn small(&mut self) -> Result<u32, ReadError> {
        let value = self.number()?;
        u32::try_from(value).or_else(|_| self.fail(&format!("{value} is above 32 bits")))
    }

    fn text(&mut self) -> Result<&'a str, ReadError> {
        let length = self.number()?;
        let text = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes[self.at..].get(..length));
        let Some(text) = text else {
            return self.fail("ends within a text");
        };
        let Ok(valid) = str::from_utf8(text) else {
            return self.fail("a text is not UTF-8");
        };
        self.at += text.len();
        Ok(valid)
    }

    /// An index that must be below `count`.
    fn index(&mut self, what: &str, count: usize) -> Result<u32, ReadError> {
        let index = self.small()?;
        if (index as usize) < count {
            return Ok(index);
        }
        self.fail(&format!("{what} {index} of {count}"))
    }

    /// An index plus one that must be at most `count`; 0 is none.
    fn optional(&mut self, what: &str, count: usize) -> Result<Option<u32>, ReadError> {
        Ok(self.index(what, count.saturating_add(1))?.checked_sub(1))
    }

    /// A number that files have since `version`, in one of `of`; 0 before.
    fn number_since(&mut self, version: u32, of: u32) -> Result<u64, ReadError> {
        if of >= version { self.number() } else { Ok(0) }
    }

    fn cost(&mut self, version: u32) -> Result<Cost, ReadError> {
        Ok(Cost {
            calls: self.number()?,
            time_ns: self.number()?,
            words: self.number()?,
            dirty_wait_ns: self.number_since(NATIVE_SINCE, version)?,
            tracing_ns: self.number_since(TRACING_SINCE, version)?,
        })
    }

    fn native(&mut self) -> Result<Option<Native>, ReadError> {
        match self.number()? {
            0 => Ok(None),
            number => match Native::of(number) {
                None => self.fail(&format!("unknown kind of native code {number}")),
                native => Ok(native),
            },
        }
    }
}

#[derive(Default)]
struct State {
    profile: Profile,
    modules: Vec<(String, Origin)>,
    /// The file's.
    version: u32,
    ended: bool,
}

impl State {
    fn read(&mut self, tag: Tag, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        if tag != Tag::Head && self.profile.runs.is_empty() {
            return cursor.fail("the header must come first");
        }
        match tag {
            Tag::Head => {
                let header = header(cursor, self.version)?;
                if self.profile.kind().is_some_and(|kind| kind != header.kind) {
                    return cursor.fail("the runs are of different types");
                }
                self.profile.runs.push(header);
            }
            Tag::End => {
                self.end(cursor)?;
                self.ended = true;
            }
            _ => {
                while !cursor.is_done() {
                    self.entry(tag, cursor)?;
                }
            }
        }
        if cursor.is_done() {
            Ok(())
        } else {
            cursor.fail("more bytes than the section needs")
        }
    }

    fn entry(&mut self, tag: Tag, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let profile = &mut self.profile;
        match tag {
            Tag::Head | Tag::End => {}
            Tag::Modules => {
                let name = cursor.text()?;
                // Functions have copies of it: a long one must not be had for a few bytes.
                if name.len() > MODULE_MAX {
                    return cursor.fail("a module's name is too long");
                }
                let number = cursor.number()?;
                let Some(origin) = Origin::of(number) else {
                    return cursor.fail(&format!("unknown origin {number}"));
                };
                self.modules.push((stable(name).to_owned(), origin));
            }
            Tag::Functions => {
                let module = cursor.index("module", self.modules.len())?;
                let (module, origin) = self.modules[module as usize].clone();
                if origin != Origin::App {
                    profile.origins.insert(module.clone(), origin);
                }
                let function = Function {
                    module,
                    name: cursor.text()?.to_owned(),
                    arity: cursor.small()?,
                };
                if self.version >= NATIVE_SINCE
                    && let Some(native) = cursor.native()?
                {
                    profile.add_native(&function, native);
                }
                profile.functions.push(function);
            }
            Tag::Processes => profile.processes.push(Process {
                run: u32::try_from(profile.runs.len() - 1)
                    .or_else(|_| cursor.fail("too many runs"))?,
                pid: cursor.text()?.to_owned(),
                name: cursor.text()?.to_owned(),
                reductions: cursor.number()?,
            }),
            Tag::Counts => {
                let count = self.count(cursor)?;
                self.profile.counts.push(count);
            }
            Tag::Nodes => {
                let process = cursor.index("process", profile.processes.len())?;
                let parent = cursor.optional("parent node", profile.nodes.len())?;
                if parent.is_some_and(|p| profile.nodes[p as usize].process != process) {
                    return cursor.fail("a node's parent is of another process");
                }
                profile.nodes.push(Node {
                    process,
                    parent,
                    function: cursor.index("function", profile.functions.len())?,
                    cost: cursor.cost(self.version)?,
                    reductions: cursor.number()?,
                    wait_ns: 0,
                });
            }
        }
        Ok(())
    }

    fn count(&self, cursor: &mut Cursor<'_>) -> Result<Count, ReadError> {
        let profile = &self.profile;
        let function = cursor.index("function", profile.functions.len())?;
        let process = cursor.optional("process", profile.processes.len())?;
        let run = match process {
            Some(process) => profile.processes[process as usize].run,
            None if self.version >= NODE_SINCE => cursor.index("run", profile.runs.len())?,
            None => 0,
        };
        Ok(Count {
            function,
            run,
            process,
            cost: cursor.cost(self.version)?,
        })
    }

    fn end(&self, cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
        let profile = &self.profile;
        for (what, count) in [
            ("modules", self.modules.len()),
            ("functions", profile.functions.len()),
            ("processes", profile.processes.len()),
            ("counts", profile.counts.len()),
            ("nodes", profile.nodes.len()),
        ] {
            let promised = cursor.number()?;
            if promised != count as u64 {
                return cursor.fail(&format!("{promised} {what} promised, {count} read"));
            }
        }
        Ok(())
    }
}

fn header(cursor: &mut Cursor<'_>, version: u32) -> Result<Header, ReadError> {
    let kind = match cursor.number()? {
        0 => Type::CallCount,
        1 => Type::CallTime,
        2 => Type::CallMemory,
        other => return cursor.fail(&format!("unknown type {other}")),
    };
    let mut command = Vec::new();
    for _ in 0..cursor.number()? {
        command.push(cursor.text()?.to_owned());
    }
    Ok(Header {
        kind,
        command,
        host: cursor.text()?.to_owned(),
        otp: cursor.text()?.to_owned(),
        run_ns: cursor.number()?,
        os_pid: cursor.small()?,
        processes: cursor.number()?,
        patterns: patterns(cursor)?,
        tracing: TracingCost {
            inside_ps: cursor.number_since(TRACING_SINCE, version)?,
            outside_ps: cursor.number_since(TRACING_SINCE, version)?,
            again_ps: cursor.number_since(TRACING_SINCE, version)?,
        },
        node: match version >= NODE_SINCE {
            true => cursor.text()?.to_owned(),
            false => String::new(),
        },
    })
}

fn patterns(cursor: &mut Cursor<'_>) -> Result<Vec<Pattern>, ReadError> {
    let mut patterns = Vec::new();
    for _ in 0..cursor.number()? {
        match cursor.text()?.parse() {
            Ok(pattern) => patterns.push(pattern),
            Err(_) => return cursor.fail("a pattern is malformed"),
        }
    }
    Ok(patterns)
}
