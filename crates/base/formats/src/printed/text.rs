//! Free text: `step 100: loss 0.5, lr=1e-3`, `| epoch 3 | ppl 828.95`, `Epoch [1/5], Step [100/600], Loss: 0.35`.

use super::commas::{self, Comma};
use super::named::Named;
use super::names::{self, Meaning, Place, is_training};
use super::objects;
use super::tokens::{Decimals, Token, share_of, tokens_of};
use super::tools::{is_of_xgboost, read_beginning, read_espnet};
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// So many words before a number are looked at.
const WORDS_MAX: usize = 6;
/// Larger numbers are no steps.
const STEP_MAX: f64 = 9e15;
/// What follows a number in a sentence about it: `accuracy 0.2 is below the limit`.
const OF_SENTENCES: [&str; 6] = ["is", "was", "below", "exceeds", "exceeded", "fell"];
/// A name of several words without a measure at its end has so many at most.
const PHRASE_WORDS_MAX: usize = 5;
/// A name below a heading has so many words at most.
const HEADED_WORDS_MAX: usize = 5;
/// Words of a line that only says where the script is.
const OF_PLACES: [&str; 23] = [
    "epoch", "ep", "step", "iter", "iteration", "round", "batch", "batches", "train", "training", "starting",
    "start", "begin", "learning", "of", "time", "per-step", "in", "sec", "secs", "seconds", "took",
    "running",
];
/// A heading that names a part of the data is not longer.
const PART_HEADING_BYTES_MAX: usize = 40;
/// Words beside the part of the data in its heading.
const OF_PART_HEADINGS: [&str; 9] =
    ["measures", "metrics", "results", "set", "scores", "performance", "summary", "data", "losses"];
/// Words before the part of the data that the values of a line are of.
const OF_PARTS: [&str; 6] = ["phase", "split", "mode", "stage", "subset", "set"];
/// What is between the name of a value and where it was measured: `loss at step 100: 0.5`.
const BEFORE_PLACES: [&str; 4] = ["at", "after", "for", "in"];
/// Names that are measures where a place follows them: `Cost after iteration 100: 0.5`.
const MEASURED_AT_PLACES: [&str; 5] = ["cost", "error", "energy", "objective", "likelihood"];
/// So many words and signs before it are looked at.
const BEFORE_PLACES_MAX: usize = 16;
/// Signs that decorate such a line.
const DECORATION: &str = "-=*#:[]()/|.>,<~+";
/// Words behind a number that make it a time.
const TIME_UNITS: [&str; 10] =
    ["day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "secs", "ms"];
/// Names and values that alternate are so many words and numbers at most.
const PAIRS_MAX: usize = 96;
/// So many words and signs behind its step are looked at for what says that an evaluation begins.
const HEAD_MAX: usize = 4;
/// So many words and signs of a line are looked at for what says that settings follow.
const SETTINGS_HEAD_MAX: usize = 8;

/// A line as it was printed, in small letters, and its words and numbers.
struct Line<'l> {
    printed: &'l str,
    small: &'l str,
    tokens: &'l [Token<'l>],
}

/// The values of a line of text, with its step; `None` when it is not about training. A line that only says where the
/// script is has no values. `known`: what a comma in a number is, by the lines before.
pub(super) fn read_text(printed: &str, known: Option<Comma>) -> Option<Named> {
    if let Some(rest) = printed.strip_prefix("[CV") {
        return read_fit(rest);
    }
    let printed = undecorated(printed);
    let small = printed.to_lowercase();
    let mut tokens = tokens_of(&small);
    let comma = commas::resolve(&mut tokens, known);
    let line = Line { printed, small: &small, tokens: &tokens };
    let is_drawn = tokens.iter().any(is_block_of_rich);
    let mut named = Named { is_done_round: is_of_xgboost(&small), is_drawn, comma, ..Named::default() };
    let mut measured = read_beginning(&tokens, &mut named) | read_espnet(&small, &mut named);
    read_values_before_names(&tokens, &mut named);
    measured |= read_measure_of_parts(&tokens, &mut named);
    let mut scope = Scope::default();
    for at in 0..tokens.len() {
        scope.enter(&tokens, at);
        let known_values = named.values.len();
        measured |= read_number(&line, at, &mut named);
        named.values[known_values..].iter_mut().for_each(|(name, _)| scope.complete(name));
    }
    named.check_phrases();
    if scope.is_judging && named.is_judging() {
        // How far an evaluation is says nothing about the training.
        (named.position, named.total) = (None, None);
    }
    let episode = named.episode.take().filter(|_| !named.has_place());
    named.step = named.step.or(episode);
    named.part_equal_names();
    let has_place = named.epoch.is_some() && !named.values.is_empty();
    if named.plural_step && !has_place && named.meaning() != Some(Meaning::Measure) {
        named.total_steps = named.total_steps.or(named.step.take());
    }
    if shows_settings(&tokens) {
        return Some(named.into_settings()).filter(|named| named.has_values() || named.total_steps.is_some());
    }
    if !measured && may_begin_with_process(&tokens, printed) {
        return None;
    }
    let about_training = measured || named.step.is_some() || named.epoch.is_some();
    if !about_training {
        named.values.clear();
    }
    if named.values.is_empty() {
        return Some(named).filter(|named| named.total_steps.is_some() || is_place(named, &tokens));
    }
    if let Some(prefix) = whose_line(&tokens) {
        named.counts_evaluation |= named.position.is_some() && named.total.is_some();
        (named.position, named.total) = (None, None);
        for (name, _) in &mut named.values {
            *name = names::prefixed(prefix, name);
        }
    } else if let Some(head) = head_of_results(&tokens) {
        for (name, _) in &mut named.values {
            *name = format!("{head}_{name}");
        }
    }
    Some(named)
}

/// A line below one that only says where the script is, with one value: its name is all the words before it, and may be any with a slash,
/// `throughput/tokens: 512`, or one of a mean, `Mean episode length: 301`. Of an item of a list, which may show the mean beside the value,
/// `| > log_mle: 0.5 (0.75)`, it is any name.
pub(super) fn read_below_heading(printed: &str, is_item: bool, known: Option<Comma>) -> Option<Named> {
    use Token::{Number, Other};
    let small = printed.to_lowercase();
    let mut tokens = tokens_of(&small);
    let comma = commas::resolve(&mut tokens, known);
    let is_bullet = |token: &&Token<'_>| is_item && matches!(token, Other('*' | '-' | '|' | '>'));
    let begin = tokens.iter().take_while(is_bullet).count();
    let end = match &tokens[..] {
        [before @ .., Other('('), Number { .. }, Other(')')] if is_item => before.len(),
        _ => tokens.len(),
    };
    let tokens = &tokens[..end];
    let [before @ .., Other('=' | ':'), Number { decimals, .. }] = tokens.get(begin..)? else { return None };
    let words: Option<Vec<&str>> = before.iter().map(|token| token.word()).collect();
    let words = words.filter(|words| (1..=HEADED_WORDS_MAX).contains(&words.len()))?;
    let is_of_mean = words.len() > 1 && names::is_of_mean(words[0]);
    let is_any = is_item && *decimals != Decimals::None;
    let line = Line { printed, small: &small, tokens };
    let mut named = Named { comma, ..Named::default() };
    read_number(&line, end - 1, &mut named);
    named.phrases.clear();
    let (_, value) = named.values.pop().or_else(|| single_value(tokens).filter(|_| is_of_mean || is_any))?;
    let is_named = is_of_mean
        || is_any
        || words.iter().any(|word| word.contains('/') || names::meaning_of(word) != Meaning::Any);
    let last = line.in_camel_case(words[words.len() - 1]).unwrap_or(words[words.len() - 1]);
    let first = words[..words.len() - 1].iter().map(|word| format!("{word}_"));
    let name = names::plain(first.collect::<String>() + last);
    named.values = vec![(name, value)];
    named.words_before.truncate(1);
    let fits = |name: &str| name.len() <= NAME_BYTES_MAX && names::may_be_metric(name);
    Some(named).filter(|named| is_named && fits(&named.values[0].0))
}

/// What a line without numbers names as the part of the data that the indented lines below it are of: `validation`, `Measures (Valid):`. The training
/// has no prefix. Nothing for any other line.
pub(super) fn part_heading(line: &[u8]) -> Option<Option<&'static str>> {
    if line.len() > PART_HEADING_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?.trim().trim_end_matches(':');
    let mut found = None;
    for word in text.split([' ', '(', ')']).filter(|word| !word.is_empty()) {
        match part_of_data(word) {
            Some(part) if found.is_none() => found = Some(part),
            None if OF_PART_HEADINGS.iter().any(|known| word.eq_ignore_ascii_case(known)) => {}
            _ => return None,
        }
    }
    found
}

/// The prefix of the part of the data that a word names; the training has none.
pub(super) fn part_of_data(word: &str) -> Option<Option<&'static str>> {
    let is_any = |known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let judged = names::whose_line(word).or(is_any(&["dev"]).then_some("val"));
    judged.map(Some).or(is_any(&["train", "training"]).then_some(None))
}

/// Whether the number in brackets that a line without a measure begins with may be that of a process: `[12345] queue: 0.5`. A round has a tab behind it.
fn may_begin_with_process(tokens: &[Token<'_>], printed: &str) -> bool {
    use Token::{Number, Other, Word};
    matches!(tokens, [Other('['), Number { .. }, Other(']'), Word(_), ..]) && !printed.contains("]\t")
}

/// The value of a line that ends with one.
fn single_value(tokens: &[Token<'_>]) -> Option<(String, f64)> {
    match tokens.last() {
        Some(Token::Number { value, decimals, .. }) if *decimals != Decimals::Unclear => {
            Some((String::new(), *value))
        }
        _ => None,
    }
}

/// Whether the text before a dict says that it has settings: `best params {…}`, `config: {…}`, and where nothing in it is measured `Best: 0.9 using {…}`.
pub(super) fn heads_settings(before: &str, is_measured: bool) -> bool {
    let small = before.to_lowercase();
    let words = || {
        small.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
    };
    let last = words().next_back();
    let is_with = matches!(last, Some("using" | "with")) && !is_measured;
    is_with || words().rev().take(3).any(names::names_settings)
}

/// Whether a line of text shows settings: `Namespace(lr=0.1, …)`, `optimizer = dict(lr=0.1, …)`, `args: lr=0.1, …`, `Best parameters: lr=0.1, …`.
fn shows_settings(tokens: &[Token<'_>]) -> bool {
    use Token::{Other, Word};
    let is_head = |token: &Token<'_>| matches!(token, Word(word) if names::names_settings(word));
    let behind_brackets = match tokens {
        [Other('['), Word(_), Other(']'), rest @ ..] => rest,
        _ => tokens,
    };
    let at_begin = match behind_brackets {
        [first, Other('(' | ':' | '=' | '|'), third, ..] => is_head(first) && matches!(third, Word(_)),
        _ => false,
    };
    if let [Word(_), Other('='), Word("dict"), Other('('), ..] | [Word("dict"), Other('('), ..] = tokens {
        return true;
    }
    let first = &tokens[..tokens.len().min(SETTINGS_HEAD_MAX)];
    let is_best = |token: &Token<'_>| matches!(token, Word("best" | "optimal" | "chosen" | "selected"));
    at_begin
        || first
            .windows(2)
            .any(|pair| (is_best(&pair[0]) && is_head(&pair[1])) || pair == [Word("namespace"), Other('(')])
}

/// The prefix of values behind a word. A line that begins with `dev loss` has the name already.
fn prefix_of(word: &str) -> Option<&'static str> {
    names::whose_line(word).or((word == "dev").then_some("val"))
}

/// What the values of a part of a line belong to: `loss[ctc=0.5]`, `val [loss: 0.5]`, `[valid] loss=0.5`, `…, validation: loss=0.5`.
#[derive(Default)]
struct Scope<'l> {
    /// The name before the brackets.
    group: Option<&'l str>,
    /// The prefix of all values from here on.
    whose: Option<&'static str>,
    is_judging: bool,
    /// The prefix counts up to the end of the parentheses: `Test: (loss = 0.5, acc = 91.5)`.
    is_in_parentheses: bool,
}

impl<'l> Scope<'l> {
    fn enter(&mut self, tokens: &[Token<'l>], at: usize) {
        use Token::{Other, Word};
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
                self.whose = prefix_of(word);
            }
            // `phase: val, loss: 0.5`
            [Word(kind), Other(':' | '='), Word(word), ..] if OF_PARTS.contains(&kind) && is_whose(word) => {
                self.whose = prefix_of(word);
            }
            // `train - loss 0.5 - val - loss 0.25`
            [Word(word), Other('-'), Word(_), ..] if is_whose(word) && at > 0 => self.whose = prefix_of(word),
            // `(val) loss 0.5`
            [Other('('), Word(word), Other(')'), Word(_), ..]
                if is_whose(word) && (at == 0 || tokens[at - 1].word().is_none()) =>
            {
                self.whose = prefix_of(word);
            }
            // `Epoch 1 (valid): loss=0.5`
            [Other('('), Word(word), Other(')'), Other(':'), Word(_), ..] if is_whose(word) => {
                self.whose = prefix_of(word);
            }
            [Word(word), Other(':'), Word(_), ..] if is_whose(word) && (at > 0 || word == "dev") => {
                self.whose = prefix_of(word);
            }
            [Word(word), Other(':'), Other('('), Word(_), Other('=' | ':'), ..] if is_whose(word) => {
                (self.whose, self.is_in_parentheses) = (prefix_of(word), true);
            }
            [Other(')'), ..] if self.is_in_parentheses => {
                (self.whose, self.is_in_parentheses) = (None, false)
            }
            [Other(']'), ..] => self.group = None,
            _ => {}
        }
        self.is_judging |= self.whose.is_some() || self.group.and_then(prefix_of).is_some();
    }

    /// Gives the name of a value what it belongs to.
    fn complete(&self, name: &mut String) {
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
    }
}

/// A fit of scikit-learn's searches: only what follows the parameters is measured.
/// `[CV 1/5] END C=0.1, kernel=rbf;, score=(train=0.9, test=0.8) total time= 0.1s`
fn read_fit(line: &str) -> Option<Named> {
    let (_, scores) = line.rsplit_once(';')?;
    let mut named = Named::default();
    let scores = scores.to_lowercase();
    let mut tokens = tokens_of(&scores);
    commas::resolve(&mut tokens, None);
    let line = Line { printed: &scores, small: &scores, tokens: &tokens };
    for at in 0..tokens.len() {
        read_number(&line, at, &mut named);
    }
    for (name, _) in &mut named.values {
        if matches!(&**name, "train" | "test") {
            name.push_str("_score");
        }
    }
    Some(named).filter(|named| named.meaning() == Some(Meaning::Measure))
}

/// Whether a line shows an object by its class, which is none of settings: `LogisticRegression(C=1.0, max_iter=500)` says nothing of the training.
fn is_estimator(printed: &str) -> bool {
    /// How classes of settings end.
    const OF_SETTINGS: [&str; 7] =
        ["Arguments", "Args", "Config", "Namespace", "Options", "Params", "Settings"];
    let Some((class, _)) = printed.split_once('(') else { return false };
    class.starts_with(|letter: char| letter.is_ascii_uppercase())
        && class.chars().all(char::is_alphanumeric)
        && !OF_SETTINGS.iter().any(|end| class.ends_with(end))
}

/// Takes the number at this place with the words before it. Whether it is a measure.
fn read_number(line: &Line<'_>, at: usize, named: &mut Named) -> bool {
    let tokens = line.tokens;
    let Token::Number { value, whole, share, decimals } = tokens[at] else { return false };
    let of = fraction_of(tokens, at);
    if at > 0 && tokens[at - 1] == Token::Other('/') {
        return false;
    }
    if is_epoch_in_brackets(tokens, at) {
        named.epoch = named.epoch.or(whole);
        return false;
    }
    if let Some(name) = name_before_place(tokens, at) {
        named.take_value(name, value, "");
        return true;
    }
    let Some(words) = Words::before(tokens, at) else {
        // `[640/60000 (1%)]` and `| 200/2983 batches |` show the progress.
        let is_rate = matches!(tokens.get(at + 3), Some(Token::Word(unit)) if unit.ends_with("/s"));
        if of.is_some() && named.step.is_none() && !is_rate && !is_behind_share(tokens, at) {
            (named.position, named.total) = (whole, of);
            named.is_place_in_epoch = is_behind_epoch(tokens, at);
        }
        return false;
    };
    match names::place_of(&words.words, &words.name) {
        Some(_) if words.is_listed => {}
        Some(Place::Step) if words.is_after_nan => {}
        // Several lines have it: it is none that begins again.
        Some(Place::Step) if decimals == Decimals::Scaled && of.is_none() && !words.is_plural() => {
            named.take_step_of_training(whole);
        }
        Some(Place::Step) if whole.is_none() && of.is_none() => {
            // `step: 1.00e+01`
            let is_whole = value >= 1.0 && value.fract() == 0.0 && value < STEP_MAX;
            named.take_step(Some(value as u64).filter(|_| is_whole), None);
        }
        Some(Place::Step) if of.is_none() && words.is_of_training() => named.take_step_of_training(whole),
        Some(Place::Step) => {
            named.plural_step |= of.is_none() && named.step.is_none() && words.is_plural();
            if of.is_none() && named.step.is_some() && !words.is_plural() {
                named.take_further_step(whole);
            }
            named.take_step(whole, of);
        }
        Some(Place::Epoch) => {
            named.epoch = named.epoch.or(whole);
            named.part_of_epoch =
                named.part_of_epoch.or(Some(value).filter(|epoch| objects::is_part(*epoch)));
            named.epoch_counted_from_one |= of.is_some() || is_one_of_so_many(tokens, at);
        }
        Some(Place::Total) if words.name == "max_iter" && is_estimator(line.printed) => {}
        Some(Place::Total) => named.total_steps = named.total_steps.or(whole.filter(|steps| *steps > 0)),
        Some(Place::Count) => {}
        None => {
            let written = changed_to(tokens, at).unwrap_or(Written { value, whole, share, of, decimals });
            return read_value(line, at, &words, written, named);
        }
    }
    false
}

/// A number as it is written.
struct Written {
    value: f64,
    whole: Option<u64>,
    /// What it is of 1, if it is written as a percentage.
    share: Option<f64>,
    /// The total behind it.
    of: Option<u64>,
    decimals: Decimals,
}

fn read_value(
    line: &Line<'_>,
    at: usize,
    words: &Words<'_>,
    Written { value, whole, share, of, decimals }: Written,
    named: &mut Named,
) -> bool {
    let (tokens, name) = (line.tokens, &words.name);
    let is_batch = matches!(
        &**name,
        "batch" | "batches" | "train_batch" | "training_batch" | "minibatch" | "mini-batch"
    );
    if is_batch && named.position.is_none() {
        (named.position, named.total, named.counts_batches) = (whole, of, true);
        named.is_place_in_epoch = of.is_some();
        return false;
    }
    if name == "episode" {
        named.episode = named.episode.or(whole);
        return false;
    }
    // `Train: 0 [100/5004 (2%)] Loss: 6.9`
    if matches!(&**name, "train" | "training") && tokens.get(at + 1) == Some(&Token::Other('[')) {
        named.epoch = named.epoch.or(whole);
        return false;
    }
    if of.is_some() && named.step.is_none() && tokens.get(at + 3) != Some(&Token::Word("correct")) {
        // `Train [60/109] loss 0.5`, `train: 12/130 loss 0.5`
        if matches!(&**name, "train" | "training") {
            if named.position.is_none() {
                (named.position, named.total) = (whole, of);
            }
            return false;
        }
        // How far an evaluation is.
        if names::whose_line(name).is_some() {
            named.counts_evaluation = true;
            return false;
        }
    }
    // `bsz: 3500/3250/64` is a list.
    let is_list = of.is_some() && tokens.get(at + 3) == Some(&Token::Other('/'));
    if (decimals == Decimals::Unclear && of.is_none()) || is_list || is_time(tokens, at) {
        return false;
    }
    let printed_name = line.name_in_camel_case(words);
    let has_measure = names::meaning_of(name) != Meaning::Any || printed_name.is_some();
    let is_count = whole.is_some() && share.is_none() && names::needs_decimals(name);
    let measure = has_measure && !is_count && !words.is_after_from;
    // Only in `name=value` and `name: value` may any word be a name, and only a single one.
    let is_sentence = matches!(tokens.get(at + 1), Some(Token::Word(word)) if OF_SENTENCES.contains(word));
    let is_name = (measure && !is_sentence)
        || (words.is_alone && (words.is_assigned || words.is_field(tokens, at)))
        || (decimals == Decimals::Point && words.is_of_pairs(tokens, at));
    let fits = named.values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX;
    if !is_name && fits && of.is_none() {
        // `epoch 1 | train 0.5 | val 0.25`
        let is_part =
            words.words.len() == 1 && part_of_data(name).is_some() && words.is_between_signs(tokens, at);
        if is_part && decimals == Decimals::Point {
            named.take_phrase(name.clone(), value);
            return false;
        }
        // A whole number is a count: `consumed samples: 25600`.
        let is_count = |phrase: &str| decimals == Decimals::None && names::meaning_of(phrase) == Meaning::Any;
        let phrase = words.phrase().filter(|phrase| phrase.len() <= NAME_BYTES_MAX && !is_count(phrase));
        if let Some(phrase) = phrase.filter(|_| names::may_be_metric(name)) {
            named.take_phrase(phrase, value);
        }
        return false;
    }
    if !is_name || !fits || !names::may_be_metric(name) {
        return false;
    }
    let part = whole.map_or(value, |whole| whole as f64);
    let fraction = of.filter(|of| *of > 0).map(|of| part / of as f64);
    let share = share.or_else(|| share_before_sign(tokens, at, value)).filter(|_| names::is_share(name));
    let name = printed_name.unwrap_or_else(|| name.clone());
    let word_before = words.before_name().unwrap_or_default();
    if let Some(value) = value_at_step(tokens, at).filter(|_| name.contains("loss") && named.step.is_none()) {
        // `Train loss 100 0.5`, `Validation loss 100: 0.5`
        named.step = whole;
        named.take_value(name, value, word_before);
        return measure;
    }
    match list_at(tokens, at) {
        Some(_) if names::meaning_of(&name) != Meaning::Measure => return false,
        Some(list) => {
            for (place, value) in list.into_iter().enumerate().take(VALUES_MAX - named.values.len()) {
                named.take_value(format!("{name}_{place}"), value, word_before);
            }
        }
        None => named.take_value(name, fraction.or(share).unwrap_or(value), word_before),
    }
    measure
}

/// Takes values that precede their names, where two parts of the line or more have that form and one of them is a measure:
/// `4.25 avg loss, 0.001 rate`.
fn read_values_before_names(tokens: &[Token<'_>], named: &mut Named) {
    let is_separator = |token: &Token<'_>| matches!(token, Token::Other(',' | ';' | '|'));
    if !tokens.iter().any(is_separator) {
        return;
    }
    let mut found = Vec::new();
    for part in tokens.split(is_separator).take(VALUES_MAX) {
        let [Token::Number { value, decimals: Decimals::Point, .. }, words @ ..] = part else { continue };
        let words: Option<Vec<&str>> = words.iter().map(Token::word).collect();
        let words = words.filter(|words| (1..=PHRASE_WORDS_MAX).contains(&words.len()));
        let is_name = |words: &Vec<&str>| {
            !TIME_UNITS.contains(&words[0])
                && !words.iter().any(|word| names::is_linking(word) || word.contains('/'))
        };
        if let Some(words) = words.filter(is_name) {
            found.push((words.join("_"), *value));
        }
    }
    let is_measured = found.iter().any(|(name, _)| names::meaning_of(name) == Meaning::Measure);
    if found.len() < 2 || !is_measured {
        return;
    }
    for (name, value) in found.into_iter().filter(|(name, _)| name.len() <= NAME_BYTES_MAX) {
        if names::may_be_metric(&name) {
            named.take_phrase(names::plain(name), value);
        }
    }
}

/// Takes the values of a measure for two parts of the data: `LOSS train 0.5 valid 0.25`. Whether there are such.
fn read_measure_of_parts(tokens: &[Token<'_>], named: &mut Named) -> bool {
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

/// The name of a value behind where it was measured: `Training loss (for one batch) at step 200: 1.25`, `Loss after epoch 3: 0.5`.
fn name_before_place(tokens: &[Token<'_>], at: usize) -> Option<String> {
    use Token::{Number, Other, Word};
    let [before @ .., Word(link), Word(place), Number { .. }, Other(':' | '=')] = &tokens[..at] else {
        return None;
    };
    if !BEFORE_PLACES.contains(link)
        || !matches!(names::place_of(&[*place], place), Some(Place::Step | Place::Epoch))
    {
        return None;
    }
    let before = &before[before.len().saturating_sub(BEFORE_PLACES_MAX)..];
    let before = match before {
        [.., Other(')')] => &before[..before.iter().rposition(|token| *token == Other('('))?],
        _ => before,
    };
    let begin = before.iter().rposition(|token| token.word().is_none()).map_or(0, |at| at + 1);
    let words: Vec<&str> =
        before[begin..].iter().rev().take(WORDS_MAX).rev().filter_map(Token::word).collect();
    let (name, _) = names::joined(&words, false)?;
    let is_measure = names::meaning_of(&name) == Meaning::Measure || MEASURED_AT_PLACES.contains(&&*name);
    (is_measure && name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// The value behind an arrow: `learning rate 0.0002 -> 0.0001`.
fn changed_to(tokens: &[Token<'_>], at: usize) -> Option<Written> {
    use Token::{Number, Other};
    let number = match tokens.get(at + 1..)? {
        [Other('-'), Other('>'), number @ Number { .. }, ..] | [Other('→'), number @ Number { .. }, ..] => {
            number
        }
        _ => return None,
    };
    let Number { value, whole, share, decimals } = *number else { return None };
    Some(Written { value, whole, share, of: None, decimals })
}

/// The number with decimals right behind a whole one, which is the step then.
fn value_at_step(tokens: &[Token<'_>], at: usize) -> Option<f64> {
    use Token::{Number, Other};
    let Number { whole: Some(_), share: None, decimals: Decimals::None, .. } = tokens[at] else {
        return None;
    };
    match tokens.get(at + 1..)? {
        [Number { value, decimals: Decimals::Point, .. }, ..]
        | [Other(':'), Number { value, decimals: Decimals::Point, .. }, ..] => Some(*value),
        _ => None,
    }
}

/// The values of a list in brackets that begins with this number, if it has two or more: `dice [0.8, 0.9]`.
fn list_at(tokens: &[Token<'_>], at: usize) -> Option<Vec<f64>> {
    use Token::{Number, Other};
    let mut values = Vec::new();
    let mut rest = tokens.get(at.checked_sub(1)?..)?.strip_prefix(&[Other('[')])?;
    while let [Number { value, .. }, sign @ Other(',' | ']'), behind @ ..] = rest {
        values.push(*value);
        if *sign == Other(']') {
            return Some(values).filter(|values| values.len() > 1);
        }
        rest = behind;
    }
    None
}

/// Whether the number is one of a time: `time=5 minutes and 3 seconds`.
fn is_time(tokens: &[Token<'_>], at: usize) -> bool {
    let is_unit = matches!(tokens.get(at + 1), Some(Token::Word(word)) if TIME_UNITS.contains(word));
    is_unit && !matches!(tokens.get(at + 2), Some(Token::Number { .. } | Token::Other('=' | ':')))
}

/// `71.5 %`
fn share_before_sign(tokens: &[Token<'_>], at: usize, value: f64) -> Option<f64> {
    let sign = tokens.get(at + 1) == Some(&Token::Other('%'));
    sign.then(|| share_of(&format!("{value}%"))).flatten()
}

/// A number that is the first part of `640/60000`.
fn fraction_of(tokens: &[Token<'_>], at: usize) -> Option<u64> {
    match (tokens.get(at + 1), tokens.get(at + 2)) {
        (Some(Token::Other('/')), Some(Token::Number { whole, .. })) => *whole,
        _ => None,
    }
}

/// Whether a fraction is the one that a percentage shows: `Acc: 45.1% (451/1000)`.
fn is_behind_share(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(&tokens[..at], [.., Token::Number { share: Some(_), .. }, Token::Other('(')])
}

/// `4 of 6`.
fn is_one_of_so_many(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens.get(at + 1..at + 3), Some([Token::Word("of"), Token::Number { whole: Some(_), .. }]))
}

/// `[3][190/794]`, `[3/30][190/794]`: the epoch before the place in it.
fn is_epoch_in_brackets(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other};
    let is_begin = at > 0 && tokens[at - 1] == Other('[');
    let is_place = |at: usize| {
        matches!(tokens.get(at..at + 4), Some([Other(']'), Other('['), Number { .. }, Other('/')]))
    };
    let of_epochs = matches!(tokens.get(at + 1..at + 3), Some([Other('/'), Number { .. }]));
    // `Step/Epoch [20/1][20/1234]`
    if at > 1 && tokens[at - 2] == Token::Word("step/epoch") {
        return false;
    }
    is_begin && if of_epochs { !is_named_epoch(tokens, at) && is_place(at + 3) } else { is_place(at + 1) }
}

/// Whether the word for an epoch is before the brackets: `Epoch [3/30]`.
fn is_named_epoch(tokens: &[Token<'_>], at: usize) -> bool {
    let word = at.checked_sub(2).and_then(|at| tokens[at].word());
    word.is_some_and(|word| names::place_of(&[word], word) == Some(Place::Epoch))
}

/// Whether the count in brackets at this place is right behind the epoch, and so of it: `Epoch: [0] [ 20/1000]`, `Train Epoch: 2 [640/60000 (1%)]`.
fn is_behind_epoch(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other};
    let [before @ .., Other('[')] = &tokens[..at] else { return false };
    let before = before.strip_suffix(&[Other(']')]).unwrap_or(before);
    let number = match before {
        [.., Number { .. }, Other('/'), Number { .. }] => before.len() - 3,
        [.., Number { .. }] => before.len() - 1,
        _ => return false,
    };
    let is_epoch = |words: Words<'_>| {
        names::place_of(&words.words, &words.name) == Some(Place::Epoch) || is_training(&words.name)
    };
    is_epoch_in_brackets(tokens, number) || Words::before(tokens, number).is_some_and(is_epoch)
}

impl Line<'_> {
    /// The name as it was printed, where only the cases of its letters show the measure in it.
    fn name_in_camel_case(&self, words: &Words<'_>) -> Option<String> {
        let word = words.words.last().filter(|word| word.contains('/'))?;
        let before = words.name.strip_suffix(word)?;
        self.in_camel_case(word).map(|printed| format!("{before}{printed}"))
    }

    /// A word of the line as it was printed, if it has a measure then and has none in small letters.
    fn in_camel_case(&self, word: &str) -> Option<&str> {
        let at = (word.as_ptr() as usize).checked_sub(self.small.as_ptr() as usize)?;
        let printed =
            self.printed.get(at..at + word.len()).filter(|printed| printed.eq_ignore_ascii_case(word))?;
        let is_new = names::meaning_of(word) == Meaning::Any && names::has_measure_in_camel_case(printed);
        is_new.then_some(printed)
    }
}

/// The words right before a number.
struct Words<'a> {
    words: Vec<&'a str>,
    /// The name that they make.
    name: String,
    /// `=` or `:` is between them and the number.
    is_assigned: bool,
    /// All of them are in the name.
    is_alone: bool,
    /// How many words are before the name.
    left: usize,
    /// `from score 0.5` is a sentence.
    is_after_from: bool,
    /// `nan iterations: 0` is a count.
    is_after_nan: bool,
    /// The number is the first of a list behind a sign: `loss: [0.5, 0.25]`.
    is_listed: bool,
    /// The last word in the parentheses behind the name.
    explanation: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn before(tokens: &[Token<'a>], at: usize) -> Option<Self> {
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
        let in_brackets = end < at && sign(at) == Other('[') && tokens.get(at + 1) == Some(&Other(']'));
        if (in_brackets || is_listed) && matches!(sign(end), Other('=' | ':')) {
            (is_equals, is_assigned) = (sign(end) == Other('='), true);
            end -= 1;
        }
        let mut begin = end;
        while begin > 0 && end - begin < WORDS_MAX && matches!(tokens[begin - 1], Token::Word(_)) {
            begin -= 1;
        }
        let word = |token: &Token<'a>| match token {
            Token::Word(word) => Some(*word),
            _ => None,
        };
        let words: Vec<&str> = tokens[begin..end].iter().filter_map(word).collect();
        let (mut name, mut left) = names::joined(&words, is_equals)?;
        if let Some(part) =
            left.checked_sub(1).map(|last| words[last]).filter(|part| names::is_part_of(part, &name))
        {
            name = format!("{part}_{name}");
            left -= 1;
        }
        // `loss train: 0.5`
        if let Some(measure) = left.checked_sub(1).map(|last| words[last]).filter(|_| {
            is_assigned && !is_equals && (is_training(&name) || names::whose_line(&name).is_some())
        }) && names::meaning_of(measure) == Meaning::Measure
        {
            name = format!("{measure}_{name}");
            left -= 1;
        }
        // `loss (valid): 0.5`
        if let Some(part) = explanation.and_then(part_of_data) {
            name = names::prefixed(part.unwrap_or("train"), &name);
        }
        let from = words.len() > 1 && words[words.len() - 2] == "from";
        let nan = begin > 0 && matches!(tokens[begin - 1], Token::Number { value, .. } if value.is_nan());
        Some(Self {
            words,
            name,
            is_assigned,
            is_alone: left == 0,
            left,
            is_after_from: from,
            is_after_nan: nan && begin > 1 && matches!(tokens[begin - 2], Token::Word(_)),
            is_listed,
            explanation,
        })
    }

    /// The name that all the words before the sign make, whatever they are: `Gen Loss Total : 1.25`, `Logit Scale: 14.25`. Those of a sentence make none.
    fn phrase(&self) -> Option<String> {
        let is_name =
            self.is_assigned && !self.is_listed && (2..=PHRASE_WORDS_MAX).contains(&self.words.len());
        let is_other = |word: &&str| names::is_linking(word) || *word == "time";
        (is_name && !self.words.iter().any(is_other)).then(|| self.words.join("_"))
    }

    /// Whether the word and the number are alone between two signs, or a sign and an end of the line.
    fn is_between_signs(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_sign = |token: Option<&Token<'_>>| matches!(token, None | Some(Token::Other('|' | ',' | ';')));
        let before = at.checked_sub(self.words.len() + 1).map(|before| &tokens[before]);
        is_sign(before) && is_sign(tokens.get(at + 1))
    }

    /// `: Cost 8.75 :`, as Marian separates its fields.
    fn is_field(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_colon = |at: Option<usize>| at.and_then(|at| tokens.get(at)) == Some(&Token::Other(':'));
        // Marian multiplies a cost by the number of labels.
        let is_end = is_colon(Some(at + 1)) || tokens.get(at + 1) == Some(&Token::Other('*'));
        self.words.len() == 1 && is_colon(at.checked_sub(2)) && is_end
    }

    /// Whether names and values alternate here from one sign to another or to the ends of the line, two pairs at least of which one has a measure or is a
    /// step: `L1 0.04 PSNR 23.1`. Of a number with a unit nothing is read there.
    fn is_of_pairs(&self, tokens: &[Token<'_>], at: usize) -> bool {
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
    fn before_name(&self) -> Option<&'a str> {
        self.explanation.or_else(|| self.left.checked_sub(1).map(|last| self.words[last]))
    }

    /// `global_step`, `global step`, `num_updates`: not the step of an epoch.
    fn is_of_training(&self) -> bool {
        let last = self.words.last().copied().unwrap_or_default();
        names::is_number_of_step(last)
            || last.starts_with("global_")
            || self.words.iter().rev().nth(1) == Some(&"global")
    }

    fn is_plural(&self) -> bool {
        self.words.last().is_some_and(|word| names::is_plural(word))
    }
}

/// Where the parentheses begin that explain the measure before them, and their last word: `mean average precision (mAP@0.50)`, `f1 (micro avg)`.
fn explained_measure<'a>(tokens: &[Token<'a>]) -> Option<(usize, &'a str)> {
    use Token::{Other, Word};
    let (before, explanation) = match tokens {
        [before @ .., Other('('), Word(explanation), Other(')')]
        | [before @ .., Other('('), Word(_), Word(explanation), Other(')')] => (before, *explanation),
        _ => return None,
    };
    let [others @ .., Word(measure)] = before else { return None };
    let is_measure = match names::meaning_of(measure) {
        Meaning::Measure => true,
        Meaning::Setting => matches!(others.last(), Some(Word(_))),
        Meaning::Any => false,
    };
    is_measure.then_some((before.len(), explanation))
}

/// The prefix of all values: `Test set: …`, `Epoch(val) [1][5/10] …`.
fn whose_line(tokens: &[Token<'_>]) -> Option<&'static str> {
    let is_decoration =
        |token: &&Token<'_>| matches!(token, Token::Other(sign) if DECORATION.contains(*sign));
    match &tokens[tokens.iter().take_while(is_decoration).count()..] {
        [Token::Word(_), Token::Other('('), Token::Word(word), Token::Other(')'), ..] => {
            names::whose_line(word)
        }
        // WeNet's cross validation.
        [Token::Word("cv"), Token::Word("batch"), ..] => Some("val"),
        [Token::Word(word), ..] => names::whose_line(word),
        _ => None,
    }
}

/// The prefix of all values behind words that head results: `cur metric, acc: 0.5, f1: 0.25` has `cur_metric`.
fn head_of_results(tokens: &[Token<'_>]) -> Option<String> {
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

/// A line without rules that touch its words: `---Epoch 3---`.
fn undecorated(printed: &str) -> &str {
    let is_rule = |sign: char| matches!(sign, '-' | '_' | '+' | '~');
    let (behind, before) = (printed.trim_start_matches(is_rule), printed.trim_end_matches(is_rule));
    let has_rules = printed.len() - behind.len() > 1 && printed.len() - before.len() > 1;
    if has_rules { printed.trim_matches(is_rule) } else { printed }
}

/// What Rich draws bars of.
fn is_block_of_rich(token: &Token<'_>) -> bool {
    matches!(token, Token::Other('━' | '╸' | '╺'))
}

/// Whether a line says where the script is and nothing else: `-- Epoch 3`, `=== epoch 4 of 6 ===`, `Epoch 0/24`, `[step=10/5000]`, `[epoch=0/1][batch=10/100]:`.
fn is_place(named: &Named, tokens: &[Token<'_>]) -> bool {
    let says_no_more = |token: &Token<'_>| match token {
        Token::Word(word) => OF_PLACES.contains(word) || names::place_of(&[*word], word) == Some(Place::Step),
        Token::Number { .. } => true,
        Token::Grouped(_) => false,
        // A clock or a number with a unit.
        Token::Other(sign) => DECORATION.contains(*sign) || !sign.is_ascii() || sign.is_ascii_digit(),
    };
    let is_step = |token: &Token<'_>| matches!(token, Token::Word(word) if names::place_of(&[*word], word) == Some(Place::Step));
    let counts_steps = named.position.is_some() && tokens.iter().any(is_step);
    let says_place = named.step.is_some() || named.epoch.is_some() || counts_steps;
    // A bar of Rich without values: `Epoch 0/2 ━━━━ 10/10 0:00:01 • 0:00:00`.
    let is_drawn = named.epoch.is_some() && named.position.is_some() && named.is_drawn;
    is_drawn || heads_evaluation(named, tokens) || (says_place && tokens.iter().all(says_no_more))
}

/// Whether a line says that an evaluation begins at a step: `Iteration 500, Testing net (#0)`.
fn heads_evaluation(named: &Named, tokens: &[Token<'_>]) -> bool {
    let [Token::Word(first), Token::Number { whole: Some(_), .. }, rest @ ..] = tokens else { return false };
    let is_evaluating = |token: &Token<'_>| {
        token.word().is_some_and(|word| {
            names::whose_line(word).is_some() || matches!(word, "evaluating" | "validating")
        })
    };
    let is_step = names::place_of(&[*first], first) == Some(Place::Step);
    is_step && named.step.is_some() && rest.iter().take(HEAD_MAX).any(is_evaluating)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (Option<u64>, Option<u64>, Option<(u64, u64)>, Vec<(String, f64)>);

    fn read(line: &str) -> Option<Read> {
        let named = read_text(line, None)?;
        Some((named.step, named.epoch, named.position.zip(named.total), named.values))
    }

    fn values(values: &[(&str, f64)]) -> Vec<(String, f64)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    /// Proves the forms that training scripts print, each with its step and the names that mean the same.
    #[test]
    fn lines_of_training_scripts() {
        let cases: [(&str, Read); 12] = [
            (
                "step 10: train loss 4.1, val loss 4.2",
                (Some(10), None, None, values(&[("train_loss", 4.1), ("val_loss", 4.2)])),
            ),
            (
                "iter 10: loss 4.1, time 23.40ms, mfu 3.5%",
                (Some(10), None, None, values(&[("loss", 4.1), ("mfu", 3.5)])),
            ),
            (
                "2026-11-22 04:34:42,036 [INFO] root: step=101 loss=1.99 lr=1.00e-04 tokens_per_second=12",
                (
                    Some(101),
                    None,
                    None,
                    values(&[("loss", 1.99), ("learning_rate", 1e-4), ("tokens_per_second", 12.0)]),
                ),
            ),
            (
                "Epoch [1/5], Step [100/600], Loss: 0.35",
                (None, Some(1), Some((100, 600)), values(&[("loss", 0.35)])),
            ),
            (
                "Train Epoch: 2 [640/60000 (1%)]\tLoss: 1.5",
                (None, Some(2), Some((640, 60_000)), values(&[("loss", 1.5)])),
            ),
            (
                "| epoch 3 | 200/2983 batches | lr 5.00 | ms/batch 12.34 | loss 6.72 | ppl 828.95",
                (
                    None,
                    Some(3),
                    Some((200, 2983)),
                    values(&[("learning_rate", 5.0), ("loss", 6.72), ("ppl", 828.95)]),
                ),
            ),
            (
                "Test set: Average loss: 0.05, Accuracy: 9834/10000 (98%)",
                (None, None, None, values(&[("test_average_loss", 0.05), ("test_accuracy", 0.9834)])),
            ),
            ("Epoch: 4  Loss: inf", (None, Some(4), None, values(&[("loss", f64::INFINITY)]))),
            ("loss=0.5, grad norm: 2.0.", (None, None, None, values(&[("loss", 0.5), ("grad_norm", 2.0)]))),
            (
                "[5]\ttraining's l2: 1\tvalid_1's mse: 0.3",
                (Some(5), None, None, values(&[("training_l2", 1.0), ("valid_1_mse", 0.3)])),
            ),
            (
                "[100]\ttrain-logloss:0.2\teval-logloss:0.3",
                (Some(100), None, None, values(&[("train-logloss", 0.2), ("eval-logloss", 0.3)])),
            ),
            ("Validation | accuracy = 91.5%", (None, None, None, values(&[("val_accuracy", 0.915)]))),
        ];
        for (line, expected) in cases {
            assert_eq!(read(line), Some(expected), "{line}");
        }
    }

    /// Proves that other output of scripts is not a metric.
    #[test]
    fn lines_about_something_else() {
        for line in [
            "listening on port=8080 pid=123",
            "number of parameters: 0.12M",
            "done in 12.3s, peak memory 1024 MB",
            "Total params: 5",
            "Epoch 1: val_loss improved from inf to 0.78, saving model",
            "2026-11-22 04:34:42,036 INFO started worker 3",
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total)",
            "  File \"train.py\", line 12, in <module>",
            "== 1/5 ==",
            "",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
