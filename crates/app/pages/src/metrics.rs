//! Metrics of a table of predictions: numbers with bars for their intervals, curves, the confusion matrix, slices, fairness and the
//! comparison with a baseline.

use std::collections::BTreeSet;

use maud::{Markup, html};
use trackway_core::text::{counted, metric};
use trackway_evaluate::metrics::is_share;
use trackway_evaluate::search::{BlindSpots, ErrorSlice, Loss, shown_predicate};
use trackway_evaluate::{
    Assessment, CalibrationBin, Compared, Comparison, ComparisonVerdict, Confusion, Estimate, Fairness,
    Metrics, Pairing, Point, Slice, SliceCompared,
};

use crate::chart::{Axis, Chart, Dot, Mark, Size, Tone, Unit};
use crate::frame::{About, Page, page};
use crate::parts::{
    Column, card, estimate, estimate_cells, interval, number, p_value, scale_around_zero, scale_of, section,
    table, text, unit_scale, verdict,
};
use crate::residuals;

/// Classes of a confusion matrix that are drawn.
const CLASSES_SHOWN_MAX: usize = 40;
const CLASS_METRICS: [&str; 3] = ["precision", "recall", "f1"];

/// The page of an assessment of `subject`, such as the names of the files.
#[must_use]
pub fn metrics(subject: &str, assessment: &Assessment, about: &About) -> Page {
    page(&format!("Metrics of {subject}"), about, &html! {}, &sections(assessment))
}

/// All sections, for a page that holds more.
pub fn sections(assessment: &Assessment) -> Markup {
    html! {
        (summary(assessment))
        (section("Metrics", &numbers(assessment)))
        @if !assessment.curves.roc.is_empty() { (section("Curves", &curves(assessment))) }
        @if !assessment.classes.is_empty() { (section("Classes", &classes(assessment))) }
        @if let Some(it) = &assessment.confusion { (section("Confusion", &confusion(it))) }
        @if let Some(it) = &assessment.residuals { (section("Residuals", &residuals::residuals(it))) }
        @if !assessment.slices.is_empty() { (section("Slices", &slices(assessment))) }
        @if let Some(it) = &assessment.blind_spots { (section("Blind spots", &blind_spots(it))) }
        @for it in &assessment.fairness { (section(&format!("Fairness by {}", it.column), &fairness(it))) }
        @if let Some(it) = &assessment.comparison {
            (section("Against the baseline", &comparison(it, &assessment.main_metric)))
        }
    }
}

fn summary(assessment: &Assessment) -> Markup {
    let groups =
        assessment.groups.map(|groups| format!(" in {}", counted(groups, "group"))).unwrap_or_default();
    html! {
        p {
            (counted(assessment.rows, "row")) (groups) ", task: " (assessment.task.as_str().replace('_', " ")) ". "
            "Intervals have " (format!("{:.0} %", assessment.confidence * 100.0)) " confidence."
        }
        @for (metric, why) in &assessment.inconclusive {
            p.warn { code { (metric) } " decides nothing: " (why) }
        }
        @for note in &assessment.notes { p.dim { "· " (note) } }
    }
}

fn numbers(assessment: &Assessment) -> Markup {
    let [value, interval, bar] = estimate("Value");
    let columns = [text("Metric"), value, interval, bar, number("Support"), text("Method")];
    table(
        &columns,
        assessment.metrics.iter().map(|(name, it)| {
            let scale = if is_share(name) { unit_scale() } else { scale_of(std::iter::once(it)) };
            html! {
                td { code { (name) } }
                (estimate_cells(Some(it), &scale, None))
                td.n { (it.coverage.words(it.support)) }
                td.dim { (it.method.as_str()) }
            }
        }),
    )
}

fn curves(assessment: &Assessment) -> Markup {
    let curves = &assessment.curves;
    html! {
        div.grid {
            @if !curves.calibration.is_empty() {
                (card(&html! { "Calibration" }, &html! { (calibration(&curves.calibration)) }))
            }
            (card(&html! { "ROC" }, &html! { (roc(&curves.roc)) }))
            (card(&html! { "Precision and recall" }, &html! { (precision_recall(&curves.precision_recall)) }))
        }
    }
}

fn unit_square(title: &str, x: &str, y: &str) -> Chart {
    let axis = |label: &str| Axis::linear(label, (0.0, 1.0), Unit::Number);
    Chart::new(title, Size::SQUARE, axis(x), axis(y))
}

fn line(points: &[Point]) -> Mark {
    Mark::Line(points.iter().map(|point| (point.x, Some(point.y))).collect())
}

fn diagonal() -> Mark {
    Mark::Line(vec![(0.0, Some(0.0)), (1.0, Some(1.0))])
}

fn roc(points: &[Point]) -> Chart {
    unit_square("ROC curve", "false positive rate", "true positive rate")
        .with("", Tone::Reference, diagonal())
        .with("", Tone::Series(0), line(points))
}

fn precision_recall(points: &[Point]) -> Chart {
    unit_square("Precision by recall", "recall", "precision").with("", Tone::Series(0), line(points))
}

/// A point with its interval for each bin; the larger the point the more rows.
fn calibration(bins: &[CalibrationBin]) -> Chart {
    let most = bins.iter().map(|bin| bin.observed.support).max().unwrap_or(1).max(1) as f64;
    let dot = |bin: &CalibrationBin| Dot {
        x: bin.predicted,
        y: bin.observed.value,
        radius: 2.0 + 3.0 * (bin.observed.support as f64 / most).sqrt(),
        note: format!("{:.3} of {}", bin.observed.value, counted(bin.observed.support, "row")),
    };
    let ends = |bin: &CalibrationBin| {
        let (low, high) = bin.observed.interval.bounds()?;
        Some((bin.predicted, low, high))
    };
    unit_square("Calibration", "predicted probability", "observed fraction")
        .with("", Tone::Reference, diagonal())
        .with("", Tone::Series(0), Mark::Intervals(bins.iter().filter_map(ends).collect()))
        .with("", Tone::Series(0), Mark::Points(bins.iter().map(dot).collect()))
}

fn classes(assessment: &Assessment) -> Markup {
    let mut columns = vec![text("Class"), number("Rows")];
    columns.extend(CLASS_METRICS.into_iter().flat_map(estimate));
    let scale = unit_scale();
    table(
        &columns,
        assessment.classes.iter().map(|class| {
            html! {
                td { code { (class.name) } }
                td.n { (class.support) }
                @for name in CLASS_METRICS { (estimate_cells(class.metrics.get(name), &scale, None)) }
            }
        }),
    )
}

/// The fraction of each label's rows as the depth of the colour.
fn confusion(confusion: &Confusion) -> Markup {
    let classes = &confusion.classes;
    if classes.len() > CLASSES_SHOWN_MAX {
        return html! { p.dim { (classes.len()) " classes are too many to draw." } };
    }
    let cell = |count: u64, all: u64, is_right: bool| {
        let fraction = if all > 0 { count as f64 / all as f64 } else { 0.0 };
        let colour = if is_right { "var(--good)" } else { "var(--bad)" };
        let style = format!("background:color-mix(in srgb,{colour} {:.0}%,transparent)", fraction * 60.0);
        html! { td.n style=(style) { (count) " " span.dim { (format!("{:.0} %", fraction * 100.0)) } } }
    };
    html! {
        p.dim { "rows: label, columns: prediction" }
        div.wide {
            table.matrix {
                thead { tr { th {} @for class in classes { th.n { code { (class) } } } } }
                tbody {
                    @for (label, (class, counts)) in classes.iter().zip(&confusion.counts).enumerate() {
                        tr {
                            th { code { (class) } }
                            @for (prediction, count) in counts.iter().enumerate() {
                                (cell(*count, counts.iter().sum(), label == prediction))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn slices(assessment: &Assessment) -> Markup {
    let metric = assessment.main_metric.as_str();
    let whole = assessment.metrics.get(metric);
    let of = |slice: &'_ Slice| slice.metrics.get(assessment.metric_of(slice.compared_by.as_ref())).copied();
    let whole_of =
        |slice: &Slice| Some(assessment.metrics.get(assessment.metric_of(slice.compared_by.as_ref()))?.value);
    let found: Vec<Estimate> = assessment.slices.iter().filter_map(of).collect();
    let estimates = found.iter().chain(whole);
    let scale = if is_share(metric) { unit_scale() } else { scale_of(estimates) };
    let [value, interval, bar] = estimate(metric);
    let columns = [
        text("Slice"),
        text("Condition"),
        number("Rows"),
        value,
        interval,
        bar,
        number("Against the rest"),
        number("p (corrected)"),
        text("Verdict"),
    ];
    let row = |slice: &Slice| {
        html! {
            td { (slice.label()) }
            td { code.dim { (slice.predicate) } }
            td.n { (slice.support) }
            (estimate_cells(of(slice).as_ref(), &scale, whole_of(slice)))
            td.n { @if let Some(it) = &slice.difference { (signed(it)) } @else { "–" } }
            td.n { (slice.adjusted_p_value.map_or_else(|| "–".to_owned(), p_value)) }
            td { (verdict(slice.verdict)) @if let Some(why) = &slice.why { br; span.dim { (why) } } }
        }
    };
    html! {
        p.dim { "The dashed line is " code { (metric) } " of all rows." }
        (table(&columns, assessment.slices.iter().map(row)))
    }
}

fn signed(difference: &Estimate) -> Markup {
    let sign = if difference.value > 0.0 { "+" } else { "" };
    html! { (sign) (metric(difference.value)) " " span.dim { "(" (interval(difference)) ")" } }
}

fn fairness(fairness: &Fairness) -> Markup {
    let scale =
        |name: &str, it: &Estimate| if is_share(name) { unit_scale() } else { scale_of(std::iter::once(it)) };
    let mut measures = vec![text("Measure")];
    measures.extend(estimate("Value"));
    let names: BTreeSet<&str> =
        fairness.groups.iter().flat_map(|group| group.metrics.keys()).map(String::as_str).collect();
    let titles: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
    let mut columns = vec![text("Group"), number("Rows")];
    columns.extend(titles.iter().map(|title| number(title)));
    columns.push(text(""));
    html! {
        (table(&measures, fairness.measures.iter().map(|(name, it)| html! {
            td { code { (name) } }
            (estimate_cells(Some(it), &scale(name, it), None))
        })))
        (table(&columns, fairness.groups.iter().map(|group| html! {
            td { code { (group.name) } }
            td.n { (group.support) }
            @for name in &names { td.n { (group_cell(&group.metrics, name)) } }
            td { @if let Some(why) = &group.why { (verdict(ComparisonVerdict::Inconclusive)) br; span.dim { (why) } } }
        })))
        @if fairness.rows_without_group > 0 {
            p.warn { (counted(fairness.rows_without_group, "row")) " without a group." }
        }
    }
}

fn group_cell(metrics: &Metrics, name: &str) -> Markup {
    html! {
        @if let Some(it) = metrics.get(name) { (metric(it.value)) br; span.dim { (interval(it)) } } @else { "–" }
    }
}

/// Other descriptions that are shown of the rows of one slice.
const OTHERS_SHOWN: usize = 3;

/// The slices that held-out rows confirm, beside all rows.
fn blind_spots(found: &BlindSpots) -> Markup {
    let what = match found.loss {
        Loss::ZeroOne => "Error rate",
        Loss::Absolute | Loss::Squared => "Mean error",
    };
    let of = |slice: &ErrorSlice| slice.held_out.as_ref().and_then(|it| it.average_error);
    let found_errors: Vec<Estimate> = found.confirmed().filter_map(of).collect();
    let scale = match found.loss {
        Loss::ZeroOne => unit_scale(),
        Loss::Absolute | Loss::Squared => scale_of(found_errors.iter().chain([&found.error])),
    };
    let [value, interval, bar] = estimate(what);
    let columns = [text("Slice"), number("Held-out rows"), value, interval, bar, number("p (corrected)")];
    let row = |slice: &ErrorSlice| {
        html! {
            td {
                (shown_predicate(&slice.predicate))
                @for other in slice.also_described_by.iter().take(OTHERS_SHOWN) {
                    br; span.dim { "also " (shown_predicate(&other.predicate)) }
                }
            }
            td.n { (slice.held_out.as_ref().map_or(0, |it| it.size)) }
            (estimate_cells(of(slice).as_ref(), &scale, Some(found.error.value)))
            td.n { (slice.adjusted_p_value.map_or_else(|| "–".to_owned(), p_value)) }
        }
    };
    html! {
        p.dim {
            "Slices that were found in " (counted(found.searched.rows, "row")) " and confirmed by "
            (counted(found.held_out.map_or(0, |it| it.rows), "row"))
            " that the search did not see. The dashed line is the error of all rows."
        }
        @if found_errors.is_empty() { p { "No slice is confirmed to be worse than all rows." } }
        @else { (table(&columns, found.confirmed().map(row))) }
    }
}

fn comparison(comparison: &Comparison, main_metric: &str) -> Markup {
    let metrics: Vec<(&str, &Compared)> =
        comparison.metrics.iter().map(|(name, it)| (name.as_str(), it)).collect();
    let labels: Vec<String> = comparison.slices.iter().map(SliceCompared::label).collect();
    let of_slices = comparison.slices.iter().map(|slice| &slice.compared);
    let slices: Vec<(&str, &Compared)> = labels.iter().map(String::as_str).zip(of_slices).collect();
    html! {
        (pairing(&comparison.pairing))
        @if let Some(test) = &comparison.mcnemar {
            p {
                (test.only_baseline_right) " are right only in the baseline, " (test.only_candidate_right) " only now (McNemar: p "
                @if test.p_value >= 1e-4 { "= " } (p_value(test.p_value)) ")."
            }
        }
        (compared("Metric", &metrics))
        @if !slices.is_empty() { (compared(&format!("{main_metric} of slice"), &slices)) }
    }
}

fn pairing(pairing: &Pairing) -> Markup {
    let by = pairing.id.as_ref().map_or_else(|| "in their order".to_owned(), |id| format!("by {id}"));
    let not_compared = [
        (pairing.only_baseline, "of the baseline without a pair here"),
        (pairing.only_candidate, "without a pair in the baseline"),
        (pairing.repeated_ids, "with a missing or repeated id"),
        (pairing.different_labels, "with another label in the baseline"),
    ];
    html! {
        p { (counted(pairing.pairs, "row")) " paired " (by) "." }
        @for (count, what) in not_compared.into_iter().filter(|(count, _)| *count > 0) {
            p.warn { (counted(count, "row")) " " (what) ": not compared." }
        }
    }
}

fn compared(title: &str, rows: &[(&str, &Compared)]) -> Markup {
    let [difference, interval, bar] = estimate("Difference");
    let columns: [Column<'_>; 7] =
        [text(title), number("Baseline"), number("Now"), difference, interval, bar, text("Verdict")];
    table(
        &columns,
        rows.iter().map(|(name, it)| {
            let scale = scale_around_zero(&it.difference, it.margin);
            html! {
                td { code { (name) } }
                td.n { (metric(it.baseline)) }
                td.n { (metric(it.candidate)) }
                (estimate_cells(Some(&it.difference), &scale, Some(0.0)))
                td {
                    (verdict(it.verdict))
                    @if let Some(rows) = it.settles_at { br; span.dim { "about " (rows) " rows would settle it" } }
                }
            }
        }),
    )
}
