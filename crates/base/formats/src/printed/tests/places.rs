//! The steps and epochs at which something was measured.

use super::*;

/// Proves that a step that no training reaches, such as the largest number there is, is not a step of the script.
#[test]
fn implausible_steps() {
    let text = "step 5: loss 1.0\nstep 9223372036854775807: loss 0.5\nloss 0.25\n";
    assert_eq!(read(text), ["5: loss=1", "5: loss=0.25"]);
    assert_eq!(read("{\"step\": 18446744073709551615, \"loss\": 1}\n"), [] as [&str; 0]);
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

/// Proves that the index of R before what it prints is not a step, and that a round in brackets is one.
#[test]
fn indices_of_r() {
    let text = "step 50 loss 0.5\n[1] \"Test AUC: 0.75\"\n[1] 0.25\n[1] \"AUC\" \"0.5\"\naccuracy: 0.875\n";
    assert_eq!(read(text), ["50: loss=0.5", "50: test_auc=0.75", "50: accuracy=0.875"]);
    assert_eq!(read("[1] \"Epoch 3, Loss: 0.5\"\n"), ["3: loss=0.5"]);
    assert_eq!(read("[7] train-rmse:0.5\n"), ["7: train-rmse=0.5"]);
}

/// Proves that a step or an epoch below 0 is that step and no other, in text, objects and dicts, also of the lines
/// below one that says nothing else and where lines of one form come again and again; the training continues behind it.
#[test]
fn steps_below_zero() {
    for (text, expected) in [
        ("step 1 loss 0.5\nstep -1 loss 0.3\n", &["1: loss=0.5", "-1: loss=0.3"][..]),
        (
            "step -1 loss 0.3\nval acc 0.25\nstep 0 loss 0.5\nacc 0.5\n",
            &["-1: loss=0.3", "-1: val_acc=0.25", "0: loss=0.5", "0: acc=0.5"],
        ),
        ("Step: -1, val_loss: 0.3\n", &["-1: val_loss=0.3"]),
        ("epoch -1 loss 0.3\nepoch 0 loss 0.5\n", &["-1: loss=0.3", "0: loss=0.5"]),
        ("{\"step\": -1, \"loss\": 0.3}\n", &["-1: loss=0.3"]),
        ("{'loss': 0.3, 'step': -2}\n", &["-2: loss=0.3"]),
        ("step -1: {'loss': 0.3}\n", &["-1: loss=0.3"]),
        (
            "step 5 loss 0.5\nStep -1:\n  acc: 0.25\nstep 6 loss 0.5\n",
            &["5: loss=0.5", "-1: acc=0.25", "6: loss=0.5"],
        ),
        ("steps: -1 loss 0.5\n", &["0: loss=0.5"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    // Values without a zero at their end.
    let line = |step: i64| format!("step {step} loss 0.{}5\n", step.abs());
    let lines: String = (1..30).flat_map(|step| [line(-step), line(step)]).collect();
    let expected: Vec<String> = lines.lines().map(|line| line[5..].replace(" loss ", ": loss=")).collect();
    assert_eq!(read(&lines), expected);
}

/// Proves that a step or an epoch below 0 beside settings is one of them, and that what follows is not at it.
#[test]
fn settings_below_zero() {
    for (text, names) in [
        ("{'lr': 0.1, 'epoch': -1, 'dropout': 0.3}\n", &["dropout", "epoch", "lr"][..]),
        ("weights epoch -1, lr 0.1\n", &["learning_rate"]),
        ("start epoch -1\nlr 0.1, momentum 0.9\n", &["learning_rate"]),
        ("epoch: -1\nlr 0.1\n", &["learning_rate"]),
    ] {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        let text = format!("{text}loss 0.5\n");
        reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
        reader.finish(|metrics| found.push(shown(metrics)));
        let settings: Vec<String> = reader.take_settings().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            (found.join("|"), settings.join(" ")),
            ("0: loss=0.5".to_owned(), names.join(" ")),
            "{text}"
        );
    }
}
