//! What distinguishes the files of a flight record from others, and the limits of what one holds.

/// The first bytes of a segment file: a byte that is not ASCII, `TWFR`, a line end that text tools would alter.
pub const FILE_MAGIC: [u8; 8] = *b"\x89TWFR\r\n\x1a";

/// The version of the format that this crate writes, and the highest it reads.
pub const FORMAT_VERSION: u16 = 1;

/// The file name extension of a segment, without the dot.
pub const SEGMENT_EXTENSION: &str = "twfr";

/// How many metric names one segment may define; a writer that needs more begins another segment.
pub const MAX_NAMES_PER_SEGMENT: usize = 10_000;

/// How many values one metrics frame may carry; a writer splits more over several frames.
pub const MAX_METRICS_PER_FRAME: usize = 4_096;

/// How many steps one frame of a series may have; a writer begins another one. It bounds what a torn frame costs.
pub const MAX_STEPS_PER_SERIES: usize = 1_024;

/// The numbers that name the frame types in the file.
pub(super) mod frame_type {
    pub const HEADER: u8 = 1;
    pub const NAME_DEFINITION: u8 = 2;
    pub const METRICS: u8 = 3;
    pub const EVENT: u8 = 4;
    pub const PARAM: u8 = 5;
    pub const HEARTBEAT: u8 = 6;
    pub const CHECKPOINT: u8 = 7;
    pub const CONTROL_ACK: u8 = 8;
    pub const CLOSE: u8 = 9;
    pub const EARLY_METRICS: u8 = 10;
    pub const SERIES: u8 = 11;
}

/// So many metrics a process may name. A step in a name (`loss_17`) makes a new metric of each value; without a bound such a script
/// would use up the memory of everything that reads its record.
pub const METRIC_NAMES_MAX: usize = 20_000;
