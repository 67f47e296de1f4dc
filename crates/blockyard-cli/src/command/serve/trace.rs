//! The traces of `serve`: the server's events in the simulator's formats.

use std::sync::{Arc, Mutex, MutexGuard};

use blockyard::time::Instant;
use blockyard_serve::{Config, Tell, Watcher};
use blockyard_trace::output::{Files, Lanes, LiveRecorder, OutputError};

use crate::message::warning;

/// The recorder to which each lane of a server reports, or `None` after the traces are closed.
#[derive(Debug)]
struct Traced(Mutex<Option<LiveRecorder>>);

impl Traced {
    fn recorder(&self) -> MutexGuard<'_, Option<LiveRecorder>> {
        self.0.lock().expect("a thread that begins or closes traces should not panic")
    }
}

impl Watcher for Traced {
    fn lane(&self, lane: u32, now: Instant) -> Tell {
        let lane = u16::try_from(lane).expect("a server should have at most 64 lanes");
        let recorder = self.recorder();
        let mut recorder =
            recorder.as_ref().expect("traces should stay open while lanes begin").lane(lane, now);
        Box::new(move |disk, event| recorder.event(disk, event))
    }
}

/// Warns that the traces end here.
fn broken(error: &OutputError) {
    warning(&format!("{error}: the traces end here, and the server continues"));
}

/// The traces of a server, if any.
#[derive(Clone, Debug)]
pub(super) struct Traces(Option<Arc<Traced>>);

impl Traces {
    /// Starts to write `files` for the disks of `config` under the design of this name.
    pub(super) fn begin(
        files: &Files,
        config: &mut Config,
        design: &str,
    ) -> Result<Self, OutputError> {
        if *files == Files::default() {
            return Ok(Self(None));
        }
        let count =
            |count| u16::try_from(count).expect("numbers of lanes and disks should fit 16 bits");
        let lanes = Lanes {
            name: design.to_owned(),
            lanes: count(config.lanes),
            disks: count(config.disks.len()),
            depth: config
                .disks
                .iter()
                .map(|disk| disk.depth)
                .max()
                .expect("a server should have a disk"),
        };
        let traced =
            Arc::new(Traced(Mutex::new(Some(LiveRecorder::create(files, lanes, broken)?))));
        config.watcher = Some(Arc::clone(&traced) as _);
        Ok(Self(Some(traced)))
    }

    /// Writes the events that the lanes have handed over, which are all events if the lanes have
    /// ended. A second caller waits for the first.
    pub(super) fn finish(&self) -> Result<(), OutputError> {
        let Some(traced) = &self.0 else { return Ok(()) };
        let mut recorder = traced.recorder();
        recorder.take().map_or(Ok(()), LiveRecorder::finish)
    }
}
