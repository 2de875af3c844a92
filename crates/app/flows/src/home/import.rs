//! Bringing runs of other tools into the ledger.

use std::path::Path;

use trackway_api::home::import::{ImportReport, ImportedRun, SkippedPath};
use trackway_core::Clock as _;
use trackway_core::name::{Name, NameKind};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_ledger::{
    ForeignRun, ForeignStore, ForeignTool, Omission, OmissionKind, Omissions, read_foreign,
};
use trackway_records::import_run;

/// Imports every run of another tool's store that was not imported before; `on_run` is called with each. With `strict`, nothing is imported
/// if something of the store would be left out or changed; the report says what.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that does not exist; [`ErrorKind::Usage`] when it holds no store of the tool.
/// Runs that were imported until then stay; importing again continues.
pub fn import(
    context: &Context,
    tool: ForeignTool,
    (path, strict): (&Path, bool),
    mut on_run: impl FnMut(&ImportedRun),
) -> Result<ImportReport, AppError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !path.exists() {
        let message = format!("there is no `{}`", path.display());
        return Err(AppError::new(ErrorKind::NotFound, message));
    }
    let store = read_foreign(tool, &path)?;
    let mut report = reported(context, tool, &store);
    if strict {
        report.changed.extend(store.runs.iter().filter_map(|run| renamed(&path, run)));
        report.is_refused = !report.skipped.is_empty() || !report.changed.is_empty();
    }
    if report.is_refused {
        return Ok(report);
    }
    for mut foreign in store.runs {
        remove_secrets(context, &mut foreign);
        let now = context.clock.now();
        let imported = context
            .ledger_write(|ledger| import_run(ledger, context.home.folder(), tool, &path, &foreign, now))?;
        let run = ImportedRun {
            run_id: imported.run_id,
            renamed_from: Some(foreign.name).filter(|own| *own != imported.name.as_str()),
            name: imported.name.into(),
            origin_id: foreign.key,
            is_new: imported.is_new,
            metric_count: foreign.metrics.len() as u64,
            point_count: imported.point_count,
        };
        on_run(&run);
        report.runs.push(run);
    }
    report.imported_count = report.runs.iter().filter(|run| run.is_new).count() as u64;
    report.known_count = report.runs.len() as u64 - report.imported_count;
    Ok(report)
}

/// What the reading of a store left out and changed, before any run is imported.
fn reported(context: &Context, tool: ForeignTool, store: &ForeignStore) -> ImportReport {
    let listed = |omissions: Omissions| {
        let said = |omission: Omission| SkippedPath {
            kind: omission.kind.to_string(),
            path: omission.path.display().to_string(),
            count: omission.count,
            why: omission.why,
        };
        let clean = omissions.cleaned(|text| context.redactor.text(text).into_owned());
        clean.list().into_iter().map(said).collect()
    };
    let (skipped, changed) = store.omissions();
    ImportReport {
        tool: tool.as_str().into(),
        skipped: listed(skipped),
        changed: listed(changed),
        ..ImportReport::default()
    }
}

/// That a run would have another name here.
fn renamed(path: &Path, run: &ForeignRun) -> Option<SkippedPath> {
    let name = Name::renamed(NameKind::Run, &run.name);
    (name.as_str() != run.name).then(|| SkippedPath {
        kind: OmissionKind::Run.to_string(),
        path: path.display().to_string(),
        count: 1,
        why: format!("the run `{}` would be named `{name}`", run.name),
    })
}

/// Other tools store whatever they are given.
fn remove_secrets(context: &Context, run: &mut ForeignRun) {
    for pairs in [&mut run.parameters, &mut run.tags] {
        let clean = |(name, value): (String, String)| {
            (context.redactor.text(&name).into_owned(), context.redactor.value(&name, &value).into_owned())
        };
        *pairs = std::mem::take(pairs).into_iter().map(clean).collect();
    }
    // Names that differ in a secret alone are one name then.
    for (name, points) in std::mem::take(&mut run.metrics) {
        run.metrics.entry(context.redactor.text(&name).into_owned()).or_default().extend(points);
    }
    for omissions in [&mut run.skipped, &mut run.changed] {
        *omissions = std::mem::take(omissions).cleaned(|text| context.redactor.text(text).into_owned());
    }
    if let Some(command) = &mut run.command {
        *command = context.redactor.text(command).into_owned();
    }
}
