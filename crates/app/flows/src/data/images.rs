//! Folders of images and texts.

use std::path::Path;

use trackway_api::data::ImagesAnswer;
use trackway_core::checks::{CheckResult, Finding, Verdict};
use trackway_data::media::{Content, are_images, check, find_image_overlap, look_at};
pub use trackway_data::media::{MediaCount, MediaRequest};
use trackway_engine::error::AppError;
use trackway_tables::ReadContext;

use super::table::{ReadObserver, TableRequest, data_error};

/// Reads every file once and checks it, also against masks and a table of labels.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::NotFound`] for a path that names nothing;
/// [`trackway_engine::error::ErrorKind::Usage`] for labels that cannot be read as a table.
pub fn images(
    base: &Path,
    request: &MediaRequest,
    context: &ReadContext,
    observer: &ReadObserver<'_>,
) -> Result<ImagesAnswer, AppError> {
    let found = check(base, request, context, &observer.watch()).map_err(data_error)?;
    let mut findings: Vec<Finding> = found.checks.iter().flat_map(|check| check.findings.clone()).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let not_run = found.checks.iter().filter(|check| check.verdict == Verdict::NotRun);
    let not_run =
        not_run.map(|it| format!("{}: {}", it.name, it.why.as_deref().unwrap_or_default())).collect();
    Ok(ImagesAnswer { findings, not_run, found })
}

/// The checks of leakage for images, and how many files were read and could not be; `None` if the two sides are not
/// both images.
pub(super) fn leakage(
    base: &Path,
    train: &TableRequest,
    test: &TableRequest,
    observer: &ReadObserver<'_>,
) -> Result<Option<(Vec<CheckResult>, u64, u64)>, AppError> {
    let is_of_images =
        |set: &str, table: &TableRequest| are_images(base, set, &table.paths, &table.read_context);
    let is_both = is_of_images("train", train).and_then(|one| Ok(one && is_of_images("test", test)?));
    if !is_both.map_err(data_error)? {
        return Ok(None);
    }
    let look = |set: &str, table: &TableRequest| {
        look_at(base, set, &table.paths, &table.read_context, &observer.watch()).map_err(data_error)
    };
    let (train, test) = (look("train", train)?, look("test", test)?);
    let is_lost = |content: &Content| matches!(content, Content::Broken(_) | Content::NotChecked(_));
    let lost = train.iter().chain(&test).filter(|file| is_lost(&file.content)).count() as u64;
    let read = (train.len() + test.len()) as u64 - lost;
    Ok(Some((find_image_overlap(&train, &test).results(lost).into(), read, lost)))
}
