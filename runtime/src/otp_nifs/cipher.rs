//! The ciphers of `crypto`: AES by blocks, chained, and as a counter's stream; DES three times (EDE), chained, which
//! encrypts debug information of modules. Source: `api_ng.c` and `cipher.c` of OTP 29's `crypto`, whose errors it
//! raises; NIST SP 800-38A.

use aes::cipher::consts::U16;
use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    BlockSizeUser, InnerIvInit, IvState, KeyInit, StreamCipher,
};
use aes::{Aes128, Aes192, Aes256};
use ctr::Ctr128BE;
use des::TdesEde3;
use parking_lot::Mutex;

use super::crypto::raise;
use super::{atom, new_object, object};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, View, am};
use crate::value::{iolist, map};

bifs! {
    all own;
    bif crypto:"cipher_algorithms"/0 => cipher_algorithms_0;
    bif crypto:"cipher_info_nif"/1 => cipher_info_nif_1;
    bif crypto:"ng_crypto_init_nif"/4 => ng_crypto_init_nif_4;
    bif crypto:"ng_crypto_update_nif"/2 => ng_crypto_update_nif_2;
    bif crypto:"ng_crypto_final_nif"/1 => ng_crypto_final_nif_1;
    bif crypto:"ng_crypto_get_data_nif"/1 => ng_crypto_get_data_nif_1;
    bif crypto:"ng_crypto_one_time_nif"/5 => ng_crypto_one_time_nif_5;
}

/// Bytes of a block of AES, the largest one.
const BLOCK_MAX: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Aes,
    /// With three keys: encrypts, decrypts, encrypts.
    TripleDes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Each block alone.
    Ecb,
    /// Each block with the one before it.
    Cbc,
    /// Encrypted counter values as a stream.
    Ctr,
}

/// A cipher as it is named.
struct Kind {
    name: &'static str,
    algorithm: Algorithm,
    mode: Mode,
    key_bytes: usize,
    /// OpenSSL's number for it, where it tells one.
    nid: Option<i64>,
}

const fn aes(name: &'static str, mode: Mode, key_bytes: usize, nid: Option<i64>) -> Kind {
    Kind {
        name,
        algorithm: Algorithm::Aes,
        mode,
        key_bytes,
        nid,
    }
}

const KINDS: [Kind; 10] = [
    aes("aes_128_cbc", Mode::Cbc, 16, Some(419)),
    aes("aes_192_cbc", Mode::Cbc, 24, Some(423)),
    aes("aes_256_cbc", Mode::Cbc, 32, Some(427)),
    aes("aes_128_ecb", Mode::Ecb, 16, Some(418)),
    aes("aes_192_ecb", Mode::Ecb, 24, Some(422)),
    aes("aes_256_ecb", Mode::Ecb, 32, Some(426)),
    aes("aes_128_ctr", Mode::Ctr, 16, None),
    aes("aes_192_ctr", Mode::Ctr, 24, None),
    aes("aes_256_ctr", Mode::Ctr, 32, None),
    Kind {
        name: "des_ede3_cbc",
        algorithm: Algorithm::TripleDes,
        mode: Mode::Cbc,
        key_bytes: 24,
        nid: Some(44),
    },
];

impl Kind {
    fn of(name: Term<'_>) -> Option<&'static Kind> {
        let name = name.as_atom()?;
        KINDS.iter().find(|kind| kind.name == name.name())
    }
    /// Bytes of the algorithm's blocks, whatever the mode makes of them.
    fn cipher_bytes(&self) -> usize {
        match self.algorithm {
            Algorithm::Aes => BLOCK_MAX,
            Algorithm::TripleDes => 8,
        }
    }
    fn iv_bytes(&self) -> usize {
        match self.mode {
            Mode::Ecb => 0,
            Mode::Cbc | Mode::Ctr => self.cipher_bytes(),
        }
    }
    fn block_bytes(&self) -> usize {
        match self.mode {
            Mode::Ctr => 1,
            Mode::Ecb | Mode::Cbc => self.cipher_bytes(),
        }
    }
}

/// A cipher with its key.
enum Engine {
    Blocks(Box<dyn Blocks>),
    Stream(Box<dyn StreamCipher + Send>),
}

/// A cipher of whole blocks, each alone, or chained: then the first one is combined with `chain`, which becomes the block
/// that the next one is combined with.
trait Blocks: Send {
    fn encrypt(&self, chain: Option<&mut [u8]>, bytes: &mut [u8]);
    fn decrypt(&self, chain: Option<&mut [u8]>, bytes: &mut [u8]);
}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser + Send> Blocks for C {
    fn encrypt(&self, chain: Option<&mut [u8]>, bytes: &mut [u8]) {
        let (blocks, _) = Array::<u8, C::BlockSize>::slice_as_chunks_mut(bytes);
        let Some(chain) = chain else {
            return self.encrypt_blocks(blocks);
        };
        let mut mode = cbc::Encryptor::inner_iv_init(self, block_of::<C>(chain));
        mode.encrypt_blocks(blocks);
        chain.copy_from_slice(&mode.iv_state());
    }

    fn decrypt(&self, chain: Option<&mut [u8]>, bytes: &mut [u8]) {
        let (blocks, _) = Array::<u8, C::BlockSize>::slice_as_chunks_mut(bytes);
        let Some(chain) = chain else {
            return self.decrypt_blocks(blocks);
        };
        let mut mode = cbc::Decryptor::inner_iv_init(self, block_of::<C>(chain));
        mode.decrypt_blocks(blocks);
        chain.copy_from_slice(&mode.iv_state());
    }
}

/// Bytes as a block of a cipher.
///
/// # Panics
/// For another size than the blocks of the cipher have.
fn block_of<C: BlockSizeUser>(bytes: &[u8]) -> &Array<u8, C::BlockSize> {
    bytes.try_into().expect("a block of this size")
}

/// A cipher with a key.
///
/// # Panics
/// For another size than its keys have.
fn keyed<C: KeyInit>(key: &[u8]) -> C {
    C::new_from_slice(key).expect("a key of this size")
}

impl Engine {
    fn new(kind: &Kind, key: &[u8], iv: &[u8]) -> Engine {
        if kind.algorithm == Algorithm::TripleDes {
            return Engine::Blocks(Box::new(keyed::<TdesEde3>(key)));
        }
        match kind.key_bytes {
            16 => Engine::aes(kind.mode, keyed::<Aes128>(key), iv),
            24 => Engine::aes(kind.mode, keyed::<Aes192>(key), iv),
            _ => Engine::aes(kind.mode, keyed::<Aes256>(key), iv),
        }
    }

    fn aes<C>(mode: Mode, cipher: C, iv: &[u8]) -> Engine
    where
        C: BlockCipherEncrypt
            + BlockCipherDecrypt
            + BlockSizeUser<BlockSize = U16>
            + Send
            + 'static,
    {
        match mode {
            Mode::Ctr => {
                let core = ctr::CtrCore::inner_iv_init(cipher, block_of::<C>(iv));
                Engine::Stream(Box::new(Ctr128BE::from_core(core)))
            }
            Mode::Ecb | Mode::Cbc => Engine::Blocks(Box::new(cipher)),
        }
    }
}

/// What is done with a last block that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    /// It is dropped.
    Undefined,
    /// It is an error.
    None,
    Zero,
    Random,
    /// As PKCS#7 says, a full block included.
    Pkcs,
}

const PADDINGS: [(&str, Padding); 5] = [
    ("undefined", Padding::Undefined),
    ("none", Padding::None),
    ("zero", Padding::Zero),
    ("random", Padding::Random),
    ("pkcs_padding", Padding::Pkcs),
];

/// A text on its way through a cipher.
struct State {
    kind: &'static Kind,
    engine: Engine,
    encrypt: bool,
    padding: Padding,
    /// The block before; empty where blocks stand alone.
    chain: Vec<u8>,
    /// Input that fills no block yet.
    rest: Vec<u8>,
    /// Bytes taken in.
    size: usize,
    /// Bytes of padding; −1 before the end.
    padded: i64,
}

impl State {
    fn new(kind: &'static Kind, key: &[u8], iv: &[u8], encrypt: bool, padding: Padding) -> State {
        State {
            kind,
            engine: Engine::new(kind, key, iv),
            encrypt,
            padding,
            chain: iv.to_vec(),
            rest: Vec::new(),
            size: 0,
            padded: -1,
        }
    }

    fn update(&mut self, data: &[u8]) -> Vec<u8> {
        self.size += data.len();
        if let Engine::Stream(stream) = &mut self.engine {
            let mut out = data.to_vec();
            stream.apply_keystream(&mut out);
            return out;
        }
        self.rest.extend_from_slice(data);
        let block = self.kind.block_bytes();
        let mut whole = self.rest.len() / block * block;
        // The last block may be all padding.
        if !self.encrypt && self.padding == Padding::Pkcs && whole == self.rest.len() {
            whole = whole.saturating_sub(block);
        }
        let mut out: Vec<u8> = self.rest.drain(..whole).collect();
        self.work_on(&mut out);
        out
    }

    /// Encrypts or decrypts whole blocks.
    fn work_on(&mut self, bytes: &mut [u8]) {
        let Engine::Blocks(cipher) = &self.engine else {
            return;
        };
        let chain = Some(&mut self.chain[..]).filter(|_| self.kind.mode == Mode::Cbc);
        if self.encrypt {
            cipher.encrypt(chain, bytes);
        } else {
            cipher.decrypt(chain, bytes);
        }
    }

    /// The end of the text. The error says what is wrong with it.
    fn finish(&mut self) -> Result<Vec<u8>, &'static str> {
        let block_bytes = self.kind.block_bytes();
        let missing = self.size.next_multiple_of(block_bytes) - self.size;
        if !self.encrypt {
            return self.finish_decryption();
        }
        self.padded = missing as i64;
        match self.padding {
            Padding::Undefined => Ok(Vec::new()),
            Padding::None if self.rest.is_empty() => Ok(Vec::new()),
            Padding::None => Err("Padding 'none' but unfilled last block"),
            Padding::Zero => Ok(self.update_rest(&vec![0; missing])),
            Padding::Random => {
                let mut bytes = vec![0; missing];
                crate::sys::chance::random::fill(&mut bytes).map_err(|_| "Can't pad")?;
                Ok(self.update_rest(&bytes))
            }
            Padding::Pkcs => {
                let count = if missing == 0 { block_bytes } else { missing };
                self.padded = count as i64;
                if self.kind.mode == Mode::Ctr {
                    return Ok(Vec::new());
                }
                Ok(self.update_rest(&vec![count as u8; count]))
            }
        }
    }

    /// As [`State::update`], of what is no part of the text.
    fn update_rest(&mut self, padding: &[u8]) -> Vec<u8> {
        let size = self.size;
        let out = self.update(padding);
        self.size = size;
        out
    }

    fn finish_decryption(&mut self) -> Result<Vec<u8>, &'static str> {
        const BAD: &str = "Can't finalize";
        if self.padding == Padding::Undefined || self.kind.mode == Mode::Ctr {
            return Ok(Vec::new());
        }
        if self.padding != Padding::Pkcs {
            return self.rest.is_empty().then(Vec::new).ok_or(BAD);
        }
        let mut block = std::mem::take(&mut self.rest);
        let size = self.kind.block_bytes();
        if block.len() != size {
            return Err(BAD);
        }
        self.work_on(&mut block);
        let count = usize::from(block[size - 1]);
        let text = size.checked_sub(count).filter(|text| *text < size);
        let text = text.ok_or(BAD)?;
        let is_padding = block[text..].iter().all(|byte| usize::from(*byte) == count);
        is_padding.then(|| block[..text].to_vec()).ok_or(BAD)
    }
}

fn cipher_algorithms_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.list(&KINDS.map(|kind| atom(kind.name))))
}

fn cipher_info_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let kind = Kind::of(name).ok_or_else(badarg)?;
    let mode = match kind.mode {
        Mode::Ecb => "ecb_mode",
        Mode::Cbc => "cbc_mode",
        Mode::Ctr => "ctr_mode",
    };
    let size = |bytes: usize| Term::small(bytes as i64);
    Ok(map::from_pairs(
        p,
        &[
            (
                atom("type"),
                kind.nid.map_or(am::undefined.term(), Term::small),
            ),
            (atom("key_length"), size(kind.key_bytes)),
            (atom("iv_length"), size(kind.iv_bytes())),
            (atom("block_size"), size(kind.block_bytes())),
            (atom("prop_aead"), am::false_.term()),
            (atom("mode"), atom(mode)),
        ],
    ))
}

fn bytes_of<'p>(p: &'p Process, data: Term<'p>, at: i64, text: &str) -> Result<Vec<u8>, Raise<'p>> {
    iolist::to_vec(data).map_err(|_| raise(p, "badarg", at, text, line!()))
}

/// Whether to encrypt, and the padding: a boolean, or a list of both.
fn options<'p>(p: &'p Process, term: Term<'p>, at: i64) -> Result<(bool, Padding), Raise<'p>> {
    let bad = |text| raise(p, "badarg", at, text, line!());
    if let Some(encrypt) = term.as_bool() {
        return Ok((encrypt, Padding::Undefined));
    }
    let list: Result<Vec<_>, _> = term.list_iter().collect();
    let list = list.map_err(|_| bad("Options are not a boolean or a proper list"))?;
    let (mut encrypt, mut padding) = (None, None);
    for option in list {
        let View::Tuple(option) = option.view() else {
            return Err(bad("Options must be a property list!"));
        };
        let &[tag, value] = option.elements() else {
            return Err(bad("Options must be a property list!"));
        };
        if tag.same(atom("encrypt")) {
            let value = value.as_bool();
            let value = value.ok_or_else(|| bad("The 'encrypt' option must be a boolean!"))?;
            if encrypt.replace(value).is_some() {
                return Err(bad("'encrypt' option is present more than once!"));
            }
        } else if tag.same(atom("padding")) {
            let known = PADDINGS.iter().find(|(name, _)| value.same(atom(name)));
            let (_, value) = known.ok_or_else(|| bad("Bad 'padding' option value"))?;
            if padding.replace(*value).is_some() {
                return Err(bad("The 'padding' option is present more than once!"));
            }
        } else {
            return Err(bad(&format!("Bad tag in option: {tag:?}")));
        }
    }
    Ok((
        encrypt.unwrap_or(true),
        padding.unwrap_or(Padding::Undefined),
    ))
}

/// The state for arguments that begin with cipher, key and initial vector; the options are number `at`.
fn init<'p>(
    p: &'p Process,
    [name, key, iv, opts]: [Term<'p>; 4],
    at: i64,
) -> Result<State, Raise<'p>> {
    let bad = |argument, text| raise(p, "badarg", argument, text, line!());
    let (encrypt, padding) = options(p, opts, at)?;
    let key = bytes_of(p, key, 1, "Bad key")?;
    if name.as_atom().is_none() {
        return Err(bad(0, "Cipher id is not an atom"));
    }
    let kind = Kind::of(name).ok_or_else(|| bad(0, "Unknown cipher"))?;
    if key.len() != kind.key_bytes {
        return Err(bad(1, "Bad key size"));
    }
    let mut bytes = Vec::new();
    if kind.iv_bytes() > 0 {
        bytes = bytes_of(p, iv, 2, "Bad iv type")?;
        if bytes.len() != kind.iv_bytes() {
            return Err(bad(2, "Bad iv size"));
        }
    }
    Ok(State::new(kind, &key, &bytes, encrypt, padding))
}

fn end<'p>(p: &'p Process, state: &mut State) -> Result<Vec<u8>, Raise<'p>> {
    state
        .finish()
        .map_err(|text| raise(p, "error", -1, text, line!()))
}

fn ng_crypto_init_nif_4<'p>(p: &'p Process, args: [Term<'p>; 4]) -> BifResult<'p> {
    let [known, _, _, encrypt] = args;
    let Ok(state) = object::<Mutex<State>>(known) else {
        return Ok(new_object(p, Mutex::new(init(p, args, 3)?)));
    };
    let encrypt = encrypt.as_bool();
    state.lock().encrypt =
        encrypt.ok_or_else(|| raise(p, "badarg", 3, "Expected true or false", line!()))?;
    Ok(known)
}

fn state_of<'p>(p: &'p Process, state: Term<'p>) -> Result<&'p Mutex<State>, Raise<'p>> {
    object(state).map_err(|_| raise(p, "badarg", 0, "Bad State", line!()))
}

fn ng_crypto_update_nif_2<'p>(p: &'p Process, [state, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let data = bytes_of(p, data, 1, "expected binary")?;
    let out = state_of(p, state)?.lock().update(&data);
    Ok(p.binary(&out))
}

fn ng_crypto_final_nif_1<'p>(p: &'p Process, [state]: [Term<'p>; 1]) -> BifResult<'p> {
    let out = end(p, &mut state_of(p, state)?.lock())?;
    Ok(p.binary(&out))
}

fn ng_crypto_get_data_nif_1<'p>(p: &'p Process, [state]: [Term<'p>; 1]) -> BifResult<'p> {
    let state = state_of(p, state)?.lock();
    let padding = PADDINGS
        .iter()
        .find(|(_, padding)| *padding == state.padding);
    let (padding, _) = padding.expect("every padding has its name");
    Ok(map::from_pairs(
        p,
        &[
            (atom("size"), p.unsigned(state.size as u64)),
            (atom("padding_size"), Term::small(state.padded)),
            (atom("padding_type"), atom(padding)),
            (atom("encrypt"), Term::bool(state.encrypt)),
        ],
    ))
}

fn ng_crypto_one_time_nif_5<'p>(p: &'p Process, args: [Term<'p>; 5]) -> BifResult<'p> {
    let [name, key, iv, data, opts] = args;
    let data = bytes_of(p, data, 3, "expected binary as data")?;
    let mut state = init(p, [name, key, iv, opts], 4)?;
    let mut out = state.update(&data);
    out.extend(end(p, &mut state)?);
    Ok(p.binary(&out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    fn run(name: &str, key: &str, iv: &str, data: &[u8], how: (bool, Padding)) -> Vec<u8> {
        let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
        let mut state = State::new(kind, &unhex(key), &unhex(iv), how.0, how.1);
        // In parts that fit no block.
        let mut out = state.update(&data[..5]);
        out.extend(state.update(&data[5..]));
        out.extend(state.finish().unwrap());
        out
    }

    #[test]
    fn vectors_of_sp_800_38a() {
        const KEY128: &str = "2b7e151628aed2a6abf7158809cf4f3c";
        const KEY256: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        const IV: &str = "000102030405060708090a0b0c0d0e0f";
        const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
        let text = unhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
        for (name, key, iv, expected) in [
            (
                "aes_128_ecb",
                KEY128,
                "",
                "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf",
            ),
            (
                "aes_128_cbc",
                KEY128,
                IV,
                "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2",
            ),
            (
                "aes_256_ctr",
                KEY256,
                COUNTER,
                "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5",
            ),
        ] {
            let secret = run(name, key, iv, &text, (true, Padding::Undefined));
            assert_eq!(secret, unhex(expected), "{name}");
            let back = run(name, key, iv, &secret, (false, Padding::Undefined));
            assert_eq!(back, text, "{name}");
        }
    }

    #[test]
    fn vector_of_sp_800_67() {
        let key = "0123456789abcdef23456789abcdef01456789abcdef0123";
        let text = b"The qufck brown fox jump";
        let alone = unhex("a826fd8ce53b855fcce21c8112256fe668d5c05dd9b6b900");
        let kind = KINDS
            .iter()
            .find(|kind| kind.name == "des_ede3_cbc")
            .unwrap();
        let cipher = Engine::new(kind, &unhex(key), &[0; 8]);
        let Engine::Blocks(cipher) = cipher else {
            unreachable!("it has blocks");
        };
        let mut bytes = text.to_vec();
        cipher.encrypt(None, &mut bytes);
        assert_eq!(bytes, alone);
        let iv = "f69f2445df4f9b17";
        for padding in [Padding::Undefined, Padding::Pkcs] {
            let secret = run("des_ede3_cbc", key, iv, text, (true, padding));
            let back = run("des_ede3_cbc", key, iv, &secret, (false, padding));
            assert_eq!(back, text, "{padding:?}");
        }
    }

    #[test]
    fn padding_fills_the_last_block_and_comes_off_again() {
        let key = "00".repeat(16);
        for (padding, bytes, padded) in [
            (Padding::Pkcs, 16, 32),
            (Padding::Pkcs, 17, 32),
            (Padding::Zero, 17, 32),
            (Padding::Random, 17, 32),
            (Padding::Undefined, 17, 16),
        ] {
            let text = vec![7; bytes];
            let secret = run("aes_128_ecb", &key, "", &text, (true, padding));
            assert_eq!(secret.len(), padded, "{padding:?} {bytes}");
            let back = run("aes_128_ecb", &key, "", &secret, (false, padding));
            let whole = bytes.min(back.len());
            assert_eq!(back[..whole], text[..whole], "{padding:?} {bytes}");
            assert_eq!(
                back.len() == bytes,
                padding == Padding::Pkcs,
                "{padding:?} {bytes}"
            );
        }
        let kind = &KINDS[3];
        let mut state = State::new(kind, &[0; 16], &[], true, Padding::None);
        state.update(b"x");
        assert!(state.finish().is_err());
    }
}
