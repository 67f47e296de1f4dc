//! A model for tests that records which calls reach it, and a check that no layer swallows one.

use super::Model;
use crate::activity::Activity;
use crate::data::event::ReportsData;
use crate::family::FamilyModel;
use blockyard::device::recorder::{self, Recorder};
use blockyard::driver::Device;
use std::sync::{Arc, Mutex};

/// Completes each request at once, and records the calls made on it.
pub(super) type Probe = Recorder<Box<dyn Fn(&'static str) + Send>>;

impl ReportsData for Probe {}

impl FamilyModel for Probe {
    fn activity(&self) -> &Activity {
        unreachable!("no test asks a probe for its activity")
    }

    fn activity_mut(&mut self) -> &mut Activity {
        unreachable!("no test asks a probe for its activity")
    }
}

/// Makes every call on the device that `over` puts over a [`Probe`]. Returns the calls that did not
/// reach it, except for those of [`Device`]: a model acts by the events that it schedules.
pub(super) fn swallowed<D: Device>(over: impl FnOnce(Model) -> D) -> Vec<&'static str> {
    let calls = Arc::<Mutex<Vec<_>>>::default();
    let log = Arc::clone(&calls);
    let record = move |call| log.lock().expect("no call panics").push(call);
    let device = over(Model::Probe(Recorder::new(Box::new(record), 0)));
    let take_calls = || core::mem::take(&mut *calls.lock().expect("no call panics"));
    let mut swallowed = recorder::swallowed(device, take_calls);
    swallowed.retain(|call| !matches!(*call, "next_finished" | "poll_at"));
    swallowed
}

mod tests {
    use super::*;
    use crate::data::medium::Media;
    use crate::mmc::profile::MmcFaults;
    use crate::profile::FaultRules;
    use crate::stack::{Layering, Stack};
    use blockyard::layer::checked::Terms;
    use blockyard::limits::Limits;
    use blockyard::policy::{Dispatch, Policies};
    use blockyard::prng::Prng;
    use blockyard::request_queue::QueueConfig;
    use blockyard::tag::TagSetConfig;

    const NONE: [&str; 0] = [];
    const TAGS: TagSetConfig = TagSetConfig::single(4);

    #[test]
    fn a_model_swallows_no_call() {
        assert_eq!(swallowed(|model| model), NONE);
    }

    #[test]
    fn a_stack_swallows_no_call_whatever_its_layers_are() {
        let policies = Policies { dispatch: Dispatch::Budget, ..Policies::NONE };
        let terms = [Terms::of(&QueueConfig::new(1, 1, Limits::new(64), policies), &TAGS)];
        let rules =
            FaultRules { name: String::new(), rules: Vec::new(), mmc: MmcFaults::default() };
        for bits in 0..8 {
            let has_media = bits & 1 != 0;
            let has_faults = bits & 2 != 0;
            let is_checked = bits & 4 != 0;
            let media = || Media::new([&terms[0].limits], &TAGS, Prng::new(1));
            let layers = Layering {
                media: has_media.then(media),
                faults: has_faults.then_some(&rules),
                draws: Prng::new(1),
                terms: is_checked.then_some(&terms[..]),
            };
            let missing = swallowed(|model| Stack::new(model, layers, &TAGS));
            assert_eq!(missing, NONE, "{has_media} {has_faults} {is_checked}");
        }
    }
}
