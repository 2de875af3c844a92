//! A Python dict as `print` shows it, such as `{'loss': 0.5, 'epoch': np.float64(1.0)}`.

use serde_json::{Map, Value};

use super::lexical::commas;
use super::lexical::tokens::value_of;
use super::objects;

/// Dicts deeper than this are not read.
const DEPTH_MAX: usize = 32;
/// How Python shows collections that are dicts.
const COLLECTIONS: [&str; 3] = ["OrderedDict(", "defaultdict(", "Counter("];

/// The dict with its numbers, also those in a string (`'0.5'`, as Hugging Face prints them) or in a call (`tensor(0.5,
/// device='cuda:0')`), and its texts. Other values are null. `None` when it is not a whole dict.
pub(super) fn read_dict(line: &str) -> Option<Map<String, Value>> {
    let (dict, rest) = read_first_dict(line)?;
    rest.trim().is_empty().then_some(dict)
}

/// The dict that a text begins with, and what follows it.
pub(super) fn read_first_dict(text: &str) -> Option<(Map<String, Value>, &str)> {
    let mut reader = Reader { rest: text };
    Some((reader.dict(0)?, reader.rest))
}

/// The dicts of a list that ends a text, and what is before it: `[{'epoch': 1, 'loss': 0.5}, …]`. A single one behind
/// words is read as text.
pub(super) fn read_last_dicts(text: &str) -> Option<(&str, Vec<Map<String, Value>>)> {
    let text = text.trim_end();
    let begin = Some(text).filter(|text| text.ends_with("}]"))?.find("[{")?;
    let (mut reader, mut dicts) = (Reader { rest: &text[begin + 1..] }, Vec::new());
    loop {
        dicts.push(reader.dict(0)?);
        if reader.take(']') {
            break;
        }
        if !reader.take(',') {
            return None;
        }
    }
    let before = &text[..begin];
    (reader.rest.is_empty() && (dicts.len() > 1 || before.trim().is_empty())).then_some((before, dicts))
}

/// The dict of a collection that ends a text, and what is before it: `test: OrderedDict([('acc', 0.5)])`,
/// `defaultdict(<class 'float'>, {'acc': 0.5})`.
pub(super) fn read_last_collection(text: &str) -> Option<(&str, Map<String, Value>)> {
    let inside = text.strip_suffix(')')?;
    let begin = COLLECTIONS.iter().find_map(|name| inside.find(name).map(|at| (at, at + name.len())));
    let (begin, behind) = begin?;
    let content = &inside[behind..];
    let dict = match content.strip_prefix('[') {
        Some(pairs) => Reader { rest: pairs }.pairs()?,
        None => read_dict(&content[content.find('{')?..])?,
    };
    Some((&text[..begin], dict))
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, expected: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Map<String, Value>> {
        let mut fields = Map::new();
        if depth >= DEPTH_MAX || !self.take('{') {
            return None;
        }
        while !self.take('}') {
            let key = self.key()?;
            if !self.take(':') {
                return None;
            }
            let step = self.step_of_all(&key);
            let value = self.value(depth)?;
            fields.insert(key, value);
            fields.extend(step);
            if !self.take(',') && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
        Some(fields)
    }

    /// The rest of a list of names and values: `('acc', 0.5), ('f1', 0.25)]`.
    fn pairs(&mut self) -> Option<Map<String, Value>> {
        let mut fields = Map::new();
        while !self.take(']') {
            if !self.take('(') {
                return None;
            }
            let key = self.text()?;
            if !self.take(',') {
                return None;
            }
            let value = self.value(0)?;
            fields.insert(key, value);
            if !self.take(')') || !(self.take(',') || self.rest.starts_with(']')) {
                return None;
            }
        }
        self.rest.is_empty().then_some(fields)
    }

    /// The step of a field that has it beside the number of steps: `'global_step/max_steps': '10/300'`.
    fn step_of_all(&self, key: &str) -> Option<(String, Value)> {
        let (name, _) = key.split_once('/').filter(|(name, _)| objects::is_step(name))?;
        let text = Reader { rest: self.rest }.text()?;
        let (step, total) = text.split_once('/')?;
        total.parse::<u64>().ok()?;
        Some((name.to_owned(), step.parse::<u64>().ok()?.into()))
    }

    fn key(&mut self) -> Option<String> {
        self.text().or_else(|| Some(self.word()).filter(|word| !word.is_empty()).map(str::to_owned))
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if self.rest.trim_start().starts_with('{') {
            return self.dict(depth + 1).map(Value::Object);
        }
        if let Some(text) = self.text() {
            // `'100,150,200'` is a list.
            let pointed = commas::pointed(text.trim());
            let number = value_of(if pointed.contains('.') { &pointed } else { text.trim() });
            return Some(number.map_or(Value::String(text), objects::number));
        }
        let word = self.word().to_owned();
        match self.rest.chars().next() {
            Some('(' | '[') => {
                let inside = self.brackets()?;
                let first = inside.trim_start_matches('[').split([',', ')', ']']).next().unwrap_or("");
                let number = value_of(first.trim()).map_or(Value::Null, objects::number);
                // `array([0.5])` is a number, `array([0.5, 0.25])` and `[0.5]` are lists.
                let is_list = inside.starts_with('[') && inside.contains(',');
                Some(if is_list || word.is_empty() { Value::Null } else { number })
            }
            _ if word.is_empty() => None,
            _ => Some(value_of(&word).map_or(Value::Null, objects::number)),
        }
    }

    /// A quoted text; escapes stay as they are, only an escaped quote does not end it.
    fn text(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|letter| matches!(letter, '\'' | '"'))?;
        let mut escaped = false;
        let inside = &self.rest[1..];
        let end = inside.find(|letter| {
            let ends = letter == quote && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        })?;
        self.rest = &inside[end + 1..];
        Some(inside[..end].to_owned())
    }

    /// A number, a name, `None`, `True`; empty if something else follows.
    fn word(&mut self) -> &str {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|letter: char| !letter.is_alphanumeric() && !"+-._".contains(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// The content of brackets of any kind, without the outer ones.
    fn brackets(&mut self) -> Option<String> {
        let (mut depth, mut end) = (0usize, None);
        for (at, letter) in self.rest.char_indices() {
            match letter {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                end = Some(at);
                break;
            }
        }
        let end = end?;
        let inside = self.rest[1..end].to_owned();
        self.rest = &self.rest[end + 1..];
        Some(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(line: &str) -> Option<Vec<(String, f64)>> {
        read_dict(line).map(|dict| objects::numbers_of(dict).values)
    }

    /// Proves that numbers are found as Python, NumPy, PyTorch and Hugging Face print them.
    #[test]
    fn dicts_as_python_prints_them() {
        let found = numbers(
            "{'loss': 0.5, \"lr\": '1e-3', 'acc': np.float64(0.25), 'gn': tensor(2., device='cuda:0'), 'ok': True, 'n': None, 'ids': [1, 2], 'eval': {'f1': 1}, 'name': 'it\\'s {', 7: 1}",
        );
        let expected =
            [("7", 1.0), ("acc", 0.25), ("eval/f1", 1.0), ("gn", 2.0), ("loss", 0.5), ("lr", 0.001)];
        assert_eq!(found.unwrap(), expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(numbers("{'loss': nan}").unwrap()[0].1.is_nan());
        assert_eq!(numbers("{'low': -inf,}").unwrap()[0].1, f64::NEG_INFINITY);
    }

    /// Proves that an incomplete dict or something else is refused: a set, a torn line, text after it, endless nesting.
    #[test]
    fn what_is_no_dict() {
        for line in ["{1, 2}", "{'loss': 0.5", "{'loss': } x", "{'a': 1} b", "{'a' 1}", "{'a': (1}"] {
            assert_eq!(numbers(line), None, "{line}");
        }
        assert_eq!(numbers(&"{'a':".repeat(10_000)), None);
    }
}
