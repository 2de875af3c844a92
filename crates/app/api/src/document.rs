use serde::Serialize;

/// What may be printed as JSON: listed in the catalogue, with a schema.
///
/// Only the macro of the catalogue implements it.
pub trait Document: Serialize {}

impl<D: Document> Document for Vec<D> {}
impl<D: Document> Document for [D] {}
impl<D: Document> Document for &D {}

/// A document without a schema. Temporary: for commands whose types are not in the catalogue yet.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Undescribed<T>(pub T);

impl<T: Serialize> Document for Undescribed<T> {}
