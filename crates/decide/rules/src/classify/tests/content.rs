//! Proofs of what the content of data is blamed for, behind other exceptions and where the end of a log is missing, and
//! of what an evaluation is.

use super::by_hand::raised;
use super::ended;
use crate::classify::*;

/// A frame: its path, its function and its code.
type Frame<'a> = (&'a str, &'a str, &'a str);

const HEADER: &str = "Traceback (most recent call last):\n";
const LOADER: Frame<'_> =
    ("/v/site-packages/torch/utils/data/_utils/fetch.py", "fetch", "data = self.dataset[i]");
const MAIN: Frame<'_> = ("t.py", "<module>", "for batch in loader:");

/// A traceback without the line of its exception.
fn torn(frames: &[Frame<'_>]) -> String {
    let shown = |(path, function, code): &Frame<'_>| {
        format!("  File \"{path}\", line 7, in {function}\n    {code}\n")
    };
    HEADER.to_owned() + &frames.iter().map(shown).collect::<String>()
}

fn thrown(frames: &[Frame<'_>], error: &str) -> String {
    format!("{}{error}\n", torn(frames))
}

fn reads(log: &str) -> Reason {
    classify(&ended(Some(1), None, log)).reason
}

/// Proves that what a library which decodes data raises is of the data, whatever its class and also where its line is
/// missing; and that arguments of a wrong type, code of the user that the library calls, and a checkpoint are not.
#[test]
fn a_decoder_rejects_what_it_is_given() {
    let picture = ("/v/site-packages/PIL/ImageFile.py", "load", "n, err = decoder.decode(b)");
    let table = ("/v/site-packages/pandas/io/json/_json.py", "_parse", "self.obj = DataFrame(rows)");
    let frame = ("/v/site-packages/pandas/core/frame.py", "__init__", "mgr = dict_to_mgr(data)");
    let notes = ("/v/site-packages/pycocotools/coco.py", "createIndex", "anns[ann['id']] = ann");
    let compiled = ("pandas/_libs/parsers.pyx", "pandas._libs.parsers.TextReader.read", "");
    let own = ("t.py", "to_number", "return TABLE[cell]");
    let archive = ("/usr/lib/python3.11/zipfile.py", "_RealGetContents", "raise it");
    let weights = ("/v/site-packages/torch/serialization.py", "load", "with zipfile.ZipFile(f) as z:");
    let rows: [(&[Frame<'_>], &str, Reason); 9] = [
        (&[MAIN, picture], "ValueError: a tile is outside of the picture", Reason::DataError),
        (&[MAIN, picture], "SyntaxError: no chunk of that name", Reason::DataError),
        (&[MAIN, table, frame], "ValueError: the columns have 3 and 4 rows", Reason::DataError),
        (&[MAIN, notes], "KeyError: 'id'", Reason::DataError),
        (&[MAIN, compiled], "ValueError: 7 is odd", Reason::DataError),
        (&[MAIN, picture], "TypeError: a path is a str, not a list", Reason::CodeError),
        (&[MAIN, picture], "MemoryError", Reason::HostOom),
        (&[MAIN, table, own], "KeyError: 'x'", Reason::CodeError),
        (
            &[("t.py", "main", "torch.load(path)"), weights, archive],
            "ValueError: odd",
            Reason::CheckpointError,
        ),
    ];
    for (frames, error, reason) in rows {
        assert_eq!(reads(&thrown(frames, error)), reason, "{frames:?} {error}");
    }
    for frames in [&[MAIN, picture][..], &[MAIN, table, frame], &[MAIN, notes]] {
        assert_eq!(reads(&torn(frames)), Reason::DataError, "{frames:?}");
    }
    assert_eq!(reads(&torn(&[MAIN, table, own])), Reason::CodeError);
}

/// Proves that a class or a token that is not there is of the data, and a wrong type of them is not; and that a torn
/// line and a torn request are read as far as they go.
#[test]
fn the_end_of_a_log_may_be_missing() {
    let loss = [
        ("t.py", "train", "loss = criterion(x, y)"),
        (
            "/v/site-packages/torch/nn/functional.py",
            "cross_entropy",
            "return torch._C._nn.cross_entropy_loss(x, y)",
        ),
    ];
    assert_eq!(reads(&thrown(&loss, "IndexError: Targ")), Reason::DataError);
    assert_eq!(reads(&torn(&loss)), Reason::DataError);
    assert_eq!(reads(&thrown(&loss, "RuntimeError: a Float where a Long belongs")), Reason::CodeError);
    let request = ("/v/site-packages/requests/adapters.py", "send", "resp = conn.urlopen(url)");
    assert_eq!(reads(&torn(&[MAIN, request])), Reason::NetworkError);
    assert_eq!(reads(&thrown(&[MAIN], "Keyboard")), Reason::Cancelled);
    assert_eq!(reads(&thrown(&[MAIN], "torch.OutOfMem")), Reason::DeviceOom);
}

/// Proves what a traceback without its last lines says: the exception that a package raises in its last statement, a
/// sample that was being read after others, an empty data set that a loader draws from, a request of what loads
/// weights, and a worker whose end the handler of a loader heard of; but not what code of the user says.
#[test]
fn the_last_statement_says_what_is_missing() {
    let steps = "step 1 loss 0.5\nstep 2 loss 0.4\n";
    let installed = |file, function, code| (file, function, code);
    let labels = "raise ValueError(f'labels must be below {count}')";
    let lost = "raise FloatingPointError(";
    let reader = "/v/site-packages/reader/check.py";
    let sampler = "sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]";
    let draw = installed("/v/site-packages/torch/utils/data/dataloader.py", "__init__", sampler);
    let hub = installed("/v/site-packages/torch/hub.py", "load_state_dict_from_url", "download(url)");
    let fetch = installed("/usr/lib/python3.11/urllib/request.py", "http_open", "return self.do_open(r)");
    let signal = "/v/site-packages/torch/utils/data/_utils/signal_handling.py";
    let sample = ("ds.py", "__getitem__", "return self.rows[i][3]");
    let rows: [(&str, &[Frame<'_>], Reason); 9] = [
        ("", &[MAIN, installed(reader, "check", labels)], Reason::DataError),
        ("", &[MAIN, ("t.py", "check", labels)], Reason::CodeError),
        ("", &[MAIN, installed(reader, "check", lost)], Reason::NumericDivergence),
        (
            "",
            &[MAIN, installed(reader, "check", "raise TypeError('labels must be a list')")],
            Reason::CodeError,
        ),
        ("", &[MAIN, draw], Reason::DataError),
        ("", &[MAIN, hub, fetch], Reason::NetworkError),
        (steps, &[MAIN, LOADER, sample], Reason::DataError),
        ("", &[MAIN, LOADER, sample], Reason::CodeError),
        (steps, &[MAIN, installed(signal, "handler", "_error_if_any_worker_fails()")], Reason::HostOom),
    ];
    for (before, frames, reason) in rows {
        assert_eq!(reads(&format!("{before}{}", torn(frames))), reason, "{frames:?}");
    }
    assert_eq!(reads(&thrown(&[MAIN, draw], "ValueError: num_samples should be a posi")), Reason::DataError);
}

/// Proves that a log which ends within the line of its exception is read as far as the line goes: by the first letters
/// of a class or of a module, behind a rank too, and by the first words of a message.
#[test]
fn the_line_of_an_exception_may_be_cut() {
    for (said, reason) in [
        ("Memor", Reason::HostOom),
        ("requests.exceptions.Conne", Reason::NetworkError),
        ("torch.distributed.elastic.rende", Reason::NetworkError),
        ("pandas.errors.Parse", Reason::DataError),
        ("queue.Empty", Reason::CodeError),
        ("RuntimeError: Memory", Reason::CodeError),
        ("RuntimeError: CUDA error: uncorrectable N", Reason::NodeFailure),
        ("jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: TPU compile error. Ran", Reason::DeviceOom),
    ] {
        let log = format!("{}{said}", torn(&[MAIN]));
        assert_eq!(reads(&log), reason, "{log}");
        let of_rank: Vec<_> = log.lines().map(|line| format!("[rank1]: {line}")).collect();
        assert_eq!(reads(&of_rank.join("\n")), reason, "{of_rank:?}");
    }
}

/// Proves that a worker's exception decides behind the one that raises it again, in both forms of it, also where its own line is missing.
#[test]
fn a_worker_is_behind_the_exception_of_its_loader() {
    let worker = [
        ("/v/site-packages/torch/utils/data/_utils/worker.py", "_worker_loop", "data = fetcher.fetch(index)"),
        ("ds.py", "__getitem__", "return Image.open(self.paths[i]).convert('L')"),
        ("/v/site-packages/PIL/ImageFile.py", "load", "n, err = decoder.decode(b)"),
    ];
    for again in ["OSError: Caught OSError in DataLoader worker process 3.\nOriginal ", "OSError: "] {
        let log = thrown(&[MAIN, LOADER], &format!("{again}{}", torn(&worker)));
        assert_eq!(reads(&log), Reason::DataError, "{log}");
        assert_eq!(reads(&format!("{log}OSError: 7 of 9 bytes are there\n")), Reason::DataError, "{log}");
    }
}

/// Proves that a sample which fails after others did not is of the data and one that fails at once is not, however long
/// the traceback is; and that a picture which a reader did not give is of the data.
#[test]
fn one_sample_stops_a_training_that_worked() {
    let sample = [MAIN, LOADER, ("ds.py", "__getitem__", "return self.rows[i][3]")];
    let of = |before: &str, error: &str| reads(&format!("{before}{}", thrown(&sample, error)));
    let steps = "step 1 loss 0.5\nstep 2 loss 0.4\n";
    assert_eq!(of(steps, "IndexError: list index out of range"), Reason::DataError);
    assert_eq!(of("loading\n", "IndexError: list index out of range"), Reason::CodeError);
    assert_eq!(of(steps, "NameError: name 'i' is not defined"), Reason::CodeError);
    let values = "    └ <object>\n".repeat(9);
    let long =
        torn(&[MAIN, LOADER, LOADER, LOADER, LOADER]).replace("    data", &format!("{values}    data"));
    let long =
        format!("{steps}{long}  File \"ds.py\", line 3, in __getitem__\n    return rows[i]\nKeyError: 'x'\n");
    assert_eq!(reads(&long), Reason::DataError, "{long}");
    let nothing = "AttributeError: 'NoneType' object has no attribute 'shape'";
    for (code, error, reason) in [
        ("h, w = image.shape[:2]", nothing, Reason::DataError),
        ("h, w = layer.shape[:2]", nothing, Reason::CodeError),
        (
            "h, w = image.shape[:2]",
            "AttributeError: 'list' object has no attribute 'shape'",
            Reason::CodeError,
        ),
        ("assert img is not None", "AssertionError", Reason::DataError),
        ("assert cfg is not None", "AssertionError", Reason::CodeError),
    ] {
        assert_eq!(reads(&raised(code, error)), reason, "{code} {error}");
    }
}

/// Proves that what a data set could not be made for decides, and that it is the data's matter where nothing else is known.
#[test]
fn a_data_set_that_was_not_made_has_a_cause() {
    let wrapped =
        "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset\n";
    let joined = "\nThe above exception was the direct cause of the following exception:\n\n";
    for (cause, reason) in [
        ("OSError: [Errno 28] No space left on device", Reason::StorageError),
        ("NameError: name 'rwo' is not defined", Reason::CodeError),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: a comma is missing in row 4", Reason::DataError),
    ] {
        let log = format!("{}{joined}{}{wrapped}", thrown(&[MAIN], cause), torn(&[MAIN]));
        assert_eq!(reads(&log), reason, "{log}");
    }
    assert_eq!(reads(wrapped), Reason::DataError);
}

/// Proves that an evaluation is one by frames and calls in code of the user, or by a program that evaluates: not by a
/// library of metrics or of annotations, nor by a trainer's function; and that unreadable data of it are data.
#[test]
fn an_evaluation_is_one_in_code_of_the_user() {
    let metric = ("/v/site-packages/torchmetrics/metric.py", "forward", "self.update(*args)");
    let trainer = ("/v/site-packages/transformers/trainer.py", "evaluation_loop", "x = nested_concat(x, y)");
    let picture = ("/v/site-packages/PIL/ImageFile.py", "load", "n, err = decoder.decode(b)");
    let in_user = |function, code| ("t.py", function, code);
    let rows: [(&[Frame<'_>], &str, Reason); 7] = [
        (&[in_user("training_step", "self.acc(x, y)"), metric], "ValueError: odd", Reason::CodeError),
        (&[in_user("main", "trainer.train()"), trainer], "ValueError: odd", Reason::CodeError),
        (&[in_user("main", "trainer.evaluate()"), trainer], "ValueError: odd", Reason::EvaluatorError),
        (
            &[in_user("main", "trainer.train()"), trainer, in_user("compute_metrics", "f(p)")],
            "ValueError: odd",
            Reason::EvaluatorError,
        ),
        (
            &[("/x/lm_eval/evaluator.py", "simple_evaluate", "t = f()")],
            "KeyError: 'doc'",
            Reason::EvaluatorError,
        ),
        (
            &[("/v/site-packages/lm_eval/tasks/__init__.py", "load", "t = f()")],
            "KeyError: 'doc'",
            Reason::EvaluatorError,
        ),
        (
            &[in_user("evaluate", "for x in loader:"), picture],
            "OSError: image file is truncated (7 bytes not processed)",
            Reason::DataError,
        ),
    ];
    for (frames, error, reason) in rows {
        assert_eq!(reads(&thrown(frames, error)), reason, "{frames:?} {error}");
    }
}

/// Proves that what Python prints of an exception that it could not raise names no cause: a pipe between processes of
/// one machine was closed.
#[test]
fn an_object_that_python_describes_is_no_cause() {
    let dumped = "object refcount : 3\nobject type name: ConnectionResetError\nobject repr     : ConnectionResetError(104, 'Connection reset by peer')\n";
    assert_ne!(reads(dumped), Reason::NetworkError);
    let killed = "RuntimeError: DataLoader worker (pid 2164) is killed by signal: Killed.\n";
    assert_eq!(reads(&format!("{dumped}{}", thrown(&[MAIN], killed.trim_end()))), Reason::HostOom);
}

/// Proves what the last statement of a traceback does where the line of its exception is missing: it writes a file,
/// waits, checks numbers, meets other ranks, reads data or a checkpoint, judges, or allocates; after steps, an
/// operation of a device lacks memory; any other says nothing.
#[test]
fn the_last_statement_says_what_it_does() {
    let steps = "step 1 loss 0.5\nstep 2 loss 0.4\n";
    let torch = |file: &str| format!("/v/site-packages/torch/{file}");
    let (serialization, autograd) = (torch("serialization.py"), torch("autograd/graph.py"));
    let (collectives, values) =
        (torch("distributed/distributed_c10d.py"), torch("distributions/distribution.py"));
    let meeting = torch("distributed/elastic/rendezvous/dynamic_rendezvous.py");
    let backward = (&*autograd, "_engine_run_backward", "return engine.run_backward(t)");
    let rows: [(&str, Frame<'_>, Reason); 17] = [
        (
            "",
            (&serialization, "_save", "zip_file.write_record(name, storage, num_bytes)"),
            Reason::StorageError,
        ),
        ("", ("t.py", "save", "os.makedirs(out)"), Reason::StorageError),
        ("", ("t.py", "save", "with open(path, 'wb') as f:"), Reason::StorageError),
        ("", ("t.py", "load", "with open(path, 'rb') as f:"), Reason::CodeError),
        ("", ("t.py", "watch", "time.sleep(60)"), Reason::Cancelled),
        ("", ("/v/train_loop.py", "_detect_anomaly", "raise FloatingPointError("), Reason::NumericDivergence),
        ("", (&values, "__init__", "raise ValueError("), Reason::NumericDivergence),
        ("", (&collectives, "barrier", "work.wait()"), Reason::Hang),
        ("", (&meeting, "_create", "store = f()"), Reason::NetworkError),
        ("", ("t.py", "main", "table = df[columns]"), Reason::CodeError),
        (
            "",
            ("/v/site-packages/pandas/core/frame.py", "__getitem__", "raise_missing=True)"),
            Reason::SchemaDrift,
        ),
        ("", ("t.py", "rows", "picture = Image.open(path)"), Reason::DataError),
        ("", ("t.py", "main", "self._load_from_checkpoint(path)"), Reason::CheckpointError),
        ("", ("t.py", "main", "win_rate = judge.compare(a, b)"), Reason::EvaluatorError),
        ("", (&autograd, "f", "buffer = torch.empty(shape, device=device)"), Reason::DeviceOom),
        (steps, backward, Reason::DeviceOom),
        ("", backward, Reason::CodeError),
    ];
    for (before, frame, reason) in rows {
        let log = format!("{before}{}", torn(&[MAIN, frame]));
        let verdict = classify(&ended(Some(1), None, &log));
        assert_eq!((verdict.reason, verdict.confidence), (reason, Confidence::Guess), "{log}");
    }
    let named = |code| reads(&torn(&[MAIN, ("t.py", "f", code)]));
    assert_eq!(named("raise ConnectionError(host)"), Reason::NetworkError);
    assert_eq!(named("raise RuntimeError('disk quota exceeded')"), Reason::CodeError);
    assert_eq!(named("raise RuntimeError(f'the loss is nan at step {step}')"), Reason::NumericDivergence);
    assert_eq!(named("raise StepTimeoutError(3)"), Reason::CodeError);
    let loader = |code| reads(&torn(&[MAIN, (&*torch("utils/data/dataloader.py"), "_try_get_data", code)]));
    assert_eq!(
        loader("raise RuntimeError(f'DataLoader timed out after {self._timeout} seconds')"),
        Reason::Hang
    );
    let gone = "raise RuntimeError(f'DataLoader worker (pid(s) {pids_str}) exited unexpectedly') from e";
    assert_eq!(loader(gone), Reason::Unknown);
    assert_eq!(loader("gotit = waiter.acquire(True, timeout)"), Reason::Unknown);
}

/// Proves that one frame with its code is a traceback, in the forms of Python, of IPython and of Rich, and that a frame
/// without code is not.
#[test]
fn a_frame_may_be_all_that_is_left() {
    let request = "/v/lib/python3.11/site-packages/requests/adapters.py";
    for log in [
        format!("  File \"{request}\", line 7, in send\n    resp = conn.urlopen(url)\n"),
        format!("File {request}:7, in send(self)\n    6 x = 1\n--> 7 conn.urlopen(url)\n"),
        format!("╭──── Traceback (most recent call last) ────╮\n│ {request}:7 in        │\n│ send │\n"),
    ] {
        assert_eq!(reads(&log), Reason::NetworkError, "{log}");
    }
    let rich =
        "╭──── Traceback (most recent call last) ────╮\n│ /a/t.py:7 in main │\n│    6 │   for i in rows: │\n";
    let pointed =
        format!("{rich}{}│ ❱  7 │   os.makedirs(out) │\n│    8 │   x = 1 │\n", "│    - │ │\n".repeat(4));
    assert_eq!(reads(&pointed), Reason::StorageError);
    let on_windows = "╭──── Traceback (most recent call last) ────╮\n│ C:\\a\\t.py:7 in main │\n│ ❱  7 │   os.makedirs(out) │\n";
    assert_eq!(reads(on_windows), Reason::StorageError);
    let alone = format!("  File \"{request}\", line 7, in send\n");
    assert_eq!(classify(&ended(None, None, &alone)).reason, Reason::Unknown);
}

/// Proves that what the worker of a loader read is of the data where only its class is left, and that a mistake of code in it is not.
#[test]
fn the_class_of_a_workers_exception_says_what_it_read() {
    for (class, reason) in [
        ("OSError", Reason::DataError),
        ("EOFError", Reason::DataError),
        ("TypeError", Reason::CodeError),
        ("RuntimeError", Reason::CodeError),
    ] {
        let log = format!("{class}: Caught {class} in DataLoader worker process 3.\nOriginal {HEADER}");
        assert_eq!(reads(&thrown(&[MAIN, LOADER], &log)), reason, "{class}");
    }
}

/// Proves that a traceback without its end outweighs an interrupt that another program only reports before it, if its frames say something.
#[test]
fn a_torn_traceback_after_a_reported_interrupt_decides() {
    let reported = "gpu_monitor: KeyboardInterrupt received, monitor stops\n";
    let table = ("/v/site-packages/pyarrow/parquet/core.py", "read_table", "dataset.read()");
    assert_eq!(reads(&format!("{reported}{}", torn(&[MAIN, table]))), Reason::DataError);
    assert_eq!(reads(&format!("{reported}{}", torn(&[MAIN]))), Reason::Cancelled);
    assert_eq!(reads(&format!("{}KeyboardInterrupt\n", torn(&[MAIN, table]))), Reason::Cancelled);
}
