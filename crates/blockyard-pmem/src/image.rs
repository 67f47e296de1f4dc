//! Files with a BTT: recognising, opening and creating them.

use crate::durability::Durability;
use crate::error::ImageError;
use crate::lines::Copying;
use crate::memory::ImageMemory;
use crate::new_files::NewFiles;
use crate::parts::{Headers, Parts};
use crate::pool::{HEADER_BYTES, POOL_BYTES, Pool, check_ring};
use crate::pool_set::{PoolPart, PoolSet};
use crate::unmapped::Unmapped;
use crate::unwritten;
use blockyard_btt::check::{self, Progress, Severity};
use blockyard_btt::find::{FindError, find};
use blockyard_btt::{Btt, Container, Format, Memory, OpenError, OpenOptions, Policy, Uuid};
use std::fs::{File, OpenOptions as FileOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Options for opening a file.
#[derive(Clone, Copy, Debug)]
pub struct ImageOptions {
    /// Nothing is written. Cut writes are not finished either.
    pub read_only: bool,
    /// The file is opened for reading, by system calls, even while another process writes it. What
    /// is read may then be of different times: a BTT that is looked at may seem damaged, and is not
    /// to be opened.
    pub unlocked: bool,
    /// How the file is accessed, and what the BTT survives.
    pub durability: Durability,
    /// A new image gets the space of all its bytes, so that no later write fails for the lack of
    /// it.
    pub allocated: bool,
    /// The permission bits of new files, whatever the umask of the process; `None` for those that
    /// the process gives to new files.
    pub mode: Option<u32>,
    /// How bytes of a mapping are copied.
    pub copying: Copying,
    /// The design of the BTT.
    pub policy: Policy,
    /// The container of the BTT; `None` detects it.
    pub container: Option<Container>,
}

impl Default for ImageOptions {
    /// Reading and writing by a mapping, any container, and lanes for as many threads as the system
    /// reports processors for this process.
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
            allocated: false,
            mode: None,
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
    /// The container of the BTT.
    pub container: Container,
}

/// An open file whose kind is known.
#[derive(Debug)]
pub struct Image {
    /// The bytes of the file.
    pub memory: ImageMemory,
    /// The container of the BTT.
    pub container: Container,
    /// The UUID of the container, if it has one.
    pub own_uuid: Option<Uuid>,
    /// The format of the missing BTT: libpmemblk created the pool, and nobody has written to it
    /// yet.
    pub unwritten: Option<Format>,
}

impl Image {
    /// Opens a file, or the parts of a pool set, and finds out its kind. The BTT in it is not
    /// opened.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or mapped, or has no BTT.
    pub fn identify(path: &Path, options: &ImageOptions) -> Result<Self, ImageError> {
        let writable = !options.read_only && !options.unlocked;
        // This opens the path to look for a set. A file that takes its place meanwhile is an image
        // or nothing: all that is used of it is read from the descriptor that gets the lock.
        let set = PoolSet::read(path)?.transpose()?;
        let parts = match &set {
            None => Parts::whole(open_file(writable, path)?)?,
            Some(set) => Parts::of_set(set, |part| open_file(writable, &part.path))?,
        };
        let headers = parts.headers()?;
        let memory = match options.unlocked {
            true => ImageMemory::Unmapped(Unmapped::unlocked(parts)?),
            false => ImageMemory::of_parts(parts, writable, options.durability, options.copying)?,
        };
        let pool = pool(&memory, &headers)?;
        if set.is_some() && pool.is_none() {
            return Err(ImageError::Pool("the parts of the set have no pool"));
        }
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

    /// Checks the image, and refuses it if it is broken. Damage that can be repaired with certainty
    /// is accepted, and so is a pool without a BTT. Calls `progress` from time to time.
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
        match report.findings().iter().find(|found| found.severity == Severity::Broken) {
            Some(&first) => Err(ImageError::Broken(first, report.count(Severity::Broken) - 1)),
            None => Ok(()),
        }
    }

    /// Opens the BTT with the design in `options`. A pool without a BTT is formatted first if it is
    /// opened for writing. Opened read-only, it is unchanged and reads as zeroes.
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

    /// Creates a file with an empty BTT, and allocates its space ([`ImageMemory::take_room`]). If
    /// this fails, no file is left.
    ///
    /// # Errors
    ///
    /// The file exists already, the space is not available, or such a BTT is impossible.
    pub fn create(
        path: &Path,
        new: &NewImage,
        options: &ImageOptions,
    ) -> Result<Btt<ImageMemory>, ImageError> {
        let format = format(new.container, new.sector_bytes, true)?;
        format.plan(new.bytes).map_err(OpenError::from)?; // before there is a file
        let mut made = NewFiles::new(options.mode);
        let parts = Parts::whole(made.make(path, new.bytes)?)?;
        let btt = Self::fill(parts, options, |_| Ok(format))?;
        made.keep()?;
        Ok(btt)
    }

    /// Writes an empty BTT into an existing file, of any size, and allocates its space. The first
    /// page of the file must be zero. If this fails, that page is still zero, so it can be tried
    /// again.
    ///
    /// If the file is a pool set, this is done to its parts, each of which must have a first page
    /// of zeroes. Missing parts are made, and if this fails, removed again.
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
        let mut made = NewFiles::new(options.mode);
        let parts = match PoolSet::read(path)?.transpose()? {
            None => FileOptions::new().read(true).write(true).open(path).and_then(Parts::whole)?,
            Some(_) if container != Container::Pool => {
                return Err(ImageError::Pool("a pool set has room for a pool only"));
            }
            Some(set) => Parts::of_set(&set, |part| part_file(part, &mut made))?,
        };
        let btt = Self::fill(parts, options, |memory| {
            let mut first = vec![0; HEADER_BYTES];
            format(container, sector_bytes, false)?.plan(memory.len()).map_err(OpenError::from)?;
            memory.read(0, &mut first).map_err(FindError::from)?;
            refuse_bytes(&first)?;
            Ok(format(container, sector_bytes, is_hole(memory))?)
        })?;
        made.keep()?;
        Ok(btt)
    }

    /// Writes an empty BTT with the format that `format` chooses, and then the headers of the pool,
    /// that of the first part last, so that there is no pool before it is complete.
    fn fill(
        parts: Parts,
        options: &ImageOptions,
        format: impl FnOnce(&ImageMemory) -> Result<Format, ImageError>,
    ) -> Result<Btt<ImageMemory>, ImageError> {
        let ImageOptions { durability, copying, policy, .. } = *options;
        if durability == Durability::Discarded {
            let words = "a new image cannot be discarded";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words).into());
        }
        let headers = parts.headers()?;
        let memory = ImageMemory::of_parts(parts, true, durability, copying)?;
        let format = format(&memory)?;
        for header in read_all(&headers)? {
            refuse_bytes(&header)?;
        }
        let arenas = format.plan(memory.len()).map_err(OpenError::from)?;
        if format.container == Container::Pool
            && arenas.iter().any(|(_, info)| info.layout.internal_nlba < 2 * info.layout.nfree)
        {
            return Err(ImageError::Pool("a pool has at least 512 blocks in each arena"));
        }
        match options.allocated {
            true => memory.take_all_room()?,
            false => memory.take_room(arenas.iter().map(|(start, info)| (*start, info.layout)))?,
        }
        let btt = Btt::create(memory, &format, policy)?;
        if format.container == Container::Pool {
            write_headers(btt.memory(), &headers, &format)?;
        }
        Ok(btt)
    }
}

fn open_file(writable: bool, path: &Path) -> io::Result<File> {
    FileOptions::new().read(true).write(writable).open(path)
}

/// Opens the file of a part, or makes one if there is none.
fn part_file(part: &PoolPart, made: &mut NewFiles) -> io::Result<File> {
    match part.bytes {
        Some(bytes) if !part.path.exists() => made.make(&part.path, bytes),
        _ => FileOptions::new().read(true).write(true).open(&part.path),
    }
}

/// Writes the headers of a new pool. If this fails, there are none.
fn write_headers(
    memory: &ImageMemory,
    headers: &Headers,
    format: &Format,
) -> Result<(), ImageError> {
    let Format { sector_bytes, parent_uuid: uuid, blank, .. } = *format;
    let Headers { files, single_header } = headers;
    let pool = Pool { uuid, sector_bytes, blank };
    let ids: Vec<Uuid> = (0..=files.len()).map(|_| random()).collect::<io::Result<_>>()?;
    write_parts(memory, files, |nth| pool.of_part(&ids, nth, *single_header, 0)).inspect_err(|_| {
        for file in files {
            let _ = file.write_all_at(&[0; HEADER_BYTES], 0);
        }
        let _ = memory.zero(0, POOL_BYTES as u64);
    })
}

/// Writes the headers of all parts, that of the first one last.
fn write_parts(
    memory: &ImageMemory,
    files: &[File],
    header: impl Fn(usize) -> Vec<u8>,
) -> Result<(), ImageError> {
    for (file, nth) in files.iter().zip(1..) {
        file.write_all_at(&header(nth)[..HEADER_BYTES], 0)?;
        file.sync_data()?;
    }
    let first = header(0);
    memory.write(0, &first).and_then(|()| memory.flush()).map_err(FindError::from)?;
    Ok(())
}

/// Reads the headers of parts after the first.
fn read_all(headers: &Headers) -> io::Result<Vec<Vec<u8>>> {
    headers
        .files
        .iter()
        .map(|file| {
            let mut bytes = vec![0; HEADER_BYTES];
            file.read_exact_at(&mut bytes, 0).map(|()| bytes)
        })
        .collect()
}

/// Refuses to overwrite what is not zero.
fn refuse_bytes(bytes: &[u8]) -> io::Result<()> {
    match bytes.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file is not empty")),
    }
}

/// Returns the format of a new BTT with random UUIDs.
fn format(container: Container, sector_bytes: u32, blank: bool) -> io::Result<Format> {
    let parent_uuid = if container == Container::Pool { random()? } else { Uuid::NIL };
    Ok(Format { container, sector_bytes, uuid: random()?, parent_uuid, blank })
}

/// Whether the whole memory is known to be a hole.
fn is_hole(memory: &ImageMemory) -> bool {
    let mut at = 0;
    while at < memory.len() {
        match memory.hole(at) {
            0 => return false,
            hole => at += hole,
        }
    }
    true
}

/// Returns the pool header of an image, if it has one, and checks it with those of the other parts.
fn pool(memory: &ImageMemory, headers: &Headers) -> Result<Option<Pool>, ImageError> {
    let mut bytes = vec![0; POOL_BYTES];
    if memory.len() < POOL_BYTES as u64 {
        return Ok(None);
    }
    memory.read(0, &mut bytes).map_err(FindError::from)?;
    let pool = Pool::parse(&bytes).transpose().map_err(ImageError::Pool)?;
    if pool.is_some() {
        let mut all = vec![bytes];
        all.extend(read_all(headers)?);
        check_ring(&all, headers.single_header).map_err(ImageError::Pool)?;
    }
    Ok(pool)
}

/// Returns the kind of namespace, by the position of its BTT. Without any BTT, returns the error of
/// the namespace without a label.
///
/// The namespace with a label is tried first. Its byte 4096 belongs to a sector, whose user could
/// write bytes there that look like an info block.
fn namespace(memory: &ImageMemory) -> Result<Container, ImageError> {
    match find_as(memory, Container::LabelledNamespace) {
        Ok(container) => Ok(container),
        Err(_) => Ok(find_as(memory, Container::Namespace)?),
    }
}

fn find_as(memory: &ImageMemory, container: Container) -> Result<Container, FindError> {
    find(memory, container, None).map(|_| container)
}

/// Returns a random UUID of version 4.
fn random() -> io::Result<Uuid> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Uuid(bytes))
}
