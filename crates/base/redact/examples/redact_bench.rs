//! How fast a log stream is cleaned: `cargo run --release -p trackway-redact --example redact_bench`.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints"
)]

use std::time::Instant;

use trackway_redact::Redactor;

/// As much as a pipe gives at once.
const PIECE_BYTES: usize = 64 << 10;
const STREAM_BYTES: usize = 64 << 20;

fn main() {
    let plain = |step: usize| {
        format!("step {step}/200000 loss=0.{step:06} lr=3e-05 tokens/s=18231 grad_norm=1.{step}\n")
    };
    let coloured = |step: usize| {
        format!("\x1b[32m20:00:00\x1b[0m | \x1b[1mINFO\x1b[0m | trainer:fit - step {step} done\n")
    };
    let bar =
        |step: usize| format!(" {}%|████▌     | {step}/200000 [00:12<1:02:33, 61.{step}it/s]\r", step % 100);
    let redactor = Redactor::from_environment([("LAB_PASSWORD", "correct-horse-battery")]);
    measure("plain lines", &redactor, plain);
    measure("coloured lines", &redactor, coloured);
    measure("progress bars", &redactor, bar);
}

fn measure(what: &str, redactor: &Redactor, line: impl Fn(usize) -> String) {
    let piece: String = (0..)
        .map(line)
        .scan(0, |bytes, line| {
            *bytes += line.len();
            (*bytes < PIECE_BYTES).then_some(line)
        })
        .collect();
    let mut clean = Vec::with_capacity(2 * PIECE_BYTES);
    redactor.stream().push(piece.as_bytes(), &mut clean);
    let begun = Instant::now();
    let mut stream = redactor.stream();
    for _ in 0..STREAM_BYTES / piece.len() {
        clean.clear();
        stream.push(piece.as_bytes(), &mut clean);
    }
    stream.finish(&mut clean);
    println!("{what}: {:.0} MB/s", STREAM_BYTES as f64 / 1e6 / begun.elapsed().as_secs_f64());
}
