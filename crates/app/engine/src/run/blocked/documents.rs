//! Which files cannot change what a run does.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Names of documents, without what they end with.
const DOCUMENTS: [&str; 14] = [
    "readme", "license", "licence", "copying", "notice", "changelog", "authors", "contributing",
    "codeowners", ".gitignore", ".gitattributes", ".editorconfig", ".mailmap", ".dockerignore",
];

/// Whether a file cannot change what a run does: people and git read it.
#[must_use]
pub fn is_document(path: &str) -> bool {
    let path = PathBuf::from(path.to_lowercase());
    let text = |part: Option<&OsStr>| part.and_then(OsStr::to_str).unwrap_or_default().to_owned();
    let (stem, extension) = (text(path.file_stem()), text(path.extension()));
    let is_in_docs = path.parent().is_some_and(|folder| {
        folder.components().any(|part| matches!(part.as_os_str().to_str(), Some("doc" | "docs")))
    });
    match extension.as_str() {
        "md" | "rst" | "adoc" => true,
        "txt" => is_in_docs || DOCUMENTS.contains(&stem.as_str()),
        "" => DOCUMENTS.contains(&stem.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which files open no blocked run: documents and what git reads, and nothing that a script may read.
    #[test]
    fn documents_open_nothing() {
        for path in
            ["README", "README.md", "docs/notes.txt", "LICENSE.txt", "a/.gitignore", "doc/x.rst", "Docs/a.md"]
        {
            assert!(is_document(path), "{path}");
        }
        for path in ["t.py", "prompts.txt", "docs/conf.py", "config.yaml", "docs.txt", "readme.json", "data"]
        {
            assert!(!is_document(path), "{path}");
        }
    }
}
