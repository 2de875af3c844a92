//! Files of keys without sections, in TOML: the settings file, and the policy of a model.

mod flat_file;
pub mod model_policy;
pub mod settings;
