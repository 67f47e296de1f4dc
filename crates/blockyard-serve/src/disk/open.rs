//! Opens the memory, file or BTT that holds the data of a disk.

use super::btt::{Table, Wanted};
use super::error::OpenError;
use super::live::Timing;
use super::{Damage, Disk, DiskConfig, FaultCounts, Gate, Kept, NULL_READ_BYTES_MAX, Source};
use crate::observation::event::Event;
use blockyard::policy::{BfqTunables, ElevatorKind, Policies, SchedDepth};
use blockyard_std::OpenError as StoreError;
use blockyard_std::parts::depth::{DEPTH_BYTES_MAX, Depth, SHARING_LANES_MAX};
use blockyard_std::parts::device::How;
use blockyard_std::parts::device::file::File;
use blockyard_std::parts::device::limited::SharedDepth;
use blockyard_std::parts::device::memory::Memory;
use blockyard_std::parts::job::SECTOR;
use blockyard_std::parts::map::Map;
use blockyard_std::parts::shape::check_policies;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

impl Disk {
    /// Opens the disk of `config` for the lanes with these bells. Damage is reported to `events`.
    ///
    /// # Errors
    ///
    /// Any [`OpenError`].
    pub(crate) fn open(
        config: &DiskConfig,
        bells: &[Arc<OwnedFd>],
        events: Option<&mpsc::SyncSender<Event>>,
    ) -> Result<Self, OpenError> {
        check_policies(&config.policies, None)?;
        let lanes = bells.len();
        if depth_of(config) == 0 {
            return Err(OpenError::Depth);
        }
        if u32::try_from(lanes).map_or(true, |lanes| lanes > SHARING_LANES_MAX) {
            return Err(OpenError::Lanes(lanes));
        }
        let mut is_written_elsewhere = false;
        let damage = Arc::new(Damage::new(&config.name, events));
        let (size_bytes, kept) = match &config.source {
            Source::Memory { bytes, huge_pages } => (*bytes, open_memory(*bytes, *huge_pages)?),
            Source::Null { bytes } => (*bytes, open_null(*bytes)?),
            Source::Btt { path, durability, container, force } => {
                let wanted = Wanted {
                    durability: *durability,
                    container: *container,
                    read_only: config.read_only,
                    force: *force,
                    lanes,
                };
                let table = Table::open(path, wanted, &damage)?;
                (table.size_bytes(), Kept::Btt(Arc::new(table)))
            }
            Source::File { path, buffered } => {
                let how = How {
                    read_only: config.read_only,
                    buffered: *buffered,
                    bells,
                    claim: |file, writable| blockyard_pmem::claim(file, writable),
                    damaged: Arc::<Damage>::clone(&damage),
                };
                let file = File::open(path, how)?;
                // Locks of this file are not among those that this asks for.
                is_written_elsewhere = config.read_only && blockyard_pmem::is_written(&file.fd);
                (file.size_bytes, Kept::File(Arc::new(file), shared_depth(config, bells)))
            }
        };
        Self::assemble(kept, size_bytes, config, lanes, damage, is_written_elsewhere)
    }

    /// Returns a disk of `bytes` that can take the place of this one, with the layers of `config`.
    /// The data stays where it is until [`take_over`](Self::take_over): a disk in memory gets new
    /// memory, and a file the same descriptor, with its locks ([path-opened-once]). What is known
    /// of its damage stays, such as a failed flush.
    ///
    /// # Errors
    ///
    /// Any [`OpenError`] but those of a file or a depth.
    ///
    /// # Panics
    ///
    /// Panics if the disk is a BTT.
    pub(crate) fn resized(
        &self,
        bytes: u64,
        config: &DiskConfig,
        bells: &[Arc<OwnedFd>],
    ) -> Result<Self, OpenError> {
        let damage = Arc::clone(&self.damage);
        let kept = match (&self.kept, &config.source) {
            (Kept::Memory(own), _) if bytes == self.size_bytes => Kept::Memory(Arc::clone(own)),
            (Kept::Memory(_), Source::Memory { huge_pages, .. }) => {
                open_memory(bytes, *huge_pages)?
            }
            (Kept::Null(_), _) => open_null(bytes)?,
            (Kept::File(file, _), _) => {
                let file = file.resized(bytes, bells, Arc::<Damage>::clone(&damage));
                Kept::File(Arc::new(file), shared_depth(config, bells))
            }
            (Kept::Memory(_) | Kept::Btt(_), _) => unreachable!("a disk that can be resized"),
        };
        Self::assemble(kept, bytes, config, bells.len(), damage, self.is_written_elsewhere)
    }

    /// Returns the disk of `config` that keeps its data in `kept`, after the checks that depend on
    /// its size.
    fn assemble(
        kept: Kept,
        size_bytes: u64,
        config: &DiskConfig,
        lanes: usize,
        damage: Arc<Damage>,
        is_written_elsewhere: bool,
    ) -> Result<Self, OpenError> {
        if let Some(model) = &config.layers.model {
            let most = model.limits().capacity_sectors.saturating_mul(SECTOR);
            if size_bytes > most {
                return Err(OpenError::TooLarge { bytes: size_bytes, most });
            }
        }
        let disk = Self {
            name: config.name.clone(),
            size_bytes,
            read_only: config.read_only,
            policies: policies_of(config),
            depth: depth_of(config),
            one_of: needs_one_lane(config, lanes).then_some(lanes),
            layers: config.layers.clone(),
            timing: Arc::new(Timing::default()),
            faults: Arc::new(FaultCounts::new(config.layers.faults.as_deref().unwrap_or_default())),
            damage,
            is_written_elsewhere,
            admission: config.admission.clone(),
            weights: config.weights.clone(),
            gate: Gate::new(config.admission.clients_max),
            kept,
        };
        if let (false, Some(why)) = (disk.weights.is_empty(), disk.has_no_weights()) {
            return Err(OpenError::Weight { why, disk: disk.name });
        }
        match disk.impossible_fault(disk.layers.faults.as_deref().unwrap_or_default()) {
            None => Ok(disk),
            Some((rule, why)) => {
                Err(OpenError::Fault { rule: rule.to_owned(), why, disk: disk.name.clone() })
            }
        }
    }

    /// Returns whether the file of the disk, if it has one, is shorter than the disk.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(&self.kept, Kept::File(file, _) if file.end_bytes() < file.size_bytes)
    }

    /// Makes the file of the disk, if it has one, longer if it is shorter than the disk.
    ///
    /// # Errors
    ///
    /// The file system refuses it, and the file is as before.
    pub(crate) fn grow(&self) -> io::Result<()> {
        match &self.kept {
            Kept::File(file, _) if self.is_cut_short() => file.set_len(file.size_bytes),
            _ => Ok(()),
        }
    }

    /// Takes over the data of `other`, in whose place this disk [comes](Self::resized) and which no
    /// lane uses any more: a disk in memory copies it, and a file gets the length of this disk.
    ///
    /// # Errors
    ///
    /// The file system refuses the length or the I/O of this disk. The data is as before, and
    /// `other` can [take over](Self::take_over) in turn.
    pub(crate) fn take_over(&self, other: &Self) -> io::Result<()> {
        match (&self.kept, &other.kept) {
            (Kept::Memory(own), Kept::Memory(old)) if !Arc::ptr_eq(own, old) => own.take_over(old),
            (Kept::File(file, _), _) => {
                file.set_direct()?;
                file.set_len(file.size_bytes)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the maximum number of requests in flight, over all lanes.
fn depth_of(config: &DiskConfig) -> u16 {
    let modelled = config.layers.model.as_ref().map_or(u16::MAX, |model| model.depth());
    config.depth.min(modelled)
}

/// Returns the depth that the lanes with these bells share.
fn shared_depth(config: &DiskConfig, bells: &[Arc<OwnedFd>]) -> Arc<SharedDepth> {
    // A model limits the depth itself, in requests.
    let is_modelled = config.layers.model.is_some();
    let bytes = if is_modelled { DEPTH_BYTES_MAX } else { config.depth_bytes };
    let sharing = if needs_one_lane(config, bells.len()) { 1 } else { bells.len() };
    let lanes = u32::try_from(sharing).expect("number of lanes that was checked");
    let depth = Depth::new(u64::from(depth_of(config)), bytes, lanes);
    Arc::new(SharedDepth { depth, bells: bells.to_vec() })
}

fn open_memory(bytes: u64, huge_pages: bool) -> Result<Kept, StoreError> {
    if bytes == 0 {
        return Err(StoreError::Empty("memory".to_owned()));
    }
    let memory =
        Memory::new(bytes, huge_pages).map_err(|error| StoreError::Memory(bytes, error))?;
    Ok(Kept::Memory(Arc::new(memory)))
}

fn open_null(bytes: u64) -> Result<Kept, StoreError> {
    if bytes == 0 {
        return Err(StoreError::Empty("null".to_owned()));
    }
    let zeroes = Map::new(NULL_READ_BYTES_MAX).map_err(|error| StoreError::Memory(bytes, error))?;
    Ok(Kept::Null(Arc::new(zeroes)))
}

/// The requests that BFQ may hold, unless the design says otherwise: 256 of each of four clients,
/// the most that a client may have in flight. Requests beyond them wait in the order in which they
/// came, where no weight counts.
const SHARED_SCHED_DEPTH: u32 = 1024;

/// Returns the design of a disk. BFQ shares the disk only among the clients whose requests it
/// holds: with a depth of 1 it would hold two requests, in turns one of each client. It merges no
/// queues: clients that come within 180 ms of each other would have one share together. It raises
/// no weights: a client that has just come would have 30 times the share of the others.
fn policies_of(config: &DiskConfig) -> Policies {
    let policies = config.policies;
    let ElevatorKind::Bfq(bfq) = policies.elevator else { return policies };
    let sched_depth = match policies.sched_depth {
        SchedDepth::FromDeviceDepth => SchedDepth::Fixed(SHARED_SCHED_DEPTH),
        depth @ SchedDepth::Fixed(_) => depth,
    };
    let equal = BfqTunables { merges_queues: false, low_latency: false, ..bfq };
    let elevator = ElevatorKind::Bfq(equal);
    Policies { elevator, sched_depth, ..policies }
}

/// Returns whether one lane must serve a disk: its layers keep counts of their own, its scheduler
/// orders only the requests that it sees, or its depth is too little to share. Memory and BTTs end
/// each request before the next begins, so there a scheduler has nothing to order, and a depth no
/// effect.
fn needs_one_lane(config: &DiskConfig, lanes: usize) -> bool {
    let is_scheduled = config.policies.elevator != ElevatorKind::None;
    let holds_requests = matches!(config.source, Source::File { .. });
    let is_shallow = usize::from(depth_of(config)) < lanes;
    !config.layers.is_empty() || (holds_requests && (is_scheduled || is_shallow))
}
