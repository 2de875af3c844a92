use super::*;

fn names(evidence: &LogEvidence) -> Vec<&str> {
    evidence.hits.iter().map(|hit| hit.signature.as_str()).collect()
}

/// Proves that the answer does not depend on how the bytes arrive, nor on line ends.
#[test]
fn any_split_and_any_line_end_give_the_same_hits() {
    let log = "epoch 1\nTraceback (most recent call last):\n  File \"/a/b.py\", line 3, in step\n    y = f(x)\n\
               torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\nbye";
    let whole = LogScanner::scan(log.as_bytes());
    assert_eq!(whole.line_count, 6);
    for size in [1, 3, 7, 64] {
        let mut scanner = LogScanner::new();
        log.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
        assert_eq!(scanner.finish(), whole, "pieces of {size}");
    }
    let windows = LogScanner::scan(log.replace('\n', "\r\n").as_bytes());
    assert_eq!(names(&windows), names(&whole));
    let found = whole.hits.iter().find(|hit| hit.signature.as_str() == "device_oom.allocator").unwrap();
    assert_eq!(found.line_number, 5);
}

/// Proves that colours change nothing but where the lines begin, however the bytes arrive.
#[test]
fn colours_are_not_read() {
    let plain = "step 1\nTraceback (most recent call last):\n  File \"/a/b.py\", line 3, in step\n    y = f(x)\n\
                 torch.OutOfMemoryError: CUDA out of memory\nbye";
    let coloured = "\x1b[32mstep 1\x1b[0m\nTraceback (most recent call last):\n  File \x1b[35m\"/a/b.py\"\x1b[0m, line \x1b[35m3\x1b[0m, in step\n    \
                    y = \x1b[31mf\x1b[0m(x)\n\x1b[1;31mtorch.OutOfMemoryError\x1b[0m\x1b[31m:\x1b[0m CUDA out of memory\nbye";
    let (read, expected) = (LogScanner::scan(coloured.as_bytes()), LogScanner::scan(plain.as_bytes()));
    let shown = |log: &LogEvidence| {
        log.hits
            .iter()
            .map(|hit| (hit.line_number, hit.text.clone(), hit.raised_at.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&read), shown(&expected));
    assert_eq!((names(&read), &read.last_lines), (names(&expected), &expected.last_lines));
    let error = coloured.find("\x1b[1;31mtorch").map(|at| at as u64);
    assert!(read.hits.iter().filter(|hit| hit.line_number == 5).all(|hit| Some(hit.byte_offset) == error));
    for size in [1, 3, 7, 64] {
        let mut scanner = LogScanner::new();
        coloured.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
        assert_eq!(scanner.finish(), read, "pieces of {size}");
    }
}

/// Proves that neither the path of a frame nor its code line is evidence, whatever words are in them, and that the exception is.
#[test]
fn frames_are_no_evidence() {
    let of = |folder: &str, code: &str| {
        let log = format!(
            "Traceback (most recent call last):\n  File \"/data/{folder}/t.py\", line 3, in <module>\n    {code}\n\
             \x20   ~~~^^^^^\nKeyError: 'x'\n"
        );
        let evidence = LogScanner::scan(log.as_bytes());
        evidence.hits.iter().map(|hit| hit.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("schema_drift", "row['x']"), ["Traceback (most recent call last):", "KeyError: 'x'"]);
    assert_eq!(of("nccl timeout", "row['x']"), ["Traceback (most recent call last):", "KeyError: 'x'"]);
    assert_eq!(
        of("run", "if row == 5: raise ValueError('shapes (4,) and (3,) not aligned')"),
        ["Traceback (most recent call last):", "KeyError: 'x'"]
    );
}

/// Proves that megabytes without a newline, binary bytes and a hit across a block's edge neither lose the hit nor
/// grow memory.
#[test]
fn an_endless_binary_line_is_scanned_in_bounded_memory() {
    for lead in [131_072 - 20, 131_072 - 3, 1_000_000] {
        let mut log: Vec<u8> = (0..lead).map(|index: usize| [0xff, 0x00, b'x', b' '][index % 4]).collect();
        log.extend_from_slice(b" OSError: [Errno 28] No space left on device ");
        log.extend(std::iter::repeat_n(b'y', 300_000));
        let evidence = LogScanner::scan(&log);
        let hits: Vec<_> =
            evidence.hits.iter().filter(|hit| hit.signature.as_str() == "storage.no_space").collect();
        assert_eq!(hits.len(), 1, "lead {lead}");
        assert!(hits[0].text.len() <= 3 * MAX_TEXT_BYTES, "invalid bytes become three bytes each at most");
        assert_eq!((evidence.line_count, evidence.byte_count), (1, log.len() as u64));
    }
}

/// Proves that a flood of one line keeps a bounded number of hits, the first ones and the last.
#[test]
fn a_flood_keeps_the_first_hits_and_the_last() {
    let log = "RuntimeError: CUDA out of memory\n".repeat(50_000);
    let evidence = LogScanner::scan(log.as_bytes());
    let lines: Vec<u64> = evidence
        .hits
        .iter()
        .filter(|hit| hit.signature.as_str() == "device_oom.allocator")
        .map(|hit| hit.line_number)
        .collect();
    assert_eq!(lines, [1, 2, 3, 4, 50_000]);
    assert_eq!(evidence.last_lines.len(), LAST_LINES);
}

/// Proves that a line which announces what is in the next one is shown with it, unless that is a traceback or announces something itself.
#[test]
fn what_a_line_announces_is_shown_with_it() {
    let shown = |log: &str| LogScanner::scan(log.as_bytes()).hits[0].shown();
    let error = "RuntimeError: Error(s) in loading state_dict for Net:";
    assert_eq!(
        shown(&format!("{error}\n\tMissing key(s): \"a\".\n")),
        format!("{error} Missing key(s): \"a\".")
    );
    for next in ["Traceback (most recent call last):", "Other:", "  File \"a.py\", line 3, in f", ""] {
        assert_eq!(shown(&format!("{error}\n{next}\n")), error, "{next}");
    }
    assert_eq!(shown("RuntimeError: no colon\nnext\n"), "RuntimeError: no colon");
}

/// Proves that a message glued to a redrawn bar is shown without the bar's earlier states.
#[test]
fn progress_bars_are_cut_from_the_text() {
    let log = b" 1%|\r 2%|#\r 3%|##   | 3/100[rank3]: MemoryError\n";
    let evidence = LogScanner::scan(log);
    assert_eq!(evidence.hits[0].text, "3%|##   | 3/100[rank3]: MemoryError");
}

/// Proves that skipped, retried, warned, supposed and outlived errors are distinguished from open ones, and that source
/// lines quoted by a traceback are not hits.
#[test]
fn handling_is_read_from_the_lines_around() {
    let cases = [
        ("RuntimeError: CUDA out of memory\n", Some(Handling::Open)),
        ("RuntimeError: CUDA out of memory\nskipping batch 7\n", Some(Handling::Handled)),
        ("WARNING: CUDA out of memory, smaller chunk next\n", Some(Handling::Warned)),
        ("This may be due to CUDA out of memory\n", Some(Handling::Supposed)),
        ("CUDA out of memory\nstep 8 loss 0.4 lr 0.1\nstep 9 loss 0.3 lr 0.1\n", Some(Handling::Handled)),
        ("    raise RuntimeError('CUDA out of memory')\n", None),
        ("config: retry on CUDA out of memory\n", None),
        ("Note: CUDA out of memory is usual with batch 64\n", Some(Handling::Supposed)),
        ("n1:1:1 [0] NCCL INFO CUDA out of memory\n", Some(Handling::Supposed)),
        (
            "CUDA out of memory (reached max retries: 3), please lower the batch before trying again\n",
            Some(Handling::Open),
        ),
        ("RuntimeError: CUDA out of memory after the model was restored from disk\n", Some(Handling::Open)),
    ];
    for (log, handling) in cases {
        let evidence = LogScanner::scan(log.as_bytes());
        let hit = evidence.hits.iter().find(|hit| hit.signature.as_str() == "device_oom.allocator");
        assert_eq!(hit.map(|hit| hit.handling), handling, "{log}");
    }
}

/// Proves that a scheduler's statement counts as handled only if the run was resumed after it, and that a line which
/// only mentions a mechanism is not conclusive.
#[test]
fn statements_about_the_past_do_not_conclude() {
    let notice =
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n";
    let progress = "step 8 loss 0.4 lr 0.1\nstep 9 loss 0.3 lr 0.1\n";
    let cases = [
        (notice.to_owned(), Handling::Open, true),
        (format!("{notice}{progress}"), Handling::Open, true),
        (format!("{notice}Resuming training from checkpoint 7\n{progress}"), Handling::Handled, true),
        (format!("INFO: the attempt before ended with: {notice}"), Handling::Open, false),
        ("help: \"DUE TO TIME LIMIT\" is what the scheduler prints\n".to_owned(), Handling::Open, false),
    ];
    for (log, handling, conclusive) in cases {
        let evidence = LogScanner::scan(log.as_bytes());
        let hit = evidence.hits.iter().find(|hit| hit.signature.as_str() == "scheduler.time_limit").unwrap();
        assert_eq!((hit.handling, hit.conclusive), (handling, conclusive), "{log}");
    }
}
