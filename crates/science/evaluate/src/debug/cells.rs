//! Columns changed in ways that show how a model uses them.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Cells, MISSING_CODE};

/// One cell's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// A number; NaN is missing.
    Number(f64),
    /// The code of a text.
    Text(u32),
}

/// Of the column `like`, these values.
pub(super) fn filled(like: &Cells, values: impl Iterator<Item = Value>) -> Cells {
    match like {
        Cells::Numbers(_) => Cells::Numbers(
            values.map(|value| if let Value::Number(number) = value { number } else { f64::NAN }).collect(),
        ),
        Cells::Categories { names, .. } => {
            let code = |value| if let Value::Text(code) = value { code } else { MISSING_CODE };
            Cells::Categories { codes: values.map(code).collect(), names: names.clone() }
        }
    }
}

/// All cells missing.
pub(super) fn emptied(cells: &Cells, rows: usize) -> Cells {
    let missing = match cells {
        Cells::Numbers(_) => Value::Number(f64::NAN),
        Cells::Categories { .. } => Value::Text(MISSING_CODE),
    };
    filled(cells, std::iter::repeat_n(missing, rows))
}

/// Numbers times a factor; `None` for strings.
pub(super) fn scaled(cells: &Cells, factor: f64) -> Option<Cells> {
    match cells {
        Cells::Numbers(numbers) => {
            Some(Cells::Numbers(numbers.iter().map(|number| number * factor).collect()))
        }
        Cells::Categories { .. } => None,
    }
}

/// Strings with two neighbouring letters swapped, or one letter doubled if there is no pair; `None` for numbers.
pub(super) fn mistyped(cells: &Cells, rng: &mut SplitMix64) -> Option<Cells> {
    match cells {
        Cells::Numbers(_) => None,
        Cells::Categories { codes, names } => {
            let texts = codes.iter().map(|code| names.get(*code as usize).map(|name| typo(name, rng)));
            let texts: Vec<Option<String>> = texts.collect();
            Some(Cells::of_texts(texts.iter().map(Option::as_deref)))
        }
    }
}

fn typo(text: &str, rng: &mut SplitMix64) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let pairs: Vec<usize> =
        (1..letters.len()).filter(|index| letters[index - 1] != letters[*index]).collect();
    match pairs.get(below(rng, pairs.len())) {
        Some(index) => letters.swap(index - 1, *index),
        None => letters.extend(letters.last().copied()),
    }
    letters.into_iter().collect()
}

/// Rows in another order, each with the same probability.
pub(super) fn shuffled(rows: usize, rng: &mut SplitMix64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    (1..rows).rev().for_each(|last| order.swap(last, below(rng, last + 1)));
    order
}

/// A number below `end`; 0 where that is 0.
pub(super) fn below(rng: &mut SplitMix64, end: usize) -> usize {
    ((u128::from(rng.next_u64()) * end as u128) >> 64) as usize
}

/// Up to `count` values that the column has, from the lowest number to the highest at even ranks, or the most frequent
/// strings.
pub(super) fn grid(cells: &Cells, count: usize) -> Vec<Value> {
    match cells {
        Cells::Numbers(numbers) => {
            let mut sorted: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            let mut different = sorted.clone();
            different.dedup();
            if different.len() > count {
                let steps = count.max(2) - 1;
                different = (0..=steps).map(|step| sorted[step * (sorted.len() - 1) / steps]).collect();
                different.dedup();
            }
            different.into_iter().map(Value::Number).collect()
        }
        Cells::Categories { codes, names } => {
            let mut counts = vec![0u32; names.len()];
            codes.iter().filter(|code| **code != MISSING_CODE).for_each(|code| counts[*code as usize] += 1);
            let mut order: Vec<usize> = (0..names.len()).filter(|code| counts[*code] > 0).collect();
            order.sort_by_key(|code| (std::cmp::Reverse(counts[*code]), *code));
            order.truncate(count);
            order.into_iter().map(|code| Value::Text(code as u32)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a typo is another text of the same letters, that a shuffle loses no row, and that a grid goes from
    /// the lowest to the highest value.
    #[test]
    fn changes_by_hand() {
        let mut rng = SplitMix64::new(1);
        for text in ["Private", "ab", "x", "aa", ""] {
            let changed = typo(text, &mut rng);
            assert!(text.is_empty() || changed != text, "{changed}");
        }
        let mut order = shuffled(100, &mut rng);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
        let numbers = Cells::Numbers((0..101).map(f64::from).chain([f64::NAN]).collect());
        assert_eq!(grid(&numbers, 3), [0.0, 50.0, 100.0].map(Value::Number));
        let texts = Cells::of_texts(["b", "a", "a", "c"].map(Some));
        assert_eq!(grid(&texts, 2), [Value::Text(1), Value::Text(0)]);
        assert_eq!(
            emptied(&texts, 2),
            Cells::Categories {
                codes: vec![MISSING_CODE; 2],
                names: vec!["b".into(), "a".into(), "c".into()]
            }
        );
    }
}
