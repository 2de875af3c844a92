//! The files of a data set: which ones a path means, what a file is by its name, how a change of one is noticed, and how those at
//! a URL are read. [`ReadContext`] is given to every reader.

mod budget;
pub(crate) mod context;
pub(crate) mod format;
pub(crate) mod identity;
pub(crate) mod remote;
pub(crate) mod select;

pub use budget::{Budget, Granted};
pub use context::ReadContext;
pub use format::{format_of, is_text};
pub use identity::Identity;
pub use remote::{ByteSource, RemoteFile, RemoteFiles, url_of};
pub use select::{MAX_FILES, Selection, select};
