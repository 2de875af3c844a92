//! The formats of LightGBM and CatBoost that are not JSON.

use super::json;
use crate::source::{Fault, Reader};

pub(crate) const LIGHTGBM_MAGIC: &[u8] = b"tree\nversion=";
pub(crate) const CATBOOST_MAGIC: &[u8] = b"CBM1";
/// A snapshot of a training on CPUs: a length and a label, before a length and the settings in JSON.
pub(crate) const CATBOOST_SNAPSHOT_MAGIC: &[u8] = b"\x03\0\0\0CPU";

/// The end of a snapshot: iterations, iterations that did not count (4 bytes each) and seconds (8 bytes).
const SNAPSHOT_END_BYTES: usize = 16;
/// The longest name of an operation before it.
const OPERATION_BYTES: usize = 64;

/// Long lines (the sizes of all trees, the values of a tree) are skipped; this much of a line is looked at.
const LINE_BYTES: usize = 256;

/// A line's begin, its length, and whether a line end followed.
struct Line {
    begin: Vec<u8>,
    length: u64,
    ended: bool,
}

fn line(reader: &mut Reader) -> Result<Line, Fault> {
    let mut line = Line { begin: Vec::new(), length: 0, ended: false };
    while reader.remaining() > 0 {
        let byte = reader.byte()?;
        if byte == b'\n' {
            line.ended = true;
            break;
        }
        line.length += 1;
        if line.begin.len() < LINE_BYTES {
            line.begin.push(byte);
        }
    }
    Ok(line)
}

/// What is known of a text model of LightGBM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trees {
    pub trees: u64,
    pub per_iteration: u64,
}

/// Checks the text from its header to its last line. The header says how many bytes each tree has.
pub(crate) fn lightgbm(reader: &mut Reader) -> Result<Trees, Fault> {
    let mut found = Trees { trees: 0, per_iteration: 1 };
    let bytes = loop {
        let at = reader.position();
        let line = line(reader)?;
        if !line.ended {
            return Err(Fault::Ends);
        }
        let text = String::from_utf8_lossy(&line.begin).into_owned();
        if let Some(count) = text.strip_prefix("num_tree_per_iteration=") {
            found.per_iteration = count.parse().unwrap_or(1);
        }
        if text.starts_with("tree_sizes=") {
            break tree_sizes(&mut reader.part(at + 11, line.length - 11)?, &mut found.trees)?;
        }
        if text.starts_with("Tree=") || text == "end of trees" {
            return Err(Fault::Beyond("its header says no sizes of trees".to_owned()));
        }
    };
    // A blank line, then the trees.
    if line(reader)?.length != 0 {
        return Err(Fault::malformed("its trees do not follow its header"));
    }
    reader.skip(bytes)?;
    let closing = line(reader)?;
    if closing.begin != b"end of trees" {
        return Err(if closing.ended {
            Fault::malformed("its trees do not end where its header says")
        } else {
            Fault::Ends
        });
    }
    closing_lines(reader)?;
    Ok(found)
}

fn tree_sizes(reader: &mut Reader, trees: &mut u64) -> Result<u64, Fault> {
    let (mut sum, mut size) = (0_u64, None::<u64>);
    let wrong = || Fault::malformed("its header has sizes of trees that are not numbers");
    loop {
        let byte = if reader.remaining() > 0 { reader.byte()? } else { b' ' };
        match byte {
            b'0'..=b'9' => {
                let shifted = size
                    .unwrap_or(0)
                    .checked_mul(10)
                    .and_then(|size| size.checked_add(u64::from(byte - b'0')));
                size = Some(shifted.ok_or_else(wrong)?);
            }
            b' ' => {
                if let Some(size) = size.take() {
                    *trees += 1;
                    sum = sum.checked_add(size).ok_or_else(wrong)?;
                }
            }
            _ => return Err(wrong()),
        }
        if reader.remaining() == 0 && size.is_none() {
            return Ok(sum);
        }
    }
}

/// The parameters, and the line that the Python package adds last.
fn closing_lines(reader: &mut Reader) -> Result<(), Fault> {
    let mut parameters = (false, false);
    while reader.remaining() > 0 {
        let at = reader.position();
        let line = line(reader)?;
        if line.begin.starts_with(b"pandas_categorical:") && line.ended && reader.remaining() == 0 {
            json::walk(&mut reader.part(at + 19, line.length - 19)?, &mut |_, _| {})?;
            return Ok(());
        }
        parameters.0 |= line.begin == b"parameters:" && line.ended;
        parameters.1 |= line.begin == b"end of parameters" && line.ended;
        if line.length > 0 && parameters.1 && line.begin != b"end of parameters" {
            return Err(Fault::Ends);
        }
    }
    if parameters.0 && !parameters.1 {
        return Err(Fault::Ends);
    }
    Err(Fault::Beyond("it has no last line of the Python package".to_owned()))
}

/// Checks the length that a `.cbm` says of its core; what follows it has no length of which this is known.
pub(crate) fn catboost(reader: &mut Reader) -> Result<(), Fault> {
    reader.skip(4)?;
    let core = u64::from(u32::from_le_bytes(reader.array()?));
    reader.skip(core)?;
    match reader.remaining() {
        0 if core > 0 => Ok(()),
        0 => Err(Fault::malformed("its model is empty")),
        left => Err(Fault::Beyond(format!(
            "{left} bytes after its model (tables of categories) are not measured"
        ))),
    }
}

/// The iterations of a snapshot of CatBoost, which are its last bytes. Before them are the seconds of each operation,
/// after the length of its name and the name: by these it is known that the file ends here.
pub(crate) fn catboost_snapshot(reader: &mut Reader) -> Result<u64, Fault> {
    reader.skip(CATBOOST_SNAPSHOT_MAGIC.len() as u64)?;
    let settings = u64::from(u32::from_le_bytes(reader.array()?));
    reader.skip(settings)?;
    let length = (4 + OPERATION_BYTES + 8 + SNAPSHOT_END_BYTES) as u64;
    let length = length.min(reader.remaining());
    let last = reader.piece(reader.len() - length, usize::try_from(length).unwrap_or(0))?;
    snapshot_end(&last)
        .ok_or_else(|| Fault::Beyond("it does not end as the snapshots of CatBoost 1.2 do".to_owned()))
}

fn snapshot_end(last: &[u8]) -> Option<u64> {
    let (before, end) = last.split_at_checked(last.len().checked_sub(SNAPSHOT_END_BYTES)?)?;
    let (operation, seconds) = before.split_last_chunk::<8>()?;
    let is_name = |length: &usize| {
        let Some((before, name)) = operation.split_at_checked(operation.len().wrapping_sub(*length)) else {
            return false;
        };
        let is_length = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize == *length;
        before.last_chunk().is_some_and(is_length) && name.iter().all(|byte| matches!(byte, b' '..=b'~'))
    };
    let is_time = |bytes: &[u8; 8]| (0.0..f64::INFINITY).contains(&f64::from_le_bytes(*bytes));
    let iterations = u64::from(u32::from_le_bytes(*end.first_chunk()?));
    let is_end = (1..=OPERATION_BYTES).any(|length| is_name(&length))
        && is_time(seconds)
        && is_time(end.last_chunk()?)
        && iterations > 0;
    is_end.then_some(iterations)
}
