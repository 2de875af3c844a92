//! The checkpoint manifest: what a committed checkpoint consists of (`docs/formats/checkpoint-manifest.md`).
//!
//! One JSON object names every file with its size, BLAKE3 and kind. The commit entry of the checkpoint log holds the
//! SHA-256 of the manifest's bytes, and so protects every byte of the checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, RunId, Step, Timestamp, closed_list};

/// The version this crate writes, and the highest it reads.
pub const MANIFEST_VERSION: u32 = 1;
/// The manifest's file name beside the files it lists.
pub const MANIFEST_FILE_NAME: &str = "manifest.json";
/// The largest manifest that is read.
pub const MAX_MANIFEST_BYTES: usize = 16 << 20;
/// The most files one checkpoint may have.
pub const MAX_MANIFEST_FILES: usize = 100_000;
/// Bytes of the chunks whose hashes a manifest lists: a power of two, so that a chunk is a subtree of BLAKE3.
pub const CHUNK_BYTES: u64 = 8 << 20;
/// The longest file name.
pub const MAX_FILE_NAME_BYTES: usize = 200;

/// Why bytes are no manifest. All of these mean: do not load this checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest has {size_bytes} bytes; at most {MAX_MANIFEST_BYTES} are read")]
    TooLarge { size_bytes: usize },
    #[error("the manifest is not valid: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error(
        "the manifest has version {version}, but this program reads up to {MANIFEST_VERSION}: use a newer Trackway"
    )]
    UnsupportedVersion { version: u32 },
    #[error("the manifest breaks a rule: {rule}")]
    Rule { rule: String },
}

closed_list!(
    /// What a file of a checkpoint holds.
    Kind, "kind of file", {
        /// The model.
        Weights = "weights",
        /// The optimizer's state.
        Optimizer = "optimizer",
        /// The learning rate schedule's state.
        Scheduler = "scheduler",
        /// The loss scaler's state.
        Scaler = "scaler",
        /// States of random number generators.
        Rng = "rng",
        /// Where in the data the run is.
        DataCursor = "data_cursor",
        /// Several of these in one file, such as a `ckpt.pt`: which ones is not known.
        State = "state",
        /// Anything that is not part of the training state, such as a sample or a plot.
        Other = "other",
    }
);

/// What a training state has beside weights so that a resume is exact.
pub const BESIDE_WEIGHTS: [Kind; 3] = [Kind::Optimizer, Kind::Rng, Kind::DataCursor];

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckpointFile"))]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// Its name in the checkpoint's folder; see [`check_file_name`].
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    pub size_bytes: u64,
    /// The BLAKE3 of its bytes, in lower-case hex.
    pub blake3: String,
    /// The prefix of the checkpoint that first wrote these very bytes under this name, when it is an earlier one: the
    /// file is shared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_in: Option<String>,
    /// The rank that wrote it, where several trained together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// What the chunks of 8 MiB of a larger file add to its BLAKE3 (their chaining values, in hex), so that
    /// damage can be located. Empty for a file of one chunk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<String>,
}

impl ManifestFile {
    /// A file that this checkpoint wrote itself.
    #[must_use]
    pub fn new(name: &str, kind: Kind, size_bytes: u64, blake3: &blake3::Hash) -> Self {
        let blake3 = blake3.to_hex().to_string();
        Self { name: name.into(), kind, size_bytes, blake3, stored_in: None, rank: None, chunks: Vec::new() }
    }

    /// Whether another file has the same name, kind, size and bytes, wherever it is stored.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        (&self.name, self.kind, self.size_bytes, &self.blake3)
            == (&other.name, other.kind, other.size_bytes, &other.blake3)
    }
}

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub run_id: RunId,
    /// The attempt that wrote it.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of its writer.
    pub epoch: u64,
    /// When it was written.
    #[serde(serialize_with = "in_milliseconds")]
    pub created_at: Timestamp,
    /// Where it is, below the checkpoint root.
    pub object_prefix: String,
    /// Processes that trained together.
    pub world_size: u32,
    /// Values of metrics at that step; those that are not finite are the strings `NaN`, `inf` and `-inf`.
    #[serde(with = "metric_values")]
    pub metrics: BTreeMap<String, f64>,
    /// The SHA-256 of the run's config, when known.
    pub config_sha256: Option<String>,
    /// The SHA-256 of the run's data manifest, when known.
    pub data_sha256: Option<String>,
    /// [`state_digest`] of the files.
    pub state_digest: String,
    /// The files, by name.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    /// What a resume from it has to start over, because it was not saved with the rest; empty where one file may hold all of it. The
    /// weights, if there is only the position in the data and in the random numbers.
    #[must_use]
    pub fn missing(&self) -> Vec<Kind> {
        let has = |kind: Kind| self.files.iter().any(|file| file.kind == kind);
        let is_place = |file: &ManifestFile| matches!(file.kind, Kind::Rng | Kind::DataCursor);
        if !self.files.is_empty() && self.files.iter().all(is_place) {
            return vec![Kind::Weights];
        }
        let is_missing = |kind: &Kind| has(Kind::Weights) && !has(Kind::State) && !has(*kind);
        BESIDE_WEIGHTS.into_iter().filter(is_missing).collect()
    }

    /// The files that a copy of the model has: its weights, and what is not state of the training. Where no other file
    /// holds weights, they are in one that may hold any part of the state, so these belong to it too. Empty: no file
    /// can hold weights.
    #[must_use]
    pub fn model_files(&self) -> Vec<&ManifestFile> {
        if !self.files.iter().any(|file| matches!(file.kind, Kind::Weights | Kind::State)) {
            return Vec::new();
        }
        let has_weights = self.weights_bytes().is_some();
        let is_of_model = |file: &&ManifestFile| match file.kind {
            Kind::Weights | Kind::Other => true,
            Kind::State => !has_weights,
            _ => false,
        };
        self.files.iter().filter(is_of_model).collect()
    }

    /// Bytes of the weights; none where they are in files that may hold other state too, or nowhere.
    #[must_use]
    pub fn weights_bytes(&self) -> Option<u64> {
        let weights = self.files.iter().filter(|file| file.kind == Kind::Weights);
        let holds_weights = |file: &ManifestFile| !describes_a_model(&file.name);
        weights.clone().any(holds_weights).then(|| weights.map(|file| file.size_bytes).sum())
    }

    /// Whether it is the files of a model and nothing else, which can be evaluated and not resumed: what `run.save_model` commits.
    #[must_use]
    pub fn is_model_alone(&self) -> bool {
        self.files.iter().all(|file| file.kind == Kind::Weights)
    }

    /// The bytes to store. The commit entry holds their SHA-256.
    ///
    /// # Errors
    /// [`ManifestError::Rule`] when this manifest would not be read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        self.check()?;
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge { size_bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Reads a manifest and checks every rule of the format.
    ///
    /// # Errors
    /// When the bytes are no manifest that this version reads.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge { size_bytes: bytes.len() });
        }
        // The version is read first: a later version may have any other fields.
        let Versioned { version } = serde_json::from_slice(bytes)?;
        if version > MANIFEST_VERSION {
            return Err(ManifestError::UnsupportedVersion { version });
        }
        let manifest: Self = serde_json::from_slice(bytes)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Bytes of all files.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size_bytes))
    }

    fn check(&self) -> Result<(), ManifestError> {
        let rule = |broken: bool, text: String| {
            if broken { Err(ManifestError::Rule { rule: text }) } else { Ok(()) }
        };
        rule(self.version == 0, "`version` is at least 1".into())?;
        rule(self.files.len() > MAX_MANIFEST_FILES, format!("at most {MAX_MANIFEST_FILES} files"))?;
        let mut names = BTreeSet::new();
        for file in &self.files {
            let name = &file.name;
            check_file_name(name).map_err(|rule| ManifestError::Rule { rule })?;
            rule(!names.insert(name), format!("`{name}` is listed twice"))?;
            rule(!is_hex_hash(&file.blake3), format!("`blake3` of `{name}` is 64 lower-case hex digits"))?;
            let is_stored_well = file.stored_in.as_deref().is_none_or(is_object_prefix);
            rule(!is_stored_well, format!("`stored_in` of `{name}` is a checkpoint's prefix"))?;
            let chunk_count =
                if file.size_bytes > CHUNK_BYTES { file.size_bytes.div_ceil(CHUNK_BYTES) } else { 0 };
            let chunks_fit = file.chunks.is_empty() || file.chunks.len() as u64 == chunk_count;
            let are_hashes = file.chunks.iter().all(|chunk| is_hex_hash(chunk));
            let chunks = format!("`chunks` of `{name}` has a hash for every {CHUNK_BYTES} bytes");
            rule(!(chunks_fit && are_hashes), chunks)?;
            let is_rank = file.rank.is_none_or(|rank| rank < self.world_size);
            rule(!is_rank, format!("`rank` of `{name}` is below `world_size`"))?;
        }
        for (field, hash) in [("config_sha256", &self.config_sha256), ("data_sha256", &self.data_sha256)] {
            let broken = hash.as_deref().is_some_and(|hash| !is_hex_hash(hash));
            rule(broken, format!("`{field}` is 64 lower-case hex digits"))?;
        }
        rule(
            self.state_digest != state_digest(&self.files),
            "`state_digest` is the digest of the listed files".into(),
        )
    }
}

/// Whether a file that is named after the model only describes it: `model.json` of XGBoost is a model, `model_config.json` is not.
#[must_use]
pub fn describes_a_model(name: &str) -> bool {
    const ENDS: [&str; 7] = ["config.json", "args.json", "index.json", ".yaml", ".yml", ".md", ".py"];
    let name = name.to_ascii_lowercase();
    ENDS.iter().any(|end| name.ends_with(end))
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Whether a text may name a file of a checkpoint: 1 to [`MAX_FILE_NAME_BYTES`] of ASCII letters, digits, `.`, `_`
/// and `-`, not beginning with `.`, and not [`MANIFEST_FILE_NAME`]. So no name leads out of the folder.
///
/// # Errors
/// A sentence about what is wrong with it.
pub fn check_file_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_FILE_NAME_BYTES {
        return Err(format!(
            "a file name has 1 to {MAX_FILE_NAME_BYTES} bytes, and this one has {}",
            name.len()
        ));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.starts_with('.') || !name.bytes().all(allowed) {
        return Err(format!(
            "the file name `{}` has other characters than letters, digits, `.`, `_` and `-`, or begins with `.`",
            name.escape_debug()
        ));
    }
    if name == MANIFEST_FILE_NAME {
        return Err(format!("`{MANIFEST_FILE_NAME}` is the manifest's own name"));
    }
    Ok(())
}

/// Where the files of a checkpoint go, below the root: a name that is never used again. `ulid` is in lower case.
#[must_use]
pub fn object_prefix(step: Step, epoch: u64, ulid: &str) -> String {
    format!("step-{step:08}/epoch-{epoch:04}-{ulid}")
}

/// Whether a text is one that [`object_prefix`] makes. No other may be joined to a root: it might lead out of it.
#[must_use]
pub fn is_object_prefix(text: &str) -> bool {
    let sound = || {
        let (step, rest) = text.strip_prefix("step-")?.split_once("/epoch-")?;
        let (epoch, ulid) = rest.split_once('-')?;
        let ulid_is_one =
            ulid.len() == 26 && ulid.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        Some(ulid_is_one && text == object_prefix(step.parse().ok()?, epoch.parse().ok()?, ulid))
    };
    sound().unwrap_or(false)
}

/// The digest of a training state: BLAKE3 over a line per file, sorted by name, of all files but those of kind
/// [`Kind::Other`]. Two checkpoints with the same digest hold the same state, whichever process wrote them and when.
#[must_use]
pub fn state_digest(files: &[ManifestFile]) -> String {
    let mut state: Vec<_> = files.iter().filter(|file| file.kind != Kind::Other).collect();
    state.sort_by(|left, right| left.name.cmp(&right.name));
    let mut hasher = blake3::Hasher::new();
    for file in state {
        let line = format!("{}\t{}\t{}\t{}\n", file.name, file.kind.as_str(), file.size_bytes, file.blake3);
        hasher.update(line.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Whether a text is 64 lower-case hex digits.
#[must_use]
pub fn is_hex_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A time of a manifest has milliseconds.
fn in_milliseconds<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339())
}

mod metric_values {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(f64),
        Text(String),
    }

    pub fn serialize<S: Serializer>(
        values: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let value = |value: f64| {
            if value.is_finite() { Value::Number(value) } else { Value::Text(value.to_string()) }
        };
        serializer.collect_map(values.iter().map(|(name, number)| (name, value(*number))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, f64>, D::Error> {
        let values = BTreeMap::<String, Value>::deserialize(deserializer)?;
        values.into_iter().map(|(name, value)| Ok((name, number(value).map_err(D::Error::custom)?))).collect()
    }

    fn number(value: Value) -> Result<f64, String> {
        match value {
            Value::Number(number) => Ok(number),
            Value::Text(text) => match text.as_str() {
                "NaN" => Ok(f64::NAN),
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                other => Err(format!("invalid metric value `{other}`")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use trackway_core::SequentialIds;

    use super::*;

    fn file(name: &str, kind: Kind) -> ManifestFile {
        ManifestFile::new(name, kind, 3, &blake3::hash(name.as_bytes()))
    }

    fn manifest() -> Manifest {
        let ids = SequentialIds::default();
        let files = vec![file("cursor.json", Kind::DataCursor), file("model.safetensors", Kind::Weights)];
        Manifest {
            version: MANIFEST_VERSION,
            run_id: RunId::new(&ids),
            attempt_id: AttemptId::new(&ids),
            step: 120,
            epoch: 1,
            created_at: Timestamp::from_micros(1_795_244_400_123_000),
            object_prefix: "step-00000120/epoch-0001-00000000000000000000000003".into(),
            world_size: 1,
            metrics: BTreeMap::from([("loss".into(), 0.25), ("ratio".into(), f64::NEG_INFINITY)]),
            config_sha256: Some(crate::sha256_hex(b"config")),
            data_sha256: None,
            state_digest: state_digest(&files),
            files,
        }
    }

    /// Proves that what is written is read back as the same, also where numbers are not finite.
    #[test]
    fn a_manifest_round_trips() {
        let bytes = manifest().to_bytes().unwrap();
        assert_eq!(Manifest::from_bytes(&bytes).unwrap(), manifest());
        assert!(String::from_utf8(bytes).unwrap().contains("\"ratio\": \"-inf\""));
    }

    /// Proves that a prefix is what the writer derives from step, epoch and ULID, and nothing that leads elsewhere.
    #[test]
    fn only_a_prefix_is_a_prefix() {
        let ulid = "01jd8c4w9m7n2q5r8t0v3x6y9z";
        assert!(is_object_prefix(&object_prefix(120, 3, ulid)));
        assert!(is_object_prefix(&object_prefix(123_456_789_012, 12_345, ulid)));
        for text in [
            "",
            "step-00000120",
            "step-00000120/epoch-0001-..",
            "step-00000120/epoch-0001-x/../../y",
            "/step-00000120/epoch-0001-01jd8c4w9m7n2q5r8t0v3x6y9z",
            "step-120/epoch-0001-01jd8c4w9m7n2q5r8t0v3x6y9z",
        ] {
            assert!(!is_object_prefix(text), "`{text}`");
        }
    }

    /// Proves which files a copy of the model has: never none that can hold weights, not the state beside weights, and
    /// not a description alone.
    #[test]
    fn a_copy_of_the_model_has_its_weights() {
        use Kind::{Optimizer, Other, Rng, State, Weights};
        for (files, expected) in [
            (
                vec![("model.pt", Weights), ("optimizer.pt", Optimizer), ("origin.json", Other)],
                "model.pt origin.json",
            ),
            (vec![("ckpt.pt", State), ("origin.json", Other)], "ckpt.pt origin.json"),
            (
                vec![("__0_0.distcp", State), ("__1_0.distcp", State), ("_.metadata", Other)],
                "__0_0.distcp __1_0.distcp _.metadata",
            ),
            (vec![("model.pt", Weights), ("global_step1-zero.pt", State)], "model.pt"),
            (vec![("model_args.json", Weights), ("ckpt.pt", State)], "model_args.json ckpt.pt"),
            (vec![("model.json", Weights), ("rng.bin", Rng)], "model.json"),
            (vec![("optimizer.pt", Optimizer), ("origin.json", Other)], ""),
            (vec![("plot.png", Other)], ""),
        ] {
            let files = files.iter().map(|(name, kind)| file(name, *kind)).collect();
            let manifest = Manifest { files, ..manifest() };
            let names: Vec<&str> = manifest.model_files().iter().map(|file| file.name.as_str()).collect();
            assert_eq!(names.join(" "), expected);
        }
    }

    /// Proves that every rule of the format is checked, and that the message names the rule and the value.
    #[test]
    fn every_rule_is_checked() {
        type Break = fn(&mut Value);
        let breaks: [(&str, Break); 12] = [
            ("begins with `.`", |json| json["files"][0]["name"] = "../../etc/passwd".into()),
            ("the manifest's own name", |json| json["files"][0]["name"] = "manifest.json".into()),
            ("`cursor.json` is listed twice", |json| json["files"][1]["name"] = "cursor.json".into()),
            ("`blake3` of `cursor.json`", |json| json["files"][0]["blake3"] = "AB".into()),
            ("`stored_in` of `cursor.json`", |json| json["files"][0]["stored_in"] = "step-1/../..".into()),
            ("`chunks` of `cursor.json`", |json| json["files"][0]["chunks"] = serde_json::json!(["ab"])),
            ("`rank` of `cursor.json`", |json| json["files"][0]["rank"] = 1.into()),
            ("invalid kind of file `wheels`: expected one of `weights`, ", |json| {
                json["files"][0]["kind"] = "wheels".into()
            }),
            ("`state_digest` is the digest", |json| json["files"][0]["size_bytes"] = 4.into()),
            ("`config_sha256` is 64", |json| json["config_sha256"] = "x".into()),
            ("invalid metric value", |json| json["metrics"]["loss"] = "great".into()),
            ("has version 2", |json| *json = serde_json::json!({ "version": 2, "anything": [] })),
        ];
        for (expected, change) in breaks {
            let mut json: Value = serde_json::from_slice(&manifest().to_bytes().unwrap()).unwrap();
            change(&mut json);
            let error = Manifest::from_bytes(json.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "`{error}` does not say `{expected}`");
        }
    }

    proptest! {
        /// Proves that no bytes, near a manifest or far from one, make the reader panic.
        #[test]
        fn no_bytes_panic(position in 0usize..2_000, byte in any::<u8>(), cut in 0usize..2_000) {
            let mut bytes = manifest().to_bytes().unwrap();
            let length = bytes.len();
            bytes[position % length] = byte;
            let _ = Manifest::from_bytes(&bytes);
            let _ = Manifest::from_bytes(&bytes[..cut % length]);
        }
    }
}
