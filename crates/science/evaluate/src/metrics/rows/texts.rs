//! Texts: predictions that match exactly, completions that are right, word errors.

use std::collections::HashMap;

use trackway_data::model::{Frame, MISSING_CODE};

use super::coverage::RowUse;
use super::{Content, RowItems, answers_of, column, numbers, values_of, whole_rows};
use crate::Columns;
use crate::error::{AssessError, Result};
use crate::metrics::ratio::{Link, Ratio};

/// The numbers of completions for which pass@k is reported, if each task has that many.
const COMPLETIONS: [u32; 6] = [1, 2, 5, 10, 50, 100];

/// Whether the answer is the expected text, letter by letter. No answer is a wrong one.
pub(super) fn exact_matches(
    frame: &Frame,
    label: &str,
    prediction: &str,
    found: &mut RowItems,
) -> Result<Ratio> {
    let (label_names, label) = values_of(column(frame, label)?);
    let (prediction_names, prediction) = answers_of(column(frame, prediction)?, &label_names);
    let RowItems { row_of_item, rows, .. } = found;
    let has_none = |row: &&u32| prediction[**row as usize] == MISSING_CODE;
    row_of_item.iter().filter(has_none).for_each(|row| rows.without_prediction(*row));
    let index: HashMap<&str, u32> =
        (0..).zip(&label_names).map(|(code, name)| (name.as_str(), code)).collect();
    let same: Vec<u32> =
        prediction_names.iter().map(|name| *index.get(name.as_str()).unwrap_or(&MISSING_CODE)).collect();
    let hit = |row: &u32| {
        let answer = same.get(prediction[*row as usize] as usize);
        f64::from(u8::from(answer.is_some_and(|answer| *answer == label[*row as usize])))
    };
    Ok(Ratio::share("exact_match", row_of_item.iter().map(hit).collect()))
}

/// Several completions of each task: the unbiased probability that at least one of k is right (M. Chen et al. 2021,
/// "Evaluating Large Language Models Trained on Code", eq. 1). If no column names the task, each row is one. A
/// completion without a result is wrong.
pub(super) fn completions(frame: &Frame, columns: &Columns, correct: &str) -> Result<RowItems> {
    let needed: Vec<&str> = columns.id.as_deref().into_iter().collect();
    let rows = whole_rows(frame, &needed)?;
    let is_right = numbers(frame, correct)?;
    let tasks = match &columns.id {
        Some(id) => values_of(column(frame, id)?).1,
        None => (0..frame.rows() as u32).collect(),
    };
    // For each task its first row, its completions and how many of them are right.
    let mut place: HashMap<u32, usize> = HashMap::new();
    let mut counted: Vec<(u32, u32, u32)> = Vec::new();
    let mut used = RowUse::of(frame.rows(), rows.iter().copied());
    for row in rows {
        let at = *place.entry(tasks[row as usize]).or_insert_with(|| {
            counted.push((row, 0, 0));
            counted.len() - 1
        });
        counted[at].1 += 1;
        let right = is_right[row as usize];
        if !right.is_finite() {
            used.without_prediction(row);
        }
        counted[at].2 += u32::from(right.is_finite() && right != 0.0);
    }
    let fewest = counted.iter().map(|task| task.1).min().unwrap_or(0);
    let most = counted.iter().map(|task| task.1).max().unwrap_or(0);
    let sums = COMPLETIONS.iter().filter(|k| **k <= fewest).map(|k| {
        let values = counted.iter().map(|(_, all, right)| pass_at(*k, *all, *right)).collect();
        let name = format!("pass_at_{k}");
        if most == 1 { Ratio::share(&name, values) } else { Ratio::mean(&name, values, Link::Itself) }
    });
    let content = Content::Sums(sums.collect());
    Ok(RowItems { row_of_item: counted.iter().map(|task| task.0).collect(), content, rows: used })
}

/// `1 − C(all − right, k) / C(all, k)`.
fn pass_at(k: u32, all: u32, right: u32) -> f64 {
    if all - right < k {
        return 1.0;
    }
    let none: f64 = (all - right + 1..=all).map(|n| 1.0 - f64::from(k) / f64::from(n)).product();
    1.0 - none
}

/// Word error rate: words that must be substituted, inserted or deleted to turn the hypothesis into the reference, over
/// the words of the reference. Words are separated by white space and compared exactly.
pub(super) fn words(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let reference = columns.reference.as_deref().ok_or(AssessError::NoColumnFor("reference"))?;
    let hypothesis = columns.hypothesis.as_deref().ok_or(AssessError::NoColumnFor("hypothesis"))?;
    // An empty hypothesis is an error in every word, not a missing row.
    let rows = whole_rows(frame, &[reference])?;
    let (said_names, said) = values_of(column(frame, reference)?);
    let (heard_names, heard) = values_of(column(frame, hypothesis)?);
    let heard = |row: u32| heard_names.get(heard[row as usize] as usize).map_or("", String::as_str);
    let said = |row: u32| said_names[said[row as usize] as usize].as_str();
    let errors = rows.iter().map(|row| word_errors(said(*row), heard(*row)) as f64).collect();
    let lengths = rows.iter().map(|row| said(*row).split_whitespace().count() as f64).collect();
    let content = Content::Sums(vec![Ratio::of_sums("wer", errors, lengths)]);
    let without: Vec<u32> = rows.iter().copied().filter(|row| heard(*row).trim().is_empty()).collect();
    let mut found = RowItems::rows(frame, rows, content);
    without.into_iter().for_each(|row| found.rows.without_prediction(row));
    Ok(found)
}

/// Levenshtein's distance between the words.
fn word_errors(said: &str, heard: &str) -> usize {
    let heard: Vec<&str> = heard.split_whitespace().collect();
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (said_count, word) in said.split_whitespace().enumerate() {
        let mut diagonal = row[0];
        row[0] = said_count + 1;
        for (place, other) in heard.iter().enumerate() {
            let changed = diagonal + usize::from(word != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[heard.len()]
}
