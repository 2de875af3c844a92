//! What the last lines of a stream say about the work itself: its latest loss, and whether it reached its last step.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use super::escapes::Plain;
use super::line;
use crate::pattern::{MatchGroups, Pattern, any_of};

/// How the work looked when the stream ended, read from its last lines only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnding {
    /// The latest training losses, as far as they are NaN or infinite without a finite one after them.
    pub lost_losses: u64,
    /// The line of the latest of them, 1-based; 0 if there is none.
    pub lost_at: u64,
    pub lost_text: String,
    /// The line, 1-based, of the latest count of epochs or steps, if it is complete (`12/12`) with its result; 0 if not.
    pub complete_at: u64,
    pub complete_text: String,
    /// Whether any of the last lines gives a result of the work.
    pub has_results: bool,
    /// Whether any of them has a word of an end that is not the plan's.
    pub speaks_of_stop: bool,
    /// The lines of progress among the last ones.
    #[serde(default)]
    pub progress: Vec<Moment>,
    /// The very last line, if it is a sentence: what `sys.exit("...")` leaves.
    #[serde(default)]
    pub last_words: Option<LastWords>,
    /// The last line that is not empty.
    #[serde(default)]
    pub last_line: Option<Moment>,
    /// The last line that gives a result of the work.
    #[serde(default)]
    pub last_result: Option<Moment>,
}

/// When a line was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Where the line starts, from the start of the stream.
    pub byte_offset: u64,
    /// The time, if known.
    pub at: Option<Timestamp>,
}

/// The last line of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWords {
    /// 1-based.
    pub line_number: u64,
    pub text: String,
    pub written: Moment,
}

impl StreamEnding {
    /// Whether the last line is one of progress.
    pub(crate) fn ends_with_progress(&self) -> bool {
        let place = |moment: &Moment| moment.byte_offset;
        self.last_line.as_ref().map(place) == self.progress.last().map(place) && self.last_line.is_some()
    }

    /// Every place of which a caller may know the time.
    pub(super) fn moments(&mut self) -> impl Iterator<Item = &mut Moment> {
        let words = self.last_words.as_mut().map(|words| &mut words.written);
        self.progress.iter_mut().chain(words).chain(&mut self.last_line).chain(&mut self.last_result)
    }

    /// With the places of its lines in the stream, of which `tail` are the last bytes.
    pub(super) fn placed(mut self, tail: &[u8], byte_count: u64) -> Self {
        let mut byte_offset = byte_count - tail.len() as u64;
        let mut last = None;
        for piece in tail.split_inclusive(|byte| *byte == b'\n') {
            let moment = Moment { byte_offset, at: None };
            if !piece.trim_ascii().is_empty() {
                last = Some(moment);
            }
            let plain = Plain::of(piece);
            if line::is_progress(&String::from_utf8_lossy(plain.bytes())) {
                self.progress.push(moment);
            }
            if RESULT_VALUE.is_match(plain.bytes()) {
                self.last_result = Some(moment);
            }
            byte_offset += piece.len() as u64;
        }
        if let Some(words) = &mut self.last_words {
            words.written = last.unwrap_or_default();
        }
        self.last_line = last;
        self
    }
}

/// What is not a sentence: bars, trackers, counts of what is fetched, code below a warning.
static NO_WORDS: Pattern = Pattern::new(r"^\s|^\W*wandb\b|%\||\d(it|s)/(s|it)\b|\d%|traceback|^\W*\w+:\s*$");
/// A letter, of which a sentence has some.
static WORDS: Pattern = Pattern::new(r"[a-z]{2}[^\n]* [^\n]*[a-z]");

/// The last line that is not empty, if it may be what the script said of its end.
fn last_words(last_lines: &[String], first_kept: u64) -> Option<LastWords> {
    let index = last_lines.iter().rposition(|line| !line.trim().is_empty())?;
    let text = &last_lines[index];
    let bytes = text.as_bytes();
    let is_other = NO_WORDS.is_match(bytes)
        || line::is_progress(text)
        || line::is_quoted_code(bytes)
        || line::is_frame(bytes)
        || line::is_below_error(bytes, bytes.len());
    let is_sentence = WORDS.is_match(bytes) && !is_other;
    is_sentence.then(|| LastWords {
        line_number: first_kept + index as u64,
        text: text.clone(),
        ..LastWords::default()
    })
}

/// A training loss with its value.
static LOSS: Pattern = Pattern::new(
    r"(^|[^a-z])([a-z]{1,8}[ _/.])?(loss|losses|avgloss|trainloss|nll|cost|objective)['\x22]?\]?\s{0,4}(\([a-z]+\))?\s{0,4}[:=| ]\s{0,4}(tensor\(|array\(|np\.float\d+\()?['\x22\[(]?\s{0,4}([+-]?(nan|inf|infinity)\b|[+-]?\d[\d.,]*(e[+-]?\d+)?)",
);
/// Averages at the end, from which a trainer leaves out what was NaN.
static SUMMARY: Pattern = Pattern::new(r"_runtime|_per_second|\b(total|final|average|mean) (train )?loss");
/// What is not the loss of training.
static HELD_OUT: Pattern =
    Pattern::new(r"(^|[^a-z])(val|valid|validation|eval|evaluation|test|dev|best|min|lowest)([^a-z]|$)");
/// A gradient that is NaN beside it.
static LOST_GRADIENT: Pattern =
    Pattern::new(r"(grad_?norm|grad norm|gnorm)['\x22]?\s*[:=\s]\s*['\x22]?nan\b");

/// "Epoch 3/10", "step [500/600]", "iteration 20 of 20".
static COUNT: Pattern = Pattern::new(
    r"\b(epoch|step|iter|iteration|update|round|boosting round)s?\W{0,3}(\d{1,12})\s{0,9}(/|of)\s{0,9}(\d{1,12})\b",
);
/// A bar of the work in the count: "782/782 [====", "782/782 ━━━━", "| 40/40 [00:10<00:00".
static BAR: Pattern = Pattern::new(r"(^|[|\s])(\d{1,12})/(\d{1,12}) (\[|- |━)");
/// The bar of a whole training by steps.
static STEPS_BAR: Pattern =
    Pattern::new(r"\b(steps?|training|train): +\d+%\|[^|\n]*\| (\d{1,12})/(\d{1,12}) \[");
/// A count that is printed with each result, not as the header of an epoch.
static FINE_COUNT: Pattern =
    Pattern::new(r"\b(step|iter|iteration|update|round)s?\W{0,3}\d{1,12}\s{0,9}(/|of)\s{0,9}\d");
/// A result of the work in the count.
static RESULT: Pattern = Pattern::new(any_of! {
    r"\b\w{0,12}(loss|acc|accuracy|auc|rmse|mae|mse|f1|score|reward|perplexity|ppl|metric)\w{0,12}\W{1,4}[+-]?\d",
    r"\b(train|val|valid|test)\w* [+-]?\d+[.,]\d", r"\b(done|finished|completed?)\b",
});
/// Words of ends that are not the plan's.
static STOP_WORD: Pattern = Pattern::new(
    r"\b(stop|stopped|stopping|abort\w*|terminat\w*|cancell?ed|interrupt\w*|diverg\w*|explod\w*|exceeded|kill(ed|ing)|evict\w*|preempt\w*|crash\w*|halt\w*|gave up|giving up|not (improv|decreas|increas)\w*|nan|out of time|used up|exhausted|(epochs?|steps?|iterations?) (still )?(remain|left|missing)\w*)\b",
);
/// What is printed after the last result of work that failed nevertheless.
static FAILED_WORD: Pattern = Pattern::new(r"\b(failed|failure|traceback|aborting)\b");
static RESULT_VALUE: Pattern = Pattern::new(
    r"\b\w{0,12}(loss|acc|accuracy|auc|rmse|mae|mse|f1|score|reward|perplexity|ppl|bleu|wer|map)\w{0,12}\W{1,4}[+-]?\d",
);

/// Whether any of the lines gives a result of the work.
pub(super) fn has_results(lines: &[u8]) -> bool {
    lines
        .split(|byte| *byte == b'\n')
        .any(|line| RESULT_VALUE.is_match(line) || line::is_progress(&String::from_utf8_lossy(line)))
}

/// Reads the last lines, of which the first is line `first_kept` of the stream.
pub(super) fn read(last_lines: &[String], first_kept: u64) -> StreamEnding {
    let mut ending =
        StreamEnding { last_words: last_words(last_lines, first_kept), ..StreamEnding::default() };
    let mut count = Count::default();
    for (number, line) in (first_kept..).zip(last_lines) {
        match loss_is_finite(line.as_bytes()) {
            Some(true) => (ending.lost_losses, ending.lost_at) = (0, 0),
            Some(false) => {
                ending.lost_losses += 1;
                ending.lost_at = number;
                ending.lost_text.clone_from(line);
            }
            None => {}
        }
        ending.has_results |= RESULT_VALUE.is_match(line.as_bytes());
        ending.speaks_of_stop |= STOP_WORD.is_match(line.as_bytes());
        match count.see(line.as_bytes()) {
            Some(true) => {
                ending.complete_at = number;
                ending.complete_text.clone_from(line);
            }
            Some(false) => ending.complete_at = 0,
            None if FAILED_WORD.is_match(line.as_bytes()) => ending.complete_at = 0,
            None => {}
        }
    }
    ending
}

/// Follows the latest count of epochs or steps, line by line.
#[derive(Default)]
struct Count {
    is_full: bool,
    /// Whether it is printed with each result.
    is_fine: bool,
}

impl Count {
    /// Whether the count is complete with its result after this line; `None` where the line says nothing of it.
    fn see(&mut self, line: &[u8]) -> Option<bool> {
        let count = fraction(COUNT.captures_iter(line), 2, 4)
            .or_else(|| fraction(STEPS_BAR.captures_iter(line), 2, 3));
        let bar = fraction(BAR.captures_iter(line), 2, 3);
        if let Some(is_full) = count {
            self.is_full = is_full && bar != Some(false);
            self.is_fine = FINE_COUNT.is_match(line);
        }
        let has_result = (count.is_some() || bar.is_some() || self.is_fine) && RESULT.is_match(line);
        if bar == Some(false) {
            Some(false)
        } else if self.is_full && (has_result || bar == Some(true)) {
            Some(true)
        } else {
            count.map(|_| false)
        }
    }
}

/// Whether the latest count of epochs or steps in the lines is complete with its result, whatever is printed after it.
pub(crate) fn is_counted<T: AsRef<str>>(lines: &[T]) -> bool {
    let mut count = Count::default();
    lines.iter().filter_map(|line| count.see(line.as_ref().as_bytes())).next_back() == Some(true)
}

/// Whether any of the lines has a count of epochs or steps.
pub(super) fn has_count(lines: &[u8]) -> bool {
    COUNT.is_match(lines) || STEPS_BAR.is_match(lines)
}

/// Whether the first training loss in the line is finite; `None` where it gives none.
fn loss_is_finite(line: &[u8]) -> Option<bool> {
    let found = LOSS.captures(line)?;
    let value = found.get(6)?;
    if HELD_OUT.is_match(&line[..found.range(3)?.start]) {
        return None;
    }
    let is_number = value.iter().any(u8::is_ascii_digit);
    let is_zero = is_number && value.iter().all(|byte| matches!(byte, b'0' | b'.' | b','));
    // A trainer that leaves out the NaN of a step reports a loss of zero for it.
    if is_zero {
        return LOST_GRADIENT.is_match(line).then_some(false);
    }
    (!is_number || !SUMMARY.is_match(line)).then_some(is_number)
}

/// Whether the line gives a gradient that is NaN, and no loss that is.
pub(super) fn is_lost_gradient(line: &[u8]) -> bool {
    LOST_GRADIENT.is_match(line) && loss_is_finite(line) != Some(false)
}

/// Whether the line gives a finite loss, and no gradient that is NaN.
pub(super) fn is_sound(line: &[u8]) -> bool {
    loss_is_finite(line) == Some(true) && !LOST_GRADIENT.is_match(line)
}

/// Whether every count of the line has reached its total; `None` where there is no count.
fn fraction<'a>(all: impl Iterator<Item = MatchGroups<'a>>, at: usize, total: usize) -> Option<bool> {
    all.map(|found| number(&found, at) == number(&found, total) && number(&found, total) != Some(0))
        .reduce(|all, one| all && one)
}

fn number(found: &MatchGroups<'_>, group: usize) -> Option<u64> {
    std::str::from_utf8(found.get(group)?).ok()?.parse().ok()
}

/// A count of so many times its total is none: the line is cut within the total, `step 3200/90`.
const BEYOND_TOTAL: u64 = 2;

/// Whether a count of epochs or steps in the lines ends further from its total than it moved from line to line, and
/// before nine tenths of it, or in a line that is cut.
pub(crate) fn falls_short<T: AsRef<str>>(lines: &[T]) -> bool {
    let mut latest: HashMap<Vec<u8>, [u64; 3]> = HashMap::new();
    for found in lines.iter().filter_map(|line| COUNT.captures(line.as_ref().as_bytes())) {
        let (Some(count), Some(total)) = (number(&found, 2), number(&found, 4)) else { continue };
        let Some(word) = found.get(1).map(<[u8]>::to_ascii_lowercase) else { continue };
        let stride = match latest.get(&word) {
            Some([before, stride, _]) if *before == count => *stride,
            Some([before, ..]) if *before < count => count - before,
            _ => count.max(1),
        };
        latest.insert(word, [count, stride, total]);
    }
    let is_short = |[count, stride, total]: &[u64; 3]| {
        count.saturating_add(*stride) < *total && count.saturating_mul(10) < total.saturating_mul(9)
    };
    latest.values().any(is_short) || ends_within_total(lines)
}

/// Whether the last line ends with a count that is far beyond its total. One with more behind it is whole: steps of a whole training beside
/// those of an epoch, `step 1200/400 loss 0.5`.
fn ends_within_total<T: AsRef<str>>(lines: &[T]) -> bool {
    let line = lines.iter().map(|line| line.as_ref().trim_end()).rfind(|line| !line.is_empty());
    let Some((line, found)) = line.and_then(|line| Some((line, COUNT.captures(line)?))) else { return false };
    let is_at_end = found.range(0).is_some_and(|range| range.end == line.len());
    number(&found, 2).zip(number(&found, 4)).is_some_and(|(count, total)| {
        is_at_end && count >= total.saturating_mul(BEYOND_TOTAL).max(BEYOND_TOTAL)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(log: &str) -> StreamEnding {
        read(&log.lines().map(str::to_owned).collect::<Vec<_>>(), 1)
    }

    /// Proves that the latest training loss is read from what loops, bars and trainers print, and that the loss of held-out rows is not.
    #[test]
    fn the_latest_loss_is_read() {
        for (log, lost) in [
            ("step 1 | loss 0.3\nstep 2 | loss nan\nstep 3 | loss: nan", 2),
            ("steps: 100%|#| 40/40 [1:02<00:00, avr_loss=nan]", 1),
            ("{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05}", 1),
            ("{'loss': 0.0, 'grad_norm': 0.1}", 0),
            ("12/12 - 7s - loss: inf - accuracy: 0.1 - val_loss: 0.3", 1),
            ("loss=tensor(nan, device='cuda:0')", 1),
            ("Train Loss (avg): nan", 1),
            ("loss nan\nloss 0.5", 0),
            ("loss nan\nstep 61 | loss 0,0161", 0),
            ("loss nan\nloss 0, acc 0,5", 1),
            ("loss nan\nloss nan\n{'train_runtime': 4.1, 'train_loss': 0.02}", 2),
            ("val_loss: nan", 0),
            ("Validation loss: nan", 0),
            ("lossless: nan\nlr 0.1", 0),
        ] {
            assert_eq!(of(log).lost_losses, lost, "{log}");
        }
    }

    /// Proves that a count falls short only where more than its next line is missing, whether it begins at 0 or at 1.
    #[test]
    fn a_count_may_fall_short() {
        for (log, is_short) in [
            ("Epoch 2/10\nEpoch 3/10", true),
            ("Epoch 3/10 train\nEpoch 3/10 val", true),
            ("step 3000/9000\nstep 3200/9000", true),
            ("Epoch 3/3\nstep 100/600\nstep 200/600", true),
            ("Epoch 8/10\nEpoch 9/10", false),
            ("Epoch 10/10", false),
            ("step 3800/4000\nstep 3900/4000", false),
            ("step 93/100\nstep 94/100", false),
            ("step 88/100\nstep 89/100", true),
            ("step 200/312\nstep 200/312\nstep 200/312", false),
            ("step 3\nstep 4", false),
            ("step 3000/9000\nstep 3200/90", true),
            ("Epoch 61/3", true),
            ("step 1200/400 loss 0.5", false),
            ("step 1200/400\nsaved the model", false),
            ("Epoch 11/10", false),
            ("Epoch 1/0", false),
        ] {
            let lines: Vec<_> = log.lines().map(str::to_owned).collect();
            assert_eq!(falls_short(&lines), is_short, "{log}");
        }
    }

    /// Proves that the last count is complete only where the work in it is done too.
    #[test]
    fn the_last_count_is_read() {
        for (log, line) in [
            ("Epoch 9/9\n 78/78 [====] - 3s - loss: 0.1", 2),
            ("Epoch 9/9\n78/78 ━━━━━━━━━━ 4s 2ms/step - loss: 0.1", 2),
            ("Epoch 9/9\n7/78 ━━━━━━━━━━ 4s 2ms/step - loss: 0.1", 0),
            ("Epoch [9/9], Step [60/60], Loss: 0.1", 1),
            ("Epoch 9 of 9 done", 1),
            ("steps: 100%|#| 40/40 [1:02<00:00]\nEpoch 9/9 loss 0.1 acc 0.4", 2),
            ("Epoch 9/9", 0),
            ("Epoch 9/9\n 7/78 [=>..] - ETA: 3s - loss: 0.1", 0),
            ("Epoch 8/9\n 78/78 [====] - 3s - loss: 0.1", 0),
            ("Epoch [9/9], Step [50/60], Loss: 0.1", 0),
            ("Epoch 0/0 loss 0.1", 0),
            ("steps: 100%|###| 40/40 [1:02<00:00, 1.3s/it]", 1),
            ("steps:  98%|###| 39/40 [1:02<00:00, 1.3s/it]", 0),
            ("Learning iteration 50/50\n  Mean reward: 12.1", 2),
            ("Epoch 9/9\n  batch 3 loss: 12.1", 0),
            ("Epoch 9/9\n 78/78 [====] - 3s - loss: 0.1\n[W] Trial 4 failed, because its value is None", 0),
        ] {
            assert_eq!(of(log).complete_at, line, "{log}");
        }
    }
}
