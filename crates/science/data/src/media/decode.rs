//! One file into what is kept of it.

use std::fs;
use std::path::Path;

use trackway_tables::ReadContext;

use super::reading::{Format, read_within};
use super::{Content, images};

/// What a file's name promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Image(Format),
    /// Of a format that is not decoded here.
    OtherImage,
    Text,
}

pub(super) fn kind_of(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => Kind::Image(Format::Png),
        "jpg" | "jpeg" => Kind::Image(Format::Jpeg),
        "bmp" => Kind::Image(Format::Bmp),
        "webp" => Kind::Image(Format::WebP),
        "gif" | "tif" | "tiff" | "avif" | "heic" | "jp2" | "ico" | "ppm" | "pgm" | "exr" | "dcm" => {
            Kind::OtherImage
        }
        "txt" | "xml" | "json" | "md" => Kind::Text,
        _ => return None,
    })
}

pub(super) fn content(path: &Path, context: &ReadContext) -> Content {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if path.is_symlink() => {
            return Content::Broken(format!("it is a link that leads nowhere: {error}"));
        }
        Err(error) => return Content::Broken(error.to_string()),
    };
    let Some(kind) = kind_of(path) else {
        let extension = path.extension().map(|it| it.to_string_lossy().into_owned());
        return Content::Other(extension.unwrap_or_default());
    };
    if about.len() == 0 {
        return Content::Broken("it is empty".into());
    }
    match kind {
        Kind::OtherImage => {
            Content::NotChecked("PNG, JPEG, BMP and WebP are decoded, this format is not".into())
        }
        Kind::Text => read_within(path, about.len(), 0, context, text).unwrap_or_else(Content::from),
        Kind::Image(promised) => {
            images::read(path, about.len(), promised, context).unwrap_or_else(Content::from)
        }
    }
}

fn text(bytes: &[u8]) -> Content {
    match std::str::from_utf8(bytes) {
        Err(error) => {
            Content::Broken(format!("it is not valid UTF-8 from byte {} on", error.valid_up_to() + 1))
        }
        Ok(text) if text.contains('\0') => Content::Broken("it contains NUL bytes".into()),
        Ok(text) if text.trim().is_empty() => Content::Broken("it contains only whitespace".into()),
        Ok(_) => Content::Text,
    }
}
