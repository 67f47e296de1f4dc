//! The counters of media, as `docs/devices` and the schema of an answer explain them.
//!
//! # Rules
//!
//! - **[every-counter-is-explained]** Each counter of each medium has a row, in the order in which
//!   the medium names them, and no other counter has one.

/// What a counter of a medium means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The table of a profile that has such a medium.
    pub medium: &'static str,
    /// The name in answers. Of a name that ends in `_ns`, or in `_percent`, tables leave the end
    /// out.
    pub name: &'static str,
    /// What is counted.
    pub meaning: &'static str,
    /// How to read a value: what follows from it, in sentences.
    pub reading: &'static str,
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
    reading: &'static str,
) -> Counter {
    Counter { medium, name, meaning, reading }
}

/// The counters of all media. All are sums over the measured time, except
/// `write_amplification_percent`: that is the ratio of two sums.
pub const COUNTERS: &[Counter] = &[
    counter(
        "flash",
        "units_written",
        "units of 4 KiB that the host wrote",
        "Divide other counters by it: `units_collected`, for example, to get the units moved for each unit written.",
    ),
    counter(
        "flash",
        "units_combined",
        "of `units_written`, those that replaced data still in the write buffer",
        "The flash does not program what is replaced: it writes less than the host.",
    ),
    counter(
        "flash",
        "units_collected",
        "valid units that collection moved",
        "If they are many, blocks hold much valid data when they are erased: the drive is full, or was written at random.",
    ),
    counter(
        "flash",
        "units_folded",
        "units that were folded out of the SLC cache",
        "This data is programmed twice. It is folded when the cache is full, or when the host is idle.",
    ),
    counter(
        "flash",
        "units_padded",
        "places that programs left empty",
        "Flushes program what is in the buffer, before it has enough for a whole program.",
    ),
    counter(
        "flash",
        "write_amplification_percent",
        "what the flash wrote, for each 100 units that left the buffer",
        "Above 100 %, the flash also wrote for collection, folding or padding. It is the ratio of two sums, not a sum.",
    ),
    counter(
        "flash",
        "pages_read",
        "page reads for commands, repeated ones included",
        "Divide it by the reads of the host. Above 1, reads span several pages, or are repeated. Below 1, some data was in the write buffer, or had been discarded.",
    ),
    counter(
        "flash",
        "read_retries",
        "of `pages_read`, those that were repeated because of errors",
        "The data is old, or the flash is worn. Each retry takes the time of another read.",
    ),
    counter(
        "flash",
        "map_pages_read",
        "pages of the map that were read from flash, for reads and for writes",
        "The map does not fit into its memory. A random read then takes two reads of flash, and a write looks up the data that it replaces.",
    ),
    counter(
        "flash",
        "map_pages_written",
        "pages of the map that flushes programmed",
        "Each flush of new data costs `flush-steps` programs of the map at least, unless flushes share them. Reads wait for these programs too.",
    ),
    counter(
        "flash",
        "programs",
        "programs for any reason: the host, collection, folding, the map",
        "If they are many compared with `units_written`, see `units_collected`, `units_folded` and `units_padded`.",
    ),
    counter(
        "flash",
        "slc_programs",
        "of `programs`, those into the SLC cache",
        "If it equals `programs`, the cache took all data. If it is lower, writes bypassed the cache, or data was folded or moved.",
    ),
    counter(
        "flash",
        "erases",
        "blocks of the map that were erased",
        "Blocks are erased when collection has moved their data, and when all of it was overwritten, in sequence for example, or discarded. A real block is several of them (`erase-programs`): one erase in so many takes time.",
    ),
    counter(
        "flash",
        "suspends",
        "programs and erases that were suspended for a read",
        "Reads meet busy dies. The reads are fast, and the programs and erases end later.",
    ),
    counter(
        "flash",
        "buffer_stalls",
        "writes that found no room in the write buffer",
        "If nearly all writes did, the flash sets the rate, not the host.",
    ),
    counter(
        "flash",
        "reads_held",
        "reads that waited to begin behind a write that found no room in the write buffer",
        "A scheduler that holds writes back lets these reads begin earlier.",
    ),
    counter(
        "flash",
        "read_wait_ns",
        "waits of page reads for their die",
        "Divide it by the sum of `pages_read` and `map_pages_read` for the mean wait behind other reads, programs and erases.",
    ),
    counter(
        "platters",
        "seeks",
        "movements of the arm to another cylinder",
        "If there is nearly one for each command, the job is random for the disk.",
    ),
    counter(
        "platters",
        "seek_ns",
        "time of seeks and of switches of heads",
        "If it is most of the run, distances decide. A deeper queue or a smaller area helps.",
    ),
    counter(
        "platters",
        "rotation_ns",
        "rotational latency: waits on the track until the sector comes round",
        "If it is most of the run, the speed of rotation decides. A deeper queue helps.",
    ),
    counter(
        "platters",
        "transfer_ns",
        "time for which sectors of commands and of acknowledged writes passed the head",
        "If it is most of the run, the rate of the platters decides.",
    ),
    counter(
        "platters",
        "cached_reads",
        "reads that the cache answered",
        "If they are many, reading ahead works, or the job reads again what it wrote.",
    ),
    counter(
        "platters",
        "cached_writes",
        "writes that were acknowledged from the cache",
        "Such writes are faster than the platters, until the cache is full.",
    ),
    counter(
        "platters",
        "destages",
        "pieces that went from the cache to the platters",
        "If there are as many as `cached_writes`, no writes were joined.",
    ),
    counter(
        "platters",
        "overdue",
        "commands that went next because they had waited too long",
        "If they are many, the order by distance starves some commands. Tails are long, and the rate falls.",
    ),
    counter(
        "crosspoint",
        "units_read",
        "units that were read",
        "Divide `channel_wait_ns` by the sum of it and `units_written`.",
    ),
    counter(
        "crosspoint",
        "units_written",
        "units that were written",
        "Divide `channel_wait_ns` by the sum of it and `units_read`.",
    ),
    counter(
        "crosspoint",
        "channel_wait_ns",
        "waits of accesses for a channel, over all channels",
        "If the wait for each unit is longer than an access takes, the channels are the limit.",
    ),
    counter(
        "volume",
        "ios_counted",
        "I/Os as the provider counts them, by size",
        "If it exceeds the commands, large I/Os count as several.",
    ),
    counter(
        "volume",
        "iops_limit_wait_ns",
        "waits of commands for the IOPS limit",
        "If it is most of the time of the commands, this limit sets the rate. Longer I/Os carry more bytes.",
    ),
    counter(
        "volume",
        "bytes_limit_wait_ns",
        "waits of commands for the throughput limit",
        "If it is most of the time of the commands, this limit sets the rate.",
    ),
    counter(
        "volume",
        "io_credit_spent",
        "burst credit for I/Os that the run spent and did not earn again",
        "Credit pays for I/Os beyond the rate. A run that spends credit cannot last: a longer one is slower. `--set volume.iops.credit=1` begins without.",
    ),
    counter(
        "volume",
        "byte_credit_spent",
        "burst credit for bytes that the run spent and did not earn again",
        "As `io_credit_spent`, for the throughput limit.",
    ),
];
