//! Values that say where something is: the path of a file that has a secret is not the secret.

use super::spelling::{is_made_of_words, is_word, parts};

/// How the names of files end in which secrets, vocabularies and tables are.
const ENDINGS: [&[u8]; 34] = [
    b"txt", b"json", b"jsonl", b"yaml", b"yml", b"toml", b"ini", b"cfg", b"conf", b"env", b"pem", b"key",
    b"pub", b"crt", b"cer", b"p12", b"pfx", b"gpg", b"csv", b"tsv", b"parquet", b"npy", b"npz", b"pt",
    b"pth", b"bin", b"model", b"vocab", b"xml", b"md", b"py", b"sh", b"log", b"safetensors",
];

/// Whether a value is a path that ends in the name of a file, or such a name: `./creds.json`, `/run/secrets/db`, `pw.txt`.
pub(crate) fn is_path(value: &[u8]) -> bool {
    let is_of_path = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./~+".contains(byte);
    value.iter().all(is_of_path) && (is_rooted(value) || has_ending(value))
}

/// Whether a value is a path or an address.
pub(super) fn is_place(value: &[u8]) -> bool {
    is_path(value) || is_from_root(value) || value.windows(3).any(|three| three == b"://")
}

/// A path from a root, with words for folders.
fn is_rooted(value: &[u8]) -> bool {
    is_from_root(value) && !value.ends_with(b"/") && parts(value).all(is_word)
}

fn is_from_root(value: &[u8]) -> bool {
    [&b"./"[..], b"../", b"~/"].iter().any(|root| value.starts_with(root)) || is_below_root(value)
}

/// `/data/x`: below a folder whose name is a word.
fn is_below_root(value: &[u8]) -> bool {
    const FOLDER_BYTES_MIN: usize = 2;
    let folder = value.strip_prefix(b"/").and_then(|path| path.split(|byte| *byte == b'/').next());
    let is_folder = |folder: &[u8]| {
        folder.len() >= FOLDER_BYTES_MIN
            && folder.len() + 1 < value.len()
            && folder.iter().all(u8::is_ascii_lowercase)
    };
    folder.is_some_and(is_folder)
}

/// A name with the ending of a file, whose folders are words.
fn has_ending(value: &[u8]) -> bool {
    let Some(point) = value.iter().rposition(|byte| *byte == b'.') else { return false };
    let (stem, ending) = (&value[..point], &value[point + 1..]);
    let name = stem.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    !name.is_empty() && ENDINGS.contains(&ending) && is_made_of_words(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that paths and names of files are known, that folders and addresses are places, and that passwords with
    /// their marks are neither.
    #[test]
    fn paths_differ_from_passwords() {
        for value in [
            "./creds.json",
            "creds.json",
            "~/.ssh/id_rsa",
            "../keys/lab.pem",
            "/run/secrets/db_password",
            "data/vocab_v2.txt",
        ] {
            assert!(is_path(value.as_bytes()) && is_place(value.as_bytes()), "{value}");
        }
        for value in ["https://example.org/v1/keys2", "/mnt/a1b2c3d4e5f6g7h8/x", "~/.ssh/id_ed25519"] {
            assert!(is_place(value.as_bytes()) && !is_path(value.as_bytes()), "{value}");
        }
        for value in [
            "hunter2",
            "correct.horse",
            "/hunter2",
            "a/b",
            "Zq7!tulip.txt",
            "q7Rk2ZpL9vXw4TnB8sHd3Y.bin",
            "/wJalrXUtnFEMI/K7MDENG",
            "",
            ".",
            "/",
        ] {
            assert!(!is_place(value.as_bytes()), "{value}");
        }
    }
}
