//! Strings in the text of a script, without the help of a parser: lines are looked at one by one. Pure.

/// Each string of a line, with the text of the line before it. Comments are not looked at.
pub(super) fn literals(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut place = 0;
    std::iter::from_fn(move || {
        let start = place + line[place..].find(['"', '\'', '#'])?;
        let quote = line[start..].chars().next().filter(|found| *found != '#')?;
        let length = line[start + 1..].find(quote)?;
        place = start + length + 2;
        Some((&line[..start], &line[start + 1..=start + length]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that strings of both kinds are found with what is before them, and that comments and strings without an end are not.
    #[test]
    fn strings_of_a_line_are_found() {
        let found = |line: &'static str| literals(line).collect::<Vec<_>>();
        assert_eq!(found("x = f(\"a\", 'b')  # 'c'"), [("x = f(", "a"), ("x = f(\"a\", ", "b")]);
        assert_eq!(found("x = \"a#b'c\" + ''"), [("x = ", "a#b'c"), ("x = \"a#b'c\" + ", "")]);
        for line in ["", "# 'a'", "it's", "x = \"a", "é = 1"] {
            assert!(found(line).is_empty(), "{line}");
        }
        assert_eq!(found("é = 'ü'"), [("é = ", "ü")]);
    }
}
