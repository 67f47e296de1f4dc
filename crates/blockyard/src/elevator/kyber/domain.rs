//! Domains of requests, and the tokens that bound how much of each is under way. The rules are the
//! elevator's.

use crate::bio::{Flags, Op};
use crate::policy::KyberAdjust;

/// The number of domains.
pub(super) const DOMAINS: usize = 4;

/// A kind of requests with a depth of its own. With [`KyberAdjust::Steps`], [`Self::Discard`] is
/// unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Read,
    Write,
    Discard,
    Other,
}

impl Domain {
    /// All of them, in the order of their turns.
    pub(super) const ALL: [Self; DOMAINS] = [Self::Read, Self::Write, Self::Discard, Self::Other];

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Returns the domain of a request.
    pub(super) const fn of(kind: KyberAdjust, op: Op, flags: Flags) -> Self {
        match (kind, op) {
            (_, Op::Read) => Self::Read,
            (KyberAdjust::Percentiles, Op::Write) => Self::Write,
            (KyberAdjust::Percentiles, Op::Discard) => Self::Discard,
            (KyberAdjust::Steps, Op::Write) if flags.contains(Flags::SYNC) => Self::Write,
            _ => Self::Other,
        }
    }

    /// Returns the size of a batch.
    pub(super) const fn batch(self, kind: KyberAdjust) -> u32 {
        match (self, kind) {
            (Self::Read, _) => 16,
            (Self::Write, _) | (Self::Other, KyberAdjust::Steps) => 8,
            (Self::Discard | Self::Other, _) => 1,
        }
    }

    /// Returns every domain once, from the next one to this one.
    pub(super) fn round(self) -> impl Iterator<Item = Self> {
        (1..=DOMAINS).map(move |ahead| Self::ALL[(self.index() + ahead) % DOMAINS])
    }
}

/// The tokens of a domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    max: u32,
    depth: u32,
    out: u32,
}

impl Tokens {
    /// Returns `max` tokens, which is also the upper limit of the depth.
    ///
    /// # Panics
    ///
    /// Panics if `max` is 0.
    pub(super) fn new(max: u32) -> Self {
        assert!(max > 0, "a domain without tokens sends nothing");
        Self { max, depth: max, out: 0 }
    }

    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the depth is at its upper limit.
    pub(super) const fn is_whole(&self) -> bool {
        self.depth == self.max
    }

    /// Sets the depth, within its bounds ([depth-within-bounds]).
    pub(super) fn resize(&mut self, depth: u32) {
        self.depth = depth.clamp(1, self.max);
    }

    /// Takes a token. Returns whether there was one ([token-per-request]).
    pub(super) const fn take(&mut self) -> bool {
        let left = self.out < self.depth;
        self.out += left as u32;
        left
    }

    /// Gives a token back.
    pub(super) fn put(&mut self) {
        assert!(self.out > 0, "[one-finished-per-dispatch]: finished more often than dispatched");
        self.out -= 1;
    }

    #[cfg(test)]
    pub(super) const fn out(&self) -> u32 {
        self.out
    }
}
