//! Settings files, and `trackway config`: what is set, and by what.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::harness::{Answer, Home, answer};
use crate::safety::bad_input::transcript;

const PROJECT_FILE: &str = ".trackway/config.toml";
const USER_FILE: &str = "settings/trackway/config.toml";

/// A settings file that only its owner can write.
fn write(home: &Home, name: &str, text: &str) -> PathBuf {
    let folder = home.path().join(Path::new(name).parent().unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    set_mode(&folder, 0o700);
    let path = home.write(name, text);
    set_mode(&path, 0o600);
    path
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A command that no variable gives a home.
fn without_home(home: &Home, arguments: &[&str]) -> Answer {
    let mut command = home.command(arguments);
    answer(command.env_remove("TRACKWAY_HOME").env("TRACKWAY_PAGE_MIB_MAX", "256").output().unwrap())
}

/// A text without the folder of the test, and without what depends on the length of its name.
fn shown(home: &Home, text: &str) -> String {
    let folder = home.path().canonicalize().unwrap();
    let text = text.replace(&*folder.to_string_lossy(), "[folder]");
    let text = text.replace(&*home.path().to_string_lossy(), "[folder]");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// Proves that `config` shows every setting with what set it: an option, a variable, the project's file, the user's,
/// the default.
#[test]
fn config_shows_where_every_value_comes_from() {
    let home = Home::new();
    write(&home, PROJECT_FILE, "ledger = \"team.db\"\ncolumns_max = 20_000\n");
    write(&home, USER_FILE, "# of this user\ncolumns_max = 7\nfollow_links = true\n");
    let text = without_home(&home, &["config", "--home", "elsewhere"]);
    assert_eq!((text.code, text.stderr.as_str()), (0, ""));
    insta::assert_snapshot!("config", shown(&home, &text.stdout));
    let json = without_home(&home, &["config", "--json", "--home", "elsewhere"]);
    insta::assert_snapshot!("config_json", shown(&home, &json.stdout));
    assert!(!home.path().join("elsewhere").exists(), "asking made a home");
}

/// Proves that the settings of a file hold for other commands: the ledger is where the project's file sets it, and a
/// table with more columns than the user's file permits is refused.
#[test]
fn what_a_file_sets_holds() {
    let home = Home::new();
    write(&home, PROJECT_FILE, "home = \"../state\"\nledger = \"../team.db\"\n");
    write(&home, USER_FILE, "columns_max = 2\n");
    let ran = without_home(&home, &["run", "--", "true"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(home.path().join("team.db").is_file() && home.path().join("state/attempts").is_dir());
    home.write("wide.csv", "a,b,c\n1,2,3\n4,5,6\n");
    let refused = without_home(&home, &["data", "profile", "wide.csv"]);
    assert!(refused.code != 0 && refused.stderr.contains("more than 2 columns"), "{}", refused.stderr);
}

/// Proves that an engine of a settings file is listed by `config` with the line of each key, that it launches the run
/// which names it, on as many GPUs as its settings have, and that its name is in the receipt and in `explain`.
#[test]
fn an_engine_of_the_settings_launches() {
    let home = Home::new();
    write(&home, USER_FILE, "[engines.workstation]\nkind = \"local\"\ngpus = 2\n");
    let config = home.json(&["config"]);
    let value = |key: &str| {
        let mut settings = config["settings"].as_array().unwrap().iter();
        settings.find(|setting| setting["key"] == key).map(|setting| (&setting["value"], &setting["line"]))
    };
    assert_eq!(value("engines.workstation.kind"), Some((&"local".into(), &2.into())));
    assert_eq!(value("engines.workstation.gpus"), Some((&2.into(), &3.into())));
    let text = "[run]\nname = \"r\"\ncommand = [\"true\"]\n[resources]\ngpus = 2\n[launch]\nengine = \"workstation\"\n";
    home.write("r.toml", text);
    let ran = home.trackway(&["run", "r.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows = home.sql("select launcher, engine_instance from training_attempts");
    assert_eq!(rows, [serde_json::json!({ "launcher": "local", "engine_instance": "workstation" })]);
    let explained = home.trackway(&["explain", "last"]).stdout;
    assert!(explained.contains("workstation (local) on "), "{explained}");
}

/// Proves that the settings file of a home elsewhere holds: less than the project's, more than the user's, and not for where the home
/// is; and so does that of the home beside a run file in another folder.
#[test]
fn the_settings_of_a_home_elsewhere_hold() {
    let home = Home::new();
    let of_home =
        write(&home, "home/config.toml", "home = \"../nowhere\"\ncolumns_max = 5\nmedia_mib_max = 6\n");
    write(&home, PROJECT_FILE, "columns_max = 4\n");
    write(&home, USER_FILE, "media_mib_max = 7\npage_mib_max = 8\n");
    let config = home.json(&["config"]);
    let set = |key: &str| {
        let setting =
            config["settings"].as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
        (setting["value"].clone(), setting["line"].clone())
    };
    assert_eq!(set("home").0, home.state().to_str().unwrap());
    assert_eq!(set("columns_max"), (4.into(), 1.into()));
    assert_eq!(set("media_mib_max"), (6.into(), 3.into()));
    assert_eq!(set("page_mib_max"), (8.into(), 2.into()));
    assert_eq!(config["files"][1]["path"], of_home.to_str().unwrap());
    let kinds = config["files"].as_array().unwrap().iter().map(|file| file["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["project", "home", "user"]);
    write(&home, "other/.trackway/config.toml", "[engines.box]\nkind = \"local\"\n");
    home.write("other/r.toml", "[run]\nname = \"r\"\ncommand = [\"true\"]\n[launch]\nengine = \"box\"\n");
    let ran = without_home(&home, &["run", "other/r.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Proves that a settings file with a mistake stops a command, with file, line and what to write.
#[test]
fn a_mistake_in_a_settings_file_has_a_line() {
    let home = Home::new();
    write(&home, PROJECT_FILE, "hoem = \"/data\"\ncolor = \"never\"\n");
    insta::assert_snapshot!("mistakes", transcript(&home, &["runs"]));
}

/// Proves that a settings file that other users can write sets nothing, and is named.
#[test]
fn a_file_that_others_can_write_sets_nothing() {
    let home = Home::new();
    let file = write(&home, PROJECT_FILE, "columns_max = 3\n");
    set_mode(&file, 0o666);
    let answer = without_home(&home, &["config", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let why = "config.toml` is not used: not trusted: other users can write it (mode 666)";
    assert!(answer.stderr.contains(why), "{}", answer.stderr);
    let document: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(
        (&document["settings"][3]["value"], &document["files"][0]["state"]),
        (&10_000.into(), &"refused".into())
    );
}
