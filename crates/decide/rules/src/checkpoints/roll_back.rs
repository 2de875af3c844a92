//! Where a run goes back to after a problem, and which batches it then skips: committed steps and findings in, a step
//! and a range out.
//!
//! A checkpoint shortly before the problem may already contain its beginning. PaLM (Chowdhery et al. 2022, 5.1) went
//! back about 100 steps before each spike of the loss and skipped 200 to 500 batches around it; the spike then did not
//! come again, and the same batches did no harm from another checkpoint.

use serde::{Deserialize, Serialize};
use trackway_core::{BatchRange, SkippedBatches, Step};

/// Steps by which a checkpoint must be older than the problem, unless the run file sets it.
pub const MARGIN_STEPS: u64 = 100;
/// Batches on each side of the problem that are skipped too, unless the run file sets it.
pub const MARGIN_BATCHES: u64 = 100;
/// Batches that one rollback skips at most.
pub const SKIPPED_MAX: u64 = 100_000;

/// What was seen, and how far to stay away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trouble {
    /// The step at which it began.
    pub first_step: Step,
    /// The step at which it was certain.
    pub step: Step,
    /// The batch of `first_step`, if the script reports it.
    pub first_batch: Option<u64>,
    /// The batch of `step`, if the script reports it.
    pub last_batch: Option<u64>,
    /// Steps that the checkpoint must be older, if there is one.
    pub margin_steps: u64,
    /// Batches before `first_batch` and after `last_batch` that are skipped too: the cause need not end where the
    /// detector fires.
    pub margin_batches: u64,
}

/// The place and the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// The committed step to resume from; `None`: the beginning, because nothing was committed.
    pub to_step: Option<Step>,
    /// The batches to skip from there on; `None`: none.
    pub skip: Option<BatchRange>,
}

/// Where to go back to after a problem. `committed`: the steps of the checkpoints that may be resumed from. `skipped`:
/// what is skipped already. `before`: where the last rollback of the run went, if there was one.
///
/// The newest checkpoint at least `margin_steps` before the problem is taken, or the oldest one before it if none is so
/// old. A second rollback in a row to the same place goes one checkpoint further back.
///
/// # Errors
/// Why there is no place to go back to.
pub fn after_trouble(
    trouble: &Trouble,
    committed: &[Step],
    skipped: &SkippedBatches,
    before: Option<Option<Step>>,
) -> Result<Back, String> {
    let to_step = place(trouble, committed, before)?;
    let first = trouble.first_batch.unwrap_or_else(|| skipped.batch_of_step(trouble.first_step));
    let last = trouble.last_batch.unwrap_or_else(|| skipped.batch_of_step(trouble.step));
    // What was trained on before the checkpoint cannot be skipped any more.
    let next = skipped.batch_of_step(to_step.unwrap_or(0) + 1);
    let first = first.saturating_sub(trouble.margin_batches).max(next);
    let end = last.saturating_add(1).saturating_add(trouble.margin_batches);
    // At least one batch: with none skipped the same training would meet the same trouble.
    let end = end.clamp(first + 1, first.saturating_add(SKIPPED_MAX));
    Ok(Back { to_step, skip: Some(BatchRange { first, end }) })
}

/// How many of the batches that an attempt was to skip it skipped, by where it said its steps were: `places` are steps with
/// their batch, recorded where a batch does not follow from the one before. `None`: it did not say where it was.
#[must_use]
pub fn skipped_count(skipped: &SkippedBatches, places: &[(Step, u64)], last_step: Step) -> Option<u64> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places.dedup_by_key(|(step, _)| *step);
    let ends = places.iter().skip(1).map(|(step, _)| *step).chain([last_step.saturating_add(1)]);
    let trained: Vec<BatchRange> = places
        .iter()
        .zip(ends)
        .map(|((step, batch), end)| BatchRange { first: *batch, end: batch + end.saturating_sub(*step) })
        .collect();
    let newest = trained.iter().map(|range| range.end).max()?;
    let of_range = |range: &BatchRange| {
        let overlap = |run: &BatchRange| range.end.min(run.end).saturating_sub(range.first.max(run.first));
        let trained_in_it: u64 = trained.iter().map(overlap).sum();
        if newest > range.end { range.count().saturating_sub(trained_in_it) } else { 0 }
    };
    Some(skipped.ranges().iter().map(of_range).sum())
}

fn place(
    trouble: &Trouble,
    committed: &[Step],
    before: Option<Option<Step>>,
) -> Result<Option<Step>, String> {
    let first_step = trouble.first_step;
    let mut older: Vec<Step> = committed.iter().copied().filter(|step| *step < first_step).collect();
    older.sort_unstable();
    older.dedup();
    let far = |step: &&Step| step.saturating_add(trouble.margin_steps) <= first_step;
    let chosen = older.iter().rfind(far).or(older.first()).copied();
    if chosen.is_none() && !committed.is_empty() {
        return Err(format!(
            "every checkpoint is from step {first_step} or later, so each may contain the trouble"
        ));
    }
    if before != Some(chosen) {
        return Ok(chosen);
    }
    let further = chosen.and_then(|chosen| older.into_iter().rfind(|step| *step < chosen));
    further.map(Some).ok_or_else(|| match chosen {
        Some(step) => format!("it already went back to step {step}, and there is no older checkpoint"),
        None => "it already went back to the beginning, and nothing was committed since".into(),
    })
}

/// Where to go back to on request of a user: the newest checkpoint at or before `to_step`, or the one before the
/// newest.
///
/// # Errors
/// Why there is none.
pub fn as_asked(
    to_step: Option<Step>,
    skip: Option<BatchRange>,
    committed: &[Step],
    skipped: &SkippedBatches,
) -> Result<Back, String> {
    let newest = committed.iter().copied().max().ok_or("no committed checkpoint to roll back to")?;
    let fits = |step: &Step| to_step.map_or(*step < newest, |to_step| *step <= to_step);
    let found = committed.iter().copied().filter(fits).max();
    let to_step = found.ok_or_else(|| match to_step {
        Some(step) => format!("no checkpoint at or before step {step} can be resumed from"),
        None => format!("there is no checkpoint before the newest one, step {newest}"),
    })?;
    let next = skipped.batch_of_step(to_step + 1);
    let skip = match skip {
        Some(range) if range.end <= next => {
            return Err(format!(
                "the batches {range} were trained on before step {to_step}; the next batch after it is {next}"
            ));
        }
        Some(range) if range.count() > SKIPPED_MAX => {
            return Err(format!(
                "cannot skip {} batches: one roll back may skip at most {SKIPPED_MAX}",
                range.count()
            ));
        }
        range => range.map(|range| BatchRange { first: range.first.max(next), ..range }),
    };
    Ok(Back { to_step: Some(to_step), skip })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only batches which an attempt left out on its way count as skipped: neither those it trained on, nor those it did not
    /// reach, and nothing where it did not say where it was.
    #[test]
    fn what_was_skipped_is_counted() {
        let skipped: SkippedBatches = "40..60".parse().unwrap();
        assert_eq!(skipped_count(&skipped, &[], 100), None);
        assert_eq!(skipped_count(&skipped, &[(1, 0), (41, 60)], 100), Some(20));
        assert_eq!(
            skipped_count(&skipped, &[(41, 60), (41, 60)], 50),
            Some(20),
            "the range follows the checkpoint"
        );
        assert_eq!(skipped_count(&skipped, &[(1, 0)], 100), Some(0), "it trained on all of them");
        assert_eq!(skipped_count(&skipped, &[(1, 0), (46, 60)], 100), Some(15));
        assert_eq!(skipped_count(&skipped, &[(1, 0)], 30), Some(0), "it did not come so far");
    }

    const SPIKE: Trouble = Trouble {
        first_step: 500,
        step: 503,
        first_batch: None,
        last_batch: None,
        margin_steps: 100,
        margin_batches: 50,
    };

    fn back(
        trouble: Trouble,
        committed: &[Step],
        before: Option<Option<Step>>,
    ) -> Result<(Option<Step>, String), String> {
        let back = after_trouble(&trouble, committed, &SkippedBatches::default(), before)?;
        Ok((back.to_step, back.skip.map(|range| range.to_string()).unwrap_or_default()))
    }

    /// Proves which checkpoint is taken at every distance, and that what was trained on before it is not skipped.
    #[test]
    fn the_place_is_a_safe_distance_before_the_trouble() {
        let target = |to_step, skip: &str| Ok((to_step, skip.to_owned()));
        assert_eq!(back(SPIKE, &[100, 400, 450, 550], None), target(Some(400), "449..553"));
        assert_eq!(back(SPIKE, &[399, 401], None), target(Some(399), "449..553"));
        assert_eq!(back(SPIKE, &[460, 480, 499, 500], None), target(Some(460), "460..553"));
        assert_eq!(back(SPIKE, &[499], None), target(Some(499), "499..553"));
        assert_eq!(back(SPIKE, &[], None), target(None, "449..553"));
        assert!(back(SPIKE, &[500, 600], None).unwrap_err().contains("may contain the trouble"));
    }

    /// Proves that without a distance the newest checkpoint before the trouble is taken.
    #[test]
    fn the_newest_before_the_trouble_is_taken_without_a_distance() {
        let near = Trouble { margin_steps: 0, ..SPIKE };
        assert_eq!(back(near, &[100, 400, 480, 499, 500], None).unwrap().0, Some(499));
        assert_eq!(back(near, &[480, 550], None).unwrap().0, Some(480));
    }

    /// Proves that the same place twice in a row is one checkpoint further back, and that there is an end to it.
    #[test]
    fn the_same_place_again_is_further_back() {
        let committed = [100, 300, 400];
        assert_eq!(back(SPIKE, &committed, Some(Some(400))).unwrap().0, Some(300));
        assert_eq!(back(SPIKE, &committed, Some(Some(300))).unwrap().0, Some(400));
        assert!(back(SPIKE, &[400], Some(Some(400))).unwrap_err().contains("no older checkpoint"));
        let why = back(SPIKE, &[], Some(None)).unwrap_err();
        assert_eq!(why, "it already went back to the beginning, and nothing was committed since");
        assert_eq!(back(SPIKE, &[400], Some(None)).unwrap().0, Some(400));
    }

    /// Proves that batches are those the script reports, else those that follow from what is skipped already, and that
    /// their number is bounded.
    #[test]
    fn batches_follow_from_what_is_known() {
        let skipped: SkippedBatches = "200..260".parse().unwrap();
        let found = after_trouble(&SPIKE, &[400], &skipped, None).unwrap();
        assert_eq!(found.skip, Some(BatchRange { first: 509, end: 613 }));
        let target = Trouble { first_batch: Some(700), last_batch: Some(710), ..SPIKE };
        assert_eq!(back(target, &[400], None).unwrap().1, "650..761");
        let late = Trouble { step: 10_000_000, margin_batches: 0, ..SPIKE };
        assert_eq!(back(late, &[400], None).unwrap().1, format!("499..{}", 499 + SKIPPED_MAX));
    }

    /// Proves what a user may request.
    #[test]
    fn a_person_says_where_to() {
        let none = SkippedBatches::default();
        let asked = |to_step, skip: Option<&str>, committed: &[Step]| {
            as_asked(to_step, skip.map(|text| text.parse().unwrap()), committed, &none)
        };
        assert_eq!(asked(None, None, &[10, 20, 30]).unwrap(), Back { to_step: Some(20), skip: None });
        let back = asked(Some(15), Some("5..40"), &[10, 20]).unwrap();
        assert_eq!((back.to_step, back.skip.unwrap().to_string()), (Some(10), "10..40".into()));
        assert!(asked(None, None, &[]).unwrap_err().contains("no committed checkpoint"));
        assert!(
            asked(None, None, &[10]).unwrap_err().contains("no checkpoint before the newest one, step 10")
        );
        assert!(asked(Some(5), None, &[10]).unwrap_err().contains("step 5"));
        assert!(asked(Some(20), Some("5..20"), &[20]).unwrap_err().contains("trained on before"));
        assert!(asked(Some(20), Some("0..9999999"), &[20]).unwrap_err().contains("at most"));
    }
}
