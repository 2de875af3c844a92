//! What the machine did during an attempt, one line a part of it.

use trackway_app::explain::page::{MachineCard, MachineLine, WorkShares};

use crate::units::bytes;

/// Name and text of each line; a value that was never read has none.
pub fn lines(card: &MachineCard) -> Vec<(String, String)> {
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
            mean(of("cpu_cores"), |cores| format!("{cores:.1} cores on average")),
            max(of("cpu_cores"), |cores| format!("{cores:.1} at most")),
            mean(of("machine_cpu_share"), |share| format!("the whole machine {}", percent(share))),
        ],
    );
    tell(
        "memory",
        vec![
            mean(of("rss_bytes"), |value| format!("{} on average", size(value))),
            max(of("rss_bytes"), |value| format!("{} at most", size(value))),
            min(of("machine_available_bytes"), |value| format!("the machine had {} left", size(value))),
        ],
    );
    tell(
        "disk",
        vec![
            mean(of("disk_read_bytes_per_second"), |value| format!("{}/s read", size(value))),
            mean(of("disk_write_bytes_per_second"), |value| format!("{}/s written", size(value))),
            min(of("disk_free_bytes"), |value| format!("{} free", size(value))),
        ],
    );
    tell(
        "network",
        vec![
            mean(of("network_received_bytes_per_second"), |value| format!("{}/s received", size(value))),
            mean(of("network_sent_bytes_per_second"), |value| {
                format!("{}/s sent by the machine", size(value))
            }),
        ],
    );
    for index in gpus(card) {
        let of = |name: &str| of(&format!("gpu/{index}/{name}"));
        tell(
            &format!("GPU {index}"),
            vec![
                mean(of("kernel_share"), |share| format!("kernels ran {} of the time", percent(share))),
                max(of("memory_used_bytes"), |value| format!("{} used at most", size(value))),
                mean(of("power_watts"), |watts| format!("{watts:.0} W")),
                max(of("temperature_celsius"), |degrees| format!("{degrees:.0} °C at most")),
                mean(of("slowed_by_hardware"), |share| format!("slowed down {} of the time", percent(share)))
                    .filter(|text| !text.contains("down 0 %")),
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

fn work_text(work: &WorkShares) -> String {
    format!(
        "{} of the loop's time was work, {} waiting for batches, {} standing still for checkpoints",
        percent(work.work_share),
        percent(work.batch_wait_share),
        percent(work.checkpoint_stall_share)
    )
}

fn gpus(card: &MachineCard) -> Vec<u32> {
    let index = |line: &MachineLine| line.name.strip_prefix("system/gpu/")?.split('/').next()?.parse().ok();
    let mut indexes: Vec<u32> = card.values.iter().filter_map(index).collect();
    indexes.sort_unstable();
    indexes.dedup();
    indexes
}

fn mean(line: Option<&MachineLine>, text: impl Fn(f64) -> String) -> Option<String> {
    line.and_then(|line| line.mean).map(text)
}

fn max(line: Option<&MachineLine>, text: impl Fn(f64) -> String) -> Option<String> {
    line.and_then(|line| line.max).map(text)
}

fn min(line: Option<&MachineLine>, text: impl Fn(f64) -> String) -> Option<String> {
    line.and_then(|line| line.min).map(text)
}

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
