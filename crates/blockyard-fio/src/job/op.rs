//! The kinds of I/O, and values that differ between them.

/// The three kinds of I/O that move or drop sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim (a discard).
    Trim,
}

impl Op {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Returns its name: `read`, `write` or `trim`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// One value each for reads, writes and trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerOp<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerOp<T> {
    /// Returns the value for `op`.
    pub const fn of(&self, op: Op) -> &T {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
            Op::Trim => &self.trim,
        }
    }

    /// Returns the value for `op`, to change it.
    pub(crate) const fn of_mut(&mut self, op: Op) -> &mut T {
        match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim => &mut self.trim,
        }
    }

    /// Returns the values that `value` gives for each operation, reads first.
    pub fn from_fn(mut value: impl FnMut(Op) -> T) -> Self {
        Self { read: value(Op::Read), write: value(Op::Write), trim: value(Op::Trim) }
    }

    /// Returns the three values, reads first.
    pub fn each(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }
}

impl<T: Clone> PerOp<T> {
    /// Returns the same value for all three.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}
