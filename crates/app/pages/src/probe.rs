//! What a probe found out about a model.

use maud::{Markup, html};
use trackway_api::models::ProbeReport;
use trackway_core::text::{counted, metric};
use trackway_evaluate::debug::{Curve, Dependence, Importance, Perturbation, Sensitivity};
use trackway_tables::personal::masked_cut;

use crate::chart::{Axis, Chart, Mark, Size, Tone, Unit, legend, range};
use crate::frame::{About, Page, page};
use crate::parts::{
    Column, card, columns, estimate, estimate_cells, known, number, scale_of, section, table, unit_scale,
};
use crate::residuals;

/// Rows of a table of the page.
const ROWS_MAX: usize = 60;
/// Letters of the reason for which a model refused rows.
const REASON_LETTERS_MAX: usize = 120;

/// The page: `subject` names the model and its rows.
#[must_use]
pub fn probe(subject: &str, report: &ProbeReport, about: &About) -> Page {
    let found = &report.found;
    let lead = html! {
        p {
            (found.rows) " of " (counted(report.rows_read, "row"))
            @if let Some(error) = &found.error { ", mean error " (metric(error.value)) }
            ". The model scored " (counted(found.scored_rows, "row")) "."
        }
    };
    let body = html! {
        @if let Some(it) = &found.residuals { (section("Residuals", &residuals::residuals(it))) }
        @if !found.importance.is_empty() { (section("Importance", &importance(&found.importance))) }
        @if !found.dependence.is_empty() { (section("Dependence", &dependence(&found.dependence))) }
        @if !found.perturbations.is_empty() { (section("Perturbations", &perturbations(&found.perturbations))) }
        @if let Some(it) = &found.sensitivity {
            (section("Small steps", &small_steps(it)))
            (section("Slopes", &slopes(it)))
        }
    };
    page(&format!("Probe of {subject}"), about, &lead, &body)
}

/// A table of at most [`ROWS_MAX`] rows under a sentence.
fn explained(sentence: &str, columns: &[Column<'_>], rows: impl Iterator<Item = Markup>) -> Markup {
    html! { p.dim { (sentence) } (table(columns, rows.take(ROWS_MAX))) }
}

fn importance(importance: &[Importance]) -> Markup {
    let scale = scale_of(importance.iter().map(|it| &it.increase));
    explained(
        "Permutation importance: how much the mean error rises when the values of a feature are shuffled between rows.",
        &columns("Feature | Error rises by: | Interval: | "),
        importance.iter().map(|it| {
            html! {
                td { code { (it.feature) } }
                (estimate_cells(Some(&it.increase), &scale, Some(0.0)))
            }
        }),
    )
}

fn dependence(dependence: &[Dependence]) -> Markup {
    html! {
        p.dim {
            "Partial dependence: the mean prediction with every row's feature set to a value. Thin lines are single rows, the \
             band holds the middle 80 % of them."
        }
        div.grid {
            @for feature in dependence.iter().take(ROWS_MAX) {
                @let classes = feature.curves.iter().enumerate();
                @let classes: Vec<(Tone, &str)> = classes
                    .filter_map(|(index, curve)| Some((Tone::Series(index), curve.class.as_deref()?)))
                    .collect();
                (card(&html! { (feature.feature) }, &html! {
                    (curves(feature))
                    @if !classes.is_empty() { (legend(classes)) }
                }))
            }
        }
    }
}

fn curves(feature: &Dependence) -> Chart {
    let values = |curve: &Curve| {
        let rows = curve.rows.iter().flatten();
        curve.mean.iter().chain(&curve.low).chain(&curve.high).chain(rows).copied().collect::<Vec<f64>>()
    };
    let (low, high) = range(feature.curves.iter().flat_map(values));
    let room = (high - low) * 0.04;
    let y = Axis::linear("", (low - room, high + room), Unit::Number);
    let numbers: Option<Vec<f64>> = feature.values.iter().map(|value| value.parse().ok()).collect();
    let x = match &numbers {
        Some(numbers) => Axis::linear("", range(numbers.iter().copied()), Unit::Number),
        None => Axis::bands("", feature.values.clone()),
    };
    let places = numbers.unwrap_or_else(|| (0..feature.values.len()).map(|it| it as f64).collect());
    let title = format!("Mean prediction by {}", feature.feature);
    let mut chart = Chart::new(&title, Size::CARD, x, y);
    for (index, curve) in feature.curves.iter().enumerate() {
        let through = |values: &[f64]| {
            Mark::Line(places.iter().copied().zip(values.iter().map(|value| Some(*value))).collect())
        };
        for row in &curve.rows {
            chart = chart.with("", Tone::Light(index), through(row));
        }
        let ends = curve.low.iter().zip(&curve.high);
        let band = places.iter().zip(ends).map(|(x, (low, high))| (*x, *low, *high)).collect();
        let class = curve.class.as_deref().unwrap_or_default();
        chart = chart.with("", Tone::Series(index), Mark::Area(band));
        chart = chart.with(class, Tone::Series(index), through(&curve.mean));
    }
    chart
}

fn perturbations(perturbations: &[Perturbation]) -> Markup {
    let mut sorted: Vec<&Perturbation> = perturbations.iter().collect();
    let harm =
        |it: &Perturbation| it.flipped.map(|flipped| flipped.value).or(it.shift).unwrap_or(f64::INFINITY);
    sorted.sort_by(|one, other| harm(other).total_cmp(&harm(one)));
    let scale = unit_scale();
    explained(
        "Predictions for values that are missing, mistyped, or in another unit.",
        &columns(
            "Feature | Change | Decision changes: | Interval: | | Prediction moves by: | Error rises by:",
        ),
        sorted.into_iter().map(|it| {
            html! {
                td { code { (it.feature) } }
                td { (it.kind.label()) }
                @if let Some(why) = &it.refused {
                    td.warn colspan="5" { "refused: " (masked_cut(why, REASON_LETTERS_MAX)) }
                } @else {
                    (estimate_cells(it.flipped.as_ref(), &scale, None))
                    td.n { (known(it.shift)) }
                    td.n { (known(it.increase.map(|increase| increase.value))) }
                }
            }
        }),
    )
}

fn small_steps(sensitivity: &Sensitivity) -> Markup {
    let mut columns = vec![number("Standard deviations")];
    columns.extend(estimate("Decision changes"));
    columns.extend(estimate("in random directions"));
    columns.extend([number("Prediction moves by"), number("in random directions")]);
    let scale = unit_scale();
    let wrong = &sensitivity.check.features;
    html! {
        (explained(
            "All numeric features moved at once along the gradient sign, compared with steps of the same size in random directions.",
            &columns,
            sensitivity.steps.iter().map(|step| html! {
                td.n { (step.deviations) }
                (estimate_cells(step.flipped.as_ref(), &scale, None))
                (estimate_cells(step.flipped_at_random.as_ref(), &scale, None))
                td.n { (metric(step.shift)) }
                td.n { (metric(step.shift_at_random)) }
            }),
        ))
        @if !wrong.is_empty() {
            p.warn { "The gradients of " (wrong.join(", ")) " do not match the predictions." }
        }
    }
}

fn slopes(sensitivity: &Sensitivity) -> Markup {
    let scale = scale_of(sensitivity.slopes.iter().map(|it| &it.per_deviation));
    explained(
        "The mean absolute change of the prediction for one standard deviation of a feature.",
        &columns("Feature | Change: | Interval: | "),
        sensitivity.slopes.iter().map(|it| {
            html! {
                td { code { (it.feature) } }
                (estimate_cells(Some(&it.per_deviation), &scale, None))
            }
        }),
    )
}
