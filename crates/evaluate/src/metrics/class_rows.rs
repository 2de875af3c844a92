//! Rows whose labels and predictions are classes.

use trackway_data::model::Frame;

use super::rows::{Classes, Content, KnownClasses, column, numbers, pick, values_of, whole_rows};
use crate::Columns;
use crate::assess::AssessError;

/// The most classes.
pub const CLASSES_MAX: usize = 256;

/// Scores of all classes are probabilities when they sum to 1 within this.
const PROBABILITY_SUM_TOLERANCE: f64 = 1e-3;

pub fn classes(
    frame: &Frame,
    columns: &Columns,
    known: KnownClasses<'_>,
) -> Result<(Vec<u32>, Content), AssessError> {
    let label_name = columns.label.as_deref().ok_or(AssessError::NoColumnFor("label"))?;
    let mut needed = vec![label_name];
    needed.extend(columns.prediction.as_deref());
    needed.extend(columns.score.as_deref());
    needed.extend(columns.class_scores.values().map(String::as_str));
    let rows = whole_rows(frame, &needed)?;
    let (label_names, label) = values_of(column(frame, label_name)?);
    let predicted =
        columns.prediction.as_deref().map(|name| column(frame, name).map(values_of)).transpose()?;

    let mut names: Vec<String> = label_names.clone();
    names.extend(predicted.iter().flat_map(|(names, _)| names.clone()));
    names.extend(columns.class_scores.keys().cloned());
    names.extend_from_slice(known.names);
    sort_classes(&mut names);
    if names.len() > CLASSES_MAX {
        return Err(AssessError::TooManyClasses { column: label_name.to_owned(), classes: names.len() });
    }
    let class_of = |own: &[String], codes: &[u32]| -> Vec<u32> {
        let map: Vec<u32> = own.iter().map(|name| place(&names, name)).collect();
        rows.iter().map(|row| map[codes[*row as usize] as usize]).collect()
    };
    let label = class_of(&label_names, &label);
    let positive = positive_class(&names, known.positive, columns)?;

    let class_scores = class_scores(frame, columns, &names, &rows)?;
    let score = match (&columns.score, positive) {
        (Some(name), Some(_)) => Some(pick(numbers(frame, name)?, &rows)),
        (None, Some(positive)) if !class_scores.is_empty() => Some(class_scores[positive as usize].clone()),
        _ => None,
    };
    let class_scores = if positive.is_some() { Vec::new() } else { class_scores };
    let all_scores = || score.iter().chain(&class_scores).flatten();
    let sums_to_one = |row: usize| {
        (class_scores.iter().map(|scores| scores[row]).sum::<f64>() - 1.0).abs() <= PROBABILITY_SUM_TOLERANCE
    };
    let are_probabilities = all_scores().all(|score| (0.0..=1.0).contains(score))
        && (class_scores.is_empty() || (0..rows.len()).all(sums_to_one));
    let prediction = match predicted {
        Some((own, codes)) => class_of(&own, &codes),
        None => by_score(score.as_deref(), &class_scores, positive, are_probabilities)?,
    };
    let names = names.into();
    let content = Classes { names, positive, label, prediction, score, class_scores, are_probabilities };
    Ok((rows, Content::Classes(content)))
}

/// Numbers by value, texts by letters, each once.
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

fn place(names: &[String], name: &str) -> u32 {
    names.iter().position(|it| it == name).expect("every class is in the list") as u32
}

/// With two classes the one that was named, else the last one. One that was named must be there.
fn positive_class(
    names: &[String],
    wanted: Option<&str>,
    columns: &Columns,
) -> Result<Option<u32>, AssessError> {
    match wanted {
        Some(wanted) if names.iter().all(|name| name != wanted) => Err(AssessError::NoClass {
            class: wanted.to_owned(),
            column: columns.label.clone().unwrap_or_default(),
            classes: names.join(", "),
        }),
        Some(wanted) if names.len() <= 2 => Ok(Some(place(names, wanted))),
        Some(_) => Err(AssessError::NotTwoClasses(names.len())),
        None => Ok((names.len() == 2).then_some(1)),
    }
}

/// A column for each class, or nothing.
fn class_scores(
    frame: &Frame,
    columns: &Columns,
    names: &[String],
    rows: &[u32],
) -> Result<Vec<Vec<f64>>, AssessError> {
    if columns.class_scores.is_empty() {
        return Ok(Vec::new());
    }
    let of = |class: &String| {
        let name = columns.class_scores.get(class).ok_or_else(|| AssessError::NoScoreOf(class.clone()))?;
        Ok(pick(numbers(frame, name)?, rows))
    };
    names.iter().map(of).collect()
}

/// What the scores predict: the class with the highest one; of two classes the positive one from a half on, from 0 on
/// where scores are no probabilities.
fn by_score(
    score: Option<&[f64]>,
    class_scores: &[Vec<f64>],
    positive: Option<u32>,
    are_probabilities: bool,
) -> Result<Vec<u32>, AssessError> {
    if let (Some(score), Some(positive)) = (score, positive) {
        let threshold = if are_probabilities { 0.5 } else { 0.0 };
        let class = |score: &f64| if *score >= threshold { positive } else { 1 - positive };
        return Ok(score.iter().map(class).collect());
    }
    let Some(first) = class_scores.first() else { return Err(AssessError::NoColumnFor("prediction")) };
    let best = |row: usize| {
        let better = |best: usize, class: usize| {
            if class_scores[class][row] > class_scores[best][row] { class } else { best }
        };
        (0..class_scores.len()).reduce(better).expect("there is a class") as u32
    };
    Ok((0..first.len()).map(best).collect())
}
