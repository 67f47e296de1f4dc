//! Records the calls at the driver's seam for the checkers.

use blockyard::bio::{Flags, IoPrio, Op};
use blockyard::driver::{Accept, TimedOut};
use blockyard::layer::trace::{Call, CallSink};
use blockyard::request::Piece;
use blockyard::time::Instant;
use blockyard::unit::{DriverTag, HctxId, QueueId};

/// Identifies a request that the driver owns.
pub(crate) type Key = (QueueId, HctxId, DriverTag);

/// A request as the driver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) queue: QueueId,
    pub(crate) hctx: HctxId,
    pub(crate) tag: DriverTag,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) prio: IoPrio,
    pub(crate) write_hint: u8,
    /// The instant at which the request left its elevator or software queue; for a flush, its
    /// start.
    pub(crate) scheduled: Instant,
    pub(crate) answer: Accept,
    /// The request's pieces, or none if it was refused as busy.
    pub(crate) pieces: Vec<Piece>,
}

impl Seen {
    pub(crate) const fn key(&self) -> Key {
        (self.queue, self.hctx, self.tag)
    }
}

/// A call that the checkers see.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Offered(Seen),
    TimedOut(Key, TimedOut),
    /// A permit was given out.
    Permit(QueueId),
    /// A permit came back.
    Returned(QueueId),
}

/// The calls since the loop last took them, in order.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) told: Vec<Told>,
}

impl CallSink for Recorder {
    fn call(&mut self, call: &Call<'_>) {
        self.told.push(match *call {
            Call::Queue(issue, answer) => {
                let rq = issue.request();
                let refused = matches!(answer, Accept::Busy(_));
                Told::Offered(Seen {
                    queue: issue.queue,
                    hctx: issue.hctx,
                    tag: issue.tag,
                    op: rq.op,
                    flags: rq.flags,
                    prio: rq.prio,
                    write_hint: rq.write_hint,
                    scheduled: rq.times.scheduled,
                    answer,
                    pieces: if refused { Vec::new() } else { issue.pieces().collect() },
                })
            }
            Call::TimedOut(queue, hctx, tag, _, answer) => {
                Told::TimedOut((queue, hctx, tag), answer)
            }
            Call::TakeBudget(queue, Some(_)) => Told::Permit(queue),
            Call::ReturnBudget(queue, _) => Told::Returned(queue),
            _ => return,
        });
    }
}
