//! Values that are made at first use, without waiting: of several threads that come first each makes its own, and one
//! is kept. A training process forks while its threads log; a child that had to wait for a thread of its parent would
//! wait for ever.

use std::ops::Deref;

use once_cell::race::OnceBox;

/// A constant that is made at first use.
pub(crate) struct Racy<T> {
    made: OnceBox<T>,
    make: fn() -> T,
}

impl<T> Racy<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { made: OnceBox::new(), make }
    }
}

impl<T> Deref for Racy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.made.get_or_init(|| Box::new((self.make)()))
    }
}
