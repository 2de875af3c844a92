//! What single lines of an output say: at which level a logger wrote one, whether it has a result, and whether it says
//! that the training failed.

use crate::pattern::Pattern;
use crate::scan::LogEvidence;

/// Words at the beginning of a line among which its level is, after time, host and module.
const LEVEL_WORDS: usize = 16;

/// Words for the end of the training itself, not of one of its parts.
static WORK_FAILED: Pattern = Pattern::made(|| {
    let work = "(?:re-?|pre-?)?train(?:ing)?|fine-?tuning|fitting";
    let part = "(?: (?:run|job|loop|process|script))?";
    let failed = "failed|crashed|died|aborted|stopped|terminated|interrupted";
    let text = format!(
        r"\b(?:{work}){part} (?:has |was |is )?(?:{failed})\b|\b(?:failed to|cannot|could not|nothing to) train\b|\b(?:(?:error|failed|failure|exception) (?:in|during|while)|abort(?:ed|ing)?|stop(?:ped|ping)|terminating) (?:the )?(?:{work}){part}\s*(?:$|[:;,.(]|at\b|after\b)"
    );
    text
});

/// What is written before such words that takes them back: "no training failed", "if training failed".
static NOT_SAID: Pattern = Pattern::made(|| {
    let words = "no|not|never|none|without|if|when|whether|unless|in case|until|previous|earlier|last|old";
    format!(r"(?:\b(?:{words}) (?:the |of |a |this )*|(?:^|\W )(?:0|zero) )$")
});

/// The same behind them: "training failed: 0", "training failed to improve".
static NOT_MEANT: Pattern = Pattern::new(
    r"^(?:\s*[:=]\s*(?:0|no|none|false)\s*$| (?:0|no|zero) times| to (?:improve|reach|beat|converge)| early\b)",
);

/// A line without a level that is nothing but the failure of the training.
static OWN_WORDS: Pattern = Pattern::new(
    r"^\W*(?:the )?(?:model )?(?:re-?|pre-?)?(?:train(?:ing)?|fine-?tuning)(?: (?:run|job|loop|process|script))? (?:has |was |is )?(?:failed|crashed|died|aborted)\b",
);

/// The level of a line where a logger writes it, and what it logged: at its beginning, after a time, brackets, a key or the logger's name.
static LOGGED: Pattern = Pattern::exact_made(|| {
    let before = r#"\W*|.*\d:\d\d.{0,80}?\W|(?:[\[(<][^\])>]*[\])>]\W*)+|.{0,60}?[\w.]+(?: ?[-|:] )|.*(?i:level|levelname|severity)"?[=:]\W*"#;
    let level = r"(?:ERROR|FATAL|CRITICAL)";
    format!(r"^(?:{before}){level}(?:[^\w=](?P<words>.*)|$)")
});

/// What looks like the message of an error and is not: its rate, a count of none, columns of a table, a bar.
static NO_MESSAGE: Pattern = Pattern::made(|| {
    let number = r"[+-]?\d[\d.e%+-]*\W*$";
    let names = "rates?|counts?|margins?|norms?|metrics?|summary|analysis|total|mean|average|std";
    let none = r"\b(?:0|no|zero) (?:\w+ )?(?:errors?|failures?|warnings?)\b";
    let columns = r"\w(?: {2,}|\t| +\| +)\w.*\w(?: {2,}|\t| +\| +)\w|^ {2,}\w.*\w {2,}\w";
    format!(r"^\W*(?:{names})\b[^.\d]*{number}|{none}|{columns}|%\||\d ?(?:it/s|s/it)\b")
});

/// A result of the work or its count.
pub(super) static RESULT: Pattern = Pattern::made(|| {
    let names = "loss|acc|accuracy|auc|rmse|mae|mse|f1|score|reward|perplexity|ppl|bleu|wer|map";
    format!(
        r"\b\w{{0,12}}(?:{names})\w{{0,12}}\W{{1,4}}[+-]?\d|%\||^\W*(?:epoch|step|iter(?:ation)?)s?\W{{0,3}}\d"
    )
});

/// Whether the line has a result of the work or its count, and is not logged as an error.
pub(super) fn has_result(line: &str) -> bool {
    RESULT.is_match(line) && !is_logged_error(line)
}

/// The same without the bars, which are redrawn at the end, and without the trackers' lines.
pub(super) fn is_result(line: &str) -> bool {
    has_result(line) && !line.contains("%|") && !line.contains("wandb")
}

/// Whether the line says that the training failed: logged as an error, or with nothing before it.
pub(super) fn says_failure(line: &str) -> bool {
    says_work_failed(line) && (OWN_WORDS.is_match(line) || is_logged_error(line))
}

/// Whether the line has words for the end of the training that the words around them do not take back.
pub(super) fn says_work_failed(line: &str) -> bool {
    WORK_FAILED
        .find_iter(line)
        .any(|found| !NOT_SAID.is_match(&line[..found.start]) && !NOT_MEANT.is_match(&line[found.end..]))
}

/// Whether a logger wrote a message at the level of an error, and not a table or a metric the word.
pub(super) fn is_logged_error(line: &str) -> bool {
    let words = || LOGGED.captures(line)?.named("words");
    is_error_line(line)
        && words().is_some_and(|words| {
            (is_message(words) || says_work_failed(words)) && !NO_MESSAGE.is_match(words)
        })
}

/// Whether two words are one after the other, as a message has them and a name or a number has not.
fn is_message(text: &str) -> bool {
    const QUOTES: [char; 3] = ['\'', '"', '`'];
    let ends_word = |part: &str| {
        let part = part.strip_suffix([',', ':']).unwrap_or(part);
        part.strip_suffix(QUOTES)
            .unwrap_or(part)
            .chars()
            .rev()
            .take(2)
            .filter(|letter| letter.is_alphabetic())
            .count()
            == 2
    };
    let begins_word = |part: &str| {
        part.strip_prefix(QUOTES).or(part.strip_prefix('(')).unwrap_or(part).starts_with(char::is_alphabetic)
    };
    let mut parts = text.split(' ');
    let mut last = parts.next();
    parts.any(|part| last.replace(part).is_some_and(ends_word) && begins_word(part))
}

/// Whether a logger wrote the line at the level of an error.
pub(super) fn is_error_line(text: &str) -> bool {
    has_level(text, &["ERROR", "FATAL", "CRITICAL"])
}

/// The same, or at the level of a warning.
pub(super) fn is_logged_line(text: &str) -> bool {
    is_error_line(text) || has_level(text, &["WARNING", "WARN"])
}

fn has_level(text: &str, levels: &[&str]) -> bool {
    levels.iter().any(|level| {
        text.split(|letter: char| !letter.is_ascii_alphanumeric())
            .take(LEVEL_WORDS)
            .any(|word| word == *level)
    })
}

/// The last lines that are not empty, from this one on.
pub(super) fn lines_from(log: &LogEvidence, line_number: u64) -> impl Iterator<Item = &str> {
    let count = usize::try_from(log.line_count + 1 - line_number).unwrap_or(usize::MAX);
    let first = log.last_lines.len().saturating_sub(count);
    log.last_lines[first..].iter().map(String::as_str).filter(|line| !line.trim().is_empty())
}
