//! What is set for every command, and where each value comes from. From the strongest: the command line, the environment,
//! the project's settings file, the home's, the user's, the default.

mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use trackway_engine::home::{Home, is_connection_string};
use trackway_flows::data::{
    COLUMNS_VARIABLE, DEFAULT_LIMITS, LINKS_VARIABLE, Limits, MEDIA_VARIABLE, PAGE_VARIABLE, ReadContext,
    remote_files,
};
use trackway_formats::Variable;
use trackway_formats::layout::PROJECT_FOLDER;
use trackway_formats::queue::QueueName;
use trackway_formats::runfile::EngineName;
use trackway_formats::settings::{AtLine, EngineSection, SettingsFile, is_web_address};

use crate::exit::Failure;
pub use files::{FileState, FoundFile};

/// Names the folder with Trackway's state.
pub const HOME_VARIABLE: &str = Variable::Home.as_str();
/// Names the ledger.
pub const LEDGER_VARIABLE: &str = Variable::Ledger.as_str();
/// Has the address of a webhook.
const WEBHOOK_VARIABLE: &str = Variable::Webhook.as_str();
/// Any value of it: no colours (<https://no-color.org>).
const NO_COLOR_VARIABLE: &str = "NO_COLOR";

/// A value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An option of the command line.
    Flag(&'static str),
    /// A variable of the environment.
    Environment(&'static str),
    /// A line of a settings file, counted from 1.
    File { path: PathBuf, line: usize },
    /// Nothing sets it.
    Default,
}

impl Origin {
    /// Another line of the same file.
    pub fn at_line(&self, line: usize) -> Self {
        match self {
            Self::File { path, .. } => Self::File { path: path.clone(), line },
            Self::Flag(_) | Self::Environment(_) | Self::Default => self.clone(),
        }
    }
}

/// What holds for a command.
#[derive(Debug)]
pub struct Settings {
    /// The folder with Trackway's state; none: it depends on the run file and the working directory.
    pub home: Option<Setting<PathBuf>>,
    /// A path or a URL; none: in the home.
    pub ledger: Option<Setting<String>>,
    /// Whether a terminal is written to in colours.
    pub color: Setting<bool>,
    /// The most columns of a table that is read.
    pub columns_max: Setting<u32>,
    /// Memory of images and texts that are read at the same time, in MiB.
    pub media_mib_max: Setting<u32>,
    /// What a page of a Parquet file may take, in MiB.
    pub page_mib_max: Setting<u32>,
    /// Whether links that lead out of a data folder are followed.
    pub follow_links: Setting<bool>,
    /// The address that notifications are sent to.
    pub webhook: Option<Setting<String>>,
    /// How many runs of each queue run at once; of others one.
    pub queues: BTreeMap<QueueName, Setting<u32>>,
    /// What starts attempts, by name; beside them the default engine of each kind.
    pub engines: BTreeMap<EngineName, Setting<EngineSection>>,
}

/// Everything that may set something.
pub struct SettingSources<'g> {
    pub home: Option<&'g Path>,
    pub ledger: Option<&'g str>,
    /// The value of a variable of the environment.
    pub environment: &'g dyn Fn(&str) -> Option<OsString>,
    /// Settings files, the stronger one first.
    pub files: &'g [(&'g Path, &'g SettingsFile)],
}

/// The settings files that are there or could be, and what holds with them. `home` and `ledger` are the options of the
/// command line, `run_file` is that of the command, if it has one.
///
/// # Errors
/// Mistakes in a settings file, one that cannot be read, and variables of the environment with a wrong value.
pub fn find(
    home: Option<&Path>,
    ledger: Option<&str>,
    run_file: Option<&Path>,
) -> Result<(Settings, Vec<FoundFile>), Failure> {
    let environment = |name: &str| std::env::var_os(name);
    let resolved = |found: &[FoundFile]| {
        let read: Vec<(&Path, &SettingsFile)> = found.iter().filter_map(FoundFile::read).collect();
        resolve(&SettingSources { home, ledger, environment: &environment, files: &read })
    };
    let mut found = files::find(&std::env::current_dir().unwrap_or_default(), &environment)?;
    let home_folder = resolved(&found)?.home_folder(run_file);
    files::add_that_of_home(&mut found, &home_folder)?;
    Ok((resolved(&found)?, found))
}

/// How many runs of each queue run at once, by the settings files as they are now; none: one cannot be read, or has mistakes.
pub fn queues_now(
    here: &Path,
    home: &Path,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Option<BTreeMap<QueueName, u32>> {
    let mut found = files::find(here, environment).ok()?;
    files::add_that_of_home(&mut found, home).ok()?;
    let read: Vec<(&Path, &SettingsFile)> = found.iter().filter_map(FoundFile::read).collect();
    let queues =
        SettingSources { home: None, ledger: None, environment, files: &read }.named(|file| &file.queues);
    Some(queues.into_iter().map(|(queue, at_most)| (queue, at_most.value)).collect())
}

/// What holds, of all that is given.
///
/// # Errors
/// A variable of the environment with a wrong value.
pub fn resolve(given: &SettingSources<'_>) -> Result<Settings, Failure> {
    let home = given.home.map(|home| Setting { value: home.to_owned(), origin: Origin::Flag("--home") });
    let ledger =
        given.ledger.map(|ledger| Setting { value: ledger.to_owned(), origin: Origin::Flag("--ledger") });
    let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
    let (media_mib, page_mib) = (mib(DEFAULT_LIMITS.media_bytes_max), mib(DEFAULT_LIMITS.page_bytes_max));
    let columns = u32::try_from(DEFAULT_LIMITS.columns_max).unwrap_or(u32::MAX);
    Ok(Settings {
        home: home
            .or_else(|| given.variable(HOME_VARIABLE).map(|home| home.map(PathBuf::from)))
            .or_else(|| given.written(|file| file.home.as_ref()).map(Setting::beside_its_file)),
        ledger: ledger
            .or_else(|| given.variable(LEDGER_VARIABLE).map(|ledger| ledger.map(text)))
            .or_else(|| given.written(|file| file.ledger.as_ref()).map(location)),
        color: given
            .set(NO_COLOR_VARIABLE, |_| Ok(false), |file| file.color.as_ref())?
            .unwrap_or(Setting::default_of(true)),
        columns_max: given.number(COLUMNS_VARIABLE, |file| file.columns_max.as_ref(), columns)?,
        media_mib_max: given.number(MEDIA_VARIABLE, |file| file.media_mib_max.as_ref(), media_mib)?,
        page_mib_max: given.number(PAGE_VARIABLE, |file| file.page_mib_max.as_ref(), page_mib)?,
        follow_links: given
            .set(LINKS_VARIABLE, |value| Ok(value == "1"), |file| file.follow_links.as_ref())?
            .unwrap_or(Setting::default_of(DEFAULT_LIMITS.follow_links)),
        webhook: given.set(WEBHOOK_VARIABLE, web_address, |file| file.webhook.as_ref())?,
        queues: given.named(|file| &file.queues),
        engines: given.named(|file| &file.engines),
    })
}

impl SettingSources<'_> {
    /// The value of a variable that is set and not empty.
    fn variable(&self, name: &'static str) -> Option<Setting<OsString>> {
        let value = (self.environment)(name).filter(|value| !value.is_empty())?;
        Some(Setting { value, origin: Origin::Environment(name) })
    }

    /// The value of the strongest file that sets it.
    fn written<T: Clone>(&self, of: fn(&SettingsFile) -> Option<&AtLine<T>>) -> Option<Setting<T>> {
        self.files.iter().find_map(|(path, file)| {
            let written = of(file)?;
            let origin = Origin::File { path: path.to_path_buf(), line: written.line };
            Some(Setting { value: written.value.clone(), origin })
        })
    }

    /// What has a section by its name, such as `[queues.NAME]`: each from the strongest file that has one.
    fn named<N: Clone + Ord, T: Clone>(
        &self,
        of: fn(&SettingsFile) -> &BTreeMap<N, AtLine<T>>,
    ) -> BTreeMap<N, Setting<T>> {
        let mut found = BTreeMap::new();
        for (path, file) in self.files {
            for (name, written) in of(file) {
                let origin = Origin::File { path: path.to_path_buf(), line: written.line };
                found.entry(name.clone()).or_insert(Setting { value: written.value.clone(), origin });
            }
        }
        found
    }

    /// What a variable sets, or else the strongest file.
    fn set<T: Clone>(
        &self,
        variable: &'static str,
        parse: impl FnOnce(OsString) -> Result<T, Failure>,
        of: fn(&SettingsFile) -> Option<&AtLine<T>>,
    ) -> Result<Option<Setting<T>>, Failure> {
        let Some(given) = self.variable(variable) else { return Ok(self.written(of)) };
        Ok(Some(Setting { value: parse(given.value)?, origin: given.origin }))
    }

    /// A positive number.
    fn number(
        &self,
        variable: &'static str,
        of: fn(&SettingsFile) -> Option<&AtLine<u32>>,
        default: u32,
    ) -> Result<Setting<u32>, Failure> {
        let parse = |value: OsString| {
            let text = value.to_string_lossy();
            text.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(|| {
                let hint = format!("set {variable} to a positive number, or unset it");
                Failure::usage(format!("{variable} is `{text}`"), hint)
            })
        };
        Ok(self.set(variable, parse, of)?.unwrap_or(Setting::default_of(default)))
    }
}

fn text(value: OsString) -> String {
    value.to_string_lossy().into_owned()
}

/// An address of HTTP. The error does not show a wrong one: it may be a secret.
fn web_address(value: OsString) -> Result<String, Failure> {
    Some(text(value)).filter(|address| is_web_address(address)).ok_or_else(|| {
        Failure::usage(
            format!("{WEBHOOK_VARIABLE} is not an address of HTTP"),
            format!(
                "set {WEBHOOK_VARIABLE} to an address such as `https://hooks.example.org/…`, or unset it"
            ),
        )
    })
}

impl<T> Setting<T> {
    fn default_of(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: change(self.value), origin: self.origin }
    }
}

impl Setting<String> {
    /// The path that a settings file means: relative to the folder of the file.
    fn beside_its_file(self) -> Setting<PathBuf> {
        let folder = match &self.origin {
            Origin::File { path, .. } => path.parent().unwrap_or(Path::new("")).to_owned(),
            Origin::Flag(_) | Origin::Environment(_) | Origin::Default => PathBuf::new(),
        };
        self.map(|path| joined(folder, Path::new(&path)))
    }
}

/// The owner of a home that was found and that nothing names, where root would work in the home of another user. Users
/// other than root may share one.
pub fn other_owner(user: u32, owner: u32) -> Option<u32> {
    const ROOT: u32 = 0;
    (user == ROOT && owner != user).then_some(owner)
}

/// A path in a folder, without `.` and `..`.
fn joined(mut folder: PathBuf, path: &Path) -> PathBuf {
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folder.pop();
            }
            other => folder.push(other),
        }
    }
    folder
}

/// The ledger that a settings file means: a URL as it is, and a path relative to the folder of the file.
fn location(written: Setting<String>) -> Setting<String> {
    match written.value.contains("://") || is_connection_string(&written.value) {
        true => written,
        false => written.beside_its_file().map(|path| path.to_string_lossy().into_owned()),
    }
}

impl Settings {
    /// The folder with Trackway's state: the one that is set, else `.trackway` beside the run file, else the nearest
    /// `.trackway` from here upwards, else here.
    pub fn home_folder(&self, run_file: Option<&Path>) -> PathBuf {
        if let Some(home) = &self.home {
            return home.value.clone();
        }
        if let Some(run_file) = run_file {
            return run_file.parent().unwrap_or(Path::new("")).join(PROJECT_FOLDER);
        }
        let here = std::env::current_dir().unwrap_or_default();
        let mut candidates = here.ancestors().map(|folder| folder.join(PROJECT_FOLDER));
        let found = candidates.find(|candidate| candidate.is_dir());
        found.unwrap_or_else(|| here.join(PROJECT_FOLDER))
    }

    /// How data is read.
    pub fn read_context(&self) -> ReadContext {
        ReadContext::new(self.limits(), Some(remote_files()))
    }

    /// The home of a command on a run file, or of one without.
    pub fn home(&self, run_file: Option<&Path>) -> Home {
        let ledger = self.ledger.as_ref().map(|ledger| ledger.value.clone());
        Home::new(self.home_folder(run_file), ledger)
    }

    /// What is read at most of data.
    pub fn limits(&self) -> Limits {
        let bytes = |mib: &Setting<u32>| u64::from(mib.value) << 20;
        Limits {
            columns_max: self.columns_max.value as usize,
            media_bytes_max: bytes(&self.media_mib_max),
            page_bytes_max: bytes(&self.page_mib_max),
            follow_links: self.follow_links.value,
        }
    }
}
