//! The traces that `serve` is asked for: where the server's events meet the simulator's formats.

use std::sync::Arc;

use blockyard::time::Instant;
use blockyard_serve::{Config, Tell, Watcher};
use blockyard_sim::output::{Files, Lanes, LiveRecorder, OutputError};

/// The recorder of a server, told by each of its lanes.
#[derive(Debug)]
struct Traced(LiveRecorder);

impl Watcher for Traced {
    fn lane(&self, lane: u32, now: Instant) -> Tell {
        let mut recorder = self.0.lane(u16::try_from(lane).expect("there are few lanes"), now);
        Box::new(move |disk, event| recorder.event(disk, event))
    }
}

/// The traces of a server; none where none was asked for.
#[derive(Debug)]
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
        let count = |count| u16::try_from(count).expect("there are few lanes, and few disks");
        let lanes = Lanes {
            name: design.to_owned(),
            lanes: count(config.lanes),
            disks: count(config.disks.len()),
            depth: config.disks.iter().map(|disk| disk.depth).max().expect("there is a disk"),
        };
        let traced = Arc::new(Traced(LiveRecorder::create(files, lanes)?));
        config.watcher = Some(Arc::clone(&traced) as _);
        Ok(Self(Some(traced)))
    }

    /// Everything reaches the files. The server has ended, and nobody holds its configuration.
    pub(super) fn finish(self) -> Result<(), OutputError> {
        match self.0 {
            None => Ok(()),
            Some(traced) => Arc::into_inner(traced).expect("no lane is left").0.finish(),
        }
    }
}
