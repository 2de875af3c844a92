use clap::CommandFactory as _;

use super::Cli;
use super::groups::grouped;

/// Columns that help is wrapped to.
const WIDTH: usize = 110;

/// Proves the `--help` of every command: a change of a word or an option shows in a review.
#[test]
fn help_of_every_command() {
    let mut command = grouped(Cli::command(), Some(WIDTH)).term_width(WIDTH);
    command.build();
    check_help(&mut command, "trackway");
}

fn check_help(command: &mut clap::Command, path: &str) {
    insta::assert_snapshot!(path.replace(' ', "_"), command.render_long_help());
    for subcommand in command.get_subcommands_mut().filter(|subcommand| !subcommand.is_hide_set()) {
        let path = format!("{path} {}", subcommand.get_name());
        check_help(subcommand, &path);
    }
}

/// Proves that no example of a help text is wrapped in a terminal of 100 columns.
#[test]
fn examples_fit_into_a_terminal() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_example = |line: &&str| line.starts_with("  ");
        for line in help.lines().filter(is_example) {
            assert!(line.chars().count() <= 100, "`{}`: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// Proves that no two arguments are in each other's way, and that defaults are values that are accepted.
#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// Proves that the command of a launcher is read without the grammar as with it, options of the script included, and
/// that every other one is left to the grammar.
#[test]
fn a_launch_is_read_as_by_the_grammar() {
    use clap::Parser as _;
    use std::ffi::OsString;

    use super::{Command, ShimArgs};

    let line = |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
    for words in [
        &["trackway", "__shim", "/runs/a", "--", "true"][..],
        &["trackway", "__shim", "/runs/a", "--", "python", "--help", "--", "-x", ""],
    ] {
        let words = line(words);
        let Ok(Cli { global, command: Command::Shim(by_grammar) }) = Cli::try_parse_from(&words) else {
            panic!("{words:?} is the command of a shim");
        };
        let read = ShimArgs::of_launcher(&words).unwrap();
        assert_eq!((read.folder, read.argv), (by_grammar.folder, by_grammar.argv));
        assert!(!global.json && !global.show_values);
    }
    for words in [
        &["trackway"][..],
        &["trackway", "__shim"],
        &["trackway", "__shim", "--help", "--", "true"],
        &["trackway", "__shim", "/runs/a", "--"],
        &["trackway", "run", "/runs/a", "--", "true"],
        &["trackway", "--json", "__shim", "/runs/a", "--", "true"],
    ] {
        assert!(ShimArgs::of_launcher(&line(words)).is_none(), "{words:?}");
    }
}

/// Proves that the command of the built-in evaluator is one that the command line accepts, with every option in its place.
#[test]
fn the_built_in_evaluator_is_a_command() {
    use super::{Command, EvalCommand};
    use trackway_flows::data::table::TableRequest;
    use trackway_flows::evaluation::score::{BatchFormat, ScoreRequest};
    use trackway_formats::runfile::{DataFormat, DataSpec, DecimalMark};

    let words = |list: &[&str]| -> Vec<String> { list.iter().map(|word| (*word).to_owned()).collect() };
    let request = ScoreRequest {
        table: TableRequest {
            paths: words(&["rows.csv"]),
            spec: DataSpec {
                format: Some(DataFormat::Csv),
                columns: words(&["id", "age", "y"]),
                header: Some(false),
                delimiter: Some(';'),
                comment: Some('#'),
                skip_lines: 2,
                trailing_separator: true,
                decimal: Some(DecimalMark::Comma),
                missing: words(&["?"]),
                ..DataSpec::default()
            },
            ..TableRequest::default()
        },
        command: "python score.py".to_owned(),
        format: BatchFormat::Arrow,
        label: Some("y".to_owned()),
        positive: Some("1".to_owned()),
        features: Vec::new(),
        skip: words(&["id"]),
        batch_rows: 64,
        limit: Some(7),
        probe_rows: Some(0),
    };
    let parsed = |request: &ScoreRequest| {
        let options = request.arguments().unwrap();
        let mut typed = words(&["trackway", "eval", "score", "--out=scored.csv"]);
        typed.extend_from_slice(&options[2..]);
        let cli = super::parse(typed.iter().map(Into::into)).unwrap_or_else(|error| panic!("{error}"));
        let Command::Eval(command) = cli.command else { panic!("{options:?}") };
        let EvalCommand::Score(args) = *command else { panic!("{options:?}") };
        args
    };
    let args = parsed(&request);
    assert_eq!((&args.command, args.batches), (&request.command, request.format));
    assert_eq!((&args.label, &args.positive, &args.skip), (&request.label, &request.positive, &request.skip));
    assert_eq!((args.batch_rows, args.limit, args.probe_rows), (64, Some(7), Some(0)));
    assert_eq!((&args.table.paths, args.read_as.as_deref()), (&request.table.paths, Some("csv")));
    let (reading, spec) = (&args.table.reading, &request.table.spec);
    assert_eq!((&reading.columns, reading.header), (&spec.columns, spec.header));
    assert_eq!((reading.delimiter, reading.comment), (spec.delimiter, spec.comment));
    assert_eq!((reading.skip_lines, reading.trailing_separator), (2, true));
    assert_eq!((reading.decimal, &reading.missing), (spec.decimal, &spec.missing));
    let named = ScoreRequest { features: words(&["age"]), skip: Vec::new(), ..request };
    assert_eq!(parsed(&named).features, named.features);
}

/// Proves that every command that `explain` proposes is one that the command line accepts and that works in that state, for every
/// combination of a state of the run, a reason, a kind of launch and what else is known.
#[test]
fn every_proposed_command_works_in_its_state() {
    use trackway_core::{DiagnosisKind, LaunchKind, TerminationReason};
    use trackway_engine::actions::{ActionKind, OwnAction};
    use trackway_inspect::explain::next::{NextFacts, RefusedLaunch, Unended, commands, next};
    use trackway_ledger::{AttemptState, RunState};

    let run_id: trackway_core::RunId = "run_01jz0000000000000000000001".parse().unwrap();
    let at = run_id.created_at();
    let stop = OwnAction { kind: ActionKind::StopRequested, at, kill_sent: false, why: "enough".into() };
    let attempt_id = "att_01jz0000000000000000000001".parse().unwrap();
    let reasons = std::iter::once(None).chain(TerminationReason::ALL.iter().copied().map(Some));
    let mut seen = std::collections::BTreeSet::new();
    // The same commands come again and again, and parsing one takes a millisecond.
    let mut parsed = std::collections::BTreeMap::new();
    for (state, reason, kind) in reasons.flat_map(|reason| {
        RunState::ALL
            .iter()
            .flat_map(move |state| LaunchKind::ALL.iter().map(move |kind| (*state, reason, *kind)))
    }) {
        // The advice about a training that an older version called so is that of another reason.
        if reason == Some(TerminationReason::EvaluatorError) && kind == LaunchKind::Train {
            continue;
        }
        for flags in 0..256_u32 {
            let is = |bit: u32| flags & (1 << bit) != 0;
            let facts = NextFacts {
                run_id,
                subject_run_id: run_id,
                attempt_id,
                state,
                kind,
                reason,
                rule: is(6).then(|| "storage.permission".to_owned()),
                is_followed: is(0),
                refused: is(4).then(|| RefusedLaunch {
                    why: "`c.pkl` is in the way".to_owned(),
                    repair: if is(2) { "move `c.pkl` away".to_owned() } else { String::new() },
                }),
                committed_step: is(1).then_some(40),
                last_step: is(2).then_some(49),
                unended: reason.is_none().then(|| Unended {
                    state: AttemptState::Running,
                    set_aside: is(0).then(|| "its record is torn".to_owned()),
                    ending: is(1).then(|| (OwnAction { kill_sent: is(2), ..stop.clone() }, 3.0)),
                    is_supervised: is(3),
                }),
                asks_to_save: is(5),
                signs: Vec::new(),
                data_path: is(1).then(|| "d/shard.csv".to_owned()),
                run_file: is(2).then(|| "r.toml".to_owned()),
                may_have_ranks: is(3),
                uses_sdk: is(5),
                reads_none: is(2),
                resume_arguments: if is(3) {
                    vec!["--resume".to_owned(), "{path}".to_owned()]
                } else {
                    Vec::new()
                },
                has_evaluate: is(3),
                is_evaluated: is(7),
                unmet_evaluation: is(4).then(|| "eval_01jz0000000000000000000001".to_owned()),
                last_good: is(5).then_some(run_id),
                health: (is(6) && reason.is_some() && kind == LaunchKind::Train).then(suspect),
                diagnosis: (is(5) && reason.is_some() && kind == LaunchKind::Train)
                    .then_some(DiagnosisKind::Hang),
                first_look: None,
                way_back: (reason == Some(TerminationReason::NumericDivergence)
                    && is(1)
                    && state == RunState::Failed
                    && kind == LaunchKind::Train)
                    .then(|| {
                        format!(
                            "to continue: trackway rollback {run_id} --to-step 20 && trackway resume {run_id}"
                        )
                    }),
                warnings: Vec::new(),
                has_snapshots: is(5),
                nothing_changed: is(2),
                reads_checkpoints: is(3),
                lacks_run_file: is(0) && kind == LaunchKind::Train,
                needs_full_command: is(7),
                instead_of_resume: (is(6) && is(1)).then(|| {
                    format!("start a run from the weights of step 40: trackway run r.toml --set run.start_from={run_id}")
                }),
                is_unsupervised: state == RunState::Waiting && is(0),
            };
            let is_doubted = facts.health.is_some() && reason.is_some_and(TerminationReason::is_success);
            for action in next(&facts) {
                assert!(!is_doubted || !action.contains("no action is needed"), "{facts:?}");
                for words in commands(&action) {
                    seen.insert(words[1].clone());
                    let parsed = parsed.entry(words).or_insert_with_key(|words: &Vec<String>| {
                        super::parse(words.iter().map(Into::into))
                            .unwrap_or_else(|error| panic!("`{action}` of {facts:?}: {error}"))
                    });
                    assert!(works(&parsed.command, &facts), "`{action}` does not work: {facts:?}");
                }
            }
        }
    }
    for word in [
        "resume", "watch", "stop", "explain", "diagnose", "eval", "compare", "rollback", "init",
        "checkpoint", "runs",
    ] {
        assert!(seen.contains(word), "{word} is never proposed: {seen:?}");
    }
}

/// The health of a run in which something was found.
fn suspect() -> trackway_api::runs::explain::ExplainedHealth {
    use trackway_core::{Health, HealthFinding, HealthReport};
    let evidence = "`loss` began at 2.3 and is 2.3 at the end".to_owned();
    let finding =
        HealthFinding { found_by: "plateau".into(), health: Health::Suspect, first_step: Some(1), evidence };
    trackway_api::runs::explain::ExplainedHealth {
        health: Some(Health::Suspect),
        report: HealthReport { findings: vec![finding], ..HealthReport::default() },
        blessed_because: None,
    }
}

/// What each command requires of a run.
fn works(command: &super::Command, facts: &trackway_inspect::explain::next::NextFacts) -> bool {
    use super::{Command, EvalCommand};
    use trackway_core::LaunchKind;
    use trackway_engine::run::may_resume;
    use trackway_ledger::RunState;

    let is_training = facts.kind == LaunchKind::Train;
    match command {
        Command::Resume(_) => {
            may_resume(facts.kind, facts.state, facts.reason)
                && !facts.needs_full_command
                && facts.instead_of_resume.is_none()
        }
        Command::Run(_) => facts.instead_of_resume.is_some(),
        Command::Watch(_) => {
            let waits = matches!(facts.state, RunState::Planned | RunState::Waiting);
            facts.state == RunState::Running || (waits && !facts.is_unsupervised)
        }
        Command::Stop(_) => matches!(facts.state, RunState::Running | RunState::Waiting),
        Command::Diagnose(_) => is_training && facts.reason.is_some(),
        Command::Rollback(_) => is_training && facts.committed_step.is_some() && facts.state.is_final(),
        Command::Init(_) => is_training && facts.state.is_final() && !facts.needs_full_command,
        Command::Checkpoint(_) => facts.committed_step.is_some(),
        Command::Runs(_) => is_training && facts.health.is_some(),
        Command::Eval(command) => match &**command {
            EvalCommand::Run(_) => !is_training || (facts.has_evaluate && facts.committed_step.is_some()),
            EvalCommand::Show(_) => facts.unmet_evaluation.is_some(),
            _ => false,
        },
        // They read what is there, and say so where there is nothing.
        Command::Explain(_) | Command::Compare(_) | Command::Data(_) | Command::Rehearse(_) => true,
        _ => false,
    }
}
