//! Two sources read their columns of one name alike.

use super::tally::Tally;
use super::{FileKind, Source};
use crate::types::infer::{Form, Style, TextReason};
use crate::types::{Column, ColumnType};

/// Gives columns that both sources have one type where the values of one side are kept as they are written and those of the
/// other were taken for numbers or dates, so that equal values are equal on both sides; dates whose order one side does not
/// show have that of the other. Of the columns that `is_wanted`; whether anything changed.
pub fn agree(one: &mut Source, other: &mut Source, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    let has_changed = one.agree_with(other, is_wanted);
    other.agree_with(one, is_wanted) || has_changed
}

impl Source {
    /// Takes over what the other side shows.
    fn agree_with(&mut self, other: &Self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        let mut has_changed = false;
        for index in 0..self.columns.len() {
            let name = &self.columns[index].name;
            if !is_wanted(name) {
                continue;
            }
            let Some(there) = other.columns.iter().position(|it| it.name == *name) else { continue };
            let (here, other_kind) =
                (self.tallies[index].decide(self.string_limit), other.columns[there].kind);
            let is_ordered = other_kind == ColumnType::Timestamp
                && matches!(other.tallies[there].style(other_kind), Style::Day | Style::Month);
            if here.kept == Some(TextReason::Ambiguous) && is_ordered {
                self.tallies[index].merge(&other.tallies[there]);
                self.columns[index].kind = self.tallies[index].decide(self.string_limit).kind;
                has_changed = true;
            } else if other.is_text_of_values(there) && self.is_of_texts(index) {
                self.columns[index].kind = ColumnType::Text;
                self.tallies[index] = Tally::certain(Some(Form::Text));
                has_changed = true;
            }
        }
        has_changed
    }

    /// Whether a column is text only because its numbers or dates are kept as they are written, or because a file with types says
    /// that it is.
    fn is_text_of_values(&self, index: usize) -> bool {
        let stored = || self.files.iter().any(|file| file.stores_as_text(&self.columns[index].name));
        self.columns[index].kind == ColumnType::Text
            && (self.tallies[index].decide(self.string_limit).kept.is_some() || stored())
    }

    /// Whether a column holds numbers, dates or booleans that a text file writes, or numbers that another file stores exactly.
    fn is_of_texts(&self, index: usize) -> bool {
        let Column { name, kind } = &self.columns[index];
        match kind {
            ColumnType::Int => true,
            ColumnType::Float | ColumnType::Bool | ColumnType::Timestamp => {
                self.files.iter().all(|file| !matches!(file.kind, FileKind::Parquet(_)))
                    || self.stored_type(name).is_some_and(|stored| stored.is_decimal())
            }
            _ => false,
        }
    }
}
