use std::path::Path;

use trackway_api::models::ScoreReport;
use trackway_flows::data::ReadContext;
use trackway_flows::data::table::TableRequest;
use trackway_flows::score::{ScoreOutputs, ScoreRequest, score as ask};

use super::data::{reading, table};
use super::live::RowsBar;
use super::probe::format;
use crate::args::ScoreArgs;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::units::{counted, duration, metric};

pub fn score(args: &ScoreArgs, read: &ReadContext, printer: Printer) -> Result<u8, Failure> {
    let (request, outputs) = (request(args, read), outputs(args)?);
    let bar = RowsBar::new("scoring");
    let on_rows = |done, all| bar.at(done, all);
    let report = reading(printer, |onlooker| ask(Path::new(""), &request, &outputs, onlooker, &on_rows))?;
    printer.answer(&report, || print(printer, &report));
    Ok(0)
}

fn request(args: &ScoreArgs, read: &ReadContext) -> ScoreRequest {
    ScoreRequest {
        table: TableRequest {
            format: args.read_as.as_deref().and_then(|name| serde_json::from_value(name.into()).ok()),
            ..table(&args.table, read)
        },
        command: args.command.clone(),
        format: format(args.batches),
        label: args.label.clone(),
        positive: args.positive.clone(),
        features: args.features.clone(),
        skip: args.skip.clone(),
        batch_rows: args.batch_rows,
        limit: args.limit,
        probe_rows: args.probe_rows,
    }
}

fn outputs(args: &ScoreArgs) -> Result<ScoreOutputs, Failure> {
    match (&args.out, &args.evaluation_out) {
        (Some(table), _) => Ok(ScoreOutputs {
            table: table.clone(),
            metrics: args.metrics.clone(),
            evaluation: None,
            probes: None,
        }),
        (None, Some(folder)) => Ok(ScoreOutputs::of_evaluation(folder)),
        (None, None) => {
            Err(Failure::usage("`--out` is not set", "name the output file: --out predictions.parquet"))
        }
    }
}

fn print(printer: Printer, report: &ScoreReport) {
    report.notes.iter().for_each(|note| printer.note(note));
    let number = |name: &str| report.metrics.get(name).map(|it| it.value);
    let pace = number("rows_per_second").zip(number("latency_seconds")).map_or_else(
        String::new,
        |(rate, median)| {
            format!(
                ": {} rows/s, {} µs per row in batches of {}",
                metric(rate),
                metric(median * 1e6),
                report.batch_rows
            )
        },
    );
    printer.line(format!(
        "{} scored with {} in {}{pace}; wrote `{}`",
        counted(report.rows, "row"),
        report.predictions,
        duration(report.seconds),
        report.out
    ));
}
