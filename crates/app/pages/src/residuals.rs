//! Residuals as charts: means with intervals, over the middle 80 % of the rows, for the prediction and each column.

use maud::{Markup, html};
use trackway_core::text::{counted, short_range};
use trackway_evaluate::residuals::{Depends, ResidualBin, ResidualCurve, ResidualOf, Residuals};

use crate::chart::{Axis, Chart, Dot, Mark, Size, Tone, Unit, range};
use crate::parts::{card, p_value};

/// Columns that are drawn.
const DRAWN_MAX: usize = 12;

/// The body of the section.
pub fn residuals(residuals: &Residuals) -> Markup {
    let what = match residuals.of {
        ResidualOf::Value => "label minus prediction: above 0 the prediction is too low",
        ResidualOf::Probability => {
            "outcome (1 or 0) minus predicted probability: above 0 the probability is too low"
        }
        ResidualOf::WrongClass => "1 where the prediction is wrong, else 0",
    };
    // Of probabilities and of right and wrong, single rows add nothing to their mean.
    let with_spread = residuals.of == ResidualOf::Value;
    let drawn: Vec<&ResidualCurve> =
        residuals.by_prediction.iter().chain(residuals.by_feature.iter().take(DRAWN_MAX)).collect();
    let ends = |bin: &ResidualBin| {
        let mean = [bin.mean.interval.known_low(), bin.mean.interval.known_high(), Some(bin.mean.value)];
        let spread = with_spread.then_some([bin.low, bin.high]);
        mean.into_iter().flatten().chain(spread.into_iter().flatten()).collect::<Vec<f64>>()
    };
    // All on one scale, so that they can be compared.
    let scale = Axis::over("", drawn.iter().flat_map(|curve| &curve.bins).flat_map(ends).chain([0.0]));
    let more = residuals.by_feature.len().saturating_sub(DRAWN_MAX);
    html! {
        p.dim {
            (what) ". Points are means with their intervals" @if with_spread { ", bars the middle 80 % of the rows" }
            ". A column that explains part of it is not fully used by the model."
        }
        div.grid {
            @if !residuals.points.is_empty() {
                (card(&html! { "By prediction, row by row" }, &html! { (scatter(residuals)) }))
            }
            @for curve in &drawn {
                (card(&html! { (curve.feature) }, &html! {
                    (chart(curve, &scale, with_spread))
                    p.dim { (depends(curve)) }
                }))
            }
        }
        @if more > 0 { p.dim { (counted(more as u64, "more column")) " in the JSON." } }
    }
}

fn depends(curve: &ResidualCurve) -> String {
    let words = |what: &str, depends: Option<Depends>| {
        let it = depends?;
        let equals = if it.adjusted_p_value < 1e-4 { "" } else { "= " };
        Some(format!("{what} {:.1} %, p {equals}{}", it.explained * 100.0, p_value(it.adjusted_p_value)))
    };
    let both = [words("explains", curve.mean_depends), words("of the spread", curve.spread_depends)];
    both.into_iter().flatten().collect::<Vec<String>>().join(" · ")
}

fn scatter(residuals: &Residuals) -> Chart {
    let points = &residuals.points;
    let (low, high) = range(points.iter().map(|it| it.x));
    let room = (high - low) * 0.04;
    let x = Axis::linear("prediction", (low - room, high + room), Unit::Number);
    let y = Axis::over("", points.iter().map(|it| it.y).chain([0.0]));
    let dots = points.iter().map(|it| Dot { x: it.x, y: it.y, radius: 1.6, note: String::new() });
    Chart::new("Residuals by prediction, row by row", Size::CARD, x, y)
        .with("", Tone::Reference, Mark::Level(0.0))
        .with("", Tone::Light(0), Mark::Points(dots.collect()))
}

fn chart(curve: &ResidualCurve, scale: &Axis, with_spread: bool) -> Chart {
    let name = |bin: &ResidualBin| bin.values.as_deref().map_or_else(|| "missing".to_owned(), short_range);
    let names: Vec<String> = curve.bins.iter().map(name).collect();
    let bins = || curve.bins.iter().enumerate().map(|(index, bin)| (index as f64, bin));
    let spread = bins().filter(|_| with_spread).map(|(x, bin)| (x, bin.low, bin.high));
    let intervals = bins().filter_map(|(x, bin)| {
        let (low, high) = bin.mean.interval.bounds()?;
        Some((x, low, high))
    });
    let dots = bins().zip(&names).map(|((x, bin), name)| Dot {
        x,
        y: bin.mean.value,
        radius: 3.0,
        note: format!("{name}: {:.4} of {}", bin.mean.value, counted(bin.mean.support, "row")),
    });
    let dots = Mark::Points(dots.collect());
    let title = format!("Mean residual by {}", curve.feature);
    let chart = Chart::new(&title, Size::CARD, Axis::bands("", names), scale.clone());
    chart
        .with("", Tone::Reference, Mark::Level(0.0))
        .with("", Tone::Light(0), Mark::Ranges(spread.collect()))
        .with("", Tone::Series(0), Mark::Intervals(intervals.collect()))
        .with("", Tone::Series(0), dots)
}
