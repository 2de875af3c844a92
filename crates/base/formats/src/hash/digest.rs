//! Content hashes.

use sha2::{Digest as _, Sha256};
use trackway_core::text::hex;

/// SHA-256 of bytes, in lower-case hexadecimal.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
