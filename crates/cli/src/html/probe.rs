//! What was found out about a model, as one page.

use std::fmt::Write as _;

use trackway_app::probe::ProbeReport;
use trackway_app::probe::parts::{
    Counterfactual, Curve, Dependence, Importance, Leverage, Perturbation, PerturbationKind, Sensitivity,
};

use super::assessment::{Scale, estimate_cells, number};
use super::plot::{Plot, range};
use super::{colour, escape, head, put, residuals};

/// Rows of a table of the page.
const ROWS_MAX: usize = 60;
/// Letters of the reason for which a model refused rows.
const REASON_LETTERS_MAX: usize = 120;

/// The page.
pub fn page(title: &str, report: &ProbeReport) -> String {
    let found = &report.found;
    let mut page = head(title);
    put!(page, "<h1>{}</h1>", escape(title));
    let error =
        found.error.map_or(String::new(), |error| format!(", error {} on average", number(error.value)));
    put!(
        page,
        "<p>{} of {} rows{error}. The model was asked about {} rows.</p>",
        found.rows,
        report.rows_read,
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
fn table(page: &mut String, title: &str, said: &str, header: &[&str], rows: impl Iterator<Item = String>) {
    put!(page, "<h2>{title}</h2><p class=\"dim\">{said}</p><div class=\"wide\"><table><tr>");
    for name in header {
        match name.strip_prefix('#') {
            Some(name) => put!(page, "<th class=\"n\">{name}</th>"),
            None => put!(page, "<th>{name}</th>"),
        }
    }
    page.push_str("</tr>");
    rows.take(ROWS_MAX).for_each(|row| put!(page, "<tr>{row}</tr>"));
    page.push_str("</table></div>");
}

fn importance(page: &mut String, importance: &[Importance]) {
    if importance.is_empty() {
        return;
    }
    let scale = Scale::of(importance.iter().map(|it| &it.increase));
    let row = |it: &Importance| {
        let mut row = format!("<td><code>{}</code></td>", escape(&it.feature));
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

fn dependence(page: &mut String, dependence: &[Dependence]) {
    if dependence.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Dependence</h2><p class=\"dim\">The mean prediction with every row's feature set to a value; thin lines are single rows, \
         the band holds the middle 80 % of them.</p><div class=\"grid\">",
    );
    for feature in dependence.iter().take(ROWS_MAX) {
        put!(page, "<div class=\"card\"><h3>{}</h3>{}", escape(&feature.feature), curves(feature));
        let classes: Vec<&str> = feature.curves.iter().filter_map(|curve| curve.class.as_deref()).collect();
        for (index, class) in classes.iter().enumerate() {
            put!(page, "<span class=\"key\" style=\"background:{}\"></span>{}", colour(index), escape(class));
        }
        page.push_str("</div>");
    }
    page.push_str("</div>");
}

fn curves(feature: &Dependence) -> String {
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

fn perturbations(page: &mut String, perturbations: &[Perturbation]) {
    if perturbations.is_empty() {
        return;
    }
    let mut sorted: Vec<&Perturbation> = perturbations.iter().collect();
    let harm =
        |it: &Perturbation| it.flipped.map(|flipped| flipped.value).or(it.shift).unwrap_or(f64::INFINITY);
    sorted.sort_by(|one, other| harm(other).total_cmp(&harm(one)));
    let row = |it: &&Perturbation| {
        let mut row = format!("<td><code>{}</code></td><td>{}</td>", escape(&it.feature), change(it.kind));
        if let Some(why) = &it.refused {
            let why: String = why.chars().take(REASON_LETTERS_MAX).collect();
            put!(row, "<td colspan=\"5\" class=\"warn\">refused: {}</td>", escape(&why));
            return row;
        }
        estimate_cells(&mut row, it.flipped.as_ref(), Scale::UNIT, None);
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let rises = number(it.increase.map(|increase| increase.value));
        put!(row, "<td class=\"n\">{}</td><td class=\"n\">{rises}</td>", number(it.shift));
        row
    };
    table(
        page,
        "Perturbations",
        "What is made of values that are missing, mistyped, or in another unit.",
        &["Feature", "Change", "#Decided otherwise", "#Interval", "", "#Moved by", "#Error rises by"],
        sorted.iter().map(row),
    );
}

fn sensitivity(page: &mut String, sensitivity: &Sensitivity) {
    let steps = sensitivity.steps.iter().map(|step| {
        let mut row = format!("<td class=\"n\">{}</td>", step.deviations);
        estimate_cells(&mut row, step.flipped.as_ref(), Scale::UNIT, None);
        estimate_cells(&mut row, step.flipped_at_random.as_ref(), Scale::UNIT, None);
        let (shift, random) = (number(step.shift), number(step.shift_at_random));
        put!(row, "<td class=\"n\">{shift}</td><td class=\"n\">{random}</td>");
        row
    });
    table(
        page,
        "Small steps",
        "All numbers moved at once, each the way its gradient points; beside it steps as large with signs by chance.",
        &[
            "#Standard deviations",
            "#Decided otherwise",
            "#Interval",
            "",
            "#by chance",
            "#Interval",
            "",
            "#Moved by",
            "#by chance",
        ],
        steps,
    );
    if !sensitivity.check.features.is_empty() {
        put!(
            page,
            "<p class=\"warn\">Gradients of {} are not those of the predictions.</p>",
            escape(&sensitivity.check.features.join(", "))
        );
    }
    let scale = Scale::of(sensitivity.slopes.iter().map(|it| &it.per_deviation));
    let slopes = sensitivity.slopes.iter().map(|it| {
        let mut row = format!("<td><code>{}</code></td>", escape(&it.feature));
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

fn counterfactuals(page: &mut String, counterfactuals: &[Counterfactual]) {
    if counterfactuals.is_empty() {
        return;
    }
    let row = |it: &Counterfactual| {
        let value = |value: &Option<String>| escape(value.as_deref().unwrap_or("missing"));
        let change = |(name, from, to): &(String, Option<String>, Option<String>)| {
            format!("<code>{}</code> {} → {}", escape(name), value(from), value(to))
        };
        let changes: Vec<String> = it.changes.iter().map(change).collect();
        format!(
            "<td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td>",
            it.row,
            escape(&it.before),
            it.after.as_deref().map_or_else(|| "no change found".to_owned(), escape),
            changes.join(" · ")
        )
    };
    table(
        page,
        "Smallest changes",
        "The fewest features, and of those the smallest change, with which a row is decided otherwise.",
        &["#Row", "Predicted", "Then", "Changes"],
        counterfactuals.iter().map(row),
    );
}

fn leverage(page: &mut String, leverage: &Leverage) {
    let said = format!(
        "{} parameters, leverage {} on average; {} rows have more than three times as much. A row with a Cook's distance near 1 or above decides much of a fit alone.",
        leverage.parameters,
        number(leverage.mean),
        leverage.high
    );
    let row = |it: &trackway_app::probe::parts::HighRow| {
        let value = |(name, value): &(String, Option<String>)| {
            format!("<code>{}</code> {}", escape(name), escape(value.as_deref().unwrap_or("missing")))
        };
        let values: Vec<String> = it.values.iter().map(value).collect();
        let known = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        format!(
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td>",
            it.row,
            number(it.leverage),
            known(it.studentized),
            known(it.cook),
            values.join(" · ")
        )
    };
    table(
        page,
        "Rows that stand apart",
        &said,
        &["#Row", "#Leverage", "#Residual in deviations", "#Cook's distance", "Stands apart in"],
        leverage.rows.iter().map(row),
    );
}
