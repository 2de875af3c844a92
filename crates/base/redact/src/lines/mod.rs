//! Lines as they are read: their encoding, their escapes and colours, what is before each of them, and which words they have.

pub(super) mod bytes;
pub(super) mod unprefixed;
pub(super) mod view;
pub(super) mod words;
