//! The text of a post-mortem, from a fixed document.

use trackway_api::runs::postmortem::Postmortem;
use trackway_inspect::postmortem::markdown;

fn fixed() -> Postmortem {
    serde_json::from_str(include_str!("run.json")).expect("a post-mortem")
}

/// Proves the whole text, with every part: a reason that is countered, an amendment, a detection, a changed input, a receipt that
/// differs; and that what is null in the document is not known in the text.
#[test]
fn the_text_of_a_post_mortem() {
    insta::assert_snapshot!("postmortem", markdown(&fixed()));
}

/// Proves that a document in which nothing is known makes a text without a guess: nothing is 0, `no` or `none` that was not counted.
#[test]
fn nothing_known_is_not_known() {
    let mut found = fixed();
    found.run.owner = None;
    found.impact.lost_steps = None;
    found.impact.recovery_seconds = None;
    for spent in [&mut found.impact.run, &mut found.impact.failed, &mut found.impact.lost] {
        *spent = trackway_api::runs::postmortem::Spent::default();
    }
    let failure = &mut found.failures[0];
    (failure.hosts, failure.started_at, failure.ended_at) = (None, None, None);
    (failure.exit_code, failure.signal, failure.last_step) = (None, None, None);
    (failure.last_committed_step, failure.lost_steps) = (None, None);
    (failure.peak_rss_bytes, failure.host_memory_bytes) = (None, None);
    let termination = &mut failure.termination;
    (termination.confidence, termination.rule, termination.domain) = (None, None, None);
    termination.evidence.clear();
    found.integrity.verified.kinds.clear();
    let text = markdown(&found);
    for line in [
        "| owner | *not known* |",
        "- Lost steps: *not known*",
        "- Time to recovery, from each failure to the next first step: *not known*",
        "| GPU hours | *not known* | *not known* | *not known* |",
        "confidence *not known*, rule *not known* |",
        "| steps | last *not known*, committed *not known*, lost *not known* |",
        "- *not known*: no evidence was recorded",
        "- The confidence is *not known*.",
        "*not known*: nothing is stored of the run.",
    ] {
        assert!(text.contains(line), "no `{line}` in {text}");
    }
}

/// Proves that after a divergence the last checkpoint is not recommended, which an earlier divergence does not prevent.
#[test]
fn a_training_that_diverged_is_not_resumed_from_its_last_checkpoint() {
    let mut found = fixed();
    let attempts = found.impact.attempt_count as u32;
    let failure = found.failures.last_mut().expect("a failure");
    failure.attempt_number = attempts;
    failure.termination.reason = trackway_core::TerminationReason::NumericDivergence;
    let text = markdown(&found);
    let line = "A resume would continue from step 240, which the training that diverged saved: if a checkpoint from before is left, the \
                command that continues from it is among the actions.";
    assert!(text.contains(line), "{text}");
    found.impact.attempt_count += 1;
    assert!(markdown(&found).contains("A resume would continue from step 240."));
}
