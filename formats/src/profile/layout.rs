//! The layout of the profile file, which its reader and writer share: magic, tags, checksum, numbers.

/// The version this crate writes.
pub const VERSION: u32 = 5;

/// The oldest version that it reads.
pub(super) const OLDEST: u32 = 2;

/// The first version that tells of native code.
pub(super) const NATIVE_SINCE: u32 = 3;

/// The first version that tells of what tracing costs.
pub(super) const TRACING_SINCE: u32 = 4;

/// The first version that tells of nodes, and which run calls are of whose process is not known.
pub(super) const NODE_SINCE: u32 = 5;

/// First bytes of the file; the line end shows a file that was changed as if it were text.
pub(super) const MAGIC: [u8; 8] = *b"BLPROF\r\n";

/// Bytes of a section before its payload: tag, payload length, checksum.
pub(super) const SECTION_HEAD: usize = 12;

/// A writer starts a new section when the payload has grown past this many bytes.
pub(super) const SECTION_FULL: usize = 32 * 1024;

/// No section of a valid file has a longer payload.
pub(super) const SECTION_MAX: usize = 16 * 1024 * 1024;

/// Longest text, in bytes: longer ones are cut when written.
pub(super) const TEXT_MAX: usize = 64 * 1024;

/// Longest name of a module, in bytes: longer ones are cut when written. An atom has 255 characters.
pub(super) const MODULE_MAX: usize = 4 * 255;

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Head,
    Modules,
    Functions,
    Processes,
    Counts,
    Nodes,
    End,
}

impl Tag {
    pub(super) const ALL: [Tag; 7] = [
        Tag::Head,
        Tag::Modules,
        Tag::Functions,
        Tag::Processes,
        Tag::Counts,
        Tag::Nodes,
        Tag::End,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tag::Head => "HEAD",
            Tag::Modules => "MODS",
            Tag::Functions => "FUNS",
            Tag::Processes => "PROC",
            Tag::Counts => "CNTS",
            Tag::Nodes => "TREE",
            Tag::End => "END ",
        }
    }

    pub(super) fn from_bytes(bytes: [u8; 4]) -> Option<Tag> {
        Tag::ALL
            .into_iter()
            .find(|tag| tag.name().as_bytes() == bytes)
    }
}

/// Appends a number in 7-bit groups, least significant first (LEB128).
pub(super) fn put_number(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

const CRC: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "i is below 256")]
        let mut c = i as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 {
                0xedb8_8320 ^ (c >> 1)
            } else {
                c >> 1
            };
            bit += 1;
        }
        table[i] = c;
        i += 1;
    }
    table
}

/// CRC-32 (IEEE 802.3) of the parts, one after the other.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut c = u32::MAX;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        let [low, ..] = c.to_le_bytes();
        c = CRC[usize::from(low ^ byte)] ^ (c >> 8);
    }
    !c
}

/// Puts the checks of a damaged file right, as far as it has sections.
pub fn seal(bytes: &mut [u8]) {
    let mut at = MAGIC.len() + 4;
    while bytes.starts_with(&MAGIC) && at + SECTION_HEAD <= bytes.len() {
        let (head, rest) = bytes[at..].split_at_mut(SECTION_HEAD);
        let (tagged, check) = head.split_at_mut(8);
        let size = tagged[4..].iter().rev();
        let size = size.fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(payload) = rest.get(..size) else {
            return;
        };
        check.copy_from_slice(&checksum(&[tagged, payload]).to_le_bytes());
        at += SECTION_HEAD + size;
    }
}
