//! All paths through a run that chooses between several ways from time to time: one run for each
//! path. Or one random path.

use blockyard::prng::Prng;

/// The path of one run. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// The chosen way, and the number of ways, at each choice.
    taken: Vec<(usize, usize)>,
    at: usize,
    drawn: Option<Prng>,
}

/// On a random path, one in so many choices may differ from the first way.
const ASIDE: u64 = 4;

impl Paths {
    /// Returns a random path.
    pub(crate) fn drawn(prng: Prng) -> Self {
        Self { drawn: Some(prng), ..Self::default() }
    }

    /// Chooses one of `ways`.
    pub(crate) fn choose(&mut self, ways: usize) -> usize {
        assert!(ways > 0, "a choice has at least one way");
        if let Some(prng) = &mut self.drawn {
            return if prng.below(ASIDE) == 0 { prng.below(ways as u64) as usize } else { 0 };
        }
        if self.at == self.taken.len() {
            self.taken.push((0, ways));
        }
        let (way, of) = self.taken[self.at];
        assert_eq!(of, ways, "the same choices lead to the same state");
        self.at += 1;
        way
    }

    /// Whether the next choice is one that an earlier run made too.
    pub(crate) fn on_known_ground(&self) -> bool {
        self.at + 1 < self.taken.len()
    }

    /// Moves to the next path, if there is one.
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
