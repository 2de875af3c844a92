use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use crate::RankGroup;
use crate::bulk::{BackgroundSaver, Dtype, SaveEnd, TensorRef, TensorSlice, TensorSpec, Want};
use crate::ranks::RankedRoot;
use crate::ranks::tests::{each_rank, sound};
use crate::tests::World;
use crate::{CheckpointError, Kind, LoadedCheckpoint};

/// A tensor of 16-bit elements, and how ranks split it.
#[derive(Debug, Clone)]
struct SplitTensor {
    name: String,
    shape: Vec<u64>,
    /// The axis along which it is cut; `None`: every rank has all of it.
    axis: Option<usize>,
}

impl SplitTensor {
    fn element(&self, index: u64) -> [u8; 2] {
        (index as u16 ^ (self.name.len() as u16) << 12).to_le_bytes()
    }

    /// Where a rank's part begins, and its shape.
    fn part(&self, group: RankGroup) -> (Vec<u64>, Vec<u64>) {
        let (mut offset, mut shape) = (vec![0; self.shape.len()], self.shape.clone());
        if let Some(axis) = self.axis {
            // As torch's DTensor cuts an axis: the last ranks may have less, or nothing.
            let size = self.shape[axis];
            let piece = size.div_ceil(u64::from(group.world_size()));
            offset[axis] = size.min(piece * u64::from(group.rank()));
            shape[axis] = piece.min(size - offset[axis]);
        }
        (offset, shape)
    }

    /// The elements of a part, found one by one.
    fn bytes(&self, (offset, shape): &(Vec<u64>, Vec<u64>)) -> Vec<u8> {
        let count: u64 = self.shape.iter().product();
        let inside = |index: &u64| {
            let mut rest = *index;
            (0..self.shape.len()).rev().all(|axis| {
                let position = rest % self.shape[axis];
                rest /= self.shape[axis];
                (offset[axis]..offset[axis] + shape[axis]).contains(&position)
            })
        };
        (0..count).filter(inside).flat_map(|index| self.element(index)).collect()
    }
}

fn shared_tensors() -> impl Strategy<Value = Vec<SplitTensor>> {
    let shape = prop::collection::vec(prop_oneof![1 => Just(0u64), 9 => 1u64..7], 0..4);
    let tensor = (shape, any::<prop::sample::Index>(), any::<bool>());
    prop::collection::vec(tensor, 1..5).prop_map(|tensors| {
        let shared = |(number, (shape, axis, cut)): (usize, (Vec<u64>, prop::sample::Index, bool))| {
            let axis = (cut && !shape.is_empty()).then(|| axis.index(shape.len()));
            SplitTensor { name: "t".repeat(number + 1), shape, axis }
        };
        tensors.into_iter().enumerate().map(shared).collect()
    })
}

fn group(rank: u32, world_size: u32) -> RankGroup {
    RankGroup::new(rank, world_size).unwrap().waiting(60.0)
}

/// Saves this rank's parts, as a draft and in the background, as training does.
fn save_behind(root: RankedRoot, clock: Arc<dyn trackway_core::Clock>, tensors: &[SplitTensor]) {
    let group = root.group();
    let mut root = root;
    let commit = move |save: &crate::bulk::DraftSave| root.save_draft(save, || Ok(()));
    let saver = BackgroundSaver::new(clock, Box::new(commit)).unwrap();
    let mut draft = saver.begin(10).unwrap().unwrap();
    let parts: Vec<_> = tensors.iter().map(|tensor| tensor.part(group)).collect();
    let contents: Vec<_> = tensors.iter().zip(&parts).map(|(tensor, part)| tensor.bytes(part)).collect();
    let spec = |(tensor, (offset, shape)): (&SplitTensor, &(Vec<u64>, Vec<u64>))| {
        let slice = tensor.axis.map(|_| TensorSlice { shape: tensor.shape.clone(), offset: offset.clone() });
        TensorSpec { slice, ..TensorSpec::new(tensor.name.as_str(), Dtype::Bf16, shape.clone()) }
    };
    let specs = tensors.iter().zip(&parts).map(spec);
    let tensors: Vec<_> =
        specs.zip(&contents).map(|(spec, bytes)| TensorRef { spec, bytes: bytes.as_slice() }).collect();
    draft.tensors(&group.file_name("model"), Kind::Weights, &tensors, &BTreeMap::new()).unwrap();
    draft.set_global_cursor(b"sample 10");
    draft.submit(Vec::new());
    let outcomes = saver.close(Duration::from_secs(60));
    assert!(matches!(outcomes[0].end, SaveEnd::Committed(_)), "{outcomes:?}");
}

fn check_parts(loaded: &LoadedCheckpoint, group: RankGroup, tensors: &[SplitTensor]) {
    let parts: Vec<_> = tensors.iter().map(|tensor| tensor.part(group)).collect();
    let want = |(tensor, part): (&SplitTensor, &(Vec<u64>, Vec<u64>))| Want {
        name: tensor.name.clone(),
        part: Some(part.clone()),
    };
    let wants: Vec<_> = tensors.iter().zip(&parts).map(want).collect();
    let found = loaded.tensors("model", &wants).unwrap();
    for ((tensor, part), view) in tensors.iter().zip(&parts).zip(found.iter()) {
        assert_eq!((&view.info.shape, view.bytes), (&part.1, &tensor.bytes(part)[..]), "{tensor:?} {part:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Proves that what any number of ranks saved in the background, any number loads again, through the whole
    /// protocol: tensors of any shape, cut along any axis, also where it does not come out even, where a rank has
    /// nothing and where all have the same; and that each file opens with the safetensors crate.
    #[test]
    fn any_number_of_ranks_loads_what_any_number_saved(
        tensors in shared_tensors(),
        saved_by in 1u32..=5,
        loaded_by in 1u32..=5,
        axis_shift in 0usize..3,
    ) {
        let world = World::new();
        let attempt = world.attempt();
        each_rank(saved_by, |rank| {
            let root = world.rank(sound(), (1, attempt), group(rank, saved_by)).unwrap();
            save_behind(root, world.clock.clone(), &tensors);
        });
        let loading: Vec<_> = tensors
            .iter()
            .map(|tensor| {
                let axis = tensor.axis.map(|axis| (axis + axis_shift) % tensor.shape.len());
                SplitTensor { axis, ..tensor.clone() }
            })
            .collect();
        let attempt = world.attempt();
        let loaded = each_rank(loaded_by, |rank| {
            let group = group(rank, loaded_by);
            let mut root = world.rank(sound(), (2, attempt), group).unwrap();
            let loaded = root.resume_target().unwrap().unwrap();
            check_parts(&loaded, group, &loading);
            loaded
        });
        for file in loaded[0].files() {
            let bytes = loaded[0].read(&file.name).unwrap();
            let opened = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            assert_eq!(opened.names().len(), tensors.len());
        }
    }
}

/// Proves that a damaged shard is reported while tensors are assembled, and that files of another stem do not belong to
/// them.
#[test]
fn damage_is_found_while_shards_are_put_together() {
    let world = World::new();
    let tensors = [SplitTensor { name: "w".into(), shape: vec![5, 3], axis: Some(0) }];
    let attempt = world.attempt();
    each_rank(3, |rank| {
        let root = world.rank(sound(), (1, attempt), group(rank, 3)).unwrap();
        save_behind(root, world.clock.clone(), &tensors);
    });
    let loaded = world.view().resume_target().unwrap().unwrap();
    check_parts(&loaded, group(0, 1), &tensors);
    let whole = [Want { name: "w".into(), part: None }];
    for stem in ["mode", "odel", "model-", "rank-0000-model"] {
        let error = loaded.tensors(stem, &whole).unwrap_err();
        assert_eq!(error.to_string(), "no file has the tensor `w`", "{stem}");
    }
    let path = loaded.folder.join("rank-0001-model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = loaded.tensors("model", &whole).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged { step: 10, .. }), "{error}");
    assert!(error.to_string().contains("rank-0001-model.safetensors"), "{error}");
}
