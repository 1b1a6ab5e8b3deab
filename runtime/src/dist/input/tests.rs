//! Whole packets, damaged ones, and messages in fragments.

use proptest::prelude::*;

use super::*;
use crate::dist::atom_cache::AtomCache;
use crate::external::encode_signal;
use crate::heap::Node;

/// Control messages of many kinds, each with a payload, as this node would send them.
fn packets(node: Atom) -> Vec<Vec<u8>> {
    let heap = Heap::detached();
    let node = Node::known_as(node, 7);
    let there = heap.external(tag::EXTERNAL_PID, node.clone(), &[3]);
    let reference = heap.external(tag::EXTERNAL_REF, node, &[2 | 5 << 32, 6]);
    // Of no process: nobody gets anything.
    let here = Pid(0xfff_ffff).term();
    let name = Atom::new("input_tests_nobody").term();
    let small = Term::small;
    let call = heap.tuple(&[name, name, small(1)]);
    let controls: &[&[Term<'_>]] = &[
        &[small(1), there, here],
        &[small(22), there, here],
        &[small(6), there, name, name],
        &[small(33), there, reference],
        &[small(37), small(9), there, name],
        &[small(35), small(8), there, here],
        &[small(24), there, here],
        &[small(26), there, here],
        &[small(19), there, name, reference],
        &[small(20), there, here, reference],
        &[small(28), there, here, reference],
        &[small(29), reference, there, there, call, heap.list(&[name])],
        &[small(31), reference, here, small(3), there],
    ];
    let mut cache = AtomCache::default();
    controls
        .iter()
        .map(|control| {
            let payload = heap.list(&[heap.binary(b"payload"), there, small(1)]);
            let (atoms, bytes) = encode_signal(heap.tuple(control), Some(payload));
            let mut packet = cache.header(&atoms, None);
            packet.extend(bytes);
            packet
        })
        .collect()
}

/// A connection with this node. Tests run in threads of one process: one node's atom cache is for one test.
fn connected(node: &str) -> (std::sync::Arc<DistEntry>, u32) {
    let entry = DistEntry::of(Atom::new(node));
    entry.state.lock().phase = Phase::Connected;
    let number = entry.connection();
    (entry, number)
}

#[test]
fn whole_packets_are_taken() {
    let (entry, number) = connected("input_tests_whole@nowhere");
    for (at, packet) in packets(entry.name).iter().enumerate() {
        assert_eq!(receive(&entry, number, packet), Ok(()), "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// Whatever is damaged, the machine lives, and nothing is read beyond the end.
    #[test]
    fn damaged_packets_are_refused_or_mean_something_else(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (entry, number) = connected("input_tests_damaged@nowhere");
        let packets = packets(entry.name);
        let mut packet = packets[which.index(packets.len())].clone();
        for (at, byte) in damage {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if let Some(cut) = cut {
            packet.truncate(cut.index(packet.len()));
        }
        let _ = receive(&entry, number, &packet);
    }

    /// A message in fragments is the one that was sent.
    #[test]
    fn fragments_are_put_together(size in 1_usize..40) {
        let (entry, number) = connected("input_tests_fragments@nowhere");
        *entry.input.lock() = Input::default();
        let heap = Heap::detached();
        let name = Atom::new("input_tests_nobody").term();
        let control = heap.tuple(&[Term::small(6), Pid(9).term(), name, name]);
        let (atoms, bytes) = encode_signal(control, Some(heap.binary(&[7; 100])));
        let header = AtomCache::default().header(&atoms, None);
        let parts: Vec<&[u8]> = bytes.chunks(size).collect();
        for (at, part) in parts.iter().enumerate() {
            let left = (parts.len() - at) as u64;
            let first = at == 0;
            let mut packet = vec![VERSION_MAGIC, if first { FIRST_FRAGMENT } else { FRAGMENT }];
            packet.extend(42_u64.to_be_bytes());
            packet.extend(left.to_be_bytes());
            if first {
                packet.extend(&header[2..]);
            }
            packet.extend_from_slice(part);
            prop_assert_eq!(receive(&entry, number, &packet), Ok(()));
        }
        prop_assert!(entry.input.lock().sequences.is_empty());
    }
}
