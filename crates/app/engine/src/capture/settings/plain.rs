//! Settings in plain texts: `lr=0.1`, `lr: 0.1`, sections as of INI, or a number in each line.

use std::collections::BTreeMap;
use std::path::Path;

/// A larger text is none of settings.
pub const PLAIN_BYTES_MAX: u64 = 64 << 10;
/// The most of a file of settings or code that the command names that is kept.
const KEPT_SETTINGS_BYTES_MAX: u64 = 256 << 10;
/// What the names of files of settings and code end with: what differs in them is shown later, and tables of data are not copied.
const SETTINGS_EXTENSIONS: [&str; 10] =
    ["json", "yaml", "yml", "toml", "ini", "cfg", "conf", "properties", "py", "sh"];
/// More lines of numbers are data.
const NUMBERS_MAX: usize = 64;
/// What the names of files of settings end with; those of others are texts, of which the values have no blanks.
const OF_SETTINGS: [&str; 4] = ["cfg", "conf", "ini", "properties"];
const OF_TEXTS: [&str; 1] = ["txt"];

/// Whether a file of this name may be a text of settings: of a known extension, or without one.
#[must_use]
pub fn is_plain(path: &Path) -> bool {
    path.extension().is_none() || extension_is(path, &OF_SETTINGS) || extension_is(path, &OF_TEXTS)
}

/// Each key with its value; `None`: the text has something else in it.
#[must_use]
pub fn plain_settings(path: &Path, text: &str) -> Option<BTreeMap<String, String>> {
    if !is_plain(path) || text.len() as u64 > PLAIN_BYTES_MAX {
        return None;
    }
    numbers(path, text).or_else(|| pairs(text, extension_is(path, &OF_SETTINGS)))
}

/// Whether a file with these bytes has settings or code, or is a text that has nothing but settings in it.
pub(in crate::capture) fn has_settings(path: &Path, bytes: &[u8]) -> bool {
    let is_plain_text = || std::str::from_utf8(bytes).is_ok_and(|text| plain_settings(path, text).is_some());
    is_settings(path, bytes.len() as u64) || is_plain_text()
}

/// Whether the name and the size are those of settings or code.
pub(in crate::capture) fn is_settings(path: &Path, size_bytes: u64) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_lowercase);
    let is_listed = extension.is_some_and(|extension| SETTINGS_EXTENSIONS.contains(&extension.as_str()));
    is_listed && size_bytes <= KEPT_SETTINGS_BYTES_MAX
}

/// Whether the name of a file ends in one of these extensions, in letters of any case.
#[must_use]
pub fn extension_is(path: impl AsRef<Path>, among: &[&str]) -> bool {
    let extension = path.as_ref().extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| among.iter().any(|one| extension.eq_ignore_ascii_case(one)))
}

/// One number in each line. That of a file with one line is called as the file is.
fn numbers(path: &Path, text: &str) -> Option<BTreeMap<String, String>> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let are_numbers = lines.iter().all(|line| line.parse::<f64>().is_ok());
    if lines.is_empty() || lines.len() > NUMBERS_MAX || !are_numbers {
        return None;
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let key = |place: usize| match lines.len() {
        1 => stem.clone().into_owned(),
        _ => format!("line {}", place + 1),
    };
    Some(lines.iter().enumerate().map(|(place, line)| (key(place), (*line).to_owned())).collect())
}

/// `key=value` or `key: value` in each line, with the section before the key. `has_blanks`: whether values may have them.
fn pairs(text: &str, has_blanks: bool) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '!']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{}.", name.trim());
            continue;
        }
        let (key, value) = pair(line)?;
        let is_one = !value.contains(char::is_whitespace) || is_enclosed(value);
        if !(has_blanks || is_one) || found.insert(format!("{section}{key}"), value.to_owned()).is_some() {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

fn pair(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (key, value) = line.split_once(['=', ':'])?;
    let key = key.trim_end();
    let is_letter = |letter: char| letter.is_alphanumeric() || "_-./".contains(letter);
    let is_key =
        key.starts_with(|first: char| first.is_alphabetic() || first == '_') && key.chars().all(is_letter);
    let value = value.split(" #").next().unwrap_or(value).trim();
    // An address is none.
    (is_key && !value.is_empty() && !value.starts_with("//")).then_some((key, value))
}

fn is_enclosed(value: &str) -> bool {
    [('"', '"'), ('\'', '\''), ('[', ']'), ('{', '}'), ('(', ')')]
        .iter()
        .any(|(first, last)| value.len() > 1 && value.starts_with(*first) && value.ends_with(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Option<Vec<(String, String)>> {
        plain_settings(Path::new(name), text).map(|found| found.into_iter().collect())
    }

    /// Proves that keys are read of texts with one of them in each line, and numbers of texts that have nothing else.
    #[test]
    fn texts_of_settings_give_their_keys() {
        let pairs = |of: &[(&str, &str)]| {
            Some(of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(of("cfg.txt", "lr=2.4\n"), pairs(&[("lr", "2.4")]));
        assert_eq!(
            of("settings", "# rates\nlr : 0.1 # high\nbetas: [0.9, 0.99]\n"),
            pairs(&[("betas", "[0.9, 0.99]"), ("lr", "0.1")])
        );
        assert_eq!(
            of("a.ini", "[optimizer]\nlr = 0.1\nnote = two words\n"),
            pairs(&[("optimizer.lr", "0.1"), ("optimizer.note", "two words")])
        );
        assert_eq!(of("run.conf", "export LR=0.1\r\n"), pairs(&[("LR", "0.1")]));
        assert_eq!(of("data/lr.txt", "0.1\n"), pairs(&[("lr", "0.1")]));
        assert_eq!(of("rates.txt", "0.1\n\n0.2\n"), pairs(&[("line 1", "0.1"), ("line 2", "0.2")]));
    }

    /// Proves that logs, sentences, tables, addresses, code, repeated keys and many numbers are no settings.
    #[test]
    fn other_texts_are_no_settings() {
        let many = "1\n".repeat(NUMBERS_MAX + 1);
        let long = format!("a={}\n", "1".repeat(PLAIN_BYTES_MAX as usize));
        for text in [
            "", "step 1 loss 0.5\n", "TODO: look at this\n", "x,y\n1,2\n", "http://example.org\n",
            "loss: 1\nloss: 2\n", "12:30:01 started\n", "def f(): return 1\n", &many, &long,
        ] {
            assert_eq!(of("a.txt", text), None, "{}", text.get(..30).unwrap_or(text));
        }
        assert_eq!(of("a.csv", "lr=1\n"), None);
    }
}
