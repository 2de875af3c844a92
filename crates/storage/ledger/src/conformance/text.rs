//! The one door for text: what a hostile script prints comes back the same from every column of every table.

use crate::backend::{Backend, column_list};
use crate::ledger::Ledger;
use crate::records::TABLES;
use crate::text::KEY_BYTES_MAX;
use crate::value::{Column, ColumnKind, Table, Value};

/// The copy without rules that rows of any content go into.
const COPY: &str = "hostile_copy";

/// A hostile string in each column of free text and of JSON, one row a column; the other columns hold something plain.
/// What is expected is written down here, so both backends give the same.
pub(super) fn hostile_text_comes_back_from_every_column(ledger: &Ledger) {
    for table in TABLES {
        let mut backend = ledger.backend();
        make_copy(&mut backend, table);
        let copy = Table { name: COPY, ..**table };
        let hostile: Vec<usize> =
            (0..table.columns.len()).filter(|at| is_free(&table.columns[*at])).collect();
        for at in &hostile {
            let row = table.columns.iter().enumerate().map(|(place, column)| value(column, place == *at));
            backend.insert_values(&copy, row.collect()).unwrap();
        }
        let kinds: Vec<ColumnKind> = table.columns.iter().map(|column| column.kind).collect();
        let sql = format!("SELECT {} FROM {COPY}", column_list(table));
        let mut seen = vec![0; table.columns.len()];
        backend
            .query("reading", &sql, &[], &kinds, &mut |values| {
                for (at, value) in values.iter().enumerate().filter(|(at, _)| hostile.contains(at)) {
                    let Value::Text(text) = value else { panic!("{}: {value:?}", table.columns[at].name) };
                    seen[at] += usize::from(is_as_expected(&table.columns[at], text));
                }
                Ok(())
            })
            .unwrap();
        for at in hostile {
            assert_eq!(seen[at], 1, "{}.{}", table.name, table.columns[at].name);
        }
        backend.execute("dropping", &format!("DROP TABLE {COPY}"), &[]).unwrap();
    }
}

fn is_free(column: &Column) -> bool {
    matches!(column.kind, ColumnKind::Text | ColumnKind::Json)
}

/// With the keys and indexes of the table, which have limits too, and without its rules.
fn make_copy(backend: &mut Backend, table: &Table) {
    let sql = match backend {
        Backend::Sqlite(_) => format!("CREATE TEMP TABLE {COPY} AS SELECT * FROM {} WHERE 0", table.name),
        Backend::Postgres(_) => format!("CREATE TEMP TABLE {COPY} (LIKE {} INCLUDING INDEXES)", table.name),
    };
    backend.execute("copying", &sql, &[]).unwrap();
}

/// NUL, an escape, a direction mark, a replacement character for invalid UTF-8, and so much that no index takes it
/// whole.
fn hostile(nul: &str) -> String {
    let letter = |at: u32| char::from_u32(0x4e00 + at.wrapping_mul(2_654_435_761) % 20_000).unwrap_or('x');
    format!("{}{}", beginning(nul), (0..KEY_BYTES_MAX as u32 * 2).map(letter).collect::<String>())
}

fn beginning(nul: &str) -> String {
    format!("'; DROP TABLE runs; --{nul}\u{1b}[2J\u{202e}\u{fffd}\"\\ 🐎")
}

fn value(column: &Column, is_hostile: bool) -> Value {
    match column.kind {
        ColumnKind::Text if is_hostile => Value::Text(hostile("\0")),
        ColumnKind::Json if is_hostile => {
            Value::Text(serde_json::json!({ "texts": [hostile("\0")], "\0": 1 }).to_string())
        }
        // Different in every row, as keys are.
        ColumnKind::Text | ColumnKind::Word => {
            static ROW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let row = ROW.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Value::Text(format!("{}-{row}", column.name))
        }
        ColumnKind::Json => Value::from("{}"),
        ColumnKind::Integer => {
            static ROW: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);
            Value::Integer(ROW.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
        }
        ColumnKind::Real => Value::Real(0.5),
        ColumnKind::Boolean => Value::Boolean(true),
        ColumnKind::Timestamp => super::rows::at(1).into(),
    }
}

fn is_as_expected(column: &Column, text: &str) -> bool {
    let whole = hostile("\u{2400}");
    match column.kind {
        ColumnKind::Json => serde_json::from_str::<serde_json::Value>(text)
            .is_ok_and(|document| document == serde_json::json!({ "texts": [whole], "\u{2400}": 1 })),
        _ if text.len() > KEY_BYTES_MAX => text == whole,
        _ => text.starts_with(&beginning("\u{2400}")) && text.contains("… [cut: "),
    }
}
