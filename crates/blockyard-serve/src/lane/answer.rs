//! From bios that ended to bytes to send.

use super::Lane;
use super::connection::Stage;
use super::parse::next_bio;
use crate::job::{Job, Owner, Place, Transfer, job_of};
use blockyard::bio::Bio;
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard_wire::nbd::transmission::STATUS_BYTES_MIN;
use blockyard_wire::nbd::{ANSWER_BYTES_MAX, Errno, Request};

/// Room for the descriptors of one status: 500 short ones. A client asks on from where it ends.
const STATUS_BYTES: usize = STATUS_BYTES_MIN + 4000;

impl Lane {
    /// A bio is over: its client is told, or what follows on it is submitted. Whether that was so.
    pub(super) fn ended(&mut self, disk: usize, ended: &Ended) -> bool {
        if ended.status == Status::Ok
            && let Some(next) = self.next_of(disk, ended)
        {
            self.disks[disk].submit(next, self.now);
            return true;
        }
        let Job { transfer, owner } = self.jobs.borrow_mut().remove(job_of(ended.bio.cookie));
        match owner {
            Owner::Client { connection, request } => {
                self.traffic.count(ended.bio.op, transfer.len);
                self.connections[connection].jobs -= 1;
                self.list(connection);
                self.reply(disk, connection, request, result_of(ended.status), transfer);
            }
            Owner::Lane => {
                self.flush_failed |= ended.status != Status::Ok;
                let left = self.flushes_left.as_mut().expect("a lane's own jobs are flushes");
                *left -= 1;
            }
        }
        false
    }

    #[inline]
    fn next_of(&self, disk: usize, ended: &Ended) -> Option<Bio> {
        let transfer = &self.jobs.borrow()[job_of(ended.bio.cookie)].transfer;
        next_bio(&ended.bio, transfer, self.disks[disk].disk.block_bytes())
    }

    /// Answers what never was a job; a read that is done has been one.
    pub(super) fn answer(
        &mut self,
        at: u32,
        request: Request,
        result: Result<(), Errno>,
        place: Place,
    ) {
        let Stage::Transmission { disk, .. } = self.connections[at].stage else {
            unreachable!("requests come after the handshake")
        };
        let transfer = Transfer { place, ..Transfer::new(request.offset(), 0) };
        self.list(at);
        self.reply(disk, at, request, result, transfer);
    }

    #[inline]
    fn reply(
        &mut self,
        disk: usize,
        at: u32,
        request: Request,
        result: Result<(), Errno>,
        transfer: Transfer,
    ) {
        let connection = &mut self.connections[at];
        let mut data_bytes = 0;
        if !connection.is_dead {
            let Stage::Transmission { transmission, .. } = &connection.stage else {
                unreachable!("requests come after the handshake")
            };
            let batch = &mut connection.batch;
            let mut charge = None;
            batch.head(|heads| {
                let start = heads.len();
                heads.resize(start + ANSWER_BYTES_MAX, 0);
                let answer = transmission.answer(request, result, &mut heads[start..]);
                heads.truncate(start + answer.header_bytes);
                data_bytes = answer.data_bytes;
                charge = Some(answer.charge);
            });
            batch.charge(charge.expect("it was answered"));
        }
        if data_bytes > 0 {
            self.disks[disk].disk.send(transfer, &mut connection.batch);
        } else if let Place::Pages { pages, .. } = transfer.place {
            self.pool.give(pages);
        }
    }

    /// Tells what is there, then answers.
    pub(super) fn tell_status(&mut self, at: u32, disk: usize, mut request: Request) {
        let connection = &mut self.connections[at];
        let Stage::Transmission { transmission, .. } = &connection.stage else {
            unreachable!("requests come after the handshake")
        };
        let disk = &self.disks[disk].disk;
        for context in request.contexts_left().iter() {
            connection.batch.head(|heads| {
                let start = heads.len();
                heads.resize(start + STATUS_BYTES, 0);
                let mut offset = request.offset();
                let mut chunk = transmission.status(&mut request, context, &mut heads[start..]);
                loop {
                    let (len, state) = disk.status_at(offset);
                    offset += len;
                    if !chunk.push(len, state) {
                        break;
                    }
                }
                let len = chunk.finish();
                heads.truncate(start + len);
            });
        }
        self.answer(at, request, Ok(()), Place::Nowhere);
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
