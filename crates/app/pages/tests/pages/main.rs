//! Every page in its main states.

#![recursion_limit = "256"]

mod run_samples;
mod samples;

use serde_json::json;
use trackway_api::models::ProbeReport;
use trackway_api::models::evaluations::EvaluationState;
use trackway_api::runs::RunState;
use trackway_api::runs::watch::QueuedRun;
use trackway_core::checks::Verdict;
use trackway_core::visible::steers_display;
use trackway_evaluate::Assessment;
use trackway_evaluate::debug::ProbeAnswer;
use trackway_rules::preflight::memory::{Architecture, Device, MemoryReport, MemorySpec, report};

use self::samples::{about, assessment, comparison, evaluation, pages, preflight, probe};
use trackway_pages::Page;

/// Ends an attribute, an element, a comment and a CDATA section, begins scripts in several ways, and steers the display.
const HOSTILE: &str = "x\u{1b}[2J\r\n\u{9b}\u{202e}\u{2066}<script>alert(1)</script>\" onload=\"alert(2)' onclick='alert(3) --> \
                       ]]> </title></style></svg><img src=x onerror=alert(4)> javascript:alert(5) &lt;script&gt;";

fn memory_report() -> MemoryReport {
    let model = Architecture::decoder(32, 4096, 32, 11_008, 32_000);
    report(&MemorySpec::new(model), Device::named("a100-80gb").copied(), None)
}

/// The elements of a page one a line, without the style sheet, which is a separate file.
fn lines(page: &Page) -> String {
    let (head, rest) = page.as_str().split_once("<style>").expect("a style sheet");
    let (_, body) = rest.split_once("</style>").expect("its end");
    format!("{head}{body}").replace("><", ">\n<")
}

/// The names of the elements, and the attributes that are no place in a drawing.
fn tags(page: &Page) -> Vec<String> {
    let name = |part: &str| part.split([' ', '>']).next().unwrap_or_default().to_owned();
    page.as_str().split('<').skip(1).map(name).collect()
}

/// Proves what each page shows in its fullest state.
#[test]
fn every_page() {
    for (name, page) in pages("plain") {
        insta::assert_snapshot!(name, lines(&page));
    }
}

/// Proves that texts become neither elements nor attributes, and that none of them steers the display, on every page; with
/// personal data hidden too.
#[test]
fn texts_are_never_markup() {
    let hostile = pages(HOSTILE).into_iter().zip(pages("plain"));
    for ((name, page), (_, plain)) in hostile {
        let text = page.as_str();
        let (_, shown) = text.split_once("</style>").expect("a style sheet");
        assert!(!shown.trim_end_matches('\n').contains(steers_display), "{name}");
        assert_eq!(tags(&page), tags(&plain), "{name}: the same elements whatever the texts are");
        for part in text.split('<').skip(1) {
            let tag = part.split('>').next().expect("a tag");
            let is_own_link = tag.starts_with("a href=\"#runbook-");
            assert!(
                !tag.contains("alert") && (is_own_link || !tag.contains("href")) && !tag.contains(" on"),
                "{name}: <{tag}"
            );
        }
        assert!(text.contains("&lt;script&gt;alert(1)"), "{name} shows the text");
        assert!(
            text.contains("&amp;lt;script&amp;gt;"),
            "{name} does not take escapes of the text for its own"
        );
    }
}

/// Proves that pages need nothing from elsewhere, that every link leads to a place in its page, and that every element is closed.
#[test]
fn pages_need_nothing_else() {
    for (name, page) in pages("plain") {
        let text = page.as_str();
        assert!(text.starts_with("<!doctype html>\n") && text.ends_with("</html>\n"), "{name}");
        for forbidden in ["<script", "://", "src=", "url(", "@import", "NaN", "inf\""] {
            assert!(!text.contains(forbidden), "{name}: {forbidden}");
        }
        for link in text.split("href=\"").skip(1) {
            let target =
                link.split('"').next().and_then(|target| target.strip_prefix('#')).expect("a place in it");
            assert!(text.contains(&format!("id=\"{target}\"")), "{name}: {target}");
        }
        for element in ["td", "tr", "table", "svg", "g", "p", "div", "section", "polyline", "text"] {
            let begun = tags(&page).iter().filter(|tag| *tag == element).count();
            assert_eq!(begun, text.matches(&format!("</{element}>")).count(), "{name}: {element}");
        }
    }
}

/// Proves that personal data is hidden in every text of a page if requested.
#[test]
fn personal_data_is_masked() {
    let about = trackway_pages::About { masks: true, ..about() };
    let mail = "ana@example.org";
    for page in [
        trackway_pages::metrics(mail, &assessment(mail), &about),
        trackway_pages::probe(mail, &probe(mail), &about),
        trackway_pages::preflight(&preflight(mail), &about),
        trackway_pages::comparison(&comparison(mail), &about),
        trackway_pages::evaluation(&evaluation(mail), &about),
        trackway_pages::explanation(&run_samples::explanation(mail), &about),
        trackway_pages::postmortem(&run_samples::postmortem(mail), &about),
    ] {
        assert!(!page.as_str().contains("ana@"), "{page:?}");
        assert!(page.as_str().contains("a…@e…g"), "{page:?}");
    }
}

/// Proves that an answer without content makes a page, and that it says what it is.
#[test]
fn empty_answers_make_pages() {
    let about = about();
    let nothing: Assessment = serde_json::from_value(json!({
        "task": "regression", "columns": {}, "rows": 0, "rows_seen": 0, "rows_skipped": 0, "confidence": 0.95, "resamples": 0,
        "seed": 0, "main_metric": "mae", "metrics": {}, "classes": [],
        "curves": { "calibration": [], "roc": [], "precision_recall": [] }, "slices": [], "fairness": [], "notes": [],
    }))
    .expect("an assessment");
    let report = ProbeReport { found: ProbeAnswer::default(), rows_read: 0, seconds: 0.0 };
    let mut checked = preflight("plain");
    checked.verdict = Verdict::Pass;
    checked.checks.clear();
    checked.quote.sets.clear();
    checked.charts.clear();
    (checked.memory, checked.cost, checked.imbalance) = (None, None, None);
    let mut compared = comparison("plain");
    for rows in
        [&mut compared.parameters, &mut compared.config, &mut compared.data, &mut compared.environment]
    {
        rows.clear();
    }
    compared.metrics.clear();
    compared.evaluations.clear();
    compared.curves.clear();
    let mut running = evaluation("plain");
    running.state = EvaluationState::Running;
    running.assessment = None;
    running.metrics.clear();
    running.gates.clear();
    running.sampled_failures = None;
    (running.failure, running.ended_at, running.receipt_sha256) = (None, None, None);
    let mut explained = run_samples::explanation("plain");
    (explained.attempt, explained.termination, explained.placement) = (None, None, None);
    (explained.since_last_good, explained.fall_back, explained.resume_step) = (None, None, None);
    explained.machine = trackway_api::runs::explain::MachineSummary::default();
    explained.cost = trackway_api::runs::explain::AttemptCost::default();
    explained.data.sets.clear();
    explained.attempts.clear();
    explained.rungs.clear();
    explained.preflight.clear();
    explained.detections.clear();
    explained.diagnoses.clear();
    explained.timeline.clear();
    explained.checkpoints.clear();
    explained.retries.clear();
    explained.evaluations.clear();
    explained.metrics.clear();
    explained.reading.clear();
    explained.curves.clear();
    explained.parameters.clear();
    explained.tags.clear();
    explained.same_inputs.clear();
    explained.last_lines.clear();
    let mut unfailed = run_samples::postmortem("plain");
    unfailed.failures.clear();
    unfailed.blocked_by.clear();
    unfailed.tried.clear();
    unfailed.timeline.clear();
    unfailed.actions.clear();
    unfailed.inputs.sets.clear();
    unfailed.inputs.since_last_good = None;
    (unfailed.impact.failed_count, unfailed.impact.lost_steps) = (0, None);
    unfailed.integrity.verified.kinds.clear();
    unfailed.integrity.verified.differs.clear();
    unfailed.integrity.checkpoints.clear();
    for (name, page) in [
        ("empty metrics", trackway_pages::metrics("plain", &nothing, &about)),
        ("empty probe", trackway_pages::probe("plain", &report, &about)),
        ("empty preflight", trackway_pages::preflight(&checked, &about)),
        ("empty comparison", trackway_pages::comparison(&compared, &about)),
        ("empty evaluation", trackway_pages::evaluation(&running, &about)),
        ("empty explanation", trackway_pages::explanation(&explained, &about)),
        ("empty postmortem", trackway_pages::postmortem(&unfailed, &about)),
    ] {
        insta::assert_snapshot!(name, lines(&page));
    }
}

/// Proves that the page of a run which waits names its place in its queue, and that one which lost its supervisor says so, with how it
/// continues.
#[test]
fn a_run_that_waits_says_for_what() {
    let mut explained = run_samples::explanation("plain");
    (explained.attempt, explained.termination) = (None, None);
    explained.run.state = RunState::Waiting;
    explained.run.queue = Some(QueuedRun {
        name: "gpu".into(),
        at_most: 1,
        running: Some(1),
        place: Some(2),
        waiting: Some(3),
        waited_seconds: 9.0,
    });
    let page = trackway_pages::explanation(&explained, &about());
    assert!(page.as_str().contains("2nd of 3 in queue gpu, 1 may run"));
    assert!(page.as_str().contains("It was not launched yet"));
    explained.run.unsupervised = true;
    let page = trackway_pages::explanation(&explained, &about());
    assert!(
        page.as_str().contains("no process supervises it") && page.as_str().contains("trackway resume run_")
    );
    assert!(!page.as_str().contains("2nd of 3"));
}

/// Proves that curves of one point, bins alone and bars of one value are drawn in finite places.
#[test]
fn one_point_is_drawn() {
    let mut judged = assessment("plain");
    judged.curves.roc.truncate(1);
    judged.curves.precision_recall.truncate(1);
    let left = judged.residuals.as_mut().expect("residuals");
    left.points.truncate(1);
    left.by_feature.iter_mut().for_each(|curve| curve.bins.truncate(1));
    let mut probed = probe("plain");
    for feature in &mut probed.found.dependence {
        feature.values.truncate(1);
        for curve in &mut feature.curves {
            curve.rows.clear();
            [&mut curve.mean, &mut curve.low, &mut curve.high]
                .into_iter()
                .for_each(|values| values.truncate(1));
        }
    }
    let mut checked = preflight("plain");
    checked
        .charts
        .iter_mut()
        .flat_map(|chart| &mut chart.series)
        .for_each(|series| series.shares.truncate(1));
    let mut compared = comparison("plain");
    compared.curves[0].series.iter_mut().skip(1).for_each(|series| series.truncate(1));
    let mut explained = run_samples::explanation("plain");
    explained.curves[0].series[0].truncate(2);
    explained.curves[0].series[0][1].1 = None;
    for (name, page) in [
        ("metrics", trackway_pages::metrics("plain", &judged, &about())),
        ("probe", trackway_pages::probe("plain", &probed, &about())),
        ("preflight", trackway_pages::preflight(&checked, &about())),
        ("comparison", trackway_pages::comparison(&compared, &about())),
        ("explanation", trackway_pages::explanation(&explained, &about())),
    ] {
        assert!(!page.as_str().contains("NaN") && !page.as_str().contains("inf\""), "{name}");
        assert!(page.as_str().contains("<svg"), "{name}");
    }
    let page = trackway_pages::metrics("plain", &judged, &about());
    assert_eq!(page.as_str().matches("r=\"2\"").count(), 2, "a curve of one point is a dot");
}
