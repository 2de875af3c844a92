//! What pre-flight found: checks, findings, device memory, cost, classes and the distribution of every column.

use maud::{Markup, html};
use trackway_api::runs::preflight::{ColumnChart, PreflightReport, Scale, Series};
use trackway_core::checks::{CheckResult, Finding, Severity, Verdict};
use trackway_core::text::{bytes, counted, duration, metric};

use crate::chart::{Axis, Chart, Mark, Size, Tone, Unit, legend};
use crate::frame::{About, Page, page};
use crate::parts::{card, columns, number, section, table, text};
use crate::run_parts::sentence;

/// The page.
#[must_use]
pub fn preflight(report: &PreflightReport, about: &About) -> Page {
    let mut found: Vec<&Finding> = report.checks.iter().flat_map(|check| &check.findings).collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let body = html! {
        @if !found.is_empty() { (section("Findings", &html! { @for it in found { (finding(it)) } })) }
        (section("Checks", &checks(report)))
        (memory(report))
        (cost(report))
        (classes(report))
        @if !report.charts.is_empty() { (section("Columns", &column_charts(&report.charts))) }
    };
    page(&format!("Pre-flight of {}", report.name), about, &lead(report), &body)
}

fn lead(report: &PreflightReport) -> Markup {
    let word = report.verdict.as_str();
    let meaning = match report.verdict {
        Verdict::Block => format!("Not launched because of {}.", report.blocked_by().join(", ")),
        _ if report.stopped => "Stopped before it was finished.".into(),
        Verdict::Warn => "The run may start; see the findings.".into(),
        _ => "The run may start.".into(),
    };
    html! {
        p { span class=(format!("badge {word}")) { (word.replace('_', " ")) } " " (sentence(&meaning)) }
        p.dim {
            (counted(report.checks.len() as u64, "check")) " in " (duration(report.seconds)) ". Data: "
            @if report.quote.sets.is_empty() { "no table" }
            @for (index, set) in report.quote.sets.iter().enumerate() {
                @if index > 0 { ", " }
                code { (set.name) } " (" (counted(set.file_count as u64, "file")) ", " (bytes(set.size_bytes)) ")"
            }
            "."
        }
    }
}

/// Checks that do not apply are folded.
fn checks(report: &PreflightReport) -> Markup {
    let applies = |check: &&CheckResult| check.verdict != Verdict::NotApplicable;
    let (applicable, others): (Vec<&CheckResult>, Vec<&CheckResult>) =
        report.checks.iter().partition(applies);
    html! {
        (check_table(&applicable))
        @if !others.is_empty() {
            details { summary { (counted(others.len() as u64, "check")) " not applicable" } (check_table(&others)) }
        }
    }
}

fn check_table(checks: &[&CheckResult]) -> Markup {
    table(
        &columns("Check | Verdict | Took: | "),
        checks.iter().map(|check| {
            let verdict = check.verdict.as_str();
            let took = check.seconds.filter(|_| check.verdict != Verdict::NotApplicable).map(duration);
            html! {
                td { code { (check.name) } }
                td class=(format!("{verdict} word")) { (verdict.replace('_', " ")) }
                td.n.dim { (took.unwrap_or_default()) }
                td.dim { (sentence(&outcome(check))) }
            }
        }),
    )
}

fn outcome(check: &CheckResult) -> String {
    let count = check.findings.len() as u64;
    let findings = (count > 0).then(|| counted(count, "finding"));
    [findings, check.why.clone()].into_iter().flatten().collect::<Vec<String>>().join("; ")
}

fn finding(finding: &Finding) -> Markup {
    let severity = finding.severity.as_str();
    html! {
        div class=(format!("finding {severity}")) {
            p { b { (severity) } " " (sentence(&finding.message)) " " code.dim { (finding.check) } }
            @for example in &finding.examples {
                p.dim {
                    code { (example.file.as_deref().unwrap_or_default()) @if let Some(row) = example.row { ":" (row) } }
                    " " code { (example.value.as_deref().unwrap_or_default()) }
                }
            }
            @if let Some(action) = &finding.action { p { "→ " (sentence(action)) } }
        }
    }
}

/// The expected use with its interval, against what the device has.
fn memory(report: &PreflightReport) -> Markup {
    let Some(memory) = &report.memory else { return html! {} };
    let estimate = &memory.estimate;
    let usable = memory.usable_bytes;
    let severity = match memory.fits {
        Some(false) if Some(estimate.low_bytes) > usable => Severity::Block,
        Some(false) => Severity::Warn,
        _ => Severity::Note,
    };
    let end = estimate.high_bytes.max(usable.unwrap_or(0)).max(1) as f64 * 1.05;
    let (low, high) = (estimate.low_bytes as f64, estimate.high_bytes as f64);
    let axes = (Axis::linear("", (0.0, end), Unit::Bytes), Axis::bands("", vec![String::new()]));
    let mut chart = Chart::new("Device memory", Size(600.0, 58.0), axes.0, axes.1)
        .with("expected", Tone::Light(0), Mark::Bars(vec![estimate.total_bytes as f64], (0, 1)))
        .with("interval", Tone::Series(0), Mark::Intervals(vec![(0.0, low, high)]));
    let mut names = vec![(Tone::Series(0), "expected, with its interval")];
    if let Some(usable) = usable {
        chart = chart.with("the device", Tone::Limit, Mark::Upright(usable as f64));
        names.push((Tone::Limit, "the device"));
    }
    let parts = estimate.parts.named().into_iter().filter(|(_, count)| *count > 0);
    section(
        "Device memory",
        &html! {
            div.card {
                (chart)
                (legend(names))
                p class=(severity.as_str()) {
                    (bytes(estimate.total_bytes)) " expected, " (bytes(estimate.low_bytes)) " to " (bytes(estimate.high_bytes))
                    @if let Some(usable) = usable { "; " (bytes(usable)) " usable" }
                    @if let Some(device) = &memory.device { " on " (device.title) }
                }
                (table(&[text(""), number("")], parts.map(|(part, count)| html! {
                    td { (part.replace('_', " ")) }
                    td.n { (bytes(count)) }
                })))
                @for advice in &memory.advice {
                    p { "→ " (sentence(&advice.text)) " " span.dim { "(" (bytes(advice.total_bytes)) ": " (advice.price) ")" } }
                }
            }
        },
    )
}

fn cost(report: &PreflightReport) -> Markup {
    let Some(cost) = &report.cost else { return html! {} };
    let rows = [
        ("devices", cost.compute_usd),
        ("storage", cost.storage_usd),
        ("transfer", cost.transfer_usd),
        ("total", cost.total_usd),
        ("with failures", cost.with_failures_usd),
    ];
    section(
        "Expected cost",
        &html! {
            (table(&[text(""), number("")], rows.map(|(what, usd)| html! {
                td { (what) }
                td.n { (format!("{usd:.2} USD")) }
            })))
            p.dim { (format!("{:.1} GPU hours.", cost.gpu_hours)) }
        },
    )
}

fn classes(report: &PreflightReport) -> Markup {
    let Some(imbalance) = &report.imbalance else { return html! {} };
    section(
        "Classes",
        &html! {
            (table(&columns("Class | Rows: | Fraction: | Balanced weight: | Effective weight:"), imbalance.classes.iter().map(|class| html! {
                td { (class.name) }
                td.n { (class.rows) }
                td.n { (format!("{:.1} %", class.fraction * 100.0)) }
                td.n { (metric(class.balanced_weight)) }
                td.n { (metric(class.effective_weight)) }
            })))
            @for line in &imbalance.advice { p { "→ " (line) } }
        },
    )
}

fn column_charts(charts: &[ColumnChart]) -> Markup {
    let sets = charts.iter().map(|chart| &chart.series).max_by_key(|series| series.len());
    let names =
        sets.into_iter().flatten().enumerate().map(|(index, it)| (Tone::Series(index), it.set.as_str()));
    html! {
        p.dim { "Fractions of the rows with a value" }
        (legend(names))
        div.grid { @for chart in charts { (column(chart)) } }
    }
}

fn column(chart: &ColumnChart) -> Markup {
    let each = |text: &dyn Fn(&Series) -> Option<String>| {
        chart.series.iter().filter_map(text).collect::<Vec<String>>().join(", ")
    };
    let missing = each(&|it| {
        (it.missing_share > 0.0).then(|| format!("{:.1} % in {}", it.missing_share * 100.0, it.set))
    });
    let title = html! { code { (chart.name) } @if chart.is_label { " " span.dim { "(label)" } } };
    card(
        &title,
        &html! {
            @match &chart.scale {
                Scale::Range(low, high) => (histogram(chart, (*low, *high))),
                Scale::Values(values) => (bars(chart, values)),
                Scale::Texts => p.dim { "distinct values: " (each(&|it| Some(format!("{} in {}", it.distinct, it.set)))) },
            }
            @if !missing.is_empty() { p.dim { "missing: " (missing) } }
        },
    )
}

fn largest(chart: &ColumnChart) -> f64 {
    chart.series.iter().flat_map(|series| &series.shares).copied().fold(1e-9, f64::max)
}

/// The first set is filled, the others are steps above it.
fn histogram(chart: &ColumnChart, range: (f64, f64)) -> Chart {
    let x = Axis::linear("", range, Unit::Number);
    let y = Axis::linear("", (0.0, largest(chart) * 1.05), Unit::Percent);
    let drawn = Chart::new(&format!("Distribution of {}", chart.name), Size(300.0, 130.0), x, y);
    chart.series.iter().enumerate().fold(drawn, |drawn, (index, series)| {
        let shares = series.shares.clone();
        let mark = if index == 0 { Mark::Histogram(shares) } else { Mark::Steps(shares) };
        drawn.with(&series.set, Tone::Series(index), mark)
    })
}

/// A band for each value, a bar for each set. Fractions of the named values come first, that of all others last.
fn bars(chart: &ColumnChart, values: &[String]) -> Chart {
    let with_others =
        chart.series.iter().any(|series| series.shares.get(values.len()).is_some_and(|share| *share > 0.0));
    let mut names = values.to_vec();
    names.extend(with_others.then(|| "others".to_owned()));
    let bands = names.len();
    let x = Axis::linear("", (0.0, largest(chart) * 1.05), Unit::Percent);
    let drawn =
        Chart::new(&format!("Values of {}", chart.name), Size::rows(bands), x, Axis::bands("", names));
    chart.series.iter().enumerate().fold(drawn, |drawn, (index, series)| {
        let shares = series.shares.iter().take(bands).copied().collect();
        drawn.with(&series.set, Tone::Series(index), Mark::Bars(shares, (index, chart.series.len())))
    })
}
