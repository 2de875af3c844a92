//! Which tensor goes into which file, and where. The same tensors make the same files, whatever their values; so a
//! file whose tensors did not change has the same bytes as in the last checkpoint, and need not be written again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::bulk::safetensors::{Dtype, TensorLayout, TensorSlice, check_name, check_slice, header};
use crate::error::TensorError;

/// Tensors are put into files of at most so many bytes; a larger tensor has one for itself.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// The most files that one group of tensors may make: their numbers have five digits.
const MAX_FILES: usize = 99_999;

/// A tensor without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Unique in its checkpoint file.
    pub name: String,
    /// What its elements are.
    pub dtype: Dtype,
    /// Its axes; none for a single number.
    pub shape: Vec<u64>,
    /// Tensors of different groups are never in one file. Frozen tensors belong in a separate group, so that their
    /// files stay unchanged.
    pub group: u32,
    /// The tensor that this is a part of, where several ranks hold parts of it.
    pub slice: Option<TensorSlice>,
}

impl TensorSpec {
    /// A whole tensor of the first group.
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into(), group: 0, slice: None }
    }
}

/// A file of tensors before there are bytes in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePlan {
    pub name: String,
    /// Everything in front of the tensors' bytes.
    pub header: Vec<u8>,
    /// The tensors in the order of their bytes, as numbers in the list that was given, with their sizes.
    pub tensors: Vec<(usize, usize)>,
    pub size_bytes: usize,
}

/// Plans the files `STEM-00001-of-00003.safetensors` …, or `STEM.safetensors` when one is enough.
///
/// # Errors
/// [`TensorError::Rule`] for a name that is used twice or a shape that has no size.
pub(crate) fn plan_files(
    stem: &str,
    specs: &[TensorSpec],
    metadata: &BTreeMap<String, String>,
    max_file_bytes: u64,
) -> Result<Vec<FilePlan>, TensorError> {
    let sizes = sizes_bytes(specs)?;
    let files = split(specs, &sizes, max_file_bytes);
    if files.len() > MAX_FILES {
        return Err(TensorError::rule(format!(
            "`{stem}` needs {} files; at most {MAX_FILES} are possible",
            files.len()
        )));
    }
    let count = files.len();
    let plan = |(index, tensors): (usize, Vec<usize>)| {
        let placed: Vec<_> = tensors.iter().map(|tensor| place(&specs[*tensor], sizes[*tensor])).collect();
        let header = header(&placed, metadata)?;
        let tensors: Vec<_> = tensors
            .into_iter()
            .map(|tensor| Ok((tensor, to_usize(sizes[tensor])?)))
            .collect::<Result<_, TensorError>>()?;
        let size_bytes = tensors.iter().try_fold(header.len(), |sum, (_, size)| sum.checked_add(*size));
        let size_bytes =
            size_bytes.ok_or_else(|| TensorError::rule("the tensors are larger than any memory"))?;
        Ok(FilePlan { name: file_name(stem, index, count), header, tensors, size_bytes })
    };
    files.into_iter().enumerate().map(plan).collect()
}

fn sizes_bytes(specs: &[TensorSpec]) -> Result<Vec<u64>, TensorError> {
    let mut names = BTreeSet::new();
    let size = |spec: &TensorSpec| {
        check_name(&spec.name)?;
        if let Some(slice) = &spec.slice {
            check_slice(&spec.name, &spec.shape, slice)?;
        }
        spec.dtype.size_bytes(&spec.shape).ok_or_else(|| {
            TensorError::rule(format!(
                "the size of `{}` ({}, shape {:?}) is not a valid number of bytes",
                spec.name, spec.dtype, spec.shape
            ))
        })
    };
    let sizes = specs.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    match specs.iter().find(|spec| !names.insert(&spec.name)) {
        Some(twice) => Err(TensorError::rule(format!("the tensor `{}` is given twice", twice.name))),
        None => Ok(sizes),
    }
}

/// The tensors of each file, by group, then wider elements first so that every tensor is aligned, then as given.
fn split(specs: &[TensorSpec], sizes: &[u64], max_file_bytes: u64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|index| (specs[*index].group, Reverse(specs[*index].dtype.bits())));
    let mut files: Vec<Vec<usize>> = Vec::new();
    let mut open_bytes = 0u64;
    for index in order {
        let fits = |file: &Vec<usize>| {
            specs[file[0]].group == specs[index].group
                && open_bytes.saturating_add(sizes[index]) <= max_file_bytes
        };
        match files.last_mut().filter(|file| fits(file)) {
            Some(file) => {
                file.push(index);
                open_bytes += sizes[index];
            }
            None => {
                files.push(vec![index]);
                open_bytes = sizes[index];
            }
        }
    }
    files
}

fn place(spec: &TensorSpec, size_bytes: u64) -> TensorLayout<'_> {
    TensorLayout {
        name: &spec.name,
        dtype: spec.dtype,
        shape: &spec.shape,
        size_bytes,
        slice: spec.slice.as_ref(),
    }
}

fn file_name(stem: &str, index: usize, count: usize) -> String {
    match count {
        1 => format!("{stem}.safetensors"),
        _ => format!("{stem}-{:05}-of-{count:05}.safetensors", index + 1),
    }
}

fn to_usize(size: u64) -> Result<usize, TensorError> {
    usize::try_from(size).map_err(|_| TensorError::rule("a tensor is larger than any memory"))
}
