//! Turns ended requests into bytes to send.

use super::client::Client;
use super::parse::RUNS_MAX;
use super::session::{Serving, Session};
use crate::disk::Data;
use crate::lane::services::Services;
use blockyard::status::Status;
use blockyard_std::parts::job::{Place, Transfer};
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{ANSWER_BYTES_MAX, Errno, Request, STATE_HOLE, STATE_ZERO};

const STATUS_BYTES: usize = STATUS_BYTES_MIN + 16 * RUNS_MAX;

impl Client {
    /// Answers a request that ended at the disk.
    #[inline]
    pub(super) fn answer_ended(
        &mut self,
        request: Request,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    ) {
        let data_bytes = self.write_answer(request, result_of(status));
        if data_bytes > 0 {
            let disk = self.session.serving().disk;
            match lane.disk(disk).data(transfer) {
                Data::Buffer(pages, range) => self.batch.push_pages(pages, range),
                Data::Disk(map, range) => self.batch.push_map(map, range),
            }
        } else {
            self.return_buffer(transfer, lane);
        }
    }

    /// Gives back the buffer of a request that has ended, if it has one of the lane.
    pub(super) fn return_buffer(&mut self, transfer: Transfer, lane: &mut Services) {
        if let Place::Buffer { pages, .. } = transfer.place {
            let bytes = usize::try_from(transfer.len).expect("length of one request");
            lane.return_buffer(&mut self.account, pages, bytes);
        }
    }

    /// Answers a request that did not go to a disk.
    pub(super) fn answer_at_once(
        &mut self,
        number: u32,
        request: Request,
        result: Result<(), Errno>,
        lane: &mut Services,
    ) {
        lane.schedule_door(number);
        let data_bytes = self.write_answer(request, result);
        debug_assert_eq!(data_bytes, 0, "only the answer to a request at a disk has data");
    }

    /// Puts the answer into the batch. Returns the number of bytes of data that must follow.
    #[inline]
    fn write_answer(&mut self, request: Request, result: Result<(), Errno>) -> u64 {
        if self.is_dead() {
            return 0;
        }
        let Session::Transmission(Serving { transmission, .. }) = &self.session else {
            unreachable!("requests come after the handshake")
        };
        let mut header = [0; ANSWER_BYTES_MAX];
        let answer = transmission.answer(request, result, &mut header);
        self.batch.push_head(|heads| heads.extend_from_slice(&header[..answer.header_bytes]));
        self.batch.push_charge(answer.charge);
        answer.data_bytes
    }

    /// Writes a chunk for each context that `request` asks for. Returns the request, which has yet to be answered.
    pub(super) fn write_status(&mut self, mut request: Request, runs: &[(u64, bool)]) -> Request {
        let Session::Transmission(Serving { transmission, .. }) = &self.session else {
            unreachable!("requests come after the handshake")
        };
        for context in request.contexts_left().iter() {
            self.batch.push_head(|heads| {
                let start = heads.len();
                heads.resize(start + STATUS_BYTES, 0);
                let mut chunk = transmission.status(&mut request, context, &mut heads[start..]);
                for (len, is_data) in runs {
                    if !chunk.push(*len, if *is_data { 0 } else { STATE_HOLE | STATE_ZERO }) {
                        break;
                    }
                }
                let len = chunk.finish();
                heads.truncate(start + len);
            });
        }
        request
    }
}

fn result_of(status: Status) -> Result<(), Errno> {
    match status {
        Status::Ok => Ok(()),
        Status::NoSpace => Err(Errno::NoSpace),
        Status::NotSupported => Err(Errno::NotSupported),
        Status::IoError | Status::Medium | Status::Timeout | Status::Gone => Err(Errno::Io),
    }
}
