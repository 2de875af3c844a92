use std::collections::BTreeMap;
use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use proptest::prelude::*;
use trackway_core::{ManualClock, Rng as _, SplitMix64};
use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};
use trackway_store::testing::{Fault, FaultDisk};
use trackway_store::{Disk, RealDisk};

use super::chunks::CHUNK_BYTES;
use super::mapping::Buffer;
use super::plan::plan_files;
use super::*;
use crate::error::{CheckpointError, Defect};

const WAIT: Duration = Duration::from_secs(60);

fn random_bytes(size_bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = SplitMix64::new(seed);
    (0..size_bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(size_bytes).collect()
}

/// Files in memory that can be written directly.
struct Memory(Vec<(String, Kind, usize, Buffer)>);

impl Memory {
    fn new(files: &[(&str, usize, u64)]) -> Self {
        let file = |(name, size_bytes, seed): &(&str, usize, u64)| {
            let mut buffer = Buffer::new(*size_bytes).unwrap();
            buffer.bytes_mut()[..*size_bytes].copy_from_slice(&random_bytes(*size_bytes, *seed));
            ((*name).to_owned(), Kind::Weights, *size_bytes, buffer)
        };
        Self(files.iter().map(file).collect())
    }

    fn drafts(&self) -> Vec<DraftFile<'_>> {
        self.0
            .iter()
            .map(|(name, kind, size, buffer)| DraftFile::in_blocks(name, *kind, *size, buffer.bytes()))
            .collect()
    }
}

fn writer(disk: impl Disk + 'static) -> FileWriter {
    FileWriter::new(Arc::new(disk), Arc::new(ManualClock::default()))
}

fn manifest_files(written: &WriteReport) -> Vec<ManifestFile> {
    written.files.iter().map(|file| file.file.clone()).collect()
}

const MIXED: [(&str, usize, u64); 5] = [
    ("a.bin", 0, 1),
    ("b.bin", 4_095, 2),
    ("c.bin", 3 << 20, 3),
    ("d.bin", (9 << 20) + 17, 4),
    ("e.bin", 12_288, 5),
];

/// Proves that files of every kind of size, written and read past the page cache, are what they were, down to the
/// last byte, and that the hash is that of the file.
#[test]
fn what_is_written_is_read_back() {
    check_round_trip(&tempfile::tempdir().unwrap());
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => check_round_trip(&folder),
        Err(error) => trackway_skip::skip!("on tmpfs: {error}"),
    }
}

fn check_round_trip(folder: &tempfile::TempDir) {
    let memory = Memory::new(&MIXED);
    let written = writer(RealDisk).write(folder.path(), &memory.drafts(), None).unwrap();
    let files = manifest_files(&written);
    for (draft, file) in memory.drafts().iter().zip(&files) {
        let bytes = std::fs::read(folder.path().join(&file.name)).unwrap();
        assert!(bytes == draft.bytes(), "{}", file.name);
        assert_eq!(file.blake3, blake3::hash(&bytes).to_hex().to_string());
    }
    let loaded = read_files(&RealDisk, folder.path(), &files).unwrap();
    assert!(loaded.iter().zip(memory.drafts()).all(|(loaded, draft)| loaded.bytes() == draft.bytes()));
    verify_files(&RealDisk, folder.path(), &files).unwrap();
    assert_eq!(written.figures.bytes_written, MIXED.iter().map(|(_, size, _)| *size as u64).sum::<u64>());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), files.len());
}

/// Proves that large files make the writer measure, and that nothing of that is left.
#[test]
fn the_way_to_write_is_measured_once() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(&[("large.bin", 40 << 20, 1)]);
    let disk = FaultDisk::sound();
    let writer = writer(disk.clone());
    let mut operations = Vec::new();
    for name in ["first", "second"] {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let before = disk.operations();
        writer.write(&folder, &memory.drafts(), None).unwrap();
        operations.push(disk.operations() - before);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
    assert!(operations[0] > operations[1], "{operations:?}");
}

/// Proves that a flipped bit in any file, at its begin, its end or between, a missing byte, one too many and a missing
/// file are all found, by reading and by verifying, and that the chunk hashes locate it.
#[test]
fn all_damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(&MIXED);
    let written = writer(RealDisk).write(folder.path(), &memory.drafts(), None).unwrap();
    let files = manifest_files(&written);
    let check = |expect: &dyn Fn(&Defect) -> bool| {
        let read = read_files(&RealDisk, folder.path(), &files).unwrap_err();
        let verified = verify_files(&RealDisk, folder.path(), &files).unwrap_err();
        assert!(expect(&read) && expect(&verified), "{read} {verified}");
    };
    for WrittenFile { file, .. } in &written.files {
        let path = folder.path().join(&file.name);
        let sound = std::fs::read(&path).unwrap();
        for position in [0, sound.len() / 2, sound.len().saturating_sub(1)] {
            let mut bytes = sound.clone();
            let Some(byte) = bytes.get_mut(position) else { continue };
            *byte ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            check(&|defect| matches!(defect, Defect::Hash { name, .. } if *name == file.name));
        }
        std::fs::write(&path, [&sound[..], b"x"].concat()).unwrap();
        check(&|defect| matches!(defect, Defect::Size { name, .. } if *name == file.name));
        if let Some((_, torn)) = sound.split_last() {
            std::fs::write(&path, torn).unwrap();
            check(&|defect| matches!(defect, Defect::Size { name, .. } if *name == file.name));
        }
        std::fs::remove_file(&path).unwrap();
        check(&|defect| matches!(defect, Defect::Missing { name } if *name == file.name));
        std::fs::write(&path, &sound).unwrap();
    }
    verify_files(&RealDisk, folder.path(), &files).unwrap();
}

/// Proves that ranges of files, across chunk boundaries, are copied to their places, that damage is reported
/// nevertheless, and that a range past the end is refused.
#[test]
fn memory_that_exists_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(&[("large.bin", 2 * CHUNK_BYTES + 100, 1), ("small.bin", 10, 2)]);
    let files = manifest_files(&writer(RealDisk).write(folder.path(), &memory.drafts(), None).unwrap());
    let [large, small] = [0, 1].map(|index| memory.drafts()[index].bytes());
    let (mut front, mut across, mut end, mut few) = ([0; 3], vec![0; CHUNK_BYTES + 50], [0; 70], [0; 2]);
    let mut fill = |offset: u64| {
        let first = vec![
            (CHUNK_BYTES as u64 - 20, &mut across[..]),
            (2, &mut front),
            (2 * CHUNK_BYTES as u64 + offset, &mut end),
        ];
        let fills = vec![
            Fill { file: files[0].clone(), targets: first },
            Fill { file: files[1].clone(), targets: vec![(8, &mut few)] },
        ];
        read_into(&RealDisk, folder.path(), fills)
    };
    assert!(matches!(fill(31), Err(LoadError::Tensors(_))));
    fill(30).unwrap();
    assert!(front == large[2..5] && across == large[CHUNK_BYTES - 20..][..CHUNK_BYTES + 50]);
    assert!(end == large[2 * CHUNK_BYTES + 30..] && few == small[8..]);

    let path = folder.path().join("small.bin");
    std::fs::write(&path, b"0123456789").unwrap();
    let fills = files.iter().map(|file| Fill { file: file.clone(), targets: Vec::new() }).collect();
    assert!(matches!(
        read_into(&RealDisk, folder.path(), fills),
        Err(LoadError::Defect(Defect::Hash { .. }))
    ));
    assert!(matches!(
        read_header(&RealDisk, folder.path(), &files[1]),
        Err(LoadError::Defect(Defect::Hash { .. }))
    ));
    assert!(matches!(read_header(&RealDisk, folder.path(), &files[0]), Err(LoadError::Tensors(_))));
}

/// Proves that a large file that did not change becomes a link, that it names the checkpoint that first wrote it, and
/// that one that is small, changed, or has another size in the parent's folder is written.
#[test]
fn unchanged_files_are_shared() {
    let root = tempfile::tempdir().unwrap();
    let folders: Vec<_> =
        ["first", "second", "third", "fourth", "fifth"].map(|name| root.path().join(name)).into();
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let writer = writer(RealDisk);
    let first = Memory::new(&[("frozen.bin", 2 << 20, 1), ("head.bin", 2 << 20, 2), ("small.bin", 10, 3)]);
    let second = Memory::new(&[("frozen.bin", 2 << 20, 1), ("head.bin", 2 << 20, 4), ("small.bin", 10, 3)]);
    let shared = |written: &WriteReport| written.files.iter().map(|file| file.shared).collect::<Vec<_>>();

    let one = manifest_files(&writer.write(&folders[0], &first.drafts(), None).unwrap());
    let parent = Parent { folder: &folders[0], object_prefix: "PREFIX-1", files: &one };
    let written = writer.write(&folders[1], &second.drafts(), Some(parent)).unwrap();
    assert_eq!(shared(&written), [true, false, false]);
    assert_eq!((written.figures.bytes_shared, written.figures.bytes_written), (2 << 20, (2 << 20) + 10));
    let two = manifest_files(&written);
    assert_eq!(two[0].stored_in.as_deref(), Some("PREFIX-1"));
    assert_eq!([&two[1].stored_in, &two[2].stored_in], [&None, &None]);
    verify_files(&RealDisk, &folders[1], &two).unwrap();

    // What changed last time is not waited for; once it stays the same it is shared again, one save later.
    let parent = Parent { folder: &folders[1], object_prefix: "PREFIX-2", files: &two };
    let written = writer.write(&folders[2], &second.drafts(), Some(parent)).unwrap();
    assert_eq!(shared(&written), [true, false, false]);
    let three = manifest_files(&written);
    assert_eq!(three[0].stored_in.as_deref(), Some("PREFIX-1"));
    let parent = Parent { folder: &folders[2], object_prefix: "PREFIX-3", files: &three };
    let written = writer.write(&folders[3], &second.drafts(), Some(parent)).unwrap();
    assert_eq!(shared(&written), [true, true, false]);

    // A file that was truncated meanwhile cannot be shared.
    std::fs::write(folders[3].join("head.bin"), b"cut").unwrap();
    let four = manifest_files(&written);
    let parent = Parent { folder: &folders[3], object_prefix: "PREFIX-4", files: &four };
    let written = writer.write(&folders[4], &second.drafts(), Some(parent)).unwrap();
    assert_eq!(shared(&written), [true, false, false]);

    // The links hold the bytes when the older checkpoints are deleted.
    folders[..4].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
    verify_files(&RealDisk, &folders[4], &manifest_files(&written)).unwrap();
}

/// Proves that names that lead elsewhere, or twice to the same place, are refused before anything is written.
#[test]
fn names_are_checked_before_writing() {
    let folder = tempfile::tempdir().unwrap();
    for names in [["../x", "y"], ["same", "same"], ["manifest.json", "y"]] {
        let files = names.map(|name| DraftFile::new(name, Kind::Other, b"x"));
        let error = writer(RealDisk).write(folder.path(), &files, None).unwrap_err();
        assert!(matches!(error, CheckpointError::Manifest(_)), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What is left of a save into `new`, with a parent beside it, when the disk has a fault.
fn save_with_fault(first: &Memory, second: &Memory, fault: Fault, fail_at: usize) -> bool {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("old"), root.path().join("new"));
    [&old, &new].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let parent_files = manifest_files(&writer(RealDisk).write(&old, &first.drafts(), None).unwrap());
    let parent = Parent { folder: &old, object_prefix: "PREFIX", files: &parent_files };

    let disk = FaultDisk::new(fault, fail_at);
    let written = writer(disk.clone()).write(&new, &second.drafts(), Some(parent));
    let synced = written.is_ok() && disk.sync_folder(&new).is_ok();
    if !Fault::RETURNED.contains(&fault) {
        disk.after_crash();
    }
    verify_files(&RealDisk, &old, &parent_files)
        .unwrap_or_else(|defect| panic!("{fault:?} at {fail_at}: parent: {defect}"));
    match written {
        Ok(written) if synced => verify_files(&RealDisk, &new, &manifest_files(&written))
            .unwrap_or_else(|defect| panic!("{fault:?} at {fail_at}: {defect}")),
        Ok(_) => {}
        Err(CheckpointError::Storage { source, .. }) => {
            let reported =
                if fault == Fault::InputOutput { source.raw_os_error() == Some(libc::EIO) } else { true };
            let full = matches!(fault, Fault::Full | Fault::StaysFull | Fault::ShortWrite);
            assert!(
                reported && (!full || source.kind() == Io::StorageFull),
                "{fault:?} at {fail_at}: {source}"
            );
        }
        Err(error) => panic!("{fault:?} at {fail_at}: {error}"),
    }
    disk.struck()
}

/// Proves that a disk that is full, fails, or dies with the machine at any step of writing, sharing and syncing either
/// makes the save an error or leaves it whole, and never touches the parent.
#[test]
fn no_fault_goes_unnoticed() {
    let mut count = 0;
    let first = Memory::new(&[
        ("frozen.bin", (1 << 20) + 5, 1),
        ("head.bin", (1 << 20) + 7, 2),
        ("small.bin", 10, 3),
    ]);
    let second = Memory::new(&[
        ("frozen.bin", (1 << 20) + 5, 1),
        ("head.bin", (1 << 20) + 7, 4),
        ("small.bin", 10, 5),
    ]);
    for fault in Fault::RETURNED.into_iter().chain(Fault::DEADLY) {
        let struck = (0..100).take_while(|fail_at| save_with_fault(&first, &second, fault, *fail_at)).count();
        assert!((3..100).contains(&struck), "{fault:?} struck {struck} times");
        count += struck;
    }
    println!("{count} faults");
}

/// Proves that a disk that fails at any step of reading makes reading an error that names the file.
#[test]
fn no_fault_of_reading_goes_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(&MIXED);
    let files = manifest_files(&writer(RealDisk).write(folder.path(), &memory.drafts(), None).unwrap());
    let mut steps = 0;
    loop {
        let disk = FaultDisk::new(Fault::InputOutput, steps);
        let read = read_files(&disk, folder.path(), &files);
        if !disk.struck() {
            break;
        }
        let defect = read.unwrap_err();
        assert!(!defect.is_damage() && defect.to_string().contains(".bin"), "{defect}");
        let disk = FaultDisk::new(Fault::InputOutput, steps);
        assert!(!verify_files(&disk, folder.path(), &files).unwrap_err().is_damage());
        steps += 1;
    }
    assert!(steps > 3 * files.len(), "{steps}");
}

fn dtypes() -> impl Strategy<Value = Dtype> {
    use Dtype::*;
    let all = [
        Bool, F4, F6E2M3, F6E3M2, U8, I8, F8E5M2, F8E4M3, F8E8M0, F8E4M3Fnuz, F8E5M2Fnuz, I16, U16, F16,
        Bf16, I32, U32, F32, C64, F64, I64, U64,
    ];
    prop::sample::select(all.to_vec())
}

fn specs() -> impl Strategy<Value = Vec<TensorSpec>> {
    let shape = prop::collection::vec(0u64..6, 0..4);
    let spec = (dtypes(), shape, 0u32..3).prop_map(|(dtype, mut shape, group)| {
        if dtype.size_bytes(&shape).is_none() {
            shape = vec![8];
        }
        TensorSpec { group, ..TensorSpec::new("", dtype, shape) }
    });
    prop::collection::vec(spec, 0..30).prop_map(|mut specs| {
        specs.iter_mut().enumerate().for_each(|(index, spec)| spec.name = format!("layer.{index}\"\\é"));
        specs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Proves that any tensors are laid out so that the safetensors crate and our own reader find every one of them,
    /// with data on a block, every tensor aligned, files no larger than requested, groups apart, and the same plan
    /// twice.
    #[test]
    fn any_tensors_can_be_laid_out(specs in specs(), max_file_bytes in 1u64..600) {
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        let plans = plan_files("model", &specs, &metadata, max_file_bytes).unwrap();
        prop_assert_eq!(&plans, &plan_files("model", &specs, &metadata, max_file_bytes).unwrap());
        let mut seen = vec![0; specs.len()];
        for plan in &plans {
            let data_bytes: usize = plan.tensors.iter().map(|(_, size)| size).sum();
            prop_assert!(data_bytes as u64 <= max_file_bytes || plan.tensors.len() == 1);
            prop_assert!(plan.header.len() % 4096 == 0 && plan.size_bytes == plan.header.len() + data_bytes);
            let mut file = plan.header.clone();
            file.extend(random_bytes(data_bytes, 7));
            let theirs = ::safetensors::SafeTensors::deserialize(&file).unwrap();
            let ours = Header::from_bytes(&file, file.len() as u64).unwrap();
            prop_assert_eq!(&ours.metadata, &metadata);
            prop_assert_eq!(theirs.len(), plan.tensors.len());
            let group = specs[plan.tensors[0].0].group;
            for (info, (index, size_bytes)) in ours.tensors.iter().zip(&plan.tensors) {
                seen[*index] += 1;
                let spec = &specs[*index];
                let view = theirs.tensor(&spec.name).unwrap();
                let shape: Vec<u64> = view.shape().iter().map(|axis| *axis as u64).collect();
                prop_assert_eq!((&info.name, info.dtype, &info.shape), (&spec.name, spec.dtype, &spec.shape));
                prop_assert_eq!((view.dtype().to_string(), &shape), (format!("{}", spec.dtype), &spec.shape));
                let begin = info.offset_bytes as usize;
                prop_assert_eq!(view.data(), &file[begin..begin + size_bytes]);
                prop_assert!(begin.is_multiple_of(spec.dtype.bits().div_ceil(8).next_power_of_two() as usize));
                prop_assert_eq!(spec.group, group);
            }
        }
        prop_assert!(seen.iter().all(|count| *count == 1));
    }

    /// Proves that no bytes, near a header or far from one, make the reader panic, and that what it accepts, the
    /// safetensors crate accepts too.
    #[test]
    fn no_header_panics(
        specs in specs(),
        changes in prop::collection::vec((0usize..400, any::<u8>()), 0..4),
        cut in 0usize..6_000,
    ) {
        let plans = plan_files("model", &specs, &BTreeMap::new(), u64::MAX).unwrap();
        let mut file = plans.first().map_or(vec![1, 2, 3], |plan| {
            let mut file = plan.header.clone();
            file.resize(plan.size_bytes, 0);
            file
        });
        for (position, byte) in changes {
            let length = file.len();
            file[position % length] = byte;
        }
        file.truncate(cut.max(1));
        if Header::from_bytes(&file, file.len() as u64).is_ok() {
            prop_assert!(::safetensors::SafeTensors::deserialize(&file).is_ok());
        }
    }
}

/// Proves that each rule of the format is checked, that the message says which was broken, and that false lengths
/// allocate nothing.
#[test]
fn broken_headers_are_refused() {
    let file = |json: &str, data_bytes: usize| {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend(json.as_bytes());
        file.resize(file.len() + data_bytes, 0);
        file
    };
    let tensor = |shape: &str, from: u64, to: u64| {
        format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}"#)
    };
    let sound = tensor("[2]", 0, 8);
    let many_axes = format!("[{}1]", "1,".repeat(64));
    let cases = [
        (b"short".to_vec(), "at least eight bytes"),
        ([&u64::MAX.to_le_bytes()[..], b"{}"].concat(), "too large"),
        ([&99_000_000u64.to_le_bytes()[..], b"{}"].concat(), "in a file of 10"),
        (file(r#" {"a":1}"#, 0), "begins with `{`"),
        (file("{\"a\":", 0), "EOF"),
        (file(&format!(r#"{{"a":{sound},"a":{sound}}}"#), 8), "listed twice"),
        (file(&format!(r#"{{"a":{},"a":{}}}"#, tensor("[0]", 0, 0), tensor("[0]", 0, 0)), 0), "listed twice"),
        (file(&format!(r#"{{"a":{sound}}}"#), 9), "do not fill"),
        (file(&format!(r#"{{"a":{}}}"#, tensor("[2]", 4, 12)), 12), "contradict"),
        (file(&format!(r#"{{"a":{}}}"#, tensor("[3]", 0, 8)), 8), "contradict"),
        (
            file(&format!(r#"{{"a":{}}}"#, tensor("[4294967296,4294967296,4294967296]", 0, 0)), 0),
            "contradict",
        ),
        (file(&format!(r#"{{"a":{}}}"#, tensor(&many_axes, 0, 4)), 4), "at most 64 numbers"),
        (file(r#"{"a":{"dtype":"F33","shape":[],"data_offsets":[0,4]}}"#, 4), "unknown variant"),
        (file(r#"{"__metadata__":{},"__metadata__":{}}"#, 0), "twice"),
        (
            file(
                &format!(
                    r#"{{"__metadata__":{{"trackway.slices":"{{\"a\":{{\"shape\":[3],\"offset\":[2]}}}}"}},"a":{sound}}}"#
                ),
                8,
            ),
            "does not fit into",
        ),
    ];
    for (bytes, expected) in cases {
        let error = Header::from_bytes(&bytes, bytes.len() as u64).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` does not say `{expected}`");
    }
    let specs = [TensorSpec::new("__metadata__", Dtype::F32, [1])];
    let refused = plan_files("x", &specs, &BTreeMap::new(), 1).map(drop).unwrap_err().to_string();
    assert!(refused.contains("no tensor can be called `__metadata__`"), "{refused}");
    let specs = [TensorSpec::new("half", Dtype::F4, [3])];
    assert!(
        plan_files("x", &specs, &BTreeMap::new(), 1)
            .unwrap_err()
            .to_string()
            .contains("not a valid number of bytes")
    );
}

/// The stretch of rank `rank` of `count` on an axis of `size`.
fn share(size: u64, rank: u64, count: u64) -> (u64, u64) {
    let (begin, end) = (size * rank / count, size * (rank + 1) / count);
    (begin, end - begin)
}

/// The part of a tensor of 7 × 6 × 5 that a rank has when axis `axis` is cut: where it begins, its shape, its bytes.
fn part(whole: &[u8], axis: usize, rank: u64, count: u64) -> (Vec<u64>, Vec<u64>, Vec<u8>) {
    let (mut offset, mut shape) = (vec![0; 3], vec![7, 6, 5]);
    (offset[axis], shape[axis]) = share(shape[axis], rank, count);
    let inside = |index: &usize| {
        let position = [(index / 30) as u64, (index / 5 % 6) as u64, (index % 5) as u64];
        (0..3).all(|axis| (offset[axis]..offset[axis] + shape[axis]).contains(&position[axis]))
    };
    let bytes = (0..210).filter(inside).flat_map(|index| whole[2 * index..2 * index + 2].to_vec()).collect();
    (offset, shape, bytes)
}

/// Writes what each of `count` ranks has: a tensor cut on `axis`, and one that all have.
fn write_ranks(folder: &Path, whole: &[u8], axis: usize, count: u64) -> Vec<ManifestFile> {
    let mut files = Vec::new();
    for rank in 0..count {
        let (offset, shape, bytes) = part(whole, axis, rank, count);
        let slice = Some(TensorSlice { shape: vec![7, 6, 5], offset });
        let specs = [
            TensorSpec { slice, ..TensorSpec::new("cut", Dtype::Bf16, shape) },
            TensorSpec::new("same", Dtype::U8, [3]),
        ];
        let plan = plan_files(&format!("model.rank-{rank:04}"), &specs, &BTreeMap::new(), u64::MAX)
            .unwrap()
            .remove(0);
        let content = [&plan.header[..], &bytes, &[1, 2, 3]].concat();
        assert_eq!(content.len(), plan.size_bytes);
        std::fs::write(folder.join(&plan.name), &content).unwrap();
        files.push(ManifestFile::new(
            &plan.name,
            Kind::Weights,
            content.len() as u64,
            &blake3::hash(&content),
        ));
    }
    files
}

/// Proves that what n ranks wrote, cut on any axis, m ranks read, cut on any axis, and that the parts are right; also
/// where a rank has nothing, and where all have the same.
#[test]
fn any_number_of_ranks_reads_what_any_number_wrote() {
    let whole = random_bytes(420, 3);
    for (written_axis, written_count) in [(0, 1), (0, 2), (1, 4), (2, 3), (0, 9), (1, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let files = write_ranks(folder.path(), &whole, written_axis, written_count);
        for (axis, count) in [(0, 1), (0, 3), (1, 2), (2, 5), (1, 8)] {
            for rank in 0..count {
                let (offset, shape, bytes) = part(&whole, axis, rank, count);
                let wants = [
                    Want { name: "same".into(), part: None },
                    Want { name: "cut".into(), part: Some((offset.clone(), shape.clone())) },
                ];
                let tensors = read_tensors(&RealDisk, folder.path(), &files, &wants).unwrap();
                let views: Vec<_> = tensors.iter().collect();
                assert_eq!((views[0].bytes, views[1].bytes), (&[1, 2, 3][..], &bytes[..]));
                assert_eq!((&views[1].info.shape, views[1].info.offset()), (&shape, offset));
            }
        }
    }
}

/// Proves that parts that are missing, overlap or disagree, and files that are damaged, are reported and never hidden.
#[test]
fn incomplete_parts_are_refused() {
    let whole = random_bytes(420, 3);
    let folder = tempfile::tempdir().unwrap();
    let files = write_ranks(folder.path(), &whole, 0, 3);
    let read = |files: &[ManifestFile], name: &str, part| {
        let wants = [Want { name: name.into(), part }];
        read_tensors(&RealDisk, folder.path(), files, &wants).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(read(&files, "cut", None), Ok(()));
    assert!(read(&files[1..], "cut", None).unwrap_err().contains("hold 150 of the 210 requested elements"));
    assert_eq!(read(&files[1..], "cut", Some((vec![5, 0, 0], vec![2, 6, 5]))), Ok(()));
    assert!(read(&files, "other", None).unwrap_err().contains("no file has the tensor `other`"));
    assert!(
        read(&files, "cut", Some((vec![5, 0, 0], vec![3, 6, 5]))).unwrap_err().contains("does not fit into")
    );

    let other = tempfile::tempdir().unwrap();
    let mut mixed = files.clone();
    for file in write_ranks(other.path(), &whole, 0, 2) {
        let name = format!("other-{}", file.name);
        std::fs::rename(other.path().join(&file.name), folder.path().join(&name)).unwrap();
        mixed.push(ManifestFile { name, ..file });
    }
    assert!(read(&mixed, "cut", None).unwrap_err().contains("overlap"));

    let path = folder.path().join(&files[2].name);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(read(&files, "cut", None).unwrap_err().contains("has the hash"));
}

/// Names and bytes.
type Files = Vec<(String, Vec<u8>)>;

/// A saver whose commits wait for a message: `true` commits, `false` fails, and anything else panics.
fn held_saver() -> (BackgroundSaver<usize>, Sender<bool>, Receiver<Files>) {
    let (release, wait) = channel();
    let (seen, content) = channel();
    let commit = move |save: &DraftSave| {
        let files = save.files();
        let copy = files.iter().map(|file| (file.name().to_owned(), file.bytes().to_owned())).collect();
        let _ = seen.send(copy);
        match wait.recv() {
            Ok(true) => Ok(Saved { commit: files.len(), figures: Figures::default() }),
            Ok(false) => Err(CheckpointError::state("no luck")),
            Err(_) => panic!("no word"),
        }
    };
    (BackgroundSaver::new(Arc::new(ManualClock::default()), Box::new(commit)).unwrap(), release, content)
}

fn ends(outcomes: &[SaveOutcome<usize>]) -> Vec<String> {
    let end = |outcome: &SaveOutcome<usize>| match &outcome.end {
        SaveEnd::Committed(saved) => format!("{} committed {}", outcome.step, saved.commit),
        SaveEnd::Failed(error) => format!("{} failed: {error}", outcome.step),
        SaveEnd::Skipped { running_step } => format!("{} skipped for {running_step}", outcome.step),
        SaveEnd::Abandoned => format!("{} abandoned", outcome.step),
    };
    outcomes.iter().map(end).collect()
}

fn submit(saver: &BackgroundSaver<usize>, step: u64) -> bool {
    let Some(mut draft) = saver.begin(step).unwrap() else { return false };
    draft.bytes("cursor.json", Kind::DataCursor, format!("{{\"step\":{step}}}").as_bytes()).unwrap();
    draft.submit(vec![("loss".into(), 0.5)]);
    true
}

/// Proves that one save runs at a time, that one that comes too early is skipped and reported, and that the loop may
/// change its state as soon as a draft was submitted.
#[test]
fn a_save_that_comes_too_early_is_skipped() {
    let (saver, release, content) = held_saver();
    let mut weights = random_bytes(100_000, 1);
    let spec = TensorSpec::new("weight", Dtype::U8, [100_000]);
    let mut draft = saver.begin(1).unwrap().unwrap();
    draft.tensors("model", Kind::Weights, &[TensorRef { spec, bytes: &weights }], &BTreeMap::new()).unwrap();
    draft.bytes("rng.bin", Kind::Rng, b"state").unwrap();
    draft.submit(Vec::new());
    weights.fill(0);
    assert!(!submit(&saver, 2));
    assert!(!saver.wait(Duration::from_millis(1)));
    release.send(true).unwrap();
    assert!(saver.wait(WAIT));
    assert_eq!(ends(&saver.poll()), ["2 skipped for 1", "1 committed 2"]);
    assert_eq!(ends(&saver.poll()), [""; 0]);

    let files = content.recv().unwrap();
    let theirs = ::safetensors::SafeTensors::deserialize(&files[0].1).unwrap();
    assert_eq!(files[0].0, "model.safetensors");
    assert_eq!(theirs.tensor("weight").unwrap().data(), random_bytes(100_000, 1));
    assert_eq!(files[1], ("rng.bin".into(), b"state".to_vec()));
    assert!(submit(&saver, 3));
    release.send(true).unwrap();
    assert_eq!(ends(&saver.close(WAIT)), ["3 committed 1"]);
}

/// Proves that the next begin reports a failed save unless it was polled, that a panic is such a failure, and that
/// saving continues afterwards.
#[test]
fn failures_are_reported() {
    let (saver, release, _content) = held_saver();
    assert!(submit(&saver, 1));
    release.send(false).unwrap();
    assert!(saver.wait(WAIT));
    assert!(saver.begin(2).err().unwrap().to_string().contains("no luck"));
    assert!(submit(&saver, 2));
    release.send(false).unwrap();
    assert!(saver.wait(WAIT));
    assert!(ends(&saver.poll())[0].starts_with("2 failed"));
    assert!(submit(&saver, 3));
    drop(release);
    assert!(saver.wait(WAIT));
    assert_eq!(saver.begin(4).err().unwrap().to_string(), "saving in the background panicked: no word");
    drop(saver.begin(4).unwrap());
    assert!(saver.begin(5).unwrap().is_some(), "a draft that was dropped holds nothing");
}

/// Proves that closing a saver waits for its last save, and reports when it stopped waiting for it.
#[test]
fn closing_waits_for_the_last_save() {
    let (saver, release, content) = held_saver();
    assert!(submit(&saver, 1));
    let closing = std::thread::spawn(move || saver.close(WAIT));
    content.recv().unwrap();
    release.send(true).unwrap();
    assert_eq!(ends(&closing.join().unwrap()), ["1 committed 1"]);

    let (saver, _release, _content) = held_saver();
    assert!(submit(&saver, 7));
    assert_eq!(ends(&saver.close(Duration::from_millis(1))), ["7 abandoned"]);
}

/// Proves that regions filled by other code become the tensors, that memory allocated ahead is used, and that a state
/// larger than the machine is an error and does not end the process.
#[test]
fn regions_are_filled_by_others() {
    let (saver, release, content) = held_saver();
    saver.prepare(32 << 20).unwrap();
    let specs =
        [TensorSpec::new("small", Dtype::U8, [3]), TensorSpec::new("wide", Dtype::F32, [CHUNK_BYTES as u64])];
    let mut draft = saver.begin(1).unwrap().unwrap();
    let regions = draft.reserve("model", Kind::Weights, &specs, &BTreeMap::new()).unwrap();
    for (region, byte) in regions.iter().zip([7, 9]) {
        // SAFETY: the draft is neither submitted nor dropped yet.
        unsafe { std::ptr::write_bytes(region.pointer(), byte, region.size_bytes()) };
    }
    draft.submit(Vec::new());
    let files = content.recv().unwrap();
    let theirs = ::safetensors::SafeTensors::deserialize(&files[0].1).unwrap();
    assert_eq!(theirs.tensor("small").unwrap().data(), [7; 3]);
    assert!(theirs.tensor("wide").unwrap().data().iter().all(|byte| *byte == 9));
    release.send(true).unwrap();
    assert!(saver.wait(WAIT));

    let specs = [TensorSpec::new("huge", Dtype::F64, [1 << 50])];
    let mut draft = saver.begin(2).unwrap().unwrap();
    let error = draft.reserve("model", Kind::Weights, &specs, &BTreeMap::new()).unwrap_err();
    assert!(matches!(error, CheckpointError::Memory { .. }), "{error}");
    drop(draft);
    assert!(saver.begin(3).unwrap().is_some());
}

/// Proves that a name used twice and a tensor whose bytes do not fit its shape are errors of the draft.
#[test]
fn drafts_check_what_they_are_given() {
    let (saver, _release, _content) = held_saver();
    let mut draft = saver.begin(1).unwrap().unwrap();
    draft.bytes("a.bin", Kind::Other, b"a").unwrap();
    assert!(matches!(draft.bytes("a.bin", Kind::Other, b"a"), Err(CheckpointError::Manifest(_))));
    assert!(matches!(draft.bytes("../a.bin", Kind::Other, b"a"), Err(CheckpointError::Manifest(_))));
    let tensor = TensorRef { spec: TensorSpec::new("weight", Dtype::F32, [2]), bytes: b"1234567" };
    let error = draft.tensors("model", Kind::Weights, &[tensor], &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("given 7 bytes, but its type and shape need 8"), "{error}");
}

/// Proves that a forked child can neither begin nor wait nor poll, ends without hanging, and leaves its parent's save
/// alone.
#[test]
fn a_forked_child_is_refused() {
    let (saver, release, _content) = held_saver();
    assert!(submit(&saver, 1));
    // SAFETY: the child calls nothing that needs a lock of another thread, and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(saver.begin(2), Err(CheckpointError::Forked)) && saver.wait(WAIT);
        drop(saver);
        // SAFETY: ends this process.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child and writes one integer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    release.send(true).unwrap();
    assert_eq!(ends(&saver.close(WAIT)), ["1 committed 1"]);
}
