//! The native functions of `crypto` for random numbers, digests and HMAC; [`super::cipher`] has the ciphers. All other
//! functions of the module raise `nif_not_loaded`, as its own stubs do. Source: `hash.c`, `hmac.c`, `rand.c` of OTP
//! 29's `crypto`.

use parking_lot::Mutex;

use super::digest::{Hmac, NAMES, State};
use super::{atom, new_object, object};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::num::limbs::Int;
use crate::process::Process;
use crate::term::{Bits, Term, am};
use crate::value::iolist;

bifs! {
    bif crypto:"strong_rand_bytes_nif"/1 => strong_rand_bytes_nif_1, answer;
    bif crypto:"strong_rand_range_nif"/1 => strong_rand_range_nif_1, answer;
    bif crypto:"rand_uniform_nif"/2 => rand_uniform_nif_2, answer;
    bif crypto:"rand_seed_nif"/1 => rand_seed_nif_1, again;
    bif crypto:"hash_algorithms"/0 => hash_algorithms_0, own;
    bif crypto:"hash_nif"/2 => hash_nif_2, own;
    bif crypto:"hash_init_nif"/1 => hash_init_nif_1, own;
    bif crypto:"hash_update_nif"/2 => hash_update_nif_2, own;
    bif crypto:"hash_final_nif"/1 => hash_final_nif_1, own;
    bif crypto:"hash_info_nif"/1 => hash_info_nif_1, own;
    bif crypto:"hash_final_xof_nif"/2 => hash_final_xof_nif_2, own;
    bif crypto:"mac_algorithms"/0 => mac_algorithms_0, own;
    bif crypto:"mac_nif"/4 => mac_nif_4, own;
    bif crypto:"mac_init_nif"/3 => mac_init_nif_3, own;
    bif crypto:"mac_update_nif"/2 => mac_update_nif_2, own;
    bif crypto:"mac_final_nif"/1 => mac_final_nif_1, own;
    bif crypto:"hash_equals_nif"/2 => hash_equals_nif_2, own;
    bif crypto:"do_exor"/2 => do_exor_2, own;
}

/// `{Id, Where, Text}`, as the module's native functions raise. The argument is counted from 0; −1 is none.
pub(super) fn raise<'p>(
    p: &'p Process,
    id: &str,
    argument: i64,
    text: &str,
    line: u32,
) -> Raise<'p> {
    let place = crate::value::map::from_pairs(
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

fn state_of<'p>(p: &'p Process, name: Term<'p>) -> Result<State, Raise<'p>> {
    let state = name.as_atom().and_then(|name| State::new(name.name()));
    state.ok_or_else(|| raise(p, "badarg", 0, "Bad digest type", line!()))
}

fn data_of<'p>(p: &'p Process, data: Term<'p>, argument: i64) -> Result<Vec<u8>, Raise<'p>> {
    bytes(data).ok_or_else(|| raise(p, "badarg", argument, "Not iolist", line!()))
}

fn strong_rand_bytes_nif_1<'p>(p: &'p Process, [count]: [Term<'p>; 1]) -> BifResult<'p> {
    let count = count.as_small().and_then(|count| u32::try_from(count).ok());
    let count = count.ok_or_else(badarg)? as usize;
    // OpenSSL draws no more at once.
    if count > i32::MAX as usize {
        return Ok(am::false_.term());
    }
    let mut bytes = crate::sys::memory::zeroed_bytes(count);
    match crate::sys::chance::random::fill(&mut bytes) {
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
        crate::sys::chance::random::fill(&mut drawn)?;
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
        return Err(badarg().into());
    }
    let drawn = random_below(&to_digits(&range)).ok().flatten();
    let value = from_digits(&drawn.ok_or_else(badarg)?);
    let digits = to_digits(&(value.as_ref() + from.as_ref()));
    let size = (digits.len() as u32).to_be_bytes();
    Ok(p.binary(&[&size[..], &digits].concat()))
}

/// The system's generator needs no seed.
fn rand_seed_nif_1<'p>(_: &'p Process, [seed]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(seed.as_binary().map(|_| am::ok.term()).ok_or_else(badarg)?)
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

/// What `hash_info/1` tells: `#{type => Number, size => Bytes, block_size => Bytes}`.
fn hash_info_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let state = name.as_atom().and_then(|name| State::new(name.name()));
    let info = state.ok_or_else(badarg)?.info();
    Ok(crate::value::map::from_pairs(
        p,
        &[
            (atom("type"), Term::small(info.number)),
            (atom("size"), p.unsigned(info.bytes as u64)),
            (atom("block_size"), p.unsigned(info.block_bytes as u64)),
        ],
    ))
}

fn hash_nif_2<'p>(p: &'p Process, [name, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut state = state_of(p, name)?;
    let data = data_of(p, data, 1)?;
    state.update(&data);
    consume(p, &data);
    Ok(p.binary(&state.finish()))
}

fn hash_init_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(new_object(p, state_of(p, name)?))
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

/// This many bits of a digest of any length.
fn hash_final_xof_nif_2<'p>(p: &'p Process, [state, bits]: [Term<'p>; 2]) -> BifResult<'p> {
    let bad = |_| raise(p, "badarg", 0, "Bad state", line!());
    let state = object::<State>(state).map_err(bad)?.clone();
    let bits = bits.as_small().and_then(|bits| u32::try_from(bits).ok());
    let bits = bits.ok_or_else(|| raise(p, "badarg", 1, "Bad len", line!()))?;
    let value = state.finish_xof(bits as usize / 8);
    let failed = "Low-level call EVP_DigestFinalXOF failed";
    let value = value.ok_or_else(|| raise(p, "error", -1, failed, line!()))?;
    Ok(p.binary(&value))
}

/// The beginning of a mac of this kind; `failed` is said of a digest that has no HMAC.
fn hmac<'p>(
    p: &'p Process,
    [kind, name]: [Term<'p>; 2],
    key: &[u8],
    failed: &str,
) -> Result<Hmac, Raise<'p>> {
    if !kind.same(atom("hmac")) {
        return Err(raise(p, "badarg", 0, "Unknown mac algorithm", line!()));
    }
    let state = name.as_atom().and_then(|name| State::new(name.name()));
    let bad = || raise(p, "badarg", 1, "Bad digest algorithm for HMAC", line!());
    let mac = state.ok_or_else(bad)?.hmac(key);
    mac.ok_or_else(|| raise(p, "error", -1, failed, line!()))
}

fn mac_algorithms_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.list(&[atom("hmac")]))
}

fn argument<'p>(
    p: &'p Process,
    data: Term<'p>,
    number: i64,
    complaint: &str,
) -> Result<Vec<u8>, Raise<'p>> {
    iolist::to_vec(data).map_err(|_| raise(p, "badarg", number, complaint, line!()))
}

fn mac_nif_4<'p>(p: &'p Process, [kind, name, key, text]: [Term<'p>; 4]) -> BifResult<'p> {
    let key = argument(p, key, 2, "Bad key")?;
    let text = argument(p, text, 3, "Bad text")?;
    let mut mac = hmac(p, [kind, name], &key, "Couldn't get mac")?;
    consume(p, &text);
    mac.update(&text);
    Ok(p.binary(&mac.finish()))
}

/// A mac that is made piece by piece: each piece changes what the reference stands for, and nothing is left of it
/// when its value has been asked for.
struct Mac(Mutex<Option<Hmac>>);

fn mac_init_nif_3<'p>(p: &'p Process, [kind, name, key]: [Term<'p>; 3]) -> BifResult<'p> {
    let key = argument(p, key, 2, "Bad key")?;
    let mac = hmac(p, [kind, name], &key, "Can't initialize EVP_MAC_CTX")?;
    Ok(new_object(p, Mac(Mutex::new(Some(mac)))))
}

fn mac_of<'p>(p: &'p Process, reference: Term<'p>) -> Result<&'p Mac, Raise<'p>> {
    object::<Mac>(reference).map_err(|_| raise(p, "badarg", 0, "Bad ref", line!()))
}

fn mac_update_nif_2<'p>(p: &'p Process, [reference, text]: [Term<'p>; 2]) -> BifResult<'p> {
    let mac = mac_of(p, reference)?;
    let text = argument(p, text, 1, "Bad text")?;
    match mac.0.lock().as_mut() {
        Some(mac) => mac.update(&text),
        None => return Err(raise(p, "error", -1, "mac update", line!()).into()),
    }
    consume(p, &text);
    Ok(reference)
}

fn mac_final_nif_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    let mac = mac_of(p, reference)?.0.lock().take();
    let mac = mac.ok_or_else(|| raise(p, "error", -1, "Signing", line!()))?;
    Ok(p.binary(&mac.finish()))
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
