//! Forms of lines that said values: of the next line of the same form only its numbers are read.
//!
//! Lines of one form ([`quiet::form_of`]) have the same length, and their numbers the same places. Where in the line the numbers of a
//! reading were is found out by reading the line again with other digits.

use std::collections::HashMap;

use super::place::{Place, Written};
use super::plan::{Numbers, Plan};
use super::quiet::{self, Form};
use crate::printed::bar::{self, Bar};
use crate::printed::lexical::commas;
use crate::printed::lexical::named::{Beside, LineValues};
use crate::printed::lexical::prefix;
use crate::printed::tables::{Tables, Taken};
use crate::printed::{REPEATING, lines, objects, python, read_logged, read_message, text};

/// So many forms are remembered; a new one replaces another.
const FORMS_MAX: usize = 4096;
/// Longer lines are always read in full.
const LINE_BYTES_MAX: usize = 4096;
/// So often a line is read with other digits. Each time a number has another one of eight, so that no two have the same
/// each time; the last time all begin with the same one, which none has the other times that it has 1.
const PROBES: u32 = 5;
/// More numbers cannot be distinguished.
const RUNS_MAX: usize = 8usize.pow(PROBES - 1);

/// What one line says, as long as no table is open and the training has begun.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::printed) enum LineContent {
    Values(LineValues),
    Bar(Bar),
}

/// The place of a number in what a line says.
enum Slot<'a> {
    Whole(&'a mut u64),
    Value(&'a mut f64),
}

/// A number of it.
struct Number {
    is_whole: bool,
    bits: u64,
}

/// The forms, each at the place that its hash names.
#[derive(Debug, Default)]
pub(in crate::printed) struct KnownForms {
    forms: Vec<(u64, FormState)>,
    /// The number of names that are together.
    numbers: HashMap<Vec<String>, u32>,
    /// The last number.
    number: u32,
}

/// What lines of one form say: all but the numbers is the same.
#[derive(Debug, Clone)]
pub(in crate::printed) struct LearntForm {
    /// Of the line that was read last.
    pub content: LineContent,
    /// Forms with the same names in the same order have the same number.
    pub number: Option<u32>,
    /// What it says is taken as it is.
    pub is_plain: bool,
    places: Vec<Place>,
    /// How many of its lines are read at once.
    plan: Option<Plan>,
}

#[derive(Debug, Clone, Default)]
enum FormState {
    /// One line had it. Most forms of free text do not come again.
    #[default]
    Once,
    /// It is read in full.
    InFull,
    /// Only its numbers are read.
    Numbers(Box<LearntForm>),
}

impl KnownForms {
    /// Of how many forms only the numbers are read.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.forms.iter().filter(|(_, known)| matches!(known, FormState::Numbers(_))).count()
    }

    /// What a line says; nothing if it has to be read in full. `is_row`: it is below a heading that says where the
    /// script is. It is lent: what is changed in it but for its numbers is changed for all lines of the form.
    pub fn read(&mut self, form: Form, line: &[u8], is_row: bool) -> Option<&mut LearntForm> {
        if self.forms.is_empty() {
            self.forms.resize(FORMS_MAX, (0, FormState::Once));
        }
        let (hash, known) = &mut self.forms[form.hash as usize % FORMS_MAX];
        if *hash != form.hash {
            (*hash, *known) = (form.hash, FormState::Once);
            return None;
        }
        if matches!(known, FormState::Once) {
            *known = match learn(form, line, is_row) {
                Some((mut content, places)) => {
                    let number = number_of(content.values(), &mut self.numbers, &mut self.number);
                    let is_plain = content.is_plain_line();
                    let runs = quiet::runs_of(line);
                    let plan = match &content {
                        LineContent::Values(named) => is_plain && named.surplus == 0,
                        LineContent::Bar(_) => true,
                    };
                    let plan = plan.then(|| Plan::of(content.numbers(), &places, line, &runs)).flatten();
                    FormState::Numbers(Box::new(LearntForm { content, number, is_plain, places, plan }))
                }
                None => FormState::InFull,
            };
        }
        let FormState::Numbers(learnt) = known else { return None };
        let mut places = learnt.places.iter();
        let mut is_whole = true;
        learnt.content.each_number(&mut |number| {
            is_whole &= places.next().and_then(|place| place.take(line, number)).is_some();
        });
        is_whole.then_some(&mut **learnt)
    }

    /// How many lines of a form are read at once, what such a line says but for its numbers, and the number of its names.
    #[inline]
    pub(super) fn planned(&mut self, hash: u64) -> Option<(&Plan, &mut LineContent, u32)> {
        let (of, known) = self.forms.get_mut(hash as usize % FORMS_MAX)?;
        let FormState::Numbers(learnt) = known else { return None };
        let LearntForm { content, number: Some(number), plan: Some(plan), .. } = &mut **learnt else {
            return None;
        };
        (*of == hash).then_some((&*plan, content, *number))
    }
}

/// The number of the names of values. Those that come first after a bound have another number than before.
fn number_of(
    values: &[(String, f64)],
    numbers: &mut HashMap<Vec<String>, u32>,
    last: &mut u32,
) -> Option<u32> {
    let names: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
    if numbers.len() >= FORMS_MAX && !numbers.contains_key(&names) {
        numbers.clear();
    }
    let number = *numbers.entry(names).or_insert_with(|| {
        *last = last.saturating_add(1);
        *last
    });
    Some(number).filter(|number| *number < u32::MAX)
}

impl LineContent {
    /// Reads a line in full.
    fn of(line: &[u8], is_row: bool) -> Option<Self> {
        let is_item = lines::indent_of_item(line).is_some();
        let line = lines::readable(line)?;
        if line.starts_with('{') {
            let dict = || python::read_dict(&line).map(objects::numbers_of);
            return read_logged(&line).or_else(dict).map(Self::Values);
        }
        if line.starts_with(REPEATING) {
            return None;
        }
        let mut tables = Tables::default();
        if let Some((bar, rest)) = bar::read_bar(&line) {
            let is_alone = rest.is_empty() && tables.take(&bar.description) == Taken::No;
            return is_alone.then_some(Self::Bar(bar));
        }
        let message = prefix::message_of(&line);
        if bar::is_cut_short(&line)
            || tables.take(message) != Taken::No
            || bar::epoch_of_line(&line).is_some()
        {
            return None;
        }
        // Its dicts are counted in each line.
        let has_dicts = python::read_last_dicts(message).is_some();
        let message = Some(message).filter(|text| !has_dicts && !commas::depends_on_others(text))?;
        let row = Some(message).filter(|_| is_row);
        row.and_then(|row| text::read_below_heading(row, is_item, None))
            .or_else(|| read_message(message, None))
            .map(Self::Values)
    }

    /// Whether nothing but its numbers depends on the numbers of the line.
    fn is_plain(&self, form: Form) -> bool {
        match self {
            // The higher of two numbers; a fraction so long that it may be rounded to a whole epoch.
            Self::Values(named) => {
                let has_epoch = named.epoch.is_some() || named.part_of_epoch.is_some();
                !named.values.is_empty()
                    && named.settings.is_empty()
                    && named.highest_step.is_none()
                    && named.early_step.is_none()
                    && named.total_steps.is_none()
                    && !(form.has_long && has_epoch)
            }
            Self::Bar(_) => true,
        }
    }

    fn values(&self) -> &[(String, f64)] {
        match self {
            Self::Values(named) => &named.values,
            Self::Bar(bar) => &bar.values,
        }
    }

    /// Whether nothing about it is unusual.
    fn is_plain_line(&self) -> bool {
        let Self::Values(named) = self else { return false };
        let is_unusual =
            named.is_drawn || named.counts_batches || named.is_done_round || named.counts_evaluation;
        !is_unusual && named.beside.is_none()
    }

    fn each_number(&mut self, visit: &mut dyn FnMut(Slot<'_>)) {
        if let Self::Values(named) = self {
            match named.beside.as_deref_mut() {
                Some(Beside::Head { number, .. } | Beside::Episode { number, .. }) => {
                    visit(Slot::Whole(number));
                }
                Some(Beside::Means { done, total, values }) => {
                    [done, total].into_iter().for_each(|number| visit(Slot::Whole(number)));
                    values.iter_mut().for_each(|(_, mean)| visit(Slot::Value(mean)));
                }
                None => {}
            }
        }
        let Numbers { wholes, part_of_epoch, values } = self.numbers();
        wholes.into_iter().flatten().for_each(|number| visit(Slot::Whole(number)));
        part_of_epoch.into_iter().for_each(|number| visit(Slot::Value(number)));
        values.iter_mut().for_each(|(_, number)| visit(Slot::Value(number)));
    }

    /// All but those that are beside a line's values.
    #[inline]
    pub(super) fn numbers(&mut self) -> Numbers<'_> {
        match self {
            Self::Values(LineValues { step, epoch, position, total, part_of_epoch, values, .. }) => Numbers {
                wholes: [step.as_mut(), epoch.as_mut(), position.as_mut(), total.as_mut()],
                part_of_epoch: part_of_epoch.as_mut(),
                values,
            },
            Self::Bar(Bar { done, epoch, total, step, values, .. }) => Numbers {
                wholes: [Some(done), epoch.as_mut().map(|(epoch, _)| epoch), total.as_mut(), step.as_mut()],
                part_of_epoch: None,
                values,
            },
        }
    }

    /// Leaves zeros, and nothing that is not used any more.
    fn take_numbers(&mut self) -> Vec<Number> {
        let mut numbers = Vec::new();
        self.each_number(&mut |number| {
            numbers.push(match number {
                Slot::Whole(whole) => Number { is_whole: true, bits: std::mem::take(whole) },
                Slot::Value(value) => Number { is_whole: false, bits: std::mem::take(value).to_bits() },
            });
        });
        match self {
            Self::Values(named) => named.words_before.clear(),
            Self::Bar(bar) => bar.description.clear(),
        }
        numbers
    }
}

impl Place {
    /// The number that a line has here.
    fn take(self, line: &[u8], number: Slot<'_>) -> Option<()> {
        match number {
            Slot::Whole(whole) => *whole = self.whole_in(line)?,
            Slot::Value(value) => *value = self.value_in(line)?,
        }
        Some(())
    }

    fn has(self, number: &Number) -> bool {
        number.is_whole == (self.written == Written::Whole)
    }
}

/// A copy. Inlined it takes three times as long: the compiler packs the fields in registers first.
#[inline(never)]
pub(in crate::printed) fn copy_of(named: &LineValues) -> LineValues {
    named.clone()
}

/// Reads a line in full, and again with other digits: what it says without its numbers, and where they are.
fn learn(form: Form, line: &[u8], is_row: bool) -> Option<(LineContent, Vec<Place>)> {
    let runs = quiet::runs_of(line);
    if line.len() > LINE_BYTES_MAX || runs.len() > RUNS_MAX || may_be_too_large(line) {
        return None;
    }
    let mut content = LineContent::of(line, is_row).filter(|content| content.is_plain(form))?;
    let numbers = content.take_numbers();
    let places: Vec<(Place, Option<u64>)> =
        places_in(line, &runs).into_iter().map(|place| (place, place.bits_in(line))).collect();
    let places_of = |number: &Number| -> Vec<Place> {
        let is_there =
            |(place, bits): &&(Place, Option<u64>)| place.has(number) && *bits == Some(number.bits);
        places.iter().filter(is_there).map(|(place, _)| *place).collect()
    };
    let mut found: Vec<Vec<Place>> = numbers.iter().map(places_of).collect();
    for probe in 0..PROBES {
        let line = with_other_digits(line, &runs, probe);
        let mut other = LineContent::of(&line, is_row).filter(|other| other.is_plain(form))?;
        let numbers = other.take_numbers();
        if other != content {
            return None;
        }
        for (places, number) in found.iter_mut().zip(numbers) {
            places.retain(|place| place.bits_in(&line) == Some(number.bits));
        }
    }
    let first: Option<Vec<Place>> = found.iter().map(|places| places.first().copied()).collect();
    Some((content, first?))
}

/// A JSON number that is too large makes its line no JSON.
fn may_be_too_large(line: &[u8]) -> bool {
    let has_power = |part: &[u8]| matches!(part, [b'0'..=b'9' | b'.', b'e' | b'E', b'+' | b'0'..=b'9']);
    line.contains(&b'{') && line.windows(3).any(has_power)
}

/// Where numbers may be: from each run of digits, or `nan` and `inf`, as far as one may go.
fn places_in(line: &[u8], runs: &[(usize, usize)]) -> Vec<Place> {
    let mut places = Vec::new();
    for &(begin, end) in runs {
        let is_part =
            (begin > 0 && line[begin - 1] == b'.') || matches!(line[end..], [b'.', b'0'..=b'9', ..]);
        if !is_part {
            places.push(Place { begin, end, written: Written::Whole });
        }
    }
    let words = (0..line.len()).filter(|at| {
        let word = line[*at..].get(..3);
        word.is_some_and(|word| word.eq_ignore_ascii_case(b"nan") || word.eq_ignore_ascii_case(b"inf"))
    });
    for start in runs.iter().map(|(begin, _)| *begin).chain(words) {
        let signs =
            line[..start].iter().rev().take(2).take_while(|byte| matches!(byte, b'+' | b'-' | b'.')).count();
        let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-' | b'%');
        let end_max = start + line[start..].iter().take_while(|byte| belongs(byte)).count();
        for begin in start - signs..=start {
            for end in
                (start + 1..=end_max).rev().filter(|end| !line.get(*end).is_some_and(u8::is_ascii_digit))
            {
                places.extend([Written::Decimal, Written::Share].map(|written| Place {
                    begin,
                    end,
                    written,
                }));
            }
        }
    }
    places
}

/// The same form with other numbers.
fn with_other_digits(line: &[u8], runs: &[(usize, usize)], probe: u32) -> Vec<u8> {
    let mut line = line.to_vec();
    for (number, &(begin, end)) in runs.iter().enumerate() {
        let digits = &mut line[begin..end];
        if digits.iter().all(|digit| *digit == b'0') {
            continue;
        }
        let leading = usize::from(digits[0] == b'0' && digits.len() > 1);
        for (at, digit) in digits.iter_mut().enumerate().skip(leading) {
            let first = if probe < PROBES - 1 { number >> (3 * probe) } else { 1 };
            let code = first + at * (number + 3 + probe as usize);
            *digit = b'1' + (code % 8) as u8;
        }
    }
    line
}
