//! When a checkpoint is complete, as tables of what was seen.

use crate::settling::{
    Answer, Because, DEFAULT_QUIET_NS, MAX_QUIET_NS, Observation, Settling, UNVERIFIED_PERIODS,
};
use crate::{By, Fingerprint, Tree, Wholeness};

const S: u64 = 1_000_000_000;

fn fingerprint(size: usize) -> Option<Fingerprint> {
    let mut tree = Tree::default();
    tree.add("f", vec![0; size]);
    tree.listing().fingerprint("f")
}

/// A closed file of one byte that is whole by its structure, at this time.
fn seen(at_ns: u64) -> Observation {
    Observation {
        at_ns,
        fingerprint: fingerprint(1),
        wholeness: Wholeness::Whole { by: By::Structure },
        is_open_for_writing: Some(false),
        reported_complete: false,
        renamed_into_place: false,
        writers_ended: false,
    }
}

fn marker() -> Wholeness {
    Wholeness::Whole { by: By::Marker("last".to_owned()) }
}

fn torn() -> Wholeness {
    Wholeness::Torn { file: "f".to_owned(), what: "it ends early".to_owned() }
}

fn unfinished() -> Wholeness {
    Wholeness::Unfinished { what: "`last` is missing".to_owned() }
}

fn cannot_tell() -> Wholeness {
    Wholeness::CannotTell { why: "a format".to_owned() }
}

fn complete(because: Because) -> Answer {
    Answer::Complete { because }
}

/// Looks whenever the answer says so, from a time on; the answer that is none to wait, and the seconds until then.
fn look(settling: &mut Settling, from: u64, observation: &Observation) -> Option<(Answer, u64)> {
    let mut at_ns = from;
    for _ in 0..200 {
        match settling.observe(&Observation { at_ns, ..observation.clone() }) {
            Answer::Wait { until_ns } => {
                assert!(until_ns > at_ns, "a wait must end later");
                at_ns = until_ns;
            }
            answer => return Some((answer, (at_ns - from) / S)),
        }
    }
    None
}

/// Proves what each single look means, by what is known: a table.
#[test]
fn one_look() {
    type Change = fn(&mut Observation);
    let cases: [(&str, Change, Option<Answer>); 18] = [
        ("whole", |_| {}, None),
        ("reported", |o| o.reported_complete = true, Some(complete(Because::Reported))),
        (
            "reported, cannot tell",
            |o| (o.reported_complete, o.wholeness) = (true, cannot_tell()),
            Some(complete(Because::Reported)),
        ),
        ("reported, torn", |o| (o.reported_complete, o.wholeness) = (true, torn()), None),
        ("marker", |o| o.wholeness = marker(), Some(complete(Because::Marker))),
        ("marker, open", |o| (o.wholeness, o.is_open_for_writing) = (marker(), Some(true)), None),
        ("renamed", |o| o.renamed_into_place = true, Some(complete(Because::Renamed))),
        ("renamed, cannot tell", |o| (o.renamed_into_place, o.wholeness) = (true, cannot_tell()), None),
        ("renamed, unfinished", |o| (o.renamed_into_place, o.wholeness) = (true, unfinished()), None),
        ("renamed, open", |o| (o.renamed_into_place, o.is_open_for_writing) = (true, Some(true)), None),
        ("torn", |o| o.wholeness = torn(), None),
        ("gone", |o| o.fingerprint = None, Some(Answer::Gone)),
        ("ended", |o| o.writers_ended = true, Some(complete(Because::Ended))),
        (
            "ended, open by a dead process",
            |o| (o.is_open_for_writing, o.writers_ended) = (Some(true), true),
            Some(complete(Because::Ended)),
        ),
        (
            "ended, marker",
            |o| (o.wholeness, o.writers_ended) = (marker(), true),
            Some(complete(Because::Marker)),
        ),
        (
            "ended, torn",
            |o| (o.wholeness, o.writers_ended) = (torn(), true),
            Some(Answer::Torn { what: "`f`: it ends early".to_owned() }),
        ),
        (
            "ended, unfinished",
            |o| (o.wholeness, o.writers_ended) = (unfinished(), true),
            Some(Answer::Torn { what: "`last` is missing".to_owned() }),
        ),
        ("ended, cannot tell", |o| (o.wholeness, o.writers_ended) = (cannot_tell(), true), None),
    ];
    for (name, change, wanted) in cases {
        let mut observation = seen(100 * S);
        change(&mut observation);
        let answer = Settling::new(DEFAULT_QUIET_NS).observe(&observation);
        match wanted {
            Some(wanted) => assert_eq!(answer, wanted, "{name}"),
            None => assert!(
                matches!(answer, Answer::Wait { until_ns } if until_ns > 100 * S),
                "{name}: {answer:?}"
            ),
        }
    }
}

/// Proves what is answered after waiting, and after how many seconds: a table.
#[test]
fn after_waiting() {
    type Change = fn(&mut Observation);
    type Case = (&'static str, Change, Option<(Answer, u64)>);
    let unverified = 2 * UNVERIFIED_PERIODS;
    let cases: [Case; 8] = [
        ("whole", |_| {}, Some((complete(Because::Quiet), 2))),
        (
            "whole, not known whether open",
            |o| o.is_open_for_writing = None,
            Some((complete(Because::Quiet), 2)),
        ),
        ("whole, open", |o| o.is_open_for_writing = Some(true), None),
        (
            "cannot tell",
            |o| o.wholeness = cannot_tell(),
            Some((complete(Because::QuietUnverified), unverified)),
        ),
        (
            "cannot tell, nor whether open",
            |o| (o.wholeness, o.is_open_for_writing) = (cannot_tell(), None),
            None,
        ),
        ("torn", |o| o.wholeness = torn(), Some((Answer::Torn { what: "`f`: it ends early".to_owned() }, 2))),
        ("unfinished", |o| o.wholeness = unfinished(), None),
        (
            "cannot tell, the script has ended",
            |o| (o.wholeness, o.writers_ended) = (cannot_tell(), true),
            Some((complete(Because::QuietUnverified), 2)),
        ),
    ];
    for (name, change, wanted) in cases {
        let mut observation = seen(0);
        change(&mut observation);
        assert_eq!(look(&mut Settling::new(DEFAULT_QUIET_NS), 50 * S, &observation), wanted, "{name}");
    }
}

/// Proves that each change starts the quiet period again, and that a file which is overwritten is complete again later.
#[test]
fn changes_start_again() {
    let mut settling = Settling::new(DEFAULT_QUIET_NS);
    for second in 0..10 {
        let observation = Observation { fingerprint: fingerprint(second as usize + 1), ..seen(second * S) };
        assert!(matches!(settling.observe(&observation), Answer::Wait { .. }), "second {second}");
    }
    let last = Observation { fingerprint: fingerprint(10), ..seen(0) };
    assert_eq!(look(&mut settling, 10 * S, &last), Some((complete(Because::Quiet), 1)));
    let overwritten = Observation { fingerprint: fingerprint(11), ..seen(0) };
    assert_eq!(look(&mut settling, 20 * S, &overwritten), Some((complete(Because::Quiet), 2)));
}

/// Proves that a clock that jumps forward completes nothing early, and one that jumps back neither completes nor hangs.
#[test]
fn clocks_that_jump() {
    let mut settling = Settling::new(DEFAULT_QUIET_NS);
    assert!(matches!(settling.observe(&seen(10 * S)), Answer::Wait { .. }));
    assert!(matches!(settling.observe(&seen(10_000 * S)), Answer::Wait { .. }), "an hour in one look");
    let Answer::Wait { until_ns } = settling.observe(&seen(5 * S)) else { panic!("it went back") };
    assert!(until_ns <= 7 * S, "it waits by the clock as it is now");
    assert_eq!(look(&mut settling, until_ns, &seen(0)), Some((complete(Because::Quiet), 0)));
    let mut at_the_end = Settling::new(DEFAULT_QUIET_NS);
    assert!(matches!(at_the_end.observe(&seen(u64::MAX)), Answer::Wait { until_ns: u64::MAX }));
}

/// Proves that a file that changed while it was copied must be quiet for longer each time, up to a bound, and that neither a
/// marker nor a rename is enough then.
#[test]
fn rewriting_doubles_the_quiet_period() {
    let mut settling = Settling::new(DEFAULT_QUIET_NS);
    let marked = Observation { wholeness: marker(), ..seen(0) };
    assert_eq!(settling.observe(&marked), complete(Because::Marker));
    settling.rewritten();
    assert_eq!(settling.quiet_ns(), 2 * DEFAULT_QUIET_NS);
    assert_eq!(look(&mut settling, S, &marked), Some((complete(Because::Marker), 3)));
    settling.rewritten();
    let renamed = Observation { renamed_into_place: true, ..seen(0) };
    assert_eq!(
        look(&mut settling, 100 * S, &renamed).map(|(answer, _)| answer),
        Some(complete(Because::Quiet))
    );
    for _ in 0..100 {
        settling.rewritten();
    }
    assert_eq!(settling.quiet_ns(), MAX_QUIET_NS);
}

/// Proves that a file which the script wrote again and again while it was copied is complete at the end of the script, and that one which
/// changes after that end must be quiet first.
#[test]
fn the_end_of_the_writers_outweighs_their_rewriting() {
    let mut settling = Settling::new(DEFAULT_QUIET_NS);
    (0..100).for_each(|_| settling.rewritten());
    let ended = Observation { writers_ended: true, ..seen(S) };
    assert_eq!(settling.observe(&ended), complete(Because::Ended));
    settling.rewritten();
    assert!(matches!(settling.observe(&ended), Answer::Wait { .. }), "it changed, by whomever");
    assert_eq!(look(&mut settling, 2 * S, &ended), Some((complete(Because::Quiet), MAX_QUIET_NS / S - 1)));
}

/// Proves that what was deleted and written again is a new state.
#[test]
fn gone_and_back() {
    let mut settling = Settling::new(DEFAULT_QUIET_NS);
    assert_eq!(look(&mut settling, 0, &seen(0)), Some((complete(Because::Quiet), 2)));
    assert_eq!(settling.observe(&Observation { fingerprint: None, ..seen(3 * S) }), Answer::Gone);
    assert_eq!(look(&mut settling, 4 * S, &seen(0)), Some((complete(Because::Quiet), 2)));
}
