//! What was found out about a model, as one page.

use trackway_api::models::ProbeReport;
use trackway_flows::probe::parts::{
    Counterfactual, Curve, Dependence, Importance, Leverage, Perturbation, PerturbationKind, Sensitivity,
};

use super::assessment::{Scale, estimate_cells, number};
use super::plot::{Plot, range};
use super::{Html, colour, head, html, put, residuals};
use crate::printer::cut;

/// Rows of a table of the page.
const ROWS_MAX: usize = 60;
/// Letters of the reason for which a model refused rows.
const REASON_LETTERS_MAX: usize = 120;

/// The page.
pub fn page(title: &str, report: &ProbeReport) -> Html {
    let found = &report.found;
    let mut page = head(title);
    put!(page, "<h1>{}</h1>", title);
    let error =
        found.error.map_or(String::new(), |error| format!(", error {} on average", number(error.value)));
    put!(
        page,
        "<p>{} of {} rows{}. The model scored {} rows.</p>",
        found.rows,
        report.rows_read,
        error,
        found.scored_rows
    );
    if let Some(it) = &found.residuals {
        residuals::section(&mut page, it);
    }
    importance(&mut page, &found.importance);
    dependence(&mut page, &found.dependence);
    perturbations(&mut page, &found.perturbations);
    if let Some(it) = &found.sensitivity {
        sensitivity(&mut page, it);
    }
    counterfactuals(&mut page, found.counterfactuals.as_deref().unwrap_or_default());
    if let Some(it) = &found.leverage {
        leverage(&mut page, it);
    }
    page.push_str("</body></html>\n");
    page
}

/// What a change is called.
pub fn change(kind: PerturbationKind) -> &'static str {
    match kind {
        PerturbationKind::Missing => "missing",
        PerturbationKind::Typo => "typo",
        PerturbationKind::TimesTen => "× 10",
        PerturbationKind::OverTen => "÷ 10",
        PerturbationKind::Shuffle => "shuffled",
    }
}

/// A heading, and a table with these columns; those that begin with `#` hold numbers.
fn table(page: &mut Html, title: &str, said: &str, header: &[&str], rows: impl Iterator<Item = Html>) {
    put!(page, "<h2>{}</h2><p class=\"dim\">{}</p><div class=\"wide\"><table><tr>", title, said);
    for name in header {
        match name.strip_prefix('#') {
            Some(name) => put!(page, "<th class=\"n\">{}</th>", name),
            None => put!(page, "<th>{}</th>", name),
        }
    }
    page.push_str("</tr>");
    rows.take(ROWS_MAX).for_each(|row| put!(page, "<tr>{}</tr>", row));
    page.push_str("</table></div>");
}

fn importance(page: &mut Html, importance: &[Importance]) {
    if importance.is_empty() {
        return;
    }
    let scale = Scale::of(importance.iter().map(|it| &it.increase));
    let row = |it: &Importance| {
        let mut row = html!("<td><code>{}</code></td>", it.feature);
        estimate_cells(&mut row, Some(&it.increase), scale, Some(0.0));
        row
    };
    table(
        page,
        "Importance",
        "By how much the mean error rises when the values of a feature are shuffled between rows.",
        &["Feature", "#Error rises by", "#Interval", ""],
        importance.iter().map(row),
    );
}

fn dependence(page: &mut Html, dependence: &[Dependence]) {
    if dependence.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Dependence</h2><p class=\"dim\">The mean prediction with every row's feature set to a value; thin lines are single rows, \
         the band holds the middle 80 % of them.</p><div class=\"grid\">",
    );
    for feature in dependence.iter().take(ROWS_MAX) {
        put!(page, "<div class=\"card\"><h3>{}</h3>{}", feature.feature, curves(feature));
        let classes: Vec<&str> = feature.curves.iter().filter_map(|curve| curve.class.as_deref()).collect();
        for (index, class) in classes.iter().enumerate() {
            put!(page, "<span class=\"key\" style=\"background:{}\"></span>{}", colour(index), class);
        }
        page.push_str("</div>");
    }
    page.push_str("</div>");
}

fn curves(feature: &Dependence) -> Html {
    let values = |curve: &Curve| {
        let rows = curve.rows.iter().flatten();
        curve.mean.iter().chain(&curve.low).chain(&curve.high).chain(rows).copied().collect::<Vec<f64>>()
    };
    let y = range(feature.curves.iter().flat_map(values));
    let numbers: Option<Vec<f64>> = feature.values.iter().map(|value| value.parse().ok()).collect();
    let places = numbers.clone().unwrap_or_else(|| (0..feature.values.len()).map(|it| it as f64).collect());
    let mut plot = match &numbers {
        Some(numbers) => Plot::of_numbers(range(numbers.iter().copied()), y),
        None => Plot::of_words(&feature.values, y),
    };
    for (index, curve) in feature.curves.iter().enumerate() {
        let through = |values: &[f64]| places.clone().into_iter().zip(values.to_vec()).collect::<Vec<_>>();
        for row in &curve.rows {
            plot.line(through(row).into_iter(), "var(--dim)", 0.7, 0.4);
        }
        for end in [&curve.low, &curve.high] {
            plot.line(through(end).into_iter(), &colour(index), 1.0, 0.5);
        }
        plot.line(through(&curve.mean).into_iter(), &colour(index), 2.2, 1.0);
    }
    plot.end()
}

fn perturbations(page: &mut Html, perturbations: &[Perturbation]) {
    if perturbations.is_empty() {
        return;
    }
    let mut sorted: Vec<&Perturbation> = perturbations.iter().collect();
    let harm =
        |it: &Perturbation| it.flipped.map(|flipped| flipped.value).or(it.shift).unwrap_or(f64::INFINITY);
    sorted.sort_by(|one, other| harm(other).total_cmp(&harm(one)));
    let row = |it: &&Perturbation| {
        let mut row = html!("<td><code>{}</code></td><td>{}</td>", it.feature, change(it.kind));
        if let Some(why) = &it.refused {
            let why = cut(why, REASON_LETTERS_MAX);
            put!(row, "<td colspan=\"5\" class=\"warn\">refused: {}</td>", why);
            return row;
        }
        estimate_cells(&mut row, it.flipped.as_ref(), Scale::UNIT, None);
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let rises = number(it.increase.map(|increase| increase.value));
        put!(row, "<td class=\"n\">{}</td><td class=\"n\">{}</td>", number(it.shift), rises);
        row
    };
    table(
        page,
        "Perturbations",
        "Predictions for values that are missing, mistyped, or in another unit.",
        &["Feature", "Change", "#Decided otherwise", "#Interval", "", "#Moved by", "#Error rises by"],
        sorted.iter().map(row),
    );
}

fn sensitivity(page: &mut Html, sensitivity: &Sensitivity) {
    let steps = sensitivity.steps.iter().map(|step| {
        let mut row = html!("<td class=\"n\">{}</td>", step.deviations);
        estimate_cells(&mut row, step.flipped.as_ref(), Scale::UNIT, None);
        estimate_cells(&mut row, step.flipped_at_random.as_ref(), Scale::UNIT, None);
        let (shift, random) = (number(step.shift), number(step.shift_at_random));
        put!(row, "<td class=\"n\">{}</td><td class=\"n\">{}</td>", shift, random);
        row
    });
    table(
        page,
        "Small steps",
        "All numeric features moved at once along the gradient sign, compared with steps of the same size in random directions.",
        &[
            "#Standard deviations",
            "#Decided otherwise",
            "#Interval",
            "",
            "#at random",
            "#Interval",
            "",
            "#Moved by",
            "#at random",
        ],
        steps,
    );
    if !sensitivity.check.features.is_empty() {
        put!(
            page,
            "<p class=\"warn\">Gradients of {} are not those of the predictions.</p>",
            sensitivity.check.features.join(", ")
        );
    }
    let scale = Scale::of(sensitivity.slopes.iter().map(|it| &it.per_deviation));
    let slopes = sensitivity.slopes.iter().map(|it| {
        let mut row = html!("<td><code>{}</code></td>", it.feature);
        estimate_cells(&mut row, Some(&it.per_deviation), scale, None);
        row
    });
    table(
        page,
        "Slopes",
        "The mean change of the prediction, without its sign, for one standard deviation of a feature.",
        &["Feature", "#Change", "#Interval", ""],
        slopes,
    );
}

fn counterfactuals(page: &mut Html, counterfactuals: &[Counterfactual]) {
    if counterfactuals.is_empty() {
        return;
    }
    let row = |it: &Counterfactual| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "missing".to_owned());
        let change = |(name, from, to): &(String, Option<String>, Option<String>)| {
            html!("<code>{}</code> {} → {}", name, value(from), value(to))
        };
        let changes: Vec<Html> = it.changes.iter().map(change).collect();
        html!(
            "<td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td>",
            it.row,
            it.before,
            it.after.as_deref().unwrap_or("no change found"),
            Html::joined(changes, " · ")
        )
    };
    table(
        page,
        "Smallest changes",
        "Counterfactuals: the fewest features, and the smallest changes to them, that flip the prediction of a row.",
        &["#Row", "Predicted", "Then", "Changes"],
        counterfactuals.iter().map(row),
    );
}

fn leverage(page: &mut Html, leverage: &Leverage) {
    let said = format!(
        "{} parameters, leverage {} on average; {} rows have more than three times as much. A row with a Cook's distance near 1 or above strongly influences the fit by itself.",
        leverage.parameters,
        number(leverage.mean),
        leverage.high
    );
    let row = |it: &trackway_flows::probe::parts::HighRow| {
        let value = |(name, value): &(String, Option<String>)| {
            html!("<code>{}</code> {}", name, value.as_deref().unwrap_or("missing"))
        };
        let values: Vec<Html> = it.values.iter().map(value).collect();
        let known = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        html!(
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td>",
            it.row,
            number(it.leverage),
            known(it.studentized),
            known(it.cook),
            Html::joined(values, " · ")
        )
    };
    table(
        page,
        "High-leverage rows",
        &said,
        &["#Row", "#Leverage", "#Residual in deviations", "#Cook's distance", "Unusual in"],
        leverage.rows.iter().map(row),
    );
}
