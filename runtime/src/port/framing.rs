//! Cuts the bytes that a port reads into the messages that its owner gets: as they come, in packets, or in lines.
//! Source: `ready_input()` in `sys_drivers.c`, `read_linebuf()` in `io.c`, OTP 29.

/// How input is cut, and output is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// As it comes.
    Stream,
    /// Packets behind a length of 1, 2 or 4 bytes, most significant first.
    Packet(usize),
    /// Lines of at most this many bytes.
    Line(usize),
}

/// A piece of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of a stream, or a packet.
    Data(Vec<u8>),
    /// A line's end (or a whole line), without its newline.
    Eol(Vec<u8>),
    /// A part of a line that was too long, or the rest of the input.
    NoEol(Vec<u8>),
}

/// Where a line stands. ERTS keeps a carriage return back until it knows what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Main,
    Full,
    CrInside,
    CrAfter,
}

/// Input on its way.
#[derive(Debug)]
pub(crate) struct Input {
    framing: Framing,
    pending: Vec<u8>,
    line: LineState,
}

impl Input {
    pub(crate) fn new(framing: Framing) -> Input {
        Input {
            framing,
            pending: Vec::new(),
            line: LineState::Main,
        }
    }

    /// Takes what was read; gives what is complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Piece> {
        match self.framing {
            Framing::Stream => vec![Piece::Data(bytes.to_vec())],
            Framing::Packet(header) => {
                self.pending.extend_from_slice(bytes);
                self.packets(header)
            }
            Framing::Line(limit) => {
                let mut pieces = Vec::new();
                bytes
                    .iter()
                    .for_each(|&b| self.line_byte(b, limit, &mut pieces));
                pieces
            }
        }
    }

    fn packets(&mut self, header: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(head) = self.pending.get(at..at + header) {
            let size = head.iter().fold(0, |size, &b| (size << 8) | usize::from(b));
            let Some(packet) = self.pending.get(at + header..at + header + size) else {
                break;
            };
            pieces.push(Piece::Data(packet.to_vec()));
            at += header + size;
        }
        self.pending.drain(..at);
        pieces
    }

    fn line_byte(&mut self, byte: u8, limit: usize, pieces: &mut Vec<Piece>) {
        if byte == b'\n' {
            self.line = LineState::Main;
            pieces.push(Piece::Eol(std::mem::take(&mut self.pending)));
            return;
        }
        loop {
            match self.line {
                LineState::Main if self.pending.len() == limit => self.line = LineState::Full,
                LineState::Main | LineState::Full if byte == b'\r' => {
                    self.line = if self.line == LineState::Main {
                        LineState::CrInside
                    } else {
                        LineState::CrAfter
                    };
                    return;
                }
                LineState::Main => {
                    self.pending.push(byte);
                    return;
                }
                LineState::Full => {
                    pieces.push(Piece::NoEol(std::mem::take(&mut self.pending)));
                    self.line = LineState::Main;
                }
                LineState::CrInside => {
                    self.pending.push(b'\r');
                    self.line = LineState::Main;
                }
                LineState::CrAfter => {
                    pieces.push(Piece::NoEol(std::mem::take(&mut self.pending)));
                    self.line = LineState::CrInside;
                }
            }
        }
    }

    /// What is left at the end of the input: of lines only.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        if !matches!(self.framing, Framing::Line(_)) {
            return None;
        }
        if matches!(self.line, LineState::CrInside | LineState::CrAfter) {
            self.pending.push(b'\r');
        }
        self.line = LineState::Main;
        let rest = std::mem::take(&mut self.pending);
        (!rest.is_empty()).then_some(Piece::NoEol(rest))
    }
}

impl Framing {
    /// What stands before an output of `size` bytes; `None` when it is too long to be told.
    pub(crate) fn header(self, size: usize) -> Option<Vec<u8>> {
        let Framing::Packet(bytes) = self else {
            return Some(Vec::new());
        };
        let size = u64::try_from(size).ok()?;
        if bytes < 8 && size >> (8 * bytes) != 0 {
            return None;
        }
        Some(size.to_be_bytes()[8 - bytes..].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of `bytes` must not depend on how they are read.
    fn check(framing: Framing, bytes: &[u8], expected: &[Piece]) {
        for step in 1..=bytes.len() {
            let mut input = Input::new(framing);
            let mut pieces: Vec<_> = bytes.chunks(step).flat_map(|c| input.push(c)).collect();
            pieces.extend(input.finish());
            assert_eq!(pieces, expected, "read by {step}");
        }
    }

    fn eol(text: &str) -> Piece {
        Piece::Eol(text.into())
    }
    fn noeol(text: &str) -> Piece {
        Piece::NoEol(text.into())
    }

    #[test]
    fn lines() {
        check(
            Framing::Line(4),
            b"ab\n\nabcd\nabcde\nx",
            &[
                eol("ab"),
                eol(""),
                eol("abcd"),
                noeol("abcd"),
                eol("e"),
                noeol("x"),
            ],
        );
        check(
            Framing::Line(4),
            b"abc\r\na\rb\nabcd\r\nabcd\re\n",
            &[
                eol("abc"),
                eol("a\rb"),
                eol("abcd"),
                noeol("abcd"),
                eol("\re"),
            ],
        );
    }

    #[test]
    fn packets() {
        let data = |text: &str| Piece::Data(text.into());
        check(
            Framing::Packet(1),
            b"\x02ab\x00\x01c\x05de",
            &[data("ab"), data(""), data("c")],
        );
        check(Framing::Packet(2), b"\x00\x03abc", &[data("abc")]);
        check(Framing::Packet(4), b"\x00\x00\x00\x01x\x00", &[data("x")]);
        assert_eq!(Framing::Packet(2).header(258), Some(vec![1, 2]));
        assert_eq!(Framing::Packet(1).header(256), None);
        assert_eq!(Framing::Stream.header(1 << 40), Some(vec![]));
    }
}
