//! Each limit of an export's contexts and block sizes: at the limit it passes, one over it is refused.

mod nbd;

use blockyard_wire::nbd::{BlockSizes, Export, ExportError, Exports};
use nbd::export;

fn refusal(export: Export) -> Option<ExportError> {
    Exports::new(vec![export]).err()
}

#[test]
fn contexts_are_at_most_32_and_differ() {
    let names = |count: u32| (0..count).map(|n| format!("x-test:{n}")).collect::<Vec<_>>();
    let with = |contexts| refusal(Export { contexts, ..export("disk") });
    let refused = Some(ExportError::Contexts("disk".into()));
    assert_eq!(with(names(32)), None);
    assert_eq!(with(names(33)), refused);
    for repeated in 0..31 {
        let mut contexts = names(32);
        contexts[31] = contexts[repeated].clone();
        assert_eq!(with(contexts), refused, "context {repeated} twice");
    }
    for malformed in ["x-test", ":leaf", "x-test:"] {
        assert_eq!(with(vec![malformed.into()]), refused, "{malformed}");
    }
}

#[test]
fn block_sizes_are_powers_of_two_in_order() {
    let refused = Some(ExportError::BlockSizes("disk".into()));
    for (minimum, preferred, maximum, legal) in [
        (1, 512, 512, true),
        (1, 512, 511, false),
        (1, 256, 512, false),
        (0, 512, 512, false),
        (3, 512, 512, false),
        (1, 513, 1024, false),
        (512, 512, 512, true),
        (1024, 512, 1024, false),
        (1 << 16, 1 << 16, 1 << 16, true),
        (1 << 17, 1 << 17, 1 << 17, false),
    ] {
        let blocks = BlockSizes { minimum, preferred, maximum };
        // A multiple of 3 and of each minimum.
        let found = refusal(Export { blocks, size_bytes: 3 << 20, ..export("disk") });
        assert_eq!(found, if legal { None } else { refused.clone() }, "{blocks:?}");
    }
}
