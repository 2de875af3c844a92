//! How often the kernel's OOM killer struck in this process's cgroup, if the system reports it.

use std::path::{Path, PathBuf};

/// The counter of this process's memory cgroup (v2 `memory.events`, v1 `memory.oom_control`).
pub(in crate::shim) fn kill_count() -> Option<u64> {
    let memberships = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    counter_files(&memberships).iter().find_map(|file| read_counter(&std::fs::read_to_string(file).ok()?))
}

/// Where the counter may be. In a container the path of the membership may not exist, but the mount's root is it.
fn counter_files(memberships: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for membership in memberships.lines() {
        let mut parts = membership.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let mut push = |root: &str, name: &str| {
            files.push(Path::new(root).join(path.trim_start_matches('/')).join(name));
            files.push(Path::new(root).join(name));
        };
        if controllers.is_empty() {
            push("/sys/fs/cgroup", "memory.events");
            push("/sys/fs/cgroup/unified", "memory.events");
        } else if controllers.split(',').any(|controller| controller == "memory") {
            push("/sys/fs/cgroup/memory", "memory.oom_control");
        }
    }
    files
}

fn read_counter(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that both generations of cgroups are read, and that other counters are not taken for it.
    #[test]
    fn both_generations_are_read() {
        assert_eq!(read_counter("low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n"), Some(2));
        assert_eq!(read_counter("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), Some(5));
        assert_eq!(read_counter("oom_kill_disable 0\nunder_oom 0\n"), None);
        let files = counter_files("5:cpu,memory:/a/b\n0::/c\n");
        assert_eq!(files[0], Path::new("/sys/fs/cgroup/memory/a/b/memory.oom_control"));
        assert_eq!(files[2], Path::new("/sys/fs/cgroup/c/memory.events"));
    }
}
