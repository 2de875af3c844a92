//! Metrics of a script that does not use the recorder: those that it prints, and those in the files that its tools write.

mod below;
pub(super) mod course;
pub(super) mod events;
pub(super) mod metric_files;
pub(super) mod printed;
pub(super) mod reading;
