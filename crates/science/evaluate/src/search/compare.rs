//! What became of slices since an earlier answer.

use trackway_results::search::{ErrorSlice, SliceChange};

use super::earlier::{EarlierAnswer, EarlierSlice};

/// The earlier slice with the same predicate, else one that was or is another description of the same rows.
pub(super) fn same_slice<'e>(earlier: &'e EarlierAnswer, slice: &ErrorSlice) -> Option<&'e EarlierSlice> {
    let was_described = |known: &&EarlierSlice| {
        known.also_described_by.iter().any(|it| it.predicate == slice.predicate)
            || slice.is_described_by(&known.predicate)
    };
    let known = || earlier.slices.iter();
    known().find(|known| known.predicate == slice.predicate).or_else(|| known().find(was_described))
}

/// Writes into a slice what became of it.
pub(super) fn compare(slice: &mut ErrorSlice, earlier: Option<&EarlierSlice>) {
    let Some(earlier) = earlier else {
        slice.change = Some(SliceChange::New);
        return;
    };
    let before = earlier.held_out.as_ref().and_then(|held_out| held_out.average_error);
    let now = slice.held_out.as_ref().and_then(|held_out| held_out.average_error);
    slice.earlier_average_error = Some(before.map_or(earlier.average_error, |estimate| estimate.value));
    let (Some(before), Some(now)) = (before, now) else {
        slice.change = Some(SliceChange::Same);
        return;
    };
    slice.change = Some(if now.value > before.interval.high && before.value < now.interval.low {
        SliceChange::Worse
    } else if now.value < before.interval.low && before.value > now.interval.high {
        SliceChange::Better
    } else {
        SliceChange::Same
    });
}
