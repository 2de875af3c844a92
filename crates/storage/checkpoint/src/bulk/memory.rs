//! How much memory there is, and how much of it could be taken without the kernel ending a process for it. What does
//! not fit must be an error in the training process, not its end.

use std::path::{Path, PathBuf};

/// The memory of this machine.
pub(crate) fn machine_bytes() -> usize {
    // SAFETY: `sysconf` reads numbers.
    let numbers = unsafe { [libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)] };
    numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(0)).fold(1, usize::saturating_mul)
}

/// What the machine has left, and what is left to the control group (version 2) of this process and those above it, whichever is less;
/// `None`: the system does not say.
#[must_use]
pub fn available_bytes() -> Option<usize> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| kibibytes(&text, "MemAvailable:"));
    let group = read(Path::new("/proc/self/cgroup")).map_or_else(PathBuf::new, |text| group_folder(&text));
    let below = |folder: &Path| folder.starts_with(GROUPS_FOLDER);
    let groups = group.ancestors().take_while(|folder| below(folder)).filter_map(|folder| {
        let number = |name: &str| read(&folder.join(name))?.trim().parse().ok();
        Some(room(number("memory.max")?, number("memory.current")?, &read(&folder.join("memory.stat"))?))
    });
    groups.chain(machine).min()
}

const GROUPS_FOLDER: &str = "/sys/fs/cgroup";

/// Where the control group of a process is found, by its line in `/proc/self/cgroup`.
fn group_folder(text: &str) -> PathBuf {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    Path::new(GROUPS_FOLDER).join(path)
}

/// How much more memory a group may use. The inactive part of its page cache is freed when memory gets short.
fn room(max_bytes: usize, current_bytes: usize, stat: &str) -> usize {
    let idle_cache =
        stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok()).unwrap_or(0);
    max_bytes.saturating_sub(current_bytes.saturating_sub(idle_cache))
}

fn kibibytes(text: &str, field: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the kernel's files are parsed as documented.
    #[test]
    fn the_kernel_is_understood() {
        assert_eq!(kibibytes("MemTotal: 9 kB\nMemAvailable:    12 kB\n", "MemAvailable:"), Some(12 * 1024));
        assert_eq!(
            group_folder("4:memory:/old\n0::/user.slice/job\n"),
            Path::new("/sys/fs/cgroup/user.slice/job")
        );
        assert_eq!(group_folder("4:memory:/old\n"), Path::new(GROUPS_FOLDER));
        assert_eq!(room(1_000, 900, "anon 700\ninactive_file 150\n"), 250);
        assert_eq!(room(1_000, 2_000, ""), 0);
        let available = available_bytes().unwrap();
        assert!(available > 0 && available <= machine_bytes());
    }
}
