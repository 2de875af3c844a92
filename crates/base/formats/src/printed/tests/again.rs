//! What is remembered of lines, and text that is damaged, random or cut, is read alike.

use proptest::prelude::*;
use trackway_core::{Rng as _, SplitMix64};

use super::*;
use crate::mutants::mutate;

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
/// Signs that have a meaning in what programs print.
const SIGNS: &[u8] = b"\n\r|=:,%/[]{}(-0.";

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
        let bytes = [prints, b"\n", &mutate(prints, SIGNS, &mut random), b"\n", prints].concat();
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

/// Lines as scripts print them again and again, with `#` for digits and `@` for a count that grows.
const AGAIN: [&str; 30] = [
    "step #### loss 0.####\n",
    "step 1 loss 0.###\n",
    "step ## loss 0.### lr #.##e-0#\n",
    "step ###### loss 0.################\n",
    "step #### loss -#.## acc ##.#%\n",
    "step 99999999999999#### loss 0.#\n",
    "step #### loss nan\r\n",
    "epoch # step ### val_loss 0.##\n",
    "{\"step\": ###, \"loss\": 0.####, \"grad_norm\": #.#}\n",
    "{\"step\": ###, \"loss\": ####, \"grad_norm\": ##e#}\n",
    "{'loss': 0.###, 'learning_rate': 5e-05, 'epoch': #.##}\n",
    "{'epoch': #.##}\n",
    "2026-11-29 10:00:0#,### INFO trainer: epoch # | iter ### | loss 0.### | time 0.##s\n",
    "Epoch 1: ##%|##   | ###/999 [00:10<00:20, 5.0it/s, loss=0.###]\r",
    "loading shard #### of the data set from the disk, done\n",
    "Epoch [#/9], Step [###/600], Loss: #.####\n",
    "loss: 0.#### accuracy 0.##\n",
    "    it took 0.## of them: ##\n",
    "Validation:\n",
    "\n",
    "Best model at step ####:\n",
    " * acc 0.###\n",
    "max_steps: ####\n",
    "Epoch #\n",
    "Epoch 1: 12%|--   | @/999 [00:10<00:20, 5.0it/s, loss=0.###, lr=#e-0#]\r",
    "Epoch 1: 12%|--   | @/999 [00:10<00:2#, 5.0it/s, v_num=#, loss=0.#, val_loss=0.#]\r",
    "Epoch #: 12%|--   | @/9## [00:10<00:20, 5.0it/s, loss=0.#]\r",
    "12%|--   | @/999 [00:10<00:20, 5.0it/s, loss=0.###]\n",
    "@it [00:10, 5.0it/s, loss=0.###]\r",
    "Validation: 12%|--   | @/999 [00:10<00:20, 5.0it/s, loss=0.###]\r",
];

proptest! {
    /// Proves that lines of known forms which are read many at once say what they say one by one, and leave the same behind: in any mix of
    /// forms, with any digits, on both outputs, wherever what is printed is cut.
    #[test]
    fn lines_at_once_say_what_each_says(
        parts in prop::collection::vec((0..AGAIN.len(), 1usize..25), 1..14), of_error in 0usize..4, seed in any::<u64>(), cut in 20usize..3_000,
    ) {
        let mut random = SplitMix64::new(seed);
        let is_mostly = random.next_u64() % 3;
        let mut digit = |letter: char| match letter {
            '#' if is_mostly == 0 && !random.next_u64().is_multiple_of(4) => '0',
            '#' => char::from(b'0' + (random.next_u64() % 10) as u8),
            other => other,
        };
        let mut counted = 100;
        let mut line = |form: &str| {
            counted += form.contains('@').then(|| digit('#').to_digit(3)).flatten().unwrap_or(0);
            form.replace('@', &counted.to_string()).chars().map(&mut digit).collect::<String>()
        };
        let texts: Vec<String> =
            parts.iter().map(|(form, count)| (0..*count).map(|_| line(AGAIN[*form])).collect()).collect();
        let read = |piece: &dyn Fn(&str) -> Vec<String>| {
            let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
            for (place, text) in texts.iter().enumerate() {
                let output = if of_error == place % 4 { Printed::Stderr } else { Printed::Stdout };
                for piece in piece(text) {
                    reader.push(output, piece.as_bytes(), |metrics| found.push((shown(metrics), metrics.counts_apart)));
                }
                found.push((format!("{:?} {:?}", reader.take_settings(), reader.course()), false));
            }
            reader.finish(|metrics| found.push((shown(metrics), metrics.counts_apart)));
            (found, reader.left_out())
        };
        let one_by_one = read(&|text| text.split_inclusive(['\n', '\r']).map(str::to_owned).collect());
        prop_assert_eq!(&read(&|text| vec![text.to_owned()]), &one_by_one);
        let cut = |text: &str| {
            text.as_bytes().chunks(cut).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
        };
        prop_assert_eq!(&read(&cut), &one_by_one);
    }
}

/// Proves that the values of lines of known forms come together, also where the forms differ in lengths and lines between them say nothing.
#[test]
fn values_of_many_lines_come_together() {
    let mut text = "step 1 loss 0.5\n".repeat(4);
    for step in 90..300 {
        text +=
            &format!("step {step} loss 0.{step}\nloading shard {step} of the data set from the disk, done\n");
    }
    let (mut reader, mut alone, mut runs) = (PrintedReader::default(), 0, Vec::new());
    reader.push_runs(Printed::Stdout, text.as_bytes(), &mut |found| match found {
        PrintedFound::One(_) => alone += 1,
        PrintedFound::Run(run) => {
            assert_eq!(run.names, ["loss"]);
            assert_eq!(run.values.len(), run.steps.len());
            runs.push(run.steps.to_vec());
        }
    });
    assert_eq!(alone + runs.concat().len(), 214);
    assert!(alone < 20 && runs.len() < 8 && runs.concat().last() == Some(&299), "{alone} {runs:?}");
}

/// Proves that the values of a bar's drawings come together, each once and at its step, also where the bar does not move on.
#[test]
fn values_of_many_drawings_come_together() {
    let drawing = |at: u32| {
        format!("Epoch 1: {}%|##   | {}/900 [00:10<00:20, 5.0it/s, loss=0.{at}]\r", at / 2 / 9, 100 + at / 2)
    };
    let text: String = (200..1_000).map(drawing).collect();
    let (mut reader, mut alone, mut together) = (PrintedReader::default(), Vec::new(), Vec::new());
    reader.push_runs(Printed::Stdout, text.as_bytes(), &mut |found| match found {
        PrintedFound::One(metrics) => alone.push(shown(metrics)),
        PrintedFound::Run(run) => run.each(|metrics| together.push(shown(metrics))),
    });
    reader.finish(|metrics| alone.push(shown(metrics)));
    assert!(alone.len() < 30 && alone.len() + together.len() == 400, "{alone:?}");
    let mut all = [alone, together].concat();
    all.sort();
    let expected: Vec<String> =
        (100..500).map(|at| format!("{}: loss={}", 100 + at, f64::from(2 * at + 1) / 1e3)).collect();
    assert_eq!(all, expected);
}
