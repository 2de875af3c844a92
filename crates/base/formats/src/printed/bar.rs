//! Progress bars: tqdm's (which Lightning and Hugging Face draw) and Keras's.

use super::lexical::commas;
use super::lexical::names::{self, Meaning};
use super::lexical::tokens::{number_of, share_of};
use super::tables::YOLO_OVERLAPS;
use super::text;
use super::{NAME_BYTES_MAX, VALUES_MAX};

/// Units of a bar that goes through training steps; bars over bytes, files or examples do not.
const STEP_UNITS: [&str; 7] = ["it", "batch", "batches", "step", "steps", "iter", "iters"];
/// Words in the description of a bar that evaluates and does not train, and the prefix of its values then.
const JUDGING: [(&str, &str); 7] = [
    ("val", "val"),
    ("eval", "eval"),
    ("test", "test"),
    ("sanity", "sanity"),
    ("predict", "predict"),
    ("infer", "predict"),
    ("dev", "val"),
];
/// Words of bars that prepare or store.
const PREPARING: [&str; 14] = [
    "load", "download", "map", "filter", "generat", "token", "fetch", "cach", "prepar", "warm", "writ",
    "sav", "upload", "shard",
];

/// What a bar is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It goes through training steps.
    Training,
    /// It goes through epochs.
    Epochs,
    /// It goes through evaluation data; the word is the prefix of the names of its values.
    Judging(&'static str),
    /// Anything else.
    Other,
}

/// One drawing of a bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub purpose: Purpose,
    /// What distinguishes this bar from others: its description without numbers.
    pub name: String,
    /// The epoch that the description names, and whether it is written as one of so many (and so counted from 1).
    pub epoch: Option<(u64, bool)>,
    pub done: u64,
    pub total: Option<u64>,
    /// The step of the whole training that it shows beside its values: `env_step=2500`.
    pub step: Option<u64>,
    pub values: Vec<(String, f64)>,
    /// Keras draws bars of the same form for training and evaluation.
    pub is_keras: bool,
    /// The width of the terminal cuts it: it may lack values.
    pub is_cut: bool,
    /// The text before the bar.
    pub description: String,
}

/// A bar at the beginning of a line, and what follows it.
pub(super) fn read_bar(line: &str) -> Option<(Bar, &str)> {
    read_tqdm(line).or_else(|| read_keras(line).map(|bar| (bar, "")))
}

/// `Epoch 1/3`: what Keras prints before the bars of an epoch; the epoch.
pub(super) fn epoch_of_line(line: &str) -> Option<u64> {
    let (done, total) = line.strip_prefix("Epoch ")?.split_once('/')?;
    total.parse::<u64>().ok().and(done.parse().ok())
}

/// `desc:  40%|████      | 4/10 [00:00<00:00, 597.42it/s, loss=3.320]`, or without a total `4it [00:00, 12.1it/s]`.
fn read_tqdm(line: &str) -> Option<(Bar, &str)> {
    let Brackets { before, inside, behind, is_cut } = clock_brackets(line).or_else(|| cut_brackets(line))?;
    let mut parts: Vec<&str> = inside.split(", ").collect();
    if is_cut {
        // What is at the edge may lack its end: `lr=1.5e-0`.
        parts.pop();
    }
    let mut parts = parts.into_iter();
    let counts_steps = match (parts.next(), parts.next()) {
        (Some(clock), Some(rate)) if clock.contains(':') => STEP_UNITS.contains(&unit_of(rate.trim())?),
        // Bytes are scaled.
        _ if is_cut => !before.ends_with(['k', 'M', 'G']),
        _ => return None,
    };
    let (description, done, total) = description_and_counts(before)?;
    let description = description.trim().trim_end_matches(':');
    let (mut values, mut step, mut epoch) = (Vec::new(), None, None);
    for part in parts.take(VALUES_MAX) {
        match part.split_once('=').or_else(|| part.split_once(" - ")) {
            // Of large numbers, `1.23e+7`, only some digits are drawn.
            Some((name, value)) if names::is_step_of_training(name.trim()) => {
                step.get_or_insert(value.trim().parse().ok());
            }
            // `epoch=2/5`
            Some(("epoch", value)) if value.contains('/') => epoch = epoch_of(part),
            Some((name, value)) => values.extend(named_number(name, value)),
            // `set_postfix_str` may hold any text.
            None => values.extend(text::read_text(part, None).into_iter().flat_map(|named| named.values)),
        }
    }
    let name = shape_of(description);
    // tinygrad and AllenNLP show the values in the description.
    let described = Some(description)
        .filter(|text| has_digit(text) && !text.contains(YOLO_OVERLAPS))
        .and_then(|text| text::read_text(text, None).or_else(|| text::read_pairs(text)));
    let described = described.map(|named| named.values).unwrap_or_default();
    let purpose = match purpose_of(if described.is_empty() { &name } else { first_word(&name) }) {
        Purpose::Training if !counts_steps && !shows_measure(&values) => Purpose::Other,
        Purpose::Training if matches!(&*name, "epoch" | "epochs") && !has_digit(description) => {
            Purpose::Epochs
        }
        purpose => purpose,
    };
    values.extend(described.into_iter().take(VALUES_MAX));
    let bar = Bar {
        purpose,
        name,
        epoch: epoch_of(description).or(epoch),
        done,
        total,
        step: step.flatten(),
        values,
        is_keras: false,
        is_cut,
        description: description.into(),
    };
    Some((bar, behind))
}

/// What is before the brackets of a bar: its description, how far it is, and its total where it has one.
fn description_and_counts(before: &str) -> Option<(&str, u64, Option<u64>)> {
    match before.rsplit_once('|') {
        Some((bar, counts)) => {
            let (done, total) = counts.trim().split_once('/')?;
            // A description may have bars and numbers: `loss: 0.6875 ||:  50%|###`.
            let description = match bar.rsplit_once("%|") {
                Some((left, _)) => left.trim_end_matches(|at: char| at.is_ascii_digit()),
                None => bar.split_once('|')?.0.trim_end(),
            };
            Some((description, count(done)?, count(total)))
        }
        None => {
            let (description, counted) = before.rsplit_once(' ').unwrap_or(("", before));
            Some((description, count(counted.trim_end_matches(char::is_alphabetic))?, None))
        }
    }
}

/// Whether values beside a bar are measured: it goes through the training whatever it counts, `11.7img/s, loss (batch)=0.5`.
fn shows_measure(values: &[(String, f64)]) -> bool {
    let is_measure = |word: &str| names::meaning_of(&word.to_lowercase()) == Meaning::Measure;
    values.iter().any(|(name, _)| name.split([' ', '(', ')']).any(is_measure))
}

/// The brackets with the clock, and what is around them.
struct Brackets<'l> {
    before: &'l str,
    inside: &'l str,
    behind: &'l str,
    /// The width of the terminal cut the drawing within them.
    is_cut: bool,
}

/// The unit of a rate: `it` of `597.42it/s` and of `2.5s/it`.
fn unit_of(rate: &str) -> Option<&str> {
    let (per, unit) = match (rate.split_once("/s"), rate.split_once("s/")) {
        (Some((number, "")), _) => {
            (number, number.trim_start_matches(|at: char| "0123456789.?kMG".contains(at)))
        }
        (_, Some((number, unit))) => (number, unit),
        _ => return None,
    };
    (!per.is_empty()).then_some(unit.trim())
}

/// The brackets with the clock: `[00:01<00:30, …]`, the last ones of that form.
fn clock_brackets(line: &str) -> Option<Brackets<'_>> {
    let open = line.rmatch_indices('[').map(|(at, _)| at).find(|at| {
        let clock = &line[at + 1..];
        let end = clock.find(|letter: char| !letter.is_ascii_digit() && letter != ':').unwrap_or(0);
        clock[..end].contains(':') && matches!(clock.as_bytes().get(end), Some(b'<' | b','))
    })?;
    let close = open + 1 + closing(&line[open + 1..])?;
    Some(Brackets {
        before: line[..open].trim_end(),
        inside: &line[open + 1..close],
        behind: line[close + 1..].trim(),
        is_cut: false,
    })
}

/// Where the bracket is closed that was opened before this text. Values may be lists.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.char_indices().find_map(|(at, letter)| {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The brackets of a drawing whose end the width of the terminal cuts:
/// `| 1/40 [00:00<00:01, 48.2it/s, loss=0.5, lr=1.5e-0`. Only bars with a total are cut.
fn cut_brackets(line: &str) -> Option<Brackets<'_>> {
    let begins_with_clock = |inside: &str| {
        let behind = inside.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ':');
        behind.is_empty() || (behind.len() < inside.len() && behind.starts_with(['<', ',']))
    };
    let is_of_bar = |before: &str| {
        let counts = before.rsplit_once('|').and_then(|(_, counts)| counts.split_once('/'));
        counts.is_some_and(|(done, total)| count(done).is_some() && count(total).is_some())
    };
    let brackets = line.rmatch_indices(" [").map(|(at, _)| (line[..at].trim_end(), &line[at + 2..]));
    let mut brackets = brackets.filter(|(before, inside)| begins_with_clock(inside) && is_of_bar(before));
    let (before, inside) = brackets.next().filter(|(_, inside)| closing(inside).is_none())?;
    Some(Brackets { before, inside, behind: "", is_cut: true })
}

/// Whether a line is a drawing that the width of the terminal cuts before it shows how far it is: ` 40%|████ `,
/// ` 40%|█| 4/1`. It has no numbers to be read.
pub(super) fn is_cut_short(line: &str) -> bool {
    let Some((share, drawn)) = line.split_once("%|") else { return false };
    let (blocks, counts) = drawn.split_once('|').unwrap_or((drawn, ""));
    let behind = blocks.trim_start_matches(|letter: char| matches!(letter, '#' | '\u{2588}'..='\u{258f}'));
    // The last block of a bar in ASCII is a digit.
    let behind = behind.strip_prefix(|letter: char| letter.is_ascii_digit()).unwrap_or(behind);
    share.ends_with(|letter: char| letter.is_ascii_digit())
        && !share.contains('|')
        && behind.trim().is_empty()
        && counts.chars().all(|letter| letter.is_ascii_digit() || " ./kMG".contains(letter))
}

/// `6/6 ━━━━ 0s 34ms/step - loss: 1.3787 - mae: 1.0677`, with or without the bar, as Keras prints it.
fn read_keras(line: &str) -> Option<Bar> {
    let (counts, rest) = line.split_once(' ')?;
    let (done, total) = counts.split_once('/')?;
    let (done, total) = (count(done)?, count(total));
    let mut parts = rest.split(" - ");
    let values: Vec<(String, f64)> = parts
        .by_ref()
        .skip(usize::from(!rest.starts_with("- ")))
        .take(VALUES_MAX)
        .filter_map(|part| part.trim().trim_start_matches("- ").split_once(": "))
        .filter_map(|(name, value)| named_number(name, value))
        .collect();
    let seconds = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<u64>().is_ok());
    let timed =
        ["/step", "/epoch", "ETA:"].iter().any(|mark| rest.contains(mark)) || rest.split(' ').any(seconds);
    (timed && !values.is_empty()).then(|| Bar {
        purpose: Purpose::Training,
        name: "keras".into(),
        epoch: None,
        done,
        total,
        step: None,
        values,
        is_keras: true,
        is_cut: false,
        description: String::new(),
    })
}

fn named_number(name: &str, value: &str) -> Option<(String, f64)> {
    let name = name.trim();
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name != names::LIGHTNING_VERSION;
    let value = commas::pointed(value.trim());
    let share = share_of(&value).filter(|_| names::is_share(name));
    share.or_else(|| number_of(&value)).filter(|_| fits).map(|value| (name.to_owned(), value))
}

/// A count, also scaled as tqdm does: `1.20k`.
fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let units = [('k', 1e3), ('M', 1e6), ('G', 1e9)];
    let scaled = units.into_iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = scaled.unwrap_or((text, 1.0));
    let number: f64 = digits.parse().ok()?;
    let number = number * factor;
    (0.0..9e15).contains(&number).then_some(number as u64)
}

/// The description in small letters, without numbers.
fn shape_of(description: &str) -> String {
    let shape: String = description.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    shape.to_lowercase().trim_matches(|letter: char| !letter.is_alphanumeric()).into()
}

fn first_word(name: &str) -> &str {
    let end = name.find(|letter: char| !letter.is_alphabetic() && letter != '_');
    &name[..end.unwrap_or(name.len())]
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn purpose_of(name: &str) -> Purpose {
    let words = || name.split(|letter: char| !letter.is_alphanumeric());
    if let Some((_, said)) = JUDGING.iter().find(|(word, _)| words().any(|found| found.starts_with(word))) {
        return Purpose::Judging(said);
    }
    match PREPARING.iter().any(|word| words().any(|found| found.starts_with(word))) {
        true => Purpose::Other,
        false => Purpose::Training,
    }
}

/// `Epoch 3` or `epoch 3/10`.
fn epoch_of(description: &str) -> Option<(u64, bool)> {
    let small = description.to_lowercase();
    let behind = small[small.find("epoch")? + 5..].trim_start_matches([' ', ':', '[', '#', '=']);
    let digits = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
    let epoch = behind[..digits].parse().ok()?;
    Some((epoch, behind[digits..].starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(line: &str) -> Bar {
        read_bar(line).unwrap_or_else(|| panic!("no bar: {line}")).0
    }

    /// Proves tqdm's forms: described, with values, without a total, slow, scaled, followed by text.
    #[test]
    fn bars_of_tqdm() {
        let found = bar(
            "Epoch 1/3:  50%|█████     | 5/10 [00:00<00:00, 48.17it/s, grad_norm=nan, loss=0.2, lr=0.001]",
        );
        assert_eq!((found.purpose, &*found.name), (Purpose::Training, "epoch"));
        assert_eq!((found.epoch, found.done, found.total), (Some((1, true)), 5, Some(10)));
        assert!(found.values[0].1.is_nan());
        assert_eq!(found.values[1..], [("loss".to_owned(), 0.2), ("lr".to_owned(), 0.001)]);
        let found = bar("120it [00:10, 11.9it/s, loss=0.5]");
        assert_eq!((found.done, found.total, found.values.len()), (120, None, 1));
        assert_eq!(bar("  1%|          | 1.20k/60.0k [01:02:03<1:00:00, 2.5s/it]").done, 1_200);
        let (found, rest) =
            read_bar(" 33%|███▎      | 8/24 [00:00<00:00, 313.63it/s]step 8: loss 2").unwrap();
        assert_eq!((found.done, rest), (8, "step 8: loss 2"));
        assert_eq!(
            bar("5/10 [00:00<00:00, 1it/s, loss: 0.5]".replacen("5/10", "50%|█|5/10", 1).as_str())
                .values
                .len(),
            1
        );
    }

    /// Proves that a bar which the width of the terminal cuts keeps its step and its whole values, whatever is at the
    /// edge; and that what is cut before its counts, unlike a row of a table, is a drawing too.
    #[test]
    fn bars_that_are_cut() {
        let whole = "  2%| | 1/40 [00:00<00:01, 191.50it/s, loss=123.456, lr=1.5e-05]";
        for (end, count) in [
            (", lr=1.5e-05", 1),
            (", lr=1.5e-0", 1),
            (", lr=1", 1),
            ("456, l", 1),
            ("loss=123.456", 0),
            ("loss=12", 0),
            ("191.50i", 0),
            ("00:00<", 0),
            ("1/40 [0", 0),
            ("1/40 [", 0),
        ] {
            let cut = &whole[..whole.find(end).unwrap() + end.len()];
            let (found, rest) = read_bar(cut).unwrap_or_else(|| panic!("no bar: {cut}"));
            let place = (found.purpose, found.done, found.total, rest);
            assert_eq!(place, (Purpose::Training, 1, Some(40), ""), "{cut}");
            assert_eq!(found.values, vec![("loss".to_owned(), 123.456); count], "{cut}");
        }
        assert_eq!(bar("w.bin:  2%| | 1.2M/40M [00:00<00:01, 19").purpose, Purpose::Other);
        for cut in ["  2%|", "  2%|#5   ", "Epoch 1:  2%|█▍", "  2%| | 1", "  2%| | 1/4"] {
            assert!(is_cut_short(cut) && read_bar(cut).is_none(), "{cut}");
        }
        let listed = bar("  2%| | 1/40 [00:00<00:01, 191.50it/s, at=[1, 2], loss=0.5]");
        assert_eq!(listed.values, [("loss".to_owned(), 0.5)]);
        for row in [
            "acc 91%| 12/30",
            "acc 91%| 5",
            "| 2% | 91%| 12| 30",
            "step 5 | loss 0.5 [00:12",
            "91% | 12",
            whole,
        ] {
            assert!(!is_cut_short(row), "{row}");
        }
    }

    /// Proves that bars that do not train are distinguished.
    #[test]
    fn bars_for_other_purposes() {
        let purpose = |description: &str, rate: &str| {
            bar(&format!("{description}: 100%|█| 2/2 [00:00<00:00, 7{rate}]")).purpose
        };
        assert_eq!(purpose("Validation DataLoader 0", "it/s"), Purpose::Judging("val"));
        assert_eq!(purpose("Sanity Checking", "it/s"), Purpose::Judging("sanity"));
        assert_eq!(purpose("Evaluating", "it/s"), Purpose::Judging("eval"));
        assert_eq!(purpose("Map", " examples/s"), Purpose::Other);
        assert_eq!(purpose("Writing model shards", "it/s"), Purpose::Other);
        assert_eq!(purpose("model.safetensors", "MB/s"), Purpose::Other);
        assert_eq!(purpose("Epochs", "it/s"), Purpose::Epochs);
        assert_eq!(purpose("Epoch 7", "s/it"), Purpose::Training);
        assert_eq!(purpose("Training", "it/s"), Purpose::Training);
    }

    /// Proves Keras's forms, of this version and of older ones, and that other counts are no bars.
    #[test]
    fn bars_of_keras() {
        for line in [
            "6/6 ━━━━━━━━━━━━━━━━━━━━ 0s 34ms/step - loss: 1.3787 - val_mae: 1.0677",
            "6/6 - 0s - 70ms/step - loss: 1.3787 - val_mae: 1.0677",
            "6/6 [==============================] - 1s 3ms/step - loss: 1.3787 - val_mae: 1.0677",
        ] {
            let found = bar(line);
            assert_eq!((found.done, found.total), (6, Some(6)), "{line}");
            assert_eq!(found.values, [("loss".to_owned(), 1.3787), ("val_mae".to_owned(), 1.0677)], "{line}");
        }
        assert_eq!(read_bar("3/4 of the files - size: 12"), None);
        assert!(
            epoch_of_line("Epoch 1/3") == Some(1)
                && epoch_of_line("Epoch 1/3: loss 0.5").is_none()
                && epoch_of_line("Epoch 2").is_none()
        );
    }
}
