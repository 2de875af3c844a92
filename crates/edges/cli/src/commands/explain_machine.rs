//! What the machine did during an attempt, one line a part of it.

use trackway_api::explain::{LoopTime, MachineSummary, MachineValue};

use crate::units::bytes;

/// Name and text of each line; a value that was never read has none.
pub fn lines(card: &MachineSummary) -> Vec<(String, String)> {
    let of = |name: &str| card.values.iter().find(|line| line.name == format!("system/{name}"));
    let mut lines = Vec::new();
    let mut tell = |name: &str, parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            lines.push((name.to_owned(), parts.join(", ")));
        }
    };
    tell("work", card.work.iter().map(|work| Some(work_text(work))).collect());
    tell(
        "processor",
        vec![
            figure_text(of("cpu_cores"), MEAN, |cores| format!("{cores:.1} cores on average")),
            figure_text(of("cpu_cores"), MAX, |cores| format!("{cores:.1} at most")),
            figure_text(of("machine_cpu_share"), MEAN, |share| {
                format!("the whole machine {}", percent(share))
            }),
        ],
    );
    tell(
        "memory",
        vec![
            figure_text(of("rss_bytes"), MEAN, |value| format!("{} on average", size(value))),
            figure_text(of("rss_bytes"), MAX, |value| format!("{} at most", size(value))),
            figure_text(of("machine_available_bytes"), MIN, |value| {
                format!("the machine had {} left", size(value))
            }),
        ],
    );
    tell(
        "disk",
        vec![
            figure_text(of("disk_read_bytes_per_second"), MEAN, |value| format!("{}/s read", size(value))),
            figure_text(of("disk_write_bytes_per_second"), MEAN, |value| {
                format!("{}/s written", size(value))
            }),
            figure_text(of("disk_free_bytes"), MIN, |value| format!("{} free", size(value))),
        ],
    );
    tell(
        "network",
        vec![
            figure_text(of("network_received_bytes_per_second"), MEAN, |value| {
                format!("{}/s received", size(value))
            }),
            figure_text(of("network_sent_bytes_per_second"), MEAN, |value| {
                format!("{}/s sent by the machine", size(value))
            }),
        ],
    );
    for index in gpus(card) {
        let of = |name: &str| of(&format!("gpu/{index}/{name}"));
        tell(
            &format!("GPU {index}"),
            vec![
                figure_text(of("kernel_share"), MEAN, |share| {
                    format!("kernels ran {} of the time", percent(share))
                }),
                figure_text(of("memory_used_bytes"), MAX, |value| format!("{} used at most", size(value))),
                figure_text(of("power_watts"), MEAN, |watts| format!("{watts:.0} W")),
                figure_text(of("temperature_celsius"), MAX, |degrees| format!("{degrees:.0} °C at most")),
                figure_text(of("slowed_by_hardware"), SOMETIMES, |share| {
                    format!("slowed down {} of the time", percent(share))
                }),
            ],
        );
    }
    lines
}

/// The last sample in one line.
pub fn now(machine: &std::collections::BTreeMap<String, f64>) -> Option<String> {
    let of = |name: &str| machine.get(&format!("system/{name}")).copied();
    let mut parts = vec![format!("{:.1} cores", of("cpu_cores")?)];
    parts.extend(of("rss_bytes").map(size));
    for (name, share) in machine {
        if let Some(index) =
            name.strip_prefix("system/gpu/").and_then(|rest| rest.strip_suffix("/kernel_share"))
        {
            let used = of(&format!("gpu/{index}/memory_used_bytes")).map(size).unwrap_or_default();
            parts.push(format!("GPU {index} {} {used}", percent(*share)));
        }
    }
    Some(parts.join(" · "))
}

fn work_text(work: &LoopTime) -> String {
    format!(
        "{} of the loop's time was work, {} waiting for batches, {} blocked by checkpoints",
        percent(work.work_fraction),
        percent(work.batch_wait_fraction),
        percent(work.checkpoint_stall_fraction)
    )
}

fn gpus(card: &MachineSummary) -> Vec<u32> {
    let index = |line: &MachineValue| line.name.strip_prefix("system/gpu/")?.split('/').next()?.parse().ok();
    let mut indexes: Vec<u32> = card.values.iter().filter_map(index).collect();
    indexes.sort_unstable();
    indexes.dedup();
    indexes
}

/// One figure of a value as text; none if it was never read.
fn figure_text(
    line: Option<&MachineValue>,
    figure: fn(&MachineValue) -> Option<f64>,
    text: impl Fn(f64) -> String,
) -> Option<String> {
    line.and_then(figure).map(text)
}

const MEAN: fn(&MachineValue) -> Option<f64> = |line| line.mean;
const MIN: fn(&MachineValue) -> Option<f64> = |line| line.min;
const MAX: fn(&MachineValue) -> Option<f64> = |line| line.max;
/// The mean, where it is not zero all the time.
const SOMETIMES: fn(&MachineValue) -> Option<f64> = |line| line.mean.filter(|share| *share > 0.0);

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
