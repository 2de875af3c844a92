use std::sync::atomic::{AtomicBool, Ordering};

use trackway_engine::Context;
use trackway_flows::data::split::SplitMethod;
use trackway_flows::data::table::ReadObserver;
use trackway_flows::training::cross_validation::{
    CrossValidateRequest, CrossValidation, FoldResult, cross_validate as ask,
};

use crate::args::CrossValidateArgs;
use crate::commands::live::supervised;
use crate::commands::patch_of;
use crate::exit::{Exit, Failure, NOT_COMPLETED};
use crate::printer::{Printer, Tone, row};
use crate::units::{between, counted, metric};

pub fn cross_validate(context: &Context, args: &CrossValidateArgs, printer: Printer) -> Exit {
    let request = CrossValidateRequest {
        file: args.file.clone(),
        patch: patch_of(&args.overrides)?,
        folds: args.folds,
        method: method(args)?,
        seed: args.seed,
        out: args.out.clone(),
    };
    let cancelled = AtomicBool::new(false);
    let progress = |_: u64, _: u64| {
        if context.request.cancel.stop_requests() > 0 {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    let observer = ReadObserver { progress: &progress, cancelled: &cancelled, clock: &*context.clock };
    let answer = supervised(context, printer, |live| ask(context, &request, &observer, live))?;
    printer.answer(&answer, || print(printer, &answer));
    let whole = answer.folds.len() == answer.fold_count && answer.folds.iter().all(|it| it.why_not.is_none());
    Ok(if whole { 0 } else { NOT_COMPLETED })
}

fn method(args: &CrossValidateArgs) -> Result<Option<SplitMethod>, Failure> {
    if args.strategy == Some(SplitMethod::Time) {
        let message = "folds are not made by time: each would be predicted from later rows";
        return Err(Failure::usage(message, "split once by time: trackway data split --strategy time"));
    }
    Ok(args.strategy)
}

fn print(printer: Printer, answer: &CrossValidation) {
    let line = |fold: &FoldResult| {
        let state = match &fold.why_not {
            None => printer.tone(Tone::Good, "evaluated"),
            Some(why) => printer.tone(Tone::Bad, why),
        };
        row![
            fold.fold.to_string(),
            fold.run_id.to_string(),
            fold.rows_trained.to_string(),
            fold.rows_held_out.to_string(),
            fold.evaluation_id.clone().unwrap_or_default(),
            state
        ]
    };
    printer.table(
        &["fold", "run", "trained on", "held out", "evaluation", "state"],
        answer.folds.iter().map(line).collect(),
    );
    if !answer.metrics.is_empty() {
        printer.line("");
        let rows = answer.metrics.iter().map(|(name, it)| {
            row![
                name,
                metric(it.mean.value),
                metric(it.standard_deviation),
                between(it.mean.interval.bounds(), "…"),
                metric(it.min),
                metric(it.max)
            ]
        });
        printer.table(&["metric", "mean", "sd", "interval of the mean", "min", "max"], rows.collect());
    }
    answer.notes.iter().for_each(|note| printer.note(note));
    let missing = answer.fold_count - answer.folds.len();
    if missing > 0 {
        printer.note(format!("{} not launched", counted(missing as u64, "fold")));
    }
}
