//! Files with a BTT: recognising, opening and creating them.

use crate::durability::Durability;
use crate::error::ImageError;
use crate::file::{hole, len, lock};
use crate::lines::Copying;
use crate::memory::ImageMemory;
use crate::pool::{POOL_BYTES, Pool};
use crate::unmapped::Unmapped;
use crate::unwritten;
use blockyard_btt::check::{self, Finding, Progress, Severity};
use blockyard_btt::find::{FindError, find};
use blockyard_btt::layout::Layout;
use blockyard_btt::{Btt, Container, Format, Memory, OpenError, OpenOptions, Policy, Uuid};
use std::fs::{File, OpenOptions as FileOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a file is opened.
#[derive(Clone, Copy, Debug)]
pub struct ImageOptions {
    /// Nothing is written. Cut writes are not finished either.
    pub read_only: bool,
    /// The file is opened for reading, by system calls, even while another process writes it. What is read may then be
    /// of different times: a BTT that is looked at may seem damaged, and is not to be opened.
    pub unlocked: bool,
    /// How the file is accessed, and what the BTT survives.
    pub durability: Durability,
    /// How bytes of a mapping are copied.
    pub copying: Copying,
    /// The design of the BTT.
    pub policy: Policy,
    /// What the BTT lies in, or `None` to find out.
    pub container: Option<Container>,
}

impl Default for ImageOptions {
    /// Reading and writing by a mapping, any container, and lanes for as many threads as the system reports
    /// processors for this process.
    fn default() -> Self {
        let policy = match std::thread::available_parallelism() {
            Ok(cpus) => Policy::for_threads(u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
            // The system does not report a number.
            Err(_) => Policy::DEFAULT,
        };
        Self {
            read_only: false,
            unlocked: false,
            durability: Durability::Process,
            copying: Copying::NonTemporal,
            policy,
            container: None,
        }
    }
}

/// The parameters of a new image.
#[derive(Clone, Copy, Debug)]
pub struct NewImage {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// What the BTT lies in.
    pub container: Container,
}

/// An open file whose kind is known.
#[derive(Debug)]
pub struct Image {
    /// The bytes of the file.
    pub memory: ImageMemory,
    /// What the BTT lies in.
    pub container: Container,
    /// The UUID of the container, if it has one.
    pub own_uuid: Option<Uuid>,
    /// The format of the missing BTT: libpmemblk created the pool, and nobody has written to it yet.
    pub unwritten: Option<Format>,
}

impl Image {
    /// Opens a file and finds out its kind. The BTT in it is not opened.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or mapped, or has no BTT.
    pub fn identify(path: &Path, options: &ImageOptions) -> Result<Self, ImageError> {
        let writable = !options.read_only && !options.unlocked;
        let file = FileOptions::new().read(true).write(writable).open(path)?;
        let pool = pool(&file)?;
        let memory = match options.unlocked {
            true => ImageMemory::Unmapped(Unmapped::unlocked(file)?),
            false => ImageMemory::new(file, writable, options.durability, options.copying)?,
        };
        let image = match (options.container, pool) {
            (None | Some(Container::Pool), Some(pool)) => {
                let unwritten = unwritten::plan(&memory, &pool, random()?)?;
                Self { memory, container: Container::Pool, own_uuid: Some(pool.uuid), unwritten }
            }
            (Some(container), _) => Self { memory, container, own_uuid: None, unwritten: None },
            (None, None) => {
                let container = namespace(&memory)?;
                Self { memory, container, own_uuid: None, unwritten: None }
            }
        };
        Ok(image)
    }

    /// Checks the image, and refuses it if it is broken. Damage that can be repaired with certainty is accepted, and so
    /// is a pool without a BTT. Calls `progress` from time to time.
    ///
    /// # Errors
    ///
    /// The image is broken ([`ImageError::Broken`]), or the medium failed.
    pub fn refuse_broken(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), ImageError> {
        if self.unwritten.is_some() {
            return Ok(());
        }
        let Self { container, own_uuid, .. } = *self;
        let options = check::Options { container, own_uuid, keep: 1 };
        let (report, _) =
            check::check(&self.memory, &options, progress).map_err(FindError::from)?;
        let worst = |found: &&Finding| found.severity == Severity::Broken;
        match report.findings().iter().find(worst) {
            Some(&first) => Err(ImageError::Broken(first, report.count(Severity::Broken) - 1)),
            None => Ok(()),
        }
    }

    /// Opens the BTT with the design in `options`. A pool without a BTT is formatted first if it is opened for
    /// writing. Opened read-only, it is unchanged and reads as zeroes.
    ///
    /// # Errors
    ///
    /// The BTT is damaged, and is then unchanged; or the space for it is not available
    /// ([`ImageMemory::take_room`]).
    pub fn open(mut self, options: &ImageOptions) -> Result<Btt<ImageMemory>, ImageError> {
        match &self.unwritten {
            None => {}
            Some(format) if options.read_only => {
                self.memory = unwritten::in_memory(self.memory.len(), format)?;
            }
            Some(format) => {
                let arenas = format.plan(self.memory.len()).map_err(OpenError::from)?;
                self.memory.take_room(arenas.iter().map(|(start, info)| (*start, info.layout)))?;
                format.write(&self.memory).map_err(OpenError::from)?;
            }
        }
        // Space is allocated only in a file that has a BTT.
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

    /// Creates a file with an empty BTT, and allocates its space ([`ImageMemory::take_room`]). If this fails, no
    /// file is left.
    ///
    /// # Errors
    ///
    /// The file exists already, the space is not available, or such a BTT is impossible.
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
            // The incomplete file is ours, because it was created just now.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    /// Writes an empty BTT into an existing file, of any size, and allocates its space. Its first page must be zero. If
    /// this fails, that page is still zero, so it can be tried again.
    ///
    /// # Errors
    ///
    /// The file is in use or not empty, the space is not available, or such a BTT is impossible.
    pub fn create_in(
        path: &Path,
        sector_bytes: u32,
        container: Container,
        options: &ImageOptions,
    ) -> Result<Btt<ImageMemory>, ImageError> {
        let file = FileOptions::new().read(true).write(true).open(path)?;
        lock(&file, true)?;
        let bytes = len(&file)?;
        let parent_uuid = if container == Container::Pool { random()? } else { Uuid::NIL };
        let blank = hole(&file, 0, bytes) == bytes;
        let uuid = random()?;
        let format = Format { container, sector_bytes, uuid, parent_uuid, blank };
        let plan = format.plan(bytes).map_err(OpenError::from)?;
        let mut first = [0; 4096];
        file.read_exact_at(&mut first, 0)?;
        if first.iter().any(|&byte| byte != 0) {
            return Err(
                io::Error::new(io::ErrorKind::AlreadyExists, "the file is not empty").into()
            );
        }
        let again = file.try_clone()?;
        let new = NewImage { bytes, sector_bytes, container };
        let arenas = plan.into_iter().map(|(start, info)| (start, info.layout));
        let made = Self::fill(file, &new, &format, arenas, options);
        if made.is_err() {
            again.write_all_at(&[0; 4096], 0)?;
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
        if len(&file)? != new.bytes {
            file.set_len(new.bytes)?;
        }
        if new.container == Container::Pool {
            let pool = Pool {
                uuid: format.parent_uuid,
                sector_bytes: new.sector_bytes,
                blank: format.blank,
            };
            file.write_all_at(&pool.to_bytes(random()?, 0), 0)?;
        }
        file.sync_all()?;
        let memory = ImageMemory::new(file, true, options.durability, options.copying)?;
        debug_assert_eq!(memory.len(), new.bytes, "the file has the requested size");
        memory.take_room(arenas)?;
        Ok(Btt::create(memory, format, options.policy)?)
    }
}

/// Returns the pool header of a file, if it has one.
fn pool(file: &File) -> Result<Option<Pool>, ImageError> {
    let mut bytes = vec![0; POOL_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Pool::parse(&bytes).transpose().map_err(ImageError::Pool),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the kind of namespace, by the position of its BTT. Without any BTT, returns the error of the namespace
/// without a label.
///
/// The namespace with a label is tried first. Its byte 4096 belongs to a sector, whose user could write bytes there that
/// look like an info block.
fn namespace(memory: &ImageMemory) -> Result<Container, ImageError> {
    let found = |container| find(memory, container, None).map(|_| container);
    match found(Container::LabelledNamespace) {
        Ok(container) => Ok(container),
        Err(_) => Ok(found(Container::Namespace)?),
    }
}

/// Returns a random UUID of version 4.
fn random() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}
