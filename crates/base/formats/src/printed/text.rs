//! Free text: `step 100: loss 0.5, lr=1e-3`, `| epoch 3 | ppl 828.95`, `Epoch [1/5], Step [100/600], Loss: 0.35`.

use super::named::Named;
use super::names::{self, Meaning, Place};
use super::objects;
use super::tokens::{Token, share_of, tokens_of};
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// So many words before a number are looked at.
const WORDS_MAX: usize = 6;
/// What follows a number in a sentence about it: `accuracy 0.2 is below the limit`.
const OF_SENTENCES: [&str; 6] = ["is", "was", "below", "exceeds", "exceeded", "fell"];
/// Words of a line that only says where the script is.
const OF_PLACES: [&str; 11] =
    ["epoch", "ep", "step", "iter", "iteration", "round", "train", "training", "starting", "start", "begin"];

/// The values of a line of text, with its step; `None` when it is not about training. A line that only says where the
/// script is has no values.
pub(super) fn read_text(line: &str) -> Option<Named> {
    if let Some(rest) = line.strip_prefix("[CV") {
        return read_fit(rest);
    }
    let line = line.to_lowercase();
    let tokens = tokens_of(&line);
    let mut named = Named::default();
    let mut measured = read_beginning(&tokens, &mut named);
    for at in 0..tokens.len() {
        measured |= read_number(&tokens, at, &mut named);
    }
    named.part_equal_names();
    if named.plural_step && named.meaning() != Some(Meaning::Measure) {
        named.total_steps = named.total_steps.or(named.step.take());
    }
    let about_training = measured || named.step.is_some() || named.epoch.is_some();
    if !about_training {
        named.values.clear();
    }
    if named.values.is_empty() {
        return Some(named).filter(|named| named.total_steps.is_some() || is_place(named, &tokens));
    }
    if let Some(prefix) = whose_line(&tokens) {
        // How far an evaluation is says nothing about the training.
        (named.position, named.total) = (None, None);
        for (name, _) in &mut named.values {
            *name = names::prefixed(prefix, name);
        }
    }
    Some(named)
}

/// A fit of scikit-learn's searches: only what follows the parameters is measured.
/// `[CV 1/5] END C=0.1, kernel=rbf;, score=(train=0.9, test=0.8) total time= 0.1s`
fn read_fit(line: &str) -> Option<Named> {
    let (_, scores) = line.rsplit_once(';')?;
    let mut named = Named::default();
    let scores = scores.to_lowercase();
    let tokens = tokens_of(&scores);
    for at in 0..tokens.len() {
        read_number(&tokens, at, &mut named);
    }
    for (name, _) in &mut named.values {
        if matches!(&**name, "train" | "test") {
            name.push_str("_score");
        }
    }
    Some(named).filter(|named| named.meaning() == Some(Meaning::Measure))
}

/// The beginnings of some tools' lines that have no name for the step. Whether this alone shows measures.
fn read_beginning(tokens: &[Token<'_>], named: &mut Named) -> bool {
    use Token::{Number, Other, Word};
    match tokens {
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
        // CatBoost: `0:	learn: 0.68	test: 0.69	best: 0.69 (0)	total: 48ms	remaining: 48s`
        [Number { whole, .. }, Other(':'), Word("learn"), Other(':'), Number { .. }, rest @ ..]
            if rest.contains(&Word("remaining")) =>
        {
            named.step = *whole;
            true
        }
        _ => false,
    }
}

/// Takes the number at this place with the words before it. Whether it is a measure.
fn read_number(tokens: &[Token<'_>], at: usize, named: &mut Named) -> bool {
    let Token::Number { value, whole, share } = tokens[at] else { return false };
    let of = fraction_of(tokens, at);
    if at > 0 && tokens[at - 1] == Token::Other('/') {
        return false;
    }
    if is_epoch_in_brackets(tokens, at) {
        named.epoch = named.epoch.or(whole);
        return false;
    }
    let Some(words) = Words::before(tokens, at) else {
        // `[640/60000 (1%)]` and `| 200/2983 batches |` show the progress.
        if of.is_some() && named.step.is_none() {
            (named.position, named.total) = (whole, of);
        }
        return false;
    };
    match names::place_of(&words.words, &words.name) {
        Some(Place::Step) if words.is_after_nan => {}
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
            named.epoch_counted_from_one |= of.is_some();
        }
        Some(Place::Total) => named.total_steps = named.total_steps.or(whole.filter(|steps| *steps > 0)),
        Some(Place::Count) => {}
        None => return read_value(tokens, at, &words, Written { value, whole, share, of }, named),
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
}

fn read_value(
    tokens: &[Token<'_>],
    at: usize,
    words: &Words<'_>,
    Written { value, whole, share, of }: Written,
    named: &mut Named,
) -> bool {
    let name = &words.name;
    let is_batch = matches!(&**name, "batch" | "batches");
    if is_batch && named.position.is_none() {
        (named.position, named.total) = (whole, of);
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
            return false;
        }
    }
    let measure = names::meaning_of(name) != Meaning::Any && !words.is_after_from;
    // Only in `name=value` and `name: value` may any word be a name, and only a single one.
    let is_sentence = matches!(tokens.get(at + 1), Some(Token::Word(word)) if OF_SENTENCES.contains(word));
    let is_name = (measure && !is_sentence) || (words.is_assigned && words.is_alone);
    let fits = named.values.len() < VALUES_MAX && name.len() <= NAME_BYTES_MAX;
    if !is_name || !fits || !names::may_be_metric(name) {
        return false;
    }
    let fraction = of.filter(|of| *of > 0).map(|of| value / of as f64);
    let share = share.or_else(|| share_before_sign(tokens, at, value)).filter(|_| names::is_share(name));
    named.values.push((name.clone(), fraction.or(share).unwrap_or(value)));
    named.words_before.push(words.before_name().unwrap_or_default().to_owned());
    measure
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

/// `[3][190/794]`: the epoch before the place in it.
fn is_epoch_in_brackets(tokens: &[Token<'_>], at: usize) -> bool {
    use Token::{Number, Other};
    at > 0
        && tokens[at - 1] == Other('[')
        && matches!(tokens.get(at + 1..at + 5), Some([Other(']'), Other('['), Number { .. }, Other('/')]))
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
}

impl<'a> Words<'a> {
    fn before(tokens: &[Token<'a>], at: usize) -> Option<Self> {
        use Token::Other;
        let mut end = at;
        let sign = |at: usize| if at > 0 { tokens[at - 1] } else { Other(' ') };
        let mut is_equals = sign(end) == Other('=');
        let mut is_assigned = is_equals || sign(end) == Other(':');
        if matches!(sign(end), Other('=' | ':' | '[' | '(' | '#')) {
            end -= 1;
        }
        // `lr=[1e-05]`, `Epoch: [3]`
        let in_brackets = end < at && sign(at) == Other('[') && tokens.get(at + 1) == Some(&Other(']'));
        if in_brackets && matches!(sign(end), Other('=' | ':')) {
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
        })
    }

    /// The word before the name.
    fn before_name(&self) -> Option<&'a str> {
        self.left.checked_sub(1).map(|last| self.words[last])
    }

    /// `global_step`, `global step`, `num_updates`: not the step of an epoch.
    fn is_of_training(&self) -> bool {
        let last = self.words.last().copied().unwrap_or_default();
        last == "num_updates"
            || last.starts_with("global_")
            || self.words.iter().rev().nth(1) == Some(&"global")
    }

    fn is_plural(&self) -> bool {
        self.words.last().is_some_and(|word| names::is_plural(word))
    }
}

/// The prefix of all values: `Test set: …`, `Epoch(val) [1][5/10] …`.
fn whose_line(tokens: &[Token<'_>]) -> Option<&'static str> {
    match tokens {
        [Token::Word(_), Token::Other('('), Token::Word(word), Token::Other(')'), ..] => {
            names::whose_line(word)
        }
        [Token::Word(word), ..] => names::whose_line(word),
        _ => None,
    }
}

/// Whether a line says where the script is and nothing else: `-- Epoch 3`, `Epoch 0/24`.
fn is_place(named: &Named, tokens: &[Token<'_>]) -> bool {
    let says_no_more = |token: &Token<'_>| match token {
        Token::Word(word) => OF_PLACES.contains(word),
        Token::Number { .. } => true,
        Token::Other(sign) => "-=*#:[]()/|.>".contains(*sign),
    };
    (named.step.is_some() || named.epoch.is_some()) && tokens.iter().all(says_no_more)
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
