//! Lines of known forms, many at once: of each only its numbers are read, straight from what was printed, and what else a line does to
//! what is known is done once for all of a form. Everything is as if each line had been read by itself.

use super::known::LineContent;
use super::last::Pattern;
use super::plan::RUNS_MAX;
use super::quiet::{Class, WORD_BYTES};
use crate::printed::pretty;
use crate::printed::steps::Further;
use crate::printed::{Printed, PrintedFound, PrintedMetrics, PrintedRun, ReaderState};

/// So many steps are collected before they are given out.
const STEPS_MAX: usize = 4096;

/// Reads the runs of digits of a line that has a pattern but for the digits; `rest` is what was printed from the line on. Whether the line
/// has the form of the pattern. The last eight bytes of what was printed are read by themselves.
#[inline]
fn read_runs(pattern: &Pattern, rest: &[u8], runs: &mut [u64; RUNS_MAX]) -> bool {
    for (number, run) in pattern.numbers.iter().zip(runs) {
        let count = number.end - number.begin;
        let head = count.saturating_sub(WORD_BYTES);
        let Some(last) = word_at(rest, number.begin + head) else { return false };
        let value = match head {
            0 => digits_of(last << (8 * (WORD_BYTES - count))),
            1..=WORD_BYTES => {
                let Some(first) = word_at(rest, number.begin) else { return false };
                digits_of(first << (8 * (WORD_BYTES - head))) * 100_000_000 + digits_of(last)
            }
            _ => {
                // No number of so many digits is read from its run.
                if Class::of(&rest[number.begin..number.end], number.may_lead) != number.class {
                    return false;
                }
                continue;
            }
        };
        let class = match value {
            0 => Class::Zero,
            _ if number.may_lead && rest[number.begin] == b'0' => Class::LedByZero,
            _ => Class::Other,
        };
        if class != number.class {
            return false;
        }
        *run = value;
    }
    true
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// The number that eight digits make, the first of them in the lowest byte; zero bytes are zeros.
#[inline]
fn digits_of(eight: u64) -> u64 {
    let ones = eight & 0x0f0f_0f0f_0f0f_0f0f;
    let twos = (ones.wrapping_mul(10 * 256 + 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 * 65_536 + 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul((10_000 << 32) + 1) >> 32
}

/// Values of the same names that were read and not given out.
#[derive(Debug, Default)]
pub(in crate::printed) struct Collected {
    number: u32,
    names: Vec<String>,
    steps: Vec<u64>,
    values: Vec<f64>,
}

impl Collected {
    /// From now on values have these names.
    fn begin(&mut self, number: u32, values: &[(String, f64)], found: &mut dyn FnMut(PrintedFound<'_>)) {
        if self.number == number {
            return;
        }
        self.give_out(found);
        self.number = number;
        self.names.clear();
        self.names.extend(values.iter().map(|(name, _)| name.clone()));
    }

    #[inline]
    fn push(&mut self, step: u64, values: &[(String, f64)], found: &mut dyn FnMut(PrintedFound<'_>)) {
        self.steps.push(step);
        self.values.extend(values.iter().map(|(_, value)| *value));
        if self.steps.len() >= STEPS_MAX {
            self.give_out(found);
        }
    }

    /// Takes the values of a drawing. Those whose names have no number are given out by themselves, behind the others.
    fn take(&mut self, drawn: &PrintedMetrics, found: &mut dyn FnMut(PrintedFound<'_>)) {
        match (drawn.names, u64::try_from(drawn.step)) {
            (Some(number), Ok(step)) => {
                self.begin(number, &drawn.values, found);
                self.push(step, &drawn.values, found);
            }
            _ => {
                self.give_out(found);
                found(PrintedFound::One(drawn));
            }
        }
    }

    fn give_out(&mut self, found: &mut dyn FnMut(PrintedFound<'_>)) {
        let Self { number, names, steps, values } = self;
        if !steps.is_empty() {
            found(PrintedFound::Run(PrintedRun { number: *number, names, steps, values }));
        }
        steps.clear();
        values.clear();
    }
}

/// What is known of the lines right before.
#[derive(Debug, Default)]
struct Lately {
    /// Room for the runs of digits of a line.
    runs: [u64; RUNS_MAX],
    /// The form of the last line with values, and how the steps of its lines are found.
    last: Option<(u64, Further)>,
}

/// What was read on of what was printed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) struct Passed {
    pub bytes: usize,
    /// How many of the lines end with a newline, not with a carriage return.
    pub newlines: u64,
}

impl ReaderState {
    /// Reads the whole lines at the beginning of what was printed as far as they have known forms. Nothing may be open that a line may
    /// belong to, but for what is indented below the last one.
    pub fn read_on(
        &mut self,
        output: Printed,
        printed: &[u8],
        found: &mut dyn FnMut(PrintedFound<'_>),
    ) -> Passed {
        let (mut passed, mut length, mut lately) = (Passed::default(), None, Lately::default());
        while let Some(end) = end_of_line(&printed[passed.bytes..], length) {
            if !self.read_further(output, (&printed[passed.bytes..], end), &mut lately, found) {
                break;
            }
            passed.newlines += u64::from(printed[passed.bytes + end] == b'\n');
            passed.bytes += end + 1;
            length = Some(end);
        }
        self.collected.give_out(found);
        self.collected.number = 0;
        passed
    }

    /// Reads the next line, which ends at `end`. False: it has to be read by itself.
    fn read_further(
        &mut self,
        output: Printed,
        (rest, end): (&[u8], usize),
        Lately { runs, last }: &mut Lately,
        found: &mut dyn FnMut(PrintedFound<'_>),
    ) -> bool {
        let (at, line) = (output as usize, &rest[..end]);
        if pretty::may_begin(line) {
            return false;
        }
        let Some((pattern, form)) = self.forms.alike(line) else { return false };
        let is_below = self.continued[at].is_some_and(|indent| pattern.indent > indent);
        let is_other = is_below || pattern.heads_best || pattern.numbers.len() > RUNS_MAX;
        if is_other || !read_runs(pattern, rest, runs) {
            return false;
        }
        let indent = pattern.indent;
        if form.may_be_quiet && self.quiet.has(form.hash) {
            self.continued[at] = None;
            self.settings.interrupt();
            return true;
        }
        let known = self.known.planned(form.hash).filter(|_| self.steps.has_begun());
        let Some((plan, content, number)) = known else { return false };
        if plan.read(line, runs, content.numbers()).is_none() {
            return false;
        }
        let (evaluated, collected) = (&mut self.evaluated[at], &mut self.collected);
        match content {
            LineContent::Values(named) => {
                let known = last.filter(|(hash, _)| *hash == form.hash).map(|(_, further)| further);
                let is_clear = || named.has_place() || !evaluated.may_name();
                let further = known.or_else(|| self.steps.further(named).filter(|_| is_clear()));
                let step = further.and_then(|further| self.steps.further_step(further, named));
                let Some((further, step)) = further.zip(step) else { return false };
                if known.is_none() {
                    evaluated.see(named);
                    collected.begin(number, &named.values, found);
                    *last = Some((form.hash, further));
                }
                collected.push(step, &named.values, found);
                self.continued[at] = Some(indent).filter(|_| named.may_be_continued);
            }
            LineContent::Bar(bar) => {
                let purpose = self.steps.purpose_below(evaluated.heading, bar);
                self.steps.bar(bar, purpose, Some(number), &mut |drawn| collected.take(drawn, found));
                self.continued[at] = None;
                *last = None;
            }
        }
        true
    }
}

/// Where the line ends that begins here; most have the length of the one before.
#[inline]
fn end_of_line(rest: &[u8], length: Option<usize>) -> Option<usize> {
    let is_end = |at: &usize| matches!(rest.get(*at), Some(b'\n' | b'\r'));
    // A shorter line could end before: it is compared with a line that has no end in it.
    length.filter(is_end).or_else(|| memchr::memchr2(b'\n', b'\r', rest))
}
