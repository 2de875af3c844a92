//! The files of a committed checkpoint under the names with which the script wrote them, for what loads it as its framework does.

use std::path::{Path, PathBuf};

use trackway_files::{make_folders, read_regular, replace_link};
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_formats::path_text::path_of;

use super::restore::RestoreError;

/// Makes links to the files of the checkpoint in the folder `checkpoint`, below `links`. Returns the link to its file
/// (of several that of the model), or the folder with the links to its files; `checkpoint` itself if the script saved
/// through Trackway. Links that are there are kept.
///
/// # Errors
/// [`RestoreError::Origin`] and [`RestoreError::Disk`].
pub fn link_as_written(checkpoint: &Path, links: &Path) -> Result<PathBuf, RestoreError> {
    let described = checkpoint.join(ORIGIN_FILE_NAME);
    if !described.exists() {
        return Ok(checkpoint.to_owned());
    }
    let bytes = read_regular(&described).map_err(RestoreError::disk("read", &described))?;
    let origin = CheckpointOrigin::from_bytes(&bytes).map_err(RestoreError::Origin)?;
    let written = path_of(&origin.path);
    let at = links.join(written.file_name().unwrap_or("checkpoint".as_ref()));
    for file in &origin.files {
        let link = match file.path.as_str() {
            "" => at.clone(),
            below if origin.is_folder => at.join(path_of(below)),
            beside => links.join(path_of(beside)),
        };
        let folder = link.parent().unwrap_or(links);
        make_folders(folder).map_err(RestoreError::disk("make", folder))?;
        replace_link(&link, &checkpoint.join(&file.name)).map_err(RestoreError::disk("write", &link))?;
    }
    Ok(at)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the folder is of the test")]
mod tests {
    use std::fs;

    use trackway_formats::checkpoint_origin::{ORIGIN_VERSION, OriginFile};

    use super::*;

    fn origin(path: &str, files: &[(&str, &str)]) -> Vec<u8> {
        let is_folder = files.iter().all(|(_, path)| !path.is_empty());
        let files = files.iter().map(|(name, path)| OriginFile {
            name: (*name).into(),
            path: (*path).into(),
            modified_ns: 0,
        });
        let (layout, step_origin) = ("flax".into(), "name".into());
        CheckpointOrigin {
            version: ORIGIN_VERSION,
            layout,
            path: path.into(),
            is_folder,
            step_origin,
            shown_by: None,
            reached_step: None,
            files: files.collect(),
        }
        .to_bytes()
    }

    /// Proves that a folder with folders and a single file are found under the names of the script, twice in a row, and that a
    /// checkpoint which the script did not write itself is where it is.
    #[test]
    fn files_have_the_names_of_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoint, links) = (folder.path().join("one"), folder.path().join("links"));
        fs::create_dir(&checkpoint).unwrap();
        assert_eq!(link_as_written(&checkpoint, &links).unwrap(), checkpoint);
        assert!(!links.exists());
        for name in ["d-0", "_METADATA"] {
            fs::write(checkpoint.join(name), name).unwrap();
        }
        let tree = origin("out/400", &[("d-0", "d/0"), ("_METADATA", "_METADATA")]);
        fs::write(checkpoint.join(ORIGIN_FILE_NAME), tree).unwrap();
        for _ in 0..2 {
            let at = link_as_written(&checkpoint, &links).unwrap();
            assert_eq!(at, links.join("400"));
            assert_eq!(fs::read_to_string(at.join("d/0")).unwrap(), "d-0");
            assert_eq!(fs::read_to_string(at.join("_METADATA")).unwrap(), "_METADATA");
        }
        fs::write(checkpoint.join(ORIGIN_FILE_NAME), origin("out/ckpt.pt", &[("d-0", "")])).unwrap();
        let at = link_as_written(&checkpoint, &links).unwrap();
        assert_eq!(
            (at.as_path(), fs::read_to_string(&at).unwrap().as_str()),
            (&*links.join("ckpt.pt"), "d-0")
        );
        fs::write(checkpoint.join(ORIGIN_FILE_NAME), "{").unwrap();
        assert!(matches!(link_as_written(&checkpoint, &links), Err(RestoreError::Origin(_))));
    }
}
