use super::*;

fn refused(model: &str, occupied: &[&str]) -> String {
    let words: Vec<_> = occupied.iter().map(|word| (*word).to_owned()).collect();
    match CardReport::new(model, &words) {
        Ok(report) => panic!("{report:?}"),
        Err(error) => error.to_string(),
    }
}

fn report(model: &str, occupied: &[&str]) -> CardReport {
    let words: Vec<_> = occupied.iter().map(|word| (*word).to_owned()).collect();
    CardReport::new(model, &words).expect("is legal")
}

#[test]
fn an_unknown_model_is_answered_with_near_names() {
    assert_eq!(
        refused("H100", &[]),
        "there is no card model \"H100\"; did you mean one of H100-80GB, H100-PCIE, H100-NVL, \
         H100-96GB?; gangline cards lists all"
    );
    assert!(refused("GB200-NVL", &[]).contains("did you mean one of GB200,"));
    assert!(refused("H200-NVX", &[]).contains("did you mean one of H200, H200-NVL,"));
    assert_eq!(
        refused("zzz", &[]),
        "there is no card model \"zzz\"; gangline cards lists all"
    );
    assert_eq!(
        refused("NVIDIA-GH200-480GB", &[]),
        "NVIDIA-GH200-480GB may be GH200-96GB or GH200-144GB; name one of them"
    );
    assert!(refused("", &[]).starts_with("there is no card model \"\""));
}

#[test]
fn words_that_cannot_be_are_named_with_what_is_accepted() {
    let a30 = |words: &[&str]| refused("A30", words);
    assert_eq!(
        a30(&["1g.5gb@0"]),
        "--occupied 1g.5gb@0: A30 has no profile 1g.5gb; accepted: 1g.6gb, 1g.6gb+me, 2g.12gb, \
         2g.12gb+me, 4g.24gb"
    );
    for start in ["1", "-1", "256", "", "x"] {
        let word = format!("2g.12gb@{start}");
        let expected =
            format!("--occupied {word}: 2g.12gb does not start at {start}; accepted: 0, 2");
        assert_eq!(a30(&[&word]), expected);
    }
    assert!(a30(&["2g.12gb@0", "1g.6gb@1"]).starts_with("--occupied 1g.6gb@1: unit 1 is taken"));
    assert!(a30(&["0x1", "0x3"]).starts_with("--occupied 0x3: unit 0 is taken"));
    assert!(a30(&["1g.6gb+me@0", "2g.12gb.me@2"]).contains("media engines"));
    assert!(a30(&["0x10"]).ends_with("accepted: at most 0xf"));
    for word in [
        "",
        "x",
        "0x",
        "-1",
        "67",
        "0b2",
        "99999999999999999999",
        "é",
    ] {
        assert!(
            a30(&[word]).contains("accepted: PROFILE@START such as 4g.24gb@0"),
            "{word}"
        );
    }
    assert!(refused("L4", &["0x1"]).starts_with("--occupied: L4 has no MIG table; accepted: A100"));
}

#[test]
fn instances_are_put_on_the_card_whatever_they_are_called() {
    let mig = report("H100-80GB", &["1g.10gb.me@6", "3g.40gb@0"])
        .mig
        .expect("has a table");
    let placed: Vec<_> = mig.occupied.iter().map(|p| (p.profile, p.start)).collect();
    assert_eq!(placed, [("3g.40gb", 0), ("1g.10gb+me", 6)]);
    assert_eq!((mig.mask, mig.flexibility), (Mask(0x4f), 4));
    let fits: Vec<_> = mig
        .profiles
        .iter()
        .map(|p| (p.name, p.fits, p.best_start))
        .collect();
    let expected = [
        ("1g.10gb", 2, Some(4)),
        ("1g.10gb+me", 0, None),
        ("1g.20gb", 1, Some(4)),
        ("2g.20gb", 1, Some(4)),
        ("3g.40gb", 0, None),
        ("4g.40gb", 0, None),
        ("7g.80gb", 0, None),
    ];
    assert_eq!(fits, expected);
    let gb200 = report("GB200", &["3g.95gb@4", "0b1"])
        .mig
        .expect("has a table");
    assert_eq!(gb200.mask, Mask(0xf1));
}

#[test]
fn programs_read_masks_and_unknown_numbers_as_documented() {
    let json = serde_json::to_value(report("H20", &["0x43"])).expect("can be written");
    assert_eq!(json["mig"]["mask"], "0x43");
    assert_eq!(
        json["mig"]["profiles"][0]["multiprocessors"],
        serde_json::Value::Null
    );
    assert_eq!(json["mig"]["profiles"][0]["engines"]["decoder"], 1);
    assert_eq!(json["model"]["pci_device_ids"][0], "2329");
    let without = serde_json::to_value(report("L4", &[])).expect("can be written");
    assert_eq!(without["mig"], serde_json::Value::Null);
    let all = serde_json::to_value(ModelList::all()).expect("can be written");
    assert_eq!(all["models"][0]["name"], "V100-16GB");
}

#[test]
fn no_line_of_the_text_ends_in_blanks() {
    for model in model::models() {
        let mut cards = vec![report(model.name, &[])];
        if model.mig.is_some() {
            cards.push(report(model.name, &["0x1"]));
            cards.push(report(model.name, &["0xf"]));
        }
        for card in &cards {
            let text = text::card(card);
            assert!(text.starts_with(model.name));
            for line in text.lines() {
                assert_eq!(line, line.trim_end(), "{}", model.name);
            }
        }
    }
}
