//! The times at which queues are frozen and quiesced.

use super::one_in;
use blockyard::prng::Prng;
use blockyard::request_queue::QueueConfig;
use blockyard::time::Duration;
use blockyard::unit::QueueId;

/// A freeze or a quiesce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    Freeze,
    Quiesce,
}

/// One pause. Several may overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PausePlan {
    pub(crate) queue: QueueId,
    pub(crate) how: Pause,
    pub(crate) after: Duration,
    /// The duration. `None` means until the queue is empty, which a freeze ensures.
    pub(crate) lasts: Option<Duration>,
}

impl PausePlan {
    pub(super) fn draw_all(prng: &mut Prng, queues: &[QueueConfig]) -> Vec<Self> {
        let count = prng.pick(&[0, 0, 1, 3, 8]);
        (0..count).map(|_| Self::draw(prng, queues)).collect()
    }

    fn draw(prng: &mut Prng, queues: &[QueueConfig]) -> Self {
        let queue = prng.below(queues.len() as u64);
        let how = prng.pick(&[Pause::Freeze, Pause::Quiesce]);
        let after = prng.pick(&[100, 1_000, 10_000]);
        let lasts_us = prng.pick(&[0, 50, 1_000, 1_500_000]);
        let lasts = Duration::from_us(prng.below(lasts_us + 1));
        let drains = how == Pause::Freeze && one_in(prng, 2);
        Self {
            queue: QueueId(u16::try_from(queue).expect("a queue number should fit 16 bits")),
            how,
            after: Duration::from_us(prng.below(after)),
            lasts: (!drains).then_some(lasts),
        }
    }
}
