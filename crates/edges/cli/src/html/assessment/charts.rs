//! Drawings of an assessment.

use trackway_flows::assess::{CalibrationBin, Estimate, Point};

use crate::html::{Html, html, put};

/// Width and height of the bar of an interval.
const BAR: (f64, f64) = (160.0, 14.0);
/// Width and height of a curve, and the room around it.
const CHART: f64 = 240.0;
const MARGIN: f64 = 14.0;

/// From where to where a bar reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::html) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// For fractions.
    pub(in crate::html) const UNIT: Self = Self { low: 0.0, high: 1.0 };

    /// From 0 to beyond the upper end, or around a number that may be negative.
    pub(super) fn around(estimate: &Estimate) -> Self {
        Self::of(std::iter::once(estimate))
    }

    /// The same for several numbers.
    pub(in crate::html) fn of<'e>(estimates: impl Iterator<Item = &'e Estimate>) -> Self {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for estimate in estimates {
            low = low.min(estimate.low.unwrap_or(estimate.value));
            high = high.max(estimate.high.unwrap_or(estimate.value));
        }
        Self { low: low * 1.1, high: high * 1.1 }.with_width()
    }

    /// As far to the left as to the right of 0.
    pub(super) fn with_zero(estimate: &Estimate, margin: f64) -> Self {
        let ends = [estimate.low, estimate.high, Some(estimate.value), Some(margin)];
        let reach = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max) * 1.15;
        Self { low: -reach, high: reach }.with_width()
    }

    fn with_width(self) -> Self {
        if self.high > self.low { self } else { Self { low: self.low - 0.5, high: self.low + 0.5 } }
    }

    fn at(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

/// The interval as a bar with the value in it, and a line at `mark`.
pub(super) fn bar(estimate: &Estimate, scale: Scale, mark: Option<f64>) -> Html {
    let (width, height) = BAR;
    let at = |value: f64| width * scale.at(value);
    let mut svg = html!("<svg class=\"bar\" viewBox=\"0 0 {} {}\" role=\"img\">", width, height);
    put!(svg, "<line x1=\"0\" x2=\"{}\" y1=\"7\" y2=\"7\" stroke=\"var(--line)\"/>", width);
    if let Some((low, high)) = estimate.low.zip(estimate.high) {
        let (low, high) = (at(low), at(high));
        put!(
            svg,
            "<rect x=\"{:.1}\" y=\"3\" width=\"{:.1}\" height=\"8\" fill=\"var(--c0)\" opacity=\".4\"/>",
            low,
            (high - low).max(1.0)
        );
    }
    if let Some(mark) = mark {
        let x = at(mark);
        put!(svg, "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"0\" y2=\"{}\" stroke=\"var(--dim)\"/>", x, x, height);
    }
    let x = at(estimate.value);
    put!(
        svg,
        "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"1\" y2=\"13\" stroke=\"var(--c0)\" stroke-width=\"2\"/></svg>",
        x,
        x
    );
    svg
}

/// The beginning of a drawing from 0 to 1 on both sides.
fn square() -> Html {
    let size = CHART + 2.0 * MARGIN;
    let mut svg = html!("<svg viewBox=\"0 0 {} {}\" role=\"img\">", size, size);
    put!(
        svg,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"var(--line)\"/>",
        MARGIN,
        MARGIN,
        CHART,
        CHART
    );
    for (value, text) in [(0.0, "0"), (1.0, "1")] {
        let (x, y) = place(Point { x: value, y: value });
        put!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", x, size - 2.0, text);
        put!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", MARGIN - 3.0, y + 3.0, text);
    }
    svg
}

fn place(point: Point) -> (f64, f64) {
    (MARGIN + CHART * point.x.clamp(0.0, 1.0), MARGIN + CHART * (1.0 - point.y.clamp(0.0, 1.0)))
}

fn diagonal(svg: &mut Html) {
    let ((left, bottom), (right, top)) = (place(Point { x: 0.0, y: 0.0 }), place(Point { x: 1.0, y: 1.0 }));
    put!(
        svg,
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"var(--dim)\" stroke-dasharray=\"3 3\"/>",
        left,
        bottom,
        right,
        top
    );
}

/// A line through points.
pub(super) fn curve(points: &[Point], with_diagonal: bool) -> Html {
    let mut svg = square();
    if with_diagonal {
        diagonal(&mut svg);
    }
    svg.push_str("<polyline fill=\"none\" stroke=\"var(--c0)\" stroke-width=\"1.6\" points=\"");
    for point in points {
        let (x, y) = place(*point);
        put!(svg, "{:.1},{:.1} ", x, y);
    }
    svg.push_str("\"/></svg>");
    svg
}

/// A point with its interval for each bin; the size of the point shows how many rows it has.
pub(super) fn calibration(bins: &[CalibrationBin]) -> Html {
    let mut svg = square();
    diagonal(&mut svg);
    let most = bins.iter().map(|bin| bin.observed.support).max().unwrap_or(1).max(1) as f64;
    for bin in bins {
        let (x, y) = place(Point { x: bin.predicted, y: bin.observed.value });
        if let Some((low, high)) = bin.observed.low.zip(bin.observed.high) {
            let (below, above) = (place(Point { x: 0.0, y: low }).1, place(Point { x: 0.0, y: high }).1);
            put!(
                svg,
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--c0)\" opacity=\".5\" stroke-width=\"2\"/>",
                x,
                x,
                below,
                above
            );
        }
        let radius = 2.0 + 3.0 * (bin.observed.support as f64 / most).sqrt();
        put!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"var(--c0)\"><title>{} rows</title></circle>",
            x,
            y,
            radius,
            bin.observed.support
        );
    }
    svg.push_str("</svg>");
    svg
}
