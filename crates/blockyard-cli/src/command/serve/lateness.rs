//! Reports that the machine is too slow for the model of a disk: once a second, and at the end.

use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use blockyard_serve::{LATE, Lateness, Timing};

use super::prefix;
use crate::message::note;

/// The time between two reports.
const PERIOD: Duration = Duration::from_secs(1);

/// A thread that watches the disks that behave like models, or `None` without such disks.
pub(super) struct Watch(Option<(Sender<()>, JoinHandle<()>)>);

impl Watch {
    pub(super) fn begin(disks: Vec<(String, Arc<Timing>)>) -> Self {
        Self((!disks.is_empty()).then(|| {
            let (end, ended) = channel();
            (end, std::thread::spawn(move || watch(&disks, &ended)))
        }))
    }

    /// Ends the thread, which then reports the totals.
    pub(super) fn end(self) {
        if let Some((end, thread)) = self.0 {
            drop(end);
            thread.join().expect("the thread that watches models should not panic");
        }
    }
}

fn watch(disks: &[(String, Arc<Timing>)], ended: &Receiver<()>) {
    let mut before = vec![Lateness::default(); disks.len()];
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
        for ((name, timing), before) in disks.iter().zip(&mut before) {
            let now = timing.read();
            if now.late > before.late {
                note(&format!(
                    "{}too slow for the model: in the last second {} of {} completions were late by \
                     {} us or more",
                    prefix(name),
                    now.late - before.late,
                    now.completions - before.completions,
                    LATE.as_ns() / 1000,
                ));
            }
            *before = now;
        }
    }
    for (name, timing) in disks {
        let Lateness { completions, late, total, most } = timing.read();
        let Some(mean) = total.as_ns().checked_div(completions) else { continue };
        note(&format!(
            "{}of {completions} completions of the model {late} were late by {} us or more; on average \
             {} us, at most {} us",
            prefix(name),
            LATE.as_ns() / 1000,
            mean / 1000,
            most.as_ns() / 1000,
        ));
    }
}
