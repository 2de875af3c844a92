//! A model of two nodes with one truth: the log of a remote storage. On each node a trainer commits to its own disk
//! only, and a supervisor replays that into the truth, uploads the bytes, and asks the truth where to go on before it
//! launches a trainer. A housekeeper deletes in the remote storage, each node deletes on its own disk.
//!
//! Every action is one call of the remote storage or one step on a disk. A create may be answered, answered by
//! nothing although it happened, lost, or arrive later than its writer waits. A node that is out of reach is one whose
//! steps are not taken for a while. What happens on one disk between two crashes is the other model's part.

use stateright::{Model, Property};

use crate::explore::{assert_fails, assert_holds, extra_bound};

/// How many checkpoints whose bytes are in the remote storage are kept there, and how many are kept on a node's disk.
const KEEP: usize = 2;
const NODES: usize = 2;

/// A checkpoint: its index in [`State::checkpoints`]; stands for its prefix.
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
    /// Walks the truth for what can be had.
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
    /// What its trainer goes on from.
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
    /// Whoever read back and found nothing gives up and decides anew.
    GiveUp(usize),
    Save(usize),
    Start(usize),
    Crash(usize),
    LocalRetire(usize, Id),
    LocalDelete(usize, Id),
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    fence_checked: bool,
    /// A create whose answer was lost is won only if the own ULID stands there.
    ulid_compared: bool,
    /// A commit is not added when the truth has it already.
    replayed_once: bool,
    /// What waits from an attempt before is replayed under its own epoch before the next is claimed.
    drained_before_claim: bool,
    /// What waits is replayed under the epoch that wrote it.
    replayed_under_its_epoch: bool,
    /// Who meets a higher epoch while it looks for where to go on launches nothing.
    fence_seen_on_the_walk: bool,
    /// A trainer is launched on what the truth says, not on what its disk says.
    launched_on_truth: bool,
    /// An adopted copy that had to be fetched stands below a prefix never used before.
    fetched_to_new_prefix: bool,
    /// Retention in the remote storage counts only what is whole there.
    uploaded_count: bool,
    newest_epoch_awaited: bool,
    /// Deletes only what no live manifest reaches.
    shared_spared: bool,
    uploads_before_announcing: bool,
    /// Bytes that wait for their upload are not deleted on the disk.
    waiting_spared: bool,
}

const SOUND: Rules = Rules {
    fence_checked: true,
    ulid_compared: true,
    replayed_once: true,
    drained_before_claim: true,
    replayed_under_its_epoch: true,
    fence_seen_on_the_walk: true,
    launched_on_truth: true,
    fetched_to_new_prefix: true,
    uploaded_count: true,
    newest_epoch_awaited: true,
    shared_spared: true,
    uploads_before_announcing: true,
    waiting_spared: true,
};

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

/// What the truth says, up to some number.
struct Truth<'a> {
    entries: &'a [Entry],
    checkpoints: &'a [Checkpoint],
}

impl<'a> Truth<'a> {
    fn has(&self, body: Body) -> bool {
        self.entries.iter().any(|entry| entry.body == body)
    }

    fn claim(&self) -> (u8, u8) {
        let claim = |entry: &Entry| match entry.body {
            Body::Claim { epoch, node } => Some((epoch, node)),
            _ => None,
        };
        self.entries.iter().filter_map(claim).max().unwrap_or((0, 0))
    }

    /// Commits with the epoch they count for, oldest first.
    fn commits(&self) -> impl Iterator<Item = (Id, u8)> + use<'a> {
        self.entries.iter().filter_map(|entry| match entry.body {
            Body::Commit { id, epoch } => Some((id, epoch)),
            _ => None,
        })
    }

    fn has_commit(&self, id: Id) -> bool {
        self.commits().any(|(found, _)| found == id)
    }

    fn live(&self, id: Id) -> bool {
        self.has_commit(id) && !self.has(Body::Retire { id })
    }

    fn head(&self) -> Option<(Id, u8)> {
        self.commits().zip(0..).max_by_key(|((_, epoch), index)| (*epoch, *index)).map(|(commit, _)| commit)
    }

    /// From the newest commit of the newest epoch along the parents, retired ones too.
    fn chain(&self) -> Vec<Id> {
        let mut next = self.head().map(|(id, _)| id);
        let mut chain = Vec::new();
        while let Some(id) = next {
            chain.push(id);
            next = self.checkpoints[usize::from(id)].parent;
        }
        chain
    }

    fn uploaded_chain(&self) -> Vec<Id> {
        let there = |id: &Id| self.live(*id) && self.has(Body::Uploaded { id: *id });
        self.chain().into_iter().filter(there).collect()
    }
}

impl State {
    fn truth(&self) -> Truth<'_> {
        self.truth_at(self.truth.len())
    }

    fn truth_at(&self, known: usize) -> Truth<'_> {
        Truth { entries: &self.truth[..known], checkpoints: &self.checkpoints }
    }

    fn checkpoint(&self, id: Id) -> &Checkpoint {
        &self.checkpoints[usize::from(id)]
    }

    fn checkpoint_mut(&mut self, id: Id) -> &mut Checkpoint {
        &mut self.checkpoints[usize::from(id)]
    }

    /// Whether all its files are in the remote storage.
    fn whole_there(&self, id: Id) -> bool {
        let checkpoint = self.checkpoint(id);
        checkpoint.own_there && self.checkpoint(checkpoint.base_in).base_there
    }

    fn whole_here(&self, id: Id, node: usize) -> bool {
        let checkpoint = self.checkpoint(id);
        checkpoint.copied[node] || (checkpoint.here[node] && !checkpoint.retired_here[node])
    }
}

/// What became of adding an entry.
enum Added {
    NotYet(Io),
    Stands,
    /// The decision was to add nothing.
    Nothing,
    Fenced,
}

impl Remote {
    fn add(
        &self,
        state: &mut State,
        who: usize,
        io: Io,
        epoch: Option<u8>,
        decide: impl Fn(&Truth<'_>) -> Option<Body>,
    ) -> Added {
        match io {
            Io::Read => {
                let known = state.truth.len();
                state.nodes[who].known = known as u8;
                let truth = state.truth_at(known);
                let fenced = |(found, holder)| {
                    epoch.is_some_and(|epoch| found > epoch || (found == epoch && holder != who as u8))
                };
                if self.rules.fence_checked && fenced(truth.claim()) {
                    return Added::Fenced;
                }
                match decide(&truth) {
                    None => Added::Nothing,
                    Some(body) => Added::NotYet(Io::Create(Entry {
                        body,
                        ulid: (who as u8, state.nodes[who].given_up),
                    })),
                }
            }
            Io::Create(entry) if state.truth.len() == usize::from(state.nodes[who].known) => {
                state.truth.push(entry);
                Added::Stands
            }
            Io::Create(entry) => Added::NotYet(Io::ReadBack(entry)),
            Io::ReadBack(entry) => match state.truth.get(usize::from(state.nodes[who].known)) {
                None => Added::NotYet(Io::Create(entry)),
                Some(found) if *found == entry || !self.rules.ulid_compared => Added::Stands,
                Some(_) => Added::NotYet(Io::Read),
            },
        }
    }

    fn step(&self, state: &mut State, who: usize) {
        let next = match state.nodes[who].task {
            task @ (Task::Idle
            | Task::Retire(..)
            | Task::DeleteOwn(_)
            | Task::DeleteBases(_)
            | Task::Swept(..)) => self.keep_house(state, who, task),
            task => self.supervise(state, who, task),
        };
        let fenced = next == Task::Down;
        state.nodes[who].task = next;
        if fenced {
            state.nodes[who].known = 0;
        }
    }

    fn supervise(&self, state: &mut State, who: usize, task: Task) -> Task {
        let epoch = state.nodes[who].epoch;
        match task {
            Task::Down => Task::Down,
            Task::Drain => match self.waiting(state, who) {
                Some(id)
                    if self.rules.drained_before_claim && state.truth().claim() == (epoch, who as u8) =>
                {
                    Task::Replay(id, Io::Read)
                }
                _ => Task::Claim(Io::Read),
            },
            Task::Claim(io) => self.claim(state, who, io),
            Task::Walk if self.rules.fence_seen_on_the_walk && state.truth().claim().0 > epoch => Task::Down,
            Task::Walk => match self.nearest(state, who) {
                _ if !self.rules.launched_on_truth => Task::Adopt(self.newest_here(state, who)),
                Some(id) if !state.whole_here(id, who) => Task::Fetch(id),
                found => Task::Adopt(found),
            },
            Task::Fetch(id) => {
                // Whatever is missing by now is found by verifying: it is walked again.
                if !state.whole_there(id) {
                    return Task::Walk;
                }
                let new_prefix = self.rules.fetched_to_new_prefix;
                let checkpoint = state.checkpoint_mut(id);
                if new_prefix {
                    checkpoint.copied[who] = true;
                } else {
                    checkpoint.here[who] = true;
                    checkpoint.retired_here[who] = false;
                }
                Task::Adopt(Some(id))
            }
            Task::Adopt(found) => {
                let node = &mut state.nodes[who];
                (node.training, node.head, node.launched_from, node.saves) = (true, found, found, 0);
                Task::Run
            }
            Task::Run => self.next_job(state, who),
            Task::Replay(id, io) => self.replay(state, who, id, io),
            Task::UploadOwn(id) => {
                state.checkpoint_mut(id).own_there = true;
                Task::UploadBase(id)
            }
            Task::UploadBase(id) => {
                let checkpoint = state.checkpoint(id);
                if checkpoint.base_in == id {
                    state.checkpoint_mut(id).base_there = true;
                }
                Task::Announce(id, Io::Read)
            }
            Task::Announce(id, io) => {
                let body = Body::Uploaded { id };
                match self
                    .add(state, who, io, None, |truth| (truth.live(id) && !truth.has(body)).then_some(body))
                {
                    Added::NotYet(io) => Task::Announce(id, io),
                    Added::Stands if !self.rules.uploads_before_announcing => Task::UploadOwn(id),
                    _ => Task::Run,
                }
            }
            other => unreachable!("{other:?} is no supervisor's"),
        }
    }

    fn claim(&self, state: &mut State, who: usize, io: Io) -> Task {
        let node = who as u8;
        let added =
            self.add(state, who, io, None, |truth| Some(Body::Claim { epoch: truth.claim().0 + 1, node }));
        match added {
            Added::NotYet(io) => Task::Claim(io),
            Added::Stands => {
                let claimed = state.truth.iter().filter_map(|entry| match entry.body {
                    Body::Claim { epoch, node } if usize::from(node) == who => Some(epoch),
                    _ => None,
                });
                state.nodes[who].epoch = claimed.max().unwrap_or(u8::MAX);
                Task::Walk
            }
            Added::Nothing | Added::Fenced => Task::Down,
        }
    }

    /// The oldest checkpoint of this node's newest attempt that the truth does not have.
    fn waiting(&self, state: &State, who: usize) -> Option<Id> {
        let truth = state.truth();
        let epoch = state.nodes[who].epoch;
        let mine = |checkpoint: &Checkpoint| {
            usize::from(checkpoint.node) == who
                && (checkpoint.epoch == epoch || !self.rules.replayed_under_its_epoch)
        };
        let mut ids = (0..).zip(&state.checkpoints).filter(|(_, checkpoint)| mine(checkpoint));
        ids.find(|(id, _)| !truth.has_commit(*id)).map(|(id, _)| id)
    }

    fn nearest(&self, state: &State, who: usize) -> Option<Id> {
        let truth = state.truth();
        let to_be_had = |id: &Id| {
            truth.live(*id) && (state.whole_here(*id, who) || truth.has(Body::Uploaded { id: *id }))
        };
        truth.chain().into_iter().find(to_be_had)
    }

    fn newest_here(&self, state: &State, who: usize) -> Option<Id> {
        (0..state.checkpoints.len() as u8).rev().find(|id| state.checkpoint(*id).here[who])
    }

    fn next_job(&self, state: &State, who: usize) -> Task {
        if let Some(id) = self.waiting(state, who) {
            return Task::Replay(id, Io::Read);
        }
        let truth = state.truth();
        let unsent = |id: &Id| {
            truth.live(*id) && !truth.has(Body::Uploaded { id: *id }) && state.checkpoint(*id).here[who]
        };
        match (0..state.checkpoints.len() as u8).find(unsent) {
            Some(id) if self.rules.uploads_before_announcing => Task::UploadOwn(id),
            Some(id) => Task::Announce(id, Io::Read),
            None => Task::Run,
        }
    }

    fn replay(&self, state: &mut State, who: usize, id: Id, io: Io) -> Task {
        let epoch = state.nodes[who].epoch;
        let once = self.rules.replayed_once;
        let claiming = !state.nodes[who].training;
        let added = self.add(state, who, io, Some(epoch), |truth| {
            (!once || !truth.has_commit(id)).then_some(Body::Commit { id, epoch })
        });
        match added {
            Added::NotYet(io) => Task::Replay(id, io),
            Added::Stands | Added::Nothing if claiming => Task::Drain,
            Added::Stands | Added::Nothing => Task::Run,
            Added::Fenced if claiming => Task::Claim(Io::Read),
            Added::Fenced => {
                state.nodes[who].training = false;
                state.nodes[who].launched_from = None;
                Task::Down
            }
        }
    }

    fn retirable(&self, state: &State, truth: &Truth<'_>) -> Option<Id> {
        let (_, head_epoch) = truth.head()?;
        if self.rules.newest_epoch_awaited && head_epoch != truth.claim().0 {
            return None;
        }
        let counted = if self.rules.uploaded_count { truth.uploaded_chain() } else { truth.chain() };
        let newest = *counted.iter().filter(|id| truth.live(**id)).nth(KEEP - 1)?;
        let intact = counted.iter().take(KEEP).all(|id| !self.rules.uploaded_count || state.whole_there(*id));
        let chain = truth.chain();
        let older = chain.iter().skip_while(|id| **id != newest).skip(1);
        older.copied().filter(|_| intact).find(|id| truth.live(*id) && truth.has(Body::Uploaded { id: *id }))
    }

    fn keep_house(&self, state: &mut State, who: usize, task: Task) -> Task {
        match task {
            Task::Idle => match self.retirable(state, &state.truth()) {
                Some(id) => Task::Retire(id, Io::Read),
                None => Task::Idle,
            },
            Task::Retire(id, io) => {
                let snapshot = state.clone();
                let decide = |truth: &Truth<'_>| {
                    (self.retirable(&snapshot, truth) == Some(id)).then_some(Body::Retire { id })
                };
                match self.add(state, who, io, None, decide) {
                    Added::NotYet(io) => Task::Retire(id, io),
                    Added::Stands => Task::DeleteOwn(id),
                    Added::Nothing | Added::Fenced => Task::Idle,
                }
            }
            Task::DeleteOwn(id) => {
                state.checkpoint_mut(id).own_there = false;
                Task::DeleteBases(id)
            }
            Task::DeleteBases(id) => {
                // As of the retire entry; whatever was added since can only reach what was live then.
                let retired_at = state.truth.iter().position(|entry| entry.body == Body::Retire { id });
                let truth = state.truth_at(retired_at.map_or(0, |index| index + 1));
                let reached = |base: Id| {
                    truth.commits().any(|(id, _)| truth.live(id) && state.checkpoint(id).base_in == base)
                };
                let base = state.checkpoint(id).base_in;
                if !self.rules.shared_spared || !reached(base) {
                    state.checkpoint_mut(base).base_there = false;
                }
                Task::Swept(id, Io::Read)
            }
            Task::Swept(id, io) => {
                let body = Body::Swept { id };
                match self.add(state, who, io, None, |truth| (!truth.has(body)).then_some(body)) {
                    Added::NotYet(io) => Task::Swept(id, io),
                    _ => Task::Idle,
                }
            }
            other => unreachable!("{other:?} is no housekeeper's"),
        }
    }

    fn save(&self, state: &mut State, who: usize) {
        let id = state.checkpoints.len() as Id;
        let Node { epoch, head, .. } = state.nodes[who];
        let mut here = [false; NODES];
        here[who] = true;
        state.checkpoints.push(Checkpoint {
            node: who as u8,
            epoch,
            parent: head,
            base_in: head.map_or(id, |parent| state.checkpoint(parent).base_in),
            own_there: false,
            base_there: false,
            here,
            copied: [false; NODES],
            retired_here: [false; NODES],
        });
        state.nodes[who].head = Some(id);
        state.nodes[who].saves += 1;
    }

    /// What a node's own retention lets go: all but the newest two of its trainer's branch.
    fn locally_retirable(&self, state: &State, who: usize) -> Option<Id> {
        let mut chain = Vec::new();
        let mut next = state.nodes[who].head;
        while let Some(id) = next {
            chain.push(id);
            next = state.checkpoint(id).parent;
        }
        let truth = state.truth();
        let waits = |id: Id| self.rules.waiting_spared && !truth.has(Body::Uploaded { id });
        let here: Vec<_> = chain
            .into_iter()
            .filter(|id| state.checkpoint(*id).here[who] && !state.checkpoint(*id).retired_here[who])
            .collect();
        here.into_iter().skip(KEEP).find(|id| !waits(*id))
    }

    fn may_save(&self, state: &State, who: usize) -> bool {
        let node = &state.nodes[who];
        let limit = self.saves.get(usize::from(node.epoch).saturating_sub(1)).copied().unwrap_or(0);
        node.training && node.saves < limit
    }

    fn node_actions(&self, state: &State, who: usize, actions: &mut Vec<Action>) {
        let node = &state.nodes[who];
        let epochs_left = usize::from(state.truth().claim().0) < self.saves.len();
        if node.task == Task::Down && epochs_left {
            actions.push(Action::Start(who));
        }
        if self.may_save(state, who) {
            actions.push(Action::Save(who));
        }
        if node.task != Task::Down && state.faults.crashes > 0 {
            actions.push(Action::Crash(who));
        }
        if self.local_retention
            && node.deleting.is_none()
            && node.training
            && let Some(id) = self.locally_retirable(state, who)
        {
            actions.push(Action::LocalRetire(who, id));
        }
        actions.extend(node.deleting.map(|id| Action::LocalDelete(who, id)));
    }
}

impl Model for Remote {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = |task| Node {
            task,
            known: 0,
            given_up: 0,
            epoch: 0,
            training: false,
            head: None,
            launched_from: None,
            deleting: None,
            saves: 0,
        };
        let mut nodes = vec![node(Task::Down); NODES];
        nodes.push(node(if self.housekeeper { Task::Idle } else { Task::Down }));
        let mut state = State {
            truth: Vec::new(),
            on_its_way: None,
            checkpoints: Vec::new(),
            nodes,
            faults: self.faults,
        };
        state.nodes[0].task = Task::Claim(Io::Read);
        while state.nodes[0].task != Task::Run {
            self.step(&mut state, 0);
        }
        for id in 0..self.earlier {
            self.save(&mut state, 0);
            while !state.truth().has(Body::Uploaded { id }) {
                self.step(&mut state, 0);
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (who, node) in state.nodes.iter().enumerate() {
            if node.task != Task::Down {
                actions.push(Action::Step(who, node.task));
            }
            let io = match node.task {
                Task::Claim(io)
                | Task::Replay(_, io)
                | Task::Announce(_, io)
                | Task::Retire(_, io)
                | Task::Swept(_, io) => Some(io),
                _ => None,
            };
            match io {
                Some(Io::Create(entry)) if state.faults.lost_answers > 0 => {
                    actions.push(Action::AnswerLost(who, entry));
                    if state.on_its_way.is_none() {
                        actions.push(Action::Late(who, entry));
                    }
                }
                Some(Io::ReadBack(_))
                    if state.on_its_way.is_some() && state.truth.len() == usize::from(node.known) =>
                {
                    actions.push(Action::GiveUp(who));
                }
                _ => {}
            }
            if who < NODES {
                self.node_actions(state, who, actions);
            }
        }
        if state.on_its_way.is_some() {
            actions.push(Action::Arrives);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        let set_io = |state: &mut State, who: usize, new: Io| match &mut state.nodes[who].task {
            Task::Claim(io)
            | Task::Replay(_, io)
            | Task::Announce(_, io)
            | Task::Retire(_, io)
            | Task::Swept(_, io) => {
                *io = new;
            }
            other => unreachable!("{other:?} adds nothing"),
        };
        match action {
            Action::Step(who, _) => self.step(&mut state, who),
            Action::AnswerLost(who, entry) => {
                state.faults.lost_answers -= 1;
                if state.truth.len() == usize::from(state.nodes[who].known) {
                    state.truth.push(entry);
                }
                set_io(&mut state, who, Io::ReadBack(entry));
            }
            Action::Late(who, entry) => {
                state.faults.lost_answers -= 1;
                state.on_its_way = Some((state.nodes[who].known, entry));
                set_io(&mut state, who, Io::ReadBack(entry));
            }
            Action::Arrives => {
                let (known, entry) = state.on_its_way.take()?;
                if state.truth.len() == usize::from(known) {
                    state.truth.push(entry);
                }
            }
            Action::GiveUp(who) => {
                state.nodes[who].given_up += 1;
                set_io(&mut state, who, Io::Read);
            }
            Action::Save(who) => self.save(&mut state, who),
            Action::Start(who) => state.nodes[who].task = Task::Drain,
            Action::Crash(who) => {
                state.faults.crashes -= 1;
                let node = &mut state.nodes[who];
                (node.task, node.training, node.launched_from, node.known) = (Task::Down, false, None, 0);
            }
            Action::LocalRetire(who, id) => {
                state.checkpoint_mut(id).retired_here[who] = true;
                state.nodes[who].deleting = Some(id);
            }
            Action::LocalDelete(who, id) => {
                state.checkpoint_mut(id).here[who] = false;
                state.nodes[who].deleting = None;
            }
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no commit behind the claim of a higher epoch", |_, state: &State| {
                let mut newest = 0;
                state.truth.iter().all(|entry| match entry.body {
                    Body::Claim { epoch, .. } => {
                        newest = newest.max(epoch);
                        true
                    }
                    Body::Commit { epoch, .. } => epoch == newest,
                    _ => true,
                })
            }),
            Property::always("an epoch is claimed once", |_, state: &State| {
                let epochs = state.truth.iter().filter_map(|entry| match entry.body {
                    Body::Claim { epoch, .. } => Some(epoch),
                    _ => None,
                });
                epochs.eq(1..=state.truth().claim().0)
            }),
            Property::always("whoever trains holds an epoch of its own", |_, state: &State| {
                let holds = |(who, node): (usize, &Node)| {
                    let node_number = who as u8;
                    !node.training || state.truth().has(Body::Claim { epoch: node.epoch, node: node_number })
                };
                state.nodes.iter().enumerate().take(NODES).all(holds)
            }),
            Property::always("what is uploaded and not retired is whole there", |_, state: &State| {
                let truth = state.truth();
                let intact =
                    |id: u8| !truth.live(id) || !truth.has(Body::Uploaded { id }) || state.whole_there(id);
                (0..state.checkpoints.len() as u8).all(intact)
            }),
            Property::always("a checkpoint is committed once, behind its parent", |_, state: &State| {
                let ids: Vec<_> = state.truth().commits().map(|(id, _)| id).collect();
                ids.iter().enumerate().all(|(index, id)| {
                    let parent = state.checkpoint(*id).parent;
                    !ids[..index].contains(id) && parent.is_none_or(|parent| ids[..index].contains(&parent))
                })
            }),
            Property::always(
                "an attempt goes on along the branch of the epoch before",
                |_, state: &State| {
                    state.checkpoints.iter().all(|checkpoint| {
                        let claimed = state.truth.iter().position(
                        |entry| matches!(entry.body, Body::Claim { epoch, .. } if epoch == checkpoint.epoch),
                    );
                        let before = state.truth_at(claimed.unwrap_or(0)).chain();
                        let from = checkpoint
                            .parent
                            .filter(|parent| state.checkpoint(*parent).epoch != checkpoint.epoch);
                        from.is_none_or(|from| before.contains(&from))
                    })
                },
            ),
            Property::always("a commit counts for the epoch that trained it", |_, state: &State| {
                state.truth().commits().all(|(id, epoch)| state.checkpoint(id).epoch == epoch)
            }),
            Property::always("work is lost only to another node", |_, state: &State| {
                let truth = state.truth();
                (0..).zip(&state.checkpoints).all(|(id, checkpoint)| {
                    let next = state.truth.iter().find_map(|entry| match entry.body {
                        Body::Claim { epoch, node } if epoch == checkpoint.epoch + 1 => Some(node),
                        _ => None,
                    });
                    truth.has_commit(id) || next != Some(checkpoint.node)
                })
            }),
            Property::always("what was launched from stays whole while it is needed", |_, state: &State| {
                let intact = |(who, node): (usize, &Node)| {
                    let Some(from) = node.launched_from.filter(|from| node.head == Some(*from)) else {
                        return true;
                    };
                    state.checkpoint(from).copied[who] || state.checkpoint(from).here[who]
                };
                state.nodes.iter().enumerate().take(NODES).all(intact)
            }),
            Property::always("two are left there wherever one was retired", |_, state: &State| {
                let truth = state.truth();
                let any = truth.entries.iter().any(|entry| matches!(entry.body, Body::Retire { .. }));
                !any || truth.uploaded_chain().len() >= KEEP
            }),
            Property::always("bytes are somewhere until they are retired there", |_, state: &State| {
                let truth = state.truth();
                (0..).zip(&state.checkpoints).all(|(id, checkpoint)| {
                    !truth.live(id) || state.whole_there(id) || checkpoint.here != [false; NODES]
                })
            }),
            Property::sometimes("work that waited is fenced", |_, state: &State| {
                let truth = state.truth();
                (0..)
                    .zip(&state.checkpoints)
                    .any(|(id, it)| it.epoch < truth.claim().0 && !truth.has_commit(id))
            }),
        ];
        if self.saves.len() > 2 {
            properties.push(Property::sometimes(
                "a node comes back to the other's work",
                |_, state: &State| {
                    state.nodes.iter().enumerate().take(NODES).any(|(who, node)| {
                        node.epoch == 3
                            && node.training
                            && node
                                .launched_from
                                .is_some_and(|id| usize::from(state.checkpoint(id).node) != who)
                    })
                },
            ));
        }
        if self.housekeeper {
            properties.push(Property::sometimes("retired and swept", |_, state: &State| {
                state.truth.iter().any(|entry| matches!(entry.body, Body::Swept { .. }))
            }));
        }
        if self.faults.lost_answers > 0 {
            properties.push(Property::sometimes("a create arrives late", |_, state: &State| {
                state.nodes.iter().any(|node| node.given_up > 0) && state.on_its_way.is_none()
            }));
        }
        properties
    }
}

fn nodes(rules: Rules) -> Remote {
    let more = extra_bound();
    Remote {
        rules,
        saves: vec![2 + more, 1, 1],
        earlier: 1,
        housekeeper: false,
        local_retention: false,
        faults: Faults { crashes: 1 + more, lost_answers: 1 },
    }
}

fn answers(rules: Rules) -> Remote {
    let more = extra_bound();
    Remote {
        rules,
        saves: vec![2, 1],
        earlier: 1,
        housekeeper: false,
        local_retention: false,
        faults: Faults { crashes: more, lost_answers: 2 },
    }
}

fn retention(rules: Rules) -> Remote {
    let more = extra_bound();
    Remote {
        rules,
        saves: vec![4, 1 + more],
        earlier: 2,
        housekeeper: true,
        local_retention: false,
        faults: Faults { crashes: more, lost_answers: 0 },
    }
}

fn disks(rules: Rules) -> Remote {
    let more = extra_bound();
    Remote {
        rules,
        saves: vec![4, 1, 1 + more],
        earlier: 1,
        housekeeper: false,
        local_retention: true,
        faults: Faults { crashes: more, lost_answers: 0 },
    }
}

/// Proves B1 to B3 of the protocol with a remote storage, in every order of steps, with crashes and lost answers.
#[test]
fn the_protocol_with_a_remote_holds() {
    assert_holds("nodes", nodes(SOUND));
    assert_holds("answers", answers(SOUND));
    assert_holds("remote retention", retention(SOUND));
    assert_holds("disks", disks(SOUND));
}

/// Proves that the properties can fail: each rule of the protocol, left out, breaks one.
#[test]
fn every_rule_with_a_remote_is_needed() {
    const FENCED: &str = "no commit behind the claim of a higher epoch";
    const ON_BRANCH: &str = "an attempt goes on along the branch of the epoch before";
    const ONCE: &str = "a checkpoint is committed once, behind its parent";
    const WHOLE: &str = "what is uploaded and not retired is whole there";
    const TWO: &str = "two are left there wherever one was retired";
    assert_fails("the fence is not checked", nodes(Rules { fence_checked: false, ..SOUND }), FENCED);
    assert_fails(
        "claimed while own work waits",
        nodes(Rules { drained_before_claim: false, ..SOUND }),
        "work is lost only to another node",
    );
    assert_fails(
        "what was fenced is replayed under a new epoch",
        nodes(Rules { replayed_under_its_epoch: false, ..SOUND }),
        "a commit counts for the epoch that trained it",
    );
    assert_fails(
        "launched although fenced on the way",
        nodes(Rules { fence_seen_on_the_walk: false, ..SOUND }),
        ON_BRANCH,
    );
    assert_fails(
        "launched on what the disk says",
        nodes(Rules { launched_on_truth: false, ..SOUND }),
        ON_BRANCH,
    );
    assert_fails(
        "announced before it is uploaded",
        nodes(Rules { uploads_before_announcing: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "any ULID will do",
        answers(Rules { ulid_compared: false, ..SOUND }),
        "whoever trains holds an epoch of its own",
    );
    assert_fails("replayed without a look", answers(Rules { replayed_once: false, ..SOUND }), ONCE);
    assert_fails("what is not there counts", retention(Rules { uploaded_count: false, ..SOUND }), TWO);
    assert_fails(
        "retired while a new epoch is on its way",
        retention(Rules { newest_epoch_awaited: false, ..SOUND }),
        TWO,
    );
    assert_fails("shared files are deleted", retention(Rules { shared_spared: false, ..SOUND }), WHOLE);
    assert_fails(
        "fetched to where it was deleted",
        disks(Rules { fetched_to_new_prefix: false, ..SOUND }),
        "what was launched from stays whole while it is needed",
    );
    assert_fails(
        "deleted while it waits",
        disks(Rules { waiting_spared: false, ..SOUND }),
        "bytes are somewhere until they are retired there",
    );
}
