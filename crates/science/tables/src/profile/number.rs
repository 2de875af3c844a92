//! Numbers and times of a column.

use arrow::array::{Array, PrimitiveArray};
use arrow::datatypes::ArrowPrimitiveType;
use serde::{Deserialize, Serialize};
use trackway_core::{Rng, SplitMix64};
use trackway_formats::hash::hash_number;
use trackway_results::profile::Order;

use super::moments::{Moments, bounds};
use super::quantiles::Quantiles;
use super::values::ValueCounts;

/// What the 64 bits of a number mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NumberForm {
    Int,
    Unsigned,
    Float,
    /// Microseconds since 1970.
    Time,
}

/// The order of values.
fn order_of(values: &[f64]) -> Order {
    let (mut rises, mut falls) = (0, 0);
    for (value, next) in values.iter().zip(values.iter().skip(1)) {
        rises += u64::from(next > value);
        falls += u64::from(next < value);
    }
    let bits = |value: Option<&f64>| value.map(|value| value.to_bits());
    let steps = values.len().saturating_sub(1) as u64;
    Order {
        rises,
        falls,
        ties: steps - rises - falls,
        first: bits(values.first()),
        last: bits(values.last()),
    }
}

/// Adds the order of later values.
fn merge_order(order: &mut Order, later: &Order) {
    if let (Some(last), Some(first)) = (order.last, later.first) {
        let (last, first) = (f64::from_bits(last), f64::from_bits(first));
        order.rises += u64::from(first > last);
        order.falls += u64::from(first < last);
        order.ties += u64::from(first == last);
    }
    order.rises += later.rises;
    order.falls += later.falls;
    order.ties += later.ties;
    order.first = order.first.or(later.first);
    order.last = later.last.or(order.last);
}

/// What the numbers of a column are like. Everything but the counts of NaN and infinity is about finite numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberProfile {
    pub(crate) form: NumberForm,
    pub(crate) moments: Moments,
    pub(crate) quantiles: Quantiles,
    pub(crate) nan: u64,
    pub(crate) positive_infinite: u64,
    pub(crate) negative_infinite: u64,
    pub(crate) zeros: u64,
    pub(crate) negatives: u64,
    /// The 64 bits of the smallest and the largest number.
    pub(crate) bounds: Option<(u64, u64)>,
    pub(crate) order: Order,
}

/// How closely the numbers of a column are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closeness {
    /// In the quantiles one of so many neighbours represents all; a power of two.
    pub(crate) quantile_step: usize,
    /// Of so many neighbours one is looked at. With 1 all are; with more, different values are counted only while they
    /// are few.
    pub(crate) row_step: usize,
}

/// Buffers that live through a pass, so that no chunk allocates.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    floats: Vec<f64>,
    pub(crate) key_counts: Vec<u64>,
}

/// A number as it is in an Arrow array.
pub(crate) trait Native: Copy + PartialOrd {
    fn to_f64(self) -> f64;
    fn to_bits(self) -> u64;
    #[inline]
    fn is_nan(self) -> bool {
        false
    }
}

impl Native for i64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline]
    fn to_bits(self) -> u64 {
        self.cast_unsigned()
    }
}

impl Native for u64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline]
    fn to_bits(self) -> u64 {
        self
    }
}

impl Native for f64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    /// Both zeros are the same value.
    #[inline]
    fn to_bits(self) -> u64 {
        (self + 0.0).to_bits()
    }
    #[inline]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

impl NumberProfile {
    pub(crate) fn new(form: NumberForm) -> Self {
        Self {
            form,
            moments: Moments::default(),
            quantiles: Quantiles::default(),
            nan: 0,
            positive_infinite: 0,
            negative_infinite: 0,
            zeros: 0,
            negatives: 0,
            bounds: None,
            order: Order::default(),
        }
    }

    /// Adds an array's values that are not null, in the given detail.
    pub(crate) fn observe<T>(
        &mut self,
        array: &PrimitiveArray<T>,
        form: NumberForm,
        values: &mut ValueCounts,
        scratch: &mut Scratch,
        closeness: Closeness,
    ) where
        T: ArrowPrimitiveType,
        T::Native: Native,
    {
        // Whole numbers that are not negative have the same bits in both forms.
        if (self.form, form) == (NumberForm::Int, NumberForm::Unsigned) {
            self.form = form;
        }
        scratch.floats.clear();
        if closeness.row_step > 1 {
            let chosen = self.sample(array, closeness.row_step);
            self.take(&chosen, values.is_exact().then_some(values), &mut scratch.floats);
            self.add_finite(&scratch.floats, closeness.quantile_step);
            return;
        }
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => self.take(array.values(), Some(values), &mut scratch.floats),
            Some(nulls) => {
                let valid: Vec<T::Native> = nulls.valid_indices().map(|row| array.value(row)).collect();
                self.take(&valid, Some(values), &mut scratch.floats);
            }
        }
        self.add_finite(&scratch.floats, closeness.quantile_step);
    }

    /// One random row of each `step` neighbouring rows, unless it has no number. NaN are counted in every row: they are
    /// missing values, whose fraction is compared.
    fn sample<T>(&mut self, array: &PrimitiveArray<T>, step: usize) -> Vec<T::Native>
    where
        T: ArrowPrimitiveType,
        T::Native: Native,
    {
        let values = array.values();
        self.nan += match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => values.iter().map(|value| u64::from(value.is_nan())).sum::<u64>(),
            Some(nulls) => nulls.valid_indices().map(|row| u64::from(values[row].is_nan())).sum(),
        };
        let first = values.first().map_or(0, |value| value.to_bits());
        let mut random = SplitMix64::new(hash_number(first ^ self.quantiles.count()));
        let blocks = (0..values.len()).step_by(step);
        let rows = blocks.map(|start| {
            let width = step.min(values.len() - start);
            start + random.next_u64() as usize % width
        });
        let chosen = rows.filter(|row| array.is_valid(*row)).map(|row| values[row]);
        chosen.filter(|value| !value.is_nan()).collect()
    }

    /// Counts values, if requested, and puts the finite ones into `floats`.
    fn take<N: Native>(
        &mut self,
        natives: &[N],
        mut values: Option<&mut ValueCounts>,
        floats: &mut Vec<f64>,
    ) {
        floats.extend(natives.iter().map(|native| native.to_f64()));
        let all_finite = floats.iter().fold(true, |all, value| all & value.is_finite());
        if all_finite {
            if let Some(values) = values {
                natives.iter().for_each(|native| values.add_number(native.to_bits(), 1));
            }
            self.widen_bounds(natives.iter().copied());
            return;
        }
        for native in natives {
            let value = native.to_f64();
            self.nan += u64::from(value.is_nan());
            self.positive_infinite += u64::from(value == f64::INFINITY);
            self.negative_infinite += u64::from(value == f64::NEG_INFINITY);
            if let Some(values) = values.as_deref_mut().filter(|_| !value.is_nan()) {
                values.add_number(native.to_bits(), 1);
            }
        }
        self.widen_bounds(natives.iter().copied().filter(|native| native.to_f64().is_finite()));
        floats.retain(|value| value.is_finite());
    }

    fn widen_bounds<N: Native>(&mut self, mut natives: impl Iterator<Item = N>) {
        let Some(first) = natives.next() else { return };
        let (low, high) = natives.fold((first, first), |(low, high), value| {
            (if value < low { value } else { low }, if value > high { value } else { high })
        });
        self.merge_bounds(Some((low.to_bits(), high.to_bits())));
    }

    fn merge_bounds(&mut self, later: Option<(u64, u64)>) {
        let Some((low, high)) = later else { return };
        let form = self.form;
        self.bounds = Some(self.bounds.map_or((low, high), |(known_low, known_high)| {
            (
                lesser(form, known_low, low),
                if lesser(form, known_high, high) == high { known_high } else { high },
            )
        }));
    }

    fn add_finite(&mut self, floats: &[f64], step: usize) {
        if floats.is_empty() {
            return;
        }
        self.moments.merge(&Moments::of(floats));
        self.quantiles.add(floats, bounds(floats), step);
        let (mut zeros, mut negatives) = (0, 0);
        for value in floats {
            zeros += u64::from(*value == 0.0);
            negatives += u64::from(*value < 0.0);
        }
        self.zeros += zeros;
        self.negatives += negatives;
        merge_order(&mut self.order, &order_of(floats));
    }

    /// The number that 64 bits encode.
    pub(crate) fn to_float(form: NumberForm, bits: u64) -> f64 {
        match form {
            NumberForm::Int | NumberForm::Time => bits.cast_signed() as f64,
            NumberForm::Unsigned => bits as f64,
            NumberForm::Float => f64::from_bits(bits),
        }
    }

    /// From now on its numbers are floats.
    pub(crate) fn into_floats(mut self) -> Self {
        let form = std::mem::replace(&mut self.form, NumberForm::Float);
        let to_bits = |bits| Self::to_float(form, bits).to_bits();
        self.bounds = self.bounds.map(|(low, high)| (to_bits(low), to_bits(high)));
        self
    }

    /// Adds the numbers of later rows, which have the same form.
    pub(crate) fn merge(&mut self, later: Self) {
        if later.form == NumberForm::Unsigned {
            self.form = later.form;
        }
        self.moments.merge(&later.moments);
        self.quantiles.merge(later.quantiles);
        self.nan += later.nan;
        self.positive_infinite += later.positive_infinite;
        self.negative_infinite += later.negative_infinite;
        self.zeros += later.zeros;
        self.negatives += later.negatives;
        self.merge_bounds(later.bounds);
        merge_order(&mut self.order, &later.order);
    }
}

/// The bits of the smaller number.
fn lesser(form: NumberForm, one: u64, other: u64) -> u64 {
    let one_is_less = match form {
        NumberForm::Int | NumberForm::Time => one.cast_signed() <= other.cast_signed(),
        NumberForm::Unsigned => one <= other,
        NumberForm::Float => f64::from_bits(one) <= f64::from_bits(other),
    };
    if one_is_less { one } else { other }
}
