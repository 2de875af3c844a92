//! Text in other encodings than UTF-8. What is not text is searched as the bytes it is.

/// The two ways in which UTF-16 puts its units down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

/// Of a text without a mark so many bytes are looked at.
const LOOKED_BYTES: usize = 4096;
/// Shorter bytes without a mark are not taken for UTF-16.
const UNMARKED_BYTES_MIN: usize = 16;
/// Units are put down one by one from here on, those before as ASCII.
const ASCII_END: u16 = 0x80;
/// Units from here on take three bytes.
const THREE_BYTES_FROM: u16 = 0x800;

/// Takes the secrets out of UTF-16, by a function over bytes that have ASCII where the text has; `None`: it is not UTF-16.
/// All other units come out unaltered.
pub(crate) fn of_utf16(bytes: &[u8], clean: impl FnOnce(&[u8]) -> Vec<u8>) -> Option<Vec<u8>> {
    let order = order_of(bytes)?;
    let (pairs, rest) = bytes.split_at(bytes.len() / 2 * 2);
    let mut kept: Vec<u8> =
        narrow(&clean(&wide(pairs, order))).into_iter().flat_map(|unit| put(unit, order)).collect();
    kept.extend_from_slice(rest);
    Some(kept)
}

/// Binary data with a line end for each byte that is not of a text, so that each text in it is a line; `None`: all of it is text.
pub(crate) fn texts(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_mark = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31);
    bytes.iter().any(is_mark).then(|| {
        let shown = |byte: &u8| if is_mark(byte) || *byte >= 0x80 { b'\n' } else { *byte };
        bytes.iter().map(shown).collect()
    })
}

/// By its mark, or since nearly every second byte of its beginning is zero and hardly any other.
fn order_of(bytes: &[u8]) -> Option<Order> {
    match bytes {
        [0xff, 0xfe, ..] => return Some(Order::Little),
        [0xfe, 0xff, ..] => return Some(Order::Big),
        _ => {}
    }
    let head = &bytes[..bytes.len().min(LOOKED_BYTES) / 2 * 2];
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (first, second, pairs) = (zeros(0), zeros(1), head.len() / 2);
    let mostly = |zeros: usize, others: usize| zeros * 4 > pairs * 3 && others * 20 < pairs;
    match head.len() >= UNMARKED_BYTES_MIN {
        true if mostly(second, first) => Some(Order::Little),
        true if mostly(first, second) => Some(Order::Big),
        _ => None,
    }
}

fn put(unit: u16, order: Order) -> [u8; 2] {
    match order {
        Order::Little => unit.to_le_bytes(),
        Order::Big => unit.to_be_bytes(),
    }
}

/// Each unit as UTF-8 would have it were it a letter: halves of pairs too, so that every unit can be restored.
fn wide(pairs: &[u8], order: Order) -> Vec<u8> {
    let mut wide = Vec::with_capacity(pairs.len());
    for pair in pairs.chunks_exact(2) {
        let pair = [pair[0], pair[1]];
        let unit = if order == Order::Little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) };
        let low = |shift: u32| 0x80 | ((unit >> shift) & 0x3f) as u8;
        match unit {
            ..ASCII_END => wide.push(unit as u8),
            ASCII_END..THREE_BYTES_FROM => wide.extend([0xc0 | (unit >> 6) as u8, low(0)]),
            _ => wide.extend([0xe0 | (unit >> 12) as u8, low(6), low(0)]),
        }
    }
    wide
}

/// The units again. Bytes of a unit that was cut become one each.
fn narrow(wide: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(wide.len());
    let mut rest = wide;
    while let Some(first) = rest.first() {
        let bits =
            |at: usize| rest.get(at).filter(|byte| *byte & 0xc0 == 0x80).map(|byte| u16::from(byte & 0x3f));
        let (unit, length) = match (first, bits(1), bits(2)) {
            (0xe0..=0xef, Some(middle), Some(low)) => (u16::from(first & 0x0f) << 12 | middle << 6 | low, 3),
            (0xc0..=0xdf, Some(low), _) => (u16::from(first & 0x1f) << 6 | low, 2),
            _ => (u16::from(*first), 1),
        };
        units.push(unit);
        rest = &rest[length..];
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, order: Order) -> Vec<u8> {
        text.encode_utf16().flat_map(|unit| put(unit, order)).collect()
    }

    /// Proves that every unit comes back, halves of pairs and an odd last byte too, and that bytes which are no text are not taken for it.
    #[test]
    fn units_come_back() {
        let text = "caf\u{e9} \u{4e2d}\u{1f600} token\n".repeat(20);
        for order in [Order::Little, Order::Big] {
            let mut bytes = put(0xfeff, order).to_vec();
            bytes.extend(utf16(&text, order));
            bytes.extend(put(0xd800, order));
            bytes.push(7);
            assert_eq!(of_utf16(&bytes, <[u8]>::to_vec), Some(bytes.clone()));
            let ascii = utf16("no mark and nothing but letters", order);
            assert_eq!(of_utf16(&ascii, <[u8]>::to_vec), Some(ascii.clone()));
        }
        let noise: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for bytes in [&noise[..], b"plain text that is long enough", &[0; 64], b"\0a"] {
            assert_eq!(of_utf16(bytes, <[u8]>::to_vec), None);
        }
    }
}
