//! Which steps apply to a run, from facts alone.

use trackway_core::checks::CheckResult;

use super::facts::PlanFacts;
use super::select::Policy;
use super::steps::StepSpec;

/// A step of the plan.
pub struct PlannedStep {
    pub spec: &'static StepSpec,
    /// Steps that end before it begins, by their place in the plan.
    pub after: Vec<usize>,
    /// Why it is not done: it makes no sense for this run, or it was skipped on request. Its results exist already.
    pub answered: Option<Vec<CheckResult>>,
}

/// The steps that a run needs, in the order of the table. A step is done when one of its checks is wanted, or when
/// a step that is done needs it.
pub fn plan(table: &'static [StepSpec], facts: &PlanFacts<'_>, policy: &Policy) -> Vec<PlannedStep> {
    let mut wanted: Vec<bool> =
        table.iter().map(|step| step.checks.iter().any(|check| policy.wants(check))).collect();
    // Needs point backwards, so one look from the end finds them all.
    for index in (0..table.len()).rev() {
        let is_done = wanted[index] && (table[index].applies)(facts).is_ok();
        for need in table[index].needs.iter().filter(|_| is_done) {
            wanted[place(table, need)] = true;
        }
    }
    let mut planned: Vec<PlannedStep> = Vec::new();
    let mut places = vec![None; table.len()];
    for (index, spec) in table.iter().enumerate().filter(|(index, _)| wanted[*index]) {
        let before = spec.needs.iter().chain(spec.after);
        let after = before.filter_map(|step| places[place(table, step)]).collect();
        let answer = |why: String| {
            spec.checks.iter().map(|check| CheckResult::not_applicable(check, why.clone())).collect()
        };
        let answered = (spec.applies)(facts).err().map(answer);
        places[index] = Some(planned.len());
        planned.push(PlannedStep { spec, after, answered });
    }
    planned
}

fn place(table: &[StepSpec], name: &str) -> usize {
    table.iter().position(|step| step.name == name).expect("a test holds every need against the table")
}
