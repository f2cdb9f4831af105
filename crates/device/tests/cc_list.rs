//! The list of algorithms, which needs no privileges.

use std::process::Command;

use serde_json::Value;

fn list(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranchd")).args(["cc", "list"]).args(arguments).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it speaks UTF-8")
}

#[test]
fn every_algorithm_of_the_registry_is_listed_with_its_parameters() {
    let entries: Vec<Value> = serde_json::from_str(&list(&["--json"])).expect("it is JSON");
    let algorithms = anabranch_cc::algorithms();
    assert_eq!(entries.len(), algorithms.len());
    for (entry, algorithm) in entries.iter().zip(algorithms) {
        assert_eq!(entry["name"], algorithm.name());
        assert_eq!(entry["kernel_name"], format!("ab_{}", algorithm.name()));
        let params = entry["params"].as_array().expect("an array");
        let names: Vec<&str> = algorithm.params().iter().map(|param| param.name).collect();
        assert_eq!(params.iter().map(|param| &param["name"]).collect::<Vec<_>>(), names);
    }
    let text = list(&[]);
    assert_eq!(text.lines().count(), 1 + algorithms.len(), "{text}");
}

#[test]
fn a_parameter_shows_its_unit_and_what_it_may_be() {
    let entries: Vec<Value> = serde_json::from_str(&list(&["--json"])).expect("it is JSON");
    let param = |algorithm: &str, name: &str| -> Value {
        let entry = entries.iter().find(|entry| entry["name"] == algorithm).expect("it is listed");
        let mut params = entry["params"].as_array().expect("an array").iter();
        params.find(|param| param["name"] == name).expect("it has this parameter").clone()
    };
    let period = param("mfvl", "period");
    assert_eq!((&period["unit"], &period["default"]), (&"time".into(), &"50 s".into()));
    assert_eq!(period["range"], Value::from(vec!["1 ms", "3600 s"]));
    let precision = param("lia", "precision");
    assert_eq!((&precision["unit"], &precision["range"]), (&"choice".into(), &Value::Null));
    assert_eq!(precision["choices"], Value::from(vec!["exact", "kernel"]));
    let text = list(&["--params"]);
    assert!(text.contains("\n    precision = exact (exact, kernel): "), "{text}");
    assert!(text.contains("\n    period = 50 s (1 ms to 3600 s): T, "), "{text}");
}
