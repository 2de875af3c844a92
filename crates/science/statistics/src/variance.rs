//! Do groups of numbers have the same mean?

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// What is known of a group of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// How many numbers; at least 2.
    pub count: f64,
    pub mean: f64,
    /// Their variance (divided by count − 1).
    pub variance: f64,
}

/// The result of an analysis of variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceAnalysis {
    /// The F statistic.
    pub statistic: f64,
    /// The probability of at least this statistic if all means are the same.
    pub p_value: f64,
    /// The fraction of the numbers' variance that the groups explain, corrected for their number (Kelley's ε², 1935);
    /// not below 0.
    pub explained: f64,
}

/// B. Welch's analysis of variance (1951), which does not take the groups to vary alike; R. Fisher's where a group does
/// not vary at all. `None` for fewer than two groups of two numbers, and where nothing varies.
#[must_use]
pub fn variance_analysis(groups: &[Group]) -> Option<VarianceAnalysis> {
    let groups: Vec<Group> = groups.iter().copied().filter(|group| group.count >= 2.0).collect();
    let count = groups.len() as f64;
    let all: f64 = groups.iter().map(|group| group.count).sum();
    let mean = groups.iter().map(|group| group.count * group.mean).sum::<f64>() / all;
    let between: f64 = groups.iter().map(|group| group.count * (group.mean - mean).powi(2)).sum();
    let within: f64 = groups.iter().map(|group| (group.count - 1.0) * group.variance).sum();
    let inside = within / (all - count);
    if groups.len() < 2 || between + within <= 0.0 || !inside.is_finite() {
        return None;
    }
    let explained = (1.0 - inside / ((between + within) / (all - 1.0))).clamp(0.0, 1.0);
    let (statistic, freedom) = match groups.iter().all(|group| group.variance > 0.0) {
        true => welch(&groups),
        false => (between / (count - 1.0) / inside, all - count),
    };
    let p_value = match statistic.is_infinite() {
        true => 0.0,
        false => FisherSnedecor::new(count - 1.0, freedom).ok()?.sf(statistic.max(0.0)),
    };
    Some(VarianceAnalysis { statistic, p_value, explained })
}

/// The statistic, and the degrees of freedom below the line.
fn welch(groups: &[Group]) -> (f64, f64) {
    let count = groups.len() as f64;
    let weights: Vec<f64> = groups.iter().map(|group| group.count / group.variance).collect();
    let weight: f64 = weights.iter().sum();
    let weighted = || weights.iter().zip(groups);
    let mean = weighted().map(|(weight, group)| weight * group.mean).sum::<f64>() / weight;
    let apart: f64 = weighted().map(|(weight, group)| weight * (group.mean - mean).powi(2)).sum();
    let loose: f64 = weighted().map(|(own, group)| (1.0 - own / weight).powi(2) / (group.count - 1.0)).sum();
    let squares = count * count - 1.0;
    let below = 1.0 + 2.0 * (count - 2.0) / squares * loose;
    (apart / (count - 1.0) / below, squares / (3.0 * loose))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(numbers: &[f64]) -> Group {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let variance = numbers.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Group { count, mean, variance }
    }

    fn groups() -> [Group; 3] {
        [
            group(&[6.0, 8.0, 4.0, 5.0, 3.0, 4.0]),
            group(&[8.0, 12.0, 9.0, 11.0, 6.0, 8.0]),
            group(&[13.0, 9.0, 11.0, 8.0, 7.0, 12.0, 30.0]),
        ]
    }

    /// Proves agreement with SciPy's `f_oneway(..., equal_var=False)`, and with its usual one where a group is
    /// constant.
    #[test]
    fn agrees_with_scipy() {
        let welch = variance_analysis(&groups()).unwrap();
        assert!(
            (welch.statistic - 7.631838565105753).abs() < 1e-9
                && (welch.p_value - 0.009680736903961366).abs() < 1e-9,
            "{welch:?}"
        );
        let fisher = variance_analysis(&[groups()[0], groups()[1], group(&[2.0; 5])]).unwrap();
        assert!(
            (fisher.statistic - 23.841176470588216).abs() < 1e-9
                && (fisher.p_value - 3.1029139060864675e-5).abs() < 1e-9,
            "{fisher:?}"
        );
        assert!(fisher.explained > 0.5 && welch.explained > 0.0);
    }

    /// Proves that one group, groups of one number, and numbers that do not vary give no result, and that constants
    /// that differ explain everything.
    #[test]
    fn too_little_says_nothing() {
        assert_eq!(variance_analysis(&groups()[..1]), None);
        let one = Group { count: 1.0, mean: 3.0, variance: f64::NAN };
        assert_eq!(variance_analysis(&[groups()[0], one]), None);
        assert_eq!(variance_analysis(&[group(&[2.0; 5]), group(&[2.0; 5])]), None);
        let apart = variance_analysis(&[group(&[2.0; 5]), group(&[3.0; 5])]).unwrap();
        assert_eq!((apart.p_value, apart.explained), (0.0, 1.0));
    }
}
