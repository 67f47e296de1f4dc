//! Commands that add, remove and resize exports.
//!
//! # Rules (cited by name)
//!
//! - **[change-is-whole]** Clients see an added export when every lane serves its disk. A removed export disappears before
//!   its clients end, and its file is closed when the answer comes. If a command fails, the exports are as before.

use super::answer::Changed;
use super::{Control, silent_lane};
use crate::disk::{Disk, DiskConfig, Memory, Source};
use crate::door::nbd;
use crate::entrance::{Message, ask, ask_for};
use crate::roster::{Listed, Numbers};
use crate::words::error_words;
use core::fmt;
use serde_json::{Map, Value};
use std::fs::OpenOptions;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The time in which a lane flushes a disk that it gives up, in addition to its patience with clients.
const LAST_FLUSH: Duration = Duration::from_secs(60);

/// A function that turns the disk of a [`Request::Add`](super::Request::Add) into its configuration. An error says in words
/// what is wrong.
#[derive(Clone)]
pub struct DiskReader(Arc<ReadDisk>);

type ReadDisk = dyn Fn(&Map<String, Value>) -> Result<DiskConfig, String> + Send + Sync;

impl DiskReader {
    /// Returns a reader that calls `read`.
    pub fn new(
        read: impl Fn(&Map<String, Value>) -> Result<DiskConfig, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for DiskReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskReader")
    }
}

impl Control {
    /// Adds the export of `disk`.
    pub(super) fn add(&self, disk: &Map<String, Value>) -> Result<Changed, String> {
        let Some(DiskReader(read)) = &self.read_disk else {
            return Err("this server adds no exports".to_owned());
        };
        let config = read(disk)?;
        let changed = config.name.clone();
        self.put(config, None, &mut self.roster.change())?;
        Ok(Changed { changed })
    }

    /// Removes the export called `name`, after the end of its clients, if there are any and `force` allows that.
    pub(super) fn remove(&self, name: &str, force: bool) -> Result<Changed, String> {
        let mut numbers = self.roster.change();
        let listed = self.find(name)?;
        self.withdraw(&listed, force)?;
        let ended = self.give_up(&listed, &mut numbers);
        ended.map_err(|error| format!("export {name:?} was removed, but {error}"))?;
        Ok(Changed { changed: name.to_owned() })
    }

    /// Gives the export called `name` another size, after the end of its clients, if there are any and `force` allows
    /// that.
    pub(super) fn resize(&self, name: &str, bytes: u64, force: bool) -> Result<Changed, String> {
        let mut numbers = self.roster.change();
        let listed = self.find(name)?;
        let config = resized(&listed, bytes)?;
        self.withdraw(&listed, force)?;
        // Writes that a failed flush has lost must not be forgotten, so the export does not come back.
        let ended = self.give_up(&listed, &mut numbers);
        ended.map_err(|error| format!("export {name:?} was removed: {error}"))?;
        let Listed { disk, config: old, .. } = listed;
        // The contents of memory are copied. A file must be closed before it can be opened again.
        let memory = disk.memory();
        drop(disk);
        let mut reopen = |config| self.put(config, memory.as_deref(), &mut numbers);
        let resized = truncate(&config.source, bytes).and_then(|()| reopen(config));
        resized.map_err(|why| match reopen((*old).clone()) {
            Ok(()) => why,
            Err(other) => format!("export {name:?} was removed: {why}, and then {other}"),
        })?;
        Ok(Changed { changed: name.to_owned() })
    }

    pub(super) fn find(&self, name: &str) -> Result<Listed, String> {
        self.roster.find(name).ok_or_else(|| format!("there is no export {name:?}"))
    }

    /// Opens a disk, with the contents of `memory`, hands it to the lanes, and then lists it ([change-is-whole]).
    fn put(
        &self,
        config: DiskConfig,
        memory: Option<&Memory>,
        numbers: &mut Numbers,
    ) -> Result<(), String> {
        let listed = self.open(config, numbers.free())?;
        if let Some(memory) = memory {
            listed.disk.take_over(memory);
        }
        numbers.take(listed.number);
        let add = |answer| Message::Add(listed.number, Arc::clone(&listed.disk), answer);
        ask(&self.entrances, add).map_err(silent_lane)?;
        self.roster.put(listed);
        Ok(())
    }

    /// Opens a disk, and checks that its export goes with the others.
    fn open(&self, config: DiskConfig, number: usize) -> Result<Listed, String> {
        if self.roster.find(&config.name).is_some() {
            return Err(format!("there is already an export {:?}", config.name));
        }
        let disk = Disk::open(&config, &self.bells, self.events.as_ref());
        let disk = disk.map_err(|error| error.to_string())?;
        let listed = Listed { number, disk: Arc::new(disk), config: Arc::new(config) };
        let all = self.roster.all();
        let all: Vec<_> = all.iter().chain([&listed]).cloned().collect();
        nbd::exports(&all).map_err(|error| error.to_string())?;
        Ok(listed)
    }

    /// Takes an export off the list, unless it has clients and there is no `force`.
    fn withdraw(&self, listed: &Listed, force: bool) -> Result<(), String> {
        self.roster.remove(listed.number);
        // No lane lets a client in from now on.
        let clients = self.clients_of(listed);
        let refusal = match clients {
            Ok(0) => return Ok(()),
            Ok(_) if force => return Ok(()),
            Ok(clients) => format!("export {:?} has {clients} clients", listed.disk.name),
            Err(why) => why,
        };
        self.roster.put(listed.clone());
        Err(refusal)
    }

    /// Returns the number of clients of a disk that is not listed any more, with those on their way from one lane to another.
    fn clients_of(&self, listed: &Listed) -> Result<usize, String> {
        self.overviews()?; // A lane that has answered has seen the new list.
        Ok(listed.disk.clients())
    }

    /// Has the lanes end the clients of a disk, flush it, and forget it and its number.
    fn give_up(&self, listed: &Listed, numbers: &mut Numbers) -> Result<(), GivingUp> {
        let remove = |answer| Message::Remove(listed.number, answer);
        let ended = ask_for(self.patience + LAST_FLUSH, &self.entrances, remove);
        let ended = ended.map_err(GivingUp::Silent)?;
        numbers.give_back(listed.number);
        ended.into_iter().collect::<io::Result<()>>().map_err(GivingUp::Flush)
    }
}

/// The reason why a disk was not given up in good order.
enum GivingUp {
    /// This lane has ended, or has not given up the disk in time.
    Silent(usize),
    /// The last flush failed.
    Flush(io::Error),
}

impl fmt::Display for GivingUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(lane) => write!(f, "lane {lane} did not let go of it in time"),
            Self::Flush(error) => error.fmt(f),
        }
    }
}

/// Returns the configuration of a disk with another size.
fn resized(listed: &Listed, bytes: u64) -> Result<DiskConfig, String> {
    let kind = listed.disk.kind();
    let source = match (&listed.config.source, kind) {
        (Source::Memory { huge_pages, .. }, _) => Source::Memory { bytes, huge_pages: *huge_pages },
        (Source::Null { .. }, _) => Source::Null { bytes },
        (source @ Source::File { .. }, "file") if !listed.disk.read_only => source.clone(),
        (Source::File { .. }, "file") => return Err("a read-only file keeps its size".to_owned()),
        _ => return Err(format!("a disk of kind {kind} keeps its size")),
    };
    if bytes == 0 {
        return Err("a disk has at least one byte".to_owned());
    }
    Ok(DiskConfig { source, ..(*listed.config).clone() })
}

/// Gives the file of a disk, if it has one, a length in bytes.
fn truncate(source: &Source, bytes: u64) -> Result<(), String> {
    let Source::File { path, .. } = source else { return Ok(()) };
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.set_len(bytes))
        .map_err(|error| format!("{}: {}", path.display(), error_words(&error)))
}
