//! The disks that a running server exports. An operator adds and removes some of them.
//!
//! A disk has a number, by which every lane knows it. Lanes learn of a disk before the roster lists it and forget it after
//! the roster has lost it, so a client can choose any listed disk in any lane.

use crate::disk::{Disk, DiskConfig};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A disk that clients can choose.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) number: usize,
    pub(crate) disk: Arc<Disk>,
    /// What the disk was opened with.
    pub(crate) config: Arc<DiskConfig>,
}

/// The disks that a server exports. See the [module](self).
#[derive(Debug)]
pub(crate) struct Roster {
    listed: RwLock<Arc<Vec<Listed>>>,
    /// The number of changes so far.
    edition: AtomicU64,
    /// The numbers that lanes may know. Locked during a change, so that there is one at a time.
    numbers: Mutex<Numbers>,
}

/// The numbers that lanes may know.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<bool>);

impl Numbers {
    /// Returns the smallest free number.
    pub(crate) fn free(&self) -> usize {
        self.0.iter().position(|is_taken| !is_taken).unwrap_or(self.0.len())
    }

    /// Takes a free number, before a lane learns of it.
    pub(crate) fn take(&mut self, number: usize) {
        self.0.resize(self.0.len().max(number + 1), false);
        self.0[number] = true;
    }

    /// Gives back a number that no lane knows any more.
    pub(crate) fn give_back(&mut self, number: usize) {
        self.0[number] = false;
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
        let numbers = Mutex::new(Numbers(vec![true; listed.len()]));
        Self { listed: RwLock::new(Arc::new(listed)), edition: AtomicU64::new(0), numbers }
    }

    /// Starts a change, and waits until no other is in progress.
    pub(crate) fn change(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
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
