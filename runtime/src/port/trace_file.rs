//! The driver `trace_file_drv`, which writes what its port is sent to a file, or to several files one after another.
//! Each piece follows a zero byte and its length in four bytes. Source: `trace_file_drv.c` of `runtime_tools`, OTP 29.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;

use super::driver::{Context, Driver, End};
use super::open::Error;
use crate::sched::timers;
use crate::sys::chance::paths;

/// Bytes that are written at once: eight of C's `BUFSIZ`.
const BUFFER_BYTES: usize = 8 * 8192;

/// Bytes of the longest path (`MAXPATHLEN`).
const LONGEST_PATH: usize = 4096;

/// A file name with a number in it: `0` to `[last]`, and from the start again.
#[derive(Clone)]
struct Name {
    before: Vec<u8>,
    digits: Vec<u8>,
    after: Vec<u8>,
    number: u32,
    last: u32,
}

impl Name {
    fn path(&self) -> Vec<u8> {
        [&self.before[..], &self.digits, &self.after].concat()
    }

    fn next(&mut self) {
        self.number = if self.number >= self.last {
            0
        } else {
            self.number + 1
        };
        self.digits = self.number.to_string().into_bytes();
    }
}

/// How files follow each other.
struct Wrap {
    now: Name,
    /// The next one to be deleted.
    oldest: Name,
    /// Bytes at which a file is full, if it is not full by time.
    size: u64,
    /// Milliseconds of a file; 0: it is full by size.
    time_ms: u32,
    /// Files there will be before the first is deleted.
    left: u32,
    written: u64,
}

/// A port of the driver.
pub(super) struct TraceFile {
    file: File,
    buffer: Vec<u8>,
    wrap: Option<Wrap>,
}

/// What a command says: the number of `w`, if it is there, and the name of the file.
fn parse(arguments: &[u8]) -> Option<(Option<[u32; 4]>, &[u8])> {
    let mut rest = arguments.strip_prefix(b" ")?.trim_ascii_start();
    let mut numbers = None;
    if let Some(behind) = rest.strip_prefix(b"w") {
        rest = behind;
        let mut found = [0; 4];
        for number in &mut found {
            rest = rest.trim_ascii_start();
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (text, behind) = rest.split_at(digits);
            *number = std::str::from_utf8(text).ok()?.parse().ok()?;
            rest = behind;
        }
        numbers = Some(found);
        rest = rest.trim_ascii_start();
    }
    let name = rest.strip_prefix(b"n ")?;
    let tail = numbers.map_or(0, |numbers| numbers[3] as usize);
    (tail < name.len()).then_some((numbers, name))
}

fn create(path: &[u8]) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(true).create(true).mode(0o777);
    options.open(OsStr::from_bytes(path))
}

fn errno(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}

impl TraceFile {
    /// Opens the file that a command names.
    pub(super) fn open(arguments: &[u8]) -> Result<TraceFile, Error> {
        // Both names of a run's folder are as long, and so the place of the number in the name stays.
        let arguments = paths::real(arguments.to_vec());
        let (numbers, name) = parse(&arguments).ok_or(Error::Badarg)?;
        let counter = numbers.map_or(0, |[_, count, ..]| count.to_string().len());
        if name.len() + counter >= LONGEST_PATH {
            return Err(Errno::NAMETOOLONG.into());
        }
        let wrap = numbers.map(|[size, count, time_ms, tail]| {
            let (before, after) = name.split_at(tail as usize);
            let mut now = Name {
                before: before.to_vec(),
                digits: Vec::new(),
                after: after.to_vec(),
                number: count,
                last: count,
            };
            now.next();
            Wrap {
                oldest: now.clone(),
                now,
                size: size.into(),
                time_ms,
                left: count,
                written: 0,
            }
        });
        let path = wrap
            .as_ref()
            .map_or_else(|| name.to_vec(), |wrap| wrap.now.path());
        Ok(TraceFile {
            file: create(&path)?,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            wrap,
        })
    }

    /// Writes all of it; a file that takes part of it is full.
    fn write_out(&mut self, data: &[u8]) -> Result<(), Errno> {
        loop {
            match self.file.write(data) {
                Ok(n) if n == data.len() => return Ok(()),
                Ok(_) => return Err(Errno::NOSPC),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(errno(&e)),
            }
        }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write_out(&buffer);
        self.buffer = buffer;
        if written.is_ok() {
            self.buffer.clear();
        }
        written
    }

    /// Puts `data` into the buffer, which is written whole when it is full.
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        let room = BUFFER_BYTES - self.buffer.len();
        if data.len() <= room {
            self.buffer.extend_from_slice(data);
            return Ok(());
        }
        let (fits, rest) = data.split_at(room);
        self.buffer.extend_from_slice(fits);
        self.flush()?;
        if rest.len() >= BUFFER_BYTES {
            return self.write_out(rest);
        }
        self.buffer.extend_from_slice(rest);
        Ok(())
    }

    /// Puts a piece behind its head, and goes on in a new file when this one is full.
    fn put_piece(&mut self, data: &[u8]) -> Result<(), Errno> {
        let mut head = [0; 5];
        head[1..].copy_from_slice(&(data.len() as u32).to_be_bytes());
        self.put(&head)?;
        self.put(data)?;
        if let Some(wrap) = &mut self.wrap {
            wrap.written += (head.len() + data.len()) as u64;
            if wrap.time_ms == 0 && wrap.written >= wrap.size {
                self.next_file()?;
            }
        }
        Ok(())
    }

    /// Goes on in a new file; the oldest one goes, when there are as many as there may be.
    fn next_file(&mut self) -> Result<(), Errno> {
        self.flush()?;
        let Some(wrap) = &mut self.wrap else {
            return Ok(());
        };
        wrap.written = 0;
        wrap.left = wrap.left.saturating_sub(1);
        if wrap.left == 0 {
            // It may have been deleted by others.
            let _ = std::fs::remove_file(OsStr::from_bytes(&wrap.oldest.path()));
            wrap.oldest.next();
        }
        wrap.now.next();
        self.file = create(&wrap.now.path()).map_err(|e| errno(&e))?;
        Ok(())
    }
}

impl Driver for TraceFile {
    fn start(&mut self, port: &mut Context<'_>) {
        let wrap = self.wrap.as_ref().filter(|wrap| wrap.time_ms > 0);
        if let Some(wrap) = wrap {
            port.set_timer(Some(timers::deadline_after(wrap.time_ms.into())));
        }
    }

    fn output(&mut self, _port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        Ok(self.put_piece(&data)?)
    }

    fn control(
        &mut self,
        _port: &mut Context<'_>,
        command: u32,
        _data: &[u8],
    ) -> Option<Result<Vec<u8>, End>> {
        let flush = || Ok(self.flush().map(|()| vec![0])?);
        (command == u32::from(b'f')).then(flush)
    }

    fn timeout(&mut self, port: &mut Context<'_>) -> Result<(), End> {
        self.next_file()?;
        self.start(port);
        Ok(())
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Nobody is there any more to be told of an error.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::Alone;
    use super::*;
    use crate::sys::chance::names::own_pid;

    fn control(file: &mut TraceFile, command: u8) -> Option<Result<Vec<u8>, End>> {
        Alone::new().with(|port| file.control(port, command.into(), &[]))
    }

    #[test]
    fn commands() {
        for (arguments, expect) in [
            (" n /folder/a b", Some((None, "/folder/a b"))),
            ("  n x", Some((None, "x"))),
            (
                " w 100 8 0 3 n /folder/x.trc",
                Some((Some([100, 8, 0, 3]), "/folder/x.trc")),
            ),
            (" w 100 8 0 30 n /folder/x", None),
            (" w 100 8 n /folder/x", None),
            (" n ", None),
            (" m /folder/x", None),
            ("n /folder/x", None),
            ("", None),
        ] {
            let expect = expect.map(|(numbers, name)| (numbers, name.as_bytes()));
            assert_eq!(parse(arguments.as_bytes()), expect, "{arguments}");
        }
    }

    /// A directory of the test's own.
    struct Dir(std::path::PathBuf);

    impl Dir {
        fn new(name: &str) -> Dir {
            let name = format!("trace_file-{}-{name}", own_pid());
            let dir = std::env::temp_dir().join(name);
            std::fs::create_dir(&dir).expect("a directory that is new");
            Dir(dir)
        }
        fn file(&self) -> std::path::PathBuf {
            self.0.join("t")
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn open(dir: &Dir, options: &str) -> TraceFile {
        let command = format!(" {options}n {}", dir.file().display());
        match TraceFile::open(command.as_bytes()) {
            Ok(opened) => opened,
            Err(_) => panic!("it opens"),
        }
    }

    fn files(dir: &Dir) -> Vec<(String, usize)> {
        let entries = std::fs::read_dir(&dir.0).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .map(|e| {
                let name = e.file_name().into_string().unwrap();
                (name, e.metadata().unwrap().len() as usize)
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn pieces_are_counted_and_buffered() {
        let dir = Dir::new("pieces");
        let mut file = open(&dir, "");
        file.put_piece(b"abc").unwrap();
        assert_eq!(files(&dir), [("t".to_owned(), 0)]);
        assert!(matches!(control(&mut file, b'f'), Some(Ok(ok)) if ok == [0]));
        let written = std::fs::read(dir.file()).unwrap();
        assert_eq!(written, b"\0\0\0\0\x03abc");
        assert!(control(&mut file, b'p').is_none());
        file.put_piece(&vec![7; 3 * BUFFER_BYTES]).unwrap();
        file.put_piece(b"end").unwrap();
        drop(file);
        let size = 8 + 5 + 3 * BUFFER_BYTES + 8;
        assert_eq!(files(&dir), [("t".to_owned(), size)]);
    }

    #[test]
    fn files_follow_each_other() {
        let dir = Dir::new("wrap");
        let tail = dir.file().as_os_str().len() - 1;
        let mut file = open(&dir, &format!("w 10 3 0 {tail} "));
        let mut seen = Vec::new();
        for _ in 0..6 {
            file.put_piece(b"abcde").unwrap();
            let names = files(&dir).into_iter();
            seen.push(names.map(|(name, _)| name).collect::<Vec<_>>().join(" "));
        }
        let expect = [
            "0t 1t", "0t 1t 2t", "1t 2t 3t", "0t 2t 3t", "0t 1t 3t", "0t 1t 2t",
        ];
        assert_eq!(seen, expect);
    }
}
