//! Scans a gigabyte of made-up log lines and prints the rate. `cargo run --release --example scan_throughput`.

use std::io::Write;

use trackway_core::{Rng, SplitMix64};
use trackway_rules::LogScanner;

const TOTAL_BYTES: usize = 1 << 30;
const PIECE_BYTES: usize = 1 << 16;
/// A piece of this many bytes is made beforehand and fed again and again, so that only scanning is measured.
const MATERIAL_BYTES: usize = 8 << 20;

fn line(rng: &mut SplitMix64, step: u64, out: &mut Vec<u8>) {
    let loss = rng.next_unit() * 3.0;
    let written = match rng.next_u64() % 200 {
        0 => writeln!(
            out,
            "step {step} | val_error 0.1{step} | mean_absolute_error: {loss:.4} - time limit none"
        ),
        1 => writeln!(out, "[WARNING] retrying download of shard-{step}.tar (attempt 1)"),
        2 => writeln!(out, "INFO: checkpoint saved to /data/ckpt-{step}.pt in 1.2 s, no errors"),
        3 => writeln!(out, " {}%|#####     | {step}/100000 [01:02<10:22, {loss:.2}it/s]", step % 100),
        4..60 => writeln!(
            out,
            "{{\"step\": {step}, \"loss\": {loss:.5}, \"lr\": 0.0003, \"grad_norm\": 1.02, \"tokens\": {}}}",
            step * 4096
        ),
        60..120 => writeln!(
            out,
            "2026-11-21 08:00:{:02},123 rank0 train.py:211 epoch 3 iter {step} loss {loss:.4} lr 2.9e-4 time 0.412s",
            step % 60
        ),
        _ => writeln!(
            out,
            "[rank{}]: iteration {step}/500000 | elapsed time per iteration (ms): 412.3 | learning rate: 3.0E-04 | global batch size: 1024 | lm loss: {loss:.6E} | grad norm: 0.512 |",
            step % 8
        ),
    };
    written.expect("writing to memory does not fail");
}

#[allow(clippy::disallowed_methods, clippy::print_stdout)] // a measuring program: it needs the clock and a place to print
fn main() {
    let mut rng = SplitMix64::new(7);
    let mut material = Vec::with_capacity(MATERIAL_BYTES + 512);
    let mut step = 0;
    while material.len() < MATERIAL_BYTES {
        line(&mut rng, step, &mut material);
        step += 1;
    }
    let endless: Vec<u8> = material.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
    let started = std::time::Instant::now();
    let _ = LogScanner::scan(b"x");
    println!("tables built in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    for (name, bytes) in [("lines", &material), ("one endless line", &endless)] {
        let started = std::time::Instant::now();
        let mut scanner = LogScanner::new();
        let mut fed = 0;
        while fed < TOTAL_BYTES {
            for piece in bytes.chunks(PIECE_BYTES) {
                scanner.feed(piece);
            }
            fed += bytes.len();
        }
        let evidence = scanner.finish();
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name}: {} lines, {} hits kept, {:.0} MB/s",
            evidence.line_count,
            evidence.hits.len(),
            fed as f64 / 1e6 / seconds
        );
    }
}
