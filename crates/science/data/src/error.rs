use std::io;
use std::path::PathBuf;

use trackway_core::boundary::Contained;

use crate::limits::LINKS_VARIABLE;

/// Why a data set cannot be resolved. Every variant requires the user to fix the run file or the data; none is worth a
/// retry except [`DataError::Changed`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The path names nothing.
    #[error("data `{set}`: `{path}` does not exist{}", did_you_mean(.nearest.as_deref()))]
    Missing {
        /// The data set.
        set: String,
        /// The path as given.
        path: String,
        /// The existing name most like it.
        nearest: Option<String>,
    },
    /// A glob that matches nothing.
    #[error("data `{set}`: no file matches `{pattern}`; check the pattern against the folder's content")]
    EmptyGlob {
        /// The data set.
        set: String,
        /// The pattern as given.
        pattern: String,
    },
    /// A glob that is none.
    #[error("data `{set}`: invalid pattern `{pattern}`: {message}")]
    BadGlob {
        /// The data set.
        set: String,
        /// The pattern as given.
        pattern: String,
        /// The message of the pattern parser.
        message: String,
    },
    /// A folder without a file that is not hidden.
    #[error("data `{set}`: the folder `{path}` contains no file (hidden files are ignored)")]
    EmptyFolder {
        /// The data set.
        set: String,
        /// The folder as given.
        path: String,
    },
    /// A link in a folder to a folder that is not below it.
    #[error(
        "data `{set}`: the link `{}` leads out of the data folder, to `{}`; name that folder as a separate data set, or follow such links \
         with {LINKS_VARIABLE}=1", .path.display(), .target.display()
    )]
    LinkOutside {
        /// The data set.
        set: String,
        /// The link.
        path: PathBuf,
        /// The folder that it leads to.
        target: PathBuf,
    },
    /// More files than a manifest holds.
    #[error("data `{set}`: `{path}` contains more than {max} files; pack them into fewer")]
    TooManyFiles {
        /// The data set.
        set: String,
        /// The path as given.
        path: String,
        /// [`crate::MAX_FILES`].
        max: usize,
    },
    /// A URL, or a device, socket or pipe.
    #[error("data `{set}`: `{path}` is {what}; a data set is made of local files")]
    NotAFile {
        /// The data set.
        set: String,
        /// The path.
        path: String,
        /// What it is instead.
        what: &'static str,
    },
    /// A file or folder that the system does not let us read.
    #[error("data `{set}`: cannot read `{}`: {source}{}", .path.display(), permission_advice(.source))]
    Unreadable {
        /// The data set.
        set: String,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file whose content is not what its format promises.
    #[error("data `{set}`: `{path}` is not a readable {format}: {message}")]
    Corrupt {
        /// The data set.
        set: String,
        /// The file.
        path: String,
        /// The format it was read as.
        format: &'static str,
        /// What is wrong, with the line where there is one, and what to do.
        message: String,
    },
    /// Trackway's own code panicked at a file's content.
    #[error("data `{set}`: reading `{path}` failed inside Trackway: {panic}; please report this")]
    Fault {
        /// The data set.
        set: String,
        /// The file.
        path: String,
        /// The message of the panic.
        panic: Contained,
    },
    /// A file that changed while it was read.
    #[error("data `{set}`: `{path}` changed while it was being read; try again when nothing writes to it")]
    Changed {
        /// The data set.
        set: String,
        /// The file.
        path: String,
    },
    /// `columns` does not fit the file.
    #[error("data `{set}`: `columns` names {named} columns, but the rows of `{path}` have {found}")]
    ColumnCount {
        /// The data set.
        set: String,
        /// The file.
        path: String,
        /// Names in the run file.
        named: usize,
        /// Fields in the file's first row.
        found: usize,
    },
    /// A set without a file that is a table.
    #[error(
        "data `{set}`: `{path}` is not a table; tables are .parquet, .csv, .tsv, .jsonl, .ndjson and .txt files{}",
        compression_advice(.path)
    )]
    NotATable {
        /// The data set.
        set: String,
        /// The first of its files.
        path: String,
    },
    /// The caller cancelled the scan.
    #[error("data `{set}`: reading was stopped")]
    Cancelled {
        /// The data set.
        set: String,
    },
    /// A column that the run file names and a file lacks.
    #[error("data `{set}`: {role} column `{column}` is not in `{path}`{advice}")]
    NoColumn {
        /// The data set.
        set: String,
        /// `label`, `group` or `time`.
        role: &'static str,
        /// The column as named.
        column: String,
        /// The file that lacks it.
        path: String,
        /// The nearest name, or what to do about a missing header.
        advice: String,
    },
}

pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
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
