//! What well-known programs print, in values of our own, and what is read from it.

mod language;
mod scripts;
mod tools;
mod vision;

use super::*;
use crate::record::unmarked;

/// A program's output, the metrics that are read from it with their steps, and the settings.
struct Program {
    name: &'static str,
    prints: &'static str,
    metrics: &'static [&'static str],
    settings: &'static [&'static str],
}

const NONE: &[&str] = &[];

/// Every program.
fn programs() -> impl Iterator<Item = &'static Program> {
    [language::PROGRAMS, vision::PROGRAMS, tools::PROGRAMS, scripts::PROGRAMS].into_iter().flatten()
}

/// What each of the programs prints.
pub(super) fn prints() -> impl Iterator<Item = &'static str> {
    programs().map(|program| program.prints)
}

fn read(prints: &str) -> (Vec<String>, Vec<String>) {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.push(Printed::Stdout, prints.as_bytes(), |metrics| found.push(metrics.clone()));
    reader.finish(|metrics| found.push(metrics.clone()));
    let shown = |metrics: &PrintedMetrics| {
        let values: Vec<String> =
            metrics.values.iter().map(|(name, value)| format!("{name}={}", unmarked(*value))).collect();
        format!("{}: {}", metrics.step, values.join(" "))
    };
    let settings = reader.take_settings().into_iter().map(|(name, value)| format!("{name}={value}"));
    (found.iter().map(shown).collect(), settings.collect())
}

/// Proves for each program which metrics are read, at which step, and which settings: totals, places in source files,
/// clocks and echoed settings are no metrics.
#[test]
fn programs_are_understood() {
    let mut wrong = Vec::new();
    for program in programs() {
        let (metrics, settings) = read(program.prints);
        if metrics != program.metrics || settings != program.settings {
            wrong.push(format!("{}:\n  {metrics:#?}\n  {settings:?}", program.name));
        }
    }
    assert!(programs().count() >= 150);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
