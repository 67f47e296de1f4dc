//! Requests without errors: every policy ends each request once and detects the end of busy
//! correctly.

use super::*;
use crate::command::Opcode;
use crate::policy::Packed;

#[test]
fn every_policy_ends_every_request_once_with_legal_commands() {
    for policy in every_policy() {
        for seed in 0..4 {
            let mut bench = Bench::new(policy);
            bench.script().busy = us([0, 1, 100, 5000][usize::try_from(seed).unwrap()]);
            bench.submit(mixture(seed, 60));
            bench.settle();
            bench.all_ended_with(Status::Ok, 60);
            let prepared = if policy.transfer == Transfer::Dma { 60 } else { 0 };
            assert_eq!(bench.script().prepares, prepared);
            let prepares = [ActKind::Prepare, ActKind::PrepareFirst].map(|kind| bench.count(kind));
            assert_eq!(prepares.iter().sum::<usize>(), bench.count(ActKind::Post));
            assert_eq!(bench.count(ActKind::Start), 60);
            assert_eq!(bench.count(ActKind::Complete), 60);
            assert_eq!(bench.mmc().counts(), Counts::default());
        }
    }
}

#[test]
fn transfers_are_announced_or_stopped() {
    for (close_ended, announced, several, single, stopped) in
        [(true, 3, 3, 2, 0), (false, 0, 3, 2, 3)]
    {
        let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware);
        let mut bench = Bench::new(HostPolicy { close_ended, ..policy });
        bench.submit(
            [1, 2, 8, 16, 1].iter().zip(0..).map(|(&len, at)| Bio::read(100 * at, len, at)),
        );
        bench.settle();
        let counts = [23, 18, 17, 12].map(|index| {
            bench.host.driver.below.controller.commands.get(&index).copied().unwrap_or_default()
        });
        assert_eq!(counts, [announced, several, single, stopped]);
    }
}

#[test]
fn a_write_costs_one_status_command_and_none_with_hardware_busy_detection() {
    for pipeline in one_by_one() {
        for busy in EVERY_BUSY {
            if matches!(pipeline, Pipeline::Hsq(_)) && busy != BusyDetect::Hardware {
                continue;
            }
            let mut bench = Bench::new(HostPolicy::new(pipeline, busy));
            bench.script().busy = us(1);
            bench.writes(10);
            bench.submit((0..10).map(|at| Bio::read(50_000 + 100 * at, 8, 10 + at)));
            bench.settle();
            let asked = [ActKind::SendStatus, ActKind::PollLine].map(|kind| bench.count(kind));
            let expected = match busy {
                BusyDetect::Status => [10, 0],
                BusyDetect::Line => [0, 10],
                BusyDetect::Hardware => [0, 0],
            };
            assert_eq!(asked, expected, "{pipeline:?}");
        }
    }
}

#[test]
fn a_controller_that_reports_the_end_of_busy_reports_it_to_a_host_that_asks_too() {
    for pipeline in one_by_one().filter(|pipeline| !matches!(pipeline, Pipeline::Hsq(_))) {
        for busy in [BusyDetect::Status, BusyDetect::Line] {
            let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
            let mut bench = Bench::on(controller, HostPolicy::new(pipeline, busy));
            bench.script().busy = Duration::from_ms(5);
            bench.writes(10);
            bench.settle();
            bench.all_ended_with(Status::Ok, 10);
            // Each report belongs to its write, so the card is ready when it is asked, once for
            // each write.
            assert_eq!(bench.mmc().counts(), Counts::default(), "{pipeline:?}");
            let asked = bench.count(ActKind::SendStatus) + bench.count(ActKind::PollLine);
            assert_eq!(asked, 10, "{pipeline:?}");
        }
    }
}

#[test]
fn a_busy_card_is_checked_after_pauses_that_double() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Line));
    bench.script().busy = Duration::from_ms(200);
    bench.writes(1);
    bench.settle();
    let looks: Vec<_> = bench.did.iter().filter(|did| did.kind == ActKind::PollLine).collect();
    let pauses: Vec<_> =
        looks.windows(2).map(|pair| pair[1].from.since(pair[0].to).as_ns() / 1000).collect();
    let expected = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 32768, 32768];
    assert!(pauses.starts_with(&expected), "{pauses:?}");
    assert!(pauses[expected.len()..].iter().all(|&pause| pause == 32768), "{pauses:?}");
    let busy_end = bench.spans()[0].to + Duration::from_ms(200);
    assert!(looks.last().unwrap().to >= busy_end && looks[looks.len() - 2].to < busy_end);
}

/// Linux's dispatcher sleeps until the response to its CMD13 wakes it, and only then sleeps for the
/// pause. A pause that began in the interrupt would hide one wake-up per CMD13.
#[test]
fn a_pause_begins_when_the_asking_context_has_seen_the_response() {
    for pipeline in one_by_one() {
        if matches!(pipeline, Pipeline::Hsq(_)) {
            continue; // no CMD13
        }
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Status));
        bench.script().busy = Duration::from_ms(2);
        bench.writes(1);
        bench.settle();
        let answers: Vec<_> =
            bench.spans().iter().filter(|span| span.command == Opcode::SendStatus).collect();
        let heeded: Vec<_> = acts_of_kind(&bench, ActKind::HandleStatus).collect();
        let asked: Vec<_> = acts_of_kind(&bench, ActKind::SendStatus).collect();
        assert!(asked.len() > 3 && heeded.len() == asked.len() && answers.len() == asked.len());
        let mut pause = FIRST_PAUSE.as_ns();
        for (at, pair) in asked.windows(2).enumerate() {
            assert_eq!(heeded[at].context, pair[0].context, "{pipeline:?}");
            assert_eq!(heeded[at].from, answers[at].to, "{pipeline:?}");
            assert_eq!(pair[1].from.since(heeded[at].to).as_ns(), pause, "{pipeline:?}");
            pause *= 2;
        }
    }
}

fn acts_of_kind(bench: &Bench, kind: ActKind) -> impl Iterator<Item = &Did> {
    bench.did.iter().filter(move |did| did.kind == kind)
}

#[test]
fn small_cards_are_addressed_by_bytes() {
    let policy = HostPolicy::new(Pipeline::Serial, BusyDetect::Status);
    let mut bench = Bench::new(policy);
    bench.mmc().target.addressing = Addressing::Bytes;
    bench.script().unit = 512;
    bench.submit([Bio::read(100, 8, 0)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
}

#[test]
fn policies_beyond_card_or_host_are_refused() {
    let line = Scripted::new(Transfer::Dma, BusyDetect::Line);
    let by_hardware = HostPolicy::new(Pipeline::Serial, BusyDetect::Hardware);
    assert_eq!(refusal(|_, _| ()), None);
    assert_eq!(
        refusal(|policy: &mut HostPolicy, target: &mut Target| {
            (policy.pipeline, target.queue_depth) = (Pipeline::Cqe, 0);
        }),
        Some(Unsupported::NoCardQueue)
    );
    assert_eq!(
        refusal(|policy, _| policy.bounce = Bounce::Sync),
        Some(Unsupported::NoBounceBuffers)
    );
    assert_eq!(
        refusal(|policy: &mut HostPolicy, _: &mut Target| policy.bounce = Bounce::Async),
        Some(Unsupported::NoBounceBuffers)
    );
    assert_eq!(
        refusal(|policy: &mut HostPolicy, _: &mut Target| {
            (policy.bounce, policy.transfer) = (Bounce::Async, Transfer::Pio);
        }),
        Some(Unsupported::PioNeedsNoBounce)
    );
    assert_eq!(refusal(|policy, _| policy.packed = Packed::Write), Some(Unsupported::Packed));
    assert_eq!(
        refusal(|policy: &mut HostPolicy, target: &mut Target| {
            (policy.packed, target.packed_writes, target.packed_reads) =
                (Packed::ReadWrite, 63, 63);
        }),
        Some(Unsupported::Packed),
        "one memory segment"
    );
    assert_eq!(refusal(|policy, _| policy.transfer = Transfer::Pio), Some(Unsupported::Transfer));
    let left_open = refusal(|policy: &mut HostPolicy, _: &mut Target| {
        (policy.pipeline, policy.open_limit) = (Pipeline::Cqe, Some(us(1)));
    });
    assert_eq!(left_open, Some(Unsupported::LeftOpen), "the engine has the bus");
    let asks = refusal(|policy, _| policy.busy = BusyDetect::Status);
    assert_eq!(asks, Some(Unsupported::HsqWithoutBusy));
    assert_eq!(Mmc::new(line, CARD, by_hardware).err(), Some(Unsupported::BusyDetect));
}

fn refusal(change: fn(&mut HostPolicy, &mut Target)) -> Option<Unsupported> {
    let mut policy = HostPolicy::new(Pipeline::Hsq(HsqPolicy::TODAY), BusyDetect::Hardware);
    let mut target = CARD;
    change(&mut policy, &mut target);
    Mmc::new(Scripted::new(Transfer::Dma, BusyDetect::Hardware), target, policy).err()
}
