//! The owner if the run file has none.

use std::process::Command;
use std::time::Duration;

use super::CaptureInputs;
use super::command::output;

const LIMIT: Duration = Duration::from_secs(5);
const MAX_NAME_BYTES: u64 = 1024;

/// git's `user.name` as seen from the working directory, else the login.
pub(super) fn default_owner(inputs: &CaptureInputs<'_>) -> Option<String> {
    let mut command = Command::new("git");
    command.args(["config", "--get", "user.name"]).current_dir(inputs.working_directory);
    let from_git =
        output(command, LIMIT, MAX_NAME_BYTES).ok().map(|name| String::from_utf8_lossy(&name).into_owned());
    let from_login =
        || ["USER", "LOGNAME"].into_iter().find_map(|name| inputs.environment.get(name).cloned());
    let known = |name: &String| !name.trim().is_empty();
    from_git.filter(known).or_else(from_login).filter(known).map(|name| name.trim().to_owned())
}
