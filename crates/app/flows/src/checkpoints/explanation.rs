//! One checkpoint, explained in sentences.

use std::collections::{BTreeMap, BTreeSet};

use trackway_api::checkpoints::{CheckpointExplanation, CheckpointKind, CheckpointPlace};
use trackway_checkpoint::{CheckpointInfo, CheckpointState, CheckpointView, Kind, Manifest, PinInfo};
use trackway_core::Step;
use trackway_core::text::{bytes, first_few};
use trackway_engine::error::AppError;

use super::policy::in_words;
use super::remote_view::{PlacedCheckpoint, Remote};
use super::retention::pinned;
use super::{Checkpoints, Which};

/// Most metrics that are named in the sentences; the JSON has all.
const METRICS_MAX: usize = 8;
/// Most steps of the way to a checkpoint that are named.
const WAY_MAX: usize = 8;

impl Checkpoints {
    /// Reports which attempt wrote a checkpoint, from what, what it holds, where it is, and whether a resume takes it.
    /// Its manifest is checked; its files are not read.
    ///
    /// # Errors
    /// [`trackway_engine::error::ErrorKind::NotFound`] when there is no such checkpoint; when the log cannot be read.
    pub fn explain(&self, which: Which) -> Result<CheckpointExplanation, AppError> {
        let view = self.view()?;
        let remote = self.ask_remote();
        let all = self.placed(view.list(), &remote, false);
        let placed = self.choose(&all, which)?;
        let info = placed.info.clone();
        let manifest = match &remote {
            _ if info.state == CheckpointState::Retired => None,
            Remote::Answers(there) if !placed.here => Some(there.replica.manifest(&info.object_prefix)),
            _ => Some(view.manifest(info.number)),
        };
        let (manifest, manifest_error) = match manifest.transpose() {
            Ok(manifest) => (manifest, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let infos = match &remote {
            Remote::Answers(there) if !placed.here => there.truth.checkpoints.clone(),
            _ => view.list(),
        };
        let chain: Vec<CheckpointInfo> =
            all.into_iter().map(|one| one.info).filter(|info| info.on_branch).collect();
        let writer =
            SentenceWriter { checkpoints: self, infos, chain, view: &view, placed: &placed, info: &info };
        let pins = match &remote {
            Remote::Answers(there) => there.replica.pins(),
            _ => view.pins(),
        };
        let pins: Vec<PinInfo> = pins.into_iter().filter(|pin| info.pins.contains(&pin.name)).collect();
        let kinds = manifest.as_ref().map(kinds).unwrap_or_default();
        let (retention, keeping) = writer.retention()?;
        let mut sentences = vec![writer.who(), writer.origin(), writer.resume()];
        sentences.extend(manifest.as_ref().map(|manifest| holds(manifest, &kinds)));
        sentences.extend(manifest.as_ref().and_then(incomplete));
        sentences
            .extend(manifest_error.as_ref().map(|error| format!("Its manifest cannot be used: {error}.")));
        sentences.extend(manifest.as_ref().and_then(measured));
        sentences.extend(manifest.as_ref().map(inputs));
        sentences.push(writer.copies());
        sentences.extend(pins.iter().map(held));
        sentences.extend(keeping);
        let manifest = manifest.as_ref();
        Ok(CheckpointExplanation {
            sentences,
            kinds,
            files: manifest.map(|manifest| manifest.files.clone()).unwrap_or_default(),
            metrics: manifest.map(metrics).unwrap_or_default(),
            config_sha256: manifest.and_then(|manifest| manifest.config_sha256.clone()),
            data_sha256: manifest.and_then(|manifest| manifest.data_sha256.clone()),
            world_size: manifest.map(|manifest| manifest.world_size),
            pins: pins.into_iter().map(|pin| pinned(pin, Some(info.step))).collect(),
            lineage_steps: writer.way(),
            retention,
            manifest_error,
            checkpoints: self.listing(&view, vec![placed.clone()], &remote)?.checkpoints,
        })
    }
}

struct SentenceWriter<'a> {
    checkpoints: &'a Checkpoints,
    view: &'a CheckpointView,
    /// The log that its number is of.
    infos: Vec<CheckpointInfo>,
    /// What a resume could reach, newest first.
    chain: Vec<CheckpointInfo>,
    placed: &'a PlacedCheckpoint,
    info: &'a CheckpointInfo,
}

impl SentenceWriter<'_> {
    fn who(&self) -> String {
        let CheckpointInfo { step, attempt_id, epoch, number, at, .. } = self.info;
        let known = self.checkpoints.attempts().iter().find(|attempt| attempt.attempt_id == *attempt_id);
        let attempt = known.map(|attempt| format!("attempt {} ({attempt_id})", attempt.attempt_number));
        let attempt = attempt.unwrap_or_else(|| attempt_id.to_string());
        let at = at.get(..19).unwrap_or(at).replace('T', " ");
        format!(
            "Step {step} was committed by {attempt}, epoch {epoch}, at {at} UTC, as entry {number} of the log."
        )
    }

    fn by_number(&self, number: u64) -> Option<&CheckpointInfo> {
        self.infos.iter().find(|info| info.number == number)
    }

    fn origin(&self) -> String {
        let Some(parent) = self.info.parent else {
            return "It was trained from the beginning.".into();
        };
        match self.by_number(parent) {
            Some(found) => {
                let way: Vec<String> = self.way().iter().map(u64::to_string).collect();
                let hidden = way.len().saturating_sub(WAY_MAX);
                let dots = if hidden > 0 { "… → " } else { "" };
                let way = way[hidden..].join(" → ");
                format!(
                    "It was trained on from step {} (entry {parent}); the way to it is {dots}{way}.",
                    found.step
                )
            }
            None => format!("It was trained on from entry {parent}, which cannot be read."),
        }
    }

    fn way(&self) -> Vec<Step> {
        let mut way = vec![self.info.step];
        let mut at = self.info;
        while let Some(parent) =
            at.parent.filter(|parent| *parent < at.number).and_then(|it| self.by_number(it))
        {
            way.push(parent.step);
            at = parent;
        }
        way.reverse();
        way
    }

    fn resume(&self) -> String {
        let newest = self.chain.first();
        let is_this = |info: &CheckpointInfo| info.object_prefix == self.info.object_prefix;
        let why = self.info.why.as_deref().unwrap_or("no reason is written down");
        match (self.info.state, newest) {
            (CheckpointState::Retired, _) => {
                "A resume cannot take it: its files were deleted by retention.".into()
            }
            (CheckpointState::Suspect, _) => format!("No resume uses it: it is suspect ({why})."),
            (CheckpointState::Unsafe, _) => format!("No resume uses it: it is unsafe ({why})."),
            (_, Some(newest)) if is_this(newest) => {
                format!(
                    "A resume uses it if every byte verifies (trackway checkpoint verify {}).",
                    self.checkpoints.subject
                )
            }
            (_, Some(newest)) if self.info.on_branch => {
                let between = self.chain.iter().take_while(|info| !is_this(info));
                let between: BTreeSet<Step> = between.map(|info| info.step).collect();
                let count = between.len();
                let them = if count == 1 {
                    "that one does not verify".into()
                } else {
                    format!("none of the {count} newer ones verifies")
                };
                format!(
                    "A resume uses step {} instead, which is newer; it uses this one if {them}.",
                    newest.step
                )
            }
            (_, Some(newest)) => format!(
                "No resume uses it: epoch {} continued from another checkpoint, and step {} is the newest of that lineage.",
                newest.epoch, newest.step
            ),
            (_, None) => "No resume uses it.".into(),
        }
    }

    fn copies(&self) -> String {
        let folder = &self.info.folder;
        let remote = self.info.uploaded_to.as_deref().unwrap_or("the remote");
        match self.placed.place() {
            CheckpointPlace::None => "There is no copy of it any more.".into(),
            CheckpointPlace::Remote => format!("Its bytes are at {remote} and not on this disk."),
            CheckpointPlace::LocalAndRemote => {
                format!("Its bytes are on this disk, in {folder}, and at {remote}.")
            }
            CheckpointPlace::Waiting => {
                format!("Its bytes are on this disk, in {folder}, and not at the remote yet.")
            }
            CheckpointPlace::Local => format!("Its bytes are on this disk only, in {folder}."),
        }
    }

    /// Why retention keeps it or lets it go, and the same as a sentence.
    fn retention(&self) -> Result<(Vec<String>, Option<String>), AppError> {
        let in_force = self.checkpoints.policy_in_force(self.view)?;
        let plan = self.view.retention(&in_force.policy, self.checkpoints.now(), None);
        if let Some(reasons) = plan.keep.get(&self.info.number) {
            let reasons: Vec<_> = reasons.iter().map(|reason| in_force.reason_in_words(reason)).collect();
            let sentence = format!("Retention keeps it: {}.", reasons.join(", "));
            return Ok((reasons, Some(sentence)));
        }
        let why = plan.retire.get(&self.info.number).map(|why| why.as_str().to_owned());
        let sentence =
            why.as_ref().map(|_| format!("Retention deletes it: it keeps {}.", in_words(&in_force.policy)));
        Ok((why.into_iter().collect(), sentence))
    }
}

/// Metrics that are not finite are null in JSON.
fn metrics(manifest: &Manifest) -> BTreeMap<String, Option<f64>> {
    let finite = |(name, value): (&String, &f64)| (name.clone(), Some(*value).filter(|it| it.is_finite()));
    manifest.metrics.iter().map(finite).collect()
}

fn held(pin: &PinInfo) -> String {
    let until = pin.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
    let why = if pin.why.is_empty() { String::new() } else { format!(": {}", pin.why) };
    format!("The pin `{}` holds it{until}{why}.", pin.name)
}

fn kinds(manifest: &Manifest) -> Vec<CheckpointKind> {
    let mut kinds: BTreeMap<Kind, CheckpointKind> = BTreeMap::new();
    for file in &manifest.files {
        let empty = || CheckpointKind { kind: file.kind, file_count: 0, size_bytes: 0, shared_bytes: 0 };
        let line = kinds.entry(file.kind).or_insert_with(empty);
        line.file_count += 1;
        line.size_bytes += file.size_bytes;
        line.shared_bytes += file.stored_in.as_ref().map_or(0, |_| file.size_bytes);
    }
    kinds.into_values().collect()
}

fn holds(manifest: &Manifest, kinds: &[CheckpointKind]) -> String {
    let parts: Vec<String> = kinds
        .iter()
        .map(|line| format!("{} {}", line.kind.as_str().replace('_', " "), bytes(line.size_bytes)))
        .collect();
    let shared: u64 = kinds.iter().map(|line| line.shared_bytes).sum();
    let count = match manifest.files.len() {
        1 => "1 file".into(),
        count => format!("{count} files"),
    };
    let shared = match shared {
        0 => "nothing shared with earlier checkpoints".into(),
        shared => format!("{} of it shared with earlier ones", bytes(shared)),
    };
    format!("It holds {count}, {}: {}; {shared}.", bytes(manifest.size_bytes()), parts.join(", "))
}

/// What a resume from it has to start over.
fn incomplete(manifest: &Manifest) -> Option<String> {
    let missing = manifest.missing();
    let names: Vec<String> = missing.iter().map(|kind| kind.as_str().replace('_', " ")).collect();
    let all = names.join(", ");
    (!names.is_empty())
        .then(|| format!("It is incomplete: it has weights without {all}, so a resume starts these over."))
}

fn measured(manifest: &Manifest) -> Option<String> {
    if manifest.metrics.is_empty() {
        return None;
    }
    let values = manifest.metrics.iter().map(|(name, value)| format!("{name} {value:.4}"));
    Some(format!("Its metrics are {}.", first_few(values, METRICS_MAX)))
}

fn inputs(manifest: &Manifest) -> String {
    let short = |hash: &Option<String>| match hash {
        Some(hash) => hash.get(..12).unwrap_or(hash).to_owned(),
        None => "not known".into(),
    };
    let processes = match manifest.world_size {
        1 => "1 process".into(),
        count => format!("{count} processes"),
    };
    format!(
        "Its config is {}, its data {}; {processes} trained it.",
        short(&manifest.config_sha256),
        short(&manifest.data_sha256)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a pin is named with its reason and its end where it has them.
    #[test]
    fn a_pin_is_a_sentence() {
        let said = |why: &str, until: Option<&str>| {
            held(&PinInfo {
                name: "best".into(),
                commit: 3,
                why: why.into(),
                until: until.map(str::to_owned),
                at: "2026-01-01T00:00:00Z".into(),
            })
        };
        assert_eq!(said("", None), "The pin `best` holds it.");
        let until = Some("2026-02-01T00:00:00Z");
        assert_eq!(said("a paper", until), "The pin `best` holds it until 2026-02-01T00:00:00Z: a paper.");
    }
}
