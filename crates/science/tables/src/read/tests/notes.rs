//! What reading leaves out, cuts, renames or reads as something else.

use crate::pass::{UNWATCHED, scan};
use crate::{DecimalMark, ReadContext};

use super::*;

/// Proves that whatever a reader leaves out, cuts, renames or reads as something else is counted with its first line, and that a file
/// which is read as it is written has no note.
#[test]
fn what_reading_changes_is_counted() {
    let plain = |bytes: &[u8]| notes("a.csv", bytes, DataSpec::default());
    assert_eq!(plain(b"a,b\n1,x\n2,\" y \"\n"), Vec::<String>::new());
    assert_eq!(plain(b"a,b\n1, x\n2,y\n"), ["trimmed×1 at 2"]);
    assert_eq!(plain(b"a,b\n1,x\n\n2,y\n\n"), ["empty_lines×1 at 3"]);
    assert_eq!(plain(b"a,b\r\n1,x\r\n\r\n2,y\r\n\r\n"), ["empty_lines×1 at 3"]);
    assert_eq!(plain(b"a,b\r\n1,x\r\n2,y\r\n"), Vec::<String>::new());
    assert_eq!(plain(b"a,b\r1,x\r2,y\r"), Vec::<String>::new());
    assert_eq!(plain(b"a,a\n1,2\n"), ["renamed_column×1"]);
    assert_eq!(plain(b"a,b\n1,x\n2\n"), ["rejected_rows×1 at 3"]);
    assert_eq!(plain(b"a,b\n1,x\n2,\xFF\n"), ["recoded×1 at 3"]);
    assert_eq!(plain(b"a,b\n1,x\n2,NA\n"), ["missing_texts×1"]);
    assert_eq!(plain(b"a,b\n0.5,x\n0.33333333333333333333,y\n"), ["rounded×1 at 3"]);
    assert_eq!(plain(b"t,b\n2024-01-02 03:04:05.123456789,1\n2024-01-02,2\n"), ["rounded×1 at 2"]);
    assert_eq!(plain(b"a,b\n1,x\n02,y\n"), ["kept_as_text×1 at 3"]);
    assert_eq!(plain(b"a,b\n1/2/2024,x\n31/1/2024,y\n"), ["date_order×1 at 3"]);
    let numbers: String = (0..40).map(|row| format!("{row}\n")).collect();
    assert_eq!(plain(format!("a\n{numbers}oops\n").as_bytes()), ["misfits×1 at 42"]);
    let given = DataSpec { missing: vec!["NA".to_owned()], ..DataSpec::default() };
    assert_eq!(notes("a.csv", b"a,b\n1,x\n2,NA\n", given), Vec::<String>::new());
    let json = |bytes: &[u8]| notes("a.jsonl", bytes, DataSpec::default());
    assert_eq!(json(b"{\"a\":1,\"a\":2}\n{\"a\":3}\n"), ["renamed_column×1"]);
    assert_eq!(json(b"{\"a\":1}\n{\n"), ["rejected_rows×1 at 2"]);
    assert_eq!(json(b"{\"a\":0.1234567890123456789}\n"), ["rounded×1 at 1"]);
    assert_eq!(json(b"{\"a\":\"1\"}\n{\"a\":1}\n{\"a\":null}\n"), ["retyped×1 at 2"]);
    assert_eq!(json(b"{\"a\":18446744073709551617}\n{\"a\":1}\n"), ["kept_as_text×1 at 1"]);
    assert_eq!(plain(b",b\n1,x\n2,y\n"), ["renamed_column×1"]);
    assert_eq!(plain(b"t,b\n2016-12-31 23:59:60,1\n2024-01-02,2\n"), ["rounded×1 at 2"]);
    assert_eq!(plain(b"sep=;\na;b\n1;x\n"), ["layout×1"]);
}

/// Proves that halves of letters in UTF-16, which are no text, are counted, and that two different ones stay apart.
#[test]
fn halves_of_letters_are_counted_and_stay_apart() {
    let units = [0xFEFF, 0x61, 0x2C, 0x62, 0x0A, 0x31, 0x2C, 0xD800, 0x0A, 0x31, 0x2C, 0xD801, 0x0A];
    let bytes: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_le_bytes()).collect();
    assert_eq!(notes("halves.csv", &bytes, DataSpec::default()), ["recoded×2 at 2"]);
    let folder = folder(&[("halves.csv", &bytes)]);
    let (rows, ..) = read_all(folder.path(), &spec_of("halves.csv")).unwrap();
    let values: Vec<&str> = rows.iter().filter_map(|row| row.split('|').nth(1)).collect();
    assert!(matches!(values.as_slice(), [one, other] if one != other), "{values:?}");
}

/// Proves that a header of years beside words, or of places behind an empty field, is one, and that rows of data of that form are not.
#[test]
fn headers_of_numbers_are_headers() {
    check(
        "years.csv",
        b"country,2019,2020\nDE,1,2\nFR,3,4\n",
        "country:Text 2019:Int 2020:Int\n0.2: DE|1|2\n0.3: FR|3|4",
    );
    check(
        "frame.csv",
        b",0,1\n0,2.5,x\n1,3.5,y\n",
        "column_1:Int 0:Float 1:Text\n0.2: 0|2.5|x\n0.3: 1|3.5|y",
    );
    check(
        "data.csv",
        b"DE,2019,2020\nFR,2018,2021\n",
        "column_1:Text column_2:Int column_3:Int\n0.1: DE|2019|2020\n0.2: FR|2018|2021",
    );
}

/// Proves that comments are counted over all parts of a file.
#[test]
fn comments_of_all_parts_are_counted() {
    let one = |row| {
        let comment_lines = Occurrences { count: 1, first: Some(Place { file: 0, row }) };
        Coverage { comment_lines, ..Coverage::default() }
    };
    let mut coverage = one(3);
    coverage.merge(one(9));
    assert_eq!(coverage.comment_lines, Occurrences { count: 2, first: Some(Place { file: 0, row: 3 }) });
}

/// Proves that of many columns with blanks around their strings there is one sentence, with all values and the first line.
#[test]
fn blanks_in_many_columns_are_one_sentence() {
    let sentences = |text: &[u8]| {
        let folder = folder(&[("a.csv", text)]);
        let (_, _, source) = read_all(folder.path(), &spec_of("a.csv")).unwrap();
        (source.reading().len(), source.notes())
    };
    let (notes, shown) = sentences(b"a,b,c,d\nv, v, v,v\nx, x, x, x\ny, y, y, y\n");
    let expected =
        "3 columns, such as `b`: 8 values are read without the blanks around, the first in line 2 of `a.csv`";
    assert_eq!((notes, shown), (3, vec![expected.to_owned()]));
    let (notes, shown) = sentences(b"a,b,c\nx, x, x\n");
    assert_eq!((notes, shown.len()), (2, 2));
}

/// Proves that a strict reading ends with what would have been changed, and that one without a change does not.
#[test]
fn a_strict_reading_ends_with_what_would_be_changed() {
    let folder = folder(&[("a.csv", b"a,b\n1,x\n2\n"), ("b.csv", b"a,b\n01,x\n2,y\n")]);
    let read = |name: &str| {
        let context = ReadContext::default().strict(true);
        let mut source = Source::open(folder.path(), "train", &spec_of(name), &context).unwrap();
        scan(&mut source, &|_| Rows::default(), &UNWATCHED).map(|(rows, _)| rows.0.len())
    };
    let refused = read("a.csv").unwrap_err();
    assert!(
        matches!(&refused, DataError::NotAsWritten { what, .. } if what.contains("line 3 of `a.csv`")),
        "{refused}"
    );
    assert_eq!(read("b.csv").unwrap(), 2);
}

/// Proves that a title, comments and a separator at the end of each row are read by the options that the note on such a file names, and
/// that all rows are refused without them.
#[test]
fn odd_layouts_are_read_by_an_option() {
    for (text, spec, option) in [
        (
            &b"Report, of, May\na,b\n1,x\n2,y\n3,z\n"[..],
            DataSpec { skip_lines: 1, ..DataSpec::default() },
            "--skip-lines 1",
        ),
        (
            b"# made by x\na,b\n1,x\n# middle, \"odd\n2,y\n3,z\n",
            DataSpec { comment: Some('#'), ..DataSpec::default() },
            "--comment '#'",
        ),
        (
            b"a,b\n1,x,\n2,y,\n3,z,\n",
            DataSpec { trailing_separator: true, ..DataSpec::default() },
            "--trailing-separator",
        ),
        (
            b"a,b,\n1,x,\n2,y,\n3,z,\n",
            DataSpec { trailing_separator: true, ..DataSpec::default() },
            "--trailing-separator",
        ),
    ] {
        let found = story("a.csv", text, spec);
        let rows: Vec<&str> =
            found.lines().map(|line| line.split_once(": ").map_or(line, |(_, row)| row)).collect();
        assert_eq!(rows, ["a:Int b:Text", "1|x", "2|y", "3|z"], "{found}");
        let folder = folder(&[("a.csv", text)]);
        let source =
            Source::open(folder.path(), "train", &spec_of("a.csv"), &ReadContext::default()).unwrap();
        let layout = source.reading().into_iter().find(|note| note.kind == ReadNoteKind::Layout);
        let message = layout.map(|note| note.message).unwrap_or_default();
        assert!(message.contains(option), "{message}");
    }
}

/// Proves that names in a header that is not UTF-8 are read as its values are, and that a note says so: once for files
/// of one kind, and not where the user names the columns.
#[test]
fn a_header_may_be_no_utf8() {
    let text = &b"pr\xe9nom,\xa3\nJose,1\nAna,2\n"[..];
    assert!(story("a.csv", text, DataSpec::default()).starts_with("prénom:Text £:Int\n"));
    let folder = folder(&[("a.csv", text), ("b.csv", text), ("c.csv", &b"pr\xc3\xa9nom,x\nJose,1\n"[..])]);
    let notes = |spec: DataSpec| {
        let source = Source::open(folder.path(), "train", &spec, &ReadContext::default()).unwrap();
        source.reading().into_iter().map(|note| note.message).collect::<Vec<_>>()
    };
    let said = ["the header of `a.csv` is not UTF-8: its names are read as Windows-1252"];
    assert_eq!(notes(spec_of("[ab].csv")), said);
    assert!(notes(spec_of("c.csv")).is_empty());
    let columns = vec!["a".to_owned(), "b".to_owned()];
    assert!(notes(DataSpec { columns, header: Some(true), ..spec_of("a.csv") }).is_empty());
}

/// Proves that numbers with a decimal comma are text with a note that names the option, and numbers with it whatever the separator; that
/// lists have no note, that a comma which may be one of thousands is noted as such, and that points are noted beside the option.
#[test]
fn a_decimal_comma_is_read_by_an_option() {
    let comma = || DataSpec { decimal: Some(DecimalMark::Comma), ..DataSpec::default() };
    let none = Vec::<String>::new();
    for text in [
        &b"id;price\n1;47,00\n2;1.234,50\n3;-0,5\n4;12\n5;7,25\n"[..],
        b"id,price\n1,\"47,00\"\n2,\"1.234,50\"\n3,\"-0,5\"\n4,12\n5,\"7,25\"\n",
    ] {
        assert!(story("a.csv", text, DataSpec::default()).starts_with("id:Int price:Text\n0.2: 1|47,00\n"));
        assert_eq!(notes("a.csv", text, DataSpec::default()), ["decimal_mark×4 at 2"]);
        assert_eq!(
            story("a.csv", text, comma()),
            "id:Int price:Float\n0.2: 1|47.0\n0.3: 2|1234.5\n0.4: 3|-0.5\n0.5: 4|12.0\n0.6: 5|7.25"
        );
        assert_eq!(notes("a.csv", text, comma()), none);
    }
    let message = |text: &[u8], spec: DataSpec| {
        let folder = folder(&[("a.csv", text)]);
        let (_, _, source) = read_all(folder.path(), &DataSpec { path: "a.csv".into(), ..spec }).unwrap();
        source.notes().join("; ")
    };
    let clear = message(b"id;price\n1;47,00\n2;1,5\n3;2,5\n4;3,5\n5;4,5\n", DataSpec::default());
    assert_eq!(
        clear,
        "`price` is read as text: its numbers have a decimal comma, the first in line 2 of `a.csv`: --decimal , reads them \
         (`decimal = \",\"` in a run file)"
    );
    let thousands = b"id;n\n1;1,234\n2;2,345\n3;3,456\n4;4,567\n5;5,678\n";
    let unclear = message(thousands, DataSpec::default());
    assert!(unclear.contains("of decimals or of thousands") && unclear.contains("--decimal ,"), "{unclear}");
    assert!(story("a.csv", thousands, comma()).starts_with("id:Int n:Float\n0.2: 1|1.234\n"));
    let points = b"id;x;n\n1;1.5;1.234\n2;2.5;12.345\n3;3.5;7\n4;4.5;8\n5;5.5;1.234.567\n";
    assert!(story("a.csv", points, comma()).starts_with("id:Int x:Text n:Int\n0.2: 1|1.5|1234\n"));
    let beside = message(points, comma());
    assert!(
        beside.starts_with("`x` is read as text: its numbers have a decimal point, the first in line 2"),
        "{beside}"
    );
    let lists = b"id;tags\n1;1,2,3\n2;1,2\n3;4,5,6\n4;1\n5;2,3,4\n";
    assert_eq!(notes("a.csv", lists, DataSpec::default()), none);
    assert!(story("a.csv", lists, comma()).starts_with("id:Int tags:Text\n0.2: 1|1,2,3\n0.3: 2|1,2\n"));
}

/// Proves that a column of numbers which is text because of a few strings has a note with their count, what they are, the first line and
/// the options that read them as missing, in CSV and JSON lines; that these options read numbers; that a string which a shell would
/// change, or that is private, is in no option; and that a column of which half are strings has no note.
#[test]
fn strings_that_make_a_text_of_numbers_are_named() {
    let message = |name: &str, text: &str, spec: DataSpec| {
        let folder = folder(&[(name, text.as_bytes())]);
        let (_, _, source) = read_all(folder.path(), &DataSpec { path: name.into(), ..spec }).unwrap();
        source.notes().join("; ")
    };
    let usual = |text: &str| message("a.csv", text, DataSpec::default());
    let text = "id,age\n1,34\n2,n/a?\n3,29\n4,unknown\n5,41\n6,\n";
    assert_eq!(
        usual(text),
        "`age` is read as text: 2 of its 5 values are not of type int (`n/a?`, `unknown`), the first in line 3 of `a.csv`; \
         with --missing 'n/a?' --missing unknown they are missing instead of the usual strings (`missing` in a run file)"
    );
    assert_eq!(notes("a.csv", text.as_bytes(), DataSpec::default()), ["kept_as_text×2 at 3"]);
    let missing = || vec!["n/a?".to_owned(), "unknown".to_owned()];
    let asked = DataSpec { missing: missing(), ..DataSpec::default() };
    assert_eq!(story("a.csv", text.as_bytes(), asked.clone()).lines().next(), Some("id:Int age:Int"));
    assert_eq!(message("a.csv", text, asked), "");
    let more = DataSpec { missing: vec!["-".to_owned()], ..DataSpec::default() };
    let json = "{\"a\":1}\n{\"a\":2.5}\n{\"a\":\"--\"}\n{\"a\":\"-\"}\n";
    let found = message("a.jsonl", json, more);
    assert!(found.contains("1 of its 3 values are not of type float (`--`), the first in line 3"), "{found}");
    assert!(found.contains("; with --missing=-- they are missing (`missing`"), "{found}");
    let several = usual("a\n1\n2\n3\n4\n5\nv\nw\nx\ny\n");
    assert!(
        several.contains("(`v`, `w`, `x` …)") && several.contains("; --missing reads those"),
        "{several}"
    );
    let private = usual("a\n1\n2\nann@corp.example\nit's\n3\n");
    assert!(!private.contains("ann@") && private.contains("; --missing reads those"), "{private}");
    assert_eq!(usual("a\n1\n2\nx\ny\n"), "");
}

/// Proves that what a scan meets after the sample is named as well.
#[test]
fn strings_behind_the_sample_are_named() {
    let row = |row: usize| {
        if row > 300_000 && !row.is_multiple_of(5) { "lost\n".to_owned() } else { format!("{row}\n") }
    };
    let text: String = std::iter::once("a\n".to_owned()).chain((0..500_000).map(row)).collect();
    let folder = folder(&[("a.csv", text.as_bytes())]);
    let (_, _, source) = read_all(folder.path(), &spec_of("a.csv")).unwrap();
    let notes = source.notes();
    assert!(types(&source) == "a:Text" && notes.len() == 1, "{notes:?}");
    assert!(notes[0].contains(" of the first ") && notes[0].contains("(`lost`)"), "{notes:?}");
}

/// Proves that the numbers which Python writes into JSON lines although JSON does not have them are read as what they are, also within
/// lists, without a note, and that the same letters in strings and other words are as before.
#[test]
fn numbers_that_json_does_not_have_are_read() {
    let text = b"{\"loss\": 0.5, \"at\": [1, NaN]}\n{\"loss\": NaN, \"at\": \"NaN\"}\n{\"loss\":-Infinity}\n{\"loss\":nan}\n";
    check(
        "a.jsonl",
        text,
        "loss:Float at:Mixed\n0.1: 0.5|[1,NaN]\n0.2: NaN|NaN\n0.3: -inf|\u{2205}\n\
         rejected BadJson×1 line 4: expected ident, column 10",
    );
    let found = notes("a.jsonl", &text[..57], DataSpec::default());
    assert_eq!(found, ["retyped×1 at 1"]);
    check("b.jsonl", b"{\"a\":1}\n{\"a\":NaN}\n", "a:Float\n0.1: 1.0\n0.2: NaN");
}
