//! Whether the program of a scoring command is there, before it is started.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::shell::words;

/// Lets the shell check the first word of a scoring command, if that is a plain word. `key` is where the command comes from.
///
/// # Errors
/// [`ErrorKind::Usage`] if there is none of that name.
pub(crate) fn check_program(
    line: &str,
    folder: &Path,
    environment: &BTreeMap<String, String>,
    key: &str,
) -> Result<(), AppError> {
    let is_plain = |word: &String| word.chars().all(|it| it.is_alphanumeric() || "/._-+".contains(it));
    let Some(program) = words(line).into_iter().next().filter(is_plain) else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut shell = Command::new("sh");
    shell.args(["-c", "command -v \"$0\"", &program]).envs(environment);
    shell.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    let known = shell.status().map_err(|error| AppError::fault("cannot start a shell", error))?;
    if known.success() {
        return Ok(());
    }
    let message =
        format!("no command `{program}` in `{}`: it is the first word of `{key}`", folder.display());
    Err(AppError::new(ErrorKind::Usage, message))
}
