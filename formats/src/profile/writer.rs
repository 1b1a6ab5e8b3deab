//! Writes a profile file piece by piece, with at most one section in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::layout::{
    MAGIC, MODULE_MAX, SECTION_FULL, SECTION_MAX, TEXT_MAX, Tag, VERSION, checksum, put_number,
};
use super::{Cost, Count, Header, Native, Origin, Profile, Type};
use crate::name::stable;

/// A file that appears under its name only when it is whole.
///
/// Until [`AtomicFile::commit`] the bytes are in `NAME.tmp`; dropped before, it is removed.
#[derive(Debug)]
pub struct AtomicFile {
    out: Option<BufWriter<File>>,
    path: PathBuf,
    tmp: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be named `path`, or that what the link `path` points to will be replaced by.
    ///
    /// # Errors
    /// What the operating system says of creating the file with `.tmp` added to its name.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = target(path)?;
        let mut tmp = path.as_os_str().to_owned();
        tmp.push(".tmp");
        let tmp = PathBuf::from(tmp);
        let out = Some(BufWriter::new(File::create(&tmp)?));
        Ok(Self { out, path, tmp })
    }

    /// Gives the file its name; what was there before is replaced.
    ///
    /// # Errors
    /// What the operating system says of the last write or of the renaming.
    pub fn commit(mut self) -> io::Result<()> {
        if let Some(out) = self.out.take() {
            out.into_inner().map_err(io::IntoInnerError::into_error)?;
        }
        fs::rename(&self.tmp, &self.path)
    }
}

/// More links are not followed, as the system does.
const LINKS_MAX: usize = 40;

/// What a link points to in the end, also where that is not there yet; a file itself.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if !path.is_symlink() {
            return Ok(path);
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        path = folder.join(fs::read_link(&path)?);
    }
    Err(rustix::io::Errno::LOOP.into())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Some(out) => out.write(bytes),
            None => Err(io::Error::other("the file is closed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            // Nobody waits for this file any more; a leftover is harmless.
            let _ = fs::remove_file(&self.tmp);
        }
    }
}

/// More patterns are left out of a header, and a longer one than atoms allow does not match.
const PATTERNS_MAX: usize = 1_000;

/// Writes one run's profile: modules, functions and processes before what names them.
///
/// Each of the first three returns the index by which later calls name it. An index that was not
/// returned before is refused with [`io::ErrorKind::InvalidInput`].
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    tag: Tag,
    payload: Vec<u8>,
    runs: u32,
    modules: u32,
    functions: u32,
    processes: u32,
    counts: u64,
    /// The process of each node written: a parent must be of the same.
    node_process: Vec<u32>,
}

impl Writer<AtomicFile> {
    /// Starts a profile file that appears under `path` when finished.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        Writer::new(AtomicFile::create(path)?, header)
    }

    /// Writes the end and gives the file its name.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn commit(self) -> io::Result<()> {
        self.finish()?.commit()
    }
}

impl<W: Write> Writer<W> {
    /// Starts a profile with its header.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Self {
            out,
            tag: Tag::Head,
            payload: Vec::with_capacity(SECTION_FULL),
            runs: 0,
            modules: 0,
            functions: 0,
            processes: 0,
            counts: 0,
            node_process: Vec::new(),
        };
        writer.run(header)?;
        Ok(writer)
    }

    /// Starts another run of the same type: the processes that follow are of this one.
    ///
    /// # Errors
    /// What the output returns.
    pub fn run(&mut self, header: &Header) -> io::Result<()> {
        next(&mut self.runs)?;
        // One header fills one section.
        self.flush_section()?;
        self.tag = Tag::Head;
        self.number(match header.kind {
            Type::CallCount => 0,
            Type::CallTime => 1,
            Type::CallMemory => 2,
        });
        // The command line is for the reader's eye; one that fills a section is cut. So are patterns.
        let shown = header.command.len().min(SECTION_MAX / TEXT_MAX / 2);
        self.number(shown as u64);
        for argument in &header.command[..shown] {
            self.text(argument);
        }
        self.text(&header.host);
        self.text(&header.otp);
        self.number(header.run_ns);
        self.number(u64::from(header.os_pid));
        self.number(header.processes);
        let patterns = &header.patterns[..header.patterns.len().min(PATTERNS_MAX)];
        self.number(patterns.len() as u64);
        for pattern in patterns {
            self.text(&pattern.to_string());
        }
        self.number(header.tracing.inside_ps);
        self.number(header.tracing.outside_ps);
        self.number(header.tracing.again_ps);
        self.text(&header.node);
        self.flush_section()
    }

    /// Adds a module; returns its index.
    ///
    /// # Errors
    /// What the output returns.
    pub fn module(&mut self, name: &str, origin: Origin) -> io::Result<u32> {
        self.section(Tag::Modules)?;
        let name = stable(name);
        self.text(&name[..name.floor_char_boundary(MODULE_MAX)]);
        self.number(origin.number());
        next(&mut self.modules)
    }

    /// Adds a function of a module; returns its index.
    ///
    /// # Errors
    /// What the output returns.
    pub fn function(
        &mut self,
        module: u32,
        name: &str,
        arity: u32,
        native: Option<Native>,
    ) -> io::Result<u32> {
        known(module, self.modules)?;
        self.section(Tag::Functions)?;
        self.number(u64::from(module));
        self.text(name);
        self.number(u64::from(arity));
        self.number(native.map_or(0, Native::number));
        next(&mut self.functions)
    }

    /// Adds a process, with the reductions of its whole life; returns its index.
    ///
    /// # Errors
    /// What the output returns.
    pub fn process(&mut self, pid: &str, name: &str, reductions: u64) -> io::Result<u32> {
        self.section(Tag::Processes)?;
        self.text(pid);
        self.text(name);
        self.number(reductions);
        next(&mut self.processes)
    }

    /// Adds the cost of a function in a process, or in all where calls are not told apart.
    ///
    /// # Errors
    /// What the output returns.
    pub fn count(&mut self, count: &Count) -> io::Result<()> {
        known(count.function, self.functions)?;
        known(count.run, self.runs)?;
        if let Some(process) = count.process {
            known(process, self.processes)?;
        }
        self.section(Tag::Counts)?;
        self.number(u64::from(count.function));
        self.optional(count.process);
        if count.process.is_none() {
            self.number(u64::from(count.run));
        }
        self.cost(count.cost);
        self.counts += 1;
        Ok(())
    }

    /// Adds a node to a process's call tree, below `parent`; returns its index.
    ///
    /// # Errors
    /// What the output returns.
    pub fn node(
        &mut self,
        process: u32,
        parent: Option<u32>,
        function: u32,
        cost: Cost,
        reductions: u64,
    ) -> io::Result<u32> {
        known(process, self.processes)?;
        known(function, self.functions)?;
        if let Some(parent) = parent {
            let of = self.node_process.get(parent as usize);
            if of != Some(&process) {
                return Err(refused("a node's parent is not of the same process"));
            }
        }
        self.section(Tag::Nodes)?;
        self.number(u64::from(process));
        self.optional(parent);
        self.number(u64::from(function));
        self.cost(cost);
        self.number(reductions);
        let index = u32::try_from(self.node_process.len()).map_err(|_| full())?;
        self.node_process.push(process);
        Ok(index)
    }

    /// Writes the end; without it a file is known to be cut short.
    ///
    /// # Errors
    /// What the output returns.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_section()?;
        self.tag = Tag::End;
        let nodes = self.node_process.len() as u64;
        for total in [
            u64::from(self.modules),
            u64::from(self.functions),
            u64::from(self.processes),
            self.counts,
            nodes,
        ] {
            self.number(total);
        }
        self.flush_section()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn section(&mut self, tag: Tag) -> io::Result<()> {
        if self.tag != tag || self.payload.len() >= SECTION_FULL {
            self.flush_section()?;
            self.tag = tag;
        }
        Ok(())
    }

    fn flush_section(&mut self) -> io::Result<()> {
        if self.payload.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(self.payload.len()).map_err(|_| full())?;
        let tag = self.tag.name().as_bytes();
        let length = length.to_le_bytes();
        let sum = checksum(&[tag, &length, &self.payload]);
        self.out.write_all(tag)?;
        self.out.write_all(&length)?;
        self.out.write_all(&sum.to_le_bytes())?;
        self.out.write_all(&self.payload)?;
        self.payload.clear();
        Ok(())
    }

    fn number(&mut self, value: u64) {
        put_number(&mut self.payload, value);
    }

    fn optional(&mut self, index: Option<u32>) {
        self.number(index.map_or(0, |index| u64::from(index) + 1));
    }

    fn text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(TEXT_MAX)];
        self.number(text.len() as u64);
        self.payload.extend_from_slice(text.as_bytes());
    }

    fn cost(&mut self, cost: Cost) {
        self.number(cost.calls);
        self.number(cost.time_ns);
        self.number(cost.words);
        self.number(cost.dirty_wait_ns);
        self.number(cost.tracing_ns);
    }
}

impl Profile {
    /// Writes a profile, of one run or merged.
    ///
    /// # Errors
    /// What `out` returns; [`io::ErrorKind::InvalidInput`] for a profile without a run, or whose
    /// processes are not in the order of their runs.
    pub fn write<W: Write>(&self, out: W) -> io::Result<W> {
        let header = self.runs.first().ok_or_else(|| refused("no run"))?;
        let mut writer = Writer::new(out, header)?;
        let mut modules: HashMap<&str, u32> = HashMap::new();
        for function in &self.functions {
            let index = match modules.entry(&function.module) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let origin = self.origin(&function.module);
                    *new.insert(writer.module(&function.module, origin)?)
                }
            };
            let native = self.native(function);
            writer.function(index, &function.name, function.arity, native)?;
        }
        let mut run = 0;
        for process in &self.processes {
            let wanted = process.run as usize;
            if wanted < run || wanted >= self.runs.len() {
                return Err(refused("the processes are not in the order of their runs"));
            }
            for header in &self.runs[run + 1..=wanted] {
                writer.run(header)?;
            }
            run = wanted;
            writer.process(&process.pid, &process.name, process.reductions)?;
        }
        for header in &self.runs[run + 1..] {
            writer.run(header)?;
        }
        for count in &self.counts {
            writer.count(count)?;
        }
        for node in &self.nodes {
            writer.node(
                node.process,
                node.parent,
                node.function,
                node.cost,
                node.reductions,
            )?;
        }
        writer.finish()
    }
}

fn next(count: &mut u32) -> io::Result<u32> {
    let index = *count;
    *count = count.checked_add(1).ok_or_else(full)?;
    Ok(index)
}

fn known(index: u32, count: u32) -> io::Result<()> {
    if index < count {
        Ok(())
    } else {
        Err(refused("an index names nothing that was written before"))
    }
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn full() -> io::Error {
    refused("more entries than the file's indices can name")
}
