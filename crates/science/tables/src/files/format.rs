//! What a file is by its name.

use std::path::Path;

use trackway_formats::runfile::DataFormat;

/// The format that the extension names; [`DataFormat::Other`] for any that is not known.
#[must_use]
pub fn format_of(path: &Path) -> DataFormat {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("parquet" | "pq") => DataFormat::Parquet,
        Some("csv" | "tsv") => DataFormat::Csv,
        Some("jsonl" | "ndjson") => DataFormat::Jsonl,
        _ => DataFormat::Other,
    }
}

/// Whether a file is plain text by its name.
#[must_use]
pub fn is_text(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|extension| matches!(extension.as_str(), "txt" | "text" | "log" | "md"))
}
