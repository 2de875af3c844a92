//! Whatever the bytes, a manifest that is accepted keeps the rules, and is accepted again after being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::checkpoint_manifest::{Manifest, check_file_name};

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::from_bytes(bytes) else {
        return;
    };
    for file in &manifest.files {
        assert!(check_file_name(&file.name).is_ok() && !file.name.contains('/'));
    }
    let written = manifest.to_bytes().expect("what was accepted can be written");
    assert!(Manifest::from_bytes(&written).is_ok());
});
