//! Text in, rendered errors or values out.

use proptest::prelude::*;

use super::*;

mod sections;

/// A run file with everything in it that users write.
const FULL: &str = r#"
[run]
name              = "income"
model_family      = "tabular"
command           = ["python", "train.py", "--lr", "0.001"]
seed              = 17
working_directory = "jobs"
environment       = { OMP_NUM_THREADS = 4, MODE = "fast" }
pass_environment  = ["LANG", "HOME", "LANG"]

[resources]
gpus = 2
gpu = "a100-80gb"
usd_per_gpu_hour = 1.5
cpus = 8
memory = "16GiB"

[container]
image = "registry/train@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

[data.train]
path  = "s3://bucket/train.parquet"
label = "income"
group = "household"
time  = "year"
rules = ["age between 17 and 90"]
schema = "schema.toml"
reference = "last.json"
group_by = ["sex", "race"]
ignore = "number"
role = "train"

[data.test]
path = "data/test.csv"
format = "csv"
columns = ["age", "income"]
header = false
delimiter = "\t"
comment = "%"
skip_lines = 2
trailing_separator = true
decimal = ","
missing = "?"

[preflight]
one_batch = true
overfit_batches = 10
label_noise = true
require = ["leakage", "data.drift"]
skip = [{ check = "data.representation", why = "no groups" }]
severity = { "data.duplicates" = "block" }
rehearsal_timeout = "5m"
target_loss = 0.1

[governance]
personal_data = [{ column = "email", kinds = ["email"], approved_by = "ana", why = "spam filter", until = "2027-01-31" }]

[training]
parameters = 7e9
precision = "bf16"
strategy = "fully_sharded"
gradient_clip_norm = 1
loader = { workers = 4, pin_memory = true }
hours_expected = 12

[ladder]
rungs   = ["1%", "10%", "100%"]
promote = "val_loss < 0.95 * previous"

[checkpoint]
every = { steps = 200, minutes = 15 }
keep  = { last = 3, every = 1000, best = "max accuracy" }
remote = "s3://bucket/prefix"

[retry]
preempted      = { attempts = 50 }
infrastructure = { attempts = 5, backoff = "10s..5m", max_usd = 3 }
device_oom     = { plan = [{ set = { BATCH = "16", ACCUMULATE = 2 } }, { set = { ACT_CKPT = true } }] }
max_usd        = 200
max_gpu_hours  = 12.5

[supervise]
grace = "500ms"
timeout = "12h"
hang_after = "30m"

[evaluate]
command = ["python", "eval.py"]
task_set = "eval/tasks-v3.jsonl"
task_set_version = "3.1"
slices  = { women = "sex = 'Female'", older = "age >= 60" }
gates   = ["accuracy >= 0.84"]
label   = "income"
prediction = "predicted"
score   = "probability"
group   = "household"
fairness = ["sex", "race"]
baseline = "last"
decoding = { temperature = 0.0, stop = ["END"], nested = { n = 1 } }
judge   = { model = "big-judge", rubric = "rubrics/v2.md" }
seed    = 3
timeout = "1h"
retry   = { attempts = 2, backoff = "1s..5s" }
after   = false

[notify]
webhook = { env = "SLACK_WEBHOOK" }
on      = ["end", "gate"]

[owner]
name = "ana"
team = "search"

[launch]
on = "ray"
"#;

fn read(text: &str) -> Result<Plan, String> {
    read_with(text, &[])
}

fn read_with(text: &str, overrides: &[&str]) -> Result<Plan, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let file = PlanPatch::of_command_line(&overrides)
        .and_then(|patch| parse(text, "trackway.toml", patch.changes()));
    file.map(|file| file.plan).map_err(|errors| {
        let rendered = |error: &RunFileError| format!("error: {}", error.render_plain(text));
        errors.iter().map(rendered).collect::<Vec<_>>().join("\n\n")
    })
}

#[track_caller]
fn check_errors(text: &str, overrides: &[&str], expected: &str) {
    let rendered = read_with(text, overrides).expect_err("the text must be refused");
    assert_eq!(rendered.trim(), expected.trim(), "\n--- rendered ---\n{rendered}\n");
}

const MINIMAL: &str = "[run]\nname = \"a\"\ncommand = [\"true\"]\n";

/// Proves that a value is found by its keys, and where the file does not have it the nearest key on the way that it has.
#[test]
fn a_value_has_its_place() {
    let source = "[run]\nname = \"é\"\ncommand = [\"x\"]\n[data.train]\npath = \"a.csv\"\n";
    let of = |keys: &[&str]| place_of(source, keys);
    assert_eq!(of(&["run", "command"]), Some((3, 11)));
    assert_eq!(of(&["data", "train", "path"]), Some((5, 8)));
    assert_eq!(of(&["data", "train", "label"]), Some((4, 7)));
    assert_eq!((of(&["launch", "engine"]), place_of("[run", &["run"])), (None, None));
}

/// Proves that a run names its project and what depends on it, that the config is the same with them, and that another word is named
/// with those that there are.
#[test]
fn a_run_has_a_project_and_a_criticality() {
    let file = read(&format!("{MINIMAL}project = \"fraud\"\ncriticality = \"release\"\n")).unwrap();
    assert_eq!(
        (file.run.project.as_deref(), file.run.criticality),
        (Some("fraud"), Some(trackway_core::Criticality::Release))
    );
    let plain = read(MINIMAL).unwrap();
    assert_eq!((&plain.run.project, plain.run.criticality), (&None, None));
    assert_eq!(plain.config_sha256(), file.config_sha256());
    let refused = read(&format!("{MINIMAL}criticality = \"high\"\n")).unwrap_err();
    assert!(refused.contains("experiment") && refused.contains("release"), "{refused}");
}

/// Proves that every key of the file reaches its typed value, in the documented unit.
#[test]
fn every_key_reaches_its_value() {
    let file = read(FULL).unwrap();
    assert_eq!(file.run.environment["OMP_NUM_THREADS"], "4");
    assert_eq!(file.run.pass_environment, ["HOME", "LANG"]);
    assert_eq!(file.resources.memory_bytes, Some(16 << 30));
    assert!(file.container.unwrap().digest.starts_with("sha256:0123"));
    let test = &file.data["test"];
    assert_eq!(
        (test.format, test.header, test.delimiter, &test.missing[..]),
        (Some(DataFormat::Csv), Some(false), Some('\t'), &["?".to_owned()][..])
    );
    assert_eq!((test.comment, test.skip_lines, test.trailing_separator), (Some('%'), 2, true));
    assert_eq!(test.decimal, Some(DecimalMark::Comma));
    let train = &file.data["train"];
    assert_eq!((train.role, train.group_by.len(), train.ignore.len()), (Some(DataRole::Train), 2, 1));
    assert_eq!(
        (train.schema.as_deref(), train.reference.as_deref()),
        (Some("schema.toml"), Some("last.json"))
    );
    let preflight = file.preflight.unwrap();
    assert_eq!((preflight.require.len(), preflight.skip[0].why.as_str()), (2, "no groups"));
    assert_eq!(preflight.severity["data.duplicates"].as_str(), "block");
    assert_eq!((preflight.rehearsal_timeout_seconds, preflight.target_loss), (Some(300.0), Some(0.1)));
    assert_eq!(file.governance.personal_data[0].until.as_deref(), Some("2027-01-31"));
    let training = file.training.unwrap();
    assert_eq!((training.parameters, training.gradient_clip_norm), (Some(7_000_000_000), Some(1.0)));
    assert_eq!(
        (training.strategy, training.loader.unwrap().workers),
        (Some(training::Strategy::FullySharded), Some(4))
    );
    assert_eq!(file.ladder.unwrap().rungs, [0.01, 0.1, 1.0]);
    assert_eq!((file.checkpoint.every_steps, file.checkpoint.every_seconds), (Some(200), Some(900.0)));
    assert_eq!((file.checkpoint.keep_last, file.checkpoint.keep_every_steps), (Some(3), Some(1000)));
    assert_eq!(file.checkpoint.keep_best, Some(KeepBest { metric: "accuracy".into(), goal: Goal::Max }));
    let notify =
        NotifySection { webhook: Some("SLACK_WEBHOOK".into()), on: vec![NotifyOn::End, NotifyOn::Gate] };
    assert_eq!(file.notify, Some(notify));
    let infrastructure = &file.retry.rules[INFRASTRUCTURE];
    assert_eq!(
        (infrastructure.backoff_min_seconds, infrastructure.backoff_max_seconds),
        (Some(10.0), Some(300.0))
    );
    assert_eq!(file.retry.rules["device_oom"].plan[1].set["ACT_CKPT"], "true");
    assert_eq!((file.retry.max_usd, file.retry.max_gpu_hours), (Some(200.0), Some(12.5)));
    let supervise = file.supervise;
    assert_eq!((supervise.grace_seconds, supervise.timeout_seconds), (0.5, Some(43_200.0)));
    assert_eq!((supervise.hang_after_seconds, file.launch.on), (Some(1800.0), LaunchOn::Ray));
    let defaults = read(MINIMAL).unwrap();
    assert_eq!(defaults.supervise, SuperviseSection::default());
    assert_eq!((defaults.run.seed, defaults.resources.gpus, defaults.launch.on), (None, 0, LaunchOn::Local));
    assert_eq!(parse(MINIMAL, "trackway.toml", &[]).unwrap().unsupported(), []);
}

/// Proves that nothing this version does not do is skipped: each is named, with the place of its key, or the change that set it.
#[test]
fn what_is_not_done_is_named() {
    let named: Vec<_> = parse(FULL, "trackway.toml", &[])
        .unwrap()
        .unsupported()
        .into_iter()
        .map(|unsupported| format!("{} at {:?}", unsupported.what, &FULL[unsupported.span]))
        .collect();
    let expected = ["launch.on = \"ray\" at \"\\\"ray\\\"\""];
    assert_eq!(named, expected);
    let at = |text: &str, patch: &PlanPatch| {
        let found = parse(text, "trackway.toml", patch.changes()).unwrap().unsupported();
        found.into_iter().map(|unsupported| unsupported.at).collect::<Vec<_>>()
    };
    let in_file = format!("{MINIMAL}[launch]\non = \"ray\"\n");
    assert_eq!(at(&in_file, &PlanPatch::default()), [format!("trackway.toml:{}", in_file.lines().count())]);
    let set = PlanPatch::of_command_line(&["launch.on=ray".to_owned()]).unwrap();
    assert_eq!(at(MINIMAL, &set), ["--set launch.on=ray"]);
    let text = format!(
        "{MINIMAL}[retry]\nhost_oom = {{ plan = [{{ launcher = \"local\" }}, {{ launcher = \"ray\" }}] }}\n"
    );
    let entries = parse(&text, "trackway.toml", &[]).unwrap().unsupported();
    let named: Vec<&str> = entries.iter().map(|unsupported| unsupported.what.as_str()).collect();
    assert_eq!(named, ["retry.host_oom.plan[1].launcher = \"ray\""]);
}

/// Proves that a mistake in a promotion rule is marked inside its text, in the file and in an override; and that rungs
/// which have one name are none.
#[test]
fn a_mistake_in_a_rule_has_its_place_in_the_text() {
    let file = |rule: &str| format!("{MINIMAL}[ladder]\nrungs = [\"1%\", \"100%\"]\npromote = {rule}\n");
    let marked = |rule: &str| {
        let text = file(rule);
        let error = parse(&text, "trackway.toml", &[]).unwrap_err().remove(0);
        text[error.span].to_owned()
    };
    assert_eq!(marked("\"loss < 5%\""), "%");
    assert_eq!(marked("'é < 1 and loss'"), "loss");
    assert_eq!(marked("\"\\u0061 < \""), "\"\\u0061 < \"");
    let set = PlanPatch::of_command_line(&["ladder.promote=a < previous + b".to_owned()]).unwrap();
    let error = parse(&file("\"a < 1\""), "trackway.toml", set.changes()).unwrap_err().remove(0);
    assert_eq!(&error.override_text.unwrap()[error.span], "previous");
    assert_eq!(error.message, "`ladder.promote` does not name the metric of `previous`");
    let gates = format!("{MINIMAL}[evaluate]\ncommand = [\"e\"]\ngates = [\"a > 0\", \"min(recall) > 0\"]\n");
    let error = parse(&gates, "trackway.toml", &[]).unwrap_err().remove(0);
    assert_eq!(&gates[error.span], "recall");
    let equal_rungs = format!("{MINIMAL}[ladder]\nrungs = [\"1.00000000001%\", \"1.00000000002%\"]\n");
    assert!(parse(&equal_rungs, "trackway.toml", &[]).unwrap_err()[0].message.contains("must increase"));
}

/// Proves that all mistakes of a file are shown at once, each with line, caret and the nearest name.
#[test]
fn all_mistakes_are_shown_with_line_caret_and_hint() {
    check_errors(
        "[run]\nname = 3\ncomand = [\"a\"]\nseed = -1\n\n[dta.x]\npath = 'x'\n\n[owner]\nseed = 1\nzzz = 2\n",
        &[],
        r#"
error: `run.command` is missing
 --> trackway.toml:1:2
  |
1 | [run]
  |  ^^^
hint: add `command = ["python", "train.py"]`

error: `run.name` must be a string, not a number
 --> trackway.toml:2:8
  |
2 | name = 3
  |        ^
hint: put it in double quotes

error: unknown key `comand` in `run`
 --> trackway.toml:3:1
  |
3 | comand = ["a"]
  | ^^^^^^
hint: did you mean `command`?

error: `run.seed` must be a whole number, 0 or more, not -1
 --> trackway.toml:4:8
  |
4 | seed = -1
  |        ^^

error: unknown section or key `dta`
 --> trackway.toml:6:2
  |
6 | [dta.x]
  |  ^^^
hint: did you mean `data`?

error: unknown key `seed` in `owner`
  --> trackway.toml:10:1
   |
10 | seed = 1
   | ^^^^
hint: `seed` belongs in `[run]`

error: unknown key `zzz` in `owner`
  --> trackway.toml:11:1
   |
11 | zzz = 2
   | ^^^
hint: known here: `name`, `team`
"#,
    );
}

/// Proves that the old name of a section is an error at its place, in the file and in an override, that names the new
/// one.
#[test]
fn an_old_name_is_refused_with_the_new_one() {
    check_errors(
        &format!("{MINIMAL}[stages]\npromote = \"a < 1\"\n"),
        &[],
        r#"
error: unknown section or key `stages`
 --> trackway.toml:4:2
  |
4 | [stages]
  |  ^^^^^^
hint: `stages` is now called `ladder`
"#,
    );
    check_errors(
        MINIMAL,
        &["stages.warm_start=true"],
        r#"
error: unknown section or key `stages`
 --> --set stages.warm_start=true:1:1
  |
1 | stages.warm_start=true
  | ^^^^^^^^^^^^^^^^^
hint: `stages` is now called `ladder`
"#,
    );
}

/// Proves that an argument which no kernel passes on is refused with its size, and one that just fits is not.
#[test]
fn an_argument_too_long_for_the_kernel_is_refused() {
    let file = |bytes| format!("[run]\nname = \"a\"\ncommand = [\"echo\", \"{}\"]", "x".repeat(bytes));
    let longest = parse(&file(ARGUMENT_BYTES_MAX), "a.toml", &[]).unwrap();
    assert_eq!(longest.plan.run.command[1].len(), ARGUMENT_BYTES_MAX);
    let errors = parse(&file(140_000), "a.toml", &[]).unwrap_err();
    assert!(
        errors[0].to_string().contains("an argument of 140000 bytes: 131071 is the limit"),
        "{}",
        errors[0]
    );
}

/// Proves that a bad value of each kind is reported with what is expected instead: one line of the file, one message.
#[test]
fn bad_values_are_reported_with_what_is_expected() {
    let cases = [
        (
            "[run]\nname = \"a\"\ncommand = \"python train.py\"",
            "`run.command` must be a list of strings, not one string: no shell reads it (hint: write `[\"python\", \"train.py\"]`)",
        ),
        ("[run]\nname = \"a\"\ncommand = []", "`run.command` must not be empty"),
        ("[run]\nname = \" \"\ncommand = [\"a\"]", "`run.name` must not be empty"),
        (
            "[run]\nname = \"exp/1\"\ncommand = [\"a\"]",
            "`run.name` must not be `exp/1`: it looks like the number of an attempt of a run (hint: write it without the slash, such as `exp-1`)",
        ),
        (
            "[run]\nname = \"a\"\ncommand = [\"a\", 3]",
            "`run.command` must be a string, not a number (hint: put it in double quotes)",
        ),
        ("run = 3", "`run` must be a table, not a number (hint: write `[run]` or `{ key = value }`)"),
        (
            "[supervise]\ngrace = 30",
            "`supervise.grace` must be a duration, not a bare number (hint: write `\"30s\"` for seconds)",
        ),
        (
            "[supervise]\ntimeout = \"12 hours\"",
            "`supervise.timeout` must be a duration, not `12 hours` (hint: such as `\"30s\"`; units are ms, s, m, h, d)",
        ),
        (
            "[supervise]\ntimeout = \"0s\"",
            "`supervise.timeout` must be more than 0 (hint: omit the key for no limit)",
        ),
        (
            "[supervise]\ntimeout = \"99999d\"",
            "`supervise.timeout` must be a duration, not `99999d` (hint: such as `\"30s\"`; units are ms, s, m, h, d)",
        ),
        ("[retry]\nhost_omo = {}", "unknown key `host_omo` in `retry` (hint: did you mean `host_oom`?)"),
        (
            "[retry]\ncompleted = {}",
            "an attempt that ended as `completed` is never retried (hint: remove this key)",
        ),
        (
            "[retry]\nhang = { backoff = \"5m..10s\" }",
            "`retry.hang.backoff` must be ordered from the shorter to the longer duration, not `5m..10s`",
        ),
        (
            "[retry]\nhang = { backoff = \"soon\" }",
            "`retry.hang.backoff` must be a range of durations, not `soon` (hint: such as `\"10s..5m\"`; units are ms, s, m, h, d)",
        ),
        (
            "[retry]\nhang = { attempts = 1.5 }",
            "`retry.hang.attempts` must be a whole number from 0 to 1000000, not a number",
        ),
        (
            "[retry]\ndevice_oom = { plan = [{ set = { 1B = \"1\" } }] }",
            "`retry.device_oom.plan[0].set` must contain only names of letters, digits and `_`, not `1B`",
        ),
        (
            "[retry]\ndevice_oom = { plan = [{}] }",
            "`retry.device_oom.plan[0].set` is missing (hint: add `set = { BATCH = \"16\" }`)",
        ),
        (
            "[retry]\nhost_oom = { plan = [{ resources = { memory = \"lots\" } }] }",
            "`retry.host_oom.plan[0].resources.memory` must be a size, not `lots` (hint: such as `\"16GiB\"`)",
        ),
        ("[retry]\nmax_usd = nan", "`retry.max_usd` must be 0 or more, not NaN"),
        (
            "[resources]\nmemory = \"16 gigs\"",
            "`resources.memory` must be a size, not `16 gigs` (hint: such as `\"16GiB\"`)",
        ),
        (
            "[resources]\ngpus = 99999999999999999999",
            "`resources.gpus` must be a whole number from 0 to 1000000, not a number beyond 64 bits",
        ),
        (
            "[container]\nimage = \"train:latest\"",
            "`container.image` must name an image by its digest, not `train:latest` (hint: write `repository@sha256:` and 64 hexadecimal digits; a tag can change)",
        ),
        (
            "[data]\ntrain = \"x.csv\"",
            "`data.train` must be a table, not a string (hint: write `[data.train]` with `path = \"…\"` below it)",
        ),
        (
            "[data.t]\npath = \"x\"\ndelimiter = \"ab\"",
            "`data.t.delimiter` must be one ASCII character, not `ab` (hint: `\",\"`, `\";\"`, `\"|\"` or `\"\\t\"`)",
        ),
        (
            "[data.t]\npath = \"x\"\ncolumns = [\"a\", \"a\"]",
            "`data.t.columns` must not name a column twice: `a`",
        ),
        (
            "[data.t]\npath = \"x\"\nformat = \"cvs\"",
            "`data.t.format` must be one of `parquet`, `csv`, `jsonl`, `other`, not `cvs` (hint: did you mean `csv`?)",
        ),
        ("[ladder]\nrungs = [\"10%\", \"1%\"]", "`ladder.rungs` must increase from rung to rung"),
        (
            "[ladder]\nrungs = [\"0%\"]",
            "`ladder.rungs` must hold percentages above 0% and up to 100%, not `0%`",
        ),
        (
            "[preflight]\nskip = [{ chekc = \"a\", why = \"b\" }]",
            "unknown key `chekc` in `preflight.skip[0]` (hint: did you mean `check`?)",
        ),
        (
            "[preflight]\nskip = [{ check = \"a\" }]",
            "`preflight.skip[0].why` is missing (hint: add `why = \"…\"`)",
        ),
        (
            "[preflight]\nseverity = { \"data.rows\" = \"blok\" }",
            "`preflight.severity.data.rows` must be one of `note`, `warn`, `block`, not `blok` (hint: did you mean `block`?)",
        ),
        (
            "[training]\nprecison = \"bf16\"",
            "unknown key `precison` in `training` (hint: did you mean `precision`?)",
        ),
        (
            "[training]\nparameters = 1e16",
            "`training.parameters` must be a number from 1 to 1e15, not 10000000000000000",
        ),
        (
            "[governance]\npersonal_data = [{ column = \"a\", kinds = [\"email\"], approved_by = \"x\", why = \"y\", until = \"2027-13-01\" }]",
            "`governance.personal_data[0].until` must be a date, not `2027-13-01` (hint: such as `\"2027-01-31\"`)",
        ),
        (
            "[checkpoint]\nremote = \"bucket\"",
            "`checkpoint.remote` must be an object store URL, not `bucket` (hint: such as `\"s3://bucket/prefix\"`)",
        ),
        (
            "[run.environment]\nTRACKWAY_RUN = \"x\"",
            "`run.environment` must not hold `TRACKWAY_RUN`: names that begin with `TRACKWAY_` are set by Trackway",
        ),
        (
            "[owner]\nname = 2026-11-21",
            "`owner.name` must be a string, not a date (hint: put it in double quotes)",
        ),
        (
            "[run]\nname = \"a\"\nname = \"b\"",
            "the file is not valid TOML: duplicate key (hint: a key or section may occur only once)",
        ),
        (
            "[run]\nname = a",
            "the file is not valid TOML: string values must be quoted, expected literal string (hint: put strings in double quotes)",
        ),
    ];
    for (text, expected) in cases {
        let errors = parse(text, "f", &[]).expect_err(text);
        let reported: Vec<_> = errors
            .iter()
            .map(|error| error.to_string().splitn(4, ':').nth(3).unwrap().trim().to_owned())
            .collect();
        assert!(reported.iter().any(|reported| reported == expected), "{text}\n{reported:#?}");
    }
}

/// Proves that overrides obey the same rules, name themselves in their errors, win over the file, and need no quotes.
#[test]
fn overrides_obey_the_rules_and_name_themselves() {
    let file = read_with(
        MINIMAL,
        &["run.name=income", "run.seed=7", "checkpoint.every.steps=50", "data.\"a.b\".path='x=y'"],
    );
    let file = file.unwrap();
    assert_eq!((file.run.name.as_str(), file.run.seed), ("income", Some(7)));
    assert_eq!((file.checkpoint.every_steps, file.data["a.b"].path.as_str()), (Some(50), "x=y"));
    check_errors(
        MINIMAL,
        &["run.seed=abc", "run.nmae=1", "run.name.x=1"],
        r#"
error: `run.seed` must be a whole number, 0 or more, not a string
 --> --set run.seed=abc:1:10
  |
1 | run.seed=abc
  |          ^^^

error: unknown key `nmae` in `run`
 --> --set run.nmae=1:1:1
  |
1 | run.nmae=1
  | ^^^^^^^^
hint: did you mean `name`?

error: `run.name` is a string, so nothing can be set inside it
 --> --set run.name.x=1:1:1
  |
1 | run.name.x=1
  | ^^^^^^^^^^
"#,
    );
    check_errors(
        MINIMAL,
        &["nothing", "run.[x]=1"],
        r#"
error: an override has the form `key.path=value`
 --> --set nothing:1:1
  |
1 | nothing
  | ^^^^^^^
hint: such as `--set run.seed=7`

error: invalid key path `run.[x]`
 --> --set run.[x]=1:1:1
  |
1 | run.[x]=1
  | ^^^^^^^
hint: write keys joined by dots, such as `run.seed`
"#,
    );
}

/// Proves that a change which no person wrote obeys the same rules, and that its mistakes name what made it.
#[test]
fn a_typed_change_names_its_origin() {
    let origin = ChangeOrigin::CrossValidation { fold: 2 };
    let change = |key: [&str; 2], value: PatchValue| PlanChange::new(key.into(), value, origin);
    let seed = change(["run", "seed"], 7_i64.into());
    assert_eq!(parse(MINIMAL, "f", &[seed]).unwrap().plan.run.seed, Some(7));
    let wrong = [change(["run", "nmae"], "x".into()), change(["run", "seed"], "x=\"1\"".into())];
    let errors = parse(MINIMAL, "f", &wrong).unwrap_err();
    assert_eq!(
        errors[0].render_plain(MINIMAL),
        "unknown key `nmae` in `run`\n --> fold 2 of the cross-validation: run.nmae=\"x\":1:1\n  |\n\
         1 | run.nmae=\"x\"\n  | ^^^^^^^^\nhint: did you mean `name`?"
    );
    assert!(errors[1].render_plain(MINIMAL).ends_with("  |          ^^^^^^^^^"), "{}", errors[1]);
}

/// Proves that the caret is under the fault after tabs and after letters of several bytes.
#[test]
fn the_caret_is_under_the_fault() {
    check_errors(
        "[run]\nname = \"a\"\ncommand = [\"a\"]\n\tenvironment = { A = \"ä\", B = [1] }\n",
        &[],
        "error: `run.environment` must be a string, a number or a boolean, not a list\n --> trackway.toml:4:31\n  |\n4 | \tenvironment = { A = \"ä\", B = [1] }\n  | \t                             ^^^",
    );
}

/// Proves that a file in another encoding is reported with the place of its first wrong byte.
#[test]
fn invalid_utf8_is_reported_with_its_place() {
    let bytes = b"[run]\nname = \"\xE4\"\n";
    let errors = parse_bytes(bytes, "trackway.toml", &[]).unwrap_err();
    assert_eq!(
        errors[0].render_plain(&String::from_utf8_lossy(bytes)),
        "the file is not valid UTF-8: byte 0xE4\n --> trackway.toml:2:9\n  |\n2 | name = \"\u{FFFD}\"\n  |         ^\nhint: save it as UTF-8"
    );
    assert_eq!(parse_bytes(MINIMAL.as_bytes(), "f", &[]), parse(MINIMAL, "f", &[]));
}

/// Proves that a key of `[retry]` which would be ignored is refused, by its name and with what it is for.
#[test]
fn a_retry_key_without_effect_is_refused() {
    let read = |rule: &str| read(&format!("[run]\nname = \"r\"\ncommand = [\"true\"]\n[retry]\n{rule}\n"));
    for (rule, refused) in [
        ("device_oom = { attempts = 0 }", "`retry.device_oom.attempts` has no effect"),
        ("host_oom = { backoff = \"1s\" }", "`retry.host_oom.backoff` has no effect"),
        ("hang = { plan = [{ set = { A = \"1\" } }] }", "`retry.hang.plan` has no effect"),
        ("infrastructure = { plan = [] }", "`retry.infrastructure.plan` has no effect"),
    ] {
        let error = read(rule).unwrap_err();
        assert!(error.contains(refused), "{error}");
    }
    let with_plan = read("numeric_divergence = { plan = [{ set = { LR = \"1e-4\" } }] }").unwrap();
    assert_eq!(with_plan.retry.rules["numeric_divergence"].plan[0].to_string(), "LR=1e-4");
    let counted = read("unhealthy = { attempts = 2 }").unwrap();
    assert_eq!(counted.retry.rules["unhealthy"].attempts, Some(2));
}

/// Proves that `refill` is a duration or `never`, and is refused where it would have no effect.
#[test]
fn a_refill_that_has_no_effect_is_refused() {
    let read = |rule: &str| parse(&format!("{MINIMAL}\n[retry]\n{rule}\n"), "f", &[]);
    let seconds = |rule: &str| read(rule).unwrap().plan.retry.rules["hang"].refill_seconds;
    assert_eq!(seconds("hang = { refill = \"30m\" }"), Some(1_800.0));
    assert_eq!(seconds("hang = { refill = \"never\" }"), Some(0.0));
    for (rule, expected) in [
        ("roll_back = { refill = \"1h\" }", "`retry.roll_back.refill` has no effect"),
        ("device_oom = { refill = \"1h\" }", "`retry.device_oom.refill` has no effect"),
        ("hang = { refill = \"0s\" }", "refill"),
    ] {
        let error = read(rule).unwrap_err()[0].to_string();
        assert!(error.contains(expected), "{rule}: {error}");
    }
}

/// Proves that a number is the same, to the last bit, after it was written as JSON and read again.
#[test]
fn numbers_survive_their_text() {
    let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..100_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(bits ^ (bits >> 29));
        if number.is_finite() {
            let text = serde_json::to_string(&number).unwrap();
            let read: f64 = serde_json::from_str(&text).unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{text}");
        }
    }
}

/// Proves that the config hash follows each value that decides the result and none that does not, and that the
/// plan survives being stored.
#[test]
fn the_config_hash_follows_what_decides_the_result() {
    let hash = |overrides: &[&str]| read_with(FULL, overrides).unwrap().config_sha256();
    let original = hash(&[]);
    for decides in [
        "run.command=['python', 'other.py']",
        "run.seed=18",
        "run.environment.MODE=slow",
        "run.working_directory=elsewhere",
        "resources.gpus=4",
        "data.train.path=other.csv",
        "data.test.columns=['a', 'b']",
        "ladder.rungs=['100%']",
        "checkpoint.every.steps=100",
    ] {
        assert_ne!(hash(&[decides]), original, "{decides}");
    }
    for does_not in [
        "run.name=x",
        "run.model_family=x",
        "owner.team=x",
        "resources.usd_per_gpu_hour=9",
        "retry.max_usd=1",
        "supervise.grace=1s",
        "checkpoint.keep.last=9",
        "evaluate.gates=[]",
        "launch.on=local",
        "data.train.rules=[]",
        "data.train.schema=other.toml",
        "data.train.group_by=age",
        "data.train.ignore=age",
        "preflight.one_batch=false",
        "training.parameters=8e9",
        "governance.personal_data=[]",
        "run.pass_environment=[]",
    ] {
        assert_eq!(hash(&[does_not]), original, "{does_not}");
    }
    let plan = read(FULL).unwrap();
    assert_eq!(
        serde_json::from_str::<Plan>(&canonical_json(&serde_json::to_value(&plan).unwrap())).unwrap(),
        plan
    );
}

/// Proves that the hash of a given plan never changes by accident: receipts of different versions compare by it.
#[test]
fn the_config_hash_is_pinned() {
    let plan = Plan::for_command(&["python".into(), "-u".into(), "jobs/train.py".into()]);
    assert_eq!(plan.run.name, "train");
    assert_eq!(plan.config_sha256(), "c8d71a83e7b3965659e5a38440c24ce6c4b800322983dd022cb5eb85cb2540ce");
    assert_eq!(Plan::for_command(&["/bin/true".into()]).run.name, "true");
    assert_eq!(Plan::for_command(&[]).run.name, "run");
}

/// Proves that the address of a webhook is not taken into a run file, and that what is sent decides no hash.
#[test]
fn a_webhook_is_named_by_a_variable() {
    for (line, part) in [
        ("webhook = \"https://hooks.example.org/T0/secret\"", "must name a variable"),
        ("webhook = { env = \"A B\" }", "must contain only names"),
        ("webhook = { env = \"A\", url = \"x\" }", "must have the key `env` and no other"),
        ("on = [\"ends\"]", "did you mean `end`?"),
        ("on = []", "must not be empty"),
    ] {
        let refused = read(&format!("{MINIMAL}[notify]\n{line}\n")).unwrap_err();
        assert!(refused.contains(part), "{line}: {refused}");
    }
    let bare = read(&format!("{MINIMAL}[notify]\n")).unwrap();
    assert_eq!(bare.notify, Some(NotifySection::default()));
    let hash = |text: &str| read(text).unwrap().config_sha256();
    assert_eq!(hash(MINIMAL), hash(&format!("{MINIMAL}[notify]\non = [\"end\"]\n")));
}

/// Proves that entries of a retry plan add up, the later one first, and that an entry of a stored plan of before there were
/// resources is read as its variables.
#[test]
fn entries_of_a_plan_add_up() {
    let plan = read(&format!(
        "{MINIMAL}[retry]\nhost_oom = {{ plan = [{{ set = {{ A = 1, B = 1 }}, resources = {{ memory = \"1GiB\", cpus = 2 }} }}, \
         {{ set = {{ B = 2 }}, resources = {{ memory = \"2GiB\", gpu = \"a100\" }}, placement = {{ exclude_hosts = [\"n1\"] }} }}, \
         {{ placement = {{ exclude_hosts = [\"n2\", \"n1\"] }}, launcher = \"local\" }}] }}\n"
    ))
    .unwrap();
    let mut in_force = PlanEntry::default();
    for entry in &plan.retry.rules["host_oom"].plan {
        in_force.add(entry);
    }
    assert_eq!(
        in_force.to_string(),
        "A=1 B=2 gpu=a100 cpus=2 memory=2.0 GiB exclude_hosts=n1,n2 launcher=local"
    );
    let resources = plan.resources.changed(&in_force.resources);
    assert_eq!((resources.gpus, resources.cpus, resources.memory_bytes), (0, Some(2), Some(2 << 30)));
    let stored = serde_json::to_value(&in_force).unwrap();
    assert_eq!(serde_json::from_value::<PlanEntry>(stored).unwrap(), in_force);
    let older: PlanEntry = serde_json::from_str("{\"BATCH\": \"16\"}").unwrap();
    assert_eq!(older.to_string(), "BATCH=16");
    assert!(serde_json::from_str::<PlanEntry>("{\"set\": {}, \"resource\": {}}").is_err());
}

/// Proves that `docs/run-file.md` has a heading for each section and names each of its keys below it.
#[test]
fn the_documentation_names_every_key() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/run-file.md")).unwrap();
    for section in SCHEMA.iter().filter(|section| !section.name.is_empty()) {
        let name = section
            .name
            .replace(".*.plan.resources", ".*")
            .replace(".*.plan.placement", ".*")
            .replace(".*.plan", ".*")
            .replace('*', "NAME");
        // Its own heading, or that of the nearest section around it.
        let around = std::iter::successors(Some(name.as_str()), |name| Some(name.rsplit_once('.')?.0));
        let start = around.into_iter().find_map(|name| document.find(&format!("\n## `[{name}]`")));
        let Some(start) = start.or_else(|| document.find(&format!("\n## `[{name}.NAME]`"))) else {
            panic!("no heading for `{name}`");
        };
        let end = document[start + 1..].find("\n## ").map_or(document.len(), |end| start + 1 + end);
        for key in section.keys {
            assert!(
                document[start..end].contains(&format!("`{key}`")),
                "`{key}` of `{name}` is not described"
            );
        }
    }
}

/// Proves that each example in `docs/run-file.md` and each run file in `examples/` is read without a mistake.
#[test]
fn the_examples_are_read() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let document = std::fs::read_to_string(root.join("docs/run-file.md")).unwrap();
    let blocks: Vec<&str> =
        document.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let text = if block.contains("[run]") { block.to_owned() } else { format!("{MINIMAL}{block}") };
        read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    }
    let examples = std::fs::read_dir(root.join("examples")).into_iter().flatten().flatten();
    for path in
        examples.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "toml"))
    {
        read(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves that no text and no override makes the reader or the renderer panic, and that every span is inside its
    /// text.
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), overrides in prop::collection::vec(any::<String>(), 0..3)) {
        check_spans(&text, &overrides);
    }

    /// The same, for texts close to valid ones: the full file with a piece replaced, and overrides of its keys.
    #[test]
    fn any_damage_is_read_or_refused(at in 0..FULL.len(), length in 0..40usize, piece in "[\\[\\]{}=\"'.,#a-z0-9%\n ä]{0,12}", value in "\\PC{0,12}") {
        let (start, end) = (at, (at + length).min(FULL.len()));
        let text = format!("{}{piece}{}", &FULL[..start], &FULL[end..]);
        check_spans(&text, &[format!("run.name={value}"), format!("{value}=1"), format!("retry.{piece}={value}")]);
    }
}

fn check_spans(text: &str, overrides: &[String]) {
    let patch = PlanPatch::of_command_line(overrides);
    let Err(errors) = patch.and_then(|patch| parse(text, "f", patch.changes())) else { return };
    assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
    for error in errors {
        let source = error.override_text.as_deref().unwrap_or(text);
        assert!(error.span.start <= error.span.end && error.span.end <= source.len(), "{error:?}");
        assert!(error.line >= 1 && error.column >= 1);
        assert!(error.render_plain(text).contains('^'));
    }
}
