//! What a person changes of a run, and the tags that follow from it.

use trackway_core::LaunchKind;

use super::rows::{at, new_attempt, stored_run};
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::receipts::seal::AttemptSeal;
use crate::records::{RunAmendmentRow, RunField, RunRow, TagRow};

fn amendment(
    run: &RunRow,
    seconds: i64,
    field: RunField,
    tag: Option<&str>,
    new: Option<&str>,
) -> RunAmendmentRow {
    RunAmendmentRow {
        amendment_id: format!("amd_{}_{seconds}", run.run_id),
        run_id: run.run_id,
        at: at(seconds),
        author: "ana".into(),
        field,
        tag: tag.map(str::to_owned),
        old_text: None,
        new_text: new.map(str::to_owned),
        why: None,
    }
}

/// The newest change of each field counts, receipts stay as they are, and the changes make a restored run what it was.
pub(super) fn a_run_is_amended(ledger: &Ledger) {
    let run = stored_run(ledger, "before");
    let mut attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    attempt.termination_reason = Some(trackway_core::TerminationReason::Completed);
    let tag = |name: &str, value: &str| TagRow {
        attempt_id: attempt.attempt_id,
        run_id: run.run_id,
        name: name.into(),
        value: value.into(),
    };
    let tags = vec![tag("kept", "a"), tag("changed", "b"), tag("removed", "c")];
    let seal = AttemptSeal { tags, ..AttemptSeal::of(attempt.clone()) };
    ledger.seal_attempt(&seal, at(5)).unwrap();
    let changes = [
        amendment(&run, 10, RunField::Name, None, Some("after")),
        amendment(&run, 11, RunField::Note, None, Some("draft")),
        amendment(&run, 12, RunField::Note, None, Some("the one for the paper")),
        amendment(&run, 13, RunField::Hidden, None, Some("true")),
        amendment(&run, 14, RunField::Tag, Some("changed"), Some("first")),
        amendment(&run, 15, RunField::Tag, Some("changed"), Some("second")),
        amendment(&run, 16, RunField::Tag, Some("removed"), None),
        amendment(&run, 17, RunField::Tag, Some("new"), Some("n")),
    ];
    let amended = ledger.amend_run(run.run_id, &changes).unwrap();
    assert_eq!(
        ledger.amend_run(run.run_id, &changes).unwrap(),
        amended,
        "once more, because the reply was lost"
    );
    assert_eq!(ledger.run(run.run_id).unwrap().as_ref(), Some(&amended));
    let shown = (amended.name.as_str(), amended.note.as_deref(), amended.hidden_at);
    assert_eq!(shown, ("after", Some("the one for the paper"), Some(at(13))));
    let now = || -> Vec<(String, String)> {
        let rows = ledger.tags_of_runs(&[run.run_id]).unwrap();
        let mut pairs: Vec<_> = rows.into_iter().map(|row| (row.name, row.value)).collect();
        pairs.sort();
        pairs
    };
    let expected = [("changed", "second"), ("kept", "a"), ("new", "n")];
    assert_eq!(now(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(ledger.tags_of(attempt.attempt_id).unwrap().len(), 3, "the receipt");
    let listed = amendment(&run, 18, RunField::Hidden, None, None);
    assert_eq!(ledger.amend_run(run.run_id, &[listed]).unwrap().hidden_at, None);
    assert_eq!(ledger.amendments_of_run(run.run_id).unwrap().len(), 9);
    let other = RunAmendmentRow { author: "ben".into(), ..changes[0].clone() };
    assert_eq!(ledger.amend_run(run.run_id, &[other]).unwrap_err().kind(), ErrorKind::Integrity);
    // As `trackway doctor rebuild` does after the row of the run was put back from before the changes.
    ledger.change_run(run.run_id, |run| (run.name, run.note) = ("before".into(), None)).unwrap();
    let kept = crate::kept::KeptRows::of(&ledger.amendments_of_run(run.run_id).unwrap());
    assert_eq!(ledger.restore(&kept).unwrap(), crate::kept::RestoredRows::default(), "nothing is added");
    let restored = ledger.run(run.run_id).unwrap().unwrap();
    assert_eq!((restored.name, restored.note, restored.hidden_at), (amended.name, amended.note, None));
}
