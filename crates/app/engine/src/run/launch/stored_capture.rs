//! What a launch starts from, stored beside the attempt: its surroundings, the changes that are in no commit, and the run file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use trackway_core::AttemptId;
use trackway_files::TempFile;
use trackway_formats::layout::{AttemptLayout, HomeLayout};
use trackway_formats::{StoredPart, Variable};
use trackway_launch::LaunchSpec;
use trackway_redact::Redactor;

use super::variables;
use crate::Context;
use crate::capture::{Capture, Folder, sources};
use crate::error::AppError;
use crate::run::prepare::begin::{Prepared, own_environment};

/// The rest of a capture, made beside the running script: nothing of it keeps the script waiting.
#[derive(Default)]
pub struct LateCapture(Cell<Option<JoinHandle<io::Result<()>>>>);

impl LateCapture {
    /// Begins to read the files. Where no thread can be had the capture stays incomplete, and says so.
    pub(super) fn begin(context: &Context, stored: StoredCapture, folder: Folder) -> Self {
        let (layout, redactor) = (context.home.layout.clone(), Arc::clone(&context.redactor));
        let work = move || stored.complete(folder, &layout, &redactor);
        Self(Cell::new(std::thread::Builder::new().name("late-capture".into()).spawn(work).ok()))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn finish(&self) -> io::Result<()> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the step ended in a panic; please report it")))
    }
}

impl Drop for LateCapture {
    fn drop(&mut self) {
        // Without an end of the attempt here, the capture itself says what it lacks.
        let _ = self.finish();
    }
}

/// A capture as it is in the folder of the attempt.
pub(super) struct StoredCapture {
    path: PathBuf,
    document: Value,
}

impl StoredCapture {
    fn complete(mut self, mut folder: Folder, layout: &HomeLayout, redactor: &Redactor) -> io::Result<()> {
        folder.read(redactor);
        sources::keep_folder(layout, redactor, &folder);
        let mut found = serde_json::to_value(&folder)?;
        redactor.json(&mut found);
        if let Some(fields) = self.document.as_object_mut() {
            fields.insert("folder".into(), found);
            fields.remove("incomplete");
        }
        TempFile::write_cache(&self.path, format!("{:#}", self.document).as_bytes())
    }
}

/// Stores the whole capture beside the attempt; the columns of its row hold the part that is needed most often. Of the
/// environment only allowed names are kept, and those that the run file passes on.
pub(super) fn store_capture(
    context: &Context,
    prepared: &Prepared,
    capture: &Capture,
    spec: &LaunchSpec,
) -> Result<StoredCapture, AppError> {
    let passed = &prepared.job.plan.run.pass_environment;
    let environment =
        stored_environment(&context.redactor, own_environment().collect(), passed, &spec.shown_environment());
    let path = AttemptLayout::new(&spec.directory).capture_json();
    let mut stored = serde_json::to_value(capture)
        .map_err(|error| AppError::fault("the capture cannot be written as JSON", error))?;
    let hashes = variables::own_hashes(context, &environment);
    stored["environment"] = serde_json::json!(environment);
    context.redactor.json(&mut stored);
    stored[variables::FIELD] = serde_json::json!(hashes);
    trackway_files::make_folders(&spec.directory)
        .and_then(|()| trackway_files::write_own(&path, format!("{stored:#}").as_bytes()))
        .map_err(|error| AppError::file("write", &path, error))?;
    Ok(StoredCapture { path, document: stored })
}

/// The part of an environment that may be stored: allowed names, those that the run file passes on and sets, and Trackway's own by their
/// table.
fn stored_environment(
    redactor: &Redactor,
    own: BTreeMap<String, String>,
    passed: &[String],
    set: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_own = |name: &str| name.starts_with(Variable::PREFIX);
    let mut environment = redactor.environment(&own);
    let named = own.iter().filter(|(name, _)| passed.contains(name)).chain(set);
    let named: BTreeMap<String, String> = named.map(|(name, value)| (name.clone(), value.clone())).collect();
    environment.extend(redactor.settings(&named));
    // Of Trackway's variables the table alone decides, whatever the run file passes on.
    environment.retain(|name, _| !is_own(name));
    for (name, value) in own.iter().chain(set).filter(|(name, _)| is_own(name)) {
        let part = name.parse::<Variable>().map_or(StoredPart::Nothing, Variable::stored_part);
        // The host of an address is stored even where the whole address is a secret.
        let stored = part.of(value).map(|part| redactor.text(&part).into_owned());
        environment.extend(stored.map(|stored| (name.clone(), stored)));
    }
    environment
}

/// Keeps the changes that are in no commit, and the run file.
pub(super) fn keep_sources(
    context: &Context,
    prepared: &Prepared,
    attempt_id: AttemptId,
    capture: &Capture,
) -> Result<(), AppError> {
    let (layout, run_file) = (&context.home.layout, prepared.job.run_file.as_deref());
    sources::keep(layout, &context.redactor, attempt_id, capture, run_file)
        .map_err(|error| AppError::file("write below", &layout.sources(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureInputs, capture_without_bytes};

    /// Proves that a stored capture gets the files beside the script when they are read, with the bytes of settings,
    /// says then that it lacks nothing, and keeps what it had.
    #[test]
    fn a_capture_is_completed_beside_the_script() {
        let (beside, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(beside.path().join("a.yaml"), "lr: 0.1\n").unwrap();
        let layout = HomeLayout::new(home.path());
        std::fs::create_dir_all(layout.sources()).unwrap();
        let redactor = Redactor::of_shapes();
        let found = capture_without_bytes(&CaptureInputs {
            argv: &["true".to_owned()],
            working_directory: beside.path(),
            environment: &BTreeMap::new(),
            container_image: None,
            exclude: &[],
            redactor: &redactor,
        });
        let document = serde_json::json!({ "folder": null, "incomplete": "the files", "script": "t.py" });
        let stored = StoredCapture { path: home.path().join("capture.json"), document };
        let path = stored.path.clone();
        stored.complete(found.folder.unwrap(), &layout, &redactor).unwrap();
        let stored: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let blake3 = blake3::hash(b"lr: 0.1\n").to_hex().to_string();
        assert_eq!(stored["folder"]["files"][0]["blake3"], blake3.as_str());
        assert_eq!((stored.get("incomplete"), &stored["script"]), (None, &serde_json::json!("t.py")));
        assert!(layout.file_source(&blake3).exists());
    }

    /// Proves for every variable of Trackway that of its value is stored what the table says, and that neither a name without a row nor
    /// one that the run file passes on gets past it.
    #[test]
    fn of_trackways_variables_is_stored_what_the_table_says() {
        let redactor = Redactor::of_shapes();
        let secret = "https://mm.example.org/hooks/s3cr3tpathvalue99";
        let new = format!("{}NEW", Variable::PREFIX);
        let own: BTreeMap<String, String> = Variable::ALL
            .iter()
            .map(|variable| variable.as_str())
            .chain([new.as_str(), "EDITOR", "LANG"])
            .map(|name| (name.to_owned(), secret.to_owned()))
            .collect();
        let passed = [Variable::Webhook.as_str(), &new, Variable::Decoding.as_str()].map(str::to_owned);
        let stored = stored_environment(&redactor, own.clone(), &passed, &own);
        for variable in Variable::ALL {
            let expected = match variable.stored_part() {
                StoredPart::Value => Some(secret),
                StoredPart::Host => Some("https://mm.example.org"),
                StoredPart::Nothing => None,
            };
            assert_eq!(stored.get(variable.as_str()).map(String::as_str), expected, "{variable}");
        }
        assert!(!stored.contains_key(&new));
        assert_eq!(Variable::Webhook.stored_part(), StoredPart::Host, "documented as a secret");
    }
}
