//! The choices of a design, as data: everything in which one design differs from another.
//!
//! Each historical mechanism stays selectable next to today's. The enums say what the mechanism
//! does; the module that does it says how.

use crate::time::Duration;

/// The number of locks, and so of stages, of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The legacy path: one lock over everything, no software queues, one hardware queue; a
    /// request is taken from the elevator only when the device has room.
    SingleLock,
    /// blk-mq: software queues per processor, hardware queues, tags.
    Multi,
}

/// When a hardware queue takes requests out of the elevator or software queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// As in Linux 4.13: send the dispatch list; then pull from the elevator until the driver
    /// refuses, even if the dispatch list made no progress. Refused requests can no longer be
    /// merged or sorted.
    DrainAll,
    /// Pull nothing new until the driver has accepted everything on the hardware queue's own
    /// dispatch list.
    HoldUntilFlushed,
    /// Like [`Self::HoldUntilFlushed`], with one dispatch list for all hardware queues.
    SharedList,
    /// As today: a request leaves the elevator only under a permit from the device.
    Budget,
}

/// How a hardware queue empties software queues (where there is no elevator).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// Takes all requests of every software queue, as one batch.
    SpliceAll,
    /// Takes one request at a time, from one software queue after the other, and continues where
    /// the last run stopped.
    RoundRobin,
    /// [`Self::RoundRobin`] while the hardware queue is busy, else [`Self::SpliceAll`].
    ByBusy,
}

/// How a hardware queue remembers that the driver refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyTrack {
    /// Not at all.
    Off,
    /// A bit: set by a refusal, cleared by a completion. While it is set nothing is pulled.
    Bit,
    /// A moving average of refusals: 7/8 of the old value plus 2 for a refusal, in integers. Not
    /// zero means busy.
    Ewma,
}

/// How a software queue finds the request that a bio may merge with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwqMerge {
    /// It does not merge.
    Off,
    /// It tries the last eight requests, newest first.
    Last8,
    /// It tries the request merged last, then a hash of end sectors.
    Hash,
}

/// Which bios go through a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugging {
    /// Bios of a batch that the submitter announced. A lone request is offered to the driver, or
    /// with an elevator staged and its run left to a worker. As in Linux 7.2 and 7.3, and in 6.1.
    Batches,
    /// Every bio: a lone bio is a batch of one, and its submitter runs the hardware queue itself.
    /// As in Linux 6.10 to 6.18.
    EveryBio,
    /// Bios of a batch, as with [`Self::Batches`]; but a batch among several hardware queues keeps
    /// one request, which the next one that does not join it sends. A lone synchronous request
    /// among several hardware queues is run by its submitter, and every other lone one by a worker,
    /// whether there is an elevator or not. As in Linux 4.10 to 4.18, where each call of
    /// `io_submit` announces a batch, even of one.
    Calls,
}

/// Which hardware queues a completion restarts, of those that a full device has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// One of its own disk; and of the disks that a full host has stopped, those that were refused
    /// first. As in Linux since 4.19.
    Own,
    /// One of the next disk on the host that has a stopped one. The disk of the completion is the
    /// last in the round. As in Linux 4.12 to 4.18, where disks share the tags of a host.
    InTurn,
}

/// How many requests the elevator may hold for each hardware queue, without the reserved tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedDepth {
    /// This many requests.
    Fixed(u32),
    /// Twice the depth of the device, with the depth capped at 128.
    FromDeviceDepth,
}

impl SchedDepth {
    /// Returns the number of scheduler tags of a hardware queue with `device_depth` driver tags.
    #[must_use]
    pub const fn tags(self, device_depth: u32) -> u32 {
        match self {
            Self::Fixed(depth) => depth,
            Self::FromDeviceDepth if device_depth < 128 => 2 * device_depth,
            Self::FromDeviceDepth => 256,
        }
    }
}

/// Which elevator, with its tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElevatorKind {
    /// None: software queues only.
    None,
    /// mq-deadline.
    Deadline(DeadlineTunables),
    /// kyber.
    Kyber(KyberTunables),
    /// bfq.
    Bfq(BfqTunables),
    /// adios.
    Adios(AdiosTunables),
    /// The embedder's own, which
    /// [`RequestQueue::with_elevator`](crate::request_queue::RequestQueue::with_elevator) takes.
    Other,
}

impl ElevatorKind {
    /// Whether one lock protects everything: mq-deadline and bfq keep one order for the whole
    /// queue, kyber has a lock for each software queue and each hardware queue. The embedder's own
    /// elevator is taken to need one lock, and so is adios, which has one for its trees and one for
    /// its batches.
    #[must_use]
    pub const fn has_one_lock(self) -> bool {
        matches!(self, Self::Deadline(_) | Self::Bfq(_) | Self::Adios(_) | Self::Other)
    }

    /// Whether requests wait in a list until a run files them.
    #[must_use]
    pub const fn lists_insertions(self) -> bool {
        matches!(self, Self::Deadline(DeadlineTunables { insertion: Insertion::Listed, .. }))
    }
}

/// Where mq-deadline keeps the requests that go before its sorted ones: flushes, and those that
/// come back from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadLists {
    /// In one list, which goes before every class. As in Linux since 6.19, and before 5.14.
    One,
    /// In a list for each priority class. A request there goes when its class has its turn. As in
    /// Linux 5.14 to 6.18.
    ByClass,
}

/// Where a request waits until mq-deadline files it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// Nowhere: its submitter waits for the lock of the elevator.
    Locked,
    /// In a list with a lock of its own, which the next run files. Nobody waits for the lock of the
    /// elevator: while another processor has it, a run takes nothing, and a bio looks for no
    /// request to join. As posted for Linux in January 2024, and not merged.
    Listed,
}

/// How many of the submitters that wait for a tag of mq-deadline one wake-up wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagWakes {
    /// An eighth of the tags, from 1 to 8, once as many have come free. As in Linux since 7.0, and
    /// before 6.11.
    Batches,
    /// One for each tag that comes free. As in Linux 6.11 to 6.19, where mq-deadline announces that
    /// a limit of its own may leave one tag.
    Single,
}

/// The tunables of mq-deadline, with Linux's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineTunables {
    /// The deadline of a read; 500 ms.
    pub read_expire: Duration,
    /// The deadline of a write; 5 s.
    pub write_expire: Duration,
    /// How often reads may pass over waiting writes; 2. With 0 writes always go first, so a stream
    /// of writes that never ceases starves reads, as in Linux.
    pub writes_starved: u32,
    /// Requests of one direction sent in a row before deadlines are checked; 16.
    pub fifo_batch: u32,
    /// Whether front merges are tried; yes. The request filed last is tried in any case.
    pub front_merges: bool,
    /// A request of a lower priority class that has waited this long goes first; 10 s.
    /// [`Duration::MAX`]: never.
    pub prio_aging_expire: Duration,
    /// Scheduler tags that asynchronous requests may use; `None`: all.
    pub async_depth: Option<u32>,
    /// Whether priority classes are kept separate. The 2017 elevator did not.
    pub classes: bool,
    /// Where requests wait that go before the sorted ones.
    pub heads: HeadLists,
    /// How waiters for a tag are woken.
    pub tag_wakes: TagWakes,
    /// Where requests wait until they are filed.
    pub insertion: Insertion,
}

impl Default for DeadlineTunables {
    fn default() -> Self {
        Self {
            read_expire: Duration::from_ms(500),
            write_expire: Duration::from_secs(5),
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            prio_aging_expire: Duration::from_secs(10),
            async_depth: None,
            classes: true,
            heads: HeadLists::One,
            tag_wakes: TagWakes::Batches,
            insertion: Insertion::Locked,
        }
    }
}

/// How kyber turns latencies into depths, and how it divides requests into domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KyberAdjust {
    /// By percentiles of total and device latency, as since Linux 4.20. The domains are reads,
    /// writes, discards and others.
    Percentiles,
    /// By steps, from the mean device latency, as in Linux 4.12 to 4.19. The domains are reads,
    /// synchronous writes and others.
    Steps,
}

/// Where requests wait that kyber has not yet taken up. Bios join them there, and only there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KyberStaging {
    /// In a list of their domain and processor, as since Linux 4.18. Those of one domain are taken
    /// up when it has a token and nothing else to send.
    ByDomain,
    /// In the list of their processor, as in Linux 4.12 to 4.17. All of them are taken up when any
    /// domain whose turn comes has nothing else to send, before it looks for a token.
    Together,
}

/// The tunables of kyber, with Linux's defaults. Linux lets a user set the two latencies only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KyberTunables {
    /// The target latency of reads; 2 ms.
    pub read_latency: Duration,
    /// The target latency of writes; 10 ms.
    pub write_latency: Duration,
    /// The most reads between the elevator and their end; 256. Every depth is at least 1.
    pub read_depth: u32,
    /// The same for writes; 128.
    pub write_depth: u32,
    /// The same for discards, if they are a domain; 64.
    pub discard_depth: u32,
    /// The same for all other requests; 16, and 64 before Linux 4.20.
    pub other_depth: u32,
    /// How depths follow latencies.
    pub adjust: KyberAdjust,
    /// Where requests wait, and bios join them.
    pub staging: KyberStaging,
    /// Scheduler tags that asynchronous requests may use; `None`: three quarters, as always before
    /// Linux 7.0.
    pub async_depth: Option<u32>,
}

impl Default for KyberTunables {
    fn default() -> Self {
        Self {
            read_latency: Duration::from_ms(2),
            write_latency: Duration::from_ms(10),
            read_depth: 256,
            write_depth: 128,
            discard_depth: 64,
            other_depth: 16,
            adjust: KyberAdjust::Percentiles,
            staging: KyberStaging::ByDomain,
            async_depth: None,
        }
    }
}

/// The tunables of bfq, with Linux's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfqTunables {
    /// The time for which the device is held for the next request of a process; 8 ms. Zero: never.
    /// At most [`IDLE_MAX`](crate::elevator::IDLE_MAX) is used.
    pub slice_idle: Duration,
    /// Whether weights of interactive and soft real-time processes are raised; yes.
    pub low_latency: bool,
    /// Whether one request is in the device at a time, and the device is held for every process, so
    /// that shares are exact; no.
    pub strict_guarantees: bool,
    /// The time of a slot, rounded up to ticks of 4 ms; 124 ms, an eighth of the 250 ticks of a
    /// second.
    pub timeout_sync: Duration,
    /// The largest budget in sectors; 0: what the device transfers in the time of a slot.
    pub max_budget: u32,
    /// How far behind the last request another one may be to go next, in KiB; 16384.
    pub back_seek_max: u32,
    /// The factor by which the distance of a request behind counts, at least 1; 2.
    pub back_seek_penalty: u32,
    /// The deadline of a synchronous request; 125 ms.
    pub fifo_expire_sync: Duration,
    /// The deadline of an asynchronous request; 250 ms.
    pub fifo_expire_async: Duration,
    /// Scheduler tags of which asynchronous requests may use half; `None`: all, as always before
    /// Linux 7.0.
    pub async_depth: Option<u32>,
    /// Whether queues of processes that seem to cooperate are merged, which then have one share
    /// together; yes. Linux has no such tunable.
    pub merges_queues: bool,
    /// Whether the clock stands still from the creation of a queue to its first request, as in
    /// Linux before 7.2, where a plug around each bio caches the time; no. The queue then begins 1
    /// ns before its creation: its first time of thinking, and the time in which it was idle, wrap
    /// around. So its third request makes it a slow thinker, and a process with several requests
    /// at a time does not count as one that does I/O most of the time for some seconds.
    pub plug_stops_clock: bool,
}

impl Default for BfqTunables {
    fn default() -> Self {
        Self {
            slice_idle: Duration::from_ms(8),
            low_latency: true,
            strict_guarantees: false,
            timeout_sync: Duration::from_ms(124),
            max_budget: 0,
            back_seek_max: 16 * 1024,
            back_seek_penalty: 2,
            fifo_expire_sync: Duration::from_ms(125),
            fifo_expire_async: Duration::from_ms(250),
            async_depth: None,
            merges_queues: true,
            plug_stops_clock: false,
        }
    }
}

/// What adios knows of the latencies of one kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdiosModel {
    /// The latency of a request of at most 4 KiB.
    pub base: Duration,
    /// What each KiB above 4 KiB adds.
    pub slope: Duration,
}

impl AdiosModel {
    /// Nothing: what adios begins with.
    pub const UNKNOWN: Self = Self { base: Duration::ZERO, slope: Duration::ZERO };
}

/// The order in which adios gives out a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdiosBatchOrder {
    /// Reads, writes, discards, others; first in, first out (`batch_order` 0).
    Kinds,
    /// Synchronous writes, then the others by sector (1). On a rotational disk only.
    Sweep,
}

/// What a discard is to adios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdiosDiscards {
    /// A barrier: what comes behind it waits until it has gone. As in version 3.1.9, whose test for
    /// flushes looks at one bit of the operation, which discards have too.
    Barriers,
    /// A request as others. As in version 3.2.0.
    Sorted,
}

/// The tunables of adios, with the defaults of its version 3.1.9. Their names are those of its
/// attributes in sysfs, but for the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdiosTunables {
    /// The time within which the requests of a batch, and those that are still under way, are
    /// predicted to end; `None`: 16 ms, and 22 ms on a rotational disk.
    pub global_latency_window: Option<Duration>,
    /// The percentage of that time below which the next batch is prepared; 20.
    pub bq_refill_below_ratio: u32,
    /// Longer latencies teach nothing; 500 ms.
    pub lat_model_latency_limit: Duration,
    /// The most reads in a batch; 36. The first request of a batch goes in any case.
    pub batch_limit_read: u32,
    /// The same for writes; 72.
    pub batch_limit_write: u32,
    /// The same for discards; 1.
    pub batch_limit_discard: u32,
    /// The deadline of a read, to which its predicted latency is added; 2 ms.
    pub lat_target_read: Duration,
    /// The same for a write that nobody waits for; 2 s.
    pub lat_target_write: Duration,
    /// The same for a discard; 8 s.
    pub lat_target_discard: Duration,
    /// What is known of reads; [`AdiosModel::UNKNOWN`].
    pub lat_model_read: AdiosModel,
    /// What is known of writes; [`AdiosModel::UNKNOWN`].
    pub lat_model_write: AdiosModel,
    /// What is known of discards; [`AdiosModel::UNKNOWN`].
    pub lat_model_discard: AdiosModel,
    /// The thousands of small requests, by weight, at which a model begins to forget; 5000.
    pub shrink_at_kreqs: u32,
    /// The GiB of large requests at which a model begins to forget; 50.
    pub shrink_at_gbytes: u32,
    /// How little a model forgets in an update: half (1), a quarter (2) or an eighth (3); 2.
    pub shrink_resist: u32,
    /// The priority of reads against all others, from -20 to 19: a read that passes an earlier
    /// request of another kind costs less, the higher it is. 8.
    pub read_priority: i32,
    /// The order of a batch (`batch_order`).
    pub batch_order: AdiosBatchOrder,
    /// Whether deadlines are without predicted latencies (bit 0 of `compliance_flags`); no.
    pub fixed_order: bool,
    /// What a discard is.
    pub discards: AdiosDiscards,
}

impl Default for AdiosTunables {
    fn default() -> Self {
        Self {
            global_latency_window: None,
            bq_refill_below_ratio: 20,
            lat_model_latency_limit: Duration::from_ms(500),
            batch_limit_read: 36,
            batch_limit_write: 72,
            batch_limit_discard: 1,
            lat_target_read: Duration::from_ms(2),
            lat_target_write: Duration::from_secs(2),
            lat_target_discard: Duration::from_secs(8),
            lat_model_read: AdiosModel::UNKNOWN,
            lat_model_write: AdiosModel::UNKNOWN,
            lat_model_discard: AdiosModel::UNKNOWN,
            shrink_at_kreqs: 5000,
            shrink_at_gbytes: 50,
            shrink_resist: 2,
            read_priority: 8,
            batch_order: AdiosBatchOrder::Kinds,
            fixed_order: false,
            discards: AdiosDiscards::Barriers,
        }
    }
}

/// Which requests bios and requests may join: Linux's `nomerges`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merges {
    /// Every request that is found (0).
    All,
    /// In an elevator that finds requests by hash or order (mq-deadline), only the one filed last
    /// (1). Plugs and software queues, which look only at a few requests, merge as with
    /// [`Self::All`].
    Last,
    /// None (2).
    Off,
}

/// The tunables of writeback throttling: Linux's `wbt_lat_usec`, and what its limits depend on.
///
/// The writeback of a page cache ([`Flags::WRITEBACK`](crate::bio::Flags::WRITEBACK)) and discards
/// may have so many requests in flight, 16 and fewer at first, that reads stay fast. Direct writes
/// are not throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtTunables {
    /// The target: the time in the device that the fastest read of 100 ms may take. Linux has 2 ms,
    /// and 75 ms for a rotational disk.
    pub latency: Duration,
    /// The requests that the queue has room for, at least 1. With writes alone, three quarters of
    /// them may be writeback. In Linux it is the depth of a SCSI LUN, and `nr_requests` elsewhere.
    pub queue_depth: u32,
}

/// The policies of one design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// Locks and stages.
    pub model: Model,
    /// The elevator.
    pub elevator: ElevatorKind,
    /// When requests leave the elevator.
    pub dispatch: Dispatch,
    /// How software queues are emptied.
    pub dequeue: Dequeue,
    /// How refusals are remembered.
    pub busy: BusyTrack,
    /// How software queues merge.
    pub swq_merge: SwqMerge,
    /// Which bios pass a plug.
    pub plug: Plugging,
    /// How much the elevator may hold.
    pub sched_depth: SchedDepth,
    /// Which requests bios and requests may join.
    pub merges: Merges,
    /// Which hardware queues a completion restarts.
    pub restart: Restart,
    /// Writeback throttling; `None`: none.
    pub wbt: Option<WbtTunables>,
}

impl Policies {
    /// The blk-mq of Linux 7.3 without an elevator.
    pub const NONE: Self = Self {
        model: Model::Multi,
        elevator: ElevatorKind::None,
        dispatch: Dispatch::Budget,
        dequeue: Dequeue::ByBusy,
        busy: BusyTrack::Ewma,
        swq_merge: SwqMerge::Last8,
        plug: Plugging::Batches,
        sched_depth: SchedDepth::FromDeviceDepth,
        merges: Merges::All,
        restart: Restart::Own,
        wbt: None,
    };

    /// Whether a lone request without an elevator is offered to the driver immediately instead of
    /// being staged first, as in Linux since 4.15.
    #[must_use]
    pub const fn issues_directly(&self) -> bool {
        matches!(self.model, Model::Multi)
            && matches!(self.elevator, ElevatorKind::None)
            && matches!(self.dispatch, Dispatch::Budget)
    }

    /// Whether the run after the insert of a lone request is left to a worker thread. blk-mq does
    /// so because an elevator may benefit from more requests.
    #[must_use]
    pub const fn runs_deferred(&self) -> bool {
        matches!(self.model, Model::Multi) && !matches!(self.elevator, ElevatorKind::None)
    }

    /// The blk-mq of Linux 7.3 with mq-deadline.
    #[must_use]
    pub fn mq_deadline() -> Self {
        Self { elevator: ElevatorKind::Deadline(DeadlineTunables::default()), ..Self::NONE }
    }

    /// The blk-mq of Linux 7.3 with kyber.
    #[must_use]
    pub fn mq_kyber() -> Self {
        Self { elevator: ElevatorKind::Kyber(KyberTunables::default()), ..Self::NONE }
    }

    /// The blk-mq of Linux 7.3 with bfq.
    #[must_use]
    pub fn mq_bfq() -> Self {
        Self { elevator: ElevatorKind::Bfq(BfqTunables::default()), ..Self::NONE }
    }

    /// The blk-mq of Linux 7.3 with adios.
    #[must_use]
    pub fn mq_adios() -> Self {
        Self { elevator: ElevatorKind::Adios(AdiosTunables::default()), ..Self::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tunables_have_linuxs_defaults() {
        let ms = |ms: u64| Duration::from_ns(ms * 1_000_000);
        let deadline = DeadlineTunables {
            read_expire: ms(500),
            write_expire: ms(5000),
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            prio_aging_expire: ms(10_000),
            async_depth: None,
            classes: true,
            heads: HeadLists::One,
            tag_wakes: TagWakes::Batches,
            insertion: Insertion::Locked,
        };
        assert_eq!(DeadlineTunables::default(), deadline);
        let kyber = KyberTunables {
            read_latency: ms(2),
            write_latency: ms(10),
            read_depth: 256,
            write_depth: 128,
            discard_depth: 64,
            other_depth: 16,
            adjust: KyberAdjust::Percentiles,
            staging: KyberStaging::ByDomain,
            async_depth: None,
        };
        assert_eq!(KyberTunables::default(), kyber);
        let bfq = BfqTunables {
            slice_idle: ms(8),
            low_latency: true,
            strict_guarantees: false,
            timeout_sync: ms(124),
            max_budget: 0,
            back_seek_max: 16_384,
            back_seek_penalty: 2,
            fifo_expire_sync: ms(125),
            fifo_expire_async: ms(250),
            async_depth: None,
            merges_queues: true,
            plug_stops_clock: false,
        };
        assert_eq!(BfqTunables::default(), bfq);
        let all = [
            Policies::mq_deadline(),
            Policies::mq_kyber(),
            Policies::mq_bfq(),
            Policies::mq_adios(),
        ];
        let expected = [
            ElevatorKind::Deadline(deadline),
            ElevatorKind::Kyber(kyber),
            ElevatorKind::Bfq(bfq),
            ElevatorKind::Adios(AdiosTunables::default()),
        ];
        assert_eq!(all.map(|policies| policies.elevator), expected);
    }

    /// From the source of version 3.1.9.
    #[test]
    fn the_tunables_of_adios_have_the_defaults_of_its_release() {
        let adios = AdiosTunables {
            global_latency_window: None,
            bq_refill_below_ratio: 20,
            lat_model_latency_limit: Duration::from_ms(500),
            batch_limit_read: 36,
            batch_limit_write: 72,
            batch_limit_discard: 1,
            lat_target_read: Duration::from_ms(2),
            lat_target_write: Duration::from_ms(2000),
            lat_target_discard: Duration::from_ms(8000),
            lat_model_read: AdiosModel::UNKNOWN,
            lat_model_write: AdiosModel::UNKNOWN,
            lat_model_discard: AdiosModel::UNKNOWN,
            shrink_at_kreqs: 5000,
            shrink_at_gbytes: 50,
            shrink_resist: 2,
            read_priority: 8,
            batch_order: AdiosBatchOrder::Kinds,
            fixed_order: false,
            discards: AdiosDiscards::Barriers,
        };
        assert_eq!(AdiosTunables::default(), adios);
    }
}
