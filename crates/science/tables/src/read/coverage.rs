//! What was read and what was not: the account that every check shows beside its answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_results::reading::{CellFaults, Fault, Occurrences, Place, RejectKind, Rejects};

use crate::merge::merge_counts;
use crate::types::infer::Form;

/// The most examples kept per column and per kind of rejection; the counts continue.
pub const MAX_FAULT_EXAMPLES: usize = 5;

/// The longest piece of a faulty value that is shown, in bytes.
pub const MAX_SHOWN_BYTES: usize = 64;

/// The most unknown keys that are listed.
const MAX_UNKNOWN_KEYS: usize = 100;

/// The faults of the cells of one column, while they are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellTally {
    pub faults: CellFaults,
    /// The misfits by what each shows of the column's type.
    #[serde(skip)]
    pub(crate) misfit_forms: BTreeMap<Form, u64>,
    /// Every misfit of a chunk with its row, for a pass that wants them; never merged.
    #[serde(skip)]
    pub listed: Option<Vec<(u64, String)>>,
}

impl CellTally {
    pub(crate) fn misfit(&mut self, form: Form, place: Place, value: &[u8]) {
        let faults = &mut self.faults;
        faults.misfits += 1;
        *faults.misfit_kinds.entry(form.kind()).or_default() += 1;
        *self.misfit_forms.entry(form).or_default() += 1;
        if faults.examples.len() < MAX_FAULT_EXAMPLES {
            faults.examples.push(Fault { place, detail: shown(value) });
        }
        if let Some(listed) = &mut self.listed {
            listed.push((place.row, String::from_utf8_lossy(value).into_owned()));
        }
    }

    pub(crate) fn count_rounded(&mut self, place: Place) {
        self.faults.rounded.add(1, place);
    }

    pub(crate) fn count_trimmed(&mut self, place: Place) {
        self.faults.trimmed.add(1, place);
    }

    pub(crate) fn missing(&mut self, text: &str, count: u64) {
        if count > 0 {
            *self.faults.missing_strings.entry(text.to_owned()).or_default() += count;
        }
    }

    /// Adds the faults of rows that come later.
    pub(crate) fn merge(&mut self, later: Self) {
        merge_faults(&mut self.faults, later.faults);
        merge_counts(&mut self.misfit_forms, later.misfit_forms);
    }
}

/// Adds the faults of rows that come later.
pub(crate) fn merge_faults(faults: &mut CellFaults, later: CellFaults) {
    faults.misfits += later.misfits;
    faults.absent += later.absent;
    faults.rounded.merge(later.rounded);
    faults.trimmed.merge(later.trimmed);
    merge_counts(&mut faults.misfit_kinds, later.misfit_kinds);
    merge_counts(&mut faults.missing_strings, later.missing_strings);
    append(&mut faults.examples, later.examples);
}

/// What a scan read. `rows_read + rows_rejected` is the number of rows of the files, always.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Rows that reached the pass.
    pub rows_read: u64,
    /// Rows that did not.
    pub rows_rejected: u64,
    /// Why, with the first examples.
    pub rejects: Vec<Rejects>,
    /// Rows read per file, by the index of the file.
    pub file_rows: BTreeMap<usize, u64>,
    /// Faults of cells, per column of the source.
    pub columns: Vec<CellTally>,
    /// Rows with bytes that are no UTF-8, read as Windows-1252.
    pub rows_recoded: u64,
    /// The first such row.
    pub first_recoded: Option<Place>,
    /// Rows of CSV with text behind a closing quote, of which the quote was left out.
    #[serde(default)]
    pub malformed_quotes: Occurrences,
    /// Empty lines between the rows of CSV.
    #[serde(default)]
    pub empty_lines: Occurrences,
    /// Comments that were left out on request.
    #[serde(default)]
    pub comment_lines: Occurrences,
    /// JSON keys that are no column of the source, with the rows that have them.
    pub unknown_keys: BTreeMap<String, u64>,
    /// Bytes of the files read.
    pub bytes_read: u64,
    /// Every rejected row of a unit, for a pass that wants them; never merged.
    #[serde(skip)]
    pub rejected: Option<Vec<RejectedRow>>,
}

/// A row that could not be read, as a pass gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRow {
    /// The reason.
    pub kind: RejectKind,
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub detail: String,
    /// The row as it is in the file, without its line end.
    pub text: String,
}

impl Coverage {
    pub(crate) fn reject(
        &mut self,
        kind: RejectKind,
        place: Place,
        raw: &[u8],
        detail: impl FnOnce() -> String,
    ) {
        self.rows_rejected += 1;
        let is_wanted = self.rejected.is_some();
        let index = self.rejects.iter().position(|it| it.kind == kind).unwrap_or_else(|| {
            self.rejects.push(Rejects { kind, count: 0, examples: Vec::new() });
            self.rejects.len() - 1
        });
        let rejects = &mut self.rejects[index];
        rejects.count += 1;
        let is_example = rejects.examples.len() < MAX_FAULT_EXAMPLES;
        if !is_example && !is_wanted {
            return;
        }
        let detail = detail();
        if is_example {
            rejects.examples.push(Fault { place, detail: detail.clone() });
        }
        if let Some(rejected) = &mut self.rejected {
            let text = String::from_utf8_lossy(raw).trim_end_matches(['\r', '\n']).to_owned();
            rejected.push(RejectedRow { kind, place, detail, text });
        }
    }

    pub(crate) fn recoded(&mut self, place: Place) {
        self.rows_recoded += 1;
        self.first_recoded.get_or_insert(place);
    }

    pub(crate) fn unknown_key(&mut self, key: &str) {
        if let Some(count) = self.unknown_keys.get_mut(key) {
            *count += 1;
        } else if self.unknown_keys.len() < MAX_UNKNOWN_KEYS {
            self.unknown_keys.insert(key.to_owned(), 1);
        }
    }

    /// Counts rows that reach the pass.
    pub(crate) fn read(&mut self, file: usize, rows: usize) {
        self.rows_read += rows as u64;
        *self.file_rows.entry(file).or_default() += rows as u64;
    }

    /// Adds what was read later.
    pub(crate) fn merge(&mut self, later: Self) {
        self.rows_read += later.rows_read;
        self.rows_rejected += later.rows_rejected;
        self.rows_recoded += later.rows_recoded;
        self.bytes_read += later.bytes_read;
        self.first_recoded = self.first_recoded.or(later.first_recoded);
        self.malformed_quotes.merge(later.malformed_quotes);
        self.empty_lines.merge(later.empty_lines);
        self.comment_lines.merge(later.comment_lines);
        merge_counts(&mut self.file_rows, later.file_rows);
        for (key, count) in later.unknown_keys {
            if self.unknown_keys.contains_key(&key) || self.unknown_keys.len() < MAX_UNKNOWN_KEYS {
                *self.unknown_keys.entry(key).or_default() += count;
            }
        }
        for rejects in later.rejects {
            match self.rejects.iter_mut().find(|known| known.kind == rejects.kind) {
                Some(known) => {
                    known.count += rejects.count;
                    append(&mut known.examples, rejects.examples);
                }
                None => self.rejects.push(rejects),
            }
        }
        if self.columns.len() < later.columns.len() {
            self.columns.resize_with(later.columns.len(), CellTally::default);
        }
        for (column, more) in self.columns.iter_mut().zip(later.columns) {
            column.merge(more);
        }
    }
}

fn append(examples: &mut Vec<Fault>, later: Vec<Fault>) {
    let room = MAX_FAULT_EXAMPLES.saturating_sub(examples.len());
    examples.extend(later.into_iter().take(room));
}

/// The beginning of a value, as a string.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(&value[..value.len().min(MAX_SHOWN_BYTES)]).into_owned();
    if value.len() > MAX_SHOWN_BYTES { format!("{text}…") } else { text }
}
