//! What a check before launch answers, whatever it checks: data, memory, settings or a rehearsal.
//!
//! A check that could not run is *not run*, never *passed*, and blocks if the run file requires it by name. A check
//! that makes no sense for this run is *not applicable* and blocks nothing. What a check did not look at is part of its
//! answer.

use serde::{Deserialize, Serialize};

use crate::closed_list;

closed_list!(
    /// How a check came out.
    Verdict, "verdict of a check", {
        /// It ran and found nothing.
        Pass = "pass",
        /// It found something that a person should look at; the run may start.
        Warn = "warn",
        /// It found certain waste, or what its severity calls blocking: the run must not start.
        Block = "block",
        /// It could not run: something it needs is missing, or it was skipped.
        NotRun = "not_run",
        /// It makes no sense for this run.
        NotApplicable = "not_applicable",
    }
);

closed_list!(
    /// How bad a finding is.
    Severity, "severity", {
        /// Worth knowing.
        Note = "note",
        /// A person should look at it.
        Warn = "warn",
        /// The run must not start.
        Block = "block",
    }
);

/// A place where a finding shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Example {
    /// The file, where it is in one.
    pub file: Option<String>,
    /// The row, from 1, as a person counts them in the file.
    pub row: Option<u64>,
    /// The value, as a string; never personal data.
    pub value: Option<String>,
}

/// One thing that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The check that found it, such as `data.nulls` or `config.seed`.
    pub check: String,
    /// How bad it is.
    pub severity: Severity,
    /// The column or the setting, where it is about one.
    pub column: Option<String>,
    /// How often it was found.
    pub count: Option<u64>,
    /// Some of the places; the check bounds how many.
    pub examples: Vec<Example>,
    /// What was found, as one sentence with the numbers that decided.
    pub message: String,
    /// What to do about it.
    pub action: Option<String>,
}

impl Finding {
    /// A finding without column, count and examples.
    #[must_use]
    pub fn new(check: &str, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            severity,
            column: None,
            count: None,
            examples: Vec::new(),
            message: message.into(),
            action: None,
        }
    }

    /// Sets how often it was found.
    #[must_use]
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Sets some of the places.
    #[must_use]
    pub fn examples(mut self, examples: impl IntoIterator<Item = Example>) -> Self {
        self.examples = examples.into_iter().collect();
        self
    }

    /// Sets what to do about it.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Names the column or the setting it is about.
    #[must_use]
    pub fn about(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
}

/// Why a check has no rows to go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRows {
    /// It is about the settings of the run file, and about what follows from them.
    Settings,
    /// It is about a file system, a remote or the room in it.
    Storage,
    /// It is about what a launch did.
    Launch,
    /// The file is damaged: what was found is that no row can be read.
    Unreadable,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CheckResult {
    /// Its name, such as `config.seed`: what `--only` and `--skip` take.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// How long it took; none when negligible.
    pub seconds: Option<f64>,
    /// Why it did not run or does not apply; what it looked at, where it passed.
    pub why: Option<String>,
    /// What it found, worst first.
    pub findings: Vec<Finding>,
}

/// A result is made by [`CheckResult::of_rows`], which takes the number of rows that were seen, or by
/// [`CheckResult::about`], which takes the reason why there are none to see: a check that saw nothing cannot pass by
/// mistake.
impl CheckResult {
    /// A check over so many rows, or files, or pairs: its verdict is that of its worst finding; notes alone pass.
    /// Without rows nothing is known, so unless it blocks anyway it did not run. Its findings stay with it.
    #[must_use]
    pub fn of_rows(name: &str, rows: u64, findings: Vec<Finding>) -> Self {
        let result = Self::judged(name, findings);
        match result.verdict {
            Verdict::Pass | Verdict::Warn if rows == 0 => {
                Self { verdict: Verdict::NotRun, why: Some("there are no rows to look at".into()), ..result }
            }
            _ => result,
        }
    }

    /// A check that is not about rows, for the reason given.
    #[must_use]
    pub fn about(name: &str, _: NoRows, findings: Vec<Finding>) -> Self {
        Self::judged(name, findings)
    }

    fn judged(name: &str, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let verdict = match findings.first().map(|finding| finding.severity) {
            None | Some(Severity::Note) => Verdict::Pass,
            Some(Severity::Warn) => Verdict::Warn,
            Some(Severity::Block) => Verdict::Block,
        };
        Self { name: name.into(), verdict, seconds: None, why: None, findings }
    }

    /// A check that is not about rows, found nothing and reports what it looked at.
    #[must_use]
    pub fn pass(name: &str, about: NoRows, why: impl Into<String>) -> Self {
        Self::about(name, about, Vec::new()).because(why)
    }

    /// A check that could not run.
    #[must_use]
    pub fn not_run(name: &str, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotRun, why: Some(why.into()), ..Self::judged(name, Vec::new()) }
    }

    /// A check that makes no sense for this run.
    #[must_use]
    pub fn not_applicable(name: &str, why: impl Into<String>) -> Self {
        Self { verdict: Verdict::NotApplicable, ..Self::not_run(name, why) }
    }

    /// Sets what it looked at. For a check that did not run the reason stays.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        match self.verdict {
            Verdict::NotRun => self,
            _ => Self { why: Some(why.into()), ..self },
        }
    }

    /// Sets how long it took.
    #[must_use]
    pub fn took(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    /// The same with each finding rewritten: the verdict stays.
    #[must_use]
    pub fn reworded(self, reword: impl FnMut(Finding) -> Finding) -> Self {
        Self { findings: self.findings.into_iter().map(reword).collect(), ..self }
    }

    /// The same check with other findings, the worst of which decides. What did not run still did not, unless one of them blocks.
    #[must_use]
    pub fn with_findings(self, findings: Vec<Finding>) -> Self {
        let judged = Self::judged(&self.name, findings);
        let is_open = self.verdict == Verdict::NotRun && judged.verdict != Verdict::Block;
        let judged = Self { seconds: self.seconds, why: self.why, ..judged };
        if is_open { judged.left_open() } else { judged }
    }

    /// The same as a check that could not run, with what it found on the way.
    #[must_use]
    pub fn left_open(self) -> Self {
        Self { verdict: Verdict::NotRun, ..self }
    }
}

/// The verdict of all checks together: `block`, `warn` or `pass`.
///
/// A check that could not run blocks when it is among `required`, the names that the run file requires; else it warns,
/// so that it is not mistaken for one that passed. A required name that no result bears blocks as well.
#[must_use]
pub fn overall(results: &[CheckResult], required: &[String]) -> Verdict {
    let is_required = |name: &str| required.iter().any(|wanted| wanted == name);
    let blocks = |result: &CheckResult| {
        result.verdict == Verdict::Block || (result.verdict == Verdict::NotRun && is_required(&result.name))
    };
    let unanswered = |wanted: &String| results.iter().all(|result| result.name != *wanted);
    if results.iter().any(blocks) || required.iter().any(unanswered) {
        Verdict::Block
    } else if results.iter().any(|result| matches!(result.verdict, Verdict::Warn | Verdict::NotRun)) {
        Verdict::Warn
    } else {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, verdict: Verdict) -> CheckResult {
        CheckResult { verdict, ..CheckResult::pass(name, NoRows::Settings, "") }
    }

    /// Proves that silence never passes: what could not run warns, blocks if it is required, and so does a required
    /// check without a result; what does not apply does neither.
    #[test]
    fn what_did_not_run_never_passes() {
        let required = ["a".to_owned()];
        let table = [
            (vec![result("a", Verdict::Pass)], Verdict::Pass),
            (vec![result("a", Verdict::NotRun)], Verdict::Block),
            (vec![result("a", Verdict::Pass), result("b", Verdict::NotRun)], Verdict::Warn),
            (vec![result("a", Verdict::NotApplicable)], Verdict::Pass),
            (vec![result("a", Verdict::Pass), result("b", Verdict::Warn)], Verdict::Warn),
            (vec![result("a", Verdict::Pass), result("b", Verdict::Block)], Verdict::Block),
            (vec![result("b", Verdict::Pass)], Verdict::Block),
        ];
        for (results, verdict) in table {
            assert_eq!(overall(&results, &required), verdict, "{results:?}");
        }
        assert_eq!(overall(&[], &[]), Verdict::Pass);
    }

    /// Proves that a check over no rows never passes, whatever it found, and that one which blocks still does.
    #[test]
    fn no_rows_are_no_pass() {
        let of = |severity: Option<Severity>, rows| {
            let findings =
                severity.map(|severity| Finding::new("x", severity, "found")).into_iter().collect();
            CheckResult::of_rows("x", rows, findings).because("3 columns")
        };
        for severity in [None, Some(Severity::Note), Some(Severity::Warn)] {
            let result = of(severity, 0);
            assert_eq!(result.verdict, Verdict::NotRun, "{severity:?}");
            assert_eq!(result.why.as_deref(), Some("there are no rows to look at"), "and says why");
            assert_eq!(result.findings.len(), usize::from(severity.is_some()), "what it found stays");
        }
        assert_eq!(of(Some(Severity::Block), 0).verdict, Verdict::Block);
        assert_eq!((of(None, 1).verdict, of(None, 1).why.as_deref()), (Verdict::Pass, Some("3 columns")));
    }

    /// Proves that other findings of a check that did not run make it block and never pass.
    #[test]
    fn an_open_check_stays_open() {
        let open = || CheckResult::of_rows("x", 0, Vec::new());
        for (severity, verdict) in [
            (Severity::Note, Verdict::NotRun),
            (Severity::Warn, Verdict::NotRun),
            (Severity::Block, Verdict::Block),
        ] {
            let judged = open().with_findings(vec![Finding::new("x", severity, "found")]);
            assert_eq!((judged.verdict, judged.why), (verdict, open().why), "{severity:?}");
        }
        assert_eq!(open().with_findings(Vec::new()).verdict, Verdict::NotRun);
    }

    /// Proves that a check's verdict is that of its worst finding, which comes first, and the values of the contract.
    #[test]
    fn the_worst_finding_decides() {
        let finding =
            |severity| Finding::new("data.nulls", severity, "3 of 10 rows").action("look").about("age");
        let of = |findings| CheckResult::of_rows("data.nulls", 10, findings);
        let result = of(vec![finding(Severity::Note), finding(Severity::Warn)]);
        assert_eq!((result.verdict, result.findings[0].severity), (Verdict::Warn, Severity::Warn));
        assert_eq!(of(vec![finding(Severity::Note)]).verdict, Verdict::Pass);
        let json = serde_json::to_value(CheckResult::not_run("x", "no reader")).unwrap();
        assert_eq!(json["verdict"], "not_run");
        assert_eq!(serde_json::from_value::<CheckResult>(json).unwrap().why.unwrap(), "no reader");
    }
}
