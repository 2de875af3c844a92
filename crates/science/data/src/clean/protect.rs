//! Columns with personal data: masked, hashed with a key, or left out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use trackway_core::text::hex;
use trackway_tables::personal::masked;

/// A shorter key can be guessed.
pub const KEY_BYTES_MIN: usize = 16;

/// What becomes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Personal data in a value is hidden but for its ends; of any other value only the first letter remains.
    Mask,
    /// HMAC-SHA256 of the value with the key, 64 hexadecimal digits: equal values stay equal, and without the key nothing can
    /// be looked up.
    Hash,
    /// The column is not written.
    Drop,
}

/// The key of hashed columns. It is never shown or stored.
#[derive(Clone)]
pub struct HashKey(Vec<u8>);

/// A key that is too short.
#[derive(Debug, thiserror::Error)]
#[error(
    "the key has {found} bytes; at least {KEY_BYTES_MIN} are needed, such as those of `head -c 32 /dev/urandom | base64`"
)]
pub struct KeyError {
    /// Its bytes.
    pub found: usize,
}

impl HashKey {
    /// The key that these bytes are, without line ends behind them.
    ///
    /// # Errors
    /// [`KeyError`] for less than [`KEY_BYTES_MIN`] bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        match end {
            found if found < KEY_BYTES_MIN => Err(KeyError { found }),
            end => Ok(Self(bytes[..end].to_vec())),
        }
    }

    fn hash(&self, text: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is a key");
        mac.update(text.as_bytes());
        hex(&mac.finalize().into_bytes())
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HashKey(hidden)")
    }
}

impl Protection {
    /// A value as it may be written; `None`: not at all.
    pub(super) fn text(self, value: &str, key: Option<&HashKey>) -> Option<String> {
        match self {
            Self::Mask => Some(mask(value)),
            Self::Hash => key.map(|key| key.hash(value)),
            Self::Drop => None,
        }
    }

    /// A column as it may be written: strings, nulls where `typed`, the same column as it was read, has no value.
    pub(super) fn column(
        self,
        column: &ArrayRef,
        typed: &ArrayRef,
        key: Option<&HashKey>,
    ) -> Result<ArrayRef, ArrowError> {
        let options = FormatOptions::new();
        let cells = ArrayFormatter::try_new(column, &options)?;
        let nulls = typed.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let cell = |row: usize| match is_null(row) {
            true => None,
            false => self.text(&cells.value(row).to_string(), key),
        };
        Ok(Arc::new((0..column.len()).map(cell).collect::<StringArray>()))
    }
}

fn mask(value: &str) -> String {
    match masked(value) {
        std::borrow::Cow::Owned(hidden) => hidden,
        std::borrow::Cow::Borrowed(_) => value.chars().take(1).chain(std::iter::once('…')).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a hash is HMAC-SHA256 as in test cases 1, 2 and 6 of RFC 4231 (the first key longer, where it is too short
    /// here), and that a short key is refused.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let hash = |key: &[u8], text: &str| HashKey(key.to_vec()).hash(text);
        assert_eq!(
            hash(&[0x0b; 20], "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hash(b"Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hash(&[0xaa; 131], "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
        assert_eq!(HashKey::new(b"fifteen bytes..\n").unwrap_err().found, 15);
        assert_eq!(HashKey::new(b"sixteen bytes...\r\n").unwrap().0, b"sixteen bytes...");
    }

    /// Proves that recognised personal data keeps its ends, and that of anything else only the first letter remains.
    #[test]
    fn masked_values_do_not_name_anybody() {
        assert_eq!(mask("ana.berg@example.org"), "a…@e…g");
        assert_eq!([mask("Ana Berg"), mask("1990-04-01"), mask("Ø")], ["A…", "1…", "Ø…"]);
    }
}
