//! Checkpoints that are one file.

use crate::formats::{self, Format, Keys};
use crate::layout::{Component, Layout, LayoutConfidence, Recognised, Root, StepOrigin};
use crate::limits::{BLOCK_BYTES, HEAD_BYTES};
use crate::listing::Entry;
use crate::names::{self, base};
use crate::parts::{Part, PartName};
use crate::source::{Source, head};

/// Names at the top of a state, and the component that each is. Compared in lower case.
const COMPONENTS: [(Component, &[&str]); 7] = [
    (
        Component::Weights,
        &[
            "state_dict", "model", "model_state_dict", "model_state", "module", "net", "network", "weights",
            "params", "ema", "generator", "encoder", "decoder", "teacher", "student",
        ],
    ),
    (
        Component::Optimizer,
        &[
            "optimizer", "optimizer_state_dict", "optimizer_states", "optimizer_state", "optimizers",
            "optim", "opt", "opt_state", "param_groups",
        ],
    ),
    (
        Component::Scheduler,
        &[
            "scheduler",
            "lr_scheduler",
            "lr_schedulers",
            "scheduler_state_dict",
            "lr_scheduler_state_dict",
            "opt_param_scheduler",
            "client_lr_scheduler",
            "scheduler_state",
        ],
    ),
    (
        Component::Rng,
        &[
            "rng_state", "rng_states", "rng", "torch_rng_state", "random_rng_state", "cuda_rng_state",
            "np_rng_state", "rng_tracker_states",
        ],
    ),
    (Component::Scaler, &["scaler", "grad_scaler", "scaler_state_dict", "mixedprecision", "amp"]),
    (
        Component::DataCursor,
        &["sampler", "dataloader", "train_dataloader", "dataloader_state_dict", "data_state", "data_sampler"],
    ),
    (
        Component::TrainerState,
        &["loops", "callbacks", "trainer_state", "best_val_loss", "args", "consumed_train_samples"],
    ),
];
/// Names of an optimizer step, the surest first.
const STEP_KEYS: [&str; 10] = [
    "global_step", "global_steps", "step", "steps", "iteration", "iter_num", "iter", "num_updates",
    "total_steps", "n_iter",
];
/// Extensions of files that can be checkpoints, and of the texts and models among which boosters hide.
const EXTENSIONS: [&str; 22] = [
    "pt", "pth", "ckpt", "tar", "bin", "optim", "opt", "safetensors", "keras", "h5", "hdf5", "msgpack",
    "flax", "npz", "ubj", "json", "txt", "model", "lgb", "cbm", "cbsnapshot", "bkp",
];
const LIGHTNING_KEY: &str = "pytorch-lightning_version";
/// Files of the Trainer that hold settings, never a state.
const SETTINGS: [&str; 1] = ["training_args.bin"];

/// Whether a file with this name is opened at all: folders of data may have hundreds of thousands of others.
fn is_looked_at(name: &str, extension: &str) -> bool {
    EXTENSIONS.contains(&extension)
        || formats::is_pickle_name(name)
        || formats::is_flax_name(name)
        || name.contains(".snapshot_iter_")
}

/// Takes step, epoch and components from the names at the top of a state.
pub(super) fn from_keys(found: &mut Recognised, keys: &Keys) {
    let number = |key: &str| keys.get(key).copied().flatten().and_then(|value| u64::try_from(value).ok());
    found.step_from(STEP_KEYS.iter().find_map(|key| number(key)), StepOrigin::Content);
    found.data_epoch = found.data_epoch.or_else(|| number("epoch"));
    if found.step.is_some() && found.step_origin == Some(StepOrigin::Content) || number("epoch").is_some() {
        found.has(Component::TrainerState);
    }
    for key in keys.keys().map(|key| key.to_lowercase()) {
        for (component, names) in &COMPONENTS {
            if names.contains(&key.as_str()) {
                found.has(*component);
            }
        }
        if key.ends_with(".weight") || key.ends_with(".bias") {
            found.has(Component::Weights);
        }
    }
}

pub(super) fn recognise(source: &dyn Source, file: &Entry) -> Option<Recognised> {
    let name = base(&file.path);
    if names::temporary(name).is_some() || SETTINGS.contains(&name) {
        return None;
    }
    let lower = name.to_lowercase();
    let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !is_looked_at(&lower, extension) {
        return None;
    }
    let mut found = match (formats::format_of(source, file), extension) {
        (_, "keras") => keras(source, file),
        (Some(Format::CatboostSnapshot), _) | (_, "cbsnapshot") => catboost_snapshot(source, file),
        (Some(Format::Catboost), _) | (_, "cbm") => new(file, Layout::Catboost, LayoutConfidence::Certain),
        (Some(Format::Lightgbm), _) => lightgbm(source, file),
        (_, "npz") => numpy(file),
        (Some(Format::Hdf5), _) | (_, "h5" | "hdf5") => hdf5(source, file),
        (_, "safetensors") => safetensors(source, file),
        (Some(Format::Msgpack), _) => msgpack(source, file),
        (Some(Format::Ubjson), _) => xgboost(source, file),
        (Some(Format::Json), _) => json(source, file)?,
        (_, "pt" | "pth" | "ckpt" | "tar") | (Some(Format::LegacyTorch), _) => torch(source, file, extension),
        (Some(Format::Zip), "bin" | "pkl" | "optim" | "opt" | "") => torch(source, file, extension),
        _ if formats::is_pickle_name(&lower) => joblib(source, file),
        _ => return None,
    };
    found.step_from(names::step(name), StepOrigin::Name);
    found.data_epoch = found.data_epoch.or_else(|| names::epoch(name));
    if found.confidence == LayoutConfidence::Guess
        && found.layout != Layout::Numpy
        && (names::says_checkpoint(name) || is_optimizer(name, &found))
    {
        found.confidence = LayoutConfidence::Likely;
    }
    Some(found)
}

/// Whether name and content agree that it is the state of an optimizer.
fn is_optimizer(name: &str, found: &Recognised) -> bool {
    let part = PartName::of(name).map(|name| name.part);
    part == Some(Part::Optimizer) && found.components.contains(&Component::Optimizer)
}

fn new(file: &Entry, layout: Layout, confidence: LayoutConfidence) -> Recognised {
    let mut found = Recognised::new(&file.path, Root::File, layout, confidence);
    found.has(Component::Weights);
    found
}

fn torch(source: &dyn Source, file: &Entry, extension: &str) -> Recognised {
    let mut found = Recognised::new(&file.path, Root::File, Layout::TorchFile, LayoutConfidence::Guess);
    let name = base(&file.path);
    match formats::pickle_keys(source, file) {
        Some(keys) => {
            from_keys(&mut found, &keys);
            // The parameters of a single layer.
            if keys.contains_key("weight") && keys.keys().all(|key| key == "weight" || key == "bias") {
                found.has(Component::Weights);
            }
            if keys.contains_key(LIGHTNING_KEY) {
                found.layout = Layout::Lightning;
            }
            let a_training = found.components.len() > 1 || found.components.contains(&Component::Optimizer);
            if a_training || found.layout == Layout::Lightning {
                found.confidence = LayoutConfidence::Certain;
            }
        }
        // Torn, so only the name is left: Lightning names its files by epoch and step.
        None if extension == "ckpt" && name.contains("epoch=") => found.layout = Layout::Lightning,
        None => {}
    }
    if extension == "ckpt" && found.confidence == LayoutConfidence::Guess {
        found.confidence = LayoutConfidence::Likely;
    }
    found
}

fn joblib(source: &dyn Source, file: &Entry) -> Recognised {
    let head = head(source, file, BLOCK_BYTES);
    let is_model = ["sklearn.", "xgboost.", "lightgbm.", "catboost."]
        .iter()
        .any(|module| contains(&head, module.as_bytes()));
    let confidence = if is_model { LayoutConfidence::Likely } else { LayoutConfidence::Guess };
    let mut found = Recognised::new(&file.path, Root::File, Layout::Joblib, confidence);
    if let Some(keys) = formats::pickle_keys(source, file) {
        from_keys(&mut found, &keys);
    }
    if is_model {
        found.has(Component::Weights);
    }
    found
}

fn keras(source: &dyn Source, file: &Entry) -> Recognised {
    let names = formats::archive_names(source, file).unwrap_or_default();
    let own =
        names.iter().any(|name| name == "config.json") && names.iter().any(|name| name == "metadata.json");
    new(file, Layout::Keras, if own { LayoutConfidence::Certain } else { LayoutConfidence::Likely })
}

fn hdf5(source: &dyn Source, file: &Entry) -> Recognised {
    let head = head(source, file, BLOCK_BYTES);
    let named = file.path.ends_with(".weights.h5");
    let groups: [&[u8]; 4] =
        [b"layer_names", b"model_weights", b"_layer_checkpoint_dependencies", b"keras_version"];
    let own = groups.iter().any(|group| contains(&head, group));
    new(file, Layout::Keras, if named || own { LayoutConfidence::Likely } else { LayoutConfidence::Guess })
}

fn safetensors(source: &dyn Source, file: &Entry) -> Recognised {
    let mut found = new(file, Layout::Safetensors, LayoutConfidence::Guess);
    let metadata = formats::safetensors_metadata(source, file);
    let number = |key: &str| metadata.get(key).and_then(|text| text.parse().ok());
    found.step_from(STEP_KEYS.iter().find_map(|key| number(key)), StepOrigin::Content);
    found.data_epoch = number("epoch");
    if found.step.is_some() || found.data_epoch.is_some() {
        found.confidence = LayoutConfidence::Certain;
    }
    found
}

/// Arrays are more often data than weights: only a clear name makes one a checkpoint.
fn numpy(file: &Entry) -> Recognised {
    let name = base(&file.path).to_lowercase();
    let clear = ["ckpt", "checkpoint", "weights", "params"].iter().any(|word| name.contains(word))
        || names::step(&name).is_some()
        || names::epoch(&name).is_some();
    let mut found =
        new(file, Layout::Numpy, if clear { LayoutConfidence::Likely } else { LayoutConfidence::Guess });
    found.components.clear();
    found
}

fn msgpack(source: &dyn Source, file: &Entry) -> Recognised {
    let mut found = new(file, Layout::FlaxMsgpack, LayoutConfidence::Guess);
    found.components.clear();
    let name = base(&file.path);
    if let Some(keys) = formats::msgpack_keys(source, file) {
        from_keys(&mut found, &keys);
        if !found.components.is_empty() {
            found.confidence = LayoutConfidence::Certain;
        }
    }
    if formats::is_flax_name(name) {
        found.step_from(names::number(name, "checkpoint_"), StepOrigin::Name);
        found.confidence = found.confidence.max(LayoutConfidence::Likely);
    }
    found
}

fn xgboost(source: &dyn Source, file: &Entry) -> Recognised {
    let (learner, rounds) = formats::xgboost_rounds(source, file);
    let mut found =
        new(file, Layout::Xgboost, if learner { LayoutConfidence::Certain } else { LayoutConfidence::Guess });
    found.step_from(rounds, StepOrigin::Content);
    found
}

/// JSON is a checkpoint only if it begins as that of a booster does.
fn json(source: &dyn Source, file: &Entry) -> Option<Recognised> {
    let head = head(source, file, HEAD_BYTES);
    if contains(&head, b"\"learner\"") {
        return Some(xgboost(source, file)).filter(|found| found.confidence == LayoutConfidence::Certain);
    }
    if ["\"features_info\"", "\"ctr_data\"", "\"oblivious_trees\""]
        .iter()
        .any(|key| contains(&head, key.as_bytes()))
    {
        let mut found = new(file, Layout::Catboost, LayoutConfidence::Certain);
        found.step_from(formats::catboost_rounds(source, file), StepOrigin::Content);
        return Some(found);
    }
    None
}

/// A snapshot has what a training continues from, and not only its trees.
fn catboost_snapshot(source: &dyn Source, file: &Entry) -> Recognised {
    let mut found = new(file, Layout::Catboost, LayoutConfidence::Certain);
    found.has(Component::TrainerState);
    found.step_from(formats::catboost_snapshot_rounds(source, file), StepOrigin::Content);
    found
}

fn lightgbm(source: &dyn Source, file: &Entry) -> Recognised {
    let mut found = new(file, Layout::Lightgbm, LayoutConfidence::Certain);
    found.step_from(formats::lightgbm_rounds(source, file), StepOrigin::Content);
    found.step_from(
        base(&file.path).rsplit_once("snapshot_iter_").and_then(|(_, digits)| digits.parse().ok()),
        StepOrigin::Name,
    );
    found
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
