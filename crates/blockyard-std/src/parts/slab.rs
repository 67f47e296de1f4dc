//! A table of values with small, reusable numbers. The crate `slab` is no replacement: it cannot
//! report a lack of memory, as [`Slab::make_room`] does.

/// A table of values, each with a small number. A number is reused after its value has been
/// removed.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Stores `value` and returns its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Some(value);
            return at;
        }
        self.slots.push(Some(value));
        u32::try_from(self.slots.len() - 1).expect("number of entries within 32 bits")
    }

    /// Makes room for one more value. Returns `false` if there is no memory.
    pub fn make_room(&mut self) -> bool {
        !self.free.is_empty() || self.slots.try_reserve(1).is_ok()
    }

    /// Removes and returns the value at `at`.
    ///
    /// # Panics
    ///
    /// Panics if there is no value at `at`.
    #[inline]
    pub fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        self.slots[at as usize].take().expect("entry at a number that was inserted")
    }

    /// Returns the value at `at`, or `None` if there is none.
    #[inline]
    pub fn find_mut(&mut self, at: u32) -> Option<&mut T> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    /// As [`Self::find_mut`].
    pub fn find(&self, at: u32) -> Option<&T> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one more than the largest number ever used.
    pub fn end(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("number of entries within 32 bits")
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: u32) -> &T {
        self.slots[at as usize].as_ref().expect("entry at a number that was inserted")
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        self.slots[at as usize].as_mut().expect("entry at a number that was inserted")
    }
}
