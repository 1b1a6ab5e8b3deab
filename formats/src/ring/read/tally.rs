//! How much a recording holds, told when it ends.

use super::losses::Losses;
use super::reader::Recording;
use crate::ring::model::error::Error;

/// How much a recording holds and lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Its records.
    pub records: u64,
    /// From its begin to its end, or to its last record.
    pub time_ns: u64,
    /// What was lost, in a few words.
    pub lost: Option<String>,
}

impl Recording {
    /// Counts the records. The recorder has counted them, so only a recording that lacks some is read.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn tally(&self) -> Result<Tally, Error> {
        let is_whole = (0..self.segments()).all(|index| !self.is_wrapped(index));
        let found = match is_whole && !self.is_cut() {
            true => self.written(),
            false => self.in_parallel(|reader| reader.counts())?,
        };
        let losses = Losses::of(self, &found)?;
        let records = found.iter().flatten().sum();
        let time_ns = match (self.kept(), self.end_ns()) {
            (Some(kept), _) => kept.to_ns.saturating_sub(kept.from_ns.max(losses.since_ns)),
            (None, Some(end)) => end,
            (None, None) => self.whole_end_ns()?,
        };
        let lost = losses.short().or_else(|| {
            let lacks = [
                (losses.names_lost > 0, "LOST: names"),
                (losses.is_cut, "LOST: its end"),
            ];
            let lack = lacks.into_iter().find(|(is_so, _)| *is_so);
            lack.map(|(_, text)| text.to_owned())
        });
        Ok(Tally {
            records,
            time_ns,
            lost,
        })
    }
}
