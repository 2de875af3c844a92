//! How a model reacts to values that are missing, mistyped, or in another unit.

use trackway_core::SplitMix64;
use trackway_data::model::Cells;

use super::cells::{emptied, mistyped, scaled, shuffled};
use super::model::{Model, mean_of, share_of};
use super::{Perturbation, PerturbationKind, ProbeError, ProbeSettings};

/// Of one feature, every change that its kind of column can have.
pub(super) fn perturbations(
    model: &mut Model<'_>,
    feature: usize,
    settings: &ProbeSettings,
) -> Result<Vec<Perturbation>, ProbeError> {
    let mut found = Vec::new();
    for &kind in PerturbationKind::ALL {
        let mut rng = SplitMix64::new(settings.seed ^ ((feature as u64) << 8));
        let cells = &model.features[feature].cells;
        let changed = match kind {
            PerturbationKind::Missing => Some(emptied(cells, model.rows)),
            PerturbationKind::Typo => mistyped(cells, &mut rng),
            PerturbationKind::TimesTen => scaled(cells, 10.0),
            PerturbationKind::OverTen => scaled(cells, 0.1),
            PerturbationKind::Shuffle => Some(cells.in_order(&shuffled(model.rows, &mut rng))),
        };
        if let Some(changed) = changed {
            found.push(perturbation(model, feature, kind, changed)?);
        }
    }
    Ok(found)
}

fn perturbation(
    model: &mut Model<'_>,
    feature: usize,
    kind: PerturbationKind,
    changed: Cells,
) -> Result<Perturbation, ProbeError> {
    let name = model.features[feature].name.clone();
    let said = match model.ask_with(feature, changed) {
        Err(ProbeError::Refused(why)) => {
            return Ok(Perturbation {
                feature: name,
                kind,
                flipped: None,
                shift: None,
                increase: None,
                refused: Some(why),
            });
        }
        said => said?,
    };
    let rises = model.rises(&said)?;
    Ok(Perturbation {
        feature: name,
        kind,
        flipped: model.flips(&model.said, &said).map(|flips| share_of(&flips)),
        shift: model.shift(&said),
        increase: mean_of(&rises),
        refused: None,
    })
}
