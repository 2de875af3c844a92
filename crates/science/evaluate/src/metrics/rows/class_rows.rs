//! Rows whose labels and predictions are classes.

use trackway_data::model::{Frame, MISSING_CODE};

use super::{
    Classes, Content, KnownClasses, RowItems, answers_of, column, finite, numbers, pick, values_of,
    whole_rows,
};
use crate::Columns;
use crate::error::{AssessError, Result};
use crate::limits::CLASSES_MAX;
use crate::spellings::{Agreement, agreement, shown};

/// Scores of all classes are probabilities when they sum to 1 within this.
const PROBABILITY_SUM_TOLERANCE: f64 = 1e-3;

/// The rows that have a label. One without a prediction is wrong, one without a score is in no number that needs one.
pub(super) fn classes(frame: &Frame, columns: &Columns, known: KnownClasses<'_>) -> Result<RowItems> {
    let label_name = columns.label.as_deref().ok_or(AssessError::NoColumnFor("label"))?;
    let rows = whole_rows(frame, &[label_name])?;
    let (label_names, label) = values_of(column(frame, label_name)?);
    let answers = |name: &str| Ok::<_, AssessError>(answers_of(column(frame, name)?, &label_names));
    let mut predicted = columns.prediction.as_deref().map(answers).transpose()?;
    let used_labels = in_use(&label_names, &pick(&label, &rows));
    let agreement = match &mut predicted {
        Some((own, codes)) => agreed(columns, known, &used_labels, (own, &pick(codes, &rows)))?,
        None => Agreement::default(),
    };

    let mut names = used_labels;
    names.extend(predicted.iter().flat_map(|(names, codes)| in_use(names, codes)));
    names.extend(columns.class_scores.keys().cloned());
    names.extend_from_slice(known.names);
    sort_classes(&mut names);
    if names.len() > CLASSES_MAX {
        return Err(AssessError::TooManyClasses { column: label_name.to_owned(), classes: names.len() });
    }
    let class_of = |own: &[String], codes: &[u32]| -> Vec<u32> {
        let map: Vec<u32> = own.iter().map(|name| place(&names, name).unwrap_or(MISSING_CODE)).collect();
        let class = |row: &u32| map.get(codes[*row as usize] as usize).copied().unwrap_or(MISSING_CODE);
        rows.iter().map(class).collect()
    };
    let label = class_of(&label_names, &label);
    let positive = positive_class(&names, known.positive, columns, &agreement)?;

    let class_scores = class_scores(frame, columns, &names, &rows)?;
    let score = match (&columns.score, positive) {
        (Some(name), Some(_)) => Some(finite(pick(numbers(frame, name)?, &rows))),
        (None, Some(positive)) if !class_scores.is_empty() => Some(class_scores[positive as usize].clone()),
        _ => None,
    };
    let class_scores = if positive.is_some() { Vec::new() } else { class_scores };
    let all_scores = || score.iter().chain(&class_scores).flatten().filter(|score| !score.is_nan());
    let sums_to_one = |row: usize| {
        let sum = class_scores.iter().map(|scores| scores[row]).sum::<f64>();
        sum.is_nan() || (sum - 1.0).abs() <= PROBABILITY_SUM_TOLERANCE
    };
    let are_probabilities = all_scores().all(|score| (0.0..=1.0).contains(score))
        && (class_scores.is_empty() || (0..rows.len()).all(sums_to_one));
    let prediction = match predicted {
        Some((own, codes)) => class_of(&own, &codes),
        None => by_score(score.as_deref(), &class_scores, positive, are_probabilities)?,
    };
    let costs = known.costs.map(|costs| costs.table(&names)).transpose()?.map(Into::into);
    let names = names.into();
    let content = Classes {
        names,
        positive,
        label,
        prediction,
        score,
        class_scores,
        are_probabilities,
        costs,
        agreement: agreement.into(),
    };
    Ok(found(frame, rows, content))
}

fn found(frame: &Frame, row_of_item: Vec<u32>, content: Classes) -> RowItems {
    let scores = content.score.as_ref().or(content.class_scores.first()).cloned();
    let unanswered = content.prediction.iter().map(|code| *code == MISSING_CODE).collect::<Vec<_>>();
    let mut found = RowItems::rows(frame, row_of_item, Content::Classes(content));
    let RowItems { row_of_item, rows, .. } = &mut found;
    for (item, row) in row_of_item.iter().enumerate() {
        if unanswered[item] {
            rows.without_prediction(*row);
        }
        if scores.as_ref().is_some_and(|scores| scores[item].is_nan()) {
            rows.without_score(*row);
        }
    }
    found
}

/// What labels and predictions have in common; predictions that are labels written differently get the labels' names. A class that
/// is known otherwise is one, whether a label has it or not.
fn agreed(
    columns: &Columns,
    known: KnownClasses<'_>,
    labels: &[String],
    (own, codes): (&mut [String], &[u32]),
) -> Result<Agreement> {
    let predictions = in_use(own, codes);
    let found = agreement(labels, &predictions);
    let is_known = |class: &String| columns.class_scores.contains_key(class) || known.names.contains(class);
    // Labels of one class and other predictions of one class may be a few rows that are all wrong.
    let is_one_each = labels.len() == 1 && predictions.len() == 1;
    if found.is_disjoint && !is_one_each && !predictions.iter().any(is_known) {
        return Err(AssessError::NoCommonClass {
            label: columns.label.clone().unwrap_or_default(),
            prediction: columns.prediction.clone().unwrap_or_default(),
            labels: shown(labels),
            predictions: shown(&predictions),
        });
    }
    for name in own {
        if let Some(label) = found.label_of(name) {
            label.clone_into(name);
        }
    }
    Ok(found)
}

/// The strings that a row has.
fn in_use(names: &[String], codes: &[u32]) -> Vec<String> {
    let mut used = vec![false; names.len()];
    codes.iter().filter(|code| **code != MISSING_CODE).for_each(|code| used[*code as usize] = true);
    names.iter().zip(used).filter(|(_, used)| *used).map(|(name, _)| name.clone()).collect()
}

/// Numbers by value, strings alphabetically, each once.
fn sort_classes(names: &mut Vec<String>) {
    let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
    match numbers {
        Some(_) => names.sort_by(|one, other| {
            let number = |name: &String| name.parse::<f64>().unwrap_or(f64::NAN);
            number(one).total_cmp(&number(other))
        }),
        None => names.sort(),
    }
    names.dedup();
}

fn place(names: &[String], name: &str) -> Option<u32> {
    names.iter().position(|it| it == name).map(|place| place as u32)
}

/// With two classes the one that was named, else the last one. One that was named must be there.
fn positive_class(
    names: &[String],
    wanted: Option<&str>,
    columns: &Columns,
    agreed: &Agreement,
) -> Result<Option<u32>> {
    let is_class = |wanted: &str| names.iter().any(|name| name == wanted);
    // It may be named as the predictions have it, or as the labels would with other spellings.
    let spelled = wanted.filter(|wanted| !is_class(wanted)).and_then(|wanted| {
        let of_names = || agreement(names, &[wanted.to_owned()]).label_of(wanted).map(str::to_owned);
        agreed.label_of(wanted).map(str::to_owned).or_else(of_names).filter(|label| is_class(label))
    });
    match spelled.as_deref().or(wanted) {
        Some(wanted) if names.iter().all(|name| name != wanted) => Err(AssessError::NoClass {
            class: wanted.to_owned(),
            column: columns.label.clone().unwrap_or_default(),
            classes: names.join(", "),
        }),
        Some(wanted) if names.len() <= 2 => Ok(place(names, wanted)),
        Some(_) => Err(AssessError::NotTwoClasses(names.len())),
        None => Ok((names.len() == 2).then_some(1)),
    }
}

/// A column for each class, or nothing. A row that lacks one of them has none.
fn class_scores(frame: &Frame, columns: &Columns, names: &[String], rows: &[u32]) -> Result<Vec<Vec<f64>>> {
    if columns.class_scores.is_empty() {
        return Ok(Vec::new());
    }
    let of = |class: &String| {
        let name = columns.class_scores.get(class).ok_or_else(|| AssessError::NoScoreOf(class.clone()))?;
        Ok(finite(pick(numbers(frame, name)?, rows)))
    };
    let mut scores = names.iter().map(of).collect::<Result<Vec<_>>>()?;
    for row in 0..rows.len() {
        if scores.iter().any(|scores| scores[row].is_nan()) {
            scores.iter_mut().for_each(|scores| scores[row] = f64::NAN);
        }
    }
    Ok(scores)
}

/// What the scores predict: the class with the highest one; of two classes the positive one from a half on, from 0 on
/// where scores are no probabilities.
fn by_score(
    score: Option<&[f64]>,
    class_scores: &[Vec<f64>],
    positive: Option<u32>,
    are_probabilities: bool,
) -> Result<Vec<u32>> {
    if let (Some(score), Some(positive)) = (score, positive) {
        let threshold = if are_probabilities { 0.5 } else { 0.0 };
        let class = |score: &f64| match *score {
            score if score.is_nan() => MISSING_CODE,
            score if score >= threshold => positive,
            _ => 1 - positive,
        };
        return Ok(score.iter().map(class).collect());
    }
    let Some(first) = class_scores.first() else { return Err(AssessError::NoColumnFor("prediction")) };
    let best = |row: usize| {
        let better = |best: usize, class: usize| {
            if class_scores[class][row] > class_scores[best][row] { class } else { best }
        };
        (0..class_scores.len()).reduce(better).expect("there is a class") as u32
    };
    let answer = |row: usize| if first[row].is_nan() { MISSING_CODE } else { best(row) };
    Ok((0..first.len()).map(answer).collect())
}
