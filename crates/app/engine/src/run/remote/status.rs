use trackway_api::checkpoints::remote::RemoteStatus;
use trackway_checkpoint::remote::RemoteLag;
use trackway_files::TempFile;
use trackway_formats::layout::RunLayout;
use trackway_redact::Redactor;

use crate::json_file::read_if_sound;

/// Takes over the counts of a replica.
pub(crate) fn update(status: &mut RemoteStatus, standing: &RemoteLag) {
    status.waiting_commits = standing.waiting_commits;
    status.waiting_step = standing.waiting_step;
    status.waiting_uploads = standing.waiting_uploads;
    status.uploaded_step = standing.uploaded_step;
    status.dropped_uploads = standing.dropped_uploads;
}

/// What the supervisor of a run recorded last; `None`: the run has no remote, or was never launched.
#[must_use]
pub fn read_status(run: &RunLayout) -> Option<RemoteStatus> {
    read_if_sound(&run.remote_json())
}

/// Records it as a whole, without secrets. A failure is not an error: the logs of the checkpoints have everything.
pub(crate) fn write_status(status: &RemoteStatus, run: &RunLayout) {
    let Ok(mut document) = serde_json::to_value(status) else { return };
    // A store says in its errors what it was asked with.
    Redactor::of_this_process().json(&mut document);
    let _ = TempFile::write_cache(&run.remote_json(), document.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the state survives being recorded.
    #[test]
    fn the_state_survives_being_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunLayout::new(folder.path());
        let mut status = RemoteStatus { location: "s3://b/r".into(), ..RemoteStatus::default() };
        status.dropped_uploads = 3;
        write_status(&status, &run);
        assert_eq!(read_status(&run), Some(status));
    }
}
