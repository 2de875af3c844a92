//! Engines by name: `[engines.NAME]` of a settings file, which a run file names with `launch.engine`. The name of a kind is that of its
//! default engine, which is there without settings.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{AtLine, sections};
use crate::flat_files::flat_file::{Mistake, MistakeInside};
use crate::runfile::{EngineName, LaunchOn, nearest};

const KIND: &str = "kind";
const GPUS: &str = "gpus";
/// The keys of an engine of kind `local`.
const KEYS: [&str; 2] = [KIND, GPUS];

/// The settings of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// What starts its attempts.
    pub kind: LaunchOn,
    /// The GPUs of this machine, in place of those that can be seen.
    pub gpus: Option<u32>,
}

/// An engine as a settings file has it, with the lines of its keys, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSection {
    pub settings: EngineSettings,
    /// None: the name of the engine says its kind.
    pub kind_line: Option<usize>,
    /// None: it is not set.
    pub gpus_line: Option<usize>,
}

/// The engines of a settings file, each with the line of its section.
pub(super) fn engines(
    value: &DeValue<'_>,
    line_at: &dyn Fn(usize) -> usize,
) -> Result<BTreeMap<EngineName, AtLine<EngineSection>>, Mistake> {
    let example = "a table for each engine, such as `[engines.workstation]` with `kind = \"local\"`";
    let found = sections(value, example, |name, section| {
        let (engine, section) = engine(name, section, line_at)?;
        Ok((engine, AtLine { value: section, line: line_at(name.span().start) }))
    })?;
    Ok(found.into_iter().collect())
}

fn engine(
    name: &Spanned<DeString<'_>>,
    section: &Spanned<DeValue<'_>>,
    line_at: &dyn Fn(usize) -> usize,
) -> Result<(EngineName, EngineSection), Vec<MistakeInside>> {
    let inside = |span, message, hint| MistakeInside { span, message, hint };
    let engine = name
        .get_ref()
        .parse::<EngineName>()
        .map_err(|error| vec![inside(name.span(), error.to_string(), None)])?;
    let DeValue::Table(keys) = section.get_ref() else {
        let message = format!("`engines.{engine}` must be a table with `{KIND}`");
        return Err(vec![inside(section.span(), message, None)]);
    };
    let (mut written_kind, mut gpus, mut gpus_line, mut mistakes) = (None, None, None, Vec::new());
    for (key, value) in keys.iter() {
        let key_name: &str = key.get_ref();
        match key_name {
            KIND => written_kind = Some((key, value)),
            GPUS => match count(value.get_ref()) {
                Some(count) => (gpus, gpus_line) = (Some(count), Some(line_at(key.span().start))),
                None => {
                    let message =
                        format!("`engines.{engine}.{GPUS}` must be a whole number from 0 to 4294967295");
                    mistakes.push(inside(value.span(), message, None));
                }
            },
            _ => {
                let hint = match nearest(key_name, KEYS.into_iter()) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("an engine of kind `local` has `{}`", KEYS.join("` and `")),
                };
                let message = format!("unknown setting `{key_name}` in `engines.{engine}`");
                mistakes.push(inside(key.span(), message, Some(hint)));
            }
        }
    }
    let kind = kind(&engine, name, written_kind.map(|(_, value)| value));
    let kind_line = written_kind.map(|(key, _)| line_at(key.span().start));
    match kind {
        Ok(kind) if mistakes.is_empty() => {
            Ok((engine, EngineSection { settings: EngineSettings { kind, gpus }, kind_line, gpus_line }))
        }
        Ok(_) => Err(mistakes),
        Err(mistake) => Err(mistakes.into_iter().chain([mistake]).collect()),
    }
}

/// The kind of an engine: as written, else the one that has its name.
fn kind(
    engine: &EngineName,
    name: &Spanned<DeString<'_>>,
    written: Option<&Spanned<DeValue<'_>>>,
) -> Result<LaunchOn, MistakeInside> {
    let span = written.map_or(name.span(), Spanned::span);
    let inside = |message, hint: String| MistakeInside { span: span.clone(), message, hint: Some(hint) };
    let key = format!("engines.{engine}.{KIND}");
    let of_name = engine.as_str().parse::<LaunchOn>().ok();
    let word = match written.map(Spanned::get_ref) {
        Some(DeValue::String(word)) => word.to_string(),
        Some(_) => {
            return Err(inside(format!("`{key}` must be a string"), "write `kind = \"local\"`".into()));
        }
        None => match of_name {
            Some(kind) => kind.to_string(),
            None => return Err(inside(format!("`{key}` is missing"), "add `kind = \"local\"`".into())),
        },
    };
    match word.parse::<LaunchOn>() {
        Ok(LaunchOn::Local) if of_name.is_none_or(|kind| kind == LaunchOn::Local) => Ok(LaunchOn::Local),
        Ok(LaunchOn::Local) => Err(inside(
            format!("`engines.{engine}` cannot be of kind `local`: `{engine}` is another kind"),
            "give the engine another name".into(),
        )),
        Ok(kind) => Err(inside(
            format!("this version does not support engines of kind `{kind}` (`{key}`)"),
            "use `kind = \"local\"`".into(),
        )),
        Err(_) => Err(inside(
            format!("`{key}` must be `local`, not `{word}`"),
            match nearest(&word, LaunchOn::WORDS.iter().copied()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "use `kind = \"local\"`".to_owned(),
            },
        )),
    }
}

/// A whole number from 0.
fn count(value: &DeValue<'_>) -> Option<u32> {
    match value {
        DeValue::Integer(integer) => u32::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::flat_files::settings::parse;

    use super::*;

    /// Proves that engines are read with the lines of their sections and keys, and that an engine with the name of a kind needs no `kind`.
    #[test]
    fn engines_are_read() {
        let text =
            "color = true\n[engines.workstation]\nkind = \"local\"\ngpus = 0\n[engines.local]\ngpus = 2\n";
        let engines = parse(text.as_bytes(), "config.toml").unwrap().engines;
        let expected = [("local", 2, 5, None, 6), ("workstation", 0, 2, Some(3), 4)];
        let expected = expected.map(|(name, gpus, line, kind_line, gpus_line)| {
            let settings = EngineSettings { kind: LaunchOn::Local, gpus: Some(gpus) };
            let value = EngineSection { settings, kind_line, gpus_line: Some(gpus_line) };
            (name.parse().unwrap(), AtLine { value, line })
        });
        assert_eq!(engines, expected.into());
    }

    /// Proves that each mistake of an engine is shown with its place and what to write, and several of them at once.
    #[test]
    fn mistakes_of_engines_are_shown() {
        let shown = |text: &str| {
            let errors = parse(text.as_bytes(), "c").unwrap_err();
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (text, expected) in [
            (
                "engines = 2\n",
                "c:1:11: `engines` must be a table for each engine, such as `[engines.workstation]` with `kind = \"local\"`",
            ),
            ("[engines]\nbox = 2\n", "c:2:7: `engines.box` must be a table with `kind`"),
            (
                "[engines.box]\ngpus = 2\n",
                "c:1:10: `engines.box.kind` is missing (hint: add `kind = \"local\"`)",
            ),
            (
                "[engines.box]\nkind = \"locla\"\n",
                "c:2:8: `engines.box.kind` must be `local`, not `locla` (hint: did you mean `local`?)",
            ),
            (
                "[engines.juwels]\nkind = \"slurm\"\n",
                "c:2:8: this version does not support engines of kind `slurm` (`engines.juwels.kind`) (hint: use `kind = \"local\"`)",
            ),
            (
                "[engines.slurm]\nkind = \"local\"\n",
                "c:2:8: `engines.slurm` cannot be of kind `local`: `slurm` is another kind (hint: give the engine another name)",
            ),
            (
                "[engines.local]\ngpu = 2\n",
                "c:2:1: unknown setting `gpu` in `engines.local` (hint: did you mean `gpus`?)",
            ),
        ] {
            assert_eq!(shown(text), [expected]);
        }
        let several = shown("[engines.\"a b\"]\n[engines.box]\ngpus = -1\naccount = \"x\"\n");
        assert_eq!(several.len(), 4, "{several:?}");
        assert!(several[0].contains("cannot be the name of an engine"), "{several:?}");
    }
}
