//! The object store that a run's checkpoints are sent to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_checkpoint::MAX_ONLY_COPIES;
use trackway_core::text::counted;
use trackway_core::{AttemptId, Step};

/// How far a run's remote is behind this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteStatus {
    /// Where it is, without secrets.
    pub location: String,
    /// When this was recorded; RFC 3339.
    pub at: String,
    /// Since when the remote does not answer; RFC 3339.
    pub out_of_reach_since: Option<String>,
    /// The error of the last call that failed.
    pub last_error: Option<String>,
    /// Commits of this machine that the remote does not have.
    pub waiting_commits: u64,
    /// The newest step among them.
    pub waiting_step: Option<Step>,
    /// Checkpoints that are being uploaded or wait for it.
    pub waiting_uploads: u64,
    /// The newest step that is uploaded completely.
    pub uploaded_step: Option<Step>,
    /// Checkpoints newer than `uploaded_step` whose only copy was deleted from this disk, because too many waited and no
    /// rule keeps them.
    pub dropped_uploads: u64,
    /// What is being sent.
    pub uploading: Option<Uploading>,
    /// The attempt that holds the run, if it is another one than the last that was launched here.
    pub fenced_by: Option<FencedBy>,
}

/// A checkpoint that is being uploaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Uploading {
    /// Bytes that have arrived.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// The attempt that was granted the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FencedBy {
    pub epoch: u64,
    pub attempt_id: AttemptId,
}

impl RemoteStatus {
    /// Whether everything that should be at the remote is there.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.waiting_commits == 0 && self.waiting_uploads == 0
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let location = &self.location;
        let counts = counts(self.waiting_commits, self.waiting_uploads);
        if let Some(FencedBy { epoch, attempt_id }) = &self.fenced_by {
            return format!("{attempt_id} now owns the checkpoints of the run at {location} (epoch {epoch})");
        }
        if let Some(since) = &self.out_of_reach_since {
            return format!("waiting for the remote {location} since {since}: {counts}");
        }
        if !self.is_settled() {
            return match &self.uploading {
                Some(Uploading { done_bytes, total_bytes }) => {
                    let percent = done_bytes * 100 / (*total_bytes).max(1);
                    format!("uploading to {location}: {counts}, {percent} % of the first one")
                }
                None => format!("uploading to {location}: {counts}"),
            };
        }
        match self.uploaded_step {
            Some(step) => format!("everything is at {location} up to step {step}"),
            None => format!("nothing is at {location} yet"),
        }
    }

    /// A warning if uploads are so far behind that retention deletes checkpoints without another copy.
    #[must_use]
    pub fn dropped_uploads_warning(&self) -> Option<String> {
        (self.dropped_uploads > 0).then(|| {
            format!(
                "uploads are far behind: of the checkpoints without a second copy, the {MAX_ONLY_COPIES} newest are kept, and those \
                 that a rule or a pin keeps; {} older ones were deleted",
                self.dropped_uploads
            )
        })
    }
}

fn counts(commits: u64, uploads: u64) -> String {
    let (commits_text, uploads_text) = (counted(commits, "commit"), counted(uploads, "upload"));
    match (commits, uploads) {
        (0, _) => uploads_text,
        (_, 0) => commits_text,
        _ => format!("{commits_text}, {uploads_text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the sentence of each state, the most severe first.
    #[test]
    fn every_state_has_its_sentence() {
        let mut status = RemoteStatus { location: "s3://b/r".into(), ..RemoteStatus::default() };
        assert_eq!(status.sentence(), "nothing is at s3://b/r yet");
        status.uploaded_step = Some(30);
        assert_eq!(status.sentence(), "everything is at s3://b/r up to step 30");
        status.waiting_uploads = 2;
        status.uploading = Some(Uploading { done_bytes: 45, total_bytes: 100 });
        assert_eq!(status.sentence(), "uploading to s3://b/r: 2 uploads, 45 % of the first one");
        status.waiting_commits = 1;
        status.out_of_reach_since = Some("2026-11-21T10:00:00Z".into());
        let sentence = "waiting for the remote s3://b/r since 2026-11-21T10:00:00Z: 1 commit, 2 uploads";
        assert_eq!(status.sentence(), sentence);
        assert_eq!(status.dropped_uploads_warning(), None);
        status.dropped_uploads = 3;
        assert!(status.dropped_uploads_warning().unwrap().ends_with("; 3 older ones were deleted"));
    }
}
