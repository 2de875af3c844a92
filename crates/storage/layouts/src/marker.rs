//! The files that frameworks write last, and the parts that other files name: what proves that a save was finished.

use std::collections::{BTreeMap, BTreeSet};

use crate::formats::{self, Value};
use crate::layout::{Component, Layout, Recognised, Root};
use crate::listing::{Entry, Listing};
use crate::names::{self, base, join, parent};
use crate::source::{Source, small_text};

/// What the framework's last file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    /// It is there and agrees: its path.
    Agrees(String),
    /// Something is missing, or the last file is of an earlier save.
    Missing(String),
    /// The layout has none, or none that is visible from here.
    None,
}

pub(crate) const TRAINER_STATE: &str = "trainer_state.json";
pub(crate) const DCP_METADATA: &str = ".metadata";
pub(crate) const LIGHTNING_METADATA: &str = "meta.pt";
pub(crate) const ORBAX_COMMIT: &str = "commit_success.txt";
pub(crate) const ORBAX_METADATA: &str = "_CHECKPOINT_METADATA";
pub(crate) const KERAS_METADATA: &str = "training_metadata.json";
/// Names the newest checkpoint of DeepSpeed, beside it.
pub const DEEPSPEED_TRACKER: &str = "latest";
/// Has the number of the newest iteration of Megatron, beside its folder.
pub const MEGATRON_TRACKER: &str = "latest_checkpointed_iteration.txt";

/// What the Trainer writes before its state; its callbacks may add other files afterwards.
const BEFORE_TRAINER_STATE: [&str; 6] =
    ["optimizer.pt", "scheduler.pt", "scaler.pt", "training_args.bin", "config.json", "rng_state.pth"];

/// What the last file of a checkpoint says.
pub(crate) fn marker(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Marker {
    if let Some(what) = missing_part(listing, source, checkpoint) {
        return Marker::Missing(what);
    }
    let own = |name: &str| listing.file(&join(&checkpoint.path, name));
    match (checkpoint.layout, checkpoint.root) {
        (Layout::TransformersTrainer, _) => trainer(listing, source, checkpoint),
        (Layout::Accelerate, _) => accelerate(listing, checkpoint),
        (Layout::Lightning, Root::Folder) if own(DCP_METADATA).is_some() => {
            written_last(listing, checkpoint, LIGHTNING_METADATA, &|name| name.ends_with(".distcp"))
        }
        (Layout::TorchDcp, _) => {
            written_last(listing, checkpoint, DCP_METADATA, &|name| name.ends_with(".distcp"))
        }
        (Layout::Keras, Root::Folder) if own("latest.weights.h5").is_some() => {
            written_last(listing, checkpoint, KERAS_METADATA, &|name| name == "latest.weights.h5")
        }
        (Layout::Orbax, _) => orbax(listing, source, checkpoint),
        (Layout::Deepspeed, _) => tracked(listing, source, checkpoint, DEEPSPEED_TRACKER),
        (Layout::Megatron, _) => tracked(listing, source, checkpoint, MEGATRON_TRACKER),
        (Layout::Lightning, Root::Folder) => lightning_deepspeed(listing, source, checkpoint),
        _ => Marker::None,
    }
}

/// A last file that is there, and not older than the files that are written before it.
fn written_last(
    listing: &Listing,
    checkpoint: &Recognised,
    marker: &str,
    before: &dyn Fn(&str) -> bool,
) -> Marker {
    let path = join(&checkpoint.path, marker);
    let Some(last) = listing.file(&path) else {
        return Marker::Missing(format!("`{marker}` is missing, which is written last"));
    };
    let newer = listing.below(&checkpoint.path).iter().find(|file| {
        file.modified_ns > last.modified_ns
            && parent(&file.path) == checkpoint.path
            && file.path != path
            && before(base(&file.path))
    });
    if marker != DCP_METADATA
        && marker != KERAS_METADATA
        && let Some(what) = removed_after(listing, checkpoint, last)
    {
        return Marker::Missing(what);
    }
    match newer {
        Some(file) => Marker::Missing(format!(
            "`{marker}` is older than `{}`: it was saved again and not finished, or copied without its times",
            base(&file.path)
        )),
        None => Marker::Agrees(path),
    }
}

fn trainer(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Marker {
    let marker = written_last(listing, checkpoint, TRAINER_STATE, &|name| {
        BEFORE_TRAINER_STATE.contains(&name) || is_weights(name)
    });
    let Marker::Agrees(path) = marker else { return marker };
    if let Some(what) = missing_of_trainer(checkpoint) {
        return Marker::Missing(what.to_owned());
    }
    let said = listing.file(&path).and_then(|file| formats::json_integer(source, file, "global_step"));
    let named = names::number(base(&checkpoint.path), "checkpoint-");
    match (said, named) {
        (None, _) => Marker::Missing(format!("`{TRAINER_STATE}` says no step")),
        (Some(said), Some(named)) if said != named => {
            Marker::Missing(format!("`{TRAINER_STATE}` is of step {said}, the folder of step {named}"))
        }
        // The first process does not wait for the others, which may still write their states of random numbers.
        _ if listing.file(&join(&checkpoint.path, "rng_state_0.pth")).is_some() => Marker::None,
        _ => Marker::Agrees(path),
    }
}

/// What the Trainer cannot have left out: it writes the states of optimizer and random numbers together or not at all.
fn missing_of_trainer(checkpoint: &Recognised) -> Option<&'static str> {
    let has = |component| checkpoint.components.contains(&component);
    match (has(Component::Weights), has(Component::Optimizer), has(Component::Rng)) {
        (false, ..) => Some("its weights are missing"),
        (true, false, true) => Some("the state of its optimizer is missing"),
        (true, true, false) => Some("its states of random numbers are missing"),
        _ => None,
    }
}

fn accelerate(listing: &Listing, checkpoint: &Recognised) -> Marker {
    let Some(states) = listing.file(&join(&checkpoint.path, "random_states_0.pkl")) else {
        return Marker::Missing(
            "`random_states_0.pkl` is missing, which Accelerate writes after the states".to_owned(),
        );
    };
    removed_after(listing, checkpoint, states).map_or(Marker::None, Marker::Missing)
}

/// Whether entries of a folder were removed or renamed after its newest file and after this last one were written: a
/// rotation that did not finish leaves the last file and not the others. Only for layouts that rename nothing later.
fn removed_after(listing: &Listing, checkpoint: &Recognised, last: &Entry) -> Option<String> {
    listing.folders_below(&checkpoint.path).find_map(|(folder, changed_ns)| {
        let of_files = listing.below(folder).iter().map(|file| file.modified_ns);
        let newest = of_files.max().unwrap_or(i64::MIN).max(last.modified_ns);
        (changed_ns > newest).then(|| {
            format!("files of `{}` were removed after `{}` was written", base(folder), base(&last.path))
        })
    })
}

/// Whether a name is one that Transformers gives to weights.
pub(crate) fn is_weights(name: &str) -> bool {
    let stem =
        name.starts_with("model") || name.starts_with("pytorch_model") || name.starts_with("adapter_model");
    stem && (name.ends_with(".safetensors") || name.ends_with(".bin"))
}

fn orbax(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Marker {
    let commit = join(&checkpoint.path, ORBAX_COMMIT);
    if let Some(file) = listing.file(&commit) {
        return removed_after(listing, checkpoint, file).map_or(Marker::Agrees(commit), Marker::Missing);
    }
    let metadata = join(&checkpoint.path, ORBAX_METADATA);
    let Some(file) = listing.file(&metadata) else {
        return Marker::Missing(format!("neither `{ORBAX_COMMIT}` nor `{ORBAX_METADATA}` is there"));
    };
    match formats::json_integer(source, file, "commit_timestamp_nsecs") {
        Some(_) => Marker::Agrees(metadata),
        None => Marker::Missing(format!("`{ORBAX_METADATA}` says no time of its commit")),
    }
}

/// A tracker beside the checkpoint, which is written when all processes have finished.
fn tracked(listing: &Listing, source: &dyn Source, checkpoint: &Recognised, tracker: &str) -> Marker {
    if checkpoint.path.is_empty() {
        return Marker::None;
    }
    let path = join(parent(&checkpoint.path), tracker);
    let own = base(&checkpoint.path);
    let Some(file) = listing.file(&path) else {
        return Marker::Missing(format!(
            "no `{tracker}` is beside it, which is written when all processes have finished"
        ));
    };
    let text = small_text(source, listing, &path).unwrap_or_default();
    let named = text.trim();
    let newest = listing.below(&checkpoint.path).iter().map(|file| file.modified_ns).max();
    let is_newer = newest.is_none_or(|newest| file.modified_ns >= newest);
    let step_of = |text: &str| names::step(text).or_else(|| text.parse().ok());
    let names_it = named == own || step_of(named).is_some() && step_of(named) == step_of(own);
    match (names_it, is_newer) {
        (true, true) => {
            removed_after(listing, checkpoint, file).map_or(Marker::Agrees(path), Marker::Missing)
        }
        (_, false) => Marker::Missing(format!("`{tracker}` is older than its files: it is not finished")),
        // It was finished, and a newer one after it.
        (false, true) if step_of(named) > step_of(own) => Marker::None,
        (false, true) => Marker::Missing(format!("`{tracker}` names `{named}`, not this one")),
    }
}

/// DeepSpeed within Lightning: the folder has the tracker in it.
fn lightning_deepspeed(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Marker {
    let mut inner = checkpoint.clone();
    inner.path = join(&checkpoint.path, "checkpoint");
    tracked(listing, source, &inner, DEEPSPEED_TRACKER)
}

/// A part that another file or the names of its neighbours say must be there.
fn missing_part(listing: &Listing, source: &dyn Source, checkpoint: &Recognised) -> Option<String> {
    if checkpoint.root == Root::File {
        return None;
    }
    let files = listing.below(&checkpoint.path);
    missing_of_count(listing, files).or_else(|| missing_rank(files)).or_else(|| {
        files.iter().find_map(|file| match base(&file.path) {
            DCP_METADATA => missing_piece(listing, source, file),
            name if name.ends_with(".index.json") => missing_shard(listing, source, file),
            _ => None,
        })
    })
}

/// A neighbour of `model-00001-of-00003.safetensors` that is missing.
fn missing_of_count(listing: &Listing, files: &[Entry]) -> Option<String> {
    let series: BTreeSet<_> = files.iter().filter_map(|file| Series::of(&file.path)).collect();
    series.iter().find_map(|series| {
        let names = (1..=series.count).map(|at| series.name(at));
        let mut missing = names.filter(|name| listing.file(&join(series.folder, name)).is_none());
        missing.next().map(|name| format!("`{name}` is missing"))
    })
}

/// What the names of a series of files have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Series<'a> {
    folder: &'a str,
    stem: &'a str,
    count: u32,
    digits: usize,
    ending: &'a str,
}

impl<'a> Series<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let (before, after) = base(path).split_once("-of-")?;
        let (stem, number) = before.rsplit_once('-')?;
        let (count, ending) = after.split_at(after.find(|character: char| !character.is_ascii_digit())?);
        let (count, digits) = (count.parse().ok()?, count.len());
        let right = number.len() == digits && number.parse::<u32>().is_ok();
        right.then_some(Self { folder: parent(path), stem, count, digits, ending })
    }

    fn name(&self, at: u32) -> String {
        let Self { stem, count, digits, ending, .. } = self;
        format!("{stem}-{at:0digits$}-of-{count:0digits$}{ending}", digits = *digits)
    }
}

/// A process whose file is missing, though those of a higher number are there.
fn missing_rank(files: &[Entry]) -> Option<String> {
    let mut found: BTreeMap<(String, String, &str), BTreeSet<u32>> = BTreeMap::new();
    for file in files {
        if let Some((before, rank, after)) = rank_of(base(&file.path)) {
            found.entry((parent(&file.path).to_owned(), before.to_owned(), after)).or_default().insert(rank);
        }
    }
    found.into_iter().find_map(|((_, before, after), ranks)| {
        let highest = ranks.last().copied()?;
        let missing = (0..=highest).find(|rank| !ranks.contains(rank))?;
        Some(format!("`{before}{missing}{after}` is missing"))
    })
}

/// The parts of a name around the number of the process that wrote it.
pub(crate) fn rank_of(name: &str) -> Option<(&str, u32, &str)> {
    for (before, after) in [("rng_state_", ".pth"), ("random_states_", ".pkl"), ("zero_pp_rank_", "")] {
        let at = name.find(before).map_or(name.len(), |at| at + before.len());
        let rest = &name[at..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0
            && rest[digits..].ends_with(after)
            && (!after.is_empty() && rest.len() == digits + after.len() || after.is_empty())
        {
            return Some((&name[..at], rest[..digits].parse().ok()?, &rest[digits..]));
        }
    }
    None
}

/// A file that the metadata of PyTorch DCP names and that is missing or too short.
fn missing_piece(listing: &Listing, source: &dyn Source, metadata: &Entry) -> Option<String> {
    let pieces = formats::dcp_pieces(source, metadata)?;
    pieces.into_iter().find_map(|(name, end)| {
        match (listing.file(&join(parent(&metadata.path), &name)), end) {
            (None, _) => Some(format!("`{name}` is missing, which `{DCP_METADATA}` names")),
            (Some(file), Some(end)) if file.size < end => {
                Some(format!("`{name}` has {} bytes of the {end} that `{DCP_METADATA}` names", file.size))
            }
            _ => None,
        }
    })
}

/// A file of weights that the index names and that is missing.
fn missing_shard(listing: &Listing, source: &dyn Source, index: &Entry) -> Option<String> {
    let mut missing = None;
    formats::json_values(source, index, &mut |keys, value| {
        if let ([section, _], Value::Text(name)) = (keys, value)
            && section == "weight_map"
            && missing.is_none()
            && listing.file(&join(parent(&index.path), &name)).is_none()
        {
            missing = Some(format!("`{name}` is missing, which `{}` names", base(&index.path)));
        }
    });
    missing
}
