//! Segmentation and object detection: whole images are resampled.

use trackway_core::{Rng, SplitMix64};
use trackway_data::model::{Frame, FrameColumn};

use super::coverage::{check, coverage};
use super::{frame, numbers, texts};
use crate::metrics::rows::KnownClasses;
use crate::metrics::rows::items::items;
use crate::metrics::scoring::Scoring;
use crate::{
    AssessError, Baseline, Columns, ComparisonVerdict, Method, Spec, Task, assess, complete_columns,
};

/// Pixels of two classes in images that are hard or easy as a whole; `right` of them on average.
fn pixels(seed: u64, images: usize, right: f64) -> Vec<FrameColumn> {
    let mut rng = SplitMix64::new(seed * 48_611 + 3);
    let mut rows: [Vec<f64>; 5] = Default::default();
    for image in 0..images {
        let right = (right + 0.4 * (rng.next_unit() - 0.5)).clamp(0.0, 1.0);
        for (class, size) in [(0.0, 900.0), (1.0, 100.0)] {
            let hits = (size * right * (0.9 + 0.1 * rng.next_unit())).round();
            let extra = (size * 0.2 * rng.next_unit()).round();
            for (column, value) in rows.iter_mut().zip([image as f64, class, hits, extra, size - hits]) {
                column.push(value);
            }
        }
    }
    let [image, class, hits, extra, missed] = rows;
    let names: Vec<&str> = class.iter().map(|class| if *class == 0.0 { "road" } else { "sign" }).collect();
    vec![
        numbers("image", image),
        texts("class", names),
        numbers("true_positive", hits),
        numbers("false_positive", extra),
        numbers("false_negative", missed),
    ]
}

/// Proves that a row for each class of an image is not one more observation: the same pixels in one row for each image
/// give the same number with the same interval.
#[test]
fn rows_of_one_image_are_one_observation() {
    let by_class = pixels(1, 60, 0.8);
    let sum = |place: usize| {
        let trackway_data::model::Cells::Numbers(values) = &by_class[place].cells else { panic!("numbers") };
        values.chunks(2).map(|pair| pair.iter().sum::<f64>()).collect::<Vec<f64>>()
    };
    let by_image = vec![numbers("tp", sum(2)), numbers("fp", sum(3)), numbers("fn", sum(4))];
    let found = assess(&frame(by_class), &Spec::default(), None).unwrap();
    let whole = assess(&frame(by_image), &Spec::default(), None).unwrap();
    assert_eq!((found.task, whole.task), (Task::Segmentation, Task::Segmentation));
    assert_eq!(
        (found.metrics["iou"].interval, found.metrics["iou"].support),
        (whole.metrics["iou"].interval, 60)
    );
    assert_eq!((found.coverage.rows_used, whole.coverage.rows_used), (120, 60));
    assert!(!whole.metrics.contains_key("mean_iou") && whole.main_metric == "iou");
    assert_eq!(found.classes.len(), 2);
    assert!(found.classes[1].name == "sign" && found.classes[1].metrics.contains_key("iou"));
}

/// Proves that a table with predictions stays what it is, whatever features it has beside them.
#[test]
fn features_with_names_of_counts_are_features() {
    let mut columns = pixels(1, 30, 0.8);
    columns.push(texts("label", (0..60).map(|row| ["a", "b"][row % 2])));
    columns.push(texts("prediction", (0..60).map(|row| ["a", "b"][row / 2 % 2])));
    let found = assess(&frame(columns), &Spec::default(), None).unwrap();
    assert_eq!((found.task, found.columns.image, found.columns.id), (Task::Classification, None, None));
}

/// Proves that intervals over 40 images hold the true value in about 95 of 100 tables.
#[test]
fn intervals_of_segmentation_hold() {
    let make = |seed: u64, images: usize| frame(pixels(seed, images.min(20_000), 0.75));
    let spec = Spec { resamples: 300, ..Spec::default() };
    check(coverage(make, 40, &spec, &["iou", "dice", "mean_iou"]), 0.90);
}

/// Proves that perfect images leave a lower end below 1, that rows without counts are not covered, and that a negative
/// count is reported with its row.
#[test]
fn perfect_images_are_not_certain() {
    let table = |hits: Vec<f64>, missed: f64| {
        let rows = hits.len();
        frame(vec![
            numbers("true_positive", hits),
            numbers("false_positive", vec![0.0; rows]),
            numbers("false_negative", (0..rows).map(|row| if row == 2 { missed } else { 0.0 })),
        ])
    };
    let found = assess(&table(vec![50.0; 30], 0.0), &Spec::default(), None).unwrap().metrics["iou"];
    assert!(found.value == 1.0 && found.interval.high == 1.0 && found.interval.low < 0.95, "{found:?}");
    let mut hits = vec![50.0; 30];
    hits[4] = f64::NAN;
    let found = assess(&table(hits, 5.0), &Spec::default(), None).unwrap().metrics["iou"];
    assert_eq!((found.coverage.rows_used, found.coverage.rows_expected), (29, 30));
    let wrong = assess(&table(vec![50.0; 30], -5.0), &Spec::default(), None).unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "`false_negative` is -5 in row 3: it counts pixels and must not be negative"
    );
}

/// Proves that images are compared with themselves, and that an image with other labelled pixels is not compared.
#[test]
fn images_are_paired() {
    let baseline = frame(pixels(1, 100, 0.6));
    let mut columns = pixels(1, 100, 0.8);
    let trackway_data::model::Cells::Numbers(missed) = &mut columns[4].cells else { panic!("numbers") };
    missed[0] += 1.0;
    let sides = Baseline { frame: &baseline, id: Some("image") };
    let found = assess(&frame(columns), &Spec::default(), Some(sides)).unwrap().comparison.unwrap();
    assert_eq!((found.pairing.pairs, found.pairing.different_labels), (99, 1));
    assert_eq!(found.metrics["mean_iou"].verdict, ComparisonVerdict::Better);
}

/// One box of a table: image, class, score (`None`: a label), left end. Boxes are 10 wide and high.
type Row<'r> = (&'r str, &'r str, Option<f64>, f64);

fn boxes(rows: &[Row<'_>]) -> Frame {
    let of = |number: &dyn Fn(&Row<'_>) -> f64| rows.iter().map(number).collect::<Vec<f64>>();
    frame(vec![
        texts("image", rows.iter().map(|row| row.0)),
        texts("class", rows.iter().map(|row| row.1)),
        texts("kind", rows.iter().map(|row| if row.2.is_some() { "prediction" } else { "label" })),
        numbers("score", of(&|row| row.2.unwrap_or(f64::NAN))),
        numbers("x_min", of(&|row| row.3)),
        numbers("y_min", of(&|_| 0.0)),
        numbers("x_max", of(&|row| row.3 + 10.0)),
        numbers("y_max", of(&|_| 10.0)),
    ])
}

fn means(rows: &[Row<'_>]) -> [f64; 3] {
    let found = assess(&boxes(rows), &Spec::default(), None).unwrap();
    assert_eq!(found.task, Task::ObjectDetection);
    ["map", "map_50", "map_75"].map(|name| found.metrics[name].value)
}

fn is_close(one: [f64; 3], other: [f64; 3]) -> bool {
    one.iter().zip(&other).all(|(one, other)| (one - other).abs() < 1e-12)
}

/// Proves the definition on boxes that can be checked by hand: a perfect prediction, a shifted one, a second prediction of
/// a label, one of another class, and a missing one.
#[test]
fn the_mean_average_precision_of_a_few_boxes() {
    let label = ("a", "cat", None, 0.0);
    let other = ("b", "cat", None, 0.0);
    assert!(is_close(means(&[label, ("a", "cat", Some(0.9), 0.0)]), [1.0; 3]));
    // Shifted by 2 of 10: the intersection is 8 of a union of 12, at least 0.50 to 0.65.
    assert!(is_close(means(&[label, ("a", "cat", Some(0.9), 2.0)]), [0.4, 1.0, 0.0]));
    // A second prediction of a label that is found is wrong, but comes last.
    assert!(is_close(means(&[label, ("a", "cat", Some(0.9), 0.0), ("a", "cat", Some(0.2), 0.0)]), [1.0; 3]));
    // It comes first: the shifted one takes the label up to 0.65, and the better one is then wrong.
    let first = means(&[label, ("a", "cat", Some(0.9), 2.0), ("a", "cat", Some(0.2), 0.0)]);
    assert!(is_close(first, [0.4 + 0.6 * 0.5, 1.0, 0.5]), "{first:?}");
    // One of two labels is found: recalls up to 0.5, 51 of 101.
    let half = 51.0 / 101.0;
    assert!(is_close(means(&[label, other, ("a", "cat", Some(0.9), 0.0)]), [half; 3]));
    // A class without labels is not in the mean, one without predictions is 0.
    let stray = ("b", "fox", Some(0.9), 0.0);
    assert!(is_close(means(&[label, ("a", "cat", Some(0.9), 0.0), stray]), [1.0; 3]));
    let missed = ("b", "owl", None, 0.0);
    assert!(is_close(means(&[label, ("a", "cat", Some(0.9), 0.0), missed]), [0.5; 3]));
}

/// Proves that a resample in which an image is repeated has the value of a table in which it is repeated.
#[test]
fn resampled_images_are_repeated_images() {
    let mut rng = SplitMix64::new(4);
    let names: Vec<String> = (0..12).map(|image| format!("image {image}")).collect();
    let mut of_image: Vec<Vec<(&str, Option<f64>, f64)>> = Vec::new();
    for _ in &names {
        let mut rows = Vec::new();
        for _ in 0..3 {
            let (class, left) = (if rng.next_unit() < 0.5 { "cat" } else { "dog" }, 100.0 * rng.next_unit());
            rows.push((class, None, left));
            rows.push((class, Some(rng.next_unit()), left + 4.0 * rng.next_unit()));
        }
        of_image.push(rows);
    }
    let rows = |image: usize, name: &'static str| {
        of_image[image]
            .iter()
            .map(move |(class, score, left)| (name, *class, *score, *left))
            .collect::<Vec<_>>()
    };
    let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let once: Vec<Row<'_>> = names.iter().enumerate().flat_map(|(image, name)| rows(image, name)).collect();
    let table = boxes(&once);
    let columns = complete_columns(Columns::default(), &table).unwrap();
    let found = items(&table, Task::ObjectDetection, &columns, KnownClasses::default()).unwrap();
    let weights = [2, 0, 1, 3, 0, 1, 1, 0, 2, 1, 0, 1];
    let sampled = Scoring::of(&found, 0.9).values(&weights, |_| true);
    let repeated: Vec<Row<'_>> = (0..12)
        .flat_map(|image| (0..weights[image]).map(move |time| (image, time)))
        .flat_map(|(image, time)| rows(image, &*format!("{image} {time}").leak()))
        .collect();
    let expected = means(&repeated);
    assert!(is_close([sampled[0], sampled[1], sampled[2]], expected), "{sampled:?} {expected:?}");
    assert!(!is_close(means(&once), expected));
}

/// Proves that only the 100 predictions of a class in an image with the highest scores count.
#[test]
fn at_most_a_hundred_predictions_of_an_image_count() {
    let with = |wrong: usize| {
        let mut rows: Vec<Row<'_>> = vec![("a", "cat", None, 0.0), ("a", "cat", Some(0.1), 0.0)];
        rows.extend((0..wrong).map(|place| ("a", "cat", Some(0.9), 100.0 + 20.0 * place as f64)));
        means(&rows)[0]
    };
    assert!((with(99) - 0.01).abs() < 1e-12);
    assert_eq!(with(100), 0.0);
}

/// Proves that images are resampled and compared, that a prediction without a score is not covered, and that an image
/// with other labels is not compared.
#[test]
fn images_with_boxes_are_compared() {
    let names: Vec<String> = (0..60).map(|image| format!("{image}")).collect();
    let side = |shift: f64| -> Vec<Row<'_>> {
        let of = |(image, name): (usize, &'_ String)| {
            let name: &str = Box::leak(name.clone().into_boxed_str());
            let off = shift + (image % 5) as f64 / 2.0;
            [(name, "cat", None, 0.0), (name, "cat", Some(0.5 + (image % 7) as f64 / 20.0), off)]
        };
        names.iter().enumerate().flat_map(of).collect()
    };
    let (baseline, mut rows) = (boxes(&side(2.0)), side(0.0));
    rows[0].3 = 1.0;
    rows[3].2 = Some(f64::NAN);
    let sides = Baseline { frame: &baseline, id: Some("image") };
    let found = assess(&boxes(&rows), &Spec::default(), Some(sides)).unwrap();
    let map = found.metrics["map"];
    assert_eq!((map.method, map.support), (Method::Bootstrap, 60));
    assert!(map.interval.low < map.value && map.value < map.interval.high, "{map:?}");
    assert_eq!((map.coverage.rows_used, map.coverage.rows_expected), (119, 120));
    let comparison = found.comparison.unwrap();
    assert_eq!((comparison.pairing.pairs, comparison.pairing.different_labels), (59, 1));
    assert_eq!(comparison.metrics["map"].verdict, ComparisonVerdict::Better);
}

/// Proves that a row that is neither a label nor a prediction, and a box that ends before it begins, are reported.
#[test]
fn boxes_that_cannot_be_read_are_errors() {
    let rows: [Row<'_>; 2] = [("a", "cat", None, 0.0), ("a", "cat", Some(0.9), 0.0)];
    let mut columns = boxes(&rows).columns().to_vec();
    columns[2] = texts("kind", ["label", "guess"]);
    let wrong = assess(&frame(columns), &Spec::default(), None);
    assert_eq!(wrong, Err(AssessError::NotAKind { column: "kind".into(), value: "guess".into() }));
    let mut columns = boxes(&rows).columns().to_vec();
    columns[6] = numbers("x_max", [10.0, -5.0]);
    let wrong = assess(&frame(columns), &Spec::default(), None).unwrap_err().to_string();
    assert!(wrong.starts_with("the box in row 2 ends before it begins: x from 0 to -5"), "{wrong}");
}
