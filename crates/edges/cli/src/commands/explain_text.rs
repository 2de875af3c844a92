//! Sections and facts of an explanation in the terminal.

use crate::printer::{Printer, Shown, Tone};

pub(super) fn section(printer: Printer, title: &str) {
    printer.line("");
    printer.line(printer.tone(Tone::Bold, title));
}

pub(super) fn fact(printer: Printer, name: &str, value: impl Into<Shown>) {
    printer.line(Shown::from(format!("  {name:<12}")) + value);
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

pub(super) fn optional(printer: Printer, name: &str, value: Option<String>) {
    if let Some(value) = value {
        fact(printer, name, value);
    }
}
