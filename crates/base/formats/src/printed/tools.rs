//! The lines of tools that name no step or value, or not as others do.

use super::named::Named;
use super::names::{self, Meaning, is_training};
use super::tokens::{Decimals, Token, number_of};
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// A trial of Optuna, whose number is the step: `Trial 3 finished with value: 0.87 and parameters: {'lr': 0.1}. Best is trial 1 with value: 0.9.`
pub(super) fn read_trial(message: &str) -> Option<Named> {
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
    Some(Named { step: Some(step), values, ..Named::default() }).filter(Named::has_values)
}

/// One of COCO's twelve numbers: `Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.361`. Those that are -1 were not measured.
pub(super) fn read_coco(message: &str) -> Option<Named> {
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
    Some(Named { values, ..Named::default() })
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
pub(super) fn read_beginning(tokens: &[Token<'_>], named: &mut Named) -> bool {
    use Token::{Number, Other, Word};
    match tokens {
        // XGBoost and LightGBM begin their lines with the round.
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
        [Other('['), Number { whole, .. }, Other(']'), ..] => {
            let is_epoch = matches!(tokens.get(3..5), Some([Other('['), Number { .. }]));
            if !is_epoch {
                named.step = *whole;
            }
            false
        }
        // PyTorch's tutorial on style transfer: `run [50]:`
        [Word("run"), Other('['), Number { whole, .. }, Other(']'), Other(':')] => {
            named.step = *whole;
            false
        }
        // `[1,  2000] loss: 2.196`
        [Other('['), Number { whole: epoch, .. }, Other(','), Number { whole, .. }, Other(']'), ..] => {
            (named.epoch, named.position) = (*epoch, *whole);
            false
        }
        // `10 | loss 9.4 | lr 6.0e-04`, `10 ; loss 9.4`, `10: train loss 9.4`, `10 [D loss: 0.7]`
        [Number { whole, .. }, Other('|' | ':' | ';' | '['), Word(first), second, ..]
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
        // Marian: `Ep. 1 : Up. 500 : Cost 8.75 : L.r. 3e-05`, `[valid] Ep. 1 : Up. 500 : bleu : 12.5`
        [Other('['), Word(_), Other(']'), rest @ ..] => read_marian(rest, named),
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

/// `loss 9.4`, `train loss 9.4`
fn begins_with_measure(first: &str, second: &Token<'_>) -> bool {
    let is_measure = |word: &str| names::meaning_of(word) == Meaning::Measure;
    let is_whose = is_training(first) || names::whose_line(first).is_some();
    let is_part = second.word().is_some_and(|name| names::is_part_of(first, name));
    is_measure(first) || is_part || (is_whose && second.word().is_some_and(is_measure))
}

fn read_marian(tokens: &[Token<'_>], named: &mut Named) -> bool {
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
pub(super) fn read_espnet(line: &str, named: &mut Named) -> bool {
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
