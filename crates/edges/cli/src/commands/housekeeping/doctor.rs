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
        printer.table(&["finding", "subject", "why"], rows);
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
    printer.line(format!(
        "{}: {} found, {} restored, {} computed again, {} restored",
        rebuilt.ledger,
        counted(rebuilt.run_count, "run"),
        counted(rebuilt.receipt_count, "receipt"),
        counted(rebuilt.computed_count, "receipt"),
        counted(rebuilt.other_count, "other row")
    ));
    if let Some(old) = &rebuilt.old_ledger {
        printer.note(format!("the old ledger is kept as {old}"));
    }
    rebuilt.failed.iter().for_each(|what| printer.note(format!("not restored: {what}")));
    rebuilt.missing.iter().for_each(|what| printer.note(format!("missing: {what}")));
}

fn word(word: &str) -> String {
    word.replace('_', " ")
}
