//! What every backend must do, as a function that every backend runs.

use std::sync::{Arc, Barrier};

use trackway_core::{Ids, ManualClock, SplitMix64, Timestamp};

use crate::backend::{Backend, Created};
use crate::entry::{Entry, MAX_ENTRY_BYTES};
use crate::error::{ErrorKind, StoreError};
use crate::log::{Claim, Item, Log, Writer};
use crate::testing::notebook::{Note, Notebook};

/// How many writers race.
const WRITERS: u64 = 6;
/// How many notes each of them adds: enough that summaries come about on the way.
const NOTES: u64 = 20;
/// How many names are raced for.
const RACES: usize = 10;
/// How often something is tried again that failed without a fault of the backend.
const MAX_TRIES: u32 = 200;

/// What may be expected of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every call is answered.
    Reliable,
    /// Calls fail, answers are lost and things happen late, by intent: only the effect on the log is checked.
    Faulty,
}

/// Proves that a backend does what the log needs.
///
/// `storage` opens a handle on the storage with that name: an empty one for a name that was not used before, else
/// the same again. Handles are used from several threads at once.
///
/// # Panics
/// With a sentence, at the first thing that is not as it must be.
pub fn conformance(storage: &mut dyn FnMut(&str) -> Arc<dyn Backend>, answers: Answers) {
    if answers == Answers::Reliable {
        objects(storage("objects").as_ref());
        racing_creates(&mut handles(storage, "races"));
    }
    racing_appends(&mut || storage("appends"));
    racing_claims(&mut || storage("claims"));
    fencing(&mut || storage("fencing"));
    hints(&mut || storage("hints"));
    damage(&mut || storage("damage"));
    limits(&mut || storage("limits"));
}

type OpenBackend<'a> = &'a mut dyn FnMut() -> Arc<dyn Backend>;

fn handles(storage: &mut dyn FnMut(&str) -> Arc<dyn Backend>, name: &str) -> Vec<Arc<dyn Backend>> {
    (0..WRITERS).map(|_| storage(name)).collect()
}

/// Unlike those of another writer, and the same in each run.
#[derive(Debug)]
struct WriterIds(u64, std::sync::Mutex<SplitMix64>);

impl Ids for WriterIds {
    fn next_ulid(&self) -> u128 {
        use trackway_core::Rng as _;
        let mut rng = self.1.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        u128::from(self.0) << 64 | u128::from(rng.next_u64())
    }
}

/// Ids of one writer of a test: of two writers they never meet.
pub(crate) fn writer_ids(writer: u64) -> Arc<dyn Ids> {
    Arc::new(WriterIds(writer, std::sync::Mutex::new(SplitMix64::new(writer))))
}

pub(crate) fn still_clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_micros(1_763_719_200_000_000)))
}

/// Repeats a call whose outcome is unknown or that lost against others, as callers do.
pub(crate) fn surely<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tries = 1;
    loop {
        match attempt() {
            Err(error)
                if tries < MAX_TRIES
                    && matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Contended) =>
            {
                tries += 1;
            }
            result => return result,
        }
    }
}

fn must<T>(attempt: impl FnMut() -> Result<T, StoreError>) -> T {
    surely(attempt).expect("the storage answers in the end")
}

fn log_of(backend: Arc<dyn Backend>, writer: u64) -> Log<Notebook> {
    Log::new(backend, still_clock(), writer_ids(writer))
}

/// Adds a note unless it exists, whatever happens on the way.
fn say(log: &mut Log<Notebook>, writer: Writer<'_>, who: u64, sequence: u64) -> Result<(), StoreError> {
    let epoch = match writer {
        Writer::Trainer(claim) => Some(claim.epoch),
        Writer::Housekeeper => None,
    };
    surely(|| {
        log.append(writer, |notebook: &Notebook| Ok::<_, StoreError>(notebook.note(who, sequence, epoch)))
    })
    .map(drop)
}

fn take_epoch(log: &mut Log<Notebook>, epoch: u64, holder: &str) -> Result<(), StoreError> {
    let claim = claim(epoch, holder);
    surely(|| log.claim(&claim, &Note::Claim(claim.clone()), |_| Ok::<_, StoreError>(())))
}

fn claim(epoch: u64, holder: &str) -> Claim {
    Claim { epoch, holder: holder.into() }
}

/// The state of a reader that read everything.
fn whole(backend: Arc<dyn Backend>) -> Log<Notebook> {
    let mut log = log_of(backend, u64::MAX);
    must(|| log.refresh());
    assert_eq!(log.state().faults, Vec::<String>::new());
    assert_eq!(log.position().began_at, 0);
    log
}

/// The state of a reader that began at the hint.
fn hinted(backend: Arc<dyn Backend>) -> Log<Notebook> {
    must(|| Log::open(Arc::clone(&backend), still_clock(), writer_ids(u64::MAX)))
}

fn objects(backend: &dyn Backend) {
    let read = |name: &str| must(|| backend.read(name, 1 << 21));
    let create = |name: &str, bytes: &[u8]| must(|| backend.create(name, bytes));
    assert_eq!(read("a/b/absent"), None, "an object that was never created is absent");
    let large: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    for (name, bytes) in
        [("one", &b"1"[..]), ("a/b/two", &[0, 255, 10, 13]), ("empty", b""), ("large", &large)]
    {
        assert_eq!(create(name, bytes), Created::New, "the first create of {name} wins");
        assert_eq!(read(name).as_deref(), Some(bytes), "{name} is read as it was created, at once");
        assert_eq!(create(name, b"other"), Created::Exists, "the second create of {name} is refused");
        assert_eq!(read(name).as_deref(), Some(bytes), "{name} is as the first create left it");
    }
    for max_bytes in [0, 1, 2, 3, 4, 5] {
        let expected = 4.min(max_bytes + 1);
        let read = must(|| backend.read("a/b/two", max_bytes)).expect("it exists");
        assert_eq!(read.len(), expected, "one byte more than {max_bytes} tells that there are more");
    }
    for bytes in [&b"new"[..], b"newer"] {
        must(|| backend.replace("replaced", bytes));
        assert_eq!(read("replaced").as_deref(), Some(bytes), "what was replaced is read");
    }
    assert_eq!(create("replaced", b"1"), Created::Exists, "what was replaced takes the name");
    for _ in 0..2 {
        must(|| backend.remove("replaced"));
        assert_eq!(read("replaced"), None, "what was removed is absent");
    }
    assert_eq!(create("replaced", b"again"), Created::New, "a name that was removed is free");
}

fn racing_creates(handles: &mut Vec<Arc<dyn Backend>>) {
    for race in 0..RACES {
        let name = format!("race-{race}");
        let start = Barrier::new(handles.len());
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = handles
                .iter()
                .enumerate()
                .map(|(writer, backend)| {
                    let (name, start) = (&name, &start);
                    scope.spawn(move || {
                        start.wait();
                        let created = must(|| backend.create(name, format!("writer {writer}").as_bytes()));
                        (writer, created, must(|| backend.read(name, 100)))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        let winners: Vec<_> =
            outcomes.iter().filter(|(_, created, _)| *created == Created::New).map(|(w, ..)| w).collect();
        assert_eq!(winners.len(), 1, "{name}: {winners:?} all won");
        let won = format!("writer {}", winners[0]).into_bytes();
        for (writer, _, read) in &outcomes {
            assert_eq!(read.as_ref(), Some(&won), "{name}: writer {writer} reads the winner's bytes");
        }
    }
}

fn racing_appends(open: OpenBackend<'_>) {
    let mut logs: Vec<_> = (0..WRITERS).map(|writer| log_of(open(), writer)).collect();
    std::thread::scope(|scope| {
        for (writer, log) in (0..).zip(&mut logs) {
            scope.spawn(move || {
                for sequence in 0..NOTES {
                    say(log, Writer::Housekeeper, writer, sequence).expect("housekeepers are never stopped");
                }
            });
        }
    });
    let whole = whole(open());
    let said = &whole.state().said;
    assert_eq!(said.len() as u64, WRITERS * NOTES, "every note exists exactly once");
    for writer in 0..WRITERS {
        let sequences: Vec<_> =
            said.iter().filter(|said| said.writer == writer).map(|s| s.sequence).collect();
        assert_eq!(sequences, (0..NOTES).collect::<Vec<_>>(), "the notes of writer {writer} are in order");
    }
    for (writer, log) in logs.iter_mut().enumerate() {
        must(|| log.refresh());
        assert_eq!(log.state(), whole.state(), "writer {writer} sees what everybody sees");
    }
    assert_eq!(hinted(open()).state(), whole.state(), "who begins at the hint sees it too");
}

fn racing_claims(open: OpenBackend<'_>) {
    let mut logs: Vec<_> = (0..WRITERS).map(|writer| log_of(open(), writer)).collect();
    for epoch in 1..=3 {
        let holders: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..WRITERS)
                .zip(&mut logs)
                .map(|(writer, log)| {
                    scope.spawn(move || take_epoch(log, epoch, &format!("holder-{writer}")).map(|()| writer))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        let won: Vec<_> = holders.iter().flatten().collect();
        assert_eq!(won.len(), 1, "epoch {epoch} is held by one: {holders:?}");
        for error in holders.iter().filter_map(|held| held.as_ref().err()) {
            assert_eq!(error.kind(), ErrorKind::Fenced, "the others are fenced: {error}");
        }
        let claim_held = whole(open()).state().claim.clone().expect("somebody won");
        assert_eq!(claim_held, claim(epoch, &format!("holder-{}", won[0])), "and the log says by whom");
    }
}

fn fencing(open: OpenBackend<'_>) {
    let (mut old, mut new, mut keeper) = (log_of(open(), 1), log_of(open(), 2), log_of(open(), 3));
    let (first, second) = (claim(1, "old"), claim(2, "new"));
    let (old_writer, new_writer) = (Writer::Trainer(&first), Writer::Trainer(&second));
    take_epoch(&mut old, 1, "old").expect("the first epoch is free");
    say(&mut old, old_writer, 1, 0).expect("the holder may write");
    say(&mut keeper, Writer::Housekeeper, 3, 0).expect("a housekeeper may write");
    say(&mut old, old_writer, 1, 1).expect("a housekeeper fences no writer");
    take_epoch(&mut old, 1, "old").expect("an epoch may be claimed again by its holder");
    take_epoch(&mut new, 2, "new").expect("a higher epoch is free");
    for sequence in 2..4 {
        let error = say(&mut old, old_writer, 1, sequence).expect_err("the old epoch must be stopped");
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    }
    for (epoch, holder) in [(1, "old"), (2, "old"), (2, "third"), (1, "third")] {
        let error = take_epoch(&mut old, epoch, holder).expect_err("no epoch goes back or changes hands");
        assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    }
    say(&mut keeper, Writer::Housekeeper, 3, 1).expect("a housekeeper is never fenced");
    say(&mut new, new_writer, 2, 0).expect("the new holder may write");
    let whole = whole(open());
    let said: Vec<_> = whole.state().said.iter().map(|said| (said.writer, said.sequence)).collect();
    assert_eq!(
        said,
        [(1, 0), (3, 0), (1, 1), (3, 1), (2, 0)],
        "the log holds what was let through, in order"
    );
    assert_eq!(whole.position().tail, 7, "and the two claims, each once");
}

/// Fills a log until it has a summary, and gives its number.
fn fill(log: &mut Log<Notebook>) -> u64 {
    for sequence in 0..1000 {
        say(log, Writer::Housekeeper, 1, sequence).expect("housekeepers are never stopped");
        if log.newest_summary() > 0 {
            return log.newest_summary();
        }
    }
    panic!("summaries come about");
}

fn hints(open: OpenBackend<'_>) {
    const HINT: &str = "log/hint.json";
    let mut log = log_of(open(), 1);
    let summary = fill(&mut log);
    say(&mut log, Writer::Housekeeper, 2, 0).expect("housekeepers are never stopped");
    let whole = whole(open());
    let backend = open();
    let wrong: [Vec<u8>; 9] = [
        b"{\"summary\":1}\n".into(),
        format!("{{\"summary\":{}}}\n", summary + 1).into(),
        b"{\"summary\":99999999}\n".into(),
        b"{\"summary\":18446744073709551615}\n".into(),
        b"{\"summary\":0}\n".into(),
        b"{\"summary\":-1}\n".into(),
        b"".into(),
        vec![0xff; 100],
        vec![b' '; 100_000],
    ];
    for hint in &wrong {
        must(|| backend.replace(HINT, hint));
        let log = hinted(open());
        assert_eq!(
            (log.state(), log.position()),
            (whole.state(), whole.position()),
            "a wrong hint costs time only"
        );
    }
    must(|| backend.remove(HINT));
    assert_eq!(hinted(open()).state(), whole.state(), "a missing hint costs time only");
    must(|| backend.replace(HINT, format!("{{\"summary\":{summary}}}\n").as_bytes()));
    let late = hinted(open());
    assert_eq!((late.state(), late.position().began_at), (whole.state(), summary), "a right one is used");
    let name = format!("log/{summary:08}.json");
    let mut bytes = must(|| backend.read(&name, 1 << 20)).expect("the summary exists");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    must(|| backend.replace(&name, &bytes));
    let past = hinted(open());
    assert_eq!(past.position().began_at, 0, "a damaged summary is not believed");
    assert_eq!((past.state().said.len(), &past.state().damaged), (whole.state().said.len(), &vec![summary]));
}

fn damage(open: OpenBackend<'_>) {
    let backend = open();
    let mut log = log_of(open(), 1);
    for sequence in 0..3 {
        say(&mut log, Writer::Housekeeper, 1, sequence).expect("housekeepers are never stopped");
    }
    must(|| backend.replace("log/00000002.json", b"{\"blake3\":\"\",\"entry\":{}}\n"));
    must(|| backend.replace("log/00000004.json", b""));
    let mut log = log_of(open(), 2);
    say(&mut log, Writer::Housekeeper, 2, 0).expect("housekeepers are never stopped");
    must(|| log.refresh());
    assert_eq!(log.state().damaged, [2, 4], "damaged entries take their numbers and say nothing");
    let said: Vec<_> = log.state().said.iter().map(|said| (said.number, said.writer)).collect();
    assert_eq!(said, [(1, 1), (3, 1), (5, 2)], "and the log goes on behind them");
    assert!(matches!(must(|| log.read(2)), Some(Item::Damaged { number: 2, .. })));
    assert_eq!(must(|| log.read(6)), None, "behind the end is nothing");
}

fn limits(open: OpenBackend<'_>) {
    let mut log = log_of(open(), 1);
    let error = take_epoch(&mut log, 1, &"x".repeat(MAX_ENTRY_BYTES)).expect_err("it is too large");
    assert_eq!((error.kind(), log.position().tail), (ErrorKind::Input, 0), "and was not written: {error}");
    say(&mut log, Writer::Housekeeper, 1, 0).expect("the number is still free");
    let mut later = Entry::new(2, "later".into(), String::new(), Note::Unknown);
    later.version = 2;
    must(|| open().replace("log/00000002.json", &later.to_bytes()));
    for mut log in [log, log_of(open(), 2)] {
        let error = say(&mut log, Writer::Housekeeper, 2, 0).expect_err("it may mean anything");
        assert_eq!((error.kind(), log.position().tail), (ErrorKind::Unsupported, 1), "{error}");
    }
}
