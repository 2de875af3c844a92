//! `trackway data leakage` and `trackway data images` as a user meets them.

use std::fmt::Write;
use std::fs;

use crate::harness::Home;

/// A table of `rows` rows: a label `y` that depends in part on `x0`, and a row that differs for each `seed`.
fn table(seed: u64, rows: usize, extra: &dyn Fn(usize, u64, u64) -> String) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut text = String::from("x0,x1,x2,x3,x4,extra,y\n");
    for row in 0..rows {
        let numbers: Vec<u64> = (0..5).map(|_| next() % 1_000_000).collect();
        let y = u64::from(numbers[0] + next() % 1_000_000 > 1_000_000);
        let shown: Vec<String> = numbers.iter().map(|it| format!("{}.{}", it / 100, it % 100)).collect();
        writeln!(text, "{},{},{y}", shown.join(","), extra(row, y, next())).unwrap();
    }
    text
}

/// Proves that every check is listed with what it looked at, that a feature that is the label ends with 3 and is named,
/// that `--skip` and `--only` choose checks, and that an unknown check is exit code 2 with those there are.
#[test]
fn the_label_among_the_features() {
    let home = Home::new();
    let recoded = |_: usize, y: u64, _: u64| if y == 1 { "yes" } else { "no" }.to_owned();
    home.write("train.csv", &table(1, 600, &recoded));
    home.write("test.csv", &table(2, 200, &recoded));
    let sides = ["data", "leakage", "--train", "train.csv", "--test", "test.csv", "--label", "y"];
    let with = |more: &[&str]| home.trackway(&[sides.as_slice(), more].concat());
    let answer = with(&[]);
    assert_eq!((answer.code, answer.stderr.as_str()), (3, ""), "{}", answer.stdout);
    for expected in [
        "leakage.rows             pass",
        "leakage.groups           not applicable",
        "leakage.target           block",
        "`extra` is `y` written differently, in all 600 rows looked at",
        "15 pairs on 600 training and 200 test rows",
        "1 finding: 800 rows read, 0 rejected",
    ] {
        assert!(answer.stdout.contains(expected), "{expected}\n{}", answer.stdout);
    }
    assert_eq!(with(&["--skip", "target"]).code, 0);
    let document: serde_json::Value =
        serde_json::from_str(&with(&["--only", "rows,leakage.target", "--json"]).stdout).unwrap();
    let names: Vec<_> = document["checks"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["leakage.rows", "leakage.target"]);
    assert_eq!(document["findings"][0]["check"], "leakage.target");
    let unknown = with(&["--only", "targets"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""));
    assert!(
        unknown.stderr.contains("no check is called `targets`; there are rows, groups"),
        "{}",
        unknown.stderr
    );
}

/// Proves that a folder of images with a cut file ends with 3 and names it, that its masks are looked at, and that two
/// folders with a common image are compared by their pixels.
#[test]
fn folders_of_images() {
    let home = Home::new();
    for folder in ["train", "test", "masks"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    for index in 0..6u8 {
        fs::write(home.path().join(format!("train/{index}.bmp")), bitmap(index)).unwrap();
        fs::write(home.path().join(format!("test/{index}.bmp")), bitmap(index)).unwrap();
        fs::write(home.path().join(format!("masks/{index}.bmp")), bitmap(0)).unwrap();
    }
    let whole = home.trackway(&["data", "images", "train", "--masks", "masks"]);
    assert_eq!((whole.code, whole.stderr.as_str()), (0, ""), "{}", whole.stdout);
    assert!(whole.stdout.contains("6 files: 6 images and 0 text files read, 0 broken"), "{}", whole.stdout);
    let both = home.trackway(&["data", "leakage", "--train", "train", "--test", "test"]);
    assert_eq!(both.code, 3, "{}", both.stdout);
    assert!(
        both.stdout.contains("6 of 6 test images have the very pixels of a training image"),
        "{}",
        both.stdout
    );
    assert!(both.stdout.contains("0.bmp  = 0.bmp"), "{}", both.stdout);

    fs::write(home.path().join("train/9.bmp"), &bitmap(9)[..400]).unwrap();
    let cut = home.trackway(&["data", "images", "train", "--masks", "masks"]);
    assert_eq!(cut.code, 3, "{}", cut.stdout);
    for expected in ["block cannot read 1 file", "9.bmp", "1 of 7 files have no partner"] {
        assert!(cut.stdout.contains(expected), "{expected}\n{}", cut.stdout);
    }
    assert_eq!(home.json(&["data", "images", "train", "--masks", "masks"])["not_run"], serde_json::json!([]));
    assert_eq!(home.trackway(&["data", "images", "none"]).code, 6);
}

/// A gray bitmap of 32 × 32 pixels, another pattern for each seed, written out by hand.
fn bitmap(seed: u8) -> Vec<u8> {
    let palette: Vec<u8> = (0..=255u8).flat_map(|value| [value, value, value, 0]).collect();
    let offset = 54 + palette.len() as u32;
    let mut bytes = b"BM".to_vec();
    for value in [offset + 1024, 0, offset, 40, 32, 32, 8 << 16 | 1, 0, 1024, 2835, 2835, 256, 256] {
        bytes.extend(u32::to_le_bytes(value));
    }
    bytes.extend(palette);
    let pixel = |at: u32| {
        let (x, y) = (f64::from(at % 32), f64::from(at / 32));
        let waves =
            (x * f64::from(seed + 1) / 9.0).sin() + (y * f64::from(seed * 3 % 7 + 1) / 8.0 + x / 5.0).cos();
        (128.0 + 60.0 * waves) as u8
    };
    bytes.extend((0..1024).map(pixel));
    bytes
}
