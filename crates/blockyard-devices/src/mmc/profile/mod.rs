//! eMMC devices and SD cards: the figures of the card, and those of the host in front of it.

use crate::charges::{Charges, Resource};
use blockyard::limits::Limits;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::host::{BusyDetect, HostCapabilities};
use blockyard_mmc::mode::{Mode, NCR_MAX, NCR_MIN, Timing, Width};
use blockyard_mmc::policy::{HostPolicy, Pipeline};

use crate::reader::error::{Problem, ProfileError};
use crate::reader::spread::PERCENTS;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Among, Bytes, Count, Flag, Kind, OneOf, Time};
mod fault;
mod timing;

pub(crate) use fault::mmc_faults;
pub use fault::{CardFaults, HostFaults, MmcFaults};
pub use timing::{
    AheadTiming, BackgroundTiming, BadTiming, CardTiming, ControlTiming, EraseTiming, Gather,
    ReadTiming, Stall, UnitTiming, WriteTiming,
};

/// A card and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcProfile {
    /// The host.
    pub host: MmcHostProfile,
    /// The card.
    pub card: CardProfile,
}

impl MmcProfile {
    /// Returns the profile of a host that leaves memory mapped, at no cost.
    pub(crate) fn without_unmapping(&self) -> Self {
        let mut profile = *self;
        for memory in [&mut profile.host.costs.read, &mut profile.host.costs.write] {
            (memory.unmap, memory.unmap_per_kib) = (Duration::ZERO, Duration::ZERO);
        }
        profile
    }

    /// Returns the profile as used by a kernel that turns the cache of an SD card on (`sd_cache`),
    /// or leaves it off. Without the cache such a card has no command queue.
    pub(crate) fn with_sd_cache(&self, sd_cache: bool) -> Self {
        let mut profile = *self;
        if !sd_cache && !self.card.is_emmc() {
            let features = &mut profile.card.features;
            (features.cache_bytes, features.queue_depth) = (0, 0);
        }
        profile
    }

    /// Returns the driver tags under `policy`: at most as many as the command queue holds, if there
    /// is one.
    pub fn tags(&self, policy: Option<HostPolicy>) -> u16 {
        let engine = HostCapabilities {
            queue_engine_depth: self.host.queue_engine_depth,
            queue_engine_direct: self.host.queue_engine_direct,
            ..HostCapabilities::full()
        };
        let held = engine.queue_engine_tasks().min(self.card.features.queue_depth);
        match policy.map(|policy| policy.pipeline) {
            Some(Pipeline::Cqe) if held > 0 => self.host.tags.min(held.into()),
            _ => self.host.tags,
        }
    }

    /// Whether the card has a volatile cache.
    pub const fn has_cache(&self) -> bool {
        self.card.features.cache_bytes > 0
    }

    /// Whether writes can be durable by themselves: as reliable writes, which an eMMC device takes
    /// after CMD23.
    pub(crate) fn has_reliable_writes(&self) -> bool {
        self.card.is_emmc() && self.host.set_block_count
    }

    /// Whether the disk has a write cache for its queue, if durable writes are reliable writes
    /// (`fua`): then also without a cache, as since Linux 3.0. It follows from the card, so
    /// `[limits]` need not repeat it.
    pub(crate) const fn has_write_cache(&self, fua: bool) -> bool {
        self.has_cache() || fua
    }

    /// Checks that this device can have such `limits`. The error is the reason why it cannot.
    pub(crate) fn agrees(&self, limits: &Limits) -> Result<(), &'static str> {
        if limits.max_sectors > u16::MAX as u32 {
            return Err("a transfer of a card has at most 65535 sectors: `max-sectors`");
        }
        if limits.write_cache != self.has_write_cache(limits.fua) {
            return Err("`cache` in `[card]` and `fua` decide whether a card has a write cache: \
                        `write-cache` can be left out, and must not differ");
        }
        if limits.fua && !self.has_reliable_writes() {
            return Err("`fua` of a card is a reliable write: it needs an eMMC device and \
                        `set-block-count = true` in `[host]`");
        }
        Ok(())
    }
}

/// A host: the capabilities of its controller, and the costs of its driver to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcHostProfile {
    /// Driver tags.
    pub tags: u16,
    /// The best way in which the controller finds the end of busy.
    pub busy_detect: BusyDetect,
    /// Whether the card is soldered in.
    pub non_removable: bool,
    /// Whether transfers may be announced (CMD23).
    pub set_block_count: bool,
    /// Tasks that its command queue engine holds; 0: it has no engine.
    pub queue_engine_depth: u8,
    /// Whether the engine takes direct commands, and at most 31 tasks besides.
    pub queue_engine_direct: bool,
    /// Whether it has bounce buffers.
    pub bounce_buffers: bool,
    /// The processor that takes its interrupts.
    pub interrupt_cpu: u16,
    /// The costs of its driver.
    pub costs: HostCosts,
    /// The faults of the host: none in a profile, those of a fault file in a run.
    pub faults: HostFaults,
}

/// The costs of the acts of a host driver to a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// The cost of DMA for the memory of a request that reads.
    pub read: MemoryCosts,
    /// The cost of DMA for the memory of a request that writes.
    pub write: MemoryCosts,
    /// Copying a KiB to or from a bounce buffer.
    pub(crate) copy_per_kib: Duration,
    /// How much longer the bus takes for a KiB of a read because the controller's DMA engine moves
    /// it. A card that is written to is slower than the engine, and a command queue engine has its
    /// own.
    pub(crate) dma_per_kib: Duration,
    /// The period in which a command queue engine asks the card which tasks are ready, while no
    /// data moves (CQHCI's send status idle timer); 0: it learns of a task the instant it is ready.
    pub status_poll: Duration,
    /// Copying a KiB to or from the controller's FIFO, without the interrupts.
    pub(crate) pio_per_kib: Duration,
    /// The additional time of such copies if memory does not fit the cache.
    pub(crate) pio_misses: PioMisses,
    /// Putting a command or a transfer on the bus.
    pub issue: Duration,
    /// Reading a register to look at DAT0.
    pub look: Duration,
    /// Tuning the bus again.
    pub(crate) retune: Duration,
    /// Resetting controller and card, and bringing the card back to its mode.
    pub reset: Duration,
}

/// The cost of DMA to a processor for the memory of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCosts {
    /// Preparing memory of any size.
    pub map: Duration,
    /// Preparing each KiB: cache maintenance, descriptors.
    pub(crate) map_per_kib: Duration,
    /// Cleaning up memory of any size.
    pub unmap: Duration,
    /// Cleaning up each KiB: the cache lines of memory that was read into are stale. Memory that
    /// was written to the card has no stale lines.
    pub(crate) unmap_per_kib: Duration,
}

impl MemoryCosts {
    /// Returns the same costs in sum, of which `share` percent are for preparing memory.
    fn with_map_share(self, share: u8) -> Self {
        let (map, unmap) = divided(self.map + self.unmap, share);
        let (map_per_kib, unmap_per_kib) = divided(self.map_per_kib + self.unmap_per_kib, share);
        Self { map, map_per_kib, unmap, unmap_per_kib }
    }
}

/// The additional time of copying if memory does not fit the cache. The FIFO of a controller is
/// short: while the processor waits for memory, the bus waits too, unless the FIFO lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PioMisses {
    /// Bytes of a transfer that the cache holds.
    pub(crate) cached_bytes: u64,
    /// Time of the bus for each KiB beyond these bytes.
    pub(crate) per_kib: Duration,
    /// Time of the processor for each KiB that is read beyond these bytes; for a KiB that is
    /// written, it is the bus's.
    pub(crate) processor_per_kib: Duration,
}

/// How long a KiB waits for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PioWait {
    /// Of the bus.
    pub bus: Duration,
    /// Of the processor.
    pub processor: Duration,
}

impl PioMisses {
    /// Returns the average additional time for a KiB of a transfer of this many `bytes`, 0 for an
    /// empty one.
    #[must_use]
    pub(crate) fn per_kib_of(&self, bytes: u32, reads: bool) -> PioWait {
        let bytes = u64::from(bytes);
        let missed = bytes.saturating_sub(self.cached_bytes);
        let processor = if reads { self.processor_per_kib } else { self.per_kib };
        let [bus, processor] = [self.per_kib, processor]
            .map(|per_kib| Duration::from_ns(per_kib.as_ns() * missed / bytes.max(1)));
        PioWait { bus, processor }
    }
}

/// A card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardProfile {
    /// The mode of its bus, which also decides whether it is an eMMC device or SD card.
    pub mode: Mode,
    /// The times of its operations.
    pub timing: CardTiming,
    /// Its features.
    pub features: CardFeatures,
}

/// The features of a card besides reading and writing. Of these an SD card has only the cache and
/// the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardFeatures {
    /// Bytes of its volatile cache; 0: it has no cache.
    pub cache_bytes: u64,
    /// Tasks in its command queue: 0, or 1 to 32, of an SD card 2 to 32.
    pub queue_depth: u8,
    /// The largest number of writes in a packed command, 0 to 63.
    pub packed_writes: u8,
    /// The largest number of reads in a packed command, 0 to 63.
    pub packed_reads: u8,
    /// The only length of a reliable write besides one sector (REL_WR_SEC_C); 0: any length.
    pub(crate) reliable_write_sectors: u8,
    /// Whether its operations can be interrupted (HPI).
    pub hpi: bool,
    /// Whether it has background operations.
    pub bkops: bool,
}

impl CardProfile {
    /// Whether it is an eMMC device; otherwise it is an SD card.
    #[must_use]
    pub fn is_emmc(&self) -> bool {
        self.mode.timing >= Timing::MmcLegacy
    }
}

const HOST: &[&str] = &[
    "tags",
    "busy-detect",
    "non-removable",
    "set-block-count",
    "queue-engine-depth",
    "queue-engine-direct",
    "queue-engine-poll",
    "bounce-buffers",
    "interrupt-cpu",
    "map",
    "map-per-kib",
    "unmap",
    "unmap-per-kib",
    "map-share",
    "dma-share",
    "copy-per-kib",
    "pio-per-kib",
    "pio-cached",
    "pio-miss-per-kib",
    "pio-stall-per-kib",
    "issue",
    "look",
    "retune",
    "reset",
    "write",
];
const HOST_WRITE: &[&str] = &["map", "map-per-kib", "unmap"];
const CARD: &[&str] = &[
    "timing",
    "width",
    "ncr-clocks",
    "cache",
    "queue-depth",
    "packed-writes",
    "packed-reads",
    "reliable-write-sectors",
    "hpi",
    "bkops",
    "deterministic",
    "read",
    "ahead",
    "write",
    "units",
    "stall",
    "erase",
    "background",
    "control",
];
const READ: &[&str] = &["access", "gap", "parallel", "spread"];
const AHEAD: &[&str] = &["window", "per-kib", "command", "streams"];
const WRITE: &[&str] = &[
    "page",
    "program",
    "partial",
    "buffer",
    "early",
    "finish",
    "follow",
    "gather",
    "sequences",
    "command",
    "jump",
    "spread",
    "parallel",
    "open-end",
    "flush",
];
const STALL: &[&str] = &["one-in-pages", "length", "spread"];
/// What each key of the table of reads charges.
pub(crate) const READ_CHARGES: Charges =
    &[("access", &[Resource::CardReads]), ("gap", &[Resource::CardReads])];

/// What each key of the table of writes charges.
pub(crate) const WRITE_CHARGES: Charges = &[
    ("page", &[Resource::CardWrites]),
    ("program", &[Resource::CardWrites]),
    ("finish", &[Resource::CardWrites]),
];

const GATHER: &[(&str, Gather)] =
    &[("command", Gather::Command), ("sequence", Gather::Sequence), ("any", Gather::Any)];
const ERASE: &[&str] = &["group", "erase", "trim", "discard", "sanitize"];
/// The tables in `[card]`.
const CARD_TABLES: &[(&str, &[&str])] = &[
    ("card.read", READ),
    ("card.ahead", AHEAD),
    ("card.write", WRITE),
    ("card.units", UNITS),
    ("card.stall", STALL),
    ("card.erase", ERASE),
    ("card.background", BACKGROUND),
    ("card.control", CONTROL),
];

/// The ways to find the end of busy, as designs and devices name them.
pub(crate) const BUSY_DETECT: &[(&str, BusyDetect)] = &[
    ("cmd13", BusyDetect::Status),
    ("dat0-callback", BusyDetect::Line),
    ("hw", BusyDetect::Hardware),
];
const TIMING: &[(&str, Timing)] = &[
    ("sd-default", Timing::SdDefault),
    ("sd-hs", Timing::SdHighSpeed),
    ("sd-sdr12", Timing::Sdr12),
    ("sd-sdr25", Timing::Sdr25),
    ("sd-ddr50", Timing::Ddr50),
    ("sd-sdr50", Timing::Sdr50),
    ("sd-sdr104", Timing::Sdr104),
    ("emmc-legacy", Timing::MmcLegacy),
    ("emmc-hs", Timing::MmcHighSpeed),
    ("emmc-ddr52", Timing::MmcDdr52),
    ("emmc-hs200", Timing::Hs200),
    ("emmc-hs400es", Timing::Hs400Es),
    ("emmc-hs400", Timing::Hs400),
];
/// The number of lanes of a bus.
struct Lanes;

impl Kind for Lanes {
    type Out = Width;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &toml::de::DeValue<'_>) -> Result<Width, Problem> {
        Ok(match Among(&[1, 4, 8]).read(key, value)? {
            1 => Width::One,
            4 => Width::Four,
            _eight => Width::Eight,
        })
    }
}

/// Reads the tables `[host]` and `[card]` of `top`.
pub(crate) fn mmc(top: &Table<'_>) -> Result<MmcProfile, ProfileError> {
    let profile = MmcProfile { host: host(&top.table("host", HOST)?)?, card: card(top)? };
    let Err(bad) = profile.card.timing.check() else { return Ok(profile) };
    let card = top.table("card", CARD)?;
    let table = match CARD_TABLES.iter().find(|(path, _)| *path == bad.table) {
        Some((path, keys)) => card.table(path, keys)?,
        None => card,
    };
    Err(table.wrong(bad.key, Problem::Contradiction(bad.rule)))
}

fn host(host: &Table<'_>) -> Result<MmcHostProfile, ProfileError> {
    let read = MemoryCosts {
        map: time_or_none(host, "map")?,
        map_per_kib: host.need("map-per-kib", Time)?,
        unmap: time_or_none(host, "unmap")?,
        unmap_per_kib: host.need("unmap-per-kib", Time)?,
    };
    let (read, dma_per_kib) = shared(host, read)?;
    Ok(MmcHostProfile {
        tags: host.need("tags", Count(1..=64))?,
        busy_detect: host.need("busy-detect", OneOf(BUSY_DETECT))?,
        non_removable: host.need("non-removable", Flag)?,
        set_block_count: host.need("set-block-count", Flag)?,
        queue_engine_depth: host.take_or("queue-engine-depth", Count(0..=32), 0)?,
        queue_engine_direct: host.take_or("queue-engine-direct", Flag, false)?,
        bounce_buffers: host.take_or("bounce-buffers", Flag, false)?,
        interrupt_cpu: host.take_or("interrupt-cpu", Count(0..=1023), 0)?,
        costs: HostCosts {
            read,
            write: written(&host.table("host.write", HOST_WRITE)?, read)?,
            copy_per_kib: time_or_none(host, "copy-per-kib")?,
            dma_per_kib,
            status_poll: time_or_none(host, "queue-engine-poll")?,
            pio_per_kib: host.need("pio-per-kib", Time)?,
            pio_misses: pio_misses(host)?,
            issue: host.need("issue", Time)?,
            look: time_or_none(host, "look")?,
            retune: time_or_none(host, "retune")?,
            reset: time_or_none(host, "reset")?,
        },
        faults: HostFaults::default(),
    })
}

/// Divides what DMA takes longer than PIO anew, if the profile has shares: of each KiB between the
/// DMA engine and memory, and of memory between preparing and cleaning up. Returns the part of
/// memory, and that of the engine.
fn shared(host: &Table<'_>, stated: MemoryCosts) -> Result<(MemoryCosts, Duration), ProfileError> {
    let dma = host.take_or("dma-share", Count(0..=100_u8), 0)?;
    let (of_map, map_per_kib) = divided(stated.map_per_kib, dma);
    let (of_unmap, unmap_per_kib) = divided(stated.unmap_per_kib, dma);
    let read = MemoryCosts { map_per_kib, unmap_per_kib, ..stated };
    let read = match host.take("map-share", Count(0..=100_u8))? {
        Some(share) => read.with_map_share(share),
        None => read,
    };
    Ok((read, of_map + of_unmap))
}

/// Divides `all` into `percent` percent and the rest.
const fn divided(all: Duration, percent: u8) -> (Duration, Duration) {
    let part = all.as_ns() * percent as u64 / 100;
    (Duration::from_ns(part), Duration::from_ns(all.as_ns() - part))
}

/// Reads the time at `key`, none if it is missing.
fn time_or_none(table: &Table<'_>, key: &'static str) -> Result<Duration, ProfileError> {
    table.take_or(key, Time, Duration::ZERO)
}

/// Reads the additional time of copying if memory does not fit the cache.
fn pio_misses(host: &Table<'_>) -> Result<PioMisses, ProfileError> {
    let cached = host.take("pio-cached", Bytes(0..=1 << 30))?;
    let Some(per_kib) = host.take("pio-miss-per-kib", Time)? else {
        let words = "`pio-cached` goes only with `pio-miss-per-kib`";
        return match cached {
            Some(_) => Err(host.wrong("pio-cached", Problem::Contradiction(words))),
            None => Ok(PioMisses::default()),
        };
    };
    let processor_per_kib = host.take_or("pio-stall-per-kib", Time, per_kib)?;
    if processor_per_kib < per_kib {
        let words =
            "`pio-stall-per-kib` is at least `pio-miss-per-kib`: the bus waits for the processor";
        return Err(host.wrong("pio-stall-per-kib", Problem::Contradiction(words)));
    }
    Ok(PioMisses { cached_bytes: cached.unwrap_or(0), per_kib, processor_per_kib })
}

/// Reads the cost of memory for writes, if it differs from that for reads.
fn written(table: &Table<'_>, read: MemoryCosts) -> Result<MemoryCosts, ProfileError> {
    Ok(MemoryCosts {
        map: table.take_or("map", Time, read.map)?,
        map_per_kib: table.take_or("map-per-kib", Time, read.map_per_kib)?,
        unmap: table.take_or("unmap", Time, read.unmap)?,
        unmap_per_kib: Duration::ZERO,
    })
}

fn card(top: &Table<'_>) -> Result<CardProfile, ProfileError> {
    let card = top.table("card", CARD)?;
    let timing = card.need("timing", OneOf(TIMING))?;
    let width = card.need("width", Lanes)?;
    if width < timing.min_width() || (width == Width::Eight && timing < Timing::MmcLegacy) {
        let words = "this `timing` does not work with this `width`";
        return Err(card.wrong("width", Problem::Contradiction(words)));
    }
    let features = CardFeatures {
        cache_bytes: card.take_or("cache", Bytes(0..=1 << 32), 0)?,
        queue_depth: card.take_or("queue-depth", Count(0..=32), 0)?,
        packed_writes: card.take_or("packed-writes", Count(0..=63), 0)?,
        packed_reads: card.take_or("packed-reads", Count(0..=63), 0)?,
        reliable_write_sectors: card.take_or("reliable-write-sectors", Count(0..=255), 0)?,
        hpi: card.take_or("hpi", Flag, false)?,
        bkops: card.take_or("bkops", Flag, false)?,
    };
    let CardFeatures { cache_bytes, queue_depth, .. } = features;
    let of_sd = CardFeatures { cache_bytes, queue_depth, ..CardFeatures::default() };
    let is_sd = timing < Timing::MmcLegacy;
    if is_sd && queue_depth > 0 && (queue_depth == 1 || cache_bytes == 0) {
        let words = "the queue of an SD card holds 2 to 32 tasks, and goes only with a `cache`";
        return Err(card.wrong("queue-depth", Problem::Contradiction(words)));
    }
    if is_sd && features != of_sd {
        let words =
            "an SD card has no packed commands, reliable writes, HPI or background operations";
        let keys = ["packed-writes", "packed-reads", "reliable-write-sectors", "hpi", "bkops"];
        let key = keys.into_iter().find(|key| card.has(key)).unwrap_or("timing");
        return Err(card.wrong(key, Problem::Contradiction(words)));
    }
    if features.reliable_write_sectors > 0 && features.queue_depth > 0 {
        let words = "a card with a `queue-depth` takes reliable writes of any length";
        return Err(card.wrong("reliable-write-sectors", Problem::Contradiction(words)));
    }
    if features.queue_depth == 0 && !card.is_reading() {
        queue_uses_parallel(&card)?;
    }
    Ok(CardProfile { mode: Mode::new(timing, width), timing: timings(&card)?, features })
}

/// Checks that no file of a card without a command queue states `parallel`, unless a file that
/// builds on it states that there is no queue.
fn queue_uses_parallel(card: &Table<'_>) -> Result<(), ProfileError> {
    for file in card.files() {
        let read = file.table("card.read", READ)?;
        if read.has("parallel") {
            let words = "`parallel` goes only with a `queue-depth`: only tasks of a command queue are read in parallel";
            return Err(read.wrong("parallel", Problem::Contradiction(words)));
        }
        if file.has("queue-depth") {
            break;
        }
    }
    Ok(())
}

fn timings(card: &Table<'_>) -> Result<CardTiming, ProfileError> {
    let read = card.table("card.read", READ)?;
    let timing = CardTiming {
        ncr_clocks: card.take_or("ncr-clocks", Count(NCR_MIN..=NCR_MAX), NCR_MIN)?,
        read: ReadTiming {
            access: read.need("access", Time)?,
            ahead: ahead(&card.table("card.ahead", AHEAD)?)?,
            gap: read.take_or("gap", Time, Duration::ZERO)?,
            parallel: read.take_or("parallel", Count(1..=32), 1)?,
            spread: read.take("spread", PERCENTS)?,
        },
        write: write(&card.table("card.write", WRITE)?)?,
        units: units(card)?,
        stall: stall(&card.table("card.stall", STALL)?)?,
        erase: erase(&card.table("card.erase", ERASE)?)?,
        background: background(card)?,
        control: control(card)?,
        faults: CardFaults::default(),
    };
    let deterministic = card.take_or("deterministic", Flag, false)?;
    Ok(if deterministic { timing.without_chance() } else { timing })
}

fn ahead(ahead: &Table<'_>) -> Result<Option<AheadTiming>, ProfileError> {
    if ahead.is_empty() {
        return Ok(None);
    }
    let timing = AheadTiming {
        per_kib: ahead.need("per-kib", Time)?,
        window_bytes: ahead.need("window", Bytes(0..=1 << 30))?,
        command: ahead.take_or("command", Time, Duration::ZERO)?,
        streams: ahead.take_or("streams", Count(1..=64), 1)?,
    };
    Ok((timing.window_bytes > 0).then_some(timing))
}

fn write(write: &Table<'_>) -> Result<WriteTiming, ProfileError> {
    let page: u64 = write.need("page", Bytes(512..=1 << 20))?;
    Ok(WriteTiming {
        page_bytes: u32::try_from(page).expect("a page of at most a MiB"),
        program: write.need("program", Time)?,
        partial: write.take_or("partial", Time, Duration::ZERO)?,
        buffer_bytes: write.take_or("buffer", Bytes(512..=1 << 32), page)?,
        early: write.take_or("early", Flag, false)?,
        finish: write.take_or("finish", Time, Duration::ZERO)?,
        follow: write.take("follow", Time)?,
        gather: write.take_or("gather", OneOf(GATHER), Gather::Command)?,
        sequences: write.take_or("sequences", Count(1..=64), 1)?,
        command: write.take_or("command", Time, Duration::ZERO)?,
        jump: write.take_or("jump", Time, Duration::ZERO)?,
        spread: write.take("spread", PERCENTS)?,
        parallel: write.take_or("parallel", Count(1..=64), 1)?,
        open_end: write.take_or("open-end", Count(0..=100), 0)?,
        flush: write.take_or("flush", Time, Duration::ZERO)?,
    })
}

table_of!(UNITS, optional fn units("card.units") -> UnitTiming {
    bytes: "size" need(Bytes(512..=1 << 40)),
    open: "open" need(Count(1..=255)),
    copy_per_kib: "copy-per-kib" need(Time),
});

fn stall(stall: &Table<'_>) -> Result<Option<Stall>, ProfileError> {
    if stall.is_empty() {
        return Ok(None);
    }
    Ok(Some(Stall {
        one_in_pages: stall.need("one-in-pages", Count(1..=u32::MAX))?,
        length: stall.need("length", Time)?,
        spread: stall.take("spread", PERCENTS)?,
    }))
}

fn erase(erase: &Table<'_>) -> Result<EraseTiming, ProfileError> {
    let group = erase.take_or("group", Bytes(512..=1 << 40), 512 * 1024)?;
    Ok(EraseTiming {
        group_sectors: u32::try_from(group / u64::from(SECTOR_BYTES))
            .expect("an erase group of at most a TiB in sectors"),
        erase: time_or_none(erase, "erase")?,
        trim: time_or_none(erase, "trim")?,
        discard: time_or_none(erase, "discard")?,
        sanitize: time_or_none(erase, "sanitize")?,
    })
}

table_of!(BACKGROUND, optional fn background("card.background") -> BackgroundTiming {
    level_bytes: "level" need(Bytes(1..=1 << 50)),
    per_kib: "work-per-kib" need(Time),
});

table_of!(CONTROL, fn control("card.control") -> ControlTiming {
    switch: "switch" take_or(Time, Duration::ZERO),
    partition: "partition" take_or(Time, Duration::ZERO),
    interrupt: "interrupt" take_or(Time, Duration::ZERO),
});
