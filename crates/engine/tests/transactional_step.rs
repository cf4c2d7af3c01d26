//! The example of a transfer does what it says.
#![cfg(feature = "sqlite")]

use std::process::Command;

#[test]
fn the_transfer_happens_once_however_often_the_example_runs() {
    let deps = std::env::current_exe().unwrap();
    let built = deps.parent().unwrap().parent().unwrap().join("examples").join("transactional_step");
    assert!(built.exists(), "{} is not built: run the whole package's tests, not this file alone", built.display());
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = Command::new(&built).arg(folder.path().join("bank.db")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text, "transfer-1 left ann with 70 and ben with 30\nann has 70\nben has 30\n");
    }
}
