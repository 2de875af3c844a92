//! safetensors, HDF5 and the manifests of OCDBT (Orbax): headers that say how long the file is.

use std::cmp::Ordering;

use super::json;
use crate::limits::MAX_SAFETENSORS_HEADER_BYTES;
use crate::source::{Fault, Reader};

/// Checks that the header of a safetensors file says its length; reports what its metadata holds.
pub(crate) fn safetensors(reader: &mut Reader, metadata: &mut dyn FnMut(&str, &str)) -> Result<(), Fault> {
    let length = u64::from_le_bytes(reader.array()?);
    if length > MAX_SAFETENSORS_HEADER_BYTES {
        return Err(Fault::malformed("it says a header longer than safetensors allows"));
    }
    let mut end = 0_u64;
    let mut wrong = false;
    let mut header = reader.part(8, length)?;
    json::walk(&mut header, &mut |keys, value| match (keys, value) {
        ([_, key], json::Value::Integer(offset)) if key == "data_offsets" => match u64::try_from(offset) {
            Ok(offset) => end = end.max(offset),
            Err(_) => wrong = true,
        },
        ([section, key], json::Value::Text(text)) if section == "__metadata__" => metadata(key, &text),
        _ => {}
    })?;
    let said = end.checked_add(8 + length).filter(|_| !wrong);
    ends_at(reader, said.unwrap_or(0), "its header says another length than it has")
}

pub(crate) const HDF5_MAGIC: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Checks the end of an HDF5 file, which its superblock says, against its length.
pub(crate) fn hdf5(reader: &mut Reader) -> Result<(), Fault> {
    reader.skip(8)?;
    let version = reader.byte()?;
    let (width_at, base_at, end_at) = match version {
        0 => (13, 24, 2),
        1 => (13, 28, 2),
        2 | 3 => (9, 12, 2),
        _ => return Err(Fault::Beyond(format!("it has a superblock of version {version}"))),
    };
    if reader.piece(width_at, 1)? != [8] {
        return Err(Fault::Beyond("its addresses are not of eight bytes".to_owned()));
    }
    // Open for writing: the flag is cleared when the file is closed.
    if version == 3 && reader.piece(11, 1)?[0] & 1 != 0 {
        return Err(Fault::malformed("it was not closed by the process that wrote it"));
    }
    let mut address = |at: u64| {
        let bytes = reader.piece(base_at + 8 * at, 8)?;
        Ok::<_, Fault>(bytes.try_into().map_or(0, u64::from_le_bytes))
    };
    let (base, end) = (address(0)?, address(end_at)?);
    if base != 0 {
        return Err(Fault::Beyond("it begins after a block of its user".to_owned()));
    }
    ends_at(reader, end, "it is longer than its superblock says: not closed yet")
}

pub(crate) const OCDBT_MAGIC: &[u8] = b"\x0c\xdb\x3a\x2a";

/// Checks the length that a manifest of OCDBT says.
pub(crate) fn ocdbt_manifest(reader: &mut Reader) -> Result<(), Fault> {
    reader.skip(4)?;
    let said = u64::from_le_bytes(reader.array()?);
    ends_at(reader, said, "its header says another length than it has")
}

/// Compares the length of a file with the one it says; `longer`: what is wrong where it has more.
fn ends_at(reader: &Reader, said: u64, longer: &str) -> Result<(), Fault> {
    match said.cmp(&reader.len()) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Fault::Ends),
        Ordering::Less => Err(Fault::malformed(longer)),
    }
}
