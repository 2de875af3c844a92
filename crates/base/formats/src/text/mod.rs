//! Small languages of text: words of a shell, paths, and the part of YAML that configurations are written in.

pub mod path_text;
pub mod shell;
pub mod yaml;
