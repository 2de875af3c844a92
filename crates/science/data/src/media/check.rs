//! What is wrong with a folder of images or texts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use trackway_core::checks::{CheckResult, Example, Finding, Severity};
use trackway_results::media::{MediaChecks, SizeCount};
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::merge::CountedExamples;
use trackway_tables::pass::PassObserver;
use trackway_tables::read::Source;
use trackway_tables::{DataError, DataSpec, ReadContext};

use super::labels::{self, LabelAccount, NamedByColumn};
use super::pairs::{Pairs, pairs};
use super::{Content, ImageFacts, MediaFile, count_of, find_image_overlap, look_at};

/// From this fraction on, one size or mode is the rule, and others are odd.
const RULE_SHARE: f64 = 0.95;

/// The most sizes that are listed.
const SIZES_LISTED: usize = 20;

/// A mask of more different values was computed rather than painted, or is not a mask.
const MASK_VALUES_MAX: usize = 64;

/// From so many steps in thousand edge pixels on, a mask was interpolated.
const SOFT_EDGES_WARN: u32 = 250;

/// Common images from this fraction on are more than an oversight.
const REPEATED_SHARE_WARNS: f64 = 0.01;

/// Which files, and what they are checked against.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaRequest {
    /// Folders, globs, files.
    pub paths: Vec<String>,
    /// A folder of masks, or of texts with labels: one for each image.
    pub masks: Option<String>,
    /// A table with a column that names the files.
    pub labels: Option<String>,
}

/// Reads the files and checks them.
///
/// # Errors
/// [`DataError`]: a path that names nothing, a table of labels that cannot be read, the reading cancelled.
pub fn check(
    base: &Path,
    request: &MediaRequest,
    context: &ReadContext,
    watch: &PassObserver<'_>,
) -> Result<MediaChecks, DataError> {
    let files = look_at(base, "images", &request.paths, context, watch)?;
    let masks = match &request.masks {
        Some(path) => Some(look_at(base, "masks", std::slice::from_ref(path), context, watch)?),
        None => None,
    };
    let mut checks = vec![decodes("media.decode", &files, masks.as_deref())];
    checks.extend([sizes(&files), modes(&files), constant(&files), repeated(&files)]);
    match &masks {
        Some(masks) => {
            let pairs = pairs(&files, masks);
            checks.extend([partners(&files, masks, &pairs), mask_values(masks)]);
        }
        None => {
            checks.push(CheckResult::not_applicable("media.pairs", "no masks were given"));
            checks.push(CheckResult::not_applicable("media.masks", "no masks were given"));
        }
    }
    checks.push(match &request.labels {
        None => CheckResult::not_applicable("media.labels", "no table of labels was given"),
        Some(path) => labelled(base, path, &files, context, watch)?,
    });
    let sizes = size_counts(&files);
    Ok(MediaChecks {
        count: count_of(&files),
        masks: masks.as_deref().map(count_of),
        formats: counted(&files, |image| image.format.to_owned()),
        modes: counted(&files, |image| image.mode.to_owned()),
        turned: images(&files).filter(|(_, image)| image.orientation != 1).count() as u64,
        different_sizes: sizes.len(),
        sizes: sizes.into_iter().take(SIZES_LISTED).collect(),
        checks,
    })
}

fn images(files: &[MediaFile]) -> impl Iterator<Item = (&MediaFile, &ImageFacts)> {
    files.iter().filter_map(|file| match &file.content {
        Content::Image(facts) => Some((file, facts)),
        _ => None,
    })
}

fn counted(files: &[MediaFile], of: impl Fn(&ImageFacts) -> String) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    images(files).for_each(|(_, image)| *counts.entry(of(image)).or_default() += 1);
    counts
}

fn size_counts(files: &[MediaFile]) -> Vec<SizeCount> {
    let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    images(files).for_each(|(_, image)| *counts.entry((image.width, image.height)).or_default() += 1);
    let mut sizes: Vec<SizeCount> =
        counts.into_iter().map(|((width, height), count)| SizeCount { width, height, count }).collect();
    sizes.sort_by_key(|size| std::cmp::Reverse(size.count));
    sizes
}

fn example(file: &MediaFile, value: impl Into<String>) -> Example {
    Example { file: Some(file.name.clone()), row: None, value: Some(value.into()) }
}

/// A finding about some files; `None` about none.
fn about_files(
    check: &str,
    severity: Severity,
    found: &[(&MediaFile, String)],
    message: impl FnOnce(usize) -> String,
) -> Option<Finding> {
    (!found.is_empty()).then(|| {
        Finding::new(check, severity, message(found.len()))
            .count(found.len() as u64)
            .examples(found.iter().take(EXAMPLES_MAX).map(|(file, value)| example(file, value.as_str())))
    })
}

/// `media.decode`: every file is read to its last pixel or letter.
fn decodes(name: &str, files: &[MediaFile], masks: Option<&[MediaFile]>) -> CheckResult {
    let all: Vec<&MediaFile> = files.iter().chain(masks.unwrap_or_default()).collect();
    let of = |why: fn(&Content) -> Option<String>| -> Vec<(&MediaFile, String)> {
        all.iter().filter_map(|file| Some((*file, why(&file.content)?))).collect()
    };
    let broken = of(|it| if let Content::Broken(why) = it { Some(why.clone()) } else { None });
    let not_checked = of(|it| if let Content::NotChecked(why) = it { Some(why.clone()) } else { None });
    let misnamed = of(|it| match it {
        Content::Image(image) if image.misnamed => Some(format!("its bytes are {}", image.format)),
        _ => None,
    });
    let count = count_of(files);
    if count.images + count.texts + count.broken + count.not_checked == 0 {
        return CheckResult::not_run(
            name,
            format!("none of {} files is an image or a text file", count.files),
        );
    }
    let findings = [
        about_files(name, Severity::Block, &broken, |count| {
            format!("cannot read {}", crate::counted(count as u64, "file"))
        })
        .map(|finding| finding.action("fetch or write them again, or take them out")),
        about_files(name, Severity::Warn, &not_checked, |count| {
            format!("{} not decoded", crate::counted(count as u64, "file"))
        }),
        about_files(name, Severity::Note, &misnamed, |count| {
            format!("{} of another format than the extension", crate::counted(count as u64, "file"))
        }),
    ];
    let read = all.len() - broken.len() - not_checked.len();
    CheckResult::of_rows(name, all.len() as u64, findings.into_iter().flatten().collect())
        .because(format!("{read} of {} files read", all.len()))
}

/// `media.sizes`: where nearly all have one size, the others are named.
fn sizes(files: &[MediaFile]) -> CheckResult {
    let sizes = size_counts(files);
    let all: u64 = sizes.iter().map(|size| size.count).sum();
    let Some(most) = sizes.first() else {
        return CheckResult::not_applicable("media.sizes", "there are no images");
    };
    let why = match sizes.len() {
        1 => format!("all {all} images are {} × {}", most.width, most.height),
        count => format!("{count} sizes, most of them {} × {}", most.width, most.height),
    };
    let mut findings = Vec::new();
    if most.count as f64 >= all as f64 * RULE_SHARE {
        let odd: Vec<_> = images(files)
            .filter(|(_, image)| (image.width, image.height) != (most.width, most.height))
            .map(|(file, image)| (file, format!("{} × {}", image.width, image.height)))
            .collect();
        findings.extend(about_files("media.sizes", Severity::Warn, &odd, |count| {
            format!("{count} of {all} images are not {} × {}", most.width, most.height)
        }));
    }
    findings.extend(turned(files, all));
    CheckResult::of_rows("media.sizes", all, findings).because(why)
}

/// Images that are shown otherwise than their pixels are stored: some loaders follow the EXIF orientation, others do not.
fn turned(files: &[MediaFile], all: u64) -> Option<Finding> {
    let found: Vec<_> = images(files)
        .filter(|(_, image)| image.orientation != 1)
        .map(|(file, image)| (file, format!("EXIF orientation {}", image.orientation)))
        .collect();
    let finding = about_files("media.sizes", Severity::Note, &found, |count| {
        format!(
            "{count} of {all} images are turned or mirrored by their EXIF orientation; sizes are of the stored pixels"
        )
    });
    finding.map(|finding| finding.action("check that training and serving load them alike"))
}

/// `media.modes`: where nearly all have one mode, or others have another number of channels, those are named: a batch of gray
/// and colour images fails.
fn modes(files: &[MediaFile]) -> CheckResult {
    let modes = counted(files, |image| image.mode.to_owned());
    let all: u64 = modes.values().sum();
    let Some((most, count)) = modes.iter().max_by_key(|(_, count)| **count) else {
        return CheckResult::not_applicable("media.modes", "there are no images");
    };
    let listed: Vec<String> = modes.iter().map(|(mode, count)| format!("{mode} {count}")).collect();
    let mut findings = Vec::new();
    if *count < all {
        let odd: Vec<_> = images(files)
            .filter(|(_, image)| image.mode != most)
            .map(|(file, image)| (file, shown_mode(image)))
            .collect();
        let channels = images(files).map(|(_, image)| image.channels).collect::<BTreeSet<_>>();
        let is_rule = *count as f64 >= all as f64 * RULE_SHARE;
        let severity = if is_rule || channels.len() > 1 { Severity::Warn } else { Severity::Note };
        let kinds = counted(files, shown_mode);
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|(mode, _)| mode.split(' ').next() != Some(most.as_str()))
            .map(|(mode, count)| format!("{count} {mode}"))
            .collect();
        findings.extend(about_files("media.modes", severity, &odd, |count| {
            let are = if count == 1 { "is" } else { "are" };
            format!("{count} of {all} images {are} not {most}: {}", kinds.join(", "))
        }));
    }
    CheckResult::of_rows("media.modes", all, findings).because(listed.join(", "))
}

/// A mode with its channels, which its name does not always say.
fn shown_mode(image: &ImageFacts) -> String {
    let channels = crate::counted(u64::from(image.channels), "channel");
    match image.mode {
        mode if mode.starts_with("cmyk") => format!("{mode} ({channels}, CMYK)"),
        mode if mode.starts_with("palette") => format!("{mode} ({channels}: indexes into a palette)"),
        mode if image.channels == 0 => mode.to_owned(),
        mode => format!("{mode} ({channels})"),
    }
}

/// `media.constant`: images of one colour.
fn constant(files: &[MediaFile]) -> CheckResult {
    let found: Vec<_> = images(files)
        .filter(|(_, image)| image.is_constant)
        .map(|(file, image)| {
            let is_black = image.look.places.iter().all(|value| *value == 0);
            (file, if is_black { "all black".to_owned() } else { "one colour".to_owned() })
        })
        .collect();
    let count = images(files).count();
    if count == 0 {
        return CheckResult::not_applicable("media.constant", "there are no images");
    }
    let finding = about_files("media.constant", Severity::Warn, &found, |found| {
        format!("{found} of {count} images have a single colour")
    });
    CheckResult::of_rows("media.constant", count as u64, finding.into_iter().collect())
        .because(format!("{count} images"))
}

/// `media.duplicates`: images that are there twice, or nearly.
fn repeated(files: &[MediaFile]) -> CheckResult {
    const NAME: &str = "media.duplicates";
    let found = find_image_overlap(files, files);
    if found.test_images == 0 {
        return CheckResult::not_applicable(NAME, "there are no images");
    }
    let mut findings = Vec::new();
    let mut add = |count: u64, pairs: &[super::SharedImage], what: &str| {
        let share = count as f64 / found.test_images as f64;
        let severity = if share >= REPEATED_SHARE_WARNS { Severity::Warn } else { Severity::Note };
        if count > 0 {
            let message = format!("{count} of {} images {what}", found.test_images);
            findings.push(
                Finding::new(NAME, severity, message)
                    .action("remove them, or keep them on one side of every split")
                    .count(count)
                    .examples(pairs.iter().map(super::SharedImage::example)),
            );
        }
    };
    add(found.equal_images, &found.equal, "have exactly the same pixels as another one");
    add(found.near_images, &found.near, "look like another one");
    let why = format!("{} images, {} of them too uniform to compare", found.test_images, found.flat_images);
    CheckResult::of_rows(NAME, found.test_images, findings).because(why)
}

/// `media.pairs`: each has its partner, of its size.
fn partners(files: &[MediaFile], masks: &[MediaFile], pairs: &Pairs) -> CheckResult {
    const NAME: &str = "media.pairs";
    if pairs.both.is_empty() {
        let why = format!("no name of {} files is that of one of {} partners", files.len(), masks.len());
        return CheckResult::not_run(NAME, why);
    }
    let alone: Vec<_> =
        pairs.without_partner.iter().map(|file| (&files[*file], "no partner".to_owned())).collect();
    let left: Vec<_> =
        pairs.partner_alone.iter().map(|mask| (&masks[*mask], "belongs to none".to_owned())).collect();
    let unequal: Vec<_> = pairs
        .both
        .iter()
        .filter_map(|(file, mask)| match (&files[*file].content, &masks[*mask].content) {
            (Content::Image(image), Content::Image(mask))
                if (image.width, image.height) != (mask.width, mask.height) =>
            {
                let sizes =
                    format!("{} × {}, its mask {} × {}", image.width, image.height, mask.width, mask.height);
                Some((&files[*file], sizes))
            }
            _ => None,
        })
        .collect();
    let findings = [
        about_files(NAME, Severity::Warn, &unequal, |count| {
            format!("{} of another size than the mask", crate::counted(count as u64, "image"))
        }),
        about_files(NAME, Severity::Warn, &alone, |count| {
            format!("{count} of {} files have no partner", files.len())
        }),
        about_files(NAME, Severity::Warn, &left, |count| {
            format!("{count} of {} partners belong to no file", masks.len())
        }),
    ];
    CheckResult::of_rows(NAME, pairs.both.len() as u64, findings.into_iter().flatten().collect())
        .because(format!("{} pairs", pairs.both.len()))
}

/// `media.masks`: masks hold a few values, and none that only interpolation makes.
fn mask_values(masks: &[MediaFile]) -> CheckResult {
    const NAME: &str = "media.masks";
    let count = images(masks).count();
    if count == 0 {
        return CheckResult::not_applicable(NAME, "the partners are not images");
    }
    let mut of_all: BTreeSet<u32> = BTreeSet::new();
    let (mut too_many, mut soft) = (Vec::new(), Vec::new());
    for (file, mask) in images(masks) {
        match &mask.values {
            _ if mask.soft_edges >= SOFT_EDGES_WARN => soft.push((file, "soft edges".to_owned())),
            Some(values) if values.len() <= MASK_VALUES_MAX => of_all.extend(values.keys()),
            Some(values) => too_many.push((file, format!("{} values", values.len()))),
            None => too_many.push((file, "hundreds of values".to_owned())),
        }
    }
    let findings = [
        about_files(NAME, Severity::Warn, &soft, |found| {
            format!(
                "{found} of {count} masks have soft edges: between two classes they have values of neither"
            )
        }),
        about_files(NAME, Severity::Warn, &too_many, |found| {
            format!(
                "{found} of {count} masks have more than {MASK_VALUES_MAX} values: they are not class masks"
            )
        }),
    ];
    let action =
        |finding: Finding| finding.action("save masks without loss (PNG); resize them by the nearest pixel");
    let listed: Vec<String> = of_all.iter().take(12).map(u32::to_string).collect();
    let more = if of_all.len() > 12 { ", …" } else { "" };
    CheckResult::of_rows(NAME, count as u64, findings.into_iter().flatten().map(action).collect())
        .because(format!("{count} masks with the values {}{more}", listed.join(", ")))
}

/// `media.labels`: the table names every file once, and none that is not there.
fn labelled(
    base: &Path,
    path: &str,
    files: &[MediaFile],
    context: &ReadContext,
    watch: &PassObserver<'_>,
) -> Result<CheckResult, DataError> {
    const NAME: &str = "media.labels";
    let spec = DataSpec { path: path.to_owned(), ..DataSpec::default() };
    let mut source = Source::open(base, "labels", &spec, context)?;
    let (account, coverage) = labels::account(&mut source, files, watch)?;
    let LabelAccount { column, named, unlabelled, repeated } = match account {
        Ok(account) => account,
        Err(why) => return Ok(CheckResult::not_run(NAME, why)),
    };
    let mut findings = about_names(NAME, &source, &column, &named);
    let NamedByColumn { rows, without_extension, .. } = named;
    let unlabelled: Vec<_> = unlabelled
        .iter()
        .map(|file| &files[*file])
        .filter(|file| !matches!(file.content, Content::Other(_)))
        .map(|file| (file, "no row".to_owned()))
        .collect();
    findings.extend(about_files(NAME, Severity::Warn, &unlabelled, |count| {
        format!("{count} of {} files have no row", files.len())
    }));
    if repeated > 0 {
        let message = format!("{repeated} rows speak of a file that an earlier row spoke of");
        findings.push(Finding::new(NAME, Severity::Note, message).count(repeated));
    }
    if coverage.rows_rejected > 0 {
        let message = format!("{} rows could not be read", coverage.rows_rejected);
        findings.push(Finding::new(NAME, Severity::Warn, message));
    }
    let without = match without_extension {
        0 => String::new(),
        rows => format!(
            "; {} the file without its extension, which is the name of one file each",
            if rows == 1 { "1 row names".to_owned() } else { format!("{rows} rows name") }
        ),
    };
    let why = format!("{rows} rows by `{column}` against {} files{without}", files.len());
    Ok(CheckResult::of_rows(NAME, rows, findings).because(why))
}

/// What the names in a column of labels are: those of no file, and those of several.
fn about_names(
    check: &'static str,
    source: &Source,
    column: &str,
    NamedByColumn { rows, missing, ambiguous, .. }: &NamedByColumn,
) -> Vec<Finding> {
    let example = |(place, name): &(trackway_tables::read::Place, String)| Example {
        file: Some(source.files()[place.file].path.clone()),
        row: Some(place.row),
        value: Some(name.clone()),
    };
    let finding = |severity, message: String, action: &str, named: &CountedExamples<_>| {
        Finding::new(check, severity, message)
            .about(column)
            .action(action)
            .count(named.count)
            .examples(named.examples.iter().map(example))
    };
    let mut findings = Vec::new();
    if ambiguous.count > 0 {
        let message = format!(
            "{} of {rows} rows have a name of several files, and were matched with none",
            ambiguous.count
        );
        let action = "write the files' folders and extensions";
        findings.push(finding(Severity::Warn, message, action, ambiguous));
    }
    if missing.count > 0 {
        let message = format!("{} of {rows} rows name a missing file", missing.count);
        findings.push(finding(Severity::Block, message, "bring the files, or take the rows out", missing));
    }
    findings
}
