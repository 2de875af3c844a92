//! Association of two categories.

/// Counts of pairs of categories: rows × columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: usize,
    counts: Vec<f64>,
    row_sums: Vec<f64>,
    column_sums: Vec<f64>,
    sum: f64,
}

impl Table {
    /// Of counts in rows, all of the same length.
    #[must_use]
    pub fn new(rows: &[Vec<f64>]) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        assert!(rows.iter().all(|row| row.len() == columns), "every row has the same columns");
        let row_sums: Vec<f64> = rows.iter().map(|row| row.iter().sum()).collect();
        let column_sums = (0..columns).map(|column| rows.iter().map(|row| row[column]).sum()).collect();
        let sum = row_sums.iter().sum();
        Self { columns, counts: rows.concat(), row_sums, column_sums, sum }
    }

    /// How many pairs were counted.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    pub(crate) fn rows_used(&self) -> usize {
        self.row_sums.iter().filter(|sum| **sum > 0.0).count()
    }

    pub(crate) fn columns_used(&self) -> usize {
        self.column_sums.iter().filter(|sum| **sum > 0.0).count()
    }

    /// `Σ (observed − expected)² / expected` over the cells that could hold anything.
    pub(crate) fn chi_square_statistic(&self) -> f64 {
        self.cells().map(|(count, expected)| (count - expected).powi(2) / expected).sum()
    }

    /// Cramér's V with Bergsma's bias correction (2013), between 0 (nothing) and 1 (everything); 0 for independent
    /// categories whatever their number. `None` when fewer than two rows or columns hold anything.
    #[must_use]
    pub fn cramers_v(&self) -> Option<f64> {
        let (rows, columns) = (self.rows_used() as f64, self.columns_used() as f64);
        if rows < 2.0 || columns < 2.0 || self.sum < 2.0 {
            return None;
        }
        let degrees = (rows - 1.0) * (columns - 1.0);
        let phi_square = (self.chi_square_statistic() / self.sum - degrees / (self.sum - 1.0)).max(0.0);
        let corrected = |count: f64| count - (count - 1.0).powi(2) / (self.sum - 1.0);
        let least = (corrected(rows) - 1.0).min(corrected(columns) - 1.0);
        Some(if least > 0.0 { (phi_square / least).sqrt().min(1.0) } else { 0.0 })
    }

    /// Counts with what independence would let expect, of rows and columns that hold anything.
    fn cells(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let cells = self.counts.iter().enumerate().map(|(index, count)| {
            let expected =
                self.row_sums[index / self.columns] * self.column_sums[index % self.columns] / self.sum;
            (*count, expected)
        });
        cells.filter(|(_, expected)| *expected > 0.0)
    }
}
