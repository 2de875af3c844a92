use trackway_core::Timestamp;

use super::by_hand::raised;
use super::ended;
use crate::classify::*;
use crate::scan::LogScanner;

/// What is read at once, with when it was read in milliseconds.
type Pieces<'a> = &'a [(&'a str, i64)];

fn stream(stream: Stream, pieces: Pieces<'_>) -> StreamLog {
    let text: String = pieces.iter().map(|(text, _)| *text).collect();
    let mut log = LogScanner::scan(text.as_bytes());
    log.set_times(|offset| {
        let mut start = 0;
        let mut at = None;
        for (text, millis) in pieces {
            if start <= offset {
                at = Some(Timestamp::from_micros(millis * 1000));
            }
            start += text.len() as u64;
        }
        at
    });
    StreamLog { stream, log }
}

/// The verdict about an end with `code` of what was printed to standard output and to standard error.
fn verdict(code: i32, stdout: Pieces<'_>, stderr: Pieces<'_>) -> TerminationVerdict {
    let mut evidence = TerminationEvidence::of_launch(LaunchKind::Train);
    evidence.exit_code = Some(code);
    evidence.logs = vec![stream(Stream::Stdout, stdout), stream(Stream::Stderr, stderr)];
    classify(&evidence)
}

/// Proves that a traceback at the end of all output is the end whatever the exit code unless the work is done, that one
/// which other output follows makes the end a completed one which names it, and that one after which steps or a result
/// came was handled.
#[test]
fn what_follows_a_traceback_says_what_it_was() {
    let traceback = raised("import fancy_plots", "ModuleNotFoundError: No module named 'fancy_plots'");
    let (first, steps) = (("step 1 loss 9.0\n", 10), ("step 2 loss 8.0\nstep 3 loss 7.0\n", 101));
    let stderr = [(traceback.as_str(), 100)];
    let of = |stdout: Pieces<'_>| {
        let verdict = verdict(0, stdout, &stderr);
        (verdict.reason, verdict.rule.as_str(), verdict.evidence[0].text.contains("fancy_plots"))
    };
    let failed = (Reason::CodeError, "code.import", true);
    assert_eq!(of(&[first]), failed);
    assert_eq!(of(&[first, steps]), failed, "read together with it, they may have been before it");
    assert_eq!(of(&[first, ("exited with error 1\n", 101)]), failed);
    let short = ("Epoch 2/10 loss 9.0\nEpoch 3/10 loss 8.0\n", 10);
    assert_eq!(of(&[short, ("done\n", 101)]), failed, "a wrapper says it");
    let named = (Reason::Completed, "process.exit_0_after_traceback", true);
    assert_eq!(of(&[short, ("no plots; model saved to model.pt\n", 101)]), named);
    let whole = ("Epoch 9/10 loss 9.0\nEpoch 10/10 loss 8.0\n", 10);
    assert_eq!(of(&[whole]), named, "the work is done");
    for after in ["no plots; model saved to model.pt\n", "done\n"] {
        assert_eq!(of(&[first, (after, 101)]), named, "{after}");
    }
    let handled = (Reason::Completed, "process.exit_0", false);
    assert_eq!(of(&[first, steps, ("step 4 loss 6.0\n", 102)]), handled);
    assert_eq!(of(&[first, ("final test accuracy 0.97\n", 1100)]), handled);
    let noted = verdict(0, &[first, ("final test accuracy 0.97\n", 1100)], &stderr);
    assert!(noted.secondary.iter().any(|other| other.text.contains("fancy_plots")), "{noted:#?}");
    let kept = verdict(0, &[first, ("done\n", 101)], &stderr);
    assert_eq!(kept.confidence, Confidence::Likely);
    assert!(kept.evidence[1].text.starts_with("at "), "{kept:#?}");
}

/// Proves that the words of `sys.exit` are the evidence where steps are read together with them, and not where steps come a while after.
#[test]
fn words_of_an_exit_are_the_last_ones() {
    let said = [("config has no key 'optimizer'; see README\n", 100)];
    let of = |at| verdict(1, &[("step 1 loss 9.0\n", 10), ("step 2 loss 8.0\n", at)], &said).rule.to_string();
    assert_eq!(of(103), "log.last_words");
    assert_ne!(of(900), "log.last_words");
}

/// Proves that what a `finally` hides is part of the evidence, and what an exception of the same reason translates is not.
#[test]
fn the_exception_that_was_being_handled_is_named() {
    let hidden = |first: &str| {
        let second = raised(
            "open(path, 'w')",
            "FileNotFoundError: [Errno 2] No such file or directory: '/a/b/c.json'",
        );
        let joined = "\nDuring handling of the above exception, another exception occurred:\n\n";
        let verdict =
            classify(&ended(Some(1), None, &format!("{}{joined}{second}", raised("x['label']", first))));
        assert_eq!(verdict.rule.as_str(), "data.absent_file");
        verdict.evidence.iter().any(|item| item.text == format!("while handling {first}"))
    };
    assert!(hidden("KeyError: 'label'"));
    assert!(!hidden("FileNotFoundError: [Errno 2] No such file or directory: 'd.csv'"));
}

/// Proves that a loader's worker that SIGKILL ended is a guess, that the kernel's word makes it more, and that a limit
/// of file size is not taken for a lock.
#[test]
fn a_killed_worker_and_a_large_file_are_what_they_are() {
    let killed = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n";
    let of = |log: &str| classify(&ended(Some(1), None, log));
    let alone = of(killed);
    assert_eq!((alone.reason, alone.confidence), (Reason::HostOom, Confidence::Guess));
    let stated = of(&format!("Out of memory: Killed process 7 (python) total-vm:1kB\n{killed}"));
    assert!(stated.reason == Reason::HostOom && stated.confidence < Confidence::Guess, "{stated:#?}");
    let large = of(&raised("open('c.bin', 'wb').write(b)", "OSError: [Errno 27] File too large"));
    assert_eq!((large.reason, large.rule.as_str()), (Reason::StorageError, "storage.file_size"));
}
