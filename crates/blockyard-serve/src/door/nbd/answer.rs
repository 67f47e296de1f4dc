//! Turns ended requests into bytes to send.

use super::client::Client;
use super::parse::RUNS_MAX;
use super::session::{Serving, Session};
use crate::lane::services::Services;
use blockyard::status::Status;
use blockyard_std::parts::job::{Place, Transfer};
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{ANSWER_BYTES_MAX, Errno, Request, STATE_HOLE, STATE_ZERO};

const STATUS_BYTES: usize = STATUS_BYTES_MIN + 16 * RUNS_MAX;

impl Client {
    /// Answers a request that ended at `disk`.
    #[inline]
    pub(super) fn answer_ended(
        &mut self,
        request: Request,
        disk: usize,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    ) {
        let data_bytes = self.write_answer(request, result_of(status));
        if data_bytes == 0 {
            return self.return_buffer(transfer, lane);
        }
        match transfer.place {
            Place::Buffer { pages, lead } => {
                let len = usize::try_from(transfer.len).expect("length of one request");
                self.batch.push_pages(pages, lead..lead + len);
            }
            _ => {
                let (map, range) = lane.disk(disk).own_data(transfer.offset, transfer.len);
                self.batch.push_map(map, range);
            }
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
        let mut data_bytes = 0;
        let mut charge = None;
        // The header is written in place: a copy of it would cost 10 instructions more.
        self.batch.push_head(|heads| {
            let start = heads.len();
            heads.resize(start + ANSWER_BYTES_MAX, 0);
            let answer = transmission.answer(request, result, &mut heads[start..]);
            heads.truncate(start + answer.header_bytes);
            data_bytes = answer.data_bytes;
            charge = Some(answer.charge);
        });
        self.batch.push_charge(charge.expect("charge of a request that was answered"));
        data_bytes
    }

    /// Writes a chunk for each context that `request` asks for. Returns the request, which has yet
    /// to be answered.
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
