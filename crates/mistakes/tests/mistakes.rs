//! Mistakes that the compiler finds.

#[test]
fn a_workflow_that_could_not_be_replayed_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
