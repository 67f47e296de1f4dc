//! Any bytes as a question over HTTP: understood or refused, in whatever pieces they come, and
//! never later than at the limit.
#![no_main]

use blockyard_serve::http::{QUESTION_BYTES_MAX, Question};
use libfuzzer_sys::fuzz_target;

/// Bytes that come at once.
const PIECE: usize = 61;

fuzz_target!(|bytes: &[u8]| {
    let whole = Question::read(bytes);
    if let Some(Ok(question)) = whole {
        assert!(!question.path.contains([' ', '?', '\r']), "{question:?}");
    }
    let mut begun = (0..bytes.len()).step_by(PIECE).map(|len| Question::read(&bytes[..len]));
    if let Some(early) = begun.find(Option::is_some) {
        assert_eq!(early, whole, "what comes later changes nothing");
    }
    assert!(whole.is_some() || bytes.len() < QUESTION_BYTES_MAX);
});
