//! Files of settings as keys with values: JSON, TOML, the part of YAML that configurations are written in, and plain
//! texts of keys or numbers.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_engine::capture::{leaves, plain_settings};
use trackway_formats::yaml::{Leaves, leaves as leaves_of_yaml};

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

/// None: not all of it is read. The lines of such a file are counted instead.
fn yaml(text: &str) -> Option<BTreeMap<String, String>> {
    let Leaves { found, left_out } = leaves_of_yaml(text);
    let count = found.len();
    let found: BTreeMap<String, String> = found.into_iter().collect();
    (left_out == 0 && found.len() == count).then_some(found)
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
