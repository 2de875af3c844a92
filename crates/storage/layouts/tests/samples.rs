//! The library against what real frameworks wrote (`samples/make.py`). Skipped unless `TRACKWAY_LAYOUT_SAMPLES` names their folder.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

use std::path::{Path, PathBuf};

use trackway_layouts::{
    By, Entry, Folder, FoundCheckpoints, Layout, Listing, Recognised, Source, Wholeness, file_wholeness,
    find, list, wholeness,
};

fn samples() -> Option<PathBuf> {
    let folder = std::env::var_os("TRACKWAY_LAYOUT_SAMPLES").map(PathBuf::from);
    if folder.is_none() {
        trackway_skip::skip!("TRACKWAY_LAYOUT_SAMPLES does not name a folder of samples/make.py");
    }
    folder
}

/// The samples that are there: their names, what was found in each, and how whole it is.
fn each(samples: &Path, mut look: impl FnMut(&str, &Path, &Listing, &FoundCheckpoints)) {
    let mut names: Vec<_> =
        std::fs::read_dir(samples).unwrap().map(|item| item.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        let folder = samples.join(&name);
        let listing = list(&folder).unwrap();
        let found = find(&listing, &Folder::new(&folder));
        look(&name.to_string_lossy(), &folder, &listing, &found);
    }
}

/// Layout, step, epoch, ranks, number of components, and whether it is whole by a marker, by its structure, or not known.
type ExpectedLayout = (&'static str, Layout, Option<u64>, Option<u64>, Option<u32>, usize, &'static str);

const EXPECTED: &[(&str, &[ExpectedLayout])] = &[
    (
        "accelerate",
        &[
            ("checkpoints/checkpoint_0", Layout::Accelerate, None, None, Some(1), 4, "structure"),
            ("checkpoints/checkpoint_1", Layout::Accelerate, None, None, Some(1), 4, "structure"),
        ],
    ),
    (
        "catboost",
        &[
            ("catboost_info/experiment.cbsnapshot", Layout::Catboost, Some(10), None, None, 2, "structure"),
            ("model.cbm", Layout::Catboost, None, None, None, 1, "structure"),
            ("model.json", Layout::Catboost, Some(10), None, None, 1, "structure"),
        ],
    ),
    (
        "deepspeed",
        &[
            ("global_step10", Layout::Deepspeed, Some(10), None, Some(2), 3, "structure"),
            ("global_step20", Layout::Deepspeed, Some(20), None, Some(2), 3, "marker"),
        ],
    ),
    (
        "flax_msgpack",
        &[
            ("checkpoint_7", Layout::FlaxMsgpack, Some(7), None, None, 3, "structure"),
            ("params.msgpack", Layout::FlaxMsgpack, Some(7), None, None, 3, "structure"),
        ],
    ),
    (
        "joblib",
        &[
            ("model-protocol2.pkl", Layout::Joblib, None, None, None, 1, "structure"),
            ("model.joblib", Layout::Joblib, None, None, None, 1, "cannot tell"),
            ("model.joblib.bz2", Layout::Joblib, None, None, None, 0, "cannot tell"),
            ("model.joblib.gz", Layout::Joblib, None, None, None, 0, "cannot tell"),
            ("model.joblib.lzma", Layout::Joblib, None, None, None, 0, "cannot tell"),
            ("model.joblib.xz", Layout::Joblib, None, None, None, 0, "structure"),
            ("model.joblib.z", Layout::Joblib, None, None, None, 0, "cannot tell"),
            ("model.pkl", Layout::Joblib, None, None, None, 1, "structure"),
        ],
    ),
    (
        "keras",
        &[
            ("backup", Layout::Keras, None, Some(2), None, 2, "marker"),
            ("epoch-01.keras", Layout::Keras, None, Some(1), None, 1, "structure"),
            ("epoch-02.keras", Layout::Keras, None, Some(2), None, 1, "structure"),
            ("final.weights.h5", Layout::Keras, None, None, None, 1, "structure"),
        ],
    ),
    ("lightgbm", &[("model.txt", Layout::Lightgbm, Some(5), None, None, 1, "structure")]),
    (
        "lightning",
        &[
            ("out/epoch=0-step=2.ckpt", Layout::Lightning, Some(2), Some(0), None, 4, "structure"),
            ("out/epoch=0-step=4.ckpt", Layout::Lightning, Some(4), Some(0), None, 4, "structure"),
            ("out/epoch=1-step=6.ckpt", Layout::Lightning, Some(6), Some(1), None, 4, "structure"),
            ("out/epoch=1-step=8.ckpt", Layout::Lightning, Some(8), Some(1), None, 4, "structure"),
            ("out/last.ckpt", Layout::Lightning, Some(8), Some(1), None, 4, "structure"),
        ],
    ),
    (
        "megatron",
        &[
            ("iter_0000100", Layout::Megatron, Some(100), None, Some(1), 3, "structure"),
            ("iter_0000200", Layout::Megatron, Some(200), None, Some(1), 3, "marker"),
        ],
    ),
    (
        "numpy_files",
        &[
            ("checkpoint_step_10.npz", Layout::Numpy, Some(10), None, None, 0, "structure"),
            ("checkpoint_step_9.npz", Layout::Numpy, Some(9), None, None, 0, "structure"),
        ],
    ),
    (
        "orbax",
        &[
            ("manager/10", Layout::Orbax, Some(10), None, Some(1), 1, "marker"),
            ("manager/5", Layout::Orbax, Some(5), None, Some(1), 1, "marker"),
            ("single", Layout::Orbax, None, None, Some(1), 1, "marker"),
        ],
    ),
    ("other_files", &[]),
    ("safetensors", &[("model.safetensors", Layout::Safetensors, Some(60), None, None, 1, "structure")]),
    ("torch_dcp", &[("step-30", Layout::TorchDcp, Some(30), None, Some(1), 1, "marker")]),
    ("torch_dcp_ranks", &[("step-50", Layout::TorchDcp, Some(50), None, Some(2), 1, "marker")]),
    (
        "torch_file",
        &[
            ("ckpt.pt", Layout::TorchFile, Some(20), None, None, 3, "structure"),
            ("legacy.pt", Layout::TorchFile, Some(20), None, None, 3, "cannot tell"),
            ("model_step_40.pth", Layout::TorchFile, Some(40), None, None, 1, "structure"),
        ],
    ),
    (
        "transformers_ranks",
        &[("out/checkpoint-2", Layout::TransformersTrainer, Some(2), Some(1), Some(2), 5, "structure")],
    ),
    (
        "transformers_trainer",
        &[
            ("out/checkpoint-2", Layout::TransformersTrainer, Some(2), Some(0), Some(1), 5, "marker"),
            ("out/checkpoint-4", Layout::TransformersTrainer, Some(4), Some(1), Some(1), 5, "marker"),
        ],
    ),
    (
        "xgboost",
        &[
            ("final.json", Layout::Xgboost, Some(6), None, None, 1, "structure"),
            ("final.ubj", Layout::Xgboost, Some(6), None, None, 1, "structure"),
            ("model_2.ubj", Layout::Xgboost, Some(3), None, None, 1, "structure"),
            ("model_4.ubj", Layout::Xgboost, Some(5), None, None, 1, "structure"),
        ],
    ),
];

fn proof(wholeness: &Wholeness) -> &'static str {
    match wholeness {
        Wholeness::Whole { by: By::Marker(_) } => "marker",
        Wholeness::Whole { by: By::Structure } => "structure",
        Wholeness::CannotTell { .. } => "cannot tell",
        Wholeness::Unfinished { .. } => "unfinished",
        Wholeness::Torn { .. } => "torn",
    }
}

/// Proves that what each framework wrote is recognised with its step, epoch, processes and components, and that it is whole.
#[test]
fn what_frameworks_wrote_is_recognised_and_whole() {
    let Some(samples) = samples() else { return };
    each(&samples, |name, folder, listing, found| {
        let source = Folder::new(folder);
        let seen: Vec<_> = found
            .checkpoints
            .iter()
            .map(|checkpoint| {
                let whole = wholeness(listing, &source, checkpoint);
                println!("{name}/{}: {checkpoint:?} {whole:?}", checkpoint.path);
                summary(checkpoint, proof(&whole))
            })
            .collect();
        let Some((_, expected)) = EXPECTED.iter().find(|(expected, _)| *expected == name) else {
            panic!("{name} is not expected: {seen:?}");
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, layout, step, epoch, ranks, components, proof)| {
                format!(
                    "{path} {} step {step:?} epoch {epoch:?} ranks {ranks:?} components {components} {proof}",
                    layout.as_str()
                )
            })
            .collect();
        assert_eq!(seen, expected, "{name}");
    });
}

fn summary(checkpoint: &Recognised, proof: &str) -> String {
    format!(
        "{} {} step {:?} epoch {:?} ranks {:?} components {} {proof}",
        checkpoint.path,
        checkpoint.layout.as_str(),
        checkpoint.step,
        checkpoint.data_epoch,
        checkpoint.ranks,
        checkpoint.components.len(),
    )
}

/// The first bytes of the only file that is read.
struct Beginning<'b>(&'b [u8]);

impl Source for Beginning<'_> {
    fn read_at(&self, _path: &str, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
        let bytes = self.0.iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        Ok(bytes.take(length).copied().collect())
    }
}

/// Proves that no beginning of a file that a framework wrote is whole: of every length up to 1 kB, then of 200 lengths.
/// A text without its last line end is whole.
#[test]
fn no_beginning_of_a_real_file_is_whole() {
    let Some(samples) = samples() else { return };
    let mut tried = 0;
    each(&samples, |name, folder, listing, _| {
        for file in listing.files() {
            let bytes = std::fs::read(folder.join(&file.path)).unwrap();
            let step = (bytes.len() / 200).max(1);
            for length in (0..bytes.len().min(1024)).chain((1024..bytes.len()).step_by(step)) {
                if bytes[length..].iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let entry = Entry { size: length as u64, ..file.clone() };
                let found = file_wholeness(&Beginning(&bytes[..length]), &entry);
                assert!(
                    !matches!(found, Wholeness::Whole { .. }),
                    "{name}/{} of {length} bytes: {found:?}",
                    file.path
                );
                tried += 1;
            }
        }
    });
    println!("{tried} beginnings of files");
}
