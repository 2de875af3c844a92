//! Words of a shell's command line.

/// A string, quoted as one word of a shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:=+@%,".contains(&byte);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The words of a command line, without their quotes; what separates commands (`;`, `|`, `&`, `<`, `>`, brackets) ends
/// a word as a blank does. Nothing is expanded: this finds the names that are written out, and is not a shell.
#[must_use]
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')') => words.extend(word.take()),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that words come back out of a line as they went in, and which names a line of a shell holds.
    #[test]
    fn words_of_lines() {
        for argv in [vec!["python", "score it.py", "", "it's", "a\"b", "$HOME;ls", "--x=1"], vec!["./judge"]]
        {
            let line: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
            assert_eq!(words(&line.join(" ")), argv);
        }
        assert_eq!(
            words("cd judge && ./a.sh <x|tee \"b c\"'d'"),
            ["cd", "judge", "./a.sh", "x", "tee", "b cd"]
        );
        assert_eq!(words(r#"a\ b "c\"d" 'e\f'"#), ["a b", "c\"d", "e\\f"]);
        assert!(words("  ").is_empty());
    }
}
