use std::os::unix::fs::PermissionsExt;

use super::*;

fn options(kind: NewKind, name: &str, path: &Path) -> NewOptions {
    NewOptions { kind, name: name.to_owned(), path: Some(path.to_owned()), nicforge: None, git: None }
}

fn refusal(options: &NewOptions) -> String {
    match new(options) {
        Err(CliError::Usage(text)) => text,
        other => panic!("{}: {other:?}", options.name),
    }
}

#[test]
fn all_files_have_the_authors_names() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, name, type_name, of_kind) in [
        (NewKind::Interface, "fast_ring", "FastRing", &INTERFACE),
        (NewKind::App, "x2", "X2", &APP),
        (NewKind::Stage, "slow_path", "SlowPath", &STAGE),
    ] {
        let path = folder.path().join(name);
        new(&options(kind, name, &path)).unwrap();
        for file in of_kind.files {
            let text = fs::read_to_string(path.join(file.path.replace(of_kind.name, name))).unwrap();
            assert!(!text.contains(of_kind.name) && !text.contains(of_kind.type_name), "{}", file.path);
        }
        let code = fs::read_to_string(path.join(format!("src/{name}.rs"))).unwrap();
        assert!(code.contains(&format!("for {type_name} {{")) && code.contains(&format!("{name:?}")));
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = {name:?}")) && !manifest.contains("{{"), "{manifest}");
    }
}

#[test]
fn a_repository_takes_the_place_of_the_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let git = Some("https://example.org/nicforge.git".to_owned());
    new(&NewOptions { git, ..options(NewKind::App, "mine", &path) }).unwrap();
    let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("git = \"https://example.org/nicforge.git\"") && !manifest.contains("path ="));
    assert!(!path.join("Cargo.lock").exists());
}

#[test]
fn an_existing_folder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let said = refusal(&options(NewKind::Interface, "my_ring", folder.path()));
    assert!(said.contains("--path"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let said = refusal(&options(NewKind::App, "mine", &file.join("mine")));
    assert!(said.contains("--path"), "{said}");
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write everywhere.
    if fs::write(closed.join("probe"), "").is_err() {
        let said = refusal(&options(NewKind::App, "mine", &closed.join("mine")));
        assert!(said.contains("--path") && said.contains("ermission"), "{said}");
    }
}

#[test]
fn impossible_and_taken_names_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let long = "a".repeat(NAME_LETTERS_MAX + 1);
    for (name, says) in [
        ("", "small letter"),
        ("My", "small letter"),
        ("1st", "small letter"),
        ("_x", "small letter"),
        ("a-b", "small letter"),
        ("../x", "small letter"),
        ("rïng", "small letter"),
        (&long, "at most 40"),
        ("fn", "my_fn"),
        ("std", "my_std"),
        ("nicforge", "my_nicforge"),
        ("priv_ring", "my_priv_ring"),
        ("sinic", "my_sinic"),
        ("nat", "my_nat"),
        ("hairpin", "my_hairpin"),
        ("queue", "`Queue`"),
        ("ring", "`Ring`"),
    ] {
        let said = refusal(&options(NewKind::Interface, name, &path));
        assert!(said.contains(says), "{name}: {said}");
        assert!(!path.exists(), "{name}");
    }
}

#[test]
fn missing_sources_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = NewOptions {
        nicforge: Some(folder.path().to_owned()),
        ..options(NewKind::Interface, "my_ring", &folder.path().join("new"))
    };
    assert!(refusal(&options).contains("--nicforge"));
}
