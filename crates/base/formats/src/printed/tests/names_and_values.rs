//! Which names and numbers are metrics.

use super::*;

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
        ("step 1 loss 0.5 lr=[0.25, 0.25] betas=[0.5, 0.75]\n", "1: loss=0.5 learning_rate=0.25"),
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

/// Proves that the marks of bold words and numbers are none of them, and that powers and rules are no such marks.
#[test]
fn bold_names_and_values() {
    for (text, expected) in [
        ("Test accuracy: **0.81**", "test_accuracy=0.81"),
        ("**Test accuracy**: 0.81", "test_accuracy=0.81"),
        ("**Test**: acc **0.81** / f1 **0.79**", "test_acc=0.81 test_f1=0.79"),
        ("*** loss: 0.81 ***", "loss=0.81"),
    ] {
        let found = read(&format!("step 5: loss 0.5\n{text}\n"));
        assert_eq!(found[1..], [format!("5: {expected}")], "{text}");
    }
    // Also where lines of the form come again and again.
    let text: String = (1..=9).map(|at| format!("step {at}: **loss** **0.{at}5**\n")).collect();
    let expected: Vec<String> = (1..=9).map(|at| format!("{at}: loss=0.{at}5")).collect();
    assert_eq!(read(&text), expected);
}

/// Proves that dicts in one line are each at the place that they name, that those without a place are one where no name
/// is in two of them, and that any others are left out and counted, with the values before them in the line taken all the same.
#[test]
fn dicts_in_one_line() {
    let read_all = |text: &str| {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
        reader.finish(|metrics| found.push(shown(metrics)));
        (found, reader.left_out().iter().map(|it| it.count).sum::<u64>())
    };
    for (text, expected, unread) in [
        ("[{'epoch':1,'loss':.5},{'epoch':2,'loss':.25}]", "1: epoch=1 loss=0.5|2: epoch=2 loss=0.25", 0),
        ("[{\"step\": 10, \"loss\": 0.5}, {\"step\": 20, \"loss\": 0.25}]", "10: loss=0.5|20: loss=0.25", 0),
        ("[{'test_acc/0': 0.5}, {'test_acc/1': 0.25}]", "0: test_acc/0=0.5 test_acc/1=0.25", 0),
        ("[{'loss': 0.5}, {'loss': 0.25}]", "", 2),
        ("[{'epoch': 1, 'loss': 0.5}, {'epoch': 1, 'loss': 0.25}]", "", 2),
        ("history: [{'epoch': 1, 'loss': 0.5}, {'epoch': 2, 'loss': 0.25}]", "", 2),
        ("[{'epoch': 10, 'lr': 0.5}, {'epoch': 20, 'lr': 0.25}]", "", 0),
        ("step 6: loss 0.25, groups: [{'lr': 0.1}, {'lr': 0.01}]", "6: loss=0.25", 0),
        ("epoch 6 loss 0.25 [{'loss': 0.5}, {'loss': 0.75}]", "6: loss=0.25", 2),
        ("[{'test_acc': 0.5, 'test_loss': 0.25}]", "0: test_acc=0.5 test_loss=0.25", 0),
    ] {
        let (found, count) = read_all(&format!("{text}\n"));
        assert_eq!((found.join("|"), count), (expected.to_owned(), unread), "{text}");
        let (found, _) = read_all(&format!("{text}\n").repeat(4));
        assert!(expected.is_empty() == found.is_empty(), "{text}: {found:?}");
    }
}

/// Proves that a list of one dict behind words is read as text, as a dict behind them is, and that one alone is a dict.
#[test]
fn one_dict_in_brackets() {
    for (line, expected) in [
        ("Test results: [{'test_loss': 0.5, 'test_acc': 0.25}]", "0: test_loss=0.5 test_acc=0.25"),
        ("Epoch 1: [{'loss': 0.5, 'acc': 0.25}]", "1: loss=0.5 acc=0.25"),
        ("step 10 metrics=[{'loss': 0.5}]", "10: loss=0.5"),
        ("[{'loss': 0.5, 'acc': 0.25}]", "0: acc=0.25 loss=0.5"),
    ] {
        assert_eq!(read(line), [expected], "{line}");
    }
}

/// Proves that of a history whose places were passed only what was printed there with the same value is dropped, also
/// rounded and from lines of a known form: other values are counted, and those of a name that the place lacks are at it.
#[test]
fn histories_with_other_values() {
    let read_all = |text: &str| {
        let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
        reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
        reader.finish(|metrics| found.push(shown(metrics)));
        (found, reader.left_out().iter().map(|it| it.count).sum::<u64>())
    };
    let fold = "[{'epoch': 1, 'loss': 0.5}, {'epoch': 2, 'loss': 0.25}]\n";
    let other = "[{'epoch': 1, 'loss': 0.54}, {'epoch': 2, 'loss': 0.25}]\n";
    let first = ["1: epoch=1 loss=0.5", "2: epoch=2 loss=0.25"].map(str::to_owned);
    assert_eq!(read_all(&format!("{fold}{other}{fold}")), (first.to_vec(), 1));
    let steps: String = (1..=50).map(|step| format!("step {step} loss 0.{step:02}\n")).collect();
    let text = format!(
        "{steps}step 50 val_loss 0.5\n[{{'step': 40, 'val_loss': 0.75}}, {{'step': 41, 'val_loss': 0.625}}]\n"
    );
    let (found, unread) = read_all(&text);
    assert_eq!(
        (&found[51..], unread),
        (&["40: val_loss=0.75".to_owned(), "41: val_loss=0.625".to_owned()][..], 0)
    );
    let history = |by: f64| {
        let rows = (1..=50).map(|at| format!("{{'step': {at}, 'loss': {:.5}}}", f64::from(at) / 100.0 + by));
        format!("{steps}[{}]\n", rows.collect::<Vec<_>>().join(", "))
    };
    assert_eq!((read_all(&history(0.003)).1, read_all(&history(0.1)).1), (0, 50));
    assert_eq!(read_all(&history(0.1)).0.len(), 50);
}

/// Proves that a value has the name that its object says, with the part of the data, and that an object without such
/// a name or value is read as it is.
#[test]
fn values_have_the_names_beside_them() {
    for (object, expected) in [
        (r#"{"metric": "accuracy", "value": 0.91, "split": "test"}"#, "test_accuracy"),
        (r#"{"name": "macro F1", "value": 0.91, "step": 5}"#, "macro_F1"),
        (r#"{"name": "run 7", "metric": "auc", "value": 0.91}"#, "auc"),
        (r#"{"metric": "", "value": 0.91}"#, "value"),
        (r#"{"metric": 3, "value": 0.91}"#, "metric value"),
        (r#"{"name": "loss", "loss": 0.5, "value": 0.91}"#, "loss value"),
        (r#"{"metric": "accuracy", "score": 0.91}"#, "score"),
    ] {
        let named = objects::numbers_of(objects::fields_of(object).unwrap());
        let names: Vec<&str> = named.values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{object}");
    }
}

/// Proves that values of folds and the like have the names that tables with them give, wherever a line says it, up to a
/// number; that what counts trainings names nothing, so that its values are one series; and that settings are none.
#[test]
fn values_of_folds() {
    for (line, expected) in [
        ("Fold 1 accuracy: 0.9 | val_f1: 0.8", "fold_1/accuracy=0.9 fold_1/val_f1=0.8"),
        ("Fold 2/5 - acc=0.75", "fold_2/acc=0.75"),
        ("[fold 3] acc 0.75", "fold_3/acc=0.75"),
        ("Fold: 4, acc: 0.75", "fold_4/acc=0.75"),
        ("accuracy 0.75 (fold 5)", "fold_5/accuracy=0.75"),
        ("Accuracy for fold 6: 0.75", "fold_6/accuracy=0.75"),
        ("Accuracy (fold 7): 0.75", "fold_7/accuracy=0.75"),
        ("accuracy fold 8: 0.75", "fold_8/accuracy=0.75"),
        ("Class 3 accuracy: 0.75", "class_3/accuracy=0.75"),
        ("Split 2: acc 0.75", "split_2/acc=0.75"),
        ("Seed 42: acc 0.75", "acc=0.75"),
        ("seed 42 acc: 0.75", "acc=0.75"),
        ("Trial 3: reward 0.75", "reward=0.75"),
        ("Client 99 acc: 0.75", "client_99/acc=0.75"),
        ("Client 100 acc: 0.75", "acc=0.75"),
        ("Task: 0 | Avg loss 0.75", "task_0/avg_loss=0.75"),
        ("5 folds, mean accuracy: 0.75", "mean_accuracy=0.75"),
    ] {
        let text = format!("step 5: loss 0.5\n{line}\n");
        assert_eq!(read(&text), ["5: loss=0.5".to_owned(), format!("5: {expected}")], "{line}");
    }
    let text = "Fold 1 epoch 1 loss 0.5\nFold 1 epoch 2 loss 0.25\nFold 2 epoch 1 loss 0.75\nSeed 1 epoch 2 loss 0.5\n";
    assert_eq!(
        read(text),
        ["1: fold_1/loss=0.5", "2: fold_1/loss=0.25", "1: fold_2/loss=0.75", "2: loss=0.5"]
    );
    let text: String = (1..5).map(|run| format!("Run: {run}, exploration: 0.99, score: {run}0\n")).collect();
    let found = read(&text);
    assert_eq!(found.len(), 4, "{found:?}");
    for (at, line) in found.iter().enumerate() {
        assert!(line.contains(&format!(" score={}0", at + 1)) && !line.contains('/'), "{line}");
    }
}

/// Proves that groups of digits between signs that are nothing else are one number, in text, bars, dicts and cells, that a
/// number between whose groups a point or a blank is needs a line that shows what its comma is, and is counted without one.
#[test]
fn groups_of_digits() {
    for (text, expected) in [
        (
            "step 1 loss: 1'234.5\nstep 1_000 loss 1_234.5\nstep 3 loss 1\u{202f}234,5\n",
            &["1: loss=1234.5", "1000: loss=1234.5", "3: loss=1234.5"][..],
        ),
        (
            "step 1 acc 0,5 loss 1.234,5\nstep 2 acc 0,5 loss 1 234,5\n",
            &["1: acc=0.5 loss=1234.5", "2: acc=0.5 loss=1234.5"],
        ),
        ("{'step': 1, 'loss': '1.234,5', 'f1': '1,234.5'}\n", &["1: f1=1234.5 loss=1234.5"]),
        ("{'step': 1, 'loss': '0.5', 'milestones': '100,150,200', 'ids': '1,234'}\n", &["1: loss=0.5"]),
        (
            "| epoch | loss |\n|---|---|\n| 1 | 1.234,5 |\n| 2 | 1,234.5 |\n| 3 | 1'234.5 |\n",
            &["1: loss=1234.5", "2: loss=1234.5", "3: loss=1234.5"],
        ),
        ("step 1 loss 1.234,5\nstep 2 loss=1 234,5\nstep 3 acc 0.5 loss 1.234,5\n", &["3: acc=0.5"]),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    let mut reader = PrintedReader::default();
    reader.push(
        Printed::Stdout,
        b"step 1 loss 1.234,5\nstep 2 loss=1 234,5\nstep 3 acc 0.5 loss 1.234,5\n",
        |_| {},
    );
    let unclear = |it: &LeftOut| (it.kind == LeftOutKind::UnclearCommas).then_some(it.count);
    assert_eq!(reader.left_out().iter().filter_map(unclear).sum::<u64>(), 3);
}

/// Proves that the learning rates of groups of parameters are read, as one where all are the same.
#[test]
fn learning_rates_of_groups() {
    let text = "step=10, skipped=0, lr=[9.5e-06, 9.5e-06], mom=[(0.9, 0.999), (0.9, 0.999)]\nstep 20 lr: [0.1, 0.2] loss 0.5\n";
    assert_eq!(
        read(text),
        ["10: skipped=0 learning_rate=0.0000095", "20: learning_rate_0=0.1 learning_rate_1=0.2 loss=0.5"]
    );
}
