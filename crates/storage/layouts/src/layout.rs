//! The layouts, and what is known of a checkpoint that has one.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

closed_list!(
    /// Who wrote a checkpoint, as far as its files show.
    Layout, "layout of a checkpoint", {
        /// `Trainer` of Hugging Face Transformers: a folder `checkpoint-N`.
        TransformersTrainer = "transformers_trainer",
        /// Lightning: a file `.ckpt`, or a folder of that name with shards.
        Lightning = "lightning",
        /// `save_state` of Hugging Face Accelerate: a folder.
        Accelerate = "accelerate",
        /// A file of `torch.save`.
        TorchFile = "torch_file",
        /// PyTorch Distributed Checkpoint: a folder of `.distcp` files and `.metadata`.
        TorchDcp = "torch_dcp",
        /// DeepSpeed: a folder `global_stepN` beside `latest`.
        Deepspeed = "deepspeed",
        /// Megatron-LM: a folder `iter_N` beside `latest_checkpointed_iteration.txt`.
        Megatron = "megatron",
        /// Keras: a `.keras` file, weights in HDF5, or the folder of `BackupAndRestore`.
        Keras = "keras",
        /// Orbax: a folder with `_CHECKPOINT_METADATA`.
        Orbax = "orbax",
        /// A MessagePack file of `flax.serialization`.
        FlaxMsgpack = "flax_msgpack",
        /// XGBoost, as UBJSON or JSON.
        Xgboost = "xgboost",
        /// LightGBM's text.
        Lightgbm = "lightgbm",
        /// CatBoost: `.cbm`, JSON, or the snapshot of a training.
        Catboost = "catboost",
        /// A pickle of scikit-learn or others, with or without joblib.
        Joblib = "joblib",
        /// A safetensors file that belongs to no other layout.
        Safetensors = "safetensors",
        /// A `.npz` file of NumPy.
        Numpy = "numpy",
        /// Files that were declared to be a checkpoint, of no layout above.
        Unknown = "unknown",
    }
);

/// A part of a training state that a checkpoint was seen to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// The parameters of the model.
    Weights,
    /// The state of the optimizer.
    Optimizer,
    /// The state of the learning-rate schedule.
    Scheduler,
    /// States of random numbers.
    Rng,
    /// The state of a gradient scaler.
    Scaler,
    /// The position in the data.
    DataCursor,
    /// Steps, epochs and what else the trainer itself keeps.
    TrainerState,
}

/// Whether a checkpoint is one file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// One file.
    File,
    /// A folder with everything below it.
    Folder,
}

/// Where a step comes from, the best source first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOrigin {
    /// From the content of the checkpoint.
    Content,
    /// From its name.
    Name,
    /// From the file beside it that names the newest one.
    Tracker,
}

/// How strong the evidence is that a path is a checkpoint at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutConfidence {
    /// The format can hold a checkpoint, and nothing says that this one does.
    Guess,
    /// Format and name agree, the content does not say.
    Likely,
    /// A framework's own files or content say so.
    Certain,
}

/// A checkpoint, as far as its names and content show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recognised {
    /// The path below the root of the listing, with `/`; empty for the root itself.
    pub path: String,
    /// Whether it is one file or a folder.
    pub root: Root,
    /// Who wrote it.
    pub layout: Layout,
    /// How strong the evidence is.
    pub confidence: LayoutConfidence,
    /// The optimizer step; for boosted trees the number of rounds.
    pub step: Option<u64>,
    /// Where the step comes from.
    pub step_origin: Option<StepOrigin>,
    /// The epoch, as the framework counts it.
    pub data_epoch: Option<u64>,
    /// The components that were seen. One that is missing here was not seen, which does not prove that it is absent.
    pub components: BTreeSet<Component>,
    /// The number of processes that wrote it, where the files show it.
    pub ranks: Option<u32>,
    /// The file whose appearance completes it, where the layout has one; a path below the root of the listing.
    pub marker: Option<String>,
}

impl Recognised {
    /// A checkpoint of which nothing is known but its path.
    #[must_use]
    pub fn new(path: &str, root: Root, layout: Layout, confidence: LayoutConfidence) -> Self {
        Self {
            path: path.to_owned(),
            root,
            layout,
            confidence,
            step: None,
            step_origin: None,
            data_epoch: None,
            components: BTreeSet::new(),
            ranks: None,
            marker: None,
        }
    }

    /// Takes a step from a better source than the present one, or the first one.
    pub(crate) fn step_from(&mut self, step: Option<u64>, origin: StepOrigin) {
        if let Some(step) = step
            && self.step_origin.is_none_or(|present| origin < present)
        {
            self.step = Some(step);
            self.step_origin = Some(origin);
        }
    }

    pub(crate) fn has(&mut self, component: Component) {
        self.components.insert(component);
    }
}
