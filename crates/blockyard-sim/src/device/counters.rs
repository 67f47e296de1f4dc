//! What the counters of media mean: the table of `docs/DEVICES.md`, and the descriptions in the schema of an answer.
//!
//! # Rules
//!
//! - **[every-counter-is-explained]** Each counter of each medium has a row, in the order in which the medium names them, and no other
//!   counter has one.

/// What a counter of a medium means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The table of a profile that has such a medium.
    pub medium: &'static str,
    /// The name in answers. Of a name that ends in `_ns`, or in `_percent`, tables leave the end out.
    pub name: &'static str,
    /// What is counted.
    pub meaning: &'static str,
    /// What a high value tells.
    pub high: &'static str,
}

impl Counter {
    /// The unit of the counter, by its name.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.name {
            name if name.ends_with("_ns") => "time, ns in JSON",
            name if name.ends_with("_percent") => "%",
            _ => "count",
        }
    }
}

const fn counter(
    medium: &'static str,
    name: &'static str,
    meaning: &'static str,
    high: &'static str,
) -> Counter {
    Counter { medium, name, meaning, high }
}

/// The counters of all media. All are sums over the measured time, `write_amplification_percent` is a share of two sums.
pub const COUNTERS: &[Counter] = &[
    counter("flash", "units_written", "units of 4 KiB that the host wrote", "the job writes much"),
    counter(
        "flash",
        "units_combined",
        "units of them that replaced data still in the write buffer",
        "the job overwrites what it has just written: flash writes less than the host",
    ),
    counter(
        "flash",
        "units_collected",
        "valid units that collection moved",
        "blocks are full of valid data: the drive is full, or written at random",
    ),
    counter(
        "flash",
        "units_folded",
        "units that were moved out of the SLC cache",
        "data is programmed twice: the cache is full, or the host was idle",
    ),
    counter(
        "flash",
        "units_padded",
        "places that programs left empty",
        "flushes program what they find, before a program is full",
    ),
    counter(
        "flash",
        "write_amplification_percent",
        "what the flash wrote for what left the buffer",
        "above 100 %: collection, folding or padding takes time from the host's writes",
    ),
    counter(
        "flash",
        "pages_read",
        "page reads for commands, repeated ones included",
        "the job reads much, in small pieces",
    ),
    counter(
        "flash",
        "read_retries",
        "page reads that were repeated because of errors",
        "old or worn data: each takes the time of a read again",
    ),
    counter(
        "flash",
        "map_pages_read",
        "pages of the map that were read from flash",
        "the map does not fit its memory: a random read takes two reads of flash",
    ),
    counter(
        "flash",
        "programs",
        "programs, for whatever reason: the host, collection, folding",
        "beside few `units_written`: see `units_collected`, `units_folded`, `units_padded`",
    ),
    counter(
        "flash",
        "slc_programs",
        "programs of them that went to the SLC cache",
        "as many as `programs`: the cache took all; fewer: writes went past it, or data was moved",
    ),
    counter(
        "flash",
        "erases",
        "blocks that were erased",
        "collection is at work: each keeps a die busy",
    ),
    counter(
        "flash",
        "suspends",
        "programs and erases that gave way to a read",
        "reads meet busy dies: reads are fast, and writes end later",
    ),
    counter(
        "flash",
        "buffer_stalls",
        "writes that found no room in the write buffer",
        "nearly all writes: the flash, not the host, sets the rate",
    ),
    counter(
        "flash",
        "read_wait_ns",
        "waits of page reads for their die",
        "against `pages_read`: reads wait behind other reads, programs or erases",
    ),
    counter(
        "platters",
        "seeks",
        "movements of the arm to another cylinder",
        "nearly one for each command: the job is random for the disk",
    ),
    counter(
        "platters",
        "seek_ns",
        "time of seeks and of switches of heads",
        "most of the run: distances decide; a deeper queue or a smaller area helps",
    ),
    counter(
        "platters",
        "rotation_ns",
        "waits on the track until the sector comes round",
        "most of the run: the speed of rotation decides; a deeper queue helps",
    ),
    counter(
        "platters",
        "transfer_ns",
        "time for which sectors of commands and of acknowledged writes passed the head",
        "most of the run: the rate of the platters decides",
    ),
    counter(
        "platters",
        "cached_reads",
        "reads that the cache answered",
        "reading ahead works, or the job reads again what it wrote",
    ),
    counter(
        "platters",
        "cached_writes",
        "writes that were acknowledged from the cache",
        "writes are faster than the platters until the cache is full",
    ),
    counter(
        "platters",
        "destages",
        "pieces that went from the cache to the platters",
        "as many as `cached_writes`: no writes were joined",
    ),
    counter(
        "platters",
        "overdue",
        "commands that went next because they had waited too long",
        "the order by distance starves some commands: tails are long, and the rate falls",
    ),
    counter("crosspoint", "units_read", "units that were read", "the job reads much"),
    counter("crosspoint", "units_written", "units that were written", "the job writes much"),
    counter(
        "crosspoint",
        "channel_wait_ns",
        "waits of accesses for a channel, over all channels",
        "against the units: the channels are the limit",
    ),
    counter(
        "volume",
        "ios_counted",
        "I/Os as the provider counts them, by size",
        "above the commands: large I/Os count as several",
    ),
    counter(
        "volume",
        "iops_limit_wait_ns",
        "waits of commands for the limit of I/Os per second",
        "this limit sets the rate; longer I/Os carry more bytes",
    ),
    counter(
        "volume",
        "bytes_limit_wait_ns",
        "waits of commands for the limit of bytes per second",
        "this limit sets the rate",
    ),
];
