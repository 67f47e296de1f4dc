//! Each limit of an export: at the limit it passes, one over it is refused.

mod nbd;

use blockyard_wire::nbd::{BlockSizes, Export, ExportError, ExportFlags, ExportIndex, Exports};
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
        let blocks = BlockSizes { minimum, preferred, maximum, partial_zeroes: false };
        // A multiple of 3 and of each minimum.
        let found = refusal(Export { blocks, size_bytes: 3 << 20, ..export("disk") });
        assert_eq!(found, if legal { None } else { refused.clone() }, "{blocks:?}");
    }
}

/// The protocol limits strings to 4096 bytes of UTF-8 without NUL.
#[test]
fn texts_have_at_most_4096_bytes_and_no_nul() {
    type Set = fn(&mut Export, String);
    let places: [Set; 3] = [
        |export, text| export.name = text,
        |export, text| export.description = text,
        |export, text| export.contexts = vec![text],
    ];
    for set in places {
        for (text, legal) in [
            (format!("a:{}", "b".repeat(4094)), true),
            (format!("a:{}", "b".repeat(4095)), false),
            (format!("a:{}", "é".repeat(2047)), true),
            (format!("a:{}", "é".repeat(2048)), false),
            ("a:\0".into(), false),
        ] {
            let mut export = export("disk");
            set(&mut export, text);
            let refused = Some(ExportError::Text(export.name.clone()));
            assert_eq!(refusal(export), if legal { None } else { refused });
        }
    }
}

/// Clients keep sizes in signed numbers of 64 bits.
#[test]
fn sizes_are_multiples_of_the_minimum_block_below_two_to_the_63() {
    for (minimum, size_bytes, legal) in [
        (1, 0, true),
        (1, (1 << 63) - 1, true),
        (1, 1 << 63, false),
        (512, (1 << 63) - 512, true),
        (512, (1 << 63) - 1, false),
        (512, 1 << 63, false),
        (512, 511, false),
        (512, 512, true),
        (512, 513, false),
    ] {
        let blocks = BlockSizes { minimum, ..BlockSizes::DEFAULT };
        let refused = Some(ExportError::Size("disk".into()));
        let found = refusal(Export { blocks, size_bytes, ..export("disk") });
        assert_eq!(found, if legal { None } else { refused }, "{size_bytes} of {minimum}");
    }
}

#[test]
fn fast_zero_needs_write_zeroes() {
    let fast = ExportFlags::FAST_ZERO;
    let zeroes = ExportFlags::WRITE_ZEROES;
    let refused = Some(ExportError::FastZero("disk".into()));
    for (flags, error) in [
        (ExportFlags::NONE, None),
        (zeroes, None),
        (fast | zeroes, None),
        (fast, refused.clone()),
        (fast | ExportFlags::TRIM, refused),
    ] {
        assert_eq!(refusal(Export { flags, ..export("disk") }), error, "{flags:?}");
    }
}

#[test]
fn exports_have_their_own_names_and_keep_their_numbers() {
    let numbered = |names: &[(usize, &str)]| {
        Exports::numbered(names.iter().map(|(n, name)| (ExportIndex(*n), export(name))).collect())
    };
    let twice = Err(ExportError::NameTwice("b".into()));
    assert_eq!(numbered(&[(0, "a"), (1, "b"), (2, "b")]), twice);
    assert_eq!(numbered(&[(0, "b"), (1, "a"), (2, "b")]), twice);
    let exports = numbered(&[(7, "a"), (3, "b"), (5, "c")]).unwrap();
    let some = exports.only(|ExportIndex(n)| n != 3);
    assert_eq!(some, numbered(&[(7, "a"), (5, "c")]).unwrap());
    for (exports, names) in [(&exports, &["a", "b", "c"][..]), (&some, &["a", "c"])] {
        assert!(exports.iter().map(|export| &export.name).eq(names));
        for (name, number) in [("a", 7), ("b", 3), ("c", 5)] {
            let found = exports.find(name.as_bytes());
            let expected = names.contains(&name).then(|| (ExportIndex(number), export(name)));
            assert_eq!(found.map(|(index, export)| (index, export.clone())), expected);
        }
    }
    let many = |count: usize| Exports::new((0..count).map(|n| export(&n.to_string())).collect());
    assert!(many(1024).is_ok());
    assert_eq!(many(1025), Err(ExportError::TooMany));
}

#[test]
#[should_panic(expected = "each export has its own number")]
fn two_exports_with_one_number_are_an_error_of_the_caller() {
    let _ = Exports::numbered(["a", "b"].map(|name| (ExportIndex(4), export(name))).to_vec());
}
