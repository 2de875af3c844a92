//! Checkpoints that are folders.

use std::collections::BTreeSet;

use crate::formats;
use crate::layout::{Component, Layout, LayoutConfidence, Recognised, Root, StepOrigin};
use crate::listing::{Entry, Listing};
use crate::marker::{
    self, DCP_METADATA, DEEPSPEED_TRACKER, KERAS_METADATA, LIGHTNING_METADATA, MEGATRON_TRACKER,
    ORBAX_COMMIT, ORBAX_METADATA, TRAINER_STATE,
};
use crate::names::{self, base, join, parent};
use crate::recognise::files;
use crate::source::{Source, small_text};

/// A folder of the listing, with what is directly in it.
struct Candidate<'a> {
    listing: &'a Listing,
    source: &'a dyn Source,
    path: &'a str,
    files: BTreeSet<&'a str>,
    folders: BTreeSet<&'a str>,
}

pub(super) fn recognise(listing: &Listing, source: &dyn Source, path: &str) -> Option<Recognised> {
    let mut candidate = Candidate { listing, source, path, files: BTreeSet::new(), folders: BTreeSet::new() };
    for file in listing.below(path) {
        let rest = if path.is_empty() { &file.path } else { &file.path[path.len() + 1..] };
        match rest.split_once('/') {
            Some((folder, _)) => candidate.folders.insert(folder),
            None => candidate.files.insert(rest),
        };
    }
    candidate.recognise()
}

impl<'a> Candidate<'a> {
    /// The first layout that fits; layouts that contain others come first.
    fn recognise(&self) -> Option<Recognised> {
        let layouts: [fn(&Self) -> Option<Recognised>; 8] = [
            Self::transformers,
            Self::lightning,
            Self::accelerate,
            Self::megatron,
            Self::deepspeed,
            Self::torch_dcp,
            Self::orbax,
            Self::keras,
        ];
        let mut found = layouts.iter().find_map(|layout| layout(self))?;
        found.step_from(names::step(self.name()), StepOrigin::Name);
        if found.data_epoch.is_none() {
            found.data_epoch = names::epoch(self.name());
        }
        Some(found)
    }

    fn name(&self) -> &'a str {
        base(self.path)
    }

    fn file(&self, name: &str) -> Option<&'a Entry> {
        self.listing.file(&join(self.path, name))
    }

    fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        self.files.iter().any(|name| matches(name))
    }

    fn certain(&self, layout: Layout) -> Recognised {
        Recognised::new(self.path, Root::Folder, layout, LayoutConfidence::Certain)
    }

    /// The file that completes it, whether or not it is there yet.
    fn marker(&self, name: &str) -> Option<String> {
        Some(join(self.path, name))
    }

    /// The tracker beside it.
    fn tracker(&self, name: &str) -> Option<String> {
        (!self.path.is_empty()).then(|| join(parent(self.path), name))
    }

    fn transformers(&self) -> Option<Recognised> {
        let numbered = names::number(self.name(), "checkpoint-");
        let state = self.file(TRAINER_STATE);
        let states = |name: &str| {
            matches!(name, "optimizer.pt" | "scheduler.pt" | "rng_state.pth" | "rng_state_0.pth")
        };
        let parts = self.any(|name| states(name) || marker::is_weights(name) || name == "training_args.bin");
        // What comes before the weights: a save that was only begun.
        let begun = self.any(|name| {
            matches!(
                name,
                "config.json" | "generation_config.json" | "adapter_config.json" | "tokenizer_config.json"
            )
        });
        if !(numbered.is_some() && (parts || begun || state.is_some()) || state.is_some() && self.any(states))
        {
            return None;
        }
        // Scripts with Accelerate also call their folders `checkpoint-N` (those of Diffusers do).
        if state.is_none() && (self.any(is_accelerate_states) || self.files.contains("optimizer.bin")) {
            return None;
        }
        let mut found = self.certain(Layout::TransformersTrainer);
        if let Some(file) = state {
            found.step_from(formats::json_integer(self.source, file, "global_step"), StepOrigin::Content);
            found.data_epoch = formats::json_whole_number(self.source, file, "epoch");
            found.has(Component::TrainerState);
        }
        found.step_from(numbered, StepOrigin::Name);
        self.components(
            &mut found,
            &[
                ("optimizer.pt", Component::Optimizer),
                ("optimizer.bin", Component::Optimizer),
                ("scheduler.pt", Component::Scheduler),
                ("scaler.pt", Component::Scaler),
                ("rng_state", Component::Rng),
            ],
        );
        let weights = self.listing.below(self.path).iter().any(|file| marker::is_weights(base(&file.path)));
        if weights || self.folders.contains("pytorch_model_fsdp_0") {
            found.has(Component::Weights);
        }
        if self.folders.iter().any(|name| name.starts_with("global_step")) {
            found.has(Component::Weights);
            found.has(Component::Optimizer);
        }
        if self.folders.contains("optimizer_0") {
            found.has(Component::Optimizer);
        }
        found.ranks = self.ranks(&["rng_state_"]);
        found.marker = self.marker(TRAINER_STATE);
        Some(found)
    }

    fn lightning(&self) -> Option<Recognised> {
        let sharded = self.files.contains(DCP_METADATA) || self.any(is_dcp_shard);
        let deepspeed = self
            .listing
            .below(&join(self.path, "checkpoint"))
            .iter()
            .any(|file| is_deepspeed(base(&file.path)));
        let named = self.name().ends_with(".ckpt");
        if !(sharded && (named || self.files.contains(LIGHTNING_METADATA)) || deepspeed && named) {
            return None;
        }
        let mut found = self.certain(Layout::Lightning);
        found.has(Component::Weights);
        if let Some(keys) =
            self.file(LIGHTNING_METADATA).and_then(|file| formats::pickle_keys(self.source, file))
        {
            files::from_keys(&mut found, &keys);
        }
        if deepspeed {
            found.has(Component::Optimizer);
            found.marker = self.marker(DEEPSPEED_TRACKER);
        } else {
            found.ranks = self.dcp_ranks();
            found.marker = self.marker(LIGHTNING_METADATA);
        }
        Some(found)
    }

    fn accelerate(&self) -> Option<Recognised> {
        let weights =
            |file: &Entry| file.path.ends_with(".safetensors") || base(&file.path) == "pytorch_model.bin";
        let weights = self.listing.below(self.path).iter().any(weights);
        if !(self.any(is_accelerate_states) || weights && self.files.contains("optimizer.bin")) {
            return None;
        }
        let mut found = self.certain(Layout::Accelerate);
        self.components(
            &mut found,
            &[
                ("optimizer", Component::Optimizer),
                ("scheduler", Component::Scheduler),
                ("sampler", Component::DataCursor),
                ("dl_state_dict", Component::DataCursor),
                ("scaler.pt", Component::Scaler),
                ("random_states_", Component::Rng),
            ],
        );
        found.step_from(names::number(self.name(), "checkpoint-"), StepOrigin::Name);
        if weights || self.folders.iter().any(|name| name.starts_with("pytorch_model")) {
            found.has(Component::Weights);
        }
        if self.folders.iter().any(|name| name.starts_with("optimizer_")) {
            found.has(Component::Optimizer);
        }
        found.ranks = self.ranks(&["random_states_"]);
        Some(found)
    }

    fn megatron(&self) -> Option<Recognised> {
        let iteration = names::number(self.name(), "iter_");
        let classic: Vec<&Entry> =
            self.listing.below(self.path).iter().filter(|file| is_megatron(&file.path)).collect();
        let distributed = self.files.contains("common.pt")
            && (self.files.contains("metadata.json") || self.files.contains(DCP_METADATA));
        if classic.is_empty() && !distributed || iteration.is_none() && self.name() != "release" {
            return None;
        }
        let mut found = self.certain(Layout::Megatron);
        found.has(Component::Weights);
        let state = classic.first().copied().or_else(|| self.file("common.pt"));
        if let Some(keys) = state.and_then(|file| formats::pickle_keys(self.source, file)) {
            files::from_keys(&mut found, &keys);
        }
        found.step_from(iteration, StepOrigin::Name);
        found.ranks = if distributed { self.dcp_ranks() } else { u32::try_from(classic.len()).ok() };
        found.marker = self.tracker(MEGATRON_TRACKER);
        Some(found)
    }

    fn deepspeed(&self) -> Option<Recognised> {
        if !self.any(is_deepspeed) {
            return None;
        }
        let mut found = self.certain(Layout::Deepspeed);
        if let Some(name) = self.files.iter().find(|name| name.ends_with("_model_states.pt")) {
            found.has(Component::Weights);
            if let Some(keys) = self.file(name).and_then(|file| formats::pickle_keys(self.source, file)) {
                files::from_keys(&mut found, &keys);
            }
        }
        if self.any(|name| name.ends_with("_optim_states.pt")) {
            found.has(Component::Optimizer);
        }
        let tracker = self.tracker(DEEPSPEED_TRACKER);
        let named = tracker.as_deref().and_then(|path| small_text(self.source, self.listing, path));
        if named.as_deref().map(str::trim) == Some(self.name()) {
            found.step_from(names::step(self.name()), StepOrigin::Tracker);
        }
        let optimizers = self.files.iter().filter(|name| name.ends_with("_optim_states.pt")).count();
        let models = self.files.iter().filter(|name| name.ends_with("_model_states.pt")).count();
        found.ranks = u32::try_from(optimizers.max(models)).ok();
        found.marker = tracker;
        Some(found)
    }

    fn torch_dcp(&self) -> Option<Recognised> {
        if !self.any(is_dcp_shard) && !self.files.contains(DCP_METADATA) {
            return None;
        }
        let mut found = self.certain(Layout::TorchDcp);
        if !self.any(is_dcp_shard) {
            found.confidence = LayoutConfidence::Guess;
        }
        found.has(Component::Weights);
        found.ranks = self.dcp_ranks();
        found.marker = self.marker(DCP_METADATA);
        Some(found)
    }

    fn orbax(&self) -> Option<Recognised> {
        let tree = |files: &BTreeSet<&str>| files.contains("manifest.ocdbt") || files.contains("_sharding");
        let step = self.files.contains(ORBAX_METADATA);
        let alone = self.files.contains("_METADATA") && tree(&self.files);
        if !(step || alone) {
            return None;
        }
        let mut found = self.certain(Layout::Orbax);
        let name = self.name();
        let trailing = name.rsplit('_').next().unwrap_or(name);
        found.step_from(trailing.parse().ok(), StepOrigin::Name);
        found.has(Component::Weights);
        let processes = self.listing.below(self.path).iter().filter_map(|file| {
            let at = file.path.find("ocdbt.process_")?;
            file.path[at..].split('/').next()
        });
        found.ranks = u32::try_from(processes.collect::<BTreeSet<_>>().len()).ok().filter(|ranks| *ranks > 0);
        found.marker = self.marker(ORBAX_COMMIT);
        Some(found)
    }

    fn keras(&self) -> Option<Recognised> {
        let backup = self.files.contains("latest.weights.h5");
        let model =
            ["config.json", "metadata.json", "model.weights.h5"].iter().all(|name| self.files.contains(name));
        if !(backup || model) {
            return None;
        }
        let mut found = self.certain(Layout::Keras);
        found.has(Component::Weights);
        if backup {
            found.data_epoch =
                self.file(KERAS_METADATA).and_then(|file| formats::json_integer(self.source, file, "epoch"));
            found.has(Component::TrainerState);
            found.marker = self.marker(KERAS_METADATA);
        }
        Some(found)
    }

    /// The components of the files whose names begin with these words.
    fn components(&self, found: &mut Recognised, of: &[(&str, Component)]) {
        for (begin, component) in of {
            if self.any(|name| name.starts_with(begin)) {
                found.has(*component);
            }
        }
    }

    /// The number of processes, by files that each writes.
    fn ranks(&self, beginnings: &[&str]) -> Option<u32> {
        let ranks = self
            .files
            .iter()
            .filter_map(|name| marker::rank_of(name))
            .filter(|(before, ..)| beginnings.contains(before));
        let highest = ranks.map(|(_, rank, _)| rank).max();
        highest.map_or(Some(1), |highest| highest.checked_add(1))
    }

    /// The number of processes that wrote shards of PyTorch DCP.
    fn dcp_ranks(&self) -> Option<u32> {
        let ranks: BTreeSet<&str> = self
            .files
            .iter()
            .filter(|name| is_dcp_shard(name))
            .filter_map(|name| name.split('_').nth(2))
            .collect();
        u32::try_from(ranks.len()).ok().filter(|ranks| *ranks > 0)
    }
}

/// `random_states_0.pkl`.
fn is_accelerate_states(name: &str) -> bool {
    name.starts_with("random_states_") && name.ends_with(".pkl")
}

/// `__0_0.distcp`.
fn is_dcp_shard(name: &str) -> bool {
    name.starts_with("__") && name.ends_with(".distcp")
}

/// `mp_rank_00_model_states.pt`, `zero_pp_rank_0_mp_rank_00_optim_states.pt`.
fn is_deepspeed(name: &str) -> bool {
    name.ends_with("_model_states.pt") || name.ends_with("_optim_states.pt")
}

/// `mp_rank_00/model_optim_rng.pt`, `mp_rank_00_001/model_optim_rng.pt`, `mp_rank_00/distrib_optim.pt`.
fn is_megatron(path: &str) -> bool {
    matches!(base(path), "model_optim_rng.pt" | "model_rng.pt") && base(parent(path)).starts_with("mp_rank_")
}
