use std::collections::BTreeMap;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use pyo3::prelude::*;
use trackway_checkpoint::bulk::{self, TensorRef, TensorSpec};
use trackway_checkpoint::{CheckpointError, Kind};

use crate::error::{input, to_python};
use crate::memory::{Lent, Region};
use crate::target::Target;

/// A tensor for a draft: name, dtype as safetensors writes it, shape, group, size in bytes, and where its bytes are
/// (0: Python copies them into the region it gets back).
pub type DraftTensor = (String, String, Vec<u64>, u32, usize, usize);

/// The files of one checkpoint, gathered in memory or open. Nothing is written before `submit`.
#[pyclass(frozen, module = "trackway._trackway")]
pub struct Draft {
    lent: Arc<Lent>,
}

impl Draft {
    pub fn new(target: Target) -> Self {
        Self { lent: Lent::new(target) }
    }

    fn with_draft<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut bulk::Draft) -> Result<T, CheckpointError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| self.lent.target().as_mut().map(|target| run(target.draft())));
        done.ok_or_else(|| submitted(py))?.map_err(|error| to_python(py, &error))
    }
}

#[pymethods]
impl Draft {
    /// Sets the position in the data of all ranks together; the same on each.
    fn global_cursor(&self, py: Python<'_>, cursor: &[u8]) -> PyResult<()> {
        self.with_draft(py, |draft| {
            draft.set_global_cursor(cursor);
            Ok(())
        })
    }

    /// Adds a file as it is.
    fn bytes(&self, py: Python<'_>, name: &str, kind: &str, bytes: &[u8]) -> PyResult<()> {
        let kind = parse_kind(py, kind)?;
        self.with_draft(py, |draft| draft.bytes(name, kind, bytes))
    }

    /// Adds a file that a library wrote. It is opened now, and copied by the thread that saves.
    fn file(&self, py: Python<'_>, name: &str, kind: &str, path: PathBuf) -> PyResult<()> {
        let kind = parse_kind(py, kind)?;
        self.with_draft(py, |draft| draft.file(name, kind, &path))
    }

    /// Makes room for so many more bytes and pins it, so that a GPU writes there at the speed of the bus. False: it is not pinned.
    fn pin(&self, py: Python<'_>, size_bytes: usize) -> PyResult<bool> {
        self.with_draft(py, |draft| draft.pin(size_bytes))
    }

    /// Adds tensors as safetensors files `STEM.safetensors` or `STEM-00001-of-….safetensors`. Those with an address
    /// are copied now, with the GIL released: their memory must stay valid and unchanged during the call. For the
    /// others that are not empty a region each is returned, in order, to be filled before `submit`.
    fn tensors(
        &self,
        py: Python<'_>,
        stem: &str,
        kind: &str,
        metadata: BTreeMap<String, String>,
        given: Vec<DraftTensor>,
    ) -> PyResult<Vec<Region>> {
        let kind = parse_kind(py, kind)?;
        let specs = given.iter().map(|tensor| spec(py, tensor)).collect::<PyResult<Vec<_>>>()?;
        let places: Vec<_> = given.into_iter().map(|(.., len_bytes, address)| (len_bytes, address)).collect();
        self.with_draft(py, |draft| {
            let Some(regions) = copy_all(draft, stem, kind, &metadata, &specs, &places)? else {
                return Ok(Vec::new());
            };
            let foreign = regions.into_iter().zip(&places).filter(|(_, place)| is_foreign(place));
            Ok(foreign.map(|(region, _)| Region::of_draft(Arc::clone(&self.lent), &region)).collect())
        })
    }

    /// Hands the checkpoint over to be written and committed in the background.
    fn submit(&self, py: Python<'_>, metrics: Vec<(String, f64)>) -> PyResult<()> {
        if !self.lent.close() {
            return Err(input(py, "a view of the draft is still held; release it before submitting"));
        }
        let target = self.lent.target().take().ok_or_else(|| submitted(py))?;
        py.detach(|| match target {
            Target::Run(draft) => {
                let metrics: Vec<_> = metrics.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                draft.submit(&metrics);
            }
            Target::Root(draft) => draft.submit(metrics),
        });
        Ok(())
    }

    /// Abandons the draft; nothing is saved. If views are still held (by the traceback of an error, say), its memory is
    /// free for the next one when they are gone.
    fn drop(&self, py: Python<'_>) {
        if self.lent.close() {
            py.detach(|| drop(self.lent.target().take()));
        }
    }
}

/// Copies every tensor with an address. When there are others too, returns the place of each tensor.
fn copy_all(
    draft: &mut bulk::Draft,
    stem: &str,
    kind: Kind,
    metadata: &BTreeMap<String, String>,
    specs: &[TensorSpec],
    places: &[(usize, usize)],
) -> Result<Option<Vec<bulk::Region>>, CheckpointError> {
    if !places.iter().any(is_foreign) {
        let tensors: Vec<_> = specs.iter().zip(places).map(|(spec, place)| tensor_at(spec, place)).collect();
        draft.tensors(stem, kind, &tensors, metadata)?;
        return Ok(None);
    }
    let regions = draft.reserve(stem, kind, specs, metadata)?;
    for ((len_bytes, address), region) in places.iter().zip(&regions) {
        if *address != 0 {
            let len_bytes = (*len_bytes).min(region.size_bytes());
            // SAFETY: the region is valid for its size; the source is the Python layer's promise.
            unsafe { ptr::copy_nonoverlapping(*address as *const u8, region.pointer(), len_bytes) };
        }
    }
    Ok(Some(regions))
}

fn is_foreign((len_bytes, address): &(usize, usize)) -> bool {
    *address == 0 && *len_bytes > 0
}

fn tensor_at<'a>(spec: &TensorSpec, (len_bytes, address): &(usize, usize)) -> TensorRef<'a> {
    let bytes = match *address {
        0 => &[],
        // SAFETY: the Python layer keeps the tensor alive and unchanged during the call.
        address => unsafe { std::slice::from_raw_parts(address as *const u8, *len_bytes) },
    };
    TensorRef { spec: spec.clone(), bytes }
}

fn spec(py: Python<'_>, (name, dtype, shape, group, ..): &DraftTensor) -> PyResult<TensorSpec> {
    let dtype = serde_json::from_value(dtype.as_str().into())
        .map_err(|_| input(py, &format!("safetensors has no dtype `{dtype}`")))?;
    Ok(TensorSpec { group: *group, ..TensorSpec::new(name.as_str(), dtype, shape.as_slice()) })
}

fn parse_kind(py: Python<'_>, kind: &str) -> PyResult<Kind> {
    serde_json::from_value(kind.into()).map_err(|_| input(py, &format!("unknown kind of file `{kind}`")))
}

fn submitted(py: Python<'_>) -> PyErr {
    input(py, "this draft was already submitted or abandoned")
}
