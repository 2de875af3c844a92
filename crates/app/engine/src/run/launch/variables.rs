//! Variables of a launch whose values are not stored: a keyed hash of each says whether it is what it was. Secrets have none, nor has what
//! differs between launches and changes no training.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_core::text::first_quoted;
use trackway_data::Mask;
use trackway_data::snapshot::SnapshotStore;
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::AttemptRow;
use trackway_redact::Redactor;

use crate::Context;
use crate::capture::both;
use crate::run::prepare::begin::own_environment;

/// The field of `capture.json` with the hashes.
pub(super) const FIELD: &str = "environment_hashes";
/// Variables that a sentence names.
const NAMED_MAX: usize = 12;
/// Variables with a hash at most.
const VARIABLES_MAX: usize = 500;
/// Variables of the terminal, of Trackway, of schedulers and of the session differ between launches and change no training. Beginnings.
pub const OF_THE_LAUNCH: [&str; 36] = [
    "TRACKWAY_", "TERM", "PWD", "OLDPWD", "SHELL", "SHLVL", "TMPDIR", "HOSTNAME", "SLURM_", "SBATCH_",
    "PBS_", "LSB_", "OMPI_", "PMI", "MASTER_PORT", "SSH_", "XDG_", "DBUS_", "DISPLAY", "WINDOWID",
    "LS_COLORS", "LINES", "COLUMNS", "TMUX", "STY", "GPG_", "JOURNAL_STREAM", "INVOCATION_ID", "LESS",
    "EDITOR", "PAGER", "PS1", "PROMPT", "MAIL", "VSCODE_", "COLORTERM",
];

/// Whether a variable may change a training.
#[must_use]
pub fn may_change_training(name: &str) -> bool {
    name != "_" && !OF_THE_LAUNCH.iter().any(|start| name.starts_with(start))
}

/// The hashes of the variables that are not stored.
pub(super) fn hashes(
    all: &BTreeMap<String, String>,
    stored: &BTreeMap<String, String>,
    mask: &Mask,
    redactor: &Redactor,
) -> BTreeMap<String, String> {
    let is_plain = |name: &String, value: &String| {
        let one = BTreeMap::from([(name.clone(), value.clone())]);
        redactor.settings(&one) == one
    };
    let counted = all.iter().filter(|(name, value)| {
        !stored.contains_key(*name) && may_change_training(name) && is_plain(name, value)
    });
    counted.take(VARIABLES_MAX).map(|(name, value)| (name.clone(), mask.digest(name, value))).collect()
}

/// What differs between the variables of the attempt before and those of this one, as a sentence; none: nothing that can be compared does.
pub(super) fn changed_since(previous: &AttemptRow, now: &AttemptLayout) -> Option<String> {
    let before = read(AttemptLayout::new(Path::new(&previous.log_directory)).capture_json().as_path())?;
    let after = read(&now.capture_json())?;
    let changed: Vec<String> = both(&before, &after)
        .filter(|(name, then, now)| may_change_training(name) && then != now)
        .map(|(name, then, now)| match (then, now) {
            (None, _) => format!("{name} (new)"),
            (_, None) => format!("{name} (gone)"),
            _ => name.clone(),
        })
        .collect();
    let (number, named) = (previous.attempt_number, first_quoted(&changed, NAMED_MAX));
    (!changed.is_empty()).then(|| format!("variables are not those of attempt {number}: {named}"))
}

/// Names with their values or hashes; none where nothing was captured, or nothing of that kind.
fn read(path: &Path) -> Option<BTreeMap<String, String>> {
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let part = |field: &str| -> Option<BTreeMap<String, String>> {
        serde_json::from_value(stored.get(field)?.clone()).ok()
    };
    let mut all = part(FIELD)?;
    all.extend(part("environment")?);
    Some(all)
}

/// The hashes of this process's variables, as a launch would have them.
pub(super) fn own_hashes(context: &Context, stored: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let Ok(mask) = SnapshotStore::new(&context.home.layout.data()).mask() else { return BTreeMap::new() };
    hashes(&own_environment().collect(), stored, &mask, &context.redactor)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Proves that a variable that is not stored has a hash, equal for equal values and names alone, and that stored
    /// ones, secrets and those of the terminal have none.
    #[test]
    fn hashes_say_whether_a_variable_changed() {
        let redactor = Arc::new(Redactor::of_shapes());
        let mask = Mask::new([7; 32], Arc::clone(&redactor));
        let all = of(&[
            ("LR", "0.5"),
            ("EPOCHS", "0.5"),
            ("SEED", "1"),
            ("TERM", "xterm"),
            ("API_TOKEN", "abcdef1234567890"),
        ]);
        let found = hashes(&all, &of(&[("SEED", "1")]), &mask, &redactor);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["EPOCHS", "LR"]);
        assert_ne!(found["LR"], found["EPOCHS"]);
        assert_eq!(found["LR"], hashes(&of(&[("LR", "0.5")]), &of(&[]), &mask, &redactor)["LR"]);
        assert_ne!(found["LR"], hashes(&of(&[("LR", "0.1")]), &of(&[]), &mask, &redactor)["LR"]);
        assert!(!found["LR"].contains("0.5"));
    }
}
