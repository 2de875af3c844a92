//! `trackway config`: every setting, and where it comes from.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use trackway_api::home::settings::{
    EffectiveSettings, Setting as WireSetting, SettingOrigin, SettingsFile, SettingsFileKind,
    SettingsFileState,
};

use trackway_engine::notify::host_of;
use trackway_formats::settings::EngineSection;

use crate::printer::Printer;
use crate::settings::{FileState, FoundFile, Origin, Setting, Settings};

pub fn config(settings: &Settings, files: &[FoundFile], printer: Printer) -> u8 {
    let rows = rows(settings);
    if printer.is_json() {
        printer.document(&EffectiveSettings {
            settings: rows.iter().map(Row::document).collect(),
            files: files.iter().map(file_document).collect(),
        });
        return 0;
    }
    printer.table(&["setting", "value", "set by"], rows.iter().map(Row::cells).collect());
    printer.line("");
    printer.table(&["settings file", "of", "state"], files.iter().map(file_cells).collect());
    0
}

/// A setting as it is shown.
struct Row<'s> {
    key: Cow<'static, str>,
    value: Value,
    origin: Cow<'s, Origin>,
}

fn rows(settings: &Settings) -> Vec<Row<'_>> {
    let home = settings.home(None);
    let webhook = settings.webhook.as_ref().map_or_else(|| "none".to_owned(), |it| host_of(&it.value));
    let queues = settings.queues.iter().map(|(queue, at_most)| Row {
        key: format!("queues.{queue}.at_most").into(),
        value: json!(at_most.value),
        origin: Cow::Borrowed(&at_most.origin),
    });
    let engines = settings.engines.iter().flat_map(|(engine, setting)| {
        let EngineSection { settings, kind_line, gpus_line } = &setting.value;
        let row = |key: &str, value: Value, line: Option<usize>| Row {
            key: format!("engines.{engine}.{key}").into(),
            value,
            origin: Cow::Owned(line.map_or(Origin::Default, |line| setting.origin.at_line(line))),
        };
        let kind = row("kind", json!(settings.kind), *kind_line);
        std::iter::once(kind).chain(settings.gpus.map(|gpus| row("gpus", json!(gpus), *gpus_line)))
    });
    [
        Row::of_option("home", json!(home.folder().to_string_lossy()), settings.home.as_ref()),
        Row::of_option("ledger", json!(home.shown_ledger()), settings.ledger.as_ref()),
        Row::of("color", &settings.color),
        Row::of("columns_max", &settings.columns_max),
        Row::of("media_mib_max", &settings.media_mib_max),
        Row::of("page_mib_max", &settings.page_mib_max),
        Row::of("follow_links", &settings.follow_links),
        Row::of_option("webhook", json!(webhook), settings.webhook.as_ref()),
    ]
    .into_iter()
    .chain(queues)
    .chain(engines)
    .collect()
}

impl<'s> Row<'s> {
    fn of<T: Serialize>(key: &'static str, setting: &'s Setting<T>) -> Self {
        Self { key: key.into(), value: json!(setting.value), origin: Cow::Borrowed(&setting.origin) }
    }

    /// What holds of a setting without a default.
    fn of_option<T>(key: &'static str, value: Value, setting: Option<&'s Setting<T>>) -> Self {
        let origin = setting.map_or(&Origin::Default, |setting| &setting.origin);
        Self { key: key.into(), value, origin: Cow::Borrowed(origin) }
    }

    fn cells(&self) -> Vec<String> {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        let set_by = match self.origin.as_ref() {
            Origin::Flag(name) | Origin::Environment(name) => (*name).to_owned(),
            Origin::File { path, line } => format!("{}:{line}", path.display()),
            Origin::Default => "default".to_owned(),
        };
        vec![self.key.to_string(), value, set_by]
    }

    fn document(&self) -> WireSetting {
        let (origin, name, path, line) = match self.origin.as_ref() {
            Origin::Flag(name) => (SettingOrigin::Flag, Some((*name).to_owned()), None, None),
            Origin::Environment(name) => (SettingOrigin::Environment, Some((*name).to_owned()), None, None),
            Origin::File { path, line } => {
                (SettingOrigin::File, None, Some(path.to_string_lossy().into_owned()), Some(*line as u64))
            }
            Origin::Default => (SettingOrigin::Default, None, None, None),
        };
        WireSetting { key: self.key.to_string(), value: self.value.clone(), origin, name, path, line }
    }
}

fn file_cells(file: &FoundFile) -> Vec<String> {
    let of = match file.kind {
        SettingsFileKind::Project => "the project",
        SettingsFileKind::Home => "the home",
        SettingsFileKind::User => "the user",
    };
    let state = match &file.state {
        FileState::Read(_) => "used".to_owned(),
        FileState::Absent => "absent".to_owned(),
        FileState::Refused(why) => why.clone(),
    };
    vec![file.path.display().to_string(), of.to_owned(), state]
}

fn file_document(file: &FoundFile) -> SettingsFile {
    SettingsFile {
        kind: file.kind,
        path: file.path.to_string_lossy().into_owned(),
        state: match &file.state {
            FileState::Read(_) => SettingsFileState::Used,
            FileState::Absent => SettingsFileState::Absent,
            FileState::Refused(_) => SettingsFileState::Refused,
        },
        why: file.refused().map(Into::into),
    }
}
