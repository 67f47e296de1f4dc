//! A minimal client, and a server over a disk in memory.
#![allow(clippy::cast_possible_truncation, reason = "the disks of tests are small")]
#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod client;
pub(crate) mod play;

pub(crate) mod server;
pub(crate) mod talk;

use blockyard_wire::nbd::{
    Agreed, BASE_ALLOCATION, BlockSizes, ContextSet, Export, ExportFlags, ExportIndex, Exports,
    Handshake, Headers, Limits, MetaContext, Step, Tls,
};
use client::{go, option, set_contexts};

use blockyard_wire::nbd::number::opt;

/// All capabilities.
pub(crate) fn all_flags() -> ExportFlags {
    ExportFlags::FLUSH
        | ExportFlags::FUA
        | ExportFlags::TRIM
        | ExportFlags::WRITE_ZEROES
        | ExportFlags::FAST_ZERO
        | ExportFlags::CACHE
        | ExportFlags::CAN_MULTI_CONN
}

/// An export of 1 MiB with all capabilities.
pub(crate) fn export(name: &str) -> Export {
    Export {
        name: name.into(),
        description: format!("the disk {name}"),
        size_bytes: 1 << 20,
        blocks: BlockSizes::DEFAULT,
        flags: all_flags(),
        contexts: vec![BASE_ALLOCATION.into(), "x-test:dirty".into()],
    }
}

/// Exports "disk" and "other".
pub(crate) fn exports() -> Exports {
    Exports::new(vec![export("disk"), export("other")]).unwrap()
}

/// Returns the agreement for `export` after a handshake that asks for `headers` and `contexts`.
pub(crate) fn agree(export: Export, headers: Headers, contexts: &[&str]) -> Agreed {
    let name = export.name.clone();
    let exports = Exports::new(vec![export]).unwrap();
    let mut bytes = client::flags(3);
    match headers {
        Headers::Simple => {}
        Headers::Structured => bytes.extend(option(opt::STRUCTURED_REPLY, &[])),
        Headers::Extended => bytes.extend(option(opt::EXTENDED_HEADERS, &[])),
    }
    if !contexts.is_empty() {
        bytes.extend(set_contexts(&name, contexts));
    }
    bytes.extend(go(&name));
    let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
    let mut at = 0;
    let mut out = Vec::new();
    loop {
        let received = handshake.receive(&bytes[at..], &exports, &mut out);
        at += received.taken;
        match received.step {
            Step::Answer => {}
            Step::Transmit(agreed) => {
                assert_eq!(agreed.export, ExportIndex(0));
                return agreed;
            }
            step => panic!("{step:?}"),
        }
    }
}

/// The positions in a set.
pub(crate) fn places(set: ContextSet) -> Vec<u8> {
    set.iter().map(|MetaContext(place)| place).collect()
}
