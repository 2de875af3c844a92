//! An assessment as tables in a terminal.

use trackway_flows::evaluation::assess::{
    Assessment, Compared, Comparison, ComparisonVerdict, Estimate, Fairness, Metrics, Slice,
};
use trackway_flows::evaluation::slices::{BlindSpots, Loss};

use crate::commands::data_and_models::eval::residuals;
use crate::commands::data_and_models::eval::slices::{other_descriptions, shown};
use crate::printer::{Printer, StyledLine, Tone, row};
use crate::units::{counted, interval, number, p_value};

pub fn print(printer: Printer, assessment: &Assessment) {
    let rows: Vec<Vec<String>> =
        assessment.metrics.iter().map(|(name, estimate)| metric_row(name, estimate)).collect();
    let interval = format!("{:.0} %", assessment.confidence * 100.0);
    printer.table(&["metric", "value", &interval, "support"], rows);
    classes(printer, assessment);
    if let Some(it) = &assessment.residuals {
        printer.line("");
        residuals::print(printer, it);
    }
    slices(printer, assessment);
    if let Some(found) = &assessment.blind_spots {
        printer.line("");
        blind_spots(printer, found);
    }
    assessment.fairness.iter().for_each(|fairness| print_fairness(printer, fairness, &interval));
    if let Some(comparison) = &assessment.comparison {
        print_comparison(printer, comparison, &assessment.main_metric);
    }
    printer.line("");
    let groups =
        assessment.groups.map(|groups| format!(" in {}", counted(groups, "group"))).unwrap_or_default();
    printer.line(counted(assessment.rows, "row") + &groups);
    for (metric, why) in &assessment.inconclusive {
        printer.point(Tone::Warning, format!("`{metric}` is inconclusive: {why}"));
    }
    printer.points(Tone::Dim, &assessment.notes);
}

fn metric_row(name: &str, estimate: &Estimate) -> Vec<String> {
    let support = estimate.coverage.words(estimate.support);
    vec![name.to_owned(), number(estimate.value), interval(estimate), support]
}

fn with_interval(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "–".to_owned(), |it| format!("{} ({})", number(it.value), interval(it)))
}

fn classes(printer: Printer, assessment: &Assessment) {
    if assessment.classes.is_empty() {
        return;
    }
    printer.line("");
    let cell = |metrics: &Metrics, name: &str| with_interval(metrics.get(name));
    let row = |class: &trackway_flows::evaluation::assess::ClassMetrics| {
        let metrics = &class.metrics;
        let [precision, recall, f1] = ["precision", "recall", "f1"].map(|name| cell(metrics, name));
        vec![class.name.clone(), class.support.to_string(), precision, recall, f1]
    };
    let header = ["class", "rows", "precision", "recall", "f1"];
    printer.table(&header, assessment.classes.iter().map(row).collect());
}

fn slices(printer: Printer, assessment: &Assessment) {
    if assessment.slices.is_empty() {
        return;
    }
    printer.line("");
    let metric = assessment.main_metric.as_str();
    let row = |slice: &Slice| {
        row![
            slice.label(),
            &slice.predicate,
            slice.support.to_string(),
            with_interval(slice.metrics.get(assessment.metric_of(slice.compared_by.as_ref()))),
            slice.difference.map_or_else(|| "–".to_owned(), |difference| signed(&difference)),
            slice.adjusted_p_value.map_or_else(|| "–".to_owned(), p_value),
            verdict(printer, slice.verdict),
        ]
    };
    let header = ["slice", "predicate", "rows", metric, "against the rest", "p (corrected)", "verdict"];
    printer.table(&header, assessment.slices.iter().map(row).collect());
    for (slice, why) in assessment.slices.iter().filter_map(|slice| Some((slice, slice.why.as_ref()?))) {
        let line = format!("`{}`: {why}", slice.name);
        printer.point(Tone::Warning, line);
    }
}

/// The slices that held-out rows confirm; a line if there are none.
pub fn blind_spots(printer: Printer, found: &BlindSpots) {
    let what = match found.loss {
        Loss::ZeroOne => "error rate",
        Loss::Absolute | Loss::Squared => "mean error",
    };
    let whole = with_interval(Some(&found.error));
    let rows: Vec<Vec<StyledLine>> = found
        .confirmed()
        .map(|slice| {
            let measured = slice.held_out.as_ref().and_then(|it| it.average_error);
            row![
                shown(&slice.predicate),
                slice.held_out.as_ref().map_or(0, |it| it.size).to_string(),
                with_interval(measured.as_ref()),
                slice.adjusted_p_value.map_or_else(|| "–".to_owned(), p_value),
            ]
        })
        .collect();
    if rows.is_empty() {
        printer.line(format!("no slice is confirmed to be worse than all rows ({what} {whole})"));
        return;
    }
    printer.table(&["slice", "held-out rows", what, "p (corrected)"], rows);
    found.confirmed().filter_map(other_descriptions).for_each(|line| printer.line(line));
    printer.line(format!("{what} of all rows: {whole}"));
}

fn verdict(printer: Printer, verdict: ComparisonVerdict) -> StyledLine {
    let word = verdict.as_str().replace('_', " ");
    match verdict {
        ComparisonVerdict::Better => printer.tone(Tone::Good, &word),
        ComparisonVerdict::Worse => printer.tone(Tone::Bad, &word),
        ComparisonVerdict::Inconclusive => printer.tone(Tone::Warning, &word),
        ComparisonVerdict::NoDifferenceShown => word.into(),
    }
}

fn signed(difference: &Estimate) -> String {
    let sign = if difference.value > 0.0 { "+" } else { "" };
    format!("{sign}{} ({})", number(difference.value), interval(difference))
}

fn print_fairness(printer: Printer, fairness: &Fairness, interval: &str) {
    printer.line("");
    let mut names: Vec<&String> = fairness.groups.iter().flat_map(|group| group.metrics.keys()).collect();
    names.sort();
    names.dedup();
    let header: Vec<&str> = [fairness.column.as_str(), "rows"]
        .into_iter()
        .chain(names.iter().map(|name| name.as_str()))
        .chain([""])
        .collect();
    let rows = fairness.groups.iter().map(|group| {
        let mut row = row![&group.name, group.support.to_string()];
        row.extend(names.iter().map(|name| with_interval(group.metrics.get(*name)).into()));
        row.extend(group.inconclusive.then(|| verdict(printer, ComparisonVerdict::Inconclusive)));
        row
    });
    printer.table(&header, rows.collect());
    for group in &fairness.groups {
        if let Some(why) = &group.why {
            let line = format!("`{}`: {why}", group.name);
            printer.point(Tone::Warning, line);
        }
    }
    printer.line("");
    let rows = fairness.measures.iter().map(|(name, estimate)| metric_row(name, estimate)).collect();
    printer.table(&["fairness", "value", interval, "support"], rows);
}

fn print_comparison(printer: Printer, comparison: &Comparison, main_metric: &str) {
    printer.line("");
    let row = |name: &str, compared: &Compared| {
        row![
            name,
            number(compared.baseline),
            number(compared.candidate),
            signed(&compared.difference),
            verdict(printer, compared.verdict),
            compared.settles_at.map_or_else(String::new, |rows| format!("about {rows}")),
        ]
    };
    let header = ["metric", "baseline", "now", "difference", "verdict", "rows needed"];
    let rows = comparison.metrics.iter().map(|(name, compared)| row(name, compared)).collect();
    printer.table(&header, rows);
    if !comparison.slices.is_empty() {
        printer.line("");
        let named = format!("{main_metric} of slice");
        let header = [named.as_str(), "baseline", "now", "difference", "verdict", "rows needed"];
        printer.table(&header, comparison.slices.iter().map(|it| row(&it.label(), &it.compared)).collect());
    }
    printer.line("");
    if let Some(test) = &comparison.mcnemar {
        printer.line(format!(
            "{} predicted correctly only by the baseline, {} only now (McNemar's test: p = {})",
            counted(test.only_baseline_right, "row"),
            test.only_candidate_right,
            p_value(test.p_value)
        ));
    }
    let pairing = &comparison.pairing;
    let by = pairing.id.as_ref().map_or_else(|| "by their order".to_owned(), |id| format!("by `{id}`"));
    printer.line(format!("{} paired {by}", counted(pairing.pairs, "row")));
    for (count, what) in [
        (pairing.only_baseline, "only in the baseline"),
        (pairing.only_candidate, "not in the baseline"),
        (pairing.repeated_ids, "with a missing or repeated id"),
        (pairing.different_labels, "with a different label in the baseline"),
    ] {
        if count > 0 {
            printer.point(Tone::Warning, format!("not compared: {} {what}", counted(count, "row")));
        }
    }
}
