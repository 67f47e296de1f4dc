//! Commands that add, remove and resize exports.
//!
//! # Rules (cited by name)
//!
//! - **[change-is-whole]** Clients see an added export when every lane serves its disk. A removed export disappears before
//!   its clients end, and its file is closed when the answer comes. An export that is resized stays in the list; who chooses
//!   it meanwhile waits for its new size ([gate-decides-once]). A refused command changes nothing: no file, no export and no
//!   session. Everything that can be refused is therefore tried before clients end: the new disk is made, checked with the
//!   other exports, and its file made longer. What fails later, such as the last flush, ends sessions, but leaves the size,
//!   the data and the export.
//!
//! A lane that does not answer in time may still have the disk. Then the export is gone, and its number is not used again.

use super::answer::Changed;
use super::{Control, silent_lane};
use crate::clients::descriptors;
use crate::disk::roster::Listed;
use crate::disk::{Disk, DiskConfig, Source};
use crate::door::nbd;
use crate::lane::entrance::{Message, ask_within};
use blockyard_std::parts::words::{counted, error_words};
use blockyard_wire::nbd::ExportError;
use core::fmt;
use serde_json::{Map, Value};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The time in which a lane flushes a disk that it gives up, in addition to its patience with clients.
const LAST_FLUSH: Duration = Duration::from_secs(60);
/// The time in which a lane takes a disk into service.
const ADDING: Duration = Duration::from_secs(20);

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
    pub(super) fn add_export(&self, disk: &Map<String, Value>) -> Result<Changed, String> {
        let Some(DiskReader(read)) = &self.read_disk else {
            return Err("this server adds no exports".to_owned());
        };
        if !descriptors::suits_export() {
            return Err(
                "the limit of open files (ulimit -n) has no room for another export".to_owned()
            );
        }
        let config = read(disk)?;
        let changed = config.name.clone();
        let _change = self.roster.change(&changed);
        let number = self.roster.take_number().ok_or_else(|| ExportError::TooMany.to_string())?;
        let opened =
            self.open_disk(config, number).inspect_err(|_| self.roster.give_back(number))?;
        self.add_to_lanes(&opened)?;
        self.roster.put(opened);
        Ok(Changed { changed })
    }

    /// Removes the export called `name`, after the end of its clients, if there are any and `force` allows that.
    pub(super) fn remove_export(&self, name: &str, force: bool) -> Result<Changed, String> {
        let _change = self.roster.change(name);
        let listed = self.find_export(name)?;
        self.close_gate(&listed, force)?;
        self.roster.remove(listed.number);
        self.notify_waiting_clients();
        let ended = self.release_disk(&listed);
        // A silent lane may still know the number.
        if !matches!(ended, Err(ReleaseError::Silent(_))) {
            self.roster.give_back(listed.number);
        }
        ended.map_err(|error| format!("export {name:?} was removed, but {error}"))?;
        Ok(Changed { changed: name.to_owned() })
    }

    /// Gives the export called `name` another size, after the end of its clients, if there are any and `force` allows
    /// that.
    pub(super) fn resize_export(
        &self,
        name: &str,
        bytes: u64,
        force: bool,
    ) -> Result<Changed, String> {
        let _change = self.roster.change(name);
        let old = self.find_export(name)?;
        let config = resized(&old, bytes)?;
        // [change-is-whole]: first everything that can be refused.
        let new = self.in_place_of(&old, bytes, config)?;
        let others = self.roster.all();
        let others = others.iter().filter(|other| other.number != old.number);
        check_together(others.chain([&new]))?;
        self.close_gate(&old, force)?;
        let swapped = self.swap_disk(&old, new);
        self.notify_waiting_clients();
        swapped?;
        Ok(Changed { changed: name.to_owned() })
    }

    pub(super) fn find_export(&self, name: &str) -> Result<Listed, String> {
        self.roster.find(name).ok_or_else(|| format!("there is no export {name:?}"))
    }

    /// Opens a disk, and checks that its export goes with the others.
    fn open_disk(&self, config: DiskConfig, number: usize) -> Result<Listed, String> {
        if self.roster.find(&config.name).is_some() {
            return Err(format!("there is already an export {:?}", config.name));
        }
        let disk = Disk::open(&config, &self.bells, self.events.as_ref());
        let disk = disk.map_err(|error| error.to_string())?;
        let opened = Listed { number, disk: Arc::new(disk), config: Arc::new(config) };
        check_together(self.roster.all().iter().chain([&opened]))?;
        Ok(opened)
    }

    /// Returns a disk of `bytes` that can take the place of `old`. Nothing changes yet.
    fn in_place_of(&self, old: &Listed, bytes: u64, config: DiskConfig) -> Result<Listed, String> {
        let disk = old.disk.resized(bytes, &config, &self.bells);
        let disk = disk.map_err(|error| error.to_string())?;
        Ok(Listed { number: old.number, disk: Arc::new(disk), config: Arc::new(config) })
    }

    /// Hands a disk to the lanes.
    fn add_to_lanes(&self, listed: &Listed) -> Result<(), String> {
        let Listed { number, disk, .. } = listed;
        let added = ask_within(ADDING, &self.entrances, |answer| {
            Message::Add(*number, Arc::clone(disk), answer)
        });
        added.map(drop).map_err(|lane| {
            // Lanes that have the disk give it up again.
            for entrance in &self.entrances {
                entrance.send(Message::Remove(*number, mpsc::channel().0));
            }
            silent_lane(lane)
        })
    }

    /// Closes the gate of a disk, unless it has clients and there is no `force` ([gate-decides-once]).
    fn close_gate(&self, listed: &Listed, force: bool) -> Result<(), String> {
        listed.disk.gate.close(force).map_err(|clients| {
            let name = &listed.disk.name;
            format!("export {name:?} has {}", counted(clients, "client"))
        })
    }

    /// Has the lanes serve `new` in place of `old`, whose gate is closed. If that fails, they serve a disk like `old`.
    fn swap_disk(&self, old: &Listed, new: Listed) -> Result<(), String> {
        // [change-is-whole]: no client has ended yet.
        if let Err(error) = new.disk.grow() {
            old.disk.gate.open();
            return Err(cause_of(old, &error));
        }
        let swapped = match self.release_disk(old) {
            Err(ReleaseError::Silent(lane)) => {
                return Err(self.drop_export(old, &ReleaseError::Silent(lane).to_string()));
            }
            // Its lost writes are not forgotten: the same file is served again, and later flushes fail too.
            Err(ReleaseError::Flush(error)) => Err(error.to_string()),
            Ok(()) => new.disk.take_over(&old.disk).map_err(|error| cause_of(old, &error)),
        };
        let (served, answer) = match swapped {
            Ok(()) => (new, Ok(())),
            Err(why) => {
                let config = (*old.config).clone();
                let again = self
                    .in_place_of(old, old.disk.size_bytes, config)
                    .map_err(|why| self.drop_export(old, &why))?;
                again
                    .disk
                    .take_over(&old.disk)
                    .map_err(|error| self.drop_export(old, &cause_of(old, &error)))?;
                (again, Err(why))
            }
        };
        // No client enters a lane's new disk with the size that the list still has.
        served.disk.gate.close(true).expect("a gate that is closed by force");
        self.add_to_lanes(&served).map_err(|why| self.drop_export(old, &why))?;
        self.roster.replace(served.clone());
        served.disk.gate.open();
        answer
    }

    /// Takes an export whose disk cannot be served any more off the list. Returns the message about it.
    fn drop_export(&self, listed: &Listed, why: &str) -> String {
        self.roster.remove(listed.number);
        format!("export {:?} was removed: {why}", listed.disk.name)
    }

    /// Tells the lanes that a closed gate is open again, or that its export is gone.
    fn notify_waiting_clients(&self) {
        for entrance in &self.entrances {
            entrance.send(Message::ChooseAgain);
        }
    }

    /// Has the lanes end the clients of a disk, flush it, and forget it.
    fn release_disk(&self, listed: &Listed) -> Result<(), ReleaseError> {
        // [removal-is-bounded]
        let ended = ask_within(self.patience * 2 + LAST_FLUSH, &self.entrances, |answer| {
            Message::Remove(listed.number, answer)
        });
        let ended = ended.map_err(ReleaseError::Silent)?;
        ended.into_iter().collect::<io::Result<()>>().map_err(ReleaseError::Flush)
    }
}

/// Returns the message about an error with the file of a disk.
fn cause_of(listed: &Listed, error: &io::Error) -> String {
    match &listed.config.source {
        Source::File { path, .. } => format!("{}: {}", path.display(), error_words(error)),
        _ => error_words(error),
    }
}

/// Checks that exports can be listed together.
fn check_together<'a>(listed: impl Iterator<Item = &'a Listed>) -> Result<(), String> {
    let listed: Vec<_> = listed.cloned().collect();
    nbd::exports(&listed).map(drop).map_err(|error| error.to_string())
}

/// The reason why the lanes did not release a disk in good order.
enum ReleaseError {
    /// This lane has ended, or has not given up the disk in time.
    Silent(usize),
    /// The last flush failed.
    Flush(io::Error),
}

impl fmt::Display for ReleaseError {
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
    // [end-is-no-zeroes]
    if listed.disk.is_cut_short() {
        return Err("its file was truncated, and what was lost would read as zeroes".to_owned());
    }
    Ok(DiskConfig { source, ..(*listed.config).clone() })
}
