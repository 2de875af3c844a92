//! Single files: what is said of damage, and what is not known.

use super::build::{self, P};
use super::recognised;
use crate::limits::MAX_NESTING;
use crate::{Component, Layout, LayoutConfidence, StepOrigin, Tree, Wholeness, file_wholeness};

fn of(name: &str, bytes: impl Into<Vec<u8>>) -> Wholeness {
    let mut tree = Tree::default();
    tree.add(name, bytes);
    file_wholeness(&tree, tree.listing().file(name).unwrap())
}

fn torn(name: &str, bytes: impl Into<Vec<u8>>) -> String {
    match of(name, bytes) {
        Wholeness::Torn { what, .. } => what,
        other => panic!("{name} is not torn: {other:?}"),
    }
}

fn not_known(name: &str, bytes: impl Into<Vec<u8>>) -> String {
    match of(name, bytes) {
        Wholeness::CannotTell { why } => why,
        other => panic!("{name} is known: {other:?}"),
    }
}

/// Proves that each kind of damage is named.
#[test]
fn damage_is_named() {
    let mut archive = build::torch(build::state(1));
    archive[30] ^= 1;
    assert!(torn("a.pt", archive).contains("has another local header"));
    assert!(torn("b.pt", b"garbage of some length".to_vec()).contains("neither a zip archive nor a pickle"));
    let unfinished = build::zip(&[("archive/data.pkl", b"\x80\x02}(X".to_vec())], false);
    assert_eq!(torn("c.pt", unfinished), "its `archive/data.pkl` ends early");
    assert!(torn("d.pkl", b"\x80\x02(K\x01.".to_vec()).contains("unfinished object"));
    assert!(torn("e.pkl", b"\x80\x02s.".to_vec()).contains("takes more than there is"));
    assert!(torn("f.json", b"{\"a\": [1, 2}".to_vec()).contains("is not JSON"));
    assert!(torn("g.ubj", b"{i\x01aQ}".to_vec()).contains("0x51"));
    let mut open = build::hdf5(3);
    open[11] = 1;
    assert!(torn("h.h5", open).contains("was not closed"));
    let mut long = build::hdf5(0);
    long.push(0);
    assert!(torn("i.h5", long).contains("not closed yet"));
    assert!(torn("j.safetensors", vec![0xff; 30]).contains("longer than safetensors allows"));
}

/// Proves that a format whose length cannot be read without loading is not called whole.
#[test]
fn what_is_not_known_is_said() {
    assert!(not_known("m.joblib.gz", b"\x1f\x8b\x08\x00rest".to_vec()).contains("gzip"));
    assert!(not_known("m.joblib.z", b"\x78\x9crest".to_vec()).contains("zlib"));
    assert!(not_known("m.joblib.bz2", b"BZh9rest".to_vec()).contains("bzip2"));
    assert!(not_known("notes.md", b"text".to_vec()).contains("no format"));
    let text = build::lightgbm();
    let (without_last_line, _) = text.split_once("\npandas").unwrap();
    assert!(not_known("model.txt", without_last_line).contains("last line"));
    let mut model = build::catboost();
    model.push(1);
    assert!(not_known("model.cbm", model).contains("tables of categories"));
    // An array of joblib: its bytes follow the pickle of its wrapper, within the stream.
    let mut arrays = b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\n)R".to_vec();
    arrays.extend([0xfe; 40]);
    arrays.push(b'.');
    assert!(not_known("model.joblib", arrays.clone()).contains("arrays"));
    arrays.pop();
    assert!(torn("model.joblib", arrays).contains("ends early"));
}

/// Proves which texts are JSON: a table. What Python writes is, though it is more than JSON allows.
#[test]
fn json_is_checked() {
    let whole = [
        "{}",
        "[]",
        " [1, -2.5e+3, 0.1E5, 1e9] \n",
        r#"{"a": {"b": [true, false, null, NaN, -Infinity]}, "c": "\u00e9\n\"é"}"#,
        "[[], {}, [{}]]",
        "\"text\"",
        "12",
    ];
    let torn = [
        "{", "[1,]", "[1 2]", "{\"a\"}", "{\"a\": }", "{a: 1}", "[1.]", "[.5]", "[1e]", "[-]", "[+1]",
        "[0x1]", "[nan]", "[tru]", "{} {}", "[\"\\x\"]", "[\"\\u12g4\"]", "[\"a\nb\"]", "]", "",
    ];
    for text in whole {
        assert!(matches!(of("a.json", text), Wholeness::Whole { .. }), "{text}: {:?}", of("a.json", text));
    }
    for text in torn {
        assert!(matches!(of("a.json", text), Wholeness::Torn { .. }), "{text}: {:?}", of("a.json", text));
    }
}

/// Proves that nesting and counts beyond the bounds end a walk with `cannot_tell` instead of exhausting the stack.
#[test]
fn nesting_is_bounded() {
    let deep = MAX_NESTING + 1;
    assert!(not_known("a.json", "[".repeat(deep)).contains("nests more"));
    assert!(not_known("a.ubj", "[".repeat(deep)).contains("nests more"));
    let mut maps = b"\x81\xa1a".repeat(deep);
    maps.push(1);
    assert!(not_known("checkpoint_1", maps).contains("nests more"));
    assert!(
        not_known("a.pkl", [b"\x80\x02".as_slice(), &b"(".repeat(20_000)].concat()).contains("nests more")
    );
    // A count of 2^62 items that take no bytes.
    let mut many = b"{i\x01a[$Z#L".to_vec();
    many.extend((1_u64 << 62).to_be_bytes());
    many.push(b'}');
    assert!(matches!(of("a.ubj", many), Wholeness::Whole { .. }));
    assert!(torn("a.ubj", b"{i\x01a[$D#L\x7f\xff\xff\xff\xff\xff\xff\xff}".to_vec()).contains("ends early"));
}

/// Proves that the step, the epoch and the components of a torch file are those at the top of its state, not those of
/// its optimizer, and that no name of a checkpoint is needed.
#[test]
fn a_torch_file_says_its_step() {
    let mut tree = Tree::default();
    tree.add("x.pt", build::torch(build::state(40)));
    let found = recognised(&tree, "x.pt");
    assert_eq!((found.layout, found.confidence), (Layout::TorchFile, LayoutConfidence::Certain));
    assert_eq!((found.step, found.step_origin), (Some(40), Some(StepOrigin::Content)));
    assert_eq!(
        found.components.into_iter().collect::<Vec<_>>(),
        [Component::Weights, Component::Optimizer, Component::TrainerState]
    );
    for (keys, components) in
        [(&["weight", "bias"][..], &[Component::Weights][..]), (&["weight", "other"], &[])]
    {
        let layer = keys.iter().map(|key| (*key, P::Dict(vec![]))).collect();
        tree.add("layer.pt", build::torch(layer));
        let found = recognised(&tree, "layer.pt");
        assert_eq!(found.components.into_iter().collect::<Vec<_>>(), components, "{keys:?}");
    }
    let lightning = vec![
        ("epoch", P::Int(2)),
        ("global_step", P::Int(60)),
        ("pytorch-lightning_version", P::Text("2.6.6")),
        ("state_dict", P::Dict(vec![])),
        ("optimizer_states", P::Dict(vec![])),
    ];
    tree.add("last.ckpt", build::torch(lightning));
    let found = recognised(&tree, "last.ckpt");
    assert_eq!((found.layout, found.step, found.data_epoch), (Layout::Lightning, Some(60), Some(2)));
}

/// Proves that boosters say their rounds, and that a name says a step only where the content does not.
#[test]
fn steps_come_from_content_before_names() {
    let mut tree = Tree::default();
    tree.add("model_8.ubj", build::ubjson(9))
        .add("model.txt", build::lightgbm())
        .add("checkpoint_3", build::msgpack(7))
        .add("w-step=12.npz", build::zip(&[("w.npy", vec![1])], false))
        .add("model.safetensors", build::safetensors(r#""step":"60""#))
        .add("epoch=1-step=8.ckpt", b"torn".to_vec());
    let step = |path: &str| {
        let found = recognised(&tree, path);
        (found.layout, found.step, found.step_origin)
    };
    assert_eq!(step("model_8.ubj"), (Layout::Xgboost, Some(9), Some(StepOrigin::Content)));
    assert_eq!(step("model.txt"), (Layout::Lightgbm, Some(2), Some(StepOrigin::Content)));
    assert_eq!(step("checkpoint_3"), (Layout::FlaxMsgpack, Some(7), Some(StepOrigin::Content)));
    assert_eq!(step("w-step=12.npz"), (Layout::Numpy, Some(12), Some(StepOrigin::Name)));
    assert_eq!(step("model.safetensors"), (Layout::Safetensors, Some(60), Some(StepOrigin::Content)));
    assert_eq!(step("epoch=1-step=8.ckpt"), (Layout::Lightning, Some(8), Some(StepOrigin::Name)));
}

/// Proves that a snapshot of CatBoost, whatever its name is, says its iterations and that it is a training's state and
/// not only a model; and that one which ends early, or as an unknown version writes it, is neither whole nor of a step.
#[test]
fn a_snapshot_of_catboost_says_its_iterations() {
    let mut tree = Tree::default();
    let whole = build::catboost_snapshot(31);
    tree.add("snapshot.bkp", whole.clone()).add("model.cbm", build::catboost());
    let found = recognised(&tree, "snapshot.bkp");
    assert_eq!((found.layout, found.confidence), (Layout::Catboost, LayoutConfidence::Certain));
    assert_eq!((found.step, found.step_origin), (Some(31), Some(StepOrigin::Content)));
    assert!(found.components.contains(&Component::TrainerState));
    assert!(!recognised(&tree, "model.cbm").components.contains(&Component::TrainerState));
    for length in 11..whole.len() {
        tree.add("a.cbsnapshot", whole[..length].to_vec());
        assert_eq!(recognised(&tree, "a.cbsnapshot").step, None, "{length} of {} bytes", whole.len());
        assert!(!matches!(of("a.cbsnapshot", &whole[..length]), Wholeness::Whole { .. }));
    }
    assert!(not_known("a.cbsnapshot", [whole, vec![0; 8]].concat()).contains("does not end"));
    assert!(not_known("a.cbsnapshot", b"\x03\0\0\0GPU{}".to_vec()).contains("does not begin"));
}

/// Proves that the names of layouts are those that are serialized, and that none is missing from the list.
#[test]
fn layouts_have_one_name() {
    for layout in Layout::ALL {
        assert_eq!(serde_json::to_value(layout).unwrap(), layout.as_str());
    }
    let names: std::collections::BTreeSet<_> = Layout::ALL.iter().map(|layout| layout.as_str()).collect();
    assert_eq!(names.len(), Layout::ALL.len());
}
