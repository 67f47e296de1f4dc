//! Opens the memory, file or BTT that holds the data of a disk.

use super::btt::{Table, Wanted};
use super::error::OpenError;
use super::live::Timing;
use super::{Damage, Disk, DiskConfig, FaultCounts, Kept, NULL_READ_BYTES_MAX, Source};
use crate::event::Event;
use crate::job::SECTOR;
use crate::map::Map;
use blockyard::policy::ElevatorKind;
use blockyard_std::OpenError as StoreError;
use blockyard_std::parts::depth::{DEPTH_BYTES_MAX, Depth, SHARING_LANES_MAX};
use blockyard_std::parts::device::How;
use blockyard_std::parts::device::file::File;
use blockyard_std::parts::device::limited::SharedDepth;
use blockyard_std::parts::device::memory::Memory;
use blockyard_std::parts::shape::check_policies;
use core::sync::atomic::AtomicUsize;
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
        let modelled = config.layers.model.as_ref().map_or(u16::MAX, |model| model.depth());
        let depth = config.depth.min(modelled);
        if depth == 0 {
            return Err(OpenError::Depth);
        }
        let count = u32::try_from(lanes).ok().filter(|lanes| *lanes <= SHARING_LANES_MAX);
        let count = count.ok_or(OpenError::Lanes(lanes))?;
        let needs_one_lane = needs_one_lane(config, depth, lanes);
        let mut is_written_elsewhere = false;
        let damage = Arc::new(Damage::new(&config.name, events));
        let (size_bytes, kept) = match &config.source {
            Source::Memory { bytes: 0, .. } => {
                return Err(StoreError::Empty("memory".to_owned()).into());
            }
            Source::Null { bytes: 0 } => return Err(StoreError::Empty("null".to_owned()).into()),
            Source::Memory { bytes, huge_pages } => {
                let memory = Memory::new(*bytes, *huge_pages)
                    .map_err(|error| StoreError::Memory(*bytes, error))?;
                (*bytes, Kept::Memory(Arc::new(memory)))
            }
            Source::Null { bytes } => {
                let zeroes = Map::new(NULL_READ_BYTES_MAX)
                    .map_err(|error| StoreError::Memory(*bytes, error))?;
                (*bytes, Kept::Null(Arc::new(zeroes)))
            }
            Source::Btt { path, durability, container, force } => {
                let (durability, container, force) = (*durability, *container, *force);
                let read_only = config.read_only;
                let wanted = Wanted { durability, container, read_only, force, lanes };
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
                // A model limits the depth itself, in requests.
                let is_modelled = config.layers.model.is_some();
                let bytes = if is_modelled { DEPTH_BYTES_MAX } else { config.depth_bytes };
                let sharing = if needs_one_lane { 1 } else { count };
                let depth = Depth::new(u64::from(depth), bytes, sharing);
                let shared = SharedDepth { depth, bells: bells.to_vec() };
                (file.size_bytes, Kept::File(Arc::new(file), Arc::new(shared)))
            }
        };
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
            policies: config.policies,
            depth,
            one_of: needs_one_lane.then_some(lanes),
            layers: config.layers.clone(),
            timing: Arc::new(Timing::default()),
            faults: Arc::new(FaultCounts::new(config.layers.faults.as_deref().unwrap_or_default())),
            damage,
            is_written_elsewhere,
            admission: config.admission.clone(),
            clients: AtomicUsize::new(0),
            kept,
        };
        match disk.impossible_fault(disk.layers.faults.as_deref().unwrap_or_default()) {
            None => Ok(disk),
            Some((rule, why)) => {
                Err(OpenError::Fault { rule: rule.to_owned(), why, disk: disk.name.clone() })
            }
        }
    }
}

/// Returns whether one lane must serve a disk: its layers keep counts of their own, its scheduler orders only the requests that it sees, or
/// its depth is too little to share. Memory and BTTs end each request before the next begins, so there a scheduler has nothing to
/// order, and a depth no effect.
fn needs_one_lane(config: &DiskConfig, depth: u16, lanes: usize) -> bool {
    let is_scheduled = config.policies.elevator != ElevatorKind::None;
    let holds_requests = matches!(config.source, Source::File { .. });
    !config.layers.is_empty() || (holds_requests && (is_scheduled || usize::from(depth) < lanes))
}
