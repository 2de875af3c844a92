//! A drawing with two axes, without a script.

use super::{Html, html, put};
use crate::printer::cut;

/// Width and height of the field, and the room around it for what is written.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 8.0;
const BELOW: f64 = 18.0;
/// Room for slanted labels under the field.
const BELOW_WORDS: f64 = 62.0;
/// Letters of a label under the field.
const WORD_LETTERS_MAX: usize = 14;

/// A drawing that is added to.
pub struct Plot {
    svg: Html,
    x: (f64, f64),
    y: (f64, f64),
}

impl Plot {
    /// From and to of both axes; numbers are at their ends.
    pub fn of_numbers(x: (f64, f64), y: (f64, f64)) -> Self {
        let mut plot = Self::empty(widened(x), y, BELOW);
        for (value, anchor) in [(x.0, "start"), (x.1, "end")] {
            let (at, below) = (plot.at_x(value), TOP + HEIGHT + 13.0);
            put!(
                plot.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
                at,
                below,
                anchor,
                short(value)
            );
        }
        plot
    }

    /// Labels at 0, 1, 2 … under the field.
    pub fn of_words(words: &[String], y: (f64, f64)) -> Self {
        let end = words.len().max(1) as f64 - 0.5;
        let mut plot = Self::empty((-0.5, end), y, BELOW_WORDS);
        for (index, word) in words.iter().enumerate() {
            let (x, below) = (plot.at_x(index as f64) + 3.0, TOP + HEIGHT + 10.0);
            let word = cut(word, WORD_LETTERS_MAX);
            put!(
                plot.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" transform=\"rotate(-45 {:.1} {:.1})\">{}</text>",
                x,
                below,
                x,
                below,
                word
            );
        }
        plot
    }

    fn empty(x: (f64, f64), y: (f64, f64), below: f64) -> Self {
        let (width, height) = (LEFT + WIDTH + 6.0, TOP + HEIGHT + below);
        let mut svg = html!("<svg viewBox=\"0 0 {} {}\" role=\"img\">", width, height);
        put!(
            svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"var(--line)\"/>",
            LEFT,
            TOP,
            WIDTH,
            HEIGHT
        );
        let mut plot = Self { svg, x, y: widened(y) };
        for value in [y.1, y.0] {
            let at = plot.at_y(value) + 3.0;
            put!(
                plot.svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 4.0,
                at,
                short(value)
            );
        }
        plot
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + WIDTH * ((value - self.x.0) / (self.x.1 - self.x.0)).clamp(0.0, 1.0)
    }

    fn at_y(&self, value: f64) -> f64 {
        TOP + HEIGHT * (1.0 - ((value - self.y.0) / (self.y.1 - self.y.0)).clamp(0.0, 1.0))
    }

    /// A line from left to right.
    pub fn level(&mut self, value: f64) {
        let y = self.at_y(value);
        put!(
            self.svg,
            "<line x1=\"{}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--dim)\" stroke-dasharray=\"3 3\"/>",
            LEFT,
            LEFT + WIDTH,
            y,
            y
        );
    }

    /// A line through points.
    pub fn line(&mut self, points: impl Iterator<Item = (f64, f64)>, colour: &str, width: f64, opacity: f64) {
        put!(
            self.svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" points=\"",
            colour,
            width,
            opacity
        );
        for (x, y) in points {
            put!(self.svg, "{:.1},{:.1} ", self.at_x(x), self.at_y(y));
        }
        self.svg.push_str("\"/>");
    }

    /// A point.
    pub fn point(&mut self, (x, y): (f64, f64), radius: f64, opacity: f64, title: &str) {
        let (x, y) = (self.at_x(x), self.at_y(y));
        put!(
            self.svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\" fill=\"var(--c0)\" opacity=\"{}\">",
            x,
            y,
            radius,
            opacity
        );
        if !title.is_empty() {
            put!(self.svg, "<title>{}</title>", title);
        }
        self.svg.push_str("</circle>");
    }

    /// A bar upright, such as an interval.
    pub fn bar(&mut self, x: f64, (low, high): (f64, f64), width: f64, colour: &str, opacity: f64) {
        let (below, above) = (self.at_y(low), self.at_y(high));
        put!(
            self.svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" opacity=\"{}\"/>",
            self.at_x(x) - width / 2.0,
            above,
            width,
            (below - above).max(1.0),
            colour,
            opacity
        );
    }

    /// The width of one of so many places side by side.
    pub fn place_width(places: usize) -> f64 {
        WIDTH / places.max(1) as f64
    }

    pub fn end(mut self) -> Html {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// The lowest and highest of values, 0 among them.
pub fn range_with_zero(values: impl Iterator<Item = f64>) -> (f64, f64) {
    range(values.chain([0.0]))
}

/// The lowest and highest of values.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|it| it.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// A little more than from and to; never nothing.
fn widened((low, high): (f64, f64)) -> (f64, f64) {
    let room = (high - low) * 0.04;
    if room > 0.0 { (low - room, high + room) } else { (low - 0.5, high + 0.5) }
}

fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if !(0.001..100_000.0).contains(&size) => format!("{value:.0e}"),
        _ if size < 1.0 => format!("{value:.2}"),
        _ if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
