//! What each number of a line of text is: a place, a value, or nothing.

use trackway_core::MetricStep;

use super::super::objects;
use super::super::{NAME_BYTES_MAX, VALUES_MAX};
use super::parts::whose_line;
use super::places::{is_behind_epoch, is_epoch_in_brackets, is_epoch_of_all, name_before_place};
use super::results::name_of_result;
use super::shown::is_estimator;
use super::titles::with_distribution;
use super::words::{Line, PHRASE_WORDS_MAX, Words};
use super::written::{
    TIME_UNITS, Written, changed_to, fraction_of, highest_listed, is_behind_share, is_one_of_so_many,
    is_time, list_at, mean_behind, result_of_fraction, second_of, share_in_percent, value_at_step,
};
use crate::printed::lexical::named::{Beside, LineValues};
use crate::printed::lexical::names::{self, Meaning, Place};
use crate::printed::lexical::tokens::{Decimals, Token};

/// Larger numbers are no steps.
const STEP_MAX: f64 = 9e15;
/// What follows a number in a sentence about it: `accuracy 0.2 is below the limit`.
const OF_SENTENCES: [&str; 6] = ["is", "was", "below", "exceeds", "exceeded", "fell"];

/// Takes the number at this place with the words before it. Whether it is a measure.
pub(super) fn read_number(line: &Line<'_>, at: usize, named: &mut LineValues) -> bool {
    let tokens = line.tokens;
    let Token::Number { value, whole, share, decimals } = tokens[at] else { return false };
    let listed = highest_listed(tokens, at);
    let of = fraction_of(tokens, at).filter(|_| listed.is_none());
    if at > 0 && tokens[at - 1] == Token::Other('/') {
        return false;
    }
    if is_epoch_in_brackets(tokens, at) {
        named.epoch = named.epoch.or(whole);
        return false;
    }
    let name = name_before_place(tokens, at, decimals).or_else(|| name_at_rank(tokens, at));
    if let Some(name) = name.or_else(|| name_of_result(line, at)) {
        let share = share.filter(|_| names::is_share(&name));
        named.take_value(name, share.unwrap_or(value), "");
        return true;
    }
    if let Some(name) = line.name_of_call(at).filter(|_| named.values.len() < VALUES_MAX) {
        let measure = names::meaning_of(&name) != Meaning::Any;
        named.take_value(name, share.unwrap_or(value), "");
        return measure;
    }
    let written = Written { value, whole, share, of, decimals, is_listed: listed.is_some() };
    let Some(words) = Words::before(tokens, at) else {
        read_progress(tokens, at, &written, named);
        return false;
    };
    if let Some(name) = words.measure_per().filter(|name| name.len() <= NAME_BYTES_MAX) {
        named.take_value(name, value, "");
        return true;
    }
    if let Some((names, numbers)) = names_between_slashes(tokens, at) {
        for (name, value) in names.zip(numbers).take(VALUES_MAX.saturating_sub(named.values.len())) {
            named.take_value(name, value, "");
        }
        return true;
    }
    if let Some((names, second)) = words.joined_names().zip(second_of(tokens, at)) {
        for (name, value) in names.into_iter().zip([value, second]) {
            named.take_value(name, value, "");
        }
        return true;
    }
    match names::place_of(&words.words, &words.name) {
        None => {
            let written = changed_to(tokens, at).unwrap_or(written);
            let counted = read_count(tokens, at, &words, &written, named);
            counted.unwrap_or_else(|| read_value(line, at, &words, &written, named))
        }
        Some(_) if words.is_listed => false,
        Some(Place::Step) => {
            read_step(tokens, &words, (&written, listed), named);
            false
        }
        Some(Place::Epoch) => {
            read_epoch(tokens, at, &written, named);
            false
        }
        Some(Place::Total) => {
            let is_other = words.name == "max_iter" && is_estimator(line.printed);
            named.total_steps = named.total_steps.or(whole.filter(|steps| *steps > 0 && !is_other));
            false
        }
        Some(Place::Count) => false,
    }
}

/// Takes a number without words before it: `[640/60000 (1%)]` and `| 200/2983 batches |` show the progress.
fn read_progress(
    tokens: &[Token<'_>],
    at: usize,
    &Written { whole, of, .. }: &Written,
    named: &mut LineValues,
) {
    let is_rate = matches!(tokens.get(at + 3), Some(Token::Word(unit)) if unit.ends_with("/s"));
    if of.is_some() && named.epoch.is_some() && is_epoch_of_all(tokens, at) {
        named.epoch_counted_from_one |= named.epoch == whole;
    } else if of.is_some() && named.step.is_none() && !is_rate && !is_behind_share(tokens, at) {
        (named.position, named.total) = (whole, of);
        named.is_place_in_epoch = is_behind_epoch(tokens, at);
    }
}

/// Takes a number that is called an epoch.
fn read_epoch(
    tokens: &[Token<'_>],
    at: usize,
    &Written { value, whole, of, .. }: &Written,
    named: &mut LineValues,
) {
    named.epoch = named.epoch.or(whole);
    named.early_step = named.early_step.or(early_step(value));
    named.part_of_epoch = named.part_of_epoch.or(Some(value).filter(|epoch| objects::is_part(*epoch)));
    named.epoch_counted_from_one |= of.is_some() || is_one_of_so_many(tokens, at);
}

/// Takes a number that is called a step. `listed`: the highest of several.
fn read_step(
    tokens: &[Token<'_>],
    words: &Words<'_>,
    (&Written { value, whole, of, decimals, .. }, listed): (&Written, Option<u64>),
    named: &mut LineValues,
) {
    match listed {
        Some(_) => named.take_step(listed, None),
        None if words.is_after_nan => {}
        None if early_step(value).is_some() => {
            named.early_step = early_step(value).filter(|_| !words.is_plural()).or(named.early_step);
        }
        // `(10/500) … Step: 0k`
        None if decimals == Decimals::Scaled && named.position.is_some() => {}
        // Several lines have it: it is none that begins again.
        None if decimals == Decimals::Scaled && of.is_none() && !words.is_plural() => {
            named.take_step_of_training(whole);
        }
        None if whole.is_none() && of.is_none() => {
            // `step: 1.00e+01`
            let is_whole = value >= 1.0 && value.fract() == 0.0 && value < STEP_MAX;
            named.take_step(Some(value as u64).filter(|_| is_whole), None);
        }
        None if words.is_plural() && counts_steps_of_parts(tokens) => {}
        None if of.is_none() && words.is_of_training() => named.take_step_of_training(whole),
        None => {
            named.plural_step |= of.is_none() && named.step.is_none() && words.is_plural();
            if of.is_none() && named.step.is_some() && !words.is_plural() {
                named.take_further_step(whole);
            }
            named.take_step(whole, of);
        }
    }
}

/// The step that a number below 0 is.
fn early_step(value: f64) -> Option<MetricStep> {
    let is_early = value < 0.0 && value > -STEP_MAX && value.fract() == 0.0;
    is_early.then_some(value as MetricStep)
}

/// Takes a number that is a count or a fraction, or whose form no value has. None: it may be a value.
/// Else whether it is a measure.
fn read_count(
    tokens: &[Token<'_>],
    at: usize,
    words: &Words<'_>,
    &Written { whole, of, decimals, is_listed, .. }: &Written,
    named: &mut LineValues,
) -> Option<bool> {
    let name = &words.name;
    let is_batch = matches!(
        &**name,
        "batch" | "batches" | "train_batch" | "training_batch" | "minibatch" | "mini-batch"
    );
    if is_batch && named.position.is_none() {
        (named.position, named.total, named.counts_batches) = (whole, of, true);
        named.is_place_in_epoch = of.is_some();
        if is_batch_of_rank(tokens) {
            (named.epoch, named.position, named.total) = (whole, of, None);
        }
        return Some(false);
    }
    if name == "episode" {
        named.episode = named.episode.or(whole);
        return Some(false);
    }
    // `eval_episode=2, episodic_return=166`
    if let Some((part, number)) = name.strip_suffix("_episode").and_then(names::whose_line).zip(whole)
        && named.beside.is_none()
    {
        named.beside = Some(Box::new(Beside::Episode { part, number }));
        return Some(false);
    }
    // `Train: 0 [100/5004 (2%)] Loss: 6.9`
    if matches!(&**name, "train" | "training") && tokens.get(at + 1) == Some(&Token::Other('[')) {
        named.epoch = named.epoch.or(whole);
        return Some(false);
    }
    let fraction = result_of_fraction(tokens, at).filter(|_| words.is_alone && words.is_assigned);
    if let Some((result, is_plain)) = fraction
        && names::meaning_of(name) == Meaning::Any
        && names::may_be_metric(name)
        && name.len() <= NAME_BYTES_MAX
        && named.values.len() < VALUES_MAX
    {
        named.take_value(name.clone(), result, "");
        return Some(is_plain);
    }
    if of.is_some() && named.step.is_none() && tokens.get(at + 3) != Some(&Token::Word("correct")) {
        // `Train [60/109] loss 0.5`, `train: 12/130 loss 0.5`
        if matches!(&**name, "train" | "training") {
            if named.position.is_none() {
                (named.position, named.total) = (whole, of);
            }
            return Some(false);
        }
        // How far an evaluation is.
        if names::whose_line(name).is_some() {
            named.counts_evaluation = true;
            return Some(false);
        }
    }
    // `bsz: 3500/3250/64` is a list.
    if (decimals == Decimals::Unclear && of.is_none()) || is_listed || is_time(tokens, at) {
        return Some(false);
    }
    // `numImages: 1464`
    if whole.is_some() && names::is_number_of(name) {
        return Some(false);
    }
    None
}

/// Takes a value with the words before it. Whether it is a measure.
fn read_value(
    line: &Line<'_>,
    at: usize,
    words: &Words<'_>,
    written: &Written,
    named: &mut LineValues,
) -> bool {
    let &Written { value, whole, share, of, decimals, .. } = written;
    let (tokens, name) = (line.tokens, &words.name);
    let printed_name = line.name_in_camel_case(words, at);
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
        read_phrase(line, at, words, written, named);
        return false;
    }
    // A whole number below a line with measures is a setting or a count.
    let is_unclear = line.is_continued && decimals == Decimals::None && !has_measure;
    if !is_name || is_unclear || !names::may_be_metric(name) {
        return false;
    }
    if !fits {
        named.surplus += 1;
        return false;
    }
    let part = whole.map_or(value, |whole| whole as f64);
    let fraction = of.filter(|of| *of > 0).map(|of| part / of as f64);
    // The best value of a percentage is a percentage: `mAP@0.5 = 58.00 %, best = 58.25 %`.
    let has_sign = words.is_in_percent() || tokens.get(at + 1) == Some(&Token::Other('%'));
    let share = share.or_else(|| has_sign.then(|| share_in_percent(value)).flatten()).filter(|_| {
        let best = named.values.last().filter(|_| name == names::BEST);
        names::is_share(best.map_or(name, |(measure, _)| measure))
    });
    let name = printed_name.unwrap_or_else(|| name.clone());
    let word_before = words.before_name().unwrap_or_default();
    let (name, word_before) = match with_distribution(&name, word_before, &words.words[..words.left]) {
        Some(name) => (name, ""),
        None => (name, word_before),
    };
    if let Some(value) = value_at_step(tokens, at).filter(|_| name.contains("loss") && named.step.is_none()) {
        // `Train loss 100 0.5`, `Validation loss 100: 0.5`
        named.step = whole;
        named.take_value(name, value, word_before);
        return measure;
    }
    match list_at(tokens, at) {
        Some(list) if !take_list(&list, &name, word_before, named) => return false,
        Some(_) => {}
        None => named.take_value(name, fraction.or(share).unwrap_or(value), word_before),
    }
    if let Some(mean) = mean_behind(tokens, at)
        && whose_line(tokens).is_some()
    {
        named.take_mean(mean);
    }
    measure
}

/// Takes the values of a list, each with its place in its name. False: it is none of values.
fn take_list(list: &[f64], name: &str, word_before: &str, named: &mut LineValues) -> bool {
    let is_of_optimizer = names::is_of_optimizer(name);
    match list {
        // DeepSpeed has one for each group of parameters.
        [first, others @ ..] if is_of_optimizer && others.iter().all(|other| other == first) => {
            named.take_value(name.to_owned(), *first, word_before);
        }
        _ if names::meaning_of(name) != Meaning::Measure && !is_of_optimizer => return false,
        _ => {
            for (place, value) in list.iter().enumerate().take(VALUES_MAX - named.values.len()) {
                named.take_value(format!("{name}_{place}"), *value, word_before);
            }
        }
    }
    true
}

/// Takes a value whose words may be its name where the line has others.
fn read_phrase(
    line: &Line<'_>,
    at: usize,
    words: &Words<'_>,
    &Written { value, decimals, .. }: &Written,
    named: &mut LineValues,
) {
    let name = &words.name;
    // `epoch 1 | train 0.5 | val 0.25`
    let is_part = words.words.len() == 1
        && names::part_of_data(name).is_some()
        && words.is_between_signs(line.tokens, at);
    let is_value = is_part || (words.is_beside_measure(line, at) && names::may_be_metric(name));
    if is_value && decimals == Decimals::Point {
        return named.take_phrase(name.clone(), value);
    }
    // A whole number is a count: `consumed samples: 25600`.
    let is_count = |phrase: &str| decimals == Decimals::None && names::meaning_of(phrase) == Meaning::Any;
    let phrase = words.phrase().filter(|phrase| phrase.len() <= NAME_BYTES_MAX && !is_count(phrase));
    if let Some(phrase) = phrase.filter(|_| names::may_be_metric(name)) {
        named.take_phrase(phrase, value);
    }
}

/// Names and as many values with decimals that slashes are between: `mIoU/mAcc/allAcc 0.5/0.6/0.8`. One of the names is a measure.
fn names_between_slashes<'t>(
    tokens: &'t [Token<'_>],
    at: usize,
) -> Option<(impl Iterator<Item = String> + 't, Vec<f64>)> {
    use Token::{Number, Other, Word};
    let ([.., Word(word)] | [.., Word(word), Other(':' | '=')]) = &tokens[..at] else { return None };
    let names = Some(word).filter(|word| word.contains('/'))?.split('/');
    let (count, mut numbers, mut rest) = (names.clone().count(), Vec::new(), &tokens[at..]);
    while let [Number { value, share: None, decimals: Decimals::Point, .. }, behind @ ..] = rest {
        numbers.push(*value);
        let [Other('/'), behind @ ..] = behind else { break };
        rest = behind;
    }
    let is_measure = |name: &str| names::meaning_of(name) == Meaning::Measure;
    let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX / 2;
    let fits =
        count > 2 && numbers.len() == count && names.clone().all(is_name) && names.clone().any(is_measure);
    fits.then(|| (names.map(|name| names::plain(name.to_owned())), numbers))
}

/// Whether a line begins and ends as WeNet's do, which count `TRAIN Batch EPOCH/BATCH … rank 0`.
fn is_batch_of_rank(tokens: &[Token<'_>]) -> bool {
    use Token::{Number, Word};
    matches!(
        tokens,
        [Word("train" | "cv"), Word("batch"), Number { .. }, .., Word("rank"), Number { whole: Some(_), .. }]
    )
}

/// So many words and signs are looked at for them.
const COUNTS_OF_PARTS_MAX: usize = 32;

/// Whether a line has how many steps an epoch of the training and one of an evaluation have: `Train steps: 50 Val steps: 10`.
fn counts_steps_of_parts(tokens: &[Token<'_>]) -> bool {
    // Each count of a line needs it.
    let tokens = &tokens[..tokens.len().min(COUNTS_OF_PARTS_MAX)];
    let has = |is_part: &dyn Fn(&str) -> bool| {
        tokens.windows(2).any(|pair| match pair {
            [Token::Word(part), Token::Word("steps")] => is_part(part),
            _ => false,
        })
    };
    has(&names::is_training) && has(&|part| names::whose_line(part).is_some())
}

/// The name of a measure at a rank: `precision @ 1 = 0.86`.
fn name_at_rank(tokens: &[Token<'_>], at: usize) -> Option<String> {
    use Token::{Number, Other, Word};
    let [.., Word(name), Other('@'), Number { whole: Some(rank), .. }, Other('=' | ':')] = &tokens[..at]
    else {
        return None;
    };
    let is_measure = names::meaning_of(name) != Meaning::Any && name.len() <= NAME_BYTES_MAX;
    is_measure.then(|| format!("{name}@{rank}"))
}

/// Takes values that precede their names, where two parts of the line or more have that form and one of them is a measure:
/// `4.25 avg loss, 0.001 rate`.
pub(super) fn read_values_before_names(tokens: &[Token<'_>], named: &mut LineValues) {
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
