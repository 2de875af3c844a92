//! The run file: TOML text to typed [`RunFile`] to immutable [`Plan`].
//!
//! Reading is pure: text in, values or *all* mistakes out, each with its place and a hint. Every key is in
//! [`SCHEMA`]; `docs/run-file.md` describes each. Changes ([`PlanPatch`], such as those of `--set key.path=value`) are made in the
//! document before it is read. There is no interpolation: `${…}` is plain text.

mod checks;
mod detect;
mod document;
mod early_stop;
mod error;
mod evaluate;
mod keys;
mod notify;
mod patch;
mod plan;
mod read;
mod resources;
mod schema;
mod sections;
#[cfg(test)]
mod tests;
pub mod training;
mod unsupported;

use toml::de::DeTable;

pub use checks::{DataRole, GovernanceSection, LoaderFacts, PreflightSection, SkippedCheck, TrainingSection};
pub use detect::{DetectSection, DetectorSettings};
pub use document::RunFile;
pub use early_stop::EarlyStopSection;
pub use error::RunFileError;
pub(crate) use error::line_and_column;
pub use evaluate::{
    DEFAULT_EVALUATION_TIMEOUT_SECONDS, EvaluateSection, JudgeSection, MAIN_TEST_SET, PROBE_ROWS_MAX,
    SliceSection, TestSetSection,
};
use keys::tree::{Place, Sources, Value};
pub use keys::values::{ARGUMENT_BYTES_MAX, MAX_DURATION_SECONDS, parse_byte_size, parse_duration};
pub use keys::walker::MAX_ERRORS;
use keys::walker::Problems;
pub use notify::{NotifyOn, NotifySection};
pub use patch::{ChangeOrigin, KeyPath, PatchValue, PlanChange, PlanPatch};
pub use plan::{PLAN_VERSION, Plan, canonical_json};
pub use read::INFRASTRUCTURE;
pub use resources::{
    EngineName, EngineNameError, EngineTemplate, LaunchOn, LaunchSection, PlacementChange, PlanEntry,
    ResourcesChange, ResourcesSection, SecretReference, TemplateFormat,
};
pub use schema::{SCHEMA, SectionSchema, nearest};
pub use sections::{
    CheckpointSection, ContainerEngine, ContainerSection, DEFAULT_GRACE_SECONDS, DataFormat, DataSpec,
    DecimalMark, Goal, KeepBest, LadderSection, OnDataChange, OnWrongResume, OwnerSection, RESUME_PATH,
    ResumeSection, RetryRule, RetrySection, RunSection, SigtermMeaning, SuperviseSection,
};
pub use unsupported::Unsupported;

/// A larger text is not a run file; it is refused before it is parsed.
pub const MAX_RUN_FILE_BYTES: usize = 1 << 20;

/// Reads a run file.
///
/// `source_name` is the file's name in messages; `changes` are made in the document in their order.
///
/// # Errors
/// Every mistake of the file and the changes, in order, at most [`MAX_ERRORS`]. A syntax error hides the rest,
/// so it comes alone.
pub fn parse(source: &str, source_name: &str, changes: &[PlanChange]) -> Result<RunFile, Vec<RunFileError>> {
    let sources = Sources::of(source_name, source.to_owned(), changes);
    let mut root = parse_toml(source, &sources)?;
    let mut problems = Problems::new(&sources);
    for (source_index, change) in (1..).zip(changes) {
        change.apply(&mut root, source_index, &mut problems);
    }
    let file = document::read(&root, &mut problems);
    match (file, problems.into_errors()) {
        (Some(file), errors) if errors.is_empty() => Ok(file),
        (_, errors) => Err(errors),
    }
}

/// Reads a run file as it comes from the disk; bytes that are no UTF-8 are one more mistake with its place.
///
/// # Errors
/// As [`parse`]. To render them, pass the lossy text of the bytes: the place of the mistake is the same in it.
pub fn parse_bytes(
    source: &[u8],
    source_name: &str,
    changes: &[PlanChange],
) -> Result<RunFile, Vec<RunFileError>> {
    let error = match std::str::from_utf8(source) {
        Ok(source) => return parse(source, source_name, changes),
        Err(error) => error,
    };
    let at = error.valid_up_to();
    let sources = Sources::of(source_name, String::from_utf8_lossy(source).into_owned(), &[]);
    let message = format!("the file is not valid UTF-8: byte 0x{:02X}", source.get(at).copied().unwrap_or(0));
    let hint = "save it as UTF-8".to_owned();
    Err(vec![sources.error(&Place { source_index: 0, span: at..at }, message, Some(hint))])
}

/// Line and column, from 1, of a value by the keys on the way to it, or of the last of these that the file has; none: it
/// has none of them, or is not valid TOML.
#[must_use]
pub fn place_of(source: &str, keys: &[&str]) -> Option<(usize, usize)> {
    let mut node = keys::tree::from_toml(&DeTable::parse(source).ok()?, 0, 0);
    let mut start = None;
    for key in keys {
        let Value::Table(mut entries) = node.value else { break };
        let Some(entry) = entries.remove(*key) else { break };
        let is_table = matches!(entry.node.value, Value::Table(_));
        start = Some(if is_table { entry.key_place.span.start } else { entry.node.place.span.start });
        node = entry.node;
    }
    start.map(|start| error::line_and_column(source, start))
}

fn parse_toml(source: &str, sources: &Sources) -> Result<keys::tree::Node, Vec<RunFileError>> {
    if source.len() > MAX_RUN_FILE_BYTES {
        let place = Place { source_index: 0, span: 0..0 };
        let message =
            format!("the file has {} bytes; a run file has at most {MAX_RUN_FILE_BYTES}", source.len());
        return Err(vec![sources.error(&place, message, None)]);
    }
    match DeTable::parse(source) {
        Ok(table) => Ok(keys::tree::from_toml(&table, 0, 0)),
        Err(error) => {
            let place = Place { source_index: 0, span: error.span().unwrap_or(0..0) };
            let message = format!("the file is not valid TOML: {}", error.message().replace('\n', ", "));
            Err(vec![sources.error(&place, message, syntax_hint(error.message()))])
        }
    }
}

/// A hint for the slips people make most.
fn syntax_hint(message: &str) -> Option<String> {
    let hint = if message.contains("duplicate key") {
        "a key or section may occur only once"
    } else if message.contains("string values must be quoted") {
        "put strings in double quotes"
    } else {
        return None;
    };
    Some(hint.to_owned())
}
