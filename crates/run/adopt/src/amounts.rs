//! How much the attempt's processes wrote by when: whether they can have written a file at all.

use std::collections::VecDeque;

use crate::steps::TICK_NS;

/// Most looks that are remembered; the oldest are forgotten first.
const AMOUNTS_MAX: usize = 4096;
/// A look that shows what was written comes within this time, or is not waited for.
const AWAITED_NS: i64 = 5_000_000_000;
/// Less than this part of a file was clearly not the file: some of its blocks may have been reserved and never written.
const CLEARLY_LESS: u64 = 2;

/// What the processes of the attempt had written in all when they were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// When the look began, in nanoseconds since 1970.
    pub from_ns: i64,
    /// When it ended.
    pub until_ns: i64,
    /// The bytes, since some look before.
    pub bytes: u64,
    /// Whether every process of the attempt was looked at.
    pub is_whole: bool,
    /// Between looks of different series something was written that no look shows.
    pub series: u32,
}

/// What the counts say of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sufficient {
    /// The attempt wrote as much while the file was written.
    Yes,
    /// It wrote clearly less.
    No(Less),
    /// It is not known how much.
    NotKnown,
    /// The next look may show it.
    NotYet,
}

/// The attempt wrote less than a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Less {
    /// Bytes that the attempt wrote while the file was written.
    pub wrote: u64,
    /// Bytes of the file on the disk.
    pub bytes: u64,
}

/// Files that were written from one time to another, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub from_ns: i64,
    pub until_ns: i64,
    pub bytes: u64,
}

/// The looks of one attempt, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Amounts(VecDeque<Amount>);

impl Amounts {
    pub fn put(&mut self, amount: Amount) {
        if self.0.len() == AMOUNTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(amount);
    }

    /// Whether the attempt wrote enough from the last look before the files were begun to the first one after they were written.
    pub fn sufficient(&self, span: Span) -> Sufficient {
        let before = self.0.iter().rev().find(|one| one.until_ns <= span.from_ns);
        let (Some(before), Some(last)) = (before, self.0.back()) else { return Sufficient::NotKnown };
        // The time of a file is up to a tick before its write.
        let written_ns = span.until_ns.saturating_add(TICK_NS);
        let after = self.0.iter().find(|one| one.is_whole && one.from_ns >= written_ns);
        let Some(after) = after else {
            let may_come = last.series == before.series && last.from_ns < written_ns + AWAITED_NS;
            return if may_come { Sufficient::NotYet } else { Sufficient::NotKnown };
        };
        if after.series != before.series {
            return Sufficient::NotKnown;
        }
        let wrote = after.bytes.saturating_sub(before.bytes);
        match wrote < span.bytes / CLEARLY_LESS {
            true => Sufficient::No(Less { wrote, bytes: span.bytes }),
            false => Sufficient::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn amount(at: i64, bytes: u64) -> Amount {
        Amount { from_ns: at * MS, until_ns: (at + 1) * MS, bytes, is_whole: true, series: 0 }
    }

    fn amounts(all: &[Amount]) -> Amounts {
        let mut amounts = Amounts::default();
        all.iter().for_each(|one| amounts.put(*one));
        amounts
    }

    fn span(from: i64, until: i64, bytes: u64) -> Span {
        Span { from_ns: from * MS, until_ns: until * MS, bytes }
    }

    /// Proves that a file is the attempt's only if it wrote as much between the looks around it, and that what it wrote before or later does not count.
    #[test]
    fn what_was_written_around_a_file_counts() {
        let seen = amounts(&[amount(0, 0), amount(100, 9_000), amount(200, 9_100), amount(300, 50_000)]);
        let less = |wrote, bytes| Sufficient::No(Less { wrote, bytes });
        for (file, expected) in [
            (span(120, 150, 4_000), less(100, 4_000)),
            (span(20, 50, 4_000), Sufficient::Yes),
            (span(120, 150, 150), Sufficient::Yes),
            (span(210, 250, 40_000), Sufficient::Yes),
            // A look that began within a tick of the write may be before it.
            (span(120, 198, 4_000), Sufficient::Yes),
            (span(120, 150, 0), Sufficient::Yes),
        ] {
            assert_eq!(seen.sufficient(file), expected, "{file:?}");
        }
    }

    /// Proves that nothing is said of a file where the looks leave a gap: before the first, across a process whose count is lost, or by a look that did
    /// not see every process.
    #[test]
    fn a_gap_says_nothing() {
        let lost = Amount { series: 1, ..amount(200, 0) };
        let seen = amounts(&[amount(100, 0), lost]);
        assert_eq!(seen.sufficient(span(120, 150, 4_000)), Sufficient::NotKnown);
        assert_eq!(seen.sufficient(span(50, 80, 4_000)), Sufficient::NotKnown);
        assert_eq!(Amounts::default().sufficient(span(50, 80, 4_000)), Sufficient::NotKnown);
        let part = Amount { is_whole: false, ..amount(200, 0) };
        let mut seen = amounts(&[amount(100, 0), part]);
        assert_eq!(seen.sufficient(span(120, 150, 4_000)), Sufficient::NotYet);
        seen.put(amount(300, 4_096));
        assert_eq!(seen.sufficient(span(120, 150, 4_000)), Sufficient::Yes);
        let late = Amount { is_whole: false, ..amount(5_200, 0) };
        let seen = amounts(&[amount(100, 0), late]);
        assert_eq!(seen.sufficient(span(120, 150, 4_000)), Sufficient::NotKnown, "it is not waited for");
    }

    /// Proves that of many looks the oldest are forgotten, and that what they would have shown is not known.
    #[test]
    fn looks_are_bounded() {
        let mut seen = Amounts::default();
        (0..=AMOUNTS_MAX as i64).for_each(|at| seen.put(amount(10 * at, 0)));
        assert_eq!(seen.0.len(), AMOUNTS_MAX);
        assert_eq!(seen.sufficient(span(5, 8, 4_000)), Sufficient::NotKnown);
    }
}
