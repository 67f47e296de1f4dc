//! Flash memory behind a translation layer: the table `[flash]`.

use super::Flash;
use super::evidence;
use crate::charges::{Charges, Resource};
use crate::counters::Counter;
use crate::family::LIMITS;
use crate::load::{Parts, Work};
use crate::medium::{MediumFamily, MediumWords};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::spread::{PERCENTS, RETRIES, Spread};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Flag, OneOf, Time};

/// Bytes of a unit of the translation map.
pub(crate) const UNIT_BYTES: u64 = 4096;
/// Blocks of a die that collection keeps free, beside the open one.
pub(crate) const RESERVE_BLOCKS: u64 = 2;

/// Blocks of a die beyond those of the data that collection needs: the reserve, the open block and
/// one to collect.
const COLLECTION_BLOCKS: u64 = RESERVE_BLOCKS + 2;

/// The largest `simulated`, in bytes.
pub(crate) const SIMULATED_MAX: u64 = 1 << 36;
/// The largest `spare`, in percent.
pub(crate) const SPARE_MAX: u16 = 400;
/// The largest `buffer`, in bytes.
pub(crate) const BUFFER_MAX: u64 = 1 << 32;
/// The largest `read-ahead`, in bytes.
const READ_AHEAD_MAX: u64 = 1 << 24;
/// The largest `map-memory`, in bytes.
pub(crate) const MAP_MEMORY_MAX: u64 = 1 << 36;
/// The largest `flush-map`, in bytes.
pub(crate) const FLUSH_MAP_MAX: u64 = 1 << 26;
/// Blocks of all dies at most.
pub(crate) const BLOCKS_MAX: u64 = 1 << 22;
/// Units that preconditioning may write, collection included. In a release build they take half a
/// minute.
const PRECONDITION_MAX: u64 = 1 << 27;

/// How collection chooses the block that it frees next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The block with the fewest valid units.
    Greedy,
    /// The block with the greatest benefit for its cost, age (1 - u) / 2u, where u is the valid
    /// share of its units (Kawaguchi, Nishioka and Motoda, USENIX 1995). What it moves goes to
    /// blocks of its own.
    CostBenefit,
}

/// The words of `collection`.
const CHOICES: &[(&str, Choice)] =
    &[("greedy", Choice::Greedy), ("cost-benefit", Choice::CostBenefit)];

/// Which work of a die goes next where a read waits and other work does too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DieOrder {
    /// Reads go first, and may suspend what has begun; but no more than `passes` in a row.
    ReadsFirst,
    /// Reads go first, and may suspend what has begun, until programs and erases have had less than
    /// their `share` of the die's time.
    Shares,
    /// A read waits for the programs that its die has been given before it, `queued` at most. It
    /// suspends nothing.
    Arrival,
}

/// The words of `order`, from the least wait of reads to the longest.
const ORDERS: &[(&str, DieOrder)] = &[
    ("reads-first", DieOrder::ReadsFirst),
    ("shares", DieOrder::Shares),
    ("arrival", DieOrder::Arrival),
];

/// The keys that only some orders of a die use.
const OF_ORDERS: &[(&str, &[DieOrder])] = &[
    ("suspend", &[DieOrder::ReadsFirst, DieOrder::Shares]),
    ("passes", &[DieOrder::ReadsFirst]),
    ("queued", &[DieOrder::Arrival]),
    ("share", &[DieOrder::Shares]),
];

/// What a write that finds the buffer full holds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullBuffer {
    /// The writes behind it.
    Writes,
    /// The writes behind it, and all commands behind it in its hardware queue.
    Queue,
    /// All commands behind it.
    Commands,
}

/// The words of `full-buffer`.
const FULL_BUFFERS: &[(&str, FullBuffer)] = &[
    ("writes-wait", FullBuffer::Writes),
    ("queue-waits", FullBuffer::Queue),
    ("all-wait", FullBuffer::Commands),
];

/// The words of `write-cache`, from the cheaper sync to the dearer.
const WRITE_CACHES: &[(&str, bool)] = &[("off", false), ("on", true)];

/// The figures of flash memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashProfile {
    /// Channels, each of which carries one transfer at a time.
    pub channels: u16,
    /// Dies on each channel.
    pub(crate) dies: u16,
    /// Planes of a die that program together.
    pub(crate) planes: u16,
    /// Bytes of a page of one plane, a multiple of 4 KiB.
    pub page: u64,
    /// Programs, of all planes together, that fill a block.
    pub programs: u16,
    /// Bytes of the drive as the map has it, whatever the capacity is.
    pub simulated: u64,
    /// Bytes of `simulated` in flash beyond those that the host sees, in percent.
    pub(crate) spare: u16,
    /// Share of the drive that holds data, in percent. All addresses that the host uses share the
    /// units of this data.
    pub fill: u16,
    /// Random overwrites before the start, in percent of the data.
    pub(crate) overwritten: u16,
    /// How collection chooses a block.
    pub(crate) collection: Choice,
    /// Time of reading a page.
    pub read: Duration,
    /// How that time spreads from page to page; `None`: all pages take as long.
    pub(crate) read_spread: Option<Spread>,
    /// How many more times a page is read until its errors can be corrected, as points
    /// `[percentile, times]` with at most 100 times, for data that was there before the run;
    /// `None`: never.
    pub(crate) retries: Option<Spread>,
    /// Time of a program of all planes.
    pub program: Duration,
    /// Time of an erase of a block of all planes.
    pub erase: Duration,
    /// Programs of a die that one erase makes room for; `None`: those of a block of the map.
    pub(crate) erase_programs: Option<u16>,
    /// Time of a suspended program or erase to give way to a read; `None`: reads wait.
    pub suspend: Option<Duration>,
    /// Which work of a die goes next.
    pub order: DieOrder,
    /// Reads that may go before a program or erase that waits, and as many that may suspend it;
    /// only where reads go first.
    pub passes: u16,
    /// Programs that a die is given ahead of their time; only where the order is that of arrival.
    pub queued: u16,
    /// The time of a die that is left to programs and erases while reads wait too, in percent; only
    /// where the order is that of shares.
    pub share: u8,
    /// Pages that a die holds until its channel has carried them: 1, or 2 if it reads the next page
    /// meanwhile (cache read).
    pub registers: u8,
    /// Bytes that the drive reads ahead of reads in sequence; 0: none.
    pub(crate) read_ahead: u64,
    /// Streams of such reads that it follows.
    pub(crate) read_streams: u8,
    /// Time for which 4 KiB occupy their channel.
    pub transfer: Duration,
    /// Fixed time of a discard, to which the time of its length is added.
    pub discard: Duration,
    /// Time of a discard for each GiB that it covers.
    pub(crate) discard_per_gib: Duration,
    /// Bytes of the write buffer.
    pub buffer: u64,
    /// What waits behind a write for which the buffer has no room.
    pub(crate) full_buffer: FullBuffer,
    /// Time of a write into the buffer, and of a read that needs no flash.
    pub buffered: Duration,
    /// Whether the buffer survives a loss of power, so that flushes need not wait.
    pub(crate) protected: bool,
    /// Whether the host is told of a cache that it must flush; `None`: unless `protected`.
    pub(crate) write_cache: Option<bool>,
    /// Time of a flush where the buffer survives a loss of power.
    pub(crate) protected_flush: Duration,
    /// Steps by which a flush makes the map durable after the data, one after another: such as the
    /// rest of a word line, and a journal; 0: the map is found from the data.
    pub(crate) flush_steps: u16,
    /// Bytes that each of these steps programs, at the speed of single-level cells, on as many dies
    /// as there are programs in them.
    pub(crate) flush_map: u64,
    /// Bytes of data that the cache of single-level cells takes; 0: there is none.
    pub(crate) slc: u64,
    /// Time of a program in that cache.
    pub(crate) slc_program: Duration,
    /// Idle time of the host after which the cache is folded.
    pub(crate) slc_idle: Duration,
    /// Whether writes go past that cache when it is full. If not, they wait until it is folded.
    pub(crate) slc_bypass: bool,
    /// Bytes of memory for the map, four for each 4 KiB of data; `None`: the whole map is in
    /// memory. Without its part of the map, a read waits for it, and a write reads it beside.
    pub(crate) map_memory: Option<u64>,
}

impl FlashProfile {
    /// Returns the dies of all channels.
    pub(crate) fn all_dies(&self) -> u64 {
        u64::from(self.channels) * u64::from(self.dies)
    }

    /// Whether the host is told of a cache that it must flush.
    pub(crate) fn has_write_cache(&self) -> bool {
        self.write_cache.unwrap_or(!self.protected)
    }

    /// Returns the units that one program writes.
    pub(crate) fn program_units(&self) -> u64 {
        self.page / UNIT_BYTES * u64::from(self.planes)
    }

    /// Returns the units of the map that each step of a flush programs.
    pub(crate) fn flush_units(&self) -> u64 {
        self.flush_map.div_ceil(UNIT_BYTES)
    }

    /// Returns the units that hold data.
    pub(crate) fn data_units(&self) -> u64 {
        self.simulated / UNIT_BYTES * u64::from(self.fill) / 100
    }

    /// Returns the units of a block of all planes.
    pub(crate) fn block_units(&self) -> u64 {
        self.program_units() * u64::from(self.programs)
    }

    /// Returns the programs of a die that one erase makes room for.
    pub(crate) fn erase_programs(&self) -> u64 {
        self.erase_programs.unwrap_or(self.programs).into()
    }

    /// Returns the blocks of a die, in whole.
    pub(crate) fn die_blocks(&self) -> u64 {
        let units = self.simulated / UNIT_BYTES * (100 + u64::from(self.spare)) / 100;
        units / (self.all_dies() * self.block_units())
    }

    /// Returns about how many units preconditioning writes, with those that collection moves: by
    /// the published analyses, greedy collection amplifies uniform writes T / 2(T - U) times, where
    /// T are the units in use and U those with data.
    fn precondition_units(&self) -> u64 {
        let data = self.data_units();
        let blocks = self.all_dies() * (self.die_blocks() - RESERVE_BLOCKS - 1);
        let in_use = blocks * self.block_units();
        let spare = in_use.saturating_sub(data).max(1);
        let moves = data * u64::from(self.overwritten) / 100 * in_use.max(2 * spare) / (2 * spare);
        data + moves
    }

    /// Checks that a drive of `capacity_sectors` can have this flash.
    pub(crate) fn agrees(&self, capacity_sectors: u64) -> Result<(), &'static str> {
        let units = capacity_sectors / (UNIT_BYTES / u64::from(SECTOR_BYTES));
        if units < self.data_units() {
            return Err(
                "the capacity is below the data of the map, `simulated` times `fill`: raise `capacity`, or lower `simulated` of `[flash]`",
            );
        }
        Ok(())
    }

    /// Whether collection has blocks to work with.
    fn can_collect(&self) -> bool {
        self.die_blocks() >= self.data_blocks() + COLLECTION_BLOCKS
    }

    /// Returns the message that `spare` is too small: what there is, what collection needs, and
    /// what to raise.
    fn lack_of_spare(&self) -> String {
        debug_assert!(!self.can_collect(), "{self:?} has spare");
        let blocks = self.die_blocks();
        let data = self.data_blocks();
        let enough =
            (self.spare..=SPARE_MAX).find(|spare| Self { spare: *spare, ..*self }.can_collect());
        let remedy = match enough {
            Some(enough) => format!("raise `spare` from {} to {enough} or more", self.spare),
            None => {
                "raise `simulated`, or lower `programs`, `planes`, `page`, `dies` or `channels`"
                    .to_owned()
            }
        };
        format!(
            "too little spare flash for collection: a die has {blocks} blocks and needs {}, {data} for the data and \
             {COLLECTION_BLOCKS} for collection: {remedy}",
            data + COLLECTION_BLOCKS
        )
    }

    /// Returns the blocks of a die that data needs at most when the dies share it evenly.
    pub(crate) fn data_blocks(&self) -> u64 {
        (self.simulated / UNIT_BYTES).div_ceil(self.all_dies() * self.block_units())
    }
}

impl MediumFamily for FlashProfile {
    type Medium = Flash;

    const TABLE: &'static str = "flash";
    const WORDS: MediumWords = evidence::WORDS;
    const COUNTERS: &'static [Counter] = evidence::COUNTERS;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        flash(top)
    }

    fn write_cache(&self) -> bool {
        self.has_write_cache()
    }

    fn check(&self, top: &Table<'_>, limits: &Limits) -> Result<(), ProfileError> {
        self.agrees(limits.capacity_sectors)
            .map_err(|words| top.wrong("limits", Problem::Contradiction(words)))?;
        cache_fits(top, self, limits)
    }

    fn build(&self, capacity: u64, prng: Prng) -> Self::Medium {
        Flash::new(*self, capacity, prng)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("spare", &[Resource::Work(Work::Collection)]),
    ("fill", &[Resource::Work(Work::Collection)]),
    (
        "read",
        &[
            Resource::Work(Work::Reads),
            Resource::Work(Work::MapReads),
            Resource::Work(Work::Folding),
            Resource::Work(Work::Collection),
        ],
    ),
    (
        "program",
        &[
            Resource::Work(Work::Programs),
            Resource::Work(Work::PastCache),
            Resource::Work(Work::Folding),
            Resource::Work(Work::Collection),
        ],
    ),
    ("erase", &[Resource::Work(Work::Erases)]),
    ("transfer", &[Resource::Parts(Parts::Channels)]),
    ("discard", &[Resource::Parts(Parts::Discards)]),
    ("discard-per-gib", &[Resource::Parts(Parts::Discards)]),
    ("buffer", &[Resource::Room]),
    ("flush-steps", &[Resource::Work(Work::MapPrograms)]),
    ("flush-map", &[Resource::Work(Work::MapPrograms)]),
    ("slc", &[Resource::Work(Work::PastCache), Resource::Work(Work::Folding)]),
    ("slc-program", &[Resource::Work(Work::CachePrograms), Resource::Work(Work::MapPrograms)]),
];

table_of!(FLASH, fn figures("flash") -> FlashProfile {
    channels: "channels" need(Count(1..=64)),
    dies: "dies" need(Count(1..=64)),
    planes: "planes" need(Count(1..=8)),
    page: "page" need(Bytes(UNIT_BYTES..=1 << 16)),
    programs: "programs" need(Count(1..=4096)),
    simulated: "simulated" need(Bytes(1 << 20..=SIMULATED_MAX)),
    spare: "spare" need(Count(1..=SPARE_MAX)),
    fill: "fill" need(Count(10..=100)),
    overwritten: "overwritten" need(Count(0..=400)),
    collection: "collection" take_or(OneOf(CHOICES), Choice::Greedy),
    read: "read" need(Time),
    read_spread: "read-spread" take(PERCENTS),
    retries: "retries" take(RETRIES),
    program: "program" need(Time),
    erase: "erase" need(Time),
    erase_programs: "erase-programs" take(Count(1..=4096)),
    suspend: "suspend" take(Time),
    order: "order" take_or(OneOf(ORDERS), DieOrder::ReadsFirst),
    passes: "passes" take_or(Count(1..=1000), 16),
    queued: "queued" take_or(Count(1..=1000), 4),
    share: "share" take_or(Count(1..=99), 50),
    registers: "registers" take_or(Count(1..=2), 2),
    read_ahead: "read-ahead" take_or(Bytes(0..=READ_AHEAD_MAX), 0),
    read_streams: "read-streams" take_or(Count(1..=64), 8),
    transfer: "transfer" need(Time),
    discard: "discard" need(Time),
    discard_per_gib: "discard-per-gib" need(Time),
    buffer: "buffer" need(Bytes(UNIT_BYTES..=BUFFER_MAX)),
    full_buffer: "full-buffer" take_or(OneOf(FULL_BUFFERS), FullBuffer::Writes),
    buffered: "buffered" need(Time),
    protected: "protected" take_or(Flag, false),
    write_cache: "write-cache" take(OneOf(WRITE_CACHES)),
    protected_flush: "protected-flush" take_or(Time, Duration::ZERO),
    flush_steps: "flush-steps" take_or(Count(0..=64), 0),
    flush_map: "flush-map" take_or(Bytes(UNIT_BYTES..=FLUSH_MAP_MAX), UNIT_BYTES),
    slc: "slc" need(Bytes(0..=1 << 42)),
    slc_program: "slc-program" need(Time),
    slc_idle: "slc-idle" need(Time),
    slc_bypass: "slc-bypass" take_or(Flag, false),
    map_memory: "map-memory" take(Bytes(UNIT_BYTES..=MAP_MEMORY_MAX)),
});

/// The keys of the table `[flash]`.
pub(crate) const FLASH_KEYS: &[&str] = FLASH;

/// Reads the table `[flash]` of `parent`, and checks that its geometry can work.
pub(crate) fn flash(parent: &Table<'_>) -> Result<FlashProfile, ProfileError> {
    let flash = figures(parent)?;
    let table = parent.table("flash", FLASH)?;
    // A reading draws each figure by itself, so only stated ones are compared.
    if !table.is_reading() {
        if flash.slc > 0 {
            table.not_longer(("slc-program", flash.slc_program), ("program", flash.program))?;
        }
        table.not_longer(
            ("suspend", flash.suspend.unwrap_or_default()),
            ("program", flash.program),
        )?;
    }
    order_uses_keys(&table)?;
    if flash.page % UNIT_BYTES != 0 {
        let words = "a page of flash must be a multiple of 4 KiB";
        return Err(table.wrong("page", Problem::Contradiction(words)));
    }
    if !flash.can_collect() {
        let key =
            table.given(&["spare", "simulated", "programs", "planes", "page", "dies", "channels"]);
        return Err(table.wrong(key, Problem::Unfit(flash.lack_of_spare())));
    }
    if flash.all_dies() * flash.die_blocks() > BLOCKS_MAX {
        let words = "flash has at most 4194304 blocks: raise `programs`, `planes` or `page`, or lower `simulated` or `spare`";
        return Err(table.wrong("programs", Problem::Contradiction(words)));
    }
    if flash.precondition_units() > PRECONDITION_MAX {
        let words = "overwriting so much before the start takes too long: lower `overwritten`, `simulated` or `fill`, or raise `spare`";
        return Err(table.wrong("overwritten", Problem::Contradiction(words)));
    }
    if flash.buffer < 2 * flash.program_units() * UNIT_BYTES {
        let words = "the write buffer of flash must hold two programs";
        return Err(table.wrong("buffer", Problem::Contradiction(words)));
    }
    Ok(flash)
}

/// Checks that no file states a key that the order of a die uses in no reading, unless a file that
/// builds on it states another order.
fn order_uses_keys(table: &Table<'_>) -> Result<(), ProfileError> {
    let orders = table.span("order", ORDERS)?;
    let usual = &ORDERS[..1];
    let orders = if orders.is_empty() { usual } else { orders };
    for (key, users) in OF_ORDERS {
        let used = orders.iter().any(|(_, order)| users.contains(order));
        let Some(file) = table.stated_with(key, "order").filter(|_| !used) else { continue };
        let users = ORDERS.iter().filter(|(_, order)| users.contains(order));
        let users: Vec<_> = users.map(|(word, _)| format!("`{word}`")).collect();
        let orders: Vec<_> = orders.iter().map(|(word, _)| format!("`{word}`")).collect();
        let words = format!(
            "`{key}` goes only with {} as `order`, which is {}",
            users.join(" or "),
            orders.join(" or ")
        );
        return Err(file.wrong(key, Problem::Unfit(words)));
    }
    Ok(())
}

/// Checks that the cache of single-level cells is not larger than the drive, where a file of `top`
/// states the cache. On a drive whose capacity alone was lowered, the cache takes all data.
fn cache_fits(top: &Table<'_>, flash: &FlashProfile, limits: &Limits) -> Result<(), ProfileError> {
    debug_assert!(limits.capacity_sectors > 0, "a drive without sectors");
    if top.is_reading() || flash.slc <= limits.capacity_sectors * u64::from(SECTOR_BYTES) {
        return Ok(());
    }
    for file in top.files() {
        let table = file.table("flash", FLASH_KEYS)?;
        let limits = file.table("limits", LIMITS)?;
        if table.has("slc") {
            let words = format!(
                "`slc` is `{}`, more than the drive's `capacity`, `{}`: lower `slc` or raise `capacity` of `[limits]`",
                table.stated("slc"),
                limits.stated("capacity")
            );
            return Err(table.wrong("slc", Problem::Unfit(words)));
        }
        if limits.has("capacity") {
            break;
        }
    }
    Ok(())
}
