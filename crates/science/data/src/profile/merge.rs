/// Adds up what both sides may lack.
pub(super) fn merge_option<T>(known: &mut Option<T>, later: Option<T>, merge: impl FnOnce(&mut T, T)) {
    match (known.as_mut(), later) {
        (Some(known), Some(later)) => merge(known, later),
        (None, later) => *known = later,
        (Some(_), None) => {}
    }
}
