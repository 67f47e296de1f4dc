//! Behaviour of flash, with the counters that cause it.

#![expect(
    clippy::float_arithmetic,
    reason = "the published analysis has no closed form in integers"
)]

use super::*;

fn profile() -> FlashProfile {
    FlashProfile {
        channels: 2,
        dies: 2,
        planes: 1,
        page: 16 << 10,
        programs: 64,
        simulated: 128 << 20,
        spare: 28,
        fill: 100,
        overwritten: 0,
        read: Duration::from_us(60),
        program: Duration::from_us(700),
        erase: Duration::from_us(3500),
        suspend: None,
        transfer: Duration::from_us(5),
        buffer: 1 << 20,
        buffered: Duration::from_us(5),
        protected: false,
        slc: 0,
        slc_program: Duration::from_us(200),
        slc_idle: Duration::from_ms(100),
    }
}

/// Runs `commands` accesses, `depth` at a time, and returns the time of each, and the instant of the last end.
fn run(
    flash: &mut Flash,
    from: Instant,
    depth: u32,
    commands: u32,
    mut next: impl FnMut(u32) -> Access,
) -> (Vec<(Op, Duration)>, Instant) {
    let (mut events, mut begun) = (MediumEvents::new(), 0);
    let (mut queue, mut times) = (std::collections::BTreeSet::new(), Vec::new());
    let mut slots: Vec<_> = (0..depth).map(|_| (Op::Read, from)).collect();
    let (mut now, mut serial) = (from, 0u64);
    let mut free: Vec<_> = (0..depth).collect();
    while times.len() < commands as usize {
        while begun < commands
            && let Some(slot) = free.pop()
        {
            let access = next(begun);
            begun += 1;
            slots[slot as usize] = (access.op, now);
            flash.begin(CommandId(slot), access, now, &mut events);
        }
        for (at, event) in events.drain(..) {
            serial += 1;
            queue.insert((at.as_ns(), serial, event.0));
        }
        let (at, _, event) = queue.pop_first().expect("an event should be due");
        now = Instant::from_ns(at);
        flash.event(MediumEvent(event), now, &mut events);
        while let Some(CommandId(slot)) = flash.next_ended() {
            let (op, began) = slots[slot as usize];
            times.push((op, now.since(began)));
            free.push(slot);
        }
    }
    (times, now)
}

fn at(op: Op, unit: u64) -> Access {
    Access { op, start: unit * UNIT_SECTORS, sectors: 8, fua: false }
}

fn count(flash: &Flash, name: &str) -> u64 {
    flash.counts().into_iter().find(|(other, _)| *other == name).expect("a counter").1
}

/// Returns the time of 100000 random writes of 4 KiB at steady state, and the write amplification.
fn steady(fill: u16) -> (u64, f64) {
    let profile = FlashProfile { fill, overwritten: 400, ..profile() };
    let mut flash = Flash::new(profile, Prng::new(1));
    let (mut prng, units) = (Prng::new(2), flash.map.units() * u64::from(fill) / 100);
    let (_, end) =
        run(&mut flash, Instant::ZERO, 32, 100_000, |_| at(Op::Write, prng.below(units)));
    (end.as_ns(), count(&flash, "write_amplification_percent") as f64 / 100.0)
}

/// P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, and L. Xiang and B. Kurkoski, "An Improved
/// Analytical Expression for Write Amplification in NAND Flash", ICNC 2012: with large blocks, the victim's valid share
/// v solves v = exp(-(1 - v) T / U), and 1 / (1 - v) is the amplification. T are the pages in use, U those with data.
#[test]
fn amplification_of_uniform_random_writes_is_that_of_the_published_analysis() {
    for fill in [100, 80] {
        let profile = profile();
        let in_use = (profile.die_blocks() - 1) * profile.all_dies() * profile.block_units();
        let data = profile.simulated / UNIT_BYTES * u64::from(fill) / 100;
        let ratio = in_use as f64 / data as f64;
        let v = (0..1000).fold(0.5_f64, |v, _| (-(1.0 - v) * ratio).exp());
        let (expected, (_, seen)) = (1.0 / (1.0 - v), steady(fill));
        println!("fill {fill}: analysis {expected:.2}, seen {seen:.2}");
        assert!((seen / expected - 1.0).abs() < 0.1, "{seen} instead of {expected}");
    }
}

#[test]
fn random_writes_at_steady_state_slow_down_as_the_fill_rises() {
    let (low, high) = (steady(50), steady(100));
    println!("50 %: {} ns, {:.2}; 100 %: {} ns, {:.2}", low.0, low.1, high.0, high.1);
    assert!(high.0 > 2 * low.0 && high.1 > low.1);
}

#[test]
fn the_write_rate_drops_once_the_cache_of_single_level_cells_is_full_and_idle_time_frees_it() {
    let profile = FlashProfile { fill: 0, slc: 32 << 20, buffer: 1 << 18, ..profile() };
    let write = |commands| {
        let mut flash = Flash::new(profile, Prng::new(1));
        let next = |nth: u32| at(Op::Write, nth.into());
        let end = run(&mut flash, Instant::ZERO, 8, commands, next).1;
        (end.as_ns(), flash)
    };
    let ((fast, first), (both, mut flash)) = (write(8192), write(16_384));
    println!("first 32 MiB: {fast} ns, next: {} ns", both - fast);
    assert_eq!((count(&first, "slc_programs"), count(&flash, "slc_programs")), (2048, 2048));
    assert!(both - fast > 2 * fast);
    let mut events = MediumEvents::new();
    let later = Instant::from_ns(10_000_000_000);
    (0..512).for_each(|_| flash.fold_cache(later, &mut events));
    assert_eq!(count(&flash, "units_folded"), 8192);
}

#[test]
fn a_tail_of_reads_rises_by_an_order_of_magnitude_beside_writes() {
    let tail = |writes: bool| {
        let mut flash = Flash::new(FlashProfile { overwritten: 100, ..profile() }, Prng::new(1));
        let (mut prng, units) = (Prng::new(3), flash.map.units());
        let (times, _) = run(&mut flash, Instant::ZERO, 4, 20_000, |nth| {
            let op = if writes && nth % 4 == 0 { Op::Write } else { Op::Read };
            at(op, prng.below(units))
        });
        let reads = times.into_iter().filter(|(op, _)| *op == Op::Read);
        let mut reads: Vec<_> = reads.map(|(_, time)| time.as_ns()).collect();
        reads.sort_unstable();
        (reads[reads.len() * 999 / 1000], count(&flash, "read_wait_ns"))
    };
    let (alone, beside) = (tail(false), tail(true));
    println!("p99.9 alone {} ns, beside writes {} ns", alone.0, beside.0);
    assert!(beside.0 > 10 * alone.0 && beside.1 > 10 * alone.1);
}

#[test]
fn a_die_that_suspends_lets_a_read_go_before_its_program() {
    let read_beside_a_program = |suspend| {
        let mut flash = Flash::new(FlashProfile { suspend, ..profile() }, Prng::new(1));
        let mut events = MediumEvents::new();
        flash.pending.extend(0..4);
        flash.buffered = 4;
        flash.program(Instant::ZERO, &mut events);
        flash.read_page(0, Instant::from_ns(100_000)).as_ns()
    };
    // Its own time and that of giving way, against the end of the program.
    assert_eq!(read_beside_a_program(Some(Duration::from_us(20))), 180_000);
    assert!(read_beside_a_program(None) >= 760_000);
}

#[test]
fn a_flush_ends_when_the_data_is_in_flash_unless_the_buffer_survives_a_loss_of_power() {
    let flush = |protected| {
        let mut flash = Flash::new(FlashProfile { protected, fill: 0, ..profile() }, Prng::new(1));
        let flushing = Access { op: Op::Flush, start: 0, sectors: 0, fua: false };
        let next = |nth| if nth == 0 { at(Op::Write, 0) } else { flushing };
        run(&mut flash, Instant::ZERO, 1, 2, next).0[1].1.as_ns()
    };
    assert_eq!(flush(false), 705_000);
    assert_eq!(flush(true), 0);
}

#[test]
fn writes_to_a_few_units_never_fill_a_die() {
    let mut flash = Flash::new(profile(), Prng::new(1));
    let next = |nth: u32| at(Op::Write, u64::from(nth % 512) / 4 * 16 + u64::from(nth % 4));
    run(&mut flash, Instant::ZERO, 8, 60_000, next);
    assert!(count(&flash, "erases") > 100);
    // The whole drive is full, and stays so.
    let full = (0..32_768).filter(|unit| flash.map.place(*unit).is_some()).count();
    assert_eq!(full, 32_768);
}
