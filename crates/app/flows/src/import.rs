//! Bringing runs of other tools into the ledger.

use std::path::Path;

use trackway_api::import::{ImportReport, ImportedRun, SkippedPath};
use trackway_core::Clock as _;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_ledger::{ForeignRun, ForeignTool, read_foreign};

/// Imports every run of another tool's store that was not imported before; `told` is called with each.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that does not exist; [`ErrorKind::Usage`] when it holds no store of the tool.
/// Runs that were imported until then stay; importing again continues.
pub fn import(
    context: &Context,
    tool: ForeignTool,
    path: &Path,
    mut on_run: impl FnMut(&ImportedRun),
) -> Result<ImportReport, AppError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !path.exists() {
        let message = format!("there is no `{}`", path.display());
        return Err(AppError::new(ErrorKind::NotFound, message));
    }
    let store = context.ledger_read(|_| read_foreign(tool, &path))?;
    let mut report = ImportReport { tool: tool.as_str().into(), ..ImportReport::default() };
    for mut foreign in store.runs {
        remove_secrets(context, &mut foreign);
        let now = context.clock.now();
        let imported = context
            .ledger_write(|ledger| ledger.import_run(context.home.folder(), tool, &path, &foreign, now))?;
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
    let skipped =
        |(path, why): (std::path::PathBuf, String)| SkippedPath { path: path.display().to_string(), why };
    report.skipped = store.passed.into_iter().map(skipped).collect();
    Ok(report)
}

/// Other tools store whatever they are given.
fn remove_secrets(context: &Context, run: &mut ForeignRun) {
    for pairs in [&mut run.parameters, &mut run.tags] {
        let clean = |(name, value): (String, String)| {
            (context.redactor.text(&name).into_owned(), context.redactor.value(&name, &value).into_owned())
        };
        *pairs = std::mem::take(pairs).into_iter().map(clean).collect();
    }
    let named = std::mem::take(&mut run.metrics).into_iter();
    run.metrics = named.map(|(name, points)| (context.redactor.text(&name).into_owned(), points)).collect();
    if let Some(command) = &mut run.command {
        *command = context.redactor.text(command).into_owned();
    }
}
