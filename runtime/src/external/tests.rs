//! Tests the format against what OTP 29 reads and writes.

use super::decode::Reason;
use super::tags::*;
use super::*;
use crate::heap::Heap;
use crate::term::{Atom, Pid, Term, View, tag};

fn reason(bytes: &[u8]) -> Reason {
    let heap = Heap::detached();
    let error = decode(&heap, bytes, DecodeOptions::default()).err();
    error.expect("no term").reason
}

fn with<R>(bytes: &[u8], look: impl for<'h> FnOnce(Term<'h>) -> R) -> R {
    let heap = Heap::detached();
    let (term, used) = decode(&heap, bytes, DecodeOptions::default()).expect("a term");
    assert_eq!(used, bytes.len());
    look(term)
}

#[test]
fn hostile_bytes_are_refused() {
    for (bytes, expect) in [
        (&[][..], Reason::Truncated),
        (&[130, 106], Reason::Version),
        (&[131], Reason::Truncated),
        (&[131, 0], Reason::Tag(0)),
        (b"\x83l\xff\xff\xff\xffa\x01j", Reason::Truncated),
        (b"\x83i\xff\xff\xff\xff", Reason::Truncated),
        (b"\x83t\xff\xff\xff\xff", Reason::Truncated),
        (b"\x83o\xff\xff\xff\xff\x00", Reason::Truncated),
        (b"\x83m\xff\xff\xff\xff", Reason::Truncated),
        (b"\x83M\x00\x00\x00\x01\x00\x80", Reason::BadBits),
        (b"\x83M\x00\x00\x00\x01\x09\x80", Reason::BadBits),
        (b"\x83M\x00\x00\x00\x00\x01", Reason::BadBits),
        (b"\x83F\x7f\xf0\0\0\0\0\0\0", Reason::BadFloat),
        (b"\x83w\x01\xff", Reason::BadAtom),
        (
            b"\x83t\0\0\0\x02w\x01aa\x01w\x01aa\x02",
            Reason::DuplicateKey,
        ),
        (b"\x83P\xff\xff\xff\xff\x78\x9c", Reason::BadCompression),
        (b"\x83P\0\0\0\x01", Reason::BadCompression),
        (b"\x83y\0\0\0\0j", Reason::NotLocal),
        (
            b"\x83gw\x0dnonode@nohost\x10\0\0\0\0\0\0\0\0",
            Reason::BadIdentifier,
        ),
        (b"\x83gw\x01n\x00\0\0\0\0\0\0\0\x04", Reason::BadIdentifier),
        (
            b"\x83Z\0\x03w\x0dnonode@nohost\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0",
            Reason::BadIdentifier,
        ),
    ] {
        assert_eq!(reason(bytes), expect, "{bytes:?}");
    }
}

#[test]
fn depth_is_no_danger() {
    let depth = 1_000_000;
    let bytes = [&[131][..], &b"h\x01".repeat(depth), b"j"].concat();
    with(&bytes, |mut term| {
        for _ in 0..depth {
            term = term.as_tuple().expect("a tuple").get(0);
        }
        assert!(term.is_nil());
    });
}

#[test]
fn a_safe_decode_makes_no_atoms() {
    let heap = Heap::detached();
    let safe = DecodeOptions { safe: true };
    let bytes = b"\x83w\x12never made by that";
    let bytes = &[&bytes[..2], &[(bytes.len() - 3) as u8], &bytes[3..]].concat();
    let Err(error) = decode(&heap, bytes, safe) else {
        panic!("no such atom")
    };
    assert_eq!(error.reason, Reason::NotExisting);
    assert!(decode(&heap, b"\x83w\x02ok", safe).is_ok());
}

#[test]
fn identifiers_of_this_node_become_local() {
    with(
        b"\x83Xw\x0dnonode@nohost\0\0\0\x55\0\0\0\x02\0\0\0\0",
        |term| {
            let pid = term.as_pid().expect("a local pid");
            assert_eq!((pid.number(), pid.serial()), (0x55, 2));
        },
    );
    with(
        b"\x83Xw\x0dnonode@nohost\0\0\0\x55\0\0\0\x02\0\0\0\x07",
        |term| {
            let pid = term.as_external().expect("of another incarnation");
            assert_eq!((pid.node().creation, pid.data()), (7, &[0x2_0000_0055][..]));
        },
    );
    with(b"\x83Z\0\x02w\x01n\0\0\0\x05\0\0\0\x01\0\0\0\x02", |term| {
        let reference = term.as_external().expect("of another node");
        assert_eq!(reference.data(), [0x1_0000_0002, 2]);
    });
}

#[test]
fn old_forms_are_read() {
    with(b"\x83c1.50000000000000000000e+00\0\0\0\0\0", |term| {
        assert_eq!(term.as_float(), Some(1.5));
    });
    with(b"\x83d\0\x02\xe5b", |term| {
        assert_eq!(term.as_atom().map(Atom::name), Some("åb"));
    });
    with(b"\x83n\x03\x01\x05\0\0", |term| {
        assert_eq!(term.as_small(), Some(-5))
    });
    with(b"\x83M\0\0\0\x02\x03\xff\xff", |term| {
        let View::Bits(bits) = term.view() else {
            panic!("bits")
        };
        assert_eq!((bits.bit_len(), bits.to_vec()), (11, vec![0xff, 0xe0]));
    });
    let compressed = [
        131, 80, 0, 0, 0, 43, 120, 156, 203, 102, 208, 96, 32, 18, 0, 0, 24, 140, 0, 148,
    ];
    with(&compressed, |term| {
        assert_eq!(
            term.list_iter()
                .filter(|e| e.is_ok_and(|e| e.as_small() == Some(0)))
                .count(),
            40
        );
    });
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
        .collect()
}

/// OTP 29 wrote the table: a term with default options, with minor versions 1 and 0, deterministic.
/// The order of a map's keys is another machine's business unless it is deterministic.
#[test]
fn as_otp_writes_it() {
    let mut lines = 0;
    for line in include_str!("../../tests/golden/external.txt").lines() {
        let is_map = line.starts_with("map ");
        let columns: Vec<_> = line
            .trim_start_matches("map ")
            .split(' ')
            .map(from_hex)
            .collect();
        let with_version = |minor_version| EncodeOptions {
            minor_version,
            ..EncodeOptions::default()
        };
        let deterministic = EncodeOptions {
            deterministic: true,
            ..EncodeOptions::default()
        };
        let options = [
            with_version(2),
            with_version(1),
            with_version(0),
            deterministic,
        ];
        for bytes in &columns {
            with(bytes, |term| {
                for (options, expect) in options.iter().zip(&columns) {
                    if is_map && !options.deterministic {
                        continue;
                    }
                    let got = encode(term, *options).expect("small");
                    assert_eq!(&got, expect, "{options:?} {line}");
                    let size = external_size(term, *options).expect("small");
                    assert_eq!(size, got.len(), "{line}");
                }
            });
        }
        lines += 1;
    }
    assert!(lines > 60);
}

#[test]
fn long_strings_are_lists() {
    let heap = Heap::detached();
    for (len, tag) in [
        (0, NIL_EXT),
        (1, STRING_EXT),
        (65_535, STRING_EXT),
        (65_536, LIST_EXT),
    ] {
        let bytes = encode(heap.byte_list(&vec![7; len]), EncodeOptions::default()).expect("small");
        assert_eq!(bytes[1], tag);
        with(&bytes, |term| assert_eq!(term.list_iter().count(), len));
    }
}

#[test]
fn compressed_and_local_terms_come_back() {
    let heap = Heap::detached();
    let pid = Pid(77 | 3 << 28).term();
    let term = heap.list(&[pid, heap.reference([1, 2, 3]), heap.binary(&[7; 5000])]);
    let plain = encode(term, EncodeOptions::default()).expect("small");
    let local = EncodeOptions {
        local: true,
        ..EncodeOptions::default()
    };
    let packed = EncodeOptions {
        level: 9,
        ..EncodeOptions::default()
    };
    for options in [local, packed, EncodeOptions { level: -1, ..local }] {
        let bytes = encode(term, options).expect("small");
        assert_ne!(bytes, plain);
        assert_eq!(options.level != 0, bytes.len() < 200);
        with(&bytes, |term| {
            assert_eq!(
                encode(term, EncodeOptions::default()).expect("small"),
                plain
            );
        });
    }
    let mut bytes = encode(term, local).expect("small");
    let middle = bytes.len() - 100;
    bytes[middle] ^= 1;
    assert_eq!(reason(&bytes), Reason::NotLocal);
}

#[test]
fn pieces_share_binaries() {
    let heap = Heap::detached();
    let long = heap.binary(&[1; 100]);
    let odd = heap.bitstring(&[0xff; 80], 80 * 8 - 3);
    let unaligned = heap.sub_bits(long.as_bits().expect("bits"), 3, 703);
    let term = heap.list(&[long, Term::small(7), odd, unaligned]);
    let plain = encode(term, EncodeOptions::default()).expect("small");
    let mut encoder = Encoder::with_version(
        term,
        EncodeOptions::default(),
        Some(tag::ONHEAP_BINARY_LIMIT),
    );
    assert_eq!(encoder.run(usize::MAX), Ok(Progress::Whole));
    let (written, shared) = encoder.into_parts();
    assert_eq!(shared.len(), 2);
    let (mut bytes, mut from) = (Vec::new(), 0);
    for (at, bits) in shared {
        bytes.extend_from_slice(&written[from..at]);
        bytes.extend_from_slice(bits.as_bytes().expect("whole bytes"));
        from = at;
    }
    bytes.extend_from_slice(&written[from..]);
    assert_eq!(bytes, plain);
}

#[test]
fn magic_references_come_back_magic() {
    let heap = Heap::new(233);
    let magic = crate::heap::MagicBinary::new([3, 4, 5], Box::new(77));
    let term = heap.magic_reference(magic);
    let bytes = encode(term, EncodeOptions::default()).expect("small");
    let is_magic = |bytes: &[u8]| {
        with(bytes, |term| {
            let magic = term.as_ref().and_then(|r| r.magic());
            magic.map(|magic| magic.get::<i32>() == Some(&77))
        })
    };
    assert_eq!(is_magic(&bytes), Some(true));
    drop(heap);
    // The object is gone, and the reference is an ordinary one.
    assert_eq!(is_magic(&bytes), None);
}

/// `#nr:pt{x = a, y = {b}}` as OTP 29 writes it.
const RECORD: &[u8] = &[
    131, 67, 0, 0, 0, 2, 0, 119, 2, 110, 114, 119, 2, 112, 116, 119, 1, 120, 119, 1, 121, 119, 1,
    97, 104, 1, 119, 1, 98,
];

#[test]
fn native_records_round_trip() {
    with(RECORD, |term| {
        let record = term.as_record().expect("a record");
        assert_eq!((record.module().name(), record.name().name()), ("nr", "pt"));
        assert!(!record.is_exported());
        let again = encode(term, EncodeOptions::default()).expect("small");
        assert_eq!(again, RECORD);
    });
    for (at, byte, why) in [
        (6, 2, Reason::BadRecord),
        (7, 97, Reason::AtomExpected),
        (17, 121, Reason::DuplicateKey),
        (5, 200, Reason::Truncated),
    ] {
        let mut bytes = RECORD.to_vec();
        bytes[at] = byte;
        assert_eq!(reason(&bytes), why, "byte {at}");
    }
}
