//! Errors that end a training, as structured events: their types, their messages, and a digest that is the same for the
//! same failure in every attempt.

use std::panic;

use trackway_formats::EventKind;

use crate::process::inner::Inner;
use crate::recorder::Recorder;

/// A message longer than this is cut.
const MESSAGE_BYTES_MAX: usize = 2_000;

impl Recorder {
    /// Records an exception: its type, its message, and where it came from as one line per place, the innermost last.
    /// The event's `digest` is made of the type and the places, not of the message, which may name what differs each
    /// time.
    pub fn exception(&self, kind: &str, message: &str, places: &[&str]) {
        if let Some(inner) = self.shared() {
            inner.exception(kind, message, places);
        }
    }
}

impl Inner {
    fn exception(&self, kind: &str, message: &str, places: &[&str]) {
        let digest = digest(kind, places);
        let trace = places.join("\n");
        let fields = [
            ("type", kind),
            ("message", cut(message)),
            ("digest", digest.as_str()),
            ("trace", trace.as_str()),
        ];
        self.slot().record_event(EventKind::Exception, None, &fields);
    }
}

/// Has every panic of the process recorded as an exception of type `panic` at its place, before the hook is called that
/// is set now. Does nothing outside an attempt.
pub fn record_panics(run: &Recorder) {
    let Some(inner) = run.shared() else { return };
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        inner.exception("panic", message, &[place.as_str()]);
        before(info);
    }));
}

/// 16 hex digits of the BLAKE3 of type and places.
fn digest(kind: &str, places: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [&[kind], places].concat() {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]
}
