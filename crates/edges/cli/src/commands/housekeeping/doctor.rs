//! `trackway doctor` and `trackway doctor rebuild`: whether a home and its ledger agree, and how to repair them.

use std::path::PathBuf;

use trackway_api::home::doctor::{HomeDiagnosis, LedgerState, RebuiltLedger};
use trackway_engine::Dependencies;
use trackway_engine::home::Home;
use trackway_flows::home::doctor::examine;
use trackway_flows::home::rebuild::rebuild as rebuild_ledger;

use crate::exit::{Exit, INTEGRITY};
use crate::printer::Printer;
use crate::units::counted;

pub fn doctor(home: &Home, printer: Printer) -> Exit {
    let diagnosis = examine(home)?;
    printer.answer(&diagnosis, || show(&diagnosis, printer));
    Ok(if diagnosis.healthy { 0 } else { INTEGRITY })
}

pub fn rebuild(home: &Home, binary: PathBuf, printer: Printer) -> Exit {
    let rebuilt = rebuild_ledger(home, Dependencies::of_this_machine(binary))?;
    printer.answer(&rebuilt, || show_rebuilt(&rebuilt, printer));
    Ok(if rebuilt.failed.is_empty() { 0 } else { INTEGRITY })
}

fn show(diagnosis: &HomeDiagnosis, printer: Printer) {
    let rows: Vec<Vec<String>> = diagnosis
        .findings
        .iter()
        .map(|finding| vec![word(finding.kind.as_str()), finding.subject.clone(), finding.why.clone()])
        .collect();
    if !rows.is_empty() {
        printer.table_with_prose(&["finding", "subject", "why"], rows);
    }
    if diagnosis.unlisted_count > 0 {
        printer.note(format!(
            "{} of the same kinds not shown",
            counted(diagnosis.unlisted_count, "more finding")
        ));
    }
    let how = match diagnosis.ledger_state {
        LedgerState::Sound if diagnosis.healthy => "no problems found".to_owned(),
        LedgerState::Sound => "can be read".to_owned(),
        state => word(state.as_str()),
    };
    printer.note(format!(
        "ledger `{}`: {how}; {} in the home",
        diagnosis.ledger,
        counted(diagnosis.attempt_folder_count, "attempt folder")
    ));
    diagnosis.hints.iter().for_each(|hint| printer.note(format!("hint: {hint}")));
}

fn show_rebuilt(rebuilt: &RebuiltLedger, printer: Printer) {
    printer.line(format!("{}: {}", rebuilt.ledger, restored(rebuilt)));
    if let Some(old) = &rebuilt.old_ledger {
        printer.note(format!("the old ledger is kept as {old}"));
    }
    rebuilt.failed.iter().for_each(|what| printer.long_note(&format!("not restored: {what}")));
    rebuilt.missing.iter().for_each(|what| printer.long_note(&format!("lost: {what}")));
    let not_known = rebuilt.not_known.iter();
    not_known.for_each(|what| printer.long_note(&format!("not known whether there were: {what}")));
    let again = rebuilt.may_be_sent_again_count;
    if again > 0 {
        let them = if again == 1 { "it" } else { "they" };
        printer.note(format!(
            "{} may be sent again: no copy shows whether {them} arrived",
            counted(again, "notice")
        ));
    }
}

/// What was put back, without what there was nothing of.
fn restored(rebuilt: &RebuiltLedger) -> String {
    let parts = [
        (rebuilt.receipt_count, "receipt", "restored"),
        (rebuilt.computed_count, "receipt", "computed again"),
        (rebuilt.other_count, "file", "of other rows restored"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, noun, what)| format!("{} {what}", counted(count, noun)))
        .collect();
    let runs = format!("{} found", counted(rebuilt.run_count, "run"));
    match parts.is_empty() {
        true => format!("{runs}, nothing to restore"),
        false => format!("{runs}, {}", parts.join(", ")),
    }
}

fn word(word: &str) -> String {
    word.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a rebuilt ledger says how much was restored, and nothing of what there was none of.
    #[test]
    fn only_what_was_restored_is_counted() {
        let rebuilt = |receipt_count, other_count| RebuiltLedger {
            ledger: "ledger.db".into(),
            found: LedgerState::Missing,
            old_ledger: None,
            run_count: 1,
            receipt_count,
            computed_count: 0,
            other_count,
            failed: Vec::new(),
            missing: Vec::new(),
            not_known: Vec::new(),
            may_be_sent_again_count: 0,
        };
        assert_eq!(restored(&rebuilt(2, 0)), "1 run found, 2 receipts restored");
        let both = "1 run found, 1 receipt restored, 1 file of other rows restored";
        assert_eq!(restored(&rebuilt(1, 1)), both);
        assert_eq!(restored(&rebuilt(0, 0)), "1 run found, nothing to restore");
    }
}
