//! The file formats of Trackway: the flight record, the control file, the checkpoint manifest, the run file, the
//! settings file, the policy of a model and the records of a rehearsal. Pure parsers and writers: no I/O happens here,
//! and no bytes make them panic.

pub mod arguments;
mod checkpoint;
mod flat_files;
mod foreign;
pub mod frames;
pub mod hash;
pub mod layout;
pub mod metric_files;
#[cfg(test)]
mod mutants;
pub mod printed;
mod process;
pub mod record;
mod rules;
pub mod runfile;
mod runs;
pub mod subset;
mod text;

pub use checkpoint::{checkpoint_manifest, checkpoint_origin, writers};
pub use flat_files::{model_policy, settings};
pub use foreign::{tensorboard, wandb, zip};
pub use hash::digest::sha256_hex;
pub use process::environment::{StoredPart, Variable};
pub use process::events::EventKind;
pub use process::save_reason::SaveReason;
pub use process::{control, rehearsal};
pub use rules::{gate, promotion, rule};
pub use runs::{group, queue};
pub use text::{path_text, shell, yaml};
