//! An assessment as part of a page: numbers with bars for their intervals, curves, the confusion matrix, slices,
//! fairness and the comparison. The sections can be put into any page.

mod charts;

use trackway_flows::assess::{
    Assessment, Compared, Comparison, Confusion, Estimate, Fairness, Metrics, Slice, Verdict, is_share_metric,
};

use super::{Html, head, html, put, residuals};
pub use crate::units::number;
use crate::units::{interval, rows_behind};
pub(super) use charts::Scale;
use charts::{bar, calibration, curve};

/// Classes of a confusion matrix that are drawn.
const CLASSES_SHOWN: usize = 40;

/// A whole page.
pub fn page(title: &str, assessment: &Assessment) -> Html {
    let mut page = head(title);
    put!(page, "<h1>{}</h1>", title);
    sections(&mut page, assessment);
    page.push_str("</body></html>\n");
    page
}

/// All that is known, for a page that holds more.
pub fn sections(page: &mut Html, assessment: &Assessment) {
    summary(page, assessment);
    metrics(page, assessment);
    curves(page, assessment);
    classes(page, assessment);
    if let Some(confusion) = &assessment.confusion {
        matrix(page, confusion);
    }
    if let Some(it) = &assessment.residuals {
        residuals::section(page, it);
    }
    slices(page, assessment);
    assessment.fairness.iter().for_each(|it| fairness(page, it));
    if let Some(it) = &assessment.comparison {
        comparison(page, it, assessment);
    }
}

fn summary(page: &mut Html, assessment: &Assessment) {
    let groups = assessment.groups.map(|groups| format!(" in {groups} groups")).unwrap_or_default();
    put!(
        page,
        "<p>{} rows{}, task: {}. Intervals have {:.0} % confidence.</p>",
        assessment.rows,
        groups,
        assessment.task.as_str().replace('_', " "),
        assessment.confidence * 100.0
    );
    for note in &assessment.notes {
        put!(page, "<p class=\"dim\">· {}</p>", note);
    }
}

/// Cells: value, interval, bar.
pub(super) fn estimate_cells(page: &mut Html, estimate: Option<&Estimate>, scale: Scale, mark: Option<f64>) {
    let Some(estimate) = estimate else {
        page.push_str("<td class=\"n dim\">–</td><td></td><td></td>");
        return;
    };
    put!(
        page,
        "<td class=\"n\">{}</td><td class=\"n dim\">{}</td><td>{}</td>",
        number(estimate.value),
        interval(estimate),
        bar(estimate, scale, mark)
    );
}

fn metrics(page: &mut Html, assessment: &Assessment) {
    page.push_str("<h2>Metrics</h2><div class=\"wide\"><table><tr><th>Metric</th><th class=\"n\">Value</th><th class=\"n\">Interval</th><th></th><th class=\"n\">Support</th><th></th></tr>");
    for (name, estimate) in &assessment.metrics {
        let scale = if is_share_metric(name) { Scale::UNIT } else { Scale::around(estimate) };
        put!(page, "<tr><td><code>{}</code></td>", name);
        estimate_cells(page, Some(estimate), scale, None);
        let method = estimate.method.as_str();
        put!(page, "<td class=\"n\">{}</td><td class=\"dim\">{}</td></tr>", rows_behind(estimate), method);
    }
    page.push_str("</table></div>");
}

fn curves(page: &mut Html, assessment: &Assessment) {
    let curves = &assessment.curves;
    if curves.roc.is_empty() {
        return;
    }
    page.push_str("<h2>Curves</h2><div class=\"grid\">");
    if !curves.calibration.is_empty() {
        put!(
            page,
            "<div class=\"card\"><h3>Calibration</h3>{}<p class=\"dim\">predicted probability → observed fraction of positives</p></div>",
            calibration(&curves.calibration)
        );
    }
    for (title, points, axes, diagonal) in [
        ("ROC", &curves.roc, "false positive rate → true positive rate", true),
        ("Precision and recall", &curves.precision_recall, "recall → precision", false),
    ] {
        put!(
            page,
            "<div class=\"card\"><h3>{}</h3>{}<p class=\"dim\">{}</p></div>",
            title,
            curve(points, diagonal),
            axes
        );
    }
    page.push_str("</div>");
}

fn classes(page: &mut Html, assessment: &Assessment) {
    if assessment.classes.is_empty() {
        return;
    }
    page.push_str("<h2>Classes</h2><div class=\"wide\"><table><tr><th>Class</th><th class=\"n\">Rows</th>");
    for name in ["precision", "recall", "f1"] {
        put!(page, "<th class=\"n\">{}</th><th></th><th></th>", name);
    }
    page.push_str("</tr>");
    for class in &assessment.classes {
        put!(page, "<tr><td><code>{}</code></td><td class=\"n\">{}</td>", class.name, class.support);
        for name in ["precision", "recall", "f1"] {
            estimate_cells(page, class.metrics.get(name), Scale::UNIT, None);
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}

/// The fraction of each label's rows as the depth of the colour.
fn matrix(page: &mut Html, confusion: &Confusion) {
    page.push_str("<h2>Confusion</h2>");
    let classes = &confusion.classes;
    if classes.len() > CLASSES_SHOWN {
        put!(page, "<p class=\"dim\">{} classes are too many to draw.</p>", classes.len());
        return;
    }
    page.push_str("<p class=\"dim\">rows: label, columns: prediction</p><div class=\"wide\"><table class=\"matrix\"><tr><th></th>");
    classes.iter().for_each(|class| put!(page, "<th class=\"n\"><code>{}</code></th>", class));
    page.push_str("</tr>");
    for (label, (class, counts)) in classes.iter().zip(&confusion.counts).enumerate() {
        put!(page, "<tr><th><code>{}</code></th>", class);
        let all: u64 = counts.iter().sum();
        for (prediction, count) in counts.iter().enumerate() {
            let share = if all > 0 { *count as f64 / all as f64 } else { 0.0 };
            let colour = if label == prediction { "var(--good)" } else { "var(--bad)" };
            put!(
                page,
                "<td class=\"n\" style=\"background:color-mix(in srgb,{} {:.0}%,transparent)\">{} <span class=\"dim\">{:.0} %</span></td>",
                colour,
                share * 60.0,
                count,
                share * 100.0
            );
        }
        page.push_str("</tr>");
    }
    page.push_str("</table></div>");
}

/// A verdict with its CSS class.
pub fn verdict(verdict: Verdict) -> Html {
    let class = match verdict {
        Verdict::Better => "pass",
        Verdict::Worse => "block",
        Verdict::Inconclusive => "warn",
        Verdict::NoDifferenceShown => "note",
    };
    html!("<span class=\"{}\">{}</span>", class, verdict.as_str().replace('_', " "))
}

fn p_value(p_value: Option<f64>) -> String {
    match p_value {
        None => "–".to_owned(),
        Some(p_value) if p_value < 1e-4 => "<0.0001".to_owned(),
        Some(p_value) => format!("{p_value:.4}"),
    }
}

fn slices(page: &mut Html, assessment: &Assessment) {
    if assessment.slices.is_empty() {
        return;
    }
    let metric = &assessment.main_metric;
    let whole = assessment.metrics.get(metric);
    let estimates = assessment.slices.iter().filter_map(|slice| slice.metrics.get(metric)).chain(whole);
    let scale = if is_share_metric(metric) { Scale::UNIT } else { Scale::of(estimates) };
    put!(
        page,
        "<h2>Slices</h2><p class=\"dim\">The line is <code>{}</code> of all rows.</p><div class=\"wide\"><table><tr><th>Slice</th><th></th><th class=\"n\">Rows</th><th class=\"n\">{}</th><th class=\"n\">Interval</th><th></th><th class=\"n\">Against the rest</th><th class=\"n\">p (corrected)</th><th></th></tr>",
        metric,
        metric
    );
    for slice in &assessment.slices {
        slice_row(page, slice, metric, scale, whole.map(|whole| whole.value));
    }
    page.push_str("</table></div>");
}

fn slice_row(page: &mut Html, slice: &Slice, metric: &str, scale: Scale, mark: Option<f64>) {
    put!(
        page,
        "<tr><td>{}</td><td><code class=\"dim\">{}</code></td><td class=\"n\">{}</td>",
        slice.name,
        slice.predicate,
        slice.support
    );
    estimate_cells(page, slice.metrics.get(metric), scale, mark);
    let difference = slice.difference.as_ref().map_or_else(|| html!("–"), signed);
    let why = slice.why.as_deref().map(|why| html!("<br><span class=\"dim\">{}</span>", why));
    put!(
        page,
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}{}</td></tr>",
        difference,
        p_value(slice.adjusted_p_value),
        verdict(slice.verdict),
        why
    );
}

fn signed(difference: &Estimate) -> Html {
    let sign = if difference.value > 0.0 { "+" } else { "" };
    html!("{}{} <span class=\"dim\">({})</span>", sign, number(difference.value), interval(difference))
}

fn fairness(page: &mut Html, fairness: &Fairness) {
    put!(page, "<h2>Fairness by <code>{}</code></h2>", fairness.column);
    page.push_str("<div class=\"wide\"><table><tr><th>Measure</th><th class=\"n\">Value</th><th class=\"n\">Interval</th><th></th></tr>");
    for (name, estimate) in &fairness.measures {
        put!(page, "<tr><td><code>{}</code></td>", name);
        estimate_cells(page, Some(estimate), Scale::UNIT, None);
        page.push_str("</tr>");
    }
    page.push_str("</table></div><div class=\"wide\"><table><tr><th>Group</th><th class=\"n\">Rows</th>");
    let mut names: Vec<&String> = fairness.groups.iter().flat_map(|group| group.metrics.keys()).collect();
    names.sort();
    names.dedup();
    names.iter().for_each(|name| put!(page, "<th class=\"n\">{}</th>", name.replace('_', " ")));
    page.push_str("<th></th></tr>");
    for group in &fairness.groups {
        put!(page, "<tr><td><code>{}</code></td><td class=\"n\">{}</td>", group.name, group.support);
        for name in &names {
            put!(page, "<td class=\"n\">{}</td>", group_cell(&group.metrics, name));
        }
        let why = group
            .why
            .as_deref()
            .map(|why| html!("{}<br><span class=\"dim\">{}</span>", verdict(Verdict::Inconclusive), why));
        put!(page, "<td>{}</td></tr>", why);
    }
    page.push_str("</table></div>");
    if fairness.rows_without_group > 0 {
        put!(page, "<p class=\"warn\">{} rows have no group.</p>", fairness.rows_without_group);
    }
}

fn group_cell(metrics: &Metrics, name: &str) -> Html {
    metrics.get(name).map_or_else(
        || html!("–"),
        |it| html!("{}<br><span class=\"dim\">{}</span>", number(it.value), interval(it)),
    )
}

fn comparison(page: &mut Html, comparison: &Comparison, assessment: &Assessment) {
    page.push_str("<h2>Against the baseline</h2>");
    let pairing = &comparison.pairing;
    let by = pairing.id.as_ref().map_or_else(|| "in their order".to_owned(), |id| format!("by {id}"));
    put!(page, "<p>{} rows paired {}.", pairing.pairs, by);
    if let Some(test) = &comparison.mcnemar {
        put!(
            page,
            " {} are right only in the baseline, {} only now (McNemar: p = {}).",
            test.only_baseline_right,
            test.only_candidate_right,
            p_value(Some(test.p_value))
        );
    }
    page.push_str("</p>");
    for (count, what) in [
        (pairing.only_baseline, "rows of the baseline are missing here"),
        (pairing.only_candidate, "rows are not in the baseline"),
        (pairing.repeated_ids, "rows have a missing or repeated id"),
        (pairing.different_labels, "rows have another label in the baseline"),
    ] {
        if count > 0 {
            put!(page, "<p class=\"warn\">{} {}; they are not compared.</p>", count, what);
        }
    }
    let rows: Vec<(&str, &Compared)> =
        comparison.metrics.iter().map(|(name, it)| (name.as_str(), it)).collect();
    compared(page, "Metric", &rows);
    if !comparison.slices.is_empty() {
        let title = format!("{} of slice", assessment.main_metric);
        let rows: Vec<(&str, &Compared)> =
            comparison.slices.iter().map(|slice| (slice.name.as_str(), &slice.compared)).collect();
        compared(page, &title, &rows);
    }
}

fn compared(page: &mut Html, title: &str, rows: &[(&str, &Compared)]) {
    put!(
        page,
        "<div class=\"wide\"><table><tr><th>{}</th><th class=\"n\">Baseline</th><th class=\"n\">Now</th><th class=\"n\">Difference</th><th class=\"n\">Interval</th><th></th><th></th></tr>",
        title
    );
    for (name, compared) in rows {
        put!(
            page,
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            name,
            number(compared.baseline),
            number(compared.candidate)
        );
        let scale = Scale::with_zero(&compared.difference, compared.margin);
        estimate_cells(page, Some(&compared.difference), scale, Some(0.0));
        let settles = compared
            .settles_at
            .map(|rows| html!("<br><span class=\"dim\">about {} rows would settle it</span>", rows));
        put!(page, "<td>{}{}</td></tr>", verdict(compared.verdict), settles);
    }
    page.push_str("</table></div>");
}
