//! Axes: from values to places, with ticks at round numbers.

use trackway_core::text::{bytes, metric};
use trackway_tables::personal::masked_cut;

/// Ticks that are aimed at.
const TICKS: f64 = 5.0;
/// Letters of a name at a tick.
const NAME_LETTERS_MAX: usize = 15;
/// Positive values that span more than this factor get a logarithmic axis.
const LOGARITHMIC_SPAN: f64 = 200.0;

/// How the numbers of an axis read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Number,
    /// Fractions, shown as percentages.
    Percent,
    /// Bytes, with ticks at round KiB, MiB, GiB …
    Bytes,
}

#[derive(Debug, Clone, PartialEq)]
enum Scale {
    Linear { low: f64, high: f64 },
    Logarithmic { low: f64, high: f64 },
    Bands(Vec<String>),
}

/// One axis of a chart: what it shows, in which unit, from where to where.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is measured; shown beside the axis unless empty.
    pub label: String,
    scale: Scale,
    pub(super) unit: Unit,
}

impl Axis {
    /// Exactly from the first number to the second. An empty range is widened to both sides.
    pub fn linear(label: &str, (low, high): (f64, f64), unit: Unit) -> Self {
        let is_range = low.is_finite() && high.is_finite() && high > low;
        let middle = if low.is_finite() { low } else { 0.0 };
        let room = if middle == 0.0 { 0.5 } else { middle.abs() / 2.0 };
        let (low, high) = if is_range { (low, high) } else { (middle - room, middle + room) };
        Self { label: label.to_owned(), scale: Scale::Linear { low, high }, unit }
    }

    /// Over all values with some room at both ends; logarithmic where positive values span several orders of magnitude.
    pub fn over(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        if low > 0.0 && high / low > LOGARITHMIC_SPAN {
            let scale = Scale::Logarithmic { low, high };
            return Self {
                label: format!("{label} (log scale)").trim_start().to_owned(),
                scale,
                unit: Unit::Number,
            };
        }
        let room = (high - low) * 0.04;
        Self::linear(label, (low - room, high + room), Unit::Number)
    }

    /// One band for each name; values are 0, 1, 2 …
    pub fn bands(label: &str, names: Vec<String>) -> Self {
        Self { label: label.to_owned(), scale: Scale::Bands(names), unit: Unit::Number }
    }

    /// The number of bands; 0 on an axis of numbers.
    pub fn band_count(&self) -> usize {
        if let Scale::Bands(names) = &self.scale { names.len() } else { 0 }
    }

    /// Both ends of an axis of numbers.
    pub fn ends(&self) -> (f64, f64) {
        match &self.scale {
            Scale::Linear { low, high } | Scale::Logarithmic { low, high } => (*low, *high),
            Scale::Bands(names) => (-0.5, names.len().max(1) as f64 - 0.5),
        }
    }

    /// The place of a value, from 0 to 1; values outside are at the nearer end.
    pub fn place(&self, value: f64) -> f64 {
        let (low, high) = self.ends();
        let fraction = match self.scale {
            Scale::Logarithmic { .. } => (value / low).ln() / (high / low).ln(),
            Scale::Linear { .. } | Scale::Bands(_) => (value - low) / (high - low),
        };
        if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) }
    }

    /// Where ticks are, and what is written there.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        match &self.scale {
            Scale::Bands(names) => {
                let tick = |(at, name): (usize, &String)| (at as f64, masked_cut(name, NAME_LETTERS_MAX));
                names.iter().enumerate().map(tick).collect()
            }
            Scale::Linear { low, high } => self.linear_ticks(*low, *high),
            Scale::Logarithmic { low, high } => {
                let (first, last) = (low.log10().ceil() as i32, high.log10().floor() as i32);
                let every = usize::try_from((last - first) / 6).unwrap_or(0) + 1;
                let ticks = (first..=last).step_by(every).map(|power| 10f64.powi(power));
                let text = |tick: f64| {
                    if (1e-4..1e6).contains(&tick) { tick.to_string() } else { format!("{tick:e}") }
                };
                ticks.map(|tick| (tick, text(tick))).collect()
            }
        }
    }

    fn linear_ticks(&self, low: f64, high: f64) -> Vec<(f64, String)> {
        let scale = match self.unit {
            Unit::Bytes => 1024f64.powf((high - low).max(1.0).log(1024.0).floor()),
            Unit::Number | Unit::Percent => 1.0,
        };
        let step = round_step((high - low) / scale / TICKS) * scale;
        let first = (low / step).ceil() as i64;
        let last = ((high / step) * (1.0 + 1e-12)).floor() as i64;
        let tick = |count: i64| (count as f64 * step, self.tick_text(count as f64 * step, step));
        (first..=last).map(tick).collect()
    }

    fn tick_text(&self, value: f64, step: f64) -> String {
        let fixed = |value: f64, step: f64| {
            let decimals = (-step.log10()).ceil().clamp(0.0, 6.0) as usize;
            format!("{value:.decimals$}")
        };
        match self.unit {
            Unit::Percent => fixed(value * 100.0, step * 100.0) + " %",
            Unit::Bytes => bytes(value.max(0.0) as u64).replace(".0 ", " "),
            Unit::Number if value == 0.0 => "0".to_owned(),
            Unit::Number if step < 1e-4 || value.abs() >= 1e6 => format!("{value:.1e}").replace(".0e", "e"),
            Unit::Number => fixed(value, step),
        }
    }

    /// From where to where it reaches, as text.
    pub fn words(&self) -> String {
        let label = if self.label.is_empty() { "value" } else { &self.label };
        match &self.scale {
            Scale::Bands(names) => format!("{label}: {}", names.join(", ")),
            Scale::Linear { .. } | Scale::Logarithmic { .. } => {
                let text = |value: f64| match self.unit {
                    Unit::Number => metric(value),
                    Unit::Percent => format!("{:.1} %", value * 100.0),
                    Unit::Bytes => bytes(value.max(0.0) as u64),
                };
                let (low, high) = self.ends();
                format!("{label}: {} to {}", text(low), text(high))
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// The lowest and the highest finite value; 0 to 1 without any.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, text)| text).collect()
    }

    /// Proves that ticks are round numbers within the axis, in its unit, and that no axis is empty.
    #[test]
    fn ticks_are_round() {
        for (axis, expected) in [
            (Axis::linear("", (0.0, 1.0), Unit::Number), vec!["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (Axis::linear("", (0.0, 0.37), Unit::Percent), vec!["0 %", "10 %", "20 %", "30 %"]),
            (Axis::linear("", (-1300.0, 2100.0), Unit::Number), vec!["-1000", "0", "1000", "2000"]),
            (
                Axis::linear("", (0.0, 80.0 * 1024f64.powi(3)), Unit::Bytes),
                vec!["0 B", "20 GiB", "40 GiB", "60 GiB", "80 GiB"],
            ),
            (Axis::linear("", (0.0, 3e-7), Unit::Number), vec!["0", "1e-7", "2e-7", "3e-7"]),
            (Axis::linear("", (2.0, 2.0), Unit::Number), vec!["1.0", "1.5", "2.0", "2.5", "3.0"]),
            (Axis::bands("", vec!["a".into(), "b".into()]), vec!["a", "b"]),
        ] {
            assert_eq!(texts(&axis), expected);
        }
    }

    /// Proves that a wide span of positive values is logarithmic, with ticks at powers of ten.
    #[test]
    fn wide_spans_are_logarithmic() {
        let axis = Axis::over("loss", [0.01, 1.0, 20.0, f64::NAN].into_iter());
        assert_eq!(texts(&axis), ["0.01", "0.1", "1", "10"]);
        assert_eq!(axis.label, "loss (log scale)");
        assert!((axis.place(0.447_213_595) - 0.5).abs() < 1e-6, "the geometric mean is in the middle");
        assert!(!Axis::over("loss", [0.0, 20.0].into_iter()).label.contains("log"));
    }

    /// Proves that values that are not finite, and axes without values, have a place.
    #[test]
    fn every_value_has_a_place() {
        let empty = Axis::over("", std::iter::empty());
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5] {
            assert!((0.0..=1.0).contains(&empty.place(value)));
        }
    }
}
