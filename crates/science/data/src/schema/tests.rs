use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use tempfile::TempDir;
use trackway_tables::pass::UNWATCHED;
use trackway_tables::profile::Profile;
use trackway_tables::read::Source;
use trackway_tables::write::{TableFile, TableFormat};
use trackway_tables::{DataSpec, ReadContext};

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        fs::write(folder.path().join(path), text).unwrap();
    }
    folder
}

fn open(base: &Path, path: &str) -> Source {
    Source::open(
        base,
        "train",
        &DataSpec { path: path.into(), ..DataSpec::default() },
        &ReadContext::default(),
    )
    .unwrap()
}

/// `a < b`, the only rule of these tests.
struct LessThan;

impl RowRule for LessThan {
    fn holds(&self, batch: &RecordBatch) -> Result<BooleanArray, String> {
        let numbers =
            |name: &str| batch.column_by_name(name).map(|it| it.as_primitive::<Int64Type>().clone());
        let (Some(a), Some(b)) = (numbers("a"), numbers("b")) else { return Err("no a or b".into()) };
        Ok(a.iter().zip(b.iter()).map(|(a, b)| Some(a? < b?)).collect())
    }
}

fn checked_in(base: &Path, data: &str, schema: &str, environment: Option<&str>) -> SchemaCheck {
    let schema = Schema::from_toml(schema).unwrap();
    let surroundings = Surroundings {
        now_micros: 1_767_312_000_000_000, // 2026-01-02
        environment,
        compile: &|rule| {
            if rule.sql == "a < b" { Ok(Box::new(LessThan)) } else { Err("not understood".into()) }
        },
        open: &|to| Ok(open(base, &to.path)),
    };
    check(&open(base, data), &schema, &surroundings, &UNWATCHED).unwrap()
}

fn reported(checked: &SchemaCheck) -> Vec<String> {
    let rows = |finding: &trackway_core::checks::Finding| {
        let rows = finding
            .examples
            .iter()
            .map(|it| format!("{}={}", it.row.unwrap(), it.value.as_deref().unwrap_or("")));
        rows.collect::<Vec<_>>().join(" ")
    };
    checked
        .findings
        .iter()
        .map(|it| format!("{:?} {}: {} [{}]", it.severity, it.check, it.message, rows(it)))
        .collect()
}

fn said(data: &str, schema: &str) -> Vec<String> {
    let folder = folder(&[("a.csv", data)]);
    reported(&checked_in(folder.path(), "a.csv", &format!("version = 1\n{schema}"), None))
}

/// Proves that a Parquet column of strings is not of the type that the schema requires, even if each of them is a number, while the
/// values of a text file are; and that strings that are times are times.
#[test]
fn a_stored_type_counts() {
    let folder = folder(&[("a.csv", "x,at\n1.5,2026-01-01\n")]);
    let texts = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let batch = RecordBatch::try_from_iter([("x", texts("1.5")), ("at", texts("2026-01-01"))]).unwrap();
    let path = folder.path().join("a.parquet");
    let mut file = TableFile::create(&path, TableFormat::Parquet, &batch.schema()).unwrap();
    file.write(&batch).unwrap();
    file.finish().unwrap();
    let schema = "version = 1\n[[column]]\nname = \"x\"\ntype = \"float\"\nseverity = \"block\"\n[[column]]\nname = \"at\"\ntype = \"timestamp\"";
    let found = |name: &str| reported(&checked_in(folder.path(), name, schema, None));
    assert_eq!(found("a.csv"), Vec::<String>::new());
    assert_eq!(
        found("a.parquet"),
        ["Block schema.type: `x` is stored as text in `a.parquet`, not as float []"]
    );
}

/// Proves that each rule of a column finds what breaks it, with the count and the places, and nothing else.
#[test]
fn rules_of_columns() {
    let data = "n,t,k\n5,abc,x\n-1,ABC,x\n,abcdef,y\n12,,z\noops,a1,w\n";
    let found = |rules: &str| said(data, &format!("table.other_columns = \"allow\"\n[[column]]\n{rules}"));
    let cases = [
        (
            "name = \"n\"\ntype = \"int\"",
            vec!["Warn schema.type: 1 of 5 values of `n` are not of type int [6=oops]"],
        ),
        (
            "name = \"n\"\ntype = \"text\"\nnull_share_max = 0.1\nseverity = \"block\"",
            vec!["Block schema.nulls: 1 of 5 values of `n` are missing (0.2000), more than 0.1 of all []"],
        ),
        (
            "name = \"t\"\ntype = \"text\"\nregex = \"[a-z]+\"",
            vec!["Warn schema.regex: 2 of 5 values of `t` are not of the required form [3=ABC 6=a1]"],
        ),
        (
            "name = \"t\"\ntype = \"text\"\nlength_min = 3\nlength_max = 5",
            vec![
                "Warn schema.length_min: 1 of 5 values of `t` are too short [6=a1]",
                "Warn schema.length_max: 1 of 5 values of `t` are too long [4=abcdef]",
            ],
        ),
        (
            "name = \"k\"\ntype = \"text\"\nvalues = [\"x\", \"y\"]\nunique = true",
            vec![
                "Warn schema.values: 2 of 5 values of `k` are not among the values allowed [5=z 6=w]",
                "Warn schema.unique: `k` has 1 repeated value, but must be unique [3=x]",
            ],
        ),
        ("name = \"gone\"\ntype = \"text\"", vec!["Block schema.column: column `gone` is missing []"]),
        ("name = \"gone\"\ntype = \"text\"\nrequired = false", vec![]),
    ];
    for (rules, expected) in cases {
        assert_eq!(found(rules), expected, "{rules}");
    }
}

/// Proves that bounds, order and allowed values of numbers and times are checked, across units of work too.
#[test]
fn rules_of_numbers_and_times() {
    let data = "n,at,c\n1,2026-01-01,1\n2,2026-01-03,2\n7,2026-01-02,3\n-1,,2.5\n";
    let rules = "[[column]]\nname = \"n\"\ntype = \"int\"\nmin = 0\nmax = 5\n[[column]]\nname = \"at\"\ntype = \"timestamp\"\nmin = \"2026-01-02\"\nincreasing = true\n[[column]]\nname = \"c\"\ntype = \"float\"\nvalues = [1, 2, 2.5]\n";
    assert_eq!(
        said(data, rules),
        [
            "Warn schema.min: 1 of 4 values of `n` are below the smallest value allowed [5=-1]",
            "Warn schema.max: 1 of 4 values of `n` are above the largest value allowed [4=7]",
            "Warn schema.min: 1 of 4 values of `at` are below the smallest value allowed [2=2026-01-01T00:00:00]",
            "Warn schema.increasing: 1 of 4 values of `at` are below the value before it [4=1767312000000000]",
            "Warn schema.values: 1 of 4 values of `c` are not among the values allowed [4=3.0]",
        ]
    );
    let long: String =
        (0..200_000).map(|row| format!("{}\n", if row == 150_000 { 0 } else { row })).collect();
    let found = said(
        &format!("n\n{long}"),
        "[[column]]\nname = \"n\"\ntype = \"int\"\nincreasing = true\nunique = true\n",
    );
    assert_eq!(
        found,
        [
            "Warn schema.increasing: 1 of 200000 values of `n` are below the value before it [150002=0]",
            "Warn schema.unique: `n` has 1 repeated value, but must be unique [150002=0]",
        ]
    );
}

/// Proves that the table's rules hold: rows, rows that cannot be read, age, unnamed columns.
#[test]
fn rules_of_the_table() {
    let schema = "[table]\nrows_min = 9\nrejected_share_max = 0.1\ntime = \"at\"\nfresh_within_hours = 5.0\n[[column]]\nname = \"v\"\ntype = \"int\"\n";
    assert_eq!(
        said("at,v\n2026-01-01T12:00:00,1\n2026-01-01,2\n1,2,3\n", schema),
        [
            "Warn schema.other_column: column `at` is not in the schema []",
            "Block schema.rows: 3 rows, fewer than the required 9 []",
            "Block schema.rejected: 1 of 3 rows cannot be read []",
            "Block schema.fresh: the newest row is 12.0 hours old, more than the 5 allowed []",
        ]
    );
}

/// Proves that values which another file does not have are found, that rules of rows are applied, that what cannot be
/// checked is reported, and that a rule of another environment does not apply.
#[test]
fn what_lies_outside_the_column() {
    let folder = folder(&[("a.csv", "a,b,user\n1,2,u1\n3,2,u9\n4,,\n"), ("users.csv", "id\nu1\nu2\n")]);
    let schema = "version = 1\n[[column]]\nname = \"user\"\ntype = \"text\"\nreferences = { path = \"users.csv\", column = \"id\" }\n[[column]]\nname = \"label\"\ntype = \"int\"\nenvironments = [\"train\"]\n[[rule]]\nsql = \"a < b\"\nseverity = \"block\"\n[[rule]]\nsql = \"oh my\"\n[table]\nother_columns = \"allow\"\n";
    let found = checked_in(folder.path(), "a.csv", schema, Some("serve"));
    assert_eq!(
        reported(&found),
        [
            "Warn schema.references: 1 of 3 values of `user` are not in `id` of users.csv [3=u9]",
            "Block schema.rule: `a < b` is violated by 1 row [3=]",
        ]
    );
    assert_eq!(found.not_run, ["`oh my`: not understood"]);
    assert!(
        reported(&checked_in(folder.path(), "a.csv", schema, Some("train")))[0]
            .contains("`label` is missing")
    );
}

/// Proves that a schema that makes no sense is refused with what is wrong and where.
#[test]
fn nonsense_is_refused() {
    let refused = |text: &str| Schema::from_toml(&format!("version = 1\n{text}")).unwrap_err().to_string();
    let column = |rules: &str| refused(&format!("[[column]]\nname = \"x\"\n{rules}"));
    assert!(refused("colum = 1").contains("line 2") && refused("colum = 1").contains("colum"));
    assert_eq!(
        column("type = \"int\"\nmin = 3\nmax = 1"),
        "column `x`: min is above max: no value is between them"
    );
    assert!(column("type = \"text\"\nregex = \"(\"").contains("the regex cannot be used"));
    assert!(column("type = \"int\"\nregex = \"a\"").contains("regex and lengths are for strings"));
    assert!(column("type = \"timestamp\"\nmin = \"soon\"").contains("invalid time `soon`"));
    assert!(column("type = \"int\"\nnull_share_max = 3").contains("it must be between 0 and 1"));
    assert_eq!(
        refused("[[column]]\nname=\"x\"\ntype=\"int\"\n[[column]]\nname=\"x\"\ntype=\"int\""),
        "the schema names column `x` twice"
    );
    assert_eq!(
        Schema::from_toml("version = 2").unwrap_err().to_string(),
        "the schema has version 2, this program reads 1"
    );
}

fn inferred(base: &Path, data: &str) -> String {
    infer(&Profile::of(&mut open(base, data), None, &UNWATCHED).unwrap().0)
}

/// Proves what is inferred of a small table, to the letter.
#[test]
fn a_schema_is_inferred() {
    let rows: String = (0..120)
        .map(|row| {
            format!(
                "{row},{},C-{:03},{}\n",
                ["yes", "no"][row % 2],
                row * 7 % 1000,
                if row == 3 { "" } else { "-1.5" }
            )
        })
        .collect();
    let folder = folder(&[("a.csv", &format!("id,\"an \"\"swer\"\"\",code,v\n{rows}"))]);
    let text = inferred(folder.path(), "a.csv");
    let columns: Vec<&str> = text.split("\n[[column]]\n").skip(1).collect();
    assert_eq!(
        columns[0],
        "name = \"id\"\ntype = \"int\"\nnull_share_max = 0\nmin = 0\n# max = 119\nunique = true\n# increasing = true\n"
    );
    assert_eq!(
        columns[1],
        "name = \"an \\\"swer\\\"\"\ntype = \"text\"\nnull_share_max = 0\nvalues = [\"no\", \"yes\"]\n# length_min = 2\n# length_max = 3\n"
    );
    assert!(columns[2].contains("# regex = \"[A-Z]\\\\-[0-9][0-9][0-9]\""), "{}", columns[2]);
    assert!(
        columns[3].starts_with(
            "name = \"v\"\ntype = \"float\"\nnull_share_max = 0.013\n# min = -1.5\n# max = -1.5\n"
        )
    );
}

/// Proves on the Adult file as published that the inferred schema holds for it, and that the test file's labels break
/// it.
#[test]
fn adult_as_published() {
    let Some(shared) = std::env::var_os("TRACKWAY_SHARED") else {
        trackway_skip::skip!("TRACKWAY_SHARED is not set");
        return;
    };
    let base = Path::new(&shared).join("data");
    let schema = inferred(&base, "adult-train.csv");
    assert_eq!(reported(&checked_in(&base, "adult-train.csv", &schema, None)), Vec::<String>::new());
    let found = reported(&checked_in(&base, "adult-test.csv", &schema, None));
    let label = found.iter().find(|it| it.contains("column_15")).unwrap();
    assert!(label.starts_with("Warn schema.values: 16281 of 16281 values of `column_15`"), "{label}");
    assert_eq!(found.len(), 1, "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Proves that an inferred schema is readable and holds for the table it was made from, whatever is in it.
    #[test]
    fn inferred_schemas_hold(data in "[a-c],[x-z]\n([0-9.eE+-]{0,6},[A-Ca-cé\"?' ]{0,4}\n){0,150}") {
        let folder = folder(&[("a.csv", &data)]);
        let schema = inferred(folder.path(), "a.csv");
        let found = checked_in(folder.path(), "a.csv", &schema, None);
        prop_assert_eq!(reported(&found), Vec::<String>::new(), "{}", schema);
    }
}

/// Proves that values which are equal only because they were rounded are not called repeated, and that the rule did not run then.
#[test]
fn rounded_values_are_not_called_repeated() {
    let folder = folder(&[("a.csv", "a\n0.1234567890123456781\n0.1234567890123456782\n")]);
    let schema = "version = 1\n[[column]]\nname = \"a\"\ntype = \"float\"\nunique = true\n";
    let found = checked_in(folder.path(), "a.csv", schema, None);
    assert_eq!(reported(&found), Vec::<String>::new());
    assert!(matches!(found.not_run.as_slice(), [why] if why.contains("2 values")), "{:?}", found.not_run);
}

/// Proves that bounds, values and the order of whole numbers are exact up to 64 bits, where floats would round them.
#[test]
fn whole_numbers_are_compared_exactly() {
    let rules = "[[column]]\nname = \"a\"\ntype = \"int\"\nmax = 9223372036854775806\nincreasing = true\n";
    let found = said("a\n9223372036854775807\n9223372036854775806\n", rules);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("schema.max") && found[0].ends_with("[2=9223372036854775807]"), "{found:?}");
    assert!(found[1].contains("increasing") && found[1].ends_with("[3=9223372036854775806]"), "{found:?}");
    let rules = "[[column]]\nname = \"a\"\ntype = \"int\"\nmin = 12345678901234567891\n";
    let found = said("a\n12345678901234567890\n12345678901234567891\n", rules);
    assert!(matches!(found.as_slice(), [one] if one.ends_with("[2=12345678901234567890]")), "{found:?}");
    let rules = "[[column]]\nname = \"a\"\ntype = \"int\"\nvalues = [1152921504606846976]\n";
    let found = said("a\n1152921504606846976\n1152921504606846977\n", rules);
    assert!(matches!(found.as_slice(), [one] if one.ends_with("[3=1152921504606846977]")), "{found:?}");
}
