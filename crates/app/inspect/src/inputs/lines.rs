//! By which lines two texts differ.

use similar::{Algorithm, ChangeTag, capture_diff_slices};
use trackway_api::runs::explain::LineCount;
use trackway_core::text::shortened;

/// The most comparisons of lines: beyond it the texts are too different to be counted.
const COMPARISONS_MAX: usize = 4 << 20;
/// More lines are counted and not shown.
const SHOWN_MAX: usize = 10;
/// A longer line is cut.
const SHOWN_LETTERS_MAX: usize = 120;

/// How many lines differ and, if they are few, which.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineDifference {
    pub count: LineCount,
    /// Each behind `-` or `+`; empty where there are more than can be shown.
    pub shown: Vec<String>,
}

/// Lines that only one of the texts has, in the order of the texts; none if they are too different and too long.
pub(super) fn line_difference(before: &str, after: &str) -> Option<LineDifference> {
    let (mut before, mut after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same_start = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    before.drain(..same_start);
    after.drain(..same_start);
    let same_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    before.truncate(before.len() - same_end);
    after.truncate(after.len() - same_end);
    if before.len().saturating_mul(after.len()) > COMPARISONS_MAX {
        return None;
    }
    let mut found = LineDifference::default();
    let parts = capture_diff_slices(Algorithm::Myers, &before, &after);
    for change in parts.iter().flat_map(|part| part.iter_changes(&before, &after)) {
        let (sign, count) = match change.tag() {
            ChangeTag::Equal => continue,
            ChangeTag::Delete => ('-', &mut found.count.removed),
            ChangeTag::Insert => ('+', &mut found.count.added),
        };
        *count += 1;
        if found.shown.len() <= SHOWN_MAX {
            found.shown.push(shown(sign, change.value()));
        }
    }
    if found.shown.len() > SHOWN_MAX {
        found.shown.clear();
    }
    Some(found)
}

fn shown(sign: char, line: &str) -> String {
    format!("{sign}{}", shortened(line.trim_end(), SHOWN_LETTERS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that lines are counted as `diff` counts them, whatever is equal around them, and that texts too long to compare are not.
    #[test]
    fn lines_are_counted() {
        let count = |before: &str, after: &str| {
            line_difference(before, after).map(|it| (it.count.added, it.count.removed))
        };
        assert_eq!(count("a\nb\nc\n", "a\nx\ny\nc\n"), Some((2, 1)));
        assert_eq!(count("a\nb\n", "b\na\n"), Some((1, 1)), "a moved line");
        assert_eq!(count("", "a\n"), Some((1, 0)));
        assert_eq!(count("a\nb\nc\nd\n", "b\nc\nx\n"), Some((1, 2)));
        let long = |word: &str| (0..3_000).map(|line| format!("{word}{line}\n")).collect::<String>();
        assert_eq!(count(&long("a"), &long("b")), None);
    }

    /// Proves that a few lines are shown with their signs, cut where they are long, and that of many none is.
    #[test]
    fn few_lines_are_shown() {
        let shown = |before: &str, after: &str| line_difference(before, after).unwrap().shown;
        assert_eq!(shown("a\nlr = 0.1\nc\n", "a\nlr = 10\nc\n"), ["-lr = 0.1", "+lr = 10"]);
        assert_eq!(shown("", &"é".repeat(200)), [format!("+{}…", "é".repeat(120))]);
        let lines = |count: usize| (0..count).map(|line| format!("{line}\n")).collect::<String>();
        assert_eq!(shown("", &lines(SHOWN_MAX)).len(), SHOWN_MAX);
        assert!(shown("", &lines(SHOWN_MAX + 1)).is_empty());
    }
}
