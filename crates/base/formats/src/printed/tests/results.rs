//! Tables, boxes and lines with results, and evaluations beside the training.

use super::*;

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

/// Proves that a row of which a value was not measured yet keeps its other values.
#[test]
fn rows_with_values_that_are_not_measured_yet() {
    let text = "Step   Training Loss   Validation Loss\n10     0.500000        No log\n20     No log          0.250000\n";
    assert_eq!(read(text), ["10: training_loss=0.5", "20: val_loss=0.25"]);
}

/// Proves that a table of another kind below one ends it, that updates are a column of the step, and that an object
/// shown with what it was made from has no values.
#[test]
fn tables_end_at_other_headings() {
    let text = "step 5 loss 0.5\n| Class | IoU  |  Acc  |\n+-----+----+----+\n| road | 97.25 | 98.5 |\n+-----+----+----+\n\
                | aAcc | mIoU | mAcc |\n+-----+----+----+\n| 95.5 | 66.75 | 67.5 |\n";
    let expected = ["5: loss=0.5", "5: road/iou=97.25 road/acc=98.5", "5: aacc=95.5 miou=66.75 macc=67.5"];
    assert_eq!(read(text), expected);
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
        assert_eq!(Tables::default().take(line), tables::Taken::No, "{line}");
    }
    assert_eq!(Tables::default().take("| Accuracy | Macro F1 |"), tables::Taken::Part);
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
        assert_eq!(tables.take(line), tables::Taken::Part, "{line}");
    }
}
