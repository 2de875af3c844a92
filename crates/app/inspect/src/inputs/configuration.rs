//! Files of settings as keys with values: JSON, TOML, the part of YAML that configurations are written in, and plain texts of keys or numbers.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_engine::capture::{leaves, plain_settings};

/// A deeper section is not read.
const DEPTH_MAX: usize = 32;

/// Every key of a file of settings with its value; `None`: it is none, or cannot be read as one.
pub(super) fn settings(path: &Path, text: &str) -> Option<BTreeMap<String, String>> {
    let extension = path.extension().unwrap_or_default().to_str()?.to_lowercase();
    match extension.as_str() {
        "json" => Some(leaves(&serde_json::from_str(text).ok()?)),
        "toml" => Some(leaves(&serde_json::to_value(toml::from_str::<toml::Table>(text).ok()?).ok()?)),
        "yaml" | "yml" => yaml(text),
        _ => plain_settings(path, text),
    }
}

/// Mappings and lists by their indentation, each value in one line. Anything else (anchors, texts over several lines, tabs) is not read: the
/// lines of such a file are counted instead.
fn yaml(text: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut items: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let line = without_comment(line).trim_end();
        let body = line.trim_start_matches(' ');
        if body.is_empty() || (body == "---" && found.is_empty() && open.is_empty()) {
            continue;
        }
        let mut indent = line.len() - body.len();
        let mut rest = body;
        if body.starts_with(['\t', '%', '?', '&', '*', '{', '[', '}', ']', '"', '\'']) || body == "---" {
            return None;
        }
        while let Some(item) = rest.strip_prefix("- ").or_else(|| (rest == "-").then_some("")) {
            while open
                .pop_if(|(outer, name)| *outer > indent || (*outer == indent && name.starts_with('[')))
                .is_some()
            {}
            let number = items.entry(path_of(&open)).or_default();
            open.push((indent, format!("[{number}]")));
            *number += 1;
            indent += rest.len() - item.trim_start().len();
            rest = item.trim_start();
        }
        if rest.is_empty() {
            continue;
        }
        let is_item = rest.len() < body.len();
        let Some((name, value)) = named(rest) else {
            if !is_item || !is_plain(rest) {
                return None;
            }
            found.insert(path_of(&open), rest.to_owned());
            continue;
        };
        while open.pop_if(|(outer, _)| *outer >= indent).is_some() {}
        if open.len() > DEPTH_MAX || !is_plain(value) {
            return None;
        }
        open.push((indent, name.to_owned()));
        if !value.is_empty() && found.insert(path_of(&open), value.to_owned()).is_some() {
            return None;
        }
    }
    Some(found)
}

/// `a.b[0].c`.
fn path_of(open: &[(usize, String)]) -> String {
    let mut path = String::new();
    for (_, name) in open {
        if !path.is_empty() && !name.starts_with('[') {
            path.push('.');
        }
        path.push_str(name);
    }
    path
}

fn named(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-./ ".contains(letter));
    is_name.then(|| (name.trim(), value.trim()))
}

/// Whether the value ends in its line.
fn is_plain(value: &str) -> bool {
    let closes =
        |first: char, last: char| !value.starts_with(first) || (value.len() > 1 && value.ends_with(last));
    !value.starts_with(['|', '>', '&', '*', '!'])
        && closes('[', ']')
        && closes('{', '}')
        && closes('"', '"')
        && closes('\'', '\'')
}

/// A `#` begins a comment at the start of a line and after a space, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (place, letter) in line.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '#' && before.is_whitespace() => return &line[..place],
            None if matches!(letter, '"' | '\'') && !before.is_alphanumeric() => quote = Some(letter),
            None => {}
        }
        before = letter;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Option<Vec<(String, String)>> {
        settings(Path::new(name), text).map(|found| found.into_iter().collect())
    }

    fn pairs(of: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    /// Proves that all kinds of files give the same keys, and that other files and damaged ones give none.
    #[test]
    fn every_kind_gives_its_keys() {
        let found = pairs(&[("model.depth", "3"), ("steps", "10")]);
        assert_eq!(of("c.json", r#"{"model": {"depth": 3}, "steps": 10}"#), found);
        assert_eq!(of("c.toml", "steps = 10\n[model]\ndepth = 3\n"), found);
        assert_eq!(of("c.YAML", "# a comment\nmodel:\n  depth: 3 # layers\n\nsteps: 10\n"), found);
        assert_eq!(of("c.json", "{"), None);
        assert_eq!(of("c.toml", "= 3"), None);
        assert_eq!(of("c.txt", "steps: 10"), pairs(&[("steps", "10")]));
        assert_eq!(of("c.txt", "ten steps"), None);
        assert_eq!(of("c.csv", "steps: 10"), None);
    }

    /// Proves that lists of YAML are read by their place, and that what is not understood is not read at all.
    #[test]
    fn yaml_is_read_or_not() {
        let text = "sets:\n  - name: a\n    rows: 3\n  - name: b\ntags: [x, y]\nplain:\n- 1\n- two\nurl: 'http://x/#y'\n";
        let expected = pairs(&[
            ("plain[0]", "1"),
            ("plain[1]", "two"),
            ("sets[0].name", "a"),
            ("sets[0].rows", "3"),
            ("sets[1].name", "b"),
            ("tags", "[x, y]"),
            ("url", "'http://x/#y'"),
        ]);
        assert_eq!(of("c.yml", text), expected);
        for text in [
            "a: |\n  text\n", "a: &x 1\n", "a: [1,\n  2]\n", "a: 1\na: 2\n", "just words\n", "a:\n\t- 1\n",
            "{a: 1}\n",
        ] {
            assert_eq!(of("c.yaml", text), None, "{text}");
        }
    }
}
