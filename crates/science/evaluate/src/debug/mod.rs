//! Model debugging: how a model uses its inputs, found by scoring changed rows.
//!
//! The model is a [`Score`]: it answers rows with a number or a text each. Everything here is computed from such answers
//! to rows that were changed on purpose; nothing is known of the model's insides.

mod cells;
mod dependence;
mod importance;
mod model;
mod perturbation;
mod residual;
mod sensitivity;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::Estimate;
pub use model::{Decision, Gradients, Model, Score, Unscored};
pub use settings::ProbeSettings;
pub use trackway_results::probes::{
    Curve, Dependence, GradientCheck, Importance, Perturbation, PerturbationKind, ProbeAnswer, ProbePart,
    Sensitivity, Slope, SmallStep,
};

/// Why a model cannot be probed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    #[error("there is no row and no feature to score")]
    NoRows,
    #[error("the scoring command failed: {0}")]
    Scoring(String),
    #[error("the model refused its rows: {0}")]
    Refused(String),
    #[error("{0}; name the class that is predicted with --positive, or another --loss")]
    Truth(String),
    #[error("the probing was cancelled")]
    Cancelled,
}

/// Probes the model according to the settings. `on_part` is called with the part that begins.
///
/// # Errors
/// [`ProbeError`]: the model does not answer; cancelled.
pub fn probe(
    model: &mut Model<'_>,
    settings: &ProbeSettings,
    on_part: &dyn Fn(ProbePart),
    cancelled: &AtomicBool,
) -> Result<ProbeAnswer, ProbeError> {
    let mut answer = ProbeAnswer {
        rows: model.rows as u64,
        loss: model.loss(),
        error: model::mean_of(&model.losses),
        ..ProbeAnswer::default()
    };
    for part in ProbePart::ALL.iter().copied().filter(|part| settings.parts.contains(part)) {
        on_part(part);
        match part {
            ProbePart::Residuals => answer.residuals = residual::residuals(model),
            ProbePart::Sensitivity => match sensitivity::sensitivity(model, settings, cancelled) {
                Ok(found) => answer.sensitivity = found,
                Err(ProbeError::Refused(why)) => answer.no_sensitivity = Some(why),
                Err(error) => return Err(error),
            },
            ProbePart::Importance | ProbePart::Dependence | ProbePart::Perturbations => {
                for feature in 0..model.features.len() {
                    if cancelled.load(Ordering::Relaxed) {
                        return Err(ProbeError::Cancelled);
                    }
                    of_feature(part, feature, model, settings, &mut answer)?;
                }
            }
        }
    }
    answer.importance.sort_by(|one, other| other.increase.value.total_cmp(&one.increase.value));
    answer.scored_rows = model.scored_rows();
    Ok(answer)
}

/// A part that is found out feature by feature.
fn of_feature(
    part: ProbePart,
    feature: usize,
    model: &mut Model<'_>,
    settings: &ProbeSettings,
    answer: &mut ProbeAnswer,
) -> Result<(), ProbeError> {
    match part {
        ProbePart::Importance => answer.importance.extend(importance::importance(model, feature, settings)?),
        ProbePart::Dependence => answer.dependence.push(dependence::dependence(model, feature, settings)?),
        _ => answer.perturbations.extend(perturbation::perturbations(model, feature, settings)?),
    }
    Ok(())
}
