//! The build tells what is missing and how to install it.

#[path = "../build/installation.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod installation;

use installation::Installation;

#[test]
fn a_missing_header_is_told_with_the_cure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = Installation::find(Some(folder.path().to_owned()), None).expect_err("there is no header");
    let words = [
        "needs the library WiredTiger 3.2",
        "wiredtiger.h",
        "libwiredtiger-dev",
        "engine-wiredtiger-library",
    ];
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    assert!(told.contains(&folder.path().display().to_string()), "{told}");
}

#[test]
fn a_header_of_another_version_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let header = folder.path().join("wiredtiger.h");
    let line =
        |version: &str| format!("#define\tWIREDTIGER_VERSION_STRING\t\"WiredTiger {version}: (today)\"\n");
    std::fs::write(&header, line("11.1.0")).expect("a file");
    let told = Installation::find(Some(folder.path().to_owned()), None).expect_err("the version is another");
    assert!(told.contains("WiredTiger 11.1.0") && told.contains("needs WiredTiger 3.2"), "{told}");
    std::fs::write(&header, line("3.2.1")).expect("a file");
    let found = Installation::find(Some(folder.path().to_owned()), Some("/opt/lib".into())).expect("it fits");
    assert_eq!(found, Installation { header, library_folder: Some("/opt/lib".into()) });
}
