//! Metrics of a script without Trackway's SDK: what it prints while it trains.
//!
//! Read are JSON objects and Python dicts, one per line; progress bars of tqdm, Lightning and Keras, which draw over
//! themselves; and free text such as `step 100: loss 0.5, lr=1e-3`. [`PrintedReader`] takes both outputs as they come
//! and gives values with their steps. `docs/tracking.md` documents what is taken and what is not.
//!
//! Nothing is taken that only looks like a metric: free text counts when it names a step or a usual measure of
//! training. No bytes make it panic, and all it holds is bounded.

mod bar;
mod dicts;
mod fields;
mod forms;
mod left_out;
mod lexical;
mod lines;
mod message;
mod objects;
mod pretty;
#[cfg(test)]
mod programs;
mod python;
mod reader;
mod settings;
mod steps;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod tools;

use std::sync::Arc;

use trackway_core::MetricStep;

use dicts::SeenValues;
pub(crate) use fields::{is_measure, json_fields, part_prefix, step_and_numbers, with_prefix};
use forms::known::KnownForms;
use forms::last::LastForms;
use forms::quiet::QuietForms;
use forms::run::Collected;
use left_out::LeftOutCounts;
pub use left_out::{LeftOut, LeftOutKind};
use lexical::commas::SeenCommas;
pub(crate) use lines::Lines;
use message::{REPEATING, read_logged, read_message};
use pretty::OpenObject;
use reader::above::{Evaluated, List, Part};
use settings::yaml::YamlBlock;
use settings::{OpenCall, Settings};
pub use steps::PrintedCourse;
use steps::Steps;
use tables::Tables;

/// A longer line has no metrics.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// An object over several lines has so many at most.
const OBJECT_LINES_MAX: usize = 200;
/// At most so many values are taken from one line.
const VALUES_MAX: usize = 256;
/// Longer names are no metrics.
const NAME_BYTES_MAX: usize = 200;

/// Which of a process's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// Standard output.
    Stdout,
    /// Standard error: Python's logging and tqdm write there.
    Stderr,
}

/// Values of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrintedMetrics {
    /// The step that was printed with them or, without one, the last known step of the script. Below 0 are values from
    /// before the training.
    pub step: MetricStep,
    /// Names and values, in the order of printing; of JSON objects in the order of the names.
    pub values: Vec<(String, f64)>,
    /// The step counts something else than the training goes through, such as the episodes of an evaluation.
    pub counts_apart: bool,
    /// Of one reader, all that have this number have the same names in the same order. Nothing: that is not known.
    pub names: Option<u32>,
}

impl PrintedMetrics {
    fn of(step: u64, values: Vec<(String, f64)>) -> Self {
        Self { step: metric_step(step), values, ..Self::default() }
    }
}

/// A step as that of a value.
fn metric_step(step: u64) -> MetricStep {
    step.try_into().unwrap_or(MetricStep::MAX)
}

/// Values of the same names at one step after the other.
#[derive(Debug, Clone, Copy)]
pub struct PrintedRun<'r> {
    /// Of one reader, all that have this number have the same names in the same order.
    pub number: u32,
    pub names: &'r [String],
    /// The steps, as they would be those of [`PrintedMetrics`].
    pub steps: &'r [u64],
    /// The values of the first step, in the order of the names, then those of the next.
    pub values: &'r [f64],
}

impl PrintedRun<'_> {
    /// Gives the values of one step after the other.
    pub fn each(&self, mut found: impl FnMut(&PrintedMetrics)) {
        let values = self.names.iter().map(|name| (name.clone(), 0.0)).collect();
        let mut metrics = PrintedMetrics { names: Some(self.number), ..PrintedMetrics::of(0, values) };
        for (step, values) in self.steps.iter().zip(self.values.chunks_exact(self.names.len().max(1))) {
            metrics.step = metric_step(*step);
            metrics.values.iter_mut().zip(values).for_each(|((_, value), read)| *value = *read);
            found(&metrics);
        }
    }
}

/// What is found in an output.
#[derive(Debug, Clone, Copy)]
pub enum PrintedFound<'r> {
    /// Values of one step.
    One(&'r PrintedMetrics),
    /// Values of several lines of one form.
    Run(PrintedRun<'r>),
}

/// Reads both outputs of a script as they come.
#[derive(Debug, Default)]
pub struct PrintedReader {
    outputs: [Lines; 2],
    reading: ReaderState,
}

/// What was understood so far.
#[derive(Debug, Default)]
struct ReaderState {
    steps: Steps,
    tables: [Tables; 2],
    settings: Settings,
    yaml: [YamlBlock; 2],
    calls: [OpenCall; 2],
    /// Objects over several lines.
    objects: [OpenObject; 2],
    seen: Arc<SeenValues>,
    forms: LastForms,
    quiet: QuietForms,
    known: KnownForms,
    commas: [SeenCommas; 2],
    /// The last line said where the script is and nothing else, or is indented below one that did.
    is_below_heading: [bool; 2],
    /// The last line was a drawing of a bar of Rich, or is indented below one.
    is_below_drawing: [bool; 2],
    lists: [List; 2],
    /// The last line had a place and measures, or is indented below one that did: so much was that one indented.
    continued: [Option<usize>; 2],
    /// So much is the line indented that is being read.
    indent: usize,
    rows: [lines::Rows; 2],
    evaluated: [Evaluated; 2],
    /// The part of the data that a heading names for the indented lines below it.
    part: [Option<Part>; 2],
    /// The last line, if a rule below it may make it a title.
    above: [Vec<u8>; 2],
    only_json: bool,
    /// Which line is being read.
    place: Option<(Printed, u64)>,
    left_out: LeftOutCounts,
    collected: Collected,
}

impl PrintedReader {
    /// From now on only JSON objects count: the script records its metrics itself, and what it prints for people,
    /// rounded, would duplicate them. Objects were printed to be read.
    pub fn read_only_json(&mut self) {
        self.reading.only_json = true;
    }

    /// How the steps are counted, for the next attempt.
    #[must_use]
    pub fn course(&self) -> PrintedCourse {
        self.reading.steps.course()
    }

    /// Counts on from an earlier attempt; to be called before the first line.
    pub fn count_on(&mut self, from: PrintedCourse) {
        self.reading.steps.count_on(from);
    }

    /// Takes the next bytes of one output; calls `found` for the values in it. Where a script draws a bar on one
    /// output and prints values without a step on the other, the bar's output must be pushed first.
    pub fn push(&mut self, output: Printed, bytes: &[u8], mut found: impl FnMut(&PrintedMetrics)) {
        self.push_runs(output, bytes, &mut |these| match these {
            PrintedFound::One(metrics) => found(metrics),
            PrintedFound::Run(run) => run.each(&mut found),
        });
    }

    /// The same, which gives the values of many lines of one form together.
    pub fn push_runs(&mut self, output: Printed, bytes: &[u8], found: &mut dyn FnMut(PrintedFound<'_>)) {
        let (reading, mut rest) = (&mut self.reading, bytes);
        let seen = Arc::clone(&reading.seen);
        let found = &mut |these: PrintedFound<'_>| {
            seen.see(&these);
            found(these);
        };
        if reading.steps.awaits_bar() && !reading.only_json {
            let open = self.outputs[1 - output as usize].open();
            reading.look_at(open, &mut |metrics| found(PrintedFound::One(metrics)));
        }
        let lines = &mut self.outputs[output as usize];
        while lines.push_line(&mut rest, |number, line| {
            reading.numbered((output, number), line, &mut |metrics| found(PrintedFound::One(metrics)));
        }) {
            if reading.may_read_on(output) {
                let passed = reading.read_on(output, rest, found);
                lines.pass(passed.newlines);
                rest = &rest[passed.bytes..];
            }
        }
    }

    /// How much of the lines so far was not read, of each kind and output.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut counts = self.reading.left_out.clone();
        for (output, lines) in [Printed::Stdout, Printed::Stderr].into_iter().zip(&self.outputs) {
            if let Some((count, first)) = lines.long() {
                counts.add(LeftOutKind::LongLines, count, (output, first));
            }
        }
        counts.list()
    }

    /// The settings that the script printed before it began to train, by name, each once; `total_steps` is the number
    /// of steps that it means to make.
    pub fn take_settings(&mut self) -> Vec<(String, String)> {
        self.reading.settings.take()
    }

    /// The last lines may lack their ends.
    pub fn finish(&mut self, mut found: impl FnMut(&PrintedMetrics)) {
        let reading = &mut self.reading;
        for (place, lines) in self.outputs.iter_mut().enumerate() {
            let output = if place == 0 { Printed::Stdout } else { Printed::Stderr };
            lines.finish(|number, line| reading.numbered((output, number), line, &mut found));
            reading.leave_object(output, &mut found);
            if let Some(mut named) = reading.tables[place].finish().filter(|_| !reading.only_json) {
                reading.steps.line(&mut named, &mut found);
            }
        }
        reading.steps.finish(&mut found);
    }
}
