//! Whether what the commands of a run file name is there: a script that is missing ends a run at once, an evaluator that is
//! missing ends it after the training.

use std::path::Path;

use trackway_core::checks::{CheckResult, Finding, NoRows, Severity};
use trackway_engine::capture::script_of;
use trackway_engine::error::AppError;
use trackway_engine::run::starts_container;
use trackway_formats::shell::words;

use super::{Looker, Work};
use crate::evaluation::evaluate::check_scorer;

const RUN: &str = "run.command";
const EVALUATE: &str = "evaluate.command";

/// Looks for the files that both commands name.
pub fn commands(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let (job, folder) = (work.job, work.job.working_directory());
    let run = match starts_container(job.plan.container.as_ref(), work.capture) {
        true => CheckResult::not_applicable(RUN, "the command is looked up in the image of `[container]`"),
        false => of_script(RUN, &job.plan.run.command, &folder),
    };
    let Some(section) = &job.plan.evaluate else {
        let none = CheckResult::not_applicable(EVALUATE, "the run file has no `[evaluate]`");
        return Ok(vec![run, none]);
    };
    let evaluate = match &section.scorer {
        None => of_script(EVALUATE, &section.command, &folder),
        Some(line) => match check_scorer(job, line) {
            Ok(()) => of_script(EVALUATE, &words(line), &folder),
            Err(missing) => {
                let finding = Finding::new(EVALUATE, Severity::Block, missing.to_string());
                let finding = finding.action(missing.hints.join("; "));
                CheckResult::about(EVALUATE, NoRows::Settings, vec![finding])
            }
        },
    };
    Ok(vec![run, evaluate])
}

fn of_script(check: &str, command: &[String], folder: &Path) -> CheckResult {
    let Some(script) = script_of(command, folder) else {
        return CheckResult::not_applicable(check, "the command names no script");
    };
    let shown = script.strip_prefix(folder).unwrap_or(&script).display();
    if script.is_file() {
        return CheckResult::pass(check, NoRows::Settings, format!("`{shown}` is there"));
    }
    if !is_opened_here(command) {
        return CheckResult::not_applicable(check, "the command may start its script elsewhere");
    }
    let message = format!("there is no file `{shown}` in `{}`", folder.display());
    let finding = Finding::new(check, Severity::Block, message).about(check);
    let action = "correct the name; paths of commands start at `run.working_directory`, by default the run file's folder";
    CheckResult::about(check, NoRows::Settings, vec![finding.action(action)])
}

/// Whether the command opens its script on this machine for certain: an interpreter does; a container, another machine or a
/// module of Python may have files of other places.
fn is_opened_here(command: &[String]) -> bool {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_interpreter = name.starts_with("python") || matches!(name, "sh" | "bash" | "torchrun");
    is_interpreter && !command.iter().any(|word| word == "-m" || word == "-c")
}

#[cfg(test)]
mod tests {
    use trackway_core::checks::Verdict;

    use super::*;

    /// Proves that a missing script blocks only where the command opens it on this machine.
    #[test]
    fn only_a_script_that_is_opened_here_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let verdict = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            of_script(RUN, &command, folder.path()).verdict
        };
        assert_eq!(verdict(&["/usr/bin/python3", "-u", "train.py"]), Verdict::Block);
        assert_eq!(verdict(&["torchrun", "train.py"]), Verdict::Block);
        for elsewhere in [
            ["docker", "run", "image", "python", "train.py"],
            ["python3", "-m", "tool", "convert", "out.py"],
            ["sh", "-c", "python train.py", "-", "-"],
        ] {
            assert_eq!(verdict(&elsewhere), Verdict::NotApplicable, "{elsewhere:?}");
        }
    }
}
