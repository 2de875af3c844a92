use std::collections::BTreeSet;

use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Proves where each file of a home is.
#[test]
fn paths_of_a_home() {
    let home = HomeLayout::new("/home/me/.trackway");
    let run_id: RunId = "run_01kajn4f3s0000000000000000".parse().unwrap();
    let attempt_id: AttemptId = "att_01kajn4f3s0000000000000001".parse().unwrap();
    let (run, attempt) = (home.run(run_id), home.attempt(attempt_id));
    let evaluation = home.evaluation("eval_01kajn4f3s0000000000000002");
    let copies = [
        RowCopy::Run,
        RowCopy::State,
        RowCopy::Checks,
        RowCopy::Attempt(attempt_id),
        RowCopy::Receipt(attempt_id),
        RowCopy::RollBack(attempt_id),
        RowCopy::Evaluation("eval_01kajn4f3s0000000000000002"),
        RowCopy::Amendment("amd_01kajn4f3s0000000000000003"),
        RowCopy::AmendedRun("amd_01kajn4f3s0000000000000003"),
        RowCopy::Diagnosis(run_id),
        RowCopy::Notice("run_01kajn4f3s0000000000000000:gate:1:1/2"),
        RowCopy::Event("run_01kajn4f3s0000000000000000:queue_joined:1"),
    ];
    let mut paths = vec![
        home.ledger_db(),
        home.settings(),
        home.gitignore(),
        home.attempt_source(attempt_id),
        home.changes_source("0123"),
        home.file_source("4567"),
        home.environment_source("89ab"),
        home.metrics_parquet(attempt_id),
        home.telemetry_parquet(attempt_id),
        home.set_aside_file("att_01kajn4f3s0000000000000001"),
        home.registry_file("model/income"),
        home.deployed_folders("model/income"),
        home.checkpoint_root(run_id, LaunchKind::Train, "100%"),
        home.evaluation_outputs(),
        home.queue("host-1", &"gpu".parse().unwrap()),
        evaluation.launch(1),
        evaluation.checkpoint(),
        evaluation.as_written(),
        evaluation.import(),
        evaluation.finishes(),
        attempt.stack_dump(1),
    ];
    paths.extend(copies.map(|copy| run.row_copy(copy)));
    paths.extend(DataLayout::ENTRIES.iter().map(|entry| home.data().join(entry.name)));
    paths.extend(RunLayout::ENTRIES.iter().map(|entry| run.folder().join(entry.name)));
    paths.extend(AttemptLayout::ENTRIES.iter().map(|entry| attempt.folder().join(entry.name)));
    let mut listed: Vec<String> = paths.iter().map(|path| home.below(path)).collect();
    listed.sort();
    let expected: Vec<&str> = include_str!("home.txt").lines().collect();
    assert_eq!(listed, expected, "{}", listed.join("\n"));
    assert_eq!(run.plan_json(), run.folder().join("plan.json"));
    assert_eq!(attempt.exit_json(), attempt.folder().join("exit.json"));
}

/// Proves that a row copy's kind is read from its file name.
#[test]
fn row_copies_are_recognised() {
    let attempt_id: AttemptId = "att_01kajn4f3s0000000000000001".parse().unwrap();
    for copy in [
        RowCopy::Run,
        RowCopy::State,
        RowCopy::Checks,
        RowCopy::Attempt(attempt_id),
        RowCopy::Receipt(attempt_id),
        RowCopy::RollBack(attempt_id),
        RowCopy::Evaluation("eval_1"),
        RowCopy::AmendedRun("amd_1"),
        RowCopy::Notice("run_1:end:1:failed"),
        RowCopy::Event("run_1:queue_joined:1"),
    ] {
        assert_eq!(RowCopyKind::of_file(&copy.file_name()), Some(copy.kind()));
    }
    for name in ["run", "running.json", "roll-back.json.part-1", "note.json", ""] {
        assert_eq!(RowCopyKind::of_file(name), None, "`{name}`");
    }
}

/// The first column of the rows of a document's tables, without its back quotes.
fn first_cells(document: &str) -> Vec<String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.replace('`', "")).collect()
}

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// Proves that `docs/formats/attempt-folder.md` lists exactly the files of an attempt, and every kind of row copy.
#[test]
fn the_document_of_an_attempt_lists_its_files() {
    let text = document("docs/formats/attempt-folder.md");
    let table = text.split("\n## ").next().unwrap();
    let listed: BTreeSet<String> =
        first_cells(table).into_iter().map(|path| path.split('/').next().unwrap().to_owned()).collect();
    let names: BTreeSet<String> = AttemptLayout::ENTRIES.iter().map(|entry| entry.name.to_owned()).collect();
    assert_eq!(listed, names);
    for kind in RowCopyKind::ALL {
        let is_named =
            [format!("`{kind}.json`"), format!("`{kind}-<id>.json`")].iter().any(|name| text.contains(name));
        assert!(is_named, "docs/formats/attempt-folder.md does not name the row copies `{kind}`");
    }
}

/// Proves that `docs/home.md` lists exactly what is in a home and in the folder of a run, with its purpose.
#[test]
fn the_document_of_the_home_lists_its_folders() {
    let text = document("docs/home.md");
    let rows = |folder: &str, entries: &[Entry]| -> String {
        let row = |entry: &Entry| format!("| `{folder}{}` | {} |\n", entry.name, entry.purpose.trim());
        entries.iter().map(row).collect()
    };
    for rows in [
        rows("", HomeLayout::ENTRIES),
        rows("data/", DataLayout::ENTRIES),
        rows("runs/RUN/", RunLayout::ENTRIES),
        rows("evaluations/EVALUATION/", EvaluationLayout::ENTRIES),
    ] {
        assert!(text.contains(&rows), "docs/home.md must contain:\n{rows}");
    }
    let layouts = [HomeLayout::ENTRIES, DataLayout::ENTRIES, RunLayout::ENTRIES, EvaluationLayout::ENTRIES];
    let count = layouts.iter().map(|entries| entries.len()).sum::<usize>();
    assert_eq!(first_cells(&text).len(), count);
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "examples", "layout"].contains(&&*name) && !name.starts_with('.') {
                sources(&path, found);
            }
        } else if name.ends_with(".py") || name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Whether a source makes a path with this name. A name with a dot is not used for anything else.
fn spells(source: &str, name: &str) -> bool {
    let mut ways = vec![format!("join(\"{name}\")"), format!("join(\"{name}/")];
    if name.contains('.') {
        ways.extend([format!("\"{name}\""), format!("/{name}\"")]);
    }
    ways.iter().any(|way| source.contains(way))
}

/// Proves that no other source spells a name of the layouts; those of tests are left out.
#[test]
fn no_other_source_spells_these_names() {
    let layouts = [
        HomeLayout::ENTRIES,
        DataLayout::ENTRIES,
        RunLayout::ENTRIES,
        AttemptLayout::ENTRIES,
        EvaluationLayout::ENTRIES,
    ];
    let mut names: Vec<&str> =
        layouts.iter().flat_map(|entries| entries.iter().map(|entry| entry.name)).collect();
    // `data`, `.gitignore` and `config.toml` are names in other folders too.
    names.retain(|name| !["data", ".gitignore", SETTINGS_FILE].contains(name));
    names.extend(["outputs", PROJECT_FOLDER]);
    let copies = [RowCopy::Run, RowCopy::State, RowCopy::Checks].map(RowCopy::file_name);
    names.extend(copies.iter().map(String::as_str));
    let mut found = Vec::new();
    sources(&Path::new(ROOT).join("crates"), &mut found);
    assert!(found.len() > 500, "the sources were not found: {}", found.len());
    let mut spelled = Vec::new();
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let production = text.split("#[cfg(test)]\nmod ").next().unwrap();
        let here = names.iter().filter(|name| spells(production, name));
        spelled.extend(here.map(|name| format!("{}: `{name}`", path.display())));
    }
    assert!(spelled.is_empty(), "use `trackway_formats::layout`:\n{}", spelled.join("\n"));
}
