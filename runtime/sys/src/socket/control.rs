//! Control messages, which go with a message: what kind of service it had, how far it may go, descriptors.
//!
//! Invariant CN1: a buffer is aligned as a header of such a message, and its length is that of the headers and data in it.

/// Bytes that there is room for.
const MAX_BYTES: usize = 1024;

/// Words of a buffer, which are as strictly aligned as a header.
const WORDS: usize = MAX_BYTES / size_of::<usize>();

const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

/// Control messages, as the kernel takes and gives them.
#[derive(Debug)]
pub struct Control {
    words: [usize; WORDS],
    /// Bytes that are filled.
    length: usize,
}

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// `IPPROTO_IP` and the like.
    pub level: i32,
    /// `IP_TOS` and the like.
    pub kind: i32,
    /// What it says.
    pub data: &'a [u8],
}

impl Message<'_> {
    /// Its data as a number, of 1, 2, 4 or 8 bytes.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        Some(match *self.data {
            [byte] => byte.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(self.data.try_into().ok()?),
        })
    }
}

impl Default for Control {
    fn default() -> Control {
        Control {
            words: [0; WORDS],
            length: 0,
        }
    }
}

/// Bytes up to the next header.
fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(size_of::<usize>())
}

impl Control {
    /// All of them, as the kernel has them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: CN1: words are bytes.
        let all = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), MAX_BYTES) };
        &all[..self.length]
    }

    /// The room for all of them.
    pub(super) fn room(&mut self) -> &mut [u8] {
        // SAFETY: CN1: words are bytes, of any values.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), MAX_BYTES) }
    }

    /// Adds a message; whether there is room for it.
    #[must_use]
    pub fn push(&mut self, message: Message<'_>) -> bool {
        let (start, bytes) = (padded(self.length), HEADER_BYTES + message.data.len());
        let end = start + bytes;
        if end > MAX_BYTES {
            return false;
        }
        let room = &mut self.room()[start..end];
        room[..8].copy_from_slice(&bytes.to_ne_bytes());
        room[8..12].copy_from_slice(&message.level.to_ne_bytes());
        room[12..16].copy_from_slice(&message.kind.to_ne_bytes());
        room[HEADER_BYTES..].copy_from_slice(message.data);
        // The kernel takes the padding behind the last one as part of it.
        self.length = padded(end);
        true
    }

    /// The messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut rest = self.bytes();
        std::iter::from_fn(move || {
            let (message, behind) = split_message(rest)?;
            rest = behind;
            Some(message)
        })
    }

    /// Says how much of the room is filled.
    pub(super) fn set_length(&mut self, length: usize) {
        self.length = length.min(MAX_BYTES);
    }

    /// Takes what an option gave as such messages, of which there are `length` bytes at the start of `value`.
    #[must_use]
    pub fn of_option(value: &[u8]) -> Control {
        let mut control = Control::default();
        let length = value.len().min(MAX_BYTES);
        control.room()[..length].copy_from_slice(&value[..length]);
        control.length = length;
        control
    }
}

/// The first message of some bytes, and what is behind it.
fn split_message(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let number = |at: usize| Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = usize::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    let data = bytes.get(HEADER_BYTES..length)?;
    let message = Message {
        level: number(8)?,
        kind: number(12)?,
        data,
    };
    Some((message, bytes.get(padded(length)..).unwrap_or(&[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were_put() {
        let messages = [
            (0, 1, &[16u8, 0, 0, 0][..]),
            (41, 67, &[1]),
            (1, 1, &[9; 20]),
        ];
        let mut control = Control::default();
        for (level, kind, data) in messages {
            assert!(control.push(Message { level, kind, data }));
        }
        let back = control.messages().map(|m| (m.level, m.kind, m.data));
        assert!(back.eq(messages));
        let numbers: Vec<_> = control.messages().map(|m| m.number()).collect();
        assert_eq!(numbers, [Some(16), Some(1), None]);
    }

    #[test]
    fn there_is_room_for_so_much() {
        let mut control = Control::default();
        let message = |data| Message {
            level: 0,
            kind: 0,
            data,
        };
        assert!(!control.push(message(&[0; MAX_BYTES])));
        assert!(control.push(message(&[0; MAX_BYTES - HEADER_BYTES])));
        assert!(!control.push(message(&[])));
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let mut control = Control::default();
        assert!(control.push(Message {
            level: 1,
            kind: 2,
            data: &[3; 4]
        }));
        let bytes = control.bytes().to_vec();
        for length in 0..HEADER_BYTES + 4 {
            let cut = Control::of_option(&bytes[..length]);
            assert_eq!(cut.messages().count(), 0, "{length}");
        }
    }
}
