//! Runs side by side.

use maud::{Markup, html};
use trackway_api::runs::compare::{ComparedCurve, ComparedRun, ComparedValue, CurveSummary, RunComparison};
use trackway_core::text::metric;

use crate::chart::{Axis, Chart, Mark, Size, Tone, Unit, legend};
use crate::frame::{About, Page, page};
use crate::parts::{columns, section, table, text};
use crate::run_parts::{curve_cards, difference, is_of_progress};

/// The page.
#[must_use]
pub fn comparison(comparison: &RunComparison, about: &About) -> Page {
    let labels = labels(comparison);
    let names = || labels.iter().enumerate().map(|(index, label)| (Tone::Series(index), label.as_str()));
    let lines = comparison.curves.iter().filter(|curve| curve.has_line());
    let (progress, drawn): (Vec<&ComparedCurve>, Vec<&ComparedCurve>) =
        lines.partition(|curve| is_of_progress(&curve.name));
    let metrics: Vec<ComparedValue> = comparison
        .metrics
        .iter()
        .map(|row| ComparedValue {
            name: row.name.clone(),
            differs: true,
            values: row.values.iter().map(|it| it.as_ref().map(figures)).collect(),
        })
        .collect();
    let evaluations: Vec<ComparedValue> = comparison
        .evaluations
        .iter()
        .map(|row| ComparedValue {
            name: row.name.clone(),
            differs: true,
            values: row.values.iter().map(|value| value.map(metric)).collect(),
        })
        .collect();
    let body = html! {
        (section("Runs", &runs(comparison, &labels)))
        @if !comparison.changes.is_empty() {
            (section("What changed", &html! { @for diff in &comparison.changes { (difference(diff)) } }))
        }
        @if !drawn.is_empty() || !progress.is_empty() {
            (section("Curves", &html! {
                (legend(names()))
                (curve_cards(&drawn, &[(&progress, "progress and speed")], |curve| chart(curve, &labels)))
            }))
        }
        @for (title, rows) in [
            ("Metrics: last (least … greatest)", &metrics),
            ("Evaluations: the newest of each run", &evaluations),
            ("Parameters", &comparison.parameters),
            ("Settings that differ", &comparison.config),
            ("Data", &comparison.data),
            ("Environment", &comparison.environment),
        ] {
            @if !rows.is_empty() { (section(title, &values(rows, &labels))) }
        }
    };
    page(&format!("Comparison of {}", labels.join(", ")), about, &html! {}, &body)
}

/// The runs' names; where two are alike, with the end of the id.
#[must_use]
pub fn labels(comparison: &RunComparison) -> Vec<String> {
    let alike = |name: &str| comparison.runs.iter().filter(|run| run.name == name).count() > 1;
    let label = |run: &ComparedRun| {
        let id = run.run_id.to_string();
        if alike(&run.name) {
            format!("{} …{}", run.name, &id[id.len().saturating_sub(5)..])
        } else {
            run.name.clone()
        }
    };
    comparison.runs.iter().map(label).collect()
}

/// The last value of a metric, and its range where there are several: `0.5 (0.5 … 2)`.
#[must_use]
pub fn figures(figures: &CurveSummary) -> String {
    let value = |value: Option<f64>| value.map_or_else(|| "not finite".into(), metric);
    match figures.point_count {
        1 => value(figures.last),
        _ => format!("{} ({} … {})", value(figures.last), value(figures.min), value(figures.max)),
    }
}

fn runs(comparison: &RunComparison, labels: &[String]) -> Markup {
    table(
        &columns("Run | Id | State | Ended by | Rung | Attempts: | Took: | Cost: | Created"),
        comparison.runs.iter().zip(labels).map(|(run, label)| {
            html! {
                td { (label) }
                td { code { (run.run_id.to_string()) } }
                td { (run.state.as_str()) }
                td { (run.termination_reason.map(|reason| reason.as_str()).unwrap_or_default()) }
                td { (run.rung) }
                td.n { (run.attempt_count) }
                td.n { (run.took()) }
                td.n { @if let Some(usd) = run.cost_usd { (format!("{usd:.2} USD")) } }
                td { (run.created_at.to_string()) }
            }
        }),
    )
}

/// A value for each run; rows in which the runs are equal are dim.
fn values(rows: &[ComparedValue], labels: &[String]) -> Markup {
    let mut columns = vec![text("")];
    columns.extend(labels.iter().map(|label| text(label)));
    table(
        &columns,
        rows.iter().map(|row| {
            let class = if row.differs { "" } else { "dim" };
            html! {
                td class=(class) { code { (row.name) } }
                @for value in &row.values { td class=(class) { (value.as_deref().unwrap_or("–")) } }
            }
        }),
    )
}

fn chart(curve: &ComparedCurve, labels: &[String]) -> Chart {
    let points = || curve.series.iter().flatten();
    let last_step = points().map(|(step, _)| *step).max().unwrap_or(0).max(1);
    let first_step = points().map(|(step, _)| *step).min().unwrap_or(0).min(0);
    let x = Axis::linear("step", (first_step as f64, last_step as f64), Unit::Number);
    let y = Axis::over("", points().filter_map(|(_, value)| *value));
    let chart = Chart::new(&format!("{} by step", curve.name), Size::WIDE, x, y);
    curve.series.iter().zip(labels).enumerate().fold(chart, |chart, (index, (series, label))| {
        let line = series.iter().map(|(step, value)| (*step as f64, *value)).collect();
        chart.with(label, Tone::Series(index), Mark::Line(line))
    })
}
