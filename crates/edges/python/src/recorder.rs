use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};
use trackway_recorder::{is_given_up, loss_rank};

use crate::draft::Draft;
use crate::error::to_python;
use crate::loaded::Loaded;
use crate::target::Target;
use crate::wait;

/// How many different complaints about unusable values are recorded; a loop must not fill its record with them.
const MAX_COMPLAINTS: usize = 100;

/// The recorder of this process. The methods that record never raise and wait for nothing but one `write(2)`.
#[pyclass(subclass, frozen, module = "trackway._trackway")]
pub struct Recorder {
    inner: trackway_recorder::Recorder,
    complaints: Mutex<HashSet<String>>,
}

#[pymethods]
impl Recorder {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyAny>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        let inner = trackway_recorder::Recorder::attach_as("python");
        Self { inner, complaints: Mutex::new(HashSet::new()) }
    }

    /// Whether anything is recorded: false outside an attempt.
    #[getter]
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    /// The number of this rank, and how many there are. If the environment contradicts itself there is one, and the
    /// error of resuming or saving explains what is wrong.
    #[getter(_ranks)]
    fn ranks(&self) -> (u32, u32) {
        self.inner.group().map_or((0, 1), |group| (group.rank(), group.world_size()))
    }

    /// The kind of a rehearsal and how many batches it repeats; none in training.
    #[getter(_rehearsal_plan)]
    fn rehearsal_plan(&self) -> Option<(&'static str, u64)> {
        self.inner.rehearsal().map(|plan| (plan.kind.as_str(), plan.batches))
    }

    #[pyo3(name = "_rehearsal_baseline")]
    fn rehearsal_baseline(&self, loss: f64) {
        self.inner.rehearsal_baseline(loss);
    }

    /// What cannot be turned into a float is skipped, and an event reports it once per name. Returns the first loss or
    /// gradient norm that is not finite.
    #[pyo3(name = "_log", signature = (step, values, named, /))]
    fn log<'py>(
        &self,
        step: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        named: &Bound<'py, PyDict>,
    ) -> Option<String> {
        let Ok(step) = step.extract::<u64>() else {
            self.complain("log", "step", step);
            return None;
        };
        let mut metrics = Metrics::with_room_for(named.len());
        match values.cast::<PyDict>() {
            Ok(values) => metrics.take(self, values),
            Err(_) if values.is_none() => {}
            Err(_) => self.complain("log", "values", values),
        }
        metrics.take(self, named);
        metrics.with_pairs(|pairs| {
            self.inner.log(step, pairs);
            let is_lost = |(name, value): &&(&str, f64)| !value.is_finite() && shows_gradients(name);
            pairs.iter().find(is_lost).map(|(name, _)| (*name).to_owned())
        })
    }

    #[pyo3(name = "_event", signature = (kind, step, fields, /))]
    fn event<'py>(&self, kind: &Bound<'py, PyAny>, step: &Bound<'py, PyAny>, fields: &Bound<'py, PyDict>) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (text(&name), text(&value))).collect();
        let pairs: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.inner.event(&text(kind), step.extract().ok(), &pairs);
    }

    #[pyo3(name = "_param", signature = (name, value, /))]
    fn param(&self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        self.inner.param(&text(name), &text(value));
    }

    #[pyo3(name = "_tag", signature = (name, value, /))]
    fn tag(&self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        self.inner.tag(&text(name), &text(value));
    }

    #[pyo3(name = "_artifact", signature = (name, path, step, /))]
    fn artifact(&self, py: Python<'_>, name: &str, path: PathBuf, step: Option<u64>) {
        py.detach(|| self.inner.artifact(name, &path, step));
    }

    #[pyo3(name = "_exception", signature = (kind, message, places, /))]
    fn exception(&self, kind: &str, message: &str, places: Vec<String>) {
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        self.inner.exception(kind, message, &places);
    }

    #[pyo3(name = "_heartbeat", signature = (step, /))]
    fn heartbeat(&self, step: &Bound<'_, PyAny>) {
        if let Ok(step) = step.extract() {
            self.inner.heartbeat(step);
        }
    }

    /// The highest step that was recorded, saved or resumed; 0 if none.
    #[getter(_reached_step)]
    fn reached_step(&self) -> u64 {
        self.inner.reached_step()
    }

    /// From now on SIGTERM makes `should_stop()` true instead of ending the process.
    fn stop_on_sigterm(&self) {
        self.inner.stop_on_sigterm();
    }

    #[pyo3(name = "_stop_asked")]
    fn stop_asked(&self) -> bool {
        self.inner.should_stop()
    }

    /// A step begins: a stop that was put off to it may be answered within it.
    #[pyo3(name = "_begin_step")]
    fn begin_step(&self, step: u64) {
        self.inner.begin_step(step);
    }

    #[pyo3(name = "_epochs_finished")]
    fn epochs_finished(&self, epochs: u64) {
        self.inner.epochs_finished(epochs);
    }

    /// Whether the run file has a cadence in epochs, and none was reported.
    #[getter(_lacks_epochs)]
    fn lacks_epochs(&self) -> bool {
        self.inner.lacks_epochs()
    }

    #[pyo3(name = "_checkpoint_due")]
    fn checkpoint_due(&self, step: u64) -> bool {
        self.inner.checkpoint_due(step)
    }

    /// Takes memory for checkpoints of so many bytes ahead, in the background.
    #[pyo3(name = "_prepare")]
    fn prepare(&self, py: Python<'_>, size_bytes: u64) -> PyResult<()> {
        py.detach(|| self.inner.prepare_checkpoints(size_bytes)).map_err(|error| to_python(py, &error))
    }

    /// Begins a checkpoint. `None`: outside an attempt, and when the one before is still being written.
    #[pyo3(name = "_begin")]
    fn begin(&self, py: Python<'_>, step: u64) -> PyResult<Option<Draft>> {
        if !self.inner.enabled() {
            return Ok(None);
        }
        let begun = py.detach(|| self.inner.draft_checkpoint(step)).map_err(|error| to_python(py, &error))?;
        Ok(begun.map(|draft| Draft::new(Target::Run(draft))))
    }

    /// Waits until the checkpoint that was submitted last has ended, and raises what made it fail; not that ranks gave
    /// it up, when another one comes.
    #[pyo3(name = "_wait", signature = (another_comes = false))]
    fn wait(&self, py: Python<'_>, another_comes: bool) -> PyResult<()> {
        wait::until(py, |at_most| self.inner.wait_for_checkpoint(at_most))?;
        let failure = py.detach(|| self.inner.checkpoint_failure());
        let failure = failure.filter(|error| !(another_comes && is_given_up(error)));
        failure.map_or(Ok(()), |error| Err(to_python(py, &error)))
    }

    #[pyo3(name = "_resume")]
    fn resume(&self, py: Python<'_>) -> PyResult<Option<Loaded>> {
        let loaded = py.detach(|| self.inner.resume_read()).map_err(|error| to_python(py, &error))?;
        Ok(loaded.map(Loaded::new))
    }

    /// The same without reading it into memory: every byte was verified, each file by one of the ranks.
    #[pyo3(name = "_resume_target")]
    fn resume_target(&self, py: Python<'_>) -> PyResult<Option<Loaded>> {
        let found = py.detach(|| self.inner.resume()).map_err(|error| to_python(py, &error))?;
        Ok(found.map(Loaded::unread))
    }

    #[pyo3(name = "_warm_start")]
    fn warm_start(&self, py: Python<'_>) -> PyResult<Option<Loaded>> {
        let loaded = py.detach(|| self.inner.warm_start_read()).map_err(|error| to_python(py, &error))?;
        Ok(loaded.map(Loaded::new))
    }

    #[pyo3(name = "_finish")]
    fn finish(&self, py: Python<'_>) {
        py.detach(|| self.inner.finish());
    }
}

impl Recorder {
    /// Records once per name that a value could not be used.
    fn complain(&self, method: &str, name: &str, value: &Bound<'_, PyAny>) {
        let found = value.get_type().qualname().map(|name| name.to_string()).unwrap_or_default();
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if complaints.len() < MAX_COMPLAINTS && complaints.insert(name.to_owned()) {
            self.inner.event(
                "value_unusable",
                None,
                &[("method", method), ("name", name), ("found", &found)],
            );
        }
    }
}

/// Names and values on their way into the record. The strings of the interpreter are not copied.
struct Metrics<'py> {
    names: Vec<Bound<'py, PyString>>,
    values: Vec<f64>,
}

impl<'py> Metrics<'py> {
    fn with_room_for(count: usize) -> Self {
        Self { names: Vec::with_capacity(count), values: Vec::with_capacity(count) }
    }

    fn take(&mut self, recorder: &Recorder, values: &Bound<'py, PyDict>) {
        for (name, value) in values.iter() {
            match (name.cast_into::<PyString>(), number(&value)) {
                (Ok(name), Ok(number)) => {
                    self.names.push(name);
                    self.values.push(number);
                }
                (Ok(name), Err(_)) => recorder.complain("log", &text(&name), &value),
                (Err(_), _) => recorder.complain("log", "a name that is not a string", &value),
            }
        }
    }

    fn with_pairs<T>(&self, record: impl FnOnce(&[(&str, f64)]) -> T) -> T {
        // What is not Unicode, such as a file name with odd bytes, is shown as well as possible.
        let names: Vec<_> = self.names.iter().map(|name| name.to_string_lossy()).collect();
        let pairs: Vec<_> = names.iter().map(AsRef::as_ref).zip(self.values.iter().copied()).collect();
        record(&pairs)
    }
}

/// Whether a metric is not finite because a gradient is not, or the other way round.
fn shows_gradients(name: &str) -> bool {
    name == "grad_norm" || loss_rank(name) > 0
}

/// The value as a float: numbers as they are, tensors of one element by their `item()`.
fn number(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let plain = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !plain && let Some(item) = value.getattr_opt(intern!(value.py(), "item"))? {
        return item.call0()?.extract();
    }
    value.extract()
}

/// The value as `str()` gives it; empty when even that fails.
fn text(value: &Bound<'_, PyAny>) -> String {
    value.str().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Makes a worker process outlive a SIGTERM that does not come from its parent. Never raises.
#[pyfunction]
pub fn outlive_sigterm_of_others() {
    // Without the handler the worker is as it was: it ends, and the parent reports it.
    let _ = trackway_recorder::outlive_sigterm_of_others();
}
