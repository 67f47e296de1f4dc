//! Every state of map and log that a crash at one moment may leave.

use super::recorder::{Recorder, WORD};
use super::shape::{BAD, Shape};
use blockyard::prng::Prng;

/// A state that a crash left.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The words of map and log.
    pub(crate) metadata: Vec<u64>,
    pub(crate) blocks: Vec<[u64; 2]>,
}

/// A moment at which the power may fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    /// Map and log, with the oldest value of each word.
    oldest: Vec<u64>,
    /// The words with several possible values, and these values.
    open: Vec<(usize, Vec<u64>)>,
    /// The blocks that may be bad.
    maybe_bad: Vec<usize>,
    /// The words of each block, or a mark that it is torn.
    pub(crate) blocks: Vec<[u64; 2]>,
}

impl Moment {
    pub(crate) fn of(shape: Shape, recorder: &Recorder) -> Self {
        let State { metadata: mut oldest, blocks } = shape.state(recorder);
        let mut open = Vec::new();
        for (at, values) in recorder.open() {
            if let Some(place) = shape.metadata_place(at) {
                oldest[place] = values[0];
                open.push((place, values.to_vec()));
            }
        }
        let repaired = recorder.bad().filter(|&(_, is_bad)| !is_bad);
        let maybe_bad =
            repaired.map(|(at, _)| shape.block_place(at).expect("position of a block").0).collect();
        Self { oldest, open, maybe_bad, blocks }
    }

    /// The number of states.
    pub(crate) fn count(&self) -> u64 {
        count(&self.open) << self.maybe_bad.len()
    }

    /// Returns one of the states at random.
    pub(crate) fn draw(&self, prng: &mut Prng) -> State {
        let mut state = State { metadata: self.oldest.clone(), blocks: self.blocks.clone() };
        for (place, values) in &self.open {
            state.metadata[*place] = prng.pick(values);
        }
        for &block in self.maybe_bad.iter().filter(|_| prng.below(2) == 0) {
            state.blocks[block] = BAD;
        }
        state
    }

    /// Returns state number `n`.
    pub(crate) fn state(&self, n: u64) -> State {
        let mut state = State { metadata: self.oldest.clone(), blocks: self.blocks.clone() };
        for (bit, &block) in self.maybe_bad.iter().enumerate() {
            if n >> bit & 1 == 1 {
                state.blocks[block] = BAD;
            }
        }
        let n = n >> self.maybe_bad.len();
        choose(&self.open, n, |place, value| state.metadata[place] = value);
        state
    }

    /// Returns this moment once for each mix of words that torn blocks may have.
    pub(crate) fn untorn(&self, shape: Shape, recorder: &Recorder) -> Vec<Self> {
        let words: Vec<((usize, usize), Vec<u64>)> = recorder
            .open()
            .filter_map(|(at, values)| Some((shape.block_place(at)?, values.to_vec())))
            .collect();
        (0..count(&words))
            .map(|n| {
                let mut moment = self.clone();
                for &((block, _), _) in &words {
                    let at = shape.block_at(block as u32);
                    moment.blocks[block] = [recorder.word(at), recorder.word(at + WORD)];
                }
                choose(&words, n, |(block, word), value| moment.blocks[block][word] = value);
                moment
            })
            .collect()
    }
}

/// Returns the number of ways to choose a value for each word.
fn count<P>(words: &[(P, Vec<u64>)]) -> u64 {
    words.iter().map(|(_, values)| values.len() as u64).product()
}

/// Chooses the values of way number `n`.
fn choose<P: Copy>(words: &[(P, Vec<u64>)], mut n: u64, mut set: impl FnMut(P, u64)) {
    for (place, values) in words {
        let values_len = values.len() as u64;
        set(*place, values[(n % values_len) as usize]);
        n /= values_len;
    }
}
