//! Residuals as drawings: means with intervals over the middle 80 % of the rows, for the prediction and each column.

use trackway_flows::assess::{Depends, ResidualBin, ResidualCurve, ResidualOf, Residuals};

use super::plot::{Plot, range, range_with_zero};
use super::{Html, put};
use crate::units::short_range;

/// Columns that are drawn.
const DRAWN_MAX: usize = 12;

/// The section of a page.
pub fn section(page: &mut Html, residuals: &Residuals) {
    let what = match residuals.of {
        ResidualOf::Value => "label less prediction: above 0 the prediction is too low",
        ResidualOf::Probability => {
            "outcome (1 or 0) minus predicted probability: above 0 the probability is too low"
        }
        ResidualOf::WrongClass => "1 where the prediction is wrong, else 0",
    };
    // For probabilities and for right and wrong, only the mean is of interest.
    let with_spread = residuals.of == ResidualOf::Value;
    let bars = if with_spread { ", bars the middle 80 % of the rows" } else { "" };
    put!(
        page,
        "<h2>Residuals</h2><p class=\"dim\">{}. Points are means with their intervals{}. A column that explains any of it has \
         information that the model does not use.</p><div class=\"grid\">",
        what,
        bars
    );
    if !residuals.points.is_empty() {
        card(page, "By prediction, row by row", &scatter(residuals), None);
    }
    let shown = residuals.by_prediction.iter().chain(residuals.by_feature.iter().take(DRAWN_MAX));
    let values = |bin: &ResidualBin| {
        let ends = [bin.mean.low, bin.mean.high, Some(bin.mean.value)];
        let spread = with_spread.then_some([bin.low, bin.high]);
        ends.into_iter().flatten().chain(spread.into_iter().flatten()).collect::<Vec<f64>>()
    };
    // All on one scale, so that they can be compared.
    let scale = range_with_zero(shown.clone().flat_map(|curve| &curve.bins).flat_map(values));
    for curve in shown {
        card(page, &curve.feature, &drawing(curve, scale, with_spread), Some(curve));
    }
    page.push_str("</div>");
    let more = residuals.by_feature.len().saturating_sub(DRAWN_MAX);
    if more > 0 {
        put!(page, "<p class=\"dim\">{} more columns are in the JSON.</p>", more);
    }
}

fn card(page: &mut Html, title: &str, drawing: &Html, curve: Option<&ResidualCurve>) {
    put!(page, "<div class=\"card\"><h3>{}</h3>{}", title, drawing);
    if let Some(curve) = curve {
        let said = |what: &str, depends: Option<Depends>| {
            depends.map(|it| {
                let p = if it.adjusted_p_value < 1e-4 {
                    "< 0.0001".to_owned()
                } else {
                    format!("= {:.4}", it.adjusted_p_value)
                };
                format!("{what} {:.1} %, p {p}", it.explained * 100.0)
            })
        };
        let said = [said("explains", curve.mean_depends), said("of the spread", curve.spread_depends)];
        let said: Vec<String> = said.into_iter().flatten().collect();
        put!(page, "<p class=\"dim\">{}</p>", said.join(" · "));
    }
    page.push_str("</div>");
}

fn scatter(residuals: &Residuals) -> Html {
    let points = &residuals.points;
    let mut plot =
        Plot::of_numbers(range(points.iter().map(|it| it.x)), range_with_zero(points.iter().map(|it| it.y)));
    plot.level(0.0);
    points.iter().for_each(|it| plot.point((it.x, it.y), 1.6, 0.5, ""));
    plot.end()
}

fn drawing(curve: &ResidualCurve, scale: (f64, f64), with_spread: bool) -> Html {
    let word = |bin: &ResidualBin| bin.values.as_deref().map_or_else(|| "missing".to_owned(), short_range);
    let words: Vec<String> = curve.bins.iter().map(word).collect();
    let mut plot = Plot::of_words(&words, scale);
    plot.level(0.0);
    for (index, (bin, word)) in curve.bins.iter().zip(&words).enumerate() {
        let x = index as f64;
        if with_spread {
            let width = 0.7 * Plot::place_width(words.len());
            plot.bar(x, (bin.low, bin.high), width, "var(--line)", 1.0);
        }
        if let Some((low, high)) = bin.mean.low.zip(bin.mean.high) {
            plot.bar(x, (low, high), 2.0, "var(--c0)", 0.6);
        }
        let title = format!("{word}: {:.4} of {} rows", bin.mean.value, bin.mean.support);
        plot.point((x, bin.mean.value), 3.0, 1.0, &title);
    }
    plot.end()
}
