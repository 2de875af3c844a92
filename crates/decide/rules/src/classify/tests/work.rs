//! Proofs of what a failure at the end of the output means beside exit code 0, by how far the work came.

use trackway_core::Timestamp;

use super::by_hand::raised;
use super::ended;
use crate::classify::ending::work::{Count, Failure, FinalResult, Origin, Work};
use crate::classify::*;
use crate::scan::LogScanner;

const ORIGINS: [Origin; 3] = [Origin::Logged, Origin::Thrown, Origin::Beside];

/// Proves which failures end the work, for every count, final result and origin, and that nothing of the work may be
/// printed after them unless the script says that its training failed.
#[test]
fn a_failure_ends_work_that_is_not_done() {
    use Count::{Complete, Short, Unknown};
    use FinalResult::{Evaluation, Final, Test};
    // Whether one ends the work that is logged, thrown, or beside the main program.
    let table = [
        (Complete, None, [false, false, false]),
        (Complete, Some(Final), [false, false, false]),
        (Complete, Some(Test), [false, false, false]),
        (Complete, Some(Evaluation), [false, false, false]),
        (Short, None, [true, true, true]),
        (Short, Some(Final), [false, false, false]),
        (Short, Some(Test), [false, true, true]),
        (Short, Some(Evaluation), [true, true, true]),
        (Unknown, None, [true, true, false]),
        (Unknown, Some(Final), [false, false, false]),
        (Unknown, Some(Test), [false, false, false]),
        (Unknown, Some(Evaluation), [false, true, false]),
    ];
    for (count, result, ends) in table {
        let work = Work { count, result };
        for (origin, ends) in ORIGINS.into_iter().zip(ends) {
            let of = |names_work, is_followed| work.was_ended_by(Failure { origin, names_work, is_followed });
            assert_eq!(of(false, false), ends, "{work:?} {origin:?}");
            assert!(!of(false, true), "{work:?} {origin:?}");
            assert!(of(true, false) && of(true, true), "{work:?} {origin:?}");
        }
    }
}

/// Lines of a training with a total.
fn steps(last: u32, total: u32) -> String {
    (1..=last).map(|step| format!("INFO t: step {step}/{total} loss 0.5\n")).collect()
}

/// The traceback of a thread of the script.
fn thread(error: &str) -> String {
    let library =
        "  File \"/u/lib/python3.11/threading.py\", line 982, in run\n    self._target(*self._args)\n";
    beside("Exception in thread Thread-1 (train):", library, error)
}

/// The traceback of a process that the script started.
fn child(error: &str) -> String {
    let library = "  File \"/u/lib/python3.11/multiprocessing/process.py\", line 108, in run\n    self._target(*self._args)\n";
    beside("Process Process-2:", library, error)
}

fn beside(announced: &str, library: &str, error: &str) -> String {
    let own = "  File \"/a/t.py\", line 9, in work\n    go(batch)\n";
    format!("{announced}\nTraceback (most recent call last):\n{library}{own}{error}\n")
}

/// What `log.exception` prints.
fn logged(words: &str, error: &str) -> String {
    format!("ERROR t: {words}\n{}", raised("go(batch)", error))
}

const INDEX: &str = "IndexError: list index out of range";
const SHAPES: &str = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 5x3)";
const REFUSED: &str = "OSError: [Errno 111] Connection refused: mlflow";
const NO_PLOTS: &str = "ModuleNotFoundError: No module named 'matplotlibxyz'";
const STEPS: &str = "INFO t: step 1 loss 0.5\nINFO t: step 2 loss 0.4\n";
const TESTED: &str = "INFO t: test accuracy: 0.930\n";

/// Proves that a failure after which nothing was left to do leaves the end completed, and that its exception is named.
#[test]
fn work_that_was_done_is_completed() {
    let chain = "\nDuring handling of the above exception, another exception occurred:\n\n";
    let early = "INFO t: epoch 11/100 loss 0.4\nINFO t: epoch 12/100 loss 0.4\nINFO t: Early stopping at epoch 12/100\n";
    let pinned = "Exception in thread Thread-4 (_pin_memory_loop):\nTraceback (most recent call last):\n  File \"/v/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py\", line 54, in do_one_step\n    r = in_queue.get(timeout=5)\nEOFError\n";
    let rows = [
        (format!("{}{}", steps(20, 20), logged("could not upload metrics", REFUSED)), "Connection refused"),
        (format!("{}{}", steps(20, 20), raised("go()", SHAPES)), "mat1 and mat2"),
        (format!("{}{}", steps(20, 20), thread(INDEX)), "IndexError"),
        (format!("{}{}", steps(20, 20), child(SHAPES)), "mat1 and mat2"),
        (
            format!(
                "{}{}{chain}{}",
                steps(20, 20),
                logged("could not upload", "KeyError: 'url'"),
                raised("go()", REFUSED)
            ),
            "",
        ),
        (format!("{STEPS}{TESTED}{}", logged("plot skipped: no matplotlib", NO_PLOTS)), "matplotlibxyz"),
        (format!("{STEPS}{TESTED}{}", raised("import matplotlibxyz", NO_PLOTS)), "matplotlibxyz"),
        (format!("{TESTED}{}", logged("no plots", NO_PLOTS)), "matplotlibxyz"),
        (
            format!(
                "{STEPS}Accuracy of the net on the 100 test images: 55 %\n{}",
                logged("no plots", NO_PLOTS)
            ),
            "",
        ),
        (format!("{STEPS}INFO t: eval_loss: 0.3\n{}", logged("no plots", NO_PLOTS)), ""),
        (format!("{early}{}", logged("plot skipped: no matplotlib", NO_PLOTS)), "matplotlibxyz"),
        (format!("{}{TESTED}{}", steps(12, 100), logged("no plots", NO_PLOTS)), ""),
        (format!("{}INFO t: final test accuracy: 0.9\n{}", steps(12, 100), thread(INDEX)), "IndexError"),
        (format!("{}{}val_acc 0.91\n", steps(7, 50), raised("go()", INDEX)), "IndexError"),
        (format!("{}{}model saved to model.pt\n", steps(7, 50), logged("no plots", NO_PLOTS)), ""),
        (format!("{}{}", steps(19, 20), thread(INDEX)), "IndexError"),
        (format!("{STEPS}{}", thread(INDEX)), "IndexError"),
        (format!("{}{pinned}", steps(7, 50)), ""),
    ];
    for (log, named) in rows {
        let verdict = classify(&ended(Some(0), None, &log));
        let found = (verdict.reason, verdict.rule.as_str(), verdict.confidence);
        let expected = (Reason::Completed, "process.exit_0_after_traceback", Confidence::Likely);
        assert_eq!(found, expected, "{log}\n{verdict:#?}");
        assert!(verdict.evidence[0].text.contains(named), "{log}\n{verdict:#?}");
    }
    let more: String = (6..=10).map(|step| format!("INFO t: step {step}/10 loss 0.5\n")).collect();
    let worker = classify(&ended(Some(0), None, &format!("{}{}{more}", steps(5, 10), child(INDEX))));
    assert_eq!((worker.reason, worker.rule.as_str()), (Reason::Completed, "process.exit_0"), "{worker:#?}");
}

/// Proves that a failure at the end of a count that falls short is the end, also of a thread or a child, whatever else
/// the main program prints; and so is one that the script says its training had, one after a result that each epoch
/// has, and one of the main program where no count is known.
#[test]
fn work_that_was_not_done_has_failed() {
    let two = "Process Process-1:\nINFO t: step 8/40 loss 0.1\nProcess Process-2:\n";
    let header = "Traceback (most recent call last):\n";
    let frame =
        "  File \"/u/lib/python3.11/multiprocessing/process.py\", line 314, in _bootstrap\n    self.run()\n";
    let own = "  File \"/a/t.py\", line 11, in w\n    go(batch)\n";
    let children =
        format!("{}{two}{header}{header}{frame}{frame}{own}{SHAPES}\n{frame}{own}{SHAPES}\n", steps(8, 40));
    let deep = format!("Exception in thread Thread-1 (train):\n{header}{}{SHAPES}\n", own.repeat(40));
    let others = "all threads joined\nqueue closed\nlogs are in out/\nbye\n";
    let repeated =
        "INFO t: step 1 loss 0.5\ntest accuracy: 0.5\nINFO t: step 2 loss 0.4\ntest accuracy: 0.6\n";
    let first = "Epoch: 1 [0/600] loss 0.5\nEpoch: 1 [100/600] loss 0.5\ntest accuracy: 0.5\n";
    for log in [
        children,
        format!("{}{}", steps(7, 50), thread(INDEX)),
        format!("{}{}", steps(7, 50), child(INDEX)),
        format!("{}{}{others}", steps(7, 50), thread(INDEX)),
        format!("{}{}model saved to model.pt\n", steps(7, 50), thread(INDEX)),
        format!("{}{}done\n", steps(7, 50), thread(INDEX)),
        format!("{}{deep}", steps(7, 50)),
        format!("{}{}", steps(7, 50), raised("go()", INDEX)),
        format!("{}{}", steps(7, 50), logged("oops", INDEX)),
        format!("{}{}done\n", steps(7, 50), logged("oops", INDEX)),
        format!("{}{TESTED}{}", steps(7, 50), thread(INDEX)),
        format!("{}{TESTED}{}", steps(7, 50), raised("go()", INDEX)),
        format!("{}INFO t: eval_loss: 0.3\n{}", steps(7, 50), logged("oops", INDEX)),
        format!("{}{}", steps(20, 20), logged("training failed", INDEX)),
        format!("{STEPS}{}", raised("go()", INDEX)),
        format!("{STEPS}INFO t: eval_loss: 0.3\n{}", raised("go()", INDEX)),
        format!("{repeated}{}", raised("go()", INDEX)),
        format!("{first}{}", raised("go()", INDEX)),
    ] {
        let verdict = classify(&ended(Some(0), None, &log));
        assert_eq!(verdict.reason, Reason::CodeError, "{log}\n{verdict:#?}");
        assert_ne!(verdict.confidence, Confidence::Certain, "{log}\n{verdict:#?}");
    }
}

/// Proves that a thread's failure is the end where its count is on the other stream, unless a result of the work comes after it.
#[test]
fn a_thread_and_its_count_may_be_on_two_streams() {
    let of = |after: &str| {
        let begun = steps(7, 50);
        let mut evidence = TerminationEvidence::of_launch(LaunchKind::Train);
        evidence.exit_code = Some(0);
        for (stream, text, second_at) in [
            (Stream::Stdout, format!("{begun}{after}"), begun.len() as u64),
            (Stream::Stderr, thread(INDEX), u64::MAX),
        ] {
            let mut log = LogScanner::scan(text.as_bytes());
            let first = if stream == Stream::Stdout { 1_000_000 } else { 2_000_000 };
            log.set_times(|offset| {
                Some(Timestamp::from_micros(if offset < second_at { first } else { 3_000_000 }))
            });
            evidence.logs.push(StreamLog { stream, log });
        }
        classify(&evidence).reason
    };
    assert_eq!(of(""), Reason::CodeError);
    assert_eq!(of("all threads joined\n"), Reason::CodeError);
    assert_eq!(of("val_acc 0.91\n"), Reason::Completed);
}
