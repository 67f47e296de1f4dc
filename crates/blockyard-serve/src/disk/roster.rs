//! The disks that a running server exports. An operator adds and removes some of them.
//!
//! A disk has a number, by which every lane knows it. Lanes learn of a disk before the roster lists
//! it and forget it after the roster has lost it, so a client can choose any listed disk in any
//! lane. Only a disk whose gate is closed may be listed while no lane has it.
//!
//! A change of an export waits for an earlier one of an export with the same name, and for no
//! other.

use crate::disk::{Disk, DiskConfig};
use blockyard_wire::nbd::EXPORTS_MAX;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

/// A disk that clients can choose.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) number: usize,
    pub(crate) disk: Arc<Disk>,
    /// The configuration with which the disk was opened.
    pub(crate) config: Arc<DiskConfig>,
}

/// The disks that a server exports. See the [module](self).
#[derive(Debug)]
pub(crate) struct Roster {
    listed: RwLock<Arc<Vec<Listed>>>,
    /// The number of changes so far.
    edition: AtomicU64,
    taken: Mutex<Taken>,
    /// Signalled when a name is free again.
    freed: Condvar,
}

/// The numbers and names that changes have taken.
#[derive(Debug)]
struct Taken {
    /// By number: whether a lane may know it.
    numbers: [bool; EXPORTS_MAX],
    /// The names of exports that are being changed.
    names: BTreeSet<String>,
}

/// A change of the export with one name. Nobody else changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    roster: &'a Roster,
    name: String,
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.roster.taken().names.remove(&self.name);
        self.roster.freed.notify_all();
    }
}

impl Roster {
    /// Returns a roster of `disks`, numbered from 0.
    pub(crate) fn new(disks: impl IntoIterator<Item = (Disk, DiskConfig)>) -> Self {
        let listed = disks.into_iter().enumerate().map(|(number, (disk, config))| Listed {
            number,
            disk: Arc::new(disk),
            config: Arc::new(config),
        });
        let listed: Vec<_> = listed.collect();
        let mut numbers = [false; EXPORTS_MAX];
        // A server does not start with more disks.
        numbers.iter_mut().take(listed.len()).for_each(|is_taken| *is_taken = true);
        Self {
            listed: RwLock::new(Arc::new(listed)),
            edition: AtomicU64::new(0),
            taken: Mutex::new(Taken { numbers, names: BTreeSet::new() }),
            freed: Condvar::new(),
        }
    }

    /// Starts a change of the export called `name`, which need not exist, after the end of any
    /// other change of that name.
    pub(crate) fn change(&self, name: &str) -> Change<'_> {
        let taken = self.freed.wait_while(self.taken(), |taken| taken.names.contains(name));
        taken.unwrap_or_else(PoisonError::into_inner).names.insert(name.to_owned());
        Change { roster: self, name: name.to_owned() }
    }

    /// Takes the smallest free number for a disk that lanes are to know, or returns `None` if there
    /// is none.
    pub(crate) fn take_number(&self) -> Option<usize> {
        let numbers = &mut self.taken().numbers;
        let free = numbers.iter().position(|is_taken| !is_taken)?;
        numbers[free] = true;
        Some(free)
    }

    /// Gives back a number that no lane knows any more.
    pub(crate) fn give_back(&self, number: usize) {
        self.taken().numbers[number] = false;
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the disks in the order of their numbers.
    pub(crate) fn all(&self) -> Arc<Vec<Listed>> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn find(&self, name: &str) -> Option<Listed> {
        self.all().iter().find(|listed| listed.disk.name == name).cloned()
    }

    /// Returns the number of changes so far. It rises after each change.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// Lists a disk.
    pub(crate) fn put(&self, listed: Listed) {
        self.edit(|all| {
            let at = all.partition_point(|other| other.number < listed.number);
            all.insert(at, listed);
        });
    }

    /// Changes what the disk with this number would be opened with again.
    pub(crate) fn change_config(&self, number: usize, change: impl FnOnce(&mut DiskConfig)) {
        self.edit(|all| {
            if let Some(listed) = all.iter_mut().find(|listed| listed.number == number) {
                change(Arc::make_mut(&mut listed.config));
            }
        });
    }

    /// Lists a disk in place of the one with the same number.
    pub(crate) fn replace(&self, new: Listed) {
        self.edit(|all| {
            if let Some(listed) = all.iter_mut().find(|listed| listed.number == new.number) {
                *listed = new;
            }
        });
    }

    /// Removes the disk with this number from the list.
    pub(crate) fn remove(&self, number: usize) {
        self.edit(|all| all.retain(|listed| listed.number != number));
    }

    fn edit(&self, edit: impl FnOnce(&mut Vec<Listed>)) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        edit(Arc::make_mut(&mut listed));
        self.edition.fetch_add(1, Ordering::Release);
    }
}
