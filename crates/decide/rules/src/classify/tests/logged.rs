//! Proofs of what an error means that a script logged in its last lines before exit code 0.

use super::ended;
use crate::classify::*;

/// Lines of a training whose total is not known.
const STEPS: &str = "step 1 loss 0.4\nstep 2 loss 0.3\n";
/// Lines of one that was to make more epochs.
const SHORT: &str = "Epoch 2/10 loss 0.4\nEpoch 3/10 loss 0.3\n";
/// Lines of one that made all of its epochs.
const WHOLE: &str = "Epoch 2/3 loss 0.4\nEpoch 3/3 loss 0.3\n";

/// Proves that an error of something that the training can do without is named and does not change exit code 0.
#[test]
fn a_logged_error_does_not_change_exit_code_0() {
    let zero_based = "Epoch 1/3 loss 0.4\nEpoch 2/3 loss 0.3\n";
    let rows = [
        (
            STEPS,
            "2 validation images could not be decoded (PIL.UnidentifiedImageError), skipped\nval_acc 0.91",
        ),
        (STEPS, "3 validation images could not be decoded (PIL.UnidentifiedImageError)\nval_acc 0.91"),
        (STEPS, "could not import tensorboard: No module named 'tensorboard'; logging to CSV instead"),
        (STEPS, "could not plot confusion matrix: No module named 'seaborn'"),
        (STEPS, "could not plot confusion matrix: No module named 'seaborn'\nmodel is in out/"),
        (STEPS, "failed to plot the training curves: No module named 'seaborn'"),
        (STEPS, "could not write plots/curve.png: [Errno 28] No space left on device\nbye"),
        (
            STEPS,
            "evaluation on the large split was left out: CUDA out of memory. Tried to allocate 2.00 GiB\nbye",
        ),
        (STEPS, "evaluation on the large split disabled: CUDA out of memory. Tried to allocate 2.00 GiB"),
        (STEPS, "telemetry ping failed: ConnectionError: Max retries exceeded with url: /ping"),
        (STEPS, "could not push the model: OSError: [Errno 30] Read-only file system\nweights are in out/"),
        (STEPS, "KeyError: 'title'"),
        (zero_based, "No module named 'seaborn'"),
        ("10%|# | 1/10 [00:01<00:09]\n", "No module named 'seaborn'"),
        (SHORT, "could not read 3 images: cannot identify image file\nval_acc 0.91"),
        ("", "No module named 'tensorboard', logging to CSV instead"),
        (SHORT, "wandb sync error: timed out"),
        (WHOLE, "No module named 'seaborn'"),
        (WHOLE, "upload failed: the server is gone"),
        (WHOLE, "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ];
    for (work, error) in rows {
        let verdict = classify(&ended(Some(0), None, &format!("{work}ERROR:root:{error}\n")));
        let found = (verdict.reason, verdict.rule.as_str(), verdict.confidence);
        let named = (Reason::Completed, "process.exit_0_after_error", Confidence::Likely);
        assert_eq!(found, named, "{work}{error}\n{verdict:#?}");
        assert!(verdict.evidence[0].text.starts_with("ERROR:root:"), "{verdict:#?}");
    }
}

/// Proves that what is stated as complete, or was dealt with, is a plain success.
#[test]
fn a_complete_work_is_not_doubted() {
    for log in [
        "step 2 loss 0.3\nTraining finished\nERROR:root:No module named 'seaborn'\n",
        "step 2 loss 0.3\nERROR:root:No module named 'seaborn'\nDone\n",
        "step 2 loss 0.3\nERROR:root:skipping sample 7: cannot identify image file\n",
        "ERROR:root:No module named 'seaborn'\nstep 2 loss 0.3\nstep 3 loss 0.2\n",
    ] {
        let verdict = classify(&ended(Some(0), None, log));
        assert_eq!((verdict.reason, verdict.rule.as_str()), (Reason::Completed, "process.exit_0"), "{log}");
    }
}

/// Proves that exit code 0 does not hide the failure of the work: the script says so, its count falls short, memory ran out with its last
/// words, or it did nothing.
#[test]
fn a_logged_failure_of_the_work_is_heard() {
    let rows = [
        (Reason::DeviceOom, STEPS, "training failed: CUDA out of memory. Tried to allocate 2.00 GiB\nbye"),
        (Reason::CodeError, STEPS, "Error during training: KeyError: 'label'\nbye"),
        (Reason::CodeError, WHOLE, "training failed: KeyError: 'label'"),
        (Reason::NetworkError, STEPS, "training failed: ConnectionError: Max retries exceeded with url: /x"),
        (
            Reason::StorageError,
            STEPS,
            "no checkpoint: [Errno 28] No space left on device\nERROR:root:aborting training loop",
        ),
        (Reason::DataError, STEPS, "cannot identify image file 'a.png', stopping"),
        (Reason::DeviceOom, STEPS, "CUDA out of memory. Tried to allocate 2.00 GiB"),
        (Reason::DataError, SHORT, "cannot identify image file 'a.png'"),
        (Reason::StorageError, SHORT, "[Errno 28] No space left on device\ncleaning up"),
        (Reason::CodeError, SHORT, "KeyError: 'label'\ndone"),
        (Reason::CodeError, "", "No module named 'mylib'"),
        (Reason::CodeError, "", "KeyError: 'label'"),
        (Reason::DataError, "", "[Errno 2] No such file or directory: 'data/train.csv'"),
        (Reason::DataError, "", "no samples left after filtering, dataset is empty; nothing to train\nbye"),
    ];
    for (reason, work, error) in rows {
        let verdict = classify(&ended(Some(0), None, &format!("{work}ERROR:root:{error}\n")));
        assert_eq!(verdict.reason, reason, "{work}{error}\n{verdict:#?}");
        assert_eq!(verdict.confidence, Confidence::Likely, "{error}");
    }
}

/// Proves that an error which no pattern knows is named too where it is one of the last lines, in the forms in which
/// loggers write their level.
#[test]
fn an_unknown_error_is_named() {
    for error in [
        "CRITICAL:train:lost the database",
        "2026-11-29 10:00:00,123 - train - ERROR - could not upload report",
        "2026-11-29 10:00:00.123 | ERROR    | __main__:main:12 - could not upload report",
        "[2026-11-29 10:00:00][train][ERROR] could not upload report",
        "[ERROR] could not upload report",
        "ERROR: could not upload report\nbye\nlogs are in out/",
        "train - FATAL - lost the database\nval_acc 0.91",
    ] {
        let verdict = classify(&ended(Some(0), None, &format!("{STEPS}{error}\n")));
        let found = (verdict.reason, verdict.rule.as_str(), verdict.confidence);
        let named = (Reason::Completed, "process.exit_0_after_error", Confidence::Likely);
        assert_eq!(found, named, "{error}\n{verdict:#?}");
        assert_eq!(Some(verdict.evidence[0].text.as_str()), error.lines().next());
        assert_eq!(verdict.evidence[0].line_number, Some(3));
    }
}

/// Proves that a script which says that its training failed is believed, for a reason that is known only if a failure was named before.
#[test]
fn a_script_that_says_it_failed_is_believed() {
    for (reason, words) in [
        (Reason::Unknown, "ERROR:train:training failed at epoch 3/10"),
        (Reason::Unknown, "Training failed"),
        (Reason::Unknown, "Training failed\nbye"),
        (Reason::Unknown, "2026-11-29 10:00:00,123 - train - ERROR - the training loop crashed"),
        (Reason::DeviceOom, "CUDA out of memory. Tried to allocate 2.00 GiB\nTraining failed"),
    ] {
        let verdict = classify(&ended(Some(0), None, &format!("{STEPS}{words}\n")));
        assert_eq!(
            (verdict.reason, verdict.confidence),
            (reason, Confidence::Likely),
            "{words}\n{verdict:#?}"
        );
        let rule = verdict.rule.as_str();
        assert_eq!(rule == "log.last_words", reason == Reason::Unknown, "{words}: {rule}");
    }
}

/// Proves that metrics, tables, counts of none and what was dealt with are no errors, nor is what more progress or a stated end follows.
#[test]
fn a_word_for_an_error_is_no_error() {
    for lines in [
        "0 errors",
        "ERROR rate 0.12",
        "ERROR: 0",
        "ERROR summary: 0 errors",
        "test ERROR on rows 0.12",
        "step | ERROR | loss\n1 | 0.1 | 0.2",
        "ERROR    train loss    val loss\n0.1    0.2    0.3",
        "ERROR:  10%|#         | 1/10 [00:01<00:09,  1.0it/s]",
        "no training failed",
        "0 training failed",
        "training failed: 0",
        "Training failed to reach the score of run 7",
        "ERROR:train:upload of the report skipped",
        "ERROR:train:lost the database\nstep 3 loss 0.2\nstep 4 loss 0.2",
        "Training failed\nstep 3 loss 0.2\nstep 4 loss 0.2",
        "ERROR:train:lost the database\nTraining finished",
        "ERROR:train:lost the database\na\nb\nc",
    ] {
        let verdict = classify(&ended(Some(0), None, &format!("{STEPS}{lines}\n")));
        assert_eq!((verdict.reason, verdict.rule.as_str()), (Reason::Completed, "process.exit_0"), "{lines}");
    }
}
