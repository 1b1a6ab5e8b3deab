//! `crypto`, as far as random numbers, digests and HMAC go, and the ciphers of [`super::cipher`]; what else the
//! module has raises `nif_not_loaded`, as its own stubs do. Source: `hash.c`, `hmac.c`, `rand.c` of OTP 29's `crypto`.

use sha2::Digest;

use super::{atom, new_object, object};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::hash::md5::Md5;
use crate::num::limbs::Int;
use crate::process::Process;
use crate::term::{Bits, Term, am};

bifs! {
    bif crypto:"strong_rand_bytes_nif"/1 => strong_rand_bytes_nif_1;
    bif crypto:"strong_rand_range_nif"/1 => strong_rand_range_nif_1;
    bif crypto:"rand_uniform_nif"/2 => rand_uniform_nif_2;
    bif crypto:"rand_seed_nif"/1 => rand_seed_nif_1;
    bif crypto:"hash_algorithms"/0 => hash_algorithms_0;
    bif crypto:"hash_nif"/2 => hash_nif_2;
    bif crypto:"hash_init_nif"/1 => hash_init_nif_1;
    bif crypto:"hash_update_nif"/2 => hash_update_nif_2;
    bif crypto:"hash_final_nif"/1 => hash_final_nif_1;
    bif crypto:"mac_nif"/4 => mac_nif_4;
    bif crypto:"hash_equals_nif"/2 => hash_equals_nif_2;
    bif crypto:"do_exor"/2 => do_exor_2;
}

macro_rules! digests {
    ($($variant:ident $name:literal $block:literal;)*) => {
        /// A digest under way.
        #[derive(Clone)]
        enum State {
            Md5(Md5),
            $($variant(sha::$variant),)*
        }

        /// Names of the digests.
        const NAMES: &[&str] = &["md5", $($name,)*];

        impl State {
            fn new(name: &str) -> Option<State> {
                Some(match name {
                    "md5" => State::Md5(Md5::new()),
                    $($name => State::$variant(sha::$variant::new()),)*
                    _ => return None,
                })
            }
            fn update(&mut self, bytes: &[u8]) {
                match self {
                    State::Md5(state) => state.update(bytes),
                    $(State::$variant(state) => state.update(bytes),)*
                }
            }
            fn finish(self) -> Vec<u8> {
                match self {
                    State::Md5(state) => state.finish().to_vec(),
                    $(State::$variant(state) => state.finalize().to_vec(),)*
                }
            }
            /// Bytes that are digested at once.
            fn block_bytes(&self) -> usize {
                match self {
                    State::Md5(_) => 64,
                    $(State::$variant(_) => $block,)*
                }
            }
        }
    };
}

mod sha {
    pub(super) use sha1::Sha1;
    pub(super) use sha2::{Sha224, Sha256, Sha384, Sha512};
}

digests! {
    Sha1 "sha" 64;
    Sha224 "sha224" 64;
    Sha256 "sha256" 64;
    Sha384 "sha384" 128;
    Sha512 "sha512" 128;
}

/// `{Id, Where, Text}`, as the module's native functions raise. The argument is counted from 0; −1 is none.
pub(super) fn raise<'p>(
    p: &'p Process,
    id: &str,
    argument: i64,
    text: &str,
    line: u32,
) -> Raise<'p> {
    let place = crate::term::map::from_pairs(
        p,
        &[
            (atom("c_file_name"), p.string(file!())),
            (atom("c_file_line_num"), Term::small(line.into())),
            (atom("c_function_arg_num"), Term::small(argument)),
        ],
    );
    Raise::Error(p.tuple(&[atom(id), place, p.string(text)]))
}

fn bytes(term: Term<'_>) -> Option<Vec<u8>> {
    term.as_binary().map(Bits::to_vec)
}

fn state_of<'p>(p: &'p Process, name: Term<'p>, argument: i64) -> Result<State, Raise<'p>> {
    let Some(name) = name.as_atom() else {
        return Err(raise(p, "badarg", argument, "Bad digest type", line!()));
    };
    State::new(name.name())
        .ok_or_else(|| raise(p, "notsup", argument, "Unsupported digest type", line!()))
}

fn data_of<'p>(p: &'p Process, data: Term<'p>, argument: i64) -> Result<Vec<u8>, Raise<'p>> {
    bytes(data).ok_or_else(|| raise(p, "badarg", argument, "Not iolist", line!()))
}

fn strong_rand_bytes_nif_1<'p>(p: &'p Process, [count]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut bytes = vec![0; count.as_index().ok_or_else(badarg)?];
    match crate::sys::random::fill(&mut bytes) {
        Ok(()) => Ok(p.binary(&bytes)),
        // The module raises `low_entropy`.
        Err(_) => Ok(am::false_.term()),
    }
}

/// A number from 0 to below `range`, as many bytes; `None` for a range of none.
fn random_below(range: &[u8]) -> Result<Option<Vec<u8>>, rustix::io::Errno> {
    let Some(first) = range.iter().position(|byte| *byte != 0) else {
        return Ok(None);
    };
    let range = &range[first..];
    let mask = u8::MAX >> range[0].leading_zeros();
    let mut drawn = vec![0; range.len()];
    loop {
        crate::sys::random::fill(&mut drawn)?;
        // Every second draw or more is below the range.
        drawn[0] &= mask;
        if drawn.as_slice() < range {
            return Ok(Some(drawn));
        }
    }
}

/// The bytes of a number without leading zeros.
fn significant(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|byte| *byte != 0);
    &bytes[first.unwrap_or(bytes.len())..]
}

fn strong_rand_range_nif_1<'p>(p: &'p Process, [range]: [Term<'p>; 1]) -> BifResult<'p> {
    match random_below(&bytes(range).ok_or_else(badarg)?) {
        Ok(Some(drawn)) => Ok(p.binary(significant(&drawn))),
        // The module raises `badarg` or `low_entropy`.
        Ok(None) | Err(_) => Ok(am::false_.term()),
    }
}

/// Of a number behind its length in four bytes.
fn mpint(term: Term<'_>) -> Option<Int> {
    let bytes = bytes(term)?;
    let (size, digits) = bytes.split_first_chunk::<4>()?;
    let is_whole = u32::from_be_bytes(*size) as usize == digits.len();
    is_whole.then(|| from_digits(digits))
}

fn from_digits(bytes: &[u8]) -> Int {
    let limb = |chunk: &[u8]| {
        chunk
            .iter()
            .fold(0, |limb, byte| limb << 8 | u64::from(*byte))
    };
    Int::from_parts(false, bytes.rchunks(8).map(limb).collect())
}

fn to_digits(value: &Int) -> Vec<u8> {
    let limbs = value.mag().iter().rev();
    significant(
        &limbs
            .flat_map(|limb| limb.to_be_bytes())
            .collect::<Vec<_>>(),
    )
    .to_vec()
}

fn rand_uniform_nif_2<'p>(p: &'p Process, [from, to]: [Term<'p>; 2]) -> BifResult<'p> {
    let (from, to) = mpint(from).zip(mpint(to)).ok_or_else(badarg)?;
    let range = to.as_ref() - from.as_ref();
    if range.is_negative() {
        return Err(badarg());
    }
    let drawn = random_below(&to_digits(&range)).ok().flatten();
    let value = from_digits(&drawn.ok_or_else(badarg)?);
    let digits = to_digits(&(value.as_ref() + from.as_ref()));
    let size = (digits.len() as u32).to_be_bytes();
    Ok(p.binary(&[&size[..], &digits].concat()))
}

/// The system's generator needs no seed.
fn rand_seed_nif_1<'p>(_: &'p Process, [seed]: [Term<'p>; 1]) -> BifResult<'p> {
    seed.as_binary().map(|_| am::ok.term()).ok_or_else(badarg)
}

fn hash_algorithms_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let names: Vec<_> = NAMES.iter().map(|name| atom(name)).collect();
    Ok(p.list(&names))
}

/// Charges for data worked on. Source: `CONSUME_REDS` in OTP's `crypto`.
fn consume(p: &Process, data: &[u8]) {
    const BYTES_PER_SLICE: usize = 20_000;
    p.consume_percent(100 * data.len() / BYTES_PER_SLICE);
}

fn hash_nif_2<'p>(p: &'p Process, [name, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut state = state_of(p, name, 0)?;
    let data = data_of(p, data, 1)?;
    state.update(&data);
    consume(p, &data);
    Ok(p.binary(&state.finish()))
}

fn hash_init_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(new_object(p, state_of(p, name, 0)?))
}

fn hash_update_nif_2<'p>(p: &'p Process, [state, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let bad = |_| raise(p, "badarg", 0, "Bad state", line!());
    let mut state = object::<State>(state).map_err(bad)?.clone();
    let data = data_of(p, data, 1)?;
    state.update(&data);
    consume(p, &data);
    Ok(new_object(p, state))
}

fn hash_final_nif_1<'p>(p: &'p Process, [state]: [Term<'p>; 1]) -> BifResult<'p> {
    let bad = |_| raise(p, "badarg", 0, "Bad state", line!());
    let state = object::<State>(state).map_err(bad)?.clone();
    Ok(p.binary(&state.finish()))
}

/// HMAC of `text`. Source: RFC 2104.
fn hmac(state: &State, key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = vec![0; state.block_bytes()];
    let digest = |parts: [&[u8]; 2]| {
        let mut state = state.clone();
        parts.iter().for_each(|part| state.update(part));
        state.finish()
    };
    if key.len() > block.len() {
        let short = digest([key, &[]]);
        block[..short.len()].copy_from_slice(&short);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |byte: u8| -> Vec<u8> { block.iter().map(|key| key ^ byte).collect() };
    let inner = digest([&pad(0x36), text]);
    digest([&pad(0x5c), &inner])
}

fn mac_nif_4<'p>(p: &'p Process, [kind, name, key, text]: [Term<'p>; 4]) -> BifResult<'p> {
    if !kind.same(atom("hmac")) {
        return Err(raise(p, "notsup", 0, "Unsupported mac algorithm", line!()));
    }
    let state = state_of(p, name, 1)?;
    let (key, text) = (data_of(p, key, 2)?, data_of(p, text, 3)?);
    consume(p, &text);
    Ok(p.binary(&hmac(&state, &key, &text)))
}

/// Both binaries, which must be of one size.
fn two(a: Term<'_>, b: Term<'_>) -> Result<(Vec<u8>, Vec<u8>), Raise<'static>> {
    bytes(a)
        .zip(bytes(b))
        .filter(|(a, b)| a.len() == b.len())
        .ok_or_else(badarg)
}

/// Takes as long for what is equal as for what is not.
fn hash_equals_nif_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    let (a, b) = two(a, b)?;
    let differs = a.iter().zip(&b).fold(0, |all, (a, b)| all | (a ^ b));
    Ok(Term::bool(std::hint::black_box(differs) == 0))
}

fn do_exor_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    let (mut a, b) = two(a, b)?;
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    consume(p, &a);
    Ok(p.binary(&a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_their_standards() {
        for (name, digest) in [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "sha224",
                "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
            ),
            (
                "sha256",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
        ] {
            let mut state = State::new(name).expect("a digest of that name");
            state.update(b"ab");
            state.update(b"c");
            assert_eq!(hex(&state.finish()), digest, "{name}");
        }
        assert!(State::new("whirlpool").is_none());
    }

    #[test]
    fn hmac_is_that_of_rfc_2202_and_4231() {
        let mac = |name, key: &[u8], text: &[u8]| hex(&hmac(&State::new(name).unwrap(), key, text));
        assert_eq!(
            mac("sha", b"Jefe", b"what do ya want for nothing?"),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        );
        assert_eq!(
            mac(
                "sha256",
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First"
            ),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn random_bytes_differ() {
        let p = &Process::new(233);
        let draw = || {
            let drawn = strong_rand_bytes_nif_1(p, [Term::small(16)]).ok().unwrap();
            bytes(drawn).expect("a binary")
        };
        let (a, b) = (draw(), draw());
        assert!(a.len() == 16 && a != b);
        assert!(strong_rand_bytes_nif_1(p, [Term::small(-1)]).is_err());
    }

    #[test]
    fn random_numbers_are_in_their_range() {
        for range in [&[0, 1][..], &[5], &[1, 0], &[1, 0, 3]] {
            let range_value = from_digits(range);
            for _ in 0..50 {
                let drawn = from_digits(&random_below(range).ok().flatten().unwrap());
                let left = range_value.as_ref() - drawn.as_ref();
                assert!(!left.is_negative() && !left.as_ref().is_zero(), "{range:?}");
            }
        }
        assert!(random_below(&[0, 0]).ok().unwrap().is_none());
        assert!(random_below(&[]).ok().unwrap().is_none());
        let nine = from_digits(&[9; 9]);
        assert_eq!(to_digits(&nine), [9; 9]);
    }
}
