//! The places of a queue, as files. A place is a lock on one, which the kernel releases however its holder ends. It
//! also names the attempt that runs in it: a supervisor may end before its script, and the place is taken until both
//! have ended.
//!
//! Who waits holds a lock on a ticket: the lowest number of a living process comes first. Every look and every change
//! is made under the lock of the turn, so that no two processes see the same free place.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::RunId;
use trackway_files::{FolderLock, if_there, make_folders, open_own, unlink};
use trackway_formats::layout::AttemptLayout;
use trackway_formats::queue::QueueName;

use crate::Context;

const TURN_LOCK: &str = "turn.lock";
const PLACE_PREFIX: &str = "place-";
const TICKET_PREFIX: &str = "ticket-";
/// How often the lock of the turn is tried for, each after 20 ms: it is held for less than one of them.
const TURN_TRIES: u32 = 50;
/// The same for one who comes: many may come at once.
const JOIN_TRIES: u32 = 1_500;
/// More bytes than the path of an attempt or the id of a run has.
const TEXT_BYTES_MAX: u64 = 1 << 14;

/// How many runs of a queue run at once, as the settings have it now.
pub fn at_most(context: &Context, queue: &QueueName) -> u32 {
    context.queues.at_most(queue)
}

/// A place, held until it is dropped or the process ends, and until the attempt in it ends.
#[derive(Debug)]
pub struct QueuePlace {
    file: File,
}

impl QueuePlace {
    /// Names the folder of the attempt that runs in the place.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn hold_for(&mut self, attempt: &Path) -> io::Result<()> {
        // The path of the attempt before may be longer.
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(attempt.as_os_str().as_encoded_bytes())
    }
}

/// The place of a run, if it has one. Clones are the same place: the evaluation after a run has it too.
#[derive(Debug, Clone, Default)]
pub struct HeldPlace(Arc<Mutex<Option<QueuePlace>>>);

impl HeldPlace {
    /// The place, for as long as the guard lives.
    pub fn place(&self) -> MutexGuard<'_, Option<QueuePlace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number in the line of those who wait; given back when it is dropped.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    path: PathBuf,
    file: File,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // One that stays is that of a process that ended, and the next one that looks removes it.
        let _ = unlink(&self.path);
    }
}

/// A queue at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// How many places are taken.
    pub running: u32,
    /// The runs that wait, in order; none: one whose ticket does not name it, since an older version wrote it.
    pub waiting: Vec<Option<RunId>>,
}

impl Line {
    /// The place of a run among those that wait, from 1; none: it does not wait here.
    #[must_use]
    pub fn place_of(&self, run_id: RunId) -> Option<u32> {
        let at = self.waiting.iter().position(|waits| *waits == Some(run_id))?;
        u32::try_from(at + 1).ok()
    }
}

/// What a look at the queue led to.
#[derive(Debug)]
pub enum Turn {
    /// A place was free, and this was the first who waited. The ticket is given back.
    Place(QueuePlace),
    /// Others are before it, or no place is free.
    Waits {
        ticket: Ticket,
        /// How many places are taken; none where others looked at the same time.
        running: Option<u32>,
    },
}

/// The places of a queue on this host.
#[derive(Debug, Clone)]
pub struct Places {
    folder: PathBuf,
}

impl Places {
    /// Those in this folder, which is made when a run waits in it.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Joins the line with a ticket that names the run, and takes a place at once if none waits and one is free. `at_most` places are taken
    /// at once.
    ///
    /// # Errors
    /// When the folder cannot be made, or files in it cannot be locked.
    pub fn join(&self, run_id: RunId, at_most: u32) -> io::Result<Turn> {
        make_folders(&self.folder)?;
        // Held to the end: otherwise two that join would choose the same number.
        let _turn = FolderLock::take(&self.folder, TURN_LOCK, JOIN_TRIES)?;
        let last = self.numbers(TICKET_PREFIX)?.pop().unwrap_or(0);
        let number = last + 1;
        let path = self.file(TICKET_PREFIX, number);
        let file = open_own(OpenOptions::new().write(true).create_new(true), &path)?;
        // Before the turn is over: a ticket without a lock is taken for one of a dead process, and removed.
        file.lock()?;
        let mut ticket = Ticket { number, path, file };
        ticket.file.write_all(run_id.to_string().as_bytes())?;
        self.take(ticket, at_most)
    }

    /// Looks whether it is the turn of a ticket, and takes a place if it is.
    ///
    /// # Errors
    /// When the files cannot be read or locked.
    pub fn turn(&self, ticket: Ticket, at_most: u32) -> io::Result<Turn> {
        match self.lock_turn()? {
            Some(_turn) => self.take(ticket, at_most),
            None => Ok(Turn::Waits { ticket, running: None }),
        }
    }

    /// Takes a place for the first ticket. The caller has the lock of the turn.
    fn take(&self, ticket: Ticket, at_most: u32) -> io::Result<Turn> {
        let running = self.taken()?;
        if running >= at_most || !self.is_first(&ticket)? {
            return Ok(Turn::Waits { ticket, running: Some(running) });
        }
        // One more than are taken: at least one of these is free.
        for number in 0..=u64::from(running) {
            let path = self.file(PLACE_PREFIX, number);
            if is_taken(&path)? {
                continue;
            }
            let mut options = OpenOptions::new();
            // Not cut before it is locked: it may name an attempt that is alive.
            let file = open_own(options.read(true).write(true).create(true).truncate(false), &path)?;
            if try_lock(&file, File::try_lock)? {
                return Ok(Turn::Place(QueuePlace { file }));
            }
        }
        Ok(Turn::Waits { ticket, running: None })
    }

    /// Who runs and who waits; none where others look at the same time.
    ///
    /// # Errors
    /// When the files cannot be read or locked.
    pub fn line(&self) -> io::Result<Option<Line>> {
        if !self.folder.is_dir() {
            return Ok(Some(Line::default()));
        }
        let Some(_turn) = self.lock_turn()? else { return Ok(None) };
        let mut waiting = Vec::new();
        for number in self.numbers(TICKET_PREFIX)? {
            let path = self.file(TICKET_PREFIX, number);
            // The ticket of a process that ended counts for nothing.
            if is_locked(&path)? {
                waiting.push(text_of(&path)?.and_then(|run| run.parse().ok()));
            }
        }
        Ok(Some(Line { running: self.taken()?, waiting }))
    }

    fn lock_turn(&self) -> io::Result<Option<FolderLock>> {
        match FolderLock::take(&self.folder, TURN_LOCK, TURN_TRIES) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn taken(&self) -> io::Result<u32> {
        let mut count = 0;
        for number in self.numbers(PLACE_PREFIX)? {
            count += u32::from(is_taken(&self.file(PLACE_PREFIX, number))?);
        }
        Ok(count)
    }

    /// Whether no process that lives has a lower number. Tickets of others are removed.
    fn is_first(&self, ticket: &Ticket) -> io::Result<bool> {
        let before = self.numbers(TICKET_PREFIX)?.into_iter().filter(|number| *number < ticket.number);
        for number in before {
            let path = self.file(TICKET_PREFIX, number);
            if is_locked(&path)? {
                return Ok(false);
            }
            let _ = unlink(&path);
        }
        Ok(true)
    }

    fn file(&self, prefix: &str, number: u64) -> PathBuf {
        self.folder.join(format!("{prefix}{number}"))
    }

    /// The numbers of files with this prefix, in order.
    fn numbers(&self, prefix: &str) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Whether a process holds the place, or an attempt whose supervisor has ended lives in it.
fn is_taken(place: &Path) -> io::Result<bool> {
    if is_locked(place)? {
        return Ok(true);
    }
    match text_of(place)?.filter(|folder| !folder.is_empty()) {
        Some(folder) => is_locked(&AttemptLayout::new(folder).shim_lock()),
        None => Ok(false),
    }
}

/// What the file of a place or a ticket names; none where there is no such file.
fn text_of(path: &Path) -> io::Result<Option<String>> {
    let Some(file) = if_there(File::open(path))? else { return Ok(None) };
    let mut text = Vec::new();
    file.take(TEXT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8(text).ok())
}

/// Whether a process holds the lock of a file.
fn is_locked(path: &Path) -> io::Result<bool> {
    let Some(file) = if_there(File::open(path))? else { return Ok(false) };
    Ok(!try_lock(&file, File::try_lock_shared)?)
}

fn try_lock(file: &File, lock: impl Fn(&File) -> Result<(), TryLockError>) -> io::Result<bool> {
    match lock(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u32) -> RunId {
        format!("run_0000000000000000000000000{number}").parse().unwrap()
    }

    fn place(turn: Turn) -> QueuePlace {
        match turn {
            Turn::Place(place) => place,
            waits @ Turn::Waits { .. } => panic!("{waits:?}"),
        }
    }

    fn waits(turn: Turn) -> (Ticket, Option<u32>) {
        match turn {
            Turn::Waits { ticket, running } => (ticket, running),
            Turn::Place(place) => panic!("{place:?}"),
        }
    }

    /// Proves that no more places are taken than there are, that those who wait get them in the order in which they
    /// came, that their place in the line is known by their run, and that a place is free again when its holder ends.
    #[test]
    fn first_come_first_served() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_folder(folder.path().join("gpu"));
        let line = || places.line().unwrap().unwrap();
        assert_eq!(line(), Line::default());
        let first = place(places.join(run(1), 2).unwrap());
        let second = place(places.join(run(2), 2).unwrap());
        let (third, running) = waits(places.join(run(3), 2).unwrap());
        assert_eq!((running, line().running), (Some(2), 2));
        let (fourth, _) = waits(places.join(run(4), 2).unwrap());
        assert_eq!([1, 3, 4].map(|number| line().place_of(run(number))), [None, Some(1), Some(2)]);
        drop(first);
        let (fourth, running) = waits(places.turn(fourth, 2).unwrap());
        assert_eq!(running, Some(1), "another one is before it");
        let third = place(places.turn(third, 2).unwrap());
        assert_eq!((line().place_of(run(4)), line().waiting.len()), (Some(1), 1));
        let (fourth, _) = waits(places.turn(fourth, 2).unwrap());
        drop((second, third));
        place(places.turn(fourth, 2).unwrap());
        assert_eq!(line(), Line::default());
    }

    /// Proves that a lower bound counts the places that are taken already, whatever their numbers.
    #[test]
    fn a_lower_bound_counts_all_places() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_folder(folder.path().to_owned());
        let mut taken: Vec<QueuePlace> =
            (0..3).map(|number| place(places.join(run(number), 3).unwrap())).collect();
        drop(taken.remove(0));
        let (ticket, running) = waits(places.join(run(4), 2).unwrap());
        assert_eq!(running, Some(2));
        taken.pop();
        place(places.turn(ticket, 2).unwrap());
    }

    /// Proves that a place stays taken while the attempt in it lives, also without its supervisor, and that the ticket of a process that
    /// ended delays no other.
    #[test]
    fn an_attempt_holds_its_place_alone() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::in_folder(folder.path().join("q"));
        let attempt = AttemptLayout::new(folder.path().join("attempt"));
        std::fs::create_dir(attempt.folder()).unwrap();
        let shim = File::create(attempt.shim_lock()).unwrap();
        shim.lock().unwrap();
        let mut held = place(places.join(run(1), 1).unwrap());
        held.hold_for(attempt.folder()).unwrap();
        drop(held);

        File::create(places.file(TICKET_PREFIX, 1)).unwrap();
        let (ticket, running) = waits(places.join(run(2), 1).unwrap());
        assert_eq!((ticket.number, running), (2, Some(1)));
        assert_eq!(places.line().unwrap().unwrap(), Line { running: 1, waiting: vec![Some(run(2))] });
        drop(shim);
        place(places.turn(ticket, 1).unwrap());
        assert!(!places.file(TICKET_PREFIX, 1).exists());
    }
}
