//! Data sets by themselves, outside of a run: no home and no ledger is needed, but for snapshots.

pub mod check;
pub mod clean;
pub mod drift;
pub mod images;
pub mod join;
pub mod leakage;
pub mod profile;
mod remote;
pub mod schema;
pub mod snapshot;
pub mod snapshot_remote;
pub mod split;
pub mod table;

pub use trackway_tables::limits::{
    COLUMNS_VARIABLE, DEFAULT as DEFAULT_LIMITS, LINKS_VARIABLE, Limits, MEDIA_VARIABLE, PAGE_VARIABLE,
};
pub use trackway_tables::personal::{masked, masked_cut, masked_json};

pub use remote::remote_files;
pub use snapshot::snapshot_data;
pub(crate) use table::data_error;
pub use trackway_tables::read::{ReadNote, ReadNoteKind, sentences};
pub use trackway_tables::{DataSpec, ReadContext};
