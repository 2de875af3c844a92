//! How a file stores its pixels, from its header: decoders give all of them as gray or RGB, and a loader that does not, or reads the
//! bytes as they are, sees something else.

use image::{ColorType, ImageFormat};

/// Bytes before the first chunk of a PNG, and where its header has the bits of a channel and the kind of its pixels.
const PNG_BITS_AT: usize = 24;
const PNG_KIND_AT: usize = 25;

/// The mode of the pixels in the file, such as `cmyk8`; as they were decoded where the header does not say more.
pub(super) fn stored_mode(bytes: &[u8], format: ImageFormat, decoded: ColorType) -> &'static str {
    let found = match format {
        ImageFormat::Png => png(bytes),
        ImageFormat::Jpeg => jpeg(bytes),
        ImageFormat::Bmp => bmp(bytes),
        _ => None,
    };
    found.unwrap_or_else(|| decoded_mode(decoded))
}

/// The mode of decoded pixels.
pub(super) fn decoded_mode(color: ColorType) -> &'static str {
    match color {
        ColorType::L8 => "gray8",
        ColorType::La8 => "gray_alpha8",
        ColorType::Rgb8 => "rgb8",
        ColorType::Rgba8 => "rgba8",
        ColorType::L16 => "gray16",
        ColorType::La16 => "gray_alpha16",
        ColorType::Rgb16 => "rgb16",
        ColorType::Rgba16 => "rgba16",
        ColorType::Rgb32F => "rgb_float",
        ColorType::Rgba32F => "rgba_float",
        _ => "other",
    }
}

/// The channels of a mode; a palette's index is one. 0: not known.
pub(super) fn channels(mode: &str) -> u8 {
    match mode.trim_end_matches(|letter: char| letter.is_ascii_digit()) {
        "gray" | "palette" => 1,
        "gray_alpha" => 2,
        "rgb" | "rgb_float" => 3,
        "rgba" | "rgba_float" | "cmyk" => 4,
        _ => 0,
    }
}

/// The PNG specification, 11.2.2.
fn png(bytes: &[u8]) -> Option<&'static str> {
    Some(match (bytes.get(PNG_KIND_AT)?, bytes.get(PNG_BITS_AT)?) {
        (0, 1) => "gray1",
        (0, 2) => "gray2",
        (0, 4) => "gray4",
        (0, 8) => "gray8",
        (0, 16) => "gray16",
        (2, 8) => "rgb8",
        (2, 16) => "rgb16",
        (3, 1) => "palette1",
        (3, 2) => "palette2",
        (3, 4) => "palette4",
        (3, 8) => "palette8",
        (4, 8) => "gray_alpha8",
        (4, 16) => "gray_alpha16",
        (6, 8) => "rgba8",
        (6, 16) => "rgba16",
        _ => return None,
    })
}

/// The frame header of a JPEG (ITU T.81, B.2.2): bits of a sample and the number of components.
fn jpeg(bytes: &[u8]) -> Option<&'static str> {
    const START_OF_SCAN: u8 = 0xda;
    let mut at = 2;
    while let Some([0xff, marker, high, low]) = bytes.get(at..at + 4) {
        match *marker {
            0xff => at += 1,
            START_OF_SCAN => return None,
            // Tables of Huffman codes, extensions and arithmetic coding are between the frame headers.
            0xc0..=0xcf if !matches!(*marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some(match (bytes.get(at + 9)?, bytes.get(at + 4)?) {
                    (1, 8) => "gray8",
                    (3, 8) => "rgb8",
                    (4, 8) => "cmyk8",
                    (1, 12) => "gray12",
                    (3, 12) => "rgb12",
                    (4, 12) => "cmyk12",
                    _ => return None,
                });
            }
            _ => at += 2 + usize::from(u16::from_be_bytes([*high, *low])),
        }
    }
    None
}

/// A BMP's information header, and its palette: one that rises evenly from black to white is none.
fn bmp(bytes: &[u8]) -> Option<&'static str> {
    const FILE_HEADER: usize = 14;
    const CORE_HEADER: u32 = 12;
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let header = word(FILE_HEADER)?;
    let is_core = header == CORE_HEADER;
    let bits = half(FILE_HEADER + if is_core { 10 } else { 14 })?;
    if !matches!(bits, 1 | 4 | 8) {
        return None;
    }
    let listed = if is_core { 0 } else { word(FILE_HEADER + 32)? };
    let colors = if listed == 0 || listed > 256 { 1usize << bits } else { listed as usize };
    let (start, size) = (FILE_HEADER + header as usize, if is_core { 3 } else { 4 });
    let is_gray = |index: usize| {
        let even = (index * 255 / (colors - 1).max(1)) as u8;
        bytes.get(start + index * size..start + index * size + 3).is_some_and(|color| *color == [even; 3])
    };
    Some(match ((0..colors).all(is_gray), bits) {
        (true, 1) => "gray1",
        (true, 4) => "gray4",
        (true, _) => "gray8",
        (false, 1) => "palette1",
        (false, 4) => "palette4",
        (false, _) => "palette8",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jpeg_with(components: u8, bits: u8) -> Vec<u8> {
        // A comment and a table of Huffman codes come before the frame header.
        let mut bytes =
            vec![0xff, 0xd8, 0xff, 0xfe, 0, 4, b'h', b'i', 0xff, 0xc4, 0, 3, 0, 0xff, 0xc0, 0, 17];
        bytes.extend([bits, 0, 8, 0, 8, components, 0xff, 0xda]);
        bytes
    }

    /// Proves that the frame header of a JPEG is found behind other segments, with its channels, and that a cut one shows nothing.
    #[test]
    fn jpegs_by_their_frame_header() {
        for (components, bits, expected, count) in
            [(1, 8, "gray8", 1), (3, 8, "rgb8", 3), (4, 8, "cmyk8", 4), (4, 12, "cmyk12", 4)]
        {
            let bytes = jpeg_with(components, bits);
            let mode = stored_mode(&bytes, ImageFormat::Jpeg, ColorType::Rgb8);
            assert_eq!((mode, channels(mode)), (expected, count));
            for end in 0..bytes.len() - 3 {
                assert_eq!(jpeg(&bytes[..end]), None, "{end}");
            }
        }
    }

    /// Proves that the header of a PNG shows palettes, few and many bits, and alpha, which decoders turn into RGB.
    #[test]
    fn pngs_by_their_header() {
        let of = |kind: u8, bits: u8| {
            let mut bytes = vec![0; 33];
            (bytes[PNG_BITS_AT], bytes[PNG_KIND_AT]) = (bits, kind);
            let mode = stored_mode(&bytes, ImageFormat::Png, ColorType::Rgba8);
            (mode, channels(mode))
        };
        assert_eq!(of(3, 8), ("palette8", 1));
        assert_eq!(of(0, 1), ("gray1", 1));
        assert_eq!(of(4, 16), ("gray_alpha16", 2));
        assert_eq!(of(6, 8), ("rgba8", 4));
        assert_eq!(of(9, 8), ("rgba8", 4), "as decoded");
        assert_eq!(stored_mode(&[], ImageFormat::Png, ColorType::L8), "gray8");
    }

    proptest::proptest! {
        /// Proves that no header, whatever its bytes, makes the reading panic, and that a mode has at most four channels.
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80), begin in 0usize..3) {
            let signature: [&[u8]; 3] = [&[0xff, 0xd8, 0xff, 0xc0], b"BM", &[]];
            let bytes = [signature[begin], bytes.as_slice()].concat();
            for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Bmp, ImageFormat::WebP] {
                proptest::prop_assert!(channels(stored_mode(&bytes, format, ColorType::Rgb8)) <= 4);
            }
        }
    }

    /// Proves that a BMP with a palette of colours is one, and that an even one from black to white is gray.
    #[test]
    fn bmps_by_their_palette() {
        let of = |bits: u8, palette: &[[u8; 4]]| {
            let mut bytes = vec![0; 54];
            (bytes[14], bytes[28], bytes[46]) = (40, bits, palette.len() as u8);
            bytes.extend(palette.concat());
            stored_mode(&bytes, ImageFormat::Bmp, ColorType::Rgb8)
        };
        assert_eq!(of(1, &[[0, 0, 0, 0], [255, 255, 255, 0]]), "gray1");
        assert_eq!(of(1, &[[0, 0, 255, 0], [255, 255, 255, 0]]), "palette1");
        assert_eq!(of(8, &[[0, 0, 0, 0], [9, 8, 7, 0], [255, 255, 255, 0]]), "palette8");
        assert_eq!(of(24, &[]), "rgb8");
        assert_eq!(bmp(&[0; 20]), None);
    }
}
