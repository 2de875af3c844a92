//! What an attempt is charged: integers that sum to the cost of its receipt. `migrations/0026_subjects.sql` says the same of the
//! receipts from before.

use trackway_core::Timestamp;

use crate::records::{AttemptRow, ChargeKind, ChargeRow, CostRow};

/// The item of what the receipt's cost has beyond its items.
const REST: &str = "rest";
/// More is not charged at once: 9·10⁹ USD.
const USD_MAX: f64 = 9e9;
const QUANTITY_MAX: f64 = 9e18;
/// The end of a unit that is charged in thousandths.
const SECONDS: &str = "_seconds";

/// The charges of an attempt that is sealed: one for each of its costs, and what the receipt's cost has beyond them.
pub(crate) fn charges_of(
    attempt: &AttemptRow,
    costs: &[CostRow],
    sealed_at: Timestamp,
    project: Option<&str>,
) -> Vec<ChargeRow> {
    let charge = |item: &str, quantity: i64, unit: String, amount_nano_usd: Option<i64>| ChargeRow {
        charge_id: format!("{}:{item}", attempt.attempt_id),
        attempt_id: Some(attempt.attempt_id),
        run_id: Some(attempt.run_id),
        project: project.map(str::to_owned),
        at: sealed_at,
        kind: ChargeKind::Usage,
        item: item.into(),
        quantity,
        unit,
        amount_nano_usd,
    };
    let of_cost = |cost: &CostRow| {
        let (quantity, unit) = whole(cost.quantity, &cost.unit);
        charge(&cost.item, quantity, unit, cost.usd.map(nano_usd))
    };
    let mut charges: Vec<ChargeRow> = costs.iter().map(of_cost).collect();
    // Summed as whole numbers: the charges add up to the cost without an error of rounding.
    let charged: i64 = charges.iter().filter_map(|charge| charge.amount_nano_usd).sum();
    let rest = attempt.cost_usd.map(|usd| nano_usd(usd) - charged).filter(|rest| *rest != 0);
    charges.extend(rest.map(|rest| charge(REST, 1, "attempts".into(), Some(rest))));
    charges
}

/// USD in whole 10⁻⁹ USD.
#[must_use]
pub fn nano_usd(usd: f64) -> i64 {
    (usd.clamp(0.0, USD_MAX) * 1e9 + 0.5).floor() as i64
}

/// A quantity in whole units: seconds become milliseconds.
fn whole(quantity: f64, unit: &str) -> (i64, String) {
    let (scale, unit) = match unit.strip_suffix(SECONDS) {
        Some(what) => (1e3, format!("{what}_milliseconds")),
        None => (1.0, unit.to_owned()),
    };
    (((quantity.max(0.0) * scale).min(QUANTITY_MAX) + 0.5).floor() as i64, unit)
}

#[cfg(test)]
mod tests {
    use trackway_core::Timestamp;

    use super::*;
    use crate::value::Record as _;

    type Item<'i> = (&'i str, f64, &'i str, Option<f64>);

    fn charged(cost_usd: Option<f64>, items: &[Item<'_>], project: Option<&str>) -> Vec<ChargeRow> {
        let attempt = AttemptRow { cost_usd, ..AttemptRow::blank() };
        let costs = items.iter().map(|(item, quantity, unit, usd)| CostRow {
            item: (*item).into(),
            quantity: *quantity,
            unit: (*unit).into(),
            usd: *usd,
            ..CostRow::blank()
        });
        charges_of(&attempt, &costs.collect::<Vec<_>>(), Timestamp::from_micros(7), project)
    }

    /// Proves that the charges of an attempt sum to the cost of its receipt, to the nano-dollar, whatever its items say, and that an
    /// item without a price has none.
    #[test]
    fn the_charges_are_the_cost() {
        let third = 1.0 / 3.0;
        let gpu = ("gpu", 360.0004, "gpu_seconds", Some(third));
        let cpu = ("cpu", 0.25, "cpu_seconds", None);
        for (cost, items, rest) in [
            (Some(third), vec![gpu, cpu], None),
            (Some(0.5), vec![gpu], Some(166_666_667)),
            (Some(0.2), vec![], Some(200_000_000)),
            (None, vec![cpu], None),
        ] {
            let charges = charged(cost, &items, Some("fraud"));
            let sum: i64 = charges.iter().filter_map(|charge| charge.amount_nano_usd).sum();
            assert_eq!(sum, cost.map_or(0, nano_usd), "{charges:?}");
            let found = charges.iter().find(|charge| charge.item == REST);
            assert_eq!(found.and_then(|charge| charge.amount_nano_usd), rest);
            assert!(charges.iter().all(|charge| charge.project.as_deref() == Some("fraud")));
        }
        let charges = charged(None, &[gpu, cpu], None);
        assert_eq!((charges[0].quantity, charges[0].unit.as_str()), (360_000, "gpu_milliseconds"));
        assert_eq!((charges[0].amount_nano_usd, charges[1].amount_nano_usd), (Some(333_333_333), None));
        assert_eq!((nano_usd(f64::INFINITY), nano_usd(-1.0)), (9_000_000_000_000_000_000, 0));
    }
}
