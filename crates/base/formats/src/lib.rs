//! The file formats of Trackway: the flight record, the control file, the checkpoint manifest, the run file, the settings file, the policy of a model and the
//! records of a rehearsal. Pure parsers and writers: no I/O happens here, and no bytes make them panic.

pub mod arguments;
pub mod checkpoint_manifest;
pub mod checkpoint_origin;
pub mod control;
pub mod environment;
pub mod events;
mod flat_file;
pub mod frames;
pub mod gate;
pub mod group;
pub mod hash;
pub mod layout;
pub mod metric_files;
pub mod model_policy;
pub mod path_text;
pub mod printed;
pub mod promotion;
pub mod queue;
pub mod record;
pub mod rehearsal;
pub mod rule;
pub mod runfile;
mod save_reason;
pub mod settings;
pub mod shell;
pub mod subset;
pub mod tensorboard;
pub mod wandb;
pub mod writers;
pub mod yaml;
pub mod zip;

pub use environment::{StoredPart, Variable};
pub use events::EventKind;
pub use hash::digest::sha256_hex;
pub use save_reason::SaveReason;
