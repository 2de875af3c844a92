//! A table as the items of a task.

use std::sync::Arc;

use trackway_data::model::Frame;

use super::box_rows::boxes;
use super::class_rows::classes;
use super::clusters::clusters;
use super::experiment_rows::experiment;
use super::pixel_rows::pixels;
use super::ranking::documents;
use super::texts::{completions, exact_matches, words};
use super::{Amounts, Content, Items, KnownClasses, RowItems, numbers, pick, whole_rows};
use crate::error::{AssessError, Result};
use crate::metrics::ratio::{Link, Ratio};
use crate::{Columns, Task};

/// A table as the items of a task. Rows that cannot be evaluated are left out; [`Items::rows`] has the others.
pub(crate) fn items(frame: &Frame, task: Task, columns: &Columns, known: KnownClasses<'_>) -> Result<Items> {
    let found = match task {
        Task::Classification => classes(frame, columns, known)?,
        Task::Regression => amounts(frame, columns)?,
        Task::LanguageModel => language(frame, columns)?,
        Task::Transcription => words(frame, columns)?,
        Task::Ranking => documents(frame, columns)?,
        Task::Uplift => experiment(frame, columns)?,
        Task::Segmentation => pixels(frame, columns)?,
        Task::ObjectDetection => boxes(frame, columns)?,
    };
    if found.row_of_item.is_empty() {
        return Err(AssessError::NoRows);
    }
    let groups = clusters(frame, task, columns, &found.row_of_item)?;
    let RowItems { row_of_item, content, rows } = found;
    Ok(Items { row_of_item, groups, content, rows: Arc::new(rows) })
}

fn amounts(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let label = columns.label.as_deref().ok_or(AssessError::NoColumnFor("label"))?;
    let prediction = columns.prediction.as_deref().ok_or(AssessError::NoColumnFor("prediction"))?;
    let mut needed = vec![label, prediction];
    needed.extend(columns.quantiles.values().map(String::as_str));
    let rows = whole_rows(frame, &needed)?;
    let quantile =
        |(share, name): (&String, &String)| Ok((share.clone(), pick(numbers(frame, name)?, &rows)));
    let quantiles = columns.quantiles.iter().map(quantile).collect::<Result<_>>()?;
    let (label, prediction) = (numbers(frame, label)?, numbers(frame, prediction)?);
    let content = Amounts { label: pick(label, &rows), prediction: pick(prediction, &rows), quantiles };
    Ok(RowItems::rows(frame, rows, Content::Amounts(content)))
}

/// Losses, exact matches or completions: whichever columns there are.
fn language(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    if let Some(correct) = &columns.correct {
        return completions(frame, columns, correct);
    }
    let answers = columns.label.as_deref().zip(columns.prediction.as_deref());
    let (tokens, bytes) = (columns.tokens.as_deref(), columns.bytes.as_deref());
    let of_loss: Vec<&str> = [columns.loss.as_deref(), tokens, bytes].into_iter().flatten().collect();
    // Where predictions are evaluated too, a row without a loss is still one of them.
    let rows = match answers {
        Some((label, _)) => whole_rows(frame, &[label])?,
        None => whole_rows(frame, &of_loss)?,
    };
    let mut sums = Vec::new();
    let mut found = RowItems::rows(frame, rows, Content::Sums(Vec::new()));
    if let Some((label, prediction)) = answers {
        sums.push(exact_matches(frame, label, prediction, &mut found)?);
    }
    if let Some(name) = columns.loss.as_deref() {
        let known = whole_rows(frame, &of_loss)?;
        sums.extend(losses(frame, name, (tokens, bytes), &known, &mut found)?);
    }
    if sums.is_empty() {
        return Err(AssessError::NoColumnFor("loss"));
    }
    Ok(RowItems { content: Content::Sums(sums), ..found })
}

/// Mean loss, perplexity and bits per byte, over the `known` rows.
fn losses(
    frame: &Frame,
    loss: &str,
    (tokens, bytes): (Option<&str>, Option<&str>),
    known: &[u32],
    found: &mut RowItems,
) -> Result<Vec<Ratio>> {
    let mut is_known = vec![false; frame.rows()];
    known.iter().for_each(|row| is_known[*row as usize] = true);
    let RowItems { row_of_item, rows, .. } = found;
    row_of_item.iter().filter(|row| !is_known[**row as usize]).for_each(|row| rows.without_score(*row));
    let of = |values: &[f64]| -> Vec<f64> {
        let value = |row: &u32| if is_known[*row as usize] { values[*row as usize] } else { 0.0 };
        row_of_item.iter().map(value).collect()
    };
    let is_whole = row_of_item.iter().all(|row| is_known[*row as usize]);
    let weights = |name: Option<&str>| -> Result<Option<Vec<f64>>> {
        match name {
            Some(name) => Ok(Some(of(numbers(frame, name)?))),
            None if is_whole => Ok(None),
            None => Ok(Some(of(&vec![1.0; frame.rows()]))),
        }
    };
    let nats = of(numbers(frame, loss)?);
    let mut sums = Vec::new();
    if bytes.is_some() {
        let bits = nats.iter().map(|nats| nats / std::f64::consts::LN_2).collect();
        sums.push(Ratio::weighted("bits_per_byte", bits, weights(bytes)?, Link::Itself));
    }
    sums.push(Ratio::weighted("loss", nats.clone(), weights(tokens)?, Link::Itself));
    sums.push(Ratio::weighted("perplexity", nats, weights(tokens)?, Link::Exponential));
    Ok(sums)
}
