//! Long copies of bytes.

/// Bytes of a page, by which processors compare addresses first.
const PAGE: usize = 4096;

/// Bytes by which the target may be above the source, modulo a page, so that `rep movsb` is slow.
const NEAR: usize = 64;

/// Bytes that the C library copies without `rep movsb`.
const STRETCH: usize = 2048;

/// How many of `length` bytes to copy at once, from one address to another: not 0.
///
/// The C library copies more than a few kilobytes by `rep movsb`. Processors of AMD take twenty times as long for that
/// where the target is less than 64 bytes above the source, modulo a page: as where four bytes come before a large binary.
#[inline]
#[must_use]
pub fn at_once(from: *const u8, to: *const u8, length: usize) -> usize {
    let above = to.addr().wrapping_sub(from.addr()) % PAGE;
    if length > STRETCH && above != 0 && above < NEAR {
        STRETCH
    } else {
        length.max(1)
    }
}

/// Adds `bytes` behind those that are there, in stretches that are copied fast.
#[inline]
pub fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    to.reserve(bytes.len());
    let target = to.spare_capacity_mut().as_ptr().cast();
    let parts = bytes.chunks(at_once(bytes.as_ptr(), target, bytes.len()));
    parts.for_each(|part| to.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the two addresses are, and whatever is there before.
    #[test]
    fn all_bytes_are_added() {
        let source: Vec<u8> = (0..3 * PAGE).map(|at| at as u8).collect();
        for from in 0..70 {
            for length in [0, 1, STRETCH, STRETCH + 1, 2 * PAGE + 1] {
                for before in [0, 1, 4, 63, 64, 65, 100] {
                    let mut to = vec![7; before];
                    append(&mut to, &source[from..from + length]);
                    assert_eq!(to[..before], vec![7; before]);
                    assert_eq!(to[before..], source[from..from + length]);
                }
            }
        }
    }

    #[test]
    fn stretches_are_short_where_the_target_is_just_above() {
        let at = |address: usize| std::ptr::without_provenance(address);
        for (from, to, length, expected) in [
            (0x10000, 0x20000, 100_000, 100_000),
            (0x10000, 0x20001, 100_000, STRETCH),
            (0x10ff0, 0x2002f, 100_000, STRETCH),
            (0x10000, 0x20040, 100_000, 100_000),
            (0x10001, 0x20000, 100_000, 100_000),
            (0x10000, 0x20001, STRETCH, STRETCH),
            (0x10000, 0x20001, 0, 1),
        ] {
            assert_eq!(
                at_once(at(from), at(to), length),
                expected,
                "{from:x} {to:x}"
            );
        }
    }
}
