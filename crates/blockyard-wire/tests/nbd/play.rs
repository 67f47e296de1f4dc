//! Any bytes as a connection, for the fuzz target `nbd_server` and proptest.
//!
//! The first eight bytes choose the exports and how the rest is split. The rest comes from the
//! client.

use super::client::{option_replies, replies};
use super::server::Server;
use super::{all_flags, export};
use blockyard_wire::nbd::number::rep;
use blockyard_wire::nbd::{
    Agreed, BlockSizes, Command, Errno, Export, ExportFlags, Exports, Handshake, HandshakeEnd,
    Headers, Limits, Step, Tls, TransmissionEnd,
};

/// Bytes that choose the exports.
pub(crate) const SETTING_BYTES: usize = 8;

/// The longest connection that is split at every byte, which would take too long for longer ones.
const FINEST_BYTES: usize = 1000;

/// The outcome of a connection.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Outcome {
    pub(crate) negotiated: Vec<u8>,
    pub(crate) agreed: Option<Agreed>,
    pub(crate) refused: Option<HandshakeEnd>,
    pub(crate) sent: Vec<u8>,
    pub(crate) asked: Vec<(Command, u64, u64, bool)>,
    pub(crate) end: Option<TransmissionEnd>,
}

const LIMITS: Limits = Limits {
    option_bytes: 4096,
    skipped_bytes: 1 << 16,
    queries: 16,
    requests: 4,
    request_bytes: 1 << 16,
};

/// Plays `bytes` split in three ways, with equal outcomes, and reads the replies like a client.
pub(crate) fn play(bytes: &[u8]) -> Option<Outcome> {
    let (setting, bytes) = bytes.split_first_chunk::<SETTING_BYTES>()?;
    let finest = if bytes.len() > FINEST_BYTES { 61 } else { 1 };
    let cuts = [usize::MAX, finest, usize::from(setting[7]) + 1];
    let [whole, single, pieces] = cuts.map(|cut| connection(setting, bytes, cut));
    assert!(whole == single, "{whole:?}\ncut everywhere\n{single:?}");
    assert!(whole == pieces, "{whole:?}\ncut in pieces\n{pieces:?}");
    Some(whole)
}

fn connection(setting: &[u8; SETTING_BYTES], bytes: &[u8], cut: usize) -> Outcome {
    let exports = served(setting);
    let tls = [Tls::Off, Tls::Offered, Tls::Required][usize::from(setting[0] % 3)];
    let mut handshake = Handshake::new(tls, LIMITS);
    let mut outcome = Outcome::default();
    // If TLS was requested, it starts here.
    let (before, after) = bytes.split_at(usize::from(setting[6]).min(bytes.len()));
    let mut rest = Vec::new();
    for (part, ends) in [(before, true), (after, false)] {
        rest.clear();
        let mut step = Step::Receive;
        for piece in part.chunks(cut) {
            rest.extend(piece);
            step = negotiate(&mut handshake, &exports, &mut rest, &mut outcome.negotiated);
        }
        match step {
            Step::StartTls if ends => handshake.tls_started(),
            Step::End(end) => outcome.refused = Some(end),
            Step::Transmit(agreed) if outcome.agreed.is_none() => outcome.agreed = Some(agreed),
            _ => {}
        }
        if ends && outcome.agreed.is_some() {
            rest.extend(after);
            break;
        }
    }
    check_negotiated(&outcome);
    if let Some(agreed) = outcome.agreed {
        transmit(agreed, setting, &rest, cut, &mut outcome);
    }
    outcome
}

/// Negotiates as far as possible with `rest`, which keeps the bytes that were not taken.
fn negotiate(
    handshake: &mut Handshake,
    exports: &Exports,
    rest: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Step {
    loop {
        let received = handshake.receive(rest, exports, out);
        rest.drain(..received.taken);
        match received.step {
            Step::Answer => {}
            step => return step,
        }
    }
}

fn transmit(
    agreed: Agreed,
    setting: &[u8; SETTING_BYTES],
    bytes: &[u8],
    cut: usize,
    outcome: &mut Outcome,
) {
    let mut server = Server::limited(agreed, LIMITS);
    server.fails = Errno::ALL.get(usize::from(setting[5])).copied();
    bytes.chunks(cut).for_each(|piece| server.receive(piece));
    let mut lens = server.data_lens.iter();
    let done = replies(&server.sent, agreed.headers, |_| match agreed.headers {
        Headers::Simple => *lens.next().expect("length of a successful reply"),
        _ => 0,
    });
    for (_, reply) in done {
        assert!(reply.error == 0 || Errno::ALL.iter().any(|errno| errno.number() == reply.error));
    }
    outcome.sent = server.sent;
    outcome.asked = server.asked;
    outcome.end = server.end;
}

/// Returns two exports with the flags and block sizes of the setting.
fn served(setting: &[u8; SETTING_BYTES]) -> Exports {
    let mut flags = if setting[1] & 1 == 0 { all_flags() } else { ExportFlags::NONE };
    if setting[1] & 2 != 0 {
        flags = flags | ExportFlags::READ_ONLY;
    }
    let minimum = 1 << (setting[2] % 13);
    let partial_zeroes = setting[1] & 4 != 0;
    let blocks = BlockSizes { minimum, preferred: 4096, maximum: 1 << 12, partial_zeroes };
    let size_bytes = (1 << 14) + u64::from(minimum) * u64::from(setting[3] % 8);
    let exports = ["", "disk"].map(|name| Export { flags, blocks, size_bytes, ..export(name) });
    Exports::new(exports.to_vec()).expect("valid exports")
}

/// Checks that the replies to every option are complete.
fn check_negotiated(outcome: &Outcome) {
    let Some(agreed) = outcome.agreed else {
        let replies = option_replies(&outcome.negotiated);
        assert!(
            replies.last().is_none_or(|(_, kind, _)| *kind == rep::ACK || *kind >= rep::ERR),
            "{replies:?}"
        );
        return;
    };
    // The answer to EXPORT_NAME is not a reply to an option.
    assert!(outcome.negotiated.windows(8).any(|size| size == agreed.size_bytes.to_be_bytes()));
}
