//! What bars show, and what is printed beside them.

use super::*;

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

/// Proves that a bar which falls back by a little, as those of two ranks do that draw side by side, does not begin
/// again, and that one which falls to its begin does.
#[test]
fn a_bar_that_falls_back_a_little() {
    let bar = |done: u64| format!("\r 10%|█         | {done}/300 [00:20<09:40,  2.00s/it, loss=0.{done}]");
    let drawn = |places: &[u64]| places.iter().map(|done| bar(*done)).collect::<String>();
    assert_eq!(steps(&drawn(&[69, 71, 68, 72])), [69, 71, 68, 72]);
    assert_eq!(steps(&drawn(&[150, 300, 0, 150])), [150, 300, 300, 450]);
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
