use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::json;
use trackway_core::Timestamp;
use trackway_engine::capture::{
    Capture, Folder, FolderFile, Git, NamedFile, Script, Untracked, patched_files,
};

use super::code::patched;
use super::*;
use crate::inputs::DataFile;

struct NoContent;

impl ContentSource for NoContent {
    fn file(&self, _: &str) -> Option<String> {
        None
    }

    fn patch(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn between(&self, _: &str, _: &str, _: &str) -> Result<Vec<(String, Option<LineCount>)>, String> {
        Err("it is gone".into())
    }

    fn patch_between(&self, _: &str, _: &str, _: &str, _: &[&str]) -> BTreeMap<String, PatchedFile> {
        BTreeMap::new()
    }

    fn times(&self) -> &RunTimes {
        static TIMES: LazyLock<RunTimes> = LazyLock::new(|| {
            let at = Timestamp::from_micros(5);
            let outputs = BTreeSet::from([PathBuf::from("/w/earlier.txt")]);
            RunTimes::new(vec![(at, Some(at))], vec![(at, Some(at))], [outputs, BTreeSet::new()])
        });
        &TIMES
    }

    fn untracked(&self, blake3: &str, path: &str) -> Option<String> {
        (path == "c.txt").then(|| format!("lr={blake3}\n"))
    }
}

/// Knows the files that differ between any two commits, and nothing else.
struct Between(&'static [&'static str]);

impl ContentSource for Between {
    fn file(&self, blake3: &str) -> Option<String> {
        NoContent.file(blake3)
    }

    fn patch(&self, blake3: &str) -> Option<Vec<u8>> {
        NoContent.patch(blake3)
    }

    fn between(&self, _: &str, _: &str, _: &str) -> Result<Vec<(String, Option<LineCount>)>, String> {
        Ok(self.0.iter().map(|path| ((*path).to_owned(), None)).collect())
    }

    fn patch_between(&self, _: &str, _: &str, _: &str, _: &[&str]) -> BTreeMap<String, PatchedFile> {
        BTreeMap::new()
    }

    fn times(&self) -> &RunTimes {
        NoContent.times()
    }

    fn untracked(&self, blake3: &str, path: &str) -> Option<String> {
        NoContent.untracked(blake3, path)
    }
}

fn inputs(config: Value, data: Result<Vec<DataSet>, String>) -> Inputs {
    Inputs {
        config,
        run_file: None,
        working_directory: "/w".into(),
        captured: Err("nothing was captured".into()),
        data,
        data_sha256: None,
        data_base: "/w".into(),
        parameters: BTreeMap::new(),
        image: None,
        hosts: None,
        devices: None,
        rung: None,
    }
}

fn set(rows: u64, sha256: &str) -> DataSet {
    DataSet {
        name: "train".into(),
        sha256: sha256.into(),
        rows: Some(rows),
        size_bytes: 10,
        schema: Some(json!({ "a": "integer" })),
        file_count: 0,
        files: BTreeMap::new(),
    }
}

/// Proves that a data set whose list of files was lost has the number of its files, and that none of them is called gone or new.
#[test]
fn a_lost_list_of_files_is_not_an_empty_one() {
    let file = DataFile { blake3: "1234".into(), rows: Some(6), size_bytes: 10 };
    let lost = DataSet { file_count: 3, ..set(4, "a") };
    let known = DataSet { file_count: 1, files: BTreeMap::from([("d.csv".to_owned(), file)]), ..set(6, "b") };
    for (before, after) in [(lost.clone(), known.clone()), (known, lost)] {
        let (before, after) = (inputs(json!({}), Ok(vec![before])), inputs(json!({}), Ok(vec![after])));
        let found = difference(&before, &after, &NoContent);
        let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(changes[0].contains("in 3 files") && changes[0].contains("in 1 file,"), "{changes:?}");
        assert!(found.unknown.iter().any(|it| it.why.starts_with("which files of `train` changed")));
    }
}

/// Proves that settings and data are compared without a capture, that a secret is never called equal, and that what was not captured is
/// named.
#[test]
fn what_is_not_known_is_named() {
    let config = |lr: &str| json!({ "run": { "environment": { "LR": lr, "KEY": "[redacted:named]" } } });
    let (before, after) =
        (inputs(config("1"), Ok(vec![set(4, "a")])), inputs(config("2"), Ok(vec![set(6, "b")])));
    let found = difference(&before, &after, &NoContent);
    let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
    assert_eq!(changes[0], "run.environment.LR: \"1\" → \"2\"");
    assert!(changes[1].starts_with("train: 4 rows, ") && changes[1].contains("6 rows"), "{changes:?}");
    let unknown: Vec<&str> = found.unknown.iter().map(|it| it.why.as_str()).collect();
    assert_eq!(
        unknown,
        [
            "run.environment.KEY: secrets are not kept",
            "script, files, code, packages and variables: nothing was captured"
        ]
    );
    let lost = inputs(config("1"), Err("only its hash is known".into()));
    let found = difference(&before, &lost, &NoContent);
    assert!(found.changes.is_empty());
    assert!(found.unknown.iter().any(|it| it.why == "what changed in the data: only its hash is known"));
}

/// Proves that a file which only has an uncommitted change since then is not called absent, that one line of it is
/// shown, and that a deleted and a restored one are called so.
#[test]
fn an_uncommitted_change_is_of_a_file_that_was_there() {
    let diff = "diff --git a/c.yaml b/c.yaml\n--- a/c.yaml\n+++ b/c.yaml\n@@ -1 +1 @@\n-lr: 0.1\n+lr: 0,1\n\
                diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    let found = patched_files(diff.as_bytes());
    let file = |name: &str| found.get(name);
    let edited = patched("c.yaml", (None, file("c.yaml")), true);
    assert_eq!(
        (edited.sentence().as_str(), edited.one_line()),
        ("c.yaml: +1 −1", Some(("lr: 0.1", "lr: 0,1")))
    );
    assert_eq!(patched("gone", (None, file("gone")), true).sentence(), "gone: deleted");
    assert_eq!(patched("gone", (file("gone"), None), true).sentence(), "gone: deleted → as committed");
    let other = patched("c.yaml", (file("c.yaml"), file("c.yaml")), true).sentence();
    assert_eq!(other, "c.yaml: +1 −1 → another +1 −1");
    let next = patched_files(diff.replace("+lr: 0,1", "+lr: 0.5").as_bytes());
    let edited = patched("c.yaml", (file("c.yaml"), next.get("c.yaml")), true);
    assert_eq!(edited.shown_lines, ["-lr: 0,1", "+lr: 0.5"], "between the two states");
    let edited = patched("c.yaml", (file("c.yaml"), next.get("c.yaml")), false);
    assert!(edited.shown_lines.is_empty(), "of two commits the states are not known");
}

/// Proves that what git does not see is said, with the folders of PYTHONPATH that are outside the repository, and no others.
#[test]
fn what_no_comparison_sees_is_said() {
    let of = |folder: &str, python_path: &str| {
        let git = Git { root: Some("/w".into()), ..Git::default() };
        let mut captured = captured(git, None);
        captured.variables = BTreeMap::from([("PYTHONPATH".to_owned(), python_path.to_owned())]);
        not_looked_at((&captured, &captured), Path::new(folder))
    };
    let rest = ", ignored by git, or of installed packages: not looked at";
    let outside = "files outside the repository";
    let named = of("/w/part", "/w/lib:/lib/x::../y:../../z");
    assert_eq!(named, format!("{outside} (PYTHONPATH: `/lib/x`, `/z`){rest}"));
    for inside in ["", "/w/lib", "lib", "(a value with hash 12)"] {
        assert_eq!(of("/w/part", inside), format!("{outside}{rest}"), "{inside}");
    }
    assert_eq!(of("/linked/part", "/linked/lib"), format!("{outside}{rest}"));
    let bare = captured(Git::default(), Some(Folder { not_looked_at: 2, ..Folder::default() }));
    assert_eq!(
        not_looked_at((&bare, &bare), Path::new("/w")),
        "files outside the folders of the command and its script, 2 files of other kinds or too large in its folders, \
         or of installed packages: not looked at"
    );
}

/// What was captured of a command without a script.
fn captured(git: Git, folder: Option<Folder>) -> CapturedInputs {
    let capture = Capture {
        git,
        script: None,
        named_files: Vec::new(),
        folder,
        outputs: Vec::new(),
        environment_lock: EnvironmentLock::default(),
        container: Default::default(),
        host: Default::default(),
        gpus: Default::default(),
        owner_default: None,
        incomplete: None,
    };
    CapturedInputs { capture, variables: BTreeMap::new() }
}

/// Proves that files which the command does not name are compared: a table by its columns and lines, another file by
/// its bytes, one that came or went; that an output of a run is none of them; that a new text is named last; and that
/// nothing is said of an older capture.
#[test]
fn the_files_of_the_folder_are_compared() {
    let file = |name: &str, blake3: &str, modified: i64| FolderFile {
        path: Path::new("/w").join(name),
        size_bytes: 9,
        modified_at: Some(Timestamp::from_micros(modified)),
        blake3: Some(blake3.into()),
        code_blake3: None,
        lines: None,
        header: None,
    };
    let table = |name: &str, blake3: &str, lines: u64, header: &str| FolderFile {
        lines: Some(lines),
        header: Some(header.into()),
        ..file(name, blake3, 1)
    };
    let of = |files: Vec<FolderFile>| {
        let mut found = inputs(Value::Null, Ok(Vec::new()));
        found.captured = Ok(captured(Git::default(), Some(Folder { files, ..Folder::default() })));
        found
    };
    let before = of(vec![
        table("a.csv", "1", 3, "x,y"),
        table("b.csv", "1", 3, "x,y"),
        table("c.csv", "1", 3, "x,y"),
        file("conf.bin", "1", 1),
        file("gone.txt", "1", 1),
        file("old.txt", "1", 5),
        file("state.json", "1", 1),
    ]);
    let after = of(vec![
        table("a.csv", "2", 3, "xx,y"),
        table("b.csv", "2", 4, "x,y"),
        table("c.csv", "2", 3, "x,y"),
        file("conf.bin", "2", 1),
        file("a_new.txt", "1", 1),
        file("new.toml", "1", 1),
        file("out.txt", "1", 5),
        file("state.json", "2", 5),
    ]);
    let found = difference(&before, &after, &NoContent);
    let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
    assert_eq!(
        changes,
        [
            "a.csv: header: x,y → xx,y",
            "b.csv: 3 → 4 lines",
            "c.csv: 3 lines, 1 → 3 lines, 2",
            "conf.bin: 1 → 2",
            "gone.txt: 1 → (absent)",
            "new.toml: (absent) → 1",
            "a_new.txt: (absent) → 1"
        ]
    );
    let unknown: Vec<&str> = found.unknown.iter().map(|it| it.why.as_str()).collect();
    let output = "whether a run wrote it: `state.json` differs, and was written while an attempt ran";
    assert!(unknown.contains(&output), "{unknown:?}");
    let mut older = before.clone();
    older.captured = Ok(captured(Git::default(), None));
    assert!(difference(&older, &after, &NoContent).changes.is_empty());
}

/// Proves that nothing is claimed of a file that was written while an attempt began, that it is named also where an
/// attempt wrote it, and that what a capture lacks is said.
#[test]
fn what_changes_at_a_launch_is_not_known() {
    let file = |name: &str, blake3: Option<&str>, modified: i64| FolderFile {
        path: Path::new("/w").join(name),
        size_bytes: 9,
        modified_at: Some(Timestamp::from_micros(modified)),
        blake3: blake3.map(str::to_owned),
        code_blake3: None,
        lines: None,
        header: None,
    };
    let of = |files: Vec<FolderFile>, changed: &[&str]| {
        let changed = changed.iter().map(|name| Path::new("/w").join(name)).collect();
        let mut found = inputs(Value::Null, Ok(Vec::new()));
        found.captured = Ok(captured(Git::default(), Some(Folder { files, changed, ..Folder::default() })));
        found
    };
    let before = of(vec![file("a.toml", Some("1"), 1), file("m.txt", Some("1"), 5)], &[]);
    let after = of(vec![file("a.toml", None, 1), file("m.txt", None, 5)], &["a.toml", "m.txt"]);
    let found = difference(&before, &after, &NoContent);
    let unknown =
        |found: &Difference| -> Vec<String> { found.unknown.iter().map(|it| it.why.clone()).collect() };
    assert!(found.changes.is_empty());
    let names_both =
        |why: &String| ["`a.toml`", "`m.txt`", "when an attempt began"].iter().all(|part| why.contains(part));
    assert!(unknown(&found).iter().any(names_both), "{:?}", unknown(&found));
    assert!(!unknown(&found).iter().any(|why| why.contains("it was not hashed")));
    let mut cut = before.clone();
    let mut capture = captured(Git::default(), None);
    capture.capture.incomplete = Some("the rest".into());
    cut.captured = Ok(capture);
    let found = difference(&before, &cut, &NoContent);
    assert!(found.changes.is_empty() && unknown(&found).contains(&"the rest".to_owned()));
}

/// Proves that what git does not track does not count where it was written while an attempt ran, that one which then
/// differs is named apart, and that code and what was written before or after are changes.
#[test]
fn what_a_run_wrote_is_no_change_in_a_repository() {
    let file = |path: &str, blake3: &str, modified: i64| Untracked {
        path: path.into(),
        blake3: Some(blake3.into()),
        modified_at: Some(Timestamp::from_micros(modified)),
    };
    let git = |dirty: &str, untracked: Vec<Untracked>| Git {
        root: Some("/w".into()),
        dirty_diff_blake3: Some(dirty.into()),
        diff_bytes: Some(0),
        untracked_count: untracked.len() as u64,
        untracked,
        ..Git::default()
    };
    let then = git(
        "1",
        vec![file("c.yaml", "1", 1), file("log", "1", 5), file("m.py", "1", 1), file("old", "1", 5)],
    );
    let new = [("log", 5), ("m.py", 5), ("metrics.json", 5), ("new.yaml", 6), ("c.yaml", 6)];
    let now = git("2", new.map(|(path, modified)| file(path, "2", modified)).into());
    let mut found = Difference::default();
    found.uncommitted((&then, &now), &|_, _| false, &NoContent);
    let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
    assert_eq!(
        changes,
        ["c.yaml (untracked): 1 → 2", "m.py (untracked): 1 → 2", "new.yaml (untracked): (absent) → 2"]
    );
    assert_eq!(found.outputs, ["log"]);
}

/// Proves that what the output of a run went to does not count as a change, whichever of the two runs or of the earlier
/// ones it was, with and without a repository; and that a text of settings which git does not track is compared by its
/// keys.
#[test]
fn what_the_output_went_to_is_no_change() {
    let untracked = |path: &str, blake3: &str| Untracked {
        path: path.into(),
        blake3: Some(blake3.into()),
        modified_at: Some(Timestamp::from_micros(6)),
    };
    let of = |root: Option<&str>, names: &[(&str, &str)], output: &str| {
        let files = names.iter().map(|(name, blake3)| FolderFile {
            path: Path::new("/w").join(name),
            size_bytes: 9,
            modified_at: Some(Timestamp::from_micros(6)),
            blake3: Some((*blake3).into()),
            code_blake3: None,
            lines: None,
            header: None,
        });
        let git = Git {
            root: root.map(str::to_owned),
            dirty_diff_blake3: root.and(names.first()).map(|(_, blake3)| (*blake3).to_owned()),
            diff_bytes: Some(0),
            untracked: names.iter().map(|(name, blake3)| untracked(name, blake3)).collect(),
            untracked_count: names.len() as u64,
            ..Git::default()
        };
        let folder = Folder { files: files.filter(|_| root.is_none()).collect(), ..Folder::default() };
        let mut of_run = captured(git, Some(folder));
        of_run.capture.outputs = vec![Path::new("/w").join(output)];
        let mut found = inputs(Value::Null, Ok(Vec::new()));
        found.captured = Ok(of_run);
        found
    };
    let then = [("c.txt", "1"), ("bad.txt", "1")];
    let now = [("c.txt", "2"), ("bad.txt", "2"), ("good.txt", "1"), ("earlier.txt", "1")];
    for (root, expected) in [(Some("/w"), "c.txt: lr: 1 → 2"), (None, "c.txt: 1 → 2")] {
        let found = difference(&of(root, &then, "good.txt"), &of(root, &now, "bad.txt"), &NoContent);
        let changes: Vec<String> = found.changes.iter().map(Change::sentence).collect();
        assert_eq!(changes, [expected], "{root:?}");
        assert!(found.outputs.is_empty());
    }
}

/// Proves that commits and changes whose bytes are gone are changes all the same, with what is missing, and that the same tree is equal.
#[test]
fn code_whose_bytes_are_gone_has_changed() {
    let git = |commit: &str, dirty: Option<&str>| Git {
        commit: Some(commit.into()),
        root: Some("/w".into()),
        dirty: Some(dirty.is_some()),
        dirty_diff_blake3: dirty.map(str::to_owned),
        diff_bytes: dirty.map(|_| 9),
        ..Git::default()
    };
    let compared = |then: &Git, now: &Git| {
        let mut found = Difference::default();
        let of = |git: &Git| captured(git.clone(), None);
        found.code((&of(then), &of(now)), &BTreeSet::new(), &NoContent);
        let unknown: Vec<String> = found.unknown.into_iter().map(|it| it.why).collect();
        (found.changes.len(), unknown)
    };
    assert_eq!(compared(&git("a", None), &git("a", None)), (0, vec![]));
    assert_eq!(compared(&git("a", Some("x")), &git("a", Some("x"))), (0, vec![]));
    let without_commit = Git { commit: None, ..git("a", None) };
    let unknown = vec!["what changed in the repository: only one of the two has a commit".to_owned()];
    for (then, now) in [(&without_commit, &git("a", None)), (&git("a", None), &without_commit)] {
        assert_eq!(compared(then, now), (1, unknown.clone()));
    }
    let (count, unknown) = compared(&git("a", None), &git("b", Some("x")));
    assert_eq!(count, 1);
    assert_eq!(
        unknown,
        [
            "what changed between the commits: it is gone",
            "the changes of tracked files that are not committed: they are not kept"
        ]
    );
}

fn listed(name: &str, blake3: &str) -> FolderFile {
    FolderFile {
        path: Path::new("/w").join(name),
        size_bytes: 9,
        modified_at: Some(Timestamp::from_micros(1)),
        blake3: Some(blake3.into()),
        code_blake3: None,
        lines: None,
        header: None,
    }
}

/// What was captured in `/w` with these files and a run file there.
fn launched(run_file: &str, git: Git, folder: Folder) -> Inputs {
    let mut found = inputs(Value::Null, Ok(Vec::new()));
    found.run_file = Some(Path::new("/w").join(run_file));
    found.captured = Ok(captured(git, Some(folder)));
    found
}

fn sentences(found: &Difference) -> Vec<String> {
    found.changes.iter().map(Change::sentence).collect()
}

/// Proves that the run files of two runs are no files beside the script: each launch leaves its own one out, so that
/// neither came nor went, also between two copies of a folder.
#[test]
fn run_files_neither_come_nor_go() {
    let of = |run_file: &str, names: &[&str]| {
        let files = names.iter().map(|name| listed(name, "1")).collect();
        launched(run_file, Git::default(), Folder { files, ..Folder::default() })
    };
    let before = of("q.toml", &["new.toml", "gone.toml"]);
    let after = of("new.toml", &["q.toml"]);
    assert_eq!(sentences(&difference(&before, &after, &NoContent)), ["gone.toml: 1 → (absent)"]);
    let mut copy = after.clone();
    copy.working_directory = "/copy".into();
    copy.run_file = Some("/copy/new.toml".into());
    let files = vec![FolderFile { path: "/copy/q.toml".into(), ..listed("q.toml", "1") }];
    copy.captured = Ok(captured(Git::default(), Some(Folder { files, ..Folder::default() })));
    assert_eq!(sentences(&difference(&before, &copy, &NoContent)), ["gone.toml: 1 → (absent)"]);
}

/// Proves that a file is not called absent where one side did not look: in another folder, in one that it left out, or
/// by a command that names other files; and that it is where it looked.
#[test]
fn what_one_side_did_not_look_at_is_not_absent() {
    let files = vec![listed("a.yaml", "1"), listed("sub/b.yaml", "1"), listed("sub/c.yaml", "1")];
    let whole = launched("q.toml", Git::default(), Folder { files, ..Folder::default() });
    let mut below = whole.clone();
    below.working_directory = "/w/sub".into();
    let files = vec![listed("sub/b.yaml", "1")];
    below.captured = Ok(captured(Git::default(), Some(Folder { files, ..Folder::default() })));
    assert_eq!(sentences(&difference(&whole, &below, &NoContent)), ["sub/c.yaml: 1 → (absent)"]);
    assert_eq!(sentences(&difference(&below, &whole, &NoContent)), ["sub/c.yaml: (absent) → 1"]);
    let left_out = vec![PathBuf::from("/w/sub")];
    let cut = launched("q.toml", Git::default(), Folder { left_out, ..Folder::default() });
    assert_eq!(sentences(&difference(&whole, &cut, &NoContent)), ["a.yaml: 1 → (absent)"]);
    let mut naming = launched("q.toml", Git::default(), Folder::default());
    let named = |path: &str| NamedFile {
        path: path.into(),
        size_bytes: 1,
        blake3: Some("1".into()),
        modified_at: None,
    };
    let captured = naming.captured.as_mut().unwrap();
    captured.capture.named_files = ["/etc/x.csv", "/w/m.pt", "/w/n.csv"].map(named).into();
    naming.config = json!({ "run": { "command": ["./t", "/etc/x.csv", "m.pt", "n.csv"] } });
    let empty = launched("q.toml", Git::default(), Folder::default());
    let found = difference(&empty, &naming, &NoContent);
    let of_files: Vec<&Change> = found.changes.iter().filter(|it| it.kind == InputKind::File).collect();
    assert_eq!(of_files.len(), 1, "{of_files:?}");
    assert_eq!(of_files[0].sentence(), "n.csv: (absent) → 1");
    let same = Inputs { config: naming.config.clone(), ..empty };
    assert_eq!(difference(&same, &naming, &NoContent).changes.len(), 3, "both commands looked for them");
}

/// Proves that a script and a file that git tracks are not absent where another command does not name them, and that
/// a file whose ignoring may have changed is named as not known.
#[test]
fn what_git_has_is_not_absent() {
    let git = |dirty: &str, names: &[&str]| Git {
        root: Some("/w".into()),
        dirty_diff_blake3: Some(dirty.into()),
        diff_bytes: Some(0),
        untracked: names
            .iter()
            .map(|name| Untracked { path: (*name).into(), blake3: Some("1".into()), modified_at: None })
            .collect(),
        untracked_count: names.len() as u64,
        ..Git::default()
    };
    let of = |script: &str| {
        let mut found = launched("q.toml", git("1", &[]), Folder::default());
        let path = Path::new("/w").join(script);
        found.captured.as_mut().unwrap().capture.script = Some(Script { path, blake3: Some("1".into()) });
        found.config = json!({ "run": { "command": ["python", script] } });
        found
    };
    let found = difference(&of("a.py"), &of("b.py"), &NoContent);
    assert!(found.changes.iter().all(|it| it.kind == InputKind::Setting), "{:?}", sentences(&found));
    let mut found = Difference::default();
    let (then, now) = (git("1", &["k.pt", "o.pt"]), git("2", &[".gitignore", "o.pt"]));
    found.uncommitted((&then, &now), &|_, _| false, &NoContent);
    let late: Vec<String> = found.late.iter().map(Change::sentence).collect();
    assert_eq!((sentences(&found), late), (vec![], vec![".gitignore (untracked): (absent) → 1".to_owned()]));
    assert!(found.unknown.iter().any(|it| it.why.contains("`k.pt`")), "{:?}", found.unknown);
    let mut found = Difference::default();
    let committed = Git { commit: Some("b".into()), ..git("2", &[]) };
    let then = Git { commit: Some("a".into()), ..then };
    found.uncommitted((&then, &committed), &|_, _| false, &Between(&["k.pt"]));
    assert_eq!(sentences(&found), ["o.pt (untracked): 1 → (absent)"], "`k.pt` was committed");
    let mut found = Difference::default();
    found.uncommitted((&then, &committed), &|_, _| false, &NoContent);
    assert!(found.changes.is_empty(), "either may have been committed: {:?}", sentences(&found));
}

/// Proves that a file which only one of two attempts has as data is not called absent of that one, under its path and in
/// another folder, and that this is said.
#[test]
fn data_of_one_side_is_not_absent() {
    let files = vec![listed("a.csv", "1"), listed("b.csv", "1")];
    let beside = launched("q.toml", Git::default(), Folder { files, ..Folder::default() });
    let file = DataFile { blake3: "1234".into(), rows: None, size_bytes: 9 };
    let files = BTreeMap::from([("a.csv".to_owned(), file)]);
    let set = DataSet { file_count: 1, files, ..set(4, "a") };
    let declared = |folder: &str| {
        let mut found = launched("q.toml", Git::default(), Folder::default());
        found.working_directory = folder.into();
        found.data_base = folder.into();
        found.data = Ok(vec![set.clone()]);
        found
    };
    for folder in ["/w", "/copy"] {
        let declared = declared(folder);
        for (before, after, change) in
            [(&beside, &declared, "b.csv: 1 → (absent)"), (&declared, &beside, "b.csv: (absent) → 1")]
        {
            let found = difference(before, after, &NoContent);
            let of_files: Vec<String> =
                found.changes.iter().filter(|it| it.kind == InputKind::File).map(Change::sentence).collect();
            assert_eq!(of_files, [change], "{folder}");
            let why = "what changed in `a.csv`: only one of the two has it as data";
            assert!(found.unknown.iter().any(|it| it.why == why), "{folder}: {:?}", found.unknown);
        }
    }
}
