//! The reader against what real tools printed, and against bytes that nothing printed.

use proptest::prelude::*;
use trackway_core::{Rng as _, SplitMix64};

use super::*;

/// Reads `crates/base/formats/tests/vectors/printed/NAME.jsonl`: the pieces of both outputs in the order they came.
fn replay(name: &str) -> Vec<String> {
    let path = format!("{}/tests/vectors/printed/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for line in text.lines() {
        let (output, piece): (u8, String) = serde_json::from_str(line).unwrap();
        let output = if output == 1 { Printed::Stdout } else { Printed::Stderr };
        reader.push(output, piece.as_bytes(), |metrics| found.push(metrics.clone()));
    }
    reader.finish(|metrics| found.push(metrics.clone()));
    found.iter().map(shown).collect()
}

fn shown(metrics: &PrintedMetrics) -> String {
    let values: Vec<String> = metrics.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}: {}", metrics.step, values.join(" "))
}

fn read(text: &str) -> Vec<String> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    reader.finish(|metrics| found.push(shown(metrics)));
    found
}

/// Proves that a step that no training reaches, such as the largest number there is, is not a step of the script.
#[test]
fn implausible_steps() {
    let text = "step 5: loss 1.0\nstep 9223372036854775807: loss 0.5\nloss 0.25\n";
    assert_eq!(read(text), ["5: loss=1", "5: loss=0.25"]);
    assert_eq!(read("{\"step\": 18446744073709551615, \"loss\": 1}\n"), [] as [&str; 0]);
}

/// Proves that Hugging Face's dicts, which name no step, get the very step that its bar on the other output shows.
#[test]
fn hugging_face_trainer() {
    let found = replay("hugging_face");
    let steps = |name: &str| -> Vec<String> {
        let named = found.iter().filter(|line| line.contains(&format!(" {name}=")));
        named.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(steps("loss"), ["4", "8", "12", "16", "20", "24"]);
    assert_eq!(steps("eval_loss"), ["8", "16", "24"]);
    assert_eq!(found[0], "4: epoch=0.5 grad_norm=1.064 learning_rate=0.00004375 loss=1.588");
}

/// Proves that the steps of an epoch that a limit of steps cuts follow those of the full ones before it.
#[test]
fn a_shorter_last_epoch() {
    let bar = |epoch: u64, done: u64, total: u64, loss: &str| {
        format!("\rEpoch {epoch}:  10%|█| {done}/{total} [00:00<00:00, 40.00it/s, train_loss={loss}]")
    };
    let drawn = [
        (0, 1, 4, "0.9"),
        (0, 4, 4, "0.8"),
        (1, 2, 4, "0.7"),
        (1, 4, 4, "0.6"),
        (2, 1, 3, "0.5"),
        (2, 3, 3, "0.4"),
    ];
    let text: String =
        drawn.iter().map(|(epoch, done, total, loss)| bar(*epoch, *done, *total, loss)).collect();
    let steps: Vec<String> = read(&text).iter().map(|line| line.split(':').next().unwrap().into()).collect();
    assert_eq!(steps, ["1", "4", "6", "8", "9", "11"]);
}

/// Proves that a NaN as Lightning's bar formats it is a value.
#[test]
fn a_nan_in_lightnings_bar() {
    let text = "Epoch 0:  10%|█| 1/9 [00:00<00:00, 40.00it/s, train_loss=nan.0]\rEpoch 0:  20%|█| 2/9 [00:00<00:00, 40.00it/s, train_loss=-inf.0]\n";
    assert_eq!(read(text), ["1: train_loss=NaN", "2: train_loss=-inf"]);
}

/// Proves that Lightning's bar gives one value a step over all epochs, the one drawn last, and each validation once.
#[test]
fn lightning_trainer() {
    let found = replay("lightning");
    let train: Vec<&String> = found.iter().filter(|line| line.contains("train_loss")).collect();
    let steps: Vec<String> =
        train.iter().map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(steps, (1..=30).map(|step| step.to_string()).collect::<Vec<_>>());
    assert_eq!((&**train[0], &**train[29]), ("1: train_loss=0.372", "30: train_loss=0.562"));
    let validation: Vec<&String> = found.iter().filter(|line| line.contains("val_loss")).collect();
    assert_eq!(validation, ["10: val_loss=0.75", "20: val_loss=0.692", "30: val_loss=0.685"]);
}

/// Proves that Keras's bars give the last drawing of every step, with the validation at the end of each epoch.
#[test]
fn keras_fit() {
    assert_eq!(
        replay("keras_lines"),
        [
            "6: loss=1.3787 mae=1.0677 val_loss=0.7802 val_mae=0.7446",
            "12: loss=0.9373 mae=0.8307 val_loss=0.5434 val_mae=0.5898",
            "18: loss=0.669 mae=0.6823 val_loss=0.4081 val_mae=0.4892",
        ]
    );
    let bars = replay("keras");
    assert!(replay("keras_lines").iter().all(|line| bars.contains(line)), "{bars:?}");
}

/// Proves that a training which continues with epoch 8 continues with its steps, and that a second training in one
/// process, which begins with epoch 1 again, adds its steps to those of the first.
#[test]
fn keras_continues() {
    let bar = |epoch: u64, loss: &str| format!("Epoch {epoch}/15\n6/6 - 0s - 70ms/step - loss: {loss}\n");
    assert_eq!(read(&(bar(8, "1.5") + &bar(9, "1.25"))), ["48: loss=1.5", "54: loss=1.25"]);
    let twice = [bar(1, "1.5"), bar(2, "1.25"), bar(1, "0.75"), bar(2, "0.5")].concat();
    assert_eq!(read(&twice), ["6: loss=1.5", "12: loss=1.25", "18: loss=0.75", "24: loss=0.5"]);
}

/// Proves that `evaluate` after `fit` is distinguished from it.
#[test]
fn keras_evaluate() {
    let text = "Epoch 1/1\n6/6 - 0s - 70ms/step - loss: 1.5\n2/2 - 0s - 7ms/step - loss: 0.25\n";
    assert_eq!(read(text), ["6: loss=1.5", "6: eval_loss=0.25"]);
}

/// Proves tqdm in a loop of epochs: a value for every place that was drawn, NaN too, and printed lines in between.
#[test]
fn tqdm_in_a_loop() {
    let found = replay("tqdm");
    assert!(found.contains(&"5: grad_norm=NaN loss=0.1 lr=0.001".to_owned()), "{found:?}");
    assert!(found.contains(&"10: val_loss=0.5 val_acc=0.99".to_owned()), "{found:?}");
    assert_eq!(found.last().unwrap(), "30: val_loss=0.1667 val_acc=0.97");
}

/// Proves lines that scripts print by themselves, on both outputs.
#[test]
fn plain_prints() {
    let found = replay("plain");
    for line in [
        "10: train_loss=4.1 val_loss=4.2",
        "10: loss=4.1 mfu=-100",
        "101: loss=1.99 learning_rate=0.0001 tokens_per_second=1234.5",
        "100: loss=0.3527",
        "200: loss=NaN",
    ] {
        assert!(found.contains(&line.to_owned()), "{line}: {found:?}");
    }
    assert_eq!(found.len(), 15, "{found:?}");
}

/// Proves that the output of a script which records its metrics itself is not read twice, but for the objects it prints
/// to be read.
#[test]
fn only_json_on_request() {
    let mut reader = PrintedReader::default();
    reader.read_only_json();
    let mut found = Vec::new();
    let text =
        "step 1: loss 2\n{'loss': 3}\n{\"step\": 2, \"loss\": 4}\n 50%|█| 1/2 [00:00<00:00, 1it/s, loss=5]\n";
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    reader.finish(|metrics| found.push(shown(metrics)));
    assert_eq!(found, ["2: loss=4"]);
}

/// Proves for each of the formats of public training code in `formats.json`, in values of our own, that every value
/// which a person reads there is read at its step, and nothing has a name of something else. Names are compared by
/// their letters and digits.
#[test]
fn formats_of_public_training_code() {
    #[derive(serde::Deserialize)]
    struct Format {
        tool: String,
        prints: String,
        metrics: Vec<(String, u64, f64)>,
        /// Names that nothing may have.
        #[serde(default)]
        never: Vec<String>,
    }
    let path = format!("{}/tests/vectors/printed/formats.json", env!("CARGO_MANIFEST_DIR"));
    let formats: Vec<Format> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let letters = |name: &str| -> String {
        name.to_lowercase().chars().filter(|letter| letter.is_ascii_alphanumeric()).collect()
    };
    let mut missing = Vec::new();
    for format in &formats {
        let known = missing.len();
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        reader.push(Printed::Stdout, format.prints.as_bytes(), |metrics| found.push(metrics.clone()));
        reader.finish(|metrics| found.push(metrics.clone()));
        for (name, step, value) in &format.metrics {
            let is_there = found.iter().filter(|metrics| metrics.step == *step).any(|metrics| {
                metrics.values.iter().any(|(known, read)| letters(known) == letters(name) && read == value)
            });
            if !is_there {
                missing.push(format!("{}: {name}={value} at {step}", format.tool));
            }
        }
        let names = found.iter().flat_map(|metrics| &metrics.values).map(|(name, _)| name);
        let wrong = names.filter(|name| format.never.contains(name));
        missing.extend(wrong.map(|name| format!("{}: {name} is none", format.tool)));
        if missing.len() > known {
            missing.push(found.iter().map(shown).collect::<Vec<_>>().join(" · "));
        }
    }
    assert!(formats.len() >= 60 && missing.is_empty(), "{missing:#?}");
}

/// Parts of the forms, so that random strings are often close to one.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "loss",
            "=",
            ": ",
            "0.5",
            "1e999",
            "{'",
            "': ",
            "}",
            "{\"",
            "\"",
            "[",
            "]",
            "(",
            "nan",
            "-inf",
            "/",
            "|",
            "%",
            "\r",
            "\n",
            "\x1b[",
            "\x1b[1m",
            "\x08",
            " - ",
            "Epoch 1/3\n",
            "3/10 ",
            "[00:01<00:02, 1it/s",
            ", loss=1]",
            "step ",
            "18446744073709551615",
            "99999999999999999999",
            "it/s]",
            "━",
            "0s 3ms/step",
            "\u{0}",
            "é",
            "'s ",
            "\n| a/ | |\n",
            "| total_timesteps | 5 |\n",
            "epoch  loss  acc\n",
            "[CV 1/5] END ;",
            "[INFO|a.py:1] ",
            "12:30",
            "5,001",
            "loss 1,234.50 ppl 1,222.0 ",
            "loss 0,35 ",
            "mae 1,250",
            "acc 91,2 %",
            "\nstep 10/500\n",
            "\n  gpu/tokens: 512\n",
            "loss[ctc=",
            "[valid] ",
            ", val: loss ",
            "Trial 3 finished with value: ",
            "\nbest params {'clf__C': 1}\n",
            "\n1epoch:train:1-50batch: loss=2",
            "Progress: 12.5% words/sec/thread: 5 ",
            "Train [60/109] loss 0.5 ",
            "round 5: loss ",
            "lr = 1 #\n",
            "Epoch(val) [1][2/3]",
            "total steps: ",
            "\nTRAIN Batch 0/0 loss 2.5 ",
            "\nBatch 3/5 loss 2.5 ",
            "tick 0 kimg 4.0 augment 0.5 ",
            "L1 0.5 PSNR 2.5",
            " -> ",
            " [0.75, 0.5]",
            "... ",
            "Epoch: [0] [ 20/100] ",
            "[lfw][5]XNorm: 0.5 ",
            "\nTest: [39/39] loss 0.5 ",
            " (0.25) ",
            "D(G(z)): 0.5 / 0.25 ",
            "A: 5/10 = 0.5 ",
            "[00:01<00:02, 1it/s, env_step=5, loss=1]",
            "\nTraining: 2026-01-02 10:02:03,123-",
            "LearningRate 0.5 ",
            "F1 (micro): 0.5 ",
            "[step=5/10,epoch=1]",
            "average  since  example\nloss  last  counter\n0.5 0.25 8\n",
            "\nEval: 16_h1=0.5, l2=0.25\n",
            "\n| eval | S: 5 | F: 8 | R: 0.5 | T: 1:02:03\n",
            "\nRecent | t_env: 5 | Episode: 3\n",
            "\na_x: 0.5\tb_x: 0.25\n",
            "\nValidation:\n",
            "\nValidating\n",
            "\n| AP | AP50 |\n| 0.5 | 0.25 |\n",
            "\nTraining |  Validation\n",
            "\nacc | 0.5 | 0.25\n",
            "\nResults for bbox:\n",
            "\nEpoch: 1\n",
            "\n[3/10] [L1: 0.5] loss 0.5\n",
            "\n[1/5] loss: 0.5\n",
            "\nTRAIN Batch 1/50 loss 0.5 rank 0\n",
            "\neval_episode=3, return=[0.5]\n",
            "Val. loss: 0.5 ",
            "psnr 30.5dB ",
            "a/loss/b 0.5/0.25/0.75 ",
            "Best Class Accuracy: 0.5, Pixel Accuracy: 0.25 ",
            "%",
        ])
        .prop_map(str::to_owned),
    ]
}

/// What a text says that is repeated with other digits: as it is read, and with nothing remembered of lines before.
fn read_both_ways(text: &str, by: u8) -> [Vec<String>; 2] {
    let shifted = |by: u8| {
        move |letter: char| match letter.to_digit(10) {
            Some(digit) => char::from(b'0' + (digit as u8 + by) % 10),
            None => letter,
        }
    };
    let texts: Vec<String> = (0..6).map(|times| text.chars().map(shifted(times * by)).collect()).collect();
    [false, true].map(|afresh| {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        for line in texts.join("\n").split_inclusive(['\n', '\r']) {
            reader.push(Printed::Stdout, line.as_bytes(), |metrics| found.push(shown(metrics)));
            found.extend(reader.take_settings().into_iter().map(|(name, value)| format!("{name}={value}")));
            if afresh {
                reader.reading.quiet = QuietForms::default();
                reader.reading.known = KnownForms::default();
            }
        }
        reader.finish(|metrics| found.push(shown(metrics)));
        found
    })
}

/// Proves that what each program prints is read alike with what is remembered of the lines before and without, and that
/// something is remembered.
#[test]
fn programs_are_read_alike_again() {
    let mut remembered = 0;
    for prints in programs::prints() {
        for by in [3, 7] {
            let [read, afresh] = read_both_ways(&format!("{prints}\n{prints}"), by);
            assert_eq!(read, afresh, "{prints}");
        }
        let mut reader = PrintedReader::default();
        reader.push(Printed::Stdout, prints.repeat(3).as_bytes(), |_| {});
        remembered += reader.reading.known.count();
    }
    assert!(remembered >= 40, "{remembered}");
}

/// How many mutants are read by default; `TRACKWAY_FUZZ_MUTANTS` sets another number.
const USUAL_MUTANTS: u64 = 200;

/// Changes a good text in one to three places: bits, bytes, signs, pieces left out, doubled, and the end.
fn mutate(good: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.next_u64() % 3 {
        if bytes.is_empty() {
            break;
        }
        let at = random.next_u64() as usize % bytes.len();
        let to = (at + 1 + random.next_u64() as usize % 40).min(bytes.len());
        match random.next_u64() % 6 {
            0 => bytes[at] ^= 1 << (random.next_u64() % 8),
            1 => bytes[at] = random.next_u64() as u8,
            2 => bytes[at] = b"\n\r|=:,%/[]{}(-0."[random.next_u64() as usize % 16],
            3 => drop(bytes.drain(at..to)),
            4 => bytes.extend_from_within(at..to),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// What pieces of an output say, with what is remembered of the lines before or without.
fn said<'p>(pieces: impl Iterator<Item = &'p [u8]>, afresh: bool) -> Vec<String> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for piece in pieces {
        reader.push(Printed::Stdout, piece, |metrics| found.push(shown(metrics)));
        if afresh {
            reader.reading.quiet = QuietForms::default();
            reader.reading.known = KnownForms::default();
        }
    }
    reader.finish(|metrics| found.push(shown(metrics)));
    found
}

/// Proves that what programs print is read without a panic also where it is damaged: in pieces of any size as at once,
/// and with what is remembered of the lines before as without.
#[test]
fn mutants_are_read_alike() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    let good: Vec<&str> = programs::prints().collect();
    for seed in 0..mutants {
        let mut random = SplitMix64::new(seed);
        let prints = good[seed as usize % good.len()].as_bytes();
        let bytes = [prints, b"\n", &mutate(prints, &mut random), b"\n", prints].concat();
        let whole = said(std::iter::once(&bytes[..]), false);
        assert_eq!(whole, said(bytes.chunks(1 + random.next_u64() as usize % 50), false), "mutant {seed}");
        let lines = bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r'));
        assert_eq!(whole, said(lines, true), "mutant {seed}");
    }
}

/// Proves that rows below headings, bars that name their step, counts of an evaluation with means, and values of a set
/// at a step have forms that are remembered: only their numbers are read from the second line on.
#[test]
fn forms_with_more_than_values_are_remembered() {
    for (lines, count) in [
        ("[step=12/999]\n    train/CE loss=9.5\n    train/PPL=13.25\n", 2),
        ("Epoch #1:  50%|#| 5/9 [00:01<00:01, 5.0it/s, env_step=5, loss=0.75]\r", 1),
        ("Test: [15/39]  Loss: 5.5 (5.25)  Acc@1: 4.5 (4.75)\n", 1),
        ("step 77 loss 0.5\n[lfw][77]XNorm: 21.5\n", 2),
        ("[2/25][3/782] Loss_D: 1.75 D(x): 0.475 D(G(z)): 0.4875 / 0.0125\n", 1),
    ] {
        let mut reader = PrintedReader::default();
        let text = format!("step 1 loss 0.5\n{}", lines.repeat(4));
        reader.push(Printed::Stdout, text.as_bytes(), |_| {});
        assert_eq!(reader.reading.known.count(), count, "{lines}");
    }
}

/// Proves that values whose names have the same number have the same names, that a line of a known form has such a
/// number, and that what was read before a form is lent again does not change it: not what is behind a bar, not below a
/// heading of a part of the data.
#[test]
fn names_that_have_a_number() {
    let text: String = (1..60)
        .map(|step| match step % 20 {
            7 => format!("step {step} | val_loss 0.{step:02} | acc 0.5\n"),
            13 => format!("  1%|#   | {step}/100 [00:10<00:20, 5.0it/s]\nvalidation:\n  loss: 0.{step:02}\n"),
            17 => format!("loss 0.{step:02} at the end of a part\n"),
            _ => format!("step {step} loss 0.{step:02} lr 1e-3\n"),
        })
        .collect();
    let read = |forgets: bool| {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        for line in text.split_inclusive('\n') {
            if forgets {
                reader.reading.known = KnownForms::default();
            }
            reader.push(Printed::Stdout, line.as_bytes(), |metrics| found.push(metrics.clone()));
        }
        reader.finish(|metrics| found.push(metrics.clone()));
        found
    };
    let found = read(false);
    let mut names = std::collections::BTreeMap::new();
    for metrics in found.iter().filter(|metrics| metrics.names.is_some()) {
        let these: Vec<&str> = metrics.values.iter().map(|(name, _)| &**name).collect();
        assert_eq!(*names.entry(metrics.names).or_insert_with(|| these.clone()), these);
    }
    assert!(found.iter().filter(|metrics| metrics.names.is_some()).count() > 30);
    let shown = |found: &[PrintedMetrics]| found.iter().map(shown).collect::<Vec<_>>();
    assert_eq!(shown(&found), shown(&read(true)));
}

/// Proves that a number that belongs to a name is found to be one whatever it is: the next line of the same form has another name.
#[test]
fn numbers_of_names_are_no_values() {
    let text = "step 1 loss 0.5\nprecision @ 5 = 0.91\nprecision @ 1 = 0.86\nprecision @ 1 = 0.85\nprecision @ 5 = 0.92\n";
    let named: Vec<String> =
        read(text)[1..].iter().map(|line| line.split([' ', '=']).nth(1).unwrap().into()).collect();
    assert_eq!(named, ["precision@5", "precision@1", "precision@1", "precision@5"]);
}

/// Proves that the numbers of a known form are those in the line: one digit, a sign, a power, a percentage, NaN, many
/// digits, a leading zero.
#[test]
fn numbers_of_known_forms() {
    for (form, lines) in [
        ("step STEP loss LOSS", ["1 1.25e-03", "2 7.50e-03", "3 0.00e-03", "4 -1.5"]),
        ("step STEP accuracy LOSS loss nan", ["1 11.5%", "2 22.5%", "3 97.2%", "4 00.0%"]),
        (
            "{\"step\": STEP, \"loss\": LOSS}",
            ["1 0.12345678901234567", "2 0.32345678901234567", "3 0.00000000000000001", "4 9"],
        ),
        ("step STEP loss LOSS", ["1 1,234.50", "2 5,678.25", "3 2,002.75", "4 1,000.00"]),
        ("train: STEP/77 loss LOSS", ["11 0.5", "22 1,234.0", "33 0.25", "44 5,678.0"]),
        ("{\"step\": STEP, \"loss\": LOSS}", ["1 10", "2 22", "3 03", "4 44"]),
    ] {
        let text = lines.map(|line| {
            let (step, loss) = line.split_once(' ').unwrap();
            form.replace("STEP", step).replace("LOSS", loss) + "\n"
        });
        let mut afresh = Vec::new();
        text.iter().for_each(|line| afresh.extend(read(line)));
        assert_eq!(read(&text.concat()), afresh, "{form}");
    }
}

proptest! {
    /// Proves that no bytes make the reader panic, that it invents nothing out of proportion, and that the answer does
    /// not depend on how the bytes were cut into pieces.
    #[test]
    fn any_text_is_read_alike_in_pieces(parts in prop::collection::vec(piece(), 0..60), cut in 1usize..7) {
        let text = parts.concat();
        let whole = read(&text);
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        for bytes in text.as_bytes().chunks(cut) {
            reader.push(Printed::Stdout, bytes, |metrics| found.push(shown(metrics)));
        }
        reader.finish(|metrics| found.push(shown(metrics)));
        prop_assert_eq!(&whole, &found);
        prop_assert!(whole.len() <= text.len());
    }

    /// Proves that what is remembered of lines changes nothing: the same lines with other numbers are read as if each were the first.
    #[test]
    fn forms_are_rightly_remembered(parts in prop::collection::vec(piece(), 0..60), by in 1u8..9) {
        let text = format!("step 1: loss 1\n{}", parts.concat());
        let [read, afresh] = read_both_ways(&text, by);
        prop_assert_eq!(read, afresh);
    }

    /// Proves the same for bytes that are no text at all, on both outputs.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        let mut reader = PrintedReader::default();
        for (place, part) in bytes.chunks(100).enumerate() {
            let output = if place % 2 == 0 { Printed::Stdout } else { Printed::Stderr };
            reader.push(output, part, |_| {});
        }
        reader.finish(|_| {});
    }
}

/// The steps of what is printed, after what an attempt before printed.
fn steps_after(before: &str, text: &str) -> Vec<u64> {
    let (mut first, mut second) = (PrintedReader::default(), PrintedReader::default());
    first.push(Printed::Stdout, before.as_bytes(), |_| {});
    first.finish(|_| {});
    let stored = serde_json::to_string(&first.course()).unwrap();
    second.count_on(serde_json::from_str(&stored).unwrap());
    let mut found = Vec::new();
    second.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(metrics.step));
    second.finish(|metrics| found.push(metrics.step));
    found
}

fn steps(text: &str) -> Vec<u64> {
    steps_after("", text)
}

/// Proves that it is known for the next attempt that steps begin again without an epoch, and that ranks which print
/// side by side, epochs that say why, and the next attempt, which begins again, show nothing of that.
#[test]
fn steps_that_fall_back_unexplained_are_remembered() {
    let falls = |texts: &[&str]| {
        let mut course = PrintedCourse::default();
        for text in texts {
            let mut reader = PrintedReader::default();
            reader.count_on(course);
            reader.push(Printed::Stdout, text.as_bytes(), |_| {});
            reader.finish(|_| {});
            course = reader.course();
        }
        course.falls_back()
    };
    let epoch = lines(1..=1, &[1, 2, 3, 4, 5, 6], |_, step| format!("step {step} loss 1"));
    let twice = epoch.repeat(2);
    assert!(falls(&[&twice]) && falls(&[&twice, &epoch]) && falls(&[&epoch, &twice]));
    let named = lines(1..=2, &[1, 2, 3, 4, 5, 6], |epoch, step| format!("epoch {epoch} step {step} loss 1"));
    let ranks = lines(1..=1, &[1, 2, 1, 2, 3, 4], |_, step| format!("step {step} loss 1"));
    assert!(!falls(&[&epoch, &epoch]) && !falls(&[&named]) && !falls(&[&ranks]));
    let bar = |done: u64| format!("\r 10%|█| {done}/6 [00:01<00:02, 1.00it/s]");
    for counted in [
        lines(1..=1, &[1, 2, 3, 4, 5, 6], |_, batch| format!("batch {batch} loss 1")),
        lines(1..=1, &[1, 2, 3, 4, 5, 6], |_, batch| format!("[{batch}/6] loss 1")),
        lines(1..=1, &[1, 2, 3, 4, 5, 6], |_, epoch| format!("Epoch {epoch}/6 loss 1")),
        [0, 3, 6].map(bar).concat(),
    ] {
        assert!(falls(&[&counted.repeat(2)]) && !falls(&[&counted, &counted]), "{counted}");
    }
    let batches = lines(1..=1, &[1, 2, 3, 4, 5, 6], |_, batch| format!("batch {batch} loss 1"));
    assert!(!falls(&[&format!("=== epoch 1 of 2 ===\n{batches}=== epoch 2 of 2 ===\n{batches}")]));
}

/// Proves that a heading with an epoch of so many is one in any decoration: the batches below it are those of the
/// training, and the next attempt counts on.
#[test]
fn a_heading_may_be_decorated() {
    for form in [
        "=== epoch N of 3 ===",
        "--- Epoch N of 3 ---",
        "---Epoch N of 3---",
        "*** EPOCH N OF 3 ***",
        "[Epoch N of 3]",
        ">>> epoch N of 3 <<<",
        "~~ Epoch N of 3 ~~",
        "──── Epoch N of 3 ────",
        "Epoch N of 3",
    ] {
        let heading = |epoch: u64| form.replace(" N ", &format!(" {epoch} "));
        let line = |epoch: u64, batch: u64| {
            let above = if batch == 10 { heading(epoch) + "\n" } else { String::new() };
            format!("{above}batch {batch} loss 0.5")
        };
        let two = lines(1..=2, &[10, 20, 30], line);
        assert_eq!(steps(&two), [10, 20, 30, 40, 50, 60], "{form}");
        assert_eq!(
            steps_after(&(two + &line(3, 10) + "\n"), &lines(3..=3, &[10, 20], line)),
            [70, 80],
            "{form}"
        );
    }
}

/// Proves that a bar which ended before the first measures gives no step to a training that it does not show, that a
/// closing summary has the bar's last step, and so have the values behind the bar of each epoch.
#[test]
fn a_bar_that_ended_before_the_training() {
    let bar = |done: u64, total: u64| format!("\r 10%|█| {done}/{total} [00:01<00:02, 1.00it/s]");
    let ended = |total: u64| bar(0, total) + &bar(total, total) + "\n";
    let training = "loss 0.5\nloss 0.4\nloss 0.3\nloss 0.2\n";
    assert_eq!(steps(&(ended(150) + training)), [0, 0, 0, 0]);
    assert_eq!(steps(&(ended(150) + "loss 0.5\naccuracy 0.75\n")), [150, 150]);
    let epochs = (ended(12) + "loss 0.5\n").repeat(4);
    assert_eq!(steps(&epochs), [12, 24, 36, 48]);
}

/// The lines of some epochs, each with the steps.
fn lines(epochs: std::ops::RangeInclusive<u64>, steps: &[u64], line: impl Fn(u64, u64) -> String) -> String {
    epochs
        .flat_map(|epoch| steps.iter().map(move |step| (epoch, *step)))
        .map(|(epoch, step)| line(epoch, step) + "\n")
        .collect()
}

/// Proves that steps are called epochs where nothing finer is printed, in the next attempt too, and not beside a step,
/// a bar, a part of an epoch or a recorded step above the last epoch.
#[test]
fn only_epochs_are_called_epochs() {
    let are = |before: &str, text: &str, highest: Option<u64>| {
        let mut reader = PrintedReader::default();
        reader.push(Printed::Stdout, before.as_bytes(), |_| {});
        let mut next = PrintedReader::default();
        next.count_on(reader.course());
        next.push(Printed::Stdout, text.as_bytes(), |_| {});
        next.course().steps_are(highest).is_some()
    };
    let epochs = "Epoch 1/10 loss 0.5\nEpoch 2/10 loss 0.4\n";
    for highest in [Some(1), Some(2)] {
        assert!(are("", epochs, highest) && are(epochs, "", highest));
    }
    assert!(!are("", epochs, Some(3)) && !are("", epochs, None) && !are("", "", Some(1)));
    for finer in [
        "step 2 loss 0.4\n",
        "iteration 2: loss 0.4\n",
        "[1]\ttrain-logloss:0.4\n",
        "Epoch 2 [1/600] loss 0.4\n",
        "Epoch 2: 50%|█████     | 1/2 [00:00<00:00, 61it/s, loss=0.4]\n",
        "{'loss': 0.4, 'epoch': 1.5}\n",
    ] {
        assert!(!are("", finer, Some(1)), "{finer}");
    }
    assert!(!are(epochs, "step 2 loss 0.4\n", Some(2)));
}

/// Proves that steps which begin again in each epoch are those of the training, in every form in which the epoch is in
/// the line or in a heading.
#[test]
fn steps_that_begin_again_grow() {
    let growing = [10, 20, 30, 40, 50, 60, 70, 80, 90];
    let forms: [&dyn Fn(u64, u64) -> String; 9] = [
        &|epoch, step| format!("epoch {epoch} step {step} loss 0.5"),
        &|epoch, step| format!("{{\"epoch\": {epoch}, \"step\": {step}, \"loss\": 0.5}}"),
        &|epoch, step| format!("[{epoch}, {step:5}] loss: 0.5"),
        &|epoch, step| format!("Epoch {epoch} batch {step} loss 0.5"),
        &|epoch, step| format!("Epoch [{epoch}/3], Step [{step}/30], Loss: 0.5"),
        &|epoch, step| format!("Train Epoch: {epoch} [{step}/30 (1%)]\tLoss: 0.5"),
        &|epoch, step| format!("Epoch: [{}][{step}/30]\tLoss 0.5 (0.5)", epoch - 1),
        &|epoch, step| format!("Epoch {}/2 | step {step}/30 | loss 0.5", epoch - 1),
        &|epoch, step| {
            format!(
                "{}step {step} loss 0.5",
                if step == 10 { format!("Epoch {epoch}\n") } else { String::new() }
            )
        },
    ];
    for (at, form) in forms.into_iter().enumerate() {
        assert_eq!(steps(&lines(1..=3, &[10, 20, 30], form)), growing, "form {at}");
    }
    let bare = |epoch: u64, step: u64| format!("epoch {epoch} step {step} loss 0.5");
    assert_eq!(steps(&lines(0..=1, &[0, 10, 20], bare)), [0, 10, 20, 30, 40, 50]);
    assert_eq!(steps(&lines(1..=2, &[1, 11, 21, 30], bare)), [1, 11, 21, 30, 31, 41, 51, 60]);
    assert_eq!(steps(&lines(1..=3, &[30], bare)), [30, 60, 90]);
}

/// Proves that printed steps of the training stay what they are, also beside a step of the epoch, and that steps which
/// fall back in one epoch do, too.
#[test]
fn steps_of_the_training_stay() {
    let whole = |epoch: u64, step: u64| format!("epoch {epoch} step {} loss 0.5", (epoch - 1) * 30 + step);
    assert_eq!(steps(&lines(1..=2, &[10, 20, 30], whole)), [10, 20, 30, 40, 50, 60]);
    let both = |name: &'static str| {
        move |epoch: u64, step: u64| {
            format!("epoch {epoch} step {step} {name} {} loss 0.5", (epoch - 1) * 1000 + step)
        }
    };
    for name in ["global_step", "global step", "iter"] {
        assert_eq!(steps(&lines(1..=2, &[10, 20], both(name))), [10, 20, 1010, 1020], "{name}");
    }
    let object = r#"{"epoch": 2, "step": 10, "global_step": 1010, "loss": 1}"#;
    assert_eq!(read(object), ["1010: epoch=2 loss=1"]);
    let again = "epoch 1 step 10 loss 1\nepoch 1 step 20 loss 1\nepoch 1 step 10 loss 1\n";
    assert_eq!(steps(again), [10, 20, 10]);
    assert_eq!(steps("step 10 loss 1\nstep 20 loss 1\nstep 10 loss 1\n"), [10, 20, 10]);
    let judged =
        "epoch 1 step 10 loss 1\nepoch 1 step 20 loss 1\nepoch 2 step 1 val loss 1\nepoch 2 step 30 loss 1\n";
    assert_eq!(steps(judged), [10, 20, 1, 30]);
}

/// Proves that a total beside an epoch is added only once the steps fell where the epoch grew, and that steps which
/// rise there stay what they are, also in the next attempt.
#[test]
fn totals_of_the_training_are_not_added() {
    let form = |form: &'static str| {
        move |epoch: u64, step: u64| {
            form.replace("EPOCH", &epoch.to_string()).replace("STEP", &step.to_string()) + " loss: 0.5"
        }
    };
    let bar = "\rEpoch EPOCH/3:  10%|█| STEP/300 [00:00<00:00, 40.00it/s, loss=0.5]\n";
    let drawn = |epoch: u64, step: u64| form(bar)(epoch, step).replace(" loss: 0.5", "");
    let table: [(&str, u64, u64); 4] = [
        ("Epoch [EPOCH/4] Step [STEP/600]", 1, 150),
        ("epoch EPOCH, step STEP/600:", 1, 200),
        ("Epoch: EPOCH/3, Iteration: STEP/450,", 1, 150),
        ("[ STEP/450] epoch=EPOCH", 0, 150),
    ];
    for (line, first, length) in table {
        let line = form(line);
        let printed = |epoch: u64, step: u64| line(epoch, (epoch - first) * length + step);
        let whole = lines(first..=first + 2, &[25, 50, 150], printed);
        let expected: Vec<u64> =
            (0..3).flat_map(|epoch| [25, 50, 150].map(|step| epoch * length + step)).collect();
        assert_eq!(steps(&whole), expected, "{}", line(1, 1));
        let later = lines(first + 2..=first + 2, &[25, 150], printed);
        assert_eq!(steps_after(&whole, &later), [2 * length + 25, 2 * length + 150], "{}", line(1, 1));
        assert_eq!(steps(&later), [2 * length + 25, 2 * length + 150], "{}", line(1, 1));
    }
    // The bar is drawn at the same place when its description changes.
    let whole: String = [(1, 0), (1, 50), (1, 100), (2, 100), (2, 150), (2, 200), (3, 200), (3, 300)]
        .map(|(epoch, step)| drawn(epoch, step))
        .concat();
    assert_eq!(steps(&whole).last(), Some(&300));
    assert!(steps(&whole).is_sorted());
    // A training that continues: of the whole training, and of epochs as far as a fall shows it.
    let line = form("Epoch EPOCH step STEP/600");
    assert_eq!(steps(&lines(3..=3, &[325, 450, 600], line)), [325, 450, 600]);
    let of_four = form("Epoch [EPOCH/4] Step [STEP/600]");
    assert_eq!(steps(&lines(3..=4, &[300, 600], of_four)), [300, 600, 2100, 2400]);
    let two = lines(1..=2, &[300, 600], line);
    assert_eq!(steps_after(&two, &lines(3..=3, &[325, 600], line)), [1525, 1800]);
    assert_eq!(steps_after(&lines(1..=1, &[300, 600], line), &lines(2..=2, &[300], line)), [900]);
}

/// Proves that a count in brackets right behind the epoch is one of the epoch, also where its first step is the last
/// one of the epoch before, and that a word between them leaves that open.
#[test]
fn a_count_in_brackets_behind_the_epoch_is_of_it() {
    for form in [
        "Epoch: [EPOCH] [ STEP/30]",
        "Epoch [EPOCH][STEP/30]",
        "[EPOCH][STEP/30]",
        "Train Epoch: EPOCH [STEP/30 (1%)]",
        "Train: EPOCH [STEP/30 (1%)]",
        "Epoch [EPOCH/2] [STEP/30]",
        "Epoch EPOCH/2 [STEP/30]",
    ] {
        let line = |epoch: u64, step: u64| {
            form.replace("EPOCH", &epoch.to_string()).replace("STEP", &step.to_string()) + " loss: 0.5"
        };
        let text = [(0, 0), (0, 20), (1, 20), (1, 25)].map(|(epoch, step)| line(epoch, step) + "\n").concat();
        assert_eq!(steps(&text), [0, 20, 50, 55], "{form}");
    }
    let named =
        "Epoch [0] step [0/30] loss 1\nEpoch [0] step [20/30] loss 1\nEpoch [1] step [25/30] loss 1\n";
    assert_eq!(steps(named), [0, 20, 25]);
}

/// Proves that a bar which falls back by a little, as those of two ranks do that draw side by side, does not begin
/// again, and that one which falls to its begin does.
#[test]
fn a_bar_that_falls_back_a_little() {
    let bar = |done: u64| format!("\r 10%|█         | {done}/300 [00:20<09:40,  2.00s/it, loss=0.{done}]");
    let drawn = |places: &[u64]| places.iter().map(|done| bar(*done)).collect::<String>();
    assert_eq!(steps(&drawn(&[69, 71, 68, 72])), [69, 71, 68, 72]);
    assert_eq!(steps(&drawn(&[150, 300, 0, 150])), [150, 300, 300, 450]);
}

/// Proves that where names and values alternate from one sign to another any name counts, and that words of sentences,
/// whole numbers and what is beside other text are no values there.
#[test]
fn names_and_values_that_alternate() {
    for (text, expected) in [
        ("step 5 loss 0.5 kappa 0.25\n", "5: loss=0.5 kappa=0.25"),
        ("[ITER 7] Evaluating: L1 0.5 PSNR 2.5 [31/08 22:43:31]\n", "7: l1=0.5 psnr=2.5"),
        ("step 5 loss 0.5 after 1.5\n", "5: loss=0.5"),
        ("step 5 loss 0.5 kept 1.5 files\n", "5: loss=0.5"),
        ("step 5 loss 0.5 workers 4\n", "5: loss=0.5"),
        ("step 5: loss 0.5, kept 1.5, of 3.5\n", "5: loss=0.5"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
}

/// Proves that durations and used memory are metrics, and that what says when and on what a line was printed, and what is read, is none.
#[test]
fn what_a_line_is_printed_for_is_no_metric() {
    for (text, expected) in [
        ("step 1 loss: 0.5 data_time: 0.125 max_mem: 512\n", "1: loss=0.5 data_time=0.125 max_mem=512"),
        ("step 1 loss: 0.5 jobs: 2 size: 640 images: 128\n", "1: loss=0.5"),
        ("{\"step\": 1, \"loss\": 0.5, \"timestamp\": 1666014190.5, \"num_gpus\": 8}\n", "1: loss=0.5"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
}

/// Proves that the values of a list behind a measure have a name each, that lists of settings are none, and that a
/// value which changes is the new one.
#[test]
fn lists_and_changes() {
    for (text, expected) in [
        ("epoch 1 dice [0.75, 0.5]\n", "1: dice_0=0.75 dice_1=0.5"),
        ("epoch 1 loss: 0.5 iou: [0.25, 0.125]\n", "1: loss=0.5 iou_0=0.25 iou_1=0.125"),
        ("step 1 loss 0.5 lr=[0.25, 0.25] betas=[0.5, 0.75]\n", "1: loss=0.5"),
        ("step 1 loss 0.5 lr=[0.25]\n", "1: loss=0.5 learning_rate=0.25"),
        ("step 1 loss 0.5 lr 0.25 -> 0.125\n", "1: loss=0.5 learning_rate=0.125"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
}

/// Proves that an ellipsis behind a word separates no name from its number, and that one behind a number ends it.
#[test]
fn an_ellipsis_is_a_blank() {
    for (text, expected) in [
        ("Step... (100 | Loss: 2.1)\n", "100: loss=2.1"),
        ("Epoch... 3 loss 0.5\n", "3: loss=0.5"),
        ("step 7... loss... 0.5\n", "7: loss=0.5"),
        ("step 8 loss .5\n", "8: loss=0.5"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
    assert_eq!(read("Loading shards... 5\n"), [] as [&str; 0]);
}

/// Proves that a line without a step which begins behind a drawing has the step of that drawing, whatever is drawn
/// next, and that one behind a cleared drawing waits for the next one.
#[test]
fn a_line_behind_a_drawing_has_its_step() {
    let bar = |done: u64| format!("\r 10%|█         | {done}/300 [00:20<09:40,  2.00s/it]");
    let dict = "{'loss': 0.5, 'epoch': 0.1}\n";
    let behind = [10, 20, 30].map(|done| bar(done) + dict).concat();
    assert_eq!(steps(&behind), [10, 20, 30]);
    let cleared = [3, 6].map(|done| bar(done) + "\r            \r" + dict + &bar(done + 1)).concat();
    assert_eq!(steps(&cleared), [4, 7]);
}

/// Proves that an attempt which continues with a later epoch counts on from the one before it, and that one which
/// begins again does so, too.
#[test]
fn a_continuing_attempt_counts_on() {
    let bare = |epoch: u64, step: u64| format!("epoch {epoch} step {step} loss 0.5");
    let killed = lines(1..=4, &[10, 20, 30], bare) + "epoch 5 step 10 loss 0.5\n";
    let after = |epoch: u64| steps_after(&killed, &lines(epoch..=epoch + 1, &[10, 20, 30], bare));
    assert_eq!(after(5), [130, 140, 150, 160, 170, 180]);
    assert_eq!(after(3)[..4], [70, 80, 90, 100]);
    assert_eq!(after(6)[0], 160);
    assert_eq!(after(1)[0], 10);
    assert_eq!(steps_after(&lines(1..=1, &[10, 20, 30], bare), &lines(2..=2, &[10, 20], bare)), [40, 50]);
    // Nothing is known of before: it counts from the second epoch on.
    assert_eq!(steps(&lines(5..=6, &[10, 20, 30], bare)), [10, 20, 30, 160, 170, 180]);
    let counted = |epoch: u64, step: u64| format!("Train Epoch: {epoch} [{step}/30 (1%)]\tLoss: 0.5");
    assert_eq!(steps_after(&lines(1..=3, &[10], counted), &lines(3..=3, &[10], counted)), [70]);
    let headed = "Epoch 5\n-----\nloss: 0.5  [   10/   30]\n";
    assert_eq!(steps(headed), [130]);
    let bar = |epoch: u64| format!("\rEpoch {epoch}:  10%|█| 3/30 [00:00<00:00, 40.00it/s, loss=0.5]");
    assert_eq!(steps_after(&bar(1), &bar(5)), [123]);
    assert_eq!(steps_after(&bar(0), &bar(4)), [123]);
}

/// Proves that a part of an epoch is not taken as a step: records that have one and no step are counted, an evaluation
/// beside the record before it, and a training that continues counts on.
#[test]
fn parts_of_epochs_are_no_steps() {
    let record =
        |tenth: u64| format!("{{'loss': '0.7', 'grad_norm': 'nan', 'epoch': '{}'}}\n", tenth as f64 / 10.0);
    let all: String = (1..=10).map(record).collect();
    let with_evaluation = all.clone()
        + "{'eval_loss': '0.5', 'epoch': '1'}\n"
        + &record(11)
        + "{'train_loss': '0.5', 'epoch': '1.1'}\n";
    assert_eq!(steps(&with_evaluation), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11, 11]);
    assert_eq!(steps_after(&all, &record(6)), [6]);
    assert_eq!(steps("epoch 0.25 loss 0.5\nepoch 0.5 loss 0.5\n"), [1, 2]);
    assert_eq!(steps("{'loss': '0.7', 'epoch': '1'}\n{'loss': '0.7', 'epoch': '2'}\n"), [1, 2]);
}

/// Proves that the losses of parts of a model are distinguished, and that a sentence about a measure is none.
#[test]
fn losses_of_parts_are_distinguished() {
    assert_eq!(read("step 1 D loss: 1.25 G loss: 0.75\n"), ["1: d_loss=1.25 g_loss=0.75"]);
    assert_eq!(
        read("step 1 left loss: 1.25, right loss: 0.75, lm loss: 2\n"),
        ["1: left_loss=1.25 right_loss=0.75 lm_loss=2"]
    );
    assert_eq!(read("step 1 lm loss: 2, train loss 3\n"), ["1: loss=2 train_loss=3"]);
    assert_eq!(read("step 1 policy loss 2\n"), ["1: policy_loss=2"]);
    assert_eq!(read("[0/3][50/200]\tLoss_D: 0.5\tLoss_G: 2.1\n"), ["50: loss_d=0.5 loss_g=2.1"]);
    assert_eq!(read("validation accuracy 0.2 is below the limit\n"), [] as [&str; 0]);
}

/// Proves that numbers in groups of three digits may have decimals, and that a list of numbers is none.
#[test]
fn groups_of_digits_with_decimals() {
    assert_eq!(read("step 5 loss 1,234.50 ppl 1,222.0\n"), ["5: loss=1234.5 ppl=1222"]);
    assert_eq!(read("step 1,005: loss: 12,345.5, lr 0.1\n"), ["1005: loss=12345.5 learning_rate=0.1"]);
    assert_eq!(read("step 5 loss 1,23.5\n"), [] as [&str; 0]);
}

/// Proves that a number is never cut at its comma: it has decimals where the line or the lines before show that, in
/// text, bars and tables, is grouped where they show a point, and is a count and not a value where nothing shows what
/// it is.
#[test]
fn commas_in_numbers() {
    for (text, expected) in [
        ("step 5 loss 0,35\n", &["5: loss=0.35"][..]),
        ("step 5 loss -0,35 mae 1,250\n", &["5: loss=-0.35 mae=1.25"]),
        ("step 5 loss 0.5 tokens_per_second=1,250\n", &["5: loss=0.5 tokens_per_second=1250"]),
        ("step 1,250 loss 1,250\n", &[]),
        ("step 1,250 loss 0,5\n", &["1250: loss=0.5"]),
        (
            "step 1 loss 0,5\nstep 2 loss 1,250\nstep 3 loss 1,350\n",
            &["1: loss=0.5", "2: loss=1.25", "3: loss=1.35"],
        ),
        (
            "step 1 loss 0.5\nstep 2 loss 1,250\nstep 3 loss 1,350\n",
            &["1: loss=0.5", "2: loss=1250", "3: loss=1350"],
        ),
        ("step 1 loss 0.5\nstep 2 loss 0,5\nstep 3 loss 1,250\n", &["1: loss=0.5", "2: loss=0.5"]),
        ("step 1 loss 0.5, 0.6\n", &["1: loss=0.5"]),
        ("step 1 loss 0,5, 0,6\n", &["1: loss=0.5"]),
        ("step 1 loss (0,47)\n", &[]),
        ("step 1 gpus=0,1 loss 0.5\n", &["1: loss=0.5"]),
        ("accuracy: 9,834/10,000\n", &["0: accuracy=0.9834"]),
        ("50%|█| 1/2 [00:01<00:02, 1it/s, loss=0,25]\n", &["1: loss=0.25"]),
        ("epoch  loss  acc\n1  0,25  91,5%\n", &["1: loss=0.25 acc=0.915"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Proves that the epoch in a line counts between bars that show no values, whatever they are of, and for lines behind
/// it; and the steps of a bar that shows some, or that a value had before.
#[test]
fn epochs_between_bars_without_values() {
    let bar = |done: u64, total: u64| format!("\r 50%|█████     | {done}/{total} [00:01<00:01, 50.00it/s]");
    let epoch =
        |epoch: u64| format!("{}{}\nEpoch {epoch:03} | Loss 0.{}\n", bar(0, 70), bar(70, 70), 9 - epoch);
    let text =
        [bar(0, 900), bar(900, 900), "\n".into(), epoch(0), epoch(1), bar(4, 8), "\nval acc 0.5\n".into()];
    assert_eq!(read(&text.concat()), ["0: loss=0.9", "1: loss=0.8", "1: val_acc=0.5"]);
    assert_eq!(
        read(&format!("{}Epoch 3 | Loss 0.5\nval acc 0.25\n", bar(4, 8))),
        ["3: loss=0.5", "3: val_acc=0.25"]
    );
    let shown = bar(70, 70).replace("it/s]", "it/s, acc=0.5]");
    assert_eq!(read(&format!("{shown}\nEpoch 0 | Loss 0.5\n")), ["70: loss=0.5", "70: acc=0.5"]);
    let before = format!("{}\nloss 0.75\n{}\nEpoch 0 | Loss 0.5\n", bar(20, 70), bar(70, 70));
    assert_eq!(read(&before), ["70: loss=0.75", "70: loss=0.5"]);
}

/// Proves how far a heading that names a part of the data reaches: over indented lines and items, not over lines at its
/// own indentation behind them or with a place; and over lines with values right below one with a colon, up to an empty
/// line, one without values or another place.
#[test]
fn lines_below_a_part_of_the_data() {
    for (text, expected) in [
        ("Validation:\n  loss: 0.5\nloss: 0.25\n", &["0: val_loss=0.5", "0: loss=0.25"][..]),
        ("validation results\n- loss: 0.5\n- acc: 0.75\n", &["0: val_loss=0.5", "0: val_acc=0.75"]),
        ("  Test\n    loss: 0.5\n  Training\n    loss: 0.25\n", &["0: test_loss=0.5", "0: loss=0.25"]),
        ("Test:\n  step 5 loss: 0.5\n  acc: 0.25\n", &["5: loss=0.5", "5: acc=0.25"]),
        ("Testing the model:\n  loss: 0.5\n", &["0: loss=0.5"]),
        ("Validation of the test:\n  loss: 0.5\n", &["0: loss=0.5"]),
        (
            "Validation:\nloss: 0.5\nacc: 0.75\n\nloss: 0.25\n",
            &["0: val_loss=0.5", "0: val_acc=0.75", "0: loss=0.25"],
        ),
        ("Validation:\nloading 3 files\nloss: 0.5\n", &["0: loss=0.5"]),
        ("Validation:\nEpoch 3\nloss: 0.5\nEpoch 4\nloss: 0.25\n", &["3: val_loss=0.5", "4: loss=0.25"]),
        ("Validation\nloss: 0.5\n", &["0: loss=0.5"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Proves that a bar below a line that says that an evaluation begins is of it where it looks as the training's does
/// and is shorter, and that a line of that kind before the training changes nothing.
#[test]
fn bars_of_an_evaluation_by_the_line_above() {
    let bar =
        |total: u64, acc: &str| format!("acc: {acc} ||: 100%|#| {total}/{total} [00:01<00:00, 9.00it/s]\n");
    let text = format!("Validating the files\n{}Validating\n{}", bar(20, "0.5000"), bar(5, "0.7500"));
    assert_eq!(read(&text), ["20: acc=0.5", "20: val_acc=0.75"]);
    let text = format!("{}Validating\nEpoch 1/2\n{}", bar(20, "0.5000"), bar(25, "0.7500"));
    assert_eq!(read(&text)[1..], ["25: acc=0.75"]);
}

/// Proves that a line which has the form of results only counts once the training has begun, and that settings and counts never do.
#[test]
fn results_by_their_form() {
    let text = "Eval: a1=0.5, b=0.25\n[8/16] [l1: 2.5]\nstep 4 loss 0.5\nEval: a1=0.5, b=0.25\nEval: temperature=0.5, top_p=0.25\n\
                Eval: a1=3, b=0.5\n[8/16] [l1: 2.5]\n";
    assert_eq!(read(text), ["4: loss=0.5", "4: eval_a1=0.5 eval_b=0.25", "8: l1=2.5"]);
}

/// Proves that what is indented below a line that says only where the script is has its step, of any name with a slash,
/// that other lines there say nothing, and that the next line that is not indented ends it.
#[test]
fn lines_below_a_heading() {
    assert_eq!(
        read("Step 10/500\n  gpu/tokens: 512\n  files: 3\n  a/b c: 3\ngpu/tokens: 640\n  gpu/tokens: 768\n"),
        ["10: gpu/tokens=512"]
    );
    assert_eq!(read("== 1/5 ==\n  gpu/tokens: 512\n"), [] as [&str; 0]);
    assert_eq!(read("iter 7\nloss: 0.5\n"), ["7: loss=0.5"]);
}

/// Proves that values in brackets and behind a word for a part of the data are kept apart, and that other words before
/// brackets change nothing.
#[test]
fn groups_in_brackets() {
    for (text, expected) in [
        ("step 1 loss[ctc=0.5, att_loss=0.25]\n", "1: loss/ctc=0.5 att_loss=0.25"),
        ("epoch 1 train [loss: 0.5] val [loss: 0.25]\n", "1: train_loss=0.5 val_loss=0.25"),
        ("[Valid] loss: 0.5\n", "0: val_loss=0.5"),
        ("epoch 1 train: loss 0.5 val: loss 0.25\n", "1: train_loss=0.5 val_loss=0.25"),
        ("step 1 metrics [loss: 0.5]\n", "1: loss=0.5"),
        ("step 1 hits 0.75 hits@10 0.5 ndcg 0.25\n", "1: hits=0.75 hits@10=0.5 ndcg=0.25"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
    assert_eq!(read("cache hits 12\n"), [] as [&str; 0]);
}

/// Proves that bars of Rich add up over epochs that count from 0 as over those that count from 1.
#[test]
fn bars_of_rich() {
    let drawn = |first: u64| -> String {
        let bar = |epoch: u64, done: u64| {
            let drawn = "━".repeat(done as usize);
            format!(
                "\r\x1b[2KEpoch {epoch}/{} \x1b[38;2;98;6;224m{drawn}\x1b[0m {done}/4 \x1b[38;5;245m0:00:01 • 0:00:09\x1b[0m 1.0it/s train_loss: 0.5\x1b[0m",
                first + 1
            )
        };
        (first..first + 2).flat_map(|epoch| (1..=4).map(move |done| bar(epoch, done))).collect()
    };
    for first in [0, 1] {
        assert_eq!(steps(&drawn(first)), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

/// Proves that a place behind the word for training, and a round, are the step, and that counts of an evaluation and of
/// what was correct are not.
#[test]
fn places_behind_train_and_rounds() {
    assert_eq!(
        read("Train [60/109] loss 0.5\nTrain [80/109] loss 0.25\n"),
        ["60: loss=0.5", "80: loss=0.25"]
    );
    assert_eq!(read("train: 12/130 loss 0.5\nval: 3/9 loss 0.75\n"), ["12: loss=0.5", "12: val_loss=0.75"]);
    assert_eq!(read("Epoch 2/3\ntraining 12/130 loss 0.5\n"), ["142: loss=0.5"]);
    assert_eq!(read("step 3 train: 3/4 loss 0.5\n"), ["3: train=0.75 loss=0.5"]);
    assert_eq!(read("loss 0.5 train: 3/4 correct\n"), ["0: loss=0.5 train=0.75"]);
    assert_eq!(read("round 5: loss 0.3\nRound 6/9 loss 0.2\n"), ["5: loss=0.3", "6: loss=0.2"]);
    assert_eq!(read("{\"round\": 5, \"loss\": 0.5}\n"), ["5: loss=0.5"]);
    assert_eq!(read("best round 5: loss 0.3\n"), ["0: best_loss=0.3"]);
}

/// Proves that a zero with decimals is marked as rounded, in text, bars, tables and dicts, as a percentage and in lines
/// of a known form, and that a zero without them, with one, with a power or in a JSON object is exact.
#[test]
fn a_zero_with_decimals_is_rounded() {
    let lines = "step 1 lr 0.0000 loss 0.5\nstep 2 lr 0.0000 loss 0.4\nstep 3 lr 0.0000 loss 0.3\nstep 4 lr 0.0003 loss 0.2\n";
    assert_eq!(
        read(lines),
        [
            "1: learning_rate=-0 loss=0.5",
            "2: learning_rate=-0 loss=0.4",
            "3: learning_rate=-0 loss=0.3",
            "4: learning_rate=0.0003 loss=0.2"
        ]
    );
    for (text, expected) in [
        ("step 1 loss 1.00 accuracy 0.00%\n", "1: loss=1 accuracy=-0"),
        ("50%|█| 1/2 [00:01<00:02, 1it/s, loss=0.000]\n", "1: loss=-0"),
        ("step,loss,acc\n1,0.5,0.00\n", "1: loss=0.5 acc=-0"),
        ("{'step': 1, 'lr': '0.0000'}\n", "1: lr=-0"),
        ("step 1 lr 0 loss 0.5\n", "1: learning_rate=0 loss=0.5"),
        ("step 1 lr 0.0 loss 0.5\n", "1: learning_rate=0 loss=0.5"),
        ("step 1 lr 0.00e+00 loss 0.5\n", "1: learning_rate=0 loss=0.5"),
        ("{'step': 1, 'lr': 0.0}\n", "1: lr=0"),
        ("{\"step\": 1, \"lr\": 0.00}\n", "1: lr=0"),
    ] {
        assert_eq!(read(text), [expected], "{text}");
    }
}

/// Proves that a round which is counted from 0 and printed when it is done is one step more, again for a line of a
/// known form, and that the lines of LightGBM, which counts from 1, and those of a loop, which may print before its
/// first update, keep their step.
#[test]
fn rounds_that_are_done_count_from_one() {
    assert_eq!(
        read("[0]\ttrain-rmse:0.5\n[10]\ttrain-rmse:0.4\n[20]\ttrain-rmse:0.3\n[30]\ttrain-rmse:0.2\n"),
        ["1: train-rmse=0.5", "11: train-rmse=0.4", "21: train-rmse=0.3", "31: train-rmse=0.2"]
    );
    assert_eq!(read("[7]\tmy data-auc:0.5\ttest-auc:nan\n"), ["8: data-auc=0.5 test-auc=NaN"]);
    assert_eq!(read("0:\tlearn: 0.5\ttotal: 1ms\tremaining: 1s\n"), ["1: learn=0.5"]);
    for (line, expected) in [
        ("[1]\ttraining's l2: 0.5\n", "1: training_l2=0.5"),
        ("[1]\tval-a's l2: 0.5\n", "1: val-a_l2=0.5"),
        ("[0] train-loss: 0.5\n", "0: train-loss=0.5"),
        ("step 0 loss 0.5\n", "0: loss=0.5"),
    ] {
        assert_eq!(read(line), [expected], "{line}");
    }
}

/// A bar on one output and what is printed on the other: the drawings of `done` of `total`, and behind each of them a line, if it has one.
fn drawn(parts: &[(u64, u64, &str)]) -> Vec<String> {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for (done, total, line) in parts {
        let bar = format!("\r 10%|█         | {done}/{total} [00:01<00:02, 10.00it/s]");
        reader.push(Printed::Stderr, bar.as_bytes(), |metrics| found.push(shown(metrics)));
        reader.push(Printed::Stdout, line.as_bytes(), |metrics| found.push(shown(metrics)));
    }
    reader.finish(|metrics| found.push(shown(metrics)));
    found
}

/// Proves that a bar without a name that was at its end before the training does not keep the step, and that bars of
/// evaluations between and behind the steps of a training change nothing.
#[test]
fn a_bar_before_the_training() {
    let (five, ten) = ("{'loss': 0.5, 'epoch': 0.1}\n", "{'loss': 0.25, 'epoch': 0.2}\n");
    let judged = "{'eval_loss': 0.75, 'eval_runtime': 2.5, 'epoch': 0.2}\n";
    let training = [(0, 120, ""), (4, 120, five), (6, 120, ""), (9, 120, ten), (11, 120, "")];
    let evaluation = [(0, 16, ""), (15, 16, ""), (16, 16, judged)];
    let steps = |parts: &[(u64, u64, &str)], name: &str| -> Vec<String> {
        let found = drawn(parts).into_iter().filter(|line| line.contains(&format!(" {name}=")));
        found.map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    for first in [&evaluation[..], &[(0, 16, ""), (16, 16, "")], &[(0, 400, ""), (400, 400, judged)]] {
        assert_eq!(steps(&[first, &training].concat(), "loss"), ["4", "9"]);
        let all = [first, &training, &evaluation, &[(14, 120, five), (16, 120, "")]].concat();
        assert_eq!(steps(&all, "loss"), ["4", "9", "14"]);
    }
    let at_once = [(0, 16, ""), (16, 16, ""), (0, 120, five), (7, 120, "")];
    assert_eq!(steps(&at_once, "loss"), ["0"]);
    let to_its_end =
        [&training[..], &[(120, 120, "")], &evaluation, &[(16, 16, "{'train_loss': 0.5}\n")]].concat();
    assert_eq!(steps(&to_its_end, "eval_loss"), ["120"]);
    assert_eq!(steps(&to_its_end, "train_loss"), ["120"]);
    let silent =
        [(0, 120, ""), (120, 120, ""), (0, 400, ""), (399, 400, judged), (399, 400, "{'train_loss': 0.5}\n")];
    assert_eq!(steps(&silent, "train_loss"), ["120"]);
}

/// Proves that a bar which the width of the terminal cuts gives its step and its whole values, and that nothing else is
/// read of what it draws.
#[test]
fn a_bar_that_the_terminal_cuts() {
    let bar =
        |done: u64, end: &str| format!("\r  2%| | {done}/40 [00:00<00:01, 191.50it/s, loss=123.{done}{end}");
    let ends = [", lr=1.5e-0", ", lr=1", ", lr=1.5e-05]", ", l", ", lr=1.5e-0"];
    let text: String = ends.into_iter().zip(1..).map(|(end, done)| bar(done, end)).collect();
    let expected =
        ["1: loss=123.1", "2: loss=123.2", "3: loss=123.3 lr=0.000015", "4: loss=123.4", "5: loss=123.5"];
    assert_eq!(read(&text), expected);
    assert_eq!(read("loss 1.5\n\rloss 3:  2%| | 1/4\r loss 4:  5%|#\n"), ["0: loss=1.5"]);
}

/// Proves that a value of an evaluation or of an epoch is recorded when it changes, also where a narrow terminal does
/// not show it each time and where the bar gets another total; and that one which was not shown in between is recorded
/// again.
#[test]
fn values_that_a_bar_repeats() {
    let bar = |epoch: u64, done: u64, total: u64, shown: &str| {
        format!("\rEpoch {epoch}:  2%| | {done}/{total} [00:00<00:01, 9.50it/s, {shown}")
    };
    let text = [
        bar(0, 1, 4, "loss=0.5, val_loss=0.25, loss_epoch=0.75]"),
        bar(0, 2, 4, "loss=0.4, val_loss=0.2"),
        bar(0, 3, 4, "loss=0.3, val_loss=0.25, loss_epoch=0.75]"),
        bar(0, 4, 4, "loss=0.2, val_loss=0.125, loss_epoch=0.75]"),
        bar(0, 4, 4, "loss=0.2, val_loss=0.1"),
        bar(1, 1, 3, "loss=0.1, val_loss=0.125, loss_epoch=0.75]"),
    ];
    let expected = [
        "1: loss=0.5 val_loss=0.25 loss_epoch=0.75",
        "2: loss=0.4",
        "3: loss=0.3",
        "4: loss=0.2 val_loss=0.125",
        "5: loss=0.1",
    ];
    assert_eq!(read(&text.concat()), expected);
    let again = [bar(0, 1, 9, "val_acc=1.0]"), bar(0, 2, 9, "loss=0.5]"), bar(0, 3, 9, "val_acc=1.0]")];
    assert_eq!(read(&again.concat()), ["1: val_acc=1", "2: loss=0.5", "3: val_acc=1"]);
}

/// Proves that the text of a logger that writes objects is read as a printed line, that numbers which say where it
/// comes from are left out, and that only the numbers of objects count once the script records by itself.
#[test]
fn objects_of_loggers() {
    let text = concat!(
        r#"{"asctime": "x", "levelname": "INFO", "lineno": 12, "process": 5, "message": "step 20 loss 0.050"}"#,
        "\n",
        r#"{"event": "INFO step 30 | val_loss 0.25", "level": "info", "rank": 0, "levelno": 20, "loss": 1.5}"#,
        "\n",
        r#"{"msg": "step 1: loss 9.0", "step": 40, "loss": 0.5, "pid": 7, "line": 3}"#,
        "\n",
        r#"{"text": "x", "record": {"line": 5, "message": "step 50: loss 0.75", "process": {"id": 7}}}"#,
        "\n",
        r#"{"message": "starting", "lineno": 3, "thread": 1}"#,
        "\n",
    );
    let expected = ["20: loss=0.05", "30: loss=1.5 val_loss=0.25", "40: loss=0.5", "50: loss=0.75"];
    assert_eq!(read(text), expected);
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.read_only_json();
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    assert_eq!(found, ["0: loss=1.5", "40: loss=0.5"]);
}

/// Proves that a name which names a part of the data gets no second one by its brackets or its bar.
#[test]
fn a_name_has_one_part_of_the_data() {
    assert_eq!(read("[eval] step 500 | val_loss 0.17\n"), ["500: val_loss=0.17"]);
    assert_eq!(read("[test] step 5 | acc 0.5 | val_loss 1.5\n"), ["5: test_acc=0.5 val_loss=1.5"]);
    let bar = "\rEvaluating: 100%|#| 2/2 [00:00<00:00, 7.00it/s, val_loss=0.5, acc=0.25]\n";
    assert_eq!(read(bar), ["0: val_loss=0.5 eval_acc=0.25"]);
}

/// Proves that a value of an evaluation which a bar of Rich shows with each drawing, also in a line below it, is recorded when it changes.
#[test]
fn values_that_a_bar_of_rich_repeats() {
    let drawn = |done: u64, loss: &str| {
        let bar = format!("\r\x1b[2KEpoch 0/1 ━━━ {done}/4 0:00:01 • 0:00:09 1.0it/s train_loss: 0.{done}");
        format!("{bar}\r\n          \x1b[3mval_loss: {loss}\x1b[0m\r\n")
    };
    let text = [drawn(1, "0.5"), drawn(2, "0.5"), drawn(3, "0.5"), drawn(4, "0.25")].concat();
    let expected = [
        "1: train_loss=0.1", "1: val_loss=0.5", "2: train_loss=0.2", "3: train_loss=0.3",
        "4: train_loss=0.4", "4: val_loss=0.25",
    ];
    assert_eq!(read(&text), expected);
}

/// Proves that a report that is printed twice, rounded behind a bar and as a dict, is read once and with all its
/// digits, also where it waits for the next drawing, and that lines of the same names are none.
#[test]
fn reports_that_are_printed_twice() {
    let bar = |done| format!("\r 50%|#####     | {done}/60 [00:22<04:02,  4.40s/it]");
    let rounded = "[INFO|2026-01-02 10:02:03] trainer.callbacks:143 >> {'loss': 1.25, 'learning_rate': 4.95e-05, 'tokens': 512.5}\n";
    let dict = "{'loss': 1.25, 'grad_norm': 0.5, 'learning_rate': 4.9454e-05}\n";
    let expected = ["5: learning_rate=0.000049454 loss=1.25 tokens=512.5", "5: grad_norm=0.5"];
    for between in ["", "\n"] {
        let text = format!("{}{}{between}{rounded}\r       \r{dict}{}", bar(4), bar(5), bar(5));
        assert_eq!(read(&text), expected, "{text}");
    }
    let line = "{'loss': 1.25, 'learning_rate': 0.5}\n";
    let other = "{'loss': 1.25, 'learning_rate': 0.25}\n";
    let text = format!("{}{}\n{line}{other}{}", bar(4), bar(5), bar(6));
    assert_eq!(read(&text), ["6: learning_rate=0.5 loss=1.25", "6: learning_rate=0.25 loss=1.25"]);
}

/// Proves where a box without bars between its cells begins and ends, that a heading of settings covers its rows only,
/// and that panels of text and tables with bars are read as before.
#[test]
fn boxes_with_blanks_between_names_and_values() {
    for (text, expected) in [
        (
            "│ step      5   │\n│ my_value  0.5 │\nstep 6: loss 0.25\n",
            &["5: my_value=0.5", "6: loss=0.25"][..],
        ),
        (
            "step 1: loss 1.5\n│ loss     0.5 │\n│ state  READY │\n│ other    0.25 │\n",
            &["1: loss=1.5", "1: loss=0.5 other=0.25"],
        ),
        ("│ pid      55 │\n│ free    0.5 │\nstep 6: loss 0.25\n", &["6: loss=0.25"]),
        ("│ My 1st config │\n│ loss    0.5 │\nstep 6: loss 0.25\n", &["6: loss=0.25"]),
        ("│ step 5 config loss 0.5 │\n", &["5: loss=0.5"]),
        ("┃ Epoch ┃ Loss ┃ Params ┃\n│ 1 │ 0.5 │ 3 │\n", &["1: loss=0.5 params=3"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Proves that a row of a table is read without the signs of a column that has nothing else, and not where a number is missing.
#[test]
fn rows_without_signs() {
    let heading = "epoch  loss  best  acc\n";
    for (rows, expected) in [
        ("1  0.5  *  0.25\n2  0.75  0.125\n", &["1: loss=0.5 acc=0.25", "2: loss=0.75 acc=0.125"][..]),
        ("1  0.75  0.125\n", &[]),
        (
            "1  0.5  *  0.25\n2  0.5  1  0.25\n3  0.75  0.125\n",
            &["1: loss=0.5 acc=0.25", "2: loss=0.5 best=1 acc=0.25"],
        ),
        ("1  0.5  *  0.25\n2  0.75  x\n", &["1: loss=0.5 acc=0.25"]),
    ] {
        assert_eq!(read(&format!("{heading}{rows}")), expected, "{rows}");
    }
}

/// Proves that a bar without values leads where lines have not named two steps before it, or where its description is
/// of the training, and not otherwise.
#[test]
fn bars_beside_lines_with_steps() {
    let bar = |name: &str, done| format!("\r{name} 50%|#####     | {done}/8 [00:22<04:02,  4.40s/it]");
    for (lines, name, expected) in [
        (1..2, "", "8: acc=0.75"),
        (1..3, "", "102: acc=0.75"),
        (1..3, "Sampling:", "102: acc=0.75"),
        (1..3, "Training:", "8: acc=0.75"),
    ] {
        let lines: String = lines.map(|step| format!("step {}: loss 0.5\n", 100 + step)).collect();
        let found = read(&format!("{lines}{}{}\nacc 0.75\n", bar(name, 1), bar(name, 8)));
        assert_eq!(found.last().map(String::as_str), Some(expected), "{lines}{name}");
    }
}

/// Proves that only a step may be written in thousands, and that a number of steps is none.
#[test]
fn steps_in_thousands() {
    for (text, expected) in [
        ("iter 1.5k loss 0.5\n", &["1500: loss=0.5"][..]),
        ("Step: 20K, loss: 0.5\n", &["20000: loss=0.5"]),
        ("step 5 loss 1k tokens=2k acc 0.5\n", &["5: acc=0.5"]),
        ("warmup steps: 2k loss 0.5\n", &["0: loss=0.5"]),
        ("step k loss 0.5\nstep 2kb loss 0.5\n", &["0: loss=0.5", "0: loss=0.5"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Proves that lines indented below one with a place and measures continue it: values with decimals count whatever
/// their names are, whole numbers, fractions and what is not indented further do not, also where the forms are known.
#[test]
fn indented_lines_continue() {
    let line = |step: u64| {
        format!(
            "[session 1][epoch  1][iter  {step}/500] loss: 0.5\n\t\tfg/bg=(12/500), cost: 3\n\t\trpn_cls: 0.25, rcnn_box 0.75\n"
        )
    };
    let text: String = (100..104).map(line).collect();
    let expected: Vec<String> = (100..104)
        .flat_map(|step| [format!("{step}: loss=0.5"), format!("{step}: rpn_cls=0.25 rcnn_box=0.75")])
        .collect();
    assert_eq!(read(&text), expected);
    assert_eq!(read("step 1: loss 0.5\nrpn_cls: 0.25\n"), ["1: loss=0.5"]);
    assert_eq!(read("  step 1: loss 0.5\n  rpn_cls: 0.25\n"), ["1: loss=0.5"]);
    assert_eq!(read("step 1: loss 0.5\nother line 5\n  rpn_cls: 0.25\n"), ["1: loss=0.5"]);
    assert_eq!(read("step 1: loss 0.5\n  epoch 3 acc: 0.25\n"), ["1: loss=0.5", "1: acc=0.25"]);
}

/// Proves that the values below a heading of the best ones are named so, up to the next line that is not indented.
#[test]
fn values_below_a_heading_of_the_best() {
    let text =
        "step 9: loss 0.5\nBest model at step 7:\n  train loss: 0.25\n  test loss: 0.75\nloss: 0.125\n";
    assert_eq!(
        read(text),
        ["9: loss=0.5", "9: best_train_loss=0.25", "9: best_test_loss=0.75", "9: loss=0.125"]
    );
}

/// Proves that the lists in the cells of a table are values with their places, one alone has none, and an empty one is nothing.
#[test]
fn tables_with_lists() {
    let text = "Step      Train loss              Test loss               Test metric\n\
                0         [7.50e-01, 5.00e-01]    [2.50e-01, 1.00e+00]    []\n\
                1000      [5.00e-01, 2.50e-01]    [nan, 1.00e+00]    [1.25e-01]\n";
    let expected = [
        "0: train_loss_0=0.75 train_loss_1=0.5 test_loss_0=0.25 test_loss_1=1",
        "1000: train_loss_0=0.5 train_loss_1=0.25 test_loss_0=NaN test_loss_1=1 test_metric=0.125",
    ];
    assert_eq!(read(text), expected);
}

/// Proves that counts in the texts of objects are places, that a field which names the part of the data gives the
/// prefix, and that other texts there give none.
#[test]
fn objects_that_name_the_part_of_the_data() {
    let iter = |epoch: u64, iter: u64| {
        format!(
            "json_stats: {{\"_type\": \"train_iter\", \"epoch\": \"{epoch}/2\", \"iter\": \"{iter}/40\", \"loss\": 0.5}}\n"
        )
    };
    let epoch = "json_stats: {\"_type\": \"train_epoch\", \"epoch\": \"1/2\", \"loss\": 0.25}\n\
                 json_stats: {\"_type\": \"val_iter\", \"epoch\": \"1/2\", \"iter\": \"10/20\", \"top1_err\": 3.5}\n\
                 json_stats: {\"_type\": \"val_epoch\", \"epoch\": \"1/2\", \"top1_err\": 2.5}\n";
    let text = iter(1, 20) + &iter(1, 40) + epoch + &iter(2, 20);
    let expected = [
        "20: loss=0.5",
        "40: loss=0.5",
        "40: train_epoch_loss=0.25",
        "40: val_iter_top1_err=3.5",
        "40: val_top1_err=2.5",
        "60: loss=0.5",
    ];
    assert_eq!(read(&text), expected);
    assert_eq!(read("{\"mode\": \"val\", \"step\": 3, \"loss\": 0.5}\n"), ["3: val_loss=0.5"]);
    assert_eq!(read("{\"mode\": \"train\", \"step\": 3, \"loss\": 0.5}\n"), ["3: loss=0.5"]);
    assert_eq!(
        read("{\"mode\": \"max\", \"type\": \"val_loss\", \"step\": 3, \"loss\": 0.5}\n"),
        ["3: loss=0.5"]
    );
}

/// Proves that a dict behind a part of the data has its prefix, also as an ordered one, that numbers as names are those
/// of a measure, and that counts of something else are nothing.
#[test]
fn dicts_behind_a_part_of_the_data() {
    for (text, expected) in [
        ("val: {'epoch': 3, 'loss': 0.5}\n", vec!["3: epoch=3 val_loss=0.5"]),
        ("train: {'epoch': 3, 'loss': 0.5}\n", vec!["3: epoch=3 loss=0.5"]),
        (
            "epoch 3 loss 0.5\ntest result: OrderedDict([('recall@10', 0.25), ('mrr@10', 0.5)])\n",
            vec!["3: loss=0.5", "3: test_mrr@10=0.5 test_recall@10=0.25"],
        ),
        ("best valid : OrderedDict({'recall@10': 0.25})\n", vec!["0: best_val_recall@10=0.25"]),
        ("metrics: defaultdict(<class 'float'>, {'acc': 0.25})\n", vec!["0: acc=0.25"]),
        ("step 3 accuracy: {0: 0.5, 1: 0.75}\n", vec!["3: accuracy_0=0.5 accuracy_1=0.75"]),
        ("Atomic energies: {1: -13.5, 6: -1029.25}\n", vec![]),
        ("heads {'hm': 80, 'wh': 2}\n", vec![]),
        ("OrderedDict([('acc', 0.5)\n", vec![]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// Proves that the numbers of a run and of a session are not metrics.
#[test]
fn runs_and_sessions_are_no_metrics() {
    assert_eq!(read("Run: 01, Epoch: 02, Loss: 0.5, session: 3\n"), ["2: loss=0.5"]);
}

/// Proves that a table of another kind below one ends it, that updates are a column of the step, and that an object
/// shown with what it was made from has no values.
#[test]
fn tables_end_at_other_headings() {
    let text = "step 5 loss 0.5\n| Class | IoU  |  Acc  |\n+-----+----+----+\n| road | 97.25 | 98.5 |\n+-----+----+----+\n\
                | aAcc | mIoU | mAcc |\n+-----+----+----+\n| 95.5 | 66.75 | 67.5 |\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: aacc=95.5 miou=66.75 macc=67.5"]);
    let text = "    clip  loss  ppl  total_train_updates\n       1  0.5   2.5                   20\n";
    assert_eq!(read(text), ["20: clip=1 loss=0.5 ppl=2.5"]);
    let text = "step 5 loss 0.5\nBest pipeline: GradientBoostingClassifier(input_matrix, learning_rate=0.1, max_depth=7)\n";
    assert_eq!(read(text), ["5: loss=0.5"]);
}

/// Proves that values below a line that says an evaluation begins are of it where the training has values of the same
/// names, up to the next place, and that other names stay as they are.
#[test]
fn values_below_an_evaluation() {
    let text = "step 5: top1_acc: 0.5, loss: 0.25\n2026-01-02 10:02:03,123 - INFO - Evaluating top_k_accuracy ...\ntop1_acc\t0.75\nother_acc\t0.125\n\
                step 6: top1_acc: 0.5\ntop1_acc\t0.25\n";
    let expected = [
        "5: top1_acc=0.5 loss=0.25",
        "5: eval_top1_acc=0.75",
        "5: other_acc=0.125",
        "6: top1_acc=0.5",
        "6: top1_acc=0.25",
    ];
    assert_eq!(read(text), expected);
    assert_eq!(read("step 5: loss 0.25\nTesting on the training set\nloss 0.5\n")[1], "5: loss=0.5");
    assert_eq!(
        read("epoch 2\n{'recall': array([0.25]), 'ids': array([1.5, 2.5]), 'list': [0.5]}\n"),
        ["2: recall=0.25"]
    );
    assert_eq!(read("640 ; loss 0.5 ; words/s 1512\n"), ["640: loss=0.5"]);
}

/// Proves that an evaluation between lines of the training is kept apart from it: by the verb before its step, by the
/// part of the data beside the training's in the line, and by an Estimator's line about its results, whose last loss is
/// one of the training.
#[test]
fn evaluations_beside_the_training() {
    let text = "step: 20  loss: 7.5  mfu: 34.25%\nvalidate step: 20  loss: 7.25  memory: 42.01GiB(44.23%)  tps: 9,868\nstep: 30  loss: 6.5\n\
                evaluating epoch 3 loss: 0.5\ntest step: 40 loss: 0.25\n";
    let expected = [
        "20: loss=7.5 mfu=34.25",
        "20: val_loss=7.25 val_tps=9868",
        "30: loss=6.5",
        "30: eval_loss=0.5",
        "40: test_loss=0.25",
    ];
    assert_eq!(read(text), expected);
    let text = "loss = 0.75, step = 400 (1.9 sec)\nSaving dict for global step 500: accuracy = 0.875, global_step = 500, loss = 0.5\nLoss for final step: 0.4375.\n";
    assert_eq!(read(text), ["400: loss=0.75", "500: eval_accuracy=0.875 eval_loss=0.5", "500: loss=0.4375"]);
    let text = "Epoch: 1   Train: (loss = 0.75f0, acc = 81.5)   Test: (loss = 0.875f0)\nEpoch: 2   Train: (loss = 0.5f0)\n";
    assert_eq!(read(text), ["1: train_loss=0.75 train_acc=81.5 test_loss=0.875", "2: loss=0.5"]);
    let text = "Epoch 3 | train: loss 0.5, lr 0.01 | val: loss 0.25\n";
    assert_eq!(read(text), ["3: train_loss=0.5 learning_rate=0.01 val_loss=0.25"]);
    assert_eq!(
        read("step 5 loss 0.5\nLoss for final step: 12\nLoss for final step: None.\n"),
        ["5: loss=0.5"]
    );
}

/// Proves that the index of R before what it prints is not a step, and that a round in brackets is one.
#[test]
fn indices_of_r() {
    let text = "step 50 loss 0.5\n[1] \"Test AUC: 0.75\"\n[1] 0.25\n[1] \"AUC\" \"0.5\"\naccuracy: 0.875\n";
    assert_eq!(read(text), ["50: loss=0.5", "50: test_auc=0.75", "50: accuracy=0.875"]);
    assert_eq!(read("[1] \"Epoch 3, Loss: 0.5\"\n"), ["3: loss=0.5"]);
    assert_eq!(read("[7] train-rmse:0.5\n"), ["7: train-rmse=0.5"]);
}

/// Proves that results have names although the measure is not right before the number: the best and the last one of a
/// part of the data, a measure on such a part, a value before its name. Numbers of something else have none.
#[test]
fn results_by_other_words() {
    for (line, expected) in [
        ("Highest Train: 29.5", "highest_train=29.5"),
        ("Highest Valid: 29.25 ± 0.5", "highest_valid=29.25"),
        ("   Final Test: 26.75 ± nan", "final_test=26.75"),
        ("bestTest = 0.2761041112", "best_test=0.2761041112"),
        ("ROC AUC: 0.9375", "roc_auc=0.9375"),
        ("Test ROC AUC = 0.9375", "test_roc_auc=0.9375"),
        ("Evaluation: accuracy on test data: 0.84375", "test_accuracy=0.84375"),
        ("ROC AUC on the training set: 0.9375", "train_roc_auc=0.9375"),
        ("\t0.875\t = Validation score   (accuracy)", "val_score=0.875"),
        ("\t-13.5\t = Validation score   (-root_mean_squared_error)", "val_score=-13.5"),
    ] {
        let text = format!("step 5: loss 0.5\n{line}\n");
        assert_eq!(read(&text), ["5: loss=0.5".to_owned(), format!("5: {expected}")], "{line}");
    }
    for line in [
        "bestIteration = 341",
        "Final test: 3.5 hours",
        "Best Test: 12",
        "Final model: 3.5",
        "accuracy on step 5.5: x",
        "0.02s\t = Training   runtime",
        "0.5 = threshold",
        "Run 03:",
        "Training on test data: 0.5",
    ] {
        assert_eq!(read(&format!("step 5: loss 0.5\n{line}\n")), ["5: loss=0.5"], "{line}");
    }
}

/// Proves that lines of the training whose names and values are between bars are no headings of results, also if a
/// value is negative or NaN.
#[test]
fn lines_between_bars_are_no_headings() {
    let text = "| epoch 1 | train_loss 0.5 | acc 0.75 |\n| epoch 2 | train_loss 0.25 | acc 0.875 |\n";
    assert_eq!(read(text), ["1: train_loss=0.5 acc=0.75", "2: train_loss=0.25 acc=0.875"]);
    for line in ["| epoch 1 | loss 0.5 |", "| loss -0.5 | acc 0.75 |", "| loss nan | acc inf |"] {
        assert_eq!(Tables::default().take(line), Taken::No, "{line}");
    }
    assert_eq!(Tables::default().take("| Accuracy | Macro F1 |"), Taken::Part);
}

/// Proves that percentages in tables of results are shares, in rows of numbers and in rows of a name and a value.
#[test]
fn percentages_in_tables_of_results() {
    let text = "step 5: loss 0.5\n| Accuracy | F1 |\n|---|---|\n| 85.0% | 80.0% |\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: accuracy=0.85 f1=0.8"]);
    let text = "step 5: loss 0.5\n| Accuracy | F1 |\n| 85.0% | 80.0% |\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: accuracy=0.85 f1=0.8"]);
    let text = "step 5: loss 0.5\n| Metric | Value |\n| accuracy | 85% |\n| sparsity | 12,5 |\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: accuracy=0.85", "5: sparsity=12.5"]);
}

/// Proves that a percentage is a fraction wherever its sign is: behind a blank in a cell, in the heading, in
/// parentheses behind a name; and that a deviation, an interval or a mark beside the number hides no value, in tables
/// of each form.
#[test]
fn percentages_with_blanks_and_in_headings() {
    let head = "step 5: loss 0.5\n";
    for (table, expected) in [
        (
            "| Metric | Value |\n|---|---|\n| accuracy | 61 % |\n| F1 (macro) | 80,5 % |\n",
            "5: accuracy=0.61|5: macro_f1=0.805",
        ),
        ("| Accuracy | F1 |\n|---|---|\n| 61 % | 0.8 ± 0.1 |\n", "5: accuracy=0.61 f1=0.8"),
        ("| Accuracy (%) | F1 [%] |\n|---|---|\n| **61** | 80.5 ± 2 |\n", "5: accuracy=0.61 f1=0.805"),
        ("│ accuracy   61 % │\n│ mfu   30 % │\nx\n", "5: accuracy=0.61 mfu=30"),
        ("Training |  Validation\nacc | 61 % | 62.5 %\n", "5: train_acc=0.61 val_acc=0.625"),
        ("acc (%): 61.5, f1: 0.5\n", "5: acc=0.615 f1=0.5"),
    ] {
        let mut lines = vec!["5: loss=0.5"];
        lines.extend(expected.split('|'));
        assert_eq!(read(&format!("{head}{table}")), lines, "{table}");
    }
    for table in [
        "epoch | loss | acc | time (s)\n1 | 0.5 | 61 % | 3.5\n2 | 0.25 | 62.5 % | 3.5\n",
        "epoch   loss   acc (%)   time(s)\n1   0.5   61 %   3.5\n2   0.25   62.5   3.5\n",
        "epoch loss acc % time [s]\n1 0.5 61 % 3.5\n2 0.25 62.5 3.5\n",
        "epoch,loss,acc (%),time (s)\n1,0.5,61,3.5\n2,0.25,62.5 %,3.5\n",
    ] {
        let expected = ["1: loss=0.5 acc=0.61 time_s=3.5", "2: loss=0.25 acc=0.625 time_s=3.5"];
        assert_eq!(read(table), expected, "{table}");
    }
}

/// Proves that results below a title that signs are drawn beside, or a rule above or below, are of the part of the data
/// that it names, up to an empty line behind them, the next title or the next place; and that a title of something else
/// names nothing.
#[test]
fn results_below_titles() {
    let head = "step 5: loss 0.5\n";
    for title in [
        "==== Evaluation on test set ====",
        "--- Test results ---",
        "*** Testing ***",
        "## Results on the test set",
        "2026-01-02 10:02:03,123 - INFO - ===== Test =====",
        "──── Evaluating on test data ────",
        "==========\nTest set\n==========",
        "Model performance on test set\n~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
    ] {
        for results in [
            "| acc | 0.62 |\n| f1 | 50 % |\n",
            "\n| metric | value |\n|--------|-------|\n| acc | 0.62 |\n| f1 | 0.5 |\n",
            "loaded 7 files\nacc: 0.62\nf1: 0.5\n",
        ] {
            let text = format!("{head}{title}\n{results}\nloss 0.25\nstep 6: loss 0.125\n");
            let expected =
                ["5: loss=0.5", "5: test_acc=0.62", "5: test_f1=0.5", "5: loss=0.25", "6: loss=0.125"];
            assert_eq!(read(&text), expected, "{text}");
        }
        let text = format!("{head}{title}\n{{'acc': 0.62, 'f1': 0.5}}\n=== Saving ===\nloss 0.25\n");
        assert_eq!(read(&text), ["5: loss=0.5", "5: test_acc=0.62 test_f1=0.5", "5: loss=0.25"], "{text}");
        let text = format!("{head}{title}\n| acc | f1 |\n|---|---|\n| 0.62 | 0.5 |\nstep 6: loss 0.25\n");
        assert_eq!(read(&text), ["5: loss=0.5", "5: test_acc=0.62 test_f1=0.5", "6: loss=0.25"], "{text}");
    }
    for (title, name) in [
        ("=== Validation ===", "val_acc"),
        ("=== Evaluation on the training set ===", "train_acc"),
        ("=== Evaluate ===", "eval_acc"),
        ("=== Training ===", "acc"),
        ("=== Saving the test set ===", "acc"),
        ("========", "acc"),
        ("evaluating", "acc"),
    ] {
        let expected = ["5: loss=0.5", &format!("5: {name}=0.62")];
        assert_eq!(read(&format!("{head}{title}\nacc: 0.62\n")), expected, "{title}");
    }
    // A box below a rule of the title, and a bar of the evaluation.
    let text = format!(
        "{head}Test results\n------------\n| acc | 0.62 |\n| f1 | 50 % |\n------------\n\nloss 0.25\n"
    );
    assert_eq!(read(&text), ["5: loss=0.5", "5: test_acc=0.62 test_f1=0.5", "5: loss=0.25"]);
    let text =
        format!("step 4: loss 1\n{head}=== Test ===\n100%|███| 10/10 [00:01<00:00, 9.0it/s]\nacc: 0.62\n");
    assert_eq!(read(&text), ["4: loss=1", "5: loss=0.5", "5: test_acc=0.62"]);
}

/// Proves that a title without results does not reach to the values of the next epoch, and that a heading that is not drawn ends at a rule.
#[test]
fn titles_end_where_the_training_continues() {
    let head = "step 5: loss 0.5\n=== Test ===\n";
    for (text, name) in [
        ("loaded 7 files\nEpoch 6\nloss: 0.25\n", "loss"),
        ("everything is saved\nEpoch 6\nloss: 0.25\n", "loss"),
        ("loaded 7 files\n\nEpoch 6/9\nloss: 0.25\n", "loss"),
        ("acc: 0.75\nEpoch 6/9\nloss: 0.25\n", "loss"),
        ("{'acc': 0.75, 'epoch': 5}\nloss: 0.25\n", "loss"),
        ("=== Training ===\n--------\n| loss | 0.25 |\n\nloss: 0.25\n", "loss"),
        ("Epoch 6\nloss: 0.25\n", "test_loss"),
        ("loaded 7 files\n\nloss: 0.25\n", "test_loss"),
    ] {
        let found = read(&format!("{head}{text}"));
        let last = found.last().unwrap();
        assert!(last.ends_with(&format!(": {name}=0.25")), "{text}: {found:?}");
        assert_eq!(found.iter().any(|line| line.contains("test_loss")), name == "test_loss", "{text}");
    }
    let table = "epoch  loss  acc\n5      0.5   0.5\n=== Test ===\n6      0.25  0.75\n";
    assert_eq!(read(table), ["5: loss=0.5 acc=0.5", "6: loss=0.25 acc=0.75"]);
    let text = "step 5: loss 0.5\nValidation:\nloss: 0.5\n--------\nloss: 0.25\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: val_loss=0.5", "5: loss=0.25"]);
}

/// Proves that a title of an evaluation that says more than the part of the data, or has a number, names what is below
/// it as well: where it names no part, as an evaluation; and that titles of anything else name nothing.
#[test]
fn titles_of_evaluations_with_further_words() {
    let head = "step 5: loss 0.5\n";
    for (title, part) in [
        ("==== Evaluation on OOD test set ====", "test"),
        ("=== test set (best checkpoint) ===", "test"),
        ("--- Test set (noisy) ---", "test"),
        ("==== Evaluation on test set (epoch 3) ====", "test"),
        ("==== Evaluation on cifar10-test ====", "test"),
        ("=== Evaluation (validation set) ===", "val"),
        ("==== Evaluation on held-out set ====", "eval"),
        ("=== Evaluation on held-out set after training ===", "eval"),
        ("=== Evaluation of the model on noisy training images ===", "train"),
        ("Evaluation on OOD test set\n==========================", "test"),
    ] {
        let text = format!("{head}{title}\n| acc | 31 % |\n| time (s) | 3.5 |\n\nstep 6: loss 0.25\n");
        let (acc, time) = (format!("5: {part}_acc=0.31"), format!("5: {part}_time_s=3.5"));
        assert_eq!(read(&text), ["5: loss=0.5", &acc, &time, "6: loss=0.25"], "{title}");
    }
    for title in [
        "=== Saving the OOD test set ===",
        "=== Evaluation done ===",
        "=== Training and validation ===",
        "=== Test settings ===",
        "=== No validation set ===",
        "=== Summary ===",
        "Found a valid checkpoint\n========",
    ] {
        assert_eq!(read(&format!("{head}{title}\nacc: 0.62\n")), ["5: loss=0.5", "5: acc=0.62"], "{title}");
    }
}

/// Proves that a line below a title of which nothing is read ends none of the results below it, that a name with a unit
/// in brackets is read there, and that a title of another kind ends them.
#[test]
fn lines_below_a_title_end_no_results() {
    let text = "step 5: loss 0.5\n==== Test ====\nacc: 61 %\ntime (s): 3.5\nrecall: 0.4\nsaved 7 files\n\
                F1 (macro): 0.3\n==== Done ====\nacc: 99 %\nstep 6: loss 0.25\n";
    let expected = [
        "5: loss=0.5", "5: test_acc=0.61", "5: test_time_s=3.5", "5: test_recall=0.4",
        "5: test_macro_f1=0.3", "5: acc=0.99", "6: loss=0.25",
    ];
    assert_eq!(read(text), expected);
    // What is below a title is remembered for no line of the same form.
    let (mut text, mut expected) = (String::new(), Vec::new());
    for number in 1..=6 {
        let title = format!("==== Test set (epoch {number}) ====");
        text +=
            &format!("step {number}: loss 0.5{number}\n{title}\nloss: 0.4{number}\n\nloss: 0.3{number}\n");
        expected.extend([format!(": test_loss=0.4{number}"), format!(": loss=0.3{number}")]);
    }
    let found = read(&text);
    let is_there = |expected: &String| found.iter().any(|line| line.ends_with(expected));
    assert!(expected.iter().all(is_there), "{found:?}");
    assert_eq!(found.iter().filter(|line| line.contains("test_loss")).count(), 6, "{found:?}");
}

/// Proves that results of an evaluation, which have the form of other lines, give their names to none of them, and that
/// all values of one number have the same names.
#[test]
fn results_of_evaluations_rename_no_other_lines() {
    let counts = "Test: [10/16] loss: 0.75\nTest: [16/16] loss: 0.75\n";
    for (heading, part) in [("Evaluating the model ...\n", "eval"), (counts, "test")] {
        let (mut text, mut expected) = (String::new(), Vec::new());
        for number in 1..=9 {
            let is_evaluated = number % 3 == 0;
            let heading = if is_evaluated { heading } else { "" };
            text += &format!("step {number} loss 0.5{number}\n{heading}loss: 0.4{number}\n");
            let prefix = if is_evaluated { format!("{part}_") } else { String::new() };
            expected.push(format!(": {prefix}loss=0.4{number}"));
        }
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(metrics.clone()));
        let lines: Vec<String> = found.iter().map(shown).collect();
        let is_there = |expected: &String| lines.iter().any(|line| line.ends_with(expected));
        assert!(expected.iter().all(is_there), "{lines:?}");
        let names_of = |metrics: &PrintedMetrics| -> Vec<String> {
            metrics.values.iter().map(|(name, _)| name.clone()).collect()
        };
        for numbered in found.iter().filter(|metrics| metrics.names.is_some()) {
            let same = found.iter().filter(|other| other.names == numbered.names);
            assert!(same.map(names_of).all(|names| names == names_of(numbered)), "{lines:?}");
        }
    }
}

/// Proves that values of a line of text beyond those that one line gives are counted, and those of a line about something else are not.
#[test]
fn surplus_values_of_text_are_counted() {
    let pairs: String = (0..2 * VALUES_MAX).map(|number| format!("m{number}=0.5 ")).collect();
    let (mut reader, mut count) = (PrintedReader::default(), 0);
    let text = format!("step 5: loss 0.5\nnote {pairs}\nstep 6 {pairs} loss 0.25\n");
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| count += metrics.values.len());
    reader.finish(|metrics| count += metrics.values.len());
    let left_out = reader.left_out();
    assert_eq!((count, left_out.len()), (1 + VALUES_MAX, 1), "{left_out:?}");
    let kinds: Vec<_> = left_out.iter().map(|left| (left.kind, left.count, left.line)).collect();
    assert_eq!(kinds, [(LeftOutKind::SurplusValues, VALUES_MAX as u64 + 1, Some(3))]);
}

/// Proves that the step of a line that says what the results below it are of counts for them.
#[test]
fn steps_of_lines_above_results() {
    let text = "Iteration 400: loss 0.5\nIteration 500: validation results for bbox:\n| AP | AP50 |\n|----|----|\n| 29.5 | 53.25 |\n\
                Iteration 600: validation results for bbox:\n| AP | AP50 |\n|----|----|\n| 30.5 | 54.25 |\n\
                Iteration 700: validation results for bbox:\n| AP | AP50 |\n|----|----|\n| 31.5 | 55.25 |\n";
    let expected = [
        "400: loss=0.5",
        "500: bbox/ap=29.5 bbox/ap50=53.25",
        "600: bbox/ap=30.5 bbox/ap50=54.25",
        "700: bbox/ap=31.5 bbox/ap50=55.25",
    ];
    assert_eq!(read(text), expected);
}

/// Proves that a table of names and values gives no sizes of the model, and none whose name is empty or too long.
#[test]
fn tables_of_sizes_are_no_results() {
    let sizes = "| Metric | Value |\n|---|---|\n| Total params | 11689512 |\n| FLOPs | 1814073344 |\n";
    assert_eq!(read(sizes), [] as [&str; 0]);
    assert_eq!(
        read(&format!("{sizes}| accuracy | 1 |\nstep 5: loss 0.5\n")),
        ["0: accuracy=1", "5: loss=0.5"]
    );
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    let text =
        format!("step 5: loss 0.5\n| Metric | Value |\n| {long} | 0.5 |\n|  | 0.5 |\n| acc | 0.75 |\n");
    assert_eq!(read(&text), ["5: loss=0.5", "5: acc=0.75"]);
    let text = format!("step 5: loss 0.5\n| {long} | acc |\n| 0.5 | 0.75 |\n");
    assert_eq!(read(&text), ["5: loss=0.5", "5: acc=0.75"]);
    // The tables themselves let none through.
    let mut tables = Tables::default();
    for line in ["| Metric | Value |", &format!("| {long} | 0.5 |"), "|  | 0.5 |"] {
        assert_eq!(tables.take(line), Taken::Part, "{line}");
    }
}
