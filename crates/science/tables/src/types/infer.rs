//! Column types from values.

use trackway_results::reading::ColumnType;

use crate::types::decimal::{GROUP_DIGITS, unsigned_part, with_point};
use crate::types::times::{FirstOfDate, orders_of, parse_timestamp};

/// What one value shows about the type of its column. What a column is follows from the forms of all its values
/// together, whatever their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// `true` or `false`.
    Bool,
    /// A whole number from 0 on that 64 bits with a sign hold, and a 64-bit float too.
    Whole,
    /// One below 0.
    Negative,
    /// A whole number from 2⁶³ on that 64 bits hold, and a 64-bit float too.
    Unsigned,
    /// As [`Form::Whole`], but a float would round it.
    LongWhole,
    /// As [`Form::Negative`], but a float would round it.
    LongNegative,
    /// As [`Form::Unsigned`], but a float would round it.
    LongUnsigned,
    /// Any other number.
    Float,
    /// A number of more digits than 64 bits hold: only its digits are what it is.
    Digits,
    /// Digits with zeros in front, or a telephone number (`+49…`): as a number they would be another value.
    Code,
    /// A date that begins with its year, with or without a time.
    Time,
    /// A date that exists only with the day first.
    Day,
    /// A date that exists only with the month first.
    Month,
    /// A date that exists in both orders.
    EitherFirst,
    /// A number with a decimal comma.
    DecimalComma,
    /// A number with a comma before three digits: of decimals, or of thousands.
    UnclearComma,
    /// Anything else written out.
    Text,
    /// Bytes.
    Binary,
    List,
    /// A nested object.
    Object,
    /// Values of kinds that have no type in common.
    Mixed,
}

impl Form {
    /// The type of a column of such values only.
    pub(crate) fn kind(self) -> ColumnType {
        match self {
            Self::Bool => ColumnType::Bool,
            Self::Float => ColumnType::Float,
            Self::Time | Self::Day | Self::Month => ColumnType::Timestamp,
            Self::Binary => ColumnType::Binary,
            Self::List => ColumnType::List,
            Self::Object => ColumnType::Object,
            Self::Mixed => ColumnType::Mixed,
            Self::Digits | Self::Code | Self::EitherFirst => ColumnType::Text,
            form if form.is_text() => ColumnType::Text,
            _ => ColumnType::Int,
        }
    }

    /// The form of the values of a column whose type is given; `None` where it has no value.
    pub(crate) fn of_kind(kind: ColumnType) -> Option<Self> {
        Some(match kind {
            ColumnType::Null => return None,
            ColumnType::Bool => Self::Bool,
            ColumnType::Int => Self::Whole,
            ColumnType::Float => Self::Float,
            ColumnType::Timestamp => Self::Time,
            ColumnType::Text => Self::Text,
            ColumnType::Binary => Self::Binary,
            ColumnType::List => Self::List,
            ColumnType::Object => Self::Object,
            ColumnType::Mixed => Self::Mixed,
        })
    }

    /// Whether it is written as a number is.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        self.is_whole() || matches!(self, Self::Float | Self::Digits | Self::Code)
    }

    /// Whether it is written as a date is.
    #[must_use]
    pub fn is_date(self) -> bool {
        matches!(self, Self::Time | Self::Day | Self::Month | Self::EitherFirst)
    }

    /// Whether it is written with a comma as a number is.
    pub(crate) fn is_comma(self) -> bool {
        matches!(self, Self::DecimalComma | Self::UnclearComma)
    }

    /// Whether it is a string where numbers, timestamps or booleans are expected.
    pub(crate) fn is_text(self) -> bool {
        self.is_comma() || self == Self::Text
    }

    /// Whether it is written as a whole number that 64 bits hold.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::Negative | Self::Unsigned) || self.is_long()
    }

    /// Whether a 64-bit float would round it.
    fn is_long(self) -> bool {
        matches!(self, Self::LongWhole | Self::LongNegative | Self::LongUnsigned)
    }

    fn is_below_zero(self) -> bool {
        matches!(self, Self::Negative | Self::LongNegative)
    }

    fn is_unsigned(self) -> bool {
        matches!(self, Self::Unsigned | Self::LongUnsigned)
    }
}

/// How the values of a type are written, or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Usual,
    /// Whole numbers without a sign: up to 2⁶⁴ − 1.
    Unsigned,
    /// Dates with the day before the month.
    Day,
    /// Dates with the month before the day.
    Month,
}

impl Style {
    /// The part that a column's dates begin with.
    pub(crate) const fn first_of_date(self) -> FirstOfDate {
        match self {
            Self::Day => FirstOfDate::Day,
            Self::Month => FirstOfDate::Month,
            Self::Usual | Self::Unsigned => FirstOfDate::Year,
        }
    }
}

/// Why a column of numbers or dates is read as the strings that the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextReason {
    /// Some have zeros in front, or are telephone numbers.
    Codes,
    /// Some have more digits than a number of 64 bits holds.
    Digits,
    /// Each of the dates exists with the day first and with the month first.
    Ambiguous,
    /// Some dates exist only with the day first, others only with the month first.
    BothOrders,
}

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) kind: ColumnType,
    pub(crate) style: Style,
    pub(crate) kept: Option<TextReason>,
}

/// The narrowest type that holds every value of these forms without changing one.
pub(crate) fn decide(forms: impl IntoIterator<Item = Form>) -> Decision {
    let forms: Vec<Form> = forms.into_iter().collect();
    let has = |holds: &dyn Fn(Form) -> bool| forms.iter().any(|form| holds(*form));
    let is = |wanted: Form| has(&|form| form == wanted);
    let mut parts = Vec::new();
    if has(&Form::is_numeric) {
        parts.push(decide_numbers(&has));
    }
    if has(&Form::is_date) {
        parts.push(decide_dates(&is));
    }
    let others = [
        (Form::Bool, ColumnType::Bool),
        (Form::DecimalComma, ColumnType::Text),
        (Form::UnclearComma, ColumnType::Text),
        (Form::Text, ColumnType::Text),
        (Form::Binary, ColumnType::Binary),
        (Form::List, ColumnType::List),
        (Form::Object, ColumnType::Object),
        (Form::Mixed, ColumnType::Mixed),
    ];
    let others = others.into_iter().filter(|(form, _)| is(*form));
    parts.extend(others.map(|(_, kind)| Decision::of(kind)));
    match parts.as_slice() {
        [] => Decision::of(ColumnType::Null),
        [only] => *only,
        several => Decision::of(several.iter().map(|it| it.kind).fold(ColumnType::Null, ColumnType::join)),
    }
}

/// Whether a form of a number is among those of a column.
type HasForm<'a> = &'a dyn Fn(&dyn Fn(Form) -> bool) -> bool;

fn decide_numbers(has: HasForm<'_>) -> Decision {
    let kept = |kept| Decision { kept: Some(kept), ..Decision::of(ColumnType::Text) };
    let has_unsigned = has(&Form::is_unsigned);
    // Without a type that holds both, floats are the only one.
    let needs_floats = has(&|form| form == Form::Float) || (has_unsigned && has(&Form::is_below_zero));
    if has(&|form| form == Form::Code) {
        kept(TextReason::Codes)
    } else if has(&|form| form == Form::Digits) || (needs_floats && has(&Form::is_long)) {
        kept(TextReason::Digits)
    } else if needs_floats {
        Decision::of(ColumnType::Float)
    } else if has_unsigned {
        Decision { style: Style::Unsigned, ..Decision::of(ColumnType::Int) }
    } else {
        Decision::of(ColumnType::Int)
    }
}

fn decide_dates(is: &dyn Fn(Form) -> bool) -> Decision {
    let kept = |kept| Decision { kept: Some(kept), ..Decision::of(ColumnType::Text) };
    let in_order = |style| Decision { style, ..Decision::of(ColumnType::Timestamp) };
    match (is(Form::Day), is(Form::Month), is(Form::EitherFirst)) {
        (true, true, _) => kept(TextReason::BothOrders),
        (true, false, _) => in_order(Style::Day),
        (false, true, _) => in_order(Style::Month),
        (false, false, true) => kept(TextReason::Ambiguous),
        (false, false, false) => Decision::of(ColumnType::Timestamp),
    }
}

impl Decision {
    fn of(kind: ColumnType) -> Self {
        Self { kind, style: Style::Usual, kept: None }
    }
}

/// Digits behind a plus from which on they are a telephone number: the shortest international ones.
const PHONE_DIGITS_MIN: usize = 7;

/// So many digits are always exact in a 64-bit float.
const EXACT_DIGITS: usize = 15;

/// What one value written as a string shows.
#[must_use]
pub fn form_of(value: &[u8]) -> Form {
    // No number (`nan`, `inf`), boolean or date begins with another letter.
    let may_be_other = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'f' | b'i' | b'n' | b't');
    if value.first().is_some_and(|byte| byte.is_ascii_alphabetic() && !may_be_other(byte)) {
        return Form::Text;
    }
    if let Some(form) = number_form(value) {
        form
    } else if value.eq_ignore_ascii_case(b"true") || value.eq_ignore_ascii_case(b"false") {
        Form::Bool
    } else {
        comma_form(value).unwrap_or_else(|| date_form(value))
    }
}

/// What a value with a comma is: `None` where it is not a number with a decimal comma.
fn comma_form(value: &[u8]) -> Option<Form> {
    let at = memchr::memchr(b',', value)?;
    let mut plain = Vec::new();
    if !with_point(value, &mut plain) || number_form(&plain) != Some(Form::Float) {
        return None;
    }
    let (whole, decimals) = (unsigned_part(&value[..at]), &value[at + 1..]);
    let is_group = decimals.len() == GROUP_DIGITS && decimals.iter().all(u8::is_ascii_digit);
    let is_unclear =
        is_group && whole.len() <= GROUP_DIGITS && whole.first().is_some_and(|byte| *byte != b'0');
    Some(if is_unclear { Form::UnclearComma } else { Form::DecimalComma })
}

/// A value of a file with decimal commas, as the usual notation has it: `1.234,50` becomes `1234.50`. A number with a decimal point is
/// none in such a file: it gets a comma.
pub(crate) fn as_usual<'v>(value: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
    if memchr::memchr2(b',', b'.', value).is_none() {
        return value;
    }
    if with_point(value, scratch) {
        return scratch;
    }
    if number_form(value).is_none() {
        return value;
    }
    scratch.clear();
    scratch.extend(value.iter().map(|byte| if *byte == b'.' { b',' } else { *byte }));
    scratch
}

/// As [`form_of`], of a string that is neither a number nor a boolean: JSON writes those without quotes.
pub(crate) fn date_form(value: &[u8]) -> Form {
    if !value.first().is_some_and(u8::is_ascii_digit) {
        return Form::Text;
    }
    if parse_timestamp(value).is_some() {
        return Form::Time;
    }
    match orders_of(value) {
        (true, true) => Form::EitherFirst,
        (true, false) => Form::Day,
        (false, true) => Form::Month,
        (false, false) => Form::Text,
    }
}

/// Whether digits are a code and not a number: with zeros in front, or after a plus as a telephone number has them.
pub(crate) fn is_code(value: &[u8]) -> bool {
    let digits = unsigned_part(value);
    let is_phone = || {
        value.first() == Some(&b'+')
            && digits.len() >= PHONE_DIGITS_MIN
            && digits.iter().all(u8::is_ascii_digit)
    };
    matches!(digits, [b'0', b'0'..=b'9', ..]) || is_phone()
}

/// The form of a value that is written as a number.
pub(crate) fn number_form(value: &[u8]) -> Option<Form> {
    let digits = unsigned_part(value);
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return Some(if is_code(value) { Form::Code } else { whole_form(value, digits) });
    }
    is_float(value).then_some(if is_code(value) { Form::Code } else { Form::Float })
}

/// The form of a whole number; `digits` are without its sign.
pub(crate) fn whole_form(value: &[u8], digits: &[u8]) -> Form {
    let is_below_zero = value.first() == Some(&b'-');
    if digits.len() <= EXACT_DIGITS {
        return if is_below_zero { Form::Negative } else { Form::Whole };
    }
    let text = std::str::from_utf8(value).unwrap_or_default();
    let is_exact = is_exact(text, digits);
    if digits.len() < 19 || text.parse::<i64>().is_ok() {
        return match (is_below_zero, is_exact) {
            (false, true) => Form::Whole,
            (true, true) => Form::Negative,
            (false, false) => Form::LongWhole,
            (true, false) => Form::LongNegative,
        };
    }
    match (text.parse::<u64>().is_ok(), is_exact) {
        (true, true) => Form::Unsigned,
        (true, false) => Form::LongUnsigned,
        (false, true) => Form::Float,
        (false, false) => Form::Digits,
    }
}

/// Whether a 64-bit float holds a whole number without rounding it.
fn is_exact(text: &str, digits: &[u8]) -> bool {
    let number = text.parse::<f64>().unwrap_or(f64::NAN).abs();
    number.is_finite() && format!("{number:.0}").as_bytes() == digits
}

/// Whether a text is a number that a 64-bit float holds at least about: one beyond its range is not.
fn is_float(value: &[u8]) -> bool {
    let begins = value
        .first()
        .is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I'));
    let number = || std::str::from_utf8(value).ok()?.parse::<f64>().ok();
    begins && number().is_some_and(|number| number.is_finite() || !value.iter().any(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each kind of text gets the narrowest type, and that look-alikes do not.
    #[test]
    fn texts_get_the_narrowest_type() {
        use ColumnType::{Bool, Float, Int, Text, Timestamp};
        for (text, kind) in [
            ("7", Int),
            ("-7", Int),
            ("+7", Int),
            ("0", Int),
            ("9223372036854775807", Int),
            ("18446744073709551615", Int),
            ("18446744073709551617", Text),
            ("-9223372036854775809", Text),
            ("100000000000000000000", Float),
            ("1e3", Float),
            ("NaN", Float),
            ("-inf", Float),
            (".5", Float),
            ("0.5", Float),
            ("-0.5", Float),
            ("1e400", Text),
            ("-", Text),
            ("none", Text),
            ("007", Text),
            ("00", Text),
            ("-01.5", Text),
            ("+4915112345678", Text),
            ("1_000", Text),
            ("TRUE", Bool),
            ("2026-11-21", Timestamp),
            ("2026-11-21T07:00:00.123Z", Timestamp),
            ("2026-11-21 07:00:00+02:00", Timestamp),
            ("2026-11-21 07:00:00 UTC", Timestamp),
            ("31/12/2026", Timestamp),
            ("1/2/2026", Text),
            ("2026-13-21", Text),
            ("2026-11-21x", Text),
            ("1.2.3", Text),
        ] {
            assert_eq!(form_of(text.as_bytes()).kind(), kind, "{text}");
        }
    }

    /// Proves that a type holds every value of its column without changing one: whole numbers that a float would round are kept
    /// as their digits where floats are among them, and so are codes, however few they are.
    #[test]
    fn a_type_changes_no_value() {
        use ColumnType::{Float, Int, Text, Timestamp};
        let of = |texts: &[&str]| decide(texts.iter().map(|text| form_of(text.as_bytes())));
        for (texts, kind, style, kept) in [
            (&["1", "9007199254740993"][..], Int, Style::Usual, None),
            (&["1.5", "9007199254740992"], Float, Style::Usual, None),
            (&["1.5", "9007199254740993"], Text, Style::Usual, Some(TextReason::Digits)),
            (&["1", "18446744073709551615"], Int, Style::Unsigned, None),
            (&["-1", "18446744073709551615"], Text, Style::Usual, Some(TextReason::Digits)),
            (&["-1", "9223372036854775808"], Float, Style::Usual, None),
            (&["1", "18446744073709551616001"], Text, Style::Usual, Some(TextReason::Digits)),
            (&["1", "2", "01"], Text, Style::Usual, Some(TextReason::Codes)),
            (&["1.5", "01.5"], Text, Style::Usual, Some(TextReason::Codes)),
            (&["1/2/2026", "31/12/2026"], Timestamp, Style::Day, None),
            (&["2026-01-02", "1/2/2026", "12/31/2026"], Timestamp, Style::Month, None),
            (&["31/12/2026", "12/31/2026"], Text, Style::Usual, Some(TextReason::BothOrders)),
            (&["1/2/2026", "2026/01/02"], Text, Style::Usual, Some(TextReason::Ambiguous)),
            (&["1", "2026-01-02"], Text, Style::Usual, None),
        ] {
            assert_eq!(of(texts), Decision { kind, style, kept }, "{texts:?}");
        }
    }

    /// Proves that joining does not depend on the order in which values come (commutative and associative over
    /// all types), which parallel scans and file order rely on.
    #[test]
    fn joining_types_does_not_depend_on_order() {
        use ColumnType::*;
        let all = [Null, Bool, Int, Float, Timestamp, Text, Binary, List, Object, Mixed];
        for a in all {
            for b in all {
                assert_eq!(a.join(b), b.join(a), "{a:?} {b:?}");
                for c in all {
                    assert_eq!(a.join(b).join(c), a.join(b.join(c)), "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
