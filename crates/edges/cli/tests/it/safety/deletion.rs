//! Only what is Trackway's is deleted or replaced: deployments, exports, outputs, and versions that are registered at
//! once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::harness::Home;
use crate::models::registry::{EASY, GATES, compare_nothing, registered, registry, set_policy};

/// Simultaneous promotions; `TRACKWAY_RACERS` sets another number.
const RACERS: usize = 50;
/// Kills in the middle of a promotion, each a little later than the one before.
const KILLS: u64 = 8;

/// Everything below a folder: files with their content, links with what they name.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            let what = match () {
                () if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
                () if kind.is_dir() => {
                    folders.push(path.clone());
                    String::new()
                }
                () => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), what);
        }
    }
    found
}

fn production(home: &Home) -> u64 {
    home.sql("select production_version from models where model = 'income'")[0]["production_version"]
        .as_u64()
        .unwrap_or(0)
}

pub(crate) fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Proves that an existing file where a deployment would write stops it before a byte changes, in the folder and in the
/// registry, and that files beside are left alone.
#[test]
fn what_is_not_trackways_stops_a_deployment() {
    let home = registered(1, GATES);
    let thesis = |path: PathBuf| write(path, "years of work");
    type Change<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Change<'_>); 7] = [
        ("a folder", &|at| thesis(at.join("v1/thesis.txt"))),
        ("an empty folder", &|at| fs::create_dir_all(at.join("v1")).unwrap()),
        ("a file", &|at| thesis(at.join("v1"))),
        ("a link", &|at| {
            thesis(at.join("theirs/thesis.txt"));
            symlink("theirs", at.join("v1")).unwrap();
        }),
        ("a current folder", &|at| thesis(at.join("current/thesis.txt"))),
        ("a current link", &|at| {
            thesis(at.join("theirs/thesis.txt"));
            symlink("theirs", at.join("current")).unwrap();
        }),
        ("a marker that is none", &|at| thesis(at.join(".trackway-model.json"))),
    ];
    for (number, (case, make)) in cases.iter().enumerate() {
        let folder = home.path().join(format!("srv-{number}"));
        fs::create_dir_all(&folder).unwrap();
        make(&folder);
        let before = tree(&folder);
        let refused =
            home.trackway(&["registry", "promote", "income", "1", "--deploy", folder.to_str().unwrap()]);
        assert_eq!(refused.code, 7, "{case}: {}", refused.stderr);
        assert!(refused.stderr.contains("hint: "), "{case}: {}", refused.stderr);
        assert_eq!(tree(&folder), before, "{case}");
        assert_eq!(production(&home), 0, "{case}");
    }
    let folder = home.path().join("srv");
    thesis(folder.join("notes/thesis.txt"));
    let deploy = folder.to_str().unwrap();
    assert_eq!(registry(&home, &["promote", "income", "1", "--deploy", deploy]).0, 0);
    assert_eq!(tree(&folder)[Path::new("notes/thesis.txt")], "years of work");
    assert_eq!(tree(&folder)[Path::new("current")], "v1");

    // A damaged copy that contains another file is not replaced; without the file it is.
    fs::write(folder.join("v1/weights.bin"), "torn").unwrap();
    thesis(folder.join("v1/thesis.txt"));
    let before = tree(&folder);
    let again = ["registry", "promote", "income", "1", "--deploy", deploy];
    assert_eq!((home.trackway(&again).code, tree(&folder) == before), (7, true));
    fs::remove_file(folder.join("v1/thesis.txt")).unwrap();
    assert_eq!(home.trackway(&again).code, 0);
    assert_eq!(tree(&folder)[Path::new("v1/weights.bin")], "step 1");

    // The same folder for another model.
    assert_eq!(registry(&home, &["register", "other", "--run", "last", "--step", "1"]).0, 0);
    set_policy(&home, "other", EASY);
    let before = tree(&folder);
    let refused = home.trackway(&["registry", "promote", "other", "1", "--deploy", deploy]);
    assert_eq!(refused.code, 7, "{}", refused.stderr);
    assert!(refused.stderr.contains("holds the copies of model `income`"), "{}", refused.stderr);
    assert_eq!(tree(&folder), before);
}

/// Proves that after simultaneous promotions, and after one that is killed at any point and repeated, `current` is what
/// is in production, and nothing half made is left.
#[test]
fn current_follows_the_registry() {
    let home = registered(3, GATES);
    compare_nothing(&home);
    let folder = home.path().join("srv");
    let deploy = folder.to_str().unwrap();
    let versions = ["1", "2", "3"];
    let racer_count = std::env::var("TRACKWAY_RACERS").ok().and_then(|text| text.parse().ok());
    let racers: Vec<_> = (0..racer_count.unwrap_or(RACERS))
        .map(|racer| home.spawn(&["registry", "promote", "income", versions[racer % 3], "--deploy", deploy]))
        .collect();
    let codes: Vec<i32> =
        racers.into_iter().map(|racer| racer.wait_with_output().unwrap().status.code().unwrap()).collect();
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 7].contains(code)), "{codes:?}");
    let current = || fs::read_link(folder.join("current")).unwrap().display().to_string();
    assert_eq!(current(), format!("v{}", production(&home)), "{codes:?}");

    for kill in 0..KILLS {
        let version = versions[usize::try_from(kill % 3).unwrap()];
        let arguments = ["registry", "promote", "income", version, "--deploy", deploy];
        // A copy has to be made again, too.
        fs::write(folder.join(format!("v{version}/weights.bin")), "torn").unwrap();
        let mut killed = home.spawn(&arguments);
        std::thread::sleep(Duration::from_millis(kill * 12));
        let _ = killed.kill();
        killed.wait().unwrap();
        let again = home.trackway(&arguments);
        assert_eq!(again.code, 0, "after kill {kill}: {}", again.stderr);
        assert_eq!((production(&home).to_string(), current()), (version.into(), format!("v{version}")));
        let copied = fs::read_to_string(folder.join("current/weights.bin")).unwrap();
        assert_eq!(copied, format!("step {version}"), "after kill {kill}");
    }
    let left: Vec<PathBuf> =
        tree(&folder).into_keys().filter(|path| path.components().count() == 1).collect();
    let names = [".trackway-model.json", ".trackway-model.lock", "current", "v1", "v2", "v3"];
    assert_eq!(left, names.map(PathBuf::from));
}

/// Proves that the same weights are one version, whichever process registers them at the same time.
#[test]
fn the_same_weights_are_one_version_under_a_race() {
    let home = registered(1, GATES);
    let racers: Vec<_> =
        (0..20).map(|_| home.spawn(&["registry", "register", "raced", "--run", "last"])).collect();
    for racer in racers {
        let ended = racer.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(
        home.sql("select version from model_versions where model = 'raced'"),
        [json!({ "version": 1 })]
    );
}

/// Proves that an export takes a new or an empty folder, under any spelling, and leaves every other one as it is.
#[test]
fn an_export_takes_nothing_away() {
    let home = registered(1, GATES);
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("empty")).unwrap();
    fs::create_dir_all(at("real")).unwrap();
    symlink("real", at("linked")).unwrap();
    // The last one is a whole copy already.
    for folder in ["new", "empty/", "linked", "deep/er/", "new"] {
        let (code, exported) = registry(&home, &["export", "income", "1", "--out", folder]);
        assert_eq!(code, 0, "{folder}: {exported}");
        assert_eq!(fs::read_to_string(at(folder).join("weights.bin")).unwrap(), "step 1", "{folder}");
    }
    assert!(at("linked").symlink_metadata().unwrap().is_symlink());
    write(at("full/thesis.txt"), "years of work");
    write(at("file"), "years of work");
    write(at("empty/weights.bin"), "torn");
    let before = tree(home.path());
    for folder in ["full", "full/", "file", "empty"] {
        assert_eq!(
            home.trackway(&["registry", "export", "income", "1", "--out", folder]).code,
            2,
            "{folder}"
        );
    }
    let after = tree(home.path());
    let theirs = |tree: &BTreeMap<PathBuf, String>| {
        let ours = |path: &Path| path.starts_with(home.state().strip_prefix(home.path()).unwrap());
        tree.iter().filter(|(path, _)| !ours(path)).map(|(path, text)| (path.clone(), text.clone())).collect()
    };
    let (before, after): (Vec<_>, Vec<_>) = (theirs(&before), theirs(&after));
    assert_eq!(before, after);
}

/// Proves that no command replaces what it reads, under the name it was given or another one.
#[test]
fn an_output_is_never_an_input() {
    let home = Home::new();
    let table = "id,label,prediction\n1,a,a\n2,b,b\n3,a,b\n4,b,b\n";
    home.write("t.csv", table);
    home.write("train.parquet.csv", table);
    fs::create_dir_all(home.path().join("d")).unwrap();
    home.write("d/all.parquet", "not read");
    fs::hard_link(home.path().join("t.csv"), home.path().join("hard.csv")).unwrap();
    symlink("t.csv", home.path().join("soft.csv")).unwrap();
    for out in ["t.csv", "./t.csv", "d/../t.csv", "hard.csv", "soft.csv"] {
        for command in [
            &["eval", "score", "t.csv", "--command", "cat", "--out", out][..],
            &["eval", "metrics", "t.csv", "--label", "label", "--html", out],
            &["eval", "metrics", "*.csv", "--label", "label", "--parquet", out],
            &["eval", "probe", "t.csv", "--command", "cat", "--label", "label", "--html", out],
            &["data", "profile", "t.csv", "--out", out],
        ] {
            let refused = home.trackway(command);
            assert_eq!(refused.code, 2, "{command:?}: {}", refused.stderr);
            assert!(refused.stderr.contains("would be replaced"), "{command:?}: {}", refused.stderr);
            assert_eq!(fs::read_to_string(home.path().join("t.csv")).unwrap(), table, "{command:?}");
        }
    }
    home.write("job.toml", "[run]\ncommand = [\"true\"]\n");
    assert_eq!(home.trackway(&["preflight", "job.toml", "--html", "job.toml"]).code, 2);
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0);
    let ledger = home.state().join("ledger.db");
    let refused = home.trackway(&["sql", "select 1", "--out", ledger.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}
