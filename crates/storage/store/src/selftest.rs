//! Finds out whether a storage can do what the log needs, before anything depends on it.

use std::sync::Barrier;

use serde::Serialize;
use trackway_core::{Clock, Ids};

use crate::backend::{Backend, Created};
use crate::error::{ErrorKind, StoreError};
use crate::log::new_ulid;

/// How many creates of one name race.
const RACERS: usize = 8;
/// How many names are raced for. A storage that looks first and writes then is found out in one or two.
const RACES: usize = 6;
/// The size of the large object; of the order of what a summary of a long run takes.
const LARGE_BYTES: usize = 1 << 20;
/// What a small object is read with.
const MAX_SMALL_BYTES: usize = 1024;
/// After this time no further primitive is begun. Every call is bounded by the backend.
const MAX_SECONDS: f64 = 60.0;
/// How often a call is made that is not answered.
const MAX_TRIES: u32 = 3;

/// What became of the trial of one primitive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It is as it must be.
    Holds,
    /// It is not.
    Fails {
        /// What was seen, in a sentence.
        why: String,
    },
    /// Not known: the storage did not answer, or refused.
    NotTested {
        why: String,
        /// What the caller should do.
        #[serde(skip)]
        kind: ErrorKind,
    },
}

/// One thing that a storage must do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Primitive {
    /// Its name, in snake case.
    pub name: &'static str,
    /// Whether the log needs it. Of the others, `replace` makes opening fast, and `remove` is for retention.
    pub required: bool,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What was found out about a storage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfTest {
    /// Which one.
    pub location: String,
    /// What it can do.
    pub primitives: Vec<Primitive>,
    /// How long it took.
    pub seconds: f64,
}

impl SelfTest {
    /// Whether the log may be kept there.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the storage cannot do what the log needs: it must be refused; any other kind
    /// when that is not known, which does not permit using it.
    pub fn verdict(&self) -> Result<(), StoreError> {
        let required = || self.primitives.iter().filter(|primitive| primitive.required);
        let refused = |kind, primitive: &Primitive, why: &str| {
            let source = format!("{}: {why}", primitive.name).into();
            let location = self.location.clone();
            Err(StoreError::Backend { kind, action: "keep a log in", location, source })
        };
        for primitive in required() {
            if let Outcome::Fails { why } = &primitive.outcome {
                return refused(ErrorKind::Unsupported, primitive, why);
            }
        }
        for primitive in required() {
            if let Outcome::NotTested { why, kind } = &primitive.outcome {
                return refused(*kind, primitive, why);
            }
        }
        Ok(())
    }
}

/// Tries out what the log needs of a storage, under a name that was never used, and cleans up.
#[must_use]
pub fn selftest(backend: &dyn Backend, clock: &dyn Clock, ids: &dyn Ids) -> SelfTest {
    let scratch = format!("selftest/{}", new_ulid(ids));
    let trial = Trial { backend, scratch };
    let trials: [(&str, bool, Run); 6] = [
        ("read_after_create", true, |trial| trial.read_after_create()),
        ("create_if_absent", true, |trial| trial.create_if_absent()),
        ("racing_creates", true, |trial| trial.racing_creates()),
        ("large_objects", true, |trial| trial.large_objects()),
        ("replace", false, |trial| trial.replace()),
        ("remove", false, |trial| trial.remove()),
    ];
    let began = clock.monotonic_micros();
    let seconds = || (clock.monotonic_micros() - began) as f64 / 1e6;
    let mut primitives = Vec::new();
    for (name, required, run) in trials {
        let outcome = if seconds() > MAX_SECONDS { too_late() } else { outcome_of(run(&trial)) };
        primitives.push(Primitive { name, required, outcome });
    }
    SelfTest { location: backend.location(), primitives, seconds: seconds() }
}

/// `Ok(Some(…))`: a sentence about what is wrong.
type TrialResult = Result<Option<String>, StoreError>;
type Run = fn(&Trial<'_>) -> TrialResult;

fn outcome_of(found: TrialResult) -> Outcome {
    match found {
        Ok(None) => Outcome::Holds,
        Ok(Some(why)) => Outcome::Fails { why },
        // Also a way to find out, as of a file system without hard links.
        Err(error) if error.kind() == ErrorKind::Unsupported => Outcome::Fails { why: error.to_string() },
        Err(error) => Outcome::NotTested { why: error.to_string(), kind: error.kind() },
    }
}

fn too_late() -> Outcome {
    let why = format!("the {MAX_SECONDS} seconds of the self-test were over");
    Outcome::NotTested { why, kind: ErrorKind::Unavailable }
}

/// Makes a call again that was not answered.
fn patiently<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tries = 1;
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Unavailable && tries < MAX_TRIES => tries += 1,
            result => return result,
        }
    }
}

struct Trial<'a> {
    backend: &'a dyn Backend,
    scratch: String,
}

impl Trial<'_> {
    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.scratch)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        patiently(|| self.backend.read(&self.name(name), max_bytes))
    }

    /// Whether a create happened; a repeated one that finds its own bytes did.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        patiently(|| self.backend.create(&self.name(name), bytes)).map(drop)
    }

    fn reads_as(&self, name: &str, expected: &[u8], after: &str) -> TrialResult {
        Ok(match self.read(name, expected.len().max(MAX_SMALL_BYTES))? {
            None => Some(format!("an object was not found right after {after}")),
            Some(found) if found != expected => Some(format!(
                "an object of {} bytes was read as {} other bytes after {after}",
                expected.len(),
                found.len()
            )),
            Some(_) => None,
        })
    }

    fn read_after_create(&self) -> TrialResult {
        if self.read("first", MAX_SMALL_BYTES)?.is_some() {
            return Ok(Some("an object that was never created was found".into()));
        }
        self.create("first", b"first")?;
        self.reads_as("first", b"first", "it was created")
    }

    fn create_if_absent(&self) -> TrialResult {
        if patiently(|| self.backend.create(&self.name("first"), b"second"))? == Created::New {
            return Ok(Some(
                "a second create of one name was accepted: conditional writes are not honoured".into(),
            ));
        }
        self.reads_as("first", b"first", "a second create was refused")
    }

    fn racing_creates(&self) -> TrialResult {
        for race in 0..RACES {
            if let Some(why) = self.race(&format!("race-{race}"))? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn race(&self, name: &str) -> TrialResult {
        let start = Barrier::new(RACERS);
        let path = self.name(name);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let race = |racer: usize| {
                let (start, path) = (&start, &path);
                move || {
                    start.wait();
                    self.backend.create(path, &racer_bytes(racer))
                }
            };
            let racers: Vec<_> = (0..RACERS).map(|racer| scope.spawn(race(racer))).collect();
            racers.into_iter().map(|racer| racer.join().expect("a backend does not panic")).collect()
        });
        let mut winners = Vec::new();
        let mut unanswered = None;
        for (racer, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(Created::New) => winners.push(racer),
                Ok(Created::Exists) => {}
                Err(error) => unanswered = Some(error),
            }
        }
        match (winners.as_slice(), unanswered) {
            // The winner's answer may have been lost: then its bytes are there.
            ([], unanswered) => match (self.read(name, MAX_SMALL_BYTES)?, unanswered) {
                (Some(found), _) if (0..RACERS).any(|racer| racer_bytes(racer) == found) => Ok(None),
                (_, Some(error)) => Err(error),
                _ => Ok(Some(format!("of {RACERS} racing creates of one name none succeeded"))),
            },
            ([winner], _) => self.reads_as(name, &racer_bytes(*winner), "it won a race"),
            (many, _) => Ok(Some(format!(
                "of {RACERS} racing creates of one name {} succeeded: two attempts could both hold an epoch",
                many.len()
            ))),
        }
    }

    fn large_objects(&self) -> TrialResult {
        let bytes = vec![b'.'; LARGE_BYTES];
        self.create("large", &bytes)?;
        self.reads_as("large", &bytes, "it was created")
    }

    fn replace(&self) -> TrialResult {
        patiently(|| self.backend.replace(&self.name("first"), b"third"))?;
        self.reads_as("first", b"third", "it was replaced")
    }

    /// Removes all that was made here.
    fn remove(&self) -> TrialResult {
        let races = (0..RACES).map(|race| format!("race-{race}"));
        for name in races.chain(["first".into(), "large".into()]) {
            patiently(|| self.backend.remove(&self.name(&name)))?;
            if self.read(&name, MAX_SMALL_BYTES)?.is_some() {
                return Ok(Some("an object was found after it was removed".into()));
            }
        }
        Ok(None)
    }
}

fn racer_bytes(racer: usize) -> Vec<u8> {
    format!("racer {racer}").into_bytes()
}
