//! Damaged copies of rows, made from good ones by a seeded generator: each is put back, or refused with nothing put back.
//!
//! `TRACKWAY_FUZZ_MUTANTS` sets how many there are; the few of a usual run take some seconds.

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trackway_core::boundary::contained;
use trackway_core::{LaunchKind, Rng as _, SplitMix64};

use super::rows::{at, ended, event, new_attempt, retry, stored_run};
use super::rules::complete_seal;
use crate::error::LedgerError;
use crate::kept::KeptRows;
use crate::ledger::Ledger;
use crate::receipts::seal::AttemptSeal;
use crate::records::{
    DataSnapshotRow, NoticeRow, OutboxRow, RunDataRow, Subject, SubjectEventRow, SubjectKind,
};
use crate::value::Record as _;

/// Mutants by default.
const USUAL_MUTANTS: u64 = 300;
/// So many are put back into one ledger: what one leaves there is what the next ones find.
const MUTANTS_OF_A_LEDGER: u64 = 25;

fn below(random: &mut SplitMix64, count: usize) -> usize {
    random.next_u64() as usize % count.max(1)
}

fn empty_ledger() -> (TempDir, Ledger) {
    let folder = TempDir::new().unwrap();
    let ledger = Ledger::open(folder.path().join("mutants.db").to_str().unwrap()).unwrap();
    (folder, ledger)
}

/// Copies as a home keeps them: of a run, of an attempt that was launched, of its receipt, of an event and of a notice.
fn copies() -> Vec<KeptRows> {
    let (_folder, ledger) = empty_ledger();
    let run = stored_run(&ledger, "kept");
    let data = RunDataRow {
        run_id: run.run_id,
        name: "train".into(),
        data_sha256: "k1".into(),
        ..RunDataRow::blank()
    };
    let snapshot =
        DataSnapshotRow { data_sha256: "k1".into(), first_seen_at: at(1), ..DataSnapshotRow::blank() };
    let attempt = new_attempt(&run, 1, LaunchKind::Train);
    ledger.insert_attempt(&attempt).unwrap();
    let decision = Some(retry(&run, attempt.attempt_id));
    let seal = AttemptSeal { decision, ..complete_seal(&run, ended(attempt.clone())) };
    ledger.seal_attempt(&seal, at(101)).unwrap();
    let subject = Subject::new(SubjectKind::Run, run.run_id.to_string());
    let notice = NoticeRow {
        notice_id: format!("{}:end:1", run.run_id),
        subject_kind: subject.kind,
        subject_id: subject.id,
        document_json: json!({ "text": "run ended" }),
        ..NoticeRow::blank()
    };
    let delivery = OutboxRow { notice_id: notice.notice_id.clone(), ..OutboxRow::blank() };
    let rows = [
        KeptRows::of_run(&run, &[data], &[snapshot]),
        KeptRows::of_launch(&attempt, &[], &[]),
        ledger.kept_receipt(&seal, at(101), &[]).unwrap(),
        KeptRows::of([&SubjectEventRow::from(&event(&run, "kept-event"))]),
        KeptRows::of_notice(&notice, &delivery),
    ];
    rows.iter().map(|rows| ledger.kept(rows).unwrap()).collect()
}

/// A value that the column of a row hardly has.
fn odd_value(random: &mut SplitMix64) -> Json {
    let values = [
        json!(null),
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("NaN"),
        json!("\u{0}\u{e9}"),
        json!("long ".repeat(5_000)),
        json!(true),
        json!([]),
        json!({ "a": {} }),
    ];
    values[below(random, values.len())].clone()
}

/// Changes a copy in one to three places: values, tables, rows left out or doubled, the version.
fn changed(good: &Json, random: &mut SplitMix64) -> Vec<u8> {
    let mut kept = good.clone();
    for _ in 0..=below(random, 3) {
        if below(random, 20) == 0 {
            kept["version"] = odd_value(random);
        }
        let Some(rows) = kept["rows"].as_array_mut().filter(|rows| !rows.is_empty()) else { break };
        let (row, other) = (below(random, rows.len()), below(random, rows.len()));
        match below(random, 8) {
            0 => drop(rows.remove(row)),
            1 => rows.push(rows[row].clone()),
            2 => rows[row]["table"] = rows[other]["table"].clone(),
            3 => rows.swap(row, other),
            change => {
                let Some(values) = rows[row]["values"].as_object_mut() else { continue };
                let Some(name) = values.keys().nth(below(random, values.len())).cloned() else { continue };
                match change {
                    4 => drop(values.remove(&name)),
                    _ => drop(values.insert(name, odd_value(random))),
                }
            }
        }
    }
    serde_json::to_vec(&kept).unwrap()
}

/// Changes the bytes of a copy in one to three places.
fn damaged(good: &Json, random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(good).unwrap();
    for _ in 0..=below(random, 3) {
        let at = below(random, bytes.len());
        let to = (at + 1 + below(random, 64)).min(bytes.len());
        match below(random, 4) {
            0 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
            1 => drop(bytes.drain(at..to)),
            2 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// How much there is that copies put back.
fn held(ledger: &Ledger) -> (usize, u64) {
    (ledger.known_attempts().unwrap().len(), ledger.newest_change().unwrap())
}

/// Puts a copy back, if it is one. Where it is refused, the ledger is as before; what is sealed afterwards verifies.
fn put_back(ledger: &Ledger, bytes: &[u8]) -> Option<Result<(), LedgerError>> {
    let kept: KeptRows = serde_json::from_slice(bytes).ok()?;
    let before = held(ledger);
    let said = ledger.restore(&kept).map(drop);
    if said.is_err() {
        assert_eq!(held(ledger), before);
    }
    for attempt in ledger.known_attempts().unwrap().into_iter().filter(|attempt| attempt.sealed) {
        assert_eq!(ledger.verify_receipt(attempt.attempt_id).unwrap(), Some(true), "{attempt:?}");
    }
    // What it says of the copy does not matter here.
    drop(ledger.differences(&kept));
    Some(said)
}

/// Proves that a copy which is read and written again is the same, and that all are put back into an empty ledger with
/// nothing that differs.
#[test]
fn copies_come_back() {
    let (_folder, ledger) = empty_ledger();
    for kept in copies() {
        let bytes = serde_json::to_vec(&kept).unwrap();
        let read: KeptRows = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read, kept);
        assert_eq!(serde_json::to_vec(&read).unwrap(), bytes);
        let restored = ledger.restore(&read).unwrap();
        assert!(restored.added && restored.differs.is_empty(), "{restored:?}");
        assert_eq!(ledger.kept(&read).unwrap(), kept);
        assert!(ledger.differences(&read).unwrap().is_empty());
    }
}

/// Proves that no damage to a copy makes restoring it panic or leave half of it, and that no receipt comes back which does not verify.
#[test]
fn mutants_of_copies_are_put_back_or_refused() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    let copies: Vec<Json> = copies().iter().map(|kept| serde_json::to_value(kept).unwrap()).collect();
    let mut home = empty_ledger();
    let (mut restored, mut refused, mut unread) = (0_u64, 0_u64, 0_u64);
    for seed in 0..mutants {
        if seed % MUTANTS_OF_A_LEDGER == 0 {
            home = empty_ledger();
        }
        let mut random = SplitMix64::new(seed);
        let good = &copies[below(&mut random, copies.len())];
        let bytes = match below(&mut random, 4) {
            0 => damaged(good, &mut random),
            _ => changed(good, &mut random),
        };
        match contained(|| put_back(&home.1, &bytes)) {
            Err(panic) => panic!("mutant {seed}: {panic}"),
            Ok(None) => unread += 1,
            Ok(Some(Ok(()))) => restored += 1,
            Ok(Some(Err(_))) => refused += 1,
        }
    }
    println!("copies of rows: {restored} put back, {refused} refused, {unread} of another form");
    assert!(restored > 0 && refused > 0, "mutants of copies damage too much or too little");
}
