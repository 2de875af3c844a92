//! Titles above results: `==== Evaluation on test set ====`, `## Test results`.

use super::parts::{
    BEFORE_PARTS, BEHIND_PARTS, DRAWN, EVALUATE, EVALUATED, EVALUATING, OF_PART_HEADINGS, OF_TITLES,
    PART_HEADING_BYTES_MAX, part_named, plain_part_heading,
};
use crate::printed::lexical::names::{self, Meaning, is_training, part_of_data};
use crate::printed::lexical::part_name::PartName;
use crate::printed::lexical::prefix::message_of;

/// A title of results is not longer, with the signs that are drawn beside it and what a logger puts before it.
const TITLE_BYTES_MAX: usize = 300;
/// A title that names an evaluation beside any other words has so many at most.
const TITLE_WORDS_MAX: usize = 12;
/// So many words distinguish a part of the data from others at most: `out-of-distribution`.
const DISTINGUISHING_MAX: usize = 3;
/// Words at the end of a title of something else than results: `Evaluation done`, `Test set sizes`.
const OF_OTHER_TITLES: [&str; 20] = [
    "done", "finished", "complete", "completed", "ended", "skipped", "disabled", "saved", "loaded", "passed",
    "failed", "improved", "time", "times", "timing", "timings", "size", "sizes", "shape", "shapes",
];
/// Words that name a part of the data in such a title only where it is said to be one: `Found a valid checkpoint`.
const OF_OTHER_MEANING: [&str; 2] = ["valid", "dev"];
/// Words behind what something is evaluated on: `Evaluation on held-out images after training`.
const BEHIND_EVALUATED: [&str; 5] = ["after", "before", "by", "using", "with"];
/// Words before the part of the data that distinguish it from no other: `Evaluation on the full test set`.
const OF_ANY_PART: [&str; 30] = [
    "a", "an", "all", "each", "every", "both", "our", "my", "its", "full", "whole", "entire", "complete",
    "best", "last", "current", "new", "official", "overall", "same", "checkpoint", "weights", "network",
    "classifier", "trained", "global", "independent", "separate", "heldout", "holdout",
];
/// The same of two words: `held-out test set`.
const BEFORE_OUT: [&str; 2] = ["held", "hold"];

/// Words that say which distribution data are of. In lines that are no titles only these distinguish a part of the data
/// from others of its kind: `OOD test accuracy: 0.74`.
const OF_DISTRIBUTIONS: [&str; 14] = [
    "ood", "id", "iid", "in", "out", "of", "distribution", "clean", "corrupted", "noisy", "shifted",
    "perturbed", "adversarial", "unseen",
];

/// What a line is titled that signs are drawn beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::printed) enum Title {
    /// The part of the data that the lines below it are of.
    Part(Option<PartName>),
    /// The same of one with a number, which may say where the script is or have a value: `Test set (epoch 3)`.
    Numbered(PartName),
    /// Anything else: what was above it has ended.
    Other,
}

/// The title that a line is, also behind what a logger puts before it. One with a number that names no evaluation may
/// say where the script is, and is none.
pub(in crate::printed) fn title_of(line: &[u8]) -> Option<Title> {
    let line = line.trim_ascii();
    let ends_as_drawn = |last: &u8| !last.is_ascii() || DRAWN.as_bytes().contains(last);
    let may_be = line.starts_with(b"##") || line.last().is_some_and(ends_as_drawn);
    if line.len() > TITLE_BYTES_MAX || !may_be {
        return None;
    }
    let message = message_of(std::str::from_utf8(line).ok()?);
    let is_drawn = |letter: char| DRAWN.contains(letter);
    let behind = message.trim_start_matches(is_drawn);
    let title = behind.trim_end_matches(is_drawn);
    let (before, after) = (message.len() - behind.len(), behind.len() - title.len());
    let is_beside = before >= 2 && (after >= 2 || message.starts_with("##"));
    let title = title.trim();
    let is_text = title.starts_with(char::is_alphabetic) && !title.contains(['|', '=']);
    if !is_beside || !is_text {
        return None;
    }
    if title.contains(|letter: char| letter.is_ascii_digit()) {
        return part_of_evaluation(title).map(Title::Numbered);
    }
    let part = part_named(title, true).filter(|_| title.len() <= PART_HEADING_BYTES_MAX);
    let part = part.map(|part| part.map(PartName::from));
    let part = part.or_else(|| part_of_evaluation(title).map(Some));
    Some(part.map_or(Title::Other, Title::Part))
}

/// The part of the data that a line names which may be a title with a rule below it: `Evaluation on OOD test set`.
pub(in crate::printed) fn part_above_rule(line: &[u8]) -> Option<PartName> {
    if line.len() > TITLE_BYTES_MAX {
        return None;
    }
    let title = message_of(std::str::from_utf8(line).ok()?.trim()).trim_end_matches(':');
    let is_text = title.starts_with(char::is_alphabetic)
        && !title.ends_with(['.', '!', ',', ';'])
        && !title.contains(['|', '=', '\t'])
        && !title.contains("  ");
    if is_text { part_of_evaluation(title) } else { None }
}

/// The part of the data that the title of a box names; the training has no prefix.
pub(in crate::printed) fn part_of_box(title: &str) -> Option<Option<PartName>> {
    let part = part_named(title, true).map(|part| part.map(PartName::from));
    part.or_else(|| part_above_rule(title.as_bytes()).map(Some))
}

/// The part of the data that a text names with the distribution of its data: `test_ood` of `OOD test`, `test (OOD)` and
/// `Evaluation on OOD test set`. Nothing for a part without one.
pub(in crate::printed) fn part_of_distribution(text: &str) -> Option<PartName> {
    let may_have = text.len() <= TITLE_BYTES_MAX
        && text
            .split(|letter: char| !letter.is_ascii_alphabetic())
            .any(|word| is_any(&OF_DISTRIBUTIONS, word));
    let part =
        Some(text).filter(|_| may_have).and_then(|text| part_of_evaluation(text.trim_end_matches(':')))?;
    Some(part).filter(|part| names_distribution(part.distinction()))
}

/// What a line without numbers names as the part of the data that the indented lines below it are of, also with the
/// distribution of its data: `Results on OOD test set:`. The training has no prefix.
pub(in crate::printed) fn part_heading(line: &[u8]) -> Option<Option<PartName>> {
    if let Some(part) = plain_part_heading(line) {
        return Some(part.map(PartName::from));
    }
    let heading = line.trim_ascii_end().strip_suffix(b":")?;
    part_of_distribution(std::str::from_utf8(heading).ok()?.trim()).map(Some)
}

/// The same of the words that a line begins with before its first colon, which have no measure, and what is behind them.
pub(super) fn head_of_distribution(line: &str) -> Option<(PartName, &str)> {
    let (head, behind) = line.split_once(':')?;
    let head = head.rsplit(['|', ']']).next().unwrap_or(head).trim();
    let is_measure = |word: &str| names::meaning_of(&word.to_lowercase()) != Meaning::Any;
    let is_other = head.contains(['=', '{']) || head.split([' ', '(', ')']).any(is_measure);
    let part = part_of_distribution(head).filter(|_| !is_other)?;
    Some((part, behind))
}

/// The name of a value with the word right before it or in brackets behind it, where that says which distribution its
/// data are of: `test_ood_accuracy` of `test_accuracy`, `ood_accuracy` of `accuracy`; or with all words before it, where
/// these do: `OOD test set accuracy`.
pub(super) fn with_distribution(name: &str, word: &str, before: &[&str]) -> Option<String> {
    if before.len() > 1
        && let Some(part) = part_of_distribution(&before.join(" "))
    {
        return Some(part.name_of(name));
    }
    let words = word.to_lowercase().replace('-', "_");
    if matches!(&*words, "in" | "of" | "out" | "distribution") || !names_distribution(&words) {
        return None;
    }
    Some(match names::part_before(name) {
        Some(part) => PartName::distinguished(part, &words).name_of(name),
        None => format!("{words}_{name}"),
    })
}

/// Whether words between underscores say which distribution data are of.
fn names_distribution(words: &str) -> bool {
    !words.is_empty() && words.split('_').all(|word| is_any(&OF_DISTRIBUTIONS, word))
}

/// The part of the data of an evaluation that a title names beside any other words, with those that distinguish it:
/// `test_ood` of `Evaluation on OOD test set`, `test` of `Test set (best checkpoint)`. Where only an evaluation is named,
/// it is `eval`: `Evaluation on held-out set`.
fn part_of_evaluation(title: &str) -> Option<PartName> {
    let is_digit = u8::is_ascii_digit;
    let is_number = |part: &[u8]| is_digit(&part[0]) && part[1] == b'.' && is_digit(&part[2]);
    let has_decimals = title.as_bytes().windows(3).any(is_number);
    if has_decimals || title.contains('%') {
        return None;
    }
    let (head, inside) = title.split_once('(').unwrap_or((title, ""));
    let inside = inside.trim_end_matches([')', ':']);
    let words: Vec<&str> =
        head.split([' ', ':', ',', '-']).filter(|word| !word.is_empty()).take(TITLE_WORDS_MAX + 1).collect();
    let (first, last) = (*words.first()?, *words.last()?);
    let last = last.trim_end_matches(['.', '!']).to_lowercase();
    // `Saving the test set`, `Train and test`
    let is_action = first.ends_with("ing") && judged(first).is_none() && !is_any(&OF_TITLES, first);
    let is_other = is_action
        || is_any(&["no", "train", "training"], first)
        || is_any(&OF_OTHER_TITLES, &last)
        || names::names_settings(&last);
    if is_other || words.len() > TITLE_WORDS_MAX {
        return None;
    }
    let found = find_part(&words);
    let part_inside = part_named(inside, false).flatten();
    if matches!(found, None | Some(("eval", _)))
        && let Some(part) = part_inside
    {
        return Some(part.into());
    }
    let (part, at) = found?;
    let before = distinguishing(&words[..at]);
    let is_of_set = part == "eval" && words[at..].iter().any(|word| is_any(&BEHIND_PARTS, word));
    let before = if is_of_set { distinguishing_of_set(&words) } else { before };
    // `Test set (OOD)`, but not `(best checkpoint)`
    let inside = Some(inside).filter(|inside| is_word(inside));
    let inside: Vec<&str> = inside.into_iter().flat_map(|inside| inside.split('-')).collect();
    let said = if before.is_empty() { distinguishing(&inside) } else { before };
    Some(PartName::distinguished(part, &said))
}

/// The part of the data that the words of a title name, and the place of its word: the one that something is evaluated
/// on, or the first.
fn find_part(words: &[&str]) -> Option<(&'static str, usize)> {
    let mut found: Option<(&'static str, usize)> = None;
    let (mut is_on, mut is_trained) = (false, false);
    for (at, word) in words.iter().copied().enumerate() {
        let may_be_part = at == 0 || !is_any(&OF_OTHER_MEANING, word);
        if is_any(&BEFORE_PARTS, word) {
            is_on = true;
        } else if is_any(&BEHIND_EVALUATED, word) {
            is_on = false;
        } else if is_on && let Some(part) = part_of_data(word) {
            return Some((part.unwrap_or("train"), at));
        } else if may_be_part && let Some(part) = judged(word) {
            found = found.filter(|(found, _)| *found != "eval").or(Some((part, at)));
        } else {
            is_trained |= found.is_none() && is_training(&word.to_lowercase());
        }
    }
    found.filter(|_| !is_trained)
}

/// The words before the part of the data that distinguish it from others, between underscores: `ood` of `Evaluation on
/// the OOD`, `out_of_distribution`. None that is before a number, which may count, or before what is done or links
/// others, and not more than a few.
fn distinguishing(before: &[&str]) -> String {
    let on = before.iter().rposition(|word| is_any(&BEFORE_PARTS, word));
    let mut words: Vec<String> = Vec::new();
    for (at, word) in before.iter().enumerate().skip(on.map_or(0, |on| on + 1)) {
        let word = word.to_lowercase();
        let is_of_distribution = before.get(at + 1).is_some_and(|next| is_any(&["distribution"], next));
        let links = on.is_none() && words.is_empty() && names::is_linking(&word) && !is_of_distribution;
        let is_done = word.ends_with("ing") && word.len() > 4;
        // `cifar10`, `Epoch 3`; `Running`; `Results of`, but `in distribution`
        if !is_word(&word) || is_done || links {
            words.clear();
        } else if word == "out" && words.last().is_some_and(|word| is_any(&BEFORE_OUT, word)) {
            words.pop();
        } else if !is_of_any_part(&word) {
            words.push(word);
        }
    }
    if words.len() > DISTINGUISHING_MAX { String::new() } else { words.join("_") }
}

/// The same of a set that something is evaluated on and that is of no part: `ood` of `Evaluation on OOD set`.
fn distinguishing_of_set(words: &[&str]) -> String {
    let end = words.iter().position(|word| is_any(&BEHIND_PARTS, word)).unwrap_or(0);
    let is_on = words[..end].iter().any(|word| is_any(&BEFORE_PARTS, word));
    if is_on { distinguishing(&words[..end]) } else { String::new() }
}

fn is_any(known: &[&str], word: &str) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// The part of the data of an evaluation that a word names.
fn judged(word: &str) -> Option<&'static str> {
    let mut verbs = EVALUATING.iter().chain(&EVALUATE);
    let of_verb = || verbs.find(|(verb, _)| word.eq_ignore_ascii_case(verb)).map(|(_, part)| *part);
    part_of_data(word).flatten().or_else(of_verb)
}

/// Whether a text is nothing but letters, with dashes in between.
fn is_word(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphabetic() || matches!(letter, '-' | '_'))
}

/// Whether a word in small letters says nothing about which data it is.
fn is_of_any_part(word: &str) -> bool {
    let lists: [&[&str]; 6] =
        [&OF_ANY_PART, &OF_PART_HEADINGS, &OF_TITLES, &OF_OTHER_TITLES, &BEHIND_PARTS, &EVALUATED];
    lists.iter().any(|known| is_any(known, word))
        || part_of_data(word).is_some()
        || names::meaning_of(word) == Meaning::Measure
        || names::place_of(&[word], word).is_some()
}
