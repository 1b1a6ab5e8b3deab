//! Tests that any term comes back from the external format as it was, whatever the options.

use proptest::prelude::*;

use super::{DecodeOptions, EncodeOptions, decode, decode_with_header, encode, encode_signal};
use crate::code::entry;
use crate::heap::{Heap, Literals, Message, size};
use crate::term::compare::eq_exact;
use crate::term::{Atom, Term};
use crate::value::map;

/// A term by its parts.
#[derive(Clone, Debug)]
enum Model {
    Integer(bool, Vec<u64>),
    Float(f64),
    Atom(String),
    Bits(Vec<u8>, usize),
    Reference([u32; 3]),
    Export(u8),
    Tuple(Vec<Model>),
    List(Vec<Model>),
    Improper(Vec<Model>, Box<Model>),
    Map(Vec<(Model, Model)>),
}

fn model() -> impl Strategy<Value = Model> {
    let limb = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0..600u64];
    let bits = (prop::collection::vec(any::<u8>(), 0..100), 0..8usize);
    let leaf = prop_oneof![
        (any::<bool>(), prop::collection::vec(limb, 0..5)).prop_map(|(n, l)| Model::Integer(n, l)),
        (-1_000_000_000..1_000_000_000i64)
            .prop_map(|n| Model::Integer(n < 0, vec![n.unsigned_abs()])),
        any::<f64>()
            .prop_filter("finite", |f| f.is_finite())
            .prop_map(Model::Float),
        ".{0,20}".prop_map(Model::Atom),
        bits.prop_map(|(bytes, off)| {
            let len = (bytes.len() * 8).saturating_sub(off);
            Model::Bits(bytes, len)
        }),
        (0..1u32 << 18, any::<u32>(), any::<u32>())
            .prop_map(|(a, b, c)| Model::Reference([a, b, c])),
        (0..3u8).prop_map(Model::Export),
    ];
    leaf.prop_recursive(4, 60, 10, |inner| {
        let some = |most| prop::collection::vec(inner.clone(), 0..most);
        prop_oneof![
            some(10).prop_map(Model::Tuple),
            some(10).prop_map(Model::List),
            (some(4), inner.clone()).prop_map(|(l, t)| Model::Improper(l, Box::new(t))),
            prop::collection::vec((inner.clone(), inner.clone()), 0..60).prop_map(Model::Map),
        ]
    })
}

fn build<'h>(heap: &'h Heap, model: &Model) -> Term<'h> {
    let all = |parts: &[Model]| -> Vec<Term<'h>> { parts.iter().map(|m| build(heap, m)).collect() };
    match model {
        Model::Integer(negative, limbs) => heap.big(*negative, limbs),
        Model::Float(value) => heap.float(*value),
        Model::Atom(name) => Atom::new(name).term(),
        Model::Bits(bytes, len) => heap.bitstring(bytes, *len),
        Model::Reference(numbers) => heap.reference(*numbers),
        Model::Export(arity) => {
            entry::export(Atom::new("property"), Atom::new("exported"), *arity).lambda()
        }
        Model::Tuple(parts) => heap.tuple(&all(parts)),
        Model::List(parts) => heap.list(&all(parts)),
        Model::Improper(parts, tail) => heap.list_with_tail(&all(parts), build(heap, tail)),
        Model::Map(pairs) => {
            let pairs = pairs.iter().map(|(k, v)| (build(heap, k), build(heap, v)));
            map::from_pairs(heap, &pairs.collect::<Vec<_>>())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn terms_round_trip(model in model(), level in 0..10i32, deterministic: bool) {
        let heap = Heap::new(233);
        let term = build(&heap, &model);
        let options = EncodeOptions {
            level,
            deterministic,
            ..EncodeOptions::default()
        };
        let bytes = encode(term, options).expect("small");
        let (back, used) = decode(&heap, &bytes, DecodeOptions::default()).expect("well formed");
        prop_assert_eq!(used, bytes.len());
        prop_assert!(eq_exact(term, back), "{term:?} came back as {back:?}");
        prop_assert_eq!(size(term, Literals::Count), size(back, Literals::Count));
        if deterministic {
            prop_assert_eq!(encode(back, options).expect("small"), bytes);
        }
    }

    /// Without a copy, it has the words that a copy has, and is a term as any other for who takes it.
    #[test]
    fn a_message_is_what_was_decoded(model in model(), times in 1..40usize) {
        let heap = Heap::new(233);
        let term = build(&heap, &model);
        let term = heap.list(&vec![term; times]);
        let (atoms, bytes) = encode_signal(term, None);
        let message = Message::build(|heap| {
            let decoded = decode_with_header(heap, &bytes, atoms.as_slice(), None)?;
            prop_assert_eq!(decoded.used, bytes.len());
            Ok::<_, TestCaseError>((decoded.term, decoded.is_compact))
        })?;
        prop_assert!(eq_exact(message.term(), term));
        prop_assert_eq!(message.words(), Message::copy_of(message.term()).words());
        let mut taker = Heap::new(233);
        let root = taker.root(taker.attach(message));
        taker.collect(0, &mut ()).expect("no limit is set");
        prop_assert!(eq_exact(taker.get(&root), term));
    }

    #[test]
    fn truncated_terms_are_refused(model in model(), cut in any::<prop::sample::Index>()) {
        let heap = Heap::new(233);
        let bytes = encode(build(&heap, &model), EncodeOptions::default()).expect("small");
        let cut = cut.index(bytes.len());
        prop_assert!(decode(&heap, &bytes[..cut], DecodeOptions::default()).is_err());
    }
}
