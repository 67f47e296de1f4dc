//! Checks for leaks: at the end no tag, request, bio or budget is in use.

use crate::flaw::Meddler;
use blockyard::host::Host;
use blockyard::request_queue::RequestQueue;
use blockyard::trace::Sink;
use blockyard::unit::HctxId;

pub(crate) fn all_ended<S: Sink>(host: &Host<Meddler, S>, queues: &[RequestQueue]) {
    for queue in queues {
        queue.self_check(host);
        assert_eq!(queue.in_flight(), 0, "[nothing-left-over] requests in flight");
        assert_eq!(queue.bios_in_use(), 0, "[nothing-left-over] bios in use");
    }
    for hctx in (0..host.tags().config().hctxs).map(HctxId) {
        assert_eq!(host.tags().in_use(hctx), 0, "[nothing-left-over] tags of {hctx:?} in use");
    }
    host.driver.checked().all_ended();
    host.driver.checked_below().all_ended();
}
