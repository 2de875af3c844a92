use serde::Serialize;

/// What may be printed as JSON: listed in the catalogue, with a schema.
///
/// Only the macro of the catalogue implements it.
pub trait Document: Serialize {}

impl<D: Document> Document for Vec<D> {}
impl<D: Document> Document for [D] {}
impl<D: Document + ?Sized> Document for &D {}
