//! The positions of the bytes of a frame, and the limits of sizes.

/// The first bytes of a segment file: a byte that is not ASCII, `TWFR`, a line end that text tools would alter.
pub const FILE_MAGIC: [u8; 8] = *b"\x89TWFR\r\n\x1a";

/// The version of the format that this crate writes, and the highest it reads.
pub const FORMAT_VERSION: u16 = 1;

/// The file name extension of a segment, without the dot.
pub const SEGMENT_EXTENSION: &str = "twfr";

/// The first bytes of every frame. Readers search for them after damage.
pub const RESYNC_MARK: [u8; 4] = [0xf5, 0x54, 0x57, 0xfa];

/// Bytes of a frame before its payload: mark, payload length, sequence, type, flags, header check.
pub(super) const HEADER_BYTES: usize = 16;

/// Bytes of a frame after its payload: the checksum.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Bytes that a frame needs besides its payload.
pub const FRAME_OVERHEAD_BYTES: usize = HEADER_BYTES + CHECKSUM_BYTES;

/// The largest payload. Bounds what a reader must hold, and what a hostile file can make it check.
pub const MAX_PAYLOAD_BYTES: usize = 65_536;

/// The longest name of a metric, parameter, event or field; longer ones are cut at a character.
pub const MAX_NAME_BYTES: usize = 256;

/// The longest text value; longer ones are cut at a character.
pub const MAX_TEXT_BYTES: usize = 16_384;

/// How many metric names one segment may define; a writer that needs more begins another segment.
pub const MAX_NAMES_PER_SEGMENT: usize = 10_000;

/// How many values one metrics frame may carry; a writer splits more over several frames.
pub const MAX_METRICS_PER_FRAME: usize = 4_096;

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
}

/// CRC-32C (Castagnoli), the checksum of iSCSI and ext4, with hardware support on x86-64 and ARM.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The check of a frame header: the low half of the CRC-32C of what is between the mark and the check.
pub(super) fn header_check(header: &[u8]) -> u16 {
    crc32c(header) as u16
}

/// So many metrics a process may name. A step in a name (`loss_17`) makes a new metric of each value; without a bound such a script
/// would use up the memory of everything that reads its record.
pub const METRIC_NAMES_MAX: usize = 20_000;
