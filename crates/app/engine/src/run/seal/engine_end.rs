//! The last state of a job in the words of its engine, kept in the attempt's folder: an engine forgets, and a receipt that is computed
//! later must be the same.

use std::io::{ErrorKind, Read as _};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_files::TempFile;
use trackway_formats::layout::AttemptLayout;
use trackway_launch::{EngineState, Instance, JSON_BYTES_MAX, ObservedAttempt};
use trackway_redact::Redactor;

/// `engine.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EngineEnd {
    #[serde(flatten)]
    pub state: EngineState,
    /// When the launcher saw it.
    pub seen_at: Timestamp,
    /// When it took the job into its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submitted_at: Option<Timestamp>,
    /// When it started the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    /// Its name for that start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
}

impl EngineEnd {
    /// What is kept, or what was seen now, which is kept. None where no engine says anything.
    pub fn keep(
        files: &AttemptLayout,
        seen: &ObservedAttempt,
        redactor: &Redactor,
    ) -> std::io::Result<Option<Self>> {
        let path = files.engine_json();
        // The first word counts: an engine forgets a job, or starts it again under the same name.
        match trackway_files::open_trusted(&path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(JSON_BYTES_MAX).read_to_end(&mut bytes)?;
                return Ok(Some(serde_json::from_slice(&bytes)?));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let Some(found) = &seen.engine_state else { return Ok(None) };
        let clean = |text: &str| redactor.text(text).into_owned();
        let EngineState { engine, state, reason } = found;
        let state = EngineState { engine: clean(engine), state: clean(state), reason: clean(reason) };
        let end = Self {
            state,
            seen_at: seen.seen_at,
            submitted_at: seen.submitted_at,
            started_at: seen.started_at,
            instance: seen.instance.as_ref().map(|Instance(name)| clean(name)),
        };
        trackway_files::make_folders(files.folder())?;
        TempFile::write(&path, &serde_json::to_vec_pretty(&end)?)?;
        Ok(Some(end))
    }

    /// What was seen now, with the times and the start that the engine named first.
    pub fn restore(&self, seen: &mut ObservedAttempt) {
        seen.submitted_at = self.submitted_at;
        seen.started_at = self.started_at;
        seen.instance = self.instance.clone().map(Instance);
        seen.engine_state = Some(self.state.clone());
    }
}

#[cfg(test)]
mod tests {
    use trackway_launch::Observation;

    use super::*;

    fn seen(state: Option<&str>) -> ObservedAttempt {
        let engine_state = state.map(|state| EngineState {
            engine: "slurm".into(),
            state: state.into(),
            reason: "NodeDown".into(),
        });
        ObservedAttempt {
            state: Observation::Gone { why: "test".into(), rebooted: false },
            seen_at: Timestamp::from_micros(5),
            engine_state,
            submitted_at: Some(Timestamp::from_micros(2)),
            started_at: Some(Timestamp::from_micros(3)),
            instance: Some(Instance("7/1".into())),
            hosts: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// Proves that what an engine says of a job is kept without secrets.
    #[test]
    fn words_of_an_engine_are_kept_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let files = AttemptLayout::new(folder.path().join("attempt"));
        let token = format!("gh{}{}", "p_", "Ab1Cd2".repeat(6));
        let redactor = Redactor::of_shapes();
        let kept = EngineEnd::keep(&files, &seen(Some(&token)), &redactor).unwrap().unwrap();
        assert_eq!(kept.state.state, "[redacted:github-token]");
        assert!(!std::fs::read_to_string(files.engine_json()).unwrap().contains(&token));
    }

    /// Proves that the first word of an engine is kept, with its times, whatever it says later or when it has forgotten.
    #[test]
    fn the_first_word_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = AttemptLayout::new(folder.path().join("attempt"));
        let redactor = Redactor::of_this_process();
        assert_eq!(EngineEnd::keep(&files, &seen(None), &redactor).unwrap(), None);
        let first = EngineEnd::keep(&files, &seen(Some("NODE_FAIL")), &redactor).unwrap().unwrap();
        assert_eq!((first.state.state.as_str(), first.state.reason.as_str()), ("NODE_FAIL", "NodeDown"));
        for later in [None, Some("REQUEUED")] {
            assert_eq!(EngineEnd::keep(&files, &seen(later), &redactor).unwrap().as_ref(), Some(&first));
        }
        let mut forgotten =
            ObservedAttempt { submitted_at: None, started_at: None, instance: None, ..seen(None) };
        first.restore(&mut forgotten);
        assert_eq!(forgotten, seen(Some("NODE_FAIL")));
    }
}
