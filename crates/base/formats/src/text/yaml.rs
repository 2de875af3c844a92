//! The part of YAML that configurations are written in: mappings and lists by their indentation, each value in one line.

use std::collections::BTreeMap;

/// A deeper section is not read.
const DEPTH_MAX: usize = 32;

/// What a text says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leaves {
    /// Values as they are written, with their ways, `a.b[0].c`, in order.
    pub found: Vec<(String, String)>,
    /// Lines that are not read: anchors, objects, texts over several lines, tabs, and what has neither a name nor a place in a list.
    pub left_out: u64,
}

/// Reads a text line by line.
#[must_use]
pub fn leaves(text: &str) -> Leaves {
    let (mut leaves, mut open) = (Leaves::default(), OpenSections::default());
    // What is indented more than a line that is not read belongs to it.
    let mut passed: Option<usize> = None;
    for line in text.lines() {
        let line = without_comment(line).trim_end();
        let body = line.trim_start_matches(' ');
        let is_begin = body == "---" && leaves.found.is_empty() && open.sections.is_empty();
        if body.is_empty() || body == "{}" || is_begin {
            continue;
        }
        let indent = line.len() - body.len();
        let is_passed = passed.is_some_and(|outer| indent > outer);
        if is_passed || open.take(indent, body, &mut leaves.found).is_none() {
            leaves.left_out += 1;
            passed = passed.filter(|_| is_passed).or(Some(indent));
        } else {
            passed = None;
        }
    }
    leaves
}

/// A value without its quotation marks.
#[must_use]
pub fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(value)
}

/// The sections that are open, each with its indentation, and how many items each list has.
#[derive(Default)]
struct OpenSections {
    sections: Vec<(usize, String)>,
    items: BTreeMap<String, usize>,
}

impl OpenSections {
    /// None: the line is not read.
    fn take(&mut self, mut indent: usize, body: &str, found: &mut Vec<(String, String)>) -> Option<()> {
        if body.starts_with(['\t', '%', '?', '&', '*', '{', '[', '}', ']']) || body == "---" {
            return None;
        }
        let mut rest = body;
        while let Some(item) = rest.strip_prefix("- ").or_else(|| (rest == "-").then_some("")) {
            let is_over = |(outer, name): &mut (usize, String)| {
                *outer > indent || (*outer == indent && name.starts_with('['))
            };
            while self.sections.pop_if(is_over).is_some() {}
            let number = self.items.entry(way_of(&self.sections)).or_default();
            self.sections.push((indent, format!("[{number}]")));
            *number += 1;
            indent += rest.len() - item.trim_start().len();
            rest = item.trim_start();
        }
        if rest.is_empty() {
            return Some(());
        }
        let Some((name, value)) = named(rest) else {
            let is_value = rest.len() < body.len() && is_plain(rest);
            return is_value.then(|| found.push((way_of(&self.sections), rest.to_owned())));
        };
        while self.sections.pop_if(|(outer, _)| *outer >= indent).is_some() {}
        if self.sections.len() > DEPTH_MAX || !is_plain(value) {
            return None;
        }
        self.sections.push((indent, name.to_owned()));
        if !value.is_empty() {
            found.push((way_of(&self.sections), value.to_owned()));
        }
        Some(())
    }
}

/// `a.b[0].c`.
fn way_of(open: &[(usize, String)]) -> String {
    let mut way = String::new();
    for (_, name) in open {
        if !way.is_empty() && !name.starts_with('[') {
            way.push('.');
        }
        way.push_str(name);
    }
    way
}

fn named(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    let name = unquoted(name);
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-./@ ".contains(letter));
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

    /// Proves that sections and lists give their ways, that comments are none of a value, and that what is not read is
    /// counted with what belongs to it, while the rest is read.
    #[test]
    fn what_is_read_has_its_way() {
        let text = "---\n'a':\n  b: 1 # one\n  c:\n  - 2\n  - d: 3\n    e: '#4'\nf: |\n  text\n  more\ng: [5]\nwords\n";
        let Leaves { found, left_out } = leaves(text);
        let found: Vec<String> = found.iter().map(|(way, value)| format!("{way}={value}")).collect();
        assert_eq!(found, ["a.b=1", "a.c[0]=2", "a.c[1].d=3", "a.c[1].e='#4'", "g=[5]"]);
        assert_eq!(left_out, 4);
        assert_eq!(leaves("{}\n"), Leaves::default());
        assert_eq!(["'a'", "\"b\"", "c'", "''"].map(unquoted), ["a", "b", "c'", ""]);
    }
}
