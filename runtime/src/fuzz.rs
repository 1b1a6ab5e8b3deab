//! The readers of foreign bytes as functions for fuzzers. Each function takes any bytes, and panics where a reader
//! breaks what it promises. `ci/fuzz` has files for them, and ways to damage those.

use crate::beam::BeamModule;
use crate::beam::disasm::Disasm;
use crate::external::{
    DecodeError, DecodeOptions, Decoded, EncodeOptions, decode, decode_bare, decode_some, encode,
    external_size,
};
use crate::heap::{Heap, Literals, size};
use crate::hooks;
use crate::loader::load::prepare;
use crate::term::Term;
use crate::term::compare::eq_exact;

/// A `.beam` file: it is refused, or can be printed and made ready to run. Its code is not run: code made by hand may
/// crash the machine, as in ERTS.
pub fn beam_file(bytes: &[u8]) {
    hooks::install();
    match BeamModule::decode(bytes) {
        Ok(module) => assert!(Disasm::new(&module).to_string().starts_with("{module,")),
        Err(error) => {
            assert!(is_clear(&error.to_string()), "{error}");
            let refused = prepare(bytes).err().expect("it was refused before");
            assert_eq!(refused.to_string(), error.to_string());
            return;
        }
    }
    if let Err(error) = prepare(bytes) {
        assert!(is_clear(&error.to_string()), "{error}");
    }
}

/// Whether a refusal names a place in the file, or says that the file is of another release.
fn is_clear(refusal: &str) -> bool {
    refusal.starts_with("chunk ") || refusal.contains("please re-compile this module with")
}

/// Bytes in the external term format: they are refused, or are a term that is written and read again as it is.
pub fn external_term(bytes: &[u8]) {
    hooks::install();
    let heap = Heap::detached();
    let safe = decode(&heap, bytes, DecodeOptions { safe: true });
    let options = DecodeOptions::default();
    let read = decode(&heap, bytes, options);
    match (safe, read) {
        (Ok((safe, safe_used)), Ok((term, used))) => {
            assert_eq!(safe_used, used);
            assert!(eq_exact(safe, term), "{safe:?} is {term:?}");
        }
        (Ok((safe, _)), Err(error)) => panic!("{safe:?} is safe, and then: {error}"),
        (Err(_), _) => {}
    }
    assert_eq!(
        told(read),
        told(in_steps(&heap, bytes, options)),
        "with pauses"
    );
    if let [_, bare @ ..] = bytes {
        let _ = decode_bare(&heap, bare, options);
    }
    if let Ok((term, used)) = read {
        assert!(used <= bytes.len());
        written_and_read(&heap, term);
    }
}

/// As [`external_term`], with a pause after every few terms.
fn in_steps<'h>(
    heap: &'h Heap,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<(Term<'h>, usize), DecodeError> {
    let mut paused = None;
    loop {
        match decode_some(heap, bytes, options, &mut 50, paused)? {
            Decoded::Whole(term, used) => return Ok((term, used)),
            Decoded::Part(part) => paused = Some(part),
        }
    }
}

fn told(read: Result<(Term<'_>, usize), DecodeError>) -> Result<(String, usize), DecodeError> {
    read.map(|(term, used)| (format!("{term:?}"), used))
}

fn written_and_read(heap: &Heap, term: Term<'_>) {
    for level in [0, 1] {
        let options = EncodeOptions {
            level,
            ..EncodeOptions::default()
        };
        let bytes = encode(term, options).expect("no larger than what was read");
        if level == 0 {
            assert_eq!(external_size(term, options), Ok(bytes.len()));
        }
        let (again, used) = decode(heap, &bytes, DecodeOptions::default()).expect("just written");
        assert_eq!(used, bytes.len());
        assert!(eq_exact(term, again), "{term:?} came back as {again:?}");
        assert_eq!(encode(again, options).as_ref(), Ok(&bytes));
        assert_eq!(size(term, Literals::Count), size(again, Literals::Count));
    }
}
