//! Where the checkpoints are looked for that a script writes itself, by its job.

use trackway_adopt::Patterns;
use trackway_formats::runfile::CheckpointSection;
use trackway_launch::Adopt;

use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::run::job::Job;

/// Which checkpoints of the script's own a run adopts. A cadence says that the script saves through Trackway.
pub(in crate::run) fn adopt_of(section: &CheckpointSection) -> Adopt {
    match &section.adopt {
        Some(paths) if paths.is_empty() => Adopt::Nothing,
        Some(paths) => Adopt::Paths(paths.clone()),
        None if section.has_cadence() => Adopt::Nothing,
        None => Adopt::Detected,
    }
}

/// Where the checkpoints of a job's own are looked for; none if none are.
pub(in crate::run) fn patterns_of_job(context: &Context, job: &Job) -> Result<Option<Patterns>, AppError> {
    let adopt = adopt_of(&job.plan.checkpoint);
    adopt.patterns(&job.working_directory(), context.home.layout.folder()).map_err(|error| {
        let message =
            format!("`checkpoint.adopt` has `{}`, which is not a pattern: {}", error.pattern, error.why);
        AppError::new(ErrorKind::Usage, message)
    })
}
