use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trackway_core::{Clock, Ids};

use crate::backend::{Backend, Created};
use crate::entry::{Entry, MAX_ENTRY_BYTES, MAX_SUMMARY_BYTES, NoEntry};
use crate::error::{ErrorKind, StoreError};

/// How often the next number is tried before giving up. Each try that fails means that another writer got on.
const MAX_APPEND_TRIES: u32 = 64;
/// How often one create is repeated whose outcome is not known. The backend has retried by then, and waited between.
const MAX_CREATE_TRIES: u32 = 4;
/// How often an object is read that is not what was written, before it is called damaged: the fault may have
/// been on the way.
const MAX_DAMAGED_READS: u32 = 2;
/// The fewest entries between two summaries.
const SUMMARY_EVERY: u64 = 64;
/// The largest hint that is read.
const MAX_HINT_BYTES: usize = 256;
/// The object that names the newest summary, perhaps.
const HINT_NAME: &str = "log/hint.json";

/// An epoch and its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Higher than every epoch claimed before.
    pub epoch: u64,
    /// Unique to the attempt that holds it.
    pub holder: String,
}

/// A number of the log, read.
#[derive(Debug, Clone, PartialEq)]
pub enum Item<B> {
    /// A readable entry.
    Entry(Entry<B>),
    /// The number is taken, and its content is lost.
    Damaged {
        number: u64,
        /// Why it is not an entry.
        why: String,
    },
}

impl<B> Item<B> {
    /// Its number.
    pub fn number(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.number,
            Self::Damaged { number, .. } => *number,
        }
    }
}

/// What the entries of a log mean together. Pure: no clock, no I/O.
pub trait Fold: Default + Clone + Send {
    /// The content of an entry. An entry of an unknown kind must be readable as one that changes nothing.
    type Body: Serialize + DeserializeOwned + Clone + Debug + Send;

    /// Takes in the next number.
    fn take(&mut self, item: Item<Self::Body>);

    /// The newest claim so far.
    fn claim(&self) -> Option<Claim>;

    /// The state so far as the body of a summary entry.
    fn summary(&self) -> Self::Body;

    /// The state that a summary holds; `None` when the body is not a summary.
    fn restore(body: &Self::Body) -> Option<Self>;

    /// How many items [`Fold::summary`] lists: summaries are at least so many entries apart, so that writing them costs
    /// a constant fraction of the log.
    fn summary_items(&self) -> u64;
}

/// On whose behalf an entry is added.
#[derive(Debug, Clone, Copy)]
pub enum Writer<'a> {
    /// The holder of an epoch; fenced by a higher one.
    Trainer(&'a Claim),
    /// A housekeeper (pins, retention, repair): fences no trainer and is never fenced.
    Housekeeper,
}

/// How far a log was read, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The newest number that was read; 0: none.
    pub tail: u64,
    /// The summary it began with; 0: the beginning.
    pub began_at: u64,
}

/// A numbered log and what it means so far.
pub struct Log<F: Fold> {
    backend: Arc<dyn Backend>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    state: F,
    position: Position,
    /// The newest summary known.
    summary: u64,
}

impl<F: Fold> Log<F> {
    /// A log that was not read yet. Does nothing.
    pub fn new(backend: Arc<dyn Backend>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let position = Position { tail: 0, began_at: 0 };
        Self { backend, clock, ids, state: F::default(), position, summary: 0 }
    }

    /// Opens a log at its newest summary and reads on to its end.
    pub fn open(
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, StoreError> {
        let mut log = Self::new(backend, clock, ids);
        log.begin_at_hint()?;
        log.refresh()?;
        Ok(log)
    }

    /// Opens a log and reads all of it, whatever it costs: to look for damage or to get the whole history.
    pub fn open_whole(
        backend: Arc<dyn Backend>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, StoreError> {
        let mut log = Self::new(backend, clock, ids);
        log.refresh()?;
        Ok(log)
    }

    /// What the entries read so far mean.
    pub fn state(&self) -> &F {
        &self.state
    }

    /// How far it was read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The number of the newest summary that was read or written; 0: none.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn newest_summary(&self) -> u64 {
        self.summary
    }

    /// The storage.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Reads what was added since.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        while let Some(item) = self.read(self.position.tail + 1)? {
            self.take(item);
        }
        Ok(())
    }

    /// The item of a number; `None`: none yet.
    ///
    /// # Errors
    /// When the storage does not answer or refuses; [`ErrorKind::Unsupported`] for an entry of a later version.
    pub fn read(&self, number: u64) -> Result<Option<Item<F::Body>>, StoreError> {
        let mut reads = 1;
        loop {
            let Some(bytes) = self.backend.read(&entry_name(number), MAX_SUMMARY_BYTES)? else {
                return Ok(None);
            };
            match read_entry::<F>(&bytes, number) {
                Ok(entry) => return Ok(Some(Item::Entry(entry))),
                Err(NoEntry::Newer(version)) => {
                    return Err(StoreError::Newer { location: self.backend.location(), number, version });
                }
                Err(NoEntry::Damaged(why)) if reads == MAX_DAMAGED_READS => {
                    return Ok(Some(Item::Damaged { number, why }));
                }
                Err(NoEntry::Damaged(_)) => reads += 1,
            }
        }
    }

    fn take(&mut self, item: Item<F::Body>) {
        self.position.tail = item.number();
        if let Item::Entry(entry) = &item
            && F::restore(&entry.body).is_some()
        {
            self.summary = entry.number;
        }
        self.state.take(item);
    }

    /// Claims an epoch for its holder, unless it is held already. `body` is the entry of the claim.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] when the epoch, or a higher one, is another's. The errors of `check`, which gets the state
    /// so far.
    pub fn claim<E: From<StoreError>>(
        &mut self,
        claim: &Claim,
        body: &F::Body,
        check: impl Fn(&F) -> Result<(), E>,
    ) -> Result<(), E> {
        for _ in 0..MAX_APPEND_TRIES {
            self.refresh()?;
            check(&self.state)?;
            check_fence(self.state.claim(), claim)?;
            if self.state.claim().as_ref() == Some(claim) || self.try_append(body.clone())?.is_some() {
                return Ok(());
            }
        }
        Err(self.contended(MAX_APPEND_TRIES).into())
    }

    /// Adds the entry that `decide` makes of the state so far, under the next number that is free. `decide` is called
    /// again whenever another process was faster; `None` adds nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Fenced`] for a trainer below a higher epoch; [`ErrorKind::Contended`]; the errors of `decide`;
    /// those of the storage, after which it is unknown whether the entry exists until the next refresh.
    pub fn append<E: From<StoreError>>(
        &mut self,
        writer: Writer<'_>,
        mut decide: impl FnMut(&F) -> Result<Option<F::Body>, E>,
    ) -> Result<Option<u64>, E> {
        for _ in 0..MAX_APPEND_TRIES {
            self.refresh()?;
            if let Writer::Trainer(claim) = writer {
                check_fence(self.state.claim(), claim)?;
            }
            let Some(body) = decide(&self.state)? else { return Ok(None) };
            if let Some(number) = self.try_append(body)? {
                self.summarize();
                return Ok(Some(number));
            }
        }
        Err(self.contended(MAX_APPEND_TRIES).into())
    }

    /// Tries to create the next number. `None`: it was taken meanwhile.
    fn try_append(&mut self, body: F::Body) -> Result<Option<u64>, StoreError> {
        let number = self.position.tail + 1;
        let entry = Entry::new(number, new_ulid(self.ids.as_ref()), self.clock.now().to_rfc3339(), body);
        let bytes = entry.to_bytes();
        // The writer sees what every other process will read: a number that is not finite comes back as null.
        let entry = read_entry::<F>(&bytes, number).map_err(|fault| not_writable(fault, bytes.len()))?;
        if !self.create(number, &entry.ulid, &bytes)? {
            return Ok(None);
        }
        self.take(Item::Entry(entry));
        Ok(Some(number))
    }

    /// Whether the entry with that ULID has its number now.
    ///
    /// After a lost answer it tries again: the name is taken by then or it is not, and a local disk makes durable on
    /// the way what a read alone would only find. A taken number is read to find its writer.
    fn create(&self, number: u64, ulid: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        let name = entry_name(number);
        let mut lost = None;
        for _ in 0..MAX_CREATE_TRIES {
            match self.backend.create(&name, bytes) {
                Ok(Created::New) => return Ok(true),
                Ok(Created::Exists) => match self.read(number) {
                    Ok(Some(Item::Entry(found))) => return Ok(found.ulid == ulid),
                    Ok(Some(Item::Damaged { .. })) | Err(StoreError::Newer { .. }) => return Ok(false),
                    // A conflict with a write that is still in flight, perhaps an own earlier one.
                    Ok(None) => {}
                    Err(error) => lost = Some(error.outcome_unknown()),
                },
                Err(error) if error.kind() == ErrorKind::Unavailable => lost = Some(error),
                Err(error) if lost.is_none() => return Err(error),
                Err(error) => lost = Some(error.outcome_unknown()),
            }
        }
        Err(lost.unwrap_or_else(|| self.contended(MAX_CREATE_TRIES)))
    }

    /// Adds a summary when one is due. It is a convenience: whatever goes wrong, the log is whole without it.
    fn summarize(&mut self) {
        let due = SUMMARY_EVERY.max(self.state.summary_items());
        if self.position.tail - self.summary < due {
            return;
        }
        let body = self.state.summary();
        if let Ok(Some(number)) = self.try_append(body) {
            let hint = format!("{{\"summary\":{number}}}\n");
            let _ = self.backend.replace(HINT_NAME, hint.as_bytes());
        }
    }

    /// Begins at the summary the hint names, when it is one and intact.
    fn begin_at_hint(&mut self) -> Result<(), StoreError> {
        // A hint that cannot be read is as good as none.
        let Ok(Some(bytes)) = self.backend.read(HINT_NAME, MAX_HINT_BYTES) else { return Ok(()) };
        let Some(number) = hinted(&bytes) else { return Ok(()) };
        if let Some(Item::Entry(entry)) = self.read(number)?
            && let Some(state) = F::restore(&entry.body)
        {
            self.state = state;
            self.position.began_at = number;
            // As for a process that read all before it, so that both have the same state.
            self.take(Item::Entry(entry));
        }
        Ok(())
    }

    fn contended(&self, tries: u32) -> StoreError {
        StoreError::Contended { location: self.backend.location(), tries }
    }
}

/// Reads an entry within the bounds of its kind.
fn read_entry<F: Fold>(bytes: &[u8], number: u64) -> Result<Entry<F::Body>, NoEntry> {
    let too_large = |max_bytes: usize| Err(NoEntry::Damaged(format!("it has more than {max_bytes} bytes")));
    if bytes.len() > MAX_SUMMARY_BYTES {
        return too_large(MAX_SUMMARY_BYTES);
    }
    let entry: Entry<F::Body> = Entry::from_bytes(bytes, number)?;
    if bytes.len() > MAX_ENTRY_BYTES && F::restore(&entry.body).is_none() {
        return too_large(MAX_ENTRY_BYTES);
    }
    Ok(entry)
}

/// Why an entry that was just made cannot be read back.
fn not_writable(fault: NoEntry, size_bytes: usize) -> StoreError {
    if size_bytes > MAX_ENTRY_BYTES {
        let max_bytes = if size_bytes > MAX_SUMMARY_BYTES { MAX_SUMMARY_BYTES } else { MAX_ENTRY_BYTES };
        return StoreError::TooLarge { size_bytes, max_bytes };
    }
    match fault {
        NoEntry::Damaged(why) => StoreError::NotWritable { why },
        NoEntry::Newer(version) => StoreError::NotWritable { why: format!("it has version {version}") },
    }
}

/// A new ULID as names and entries hold it: in lower case.
#[must_use]
pub fn new_ulid(ids: &dyn Ids) -> String {
    ulid::Ulid(ids.next_ulid()).to_string().to_lowercase()
}

fn entry_name(number: u64) -> String {
    format!("log/{number:08}.json")
}

fn hinted(bytes: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Hint {
        summary: u64,
    }
    serde_json::from_slice::<Hint>(bytes).ok().map(|hint| hint.summary).filter(|number| *number > 0)
}

fn check_fence(found: Option<Claim>, mine: &Claim) -> Result<(), StoreError> {
    match found {
        Some(found)
            if found.epoch > mine.epoch || (found.epoch == mine.epoch && found.holder != mine.holder) =>
        {
            Err(StoreError::Fenced { epoch: mine.epoch, found_epoch: found.epoch, holder: found.holder })
        }
        _ => Ok(()),
    }
}
