//! Configurations as Hydra and Lightning write them: YAML in blocks, flattened with full stops as the parameters of a command are.

/// At most so many are taken of one file.
const SETTINGS_MAX: usize = 256;
/// Longer values are cut.
const VALUE_BYTES_MAX: usize = 256;
/// Longer names are left out.
const NAME_BYTES_MAX: usize = 200;

/// What a file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names and values.
    pub named: Vec<(String, String)>,
    /// Settings that are too many, and lines that are not read.
    pub left_out: u64,
}

impl Settings {
    fn put(&mut self, name: String, value: &str) {
        if self.named.len() >= SETTINGS_MAX || name.len() > NAME_BYTES_MAX || name.is_empty() {
            self.left_out += 1;
            return;
        }
        let end = value.floor_char_boundary(VALUE_BYTES_MAX);
        self.named.push((name, value[..end].to_owned()));
    }
}

/// The sections that are open, each with its indentation, and the list that is read.
#[derive(Default)]
struct Open {
    sections: Vec<(usize, String)>,
    list: Option<(String, Vec<String>)>,
    /// Lines that are indented more belong to a text in several lines.
    text: Option<usize>,
}

/// Reads a configuration. The values of a list are one value, as in a command.
#[must_use]
pub fn read_settings(text: &str) -> Settings {
    let (mut settings, mut open) = (Settings::default(), Open::default());
    for line in text.lines() {
        let body = line.trim_start_matches(' ');
        if body.is_empty() || body.starts_with('#') || body.starts_with("---") {
            continue;
        }
        open.line(line.len() - body.len(), body.trim_end(), &mut settings);
    }
    open.end_list(&mut settings);
    settings
}

impl Open {
    fn line(&mut self, indent: usize, body: &str, settings: &mut Settings) {
        if self.text.is_some_and(|outer| indent > outer) {
            settings.left_out += 1;
            return;
        }
        self.text = None;
        if let Some(item) = body.strip_prefix("- ") {
            return self.item(indent, item, settings);
        }
        self.end_list(settings);
        while self.sections.pop_if(|(outer, _)| *outer >= indent).is_some() {}
        let Some((name, value)) = named(body) else {
            settings.left_out += u64::from(body != "{}");
            return;
        };
        let path: String = self.sections.iter().map(|(_, outer)| format!("{outer}.")).collect();
        let path = path + name;
        match value {
            "" => {
                self.list = Some((path, Vec::new()));
                self.sections.push((indent, name.to_owned()));
            }
            // A text in several lines, or an object of Python.
            _ if value.starts_with(['|', '>', '!', '&']) => {
                self.text = Some(indent);
                settings.left_out += 1;
            }
            _ => settings.put(path, unquoted(value)),
        }
    }

    fn item(&mut self, indent: usize, item: &str, settings: &mut Settings) {
        match &mut self.list {
            Some((_, items)) if named(item).is_none() && items.len() < SETTINGS_MAX => {
                items.push(unquoted(item).to_owned());
            }
            // A list of sections has no parameters.
            _ => {
                self.text = Some(indent);
                settings.left_out += 1;
            }
        }
    }

    fn end_list(&mut self, settings: &mut Settings) {
        if let Some((name, items)) = self.list.take().filter(|(_, items)| !items.is_empty()) {
            settings.put(name, &items.join(" "));
        }
    }
}

/// The overrides of a command of Hydra: `- model.depth=3`.
#[must_use]
pub fn read_overrides(text: &str) -> Settings {
    let mut settings = Settings::default();
    for item in text.lines().filter_map(|line| line.trim().strip_prefix("- ")) {
        match unquoted(item).split_once('=') {
            Some((name, value)) => settings.put(name.trim_start_matches('+').to_owned(), value),
            None => settings.left_out += 1,
        }
    }
    settings
}

/// `name: value`, or `name:` before a section.
fn named(body: &str) -> Option<(&str, &str)> {
    let (name, value) = match body.strip_suffix(':') {
        Some(name) => (name, ""),
        None => body.split_once(": ")?,
    };
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-' | '/' | '@');
    let name = unquoted(name);
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, value.trim()))
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(value)
}
