//! Planning and verdicts, from run files alone.

use trackway_api::runs::preflight::Skipped;
use trackway_core::checks::{CheckResult, Finding, NoRows, Severity, Verdict};
use trackway_formats::runfile::{DataRole, Plan, parse};

use super::facts::OFFER;
use super::facts::{PlanFacts, SetFacts};
use super::graph;
use super::plan::plan;
use super::select::{NOT_WAIVED, Policy, Selection};
use super::steps::{STEPS, names};

fn read(more: &str) -> Plan {
    let text = format!("[run]\nname = \"a\"\ncommand = [\"true\"]\n{more}");
    parse(&text, "f", &[]).unwrap().plan
}

fn facts(plan: &Plan) -> PlanFacts<'_> {
    let sets = plan.data.iter().map(|(name, spec)| SetFacts {
        spec,
        role: spec.role.or_else(|| DataRole::of_name(name)),
        is_table: true,
        is_media: false,
    });
    let asked = plan.preflight.as_ref().is_some_and(|section| section.one_batch == Some(true));
    let one_batch = if asked { Ok(()) } else { Err("it takes no batches from Trackway".to_owned()) };
    PlanFacts { plan, sets: sets.collect(), one_batch }
}

fn policy(plan: &Plan, selection: &Selection) -> Policy {
    Policy::of(plan, selection, &names()).unwrap()
}

/// The steps that would be done.
fn steps(plan_text: &str, selection: &Selection) -> Vec<&'static str> {
    let plan_read = read(plan_text);
    let planned = plan(STEPS, &facts(&plan_read), &policy(&plan_read, selection));
    planned.iter().filter(|step| step.answered.is_none()).map(|step| step.spec.name).collect()
}

const TRAIN: &str = "[data.train]\npath = \"a.csv\"\nlabel = \"y\"\n";
const TEST: &str = "[data.test]\npath = \"b.csv\"\n";

/// Proves the table: names are unique, lower case with at most a dot, and every need names an earlier step.
#[test]
fn the_table_holds_together() {
    let all = names();
    for (index, step) in STEPS.iter().enumerate() {
        assert!(
            step.needs
                .iter()
                .chain(step.after)
                .all(|need| STEPS[..index].iter().any(|before| before.name == *need))
        );
        for check in step.checks {
            assert_eq!(all.iter().filter(|name| *name == check).count(), 1, "{check}");
            assert!(
                check.chars().all(|letter| letter.is_ascii_lowercase() || "._".contains(letter)),
                "{check}"
            );
        }
    }
}

/// Proves which steps a run file leads to: without data nothing is read, and a step that needs another one includes it.
#[test]
fn a_run_file_decides_which_steps_apply() {
    let all = Selection::default();
    assert_eq!(steps("", &all), ["commands", "settings"]);
    assert_eq!(steps("[checkpoint]\nevery = { steps = 5 }\n", &all), ["commands", "settings", "store"]);
    assert_eq!(steps(TRAIN, &all), ["commands", "read", "integrity", "imbalance", "drift", "settings"]);
    let both = format!("{TRAIN}{TEST}");
    let expected = ["commands", "read", "integrity", "imbalance", "drift", "leakage", "settings"];
    assert_eq!(steps(&both, &all), expected);
    assert_eq!(steps(&format!("{TRAIN}rules = [\"y > 0\"]\n"), &all)[1..3], ["read", "schema"]);
    let only = Selection { only: vec!["data.drift".into()], ..Selection::default() };
    assert_eq!(steps(&both, &only), ["read", "drift"]);
    let family = Selection { only: vec!["leakage".into()], ..Selection::default() };
    assert_eq!(steps(&both, &family), ["leakage"]);
    let skip = Selection { skip: vec![skipped("leakage"), skipped("data")], ..Selection::default() };
    assert_eq!(steps(&both, &skip), ["commands", "settings"]);
}

fn skipped(check: &str) -> Skipped {
    Skipped { check: check.into(), why: "known".into() }
}

/// Proves that unknown names are refused with the nearest one, wherever they are.
#[test]
fn unknown_names_are_refused() {
    for (text, selection, hint) in [
        ("[preflight]\nrequire = [\"leakge\"]", Selection::default(), "did you mean `leakage`?"),
        (
            "[preflight]\nseverity = { \"data.lable\" = \"warn\" }",
            Selection::default(),
            "did you mean `data.label`?",
        ),
        ("", Selection { only: vec!["cots".into()], ..Selection::default() }, "did you mean `cost`?"),
        ("", Selection { skip: vec![skipped("memroy")], ..Selection::default() }, "did you mean `memory`?"),
    ] {
        let error = Policy::of(&read(text), &selection, &names()).err().unwrap();
        assert_eq!(error.hints, [hint], "{text}");
    }
}

/// The verdict of each check and of all, when every step that is done answers with a finding of `severity` in each check.
fn judged(text: &str, selection: &Selection, severity: Severity) -> (Vec<(String, Verdict)>, Verdict) {
    let read = read(text);
    let policy = policy(&read, selection);
    let planned = plan(STEPS, &facts(&read), &policy);
    let results = graph::execute(&planned, &|step| {
        let found = |check: &&str| CheckResult::of_rows(check, 1, vec![Finding::new(check, severity, "x")]);
        step.spec.checks.iter().map(found).collect()
    });
    let checks = policy.judge(planned.iter().map(|step| step.spec.checks), results);
    let verdict = policy.verdict(&checks);
    (checks.into_iter().map(|check| (check.name, check.verdict)).collect(), verdict)
}

/// Proves that severities of the run file win, the longest name first; that without them a finding is as bad as its check says,
/// of leakage too; and that notes stay notes.
#[test]
fn the_run_file_says_how_bad_it_is() {
    let only = Selection { only: vec!["leakage".into(), "data.label".into()], ..Selection::default() };
    let of = |text: &str, severity| judged(&format!("{TRAIN}{TEST}{text}"), &only, severity);
    let find = |answer: &(Vec<(String, Verdict)>, Verdict), name: &str| {
        answer.0.iter().find(|(check, _)| check == name).unwrap().1
    };
    let plain = of("", Severity::Block);
    assert_eq!((find(&plain, "leakage.rows"), find(&plain, "data.label")), (Verdict::Block, Verdict::Block));
    let strict =
        of("[preflight]\nseverity = { leakage = \"warn\", \"leakage.rows\" = \"block\" }", Severity::Warn);
    assert_eq!(
        (find(&strict, "leakage.rows"), find(&strict, "leakage.time")),
        (Verdict::Block, Verdict::Warn)
    );
    let lenient = of("[preflight]\nseverity = { data = \"note\" }", Severity::Block);
    assert_eq!((find(&lenient, "data.label"), lenient.1), (Verdict::Pass, Verdict::Block));
    assert_eq!(of("[preflight]\nseverity = { leakage = \"block\" }", Severity::Note).1, Verdict::Pass);
}

/// Proves that what was skipped is in the answer, never passes, and does not block even where it was required.
#[test]
fn what_is_skipped_is_reported() {
    let skip =
        Selection { skip: vec![skipped("leakage")], only: vec!["leakage".into()], ..Selection::default() };
    let text = format!("{TRAIN}{TEST}[preflight]\nrequire = [\"leakage\"]");
    let (checks, verdict) = judged(&text, &skip, Severity::Note);
    assert!(
        checks.len() == trackway_data::leakage::CHECKS.len()
            && checks.iter().all(|(_, verdict)| *verdict == Verdict::NotRun)
    );
    assert_eq!(verdict, Verdict::Warn);
}

/// Proves that a check which was named and does not apply blocks as one that cannot run: by `require`, by the key that requests
/// it, and by a family of which none applies; that a family of which some apply does not, and that without the demand none does.
#[test]
fn what_was_named_and_does_not_apply_blocks() {
    let verdict = |text: &str| {
        let only = Selection { only: vec!["rehearsal".into(), "leakage".into()], ..Selection::default() };
        let (read, policy) = (read(text), policy(&read(text), &only));
        let planned = plan(STEPS, &facts(&read), &policy);
        let results = graph::execute(&planned, &|step| {
            let answer = |check: &&str| match *check {
                "leakage.rows" => CheckResult::of_rows(check, 1, Vec::new()),
                check => CheckResult::not_applicable(check, "no column is named"),
            };
            step.spec.checks.iter().map(answer).collect()
        });
        policy.verdict(&policy.judge(planned.iter().map(|step| step.spec.checks), results))
    };
    let sides = format!("{TRAIN}{TEST}");
    for (more, expected) in [
        ("", Verdict::Pass),
        ("require = [\"leakage\"]", Verdict::Pass),
        ("require = [\"leakage.groups\"]", Verdict::Block),
        ("require = [\"rehearsal\"]", Verdict::Block),
        ("require = [\"rehearsal.one_batch\"]", Verdict::Block),
        ("one_batch = true", Verdict::Block),
        ("overfit_batches = 2", Verdict::Block),
    ] {
        assert_eq!(verdict(&format!("{sides}[preflight]\n{more}")), expected, "{more}");
    }
}

/// Proves that what the launcher refuses blocks where the check is skipped or made a warning, as the launch would, with one
/// sentence that says so; and that only the command itself leaves the check out.
#[test]
fn what_the_launcher_refuses_is_not_waived() {
    let only = || Selection { only: vec![OFFER.into()], ..Selection::default() };
    let offer = |more: &str, selection: &Selection| {
        let read = read(&format!("[resources]\ncpus = 1\n{more}"));
        let policy = policy(&read, selection);
        let planned = plan(STEPS, &facts(&read), &policy);
        let refused = Finding::new(OFFER, Severity::Block, "x");
        let results = graph::execute(&planned, &|_| {
            vec![CheckResult::about(OFFER, NoRows::Settings, vec![refused.clone()])]
        });
        policy.judge(planned.iter().map(|step| step.spec.checks), results).remove(0)
    };
    assert_eq!(offer("", &only()).findings.len(), 1);
    let skip = Selection { skip: vec![skipped("launch")], ..only() };
    let warn = "[preflight]\nseverity = { \"launch.offer\" = \"warn\" }\n";
    for check in [offer("", &skip), offer(warn, &only())] {
        assert_eq!((check.verdict, check.findings.len()), (Verdict::Block, 2), "{check:?}");
        assert_eq!(check.findings[1].message, NOT_WAIVED);
    }
    let left_out = Selection { left_out: vec![skipped(OFFER)], ..only() };
    assert_eq!(offer("", &left_out).verdict, Verdict::NotRun);
}

/// Proves that steps wait for those they need, and that each is done once.
#[test]
fn steps_wait_for_one_another() {
    let read = read(&format!("{TRAIN}{TEST}"));
    let planned = plan(STEPS, &facts(&read), &policy(&read, &Selection::default()));
    let done = std::sync::Mutex::new(Vec::new());
    graph::execute(&planned, &|step| {
        done.lock().unwrap().push(step.spec.name);
        Vec::new()
    });
    let done = done.into_inner().unwrap();
    let at = |name: &str| done.iter().position(|step| *step == name).unwrap();
    assert_eq!(done.len(), 7, "{done:?}");
    assert!(["integrity", "imbalance", "drift"].iter().all(|step| at("read") < at(step)), "{done:?}");
}

/// Proves that a step that panics is an answer that passes for nothing, and that no other step waits for it for ever.
#[test]
fn a_panic_is_reported_and_delays_no_check() {
    let read = read(&format!("{TRAIN}{TEST}"));
    let planned = plan(STEPS, &facts(&read), &policy(&read, &Selection::default()));
    let results = graph::execute(&planned, &|step| {
        assert_ne!(step.spec.name, "read", "a planted fault");
        Vec::new()
    });
    let of_read = planned.iter().zip(&results).find(|(step, _)| step.spec.name == "read").unwrap().1;
    assert!(
        !of_read.is_empty() && of_read.iter().all(|result| result.verdict == Verdict::NotRun),
        "{of_read:?}"
    );
}
