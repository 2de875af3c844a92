//! Columns as features of a few values each: numbers in bins, strings as they are, and missing as a separate value.

use trackway_core::Timestamp;
use trackway_data::model::{Cells, FrameColumn, MISSING_CODE};
use trackway_tables::ColumnType;

/// How numbers become values.
#[derive(Debug, Clone, PartialEq)]
pub enum Binning {
    /// Bins of about equally many rows. Of at most so many different numbers each is a value.
    Quantiles(usize),
    /// These bins: each begins at its edge, and ends below the next one.
    Edges(Vec<f64>),
    /// Each number is a value, as in a column of strings.
    None,
}

/// A column as the search sees it. Its values are numbered: first those that are there, then missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    pub(super) name: String,
    kind: ColumnType,
    values: Values,
    codes: Vec<u16>,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// The lower edge of each bin, and the largest number.
    Bins(Vec<f64>, f64),
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Feature {
    /// The code of values that are too rare to be searched.
    pub(crate) const RARE: u16 = u16::MAX;

    /// Of a column. Values that fewer rows than `min_support` have are put aside, as are the rarest of more than 65,534.
    #[must_use]
    pub fn of(column: FrameColumn, binning: &Binning, min_support: u32) -> Self {
        let (values, codes) = match column.cells {
            Cells::Categories { codes, names } => texts(&codes, names, min_support),
            Cells::Numbers(numbers) => match binning {
                Binning::None => numbers_as_they_are(&numbers, usize::MAX, min_support)
                    .expect("any number of values is allowed"),
                Binning::Edges(edges) => binned(&numbers, edges.clone()),
                Binning::Quantiles(bins) => numbers_as_they_are(&numbers, *bins, min_support)
                    .unwrap_or_else(|| binned(&numbers, quantile_edges(&numbers, *bins))),
            },
        };
        Self { name: column.name, kind: column.kind, values, codes }
    }

    pub(crate) fn code(&self, row: u32) -> u16 {
        self.codes[row as usize]
    }

    /// One more than the highest code but [`Feature::RARE`].
    pub(crate) fn codes_end(&self) -> usize {
        self.values.count() + 1
    }

    /// What people read: `25`, `[25, 31)`, `Private`; `None` for missing.
    pub(crate) fn shown(&self, code: u16) -> Option<String> {
        let index = usize::from(code);
        let number = |value: f64| self.shown_number(value);
        match &self.values {
            Values::Bins(edges, largest) => edges.get(index).map(|low| match edges.get(index + 1) {
                Some(high) => format!("[{}, {})", number(*low), number(*high)),
                None => format!("[{}, {}]", number(*low), number(*largest)),
            }),
            Values::Numbers(numbers) => numbers.get(index).map(|value| number(*value)),
            Values::Texts(texts) => texts.get(index).cloned(),
        }
    }

    /// The code of what [`Feature::shown`] gave, here or of the same column of other data. Of a last bin the upper end may
    /// differ.
    pub(super) fn code_of(&self, shown: Option<&str>) -> Option<u16> {
        let code_shown = |code: &u16| {
            let known = self.shown(*code);
            let same_start = |known: &str, shown: &str| {
                let start = |text: &str| text.split_once(", ").map(|(start, _)| start.to_owned());
                matches!(self.values, Values::Bins(..))
                    && known.ends_with(']')
                    && start(known) == start(shown)
            };
            match (known.as_deref(), shown) {
                (Some(known), Some(shown)) => known == shown || same_start(known, shown),
                (known, shown) => known == shown,
            }
        };
        (0..self.codes_end() as u16).find(code_shown)
    }

    /// Whether its values are strings.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.values, Values::Texts(_))
    }

    /// Where bins begin, if it has bins.
    pub(super) fn edges(&self) -> Option<&[f64]> {
        match &self.values {
            Values::Bins(edges, _) => Some(edges),
            _ => None,
        }
    }

    fn shown_number(&self, value: f64) -> String {
        shown_number(self.kind, value)
    }
}

fn shown_number(kind: ColumnType, value: f64) -> String {
    match kind {
        ColumnType::Timestamp => Timestamp::from_micros(value as i64).to_string(),
        ColumnType::Bool => (value != 0.0).to_string(),
        _ => value.to_string(),
    }
}

/// What people read of a cell of `cells`, which are of the column's kind; `None` for missing.
#[must_use]
pub fn shown_value(column: &FrameColumn, cells: &Cells, row: usize) -> Option<String> {
    match cells {
        Cells::Numbers(numbers) => {
            Some(numbers[row]).filter(|it| !it.is_nan()).map(|it| shown_number(column.kind, it))
        }
        Cells::Categories { codes, names } => names.get(codes[row] as usize).cloned(),
    }
}

impl Values {
    fn count(&self) -> usize {
        match self {
            Self::Bins(edges, _) => edges.len(),
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }
}

/// One code is for missing, one for rare values.
const VALUES_MAX: usize = u16::MAX as usize - 1;

fn texts(codes: &[u32], names: Vec<String>, min_support: u32) -> (Values, Vec<u16>) {
    let mut counts = vec![0u32; names.len()];
    codes.iter().filter(|code| **code != MISSING_CODE).for_each(|code| counts[*code as usize] += 1);
    let kept = frequent(&counts, min_support);
    let mut code_of = vec![Feature::RARE; names.len()];
    kept.iter().enumerate().for_each(|(code, index)| code_of[*index] = code as u16);
    let missing = kept.len() as u16;
    let code = |code: &u32| if *code == MISSING_CODE { missing } else { code_of[*code as usize] };
    let codes = codes.iter().map(code).collect();
    let mut names: Vec<Option<String>> = names.into_iter().map(Some).collect();
    let kept = kept.into_iter().map(|index| names[index].take().expect("each index comes once"));
    (Values::Texts(kept.collect()), codes)
}

/// `None` where there are more than `most` different numbers.
fn numbers_as_they_are(numbers: &[f64], most: usize, min_support: u32) -> Option<(Values, Vec<u16>)> {
    let mut different: Vec<(f64, u32)> = Vec::new();
    for run in sorted(numbers).chunk_by(|one, other| one == other) {
        if different.len() == most {
            return None;
        }
        different.push((run[0], run.len() as u32));
    }
    let counts: Vec<u32> = different.iter().map(|(_, count)| *count).collect();
    let kept: Vec<f64> = frequent(&counts, min_support).into_iter().map(|index| different[index].0).collect();
    let missing = kept.len() as u16;
    let code = |value: &f64| {
        if value.is_nan() {
            return missing;
        }
        let at = kept.partition_point(|known| known < value);
        if kept.get(at) == Some(value) { at as u16 } else { Feature::RARE }
    };
    let codes = numbers.iter().map(code).collect();
    Some((Values::Numbers(kept), codes))
}

/// Indexes, ascending, of what is frequent enough; of too many the most frequent.
fn frequent(counts: &[u32], min_support: u32) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..counts.len()).filter(|index| counts[*index] >= min_support).collect();
    if kept.len() > VALUES_MAX {
        kept.sort_by_key(|index| (std::cmp::Reverse(counts[*index]), *index));
        kept.truncate(VALUES_MAX);
        kept.sort_unstable();
    }
    kept
}

/// Bins that begin at these edges; what is below the first one belongs to the first bin.
fn binned(numbers: &[f64], edges: Vec<f64>) -> (Values, Vec<u16>) {
    let missing = edges.len() as u16;
    let code = |value: &f64| match value.is_nan() {
        true => missing,
        false => edges.partition_point(|edge| edge <= value).saturating_sub(1) as u16,
    };
    let codes = numbers.iter().map(code).collect();
    let largest = numbers.iter().copied().fold(f64::NAN, f64::max);
    (Values::Bins(edges, largest), codes)
}

/// Where each of about so many bins begins, so that all have about as many rows. A number that alone fills a bin has
/// one to itself.
fn quantile_edges(numbers: &[f64], bins: usize) -> Vec<f64> {
    let sorted = sorted(numbers);
    let full = sorted.len().div_ceil(bins.max(1));
    let mut edges: Vec<f64> = Vec::new();
    let mut in_bin = 0;
    for run in sorted.chunk_by(|one, other| one == other) {
        if edges.is_empty() || in_bin >= full || run.len() >= full {
            edges.push(run[0]);
            in_bin = 0;
        }
        in_bin += run.len();
    }
    edges
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(numbers: Vec<f64>, binning: &Binning, kind: ColumnType) -> Feature {
        let column = FrameColumn { name: "x".to_owned(), kind, cells: Cells::Numbers(numbers) };
        Feature::of(column, binning, 2)
    }

    /// Proves that numbers fall into bins of equally many rows that are shown with their edges, that a number which
    /// fills a bin has one to itself, and that missing is a separate value.
    #[test]
    fn numbers_in_bins() {
        let numbers: Vec<f64> = (0..100).map(f64::from).chain([f64::NAN]).collect();
        let decades = feature(numbers, &Binning::Quantiles(10), ColumnType::Int);
        assert_eq!(decades.shown(0).as_deref(), Some("[0, 10)"));
        assert_eq!(decades.shown(9).as_deref(), Some("[90, 99]"));
        assert_eq!((decades.code(9), decades.code(10), decades.code(100)), (0, 1, 10));
        assert_eq!(decades.shown(10), None);
        assert_eq!(decades.code_of(Some("[90, 104]")), Some(9));
        assert_eq!((decades.code_of(None), decades.code_of(Some("[90, 95)"))), (Some(10), Some(9)));

        let mostly_zero: Vec<f64> = (0..100).map(|row| f64::from((row - 80).max(0))).collect();
        let zeros = feature(mostly_zero, &Binning::Quantiles(4), ColumnType::Float);
        assert_eq!(zeros.edges(), Some([0.0, 1.0].as_slice()));
    }

    /// Proves that few numbers are values as they are, that rare ones are put aside, and that booleans and timestamps
    /// are shown as such.
    #[test]
    fn numbers_as_values() {
        let few = feature(vec![3.0, 3.0, 5.0, 7.0, 7.0, f64::NAN], &Binning::Quantiles(10), ColumnType::Int);
        assert_eq!(
            (few.shown(0).as_deref(), few.shown(1).as_deref(), few.shown(2)),
            (Some("3"), Some("7"), None)
        );
        assert_eq!((few.code(2), few.code(4), few.code(5)), (Feature::RARE, 1, 2));
        let truth = feature(vec![0.0, 0.0, 1.0, 1.0], &Binning::None, ColumnType::Bool);
        assert_eq!(truth.shown(1).as_deref(), Some("true"));
        let times = feature(vec![0.0, 0.0], &Binning::None, ColumnType::Timestamp);
        assert!(times.shown(0).is_some_and(|text| text.starts_with("1970-01-01")));
    }

    /// Proves that strings are values in order of appearance, without the rare ones.
    #[test]
    fn texts_as_values() {
        let cells = Cells::of_texts(["a", "b", "b", "c", "a"].map(Some).into_iter().chain([None]));
        let column = FrameColumn { name: "x".to_owned(), kind: ColumnType::Text, cells };
        let texts = Feature::of(column, &Binning::None, 2);
        assert_eq!((0..6).map(|row| texts.code(row)).collect::<Vec<_>>(), [0, 1, 1, Feature::RARE, 0, 2]);
        assert_eq!(
            (texts.code_of(Some("b")), texts.code_of(Some("c")), texts.code_of(None)),
            (Some(1), None, Some(2))
        );
    }
}
