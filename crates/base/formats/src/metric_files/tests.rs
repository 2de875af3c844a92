use trackway_core::{Rng as _, SplitMix64};

use super::*;
use crate::mutants::mutate;

/// The values of a log that is pushed in pieces of this many bytes, and its reader.
fn read(form: Form, text: &str, piece: usize) -> (Vec<Point>, LogReader) {
    let (mut reader, mut points) = (LogReader::new(form), Vec::new());
    text.as_bytes().chunks(piece).for_each(|piece| reader.push(piece, |point| points.push(point)));
    reader.finish(|point| points.push(point));
    (points, reader)
}

fn shown(points: &[Point]) -> Vec<String> {
    let value = |(name, value): &(String, f64)| format!("{name}={value}");
    let shown = |point: &Point| {
        let values: Vec<String> = point.values.iter().map(value).collect();
        format!("{}: {}", point.step, values.join(" "))
    };
    points.iter().map(shown).collect()
}

/// Proves of each format what its rows mean, however the file is cut into pieces.
#[test]
fn formats_are_read() {
    let cases: [(&str, Form, &str, Axis, &[&str]); 9] = [
        // Lightning: sparse rows.
        (
            "lightning",
            Form::Table,
            "epoch,step,train_loss,val_loss\n0,49,1.5,\n0,97,,2.5\n1,99,nan,\n",
            Axis::Steps,
            &["49: epoch=0 train_loss=1.5", "97: epoch=0 val_loss=2.5", "99: epoch=1 train_loss=NaN"],
        ),
        // Keras.
        (
            "keras",
            Form::Table,
            "epoch;accuracy;loss;val_loss\r\n0;0,5;1,25;NA\r\n1;0.75;1.0;2\r\n",
            Axis::Epochs,
            &["0: accuracy=0.5 loss=1.25", "1: accuracy=0.75 loss=1 val_loss=2"],
        ),
        // A heading that comes again, a part of the data, an index of pandas, a quoted cell.
        (
            "own",
            Form::Table,
            ",Step,split,\"total loss\",note\n0,10,train,1.5,\"a, b\"\n,Step,split,\"total loss\",note\n1,10,valid,2.5,\n",
            Axis::Steps,
            &["10: total loss=1.5", "10: val_total loss=2.5"],
        ),
        // Baselines.
        (
            "baselines",
            Form::Table,
            "time/total_timesteps,rollout/ep_rew_mean\n2048,21.5\n4096,30\n",
            Axis::Steps,
            &["2048: rollout/ep_rew_mean=21.5", "4096: rollout/ep_rew_mean=30"],
        ),
        // YOLO.
        (
            "yolo",
            Form::Table,
            "                  epoch,         train/box_loss\n                      1,                1.5\n",
            Axis::Epochs,
            &["1: train/box_loss=1.5"],
        ),
        (
            "detectron",
            Form::Lines,
            "{\"iteration\": 19, \"total_loss\": 1.5, \"eta_seconds\": 3}\n{\"iteration\": 39, \"total_loss\": NaN}\n",
            Axis::Steps,
            &["19: eta_seconds=3 total_loss=1.5", "39: total_loss=NaN"],
        ),
        // mmengine, below its configuration.
        (
            "mmengine",
            Form::Lines,
            "{\"config\": \"model\", \"seed\": 1}\n{\"loss\": 0.5, \"step\": 10}\n{\"acc\": 0.75, \"step\": 20}",
            Axis::Steps,
            &["10: loss=0.5", "20: acc=0.75"],
        ),
        ("own", Form::Lines, "{\"_step\": 7, \"loss\": 0.5}\n", Axis::Steps, &["7: loss=0.5"]),
        (
            "detr",
            Form::Lines,
            "{\"epoch\": 0, \"train_loss\": 1.5}\n{\"epoch\": 1, \"train_loss\": 1.25}\n",
            Axis::Epochs,
            &["0: epoch=0 train_loss=1.5", "1: epoch=1 train_loss=1.25"],
        ),
    ];
    for (what, form, text, axis, expected) in cases {
        for piece in [1, 7, text.len()] {
            let (points, reader) = read(form, text, piece);
            assert_eq!(shown(&points), expected, "{what}, {piece}");
            assert_eq!((reader.axis(), reader.left_out()), (Some(axis), LeftOut::default()), "{what}");
        }
    }
}

/// Proves that tables of data and documents are none of these, and that nothing is read of them.
#[test]
fn data_is_no_log() {
    for (form, text) in [
        (Form::Table, "id,label\n1,2\n"),
        (Form::Table, "loss,accuracy\n1,2\n"),
        (Form::Table, "step,name\n1,2\n"),
        (Form::Table, "1,2\n3,4\n"),
        (Form::Table, "#{\"t_start\": 1.5}\nr,l,t\n1,2,3\n"),
        (Form::Lines, "{\n  \"step\": 1, \"loss\": 2}\n"),
        (Form::Lines, "[{\"step\": 1, \"loss\": 2}]\n"),
        (Form::Lines, "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3}\n{\"step\": 1, \"loss\": 2}\n"),
        (Form::Lines, "{\"step\": 1, \"text\": \"a\"}\n{}\n{}\n"),
    ] {
        let (points, reader) = read(form, text, 5);
        assert!(points.is_empty() && reader.is_other() && reader.axis().is_none(), "{text}");
    }
}

/// Proves that what cannot be read is counted, and that the cut last line of a table is not taken for a number.
#[test]
fn what_is_left_out_is_counted() {
    let long = "x".repeat(70_000);
    let (points, reader) = read(Form::Table, &format!("step,loss\n1,2\n{long}\n3\n4,x\n,5\n6,0.12"), 4096);
    assert_eq!(shown(&points), ["1: loss=2"]);
    assert_eq!(reader.left_out(), LeftOut { unreadable: 2, too_long: 1, is_cut: true });
    let (points, reader) = read(
        Form::Lines,
        "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"lo{\"step\": 3}\n{\"step\": 4, \"lo",
        9,
    );
    assert_eq!(shown(&points), ["1: loss=2"]);
    assert_eq!(reader.left_out(), LeftOut { unreadable: 1, too_long: 0, is_cut: true });
}

/// Proves by names and folders what a file may be.
#[test]
fn names_say_what_a_file_may_be() {
    for (path, form, is_place) in [
        ("lightning_logs/version_0/metrics.csv", Some(Form::Table), true),
        ("work/vis_data/scalars.json", Some(Form::Lines), true),
        ("out/checkpoint-5/trainer_state.json", Some(Form::State), false),
        ("a/.hydra/config.yaml", Some(Form::Config), false),
        ("a/.hydra/hydra.yaml", None, false),
        ("a/config.yaml", None, false),
        ("out/log.txt", Some(Form::Lines), true),
        ("training.log", Some(Form::Table), true),
        ("server.log", Some(Form::Table), false),
        ("data.csv", Some(Form::Table), false),
        ("progress.csv", Some(Form::Table), true),
        ("20230101_120000.log.json", Some(Form::Lines), false),
        (".hidden.json", None, false),
        ("train.py", None, false),
    ] {
        let mut way: Vec<String> = path.split('/').map(str::to_owned).collect();
        let name = way.pop().unwrap();
        assert_eq!((Form::of(&way, &name), is_place_of_logs(&way, &name)), (form, is_place), "{path}");
        if form == Some(Form::State) {
            assert_eq!(folder_of_values(&way, Form::State), ["out"]);
        }
    }
}

fn point(step: i64, values: &[(&str, f64)]) -> Point {
    Point { step, values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect() }
}

/// Proves that a log which is read again gives each value once: with another column, without its first rows, and with
/// another training as a whole.
#[test]
fn a_log_that_comes_again_gives_what_is_new() {
    let old = [point(1, &[("loss", 3.0)]), point(2, &[("loss", 2.0)]), point(1, &[("loss", 2.5)])];
    let wider = [
        point(1, &[("loss", 3.0), ("acc", 0.5)]),
        point(2, &[("loss", 2.0)]),
        point(1, &[("loss", 2.5)]),
        point(1, &[("loss", 2.0)]),
    ];
    let shorter = [point(2, &[("loss", 2.0)]), point(3, &[("loss", 1.0)])];
    let other = [point(1, &[("loss", 9.0)]), point(2, &[("loss", 8.0)])];
    for (again, expected) in [
        (&wider[..], &["1: acc=0.5", "1: loss=2"][..]),
        (&shorter[..], &["3: loss=1"]),
        (&other[..], &["1: loss=9", "2: loss=8"]),
        (&old[..], &[]),
    ] {
        let mut replay = Replay::default();
        assert!(old.iter().all(|point| replay.take(point.clone()).as_ref() == Some(point)));
        replay.begin_again();
        let new: Vec<Point> = again.iter().filter_map(|point| replay.take(point.clone())).collect();
        assert_eq!(shown(&new), expected);
    }
    let mut replay = Replay::default();
    (0..1100).for_each(|number| drop(replay.take(point(1, &[(&format!("loss_{number}"), 1.0)]))));
    assert_eq!(replay.beyond(), 1100 - 1024);
}

/// Proves row by row when a log is read: where loggers write at once, elsewhere once it grows, never one whose steps
/// fall or that has very much at once; and one of epochs only where the script said less of the same.
#[test]
fn a_log_is_judged_by_how_it_grows() {
    let known = LogFacts { is_last: false, axis: Axis::Steps, printed: 0, is_recorded: false };
    let epochs = LogFacts { axis: Axis::Epochs, ..known };
    let last = |facts: LogFacts| LogFacts { is_last: true, ..facts };
    let (of_logs, elsewhere) = (true, false);
    let cases: [(&[&[i64]], bool, LogFacts, &str); 14] = [
        (&[&[]], of_logs, known, "wait"),
        (&[&[1]], of_logs, known, "read"),
        (&[&[1, 1, 2]], of_logs, LogFacts { printed: 99, is_recorded: true, ..known }, "read"),
        (&[&[2, 1]], of_logs, known, "not"),
        (&[&[1, 2]], elsewhere, known, "wait"),
        (&[&[1, 2], &[]], elsewhere, last(known), "not"),
        (&[&[1], &[2]], elsewhere, known, "read"),
        (&[&[1], &[0]], elsewhere, known, "not"),
        (&[&[0]], of_logs, epochs, "wait"),
        (&[&[0]], of_logs, last(epochs), "read"),
        (&[&[0, 1]], of_logs, epochs, "read"),
        (&[&[0, 1, 2]], of_logs, LogFacts { printed: 2, ..epochs }, "wait"),
        (&[&[0, 1, 2, 3]], of_logs, LogFacts { printed: 2, ..epochs }, "read"),
        (&[&[0, 1]], of_logs, last(LogFacts { is_recorded: true, ..epochs }), "wait"),
    ];
    for (number, (looks, is_place, facts, expected)) in cases.into_iter().enumerate() {
        let mut judge = Judge::new(is_place);
        for look in looks {
            look.iter().for_each(|step| judge.take(point(*step, &[("loss", 1.0)])));
            judge.end_look();
        }
        let verdict = match judge.verdict(facts) {
            Verdict::Read => "read",
            Verdict::Wait => "wait",
            Verdict::Not(_) => "not",
        };
        assert_eq!(verdict, expected, "case {number}");
    }
    // What comes at once and is much does not wait for a second look.
    let mut judge = Judge::new(elsewhere);
    let pair = [("loss", 1.0), ("reward", 0.5)];
    (0..300_000).for_each(|step| judge.take(point(step, &pair)));
    judge.end_look();
    assert!(matches!(judge.verdict(known), Verdict::Not(_)) && judge.into_rows().is_empty());
}

/// Proves that a state gives the entries that no earlier one has, of the one that it continues, and all of another training.
#[test]
fn states_of_trainers() {
    let text = |entries: &str| {
        format!("{{\"best_metric\": null, \"log_history\": [{entries}], \"global_step\": 4}}")
    };
    let entry = |step: u32, loss: &str| format!("{{\"epoch\": 0.5, \"loss\": {loss}, \"step\": {step}}}");
    let entries = |steps: &[(u32, &str)]| {
        let all: Vec<String> = steps.iter().map(|(step, loss)| entry(*step, loss)).collect();
        read_state(&text(&all.join(", "))).unwrap()
    };
    assert_eq!(shown(&entries(&[(2, "NaN")])), ["2: epoch=0.5 loss=NaN"]);
    assert!(read_state("{\"log_history\": [{").is_none() && read_state("{\"steps\": []}").is_none());
    let mut history = StateHistory::default();
    history.was_there(&entries(&[(2, "3.0")]));
    history.was_there(&entries(&[(2, "3.0"), (4, "2.0"), (6, "1.0")]));
    let now = entries(&[(2, "3.0"), (4, "2.5")]);
    assert_eq!(shown(history.new_of(&now)), ["4: epoch=0.5 loss=2.5"]);
    history.take(&now);
    assert!(history.new_of(&now).is_empty() && history.new_of(&now[..1]).is_empty());
    let later = entries(&[(2, "3.0"), (4, "2.5"), (6, "2.0")]);
    assert_eq!(shown(history.new_of(&later)), ["6: epoch=0.5 loss=2"]);
    assert_eq!(history.new_of(&entries(&[(2, "9.0"), (4, "8.0"), (6, "7.0")])).len(), 3);
}

/// Proves what of a configuration are parameters: sections, lists in both styles and quotes; objects and texts in
/// several lines are counted.
#[test]
fn configurations_are_flattened() {
    let config = "# made by a program\nlr: 0.001\nmodel:\n  _target_: nets.Resnet\n  layers:\n  - 64\n  - 32\n  pool: {}\nname: 'a b'\ntags: [a, b]\n\
                  path: !!python/object/apply:pathlib.PosixPath\n- data\ntext: |\n  one\n  two\ncallbacks:\n- _target_: x\n  every: 5\nseed: null\n";
    let settings = read_settings(config);
    let named: Vec<String> = settings.named.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "lr=0.001",
        "model._target_=nets.Resnet",
        "model.layers=64 32",
        "model.pool={}",
        "name=a b",
        "tags=[a, b]",
        "seed=null",
    ];
    assert_eq!(named, expected);
    assert_eq!(settings.left_out, 7);
    let overrides = read_overrides("- model.depth=3\n- +note=x=y\n- ~gone\n");
    let named =
        [("model.depth", "3"), ("note", "x=y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(overrides, Settings { named: named.to_vec(), left_out: 1 });
    let many: String = (0..300).map(|number| format!("a{number}: {}\n", "é".repeat(300))).collect();
    let settings = read_settings(&many);
    assert_eq!((settings.named.len(), settings.left_out), (256, 44));
    assert!(settings.named.iter().all(|(_, value)| value.len() <= 256));
}

/// How many mutants are read by default; `TRACKWAY_FUZZ_MUTANTS` sets another number.
const USUAL_MUTANTS: u64 = 5_000;
/// Signs that have a meaning in files of metrics.
const SIGNS: &[u8] = b"\"\n,;:{}[]-0e";

/// What a log says that is pushed in pieces of this many bytes, value by value, and what was left out of it.
fn said(form: Form, bytes: &[u8], piece: usize) -> (Vec<(i64, String, u64)>, LeftOut) {
    let (mut reader, mut found) = (LogReader::new(form), Vec::new());
    let mut take = |point: Point| {
        let step = point.step;
        found.extend(point.values.into_iter().map(|(name, value)| (step, name, value.to_bits())));
    };
    bytes.chunks(piece).for_each(|piece| reader.push(piece, &mut take));
    reader.finish(&mut take);
    (found, reader.left_out())
}

/// Proves that damaged files of every form are read without a panic, in pieces as at once, and that no more is read than is there.
#[test]
fn mutants_are_read() {
    let given = std::env::var("TRACKWAY_FUZZ_MUTANTS").ok().and_then(|count| count.parse().ok());
    let mutants: u64 = given.unwrap_or(USUAL_MUTANTS);
    let texts = [
        "epoch,step,\"train loss\",split\n0,1,2.5,train\n\"3\",4,1e-3,val\n3,5,nan,val\n",
        "epoch;accuracy;loss\r\n0;0,5;1,25\r\n1;0.75;1.0\r\n",
        "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": NaN, \"in\": {\"acc\": 0.5}}\n",
        "{\"log_history\": [{\"step\": 1, \"loss\": 2}, {\"step\": 2, \"eval_loss\": 1e400}]}",
        "a:\n  b: 1\n  c:\n  - 2\n- x: [1, 'two']\nd: |\n  e\n",
    ];
    for seed in 0..mutants {
        let mut random = SplitMix64::new(seed);
        let bytes = mutate(texts[seed as usize % texts.len()].as_bytes(), SIGNS, &mut random);
        for form in [Form::Table, Form::Lines] {
            let whole = said(form, &bytes, bytes.len().max(1));
            assert_eq!(whole, said(form, &bytes, 1 + random.next_u64() as usize % 16), "mutant {seed}");
            assert!(whole.0.len() <= bytes.len(), "mutant {seed}");
        }
        let text = String::from_utf8_lossy(&bytes);
        let counts = [read_settings(&text).named.len(), read_overrides(&text).named.len()];
        let entries = read_state(&text).map_or(0, |entries| entries.len());
        assert!(counts.into_iter().all(|count| count <= 256) && entries <= text.len(), "mutant {seed}");
    }
}
