//! From ended requests to bytes to send.

use super::client::{Client, Lane};
use super::session::{Serving, Session};
use crate::disk::Data;
use crate::job::{Place, Transfer};
use blockyard::status::Status;
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{ANSWER_BYTES_MAX, Errno, Request, STATE_HOLE, STATE_ZERO};

/// Room for the descriptors of one BLOCK_STATUS reply: 500 short ones. A client continues where they end.
const STATUS_BYTES: usize = STATUS_BYTES_MIN + 4000;

impl Client {
    /// Answers a request that ended at the disk.
    #[inline]
    pub(super) fn reply(
        &mut self,
        request: Request,
        status: Status,
        transfer: Transfer,
        lane: &mut Lane,
    ) {
        let data_bytes = self.write_answer(request, result_of(status));
        if data_bytes > 0 {
            let disk = self.session.serving().disk;
            match lane.disk(disk).data(transfer) {
                Data::Buffer(pages, range) => self.batch.pages(pages, range),
                Data::Disk(map, range) => self.batch.map(map, range),
            }
        } else if let Place::Buffer { pages, .. } = transfer.place {
            lane.give_back(pages);
        }
    }

    /// Answers a request that did not go to a disk.
    pub(super) fn answer(
        &mut self,
        number: u32,
        request: Request,
        result: Result<(), Errno>,
        lane: &mut Lane,
    ) {
        lane.list(number);
        let data_bytes = self.write_answer(request, result);
        debug_assert_eq!(data_bytes, 0, "data comes from a disk");
    }

    /// Puts the answer into the batch. Returns how many bytes of data must follow it.
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
        self.batch.head(|heads| {
            let start = heads.len();
            heads.resize(start + ANSWER_BYTES_MAX, 0);
            let answer = transmission.answer(request, result, &mut heads[start..]);
            heads.truncate(start + answer.header_bytes);
            data_bytes = answer.data_bytes;
            charge = Some(answer.charge);
        });
        self.batch.charge(charge.expect("charge of a request that was answered"));
        data_bytes
    }

    /// Reports the extents of a range, then answers.
    pub(super) fn tell_status(&mut self, number: u32, mut request: Request, lane: &mut Lane) {
        let Session::Transmission(Serving { transmission, disk, .. }) = &self.session else {
            unreachable!("requests come after the handshake")
        };
        let disk = lane.disk(*disk);
        for context in request.contexts_left().iter() {
            self.batch.head(|heads| {
                let start = heads.len();
                heads.resize(start + STATUS_BYTES, 0);
                let mut offset = request.offset();
                let mut chunk = transmission.status(&mut request, context, &mut heads[start..]);
                loop {
                    let (len, is_data) = disk.run_at(offset);
                    offset += len;
                    if !chunk.push(len, if is_data { 0 } else { STATE_HOLE | STATE_ZERO }) {
                        break;
                    }
                }
                let len = chunk.finish();
                heads.truncate(start + len);
            });
        }
        self.answer(number, request, Ok(()), lane);
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
