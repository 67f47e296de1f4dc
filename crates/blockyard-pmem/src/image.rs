//! Files that hold a BTT: which container they are, and how one is made.

use crate::durability::Durability;
use crate::error::ImageError;
use crate::lines::Copying;
use crate::memory::ImageMemory;
use crate::pool::{POOL_BYTES, Pool};
use crate::unlaid;
use blockyard_btt::find::find;
use blockyard_btt::layout::Layout;
use blockyard_btt::{Btt, Container, Format, Memory, OpenError, OpenOptions, Policy, Uuid};
use std::fs::{File, OpenOptions as FileOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a file is opened.
#[derive(Clone, Copy, Debug)]
pub struct ImageOptions {
    /// Nothing is written: not even writes that were cut are finished.
    pub read_only: bool,
    /// How it is reached, and what the BTT survives.
    pub durability: Durability,
    /// How bytes of a mapping are copied.
    pub copying: Copying,
    /// Its design.
    pub policy: Policy,
    /// What it lies in, if that is not to be found out.
    pub container: Option<Container>,
}

impl Default for ImageOptions {
    /// For reading and writing by a mapping, whatever it lies in, with lanes for as many threads as the process has
    /// processors: the system is asked how many.
    fn default() -> Self {
        let policy = match std::thread::available_parallelism() {
            Ok(cpus) => Policy::for_threads(u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
            // A system that does not tell.
            Err(_) => Policy::DEFAULT,
        };
        Self {
            read_only: false,
            durability: Durability::Process,
            copying: Copying::NonTemporal,
            policy,
            container: None,
        }
    }
}

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewImage {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// What it lies in.
    pub container: Container,
}

/// An open file, and what it is.
#[derive(Debug)]
pub struct Image {
    /// Its bytes.
    pub memory: ImageMemory,
    /// What the BTT in it lies in.
    pub container: Container,
    /// The UUID of that, where it has one.
    pub own_uuid: Option<Uuid>,
    /// There is no BTT in it yet: a pool that libpmemblk made and nobody wrote, which is to be laid out so.
    pub unlaid: Option<Format>,
}

impl Image {
    /// Opens a file and finds out what it is. The BTT in it is not opened.
    ///
    /// # Errors
    ///
    /// It cannot be opened or mapped, or there is no BTT in it.
    pub fn identify(path: &Path, options: &ImageOptions) -> Result<Self, ImageError> {
        let writable = !options.read_only;
        let file = FileOptions::new().read(true).write(writable).open(path)?;
        let pool = pool(&file)?;
        let memory = ImageMemory::new(file, writable, options.durability, options.copying)?;
        let image = match (options.container, pool) {
            (None | Some(Container::Pool), Some(pool)) => {
                let unlaid = unlaid::plan(&memory, &pool, random()?)?;
                Self { memory, container: Container::Pool, own_uuid: Some(pool.uuid), unlaid }
            }
            (Some(container), _) => Self { memory, container, own_uuid: None, unlaid: None },
            (None, None) => {
                let container = namespace(&memory)?;
                Self { memory, container, own_uuid: None, unlaid: None }
            }
        };
        Ok(image)
    }

    /// Opens the BTT in it, by the design of `options`. A pool that was never laid out is, for writing; to be read
    /// it stays as it is, and reads as zeroes.
    ///
    /// # Errors
    ///
    /// It is damaged, and nothing was written then; or there is no room for what is written
    /// ([`ImageMemory::take_room`]).
    pub fn open(mut self, options: &ImageOptions) -> Result<Btt<ImageMemory>, ImageError> {
        match &self.unlaid {
            None => {}
            Some(format) if options.read_only => {
                self.memory = unlaid::in_memory(self.memory.len(), format)?;
            }
            Some(format) => {
                let arenas = format.plan(self.memory.len()).map_err(OpenError::from)?;
                self.memory.take_room(arenas.iter().map(|(start, info)| (*start, info.layout)))?;
                format.write(&self.memory).map_err(OpenError::from)?;
            }
        }
        // Not before it is known that there is one.
        let arenas = find(&self.memory, self.container, self.own_uuid)?;
        if !options.read_only {
            self.memory.take_room(arenas.iter().map(|found| (found.start, found.info.layout)))?;
        }
        let options = OpenOptions {
            container: self.container,
            own_uuid: self.own_uuid,
            read_only: options.read_only,
            policy: options.policy,
        };
        Ok(Btt::open(self.memory, &options)?)
    }

    /// Makes a file with an empty BTT, which it takes the room for ([`ImageMemory::take_room`]). There must be no
    /// such file yet; if it fails there is none after.
    ///
    /// # Errors
    ///
    /// There is one, there is no room, or there can be no such BTT.
    pub fn create(
        path: &Path,
        new: &NewImage,
        options: &ImageOptions,
    ) -> Result<Btt<ImageMemory>, ImageError> {
        let parent_uuid = if new.container == Container::Pool { random()? } else { Uuid::NIL };
        let format = Format {
            container: new.container,
            sector_bytes: new.sector_bytes,
            uuid: random()?,
            parent_uuid,
            blank: true,
        };
        let plan = format.plan(new.bytes).map_err(OpenError::from)?;
        let file = FileOptions::new().read(true).write(true).create_new(true).open(path)?;
        let arenas = plan.into_iter().map(|(start, info)| (start, info.layout));
        let made = Self::fill(file, new, &format, arenas, options);
        if made.is_err() {
            // What is left of it is ours.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    fn fill(
        file: File,
        new: &NewImage,
        format: &Format,
        arenas: impl Iterator<Item = (u64, Layout)>,
        options: &ImageOptions,
    ) -> Result<Btt<ImageMemory>, ImageError> {
        file.set_len(new.bytes)?;
        if new.container == Container::Pool {
            let pool =
                Pool { uuid: format.parent_uuid, sector_bytes: new.sector_bytes, blank: true };
            file.write_all_at(&pool.to_bytes(random()?, 0), 0)?;
        }
        file.sync_all()?;
        let memory = ImageMemory::new(file, true, options.durability, options.copying)?;
        memory.take_room(arenas)?;
        Ok(Btt::create(memory, format, options.policy)?)
    }
}

/// What a file says of itself as a pool, if it is one.
fn pool(file: &File) -> Result<Option<Pool>, ImageError> {
    let mut bytes = vec![0; POOL_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Pool::parse(&bytes).transpose().map_err(ImageError::Pool),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Which kind of namespace this is, by where a BTT is found; what the one without label says if none is.
///
/// The one with a label first: what lies at byte 4096 of that is data of its sectors, and whoever writes
/// these could make it look like an info block.
fn namespace(memory: &ImageMemory) -> Result<Container, ImageError> {
    let found = |container| find(memory, container, None).map(|_| container);
    match found(Container::LabelledNamespace) {
        Ok(container) => Ok(container),
        Err(_) => Ok(found(Container::Namespace)?),
    }
}

/// A random UUID, version 4.
fn random() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}
