//! A block translation table (BTT) as a disk: its sectors stay whole, however the server ends. The device carries
//! out all requests of a turn together when the lane asks for finished ones, or when it has gathered enough of them.

mod device;
mod gathered;
mod reads;
#[cfg(test)]
mod tests;

pub(super) use device::BttDevice;

use super::damage::Damage;
use super::error::OpenError;
use blockyard_btt::{Btt, Container, Health, LaneChoice, Policy};
use blockyard_pmem::mapped::catch_bus_errors;
use blockyard_pmem::{Durability, Image, ImageError, ImageMemory, ImageOptions};
use gathered::Sharing;
use std::path::Path;
use std::sync::Arc;

/// A BTT, shared by all lanes.
#[derive(Debug)]
pub(crate) struct Table {
    btt: Arc<Btt<ImageMemory>>,
    /// The data of a sector, in bytes. The integrity metadata behind it, 8 to 128 bytes, is written as zeroes,
    /// as Linux does.
    pub(crate) data_bytes: u64,
    pub(crate) has_cache: bool,
    /// [`Btt::end`] when the table was opened, if it could be read.
    end: Option<[u8; 8]>,
    damage: Arc<Damage>,
    /// For [rest-of-sector-kept].
    sharing: Sharing,
}

/// How to open a BTT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) durability: Durability,
    pub(super) container: Option<Container>,
    pub(super) read_only: bool,
    /// Serve the BTT even if a check finds it broken.
    pub(super) force: bool,
    pub(super) lanes: usize,
}

impl Wanted {
    /// Returns a design with BTT lanes for each lane of the server, which is a thread.
    fn policy(&self) -> Policy {
        let threads = u32::try_from(self.lanes).expect("number of lanes within 32 bits");
        let lanes = match self.durability {
            Durability::Disk => LaneChoice::few_for_threads(threads),
            _ => LaneChoice::for_threads(threads),
        };
        Policy { lanes, ..Policy::DEFAULT }
    }
}

impl Table {
    /// Opens the BTT in the file at `path`. If it maps the file, the process catches bus errors from then on: if
    /// somebody truncates the file, the disk fails and not the server.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, holds no usable BTT, or has sectors of fewer than 512 bytes.
    pub(super) fn open(
        path: &Path,
        wanted: Wanted,
        damage: &Arc<Damage>,
    ) -> Result<Self, OpenError> {
        if matches!(wanted.durability, Durability::Process | Durability::Memory) {
            catch_bus_errors();
        }
        let name = path.display().to_string();
        let Wanted { durability, container, read_only, force, .. } = wanted;
        let policy = wanted.policy();
        let options =
            ImageOptions { read_only, durability, policy, container, ..ImageOptions::default() };
        let image = Image::identify(path, &options).map_err(|error| refused(&name, &error))?;
        if !force {
            image.refuse_broken(&mut |_| ()).map_err(|error| match error {
                ImageError::Broken(..) => {
                    OpenError::Btt(name.clone(), format!("{error}; --force serves it as it is"))
                }
                other => refused(&name, &other),
            })?;
        }
        let btt = image.open(&options).map_err(|error| refused(&name, &error))?;
        let data_bytes = match btt.sector_bytes() {
            0..512 => {
                let why = "its sectors have less than 512 bytes".to_owned();
                return Err(OpenError::Btt(name, why));
            }
            512..4096 => 512,
            _ => 4096,
        };
        let has_cache = matches!(durability, Durability::Process | Durability::Calls);
        let end = btt.end().ok();
        let btt = Arc::new(btt);
        let damage = Arc::clone(damage);
        Ok(Self { btt, data_bytes, has_cache, end, damage, sharing: Sharing::default() })
    }

    pub(super) fn health(&self) -> Health {
        self.btt.health()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.btt.sectors() * self.data_bytes
    }

    /// Returns whether the memory counts as persistent only because the configuration says so.
    pub(super) fn is_assumed_persistent(&self) -> bool {
        match self.btt.memory() {
            ImageMemory::Mapped(mapped) => {
                mapped.instructions().is_some() && !mapped.is_synchronous()
            }
            ImageMemory::Unmapped(_) => false,
        }
    }
}

fn refused(name: &str, error: &ImageError) -> OpenError {
    OpenError::Btt(name.to_owned(), error.to_string())
}
