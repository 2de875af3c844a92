//! Whether a table is fit for training.

use std::path::Path;

use trackway_api::data::CheckAnswer;
use trackway_core::SignOff;
use trackway_core::checks::overall;
pub use trackway_core::checks::{CheckResult, Verdict};
pub use trackway_data::integrity::{Group, LabelNoise, PersonalColumn};
use trackway_data::integrity::{
    TableEvidence, TableRoles, columns, label, label_noise, label_noise_from, personal, personal_columns,
    representation, rows, sign_offs_from_toml, unreadable, values,
};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_tables::DataError;
use trackway_tables::read::Source;

use super::table::{ReadObserver, TableRequest, data_error};

/// The checks of one table, in the order in which they are reported.
pub const TABLE_CHECKS: [&str; 7] = [
    "data.columns", "data.rows", "data.values", "data.label", "data.personal", "data.representation",
    "data.label_noise",
];

/// Chooses folds and samples; the same data gives the same answer.
pub(crate) const SEED: u64 = 0;

/// What to check.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    /// The training data.
    pub table: TableRequest,
    /// The column to be predicted.
    pub label: Option<String>,
    /// Columns that define the groups of rows.
    pub group_by: Vec<String>,
    /// Columns that do not count when rows are compared.
    pub ignored: Vec<String>,
    /// The data that the model will meet: labels and categories must be those of the table.
    pub against: Option<TableRequest>,
    /// Personal data with a sign-off.
    pub sign_offs: Vec<SignOff>,
    /// Probabilities of each class for each row of the table, from another model.
    pub probabilities: Option<TableRequest>,
    /// Run these checks only, and block where one of them cannot run; all when empty.
    pub only: Vec<String>,
    /// Leave these checks out.
    pub skip: Vec<String>,
}

/// Reads a sign-off file: `[[personal]]` tables.
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is none; [`ErrorKind::Usage`] for another form.
pub fn read_sign_offs(path: &Path) -> Result<Vec<SignOff>, AppError> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            AppError::new(ErrorKind::NotFound, format!("there is no file of sign-offs `{}`", path.display()))
        }
        _ => AppError::file("read the sign-offs in", path, error),
    })?;
    let wrong = || AppError::new(ErrorKind::Usage, format!("`{}`", path.display()));
    sign_offs_from_toml(&text).map_err(|error| wrong().because(error))
}

/// Runs the checks. A damaged file is a finding that blocks, not an error: the other checks are then *not run*.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for a check, a column or a table that
/// does not exist.
pub fn check(
    base: &Path,
    request: &CheckRequest,
    observer: &ReadObserver<'_>,
) -> Result<CheckAnswer, AppError> {
    for name in request.only.iter().chain(&request.skip) {
        if !TABLE_CHECKS.contains(&name.as_str()) {
            let message = format!("there is no check `{name}`; the checks are {}", TABLE_CHECKS.join(", "));
            return Err(AppError::new(ErrorKind::Usage, message));
        }
    }
    let run = Run { base, request, observer };
    let mut answer = match run.all() {
        Ok(answer) => answer,
        Err(error) => run.damaged(&unreadable(&error).ok_or_else(|| data_error(error))?),
    };
    for name in &request.skip {
        if let Some(check) = answer.checks.iter_mut().find(|check| check.name == *name) {
            *check = CheckResult::not_run(name, "skipped on request");
        }
    }
    let mut required = request.only.clone();
    if request.probabilities.is_some() && request.wants("data.label_noise") {
        required.push("data.label_noise".to_owned());
    }
    answer.verdict = overall(&answer.checks, &required);
    Ok(answer)
}

impl CheckRequest {
    fn wants(&self, name: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|it| it == name);
        !named(&self.skip) && (self.only.is_empty() || named(&self.only))
    }

    /// Whether a check is reported at all: a skipped one is, one that was not requested is not.
    fn reports(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|it| it == name)
    }
}

struct Run<'r> {
    base: &'r Path,
    request: &'r CheckRequest,
    observer: &'r ReadObserver<'r>,
}

impl Run<'_> {
    fn all(&self) -> Result<CheckAnswer, DataError> {
        let request = self.request;
        let mut source = request.table.source(self.base, "data")?;
        let evidence = self.evidence(&mut source, true)?;
        let mut reading = source.reading();
        let against = match &request.against {
            Some(table) => {
                let mut other = table.source(self.base, "against")?;
                let evidence = self.evidence(&mut other, false)?;
                reading.extend(other.reading());
                Some(evidence)
            }
            None => None,
        };
        let (noise, found) = self.noise(&mut source)?;
        let now = self.observer.clock.now();
        let checks = [
            columns(&evidence),
            rows(&evidence),
            values(&evidence, against.as_ref()),
            label(&evidence, against.as_ref()),
            personal(&evidence, &request.sign_offs, now),
            representation(&evidence),
            noise,
        ];
        let coverages = [Some(&evidence), against.as_ref()].into_iter().flatten().map(|it| &it.coverage);
        let (rows, rows_rejected) = coverages
            .fold((0, 0), |sum, coverage| (sum.0 + coverage.rows_read, sum.1 + coverage.rows_rejected));
        Ok(CheckAnswer {
            verdict: Verdict::Pass,
            checks: checks.into_iter().filter(|check| request.reports(&check.name)).collect(),
            groups: evidence.groups(),
            personal: personal_columns(&evidence, &request.sign_offs, now),
            label_noise: found,
            rows,
            rows_rejected,
            reading,
        })
    }

    fn evidence(&self, source: &mut Source, is_own: bool) -> Result<TableEvidence, DataError> {
        // The other side may come without a label; a separate check reports that.
        let has_label =
            |label: &String| is_own || source.columns().iter().any(|column| column.name == *label);
        let CheckRequest { label, group_by, ignored, .. } = self.request.clone();
        let label = label.filter(has_label);
        let roles = match is_own {
            true => TableRoles { label, group_by, ignored },
            false => TableRoles { label, ..TableRoles::default() },
        };
        TableEvidence::gather(source, &roles, &self.observer.watch())
    }

    fn noise(&self, source: &mut Source) -> Result<(CheckResult, Option<LabelNoise>), DataError> {
        const NAME: &str = "data.label_noise";
        let Some(label) = self.request.label.as_deref() else {
            return Ok((CheckResult::not_applicable(NAME, "no label was named"), None));
        };
        if !self.request.wants(NAME) {
            return Ok((CheckResult::not_run(NAME, "not requested"), None));
        }
        let began_micros = self.observer.clock.monotonic_micros();
        let watch = self.observer.watch();
        let (result, found) = match &self.request.probabilities {
            Some(table) => {
                let mut probabilities = table.source(self.base, "probabilities")?;
                label_noise_from(source, &mut probabilities, label, &watch)?
            }
            None => label_noise(source, label, SEED, &watch)?,
        };
        let seconds = (self.observer.clock.monotonic_micros() - began_micros) as f64 / 1e6;
        Ok((result.took(seconds), found))
    }

    /// A file cannot be read, so nothing else could be checked.
    fn damaged(&self, values: &CheckResult) -> CheckAnswer {
        let answer = |name: &&str| match *name {
            "data.values" => values.clone(),
            name => CheckResult::not_run(name, "a file cannot be read"),
        };
        // A damaged file is reported whatever was requested.
        let requested =
            TABLE_CHECKS.iter().filter(|name| **name == "data.values" || self.request.reports(name));
        CheckAnswer {
            verdict: Verdict::Block,
            checks: requested.map(answer).collect(),
            groups: Vec::new(),
            personal: Vec::new(),
            label_noise: None,
            rows: 0,
            rows_rejected: 0,
            reading: Vec::new(),
        }
    }
}
