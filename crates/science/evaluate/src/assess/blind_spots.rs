//! The blind spots of evaluated rows: the search over every column without another role, with the errors of the evaluation
//! itself.

use trackway_data::model::Frame;

use crate::Columns;
use crate::columns::names_a_prediction;
use crate::metrics::rows::{Content, Items};
use crate::search::{BlindSpots, Loss, SearchObserver, Searched, blind_spots};

/// Searches them; a sentence where they cannot be searched.
pub(crate) fn blind_spots_of(
    frame: &Frame,
    items: &Items,
    roles: &Columns,
    seed: u64,
    watch: &SearchObserver<'_>,
) -> Result<BlindSpots, String> {
    let (loss, of_items) = errors(items).ok_or("the rows of this task have no error each")?;
    let mut errors = vec![f64::NAN; frame.rows()];
    for (row, error) in items.row_of_item.iter().zip(&of_items) {
        errors[*row as usize] = *error;
    }
    // What a model said of a row and how right it was, also in a column that has no role, says nothing about the data.
    let names = frame.columns().iter().map(|column| column.name.as_str());
    let others = roles.given().chain(names.filter(|name| names_a_prediction(name))).collect();
    let group = roles.group.as_deref();
    blind_spots(Searched { frame, loss, errors, others, group, seed }, watch)
}

/// How far off each item is: wrong or right of classes, the absolute difference of numbers.
fn errors(items: &Items) -> Option<(Loss, Vec<f64>)> {
    match &items.content {
        Content::Classes(rows) => {
            let pairs = rows.label.iter().zip(&rows.prediction);
            let wrong = pairs.map(|(label, predicted)| f64::from(u8::from(label != predicted)));
            Some((Loss::ZeroOne, wrong.collect()))
        }
        Content::Amounts(rows) => {
            let pairs = rows.label.iter().zip(&rows.prediction);
            Some((Loss::Absolute, pairs.map(|(label, predicted)| (label - predicted).abs()).collect()))
        }
        Content::Sums(_) | Content::Experiment(_) | Content::Pixels(_) | Content::Boxes(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use crate::search::{Loss, SearchObserver, SliceVerdict};
    use crate::tests::{frame, numbers, texts};
    use crate::{Spec, assess, assess_watched};

    /// 600 rows of which those of `sex` f are wrong in one of three, and no others.
    fn people() -> Vec<trackway_data::model::FrameColumn> {
        let sex = |row: usize| if row.is_multiple_of(2) { "f" } else { "m" };
        let label = |row: usize| if row % 5 < 2 { "yes" } else { "no" };
        let wrong = |row: usize| sex(row) == "f" && row.is_multiple_of(3);
        let predicted = |row: usize| if wrong(row) == (label(row) == "yes") { "no" } else { "yes" };
        vec![
            texts("label", (0..600).map(label)),
            texts("prediction", (0..600).map(predicted)),
            texts("sex", (0..600).map(sex)),
            numbers("age", (0..600).map(|row| f64::from(row % 7))),
        ]
    }

    /// Proves that a planted blind spot is found in the rows of an evaluation, confirmed, and measured beside all rows; and
    /// that none is searched without the setting.
    #[test]
    fn a_planted_blind_spot_is_confirmed() {
        let spec = Spec { blind_spots: true, ..Spec::default() };
        let found = assess(&frame(people()), &spec, None).unwrap().blind_spots.unwrap();
        assert_eq!(found.loss, Loss::ZeroOne);
        assert!((found.error.value - 100.0 / 600.0).abs() < 1e-12, "{:?}", found.error);
        let first = &found.slices[0];
        assert_eq!(first.verdict, SliceVerdict::Confirmed);
        assert_eq!(first.predicate.get("sex"), Some(&Some("f".to_owned())), "{first:?}");
        assert!(found.confirmed().count() >= 1);
        assert!(assess(&frame(people()), &Spec::default(), None).unwrap().blind_spots.is_none());
    }

    /// Proves that no blind spot is made of what the model said of a row nor of how right it was, under any of the
    /// usual names, and that they do not hide the planted one.
    #[test]
    fn how_right_a_row_is_is_no_blind_spot() {
        let is_wrong = |row: usize| row.is_multiple_of(6);
        let judged = |name| numbers(name, (0..600).map(|row| f64::from(u8::from(is_wrong(row)))));
        for name in
            ["correct", "nll", "Residual", "confidence", "logit_yes", "y_hat", "pred_proba", "abs_error"]
        {
            let mut columns = people();
            columns.push(judged(name));
            let spec = Spec { blind_spots: true, ..Spec::default() };
            let found = assess(&frame(columns), &spec, None).unwrap().blind_spots.unwrap();
            assert!(
                found.slices.iter().all(|slice| !slice.predicate.contains_key(name)),
                "{name}: {found:?}"
            );
            assert_eq!(found.slices[0].predicate.get("sex"), Some(&Some("f".to_owned())), "{name}");
        }
    }

    /// Proves that numbers are searched by the absolute error.
    #[test]
    fn numbers_have_an_absolute_error() {
        let right = (0..600).map(|row| f64::from(row % 50));
        let predicted = (0..600).map(|row| f64::from(row % 50) + if row % 4 == 0 { 9.0 } else { 0.5 });
        let group = (0..600).map(|row| if row % 4 == 0 { "bad" } else { "good" });
        let columns = vec![numbers("label", right), numbers("prediction", predicted), texts("site", group)];
        let spec = Spec { blind_spots: true, task: Some(crate::Task::Regression), ..Spec::default() };
        let found = assess(&frame(columns), &spec, None).unwrap().blind_spots.unwrap();
        assert_eq!(found.loss, Loss::Absolute);
        assert!((found.error.value - (9.0 + 3.0 * 0.5) / 4.0).abs() < 1e-9, "{:?}", found.error);
        assert_eq!(found.slices[0].predicate.get("site"), Some(&Some("bad".to_owned())));
    }

    /// Proves that a search reports how far it is, and that one which is cancelled ends with a note and takes nothing from the
    /// other numbers.
    #[test]
    fn a_search_is_watched_and_ends_when_asked_to() {
        let spec = Spec { blind_spots: true, ..Spec::default() };
        let seen = AtomicU64::new(0);
        let watched = |cancelled: bool| {
            let progress = |_, done, total| {
                assert!(done <= total);
                seen.fetch_add(1, Ordering::Relaxed);
            };
            let watch = SearchObserver { progress: &progress, cancelled: &AtomicBool::new(cancelled) };
            assess_watched(&frame(people()), &spec, None, &watch).unwrap()
        };
        assert!(watched(false).blind_spots.is_some() && seen.load(Ordering::Relaxed) > 0);
        let ended = watched(true);
        assert!(ended.blind_spots.is_none() && ended.metrics.contains_key("accuracy"));
        let note = "blind spots were not searched: the search was cancelled";
        assert!(ended.notes.iter().any(|it| it == note), "{:?}", ended.notes);
    }

    /// Proves that rows which cannot be searched are a note and no error.
    #[test]
    fn what_cannot_be_searched_is_noted() {
        let spec = Spec { blind_spots: true, ..Spec::default() };
        let mut columns = people();
        columns.truncate(2);
        let assessed = assess(&frame(columns), &spec, None).unwrap();
        assert!(assessed.blind_spots.is_none());
        let note = assessed.notes.iter().find(|note| note.contains("blind spots were not searched"));
        assert!(note.is_some_and(|note| note.contains("no columns beside")), "{:?}", assessed.notes);
    }
}
