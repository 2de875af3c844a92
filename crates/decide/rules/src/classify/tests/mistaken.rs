use trackway_core::Timestamp;

use super::{ended, of_log};
use crate::classify::*;
use crate::scan::LogScanner;

/// A stream of lines with the milliseconds at which each was written.
fn timed(stream: Stream, lines: &[(i64, String)]) -> StreamLog {
    let text: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
    let mut log = LogScanner::scan(text.as_bytes());
    let starts: Vec<(u64, i64)> = lines
        .iter()
        .scan(0, |start, (at, line)| {
            let this = *start;
            *start += line.len() as u64 + 1;
            Some((this, *at))
        })
        .collect();
    log.set_times(|offset| {
        let (_, at) = starts.iter().rfind(|(start, _)| *start <= offset)?;
        Some(Timestamp::from_micros(at * 1000))
    });
    StreamLog { stream, log }
}

/// An error on standard error at 1000 ms and progress on standard output at the given times.
fn error_and_progress(error: &[&str], progress: &[i64]) -> TerminationEvidence {
    let error: Vec<_> = error.iter().map(|line| (1000, (*line).to_owned())).collect();
    let steps: Vec<_> =
        progress.iter().zip(1..).map(|(at, step)| (*at, format!("step {step} loss 0.{step}"))).collect();
    TerminationEvidence {
        exit_code: Some(1),
        logs: vec![timed(Stream::Stdout, &steps), timed(Stream::Stderr, &error)],
        ..TerminationEvidence::new(LaunchKind::Train)
    }
}

const ABSENT: [&str; 4] = [
    "Traceback (most recent call last):",
    "  File \"t.py\", line 2, in <module>",
    "    try: open(\"/cache.bin\")",
    "FileNotFoundError: [Errno 2] No such file or directory: '/cache.bin'",
];

/// Proves that an error is not a cause if the other stream has progress clearly after it, and that it is one if the
/// progress came before it, at once with it, or as the output that the ending process had kept back; nor is a request
/// to stop, lost memory of a sibling or a lost loss outlived.
#[test]
fn an_error_that_the_run_outlived_is_no_cause() {
    let steady: Vec<i64> = (0..20).map(|step| 2000 + step * 50).collect();
    let before: Vec<i64> = (0..20).map(|step| step * 50).collect();
    let of = |error: &[&str], progress: &[i64]| classify(&error_and_progress(error, progress));
    let outlived = of(&ABSENT, &steady);
    assert_eq!((outlived.reason, outlived.confidence), (Reason::Unknown, Confidence::Guess), "{outlived:#?}");
    assert!(outlived.secondary.iter().any(|other| other.reason == Reason::DataError), "{outlived:#?}");
    for (progress, reason) in [
        (vec![1300, 2100], Reason::Unknown),
        (vec![1100, 1160, 1220, 1280, 1340], Reason::Unknown),
        (vec![1100, 1200], Reason::DataError),
        (before, Reason::DataError),
        (vec![3000; 20], Reason::DataError),
        (vec![], Reason::DataError),
    ] {
        assert_eq!(of(&ABSENT, &progress).reason, reason, "{progress:?}");
    }
    let rank = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB";
    let child = ["RuntimeError: CUDA out of memory. Tried to allocate 1 GiB", "ChildFailedError:"];
    for (error, reason) in [
        (&["KeyboardInterrupt"][..], Reason::Cancelled),
        (&[rank][..], Reason::DeviceOom),
        (&child[..], Reason::DeviceOom),
        (&["RuntimeError: loss is nan, training diverged"][..], Reason::NumericDivergence),
    ] {
        assert_eq!(of(error, &steady).reason, reason, "{error:?}");
    }
}

/// Proves that steps which the script recorded, and did not print, show that it outlived an error.
#[test]
fn recorded_steps_show_that_the_run_continued() {
    let mut evidence = error_and_progress(&ABSENT, &[]);
    for (millis, reason) in [(900, Reason::DataError), (1900, Reason::DataError), (2100, Reason::Unknown)] {
        evidence.progress.last_step_at = Some(Timestamp::from_micros(millis * 1000));
        assert_eq!(classify(&evidence).reason, reason, "{millis}");
    }
}

/// What `torch.multiprocessing.spawn` prints of a rank that raised.
fn spawned(error: &str) -> String {
    let package = "/v/lib/python3.11/site-packages/torch/multiprocessing/spawn.py";
    format!(
        "W1 00:00:00.000 7 torch/multiprocessing/spawn.py:169] Terminating process 16282 via signal SIGTERM\n\
         Traceback (most recent call last):\n  File \"/a/t.py\", line 7, in <module>\n    mp.spawn(f, nprocs=2)\n  \
         File \"{package}\", line 349, in spawn\n    return start_processes(fn, args)\n  \
         File \"{package}\", line 220, in join\n    raise ProcessRaisedException(msg, error_index, failed_process.pid)\n\
         torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n\
         Traceback (most recent call last):\n  File \"{package}\", line 89, in _wrap\n    fn(i, *args)\n  \
         File \"/a/t.py\", line 6, in f\n    step(s)\n{error}\n\n"
    )
}

/// Proves that the exception of a spawned rank is the cause, whatever its class, and not the launcher's report or its
/// ending of the siblings.
#[test]
fn the_exception_of_a_spawned_rank_is_the_cause() {
    for error in [
        "IndexError: expert 7 is out of range",
        "ValueError: no expert",
        "AssertionError",
        "__main__.Stalled: no answer of expert 7",
        "Stalled",
    ] {
        let verdict = classify(&ended(Some(1), None, &spawned(error)));
        assert_eq!(verdict.reason, Reason::CodeError, "{error}: {verdict:#?}");
        assert_eq!(verdict.evidence[0].text, error);
        assert!(!verdict.secondary.iter().any(|other| other.text.contains("Terminating")), "{verdict:#?}");
    }
    let memory = spawned("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB");
    assert_eq!(classify(&ended(Some(1), None, &memory)).reason, Reason::DeviceOom);
    let bare = "W1 t.py:169] Terminating process 16282 via signal SIGTERM\n";
    assert_eq!(classify(&ended(Some(1), None, bare)).reason, Reason::Unknown);
}

/// File, function and code of a frame.
type Frame = (&'static str, &'static str, &'static str);

/// A traceback with these frames and this end.
fn raised(frames: &[Frame], error: &str) -> String {
    let frames: String = frames
        .iter()
        .map(|(file, function, code)| format!("  File \"{file}\", line 2, in {function}\n    {code}\n"))
        .collect();
    format!("Traceback (most recent call last):\n{frames}{error}\n")
}

const JSON: &str = "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 12 (char 11)";
const DECODER: Frame =
    ("/u/lib/python3.11/json/decoder.py", "raw_decode", "obj, end = self.scan_once(s, idx)");
const NUMBER: &str = "ValueError: could not convert string to float: '0,1'";

/// Proves that settings which cannot be read, or are not there, are the code's matter, and so is a JSON file that may
/// be either; what a data set, a loader or a reader of rows rejects stays the data's.
#[test]
fn settings_are_not_the_data() {
    let user = |function, code| ("/a/train.py", function, code);
    let loader = ("/v/site-packages/torch/utils/data/_utils/fetch.py", "fetch", "data = [self.dataset[i]]");
    let tables = ("/v/site-packages/pandas/io/json/_json.py", "read_json", "return json_reader.read()");
    let absent = |path: &str| format!("FileNotFoundError: [Errno 2] No such file or directory: '{path}'");
    let yaml = "yaml.parser.ParserError: while parsing a block mapping";
    let rows: [(&[Frame], String, Reason); 20] = [
        (
            &[user("<module>", "lr = json.load(open(\"config.json\"))[\"lr\"]"), DECODER],
            JSON.into(),
            Reason::CodeError,
        ),
        (
            &[user("main", "cfg = parse_config(path)"), user("parse_config", "return json.load(f)"), DECODER],
            JSON.into(),
            Reason::CodeError,
        ),
        (&[user("main", "words = json.load(f)"), DECODER], JSON.into(), Reason::CodeError),
        (&[user("__getitem__", "return json.load(f)"), DECODER], JSON.into(), Reason::DataError),
        (
            &[user("main", "for batch in loader:"), loader, user("get", "json.load(f)"), DECODER],
            JSON.into(),
            Reason::DataError,
        ),
        (&[user("main", "rows = [json.loads(line) for line in f]"), DECODER], JSON.into(), Reason::DataError),
        (&[user("load_dataset", "d = json.load(f)"), DECODER], JSON.into(), Reason::DataError),
        (
            &[user("main", "d = json.load(open(\"data/train.json\"))"), DECODER],
            JSON.into(),
            Reason::DataError,
        ),
        (&[user("main", "d = pd.read_json(path)"), tables], JSON.into(), Reason::DataError),
        (&[], JSON.into(), Reason::DataError),
        (&[user("main", "init = json.load(open(\"init.json\"))")], absent("init.json"), Reason::CodeError),
        (&[user("main", "c = load(path)")], absent("/a/train_config.json"), Reason::CodeError),
        (&[user("main", "d = json.load(open(path))")], absent("/d/train.json"), Reason::DataError),
        (&[user("main", "d = load(path)")], absent("/d/annotations/x.json"), Reason::DataError),
        (&[user("main", "lr = float(cfg[\"lr\"])")], NUMBER.into(), Reason::CodeError),
        (&[user("main", "lr = float(args.lr)")], NUMBER.into(), Reason::CodeError),
        (&[user("main", "x = float(parts[3])")], NUMBER.into(), Reason::DataError),
        (&[user("main", "x = data[args.column].astype(float)")], NUMBER.into(), Reason::DataError),
        (
            &[
                user("main", "c = yaml.safe_load(f)"),
                ("/v/site-packages/yaml/parser.py", "parse_node", "raise"),
            ],
            yaml.into(),
            Reason::CodeError,
        ),
        (
            &[
                user("main", "c = tomllib.load(f)"),
                ("/u/lib/python3.11/tomllib/_parser.py", "parse_value", "raise"),
            ],
            "tomllib.TOMLDecodeError: Invalid value (at line 2, column 6)".into(),
            Reason::CodeError,
        ),
    ];
    for (frames, error, reason) in rows {
        let verdict = classify(&ended(Some(1), None, &raised(frames, &error)));
        assert_eq!(verdict.reason, reason, "{frames:?} {error}: {verdict:#?}");
    }
    let config = raised(&[user("<module>", "json.load(open(\"config.json\"))"), DECODER], JSON);
    assert_eq!(classify(&ended(Some(1), None, &config)).confidence, Confidence::Likely);
}

/// Proves that the last line of standard error is the evidence of an exit that nothing else explains, and that bars, progress, warnings and
/// what the script printed on are none.
#[test]
fn the_last_words_of_a_script_are_evidence() {
    let message = "vocabulary has 0 entries: check tokenizer.json";
    let first = |evidence: &TerminationEvidence| {
        let verdict = classify(evidence);
        assert_eq!(
            (verdict.reason, verdict.confidence),
            (Reason::Unknown, Confidence::Guess),
            "{verdict:#?}"
        );
        (verdict.rule.as_str(), verdict.evidence.first().map(|item| item.text.clone()).unwrap_or_default())
    };
    let log = format!("loading\n{message}\n\n");
    assert_eq!(first(&ended(Some(1), None, &log)), ("log.last_words", message.into()));
    assert_eq!(first(&ended(Some(3), None, &log)).1, message);
    assert_eq!(first(&ended(Some(137), None, &log)).0, "process.killed_from_outside");
    assert_eq!(first(&of_log(&log)).0, "unknown.no_evidence");
    for other in [
        "step 3 loss 0.1",
        " 50%|#####     | 5/10 [00:01<00:01, 4.9it/s]",
        "/a/t.py:3: UserWarning: the old form of it is deprecated",
        "  warnings.warn(the old form of it)",
        "2026-01-01 00:00:00 INFO the model has 3 layers",
        "wandb: Synced 5 files",
        "3",
    ] {
        assert_eq!(
            first(&ended(Some(1), None, &format!("{message}\n{other}\n"))).0,
            "unknown.no_evidence",
            "{other}"
        );
    }
    let before = error_and_progress(&[message], &[100, 200]);
    assert_eq!(first(&before).1, message);
    assert_eq!(first(&error_and_progress(&[message], &[1100, 1200])).0, "unknown.no_evidence");
}

/// Proves that a worker which is gone is not said to have run out of memory, unless a signal or a warning says so.
#[test]
fn a_worker_that_is_gone_is_no_lack_of_memory() {
    let gone = "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the \
                future was running or pending.\n";
    let warned = format!("tcmalloc: large alloc 9663676416 bytes\n{gone}");
    let killed = format!("worker 3: exit code 137\n{gone}");
    let rows = [
        (ended(Some(1), None, gone), Reason::Unknown),
        (ended(Some(137), None, gone), Reason::HostOom),
        (ended(None, Some(9), gone), Reason::HostOom),
        (ended(Some(1), None, &warned), Reason::HostOom),
        (ended(Some(1), None, &killed), Reason::HostOom),
        (TerminationEvidence { oom_kill_delta: Some(1), ..ended(Some(1), None, gone) }, Reason::HostOom),
    ];
    for (evidence, reason) in rows {
        let verdict = classify(&evidence);
        assert_eq!(verdict.reason, reason, "{verdict:#?}");
        assert!(reason == Reason::Unknown || !verdict.evidence.is_empty());
    }
    let alone = classify(&ended(Some(1), None, gone));
    assert!(alone.evidence[0].text.contains("BrokenProcessPool") && alone.secondary.is_empty(), "{alone:#?}");
}

/// Proves that a time that ran out is the network's only where something of a network is named.
#[test]
fn a_timeout_is_not_the_networks_by_itself() {
    for (error, reason) in [
        ("TimeoutError: worker 3 did not answer", Reason::CodeError),
        ("concurrent.futures._base.TimeoutError", Reason::CodeError),
        ("TimeoutError: no batch within 30 s", Reason::CodeError),
        ("TimeoutError: timed out", Reason::NetworkError),
        ("TimeoutError: The read operation timed out", Reason::NetworkError),
        ("TimeoutError: [Errno 110] Connection timed out", Reason::NetworkError),
        ("TimeoutError: http://10.0.0.1:80 did not answer", Reason::NetworkError),
        ("socket.timeout: timed out", Reason::NetworkError),
        ("aiohttp.client_exceptions.ServerTimeoutError: x", Reason::NetworkError),
        ("urllib3.exceptions.ReadTimeoutError: x", Reason::NetworkError),
    ] {
        let log =
            format!("Traceback (most recent call last):\n  File \"t.py\", line 2, in <module>\n{error}\n");
        let verdict = classify(&ended(Some(1), None, &log));
        assert_eq!(verdict.reason, reason, "{error}: {verdict:#?}");
    }
}
