//! P4Info: ids, names and types as p4c makes them.

use std::path::{Path, PathBuf};

use nicforge_flexnic::p4::{Options, Program};
use nicforge_p4runtime::proto::p4::config::v1::{P4Info, Preamble};
use nicforge_p4runtime::{Info, from_text, to_text};

fn own() -> Info {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4/everything.p4");
    Info::new(&Program::compile(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}")))
}

#[test]
fn a_program_with_everything_is_described() {
    let info = own().message;
    let table = |alias: &str| {
        info.tables.iter().find(|table| table.preamble.as_ref().unwrap().alias == alias).expect("the table is there")
    };
    assert_eq!(info.pkg_info.as_ref().unwrap().arch, "v1model");
    assert_eq!(table("acl").preamble.as_ref().unwrap().id, 0x0200_0123);
    assert_eq!(table("route").preamble.as_ref().unwrap().doc.as_ref().unwrap().brief, "Where packets go");
    assert_eq!(table("route").match_fields[0].name, "dst");
    assert_eq!(table("route").size, 64);
    assert_eq!(table("acl").size, 1024);
    assert_eq!(table("spread").match_fields.len(), 1, "selector fields are no match fields");
    assert_ne!(table("spread").implementation_id, 0);
    assert_eq!(table("route").direct_resource_ids.len(), 1);
    assert_ne!(table("known").const_default_action_id, 0);
    let forward = info.actions.iter().find(|action| action.preamble.as_ref().unwrap().alias == "forward").unwrap();
    assert_eq!(forward.params.iter().map(|param| param.id).collect::<Vec<_>>(), [7, 2]);
    assert_eq!(info.controller_packet_metadata.len(), 2);
    assert_eq!(info.controller_packet_metadata[0].metadata.len(), 1, "padding is left out");
    assert_eq!(info.digests[0].preamble.as_ref().unwrap().name, "learned_t");
    let parts = [info.counters.len(), info.meters.len(), info.registers.len(), info.value_sets.len()];
    assert_eq!(parts, [1; 4]);
    assert!(info.type_info.as_ref().unwrap().structs.contains_key("learned_t"));
}

#[test]
fn text_is_read_back() {
    let info = own().message;
    let text = to_text(&info).unwrap();
    assert_eq!(from_text(&text).unwrap(), info);
    assert!(from_text("tables { nonsense: 1 }").is_err());
}

/// Order does not count, and of annotations only what they say.
fn normal(mut info: P4Info) -> P4Info {
    fn id(preamble: &Option<Preamble>) -> u32 {
        preamble.as_ref().map_or(0, |preamble| preamble.id)
    }
    info.tables.sort_by_key(|part| id(&part.preamble));
    info.actions.sort_by_key(|part| id(&part.preamble));
    info.action_profiles.sort_by_key(|part| id(&part.preamble));
    info.counters.sort_by_key(|part| id(&part.preamble));
    info.direct_counters.sort_by_key(|part| id(&part.preamble));
    info.meters.sort_by_key(|part| id(&part.preamble));
    info.direct_meters.sort_by_key(|part| id(&part.preamble));
    info.registers.sort_by_key(|part| id(&part.preamble));
    info.digests.sort_by_key(|part| id(&part.preamble));
    info.value_sets.sort_by_key(|part| id(&part.preamble));
    info.controller_packet_metadata.sort_by_key(|part| id(&part.preamble));
    // p4c lists actions that no table runs, which controllers cannot use, and sometimes an empty message.
    let used: Vec<u32> = info.tables.iter().flat_map(|table| &table.action_refs).map(|action| action.id).collect();
    info.actions.retain(|action| used.contains(&id(&action.preamble)));
    info.type_info = info.type_info.filter(|types| *types != Default::default());
    for table in &mut info.tables {
        table.action_refs.sort_by_key(|action| action.id);
        table.direct_resource_ids.sort_unstable();
    }
    for profile in &mut info.action_profiles {
        profile.table_ids.sort_unstable();
    }
    info
}

fn differences(ours: &P4Info, theirs: &P4Info) -> String {
    let (ours, theirs) = (format!("{ours:#?}"), format!("{theirs:#?}"));
    let first = ours.lines().zip(theirs.lines()).position(|(a, b)| a != b).unwrap_or(0);
    let show = |text: &str| text.lines().skip(first.saturating_sub(3)).take(8).collect::<Vec<_>>().join("\n");
    format!("ours:\n{}\ntheirs:\n{}", show(&ours), show(&theirs))
}

#[test]
fn p4infos_are_those_of_p4c() {
    let Some(root) = std::env::var_os("NICFORGE_P4C").map(PathBuf::from) else {
        eprintln!("skipped: NICFORGE_P4C names no checkout of p4lang/p4c");
        return;
    };
    let (mut same, mut all) = (0, 0);
    let samples = root.join("testdata/p4_16_samples");
    let mut files: Vec<_> = std::fs::read_dir(&samples).expect("p4c has samples").flatten().map(|f| f.path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = root.join("testdata/p4_16_samples_outputs").join(format!("{name}.p4info.txtpb"));
        let Ok(text) = std::fs::read_to_string(expected) else { continue };
        let options = Options { include: vec![samples.clone()], define: Vec::new() };
        if !text.contains("arch: \"v1model\"") {
            continue;
        }
        let Ok(program) = Program::compile(&path, &options) else { continue };
        all += 1;
        let ours = normal(Info::new(&program).message);
        match from_text(&text) {
            Ok(theirs) if normal(theirs.clone()) == ours => same += 1,
            Ok(theirs) => println!("{name}: {}", differences(&ours, &normal(theirs))),
            Err(error) => println!("{name}: {error}"),
        }
    }
    println!("{same} of {all} P4Infos are the same");
    assert!(same * 100 >= all * 94, "{same} of {all}");
}
