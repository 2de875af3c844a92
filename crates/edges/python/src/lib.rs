//! The bridge between Python and recorder and checkpoint. It converts, releases the GIL, and decides nothing: what a
//! state consists of and how a loop continues is written in Python, in `python/trackway/`.

mod data_rung;
mod draft;
mod error;
mod loaded;
mod memory;
mod recorder;
mod root;
mod target;
mod wait;

/// The compiled half of the package `trackway`. Not for direct use; see `trackway`.
#[pyo3::pymodule]
mod _trackway {
    #[pymodule_export]
    use crate::data_rung::{in_rung, rung, rung_mask, take_rung_keys};
    #[pymodule_export]
    use crate::draft::Draft;
    #[pymodule_export]
    use crate::loaded::{Copied, Loaded};
    #[pymodule_export]
    use crate::memory::Region;
    #[pymodule_export]
    use crate::recorder::{Recorder, outlive_sigterm_of_others};
    #[pymodule_export]
    use crate::root::{
        Root, list_checkpoints, load_checkpoint, load_copy, path_text, stored_names, verify_checkpoint,
    };
}
