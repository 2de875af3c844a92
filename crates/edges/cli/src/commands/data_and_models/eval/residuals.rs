//! Residuals as a table in a terminal.

use trackway_flows::evaluation::assess::{Depends, ResidualCurve, ResidualOf, Residuals};

use crate::printer::{Printer, Tone};
use crate::sparkline::sparkline;
use crate::units::{counted, metric, p_value, short_range};

/// A significant dependence.
const LEVEL: f64 = 0.05;
/// Columns that are shown; `--json` has all.
const SHOWN_MAX: usize = 10;
const CURVE_WIDTH: usize = 20;

/// Columns on which residuals depend, or that there is none.
pub fn print(printer: Printer, residuals: &Residuals) {
    let what = match residuals.of {
        ResidualOf::Value => "label − prediction",
        ResidualOf::Probability => "outcome − predicted probability",
        ResidualOf::WrongClass => "fraction of wrong predictions",
    };
    let curves = residuals.by_prediction.iter().chain(&residuals.by_feature);
    let shown: Vec<&ResidualCurve> = curves.filter(|curve| is_shown(curve)).collect();
    if shown.is_empty() {
        let line =
            format!("residuals ({what}): no dependence on {} shown", counted(residuals.features, "column"));
        return printer.line(printer.tone(Tone::Dim, line));
    }
    printer.line(printer.tone(Tone::Dim, format!("residuals ({what}) depend on")));
    let more = shown.len().saturating_sub(SHOWN_MAX);
    printer.table(
        &["column", "mean by value", "lowest", "highest", "variance explained", "p (mean)", "p (spread)"],
        shown.into_iter().take(SHOWN_MAX).map(row).collect(),
    );
    if more > 0 {
        printer.line(format!("… {more} more; --json has all"));
    }
}

fn is_shown(curve: &ResidualCurve) -> bool {
    let is_significant = |depends: &Option<Depends>| depends.is_some_and(|it| it.adjusted_p_value <= LEVEL);
    is_significant(&curve.mean_depends) || is_significant(&curve.spread_depends)
}

fn row(curve: &ResidualCurve) -> Vec<String> {
    let means: Vec<f64> = curve.bins.iter().map(|bin| bin.mean.value).collect();
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|one, other| means[*one].total_cmp(&means[*other]));
    let end = |index: Option<&usize>| {
        index.map_or_else(String::new, |index| {
            let values =
                curve.bins[*index].values.as_deref().map_or_else(|| "missing".to_owned(), short_range);
            format!("{} at {values}", metric(means[*index]))
        })
    };
    let p_of =
        |depends: &Option<Depends>| depends.map_or_else(|| "–".to_owned(), |it| p_value(it.adjusted_p_value));
    let explains = curve.mean_depends.map_or(0.0, |it| it.explained);
    vec![
        curve.feature.clone(),
        sparkline(&means, CURVE_WIDTH),
        end(order.first()),
        end(order.last()),
        format!("{:.1} %", explains * 100.0),
        p_of(&curve.mean_depends),
        p_of(&curve.spread_depends),
    ]
}
