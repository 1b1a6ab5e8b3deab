//! The digests of `crypto`, and HMAC made of them. One table has their names, numbers and sizes, which are those that
//! OpenSSL gives them. Source: `digest.c`, `hash.c` of OTP 29's `crypto`.

use blake2::{Blake2b512, Blake2s256};
use hmac::{KeyInit, Mac, SimpleHmac};
use md4::Md4;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use shake::digest::common::BlockSizeUser;
use shake::digest::consts::{U16, U64};
use shake::digest::{
    ExtendableOutput, FixedOutput, HashMarker, Output, OutputSizeUser, Update, XofReader,
};
use shake::{Shake128, Shake256};
use sm3::Sm3;

use crate::hash::md5::Md5;

/// What is known of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// OpenSSL's number of it.
    pub(super) number: i64,
    /// Bytes of its output; 0 where whoever asks says how many.
    pub(super) bytes: usize,
    /// Bytes that are digested at once.
    pub(super) block_bytes: usize,
}

macro_rules! digests {
    ($($name:ident $state:ident($($default:literal)?) $number:literal $bytes:literal $block:literal;)*) => {
        /// A digest under way.
        #[derive(Clone)]
        pub(super) enum State { $($state($state),)* }

        /// Names of the digests, in the order in which `crypto:supports(hashs)` lists them.
        pub(super) const NAMES: &[&str] = &[$(stringify!($name),)*];

        impl State {
            /// The beginning of the digest of this name.
            pub(super) fn new(name: &str) -> Option<State> {
                Some(match name {
                    $(stringify!($name) => State::$state(Default::default()),)*
                    _ => return None,
                })
            }

            /// What is known of it.
            pub(super) fn info(&self) -> Info {
                match self {
                    $(State::$state(_) => Info {
                        number: $number,
                        bytes: $bytes,
                        block_bytes: $block,
                    },)*
                }
            }

            /// Goes on with `data`.
            pub(super) fn update(&mut self, data: &[u8]) {
                match self { $(State::$state(state) => Update::update(state, data),)* }
            }

            /// Its value; of a digest of any length, as long as `crypto` makes it where nobody says.
            pub(super) fn finish(self) -> Vec<u8> {
                match self { $(State::$state(state) => finish!(state $($default)?),)* }
            }

            /// As many bytes of a digest of any length; `None` for another of another length.
            pub(super) fn finish_xof(self, bytes: usize) -> Option<Vec<u8>> {
                match self {
                    $(State::$state(state) => {
                        let value = finish_xof!(state bytes $($default)?);
                        (value.len() == bytes).then_some(value)
                    })*
                }
            }

            /// HMAC with this digest and key; `None` for a digest of any length, of which there is no HMAC.
            pub(super) fn hmac(&self, key: &[u8]) -> Option<Hmac> {
                match self { $(State::$state(_) => hmac!($state key $($default)?),)* }
            }
        }
    };
}

macro_rules! finish {
    ($state:ident) => {
        $state.finalize().to_vec()
    };
    ($state:ident $default:literal) => {
        read($state, $default)
    };
}

macro_rules! finish_xof {
    ($state:ident $bytes:ident) => {
        finish!($state)
    };
    ($state:ident $bytes:ident $default:literal) => {
        read($state, $bytes)
    };
}

macro_rules! hmac {
    ($state:ident $key:ident) => {{
        let mac = SimpleHmac::<$state>::new_from_slice($key);
        Some(Hmac(Box::new(mac.expect("a key of any length"))))
    }};
    ($state:ident $key:ident $default:literal) => {
        None
    };
}

digests! {
    blake2s Blake2s256() 1057 32 64;
    blake2b Blake2b512() 1056 64 128;
    sm3 Sm3() 1143 32 64;
    shake256 Shake256(32) 1101 0 136;
    shake128 Shake128(16) 1100 0 168;
    sha3_512 Sha3_512() 1099 64 72;
    sha3_384 Sha3_384() 1098 48 104;
    sha3_256 Sha3_256() 1097 32 136;
    sha3_224 Sha3_224() 1096 28 144;
    sha512_256 Sha512_256() 1095 32 128;
    sha512_224 Sha512_224() 1094 28 128;
    sha512 Sha512() 674 64 128;
    sha384 Sha384() 673 48 128;
    sha256 Sha256() 672 32 64;
    sha224 Sha224() 675 28 64;
    sha Sha1() 64 20 64;
    ripemd160 Ripemd160() 117 20 64;
    md5 OurMd5() 4 16 64;
    md4 Md4() 257 16 64;
}

/// The first bytes of a digest of any length.
fn read(state: impl ExtendableOutput, bytes: usize) -> Vec<u8> {
    let mut value = vec![0; bytes];
    state.finalize_xof().read(&mut value);
    value
}

/// The runtime's own MD5, which has other uses, with the traits of the others.
#[derive(Clone)]
pub(super) struct OurMd5(Md5);

impl Default for OurMd5 {
    fn default() -> OurMd5 {
        OurMd5(Md5::new())
    }
}

impl Update for OurMd5 {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

impl HashMarker for OurMd5 {}

impl OutputSizeUser for OurMd5 {
    type OutputSize = U16;
}

impl BlockSizeUser for OurMd5 {
    type BlockSize = U64;
}

impl FixedOutput for OurMd5 {
    fn finalize_into(self, out: &mut Output<OurMd5>) {
        out.copy_from_slice(&self.0.finish());
    }
}

/// HMAC under way, with any digest.
pub(super) struct Hmac(Box<dyn AnyMac>);

/// What HMACs with different digests have in common.
trait AnyMac: Send {
    fn update(&mut self, data: &[u8]);
    fn finish(self: Box<Self>) -> Vec<u8>;
}

impl<M: Mac + Send> AnyMac for M {
    fn update(&mut self, data: &[u8]) {
        Mac::update(self, data);
    }
    fn finish(self: Box<Self>) -> Vec<u8> {
        self.finalize().into_bytes().to_vec()
    }
}

impl Hmac {
    /// Goes on with `data`.
    pub(super) fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Its value.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
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
            ("md4", "a448017aaf21d8525fc10ae87aa6729d"),
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("ripemd160", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
            (
                "sha224",
                "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
            ),
            (
                "sha256",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "sha512_256",
                "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
            ),
            (
                "sha3_224",
                "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf",
            ),
            (
                "blake2s",
                "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
            ),
            (
                "sm3",
                "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0",
            ),
            ("shake128", "5881092dd818bf5cf8a3ddb793fbcba7"),
        ] {
            let mut state = State::new(name).expect("a digest of that name");
            state.update(b"ab");
            state.update(b"c");
            assert_eq!(hex(&state.finish()), digest, "{name}");
        }
        assert!(State::new("whirlpool").is_none());
    }

    #[test]
    fn sizes_are_those_of_the_values() {
        for name in NAMES {
            let state = State::new(name).expect("its own name");
            let (info, value) = (state.info(), state.clone().finish());
            match info.bytes {
                0 => assert_eq!(state.finish_xof(99).map(|value| value.len()), Some(99)),
                bytes => {
                    assert_eq!(value.len(), bytes, "{name}");
                    assert_eq!(state.clone().finish_xof(bytes), Some(value));
                    assert_eq!(state.finish_xof(bytes + 1), None);
                }
            }
        }
    }

    #[test]
    fn hmac_is_that_of_rfc_2202_and_4231() {
        let mac = |name, key: &[u8], text: &[u8]| {
            let mac = State::new(name).and_then(|state| state.hmac(key));
            let mut mac = mac.expect("a fixed length");
            mac.update(text);
            hex(&mac.finish())
        };
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
}
