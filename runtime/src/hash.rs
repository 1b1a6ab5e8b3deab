//! Hash functions that know no term layout: a walker feeds them the parts of a term.

pub mod checksum;
pub mod internal;
pub mod md5;
pub mod portable;
