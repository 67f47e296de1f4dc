//! What the driver took or failed, as the checkers want to see it.

use blockyard::bio::{IoPrio, Op};
use blockyard::driver::Accept;
use blockyard::layer::trace::{Call, CallSink};
use blockyard::request::Piece;
use blockyard::unit::{DriverTag, HctxId, QueueId};

/// A request as the driver saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) queue: QueueId,
    pub(crate) hctx: HctxId,
    pub(crate) tag: DriverTag,
    pub(crate) op: Op,
    pub(crate) prio: IoPrio,
    pub(crate) write_hint: u8,
    pub(crate) answer: Accept,
    pub(crate) pieces: Vec<Piece>,
}

/// Since the loop last looked.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) seen: Vec<Seen>,
}

impl CallSink for Recorder {
    fn call(&mut self, call: &Call<'_>) {
        let Call::Queue(issue, answer @ (Accept::Queued | Accept::Failed(_))) = *call else {
            return;
        };
        let rq = issue.request();
        self.seen.push(Seen {
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            op: rq.op,
            prio: rq.prio,
            write_hint: rq.write_hint,
            answer,
            pieces: issue.pieces().collect(),
        });
    }
}
