//! Files that a person names for an answer: none of them may be what the answer is made from.

use std::path::{Path, PathBuf};

use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::replaces_input;

use crate::data::table::TableRequest;

/// Refuses an output that is an input, by name, by link or through a linked folder. Called before anything is written.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn refuse_inputs<'p>(
    outputs: impl IntoIterator<Item = &'p Path>,
    inputs: &[PathBuf],
) -> Result<(), AppError> {
    match replaces_input(outputs, inputs.iter().map(PathBuf::as_path)) {
        None => Ok(()),
        Some(clash) => {
            let (output, input) = (clash.output.display(), clash.input.display());
            let message = match clash.output == clash.input {
                true => format!("`{output}` is an input and would be replaced"),
                false => format!("`{output}` is the input `{input}` and would be replaced"),
            };
            Err(AppError::new(ErrorKind::Usage, message).hint("name another output"))
        }
    }
}

impl TableRequest {
    /// As [`refuse_inputs`], for the files of a table.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`]. The reader refuses a table that cannot be opened.
    pub fn refuse_outputs<'p>(
        &self,
        base: &Path,
        outputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), AppError> {
        let existing: Vec<&Path> = outputs.into_iter().filter(|output| output.exists()).collect();
        if existing.is_empty() {
            return Ok(());
        }
        let Ok(source) = self.open(base, "data") else { return Ok(()) };
        let inputs: Vec<PathBuf> = source.files().iter().map(|file| base.join(&file.path)).collect();
        refuse_inputs(existing, &inputs)
    }
}

/// As [`refuse_inputs`], for what commands read from the home: the ledger.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn refuse_outputs<'p>(
    context: &Context,
    outputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), AppError> {
    let location = context.home.ledger_location();
    refuse_inputs(outputs, &[PathBuf::from(location.strip_prefix("sqlite://").unwrap_or(&location))])
}

/// Refuses a folder that holds something. Called before anything is written to it.
///
/// # Errors
/// [`ErrorKind::Usage`]; when it cannot be read.
pub fn refuse_filled(folder: &Path) -> Result<(), AppError> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(AppError::file("read", folder, error)),
    };
    match entries.next() {
        None => Ok(()),
        Some(_) => {
            let message = format!("`{}` is not empty", folder.display());
            Err(AppError::new(ErrorKind::Usage, message).hint("name a folder that does not exist yet"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an output which is an input is refused, also under another name, and so is a folder with something in
    /// it, but no name that is new.
    #[test]
    fn an_input_is_never_an_output() {
        let folder = tempfile::tempdir().unwrap();
        let (input, link) = (folder.path().join("a.csv"), folder.path().join("link.csv"));
        std::fs::write(&input, "x\n").unwrap();
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let refused = |output: &Path| {
            let inputs = std::slice::from_ref(&input);
            refuse_inputs([output], inputs).map_err(|error| error.to_string()).err().unwrap_or_default()
        };
        assert_eq!(refused(&folder.path().join("b.csv")), "");
        let same = refused(&input);
        assert!(same.ends_with("a.csv` is an input and would be replaced"), "{same}");
        let by_link = refused(&link);
        assert!(by_link.contains("link.csv` is the input `") && by_link.contains("a.csv` and"), "{by_link}");
        let filled = refuse_filled(folder.path()).unwrap_err().to_string();
        assert!(filled.ends_with("` is not empty"), "{filled}");
        refuse_filled(&folder.path().join("new")).unwrap();
    }
}
