use trackway_formats::Variable;
use trackway_formats::checkpoint_manifest::is_hex_hash;

use crate::bulk::SHARE_BYTES_MIN;
use crate::retention::Retention;

/// How checkpoints are written, and what the environment sets about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    /// What to keep; `None`: delete nothing.
    pub keep: Option<Retention>,
    /// The same where nothing is set.
    pub keep_by_default: Option<Retention>,
    pub config_sha256: Option<String>,
    pub data_sha256: Option<String>,
    pub world_size: u32,
    /// Unchanged files of this size and more are shared with the parent. 0 in tests, whose files are small.
    pub share_bytes_min: u64,
}

impl Settings {
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let hash = |name| variable(name).filter(|text| is_hex_hash(text));
        Self {
            keep: Retention::from_variables(&variable),
            keep_by_default: None,
            config_sha256: hash(Variable::ConfigSha256.as_str()),
            data_sha256: hash(Variable::DataSha256.as_str()),
            world_size: variable("WORLD_SIZE").and_then(|text| text.parse().ok()).unwrap_or(1),
            share_bytes_min: SHARE_BYTES_MIN,
        }
    }
}
