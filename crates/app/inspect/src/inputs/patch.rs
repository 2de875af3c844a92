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

impl PatchedFile {
    /// What it did to the file: `+1 −1`, `deleted`.
    pub(super) fn shown(&self) -> String {
        // Lines of content have a mark before them.
        let has = |beginning: &str| self.text.lines().any(|line| line.starts_with(beginning));
        if has("deleted file mode ") {
            "deleted".into()
        } else if has("new file mode ") {
            "new file".into()
        } else if self.lines == LineCount::default() {
            "other bytes or another mode".into()
        } else {
            self.lines.to_string()
        }
    }

    /// The lines around its changes, as they are in the commit and as they are now.
    pub(super) fn sides(&self) -> (String, String) {
        let (mut before, mut after) = (String::new(), String::new());
        let is_head = |line: &&str| line.starts_with("@@ ");
        let hunks = self.text.lines().skip_while(|line| !is_head(line)).filter(|line| !is_head(line));
        for line in hunks {
            let (mark, content) = (line.as_bytes().first(), line.get(1..).unwrap_or_default());
            if matches!(mark, Some(b' ' | b'-')) {
                before.push_str(content);
                before.push('\n');
            }
            if matches!(mark, Some(b' ' | b'+')) {
                after.push_str(content);
                after.push('\n');
            }
        }
        (before, after)
    }
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

    /// Proves that a deleted, a new and a changed file are called so, also where no lines say it, and that the lines of both sides are read.
    #[test]
    fn what_was_done_to_a_file_is_said() {
        let diff = "diff --git a/t.py b/t.py\nindex 1..2 100644\n--- a/t.py\n+++ b/t.py\n@@ -1,2 +1,2 @@\n a\n-lr = 1\n+lr = 2\n\
                    diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
                    diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+deleted file mode 1\n\
                    diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
        let found = sections(diff);
        let shown = |path: &str| found[path].shown();
        assert_eq!(["t.py", "gone", "new"].map(shown), ["+1 −1", "deleted", "new file"]);
        assert_eq!(shown("run.sh"), "other bytes or another mode");
        assert_eq!(found["t.py"].sides(), ("a\nlr = 1\n".into(), "a\nlr = 2\n".into()));
    }
}
