//! `outlast bench`: it measures, and leaves nothing behind.

use serde_json::Value;

use crate::place::Place;

fn figures(place: &Place, database: &[&str]) -> Vec<Value> {
    let said = place.call(&[&["bench", "-w", "W3", "-o", "json"], database].concat()).exits(0);
    said.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_file_is_measured_in_a_folder_that_is_gone_afterwards() {
    let place = Place::new(&[]);
    let figures = figures(&place, &[]);
    assert_eq!(figures.len(), 1, "{figures:?}");
    let figure = &figures[0];
    assert_eq!((figure["bench"].as_str(), figure["store"].as_str()), (Some("W3"), Some("sqlite")), "{figure}");
    for number in ["value", "bare", "ratio"] {
        assert!(figure[number].as_f64().is_some_and(|value| value > 0.0), "{number} of {figure}");
    }
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "nothing is left");
    place.call(&["bench", "-w", "W9"]).exits(2).complains(&["there are W1, W2 and W3"]);
}

#[test]
fn a_server_that_others_use_has_no_more_runs_than_before() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let place = Place::new(&[]);
    assert_eq!(figures(&place, &["--database", &url])[0]["store"], "postgres");
    let left = "SELECT count(*) AS n FROM run WHERE workflow = 'bench.sequence' AND deleted_at IS NULL";
    let left = place.call(&["sql", left, "--database", &url, "-o", "json"]).exits(0).json();
    assert_eq!(left[0]["n"], 0, "in any namespace");
}
