//! Commands that were renamed: the old spelling is answered with the new one.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::Cli;

/// What was typed, and what to type now. A longer spelling comes before one that it begins with.
const RENAMED: [(&str, &str); 16] = [
    ("evaluate import", "eval import"),
    ("evaluate", "eval run"),
    ("evaluations", "eval ls"),
    ("evaluation show", "eval show"),
    ("evaluation", "eval"),
    ("roll-back", "rollback"),
    ("cross-validate", "eval cross-validate"),
    ("cv", "eval cross-validate"),
    ("metrics", "eval metrics"),
    ("slices", "eval slices"),
    ("score", "eval score"),
    ("probe", "eval probe"),
    ("ledger rebuild", "doctor rebuild"),
    ("notify", "config notify"),
    ("completions", "config completions"),
    ("man", "config man"),
];

/// The old and the new spelling of the command in `words`, the first of which names the program; nothing for a command
/// that was not renamed.
pub fn new_spelling<W>(words: impl IntoIterator<Item = W>) -> Option<(&'static str, &'static str)>
where
    W: Into<OsString> + Clone,
{
    let matches = Cli::command().allow_external_subcommands(true).try_get_matches_from(words).ok()?;
    let (first, rest) = matches.subcommand()?;
    let second = rest.try_get_many::<OsString>("").ok().flatten().and_then(|mut rest| rest.next());
    let second = second.and_then(|word| word.to_str()).unwrap_or_default();
    let typed = |old: &str| old.split_once(' ').map_or(old == first, |words| words == (first, second));
    RENAMED.into_iter().find(|(old, _)| typed(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an old spelling is not a command, and is answered with one that is; whatever surrounds it.
    #[test]
    fn old_spellings_are_answered_with_commands() {
        let cli = Cli::command();
        for (old, new) in RENAMED {
            let first = old.split(' ').next().unwrap();
            assert!(cli.find_subcommand(first).is_none(), "{old}");
            let found = new.split(' ').try_fold(&cli, |at, word| at.find_subcommand(word));
            assert!(found.is_some(), "{new}");
            for more in [&[][..], &["last", "--limit", "3", "--json"], &["--help"]] {
                let words = ["trackway", "--home", "h"].into_iter().chain(old.split(' '));
                assert_eq!(new_spelling(words.chain(more.iter().copied())), Some((old, new)), "{more:?}");
            }
        }
    }

    /// Proves that other mistakes are not taken for an old spelling.
    #[test]
    fn other_mistakes_have_no_new_spelling() {
        for words in [&["registry", "roll-back"][..], &["evaluat"], &["run"], &["logs", "evaluate", "x"], &[]]
        {
            assert_eq!(new_spelling(["trackway"].iter().chain(words)), None, "{words:?}");
        }
    }
}
