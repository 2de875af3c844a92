//! Proves that resuming changes nothing: the same steps twice undisturbed, once more killed and resumed, and then the
//! state of the last step compared, kind by kind.
//!
//! Each of the three is a run of kind `prove` with a separate checkpoint root, so nothing of a proof can become a
//! resume target, and nothing of it is among the training attempts.

mod compare;
mod launches;

use std::collections::BTreeSet;

use crate::training::start::read_start;
use trackway_api::runs::rehearsal::{Difference, Digests, Proof};
use trackway_checkpoint::Kind;
use trackway_core::{Clock as _, ProofId, Step, Timestamp, with_fields_of};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::Reporter;
use trackway_engine::run::{RunSource, Start};
pub use trackway_ledger::ProofVerdict;
use trackway_ledger::ResumeProofRow;

use self::compare::{differences, digests_by_kind, missing_kinds};
use self::launches::{Halt, Launches};

/// With fewer steps there is nothing in the middle at which a run can be killed.
pub const STEPS_MIN: Step = 4;
/// What most often makes a script that is launched twice end in two states.
const USUAL_CAUSES: &str = "Usual causes: a generator that is not seeded from the run's seed (`TRACKWAY_SEED`, `trackway.seed()`), cuDNN's \
    choice of algorithms (torch.use_deterministic_algorithms), data-loader workers with unseeded generators or an unstable order, \
    sums over threads in changing order (OMP_NUM_THREADS=1 shows it)";
/// How long a script may take until it reports to the recorder, by default: imports can be slow.
pub const HANDSHAKE_SECONDS: f64 = 120.0;

/// The request of `trackway prove`.
#[derive(Debug, Clone)]
pub struct ProveRequest {
    /// The run file.
    pub source: RunSource,
    /// Steps of every launch, at least [`STEPS_MIN`].
    pub steps: Step,
    /// How long the script may take until it speaks to the recorder.
    pub handshake_seconds: f64,
}

/// What the launches led to.
struct Judgement {
    verdict: ProofVerdict,
    why: Option<String>,
    differences: Vec<Difference>,
}

/// Proves, or fails to prove, that resuming changes nothing, and writes the result down.
///
/// # Errors
/// [`ErrorKind::Usage`] before anything is launched; a fault while launching, and then no proof is written down.
pub fn prove(context: &Context, request: &ProveRequest, reporter: &dyn Reporter) -> Result<Proof, AppError> {
    if request.steps < STEPS_MIN {
        let message =
            format!("the run is killed in the middle, and {} steps are too few for that", request.steps);
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint(format!("take at least {STEPS_MIN}, and enough that the optimizer and the data move on")));
    }
    let started_at = context.clock.now();
    let start = read_start(context, &request.source, true, reporter)?;
    let mut launches = Launches::new(context, &start, request, reporter);
    let judgement = judge(&mut launches)?;
    let proof = proof(ProofId::new(&context.ids), &start, request.steps, &launches, judgement);
    let row = row(&proof, &start, &launches, started_at, context.clock.now())?;
    context.ledger_write(|ledger| ledger.insert_resume_proof(&row))?;
    Ok(proof)
}

/// Launches one part after the other, and no more than the verdict needs.
fn judge(launches: &mut Launches<'_>) -> Result<Judgement, AppError> {
    match compare_parts(launches) {
        Ok(judgement) => Ok(judgement),
        Err(Halt::Short(verdict, why)) => Ok(Judgement { verdict, why: Some(why), differences: Vec::new() }),
        Err(Halt::Fault(error)) => Err(error),
    }
}

fn compare_parts(launches: &mut Launches<'_>) -> Result<Judgement, Halt> {
    let control = launches.control()?;
    let repeated = launches.repeated()?;
    let unsteady = differences(&control.files, &repeated.files);
    if !unsteady.is_empty() {
        let differing = listed(&unsteady);
        let why = format!("two uninterrupted runs end in different states: {differing}. {USUAL_CAUSES}");
        return Ok(Judgement {
            verdict: ProofVerdict::Nondeterministic,
            why: Some(why),
            differences: unsteady,
        });
    }
    let resumed = launches.resumed()?;
    let changed = differences(&control.files, &resumed.files);
    if changed.is_empty() {
        return Ok(Judgement { verdict: ProofVerdict::Equal, why: None, differences: changed });
    }
    let mut why =
        format!("two uninterrupted runs agree, and the resumed run differs in: {}", listed(&changed));
    let missing = missing_kinds(&control.files);
    if !missing.is_empty() {
        why.push_str(&format!("; the checkpoint holds nothing of kind {}", missing.join(", ")));
    }
    Ok(Judgement { verdict: ProofVerdict::Different, why: Some(why), differences: changed })
}

/// The first differing file of each kind.
fn listed(differences: &[Difference]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for kind in kinds_of(differences) {
        let mut of_kind = differences.iter().filter(|it| it.kind == kind);
        let Some(first) = of_kind.next() else { continue };
        let more = match of_kind.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        lines.push(format!("`{}`{more} ({}, {})", first.name, kind.as_str(), first.what));
    }
    lines.join("; ")
}

fn kinds_of(differences: &[Difference]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = differences.iter().map(|it| it.kind).collect();
    kinds.dedup();
    kinds
}

fn proof(id: ProofId, start: &Start, steps: Step, launches: &Launches<'_>, judgement: Judgement) -> Proof {
    let parts = [&launches.control, &launches.repeated, &launches.resumed];
    let state_digest = digests_of(parts.map(|part| part.state.as_ref().map(|state| state.digest.clone())));
    let by_kind = parts.map(|part| part.state.as_ref().map(|state| digests_by_kind(&state.files)));
    let kinds: BTreeSet<Kind> =
        by_kind.iter().flatten().flat_map(|digests| digests.keys().copied()).collect();
    let digests = kinds.into_iter().map(|kind| {
        let of_kind =
            by_kind.each_ref().map(|digests| digests.as_ref().and_then(|it| it.get(&kind).cloned()));
        (kind, digests_of(of_kind))
    });
    let git = &start.capture.git;
    Proof {
        proof_id: id,
        name: start.job.plan.run.name.clone(),
        verdict: judgement.verdict,
        why: judgement.why,
        steps,
        killed_at_step: launches.killed_at_step,
        resumed_from_step: launches.resumed_from_step,
        digests: digests.collect(),
        state_digest,
        differences: judgement.differences,
        config_sha256: start.job.config_sha256.clone(),
        data_sha256: start.data_sha256.clone(),
        git_commit: git.commit.clone(),
        git_dirty: git.dirty,
        launches: launches.done.clone(),
        wall_seconds: launches.done.iter().filter_map(|launch| launch.wall_seconds).sum(),
        gpu_seconds: launches.gpu_seconds,
        cost_usd: launches.cost_usd,
    }
}

fn row(
    proof: &Proof,
    start: &Start,
    launches: &Launches<'_>,
    started_at: Timestamp,
    ended_at: Timestamp,
) -> Result<ResumeProofRow, AppError> {
    let no_run = || AppError::new(ErrorKind::Fault, "the proof ended before its first run began");
    let kinds: Vec<&str> = kinds_of(&proof.differences).into_iter().map(Kind::as_str).collect();
    let (capture, plan) = (&start.capture, &start.job.plan);
    Ok(with_fields_of!(
        ResumeProofRow,
        &proof,
        [
            proof_id, name, verdict, why, steps, killed_at_step, resumed_from_step, config_sha256,
            data_sha256, git_commit, git_dirty, wall_seconds, gpu_seconds, cost_usd,
        ],
        model_family: plan.run.model_family.clone(),
        differing_kinds: (!kinds.is_empty()).then(|| kinds.join(",")),
        seed: plan.run.seed,
        git_diff_blake3: capture.git.dirty_diff_blake3.clone(),
        environment_lock_sha256: capture.environment_lock.sha256.clone(),
        container_digest: capture.container.digest.clone(),
        control_run_id: launches.control.run_id.ok_or_else(no_run)?,
        repeated_run_id: launches.repeated.run_id,
        resumed_run_id: launches.resumed.run_id,
        control_state_digest: proof.state_digest.control.clone(),
        repeated_state_digest: proof.state_digest.repeated.clone(),
        resumed_state_digest: proof.state_digest.resumed.clone(),
        started_at,
        ended_at,
        digests_json: serde_json::to_value(&proof.digests).ok(),
    ))
}

fn digests_of([control, repeated, resumed]: [Option<String>; 3]) -> Digests {
    Digests { control, repeated, resumed }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that of each kind the first file that differs is named, and how many more there are.
    #[test]
    fn differences_are_listed_by_kind() {
        let difference = |kind, name: &str| {
            let (name, what) = (name.to_owned(), "only in the control".to_owned());
            Difference { kind, name, what }
        };
        let all =
            [difference(Kind::Weights, "a"), difference(Kind::Weights, "b"), difference(Kind::Rng, "c")];
        let expected = "`a` and 1 more (weights, only in the control); `c` (rng, only in the control)";
        assert_eq!(listed(&all), expected);
        assert_eq!(listed(&[]), "");
    }
}
