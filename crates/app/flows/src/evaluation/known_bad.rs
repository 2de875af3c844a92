//! Known-bad models that are made from what there is.

use trackway_api::models::gates::GateFixture;
use trackway_core::{Rng as _, SplitMix64};
use trackway_data::model::{Frame, FrameColumn};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::AssessError;
use trackway_formats::runfile::EvaluateSection;
use trackway_ledger::EvaluationRow;

use crate::evaluation::baseline::{self, section_of};
use crate::evaluation::evaluate::judge::{EvaluationNumbers, Terms, UNOBSERVED};
use crate::evaluation::evaluate::task_set::Tasks;
use crate::evaluation::gates;

/// The evidence of a model that knows nothing: the rows of an evaluation with their predictions shuffled among them by a
/// seed, evaluated as those were. What was not computed from rows (latency, for example) is not part of it: a gate
/// about it is inconclusive, with what to do.
///
/// # Errors
/// [`ErrorKind::NotFound`]: the rows are gone; [`ErrorKind::Usage`]: it did not complete, kept no rows, or nothing was computed
/// from them; [`ErrorKind::Integrity`]: the rows are not what was kept.
pub fn shuffled_fixture(context: &Context, evaluation: EvaluationRow) -> Result<GateFixture, AppError> {
    let row = gates::completed(evaluation)?;
    let id = row.evaluation_id.clone();
    if row.raw_outputs_location.is_none() {
        let message = format!("evaluation {id} kept no rows: there are no predictions to shuffle");
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("let the evaluator write `predictions.parquet`, or name a fixture file"));
    }
    let seed = row.seed.unwrap_or(0);
    let frame = baseline::kept_rows(context, &row, seed)?;
    let section = EvaluateSection { baseline: None, ..section_of(&row)? };
    let compared = gates::baseline_made_with(context, &row)?.unwrap_or_else(|| row.clone());
    let terms = Terms {
        section: &section,
        seed,
        task: None,
        tasks: &Tasks::None,
        baseline: Some(&compared),
        searching: UNOBSERVED,
    };
    let judged = EvaluationNumbers::of_rows(context, &shuffled(frame, &section, seed)?, &terms)?;
    if judged.columns().is_none() {
        let message = format!("nothing can be computed from the rows of evaluation {id}");
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    let (whole, _) = gates::evidence_of(context, &row, Some(&compared))?;
    let row = EvaluationRow { baseline_evaluation_id: Some(compared.evaluation_id.clone()), ..row };
    let bad = judged.end(row).evaluation;
    let (mut evidence, _) = gates::evidence_of(context, &bad, Some(&compared))?;
    let unmoved = whole.numbers.into_keys().filter(|name| !evidence.numbers.contains_key(name));
    let why = |name: &String| {
        format!(
            "shuffled predictions do not change it; make a bad model with `trackway gates fixture {id} --set {name}=VALUE --out bad.json`"
        )
    };
    let unmoved: Vec<_> = unmoved.map(|name| (name.clone(), why(&name))).collect();
    evidence.inconclusive.extend(unmoved);
    Ok(GateFixture { name: format!("shuffled predictions of evaluation {id}"), evidence })
}

/// The rows with everything that was predicted moved to other rows, each prediction as a whole.
fn shuffled(frame: Frame, section: &EvaluateSection, seed: u64) -> Result<Frame, AppError> {
    let refused = |error: AssessError| AppError::of(ErrorKind::Usage, error);
    let columns = baseline::spec_of(section, &frame, None, seed).map_err(refused)?.columns;
    let predicted: Vec<String> = columns.predicted().map(str::to_owned).collect();
    let mut order: Vec<usize> = (0..frame.rows()).collect();
    let mut rng = SplitMix64::new(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.next_unit() * (last + 1) as f64) as usize);
    }
    let moved = |column: FrameColumn| match predicted.contains(&column.name) {
        true => FrameColumn { cells: column.cells.in_order(&order), ..column },
        false => column,
    };
    Ok(Frame::of_columns(frame.into_columns().into_iter().map(moved).collect()))
}
