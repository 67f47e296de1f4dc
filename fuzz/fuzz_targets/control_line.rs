//! Any bytes at the control socket: each line is understood or refused, in whatever pieces it
//! comes, and never later than at the limit.
#![no_main]

use blockyard_serve::control::{LINE_BYTES_MAX, Request};
use libfuzzer_sys::fuzz_target;

/// Bytes that come at once.
const PIECE: usize = 61;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Some((len, request)) = Request::read(rest) {
        assert!(0 < len && len <= LINE_BYTES_MAX + 1, "a line of {len} bytes");
        let mut begun = (0..rest.len()).step_by(PIECE).map(|len| Request::read(&rest[..len]));
        if let Some(early) = begun.find(Option::is_some) {
            assert_eq!(early, Some((len, request)), "what comes later changes nothing");
        }
        rest = &rest[len..];
    }
    assert!(rest.len() <= LINE_BYTES_MAX);
});
