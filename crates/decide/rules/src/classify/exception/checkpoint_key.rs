//! A key that is not there: of a checkpoint only where the code that reads it speaks of one. Settings have an
//! `optimizer` and an `epoch` too.

use crate::classify::placed::PlacedHit;
use crate::classify::settings::own_code;
use crate::pattern::Pattern;
use crate::scan::{Hit, Phase};
use crate::signatures::checkpoint;

/// A line that says no more than which key.
static KEY_ALONE: Pattern = Pattern::new(r#"\bKeyError:? (?:'[^']*'|"[^"]*")\s*$"#);
/// Text in code, such as the key itself.
static TEXT: Pattern = Pattern::new(r#"'[^']*'|"[^"]*""#);
/// What code that reads a checkpoint names.
static CHECKPOINT: Pattern = Pattern::new(
    r"ckpt|checkpoint|chkpt|snapshot|saved|restor|resum|weights|pretrained|(torch|pickle|joblib)\.load|load_model|(\b|_)states?(\b|_)",
);

/// Drops what such lines say of checkpoints where their code does not. The exceptions that they are remain.
pub(crate) fn drop_others(placed: &mut Vec<PlacedHit<'_>>) {
    placed.retain(|found| !is_of_another(found.hit));
}

fn is_of_another(hit: &Hit) -> bool {
    hit.signature == checkpoint::TRAINING_STATE
        && KEY_ALONE.is_match(&hit.text)
        && !Phase::are_of_checkpoints(&hit.phases)
        && own_code(hit).is_some_and(|code| !CHECKPOINT.is_match(&*TEXT.replaced(code, "")))
}
