//! Metrics of a script without Trackway's SDK: what it prints while it trains.
//!
//! Read are JSON objects and Python dicts, one per line; progress bars of tqdm, Lightning and Keras, which draw over
//! themselves; and free text such as `step 100: loss 0.5, lr=1e-3`. [`PrintedReader`] takes both outputs as they come
//! and gives values with their steps. `docs/tracking.md` documents what is taken and what is not.
//!
//! Nothing is taken that only looks like a metric: free text counts when it names a step or a usual measure of
//! training. No bytes make it panic, and all it holds is bounded.

mod bar;
mod lines;
mod named;
mod objects;
mod python;
mod steps;
#[cfg(test)]
mod tests;
mod text;

use lines::Lines;
use steps::Steps;

/// A longer line has no metrics.
const LINE_BYTES_MAX: usize = 64 * 1024;
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
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedMetrics {
    /// The step that was printed with them or, without one, the last known step of the script.
    pub step: u64,
    /// Names and values, in the order of printing; of JSON objects in the order of the names.
    pub values: Vec<(String, f64)>,
}

/// Reads both outputs of a script as they come.
#[derive(Debug, Default)]
pub struct PrintedReader {
    outputs: [Lines; 2],
    steps: Steps,
    only_json: bool,
}

impl PrintedReader {
    /// From now on only JSON objects count: the script records its metrics itself, and what it prints for people,
    /// rounded, would duplicate them. Objects were printed to be read.
    pub fn read_only_json(&mut self) {
        self.only_json = true;
    }

    /// Takes the next bytes of one output; calls `found` for the values in it. Where a script draws a bar on one
    /// output and prints values without a step on the other, the bar's output must be pushed first.
    pub fn push(&mut self, output: Printed, bytes: &[u8], mut found: impl FnMut(PrintedMetrics)) {
        let (steps, only_json) = (&mut self.steps, self.only_json);
        self.outputs[output as usize].push(bytes, |line| read_line(line, only_json, steps, &mut found));
    }

    /// The last lines may lack their ends.
    pub fn finish(&mut self, mut found: impl FnMut(PrintedMetrics)) {
        let (steps, only_json) = (&mut self.steps, self.only_json);
        for output in &mut self.outputs {
            output.finish(|line| read_line(line, only_json, steps, &mut found));
        }
        steps.finish(&mut found);
    }
}

/// A line is read by the first form it fits.
fn read_line(line: &str, only_json: bool, steps: &mut Steps, found: &mut dyn FnMut(PrintedMetrics)) {
    let is_object = line.starts_with('{');
    if let Some(object) = Some(line).filter(|_| is_object).and_then(objects::read_object) {
        steps.line(object, found);
    } else if only_json {
        // Nothing else was printed to be read.
    } else if is_object {
        let dict = python::read_dict(line).map(objects::numbers_of);
        if let Some(dict) = dict.filter(|dict| !dict.values.is_empty()) {
            steps.line(dict, found);
        }
    } else if let Some((bar, rest)) = bar::read_bar(line) {
        steps.bar(bar, found);
        // Another program's line may follow a bar that did not end its line.
        if !rest.is_empty() {
            read_line(rest, only_json, steps, found);
        }
    } else if bar::is_epoch_line(line) {
        steps.epoch_begins(found);
    } else if let Some(named) = text::read_text(line) {
        steps.line(named, found);
    }
}
