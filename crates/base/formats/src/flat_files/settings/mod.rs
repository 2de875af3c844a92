//! The settings file: what a user or a project sets for every command. TOML, without sections but those of queues and engines. Reading is
//! pure: text in, values with their lines or *all* mistakes out.

mod engines;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::flat_file::{FlatFile, Mistake, MistakeInside, count, flag, text};
use crate::runfile::{EngineName, RunFileError, nearest};
use crate::runs::queue::QueueName;

pub use engines::{EngineSection, EngineSettings};

/// The name of a settings file.
pub const SETTINGS_FILE: &str = "config.toml";

/// A larger file is not a settings file; it is refused before it is parsed.
pub const SETTINGS_BYTES_MAX: usize = 1 << 16;

/// Every key that a settings file may hold; `docs/settings.md` describes each.
pub const KEYS: [&str; 10] = [
    "home", "ledger", "color", "columns_max", "media_mib_max", "page_mib_max", "follow_links", "webhook",
    "queues", "engines",
];

/// The only key of a queue.
const AT_MOST: &str = "at_most";

/// A value and the line of the file on which it is, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtLine<T> {
    pub value: T,
    pub line: usize,
}

/// What one settings file sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsFile {
    /// The folder with Trackway's state, as written.
    pub home: Option<AtLine<String>>,
    /// The ledger, as written: the path of a SQLite file, or a `postgres://` URL.
    pub ledger: Option<AtLine<String>>,
    /// Whether a terminal is written to in colours.
    pub color: Option<AtLine<bool>>,
    /// The most columns of a table that is read.
    pub columns_max: Option<AtLine<u32>>,
    /// What images and texts that are read at the same time may take in memory, in MiB.
    pub media_mib_max: Option<AtLine<u32>>,
    /// What a page of a Parquet file may take, in MiB.
    pub page_mib_max: Option<AtLine<u32>>,
    /// Whether links that lead out of a data folder are followed.
    pub follow_links: Option<AtLine<bool>>,
    /// The address that notifications are sent to.
    pub webhook: Option<AtLine<String>>,
    /// How many runs of each queue run at once: `[queues.NAME] at_most`.
    pub queues: BTreeMap<QueueName, AtLine<u32>>,
    /// What starts attempts, by name: `[engines.NAME]`.
    pub engines: BTreeMap<EngineName, AtLine<EngineSection>>,
}

/// Reads a settings file. `name` is the file's name in messages.
///
/// # Errors
/// Every mistake of the file, in order. A file that is too large, not UTF-8 or not TOML has that mistake alone.
pub fn parse(source: &[u8], name: &str) -> Result<SettingsFile, Vec<RunFileError>> {
    let mut file = SettingsFile::default();
    let kind = FlatFile { bytes_max: SETTINGS_BYTES_MAX, is: "a settings file", key: "setting", keys: &KEYS };
    let line_at = |at: usize| source.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    kind.read(source, name, |key, value, line| match key {
        "queues" => queues(value, &line_at).map(|found| file.queues = found),
        "engines" => engines::engines(value, &line_at).map(|found| file.engines = found),
        _ => file.set(key, value, line),
    })?;
    Ok(file)
}

impl SettingsFile {
    fn set(&mut self, key: &str, value: &DeValue<'_>, line: usize) -> Result<(), Mistake> {
        match key {
            "home" => self.home = Some(AtLine { value: text(value)?, line }),
            "ledger" => self.ledger = Some(AtLine { value: text(value)?, line }),
            "color" => self.color = Some(AtLine { value: flag(value)?, line }),
            "columns_max" => self.columns_max = Some(AtLine { value: count(value)?, line }),
            "media_mib_max" => self.media_mib_max = Some(AtLine { value: count(value)?, line }),
            "page_mib_max" => self.page_mib_max = Some(AtLine { value: count(value)?, line }),
            "follow_links" => self.follow_links = Some(AtLine { value: flag(value)?, line }),
            "webhook" => self.webhook = Some(AtLine { value: web_address(value)?, line }),
            _ => return Err(Mistake::Key),
        }
        Ok(())
    }
}

/// What `read` makes of each section of a key, such as `[queues.NAME]`.
fn sections<T>(
    value: &DeValue<'_>,
    example: &str,
    read: impl Fn(&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>) -> Result<T, Vec<MistakeInside>>,
) -> Result<Vec<T>, Mistake> {
    let DeValue::Table(table) = value else { return Err(Mistake::value(example)) };
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for (name, section) in table.iter() {
        match read(name, section) {
            Ok(section) => found.push(section),
            Err(inside) => mistakes.extend(inside),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(Mistake::Inside(mistakes)) }
}

/// The bounds of queues, with their lines.
fn queues(
    value: &DeValue<'_>,
    line_at: &dyn Fn(usize) -> usize,
) -> Result<BTreeMap<QueueName, AtLine<u32>>, Mistake> {
    let example = "a table for each queue, such as `[queues.gpu]` with `at_most = 2`";
    let found = sections(value, example, |name, queue| {
        let (name, value, at) = bound(name, queue)?;
        Ok((name, AtLine { value, line: line_at(at) }))
    })?;
    Ok(found.into_iter().collect())
}

/// A queue with its bound and the byte at which that is.
fn bound(
    name: &Spanned<DeString<'_>>,
    queue: &Spanned<DeValue<'_>>,
) -> Result<(QueueName, u32, usize), Vec<MistakeInside>> {
    let inside = |span, message, hint| MistakeInside { span, message, hint };
    let queue_name = name
        .get_ref()
        .parse::<QueueName>()
        .map_err(|error| vec![inside(name.span(), format!("{error}"), None)])?;
    let DeValue::Table(keys) = queue.get_ref() else {
        let message = format!("`queues.{queue_name}` must be a table with `{AT_MOST}`");
        return Err(vec![inside(queue.span(), message, None)]);
    };
    let (mut mistakes, mut found) = (Vec::new(), None);
    for (key, value) in keys.iter() {
        if key.get_ref() != AT_MOST {
            let hint = match nearest(key.get_ref(), [AT_MOST].into_iter()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("a queue has only `{AT_MOST}`"),
            };
            let message = format!("unknown setting `{}` in `queues.{queue_name}`", key.get_ref());
            mistakes.push(inside(key.span(), message, Some(hint)));
        } else if let Ok(at_most) = count(value.get_ref()) {
            found = Some((at_most, value.span().start));
        } else {
            let message =
                format!("`queues.{queue_name}.{AT_MOST}` must be a whole number from 1 to 4294967295");
            mistakes.push(inside(value.span(), message, None));
        }
    }
    match found {
        Some((value, at)) if mistakes.is_empty() => Ok((queue_name, value, at)),
        None if mistakes.is_empty() => {
            let message = format!("`queues.{queue_name}.{AT_MOST}` is missing");
            let hint = format!("add `{AT_MOST} = 2`, or remove the section: one run at once is the default");
            Err(vec![inside(name.span(), message, Some(hint))])
        }
        _ => Err(mistakes),
    }
}

/// Whether a text is an address of HTTP.
#[must_use]
pub fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}

fn web_address(value: &DeValue<'_>) -> Result<String, Mistake> {
    let must_be = "an address such as `https://hooks.example.org/…`";
    text(value).ok().filter(|text| is_web_address(text)).ok_or(Mistake::value(must_be))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runfile::LaunchOn;

    /// Proves that every key is read, with its line.
    #[test]
    fn every_key_is_read() {
        let text = "# of this machine\nhome = \"/data\"\nledger = \"postgres://db/t\"\ncolor = false\n\ncolumns_max = 20_000\n\
                    media_mib_max = 1\npage_mib_max = 0x10\nfollow_links = true\nwebhook = \"https://h.example/x\"\n\
                    [queues.gpu]\nat_most = 2\n[queues]\nnight = { at_most = 3 }\n[engines.local]\ngpus = 2\n";
        let file = parse(text.as_bytes(), "config.toml").unwrap();
        let settings = EngineSettings { kind: LaunchOn::Local, gpus: Some(2) };
        let engine = EngineSection { settings, kind_line: None, gpus_line: Some(16) };
        let expected = SettingsFile {
            home: Some(AtLine { value: "/data".into(), line: 2 }),
            ledger: Some(AtLine { value: "postgres://db/t".into(), line: 3 }),
            color: Some(AtLine { value: false, line: 4 }),
            columns_max: Some(AtLine { value: 20_000, line: 6 }),
            media_mib_max: Some(AtLine { value: 1, line: 7 }),
            page_mib_max: Some(AtLine { value: 16, line: 8 }),
            follow_links: Some(AtLine { value: true, line: 9 }),
            webhook: Some(AtLine { value: "https://h.example/x".into(), line: 10 }),
            queues: [("gpu", 2, 12), ("night", 3, 14)]
                .map(|(name, value, line)| (name.parse().unwrap(), AtLine { value, line }))
                .into(),
            engines: [("local".parse().unwrap(), AtLine { value: engine, line: 15 })].into(),
        };
        assert_eq!(file, expected);
        let is_there = |key: &&str| text.contains(&format!("{key} = ")) || text.contains(&format!("[{key}"));
        assert!(KEYS.iter().all(is_there));
        assert_eq!(parse(b"", "config.toml").unwrap(), SettingsFile::default());
    }

    /// Proves that all mistakes are shown at once, each with its line and what to write.
    #[test]
    fn mistakes_have_a_line_and_a_hint() {
        let text = "hoem = \"x\"\nledger = \"\"\ncolor = \"yes\"\ncolumns_max = 0\npage_mib_max = 5_000_000_000\nwebhook = \"h.example\"\n[section]\n";
        let errors = parse(text.as_bytes(), "config.toml").unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "config.toml:1:1: unknown setting `hoem` (hint: did you mean `home`?)",
                "config.toml:2:10: `ledger` must be a string that is not empty",
                "config.toml:3:9: `color` must be `true` or `false`",
                "config.toml:4:15: `columns_max` must be a whole number from 1 to 4294967295",
                "config.toml:5:16: `page_mib_max` must be a whole number from 1 to 4294967295",
                "config.toml:6:11: `webhook` must be an address such as `https://hooks.example.org/…`",
                "config.toml:7:2: unknown setting `section` (hint: the settings are `home`, `ledger`, `color`, \
                 `columns_max`, `media_mib_max`, `page_mib_max`, `follow_links`, `webhook`, `queues`, `engines`)",
            ]
        );
    }

    /// Proves that a mistake in the section of a queue is shown with its place and what to write, and of several sections each one.
    #[test]
    fn mistakes_of_queues_are_shown() {
        for (text, expected) in [
            (
                "queues = 2\n",
                "config.toml:1:10: `queues` must be a table for each queue, such as `[queues.gpu]` with `at_most = 2`",
            ),
            ("[queues]\ngpu = 2\n", "config.toml:2:7: `queues.gpu` must be a table with `at_most`"),
            (
                "[queues.gpu]\nat_mots = 2\n",
                "config.toml:2:1: unknown setting `at_mots` in `queues.gpu` (hint: did you mean `at_most`?)",
            ),
            (
                "[queues.gpu]\nat_most = 0\n",
                "config.toml:2:11: `queues.gpu.at_most` must be a whole number from 1 to 4294967295",
            ),
        ] {
            let errors = parse(text.as_bytes(), "config.toml").unwrap_err();
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        }
        let several = "[queues.gpu]\nat_most = 0\n[queues.y]\nat_most = -2\nmost = 1\n[queues.ok]\nat_most = 1\n[queues.z]\nmost = 1\n";
        let errors = parse(several.as_bytes(), "config.toml").unwrap_err();
        assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [2, 4, 5, 9], "{errors:?}");
        let shown = |text: &str| parse(text.as_bytes(), "config.toml").unwrap_err()[0].to_string();
        assert!(shown("[queues.gpu]\n").contains("`queues.gpu.at_most` is missing"));
        assert!(shown("[queues.\"../x\"]\nat_most = 1\n").contains("cannot be the name of a queue"));
    }

    /// Proves that a file that is too large, not UTF-8 or not TOML is refused with its place.
    #[test]
    fn what_cannot_be_parsed_is_refused() {
        let message = |source: &[u8]| parse(source, "config.toml").unwrap_err()[0].to_string();
        assert!(message(&vec![b'#'; SETTINGS_BYTES_MAX + 1]).contains("more than 65536 bytes"));
        assert!(
            message(b"color = true\n# M\xFC\n").starts_with("config.toml:2:4: the file is not valid UTF-8")
        );
        assert!(
            message(b"color = true\nhome = here\n")
                .starts_with("config.toml:2:8: the file is not valid TOML")
        );
    }
}
