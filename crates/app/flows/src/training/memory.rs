//! How much device memory a run would need: reads a description of the model, and estimates.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use trackway_checkpoint::bulk::Header;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_rules::preflight::memory::{
    Architecture, Calibration, Counter, MemorySpec, TensorCount, architecture_of_tensors, estimate,
    read_config,
};

/// Largest config that is read: the largest published ones have less than 100 kB.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Largest header that the safetensors format allows, with the eight bytes of its length.
const MAX_HEADER_BYTES: u64 = 100_000_008;
const LENGTH_BYTES: usize = 8;

/// What describes a model.
#[derive(Debug, Clone, Default)]
pub struct ModelSource {
    /// Its `config.json`, or a folder with one.
    pub config: Option<PathBuf>,
    /// Its weights: safetensors files, or folders of them. Only headers are read.
    pub safetensors: Vec<PathBuf>,
    /// Its parameter count.
    pub parameters: Option<u64>,
}

/// A model that was read, with notes for a user.
#[derive(Debug, Clone)]
pub struct ModelRead {
    /// Its shape.
    pub model: Architecture,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// A peak that was measured in a run of the same settings.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredPeak {
    /// The most memory that was held at one time.
    pub bytes: u64,
    /// What it counts.
    pub counter: Counter,
}

/// Reads what describes a model. A config gives the shape, headers the exact count; a count alone gives a guessed
/// shape.
///
/// # Errors
/// [`ErrorKind::NotFound`] when a file does not exist, [`ErrorKind::Usage`] when nothing is named or it describes no
/// model.
pub fn read_model(source: &ModelSource) -> Result<ModelRead, AppError> {
    let tensors = tensors_of(&source.safetensors)?;
    let counted = architecture_of_tensors(&tensors);
    let mut read = match (&source.config, counted.clone(), source.parameters) {
        (Some(path), _, _) => config_of(path)?,
        (None, Some(model), _) => ModelRead { model, notes: vec![notes_of_tensors()] },
        (None, None, Some(parameters)) => guessed(parameters),
        (None, None, None) => return Err(nothing_named()),
    };
    let known = source.parameters.or_else(|| counted.and_then(|model| model.known_parameters));
    read.model.known_parameters = known.or(read.model.known_parameters);
    if read.model.plausible() { Ok(read) } else { Err(usage("no model has more than 10^15 parameters")) }
}

/// How far a measured peak is from what is expected.
///
/// # Errors
/// [`ErrorKind::Usage`] when it is not that of the described run.
pub fn correction(spec: &MemorySpec, measured: MeasuredPeak) -> Result<Calibration, AppError> {
    Calibration::of(&estimate(spec), measured.bytes, measured.counter).map_err(|error| {
        AppError::of(ErrorKind::Usage, error)
            .hint("describe the run that was measured, or leave the measured peak out")
    })
}

fn usage(message: impl Into<String>) -> AppError {
    AppError::new(ErrorKind::Usage, message)
}

fn nothing_named() -> AppError {
    usage("no model is described")
        .hint("name one with --params, --config, --safetensors, or --layers and --hidden")
}

fn guessed(parameters: u64) -> ModelRead {
    let note = "the shape is guessed from the parameter count; --config makes the interval narrower";
    ModelRead { model: Architecture::of_parameters(parameters), notes: vec![note.into()] }
}

fn notes_of_tensors() -> String {
    "heads are guessed from the tensors' axes; add --config beside --safetensors for exact values".into()
}

fn config_of(path: &Path) -> Result<ModelRead, AppError> {
    let path = if path.is_dir() { path.join("config.json") } else { path.into() };
    let mut text = String::new();
    let mut file = open(&path)?.take(MAX_CONFIG_BYTES);
    file.read_to_string(&mut text).map_err(|error| unreadable(&path, error))?;
    let wrong = || usage(format!("`{}`", path.display()));
    let config = serde_json::from_str(&text).map_err(|error| wrong().because(error))?;
    let read = read_config(&config).map_err(|error| wrong().because(error))?;
    Ok(ModelRead { model: read.model, notes: read.notes })
}

fn tensors_of(paths: &[PathBuf]) -> Result<Vec<TensorCount>, AppError> {
    let mut tensors = Vec::new();
    for path in files_of(paths)? {
        let header = header_of(&path)?;
        tensors.extend(header.tensors.into_iter().map(|it| TensorCount { name: it.name, shape: it.shape }));
    }
    Ok(tensors)
}

/// The files that are named, and every safetensors file of folders that are.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, AppError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, error))?;
        let is_tensors =
            |file: &PathBuf| file.extension().is_some_and(|extension| extension == "safetensors");
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(is_tensors).collect();
        if found.is_empty() {
            let message = format!("there is no safetensors file in `{}`", path.display());
            return Err(AppError::new(ErrorKind::NotFound, message));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn header_of(path: &Path) -> Result<Header, AppError> {
    let mut file = open(path)?;
    let file_bytes = file.metadata().map_err(|error| unreadable(path, error))?.len();
    let mut bytes = Vec::new();
    let mut read = |file: &mut File, until: u64| {
        let more = until.saturating_sub(bytes.len() as u64);
        file.take(more).read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
        Ok::<Option<[u8; LENGTH_BYTES]>, AppError>(bytes.first_chunk().copied())
    };
    if let Some(first) = read(&mut file, LENGTH_BYTES as u64)? {
        let header_bytes = u64::from_le_bytes(first).saturating_add(LENGTH_BYTES as u64);
        read(&mut file, header_bytes.min(MAX_HEADER_BYTES).min(file_bytes))?;
    }
    Header::from_bytes(&bytes, file_bytes).map_err(|error| {
        usage(format!("`{}` is not a valid safetensors file", path.display())).because(error)
    })
}

fn open(path: &Path) -> Result<File, AppError> {
    File::open(path).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: std::io::Error) -> AppError {
    let kind =
        if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Fault };
    AppError::new(kind, format!("cannot read `{}`", path.display())).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safetensors(header: &str, data_bytes: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data_bytes, 0);
        bytes
    }

    /// Proves that headers of a folder are counted together, that a config beside them gives the shape, and that
    /// neither a damaged file nor an empty folder passes for a model.
    #[test]
    fn models_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let one = r#"{"a":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]}}"#;
        std::fs::write(path("1.safetensors"), safetensors(one, 64)).unwrap();
        std::fs::write(path("2.safetensors"), safetensors(&one.replace("\"a\"", "\"b\""), 64)).unwrap();
        let weights = ModelSource { safetensors: vec![folder.path().into()], ..ModelSource::default() };
        assert_eq!(read_model(&weights).unwrap().model.parameters(), 64);
        let config = r#"{"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2,
            "intermediate_size": 16, "vocab_size": 10}"#;
        std::fs::write(path("config.json"), config).unwrap();
        let both = ModelSource { config: Some(folder.path().into()), ..weights };
        let model = read_model(&both).unwrap().model;
        assert_eq!((model.parameters(), model.layers), (64, 3));
        std::fs::write(path("3.safetensors"), b"short").unwrap();
        assert_eq!(read_model(&both).unwrap_err().kind, ErrorKind::Usage);
        let empty = tempfile::tempdir().unwrap();
        let nowhere = ModelSource { safetensors: vec![empty.path().into()], ..ModelSource::default() };
        assert_eq!(read_model(&nowhere).unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(read_model(&ModelSource::default()).unwrap_err().kind, ErrorKind::Usage);
    }
}
