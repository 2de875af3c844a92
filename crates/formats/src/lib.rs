//! The file formats of Trackway: the flight record, the checkpoint manifest and the run file. Pure parsers and
//! writers: no I/O happens here, and no bytes make them panic.

pub mod checkpoint_manifest;
pub mod record;
pub mod runfile;
