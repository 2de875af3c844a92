//! What an evaluation of given rows will compute, by a trial before there is a model: the rows are assessed with their own labels as
//! the answers, once for each form that answers can have. What fails then fails for any model.

use std::collections::BTreeSet;

use trackway_data::model::{Cells, Frame, FrameColumn};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::assess::RESAMPLES_MIN;
use trackway_evaluate::{AssessError, Assessment, Spec, assess};
use trackway_formats::gate::{FAIRNESS, SLICE};
use trackway_formats::runfile::EvaluateSection;
use trackway_tables::ColumnType;

use super::judge::asked_slices;
use crate::evaluation::assess::slices;
use crate::evaluation::baseline::spec_of;

/// What the built-in evaluator calls the columns of the answers.
const PREDICTION: &str = "prediction";
const SCORE: &str = "score";
/// A probability of the positive class, and of another one, that makes every metric of probabilities finite.
const POSITIVE_PROBABILITY: f64 = 0.9;
const OTHER_PROBABILITY: f64 = 0.1;
/// Added to labels that are numbers, so that the answers are not classes.
const OFF_BY: f64 = 0.5;

/// What will be computed.
#[derive(Debug, Default)]
pub(crate) struct ExpectedNumbers {
    /// The numbers that a gate can name.
    pub numbers: BTreeSet<String>,
    /// The rows of each slice.
    pub slices: Vec<(String, u64)>,
    /// Rows with a label.
    pub rows: u64,
    /// All rows: those that the model will score.
    pub rows_seen: u64,
}

/// Tries every form of answers; what is computed for any of them may be computed.
///
/// # Errors
/// [`ErrorKind::Usage`] if no form can be evaluated: why the first one cannot.
pub(crate) fn expected(
    frame: Frame,
    section: &EvaluateSection,
    label: &str,
    seed: u64,
) -> Result<ExpectedNumbers, AppError> {
    let refused = |error: AssessError| AppError::of(ErrorKind::Usage, error);
    let mut columns = frame.into_columns();
    let Some(labels) = columns.iter().find(|column| column.name == label).cloned() else {
        let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let message = format!("there is no column `{label}`; there are {}", known.join(", "));
        return Err(AppError::new(ErrorKind::Usage, message));
    };
    let section = &EvaluateSection { label: Some(label.to_owned()), ..section.clone() };
    let own = columns.len();
    let (mut expected, mut first_error) = (None::<ExpectedNumbers>, None);
    for answers in forms_of(&labels, section) {
        // A column that the table has already is the one that is evaluated.
        let is_new = |answer: &FrameColumn| columns.iter().all(|column| column.name != answer.name);
        let answers: Vec<FrameColumn> = answers.into_iter().filter(is_new).collect();
        columns.extend(answers);
        let frame = Frame::of_columns(columns);
        let tried = slices(&frame, &asked_slices(section, Spec::default().limits)).and_then(|slices| {
            let usual = spec_of(section, &frame, None, seed).map_err(refused)?;
            let (fairness, missing) = (section.fairness.clone(), section.missing);
            let spec = Spec { slices, fairness, missing, resamples: RESAMPLES_MIN, ..usual };
            assess(&frame, &spec, None).map_err(refused)
        });
        match tried {
            Ok(assessment) => expected.get_or_insert_default().add(&assessment),
            Err(error) => first_error = first_error.or(Some(error)),
        }
        columns = frame.into_columns();
        columns.truncate(own);
    }
    expected.ok_or_else(|| first_error.expect("there is one form of answers at least"))
}

/// The columns of each form: classes, probabilities of the positive class, numbers.
fn forms_of(labels: &FrameColumn, section: &EvaluateSection) -> Vec<Vec<FrameColumn>> {
    let prediction = section.prediction.clone().unwrap_or_else(|| PREDICTION.into());
    let classes = FrameColumn { name: prediction, ..labels.clone() };
    let mut forms = vec![vec![classes.clone()]];
    match (&section.positive, &labels.cells) {
        (Some(positive), _) => {
            let name = section.score.clone().unwrap_or_else(|| SCORE.into());
            let cells = Cells::Numbers(probabilities(labels, positive));
            let score = FrameColumn { name, kind: ColumnType::Float, cells };
            forms.push(vec![score, classes]);
        }
        (None, Cells::Numbers(values)) => {
            let cells = Cells::Numbers(values.iter().map(|value| value + OFF_BY).collect());
            forms.push(vec![FrameColumn { kind: ColumnType::Float, cells, ..classes }]);
        }
        (None, Cells::Categories { .. }) => {}
    }
    forms
}

fn probabilities(labels: &FrameColumn, positive: &str) -> Vec<f64> {
    let probability = |is_positive| if is_positive { POSITIVE_PROBABILITY } else { OTHER_PROBABILITY };
    match &labels.cells {
        Cells::Categories { codes, names } => {
            let code = names.iter().position(|name| name == positive);
            codes.iter().map(|it| probability(code == Some(*it as usize))).collect()
        }
        Cells::Numbers(values) => {
            let number = match labels.kind {
                ColumnType::Bool => positive.parse::<bool>().ok().map(|it| f64::from(u8::from(it))),
                _ => positive.parse::<f64>().ok(),
            };
            values.iter().map(|it| probability(number == Some(*it))).collect()
        }
    }
}

impl ExpectedNumbers {
    fn add(&mut self, assessment: &Assessment) {
        self.rows = assessment.rows;
        self.rows_seen = assessment.rows_seen;
        self.numbers.extend(assessment.metrics.keys().cloned());
        self.slices = assessment.slices.iter().map(|slice| (slice.name.clone(), slice.support)).collect();
        for slice in &assessment.slices {
            // A metric that is not in a slice of correct answers may be there for others.
            let named = |metric: &String| format!("{SLICE}{}.{metric}", slice.name);
            self.numbers.extend(assessment.metrics.keys().map(named));
        }
        for fairness in &assessment.fairness {
            for measure in fairness.measures.keys() {
                self.numbers.insert(format!("{FAIRNESS}{measure}"));
                self.numbers.insert(format!("{FAIRNESS}{}.{measure}", fairness.column));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trackway_formats::runfile::SliceSection;

    use super::*;

    fn table(label: Cells, kind: ColumnType) -> Frame {
        let column = |name: &str, kind, cells| FrameColumn { name: name.into(), kind, cells };
        let sex = Cells::of_texts((0..40).map(|row| Some(if row % 2 == 0 { "f" } else { "m" })));
        Frame::of_columns(vec![column("sex", ColumnType::Text, sex), column("y", kind, label)])
    }

    fn classes() -> Frame {
        table(
            Cells::of_texts((0..40).map(|row| Some(if row % 3 == 0 { "yes" } else { "no" }))),
            ColumnType::Text,
        )
    }

    fn section(positive: Option<&str>) -> EvaluateSection {
        EvaluateSection { positive: positive.map(str::to_owned), ..EvaluateSection::default() }
    }

    /// Proves that a positive class without a row, a column of fairness and a metric that do not exist, and a slice that cannot be
    /// evaluated are errors that list what there is.
    #[test]
    fn what_fails_for_any_model_fails_before_there_is_one() {
        let message =
            |section: &EvaluateSection| expected(classes(), section, "y", 0).unwrap_err().to_string();
        assert_eq!(message(&section(Some("maybe"))), "`y` has no class `maybe`; there are no, yes");
        let fairness = EvaluateSection { fairness: vec!["gender".into()], ..section(None) };
        assert_eq!(message(&fairness), "there is no column `gender`; there are sex, y, prediction");
        let metric = EvaluateSection { metric: Some("acuracy".into()), ..section(None) };
        assert!(message(&metric).starts_with("there is no metric `acuracy` here; there are accuracy, "));
        let slice = SliceSection { predicate: "gender = 'f'".into(), ..SliceSection::default() };
        let slices = EvaluateSection { slices: BTreeMap::from([("women".into(), slice)]), ..section(None) };
        assert!(message(&slices).starts_with("slice `women`: `gender = 'f'` cannot be evaluated"));
        let absent = expected(classes(), &section(None), "income", 0).unwrap_err().to_string();
        assert_eq!(absent, "there is no column `income`; there are sex, y");
    }

    /// Proves that the numbers of every form of answers are known: classes and probabilities with a positive class, classes and numbers
    /// where labels are numbers, and those of slices and groups.
    #[test]
    fn the_numbers_of_every_form_are_known() {
        let slice = SliceSection { predicate: "sex = 'f' and score > 0.5".into(), ..SliceSection::default() };
        let asked = EvaluateSection {
            slices: BTreeMap::from([("women".into(), slice)]),
            fairness: vec!["sex".into()],
            ..section(Some("yes"))
        };
        let found = expected(classes(), &asked, "y", 0).unwrap();
        for name in [
            "accuracy",
            "roc_auc",
            "log_loss",
            "slice.women.recall",
            "fairness.sex.calibration",
            "fairness.equal_opportunity",
        ] {
            assert!(found.numbers.contains(name), "{name}: {:?}", found.numbers);
        }
        assert_eq!((found.rows, found.slices), (40, vec![("women".to_owned(), 7)]));
        let numbers = Cells::Numbers((0..40).map(|row| f64::from(row % 2)).collect());
        let found = expected(table(numbers, ColumnType::Int), &section(None), "y", 0).unwrap();
        assert!(["accuracy", "mae"].iter().all(|name| found.numbers.contains(*name)), "{:?}", found.numbers);
    }
}
