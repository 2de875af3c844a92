//! What a script printed behind the last entry of a trainer's state: an evaluation after the last save, the summary of the training.

use super::{EPOCH, Point};

/// Printed values are rounded to so much of themselves at least: to four digits.
const ROUNDED_BY: f64 = 1e-3;

/// The records that were printed behind the last entry of a state, at the steps of its training. `printed`: the last
/// records that name an epoch, in order, with the steps that the output shows. Nothing if the entry is not among them.
#[must_use]
pub fn printed_behind(last: &Point, printed: &[Point]) -> Vec<Point> {
    let Some(at) = printed.iter().rposition(|record| is_same(record, last)) else { return Vec::new() };
    let mut behind: Vec<Point> = printed[at + 1..].to_vec();
    // A script prints what the trainer has printed already.
    behind.dedup_by(|record, before| is_same(record, before));
    behind.iter_mut().for_each(|record| record.step = step_of(last, record));
    behind
}

/// The step of a record by its epoch, in the ratio that the entry shows.
fn step_of(last: &Point, record: &Point) -> i64 {
    let epochs = epoch_of(last).filter(|epoch| *epoch > 0.0).zip(epoch_of(record));
    let step = epochs
        .filter(|(known, epoch)| epoch > known && !is_rounded(*known, *epoch))
        .map(|(known, epoch)| (last.step as f64 * epoch / known).round() as i64);
    step.unwrap_or(last.step).max(last.step)
}

fn epoch_of(point: &Point) -> Option<f64> {
    value_of(point, EPOCH)
}

fn value_of(point: &Point, name: &str) -> Option<f64> {
    point.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// Whether two records are the same up to rounding: they have equal values of all names that both have, and not of the epoch alone.
fn is_same(one: &Point, other: &Point) -> bool {
    let both = || one.values.iter().filter_map(|(name, value)| Some((name, *value, value_of(other, name)?)));
    both().any(|(name, ..)| name != EPOCH) && both().all(|(_, value, known)| is_rounded(value, known))
}

fn is_rounded(one: f64, other: f64) -> bool {
    let size = one.abs().max(other.abs());
    one.to_bits() == other.to_bits() || (one - other).abs() <= size * ROUNDED_BY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: i64, values: &[(&str, f64)]) -> Point {
        Point { step, values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect() }
    }

    /// Proves that what is printed behind the last entry of a state is kept, once, at the steps of the training, and
    /// that nothing is where the entry was not printed.
    #[test]
    fn records_behind_the_last_entry() {
        let last = point(150, &[("epoch", 3.0), ("eval_loss", 3.058_96), ("eval_runtime", 0.1234)]);
        let printed = [
            point(14, &[("epoch", 2.8), ("loss", 3.1)]),
            point(15, &[("epoch", 3.0), ("eval_loss", 3.059), ("eval_runtime", 0.1234)]),
            point(15, &[("epoch", 3.0), ("train_loss", 4.5)]),
            point(16, &[("epoch", 3.0), ("eval_loss", 11.952)]),
            point(17, &[("epoch", 3.0), ("eval_loss", 11.952_31)]),
            point(18, &[("epoch", 3.5), ("loss", 2.5)]),
        ];
        let expected = [
            point(150, &[("epoch", 3.0), ("train_loss", 4.5)]),
            point(150, &[("epoch", 3.0), ("eval_loss", 11.952)]),
            point(175, &[("epoch", 3.5), ("loss", 2.5)]),
        ];
        assert_eq!(printed_behind(&last, &printed), expected);
        assert!(printed_behind(&last, &printed[2..]).is_empty() && printed_behind(&last, &[]).is_empty());
        let diverged = point(2, &[("loss", f64::NAN)]);
        assert_eq!(printed_behind(&diverged, &[diverged.clone(), point(3, &[("loss", 1.0)])])[0].step, 2);
    }
}
