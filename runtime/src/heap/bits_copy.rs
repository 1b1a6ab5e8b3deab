//! Operations on bits between arbitrary offsets: copies, comparisons, and fields of up to 64 bits.
//!
//! A place is a byte pointer and an offset in bits from it, most significant bit of a byte first. Bytes that hold none
//! of the named bits are neither read nor written.

use crate::copy::at_once;

/// Copies `len` bits from `src_bit` bits into `src` to `dst_bit` bits into `dst`. Other bits of the
/// destination's bytes stay.
///
/// # Safety
/// T1: the source bits are readable, the destination bits writable, and the two do not overlap.
pub(crate) unsafe fn copy_bits(
    src: *const u8,
    src_bit: usize,
    dst: *mut u8,
    dst_bit: usize,
    len: usize,
) {
    if len == 0 {
        return;
    }
    // SAFETY: by contract; each step below stays within the bytes that hold the named bits.
    unsafe {
        let (mut src, mut src_bit) = (src.add(src_bit / 8), src_bit % 8);
        let (mut dst, dst_bit) = (dst.add(dst_bit / 8), dst_bit % 8);
        let mut len = len;
        if dst_bit != 0 {
            let n = (8 - dst_bit).min(len);
            put_in_byte(dst, dst_bit, n, read_in_bytes(src, src_bit, n));
            dst = dst.add(1);
            src_bit += n;
            src = src.add(src_bit / 8);
            src_bit %= 8;
            len -= n;
        }
        let whole = len / 8;
        if src_bit == 0 {
            copy_bytes(src, dst, whole);
        } else {
            shift_bytes(src, src_bit, dst, whole);
        }
        let rest = len % 8;
        if rest != 0 {
            let byte = read_in_bytes(src.add(whole), src_bit, rest);
            put_in_byte(dst.add(whole), 0, rest, byte);
        }
    }
}

/// Makes `len` bits from `bit` bits into `dst` all ones, or all zeros. Other bits of their bytes stay.
///
/// # Safety
/// T1: the bits are writable.
pub(crate) unsafe fn fill_bits(dst: *mut u8, bit: usize, len: usize, ones: bool) {
    let byte = if ones { u8::MAX } else { 0 };
    // SAFETY: by contract; each step below stays within the bytes that hold the named bits.
    unsafe {
        let (mut dst, bit) = (dst.add(bit / 8), bit % 8);
        let first = (8 - bit).min(len) % 8;
        if first != 0 {
            put_in_byte(dst, bit, first, byte);
            dst = dst.add(1);
        }
        let (whole, rest) = ((len - first) / 8, (len - first) % 8);
        dst.write_bytes(byte, whole);
        if rest != 0 {
            put_in_byte(dst.add(whole), 0, rest, byte);
        }
    }
}

/// Copies whole bytes: most are so few that a call would take longer. Of those, the last ones may be copied twice.
///
/// # Safety
/// T1: `len` bytes are readable at `src`, and writable at `dst`; the two do not overlap.
#[inline]
unsafe fn copy_bytes(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: by contract: neither end of a copy is outside of the `len` bytes.
    unsafe {
        match len {
            17.. => copy_long(src, dst, len),
            8.. => copy_ends::<u64>(src, dst, len),
            4.. => copy_ends::<u32>(src, dst, len),
            2.. => copy_ends::<u16>(src, dst, len),
            1 => *dst = *src,
            0 => {}
        }
    }
}

/// Copies more bytes than a few.
///
/// # Safety
/// T1: as [`copy_bytes`].
#[inline]
unsafe fn copy_long(src: *const u8, dst: *mut u8, len: usize) {
    let at_once = at_once(src, dst, len);
    let mut at = 0;
    while at < len {
        let part = at_once.min(len - at);
        // SAFETY: by contract: `part` bytes from `at` are among the `len`.
        unsafe { std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), part) };
        at += part;
    }
}

/// Copies the first and the last bytes of `len`, as many as a `T` has.
///
/// # Safety
/// T1: as [`copy_bytes`]; `len` is as many as a `T` has, and at most twice that.
#[inline(always)]
unsafe fn copy_ends<T: Copy>(src: *const u8, dst: *mut u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: by contract.
    unsafe {
        let ends = (
            src.cast::<T>().read_unaligned(),
            src.add(last).cast::<T>().read_unaligned(),
        );
        dst.cast::<T>().write_unaligned(ends.0);
        dst.add(last).cast::<T>().write_unaligned(ends.1);
    }
}

/// Copies `len` whole bytes that start `shift` bits (1 to 7) into `src`.
///
/// # Safety
/// T1: `len + 1` bytes are readable at `src` unless `len` is 0, `len` writable at `dst`.
unsafe fn shift_bytes(src: *const u8, shift: usize, dst: *mut u8, len: usize) {
    let mut at = 0;
    // SAFETY: by contract: eight bytes from `at`, and the one behind them, are among `len + 1`.
    unsafe {
        while at + 8 <= len {
            let high = src.add(at).cast::<u64>().read_unaligned().to_be();
            let low = u64::from(*src.add(at + 8)) >> (8 - shift);
            let word = (high << shift) | low;
            dst.add(at).cast::<u64>().write_unaligned(word.to_be());
            at += 8;
        }
        while at < len {
            *dst.add(at) = (*src.add(at) << shift) | (*src.add(at + 1) >> (8 - shift));
            at += 1;
        }
    }
}

/// `len` (1 to 8) bits that start `bit` (0 to 7) bits into `src`, in the high bits of a byte.
///
/// # Safety
/// T1: the bits are readable.
#[inline]
unsafe fn read_in_bytes(src: *const u8, bit: usize, len: usize) -> u8 {
    // SAFETY: by contract: the second byte is read only where it holds some of the bits.
    let byte = unsafe {
        let high = *src << bit;
        if bit + len > 8 {
            high | (*src.add(1) >> (8 - bit))
        } else {
            high
        }
    };
    byte & (0xffu8 << (8 - len))
}

/// Puts the `len` high bits of `value` `bit` bits into the byte at `dst`; they fit in it.
///
/// # Safety
/// T1: the byte is writable.
#[inline]
unsafe fn put_in_byte(dst: *mut u8, bit: usize, len: usize, value: u8) {
    let mask = (0xffu8 << (8 - len)) >> bit;
    // SAFETY: by contract.
    unsafe { *dst = (*dst & !mask) | ((value >> bit) & mask) };
}

/// Are the two runs of `len` bits the same?
///
/// # Safety
/// T1: the bits are readable.
pub(crate) unsafe fn equal_bits(
    a: *const u8,
    a_bit: usize,
    b: *const u8,
    b_bit: usize,
    len: usize,
) -> bool {
    // SAFETY: by contract.
    unsafe {
        let (a, a_bit) = (a.add(a_bit / 8), a_bit % 8);
        let (b, b_bit) = (b.add(b_bit / 8), b_bit % 8);
        let mut at = 0;
        if a_bit == 0 && b_bit == 0 {
            let whole = len / 8;
            if std::slice::from_raw_parts(a, whole) != std::slice::from_raw_parts(b, whole) {
                return false;
            }
            at = whole * 8;
        }
        while at < len {
            let n = (len - at).min(64);
            if read_field(a, a_bit + at, n) != read_field(b, b_bit + at, n) {
                return false;
            }
            at += n;
        }
        true
    }
}

/// The unsigned big-endian number of `len` (0 to 64) bits that start `bit` bits into `src`.
///
/// # Safety
/// T1: the bits are readable.
#[inline]
pub(crate) unsafe fn read_field(src: *const u8, bit: usize, len: usize) -> u64 {
    if len == 0 {
        return 0;
    }
    let (from, shift) = (bit / 8, bit % 8);
    let bytes = (shift + len).div_ceil(8);
    // SAFETY: by contract: `bytes` bytes from `from` hold the bits.
    unsafe {
        let src = src.add(from);
        let mut word = 0u64;
        if bytes >= 8 {
            word = src.cast::<u64>().read_unaligned().to_be();
        } else {
            for i in 0..bytes {
                word = (word << 8) | u64::from(*src.add(i));
            }
            word <<= 64 - 8 * bytes;
        }
        word <<= shift;
        if bytes == 9 {
            word |= u64::from(*src.add(8)) >> (8 - shift);
        }
        word >> (64 - len)
    }
}

/// Writes the lowest `len` (0 to 64) bits of `value`, big-endian, `bit` bits into `dst`.
///
/// # Safety
/// T1: the bits are writable.
#[inline]
pub(crate) unsafe fn write_field(dst: *mut u8, bit: usize, len: usize, value: u64) {
    if len == 0 {
        return;
    }
    let bytes = (value << (64 - len)).to_be_bytes();
    // SAFETY: by contract; `len` bits of the array are read.
    unsafe {
        if bit.is_multiple_of(8) && len.is_multiple_of(8) {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), dst.add(bit / 8), len / 8);
        } else {
            copy_bits(bytes.as_ptr(), 0, dst, bit, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(bytes: &[u8], at: usize) -> bool {
        (bytes[at / 8] >> (7 - at % 8)) & 1 == 1
    }

    fn field(bytes: &[u8], at: usize, len: usize) -> u64 {
        (at..at + len).fold(0, |n, i| (n << 1) | u64::from(bit(bytes, i)))
    }

    proptest! {
        #[test]
        fn copies_are_those_of_a_model(
            src in prop::collection::vec(any::<u8>(), 1..60),
            mut dst in prop::collection::vec(any::<u8>(), 60..70),
            from in 0usize..480,
            to in 0usize..64,
            len in 0usize..480,
        ) {
            let from = from % (src.len() * 8);
            let len = len.min(src.len() * 8 - from).min(dst.len() * 8 - to);
            let before = dst.clone();
            // SAFETY: T1: `len` bits from there lie within both.
            unsafe { copy_bits(src.as_ptr(), from, dst.as_mut_ptr(), to, len) };
            for i in 0..dst.len() * 8 {
                let expect = if (to..to + len).contains(&i) {
                    bit(&src, from + i - to)
                } else {
                    bit(&before, i)
                };
                prop_assert_eq!(bit(&dst, i), expect, "bit {}", i);
            }
            // SAFETY: T1: as above.
            let same = unsafe { equal_bits(src.as_ptr(), from, dst.as_ptr(), to, len) };
            prop_assert!(same);
            if len > 0 {
                let at = to + (from * 7 + len) % len;
                dst[at / 8] ^= 0x80 >> (at % 8);
                // SAFETY: T1: as above.
                let same = unsafe { equal_bits(src.as_ptr(), from, dst.as_ptr(), to, len) };
                prop_assert!(!same);
            }
        }

        #[test]
        fn filled_bits_are_those_of_a_model(
            mut bytes in prop::collection::vec(any::<u8>(), 20),
            at in 0usize..96,
            len in 0usize..=64,
            ones in any::<bool>(),
        ) {
            let before = bytes.clone();
            // SAFETY: T1: 160 bits are there.
            unsafe { fill_bits(bytes.as_mut_ptr(), at, len, ones) };
            for i in 0..160 {
                let expect = if (at..at + len).contains(&i) { ones } else { bit(&before, i) };
                prop_assert_eq!(bit(&bytes, i), expect, "bit {}", i);
            }
        }

        #[test]
        fn fields_are_those_of_a_model(
            mut bytes in prop::collection::vec(any::<u8>(), 20),
            at in 0usize..96,
            len in 0usize..=64,
            value in any::<u64>(),
        ) {
            // SAFETY: T1: 160 bits are there.
            prop_assert_eq!(unsafe { read_field(bytes.as_ptr(), at, len) }, field(&bytes, at, len));
            let before = bytes.clone();
            // SAFETY: T1: as above.
            unsafe { write_field(bytes.as_mut_ptr(), at, len, value) };
            let low = if len == 64 { value } else { value & ((1 << len) - 1) };
            prop_assert_eq!(field(&bytes, at, len), low);
            for i in (0..at).chain(at + len..160) {
                prop_assert_eq!(bit(&bytes, i), bit(&before, i));
            }
        }
    }
}
