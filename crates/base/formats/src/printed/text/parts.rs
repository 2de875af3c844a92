//! Which part of the data the values of a line of text are of.

use super::super::NAME_BYTES_MAX;
use crate::printed::lexical::named::LineValues;
use crate::printed::lexical::names::{self, Meaning, is_training, part_of_data};
use crate::printed::lexical::prefix::message_of;
use crate::printed::lexical::tokens::Token;

/// A heading that names a part of the data is not longer.
pub(super) const PART_HEADING_BYTES_MAX: usize = 40;
/// Words beside the part of the data in its heading.
pub(super) const OF_PART_HEADINGS: [&str; 10] =
    ["measures", "metrics", "result", "results", "set", "scores", "performance", "summary", "data", "losses"];
/// Signs that are drawn beside a title, or as a rule above and below it.
pub(super) const DRAWN: &str = "=-*#~_+─━═";
/// A rule has so many signs at least.
const RULE_SIGNS_MIN: usize = 3;
/// Words beside the part of the data in a title, with those of its heading.
pub(super) const OF_TITLES: [&str; 14] = [
    "the", "final", "model", "metric", "score", "report", "phase", "stage", "split", "dataset", "start",
    "starting", "begin", "running",
];
/// Words before the part of the data that something is evaluated on: `Results on the test set`.
pub(super) const BEFORE_PARTS: [&str; 2] = ["on", "for"];
/// So many words are between the word `best` and its colon at most.
const BEST_HEAD_MAX: usize = 3;
/// Words that an evaluation begins with, and the prefix of its values.
pub(super) const EVALUATING: [(&str, &str); 3] =
    [("evaluating", "eval"), ("validating", "val"), ("testing", "test")];
/// The same of a line that says at which step: `validate step: 20  loss: 7.0`.
pub(super) const EVALUATE: [(&str, &str); 2] = [("evaluate", "eval"), ("validate", "val")];
/// Words behind the part of the data that was evaluated: `Evaluating the train set: loss 0.5`, `validation loss on test set`.
pub(super) const BEHIND_PARTS: [&str; 4] = ["set", "data", "dataset", "split"];
/// What an evaluation is said with before the part of the data.
pub(super) const EVALUATED: [&str; 4] = ["evaluating", "evaluation", "evaluate", "eval"];
/// So many words and signs that a line begins with are looked at for the part of the data.
const PART_HEAD_MAX: usize = 12;
/// Signs that decorate a line that says where the script is or what was evaluated.
pub(super) const DECORATION: &str = "-=*#:[]()/|.>,<~+";
/// Words before the part of the data that the values of a line are of.
const OF_PARTS: [&str; 6] = ["phase", "split", "mode", "stage", "subset", "set"];

/// What a line without numbers names as the part of the data that the indented lines below it are of: `validation`,
/// `Measures (Valid):`, `Results on test set`. The training has no prefix. Nothing for any other line.
pub(super) fn plain_part_heading(line: &[u8]) -> Option<Option<&'static str>> {
    if line.len() > PART_HEADING_BYTES_MAX {
        return None;
    }
    part_named(std::str::from_utf8(line).ok()?.trim().trim_end_matches(':'), false)
}

/// Whether a line is nothing but a rule: `=======`, `──────`.
pub(in crate::printed) fn is_rule(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line.trim_ascii()) else { return false };
    let Some(first) = text.chars().next().filter(|first| DRAWN.contains(*first)) else { return false };
    text.chars().all(|letter| letter == first) && text.chars().take(RULE_SIGNS_MIN).count() == RULE_SIGNS_MIN
}

/// Whether a line is one of a drawn box: `│ 0.5 │`, `└─────┘`.
pub(in crate::printed) fn is_of_box(line: &[u8]) -> bool {
    // These letters are those of U+2500 to U+257F.
    matches!(line.trim_ascii_start(), [0xe2, 0x94 | 0x95, ..])
}

/// The title of the box whose top a line is: what is drawn in it, `╭── Validation ──╮`, or the line above it.
pub(in crate::printed) fn title_of_box<'l>(line: &'l [u8], above: &'l [u8]) -> Option<&'l str> {
    /// The first corners of boxes.
    const CORNERS: [char; 4] = ['┌', '┏', '╔', '╭'];
    let line =
        Some(line).filter(|line| is_of_box(line)).and_then(|line| std::str::from_utf8(line).ok())?.trim();
    let is_drawn = |letter: char| matches!(letter, '\u{2500}'..='\u{257f}' | ' ');
    let inside = line.strip_prefix(CORNERS)?.trim_matches(is_drawn);
    if inside.is_empty() { Some(std::str::from_utf8(above).ok()?.trim()) } else { Some(inside) }
}

/// The part of the data that words name and nothing else; the one that something is evaluated on, if they say so:
/// `Evaluation on test set`. Only a title says by a verb that an evaluation begins: any other line may be a message.
pub(super) fn part_named(text: &str, is_title: bool) -> Option<Option<&'static str>> {
    let mut words = text.split([' ', '(', ')', ':']).filter(|word| !word.is_empty()).peekable();
    let is_of_title = is_title || !words.peek()?.ends_with("ing");
    let is_any = |known: &[&str], word: &str| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let of_verb = |word: &str| {
        let mut verbs = EVALUATING.iter().chain(&EVALUATE).filter(|_| is_title);
        verbs.find(|(verb, _)| word.eq_ignore_ascii_case(verb)).map(|(_, part)| Some(*part))
    };
    let (mut found, mut is_on) = (None, false);
    for word in words {
        match part_of_data(word).or_else(|| of_verb(word)) {
            Some(part) if is_on => (found, is_on) = (Some(part.or(Some("train"))), false),
            Some(part) if found.is_none() => found = Some(part),
            None if is_of_title && is_any(&BEFORE_PARTS, word) => is_on = true,
            None if is_any(&OF_PART_HEADINGS, word) || (is_of_title && is_any(&OF_TITLES, word)) => {}
            _ => return None,
        }
    }
    found.filter(|_| !is_on)
}

/// The prefix of values behind a word. A line that begins with `dev loss` has the name already.
fn prefix_of(word: &str) -> Option<&'static str> {
    names::whose_line(word).or((word == "dev").then_some("val"))
}

/// What the values of a part of a line belong to: `loss[ctc=0.5]`, `val [loss: 0.5]`, `[valid] loss=0.5`, `…, validation: loss=0.5`.
#[derive(Default)]
pub(super) struct Scope<'l> {
    /// The name before the brackets.
    group: Option<&'l str>,
    /// The prefix of all values from here on.
    whose: Option<&'static str>,
    pub is_judging: bool,
    /// What follows is said to be of the training.
    pub is_of_training: bool,
    /// What follows was best at another place: `Epoch 3: … | Best so far: epoch 2 val_loss: 0.5`.
    pub is_best: bool,
    /// The prefix counts up to the end of the parentheses: `Test: (loss = 0.5, acc = 91.5)`.
    is_in_parentheses: bool,
}

impl<'l> Scope<'l> {
    pub fn enter(&mut self, tokens: &[Token<'l>], at: usize) {
        use Token::{Other, Word};
        self.is_best |= heads_best(&tokens[at..]);
        let is_whose = |word: &str| is_training(word) || prefix_of(word).is_some();
        match tokens[at..] {
            [Word(name), Other('['), Word(_), Other('=' | ':'), ..]
                if name.len() <= NAME_BYTES_MAX
                    && (is_whose(name) || names::meaning_of(name) == Meaning::Measure) =>
            {
                self.group = Some(name);
            }
            [Other('['), Word(word), Other(']'), ..] | [Other('|'), Word(word), Other('|'), ..]
                if is_whose(word) =>
            {
                self.enter_part(word);
            }
            // `phase: val, loss: 0.5`
            [Word(kind), Other(':' | '='), Word(word), ..] if OF_PARTS.contains(&kind) && is_whose(word) => {
                self.enter_part(word);
            }
            // `train - loss 0.5 - val - loss 0.25`
            [Word(word), Other('-'), Word(_), ..] if is_whose(word) && at > 0 => self.enter_part(word),
            // `(val) loss 0.5`
            [Other('('), Word(word), Other(')'), Word(_), ..]
                if is_whose(word) && (at == 0 || tokens[at - 1].word().is_none()) =>
            {
                self.enter_part(word);
            }
            // `Epoch 1 (valid): loss=0.5`
            [Other('('), Word(word), Other(')'), Other(':'), Word(_), ..] if is_whose(word) => {
                self.enter_part(word);
            }
            // `Evaluating train: loss 0.5`
            [Word(word), Other(':'), Word(_), ..] | [Word(word), Word(_), Other(':'), Word(_), ..]
                if is_training(word) && is_evaluated(tokens, at) =>
            {
                self.whose = Some("train");
            }
            [Word(word), Other(':'), Word(_), ..] if is_whose(word) && (at > 0 || word == "dev") => {
                self.enter_part(word);
            }
            [Word(word), Other(':'), Other('('), Word(_), Other('=' | ':') | Token::Number { .. }, ..]
                if is_whose(word) =>
            {
                self.enter_part(word);
                self.is_in_parentheses = true;
            }
            [Other(')'), ..] if self.is_in_parentheses => {
                (self.whose, self.is_of_training, self.is_in_parentheses) = (None, false, false);
            }
            [Other(']'), ..] => self.group = None,
            _ => {}
        }
        self.is_judging |= self.whose.is_some() || self.group.and_then(prefix_of).is_some();
    }

    fn enter_part(&mut self, word: &str) {
        self.whose = prefix_of(word);
        self.is_of_training = self.whose.is_none();
    }

    /// Gives the name of a value what it belongs to.
    pub fn complete(&self, name: &mut String) {
        if let Some(group) = self.group {
            let last = group.rsplit(['_', '/']).next().unwrap_or(group);
            let of_training = Some("train").filter(|_| is_training(group));
            *name = match prefix_of(group).or(of_training) {
                Some(whose) => names::prefixed(whose, name),
                _ if name == group || name == last => group.to_owned(),
                _ if group == "loss" && names::meaning_of(name) != Meaning::Any => return,
                _ => format!("{group}/{name}"),
            };
        }
        if let Some(whose) = self.whose {
            *name = names::prefixed(whose, name);
        }
        if self.is_best {
            *name = names::prefixed(names::BEST, name);
        }
    }
}

/// Whether the values behind words that begin here are the best ones so far: `Best so far: epoch 2 loss: 0.5`,
/// `Best Iteration 4: HR = 0.67`.
fn heads_best(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let [Word(names::BEST), rest @ ..] = tokens else { return false };
    let belongs = |token: &&Token<'_>| match token {
        Word(word) => !names::names_settings(word),
        token => matches!(token, Number { .. }),
    };
    let words = rest.iter().take(BEST_HEAD_MAX).take_while(belongs).count();
    matches!(rest[words..], [Other(':'), Word(_), ..])
}

/// The part of the data of an evaluation that a line without numbers says begins:
/// `2026-01-02 10:02:03 - INFO - Evaluating top_k_accuracy ...`.
pub(in crate::printed) fn evaluation_heading(line: &[u8]) -> Option<&'static str> {
    if !memchr::memchr_iter(b'g', line).any(|at| line[..at].ends_with(b"tin")) {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?.trim();
    let message =
        Some(message_of(text)).filter(|message| !message.bytes().any(|letter| letter.is_ascii_digit()))?;
    let first = message.split([' ', '.', ':']).next()?;
    let part = EVALUATING.iter().find(|(word, _)| first.eq_ignore_ascii_case(word));
    part.map(|(_, part)| *part).filter(|_| memchr::memmem::find(message.as_bytes(), b"train").is_none())
}

/// Whether a line says that the training continues: `2026-01-02 10:02:03 - INFO - Training`.
pub(in crate::printed) fn heads_training_again(line: &[u8]) -> bool {
    let end = line.iter().rposition(|byte| !matches!(byte, b':' | b'.' | b' ')).map_or(0, |at| at + 1);
    line[..end].ends_with(b"raining")
        && std::str::from_utf8(line).is_ok_and(|line| {
            message_of(line.trim()).trim_end_matches([':', '.', ' ']).eq_ignore_ascii_case("training")
        })
}

/// The prefix of the values of a dict behind a text that ends with the part of the data they are of: `val: {…}`,
/// `test result: {…}`, `best valid: {…}`.
pub(in crate::printed) fn part_before(text: &str) -> Option<String> {
    let mut words = text.split([' ', ':', '(', ')']).rev().filter(|word| !word.is_empty());
    let is_heading = |word: &&str| OF_PART_HEADINGS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let last = words.next()?;
    let last = if is_heading(&last) { words.next()? } else { last };
    let part = part_of_data(last)?;
    let is_best = words.next().is_some_and(|word| word.eq_ignore_ascii_case(names::BEST));
    match (is_best, part) {
        (true, part) => Some(format!("{}_{}", names::BEST, part.unwrap_or("train"))),
        (false, part) => part.map(str::to_owned),
    }
}

/// The prefix of the values of a line that begins with the part of the data that is evaluated: `eval | step: 100 | output: {…}`.
pub(in crate::printed) fn part_of_line(text: &str) -> Option<String> {
    let first = text.trim_start_matches(['|', ' ']).split([' ', '|', ':']).next()?;
    names::whose_line(first).map(str::to_owned)
}

/// Whether a line heads the best values, which are indented below it: `Best model at step 7000:`.
pub(in crate::printed) fn heads_best_values(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let is_head = line.first().is_some_and(|first| matches!(first, b'b' | b'B'))
        && line.len() <= PART_HEADING_BYTES_MAX
        && line.ends_with(b":");
    is_head && line.get(..5).is_some_and(|first| first.eq_ignore_ascii_case(b"best "))
}

/// Takes the values of a measure for two parts of the data: `LOSS train 0.5 valid 0.25`. Whether there are such.
pub(super) fn read_measure_of_parts(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Word};
    let known = named.values.len();
    for window in tokens.windows(5) {
        let [Word(measure), Word(first), Number { value, .. }, Word(second), Number { value: other, .. }] =
            window
        else {
            continue;
        };
        let parts = part_of_data(first).zip(part_of_data(second));
        if let Some((first, second)) = parts.filter(|_| names::meaning_of(measure) == Meaning::Measure) {
            for (part, value) in [(first, *value), (second, *other)] {
                named.take_value(format!("{}_{measure}", part.unwrap_or("train")), value, "");
            }
        }
    }
    named.values.len() > known
}

/// The prefix of all values: `Test set: …`, `Epoch(val) [1][5/10] …`.
pub(super) fn whose_line(tokens: &[Token<'_>]) -> Option<&'static str> {
    // A clock may precede it.
    let is_decoration = |token: &&Token<'_>| matches!(token, Token::Other(sign) if DECORATION.contains(*sign) || sign.is_ascii_digit());
    let tokens = behind_place_in_brackets(tokens);
    match &tokens[tokens.iter().take_while(is_decoration).count()..] {
        [Token::Word(first), Token::Other('('), Token::Word(word), Token::Other(')'), ..] => {
            names::whose_line(word).or_else(|| names::whose_line(first))
        }
        // `validate step: 20  loss: 7.0`
        [Token::Word(word), Token::Word(place), ..] if names::place_of(&[*place], place).is_some() => {
            let known = EVALUATE.iter().chain(&EVALUATING).find(|(known, _)| known == word);
            known.map(|(_, prefix)| *prefix).or_else(|| names::whose_line(word))
        }
        // An Estimator of TensorFlow: `Saving dict for global step 500: accuracy = 0.8, loss = 0.5`
        [Token::Word("saving"), Token::Word("dict"), Token::Word("for"), ..] => Some("eval"),
        // WeNet's cross validation.
        [Token::Word("cv"), Token::Word("batch"), ..] => Some("val"),
        [Token::Word(word), rest @ ..] => {
            names::whose_line(word).map(|prefix| part_evaluated(rest).unwrap_or(prefix))
        }
        _ => None,
    }
}

/// What is behind the brackets that a line begins with, if these have numbers: `[0: 10/984] test loss: 2.5`.
fn behind_place_in_brackets<'t, 'l>(tokens: &'t [Token<'l>]) -> &'t [Token<'l>] {
    let [Token::Other('['), place @ ..] = tokens else { return tokens };
    let is_place = |token: &&Token<'_>| matches!(token, Token::Number { .. } | Token::Other('/' | ':' | ','));
    let behind = &place[place.iter().take(PART_HEAD_MAX).take_while(is_place).count()..];
    if behind.first() == Some(&Token::Other(']')) { behind } else { tokens }
}

/// The part of the data that an evaluation is on: `validation loss at iteration 200 on test set`.
fn part_evaluated(tokens: &[Token<'_>]) -> Option<&'static str> {
    use Token::Word;
    let head = &tokens[..tokens.len().min(PART_HEAD_MAX)];
    let part = head.windows(4).find_map(|window| match window {
        [Word("on"), Word("the"), Word(part), Word(data)] | [Word("on"), Word(part), Word(data), _] => {
            Some((*part, *data))
        }
        _ => None,
    });
    let (part, _) = part.filter(|(_, data)| BEHIND_PARTS.contains(data))?;
    names::part_of_data(part).map(|part| part.unwrap_or("train"))
}

/// Whether the word at this place is what an evaluation is said to be on: `Evaluating train: …`, `evaluation on the train set: …`.
fn is_evaluated(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::Word;
    let is_head = matches!(tokens.get(at + 1), Some(Token::Other(':')))
        || tokens.get(at + 1).and_then(Token::word).is_some_and(|word| BEHIND_PARTS.contains(&word));
    let before = tokens[..at].iter().rev().find_map(|token| match token {
        Word("on" | "the") => None,
        token => Some(token.word()),
    });
    is_head && before.flatten().is_some_and(|word| EVALUATED.contains(&word))
}

/// Whether a line repeats what was measured before: `Last accuracy mAP@0.5 = 58.00 %, best = 58.25 %`.
pub(super) fn repeats_last(tokens: &[Token<'_>]) -> bool {
    let is_decoration = |token: &&Token<'_>| matches!(token, Token::Other('-' | '>'));
    let begin = tokens.iter().take_while(is_decoration).count();
    let is_measure = |word: &str| names::meaning_of(word) == Meaning::Measure;
    matches!(
        &tokens[begin..],
        [Token::Word("last"), Token::Word(first), Token::Word(second), ..]
            if is_measure(first) && is_measure(second)
    )
}

/// Whether a line begins with words that head what was measured of the training: `Train Summary | Epoch 1 | loss=0.5`,
/// `Training Results - Epoch: 1 …`.
pub(super) fn heads_training(tokens: &[Token<'_>]) -> bool {
    let [Token::Word(first), Token::Word(second), ..] = tokens else { return false };
    is_training(first) && OF_PART_HEADINGS.contains(second)
}

/// The name that the values of a line belong to which begins with it:
/// `Cosine-Similarity : Pearson: 0.7 Spearman: 0.75`. A loss is the training's.
pub(super) fn head_of_scores<'l>(tokens: &[Token<'l>], values: &[(String, f64)]) -> Option<&'l str> {
    use Token::{Number, Other, Word};
    let [Word(head), Other(':'), Word(_), Other(':' | '='), Number { .. }, ..] = tokens else { return None };
    let is_compound = head.contains(['-', '_']) && !head.contains(|letter: char| letter.is_ascii_digit());
    let is_loss = |(name, _): &(String, f64)| name.contains("loss");
    (is_compound && head.len() <= NAME_BYTES_MAX && !values.iter().any(is_loss)).then_some(head)
}

/// The prefix of all values behind words that head results: `cur metric, acc: 0.5, f1: 0.25` has `cur_metric`.
pub(super) fn head_of_results(tokens: &[Token<'_>]) -> Option<String> {
    let [
        Token::Word(first),
        Token::Word(last),
        Token::Other(','),
        Token::Word(_),
        Token::Other(':' | '='),
        ..,
    ] = tokens
    else {
        return None;
    };
    matches!(*last, "metric" | "metrics" | "result" | "results" | "score" | "scores")
        .then(|| format!("{first}_{last}"))
}
