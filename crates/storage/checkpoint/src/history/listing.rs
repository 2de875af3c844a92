use std::collections::{BTreeMap, BTreeSet};

use trackway_core::with_fields_of;

use super::{BeginRecord, CheckpointInfo, CheckpointState, CommitRecord, History, PinInfo};

impl History {
    /// Every checkpoint, in the order of the log.
    pub fn checkpoints(&self) -> Vec<CheckpointInfo> {
        let chain = self.live_chain();
        let branch: BTreeSet<u64> = chain.iter().copied().collect();
        let newest = chain.first().copied();
        let committed = self.commits().map(|(number, record)| CheckpointInfo {
            pins: self.pins_on(number),
            on_branch: branch.contains(&number),
            ..committed_info(number, record, newest == Some(number))
        });
        let begun = self.begun().map(|(number, record)| self.begun_info(number, record));
        let mut all: Vec<_> = committed.chain(begun).collect();
        all.sort_by_key(|info| info.number);
        all
    }

    /// Every pin, by name.
    pub fn pin_list(&self) -> Vec<PinInfo> {
        let info = |pin: &super::PinRecord| PinInfo {
            name: pin.body.name.clone(),
            commit: pin.body.commit,
            why: pin.body.why.clone(),
            until: pin.body.until.clone(),
            at: pin.at.clone(),
        };
        self.pins().map(info).collect()
    }

    fn pins_on(&self, number: u64) -> Vec<String> {
        self.pins().filter(|pin| pin.body.commit == number).map(|pin| pin.body.name.clone()).collect()
    }

    fn begun_info(&self, number: u64, record: &BeginRecord) -> CheckpointInfo {
        let begin = &record.body;
        let state = match self.is_abandoned(record) {
            _ if record.swept => CheckpointState::Retired,
            true => CheckpointState::Abandoned,
            false => CheckpointState::Writing,
        };
        CheckpointInfo {
            number,
            run_id: begin.run_id,
            attempt_id: begin.attempt_id,
            step: begin.step,
            epoch: begin.epoch,
            object_prefix: begin.object_prefix.clone(),
            folder: begin.object_prefix.clone(),
            manifest_sha256: None,
            state,
            size_bytes: None,
            state_digest: None,
            parent: None,
            at: record.at.clone(),
            why: record.abandoned.clone(),
            unsafe_evidence: None,
            cleared: None,
            on_branch: false,
            uploaded_to: None,
            uploaded_at: None,
            pins: Vec::new(),
            number_there: None,
            metrics: BTreeMap::new(),
            same_weights: false,
        }
    }
}

fn committed_info(number: u64, record: &CommitRecord, newest: bool) -> CheckpointInfo {
    let state = match record.state() {
        CheckpointState::Superseded if newest => CheckpointState::Committed,
        state => state,
    };
    let body = &record.body;
    with_fields_of!(
        CheckpointInfo,
        &body,
        [run_id, attempt_id, step, epoch, object_prefix, parent, metrics, same_weights],
        number,
        folder: record.folder().to_owned(),
        manifest_sha256: Some(body.manifest_sha256.clone()),
        state,
        size_bytes: Some(body.size_bytes),
        state_digest: Some(body.state_digest.clone()),
        at: record.at.clone(),
        why: record.suspect.clone().or_else(|| record.unsafe_because().map(str::to_owned)),
        unsafe_evidence: record.unsafe_evidence.clone(),
        cleared: record.cleared.clone(),
        on_branch: false,
        uploaded_to: record.uploaded_to.clone(),
        uploaded_at: record.uploaded_at.clone(),
        pins: Vec::new(),
        number_there: record.number_there,
    )
}
