//! The boundary around code that reads foreign bytes.
//!
//! Decoders of Parquet, Arrow and images are third-party code, and damaged bytes make some of them panic. Such a panic
//! is a fault of the file, not of Trackway: [`contained`] turns it into a value, and prints nothing. It is in the
//! process of the caller, so what a decoder can do besides a panic is bounded before it starts: sizes that a file
//! claims are checked against named limits, and nothing here recurses as deep as a file demands. An abort (memory that
//! the system refuses) is not contained.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A panic that was contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contained {
    message: String,
    place: Option<String>,
}

/// Shows the message of the panic, and where in the source code it was.
impl fmt::Display for Contained {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(formatter, " (at {place})"))
    }
}

impl std::error::Error for Contained {}

/// A longer message is cut: some panics show the value that they met.
const MESSAGE_BYTES_MAX: usize = 300;

thread_local! {
    /// How many boundaries the thread is within.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` and returns what it returns, or the panic it ended with. Nothing is printed. What `work` was changing
/// may be half done: the caller drops it.
///
/// # Errors
/// [`Contained`]: `work` panicked on this thread.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, Contained> {
    keep_quiet();
    DEPTH.set(DEPTH.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|payload| Contained { message: text_of(payload), place: PLACE.take() })
}

/// Installs, once, a panic hook that is silent within a boundary and calls the hook before it elsewhere.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    // A hook cannot be set while a thread panics, such as in a destructor; then the next call does it.
    if std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                before(info);
            } else {
                let place = info.location().map(|it| format!("{}:{}", short(it.file()), it.line()));
                PLACE.set(place);
            }
        }));
    });
}

/// From the package on: the folder before it is that of the machine that compiled it.
fn short(file: &str) -> &str {
    let package = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    package.map_or(file, |(_, rest)| rest)
}

fn text_of(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => {
            payload.downcast_ref::<&str>().map_or("a panic without a message", |text| text).into()
        }
    };
    let line = text.lines().next().unwrap_or_default();
    line[..line.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a panic becomes a value with its message and place, within another boundary too, and that work
    /// continues.
    #[test]
    fn a_panic_is_a_value() {
        let outer = contained(|| {
            let inner = contained(|| [1, 2, 3][std::hint::black_box(7)]);
            assert!(inner.unwrap_err().to_string().contains("index out of bounds"));
            contained(|| -> () { panic!("{}", "é".repeat(1000)) }).unwrap_err()
        });
        let shown = outer.unwrap().to_string();
        assert!(shown.starts_with('é') && shown.len() < 400 && shown.contains("boundary.rs:"), "{shown}");
        assert_eq!(contained(|| 7), Ok(7));
    }
}
