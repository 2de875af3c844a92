use std::fs;
use std::path::Path;

use image::{DynamicImage, GrayImage, Luma, Rgb, RgbImage};
use tempfile::TempDir;
use trackway_core::checks::{CheckResult, Verdict};
use trackway_core::{Rng, SplitMix64};
use trackway_tables::ReadContext;
use trackway_tables::pass::UNWATCHED;

use super::probe::{Coordinate, Grid, judge};
use super::*;

/// A picture with large shapes, another one for each seed.
fn picture(seed: u64, width: u32, height: u32) -> RgbImage {
    let mut rng = SplitMix64::new(seed);
    let mut next = || rng.next_unit() as f32;
    let waves: Vec<[f32; 4]> = (0..5)
        .map(|_| [next() * 0.2 - 0.1, next() * 0.2 - 0.1, next() * 6.0, 20.0 + 20.0 * next()])
        .collect();
    RgbImage::from_fn(width, height, |x, y| {
        // The same picture at every size.
        let (x, y) = (x as f32 / width as f32 * 64.0, y as f32 / height as f32 * 64.0);
        let value: f32 = waves.iter().map(|[a, b, phase, size]| size * (a * x + b * y + phase).sin()).sum();
        let value = (128.0 + value).clamp(0.0, 255.0) as u8;
        Rgb([value, value / 2, 255 - value])
    })
}

fn mask(seed: u64) -> GrayImage {
    GrayImage::from_fn(64, 64, |x, y| {
        Luma([if (x / 8 + y / 8 + seed as u32).is_multiple_of(3) { 2 } else { 0 }])
    })
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn checked(base: &Path, masks: Option<&str>, labels: Option<&str>) -> MediaChecks {
    let request = MediaRequest {
        paths: vec!["images".into()],
        masks: masks.map(str::to_owned),
        labels: labels.map(str::to_owned),
    };
    check(base, &request, &ReadContext::default(), &UNWATCHED).unwrap()
}

fn result<'c>(checks: &'c MediaChecks, name: &str) -> &'c CheckResult {
    checks.checks.iter().find(|check| check.name == name).unwrap()
}

/// Files shown by the findings of a check.
fn shown(checks: &MediaChecks, name: &str) -> Vec<String> {
    let examples = result(checks, name).findings.iter().flat_map(|finding| &finding.examples);
    examples.filter_map(|example| example.file.clone()).collect()
}

/// Proves that cut, damaged and empty files of every format are found and named, that whole ones and texts are read,
/// and that images of other formats are reported as not decoded.
#[test]
fn files_that_do_not_decode() {
    let folder = folder();
    let images = folder.path().join("images");
    fs::create_dir_all(images.join("cut")).unwrap();
    for (index, extension) in ["png", "jpg", "bmp", "webp"].iter().enumerate() {
        let whole = images.join(format!("{index}.{extension}"));
        picture(index as u64, 64, 64).save(&whole).unwrap();
        let bytes = fs::read(&whole).unwrap();
        fs::write(images.join(format!("cut/{extension}.{extension}")), &bytes[..bytes.len() * 2 / 3])
            .unwrap();
    }
    fs::copy(images.join("0.png"), images.join("really_png.jpg")).unwrap();
    fs::write(images.join("cut/empty.png"), "").unwrap();
    fs::write(images.join("cut/text.txt"), [b'a', 0xff, b'b']).unwrap();
    fs::write(images.join("good.txt"), "a caption\n").unwrap();
    fs::write(images.join("scan.tiff"), "II*").unwrap();
    fs::write(images.join("Thumbs.db"), "x").unwrap();
    let checks = checked(folder.path(), None, None);
    let count = &checks.count;
    assert_eq!((count.images, count.texts, count.broken, count.not_checked, count.others), (5, 1, 6, 1, 1));
    let decode = result(&checks, "media.decode");
    assert_eq!(decode.verdict, Verdict::Block);
    let broken: Vec<&str> = decode.findings[0].examples.iter().filter_map(|it| it.file.as_deref()).collect();
    assert_eq!(broken, ["cut/bmp.bmp", "cut/empty.png", "cut/jpg.jpg", "cut/png.png", "cut/text.txt"]);
    assert_eq!(decode.findings[0].count, Some(6));
    assert!(shown(&checks, "media.decode").contains(&"really_png.jpg".to_owned()));
}

/// Proves that odd sizes, odd modes and images of one colour are named, and that a folder of images of one kind passes.
#[test]
fn images_that_are_unlike_the_others() {
    let folder = folder();
    let images = folder.path().join("images");
    fs::create_dir_all(&images).unwrap();
    for index in 0..40 {
        picture(index, 64, 64).save(images.join(format!("{index:02}.png"))).unwrap();
    }
    let checks = checked(folder.path(), None, None);
    assert!(
        checks.checks.iter().all(|it| matches!(it.verdict, Verdict::Pass | Verdict::NotApplicable)),
        "{checks:?}"
    );
    picture(90, 65, 64).save(images.join("wide.png")).unwrap();
    DynamicImage::from(picture(91, 64, 64)).to_luma8().save(images.join("gray.png")).unwrap();
    RgbImage::new(64, 64).save(images.join("black.png")).unwrap();
    let checks = checked(folder.path(), None, None);
    assert_eq!(shown(&checks, "media.sizes"), ["wide.png"]);
    assert_eq!(shown(&checks, "media.modes"), ["gray.png"]);
    assert_eq!(shown(&checks, "media.constant"), ["black.png"]);
    assert_eq!((checks.different_sizes, checks.sizes[0].count), (2, 42));
}

/// Proves that the mode of an image is that of its file: a palette, 16 bits, gray with alpha and few bits are named with their
/// channels though decoders give RGB; and that an image that its EXIF orientation turns is named.
#[test]
fn modes_are_those_of_the_files() {
    let folder = folder();
    let images = folder.path().join("images");
    fs::create_dir_all(&images).unwrap();
    for index in 0..5 {
        picture(index, 16, 16).save(images.join(format!("{index}.jpg"))).unwrap();
    }
    // One pixel of a palette of two colours: zlib with a stored block, and what the checksums of its chunks are.
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let checked = [kind.as_slice(), data].concat();
        let crc = !checked.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
            })
        });
        let length = (data.len() as u32).to_be_bytes();
        [length.as_slice(), checked.as_slice(), crc.to_be_bytes().as_slice()].concat()
    };
    let parts = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 3, 0, 0, 0]),
        chunk(b"PLTE", &[255, 0, 0, 0, 255, 0]),
        chunk(b"IDAT", &[0x78, 1, 1, 2, 0, 0xfd, 0xff, 0, 1, 0, 3, 0, 2]),
        chunk(b"IEND", &[]),
    ];
    fs::write(images.join("indexed.png"), parts.concat()).unwrap();
    let gray_alpha = DynamicImage::from(picture(7, 16, 16)).to_luma_alpha16();
    gray_alpha.save(images.join("deep.png")).unwrap();
    // A JPEG whose APP1 segment says that it is to be turned by 90 degrees.
    let plain = fs::read(images.join("0.jpg")).unwrap();
    let exif = [
        b"\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01".as_slice(),
        b"\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00".as_slice(),
    ];
    fs::write(images.join("turned.jpg"), [&plain[..2], exif.concat().as_slice(), &plain[2..]].concat())
        .unwrap();
    let checks = checked(folder.path(), None, None);
    let modes: Vec<(&str, u64)> = checks.modes.iter().map(|(mode, count)| (mode.as_str(), *count)).collect();
    assert_eq!(modes, [("gray_alpha16", 1), ("palette8", 1), ("rgb8", 6)], "{checks:#?}");
    let found = result(&checks, "media.modes");
    assert_eq!((found.verdict, shown(&checks, "media.modes").len()), (Verdict::Warn, 2));
    let message = "2 of 8 images are not rgb8: 1 gray_alpha16 (2 channels), 1 palette8 (1 channel: indexes into a palette)";
    assert_eq!(found.findings[0].message, message);
    assert_eq!((checks.turned, shown(&checks, "media.sizes")), (1, vec!["turned.jpg".to_owned()]));
}

/// Proves that images without masks, masks without images, masks of another size and masks with blurred edges are
/// found, with and without an ending in the masks' names; and that texts can be partners.
#[test]
fn images_and_their_partners() {
    let folder = folder();
    let (images, masks) = (folder.path().join("images"), folder.path().join("masks"));
    let texts = folder.path().join("texts");
    for path in [&images, &masks, &texts] {
        fs::create_dir_all(path).unwrap();
    }
    for index in 0..12 {
        picture(index, 64, 64).save(images.join(format!("{index:02}.jpg"))).unwrap();
        mask(index).save(masks.join(format!("{index:02}_mask.png"))).unwrap();
        fs::write(texts.join(format!("{index:02}.txt")), "0 0.5 0.5 1 1\n").unwrap();
    }
    let whole = checked(folder.path(), Some("masks"), None);
    assert_eq!(result(&whole, "media.pairs").verdict, Verdict::Pass, "{whole:?}");
    assert_eq!(result(&whole, "media.masks").why.as_deref(), Some("12 masks with the values 0, 2"));
    assert_eq!(result(&checked(folder.path(), Some("texts"), None), "media.pairs").verdict, Verdict::Pass);

    fs::remove_file(masks.join("03_mask.png")).unwrap();
    mask(1).save(masks.join("99_mask.png")).unwrap();
    let small = image::imageops::resize(&mask(5), 32, 32, image::imageops::FilterType::Triangle);
    small.save(masks.join("05_mask.png")).unwrap();
    for index in [6, 7] {
        let blurred = image::imageops::blur(
            &GrayImage::from_fn(64, 64, |x, _| Luma([if x < 32 { 0 } else { 200 }])),
            2.0,
        );
        blurred.save(masks.join(format!("{index:02}_mask.png"))).unwrap();
    }
    let checks = checked(folder.path(), Some("masks"), None);
    let pairs = result(&checks, "media.pairs");
    let counts: Vec<_> = pairs.findings.iter().map(|finding| finding.count.unwrap()).collect();
    assert_eq!((pairs.verdict, counts.as_slice()), (Verdict::Warn, [1, 1, 1].as_slice()));
    assert_eq!(shown(&checks, "media.pairs"), ["05.jpg", "03.jpg", "99_mask.png"]);
    assert_eq!(result(&checks, "media.masks").verdict, Verdict::Warn, "{checks:?}");
    assert_eq!(shown(&checks, "media.masks"), ["06_mask.png", "07_mask.png"]);
}

/// Proves that a table of labels is held against the folder: rows without file, files without row, files named twice.
#[test]
fn a_table_of_labels() {
    let folder = folder();
    let images = folder.path().join("images/cats");
    fs::create_dir_all(&images).unwrap();
    for index in 0..4 {
        picture(index, 16, 16).save(images.join(format!("{index}.png"))).unwrap();
    }
    let table = "label,file\ncat,images/cats/0.png\ncat,images/cats/1.png\ndog,images/cats/1.png\ncat,images/cats/9.png\n";
    fs::write(folder.path().join("labels.csv"), table).unwrap();
    let checks = checked(folder.path(), None, Some("labels.csv"));
    let labels = result(&checks, "media.labels");
    let found: Vec<_> = labels.findings.iter().map(|it| (it.severity.as_str(), it.count)).collect();
    assert_eq!(found, [("block", Some(1)), ("warn", Some(2)), ("note", Some(1))]);
    assert_eq!(labels.findings[0].examples[0].row, Some(5));
    assert_eq!(labels.findings[0].column.as_deref(), Some("file"));
}

/// Proves that ids without an extension, as texts and as numbers, match their files, which is said, and that a name of two files is
/// reported and matched with neither.
#[test]
fn ids_without_an_extension() {
    let folder = folder();
    for (name, seed) in [("a/img_001", 1), ("a/img_002", 2), ("b/img_002", 3), ("a/000017", 4)] {
        let path = folder.path().join("images").join(format!("{name}.png"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        picture(seed, 16, 16).save(path).unwrap();
    }
    fs::write(folder.path().join("ids.csv"), "id,y\nimg_001,a\nimg_002,b\n").unwrap();
    let labels = checked(folder.path(), None, Some("ids.csv"));
    let labels = result(&labels, "media.labels");
    assert!(
        labels.why.as_deref().unwrap().contains("1 row names the file without its extension"),
        "{labels:?}"
    );
    assert!(labels.findings[0].message.starts_with("1 of 2 rows have a name of several files"), "{labels:?}");
    fs::write(folder.path().join("numbers.csv"), "image_id,y\n17,a\n18,b\n").unwrap();
    let labels = checked(folder.path(), None, Some("numbers.csv"));
    let labels = result(&labels, "media.labels");
    assert_eq!(labels.findings[0].message, "1 of 2 rows name a missing file", "{labels:?}");
    assert_eq!(labels.findings[0].column.as_deref(), Some("image_id"));
}

/// Proves that copies, and copies that were saved as JPEG, resized or brightened, are found between two sides, that
/// other pictures are not, and that duplicates within a side are counted beside it.
#[test]
fn images_on_both_sides() {
    let folder = folder();
    let (train, test) = (folder.path().join("train"), folder.path().join("test"));
    fs::create_dir_all(&train).unwrap();
    fs::create_dir_all(&test).unwrap();
    for index in 0..150 {
        picture(index, 64, 64).save(train.join(format!("{index}.png"))).unwrap();
        picture(index + 1000, 64, 64).save(test.join(format!("other{index}.png"))).unwrap();
    }
    for index in 0..10 {
        picture(index, 64, 64).save(test.join(format!("copy{index}.png"))).unwrap();
        picture(index + 10, 64, 64).save(test.join(format!("saved{index}.jpg"))).unwrap();
        picture(index + 20, 96, 96).save(test.join(format!("large{index}.png"))).unwrap();
        let bright = image::imageops::brighten(&picture(index + 30, 64, 64), 4);
        bright.save(test.join(format!("bright{index}.png"))).unwrap();
    }
    let look = |name: &str| {
        look_at(folder.path(), "x", &[name.to_owned()], &ReadContext::default(), &UNWATCHED).unwrap()
    };
    let found = find_image_overlap(&look("train"), &look("test"));
    assert_eq!((found.test_images, found.equal_images), (190, 10));
    assert!((28..=31).contains(&found.near_images), "{found:?}");
    assert_eq!((found.control_images, found.control_equal_images, found.control_near_images), (150, 0, 0));
    assert!(found.equal.iter().all(|pair| pair.test.starts_with("copy")), "{found:?}");
}

/// A picture that is nearly all texture, each channel by itself.
fn textured(seed: u64) -> RgbImage {
    let mut rng = SplitMix64::new(seed ^ 0xfeed);
    RgbImage::from_fn(64, 64, |_, _| Rgb([0; 3].map(|_: u8| rng.next_u64() as u8)))
}

/// A picture of few shapes in front of an even ground.
fn plain(seed: u64) -> RgbImage {
    let mut rng = SplitMix64::new(seed ^ 0xbeef);
    let mut below = |bound: u64| (rng.next_u64() % bound) as u32;
    let mut colour = || Rgb([0; 3].map(|_: u8| below(256) as u8));
    let mut image = RgbImage::from_pixel(64, 64, colour());
    for _ in 0..4 {
        let shape = colour();
        let mut rng = SplitMix64::new(seed * 31 + u64::from(shape.0[0]));
        let mut below = |bound: u64| (rng.next_u64() % bound) as u32;
        let (left, top, wide, high) = (below(48), below(48), 8 + below(30), 8 + below(30));
        for (x, y) in (left..64.min(left + wide)).flat_map(|x| (top..64.min(top + high)).map(move |y| (x, y)))
        {
            image.put_pixel(x, y, shape);
        }
    }
    image
}

/// Proves that textured pictures and those with even areas are found again after they were made smaller, larger again
/// and saved as JPEG, at least 95 of 100 of each, and that at most 2 of 400 others are taken for one of them.
#[test]
fn copies_that_were_resized_and_saved_are_found() {
    use image::codecs::jpeg::JpegEncoder;
    use image::imageops::{FilterType, resize};
    for picture in [textured, plain] {
        let folder = folder();
        let (train, test) = (folder.path().join("train"), folder.path().join("test"));
        fs::create_dir_all(&train).unwrap();
        fs::create_dir_all(&test).unwrap();
        for index in 0..400 {
            picture(index).save(train.join(format!("{index:03}.png"))).unwrap();
            picture(index + 10_000).save(test.join(format!("other{index:03}.png"))).unwrap();
        }
        for index in 0..100 {
            let small = resize(&picture(index), 60, 60, FilterType::Triangle);
            let again = resize(&small, 64, 64, FilterType::Triangle);
            let file = fs::File::create(test.join(format!("copy{index:03}.jpg"))).unwrap();
            JpegEncoder::new_with_quality(file, 75).encode_image(&again).unwrap();
        }
        let look = |name: &str| {
            look_at(folder.path(), "x", &[name.to_owned()], &ReadContext::default(), &UNWATCHED).unwrap()
        };
        let (train, test) = (look("train"), look("test"));
        let copies = &test[..100];
        let (of_copies, of_others) = (
            find_image_overlap(&train, copies).near_images,
            find_image_overlap(&train, &test[100..]).near_images,
        );
        assert!(of_copies >= 95 && of_others <= 2, "{of_copies} copies, {of_others} others");
    }
}

fn grid(height: usize, width: usize, origin: impl Fn(usize, usize) -> Option<(f64, f64)>) -> Grid {
    let at =
        |pixel: usize| origin(pixel / width, pixel % width).map(|(row, column)| Coordinate { row, column });
    Grid { height, width, origins: (0..height * width).map(at).collect() }
}

/// Proves that a shared rotation agrees although one grid is interpolated and the other is not, and that a flip of one
/// alone, two crops, another size and grids with nothing in common do not, with the distance where it is largest.
#[test]
fn grids_that_moved_alike() {
    let (height, width) = (32, 48);
    let rotated = |nearest: bool| {
        move |row: usize, column: usize| {
            let (sine, cosine) = 0.3f64.sin_cos();
            let (y, x) = (row as f64 - 16.0, column as f64 - 24.0);
            let (y, x) = (y * cosine - x * sine + 16.0, y * sine + x * cosine + 24.0);
            let is_inside = (0.0..31.0).contains(&y) && (0.0..47.0).contains(&x);
            is_inside.then(|| if nearest { (y.round(), x.round()) } else { (y, x) })
        }
    };
    let same = judge(&grid(height, width, rotated(false)), &grid(height, width, rotated(true)), 1.0);
    assert!(same.agrees && same.off_max <= 0.5, "{same:?}");

    let plain = grid(height, width, |row, column| Some((row as f64, column as f64)));
    let flipped = grid(height, width, |row, column| Some((row as f64, (width - 1 - column) as f64)));
    let one = judge(&plain, &flipped, 1.0);
    assert!(!one.agrees && one.off_max == 47.0 && one.worst == Some((0, 0)), "{one:?}");
    let moved = grid(height, width, |row, column| Some((row as f64 + 3.0, column as f64 - 5.0)));
    let crops = judge(&plain, &moved, 1.0);
    assert_eq!((crops.agrees, crops.shift.row, crops.shift.column, crops.off_share), (false, 3.0, -5.0, 1.0));
    assert!(!judge(&plain, &grid(width, height, |_, _| None), 1.0).agrees);
    assert!(!judge(&plain, &grid(height, width, |_, _| None), 1.0).agrees);
}
