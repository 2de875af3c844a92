//! The different values of a column, as text.

use std::collections::{BTreeSet, HashMap};

use trackway_data::model::{Cells, FrameColumn, MISSING_CODE};
use trackway_tables::ColumnType;

/// The text of each different value, and for each row which one it has ([`MISSING_CODE`]: none).
pub(crate) fn values_of(column: &FrameColumn) -> (Vec<String>, Vec<u32>) {
    match &column.cells {
        Cells::Categories { codes, names } => (names.clone(), codes.clone()),
        Cells::Numbers(values) => {
            let mut names = Vec::new();
            let mut known: HashMap<u64, u32> = HashMap::new();
            let mut code = |value: &f64| {
                if value.is_nan() {
                    return MISSING_CODE;
                }
                *known.entry((value + 0.0).to_bits()).or_insert_with(|| {
                    names.push(number_text(*value, column.kind));
                    names.len() as u32 - 1
                })
            };
            let codes = values.iter().map(&mut code).collect();
            (names, codes)
        }
    }
}

fn number_text(value: f64, kind: ColumnType) -> String {
    match kind {
        ColumnType::Bool => (value != 0.0).to_string(),
        _ => (value + 0.0).to_string(),
    }
}

/// The different values that rows of a column have, as classes are named.
pub(crate) fn classes_of(column: &FrameColumn) -> Vec<String> {
    let (names, codes) = values_of(column);
    let used: BTreeSet<u32> = codes.into_iter().filter(|code| *code != MISSING_CODE).collect();
    used.into_iter().filter_map(|code| names.get(code as usize).cloned()).collect()
}
