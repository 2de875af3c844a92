//! Writes what was read, without secrets, and each metric from one file.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::Timestamp;
use trackway_formats::EventKind;
use trackway_formats::metric_files::{EPOCH, Form, Point};
use trackway_formats::tensorboard::EventFolders;
use trackway_recorder::Origin;
use trackway_redact::Redactor;

use super::super::below::BelowRecord;
use super::find::MetricFile;
use crate::shim::side::Records;

/// Of so many metrics it is remembered which file they are of; further ones are left out.
const OWNERS_MAX: usize = 20_000;
/// Of all files so many settings are taken.
const SETTINGS_MAX: usize = 512;

/// What is said of one file.
#[derive(Debug, Default)]
struct FileReport {
    form: Option<Form>,
    shown_by: &'static str,
    values: u64,
    settings: u64,
    secret: u64,
    /// Values of metrics that another file has.
    doubled: u64,
    beyond: u64,
}

pub(super) struct Record {
    pub below: BelowRecord,
    redactor: Arc<Redactor>,
    folders: EventFolders,
    /// What precedes the names of each folder's values.
    prefixes: HashMap<PathBuf, String>,
    /// Of each metric the file or, of states, the folder.
    owners: HashMap<String, PathBuf>,
    settings: HashMap<String, String>,
    said: BTreeMap<PathBuf, FileReport>,
}

impl Record {
    pub fn new(root: PathBuf, records: Records) -> Self {
        Self {
            below: BelowRecord::new(root, records, Origin::Files),
            redactor: Redactor::of_this_process(),
            folders: EventFolders::default(),
            prefixes: HashMap::new(),
            owners: HashMap::new(),
            settings: HashMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// What shows that the attempt wrote a file.
    pub fn shown_by(&mut self, path: &Path, form: Form, shown_by: &'static str) {
        if let Some(said) = self.said.get_mut(path) {
            (said.form, said.shown_by) = (Some(form), shown_by);
        }
    }

    /// Whether values of the same file, or of another state in its folder, were recorded.
    pub fn has_values_of(&self, found: &MetricFile) -> bool {
        let source = self.source(found);
        self.owners.values().any(|owner| *owner == source)
    }

    /// Of all states of one training, the folder.
    fn source(&self, found: &MetricFile) -> PathBuf {
        match found.form {
            Form::State => found.folder_of_values(&self.below.root),
            _ => found.path.clone(),
        }
    }

    /// What precedes the names of a folder's values: nothing, unless another folder has one of the names of its first row.
    fn prefix(&mut self, found: &MetricFile, point: &Point) -> String {
        let folder = found.folder_of_values(&self.below.root);
        if let Some(known) = self.prefixes.get(&folder) {
            return known.clone();
        }
        let is_taken = |(name, _): &(String, f64)| name != EPOCH && self.owners.contains_key(name);
        let prefix = self.folders.prefix_of(found.way_of_values());
        let prefix = if point.values.iter().any(is_taken) { prefix } else { String::new() };
        self.prefixes.insert(folder, prefix.clone());
        prefix
    }

    pub fn write(&mut self, found: &MetricFile, point: Point) {
        let at = Timestamp::from_micros(found.modified_ns / 1000);
        let prefix = self.prefix(found, &point);
        let source = self.source(found);
        let mut values: Vec<(String, f64)> = Vec::with_capacity(point.values.len());
        let mut said = self.said.remove(&found.path).unwrap_or_default();
        for (name, value) in point.values {
            let name = format!("{prefix}{name}");
            match self.owners.get(&name) {
                Some(owner) if *owner != source => {
                    // Most logs have it beside their steps.
                    said.doubled += u64::from(name != EPOCH);
                    continue;
                }
                Some(_) => {}
                None if self.owners.len() >= OWNERS_MAX => {
                    said.beyond += 1;
                    continue;
                }
                None => {
                    self.owners.insert(name.clone(), source.clone());
                }
            }
            if self.is_secret(&name, value) {
                said.secret += 1;
            } else {
                values.push((name, value));
            }
        }
        said.values += values.len() as u64;
        self.below.values += values.len() as u64;
        self.said.insert(found.path.clone(), said);
        let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        if !values.is_empty() {
            self.below.writer().metrics_at_any_step(at, point.step, &values);
        }
    }

    fn is_secret(&self, name: &str, value: f64) -> bool {
        self.redactor.text(name) != name || self.redactor.is_number_secret(value)
    }

    pub fn write_setting(&mut self, found: &MetricFile, name: &str, value: &str) {
        let value = self.redactor.value(name, value).into_owned();
        let name = self.redactor.text(name).into_owned();
        if self.settings.get(&name) == Some(&value) {
            return;
        }
        let said = self.said.entry(found.path.clone()).or_default();
        if self.settings.len() >= SETTINGS_MAX && !self.settings.contains_key(&name) {
            said.beyond += 1;
            return;
        }
        said.settings += 1;
        self.below.writer().param(&name, &value);
        self.settings.insert(name, value);
    }

    /// Names what was read, and what of it is left out.
    pub fn finish(&mut self) {
        for (path, said) in std::mem::take(&mut self.said) {
            let shown = self.below.shown(&path);
            let (values, settings) = (said.values.to_string(), said.settings.to_string());
            let fields = [
                ("path", shown.as_str()),
                ("form", said.form.map_or("", Form::as_str)),
                ("values", &values),
                ("settings", &settings),
                ("shown_by", said.shown_by),
            ];
            if said.values + said.settings > 0 {
                self.below.writer().event(EventKind::MetricFileRead.as_str(), None, &fields);
            }
            let left_out = [
                (said.secret, "values are left out: they or their names look like secrets"),
                (said.doubled, "values are left out: another file has metrics of these names"),
                (said.beyond, "values or settings are left out: there are too many names"),
            ];
            for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
                self.below.skip(&path, &format!("{count} {what}"), &[]);
            }
        }
    }
}
