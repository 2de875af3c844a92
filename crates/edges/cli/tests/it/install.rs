//! `scripts/package/install.sh`, and the container recipe beside it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Answer, BINARY, answer, files_below};

/// A program with the commands that the script uses, so that each test installs in no time.
const STAND_IN: &str = r##"#!/bin/sh
case "$1 $2" in
  --version*) echo "trackway VERSION" ;;
  "config completions") echo "# for $3" ;;
  "config man") mkdir -p "$4" && touch "$4/trackway.1" "$4/trackway-VERSION.1" ;;
esac
"##;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// A person's empty folder, and a folder with what is installed from.
struct Person {
    home: tempfile::TempDir,
    downloads: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), downloads: tempfile::tempdir().unwrap() }
    }

    fn install(&self, arguments: &[&str]) -> Answer {
        let mut command = Command::new("sh");
        command
            .arg(root().join("scripts/package/install.sh"))
            .args(arguments)
            .current_dir(self.downloads.path());
        command.env("HOME", self.home.path()).env("SHELL", "/bin/zsh").env_remove("XDG_CONFIG_HOME");
        answer(command.output().unwrap())
    }

    /// Writes a program of this version with its SHA-256 beside it.
    fn offer(&self, version: &str) {
        let program = self.downloads.path().join("trackway");
        std::fs::write(&program, STAND_IN.replace("VERSION", version)).unwrap();
        self.shell("sha256sum trackway > trackway.sha256");
    }

    fn shell(&self, line: &str) -> String {
        let output = Command::new("sh").args(["-c", line]).current_dir(self.downloads.path()).output();
        let answer = answer(output.unwrap());
        assert_eq!(answer.code, 0, "{line}: {}", answer.stderr);
        answer.stdout
    }

    /// What is in the person's folder.
    fn files(&self) -> Vec<String> {
        let below =
            |path: PathBuf| path.strip_prefix(self.home.path()).unwrap().to_string_lossy().into_owned();
        let mut files: Vec<String> = files_below(self.home.path()).into_iter().map(below).collect();
        files.sort();
        files
    }
}

const INSTALLED: [&str; 7] = [
    ".config/fish/completions/trackway.fish",
    ".local/bin/trackway",
    ".local/share/bash-completion/completions/trackway",
    ".local/share/man/man1/trackway-1.1",
    ".local/share/man/man1/trackway.1",
    ".local/share/trackway/installed-files",
    ".local/share/zsh/site-functions/_trackway",
];

/// Proves that an installation has the binary, completions and man pages, that a second one changes nothing, that another version
/// replaces it with all of its files, and that nothing is left of it in the end.
#[test]
fn what_is_installed_is_removed() {
    let person = Person::new();
    person.offer("1");
    for _ in 0..2 {
        let installed = person.install(&["trackway"]);
        assert_eq!(installed.code, 0, "{}", installed.stderr);
        assert!(installed.stdout.contains("add it to PATH") && installed.stdout.contains("fpath+="));
        assert_eq!(person.files(), INSTALLED);
    }
    let binary = person.home.path().join(".local/bin/trackway");
    assert_eq!(binary.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    person.offer("2");
    assert_eq!(person.install(&["trackway"]).code, 0);
    let newer = INSTALLED.map(|file| file.replace("trackway-1.1", "trackway-2.1"));
    assert_eq!(person.files(), newer);
    let removed = person.install(&["--uninstall"]);
    assert!(removed.code == 0 && removed.stdout.contains("removed 6 files"), "{}", removed.stdout);
    assert_eq!(person.files(), Vec::<String>::new());
    let again = person.install(&["--uninstall"]);
    assert!(again.code == 1 && again.stderr.contains("nothing of Trackway is installed"), "{}", again.stderr);
}

/// Proves that a file whose hash is another one, or not known, a program that does not run here and an archive without
/// one are refused, and that what was installed before remains.
#[test]
fn what_is_not_what_was_published_is_refused() {
    let person = Person::new();
    person.offer("1");
    assert_eq!(person.install(&["trackway"]).code, 0);
    let before = person.files();
    person.shell("cp trackway unknown; printf '\\177ELF' > damaged; tar -czf empty.tar.gz unknown");
    let sum = |file: &str| person.shell(&format!("sha256sum {file}")).split(' ').next().unwrap().to_owned();
    let zeros = "0".repeat(64);
    for (arguments, says) in [
        (vec!["--sha256".to_owned(), zeros, "trackway".into()], "nothing was installed"),
        (vec!["unknown".to_owned()], "give it with --sha256"),
        (vec!["--sha256".into(), sum("damaged"), "damaged".into()], "does not run on this machine"),
        (vec!["--sha256".into(), sum("empty.tar.gz"), "empty.tar.gz".into()], "there is no file `trackway`"),
        (vec!["absent".to_owned()], "cannot read `absent`"),
        (vec!["http://localhost/trackway".to_owned()], "is not encrypted"),
        (vec!["--verbose".to_owned()], "unknown option"),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let refused = person.install(&arguments);
        assert!(refused.code == 1 && refused.stderr.contains(says), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!(person.files(), before);
}

/// Proves that the binary itself is installed from an archive into another folder, with the completions and man pages that it writes.
#[test]
fn the_binary_installs_from_an_archive() {
    let person = Person::new();
    // Without what a debugger wants: the binary of a test is large.
    person.shell(&format!("strip -o trackway '{BINARY}' && tar -cf - trackway | gzip -1 > build.tar.gz"));
    person.shell("sha256sum build.tar.gz > build.tar.gz.sha256");
    let prefix = person.home.path().join("tools");
    let installed = person.install(&["--prefix", &prefix.to_string_lossy(), "build.tar.gz"]);
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    let read = |path: &str| std::fs::read_to_string(prefix.join("share").join(path)).unwrap();
    assert!(read("bash-completion/completions/trackway").contains("_trackway()"));
    assert!(read("zsh/site-functions/_trackway").starts_with("#compdef trackway"));
    assert!(read("man/man1/trackway-run.1").contains(".TH"));
    let version = Command::new(prefix.join("bin/trackway")).arg("--version").output().unwrap();
    assert!(answer(version).stdout.starts_with("trackway "));
}

/// Proves that every file that the container recipe copies is one that `make wheel` writes or that is in the
/// repository, that its user is not root, and that its home is a volume.
#[test]
fn the_container_recipe_names_what_exists() {
    let recipe = std::fs::read_to_string(root().join("scripts/package/Containerfile")).unwrap();
    let lines = || recipe.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let copied: Vec<&str> = lines()
        .filter_map(|line| line.strip_prefix("COPY "))
        .flat_map(|rest| rest.split(' ').filter(|word| !word.starts_with("--")).collect::<Vec<_>>())
        .collect();
    let sources: Vec<&str> = copied.iter().copied().filter(|path| !path.starts_with('/')).collect();
    assert!(!sources.is_empty());
    for source in sources {
        assert!(source == "dist/trackway-*.whl" || root().join(source).exists(), "{source}");
    }
    let value = |key: &str| lines().filter_map(|line| line.strip_prefix(key)).next_back().unwrap_or_default();
    assert!(!["", "root", "0"].contains(&value("USER ")), "{recipe}");
    assert_eq!(value("ENTRYPOINT "), "[\"trackway\"]");
    assert!(recipe.contains(&format!("TRACKWAY_HOME={}", value("VOLUME "))), "{recipe}");
}
