//! Loads the `Type` chunk into the table of [`crate::loader::types`].

use crate::beam::BeamModule;
use crate::beam::module::BeamType;
use crate::loader::types::{Range, Types};

/// The table of a module, still of no instruction.
pub(super) fn of(beam: &BeamModule) -> Types {
    let rows = beam.types.iter().flatten().map(small);
    Types::new(rows.collect())
}

/// Between which small integers what has this type is; `None` where it may be something else.
fn small(row: &BeamType) -> Option<Range> {
    let bounds = (row.union == BeamType::INTEGER).then_some((row.min?, row.max?))?;
    Range::of(bounds.0.into(), bounds.1.into())
}
