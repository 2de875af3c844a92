//! The safetensors format: a length in eight bytes, a JSON object that names tensors, and their bytes without gaps.
//! <https://github.com/huggingface/safetensors#format>. Written so that the tensors' bytes begin on a block; any
//! reader of the format opens it. Reading keeps the bounds of the format: no input makes it panic, and none makes it
//! take more memory than a small multiple of the header.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bulk::mapping::BLOCK_BYTES;
use crate::error::TensorError;

/// The largest header of the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// The most axes of a tensor that are read; more than any framework has.
const MAX_AXES: usize = 64;
/// The bytes of the length in front.
pub(crate) const LENGTH_BYTES: usize = 8;
/// The key in the header that names no tensor.
const METADATA_KEY: &str = "__metadata__";
/// The metadata key under which parts name the tensors that they belong to.
const SLICES_KEY: &str = "trackway.slices";

/// What the elements of a tensor are; named as the format names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dtype {
    #[serde(rename = "BOOL")]
    Bool,
    F4,
    #[serde(rename = "F6_E2M3")]
    F6E2M3,
    #[serde(rename = "F6_E3M2")]
    F6E3M2,
    U8,
    I8,
    #[serde(rename = "F8_E5M2")]
    F8E5M2,
    #[serde(rename = "F8_E4M3")]
    F8E4M3,
    #[serde(rename = "F8_E8M0")]
    F8E8M0,
    #[serde(rename = "F8_E4M3FNUZ")]
    F8E4M3Fnuz,
    #[serde(rename = "F8_E5M2FNUZ")]
    F8E5M2Fnuz,
    I16,
    U16,
    F16,
    #[serde(rename = "BF16")]
    Bf16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

impl Dtype {
    /// Bits of one element.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Self::F4 => 4,
            Self::F6E2M3 | Self::F6E3M2 => 6,
            Self::Bool
            | Self::U8
            | Self::I8
            | Self::F8E5M2
            | Self::F8E4M3
            | Self::F8E8M0
            | Self::F8E4M3Fnuz
            | Self::F8E5M2Fnuz => 8,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::C64 | Self::F64 | Self::I64 | Self::U64 => 64,
        }
    }

    /// Bytes of a tensor of that shape; `None` when there is no such number, or it is not whole.
    #[must_use]
    pub fn size_bytes(self, shape: &[u64]) -> Option<u64> {
        let elements = shape.iter().try_fold(1u64, |product, axis| product.checked_mul(*axis))?;
        let bits = elements.checked_mul(self.bits())?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// Of which tensor another is a part: what one rank of several holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSlice {
    /// The shape of the whole tensor.
    pub shape: Vec<u64>,
    /// Where the part begins on each axis.
    pub offset: Vec<u64>,
}

/// The header of a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Strings that are stored with the tensors.
    pub metadata: BTreeMap<String, String>,
    /// The tensors, in the order of their bytes.
    pub tensors: Vec<TensorInfo>,
}

/// A tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// What its elements are.
    pub dtype: Dtype,
    /// Its axes; none for a single number.
    pub shape: Vec<u64>,
    /// Where its bytes begin in the file.
    pub offset_bytes: u64,
    pub size_bytes: u64,
    /// The tensor it is a part of; `None`: it is whole.
    pub slice: Option<TensorSlice>,
}

impl TensorInfo {
    /// The tensor that it is a part of, or its own shape.
    #[must_use]
    pub fn whole_shape(&self) -> &[u64] {
        self.slice.as_ref().map_or(&self.shape, |slice| &slice.shape)
    }

    /// Where it begins in the whole tensor.
    #[must_use]
    pub fn offset(&self) -> Vec<u64> {
        self.slice.as_ref().map_or_else(|| vec![0; self.shape.len()], |slice| slice.offset.clone())
    }
}

/// How long the header is, with the length itself, from the first bytes of a file.
pub(crate) fn header_bytes(first: [u8; LENGTH_BYTES], file_bytes: u64) -> Result<u64, TensorError> {
    let json_bytes = u64::from_le_bytes(first);
    if json_bytes > MAX_HEADER_BYTES {
        let rule =
            format!("a header of {json_bytes} bytes is too large; the format has at most {MAX_HEADER_BYTES}");
        return Err(TensorError::rule(rule));
    }
    let header_bytes = json_bytes + LENGTH_BYTES as u64;
    if header_bytes > file_bytes {
        return Err(TensorError::rule(format!("a header of {header_bytes} bytes in a file of {file_bytes}")));
    }
    Ok(header_bytes)
}

impl Header {
    /// Reads the header of a file of `file_bytes`; `bytes` begin with the file and hold the header at least.
    ///
    /// # Errors
    /// When they are no safetensors file, or its tensors do not fill it exactly.
    pub fn from_bytes(bytes: &[u8], file_bytes: u64) -> Result<Self, TensorError> {
        let first =
            bytes.first_chunk().ok_or_else(|| TensorError::rule("a tensor file has at least eight bytes"))?;
        let header_bytes = header_bytes(*first, file_bytes)?;
        let json = usize::try_from(header_bytes)
            .ok()
            .and_then(|end| bytes.get(LENGTH_BYTES..end))
            .ok_or_else(|| TensorError::rule("the header ends past the end of the bytes"))?;
        if json.first() != Some(&b'{') {
            return Err(TensorError::rule("a header begins with `{`"));
        }
        let raw: RawHeader = serde_json::from_slice(json)?;
        raw.check(header_bytes, file_bytes)
    }
}

/// A header as it is written: names in the order of their bytes.
struct RawHeader {
    metadata: BTreeMap<String, String>,
    tensors: Vec<(String, RawTensor)>,
}

#[derive(Serialize, Deserialize)]
struct RawTensor {
    dtype: Dtype,
    shape: Axes,
    data_offsets: (u64, u64),
}

#[derive(Serialize)]
struct Axes(Vec<u64>);

impl RawHeader {
    fn check(mut self, header_bytes: u64, file_bytes: u64) -> Result<Header, TensorError> {
        self.tensors.sort_by_key(|(_, tensor)| tensor.data_offsets);
        let mut slices: BTreeMap<String, TensorSlice> = match self.metadata.get(SLICES_KEY) {
            Some(text) => serde_json::from_str(text)?,
            None => BTreeMap::new(),
        };
        let mut names = BTreeSet::new();
        let mut end = 0;
        let mut tensors = Vec::with_capacity(self.tensors.len());
        for (name, RawTensor { dtype, shape: Axes(shape), data_offsets: (from, to) }) in self.tensors {
            if !names.insert(name.clone()) {
                return Err(TensorError::rule(format!("the tensor `{name}` is listed twice")));
            }
            let size_bytes = dtype.size_bytes(&shape);
            if from != end || to.checked_sub(from) != size_bytes {
                let rule = format!(
                    "bytes {from} to {to} of the tensor `{name}` contradict its shape or the other tensors"
                );
                return Err(TensorError::rule(rule));
            }
            end = to;
            let slice = slices.remove(&name);
            if let Some(slice) = &slice {
                check_slice(&name, &shape, slice)?;
            }
            let offset_bytes = header_bytes.saturating_add(from);
            tensors.push(TensorInfo { name, dtype, shape, offset_bytes, size_bytes: to - from, slice });
        }
        if header_bytes.checked_add(end) != Some(file_bytes) {
            return Err(TensorError::rule(format!(
                "tensors of {end} bytes do not fill a file of {file_bytes}"
            )));
        }
        Ok(Header { metadata: self.metadata, tensors })
    }
}

/// Checks that a part is within its whole.
pub(crate) fn check_slice(name: &str, shape: &[u64], slice: &TensorSlice) -> Result<(), TensorError> {
    let inside = |((part, whole), offset): ((&u64, &u64), &u64)| {
        offset.checked_add(*part).is_some_and(|end| end <= *whole)
    };
    let axes = shape.len() == slice.shape.len() && shape.len() == slice.offset.len();
    if axes && shape.iter().zip(&slice.shape).zip(&slice.offset).all(inside) {
        return Ok(());
    }
    Err(TensorError::rule(format!(
        "`{name}` of shape {shape:?} at {:?} does not fit into a tensor of shape {:?}",
        slice.offset, slice.shape
    )))
}

/// A tensor to be laid out in a file.
pub(crate) struct TensorLayout<'a> {
    pub name: &'a str,
    pub dtype: Dtype,
    pub shape: &'a [u64],
    pub size_bytes: u64,
    pub slice: Option<&'a TensorSlice>,
}

/// The first bytes of a file with these tensors, up to where their bytes begin: a whole number of blocks.
///
/// # Errors
/// When the header would be larger than the format allows.
pub(crate) fn header(
    tensors: &[TensorLayout<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, TensorError> {
    let json = serde_json::to_vec(&to_raw(tensors, metadata)?)?;
    let header_bytes = (LENGTH_BYTES + json.len()).next_multiple_of(BLOCK_BYTES);
    let json_bytes = (header_bytes - LENGTH_BYTES) as u64;
    if json_bytes > MAX_HEADER_BYTES {
        return Err(TensorError::rule(format!(
            "{} tensors do not fit into the header of one file",
            tensors.len()
        )));
    }
    let mut bytes = Vec::with_capacity(header_bytes);
    bytes.extend(json_bytes.to_le_bytes());
    bytes.extend(json);
    bytes.resize(header_bytes, b' ');
    Ok(bytes)
}

fn to_raw(
    tensors: &[TensorLayout<'_>],
    metadata: &BTreeMap<String, String>,
) -> Result<RawHeader, TensorError> {
    let mut metadata = metadata.clone();
    let slices: BTreeMap<_, _> =
        tensors.iter().filter_map(|tensor| Some((tensor.name, tensor.slice?))).collect();
    if !slices.is_empty() {
        metadata.insert(SLICES_KEY.into(), serde_json::to_string(&slices)?);
    }
    let mut end = 0;
    let tensors = tensors.iter().map(|tensor| {
        let from = end;
        end += tensor.size_bytes;
        let raw =
            RawTensor { dtype: tensor.dtype, shape: Axes(tensor.shape.to_vec()), data_offsets: (from, end) };
        (tensor.name.to_owned(), raw)
    });
    Ok(RawHeader { tensors: tensors.collect(), metadata })
}

/// Checks what the format leaves to its writers: a name that names a tensor.
pub(crate) fn check_name(name: &str) -> Result<(), TensorError> {
    if name == METADATA_KEY {
        return Err(TensorError::rule(format!("no tensor can be called `{METADATA_KEY}`")));
    }
    Ok(())
}

impl Serialize for RawHeader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.metadata.is_empty() {
            map.serialize_entry(METADATA_KEY, &self.metadata)?;
        }
        for (name, tensor) in &self.tensors {
            map.serialize_entry(name, tensor)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = RawHeader;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut metadata = None;
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name != METADATA_KEY {
                        tensors.push((name, map.next_value()?));
                    } else if metadata.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom(format!("`{METADATA_KEY}` occurs twice")));
                    }
                }
                Ok(RawHeader { metadata: metadata.unwrap_or_default(), tensors })
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Axes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "at most {MAX_AXES} numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Axes, A::Error> {
                let mut axes = Vec::new();
                while let Some(axis) = numbers.next_element()? {
                    if axes.len() == MAX_AXES {
                        return Err(A::Error::invalid_length(MAX_AXES + 1, &self));
                    }
                    axes.push(axis);
                }
                Ok(Axes(axes))
            }
        }
        deserializer.deserialize_seq(Numbers)
    }
}
