//! Whatever a run file of W&B holds, it is read, and the bytes that are named as damaged or torn are not more than the file has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trackway_formats::wandb::read_run;

fuzz_target!(|input: &[u8]| {
    let file = [&[b':', b'W', b'&', b'B', 0xe1, 0xbe, 0][..], input].concat();
    let Some(run) = read_run(&file) else { return };
    let damaged: u64 = run.damage.iter().map(|damage| damage.bytes).sum();
    assert!(damaged + run.torn_bytes <= file.len() as u64);
});
