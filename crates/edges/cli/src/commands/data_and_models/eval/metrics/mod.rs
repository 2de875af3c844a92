//! `trackway eval metrics`: what a table of predictions shows.

pub mod text;

use std::path::{Path, PathBuf};

use trackway_core::{MissingPredictions, with_fields_of};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_flows::data::ReadContext;
use trackway_flows::evaluation::assess::{
    AssessRequest, Columns, Costs, NamedPredicate, SliceLimits, Spec, assess, write_numbers,
};

use crate::args::{ColumnArgs, MetricsArgs};
use crate::commands::data_and_models::data::{request, searching, table};
use crate::exit::{Exit, Failure};
use crate::page::save;
use crate::printer::Printer;

pub fn metrics(args: &MetricsArgs, read: &ReadContext, printer: Printer) -> Exit {
    let request = asked(args, read)?;
    for table in std::iter::once(&request.table).chain(&request.baseline) {
        let outputs = [&args.html, &args.parquet].into_iter().flatten().map(PathBuf::as_path);
        table.refuse_outputs(Path::new(""), outputs)?;
    }
    let assessment = searching(printer, |observer| assess(Path::new(""), &request, observer))?;
    if let Some(path) = &args.html {
        let subject = args.table.paths.join(", ");
        save(path, "page", printer, |about| trackway_pages::metrics(&subject, &assessment, about))?;
    }
    if let Some(path) = &args.parquet {
        write_numbers(path, &assessment)?;
        printer.note(format!("the numbers are in {}", path.display()));
    }
    printer.answer(&assessment, || text::print(printer, &assessment));
    Ok(0)
}

fn asked(args: &MetricsArgs, read: &ReadContext) -> Result<AssessRequest, Failure> {
    let spec = with_fields_of!(
        Spec,
        &args,
        [
            task, positive, confidence, resamples, seed, always_resample, recall, blind_spots, fairness,
            margin,
        ],
        missing: MissingPredictions::default(),
        tasks: None,
        columns: columns(&args.columns),
        costs: args.costs.as_deref().map(costs).transpose()?,
        main_metric: args.metric.clone(),
        slices: Vec::new(),
        limits: SliceLimits { support_min: args.support_min, width_max: args.width_max },
    );
    let baseline = (!args.baseline.is_empty()).then(|| request(&args.baseline, &args.table.reading, read));
    let slices = args.slices.iter().map(|slice| named(slice)).collect::<Result<_, _>>()?;
    Ok(AssessRequest { table: table(&args.table, read), spec, slices, baseline, by_order: args.by_order })
}

/// The cost matrix in a JSON file.
fn costs(path: &Path) -> Result<Costs, Failure> {
    let hint = r#"a cost matrix is a JSON file such as {"ill": {"well": 10}, "well": {"ill": 1}}"#;
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("`{shown}` cannot be read"), hint).because(error))?;
    let costs = Costs::read(&text, &shown);
    costs.map_err(|error| AppError::of(ErrorKind::Usage, error).hint(hint).into())
}

/// `name=predicate`; the predicate may hold further `=`.
fn named(slice: &str) -> Result<NamedPredicate, Failure> {
    let (name, sql) = slice.split_once('=').map(|(name, sql)| (name.trim(), sql.trim())).unwrap_or_default();
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_-".contains(letter));
    if !is_name || sql.is_empty() {
        return Err(Failure::usage(
            format!("invalid slice `{slice}`"),
            "a slice has a name and a predicate, such as --slice women=\"sex = 'Female'\"",
        ));
    }
    Ok(NamedPredicate { name: name.to_owned(), sql: sql.to_owned(), metric: None, limits: None })
}

fn columns(args: &ColumnArgs) -> Columns {
    with_fields_of!(
        Columns,
        &args,
        [
            label, prediction, score, id, group, loss, tokens, bytes, correct, reference, hypothesis, query,
            relevance, rank, treatment, image, class,
        ],
        ..Columns::default()
    )
}
