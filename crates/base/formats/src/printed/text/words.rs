//! The words before a number in a line of text.

use super::super::NAME_BYTES_MAX;
use super::written::{TIME_UNITS, list_at};
use crate::printed::lexical::names::{self, Meaning, Place, is_training};
use crate::printed::lexical::tokens::{Decimals, Token};

/// So many words before a number are looked at.
pub(super) const WORDS_MAX: usize = 6;
/// A name of several words without a measure at its end has so many at most.
pub(super) const PHRASE_WORDS_MAX: usize = 5;
/// So many words and signs are in the parentheses of a name at most.
const CALL_MAX: usize = 10;
/// The explanation of a name whose values are percentages.
const PERCENT: &str = "%";
/// Units in parentheses behind the name of what is measured in them.
const UNITS: [&str; 12] = ["s", "sec", "min", "h", "hr", "mb", "gb", "mib", "gib", "kb", "b", "us"];
/// Words behind the part of the data that say nothing about the measure.
const BESIDE_PARTS: [&str; 12] = [
    "batch", "data", "dataset", "error", "errors", "metric", "metrics", "result", "results", "set", "split",
    "stats",
];
/// Names and values that alternate are so many words and numbers at most.
const PAIRS_MAX: usize = 96;

/// A line as it was printed, in small letters, and its words and numbers.
pub(super) struct Line<'l> {
    pub printed: &'l str,
    pub small: &'l str,
    pub tokens: &'l [Token<'l>],
    /// It is indented below a line that has the place and measures of what it says.
    pub is_continued: bool,
}

impl Line<'_> {
    /// The two words in small letters that a name of two makes where its second begins with a capital: `best test` of `bestTest`.
    pub fn words_of_camel_case(&self, word: &str) -> Option<String> {
        let printed = self.as_printed(word)?;
        let at = 1 + printed.bytes().skip(1).position(|letter| letter.is_ascii_uppercase())?;
        let (first, second) = printed.split_at_checked(at)?;
        Some(format!("{} {}", first.to_ascii_lowercase(), second.to_ascii_lowercase()))
    }

    /// A word of the line as it was printed.
    fn as_printed(&self, word: &str) -> Option<&str> {
        let at = self.offset_of(word)?;
        self.printed.get(at..at + word.len()).filter(|printed| printed.eq_ignore_ascii_case(word))
    }

    /// The name as it was printed, where only the cases of its letters show the measure in it. Without a slash its
    /// words are joined as others are: `learning_rate` of `LearningRate 0.1`. A class has parentheses behind its name,
    /// `LayerNorm(64)`.
    pub fn name_in_camel_case(&self, words: &Words<'_>, at: usize) -> Option<String> {
        let word = words.words.last()?;
        if word.contains('/') {
            let before = words.name.strip_suffix(word)?;
            return self.in_camel_case(word).map(|printed| format!("{before}{printed}"));
        }
        let is_whole = matches!(self.tokens[at], Token::Number { decimals: Decimals::None, value, .. } if value.is_finite());
        let is_class = self.tokens[at - 1] == Token::Other('(');
        let joined = Some(word).filter(|_| !is_class && (words.is_assigned || !is_whole));
        let joined = joined.and_then(|word| self.joined_camel_case(word))?;
        let before = words.name.strip_suffix(word)?;
        Some(names::plain(format!("{before}{joined}")))
    }

    /// The words of a name in letters of two cases, joined, if they have a measure and the name itself has none.
    fn joined_camel_case(&self, word: &str) -> Option<String> {
        let printed = self.as_printed(word)?;
        let bytes = printed.as_bytes();
        let begins =
            |at: usize| at > 0 && bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
        let first = (1..bytes.len()).find(|at| begins(*at))?;
        if names::meaning_of(word) != Meaning::Any {
            return None;
        }
        // `mAcc` is one word, `dLoss` is two.
        if first == 1 && !names::is_part_of(&word[..1], &word[1..]) {
            return None;
        }
        let mut joined = String::with_capacity(word.len() + 4);
        for (at, letter) in printed.char_indices() {
            if begins(at) {
                joined.push('_');
            }
            joined.push(letter.to_ascii_lowercase());
        }
        (names::meaning_of(&joined) != Meaning::Any).then_some(joined)
    }

    /// The name that a call with parentheses makes: `d_g_z` of `D(G(z)): 0.5`. A unit makes none.
    pub fn name_of_call(&self, at: usize) -> Option<String> {
        use Token::{Other, Word};
        let Token::Number { value, decimals, .. } = self.tokens[at] else { return None };
        let [before @ .., Other(')'), Other(':' | '=')] = &self.tokens[..at] else { return None };
        let is_value = decimals == Decimals::Point || !value.is_finite();
        if !is_value || explained_measure(&self.tokens[..at - 1]).is_some() {
            return None;
        }
        let mut depth = 1_usize;
        let length = before.iter().rev().take(CALL_MAX).position(|token| {
            match token {
                Other(')') => depth += 1,
                Other('(') => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        let (head, inside) = before.split_at(before.len() - length - 1);
        let [others @ .., Word(head)] = head else { return None };
        let begin = self.offset_of(head)?;
        // `-log p(x)` is something else than `log p(x)`.
        let is_called = self.small.get(begin + head.len()..)?.starts_with('(')
            && !self.small.get(..begin)?.ends_with("-log ");
        let is_part = |token: &Token<'_>| matches!(token, Word(_) | Other('(' | ')' | ',' | '|' | ';'));
        let words: Vec<&str> = inside.iter().filter_map(Token::word).collect();
        let is_unit = |word: &&str| UNITS.contains(word) || TIME_UNITS.contains(word) || word.contains('/');
        let is_name = is_called
            && inside.iter().all(is_part)
            && !words.is_empty()
            && !words.iter().any(is_unit)
            && names::place_of(&[*head], head).is_none();
        let log = if others.last() == Some(&Word("log")) { "log_" } else { "" };
        let name = format!("{log}{head}_{}", words.join("_"));
        (is_name && name.len() <= NAME_BYTES_MAX && names::may_be_metric(&name)).then_some(name)
    }

    /// Where in the line a word of it begins.
    fn offset_of(&self, word: &str) -> Option<usize> {
        (word.as_ptr() as usize).checked_sub(self.small.as_ptr() as usize)
    }

    /// A word of the line as it was printed, if it has a measure then and has none in small letters.
    pub fn in_camel_case(&self, word: &str) -> Option<&str> {
        let printed = self.as_printed(word)?;
        let is_new = names::meaning_of(word) == Meaning::Any && names::has_measure_in_camel_case(printed);
        is_new.then_some(printed)
    }
}

/// The words right before a number.
pub(super) struct Words<'a> {
    pub words: Vec<&'a str>,
    /// The name that they make.
    pub name: String,
    /// `=` or `:` is between them and the number.
    pub is_assigned: bool,
    /// All of them are in the name.
    pub is_alone: bool,
    /// How many words are before the name.
    pub left: usize,
    /// `from score 0.5` is a sentence.
    pub is_after_from: bool,
    /// `nan iterations: 0` is a count.
    pub is_after_nan: bool,
    /// The number is the first of a list behind a sign: `loss: [0.5, 0.25]`.
    pub is_listed: bool,
    /// The last word in the parentheses behind the name.
    pub explanation: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub fn before(tokens: &[Token<'a>], at: usize) -> Option<Self> {
        let sign = Sign::before(tokens, at);
        let end = sign.begin;
        let mut begin = end;
        while begin > 0 && end - begin < WORDS_MAX && matches!(tokens[begin - 1], Token::Word(_)) {
            begin -= 1;
        }
        let word = |token: &Token<'a>| match token {
            Token::Word(word) => Some(*word),
            _ => None,
        };
        let mut words: Vec<&str> = tokens[begin..end].iter().filter_map(word).collect();
        if end == at && states_measure(&words, tokens[at]) {
            words.pop();
        }
        let (mut name, left) = name_of(tokens, (begin, at), &words, &sign)?;
        // `loss (valid): 0.5`
        if let Some(part) = sign.explanation.and_then(names::part_of_data) {
            name = names::prefixed(part.unwrap_or("train"), &name);
        }
        // `F-score (micro) 0.86`
        if let Some(variant) = sign.explanation.filter(|word| names::is_variant(word)) {
            name = names::with_variant(variant, &name);
        }
        let from = words.len() > 1 && words[words.len() - 2] == "from";
        let nan = begin > 0 && matches!(tokens[begin - 1], Token::Number { value, .. } if value.is_nan());
        Some(Self {
            words,
            name,
            is_assigned: sign.is_assigned,
            is_alone: left == 0,
            left,
            is_after_from: from,
            is_after_nan: nan && begin > 1 && matches!(tokens[begin - 2], Token::Word(_)),
            is_listed: sign.is_listed,
            explanation: sign.explanation,
        })
    }

    /// Whether the word and the number alone are between two signs in a line that has a measure,
    /// `| loss 0.5 | ce 0.25 |`, or continues one that has. A duration, `ms/batch`, does not count, and between commas
    /// a plain word may be one of a sentence: `loss 0.5, kept 1.5, tokens/s 2.5`.
    pub fn is_beside_measure(&self, line: &Line<'_>, at: usize) -> bool {
        if self.words.len() != 1 || !self.is_between_signs(line.tokens, at) || names::is_linking(&self.name) {
            return false;
        }
        let is_measure =
            |token: &Token<'_>| token.word().is_some_and(|word| names::meaning_of(word) == Meaning::Measure);
        let is_plain_word = self.name.chars().all(char::is_alphabetic);
        let is_duration = self.name.split_once('/').is_some_and(|(unit, _)| TIME_UNITS.contains(&unit));
        !is_duration
            && (!is_plain_word || self.is_beside_bar(line.tokens, at))
            && (line.is_continued || line.tokens.iter().any(is_measure))
    }

    /// The name that all the words before the sign make, whatever they are: `Gen Loss Total : 1.25`,
    /// `Logit Scale: 14.25`. Those of a sentence make none.
    pub fn phrase(&self) -> Option<String> {
        let is_name =
            self.is_assigned && !self.is_listed && (2..=PHRASE_WORDS_MAX).contains(&self.words.len());
        let is_other = |word: &&str| names::is_linking(word) || *word == "time";
        (is_name && !self.words.iter().any(is_other)).then(|| self.words.join("_"))
    }

    /// Whether the word and the number are alone between two signs, or a sign and an end of the line.
    pub fn is_between_signs(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_sign =
            |token: Option<&Token<'_>>| matches!(token, None | Some(Token::Other('|' | ',' | ';' | '/')));
        let before = at.checked_sub(self.words.len() + 1).map(|before| &tokens[before]);
        is_sign(before) && is_sign(tokens.get(at + 1))
    }

    fn is_beside_bar(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_bar = |token: Option<&Token<'_>>| token == Some(&Token::Other('|'));
        is_bar(at.checked_sub(self.words.len() + 1).map(|before| &tokens[before]))
            || is_bar(tokens.get(at + 1))
    }

    /// `: Cost 8.75 :`, as Marian separates its fields.
    pub fn is_field(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_colon = |at: Option<usize>| at.and_then(|at| tokens.get(at)) == Some(&Token::Other(':'));
        // Marian multiplies a cost by the number of labels.
        let is_end = is_colon(Some(at + 1)) || tokens.get(at + 1) == Some(&Token::Other('*'));
        self.words.len() == 1 && is_colon(at.checked_sub(2)) && is_end
    }

    /// Whether names and values alternate here from one sign to another or to the ends of the line, two pairs at least
    /// of which one has a measure or is a step: `L1 0.04 PSNR 23.1`. Of a number with a unit nothing is read there.
    pub fn is_of_pairs(&self, tokens: &[Token<'_>], at: usize) -> bool {
        use Token::{Number, Other, Word};
        if self.words.len() != 1 || names::is_linking(&self.name) {
            return false;
        }
        let belongs = |token: &&Token<'_>| matches!(token, Word(_) | Number { .. } | Other('0'..='9'));
        let begin = at - tokens[..at].iter().rev().take(PAIRS_MAX).take_while(belongs).count();
        let end = at + tokens[at..].iter().take(PAIRS_MAX).take_while(belongs).count();
        let is_end = |token: Option<&Token<'_>>| {
            matches!(token, None | Some(Other('|' | ',' | ';' | ':' | '[' | ']' | '(' | ')' | '-')))
        };
        if !is_end(begin.checked_sub(1).map(|before| &tokens[before])) || !is_end(tokens.get(end)) {
            return false;
        }
        let (mut rest, mut pairs, mut is_about_training) = (&tokens[begin..end], 0, false);
        while let [Word(name), behind @ ..] = rest {
            let values = behind.iter().take_while(|token| token.word().is_none()).count();
            if values == 0 {
                return false;
            }
            let is_step = names::place_of(&[*name], name) == Some(Place::Step);
            is_about_training |= is_step || names::meaning_of(name) == Meaning::Measure;
            (rest, pairs) = (&behind[values..], pairs + 1);
        }
        rest.is_empty() && pairs > 1 && is_about_training
    }

    /// The word that distinguishes the name from another one: what explains it, or the word before it.
    pub fn before_name(&self) -> Option<&'a str> {
        let explanation = self.explanation.filter(|explanation| *explanation != PERCENT);
        explanation.or_else(|| self.left.checked_sub(1).map(|last| self.words[last]))
    }

    /// Whether a percent sign in parentheses is behind the name.
    pub fn is_in_percent(&self) -> bool {
        self.explanation == Some(PERCENT)
    }

    /// The name of a measure for each of something: `Average return per training episode: 20.5`.
    pub fn measure_per(&self) -> Option<String> {
        if !self.is_assigned {
            return None;
        }
        let per = self.words.iter().position(|word| *word == "per")?;
        let measure = self.words[..per].last()?;
        let is_measure = names::meaning_of(measure) == Meaning::Measure && per + 1 < self.words.len();
        is_measure.then(|| names::plain(self.words.join("_")))
    }

    /// The names of two values behind words that join them: `mean/median reward 1.5/1.0`.
    pub fn joined_names(&self) -> Option<[String; 2]> {
        let measure = self.words.last()?;
        let (first, second) = names::joined_names(self.words.iter().rev().nth(1)?)?;
        let is_measure = names::meaning_of(measure) == Meaning::Measure;
        is_measure.then(|| [first, second].map(|word| names::plain(format!("{word}_{measure}"))))
    }

    /// `global_step`, `global step`, `num_updates`, `num timesteps`: not the step of an epoch.
    pub fn is_of_training(&self) -> bool {
        let last = self.words.last().copied().unwrap_or_default();
        names::is_number_of_step(last)
            || names::is_number_of_steps_done(&self.words)
            || last.starts_with("global_")
            || self.words.iter().rev().nth(1) == Some(&"global")
    }

    pub fn is_plural(&self) -> bool {
        self.words.last().is_some_and(|word| names::is_plural(word))
    }
}

/// What is between the words and the number.
struct Sign<'a> {
    /// Where it begins: the words end there.
    begin: usize,
    is_equals: bool,
    /// It says that the number is the value: `=` or `:`.
    is_assigned: bool,
    /// The number is the first of a list behind it.
    is_listed: bool,
    /// The last word in the parentheses before it.
    explanation: Option<&'a str>,
}

impl<'a> Sign<'a> {
    fn before(tokens: &[Token<'a>], at: usize) -> Self {
        use Token::Other;
        let mut end = at;
        let sign = |at: usize| if at > 0 { tokens[at - 1] } else { Other(' ') };
        let mut is_equals = sign(end) == Other('=');
        let mut is_assigned = is_equals || sign(end) == Other(':');
        let is_abbreviation = end > 1 && tokens[end - 2..end] == [Token::Word("l.r"), Other('.')];
        if is_abbreviation || matches!(sign(end), Other('=' | ':' | '[' | '(' | '#')) {
            end -= 1;
        }
        // `step#: 30`
        if end < at && end > 1 && sign(end) == Other('#') && is_assigned {
            end -= 1;
        }
        let explained = explained_measure(&tokens[..end]).filter(|_| is_assigned || end == at);
        if let Some((begin, _)) = explained {
            (end, is_equals) = (begin, false);
        }
        let explanation = explained.map(|(_, word)| word);
        // `lr=[1e-05]`, `Epoch: [3]`
        let is_listed = end < at && matches!(sign(end), Other('=' | ':')) && list_at(tokens, at).is_some();
        let in_brackets = end < at && is_alone_in_brackets(tokens, at);
        if (in_brackets || is_listed) && matches!(sign(end), Other('=' | ':')) {
            (is_equals, is_assigned) = (sign(end) == Other('='), true);
            end -= 1;
        }
        Self { begin: end, is_equals, is_assigned, is_listed, explanation }
    }
}

/// The name that the words from `begin` on make of the number, and how many words are before that name.
fn name_of(
    tokens: &[Token<'_>],
    (begin, at): (usize, usize),
    words: &[&str],
    &Sign { is_equals, is_assigned, .. }: &Sign<'_>,
) -> Option<(String, usize)> {
    use Token::Other;
    let (mut name, mut left) = names::joined(words, is_equals)?;
    // `train/CE loss=9.5` alone in a line
    let is_of_path =
        left > 0 && begin == 0 && is_assigned && at + 1 == tokens.len() && words[0].contains('/');
    // `| lm loss: 2.5 |`
    let is_field = left == 1
        && words.len() == 2
        && name == "loss"
        && names::may_name_loss(words[0])
        && begin.checked_sub(1).map(|before| tokens[before]) == Some(Other('|'));
    if is_field || (is_of_path && names::meaning_of(&name) != Meaning::Any) {
        (name, left) = (words.join("_"), 0);
    }
    if let Some(part) =
        left.checked_sub(1).map(|last| words[last]).filter(|part| names::is_part_of(part, &name))
    {
        name = format!("{part}_{name}");
        left -= 1;
    }
    // `loss train: 0.5`
    if let Some(measure) = left
        .checked_sub(1)
        .map(|last| words[last])
        .filter(|_| is_assigned && !is_equals && (is_training(&name) || names::whose_line(&name).is_some()))
        && names::meaning_of(measure) == Meaning::Measure
    {
        name = format!("{measure}_{name}");
        left -= 1;
    }
    // `Train Instance Accuracy: 0.5`
    if is_assigned
        && !is_equals
        && is_begin_of_part(tokens, begin)
        && let Some(whole) = name_with_part(words, left, &name)
    {
        (name, left) = (whole, 0);
    }
    // `| Critic Loss = 0.5 |`
    if is_equals
        && left > 0
        && words.len() <= PHRASE_WORDS_MAX
        && names::meaning_of(&name) == Meaning::Measure
        && is_between_bars(tokens, begin, at)
        && words.iter().all(|word| !names::is_linking(word))
    {
        (name, left) = (names::plain(words.join("_")), 0);
    }
    Some((name, left))
}

/// Whether the words that begin here are not behind others.
fn is_begin_of_part(tokens: &[Token<'_>], begin: usize) -> bool {
    use Token::Other;
    begin == 0 || matches!(tokens[begin - 1], Other('|' | ',' | ';' | '-' | ']' | ')' | '*' | '>' | '='))
}

/// Whether the words that begin here and the number at the other place are alone between bars or ends of the line, one of which is a bar.
fn is_between_bars(tokens: &[Token<'_>], begin: usize, at: usize) -> bool {
    use Token::Other;
    let before = begin.checked_sub(1).map(|before| tokens[before]);
    let behind = tokens.get(at + 1).copied();
    let is_bar = |token| token == Some(Other('|'));
    matches!(before, None | Some(Other('|' | ']')))
        && matches!(behind, None | Some(Other('|')))
        && (is_bar(before) || is_bar(behind))
}

/// The name of a measure with the part of the data and one or two words that say which measure it is: `Test Class Accuracy`.
fn name_with_part(words: &[&str], left: usize, name: &str) -> Option<String> {
    let (part, which) = words.get(..left)?.split_first()?;
    let part = names::part_of_data(part)?.unwrap_or("train");
    let is_which = |word: &&str| {
        names::may_begin_name(word)
            && names::meaning_of(word) == Meaning::Any
            && names::part_of_data(word).is_none()
            && names::place_of(&[*word], word).is_none()
            && !BESIDE_PARTS.contains(word)
    };
    let is_name = matches!(which.len(), 1 | 2) && which.iter().all(is_which);
    let is_measure = names::meaning_of(name) == Meaning::Measure && !names::has_part_of_data(name);
    (is_name && is_measure).then(|| format!("{part}_{}_{name}", which.join("_")))
}

/// Whether the number is the only one in brackets, as of a list or a tuple with one value: `[3]`, `(0.0002,)`.
fn is_alone_in_brackets(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::Other;
    matches!(
        (at.checked_sub(1).map(|before| tokens[before]), &tokens[at + 1..]),
        (Some(Other('[')), [Other(']'), ..] | [Other(','), Other(']'), ..])
            | (Some(Other('(')), [Other(')'), ..] | [Other(','), Other(')'), ..])
    )
}

/// Whether words before a number are a measure and the verb of a sentence about it: `learning rate is 0.001`,
/// `Updating learning rate to 0.0001`.
fn states_measure(words: &[&str], number: Token<'_>) -> bool {
    let [before @ .., verb @ ("is" | "was" | "to")] = words else { return false };
    // `Loss is nan, stopping training` is a reason; the loss was printed before, if it is a metric.
    let is_reason = matches!(number, Token::Number { value, .. } if !value.is_finite());
    let is_whole = matches!(number, Token::Number { decimals: Decimals::None, share: None, value, .. } if value.fract() == 0.0);
    names::joined(before, false).is_some_and(|(name, _)| match *verb {
        "to" => name == "learning_rate",
        _ => names::meaning_of(&name) != Meaning::Any && !is_whole && !is_reason,
    })
}

/// Where the parentheses begin that explain the measure before them, and their last word:
/// `mean average precision (mAP@0.50)`, `f1 (micro avg)`. A percent sign is one too: `Accuracy (%)`.
fn explained_measure<'a>(tokens: &[Token<'a>]) -> Option<(usize, &'a str)> {
    use Token::{Other, Word};
    let (before, explanation) = match tokens {
        [before @ .., Other('('), Word(explanation), Other(')')]
        | [before @ .., Other('('), Word(_), Word(explanation), Other(')')] => (before, *explanation),
        [before @ .., Other('('), Other('%'), Other(')')] => (before, PERCENT),
        _ => return None,
    };
    let [others @ .., Word(measure)] = before else { return None };
    let is_alone = matches!(tokens, [.., Other('('), _, Other(')')]);
    let is_measure = match names::meaning_of(measure) {
        Meaning::Measure => true,
        Meaning::Setting if is_alone && names::is_variant(explanation) => true,
        Meaning::Setting => matches!(others.last(), Some(Word(_))),
        Meaning::Any => false,
    };
    is_measure.then_some((before.len(), explanation))
}
