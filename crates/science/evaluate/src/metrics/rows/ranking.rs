//! Documents in an order for each query.

use std::collections::HashMap;

use trackway_data::model::Frame;

use super::coverage::RowUse;
use super::{Content, RowItems, column, numbers, values_of, whole_rows};
use crate::Columns;
use crate::assess::AssessError;
use crate::error::Result;
use crate::metrics::ratio::{Link, Ratio};

/// Documents below this place do not count for `ndcg`.
pub const NDCG_PLACES: usize = 10;

/// One document of a query.
#[derive(Debug, Clone, Copy)]
struct Document {
    /// Higher comes first.
    score: f64,
    relevance: f64,
}

/// The documents of each query as the numbers of the query.
pub(super) fn documents(frame: &Frame, columns: &Columns) -> Result<RowItems> {
    let query = columns.query.as_deref().ok_or(AssessError::NoColumnFor("query"))?;
    let relevance = columns.relevance.as_deref().ok_or(AssessError::NoColumnFor("relevance"))?;
    let (order, sign) = match (&columns.rank, &columns.score) {
        (Some(rank), _) => (rank, -1.0),
        (None, Some(score)) => (score, 1.0),
        (None, None) => return Err(AssessError::NoColumnFor("rank")),
    };
    let rows = whole_rows(frame, &[query, relevance, order])?;
    let (queries, relevance) = (values_of(column(frame, query)?).1, numbers(frame, relevance)?);
    let order = numbers(frame, order)?;
    let mut place: HashMap<u32, usize> = HashMap::new();
    let mut found: Vec<(u32, Vec<Document>)> = Vec::new();
    let used = RowUse::of(frame.rows(), rows.iter().copied());
    for row in rows {
        let at = *place.entry(queries[row as usize]).or_insert_with(|| {
            found.push((row, Vec::new()));
            found.len() - 1
        });
        let document = Document { score: sign * order[row as usize], relevance: relevance[row as usize] };
        found[at].1.push(document);
    }
    for (_, documents) in &mut found {
        documents.sort_by(|one, other| other.score.total_cmp(&one.score));
    }
    let of = |number: fn(&[Document]) -> f64| found.iter().map(|(_, documents)| number(documents)).collect();
    let mean = |name, values| Ratio::mean(name, values, Link::Itself);
    let sums = vec![mean("ndcg", of(ndcg)), mean("mrr", of(reciprocal_rank))];
    let row_of_item = found.iter().map(|query| query.0).collect();
    Ok(RowItems { row_of_item, content: Content::Sums(sums), rows: used })
}

/// The gain of the order over that of the best one, each place's gain the relevance over log2 of the place and one;
/// documents with the same score get the mean of their places' gains (F. McSherry and M. Najork 2008). 0 if nothing is
/// relevant.
fn ndcg(documents: &[Document]) -> f64 {
    let discount = |place: usize| if place < NDCG_PLACES { 1.0 / (place as f64 + 2.0).log2() } else { 0.0 };
    let mut gain = 0.0;
    let mut first = 0;
    for tied in documents.chunk_by(|one, other| one.score == other.score) {
        let discounts: f64 = (first..first + tied.len()).map(discount).sum();
        gain += discounts * tied.iter().map(|it| it.relevance).sum::<f64>() / tied.len() as f64;
        first += tied.len();
    }
    let mut best: Vec<f64> = documents.iter().map(|it| it.relevance).collect();
    best.sort_by(|one, other| other.total_cmp(one));
    let ideal: f64 = best.iter().enumerate().map(|(place, relevance)| relevance * discount(place)).sum();
    if ideal > 0.0 { gain / ideal } else { 0.0 }
}

/// 1 over the place of the first relevant document, 0 without one. Of documents with the same score the relevant one
/// comes last: an uninformative order gains nothing.
fn reciprocal_rank(documents: &[Document]) -> f64 {
    let Some(first) = documents.iter().find(|it| it.relevance > 0.0) else { return 0.0 };
    let before = documents.iter().filter(|it| it.score > first.score).count();
    let beside = documents.iter().filter(|it| it.score == first.score && it.relevance <= 0.0).count();
    1.0 / (before + beside + 1) as f64
}
