//! The designs and limits of request queues.

use super::one_in;
use blockyard::limits::Limits;
use blockyard::policy::{
    BusyTrack, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, HeadLists, Insertion,
    KyberAdjust, KyberStaging, KyberTunables, Merges, Model, Plugging, Policies, Restart,
    SchedDepth, SwqMerge, TagWakes, WbtTunables,
};
use blockyard::prng::Prng;
use blockyard::time::Duration;

pub(super) fn policies(prng: &mut Prng, hctxs: u16) -> Policies {
    let dispatch =
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget];
    let (plug, restart) = prng.pick(&[
        (Plugging::Batches, Restart::Own),
        (Plugging::EveryBio, Restart::Own),
        (Plugging::Calls, Restart::InTurn),
        (Plugging::EveryBio, Restart::InTurn),
    ]);
    let single = hctxs == 1 && one_in(prng, 2);
    Policies {
        model: if single { Model::SingleLock } else { Model::Multi },
        elevator: if one_in(prng, 2) { ElevatorKind::None } else { elevator(prng) },
        dispatch: if one_in(prng, 3) { Dispatch::Budget } else { prng.pick(&dispatch) },
        dequeue: prng.pick(&[Dequeue::SpliceAll, Dequeue::RoundRobin, Dequeue::ByBusy]),
        busy: prng.pick(&[BusyTrack::Off, BusyTrack::Bit, BusyTrack::Ewma]),
        swq_merge: prng.pick(&[SwqMerge::Off, SwqMerge::Last8, SwqMerge::Hash]),
        sched_depth: prng.pick(&[
            SchedDepth::Fixed(1),
            SchedDepth::Fixed(3),
            SchedDepth::Fixed(256),
            SchedDepth::FromDeviceDepth,
        ]),
        merges: Merges::All,
        plug,
        restart,
        wbt: wbt(prng.fork(1)),
    }
}

/// Draws the throttle of writeback. Its draws are separate ones, so that those of other plans stay.
fn wbt(mut prng: Prng) -> Option<WbtTunables> {
    let latency = Duration::from_us(prng.pick(&[1, 200, 75_000]));
    let queue_depth = prng.pick(&[1, 2, 5, 64]);
    one_in(&mut prng, 2).then_some(WbtTunables { latency, queue_depth })
}

fn elevator(prng: &mut Prng) -> ElevatorKind {
    match prng.below(5) {
        0 => ElevatorKind::Other,
        1 | 2 => ElevatorKind::Kyber(kyber(prng)),
        _ => ElevatorKind::Deadline(tunables(prng)),
    }
}

fn tunables(prng: &mut Prng) -> DeadlineTunables {
    if one_in(prng, 3) {
        return DeadlineTunables::default();
    }
    let (tag_wakes, insertion) = prng.pick(&[
        (TagWakes::Batches, Insertion::Locked),
        (TagWakes::Single, Insertion::Locked),
        (TagWakes::Batches, Insertion::Listed),
    ]);
    DeadlineTunables {
        read_expire: Duration::from_us(prng.pick(&[0, 50, 500_000])),
        write_expire: Duration::from_us(prng.pick(&[0, 500, 5_000_000])),
        writes_starved: prng.pick(&[0, 1, 2, 5]),
        fifo_batch: prng.pick(&[0, 1, 4, 16]),
        front_merges: one_in(prng, 2),
        prio_aging_expire: prng.pick(&[
            Duration::from_us(0),
            Duration::from_ms(1),
            Duration::from_secs(10),
            Duration::MAX,
        ]),
        async_depth: prng.pick(&[None, Some(1), Some(2), Some(48)]),
        classes: one_in(prng, 2),
        heads: prng.pick(&[HeadLists::One, HeadLists::ByClass]),
        tag_wakes,
        insertion,
    }
}

/// Draws tunables of kyber, often with so few tokens that requests wait for one.
fn kyber(prng: &mut Prng) -> KyberTunables {
    fn depth(linux: u32, prng: &mut Prng) -> u32 {
        prng.pick(&[1, 1, 2, 5, linux])
    }
    KyberTunables {
        read_depth: depth(256, prng),
        write_depth: depth(128, prng),
        discard_depth: depth(64, prng),
        other_depth: depth(16, prng),
        read_latency: Duration::from_us(prng.pick(&[0, 50, 2_000])),
        write_latency: Duration::from_us(prng.pick(&[0, 50, 10_000])),
        adjust: prng.pick(&[KyberAdjust::Percentiles, KyberAdjust::Steps]),
        staging: prng.pick(&[KyberStaging::ByDomain, KyberStaging::Together]),
        async_depth: prng.pick(&[None, Some(1), Some(48)]),
    }
}

pub(super) fn limits(prng: &mut Prng, volatile: bool) -> Limits {
    Limits {
        logical_block_sectors: prng.pick(&[1, 8]),
        max_sectors: prng.pick(&[8, 24, 64, 2560, 2560]),
        max_segments: prng.pick(&[1, 2, 5, 128, 128]),
        max_discard_sectors: prng.pick(&[16, 64, 1 << 20]),
        max_discard_segments: prng.pick(&[1, 1, 4, 256]),
        max_write_zeroes_sectors: prng.pick(&[16, 128, 1 << 20]),
        chunk_sectors: prng.pick(&[0, 0, 16, 40, 256]),
        virt_boundary: one_in(prng, 3),
        write_cache: volatile,
        fua: one_in(prng, 2),
        ..Limits::new(1 << 16)
    }
}
