//! The sequence of I/Os follows the rules of `blockyard_fio::workload` and the options of the job.

use std::collections::BTreeMap;

use blockyard_fio::job::{Job, NoSource, parse_bytes};
use blockyard_fio::workload::{Generator, Io, IoOp, SyncCall};
use proptest::prelude::*;

const DEVICE_BYTES: u64 = 1 << 30;

fn try_job(options: &str) -> Result<Job, String> {
    let text = format!("[a]\ndirect=1\n{}", options.replace(' ', "\n"));
    let file = parse_bytes("job", text.as_bytes(), &NoSource).map_err(|error| error.to_string())?;
    Ok(file.jobs.into_iter().next().expect("a job file has a job"))
}

fn job(options: &str) -> Job {
    try_job(options).expect(options)
}

fn ios_of(job: &Job, instance: u32, seed: u64) -> Vec<Io> {
    let resolved = job.resolve(instance, DEVICE_BYTES).expect("the job should fit the device");
    let mut generator = Generator::new(job, instance, &resolved, seed);
    core::iter::from_fn(|| generator.next(None)).take(200_000).collect()
}

fn ios(options: &str) -> Vec<Io> {
    ios_of(&job(options), 0, 1)
}

/// Returns the offsets in units of 4 KiB.
fn blocks(options: &str) -> Vec<u64> {
    ios(options).iter().map(|io| io.offset_bytes / 4096).collect()
}

fn bytes(ios: &[Io]) -> u64 {
    ios.iter().map(|io| u64::from(io.len_bytes)).sum()
}

fn count(ios: &[Io], op: IoOp) -> usize {
    ios.iter().filter(|io| io.op == op).count()
}

#[test]
fn a_sequential_pattern_continues_and_starts_over() {
    assert_eq!(blocks("size=16k loops=2"), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(blocks("size=16k offset=8k"), [2, 3, 4, 5]);
    assert_eq!(blocks("size=16k io_size=24k"), [0, 1, 2, 3, 0, 1]);
    assert_eq!(blocks("size=24k rw=read:4k"), [0, 2, 4, 0, 2, 4]);
    // Backwards from the end, as fio 3.33 does.
    assert_eq!(blocks("size=24k rw=read:-8k"), [0, 4, 3, 2, 1, 0]);
    assert_eq!(blocks("size=24k rw=read:-12k"), [0, 3, 1, 3, 1, 3]);
    // fio 3.33 and 3.42: a pass goes on to the end of the region, also beyond the I/Os of one pass.
    assert_eq!(blocks("size=16k number_ios=3 loops=2"), [0, 1, 2, 3, 0, 1]);
    assert_eq!(blocks("size=16k io_size=12k loops=2"), [0, 1, 2, 3, 0, 1]);
    let job = job("size=8k offset_increment=8k numjobs=3");
    assert_eq!(ios_of(&job, 2, 1)[0].offset_bytes, 16384);
}

/// As fio 3.33 does with its null engine and `write_iolog`.
#[test]
fn strided_zones_are_covered_one_after_another() {
    let strided = "zonemode=strided zonesize=8k";
    let all = [0, 1, 4, 5, 8, 9, 12, 13];
    assert_eq!(blocks(&format!("size=64k {strided} zoneskip=8k")), [all, all].concat());
    let three = [0, 1, 4, 5, 8, 9];
    let apart = format!("size=48k {strided} zonerange=12k zoneskip=4k");
    assert_eq!(blocks(&apart), [three, three].concat());
    let cut = [0, 1, 4, 5, 8, 9, 0, 1, 4, 5];
    assert_eq!(blocks(&format!("size=40k {strided} zoneskip=8k")), cut);
    let first = blocks(&format!("size=64k {strided} zoneskip=56k loops=2"));
    assert_eq!(first, [0, 1].repeat(16));
}

#[test]
fn a_sequence_of_blocks_repeats_or_moves_on() {
    let sequence = "rw=randread size=48k io_size=24k random_distribution=sequence:2,0,1";
    assert_eq!(blocks(sequence), [2, 0, 1, 2, 0, 1]);
    assert_eq!(blocks(&format!("{sequence} random_sequence_stride=1")), [2, 0, 1, 5, 3, 4]);
    // Blocks beyond the end count from the start.
    let beyond = "rw=randread size=8k io_size=16k random_distribution=sequence:0,3";
    assert_eq!(blocks(beyond), [0, 1, 0, 1]);
}

/// The numbers of I/Os that fio 3.33 reported with its null engine for the same options.
#[test]
fn the_number_of_ios_is_that_of_fio() {
    for (options, expected) in [
        ("size=64k", 16),
        ("size=64k io_size=96k", 24),
        ("size=64k io_size=32k loops=2", 16),
        ("size=64k io_size=128k loops=3", 48),
        ("size=10k", 2),
        ("size=10k rw=randread", 2),
        ("size=10k io_size=64k", 16),
        ("size=64k number_ios=40", 16),
        ("size=64k number_ios=3 loops=2", 6),
        ("size=64k rw=randread number_ios=3 io_size=64k", 3),
        ("size=64k filesize=16k io_size=64k", 16),
        ("size=64k filesize=16k nrfiles=2", 8),
        ("size=64k rw=read:4k", 16),
        ("size=64k bs=8k ba=4k rw=randread", 8),
        ("size=64k filename=a:b", 16),
    ] {
        assert_eq!(ios(options).len(), expected, "{options}");
    }
}

/// fio 3.33: 1024 I/Os of 1024 blocks (`log_offset`), as without the line. fio 3.42: init.c,
/// `ba != min_bs`.
#[test]
fn an_alignment_to_the_block_keeps_the_map() {
    let options = "rw=randread size=4m bs=4k ba=4k";
    assert_eq!(sorted(&blocks(options)).len(), 1024);
    // The others repeat some blocks.
    assert!(sorted(&blocks("rw=randread size=4m bs=8k ba=4k")).len() < 500);
}

/// fio 3.33: 29 pairs of 64k in the same region, ended by the map of blocks of 4k. Each write has
/// the length of its trim.
#[test]
fn a_write_behind_a_random_trim_has_its_length() {
    let ios = ios("rw=randtrimwrite size=4m bs=4k,4k,64k");
    assert!(ios.len() >= 4 && ios.iter().all(|io| io.len_bytes == 65536), "{}", ios.len());
    let pairs = ios.chunks(2).all(|pair| pair[0].offset_bytes == pair[1].offset_bytes);
    assert!(pairs && ios.len() <= 128, "{}", ios.len());
}

fn sorted(part: &[u64]) -> std::collections::BTreeSet<u64> {
    part.iter().copied().collect::<std::collections::BTreeSet<_>>()
}

#[test]
fn a_random_pass_visits_each_block_once() {
    for size in ["4k", "64k", "40m", "37m"] {
        let mut seen = blocks(&format!("rw=randread size={size}"));
        let len = seen.len() as u64;
        assert!(len < 3 || !seen.is_sorted());
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..len), "{size}");
    }
    let two = blocks("rw=randread size=4m loops=2");
    let (first, second) = two.split_at(1024);
    // fio repeats its draws in each pass, unless randrepeat=0.
    assert_eq!(first, second);
    let others = blocks("rw=randread size=4m loops=2 randrepeat=0");
    assert_ne!(others[..1024], others[1024..]);
    assert_eq!(sorted(first), sorted(second));
    let repeats = blocks("rw=randread size=4m norandommap");
    assert!(sorted(&repeats).len() < 700, "a draw with repeats misses one block in e");
}

/// Returns the number of runs of neighbours among `blocks`, in percent of their number.
fn runs_percent(blocks: &[u64]) -> usize {
    let sorted = sorted(blocks);
    let runs = sorted.iter().filter(|at| **at == 0 || !sorted.contains(&(**at - 1))).count();
    runs * 100 / blocks.len()
}

/// In fio 3.39, `rw=randwrite bs=4k size=64m randrepeat=0` writes its last eighth in runs: they are
/// 57 to 60 % of the I/Os, and 81 to 83 % in the first eighth. The first half has 39 to 40 %. With
/// the `lfsr` it is 88 % and 87 %, and 49 % in the first half: a set of n random blocks out of N
/// has n (1 - n / N) runs.
///
/// The recording of `size=8m io_size=4m end_fsync=1` on Linux has 408 requests for 1024 blocks
/// (40 %), and not 512 (50 %).
#[test]
fn the_last_ios_of_a_random_pass_are_close_to_each_other() {
    let all = blocks("rw=randwrite size=64m");
    let first_half = runs_percent(&all[..8192]);
    let eighths = [runs_percent(&all[..2048]), runs_percent(&all[14_336..])];
    assert!((38..=41).contains(&first_half), "{first_half}");
    assert!((80..=84).contains(&eighths[0]) && (55..=62).contains(&eighths[1]), "{eighths:?}");
    let in_order = blocks("rw=randwrite size=64m random_generator=lfsr");
    assert!((48..=52).contains(&runs_percent(&in_order[..8192])));
    let eighths = [runs_percent(&in_order[..2048]), runs_percent(&in_order[14_336..])];
    assert!(eighths.iter().all(|percent| (85..=90).contains(percent)), "{eighths:?}");
}

fn follows(percent: u32) -> usize {
    let blocks = blocks(&format!("rw=randread percentage_random={percent} size=40m"));
    blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() * 100 / blocks.len()
}

#[test]
fn a_sequencer_continues_or_repeats_a_random_offset() {
    for run in blocks("rw=randread:8 size=4m").chunks(8) {
        // fio 3.33: a sequence that meets the end of its file goes on at a random place.
        let goes_on = |pair: &[u64]| pair[1] == pair[0] + 1 || pair[0] == 1023;
        assert!(run.windows(2).all(goes_on), "{run:?}");
    }
    for run in blocks("rw=randread:8 rw_sequencer=identical size=4m").chunks(8) {
        assert!(run.iter().all(|block| *block == run[0]), "{run:?}");
    }
    assert_eq!(follows(0), 99);
    assert!((68..=72).contains(&follows(30)));
}

#[test]
fn a_mix_has_its_proportion_and_each_kind_its_own_place() {
    let mixed = ios("rw=rw rwmixread=70 size=80m");
    let reads = count(&mixed, IoOp::Read) * 1000 / mixed.len();
    assert!((685..715).contains(&reads), "{reads}");
    for op in [IoOp::Read, IoOp::Write] {
        let offsets = mixed.iter().filter(|io| io.op == op).map(|io| io.offset_bytes / 4096);
        assert!(offsets.eq(0..count(&mixed, op) as u64));
    }
    assert_eq!(count(&ios("rw=randrw rwmixread=100 size=1m"), IoOp::Write), 0);
}

/// Each block of a pass is visited once, also by I/Os of several lengths, which end where another
/// one begins.
#[test]
fn random_ios_of_several_lengths_visit_each_block_once() {
    for options in ["rw=randread bsrange=4k-32k size=16m", "rw=randrw bsrange=4k-64k size=8m"] {
        let all = ios(options);
        let mut visited = BTreeMap::new();
        for io in &all {
            assert!(io.offset_bytes % 4096 == 0 && io.len_bytes % 4096 == 0, "{io:?}");
            for block in 0..u64::from(io.len_bytes) / 4096 {
                *visited.entry(io.offset_bytes / 4096 + block).or_insert(0) += 1;
            }
        }
        let bytes: u64 = all.iter().map(|io| u64::from(io.len_bytes)).sum();
        assert_eq!(visited.len() as u64 * 4096, bytes, "{options}");
        assert!(visited.values().all(|count| *count == 1), "{options}");
    }
    // fio 3.33 on its null engine: 1183, 1219, 1191, 1209 and 1178 for these seeds.
    let count = |seed| ios(&format!("rw=randread bsrange=4k-32k size=16m randseed={seed}")).len();
    let mean = (1..=5).map(count).sum::<usize>() / 5;
    assert!(mean.abs_diff(1196) < 1196 / 20, "{mean} I/Os");
}

/// An offset that is used again has visited blocks behind it, and the I/O has its full length all
/// the same.
#[test]
fn repeated_random_ios_keep_their_length() {
    let options = "rw=randread:5 rw_sequencer=identical bsrange=4k-32k size=16m";
    // fio 3.33 on its null engine: 908, 933, 895, 913 and 911 for these seeds.
    let count = |seed| ios(&format!("{options} randseed={seed}")).len();
    let mean = (1..=5).map(count).sum::<usize>() / 5;
    assert!(mean.abs_diff(912) < 912 / 20, "{mean} I/Os");
}

#[test]
fn a_trim_precedes_its_write() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let pairs = ios(&format!("rw={rw} size=64k"));
        assert_eq!(pairs.len(), 32);
        for pair in pairs.chunks(2) {
            assert_eq!((pair[0].op, pair[1].op), (IoOp::Trim, IoOp::Write));
            assert_eq!(Io { op: IoOp::Write, ..pair[0] }, pair[1]);
        }
    }
}

/// Writes behind a trim count for `fsync`, and trims do not.
#[test]
fn a_sync_follows_a_trimmed_write() {
    let trim = IoOp::Trim;
    let write = IoOp::Write;
    let sync = IoOp::Sync(SyncCall::All);
    let ops: Vec<_> = ios("rw=trimwrite size=16k fsync=2").iter().map(|io| io.op).collect();
    let two = [trim, write, trim, write];
    assert_eq!(ops, [&two[..], &[sync], &two].concat());
}

#[test]
fn syncs_follow_their_writes() {
    // In fio's own log, both syncs are due at write 12, and the full one is done. None follows the
    // last write.
    let all = ios("rw=write size=64k fsync=4 fdatasync=3");
    let mut writes = 0;
    let mut syncs = BTreeMap::new();
    for io in all {
        match io.op {
            IoOp::Sync(call) => _ = syncs.insert(writes, call == SyncCall::Data),
            _ => writes += 1,
        }
    }
    let expected = [(3, true), (4, false), (6, true), (8, false), (9, true), (12, false)];
    assert!(syncs.into_iter().eq(expected.into_iter().chain([(15, true)])));
    let ended = ios("rw=write size=16k end_fsync=1");
    assert_eq!(ended.last().map(|io| io.op), Some(IoOp::Sync(SyncCall::All)));
    assert_eq!(ended.len(), 5);
    assert_eq!(ios("rw=read size=16k end_fsync=1 fsync=1").len(), 4);
}

fn syncs(options: &str) -> Vec<(u16, SyncCall)> {
    let all = ios(&format!("{options} direct=0")).into_iter();
    all.filter_map(|io| match io.op {
        IoOp::Sync(call) => Some((io.file, call)),
        _ => None,
    })
    .collect()
}

/// strace of fio 3.33 (`rw=write bs=8k size=16k`): with `sync_file_range=write:1 end_fsync=1` its
/// calls are pwrite, sync_file_range of 0 to 8192, pwrite, fsync. `fsync_on_close` is one fsync,
/// as `end_fsync` is, and both together are one. Each file has its sync at the end. A file that is
/// closed before the end of the job, as its last 4 KiB are no block, has another one then.
#[test]
fn syncs_of_a_range_begin_where_the_last_sync_of_the_file_was() {
    fn range(offset_bytes: u64, len_bytes: u64) -> SyncCall {
        SyncCall::Range { offset_bytes, len_bytes }
    }
    let written = syncs("rw=write bs=8k size=16k sync_file_range=write:1 end_fsync=1");
    assert_eq!(written, [(0, range(0, 8192)), (0, SyncCall::All)]);
    // Behind the second and the fourth write a full sync is due, and begins the part anew.
    let mixed = syncs("rw=write bs=4k size=20k sync_file_range=write:1 fsync=2");
    let four = [range(0, 4096), SyncCall::All, range(8192, 4096), SyncCall::All];
    assert_eq!(mixed, four.map(|call| (0, call)));
    for options in ["fsync_on_close=1", "end_fsync=1", "fsync_on_close=1 end_fsync=1"] {
        let at_end = syncs(&format!("rw=write size=16k nrfiles=2 {options}"));
        assert_eq!(at_end, [(0, SyncCall::All), (1, SyncCall::All)], "{options}");
        assert_eq!(syncs(&format!("rw=read size=16k {options}")), []);
        assert_eq!(syncs(&format!("rw=write size=16k end_syncfs=1 {options}")), []);
    }
    let closed = syncs("rw=write bs=8k size=12k fsync_on_close=1");
    assert_eq!(closed, [(0, SyncCall::All); 2]);
    assert_eq!(syncs("rw=write bs=8k size=12k end_fsync=1"), [(0, SyncCall::All)]);
}

fn files(options: &str) -> Vec<u16> {
    ios(options).iter().map(|io| io.file).collect::<Vec<_>>()
}

#[test]
fn files_take_turns() {
    assert_eq!(files("nrfiles=2 size=24k"), [0, 1, 0, 1, 0, 1]);
    assert_eq!(
        files("nrfiles=2 size=32k file_service_type=roundrobin:2"),
        [0, 0, 1, 1, 0, 0, 1, 1]
    );
    assert_eq!(files("nrfiles=2 size=24k file_service_type=sequential"), [0, 0, 0, 1, 1, 1]);
    let random = files("nrfiles=4 size=16m file_service_type=random");
    assert!((0..4).all(|file| random.iter().filter(|f| **f == file).count().abs_diff(1024) < 150));
}

/// In units of 4 KiB, what fio 3.33 and 3.42 wrote in their logs of offsets.
#[test]
fn a_finished_file_leaves_the_round() {
    let uneven = "rw=write size=256k bs=16k nrfiles=4 file_service_type=roundrobin:3";
    let seen: Vec<_> = blocks(uneven).iter().map(|block| block / 4).collect();
    assert_eq!(seen, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3, 3]);
    let two_open = blocks("rw=write size=64k nrfiles=4 openfiles=2");
    assert_eq!(two_open, [0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3]);
    // 44k hold two blocks of 16k, four times.
    assert_eq!(ios("rw=write bs=16k size=176k nrfiles=4").len(), 8);
    // A sync takes the turn of a file: fio writes all of the first file before the second.
    let written = ios("rw=write size=32k nrfiles=2 fsync=1");
    let writes: Vec<_> = written.iter().filter(|io| io.op == IoOp::Write).collect();
    assert!(writes.iter().map(|io| io.offset_bytes / 4096).eq([0, 1, 2, 3, 0, 1, 2, 3]));
    assert!(writes.iter().map(|io| io.file).is_sorted());
}

/// fio draws files by zipf, pareto or a normal law, and begins a file anew at its end.
#[test]
fn a_skewed_choice_prefers_some_files() {
    for service in ["zipf:1.3", "pareto:0.1", "gauss:0:0.5"] {
        let all = ios(&format!("rw=randread size=16m nrfiles=16 file_service_type={service}"));
        assert_eq!(all.len(), 4096, "{service}");
        let mut counts = vec![0; 16];
        all.iter().for_each(|io| counts[usize::from(io.file)] += 1);
        counts.sort_unstable();
        assert!(counts[15] > 4 * 256, "{service}: {counts:?}");
    }
}

fn on_device(options: &str) -> Vec<u64> {
    blocks(&format!("filename=f {options}"))
}

/// A name is a disk, which is longer than `size` here. Numbers of I/Os in fio 3.33 and 3.42 on a
/// file of 1 MiB.
#[test]
fn a_region_of_a_longer_device_ends_for_good() {
    // An I/O begins while fewer bytes than the limit are issued, and may end behind the region.
    assert_eq!(on_device("rw=read bs=64k size=100k").len(), 2);
    assert_eq!(on_device("rw=randread bs=64k size=1100k norandommap").len(), 18);
    // Holes and sequences do not go back to the start.
    assert_eq!(on_device("rw=write:4k size=128k").len(), 16);
    assert_eq!(on_device("rw=randread percentage_random=0 size=128k").len(), 32);
    // A sequence that runs out of the region ends the job. In fio 3.39, 13 of 20 seeds did so.
    let counts: Vec<_> = (0..20)
        .map(|seed| on_device(&format!("rw=randread:8 size=128k randseed={seed}")).len())
        .collect();
    let early = counts.iter().filter(|count| **count < 32).count();
    assert!((8..=18).contains(&early) && counts.iter().all(|count| *count <= 32), "{counts:?}");
    // Zones go on behind the region.
    let zones = "zonemode=strided zonesize=16k zoneskip=16k";
    let expected = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
    assert_eq!(on_device(&format!("rw=read size=64k {zones}")), expected);
}

fn timed(options: &str) -> Vec<u64> {
    blocks(&format!("time_based runtime=1 {options}")).into_iter().take(400).collect()
}

fn in_turn(length: u64) -> Vec<u64> {
    (0..400).map(move |at| at % length).collect::<Vec<_>>()
}

/// Time-based jobs in fio 3.33 and 3.42: both directions of a mix go through the whole region, and
/// a pass does not end early.
#[test]
fn a_time_based_job_covers_its_region() {
    assert_eq!(timed("rw=write size=40k io_size=16k"), in_turn(10));
    assert_eq!(timed("rw=write size=40k number_ios=7"), in_turn(10));
    let mixed = ios("time_based runtime=1 rw=rw size=400k");
    for op in [IoOp::Read, IoOp::Write] {
        let offsets = mixed.iter().filter(|io| io.op == op).map(|io| io.offset_bytes / 4096);
        assert!(offsets.take(400).eq(in_turn(100)), "{op:?}");
    }
    let zones = timed("rw=read size=256k zonemode=strided zonesize=16k zonerange=32k zoneskip=16k");
    assert_eq!(zones[..10], [0, 1, 2, 3, 12, 13, 14, 15, 24, 25]);
    assert_eq!(zones[20..26], [60, 61, 62, 63, 0, 1]);
}

fn offsets(options: &str, instance: u32, seed: u64) -> (Vec<u64>, Vec<IoOp>) {
    let options = format!("rw=randrw size=1m numjobs=2 {options}");
    let ios = ios_of(&job(&options), instance, seed);
    let ops: Vec<_> = ios.iter().map(|io| io.op).collect();
    (ios.iter().map(|io| io.offset_bytes).collect::<Vec<_>>(), ops)
}

#[test]
fn seeds_repeat_the_draws_that_they_should() {
    let default = offsets("", 0, 1);
    assert_eq!(default, offsets("", 0, 1));
    assert_eq!(default.0, offsets("", 0, 2).0);
    assert_ne!(default.1, offsets("", 0, 2).1);
    assert_ne!(default.0, offsets("", 1, 1).0);
    assert_eq!(offsets("allrandrepeat=1", 0, 1), offsets("allrandrepeat=1", 0, 2));
    assert_eq!(offsets("randseed=5", 0, 1), offsets("randseed=5", 0, 2));
    assert_ne!(default.0, offsets("randseed=5", 0, 1).0);
    assert_ne!(offsets("randrepeat=0", 0, 1).0, offsets("randrepeat=0", 0, 2).0);
}

#[test]
fn a_time_based_job_does_not_end() {
    let ios = ios("rw=randread size=64k time_based runtime=1");
    assert_eq!(ios.len(), 200_000);
}

fn options() -> impl Strategy<Value = String> {
    let rw = prop::sample::select(vec![
        "read",
        "write",
        "trim",
        "rw",
        "randread",
        "randwrite",
        "randrw",
        "randread:5",
        "read:12k",
        "randtrimwrite",
        "trimwrite",
    ]);
    let block = prop::sample::select(vec![
        "bs=4k",
        "bs=512",
        "bs=4k,8k",
        "bsrange=4k-64k",
        "bsrange=1k-3k,4k-8k",
        "bssplit=4k/10:64k/90",
        "bsrange=512-9k bs_unaligned",
        "bs=64k ba=4k",
        "bs=12k,4k",
    ]);
    let law = prop::sample::select(vec![
        "random",
        "zipf:1.2",
        "zipf:0.6:1",
        "pareto:0.3",
        "normal:40",
        "zoned:90/10:10/90",
        "zoned_abs:50/1m:50/1g",
    ]);
    let rest = prop::sample::select(vec![
        "",
        "norandommap",
        "nrfiles=3",
        "percentage_random=40",
        "loops=2",
        "rw_sequencer=identical",
        "file_service_type=sequential nrfiles=2",
        "io_size=300k",
        "fsync=3",
        "number_ios=7",
    ]);
    (rw, block, law, rest, 300u64..2000, 0u64..100).prop_map(
        |(rw, block, law, rest, kib, offset)| {
            format!("rw={rw} {block} random_distribution={law} {rest} size={kib}k offset={offset}k")
        },
    )
}

proptest! {
    /// [io-in-its-file], and a job moves no more than one I/O beyond its bytes.
    #[test]
    fn every_io_lies_in_its_file(options in options(), seed: u64) {
        let job = match try_job(&options) {
            Ok(job) => job,
            // fio ends a job at once whose skewed offsets count other blocks.
            Err(told) if told.contains("`random_distribution` contradicts `bs`") => return Ok(()),
            Err(told) => panic!("{options}: {told}"),
        };
        let resolved = job.resolve(0, DEVICE_BYTES).expect("the job should fit the device");
        let all = ios_of(&job, 0, seed);
        let moved: Vec<_> =
            all.iter().copied().filter(|io| !matches!(io.op, IoOp::Sync(_))).collect();
        prop_assert!(!moved.is_empty());
        let longest = job.block.each().iter().map(|sizes| sizes.max_bytes()).max().unwrap_or(0);
        for io in &moved {
            let range = resolved.files[usize::from(io.file)];
            prop_assert!(io.len_bytes > 0 && io.len_bytes <= longest);
            prop_assert!(io.offset_bytes >= range.start_bytes);
            prop_assert!(io.offset_bytes < range.end_bytes());
            prop_assert!(io.offset_bytes + u64::from(io.len_bytes) <= range.file_bytes);
        }
        let twice = if options.contains("trimwrite") { 2 } else { 1 };
        let total = twice * resolved.moved_bytes();
        prop_assert!(bytes(&moved) < total + twice * u64::from(longest));
    }

    /// With one length that divides the sizes, offsets are aligned and the sum is exact.
    #[test]
    fn fixed_lengths_give_exact_sums(kib in 1u64..500, random: bool, loops in 1u64..4) {
        let rw = if random { "randwrite" } else { "write" };
        let all = ios(&format!("rw={rw} bs=8k size={}k loops={loops}", kib * 8));
        prop_assert_eq!(bytes(&all), kib * 8192 * loops);
        prop_assert!(all.iter().all(|io| io.offset_bytes % 8192 == 0 && io.len_bytes == 8192));
    }
}
