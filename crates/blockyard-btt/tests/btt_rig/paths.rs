//! All ways through a run that asks, now and then, which of several ways to go: one run for each. Or one that
//! a seed draws.

use blockyard::prng::Prng;

/// The way of one run. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// What was taken, and of how many.
    taken: Vec<(usize, usize)>,
    at: usize,
    drawn: Option<Prng>,
}

/// One in so many choices is not the first way, where ways are drawn.
const ASIDE: u64 = 4;

impl Paths {
    /// One way, drawn.
    pub(crate) fn drawn(prng: Prng) -> Self {
        Self { drawn: Some(prng), ..Self::default() }
    }

    /// Which of `ways` to go.
    pub(crate) fn choose(&mut self, ways: usize) -> usize {
        assert!(ways > 0, "somewhere it must go on");
        if let Some(prng) = &mut self.drawn {
            return if prng.below(ASIDE) == 0 { prng.below(ways as u64) as usize } else { 0 };
        }
        if self.at == self.taken.len() {
            self.taken.push((0, ways));
        }
        let (way, of) = self.taken[self.at];
        assert_eq!(of, ways, "the same choices lead to the same place");
        self.at += 1;
        way
    }

    /// Whether this run is on ground where another one was before.
    pub(crate) fn on_known_ground(&self) -> bool {
        self.at + 1 < self.taken.len()
    }

    /// Begins the next run, if there is one.
    pub(crate) fn next(&mut self) -> bool {
        if self.drawn.is_some() {
            return false;
        }
        self.at = 0;
        while let Some((way, of)) = self.taken.pop() {
            if way + 1 < of {
                self.taken.push((way + 1, of));
                return true;
            }
        }
        false
    }
}
