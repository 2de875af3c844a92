//! Parts, folds and rungs of a data set, written down with their proof.

use std::path::{Path, PathBuf};

use trackway_api::data::{LabelCount, SplitAnswer, SplitPart, SplitRung};
use trackway_data::split::{
    Assignment, Part, Shares, SplitError, SplitPlan, SplitRows, read_rows, write_assignment, write_parts_as,
};
pub use trackway_data::split::{SplitColumns, SplitMethod, SplitProof};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_tables::write::TableFormat;

use super::table::{ReadObserver, TableRequest, data_error, write_error};

/// The name of the only part if no parts were requested.
const WHOLE: &str = "all";

pub use trackway_formats::subset::DEFAULT_SEED;

/// How to split.
#[derive(Debug, Clone)]
pub struct SplitRequest {
    /// The data.
    pub table: TableRequest,
    pub method: SplitMethod,
    /// Names and fractions; empty: all rows are one part.
    pub parts: Vec<(String, f64)>,
    /// Folds of the first part.
    pub folds: Option<usize>,
    pub columns: SplitColumns,
    /// Another seed gives another split.
    pub seed: u64,
    /// Fractions of the rungs, each from 0 to 1.
    pub rungs: Vec<f64>,
    /// The folder that the files go to; made where it is not there.
    pub out: PathBuf,
    /// Whether the parts themselves are written too.
    pub write_parts: bool,
}

/// Splits a data set, proves the split, and writes it down.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for a column, a fraction or a number of
/// folds that makes no sense; when the files cannot be written.
pub fn split(
    base: &Path,
    request: &SplitRequest,
    observer: &ReadObserver<'_>,
) -> Result<SplitAnswer, AppError> {
    check(request)?;
    let shares: Vec<(&str, f64)> =
        request.parts.iter().map(|(name, share)| (name.as_str(), *share)).collect();
    let shares = (!shares.is_empty()).then(|| Shares::new(&shares)).transpose().map_err(usage)?;
    let names = shares.as_ref().map_or(vec![WHOLE.to_owned()], |shares| shares.names().to_vec());
    let mut rungs = request.rungs.clone();
    rungs.sort_by(f64::total_cmp);
    let plan = SplitPlan { method: request.method, shares, folds: request.folds, rungs, seed: request.seed };
    let out = base.join(&request.out);
    let files = request.parts.iter().map(|(name, _)| name.as_str()).chain(["split", WHOLE]);
    let files: Vec<PathBuf> = files.map(|name| out.join(format!("{name}.parquet"))).collect();
    request.table.refuse_outputs(base, files.iter().map(PathBuf::as_path))?;
    let mut source = request.table.open(base, "data")?;
    let watch = observer.watch();
    let (rows, coverage) = read_rows(&mut source, &request.columns, &watch).map_err(data_error)?;
    let assignment = plan.assign(&rows).map_err(usage)?;
    let proof = plan.prove(&rows, &assignment);
    let mut answer = SplitAnswer {
        method: plan.method,
        seed: plan.seed,
        rows: coverage.rows_read,
        rows_rejected: coverage.rows_rejected,
        reading: source.reading(),
        parts: parts(&names, &rows, &assignment),
        folds: folds(&assignment, request.folds.unwrap_or(0)),
        rungs: rung_answers(&plan.rungs, &assignment),
        proved: proof.holds(plan.method),
        proof,
        assignment: None,
        files: Vec::new(),
    };
    if answer.proved {
        trackway_files::make_folders_of_user(&out)
            .map_err(|error| AppError::file("make the folder", &out, error))?;
        let files: Vec<String> = source.files().iter().map(|file| file.path.clone()).collect();
        let path = out.join("split.parquet");
        answer.assignment =
            Some(write_assignment(&path, &files, &rows, &assignment, &names).map_err(write_error)?);
        if request.write_parts {
            let paths: Vec<PathBuf> = names.iter().map(|name| out.join(format!("{name}.parquet"))).collect();
            let written = write_parts_as(TableFormat::Parquet, &paths, &source, &assignment.parts, &watch);
            answer.files = written.map_err(write_error)?;
        }
    }
    Ok(answer)
}

fn check(request: &SplitRequest) -> Result<(), AppError> {
    let refuse = |message: &str, hint: &str| Err(AppError::new(ErrorKind::Usage, message).hint(hint));
    let needs = |column: &Option<String>, flag: &str| match column {
        None => refuse(&format!("this split needs a column: {flag}"), "see `trackway data split --help`"),
        Some(_) => Ok(()),
    };
    match request.method {
        SplitMethod::Hash => {}
        SplitMethod::Group => needs(&request.columns.group, "--group-by")?,
        SplitMethod::Stratified => needs(&request.columns.label, "--label")?,
        SplitMethod::StratifiedGroup => {
            needs(&request.columns.group, "--group-by")?;
            needs(&request.columns.label, "--label")?;
        }
        SplitMethod::Time => needs(&request.columns.time, "--time")?,
    }
    if request.parts.is_empty() && request.folds.is_none() && request.rungs.is_empty() {
        return refuse(
            "nothing to split into",
            "give --parts train=0.8,test=0.2, --folds 5 or --rungs 1%,10%",
        );
    }
    let is_file_name = |name: &String| {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
        !name.is_empty() && name != "split" && name.bytes().all(fits)
    };
    if let Some((name, _)) = request.parts.iter().find(|(name, _)| !is_file_name(name)) {
        let hint = "use letters, digits, `-` and `_`; `split` is taken";
        return refuse(&format!("`{name}` cannot be the name of a part"), hint);
    }
    if request.rungs.iter().any(|share| !(*share > 0.0 && *share <= 1.0)) {
        return refuse("a rung is a fraction above 0 and at most 100%", "such as --rungs 1%,10%,100%");
    }
    Ok(())
}

fn parts(names: &[String], rows: &SplitRows, assignment: &Assignment) -> Vec<SplitPart> {
    let answer = |(part, name): (Part, &String)| {
        let mine: Vec<usize> =
            (0..rows.keys.len()).filter(|row| assignment.parts[*row] == Some(part)).collect();
        let mut counts = vec![0; rows.class_names.len()];
        if !rows.classes.is_empty() {
            mine.iter().for_each(|row| counts[rows.classes[*row] as usize] += 1);
        }
        let label = |(label, rows): (&String, u64)| LabelCount { label: label.clone(), rows };
        SplitPart {
            name: name.clone(),
            rows: mine.len() as u64,
            fraction: mine.len() as f64 / rows.keys.len().max(1) as f64,
            labels: rows.class_names.iter().zip(counts).map(label).collect(),
        }
    };
    (0..).zip(names).map(answer).collect()
}

fn folds(assignment: &Assignment, count: usize) -> Vec<u64> {
    let mut folds = vec![0; count];
    assignment.folds.iter().flatten().for_each(|fold| folds[usize::from(*fold)] += 1);
    folds
}

fn rung_answers(shares: &[f64], assignment: &Assignment) -> Vec<SplitRung> {
    let in_first = assignment.rungs.iter().zip(&assignment.parts).filter(|(_, part)| **part == Some(0));
    let smallest: Vec<f64> = in_first.filter_map(|(rung, _)| *rung).collect();
    let rows = |share: f64| smallest.iter().filter(|rung| **rung <= share).count() as u64;
    shares.iter().map(|share| SplitRung { fraction: *share, rows: rows(*share) }).collect()
}

fn usage(error: SplitError) -> AppError {
    AppError::of(ErrorKind::Usage, error)
}
