//! `trackway init`: a run file for a project.

use std::path::PathBuf;

use trackway_core::name::NameKind;
use trackway_engine::Context;
use trackway_flows::training::init::{
    Draft, InitRequest, RecordedRequest, data_sets, draft, framework_title, survey, survey_run, text, write,
};
use trackway_formats::shell;

use crate::args::InitArgs;
use crate::commands::given_name;
use crate::exit::{Exit, Failure};
use crate::printer::{Printer, stderr_is_terminal, stdin_is_terminal};

/// The answer to the question for data if there is none.
const NO_DATA: &str = "none";

/// Drafts a run file from what a project shows, or from a run that `home` has.
pub fn init(args: &InitArgs, home: impl FnOnce() -> Result<Context, Failure>, printer: Printer) -> Exit {
    let draft = match &args.from {
        Some(run) => of_run(&home()?, run, args)?,
        None => of_project(args, printer)?,
    };
    if draft.command.is_empty() {
        return Err(Failure::usage("no script was found", "name the file that trains: trackway init SCRIPT"));
    }
    write(&text(&draft), &args.out, args.force)?;
    let path = args.out.display().to_string();
    match printer.is_json() {
        true => printer.document(&draft.written_to(path)),
        false => report_written(&draft, &path, printer),
    }
    Ok(0)
}

fn of_run(context: &Context, run: &str, args: &InitArgs) -> Result<Draft, Failure> {
    let run = context.resolve_run(run)?;
    let request = RecordedRequest { run, output: args.out.clone(), replace: args.force };
    Ok(draft(&survey_run(context, &request)?))
}

fn of_project(args: &InitArgs, printer: Printer) -> Result<Draft, Failure> {
    let request = InitRequest {
        script: args.script.clone(),
        arguments: args.arguments.clone(),
        output: args.out.clone(),
        replace: args.force,
    };
    let found = draft(&survey(&request)?);
    let a_person_answers = stdin_is_terminal() && stderr_is_terminal() && !printer.is_json();
    match a_person_answers {
        true => asked(found, &request, |question| Ok(printer.ask(question)?)),
        false => Ok(found),
    }
}

fn report_written(draft: &Draft, path: &str, printer: Printer) {
    let command: Vec<String> = draft.command.iter().map(|word| shell::quoted(word)).collect();
    printer.note(format!("wrote {path}: run `{}`, command: {}", draft.name, command.join(" ")));
    let data = draft.data.iter().map(|set| match &set.label {
        Some(label) => format!("{} (label `{label}`)", set.path),
        None => set.path.clone(),
    });
    let data = data.collect::<Vec<_>>().join(", ");
    printer.note(match (framework_title(draft.framework), data.is_empty()) {
        (Some(framework), false) => format!("found {framework} and data: {data}"),
        (Some(framework), true) => format!("found {framework}; no data"),
        (None, false) => format!("found data: {data}"),
        (None, true) => "found no framework and no data".to_owned(),
    });
    if let Some(recorded) = draft.recorded.as_ref().filter(|recorded| !recorded.adopt.is_empty()) {
        let how = match draft.resume_arguments.as_slice() {
            [] => "if the script looks for them".to_owned(),
            found => format!("with `{}`", found.join(" ")),
        };
        printer
            .note(format!("its retries continue from the checkpoints {} {how}", recorded.adopt.join(", ")));
    }
    printer.note(format!(
        "check it with: trackway preflight {0}; start it with: trackway run {0}",
        shell::quoted(path)
    ));
}

/// What was found, with the answers of a person to three questions. An empty answer accepts what was found.
fn asked(
    found: Draft,
    request: &InitRequest,
    mut answer: impl FnMut(&str) -> Result<String, Failure>,
) -> Result<Draft, Failure> {
    let mut ask = |what: &str, default: &str| match default {
        "" => answer(&format!("{what}: ")),
        default => answer(&format!("{what} [{default}]: ")),
    };
    let shown = |words: &[String]| words.iter().map(|word| shell::quoted(word)).collect::<Vec<_>>().join(" ");
    let mut draft = found;
    let command = shell::words(&ask("command", &shown(&draft.command))?);
    if !command.is_empty() {
        draft = of_command(&command, request)?;
    }
    let name = ask("name", &draft.name)?;
    if !name.is_empty() {
        draft.name = given_name(NameKind::Run, &name)?.into();
    }
    let paths: Vec<String> = draft.data.iter().map(|set| set.path.clone()).collect();
    let default = if paths.is_empty() { NO_DATA.to_owned() } else { shown(&paths) };
    let data = shell::words(&ask("data files", &default)?);
    if !data.is_empty() {
        draft.data = if data == [NO_DATA] { Vec::new() } else { data_sets(&data) };
    }
    Ok(draft)
}

/// What a typed command shows: its script is the first of its words that is a file.
fn of_command(command: &[String], request: &InitRequest) -> Result<Draft, Failure> {
    let script = command.iter().position(|word| PathBuf::from(word).is_file());
    let arguments = command.iter().skip(script.map_or(1, |script| script + 1)).cloned().collect();
    let request = InitRequest {
        script: script.and_then(|script| command.get(script)).map(PathBuf::from),
        arguments,
        ..request.clone()
    };
    Ok(Draft { command: command.to_vec(), ..draft(&survey(&request)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_with(answers: [&str; 3]) -> (Result<Draft, Failure>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let request = InitRequest {
            script: None,
            arguments: Vec::new(),
            output: folder.path().join("trackway.toml"),
            replace: false,
        };
        let mut found = draft(&survey(&request).unwrap());
        found.name = "income".into();
        let mut answers = answers.into_iter();
        let mut questions = Vec::new();
        let drafted = asked(found, &request, |question| {
            questions.push(question.to_owned());
            Ok(answers.next().unwrap().to_owned())
        });
        (drafted, questions)
    }

    /// Proves that at most three questions are asked, each with what was found, and that answers become the run file.
    #[test]
    fn answers_become_the_draft() {
        let (draft, questions) =
            asked_with(["torchrun 'my train.py' --lr 0.1", "baseline", "a/train.csv 'b/my test.csv'"]);
        let draft = draft.unwrap();
        assert_eq!(draft.command, ["torchrun", "my train.py", "--lr", "0.1"]);
        assert_eq!((draft.name.as_str(), draft.data.len()), ("baseline", 2));
        assert_eq!((draft.data[1].name.as_str(), draft.data[1].path.as_str()), ("test", "b/my test.csv"));
        assert_eq!((questions[0].as_str(), questions[2].as_str()), ("command: ", "data files [none]: "));
        assert_eq!(questions.len(), 3);
    }

    /// Proves that empty answers accept what was found, and that a name with another meaning is refused.
    #[test]
    fn empty_answers_accept_what_was_found() {
        let (draft, questions) = asked_with(["", "", ""]);
        let draft = draft.unwrap();
        assert_eq!((draft.name.as_str(), draft.command.len(), draft.data.len()), ("income", 0, 0));
        assert_eq!(questions[1], "name [income]: ");
        let (_, data) = asked_with(["", "", "none"]);
        assert_eq!(data.len(), 3);
        assert_eq!(asked_with(["", "last", ""]).0.unwrap_err().code(), 2);
    }
}
