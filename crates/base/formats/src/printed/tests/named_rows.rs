//! Tables whose rows have names.

use super::*;

/// What a text gives, and how many rows of its tables are not read.
fn read_with_unread(text: &str) -> (Vec<String>, u64) {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    reader.finish(|metrics| found.push(shown(metrics)));
    let is_row = |it: &&LeftOut| it.kind == LeftOutKind::UnreadRows;
    (found, reader.left_out().iter().filter(is_row).map(|it| it.count).sum())
}

const HEAD: &str = "step 5: loss 0.5\n\n";

/// Proves that the rows of a table of models are read with their names before those of the columns, as Markdown, tabulate,
/// Rich and pandas print it, and that the next line is of the training again.
#[test]
fn rows_of_models() {
    let expected = [
        "5: loss=0.5",
        "5: resnet/acc=0.62 resnet/f1=0.5",
        "5: vit-b/acc=0.75 vit-b/f1=0.25",
        "6: loss=0.25",
    ];
    for table in [
        "| model | acc | f1 |\n|-------|-----|----|\n| resnet | 0.62 | 0.5 |\n| vit-b | 0.75 | 0.25 |\n",
        "+---------+-------+------+\n| Model   |   Acc |   F1 |\n+=========+=======+======+\n| resnet  |  0.62 | 0.5  |\n\
         +---------+-------+------+\n| vit-b   |  0.75 | 0.25 |\n+---------+-------+------+\n",
        "┏━━━━━━━━┳━━━━━━┳━━━━━━┓\n┃ Model  ┃ Acc  ┃ F1   ┃\n┡━━━━━━━━╇━━━━━━╇━━━━━━┩\n│ resnet │ 0.62 │ 0.50 │\n\
         │ vit-b  │ 0.75 │ 0.25 │\n└────────┴──────┴──────┘\n",
        "  Model    Acc    F1\n ─────────────────────\n  resnet   0.62   0.50\n  vit-b    0.75   0.25\n",
        "model      acc    f1\n-------  -----  ----\nresnet    0.62  0.5\nvit-b     0.75  0.25\n",
        "    model   acc    f1\n0  resnet  0.62  0.50\n1   vit-b  0.75  0.25\n",
        " model  acc   f1\nresnet 0.62 0.50\n vit-b 0.75 0.25\n",
        "         acc    f1\nmodel             \nresnet  0.62  0.50\nvit-b   0.75  0.25\n",
        "         acc    f1\nresnet  0.62  0.50\nvit-b   0.75  0.25\n",
        "|    | model   |   acc |   f1 |\n|---:|:--------|------:|-----:|\n|  0 | resnet  |  0.62 | 0.5  |\n\
         |  1 | vit-b   |  0.75 | 0.25 |\n",
    ] {
        let found = read_with_unread(&format!("{HEAD}{table}\nstep 6: loss 0.25\n"));
        assert_eq!(found, (expected.map(str::to_owned).to_vec(), 0), "{table}");
    }
}

/// Proves which names rows and columns have: of folds, classes and tasks, of several words, of parts of the data, of means.
#[test]
fn names_of_rows() {
    for (table, expected) in [
        ("| fold | acc |\n|---|---|\n| 1 | 0.62 |\n| mean | 0.5 |\n", "fold_1/acc=0.62 mean/acc=0.5"),
        ("| Split | Acc |\n|---|---|\n| train | 0.75 |\n| test | 0.5 |\n", "train_acc=0.75 test_acc=0.5"),
        (
            "| model | dataset | params | acc (%) | note |\n|---|---|---|---|---|\n| ViT B | cifar | 86 | 61 | best |\n",
            "vit_b/cifar/acc=0.61",
        ),
        (
            "| Class | IoU | Acc |\n|---|---|---|\n| side walk | 97.5 | 98.5 |\n| mIoU | | 80.25 |\n",
            "side_walk/iou=97.5 side_walk/acc=98.5 miou=80.25",
        ),
        ("| class | ap |\n|---|---|\n| 0 | 0.5 |\n| all | 0.25 |\n", "class_0/ap=0.5 ap=0.25"),
        (
            "Model              Accuracy   time (s)\nLogistic Regression  0.62    3.5\nSVM  -   nan\nMLP  61 %   2\n",
            "logistic_regression/accuracy=0.62 logistic_regression/time_s=3.5 mlp/accuracy=0.61",
        ),
        ("Dataset   Accuracy\nSVHN      95.0%\n", "svhn/accuracy=0.95"),
        (
            "|Tasks|Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n|---|---|---|---|---|---|---|---|---|\n\
             |arc_easy |1|none  |0|acc   |↑  |0.625|±  |0.25|\n|  | |none |0|acc_norm|↑ |0.5|± |0.125|\n\
             | - gsm8k |3|strict-match |5|exact_match|↑ |0.75|± |N/A|\n",
            "arc_easy/acc=0.625 arc_easy/acc_stderr=0.25 arc_easy/acc_norm=0.5 arc_easy/acc_norm_stderr=0.125 \
             gsm8k/strict-match/exact_match=0.75",
        ),
        ("metric    value\naccuracy   0.62\nsupport     100\ntime_s      3.5\n", "accuracy=0.62 time_s=3.5"),
        ("     metric  value\n0  accuracy   0.62\n1        f1   0.50\n", "accuracy=0.62 f1=0.5"),
        (
            "              precision    recall  f1-score   support\n\n           0       0.50      0.25      0.75        10\n\
             \n    accuracy                           0.62        20\n   macro avg       0.50      0.25      0.75        20\n",
            "class_0/precision=0.5 class_0/recall=0.25 class_0/f1-score=0.75 accuracy=0.62 \
             macro_avg/precision=0.5 macro_avg/recall=0.25 macro_avg/f1-score=0.75",
        ),
        ("       loss   acc\nepoch            \n6       0.5   0.6\n", "loss=0.5 acc=0.6"),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}"));
        let values: Vec<&str> = found[1..].iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), 0), "{table}");
    }
}

/// Proves that a row is not read, and is counted, where nothing shows what it is of, its name is there already, or a cell
/// below a measure has no number; and that tables without measures and lines behind a table are as they were.
#[test]
fn rows_without_a_name() {
    for (table, expected, rows) in [
        ("| name | score |\n|---|---|\n| alice | 0.62 |\n| bob | 0.5 |\n", "", 2),
        ("| model | acc |\n|---|---|\n| resnet | OOM |\n| vit | 0.5 |\n", "vit/acc=0.5", 1),
        (
            "| model | depth | acc |\n|---|---|---|\n| vit | 12 | 0.5 |\n| vit | 24 | 0.75 |\n",
            "vit/acc=0.5",
            1,
        ),
        ("          loss   acc\nloss  1.0 -0.5\nacc  -0.5  1.0\n", "", 2),
        ("       score    loss\ncount   3.0  3.0\nmean   0.5   0.5\n25%    0.5  0.5\n", "", 0),
        ("    name  age  score\n0  alice   30   0.62\n", "", 0),
        ("| Name | Type | Params |\n|---|---|---|\n| encoder | Linear | 1.2 |\n", "", 0),
        ("| param | value |\n|---|---|\n| lr | 0.1 |\n", "", 0),
        ("Model   Accuracy\nSaved the model in  3.2\n", "", 0),
        ("model  loss  acc\nEpoch 3  0.5  0.25\n", "", 0),
        ("| threshold | acc |\n|---|---|\n| 0.5 | 0.25 |\n", "threshold=0.5 acc=0.25", 0),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}\nstep 6: loss 0.25\n"));
        let of_table = &found[1..found.len() - 1];
        let values: Vec<&str> = of_table.iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), rows), "{table}");
        assert_eq!(found.last().unwrap(), "6: loss=0.25", "{table}");
    }
}

/// Proves that named rows below a title are of the part of the data that it names.
#[test]
fn named_rows_below_a_title() {
    let text =
        format!("{HEAD}=== Evaluation on OOD test set ===\n| model | acc |\n|---|---|\n| resnet | 0.62 |\n");
    assert_eq!(read(&text)[1..], ["5: test_ood_resnet/acc=0.62"]);
}

/// Proves that a row with more numbers than its table has columns is left out and counted, as below two lines of a
/// heading, and that a whole number in a name is of it.
#[test]
fn rows_with_further_numbers() {
    for (table, expected, rows) in [
        (
            "      accuracy                loss          \n          mean       std      mean       std\n\
             model                                       \na        0.815  0.007071     0.305  0.007071\n\
             b        0.715  0.007071     0.405  0.007071\n",
            "",
            2,
        ),
        (
            "            accuracy  loss\nmodel seed                \na     1        0.75   0.5\n",
            "a/seed_1/accuracy=0.75 a/seed_1/loss=0.5",
            0,
        ),
        (
            "model      acc    f1\nResNet 50  0.62  0.5\nvit  12  0.75  0.5\n",
            "resnet_50/acc=0.62 resnet_50/f1=0.5",
            1,
        ),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}\nstep 6: loss 0.25\n"));
        let of_table = &found[1..found.len() - 1];
        let values: Vec<&str> = of_table.iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), rows), "{table}");
    }
}

/// Proves that values of a measure below the names of models or folds have these names, that those below names which
/// nothing shows to be a heading are left out and counted, and that a table of values and deviations is of the run.
#[test]
fn columns_of_models() {
    let models = "resnet/loss=0.312 vit/loss=0.352 resnet/accuracy=0.9 vit/accuracy=0.8";
    let folds = "fold_1/loss=0.312 fold_2/loss=0.352 mean/loss=0.332";
    for (table, expected, rows) in [
        ("metric    resnet   vit\nloss      0.312    0.352\naccuracy  0.9      0.8\n", models, 0),
        ("     metric  resnet    vit\n0      loss   0.312  0.352\n1  accuracy   0.900  0.800\n", models, 0),
        (
            "| metric | resnet | vit |\n|---|---|---|\n| loss | 0.312 | 0.352 |\n| accuracy | 90% | 0.8 |\n",
            models,
            0,
        ),
        ("metric    fold 1   fold 2  mean\nloss      0.312    0.352  0.332\n", folds, 0),
        ("          resnet    vit\nloss       0.312  0.352\naccuracy   0.900  0.800\n", "", 2),
        ("          resnet50  vit16\nloss       0.312  0.352\naccuracy   0.900  0.800\n", "", 2),
        ("model     resnet    vit\naccuracy   0.900  0.800\nmAP        0.9    0.8\n", "", 2),
        ("metric    value    std\nloss      0.312    0.01\n", "loss=0.312 loss_std=0.01", 0),
        ("metric    train    val\nloss      0.312    0.352\n", "train_loss=0.312 val_loss=0.352", 0),
        (
            "metric    resnet   vit\nloss      0.312    0.352\nloss      0.1      0.2\n",
            "resnet/loss=0.312 vit/loss=0.352",
            1,
        ),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}\nstep 6: loss 0.25\n"));
        let of_table = &found[1..found.len() - 1];
        let values: Vec<&str> = of_table.iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), rows), "{table}");
        assert_eq!(found.last().unwrap(), "6: loss=0.25", "{table}");
    }
}

/// Proves that a row of a part of the data with a distribution has the names that its title gives, and that a bold name
/// of a row is that name.
#[test]
fn rows_of_distributions_and_in_bold() {
    for (table, expected) in [
        (
            "| split | acc |\n|---|---|\n| test | 0.75 |\n| test (OOD) | 0.5 |\n| OOD val | 0.25 |\n",
            "test_acc=0.75 test_ood_acc=0.5 val_ood_acc=0.25",
        ),
        ("split        acc    f1\ntest (OOD)   0.75   0.5\n", "test_ood_acc=0.75 test_ood_f1=0.5"),
        ("| class | acc |\n|---|---|\n| **cat** | 0.75 |\n| **all** | **0.5** |\n", "cat/acc=0.75 acc=0.5"),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}"));
        let values: Vec<&str> = found[1..].iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), 0), "{table}");
    }
}

/// Proves that rows with two names have both, also where the second one is a number or pandas does not repeat the first
/// one, that a sign behind a name keeps it apart from the name alone, and that rows beside one another are all read.
#[test]
fn rows_with_two_names() {
    let seeds = "vit/seed_1/acc=0.5 vit/seed_2/acc=0.6 resnet/seed_1/acc=0.4";
    for (table, expected) in [
        ("model   seed  acc\nvit     1     0.5\nvit     2     0.6\nresnet  1     0.4\n", seeds),
        (
            "| model | seed | acc |\n|---|---|---|\n| vit | 1 | 0.5 |\n| vit | 2 | 0.6 |\n| resnet | 1 | 0.4 |\n",
            seeds,
        ),
        ("   model  seed  acc\n0    vit     1  0.5\n1    vit     2  0.6\n2 resnet     1  0.4\n", seeds),
        (
            "             acc   f1\nmodel  seed          \nvit    1     0.50  0.1\n       2     0.60  0.2\nresnet 1     0.40  0.3\n",
            "vit/seed_1/acc=0.5 vit/seed_1/f1=0.1 vit/seed_2/acc=0.6 vit/seed_2/f1=0.2 \
             resnet/seed_1/acc=0.4 resnet/seed_1/f1=0.3",
        ),
        (
            "model   dataset  acc\nvit     cifar    0.5\nvit     svhn     0.6\n",
            "vit/cifar/acc=0.5 vit/svhn/acc=0.6",
        ),
        (
            "model     acc   f1\nresnet*   0.62  0.5\nresnet    0.6   0.4\n**vit**   0.7   0.3\n",
            "resnet*/acc=0.62 resnet*/f1=0.5 resnet/acc=0.6 resnet/f1=0.4 vit/acc=0.7 vit/f1=0.3",
        ),
        (
            "| model | acc |\n|---|---|\n| resnet* | 0.62 |\n| resnet | 0.6 |\n",
            "resnet*/acc=0.62 resnet/acc=0.6",
        ),
        (
            "| category | AP | category | AP |\n|:---|:---|:---|:---|\n| person | 52.5 | bicycle | 28.25 |\n| car | 43.5 | | |\n",
            "person/ap=52.5 bicycle/ap=28.25 car/ap=43.5",
        ),
    ] {
        let (found, unread) = read_with_unread(&format!("{HEAD}{table}\nstep 6: loss 0.25\n"));
        let of_table = &found[1..found.len() - 1];
        let values: Vec<&str> = of_table.iter().flat_map(|line| line.split(' ').skip(1)).collect();
        assert_eq!((values.join(" "), unread), (expected.to_owned(), 0), "{table}");
        assert_eq!(found.last().unwrap(), "6: loss=0.25", "{table}");
    }
}

/// Proves that a line with fewer numbers than columns has no values of the name above it, and that of rows beside one another
/// those that are read count although another one is not.
#[test]
fn rows_that_lack_something() {
    let index = "             acc   f1\nmodel  seed          \ncnn    1     0.50  0.1\n       2     0.60  0.2\n0.91 0.92\n";
    let (found, _) = read_with_unread(&format!("{HEAD}{index}"));
    let values: Vec<&str> = found[1..].iter().flat_map(|line| line.split(' ').skip(1)).collect();
    assert_eq!(
        values,
        ["cnn/seed_1/acc=0.5", "cnn/seed_1/f1=0.1", "cnn/seed_2/acc=0.6", "cnn/seed_2/f1=0.2"]
    );
    let beside =
        "| category | AP | category | AP |\n|:---|:---|:---|:---|\n| person | 52.5 | bicycle | x |\n";
    let (found, unread) = read_with_unread(&format!("{HEAD}{beside}"));
    assert_eq!((found.last().map(String::as_str), unread), (Some("5: person/ap=52.5"), 1));
}

/// Proves that a column which only distinguishes rows has no metric, and that rows named by it alone are counted.
#[test]
fn columns_of_identities() {
    assert_eq!(read("epoch  id  loss\n1      7   0.5\n"), ["1: loss=0.5"]);
    assert_eq!(read("step,run_id,loss\n1,7,0.5\n"), ["1: loss=0.5"]);
    assert_eq!(
        read("{\"step\": 1, \"id\": 7, \"loss\": 0.5, \"acc\": {\"id\": 0.75, \"ood\": 0.5}}\n"),
        ["1: acc/id=0.75 acc/ood=0.5 loss=0.5"]
    );
    let (found, unread) =
        read_with_unread(&format!("{HEAD}| id | loss |\n|---|---|\n| 1 | 0.5 |\n| 2 | 0.25 |\n"));
    assert_eq!((found, unread), (vec!["5: loss=0.5".to_owned()], 2));
}
