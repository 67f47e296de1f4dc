//! The priorities of the nodes of a treap, drawn from a fixed sequence.

/// A sequence of priorities: xorshift, never 0, with period 2^32 - 1. Each sequence is the same, so
/// that equal runs build equal trees.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    /// The priority drawn last.
    drawn: u32,
}

impl Priorities {
    pub(super) const fn new() -> Self {
        Self { drawn: 0x2545_f491 }
    }

    /// Draws the next priority.
    pub(super) const fn draw(&mut self) -> u32 {
        self.drawn ^= self.drawn << 13;
        self.drawn ^= self.drawn >> 17;
        self.drawn ^= self.drawn << 5;
        self.drawn
    }
}
