//! The designs and limits of request queues.

use super::one_in;
use blockyard::limits::Limits;
use blockyard::policy::{
    AdiosDiscards, AdiosModel, AdiosTunables, BfqTunables, BusyTrack, DeadlineTunables, Dequeue,
    Dispatch, ElevatorKind, HeadLists, Insertion, KyberAdjust, KyberStaging, KyberTunables, Merges,
    Model, Plugging, Policies, Restart, SchedDepth, SwqMerge, TagWakes, WbtTunables,
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
    let usual = match prng.below(5) {
        0 => ElevatorKind::Other,
        1 | 2 => ElevatorKind::Kyber(kyber(prng)),
        _ => ElevatorKind::Deadline(tunables(prng)),
    };
    // Separate draws, as those of the throttle.
    let mut own = prng.fork(2);
    if one_in(&mut own, 5) { ElevatorKind::Adios(adios(&mut own)) } else { usual }
}

/// Draws tunables of adios, with windows that hold few requests, and at times with a known device.
fn adios(prng: &mut Prng) -> AdiosTunables {
    let us = Duration::from_us;
    let known = AdiosModel { base: us(20), slope: us(1) };
    let lat_model = prng.pick(&[AdiosModel::UNKNOWN, known]);
    AdiosTunables {
        global_latency_window: prng.pick(&[None, Some(0), Some(100), Some(1000)]).map(us),
        bq_refill_below_ratio: prng.pick(&[0, 20, 100]),
        lat_model_latency_limit: us(prng.pick(&[0, 30, 500_000])),
        batch_limit_read: prng.pick(&[1, 2, 36]),
        batch_limit_write: prng.pick(&[1, 5, 72]),
        batch_limit_discard: prng.pick(&[1, 4]),
        lat_target_read: us(prng.pick(&[0, 50, 2000])),
        lat_target_write: us(prng.pick(&[0, 500, 2_000_000])),
        lat_target_discard: us(prng.pick(&[0, 8_000_000])),
        lat_model_read: lat_model,
        lat_model_write: lat_model,
        lat_model_discard: lat_model,
        shrink_resist: prng.pick(&[1, 2, 3]),
        read_priority: prng.pick(&[-20, 0, 8, 19]),
        fixed_order: prng.pick(&[false, true]),
        discards: prng.pick(&[AdiosDiscards::Barriers, AdiosDiscards::Sorted]),
        ..AdiosTunables::default()
    }
}

/// Draws tunables of bfq.
pub(super) fn bfq(prng: &mut Prng) -> BfqTunables {
    let ms = Duration::from_ms;
    BfqTunables {
        slice_idle: prng.pick(&[ms(0), Duration::from_us(50), ms(8), ms(1000)]),
        low_latency: prng.pick(&[false, true]),
        strict_guarantees: prng.pick(&[false, false, true]),
        timeout_sync: prng.pick(&[ms(1), ms(20), ms(124)]),
        max_budget: prng.pick(&[0, 1, 64, 16_384]),
        fifo_expire_sync: prng.pick(&[ms(0), ms(125)]),
        async_depth: prng.pick(&[None, Some(1)]),
        merges_queues: prng.pick(&[true, false]),
        plug_stops_clock: prng.pick(&[true, false]),
        ..BfqTunables::default()
    }
}

/// Draws tunables of bfq under which weights alone count, mostly without idling.
pub(super) fn bfq_by_weights(prng: &mut Prng) -> BfqTunables {
    let ms = Duration::from_ms;
    BfqTunables {
        slice_idle: prng.pick(&[ms(0), ms(0), ms(8)]),
        low_latency: false,
        timeout_sync: prng.pick(&[ms(20), ms(124)]),
        max_budget: prng.pick(&[64, 1024]),
        merges_queues: false,
        ..BfqTunables::default()
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
