use alloc::{collections::BTreeSet, format};

use super::*;
use crate::device::mig::MigState;

fn name(product: &str) -> &'static str {
    find(product).map_or("none", |model| model.name)
}

#[test]
fn every_model_is_found_by_its_name_and_by_its_products() {
    let names: BTreeSet<_> = models().map(|model| model.name).collect();
    assert_eq!(names.len(), models().count());
    for model in models() {
        assert_eq!(name(model.name), model.name);
        for product in model.products {
            let found = find_with_memory(product, model.memory_mib).map(|found| found.name);
            assert_eq!(found, Some(model.name));
            let shared = format!("{product}-SHARED");
            let found = find_with_memory(&shared, model.memory_mib).map(|found| found.name);
            assert_eq!(found, Some(model.name));
        }
    }
}

#[test]
fn a_product_string_may_be_bent_but_not_guessed() {
    for product in [
        "NVIDIA-A100-SXM4-40GB",
        "NVIDIA-A100-SXM4-40GB-SHARED",
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
        "A100-SXM4-40GB",
        "nvidia a100-sxm4-40gb",
        "A100 SXM4 40GB",
    ] {
        assert_eq!(name(product), "A100-40GB", "{product}");
    }
    assert_eq!(name("Tesla T4"), "T4");
    assert_eq!(name("NVIDIA-Tesla-T4"), "T4");
    assert_eq!(name("AMD Instinct MI300X OAM"), "MI300X");
    for unknown in [
        "",
        "NVIDIA",
        "A100",
        "H100",
        "NVIDIA-A100-SXM4-40GBx",
        "NVIDIA-é",
        "né",
    ] {
        assert_eq!(name(unknown), "none", "{unknown}");
    }
}

#[test]
fn memory_chooses_between_models_of_one_product() {
    assert_eq!(name("NVIDIA-GH200-480GB"), "none");
    let found = |product, memory_mib| find_with_memory(product, memory_mib).map(|model| model.name);
    assert_eq!(found("NVIDIA-GH200-480GB", 97_871), Some("GH200-96GB"));
    assert_eq!(found("NVIDIA-GH200-480GB", 147_000), Some("GH200-144GB"));
    assert_eq!(found("NVIDIA-GB300", 257_024), Some("GB300-Station"));
    assert_eq!(found("NVIDIA-GB300", 284_208), Some("GB300"));
    assert_eq!(found("NVIDIA-H200", 143_771), Some("H200"));
    assert_eq!(found("NVIDIA-H200", 80_000), None);
    assert_eq!(found("NVIDIA-A40", 49_140), Some("A40"), "without ECC");
    assert_eq!(found("NVIDIA-H200-MIG-1g.18gb", 16_384), Some("H200"));
    assert!(found("NVIDIA-H200", 0).is_none() && found("NVIDIA-H200", u32::MAX).is_none());
}

#[test]
fn a_card_without_a_published_geometry_has_none() {
    let station = find("GB300-Station").expect("is known");
    assert!(station.mig.is_none() && !station.notes.is_empty());
    assert_eq!(find_by_pci(0x31C2), None, "either of two");
}

#[test]
fn pci_device_ids_are_those_of_the_hardware_notes() {
    let rows: [(&str, &[u16]); 14] = [
        ("A100 40 GB", &[0x20B0, 0x20B1, 0x20F1, 0x20F6]),
        ("A100 80 GB", &[0x20B2, 0x20B5, 0x20F3, 0x20F5]),
        ("A30", &[0x20B7]),
        ("H100 80 GB", &[0x2330, 0x2324]),
        ("H100 PCIe 80 GB", &[0x2331, 0x2322]),
        ("H100 NVL 94 GB", &[0x2321, 0x233A]),
        ("H100 96 GB", &[0x2342, 0x233D]),
        ("PG506 96 GB", &[0x20B6]),
        ("H20 96 GB", &[0x2329]),
        ("GH200 144 GB", &[0x2348]),
        ("H200 141 GB", &[0x2335, 0x233B]),
        ("B200 180 GB", &[0x2901]),
        ("B300", &[0x3182]),
        ("GB200", &[0x2941]),
    ];
    for (geometry, ids) in rows {
        for id in ids {
            let found = find_by_pci(*id).and_then(|model| model.mig);
            assert_eq!(found.map(|mig| mig.name), Some(geometry), "{id:X}");
        }
    }
    assert_eq!(
        find_by_pci(0x2BB5).map(|model| model.name),
        Some("RTX-PRO-6000")
    );
    assert_eq!(find_by_pci(0), None);
}

/// The number before `gb` in a profile's name, by the rule of NVIDIA's go-nvlib.
fn gigabytes(instance_mib: u32, total_mib: u32) -> u32 {
    let eighths = (8 * instance_mib).div_ceil(total_mib);
    let all = total_mib.div_ceil(1_024);
    // Half away from zero.
    (2 * eighths * all + 8) / 16
}

#[test]
fn profile_names_follow_from_memory() {
    for (eighths, expected) in [(1, 18), (2, 35), (4, 71), (8, 141)] {
        assert_eq!(gigabytes(eighths * 143_771 / 8, 143_771), expected);
    }
    for (total, names) in [(186, [23, 47, 93, 186]), (189, [24, 47, 95, 189])] {
        for (eighths, expected) in [1, 2, 4, 8].into_iter().zip(names) {
            assert_eq!(gigabytes(eighths * total * 128, total * 1_024), expected);
        }
    }
    for model in models() {
        for profile in model.mig.into_iter().flat_map(|mig| mig.profiles) {
            let whole = model
                .mig
                .and_then(|mig| mig.profiles.iter().rfind(|p| p.is_base()));
            let whole = whole.expect("has one").name;
            // The name of the whole card says how much memory the driver counted.
            let total = whole
                .split(['.', 'g'])
                .nth(2)
                .and_then(|gib| gib.parse::<u32>().ok());
            let total = total.expect("is a number") * 1_024;
            let expected = format!(
                "{}g.{}gb{}",
                profile.compute_slices,
                gigabytes(profile.memory_mib, total),
                profile.attribute.suffix()
            );
            assert_eq!(profile.name, expected, "{}", model.name);
        }
    }
}

#[test]
fn no_instance_has_more_than_its_share_of_the_card() {
    for model in models() {
        let Some(mig) = model.mig else { continue };
        let multiprocessors = model.multiprocessors.unwrap_or(u16::MAX);
        for ix in mig.indices() {
            let profile = mig.get(ix).expect("exists");
            let most = mig.most(MigState::EMPTY, ix);
            assert_eq!(most, profile.most);
            let named = format!("{} {}", model.name, profile.name);
            assert!(
                u32::from(most) * profile.memory_mib <= model.memory_mib,
                "{named}"
            );
            assert!(
                u16::from(most) * profile.multiprocessors <= multiprocessors,
                "{named}"
            );
        }
        assert!(mig.confidence <= Confidence::Inferred);
    }
}
