//! A model of two nodes with one authoritative log in a remote storage. On each node a trainer commits only to the
//! local disk, and a supervisor replays that into the remote log, uploads the bytes, and reads from the log where to
//! continue before it launches a trainer. A housekeeper deletes in the remote storage, each node deletes on its disk.
//!
//! Every action is one call of the remote storage or one step on a disk. A create may be answered, answered by
//! nothing although it happened, lost, or arrive later than its writer waits. A node that is out of reach is one whose
//! steps are not taken for a while. What happens on one disk between two crashes is the other model's part.
//!
//! `supervisor.rs`, `keeper.rs` and `trainer.rs` are the actors, `adding.rs` adds entries when answers may be lost,
//! `truth.rs` reads the log, `properties.rs` has the invariants; `suites.rs` chooses what is explored.

mod adding;
mod keeper;
mod model;
mod properties;
mod rules;
mod suites;
mod supervisor;
mod trainer;
mod truth;

use rules::Rules;

/// How many checkpoints whose bytes are in the remote storage are kept there, and how many are kept on a node's disk.
const KEEP: usize = 2;
const NODES: usize = 2;

/// A checkpoint: its index in [`State::checkpoints`]; represents its prefix.
type Id = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Body {
    Claim { epoch: u8, node: u8 },
    Commit { id: Id, epoch: u8 },
    Uploaded { id: Id },
    Retire { id: Id },
    Swept { id: Id },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    body: Body,
    /// Unique to a decision: its writer, and how often that gave up on one before.
    ulid: (u8, u8),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Checkpoint {
    node: u8,
    epoch: u8,
    parent: Option<Id>,
    /// Whose prefix holds the file that never changes, shared from parent to child.
    base_in: Id,
    /// In the remote storage: its own file, and the unchanged one if it is stored here.
    own_there: bool,
    base_there: bool,
    /// On the nodes' disks: the bytes below its prefix, and below a new one made for an adopted copy.
    here: [bool; NODES],
    copied: [bool; NODES],
    /// The disks whose logs retired it.
    retired_here: [bool; NODES],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Io {
    /// Reads the log to its end and decides.
    Read,
    /// Creates the next number.
    Create(Entry),
    /// The answer was lost: reads that number back.
    ReadBack(Entry),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Task {
    Down,
    /// Replays what waits from before, while its epoch is still the newest.
    Drain,
    Claim(Io),
    /// Walks the remote log for what is available.
    Walk,
    Fetch(Id),
    Adopt(Option<Id>),
    Run,
    Replay(Id, Io),
    UploadOwn(Id),
    UploadBase(Id),
    Announce(Id, Io),
    // The housekeeper's:
    Idle,
    Retire(Id, Io),
    DeleteOwn(Id),
    DeleteBases(Id),
    Swept(Id, Io),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    task: Task,
    /// How far it has read the truth.
    known: u8,
    /// How often it gave up on a create.
    given_up: u8,
    /// The epoch of its newest attempt; 0: none yet.
    epoch: u8,
    training: bool,
    /// What its trainer continues from.
    head: Option<Id>,
    /// What its attempt was launched from, while it runs.
    launched_from: Option<Id>,
    /// What its own retention deletes just now.
    deleting: Option<Id>,
    saves: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Faults {
    crashes: u8,
    lost_answers: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    truth: Vec<Entry>,
    /// A create that its writer no longer waits for and that may still arrive, and the number it is for.
    on_its_way: Option<(u8, Entry)>,
    checkpoints: Vec<Checkpoint>,
    /// The nodes, then the housekeeper.
    nodes: Vec<Node>,
    faults: Faults,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Step(usize, Task),
    /// The create happens, and its answer is lost.
    AnswerLost(usize, Entry),
    /// The create is on its way when its writer stops waiting.
    Late(usize, Entry),
    Arrives,
    /// A process that read back and found nothing gives up and decides again.
    GiveUp(usize),
    Save(usize),
    Start(usize),
    Crash(usize),
    LocalRetire(usize, Id),
    LocalDelete(usize, Id),
}

#[derive(Debug, Clone)]
struct Remote {
    rules: Rules,
    /// How often attempts of epoch 1, 2, … save.
    saves: Vec<u8>,
    /// How many checkpoints node 0 has committed and uploaded when the exploration begins.
    earlier: u8,
    housekeeper: bool,
    local_retention: bool,
    faults: Faults,
}
