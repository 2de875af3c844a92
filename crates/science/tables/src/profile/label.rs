//! The association of a column with the label: a first look that needs no model.
//!
//! | column | label | measure |
//! |---|---|---|
//! | numbers | numbers | Pearson's correlation, -1 to 1 |
//! | numbers | classes | correlation ratio η, 0 to 1 |
//! | strings | classes | Cramér's V with the bias correction of W. Bergsma (2013), 0 to 1 |
//! | strings | numbers | correlation ratio η, 0 to 1 |
//!
//! Booleans are numbers 0 and 1 as a column and classes as a label. A whole-number label is both numbers and, with few
//! values, classes. Rows with either side missing do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type};
use serde::{Deserialize, Serialize};
use trackway_formats::hash::{hash_bytes, hash_number};
use trackway_results::profile::{Association, AssociationMeasure};
use trackway_statistics::Table;

use super::moments::{CoMoments, Moments, sum};
use crate::merge::merge_option;
use crate::read::Texts;

/// The most classes of a label; with more it has none.
pub const MAX_CLASSES: usize = 64;

/// The most different strings of a column that are crossed with the label; with more the column has no measure.
pub const MAX_CROSSED_TEXTS: usize = 512;

/// Marks a row without a class.
const NO_CLASS: u16 = u16::MAX;

/// The label of a chunk's rows.
pub(crate) struct LabelChunk<'l> {
    numbers: Option<ArrayRef>,
    /// A class per row, as an index into the hashes.
    classes: Option<(Vec<u16>, &'l [u64])>,
}

/// The classes met by one accumulator, by hash.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    hashes: Vec<u64>,
    too_many: bool,
}

impl Classes {
    /// The label of a chunk. Classes are numbered in order of appearance.
    pub(crate) fn chunk(&mut self, array: &ArrayRef) -> LabelChunk<'_> {
        let is_number = array.data_type().is_numeric();
        let numbers = is_number.then(|| to_floats(array)).flatten();
        let is_class = !matches!(array.data_type(), DataType::Float64) && !self.too_many;
        let rows = if is_class { self.classes_of(array) } else { None };
        self.too_many |= is_class && rows.is_none();
        LabelChunk { numbers, classes: rows.map(|rows| (rows, self.hashes.as_slice())) }
    }

    fn classes_of(&mut self, array: &ArrayRef) -> Option<Vec<u16>> {
        let hash_of = row_hashes(array)?;
        (0..array.len()).map(|row| hash_of(row).map_or(Some(NO_CLASS), |hash| self.index_of(hash))).collect()
    }

    fn index_of(&mut self, hash: u64) -> Option<u16> {
        let known = self.hashes.iter().position(|known| *known == hash);
        let index = known.or_else(|| {
            self.hashes.push(hash);
            (self.hashes.len() <= MAX_CLASSES).then(|| self.hashes.len() - 1)
        })?;
        u16::try_from(index).ok()
    }
}

/// The hash of a row's value; `None` for types that have no classes.
fn row_hashes(array: &ArrayRef) -> Option<Box<dyn Fn(usize) -> Option<u64> + '_>> {
    if let Some(texts) = Texts::of(array) {
        return Some(Box::new(move |row| texts.get(row).map(|text| hash_bytes(text.as_bytes()))));
    }
    if let DataType::Boolean = array.data_type() {
        let truths = array.as_boolean();
        return Some(Box::new(|row| truths.is_valid(row).then(|| hash_number(u64::from(truths.value(row))))));
    }
    let numbers = array.as_primitive_opt::<arrow::datatypes::Int64Type>()?;
    Some(Box::new(|row| numbers.is_valid(row).then(|| hash_number(numbers.value(row).cast_unsigned()))))
}

/// Numbers and booleans as floats.
fn to_floats(array: &ArrayRef) -> Option<ArrayRef> {
    let is_number = array.data_type().is_numeric() || *array.data_type() == DataType::Boolean;
    is_number.then(|| cast(array, &DataType::Float64).ok()).flatten()
}

/// Numbers per group: for each group's hash, the moments of the numbers.
type Groups = BTreeMap<u64, Moments>;

/// What is kept of a column and the label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabelLink {
    /// Numbers with numbers.
    pairs: Option<CoMoments>,
    /// The column's numbers per class.
    by_class: Option<Groups>,
    /// The label's numbers per text.
    by_text: Option<Groups>,
    /// Rows per text and class.
    crossed: Option<BTreeMap<u64, BTreeMap<u64, u64>>>,
    too_many_classes: bool,
    too_many_texts: bool,
}

impl LabelLink {
    pub(crate) fn observe(link: &mut Option<Self>, array: &ArrayRef, label: &LabelChunk<'_>) {
        if let Some(numbers) = to_floats(array) {
            let link = link.get_or_insert_default();
            if let Some(label) = &label.numbers {
                link.add_pairs(&numbers, label);
            }
            match &label.classes {
                Some((classes, hashes)) => link.add_numbers_by_class(&numbers, classes, hashes),
                None => link.too_many_classes = true,
            }
        } else if let Some(texts) = Texts::of(array) {
            let link = link.get_or_insert_default();
            link.add_texts(&texts, array.len(), label);
        }
        if let Some(link) = link {
            link.limit();
        }
    }

    fn add_pairs(&mut self, numbers: &ArrayRef, label: &ArrayRef) {
        let (xs, ys) = (numbers.as_primitive::<Float64Type>(), label.as_primitive::<Float64Type>());
        let all_valid = xs.null_count() == 0 && ys.null_count() == 0;
        let finite = |values: &[f64]| values.iter().fold(true, |all, value| all & value.is_finite());
        let pairs = if all_valid && finite(xs.values()) && finite(ys.values()) {
            CoMoments::of(xs.values(), ys.values())
        } else {
            let both = xs.iter().zip(ys).filter_map(|(x, y)| Some((x?, y?)));
            let (xs, ys): (Vec<_>, Vec<_>) = both.filter(|(x, y)| x.is_finite() && y.is_finite()).unzip();
            CoMoments::of(&xs, &ys)
        };
        self.pairs.get_or_insert_default().merge(&pairs);
    }

    fn add_numbers_by_class(&mut self, numbers: &ArrayRef, classes: &[u16], hashes: &[u64]) {
        let numbers = numbers.as_primitive::<Float64Type>();
        let middle =
            sum(numbers.values(), |value| if value.is_finite() { value } else { 0.0 }) / numbers.len() as f64;
        let mut sums = vec![Sums::default(); hashes.len()];
        let mut add = |row: usize, value: f64| {
            if let Some(sums) = sums.get_mut(usize::from(classes[row]))
                && value.is_finite()
            {
                sums.add(value - middle);
            }
        };
        match numbers.nulls() {
            None => numbers.values().iter().enumerate().for_each(|(row, value)| add(row, *value)),
            Some(nulls) => nulls.valid_indices().for_each(|row| add(row, numbers.value(row))),
        }
        let groups = self.by_class.get_or_insert_default();
        for (hash, sums) in hashes.iter().zip(sums).filter(|(_, sums)| sums.count > 0) {
            groups.entry(*hash).or_default().merge(&sums.moments(middle));
        }
    }

    fn add_texts(&mut self, texts: &Texts<'_>, rows: usize, label: &LabelChunk<'_>) {
        if self.too_many_texts {
            return;
        }
        let (groups, group_of) = group_texts(texts, rows);
        if groups.len() > MAX_CROSSED_TEXTS {
            self.too_many_texts = true;
            return;
        }
        match &label.classes {
            Some((classes, hashes)) => self.cross(&groups, &group_of, classes, hashes),
            None => self.too_many_classes = true,
        }
        if let Some(label) = &label.numbers {
            let label = label.as_primitive::<Float64Type>();
            let mut sums = vec![Sums::default(); groups.len()];
            for (row, group) in group_of.iter().enumerate() {
                if let Some(sums) = sums.get_mut(*group as usize)
                    && label.is_valid(row)
                    && label.value(row).is_finite()
                {
                    sums.add(label.value(row));
                }
            }
            let by_text = self.by_text.get_or_insert_default();
            for (hash, sums) in groups.iter().zip(sums).filter(|(_, sums)| sums.count > 0) {
                by_text.entry(*hash).or_default().merge(&sums.moments(0.0));
            }
        }
    }

    fn cross(&mut self, groups: &[u64], group_of: &[u32], classes: &[u16], hashes: &[u64]) {
        let mut counts = vec![0u64; groups.len() * hashes.len()];
        for (group, class) in group_of.iter().zip(classes) {
            if (*group as usize) < groups.len() && usize::from(*class) < hashes.len() {
                counts[*group as usize * hashes.len() + usize::from(*class)] += 1;
            }
        }
        let crossed = self.crossed.get_or_insert_default();
        for (group, counts) in groups.iter().zip(counts.chunks(hashes.len().max(1))) {
            let row = crossed.entry(*group).or_default();
            for (class, count) in hashes.iter().zip(counts).filter(|(_, count)| **count > 0) {
                *row.entry(*class).or_default() += count;
            }
        }
    }

    /// Drops what has grown beyond its bound.
    fn limit(&mut self) {
        let texts = self
            .crossed
            .as_ref()
            .map_or(0, BTreeMap::len)
            .max(self.by_text.as_ref().map_or(0, BTreeMap::len));
        self.too_many_texts |= texts > MAX_CROSSED_TEXTS;
        if self.too_many_texts {
            self.by_text = None;
            self.crossed = None;
        }
        self.too_many_classes |= self.by_class.as_ref().is_some_and(|groups| groups.len() > MAX_CLASSES);
        if self.too_many_classes {
            self.by_class = None;
            self.crossed = None;
        }
    }

    /// Changes the hashes of strings of the column and of classes of the label.
    pub(crate) fn rehash(&mut self, texts: &HashMap<u64, u64>, classes: &HashMap<u64, u64>) {
        let text = |hash: u64| texts.get(&hash).copied().unwrap_or(hash);
        let class = |hash: u64| classes.get(&hash).copied().unwrap_or(hash);
        let groups = |groups: Groups, new: &dyn Fn(u64) -> u64| {
            groups.into_iter().map(|(hash, of)| (new(hash), of)).collect()
        };
        self.by_text = self.by_text.take().map(|by_text| groups(by_text, &text));
        self.by_class = self.by_class.take().map(|by_class| groups(by_class, &class));
        self.crossed = self.crossed.take().map(|crossed| {
            let row = |counts: BTreeMap<u64, u64>| {
                counts.into_iter().map(|(hash, count)| (class(hash), count)).collect()
            };
            crossed.into_iter().map(|(hash, counts)| (text(hash), row(counts))).collect()
        });
    }

    pub(crate) fn merge(&mut self, later: Self) {
        merge_option(&mut self.pairs, later.pairs, |known, later| known.merge(&later));
        merge_option(&mut self.by_class, later.by_class, merge_groups);
        merge_option(&mut self.by_text, later.by_text, merge_groups);
        merge_option(&mut self.crossed, later.crossed, |known, later| {
            for (text, classes) in later {
                let row = known.entry(text).or_default();
                classes.into_iter().for_each(|(class, count)| *row.entry(class).or_default() += count);
            }
        });
        self.too_many_classes |= later.too_many_classes;
        self.too_many_texts |= later.too_many_texts;
        self.limit();
    }

    /// The strongest measure that can be taken.
    pub(crate) fn association(&self) -> Option<Association> {
        let pearson = self.pairs.and_then(|pairs| {
            let (value, rows) = (pairs.correlation()?, pairs.count);
            Some(Association { measure: AssociationMeasure::Pearson, value, rows })
        });
        let ratio = |groups: &Option<Groups>| groups.as_ref().and_then(correlation_ratio);
        let found =
            [pearson, ratio(&self.by_class), self.crossed.as_ref().and_then(cramers_v), ratio(&self.by_text)];
        // Pearson's first, so that two equal measures are reported with their sign.
        found
            .into_iter()
            .flatten()
            .reduce(|best, next| if next.value.abs() > best.value.abs() + 1e-9 { next } else { best })
    }
}

fn merge_groups(known: &mut Groups, later: Groups) {
    for (group, moments) in later {
        known.entry(group).or_default().merge(&moments);
    }
}

/// The groups of a chunk's strings by hash, and each row's group (`u32::MAX` if the string is missing).
fn group_texts(texts: &Texts<'_>, rows: usize) -> (Vec<u64>, Vec<u32>) {
    match texts {
        Texts::Dictionary(dictionary, values) => {
            let hashes = (0..values.len()).map(|index| hash_bytes(values.value(index).as_bytes())).collect();
            let keys = dictionary.keys().as_any().downcast_ref::<arrow::array::PrimitiveArray<Int32Type>>();
            let keys = keys.expect("the keys are 32 bits wide");
            let group = |key: Option<i32>| key.map_or(u32::MAX, i32::cast_unsigned);
            (hashes, keys.iter().map(group).collect())
        }
        Texts::Plain(_) => {
            let mut hashes = Vec::new();
            let mut index: HashMap<u64, u32> = HashMap::new();
            let mut group = |row: usize| {
                let Some(text) = texts.get(row) else { return u32::MAX };
                let hash = hash_bytes(text.as_bytes());
                if hashes.len() > MAX_CROSSED_TEXTS {
                    return u32::MAX;
                }
                *index.entry(hash).or_insert_with(|| {
                    hashes.push(hash);
                    hashes.len() as u32 - 1
                })
            };
            let group_of = (0..rows).map(&mut group).collect();
            (hashes, group_of)
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Sums {
    #[inline]
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn moments(&self, middle: f64) -> Moments {
        let mean = self.sum / self.count as f64;
        let m2 = (self.squares - mean * self.sum).max(0.0);
        Moments { count: self.count, mean: mean + middle, m2, m3: 0.0, m4: 0.0 }
    }
}

/// η: the root of the variance between groups over all variance.
fn correlation_ratio(groups: &Groups) -> Option<Association> {
    let mut all = Moments::default();
    groups.values().for_each(|moments| all.merge(moments));
    let within: f64 = groups.values().map(|moments| moments.m2).sum();
    let value = ((all.m2 - within) / all.m2).max(0.0).sqrt();
    let (measure, rows) = (AssociationMeasure::CorrelationRatio, all.count);
    (all.m2 > 0.0).then_some(Association { measure, value, rows })
}

/// Cramér's V with Bergsma's correction: about 0 for independent columns however many values they have.
fn cramers_v(crossed: &BTreeMap<u64, BTreeMap<u64, u64>>) -> Option<Association> {
    let classes: BTreeSet<u64> = crossed.values().flat_map(BTreeMap::keys).copied().collect();
    let count = |row: &BTreeMap<u64, u64>, class| row.get(class).copied().unwrap_or(0) as f64;
    let counts = |row| classes.iter().map(|class| count(row, class)).collect();
    let table = Table::new(&crossed.values().map(counts).collect::<Vec<Vec<f64>>>());
    let value = table.cramers_v()?;
    let measure = AssociationMeasure::CramersV;
    value.is_finite().then_some(Association { measure, value, rows: table.sum() as u64 })
}
