use proptest::prelude::*;

use super::*;

fn milli(text: &str) -> Result<i128, QuantityError> {
    Quantity::new(text).milli()
}

fn units(text: &str) -> i64 {
    Quantity::new(text).units().unwrap()
}

#[test]
fn every_suffix_means_what_kubernetes_says() {
    for (text, expected) in [
        ("0", 0),
        ("7", 7),
        ("+1", 1),
        ("007", 7),
        ("1.", 1),
        ("1k", 1_000),
        ("1M", 1_000_000),
        ("1G", 1_000_000_000),
        ("1T", 1_000_000_000_000),
        ("1P", 1_000_000_000_000_000),
        ("1E", 1_000_000_000_000_000_000),
        ("1Ki", 1 << 10),
        ("1Mi", 1 << 20),
        ("1Gi", 1 << 30),
        ("1Ti", 1 << 40),
        ("1Pi", 1 << 50),
        ("1Ei", 1 << 60),
        ("1.5Gi", 1_610_612_736),
        ("1e3", 1_000),
        ("1E3", 1_000),
        ("1e+3", 1_000),
        ("12.5e1", 125),
        ("2500e-2", 25),
        ("9223372036854775807", i64::MAX),
        ("0e99999999999999999999", 0),
    ] {
        assert_eq!(units(text), expected, "{text}");
    }
    for (text, expected) in [
        ("100m", 100),
        ("0.5", 500),
        (".5", 500),
        ("1500u", 2),
        ("3", 3000),
    ] {
        assert_eq!(milli(text), Ok(expected), "{text}");
    }
}

#[test]
fn fractions_are_rounded_up_however_small() {
    assert_eq!(units("0.5"), 1);
    assert_eq!(units("1001m"), 2);
    assert_eq!(units("1.0000000000000000000000000000000000000001Ki"), 1025);
    assert_eq!(milli("1n"), Ok(1));
    assert_eq!(milli("1e-1000000000000000000000"), Ok(1));
    assert_eq!(milli("0e-1000000000000000000000"), Ok(0));
    assert_eq!(milli("0.1Ki"), Ok(102_400));
}

#[test]
fn what_cannot_be_counted_is_refused_with_its_text() {
    let malformed = |text: &str| QuantityError::Malformed { text: text.into() };
    let suffix = |text: &str, suffix: &str| QuantityError::UnknownSuffix {
        text: text.into(),
        suffix: suffix.into(),
    };
    let too_large = |text: &str| QuantityError::TooLarge {
        text: text.into(),
        limit: i64::MAX,
    };
    for (text, error) in [
        ("", QuantityError::Empty),
        ("-", malformed("-")),
        (".", malformed(".")),
        ("Gi", malformed("Gi")),
        (" 1", malformed(" 1")),
        ("--1", malformed("--1")),
        ("NaN", malformed("NaN")),
        ("٣", malformed("٣")),
        ("1_000", suffix("1_000", "_000")),
        ("1 ", suffix("1 ", " ")),
        ("1.2.3", suffix("1.2.3", ".3")),
        ("1ki", suffix("1ki", "ki")),
        ("1GB", suffix("1GB", "GB")),
        ("1e", suffix("1e", "e")),
        ("1e+", suffix("1e+", "e+")),
        ("1e1.5", suffix("1e1.5", "e1.5")),
        ("1٣", suffix("1٣", "٣")),
        ("0x10", suffix("0x10", "x10")),
        ("1e30", too_large("1e30")),
        ("12E", too_large("12E")),
        ("8Ei", too_large("8Ei")),
        ("9223372036854775808", too_large("9223372036854775808")),
        (
            "1e99999999999999999999",
            too_large("1e99999999999999999999"),
        ),
        ("-1", QuantityError::Negative { text: "-1".into() }),
        ("-1n", QuantityError::Negative { text: "-1n".into() }),
    ] {
        assert_eq!(milli(text), Err(error), "{text}");
    }
    assert_eq!(milli("-0"), Ok(0));
}

#[test]
fn long_texts_are_read_in_full_and_shown_in_part() {
    assert_eq!(
        units(&format!("{}1.{}", "0".repeat(100_000), "0".repeat(100_000))),
        1
    );
    assert_eq!(units(&format!("1.{}1", "0".repeat(100_000))), 2);
    let message = milli(&"9".repeat(100_000)).unwrap_err().to_string();
    assert!(message.len() < 200, "{message}");
    assert!(message.contains("too large"), "{message}");
}

#[test]
fn bare_numbers_are_read_from_json_and_yaml() {
    let text = |json: &str| serde_json::from_str::<Quantity>(json).unwrap().0;
    assert_eq!(&*text("2"), "2");
    assert_eq!(&*text("-2"), "-2");
    assert_eq!(&*text("0.1"), "0.1");
    assert_eq!(&*text("\"100m\""), "100m");
    assert!(serde_json::from_str::<Quantity>("true").is_err());
    let yaml = |yaml: &str| serde_saphyr::from_str::<Quantity>(yaml).unwrap();
    assert_eq!(yaml("100m").milli(), Ok(100));
    assert_eq!(yaml("0.1").milli(), Ok(100));
    assert_eq!(yaml("1.5Gi").units(), Ok(1_610_612_736));
    assert_eq!(yaml("1e3").units(), Ok(1000));
    assert_eq!(yaml("12").units(), Ok(12));
    assert!(yaml("1e30").units().is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = milli(&text);
    }

    #[test]
    fn no_text_of_the_right_letters_panics(text in "[-+]?[0-9.eEinumkKMGTP]{0,30}") {
        let _ = milli(&text);
    }

    #[test]
    fn a_number_survives_being_written_and_read(number in 0..=i64::MAX) {
        prop_assert_eq!(Quantity::new(number.to_string()).units(), Ok(number));
        prop_assert_eq!(milli(&format!("{number}m")), Ok(i128::from(number)));
    }

    // Against long division on i128, which needs no moving of points.
    #[test]
    fn decimals_are_exact(
        whole in 0_i128..1_000_000,
        fraction in 0_i128..1_000_000,
        suffix in 0_usize..10,
    ) {
        let (suffix, nano) = [
            ("n", 1), ("u", 1_000), ("m", 1_000_000), ("", 1_000_000_000),
            ("k", 1_000_000_000_000), ("Ki", 1_024_000_000_000), ("Mi", 1_048_576_000_000_000),
            ("M", 1_000_000_000_000_000), ("G", 1_000_000_000_000_000_000),
            ("e-3", 1_000_000),
        ][suffix];
        let text = format!("{whole}.{fraction:06}{suffix}");
        let pico_of_millionth = (whole * 1_000_000 + fraction) * nano;
        let per_milli = 1_000_000 * 1_000_000;
        let expected = (pico_of_millionth + per_milli - 1) / per_milli;
        prop_assert_eq!(milli(&text), Ok(expected), "{}", text);
    }
}
