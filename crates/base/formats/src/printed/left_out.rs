//! What of a script's output was not read, not kept or not shown: how much of each kind, and where first. Nothing of that is silent.

use trackway_core::closed_list;
use trackway_core::text::counted;

use super::objects::PARTS_MAX;
use super::settings::{SETTING_BYTES_MAX, SETTINGS_MAX};
use super::{LINE_BYTES_MAX, NAME_BYTES_MAX, OBJECT_LINES_MAX, Printed, VALUES_MAX};

closed_list!(
    /// What was left out of an output.
    LeftOutKind, "kind of what is left out of an output", {
        /// Lines that are too long, and objects over too many, were not searched for values.
        LongLines = "long_lines",
        /// Values beyond those that one line gives, with names that are too long or nested too deep, were not recorded.
        SurplusValues = "surplus_values",
        /// Values whose comma may be one of decimals or of thousands were not recorded.
        UnclearCommas = "unclear_commas",
        /// Rows of tables with measures were not recorded: nothing shows what each of them is of.
        UnreadRows = "unread_rows",
        /// Settings beyond those that are taken, or that are too long, were not taken.
        SurplusSettings = "surplus_settings",
        /// Values that look like secrets, or whose names do, were not recorded.
        SecretValues = "secret_values",
        /// Parts of the flight record could not be written, and no record says so.
        DroppedFrames = "dropped_frames",
        /// States of lines that the script drew over in a terminal are not in the log.
        DrawnOver = "drawn_over",
        /// Output was not shown, since the terminal took nothing. The log has it.
        NotShown = "not_shown",
    }
);

/// So much of one kind was left out of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    pub kind: LeftOutKind,
    /// The output; none: both.
    pub output: Option<Printed>,
    /// How many lines, values, settings, states or (not shown) bytes.
    pub count: u64,
    /// The line of the first in what was printed, from 1; none where that is not known.
    pub line: Option<u64>,
}

impl LeftOut {
    /// How many, and why: `2 lines are longer than 64 KiB and were not searched for values, the first is line 7`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let counted = |noun: &str| counted(self.count, noun);
        let were = if self.count == 1 { "was" } else { "were" };
        let are = if self.count == 1 { "is" } else { "are" };
        let said = match self.kind {
            LeftOutKind::LongLines => format!(
                "{} {are} longer than {} KiB, or an object over more than {OBJECT_LINES_MAX} lines, and {were} not searched for values",
                counted("line"),
                LINE_BYTES_MAX >> 10
            ),
            LeftOutKind::SurplusValues => format!(
                "{} {were} not recorded: a line gives at most {VALUES_MAX}, with names of at most {NAME_BYTES_MAX} bytes and \
                 {PARTS_MAX} parts of nested objects",
                counted("value")
            ),
            LeftOutKind::UnclearCommas => format!(
                "{} {were} not recorded: nothing shows whether a comma as in `1,234` or `1.234,5` is one of decimals or of thousands",
                counted("value")
            ),
            LeftOutKind::UnreadRows => format!(
                "{} of tables with measures {were} not recorded: nothing shows what each row is of",
                counted("row")
            ),
            LeftOutKind::SurplusSettings => format!(
                "{} {were} not taken: at most {SETTINGS_MAX} are, with names and values of at most {} and {} bytes",
                counted("setting"),
                SETTING_BYTES_MAX.0,
                SETTING_BYTES_MAX.1
            ),
            LeftOutKind::SecretValues => {
                format!("{} {were} not recorded: they or their names look like secrets", counted("value"))
            }
            LeftOutKind::DroppedFrames => {
                format!(
                    "{} of the flight record {were} not written: the disk took nothing more",
                    counted("frame")
                )
            }
            LeftOutKind::DrawnOver => format!(
                "{} of lines that the script drew over in its terminal {are} not in the log, which has the last ones",
                counted("state")
            ),
            LeftOutKind::NotShown => format!(
                "{} {were} not shown, since the terminal took nothing; the log has them",
                counted("byte")
            ),
        };
        let line = self.line.map(|line| format!("; the first in line {line}")).unwrap_or_default();
        said + &line
    }
}

/// How much of each kind was left out of each output so far.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftOutCounts(Vec<LeftOut>);

impl LeftOutCounts {
    /// So many more, in this line.
    pub fn add(&mut self, kind: LeftOutKind, count: u64, (output, line): (Printed, u64)) {
        if count == 0 {
            return;
        }
        let is_known = |it: &&mut LeftOut| it.kind == kind && it.output == Some(output);
        match self.0.iter_mut().find(is_known) {
            Some(known) => known.count += count,
            None => self.0.push(LeftOut { kind, output: Some(output), count, line: Some(line) }),
        }
    }

    /// All of it, by kind and output.
    pub fn list(&self) -> Vec<LeftOut> {
        let mut list = self.0.clone();
        list.sort_by_key(|it| (it.kind, it.output.map(|output| output as u8)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::super::PrintedReader;
    use super::*;

    /// What is left out of an output that comes in pieces of this size.
    fn left_out(printed: &str, size: usize) -> Vec<(LeftOutKind, u64, Option<u64>)> {
        let mut reader = PrintedReader::default();
        printed.as_bytes().chunks(size).for_each(|piece| reader.push(Printed::Stdout, piece, |_| {}));
        reader.finish(|_| {});
        reader.left_out().iter().map(|it| (it.kind, it.count, it.line)).collect()
    }

    /// Proves that lines beyond the bound are counted with the first of them, and that one which only fits is not.
    #[test]
    fn long_lines_are_counted() {
        let long = "1".repeat(LINE_BYTES_MAX + 1);
        let printed = format!("step 1 loss 0.5\n\rbar\r{long}\n{}\n{long}", &long[1..]);
        for size in [1_000, 70_000, usize::MAX >> 1] {
            assert_eq!(left_out(&printed, size), [(LeftOutKind::LongLines, 2, Some(2))], "{size}");
        }
    }

    /// Proves that values beyond those of a line and with a long name are counted, in objects and in dicts of Python,
    /// also where lines of one form come again and again.
    #[test]
    fn values_that_do_not_fit_are_counted() {
        let many: String = (0..VALUES_MAX + 3).map(|at| format!("\"m{at}\": 0.5, ")).collect();
        let line = format!("{{\"step\": 1, {many}\"loss\": 0.5}}\n");
        assert_eq!(left_out(&line, 1_000), [(LeftOutKind::SurplusValues, 4, Some(1))]);
        let named = format!("{{'loss': 0.5, '{}': 1.5}}\n", "x".repeat(NAME_BYTES_MAX + 1));
        let printed = format!("step 1 loss 0.75\n{}", named.repeat(20));
        assert_eq!(left_out(&printed, 1_000), [(LeftOutKind::SurplusValues, 20, Some(2))]);
        assert_eq!(left_out("{\"step\": 1, \"loss\": 0.5, \"ok\": true, \"text\": \"0.5\"}\n", 1_000), []);
    }

    /// Proves that the value of a measure is counted while nothing shows what its comma is, and not as soon as
    /// something does; a count, a time and a list are no such values.
    #[test]
    fn unclear_commas_are_counted() {
        let unclear = "step 10 loss 1,234\nstep 20 loss: 2,345\n";
        assert_eq!(left_out(unclear, 1_000), [(LeftOutKind::UnclearCommas, 2, Some(1))]);
        assert_eq!(left_out("step 10 loss 0,35\nstep 20 loss 1,234\n", 1_000), []);
        let other = "step 1,234 loss 0.5\naccuracy 9,834/10,000\n10:02:03,123 start\nsizes 1,2,3\n";
        assert_eq!(left_out(other, 1_000), []);
    }

    /// Proves that settings beyond those that are taken are counted with the line of the first.
    #[test]
    fn settings_that_do_not_fit_are_counted() {
        let printed: String = (0..SETTINGS_MAX + 2).map(|at| format!("name_{at} = {at}\n")).collect();
        let first = SETTINGS_MAX as u64 + 1;
        assert_eq!(left_out(&printed, 1_000), [(LeftOutKind::SurplusSettings, 2, Some(first))]);
    }

    /// Proves that each kind has a sentence with its number and its place.
    #[test]
    fn each_kind_has_a_sentence() {
        for kind in LeftOutKind::ALL {
            let of = |count| LeftOut { kind: *kind, output: None, count, line: Some(7) }.sentence();
            assert!(of(1).starts_with("1 ") && of(1).ends_with("; the first in line 7"), "{}", of(1));
            assert!(of(3).starts_with("3 "), "{}", of(3));
        }
    }
}
