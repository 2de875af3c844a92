use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use trackway_checkpoint::{CheckpointError, Commit, Kind};

use crate::error::{input, to_python};
use crate::memory::{Memory, Region};

/// One tensor to be staged: name, dtype as safetensors writes it, shape, size in bytes, and where its bytes are
/// (0: Python copies them into the region it gets back).
pub type TensorSpec = (String, String, Vec<u64>, usize, usize);

type Files = Vec<(String, Kind, Arc<Memory>)>;
type Submit = Box<dyn FnOnce(u64, &[(&str, f64)], &Files) -> Result<Commit, CheckpointError> + Send>;

/// The files of one checkpoint, gathered in memory. Nothing is written before `submit`.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Stage {
    step: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    files: Files,
    submit: Option<Submit>,
}

impl Stage {
    pub fn new(
        step: u64,
        submit: impl FnOnce(u64, &[(&str, f64)], &Files) -> Result<Commit, CheckpointError> + Send + 'static,
    ) -> Self {
        let inner = Inner { files: Vec::new(), submit: Some(Box::new(submit)) };
        Self { step, inner: Mutex::new(inner) }
    }

    fn add(&self, name: String, kind: Kind, memory: Arc<Memory>) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).files.push((name, kind, memory));
    }
}

#[pymethods]
impl Stage {
    /// Stages a file as it is.
    fn bytes(&self, py: Python<'_>, name: String, kind: &str, bytes: &[u8]) -> PyResult<()> {
        self.add(name, parse_kind(py, kind)?, Memory::from_vec(bytes.to_vec()));
        Ok(())
    }

    /// Stages tensors as safetensors files `GROUP-00001-of-….safetensors`. Those with an address are copied now, with
    /// the GIL released: their memory must stay valid and unchanged during the call. For the others a region each is
    /// returned, in order, to be filled before `submit`.
    fn tensors(
        &self,
        py: Python<'_>,
        group: &str,
        kind: &str,
        metadata: Vec<(String, String)>,
        specs: Vec<TensorSpec>,
    ) -> PyResult<Vec<Region>> {
        let kind = parse_kind(py, kind)?;
        let (header, offsets, total) = layout(&metadata, &specs);
        let mut bytes = vec![0; total];
        bytes[..header.len()].copy_from_slice(&header);
        let memory = Memory::from_vec(bytes);
        py.detach(|| {
            for ((.., len_bytes, address), offset) in specs.iter().zip(&offsets) {
                if *address != 0 {
                    // SAFETY: the caller promises that the tensor's memory is valid during this call.
                    unsafe { memory.copy_in(*offset, *address, *len_bytes) };
                }
            }
        });
        self.add(format!("{group}.safetensors"), kind, Arc::clone(&memory));
        let foreign = specs.iter().zip(&offsets).filter(|((.., address), _)| *address == 0);
        Ok(foreign.map(|((.., len, _), offset)| Region::new(Arc::clone(&memory), *offset, *len)).collect())
    }

    /// Writes and commits the checkpoint. Returns where it is and how long that took.
    fn submit(&self, py: Python<'_>, metrics: Vec<(String, f64)>) -> PyResult<(String, f64)> {
        let (files, submit) = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut inner.files), inner.submit.take())
        };
        let submit = submit.ok_or_else(|| input(py, "this stage was submitted already"))?;
        if files.iter().any(|(_, _, memory)| memory.export_count() > 0) {
            return Err(input(py, "a view of the stage is still held; release it before submitting"));
        }
        let step = self.step;
        let metrics: Vec<_> = metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let commit = py.detach(|| submit(step, &metrics, &files)).map_err(|error| to_python(py, &error))?;
        Ok((commit.object_prefix, commit.seconds))
    }
}

fn parse_kind(py: Python<'_>, kind: &str) -> PyResult<Kind> {
    serde_json::from_value(kind.into()).map_err(|_| input(py, &format!("`{kind}` is no kind of file")))
}

fn layout(metadata: &[(String, String)], specs: &[TensorSpec]) -> (Vec<u8>, Vec<usize>, usize) {
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert("__metadata__".into(), metadata.iter().cloned().collect::<serde_json::Value>());
    }
    let mut relative = Vec::new();
    let mut end = 0;
    for (name, dtype, shape, len_bytes, _) in specs {
        let start = end;
        end += len_bytes;
        header.insert(
            name.clone(),
            serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}),
        );
        relative.push(start);
    }
    let mut text = serde_json::Value::Object(header).to_string().into_bytes();
    text.resize((text.len() + 8).next_multiple_of(4096) - 8, b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    let start = bytes.len();
    (bytes, relative.iter().map(|offset| start + offset).collect(), start + end)
}
