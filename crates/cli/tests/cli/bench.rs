//! `outlast bench`: it measures, and says what it leaves behind.

use serde_json::Value;

use crate::place::Place;

const ALL: [&str; 7] = ["W1", "W2", "W3", "W4", "W5", "W6", "W7"];

fn figures(place: &Place, args: &[&str]) -> Vec<Value> {
    let said = place.call(&[&["bench", "--quick", "-o", "json"], args].concat()).exits(0);
    said.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[track_caller]
fn are_whole(figures: &[Value], store: &str) {
    let names: Vec<&str> = figures.iter().filter_map(|figure| figure["bench"].as_str()).collect();
    assert_eq!(names, ALL);
    for figure in figures {
        assert_eq!(figure["store"], store, "{figure}");
        for number in ["value", "bare", "ratio"] {
            assert!(figure[number].as_f64().is_some_and(|value| value > 0.0), "{number} of {figure}");
        }
    }
}

#[test]
fn a_file_is_measured_in_a_folder_that_is_gone_afterwards() {
    let place = Place::new(&[]);
    are_whole(&figures(&place, &[]), "sqlite");
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn people_are_shown_a_table() {
    let place = Place::new(&[]);
    let said = place.call(&["bench", "--quick", "-w", "W3,w4"]).exits(0);
    let lines: Vec<Vec<&str>> = said.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["WORKLOAD", "STORE", "ENGINE", "LIMIT", "RATIO"]);
    assert_eq!((lines.len(), &lines[1][..2], &lines[2][..2]), (3, &["W3", "sqlite"][..], &["W4", "sqlite"][..]));
    for line in &lines[1..] {
        let numbers: Vec<f64> = line.iter().filter_map(|word| word.parse().ok()).collect();
        let [value, limit, ratio] = numbers[..] else { panic!("{line:?}") };
        assert!((value / limit - ratio).abs() < 0.02 * ratio, "{line:?}");
    }
    said.complains(&["W3 …", "W4 …"]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = Place::new(&[]);
    place.call(&["bench", "-w", "W9"]).exits(2).complains(&["W9", "W1, W2, W3, W4, W5, W6, W7"]);
    // And not measured on another disk.
    let nowhere = ["bench", "-w", "W3", "--database", "sqlite:no/where.db"];
    place.call(&nowhere).exits(3).complains(&["there is no folder no for the database", "mkdir -p no"]);
    place.call(&["bench", "-w", "W3", "--database", "postgres://127.0.0.1:1/none"]).exits(7);
    let help = place.call(&["bench", "--help"]).exits(0).out;
    for workload in ALL {
        assert!(help.contains(&format!("- {workload}:")), "{workload} in {help}");
    }
}

#[test]
fn a_server_that_others_use_has_no_more_runs_than_before() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let place = Place::new(&[]);
    let there = || {
        let asked = "SELECT (SELECT count(*) FROM run WHERE workflow LIKE 'bench.%' AND deleted_at IS NULL) AS runs, \
                     (SELECT count(*) FROM namespace WHERE name LIKE 'bench%') AS namespaces";
        place.call(&["sql", asked, "--database", &url, "-o", "json"]).exits(0).json()[0].clone()
    };
    // The first one may have to make the tables, and its namespace.
    figures(&place, &["-w", "W3", "--database", &url]);
    let before = there();
    are_whole(&figures(&place, &["--database", &url]), "postgres");
    assert_eq!(there(), before);
}
