//! `data.label_noise`: labels that seem to be wrong.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_results::integrity::{LabelNoise, Suspect};
use trackway_statistics::wilson;
use trackway_tables::DataError;
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Source};

use super::confident::{LabelErrors, Surest, label_errors};
use super::percent;
use crate::model::{
    Binned, BoosterSettings, FRAME_CELLS_MAX, FoldSettings, Frame, MISSING_CODE, Predictions, Target, folds,
    log_loss, out_of_fold,
};

const NAME: &str = "data.label_noise";

/// The most rows checked; of larger tables a uniform sample is.
pub const NOISE_ROWS_MAX: usize = 200_000;

/// With fewer labelled rows a model is not worth training.
const ROWS_MIN: usize = 100;

/// A model that leaves more than this part of the label's entropy is too weak to contradict labels.
const UNKNOWN_SHARE_MAX: f64 = 0.95;

/// A class needs so many rows to be learnt in each fold; rows of smaller ones are not checked.
const CLASS_ROWS_MIN: u64 = 10;

/// The most suspects that are listed.
pub const SUSPECTS_MAX: usize = 10_000;

/// A model that is right less often cannot contradict labels one by one.
const ACCURACY_MIN: f64 = 0.7;

/// The most suspects for each mistake that the rows promise of which the model is surest.
const SUSPECTS_PER_MISTAKE_MAX: f64 = 1.25;

/// If the model contradicts so many times as many labels in the next quarter of the rows, they are hard to predict.
const RISE_MAX: f64 = 1.75;

/// The confidence of the rate of mistakes there.
const CONFIDENCE: f64 = 0.95;

/// Classes of fewer different numbers may be anything; of so many, they may be steps of a scale.
const STEPS_MIN: usize = 4;

/// Labels of a scale are judgements: when so many suspects are one step off, the model does not know better.
const NEIGHBOURS_SHARE_MIN: f64 = 0.8;

/// From this fraction of suspects on a user should look.
const SUSPECT_SHARE_WARNS: f64 = 0.005;

/// Looks for wrong labels with out-of-fold predictions of the quick model; rows with equal features are always in one
/// fold.
///
/// # Errors
/// [`DataError`]: no such label, a file that cannot be read, the scan cancelled.
pub fn label_noise(
    source: &mut Source,
    label: &str,
    seed: u64,
    watch: &PassObserver<'_>,
) -> Result<(CheckResult, Option<LabelNoise>), DataError> {
    let (frame, _) = Frame::sample(source, Some(label), (NOISE_ROWS_MAX, seed), watch)?;
    Ok(match judged_by_model(&frame, label, seed) {
        Ok((target, predictions)) => judge(source, &frame, &target, &predictions),
        Err(result) => (result, None),
    })
}

fn judged_by_model(frame: &Frame, label: &str, seed: u64) -> Result<(Target, Predictions), CheckResult> {
    let target = class_target(frame, label)?;
    let columns: Vec<usize> =
        (0..frame.columns().len()).filter(|index| frame.columns()[*index].name != label).collect();
    if columns.is_empty() {
        return Err(CheckResult::not_applicable(NAME, "there is no column besides the label"));
    }
    let settings = FoldSettings { seed, ..FoldSettings::default() };
    let folds = folds(frame.keys(), &target, settings)
        .map_err(|error| CheckResult::not_applicable(NAME, error.to_string()))?;
    let settings = BoosterSettings { seed, ..BoosterSettings::default() };
    let predictions = out_of_fold(&Binned::of(frame), &columns, &target, &folds, &settings);
    Ok((target, predictions))
}

/// As [`label_noise`], with probabilities from another model: one row for each row of the data, in its order, a column
/// for each class, with its name.
///
/// # Errors
/// [`DataError`]: as [`label_noise`], of either table.
pub fn label_noise_from(
    source: &mut Source,
    probabilities: &mut Source,
    label: &str,
    watch: &PassObserver<'_>,
) -> Result<(CheckResult, Option<LabelNoise>), DataError> {
    let mut labels = source.clone().select(&[label])?;
    let (frame, coverage) = Frame::sample(&mut labels, Some(label), (FRAME_CELLS_MAX, 0), watch)?;
    if coverage.rows_read > FRAME_CELLS_MAX as u64 {
        let why = format!("{} rows are more than the {FRAME_CELLS_MAX} that fit", coverage.rows_read);
        return Ok((CheckResult::not_run(NAME, why), None));
    }
    let target = match class_target(&frame, label) {
        Ok(target) => target,
        Err(result) => return Ok((result, None)),
    };
    let Target::Classes { names, .. } = &target else { unreachable!("class targets are classes") };
    let mut columns = Vec::new();
    for name in names {
        columns.push(probabilities.index_of(name, "class")?);
    }
    let outputs = names.len();
    let make = |_: &Source| Probabilities { columns: columns.clone(), values: Vec::new() };
    let (read, _) = scan(probabilities, &make, watch)?;
    let rows = read.values.len() / outputs;
    if rows != frame.rows() {
        let why = format!("there are probabilities for {rows} rows, but {} rows of data", frame.rows());
        return Ok((CheckResult::not_run(NAME, why), None));
    }
    if read.values.iter().any(|value| !(0.0..=1.0).contains(value)) {
        return Ok((CheckResult::not_run(NAME, "a probability is missing, or none between 0 and 1"), None));
    }
    let predictions = Predictions { outputs, values: read.values };
    Ok(judge(source, &frame, &target, &predictions))
}

/// The label as classes, those with too few rows set missing.
fn class_target(frame: &Frame, label: &str) -> Result<Target, CheckResult> {
    let not_applicable = |why: String| CheckResult::not_applicable(NAME, why);
    let target = Target::of(frame, label).map_err(|error| not_applicable(error.to_string()))?;
    let sizes = target.class_rows();
    let Target::Classes { mut of_row, names } = target else {
        return Err(not_applicable(format!(
            "`{label}` is continuous; label errors are only detected for classes"
        )));
    };
    for class in &mut of_row {
        if *class != MISSING_CODE && sizes[*class as usize] < CLASS_ROWS_MIN {
            *class = MISSING_CODE;
        }
    }
    let labelled = of_row.iter().filter(|class| **class != MISSING_CODE).count();
    if labelled < ROWS_MIN || sizes.iter().filter(|rows| **rows >= CLASS_ROWS_MIN).count() < 2 {
        return Err(not_applicable(format!(
            "it needs {ROWS_MIN} rows and two classes with {CLASS_ROWS_MIN} rows each; {labelled} rows can be used"
        )));
    }
    Ok(Target::Classes { of_row, names })
}

fn judge(
    source: &Source,
    frame: &Frame,
    target: &Target,
    predictions: &Predictions,
) -> (CheckResult, Option<LabelNoise>) {
    let Target::Classes { of_row, names } = target else { unreachable!("class targets are classes") };
    let sizes = target.class_rows();
    let labelled: u64 = sizes.iter().sum();
    let entropy: f64 = sizes
        .iter()
        .filter(|rows| **rows > 0)
        .map(|rows| *rows as f64 / labelled as f64)
        .map(|share| -share * share.ln())
        .sum();
    let left = log_loss(predictions, target) / entropy;
    if left > UNKNOWN_SHARE_MAX {
        let why = format!(
            "the features carry too little information about the label ({} of its entropy remains) to contradict it",
            percent(left.min(1.0))
        );
        return (CheckResult::not_applicable(NAME, why), None);
    }
    let mut errors = label_errors(of_row, predictions);
    let accuracy = accuracy(of_row, predictions);
    let doubt = Doubt { errors: &errors, accuracy, surest: Surest::of(of_row, predictions) };
    let suspects_max = doubt.suspects_max();
    if let Some(why) = doubt.why(names) {
        let why = format!("cannot distinguish wrong labels from rows that are hard to predict: {why}");
        return (CheckResult::not_applicable(NAME, why), None);
    }
    // The surest come first.
    errors.suspects.truncate(suspects_max);
    let noise = summary(source, frame, names, &errors, (accuracy, &sizes));
    let looked_at = format!(
        "{} of {} rows, classified with an accuracy of {} (majority class: {})",
        noise.rows_judged,
        noise.rows,
        percent(noise.accuracy),
        percent(noise.majority_fraction)
    );
    let findings = finding(&noise, &errors, names).into_iter().collect();
    (super::answer(NAME, noise.rows_judged, findings, looked_at), Some(noise))
}

/// What speaks against calling suspects wrong labels.
///
/// Mistakes in labels are independent of how hard a row is, so they are as frequent where the model is surest as
/// elsewhere. Where it is rarely wrong there and often elsewhere, its suspects are rows that it cannot predict.
struct Doubt<'e> {
    errors: &'e LabelErrors,
    accuracy: f64,
    surest: Surest,
}

impl Doubt<'_> {
    /// How many suspects may be mistakes.
    fn suspects_max(&self) -> usize {
        let [(contradicted, rows), _] = self.surest.quarters;
        let highest = wilson(contradicted as f64, rows as f64, CONFIDENCE).high;
        (self.errors.rows as f64 * highest * SUSPECTS_PER_MISTAKE_MAX) as usize
    }

    fn why(&self, names: &[String]) -> Option<String> {
        let (suspects, rows) = (self.errors.suspects.len() as f64, self.errors.rows as f64);
        if suspects < rows * SUSPECT_SHARE_WARNS {
            return None;
        }
        if self.accuracy < ACCURACY_MIN {
            return Some(format!("the model is right on {} of the rows only", percent(self.accuracy)));
        }
        let [first, second] =
            self.surest.quarters.map(|(contradicted, rows)| contradicted as f64 / rows as f64);
        if self.errors.suspects.len() > self.suspects_max() && second > first * RISE_MAX {
            return Some(format!(
                "the model contradicts {} of the labels in the quarter of the rows that it is surest of, {} in the next quarter, and suspects {} of all",
                percent(first),
                percent(second),
                percent(suspects / rows)
            ));
        }
        let neighbours = self.neighbours(names)?;
        (neighbours >= NEIGHBOURS_SHARE_MIN).then(|| {
            format!("the classes are steps, and {} of the suspects are one step off", percent(neighbours))
        })
    }

    /// The fraction of suspects whose likely class is next to the given one; `None` where classes are no steps.
    fn neighbours(&self, names: &[String]) -> Option<f64> {
        let steps: Vec<i64> = names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?;
        if steps.len() < STEPS_MIN {
            return None;
        }
        let mut sorted = steps.clone();
        sorted.sort_unstable();
        let place = |class: usize| sorted.binary_search(&steps[class]).unwrap_or(0);
        let suspects = &self.errors.suspects;
        let near = suspects.iter().filter(|it| place(it.given).abs_diff(place(it.likely)) == 1).count();
        Some(near as f64 / suspects.len().max(1) as f64)
    }
}

fn accuracy(of_row: &[u32], predictions: &Predictions) -> f64 {
    let labelled = of_row.iter().enumerate().filter(|(_, class)| **class != MISSING_CODE);
    let (mut right, mut all) = (0.0, 0.0);
    for (row, class) in labelled {
        let said = predictions.row(row);
        all += 1.0;
        right += f64::from(u8::from(said.iter().all(|other| *other <= said[*class as usize])));
    }
    right / f64::max(all, 1.0)
}

fn summary(
    source: &Source,
    frame: &Frame,
    names: &[String],
    errors: &LabelErrors,
    (accuracy, sizes): (f64, &[u64]),
) -> LabelNoise {
    let suspect = |it: &super::confident::SuspectRow| {
        let place = frame.places()[it.row];
        Suspect {
            file: source.files()[place.file].path.clone(),
            row: place.row,
            given: names[it.given].clone(),
            likely: names[it.likely].clone(),
            given_probability: it.given_probability,
            likely_probability: it.likely_probability,
        }
    };
    LabelNoise {
        suspects: errors.suspects.iter().take(SUSPECTS_MAX).map(suspect).collect(),
        suspect_count: errors.suspects.len() as u64,
        noise_fraction: errors.noise_fraction(),
        rows_judged: errors.rows as u64,
        rows: frame.rows_seen(),
        accuracy,
        majority_fraction: sizes
            .iter()
            .max()
            .map_or(0.0, |most| *most as f64 / sizes.iter().sum::<u64>() as f64),
    }
}

fn finding(noise: &LabelNoise, errors: &LabelErrors, names: &[String]) -> Option<Finding> {
    if noise.suspect_count == 0 {
        return None;
    }
    let share = noise.suspect_count as f64 / noise.rows_judged as f64;
    let mut pairs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    errors.suspects.iter().for_each(|it| *pairs.entry((it.given, it.likely)).or_default() += 1);
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|(pair, count)| (std::cmp::Reverse(*count), *pair));
    let lines: Vec<String> = pairs
        .iter()
        .take(3)
        .map(|((given, likely), count)| {
            format!("`{}` seems to be `{}` {count} times", names[*given], names[*likely])
        })
        .collect();
    let message = format!(
        "{} of {} labels ({}) seem to be wrong: {}",
        noise.suspect_count,
        noise.rows_judged,
        percent(share),
        lines.join(", ")
    );
    let example = |it: &Suspect| Example {
        file: Some(it.file.clone()),
        row: Some(it.row),
        value: Some(format!(
            "`{}` given with {:.3}, `{}` has {:.3}",
            it.given, it.given_probability, it.likely, it.likely_probability
        )),
    };
    let severity = if share >= SUSPECT_SHARE_WARNS { Severity::Warn } else { Severity::Note };
    Some(
        Finding::new("label_noise.suspects", severity, message)
            .action("review the most confident ones; correct or remove wrong labels, then train again")
            .count(noise.suspect_count)
            .examples(noise.suspects.iter().take(EXAMPLES_MAX).map(example)),
    )
}

/// The columns of classes, row by row.
struct Probabilities {
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl Pass for Probabilities {
    fn observe(&mut self, chunk: &Chunk) {
        let columns =
            self.columns.iter().map(|index| cast(chunk.batch.column(*index), &DataType::Float64).ok());
        let columns: Vec<_> = columns.collect();
        for row in 0..chunk.batch.num_rows() {
            let value = |array: &Option<arrow::array::ArrayRef>| {
                let floats = array.as_ref().map(|array| array.as_primitive::<Float64Type>());
                floats
                    .filter(|floats| !arrow::array::Array::is_null(floats, row))
                    .map_or(f64::NAN, |it| it.value(row))
            };
            self.values.extend(columns.iter().map(value));
        }
    }

    fn merge(&mut self, later: Self) {
        self.values.extend(later.values);
    }
}
