//! Defaults of the table `[queue]` of a design: those of one kernel, Linux 7.3.
//!
//! A design that follows another kernel states what differs. The tunables of elevators have the
//! defaults of [`DeadlineTunables`](blockyard::policy::DeadlineTunables) and
//! [`KyberTunables`](blockyard::policy::KyberTunables), of the same kernel.

use super::worker::WorkerTurn;

/// Sectors of the largest request where the hardware allows more: `BLK_DEF_MAX_SECTORS_CAP`, 4 MiB.
/// In Linux 4.3 to 6.16 it was 1280 KiB.
pub(super) const MAX_REQUEST_SECTORS: u32 = 8192;

/// Whether a thread that submits to an MMC host sleeps in its driver: since Linux 6.6.
pub(super) const SUBMITTER_SLEEPS: bool = true;

/// Whether the cache of an SD card is turned on: since Linux 5.14.
pub(super) const SD_CACHE: bool = true;

/// When a worker gets the processor of a thread that runs: by its lag, since Linux 6.6.
pub(super) const WORKER: WorkerTurn = WorkerTurn::ByLag;

/// Whether a synchronous call of a durable direct write ends with a flush: up to Linux 7.3.
pub(super) const FLUSHES_AFTER_SYNC_WRITES: bool = true;

/// Whether a call may be uncached, on ext4, XFS and raw disks: since Linux 7.3.
pub(super) const TAKES_UNCACHED: bool = true;

/// Whether a disk that has written back little has an eighth of what is left of the background
/// limit: since Linux 6.13.
pub(super) const RAISES_BACKGROUND_PART: bool = true;

/// Whether a request longer than the read-ahead window widens it: since Linux 4.10.
pub(super) const REQUEST_WIDENS: bool = true;

/// Whether windows of read-ahead end aligned to their size: since Linux 6.17.
pub(super) const ALIGNED: bool = true;

/// Whether a rotational disk reads ahead twice its largest request: since Linux 6.17.
pub(super) const ROTATIONAL_TWICE: bool = true;

/// Whether writeback is throttled: since Linux 4.10, if configured (`CONFIG_BLK_WBT_MQ`), as
/// Debian's kernels are.
pub(super) const THROTTLES_WRITEBACK: bool = true;

/// Requests that a run removes from an elevator under one acquisition of its lock.
pub(super) const LOCK_BATCH: u32 = 1;
