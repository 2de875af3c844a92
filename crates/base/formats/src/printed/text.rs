//! Free text: `step 100: loss 0.5, lr=1e-3`, `| epoch 3 | ppl 828.95`, `Epoch [1/5], Step [100/600], Loss: 0.35`.

use super::named::Named;
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// Words for measures of training. A name counts when one of its parts is among them.
const MEASURES: [&str; 42] = [
    "loss",
    "losses",
    "acc",
    "accuracy",
    "lr",
    "ppl",
    "perplexity",
    "gnorm",
    "norm",
    "auc",
    "auroc",
    "f1",
    "precision",
    "recall",
    "mse",
    "mae",
    "rmse",
    "r2",
    "bleu",
    "rouge",
    "reward",
    "rewards",
    "wer",
    "cer",
    "iou",
    "miou",
    "map",
    "psnr",
    "ssim",
    "elbo",
    "kl",
    "nll",
    "bpc",
    "bpb",
    "score",
    "top1",
    "top5",
    "entropy",
    "mfu",
    "throughput",
    "dice",
    "logloss",
];
/// Two words that make one measure together.
const MEASURES_OF_TWO: [(&str, &str); 2] = [("learning", "rate"), ("grad", "norm")];
/// Words that say whose value it is; they join the name behind them.
const WHOSE: [&str; 14] = [
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "test",
    "eval",
    "dev",
    "best",
    "average",
    "avg",
    "mean",
    "total",
    "running",
];
/// Words at the beginning of a line that say whose all its values are, and the prefix of their names.
const WHOSE_LINE: [(&str, &str); 7] = [
    ("val", "val"),
    ("valid", "val"),
    ("validation", "val"),
    ("test", "test"),
    ("testing", "test"),
    ("eval", "eval"),
    ("evaluation", "eval"),
];
const STEP_WORDS: [&str; 9] =
    ["step", "steps", "global_step", "iter", "iters", "iteration", "iterations", "update", "num_updates"];
const EPOCH_WORDS: [&str; 2] = ["epoch", "ep"];
/// A name has at most so many words.
const NAME_WORDS_MAX: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Number {
        value: f64,
        whole: Option<u64>,
    },
    /// Any other character, or something that is neither a word nor a plain number, such as `12.3s`.
    Other(char),
}

/// The values of a line of text, with its step; `None` when it is not about training.
pub(super) fn read_text(line: &str) -> Option<Named> {
    let tokens = tokens_of(line);
    let mut named = Named::default();
    let mut measured = false;
    // XGBoost and LightGBM begin their lines with the round.
    if let [Token::Other('['), Token::Number { whole, .. }, Token::Other(']'), ..] = tokens[..] {
        named.step = whole;
    }
    for at in 0..tokens.len() {
        let Token::Number { value, whole } = tokens[at] else { continue };
        let of = fraction_of(&tokens, at);
        if at > 0 && tokens[at - 1] == Token::Other('/') {
            continue;
        }
        match name_before(&tokens, at) {
            Some((name, _)) if STEP_WORDS.contains(&&*name) => named.take_step(whole, of),
            Some((name, _)) if EPOCH_WORDS.contains(&name.rsplit('_').next().unwrap_or(&name)) => {
                named.epoch = named.epoch.or(whole);
                named.epoch_counted_from_one |= of.is_some();
            }
            Some((name, is_assigned)) => {
                let measure = is_measure(&name);
                // Only in `name=value` and `name: value` may any word be a name.
                if (measure || is_assigned) && named.values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX
                {
                    measured |= measure;
                    let share = of.filter(|of| *of > 0).map(|of| value / of as f64);
                    named.values.push((name, share.unwrap_or(value)));
                }
            }
            // `[640/60000 (1%)]` and `| 200/2983 batches |` show the progress.
            None if of.is_some() && named.step.is_none() => {
                (named.position, named.total) = (whole, of);
            }
            None => {}
        }
    }
    let about_training = measured || named.step.is_some() || named.epoch.is_some();
    if named.values.is_empty() || !about_training {
        return None;
    }
    prefix_all(&mut named, &tokens);
    Some(named)
}

/// A number that is the first part of `640/60000`.
fn fraction_of(tokens: &[Token<'_>], at: usize) -> Option<u64> {
    match (tokens.get(at + 1), tokens.get(at + 2)) {
        (Some(Token::Other('/')), Some(Token::Number { whole, .. })) => *whole,
        _ => None,
    }
}

/// The words right before a number as a name, and whether `=` or `:` is between them.
fn name_before(tokens: &[Token<'_>], at: usize) -> Option<(String, bool)> {
    let mut end = at;
    let is_assigned = end > 0 && matches!(tokens[end - 1], Token::Other('=' | ':'));
    end -= usize::from(end > 0 && matches!(tokens[end - 1], Token::Other('=' | ':' | '[' | '(' | '#')));
    let mut begin = end;
    while begin > 0 && end - begin < NAME_WORDS_MAX && matches!(tokens[begin - 1], Token::Word(_)) {
        begin -= 1;
    }
    let words: Vec<String> = tokens[begin..end]
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(word.to_lowercase()),
            _ => None,
        })
        .collect();
    joined(&words, is_assigned && tokens[at - 1] == Token::Other('=')).map(|name| (name, is_assigned))
}

/// The last word, with those before it that belong to it. Before `=` only one word counts: the ones before it are text.
fn joined(words: &[String], one_word: bool) -> Option<String> {
    let last = words.last()?;
    let mut name = last.clone();
    if one_word {
        return Some(plain(name));
    }
    let mut before = words.len() - 1;
    while before > 0 {
        let word = &words[before - 1];
        if let Some(whose) = word.strip_suffix("'s") {
            name = format!("{whose}_{name}");
            break;
        }
        let pair = MEASURES_OF_TWO.contains(&(word.as_str(), name.as_str()));
        if !pair && !WHOSE.contains(&word.as_str()) {
            break;
        }
        name = format!("{word}_{name}");
        before -= 1;
    }
    Some(plain(name))
}

/// The names that other tools and the detectors use.
fn plain(name: String) -> String {
    match name.as_str() {
        "lr" => "learning_rate".into(),
        "gnorm" => "grad_norm".into(),
        _ => match name.strip_prefix("valid_").or_else(|| name.strip_prefix("validation_")) {
            Some(rest) => format!("val_{rest}"),
            None => name,
        },
    }
}

fn is_measure(name: &str) -> bool {
    name.split(['_', '/', '.', '-']).any(|part| MEASURES.contains(&part)) || name.ends_with("learning_rate")
}

/// `Test set: …` is a prefix for all values.
fn prefix_all(named: &mut Named, tokens: &[Token<'_>]) {
    let Some(Token::Word(first)) = tokens.first() else { return };
    let first = first.to_lowercase();
    let Some((_, prefix)) = WHOSE_LINE.iter().find(|(word, _)| *word == first) else { return };
    for (name, _) in &mut named.values {
        if !name.starts_with(prefix) {
            *name = format!("{prefix}_{name}");
        }
    }
}

/// A plain number: decimal or scientific, `nan`, `inf`, with a percent sign at most.
pub(super) fn number_of(text: &str) -> Option<f64> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let first = text.trim_start_matches(['+', '-']).as_bytes().first()?;
    let word = matches!(
        text.trim_start_matches(['+', '-']),
        "nan" | "inf" | "NaN" | "Inf" | "infinity" | "Infinity"
    );
    (first.is_ascii_digit() || *first == b'.' || word).then(|| text.parse().ok()).flatten()
}

fn tokens_of(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let end = match letter {
            letter if letter.is_whitespace() => {
                rest = rest.trim_start();
                continue;
            }
            letter if letter.is_alphabetic() || letter == '_' => end_of(rest, |letter| {
                letter.is_alphanumeric() || matches!(letter, '_' | '/' | '.' | '-' | '@' | '\'')
            }),
            '0'..='9' | '.' | '+' | '-' => {
                end_of(rest, |letter| letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-' | '%'))
            }
            other => other.len_utf8(),
        };
        let (text, behind) = rest.split_at(end);
        tokens.push(token_of(text, &mut rest, behind));
    }
    tokens
}

/// The token of `text`. A word gives punctuation at its end back: it is the line's.
fn token_of<'a>(text: &'a str, rest: &mut &'a str, behind: &'a str) -> Token<'a> {
    let whole_text = *rest;
    *rest = behind;
    let first = text.chars().next().unwrap_or(' ');
    if let Some(value) = number_of(text) {
        return Token::Number { value, whole: text.parse().ok() };
    }
    if first.is_alphabetic() || first == '_' {
        let word = text.trim_end_matches(['/', '.', '-', '@']);
        *rest = &whole_text[word.len()..];
        return Token::Word(word);
    }
    // A sentence may end after a number.
    match text.strip_suffix('.').and_then(number_of) {
        Some(value) => Token::Number { value, whole: text.trim_end_matches('.').parse().ok() },
        None => Token::Other(first),
    }
}

fn end_of(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (Option<u64>, Option<u64>, Option<(u64, u64)>, Vec<(String, f64)>);

    fn read(line: &str) -> Option<Read> {
        let named = read_text(line)?;
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
                (Some(5), None, None, values(&[("training_l2", 1.0), ("val_1_mse", 0.3)])),
            ),
            (
                "[100]\ttrain-logloss:0.2\teval-logloss:0.3",
                (Some(100), None, None, values(&[("train-logloss", 0.2), ("eval-logloss", 0.3)])),
            ),
            ("Validation | accuracy = 91.5%", (None, None, None, values(&[("val_accuracy", 91.5)]))),
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
