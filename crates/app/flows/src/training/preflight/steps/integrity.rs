//! Whether the tables are fit for training, from one reading of each.

use trackway_core::Clock as _;
use trackway_core::checks::CheckResult;
use trackway_data::integrity::{columns, label, personal, representation, rows};
use trackway_engine::error::AppError;

use super::data::{of_sets, sides, together};
use super::{Looker, Work};

const CHECKS: [&str; 5] = ["data.columns", "data.rows", "data.label", "data.personal", "data.representation"];

/// Answers what needs no further reading.
pub fn integrity(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let sign_offs = &work.job.plan.governance.personal_data;
    let now = work.context.clock.now();
    let mut answers = Vec::new();
    let sides = sides(work);
    for side in &sides {
        let own = [columns(&side.evidence), rows(&side.evidence)];
        answers.extend(own.into_iter().map(|check| of_sets(check, side.set, work)));
        answers.push(side.both(label(&side.evidence, side.other()), work));
    }
    // Personal data is not less personal on the other side, and groups are compared there.
    for set in work.sets.all() {
        let Some(evidence) = work.shared.evidence.of(&set.name) else { continue };
        let own = [personal(&evidence, sign_offs, now), representation(&evidence)];
        answers.extend(own.into_iter().map(|check| of_sets(check, set, work)));
        // A test set without rows is as useless as such a training set.
        if sides.iter().all(|side| side.set.name != set.name) {
            answers.push(of_sets(rows(&evidence), set, work));
        }
    }
    if answers.is_empty() {
        let why = "no table could be read (see `data.values`)";
        return Ok(CHECKS.iter().map(|check| CheckResult::not_run(check, why)).collect());
    }
    Ok(CHECKS.iter().map(|check| together(check, &answers)).collect())
}
