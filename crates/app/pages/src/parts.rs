//! What several pages share: tables, sections, and numbers as texts.

use maud::{Markup, html};
use trackway_core::text::metric;
use trackway_evaluate::{ComparisonVerdict, Estimate};

use crate::chart::{Axis, Unit, interval_bar};

/// The head of a column; numbers are aligned to the right.
#[derive(Debug, Clone, Copy)]
pub struct Column<'n> {
    name: &'n str,
    is_number: bool,
}

/// A column of texts.
pub fn text(name: &str) -> Column<'_> {
    Column { name, is_number: false }
}

/// A column of numbers.
pub fn number(name: &str) -> Column<'_> {
    Column { name, is_number: true }
}

/// The columns of a table: their names between `|`. A name that ends with `:` is of a column of numbers, as in Markdown.
pub fn columns(names: &str) -> Vec<Column<'_>> {
    names.split('|').map(str::trim).map(|name| name.strip_suffix(':').map_or(text(name), number)).collect()
}

/// The three columns that [`estimate_cells`] fills.
pub fn estimate(name: &str) -> [Column<'_>; 3] {
    [number(name), number("Interval"), text("")]
}

/// A table; each row is its cells. Wider than the page it scrolls by itself.
pub fn table(columns: &[Column<'_>], rows: impl IntoIterator<Item = Markup>) -> Markup {
    html! {
        div.wide {
            table {
                @if columns.iter().any(|column| !column.name.is_empty()) {
                    thead {
                        tr {
                            @for column in columns {
                                @if column.is_number { th.n { (column.name) } } @else { th { (column.name) } }
                            }
                        }
                    }
                }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}

/// A titled part of a page.
pub fn section(title: &str, body: &Markup) -> Markup {
    html! { section { h2 { (title) } (body) } }
}

/// A chart with a heading in a grid.
pub fn card(title: &Markup, body: &Markup) -> Markup {
    html! { div.card { h3 { (title) } (body) } }
}

/// Cells: value, interval, bar.
pub fn estimate_cells(estimate: Option<&Estimate>, scale: &Axis, mark: Option<f64>) -> Markup {
    html! {
        @if let Some(it) = estimate {
            td.n { (metric(it.value)) }
            td.n.dim { (interval(it)) }
            td { (interval_bar(it.value, it.interval.bounds(), scale, mark)) }
        } @else {
            td.n.dim { "–" } td {} td {}
        }
    }
}

/// For the bars of fractions.
pub fn unit_scale() -> Axis {
    Axis::linear("", (0.0, 1.0), Unit::Number)
}

/// For the bars of numbers: from 0, or from below it, to beyond all ends.
pub fn scale_of<'e>(estimates: impl Iterator<Item = &'e Estimate>) -> Axis {
    let (mut low, mut high) = (0.0f64, 0.0f64);
    for estimate in estimates {
        low = low.min(estimate.interval.known_low().unwrap_or(estimate.value));
        high = high.max(estimate.interval.known_high().unwrap_or(estimate.value));
    }
    Axis::linear("", (low * 1.1, high * 1.1), Unit::Number)
}

/// For the bar of a difference: as far to the left as to the right of 0.
pub fn scale_around_zero(estimate: &Estimate, margin: f64) -> Axis {
    let ends =
        [estimate.interval.known_low(), estimate.interval.known_high(), Some(estimate.value), Some(margin)];
    let reach = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max) * 1.15;
    Axis::linear("", (-reach, reach), Unit::Number)
}

/// The interval of an estimate: `0.3012 to 0.3271`; an unknown end is `?`.
pub fn interval(estimate: &Estimate) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), metric);
    format!("{} to {}", end(estimate.interval.known_low()), end(estimate.interval.known_high()))
}

/// A number, or a dash if there is none.
pub fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), metric)
}

/// `p = 0.0123`, with four decimals.
pub fn p_value(p_value: f64) -> String {
    if p_value < 1e-4 { "< 0.0001".to_owned() } else { format!("{p_value:.4}") }
}

/// A verdict over two numbers in its colour.
pub fn verdict(verdict: ComparisonVerdict) -> Markup {
    let class = match verdict {
        ComparisonVerdict::Better => "pass",
        ComparisonVerdict::Worse => "block",
        ComparisonVerdict::Inconclusive => "warn",
        ComparisonVerdict::NoDifferenceShown => "note",
    };
    html! { span class=(class) { (verdict.as_str().replace('_', " ")) } }
}
