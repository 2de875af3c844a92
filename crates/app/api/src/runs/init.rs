//! The run file that `trackway init` writes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{RunId, closed_list};

/// What a new run file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewRunFile {
    /// The file that was written.
    pub path: String,
    pub name: String,
    pub command: Vec<String>,
    /// The framework that the script imports.
    pub framework: Framework,
    /// Whether the script imports the package `trackway`, and so may save checkpoints.
    pub uses_trackway: bool,
    /// The data sets that were found.
    pub data: Vec<FoundDataSet>,
    /// Number of NVIDIA GPUs of this machine.
    pub gpu_count: u32,
    /// Whether the folder is in a git repository.
    pub is_in_git: bool,
    /// The run whose command it is, with `--from`.
    pub from_run: Option<RunId>,
    /// Environment variables that this run was given.
    pub environment: BTreeMap<String, String>,
    /// Patterns of the checkpoints that this run wrote itself.
    pub adopt: Vec<String>,
    /// Arguments that make the script continue from a checkpoint, with `{path}` for it, as its text declares them.
    pub resume_arguments: Vec<String>,
}

/// A section `[data.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundDataSet {
    pub name: String,
    /// Its file.
    pub path: String,
    /// The column to predict, if the script, its command or the name of a column shows it.
    pub label: Option<String>,
}

closed_list!(
    /// What a script trains with.
    Framework, "framework", {
        /// Lightning, also as `pytorch_lightning`.
        Lightning = "lightning",
        /// The Trainer of Hugging Face.
        Transformers = "transformers",
        /// Keras, also as part of TensorFlow.
        Keras = "keras",
        /// JAX, Flax and optax.
        Jax = "jax",
        /// A loop in PyTorch.
        Torch = "torch",
        /// XGBoost.
        XgBoost = "xgboost",
        /// LightGBM.
        LightGbm = "lightgbm",
        /// scikit-learn.
        Sklearn = "sklearn",
        /// None of them.
        Plain = "plain",
    }
);
