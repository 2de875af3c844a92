use std::path::Path;

use trackway_api::models::ScoreReport;
use trackway_core::with_fields_of;
use trackway_flows::data::table::TableRequest;
use trackway_flows::data::{DataSpec, ReadContext};
use trackway_flows::evaluation::score::{ScoreOutputs, ScoreRequest, score as ask};

use crate::args::ScoreArgs;
use crate::commands::data_and_models::data::{reading, table};
use crate::commands::live::RowsBar;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::units::{counted, duration, metric};

pub fn score(args: &ScoreArgs, read: &ReadContext, printer: Printer) -> Exit {
    let (request, outputs) = (request(args, read), outputs(args)?);
    let bar = RowsBar::new("scoring");
    let on_rows = |done, all| bar.at(done, all);
    let report = reading(printer, |observer| ask(Path::new(""), &request, &outputs, observer, &on_rows))?;
    let is_probed = args.evaluation_out.is_some() && args.probe_rows != Some(0);
    printer.answer(&report, || {
        report.notes.iter().for_each(|note| printer.note(note));
        printer.line(summary(&report, is_probed));
    });
    Ok(0)
}

fn request(args: &ScoreArgs, read: &ReadContext) -> ScoreRequest {
    let format = args.read_as.as_deref().and_then(|name| serde_json::from_value(name.into()).ok());
    let table = table(&args.table, read);
    with_fields_of!(
        ScoreRequest,
        &args,
        [command, label, positive, features, skip, batch_rows, limit, probe_rows],
        table: TableRequest { spec: DataSpec { format, ..table.spec }, ..table },
        format: args.batches,
    )
}

fn outputs(args: &ScoreArgs) -> Result<ScoreOutputs, Failure> {
    match (&args.out, &args.evaluation_out) {
        (Some(table), _) => Ok(ScoreOutputs {
            table: table.clone(),
            metrics: args.latency.clone(),
            evaluation: None,
            probes: None,
        }),
        (None, Some(folder)) => Ok(ScoreOutputs::of_evaluation(folder)),
        (None, None) => {
            Err(Failure::usage("`--out` is not set", "name the output file: --out predictions.parquet"))
        }
    }
}

/// What was scored, how long all of it took, and how fast the model answered meanwhile: two different times.
fn summary(report: &ScoreReport, is_probed: bool) -> String {
    let number = |name: &str| report.metrics.get(name).map(|it| it.value);
    let pace = number("rows_per_second").zip(number("latency_seconds")).map_or_else(
        String::new,
        |(rate, median)| {
            format!(
                ", its start{} included; full batches of {} after the first: {} rows/s, {} µs per row",
                if is_probed { " and its probes" } else { "" },
                report.batch_rows,
                metric(rate),
                metric(median * 1e6)
            )
        },
    );
    format!(
        "{} scored with {} in {}{pace}; wrote `{}`",
        counted(report.rows, "row"),
        report.predictions,
        duration(report.seconds),
        report.out
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_api::models::PredictionKind;
    use trackway_api::models::evaluations::{Estimate, Metrics};

    use super::*;

    /// Proves that the rate of the model and the seconds of the whole command, which do not agree, are each named as what they are, and
    /// that no rate is shown without full batches.
    #[test]
    fn the_rate_is_that_of_full_batches() {
        let exact = |value: f64| -> Estimate {
            serde_json::from_value(json!({ "value": value, "support": 5, "method": "none" })).unwrap()
        };
        let mut report = ScoreReport {
            out: "out.csv".into(),
            rows: 1419,
            rows_rejected: 0,
            features: vec!["age".into()],
            predictions: PredictionKind::Classes,
            batches: 6,
            batch_rows: 256,
            metrics: [("rows_per_second", 20_000.0), ("latency_seconds", 5e-5)]
                .map(|(name, value)| (name.to_owned(), exact(value)))
                .into(),
            notes: Vec::new(),
            seconds: 9.8,
        };
        assert_eq!(
            summary(&report, true),
            "1419 rows scored with classes in 9.8 s, its start and its probes included; full batches of 256 after the first: \
             20000.0 rows/s, 50.0000 µs per row; wrote `out.csv`"
        );
        report.metrics = Metrics::new();
        assert_eq!(summary(&report, false), "1419 rows scored with classes in 9.8 s; wrote `out.csv`");
    }
}
