use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// An output that is also an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// What would be replaced.
    pub output: PathBuf,
    /// What is read, as it was given.
    pub input: PathBuf,
}

/// The first output that is the same file as an input: by name, by link, or through a linked folder.
pub fn replaces_input<'o, 'i>(
    outputs: impl IntoIterator<Item = &'o Path>,
    inputs: impl IntoIterator<Item = &'i Path>,
) -> Option<Clash> {
    let outputs: Vec<(&Path, (u64, u64))> =
        outputs.into_iter().filter_map(|output| Some((output, identity(output)?))).collect();
    if outputs.is_empty() {
        return None;
    }
    inputs.into_iter().find_map(|input| {
        let found = identity(input)?;
        let (output, _) = outputs.iter().find(|(_, identity)| *identity == found)?;
        Some(Clash { output: (*output).to_owned(), input: input.to_owned() })
    })
}

/// What makes a file the same one under every name; none where nothing has the name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an input is known under another spelling, a hard link and a symbolic link, and that a new name or
    /// another file with the same content is not an input.
    #[test]
    fn an_input_is_found_under_every_name() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("t.csv"), "a\n1\n").unwrap();
        fs::write(at("copy.csv"), "a\n1\n").unwrap();
        fs::hard_link(at("t.csv"), at("hard.csv")).unwrap();
        std::os::unix::fs::symlink("t.csv", at("soft.csv")).unwrap();
        fs::create_dir(at("d")).unwrap();
        for output in ["t.csv", "d/../t.csv", "hard.csv", "soft.csv"] {
            let found =
                replaces_input([at(output).as_path()], [at("copy.csv").as_path(), at("t.csv").as_path()]);
            assert_eq!(found, Some(Clash { output: at(output), input: at("t.csv") }), "{output}");
        }
        for output in ["new.csv", "copy.csv", "d"] {
            assert_eq!(replaces_input([at(output).as_path()], [at("t.csv").as_path()]), None, "{output}");
        }
    }
}
