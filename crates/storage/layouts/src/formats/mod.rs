//! The formats of single files: which one a file has, whether it is whole, and what is written at its top.

mod boosters;
mod compressed;
pub(crate) mod json;
mod msgpack;
pub(crate) mod pickle;
mod tensors;
mod ubjson;

use std::collections::BTreeMap;

use trackway_formats::zip::{ZipDirectory, ZipEntry};

use crate::limits::{
    HEAD_BYTES, MAX_INNER_FILES, MAX_KEYS, MAX_MEMO, MAX_ZIP_DIRECTORY_BYTES, MAX_ZIP_ENTRIES,
};
use crate::listing::Entry;
use crate::source::{Fault, Reader, Source, head};

#[cfg(test)]
pub(crate) use compressed::crc32;
pub(crate) use json::Value;
use pickle::{Literal, Place};

/// The format of a file, by its first bytes, else by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Zip,
    Pickle,
    LegacyTorch,
    Safetensors,
    Hdf5,
    Json,
    Ubjson,
    Msgpack,
    Lightgbm,
    Catboost,
    CatboostSnapshot,
    OcdbtManifest,
    Xz,
    Lz4,
    /// A format that says neither its length nor its end in a way that is checked here.
    Opaque(&'static str),
    /// The name promises a format that the bytes do not have.
    Wrong(&'static str),
}

/// What the check of a file showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileCheck {
    Whole,
    Torn(String),
    CannotTell(String),
    /// A file of no format that is checked here, such as a text.
    NoFormat,
}

/// What is written at the top of a state: names, with their values where these are integers.
pub(crate) type Keys = BTreeMap<String, Option<i64>>;

/// The format of a file; nothing if it has none that is known here.
pub(crate) fn format_of(source: &dyn Source, file: &Entry) -> Option<Format> {
    format(&file.path, &head(source, file, HEAD_BYTES))
}

/// The format of the file with this path and these first bytes.
fn format(path: &str, head: &[u8]) -> Option<Format> {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // Pieces of larger files, which begin and end anywhere: their lengths are in the file that names them.
    if extension == "distcp" || is_ocdbt_data(path) {
        return None;
    }
    let by_head: [(&[u8], Format); 11] = [
        (b"PK\x03\x04", Format::Zip),
        (b"PK\x05\x06", Format::Zip),
        (tensors::HDF5_MAGIC, Format::Hdf5),
        (boosters::CATBOOST_MAGIC, Format::Catboost),
        (boosters::CATBOOST_SNAPSHOT_MAGIC, Format::CatboostSnapshot),
        (boosters::LIGHTGBM_MAGIC, Format::Lightgbm),
        (compressed::XZ_MAGIC, Format::Xz),
        (compressed::LZ4_MAGIC, Format::Lz4),
        (b"\x1f\x8b", Format::Opaque("gzip says its length only when it is decompressed")),
        (b"BZh", Format::Opaque("bzip2 says its length only when it is decompressed")),
        (&pickle::TORCH_LEGACY_MAGIC, Format::LegacyTorch),
    ];
    if name == "manifest.ocdbt" {
        let right = head.starts_with(tensors::OCDBT_MAGIC);
        return Some(if right {
            Format::OcdbtManifest
        } else {
            Format::Wrong("it is not a manifest of OCDBT")
        });
    }
    if let Some((_, format)) = by_head.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*format);
    }
    if let [0x80, 2..=5, ..] = head {
        return Some(Format::Pickle);
    }
    match extension {
        "safetensors" => Some(Format::Safetensors),
        "json" => Some(Format::Json),
        "ubj" => Some(Format::Ubjson),
        "msgpack" => Some(Format::Msgpack),
        "pt" | "pth" | "ckpt" => Some(Format::Wrong("it is neither a zip archive nor a pickle")),
        "bin" if is_torch_binary(&name) => Some(Format::Wrong("it is neither a zip archive nor a pickle")),
        "metadata" if name == ".metadata" => Some(Format::Pickle),
        "keras" | "npz" => Some(Format::Wrong("it is not a zip archive")),
        "h5" | "hdf5" => Some(Format::Wrong("it is not HDF5")),
        "cbm" => Some(Format::Wrong("it is not a model of CatBoost")),
        "cbsnapshot" => Some(Format::Opaque("it does not begin as the snapshots of CatBoost 1.2 on CPUs do")),
        "xz" | "lz4" | "gz" | "bz2" if is_pickle_name(&name) => {
            Some(Format::Wrong("it is not what its extension says"))
        }
        "lzma" | "z" if is_pickle_name(&name) => {
            Some(Format::Opaque("zlib and lzma say their lengths only when they are decompressed"))
        }
        "pkl" | "pickle" | "joblib" => Some(match head {
            [0x78, ..] | [0x5d, 0, 0, ..] => {
                Format::Opaque("zlib and lzma say their lengths only when they are decompressed")
            }
            _ => Format::Pickle,
        }),
        // The extension is often missing: a map of MessagePack with a few entries.
        _ if is_flax_name(&name) && matches!(head, [0x81..=0x8f | 0xde | 0xdf, ..]) => Some(Format::Msgpack),
        _ => None,
    }
}

/// Whether the name is that of a pickle, perhaps compressed.
pub(crate) fn is_pickle_name(name: &str) -> bool {
    [".pkl", ".pickle", ".joblib"].iter().any(|part| name.contains(part))
}

/// Whether the name is one that Flax gives to a checkpoint file: `checkpoint_` and a number.
pub(crate) fn is_flax_name(name: &str) -> bool {
    name.strip_prefix("checkpoint_")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a `.bin` has a name that Transformers or Accelerate gives to what `torch.save` writes.
fn is_torch_binary(name: &str) -> bool {
    let stems = [
        "pytorch_model", "adapter_model", "training_args", "optimizer", "scheduler", "sampler",
        "dl_state_dict",
    ];
    stems.iter().any(|stem| name.starts_with(stem))
}

/// Whether the path is of a data file of OCDBT: a name of 32 hexadecimal digits in a folder `d`.
fn is_ocdbt_data(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    parts.next() == Some("d") && name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether the file is whole, by its content.
pub(crate) fn check(source: &dyn Source, file: &Entry) -> FileCheck {
    if file.size == 0 {
        return FileCheck::Torn("it is empty".to_owned());
    }
    let Some(format) = format_of(source, file) else { return FileCheck::NoFormat };
    let mut reader = Reader::new(source, file);
    match check_format(&mut reader, format) {
        Ok(()) => FileCheck::Whole,
        Err(Fault::Ends) => FileCheck::Torn(format!("it ends early, after {} bytes", file.size)),
        Err(Fault::Malformed(what)) => FileCheck::Torn(what),
        Err(Fault::Beyond(why)) => FileCheck::CannotTell(why),
    }
}

fn check_format(reader: &mut Reader, format: Format) -> Result<(), Fault> {
    match format {
        Format::Zip => check_archive(reader),
        Format::Pickle => pickle::check(reader, false),
        Format::LegacyTorch => pickle::check(reader, true),
        Format::Safetensors => tensors::safetensors(reader, &mut |_, _| {}),
        Format::Hdf5 => tensors::hdf5(reader),
        Format::Json => json::walk(reader, &mut |_, _| {}),
        Format::Ubjson => ubjson::walk(reader, &mut |_, _| {}),
        Format::Msgpack => msgpack::walk(reader, &mut |_, _| {}),
        Format::Lightgbm => boosters::lightgbm(reader).map(|_| ()),
        Format::Catboost => boosters::catboost(reader),
        Format::CatboostSnapshot => boosters::catboost_snapshot(reader).map(|_| ()),
        Format::OcdbtManifest => tensors::ocdbt_manifest(reader),
        Format::Xz => compressed::xz(reader),
        Format::Lz4 => compressed::lz4(reader),
        Format::Opaque(why) => Err(Fault::Beyond(why.to_owned())),
        Format::Wrong(what) => Err(Fault::malformed(what)),
    }
}

/// An archive, and in it the pickle of PyTorch or the weights of Keras.
fn check_archive(reader: &mut Reader) -> Result<(), Fault> {
    let members = members(reader)?;
    let inner = |(entry, _): &&(ZipEntry, u64)| {
        entry.is_stored() && (is_data_pickle(&entry.name) || entry.name.ends_with(".h5"))
    };
    for (entry, data_at) in members.iter().filter(inner).take(MAX_INNER_FILES) {
        let within = |fault| match fault {
            Fault::Ends => Fault::malformed(format!("its `{}` ends early", entry.name)),
            Fault::Malformed(what) => Fault::Malformed(format!("in its `{}`, {what}", entry.name)),
            other => other,
        };
        let mut part = reader.part(*data_at, entry.size_bytes)?;
        if is_data_pickle(&entry.name) {
            pickle::check(&mut part, false).map_err(within)?;
        } else {
            tensors::hdf5(&mut part).map_err(within)?;
        }
    }
    Ok(())
}

/// The entries of an archive and where their bytes begin, after every one was checked.
fn members(reader: &mut Reader) -> Result<Vec<(ZipEntry, u64)>, Fault> {
    let directory = ZipDirectory::read(reader, MAX_ZIP_ENTRIES, MAX_ZIP_DIRECTORY_BYTES)?;
    let member = |entry: &ZipEntry| Ok((entry.clone(), directory.data_at(reader, entry)?));
    directory.entries.iter().map(member).collect()
}

/// The pickle of an archive of `torch.save`: `NAME/data.pkl`.
fn is_data_pickle(name: &str) -> bool {
    name.split_once('/').is_some_and(|(_, rest)| rest == "data.pkl")
}

/// The names of an archive's entries.
pub(crate) fn archive_names(source: &dyn Source, file: &Entry) -> Option<Vec<String>> {
    let members = members(&mut Reader::searching(source, file)).ok()?;
    Some(members.into_iter().map(|(entry, _)| entry.name).collect())
}

/// What is at the top of the state that `torch.save` or a pickle wrote; nothing if it is neither, or is torn.
pub(crate) fn pickle_keys(source: &dyn Source, file: &Entry) -> Option<Keys> {
    let mut keys = TopKeys::default();
    let mut reader = Reader::searching(source, file);
    match format_of(source, file)? {
        Format::Zip => {
            let members = members(&mut reader).ok()?;
            let (entry, data_at) = members.into_iter().find(|(entry, _)| is_data_pickle(&entry.name))?;
            let mut part = reader.part(data_at, entry.size_bytes).ok().filter(|_| entry.is_stored())?;
            pickle::walk(&mut part, &mut |place, literal| keys.add(place, literal)).ok()?;
        }
        Format::LegacyTorch => {
            // The fourth pickle is the state; the first three are a magic number, a version and the machine's sizes.
            for _ in 0..3 {
                pickle::walk(&mut reader, &mut |_, _| {}).ok()?;
            }
            pickle::walk(&mut reader, &mut |place, literal| keys.add(place, literal)).ok()?;
        }
        Format::Pickle => {
            // Arrays of joblib end the walk early: what came before them is known.
            let _ = pickle::walk(&mut reader, &mut |place, literal| keys.add(place, literal));
        }
        _ => return None,
    }
    Some(keys.keys)
}

#[derive(Default)]
struct TopKeys {
    keys: Keys,
    key: Option<String>,
}

impl TopKeys {
    fn add(&mut self, place: Place, literal: Literal) {
        match (place, literal) {
            (Place::TopKey, Literal::Text(text)) if self.keys.len() < MAX_KEYS => {
                self.keys.insert(text.to_owned(), None);
                self.key = Some(text.to_owned());
            }
            (Place::TopValue, Literal::Integer(value)) => {
                if let Some(key) = self.key.take() {
                    self.keys.insert(key, Some(value));
                }
            }
            (Place::Inside, _) => {}
            _ => self.key = None,
        }
    }
}

/// The files that the metadata of PyTorch DCP names, each with the end of the last piece in it; nothing if it is torn.
pub(crate) fn dcp_pieces(source: &dyn Source, file: &Entry) -> Option<BTreeMap<String, Option<u64>>> {
    let mut pieces: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let (mut field, mut path, mut offset) = (String::new(), None::<String>, None::<u64>);
    let mut reader = Reader::new(source, file);
    // `_StorageInfo` has `relative_path`, `offset` and `length`, in this order.
    pickle::walk(&mut reader, &mut |_, literal| match literal {
        Literal::Text(text) if matches!(text, "relative_path" | "offset" | "length") => {
            text.clone_into(&mut field)
        }
        Literal::Text(text) => {
            if text.ends_with(".distcp") && pieces.len() < MAX_MEMO {
                pieces.entry(text.to_owned()).or_default();
                path = (field == "relative_path").then(|| text.to_owned());
            }
            field.clear();
        }
        Literal::Integer(value) => {
            let value = u64::try_from(value).ok();
            match (field.as_str(), &path, offset) {
                ("offset", Some(_), _) => offset = value,
                ("length", Some(name), Some(from)) => {
                    let end = value.and_then(|length| from.checked_add(length));
                    let known = pieces.entry(name.clone()).or_default();
                    *known = (*known).max(end);
                    (path, offset) = (None, None);
                }
                _ => {}
            }
            field.clear();
        }
        Literal::Global(_) | Literal::Other => {}
    })
    .ok()?;
    Some(pieces)
}

/// The text and integer values of a JSON file, with the keys above each, as far as it could be read.
pub(crate) fn json_values(
    source: &dyn Source,
    file: &Entry,
    report: &mut dyn FnMut(&[String], Value),
) -> bool {
    json::walk(&mut Reader::new(source, file), report).is_ok()
}

/// The integer at the top of a JSON file.
pub(crate) fn json_integer(source: &dyn Source, file: &Entry, wanted: &str) -> Option<u64> {
    match json_top(source, file, wanted)? {
        Value::Integer(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

/// The number at the top of a JSON file, without its fraction.
pub(crate) fn json_whole_number(source: &dyn Source, file: &Entry, wanted: &str) -> Option<u64> {
    match json_top(source, file, wanted)? {
        Value::Integer(value) => u64::try_from(value).ok(),
        // Below 2^53 every whole number is exact.
        Value::Fraction(value) if (0.0..9e15).contains(&value) => Some(value as u64),
        _ => None,
    }
}

/// The value of a key at the top of a JSON file.
fn json_top(source: &dyn Source, file: &Entry, wanted: &str) -> Option<Value> {
    let mut found = None;
    json_values(source, file, &mut |keys, value| {
        if matches!(keys, [key] if key == wanted) {
            found = Some(value);
        }
    });
    found
}

/// The number of rounds of a booster of XGBoost, and whether it is one at all.
pub(crate) fn xgboost_rounds(source: &dyn Source, file: &Entry) -> (bool, Option<u64>) {
    let mut learner = false;
    let mut rounds = None;
    let mut count = |keys: &[String], items: u64| {
        learner |= keys.first().is_some_and(|key| key == "learner");
        if keys.last().is_some_and(|key| key == "iteration_indptr") {
            rounds = items.checked_sub(1);
        }
    };
    let mut reader = Reader::searching(source, file);
    match format_of(source, file) {
        Some(Format::Ubjson) => {
            let _ = ubjson::walk(&mut reader, &mut count);
        }
        Some(Format::Json) => {
            let _ = json::walk(&mut reader, &mut |keys, value| {
                if let Value::Array(items) = value {
                    count(keys, items);
                }
            });
        }
        _ => {}
    }
    (learner, rounds)
}

/// The number of trees of a model of CatBoost in JSON.
pub(crate) fn catboost_rounds(source: &dyn Source, file: &Entry) -> Option<u64> {
    let mut rounds = None;
    json_values(source, file, &mut |keys, value| match (keys, value) {
        ([key], Value::Array(trees)) if key == "oblivious_trees" || key == "trees" => rounds = Some(trees),
        _ => {}
    });
    rounds
}

/// The number of iterations of a snapshot of CatBoost.
pub(crate) fn catboost_snapshot_rounds(source: &dyn Source, file: &Entry) -> Option<u64> {
    boosters::catboost_snapshot(&mut Reader::searching(source, file)).ok()
}

/// The number of iterations of a text model of LightGBM.
pub(crate) fn lightgbm_rounds(source: &dyn Source, file: &Entry) -> Option<u64> {
    let trees = boosters::lightgbm(&mut Reader::searching(source, file)).ok()?;
    trees.trees.checked_div(trees.per_iteration)
}

/// What is at the top of a MessagePack file; nothing if it is torn.
pub(crate) fn msgpack_keys(source: &dyn Source, file: &Entry) -> Option<Keys> {
    let mut keys = Keys::new();
    msgpack::walk(&mut Reader::searching(source, file), &mut |key, value| {
        if keys.len() < MAX_KEYS {
            keys.insert(key.to_owned(), value);
        }
    })
    .ok()?;
    Some(keys)
}

pub(crate) fn safetensors_metadata(source: &dyn Source, file: &Entry) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let _ = tensors::safetensors(&mut Reader::searching(source, file), &mut |key, text| {
        if found.len() < MAX_KEYS {
            found.insert(key.to_owned(), text.to_owned());
        }
    });
    found
}
