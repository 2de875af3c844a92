//! The acting user.

/// The login of this process; none if the system has none.
#[must_use]
pub fn person() -> Option<String> {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let of_process =
        || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.name);
    named.into_iter().find(|name| !name.trim().is_empty()).or_else(of_process)
}
