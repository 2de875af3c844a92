//! What a model loses without a feature.

use trackway_core::SplitMix64;

use super::cells::shuffled;
use super::model::{Model, mean_of};
use super::{Importance, ProbeError, ProbeSettings};

/// `None` without labels.
pub(super) fn importance(
    model: &mut Model<'_>,
    feature: usize,
    settings: &ProbeSettings,
) -> Result<Option<Importance>, ProbeError> {
    if model.losses.is_empty() || settings.repeats == 0 {
        return Ok(None);
    }
    let mut rng = SplitMix64::new(settings.seed ^ feature as u64);
    let mut of_rows = vec![0.0; model.rows];
    let mut repeats = Vec::with_capacity(settings.repeats);
    for _ in 0..settings.repeats {
        let order = shuffled(model.rows, &mut rng);
        let cells = model.features[feature].cells.in_order(&order);
        let said = model.ask_with(feature, cells)?;
        let rises = model.rises(&said)?;
        of_rows.iter_mut().zip(&rises).for_each(|(sum, rise)| *sum += rise / settings.repeats as f64);
        repeats.extend(mean_of(&rises).map(|mean| mean.value));
    }
    let feature = model.features[feature].name.clone();
    Ok(mean_of(&of_rows).map(|increase| Importance { feature, increase, repeats }))
}
