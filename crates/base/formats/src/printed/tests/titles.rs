//! Titles above results.

use super::*;

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
        ("==== Evaluation on OOD test set ====", "test_ood"),
        ("=== test set (best checkpoint) ===", "test"),
        ("--- Test set (noisy) ---", "test_noisy"),
        ("==== Evaluation on test set (epoch 3) ====", "test"),
        ("==== Evaluation on cifar10-test ====", "test"),
        ("=== Evaluation (validation set) ===", "val"),
        ("==== Evaluation on held-out set ====", "eval"),
        ("=== Evaluation on held-out set after training ===", "eval"),
        ("=== Evaluation of the model on noisy training images ===", "train_noisy"),
        ("Evaluation on OOD test set\n==========================", "test_ood"),
        ("==== Evaluation on the out-of-distribution test set ====", "test_out_of_distribution"),
        ("=== In-distribution test results ===", "test_in_distribution"),
        ("=== Epoch 3: OOD test set ===", "test_ood"),
        ("=== Final evaluation: SVHN test ===", "test_svhn"),
        ("==== Evaluation on OOD set ====", "eval_ood"),
        ("==== Evaluation on the full held-out test set ====", "test"),
        ("=== Running test ===", "test"),
        ("=== Fold 2 test ===", "test"),
        ("=== Results of the best model on our official test split ===", "test"),
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

/// Proves that results of two test sets at one step have names of their sets, that a name depends on its own title
/// alone and not on the order of the titles, and that a value that names the part already has the set in its name.
#[test]
fn titles_distinguish_sets_of_one_part() {
    let head = "step 5: loss 0.5\n";
    let (plain, ood) = ("==== Evaluation on test set ====\n", "==== Evaluation on OOD test set ====\n");
    let found = ["5: test_acc=0.75", "5: test_ood_acc=0.5"];
    assert_eq!(read(&format!("{head}{plain}acc: 0.75\n\n{ood}acc: 0.5\n"))[1..], found);
    assert_eq!(read(&format!("{head}{ood}acc: 0.5\n\n{plain}acc: 0.75\n"))[1..], [found[1], found[0]]);
    for (results, name) in [
        ("test_acc: 0.5\n", "test_ood_acc"),
        ("test/acc: 0.5\n", "test_ood/acc"),
        ("{'test_acc': 0.5}\n", "test_ood_acc"),
        ("| test_acc | 0.5 |\n", "test_ood_acc"),
        ("| acc | f1 |\n|---|---|\n| 0.5 | 0.5 |\n", "test_ood_acc"),
        ("val_acc: 0.5\n", "val_acc"),
    ] {
        let found = read(&format!("{head}{ood}{results}\n"));
        assert!(found[1].starts_with(&format!("5: {name}=0.5")), "{results}: {found:?}");
    }
}

/// Proves that a line that says which distribution a part of the data has gives the names that a title gives, however it
/// says so, and that a line which names another part as well gives nothing.
#[test]
fn lines_name_distributions_as_titles_do() {
    let head = "step 5: loss 0.5\n";
    for (text, expected) in [
        ("OOD test accuracy: 0.74", "test_ood_accuracy=0.74"),
        ("Epoch 5: OOD test accuracy 0.74, test accuracy 0.9", "test_ood_accuracy=0.74 test_accuracy=0.9"),
        ("Test accuracy (OOD): 0.74", "test_ood_accuracy=0.74"),
        ("Test OOD accuracy: 0.74", "test_ood_accuracy=0.74"),
        ("Test (OOD): acc=0.7", "test_ood_acc=0.7"),
        ("OOD test: acc 0.7", "test_ood_acc=0.7"),
        ("Test set (OOD): acc 0.7, f1 0.6", "test_ood_acc=0.7 test_ood_f1=0.6"),
        ("Evaluation on OOD test set: accuracy 0.73", "test_ood_accuracy=0.73"),
        ("OOD test: {'acc': 0.7}", "test_ood_acc=0.7"),
        ("Results on OOD test set:\n  acc: 0.7", "test_ood_acc=0.7"),
        ("OOD accuracy: 0.72", "ood_accuracy=0.72"),
        ("OOD test set accuracy: 0.72", "test_ood_accuracy=0.72"),
        ("Test (OOD): acc=0.7 | Test (ID): acc=0.9", ""),
        ("Test: acc=0.7", "test_acc=0.7"),
    ] {
        let found = read(&format!("{head}{text}\n"));
        let values: Vec<&str> = found[1..].iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!(values.join(" "), expected, "{text}");
    }
}

/// Proves that the title of a drawn box, above it or in its top, is of the part of the data, for all of the box and for
/// nothing behind it, whatever the box before it was of; a box of the training has none.
#[test]
fn titles_of_boxes() {
    let table = |title: &str, first: &str| {
        format!(
            "{title}\n┏━━━━━━━┳━━━━━━┓\n┃ Epoch ┃ Loss ┃\n┡━━━━━━━╇━━━━━━┩\n│ 1     │ {first} │\n│ 2     │ 0.25 │\n└───────┴──────┘\n"
        )
    };
    let text = format!(
        "{}{}epoch 3 loss 0.125\n",
        table("    Training     ", "0.50"),
        table("    Validation    ", "0.75")
    );
    assert_eq!(
        read(&text),
        ["1: loss=0.5", "2: loss=0.25", "1: val_loss=0.75", "2: val_loss=0.25", "3: loss=0.125"]
    );
    let text =
        "step 5 loss 0.5\n╭─── Validation ───╮\n│ acc     0.75     │\n╰──────────────────╯\nloss: 0.25\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: val_acc=0.75", "5: loss=0.25"]);
    let text = "step 5 loss 0.5\n  Validation metrics\n┏━━━━━━━━┳━━━━━━━┓\n┃ Metric ┃ Value ┃\n┡━━━━━━━━╇━━━━━━━┩\n│ acc    │ 0.75  │\n└────────┴───────┘\nloss: 0.25\n";
    assert_eq!(read(text), ["5: loss=0.5", "5: val_acc=0.75", "5: loss=0.25"]);
}
