//! How the numbers of the lines of one form are read, from the runs of digits that they have.

use super::place::{Place, Written};
use crate::printed::lexical::tokens::{EXACT_DIGITS_MAX, EXACT_POWERS, power_of};
use crate::printed::lines;
use crate::record::ROUNDED_ZERO;

/// A form with more runs of digits is read line by line.
pub(super) const RUNS_MAX: usize = 32;

/// The numbers of a reading.
pub(super) struct Numbers<'a> {
    pub wholes: [Option<&'a mut u64>; 4],
    pub part_of_epoch: Option<&'a mut f64>,
    pub values: &'a mut [(String, f64)],
}

/// How the numbers of the lines of one form are read.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    wholes: [Option<How>; 4],
    part_of_epoch: Option<How>,
    values: Vec<How>,
}

#[derive(Debug, Clone, Copy)]
enum How {
    /// The run of digits with this number.
    Run(usize),
    Decimal(Decimal),
    /// As in a line by itself.
    Alone(Place),
}

/// A decimal number of so few digits that a double has them exactly.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    is_negative: bool,
    /// The run before the point.
    whole: usize,
    /// The run behind it, and the power of ten that has as many zeros.
    fraction: Option<(usize, u64)>,
    /// The digits are divided by or multiplied with this power.
    power: f64,
    is_divided: bool,
    /// A zero is one that was rounded.
    is_rounded: bool,
}

impl Plan {
    /// The plan of a form, whose numbers are at these places of a line of it; `None`: its lines have to be read one by one.
    pub fn of(numbers: Numbers<'_>, places: &[Place], line: &[u8], runs: &[(usize, usize)]) -> Option<Self> {
        if lines::indent_of_item(line).is_some() || runs.len() > RUNS_MAX {
            return None;
        }
        let mut places = places.iter().map(|place| How::of(*place, line, runs));
        // In the order in which a reading has its numbers.
        let Numbers { wholes, part_of_epoch, values } = numbers;
        let wholes = wholes.map(|whole| whole.and_then(|_| places.next()));
        let part_of_epoch = part_of_epoch.and_then(|_| places.next());
        let read: Vec<How> = places.by_ref().take(values.len()).collect();
        let has_all = read.len() == values.len() && places.next().is_none();
        has_all.then_some(Self { wholes, part_of_epoch, values: read })
    }

    /// Reads the numbers of a line into what its form says. `None`: it has to be read by itself.
    pub fn read(&self, line: &[u8], runs: &[u64; RUNS_MAX], numbers: Numbers<'_>) -> Option<()> {
        let Numbers { wholes, part_of_epoch, values } = numbers;
        for (how, whole) in self.wholes.iter().zip(wholes) {
            if let Some((how, whole)) = how.as_ref().zip(whole) {
                *whole = how.whole_in(line, runs)?;
            }
        }
        if let Some((how, part)) = self.part_of_epoch.zip(part_of_epoch) {
            *part = how.value_in(line, runs)?;
        }
        for (how, (_, value)) in self.values.iter().zip(values) {
            *value = how.value_in(line, runs)?;
        }
        Some(())
    }
}

impl How {
    fn of(place: Place, line: &[u8], runs: &[(usize, usize)]) -> Self {
        let run = |begin, end| runs.iter().position(|run| *run == (begin, end));
        let run_of = run(place.begin, place.end).filter(|_| place.written == Written::Whole);
        let decimal = || {
            Decimal::of(place, line, runs).filter(|_| place.written == Written::Decimal).map(Self::Decimal)
        };
        run_of.map(Self::Run).or_else(decimal).unwrap_or(Self::Alone(place))
    }

    #[inline]
    fn whole_in(self, line: &[u8], runs: &[u64; RUNS_MAX]) -> Option<u64> {
        match self {
            Self::Run(run) => Some(runs[run % RUNS_MAX]),
            Self::Alone(place) => place.whole_in(line),
            Self::Decimal(_) => None,
        }
    }

    #[inline]
    fn value_in(self, line: &[u8], runs: &[u64; RUNS_MAX]) -> Option<f64> {
        match self {
            Self::Decimal(decimal) => Some(decimal.value_of(runs)),
            Self::Alone(place) => place.value_in(line),
            Self::Run(_) => None,
        }
    }
}

impl Decimal {
    /// A number that is written `-12.34e-05`, or with less than that, and of which only the digits before the power differ.
    fn of(place: Place, line: &[u8], runs: &[(usize, usize)]) -> Option<Self> {
        let text = line.get(place.begin..place.end)?;
        let is_negative = text.first() == Some(&b'-');
        let run_at = |begin: usize| {
            let run = runs.iter().position(|(from, to)| *from == begin && *to <= place.end)?;
            Some((run, runs[run].1))
        };
        let begin = place.begin + usize::from(is_negative);
        let (whole, mut end) = run_at(begin)?;
        let (mut digits, mut fraction, mut fraction_digits) = (end - begin, None, 0);
        if line.get(end) == Some(&b'.') && end < place.end {
            let (run, fraction_end) = run_at(end + 1)?;
            fraction_digits = fraction_end - end - 1;
            digits += fraction_digits;
            fraction = Some((run, 10_u64.checked_pow(fraction_digits as u32)?));
            end = fraction_end;
        }
        let power = match line.get(end..place.end)? {
            [] => 0,
            [b'e' | b'E', power @ ..] if runs.iter().all(|(from, _)| !(end..place.end).contains(from)) => {
                power_of(power)?
            }
            _ => return None,
        };
        let is_rounded = fraction_digits > 1 && end == place.end;
        let power = power - fraction_digits as i32;
        let is_exact = digits <= EXACT_DIGITS_MAX;
        let ten = EXACT_POWERS.get(power.unsigned_abs() as usize).filter(|_| is_exact)?;
        Some(Self { is_negative, whole, fraction, power: *ten, is_divided: power < 0, is_rounded })
    }

    #[inline]
    fn value_of(self, runs: &[u64; RUNS_MAX]) -> f64 {
        let whole = runs[self.whole % RUNS_MAX];
        let digits = self
            .fraction
            .map_or(whole, |(run, ten)| whole.wrapping_mul(ten).wrapping_add(runs[run % RUNS_MAX]));
        if digits == 0 && self.is_rounded {
            return ROUNDED_ZERO;
        }
        let value = if self.is_divided { digits as f64 / self.power } else { digits as f64 * self.power };
        if self.is_negative { -value } else { value }
    }
}
