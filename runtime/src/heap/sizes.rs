//! Heap sizes: the steps in which heaps grow. Source: `erts_init_gc()` in `erl_gc.c`.

use std::sync::OnceLock;

/// Least words of off-heap binaries that call for a collection.
pub(crate) const MIN_VHEAP_WORDS: usize = 46422;

const FIBONACCI_STEPS: usize = 23;
/// No heap is larger.
const MAX_HEAP_WORDS: usize = 1 << 50;

fn table() -> &'static [usize] {
    static TABLE: OnceLock<Vec<usize>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut sizes = vec![12, 38];
        while sizes.len() < FIBONACCI_STEPS {
            let n = sizes.len();
            sizes.push(sizes[n - 1] + sizes[n - 2] + 1);
        }
        // Fibonacci growth wastes too much once heaps are large: 20 % from here on.
        while let Some(next) = sizes
            .last()
            .map(|last| last + last / 5)
            .filter(|n| *n <= MAX_HEAP_WORDS)
        {
            sizes.push(next);
        }
        // ERTS leaves out the last one that fits.
        sizes.pop();
        sizes
    })
}

/// All sizes that heaps may have, in words.
#[must_use]
pub(crate) fn heap_sizes() -> &'static [usize] {
    table()
}

/// The least heap size of at least `words` words; `above` asks for the size after that. Ends the machine where none is
/// that large.
#[must_use]
pub(crate) fn next_heap_size(words: usize, above: bool) -> usize {
    let sizes = table();
    if words < sizes[0] {
        return sizes[0];
    }
    let at = sizes.partition_point(|&size| size < words) + usize::from(above);
    match sizes.get(at) {
        Some(&size) => size,
        None => crate::sys::memory::no_heap_size(words, usize::from(above)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_erts() {
        for (words, above, expect) in [
            (0, false, 12),
            (12, false, 12),
            (12, true, 38),
            (13, false, 38),
            (233, false, 233),
            (233, true, 376),
            (234, false, 376),
            (234, true, 610),
            (11, true, 12),
            (1000, false, 1598),
            (2_000_000, false, 2_072_833),
        ] {
            assert_eq!(next_heap_size(words, above), expect, "{words} {above}");
        }
    }
}
