//! Values that have fields of another one.

/// A value whose listed fields are those of another value, with the same names, moved or, of a reference, cloned; the rest is given.
///
/// ```
/// struct Row { id: u64, name: String, secret: String }
/// struct Shown { id: u64, name: String, is_new: bool }
/// let row = Row { id: 1, name: "a".into(), secret: "b".into() };
/// let shown = trackway_core::with_fields_of!(Shown, &row, [id, name], is_new: row.secret.is_empty());
/// assert_eq!((shown.id, shown.name.as_str(), shown.is_new), (1, "a", false));
/// let Shown { name, .. } = trackway_core::with_fields_of!(Shown, row, [id, name], is_new: true);
/// assert_eq!(name, "a");
/// ```
#[macro_export]
macro_rules! with_fields_of {
    ($value:ident, $other:ident, [$($field:ident),* $(,)?] $(, $name:ident $(: $of:expr)?)* $(, ..$rest:expr)? $(,)?) => {
        $value { $($name $(: $of)?,)* $($field: $other.$field,)* $(..$rest)? }
    };
    ($value:ident, &$other:ident, [$($field:ident),* $(,)?] $(, $name:ident $(: $of:expr)?)* $(, ..$rest:expr)? $(,)?) => {
        $value { $($name $(: $of)?,)* $($field: $other.$field.clone(),)* $(..$rest)? }
    };
}
