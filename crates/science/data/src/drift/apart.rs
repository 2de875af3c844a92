//! Columns that are set apart: what names a row, says when it came about, or differs in nearly every row has other values
//! in any other data, and none of that is drift.
//!
//! Identifiers are recognised as `leakage.identifiers` does it ([`crate::values::identifier`]), here by two profiles alone.

use trackway_results::drift::{ApartReason, SetApart};
use trackway_tables::ColumnType;
use trackway_tables::profile::{ColumnProfile, ColumnSummary, Value};

use super::KnownColumns;
use crate::values::identifier::{
    DENSE, HASH_LETTERS_MIN, IdentifierEvidence, ROWS_MIN, are_few, because, has_form, is_identifier_name,
    words_of,
};

/// Words of which one alone names an identifier, also of one that repeats.
const SURE_WORDS: [&str; 6] = ["id", "ids", "uuid", "guid", "rowid", "identifier"];
/// A repeating identifier has at least so many values; with fewer it is a category.
const REPEATED_VALUES_MIN: u64 = 50;
/// Texts of which this part are different are no categories.
const FREE_TEXT_MIN: f64 = 0.9;
/// Words of the names of times, and those that make of them a property of a person or thing.
const TIME_WORDS: [&str; 13] = [
    "time", "times", "timestamp", "datetime", "date", "at", "ts", "epoch", "created", "updated", "modified",
    "unixtime", "when",
];
const BIRTH_WORDS: [&str; 6] = ["birth", "birthday", "birthdate", "born", "dob", "expiry"];
/// Seconds, milliseconds, microseconds and nanoseconds since 1970 of the years 1973 to 2286, and days as `YYYYMMDD`.
const EPOCHS: [(f64, f64); 5] =
    [(1e8, 1e10), (1e11, 1e13), (1e14, 1e16), (1e17, 1e19), (19_000_101.0, 21_991_231.0)];
/// Times that fall from row to row in at most this part of the steps rise.
const FALLS_MAX: f64 = 0.01;
/// Estimates of how many values there are may be off by so many standard errors.
const STANDARD_ERRORS: f64 = 4.0;
/// Texts of a column that are looked at for a form.
const TEXTS_MAX: usize = 32;

/// On request.
pub(super) fn skipped(name: &str) -> SetApart {
    SetApart { name: name.to_owned(), reason: ApartReason::Skipped, why: "skipped on request".to_owned() }
}

/// By its role, where that is known.
pub(super) fn known(name: &str, known: KnownColumns<'_>) -> Option<SetApart> {
    let apart = |reason, why: &str| SetApart { name: name.to_owned(), reason, why: why.to_owned() };
    let is = |role: Option<&str>| role == Some(name);
    match (is(known.time), is(known.group)) {
        (true, _) => Some(apart(ApartReason::Time, "named as the time column")),
        (false, true) => Some(apart(ApartReason::Identifier, "named as the group column")),
        (false, false) => None,
    }
}

/// By the values of both sides.
pub(super) fn seen(before: &ColumnProfile, after: &ColumnProfile) -> Option<SetApart> {
    let sides = [Side::of(before), Side::of(after)];
    let found = identifier(&sides).map(|why| (ApartReason::Identifier, why));
    let found = found.or_else(|| Some((ApartReason::Time, time(&sides)?)));
    let found = found.or_else(|| Some((ApartReason::FreeText, free_text(&sides)?)));
    found.map(|(reason, why)| SetApart { name: before.name.clone(), reason, why })
}

/// A column of one side.
struct Side<'c> {
    column: &'c ColumnProfile,
    summary: ColumnSummary,
    /// Cells with a value.
    known: u64,
}

impl<'c> Side<'c> {
    fn of(column: &'c ColumnProfile) -> Self {
        let known = column.value_count().saturating_sub(column.nan_count());
        Self { column, summary: column.summary(), known }
    }

    fn has_few_rows(&self) -> bool {
        self.known < ROWS_MIN as u64
    }

    /// Steps from one number to the next, and how many of them rise and fall.
    fn steps(&self) -> Option<(u64, u64, u64)> {
        let order = self.summary.order.as_ref()?;
        Some((order.rises + order.falls + order.ties, order.rises, order.falls))
    }

    /// Whether each number is larger than the one before, or each smaller.
    fn is_strictly_ordered(&self) -> bool {
        self.steps().is_some_and(|(all, rises, falls)| all > 0 && (rises == all || falls == all))
    }

    fn hardly_falls(&self) -> bool {
        self.steps().is_some_and(|(all, rises, falls)| rises > 0 && falls as f64 <= all as f64 * FALLS_MAX)
    }

    /// Whether all values are different, but for a few.
    fn is_unique(&self) -> bool {
        let is_sample = self.steps().is_some_and(|(all, ..)| all + 1 < self.known);
        if is_sample || self.known < 2 {
            return self.is_strictly_ordered();
        }
        match self.summary.distinct_is_exact {
            true => are_few(self.known.saturating_sub(self.summary.distinct_estimate), self.known),
            false => self.differs_in(1.0 - STANDARD_ERRORS * self.summary.distinct_error),
        }
    }

    /// Whether so large a part of the values are different, and none of them repeats often.
    fn differs_in(&self, part: f64) -> bool {
        let most = self.column.top_values(1).first().map_or(0, |it| it.count);
        let is_flat = self.summary.distinct_is_exact || most <= 1;
        is_flat && self.summary.distinct_estimate as f64 >= self.known as f64 * part
    }

    fn range(&self) -> Option<(f64, f64)> {
        let ends = self.column.quantile_sketch()?.at(&[0.0, 1.0])?;
        Some((*ends.first()?, *ends.last()?))
    }

    fn filled(&self) -> Option<f64> {
        let (low, high) = self.range()?;
        Some((self.known as f64 / (high - low + 1.0)).min(1.0))
    }

    /// Whether its texts are of one form: those that are kept, else by their lengths and shapes.
    fn has_form(&self) -> bool {
        let text = |value: Value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        };
        let texts: Vec<String> =
            self.column.top_values(TEXTS_MAX).into_iter().filter_map(|it| text(it.value)).collect();
        if !texts.is_empty() {
            return has_form(&texts);
        }
        let shapes = self.column.shapes();
        let is_one_shape =
            matches!(shapes.as_slice(), [(shape, _)] if shape.contains('9') && !shape.contains(' '));
        let is_long = |min: u64, max: u64| min == max && min >= HASH_LETTERS_MIN as u64;
        let are_words = shapes.iter().all(|(shape, _)| !shape.contains(' '));
        is_one_shape || are_words && self.summary.lengths.as_ref().is_some_and(|it| is_long(it.min, it.max))
    }

    /// What shows that it names a row.
    fn evidence(&self) -> Vec<IdentifierEvidence> {
        let mut evidence = Vec::new();
        let is_named = match self.column.kind {
            ColumnType::Int | ColumnType::Text => is_identifier_name(&self.column.name),
            // Whole numbers are read as numbers where one is missing.
            ColumnType::Float => is_surely_named(&self.column.name),
            _ => return evidence,
        };
        if !self.is_unique() {
            return evidence;
        }
        evidence.extend(is_named.then_some(IdentifierEvidence::Name));
        if self.has_few_rows() {
            return evidence;
        }
        match self.column.kind {
            ColumnType::Text => evidence.extend(self.has_form().then_some(IdentifierEvidence::Form)),
            ColumnType::Int => {
                let is_dense = self.filled().is_some_and(|filled| filled >= DENSE);
                evidence.extend(is_dense.then_some(IdentifierEvidence::Dense));
                evidence.extend(self.is_strictly_ordered().then_some(IdentifierEvidence::Ordered));
            }
            _ => {}
        }
        evidence
    }

    /// Whether it repeats and is named like an identifier all the same: of a customer, a household.
    fn is_repeated(&self) -> bool {
        is_surely_named(&self.column.name) && self.summary.distinct_estimate >= REPEATED_VALUES_MIN
    }
}

fn is_surely_named(name: &str) -> bool {
    words_of(name).iter().any(|word| SURE_WORDS.contains(&word.as_str()))
}

/// Why it is an identifier on both sides; of too few rows to see it in, the other side's evidence is enough.
fn identifier(sides: &[Side<'_>; 2]) -> Option<String> {
    let evidence = [sides[0].evidence(), sides[1].evidence()];
    let agrees =
        |side: usize| !evidence[side].is_empty() || sides[side].has_few_rows() && sides[side].is_unique();
    let of = (0..2).find(|side| !evidence[*side].is_empty());
    if let Some(of) = of.filter(|of| agrees(1 - of)) {
        return Some(format!(
            "every row has a different value ({})",
            because(&evidence[of], sides[of].filled())
        ));
    }
    let kinds = [ColumnType::Int, ColumnType::Float, ColumnType::Text];
    let is_repeated = sides.iter().all(|side| kinds.contains(&side.column.kind))
        && sides.iter().any(Side::is_repeated)
        && sides.iter().all(|side| side.is_repeated() || side.has_few_rows());
    is_repeated.then(|| {
        let of = sides.iter().find(|side| side.is_repeated()).unwrap_or(&sides[0]);
        let about = if of.summary.distinct_is_exact { "" } else { "about " };
        format!("named like an identifier, with {about}{} values", of.summary.distinct_estimate)
    })
}

/// Why it says when a row came about.
fn time(sides: &[Side<'_>; 2]) -> Option<String> {
    let [before, after] = sides;
    let words = words_of(&before.column.name);
    let has = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    let is_named = has(&TIME_WORDS) && !has(&BIRTH_WORDS);
    let is_ordered = sides.iter().all(|side| side.hardly_falls() || side.has_few_rows())
        && sides.iter().any(|side| side.hardly_falls() && !side.has_few_rows());
    let is_of_kind = |kinds: &[ColumnType]| sides.iter().all(|side| kinds.contains(&side.column.kind));
    let is_shown = if is_of_kind(&[ColumnType::Timestamp]) {
        is_named || is_ordered || is_another_period(before, after)
    } else {
        is_of_kind(&[ColumnType::Int, ColumnType::Float])
            && is_named
            && (is_ordered || sides.iter().all(is_epoch))
    };
    is_shown.then(|| {
        let reasons = [
            is_named.then_some("its name"),
            is_ordered.then_some("its order"),
            is_another_period(before, after).then_some("another period on each side"),
        ];
        let reasons: Vec<&str> = reasons.into_iter().flatten().collect();
        format!("says when a row came about ({})", reasons.join(", "))
    })
}

fn is_epoch(side: &Side<'_>) -> bool {
    side.range().is_some_and(|(low, high)| EPOCHS.iter().any(|(from, to)| *from <= low && high <= *to))
}

/// Whether nearly all of one side is before nearly all of the other.
fn is_another_period(before: &Side<'_>, after: &Side<'_>) -> bool {
    let ends = |side: &Side<'_>| {
        let ends = side.column.quantile_sketch()?.at(&[0.05, 0.95])?;
        Some((*ends.first()?, *ends.last()?))
    };
    let Some(((low, high), (low_now, high_now))) = ends(before).zip(ends(after)) else { return false };
    low_now > high || high_now < low
}

/// Why its texts are no categories.
fn free_text(sides: &[Side<'_>; 2]) -> Option<String> {
    let is_text = |side: &Side<'_>| side.column.kind == ColumnType::Text && side.differs_in(FREE_TEXT_MIN);
    let is_shown = sides.iter().all(is_text) && !sides.iter().all(Side::has_few_rows);
    is_shown.then(|| {
        let [before, _] = sides;
        let about = if before.summary.distinct_is_exact { "" } else { "about " };
        format!(
            "nearly every row has another text ({about}{} in {} rows)",
            before.summary.distinct_estimate, before.known
        )
    })
}
