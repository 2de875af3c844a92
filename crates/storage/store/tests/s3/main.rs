//! The remote backend against real S3 servers over sockets, sound and misbehaving.

#![allow(clippy::disallowed_methods, reason = "it deletes what it made")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

mod server;

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use trackway_core::{ManualClock, Rng as _, SequentialIds, SplitMix64};
use trackway_store::testing::{Answers, conformance};
use trackway_store::{
    Backend, Created, ErrorKind, Outcome, RealDisk, RemoteBackend, RemoteOptions, Secret, SelfTest,
    StoreError, TransferObserver, selftest,
};

use server::{Conditions, Fault, Moto, Server};

fn test_of(backend: &dyn Backend) -> SelfTest {
    selftest(backend, &ManualClock::default(), &SequentialIds::default())
}

fn holds_everything(test: &SelfTest) {
    assert!(test.primitives.iter().all(|primitive| primitive.outcome == Outcome::Holds), "{test:#?}");
    test.verdict().unwrap();
}

fn refused_for(test: &SelfTest, name: &str) {
    let found = test.primitives.iter().find(|primitive| primitive.name == name).unwrap();
    assert!(matches!(found.outcome, Outcome::Fails { .. }), "{test:#?}");
    let refusal = test.verdict().unwrap_err();
    assert_eq!(refusal.kind(), ErrorKind::Unsupported, "{refusal}");
    println!("refused: {refusal}");
}

/// An S3 server that does what it should passes the conformance suite and the self-test.
#[test]
fn sound_server_conforms() {
    let server = Server::sound(Conditions::Serialised);
    conformance(&mut |name| Arc::new(server.backend(name)), Answers::Reliable);
    holds_everything(&test_of(&server.backend("tested")));
}

/// moto's server does so too.
#[test]
fn moto_conforms() {
    let Some(moto) = Moto::start() else {
        trackway_skip::skip!("TRACKWAY_TEST_MOTO does not name moto_server");
        return;
    };
    holds_everything(&test_of(&moto.backend("tested")));
    conformance(&mut |name| Arc::new(moto.backend(name)), Answers::Reliable);
    up_and_down(&moto.backend("files"), 20 << 20).unwrap();
}

/// Errors before and after the deed, conflicts, resets, cut and late answers, at random: the log keeps its promises.
#[test]
fn misbehaving_server_conforms() {
    for seed in 0..2 {
        let server = Server::start(
            Conditions::Serialised,
            Box::new(move |request, method| {
                let mut rng = SplitMix64::new(seed << 32 | request);
                // One in ten requests fails; a late answer costs the whole time-out, so there are few.
                let fault = match rng.next_u64() % 400 {
                    0..=7 => Fault::ErrorBefore,
                    8..=15 => Fault::ErrorAfter,
                    16..=19 => Fault::SlowDown,
                    20..=25 => Fault::ResetBefore,
                    26..=31 => Fault::ResetAfter,
                    32..=37 => Fault::Truncated,
                    38..=39 if *method == Method::PUT => Fault::Late(Duration::from_secs(1)),
                    40..=60 if *method == Method::PUT => Fault::Conflict,
                    _ => return None,
                };
                Some(fault)
            }),
        );
        let options = RemoteOptions { request_timeout: Duration::from_millis(700), ..server.options() };
        conformance(&mut |name| Arc::new(server.backend_with(name, &options)), Answers::Faulty);
        println!("seed {seed}: {} requests failed", server.struck());
        assert!(server.struck() > 100, "{}", server.struck());
    }
}

/// Proves that a storage that looks first and writes then, one that ignores the condition, and one that does not know
/// it are refused, each with its reason.
#[test]
fn selftest_refuses_what_has_no_conditional_create() {
    let racing = Server::sound(Conditions::Racing);
    refused_for(&test_of(&racing.backend("tested")), "racing_creates");
    let ignoring = Server::sound(Conditions::Ignored);
    refused_for(&test_of(&ignoring.backend("tested")), "create_if_absent");
    let ignorant = Server::sound(Conditions::NotImplemented);
    refused_for(&test_of(&ignorant.backend("tested")), "read_after_create");
}

/// Proves that a create is settled whatever happens to its first answer: the entry is there once, and its writer knows.
#[test]
fn lost_answers_to_a_create_are_settled() {
    let faults = [
        (Fault::ErrorBefore, Ok(Created::New)),
        (Fault::ErrorAfter, Ok(Created::Exists)),
        (Fault::SlowDown, Ok(Created::New)),
        (Fault::Conflict, Ok(Created::New)),
        (Fault::ResetBefore, Err(ErrorKind::Unavailable)),
        (Fault::ResetAfter, Err(ErrorKind::Unavailable)),
        (Fault::Late(Duration::from_secs(3)), Err(ErrorKind::Unavailable)),
    ];
    for (fault, expected) in faults {
        let plan = move |request, _: &Method| (request == 0).then_some(fault);
        let server = Server::start(Conditions::Serialised, Box::new(plan));
        let backend = server.backend("once");
        let created = backend.create("name", b"mine").map_err(|error| {
            println!("{fault:?}: {error}");
            error.kind()
        });
        assert_eq!(created, expected, "{fault:?}");
        let again = backend.create("name", b"mine").unwrap();
        let done = !matches!(fault, Fault::ResetBefore);
        assert_eq!(again, if done { Created::Exists } else { Created::New }, "{fault:?}");
        assert_eq!(backend.read("name", 100).unwrap().as_deref(), Some(&b"mine"[..]));
    }
}

/// Proves that repeated answers of 409 are waited out for a while, and then reported as "exists", which the log reads
/// back.
#[test]
fn conflicts_are_waited_out() {
    let storm = |length| {
        let puts = AtomicU64::new(0);
        let plan = move |_, method: &Method| {
            let put = *method == Method::PUT && puts.fetch_add(1, Ordering::SeqCst) < length;
            put.then_some(Fault::Conflict)
        };
        Server::start(Conditions::Serialised, Box::new(plan))
    };
    let server = storm(5);
    assert_eq!(server.backend("storm").create("name", b"mine").unwrap(), Created::New);
    let endless = storm(u64::MAX);
    assert_eq!(endless.backend("storm").create("name", b"mine").unwrap(), Created::Exists);
    assert_eq!(endless.backend("storm").read("name", 10).unwrap(), None);
}

/// Wrong credentials and a missing bucket are refusals, never an empty log; no message holds a secret.
#[test]
fn refusals_are_no_absence() {
    let server = Server::sound(Conditions::Serialised);
    let secret = ("aws_secret_access_key".to_owned(), Secret("HUSHHUSH".into()));
    let mut options = server.options();
    options.settings.extend([secret, ("aws_session_token".to_owned(), Secret("HUSHTOKEN".into()))]);
    let intruder = RemoteBackend::new("s3://runs/x", &options).unwrap();
    let elsewhere = RemoteBackend::new("s3://no-such-bucket/x", &server.options()).unwrap();
    for backend in [intruder, elsewhere] {
        let errors = [
            backend.read("log/00000001.json", 10).unwrap_err(),
            backend.create("log/00000001.json", b"1").unwrap_err(),
            backend.replace("log/hint.json", b"1").unwrap_err(),
            up_and_down(&backend, 100).unwrap_err(),
        ];
        for error in errors {
            println!("{error}");
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(!error.to_string().contains("HUSH"), "{error}");
        }
    }
}

/// A server that is not there is "unavailable", within bounds.
#[test]
fn no_server_answers() {
    let options =
        RemoteOptions { retry_time: Duration::from_millis(100), ..server::options("http://127.0.0.1:9") };
    let backend = RemoteBackend::new("s3://runs/x", &options).unwrap();
    let error = backend.read("name", 10).unwrap_err();
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// Bytes that differ everywhere, so that parts in a wrong order are seen.
fn write_file(path: &Path, size_bytes: usize) -> blake3::Hash {
    let mut rng = SplitMix64::new(size_bytes as u64);
    let bytes: Vec<u8> = (0..size_bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    std::fs::write(path, &bytes[..size_bytes]).unwrap();
    blake3::hash(&bytes[..size_bytes])
}

/// Uploads a file and downloads it again, and checks all that can be seen of both.
fn up_and_down(backend: &RemoteBackend, size_bytes: usize) -> Result<(), StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let expected = write_file(&from, size_bytes);
    let size = size_bytes as u64;
    let transfer = backend.transfer();
    for direction in ["up", "down"] {
        let (mut hasher, reported) = (blake3::Hasher::new(), Cell::new((0, 0)));
        let mut watch = TransferObserver {
            progress: &mut |done, all| reported.set((done, all)),
            bytes: &mut |bytes| {
                hasher.update(bytes);
            },
            cancelled: &AtomicBool::new(false),
        };
        match direction {
            "up" => assert_eq!(transfer.upload(&RealDisk, &from, "file", &mut watch)?, size),
            _ => transfer.download_file("file", size, &RealDisk, &to, &mut watch)?,
        }
        assert_eq!(hasher.finalize(), expected, "{direction}: the bytes were shown in order");
        assert_eq!(
            reported.get(),
            if size == 0 && direction == "down" { (0, 0) } else { (size, size) },
            "{direction}"
        );
    }
    assert_eq!(blake3::hash(&std::fs::read(&to).unwrap()), expected);
    assert_eq!(transfer.head("file")?.map(|head| head.size_bytes), Some(size));
    Ok(())
}

fn quiet<'a>(
    cancelled: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64, u64),
    bytes: &'a mut dyn FnMut(&[u8]),
) -> TransferObserver<'a> {
    TransferObserver { progress, bytes, cancelled }
}

/// Files of every number of parts go up and come down whole.
#[test]
fn files_go_up_and_down() {
    let server = Server::sound(Conditions::Serialised);
    for size_bytes in [0, 1, 5 << 20, (5 << 20) + 1, 22_000_000] {
        up_and_down(&server.backend(&format!("size-{size_bytes}")), size_bytes).unwrap();
    }
}

/// Parts whose requests fail are sent again: some files arrive all the same, each whole, and the others are errors.
#[test]
fn files_go_up_and_down_in_bad_weather() {
    let mut whole = 0;
    for seed in 0..4 {
        let plan = move |request, _: &Method| {
            let faults = [
                Fault::ErrorBefore,
                Fault::ErrorAfter,
                Fault::SlowDown,
                Fault::ResetBefore,
                Fault::ResetAfter,
                Fault::Truncated,
            ];
            let draw = SplitMix64::new(seed << 32 | request).next_u64() as usize % 20;
            faults.get(draw).copied()
        };
        let server = Server::start(Conditions::Serialised, Box::new(plan));
        let result = up_and_down(&server.backend("files"), 22_000_000);
        println!("seed {seed}: {} requests failed, {result:?}", server.struck());
        assert!(server.struck() > 0, "seed {seed}: nothing failed");
        match result {
            Ok(()) => whole += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "seed {seed}: {error}"),
        }
    }
    assert!(whole > 0, "no file arrived: nothing is sent again");
}

/// Proves that a failed or stopped upload leaves no object, a failed or stopped download no file, and that an absent
/// object or one of another size is reported.
#[test]
fn half_a_transfer_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    write_file(&from, 16_000_000);
    let server = Server::sound(Conditions::Serialised);
    let transfer = server.backend("files").transfer();
    let cancelled = AtomicBool::new(false);
    let mut cancel = |_, _| cancelled.store(true, Ordering::SeqCst);
    let mut ignore = |_: &[u8]| {};
    let error = transfer
        .upload(&RealDisk, &from, "file", &mut quiet(&cancelled, &mut cancel, &mut ignore))
        .unwrap_err();
    assert_eq!((error.kind(), transfer.head("file").unwrap()), (ErrorKind::Cancelled, None), "{error}");

    cancelled.store(false, Ordering::SeqCst);
    transfer.upload(&RealDisk, &from, "file", &mut quiet(&cancelled, &mut |_, _| {}, &mut ignore)).unwrap();
    let error = transfer
        .download_file("file", 16_000_000, &RealDisk, &to, &mut quiet(&cancelled, &mut cancel, &mut ignore))
        .unwrap_err();
    assert_eq!((error.kind(), to.exists()), (ErrorKind::Cancelled, false), "{error}");

    cancelled.store(false, Ordering::SeqCst);
    for (name, size_bytes) in [("file", 15_999_999), ("absent", 1)] {
        let mut silent = |_, _| {};
        let mut watch = quiet(&cancelled, &mut silent, &mut ignore);
        let error = transfer.download_file(name, size_bytes, &RealDisk, &to, &mut watch).unwrap_err();
        println!("{error}");
        assert_eq!((error.kind(), to.exists()), (ErrorKind::Damaged, false), "{error}");
    }
    transfer.remove("file").unwrap();
    transfer.remove("file").unwrap();
    assert_eq!(transfer.head("file").unwrap(), None);

    let down = |request, _: &Method| (request > 4).then_some(Fault::ErrorBefore);
    let server = Server::start(Conditions::Serialised, Box::new(down));
    let transfer = server.backend("files").transfer();
    let error = transfer
        .upload(&RealDisk, &from, "file", &mut quiet(&cancelled, &mut |_, _| {}, &mut ignore))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}
