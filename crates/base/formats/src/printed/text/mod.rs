//! Free text: `step 100: loss 0.5, lr=1e-3`, `| epoch 3 | ppl 828.95`, `Epoch [1/5], Step [100/600], Loss: 0.35`.

mod groups;
mod numbers;
mod parts;
mod places;
mod results;
mod shown;
#[cfg(test)]
mod tests;
mod titles;
mod words;
mod written;

use std::borrow::Cow;

use groups::{name_by_group, take_fold};
use numbers::{read_number, read_values_before_names};
use parts::{
    Scope, head_of_results, head_of_scores, heads_training, read_measure_of_parts, repeats_last, whose_line,
};
pub(super) use parts::{
    evaluation_heading, heads_best_values, heads_training_again, is_of_box, is_rule, part_before,
    part_of_line, title_of_box,
};
use places::{is_place, is_place_of, names_count_of_steps};
use results::read_value_before_name;
pub(super) use shown::heads_settings;
use shown::{shows_object, shows_settings};
use titles::head_of_distribution;
pub(super) use titles::{Title, part_above_rule, part_heading, part_of_box, part_of_distribution, title_of};
use words::Line;

use super::lexical::commas::{self, Comma};
use super::lexical::named::{Beside, LineValues};
use super::lexical::names::{self, Meaning};
use super::lexical::part_name::PartName;
use super::lexical::tokens::{Decimals, Token, tokens_of};
use super::tools::{is_of_xgboost, read_beginning, read_espnet, read_short_names};
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// Settings that an evaluation generates text with.
const OF_GENERATION: [&str; 5] = ["num_beams", "repetition_penalty", "temperature", "top_k", "top_p"];
/// A name below a heading has so many words at most.
const HEADED_WORDS_MAX: usize = 5;

/// The values of a line of text, with its step; `None` when it is not about training. A line that only says where the
/// script is has no values. `known`: what a comma in a number is, by the lines before.
pub(super) fn read_text(printed: &str, known: Option<Comma>) -> Option<LineValues> {
    read_line(printed, known, Kind::Whole)
}

/// What is before a dict in a line: it says where the script is beside any other words.
pub(super) fn read_before_dict(printed: &str) -> Option<LineValues> {
    read_line(printed, None, Kind::BeforeDict)
}

/// A line that is indented below one with a place and measures, and continues what that one says: its values may have
/// any name, where they have decimals. Nothing for one with a step or an epoch.
pub(super) fn read_continued(printed: &str, known: Option<Comma>) -> Option<LineValues> {
    let named =
        read_line(printed, known, Kind::Continued).filter(|named| named.step.or(named.epoch).is_none())?;
    Some(LineValues { position: None, total: None, ..named }).filter(LineValues::has_values)
}

/// A text beside a bar that has two values or more with decimals, whatever their names are: `d: 0.5; g: 0.75`.
pub(super) fn read_pairs(printed: &str) -> Option<LineValues> {
    read_continued(printed, None).filter(|named| has_decimals(&named.values))
}

/// What a text is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A line.
    Whole,
    /// One that continues the line above it.
    Continued,
    /// The beginning of a line with a dict.
    BeforeDict,
}

fn read_line(printed: &str, known: Option<Comma>, kind: Kind) -> Option<LineValues> {
    let is_continued = kind == Kind::Continued;
    if let Some(rest) = printed.strip_prefix("[CV") {
        return read_fit(rest);
    }
    let printed = without_bold(printed);
    let printed = undecorated(&printed);
    let small = without_overlaps(printed.to_lowercase());
    let mut tokens = tokens_of(&small);
    let comma = commas::resolve(&mut tokens, known);
    let fold = take_fold(&mut tokens);
    let line = Line { printed, small: &small, tokens: &tokens, is_continued };
    if let Some(named) = read_short_names(&tokens) {
        return Some(LineValues { comma, ..named });
    }
    let is_drawn = tokens.iter().any(is_block_of_rich);
    let mut named =
        LineValues { is_done_round: is_of_xgboost(&small), is_drawn, comma, ..LineValues::default() };
    named.beside = head_in_brackets(&tokens).map(Box::new);
    let mut measured = read_beginning(&tokens, &mut named) | read_espnet(&small, &mut named);
    read_values_before_names(&tokens, &mut named);
    measured |= read_measure_of_parts(&tokens, &mut named);
    measured |= read_value_before_name(&tokens, &mut named);
    let scope = read_numbers(&line, &mut named, &mut measured);
    match is_continued {
        true => named.phrases.clear(),
        false => named.check_phrases(),
    }
    named.name_best();
    if scope.is_judging && named.is_judging() {
        // How far an evaluation is says nothing about the training.
        (named.position, named.total) = (None, None);
    }
    let episode = named.episode.take().filter(|_| !named.has_place());
    named.step = named.step.or(episode);
    named.part_equal_names();
    named.name_lone_measures(&tokens);
    named.name_best_of(&tokens);
    let has_place = named.epoch.is_some() && !named.values.is_empty();
    if named.plural_step && !has_place && named.meaning() != Some(Meaning::Measure) {
        named.total_steps = named.total_steps.or(named.step.take());
    }
    if shows_settings(&tokens) {
        return Some(named.into_settings()).filter(|named| named.has_values() || named.total_steps.is_some());
    }
    let is_object = named.meaning() < Some(Meaning::Measure) && !named.has_place() && shows_object(printed);
    if is_object || (!measured && may_begin_with_process(&tokens, printed)) {
        return None;
    }
    let counts_steps = || names_count_of_steps(&tokens) && has_decimals(&named.values);
    let has_head = matches!(named.beside.as_deref(), Some(Beside::Head { .. }));
    let is_placed = named.step.or(named.epoch).is_some() || named.is_early();
    let about_training = measured || is_continued || has_head || counts_steps() || is_placed;
    named.is_supposed = !about_training && (shows_results(&tokens) || begins_with_count(&named, &tokens));
    let about_training = about_training || named.is_supposed;
    if !about_training {
        named.values.clear();
        named.surplus = 0;
    }
    if named.values.is_empty() {
        named.check_early(kind == Kind::BeforeDict || tokens.last() == Some(&Token::Other(':')));
        let is_before_dict = kind == Kind::BeforeDict && named.has_place();
        let says_place = |named: &LineValues| is_before_dict || is_place(named, &tokens);
        return Some(named).filter(|named| named.total_steps.is_some() || says_place(named));
    }
    name_by_head(&mut named, printed, &tokens);
    name_by_group(&mut named, &tokens, fold);
    named.may_be_continued = !is_drawn && named.has_place() && named.meaning() == Some(Meaning::Measure);
    Some(named)
}

/// Takes all numbers of a line, and whether one is a measure; returns what the end of the line belongs to.
fn read_numbers<'l>(line: &Line<'l>, named: &mut LineValues, measured: &mut bool) -> Scope<'l> {
    let mut scope = Scope::default();
    let mut trained = Vec::new();
    for at in 0..line.tokens.len() {
        scope.enter(line.tokens, at);
        if scope.is_best && is_place_of(line.tokens, at) {
            continue;
        }
        let known_values = named.values.len();
        *measured |= read_number(line, at, named);
        named.values[known_values..].iter_mut().for_each(|(name, _)| scope.complete(name));
        trained.extend((known_values..named.values.len()).filter(|_| scope.is_of_training));
    }
    // Beside the values of an evaluation those of the training have its prefix, too.
    for at in trained.into_iter().filter(|_| scope.is_judging) {
        let name = &mut named.values[at].0;
        if !names::is_of_optimizer(name) {
            *name = names::prefixed("train", name);
        }
    }
    scope
}

/// Gives all values the name of what their line is about, by the words that it begins with.
fn name_by_head(named: &mut LineValues, printed: &str, tokens: &[Token<'_>]) {
    if let Some(head) = head_of_distribution(printed) {
        return name_by_distribution(named, head);
    }
    if let Some(Beside::Episode { part, .. }) = named.beside.as_deref() {
        let part = *part;
        for (name, _) in &mut named.values {
            *name = names::prefixed(part, name);
        }
    } else if let Some(prefix) = whose_line(tokens) {
        let place = named.position.zip(named.total);
        named.counts_evaluation |= place.is_some();
        named.place_means(place);
        (named.position, named.total) = (None, None);
        for (name, _) in &mut named.values {
            *name = names::prefixed(prefix, name);
        }
    } else if let Some(head) = head_of_results(tokens) {
        for (name, _) in &mut named.values {
            *name = format!("{head}_{name}");
        }
    } else if heads_training(tokens) {
        for (name, _) in &mut named.values {
            *name = names::prefixed("train", name);
        }
    } else if let Some(head) = head_of_scores(tokens, &named.values) {
        for (name, _) in &mut named.values {
            *name = format!("{head}_{name}");
        }
    } else if repeats_last(tokens) {
        (named.step, named.epoch, named.position) = (None, None, None);
        for (name, _) in named.values.iter_mut().filter(|(name, _)| !name.starts_with(names::BEST)) {
            *name = format!("last_{name}");
        }
    }
    if !named.counts_evaluation {
        named.place_means(None);
    }
}

/// Gives all values the name of the part of the data that their line begins with. Where another part is named behind it,
/// nothing shows which of them a value is of.
fn name_by_distribution(named: &mut LineValues, (part, behind): (PartName, &str)) {
    let is_between = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let words = behind.split(is_between).filter(|word| !word.is_empty());
    if words.skip(1).any(|word| names::part_of_data(word).is_some()) {
        named.values.clear();
    }
    named.take_titled(Some(part));
    named.place_means(None);
}

/// Whether a line begins with how far an epoch is, in brackets, and has values with decimals: `[1600/16000] [L1: 12.5]`.
fn begins_with_count(named: &LineValues, tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other};
    let begins =
        matches!(tokens, [Other('['), Number { .. }, Other('/'), Number { .. }, Other(']'), Other('['), ..]);
    begins && named.position.is_some() && named.values.iter().any(|(_, value)| value.fract() != 0.0)
}

/// Whether a line has a part of the data that is evaluated and behind it nothing but names with values that have
/// decimals: `Eval: 16_h1=0.5, 16_l2=0.25`.
fn shows_results(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Other, Word};
    let [Word(part), Other(':'), pairs @ ..] = tokens else { return false };
    let is_pair = |part: &[Token<'_>]| {
        matches!(part, [Word(_), Other('=' | ':'), Number { share: None, decimals: Decimals::Point, .. }])
    };
    let is_setting = |token: &Token<'_>| {
        token.word().is_some_and(|word| OF_GENERATION.contains(&word) || names::is_setting(word))
    };
    let is_judged = names::whose_line(part).is_some() && !pairs.iter().any(is_setting);
    let mut pairs = pairs.split(|token| *token == Other(','));
    is_judged && pairs.clone().count() > 1 && pairs.all(is_pair)
}

/// `[lfw][2000]XNorm: 21.5`
fn head_in_brackets(tokens: &[Token<'_>]) -> Option<Beside> {
    use Token::{Number, Other, Word};
    let [
        Other('['),
        Word(name),
        Other(']'),
        Other('['),
        Number { whole: Some(number), .. },
        Other(']'),
        Word(_),
        Other(':' | '='),
        Number { .. },
        ..,
    ] = tokens
    else {
        return None;
    };
    let is_other = names::part_of_data(name).is_some() || names::place_of(&[*name], name).is_some();
    (!is_other && name.len() <= NAME_BYTES_MAX / 2)
        .then(|| Beside::Head { name: (*name).to_owned(), number: *number })
}

/// A line below one that only says where the script is, with one value: its name is all the words before it, and may be any with a slash,
/// `throughput/tokens: 512`, or one of a mean, `Mean episode length: 301`. Of an item of a list, which may show the mean beside the value,
/// `| > log_mle: 0.5 (0.75)`, it is any name.
pub(super) fn read_below_heading(printed: &str, is_item: bool, known: Option<Comma>) -> Option<LineValues> {
    use Token::{Number, Other};
    // `GPU memory (MB)=512`
    if !is_item && memchr::memchr2(b'(', b'[', printed.as_bytes()).is_some() {
        return None;
    }
    let small = printed.to_lowercase();
    let mut tokens = tokens_of(&small);
    let comma = commas::resolve(&mut tokens, known);
    if let Some(values) = pairs_of(&tokens).filter(|_| !is_item) {
        return Some(LineValues { comma, values, ..LineValues::default() });
    }
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
    let line = Line { printed, small: &small, tokens, is_continued: false };
    let mut named = LineValues { comma, ..LineValues::default() };
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

/// The values of a line that has nothing but two names or more with one each, with decimals: `return_mean:   2.5\tepsilon:   0.5`.
fn pairs_of(tokens: &[Token<'_>]) -> Option<Vec<(String, f64)>> {
    use Token::{Number, Other, Word};
    let is_other = tokens.len() < 6 || !tokens.len().is_multiple_of(3) || tokens.len() > 3 * VALUES_MAX;
    let pair = |part: &[Token<'_>]| match part {
        [Word(name), Other(':'), Number { value, share: None, decimals: Decimals::Point, .. }]
            if name.len() <= NAME_BYTES_MAX && names::place_of(&[*name], name).is_none() =>
        {
            Some((names::plain((*name).to_owned()), *value))
        }
        _ => None,
    };
    if is_other { None } else { tokens.chunks(3).map(pair).collect() }
}

/// Whether two values or more have decimals: they are no counts.
fn has_decimals(values: &[(String, f64)]) -> bool {
    values.iter().filter(|(_, value)| value.fract() != 0.0).count() > 1
}

/// Whether the number in brackets that a line without a measure begins with may be that of a process:
/// `[12345] queue: 0.5`. A round has a tab behind it, or is aligned to the right: `[   1] obj=0.5`.
fn may_begin_with_process(tokens: &[Token<'_>], printed: &str) -> bool {
    use Token::{Number, Other, Word};
    matches!(tokens, [Other('['), Number { .. }, Other(']'), Word(_), ..])
        && !printed.contains("]\t")
        && !printed.starts_with("[ ")
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

/// A fit of scikit-learn's searches: only what follows the parameters is measured.
/// `[CV 1/5] END C=0.1, kernel=rbf;, score=(train=0.9, test=0.8) total time= 0.1s`
fn read_fit(line: &str) -> Option<LineValues> {
    let (_, scores) = line.rsplit_once(';')?;
    let mut named = LineValues::default();
    let scores = scores.to_lowercase();
    let mut tokens = tokens_of(&scores);
    commas::resolve(&mut tokens, None);
    let line = Line { printed: &scores, small: &scores, tokens: &tokens, is_continued: false };
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

/// A line in small letters in which the mean over several overlaps has the name that YOLO's tables give it: `map50-95` for `mAP@[.5:.95]`.
fn without_overlaps(small: String) -> String {
    /// How it is written.
    const OVERLAPS: [&str; 6] =
        ["@[.5:.95]", "@[0.5:0.95]", "@[0.50:0.95]", "@0.5:0.95", "@.5:.95", "@0.50:0.95"];
    match memchr::memchr(b'@', small.as_bytes()) {
        Some(_) => OVERLAPS.iter().fold(small, |small, overlaps| match small.contains(overlaps) {
            true => small.replace(overlaps, "50-95"),
            false => small,
        }),
        None => small,
    }
}

/// A line without the marks of bold words and numbers that Markdown has: `Test accuracy: **0.81**`.
fn without_bold(printed: &str) -> Cow<'_, str> {
    const MARK: &str = "**";
    if memchr::memmem::find(printed.as_bytes(), MARK.as_bytes()).is_none() {
        return Cow::Borrowed(printed);
    }
    let parts: Vec<&str> = printed.split(MARK).collect();
    let is_bold = |part: &&str| {
        let ends = |letter: char| letter.is_whitespace() || letter == '*';
        !part.is_empty() && !part.starts_with(ends) && !part.ends_with(ends)
    };
    let is_even = parts.len() % 2 == 1;
    match is_even && parts.iter().skip(1).step_by(2).all(is_bold) {
        true => Cow::Owned(parts.concat()),
        false => Cow::Borrowed(printed),
    }
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
