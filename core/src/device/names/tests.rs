use alloc::{format, string::ToString, vec::Vec};

use super::{
    label::{Clique, MigConfigState, Product, slice_label},
    *,
};
use crate::device::model::models;

#[test]
fn resource_names_mean_what_the_device_plugins_mean_and_print_back() {
    let slice = |suffix| SliceName::new(suffix).expect("is a profile");
    let cards = |resource| card_kind(resource).expect("is in the table");
    let known = [
        (
            "nvidia.com/gpu",
            ResourceMeaning::Cards(cards("nvidia.com/gpu")),
        ),
        (
            "nvidia.com/gpu.shared",
            ResourceMeaning::SharedCards(cards("nvidia.com/gpu")),
        ),
        (
            "nvidia.com/mig-1g.10gb",
            ResourceMeaning::Slice(slice("1g.10gb")),
        ),
        (
            "nvidia.com/mig-1g.10gb.me",
            ResourceMeaning::Slice(slice("1g.10gb.me")),
        ),
        (
            "nvidia.com/mig-1g.24gb.me.all",
            ResourceMeaning::Slice(slice("1g.24gb.me.all")),
        ),
        (
            "nvidia.com/mig-1g.24gb-me",
            ResourceMeaning::Slice(slice("1g.24gb-me")),
        ),
        (
            "nvidia.com/mig-1g.10gb.shared",
            ResourceMeaning::SharedSlice(slice("1g.10gb")),
        ),
        (
            "nvidia.com/mig-1g.24gb.gfx.shared",
            ResourceMeaning::SharedSlice(slice("1g.24gb.gfx")),
        ),
        ("amd.com/gpu", ResourceMeaning::Cards(cards("amd.com/gpu"))),
        (
            "amd.com/cpx_nps4",
            ResourceMeaning::Partition(Partition {
                compute: "cpx",
                memory: "nps4",
            }),
        ),
        (
            "gpu.intel.com/xe",
            ResourceMeaning::Cards(cards("gpu.intel.com/xe")),
        ),
        (
            "nvidia.com/gpumem",
            ResourceMeaning::Part(CardPart::MemoryMib),
        ),
        (
            "nvidia.com/gpucores",
            ResourceMeaning::Part(CardPart::ComputePercent),
        ),
        (
            "aws.amazon.com/neuroncore",
            ResourceMeaning::Part(CardPart::NeuronCores),
        ),
    ];
    for (resource, expected) in known {
        assert_eq!(meaning(resource), Some(expected), "{resource}");
        assert_eq!(expected.to_string(), resource);
    }
}

#[test]
fn every_kind_of_cards_and_every_part_is_read_back() {
    for kind in &CARD_KINDS {
        assert_eq!(meaning(kind.resource), Some(ResourceMeaning::Cards(kind)));
    }
    for part in CardPart::ALL {
        assert_eq!(meaning(part.resource()), Some(ResourceMeaning::Part(part)));
    }
}

#[test]
fn other_names_are_plain_resources() {
    for resource in [
        "",
        "cpu",
        "nvidia.com",
        "nvidia.com/",
        "nvidia.com/gpus",
        "nvidia.com/mig-",
        "nvidia.com/mig-.shared",
        "nvidia.com/mig-1g",
        "nvidia.com/mig-1g.gb",
        "nvidia.com/mig-g.5gb",
        "nvidia.com/mig-1g.5gbme",
        "nvidia.com/mig-1g.5gb+me",
        "nvidia.com/mig-1G.5GB",
        "nvidia.com/mig-1c.1g.5gb",
        "nvidia.com/mig-é",
        "amd.com/gpu.shared",
        "amd.com/cpx",
        "amd.com/cpx_nps9",
        ".shared",
        "nvidia.com/gpu.shared.shared",
    ] {
        assert_eq!(meaning(resource), None, "{resource}");
    }
}

#[test]
fn profile_names_and_resource_names_go_both_ways() {
    for mig in models().filter_map(|model| model.mig) {
        for ix in mig.indices() {
            let profile = mig.get(ix).expect("exists");
            let all: Vec<_> = [profile.name]
                .iter()
                .chain(profile.aliases)
                .copied()
                .collect();
            for name in all {
                let resource = format!("nvidia.com/mig-{}", SliceSuffix(name));
                assert!(resource.len() <= 63);
                let Some(ResourceMeaning::Slice(slice)) = meaning(&resource) else {
                    panic!("{resource} is no slice");
                };
                assert_eq!(slice.to_string(), name);
                assert_eq!(slice.profile(mig), Some(ix));
            }
        }
        assert_eq!(
            SliceName::new("9g.999gb").and_then(|slice| slice.profile(mig)),
            None
        );
    }
    let two = SliceName::new("1g.24gb.me.gfx").expect("is a profile");
    assert_eq!(two.to_string(), "1g.24gb+me+gfx");
}

#[test]
fn product_labels_tell_sharing_and_strategy_single() {
    let product = |value| {
        let product = Product::new(value);
        (product.name, product.shared, product.mig)
    };
    assert_eq!(product("NVIDIA-H200"), ("NVIDIA-H200", false, None));
    assert_eq!(product("NVIDIA-H200-SHARED"), ("NVIDIA-H200", true, None));
    assert_eq!(
        product("A100-SXM4-40GB-MIG-1g.5gb-SHARED"),
        ("A100-SXM4-40GB", true, Some("1g.5gb"))
    );
    assert_eq!(product("A30-MIG-INVALID"), ("A30", false, Some("INVALID")));
    assert_eq!(product(""), ("", false, None));
}

#[test]
fn labels_about_one_profile_are_taken_apart() {
    let fact = |key| slice_label(key).map(|label| (label.slice.suffix(), label.fact));
    assert_eq!(
        fact("nvidia.com/mig-1g.5gb.count"),
        Some(("1g.5gb", "count"))
    );
    assert_eq!(
        fact("nvidia.com/mig-1g.5gb.me.slices.gi"),
        Some(("1g.5gb.me", "slices.gi"))
    );
    assert_eq!(
        fact("nvidia.com/mig-1g.24gb.me.all.engines.jpeg"),
        Some(("1g.24gb.me.all", "engines.jpeg"))
    );
    for key in [
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/mig-count",
        "nvidia.com/mig.strategy",
    ] {
        assert_eq!(fact(key), None, "{key}");
    }
}

#[test]
fn cliques_and_states_are_read() {
    let clique = Clique::new("1e3f-c2.0").expect("is whole");
    assert_eq!((clique.cluster, clique.clique), ("1e3f-c2", "0"));
    for broken in ["", "1e3f", ".", "a.", ".0"] {
        assert_eq!(Clique::new(broken), None, "{broken}");
    }
    let changing = |value| MigConfigState::new(value).map(MigConfigState::is_changing);
    assert_eq!(changing("pending"), Some(true));
    assert_eq!(changing("success"), Some(false));
    assert_eq!(changing("whatever"), None);
}
