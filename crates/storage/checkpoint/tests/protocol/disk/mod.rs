//! A model of one root on a local disk: writers that replace each other, a housekeeper that deletes, an actor that
//! pins. Every action is one I/O step of one of them, so that a kill, a power cut, a failed sync or another actor's
//! step may come between any two.
//!
//! What a disk may do: a name or bytes that were not synced are lost by a power cut or not, each by itself. A process
//! that was replaced may continue (a zombie).
//!
//! `writer.rs` and `keeper.rs` are the protocol, `log.rs` adds entries, `faults.rs` has the faults, `properties.rs` the
//! invariants; `suites.rs` chooses what is explored, and shows that each of `rules.rs` is needed.

mod faults;
mod history;
mod keeper;
mod log;
mod model;
mod properties;
mod rules;
mod suites;
mod writer;

use rules::Rules;

/// How many commits of the chain are kept.
const KEEP: usize = 2;

/// The number of an entry; the first is 1.
type Number = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Body {
    Claim { epoch: u8 },
    Begin { folder: u8 },
    Commit { folder: u8, epoch: u8, parent: Option<Number> },
    Suspect { commit: Number },
    Unsafe { commit: Number },
    Pin { commit: Number },
    Retire { commit: Number },
    Swept { commit: Number },
    Abandon { folder: u8 },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry {
    body: Body,
    /// A digest of it and of all entries that its writer had read when it decided.
    digest: u64,
    /// Whether its name was synced.
    durable: bool,
}

/// What is in the folder of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Bytes {
    Absent,
    /// Some of it: a save that was killed, a power cut, a deletion that has begun.
    Partial,
    /// All of it; a power cut may lose it.
    Written,
    /// Its bytes survive, its names may not.
    Synced,
    Durable,
    /// All of it, and a bit has flipped.
    Rotten,
}

impl Bytes {
    fn whole(self) -> bool {
        matches!(self, Self::Written | Self::Synced | Self::Durable)
    }
}

/// The I/O steps of adding an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Io {
    /// Reads to the end and decides.
    Read,
    /// Links the entry to the next number.
    Link(Body),
    /// Syncs the folder of the log.
    Sync(Body),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Task {
    /// Not started yet.
    Absent,
    Claim(Io),
    /// Reads the log and verifies what it may continue from.
    Resume,
    Mark(Number, Io),
    Begin(Io),
    WriteFirst,
    WriteRest,
    SyncBytes,
    SyncNames,
    Commit(Io),
    // Of the housekeeper and of the actor that pins:
    Idle,
    Retire(Number, Io),
    DeleteFirst(Number),
    DeleteRest(Number),
    Swept(Number, Io),
    Abandon(u8, Io),
    DeleteOrphan(u8),
    Pin(Number, Io),
    MarkUnsafe(Number, Io),
    /// Dead, fenced or done.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Actor {
    task: Task,
    /// How far it has read the log.
    known: u8,
    /// For writers.
    parent: Option<Number>,
    saves: u8,
}

impl Actor {
    fn new(task: Task) -> Self {
        Self { task, known: 0, parent: None, saves: 0 }
    }

    fn stop(&mut self) {
        *self = Self::new(Task::Stopped);
    }
}

/// How many faults may still happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Faults {
    kills: u8,
    power_cuts: u8,
    failed_syncs: u8,
    rots: u8,
    /// A file cannot be read just now.
    unreadable: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// `None`: a power cut lost the name.
    log: Vec<Option<Entry>>,
    folders: Vec<Bytes>,
    /// Writers by epoch, then the housekeeper, then the actor that pins.
    actors: Vec<Actor>,
    /// Folders whose save was acknowledged.
    acknowledged: Vec<u8>,
    faults: Faults,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Step(usize, Task),
    /// The link was made and the sync after it fails: the answer is unknown.
    SyncFails(usize),
    Kill(usize),
    /// Bit n of `names`: the n-th name that was not synced stays. `bytes`: so do bytes.
    PowerCut {
        names: u8,
        bytes: bool,
    },
    Rot(u8),
    /// A writer resumes and cannot read so many of the newest candidates at present; they may be intact.
    Unreadable(usize, u8),
    PinStart(Number),
    UnsafeStart(Number),
}

#[derive(Debug, Clone)]
struct Disk {
    rules: Rules,
    /// Saves by writers of epoch 1, 2, ….
    saves: Vec<u8>,
    /// How many checkpoints epoch 1 has committed when the exploration begins.
    earlier: u8,
    housekeeper: bool,
    pinner: bool,
    /// The actor that pins marks commits unsafe instead, as many as are kept.
    marker: bool,
    faults: Faults,
}
