//! Two `serve` processes on one PostgreSQL, and one of them is killed.

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, eventually};
use crate::web::Web;

const TOML: &str = r#"
[tasks.hold]
command = ["sh", "-c", "read -r n; echo $n >> done; while [ -e hang ]; do sleep 0.05; done; echo $n"]
"#;
const SCRIPT: &str = "workflow held(n) {\n  const a = await Task.run(\"hold\", n)\n  return a + 1\n}\n";

#[test]
fn what_a_killed_server_had_under_way_the_other_one_finishes() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let place = Place::new(&[("held.wf", SCRIPT), ("outlast.toml", TOML), ("hang", "")]);
    let namespace = format!("cluster-{}", std::process::id());
    let args = ["serve", "--workflows", ".", "--database", &url, "--namespace", &namespace];
    let (one, two) = (Web::start(&place, &args), Web::start(&place, &args));
    for number in 0..6 {
        one.post("/api/v1/runs", &json!({ "workflow": "held", "id": format!("h-{number}"), "input": number })).is(201);
    }
    // What one of them was told, the other one knows.
    assert_eq!(two.get("/api/v1/runs?workflow=held").is(200).json()["runs"].as_array().unwrap().len(), 6);
    eventually("every task was begun", || place.read("done").lines().count() >= 6);
    one.signal(Signal::KILL);
    one.end();
    std::fs::remove_file(place.path("hang")).unwrap();
    for number in 0..6 {
        assert_eq!(two.result(&format!("h-{number}"))["output"], number + 1);
    }
    let (status, said) = two.stop();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!said.contains("\"level\":\"error\""), "{said}");
}
