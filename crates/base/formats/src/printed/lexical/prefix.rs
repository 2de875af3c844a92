//! What logging puts before a message: dates, levels, ranks, places in source files.

use super::names::{self, Meaning};
use super::tokens::clock_at;

const LEVELS: [&str; 8] = ["INFO", "DEBUG", "WARNING", "WARN", "ERROR", "CRITICAL", "NOTICE", "I"];
/// So many parts are taken off at most.
const PARTS_MAX: usize = 8;
/// So many fields between tabs or blanks are before the level at most.
const FIELDS_MAX: usize = 4;

/// The message of a line of a log; any other line as it is.
pub(in crate::printed) fn message_of(line: &str) -> &str {
    if let Some(text) = text_of_r(line) {
        return text;
    }
    let mut rest = line;
    for _ in 0..PARTS_MAX {
        let Some(next) = without_glog(rest)
            .or_else(|| without_brackets(rest))
            .or_else(|| Some(rest).filter(|rest| rest.len() < line.len()).and_then(without_place))
            .or_else(|| Some(rest).filter(|rest| rest.len() == line.len()).and_then(without_logger))
            .or_else(|| without_date(rest))
            .or_else(|| without_level(rest))
        else {
            break;
        };
        rest = next.trim_start();
    }
    match rest.len() == line.len() {
        true => line,
        // `[2026/01/02 10:02:03] - message`
        false => without_module(rest.strip_prefix("- ").unwrap_or(rest).trim_start()),
    }
}

/// The text that R prints with the index of its vector: `[1] "Test AUC: 0.9134"`.
fn text_of_r(line: &str) -> Option<&str> {
    let (index, text) = line.strip_prefix('[')?.split_once("] \"")?;
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_suffix('"')?;
    (is_index && !text.contains('"')).then_some(text)
}

/// `I0102 10:02:03.123456 1400 train.py:140] message`.
fn without_glog(line: &str) -> Option<&str> {
    let digits = line.strip_prefix(['I', 'W', 'E', 'F'])?;
    let is_date = digits.len() > 5 && digits.bytes().take(4).all(|byte| byte.is_ascii_digit());
    let behind = digits.get(4..)?.trim_start();
    clock_at(behind).filter(|_| is_date)?;
    line.split_once("] ").map(|(_, message)| message)
}

/// `[INFO|trainer.py:1626] 2026-01-02 10:02:03,123 >> message`, `[2026-01-02 10:02:03] message`, `[rank0]: message`.
fn without_brackets(line: &str) -> Option<&str> {
    let (inside, behind) = line.strip_prefix('[')?.split_once(']')?;
    let first = inside.split(['|', ' ', ':']).next().unwrap_or_default();
    let is_rank = inside.len() < 16 && inside.to_ascii_lowercase().starts_with("rank");
    let is_place = inside.contains(".py:")
        || inside.contains(".cc:")
        || inside.contains(".cpp:")
        || inside.contains(", rank=")
        || is_line_of_module(inside);
    let is_clock =
        || inside.match_indices(':').any(|(at, _)| at >= 2 && clock_at(&inside[at - 2..]).is_some());
    let is_host = || {
        let is_name = inside.contains(char::is_alphabetic) && !inside.contains(['=', ' ']);
        is_name && without_date(behind.trim_start()).is_some()
    };
    if !(is_rank || is_place || LEVELS.contains(&first) || (inside.is_ascii() && is_clock()) || is_host()) {
        return None;
    }
    let behind = behind.strip_prefix(':').unwrap_or(behind);
    let behind = without_process(behind).filter(|_| inside.is_ascii() && is_clock()).unwrap_or(behind);
    let arrow = behind.split_once(">> ").filter(|(before, _)| before.len() < 40);
    Some(arrow.map_or(behind, |(_, message)| message))
}

/// What is behind the number of a process right behind a date: `[2026-01-02 10:02:03,123][4711] message`.
fn without_process(behind: &str) -> Option<&str> {
    let (number, message) = behind.strip_prefix('[')?.split_once("] ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(message)
}

/// What only follows another part.
fn without_place(line: &str) -> Option<&str> {
    without_parentheses(line).or_else(|| without_named_level(line)).or_else(|| without_fields(line))
}

/// The name of a logger or a host before a date: `Training: 2026-01-02 10:02:03,123-message`,
/// `node-3 2026-01-02 10:02:03 message`. One that names another part of the data than the training is of the message.
fn without_logger(line: &str) -> Option<&str> {
    let begins_with_letter = line.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let (name, behind) = Some(line).filter(|_| begins_with_letter)?.split_once(' ')?;
    let begins_with_date = matches!(behind.as_bytes(), [b'0'..=b'9', b'0'..=b'9', ..]);
    let name = Some(name).filter(|_| begins_with_date)?.trim_end_matches(':');
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || "_.-/".contains(letter));
    let is_measured = names::meaning_of(&name.to_lowercase()) != Meaning::Any;
    without_date(behind).filter(|_| is_name && !is_measured && names::whose_line(name).is_none())
}

/// Fields before a level: `node01:0\tolmo.train:908\tINFO\tmessage`, `node01:0 olmo.train:908 INFO message`. Between
/// blanks they have a sign in their names.
fn without_fields(line: &str) -> Option<&str> {
    // Most messages begin with a word.
    let first = line.split([' ', '\t']).next()?;
    let is_tabbed = line.as_bytes().get(first.len()) == Some(&b'\t');
    let mut rest = line;
    for _ in 0..=FIELDS_MAX {
        let (field, behind) = if is_tabbed { rest.split_once('\t')? } else { rest.split_once(' ')? };
        if rest.len() < line.len() && field.len() > 1 && LEVELS.contains(&field.trim_end()) {
            return Some(behind);
        }
        let is_named = |field: &str| field.contains([':', '.', '-']) && !field.contains(['=', '{', '[']);
        if !is_tabbed && !is_named(field.trim_end_matches(':')) {
            return None;
        }
        rest = behind.trim_start_matches(' ');
    }
    None
}

/// `ppdet.engine INFO: message`
fn without_named_level(line: &str) -> Option<&str> {
    let (name, behind) = line.split_once(' ')?;
    let (level, message) = behind.split_once(": ")?;
    let is_name =
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "_.".contains(letter));
    (is_name && LEVELS.contains(&level)).then_some(message)
}

/// `(0/4) message` of one process of several, `(trainer:762) INFO: message`, `(main.py 191): INFO message`; only behind
/// another part, as `(2/10) loss 0.5` alone is a place.
fn without_parentheses(line: &str) -> Option<&str> {
    let (inside, behind) = line.strip_prefix('(')?.split_once(')')?;
    let behind = behind.strip_prefix(':').unwrap_or(behind);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_rank = inside.split_once('/').is_some_and(|(rank, of)| is_number(rank) && is_number(of));
    let is_in_script = |(name, line): (&str, &str)| name.ends_with(".py") && is_number(line);
    let is_place = inside.split_once(' ').is_some_and(is_in_script)
        || inside.split_once(':').is_some_and(|(name, line)| {
            let is_module = !name.is_empty()
                && name.chars().all(|letter| letter.is_alphanumeric() || "_.-".contains(letter));
            let is_counted =
                names::meaning_of(name) != Meaning::Any || names::place_of(&[name], name).is_some();
            is_module && !is_counted && is_number(line)
        });
    (is_rank || is_place).then_some(behind)
}

/// `olmo.train:967`
fn is_line_of_module(inside: &str) -> bool {
    let Some((name, line)) = inside.split_once(':') else { return false };
    let is_module =
        name.contains('.') && name.chars().all(|letter| letter.is_alphabetic() || "_.".contains(letter));
    is_module && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// `2026-01-02 10:02:03,123 - message`, `08/21 02:58:41 | message`.
fn without_date(line: &str) -> Option<&str> {
    let digits = line.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '-' | '/'))?;
    let date = &line[..digits];
    let behind = line[digits..].trim_start_matches([' ', 'T', '_', ',']);
    if !matches!(date.len(), 5 | 8 | 10) || !date.contains(['-', '/']) {
        return None;
    }
    let clock = clock_at(behind).or_else(|| clock_at(behind.get(..8)?))?;
    Some(behind[clock..].trim_start_matches(['Z', ' ', '-', '|', ':', ',', ']']))
}

/// `INFO:root:message`, `mmengine - INFO - message`, `INFO | message`.
fn without_level(line: &str) -> Option<&str> {
    let level_at = |text: &str| {
        let end = text.find(|letter: char| !letter.is_ascii_uppercase()).unwrap_or(text.len());
        LEVELS.contains(&&text[..end]).then_some(end).filter(|end| *end > 1)
    };
    if let Some(end) = level_at(line) {
        let behind = &line[end..];
        if let Some((name, message)) = behind.strip_prefix(':').and_then(|rest| rest.split_once(':'))
            && !name.is_empty()
            && !name.contains(' ')
        {
            return Some(message);
        }
        let behind = behind.trim_start_matches([' ', ':', ']']);
        return Some(behind.trim_start_matches(['-', '|']));
    }
    // A search for several letters costs more than that they are missing.
    memchr::memchr(b'-', line.as_bytes())?;
    let (name, behind) = line.split_once(" - ")?;
    (!name.contains(' ') && level_at(behind).is_some()).then_some(behind)
}

/// `__main__ - message`, `fairseq.trainer | message`, `module:function:53 - message`.
fn without_module(message: &str) -> &str {
    let Some((name, behind)) = message.split_once(" - ").or_else(|| message.split_once(" | ")) else {
        return message;
    };
    let is_module = name.contains("__") || name.contains('.') || name.contains(':');
    match !name.is_empty() && !name.contains([' ', '=', '{']) && is_module {
        true => behind.trim_start(),
        false => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the usual forms of logs, and that other lines are not cut.
    #[test]
    fn logs_have_messages() {
        for line in [
            "[INFO|trainer.py:1626] 2026-01-02 10:02:03,123 >>   m 1",
            "[2026-01-02 10:02:03,123] [INFO] [logging.py:96:log_dist] [Rank 0] m 1",
            "I0102 10:02:03.123456 1400 train.py:140] m 1",
            "08/21 02:58:41 - mmengine - INFO - m 1",
            "01/02/2026 10:02:03 - INFO - __main__ -   m 1",
            "[08/21 02:58:41 d2.utils.events]:  m 1",
            "2026-01-02 10:02:03.123 | INFO     | __main__:train:53 - m 1",
            "2026-01-02 10:02:03 | INFO | fairseq.trainer | m 1",
            "[rank0]:2026-01-02 10:02:03,123 - root - INFO - m 1",
            "INFO:tensorflow:m 1",
            "2026-01-02T10:02:03Z m 1",
            "2026-01-02 10:02:03,123 INFO [train.py:1034] (0/4) m 1",
            "[node-3] 2026-01-02 10:02:03,123 (trainer:762) INFO: m 1",
            "[2026-01-02 10:02:03]\tINFO\t[olmo.train:967, rank=0]\tm 1",
            "[2026-01-02 10:02:03 swin](main.py 191): INFO m 1",
            "[2026/01/02 10:02:03] ppocr INFO: m 1",
            "2026-01-02,10:02:03 | INFO | m 1",
            "2026-01-02 10:02:03.123\tnode01:0\tolmo.train:967\tINFO\tm 1",
            "2026-01-02 10:02:03.123 node01:0 olmo.train:967 INFO m 1",
            "2026-01-02 10:02:03,123\tMainThread\tWARNING\tm 1",
            "Training: 2026-01-02 10:02:03,123-m 1",
            "node-3 2026-01-02 10:02:03,123 - INFO - m 1",
            "[2026/01/02 10:02:03] - m 1",
            "[2026-01-02 10:02:03,123][4711] m 1",
            "m 1",
        ] {
            assert_eq!(message_of(line).trim(), "m 1", "{line}");
        }
        for line in [
            "[100] a=1",
            "[1/5] loss 2",
            "Iter 3: loss 1",
            "12:30 loss 1",
            "1-2 - x",
            "I am 1",
            "(2/10) a 1",
            "(trainer:5) a 1",
            "Test: 2026-01-02 10:02:03 m 1",
            "loss 2026-01-02 10:02:03 m 1",
            "node01:0\tINFO\tm 1",
        ] {
            assert_eq!(message_of(line), line);
        }
    }
}
