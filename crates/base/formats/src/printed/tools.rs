//! The lines of tools that name no step or value, or not as others do.

use super::lexical::named::LineValues;
use super::lexical::names::{self, Meaning, is_training};
use super::lexical::tokens::{Decimals, Token, number_of, share_of};
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// A trial of Optuna, whose number is the step:
/// `Trial 3 finished with value: 0.87 and parameters: {'lr': 0.1}. Best is trial 1 with value: 0.9.`
pub(super) fn read_trial(message: &str) -> Option<LineValues> {
    let rest = message.strip_prefix("Trial ").or_else(|| message.strip_prefix("Finished trial#"))?;
    let (number, rest) = rest.split_once(' ')?;
    let step = number.parse().ok()?;
    let said = rest.strip_prefix("finished with value").or_else(|| rest.strip_prefix("resulted in value"))?;
    let values = match said.strip_prefix("s: [").and_then(|listed| listed.split_once(']')) {
        Some((listed, _)) => {
            let numbers = listed.split(", ").take(VALUES_MAX).enumerate();
            numbers.filter_map(|(at, text)| Some((format!("value_{at}"), number_of(text.trim())?))).collect()
        }
        None => {
            let text = said.strip_prefix(": ")?.split(' ').next()?;
            vec![("value".to_owned(), number_of(text.trim_end_matches('.'))?)]
        }
    };
    Some(LineValues { step: Some(step), values, ..LineValues::default() }).filter(LineValues::has_values)
}

/// One of COCO's twelve numbers: `Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.361`.
/// Those that are -1 were not measured.
pub(super) fn read_coco(message: &str) -> Option<LineValues> {
    let (short, rest) = match message.strip_prefix("Average Precision") {
        Some(rest) => ("ap", rest),
        None => ("ar", message.strip_prefix("Average Recall")?),
    };
    let (conditions, value) = rest.split_once("@[")?.1.split_once("] =")?;
    let condition = |name: &str| {
        let find = |part: &'_ str| {
            part.trim().strip_prefix(name).map(|rest| rest.trim_start_matches([' ', '=']).to_owned())
        };
        conditions.split('|').find_map(find)
    };
    let (overlap, area, most) = (condition("IoU")?, condition("area")?, condition("maxDets")?);
    let name = match (short, &*overlap, &*area) {
        ("ap", "0.50:0.95", "all") => "ap".to_owned(),
        ("ap", _, "all") => format!("ap{}", overlap.strip_prefix("0.")?),
        ("ar", _, "all") => format!("ar_{most}"),
        _ => format!("{short}_{area}"),
    };
    let value = number_of(value.trim()).filter(|value| *value >= 0.0);
    let values =
        value.filter(|_| name.len() <= NAME_BYTES_MAX).map(|value| (name, value)).into_iter().collect();
    Some(LineValues { values, ..LineValues::default() })
}

/// Measures that sentences are about.
const SAID_MEASURES: [&str; 12] =
    ["accuracy", "acc", "precision", "recall", "f1", "auc", "rmse", "mse", "mae", "r2", "perplexity", "bleu"];
/// Words of sentences that say nothing about what was measured.
const OF_SENTENCES: [&str; 17] = [
    "the", "a", "an", "of", "for", "on", "network", "model", "net", "classifier", "prediction",
    "predictions", "class", "our", "this", "all", "set",
];
/// What is measured on: it has a number before it that is none of a metric.
const OF_EXAMPLES: [&str; 5] = ["images", "samples", "examples", "sentences", "texts"];
/// A sentence has so many words before its value at most.
const SAID_WORDS_MAX: usize = 12;

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A measure of something: `Accuracy of the network on the 10000 test images: 62 %`, `Accuracy of plane : 66 %`,
/// `The RMSE of prediction is: 0.43`. A number without decimals and `%` may be a count.
pub(super) fn read_sentence(message: &str) -> Option<LineValues> {
    let ends = [message.rsplit_once([':', '=']), message.rsplit_once(" is ")];
    let (said, value) = ends.into_iter().flatten().min_by_key(|(_, value)| value.len())?;
    let small = said.trim_end().trim_end_matches(" is").to_lowercase();
    let mut words = small.split([' ', ':']).filter(|word| !word.is_empty()).peekable();
    words.next_if(|word| *word == "the");
    let measure = words.next().filter(|word| SAID_MEASURES.contains(word))?;
    words.next().filter(|word| matches!(*word, "of" | "for"))?;
    let rest: Vec<&str> = words.collect();
    let value = value.trim();
    let value = match value.strip_suffix('%') {
        Some(digits) => share_of(&format!("{}%", digits.trim_end()))?,
        None => number_of(value).filter(|value| value.fract() != 0.0)?,
    };
    // `Accuracy for fold 5: 0.81` has the fold in its name.
    if rest.windows(2).any(|words| words[0] == "fold" && is_number(words[1])) {
        return None;
    }
    // `Accuracy after epoch 5: 0.81` says where the script is.
    if rest.len() > SAID_WORDS_MAX || rest.iter().any(|word| names::place_of(&[*word], word).is_some()) {
        return None;
    }
    let part = rest.iter().find_map(|word| names::part_of_data(word));
    let says_nothing = |word: &str| {
        OF_SENTENCES.contains(&word) || OF_EXAMPLES.contains(&word) || names::part_of_data(word).is_some()
    };
    // `10000 test images`; any other number is a class: `accuracy of class 3`.
    let is_count = |at: usize| {
        let behind = rest[at + 1..].iter().find(|word| names::part_of_data(word).is_none());
        is_number(rest[at]) && behind.is_some_and(|word| OF_EXAMPLES.contains(word))
    };
    let is_said = |at: &usize| !says_nothing(rest[*at]) && !is_count(*at);
    let subject: Vec<&str> = (0..rest.len()).filter(is_said).map(|at| rest[at]).collect();
    let is_name =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if subject.len() > 2 || !subject.iter().all(is_name) {
        return None;
    }
    let name = [&[measure], &subject[..]].concat().join("_");
    let name = part.flatten().map_or_else(|| name.clone(), |part| names::prefixed(part, &name));
    let values = vec![(name, value)].into_iter().filter(|(name, _)| name.len() <= NAME_BYTES_MAX).collect();
    Some(LineValues { values, ..LineValues::default() }).filter(LineValues::has_values)
}

/// Whether a line is one of XGBoost, which prints a round when it is done and counts from 0: `[0]\ttrain-rmse:0.51\teval-rmse:0.56`.
pub(super) fn is_of_xgboost(line: &str) -> bool {
    let is_evaluation = |part: &str| {
        part.rsplit_once(':').is_some_and(|(name, value)| {
            let is_value = !value.is_empty() && !value.starts_with(char::is_whitespace);
            name.contains('-') && is_value
        })
    };
    let parts = line.strip_prefix('[').and_then(|rest| rest.split_once("]\t"));
    parts.is_some_and(|(_, evaluations)| evaluations.split('\t').all(is_evaluation))
}

/// The beginnings of some tools' lines that have no name for the step. Whether this alone shows measures.
pub(super) fn read_beginning(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    match tokens {
        [Token::Other('['), ..] => read_bracket(tokens, named),
        [Token::Number { .. }, ..] => read_first_number(tokens, named),
        [Token::Word(_), ..] => read_first_word(tokens, named),
        _ => false,
    }
}

/// The same of a line that begins with a bracket.
fn read_bracket(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Other, Word};
    match tokens {
        // YOLACT: `[  0]      10 || B: 4.5 | C: 12.3`
        [Other('['), Number { whole: epoch, .. }, Other(']'), Number { whole, .. }, Other('|'), ..] => {
            (named.epoch, named.step) = (*epoch, *whole);
            false
        }
        // GPT-2: `[10 | 12.34] loss=3.12`
        [Other('['), Number { whole, .. }, Other('|'), Number { .. }, Other(']'), ..] => {
            named.step = *whole;
            false
        }
        // An index of R: `[1] "AUC" "0.91"`
        [Other('['), Number { .. }, Other(']'), Other('"'), ..] => false,
        // XGBoost and LightGBM begin their lines with the round.
        [Other('['), Number { whole, .. }, Other(']'), ..] => {
            let is_epoch = matches!(tokens.get(3..5), Some([Other('['), Number { .. }]));
            if !is_epoch {
                named.step = *whole;
            }
            false
        }
        // `[1,  2000] loss: 2.196`
        [Other('['), Number { whole: epoch, .. }, Other(','), Number { whole, .. }, Other(']'), ..] => {
            (named.epoch, named.position) = (*epoch, *whole);
            false
        }
        // `[0: 10/984] train loss: 2.1`
        [
            Other('['),
            Number { whole: epoch, .. },
            Other(':'),
            Number { .. },
            Other('/'),
            Number { .. },
            Other(']'),
            ..,
        ] => {
            named.epoch = *epoch;
            false
        }
        // Marian: `Ep. 1 : Up. 500 : Cost 8.75 : L.r. 3e-05`, `[valid] Ep. 1 : Up. 500 : bleu : 12.5`
        [Other('['), Word(_), Other(']'), rest @ ..] => read_marian(rest, named),
        _ => false,
    }
}

/// The same of a line that begins with a number.
fn read_first_number(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Other, Word};
    match tokens {
        // `10 | loss 9.4 | lr 6.0e-04`, `10 ; loss 9.4`, `10: train loss 9.4`, `10 [D loss: 0.7]`, `10, train_loss=9.4`
        [Number { whole, .. }, Other('|' | ':' | ';' | '[' | ','), Word(first), second, ..]
            if begins_with_measure(first, second) =>
        {
            named.step = *whole;
            false
        }
        // `100 loss 0.5 acc 0.75`
        [Number { whole, .. }, Word(first), Number { decimals: Decimals::Point, .. }, ..]
            if names::meaning_of(first) == Meaning::Measure =>
        {
            named.step = *whole;
            false
        }
        // ` 1 train loss: 0.5`
        [Number { whole, .. }, Word(first), second, third, ..]
            if begins_with_measure(first, second)
                && [second, third].into_iter().any(|sign| matches!(sign, Other(':' | '='))) =>
        {
            named.step = *whole;
            false
        }
        // Darknet: ` 1: 1234.5, 1224.5 avg loss, 0.000000 rate, 1.25 seconds, 64 images`
        [
            Number { whole, .. },
            Other(':'),
            Number { value, .. },
            Other(','),
            Number { .. },
            Word("avg"),
            Word("loss"),
            ..,
        ] => {
            named.step = *whole;
            named.take_value("loss".into(), *value, "");
            true
        }
        // CatBoost: `0:	learn: 0.68	test: 0.69	best: 0.69 (0)	total: 48ms	remaining: 48s`
        [Number { whole, .. }, Other(':'), Word("learn"), Other(':'), Number { .. }, rest @ ..]
            if rest.contains(&Word("remaining")) =>
        {
            (named.step, named.is_done_round) = (*whole, true);
            true
        }
        _ => false,
    }
}

/// The same of a line that begins with a word.
fn read_first_word(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Other, Word};
    match tokens {
        // PyTorch's tutorial on style transfer: `run [50]:`
        [Word("run"), Other('['), Number { whole, .. }, Other(']'), Other(':')] => {
            named.step = *whole;
            false
        }
        // `Train 0, loss: 1.25, train acc: 0.6`
        [Word(part), Number { whole: epoch @ Some(_), .. }, Other(','), Word(first), second, ..]
            if names::part_of_data(part).is_some() && begins_with_measure(first, second) =>
        {
            named.epoch = *epoch;
            false
        }
        // TD3: `Evaluation over 10 episodes: 123.5`
        [
            Word("evaluation"),
            Word("over"),
            Number { .. },
            Word("episodes"),
            Other(':'),
            Number { value, .. },
        ] => {
            named.take_value("eval_reward".into(), *value, "");
            true
        }
        [Word("ep"), ..] => read_marian(tokens, named),
        // fastText: `Progress:  12.3% words/sec/thread:  5123 lr:  0.08 avg.loss:  2.3`
        [Word("progress"), Other(':'), Number { value, share: Some(_), .. }, Word(speed), ..]
            if speed.starts_with("words/sec") && (0.0..=100.0).contains(value) =>
        {
            (named.position, named.total) = (Some(*value as u64), Some(100));
            true
        }
        _ => false,
    }
}

/// The letter that names the step in a line of short names, the best first.
const SHORT_STEPS: [&str; 4] = ["s", "i", "f", "e"];
/// A short name has so many letters at most before its first underscore.
const SHORT_LETTERS_MAX: usize = 5;
/// So many short names has a line at least.
const SHORT_NAMES_MIN: usize = 3;

fn without_bar<'t, 'l>(tokens: &'t [Token<'l>]) -> &'t [Token<'l>] {
    tokens.strip_prefix(&[Token::Other('|')]).unwrap_or(tokens)
}

/// A line of a training of agents that begins with the part of the data and has short names: `| eval | F: 5000 | S: 2500 | R: 61.2`,
/// ` train   E: 1   I: 500   R: 27.7`. What has no decimals is a count.
pub(super) fn read_short_names(tokens: &[Token<'_>]) -> Option<LineValues> {
    use Token::{Number, Other, Word};
    let [Word(part), behind @ ..] = without_bar(tokens) else { return None };
    let [Word(_), Other(':'), ..] = without_bar(behind) else { return None };
    let part = names::part_of_data(part)?;
    let is_short = |name: &str| name.split('_').next().is_some_and(|first| first.len() <= SHORT_LETTERS_MAX);
    let (mut rest, mut pairs, mut step, mut values) = (without_bar(behind), 0, None, Vec::new());
    while let [Word(name), Other(':'), value, behind @ ..] = rest {
        match value {
            Number { whole: Some(whole), .. } => {
                let place = SHORT_STEPS.iter().position(|known| known == name);
                let place = place.map(|place| (place, *whole));
                step = step.into_iter().chain(place).min();
            }
            // `D: 3.2 s`
            Number { .. } if matches!(behind, [Word("s"), behind @ ..] if behind.first() != Some(&Other(':'))) =>
                {}
            Number { value, decimals: Decimals::Point, .. } => values.push(((*name).to_owned(), *value)),
            // A clock.
            Other('0') => {}
            _ => return None,
        }
        pairs += 1;
        rest = match behind {
            [Word("s"), behind @ ..] if behind.first() != Some(&Other(':')) => without_bar(behind),
            behind => without_bar(behind),
        };
        if !is_short(name) || pairs > VALUES_MAX {
            return None;
        }
    }
    let (_, step) = step.filter(|_| rest.is_empty() && pairs >= SHORT_NAMES_MIN && !values.is_empty())?;
    let mut named = LineValues { values, ..LineValues::default() };
    named.take_part(part);
    named.take_step_of_training(Some(step));
    Some(named)
}

/// `loss 9.4`, `train loss 9.4`
fn begins_with_measure(first: &str, second: &Token<'_>) -> bool {
    let is_measure = |word: &str| names::meaning_of(word) == Meaning::Measure;
    let is_whose = is_training(first) || names::whose_line(first).is_some();
    let is_part = second.word().is_some_and(|name| names::is_part_of(first, name));
    is_measure(first) || is_part || (is_whose && second.word().is_some_and(is_measure))
}

fn read_marian(tokens: &[Token<'_>], named: &mut LineValues) -> bool {
    use Token::{Number, Other, Word};
    let [
        Word("ep"),
        Other('.'),
        Number { whole: epoch, .. },
        Other(':'),
        Word("up"),
        Other('.'),
        Number { whole, .. },
        ..,
    ] = tokens
    else {
        return false;
    };
    named.epoch = *epoch;
    named.take_step_of_training(*whole);
    true
}

/// The beginning of ESPnet's lines: `1epoch:train:51-100batch: loss=35.0`, `1epoch results: [train] loss=35.0`. Whether this is one.
pub(super) fn read_espnet(line: &str, named: &mut LineValues) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let Some(rest) = line[digits..].strip_prefix("epoch") else { return false };
    let batches = rest.strip_prefix(":train:").and_then(|rest| rest.split_once("batch:"));
    let is_espnet = batches.is_some() || rest.starts_with(" results:");
    if let Some(epoch) = line[..digits].parse().ok().filter(|_| is_espnet) {
        named.epoch = Some(epoch);
        let last = batches.and_then(|(batches, _)| batches.rsplit('-').next());
        named.position = last.and_then(|last| last.parse().ok());
    }
    is_espnet
}
