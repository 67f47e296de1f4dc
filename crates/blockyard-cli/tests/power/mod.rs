//! Power cuts below the file of a server.
//!
//! [`fuse`] is a disk with one file that records each write, in one [`history`] with the requests
//! of the clients ([`load`]). [`cuts`] then cuts the power anywhere in that history. It draws what
//! a [`medium`] may hold after the cut, and compares it with the [`promises`] of the server.

pub(crate) mod cuts;
pub(crate) mod fuse;
pub(crate) mod history;
pub(crate) mod load;
pub(crate) mod medium;
pub(crate) mod promises;
