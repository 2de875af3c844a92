//! Small files of each format, as the frameworks write them.

use crate::Tree;
use crate::formats::crc32;

/// A value of a pickle.
pub(super) enum P {
    Int(u32),
    Text(&'static str),
    Dict(Vec<(&'static str, P)>),
}

/// A pickle of protocol 2 as PyTorch writes it, or of protocol 4 in one frame.
pub(super) fn pickle(value: &P, protocol: u8) -> Vec<u8> {
    let mut body = Vec::new();
    let mut memo = Vec::new();
    put(&mut body, value, protocol, &mut memo);
    body.push(b'.');
    let mut bytes = vec![0x80, protocol];
    if protocol >= 4 {
        bytes.push(0x95);
        bytes.extend((body.len() as u64).to_le_bytes());
    }
    bytes.extend(body);
    bytes
}

fn put(bytes: &mut Vec<u8>, value: &P, protocol: u8, memo: &mut Vec<&'static str>) {
    match value {
        P::Int(value) => {
            bytes.push(b'J');
            bytes.extend(value.to_le_bytes());
        }
        P::Text(text) => put_text(bytes, text, protocol, memo),
        P::Dict(entries) => {
            bytes.push(b'}');
            remember(bytes, "", protocol, memo);
            bytes.push(b'(');
            for (key, value) in entries {
                put_text(bytes, key, protocol, memo);
                put(bytes, value, protocol, memo);
            }
            bytes.push(b'u');
        }
    }
}

/// A string, or a reference to the same one before.
fn put_text(bytes: &mut Vec<u8>, text: &'static str, protocol: u8, memo: &mut Vec<&'static str>) {
    if let Some(at) = memo.iter().position(|known| *known == text) {
        bytes.extend([b'h', at as u8]);
    } else {
        bytes.push(b'X');
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        remember(bytes, text, protocol, memo);
    }
}

fn remember(bytes: &mut Vec<u8>, text: &'static str, protocol: u8, memo: &mut Vec<&'static str>) {
    if protocol >= 4 {
        bytes.push(0x94)
    } else {
        bytes.extend([b'q', memo.len() as u8])
    }
    memo.push(text);
}

/// A zip archive of stored entries, with or without 64-bit fields.
pub(super) fn zip(entries: &[(&str, Vec<u8>)], wide: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for (name, data) in entries {
        let offset = bytes.len() as u64;
        let size = data.len() as u32;
        bytes.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0");
        bytes.extend(crc32(data).to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(name.as_bytes());
        bytes.extend(data);
        directory.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0");
        directory.extend(crc32(data).to_le_bytes());
        let narrow = |value: u64| if wide { u32::MAX } else { value as u32 };
        directory.extend(narrow(u64::from(size)).to_le_bytes());
        directory.extend(narrow(u64::from(size)).to_le_bytes());
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend(if wide { 28_u16 } else { 0 }.to_le_bytes());
        directory.extend([0; 10]);
        directory.extend(narrow(offset).to_le_bytes());
        directory.extend(name.as_bytes());
        if wide {
            directory.extend([1, 0, 24, 0]);
            for value in [u64::from(size), u64::from(size), offset] {
                directory.extend(value.to_le_bytes());
            }
        }
    }
    let (offset, length) = (bytes.len() as u64, directory.len() as u64);
    bytes.extend(directory);
    if wide {
        let end = bytes.len() as u64;
        bytes.extend(b"PK\x06\x06");
        bytes.extend(44_u64.to_le_bytes());
        bytes.extend([0; 12]);
        for value in [entries.len() as u64, entries.len() as u64, length, offset] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(b"PK\x06\x07\0\0\0\0");
        bytes.extend(end.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
    }
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend(if wide { u32::MAX } else { offset as u32 }.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// A file of `torch.save`.
pub(super) fn torch(entries: Vec<(&'static str, P)>) -> Vec<u8> {
    let data = pickle(&P::Dict(entries), 2);
    zip(
        &[("archive/data.pkl", data), ("archive/data/0", vec![7; 32]), ("archive/version", b"3\n".to_vec())],
        false,
    )
}

/// A state with weights and an optimizer, after this many steps.
pub(super) fn state(step: u32) -> Vec<(&'static str, P)> {
    vec![
        ("model", P::Dict(vec![("0.weight", P::Int(1)), ("step", P::Int(999))])),
        ("optimizer", P::Dict(vec![("step", P::Int(998))])),
        ("step", P::Int(step)),
    ]
}

pub(super) fn safetensors(metadata: &str) -> Vec<u8> {
    let header = format!(
        r#"{{"__metadata__":{{{metadata}}},"w":{{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}}}"#
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend([1; 16]);
    bytes
}

/// An HDF5 file of 200 bytes with this version of its superblock.
pub(super) fn hdf5(version: u8) -> Vec<u8> {
    let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
    bytes.push(version);
    if version < 2 {
        bytes.extend([0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
    } else {
        bytes.extend([8, 8, 0]);
    }
    for value in [0, u64::MAX, 200, u64::MAX] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.resize(200, 0);
    bytes
}

/// A booster of XGBoost with this many rounds, as UBJSON.
pub(super) fn ubjson(rounds: u64) -> Vec<u8> {
    let key = |bytes: &mut Vec<u8>, text: &str| {
        bytes.push(b'L');
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    let mut bytes = vec![b'{'];
    key(&mut bytes, "learner");
    bytes.push(b'{');
    key(&mut bytes, "iteration_indptr");
    bytes.extend(b"[$l#L");
    bytes.extend((rounds + 1).to_be_bytes());
    bytes.extend(vec![0; 4 * (rounds as usize + 1)]);
    key(&mut bytes, "name");
    bytes.push(b'S');
    key(&mut bytes, "gbtree");
    bytes.push(b'}');
    key(&mut bytes, "version");
    bytes.extend(b"[#L");
    bytes.extend(2_u64.to_be_bytes());
    bytes.extend(b"i\x03i\x02}");
    bytes
}

/// A state of Flax after this many steps.
pub(super) fn msgpack(step: u8) -> Vec<u8> {
    let mut bytes = b"\x83\xa4step".to_vec();
    bytes.push(step);
    bytes.extend(b"\xa6params\x81\xa1w\xc7\x03\x01abc\xa9opt_state\x81\xa1m\x92\x01\xcb\0\0\0\0\0\0\0\0");
    bytes
}

/// A text model of LightGBM with two trees, as the Python package writes it.
pub(super) fn lightgbm() -> String {
    let trees = ["Tree=0\nleaf_value=1\n\n\n", "Tree=1\nleaf_value=2\n\n\n"];
    let sizes: Vec<_> = trees.iter().map(|tree| tree.len().to_string()).collect();
    format!(
        "tree\nversion=v4\nnum_tree_per_iteration=1\ntree_sizes={}\n\n{}end of trees\n\nfeature_importances:\nC=1\n\nparameters:\n[a: 1]\n\nend of parameters\n\npandas_categorical:null\n",
        sizes.join(" "),
        trees.concat()
    )
}

pub(super) fn catboost() -> Vec<u8> {
    let mut bytes = b"CBM1".to_vec();
    bytes.extend(24_u32.to_le_bytes());
    bytes.extend([5; 24]);
    bytes
}

/// A snapshot of a training with CatBoost after so many iterations.
pub(super) fn catboost_snapshot(iterations: u32) -> Vec<u8> {
    let mut bytes = b"\x03\0\0\0CPU".to_vec();
    for text in ["{\"iterations\":60}", "Update final approxes"] {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        if text.starts_with('{') {
            bytes.extend([7; 200]);
        }
    }
    bytes.extend(0.004_f64.to_le_bytes());
    bytes.extend(iterations.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0.09_f64.to_le_bytes());
    bytes
}

/// An xz file of one block, whose bytes are of no interest.
pub(super) fn xz() -> Vec<u8> {
    let mut bytes = b"\xfd7zXZ\0\0\x04\0\0\0\0".to_vec();
    bytes.extend([9; 24]);
    let mut index = vec![0, 1, 22, 50];
    let checksum = crc32(&index);
    index.extend(checksum.to_le_bytes());
    bytes.extend(index);
    let tail = [1, 0, 0, 0, 0, 4];
    bytes.extend(crc32(&tail).to_le_bytes());
    bytes.extend(tail);
    bytes.extend(b"YZ");
    bytes
}

/// An lz4 frame of two blocks with a checksum of its content.
pub(super) fn lz4() -> Vec<u8> {
    let mut bytes = b"\x04\x22\x4d\x18\x64\x40\x00".to_vec();
    for block in [b"abcd".as_slice(), b"efg"] {
        bytes.extend((block.len() as u32).to_le_bytes());
        bytes.extend(block);
    }
    bytes.extend([0; 4]);
    bytes.extend([1, 2, 3, 4]);
    bytes
}

/// The metadata of PyTorch DCP: two files, with pieces that end at 40 and 24.
pub(super) fn dcp_metadata() -> Vec<u8> {
    let piece = |file, offset, length| {
        P::Dict(vec![
            ("relative_path", P::Text(file)),
            ("offset", P::Int(offset)),
            ("length", P::Int(length)),
        ])
    };
    let pieces = vec![
        ("a", piece("__0_0.distcp", 0, 16)),
        ("b", piece("__0_0.distcp", 16, 24)),
        ("c", piece("__1_0.distcp", 0, 24)),
    ];
    pickle(&P::Dict(vec![("storage_data", P::Dict(pieces))]), 4)
}

/// A checkpoint of the Trainer in `out/checkpoint-20`, its last file last.
pub(super) fn trainer() -> Tree {
    let mut tree = Tree::default();
    let state = || torch(vec![("state", P::Dict(vec![])), ("param_groups", P::Int(1))]);
    tree.add("out/checkpoint-20/config.json", "{}")
        .add("out/checkpoint-20/model.safetensors", safetensors(""))
        .add("out/checkpoint-20/training_args.bin", torch(vec![("args", P::Int(1))]))
        .add("out/checkpoint-20/optimizer.pt", state())
        .add("out/checkpoint-20/scheduler.pt", state())
        .add("out/checkpoint-20/rng_state.pth", state())
        .add(
            "out/checkpoint-20/trainer_state.json",
            r#"{"epoch": 1.5, "global_step": 20, "log_history": [{"loss": NaN}]}"#,
        );
    tree
}

/// A checkpoint of PyTorch DCP in `step-30`, of two processes.
pub(super) fn dcp() -> Tree {
    let mut tree = Tree::default();
    tree.add("step-30/__0_0.distcp", vec![1; 40])
        .add("step-30/__1_0.distcp", vec![2; 24])
        .add("step-30/.metadata", dcp_metadata());
    tree
}

/// The single files that are whole by their structure, by name.
pub(super) fn whole_files() -> Vec<(&'static str, Vec<u8>)> {
    let pickled = P::Dict(state(5));
    vec![
        ("ckpt.pt", torch(state(40))),
        ("wide.pt", zip(&[("archive/data.pkl", pickle(&pickled, 2)), ("archive/data/0", vec![1; 9])], true)),
        (
            "model.keras",
            zip(
                &[
                    ("config.json", b"{}".to_vec()),
                    ("metadata.json", b"{}".to_vec()),
                    ("model.weights.h5", hdf5(0)),
                ],
                false,
            ),
        ),
        ("weights.npz", zip(&[("w.npy", vec![3; 20])], false)),
        ("model.pkl", pickle(&pickled, 2)),
        ("model4.pkl", pickle(&pickled, 4)),
        ("model.safetensors", safetensors(r#""step":"60""#)),
        ("v0.weights.h5", hdf5(0)),
        ("v2.weights.h5", hdf5(2)),
        ("v3.weights.h5", hdf5(3)),
        (
            "model.json",
            br#"{"learner":{"attributes":{},"iteration_indptr":[0,1,2]},"version":[3,2,0]}"#.to_vec(),
        ),
        ("model.ubj", ubjson(4)),
        ("checkpoint_7", msgpack(7)),
        ("model.txt", lightgbm().into_bytes()),
        ("model.cbm", catboost()),
        ("snapshot.bkp", catboost_snapshot(40)),
        ("model.joblib.xz", xz()),
        ("model.joblib.lz4", lz4()),
    ]
}
