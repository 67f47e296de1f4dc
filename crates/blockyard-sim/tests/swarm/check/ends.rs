//! Checks that each accepted bio ends exactly once, with the status of its parts ([bio-ends-once]).

use blockyard::bio::Bio;
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard::unit::QueueId;
use std::collections::BTreeSet;

/// A bio that was accepted.
#[derive(Clone, Debug)]
struct Entry {
    queue: QueueId,
    bio: Bio,
    /// The failures of its parts so far.
    failures: Vec<Status>,
    needs_flush: bool,
    /// The failures of flushes in the meantime, which may have served this bio.
    flush_failures: Vec<Status>,
    ended: bool,
}

/// Every bio, by cookie.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    entries: Vec<Option<Entry>>,
    /// Bios of each queue that have not ended.
    open: BTreeSet<(QueueId, u64)>,
}

impl Ends {
    pub(crate) fn entered(&mut self, queue: QueueId, bio: Bio, needs_flush: bool) {
        let at = index(bio.cookie);
        if at >= self.entries.len() {
            self.entries.resize(at + 1, None);
        }
        assert!(self.entries[at].is_none(), "[bio-ends-once] cookie {at} was used before");
        self.entries[at] = Some(Entry {
            queue,
            bio,
            failures: Vec::new(),
            needs_flush,
            flush_failures: Vec::new(),
            ended: false,
        });
        self.open.insert((queue, bio.cookie));
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.open.len() as u64
    }

    pub(crate) fn open_of(&self, queue: QueueId) -> usize {
        self.open.range((queue, 0)..=(queue, u64::MAX)).count()
    }

    /// Returns the bio with this cookie, which has not ended.
    pub(crate) fn bio(&self, cookie: u64) -> &Bio {
        let entry = self.entries.get(index(cookie)).and_then(Option::as_ref);
        let Some(entry) = entry else { panic!("[bio-ends-once] nobody submitted bio {cookie}") };
        assert!(!entry.ended, "[bio-ends-once] bio {cookie} has ended already");
        &entry.bio
    }

    pub(crate) fn part_failed(&mut self, cookie: u64, status: Status) {
        if let Some(entry) = &mut self.entries[index(cookie)] {
            entry.failures.push(status);
        }
    }

    pub(crate) fn flush_failed(&mut self, queue: QueueId, status: Status) {
        for (_, cookie) in self.open.range((queue, 0)..=(queue, u64::MAX)) {
            let entry =
                self.entries[index(*cookie)].as_mut().expect("an open bio should have an entry");
            if entry.needs_flush {
                entry.flush_failures.push(status);
            }
        }
    }

    pub(crate) fn ended(&mut self, queue: QueueId, ended: &Ended) {
        let cookie = ended.bio.cookie;
        let _ = self.bio(cookie);
        let entry = self.entries[index(cookie)]
            .as_mut()
            .expect("a bio that was just found should have an entry");
        assert_eq!(entry.queue, queue, "[bio-ends-once] bio {cookie} came out of another queue");
        let same_range =
            (entry.bio.sector, entry.bio.sectors) == (ended.bio.sector, ended.bio.sectors);
        assert!(same_range, "[bio-ends-once] {:?} ended as {ended:?}", entry.bio);
        let right = match ended.status {
            Status::Ok => entry.failures.is_empty(),
            status => entry.failures.contains(&status) || entry.flush_failures.contains(&status),
        };
        assert!(right, "[bio-ends-once] {ended:?} although {:?}", entry.failures);
        entry.ended = true;
        self.open.remove(&(queue, cookie));
    }
}

fn index(cookie: u64) -> usize {
    usize::try_from(cookie).expect("cookies count up from zero")
}
