//! The driver `ram_file_drv`, which keeps a file in memory for `ram_file`. A command is an operation's number and its
//! arguments; each is answered with `{Port, {data, Answer}}`. Numbers are big-endian. Source: `ram_file_drv.c`, OTP 29.

use rustix::io::Errno;

use super::driver::{Context, Driver, End};
use crate::sys::errno;
use crate::term::Term;
use crate::term::atom::atom;

/// Bits of the mode that a file is opened in.
const READ: i32 = 1;
const WRITE: i32 = 2;

/// First byte of an answer.
const OK: u8 = 0;
const ERROR: u8 = 1;
const DATA: u8 = 2;
const NUMBER: u8 = 3;

/// A port of the driver.
pub(super) struct RamFile {
    /// Data is sent as binaries.
    binary: bool,
    /// What may be done with the file; 0: it is not open.
    mode: i32,
    bytes: Vec<u8>,
    position: usize,
}

/// What is answered to an operation.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Number(usize),
    Data(Vec<u8>),
}

/// The number that `arguments` begin with, and what is behind it.
fn number(arguments: &[u8]) -> Result<(i32, &[u8]), Errno> {
    let (digits, rest) = arguments.split_first_chunk().ok_or(Errno::INVAL)?;
    Ok((i32::from_be_bytes(*digits), rest))
}

/// As [`number`], for one that counts bytes.
fn size(arguments: &[u8]) -> Result<(usize, &[u8]), Errno> {
    let (number, rest) = number(arguments)?;
    let size = usize::try_from(number).map_err(|_| Errno::INVAL)?;
    Ok((size, rest))
}

impl RamFile {
    /// A file that is not open.
    pub(super) fn new(binary: bool) -> RamFile {
        RamFile {
            binary,
            mode: 0,
            bytes: Vec::new(),
            position: 0,
        }
    }

    /// Does what a command says; `None` for an operation that there is not, which nobody answers.
    fn run(&mut self, command: &[u8]) -> Option<Result<Answer, Errno>> {
        let (operation, arguments) = command.split_first()?;
        Some(match operation {
            1 => self.open(arguments),
            2 => size(arguments).and_then(|(count, _)| self.read(count)),
            3 => self.seek(arguments),
            4 => self.write(arguments),
            14 => self.truncate(),
            17 => self.read_at(arguments),
            18 => size(arguments).and_then(|(at, data)| self.write_at(at, data)),
            30 => Ok(Answer::Data(self.bytes.clone())),
            37 => Ok(Answer::Number(self.bytes.len())),
            // To write all to the disk, advice about the use of the file, and room for it.
            9 | 19 | 38 | 39 => self.check_open().map(|()| Answer::Done),
            _ => return None,
        })
    }

    fn open(&mut self, arguments: &[u8]) -> Result<Answer, Errno> {
        let (mode, data) = number(arguments)?;
        self.mode = mode;
        self.bytes = data.to_vec();
        self.position = 0;
        Ok(Answer::Number(0))
    }

    fn check_open(&self) -> Result<(), Errno> {
        if self.mode == 0 {
            return Err(Errno::BADF);
        }
        Ok(())
    }

    /// Up to `count` bytes from the position.
    fn read(&mut self, count: usize) -> Result<Answer, Errno> {
        let data = self.bytes_at(self.position, count)?;
        self.position += data.len();
        Ok(Answer::Data(data))
    }

    fn read_at(&self, arguments: &[u8]) -> Result<Answer, Errno> {
        let (at, rest) = size(arguments)?;
        let (count, _) = size(rest)?;
        Ok(Answer::Data(self.bytes_at(at, count)?))
    }

    fn bytes_at(&self, at: usize, count: usize) -> Result<Vec<u8>, Errno> {
        if self.mode & READ == 0 {
            return Err(Errno::BADF);
        }
        let behind = self.bytes.get(at..).unwrap_or_default();
        Ok(behind[..count.min(behind.len())].to_vec())
    }

    fn write(&mut self, data: &[u8]) -> Result<Answer, Errno> {
        let written = self.write_at(self.position, data)?;
        self.position += data.len();
        Ok(written)
    }

    /// Writes at a place; zeros fill the gap between it and the end.
    fn write_at(&mut self, at: usize, data: &[u8]) -> Result<Answer, Errno> {
        if self.mode & WRITE == 0 {
            return Err(Errno::BADF);
        }
        let end = at + data.len();
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
        Ok(Answer::Number(data.len()))
    }

    fn seek(&mut self, arguments: &[u8]) -> Result<Answer, Errno> {
        let (offset, rest) = number(arguments)?;
        let (origin, _) = number(rest)?;
        self.check_open()?;
        let from = match origin {
            0 => 0,
            1 => self.position,
            2 => self.bytes.len(),
            _ => return Err(Errno::INVAL),
        };
        let position = from.checked_add_signed(offset as isize);
        self.position = position.ok_or(Errno::INVAL)?;
        Ok(Answer::Number(self.position))
    }

    /// Has the file end at the position.
    fn truncate(&mut self) -> Result<Answer, Errno> {
        if self.mode & WRITE == 0 {
            return Err(Errno::ACCESS);
        }
        self.bytes.resize(self.position, 0);
        Ok(Answer::Done)
    }
}

/// The first bytes of an answer, which are always a list, and the data behind them.
fn parts(answer: Result<Answer, Errno>) -> (Vec<u8>, Option<Vec<u8>>) {
    // As in OTP a number has 32 bits, whatever it counts.
    let numbered = |tag, number: usize| {
        let number = (number as u32).to_be_bytes();
        [&[tag], &number[..]].concat()
    };
    match answer {
        Ok(Answer::Done) => (vec![OK], None),
        Ok(Answer::Number(number)) => (numbered(NUMBER, number), None),
        Ok(Answer::Data(data)) => (numbered(DATA, data.len()), Some(data)),
        Err(e) => {
            let name = errno::errno_name(e.raw_os_error());
            ([&[ERROR], name.as_bytes()].concat(), None)
        }
    }
}

impl Driver for RamFile {
    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        let Some(answer) = self.run(&data) else {
            return Ok(());
        };
        let (head, data) = parts(answer);
        port.took_input(head.len() + data.as_ref().map_or(0, Vec::len));
        let binary = self.binary;
        port.tell_owner(|heap| {
            let tail = match data {
                Some(data) if binary => heap.binary_from_vec(data),
                Some(data) => heap.byte_list(&data),
                None => Term::NIL,
            };
            let answer = heap.byte_list_with_tail(&head, tail);
            heap.tuple(&[atom("data"), answer])
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a command: its operation, its numbers, its data.
    fn run(
        file: &mut RamFile,
        operation: u8,
        numbers: &[i32],
        data: &[u8],
    ) -> Result<Answer, Errno> {
        let mut command = vec![operation];
        command.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        command.extend_from_slice(data);
        file.run(&command).expect("there is such an operation")
    }

    fn opened(mode: i32, data: &[u8]) -> RamFile {
        let mut file = RamFile::new(true);
        assert_eq!(run(&mut file, 1, &[mode], data), Ok(Answer::Number(0)));
        file
    }

    fn data(bytes: &[u8]) -> Result<Answer, Errno> {
        Ok(Answer::Data(bytes.to_vec()))
    }

    #[test]
    fn a_file_grows_where_it_is_written() {
        let file = &mut opened(READ | WRITE, b"abc");
        assert_eq!(run(file, 4, &[], b"xy"), Ok(Answer::Number(2)));
        assert_eq!(run(file, 18, &[5], b"z"), Ok(Answer::Number(1)));
        assert_eq!(run(file, 30, &[], b""), data(b"xyc\0\0z"));
        assert_eq!(run(file, 2, &[2], b""), data(b"c\0"));
        assert_eq!(run(file, 17, &[5, 9], b""), data(b"z"));
        assert_eq!(run(file, 17, &[6, 9], b""), data(b""));
        assert_eq!(run(file, 14, &[], b""), Ok(Answer::Done));
        assert_eq!(run(file, 37, &[], b""), Ok(Answer::Number(4)));
        assert_eq!(run(file, 3, &[2, 2], b""), Ok(Answer::Number(6)));
        assert_eq!(run(file, 14, &[], b""), Ok(Answer::Done));
        assert_eq!(run(file, 30, &[], b""), data(b"xyc\0\0\0"));
    }

    #[test]
    fn what_is_refused() {
        let file = &mut RamFile::new(true);
        for operation in [9, 19, 38, 39] {
            assert_eq!(run(file, operation, &[], b""), Err(Errno::BADF));
        }
        let file = &mut opened(READ, b"abc");
        assert_eq!(run(file, 4, &[], b"x"), Err(Errno::BADF));
        assert_eq!(run(file, 14, &[], b""), Err(Errno::ACCESS));
        for numbers in [[-1, 0], [-1, 1], [-4, 2], [0, 3]] {
            assert_eq!(run(file, 3, &numbers, b""), Err(Errno::INVAL));
        }
        assert_eq!(run(file, 2, &[-1], b""), Err(Errno::INVAL));
        assert_eq!(run(file, 17, &[0], b""), Err(Errno::INVAL));
        assert!(file.run(&[33]).is_none() && file.run(&[]).is_none());
        let file = &mut opened(WRITE, b"abc");
        assert_eq!(run(file, 2, &[1], b""), Err(Errno::BADF));
    }

    #[test]
    fn answers_have_their_tags() {
        assert_eq!(parts(Ok(Answer::Done)), (vec![0], None));
        assert_eq!(parts(Err(Errno::INVAL)), (b"\x01einval".to_vec(), None));
        let number = parts(Ok(Answer::Number(258)));
        assert_eq!(number, (vec![3, 0, 0, 1, 2], None));
        let answer = parts(data(b"ab"));
        assert_eq!(answer, (vec![2, 0, 0, 0, 2], Some(b"ab".to_vec())));
    }
}
