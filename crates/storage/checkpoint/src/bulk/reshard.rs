//! Tensors, or parts of them, from the files of any number of ranks: for a run that continues with another world size.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use trackway_formats::checkpoint_manifest::ManifestFile;
use trackway_store::Disk;

use crate::bulk::mapping::Buffer;
use crate::bulk::memory::available_bytes;
use crate::bulk::read::{LoadError, TensorView, read_files, read_header};
use crate::bulk::safetensors::{Dtype, Header, TensorInfo, TensorSlice, check_slice};
use crate::error::{Defect, TensorError};

/// Every tensor begins at a multiple of this; enough for any element and any vector unit.
const TENSOR_ALIGNMENT_BYTES: usize = 64;

/// A tensor that is wanted, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    pub name: String,
    /// Where the part begins on each axis, and its shape; `None`: the whole tensor.
    pub part: Option<(Vec<u64>, Vec<u64>)>,
}

/// Assembled tensors, in the order they were wanted.
#[derive(Debug)]
pub struct Tensors {
    buffer: Buffer,
    infos: Vec<TensorInfo>,
}

impl Tensors {
    /// The tensors.
    pub fn iter(&self) -> impl Iterator<Item = TensorView<'_>> {
        self.infos.iter().map(|info| {
            let begin = info.offset_bytes as usize;
            TensorView {
                info: info.clone(),
                bytes: &self.buffer.bytes()[begin..begin + info.size_bytes as usize],
            }
        })
    }
}

/// Assembles tensors from their parts in any of the files. Only files with some of them are read, one after the other
/// and verified as a whole, so that no more than the result and one file are in memory.
///
/// # Errors
/// [`LoadError::Defect`] when a file is damaged; [`LoadError::Tensors`] when a tensor is missing, incomplete, or
/// its parts contradict each other.
pub fn read_tensors(
    disk: &dyn Disk,
    folder: &Path,
    files: &[ManifestFile],
    wants: &[Want],
) -> Result<Tensors, LoadError> {
    let mut index = Index::default();
    for (number, file) in files.iter().enumerate() {
        index.add(number, read_header(disk, folder, file)?)?;
    }
    let plans = wants.iter().map(|want| index.plan(want)).collect::<Result<Vec<_>, _>>()?;
    let mut tensors = room_for(&plans)?;
    for (number, file) in files.iter().enumerate() {
        if plans.iter().any(|plan| plan.pieces.iter().any(|piece| piece.file == number)) {
            let loaded = read_files(disk, folder, std::slice::from_ref(file))?;
            let views = loaded[0].tensors()?;
            copy_pieces(number, &views, &plans, &mut tensors)?;
        }
    }
    Ok(tensors)
}

/// Where the parts of every tensor are.
#[derive(Default)]
struct Index(BTreeMap<String, Vec<Piece>>);

/// A part of a tensor in a file.
#[derive(Debug, Clone)]
struct Piece {
    file: usize,
    info: TensorInfo,
}

/// How a wanted tensor is assembled.
#[derive(Debug)]
struct Plan {
    name: String,
    dtype: Dtype,
    whole_shape: Vec<u64>,
    wanted: Area,
    size_bytes: u64,
    pieces: Vec<Piece>,
}

/// A stretch on every axis of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Area {
    offset: Vec<u64>,
    shape: Vec<u64>,
}

impl Area {
    fn of(info: &TensorInfo) -> Self {
        Self { offset: info.offset(), shape: info.shape.clone() }
    }

    fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// What two areas have in common; `None`: nothing.
    fn common(&self, other: &Self) -> Option<Self> {
        let mut common = Self { offset: Vec::new(), shape: Vec::new() };
        for axis in 0..self.shape.len() {
            let begin = self.offset[axis].max(other.offset[axis]);
            let end = (self.offset[axis] + self.shape[axis]).min(other.offset[axis] + other.shape[axis]);
            common.offset.push(begin);
            common.shape.push(end.checked_sub(begin).filter(|size| *size > 0)?);
        }
        Some(common)
    }
}

impl Index {
    fn add(&mut self, file: usize, header: Header) -> Result<(), TensorError> {
        for info in header.tensors {
            let pieces = self.0.entry(info.name.clone()).or_default();
            if let Some(first) = pieces.first()
                && (first.info.dtype, first.info.whole_shape()) != (info.dtype, info.whole_shape())
            {
                let rule =
                    format!("files disagree about the type or the shape of the tensor `{}`", info.name);
                return Err(TensorError::rule(rule));
            }
            // Where ranks hold the same part, any of them will do.
            if pieces.iter().all(|piece| Area::of(&piece.info) != Area::of(&info)) {
                pieces.push(Piece { file, info });
            }
        }
        Ok(())
    }

    fn plan(&self, want: &Want) -> Result<Plan, TensorError> {
        let name = &want.name;
        let missing = || TensorError::rule(format!("no file has the tensor `{name}`"));
        let pieces = self.0.get(name).ok_or_else(missing)?;
        let first = &pieces[0].info;
        let whole_shape = first.whole_shape().to_vec();
        let (offset, shape) =
            want.part.clone().unwrap_or_else(|| (vec![0; whole_shape.len()], whole_shape.clone()));
        check_slice(name, &shape, &TensorSlice { shape: whole_shape.clone(), offset: offset.clone() })?;
        let wanted = Area { offset, shape };
        let size_bytes = first.dtype.size_bytes(&wanted.shape).ok_or_else(|| {
            TensorError::rule(format!(
                "a part of shape {:?} of `{name}` is not a whole number of bytes",
                wanted.shape
            ))
        })?;
        let needed = |piece: &&Piece| wanted.common(&Area::of(&piece.info)).is_some();
        let pieces: Vec<Piece> = pieces.iter().filter(needed).cloned().collect();
        let plan = Plan { name: name.clone(), dtype: first.dtype, whole_shape, wanted, size_bytes, pieces };
        plan.check_complete()?;
        plan.check_bytes()?;
        Ok(plan)
    }
}

impl Plan {
    /// Checks that every wanted element is in exactly one piece.
    fn check_complete(&self) -> Result<(), TensorError> {
        let areas: Vec<Area> =
            self.pieces.iter().filter_map(|piece| self.wanted.common(&Area::of(&piece.info))).collect();
        let overlap = (1..areas.len())
            .any(|index| areas[..index].iter().any(|area| area.common(&areas[index]).is_some()));
        let found: u64 = areas.iter().map(Area::element_count).sum();
        let wanted = self.wanted.element_count();
        if overlap || found != wanted {
            let what = if overlap {
                "overlap".into()
            } else {
                format!("hold {found} of the {wanted} requested elements")
            };
            return Err(TensorError::rule(format!("the parts of the tensor `{}` {what}", self.name)));
        }
        Ok(())
    }

    /// Elements that are not whole bytes can only be copied as they are.
    fn check_bytes(&self) -> Result<(), TensorError> {
        let as_it_lies = self.pieces.iter().all(|piece| Area::of(&piece.info) == self.wanted);
        if self.dtype.bits().is_multiple_of(8) || as_it_lies {
            return Ok(());
        }
        Err(TensorError::rule(format!("the tensor `{}` of {} cannot be resharded", self.name, self.dtype)))
    }
}

fn room_for(plans: &[Plan]) -> Result<Tensors, LoadError> {
    let mut end = 0u64;
    let mut infos = Vec::with_capacity(plans.len());
    for plan in plans {
        let offset_bytes = end.next_multiple_of(TENSOR_ALIGNMENT_BYTES as u64);
        end = offset_bytes.saturating_add(plan.size_bytes);
        let slice = TensorSlice { shape: plan.whole_shape.clone(), offset: plan.wanted.offset.clone() };
        infos.push(TensorInfo {
            name: plan.name.clone(),
            dtype: plan.dtype,
            shape: plan.wanted.shape.clone(),
            offset_bytes,
            size_bytes: plan.size_bytes,
            slice: Some(slice).filter(|slice| slice.shape != plan.wanted.shape),
        });
    }
    let buffer = match usize::try_from(end) {
        Ok(size_bytes) if available_bytes().is_none_or(|left| size_bytes <= left) => Buffer::new(size_bytes),
        _ => Err(io::ErrorKind::OutOfMemory.into()),
    };
    let buffer = buffer.map_err(Defect::unreadable("tensors"))?;
    Ok(Tensors { buffer, infos })
}

/// Copies what one file has of the wanted tensors.
fn copy_pieces(
    file: usize,
    views: &[TensorView<'_>],
    plans: &[Plan],
    tensors: &mut Tensors,
) -> Result<(), TensorError> {
    for (plan, target) in plans.iter().zip(&tensors.infos) {
        let begin = target.offset_bytes as usize;
        let memory = &mut tensors.buffer.bytes_mut()[begin..begin + target.size_bytes as usize];
        for piece in plan.pieces.iter().filter(|piece| piece.file == file) {
            // The header that was planned with was read before the file was verified.
            let view = views.iter().find(|view| view.info == piece.info).ok_or_else(|| {
                TensorError::rule(format!("the file with `{}` changed while it was read", plan.name))
            })?;
            let source = Area::of(&view.info);
            if source == plan.wanted {
                memory.copy_from_slice(view.bytes);
            } else if let Some(common) = plan.wanted.common(&source) {
                let element_bytes = (plan.dtype.bits() / 8) as usize;
                copy_area(&common, element_bytes, (view.bytes, &source), (memory, &plan.wanted));
            }
        }
    }
    Ok(())
}

/// Copies an area that two tensors have in common, row by row.
fn copy_area(common: &Area, element_bytes: usize, from: (&[u8], &Area), to: (&mut [u8], &Area)) {
    let Some((row, outer)) = common.shape.split_last() else {
        to.0.copy_from_slice(from.0);
        return;
    };
    let row_bytes = *row as usize * element_bytes;
    let mut position = common.offset.clone();
    loop {
        let begin = |area: &Area| element_index(area, &position) * element_bytes;
        let (source, target) = (begin(from.1), begin(to.1));
        to.0[target..target + row_bytes].copy_from_slice(&from.0[source..source + row_bytes]);
        // The next row: like an odometer, from the last of the outer axes.
        let moved = (0..outer.len()).rev().any(|axis| {
            position[axis] += 1;
            if position[axis] < common.offset[axis] + common.shape[axis] {
                return true;
            }
            position[axis] = common.offset[axis];
            false
        });
        if !moved {
            return;
        }
    }
}

/// The number of an element in an area, counted with the last axis running fastest.
fn element_index(area: &Area, position: &[u64]) -> usize {
    let axes = area.shape.iter().zip(&area.offset).zip(position);
    axes.fold(0, |index, ((size, offset), position)| index * *size as usize + (position - offset) as usize)
}
