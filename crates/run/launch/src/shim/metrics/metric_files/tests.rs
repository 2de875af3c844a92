use std::io::Write as _;

use trackway_core::ManualClock;
use trackway_formats::EventKind;
use trackway_formats::record::{Frame, read_segment};

use super::*;

/// What was recorded: values with their steps, settings, and what is said to be left out.
#[derive(Debug, Default)]
struct Recorded {
    values: Vec<(String, i64, f64)>,
    settings: Vec<(String, String)>,
    skipped: Vec<String>,
    read: Vec<String>,
}

impl Recorded {
    fn of(&self, name: &str) -> Vec<(i64, f64)> {
        let of = self.values.iter().filter(|(known, ..)| known == name);
        of.map(|(_, step, value)| (*step, *value)).collect()
    }
}

/// What the script does before a look.
enum Does<'t> {
    /// Writes a file from its beginning.
    Writes(&'t str, &'t str),
    /// Adds to a file.
    Adds(&'t str, &'t str),
}
use Does::{Adds, Writes};

struct Place {
    root: tempfile::TempDir,
    folder: tempfile::TempDir,
    printed: PrintedCounts,
}

impl Place {
    fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        Self { root: folder(), folder: folder(), printed: PrintedCounts::default() }
    }

    fn follower(&self, proof: Proof) -> Follower {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
        let (run_id, attempt_id) = ("run".to_owned(), "attempt".to_owned());
        let records = Records { folder: self.folder.path().to_owned(), run_id, attempt_id, clock };
        let root = self.root.path().to_owned();
        let home = root.join("home");
        let since = (Timestamp::from_micros(0), proof);
        let mut there = WhatWasThere::default();
        there.note(&root, &home);
        Follower::new((root, home), there, since, self.printed.clone(), records)
    }

    fn does(&self, done: &[Does<'_>]) {
        for one in done {
            let (path, text, is_added) = match one {
                Writes(path, text) => (path, text, false),
                Adds(path, text) => (path, text, true),
            };
            let path = self.root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut options = std::fs::File::options();
            options.create(true).write(true).append(is_added).truncate(!is_added);
            options.open(path).unwrap().write_all(text.as_bytes()).unwrap();
        }
    }

    fn recorded(&self) -> Recorded {
        let mut recorded = Recorded::default();
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let segment = read_segment(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            let points = segment.metric_points_of_any_step();
            recorded.values.extend(points.map(|point| (point.name.to_string(), point.step, point.value)));
            for located in &segment.frames {
                match &located.frame {
                    Frame::Param(param) => recorded.settings.push((param.name.clone(), param.value.clone())),
                    Frame::Event(event) if EventKind::EventFileSkipped.is(&event.kind) => {
                        let [path, why] = ["path", "why"].map(|field| event.field(field).unwrap_or_default());
                        recorded.skipped.push(format!("{path}: {why}"));
                    }
                    Frame::Event(event) if EventKind::MetricFileRead.is(&event.kind) => {
                        let field = |name| event.field(name).unwrap_or_default();
                        recorded.read.push(format!("{} {}", field("path"), field("form")));
                    }
                    _ => {}
                }
            }
        }
        recorded
    }

    /// What is recorded of a script that does this before the looks; the last one is when it has ended.
    fn after(&self, looks: &[&[Does<'_>]]) -> Recorded {
        let mut follower = self.follower(Proof::Place);
        for (number, look) in looks.iter().enumerate() {
            self.does(look);
            follower.look(number + 1 == looks.len());
        }
        follower.end();
        self.recorded()
    }
}

const HEADING: &str = "epoch,step,train_loss,val_loss\n";

/// Proves that a log is read as it grows, by halves of lines too; that one that is rewritten with another column gives
/// each value once; that its settings are read; and that a row which a kill cut is left out and named.
#[test]
fn a_log_of_lightning_is_read_as_it_grows() {
    let (log, settings) = ("lightning_logs/version_0/metrics.csv", "lightning_logs/version_0/hparams.yaml");
    let wider =
        "epoch,step,train_loss,val_loss,lr\n0,49,1.5,,\n0,99,1.25,,\n0,99,,2.5,\n1,149,1.0,,0.1\n1,199,0.7";
    let recorded = Place::new().after(&[
        &[
            Writes(settings, "batch_size: 32\noptimizer:\n  name: adam\n"),
            Writes(log, &format!("{HEADING}0,49,1.5,\n0,9")),
        ],
        &[Adds(log, "9,1.25,\n0,99,,2.5\n")],
        &[Writes(log, wider)],
    ]);
    assert_eq!(recorded.of("train_loss"), [(49, 1.5), (99, 1.25), (149, 1.0)]);
    assert_eq!((recorded.of("val_loss"), recorded.of("lr")), (vec![(99, 2.5)], vec![(149, 0.1)]));
    let settings =
        [("batch_size".to_owned(), "32".to_owned()), ("optimizer.name".to_owned(), "adam".to_owned())];
    assert_eq!(recorded.settings, settings);
    assert_eq!(recorded.skipped, [format!("{log}: its last line has no end and is left out")]);
    assert!(recorded.read.contains(&format!("{log} table")), "{recorded:?}");
}

/// Proves that of a log which an earlier attempt began only what is added is read, and that one which is rewritten is
/// read as a whole, also with the same rows.
#[test]
fn what_was_there_before_is_not_read_again() {
    for (done, expected) in [
        (Adds("log.csv", "2,0.5\n3,0.25\n"), vec![(2, 0.5), (3, 0.25)]),
        (Writes("log.csv", "epoch,loss\n0,3.0\n"), vec![(0, 3.0)]),
        (Writes("log.csv", "epoch,loss\n0,1.0\n1,0.75\n"), vec![(0, 1.0), (1, 0.75)]),
    ] {
        let place = Place::new();
        place.does(&[Writes("log.csv", "epoch,loss\n0,1.0\n1,0.75\n")]);
        assert_eq!(place.after(&[&[done]]).of("loss"), expected);
    }
}

/// Proves that a log of epochs is left to what the script prints of the same names, and read where it prints less; and
/// that of a log of steps only the names are left that are printed far more often, but not those whose values a bar
/// repeats.
#[test]
fn what_is_printed_is_not_doubled() {
    let rows = "epoch;loss\n0;1,5\n1;1,25\n2;1,0\n";
    let silent = Place::new();
    assert_eq!(silent.after(&[&[Writes("logs/fit.csv", rows)]]).of("loss"), [(0, 1.5), (1, 1.25), (2, 1.0)]);
    let printing = Place::new();
    (0..30).for_each(|_| printing.printed.add_record(1, &[("loss", 1.0)]));
    assert_eq!(printing.after(&[&[Writes("logs/fit.csv", rows)]]).of("loss"), []);
    let once = Place::new();
    once.printed.add_record(1, &[("loss", 2.0)]);
    assert_eq!(once.after(&[&[Writes("logs/fit.csv", rows)]]).of("loss").len(), 3);
    let bar = Place::new();
    (0..30).for_each(|at| bar.printed.add_record(1, &[("loss", f64::from(at)), ("val_loss", 1.0)]));
    let recorded = bar.after(&[&[Writes("metrics.csv", "step,loss,val_loss\n50,1,\n100,2,\n100,,3\n")]]);
    assert_eq!((recorded.of("loss"), recorded.of("val_loss")), (vec![], vec![(100, 3.0)]));
}

/// Proves that a state which continues another one gives what is new, that older states give nothing more, and that a
/// state which is cut is named.
#[test]
fn states_continue_one_another() {
    let state = |steps: std::ops::Range<u32>| {
        let entries: Vec<String> =
            steps.map(|step| format!("{{\"epoch\": 0.5, \"loss\": {step}.5, \"step\": {step}}}")).collect();
        format!("{{\"global_step\": 1, \"log_history\": [{}]}}", entries.join(", "))
    };
    let at = |step: u32| format!("out/checkpoint-{step}/trainer_state.json");
    let place = Place::new();
    place.does(&[Writes(&at(4), &state(1..5))]);
    let recorded = place.after(&[
        &[Writes(&at(6), &state(1..7))],
        &[Writes(&at(8), &state(1..9)), Writes("out/trainer_state.json", &state(1..10))],
        &[Writes("other/trainer_state.json", "{\"log_history\": [")],
    ]);
    let steps: Vec<i64> = recorded.of("loss").iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [5, 6, 7, 8, 9]);
    assert_eq!(recorded.skipped, ["other/trainer_state.json: its `log_history` cannot be read"]);
}

/// Proves that what is printed behind the last entry of a state is recorded at the step of that entry, unless two trainings wrote states.
#[test]
fn what_is_printed_behind_a_state_is_kept() {
    let state = "{\"log_history\": [{\"epoch\": 1.5, \"loss\": 2.5, \"step\": 5}, {\"epoch\": 3.0, \"loss\": 1.5, \"step\": 10}]}";
    for (states, expected) in [
        (&["out/trainer_state.json"][..], vec![(10, 9.0)]),
        (&["a/trainer_state.json", "b/trainer_state.json"], vec![]),
    ] {
        let place = Place::new();
        place.printed.add_record(2, &[("epoch", 3.0), ("loss", 1.5)]);
        place.printed.add_record(2, &[("epoch", 3.0), ("eval_loss", 9.0)]);
        let writes: Vec<Does<'_>> = states.iter().map(|path| Writes(path, state)).collect();
        let recorded = place.after(&[&writes]);
        assert_eq!((recorded.of("eval_loss"), recorded.of("loss")), (expected, vec![(5, 2.5), (10, 1.5)]));
    }
}

/// Proves that a table with the ending `.log`, as Keras writes it, is read by its heading, and that a text is none and is not named.
#[test]
fn a_table_may_end_with_log() {
    let recorded = Place::new().after(&[&[
        Writes("fit.log", "epoch,accuracy,loss\n0,0.5,1.5\n1,0.75,1.25\n"),
        Writes("training.log", "INFO epoch 1, loss 0.5\nINFO epoch 2, loss 0.25\n"),
    ]]);
    assert_eq!(recorded.of("loss"), [(0, 1.5), (1, 1.25)]);
    assert_eq!(recorded.skipped, [] as [String; 0]);
}

/// Proves that a table of data that the script writes is none of metrics, that one which grows is, and that what is not
/// the attempt's own, is in Trackway's home or names a secret is not read.
#[test]
fn only_logs_of_the_attempt_are_read() {
    let data = "step,reward\n0,1\n1,2\n";
    let recorded = Place::new().after(&[
        &[
            Writes("data.csv", data),
            Writes("rows.csv", "id,label\n1,2\n"),
            Writes("episodes.csv", "step,reward\n0,1\n"),
            Writes("grows.csv", "step,reward\n0,1\n"),
            Writes("home/metrics.csv", "step,loss\n1,2\n"),
            Writes("metrics.csv", "step,loss,ghp_012345678901234567890123456789abcdef\n1,2,3\n"),
        ],
        &[Adds("episodes.csv", "1,2\n0,5\n"), Adds("grows.csv", "1,2\n")],
        &[],
    ]);
    assert_eq!(recorded.of("reward"), [(0, 1.0), (1, 2.0)]);
    assert_eq!((recorded.of("loss"), recorded.values.len()), (vec![(1, 2.0)], 3));
    let left_out = |name: &str| recorded.skipped.iter().filter(|why| why.starts_with(name)).count();
    let counts = ["data.csv", "episodes.csv", "metrics.csv", "rows.csv", "grows.csv"].map(left_out);
    assert_eq!(counts, [1, 1, 1, 0, 0], "{recorded:?}");

    let place = Place::new();
    let mut follower = place.follower(Proof::Nothing);
    place.does(&[Writes("metrics.csv", "step,loss\n1,2\n")]);
    follower.look(true);
    assert_eq!((follower.end(), place.recorded().values.len()), (0, 0));
}

/// Proves that two logs in one folder with equal names are one curve, that equal names of another folder begin with its
/// way, and that others stay as they are.
#[test]
fn a_metric_is_of_one_file() {
    let rows = "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": 0.25}\n";
    let recorded = Place::new().after(&[&[
        Writes("run/vis_data/scalars.json", rows),
        Writes("run/vis_data/20261121_140102.json", rows),
        Writes("val_logs/metrics.jsonl", rows),
        Writes("w/logs/a/fit.csv", "epoch,step,score\n0,1,0.5\n"),
    ]]);
    assert_eq!(recorded.of("score"), [(1, 0.5)]);
    let doubled = recorded.skipped.iter().filter(|why| why.contains("another file has metrics")).count();
    let names: Vec<&str> = recorded.values.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "run/vis_data/loss").count(), 2, "{recorded:?}");
    assert_eq!(doubled, 1, "{recorded:?}");
    assert_eq!(names.iter().filter(|name| **name == "loss").count(), 2, "{recorded:?}");
}

/// Proves that the configuration of Hydra becomes parameters, that its own value comes before the override, and that a
/// secret is not stored.
#[test]
fn a_configuration_of_hydra_becomes_parameters() {
    let recorded = Place::new().after(&[&[
        Writes(
            "outputs/2026-11-21/14-01-02/.hydra/config.yaml",
            "lr: 0.001\nmodel:\n  depth: 18\napi_key: hunter2hunter2\n",
        ),
        Writes("outputs/2026-11-21/14-01-02/.hydra/overrides.yaml", "- model.depth=18\n- +note=x\n"),
        Writes("outputs/2026-11-21/14-01-02/.hydra/hydra.yaml", "job: 1\n"),
    ]]);
    let has = |name: &str, value: &str| recorded.settings.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("lr", "0.001") && has("model.depth", "18") && has("note", "x"), "{recorded:?}");
    assert!(!format!("{recorded:?}").contains("hunter2") && !has("job", "1"), "{recorded:?}");
}
