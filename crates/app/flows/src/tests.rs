//! Use cases on a manual clock and the fake engine: a model from its training to production and back, evaluators that fail, a
//! launch that pre-flight forbids, and what gc deletes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tempfile::TempDir;
use trackway_api::models::evaluations::EvaluationReceipt;
use trackway_api::models::registry::ModelChanged;
use trackway_api::runs::RunReport;
use trackway_core::registry::{GateKind, GateVerdict, ModelChange, ModelStage};
use trackway_core::{Clock as _, RunId};
use trackway_engine::Context;
use trackway_engine::error::ErrorKind;
use trackway_engine::page::Page;
use trackway_engine::reporter::{Notice, Reporter};
use trackway_engine::run::RunSource;
use trackway_engine::testing::{NEW_YEAR_MICROS, Notes, SETTLES, World};
use trackway_formats::EventKind;
use trackway_formats::runfile::PlanPatch;
use trackway_ledger::{EvaluationRow, EvaluationState, ModelChangeRow, ModelRow, RunFilter, RunState};
use trackway_recorder::{Kind, Recorder};
use trackway_rules::registry::RefusalRule;
use trackway_rules::retention::RetentionRule;
use trackway_system::Cancel;

use crate::checkpoints::{BytesProgress, CheckpointRef, checkpoints};
use crate::evaluation::evaluate::{EvaluateRequest, EvaluationSubject, evaluate, evaluations};
use crate::evaluation::gates::{
    JudgeRequest, TestedGates, changed_fixture, fixture_of, judge_gates, test_gates,
};
use crate::home::gc::{GcRequest, gc};
use crate::registry::{
    Policy, PolicyRequest, PromoteRequest, RegisterRequest, RollBackModel, model_history, model_view, models,
    promote_model, register_model, roll_back_model, set_model_policy, write_model_policy,
};
use crate::training::preflight::{PreflightReporter, Selection, Verdict};
use crate::training::train::{RunRequest, resume, run};

/// The variable with the number of steps of the toy.
const STEPS: &str = "TOY_STEPS";
/// An evaluator whose `grade` is 0.5, with an interval from 0.304 to 0.696.
const GRADES: &str = r#"
printf 'id,label,prediction\n1,a,a\n2,b,b\n3,a,b\n4,b,a\n' > "$TRACKWAY_EVALUATION_OUT/predictions.csv"
echo '{"grade": {"value": 0.5, "stderr": 0.1, "support": 4}}' > "$TRACKWAY_EVALUATION_OUT/metrics.json"
"#;
const GATE: &str = "grade >= 0.3";
/// What a policy leaves out for the toy, which has no task set, no second person, and gates of one kind.
const EASY: &str = "model = \"income\"\ngates = [\"quality\"]\nreceipt = [\"metrics\"]\napprovals = 0\n";

/// Proves nothing by itself: it is the training script of the tests below. It commits every step and ends.
#[test]
fn toy() {
    let Ok(steps) = std::env::var(STEPS) else { return };
    let run = Recorder::attach();
    for step in 1..=steps.parse::<u64>().unwrap() {
        let weights = format!("step {step}");
        run.log(step, &[("loss", 1.0 / step as f64)]);
        run.save_checkpoint(step, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, weights.as_bytes())
        })
        .unwrap();
    }
    run.finish();
}

impl PreflightReporter for Notes {}

/// A world with one use case after the other, as commands call them.
struct Team {
    world: World,
    context: Context,
    folder: TempDir,
}

impl Team {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        Self { context: world.context(), world, folder }
    }

    fn train(&self, script: &str, more: &str) -> RunReport {
        self.train_in(None, script, more)
    }

    fn train_in(&self, queue: Option<&str>, script: &str, more: &str) -> RunReport {
        let request = RunRequest {
            source: RunSource::File { path: self.world.run_file(script, more), patch: PlanPatch::default() },
            injection: None,
            retry_data_error: false,
            selection: Selection::default(),
            queue: queue.map(|queue| queue.parse().unwrap()),
            group: None,
        };
        run(&self.context, request, &self.world.notes).unwrap()
    }

    /// Trains the toy for three steps. `evaluator` is a line of `sh`.
    fn train_toy(&self, evaluator: &str, more: &str) -> RunId {
        let binary = std::env::current_exe().unwrap();
        self.world.write("eval.sh", evaluator);
        let report = self.train(
            &format!("exec '{}' tests::toy --exact", binary.display()),
            &format!(
                "environment = {{ {STEPS} = \"3\" }}\n[checkpoint]\nevery = {{ steps = 1 }}\n\
                 [evaluate]\ncommand = [\"sh\", \"eval.sh\"]\n{more}\n"
            ),
        );
        assert_eq!(report.outcome.state, RunState::Completed, "{:?}", self.world.notes.all());
        report.outcome.run_id
    }

    fn evaluate(&self, run_id: RunId, step: u64) -> EvaluationReceipt {
        let request = EvaluateRequest {
            accepts_unsafe: None,
            subject: EvaluationSubject::Run(run_id),
            checkpoint: Some(CheckpointRef::Step(step)),
            patch: PlanPatch::default(),
            test_sets: Vec::new(),
            is_gate_test: false,
        };
        evaluate(&self.context, &request, &self.world.notes).unwrap()
    }

    fn row_of(&self, receipt: &EvaluationReceipt) -> EvaluationRow {
        let found = self.context.ledger_read(|ledger| ledger.evaluation(&receipt.evaluation_id));
        found.unwrap().unwrap()
    }

    fn register(&self, run_id: RunId, step: u64) -> u32 {
        let request = RegisterRequest {
            accepts_unsafe: None,
            model: "income".into(),
            run: run_id,
            checkpoint: CheckpointRef::Step(step),
            signature: None,
            description: None,
        };
        register_model(&self.context, &request, &unwatched()).unwrap().version.version
    }

    fn set_policy(&self, text: &str) -> Policy {
        let path = self.folder.path().join("policy.toml");
        std::fs::write(&path, text).unwrap();
        let request = PolicyRequest { file: Some(path), ..PolicyRequest::default() };
        set_model_policy(&self.context, "income", &request).unwrap()
    }

    fn promote(&self, version: u32) -> ModelChanged {
        let request = PromoteRequest {
            model: "income".into(),
            version: version.to_string(),
            to: ModelStage::Production,
            expect: None,
            deploy: None,
            why: None,
        };
        promote_model(&self.context, &request, &unwatched()).unwrap()
    }
}

fn unwatched() -> BytesProgress {
    Arc::new(|_, _| {})
}

fn rules(changed: &ModelChanged) -> Vec<RefusalRule> {
    changed.refusals.iter().map(|refusal| refusal.rule).collect()
}

/// Proves that a model reaches production only with an evaluation of its weights, a gate that passes and a gate that has
/// blocked a bad model; that production goes back to the version before; and that every date is that of the clock.
#[test]
fn a_model_reaches_production_and_goes_back() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, &format!("after = false\ngates = [\"{GATE}\"]"));
    assert_eq!((team.register(run_id, 2), team.register(run_id, 3)), (1, 2));
    assert_eq!(team.register(run_id, 2), 1, "the same weights are the same version");
    assert_eq!(rules(&team.promote(1)), [RefusalRule::NotEvaluated, RefusalRule::NotApproved]);

    team.world.advance_days(1);
    let receipts = [team.evaluate(run_id, 2), team.evaluate(run_id, 3)];
    assert!(receipts.iter().all(|receipt| receipt.state == EvaluationState::Completed), "{receipts:?}");
    let strict = [
        RefusalRule::IncompleteReceipt,
        RefusalRule::UnverifiedGate,
        RefusalRule::MissingGate,
        RefusalRule::NotApproved,
    ];
    assert_eq!(rules(&team.promote(1)), strict, "all at once");
    let easy = team.set_policy(EASY);
    assert_eq!(rules(&team.promote(1)), [RefusalRule::UnverifiedGate]);
    let written = team.folder.path().join("written.toml");
    write_model_policy("income", &easy, &written).unwrap();
    assert_eq!(
        team.set_policy(&std::fs::read_to_string(&written).unwrap()),
        easy,
        "it is read as it was written"
    );
    assert_eq!(write_model_policy("income", &easy, &written).unwrap_err().kind, ErrorKind::Usage);
    let fixture = fixture_of(&team.context, team.row_of(&receipts[0]), Some("bad")).unwrap();
    let bad = changed_fixture(fixture, &[("grade".into(), -0.9)]).unwrap();
    let tests =
        test_gates(&team.context, &[TestedGates { rules: vec![GATE.to_owned()], fixtures: vec![bad] }])
            .unwrap();
    assert_eq!((tests.tests[0].verdict, tests.unverified), (GateVerdict::Fail, Vec::new()));

    let first = team.promote(1);
    assert_eq!((rules(&first), first.stage), (vec![], Some(ModelStage::Production)));
    team.world.advance_days(1);
    // The next one must be compared with it, unless the policy says otherwise.
    assert_eq!(rules(&team.promote(2)), [RefusalRule::NotCompared]);
    assert_eq!(
        team.set_policy(&format!("{EASY}baseline = \"optional\"\n")).gates,
        [GateKind::Quality].into()
    );
    assert_eq!(rules(&team.promote(2)), []);
    let request = RollBackModel { model: "income".into(), to: None, expect: None, deploy: None, why: None };
    let back = roll_back_model(&team.context, &request, &unwatched()).unwrap();
    assert_eq!((back.version, back.was_version), (Some(1), Some(2)));
    // It does not go back to what it was rolled back from, and that is said.
    let refused = roll_back_model(&team.context, &request, &unwatched()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotFound);
    for part in ["`income` is left to go back to", "version 1 (since 2026-01-03T", "version 2 (2026-01-03T"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    assert!(refused.hints[0].ends_with("trackway registry rollback income --to-version 2"), "{refused:?}");

    let view = model_view(&team.context, "income", &Page { after: None, limit: 1 }).unwrap();
    assert_eq!(view.production_version, Some(1));
    let newest = view.versions.iter().map(|version| version.version).max();
    assert_eq!((view.versions.len(), view.next), (1, newest), "there is an older version");
    // A page that comes after what does not exist is refused, as that of any list.
    let absent = model_view(&team.context, "income", &Page { after: Some(99), limit: 1 }).unwrap_err();
    assert_eq!(
        (absent.kind, absent.to_string().as_str()),
        (ErrorKind::NotFound, "`income` has no version 99")
    );
    let absent = model_history(&team.context, "income", &Page { after: Some(99), limit: 1 }).unwrap_err();
    assert_eq!(
        (absent.kind, absent.to_string().as_str()),
        (ErrorKind::NotFound, "`income` has no change 99")
    );
    let days: Vec<i64> = model_history(&team.context, "income", &Page::default())
        .unwrap()
        .entries
        .iter()
        .map(|change| (change.at.as_micros() - NEW_YEAR_MICROS) / 86_400_000_000)
        .collect();
    assert!(days.iter().min() == Some(&0) && days.iter().max() == Some(&2), "{days:?}");
}

/// Proves that the ledger has when the bytes of a checkpoint were read last and whether they matched: by an evaluation, a registration
/// and a refused promotion; and what was logged at its step although no metric was given to the save.
#[test]
fn the_ledger_knows_which_bytes_were_read() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, "after = false");
    let row = |step: u64| {
        let rows = team.context.ledger_read(|ledger| ledger.checkpoints_of_run(run_id)).unwrap();
        rows.into_iter().find(|row| row.step == step).unwrap()
    };
    assert_eq!((row(2).verified, row(2).verified_at), (None, None));
    assert_eq!(row(2).metrics_json, Some(serde_json::json!({ "loss": 0.5 })));
    assert!(!row(2).location.starts_with('/'), "{}", row(2).location);

    team.evaluate(run_id, 2);
    let evaluated_at = row(2).verified_at;
    assert_eq!((row(2).verified, row(3).verified), (Some(true), None));
    team.world.advance_days(1);
    team.register(run_id, 2);
    assert_eq!((row(2).verified, row(2).verified_at), (Some(true), Some(team.context.clock.now())));
    assert!(row(2).verified_at > evaluated_at);

    let folder = team.context.home.folder().join(row(2).location).join(row(2).object_prefix);
    std::fs::write(folder.join("weights.bin"), "step 9").unwrap();
    team.world.advance_days(1);
    assert!(rules(&team.promote(1)).contains(&RefusalRule::Damaged));
    assert_eq!((row(2).verified, row(2).verified_at), (Some(false), Some(team.context.clock.now())));
    assert_eq!(row(2).metrics_json, Some(serde_json::json!({ "loss": 0.5 })), "it stays");
}

/// Proves that an evaluation of the same weights by other code says so, with the file that changed, and the ones by the
/// same code or of other weights do not.
#[test]
fn other_code_of_an_evaluator_is_said() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, "");
    let is_said = |receipt: &EvaluationReceipt| receipt.notes.iter().any(|note| note.contains("other code"));
    let (first, again) = (team.evaluate(run_id, 2), team.evaluate(run_id, 2));
    team.world.write("eval.sh", &format!("# more strict\n{GRADES}"));
    assert!(!is_said(&first) && !is_said(&again) && !is_said(&team.evaluate(run_id, 1)));
    let other = team.evaluate(run_id, 2);
    let said = format!(
        "by other code than {} of the same weights before it: `eval.sh` changed",
        again.evaluation_id
    );
    assert!(other.notes.contains(&said), "{:?}", other.notes);
    let listed = evaluations(&team.context, Some(run_id), &Page::default()).unwrap().entries;
    assert_eq!(listed.iter().filter(|receipt| is_said(receipt)).count(), 1);
}

/// Proves that the best checkpoint by a metric is found where the metric was only logged, and neither given to the save nor named in
/// the run file; and that the names of such metrics are in the hint.
#[test]
fn the_best_checkpoint_is_found_by_what_was_logged() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, "after = false");
    let checkpoints = checkpoints(&team.context, run_id).unwrap();
    let chosen = |text: &str| checkpoints.chosen(&CheckpointRef::parse(text).unwrap());
    assert_eq!(chosen("max loss").unwrap().step, 1);
    assert_eq!(chosen("min loss").unwrap().step, checkpoints.chosen(&CheckpointRef::Latest).unwrap().step);
    let error = chosen("min los").unwrap_err();
    assert_eq!(error.hints, ["they have loss"]);
}

/// Proves that the list of models has the policy that a promotion applies, also where the ledger's row was written with another default.
#[test]
fn the_listed_policy_is_the_one_that_applies() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, "after = false");
    team.register(run_id, 2);
    let change = ModelChangeRow {
        model: "income".into(),
        number: 2,
        at: team.context.clock.now(),
        kind: ModelChange::SetAlias,
        version: Some(1),
        stage: None,
        alias: Some("first".into()),
        was_version: None,
        gate_receipt_id: None,
        approvals_json: None,
        policy_json: None,
        person: None,
        why: None,
    };
    let row = team.context.ledger_read(|ledger| ledger.model("income")).unwrap().unwrap();
    let lax = json!({ "approvals": 0, "gates": [], "receipt": [], "baseline": "optional" });
    let row = ModelRow { change_number: 2, policy_json: lax, ..row };
    team.context.ledger_write(|ledger| ledger.change_model(&change, &row, None)).unwrap();
    assert_eq!(models(&team.context).unwrap()[0].policy, Policy::default());
    let easy = team.set_policy(EASY);
    assert_eq!(models(&team.context).unwrap()[0].policy, easy);
}

/// Proves that a gate judges by the interval of a metric: it passes, fails, or is inconclusive; and that an evaluation
/// without gates is refused.
#[test]
fn a_gate_judges_by_the_interval() {
    let team = Team::new();
    let run_id = team.train_toy(GRADES, "after = false");
    let evaluation = team.row_of(&team.evaluate(run_id, 3));
    let judge = |rules: &[&str]| {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        judge_gates(&team.context, &JudgeRequest { evaluation: evaluation.clone(), rules, baseline: None })
    };
    for (rule, verdict) in [
        ("grade >= 0.3", GateVerdict::Pass),
        ("grade >= 0.9", GateVerdict::Fail),
        ("grade >= 0.4", GateVerdict::Inconclusive),
    ] {
        assert_eq!(judge(&[rule]).unwrap().verdict, verdict, "{rule}");
    }
    assert_eq!(judge(&[]).unwrap_err().kind, ErrorKind::Usage);
}

/// Proves that an evaluator that fails is launched again after the pause of its budget, by the clock; that the budget ends
/// this; and that the run of the evaluated checkpoint stays as it was.
#[test]
fn evaluators_are_retried_by_the_clock() {
    let team = Team::new();
    let flaky = format!(
        "if [ ! -e '{0}/tried' ]; then touch '{0}/tried'; \
         echo 'requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded' >&2; exit 1; fi\n{GRADES}",
        team.folder.path().display()
    );
    let run_id = team.train_toy(&flaky, "after = false\nretry = { attempts = 2, backoff = \"10m..10m\" }");
    let began = team.world.clock.now();
    let receipt = team.evaluate(run_id, 3);
    let seconds = team.world.clock.now().seconds_since(began);
    assert_eq!((receipt.state, receipt.launches.len()), (EvaluationState::Completed, 2), "{receipt:?}");
    assert!((300.0..1_200.0).contains(&seconds), "{seconds}");

    let failing = |evaluator: &str| {
        team.world.write("eval.sh", evaluator);
        let receipt = team.evaluate(run_id, 3);
        assert_eq!(receipt.state, EvaluationState::Failed, "{receipt:?}");
        (receipt.launches.len(), receipt.failure.unwrap_or_default())
    };
    assert_eq!(failing("echo \"KeyError: 'answer'\" >&2; exit 1").0, 2, "the same exception once more");
    assert_eq!(failing("exit 1").0, 3);
    for lasting in ["echo 'SyntaxError: invalid syntax' >&2; exit 1", "exit 2"] {
        let (launches, why) = failing(lasting);
        assert!(launches == 1 && why.contains("would end the same way again"), "{launches}: {why}");
    }
    let run = team.context.run_by_id(run_id).unwrap();
    assert_eq!(run.state, RunState::Completed);
}

/// Proves that a run whose data pre-flight blocks launches nothing, and is in the ledger with the checks that blocked it.
#[test]
fn a_blocked_run_launches_nothing() {
    let team = Team::new();
    team.world.write("train.csv", "x,y\n1,0\n2,1\n");
    let marker = team.folder.path().join("launched");
    let report = team.train(
        &format!("touch '{}'", marker.display()),
        "[data.train]\npath = \"train.csv\"\n[data.test]\npath = \"train.csv\"\n",
    );
    assert_eq!(report.outcome.state, RunState::Blocked);
    let run_id = report.outcome.run_id;
    assert!(team.context.attempts_of(run_id).unwrap().is_empty() && !marker.exists(), "nothing was launched");
    let recorded = crate::training::preflight::recorded(&team.context, run_id).unwrap();
    let blocking: Vec<&str> =
        recorded.iter().filter(|check| check.verdict == Verdict::Block).map(|check| &*check.name).collect();
    assert!(blocking.contains(&"leakage.rows"), "{blocking:?}");
}

/// Proves that a run whose launcher does not give what it requests is in the ledger as blocked, with the check that says why,
/// also where that check was to be skipped; and that nothing of it was launched and its data was not read.
#[test]
fn a_run_that_its_launcher_refuses_is_known() {
    let team = Team::new();
    team.world.write("train.csv", "x,y\n1,0\n");
    let more = "[resources]\nmemory = \"900TiB\"\n[data.train]\npath = \"train.csv\"\n\
        [[preflight.skip]]\ncheck = \"launch.offer\"\nwhy = \"a test\"\n";
    let report = team.train("exit 0", more);
    assert_eq!((report.outcome.state, report.outcome.attempts.len()), (RunState::Blocked, 0));
    let run = team.context.run_by_id(report.outcome.run_id).unwrap();
    assert_eq!((run.state, run.data_sha256), (RunState::Blocked, None));
    let recorded = crate::training::preflight::recorded(&team.context, run.run_id).unwrap();
    let [offer] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert!(offer.blocks && offer.name == "launch.offer", "{offer:?}");
    let expected = "`resources.memory` = 900.0 TiB: its largest machine has 1.0 TiB";
    assert_eq!(offer.findings[0].message, expected);
    let events = team.context.ledger_read(|ledger| ledger.events_of_run(run.run_id)).unwrap();
    assert!(events.iter().any(|event| event.message == "not launched because of launch.offer"), "{events:?}");
}

/// Proves that a run which waits in its queue waits as before where pre-flight refuses its resume, with the refusal in its
/// history, and that the next resume checks it again and launches it.
#[test]
fn a_refused_resume_waits_as_before() {
    let mut team = Team::new();
    for name in ["train.csv", "test.csv"] {
        team.world.write(name, "x,y\n1,0\n2,1\n");
    }
    let marker = team.folder.path().join("launched");
    team.world.gpu_runs.store(0, Ordering::Relaxed);
    team.world.cancel.detach();
    let report = team.train_in(
        Some("gpu"),
        &format!("touch '{}'", marker.display()),
        "[data.train]\npath = \"train.csv\"\n[data.test]\npath = \"test.csv\"\n",
    );
    let run_id = report.outcome.run_id;
    assert_eq!(report.outcome.state, RunState::Waiting);
    team.world.gpu_runs.store(1, Ordering::Relaxed);
    team.world.cancel = Cancel::default();
    let context = team.world.context();
    let refused = resume(&context, run_id, None, &team.world.notes).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Blocked, "{refused}");
    let run = context.run_by_id(run_id).unwrap();
    assert_eq!((run.state, run.ended_at), (RunState::Waiting, None));
    let events = context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
    assert!(events.iter().any(|event| EventKind::LaunchRefused.is(&event.kind)), "{events:?}");
    assert!(!marker.exists(), "nothing was launched");
    team.world.write("test.csv", "x,y\n3,0\n4,1\n");
    let resumed = resume(&context, run_id, None, &team.world.notes).unwrap();
    assert_eq!(resumed.outcome.state, RunState::Completed, "{:?}", team.world.notes.all());
    assert!(resumed.preflight.is_some() && marker.exists());
}

/// Deletes a file once the run is stored.
struct Deletes(PathBuf);

impl Reporter for Deletes {
    #[allow(clippy::disallowed_methods, reason = "the file is of the test")]
    fn notice(&self, notice: &Notice) {
        if matches!(notice, Notice::RunStarted { .. }) {
            std::fs::remove_file(&self.0).unwrap();
        }
    }
}

impl PreflightReporter for Deletes {}

/// Proves that a run in a queue whose data are gone before its first attempt has failed with the reason in its history
/// and how it is resumed, and that a resume which is refused for the same reason adds nothing to that.
#[test]
fn a_run_that_fails_in_its_queue_has_the_reason() {
    let team = Team::new();
    let data = team.world.write("train.csv", "x,y\n1,0\n2,1\n");
    let request = RunRequest {
        source: RunSource::File {
            path: team.world.run_file("exit 0", "[data.train]\npath = \"train.csv\"\n"),
            patch: PlanPatch::default(),
        },
        injection: None,
        retry_data_error: false,
        selection: Selection::default(),
        queue: Some("gpu".parse().unwrap()),
        group: None,
    };
    let error = run(&team.context, request, &Deletes(data)).unwrap_err();
    let runs = team.context.ledger_read(|ledger| ledger.list_runs(&RunFilter::default())).unwrap();
    let [failed] = runs.as_slice() else { panic!("{runs:?}") };
    let run_id = failed.run_id;
    assert_eq!(failed.state, RunState::Failed);
    let refused = || {
        let events = team.context.ledger_read(|ledger| ledger.events_of_run(run_id)).unwrap();
        let refused = events.into_iter().filter(|event| EventKind::LaunchRefused.is(&event.kind));
        refused.collect::<Vec<_>>()
    };
    let events = refused();
    let [event] = events.as_slice() else { panic!("{error}: {events:?}") };
    assert!(event.message.contains("`train.csv` does not exist"), "{event:?}");
    assert!(event.field("next").unwrap().contains(&format!("trackway resume {run_id}")), "{event:?}");
    team.world.advance_days(1);
    let again = resume(&team.context, run_id, None, &team.world.notes).unwrap_err();
    assert_eq!((again.to_string(), refused().len()), (error.to_string(), 1));
}

/// Proves that gc deletes by the age of a run on the clock, nothing in a dry run, and that it refuses to run without a rule.
#[test]
fn gc_deletes_what_is_old() {
    let team = Team::new();
    let request = |dry_run| GcRequest {
        rule: RetentionRule { older_than_seconds: Some(30.0 * 86_400.0), ..RetentionRule::default() },
        dry_run,
        ..GcRequest::default()
    };
    assert_eq!(gc(&team.context, &GcRequest::default()).unwrap_err().kind, ErrorKind::Usage);
    let old = team.train("exit 0", "").outcome.run_id;
    team.world.advance_days(40);
    let new = team.train("exit 0", "").outcome.run_id;
    let would = gc(&team.context, &request(true)).unwrap();
    let folder = |run_id| {
        let attempt = team.context.attempts_of(run_id).unwrap()[0].attempt_id;
        team.context.home.layout.attempt(attempt).folder().to_owned()
    };
    assert!(folder(old).exists(), "a dry run deletes nothing: {would:?}");
    let done = gc(&team.context, &request(false)).unwrap();
    assert_eq!((folder(old).exists(), folder(new).exists()), (false, true), "{done:?}");
    assert!(done.freed_bytes > 0 && done.freed_bytes == would.freed_bytes, "{done:?} {would:?}");
}
