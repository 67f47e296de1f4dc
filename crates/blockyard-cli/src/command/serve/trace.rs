//! The traces of `serve`: the server's events in the simulator's formats.

use std::sync::{Arc, Mutex, MutexGuard};

use blockyard::time::Instant;
use blockyard_serve::{Config, Tell, Watcher};
use blockyard_sim::output::{Files, Lanes, LiveRecorder, OutputError};

/// The recorder of a server, to which each of its lanes reports; `None` once the traces are closed.
#[derive(Debug)]
struct Traced(Mutex<Option<LiveRecorder>>);

impl Traced {
    fn recorder(&self) -> MutexGuard<'_, Option<LiveRecorder>> {
        self.0.lock().expect("threads that begin or close traces do not panic")
    }
}

impl Watcher for Traced {
    fn lane(&self, lane: u32, now: Instant) -> Tell {
        let lane = u16::try_from(lane).expect("a server has at most 64 lanes");
        let recorder = self.recorder();
        let mut recorder =
            recorder.as_ref().expect("traces stay open while lanes begin").lane(lane, now);
        Box::new(move |disk, event| recorder.event(disk, event))
    }
}

/// The traces of a server, if there are any.
#[derive(Clone, Debug)]
pub(super) struct Traces(Option<Arc<Traced>>);

impl Traces {
    /// Writes `files`, of what `config` serves under the design of this name.
    pub(super) fn begin(
        files: &Files,
        config: &mut Config,
        design: &str,
    ) -> Result<Self, OutputError> {
        if *files == Files::default() {
            return Ok(Self(None));
        }
        let count = |count| u16::try_from(count).expect("lanes and disks are numbered by 16 bits");
        let lanes = Lanes {
            name: design.to_owned(),
            lanes: count(config.lanes),
            disks: count(config.disks.len()),
            depth: config.disks.iter().map(|disk| disk.depth).max().expect("a server has a disk"),
        };
        let traced = Arc::new(Traced(Mutex::new(Some(LiveRecorder::create(files, lanes)?))));
        config.watcher = Some(Arc::clone(&traced) as _);
        Ok(Self(Some(traced)))
    }

    /// Writes the events that lanes have handed over to the files; all events, if the lanes have ended. A
    /// second caller waits for the first.
    pub(super) fn finish(&self) -> Result<(), OutputError> {
        let Some(traced) = &self.0 else { return Ok(()) };
        let mut recorder = traced.recorder();
        recorder.take().map_or(Ok(()), LiveRecorder::finish)
    }
}
