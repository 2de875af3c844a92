use std::io;
use std::path::PathBuf;

use trackway_core::BoxError;
use trackway_core::boundary::Contained;

use crate::limits::LINKS_VARIABLE;

/// Why a data set cannot be resolved. Every variant requires the user to fix the run file or the data; none is worth a
/// retry except [`DataError::Changed`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    #[error("data `{set}`: `{path}` does not exist{}", did_you_mean(.nearest.as_deref()))]
    Missing { set: String, path: String, nearest: Option<String> },
    #[error("data `{set}`: no file matches `{pattern}`; check the pattern against the folder's content")]
    EmptyGlob { set: String, pattern: String },
    #[error("data `{set}`: invalid pattern `{pattern}`: {source}")]
    BadGlob { set: String, pattern: String, source: BoxError },
    #[error("data `{set}`: the folder `{path}` contains no file (hidden files are ignored)")]
    EmptyFolder { set: String, path: String },
    #[error(
        "data `{set}`: the link `{}` leads out of the data folder, to `{}`; name that folder as a separate data set, or follow such links \
         with {LINKS_VARIABLE}=1", .path.display(), .target.display()
    )]
    LinkOutside { set: String, path: PathBuf, target: PathBuf },
    #[error("data `{set}`: `{path}` contains more than {max} files; pack them into fewer")]
    TooManyFiles {
        set: String,
        path: String,
        /// [`crate::MAX_FILES`].
        max: usize,
    },
    #[error("data `{set}`: `{path}` is {what}; a data set is made of local files")]
    NotAFile { set: String, path: String, what: &'static str },
    #[error("data `{set}`: cannot read `{}`: {source}{}", .path.display(), permission_advice(.source))]
    Unreadable { set: String, path: PathBuf, source: io::Error },
    #[error("data `{set}`: `{path}` is not a readable {format}: {message}")]
    Corrupt { set: String, path: String, format: &'static str, message: String },
    #[error("data `{set}`: reading `{path}` failed inside Trackway: {panic}; please report this")]
    Fault {
        set: String,
        path: String,
        #[source]
        panic: Contained,
    },
    #[error("data `{set}`: `{path}` changed while it was being read; try again when nothing writes to it")]
    Changed { set: String, path: String },
    #[error("data `{set}`: `columns` names {named} columns, but the rows of `{path}` have {found}")]
    ColumnCount { set: String, path: String, named: usize, found: usize },
    #[error(
        "data `{set}`: `{path}` is not a table; tables are .parquet, .csv, .tsv, .jsonl, .ndjson and .txt files{}",
        compression_advice(.path)
    )]
    NotATable { set: String, path: String },
    #[error("data `{set}`: not everything can be read as it is written, and --strict wants that: {what}")]
    NotAsWritten { set: String, what: String },
    #[error("data `{set}`: reading was stopped")]
    Cancelled { set: String },
    #[error("data `{set}`: {role} column `{column}` is not in `{path}`{advice}")]
    NoColumn { set: String, role: &'static str, column: String, path: String, advice: String },
}

/// The end of a message on a name that is not known, with the one that is most like it; empty without one.
#[must_use]
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// What to do about a file that would be a table if it were unpacked.
pub(crate) fn compression_advice(path: &str) -> &'static str {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "gz" | "zst" | "bz2" | "xz" | "lz4" | "br" | "zip" => {
            "; a compressed file cannot be read in parts: decompress it, or convert it to Parquet, which compresses internally"
        }
        _ => "",
    }
}

fn permission_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; give this user read permission",
        _ => "",
    }
}
