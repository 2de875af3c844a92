use super::ended;
use crate::classify::settings::has_value;
use crate::classify::*;

const NUMBER: &str = "ValueError: could not convert string to float: '0,1'";

/// What a script prints that fails in `function` at `code`.
fn failed(function: &str, code: &str) -> TerminationEvidence {
    let log = format!(
        "Traceback (most recent call last):\n  File \"/a/train.py\", line 9, in {function}\n    {code}\n{NUMBER}\n"
    );
    ended(Some(1), None, &log)
}

/// Proves that a value which cannot be read is one of the settings where the line converts one, whatever the function
/// is called, or where only the function reads settings; and that a value of a row, of a column or of a reader of rows
/// is the data's.
#[test]
fn a_value_of_the_settings_is_not_the_data() {
    for (function, code, reason) in [
        ("train", "lr = float(cfg[\"lr\"])", Reason::CodeError),
        ("train", "scale = float(os.environ[\"SCALE\"])", Reason::CodeError),
        ("train_one_epoch", "opt = SGD(weights, lr=float(settings.lr))", Reason::CodeError),
        ("load_data", "scale = float(args.data_scale)", Reason::CodeError),
        ("main", "scale = float(self.hparams.scale)", Reason::CodeError),
        ("<module>", "x = float(json.load(open(sys.argv[1]))[\"x\"])", Reason::CodeError),
        ("parse_config", "return {k: float(v) for k, v in raw.items()}", Reason::CodeError),
        ("train", "x = float(row[\"x\"])", Reason::DataError),
        ("<module>", "x = [float(v) for v in line.split(\",\")]", Reason::DataError),
        ("main", "x = data[args.column].astype(float)", Reason::DataError),
        ("load_rows", "x = [float(v) for v in parts[: args.width]]", Reason::DataError),
        ("__getitem__", "x = float(cfg[\"x\"])", Reason::DataError),
    ] {
        let verdict = classify(&failed(function, code));
        assert_eq!(verdict.reason, reason, "{function}: {code}: {verdict:#?}");
    }
}

/// Proves that a value which a file of settings has is one of the settings where nothing says that the line reads data,
/// and that such files are not read where no value is rejected.
#[test]
fn a_value_that_a_file_of_settings_has_is_one() {
    let of = |code: &str, settings: &str| {
        let mut evidence = failed("<module>", code);
        evidence.take_settings(|| vec![settings.to_owned()]);
        classify(&evidence).reason
    };
    let (plain, of_row) = ("scale = float(c[\"scale\"])", "scale = float(row[\"scale\"])");
    assert_eq!(of(plain, "steps: 60\nscale: 0,1\n"), Reason::CodeError);
    assert_eq!(of(plain, "steps: 60\nscale: 0.1\n"), Reason::DataError);
    assert_eq!(of(of_row, "scale: 0,1\n"), Reason::DataError);
    let mut other = ended(Some(1), None, "KeyError: 'scale'\n");
    other.take_settings(|| panic!("no value is rejected"));
    assert!(other.rejected_settings.is_empty());
}

/// Proves in which places of a file of settings a value counts.
#[test]
fn values_of_settings_are_found() {
    for (text, expected) in [
        ("lr: 0,1\n", true),
        ("lr: 0,1", true),
        ("lr: '0,1' # was 0.1", true),
        ("{\"lr\": \"0,1\", \"steps\": 3}", true),
        ("lr=0,1\n", true),
        ("lr: 10,15\n", false),
        ("betas: [0,1]\n", false),
        ("0,1: x\n", false),
        ("lr: 0.1\n", false),
    ] {
        assert_eq!(has_value(text, "0,1"), expected, "{text}");
    }
}
