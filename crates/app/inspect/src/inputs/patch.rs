//! What `git diff` printed, file by file.

use std::collections::BTreeMap;

use trackway_api::explain::LineCount;

/// What a diff says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchedFile {
    /// All of it.
    pub text: String,
    /// Its lines that were added and removed; none for a binary file.
    pub lines: LineCount,
}

/// The files of a diff that was made without renames, by path.
pub(super) fn sections(diff: &str) -> BTreeMap<String, PatchedFile> {
    let mut found: BTreeMap<String, PatchedFile> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            let path = path_of(paths);
            found.insert(
                path.clone(),
                PatchedFile { text: String::new(), lines: LineCount { added: 0, removed: 0 } },
            );
            current = Some(path);
            in_hunk = false;
        }
        let Some(file) = current.as_ref().and_then(|path| found.get_mut(path)) else { continue };
        file.text.push_str(line);
        file.text.push('\n');
        in_hunk |= line.starts_with("@@ ");
        match line.as_bytes().first() {
            Some(b'+') if in_hunk => file.lines.added += 1,
            Some(b'-') if in_hunk => file.lines.removed += 1,
            _ => {}
        }
    }
    found
}

/// `x.py` of `a/x.py b/x.py`: both sides name the same file.
fn path_of(paths: &str) -> String {
    let half = paths.get(..paths.len() / 2).unwrap_or(paths).trim_matches('"');
    half.strip_prefix("a/").unwrap_or(half).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that files are distinguished by their paths, with their lines, and that headers are no lines.
    #[test]
    fn a_diff_is_read_file_by_file() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n--- a/t.py\n+++ b/t.py\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n\
                    diff --git a/a b.bin b/a b.bin\nBinary files differ\n";
        let found = sections(diff);
        let lines = |path: &str| (found[path].lines.added, found[path].lines.removed);
        assert_eq!(found.len(), 2);
        assert_eq!((lines("t.py"), lines("a b.bin")), ((2, 1), (0, 0)));
        assert!(sections("").is_empty());
    }
}
