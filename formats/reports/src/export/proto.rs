//! Encodes protocol buffers, as far as exports need them.

/// A message: its fields one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a field is written.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    pub(super) fn new() -> Message {
        Message::default()
    }

    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.push(low & 0x7f);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    /// A number; 0 is written too.
    pub(super) fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// A number of always eight bytes.
    pub(super) fn fixed(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(super) fn text(mut self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes());
        self
    }

    pub(super) fn message(mut self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0);
        self
    }

    /// Numbers, packed.
    pub(super) fn numbers(mut self, field: u64, values: impl IntoIterator<Item = u64>) -> Message {
        let mut packed = Message::new();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_format_has_them() {
        let inner = Message::new().number(1, 150);
        for (message, expect) in [
            // The examples of the format's own description.
            (Message::new().number(1, 150), &[0x08, 0x96, 0x01][..]),
            (Message::new().text(2, "testing"), b"\x12\x07testing"),
            (
                Message::new().message(3, &inner),
                &[0x1a, 0x03, 0x08, 0x96, 0x01],
            ),
            (
                Message::new().numbers(6, [3, 270, 86_942]),
                &[0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
            ),
            (Message::new().number(1, 0), &[0x08, 0x00]),
            (
                Message::new().fixed(47, 2),
                &[0xf9, 0x02, 2, 0, 0, 0, 0, 0, 0, 0],
            ),
            (
                Message::new().number(1, u64::MAX),
                &[
                    0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
                ],
            ),
        ] {
            assert_eq!(message.as_bytes(), expect);
        }
    }
}
