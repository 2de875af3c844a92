//! Objects over several lines, objects in objects, and histories.

use super::*;

/// What a text gives, however many bytes come together.
fn read_in_pieces(text: &str) -> Vec<String> {
    let whole = read(text);
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    for piece in text.as_bytes().chunks(7) {
        reader.push(Printed::Stdout, piece, |metrics| found.push(shown(metrics)));
    }
    reader.finish(|metrics| found.push(shown(metrics)));
    assert_eq!(found, whole, "{text}");
    whole
}

fn left_out(text: &str) -> Vec<(LeftOutKind, u64, Option<u64>)> {
    let mut reader = PrintedReader::default();
    reader.push(Printed::Stdout, text.as_bytes(), |_| {});
    reader.finish(|_| {});
    reader.left_out().iter().map(|it| (it.kind, it.count, it.line)).collect()
}

/// Proves that objects and dicts over several lines are read as those in one, as `json.dumps` and `pprint` print them:
/// alone, behind a text, in a list, with brackets in texts, and again and again.
#[test]
fn objects_over_several_lines() {
    for (text, expected) in [
        ("{\n  \"epoch\": 3,\n  \"loss\": 0.2,\n  \"note\": \"a } b\"\n}\n", &["3: epoch=3 loss=0.2"][..]),
        ("{\n\"step\": 3,\n\"loss\": 0.2\n}\n", &["3: loss=0.2"]),
        (
            "{'epoch': 3,\n 'loss': 0.2,\n 'val': {'acc': 0.5,\n         'f1': 0.25}}\n",
            &["3: epoch=3 loss=0.2 val/acc=0.5 val/f1=0.25"],
        ),
        ("OrderedDict([('acc', 0.5),\n             ('f1', 0.25)])\n", &["0: acc=0.5 f1=0.25"]),
        (
            "step 5 loss 0.5\nResults: {\n  \"acc\": 0.75,\n  \"ids\": [\n    1,\n    2\n  ]\n}\nstep 6 loss 0.25\n",
            &["5: loss=0.5", "5: acc=0.75", "6: loss=0.25"],
        ),
        (
            "2026-01-02 10:02:03,123 - INFO - val: {'acc': 0.75,\n 'f1': 0.5}\n",
            &["0: val_acc=0.75 val_f1=0.5"],
        ),
        (
            "[\n  {\n    \"epoch\": 1,\n    \"loss\": 0.5\n  },\n  {\n    \"epoch\": 2,\n    \"loss\": 0.25\n  }\n]\n",
            &["1: epoch=1 loss=0.5", "2: epoch=2 loss=0.25"],
        ),
        (
            "[{'epoch': 1,\n  'loss': 0.5},\n {'epoch': 2,\n  'loss': 0.25}]\n",
            &["1: epoch=1 loss=0.5", "2: epoch=2 loss=0.25"],
        ),
        ("=== Test ===\n{'acc': 0.5,\n 'f1': 0.25}\n", &["0: test_acc=0.5 test_f1=0.25"]),
    ] {
        assert_eq!(read_in_pieces(text), expected, "{text}");
        assert_eq!(left_out(text), [], "{text}");
    }
    assert_eq!(
        read_in_pieces("[\n{\"step\": 1, \"loss\": 0.5},\n{\"step\": 2, \"loss\": 0.25}\n]\n"),
        ["1: loss=0.5", "2: loss=0.25"]
    );
    let epoch = |epoch: u64| format!("{{\n  \"epoch\": {epoch},\n  \"loss\": 0.{epoch}\n}}\n");
    let many: String = (1..10).map(epoch).collect();
    assert_eq!(read_in_pieces(&many).len(), 9);
}

/// Proves that lines which only look as if an object began are read by themselves: one that does not end, one with other
/// lines in between, a configuration, and code.
#[test]
fn lines_of_no_object() {
    for (text, expected) in [
        ("{\nstep 5 loss 0.5\n", &["5: loss=0.5"][..]),
        ("def f() {\n  step 5 loss 0.5\n\n}\n", &["5: loss=0.5"]),
        ("values {1,\nstep 5 loss 0.5\n", &["5: loss=0.5"]),
        (
            "Model config {\n  \"hidden_size\": 768,\n  \"dropout\": 0.1\n}\nstep 5 loss 0.5\n",
            &["5: loss=0.5"],
        ),
        ("{'lr': 0.1,\n 'model': {'depth': 3}}\nstep 5 loss 0.5\n", &["5: loss=0.5"]),
        ("step 5 loss 0.5,\nstep 6 loss 0.25,\n", &["5: loss=0.5", "6: loss=0.25"]),
        ("step 5 loss 0.5\n{\n  \"acc\": 0.75,\n", &["5: loss=0.5"]),
        (
            "fit(x) {\n  Epoch 1: loss=0.5\n  Epoch 2: loss=0.4\n  Epoch 3: loss=0.3\n}\n",
            &["1: loss=0.5", "2: loss=0.4", "3: loss=0.3"],
        ),
        ("[\n  step 1 loss 0.5\n  step 2 loss 0.4\n]\n", &["1: loss=0.5", "2: loss=0.4"]),
        (
            "epoch 1: {'loss': 0.5,\n  step 3 acc 0.4\n  step 4 acc 0.3\n}\n",
            &["1: loss=0.5", "3: acc=0.4", "4: acc=0.3"],
        ),
    ] {
        assert_eq!(read_in_pieces(text), expected, "{text}");
    }
}

/// Proves that a configuration over several lines does not move the training, whatever names of places and measures are
/// among its settings.
#[test]
fn configurations_with_places_and_measures() {
    let epochs = "Epoch 1 loss 0.5\nEpoch 2 loss 0.4\n";
    for config in [
        "{'lr': 0.1,\n 'step': 30,\n 'batch_size': 32}\n",
        "{'batch_size': 32,\n 'epoch': 10,\n 'lr': 0.1}\n",
        "args: {'batch_size': 32,\n 'epoch': 10,\n 'lr': 0.1}\n",
    ] {
        assert_eq!(read_in_pieces(&format!("{config}{epochs}")), ["1: loss=0.5", "2: loss=0.4"], "{config}");
    }
    let config = "{'batch_size': 32,\n 'epochs': 10,\n 'lr': 0.1,\n 'min_loss': 0.1,\n 'seed': 7}\n";
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    let text = format!("{config}{epochs}");
    reader.push(Printed::Stdout, text.as_bytes(), |metrics| found.push(shown(metrics)));
    // The line with the name of a measure is read by itself.
    assert_eq!(found, ["0: min_loss=0.1", "1: loss=0.5", "2: loss=0.4"]);
    assert_eq!(reader.take_settings(), [("learning_rate".to_owned(), "0.1".to_owned())]);
    let nested =
        "{\n  \"optim\": {\n    \"lr\": 0.1\n  },\n  \"early_stopping\": {\n    \"val_loss\": 0.01\n  }\n}\n";
    let found = read_in_pieces(&format!("{nested}{epochs}"));
    assert!(
        !found.iter().any(|found| found.contains("lr=") || found.contains("learning_rate=")),
        "{found:?}"
    );
    let results = "{'lr': 0.1,\n 'val_loss': 0.25}\n";
    assert_eq!(read_in_pieces(&format!("{epochs}{results}"))[2..], ["2: lr=0.1 val_loss=0.25"]);
}

/// Proves that an object is read whose first line has the form of one that said nothing, however many lines come together.
#[test]
fn objects_behind_quiet_lines() {
    let results = |at: u64, fields: &str| format!("Results {at}: {{\n{fields}\n}}\nstep {at} loss 0.5\n");
    for (first, second) in
        [("  \"samples\": 50", "  \"acc\": 0.5,\n  \"f1\": 0.25"), ("  \"n\": 5", "  \"acc\": 0.5")]
    {
        let (firsts, seconds) =
            ((10..14).map(|at| results(at, first)), (14..17).map(|at| results(at, second)));
        let text: String = firsts.chain(seconds).collect();
        let found = read_in_pieces(&text);
        assert_eq!(found.iter().filter(|found| found.contains("acc=0.5")).count(), 3, "{text} {found:?}");
    }
}

/// Proves that lines which end with a carriage return and a newline are put together as well.
#[test]
fn objects_with_carriage_returns() {
    let text = "{\r\n  \"epoch\": 3,\r\n  \"loss\": 0.2\r\n}\r\nstep 6 loss 0.25\r\n";
    assert_eq!(read_in_pieces(text), ["3: epoch=3 loss=0.2", "6: loss=0.25"]);
}

/// Proves that an object over too many lines is counted with its first one if it has a measure, that what is behind it is
/// read, and that one which only fits is read.
#[test]
fn objects_over_too_many_lines() {
    let object = |lines: usize| {
        let fields: String = (0..lines - 3).map(|at| format!("  \"m{at}\": 0.5,\n")).collect();
        format!("step 5 loss 0.5\n{{\n{fields}  \"loss\": 0.25\n}}\nstep 6 loss 0.125\n")
    };
    assert_eq!(read(&object(201)), ["5: loss=0.5", "6: loss=0.125"]);
    assert_eq!(left_out(&object(201)), [(LeftOutKind::LongLines, 1, Some(2))]);
    assert_eq!(left_out(&object(200)), []);
    let found_so = object(201).replace("  \"loss\": 0.25", "  epoch 7 loss: 0.25,");
    assert_eq!(left_out(&found_so), []);
    assert_eq!(read(&object(200)).len(), 3);
}

/// Proves that values of objects in objects have all names, six at most, and that deeper ones are counted; of what
/// Loguru writes about a line none is one.
#[test]
fn objects_in_objects() {
    for (text, expected) in [
        (
            "{\"step\": 1, \"val\": {\"loss\": {\"mean\": 0.5, \"std\": 0.25}}}\n",
            "1: val/loss/mean=0.5 val/loss/std=0.25",
        ),
        (
            "{'epoch': 1, 'eval': {'acc': 0.5, 'per_class': {'cat': 0.75}}}\n",
            "1: epoch=1 eval/acc=0.5 eval/per_class/cat=0.75",
        ),
        ("{\"step\": 1, \"a\": {\"b\": {\"c\": {\"d\": {\"e\": {\"f\": 1.5}}}}}}\n", "1: a/b/c/d/e/f=1.5"),
        (
            "{\"step\": 1, \"loss\": 0.5, \"record\": {\"elapsed\": {\"seconds\": 1.5}, \"process\": {\"id\": 55}}}\n",
            "1: loss=0.5",
        ),
    ] {
        assert_eq!(read(text), [expected], "{text}");
        assert_eq!(left_out(text), [], "{text}");
    }
    let deep =
        "{'step': 1, 'loss': 0.5, 'a': {'b': {'c': {'d': {'e': {'f': {'g': 1.5, 'h': {'i': 2.5}}}}}}}}\n";
    assert_eq!(read(deep), ["1: loss=0.5"]);
    assert_eq!(left_out(deep), [(LeftOutKind::SurplusValues, 2, Some(1))]);
}

/// Proves that a history at the end of a training whose epochs were printed already gives no second value of any of them
/// and does not move the training back, that further values of it are at their epochs, and that where epochs are no steps
/// such rows are counted.
#[test]
fn histories_of_what_was_printed() {
    let epochs = "epoch 1 loss 0.5 lr 0.1\nepoch 2 loss 0.25 lr 0.1\n";
    let printed = ["1: loss=0.5 learning_rate=0.1", "2: loss=0.25 learning_rate=0.1"];
    let history = "[{'epoch': 1, 'loss': 0.5, 'lr': 0.1}, {'epoch': 2, 'loss': 0.25, 'lr': 0.1}]\n";
    let found = read(&format!("{epochs}{history}final acc: 0.75\n"));
    assert_eq!(found, [&printed[..], &["2: acc=0.75"]].concat());
    let further = "[{'epoch': 1, 'loss': 0.5, 'f1': 0.5}, {'epoch': 2, 'loss': 0.25, 'f1': 0.75}]\n";
    let found = read(&format!("{epochs}{further}final acc: 0.75\n"));
    assert_eq!(found, [&printed[..], &["1: f1=0.5", "2: f1=0.75", "2: acc=0.75"]].concat());
    let steps = "step 10 loss 0.5\nstep 20 loss 0.25\n";
    assert_eq!(read(&format!("{steps}{further}")), ["10: loss=0.5", "20: loss=0.25"]);
    assert_eq!(left_out(&format!("{steps}{further}")), [(LeftOutKind::UnreadRows, 2, Some(3))]);
    let of_steps = "[{'step': 10, 'loss': 0.5}, {'step': 20, 'loss': 0.25}, {'step': 30, 'loss': 0.125}]\n";
    assert_eq!(read(&format!("{steps}{of_steps}")), ["10: loss=0.5", "20: loss=0.25", "30: loss=0.125"]);
    assert_eq!(read(history), ["1: epoch=1 loss=0.5 lr=0.1", "2: epoch=2 loss=0.25 lr=0.1"]);
    assert_eq!(left_out(&format!("{epochs}{history}")), []);
}

/// Proves that a list of one dict is read as the dict, as the results of a test are returned.
#[test]
fn lists_of_one_dict() {
    assert_eq!(read("step 5 loss 0.5\n[{'test_acc': 0.75}]\n"), ["5: loss=0.5", "5: test_acc=0.75"]);
    assert_eq!(read("step 5 loss 0.5, groups: [{'lr': 0.1}]\n"), ["5: loss=0.5 learning_rate=0.1"]);
}
