//! Scoring commands: one process that answers batches of rows (docs/scoring.md).

mod process;
mod program;
mod rows;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use arrow::error::ArrowError;
use trackway_data::model::{Cells, FrameColumn};
use trackway_evaluate::debug::Unscored;
use trackway_formats::Variable;

use process::{Exchange, Process};
pub(crate) use program::check_program;
use rows::Encoder;

/// Rows of a batch, at most.
pub(crate) const BATCH_ROWS_MAX: usize = 4096;
/// The longest wait for the answers to a batch by default.
pub(crate) const PATIENCE_SECONDS: f64 = 600.0;
/// How often a command that ended is restarted. A model may crash on unknown values.
const RESTARTS_MAX: usize = 50;

/// The columns' names and types, as JSON.
const COLUMNS_VARIABLE: &str = Variable::ScoringColumns.as_str();
/// How rows are written: `csv` or `arrow`.
const FORMAT_VARIABLE: &str = Variable::ScoringFormat.as_str();
/// `1` if the command has to return gradients.
const GRADIENTS_VARIABLE: &str = Variable::ScoringGradients.as_str();

/// How rows are written to a scoring command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchFormat {
    /// Text, an empty line after each batch.
    #[default]
    Csv,
    /// A stream of Arrow record batches.
    Arrow,
}

/// A command, and how it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoringCommand<'a> {
    /// In a shell.
    pub command: &'a str,
    /// How rows are written.
    pub format: BatchFormat,
    /// For gradients too.
    pub gradients: bool,
    /// The longest wait for the answers to a batch, the start of the command included.
    pub patience_seconds: f64,
    /// Whether its standard error is not passed on, and its last line is part of why rows have no answer.
    pub keeps_errors: bool,
}

pub(crate) struct Scorer<'s> {
    folder: PathBuf,
    asked: ScoringCommand<'s>,
    columns: String,
    cancelled: &'s AtomicBool,
    process: Option<(Process, Encoder)>,
    starts: usize,
    /// Whether answers are numbers, once there is one.
    are_numbers: Option<bool>,
}

impl<'s> Scorer<'s> {
    /// `base` is the folder the command starts in. Rows will have these columns.
    pub(crate) fn new(
        base: &Path,
        asked: ScoringCommand<'s>,
        columns: &[FrameColumn],
        cancelled: &'s AtomicBool,
    ) -> Self {
        let types: Vec<_> =
            columns.iter().map(|it| serde_json::json!({ "name": it.name, "type": it.kind })).collect();
        let here = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        Self {
            folder: here.to_owned(),
            asked,
            columns: serde_json::Value::from(types).to_string(),
            cancelled,
            process: None,
            starts: 0,
            are_numbers: None,
        }
    }

    /// Answers rows, batch by batch.
    pub(crate) fn score(&mut self, columns: &[FrameColumn]) -> Result<Cells, Unscored> {
        let answers = self.answers(columns)?;
        self.cells(answers)
    }

    /// For each column how the prediction changes with it, row by row; NaN if unknown.
    pub(crate) fn gradients(&mut self, columns: &[FrameColumn]) -> Result<Vec<Vec<f64>>, Unscored> {
        let mut gradients = vec![Vec::new(); columns.len()];
        for answer in self.answers(columns)? {
            let mut fields = answer.split(',').skip(1);
            for of_column in &mut gradients {
                let field = fields.next().map(str::trim).ok_or_else(|| {
                    Unscored::Refused(format!("it gives no gradients: it answered `{answer}`"))
                })?;
                let gradient = if field.is_empty() { Ok(f64::NAN) } else { field.parse::<f64>() };
                let wrong = |_| Unscored::Refused(format!("`{field}` is not a gradient"));
                of_column.push(gradient.map_err(wrong)?);
            }
            if fields.next().is_some() {
                let why = format!("it answered more gradients than the {} columns", columns.len());
                return Err(Unscored::Refused(why));
            }
        }
        Ok(gradients)
    }

    fn answers(&mut self, columns: &[FrameColumn]) -> Result<Vec<String>, Unscored> {
        let rows = columns.first().map_or(0, |column| match &column.cells {
            Cells::Numbers(numbers) => numbers.len(),
            Cells::Categories { codes, .. } => codes.len(),
        });
        let mut answers = Vec::with_capacity(rows);
        let mut start = 0;
        while start < rows {
            let end = (start + BATCH_ROWS_MAX).min(rows);
            answers.extend(self.batch(columns, start..end)?);
            start = end;
        }
        Ok(answers)
    }

    fn batch(&mut self, columns: &[FrameColumn], rows: Range<usize>) -> Result<Vec<String>, Unscored> {
        let count = rows.len();
        let (mut process, mut encoder) = match self.process.take() {
            Some(process) => process,
            None => self.start(columns)?,
        };
        let batch = encoder.batch(columns, rows).map_err(unwritten)?;
        match process.exchange(batch, count, self.asked.patience_seconds, self.cancelled) {
            Ok(answers) => {
                self.process = Some((process, encoder));
                Ok(answers)
            }
            // It reported the refusal itself, and continues.
            Err(Exchange::Refused(why)) => {
                self.process = process.is_ready().then_some((process, encoder));
                Err(Unscored::Refused(why))
            }
            Err(Exchange::Ended) => {
                let how = process.end();
                let said = process.last_error().map(|line| format!(" with `{line}`")).unwrap_or_default();
                let command = self.asked.command;
                let why = format!("`{command}` ended{said} ({how}) before it answered {count} rows");
                let may_go_on = self.are_numbers.is_some() && self.starts < RESTARTS_MAX;
                Err(if may_go_on { Unscored::Refused(why) } else { Unscored::Failed(why) })
            }
            Err(Exchange::Broken(why)) => Err(Unscored::Failed(format!("`{}` {why}", self.asked.command))),
            Err(Exchange::Cancelled) => Err(Unscored::Cancelled),
        }
    }

    fn start(&mut self, columns: &[FrameColumn]) -> Result<(Process, Encoder), Unscored> {
        self.starts += 1;
        let (encoder, head) = Encoder::start(self.asked.format, columns).map_err(unwritten)?;
        let mut command = Command::new("sh");
        trackway_files::restore_umask(&mut command);
        command
            .args(["-c", self.asked.command])
            .current_dir(&self.folder)
            .env(COLUMNS_VARIABLE, &self.columns);
        let format = match self.asked.format {
            BatchFormat::Csv => "csv",
            BatchFormat::Arrow => "arrow",
        };
        command.env(FORMAT_VARIABLE, format);
        if self.asked.gradients {
            command.env(GRADIENTS_VARIABLE, "1");
        } else {
            command.env_remove(GRADIENTS_VARIABLE);
        }
        let failed = |error: std::io::Error| {
            Unscored::Failed(format!("cannot start `{}`: {error}", self.asked.command))
        };
        Ok((Process::start(command, &head, self.asked.keeps_errors).map_err(failed)?, encoder))
    }

    /// Numbers or strings: all answers ever given are of one kind, and a number is finite.
    fn cells(&mut self, answers: Vec<String>) -> Result<Cells, Unscored> {
        let parsed: Vec<Option<f64>> = answers.iter().map(|answer| answer.trim().parse().ok()).collect();
        let is_number = |number: &Option<f64>| number.is_some_and(f64::is_finite);
        let (some, all) = (parsed.iter().any(is_number), parsed.iter().all(is_number));
        let only_numbers = some || parsed.iter().all(Option::is_some);
        let are_numbers = *self.are_numbers.get_or_insert(only_numbers);
        match (are_numbers, all) {
            (true, true) => Ok(Cells::Numbers(parsed.into_iter().flatten().collect())),
            (true, false) => {
                let place = parsed.iter().position(|number| !is_number(number)).expect("one is not a number");
                Err(Unscored::Refused(format!(
                    "it answered `{}`, which is not a finite number, but other answers are numbers: all must be numbers, or all strings",
                    answers[place]
                )))
            }
            (false, _) => match parsed.iter().position(is_number) {
                Some(place) => Err(Unscored::Refused(format!(
                    "it answered the number `{}`, but strings before: all must be numbers, or all strings",
                    answers[place]
                ))),
                None => Ok(Cells::of_texts(answers.iter().map(|answer| Some(answer.as_str())))),
            },
        }
    }
}

fn unwritten(error: ArrowError) -> Unscored {
    Unscored::Failed(format!("rows cannot be written as Arrow: {error}"))
}

#[cfg(test)]
mod tests {
    use trackway_tables::ColumnType;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn numbers(values: impl Iterator<Item = f64>) -> Vec<FrameColumn> {
        vec![FrameColumn {
            name: "x".to_owned(),
            kind: ColumnType::Float,
            cells: Cells::Numbers(values.collect()),
        }]
    }

    fn plain(command: &str) -> ScoringCommand<'_> {
        ScoringCommand {
            command,
            format: BatchFormat::Csv,
            gradients: false,
            patience_seconds: PATIENCE_SECONDS,
            keeps_errors: false,
        }
    }

    fn asked(command: &str, batches: &[Vec<FrameColumn>]) -> Vec<Result<Cells, Unscored>> {
        let mut scorer = Scorer::new(Path::new(""), plain(command), &batches[0], &NEVER);
        batches.iter().map(|batch| scorer.score(batch)).collect()
    }

    /// Proves that one process answers all batches, of more rows than a batch and than a pipe holds, in their order.
    #[test]
    fn one_process_for_all_batches() {
        let script = "read -r header; while read -r x; do [ -z \"$x\" ] || echo \"$x\"; done";
        let rows = || numbers((0..10_000).map(f64::from));
        let answers = asked(script, &[rows(), rows()]);
        let expected = Cells::Numbers((0..10_000).map(f64::from).collect());
        assert!(answers.iter().all(|answer| answer.as_ref() == Ok(&expected)));
        let by_process = "read -r header; while read -r x; do [ -z \"$x\" ] || echo $$; done";
        let answers = asked(by_process, &[numbers([1.0].into_iter()), numbers([2.0].into_iter())]);
        assert_eq!(answers[0], answers[1]);
    }

    /// Proves that refusals are reported and ended by the next batch, that a command which crashes on a value is
    /// restarted, and that one which never answered is a failure.
    #[test]
    fn refusals_and_deaths() {
        let script = "read -r header; while read -r x; do case $x in '') ;; 13) echo '! not that';; 14) exit 3;; *) echo \"$x\";; esac; done";
        let of = |value: f64| numbers([value].into_iter());
        let answers = asked(script, &[of(1.0), of(13.0), of(2.0), of(14.0), of(3.0)]);
        assert_eq!(answers[1], Err(Unscored::Refused("not that".to_owned())));
        assert!(
            matches!(&answers[3], Err(Unscored::Refused(why)) if why.contains("exit status: 3")),
            "{answers:?}"
        );
        assert_eq!(answers[2], Ok(Cells::Numbers(vec![2.0])));
        assert_eq!(answers[4], Ok(Cells::Numbers(vec![3.0])));
        assert!(matches!(&asked("exit 7", &[of(1.0)])[0], Err(Unscored::Failed(why)) if why.contains("7")));
        let missing = &asked("no-such-program-here", &[of(1.0)])[0];
        assert!(matches!(missing, Err(Unscored::Failed(why)) if why.contains("127")), "{missing:?}");
        let chatty = asked(
            "read -r header; while read -r x; do [ -z \"$x\" ] || printf '1\\n2\\n'; done",
            &[of(1.0), of(1.0)],
        );
        assert!(matches!(&chatty[1], Err(Unscored::Failed(_)) | Ok(_)));
    }

    /// Proves that the reason has the last line that a command wrote to its standard error, where that is not passed on.
    #[test]
    fn the_last_words_are_part_of_the_reason() {
        let script = "read -r header; read -r x; printf 'Traceback\\nValueError: no float\\n\\n' >&2; exit 1";
        let rows = numbers([1.0].into_iter());
        let asked = ScoringCommand { keeps_errors: true, ..plain(script) };
        let answer = Scorer::new(Path::new(""), asked, &rows, &NEVER).score(&rows);
        assert!(
            matches!(&answer, Err(Unscored::Failed(why)) if why.contains(" ended with `ValueError: no float` (exit status: 1)")),
            "{answer:?}"
        );
    }

    /// Proves that a command which neither reads nor answers is left when the user cancels.
    #[test]
    fn an_interrupt_ends_it() {
        let cancelled = AtomicBool::new(true);
        let rows = numbers((0..200_000).map(f64::from));
        let mut scorer = Scorer::new(Path::new(""), plain("sleep 60"), &rows, &cancelled);
        assert_eq!(scorer.score(&rows), Err(Unscored::Cancelled));
    }

    /// Proves that gradients are read field by field, that an empty one is unknown, and that a command without
    /// gradients, or with too many or wrong ones, is reported as such.
    #[test]
    fn gradients_by_field() {
        let two = [numbers([1.0, 2.0].into_iter()).remove(0), numbers([3.0, 4.0].into_iter()).remove(0)];
        let of = |answer: &str| {
            let script = format!(
                "[ \"$TRACKWAY_SCORING_GRADIENTS\" = 1 ] || exit 9; read -r header; while read -r x; do [ -z \"$x\" ] || echo '{answer}'; done"
            );
            let asked = ScoringCommand {
                command: &script,
                format: BatchFormat::Csv,
                gradients: true,
                patience_seconds: PATIENCE_SECONDS,
                keeps_errors: false,
            };
            Scorer::new(Path::new(""), asked, &two, &NEVER).gradients(&two)
        };
        let gradients = of("0.5,-1e-3,").unwrap();
        assert_eq!(gradients[0], [-0.001, -0.001]);
        assert!(gradients[1].iter().all(|it| it.is_nan()));
        for (answer, reason) in
            [("0.5", "gives no gradients"), ("1,2,3,4", "more gradients"), ("1,x,2", "`x` is no")]
        {
            let refused = of(answer);
            assert!(matches!(&refused, Err(Unscored::Refused(why)) if why.contains(reason)), "{refused:?}");
        }
    }
}
