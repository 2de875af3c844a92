//! What became of slices since an earlier answer.

use super::answer::{Change, Earlier, EarlierSlice, Slice};

/// The earlier slice with the same predicate.
pub(super) fn same_slice<'e>(earlier: &'e Earlier, slice: &Slice) -> Option<&'e EarlierSlice> {
    earlier.slices.iter().find(|known| known.predicate == slice.predicate)
}

/// Writes into a slice what became of it.
pub(super) fn compare(slice: &mut Slice, earlier: Option<&EarlierSlice>) {
    let Some(earlier) = earlier else {
        slice.change = Some(Change::New);
        return;
    };
    let before = earlier.held_out.as_ref().and_then(|held_out| held_out.average_error);
    let now = slice.held_out.as_ref().and_then(|held_out| held_out.average_error);
    slice.earlier_average_error = Some(before.map_or(earlier.average_error, |estimate| estimate.value));
    let (Some(before), Some(now)) = (before, now) else {
        slice.change = Some(Change::Same);
        return;
    };
    let is_above = |value: f64, end: Option<f64>| end.is_some_and(|end| value > end);
    let is_below = |value: f64, end: Option<f64>| end.is_some_and(|end| value < end);
    slice.change = Some(if is_above(now.value, before.high) && is_below(before.value, now.low) {
        Change::Worse
    } else if is_below(now.value, before.low) && is_above(before.value, now.high) {
        Change::Better
    } else {
        Change::Same
    });
}
