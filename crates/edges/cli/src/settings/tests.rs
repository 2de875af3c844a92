use super::*;

const USER: &str = "/home/ana/.config/trackway/config.toml";
const PROJECT: &str = "/project/.trackway/config.toml";

/// The settings for these flags, variables and contents of the project's and the user's file.
fn resolved(
    flags: (Option<&str>, Option<&str>),
    variables: &[(&str, &str)],
    project: &str,
    user: &str,
) -> Result<Settings, Failure> {
    let read = |text: &str| trackway_formats::settings::parse(text.as_bytes(), "config.toml").unwrap();
    let (project, user) = (read(project), read(user));
    let environment = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(*value))
    };
    resolve(&SettingSources {
        home: flags.0.map(Path::new),
        ledger: flags.1,
        environment: &environment,
        files: &[(Path::new(PROJECT), &project), (Path::new(USER), &user)],
    })
}

fn in_file(path: &str, line: usize) -> Origin {
    Origin::File { path: path.into(), line }
}

/// Proves that the flag is stronger than the environment, that than the project's file, that than the user's, and that
/// than the default; and that each value has its source.
#[test]
fn the_stronger_source_wins() {
    let user = "color = false\nhome = \"/user\"\nledger = \"/user.db\"\ncolumns_max = 1\n";
    let project = "home = \"/project\"\nledger = \"postgres://db/t\"\ncolumns_max = 2\n";
    let variables = [("TRACKWAY_HOME", "/variable"), ("TRACKWAY_COLUMNS_MAX", "3")];
    let home = |settings: Settings| {
        let home = settings.home.unwrap();
        (home.value.to_string_lossy().into_owned(), home.origin)
    };
    let flag = resolved((Some("/flag"), None), &variables, project, user).unwrap();
    assert_eq!(flag.columns_max, Setting { value: 3, origin: Origin::Environment("TRACKWAY_COLUMNS_MAX") });
    assert_eq!(
        flag.ledger,
        Some(Setting { value: "postgres://db/t".into(), origin: in_file(PROJECT, 2) }),
        "a URL is not a path beside the file"
    );
    assert_eq!(home(flag), ("/flag".into(), Origin::Flag("--home")));
    let variable = resolved((None, None), &variables, project, user).unwrap();
    assert_eq!(home(variable), ("/variable".into(), Origin::Environment("TRACKWAY_HOME")));
    let file = resolved((None, Some("/flag.db")), &[("TRACKWAY_LEDGER", "x")], project, user).unwrap();
    assert_eq!(file.columns_max, Setting { value: 2, origin: in_file(PROJECT, 3) });
    assert_eq!(file.color, Setting { value: false, origin: in_file(USER, 1) });
    assert_eq!(file.ledger, Some(Setting { value: "/flag.db".into(), origin: Origin::Flag("--ledger") }));
    assert_eq!(home(file), ("/project".into(), in_file(PROJECT, 1)));
    let user_alone = resolved((None, None), &[("TRACKWAY_HOME", "")], "", user).unwrap();
    assert_eq!(home(user_alone), ("/user".into(), in_file(USER, 2)), "an empty variable sets nothing");
    let none = resolved((None, None), &[], "", "").unwrap();
    assert_eq!((&none.home, &none.ledger, none.color), (&None, &None, Setting::default_of(true)));
    assert_eq!(resolved((None, None), &[], "", "").unwrap().limits(), DEFAULT_LIMITS);
}

/// Proves that a relative path in a settings file is relative to the folder of the file.
#[test]
fn paths_are_relative_to_their_file() {
    let settings = resolved((None, None), &[], "home = \"../state\"", "ledger = \"team.db\"").unwrap();
    assert_eq!(settings.home.unwrap().value, Path::new("/project/state"));
    assert_eq!(settings.ledger.unwrap().value, "/home/ana/.config/trackway/team.db");
}

/// Proves that every limit, the colours and the links can be set, by a file and by the environment.
#[test]
fn every_setting_has_an_effect() {
    let text = "color = false\ncolumns_max = 7\nmedia_mib_max = 8\npage_mib_max = 9\nfollow_links = true";
    let limits =
        Limits { columns_max: 7, media_bytes_max: 8 << 20, page_bytes_max: 9 << 20, follow_links: true };
    let by_file = resolved((None, None), &[], text, "").unwrap();
    assert_eq!((by_file.limits(), by_file.color.value), (limits, false));
    let variables = [
        ("NO_COLOR", "1"),
        ("TRACKWAY_COLUMNS_MAX", "7"),
        ("TRACKWAY_MEDIA_MIB_MAX", "8"),
        ("TRACKWAY_PAGE_MIB_MAX", "9"),
        ("TRACKWAY_FOLLOW_LINKS", "1"),
    ];
    let by_variable = resolved((None, None), &variables, "", "").unwrap();
    assert_eq!((by_variable.limits(), by_variable.color.value), (limits, false));
    let off = resolved((None, None), &[("TRACKWAY_FOLLOW_LINKS", "0")], text, "").unwrap();
    assert!(!off.follow_links.value, "the environment is stronger");
}

/// Proves that the address of a webhook comes from a file or, stronger, from the environment, and that a wrong one is an error that
/// does not show it.
#[test]
fn a_webhook_is_set() {
    let file = "webhook = \"https://h.example/file\"";
    let by_file = resolved((None, None), &[], file, "").unwrap();
    let expected = Setting { value: "https://h.example/file".into(), origin: in_file(PROJECT, 1) };
    assert_eq!(by_file.webhook, Some(expected));
    let variables = [("TRACKWAY_WEBHOOK", "https://h.example/variable")];
    let by_variable = resolved((None, None), &variables, file, "").unwrap();
    assert_eq!(by_variable.webhook.unwrap().value, "https://h.example/variable");
    let failure = resolved((None, None), &[("TRACKWAY_WEBHOOK", "s3cret")], "", "").unwrap_err();
    let what = failure.error.to_string();
    assert_eq!((failure.code(), what.contains("s3cret")), (2, false), "{what}");
}

/// Proves that of a queue the bound of the stronger file counts, and that of the others each file's.
#[test]
fn queues_of_both_files_count() {
    let project = "[queues.gpu]\nat_most = 1\n";
    let user = "[queues.gpu]\nat_most = 4\n[queues.night]\nat_most = 2\n";
    let queues = resolved((None, None), &[], project, user).unwrap().queues;
    let bound = |name: &str| {
        let queue: QueueName = name.parse().unwrap();
        queues[&queue].clone()
    };
    assert_eq!(bound("gpu"), Setting { value: 1, origin: in_file(PROJECT, 2) });
    assert_eq!(bound("night"), Setting { value: 2, origin: in_file(USER, 4) });
}

/// Proves that the bounds of queues are those of the files at each call, and that files with a mistake give none.
#[test]
fn bounds_of_queues_are_those_of_now() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join(PROJECT_FOLDER);
    let home = folder.path().join("home");
    [&project, &home].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let bounds = |text: &str| {
        std::fs::write(project.join("config.toml"), text).unwrap();
        let queues = queues_now(folder.path(), &home, &|_| None)?;
        Some(queues.into_iter().map(|(queue, at_most)| (queue.to_string(), at_most)).collect::<Vec<_>>())
    };
    assert_eq!(bounds("[queues.gpu]\nat_most = 1\n"), Some(vec![("gpu".to_owned(), 1)]));
    assert_eq!(bounds("[queues.gpu]\nat_most = 2\n"), Some(vec![("gpu".to_owned(), 2)]));
    assert_eq!(bounds("[queues.gpu"), None);
    assert_eq!(bounds(""), Some(Vec::new()));
    std::fs::write(home.join("config.toml"), "[queues.gpu]\nat_most = 3\n[queues.night]\nat_most = 4\n")
        .unwrap();
    let both = [("gpu".to_owned(), 1), ("night".to_owned(), 4)];
    assert_eq!(bounds("[queues.gpu]\nat_most = 1\n"), Some(both.to_vec()), "those of the home, too");
}

/// Proves that the settings file of a home is added once, by whatever path the home is named.
#[test]
fn the_file_of_a_home_is_found_once() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join(PROJECT_FOLDER);
    let below = folder.path().join("below");
    [&project, &below].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    std::fs::write(project.join("config.toml"), "").unwrap();
    let by_another_path = below.join("..").join(PROJECT_FOLDER);
    for (home, count) in [(project, 1), (by_another_path, 1), (below, 2)] {
        let mut found = files::find(folder.path(), &|_| None).unwrap();
        files::add_that_of_home(&mut found, &home).unwrap();
        assert_eq!(found.len(), count, "{}", home.display());
    }
}

/// Proves that an engine is the one of the stronger file as a whole, and that of the others each file's is there.
#[test]
fn engines_of_both_files_count() {
    let project = "[engines.box]\nkind = \"local\"\n";
    let user = "[engines.box]\nkind = \"local\"\ngpus = 4\n[engines.local]\ngpus = 2\n";
    let engines = resolved((None, None), &[], project, user).unwrap().engines;
    let found: Vec<_> = engines
        .into_iter()
        .map(|(name, found)| (name.to_string(), found.value.settings.gpus, found.origin))
        .collect();
    assert_eq!(
        found,
        [("box".to_owned(), None, in_file(PROJECT, 1)), ("local".to_owned(), Some(2), in_file(USER, 4))]
    );
}

/// Proves that a variable with a wrong value is an error that names it.
#[test]
fn a_wrong_variable_is_named() {
    for wrong in ["0", "many", "-1"] {
        let failure = resolved((None, None), &[("TRACKWAY_PAGE_MIB_MAX", wrong)], "", "").unwrap_err();
        let what = failure.error.what();
        assert_eq!((failure.code(), what), (2, format!("TRACKWAY_PAGE_MIB_MAX is `{wrong}`").as_str()));
    }
}

/// Proves that the documentation describes every setting.
#[test]
fn every_setting_is_documented() {
    let page = include_str!("../../../../../docs/settings.md");
    for key in trackway_formats::settings::KEYS {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}

/// Proves that root alone is warned of a home, and only of that of another user.
#[test]
fn root_is_warned_of_the_home_of_another_user() {
    for (user, owner, expected) in
        [(0, 1000, Some(1000)), (0, 0, None), (1000, 1000, None), (1000, 0, None), (1000, 1001, None)]
    {
        assert_eq!(other_owner(user, owner), expected, "user {user}, home of {owner}");
    }
}
