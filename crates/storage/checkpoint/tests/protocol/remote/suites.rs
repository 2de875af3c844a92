//! The configurations that are explored.

use super::rules::{Rules, SOUND};
use super::{Faults, Remote};
use crate::explore::{Extra, assert_fails, assert_holds};

fn nodes(rules: Rules) -> Remote {
    let more = Extra::asked_for();
    Remote {
        rules,
        saves: vec![2 + more.saves, 1, 1],
        earlier: 1,
        housekeeper: false,
        local_retention: false,
        faults: Faults { crashes: 1 + more.faults, lost_answers: 1 },
    }
}

fn answers(rules: Rules) -> Remote {
    let more = Extra::asked_for();
    Remote {
        rules,
        saves: vec![2, 1],
        earlier: 1,
        housekeeper: false,
        local_retention: false,
        faults: Faults { crashes: more.faults, lost_answers: 2 },
    }
}

fn retention(rules: Rules) -> Remote {
    let more = Extra::asked_for();
    Remote {
        rules,
        saves: vec![4, 1 + more.saves],
        earlier: 2,
        housekeeper: true,
        local_retention: false,
        faults: Faults { crashes: more.faults, lost_answers: 0 },
    }
}

fn disks(rules: Rules) -> Remote {
    let more = Extra::asked_for();
    Remote {
        rules,
        saves: vec![4, 1, 1 + more.saves],
        earlier: 1,
        housekeeper: false,
        local_retention: true,
        faults: Faults { crashes: more.faults, lost_answers: 0 },
    }
}

/// Proves that two nodes which take over from each other, crash and come back keep one truth.
#[test]
fn nodes_have_one_truth() {
    assert_holds("nodes", nodes(SOUND));
}

/// Proves that answers which are lost, and writes that arrive late, make no difference.
#[test]
fn answers_may_be_lost() {
    assert_holds("answers", answers(SOUND));
}

/// Proves that deleting in the remote storage leaves two intact checkpoints and the files they share.
#[test]
fn remote_retention_takes_nothing_that_is_needed() {
    assert_holds("remote retention", retention(SOUND));
}

/// Proves that a node's disk may delete what is elsewhere, and no more.
#[test]
fn disks_delete_what_is_elsewhere() {
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
