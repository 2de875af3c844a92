//! Exact tails of counts.

use statrs::function::gamma::ln_gamma;

/// Terms of a tail that are this much smaller than their sum change nothing.
const TERM_SHARE_MIN: f64 = 1e-17;

/// The probability of at least `hits` marked ones among `drawn`, sampled without replacement from `all` of which
/// `marked` are marked: Fisher's exact test, one-sided (SciPy's `hypergeom.sf(hits - 1, all, marked, drawn)`). The
/// permutation test of a sum of zeros and ones with every permutation gives the same.
#[must_use]
pub fn hypergeometric_p_value(all: u64, marked: u64, drawn: u64, hits: u64) -> f64 {
    let most = marked.min(drawn);
    if hits <= (drawn + marked).saturating_sub(all) {
        return 1.0;
    }
    if hits > most {
        return 0.0;
    }
    if hits as f64 <= drawn as f64 * marked as f64 / all as f64 {
        // The other tail is the short one, and starts with a number that is not too small.
        return 1.0 - hypergeometric_p_value(all, all - marked, drawn, drawn - hits + 1);
    }
    let start = ln_choose(marked, hits) + ln_choose(all - marked, drawn - hits) - ln_choose(all, drawn);
    let ratio = |hit: u64| {
        let (left, gone) = ((marked - hit) as f64, (drawn - hit) as f64);
        left * gone / ((hit + 1) as f64 * (all + hit + 1 - marked - drawn) as f64)
    };
    (start.exp() * tail(hits, most, ratio)).min(1.0)
}

/// The probability of at least `hits` in `trials` that each hit with this probability (SciPy's `binom.sf(hits - 1,
/// …)`): with ½ the sign test, and McNemar's exact test, one-sided.
#[must_use]
pub fn binomial_p_value(trials: u64, hits: u64, probability: f64) -> f64 {
    if hits == 0 {
        return 1.0;
    }
    if hits > trials {
        return 0.0;
    }
    if hits as f64 <= trials as f64 * probability {
        return 1.0 - binomial_p_value(trials, trials - hits + 1, 1.0 - probability);
    }
    let start = ln_choose(trials, hits)
        + hits as f64 * probability.ln()
        + (trials - hits) as f64 * (1.0 - probability).ln();
    let odds = probability / (1.0 - probability);
    let ratio = |hit: u64| (trials - hit) as f64 / (hit + 1) as f64 * odds;
    (start.exp() * tail(hits, trials, ratio)).min(1.0)
}

/// Between which of `count` ordered values, counted from 1, a quantile is, with this confidence or more and whatever
/// the distribution (order statistics: W. Conover, Practical Nonparametric Statistics, 3.2). An end is missing if there
/// are too few values for it.
#[must_use]
pub fn quantile_ranks(count: u64, share: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
    let tail = (1.0 - confidence) / 2.0;
    // At least `rank` values are below the quantile.
    let reached = |rank: u64| binomial_p_value(count, rank, share);
    let first = |holds: &dyn Fn(u64) -> bool| {
        let (mut low, mut high) = (1, count + 1);
        while low < high {
            let middle = low.midpoint(high);
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        low
    };
    let low = first(&|rank| 1.0 - reached(rank) > tail) - 1;
    let high = first(&|rank| reached(rank) <= tail);
    ((low > 0).then_some(low), (high <= count).then_some(high))
}

/// The sum of terms from `first` to `last`, in units of the first one; `ratio(i)` is term `i + 1` over term `i`.
fn tail(first: u64, last: u64, ratio: impl Fn(u64) -> f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for at in first..last {
        let step = ratio(at);
        term *= step;
        sum += term;
        // Ratios only fall, so once terms shrink they keep shrinking.
        if step < 1.0 && term < sum * TERM_SHARE_MIN {
            break;
        }
    }
    sum
}

fn ln_choose(all: u64, chosen: u64) -> f64 {
    let ln_factorial = |number: u64| ln_gamma(number as f64 + 1.0);
    ln_factorial(all) - ln_factorial(chosen) - ln_factorial(all - chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the tails by SciPy's figures (`hypergeom.sf`, `binom.sf`), near and far from the middle, and at the ends.
    #[test]
    fn tails_by_scipy() {
        let close = |ours: f64, theirs: f64| {
            assert!((ours - theirs).abs() <= 1e-7 * theirs.max(1e-300), "{ours} is not {theirs}");
        };
        HYPERGEOMETRIC.iter().for_each(|(all, marked, drawn, hits, p)| {
            close(hypergeometric_p_value(*all, *marked, *drawn, *hits), *p);
        });
        BINOMIAL.iter().for_each(|(trials, hits, probability, p)| {
            close(binomial_p_value(*trials, *hits, *probability), *p)
        });
        assert_eq!(hypergeometric_p_value(10, 8, 9, 7), 1.0);
        assert_eq!(hypergeometric_p_value(10, 3, 4, 4), 0.0);
        close(hypergeometric_p_value(290_000, 60_000, 5000, 300), 1.0);
        close(binomial_p_value(100_000, 40_000, 0.5), 1.0);
        assert_eq!((binomial_p_value(5, 0, 0.5), binomial_p_value(5, 6, 0.5)), (1.0, 0.0));
    }

    /// Proves the ranks by published tables of the median's (n = 10, 25, 100) and by the least number of values that
    /// has an end: of the median 6, of the 95 % quantile 72, since 0.95⁷² < 2.5 %.
    #[test]
    fn ranks_by_tables() {
        for (count, share, ranks) in [
            (10, 0.5, (Some(2), Some(9))),
            (25, 0.5, (Some(8), Some(18))),
            (100, 0.5, (Some(40), Some(61))),
            (5, 0.5, (None, None)),
            (6, 0.5, (Some(1), Some(6))),
            (71, 0.95, (Some(63), None)),
            (0, 0.5, (None, None)),
        ] {
            assert_eq!(quantile_ranks(count, share, 0.95), ranks, "{count} {share}");
        }
        assert_eq!(quantile_ranks(72, 0.95, 0.95).1, Some(72));
    }

    const HYPERGEOMETRIC: [(u64, u64, u64, u64, f64); 6] = [
        (10, 4, 5, 3, 0.2619047619047619),
        (100, 20, 30, 12, 0.001830609424724005),
        (100, 60, 30, 15, 0.9399092559696989),
        (16280, 3100, 400, 130, 6.164582481337585e-11),
        (290000, 60000, 5000, 1400, 1.5126248826886481e-35),
        (1000, 300, 700, 220, 0.07561811312861483),
    ];
    const BINOMIAL: [(u64, u64, f64, f64); 4] = [
        (10, 8, 0.5, 0.0546875),
        (200, 120, 0.5, 0.002842577998375153),
        (5000, 2700, 0.5, 8.229390551721101e-09),
        (50, 9, 0.1, 0.057867205718094256),
    ];
}
