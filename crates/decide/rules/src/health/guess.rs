//! A model that guesses: what it is given does not change its answer. The level of a loss alone does not say so, since
//! near to any level there is the logarithm of some number of classes; it needs a second number that agrees. A loss
//! that is level and nothing more is a `plateau`.
//!
//! | rule | the loss | beside it |
//! |---|---|---|
//! | equal classes | at ln C, or up to 8 % above | each accuracy at 1 / C |
//! | the largest class | at the entropy of two classes of which one has p | each accuracy level from its first value on, one of them at p from 0.65 |
//! | the counted class | level | each accuracy level from its first value on, one of them at the fraction of the largest class of the data |
//! | alone | at ln C, C of 2, 10, 100, 1000, from its first values on, as near as its mean is certain; single values within 1.5 % | no accuracy |
//!
//! A loss is level that after its first tenth fell by less than 6 %, noise included, and was never lower than its end
//! by more than its noise. A model that learns leaves such a pair within its first steps; one that was trained before
//! has a loss that is lower than its accuracy says, or none that is so near.

use trackway_core::text::number;
use trackway_core::{Health, HealthFinding};

use super::Majority;
use super::curve::Curve;
use super::level::{Body, Mean, is_never_below};
use super::looks::{VALUES_MIN, finding, flat};
use super::names::{may_be_of_classes, training_measure};
use crate::trust::CHANCE_LEVEL;

/// Values of an accuracy that are looked at.
const ACCURACIES_MIN: u64 = 5;
/// The fraction by which a loss falls at most that is level, with its noise, and by which it is lower in between.
const LEVEL: f64 = 0.06;
const LOWER: f64 = 0.03;
/// Standard errors within which two means are the same.
const ERRORS: f64 = 3.0;
/// Classes that are tried, and those that a loss alone may be of.
const CLASSES_MAX: u32 = 1000;
const USUAL: [u32; 4] = [2, 10, 100, 1000];
/// The fractions of ln C by which the loss of weights that never learned is above it, and may be below it.
const ABOVE: f64 = 0.08;
const BELOW: (f64, f64) = (0.01, 0.03);
/// The fractions of 1 / C by which an accuracy is away from it, at least and at most, by noise; and the most with many classes.
const AWAY: (f64, f64) = (0.04, 0.25);
const AWAY_OF_MANY: f64 = 1.0;
const MANY: u32 = 10;
/// Accuracies that may be those of one large class. At a lower one the loss of a model that has learned a little is next to the same.
const MAJORITY: (f64, f64) = (0.65, 0.99);
/// By how much an accuracy is away from the fraction of the largest class, at least and at most, by noise: as parts of it, and altogether.
const AWAY_FROM_LARGEST: (f64, f64) = (0.02, 0.1);
const AWAY_MOST: (f64, f64) = (0.005, 0.02);
/// By how much an accuracy moves that is level, and its first values, by noise.
const ACCURACY_MOVES: (f64, f64) = (0.01, 0.03);
const ACCURACY_STARTS: f64 = 0.02;
/// The fractions of an entropy by which a loss is away from it.
const NEAR_ENTROPY: (f64, f64) = (0.02, 0.04);
/// The same of a loss alone; its first values; and the deviation of a single one.
const NEAR_ALONE: (f64, f64) = (0.002, 0.0075);
const STARTS_ALONE: f64 = 0.01;
const SPREAD_ALONE: f64 = 0.015;

/// An accuracy between 0 and 1.
#[derive(Debug, Clone, Copy)]
struct Accuracy<'c> {
    name: &'c str,
    body: Body,
    start: f64,
    start_count: f64,
}

impl<'c> Accuracy<'c> {
    fn of((name, curve): (&'c str, &Curve)) -> Self {
        let unit = if curve.range.is_some_and(|(_, greatest)| greatest > 1.0) { 0.01 } else { 1.0 };
        let scaled =
            |of: Mean| Mean { mean: of.mean * unit, error: of.error * unit, spread: of.spread * unit };
        let Body { begin, end } = Body::of(curve);
        let body = Body { begin: scaled(begin), end: scaled(end) };
        Self { name, body, start: curve.start.mean * unit, start_count: curve.start.count as f64 }
    }

    fn is_of(&self, classes: u32) -> bool {
        let guess = 1.0 / f64::from(classes);
        let most = if classes < MANY { AWAY.1 } else { AWAY_OF_MANY };
        let away = (ERRORS * self.body.end.error).clamp(AWAY.0 * guess, most * guess);
        (self.body.end.mean - guess).abs() <= away
    }

    fn is_level(&self) -> bool {
        let (error, spread) = (self.body.error(), self.body.end.spread);
        let noise = if error.is_finite() { ERRORS * error } else { 0.0 };
        let starts = ACCURACY_STARTS.max(ERRORS * spread / self.start_count.sqrt());
        let is_at_start = (self.start - self.body.end.mean).abs() <= starts;
        self.body.fall().abs() <= noise.clamp(ACCURACY_MOVES.0, ACCURACY_MOVES.1) && is_at_start
    }
}

/// That a model guesses, by its training loss, its accuracies, and the largest class of the data, where it is known.
pub(super) fn chance_level(
    (name, loss): (&str, &Curve),
    accuracies: &[(&str, &Curve)],
    majority: Option<&Majority>,
) -> Option<HealthFinding> {
    if loss.count() < VALUES_MIN || !may_be_of_classes(name) {
        return None;
    }
    let seen = accuracies.iter().filter(|(_, curve)| curve.count() >= ACCURACIES_MIN);
    let seen: Vec<Accuracy<'_>> = seen.map(|accuracy| Accuracy::of(*accuracy)).collect();
    let said = match &*seen {
        [] => alone(loss),
        seen => level(loss).and_then(|end| {
            let counted = || counted_class(end, seen, majority?);
            equal_classes(end, seen).or_else(counted).or_else(|| largest_class(end, seen))
        }),
    }?;
    let evidence = format!("`{name}` stays at {said}{}", loss.which());
    Some(finding(CHANCE_LEVEL, Health::Broken, loss.first.map(|(step, _)| step), evidence))
}

/// The end of a loss that is level.
fn level(loss: &Curve) -> Option<Mean> {
    let body = Body::of(loss);
    let (end, scale) = (body.end, body.begin.mean);
    let is_level = scale > 0.0 && body.fall() + 2.0 * body.error() < LEVEL * scale;
    (is_level && is_never_below(loss, end.mean * (1.0 - LOWER), end.spread)).then_some(end)
}

/// Of several numbers of classes that agree a usual one, or that whose logarithm is nearest.
fn equal_classes(loss: Mean, accuracies: &[Accuracy<'_>]) -> Option<String> {
    let agrees = |classes: &u32| {
        let guess = f64::from(*classes).ln();
        let below = (ERRORS * loss.error).clamp(BELOW.0 * guess, BELOW.1 * guess);
        (guess - below..=guess * (1.0 + ABOVE)).contains(&loss.mean)
            && accuracies.iter().all(|accuracy| accuracy.is_of(*classes))
    };
    let distance = |classes: u32| (loss.mean - f64::from(classes).ln()).abs();
    let usual = USUAL.into_iter().find(agrees);
    let classes = usual.or_else(|| {
        let all = (2..=CLASSES_MAX).filter(agrees);
        all.min_by(|one, other| distance(*one).total_cmp(&distance(*other)))
    })?;
    let accuracy = accuracies.first()?;
    Some(format!(
        "{} and `{}` at {}, and a guess among {classes} classes has {} and {}",
        number(loss.mean),
        accuracy.name,
        number(accuracy.body.end.mean),
        number(f64::from(classes).ln()),
        number(1.0 / f64::from(classes))
    ))
}

/// The accuracy that counts rows, that of the training where it is recorded.
fn plain<'a, 'c>(accuracies: &'a [Accuracy<'c>]) -> Option<&'a Accuracy<'c>> {
    let is_training = |accuracy: &&Accuracy<'_>| training_measure(accuracy.name).is_some();
    let mut plain = accuracies.iter().filter(|accuracy| !accuracy.name.contains("balanced"));
    plain.clone().find(is_training).or_else(|| plain.next())
}

/// A model that always names the largest class, whose rows were counted.
fn counted_class(loss: Mean, accuracies: &[Accuracy<'_>], majority: &Majority) -> Option<String> {
    let Accuracy { name, body: Body { end, .. }, .. } = plain(accuracies)?;
    let Majority { fraction, of } = majority;
    let least = (AWAY_FROM_LARGEST.0 * fraction).min(AWAY_MOST.0);
    let most = (AWAY_FROM_LARGEST.1 * fraction).min(AWAY_MOST.1);
    let is_there = (end.mean - fraction).abs() <= (ERRORS * end.error).clamp(least, most);
    // A single class is always named rightly.
    (*fraction < 1.0 && is_there && accuracies.iter().all(Accuracy::is_level)).then(|| {
        format!(
            "{} and `{name}` at {} from the first values on, and the largest class of `{of}` has {} of its labels",
            number(loss.mean),
            number(end.mean),
            number(*fraction)
        )
    })
}

fn largest_class(loss: Mean, accuracies: &[Accuracy<'_>]) -> Option<String> {
    let Accuracy { name, body: Body { end, .. }, .. } = plain(accuracies)?;
    let (p, rest) = (end.mean, 1.0 - end.mean);
    if !(MAJORITY.0..MAJORITY.1).contains(&p) || !accuracies.iter().all(Accuracy::is_level) {
        return None;
    }
    let entropy = -p * p.ln() - rest * rest.ln();
    let error = loss.error.hypot(end.error * (p / rest).ln());
    let near = (ERRORS * error).clamp(NEAR_ENTROPY.0 * entropy, NEAR_ENTROPY.1 * entropy);
    ((loss.mean - entropy).abs() <= near).then(|| {
        format!(
            "{} and `{name}` at {} from the first values on, and who always names a class that so many examples have is right as often, with a loss of {}",
            number(loss.mean),
            number(p),
            number(entropy)
        )
    })
}

fn alone(loss: &Curve) -> Option<String> {
    let all = flat(loss).map(|_| Mean::of(loss.blocks()))?;
    let classes = USUAL.into_iter().find(|classes| {
        let guess = f64::from(*classes).ln();
        let noise = ERRORS * all.error;
        let starts = (STARTS_ALONE * guess).max(ERRORS * all.spread / (loss.start.count as f64).sqrt());
        noise <= NEAR_ALONE.1 * guess
            && all.spread <= SPREAD_ALONE * guess
            && (all.mean - guess).abs() <= noise.max(NEAR_ALONE.0 * guess)
            && (loss.start.mean - guess).abs() <= starts
    })?;
    Some(format!(
        "{}, and a guess among {classes} classes has {}",
        number(all.mean),
        number(f64::from(classes).ln())
    ))
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng, SplitMix64};

    use super::*;

    /// How often an answer is right, and of how many; none: no accuracy is recorded.
    type Accuracy = Option<(fn(f64) -> f64, u32)>;

    /// What is made at each step, by noise: a loss, and an accuracy over a batch.
    struct Case {
        says: &'static str,
        steps: u64,
        loss: fn(f64) -> f64,
        noise: f64,
        accuracy: Accuracy,
    }

    const fn case(
        says: &'static str,
        steps: u64,
        (loss, noise): (fn(f64) -> f64, f64),
        accuracy: Accuracy,
    ) -> Case {
        Case { says, steps, loss, noise, accuracy }
    }

    fn normal(rng: &mut SplitMix64) -> f64 {
        (0..12).map(|_| rng.next_unit()).sum::<f64>() - 6.0
    }

    /// Whether this is found, with a seed; `at` is from 0 to 1.
    fn guesses(case: &Case, seed: u64) -> bool {
        let mut rng = SplitMix64::new(seed ^ case.steps << 32);
        let (mut loss, mut accuracy) = (Curve::default(), Curve::default());
        for step in 1..=case.steps {
            let at = step as f64 / case.steps as f64;
            loss.take(step, (case.loss)(at) + case.noise * normal(&mut rng));
            if let Some((right, batch)) = case.accuracy {
                let hits = (0..batch).filter(|_| rng.next_unit() < right(at)).count();
                accuracy.take(step, hits as f64 / f64::from(batch));
            }
        }
        let accuracies: &[_] = if case.accuracy.is_some() { &[("acc", &accuracy)] } else { &[] };
        chance_level(("loss", &loss), accuracies, None).is_some()
    }

    const fn of(right: fn(f64) -> f64, batch: u32) -> Accuracy {
        Some((right, batch))
    }

    /// Models that guess.
    const GUESS: [Case; 14] = [
        case("2 classes", 600, (|_| 0.713, 0.1), of(|_| 0.5, 16)),
        case("2 classes, little noise", 600, (|_| 0.713, 0.03), of(|_| 0.5, 16)),
        case("3 classes", 600, (|_| 1.12, 0.15), of(|_| 1.0 / 3.0, 16)),
        case("7 classes", 400, (|_| 1.96, 0.1), of(|_| 1.0 / 7.0, 32)),
        case("10 classes, noise", 600, (|_| 2.32, 0.25), of(|_| 0.1, 16)),
        case("10 classes, few values", 60, (|_| 2.31, 0.03), of(|_| 0.1, 128)),
        case("10 classes, from above", 400, (|at| 2.31 + 1.5 * (-at * 50.0).exp(), 0.05), of(|_| 0.1, 32)),
        case("100 classes", 600, (|_| 4.625, 0.1), of(|_| 0.01, 16)),
        case("1000 classes", 600, (|_| 6.93, 0.2), of(|_| 0.001, 64)),
        case("0.9 of one class", 400, (|_| 0.328, 0.01), of(|_| 0.9, 256)),
        case("0.9 of one class, noise", 2000, (|_| 0.325, 0.05), of(|_| 0.9, 64)),
        case("0.7 of one class", 600, (|_| 0.611, 0.03), of(|_| 0.7, 64)),
        case("10 classes by the loss", 200, (|_| 2.303, 0.02), None),
        case("2 classes by the loss", 400, (|_| 0.693, 0.006), None),
    ];

    /// Models that do not, or of which it cannot be said.
    const NO_GUESS: [Case; 20] = [
        case("a language model", 400, (|_| 2.87, 0.08), None),
        case("a language model that learns a little", 400, (|at| 2.94 - 0.02 * at, 0.1), None),
        case("one at ln 10, noise", 400, (|_| 2.303, 0.2), None),
        case("one near ln 10", 400, (|_| 2.33, 0.02), None),
        case("one at ln 17", 400, (|_| 2.833, 0.01), None),
        case("one of tokens", 400, (|_| 2.87, 0.08), of(|_| 0.43, 64)),
        case("one at ln 100 that falls", 400, (|at| 4.8 - 0.4 * at, 0.02), None),
        case("a small loss", 400, (|_| 0.31, 0.004), None),
        case("a loss above ln 2", 400, (|_| 0.72, 0.02), None),
        case("two classes, hard", 600, (|at| 0.693 - 0.01 * at, 0.02), of(|at| 0.5 + 0.08 * at, 64)),
        case("two classes, learned a little", 600, (|_| 0.69, 0.01), of(|_| 0.55, 256)),
        case("ten classes, slow", 400, (|at| 2.303 - 0.1 * at, 0.02), of(|at| 0.1 + 0.1 * at, 64)),
        case(
            "learns",
            400,
            (|at| 0.1 + 2.2 * (-at * 10.0).exp(), 0.05),
            of(|at| 0.95 - 0.85 * (-at * 10.0).exp(), 32),
        ),
        case("learns and rests at ln 2", 400, (|at| 0.7 + 1.6 * (-at * 20.0).exp(), 0.02), of(|_| 0.75, 32)),
        case("finished", 400, (|_| 0.25, 0.02), of(|_| 0.92, 64)),
        case("finished, too certain", 400, (|_| 0.45, 0.02), of(|_| 0.9, 64)),
        case("a large class, then more", 600, (|at| 0.33 - 0.15 * at, 0.02), of(|at| 0.9 + 0.05 * at, 128)),
        case("a thousand classes, half of them right", 400, (|_| 2.1, 0.1), of(|_| 0.5, 64)),
        case("few values", 19, (|_| 2.303, 0.001), None),
        case("falls to ln 10", 200, (|at| 4.0 - 1.7 * at, 0.02), of(|at| 0.02 + 0.1 * at, 64)),
    ];

    /// Proves which pairs of curves are those of a model that guesses, in 19 of 20 seeds at least, and that of any other at
    /// most 2 of 1000 are taken for one.
    #[test]
    fn a_guess_is_known_by_two_numbers() {
        for case in &GUESS {
            let found = (0..20).filter(|seed| guesses(case, *seed)).count();
            assert!(found >= 19, "{}: {found} of 20", case.says);
        }
        let seeds = 30;
        let found: Vec<(&str, usize)> = NO_GUESS
            .iter()
            .map(|case| (case.says, (0..seeds).filter(|seed| guesses(case, *seed)).count()))
            .filter(|(_, found)| *found > 0)
            .collect();
        let all: usize = found.iter().map(|(_, found)| found).sum();
        assert!(all * 500 <= NO_GUESS.len() * seeds as usize, "{found:?}");
    }

    /// Proves that the level of a loss alone is hardly ever taken for a guess: of language models of any level between
    /// 1.5 and 5, 0.3 % at most.
    #[test]
    fn a_flat_loss_alone_is_hardly_ever_a_guess() {
        let found = (0..1000_u64).filter(|seed| {
            let mut rng = SplitMix64::new(*seed);
            let (level, noise) = (1.5 + 3.5 * rng.next_unit(), 0.01 + 0.2 * rng.next_unit());
            let mut loss = Curve::default();
            (1..=300).for_each(|step| loss.take(step, level + noise * normal(&mut rng)));
            chance_level(("loss", &loss), &[], None).is_some()
        });
        let found = found.count();
        assert!(found <= 3, "{found} of 1000");
    }

    /// Proves that a percentage counts as an accuracy, and that one accuracy which is better than a guess, of several,
    /// says that it is none.
    #[test]
    fn each_accuracy_counts() {
        let curve = |value: f64| {
            let mut curve = Curve::default();
            (1..=40).for_each(|step| curve.take(step, value));
            curve
        };
        let (loss, percent, better) = (curve(2.31), curve(10.0), curve(0.3));
        let found = chance_level(("loss", &loss), &[("acc", &percent)], None).unwrap();
        let said =
            "`loss` stays at 2.310 and `acc` at 0.100, and a guess among 10 classes has 2.303 and 0.100";
        assert_eq!(found.evidence, said);
        let both = [("acc", &percent), ("val_acc", &better)];
        assert_eq!(chance_level(("loss", &loss), &both, None), None);
    }

    /// Proves that a model whose accuracy stays at the fraction of the largest class that was counted guesses, of any
    /// number of classes, and that one at another one, one whose accuracy or loss moves, and one that has a single
    /// class does not.
    #[test]
    fn the_counted_class_is_a_guess() {
        let curve = |at: &dyn Fn(u64) -> f64| {
            let mut curve = Curve::default();
            (1..=40).for_each(|step| curve.take(step, at(step)));
            curve
        };
        let of = |fraction: f64| Majority { fraction, of: "data/train.csv".into() };
        let (loss, level) = (curve(&|_| 1.31), curve(&|_| 0.58));
        let found = chance_level(("loss", &loss), &[("acc", &level)], Some(&of(0.582))).unwrap();
        assert_eq!(
            found.evidence,
            "`loss` stays at 1.310 and `acc` at 0.580 from the first values on, and the largest class of `data/train.csv` has 0.582 of its labels"
        );
        let (falls, rises) =
            (curve(&|step| 1.9 - 0.03 * step as f64), curve(&|step| 0.4 + 0.008 * step as f64));
        let right = curve(&|_| 1.0);
        for (loss, accuracy, majority) in [
            (&loss, &level, None),
            (&loss, &level, Some(of(0.6))),
            (&loss, &rises, Some(of(0.58))),
            (&falls, &level, Some(of(0.58))),
            (&loss, &right, Some(of(1.0))),
        ] {
            let found = chance_level(("loss", loss), &[("acc", accuracy)], majority.as_ref());
            assert_eq!(found, None, "{majority:?}");
        }
    }
}
