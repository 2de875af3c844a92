//! The report as one HTML file that needs nothing else: no script, no font, no network.

use trackway_api::preflight::{ColumnChart, PreflightReport, Scale, Series};
use trackway_flows::preflight::{CheckResult, Finding, Severity, Verdict};

use crate::html::{Html, colour, head, html, put};
use crate::printer::cut;
use crate::units::{bytes, duration, metric};

/// Width and height of a chart, in its own units.
const CHART: (f64, f64) = (264.0, 92.0);
/// Height of a bar of categories, with the gap below it.
const ROW_HEIGHT: f64 = 17.0;
/// Where the bars of categories begin.
const NAMES_WIDTH: f64 = 96.0;
/// Room for the fraction after the longest bar.
const SHARES_WIDTH: f64 = 42.0;
/// Letters of a category's name.
const NAME_LETTERS: usize = 15;
/// The page.
pub fn page(report: &PreflightReport) -> Html {
    let mut page = head(&format!("Pre-flight: {}", report.name));
    heading(&mut page, report);
    checks(&mut page, report);
    findings(&mut page, report);
    memory(&mut page, report);
    cost(&mut page, report);
    imbalance(&mut page, report);
    columns(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn heading(page: &mut Html, report: &PreflightReport) {
    let word = report.verdict.as_str();
    let told = match report.verdict {
        Verdict::Block => format!("Not launched because of {}.", report.blocked_by().join(", ")),
        _ if report.stopped => "Stopped before it was finished.".into(),
        Verdict::Warn => "The run may start; see the findings.".into(),
        _ => "The run may start.".into(),
    };
    put!(page, "<h1>Pre-flight of {}</h1>", report.name);
    put!(page, "<p><span class=\"badge {}\">{}</span> {}</p>", word, word, told);
    let sets = report.quote.sets.iter().map(|set| {
        let files = if set.file_count == 1 { "1 file".into() } else { format!("{} files", set.file_count) };
        html!("<code>{}</code> ({}, {})", set.name, files, bytes(set.size_bytes))
    });
    let sets: Vec<Html> = sets.collect();
    let read = if sets.is_empty() { html!("no table") } else { Html::joined(sets, ", ") };
    let took = duration(report.seconds);
    put!(page, "<p class=\"dim\">{} checks in {}. Data: {}.</p>", report.checks.len(), took, read);
}

fn checks(page: &mut Html, report: &PreflightReport) {
    page.push_str("<h2>Checks</h2><div class=\"wide\"><table><tr><th>Check</th><th>Verdict</th><th class=\"n\">Took</th><th></th></tr>");
    for check in &report.checks {
        let verdict = check.verdict.as_str();
        let took = check.seconds.filter(|_| check.verdict != Verdict::NotApplicable).map(duration);
        put!(
            page,
            "<tr><td><code>{}</code></td><td class=\"{}\">{}</td><td class=\"n dim\">{}</td><td class=\"dim\">{}</td></tr>",
            check.name,
            verdict,
            verdict.replace('_', " "),
            took.unwrap_or_default(),
            said(check)
        );
    }
    page.push_str("</table></div>");
}

fn said(check: &CheckResult) -> String {
    match (check.findings.len(), &check.why) {
        (0, why) => why.clone().unwrap_or_default(),
        (1, Some(why)) => format!("1 finding; {why}"),
        (1, None) => "1 finding".into(),
        (count, Some(why)) => format!("{count} findings; {why}"),
        (count, None) => format!("{count} findings"),
    }
}

fn findings(page: &mut Html, report: &PreflightReport) {
    let mut all: Vec<&Finding> = report.checks.iter().flat_map(|check| &check.findings).collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    page.push_str("<h2>Findings</h2>");
    for finding in all {
        let severity = finding.severity.as_str();
        let message = &finding.message;
        put!(page, "<div class=\"finding {}\"><p><b>{}</b> {} ", severity, severity, message);
        put!(page, "<code class=\"dim\">{}</code></p>", finding.check);
        for example in &finding.examples {
            let row = example.row.map(|row| format!(":{row}")).unwrap_or_default();
            let file = example.file.as_deref().unwrap_or_default();
            let value = example.value.as_deref().unwrap_or_default();
            put!(page, "<p class=\"dim\"><code>{}{}</code>  <code>{}</code></p>", file, row, value);
        }
        if let Some(action) = &finding.action {
            put!(page, "<p>→ {}</p>", action);
        }
        page.push_str("</div>");
    }
}

/// The interval against the device.
fn memory(page: &mut Html, report: &PreflightReport) {
    let Some(memory) = &report.memory else { return };
    let estimate = &memory.estimate;
    let usable = memory.usable_bytes;
    let longest = estimate.high_bytes.max(usable.unwrap_or(0)).max(1) as f64 * 1.05;
    let at = |count: u64| 600.0 * count as f64 / longest;
    let tone = match memory.fits {
        Some(false) if Some(estimate.low_bytes) > usable => Severity::Block,
        Some(false) => Severity::Warn,
        _ => Severity::Note,
    };
    page.push_str("<h2>Device memory</h2><div class=\"card\">");
    let (low, high, total) = (at(estimate.low_bytes), at(estimate.high_bytes), at(estimate.total_bytes));
    put!(
        page,
        "<svg viewBox=\"0 0 600 46\" role=\"img\" aria-label=\"memory\"><g class=\"{}\">\
         <rect x=\"0\" y=\"6\" width=\"{:.1}\" height=\"16\" fill=\"var(--c0)\"/>\
         <rect x=\"{:.1}\" y=\"6\" width=\"{:.1}\" height=\"16\" fill=\"var(--c0)\" opacity=\".4\"/>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"3\" y2=\"25\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/>",
        tone.as_str(),
        low,
        low,
        (high - low).max(1.0),
        total,
        total
    );
    if let Some(usable) = usable {
        let x = at(usable);
        put!(
            page,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"0\" y2=\"28\" stroke=\"var(--bad)\" stroke-width=\"2\"/>",
            x,
            x
        );
        put!(page, "<text x=\"{:.1}\" y=\"40\" text-anchor=\"end\">the device: {}</text>", x, bytes(usable));
    }
    put!(
        page,
        "</g></svg><p>{} expected, {} to {}",
        bytes(estimate.total_bytes),
        bytes(estimate.low_bytes),
        bytes(estimate.high_bytes)
    );
    if let Some(device) = &memory.device {
        put!(page, ", on {}", device.title);
    }
    page.push_str("</p><table>");
    for (part, count) in estimate.parts.named().into_iter().filter(|(_, count)| *count > 0) {
        put!(page, "<tr><td>{}</td><td class=\"n\">{}</td></tr>", part.replace('_', " "), bytes(count));
    }
    page.push_str("</table>");
    for advice in &memory.advice {
        put!(
            page,
            "<p>→ {} <span class=\"dim\">({}: {})</span></p>",
            advice.text,
            bytes(advice.total_bytes),
            advice.price
        );
    }
    page.push_str("</div>");
}

fn cost(page: &mut Html, report: &PreflightReport) {
    let Some(cost) = &report.cost else { return };
    page.push_str("<h2>Expected cost</h2><table>");
    for (what, usd) in [
        ("devices", cost.compute_usd),
        ("storage", cost.storage_usd),
        ("transfer", cost.transfer_usd),
        ("all of it", cost.total_usd),
        ("with failures", cost.with_failures_usd),
    ] {
        put!(page, "<tr><td>{}</td><td class=\"n\">{:.2} USD</td></tr>", what, usd);
    }
    put!(page, "</table><p class=\"dim\">{:.1} GPU hours.</p>", cost.gpu_hours);
}

fn imbalance(page: &mut Html, report: &PreflightReport) {
    let Some(imbalance) = &report.imbalance else { return };
    page.push_str("<h2>Classes</h2><div class=\"wide\"><table><tr><th>Class</th><th class=\"n\">Rows</th><th class=\"n\">Fraction</th><th class=\"n\">Balanced weight</th><th class=\"n\">Effective weight</th></tr>");
    for class in &imbalance.classes {
        put!(
            page,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            class.name,
            class.rows,
            class.fraction * 100.0,
            metric(class.balanced_weight),
            metric(class.effective_weight)
        );
    }
    page.push_str("</table></div>");
    for line in &imbalance.advice {
        put!(page, "<p>→ {}</p>", line);
    }
}

fn columns(page: &mut Html, report: &PreflightReport) {
    let Some(first) = report.charts.first() else { return };
    page.push_str("<h2>Columns</h2><p class=\"dim\">Fractions of the rows with a value");
    for (index, series) in first.series.iter().enumerate() {
        put!(
            page,
            "<span class=\"key\" style=\"background:{}\"></span><code>{}</code>",
            colour(index),
            series.set
        );
    }
    page.push_str("</p><div class=\"grid\">");
    report.charts.iter().for_each(|chart| card(page, chart));
    page.push_str("</div>");
}

fn card(page: &mut Html, chart: &ColumnChart) {
    let label = chart.is_label.then(|| html!(" <span class=\"dim\">(label)</span>"));
    put!(page, "<div class=\"card\"><h3><code>{}</code>{}</h3>", chart.name, label);
    match &chart.scale {
        Scale::Range(low, high) => histogram(page, chart, *low, *high),
        Scale::Values(values) => bars(page, chart, values),
        Scale::Texts => {
            let told: Vec<String> =
                chart.series.iter().map(|series| format!("{} in {}", series.distinct, series.set)).collect();
            put!(page, "<p class=\"dim\">different values: {}</p>", told.join(", "));
        }
    }
    let missing = chart.series.iter().filter(|series| series.missing_share > 0.0);
    let missing: Vec<String> =
        missing.map(|series| format!("{:.1} % in {}", series.missing_share * 100.0, series.set)).collect();
    if !missing.is_empty() {
        put!(page, "<p class=\"dim\">missing: {}</p>", missing.join(", "));
    }
    page.push_str("</div>");
}

/// Set over set: the first as filled bars, the others as steps above them.
fn histogram(page: &mut Html, chart: &ColumnChart, low: f64, high: f64) {
    let (width, height) = CHART;
    let tallest = chart.series.iter().flat_map(|series| &series.shares).copied().fold(1e-9, f64::max);
    put!(page, "<svg viewBox=\"0 0 {} {:.0}\" role=\"img\">", width, height + 14.0);
    for (index, series) in chart.series.iter().enumerate() {
        let path = steps(series, tallest);
        let (fill, opacity) = if index == 0 { (colour(0), 0.45) } else { ("none".into(), 1.0) };
        put!(
            page,
            "<path d=\"{}\" fill=\"{}\" fill-opacity=\"{}\" stroke=\"{}\" stroke-width=\"1.3\"/>",
            path,
            fill,
            opacity,
            colour(index)
        );
    }
    let y = height + 11.0;
    put!(page, "<text x=\"0\" y=\"{}\">{}</text>", y, metric(low));
    put!(page, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>", width, y, metric(high));
}

fn steps(series: &Series, tallest: f64) -> Html {
    let (width, height) = CHART;
    let bin = width / series.shares.len().max(1) as f64;
    let mut path = html!("M0 {}", height);
    for (place, share) in series.shares.iter().enumerate() {
        let y = height - (height - 4.0) * share / tallest;
        put!(path, " V{:.1} H{:.1}", y, bin * (place + 1) as f64);
    }
    put!(path, " V{} Z", height);
    path
}

/// A row per value, a bar per set.
fn bars(page: &mut Html, chart: &ColumnChart, values: &[String]) {
    let width = CHART.0;
    let longest = chart.series.iter().flat_map(|series| &series.shares).copied().fold(1e-9, f64::max);
    let others = chart.series.iter().any(|series| series.shares.last().is_some_and(|share| *share > 0.0));
    let names = values.iter().map(String::as_str).chain(others.then_some("others"));
    let names: Vec<&str> = names.collect();
    let bar = (ROW_HEIGHT - 4.0) / chart.series.len().max(1) as f64;
    put!(page, "<svg viewBox=\"0 0 {} {:.0}\" role=\"img\">", width, ROW_HEIGHT * names.len() as f64);
    for (row, name) in names.iter().enumerate() {
        let top = ROW_HEIGHT * row as f64;
        put!(
            page,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            NAMES_WIDTH - 5.0,
            top + ROW_HEIGHT - 6.0,
            cut(name, NAME_LETTERS)
        );
        // Fractions of the named values come first, those of all others last.
        let place = if row < values.len() { row } else { values.len() };
        for (index, series) in chart.series.iter().enumerate() {
            let share = series.shares.get(place).copied().unwrap_or(0.0);
            let length = (width - NAMES_WIDTH - SHARES_WIDTH) * share / longest;
            let y = top + 1.0 + bar * index as f64;
            put!(
                page,
                "<rect x=\"{}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                NAMES_WIDTH,
                y,
                length,
                bar,
                colour(index)
            );
        }
        let first = chart.series.first().and_then(|series| series.shares.get(place)).copied().unwrap_or(0.0);
        put!(
            page,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.1} %</text>",
            width,
            top + ROW_HEIGHT - 6.0,
            first * 100.0
        );
    }
    page.push_str("</svg>");
}
