//! What a file of a checkpoint holds, by what frameworks call it.

use std::collections::BTreeSet;

use trackway_formats::checkpoint_manifest::{Kind, describes_a_model};
use trackway_layouts::{Component, Part, Recognised};

use super::parts::part_of;

/// Beginnings of file names (after their folder) and what such a file holds.
const NAMES: [(&str, Kind); 14] = [
    ("optimizer", Kind::Optimizer),
    ("optim", Kind::Optimizer),
    ("scheduler", Kind::Scheduler),
    ("lr_scheduler", Kind::Scheduler),
    ("scaler", Kind::Scaler),
    ("rng_state", Kind::Rng),
    ("random_states", Kind::Rng),
    ("sampler", Kind::DataCursor),
    ("dataloader", Kind::DataCursor),
    ("dl_state_dict", Kind::DataCursor),
    ("trainer_state", Kind::DataCursor),
    ("model", Kind::Weights),
    ("pytorch_model", Kind::Weights),
    ("adapter_model", Kind::Weights),
];

/// Ends of the names of files that may hold any part of a state.
const SHARDS: [&str; 7] = [".distcp", ".pt", ".pth", ".bin", ".ckpt", ".h5", ".msgpack"];

/// Of a checkpoint that is one file (its path below itself is empty) by the components that were seen in it, and by its own name where that
/// says that it is not the model; of the files of a folder by their names.
pub(crate) fn kind_of(path: &str, own_name: &str, components: &BTreeSet<Component>) -> Kind {
    let name =
        path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(own_name).to_ascii_lowercase();
    let by_name = match describes_a_model(&name) {
        true => None,
        false => NAMES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, kind)| *kind),
    };
    if path.is_empty() {
        let has_weights = components.contains(&Component::Weights);
        return match by_name.filter(|kind| *kind != Kind::Weights && !has_weights) {
            Some(kind) => kind,
            None if has_weights && components.len() == 1 => Kind::Weights,
            None => Kind::State,
        };
    }
    by_name.unwrap_or_else(|| match SHARDS.iter().any(|end| name.ends_with(end)) {
        true => Kind::State,
        false => Kind::Other,
    })
}

/// Of a file of a state in several files by the part that its name says.
pub(crate) fn kind_of_part(part: &Recognised) -> Kind {
    match part_of(part) {
        Part::Model | Part::Average => Kind::Weights,
        Part::Optimizer => Kind::Optimizer,
        Part::Scheduler => Kind::Scheduler,
        Part::Scaler => Kind::Scaler,
        Part::Rng => Kind::Rng,
        Part::DataCursor => Kind::DataCursor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that files of the usual frameworks are what their names say, that shards may hold anything, and that a single file is
    /// weights only where nothing else was seen in it.
    #[test]
    fn files_are_what_their_names_say() {
        let weights = [Component::Weights].into();
        let both = [Component::Weights, Component::Optimizer].into();
        for (path, components, kind) in [
            ("model.safetensors", &both, Kind::Weights),
            ("optimizer.pt", &both, Kind::Optimizer),
            ("rng_state_1.pth", &both, Kind::Rng),
            ("random_states_0.pkl", &both, Kind::Rng),
            ("trainer_state.json", &both, Kind::DataCursor),
            ("tokenizer.json", &both, Kind::Other),
            ("model_config.json", &both, Kind::Other),
            ("model.json", &both, Kind::Weights),
            ("__0_0.distcp", &both, Kind::State),
            ("global_step10/mp_rank_00_model_states.pt", &both, Kind::State),
            ("", &both, Kind::State),
            ("", &weights, Kind::Weights),
        ] {
            assert_eq!(kind_of(path, "ckpt.pt", components), kind, "{path}");
        }
        assert_eq!(kind_of("", "ckpt.pt", &BTreeSet::new()), Kind::State, "what is in it is not known");
        let optimizer = [Component::Optimizer].into();
        assert_eq!(kind_of("", "optimizer-20.pt", &optimizer), Kind::Optimizer);
        assert_eq!(kind_of("", "optimizer-20.pt", &both), Kind::State, "weights were seen in it");
        assert_eq!(kind_of("", "model-20.pt", &optimizer), Kind::State);
    }
}
