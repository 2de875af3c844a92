//! `trackway eval slices`: subsets of a table on which a model performs badly.

use std::path::Path;

use trackway_api::models::SlicesReport;
use trackway_core::with_fields_of;
use trackway_flows::data::ReadContext;
use trackway_flows::evaluation::slices::{
    ErrorSlice, ErrorSource, MatchedClass, Predicate, Roles, Settings, Side, SliceChange, SliceVerdict,
    SlicesRequest, find,
};

use crate::args::SlicesArgs;
use crate::commands::data_and_models::data::{searching, table};
use crate::exit::Exit;
use crate::printer::{Printer, StyledLine, Tone, row};
use crate::units::{between, counted, duration, known, metric};

pub fn slices(args: &SlicesArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request = request(args, read);
    let answer = searching(printer, |observer| find(Path::new(""), &request, observer))?;
    printer.answer(&answer, || print(printer, &answer));
    Ok(0)
}

fn request(args: &SlicesArgs, read: &ReadContext) -> SlicesRequest {
    let error = match (&args.error, &args.label, &args.prediction) {
        (None, Some(label), Some(prediction)) => {
            ErrorSource::Predictions { label: label.clone(), prediction: prediction.clone(), loss: args.loss }
        }
        (error, _, _) => ErrorSource::Column(error.clone().unwrap_or_default()),
    };
    SlicesRequest {
        table: table(&args.table, read),
        roles: Roles {
            error,
            baseline: args.worse_than.clone(),
            group: args.group.clone(),
            features: args.features.clone(),
            skip: args.skip.clone(),
            categorical: args.categorical.clone(),
        },
        settings: with_fields_of!(
            Settings,
            &args,
            [top, max_level, alpha, min_support, bins, seed],
            is_distinct: args.distinct,
            merges_alike: !args.distinct && !args.repeats,
            holdout: (!args.no_holdout).then_some(args.holdout),
            false_discovery_rate: args.fdr,
        ),
        since: args.since.clone(),
    }
}

fn print(printer: Printer, answer: &SlicesReport) {
    let found = &answer.found;
    if found.slices.is_empty() {
        printer.line("no slice has a larger error than all rows together");
    } else {
        printer.table(&header(answer), found.slices.iter().map(|slice| cells(answer, slice)).collect());
        found.slices.iter().filter_map(other_descriptions).for_each(|line| printer.line(line));
    }
    if !found.resolved.is_empty() {
        printer.line("");
        printer.line("no longer found:");
        printer.table(&header(answer), found.resolved.iter().map(|slice| cells(answer, slice)).collect());
    }
    printer.line("");
    for line in account(answer) {
        printer.line(&line);
    }
    printer.points(Tone::Warning, warnings(answer));
}

fn header(answer: &SlicesReport) -> Vec<&'static str> {
    let error = if answer.found.is_paired { "worse by" } else { "error" };
    let mut header = vec!["slice", "rows", error, "score"];
    if answer.found.held_out.is_some() {
        header.extend(["held out", "interval", "p (corrected)", "verdict"]);
    }
    if answer.found.slices.iter().any(|slice| slice.change.is_some()) {
        header.extend(["before", "change"]);
    }
    header
}

fn cells(answer: &SlicesReport, slice: &ErrorSlice) -> Vec<StyledLine> {
    let mut cells = row![
        shown(&slice.predicate),
        slice.size.to_string(),
        metric(slice.average_error),
        format!("{:.3}", slice.score),
    ];
    if answer.found.held_out.is_some() {
        let held_out = slice.held_out.as_ref();
        let estimate = held_out.and_then(|it| it.average_error);
        let interval = between(estimate.and_then(|it| it.interval.bounds()), "to");
        let estimate = estimate.map(|it| format!("{} of {}", metric(it.value), it.support));
        let verdict = match slice.verdict {
            SliceVerdict::Confirmed => "confirmed",
            SliceVerdict::NotConfirmed => "not confirmed",
            SliceVerdict::Inconclusive => "inconclusive",
        };
        let estimate = estimate.unwrap_or_else(|| "–".to_owned());
        cells.extend(row![estimate, interval, known(slice.adjusted_p_value), verdict]);
    }
    if let Some(change) = slice.change {
        let change = match change {
            SliceChange::New => "new",
            SliceChange::Worse => "worse",
            SliceChange::Better => "better",
            SliceChange::Same => "no difference shown",
            SliceChange::Resolved => "resolved",
        };
        cells.extend(row![known(slice.earlier_average_error), change]);
    }
    cells
}

/// Other descriptions that are shown of one slice.
const OTHERS_SHOWN: usize = 2;

/// The other descriptions of the rows of a slice, if it has some.
pub fn other_descriptions(slice: &ErrorSlice) -> Option<StyledLine> {
    let others = &slice.also_described_by;
    let listed = others.iter().take(OTHERS_SHOWN).map(|it| shown(&it.predicate));
    let more = match others.len().saturating_sub(OTHERS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let line =
        || shown(&slice.predicate) + " is also described by " + StyledLine::joined(listed, "; ") + more;
    (!others.is_empty()).then(line)
}

/// `age [25, 31) · sector Private`.
pub fn shown(predicate: &Predicate) -> StyledLine {
    let part = |(name, value): (&String, &Option<String>)| {
        StyledLine::from(name) + " " + value.as_deref().unwrap_or("missing")
    };
    StyledLine::joined(predicate.iter().map(part), " · ")
}

fn account(answer: &SlicesReport) -> Vec<String> {
    let found = &answer.found;
    let of_rows = |side: &Side, what: &str| {
        format!("{} {what}, average error {}", counted(side.rows, "row"), metric(side.average_error))
    };
    let mut sides = vec![of_rows(&found.searched, "searched")];
    sides.extend(found.held_out.as_ref().map(|side| of_rows(side, "held out")));
    let level = found.levels.last().map_or(0, |level| level.level);
    vec![
        sides.join(" · "),
        format!(
            "{} evaluated and {} pruned, with up to {} and at least {} rows, in {}",
            counted(found.evaluated, "slice"),
            found.pruned,
            counted(level as u64, "predicate"),
            found.min_support,
            duration(answer.seconds)
        ),
    ]
}

fn warnings(answer: &SlicesReport) -> Vec<String> {
    let found = &answer.found;
    let mut warnings = Vec::new();
    if found.held_out.is_none() {
        warnings
            .push("no rows were held out: the worst slices may be random, and there are no p-values".into());
    }
    let repeats = found.slices.iter().filter(|slice| slice.same_rows_as.is_some()).count();
    if repeats > 0 {
        warnings.push(format!(
            "{} with the same rows as a slice above; --distinct omits such slices",
            counted(repeats as u64, "slice")
        ));
    }
    if !answer.predicted_columns.is_empty() {
        let columns: Vec<String> = answer.predicted_columns.iter().map(|name| format!("`{name}`")).collect();
        warnings.push(format!(
            "no slices of {}: by the name it is what the model said, or how right it was; --features takes it as a feature",
            columns.join(", ")
        ));
    }
    if !found.matched_classes.is_empty() {
        let pair = |it: &MatchedClass| format!("`{}` is `{}`", it.prediction, it.label);
        let pairs: Vec<String> = found.matched_classes.iter().take(5).map(pair).collect();
        warnings.push(format!(
            "predictions are written otherwise than labels and were matched: {}",
            pairs.join(", ")
        ));
    }
    if !found.is_complete {
        let level = found.levels.last().map_or(0, |level| level.level);
        warnings.push(format!(
            "slices with more than {} were not searched, because they do not fit into memory; raise --support-min",
            counted(level as u64, "predicate")
        ));
    }
    if answer.rows_sampled < answer.rows {
        warnings.push(format!(
            "a random sample of {} of {} rows was used: all rows do not fit into memory",
            answer.rows_sampled, answer.rows
        ));
    }
    if answer.rows_rejected > 0 {
        warnings.push(format!("{} could not be read", counted(answer.rows_rejected, "row")));
    }
    if found.rows_without_error > 0 {
        warnings.push(format!("{} without an error left out", counted(found.rows_without_error, "row")));
    }
    let unused = found.features.iter().filter(|feature| feature.values == 0);
    let unused: Vec<String> = unused.map(|feature| format!("`{}`", feature.name)).collect();
    if !unused.is_empty() {
        warnings.push(format!("no value of {} has enough rows", unused.join(", ")));
    }
    warnings
}
