//! What an attempt was given, what shows that it took it, and what became known later.

use trackway_api::runs::explain::{Amendment, AttemptInputs};

use crate::units::{counted, short_hash};

/// Rows of a rung, such as `104 of 1000`.
pub(super) fn rows(kept: Option<u64>, total: Option<u64>) -> Option<String> {
    Some(format!("{} of {}", kept?, total?))
}

/// What the attempt was given, and what shows that it took it: names, and what is known.
pub(super) fn inputs(inputs: &AttemptInputs) -> [(&'static str, Option<String>); 6] {
    let kept = rows(inputs.rung_rows, inputs.rung_rows_total).map(|rows| format!("{rows}, as counted"));
    let manifest = inputs.warm_start_manifest_sha256.as_deref().map(short_hash).unwrap_or("?");
    let warm = inputs.weights().map(|weights| format!("{weights} (manifest {manifest})"));
    let batch = inputs
        .effective_batch
        .map(|samples| format!("{} in each update, as counted", counted(samples, "sample")));
    [
        ("data opened", opened(inputs)),
        ("seed", inputs.seed_as_taken()),
        ("rows", kept),
        ("batch", batch),
        ("skip batches", inputs.batches_skipped()),
        ("warm start", warm),
    ]
}

/// Which data sets it opened; none if none could be watched.
fn opened(inputs: &AttemptInputs) -> Option<String> {
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (opened, not_opened) = (quoted(&inputs.data_opened), quoted(&inputs.data_not_opened));
    match (opened.is_empty(), not_opened.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("none of {not_opened}")),
        (false, true) => Some(opened),
        (false, false) => Some(format!("{opened}, but not {not_opened}")),
    }
}

/// Late facts beside the receipt: two lines each.
pub(super) fn amendments(amendments: &[Amendment]) -> impl Iterator<Item = String> {
    amendments.iter().flat_map(|amendment| {
        let Amendment { at, author, field, old_text, new_text, why, .. } = amendment;
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "not known".into());
        [
            format!("  {field}: {} → {}", shown(old_text), shown(new_text)),
            format!("    {why} ({author}, {at})"),
        ]
    })
}
