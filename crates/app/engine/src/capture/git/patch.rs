//! The difference that was not committed, without secrets: file by file, so that what cannot be kept of one takes nothing from another.

use std::path::{Path, PathBuf};

use trackway_files::read_regular;
use trackway_redact::{Redactor, has_secret_name, unkeepable};

use super::diff::{BINARY, path_of, sections};

/// The most of a file that is searched for secrets and kept.
pub const KEPT_FILE_BYTES_MAX: u64 = 4 << 20;

/// What is kept of a difference.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::capture) struct Patch {
    pub bytes: Vec<u8>,
    /// What is not in it, a line each.
    pub left_out: Vec<String>,
}

/// The difference of the tree at `root`, without secrets.
pub(in crate::capture) fn without_secrets(redactor: &Redactor, diff: &[u8], root: &Path) -> Patch {
    let mut patch = Patch::default();
    let mut has_secrets = false;
    for section in sections(diff) {
        match kept(redactor, section, root) {
            Ok(kept) => {
                has_secrets |= is_text(section) && kept != section;
                patch.bytes.extend(kept);
            }
            Err(why) => {
                let shown = |path: PathBuf| format!("`{}`", path.display());
                let path = path_of(section).map_or_else(|| "a file".into(), shown);
                patch.left_out.push(format!("the changes of {path}: {why}"));
            }
        }
    }
    if has_secrets {
        patch.left_out.push("secrets in the changes that were not committed".into());
    }
    patch
}

fn kept(redactor: &Redactor, section: &[u8], root: &Path) -> Result<Vec<u8>, String> {
    let path = path_of(section);
    let name = path.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if has_secret_name(&name) {
        return Err("not kept, since its name is that of a file with secrets".into());
    }
    if is_text(section) {
        let clean = redactor.bytes(section);
        return match fits(section, &clean) {
            true => Ok(clean.into_owned()),
            false => Err("not kept, since there are secrets in lines that a patch needs".into()),
        };
    }
    if !section_has(section, b"deleted file mode ") {
        let path = path.as_deref().ok_or("not kept, since its name cannot be read")?;
        search_file(redactor, &root.join(path), &name)?;
    }
    Ok(without_old_content(section))
}

/// Looks into the file that a binary section makes: in the section itself it is compressed.
fn search_file(redactor: &Redactor, path: &Path, name: &str) -> Result<(), String> {
    let size = path.symlink_metadata().map_err(|error| error.to_string())?.len();
    if size > KEPT_FILE_BYTES_MAX {
        return Err("too large to be searched for secrets".into());
    }
    let bytes = read_regular(path).map_err(|error| error.to_string())?;
    if let Some(why) = unkeepable(name, &bytes) {
        return Err(format!("not kept, since {why}"));
    }
    match *redactor.bytes(&bytes) == bytes[..] {
        true => Ok(()),
        false => Err("not kept, since there are secrets in it".into()),
    }
}

/// Whether a patch without its secrets can still be applied: as many lines, and only added ones are others.
fn fits(section: &[u8], clean: &[u8]) -> bool {
    let (mut before, mut after) = (section.split(is_newline), clean.split(is_newline));
    loop {
        match (before.next(), after.next()) {
            (None, None) => return true,
            (Some(old), Some(new)) if old == new || (old.starts_with(b"+") && new.starts_with(b"+")) => {}
            _ => return false,
        }
    }
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

fn is_text(section: &[u8]) -> bool {
    !section_has(section, BINARY.as_bytes())
}

/// Whether a line of the section begins so; lines of content have a mark before them.
fn section_has(section: &[u8], beginning: &[u8]) -> bool {
    let newlines = memchr::memchr_iter(b'\n', section);
    newlines.map(|newline| newline + 1).any(|at| section[at..].starts_with(beginning))
}

/// A binary section without the content that the file had before, which nothing needs that applies the patch. It is the second of
/// two blocks, each of which ends with an empty line.
fn without_old_content(section: &[u8]) -> Vec<u8> {
    let end = memchr::memmem::find(section, b"\n\n").map_or(section.len(), |end| end + 2);
    section[..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(path: &str, lines: &str) -> String {
        let head = format!("diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n");
        format!("{head}@@ -1,2 +1,2 @@\n{lines}")
    }

    fn token() -> String {
        format!("gh{}{}", "p_", "Ab1Cd2".repeat(6))
    }

    /// Proves that secrets in added lines are taken out, that a section which could not be applied without its secrets or has the name of
    /// a file of secrets is left out, and that a byte in another encoding changes nothing of it.
    #[test]
    fn a_difference_is_kept_file_by_file() {
        let redactor = Redactor::of_shapes();
        let folder = tempfile::tempdir().unwrap();
        let plain = section("a b.py", " x = 1\n-y = 2\n+y = 3\n");
        let added = section("added.py", &format!(" x = 1\n+y = '{}'\n", token()));
        let removed = section("removed.py", &format!("-y = '{}'\n+y = 1\n", token()));
        let named = section("conf/.env", "-A=1\n+A=2\n");
        let whole = format!("{plain}{added}{removed}{named}");
        for noise in [&b"plain"[..], b"caf\xe9"] {
            let diff = whole.clone().into_bytes();
            let diff =
                [diff, section("z.txt", " a\n+").into_bytes(), noise.to_vec(), b"\n".to_vec()].concat();
            let patch = without_secrets(&redactor, &diff, folder.path());
            assert!(!patch.bytes.windows(8).any(|window| window == &token().as_bytes()[..8]));
            assert!(patch.bytes.starts_with(plain.as_bytes()), "{}", String::from_utf8_lossy(&patch.bytes));
            assert!(patch.bytes.windows(noise.len()).any(|window| window == noise));
            let left_out = [
                "the changes of `removed.py`: not kept, since there are secrets in lines that a patch needs",
                "the changes of `conf/.env`: not kept, since its name is that of a file with secrets",
                "secrets in the changes that were not committed",
            ];
            assert_eq!(patch.left_out, left_out);
        }
    }

    /// Proves that the content of a binary section is looked for in the file, and that what the file had before is not kept.
    #[test]
    fn binary_sections_are_searched_in_the_file() {
        let redactor = Redactor::of_shapes();
        let folder = tempfile::tempdir().unwrap();
        let binary = |path: &str| {
            format!(
                "diff --git a/{path} b/{path}\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZ?\n\nliteral 5\nOldOld\n\n"
            )
        };
        std::fs::write(folder.path().join("plain.bin"), b"\0\x01\x02").unwrap();
        std::fs::write(folder.path().join("leaky.bin"), format!("\0\x01{}\0", token())).unwrap();
        std::fs::write(folder.path().join("store.jks"), b"\xfe\xed\xfe\xed").unwrap();
        let diff = ["plain.bin", "leaky.bin", "store.jks", "gone.bin"].map(binary).concat();
        let patch = without_secrets(&redactor, diff.as_bytes(), folder.path());
        let kept = String::from_utf8(patch.bytes).unwrap();
        assert!(kept.contains("KcmZ?") && !kept.contains("OldOld"), "{kept}");
        assert_eq!(kept.matches("diff --git").count(), 1);
        assert_eq!(patch.left_out.len(), 3, "{:?}", patch.left_out);
    }
}
