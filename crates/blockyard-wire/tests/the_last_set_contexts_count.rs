//! Metadata contexts in the handshake: listing them, setting them, and losing them.

mod nbd;

use blockyard_wire::nbd::number::{opt, rep};
use blockyard_wire::nbd::{Step, Tls};
use nbd::client::{context_data, counted, info_data, set_contexts};
use nbd::places;
use nbd::talk::Talk;

/// The flags of an export: it takes DF, and a status of named contexts.
const DF: u16 = 1 << 7;
const NAMED: u16 = 1 << 12;

#[test]
fn df_and_named_contexts_are_offered_only_if_they_can_be_used() {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(told_flags(&mut talk), 0);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    assert_eq!(talk.say(&set_contexts("disk", &["base:allocation"])), Step::Answer);
    assert_eq!(told_flags(&mut talk), DF);
    assert_eq!(talk.last(opt::EXTENDED_HEADERS, &[]), rep::ACK);
    assert_eq!(told_flags(&mut talk), DF | NAMED);
    assert_eq!(talk.say(&set_contexts("disk", &[])), Step::Answer);
    assert_eq!(told_flags(&mut talk), DF);
}

/// Returns those of the two flags that the server tells.
fn told_flags(talk: &mut Talk) -> u16 {
    let replies = talk.ask(opt::INFO, &info_data("disk", &[]));
    u16::from_be_bytes(replies[0].2[10..].try_into().unwrap()) & (DF | NAMED)
}

/// [contexts-of-last-set].
#[test]
fn the_last_set_contexts_of_the_entered_export_count() {
    let both = ["x-test:dirty", "base:allocation", "x-test:dirty", "y:z", "base:", "junk"];

    let mut talk = structured();
    let replies = talk.ask(opt::SET_META_CONTEXT, &context_data("disk", &both));
    let expected = [
        context(0, "base:allocation"),
        context(1, "x-test:dirty"),
        (opt::SET_META_CONTEXT, rep::ACK, vec![]),
    ];
    assert_eq!(replies, expected);
    assert_eq!(places(talk.go("disk").contexts), [0, 1]);

    // Set for another export.
    let mut talk = structured();
    assert_eq!(talk.say(&set_contexts("other", &both)), Step::Answer);
    assert_eq!(places(talk.go("disk").contexts), [0; 0]);

    // Set for this export, and then for another one.
    let mut talk = structured();
    assert_eq!(talk.say(&set_contexts("disk", &both)), Step::Answer);
    assert_eq!(talk.say(&set_contexts("other", &both)), Step::Answer);
    assert_eq!(places(talk.go("disk").contexts), [0; 0]);

    // Set again, and failed in every possible way.
    let no_export = context_data("none", &both);
    let too_long = vec![0; 70_000];
    let too_many = context_data("disk", &vec!["a:b"; 1025]);
    let ways: [(&[u8], u32); 4] = [
        (&no_export, rep::ERR_UNKNOWN),
        (&[1, 2, 3], rep::ERR_INVALID),
        (&too_long, rep::ERR_TOO_BIG),
        (&too_many, rep::ERR_TOO_BIG),
    ];
    for (data, error) in ways {
        let mut talk = structured();
        assert_eq!(talk.say(&set_contexts("disk", &both)), Step::Answer);
        assert_eq!(talk.last(opt::SET_META_CONTEXT, data), error);
        assert_eq!(places(talk.go("disk").contexts), [0; 0], "{error:x}");
    }

    // Without structured replies.
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::SET_META_CONTEXT, &context_data("disk", &both)), rep::ERR_INVALID);
    assert_eq!(places(talk.go("disk").contexts), [0; 0]);
}

fn structured() -> Talk {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    talk
}

fn context(id: u8, name: &str) -> (u32, u32, Vec<u8>) {
    (opt::SET_META_CONTEXT, rep::META_CONTEXT, [&[0, 0, 0, id], name.as_bytes()].concat())
}

#[test]
fn contexts_are_listed_by_name_by_namespace_or_all() {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    assert_eq!(talk.say(&set_contexts("disk", &["x-test:dirty"])), Step::Answer);
    for (queries, names) in [
        (&[][..], &["base:allocation", "x-test:dirty"][..]),
        (&["base:"], &["base:allocation"]),
        (&["x-test:", "base:allocation"], &["base:allocation", "x-test:dirty"]),
        (&["x-test:dirty", "x-test:"], &["x-test:dirty"]),
        (&["bas", "base", ":", "", "base:alloc", "unknown:"], &[]),
    ] {
        let replies = talk.ask(opt::LIST_META_CONTEXT, &context_data("disk", queries));
        let mut expected: Vec<_> = names
            .iter()
            .map(|name| (rep::META_CONTEXT, [&[0; 4], name.as_bytes()].concat()))
            .collect();
        expected.push((rep::ACK, vec![]));
        let replies: Vec<_> = replies.into_iter().map(|(_, kind, data)| (kind, data)).collect();
        assert_eq!(replies, expected, "{queries:?}");
    }
    // Listing changes nothing.
    assert_eq!(places(talk.go("disk").contexts), [1]);
}

/// The answer to the permitted number of queries is as short as the list of contexts, and more
/// queries are refused with one short reply: a server cannot be made to send more than it reads.
#[test]
fn a_flood_of_queries_has_a_short_answer() {
    let mut talk = Talk::new(Tls::Off);
    assert_eq!(talk.last(opt::STRUCTURED_REPLY, &[]), rep::ACK);
    for kind in [opt::LIST_META_CONTEXT, opt::SET_META_CONTEXT] {
        let replies = talk.ask(kind, &context_data("disk", &vec!["base:allocation"; 1024]));
        assert_eq!(replies.len(), 2);
        for count in [1025, 3000, 1_000_000] {
            let data = context_data("disk", &vec!["base:allocation"; count]);
            assert_eq!(talk.last(kind, &data), rep::ERR_TOO_BIG);
            assert!(talk.out.len() < 100);
        }
        // A number of queries without the queries.
        let data = [counted(b"disk"), vec![0xff; 4]].concat();
        assert_eq!(talk.last(kind, &data), rep::ERR_INVALID);
    }
}
