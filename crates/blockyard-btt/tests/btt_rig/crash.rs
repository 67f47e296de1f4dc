//! What a crash at one moment may leave of map and log: every state, one after the other.

use super::recorder::{Recorder, WORD};
use super::shape::{BAD, Shape};
use blockyard::prng::Prng;

/// What a crash left.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Map and log.
    pub(crate) metadata: Vec<u64>,
    pub(crate) blocks: Vec<[u64; 2]>,
}

/// A moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    /// Map and log with the oldest of all values.
    oldest: Vec<u64>,
    /// Words that may have others: which, and these.
    open: Vec<(usize, Vec<u64>)>,
    /// Blocks that may be bad.
    maybe_bad: Vec<usize>,
    /// What each block has, or that it is torn.
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
        let mended = recorder.bad().filter(|&(_, is_bad)| !is_bad);
        let maybe_bad = mended.map(|(at, _)| shape.block_place(at).expect("it is one").0).collect();
        Self { oldest, open, maybe_bad, blocks }
    }

    /// How many states there are.
    pub(crate) fn count(&self) -> u64 {
        count(&self.open) << self.maybe_bad.len()
    }

    /// One of the states, drawn.
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

    /// State number `n` of these.
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

    /// The same moment, once for each mix of words that torn blocks may have.
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

/// How many ways there are to choose a value for each.
fn count<P>(words: &[(P, Vec<u64>)]) -> u64 {
    words.iter().map(|(_, values)| values.len() as u64).product()
}

/// Way number `n`.
fn choose<P: Copy>(words: &[(P, Vec<u64>)], mut n: u64, mut set: impl FnMut(P, u64)) {
    for (place, values) in words {
        let values_len = values.len() as u64;
        set(*place, values[(n % values_len) as usize]);
        n /= values_len;
    }
}
