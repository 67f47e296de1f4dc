//! What a crash at one moment may leave of map and log: every state, one after the other.

use super::recorder::{Recorder, WORD};
use super::shape::Shape;
use blockyard::prng::Prng;

/// A moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    /// Map and log with the oldest of all values.
    oldest: Vec<u64>,
    /// Words that may have others: which, and these.
    open: Vec<(usize, Vec<u64>)>,
    /// What each block has, or that it is torn.
    pub(crate) blocks: Vec<[u64; 2]>,
}

impl Moment {
    pub(crate) fn of(shape: Shape, recorder: &Recorder) -> Self {
        let (start, words) = shape.metadata();
        let mut oldest: Vec<u64> =
            (start..).step_by(8).take(words).map(|at| recorder.word(at)).collect();
        let mut open = Vec::new();
        for (at, values) in recorder.open().filter(|&(at, _)| at >= start) {
            let place = usize::try_from((at - start) / WORD).expect("it is small");
            if place < words {
                oldest[place] = values[0];
                open.push((place, values.to_vec()));
            }
        }
        let blocks = (0..shape.blocks()).map(|block| shape.block(recorder, block)).collect();
        Self { oldest, open, blocks }
    }

    /// How many states there are.
    pub(crate) fn count(&self) -> u64 {
        count(&self.open)
    }

    /// One of the states, drawn.
    pub(crate) fn draw(&self, prng: &mut Prng) -> Vec<u64> {
        let mut state = self.oldest.clone();
        for (place, values) in &self.open {
            state[*place] = prng.pick(values);
        }
        state
    }

    /// State number `n` of these.
    pub(crate) fn state(&self, n: u64) -> Vec<u64> {
        let mut state = self.oldest.clone();
        choose(&self.open, n, |place, value| state[place] = value);
        state
    }

    /// The same moment, once for each mix of words that torn blocks may have.
    pub(crate) fn untorn(&self, shape: Shape, recorder: &Recorder) -> Vec<Self> {
        let start = shape.layout().dataoff;
        let (end, _) = shape.metadata();
        let words: Vec<(usize, Vec<u64>)> = recorder
            .open()
            .filter(|(at, _)| (start..end).contains(at))
            .map(|(at, values)| (((at - start) / WORD) as usize, values.to_vec()))
            .collect();
        let torn: Vec<usize> = words.iter().map(|(word, _)| word / 2).collect();
        (0..count(&words))
            .map(|n| {
                let mut moment = self.clone();
                for &block in &torn {
                    let at = start + block as u64 * 2 * WORD;
                    moment.blocks[block] = [recorder.word(at), recorder.word(at + WORD)];
                }
                choose(&words, n, |word, value| moment.blocks[word / 2][word % 2] = value);
                moment
            })
            .collect()
    }
}

/// How many ways there are to choose a value for each.
fn count(words: &[(usize, Vec<u64>)]) -> u64 {
    words.iter().map(|(_, values)| values.len() as u64).product()
}

/// Way number `n`.
fn choose(words: &[(usize, Vec<u64>)], mut n: u64, mut set: impl FnMut(usize, u64)) {
    for (place, values) in words {
        let values_len = values.len() as u64;
        set(*place, values[(n % values_len) as usize]);
        n /= values_len;
    }
}
