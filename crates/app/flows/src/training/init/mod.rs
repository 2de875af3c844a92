//! `trackway init`: looks at a project and writes its run file.

mod draft;
mod label;
mod literals;
mod recorded;
mod resume;
mod text;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind as IoErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::{TempFile, give_to_user, open_regular};
use trackway_formats::runfile;
use trackway_tables::read::Source;
use trackway_tables::{DataSpec, ReadContext};

use crate::training::script::SCRIPT_BYTES_MAX;

use self::literals::literals;

pub use draft::{Draft, ProjectEvidence, RecordedRun, Script, data_sets, draft, framework_title};
pub(crate) use recorded::evidence_of;
pub use recorded::{RecordedRequest, resume_arguments_of, survey_run, what_had_secret};
pub use text::text;

/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1_000;
/// Names of a script that trains, the likelier first.
const SCRIPT_NAMES: [&str; 3] = ["train.py", "main.py", "run.py"];
/// What the names of data files end with.
const DATA_EXTENSIONS: [&str; 6] = ["csv", "tsv", "parquet", "pq", "jsonl", "ndjson"];
/// Files that are opened for the names of their columns.
const TABLES_MAX: usize = 16;
/// Strings of a script that are looked for as files.
const LITERALS_MAX: usize = 1_000;
/// Parts of a line whose strings name what is written, not what is read.
const WRITING: [&str; 12] = [
    "\"w\"", "'w'", "\"wb\"", "'wb'", ".to_csv(", ".to_parquet(", ".to_json(", ".write", "write_", "save(",
    "savetxt(", "dump(",
];
/// Words in an option of a command whose value is what is written.
const OUTPUTS: [&str; 8] = ["out", "save", "pred", "log", "result", "metric", "report", "history"];

/// The request of `trackway init`. Relative paths are relative to the working directory.
#[derive(Debug, Clone)]
pub struct InitRequest {
    /// The script; without one it is searched for beside the run file.
    pub script: Option<PathBuf>,
    /// Arguments of the script.
    pub arguments: Vec<String>,
    /// The run file to write.
    pub output: PathBuf,
    /// Whether a file of that name is replaced.
    pub replace: bool,
}

/// Looks at the project. Nothing is changed.
///
/// # Errors
/// [`ErrorKind::Usage`] for a run file that exists and is not to be replaced, and for a script that is not a file;
/// [`ErrorKind::NotFound`] for one that does not exist.
pub fn survey(request: &InitRequest) -> Result<ProjectEvidence, AppError> {
    let folder = folder_for(&request.output, request.replace)?;
    let script = request.script.clone().or_else(|| script_in(&folder));
    let script = script.map(|script| read_script(&script, &folder)).transpose()?;
    let places = Places { run_file: &folder, arguments: Path::new("."), script: &folder };
    Ok(with_columns(project(&places, script, &request.arguments, &|_| true), &folder))
}

/// The folders that relative paths start from.
struct Places<'p> {
    /// The folder of the run file.
    run_file: &'p Path,
    /// That of paths in the arguments.
    arguments: &'p Path,
    /// That of paths in the script.
    script: &'p Path,
}

/// What the folder of a run file, its script and its arguments show. Only data for which `is_read` holds counts.
fn project(
    places: &Places<'_>,
    script: Option<Script>,
    arguments: &[String],
    is_read: &dyn Fn(&Path) -> bool,
) -> ProjectEvidence {
    let folder = places.run_file;
    let is_input = |path: &PathBuf| is_data(path) && path.is_file() && is_read(path);
    let of_arguments = paths_of(arguments).map(|path| places.arguments.join(path));
    let of_script =
        script.iter().flat_map(|script| read_by(&script.text)).map(|path| places.script.join(path));
    let mut named_data = Vec::new();
    for path in of_arguments.chain(of_script).filter(is_input).map(|path| beside(&path, folder)) {
        if !named_data.contains(&path) {
            named_data.push(path);
        }
    }
    let found = ["", "data"].iter().flat_map(|name| data_files(&folder.join(name)));
    let data_files: Vec<String> = found.filter(is_input).map(|path| beside(&path, folder)).collect();
    ProjectEvidence {
        folder_name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        script,
        arguments: arguments.to_vec(),
        named_data,
        data_files,
        columns: BTreeMap::new(),
        gpu_count: gpu_count(),
        is_in_git: folder.ancestors().any(|above| above.join(".git").exists()),
        recorded: None,
    }
}

/// The same with the columns of the tables, of which samples are read.
fn with_columns(evidence: ProjectEvidence, folder: &Path) -> ProjectEvidence {
    let tables = if evidence.named_data.is_empty() { &evidence.data_files } else { &evidence.named_data };
    let columns = tables.iter().take(TABLES_MAX).map(|path| (path.clone(), columns_of(folder, path)));
    ProjectEvidence { columns: columns.filter(|(_, columns)| !columns.is_empty()).collect(), ..evidence }
}

/// The words of a command that may be paths of what it reads: without the values of options that name an output.
fn paths_of(arguments: &[String]) -> impl Iterator<Item = &str> {
    let is_output = |option: &str| OUTPUTS.iter().any(|word| option.contains(word));
    arguments.iter().enumerate().filter_map(move |(place, word)| {
        let before = place.checked_sub(1).map_or("", |before| arguments[before].as_str());
        match word.rsplit_once('=') {
            Some((option, path)) => (!is_output(option)).then_some(path),
            None => (!before.starts_with('-') || !is_output(before)).then_some(word.as_str()),
        }
    })
}

/// The strings of a script that may be paths of what it reads.
fn read_by(text: &str) -> impl Iterator<Item = &str> {
    let reading = text.lines().filter(|line| !WRITING.iter().any(|word| line.contains(word)));
    reading.flat_map(literals).map(|(_, literal)| literal).take(LITERALS_MAX)
}

/// The columns of a table; none of what is not one.
fn columns_of(folder: &Path, path: &str) -> Vec<String> {
    let spec = DataSpec { path: path.to_owned(), ..DataSpec::default() };
    let source = Source::open(folder, "data", &spec, &ReadContext::default());
    source.iter().flat_map(Source::columns).map(|column| column.name.clone()).collect()
}

/// The folder of a run file that is to be written.
fn folder_for(output: &Path, replace: bool) -> Result<PathBuf, AppError> {
    if !replace && output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let output = absolute(output);
    Ok(output.parent().unwrap_or(Path::new("/")).to_owned())
}

/// Writes a run file that was drafted.
///
/// # Errors
/// [`ErrorKind::Usage`] for a draft that is not a run file, a file that exists and is not to be replaced, and a place that
/// cannot be written.
pub fn write(text: &str, output: &Path, replace: bool) -> Result<(), AppError> {
    runfile::parse(text, &output.to_string_lossy(), &[])
        .map_err(|errors| AppError::run_file(&errors, text))?;
    let written = match replace {
        true => TempFile::write(output, text.as_bytes()),
        false => File::create_new(output).and_then(|mut file| file.write_all(text.as_bytes())),
    };
    written.and_then(|()| give_to_user(output)).map_err(|error| match error.kind() {
        IoErrorKind::AlreadyExists => exists(output),
        _ => AppError::new(ErrorKind::Usage, format!("cannot write `{}`", output.display()))
            .because(error)
            .hint("name another file with --out"),
    })
}

fn exists(output: &Path) -> AppError {
    AppError::new(ErrorKind::Usage, format!("`{}` exists", output.display()))
        .hint("name another file with --out, or replace it with --force")
}

fn read_script(path: &Path, folder: &Path) -> Result<Script, AppError> {
    let failed = |error: std::io::Error| {
        let kind = match error.kind() {
            IoErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Usage,
        };
        AppError::new(kind, format!("cannot read the script `{}`", path.display()))
            .because(error)
            .hint("name the file that trains: trackway init SCRIPT")
    };
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(failed)?;
    file.take(SCRIPT_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Script { path: beside(path, folder), text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// The script of a folder: one with a usual name, or the only one in Python.
fn script_in(folder: &Path) -> Option<PathBuf> {
    let usual = SCRIPT_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    usual.or_else(|| {
        let is_python = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
        let mut scripts = files_in(folder).into_iter().filter(is_python);
        let only = scripts.next()?;
        scripts.next().is_none().then_some(only)
    })
}

/// The data files of a folder, in order.
fn data_files(folder: &Path) -> Vec<PathBuf> {
    files_in(folder).into_iter().filter(|path| is_data(path)).collect()
}

fn is_data(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    DATA_EXTENSIONS.contains(&extension)
}

/// Files of a folder that are not hidden, in order.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let is_hidden = |path: &Path| {
        path.file_name().is_none_or(|name| name.to_str().is_none_or(|name| name.starts_with('.')))
    };
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| !is_hidden(path) && path.is_file()).collect();
    files.sort();
    files
}

/// A path as a run file in `folder` writes it: relative if it is below.
fn beside(path: &Path, folder: &Path) -> String {
    let path = absolute(path);
    path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// NVIDIA GPUs, by the files of their driver: calling the driver itself can take long.
fn gpu_count() -> u32 {
    let is_gpu = |name: &str| {
        let number = name.strip_prefix("nvidia");
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let gpus = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_gpu)).count();
    u32::try_from(gpus).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(folder: &Path, script: Option<&str>) -> InitRequest {
        InitRequest {
            script: script.map(|name| folder.join(name)),
            arguments: Vec::new(),
            output: folder.join("trackway.toml"),
            replace: false,
        }
    }

    /// Proves that the script, the data and the repository of a folder are found, with paths as the run file writes them.
    #[test]
    fn a_project_is_found() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("income");
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::fs::create_dir(folder.join(".git")).unwrap();
        for name in ["fit.py", "data/train.csv", "data/.hidden.csv", "data/notes.txt", "all.parquet"] {
            std::fs::write(folder.join(name), "import torch\n").unwrap();
        }
        std::fs::write(folder.join("data/train.csv"), "age,income\n1,2\n").unwrap();
        let argument = format!("--data={}", folder.join("data/train.csv").display());
        let request = InitRequest { arguments: vec![argument], ..request(&folder, None) };
        let found = survey(&request).unwrap();
        let script = found.script.as_ref().unwrap();
        assert_eq!((script.path.as_str(), script.text.as_str()), ("fit.py", "import torch\n"));
        assert_eq!((found.folder_name.as_str(), found.is_in_git), ("income", true));
        assert_eq!(found.named_data, ["data/train.csv"]);
        assert_eq!(found.data_files, ["all.parquet", "data/train.csv"]);
        assert_eq!(
            found.columns,
            [("data/train.csv".to_owned(), vec!["age".into(), "income".into()])].into()
        );
        std::fs::write(folder.join("other.py"), "").unwrap();
        assert!(survey(&request).unwrap().script.is_none(), "two scripts, and none with a usual name");
        std::fs::write(folder.join("main.py"), "").unwrap();
        assert_eq!(survey(&request).unwrap().script.unwrap().path, "main.py");
    }

    /// Proves that data which a script or its arguments read is found, and that what they write is not.
    #[test]
    fn data_that_is_read_is_named() {
        let home = tempfile::tempdir().unwrap();
        for name in ["rows.csv", "more.jsonl", "predictions.csv", "scored.csv", "notes.txt"] {
            std::fs::write(home.path().join(name), "a\n1\n").unwrap();
        }
        let text = "rows = open('rows.csv')\nopen('predictions.csv', 'w')\nx = 'notes.txt'\nt.to_csv('scored.csv')\n";
        std::fs::write(home.path().join("train.py"), text).unwrap();
        let more = home.path().join("more.jsonl").display().to_string();
        let scored = home.path().join("scored.csv").display().to_string();
        let arguments = vec!["--data".to_owned(), more, "--out".to_owned(), scored];
        let request = InitRequest { arguments, ..request(home.path(), None) };
        assert_eq!(survey(&request).unwrap().named_data, ["more.jsonl", "rows.csv"]);
    }

    /// Proves that a script that is not there, an existing run file and a text that is not a run file are refused, and
    /// that an existing run file is replaced on request.
    #[test]
    fn what_exists_is_replaced_only_when_asked() {
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("trackway.toml");
        let missing = survey(&request(home.path(), Some("absent.py"))).unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound);
        const TEXT: &str = "[run]\nname = \"x\"\ncommand = [\"true\"]\n";
        assert_eq!(write("[run]\n", &output, false).unwrap_err().kind, ErrorKind::Usage);
        write(TEXT, &output, false).unwrap();
        for refused in [write(TEXT, &output, false), survey(&request(home.path(), None)).map(|_| ())] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Usage);
            assert!(refused.to_string().ends_with("trackway.toml` exists"), "{refused}");
        }
        let longer = format!("{TEXT}seed = 1\n");
        write(&longer, &output, true).unwrap();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), longer);
    }
}
