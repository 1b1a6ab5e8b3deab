//! Word counts by native functions in Rust, with the crate `rustler`. `word_count_rust.erl` beside this folder's `src`
//! calls them.

use std::collections::HashMap;

use rustler::{Binary, Env, NewBinary, NifResult, OwnedBinary, Term};

rustler::init!("word_count_rust");

/// The words of a piece of text, each with its count: on an ordinary scheduler, so for small pieces.
#[rustler::nif]
fn count<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Term<'a>> {
    counts(env, &text)
}

/// The words of a text of any length, each with its count, on a dirty scheduler.
#[rustler::nif(schedule = "DirtyCpu")]
fn count_dirty<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Term<'a>> {
    counts(env, &text)
}

/// The text in lower case.
#[rustler::nif]
fn lowercase<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Term<'a>> {
    let mut lower = OwnedBinary::new(text.len()).ok_or(rustler::Error::Atom("enomem"))?;
    lower.copy_from_slice(&text);
    lower.make_ascii_lowercase();
    Ok(Binary::from_owned(lower, env).to_term(env))
}

fn counts<'a>(env: Env<'a>, text: &[u8]) -> NifResult<Term<'a>> {
    let mut counts: HashMap<&[u8], u64> = HashMap::new();
    let words = text.split(|byte| *byte == b' ');
    for word in words.filter(|word| !word.is_empty()) {
        *counts.entry(word).or_default() += 1;
    }
    let pairs: Vec<_> = counts
        .into_iter()
        .map(|(word, count)| (binary(env, word), count))
        .collect();
    Term::map_from_pairs(env, &pairs)
}

fn binary<'a>(env: Env<'a>, bytes: &[u8]) -> Term<'a> {
    let mut new = NewBinary::new(env, bytes.len());
    new.as_mut_slice().copy_from_slice(bytes);
    new.into()
}
