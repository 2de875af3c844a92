//! Values of attempts that are not sealed: their metrics so far, and the parameters of their commands.

use std::path::Path;

use trackway_core::LaunchKind;
use trackway_formats::arguments::parameters_of;
use trackway_ledger::scan::live_summaries;
use trackway_ledger::{AttemptRow, Ledger, LedgerError, MetricSummaryRow, ParameterRow};

/// What attempts that are not sealed have; each part is read when a name may mean it.
#[derive(Debug, Default)]
pub(super) struct Live {
    attempts: Option<Vec<AttemptRow>>,
    metrics: Option<Vec<MetricSummaryRow>>,
    parameters: Option<Vec<ParameterRow>>,
}

impl Live {
    fn attempts(&mut self, ledger: &Ledger) -> Result<&[AttemptRow], LedgerError> {
        if self.attempts.is_none() {
            let mut attempts = ledger.unsealed_attempts()?;
            attempts.retain(|attempt| attempt.kind == LaunchKind::Train);
            self.attempts = Some(attempts);
        }
        Ok(self.attempts.as_deref().unwrap_or_default())
    }

    /// Their metrics.
    pub fn metrics(&mut self, ledger: &Ledger, home: &Path) -> Result<&[MetricSummaryRow], LedgerError> {
        if self.metrics.is_none() {
            let mut metrics = Vec::new();
            for attempt in self.attempts(ledger)? {
                metrics.extend(live_summaries(home, attempt)?);
            }
            self.metrics = Some(metrics);
        }
        Ok(self.metrics.as_deref().unwrap_or_default())
    }

    /// The parameters of their commands.
    pub fn parameters(&mut self, ledger: &Ledger) -> Result<&[ParameterRow], LedgerError> {
        if self.parameters.is_none() {
            let mut parameters = Vec::new();
            for AttemptRow { attempt_id, run_id, command, .. } in self.attempts(ledger)? {
                let (attempt_id, run_id) = (*attempt_id, *run_id);
                let row = |(name, value)| ParameterRow { attempt_id, run_id, name, value };
                parameters.extend(parameters_of(command).into_iter().map(row));
            }
            self.parameters = Some(parameters);
        }
        Ok(self.parameters.as_deref().unwrap_or_default())
    }

    /// Their metrics, as far as they were read.
    pub fn read_metrics(&self) -> impl Iterator<Item = &MetricSummaryRow> {
        self.metrics.iter().flatten()
    }

    /// The parameters of their commands, as far as they were read.
    pub fn read_parameters(&self) -> impl Iterator<Item = &ParameterRow> {
        self.parameters.iter().flatten()
    }
}
