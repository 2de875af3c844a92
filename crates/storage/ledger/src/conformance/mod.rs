//! The suite that every backend of the ledger passes.
//!
//! [`run_all`] panics at the first difference, naming it. It wants an empty ledger and leaves rows in it.
#![allow(clippy::unwrap_used, reason = "the suite reports by panicking, as a test does")]

mod changes;
mod duties;
mod evaluations;
mod leases;
pub mod migrations;
#[cfg(test)]
mod mutants;
mod registry;
pub mod rows;
mod rules;
mod run_amendments;
mod text;

use crate::backend::{Backend, FIRST_VERSION, SCHEMA_VERSION};
use crate::error::{ErrorKind, LedgerError};
use crate::ledger::{Ledger, OpenOptions};
use crate::records::{TABLES, VIEWS};
use crate::value::{ColumnKind, Table, Value};

/// Opens the ledger under test: always the same one, empty at first.
pub type Open<'o> = &'o (dyn Fn(&OpenOptions) -> Result<Ledger, LedgerError> + Sync);

/// How many rows this thread has read from ledgers so far: with it a test shows that something is read once, or not at all.
#[must_use]
pub fn rows_read() -> u64 {
    crate::backend::rows_read()
}

/// Runs every check.
///
/// # Panics
/// When the backend does not keep what it promises.
pub fn run_all(open: Open<'_>) {
    an_empty_ledger_is_migrated_once(open);
    let ledger = open(&OpenOptions::default()).unwrap();
    the_database_has_the_columns_of_the_catalogue(&ledger);
    a_newer_ledger_is_refused(open, &ledger);
    text::hostile_text_comes_back_from_every_column(&ledger);
    rows::every_row_comes_back_as_it_was_written(&ledger);
    registry::models_change_one_after_the_other(&ledger);
    registry::what_gates_said_stays(&ledger);
    evaluations::evaluations_come_back(&ledger);
    evaluations::an_ended_evaluation_does_not_change(&ledger);
    rows::words_mean_one_thing(&ledger);
    rows::a_run_of_tomorrow_is_not_last(&ledger);
    rows::ends_are_counted(&ledger);
    run_amendments::a_run_is_amended(&ledger);
    rules::rules_are_renewed(&ledger);
    rules::a_sealed_receipt_does_not_change(&ledger);
    rules::history_is_only_added_to(&ledger);
    rules::words_and_states_fit(&ledger);
    leases::a_lease_has_one_holder(open, &ledger);
    leases::subjects_are_leased_apart(open, &ledger);
    changes::events_are_of_any_subject(&ledger);
    changes::a_receipt_is_charged_once(&ledger);
    changes::projects_come_back_from_copies(&ledger);
    changes::what_is_written_is_noted(&ledger);
    changes::numbers_follow_the_commits(open, &ledger);
    changes::old_changes_are_removed(&ledger);
    duties::a_duty_is_done_by_one(open, &ledger);
    duties::a_notice_is_delivered_once(open, &ledger);
    duties::a_notice_that_ended_is_removed(&ledger);
    duties::a_copy_may_know_more(&ledger);
    leases::a_superseded_supervisor_changes_nothing(open, &ledger);
    leases::no_change_of_a_run_is_lost(open, &ledger);
    rules::writers_take_turns(open, &ledger);
    rules::a_held_ledger_times_out(open, &ledger);
    evaluations::metrics_cover_their_rows(&ledger);
    rows::kept_rows_are_restored_again(&ledger);
}

/// Eight openers at once, on nothing: each finds one ledger, migrated once.
fn an_empty_ledger_is_migrated_once(open: Open<'_>) {
    std::thread::scope(|scope| {
        let openers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| open(&OpenOptions::default()).unwrap())).collect();
        for opener in openers {
            let ledger = opener.join().unwrap();
            let versions = numbers(&ledger, "SELECT version FROM schema_version ORDER BY version");
            assert_eq!(versions, (FIRST_VERSION..=SCHEMA_VERSION).collect::<Vec<_>>());
        }
    });
}

fn the_database_has_the_columns_of_the_catalogue(ledger: &Ledger) {
    for table in TABLES {
        let expected: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                let of_database = match &*ledger.backend() {
                    Backend::Sqlite(_) => column.kind.sqlite_type(),
                    Backend::Postgres(_) => column.kind.postgres_type(),
                };
                format!("{} {of_database} {}", column.name, if column.nullable { "null" } else { "not null" })
            })
            .collect();
        assert_eq!(columns_in_database(ledger, table), expected, "table {}", table.name);
    }
    let tables = match &*ledger.backend() {
        Backend::Sqlite(_) => "SELECT count(*) FROM sqlite_master WHERE type = 'table'",
        Backend::Postgres(_) => {
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        }
    };
    for view in VIEWS {
        let found = columns_in_database(ledger, view);
        let names: Vec<&str> = found.iter().filter_map(|column| column.split(' ').next()).collect();
        let expected: Vec<&str> = view.columns.iter().map(|column| column.name).collect();
        assert_eq!(names, expected, "view {}", view.name);
    }
    // Nothing but the catalogue and `schema_version`.
    assert_eq!(numbers(ledger, tables), [TABLES.len() as i64 + 1]);
}

fn columns_in_database(ledger: &Ledger, table: &Table) -> Vec<String> {
    let sql = match &*ledger.backend() {
        Backend::Sqlite(_) => {
            "SELECT name || ' ' || type || CASE WHEN \"notnull\" THEN ' not null' ELSE ' null' END FROM pragma_table_info(?) ORDER BY cid"
        }
        Backend::Postgres(_) => {
            "SELECT column_name || ' ' || data_type || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE ' null' END FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position"
        }
    };
    let mut columns = Vec::new();
    let parameters = [Value::from(table.name)];
    let kinds = [ColumnKind::Text];
    ledger
        .backend()
        .query("reading", sql, &parameters, &kinds, &mut |values| {
            if let Some(Value::Text(text)) = values.into_iter().next() {
                columns.push(text);
            }
            Ok(())
        })
        .unwrap();
    columns
}

fn a_newer_ledger_is_refused(open: Open<'_>, ledger: &Ledger) {
    let raise = "INSERT INTO schema_version (version) VALUES (?)";
    ledger.backend().execute("raising", raise, &[Value::Integer(999)]).unwrap();
    let error = open(&OpenOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Newer);
    assert!(error.to_string().contains("version 999"), "{error}");
    ledger.backend().execute("lowering", "DELETE FROM schema_version WHERE version = 999", &[]).unwrap();
}

/// The first column of a query, as numbers.
fn numbers(ledger: &Ledger, sql: &str) -> Vec<i64> {
    let mut numbers = Vec::new();
    ledger
        .backend()
        .query("reading", sql, &[], &[ColumnKind::Integer], &mut |values| {
            if let Some(Value::Integer(number)) = values.first() {
                numbers.push(*number);
            }
            Ok(())
        })
        .unwrap();
    numbers
}

/// Runs raw SQL that must be refused by a rule of the database.
fn assert_refused(ledger: &Ledger, sql: &str) {
    let refused = ledger.backend().execute("raw SQL", sql, &[]);
    match refused {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Integrity, "{sql}: {error}"),
        Ok(rows) => panic!("the database let `{sql}` change {rows} rows"),
    }
}
