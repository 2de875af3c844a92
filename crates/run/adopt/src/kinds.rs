//! What a file of a checkpoint holds, by what frameworks call it.

use std::collections::BTreeSet;

use trackway_formats::checkpoint_manifest::Kind;
use trackway_layouts::Component;

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

/// Of a checkpoint that is one file (its path below itself is empty) by the components that were seen in it; of the files of a folder
/// by their names.
pub(crate) fn kind_of(path: &str, components: &BTreeSet<Component>) -> Kind {
    if path.is_empty() {
        let is_weights = components.iter().all(|it| *it == Component::Weights) && !components.is_empty();
        return if is_weights { Kind::Weights } else { Kind::State };
    }
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let by_name = NAMES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, kind)| *kind);
    by_name.unwrap_or_else(|| match SHARDS.iter().any(|end| name.ends_with(end)) {
        true => Kind::State,
        false => Kind::Other,
    })
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
            ("__0_0.distcp", &both, Kind::State),
            ("global_step10/mp_rank_00_model_states.pt", &both, Kind::State),
            ("", &both, Kind::State),
            ("", &weights, Kind::Weights),
        ] {
            assert_eq!(kind_of(path, components), kind, "{path}");
        }
        assert_eq!(kind_of("", &BTreeSet::new()), Kind::State, "what is in it is not known");
    }
}
