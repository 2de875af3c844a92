//! How many lines of a text were added and removed.

use trackway_api::explain::LineCount;

/// The most comparisons of lines: beyond it the texts are too different to be counted.
const COMPARISONS_MAX: usize = 4 << 20;

/// Lines that only `after` has and lines that only `before` has, in the order of the texts; none if they are too different and too long.
pub(super) fn line_count(before: &str, after: &str) -> Option<LineCount> {
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
    let common = common(&before, &after);
    Some(LineCount { added: (after.len() - common) as u64, removed: (before.len() - common) as u64 })
}

/// The length of the longest common subsequence.
fn common(before: &[&str], after: &[&str]) -> usize {
    let mut row = vec![0; after.len() + 1];
    for line in before {
        let mut corner = 0;
        for (place, other) in after.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if line == other { corner + 1 } else { above.max(row[place]) };
            corner = above;
        }
    }
    row[after.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that lines are counted as `diff` counts them, whatever is equal around them, and that texts too long to compare are not.
    #[test]
    fn lines_are_counted() {
        let count = |before: &str, after: &str| line_count(before, after).map(|it| (it.added, it.removed));
        assert_eq!(count("a\nb\nc\n", "a\nx\ny\nc\n"), Some((2, 1)));
        assert_eq!(count("a\nb\n", "b\na\n"), Some((1, 1)), "a moved line");
        assert_eq!(count("", "a\n"), Some((1, 0)));
        assert_eq!(count("a\nb\nc\nd\n", "b\nc\nx\n"), Some((1, 2)));
        let long = |word: &str| (0..3_000).map(|line| format!("{word}{line}\n")).collect::<String>();
        assert_eq!(count(&long("a"), &long("b")), None);
    }
}
