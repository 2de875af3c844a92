//! Sections, facts and lists of an answer that is a page of text.

use std::fmt::Display;

use crate::printer::{Printer, StyledLine, Tone};
use crate::units::counted;

pub(super) fn section(printer: Printer, title: &str) {
    printer.line("");
    printer.line(printer.tone(Tone::Bold, title));
}

pub(super) fn fact(printer: Printer, name: &str, value: impl Into<StyledLine>) {
    printer.line(StyledLine::from(format!("  {name:<12}")) + value);
}

/// A section with a line for each fact; nothing without any.
pub(super) fn facts(printer: Printer, title: &str, lines: Vec<(String, String)>) {
    if lines.is_empty() {
        return;
    }
    section(printer, title);
    for (name, text) in lines {
        fact(printer, &name, &text);
    }
}

/// Lines of a section.
pub(super) fn lines<T: Display>(printer: Printer, lines: impl IntoIterator<Item = T>) {
    lines.into_iter().for_each(|line| printer.line(format!("  {line}")));
}

/// A section with a list; nothing if it is empty.
pub(super) fn listed<T>(printer: Printer, title: &str, items: &[T], print: impl FnOnce(Printer, &[T])) {
    if !items.is_empty() {
        section(printer, title);
        print(printer, items);
    }
}

/// The newest of a list, and a line about the others, which are in this field of the JSON.
pub(super) fn newest<'i, T>(printer: Printer, items: &'i [T], most: usize, field: &str) -> &'i [T] {
    let left_out = items.len().saturating_sub(most);
    if left_out > 0 {
        printer.line(format!("  … {left_out} earlier ones (`{field}` of `--json` has all)"));
    }
    &items[left_out..]
}

/// How many of a list are not shown, and the field of the JSON that has all.
pub(super) fn more(printer: Printer, left_out: usize, field: &str) {
    if left_out > 0 {
        printer.line(printer.tone(Tone::Dim, format!("  … {left_out} more (`{field}` of `--json` has all)")));
    }
}

pub(super) fn optional(printer: Printer, name: &str, value: Option<String>) {
    if let Some(value) = value {
        fact(printer, name, value);
    }
}

/// How many entries of a list come after those that are shown, and how they are listed.
pub(super) fn note_more(printer: Printer, count: u64, what: &str, next: Option<impl Display>) {
    if let Some(next) = next {
        let more = counted(count, what);
        printer.note(format!("{more} after these; list them with the same options and --after {next}"));
    }
}
