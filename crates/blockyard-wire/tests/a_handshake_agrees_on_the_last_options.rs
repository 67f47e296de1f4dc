//! The rules of the handshake, one by one, with the mistakes that servers have made.

mod nbd;

use blockyard_wire::nbd::handshake::GREETING_BYTES;
use blockyard_wire::nbd::number::{info, opt, rep};
use blockyard_wire::nbd::{
    Export, ExportError, ExportFlags, ExportIndex, Exports, Handshake, HandshakeEnd, Headers,
    Limits, Step, Tls,
};
use nbd::client::{
    OptionReply, context_data, counted, flags, go, info_data, option, option_replies, set_contexts,
};
use nbd::talk::Talk;
use nbd::{export, exports};

#[test]
fn the_greeting_is_that_of_fixed_newstyle() {
    let mut greeting = b"NBDMAGICIHAVEOPT".to_vec();
    greeting.extend([0, 3]);
    assert_eq!(Handshake::greeting().to_vec(), greeting);
    assert_eq!(greeting.len(), GREETING_BYTES);
}

#[test]
fn starttls_forgets_agreements_and_earlier_bytes() {
    let mut talk = Talk::new(Tls::Offered);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    assert_eq!(talk.say(&set_contexts("disk", &["base:allocation"])), Step::Answer);
    // An attacker injected options after the client's, in the same bytes and in later ones.
    talk.out.clear();
    let injected = [option(opt::STARTTLS, &[]), option(opt::EXTENDED_HEADERS, &[])].concat();
    assert_eq!(talk.say(&injected), Step::StartTls);
    assert_eq!(talk.say(&option(opt::EXTENDED_HEADERS, &[])), Step::StartTls);
    assert_eq!(option_replies(&talk.out), [(opt::STARTTLS, rep::ACK, vec![])]);

    talk.handshake.tls_started();
    let agreed = talk.go("disk");
    assert_eq!((agreed.headers, agreed.contexts.is_empty()), (Headers::Simple, true));
}

#[test]
fn half_an_option_before_tls_is_not_completed_after_it() {
    let mut talk = Talk::new(Tls::Offered);
    let half = &option(opt::STRUCTURED_REPLY, &[])[..10];
    assert_eq!(talk.say(&[&option(opt::STARTTLS, &[]), half].concat()), Step::StartTls);
    talk.handshake.tls_started();
    assert_eq!(talk.last(opt::LIST, &[]), rep::ACK);
}

#[test]
fn without_required_tls_no_option_is_answered() {
    let mut talk = Talk::new(Tls::Required);
    for kind in [opt::LIST, opt::STRUCTURED_REPLY, opt::EXTENDED_HEADERS, 999] {
        for len in [0, 70_000] {
            assert_eq!(talk.last(kind, &vec![0; len]), rep::ERR_TLS_REQD, "{kind}");
        }
    }
    assert_eq!(talk.last(opt::STARTTLS, &[0; 70_000]), rep::ERR_TOO_BIG);
    for kind in [opt::INFO, opt::GO] {
        assert_eq!(talk.last(kind, &info_data("disk", &[])), rep::ERR_TLS_REQD);
        assert_eq!(talk.last(kind, &info_data("none", &[])), rep::ERR_TLS_REQD);
    }
    assert_eq!(talk.last(opt::SET_META_CONTEXT, &[]), rep::ERR_TLS_REQD);
    assert_eq!(talk.say(&option(opt::STARTTLS, &[])), Step::StartTls);
    talk.handshake.tls_started();
    assert_eq!(talk.last(opt::STARTTLS, &[]), rep::ERR_INVALID);
    assert_eq!(talk.last(opt::LIST, &[]), rep::ACK);

    let mut plain = Talk::new(Tls::Required);
    let step = plain.say(&option(opt::EXPORT_NAME, b"disk"));
    assert_eq!((step, plain.out.len()), (Step::End(HandshakeEnd::TlsRequired), 0));

    assert_eq!(Talk::new(Tls::Off).last(opt::STARTTLS, &[]), rep::ERR_POLICY);
    assert_eq!(Talk::new(Tls::Offered).last(opt::STARTTLS, &[1]), rep::ERR_INVALID);
}

#[test]
fn an_abort_is_always_acknowledged() {
    for tls in [Tls::Off, Tls::Required] {
        for data in [&[][..], b"bye", &[0; 70_000]] {
            let mut talk = Talk::new(tls);
            talk.handshake.shut_down();
            let step = talk.say(&option(opt::ABORT, data));
            assert_eq!(step, Step::End(HandshakeEnd::Aborted));
            assert_eq!(talk.say(&option(opt::LIST, &[])), step, "later options are discarded");
            assert_eq!(option_replies(&talk.out), [(opt::ABORT, rep::ACK, vec![])]);
        }
    }
}

#[test]
fn zeroes_follow_export_name_but_never_go() {
    for (client, zeroes) in [(3, 0), (2, 0), (1, 124), (0, 124)] {
        let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
        let bytes = [flags(client), option(opt::EXPORT_NAME, b"disk")].concat();
        let mut out = Vec::new();
        let received = handshake.receive(&bytes, &exports(), &mut out);
        assert!(matches!(received.step, Step::Transmit(_)), "{client}");
        assert_eq!(out.len(), 10 + zeroes);
        assert_eq!(out[..8], (1u64 << 20).to_be_bytes());
        assert!(out[10..].iter().all(|byte| *byte == 0));
    }
    let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
    let mut out = Vec::new();
    let _ = handshake.receive(&[flags(1), go("disk")].concat(), &exports(), &mut out);
    // Parsing all replies fails if anything follows the ACK.
    let replies = option_replies(&out);
    assert_eq!(replies.last().unwrap(), &(opt::GO, rep::ACK, vec![]));
}

#[test]
fn info_and_go_give_the_same_answers() {
    let wants = [info::BLOCK_SIZE, info::NAME, 77, info::DESCRIPTION, info::NAME];
    for agreed_before in [None, Some(opt::STRUCTURED_REPLY), Some(opt::EXTENDED_HEADERS)] {
        let mut talk = Talk::new(Tls::Off);
        if let Some(kind) = agreed_before {
            assert_eq!(talk.last(kind, &[]), rep::ACK);
            assert_eq!(talk.say(&set_contexts("disk", &["x-test:dirty"])), Step::Answer);
        }
        let informed = talk.ask(opt::INFO, &info_data("disk", &wants));
        let going = talk.ask(opt::GO, &info_data("disk", &wants));
        assert_eq!(kinds_and_data(&informed), kinds_and_data(&going));
        let kinds: Vec<_> = informed.iter().map(|(_, kind, data)| (*kind, data.get(..2))).collect();
        for wanted in [info::EXPORT, info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            let times =
                kinds.iter().filter(|(_, start)| *start == Some(&wanted.to_be_bytes()[..])).count();
            assert_eq!(times, 1, "{wanted}");
        }
        assert_eq!(informed.len(), 5);
    }
}

fn kinds_and_data(replies: &[OptionReply]) -> Vec<(u32, Vec<u8>)> {
    replies.iter().map(|(_, kind, data)| (*kind, data.clone())).collect()
}

#[test]
fn the_information_about_an_export_is_correct() {
    let mut talk = Talk::new(Tls::Off);
    let informed = talk.ask(opt::INFO, &info_data("other", &[info::BLOCK_SIZE]));
    let flags = ExportFlags::number(nbd::all_flags()) | 1;
    let expected = [&[0, 0][..], &(1u64 << 20).to_be_bytes(), &flags.to_be_bytes()].concat();
    assert_eq!(informed[0].2, expected);
    let sizes = [&[0, 3][..], &[0, 0, 0, 1], &[0, 0, 16, 0], &[2, 0, 0, 0]].concat();
    assert_eq!(informed[1].2, sizes);
    let listed = talk.ask(opt::LIST, &[]);
    let servers: Vec<_> = listed.iter().map(|reply| (reply.1, reply.2.clone())).collect();
    assert_eq!(servers, [server_reply("disk"), server_reply("other"), (rep::ACK, vec![])]);
}

fn server_reply(name: &str) -> (u32, Vec<u8>) {
    (rep::SERVER, [counted(name.as_bytes()), format!("the disk {name}").into()].concat())
}

/// Besides NBD_INFO_EXPORT, which is always sent, each kind is sent if it is wanted and the export
/// has it.
#[test]
fn info_tells_what_is_wanted() {
    let mut talk = Talk::new(Tls::Off);
    let silent = Export { description: String::new(), ..export("silent") };
    talk.exports = Exports::new(vec![export("disk"), silent]).unwrap();
    for wanted in 0..16u16 {
        for name in ["disk", "silent"] {
            let wants: Vec<_> = (0..4).filter(|kind| wanted & (1 << kind) != 0).collect();
            let replies = talk.ask(opt::INFO, &info_data(name, &wants));
            let (last, told) = replies.split_last().unwrap();
            assert_eq!(last, &(opt::INFO, rep::ACK, vec![]));
            let mut told: Vec<_> = told.iter().map(|(_, _, data)| data.clone()).collect();
            told.sort_unstable();
            let description = format!("the disk {name}");
            let flags = nbd::all_flags().number() | 1;
            let size = (1u64 << 20).to_be_bytes();
            let sizes = [1u32, 4096, 32 << 20].map(u32::to_be_bytes);
            let all = [
                [&size[..], &flags.to_be_bytes()].concat(),
                name.into(),
                description.into(),
                sizes.concat(),
            ];
            let kinds: Vec<_> = (0..4u16)
                .filter(|kind: &u16| {
                    *kind == 0 || wants.contains(kind) && (*kind != 2 || name == "disk")
                })
                .collect();
            let expected: Vec<_> = kinds
                .iter()
                .map(|kind| [&kind.to_be_bytes()[..], &all[usize::from(*kind)]].concat())
                .collect();
            assert_eq!(told, expected, "{name} {wants:?}");
        }
    }
}

/// The protocol limits strings to 4096 bytes.
#[test]
fn names_and_queries_have_at_most_4096_bytes() {
    let mut talk = Talk::new(Tls::Off);
    let longest = "n".repeat(4096);
    let longer = "n".repeat(4097);
    let long = Export { name: longest.clone(), ..export("") };
    talk.exports = Exports::new(vec![long]).unwrap();
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    assert_eq!(talk.last(opt::LIST, &[]), rep::ACK);
    for ((kind, data), last) in [
        (info_request(&longest), rep::ACK),
        (info_request(&longer), rep::ERR_INVALID),
        (info_request(&longest[1..]), rep::ERR_UNKNOWN),
        (set_request(&longest, &longest), rep::ACK),
        (set_request(&longer, &longest), rep::ERR_INVALID),
        (set_request(&longest, &longer), rep::ERR_INVALID),
        (list_request(&longest, &longest), rep::ACK),
        (list_request(&longer, &longest), rep::ERR_INVALID),
        (list_request(&longest, &longer), rep::ERR_INVALID),
    ] {
        assert_eq!(talk.last(kind, &data), last, "{kind}, {} bytes", data.len());
    }
    let step = talk.say(&option(opt::EXPORT_NAME, longest.as_bytes()));
    assert!(matches!(step, Step::Transmit(_)), "{step:?}");
}

fn info_request(name: &str) -> (u32, Vec<u8>) {
    (opt::INFO, info_data(name, &[info::NAME]))
}

fn set_request(name: &str, query: &str) -> (u32, Vec<u8>) {
    (opt::SET_META_CONTEXT, context_data(name, &[query]))
}

fn list_request(name: &str, query: &str) -> (u32, Vec<u8>) {
    (opt::LIST_META_CONTEXT, context_data(name, &[query]))
}

/// Each limit of the handshake: what reaches it passes, one more does not.
#[test]
fn options_are_limited() {
    let limits = Limits { option_bytes: 100, skipped_bytes: 200, queries: 2, ..Limits::DEFAULT };
    let mut talk = Talk::limited(Tls::Off, limits);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    for (len, error) in [(100, rep::ERR_UNSUP), (101, rep::ERR_TOO_BIG), (200, rep::ERR_TOO_BIG)] {
        assert_eq!(talk.last(999, &vec![0; len]), error, "{len}");
    }
    for (queries, last) in [(2, rep::ACK), (3, rep::ERR_TOO_BIG)] {
        let data = context_data("disk", &vec!["a:b"; queries]);
        assert_eq!(talk.last(opt::SET_META_CONTEXT, &data), last);
        assert_eq!(talk.last(opt::LIST_META_CONTEXT, &data), last);
    }
    let name = option(opt::EXPORT_NAME, &[b'n'; 100]);
    assert_eq!(Talk::limited(Tls::Off, limits).say(&name), Step::End(HandshakeEnd::NoSuchExport));
    for (kind, len) in [(opt::EXPORT_NAME, 101), (999, 201)] {
        let step = Talk::limited(Tls::Off, limits).say(&option(kind, &vec![b'n'; len]));
        assert_eq!(step, Step::End(HandshakeEnd::TooLong), "{kind}");
    }
}

/// For a log: an operator sees a typing error in it. What came before TLS may be anybody's.
#[test]
fn the_last_unknown_name_is_kept_up_to_256_bytes() {
    let mut talk = Talk::new(Tls::Offered);
    assert_eq!(talk.handshake.unknown_export(), None);
    assert!(talk.exports.find(b"disk").is_some());
    assert_eq!(talk.last(opt::INFO, &info_data("dsik", &[])), rep::ERR_UNKNOWN);
    assert_eq!(talk.last(opt::INFO, &info_data("disk", &[])), rep::ACK);
    assert_eq!(talk.handshake.unknown_export(), Some(&b"dsik"[..]));
    let _ = talk.say(&option(opt::EXPORT_NAME, &[0xff; 300]));
    assert_eq!(talk.handshake.unknown_export(), Some(&[0xff; 256][..]));
    let mut talk = Talk::new(Tls::Offered);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    assert_eq!(talk.last(opt::SET_META_CONTEXT, &context_data("kisd", &[])), rep::ERR_UNKNOWN);
    assert_eq!(talk.handshake.unknown_export(), Some(&b"kisd"[..]));
    assert_eq!(talk.last(opt::STARTTLS, &[]), rep::ACK);
    assert_eq!(talk.handshake.unknown_export(), None);
}

#[test]
fn extended_headers_cannot_be_given_up_again() {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::EXTENDED_HEADERS, &[]), rep::ACK);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ERR_EXT_HEADER_REQD);
    let step = talk.say(&option(opt::EXPORT_NAME, b"disk"));
    assert_eq!(step, Step::End(HandshakeEnd::ExtendedHeaders));
}

/// [one-final-option-reply].
#[test]
fn the_data_of_unknown_options_are_read_to_the_end() {
    let mut talk = Talk::new(Tls::Off);
    for len in [0, 1, 16, 4096, 65_536, 65_537, 1 << 20] {
        let kind = if len % 2 == 0 { 4 } else { 0xffff_ffff };
        let error = if len > 65_536 { rep::ERR_TOO_BIG } else { rep::ERR_UNSUP };
        assert_eq!(talk.last(kind, &vec![0x49; len]), error, "{len}");
    }
    assert_eq!(talk.last(opt::LIST, &[]), rep::ACK);
}

/// [one-final-option-reply].
#[test]
fn a_long_option_in_pieces_is_answered_after_its_last_byte() {
    let mut talk = Talk::new(Tls::Off);
    let whole = option(4, &[0x49; 70_000]);
    for piece in [&whole[..20], &whole[20..30_000], &whole[30_000..whole.len() - 1]] {
        assert_eq!(talk.say(piece), Step::Receive);
    }
    assert_eq!(talk.say(&whole[whole.len() - 1..]), Step::Answer);
    assert_eq!(talk.last(opt::LIST, &[]), rep::ACK);
}

#[test]
fn after_a_malformed_option_the_next_one_is_understood() {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    let whole = info_data("disk", &[info::NAME]);
    let nul = info_data("di\0sk", &[]);
    let latin = [counted(&[0xff]), vec![0, 0]].concat();
    let long = info_data(&"x".repeat(4097), &[]);
    let beyond = [vec![0xff; 4], whole[4..].to_vec()].concat();
    for kind in [opt::INFO, opt::GO] {
        for data in [&whole[..whole.len() - 1], &whole[..5], &[], &nul, &latin, &long, &beyond] {
            assert_eq!(talk.last(kind, data), rep::ERR_INVALID);
        }
        let more = [&whole[..], &[0]].concat();
        assert_eq!(talk.last(kind, &more), rep::ERR_INVALID);
        assert_eq!(talk.last(kind, &info_data("none", &[])), rep::ERR_UNKNOWN);
    }
    for kind in [opt::LIST, opt::STRUCTURED_REPLY, opt::EXTENDED_HEADERS] {
        assert_eq!(talk.last(kind, &[0]), rep::ERR_INVALID);
    }
    assert_eq!(talk.go("disk").headers, Headers::Structured);
}

#[test]
fn a_long_option_is_skipped_up_to_the_limit() {
    for (len_bytes, step) in [(70_000, Step::Answer), (70_001, Step::End(HandshakeEnd::TooLong))] {
        let limits = Limits { skipped_bytes: 70_000, ..Limits::DEFAULT };
        let mut talk = Talk::limited(Tls::Off, limits);
        assert_eq!(talk.say(&option(opt::LIST, &vec![0; len_bytes])), step);
    }
}

#[test]
fn clients_of_the_old_style_are_refused() {
    // A client that starts with a request, one with other flags, and one that expects no replies to
    // options.
    for (bytes, end) in [
        (0x2560_9513u32.to_be_bytes().to_vec(), HandshakeEnd::NotNewstyle),
        (flags(4), HandshakeEnd::NotNewstyle),
        (flags(1 << 31), HandshakeEnd::NotNewstyle),
        ([flags(0), option(opt::LIST, &[])].concat(), HandshakeEnd::NotFixed),
        ([flags(2), go("disk")].concat(), HandshakeEnd::NotFixed),
        ([flags(3), vec![0; 16]].concat(), HandshakeEnd::BadMagic),
        ([flags(3), option(opt::EXPORT_NAME, b"none")].concat(), HandshakeEnd::NoSuchExport),
        ([flags(3), option(opt::EXPORT_NAME, &[0; 70_000])].concat(), HandshakeEnd::TooLong),
        (
            [flags(3), option(opt::LIST, &[])[..12].to_vec(), vec![0xff; 4]].concat(),
            HandshakeEnd::TooLong,
        ),
    ] {
        let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
        let mut out = Vec::new();
        let received = handshake.receive(&bytes, &exports(), &mut out);
        assert_eq!((received.step, received.taken), (Step::End(end), bytes.len()));
        assert!(out.is_empty());
        // The refusal is final.
        let again = handshake.receive(&go("disk"), &exports(), &mut out);
        assert_eq!((again.step, out.len()), (Step::End(end), 0));
    }
}

#[test]
fn a_server_that_shuts_down_says_so() {
    let mut talk = Talk::new(Tls::Required);
    talk.handshake.shut_down();
    for kind in [opt::GO, opt::LIST, opt::STARTTLS, 999] {
        for len in [0, 70_000] {
            assert_eq!(talk.last(kind, &vec![0; len]), rep::ERR_SHUTDOWN, "{kind}");
        }
    }
    let step = talk.say(&option(opt::EXPORT_NAME, b"disk"));
    assert_eq!(step, Step::End(HandshakeEnd::ShuttingDown));
}

/// Requests directly after GO belong to the transmission, and options after an option to the next
/// call: each call gives one answer.
#[test]
fn a_call_answers_one_option() {
    let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
    let list = option(opt::LIST, &[]);
    let mut out = Vec::new();
    let bytes = [flags(3), list.clone(), list.clone(), go("disk"), vec![9; 100]].concat();
    let mut at = 0;
    for (taken, step) in [(4 + list.len(), Step::Answer), (list.len(), Step::Answer)] {
        let received = handshake.receive(&bytes[at..], &exports(), &mut out);
        assert_eq!((received.taken, received.step), (taken, step));
        at += taken;
    }
    let received = handshake.receive(&bytes[at..], &exports(), &mut out);
    assert!(matches!(received.step, Step::Transmit(agreed) if agreed.export == ExportIndex(0)));
    assert_eq!(at + received.taken, bytes.len() - 100);
}

#[test]
fn the_empty_name_is_an_ordinary_export() {
    let none = Exports::new(vec![export("disk")]).unwrap();
    let default = Exports::new(vec![export("disk"), export("")]).unwrap();
    for (exports, found) in [(none, false), (default, true)] {
        let mut handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
        let bytes = [flags(3), go("")].concat();
        let step = handshake.receive(&bytes, &exports, &mut Vec::new()).step;
        assert_eq!(matches!(step, Step::Transmit(_)), found);
    }
}

#[test]
fn exports_that_the_protocol_cannot_describe_are_refused() {
    let good = export("disk");
    assert_refused(&good, &|export| export.name = "a\0".into());
    assert_refused(&good, &|export| export.name = "a".repeat(4097));
    assert_refused(&good, &|export| export.description = "é".repeat(2049));
    assert_refused(&good, &|export| export.contexts.push("base:allocation".into()));
    assert_refused(&good, &|export| export.contexts.push("base".into()));
    assert_refused(&good, &|export| export.contexts = (0..33).map(|n| format!("x:{n}")).collect());
    assert_refused(&good, &|export| export.blocks.minimum = 3);
    assert_refused(&good, &|export| export.blocks.minimum = 0);
    assert_refused(&good, &|export| export.blocks.minimum = 1 << 17);
    assert_refused(&good, &|export| export.blocks.preferred = 256);
    assert_refused(&good, &|export| export.blocks.maximum = 512);
    assert_refused(&good, &|export| (export.blocks.minimum, export.size_bytes) = (512, 513));
    assert_refused(&good, &|export| export.size_bytes = 1 << 63);
    assert_refused(&good, &|export| export.flags = ExportFlags::FAST_ZERO);
    assert!(Exports::new(vec![good.clone(), good.clone()]).is_err());
    assert!(numbered(&good, 1024).is_ok());
    assert!(numbered(&good, 1025).is_err());
}

fn assert_refused(good: &Export, change: &dyn Fn(&mut Export)) {
    let mut export = good.clone();
    change(&mut export);
    let error = Exports::new(vec![export]).unwrap_err();
    assert!(error.to_string().starts_with("export \""), "{error}");
}

fn numbered(good: &Export, count: usize) -> Result<Exports, ExportError> {
    Exports::new((0..count).map(|n| Export { name: n.to_string(), ..good.clone() }).collect())
}
