//! Names of the pins that keep the checkpoints of registered versions.

/// What the names of the registry's pins begin with.
const PIN_PREFIX: &str = "model-";
/// Digits of the manifest's hash in the name of a pin.
const PIN_DIGITS: usize = 12;

/// The pin of these weights.
pub(crate) fn pin_name(model: &str, manifest_sha256: &str) -> String {
    let digest: String = manifest_sha256.chars().take(PIN_DIGITS).collect();
    format!("{PIN_PREFIX}{model}-{digest}")
}

/// The model whose version a pin keeps, by the pin's name; `None`: the pin is not the registry's.
#[must_use]
pub fn model_of_pin(pin: &str) -> Option<&str> {
    let (model, digest) = pin.strip_prefix(PIN_PREFIX)?.rsplit_once('-')?;
    let is_digest = digest.len() == PIN_DIGITS && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_digest && !model.is_empty()).then_some(model)
}
