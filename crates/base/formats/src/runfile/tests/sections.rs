//! Single sections: what they keep, their defaults, and what is refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::*;

/// Proves that a roll back and its margins are read and stored, for detectors that it can help, and that its budget has
/// a name.
#[test]
fn roll_backs_are_read() {
    use trackway_core::detect::{DetectionPolicy, Detector};

    let text = format!(
        "{MINIMAL}[detect]\nloss_spike = \"roll_back\"\nroll_back_steps = 20\nskip_batches = 5\n[retry]\nroll_back = {{ attempts = 7 }}\n"
    );
    let file = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(parse(&text, "trackway.toml", &[]).unwrap().unsupported(), []);
    assert_eq!(file.detect.policy_of(Detector::LossSpike), Some(DetectionPolicy::RollBack));
    assert_eq!((file.detect.roll_back_steps, file.detect.skip_batches), (Some(20), Some(5)));
    assert_eq!(file.retry.rules["roll_back"].attempts, Some(7));
    let stored = serde_json::to_value(&file.detect).unwrap();
    assert_eq!(serde_json::from_value::<super::DetectSection>(stored).unwrap(), file.detect);
    let before = serde_json::json!({ "loss_spike": { "policy": "stop" } });
    let before: super::DetectSection = serde_json::from_value(before).unwrap();
    assert_eq!(before.policy_of(Detector::LossSpike), Some(DetectionPolicy::Stop));
    let refused =
        read(&format!("{MINIMAL}[detect]\nthroughput_drop = \"roll_back\"\n")).unwrap_err().to_string();
    assert!(refused.contains("would not change what `throughput_drop` finds"), "{refused}");
}

/// Proves that `[detect]` accepts a string or a table for a detector, names every detector there is, and is not part of
/// the config's hash.
#[test]
fn detectors_are_read() {
    use trackway_core::detect::{DetectionPolicy, Detector};

    let text =
        format!("{MINIMAL}[detect]\nhang = \"stop\"\nloss_spike = {{ threshold = 8, patience = 5 }}\n");
    let file = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.detect.policy_of(Detector::Hang), Some(DetectionPolicy::Stop));
    assert_eq!(file.detect.policy_of(Detector::LossSpike), None);
    let settings = file.detect.detectors[&Detector::LossSpike];
    assert_eq!((settings.threshold, settings.patience), (Some(8.0), Some(5)));
    let plain = read(MINIMAL).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.config_sha256(), plain.config_sha256());
    let known = SCHEMA.iter().find(|section| section.name == "detect").unwrap();
    let detectors = Detector::ALL.iter().map(|detector| detector.as_str());
    assert_eq!(known.keys, detectors.chain(["roll_back_steps", "skip_batches"]).collect::<Vec<_>>());
    assert!(read(&format!("{MINIMAL}[detect]\nhang = 5\n")).is_err());
}

/// Proves that `[early_stop]` is read with its defaults, must set when to stop, and counts in the config hash only if
/// it is there.
#[test]
fn early_stops_are_read() {
    let file = read(&format!("{MINIMAL}[early_stop]\npatience = 5\n")).unwrap();
    let found = file.early_stop.clone().unwrap();
    assert_eq!(
        (found.patience, found.progressive, found.window, found.improvement),
        (Some(5), None, None, 0.0)
    );
    assert_eq!((found.metric.metric.as_str(), found.metric.goal), ("val_loss", Goal::Min));
    let text = "[early_stop]\npatience = 2\nmetric = \"max accuracy\"\nimprovement = \"0.5%\"\nprogressive = \"1%\"\nwindow = 500\n";
    let found = read(&format!("{MINIMAL}{text}")).unwrap().early_stop.unwrap();
    assert_eq!((found.metric.goal, found.progressive, found.window), (Goal::Max, Some(0.01), Some(500)));
    assert!((found.improvement - 0.005).abs() < 1e-12);
    let without = read(MINIMAL).unwrap();
    assert!(without.config().get("early_stop").is_none());
    assert_ne!(file.config_sha256(), without.config_sha256());
    for (text, reported) in [
        ("[early_stop]\nwindow = 500\n", "`[early_stop]` has no rule"),
        ("[early_stop]\nprogressive = \"1%\"\nwindow = 50\n", "early_stop.window"),
        ("[early_stop]\npatience = 0\n", "early_stop.patience"),
    ] {
        let errors = read(&format!("{MINIMAL}{text}")).unwrap_err();
        assert!(errors.contains(reported), "{errors:?}");
    }
}

/// Proves that a scoring command is kept as a shell reads it, and that its rows are read, and their label is known,
/// like those of the data set of the same path.
#[test]
fn scorers_are_read() {
    let of = |text: &str| read(&format!("{MINIMAL}{text}")).unwrap();
    let set = "[data.test]\npath = \"t.csv\"\nlabel = \"y\"\ncolumns = [\"x\", \"y\"]\n";
    let file = of(&format!(
        "{set}[evaluate]\nscorer = [\"python\", \"s core.py\"]\nrows = \"t.csv\"\npositive = \"1\"\n"
    ));
    let section = file.evaluate.unwrap();
    assert_eq!(section.scorer.as_deref(), Some("python 's core.py'"));
    assert_eq!((section.label.as_deref(), section.positive.as_deref()), (Some("y"), Some("1")));
    assert_eq!((section.rows_spec(&file.data).unwrap().columns.len(), section.tasks()), (2, Some("t.csv")));
    let other = of(&format!(
        "{set}[evaluate]\nscorer = \"a | b\"\nrows = \"u.csv\"\nlabel = \"z\"\ntask_set = \"v\"\n"
    ));
    let section = other.evaluate.unwrap();
    assert_eq!((section.scorer.as_deref(), section.label.as_deref()), (Some("a | b"), Some("z")));
    assert_eq!((section.rows_spec(&other.data).unwrap().columns.len(), section.tasks()), (0, Some("v")));
}

/// Proves that a slice is a condition or a table with its own terms, that the terms of all slices and the checkpoint are
/// read, that a plan keeps both forms, and that mistakes are reported at their place.
#[test]
fn terms_of_slices_are_read() {
    let of = |text: &str| read(&format!("{MINIMAL}[evaluate]\ncommand = [\"true\"]\n{text}"));
    let text = "metric = \"recall\"\nrecall = 0.8\nsupport_min = 50\nwidth_max = 0.1\nmargin = 0.02\nblind_spots = false\n\
                costs.rich = { poor = 5, rich = -0.5 }\ncheckpoint = \"min val_loss\"\nslices.old = \"age > 60\"\n\
                slices.women = { where = \"sex = 'F'\", metric = \"f1\", support_min = 9, width_max = 0.5 }\n";
    let section = of(text).unwrap().evaluate.unwrap();
    let women = SliceSection {
        predicate: "sex = 'F'".into(),
        metric: Some("f1".into()),
        support_min: Some(9),
        width_max: Some(0.5),
    };
    assert_eq!(section.slices["women"], women);
    assert_eq!(
        section.slices["old"],
        SliceSection { predicate: "age > 60".into(), ..SliceSection::default() }
    );
    let terms =
        (section.metric.as_deref(), section.recall, section.support_min, section.width_max, section.margin);
    assert_eq!(terms, (Some("recall"), Some(0.8), Some(50), Some(0.1), Some(0.02)));
    assert_eq!((section.costs["rich"]["poor"], section.costs["rich"]["rich"]), (5.0, -0.5));
    assert_eq!((section.blind_spots, section.checkpoint.as_deref()), (Some(false), Some("min val_loss")));
    let stored = serde_json::json!(section);
    assert_eq!(stored["slices"]["old"], "age > 60");
    assert_eq!(serde_json::from_value::<EvaluateSection>(stored).unwrap(), section);
    for (text, reported) in [
        ("slices.women = { metric = \"f1\" }\n", "`evaluate.slices.women.where` is missing"),
        ("slices.\"blind_spot.1\" = \"x > 1\"\n", "is the name of a slice that is found"),
        ("slices.women = { where = \"a\", margin = 1 }\n", "margin"),
        ("costs.rich = 5\n", "costs.rich"),
        ("costs.rich = { poor = \"5\" }\n", "must be a finite number"),
        ("recall = 1.5\n", "must be at most 1"),
        ("checkpoint = \"newest one\"\n", "must be `latest`, `best`, `min METRIC` or `max METRIC`"),
    ] {
        let errors = of(text).unwrap_err();
        assert!(errors.contains(reported), "{errors:?}");
    }
}

/// Proves that further test sets take their rows, slices and gates, that everything else is the main one's, and that mistakes
/// are reported.
#[test]
fn further_test_sets_are_read() {
    let of = |text: &str| read(&format!("{MINIMAL}[evaluate]\ncommand = [\"true\"]\n{text}"));
    let text = "task_set = \"main.csv\"\nlabel = \"y\"\nbaseline = \"last\"\ngates = [\"accuracy > 0.5\"]\nfairness = \"sex\"\n\
                [evaluate.test_sets.rare]\ntask_set = \"rare-v2.csv\"\ntask_set_version = \"2\"\nslices.old = \"age > 60\"\n\
                gates = [\"recall >= baseline - 0.01\"]\n[evaluate.test_sets.plain]\ntask_set = \"plain.csv\"\n";
    let section = of(text).unwrap().evaluate.unwrap();
    let rare = section.of_test_set("rare").unwrap();
    assert_eq!((rare.tasks(), rare.task_set_version.as_deref()), (Some("rare-v2.csv"), Some("2")));
    assert_eq!((rare.label.as_deref(), rare.baseline.as_deref()), (Some("y"), Some("last")));
    assert_eq!((rare.gates.len(), rare.slices.len(), rare.fairness.len()), (1, 1, 0));
    let plain = section.of_test_set("plain").unwrap();
    assert_eq!((plain.baseline, plain.gates.len(), section.of_test_set("main")), (None, 0, None));
    assert_eq!(
        serde_json::from_value::<EvaluateSection>(serde_json::json!(section)).unwrap().test_sets,
        section.test_sets
    );
    for (text, reported) in [
        ("test_sets.main.task_set = \"x\"\n", "cannot be the name of a test set"),
        ("test_sets.rare.gates = [\"f1 > 1\"]\n", "`evaluate.test_sets.rare.task_set` is missing"),
        ("test_sets.rare = { task_set = \"x\", rows = \"y\" }\n", "is for the built-in evaluator"),
        ("test_sets.rare = { task_set = \"x\", lable = \"y\" }\n", "lable"),
        ("test_sets.rare = { task_set = \"x\", gates = [\"f1 >\"] }\n", "gates"),
        ("probe_rows = 9\n", "`evaluate.probe_rows` is for the built-in evaluator"),
    ] {
        let errors = of(text).unwrap_err();
        assert!(errors.contains(reported), "{errors:?}");
    }
}

/// Proves that `[evaluate]` keeps its settings, in the documented units, and has defaults for the others.
#[test]
fn evaluations_are_read() {
    let found = read(FULL).unwrap().evaluate.unwrap();
    assert_eq!((found.task_set_version.as_deref(), found.slices.len()), (Some("3.1"), 2));
    let columns = [&found.label, &found.prediction, &found.score, &found.group].map(|it| it.as_deref());
    assert_eq!(columns, [Some("income"), Some("predicted"), Some("probability"), Some("household")]);
    assert_eq!((found.fairness.len(), found.baseline.as_deref()), (2, Some("last")));
    assert_eq!(
        serde_json::json!(found.decoding).to_string(),
        r#"{"nested":{"n":1},"stop":["END"],"temperature":0.0}"#
    );
    let judge = found.judge.unwrap();
    assert_eq!((judge.model.as_str(), judge.rubric.as_deref()), ("big-judge", Some("rubrics/v2.md")));
    assert_eq!((found.seed, found.timeout_seconds, found.after), (Some(3), 3600.0, false));
    let retry = found.retry.unwrap();
    assert_eq!((retry.attempts, retry.backoff_max_seconds), (Some(2), Some(5.0)));
    let least = read(&format!("{MINIMAL}[evaluate]\ncommand = [\"true\"]\n")).unwrap().evaluate.unwrap();
    let expected =
        super::EvaluateSection { command: vec!["true".into()], ..super::EvaluateSection::default() };
    assert_eq!(least, expected);
    assert!(least.after && least.timeout_seconds == 86_400.0);
    for (text, reported) in [
        ("command = \"true\"", "must be a list of strings"),
        ("command = [\"true\"]\ndecoding = 3", "evaluate.decoding"),
        ("command = [\"true\"]\ndecoding = { t = nan }", "a finite number"),
        ("command = [\"true\"]\njudge = { rubric = \"r\" }", "`evaluate.judge.model` is missing"),
        ("command = [\"true\"]\nretry = { plan = [] }", "unknown key `plan` in `evaluate.retry`"),
        ("command = [\"true\"]\nunmatched_tasks = \"ignore\"", "`accepted`"),
        ("task_set = \"t\"", "`evaluate.command` is missing"),
        ("command = [\"true\"]\nrows = \"t.csv\"", "`evaluate.rows` is for the built-in evaluator"),
        ("scorer = \"s\"\nlabel = \"y\"", "`evaluate.rows` is missing"),
        ("scorer = \"s\"\nrows = \"t.csv\"", "`evaluate.label` is missing"),
        ("scorer = 3", "`evaluate.scorer` must be a command"),
        ("scorer = []", "`evaluate.scorer` must not be empty"),
        ("scorer = \"s\"\ncommand = [\"e\"]", "`evaluate.command` and `evaluate.scorer` are both set"),
        ("scorer = \"s\"\nscore = \"p\"", "remove it: the built-in evaluator calls the column `score`"),
        (
            "scorer = \"s\"\nfeatures = [\"a\"]\nskip = [\"b\"]",
            "`evaluate.features` and `evaluate.skip` are both",
        ),
    ] {
        let errors = read(&format!("{MINIMAL}[evaluate]\n{text}\n")).unwrap_err();
        assert!(errors.contains(reported), "{errors}");
    }
}

/// Proves that a cadence in epochs is read and is part of the config, and that a run without it keeps the hash that it had.
#[test]
fn a_cadence_may_count_epochs() {
    let plan = |every: &str| read(&format!("{MINIMAL}[checkpoint]\nevery = {every}\n")).unwrap();
    let (epochs, steps) = (plan("{ epochs = 2 }"), plan("{ steps = 2 }"));
    assert!(epochs.checkpoint.every_epochs == Some(2) && epochs.checkpoint.has_cadence());
    assert_eq!(epochs.config()["checkpoint"]["every_epochs"], 2);
    assert_eq!(steps.config()["checkpoint"].as_object().unwrap().len(), 2);
    let error = read(&format!("{MINIMAL}[checkpoint]\nevery = {{ epochs = 0 }}\n")).unwrap_err();
    assert!(error.contains("checkpoint.every.epochs"), "{error}");
}

/// Proves that what is added to the command of a resume may do without the path, as in a script that knows where it
/// saves, that a path is filled in wherever it is, and that a table without any effect is refused.
#[test]
fn how_a_script_resumes_is_read() {
    let resume = |keys: &str| {
        let text = format!("{MINIMAL}[checkpoint]\nadopt = [\"out/ckpt.pt\"]\nresume = {{ {keys} }}\n");
        read(&text)
            .map(|file| file.checkpoint.resume.unwrap().at(Path::new("out/ckpt.pt")))
            .map_err(|errors| errors.to_string())
    };
    assert_eq!(resume("args = [\"--init_from=resume\"]").unwrap().0, ["--init_from=resume"]);
    let (args, environment) =
        resume("args = [\"--resume\", \"{path}\"], environment = { FROM = \"at:{path}\" }").unwrap();
    assert_eq!(args, ["--resume", "out/ckpt.pt"]);
    assert_eq!(environment["FROM"], "at:out/ckpt.pt");
    let no_text = Path::new(OsStr::from_bytes(b"out/\xff.pt"));
    let twice = ResumeSection { args: vec!["{path}:{path}".into()], ..ResumeSection::default() };
    assert_eq!(twice.at(no_text).0, [OsStr::from_bytes(b"out/\xff.pt:out/\xff.pt")]);
    let refused = resume("").unwrap_err();
    assert!(refused.contains("has neither `args` nor `environment`"), "{refused}");
}

/// Proves that what an engine with several machines is given is read and stored, that the machines and their processes
/// are part of the config and nothing else of it is, and that older plans, which have none of it, are read.
#[test]
fn what_an_engine_is_given_is_read() {
    let text = format!(
        "{MINIMAL}[resources]\ngpus = 8\nnodes = 2\nprocesses_per_node = 4\ngpu_memory = \"80GB\"\ndisk = \"1GiB\"\n\
         time_limit = \"2h\"\n[launch]\naccount = \"lab\"\nqueue = \"gpu\"\npriority = \"high\"\n\
         exclude_hosts = [\"n17\"]\nsecrets = [{{ name = \"HF_TOKEN\", from = \"hub/token\" }}]\n\
         template = {{ format = \"yaml\", text = \"spec: {{}}\" }}\n"
    );
    let plan = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let resources = &plan.resources;
    assert_eq!((resources.nodes, resources.processes_per_node), (Some(2), Some(4)));
    assert_eq!((resources.gpu_memory_bytes, resources.disk_bytes), (Some(80_000_000_000), Some(1 << 30)));
    assert_eq!(resources.time_limit_seconds, Some(7200.0));
    let launch = &plan.launch;
    assert_eq!((launch.account.as_deref(), launch.queue.as_deref()), (Some("lab"), Some("gpu")));
    assert_eq!(
        (launch.priority.as_deref(), launch.exclude_hosts.as_slice()),
        (Some("high"), &["n17".into()][..])
    );
    assert_eq!((launch.secrets[0].name.as_str(), launch.secrets[0].from.as_str()), ("HF_TOKEN", "hub/token"));
    assert_eq!(launch.template.as_ref().unwrap().format, TemplateFormat::Yaml);
    let stored = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(stored).unwrap(), plan);

    let plain = read(MINIMAL).unwrap_or_else(|errors| panic!("{errors}"));
    let stored = serde_json::to_value(&plain).unwrap();
    assert_eq!(stored["launch"], serde_json::json!({ "on": "local" }));
    assert!(!stored["resources"].as_object().unwrap().contains_key("nodes"));
    let of_engine =
        read(&format!("{MINIMAL}[launch]\nqueue = \"gpu\"\n[resources]\ndisk = \"1GiB\"\n")).unwrap();
    assert_eq!(of_engine.config_sha256(), plain.config_sha256());
    let two = read(&format!("{MINIMAL}[resources]\nnodes = 2\n")).unwrap();
    assert_ne!(two.config_sha256(), plain.config_sha256());
}

/// Proves that GPUs which cannot be divided among machines or processes, also those of a retry, their memory without
/// GPUs, two keys for the engine, and a secret without a place are refused by name.
#[test]
fn what_no_engine_can_be_given_is_refused() {
    let table = [
        ("[resources]\ngpus = 3\nnodes = 2", "`resources.gpus` of 3 cannot be divided among 2 nodes"),
        (
            "[resources]\ngpus = 16\nnodes = 2\nprocesses_per_node = 3",
            "`resources.gpus` of 16 gives each node 8, which cannot be divided among 3 processes",
        ),
        (
            "[resources]\ngpus = 4\nnodes = 2\n[retry]\ndevice_oom = { plan = [{ set = { A = 1 } }, { resources = { gpus = 3 } }] }",
            "`retry.device_oom.plan[1].resources.gpus` of 3 cannot be divided among 2 nodes",
        ),
        ("[launch]\nengine = \"a b\"", "`launch.engine` must be 1 to 64 letters, digits"),
        ("[launch]\non = \"local\"\nengine = \"box\"", "`launch.on` has no effect beside `launch.engine`"),
        ("[resources]\ngpu_memory = \"80GB\"", "`resources.gpu_memory` has no effect without `gpus`"),
        ("[resources]\nnodes = 0", "`resources.nodes` must be a whole number from 1"),
        ("[launch]\nsecrets = [{ name = \"HF_TOKEN\" }]", "`launch.secrets[0].from` is missing"),
        ("[launch]\nsecrets = { HF_TOKEN = \"hub/token\" }", "`launch.secrets` must be a list such as"),
        (
            "[launch]\ntemplate = { format = \"xml\", text = \"a\" }",
            "`launch.template.format` must be one of",
        ),
        ("[launch]\npartition = \"gpu\"", "unknown key `partition` in `launch`"),
    ];
    for (text, message) in table {
        let refused = read(&format!("{MINIMAL}{text}\n")).unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

/// Proves that an engine is named by the run file, that a retry with a launcher leaves it, that a kind is the name of
/// its default engine, and that several processes may share a GPU.
#[test]
fn an_engine_is_named() {
    let plan = read(&format!(
        "{MINIMAL}[launch]\nengine = \"box\"\n[resources]\ngpus = 2\nprocesses_per_node = 4\n"
    ))
    .unwrap();
    let retried = PlanEntry { launcher: Some(LaunchOn::Local), ..PlanEntry::default() };
    assert_eq!(plan.launch.engine_with(&PlanEntry::default()), "box");
    assert_eq!(plan.launch.engine_with(&retried), "local");
    let plain = read(MINIMAL).unwrap();
    assert_eq!(plain.launch.engine_with(&PlanEntry::default()), "local");
    assert_eq!(serde_json::to_value(&plan.launch).unwrap()["engine"], "box");
    let text = format!("{MINIMAL}[launch]\non = \"local\"\n");
    let changed = parse(&text, "trackway.toml", retried.patch().changes()).unwrap().plan;
    assert_eq!(changed.launch.engine.as_ref().map(EngineName::as_str), Some("local"));
}
