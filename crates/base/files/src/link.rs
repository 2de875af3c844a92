use std::io;
use std::path::Path;

use crate::temporary::{new_name, sync_parent};

/// Lets the symbolic link `link` point to `target`, in one step, durably. The caller knows that what has the name now
/// is such a link, or nothing.
///
/// # Errors
/// When the disk refuses; the link is as it was then.
pub fn replace_link(link: &Path, target: &Path) -> io::Result<()> {
    if std::fs::read_link(link).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let (aside, ()) = new_name(link, |path| std::os::unix::fs::symlink(target, path))?;
    std::fs::rename(&aside, link).inspect_err(|_| {
        let _ = std::fs::remove_file(&aside);
    })?;
    sync_parent(link)
}
