//! What the machine did during an attempt, one line a part of it.

use trackway_api::runs::explain::{LoopTime, MachineSummary, MachineValue};

use crate::units::bytes;

/// A part of a line: the line's name, the value, its figure, how a number is shown, and the words in which
/// it replaces `#`.
type Part = (&'static str, &'static str, Figure, fn(f64) -> String, &'static str);

/// What is shown of the machine; parts of a line are next to each other.
const MACHINE: [Part; 11] = [
    ("processor", "cpu_cores", MEAN, tenths, "# cores on average"),
    ("processor", "cpu_cores", MAX, tenths, "# at most"),
    ("processor", "machine_cpu_share", MEAN, percent, "the whole machine #"),
    ("memory", "rss_bytes", MEAN, size, "# on average"),
    ("memory", "rss_bytes", MAX, size, "# at most"),
    ("memory", "machine_available_bytes", MIN, size, "the machine had # left"),
    ("disk", "disk_read_bytes_per_second", MEAN, size, "#/s read"),
    ("disk", "disk_write_bytes_per_second", MEAN, size, "#/s written"),
    ("disk", "disk_free_bytes", MIN, size, "# free"),
    ("network", "network_received_bytes_per_second", MEAN, size, "#/s received"),
    ("network", "network_sent_bytes_per_second", MEAN, size, "#/s sent by the machine"),
];

/// What is shown of each GPU.
const GPU: [Part; 5] = [
    ("GPU", "kernel_share", MEAN, percent, "kernels ran # of the time"),
    ("GPU", "memory_used_bytes", MAX, size, "# used at most"),
    ("GPU", "power_watts", MEAN, whole, "# W"),
    ("GPU", "temperature_celsius", MAX, whole, "# °C at most"),
    ("GPU", "slowed_by_hardware", SOMETIMES, percent, "slowed down # of the time"),
];

/// Name and text of each line; a value that was never read has none.
pub fn lines(card: &MachineSummary) -> Vec<(String, String)> {
    let text = |of: &str, parts: &[Part]| -> String {
        let part = |(_, name, figure, shown, words): &Part| {
            let name = format!("system/{of}{name}");
            let value = card.values.iter().find(|value| value.name == name)?;
            Some(words.replace('#', &shown(figure(value)?)))
        };
        parts.iter().filter_map(part).collect::<Vec<_>>().join(", ")
    };
    let work = card.work.iter().map(|work| ("work".to_owned(), work_text(work)));
    let machine = MACHINE.chunk_by(|one, next| one.0 == next.0);
    let machine = machine.map(|parts| (parts[0].0.to_owned(), text("", parts)));
    let gpus = gpus(card).into_iter();
    let gpus = gpus.map(|index| (format!("GPU {index}"), text(&format!("gpu/{index}/"), &GPU)));
    work.chain(machine).chain(gpus).filter(|(_, text)| !text.is_empty()).collect()
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

/// A figure of a value, if it was ever read.
type Figure = fn(&MachineValue) -> Option<f64>;

const MEAN: Figure = |line| line.mean;
const MIN: Figure = |line| line.min;
const MAX: Figure = |line| line.max;
/// The mean, where it is not zero all the time.
const SOMETIMES: Figure = |line| line.mean.filter(|share| *share > 0.0);

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}
