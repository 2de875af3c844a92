//! The positions of the bytes of a frame, and the limits of sizes.

/// The first bytes of every frame. Readers search for them after damage.
pub const RESYNC_MARK: [u8; 4] = [0xf5, 0x54, 0x57, 0xfa];

/// Bytes of a frame before its payload: mark, payload length, sequence, type, flags, header check.
pub(crate) const HEADER_BYTES: usize = 16;

/// Bytes of a frame after its payload: the checksum.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Bytes that a frame needs besides its payload.
pub const FRAME_OVERHEAD_BYTES: usize = HEADER_BYTES + CHECKSUM_BYTES;

/// The largest payload. Bounds what a reader must hold, and what a hostile file can make it check.
pub const MAX_PAYLOAD_BYTES: usize = 65_536;

/// The longest name in a payload, in bytes of UTF-8; longer ones are cut at a character.
pub const MAX_NAME_BYTES: usize = 256;

/// The longest text in a payload, in bytes of UTF-8; longer ones are cut at a character.
pub const MAX_TEXT_BYTES: usize = 16_384;

/// CRC-32C (Castagnoli), the checksum of iSCSI and ext4, with hardware support on x86-64 and ARM.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The check of a frame header: the low half of the CRC-32C of what is between the mark and the check.
pub(super) fn header_check(header: &[u8]) -> u16 {
    crc32c(header) as u16
}
