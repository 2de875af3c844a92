//! What must hold at the end, and that training can continue.

use std::sync::Arc;

use trackway_store::{Backend, Log, RealDisk};

use super::oracle::Truth;
use super::{HOUSE, NODES, Node, Play};
use crate::history::History;
use crate::remote::tests::check_remote;
use crate::{CheckpointError, CheckpointState, CheckpointView, Kind};

/// How much newer the checkpoint is that is saved when all is over.
const STEPS_LATER: u64 = 1_000;

/// Checks everything, and returns the lines of the truth as they were before.
pub(super) fn check(play: &Play) -> Vec<String> {
    let situation = &play.situation;
    let truth = Truth::of(&whole_log(play));
    assert_eq!(truth.faults, [""; 0], "{situation}: {:#?}", truth.lines);
    check_launches(play, &truth);
    for node in play.nodes.iter().take(NODES) {
        check_saves(node, situation);
    }
    hand_over_everything(play);
    check_nothing_is_lost(play, &Truth::of(&whole_log(play)));
    go_on(play);
    truth.lines
}

fn whole_log(play: &Play) -> Log<History> {
    let world = &play.nodes[HOUSE].world;
    Log::open_whole(remote(play), world.clock.clone(), world.ids.clone()).unwrap()
}

fn remote(play: &Play) -> Arc<dyn Backend> {
    Arc::clone(&play.remote) as _
}

/// Checks that each attempt that trained was granted its epoch by the remote, alone, and continued from where its epoch
/// may continue.
fn check_launches(play: &Play, truth: &Truth) {
    let situation = &play.situation;
    for launch in play.launches.lock().unwrap().iter() {
        let granted = truth.claims.iter().find(|claim| claim.epoch == launch.epoch);
        let granted = granted.map(|claim| claim.attempt_id);
        assert_eq!(granted, Some(launch.attempt_id), "{situation}: epoch {} was not granted", launch.epoch);
        let from_branch = launch.from.is_none_or(|from| truth.could_go_on_from(launch.epoch, from));
        assert!(from_branch, "{situation}: epoch {} went on from {:?}", launch.epoch, launch.from);
    }
}

/// Checks that what was acknowledged is on its disk, and verifies unless retention deleted it.
fn check_saves(node: &Node, situation: &str) {
    let saved = node.saved.lock().unwrap();
    if saved.is_empty() {
        return;
    }
    let view = CheckpointView::open(&node.world.path()).unwrap();
    assert_eq!(view.damaged_entries(), vec![], "{situation}");
    let list = view.list();
    for save in saved.iter() {
        let found = list.iter().find(|info| info.number == save.number);
        let found = found.unwrap_or_else(|| panic!("{situation}: commit {} is lost", save.number));
        assert_eq!(found.manifest_sha256.as_ref(), Some(&save.sha256), "{situation}");
    }
    for info in list
        .iter()
        .filter(|info| matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded))
    {
        let verified = view.verify(info.number);
        verified.unwrap_or_else(|error| panic!("{situation}: commit {}: {error}", info.number));
    }
    let suspect = list.iter().find(|info| info.state == CheckpointState::Suspect);
    assert!(suspect.is_none(), "{situation}: {suspect:?}");
}

/// The storms are over: whatever waits goes to the remote, or is fenced.
fn hand_over_everything(play: &Play) {
    for node in play.nodes.iter().take(NODES) {
        let mut replica = node.world.replica(&remote(play)).unwrap();
        match replica.hand_over() {
            Ok(_) | Err(CheckpointError::Fenced { .. }) => {}
            Err(error) => panic!("{}: {error}", play.situation),
        }
        while replica.upload_next(None, &|_, _| {}).unwrap().is_some() {}
    }
}

/// Checks that work is lost only to another node's claim, or to that of a node whose trainer was still running; and
/// that what a resume reaches can be fetched from the remote, with all its shared files.
fn check_nothing_is_lost(play: &Play, truth: &Truth) {
    let situation = &play.situation;
    for node in play.nodes.iter().take(NODES) {
        let zombies = node.zombies.lock().unwrap();
        for save in node.saved.lock().unwrap().iter().filter(|save| !truth.has(&save.sha256)) {
            let next = truth.claim_after(save.epoch).map(|claim| claim.attempt_id);
            let to_itself = next.is_none_or(|next| node.attempts.lock().unwrap().contains(&next));
            let zombie = zombies.contains(&save.epoch);
            assert!(!to_itself || zombie, "{situation}: epoch {} lost {}", save.epoch, save.number);
        }
    }
    let house = &play.nodes[HOUSE].world;
    check_remote(house, &remote(play), situation);
    let list = house.replica(&remote(play)).unwrap().remote_list();
    let newest = list.iter().filter(|info| info.on_branch).max_by_key(|info| (info.epoch, info.number));
    assert!(newest.is_none_or(|info| info.uploaded_to.is_some()), "{situation}: {newest:?} is nowhere");
}

/// Each node, and then an empty machine, continues from the newest commit of the remote, and its work is committed
/// there.
fn go_on(play: &Play) {
    let situation = &play.situation;
    let empty = play.nodes[HOUSE].world.other_machine();
    let worlds = play.nodes.iter().take(NODES).map(|node| &node.world).chain([&empty]);
    for (world, later) in worlds.zip(1..) {
        let newest = whole_log(play).state().newest_step();
        let attempt_id = world.attempt();
        let mut replica = world.replica(&remote(play)).unwrap();
        let fetched = replica.fetch_target(world.run_id(), attempt_id, 1, play.policy.as_ref());
        let fetched = fetched.unwrap_or_else(|error| panic!("{situation}: {error}"));
        assert_eq!(fetched.fallbacks, [], "{situation}");
        let step = fetched.target.map(|target| target.step);
        assert_eq!(step, newest, "{situation}");
        let mut root =
            world.open_keeping(Arc::new(RealDisk), fetched.epoch, attempt_id, play.policy.clone()).unwrap();
        let resumed = root.resume_target().unwrap().map(|target| target.step);
        assert_eq!(resumed, newest, "{situation}");
        let step = later * STEPS_LATER;
        root.save(step, &[], |writer| writer.file("head.bin", Kind::Weights, &step.to_le_bytes())).unwrap();
        replica.hand_over().unwrap();
        while replica.upload_next(None, &|_, _| {}).unwrap().is_some() {}
        assert_eq!(replica.standing(None).uploaded_step, Some(step), "{situation}");
    }
}
