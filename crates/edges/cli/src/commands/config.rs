//! `trackway config`: every setting, and where it comes from.

use serde::Serialize;
use serde_json::{Value, json};

use crate::printer::Printer;
use crate::settings::{FileKind, FileState, FoundFile, Origin, Setting, Settings};

pub fn config(settings: &Settings, files: &[FoundFile], printer: Printer) -> u8 {
    let rows = rows(settings);
    if printer.is_json() {
        printer.document(&json!({
            "settings": rows.iter().map(Row::document).collect::<Vec<_>>(),
            "files": files.iter().map(file_document).collect::<Vec<_>>(),
        }));
        return 0;
    }
    printer.table(&["setting", "value", "set by"], rows.iter().map(Row::cells).collect());
    printer.line("");
    printer.table(&["settings file", "of", "state"], files.iter().map(file_cells).collect());
    0
}

/// A setting as it is shown.
struct Row<'s> {
    key: &'static str,
    value: Value,
    origin: &'s Origin,
}

fn rows(settings: &Settings) -> [Row<'_>; 7] {
    let home = settings.home(None);
    [
        Row {
            key: "home",
            value: json!(home.folder().to_string_lossy()),
            origin: origin_of(settings.home.as_ref()),
        },
        Row { key: "ledger", value: json!(home.shown_ledger()), origin: origin_of(settings.ledger.as_ref()) },
        Row::of("color", &settings.color),
        Row::of("columns_max", &settings.columns_max),
        Row::of("media_mib_max", &settings.media_mib_max),
        Row::of("page_mib_max", &settings.page_mib_max),
        Row::of("follow_links", &settings.follow_links),
    ]
}

fn origin_of<T>(setting: Option<&Setting<T>>) -> &Origin {
    setting.map_or(&Origin::Default, |setting| &setting.origin)
}

impl<'s> Row<'s> {
    fn of<T: Serialize>(key: &'static str, setting: &'s Setting<T>) -> Self {
        Self { key, value: json!(setting.value), origin: &setting.origin }
    }

    fn cells(&self) -> Vec<String> {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned);
        let set_by = match self.origin {
            Origin::Flag(name) | Origin::Environment(name) => (*name).to_owned(),
            Origin::File { path, line } => format!("{}:{line}", path.display()),
            Origin::Default => "default".to_owned(),
        };
        vec![self.key.to_owned(), value, set_by]
    }

    fn document(&self) -> Value {
        let (origin, name, path, line) = match self.origin {
            Origin::Flag(name) => ("flag", Some(*name), None, None),
            Origin::Environment(name) => ("environment", Some(*name), None, None),
            Origin::File { path, line } => ("file", None, Some(path.to_string_lossy()), Some(*line)),
            Origin::Default => ("default", None, None, None),
        };
        json!({
            "key": self.key, "value": self.value, "origin": origin, "name": name, "path": path, "line": line,
        })
    }
}

fn file_cells(file: &FoundFile) -> Vec<String> {
    let of = match file.kind {
        FileKind::Project => "the project",
        FileKind::User => "the user",
    };
    let state = match &file.state {
        FileState::Read(_) => "used".to_owned(),
        FileState::Absent => "absent".to_owned(),
        FileState::Refused(why) => why.clone(),
    };
    vec![file.path.display().to_string(), of.to_owned(), state]
}

fn file_document(file: &FoundFile) -> Value {
    let state = match &file.state {
        FileState::Read(_) => "used",
        FileState::Absent => "absent",
        FileState::Refused(_) => "refused",
    };
    json!({ "kind": file.kind, "path": file.path.to_string_lossy(), "state": state, "why": file.refused() })
}
