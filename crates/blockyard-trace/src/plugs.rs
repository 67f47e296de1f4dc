//! Finds the bios that a thread submitted in one call, under a plug.
//!
//! Linux records a plug (`P`) when the thread's first request is held back, which is after that
//! request's `Q`, and an unplug (`U`) when the thread passes its requests on. A trace without `P`
//! is judged by thread and time ([`Known`]).

use blockyard::time::Duration;
use std::collections::BTreeMap;

/// The pid of events outside threads.
const NO_THREAD: u32 = 0;

/// The maximum time from the first bio of a call to the last. A thread does not sleep while it
/// holds a plug.
pub const CALL_SPAN_MAX: Duration = Duration::from_ms(10);
/// What a trace has said about plugs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// Nothing: bios of a thread that are close together count as one call.
    #[default]
    Bios,
    /// It has requests (`I`, `D`). A call also ends where its thread inserts or dispatches one, so
    /// the bios of a call may be further apart.
    Requests,
    /// It has plugs.
    Plugs,
}

impl Known {
    /// The maximum time between two bios of a call. Without plugs, the number is assumed.
    const fn gap_max(self) -> Duration {
        match self {
            Self::Bios => Duration::from_us(5),
            Self::Requests => Duration::from_us(100),
            Self::Plugs => CALL_SPAN_MAX,
        }
    }
}

/// The threads of a trace.
#[derive(Debug)]
pub(super) struct Plugs {
    pub(super) known: Known,
    threads: BTreeMap<u32, Thread>,
    /// Whether a bio was found to join a call without a plug.
    pub(super) assumes: bool,
}

/// The latest call of a thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The instants of its first and last bio.
    begun_ns: u64,
    last_ns: u64,
    /// Whether the next bio may belong to it.
    open: bool,
}

impl Plugs {
    /// Returns the threads of a trace of which this is known.
    pub(super) const fn new(known: Known) -> Self {
        Self { known, threads: BTreeMap::new(), assumes: false }
    }

    /// Returns whether the bio belongs to the call of its thread's bio before it.
    pub(super) fn joins(&mut self, at_ns: u64, pid: u32) -> bool {
        if pid == NO_THREAD {
            return false;
        }
        let first = Thread { begun_ns: at_ns, last_ns: at_ns, open: self.known != Known::Plugs };
        let Some(thread) = self.threads.get_mut(&pid) else {
            self.threads.insert(pid, first);
            return false;
        };
        debug_assert!(thread.last_ns <= at_ns, "[records-in-time-order]");
        let gap = at_ns - thread.last_ns;
        let span = at_ns - thread.begun_ns;
        let is_near = gap <= self.known.gap_max().as_ns() && span <= CALL_SPAN_MAX.as_ns();
        let joins = thread.open && is_near;
        match joins {
            true => thread.last_ns = at_ns,
            false => *thread = first,
        }
        self.assumes |= joins && self.known != Known::Plugs;
        joins
    }

    /// Notes a plug of the thread.
    pub(super) fn plugged(&mut self, pid: u32) {
        self.known = Known::Plugs;
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.open = true;
        }
    }

    /// Notes that the thread has passed requests on: `U`, `I` or `D`.
    pub(super) fn passed_on(&mut self, pid: u32) {
        self.known = self.known.max(Known::Requests);
        if let Some(thread) = self.threads.get_mut(&pid) {
            thread.open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIOS: Known = Known::Bios;

    /// Returns which bios of thread 7 at these instants, in us, join a call. After each bio, `then`
    /// happens.
    fn joined(known: Known, at_us: &[u64], then: impl Fn(&mut Plugs)) -> Vec<bool> {
        let mut plugs = Plugs::new(known);
        let join = |at_us: &u64| {
            let joins = plugs.joins(at_us * 1000, 7);
            then(&mut plugs);
            joins
        };
        at_us.iter().map(join).collect()
    }

    #[test]
    fn without_plugs_near_bios_of_a_thread_join() {
        assert_eq!(joined(BIOS, &[10, 10, 15, 21], |_| ()), [false, true, true, false]);
        let of_others = |plugs: &mut Plugs| plugs.passed_on(8);
        assert_eq!(joined(BIOS, &[10, 110, 211], of_others), [false, true, false]);
        let of_its_own = |plugs: &mut Plugs| plugs.passed_on(7);
        assert_eq!(joined(BIOS, &[10, 11, 12], of_its_own), [false; 3]);
    }

    #[test]
    fn a_plug_holds_until_the_unplug_but_not_for_long() {
        let plug = |plugs: &mut Plugs| plugs.plugged(7);
        assert_eq!(joined(BIOS, &[0, 10_000, 10_001], plug), [false, true, false]);
        let of_others = |plugs: &mut Plugs| plugs.plugged(8);
        assert_eq!(joined(Known::Plugs, &[0, 1], of_others), [false, false]);
    }

    #[test]
    fn bios_of_no_thread_do_not_join() {
        let mut plugs = Plugs::new(BIOS);
        assert_eq!([plugs.joins(0, 0), plugs.joins(0, 0)], [false, false]);
        assert!(!plugs.assumes);
    }
}
