//! Files of other tools: event files of TensorBoard, run files of Weights & Biases, ZIP archives.

pub mod tensorboard;
pub mod wandb;
pub mod zip;
