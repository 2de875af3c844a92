//! Reading one line: where it starts, what of it is shown, what kind it is.

use std::ops::Range;

use crate::pattern::{Pattern, any_of};

/// The longest text kept of a line.
pub const MAX_TEXT_BYTES: usize = 480;
/// How much of the text before the match is kept when a line is longer than the bound.
const LEAD_BYTES: usize = 120;

/// How far to either side of a literal a line is read; what is beyond is not shown to any expression.
const REACH_BYTES: usize = 4096;

/// The bounds of what a terminal shows as the line at `position`: up to the nearest line feed or carriage return
/// (a progress bar redraws itself with the latter), and no further than the bound.
pub(super) fn bounds(block: &[u8], position: usize) -> (usize, usize) {
    let from = position.saturating_sub(REACH_BYTES);
    let to = block.len().min(position + REACH_BYTES);
    let start = memchr::memrchr2(b'\n', b'\r', &block[from..position]).map_or(from, |at| from + at + 1);
    let end = memchr::memchr2(b'\n', b'\r', &block[position..to]).map_or(to, |at| position + at);
    (start, end)
}

/// The part of the line worth showing for a match that starts at `matched_at`: all of it, or the bound's worth.
pub(super) fn text_around(line: &[u8], matched_at: usize) -> String {
    let start = if line.len() <= MAX_TEXT_BYTES { 0 } else { matched_at.saturating_sub(LEAD_BYTES) };
    let end = line.len().min(start + MAX_TEXT_BYTES);
    String::from_utf8_lossy(&line[start..end]).trim().to_owned()
}

/// The line in `behind`, if `line` ends with a colon and that line says what it announces.
pub(super) fn continued(line: &[u8], behind: &[u8]) -> Option<String> {
    line.trim_ascii_end().strip_suffix(b":")?;
    let next = behind.trim_ascii_start();
    let next = next[..memchr::memchr2(b'\n', b'\r', next).unwrap_or(next.len())].trim_ascii_end();
    let announces_another = next.starts_with(b"Traceback (") || next.ends_with(b":") || is_frame(next);
    (!next.is_empty() && !announces_another).then(|| text_around(next, 0))
}

/// Source code quoted by a traceback, a comment or a usage text: what it names did not happen.
static QUOTED_CODE: Pattern = Pattern::new(any_of![
    r"^\s*(#|//|\*)\s",
    r#"^[^A-Za-z"'@#]*(\[rank\d+\]:|\([^)]*\))?\s*(raise \w|except\b.*:|if .*:\s*$|elif |return |def |with .*:\s*$|for .* in .*:\s*$|from \w+ import|import \w|logger\.|log\.|print\(|warnings\.warn|assert |class \w+|self\.\w+ =|\w+ = [\w.]+\(.*\)?$|await |yield |super\(\))"#,
]);

/// Settings, echoed at the start of a run: they name what may happen, not what did.
static SETTINGS: Pattern = Pattern::new(
    r"\bnamespace\(|^\W*(args|arguments|config|configuration|settings|usage|options|params|h(yper)?-?param(eter)?s)\s*[:=] ?[^\n]",
);

/// What is behind `#` and not a comment: the crash report of a Java machine, and a line of a log, which has a time of day.
static NO_COMMENT: Pattern = Pattern::new(
    r"^#\s+(there is insufficient|native memory|a fatal error|out of memory error|SIG[A-Z]+ \(|[^\n]{0,60}\b\d{2}:\d{2}:\d{2}\b)",
);

/// A level below error, as loggers write it. NCCL's WARN is its error level, so it does not count.
static BELOW_ERROR: Pattern = Pattern::new(any_of! {
    r"(?-i:(^|[\s|\[(:\-])(WARN|WARNING|INFO|DEBUG)\b)", r"\b\w*Warning: ",
    r"(^|\s)(?-i:[WI])(\d{4}|\s*tensorflow|\s+external)[ /]", r"^\s*warning\b", r"(^|\W)(?-i:\d{2}\.\d+: [WI] )",
});
static NCCL_LEVEL: Pattern = Pattern::new(r"nccl warn|\.(cc|cu|h|cpp):\d+ warn");

/// Words that turn the rest of the sentence into a possibility or an advice.
static HEDGE: Pattern = Pattern::new(
    r"\b(may|might|could (be|have|also|cause|lead|mean|indicate|happen|result|occur)|can (happen|be caused|cause|lead|occur)|possibly|possible|potential|perhaps|probably|if you|if your|if the|make sure|please|to avoid|in case|consider|should (be )?(reduc|increas|check)|try (to|reduc|set|increas)|this happens|hint:|tip:|note:|e\.g\.|such as|for example|would)\b",
);
/// A line that opens like this explains.
static EXPLAINS: Pattern = Pattern::new(r"^\W*(note|tip|hint)\s*:|\bnccl info\b");
/// Words that make a list of guesses of the whole rest of the line.
static LIST_OF_GUESSES: Pattern =
    Pattern::new(r"(potential|possible) (root )?causes|may be due to|could be due to|might be due to");

/// A key with its value at the end of a line: `corrupt files: 0`, `watchdog timeout: 600 s`.
static KEY_VALUE: Pattern = Pattern::new(
    r"(?P<key>[^:=|(]{1,120}?)(?:\s*=\s*|\s*:\s+)(?:(?P<none>0|0\.0+%?|none|null|no|false|off|disabled|never|n/a|\[\]|\{\})|(?P<choice>ignore|skip|warn|drop|keep|allow|retry|requeue|continue)|(?P<switch>true|on|yes|enabled)|(?P<number>\d[\d.]*) ?(?:ms|s|secs?|seconds|m|mins?|minutes|h|hours)?)\W{0,2}$",
);
/// What may be between the words that are found and the value: of a count.
static OF_COUNT: Pattern = Pattern::new(
    r"^(?:s|ed|\(s\)|d|[ _](?:counts?|total|events?|errors?|retries|so far|found|seen|detected|reached|exceeded)|[ _]time-?out)?$",
);
/// Keys of what a program is to do about something.
static OF_SWITCH: Pattern = Pattern::new(
    r"\b(?:check\w*|detect\w*|handl\w*|skip\w*|allow\w*|ignor\w*|stop\w*|terminat\w*|retry|enabl\w*|use|polic\w+|activat\w*|on)\b",
);
/// The last word of a key of a time that something may take.
static OF_LIMIT: Pattern = Pattern::new(r"(?:^|[\s_])time-?out$");
/// A class: its value is the message.
static OF_CLASS: Pattern = Pattern::exact(r"[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Fault|Iteration)$");

/// Whether the line only gives a setting or a count of none under words that are found in it.
pub(super) fn is_setting(line: &[u8], matched: &Range<usize>) -> bool {
    let line = line.trim_ascii_end();
    let Some(found) = KEY_VALUE.captures(line) else { return false };
    // Some words are found with the colon behind them.
    let is_its = |key: &Range<usize>| key.start < matched.end && matched.end <= key.end + 1;
    let Some(key) = found.range_of("key").filter(is_its) else { return false };
    let words = &line[key.clone()];
    let is_aside = key.start > 0 && line[key.start - 1] == b'(';
    if is_aside || OF_CLASS.is_match(words) {
        return false;
    }
    let is_all = OF_COUNT.is_match(&line[matched.end.min(key.end)..key.end]);
    let has = |name: &str| found.range_of(name).is_some();
    (is_all && (has("none") || has("choice") || (has("number") && OF_LIMIT.is_match(words))))
        || (has("switch") && OF_SWITCH.is_match(words))
}

static HANDLED: Pattern = Pattern::new(any_of! {
    r"\bskipping\b", r"\b(is|was|were|been|be|batch|sample|step|update|file|record|image) skipped\b",
    r"\bskipped (\d+ (bad|broken|corrupt\w*|invalid)|this|the|a|bad|corrupt\w*|batch|sample|step|file|record|image)\b",
    r"\bretrying\b", r"\bwill retry\b", "trying again", r"\bignoring\b", r"\b(error|exception|is|was|be) ignored\b",
    "falling back", "fall ?back to", r"\brecovered\b", r"continuing\b", "entering retry loop",
    r"(reducing|halving)[^\n]{0,20}batch",
});

/// Words about retries that are over, or that are the reader's to make.
static RETRIES_OVER: Pattern = Pattern::new(any_of! {
    r"\b(please|before|then)\b[^\n]{0,40}\b(re)?try(ing)?\b",
    r"(\b(recommend|suggest|consider)\w*\b[^\n]{0,60}|^\W*and )trying again",
    "max(imum)?( number of)? (retries|attempts)", "(retries|attempts) (were |was |are )?(exceeded|exhausted|failed)",
    "giving up", "no more (retries|attempts)", r"(after|reached|exceeded)( all)?( \d+)? (retries|attempts)",
});

static PYTHON_FRAME: Pattern =
    Pattern::new(r#"^[^A-Za-z"'@#]*(\[rank\d+\]:|\([^)]*\))?\s*file "[^"\n]+", line \d+(, in [^\n]*)?\s*$"#);

/// Whether the line is source text rather than something that happened.
pub(super) fn is_quoted_code(line: &[u8]) -> bool {
    (QUOTED_CODE.is_match(line) && !NO_COMMENT.is_match(line))
        || SETTINGS.is_match(&line[..line.len().min(80)])
}

/// Whether the line is a frame of a Python traceback: names of files, folders and functions say nothing about what happened.
pub(super) fn is_frame(line: &[u8]) -> bool {
    PYTHON_FRAME.is_match(line)
}

/// Whether the line is indented as the code below a frame is, behind the rank that printed it.
pub(super) fn is_indented(line: &[u8]) -> bool {
    let behind_rank = line.strip_prefix(b"[rank").and_then(|rest| {
        rest[rest.iter().take_while(|byte| byte.is_ascii_digit()).count()..].strip_prefix(b"]: ")
    });
    behind_rank.unwrap_or(line).starts_with(b"    ")
}

/// Whether the line, of which something matches at `start`, was logged below error level.
pub(super) fn is_below_error(line: &[u8], start: usize) -> bool {
    let head = &line[..line.len().min(start.max(200))];
    BELOW_ERROR.is_match(head) && !NCCL_LEVEL.is_match(head)
}

/// Whether the line may speak about the match instead of reporting it: below error level, where programs retell what
/// happened before, or with the match in quotation marks.
pub(super) fn only_mentions(line: &[u8], start: usize) -> bool {
    let is_quoted = start > 0 && matches!(line[start - 1], b'"' | b'\'' | b'`');
    is_quoted || is_below_error(line, start)
}

/// Whether the line reports that the error was handled.
pub(super) fn says_handled(line: &[u8]) -> bool {
    HANDLED.is_match(line) && !says_retries_are_over(line)
}

/// Whether the line speaks of retries that failed, or advises the reader to try again.
pub(super) fn says_retries_are_over(line: &[u8]) -> bool {
    RETRIES_OVER.is_match(line)
}

/// Words in the midst of a match by which it only supposes.
static SUPPOSES: Pattern = Pattern::new(any_of! {
    r"\b(may|might|could) (also )?(be|have been) (due|caused|related|because|a result)",
    r"\b(may|might) (have|mean|indicate)\b", r"\bpossibly\b", r"\bperhaps\b", r"\bprobably\b",
});

/// Whether the match is only one possibility that the line names.
pub(super) fn is_hedged(line: &[u8], matched: &Range<usize>) -> bool {
    let start = matched.start;
    if EXPLAINS.is_match(&line[..start]) || SUPPOSES.is_match(&line[matched.clone()]) {
        return true;
    }
    let before = &line[start.saturating_sub(400)..start];
    if LIST_OF_GUESSES.is_match(before) {
        return true;
    }
    let sentence = before
        .windows(2)
        .rposition(|pair| matches!(pair, b". " | b"; " | b": " | b") "))
        .map_or(0, |at| at + 2);
    HEDGE.is_match(&before[sentence..])
}

static PROGRESS: Pattern = Pattern::new(any_of![
    r"\b(step|epoch|iter|iteration|global_step|update|batch)s?\b['\x22]?[\s:=#\[(]{0,4}\d[^\n]*\b(loss|lr|acc|accuracy|ppl|grad|speed|tokens|samples|auc|time)",
    r"\bloss\w*['\x22]?\s*[:=]\s*\d[^\n]*\b(step|epoch|iter|lr|grad)",
]);

/// Whether the line reports training progress. Bars are left out: they are redrawn after the end.
pub(super) fn is_progress(line: &str) -> bool {
    let bytes = line.as_bytes();
    !line.contains("wandb") && !line.contains("%|") && !line.contains("it/s") && PROGRESS.is_match(bytes)
}
