//! Everything about one column, as it grows and as it is stored.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use serde::{Deserialize, Serialize};

use super::label::{LabelChunk, LabelLink};
use super::number::{Closeness, NumberForm, NumberProfile, Scratch};
use super::shown::shown;
use super::text::TextProfile;
use super::values::ValueCounts;
use crate::merge::merge_option;
use crate::read::{CellFaults, Texts, merge_faults};
use crate::types::{Column, ColumnType};

/// The profile of one column. Its statistics are read from [`ColumnProfile::summary`]; two of them are added by
/// [`super::Profile::merge`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnProfile {
    /// The column's name.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// Rows, missing cells and misfits among them.
    pub rows: u64,
    /// Cells without a value. Misfits hold something and are not among them.
    pub null_count: u64,
    /// Misfits, strings for missing values, rows of files without this column.
    pub faults: CellFaults,
    /// Bytes of the cells in memory.
    pub size_bytes: u64,
    pub(super) numbers: Option<NumberProfile>,
    pub(super) texts: Option<TextProfile>,
    /// By value: of numbers, strings and booleans (0 and 1).
    pub(super) values: Option<ValueCounts>,
    pub(super) label: Option<LabelLink>,
}

impl ColumnProfile {
    pub(super) fn new(column: &Column) -> Self {
        Self { name: column.name.clone(), kind: column.kind, ..Self::default() }
    }

    /// Adds the cells of a chunk. Cells with the given faults are null in the array, but not missing.
    pub(super) fn observe(
        &mut self,
        array: &ArrayRef,
        faults: &CellFaults,
        label: Option<&LabelChunk<'_>>,
        scratch: &mut Scratch,
        closeness: Closeness,
    ) {
        self.rows += array.len() as u64;
        self.null_count += (array.logical_null_count() as u64).saturating_sub(faults.misfits);
        merge_faults(&mut self.faults, faults.clone());
        self.size_bytes += array.get_array_memory_size() as u64;
        match array.data_type() {
            DataType::Int64 => {
                self.numbers(array.as_primitive::<Int64Type>(), NumberForm::Int, scratch, closeness)
            }
            DataType::UInt64 => {
                self.numbers(array.as_primitive::<UInt64Type>(), NumberForm::Unsigned, scratch, closeness)
            }
            DataType::Float64 => {
                self.numbers(array.as_primitive::<Float64Type>(), NumberForm::Float, scratch, closeness)
            }
            DataType::Timestamp(_, _) => {
                self.numbers(
                    array.as_primitive::<TimestampMicrosecondType>(),
                    NumberForm::Time,
                    scratch,
                    closeness,
                );
            }
            DataType::Boolean => self.truths(array.as_boolean()),
            _ => {
                let Some(texts) = Texts::of(array) else { return };
                let values = self.values.get_or_insert_with(ValueCounts::of_texts);
                self.texts.get_or_insert_default().observe(&texts, values, &mut scratch.key_counts);
            }
        }
        if let Some(label) = label {
            LabelLink::observe(&mut self.label, array, label);
        }
    }

    fn numbers<T>(
        &mut self,
        array: &arrow::array::PrimitiveArray<T>,
        form: NumberForm,
        scratch: &mut Scratch,
        closeness: Closeness,
    ) where
        T: arrow::datatypes::ArrowPrimitiveType,
        T::Native: super::number::Native,
    {
        let is_float = form == NumberForm::Float;
        let values = self.values.get_or_insert_with(|| {
            if is_float { ValueCounts::of_floats() } else { ValueCounts::of_numbers() }
        });
        self.numbers
            .get_or_insert_with(|| NumberProfile::new(form))
            .observe(array, form, values, scratch, closeness);
    }

    fn truths(&mut self, array: &BooleanArray) {
        let values = self.values.get_or_insert_with(ValueCounts::of_numbers);
        for (number, count) in [(0, array.false_count()), (1, array.true_count())] {
            if count > 0 {
                values.add_number(number, count as u64);
            }
        }
    }

    /// Adds a profile of the same column over later rows. Where types differ, statistics of both kinds are kept.
    pub(super) fn merge(&mut self, mut later: Self) {
        self.agree_with(&mut later);
        self.kind = self.kind.join(later.kind);
        self.rows += later.rows;
        self.null_count += later.null_count;
        merge_faults(&mut self.faults, later.faults);
        self.size_bytes += later.size_bytes;
        merge_option(&mut self.numbers, later.numbers, NumberProfile::merge);
        merge_option(&mut self.texts, later.texts, TextProfile::merge);
        merge_option(&mut self.values, later.values, ValueCounts::merge);
        merge_option(&mut self.label, later.label, LabelLink::merge);
    }

    /// Gives both profiles the same form of numbers and the same kind of values: whole numbers become floats if one
    /// side has floats, and values strings if one side has strings.
    fn agree_with(&mut self, later: &mut Self) {
        let is_text = |column: &Self| column.values.as_ref().is_some_and(ValueCounts::is_texts);
        if is_text(self) || is_text(later) {
            self.values_to_texts();
            later.values_to_texts();
        }
        let form = |column: &Self| column.numbers.as_ref().map(|numbers| numbers.form);
        let is_whole = |form| matches!(form, NumberForm::Int | NumberForm::Unsigned);
        if let (Some(one), Some(other)) = (form(self), form(later))
            && one != other
            && !(is_whole(one) && is_whole(other))
        {
            self.numbers_to_floats(one);
            later.numbers_to_floats(other);
        }
    }

    fn numbers_to_floats(&mut self, form: NumberForm) {
        self.numbers = self.numbers.take().map(NumberProfile::into_floats);
        let to_float = |bits| NumberProfile::to_float(form, bits);
        self.values = self.values.take().map(|values| values.into_floats(to_float));
    }

    fn values_to_texts(&mut self) {
        let form = self.numbers.as_ref().map(|numbers| numbers.form);
        let to_text = |bits| shown(form, bits).to_string();
        self.values = self.values.take().map(|values| values.into_texts(to_text));
    }

    /// Cells that hold a value of the column's type.
    #[must_use]
    pub fn value_count(&self) -> u64 {
        self.rows - self.null_count - self.faults.misfits
    }
}
