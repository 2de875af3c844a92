//! The configurations that are explored.

use super::rules::{Rules, SOUND};
use super::{Disk, Faults};
use crate::explore::{Extra, assert_fails, assert_holds};

fn crashes(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![1 + more.saves, 1, 1],
        earlier: 0,
        housekeeper: false,
        pinner: false,
        marker: false,
        faults: Faults {
            kills: 1 + more.faults,
            power_cuts: 1 + more.faults,
            failed_syncs: 1,
            ..Faults::default()
        },
    }
}

/// A writer that continues while another replaces it and the housekeeper deletes.
fn retention(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![4 + more.saves, 1],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        marker: false,
        faults: Faults { unreadable: 1, kills: more.faults, ..Faults::default() },
    }
}

/// A housekeeper that crashes, and a writer that comes after it.
fn deletion(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![3, 1 + more.saves],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        marker: false,
        faults: Faults { kills: 1, power_cuts: 1, ..Faults::default() },
    }
}

fn pins(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![3 + more.saves, 1],
        earlier: 3,
        housekeeper: true,
        pinner: true,
        marker: false,
        faults: Faults { kills: more.faults, ..Faults::default() },
    }
}

/// A commit is found to be unsafe while the housekeeper deletes and another writer begins.
fn unsafe_marks(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![3 + more.saves, 1],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        marker: true,
        faults: Faults { kills: more.faults, ..Faults::default() },
    }
}

fn rot(rules: Rules) -> Disk {
    let more = Extra::asked_for();
    Disk {
        rules,
        saves: vec![3, 2 + more.saves],
        earlier: 3,
        housekeeper: true,
        pinner: false,
        marker: false,
        faults: Faults { rots: 1, unreadable: 1, ..Faults::default() },
    }
}

/// Proves that writers which crash, lose power and meet failed syncs keep B1 to B3.
#[test]
fn crashes_are_survived() {
    assert_holds("crashes", crashes(SOUND));
}

/// Proves that deleting while one writer replaces another deletes nothing that is needed.
#[test]
fn retention_takes_nothing_that_is_needed() {
    assert_holds("retention", retention(SOUND));
}

/// Proves that the next process finishes a deletion that is interrupted anywhere.
#[test]
fn deletion_may_be_cut_off() {
    assert_holds("deletion", deletion(SOUND));
}

/// Proves that a pin holds from its entry on.
#[test]
fn pins_hold() {
    assert_holds("pins", pins(SOUND));
}

/// Proves that nothing continues from what is marked unsafe, and that the newest safe commit is not deleted for it.
#[test]
fn what_is_unsafe_is_passed() {
    assert_holds("unsafe marks", unsafe_marks(SOUND));
}

/// Proves that decayed bytes are skipped, and that no process takes an unreadable file for a decayed one.
#[test]
fn rot_is_passed() {
    assert_holds("rot", rot(SOUND));
}

/// Proves that the properties can fail: each rule of the protocol, left out, breaks one.
#[test]
fn every_rule_on_a_disk_is_needed() {
    const WHOLE: &str = "a commit that is not retired is whole";
    assert_fails(
        "bytes are not synced",
        crashes(Rules { bytes_synced_before_commit: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "names are not synced",
        crashes(Rules { names_synced_before_commit: false, ..SOUND }),
        WHOLE,
    );
    assert_fails("commit before the data", crashes(Rules { commit_behind_data: false, ..SOUND }), WHOLE);
    assert_fails(
        "the fence is not checked",
        crashes(Rules { fence_checked: false, ..SOUND }),
        "no commit behind the claim of a higher epoch",
    );
    assert_fails(
        "the next number is linked before the last is durable",
        crashes(Rules { settled_before_link: false, ..SOUND }),
        "every entry was decided on all before it",
    );
    assert_fails(
        "found by reading back and not synced",
        crashes(Rules { acknowledged_when_synced: false, ..SOUND }),
        "what was acknowledged is in the log",
    );
    assert_fails(
        "deleted before it is retired",
        deletion(Rules { retired_before_delete: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "deleted on the word of an entry that is not durable",
        deletion(Rules { settled_before_delete: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "retired while a new epoch is on its way",
        retention(Rules { newest_epoch_awaited: false, ..SOUND }),
        "two are left wherever one was retired",
    );
    assert_fails(
        "one kept is enough",
        retention(Rules { two_verified_kept: false, ..SOUND }),
        "two are left wherever one was retired",
    );
    assert_fails(
        "orphans of the living are swept",
        retention(Rules { orphans_of_older_epochs: false, abandoned_seen: false, ..SOUND }),
        WHOLE,
    );
    assert_fails(
        "pins are passed over",
        pins(Rules { pins_respected: false, ..SOUND }),
        "nothing pinned is retired",
    );
    assert_fails(
        "a resume takes what is unsafe",
        unsafe_marks(Rules { unsafe_skipped: false, ..SOUND }),
        "nothing continues from what was unsafe before it began",
    );
    assert_fails(
        "what is unsafe counts among the newest",
        unsafe_marks(Rules { safe_kept: false, ..SOUND }),
        "the newest safe one is not retired",
    );
    let hasty = Rules { decided_again: false, ..SOUND };
    assert_fails("pinned meanwhile", pins(hasty), "nothing pinned is retired");
    assert_fails("fenced meanwhile", crashes(hasty), "every entry was decided on all before it");
}
