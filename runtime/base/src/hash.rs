//! Hash functions that know no term layout, to which a walker feeds the parts of a term. This module also has the hash
//! tables of the runtime's own. Their order is the same in every run, since programs see it (`registered/0`,
//! `erlang:loaded/0`).

pub mod checksum;
pub mod internal;
pub mod md5;
pub mod portable;

pub use rustc_hash::{FxBuildHasher, FxHashMap as HashMap, FxHashSet as HashSet};
