//! How much the attempt's processes wrote by when: whether they can have written a file at all.

use std::collections::VecDeque;

/// Most looks that are remembered; the oldest are forgotten first.
const AMOUNTS_MAX: usize = 4096;
/// A look that shows what was written comes within this time, or is not waited for.
const AWAITED_NS: i64 = 5_000_000_000;
/// Of a file that is written over in place a script may write only a part, not less than this.
const PART_REWRITTEN: u64 = 2;
/// What reaches a disk is counted by such pages.
const PAGE: u64 = 4096;
/// A file of this size may be written through memory or past the kernel's cache, which passes nothing to be written.
const MAY_BE_MAPPED: u64 = 1 << 20;

/// What the processes of the attempt had written in all when they were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// When the look began, in nanoseconds since 1970.
    pub from_ns: i64,
    /// When it ended.
    pub until_ns: i64,
    /// The bytes that were passed to be written, anywhere, since some look before.
    pub chars: u64,
    /// The bytes that are to reach a disk: none of what is printed, and what is written over before it reaches the disk once.
    pub to_disk: u64,
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
    /// It wrote less.
    No(Less),
    NotKnown,
    /// The next look may show it.
    NotYet,
}

/// The attempt wrote less than the files have that were written at the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Less {
    /// Bytes that the attempt wrote while the file was written.
    pub wrote: u64,
    /// Bytes of the file on the disk.
    pub bytes: u64,
    /// Bytes that were written to other files meanwhile: what paid for them paid for nothing else.
    pub beside: u64,
}

/// Files that were written from one time to another, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub from_ns: i64,
    pub until_ns: i64,
    /// When all of it was written, by what was seen.
    pub finished_ns: i64,
    pub bytes: u64,
    /// Whether one of them was there before.
    pub is_rewritten: bool,
}

/// What was written to other files between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OtherWrites {
    pub bytes: u64,
    /// The least that reaches a disk for it.
    pub to_disk: u64,
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

    /// Whether the attempt wrote enough from the last look before the files were begun to the first one after they were
    /// written, with what was written beside them meanwhile. `is_last`: the last look was after its end. `on_disk`: a
    /// new file there is all in what reaches a disk.
    pub fn sufficient(
        &self,
        span: Span,
        (is_last, on_disk): (bool, bool),
        beside: impl Fn(i64, i64) -> OtherWrites,
    ) -> Sufficient {
        let before = self.0.iter().rev().find(|one| one.until_ns <= span.from_ns);
        let (Some(before), Some(last)) = (before, self.0.back()) else { return Sufficient::NotKnown };
        let after = self.0.iter().find(|one| one.is_whole && one.from_ns >= span.finished_ns);
        let Some(after) = after.or_else(|| (is_last && last.from_ns >= span.until_ns).then_some(last)) else {
            let may_come = last.series == before.series && last.from_ns < span.finished_ns + AWAITED_NS;
            return if may_come { Sufficient::NotYet } else { Sufficient::NotKnown };
        };
        let beside = beside(before.from_ns, after.until_ns);
        // What no look shows may have been written to any of several files: only what is shown pays.
        if after.series != before.series && beside.bytes == 0 {
            return Sufficient::NotKnown;
        }
        let (chars, to_disk) =
            (after.chars.saturating_sub(before.chars), after.to_disk.saturating_sub(before.to_disk));
        pays((chars, to_disk), on_disk, span, beside)
    }
}

/// Whether so much, passed to be written and to reach a disk, is enough for a file and what was written beside it.
fn pays((chars, to_disk): (u64, u64), on_disk: bool, span: Span, beside: OtherWrites) -> Sufficient {
    let less = |wrote| Sufficient::No(Less { wrote, bytes: span.bytes, beside: beside.bytes });
    let least = if span.is_rewritten { span.bytes / PART_REWRITTEN } else { span.bytes };
    let reaches_disk = to_disk >= on_disk_at_least(least).saturating_add(beside.to_disk);
    let is_passed = chars >= least.saturating_add(beside.bytes);
    match (is_passed, reaches_disk) {
        // What is printed is passed too. Pages that were written over may be counted already.
        (true, false) if on_disk && !span.is_rewritten => less(to_disk),
        (false, true) if span.bytes >= MAY_BE_MAPPED => Sufficient::Yes,
        (true, _) => Sufficient::Yes,
        (false, _) => less(chars),
    }
}

/// What reaches a disk at least for so many bytes of a new file.
pub(crate) fn on_disk_at_least(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

/// The same for bytes that are added to a file, whose last page may be counted already.
pub(crate) fn added_on_disk_at_least(bytes: u64) -> u64 {
    bytes / PAGE * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writers::steps::TICK_NS;

    const MS: i64 = 1_000_000;

    fn amount(at: i64, bytes: u64) -> Amount {
        Amount {
            from_ns: at * MS,
            until_ns: (at + 1) * MS,
            chars: bytes,
            to_disk: bytes.next_multiple_of(PAGE),
            is_whole: true,
            series: 0,
        }
    }

    fn amounts(all: &[Amount]) -> Amounts {
        let mut amounts = Amounts::default();
        all.iter().for_each(|one| amounts.put(*one));
        amounts
    }

    fn span(from: i64, until: i64, bytes: u64) -> Span {
        let (from_ns, until_ns) = (from * MS, until * MS);
        Span { from_ns, until_ns, finished_ns: until_ns + TICK_NS, bytes, is_rewritten: false }
    }

    /// With nothing beside it, on a file system that is in memory.
    fn sufficient(seen: &Amounts, span: Span, is_last: bool) -> Sufficient {
        seen.sufficient(span, (is_last, false), |_, _| OtherWrites::default())
    }

    /// Proves that a file is the attempt's only if it wrote as much between the looks around it, and that what it wrote
    /// before or later does not count.
    #[test]
    fn what_was_written_around_a_file_counts() {
        let seen = amounts(&[amount(0, 0), amount(100, 9_000), amount(200, 9_100), amount(300, 50_000)]);
        let less = |wrote, bytes| Sufficient::No(Less { wrote, bytes, beside: 0 });
        for (file, expected) in [
            (span(120, 150, 4_000), less(100, 4_000)),
            (span(20, 50, 4_000), Sufficient::Yes),
            (span(120, 150, 101), less(100, 101)),
            (span(120, 150, 100), Sufficient::Yes),
            (span(210, 250, 40_000), Sufficient::Yes),
            // A look that began within a tick of the write may be before it.
            (span(120, 198, 4_000), Sufficient::Yes),
            (span(120, 150, 0), Sufficient::Yes),
        ] {
            assert_eq!(sufficient(&seen, file, false), expected, "{file:?}");
        }
    }

    /// Proves that after the end of the attempt its last count decides, and that of a file which was there before half is enough.
    #[test]
    fn the_last_count_is_final() {
        let seen = amounts(&[amount(0, 0), amount(100, 900)]);
        let less = |wrote, bytes| Sufficient::No(Less { wrote, bytes, beside: 0 });
        assert_eq!(sufficient(&seen, span(50, 99, 4_000), false), Sufficient::NotYet);
        assert_eq!(sufficient(&seen, span(50, 99, 4_000), true), less(900, 4_000));
        assert_eq!(sufficient(&seen, span(50, 99, 900), true), Sufficient::Yes);
        let again = |bytes| Span { is_rewritten: true, ..span(50, 90, bytes) };
        assert_eq!(sufficient(&seen, again(1_800), false), Sufficient::Yes);
        assert_eq!(sufficient(&seen, again(1_802), false), less(900, 1_802));
    }

    /// Proves that what was written beside a file has to be paid for too, that what is printed pays for nothing that
    /// reaches a disk and a page of a log for no file, and that a large file may be written without being passed.
    #[test]
    fn all_that_was_written_is_paid_for() {
        let another = OtherWrites { bytes: 1_100, to_disk: PAGE };
        let of = |bytes| span(120, 150, bytes);
        let again = |bytes| Span { is_rewritten: true, ..of(bytes) };
        let rows = [
            ((1_125, PAGE), true, of(1_100), OtherWrites::default(), true),
            ((1_125, PAGE), true, of(1_100), another, false),
            ((2_300, PAGE), true, of(1_100), another, false),
            ((2_225, 2 * PAGE), true, of(1_100), another, true),
            ((60, 2 * PAGE), true, of(1_100), OtherWrites::default(), false),
            ((2_225, 0), false, of(1_100), another, true),
            ((1_125, 2 * PAGE), false, of(1_100), another, false),
            ((600, 0), true, again(1_100), OtherWrites::default(), true),
            ((600, 0), true, again(1_100), another, false),
            ((30, 4 << 20), true, of(3 << 20), OtherWrites::default(), true),
            ((30, 4 << 20), true, of(3 << 20), OtherWrites { bytes: 2 << 20, to_disk: 2 << 20 }, false),
        ];
        for (wrote, on_disk, span, beside, expected) in rows {
            let found = pays(wrote, on_disk, span, beside);
            assert_eq!(found == Sufficient::Yes, expected, "{wrote:?} {span:?} {beside:?}: {found:?}");
        }
    }

    /// Proves that nothing is said of a file where the looks leave a gap: before the first, across a process whose
    /// count is lost, or by a look that did not see every process.
    #[test]
    fn a_gap_says_nothing() {
        let lost = Amount { series: 1, ..amount(200, 0) };
        let seen = amounts(&[amount(100, 0), lost]);
        assert_eq!(sufficient(&seen, span(120, 150, 4_000), false), Sufficient::NotKnown);
        assert_eq!(sufficient(&seen, span(50, 80, 4_000), false), Sufficient::NotKnown);
        assert_eq!(sufficient(&Amounts::default(), span(50, 80, 4_000), false), Sufficient::NotKnown);
        let another = |_, _| OtherWrites { bytes: 1_100, to_disk: PAGE };
        let found = seen.sufficient(span(120, 150, 4_000), (false, false), another);
        assert_eq!(
            found,
            Sufficient::No(Less { wrote: 0, bytes: 4_000, beside: 1_100 }),
            "of two files none"
        );
        let part = Amount { is_whole: false, ..amount(200, 0) };
        let mut seen = amounts(&[amount(100, 0), part]);
        assert_eq!(sufficient(&seen, span(120, 150, 4_000), false), Sufficient::NotYet);
        seen.put(amount(300, 4_096));
        assert_eq!(sufficient(&seen, span(120, 150, 4_000), false), Sufficient::Yes);
        let late = Amount { is_whole: false, ..amount(5_200, 0) };
        let seen = amounts(&[amount(100, 0), late]);
        assert_eq!(
            sufficient(&seen, span(120, 150, 4_000), false),
            Sufficient::NotKnown,
            "it is not waited for"
        );
    }

    /// Proves that of many looks the oldest are forgotten, and that what they would have shown is not known.
    #[test]
    fn looks_are_bounded() {
        let mut seen = Amounts::default();
        (0..=AMOUNTS_MAX as i64).for_each(|at| seen.put(amount(10 * at, 0)));
        assert_eq!(seen.0.len(), AMOUNTS_MAX);
        assert_eq!(sufficient(&seen, span(5, 8, 4_000), false), Sufficient::NotKnown);
    }
}
