//! scikit-learn, Fairlearn, jiwer, scikit-uplift and pycocotools, by vectors that `tests/vectors/make.py` wrote.

use serde_json::{Map, Value};
use trackway_data::model::{Frame, FrameColumn};

use super::{frame, numbers, texts};
use crate::metrics::{FAIRNESS_NAMES, METRIC_NAMES};
use crate::{Assessment, Metrics, Spec, assess};

const VECTORS: &str = include_str!("../../tests/vectors/agreement.json");
const TOLERANCE: f64 = 1e-9;

fn table(case: &Value) -> Frame {
    let column = |(name, values): (&String, &Value)| -> FrameColumn {
        let values = values.as_array().unwrap();
        match values[0].is_string() {
            true => texts(name, values.iter().map(|value| value.as_str().unwrap())),
            false => numbers(name, values.iter().map(|value| value.as_f64().unwrap())),
        }
    };
    frame(case["columns"].as_object().unwrap().iter().map(column).collect())
}

fn compare(case: &str, found: &Metrics, expected: &Map<String, Value>) {
    for (name, value) in expected {
        let value = value.as_f64().unwrap();
        let Some(estimate) = found.get(name) else { panic!("{case}: no {name} in {found:?}") };
        assert!(
            (estimate.value - value).abs() <= TOLERANCE,
            "{case}: {name} is {}, not {value}",
            estimate.value
        );
        let (low, high) = (estimate.interval.low, estimate.interval.high);
        assert!(low <= value && value <= high && low < high, "{case}: {name} {estimate:?}");
    }
}

fn judged(case: &Value, always_resample: bool) -> Assessment {
    let spec = Spec { always_resample, resamples: 200, ..Spec::default() };
    assess(&table(case), &spec, None).unwrap()
}

/// Proves that every metric agrees with scikit-learn (jiwer for words, scikit-uplift for uplift, pycocotools for boxes,
/// definitions for the others) to 1e-9, that each value is within its interval, by formula and by bootstrap, and that the list of names
/// has every metric.
#[test]
fn metrics_agree_with_other_tools() {
    let cases: Map<String, Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(cases.len(), 21);
    for (name, case) in cases.iter().filter(|(_, case)| case.get("fairness").is_none()) {
        for always_resample in [false, true] {
            let assessment = judged(case, always_resample);
            compare(name, &assessment.metrics, case["metrics"].as_object().unwrap());
            let is_known = |metric: &String| {
                let has_number = metric.starts_with("pinball_") || metric.starts_with("pass_at_");
                has_number || METRIC_NAMES.contains(&metric.as_str())
            };
            assert!(assessment.metrics.keys().all(is_known), "{name}: {:?}", assessment.metrics.keys());
            if let Some(classes) = case.get("classes") {
                for class in &assessment.classes {
                    let values = classes[&class.name].as_array().unwrap();
                    let expected = ["precision", "recall", "f1"].iter().zip(values);
                    let expected = expected.map(|(name, value)| ((*name).to_owned(), value.clone()));
                    compare(name, &class.metrics, &expected.collect());
                }
            }
        }
    }
}

/// Proves that measures and groups of two classes, several classes and numbers agree with Fairlearn to 1e-9, and that the
/// class with the largest difference is named.
#[test]
fn fairness_agrees_with_fairlearn() {
    let cases: Map<String, Value> = serde_json::from_str(VECTORS).unwrap();
    let cases: Vec<_> =
        cases.iter().filter_map(|(name, case)| Some((name, case, case.get("fairness")?))).collect();
    assert_eq!(cases.len(), 3);
    for (name, case, expected) in cases {
        let spec = Spec { fairness: vec!["colour".into()], ..Spec::default() };
        let assessment = assess(&table(case), &spec, None).unwrap();
        let [fairness] = assessment.fairness.as_slice() else { panic!("one column was requested") };
        let measures = expected["measures"].as_object().unwrap();
        assert_eq!(fairness.measures.len(), measures.len(), "{name}: {:?}", fairness.measures);
        assert!(fairness.measures.keys().all(|measure| FAIRNESS_NAMES.contains(&measure.as_str())), "{name}");
        compare(name, &fairness.measures, measures);
        assert_eq!(fairness.groups.len(), 3);
        for group in &fairness.groups {
            let of_group = expected["groups"][&group.name].as_object().unwrap();
            assert_eq!(group.metrics.len(), of_group.len(), "{name}: {:?}", group.metrics);
            compare(name, &group.metrics, of_group);
        }
        let worst = serde_json::to_value(&fairness.worst_classes).unwrap();
        assert_eq!(&worst, expected.get("worst_classes").unwrap_or(&serde_json::json!({})));
    }
}
