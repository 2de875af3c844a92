/// How many checkpoints retention keeps at the least.
const MIN_KEPT: usize = 2;

/// What the environment says about checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Keep so many of the newest; `None`: delete nothing.
    pub keep_last: Option<usize>,
    pub config_sha256: Option<String>,
    pub data_sha256: Option<String>,
    pub world_size: u32,
}

impl Settings {
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let hash =
            |name| variable(name).filter(|text| trackway_formats::checkpoint_manifest::is_hex_hash(text));
        let keep_last = variable("TRACKWAY_CHECKPOINT_KEEP_LAST").and_then(|text| text.parse::<usize>().ok());
        Self {
            keep_last: keep_last.map(|keep| keep.max(MIN_KEPT)),
            config_sha256: hash("TRACKWAY_CONFIG_SHA256"),
            data_sha256: hash("TRACKWAY_DATA_SHA256"),
            world_size: variable("WORLD_SIZE").and_then(|text| text.parse().ok()).unwrap_or(1),
        }
    }
}
