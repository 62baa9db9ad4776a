//! A test that skips is seen to.

#[path = "common/skip.rs"]
mod skip;

#[test]
#[ignore = "run by the other test"]
fn skips() {
    skip::skipped("for a test");
}

#[test]
fn what_a_passing_test_skips_is_seen() {
    let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
    let output = tests.args(["--exact", "skips", "--ignored"]).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.trim(), "skipped: for a test");
}
