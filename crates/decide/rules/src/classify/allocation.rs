//! How much an allocation wanted that failed.

use trackway_core::TerminationReason as Reason;

use crate::scan::Hit;
use crate::signatures::Role;

/// No device has more memory: 16 TiB.
const DEVICE_BYTES_MAX: f64 = 16.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0;
/// No host has more memory: 1 PiB.
const HOST_BYTES_MAX: f64 = 64.0 * DEVICE_BYTES_MAX;
/// What is said of a size before anything is allocated.
const REFUSED_SIZES: [&str; 2] = ["Storage size calculation overflowed", "negative dimension"];

/// Whether more was wanted than any device or host has: then memory is not what was missing, but the size was never a
/// size, such as one that is read from a buffer which an aborted operation did not fill.
pub(super) fn is_absurd_allocation(hit: &Hit) -> bool {
    let limit = match hit.reason {
        Reason::DeviceOom => DEVICE_BYTES_MAX,
        Reason::HostOom => HOST_BYTES_MAX,
        _ => {
            return hit.role == Role::Exception && REFUSED_SIZES.iter().any(|words| hit.text.contains(words));
        }
    };
    wanted_bytes(&hit.text).is_some_and(|bytes| bytes > limit)
}

/// The size behind the word for an allocation: `Tried to allocate 2.00 GiB`, `trying to allocate 17179869184 bytes`,
/// `allocate more than 1EB memory`.
fn wanted_bytes(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    let behind = &lower[lower.find("allocat")?..];
    let number = &behind[behind.find(|letter: char| letter.is_ascii_digit())?..];
    let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(number.len());
    let unit: String =
        number[end..].trim_start().chars().take_while(|letter| letter.is_ascii_alphabetic()).collect();
    let thousands = match unit.as_str() {
        "b" | "byte" | "bytes" => 0,
        "kb" | "kib" => 1,
        "mb" | "mib" => 2,
        "gb" | "gib" => 3,
        "tb" | "tib" => 4,
        "pb" | "pib" => 5,
        "eb" | "eib" => 6,
        _ => return None,
    };
    let number: f64 = number[..end].trim_end_matches('.').parse().ok()?;
    Some(number * 1024_f64.powi(thousands))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that sizes are read in the forms of the allocators, and nothing else as one.
    #[test]
    fn sizes_are_read() {
        for (text, gibibytes) in [
            ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total)", Some(2.0)),
            ("CUDA out of memory. Tried to allocate more than 1EB memory.", Some(1024.0 * 1024.0 * 1024.0)),
            ("Out of memory while trying to allocate 1073741824 bytes.", Some(1.0)),
            ("Failed to allocate device memory of 60.00GiB", Some(60.0)),
            ("CUDA error: out of memory", None),
            ("cannot allocate 7 tensors", None),
        ] {
            let read = wanted_bytes(text).map(|bytes| bytes / 1024.0 / 1024.0 / 1024.0);
            assert_eq!(read, gibibytes, "{text}");
        }
    }
}
