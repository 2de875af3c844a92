//! Files that belong together by their names: an image and its mask, a text and its labels.

use std::collections::HashMap;

use super::{Content, MediaFile};

/// What masks are called beside their images.
const SUFFIXES: [&str; 10] =
    ["", "_mask", "-mask", "_masks", "_seg", "_label", "_labels", "_gt", "_annotation", "_segmentation"];

/// Pairs of indexes, and those without a partner.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Pairs {
    pub(super) both: Vec<(usize, usize)>,
    pub(super) without_partner: Vec<usize>,
    pub(super) partner_alone: Vec<usize>,
}

/// Pairs files whose names without extension are equal below their folders, else those with equal file names. Of
/// the usual endings of masks, the one that pairs most is taken.
pub(super) fn pairs(files: &[MediaFile], partners: &[MediaFile]) -> Pairs {
    let whole = |name: &str| stem(name).to_owned();
    let last = |name: &str| stem(name).rsplit('/').next().unwrap_or_default().to_owned();
    let ways: [&dyn Fn(&str) -> String; 2] = [&whole, &last];
    let tried = ways.iter().flat_map(|way| SUFFIXES.map(|suffix| paired(files, partners, way, suffix)));
    // Of equally good ways the first one.
    tried.reduce(|best, next| if next.both.len() > best.both.len() { next } else { best }).unwrap_or_default()
}

fn stem(name: &str) -> &str {
    let file_at = name.rfind('/').map_or(0, |at| at + 1);
    name[file_at..].rfind('.').map_or(name, |at| &name[..file_at + at])
}

fn paired(files: &[MediaFile], partners: &[MediaFile], way: &dyn Fn(&str) -> String, suffix: &str) -> Pairs {
    let is_part = |file: &MediaFile| !matches!(file.content, Content::Other(_));
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for (index, partner) in partners.iter().enumerate().filter(|(_, it)| is_part(it)) {
        let name = way(&partner.name);
        if let Some(name) = name.strip_suffix(suffix) {
            by_name.entry(name.to_owned()).or_insert(index);
        }
    }
    let mut pairs = Pairs::default();
    let mut is_met = vec![false; partners.len()];
    for (index, file) in files.iter().enumerate().filter(|(_, it)| is_part(it)) {
        match by_name.get(&way(&file.name)) {
            Some(partner) => {
                is_met[*partner] = true;
                pairs.both.push((index, *partner));
            }
            None => pairs.without_partner.push(index),
        }
    }
    let alone = partners.iter().enumerate().filter(|(index, it)| !is_met[*index] && is_part(it));
    pairs.partner_alone = alone.map(|(index, _)| index).collect();
    pairs
}
