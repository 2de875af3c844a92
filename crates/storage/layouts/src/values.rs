//! Whether the tensors of a file have values that are not finite, and whether two files have the same ones, as far as
//! they can be read without loading them: those of safetensors, of the stored members of a npz, and the storages of a
//! `torch.save` archive, whose types are read in its pickle.

use crate::formats::json;
use crate::formats::pickle::{self, Literal};
use crate::limits::{MAX_MEMO, MAX_SAFETENSORS_HEADER_BYTES, MAX_ZIP_DIRECTORY_BYTES, MAX_ZIP_ENTRIES};
use crate::listing::Entry;
use crate::source::{Fault, Reader, Source, head};
use trackway_formats::zip::{ZipDirectory, ZipEntry};

/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes of a tensor that are read first.
const FIRST_CHUNK_BYTES: u64 = 1 << 16;
/// What the names of statistics end with that normalization layers keep.
const STATISTICS: [&str; 2] = ["running_mean", "running_var"];
/// The longest header of an array in a npz.
const MAX_NPY_HEADER_BYTES: u64 = 1 << 16;

/// A value that is not finite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NonFinite {
    /// The tensor that has it, or the storage.
    pub tensor: String,
    /// `NaN`, `inf` or `-inf`.
    pub value: &'static str,
    /// How large it is.
    pub size_bytes: u64,
    /// Whether half of its numbers and more are NaN, as far as they were read: an update with a NaN leaves none finite.
    pub is_mostly_nan: bool,
}

/// A format of floating point numbers, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Float {
    F16,
    Bf16,
    F32,
    F64,
}

/// Where the numbers of a tensor are.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    name: String,
    float: Float,
    offset: u64,
    length: u64,
}

/// What the tensors of a file hold, as far as they can be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tensors {
    /// How many have floating point numbers that are all finite.
    pub finite: usize,
    /// Those with a NaN, or with an infinite value, unless it is a mask.
    pub non_finite: Vec<NonFinite>,
    /// How large all of them are.
    pub size_bytes: u64,
    /// Whether some could not be read, or not within the budget.
    pub is_partial: bool,
}

/// Looks into every tensor of a file, into one with a NaN up to the first. At most `budget_bytes` are read, which
/// becomes what is left of it.
///
/// Not counted are an infinite number that is alone in its tensor, as the best loss so far, and a tensor of one finite
/// number and one infinite one, as the mask of an attention.
pub fn tensors_of(source: &dyn Source, file: &Entry, budget_bytes: &mut u64) -> Tensors {
    let Some(places) = places(source, file) else {
        return Tensors { is_partial: true, ..Tensors::default() };
    };
    let mut tensors = Tensors { is_partial: places.is_partial, ..Tensors::default() };
    for place in places.of.iter().filter(|place| place.length > 0) {
        tensors.size_bytes += place.length;
        match look(source, file, place, budget_bytes) {
            Some(seen) => match seen.verdict() {
                None => tensors.finite += 1,
                Some(value) => tensors.non_finite.push(NonFinite {
                    tensor: place.name.clone(),
                    value,
                    size_bytes: place.length,
                    is_mostly_nan: 2 * seen.nan_count >= seen.count,
                }),
            },
            None => tensors.is_partial = true,
        }
    }
    tensors
}

/// Whether all tensors of two files have the same numbers, but for the statistics of normalization layers, which move
/// without any learning. `None`: there are none that can be read in both, or they are larger than the budget. Reads up
/// to the first difference.
pub fn have_same_tensors(
    before: (&dyn Source, &Entry),
    after: (&dyn Source, &Entry),
    budget_bytes: &mut u64,
) -> Option<bool> {
    let learned = |(source, file): (&dyn Source, &Entry)| {
        let mut places = places(source, file).unwrap_or_default().of;
        places.retain(|place| !STATISTICS.iter().any(|end| place.name.ends_with(end)));
        places
    };
    let (of_before, of_after) = (learned(before), learned(after));
    if of_before.is_empty() || of_after.is_empty() {
        return None;
    }
    let is_alike = |(one, other): (&Place, &Place)| {
        (&one.name, one.float, one.length) == (&other.name, other.float, other.length)
    };
    if of_before.len() != of_after.len() || !of_before.iter().zip(&of_after).all(is_alike) {
        return Some(false);
    }
    for (one, other) in of_before.iter().zip(&of_after) {
        let mut at = 0;
        while at < one.length {
            let length = CHUNK_BYTES.min(one.length - at);
            *budget_bytes = budget_bytes.checked_sub(2 * length)?;
            let read = |(source, file): (&dyn Source, &Entry), place: &Place| {
                let bytes =
                    source.read_at(&file.path, place.offset + at, usize::try_from(length).ok()?).ok()?;
                (bytes.len() as u64 == length).then_some(bytes)
            };
            if read(before, one)? != read(after, other)? {
                return Some(false);
            }
            at += length;
        }
    }
    Some(true)
}

/// Where the tensors of a file are.
#[derive(Debug, Default)]
struct Places {
    of: Vec<Place>,
    /// Whether it may have floating point numbers elsewhere, or of another format.
    is_partial: bool,
}

/// None: they cannot be read. What is wrong with a file is found where its bytes are verified.
fn places(source: &dyn Source, file: &Entry) -> Option<Places> {
    match head(source, file, 4).as_slice() {
        b"PK\x03\x04" => of_archive(source, file).ok(),
        _ if file.path.ends_with(".safetensors") => of_safetensors(source, file).ok(),
        _ => None,
    }
}

/// What the numbers of a tensor are like, up to a part with a NaN; none: it cannot be read.
fn look(source: &dyn Source, file: &Entry, place: &Place, budget_bytes: &mut u64) -> Option<TensorScan> {
    let mut seen = TensorScan::default();
    // A tensor that is lost is most often so from its first number on.
    let (mut at, mut chunk_bytes) = (0, FIRST_CHUNK_BYTES);
    while at < place.length {
        let length = chunk_bytes.min(place.length - at);
        *budget_bytes = budget_bytes.checked_sub(length)?;
        let bytes = source.read_at(&file.path, place.offset + at, usize::try_from(length).ok()?).ok()?;
        if bytes.len() as u64 != length {
            return None;
        }
        seen.take(place.float, &bytes);
        if seen.nan_count > 0 {
            break;
        }
        (at, chunk_bytes) = (at + length, CHUNK_BYTES);
    }
    Some(seen)
}

/// Whether one of these numbers has all bits of the exponent, so that it is not finite, and whether one differs from
/// the first finite number. Without a branch, so that several are looked at at once.
macro_rules! scan {
    ($bits:ty, $bytes:expr, $exponent:expr, $first:expr) => {{
        let (exponent, first) = ($exponent as $bits, $first as $bits);
        let (mut is_special, mut differs): ($bits, $bits) = (0, 0);
        for number in $bytes.as_chunks::<{ size_of::<$bits>() }>().0 {
            let bits = <$bits>::from_le_bytes(*number);
            is_special |= <$bits>::from(bits & exponent == exponent);
            differs |= bits ^ first;
        }
        (is_special != 0, differs != 0)
    }};
}

/// What the numbers of a tensor are like.
#[derive(Default)]
struct TensorScan {
    nan_count: u64,
    has_inf: bool,
    has_negative_inf: bool,
    count: u64,
    /// The bits of the first finite number.
    finite: Option<u64>,
    differs: bool,
}

impl TensorScan {
    fn take(&mut self, float: Float, bytes: &[u8]) {
        let width = float.width();
        let (exponent, _) = float.masks();
        let first = self.finite.unwrap_or_else(|| bits_of(bytes.get(..width).unwrap_or_default()));
        let (is_special, differs) = match float {
            Float::F16 | Float::Bf16 => scan!(u16, bytes, exponent, first),
            Float::F32 => scan!(u32, bytes, exponent, first),
            Float::F64 => scan!(u64, bytes, exponent, first),
        };
        if is_special {
            return bytes.chunks_exact(width).for_each(|number| self.take_one(float, bits_of(number)));
        }
        let count = (bytes.len() / width) as u64;
        if count > 0 {
            self.count += count;
            self.finite.get_or_insert(first);
            self.differs |= differs;
        }
    }

    fn take_one(&mut self, float: Float, bits: u64) {
        self.count += 1;
        let (exponent, mantissa) = float.masks();
        if bits & exponent != exponent {
            self.differs |= *self.finite.get_or_insert(bits) != bits;
        } else if bits & mantissa != 0 {
            self.nan_count += 1;
        } else if bits > exponent {
            self.has_negative_inf = true;
        } else {
            self.has_inf = true;
        }
    }

    fn verdict(&self) -> Option<&'static str> {
        if self.nan_count > 0 {
            return Some("NaN");
        }
        let is_mask = self.finite.is_some() && !self.differs && self.has_inf != self.has_negative_inf;
        let value = if self.has_inf { "inf" } else { "-inf" };
        ((self.has_inf || self.has_negative_inf) && self.count > 1 && !is_mask).then_some(value)
    }
}

fn bits_of(number: &[u8]) -> u64 {
    number.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// Types of whole numbers in torch.
const WHOLE_NUMBERS: [&str; 6] =
    ["LongStorage", "IntStorage", "ShortStorage", "CharStorage", "ByteStorage", "BoolStorage"];

impl Float {
    const fn width(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The bits of the exponent, and those of the mantissa.
    const fn masks(self) -> (u64, u64) {
        match self {
            Self::F16 => (0x7c00, 0x03ff),
            Self::Bf16 => (0x7f80, 0x007f),
            Self::F32 => (0x7f80_0000, 0x007f_ffff),
            Self::F64 => (0x7ff0_0000_0000_0000, 0x000f_ffff_ffff_ffff),
        }
    }

    /// By its name in safetensors, numpy (little-endian) or torch.
    fn named(name: &str) -> Option<Self> {
        match name {
            "F16" | "<f2" | "HalfStorage" => Some(Self::F16),
            "BF16" | "BFloat16Storage" => Some(Self::Bf16),
            "F32" | "<f4" | "FloatStorage" => Some(Self::F32),
            "F64" | "<f8" | "DoubleStorage" => Some(Self::F64),
            _ => None,
        }
    }
}

fn of_safetensors(source: &dyn Source, file: &Entry) -> Result<Places, Fault> {
    let mut reader = Reader::new(source, file);
    let header_bytes = u64::from_le_bytes(reader.array()?);
    if header_bytes > MAX_SAFETENSORS_HEADER_BYTES {
        return Err(Fault::malformed("it says a header longer than safetensors allows"));
    }
    let data_at = 8 + header_bytes;
    let (mut places, mut current) = (Vec::new(), (String::new(), None, None::<u64>));
    let mut is_partial = false;
    json::walk(&mut reader.part(8, header_bytes)?, &mut |keys, value| {
        let [name, key] = keys else { return };
        if current.0 != *name {
            current = (name.clone(), None, None);
        }
        match (key.as_str(), value) {
            ("dtype", json::Value::Text(dtype)) => {
                current.1 = Float::named(&dtype);
                is_partial |= current.1.is_none() && dtype.contains('F');
            }
            ("data_offsets", json::Value::Integer(offset)) => {
                match (u64::try_from(offset).ok(), current.2.take()) {
                    // The type comes before the offsets in what every writer makes.
                    (Some(end), Some(begin)) if begin <= end && places.len() < MAX_MEMO => {
                        let place = |float| Place {
                            name: name.clone(),
                            float,
                            offset: data_at + begin,
                            length: end - begin,
                        };
                        places.extend(current.1.map(place));
                    }
                    (begin, _) => current.2 = begin,
                }
            }
            _ => {}
        }
    })?;
    is_partial |= places.len() >= MAX_MEMO;
    Ok(Places { of: places, is_partial })
}

fn of_archive(source: &dyn Source, file: &Entry) -> Result<Places, Fault> {
    let mut reader = Reader::new(source, file);
    let directory = ZipDirectory::read(&mut reader, MAX_ZIP_ENTRIES, MAX_ZIP_DIRECTORY_BYTES)?;
    let stored = || directory.entries.iter().filter(|entry| entry.is_stored());
    let pickle = stored().find_map(|entry| Some((entry, entry.name.strip_suffix("data.pkl")?)));
    match pickle {
        Some((entry, folder)) => of_torch(&mut reader, &directory, entry, folder),
        None => {
            let of: Vec<Place> = stored().filter_map(|entry| npy(&mut reader, &directory, entry)).collect();
            // An array of whole numbers is not distinguished from one that cannot be read.
            Ok(Places { is_partial: of.len() < directory.entries.len(), of })
        }
    }
}

fn of_torch(
    reader: &mut Reader,
    directory: &ZipDirectory,
    pickle: &ZipEntry,
    folder: &str,
) -> Result<Places, Fault> {
    let at = directory.data_at(reader, pickle)?;
    let (mut floats, mut is_partial) = (Vec::new(), false);
    // A storage is named by `storage`, its type, its key, its device and its length, one after the other.
    let (mut is_storage, mut float) = (false, None);
    let walked = pickle::walk(&mut reader.part(at, pickle.size_bytes)?, &mut |_, literal| match literal {
        Literal::Text("storage") => (is_storage, float) = (true, None),
        Literal::Global(name) if is_storage => {
            float = Float::named(name);
            is_partial |= float.is_none() && !WHOLE_NUMBERS.contains(&name);
        }
        Literal::Text(key) if is_storage => {
            is_storage = false;
            if let Some(float) = float.filter(|_| floats.len() < MAX_MEMO) {
                floats.push((format!("{folder}data/{key}"), float));
            }
        }
        _ => is_storage = false,
    });
    walked.map_err(|(fault, _)| fault)?;
    floats.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    floats.dedup_by(|one, other| one.0 == other.0);
    let of_entry = |entry: &ZipEntry| {
        let at = floats.binary_search_by(|(name, _)| name.as_str().cmp(&entry.name)).ok()?;
        let (name, float) = &floats[at];
        let offset = directory.data_at(reader, entry).ok()?;
        let name = name.strip_prefix(folder).unwrap_or(name).to_owned();
        Some(Place { name, float: *float, offset, length: entry.size_bytes })
    };
    let of: Vec<Place> =
        directory.entries.iter().filter(|entry| entry.is_stored()).filter_map(of_entry).collect();
    is_partial |= of.len() < floats.len() || floats.len() >= MAX_MEMO;
    Ok(Places { of, is_partial })
}

/// The numbers of an array in a npz.
fn npy(reader: &mut Reader, directory: &ZipDirectory, entry: &ZipEntry) -> Option<Place> {
    let name = entry.name.strip_suffix(".npy")?;
    let at = directory.data_at(reader, entry).ok()?;
    let start = reader.piece(at, usize::try_from(entry.size_bytes.min(12)).ok()?).ok()?;
    let (length_at, width) = match start.get(..7)? {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1] => (8, 2),
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3] => (8, 4),
        _ => return None,
    };
    let length = start.get(length_at..length_at + width)?;
    let length = length.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let header_at = (length_at + width) as u64;
    let data_at = header_at + length;
    if length > MAX_NPY_HEADER_BYTES || data_at > entry.size_bytes {
        return None;
    }
    let header = reader.piece(at + header_at, usize::try_from(length).ok()?).ok()?;
    let header = String::from_utf8_lossy(&header);
    let (_, described) = header.split_once("'descr':")?;
    let float = Float::named(described.trim_start().strip_prefix('\'')?.split('\'').next()?)?;
    Some(Place { name: name.to_owned(), float, offset: at + data_at, length: entry.size_bytes - data_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn safetensors(tensors: &[(&str, &str, Vec<u8>)]) -> Vec<u8> {
        let (mut header, mut data) = (Vec::new(), Vec::new());
        for (name, dtype, bytes) in tensors {
            let begin = data.len();
            data.extend_from_slice(bytes);
            header.push(format!(
                r#""{name}":{{"dtype":"{dtype}","shape":[1],"data_offsets":[{begin},{}]}}"#,
                data.len()
            ));
        }
        let header = format!(r#"{{"__metadata__":{{"step":"3"}},{}}}"#, header.join(","));
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
    }

    /// An archive of members that are stored as they are.
    fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in members {
            let (offset, size) = (bytes.len() as u32, content.len() as u32);
            let sizes = [size.to_le_bytes(), size.to_le_bytes()].concat();
            let names = [&(name.len() as u16).to_le_bytes()[..], &[0, 0]].concat();
            bytes.extend(
                [&b"PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0"[..], &sizes, &names, name.as_bytes(), content]
                    .concat(),
            );
            let fixed =
                [&b"PK\x01\x02\x0a\0\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0"[..], &sizes, &names, &[0; 10]].concat();
            directory.extend([&fixed[..], &offset.to_le_bytes(), name.as_bytes()].concat());
        }
        let count = (members.len() as u16).to_le_bytes();
        let (length, offset) = ((directory.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
        [&bytes[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &length, &offset, &[0, 0]].concat()
    }

    fn npy(values: &[f32]) -> Vec<u8> {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
        [&b"\x93NUMPY\x01\0"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), &floats(values)]
            .concat()
    }

    /// A dictionary of two tensors as protocol 2 has it, of which the second has the type of the first from the memo.
    fn torch_pickle() -> Vec<u8> {
        let storage = |global: &[u8], key: &str| {
            let key = [&b"X\x01\0\0\0"[..], key.as_bytes()].concat();
            [&b"(X\x07\0\0\0storage"[..], global, &key, b"X\x03\0\0\0cpuK\x02tQ"].concat()
        };
        let first = storage(b"ctorch\nFloatStorage\nq\x01", "0");
        [b"\x80\x02}(X\x01\0\0\0a", &first[..], b"X\x01\0\0\0b", &storage(b"h\x01", "1"), b"u."].concat()
    }

    fn found(path: &str, bytes: Vec<u8>) -> Option<(String, &'static str)> {
        found_within(path, bytes, u64::MAX)
    }

    fn found_within(path: &str, bytes: Vec<u8>, mut budget_bytes: u64) -> Option<(String, &'static str)> {
        let mut tree = Tree::default();
        tree.add(path, bytes);
        let listing = tree.listing();
        let found = tensors_of(&tree, listing.file(path).unwrap(), &mut budget_bytes);
        found.non_finite.into_iter().next().map(|found| (found.tensor, found.value))
    }

    /// Proves that a NaN is found in every format and type that can be read, by the name of its tensor, within the bytes that may be read.
    #[test]
    fn a_nan_is_found_without_loading() {
        let (fine, lost) = (floats(&[1.0, -2.0]), floats(&[1.0, f32::NAN]));
        let one = |dtype: &str, bytes: &[u8]| {
            safetensors(&[
                ("a", "F32", fine.clone()),
                ("ids", "I64", vec![0xff; 8]),
                ("w", dtype, bytes.to_vec()),
            ])
        };
        assert_eq!(found("m.safetensors", one("F32", &fine)), None);
        let hit = Some(("w".to_owned(), "NaN"));
        assert_eq!(found("m.safetensors", one("F32", &lost)), hit);
        assert_eq!(found("m.safetensors", one("BF16", &[0x80, 0x3f, 0xc0, 0x7f])), hit);
        assert_eq!(found("m.safetensors", one("F16", &[0, 0x3c, 0, 0x7e])), hit);
        assert_eq!(found("m.safetensors", one("F64", &f64::NAN.to_le_bytes())), hit);
        assert_eq!(found("m.safetensors", one("U8", &[0xff; 8])), None);
        assert_eq!(
            found_within("m.safetensors", one("F32", &lost), 12),
            None,
            "it is beyond what may be read"
        );
        assert_eq!(found("m.npz", archive(&[("w.npy", npy(&[1.0, 2.0, f32::NAN]))])), hit);
        assert_eq!(found("m.npz", archive(&[("w.npy", npy(&[1.0, 2.0, 3.0]))])), None);
        let torch = |second: &[u8]| {
            archive(&[
                ("ckpt/data.pkl", torch_pickle()),
                ("ckpt/data/0", fine.clone()),
                ("ckpt/data/1", second.to_vec()),
            ])
        };
        assert_eq!(found("ckpt.pt", torch(&fine)), None);
        assert_eq!(found("ckpt.pt", torch(&lost)), Some(("data/1".into(), "NaN")));
        for cut in 0..40 {
            let bytes = torch(&lost);
            let _ = found("ckpt.pt", bytes[..bytes.len() - cut * 7].to_vec());
        }
    }

    /// Proves that the same numbers are found whatever else is in the files, that statistics do not count, and that
    /// nothing is answered about what cannot be read, or not within the budget.
    #[test]
    fn tensors_are_compared_without_loading() {
        let same = |before: &[u8], after: &[u8], mut budget_bytes: u64| {
            let [one, other] = [before, after].map(|bytes| {
                let mut tree = Tree::default();
                tree.add("m.safetensors", bytes.to_vec());
                tree
            });
            let (listing, other_listing) = (one.listing(), other.listing());
            let file = |listing: &'_ crate::Listing| listing.file("m.safetensors").unwrap().clone();
            have_same_tensors((&one, &file(&listing)), (&other, &file(&other_listing)), &mut budget_bytes)
        };
        let of = |weight: f32, mean: f32| {
            safetensors(&[
                ("n.running_mean", "F32", floats(&[mean])),
                ("step", "I64", (weight as i64).to_le_bytes().to_vec()),
                ("w", "F32", floats(&[weight, 1.0])),
            ])
        };
        assert_eq!(same(&of(0.5, 1.0), &of(0.25, 1.0), u64::MAX), Some(false));
        assert_eq!(same(&of(0.5, 1.0), &of(0.5, 2.0), u64::MAX), Some(true));
        assert_eq!(same(&of(0.5, 1.0), &of(0.5, 2.0), 15), None, "two tensors of 8 bytes");
        assert_eq!(same(&of(0.5, 1.0), b"no tensors", u64::MAX), None);
        let larger = safetensors(&[("w", "F32", floats(&[0.5, 1.0, 2.0]))]);
        assert_eq!(same(&of(0.5, 1.0), &larger, u64::MAX), Some(false));
        let saved = |weight: f32, log: &[u8]| {
            let tensors =
                [("c/data/0", floats(&[weight])), ("c/data/1", floats(&[1.0])), ("c/log", log.to_vec())];
            archive(&[&[("c/data.pkl", torch_pickle())], &tensors[..]].concat())
        };
        assert_eq!(same(&saved(0.5, b"step 1"), &saved(0.5, b"step 2"), u64::MAX), Some(true));
        assert_eq!(same(&saved(0.5, b"step 1"), &saved(0.75, b"step 1"), u64::MAX), Some(false));
    }

    /// Proves that every tensor is looked into, that those which are finite are counted, and that what cannot be read,
    /// as a format of numbers, a file or what is beyond the budget, is not taken for finite.
    #[test]
    fn what_was_not_read_is_known() {
        let of = |path: &str, bytes: Vec<u8>, mut budget_bytes: u64| {
            let mut tree = Tree::default();
            tree.add(path, bytes);
            let tensors = tensors_of(&tree, tree.listing().file(path).unwrap(), &mut budget_bytes);
            (tensors.finite, tensors.non_finite.len(), tensors.is_partial)
        };
        let three = |dtype: &str| {
            safetensors(&[
                ("a", "F32", floats(&[1.0, f32::NAN])),
                ("b", dtype, floats(&[1.0])),
                ("c", "F32", floats(&[f32::NAN])),
            ])
        };
        assert_eq!(of("m.safetensors", three("F32"), u64::MAX), (1, 2, false));
        assert_eq!(of("m.safetensors", three("I32"), u64::MAX), (0, 2, false));
        assert_eq!(of("m.safetensors", three("F8_E4M3"), u64::MAX), (0, 2, true));
        assert_eq!(of("m.safetensors", three("F32"), 12), (1, 1, true));
        assert_eq!(of("m.pkl", b"\x80\x04N.".to_vec(), u64::MAX), (0, 0, true));
        let long: Vec<f32> = (0..400_000).map(|number| number as f32).collect();
        let mut lost = long.clone();
        *lost.last_mut().unwrap() = f32::NEG_INFINITY;
        assert_eq!(of("m.safetensors", safetensors(&[("w", "F32", floats(&long))]), u64::MAX), (1, 0, false));
        assert_eq!(of("m.safetensors", safetensors(&[("w", "F32", floats(&lost))]), u64::MAX), (0, 1, false));
        let mask: Vec<f32> =
            (0..400_000).map(|at| if at > 300_000 { f32::NEG_INFINITY } else { 0.0 }).collect();
        assert_eq!(of("m.safetensors", safetensors(&[("w", "F32", floats(&mask))]), u64::MAX), (1, 0, false));
    }

    /// Proves that infinite weights are found, and that masks and single numbers that begin as infinite are not taken for such.
    #[test]
    fn a_mask_is_no_harm() {
        let of = |values: &[f32]| {
            found("m.safetensors", safetensors(&[("w", "F32", floats(values))])).map(|it| it.1)
        };
        let inf = f32::INFINITY;
        assert_eq!(of(&[1.0, 2.0, inf]), Some("inf"));
        assert_eq!(of(&[1.0, 2.0, -inf]), Some("-inf"));
        assert_eq!(of(&[inf, inf]), Some("inf"), "nothing is finite");
        assert_eq!(of(&[0.0, -inf, inf]), Some("inf"));
        assert_eq!(of(&[0.0, -inf, 0.0, -inf]), None, "a mask");
        assert_eq!(of(&[inf]), None, "the best loss so far");
        assert_eq!(of(&[]), None);
    }
}
