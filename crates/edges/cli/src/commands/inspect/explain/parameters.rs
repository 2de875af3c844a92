//! The parameters of an explanation.

use trackway_api::runs::explain::AttemptParameter;

use crate::units::shortened;

/// Most parameters that are shown; `--json` has all of them.
const PARAMETERS_MAX: usize = 24;
/// Longest value shown, in characters.
const VALUE_CHARS_MAX: usize = 80;

/// Names and what is shown of their values.
pub fn lines(parameters: &[AttemptParameter]) -> Vec<(String, String)> {
    let shown = |parameter: &AttemptParameter| {
        let origin = parameter.origin.as_deref().map(|origin| format!(" ({origin})")).unwrap_or_default();
        (parameter.name.clone(), format!(" {}{origin}", shortened(&parameter.value, VALUE_CHARS_MAX)))
    };
    let mut lines: Vec<(String, String)> = parameters.iter().take(PARAMETERS_MAX).map(shown).collect();
    let hidden = parameters.len().saturating_sub(PARAMETERS_MAX);
    if hidden > 0 {
        lines.push((format!("… {hidden} more"), " (`--json` has all)".into()));
    }
    lines
}
