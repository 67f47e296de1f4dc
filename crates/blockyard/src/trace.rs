//! One stream of events, from which statistics, traces and virtual processor costs are derived.
//!
//! Every step of a request emits an [`Event`], named by blktrace's action letter if there is one. A
//! [`Sink`] receives the events; the sink `()` receives none, and the calls are compiled away.

use crate::bio::{Flags, Op};
use crate::driver::Busy;
use crate::request::Request;
use crate::status::Status;
use crate::time::Instant;
use crate::unit::{CpuId, HctxId, QueueId, RequestId};

/// An action of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `Q`: a bio entered the queue.
    Queue,
    /// `X`: a bio was cut; the event names the part that was cut off at the front, before that
    /// part merges or gets a request.
    Split,
    /// `M`: a bio joined a request at its back, or as a discard range. The range is the bio's.
    BackMerge,
    /// `F`: a bio joined a request at its front. The range is the bio's.
    FrontMerge,
    /// `M` too: two requests are about to become one; the event names the one that ends by it.
    Join,
    /// `G`: a bio got a request of its own.
    GetRequest,
    /// `S`: a submitter found no tag and waits.
    Sleep,
    /// `P`: the first request was put on a plug.
    Plug,
    /// `U`: a plug was released; the event names its first request.
    Unplug {
        /// How many requests it held.
        requests: u16,
        /// The submitter is about to sleep; else it asked for the release, or the plug was full.
        sleeping: bool,
    },
    /// `I`: a request entered the elevator or a software queue.
    Insert,
    /// A request left the elevator or software queue.
    Schedule,
    /// `D`: the driver accepted a request.
    Issue,
    /// The driver refused a request.
    Refuse(Busy),
    /// A run stopped, or did not begin, for this reason while there was work.
    Hold(Hold),
    /// `C`: the driver is done with a request.
    Complete(Status),
    /// `C` too: a request that needed flushes has ended behind one, with this status.
    SequenceEnd(Status),
    /// `R`: a request went back to be tried again.
    Requeue,
    /// The driver has had a request for longer than the queue's timeout, and is asked about it.
    TimedOut,
}

impl Action {
    /// blktrace's letter, where it has one.
    #[must_use]
    pub const fn letter(self) -> Option<char> {
        Some(match self {
            Self::Queue => 'Q',
            Self::Split => 'X',
            Self::BackMerge | Self::Join => 'M',
            Self::FrontMerge => 'F',
            Self::GetRequest => 'G',
            Self::Sleep => 'S',
            Self::Plug => 'P',
            Self::Unplug { .. } => 'U',
            Self::Insert => 'I',
            Self::Issue => 'D',
            Self::Complete(_) | Self::SequenceEnd(_) => 'C',
            Self::Requeue => 'R',
            Self::Schedule | Self::Refuse(_) | Self::Hold(_) | Self::TimedOut => {
                return None;
            }
        })
    }
}

/// The reason why requests are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The device had no budget.
    Budget,
    /// There was no driver tag.
    Tag,
    /// The driver refused: the device is full.
    Device,
    /// The driver refused: a resource that the host's queues share is used up.
    Host,
    /// The driver refused: something else ran out.
    Resource,
    /// The dispatch list was not empty, so nothing left the elevator.
    Leftovers,
    /// The elevator withholds its requests until a completion, or until an instant that it named.
    Order,
    /// The queue is [quiesced](crate::request_queue::RequestQueue::quiesce).
    Quiesced,
}

impl Hold {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::Budget,
        Self::Tag,
        Self::Device,
        Self::Host,
        Self::Resource,
        Self::Leftovers,
        Self::Order,
        Self::Quiesced,
    ];

    /// Its name in tables and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Tag => "tag",
            Self::Device => "device",
            Self::Host => "host",
            Self::Resource => "resource",
            Self::Leftovers => "leftovers",
            Self::Order => "order",
            Self::Quiesced => "quiesced",
        }
    }
}

impl From<Busy> for Hold {
    fn from(busy: Busy) -> Self {
        match busy {
            Busy::Device => Self::Device,
            Busy::Host => Self::Host,
            Busy::Resource => Self::Resource,
        }
    }
}

/// A step of a bio's or request's way.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When.
    pub at: Instant,
    /// What.
    pub action: Action,
    /// In which request queue.
    pub queue: QueueId,
    /// The processor of the submitter it concerns.
    pub cpu: CpuId,
    /// The hardware queue it concerns.
    pub hctx: HctxId,
    /// Operation of the bio or request.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
    /// Its first sector.
    pub sector: u64,
    /// Its sectors.
    pub sectors: u32,
    /// The request it concerns, as it is after the step; `None` where there is none yet, or no
    /// single one.
    pub request: Option<(RequestId, &'a Request)>,
}

/// Receives every event, in the order of the steps.
pub trait Sink {
    /// Whether the sink wants events; checked before each event is made. A sink that returns
    /// `false` gets none.
    fn listens(&self) -> bool {
        true
    }

    /// One step was taken. It must not call back into the queue.
    fn event(&mut self, event: &Event<'_>);
}

/// The sink that receives nothing, at no cost.
impl Sink for () {
    fn listens(&self) -> bool {
        false
    }

    fn event(&mut self, _event: &Event<'_>) {}
}

/// No sink, or one that listens.
impl<S: Sink> Sink for Option<S> {
    fn listens(&self) -> bool {
        self.as_ref().is_some_and(Sink::listens)
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(sink) = self {
            sink.event(event);
        }
    }
}

/// A sink that another owner keeps.
impl<S: Sink + ?Sized> Sink for &mut S {
    fn listens(&self) -> bool {
        (**self).listens()
    }

    fn event(&mut self, event: &Event<'_>) {
        (**self).event(event);
    }
}

/// Both of two sinks, the first one first.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn listens(&self) -> bool {
        self.0.listens() || self.1.listens()
    }

    #[inline(always)] // as the sinks below
    fn event(&mut self, event: &Event<'_>) {
        if self.0.listens() {
            self.0.event(event);
        }
        if self.1.listens() {
            self.1.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter {
        listens: bool,
        heard: u32,
    }

    impl Sink for Counter {
        fn listens(&self) -> bool {
            self.listens
        }

        fn event(&mut self, _: &Event<'_>) {
            self.heard += 1;
        }
    }

    /// Wants events, as every sink that does not say otherwise.
    struct Eager;

    impl Sink for Eager {
        fn event(&mut self, _: &Event<'_>) {}
    }

    #[test]
    fn a_pair_of_sinks_listens_if_one_does_and_each_hears_what_it_wants() {
        let event = Event {
            at: Instant::ZERO,
            action: Action::Queue,
            queue: QueueId(0),
            cpu: CpuId(0),
            hctx: HctxId(0),
            op: Op::Read,
            flags: Flags::NONE,
            sector: 0,
            sectors: 8,
            request: None,
        };
        for (one, other) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut pair =
                (Counter { listens: one, heard: 0 }, Counter { listens: other, heard: 0 });
            <&mut (Counter, Counter) as Sink>::event(&mut &mut pair, &event);
            assert_eq!((pair.0.heard, pair.1.heard), (u32::from(one), u32::from(other)));
            assert_eq!(<&mut _ as Sink>::listens(&&mut pair), one || other, "{one} or {other}");
            let mut absent: Option<Counter> = None;
            absent.event(&event);
            assert!(!absent.listens(), "nobody listens");
            let mut present = Some(pair.0);
            present.event(&event);
            assert_eq!(present.listens(), one, "{one}");
            assert_eq!(present.map(|counter| counter.heard), Some(u32::from(one) + 1));
        }
        assert!(Eager.listens() && !().listens());
    }
}
