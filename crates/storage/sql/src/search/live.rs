//! Values of attempts that are not sealed: their metrics so far, and the parameters and tags that were declared.

use trackway_core::{LaunchKind, RunId};
use trackway_formats::arguments::declared;
use trackway_formats::runfile::RunSection;
use trackway_ledger::scan::{Record as _, Table};
use trackway_ledger::{AttemptRow, Ledger, LedgerError, MetricSummaryRow, ParameterRow, RunTagRow};
use trackway_records::LiveRecords;

/// What attempts that are not sealed have; each part is read when a name may mean it.
#[derive(Debug, Default)]
pub(super) struct Live {
    attempts: Option<Vec<AttemptRow>>,
    metrics: Option<Vec<MetricSummaryRow>>,
    texts: Option<Vec<LiveText>>,
}

/// A parameter or a tag that was declared for an attempt that is not sealed.
#[derive(Debug)]
pub(super) struct LiveText {
    /// The table or view that it will be in.
    pub table: &'static str,
    pub run_id: RunId,
    pub name: String,
    pub value: String,
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
    pub fn metrics(
        &mut self,
        ledger: &Ledger,
        records: &LiveRecords,
    ) -> Result<&[MetricSummaryRow], LedgerError> {
        if self.metrics.is_none() {
            self.metrics = Some(records.summaries(self.attempts(ledger)?)?);
        }
        Ok(self.metrics.as_deref().unwrap_or_default())
    }

    /// The parameters of their commands, and the parameters and tags that were given.
    pub fn texts(&mut self, ledger: &Ledger) -> Result<&[LiveText], LedgerError> {
        if self.texts.is_none() {
            let mut texts = Vec::new();
            for AttemptRow { run_id, command, .. } in self.attempts(ledger)? {
                let run = ledger.run(*run_id)?;
                let given = run.map(|run| RunSection::of_stored(&run.config_json)).unwrap_or_default();
                let text =
                    |table: &Table, name, value| LiveText { table: table.name, run_id: *run_id, name, value };
                let parameters = declared(command, &given.parameters).into_iter();
                texts.extend(parameters.map(|it| text(ParameterRow::TABLE, it.name, it.value)));
                let amended = ledger.amendments_of_run(*run_id)?;
                let is_amended = |name: &String| amended.iter().any(|it| it.tag.as_ref() == Some(name));
                let tags = given.tags.into_iter().filter(|(name, _)| !is_amended(name));
                texts.extend(tags.map(|(name, value)| text(RunTagRow::TABLE, name, value)));
            }
            self.texts = Some(texts);
        }
        Ok(self.texts.as_deref().unwrap_or_default())
    }

    /// Their metrics, as far as they were read.
    pub fn read_metrics(&self) -> impl Iterator<Item = &MetricSummaryRow> {
        self.metrics.iter().flatten()
    }

    /// What was declared, as far as it was read.
    pub fn read_texts(&self) -> impl Iterator<Item = &LiveText> {
        self.texts.iter().flatten()
    }
}
