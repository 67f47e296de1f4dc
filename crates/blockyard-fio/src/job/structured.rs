//! Values with their own grammar: patterns, distributions, splits and lists.

use super::blocks::BlockSizes;
use super::error::ValueFault;
use super::limits::{BLOCK_BYTES_MAX, CPUS_MAX, FILES_MAX};
use super::model::{Distribution, FileService, Mix, Pattern, RangeSync, Zone};
use super::value::{Parsed, TimeUnit, Value};

const PATTERNS: &[(&str, (Mix, bool))] = &[
    ("read", (Mix::Read, false)),
    ("write", (Mix::Write, false)),
    ("trim", (Mix::Trim, false)),
    ("randread", (Mix::Read, true)),
    ("randwrite", (Mix::Write, true)),
    ("randtrim", (Mix::Trim, true)),
    ("rw", (Mix::ReadWrite, false)),
    ("readwrite", (Mix::ReadWrite, false)),
    ("randrw", (Mix::ReadWrite, true)),
    ("trimwrite", (Mix::TrimWrite, false)),
    ("randtrimwrite", (Mix::TrimWrite, true)),
];

/// `randread`, `randread:8`, `read:4k`, `read:-8k`.
pub(super) fn pattern(value: Value<'_>) -> Parsed<Pattern> {
    let (word, tail) = value.head_and_tail()?;
    let (mix, random) = word.word(PATTERNS)?;
    let mut pattern = Pattern { mix, random, ios_per_offset: 1, skip_bytes: 0 };
    match tail {
        Some(count) if random => pattern.ios_per_offset = count.count_u32(1, u32::MAX)?,
        Some(bytes) => pattern.skip_bytes = bytes.signed_count(1 << 48)?,
        None => {}
    }
    Ok(pattern)
}

/// `4k-16k`.
pub(super) fn block_range(value: Value<'_>) -> Parsed<BlockSizes> {
    let (min, max) = value.range(|v| v.count(1, BLOCK_BYTES_MAX.into()))?;
    debug_assert!(0 < min && min <= max, "blocks of {min} to {max} bytes");
    Ok(BlockSizes::Range { min_bytes: block_bytes(min), max_bytes: block_bytes(max) })
}

/// The bytes of a block, at most those of the largest.
fn block_bytes(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(BLOCK_BYTES_MAX)
}

/// Reads `4k/50:8k/50`, as fio does. Blank percentages, and those of 0, share the rest of 100. If
/// the sum is another one, the lengths count in order of their percentages, up to 100, and the last
/// one has what is missing: `4k/60:8k/30` is 70 to 30, and `4k/60:8k/70` is 60 to 40.
pub(super) fn block_split(value: Value<'_>) -> Parsed<BlockSizes> {
    let entries = value.list(&[':'], 64, |entry| {
        let (size, share) = entry.pair()?;
        let share = share.map(Value::percent).transpose()?.filter(|share| *share > 0);
        Ok((size.count(1, BLOCK_BYTES_MAX.into())?, share))
    })?;
    let given: u64 = entries.iter().filter_map(|(_, share)| *share).map(u64::from).sum();
    let blanks = entries.iter().filter(|(_, share)| share.is_none()).count() as u64;
    let blank = match blanks {
        0 => 0,
        // fio's arithmetic gives everything to a single blank beyond 100.
        1 if given > 100 => 100,
        _ if given > 100 => return Err(ValueFault::NotAHundred { sum: given }),
        _ => (100 - given) / blanks,
    };
    let alone = blanks == 1 && given > 100;
    let mut shares: Vec<u64> = entries
        .iter()
        .map(|(_, share)| share.map_or(blank, |s| if alone { 0 } else { s.into() }))
        .collect();
    let mut ascending: Vec<usize> = (0..shares.len()).collect();
    ascending.sort_by_key(|at| shares[*at]);
    let mut left = 100;
    for at in &ascending {
        shares[*at] = shares[*at].min(left);
        left -= shares[*at];
    }
    if let Some(last) = ascending.last() {
        shares[*last] += left;
    }
    debug_assert_eq!(shares.iter().sum::<u64>(), 100, "the percentages of a split");
    let sizes = entries.iter().map(|(size, _)| block_bytes(*size));
    Ok(BlockSizes::Split(sizes.zip(shares.into_iter().map(small)).collect()))
}

/// Gives each of the `blanks` an equal part of `left`. If `left` does not divide evenly, the first
/// blanks get one more.
fn fill_blanks(entries: Vec<(u64, Option<u8>)>, left: u64, blanks: u64) -> Vec<(u64, u8)> {
    let mut blank = 0;
    let mut part = || {
        let share = left / blanks + u64::from(blank < left % blanks);
        blank += 1;
        u8::try_from(share).unwrap_or(100)
    };
    let filled: Vec<_> =
        entries.into_iter().map(|(size, share)| (size, share.unwrap_or_else(&mut part))).collect();
    debug_assert_eq!(filled.iter().map(|(_, share)| u64::from(*share)).sum::<u64>(), 100);
    filled
}

/// The steps of `sync_file_range`, each as what it adds to a call.
const RANGE_STEPS: &[(&str, RangeSync)] = &[
    ("wait_before", RangeSync { wait_before: true, ..NO_RANGE_SYNC }),
    ("write", RangeSync { write: true, ..NO_RANGE_SYNC }),
    ("wait_after", RangeSync { wait_after: true, ..NO_RANGE_SYNC }),
];

const NO_RANGE_SYNC: RangeSync =
    RangeSync { every: 0, wait_before: false, write: false, wait_after: false };

/// `write:8`, `wait_before,write`: steps, and the writes between two calls, 1 if not given. As in
/// fio, 0 means no calls.
pub(super) fn range_sync(value: Value<'_>) -> Parsed<RangeSync> {
    let (steps, count) = value.head_and_tail()?;
    let every = count.map_or(Ok(1), |count| count.count_u32(0, u32::MAX))?;
    let steps = steps.list(&[','], RANGE_STEPS.len(), |step| step.word(RANGE_STEPS))?;
    Ok(RangeSync {
        every,
        wait_before: steps.iter().any(|step| step.wait_before),
        write: steps.iter().any(|step| step.write),
        wait_after: steps.iter().any(|step| step.wait_after),
    })
}

#[derive(Clone, Copy)]
enum Law {
    Uniform,
    Zipf,
    Pareto,
    Normal,
    Zoned,
    ZonedAbs,
    Sequence,
}

const LAWS: &[(&str, Law)] = &[
    ("random", Law::Uniform),
    ("zipf", Law::Zipf),
    ("pareto", Law::Pareto),
    ("normal", Law::Normal),
    ("zoned", Law::Zoned),
    ("zoned_abs", Law::ZonedAbs),
    ("sequence", Law::Sequence),
];

/// `random`, `zipf:1.2`, `pareto:0.2:0.5`, `normal:10`, `zoned:60/10:40/90`, `sequence:2,0,1`.
pub(super) fn distribution(value: Value<'_>) -> Parsed<Distribution> {
    let (word, tail) = value.head_and_tail()?;
    let law = word.word(LAWS)?;
    let Some(tail) = tail else {
        return match law {
            Law::Uniform => Ok(Distribution::Uniform),
            _ => Err(ValueFault::Incomplete("its parameter, as in zipf:1.2")),
        };
    };
    Ok(match law {
        Law::Uniform => return Err(ValueFault::Unsupported("a parameter of `random`")),
        Law::Zipf | Law::Pareto | Law::Normal => skewed(law, tail)?,
        Law::Zoned => Distribution::Zoned(zones(tail)?),
        Law::ZonedAbs => Distribution::ZonedAbs(zones_abs(tail)?),
        Law::Sequence => Distribution::Sequence(tail.list(&[','], 64, |v| v.count(0, 1 << 32))?),
    })
}

/// Reads the parameters of zipf, pareto or normal.
fn skewed(law: Law, tail: Value<'_>) -> Parsed<Distribution> {
    Ok(match law {
        Law::Zipf => {
            let (theta, center) = law_parameters(tail, "above 0, at most 100 and not 1", |x| {
                x > 0.0 && x <= 100.0 && x != 1.0
            })?;
            Distribution::Zipf { theta, center }
        }
        Law::Pareto => {
            let (h, center) =
                law_parameters(tail, "between 0 and 1, both excluded", |x| x > 0.0 && x < 1.0)?;
            Distribution::Pareto { h, center }
        }
        _ => {
            let (deviation_percent, center) =
                law_parameters(tail, "from 0 to below 100", |x| x < 100.0)?;
            Distribution::Normal { deviation_percent, center: center.unwrap_or(0.5) }
        }
    })
}

/// `x` or `x:center`.
fn law_parameters(
    value: Value<'_>,
    allowed: &'static str,
    accept: impl Fn(f64) -> bool,
) -> Parsed<(f64, Option<f64>)> {
    let (first, center) = value.head_and_tail()?;
    let center = center.map(|v| v.fraction("a centre from 0 to 1", |x| x <= 1.0)).transpose()?;
    Ok((first.fraction(allowed, accept)?, center))
}

fn zones(value: Value<'_>) -> Parsed<Vec<Zone>> {
    let mut zones = zone_list(value, |v| v.percent().map(u64::from))?;
    let sum: u64 = zones.iter().map(|zone| zone.width).sum();
    let blanks = zones.iter().filter(|zone| zone.width == 0).count() as u64;
    if sum > 100 || 100 - sum < blanks {
        return Err(ValueFault::NotAHundred { sum });
    }
    if blanks == 0 {
        return Ok(zones);
    }
    // Blank widths share the rest, as blank percentages do.
    let widths = zones.iter().map(|zone| (0, (zone.width > 0).then_some(small(zone.width))));
    let widths = fill_blanks(widths.collect(), 100 - sum, blanks);
    for (zone, (_, width)) in zones.iter_mut().zip(widths) {
        zone.width = width.into();
    }
    Ok(zones)
}

/// Returns a number that was checked to be at most 100.
fn small(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(100)
}

fn zones_abs(value: Value<'_>) -> Parsed<Vec<Zone>> {
    let zones = zone_list(value, |v| v.count(1, 1 << 48))?;
    if zones.iter().any(|zone| zone.width == 0) {
        return Err(ValueFault::Incomplete("a width after each `/`"));
    }
    Ok(zones)
}

/// Reads a list of `share/width` separated by colons. The shares must sum to 100. A blank width is
/// 0.
fn zone_list(value: Value<'_>, width: impl Fn(Value<'_>) -> Parsed<u64>) -> Parsed<Vec<Zone>> {
    let zones = value.list(&[':'], 256, |entry| {
        let (share, second) = entry.pair()?;
        let access_percent = share.percent()?;
        let width = second.map_or(Ok(None), |v| width(v).map(Some))?;
        if width == Some(0) {
            return Err(ValueFault::Incomplete("zones that are wider than 0"));
        }
        Ok(Zone { access_percent, width: width.unwrap_or(0) })
    })?;
    let sum: u64 = zones.iter().map(|zone| u64::from(zone.access_percent)).sum();
    if sum == 100 { Ok(zones) } else { Err(ValueFault::NotAHundred { sum }) }
}

/// `a:b`, with `\:` for a colon within a name.
pub(super) fn filenames(value: Value<'_>) -> Parsed<Vec<String>> {
    let mut names = vec![String::new()];
    let mut letters = value.free_text()?.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => push(&mut names, ':'),
            ':' => names.push(String::new()),
            other => push(&mut names, other),
        }
    }
    names.retain(|name| !name.is_empty());
    match names.len() {
        0 => Err(ValueFault::Missing),
        n if n > usize::from(FILES_MAX) => Err(ValueFault::TooMany { max: FILES_MAX.into() }),
        _ => Ok(names),
    }
}

fn push(names: &mut [String], letter: char) {
    if let Some(name) = names.last_mut() {
        name.push(letter);
    }
}

#[derive(Clone, Copy)]
enum Service {
    RoundRobin,
    Random,
    Sequential,
    Skewed(Law),
}

const SERVICES: &[(&str, Service)] = &[
    ("roundrobin", Service::RoundRobin),
    ("random", Service::Random),
    ("sequential", Service::Sequential),
    ("zipf", Service::Skewed(Law::Zipf)),
    ("pareto", Service::Skewed(Law::Pareto)),
    ("normal", Service::Skewed(Law::Normal)),
    ("gauss", Service::Skewed(Law::Normal)),
];

/// `roundrobin:8`, `random`, `sequential`, `zipf:1.2`, `gauss`.
pub(super) fn file_service(value: Value<'_>) -> Parsed<FileService> {
    let (word, tail) = value.head_and_tail()?;
    let service = word.word(SERVICES)?;
    if let Service::Skewed(law) = service {
        return match tail {
            Some(tail) => skewed(law, tail),
            None => skewed(law, Value { text: Some(default_parameter(law)), ..value }),
        }
        .map(FileService::Skewed);
    }
    let count = tail.map_or(Ok(1), |v| v.count_u32(1, u32::MAX))?;
    Ok(match service {
        Service::RoundRobin => FileService::RoundRobin(count),
        Service::Random => FileService::Random(count),
        Service::Sequential | Service::Skewed(_) => FileService::Sequential,
    })
}

/// Returns fio's parameter of a law that chooses files, for a job that gives none.
const fn default_parameter(law: Law) -> &'static str {
    match law {
        Law::Zipf => "1.1",
        Law::Pareto => "0.2",
        _ => "0",
    }
}

/// Reads one size. A range would require random sizes.
pub(super) fn file_size(value: Value<'_>) -> Parsed<u64> {
    if value.text()?.contains(['-', ':']) {
        return Err(ValueFault::Unsupported("a range of file sizes"));
    }
    value.count(1, u64::MAX)
}

/// Reads one time, or two: the shortest and the longest delay.
pub(super) fn start_delay(value: Value<'_>) -> Parsed<(u64, u64)> {
    let time = |v: Value<'_>| v.time_ns(TimeUnit::Second);
    if value.text()?.contains(['-', ':']) { value.range(time) } else { time(value).map(|t| (t, t)) }
}

/// `0,5,8-15`.
pub(super) fn cpu_list(value: Value<'_>) -> Parsed<Vec<u16>> {
    let cpu = |v: Value<'_>| v.count(0, CPUS_MAX - 1);
    let ranges = value.list(&[',', ':'], 1024, |part| match part.text {
        Some(text) if text.contains('-') => part.range(cpu),
        _ => cpu(part).map(|n| (n, n)),
    })?;
    let mut cpus: Vec<_> = ranges.into_iter().flat_map(|(a, b)| a..=b).map(cpu_number).collect();
    cpus.sort_unstable();
    cpus.dedup();
    debug_assert!(!cpus.is_empty(), "a list of processors has at least one part");
    Ok(cpus)
}

/// Reads a mask with a bit for each of the first 64 processors.
pub(super) fn cpu_mask(value: Value<'_>) -> Parsed<Vec<u16>> {
    let mask = value.count(1, u64::MAX)?;
    Ok((0..64).filter(|cpu| mask >> cpu & 1 == 1).map(cpu_number).collect())
}

/// Returns a number that was checked to be below [`CPUS_MAX`].
fn cpu_number(cpu: u64) -> u16 {
    debug_assert!(cpu < CPUS_MAX, "processor {cpu}");
    u16::try_from(cpu).unwrap_or(u16::MAX)
}

/// `50:99:99.9`.
pub(super) fn percentiles(value: Value<'_>) -> Parsed<Vec<f64>> {
    value.list(&[':'], 20, |v| v.fraction("a percentile from 0 to 100", |x| x <= 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text: Some(text), kb_base: 1024 }
    }

    fn split(text: &str) -> Parsed<BlockSizes> {
        block_split(value(text))
    }

    fn sizes(entries: &[(u32, u8)]) -> Parsed<BlockSizes> {
        Ok(BlockSizes::Split(entries.to_vec()))
    }

    #[test]
    fn blank_percentages_share_the_rest_of_100() {
        assert_eq!(split("4k/50:1k/:32k"), sizes(&[(4096, 50), (1024, 25), (32768, 25)]));
        assert_eq!(split("1k:2k:3k"), sizes(&[(1024, 33), (2048, 33), (3072, 34)]));
        assert_eq!(split("4k"), sizes(&[(4096, 100)]));
        assert!(split("0/100").is_err());
    }

    /// fio 3.33 and 3.42: in order of their percentages, and the last one has what is missing.
    #[test]
    fn a_split_need_not_sum_to_100() {
        assert_eq!(split("4k/60:8k/60"), sizes(&[(4096, 60), (8192, 40)]));
        assert_eq!(split("4k/60:8k/30"), sizes(&[(4096, 70), (8192, 30)]));
        assert_eq!(split("4k/10:8k/20:16k/30"), sizes(&[(4096, 10), (8192, 20), (16384, 70)]));
        assert_eq!(split("4k/0:8k/50"), sizes(&[(4096, 50), (8192, 50)]));
        assert_eq!(split("4k/100:8k/"), sizes(&[(4096, 100), (8192, 0)]));
        assert_eq!(split("4k/70:8k/70:16k"), sizes(&[(4096, 0), (8192, 0), (16384, 100)]));
        assert_eq!(split("4k/70:8k/70:16k:1k"), Err(ValueFault::NotAHundred { sum: 140 }));
    }

    #[test]
    fn the_tail_of_a_pattern_counts_ios_or_bytes() {
        let random = pattern(value("randread:8")).unwrap();
        assert_eq!((random.random, random.ios_per_offset, random.skip_bytes), (true, 8, 0));
        let sequential = pattern(value("read:8")).unwrap();
        assert_eq!((sequential.ios_per_offset, sequential.skip_bytes), (1, 8));
        assert_eq!(pattern(value("write:-8k")).unwrap().skip_bytes, -8192);
        assert!(pattern(value("write:--8k")).is_err());
        assert!(pattern(value("randread:-8")).is_err());
        assert!(pattern(value("randread:")).is_err());
        assert!(pattern(value("READ")).is_err());
    }

    fn widths(text: &str) -> Vec<u64> {
        let Ok(Distribution::Zoned(zones)) = distribution(value(text)) else { return vec![] };
        zones.iter().map(|zone| zone.width).collect()
    }

    #[test]
    fn distributions_keep_to_their_domains() {
        for good in ["random", "zipf:0.9", "zipf:1.2:0.25", "pareto:0.2", "normal:10:0.5"] {
            assert!(distribution(value(good)).is_ok(), "{good}");
        }
        for bad in ["zipf", "zipf:1", "zipf:0", "zipf:1.1:2", "pareto:1", "normal:100", "gauss:1"] {
            assert!(distribution(value(bad)).is_err(), "{bad}");
        }
        assert!(distribution(value("zoned:60/10:40/90")).is_ok());
        assert!(distribution(value("zoned:60/10:40/95")).is_err());
        assert!(distribution(value("zoned:60/10:30/90")).is_err());
        assert!(distribution(value("zoned:100/0")).is_err());
        assert_eq!(widths("zoned:50/5:30/15:20/"), [5, 15, 80]);
        assert_eq!(widths("zoned:50/:30/15:20"), [43, 15, 42]);
        assert!(distribution(value("zoned:50/50:30/50:20/")).is_err());
        assert!(distribution(value("zoned_abs:50/1g:50/")).is_err());
    }

    #[test]
    fn syncs_of_a_range_have_steps_and_a_count() {
        let all = RangeSync { every: 8, wait_before: true, write: true, wait_after: true };
        assert_eq!(range_sync(value("wait_before,write,wait_after:8")), Ok(all));
        let one = RangeSync { every: 1, write: true, ..RangeSync::default() };
        assert_eq!(range_sync(value("write")), Ok(one));
        for bad in ["", "8", "read:8", "write:", "write:x", "write,write,write,write"] {
            assert!(range_sync(value(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_and_cpus_are_lists() {
        assert_eq!(filenames(value(r"/dev/a:/b\:c")), Ok(vec!["/dev/a".into(), "/b:c".into()]));
        assert!(filenames(value(":")).is_err());
        assert_eq!(cpu_list(value("5,0,2-3")), Ok(vec![0, 2, 3, 5]));
        assert!(cpu_list(value("0-")).is_err());
        assert!(cpu_list(value("0-100000000")).is_err());
        assert_eq!(cpu_mask(value("0x5")), Ok(vec![0, 2]));
    }
}
