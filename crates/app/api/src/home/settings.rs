//! The settings of Trackway itself, and where each value comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::closed_list;

/// Every setting, and the files that were looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EffectiveSettings {
    /// The settings, in the order of `docs/settings.md`.
    pub settings: Vec<Setting>,
    /// The settings files, the stronger first.
    pub files: Vec<SettingsFile>,
}

closed_list!(
    /// Where the value of a setting comes from.
    SettingOrigin, "origin of a setting", {
        /// An option of the command line.
        Flag = "flag",
        /// An environment variable.
        Environment = "environment",
        /// A settings file.
        File = "file",
        /// It was not set.
        Default = "default",
    }
);

/// A setting.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Its key in a settings file.
    pub key: String,
    /// Its value: a string, a number or a boolean.
    pub value: Value,
    /// Where the value comes from.
    pub origin: SettingOrigin,
    /// The option or the variable that set it.
    pub name: Option<String>,
    /// The file that set it.
    pub path: Option<String>,
    /// The line of the file, from 1.
    pub line: Option<u64>,
}

closed_list!(
    /// Whose settings a file holds.
    SettingsFileKind, "kind of settings file", {
        /// The project's.
        Project = "project",
        /// The home's, where it is not the project's.
        Home = "home",
        /// The user's.
        User = "user",
    }
);

closed_list!(
    /// Whether a settings file is used.
    SettingsFileState, "state of a settings file", {
        /// Its values count.
        Used = "used",
        /// It does not exist.
        Absent = "absent",
        /// It exists, but other users may write to it.
        Refused = "refused",
    }
);

/// A settings file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SettingsFile {
    /// Whose settings it holds.
    pub kind: SettingsFileKind,
    /// Where it is.
    pub path: String,
    /// Whether it is used.
    pub state: SettingsFileState,
    /// Why it is refused.
    pub why: Option<String>,
}
