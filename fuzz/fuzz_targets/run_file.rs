//! Whatever the bytes, a run file is read or refused with places inside it, and never with a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::runfile::parse_bytes;

fuzz_target!(|bytes: &[u8]| {
    if let Err(errors) = parse_bytes(bytes, "fuzz.toml", &[]) {
        let text = String::from_utf8_lossy(bytes);
        for error in errors {
            assert!(!error.render_plain(&text).is_empty());
        }
    }
});
