//! Explanations, comparisons and samples of runs that ended on the fake engine, on a manual clock; and requests beside each other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use tempfile::TempDir;
use trackway_core::{RunId, SequentialIds, TerminationReason};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::page::Page;
use trackway_engine::roll_back::roll_back;
use trackway_engine::run::refuse_first;
use trackway_engine::testing::{SETTLES, World};
use trackway_engine::{Context, Request, RollBackRequest};
use trackway_flows::home::verify::{Depth, verify};
use trackway_flows::runs::amend_run::{RunChanges, amend_run};
use trackway_launch::conformance::Faults as _;
use trackway_ledger::{Decision, LedgerError, RunOrAttempt, RunState};
use trackway_recorder::{Kind, Recorder};
use trackway_sql::{QueryLimits, sql_within};

use crate::compare::compare;
use crate::explain::explain;
use crate::watch::watch;

/// The variable with how fast the loss of the toy falls.
const RATE: &str = "TOY_RATE";
/// The variable of a toy that saves every ten steps, whose loss is NaN from step 25 on.
const DIVERGES: &str = "TOY_DIVERGES";

/// Proves nothing by itself: it is the training script of the tests below. It logs a loss for ten steps and ends.
#[test]
fn toy() {
    let Ok(rate) = std::env::var(RATE) else { return };
    let rate: f64 = rate.parse().unwrap();
    let run = Recorder::attach();
    for step in 1..=10 {
        run.log(step, &[("loss", 1.0 / (rate * step as f64))]);
    }
    run.finish();
}

/// Proves nothing by itself: it is the training script of the test of divergence.
#[test]
fn diverging_toy() {
    if std::env::var_os(DIVERGES).is_none() {
        return;
    }
    let run = Recorder::attach();
    for step in 1..=30 {
        run.log(step, &[("loss", if step < 25 { 1.0 / step as f64 } else { f64::NAN })]);
        if run.checkpoint_due(step) {
            run.save_checkpoint(step, &[], |files| files.file("weights.bin", Kind::Weights, b"w")).unwrap();
        }
    }
    run.finish();
}

struct Bench {
    world: World,
    context: Context,
    _folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        Self { context: world.context(), world, _folder: folder }
    }

    fn train(&self, rate: u32) -> RunId {
        let binary = std::env::current_exe().unwrap();
        let script = format!("exec '{}' tests::toy --exact", binary.display());
        let more = format!("environment = {{ {RATE} = \"{rate}\" }}\n");
        self.world.run(&self.context, &script, &more).run_id
    }

    fn run_of(&self, run_id: RunId) -> RunOrAttempt {
        RunOrAttempt::Run(Box::new(self.context.run_by_id(run_id).unwrap()))
    }
}

/// Proves that an explanation of a failed run has the reason with the line of output that shows it, every attempt, the
/// decision that ended the run with its budget, and what happened in the order of the clock.
#[test]
fn a_failed_run_is_explained() {
    let bench = Bench::new();
    let script =
        "echo 'requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded' >&2; exit 1";
    let more = "[retry]\nnetwork_error = { attempts = 2, backoff = \"10m..10m\" }\n";
    let run_id = bench.world.run(&bench.context, script, more).run_id;
    let page = explain(&bench.context, bench.run_of(run_id)).unwrap();
    assert_eq!((page.run.state, page.attempts.len()), (RunState::Failed, 3));
    let termination = page.termination.unwrap();
    assert_eq!(termination.reason, TerminationReason::NetworkError);
    let evidence: Vec<&str> = termination.evidence.iter().map(|one| one.text.as_str()).collect();
    assert!(evidence.iter().any(|text| text.contains("Max retries exceeded")), "{evidence:?}");
    let last = page.retries.last().unwrap();
    assert_eq!(last.decision, Decision::Stop, "{}", last.why);
    assert_eq!((last.budget_spent, last.budget_limit), (Some(2.0), Some(2.0)));
    assert!(page.timeline.is_sorted_by_key(|event| event.at), "{:?}", page.timeline);
    let (first, end) = (page.timeline.first().unwrap().at, page.timeline.last().unwrap().at);
    assert!(end.seconds_since(first) >= 600.0, "two pauses of up to ten minutes passed");
}

/// Proves that a run which ended before its launch is explained, though nothing of its queue and no check is kept: a
/// ledger that was rebuilt may have neither.
#[test]
fn an_end_before_the_launch_is_explained() {
    let bench = Bench::new();
    let context = &bench.context;
    let prepared = bench.world.begun(context, "true", "");
    let run_id = prepared.run.run_id;
    drop(prepared);
    for (state, cause) in [
        (RunState::Stopped, "it was never launched: it was stopped before"),
        (RunState::Failed, "it was never launched"),
    ] {
        context.set_run_state(run_id, state).unwrap();
        let page = explain(context, bench.run_of(run_id)).unwrap();
        assert_eq!((page.run.state, page.attempt.is_none(), page.timeline.len()), (state, true, 0));
        assert_eq!((page.short[1].name.as_str(), page.short[1].text.as_str()), ("cause", cause));
    }
}

/// Proves that a run whose first launch was refused is explained by the refusal and what to do about it, before anything
/// else, also where it waits without a supervisor.
#[test]
fn a_refusal_before_the_first_attempt_is_explained() {
    let bench = Bench::new();
    let context = &bench.context;
    let prepared = bench.world.begun(context, "true", "");
    let run_id = prepared.run.run_id;
    let error = AppError::new(ErrorKind::Usage, "not launched: `train.csv` does not exist").hint("write it");
    assert_eq!(refuse_first(context, run_id, error).kind, ErrorKind::Usage);
    drop(prepared);
    let expected = [
        "it was not launched: `train.csv` does not exist".to_owned(),
        format!("write it; to resume it: trackway resume {run_id}"),
    ];
    let page = explain(context, bench.run_of(run_id)).unwrap();
    assert_eq!((page.run.state, page.next_actions.as_slice()), (RunState::Failed, expected.as_slice()));
    let [refused] = page.timeline.as_slice() else { panic!("{:?}", page.timeline) };
    assert_eq!(
        (refused.kind.as_str(), refused.text.as_str()),
        ("launch_refused", "launch_refused: `train.csv` does not exist")
    );
    context.set_run_state(run_id, RunState::Waiting).unwrap();
    let waits = explain(context, bench.run_of(run_id)).unwrap();
    let [first @ .., last] = waits.next_actions.as_slice() else { panic!("there is nothing to do") };
    assert_eq!((first, last), (expected.as_slice(), &format!("end it: trackway stop {run_id}")));
}

/// Proves that a run which ends while it is watched is shown as ended and not as one that lost its supervisor; and that
/// one which waits without a process is shown as such by `watch` and explained, with that as its cause and first of all how it
/// continues, though it has no attempt.
#[test]
fn a_run_that_waits_is_shown_with_its_supervisor() {
    let bench = Bench::new();
    let context = &bench.context;
    let prepared = bench.world.begun(context, "true", "");
    let run_id = prepared.run.run_id;
    let mut watcher = watch(context, run_id).unwrap();
    let mut look = || {
        let seen = watcher.look().unwrap();
        (seen.state, seen.unsupervised, seen.ended)
    };
    context.set_run_state(run_id, RunState::Waiting).unwrap();
    assert_eq!(look(), (RunState::Waiting, false, false));
    context.set_run_state(run_id, RunState::Stopped).unwrap();
    drop(prepared);
    assert_eq!(look(), (RunState::Stopped, false, true));
    context.set_run_state(run_id, RunState::Waiting).unwrap();
    assert_eq!(look(), (RunState::Waiting, true, false));
    let page = explain(context, bench.run_of(run_id)).unwrap();
    assert!(page.run.unsupervised && page.attempt.is_none());
    assert!(page.short[0].text.ends_with("waiting (no process supervises it)"), "{:?}", page.short);
    assert!(page.next_actions[0].contains(&format!("trackway resume {run_id}")), "{:?}", page.next_actions);
    let of = |name: &str| page.short.iter().find(|line| line.name == name).map(|line| line.text.as_str());
    let cause = "it was not launched yet: the process that supervised it is gone";
    assert_eq!((of("cause"), of("next")), (Some(cause), Some(page.next_actions[0].as_str())));
}

/// Proves that an explanation says how long the attempt was in the queue of its engine and which of its files did not
/// arrive, and has when it was submitted before its launch.
#[test]
fn the_queue_and_what_did_not_arrive_are_explained() {
    let bench = Bench::new();
    bench.world.engine.hold(6);
    bench.world.engine.cut("stderr.log");
    let run_id = bench.world.run(&bench.context, "exit 0", "[launch]\nqueue = \"gpu\"\n").run_id;
    let page = explain(&bench.context, bench.run_of(run_id)).unwrap();
    let place = page.placement.unwrap();
    let engine = place.engine;
    assert_eq!(engine.completeness.as_deref(), Some("1 of 2 files, without stderr.log"));
    let waited = engine.queued_seconds.unwrap();
    assert!((40.0..90.0).contains(&waited) && engine.engine_instance.is_some(), "{waited}");
    let kinds: Vec<&str> = page.timeline.iter().map(|event| event.kind.as_str()).collect();
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(at("queued") < at("launched"), "{kinds:?}");
    let queued = &page.timeline[at("queued")];
    assert_eq!(queued.text, "went into the queue of its engine, gpu");
}

/// Proves that the explanation of a run that diverged has the exact command that continues from the newest checkpoint
/// before, or from as far before as the run file says, and after it was typed the one that is left to type; and none
/// where every checkpoint is from later.
#[test]
fn the_way_back_before_a_divergence_is_a_command() {
    let bench = Bench::new();
    let binary = std::env::current_exe().unwrap();
    let script = format!("exec '{}' tests::diverging_toy --exact", binary.display());
    let more = |every: u32| {
        format!("environment = {{ {DIVERGES} = \"1\" }}\n[checkpoint]\nevery = {{ steps = {every} }}\n")
    };
    let ways = |run_id: RunId| -> Vec<String> {
        let page = explain(&bench.context, bench.run_of(run_id)).unwrap();
        assert_eq!(page.termination.unwrap().reason, TerminationReason::NumericDivergence);
        page.next_actions.into_iter().filter(|action| action.contains("trackway resume")).collect()
    };
    let run_id = bench.world.run(&bench.context, &script, &more(10)).run_id;
    assert_eq!(
        ways(run_id),
        [format!(
            "to continue from the checkpoint of step 20, before it diverged (by step 25): \
             trackway rollback {run_id} --to-step 20 && trackway resume {run_id}"
        )]
    );
    let request = RollBackRequest { to_step: Some(20), skip: None, why: "it diverged".into() };
    roll_back(&bench.context, run_id, &request).unwrap();
    assert_eq!(
        ways(run_id),
        [format!("to continue from step 20, to which it was rolled back: trackway resume {run_id}")]
    );
    let far = format!("{}[detect]\nroll_back_steps = 10\n", more(10));
    let far = ways(bench.world.run(&bench.context, &script, &far).run_id);
    assert!(far.len() == 1 && far[0].contains("--to-step 10 &&"), "{far:?}");
    let late = bench.world.run(&bench.context, &script, &more(26)).run_id;
    assert_eq!(ways(late), [""; 0]);
}

/// Proves that a comparison shows which setting differs and what became of the metric, and that one run cannot be compared
/// with itself.
#[test]
fn a_comparison_shows_what_differs() {
    let bench = Bench::new();
    let (slow, fast) = (bench.train(1), bench.train(4));
    let page = compare(&bench.context, &[slow, fast], &[]).unwrap();
    let differing: Vec<&str> =
        page.config.iter().filter(|value| value.differs).map(|value| value.name.as_str()).collect();
    assert!(matches!(differing[..], [only] if only.contains(RATE)), "{differing:?}");
    let loss = page.metrics.iter().find(|metric| metric.name == "loss").unwrap();
    let last = loss.values.iter().map(|curve| curve.as_ref().and_then(|curve| curve.last));
    assert_eq!(last.collect::<Vec<_>>(), [Some(0.1), Some(0.025)]);
    assert_eq!(compare(&bench.context, &[slow, slow], &[]).unwrap_err().kind, ErrorKind::Usage);
}

/// Proves that the sample of a run that ended has its last step and its curve, and that an unknown run is not found.
#[test]
fn a_run_that_ended_is_sampled() {
    let bench = Bench::new();
    let run_id = bench.train(1);
    let sample = watch(&bench.context, run_id).unwrap().look().unwrap();
    assert_eq!((sample.state, sample.ended, sample.progress.step), (RunState::Completed, true, Some(10)));
    assert_eq!(sample.attempt_number, Some(1));
    let unknown = watch(&bench.context, RunId::new(&SequentialIds::default())).err().map(|error| error.kind);
    assert_eq!(unknown, Some(ErrorKind::NotFound));
}

/// Proves that fifty explanations in one process do not disturb each other: the one whose request is cancelled ends so, and every
/// other one is what it is alone.
#[test]
fn fifty_explanations_are_apart() {
    let bench = Bench::new();
    let run_id = bench.train(1);
    let run = bench.context.run_by_id(run_id).unwrap();
    let explained = |context: &Context| -> Result<Value, AppError> {
        let page = explain(context, RunOrAttempt::Run(Box::new(run.clone())))?;
        Ok(serde_json::to_value(page).unwrap())
    };
    let alone = explained(&bench.context).unwrap();
    let requests: Vec<Request> = (0..50).map(|_| Request::of_local_user()).collect();
    let cancelled = 17;
    requests[cancelled].cancel.end();
    let answers: Vec<Result<Value, AppError>> = std::thread::scope(|scope| {
        let begin = |request: &Request| {
            let context = bench.context.beside(request.clone());
            let explained = &explained;
            scope.spawn(move || explained(&context))
        };
        let begun: Vec<_> = requests.iter().map(begin).collect();
        begun.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (number, answer) in answers.into_iter().enumerate() {
        match number == cancelled {
            true => assert_eq!(answer.unwrap_err().kind, ErrorKind::Cancelled),
            false => assert_eq!(answer.unwrap(), alone, "{number}"),
        }
    }
}

/// Proves that a cancelled request ends with that error also in the middle of a read, a query and a verification.
#[test]
fn a_cancelled_request_ends_in_the_middle() {
    let bench = Bench::new();
    bench.train(1);
    let request = Request::of_local_user();
    let context = bench.context.beside(request.clone());
    let read = context.ledger_read(|_| {
        request.cancel.end();
        Err::<(), _>(LedgerError::Query("cut short".into()))
    });
    assert_eq!(read.unwrap_err().kind, ErrorKind::Cancelled);
    let verified = verify(&context, None, Depth::Files, &|_, _| {});
    assert_eq!(verified.unwrap_err().kind, ErrorKind::Cancelled);
    for question in ["select count(*) from runs", "select avg(value) from metrics"] {
        let answer = |is_cancelled: bool| {
            let cancelled = Some(Arc::new(AtomicBool::new(is_cancelled)));
            let limits = QueryLimits { cancelled, ..QueryLimits::default() };
            let home = bench.context.home.folder();
            bench.context.ledger_read(|ledger| sql_within(ledger, home, question, &limits).map(drop))
        };
        answer(false).unwrap();
        let error = answer(true).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{question}: {error}");
    }
}

/// Proves that the pages of attempts, of one run and of all, are the list without gaps, and that the list of a run does not continue
/// after an attempt of another run.
#[test]
fn attempts_come_in_pages() {
    let bench = Bench::new();
    let script =
        "echo 'requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded' >&2; exit 1";
    let more = "[retry]\nnetwork_error = { attempts = 2, backoff = \"10m..10m\" }\n";
    let run_id = bench.world.run(&bench.context, script, more).run_id;
    let numbers_of = |run: Option<RunId>| {
        let first = bench.context.attempts(run, &Page { after: None, limit: 2 }).unwrap();
        assert_eq!((first.entries.len(), first.more_count), (2, 1));
        assert_eq!(first.next, first.entries.last().map(|attempt| attempt.attempt_id));
        let rest = bench.context.attempts(run, &Page { after: first.next, limit: 2 }).unwrap();
        assert_eq!((rest.next, rest.more_count), (None, 0));
        let all = first.entries.into_iter().chain(rest.entries);
        all.map(|attempt| attempt.attempt_number).collect::<Vec<_>>()
    };
    assert_eq!(numbers_of(Some(run_id)), [3, 2, 1]);
    assert_eq!(numbers_of(None), [3, 2, 1]);
    let other = bench.train(1);
    let of_other = bench.context.attempts(Some(other), &Page::default()).unwrap().entries[0].attempt_id;
    let error = bench.context.attempts(Some(run_id), &Page { after: Some(of_other), limit: 2 }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

/// Proves that what a request changes is recorded with its actor: the name that was given, else that of the request.
#[test]
fn a_change_is_recorded_with_its_actor() {
    let bench = Bench::new();
    let run_id = bench.train(1);
    let author = |context: &Context, note: &str| {
        let changes = RunChanges { note: Some(note.into()), ..RunChanges::default() };
        amend_run(context, run_id, &changes).unwrap().changes.remove(0).author
    };
    assert_eq!(author(&bench.context.acting_as(Some("anna")), "by anna"), "anna");
    let login = bench.context.request.actor.name_or_unknown();
    assert_eq!(author(&bench.context.acting_as(None), "by the login"), login);
}
