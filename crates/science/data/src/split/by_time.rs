//! Parts by time: later rows are tested with what was known earlier.

use super::parts::Shares;

/// Where a part begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeCut {
    /// The first timestamp of the part, in the unit of the input.
    pub from: i64,
    /// The last timestamp of the part, inclusive.
    pub to: i64,
}

/// The range of each part, oldest first, so that the parts have the requested fractions, equal timestamps are never
/// separated, and after each part's end nothing within `embargo` is used.
///
/// `None` when a part would be empty: too few different timestamps, or an embargo that swallows one.
#[must_use]
pub fn cut_by_time(shares: &Shares, moments: &mut [i64], embargo: u64) -> Option<Vec<TimeCut>> {
    moments.sort_unstable();
    let mut cuts: Vec<TimeCut> = Vec::with_capacity(shares.names().len());
    for reached in shares.upper() {
        let end = (reached * moments.len() as f64).round() as usize;
        let to = *moments.get(end.checked_sub(1)?)?;
        let after = cuts.last().map(|cut| cut.to.saturating_add_unsigned(embargo));
        let first = moments.partition_point(|moment| after.is_some_and(|after| *moment <= after));
        let from = *moments.get(first)?;
        if from > to {
            return None;
        }
        cuts.push(TimeCut { from, to });
    }
    Some(cuts)
}
