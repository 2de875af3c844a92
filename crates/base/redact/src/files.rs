//! Files that are not searched for secrets but left out whole: those that hold keys, and those whose bytes are compressed.

use super::shapes::DATA;

/// Why the content of a file must not be kept; `None`: it may, once secrets are taken out of it.
#[must_use]
pub fn unkeepable(name: &str, bytes: &[u8]) -> Option<&'static str> {
    if has_secret_name(name) {
        return Some("its name is that of a file with secrets");
    }
    let begins = |beginnings: &[String]| beginnings.iter().any(|beginning| begins_with(bytes, beginning));
    if begins(&DATA.files.keys) {
        return Some("it is a store of keys");
    }
    (begins(&DATA.files.compressed) || is_zlib(bytes))
        .then_some("it is compressed or a database, so that it cannot be searched for secrets")
}

/// Whether a file of this name, without folders, holds secrets.
#[must_use]
pub fn has_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let files = &DATA.files;
    files.parts.iter().any(|part| name.contains(part))
        || files.ends.iter().any(|end| name.ends_with(end))
        || files.names.contains(&name)
}

/// Whether bytes are a stream of zlib. `x^2` begins with its two bytes, too, so that what reads as text is none.
fn is_zlib(bytes: &[u8]) -> bool {
    const READ_BYTES: usize = 4096;
    let [0x78, flags, ..] = bytes else { return false };
    let is_header = (0x7800 | u16::from(*flags)).is_multiple_of(31);
    let read = &bytes[..bytes.len().min(READ_BYTES)];
    // A letter may be cut where reading ends.
    let is_unicode = std::str::from_utf8(read).map_or_else(|error| error.error_len().is_none(), |_| true);
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    is_header && (!is_unicode || read.iter().any(is_control))
}

/// Whether bytes begin with these, in hexadecimal; `..` is any byte.
fn begins_with(bytes: &[u8], beginning: &str) -> bool {
    let mut expected = beginning.split_ascii_whitespace();
    let count = expected.clone().count();
    bytes.len() >= count
        && bytes.iter().take(count).all(|byte| {
            let wanted = expected.next().unwrap_or("..");
            wanted == ".." || u8::from_str_radix(wanted, 16) == Ok(*byte)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that stores of keys are recognised by name and by content, archives by content, and that what training needs is neither.
    #[test]
    fn stores_of_keys_and_archives_are_left_out() {
        let named = [
            ".env", ".env.local", "prod.env", "server.pem", "k.der", "k.pfx", "K.P12", "trust.jks",
            "db.kdbx", "app.keystore", "id_rsa", "id_ecdsa", "id_ed25519", "x.gpg", "putty.ppk", ".netrc",
            ".pgpass", ".npmrc", "aws_credentials", "client_secret.json", "secring.gpg", "wg0.ovpn",
            "site.agekey",
        ];
        for name in named {
            assert!(has_secret_name(name), "{name}");
        }
        for name in [
            "train.py", "keys.py", "environment.yml", "model.safetensors", "id_column.csv", "tokenizer.json",
            "order.csv",
        ] {
            assert!(!has_secret_name(name), "{name}");
        }
        let pkcs8 = b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09";
        let pkcs12 = b"\x30\x82\x0a\x01\x02\x01\x03\x30\x82";
        for bytes in [&b"\xfe\xed\xfe\xed\0\0"[..], b"\x03\xd9\xa2\x9a\x67\xfb", pkcs8, pkcs12] {
            assert_eq!(unkeepable("data.bin", bytes), Some("it is a store of keys"));
        }
        let database = b"SQLite format 3\0rest";
        for bytes in [&b"PK\x03\x04rest"[..], b"\x1f\x8b\x08rest", b"PAR1rest", b"%PDF-1.7", database] {
            assert!(unkeepable("data.bin", bytes).unwrap().starts_with("it is compressed"));
        }
        for bytes in
            [&b"x\x9c\x4b\x4c"[..], b"x\xda\x4b\x4c", b"x\x01\x01\x05\0", b"x^\x4b\xcc\0", b"\x1f\x9d\x90"]
        {
            assert!(unkeepable("data.bin", bytes).unwrap().starts_with("it is compressed"));
        }
        for bytes in [&b"x^2 + y"[..], b"x }", "x^é".as_bytes(), b"xyz\0", b"x"] {
            assert_eq!(unkeepable("data.bin", bytes), None);
        }
        for bytes in [&b""[..], b"import os", b"\x89PNG\r\n\x1a\n", b"\x30\x82"] {
            assert_eq!(unkeepable("data.bin", bytes), None);
        }
    }
}
