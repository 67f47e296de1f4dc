//! Domains of requests, and the tokens that bound how much of each is under way. The rules are the
//! elevator's.

use crate::bio::{Flags, Op};
use crate::policy::KyberAdjust;

/// How many domains there are.
pub(super) const DOMAINS: usize = 4;

/// What is bounded together (K1). With [`KyberAdjust::Steps`] nothing is of [`Self::Discard`].
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

    /// K1.
    pub(super) const fn of(kind: KyberAdjust, op: Op, flags: Flags) -> Self {
        match (kind, op) {
            (_, Op::Read) => Self::Read,
            (KyberAdjust::Percentiles, Op::Write) => Self::Write,
            (KyberAdjust::Percentiles, Op::Discard) => Self::Discard,
            (KyberAdjust::Steps, Op::Write) if flags.contains(Flags::SYNC) => Self::Write,
            _ => Self::Other,
        }
    }

    /// Requests in a row ([domain-batches-in-turn]).
    pub(super) const fn batch(self, kind: KyberAdjust) -> u32 {
        match (self, kind) {
            (Self::Read, _) => 16,
            (Self::Write, _) | (Self::Other, KyberAdjust::Steps) => 8,
            (Self::Discard | Self::Other, _) => 1,
        }
    }

    /// Every domain once, beginning behind this one, which comes last ([domain-batches-in-turn]).
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
    /// `max` tokens, which is also as many as there will ever be.
    ///
    /// # Panics
    ///
    /// If that is none.
    pub(super) fn new(max: u32) -> Self {
        assert!(max > 0, "a domain without tokens sends nothing");
        Self { max, depth: max, out: 0 }
    }

    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether there are as many as there can be.
    pub(super) const fn is_whole(&self) -> bool {
        self.depth == self.max
    }

    /// From now on there are `depth`, as far as [depth-within-bounds] allows.
    pub(super) fn resize(&mut self, depth: u32) {
        self.depth = depth.clamp(1, self.max);
    }

    /// Takes one; says whether there was one left ([token-per-request]).
    pub(super) const fn take(&mut self) -> bool {
        let left = self.out < self.depth;
        self.out += left as u32;
        left
    }

    /// Gives one back.
    pub(super) fn put(&mut self) {
        assert!(self.out > 0, "[one-finished-per-dispatch]: finished more often than dispatched");
        self.out -= 1;
    }

    #[cfg(test)]
    pub(super) const fn out(&self) -> u32 {
        self.out
    }
}
