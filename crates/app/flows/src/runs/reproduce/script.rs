//! The shell script that rebuilds an attempt. Everything here is text from evidence; nothing is looked at.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use trackway_api::runs::reproduce::RebuiltPart;
use trackway_core::text::counted;
use trackway_engine::capture::sources::UNTRACKED_FOLDER;
use trackway_formats::runfile::{PlanEntry, ResourcesChange, ResourcesSection};
use trackway_formats::shell::quoted;

use super::data::{CommandFile, DataFile, FileState};
use super::{Evidence, part};

/// The folder with the code, below that of the script.
const CODE: &str = "code";

/// Of a data set with more files only their number is shown.
const FILES_SHOWN: usize = 3;
/// Files of the data that cannot be rebuilt; of further ones only their number is shown.
const MISSING_FILES_SHOWN: usize = 20;

/// The script, and what it rebuilds and does not.
#[derive(Default)]
pub(super) struct Script {
    pub rebuilt: Vec<RebuiltPart>,
    pub missing: Vec<String>,
    pub has_patch: bool,
    pub has_untracked: bool,
    pub has_packages: bool,
    /// Files that were kept, and their copies below the folder.
    pub files: Vec<(PathBuf, PathBuf)>,
    /// Where the repository is, the nearest place first, and the commit.
    checkout: Option<(Vec<String>, String)>,
    /// The root of the original code: of the repository, else the folder that paths start from.
    root: PathBuf,
    /// Folders that come first in PATH.
    path: Vec<PathBuf>,
    /// Data that is linked: its path, which is below the root.
    links: Vec<PathBuf>,
    /// Files of the command that are copied, since the command may write them: their paths, which are below the root.
    copies: Vec<PathBuf>,
    command: Vec<String>,
    /// The folder in which it runs.
    folder: PathBuf,
}

impl Script {
    pub fn of(evidence: &Evidence<'_>) -> Self {
        let Evidence { source, job, attempt, .. } = evidence;
        let root = source.root.clone().unwrap_or_else(|| job.base.clone());
        let mut script = Self { root, ..Self::default() };
        script.take_code(evidence);
        script.take_command(evidence);
        script.take_data(evidence);
        script.take_named_files(evidence);
        if let Some(seed) = attempt.seed {
            script.rebuilt.push(part("seed", seed.to_string()));
            if attempt.seed_seen.is_none() {
                script
                    .missing
                    .push("the seed may have no effect: nothing shows that the script took it".into());
            }
        }
        script
    }

    fn take_code(&mut self, evidence: &Evidence<'_>) {
        let source = &evidence.source;
        let root = source.root.as_ref().map(|root| root.to_string_lossy().into_owned());
        let places: Vec<String> = root.into_iter().chain(source.origin.clone()).collect();
        match &source.commit {
            Some(commit) if !places.is_empty() => {
                self.rebuilt.push(part("code", format!("commit {commit} of {}", places.join(" or "))));
                self.checkout = Some((places, commit.clone()));
            }
            _ => self
                .missing
                .push("the code: it was in no git commit; its script and run file were kept".into()),
        }
        self.missing.extend(source.left_out.iter().map(|what| format!("not kept: {what}")));
    }

    fn take_command(&mut self, evidence: &Evidence<'_>) {
        let Evidence { job, attempt, source, .. } = evidence;
        let mut words = vec!["run".to_owned()];
        match &job.run_file {
            Some(file) => {
                words.push(self.moved(file));
                let retries = changes(evidence).patch();
                for change in job.patch.changes().iter().chain(retries.changes()) {
                    words.extend(["--set".to_owned(), change.to_string()]);
                }
                words.extend(training_alone(evidence));
                self.folder = file.parent().unwrap_or(&job.base).to_owned();
            }
            None => {
                words.extend(["--name".into(), job.plan.run.name.clone(), "--".into()]);
                words.extend(attempt.command.iter().cloned());
                self.folder = PathBuf::from(&attempt.working_directory);
            }
        }
        let shown: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        self.rebuilt.push(part("command", format!("trackway {}", shown.join(" "))));
        self.command = words;
        if job.has_secrets {
            self.missing
                .push("values with secrets in the run file or the command: they were never stored".into());
        }
        if let Some(interpreter) =
            source.environment_path.as_deref().filter(|_| source.python_version.is_some())
        {
            self.path.extend(interpreter.parent().map(Path::to_owned));
        }
    }

    fn take_data(&mut self, evidence: &Evidence<'_>) {
        let (mut rebuilt, mut missing) = (Vec::new(), Vec::new());
        for file in &evidence.data {
            let shown = format!("data `{}`: `{}`", file.set, file.path);
            match &file.now {
                Some(now) if *now == file.blake3 => {
                    rebuilt.push(file);
                    let path = evidence.job.base.join(&file.path);
                    if path.starts_with(&self.root) {
                        self.links.push(path);
                    }
                }
                Some(_) => missing.push(format!("{shown} is not what the attempt read: it changed since")),
                None => {
                    missing.push(format!("{shown} cannot be read from here, so its hash is not compared"))
                }
            }
        }
        self.rebuilt.extend(rebuilt_data(&rebuilt));
        let unnamed = missing.len().saturating_sub(MISSING_FILES_SHOWN);
        self.missing.extend(missing.into_iter().take(MISSING_FILES_SHOWN));
        if unnamed > 0 {
            self.missing.push(format!("{} more of the data", counted(unnamed as u64, "file")));
        }
    }

    /// The files of the command that are in no data set.
    fn take_named_files(&mut self, evidence: &Evidence<'_>) {
        for CommandFile { path, state } in &evidence.named {
            let shown = format!("the file `{}` of the command", path.display());
            match state {
                FileState::Same(blake3) => {
                    let from = format!("{}, BLAKE3 {blake3}", path.display());
                    self.rebuilt.push(part("file of the command", from));
                    if path.starts_with(&self.root) {
                        self.copies.push(path.clone());
                    }
                }
                FileState::Changed => {
                    self.missing.push(format!("{shown} is not what it was at the launch: it changed since"));
                }
                FileState::NotHashed => self.missing.push(format!(
                    "{shown} was not hashed at the launch, since it is large or could not be read; declare it as `[data.NAME]`, which is hashed"
                )),
                FileState::Missing => {
                    self.missing.push(format!("{shown} can no longer be read; only its hash was kept"));
                }
            }
        }
    }

    /// What a rebuilt attempt is not, whatever is rebuilt.
    pub fn note_differences(&mut self, evidence: &Evidence<'_>) {
        let Evidence { attempt, source, .. } = evidence;
        self.missing.push(match (&source.environment_sha256, self.has_packages) {
            (Some(sha256), true) => format!(
                "the packages: packages.txt lists them (SHA-256 {sha256}), and nothing is installed; the check after the run compares the list"
            ),
            (Some(_), false) => "the packages: their list was not kept".into(),
            (None, _) => "the packages: they were not known".into(),
        });
        if let Some(step) = attempt.resumed_from_step {
            self.missing.push(format!(
                "the attempt continued from step {step}; the reproduction begins at the start (is a resume exact? `trackway prove`)"
            ));
        }
        if let Some(names) = &attempt.gpu_names {
            self.missing.push(format!("the machine: it had {names}; other devices may round otherwise"));
        }
        if let Some(image) = &attempt.container_digest {
            self.missing.push(format!("the container: start `reproduce.sh` in the image {image}"));
        }
    }

    /// A path of the original code as it is in the rebuilt one.
    fn moved(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(below) => format!("{CODE}/{}", below.display()),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    /// The script.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "#!/bin/sh\n# Rebuilds an attempt in this folder, runs it, and compares it with the original.\nset -eu\n\
             here=$(cd \"$(dirname \"$0\")\" && pwd)\ncd \"$here\"\n",
        );
        self.write_code(&mut text);
        self.write_data(&mut text);
        let folders: Vec<String> = self.path.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        if !folders.is_empty() {
            let folders = quoted(&folders.join(":"));
            let _ = writeln!(
                text,
                "\n# Packages: packages.txt has them. This interpreter had them; name another one with PATH_FIRST."
            );
            let _ = writeln!(text, "PATH=${{PATH_FIRST:-{folders}}}:$PATH\nexport PATH");
        }
        let words: Vec<String> = self.command.iter().map(|word| self.word(word)).collect();
        let folder = self.moved(&self.folder);
        let _ =
            writeln!(text, "\n# The command. Its home is here, so that nothing of the original is touched.");
        let _ = writeln!(text, "TRACKWAY=${{TRACKWAY:-trackway}}\ncd {}", quoted(&folder));
        let _ = writeln!(text, "\"$TRACKWAY\" --home \"$here/home\" {}", words.join(" "));
        let _ = writeln!(text, "\"$TRACKWAY\" reproduce --check \"$here\"");
        text
    }

    /// A word of the command; a path of the code is made absolute, since the script changes its folder.
    fn word(&self, word: &str) -> String {
        match word.strip_prefix(&format!("{CODE}/")) {
            Some(below) => format!("\"$here/{CODE}/\"{}", quoted(below)),
            None => quoted(word),
        }
    }

    fn write_code(&self, text: &mut String) {
        let _ = writeln!(text, "\n# Code");
        match &self.checkout {
            Some((places, commit)) => {
                let clone =
                    |place: &String| format!("git clone --quiet --no-checkout {} {CODE}", quoted(place));
                let _ = writeln!(text, "{}", places.iter().map(clone).collect::<Vec<_>>().join(" || "));
                let _ = writeln!(text, "git -C {CODE} checkout --quiet --detach {}", quoted(commit));
            }
            None => {
                let _ = writeln!(text, "mkdir -p {CODE}");
            }
        }
        if self.has_patch {
            let _ = writeln!(
                text,
                "[ ! -s changes.patch ] || git -C {CODE} apply --whitespace=nowarn ../changes.patch"
            );
        }
        if self.has_untracked {
            let _ = writeln!(text, "cp -R {UNTRACKED_FOLDER}/. {CODE}/");
        }
        for (original, copy) in &self.files {
            let target = self.moved(original);
            if target.starts_with(CODE) {
                let folder = Path::new(&target).parent().unwrap_or(Path::new(CODE));
                let (folder, copy, target) =
                    (quoted(&folder.to_string_lossy()), quoted(&copy.to_string_lossy()), quoted(&target));
                let _ = writeln!(text, "[ -e {target} ] || {{ mkdir -p {folder}; cp {copy} {target}; }}");
            }
        }
    }

    fn write_data(&self, text: &mut String) {
        if self.links.is_empty() && self.copies.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n# Data, as it was when this folder was written: compared by hash");
        let links = self.links.iter().map(|path| (path, "ln -s"));
        for (path, how) in links.chain(self.copies.iter().map(|path| (path, "cp"))) {
            let target = self.moved(path);
            let folder =
                Path::new(&target).parent().unwrap_or(Path::new(CODE)).to_string_lossy().into_owned();
            let (folder, original, target) =
                (quoted(&folder), quoted(&path.to_string_lossy()), quoted(&target));
            let _ = writeln!(text, "[ -e {target} ] || {{ mkdir -p {folder}; {how} {original} {target}; }}");
        }
    }

    /// What a person reads first.
    pub fn readme(&self, evidence: &Evidence<'_>) -> String {
        let attempt = evidence.attempt;
        let mut text = format!(
            "# Attempt {} of `{}`\n\nRun `./reproduce.sh`: it rebuilds the attempt in this folder, runs it and compares the training \
             state and the metrics with the original (`expected.json`).\n\n## Rebuilt\n",
            attempt.attempt_id, evidence.job.plan.run.name
        );
        for RebuiltPart { what, from } in &self.rebuilt {
            let _ = writeln!(text, "- **{what}**: {from}");
        }
        text.push_str("\n## Not rebuilt\n");
        for what in &self.missing {
            let _ = writeln!(text, "- {what}");
        }
        if self.missing.is_empty() {
            text.push_str("Nothing is known to be missing.\n");
        }
        text
    }
}

/// What is said of data that is as it was: each file, or how many there are.
fn rebuilt_data(files: &[&DataFile]) -> Vec<RebuiltPart> {
    let sets: BTreeSet<&str> = files.iter().map(|file| file.set.as_str()).collect();
    let of_set = |set: &str| -> Vec<RebuiltPart> {
        let what = format!("data {set}");
        let files: Vec<&&DataFile> = files.iter().filter(|file| file.set == set).collect();
        if files.len() > FILES_SHOWN {
            let count = counted(files.len() as u64, "file");
            return vec![part(what, format!("{count}, each with the BLAKE3 of the launch"))];
        }
        files.iter().map(|file| part(&what, format!("{}, BLAKE3 {}", file.path, file.blake3))).collect()
    };
    sets.into_iter().flat_map(of_set).collect()
}

/// The options for a run that only trains: what its evaluation reads may not be here, and what its pre-flight checked was launched.
fn training_alone(evidence: &Evidence<'_>) -> Vec<String> {
    let Evidence { job, attempt, .. } = evidence;
    let evaluates = job.plan.evaluate.as_ref().is_some_and(|section| section.after);
    let after = evaluates.then(|| ["--set".to_owned(), "evaluate.after=false".to_owned()]);
    let why = format!("a reproduction of {}", attempt.attempt_id);
    after.into_iter().flatten().chain(["--skip-preflight".to_owned(), "--why".to_owned(), why]).collect()
}

/// What the retry plan had changed for the attempt: variables and resources that are not those of the run file.
fn changes(evidence: &Evidence<'_>) -> PlanEntry {
    let (launched, planned) = (&evidence.attempt.config_json, &evidence.job.plan);
    let environment = launched.pointer("/run/environment").and_then(Value::as_object);
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let set = environment.into_iter().flatten().filter_map(text);
    let set = set.filter(|(name, value)| planned.run.environment.get(name) != Some(value)).collect();
    // Attempts of before there were resources have none in their config.
    let resources = launched.get("resources").cloned().map(serde_json::from_value::<ResourcesSection>);
    let resources = match resources {
        Some(Ok(resources)) => changed(&planned.resources, &resources),
        _ => ResourcesChange::default(),
    };
    PlanEntry { set, resources, ..PlanEntry::default() }
}

/// The resources that are other ones.
fn changed(planned: &ResourcesSection, launched: &ResourcesSection) -> ResourcesChange {
    ResourcesChange {
        gpus: Some(launched.gpus).filter(|gpus| *gpus != planned.gpus),
        gpu: launched.gpu.clone().filter(|_| launched.gpu != planned.gpu),
        cpus: launched.cpus.filter(|_| launched.cpus != planned.cpus),
        memory_bytes: launched.memory_bytes.filter(|_| launched.memory_bytes != planned.memory_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that resources which a retry plan changed become changes of the run file, and the others do not.
    #[test]
    fn changed_resources_become_changes() {
        let planned = ResourcesSection { gpus: 1, cpus: Some(4), ..ResourcesSection::default() };
        let launched = ResourcesSection { memory_bytes: Some(64 << 30), cpus: Some(8), ..planned.clone() };
        let entry = PlanEntry {
            set: [("BATCH".to_owned(), "16".to_owned())].into(),
            resources: changed(&planned, &launched),
            ..PlanEntry::default()
        };
        let shown: Vec<String> = entry.patch().changes().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["run.environment.BATCH=\"16\"", "resources.cpus=8", "resources.memory=68719476736"]
        );
        assert!(changed(&planned, &planned).is_empty());
    }

    /// Proves that few files are named with their hashes, and of many only their number is said, for each data set.
    #[test]
    fn many_files_are_counted() {
        let file = |set: &str, path: &str| DataFile {
            set: set.into(),
            path: path.into(),
            blake3: "ab".into(),
            now: Some("ab".into()),
        };
        let files: Vec<DataFile> =
            (0..5).map(|number| file("text", &number.to_string())).chain([file("labels", "y.csv")]).collect();
        let parts = rebuilt_data(&files.iter().collect::<Vec<_>>());
        let shown: Vec<(&str, &str)> = parts.iter().map(|it| (it.what.as_str(), it.from.as_str())).collect();
        let many = ("data text", "5 files, each with the BLAKE3 of the launch");
        assert_eq!(shown, [("data labels", "y.csv, BLAKE3 ab"), many]);
    }
}
