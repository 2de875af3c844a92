use serde::{Deserialize, Serialize};
use trackway_checkpoint::MAX_ONLY_COPIES;
use trackway_checkpoint::remote::Standing;
use trackway_core::{AttemptId, Step};
use trackway_files::TempFile;
use trackway_formats::layout::RunLayout;

/// How a run and its remote stand. Field names are the JSON contract of `trackway watch`, `explain` and `run`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RemoteStatus {
    /// Where it is, without secrets.
    pub location: String,
    /// When this was written; RFC 3339.
    pub at: String,
    /// Since when the remote does not answer; RFC 3339.
    pub out_of_reach_since: Option<String>,
    /// What the last call that failed said.
    pub last_error: Option<String>,
    /// Commits of this machine that the remote does not know of.
    pub waiting_commits: u64,
    /// The newest step among them.
    pub waiting_step: Option<Step>,
    /// Checkpoints whose bytes are on their way or wait for it.
    pub waiting_uploads: u64,
    /// The newest step whose bytes are all there.
    pub uploaded_step: Option<Step>,
    /// Checkpoints newer than that whose only copy was deleted on this disk, because too many waited; no rule keeps them.
    #[serde(default)]
    pub let_go: u64,
    /// What is being sent.
    pub uploading: Option<Uploading>,
    /// Who holds the run, when it is another attempt than the last one launched here.
    pub fenced_by: Option<FencedBy>,
}

/// A checkpoint on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uploading {
    /// Bytes that have arrived.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// The attempt that was granted the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FencedBy {
    /// Its epoch.
    pub epoch: u64,
    /// The attempt.
    pub attempt_id: AttemptId,
}

impl RemoteStatus {
    /// Takes over where things stand.
    pub(crate) fn take(&mut self, standing: &Standing) {
        self.waiting_commits = standing.waiting_commits;
        self.waiting_step = standing.waiting_step;
        self.waiting_uploads = standing.waiting_uploads;
        self.uploaded_step = standing.uploaded_step;
        self.let_go = standing.let_go;
    }

    /// Whether everything that should be at the remote is there.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.waiting_commits == 0 && self.waiting_uploads == 0
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let location = &self.location;
        if let Some(FencedBy { epoch, attempt_id }) = &self.fenced_by {
            return format!("{attempt_id} was granted the run at {location} (epoch {epoch})");
        }
        if let Some(since) = &self.out_of_reach_since {
            let counts = counts(self.waiting_commits, self.waiting_uploads);
            return format!("waiting for the remote {location} since {since}: {counts}");
        }
        if !self.is_settled() {
            let counts = counts(self.waiting_commits, self.waiting_uploads);
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

    /// What a person should know when uploads are so far behind that retention lets go of what has no other copy.
    #[must_use]
    pub fn told_of_let_go(&self) -> Option<String> {
        (self.let_go > 0).then(|| {
            format!(
                "uploads are far behind: of the checkpoints without a second copy, the {MAX_ONLY_COPIES} newest are kept, and those \
                 that a rule or a pin keeps; {} older ones were deleted",
                self.let_go
            )
        })
    }

    /// What the supervisor of a run wrote last; `None`: it has no remote, or never was launched.
    pub fn read(run: &RunLayout) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(run.remote_json()).ok()?).ok()
    }

    /// Writes it down as a whole. It is a convenience: the logs have it all.
    pub(crate) fn write(&self, run: &RunLayout) {
        let Ok(text) = serde_json::to_vec(self) else { return };
        let _ = TempFile::write_cache(&run.remote_json(), &text);
    }
}

fn counts(commits: u64, uploads: u64) -> String {
    let of = |count: u64, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    match (commits, uploads) {
        (0, uploads) => of(uploads, "upload", "uploads"),
        (commits, 0) => of(commits, "commit", "commits"),
        (commits, uploads) => {
            format!("{}, {}", of(commits, "commit", "commits"), of(uploads, "upload", "uploads"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what is said in each state, the gravest first, and that it survives being written down.
    #[test]
    fn every_state_has_its_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunLayout::new(folder.path());
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
        status.let_go = 3;
        assert!(status.told_of_let_go().unwrap().ends_with("; 3 older ones were deleted"));
        status.write(&run);
        assert_eq!(RemoteStatus::read(&run), Some(status));
    }
}
