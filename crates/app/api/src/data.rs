//! Data sets: what is in them, what is wrong with them, and how they changed.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_core::checks::{CheckResult, Finding, Severity, Verdict};
use trackway_results::clean::Account;
use trackway_results::drift::DriftReport;
use trackway_results::integrity::{Group, LabelNoise, PersonalColumn};
use trackway_results::join::AsOfReport;
use trackway_results::media::MediaChecks;
use trackway_results::profile::ColumnSummary;
use trackway_results::reading::{Column, Place, ReadNote, Rejects};
use trackway_results::snapshot::{BytesFault, KeptBytes, NamedSnapshot, SnapshotDiff};
use trackway_results::split::{SplitMethod, SplitProof};

/// A profile of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileAnswer {
    /// The version of the form of profiles.
    pub version: u32,
    /// The files in reading order; places name them by their index.
    pub files: Vec<FileRead>,
    /// Rows read.
    pub rows: u64,
    /// Rows rejected. With the rows read, these are all rows of the files.
    pub rows_rejected: u64,
    /// Why rows were rejected, with examples.
    pub rejects: Vec<Rejects>,
    /// Rows with bytes that are not UTF-8, read as Windows-1252.
    pub rows_recoded: u64,
    pub first_recoded: Option<Place>,
    /// What else a reader should know.
    pub notes: Vec<String>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
    /// The label, if one was named.
    pub label: Option<String>,
    /// The columns, in file order.
    pub columns: Vec<ColumnSummary>,
}

impl ProfileAnswer {
    /// `FILE line N`, to look it up.
    #[must_use]
    pub fn place(&self, place: Place) -> String {
        let path = self.files.get(place.file).map_or("?", |file| file.path.as_str());
        let is_text = !(path.ends_with(".parquet") || path.ends_with(".pq"));
        format!("{path} {} {}", if is_text { "line" } else { "row" }, place.row)
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRead {
    pub path: String,
    pub size_bytes: u64,
    /// Rows read from it.
    pub rows: u64,
}

/// Findings about a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingsAnswer {
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// What could not be checked, with the reason.
    pub not_run: Vec<String>,
    /// Rows read, of all tables.
    pub rows: u64,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// Number of rules that were checked; null if the check has no rules.
    pub rules_checked: Option<usize>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
}

impl FindingsAnswer {
    /// Whether a finding blocks, or a requested check could not run.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !self.not_run.is_empty() || self.findings.iter().any(|finding| finding.severity == Severity::Block)
    }
}

/// Leakage between training data and test data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeakageAnswer {
    /// Every check that was requested.
    pub checks: Vec<CheckResult>,
    /// The findings of all of them, and the rows.
    #[serde(flatten)]
    pub found: FindingsAnswer,
}

/// The integrity of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckAnswer {
    /// The verdict of all checks together.
    pub verdict: Verdict,
    pub checks: Vec<CheckResult>,
    /// Rows and label by group.
    pub groups: Vec<Group>,
    /// Personal data by column and kind.
    pub personal: Vec<PersonalColumn>,
    /// Labels that are probably wrong; null if they were not searched for.
    pub label_noise: Option<LabelNoise>,
    /// Rows read, of all tables.
    pub rows: u64,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
}

/// Checks of images and texts in files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImagesAnswer {
    /// The files, and every check.
    #[serde(flatten)]
    pub found: MediaChecks,
    /// The findings of all checks, worst first.
    pub findings: Vec<Finding>,
    /// What was requested and could not be checked, with the reason.
    pub not_run: Vec<String>,
}

impl ImagesAnswer {
    /// Whether a finding blocks, or a requested check could not run.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !self.not_run.is_empty() || self.findings.iter().any(|finding| finding.severity == Severity::Block)
    }
}

/// A schema that was inferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InferredSchema {
    pub toml: String,
    /// The file it was written to; null if it was not written.
    pub path: Option<PathBuf>,
    /// Rows that the schema was inferred from.
    pub rows: u64,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotAnswer {
    /// Its id: the hash of the content.
    pub data_sha256: String,
    /// Whether it did not exist yet.
    pub is_new: bool,
    /// The name that points to it.
    pub name: Option<String>,
    /// Files in it.
    pub files: u64,
    /// Files that had to be read; the others did not change since they were last read.
    pub files_read: u64,
    /// Bytes of all files.
    pub size_bytes: u64,
    /// Rows of the tables; null if there is none.
    pub rows: Option<u64>,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// Columns of the tables.
    pub schema: Option<Vec<Column>>,
    /// The bytes that were kept; null without `--keep-bytes`.
    pub bytes: Option<KeptBytes>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
}

/// A snapshot whose files were restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotRestored {
    /// Its id.
    pub data_sha256: String,
    /// The folder that the files are in.
    pub folder: PathBuf,
    /// Number of files.
    pub files: u64,
    pub size_bytes: u64,
}

/// A snapshot whose kept bytes were hashed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotVerified {
    /// Its id.
    pub data_sha256: String,
    /// Whether the bytes of every file are what was kept.
    pub intact: bool,
    /// Files looked at.
    pub files: u64,
    /// Bytes hashed.
    pub bytes_read: u64,
    /// Files whose bytes are missing or different.
    pub faults: Vec<BytesFault>,
}

/// A snapshot that is in an object store now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotPushed {
    /// Its id.
    pub data_sha256: String,
    /// The object store.
    pub url: String,
    /// Files in it.
    pub files: u64,
    pub size_bytes: u64,
    /// Files that had to be sent; the others were there.
    pub files_sent: u64,
    pub bytes_sent: u64,
}

/// A snapshot that was brought from an object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotPulled {
    /// Its id.
    pub data_sha256: String,
    /// The object store.
    pub url: String,
    /// Whether this home did not have it.
    pub is_new: bool,
    /// Files in it.
    pub files: u64,
    pub size_bytes: u64,
    /// Files that had to be fetched; the others were here.
    pub files_fetched: u64,
    pub bytes_fetched: u64,
}

/// Snapshots whose bytes were deleted, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotExpired {
    /// Whether this was a dry run: nothing was changed.
    pub dry_run: bool,
    /// Ids of the snapshots whose bytes expired; what they consisted of stays on record.
    pub expired: Vec<String>,
    /// Kept files that no snapshot needs.
    pub files: u64,
    pub freed_bytes: u64,
}

/// A stored snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoredSnapshot {
    /// Its id.
    pub data_sha256: String,
    /// The names that point to it now.
    pub names: Vec<String>,
    /// When it was last given a name; null: never.
    pub named_at: Option<Timestamp>,
    /// Files in it.
    pub files: u64,
    /// Bytes of all files.
    pub size_bytes: u64,
    /// Rows of the tables.
    pub rows: Option<u64>,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// Whether the bytes of its files are kept.
    pub has_bytes: bool,
}

/// All snapshots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    /// The snapshots, those named last first.
    pub snapshots: Vec<StoredSnapshot>,
    /// The names with every snapshot they pointed to.
    pub names: Vec<NamedSnapshot>,
    /// Snapshots that cannot be read, with the reason.
    pub damaged: Vec<String>,
}

/// Two states of a data set compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffAnswer {
    /// The id of the first.
    pub before: String,
    /// The id of the second.
    pub after: String,
    /// Files, columns, rows.
    #[serde(flatten)]
    pub diff: SnapshotDiff,
    /// The distributions; null if one side has no table, or both are the same.
    pub drift: Option<DriftReport>,
    /// Files that had to be read; 0 if both sides are snapshots.
    pub files_read: u64,
}

/// A table that was cleaned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanAnswer {
    /// The cleaned table.
    pub out: PathBuf,
    /// The rows that were set aside: `file`, `row`, `reason` and the row itself in `record`.
    pub quarantine: PathBuf,
    /// What became of every row.
    #[serde(flatten)]
    pub account: Account,
    /// Columns that are masked, hashed or dropped.
    pub protected: Vec<ProtectedColumn>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
}

/// A column with personal data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtectedColumn {
    pub column: String,
    /// What became of it: masked, hashed or dropped.
    pub how: String,
    /// The kinds of personal data that were found in it; empty for a column that was named and not searched.
    pub kinds: Vec<String>,
}

/// Two tables joined by what was known at the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AsOfAnswer {
    /// The joined table.
    pub out: PathBuf,
    /// What was joined, and what a plain join would have leaked.
    #[serde(flatten)]
    pub report: AsOfReport,
}

/// A table that was split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitAnswer {
    pub method: SplitMethod,
    pub seed: u64,
    /// Rows read.
    pub rows: u64,
    /// Rows that could not be read; they are in no part.
    pub rows_rejected: u64,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    pub reading: Vec<ReadNote>,
    /// The parts, in the order requested.
    pub parts: Vec<SplitPart>,
    /// Rows of each fold of the first part.
    pub folds: Vec<u64>,
    /// The rungs, smallest first.
    pub rungs: Vec<SplitRung>,
    /// The result of verifying the split from the data.
    pub proof: SplitProof,
    /// Whether the proof shows what the method promises. If not, nothing is written.
    pub proved: bool,
    /// The file that says where each row goes.
    pub assignment: Option<PathBuf>,
    /// The parts as files.
    pub files: Vec<PathBuf>,
}

/// A part of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitPart {
    pub name: String,
    /// Rows in it.
    pub rows: u64,
    /// Their fraction of all rows.
    pub fraction: f64,
    /// Rows by label; empty without a label.
    pub labels: Vec<LabelCount>,
}

/// Rows with a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelCount {
    /// The label; empty if it is missing.
    pub label: String,
    pub rows: u64,
}

/// A rung of a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SplitRung {
    /// The fraction of the first part.
    pub fraction: f64,
    /// Rows of the first part that belong to it.
    pub rows: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a finding which blocks and a check that could not run block, each alone, and that a warning does not.
    #[test]
    fn what_was_not_checked_blocks() {
        let blocks = |severity: Option<Severity>, not_run: &[&str]| {
            let finding = |severity: Severity| Finding::new("data.rows", severity, "it is so");
            let answer = FindingsAnswer {
                findings: severity.map(finding).into_iter().collect(),
                not_run: not_run.iter().map(|why| (*why).to_owned()).collect(),
                rows: 1,
                rows_rejected: 0,
                rules_checked: None,
                reading: Vec::new(),
            };
            answer.blocks()
        };
        assert!(!blocks(None, &[]) && !blocks(Some(Severity::Warn), &[]));
        assert!(blocks(Some(Severity::Block), &[]));
        assert!(blocks(None, &["data.rows: there is no table"]));
    }
}
