//! Experiments: some rows were treated and others were not, and a score predicts what the treatment of a row changes.
//!
//! Rows are read by falling score; at the end of each tie, `t` and `c` are the treated and the other rows so far, and
//! `T` and `C` the sums of their outcomes. The Qini curve is `T − C · t / c` (N. Radcliffe 2007), the uplift curve is
//! `(T / t − C / c) · (t + c)` (F. Devriendt et al. 2020), over `t + c` from 0 on; a term without rows is 0. A coefficient
//! is the area between the curve and the straight line to its end, over the same area of the best possible order.
//! Definitions are those of scikit-uplift.

use trackway_statistics::difference_interval;

use super::ratio::Ratio;
use super::resample::Units;
use super::table::pick;
use crate::{Estimate, Method};

/// The part of the rows, by falling score, that `uplift_at_30` is over.
const TOP: f64 = 0.3;

/// Rows of an experiment.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    pub treated: Vec<bool>,
    pub outcome: Vec<f64>,
    /// The predicted effect: higher is more.
    pub score: Vec<f64>,
}

/// Metrics of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The mean outcome of treated rows minus that of the others.
    Average,
    /// The same among the rows with the highest scores.
    Top,
    Qini,
    Uplift,
}

/// Numbers of one pass; NaN where rows are missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effects {
    average: f64,
    top: f64,
    qini: f64,
    uplift: f64,
}

impl Effects {
    pub(crate) fn get(self, effect: Effect) -> f64 {
        match effect {
            Effect::Average => self.average,
            Effect::Top => self.top,
            Effect::Qini => self.qini,
            Effect::Uplift => self.uplift,
        }
    }
}

impl Experiment {
    pub(super) fn subset(&self, items: &[u32]) -> Self {
        Self {
            treated: pick(&self.treated, items),
            outcome: pick(&self.outcome, items),
            score: pick(&self.score, items),
        }
    }

    /// The average effect with its interval, combined from those of both arms: of outcomes that are 0 or 1 Wilson's, of
    /// others Student's. `None` if an arm has no rows.
    pub(crate) fn average_effect(&self, confidence: f64) -> Option<Estimate> {
        let arm = |is_treated: bool| {
            let rows = self.treated.iter().zip(&self.outcome).filter(|(treated, _)| **treated == is_treated);
            let outcomes: Vec<f64> = rows.map(|(_, outcome)| *outcome).collect();
            let units = Units::Items(outcomes.len());
            let mean = Ratio { is_share: self.is_binary(), ..Ratio::share("ate", outcomes) };
            mean.estimate(&[], &[], units, confidence)
        };
        let (treated, control) = (arm(true)?, arm(false)?);
        let interval =
            difference_interval((treated.value, treated.interval), (control.value, control.interval));
        let support = self.treated.len() as u64;
        Some(Estimate::new(treated.value - control.value, interval, support, Method::Analytic))
    }

    /// Whether outcomes are 0 or 1: the best possible order is known only then.
    pub(crate) fn is_binary(&self) -> bool {
        self.outcome.iter().all(|outcome| *outcome == 0.0 || *outcome == 1.0)
    }
}

/// Rows of an experiment, sorted once.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    /// By falling score.
    order: Vec<u32>,
    /// In that order: the end of a tie.
    is_last: Vec<bool>,
    rows: Experiment,
    is_binary: bool,
}

/// Sums over rows, each as often as it was sampled.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    treated: f64,
    control: f64,
    outcome_of_treated: f64,
    outcome_of_control: f64,
}

impl Sums {
    fn add(&mut self, is_treated: bool, rows: f64, outcome: f64) {
        if is_treated {
            self.treated += rows;
            self.outcome_of_treated += outcome;
        } else {
            self.control += rows;
            self.outcome_of_control += outcome;
        }
    }

    /// These, and a part of what `later` has more.
    fn towards(self, later: Self, part: f64) -> Self {
        let between = |one: f64, other: f64| one + part * (other - one);
        Self {
            treated: between(self.treated, later.treated),
            control: between(self.control, later.control),
            outcome_of_treated: between(self.outcome_of_treated, later.outcome_of_treated),
            outcome_of_control: between(self.outcome_of_control, later.outcome_of_control),
        }
    }

    fn rows(self) -> f64 {
        self.treated + self.control
    }

    /// NaN if an arm has no rows.
    fn effect(self) -> f64 {
        self.outcome_of_treated / self.treated - self.outcome_of_control / self.control
    }

    /// The points of the Qini curve and of the uplift curve.
    fn curves(self) -> [f64; 2] {
        let over = |above: f64, below: f64| if below > 0.0 { above / below } else { 0.0 };
        let qini = self.outcome_of_treated - self.outcome_of_control * over(self.treated, self.control);
        let uplift =
            over(self.outcome_of_treated, self.treated) - over(self.outcome_of_control, self.control);
        [qini, uplift * self.rows()]
    }
}

/// Areas under both curves by trapezoids, from (0, 0) on.
#[derive(Debug, Clone, Copy, Default)]
struct Areas {
    areas: [f64; 2],
    at: f64,
    last: [f64; 2],
}

impl Areas {
    fn extend(&mut self, sums: Sums) {
        let (rows, points) = (sums.rows(), sums.curves());
        for (curve, point) in points.into_iter().enumerate() {
            self.areas[curve] += (rows - self.at) * f64::midpoint(self.last[curve], point);
        }
        (self.at, self.last) = (rows, points);
    }

    /// What is above the straight line to the end of the curve.
    fn above_line(self, curve: usize) -> f64 {
        self.areas[curve] - self.at * self.last[curve] / 2.0
    }
}

impl Sorted {
    pub(crate) fn new(rows: &Experiment) -> Self {
        let mut order: Vec<u32> = (0..rows.score.len() as u32).collect();
        let score = |item: u32| rows.score[item as usize];
        order.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
        let ends = |place: usize| order.get(place + 1).is_none_or(|next| score(*next) != score(order[place]));
        let is_last = (0..order.len()).map(ends).collect();
        Self { is_last, is_binary: rows.is_binary(), rows: rows.clone(), order }
    }

    /// The rows in their own order.
    pub(crate) fn rows(&self) -> &Experiment {
        &self.rows
    }

    /// Whether the Qini coefficient and the area under the uplift curve are defined.
    pub(crate) fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// All numbers of rows that were sampled so often. Rows that are tied where the top ends count in part.
    pub(crate) fn effects(&self, weights: &[u8]) -> Effects {
        let all: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        let wanted = (all * TOP).floor();
        let (mut sums, mut areas, mut top) = (Sums::default(), Areas::default(), None);
        let mut before = sums;
        // Rows by treatment and outcome, for the best possible order.
        let mut kinds = [[0.0; 2]; 2];
        for (item, is_last) in self.order.iter().zip(&self.is_last) {
            let item = *item as usize;
            let weight = f64::from(weights[item]);
            let (is_treated, outcome) = (self.rows.treated[item], self.rows.outcome[item]);
            sums.add(is_treated, weight, weight * outcome);
            kinds[usize::from(is_treated)][usize::from(outcome == 1.0)] += weight;
            if *is_last {
                if top.is_none() && sums.rows() >= wanted && sums.rows() > before.rows() {
                    let part = (wanted - before.rows()) / (sums.rows() - before.rows());
                    top = Some(before.towards(sums, part));
                }
                areas.extend(sums);
                before = sums;
            }
        }
        let of = |curve: usize| match self.is_binary {
            true => areas.above_line(curve) / best(kinds, curve).above_line(curve),
            false => f64::NAN,
        };
        Effects {
            average: sums.effect(),
            top: top.map_or(f64::NAN, Sums::effect),
            qini: of(0),
            uplift: of(1),
        }
    }
}

/// The areas of the best possible order of rows of these kinds (treated, outcome). For the Qini curve: treated rows with
/// the outcome, then all without it, then the others with it. For the uplift curve: treated rows with the outcome,
/// others without it, then whichever scikit-uplift puts last of the two other kinds.
fn best([control, treated]: [[f64; 2]; 2], curve: usize) -> Areas {
    const NO: usize = 0;
    const YES: usize = 1;
    let steps: &[&[(bool, usize)]] = match curve {
        0 => &[&[(true, YES)], &[(true, NO), (false, NO)], &[(false, YES)]],
        _ if control[YES] > treated[NO] => &[&[(true, YES)], &[(false, NO)], &[(false, YES)], &[(true, NO)]],
        _ => &[&[(true, YES)], &[(false, NO)], &[(true, NO)], &[(false, YES)]],
    };
    let (mut sums, mut areas) = (Sums::default(), Areas::default());
    for step in steps {
        for (is_treated, outcome) in *step {
            let rows = if *is_treated { treated[*outcome] } else { control[*outcome] };
            sums.add(*is_treated, rows, rows * *outcome as f64);
        }
        areas.extend(sums);
    }
    areas
}
