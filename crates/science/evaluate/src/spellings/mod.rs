//! Whether labels and predictions name the same classes, and what means what where they write them differently.
//!
//! One exporter writes `true` and another one `1`, one reads ` yes` and another one `yes`. Where no predicted class is a label,
//! and each is exactly one label written differently, they are matched, which is reported. Where some are labels already, only blanks
//! around a class, zeros behind a whole number and Unicode forms of one text are: `a` and `A` may be two classes then.

pub(super) mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use trackway_core::text::first_quoted;
use trackway_data::values::unicode_form::{composed, form_shown};
pub use trackway_results::spellings::MatchedClass;

/// Classes of each side that a message shows.
const SHOWN_MAX: usize = 5;

/// What labels and predictions have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Predicted classes that are labels written differently.
    pub matched: Vec<MatchedClass>,
    /// Predicted classes that are no labels, each with a label that it resembles: they may be the same and were not matched.
    pub alike: Vec<MatchedClass>,
    /// Whether no predicted class is a label, not even one written differently.
    pub is_disjoint: bool,
}

/// How different spellings become one.
type Form = fn(&str) -> String;

/// Compares the classes of labels with those that are predicted.
#[must_use]
pub fn agreement(labels: &[String], predictions: &[String]) -> Agreement {
    let labels: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
    let predictions: BTreeSet<&str> = predictions.iter().map(String::as_str).collect();
    let unknown: BTreeSet<&str> = predictions.difference(&labels).copied().collect();
    if unknown.is_empty() || labels.is_empty() {
        return Agreement::default();
    }
    if unknown.len() < predictions.len() {
        return partly(&labels, &predictions, &unknown);
    }
    let forms: [Form; 2] = [plain, folded];
    let matched = forms.iter().find_map(|form| one_to_one(&labels, &unknown, *form));
    let matched = matched.or_else(|| truths(&labels, &unknown)).unwrap_or_default();
    Agreement { is_disjoint: matched.is_empty(), matched, alike: Vec::new() }
}

impl Agreement {
    /// The label that a predicted class means.
    #[must_use]
    pub fn label_of(&self, prediction: &str) -> Option<&str> {
        self.matched.iter().find(|it| it.prediction == prediction).map(|it| it.label.as_str())
    }

    /// What a reader should know of it.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let pairs = |pairs: &[MatchedClass]| {
            let pair = |it: &MatchedClass| {
                format!("`{}` is `{}`", form_shown(&it.prediction), form_shown(&it.label))
            };
            let shown = pairs.iter().take(SHOWN_MAX).map(pair);
            let more = pairs.len().saturating_sub(SHOWN_MAX);
            let more = (more > 0).then(|| format!("and {more} more"));
            shown.chain(more).collect::<Vec<_>>().join(", ")
        };
        let mut notes = Vec::new();
        if !self.matched.is_empty() {
            notes.push(format!(
                "predictions are written otherwise than labels and were matched: {}",
                pairs(&self.matched)
            ));
        }
        for it in self.alike.iter().take(SHOWN_MAX) {
            notes.push(format!(
                "the prediction `{}` resembles the label `{}` and was counted as another class",
                it.prediction, it.label
            ));
        }
        notes
    }
}

/// The first few of some classes, such as `` `a`, `b` and 3 more ``.
#[must_use]
pub fn shown(classes: &[String]) -> String {
    let mut sorted: Vec<&String> = classes.iter().collect();
    sorted.sort();
    first_quoted(&sorted, SHOWN_MAX)
}

/// A note for each text that several classes are, in different Unicode forms. They look the same and are different classes.
#[must_use]
pub fn in_several_forms(classes: &[String]) -> Vec<String> {
    let mut by_text: BTreeMap<Cow<'_, str>, BTreeSet<&str>> = BTreeMap::new();
    classes.iter().for_each(|class| {
        by_text.entry(composed(class)).or_default().insert(class);
    });
    let note = |forms: BTreeSet<&str>| {
        let names: Vec<String> = forms.into_iter().map(|form| format!("`{}`", form_shown(form))).collect();
        format!(
            "{} are one text in several Unicode forms and were counted as several classes: write one form",
            names.join(" and ")
        )
    };
    by_text.into_values().filter(|forms| forms.len() > 1).take(SHOWN_MAX).map(note).collect()
}

/// Some predictions are labels: the others are matched where only blanks, zeros or the Unicode form differ.
fn partly(labels: &BTreeSet<&str>, predictions: &BTreeSet<&str>, unknown: &BTreeSet<&str>) -> Agreement {
    let mut found = Agreement::default();
    let free: BTreeSet<&str> = labels.difference(predictions).copied().collect();
    let (of_free, of_unknown) = (by_form(&free, plain), by_form(unknown, plain));
    let of_labels = by_form(labels, resembling);
    for prediction in unknown {
        let pair =
            |label: &str| MatchedClass { prediction: (*prediction).to_owned(), label: label.to_owned() };
        let is_only = of_unknown.get(&plain(prediction)).is_some_and(|same| same.len() == 1);
        match of_free.get(&plain(prediction)).map(Vec::as_slice) {
            Some([label]) if is_only => found.matched.push(pair(label)),
            _ => found.alike.extend(
                of_labels.get(&resembling(prediction)).and_then(|same| same.first()).map(|it| pair(it)),
            ),
        }
    }
    found
}

/// Each prediction with the one label of its form; none where one has no label, or two have one form.
fn one_to_one(
    labels: &BTreeSet<&str>,
    predictions: &BTreeSet<&str>,
    form: Form,
) -> Option<Vec<MatchedClass>> {
    let (of_labels, of_predictions) = (by_form(labels, form), by_form(predictions, form));
    if of_labels.values().chain(of_predictions.values()).any(|same| same.len() > 1) {
        return None;
    }
    let pair = |prediction: &&str| {
        let label = of_labels.get(&form(prediction))?.first()?;
        Some(MatchedClass { prediction: (*prediction).to_owned(), label: (*label).to_owned() })
    };
    predictions.iter().map(pair).collect()
}

/// Booleans against 0 and 1: these mean the same even where a side has only one of them.
fn truths(labels: &BTreeSet<&str>, predictions: &BTreeSet<&str>) -> Option<Vec<MatchedClass>> {
    let (of_labels, of_predictions) = (by_form(labels, truth), by_form(predictions, truth));
    let is_truth =
        |(form, same): (&String, &Vec<&str>)| matches!(form.as_str(), "0" | "1") && same.len() == 1;
    if !of_labels.iter().chain(&of_predictions).all(is_truth) {
        return None;
    }
    let are_numbers = labels.iter().all(|label| matches!(plain(label).as_str(), "0" | "1"));
    let pair = |prediction: &&str| {
        let form = truth(prediction);
        let usual = match (form == "1", are_numbers) {
            (true, true) => "1",
            (false, true) => "0",
            (true, false) => "true",
            (false, false) => "false",
        };
        let label = of_labels.get(&form).and_then(|same| same.first()).copied().unwrap_or(usual);
        MatchedClass { prediction: (*prediction).to_owned(), label: label.to_owned() }
    };
    Some(predictions.iter().map(pair).collect())
}

fn by_form<'c>(classes: &BTreeSet<&'c str>, form: Form) -> BTreeMap<String, Vec<&'c str>> {
    let mut by_form: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    classes.iter().for_each(|class| by_form.entry(form(class)).or_default().push(*class));
    by_form
}

/// In composed letters, without blanks around it, and a whole number without zeros behind its point. A number with
/// zeros before it is a code.
fn plain(class: &str) -> String {
    let class = composed(class);
    let class = class.trim();
    let digits = class.strip_prefix('-').unwrap_or(class);
    let (whole, zeros) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_whole = !whole.is_empty()
        && whole.bytes().all(|byte| byte.is_ascii_digit())
        && (whole == "0" || !whole.starts_with('0'))
        && !zeros.is_empty()
        && zeros.bytes().all(|byte| byte == b'0');
    match is_whole {
        true if whole == "0" => whole.to_owned(),
        true => class[..class.len() - digits.len() + whole.len()].to_owned(),
        false => class.to_owned(),
    }
}

/// The same in lower case.
pub(crate) fn folded(class: &str) -> String {
    plain(class).to_lowercase()
}

/// The same without points behind it, and with blanks for hyphens and underscores.
fn resembling(class: &str) -> String {
    folded(class).trim_end_matches('.').replace(['-', '_'], " ")
}

fn truth(class: &str) -> String {
    match folded(class).as_str() {
        "true" => "1".to_owned(),
        "false" => "0".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[&str], predictions: &[&str]) -> (Vec<(String, String)>, usize, bool) {
        let owned = |classes: &[&str]| classes.iter().map(|class| (*class).to_owned()).collect::<Vec<_>>();
        let found = agreement(&owned(labels), &owned(predictions));
        let pairs = found.matched.into_iter().map(|it| (it.prediction, it.label)).collect();
        (pairs, found.alike.len(), found.is_disjoint)
    }

    /// Proves that classes that are the same are left alone, that other spellings are matched where each has exactly one
    /// label, and that everything else has nothing in common.
    #[test]
    fn spellings_are_matched_one_to_one() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect()
        };
        type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a str)], bool);
        let cases: [Case<'_>; 17] = [
            (&["a", "b"], &["b", "a"], &[], false),
            (&["a", "b"], &["b"], &[], false),
            (&["true", "false"], &["1", "0"], &[("0", "false"), ("1", "true")], false),
            (&["1", "0"], &["True", "False"], &[("False", "0"), ("True", "1")], false),
            (&["true", "false"], &["1.0", "0.0"], &[("0.0", "false"), ("1.0", "true")], false),
            (&["true"], &["0"], &[("0", "false")], false),
            (&["Yes", "No"], &["yes", "no"], &[("no", "No"), ("yes", "Yes")], false),
            (&["yes", "no"], &[" yes", "no "], &[(" yes", "yes"), ("no ", "no")], false),
            (&["1", "2", "3"], &["1.0", "3.00"], &[("1.0", "1"), ("3.00", "3")], false),
            (&["0", "1", "2"], &["true", "false"], &[], true),
            (&["a", "b"], &["c", "d"], &[], true),
            (&["Cat", "Dog"], &["cat", "bird"], &[], true),
            (&["A", "a"], &["A ", " a"], &[(" a", "a"), ("A ", "A")], false),
            (&["yes", "no"], &["YES", "Yes"], &[], true),
            (&["01", "02"], &["1", "2"], &[], true),
            (&["caf\u{e9}", "bar"], &["cafe\u{301}"], &[("cafe\u{301}", "caf\u{e9}")], false),
            (
                &["9007199254740993", "9007199254740992"],
                &["9007199254740993.0"],
                &[("9007199254740993.0", "9007199254740993")],
                false,
            ),
        ];
        for (labels, predictions, matched, is_disjoint) in cases {
            let found = of(labels, predictions);
            assert_eq!((found.0, found.2), (pairs(matched), is_disjoint), "{labels:?} {predictions:?}");
        }
    }

    /// Proves that classes which are one text in two Unicode forms are named, with the form of each, and that others are not; and that a
    /// prediction in the other form is the label where another one is a label too.
    #[test]
    fn unicode_forms_are_named() {
        let classes = ["cafe\u{301}", "caf\u{e9}", "cafe"].map(str::to_owned);
        let notes = in_several_forms(&classes);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("`cafe\\u{301}` and `caf\u{e9}` are one text"), "{notes:?}");
        assert!(in_several_forms(&classes[1..]).is_empty());
        let found = agreement(&classes[1..], &[classes[0].clone(), classes[2].clone()]);
        assert_eq!((found.matched.len(), found.label_of("cafe\u{301}")), (1, Some("caf\u{e9}")));
        assert!(found.notes()[0].contains("`cafe\\u{301}` is `caf\u{e9}`"), "{:?}", found.notes());
    }

    /// Proves that where some predictions are labels only blanks and zeros are matched, that letters of another case, points and
    /// underscores are reported, and that a label which is predicted itself is not matched again.
    #[test]
    fn some_are_labels() {
        assert_eq!(of(&["a", "b"], &["a", " b"]), (vec![(" b".into(), "b".into())], 0, false));
        assert_eq!(of(&["A", "b"], &["a", "b"]), (vec![], 1, false));
        assert_eq!(of(&["1", "2"], &["1", "1.0"]), (vec![], 1, false));
        assert_eq!(of(&["<=50K", ">50K"], &["<=50K.", ">50K"]), (vec![], 1, false));
        assert_eq!(of(&["new york", "rome"], &["new_york", "rome"]), (vec![], 1, false));
        assert_eq!(of(&["a"], &["a", "zebra"]), (vec![], 0, false));
        assert_eq!(of(&[], &["a"]), (vec![], 0, false));
        assert_eq!(of(&["a"], &[]), (vec![], 0, false));
    }

    /// Proves that a message shows five classes, and how many more there are.
    #[test]
    fn few_classes_are_shown() {
        let classes: Vec<String> = (0..8).map(|class| format!("c{class}")).collect();
        assert_eq!(shown(&classes), "`c0`, `c1`, `c2`, `c3`, `c4` and 3 more");
        assert_eq!(shown(&classes[..2]), "`c0`, `c1`");
    }
}
