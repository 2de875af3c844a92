//! Several ranks, each a recorder in a separate thread.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use trackway_checkpoint::{CheckpointError, CheckpointView, Kind, RankGroup};
use trackway_core::Step;
use trackway_formats::EventKind;

use crate::checkpoints::together::is_given_up;
use crate::signal::Arrival;
use crate::tests::{Attempt, PATIENCE};
use crate::{CheckpointState, Recorder};

const RANKS: u32 = 3;
/// How long a rank waits for another that is there.
const WAIT_SECONDS: f64 = 60.0;

/// Ranks that train step by step together, as those do that wait for each other's gradients.
struct Ranks {
    attempts: Vec<Attempt>,
    in_step: Barrier,
}

impl Ranks {
    fn new(arrange: impl Fn(&mut Attempt)) -> Self {
        Self::again(&Attempt::new(), 1, arrange)
    }

    /// The ranks of an attempt that continues where an earlier one was.
    fn again(first: &Attempt, epoch: u64, arrange: impl Fn(&mut Attempt)) -> Self {
        let attempt = |rank| {
            let mut attempt =
                first.of_rank(epoch, RankGroup::new(rank, RANKS).unwrap().waiting(WAIT_SECONDS));
            arrange(&mut attempt);
            attempt
        };
        // Rank 0 clears earlier announcements; here there must not be any yet.
        Self { attempts: (0..RANKS).map(attempt).collect(), in_step: Barrier::new(RANKS as usize) }
    }

    fn each<T: Send>(&self, run: impl Fn(u32, &Attempt, &Recorder) -> T + Sync) -> Vec<T> {
        let recorders: Vec<_> = self.attempts.iter().map(Attempt::attach).collect();
        thread::scope(|scope| {
            let run = &run;
            let start = |(rank, (attempt, recorder))| scope.spawn(move || run(rank, attempt, recorder));
            let threads: Vec<_> = (0..).zip(self.attempts.iter().zip(&recorders)).map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Trains until a stop or to the end; the last step of each rank, and what each saved.
    fn train(&self, steps: Step, at_step: impl Fn(u32, Step) + Sync) -> Vec<(Step, Vec<Step>)> {
        self.each(|rank, attempt, run| {
            let first = run.resume().unwrap().map_or(1, |loaded| loaded.step + 1);
            let mut saved = Vec::new();
            for step in first..=steps {
                self.in_step.wait();
                run.begin_step(step);
                if rank == 0 {
                    attempt.clock.advance_micros(400_000);
                }
                at_step(rank, step);
                if run.checkpoint_due(step) {
                    assert!(draft(run, step), "nothing is being written");
                    assert!(run.wait_for_checkpoint(PATIENCE));
                    saved.push(step);
                }
                if run.should_stop() {
                    return (step, saved);
                }
            }
            (steps, saved)
        })
    }

    fn committed(&self) -> Vec<Step> {
        let view = CheckpointView::open(self.attempts[0].settings.checkpoint_root.as_ref().unwrap()).unwrap();
        let real = [CheckpointState::Committed, CheckpointState::Superseded];
        view.list().iter().filter(|info| real.contains(&info.state)).map(|info| info.step).collect()
    }
}

fn draft(run: &Recorder, step: Step) -> bool {
    let group = run.group().unwrap();
    let Some(mut draft) = run.draft_checkpoint(step).unwrap() else { return false };
    if group.coordinates() {
        draft.bytes("model.bin", Kind::Weights, &step.to_le_bytes()).unwrap();
    }
    draft.bytes(&group.file_name("rng.json"), Kind::Rng, &[group.rank() as u8]).unwrap();
    draft.set_global_cursor(&step.to_le_bytes());
    draft.submit(&[]);
    true
}

fn all<T: PartialEq + std::fmt::Debug>(found: Vec<T>) -> T {
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
    found.into_iter().next().unwrap()
}

/// Proves that ranks save together by a cadence of steps, that each gets its own files back and those of all, and that
/// only rank 0 records what all have in common.
#[test]
fn ranks_save_and_resume_together() {
    let ranks = Ranks::new(|attempt| attempt.settings.every_steps = Some(5));
    assert_eq!(all(ranks.train(11, |_, _| ())), (11, vec![5, 10]));
    assert_eq!(ranks.committed(), [5, 10]);
    for (rank, attempt) in ranks.attempts.iter().enumerate() {
        assert_eq!(attempt.reasons().len(), if rank == 0 { 2 } else { 0 });
    }
    let again = Ranks::again(&ranks.attempts[0], 2, |_| ());
    again.each(|rank, _, run| {
        let (loaded, files) = run.resume_read().unwrap().unwrap();
        let files: Vec<_> =
            files.iter().map(|file| (file.name().to_owned(), file.bytes().to_vec())).collect();
        let own = (format!("rank-{rank:04}-rng.json"), vec![rank as u8]);
        assert_eq!((loaded.step, files), (10, vec![("model.bin".into(), 10u64.to_le_bytes().to_vec()), own]));
    });
    let alone = ranks.attempts[0].next_epoch(3);
    assert_eq!(alone.attach().resume_read().unwrap().unwrap().1.len(), 4, "one process reads all of it");
}

/// Proves that without a cadence all ranks save at the calls whose step the script chose.
#[test]
fn without_a_cadence_all_save_at_the_first_call() {
    let ranks = Ranks::new(|_| ());
    assert_eq!(all(ranks.train(20, |_, _| ())), (20, vec![1]));
    assert_eq!(ranks.committed(), [1]);
}

/// Proves that a cadence of time and a request to save are decided by rank 0 for a step to come, at which all save.
#[test]
fn time_and_requests_are_decided_by_one() {
    let ranks = Ranks::new(|attempt| attempt.settings.every_seconds = Some(4.0));
    let (_, saved) = all(ranks.train(30, |rank, step| {
        if rank == 0 && step == 3 {
            let asked = "{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\",\"why\":\"by hand\"}\n";
            ranks.attempts[0].ask(asked);
        }
    }));
    assert_eq!(ranks.committed(), saved);
    let reasons = ranks.attempts[0].reasons();
    assert_eq!(reasons[0].1, "asked");
    assert!(reasons.len() >= 3 && reasons[1..].iter().all(|(_, reason)| reason == "cadence"), "{reasons:?}");
    assert_eq!(ranks.attempts[0].acks(), [(1, "accepted", None), (1, "done", Some(saved[0]))]);
    assert_eq!(ranks.attempts[0].events(EventKind::StepAnnounced.as_str()).len(), reasons.len());
    assert!(ranks.attempts[1..].iter().all(|attempt| attempt.acks().is_empty()));
}

/// Proves that a stop ends all ranks at the same step after one checkpoint, whichever gets the request: all, rank 0, or
/// another rank alone; by SIGTERM or by the control file.
#[test]
fn a_stop_ends_all_ranks_at_one_step() {
    type Selected = fn(u32) -> bool;
    let cases: [(Selected, bool); 4] =
        [(|_| true, true), (|rank| rank == 0, true), (|rank| rank == 2, true), (|rank| rank == 0, false)];
    for (is_stopped, by_signal) in cases {
        let ranks = Ranks::new(|attempt| attempt.settings.every_steps = Some(1_000));
        let (last, saved) = all(ranks.train(1_000, |rank, step| {
            if step == 4 && is_stopped(rank) {
                ranks.attempts[rank as usize].stop(by_signal);
            }
        }));
        assert!((5..20).contains(&last), "{last}");
        assert_eq!((saved, ranks.committed()), (vec![last], vec![last]));
        let reason = if by_signal { "sigterm" } else { "end" };
        assert_eq!(ranks.attempts[0].reasons(), [(last, reason.into())]);
    }
}

/// Proves that SIGTERM ends all ranks at one step also when no save fits into the grace period any more, without one;
/// and that a rank that rank 0 never answers ends alone after a while.
#[test]
fn a_stop_without_a_checkpoint_ends_all_ranks_too() {
    let ranks = Ranks::new(|attempt| {
        attempt.settings.grace_seconds = Some(1.0);
        attempt.settings.at_steps = vec![3];
    });
    let (last, saved) = all(ranks.train(1_000, |rank, step| {
        if step == 4 && rank == 0 {
            // Requested just before: that save would not fit either.
            ranks.attempts[0].ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
            ranks.attempts[0].stop(true);
            ranks.attempts[0].clock.advance_micros(2_000_000);
        }
    }));
    assert!(last < 20 && saved == [3], "{last} {saved:?}");
    let alone = Ranks::new(|_| ());
    let attempt = &alone.attempts[1];
    let run = attempt.attach();
    attempt.stop(true);
    assert!(!run.should_stop());
    attempt.clock.advance_micros(61_000_000);
    assert!(run.should_stop());
}

/// Proves that a rank that skips a step, rank 0 included, costs that checkpoint and nothing else: no rank waits for it,
/// nothing is raised, and all continue.
#[test]
fn a_skipped_step_is_given_up_by_all() {
    for skipping in [0, 2] {
        let ranks = Ranks::new(|_| ());
        let steps_waited = AtomicU64::new(0);
        ranks.each(|rank, _, run| {
            if rank == skipping {
                let mut first = run.draft_checkpoint(10).unwrap().unwrap();
                let name = run.group().unwrap().file_name("rng.json");
                first.bytes(&name, Kind::Rng, b"1").unwrap();
                first.set_global_cursor(&10u64.to_le_bytes());
                assert!(!draft(run, 20), "the one before is not done");
                first.submit(&[]);
            } else {
                assert!(draft(run, 10) && run.wait_for_checkpoint(PATIENCE));
                assert!(draft(run, 20));
            }
            assert!(run.wait_for_checkpoint(PATIENCE));
            steps_waited.fetch_add(1, Ordering::SeqCst);
            assert!(draft(run, 30) && run.wait_for_checkpoint(PATIENCE), "rank {rank}");
            assert!(run.checkpoint_failure().is_none() && !run.should_stop());
        });
        assert_eq!((ranks.committed(), steps_waited.into_inner()), (vec![10, 30], u64::from(RANKS)));
        assert_eq!(ranks.attempts[skipping as usize].events(EventKind::CheckpointSkipped.as_str()).len(), 1);
        let given_up = ranks.attempts[0].events(EventKind::CheckpointGivenUp.as_str()).len();
        assert_eq!(given_up, usize::from(skipping != 0), "rank 0 knows that it skipped");
    }
}

/// Proves that a rank which is far ahead of the others learns of a step too late, declines it and records that, and
/// that the checkpoint is abandoned rather than made without it.
#[test]
fn a_rank_that_is_ahead_declines() {
    let ranks = Ranks::new(|attempt| attempt.settings.every_steps = Some(1_000));
    ranks.each(|rank, attempt, run| {
        assert!(draft(run, 1) && run.wait_for_checkpoint(PATIENCE));
        if rank == 1 {
            assert!(!run.checkpoint_due(100));
        }
        ranks.in_step.wait();
        if rank == 0 {
            attempt.ask("{\"version\":1,\"id\":1,\"command\":\"checkpoint_now\"}\n");
        }
        ranks.in_step.wait();
        if rank == 0 {
            assert!(!run.checkpoint_due(2));
        }
        ranks.in_step.wait();
        let step = if rank == 1 { 101 } else { 20 };
        assert_eq!(run.checkpoint_due(step), rank != 1);
        if rank != 1 {
            assert!(draft(run, step));
        }
        ranks.in_step.wait();
        // With its next save this rank reports that it passed the other one.
        assert!(rank == 1 || run.wait_for_checkpoint(PATIENCE));
        assert!(draft(run, 102) && run.wait_for_checkpoint(PATIENCE));
    });
    assert_eq!(ranks.attempts[1].events(EventKind::StepAnnouncedTooLate.as_str()).len(), 1);
    assert_eq!(ranks.committed(), [1, 102]);
}

/// Proves that only the rank that cannot write its part gets an error: the others continue.
#[test]
fn a_failing_rank_is_no_failure_of_the_others() {
    let ranks = Ranks::new(|_| ());
    ranks.each(|rank, attempt, run| {
        let group = run.group().unwrap();
        let saved = run.save_checkpoint(5, &[], |writer| match rank {
            1 => Err(CheckpointError::Empty { step: 5 }),
            _ => writer.file(&group.file_name("w.bin"), Kind::Weights, b"w"),
        });
        let error = saved.unwrap_err();
        assert_eq!(is_given_up(&error), rank != 1, "{error}");
        ranks.in_step.wait();
        assert_eq!(attempt.events("checkpoint_failed").len(), usize::from(rank == 1));
        run.save_checkpoint(6, &[], |writer| writer.file(&group.file_name("w.bin"), Kind::Weights, b"w"))
            .unwrap();
    });
    assert_eq!(ranks.committed(), [6]);
}

/// Proves that one process with `WORLD_SIZE` and no `RANK` gets an error that names what is missing instead of saving
/// as if alone.
#[test]
fn contradicting_variables_are_reported() {
    let mut attempt = Attempt::new();
    attempt.settings.group =
        Some(RankGroup::from_variables(&|name| (name == "WORLD_SIZE").then(|| "2".to_owned())));
    let run = attempt.attach();
    let is_stopped = [run.group().err(), run.resume().err(), run.draft_checkpoint(1).err()];
    for error in is_stopped {
        assert!(error.unwrap().to_string().contains("set both `RANK` and `WORLD_SIZE`, or neither"));
    }
}

impl Attempt {
    /// The same run as one of several ranks sees it, with a separate record and signal.
    fn of_rank(&self, epoch: u64, group: RankGroup) -> Self {
        let mut rank = self.next_epoch(epoch);
        rank.settings.group = Some(Ok(group));
        rank.settings.record_folder = Some(rank.folder.path().join(format!("records-{}", group.rank())));
        rank
    }

    /// Another attempt of the run; the same one for all ranks that call this.
    fn next_epoch(&self, epoch: u64) -> Self {
        let mut next = Self::new();
        let attempt = format!("att_{}", &next.settings.attempt[4..]);
        next.settings = crate::settings::Settings {
            epoch: Some(epoch),
            attempt: attempt[..attempt.len() - 1].to_owned() + &epoch.to_string(),
            record_folder: next.settings.record_folder.clone(),
            control_file: next.settings.control_file.clone(),
            ..self.settings.clone()
        };
        next.settings.group = None;
        next.clock = self.clock.clone();
        next.sigterm = Box::leak(Box::new(Arrival::none()));
        next
    }
}
