//! Where the numbers of lines of one form are.

use crate::printed::lexical::tokens::{share_of, value_in};

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Written {
    Whole,
    Decimal,
    Share,
}

/// Where a number is in a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub begin: usize,
    pub end: usize,
    pub written: Written,
}

impl Place {
    fn text_in(self, line: &[u8]) -> Option<&str> {
        std::str::from_utf8(line.get(self.begin..self.end)?).ok()
    }

    /// The whole number that a line has here.
    pub fn whole_in(self, line: &[u8]) -> Option<u64> {
        let digits = line.get(self.begin..self.end).filter(|_| self.written == Written::Whole)?;
        digits.iter().try_fold(0_u64, |whole, digit| {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            whole.checked_mul(10)?.checked_add(digit).filter(|_| digit < 10)
        })
    }

    /// The number with decimals, or the percentage, that a line has here.
    pub fn value_in(self, line: &[u8]) -> Option<f64> {
        match self.written {
            Written::Whole => None,
            Written::Decimal => value_in(line.get(self.begin..self.end)?),
            Written::Share => share_of(self.text_in(line)?),
        }
    }

    /// The bits of the number that a line has here.
    pub fn bits_in(self, line: &[u8]) -> Option<u64> {
        match self.written {
            Written::Whole => self.whole_in(line),
            _ => self.value_in(line).map(f64::to_bits),
        }
    }
}
