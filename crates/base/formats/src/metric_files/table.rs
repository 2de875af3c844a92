//! A table with a heading, as the loggers of Lightning, Keras and others write it: its cells may be empty, and the separator may be `;`.

use trackway_core::MetricStep;

use super::{Axis, EPOCH, Point};
use crate::printed;

/// More columns are no log.
const COLUMNS_MAX: usize = 1024;
/// Longer names are no metrics.
const NAME_BYTES_MAX: usize = 200;
/// A whole number beyond this is not exact as a decimal, and no step.
const STEP_MAX: f64 = 9e15;
/// Columns that have the step, the best first. The last one has the epoch.
const STEP_COLUMNS: [&str; 14] = [
    "global_step", "step", "_step", "iteration", "iterations", "iter", "num_updates", "update", "updates",
    "total_timesteps", "timesteps", "timesteps_so_far", "steps", EPOCH,
];
/// Columns that say of which part of the data a row is.
const PART_COLUMNS: [&str; 5] = ["mode", "phase", "set", "split", "stage"];

/// The columns of a table that is a log.
#[derive(Debug, Clone)]
pub(super) struct Table {
    separator: char,
    names: Vec<String>,
    step: usize,
    part: Option<usize>,
    pub axis: Axis,
}

/// What a line below the heading is.
#[derive(Debug, PartialEq)]
pub(super) enum Row {
    Point(Point),
    /// The heading again, or no value.
    Nothing,
    Unreadable,
}

impl Table {
    /// Of its heading; none if the table is not a log of metrics.
    pub fn of(heading: &str) -> Option<Self> {
        let heading = heading.trim_start_matches(['\u{feff}', '#', ' ']);
        let cells = |separator: &char| cells_of(heading, *separator).unwrap_or_default();
        let separator = [',', ';', '\t'].into_iter().max_by_key(|separator| cells(separator).len())?;
        let names = cells(&separator);
        let is_number = |name: &String| name.parse::<f64>().is_ok();
        if names.len() < 2 || names.len() > COLUMNS_MAX || names.iter().any(is_number) {
            return None;
        }
        let keys: Vec<String> = names.iter().map(|name| key_of(name)).collect();
        let column = |wanted: &&str| keys.iter().position(|key| key == wanted);
        let step = STEP_COLUMNS.iter().find_map(column)?;
        let has_measure = names.iter().enumerate().any(|(at, name)| at != step && printed::is_measure(name));
        let axis = if keys[step] == EPOCH { Axis::Epochs } else { Axis::Steps };
        let part = PART_COLUMNS.iter().find_map(column);
        has_measure.then_some(Self { separator, names, step, part, axis })
    }

    /// Reads a line below the heading.
    pub fn row(&self, line: &str) -> Row {
        let Some(cells) = cells_of(line, self.separator).filter(|cells| cells.len() == self.names.len())
        else {
            return Row::Unreadable;
        };
        if cells == self.names {
            return Row::Nothing;
        }
        let Some(step) = self.number(&cells[self.step]).and_then(whole) else { return Row::Unreadable };
        let part = self.part.and_then(|at| printed::part_prefix(&cells[at]));
        let is_value = |at: usize, name: &str| {
            at != self.step && Some(at) != self.part && !name.is_empty() && name.len() <= NAME_BYTES_MAX
        };
        let columns = self.names.iter().zip(&cells).enumerate();
        let values: Vec<(String, f64)> = columns
            .filter(|(at, (name, _))| is_value(*at, name))
            .filter_map(|(_, (name, cell))| {
                let name = part.map_or_else(|| name.clone(), |part| printed::with_prefix(part, name));
                Some((name, self.number(cell)?))
            })
            .collect();
        match values.iter().any(|(name, _)| name != EPOCH) {
            true => Row::Point(Point { step, values }),
            false => Row::Nothing,
        }
    }

    /// The number in a cell. Beside `;` a comma may be a decimal point.
    fn number(&self, cell: &str) -> Option<f64> {
        let is_decimal = self.separator == ';' && cell.matches(',').count() == 1 && !cell.contains('.');
        match is_decimal {
            true => cell.replace(',', ".").parse().ok(),
            false => cell.parse().ok(),
        }
    }
}

/// `Total Timesteps` is `total_timesteps`, `time/iterations` is `iterations`.
fn key_of(name: &str) -> String {
    let name = name.to_lowercase().replace(' ', "_");
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

fn whole(number: f64) -> Option<MetricStep> {
    (number.fract() == 0.0 && number.abs() < STEP_MAX).then_some(number as MetricStep)
}

/// The cells of a line, without blanks around them. None: a quote is not closed.
fn cells_of(line: &str, separator: char) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    for char in line.chars() {
        match char {
            // A quote within quotes is written twice, which opens them again.
            '"' => is_quoted = !is_quoted,
            _ if char == separator && !is_quoted => cells.push(std::mem::take(&mut cell)),
            _ => cell.push(char),
        }
    }
    cells.push(cell);
    (!is_quoted).then(|| cells.iter().map(|cell| cell.trim().to_owned()).collect())
}
